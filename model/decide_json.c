/* The decision as JSON. */
#include "base/json.h"
#include "model/json_parts.h"

static const char *const pays_names[] = {
    [NW_PAYS_BASE] = "base",         [NW_PAYS_YES] = "yes",     [NW_PAYS_MEMORY] = "memory",
    [NW_PAYS_DEADLINE] = "deadline", [NW_PAYS_NO] = "no",       [NW_PAYS_UNFIT] = "unfit",
    [NW_PAYS_UNKNOWN] = "unknown",   [NW_PAYS_BATCH] = "batch",
};
static const char *const break_even_names[] = {
    [NW_BREAK_EVEN_NONE] = NULL,
    [NW_BREAK_EVEN_AT] = "at",
    [NW_BREAK_EVEN_NEVER] = "never",
    [NW_BREAK_EVEN_ALWAYS] = "always",
};

const char *nw_pays_name(nw_pays pays)
{
    return pays_names[pays];
}

static nw_rc set_break_even(json_t *object, const struct nw_choice *choice)
{
    json_t *even;

    if (choice->break_even == NW_BREAK_EVEN_NONE)
        return NW_OK;
    NW_TRY(nw_json_add_object(object, "break_even", &even));
    NW_TRY(nw_json_set_text(even, "kind", break_even_names[choice->break_even]));
    NW_TRY(nw_json_set_text(even, "strategy", choice->break_even_strategy->name));
    NW_TRY(nw_json_set_text(even, "collective", choice->break_even_collective));
    return NW_SET_REALS(even, {"busbw_bytes_per_s", choice->break_even_busbw_bytes_per_s},
                        {"measured_busbw_bytes_per_s", choice->measured_busbw_bytes_per_s},
                        {"message_bytes", choice->break_even_message_bytes});
}

static nw_rc fill_choice(const struct nw_choice *choice, json_t *object)
{
    json_t *step;

    NW_TRY(nw_json_set_int(object, "nodes", choice->node_count));
    NW_TRY(nw_json_set_int(object, "ranks", choice->rank_count));
    NW_TRY(nw_json_set_text(object, "pays", pays_names[choice->pays]));
    NW_TRY(set_break_even(object, choice));
    if (!choice->predicted)
        return NW_OK;
    NW_TRY(NW_SET_REALS(
        object, {"speedup", choice->speedup}, {"efficiency", choice->efficiency},
        {"price_per_hour", choice->price_per_hour},
        {"cost_per_billion_tokens", choice->cost_per_billion_tokens},
        {"time_to_tokens_ns", choice->time_ns}, {"cost_of_tokens", choice->cost},
        {"cost_ratio", choice->cost_ratio}, {"cost_ratio_low", choice->cost_ratio_low},
        {"cost_ratio_high", choice->cost_ratio_high}, {"probability_pays", choice->probability}));
    NW_TRY(nw_step_to_json(&choice->strong, &step));
    NW_TRY(nw_json_set_new(object, "strong", step));
    if (!choice->weak_predicted)
        return NW_OK;
    NW_TRY(NW_SET_REALS(object, {"weak_speedup", choice->weak_speedup},
                        {"weak_efficiency", choice->weak_efficiency}));
    NW_TRY(nw_step_to_json(&choice->weak, &step));
    return nw_json_set_new(object, "weak", step);
}

static nw_rc set_terms(json_t *root, const struct nw_terms *terms)
{
    json_t *object;

    NW_TRY(nw_json_add_object(root, "terms", &object));
    NW_TRY(
        nw_json_set_text(object, "currency", terms->currency[0] != '\0' ? terms->currency : NULL));
    return NW_SET_REALS(object, {"price_per_node_hour", terms->price_per_node_hour},
                        {"extra_per_further_node_hour", terms->extra_per_further_node_hour},
                        {"extra_per_hour", terms->extra_per_hour},
                        {"extra_when_several_per_hour", terms->extra_when_several_per_hour},
                        {"max_extra_cost", terms->max_extra_cost},
                        {"deadline_ns", terms->deadline_ns});
}

static nw_rc fill_decision(const struct nw_model *model, const struct nw_decision *decision,
                           json_t *root)
{
    json_t *list = json_array();

    NW_TRY(nw_model_json_start(model, "decision", root));
    NW_TRY(set_terms(root, &model->terms));
    NW_TRY(nw_json_set_new(root, "choices", list));
    for (size_t i = 0; i < decision->count; i++) {
        json_t *object = json_object();

        if (json_array_append_new(list, object) != 0)
            return nw_fail(NW_ENOMEM, "JSON: no memory");
        NW_TRY(fill_choice(&decision->choices[i], object));
    }
    NW_TRY(
        nw_json_set_int(root, "headline_nodes", decision->choices[decision->headline].node_count));
    if (decision->fitting_node_count > 0)
        NW_TRY(nw_json_set_int(root, "fewest_nodes_that_fit", decision->fitting_node_count));
    return nw_model_json_assumed(model, decision->assumed, root);
}

nw_rc nw_decision_to_json(const struct nw_model *model, const struct nw_decision *decision,
                          json_t **json_out)
{
    json_t *root = json_object();
    const nw_rc rc = fill_decision(model, decision, root);

    if (rc != NW_OK) {
        json_decref(root);
        return rc;
    }
    *json_out = root;
    return NW_OK;
}
