/* The decision as JSON: keys carry units, what is unknown is absent. */
#include <math.h>

#include "base/json.h"
#include "model/json_parts.h"

static const char *const pays_names[] = {
    [NW_PAYS_BASE] = "base",         [NW_PAYS_YES] = "yes",     [NW_PAYS_MEMORY] = "memory",
    [NW_PAYS_DEADLINE] = "deadline", [NW_PAYS_NO] = "no",       [NW_PAYS_UNFIT] = "unfit",
    [NW_PAYS_UNKNOWN] = "unknown",   [NW_PAYS_BATCH] = "batch", [NW_PAYS_STEP] = "step",
};
static const char *const break_even_names[] = {
    [NW_BREAK_EVEN_NONE] = NULL,
    [NW_BREAK_EVEN_AT] = "at",
    [NW_BREAK_EVEN_NEVER] = "never",
    [NW_BREAK_EVEN_ALWAYS] = "always",
};
static const char *const figure_names[] = {
    [NW_FIGURE_UNKNOWN] = NULL,
    [NW_FIGURE_GIVEN] = "given",
    [NW_FIGURE_MEASURED] = "measured",
    [NW_FIGURE_QUOTED] = "quoted",
};

/* ---- one node count ------------------------------------------------------------------------ */

static nw_rc set_break_even(json_t *object, const struct nw_choice *choice)
{
    json_t *even;

    if (choice->break_even == NW_BREAK_EVEN_NONE || choice->break_even_strategy == NULL)
        return NW_OK;
    NW_TRY(nw_json_add_object(object, "break_even", &even));
    NW_TRY(nw_json_set_text(even, "kind", break_even_names[choice->break_even]));
    NW_TRY(nw_json_set_text(even, "strategy", choice->break_even_strategy->name));
    NW_TRY(nw_json_set_text(even, "collective", choice->break_even_collective));
    return NW_SET_REALS(even, {"busbw_bytes_per_s", choice->break_even_busbw_bytes_per_s},
                        {"measured_busbw_bytes_per_s", choice->measured_busbw_bytes_per_s},
                        {"message_bytes", choice->break_even_message_bytes});
}

static nw_rc set_other_evens(json_t *object, const struct nw_choice *choice)
{
    json_t *even;

    if (choice->price_even != NW_BREAK_EVEN_NONE) {
        NW_TRY(nw_json_add_object(object, "break_even_price", &even));
        NW_TRY(nw_json_set_text(even, "kind", break_even_names[choice->price_even]));
        NW_TRY(NW_SET_REALS(even,
                            {"per_further_node_hour", choice->price_even_per_further_node_hour},
                            {"asked_per_further_node_hour", choice->price_per_further_node_hour}));
    }
    if (choice->token_even == NW_BREAK_EVEN_NONE)
        return NW_OK;
    NW_TRY(nw_json_add_object(object, "break_even_tokens", &even));
    NW_TRY(nw_json_set_text(even, "kind", break_even_names[choice->token_even]));
    return NW_SET_REALS(even, {"tokens", choice->token_even_count});
}

static nw_rc set_upkeep(json_t *object, const struct nw_upkeep *upkeep)
{
    json_t *set;

    NW_TRY(nw_json_add_object(object, "upkeep", &set));
    NW_TRY(nw_json_set_bool(set, "loading_saturated", upkeep->saturated));
    return NW_SET_REALS(
        set, {"useful_share", upkeep->useful}, {"checkpoint_bytes", upkeep->checkpoint_bytes},
        {"checkpoint_write_ns", upkeep->write_ns}, {"checkpoint_interval_ns", upkeep->interval_ns},
        {"mean_time_between_failures_ns", upkeep->failure_ns},
        {"loading_needed_bytes_per_s", upkeep->loading_needed_bytes_per_s},
        {"loading_bytes_per_s", upkeep->loading_bytes_per_s});
}

static nw_rc set_reasons(json_t *object, const struct nw_choice *choice)
{
    static const char *const units[] = {
#define X(reason, key, against, unit) [reason] = unit,
        NW_REASON_MAP(X)
#undef X
    };
    json_t *list;

    NW_TRY(nw_json_add_list(object, "reasons", &list));
    for (size_t i = 0; i < choice->reason_count; i++) {
        const struct nw_reason *reason = &choice->reasons[i];
        json_t *entry;

        NW_TRY(nw_json_append_object(list, &entry));
        NW_TRY(nw_json_set_text(entry, "key", nw_reason_key(reason->kind)));
        NW_TRY(nw_json_set_bool(entry, "against", nw_reason_is_against(reason->kind)));
        NW_TRY(NW_SET_REALS(entry, {"value", reason->value}, {"limit", reason->limit}));
        if (units[reason->kind][0] != '\0')
            NW_TRY(nw_json_set_text(entry, "unit", units[reason->kind]));
    }
    return NW_OK;
}

