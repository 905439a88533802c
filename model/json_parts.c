#include "model/json_parts.h"

#include "base/json.h"

nw_rc nw_json_set_pairs(json_t *object, const struct nw_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        NW_TRY(nw_json_set_real(object, pairs[i].key, pairs[i].value));
    return NW_OK;
}

nw_rc nw_json_add_object(json_t *parent, const char *key, json_t **object_out)
{
    json_t *object = json_object();

    NW_TRY(nw_json_set_new(parent, key, object));
    *object_out = object;
    return NW_OK;
}

nw_rc nw_json_add_list(json_t *parent, const char *key, json_t **list_out)
{
    json_t *list = json_array();

    NW_TRY(nw_json_set_new(parent, key, list));
    *list_out = list;
    return NW_OK;
}

nw_rc nw_json_append_object(json_t *list, json_t **object_out)
{
    json_t *object = json_object();

    if (json_array_append_new(list, object) != 0)
        return nw_fail(NW_ENOMEM, "JSON: no memory");
    *object_out = object;
    return NW_OK;
}

nw_rc nw_steps_json_left_out(const struct nw_steps *steps, json_t *object)
{
    NW_TRY(nw_json_set_u64(object, "node_counts_without_measurement", steps->unpredicted));
    return nw_json_set_u64(object, "node_counts_without_even_batch", steps->undealt);
}

nw_rc nw_model_json_assumed(const struct nw_model *model, nw_assumed assumed, json_t *root)
{
    json_t *list;

    NW_TRY(nw_json_add_list(root, "assumed", &list));
    for (int i = 0; i < NW_CONSTANT_COUNT; i++) {
        const struct nw_constant_row *row = &nw_constants[i];
        json_t *entry = NULL;

        if ((assumed & (nw_assumed)1 << i) == 0)
            continue;
        NW_TRY(nw_json_append_object(list, &entry));
        NW_TRY(nw_json_set_text(entry, "key", row->key));
        NW_TRY(nw_json_set_real(entry, "value", model->platform.assumptions.value[i]));
        NW_TRY(nw_json_set_text(entry, "unit", row->unit));
        NW_TRY(nw_json_set_text(entry, "text", row->text));
        NW_TRY(nw_json_set_text(entry, "source", row->source));
    }
    return NW_OK;
}
