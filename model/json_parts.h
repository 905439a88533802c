/* Private to model/. What the model's JSON writers share. */
#ifndef NW_MODEL_JSON_PARTS_H
#define NW_MODEL_JSON_PARTS_H

#include "model/model.h"

struct nw_pair {
    const char *key;
    double value;
};
nw_rc nw_json_set_pairs(json_t *object, const struct nw_pair *pairs, size_t count);
/* NW_SET_REALS(object, {"key_ns", value}, …); what is not finite is left out. */
#define NW_SET_REALS(object, ...)                                                                  \
    nw_json_set_pairs(object, (const struct nw_pair[]){__VA_ARGS__},                               \
                      sizeof((const struct nw_pair[]){__VA_ARGS__}) / sizeof(struct nw_pair))

/* A list of words for NW_COST_… under `key`; 0: "measured". */
nw_rc nw_json_set_how(json_t *object, const char *key, unsigned how);
/* A new object, or list, under `key`; borrowed by the caller. */
nw_rc nw_json_add_object(json_t *parent, const char *key, json_t **object_out);
nw_rc nw_json_add_list(json_t *parent, const char *key, json_t **list_out);
/* A new object at the end of `list`; borrowed by the caller. */
nw_rc nw_json_append_object(json_t *list, json_t **object_out);

/* "schema", "kind", "job", "platform", "defaults". */
nw_rc nw_model_json_start(const struct nw_model *model, const char *kind, json_t *root);
/* nw_step_to_json, with the ratio to the model's anchor. */
nw_rc nw_model_step_to_json(const struct nw_model *model, const struct nw_step *step,
                            json_t **json_out);
/* How many node counts were left out, by cause. */
nw_rc nw_steps_json_left_out(const struct nw_steps *steps, json_t *object);
/* "assumed": the constants in use, with value and source. */
nw_rc nw_model_json_assumed(const struct nw_model *model, nw_assumed assumed, json_t *root);

#endif