static nw_rc set_figures(json_t *object, const struct nw_choice *choice)
{
    NW_TRY(set_upkeep(object, &choice->upkeep));
    return NW_SET_REALS(
        object, {"speedup", choice->speedup}, {"efficiency", choice->efficiency},
        {"useful_tokens_per_s", choice->useful_tokens_per_s},
        {"price_per_hour", choice->price_per_hour},
        {"cost_per_billion_tokens", choice->cost_per_billion_tokens},
        {"time_to_tokens_ns", choice->time_ns}, {"cost_of_tokens", choice->cost},
        {"tokens_by_deadline", choice->deadline_tokens},
        {"cost_by_deadline", choice->deadline_cost}, {"cost_ratio", choice->cost_ratio},
        {"cost_ratio_low", choice->cost_ratio_low}, {"cost_ratio_high", choice->cost_ratio_high},
        {"time_ratio", choice->time_ratio}, {"time_ratio_low", choice->time_ratio_low},
        {"time_ratio_high", choice->time_ratio_high},
        {"speedup_over_measured", choice->anchor_speedup},
        {"speedup_over_measured_low", choice->anchor_speedup_low},
        {"speedup_over_measured_high", choice->anchor_speedup_high},
        {"probability_pays", choice->probability},
        {"probability_in_time", choice->in_time_probability});
}

static nw_rc fill_choice(const struct nw_choice *choice, json_t *object)
{
    json_t *step;

    NW_TRY(nw_json_set_int(object, "nodes", choice->node_count));
    NW_TRY(nw_json_set_int(object, "ranks", choice->rank_count));
    NW_TRY(nw_json_set_text(object, "pays", pays_names[choice->pays]));
    NW_TRY(
        nw_json_set_text(object, "problem", choice->problem[0] != '\0' ? choice->problem : NULL));
    NW_TRY(nw_json_set_real(object, "least_memory_bytes", choice->least_bytes));
    NW_TRY(set_reasons(object, choice));
    NW_TRY(set_break_even(object, choice));
    NW_TRY(set_other_evens(object, choice));
    if (!choice->predicted)
        return NW_OK;
    NW_TRY(set_figures(object, choice));
    NW_TRY(nw_step_to_json(&choice->strong, &step));
    NW_TRY(nw_json_set_new(object, "strong", step));
    if (!choice->weak_predicted)
        return NW_OK;
    NW_TRY(NW_SET_REALS(object, {"weak_speedup", choice->weak_speedup},
                        {"weak_efficiency", choice->weak_efficiency}));
    NW_TRY(nw_step_to_json(&choice->weak, &step));
    return nw_json_set_new(object, "weak", step);
}

/* ---- terms --------------------------------------------------------------------------------- */

static nw_rc set_storage(json_t *terms, const struct nw_storage *storage)
{
    json_t *object;

    NW_TRY(nw_json_add_object(terms, "storage", &object));
    NW_TRY(nw_json_set_text(object, "read_from", figure_names[storage->read_from]));
    NW_TRY(nw_json_set_text(object, "write_from", figure_names[storage->write_from]));
    NW_TRY(nw_json_set_bool(object, "shared", storage->shared));
    return NW_SET_REALS(object, {"read_bytes_per_s", storage->read_bytes_per_s},
                        {"write_bytes_per_s", storage->write_bytes_per_s});
}

static nw_rc set_failures(json_t *terms, const struct nw_failures *failures)
{
    json_t *object;

    NW_TRY(nw_json_add_object(terms, "failures", &object));
    NW_TRY(nw_json_set_bool(object, "rate_assumed", failures->rate_assumed));
    NW_TRY(nw_json_set_bool(object, "restart_assumed", failures->restart_assumed));
    return NW_SET_REALS(object, {"per_gpu_hour", failures->per_gpu_hour},
                        {"restart_ns", failures->restart_ns},
                        {"checkpoint_interval_ns", failures->checkpoint_interval_ns});
}

static nw_rc set_terms(json_t *root, const struct nw_terms *terms)
{
    json_t *object;

    NW_TRY(nw_json_add_object(root, "terms", &object));
    NW_TRY(
        nw_json_set_text(object, "currency", terms->currency[0] != '\0' ? terms->currency : NULL));
    if (isfinite(terms->price_per_node_hour))
        NW_TRY(nw_json_set_text(object, "rental", nw_rental_name(terms->rental)));
    NW_TRY(set_storage(object, &terms->storage));
    NW_TRY(set_failures(object, &terms->failures));
    return NW_SET_REALS(object, {"price_per_node_hour", terms->price_per_node_hour},
                        {"extra_per_further_node_hour", terms->extra_per_further_node_hour},
                        {"extra_per_hour", terms->extra_per_hour},
                        {"extra_when_several_per_hour", terms->extra_when_several_per_hour},
                        {"setup_cost_per_further_node", terms->setup_cost},
                        {"minimum_rental_ns", terms->minimum_rental_ns},
                        {"spot_interruptions_per_node_hour", terms->interruptions_per_node_hour},
                        {"bytes_per_token", terms->bytes_per_token},
                        {"max_extra_cost", terms->max_extra_cost},
                        {"deadline_ns", terms->deadline_ns}, {"max_step_ns", terms->max_step_ns});
}

static nw_rc set_rentals(json_t *root, const struct nw_decision *decision)
{
    json_t *list, *object;

    NW_TRY(nw_json_add_list(root, "rentals", &list));
    for (size_t i = 0; i < decision->rental_count; i++) {
        const struct nw_rental_cost *cost = &decision->rentals[i];

        NW_TRY(nw_json_append_object(list, &object));
        NW_TRY(nw_json_set_text(object, "rental", nw_rental_name(cost->rental)));
        NW_TRY(nw_json_set_real(object, "price_per_node_hour", cost->per_node_hour));
        if (!cost->known)
            continue;
        NW_TRY(NW_SET_REALS(object, {"base_useful_share", cost->base_useful},
                            {"useful_share", cost->useful},
                            {"base_cost_per_billion_tokens", cost->base_cost_per_billion_tokens},
                            {"cost_per_billion_tokens", cost->cost_per_billion_tokens},
                            {"base_cost_of_tokens", cost->base_cost},
                            {"cost_of_tokens", cost->cost}, {"cost_ratio", cost->cost_ratio}));
    }
    return NW_OK;
}

static nw_rc set_fit_ways(json_t *root, const struct nw_decision *decision)
{
    json_t *list, *object;

    NW_TRY(nw_json_add_list(root, "ways_to_fit", &list));
    for (size_t i = 0; i < decision->fit_way_count; i++) {
        const struct nw_fit_way *way = &decision->fit_ways[i];

        NW_TRY(nw_json_append_object(list, &object));
        NW_TRY(nw_json_set_int(object, "nodes", decision->fit_way_nodes));
        NW_TRY(nw_json_set_text(object, "strategy", way->strategy->name));
        NW_TRY(nw_json_set_text(object, "change", way->text));
        NW_TRY(NW_SET_REALS(object, {"total_bytes", way->memory_bytes},
                            {"time_per_token_ratio", way->time_ratio}));
    }
    return NW_OK;
}

static nw_rc fill_decision(const struct nw_model *model, const struct nw_decision *decision,
                           json_t *root)
{
    json_t *list, *object;

    NW_TRY(nw_model_json_start(model, "decision", root));
    NW_TRY(set_terms(root, &model->terms));
    NW_TRY(nw_json_add_list(root, "choices", &list));
    for (size_t i = 0; i < decision->count; i++) {
        NW_TRY(nw_json_append_object(list, &object));
        NW_TRY(fill_choice(&decision->choices[i], object));
    }
    NW_TRY(
        nw_json_set_int(root, "headline_nodes", decision->choices[decision->headline].node_count));
    if (decision->base < decision->count)
        NW_TRY(nw_json_set_int(root, "base_nodes", decision->choices[decision->base].node_count));
    if (decision->fitting_node_count > 0)
        NW_TRY(nw_json_set_int(root, "fewest_nodes_that_fit", decision->fitting_node_count));
    if (decision->rental_count > 0)
        NW_TRY(set_rentals(root, decision));
    if (decision->fit_way_count > 0)
        NW_TRY(set_fit_ways(root, decision));
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
