#include <math.h>

#include "base/json.h"
#include "results/compare.h"

static const char *const verdict_names[] = {[NW_COMPARE_NO_SAMPLES] = "no samples",
                                            [NW_COMPARE_SAME] = "same",
                                            [NW_COMPARE_UNCLEAR] = "unclear",
                                            [NW_COMPARE_FASTER] = "faster",
                                            [NW_COMPARE_SLOWER] = "slower"};

const char *nw_compare_verdict_name(nw_compare_verdict verdict)
{
    return verdict_names[verdict];
}

static nw_rc set_what(json_t *json, const struct nw_record *like)
{
    NW_TRY(nw_json_set_text(json, "case", like->case_name));
    NW_TRY(nw_json_set_text(json, "collective", like->collective));
    NW_TRY(nw_json_set_text(json, "lane", like->lane));
    NW_TRY(nw_json_set_text(json, "features", like->features[0] != '\0' ? like->features : NULL));
    NW_TRY(nw_json_set_text(json, "dtype", like->dtype));
    NW_TRY(nw_json_set_text(json, "op", like->op));
    if (like->rank_count > 0)
        NW_TRY(nw_json_set_int(json, "ranks", like->rank_count));
    if (like->host_count > 0)
        NW_TRY(nw_json_set_int(json, "hosts", like->host_count));
    return NW_OK;
}

static nw_rc fill_row(json_t *json, const struct nw_comparison *comparison,
                      const struct nw_compare_row *row)
{
    const struct nw_record *like = row->like;

    NW_TRY(nw_json_set_text(json, "against", comparison->sides[0].name));
    NW_TRY(nw_json_set_text(json, "name", comparison->sides[row->side].name));
    NW_TRY(set_what(json, like));
    NW_TRY(nw_json_set_u64(json, "bytes", like->bytes));
    NW_TRY(nw_json_set_bool(json, "in_place", like->in_place));
    if (like->peer_a >= 0)
        NW_TRY(nw_json_set_int(json, "peer_a", like->peer_a));
    if (like->peer_b >= 0)
        NW_TRY(nw_json_set_int(json, "peer_b", like->peer_b));
    NW_TRY(nw_json_set_real(json, "time_before_ns", row->a_time_ns));
    NW_TRY(nw_json_set_real(json, "time_ns", row->b_time_ns));
    NW_TRY(nw_json_set_real(json, "speed", row->speed.value));
    NW_TRY(nw_json_set_real(json, "speed_low", row->speed.low));
    NW_TRY(nw_json_set_real(json, "speed_high", row->speed.high));
    NW_TRY(nw_json_set_real(json, "p", row->p));
    NW_TRY(nw_json_set_real(json, "p_joint", row->p_joint));
    NW_TRY(nw_json_set_u64(json, "samples_before", row->a_samples));
    NW_TRY(nw_json_set_u64(json, "samples", row->b_samples));
    NW_TRY(nw_json_set_u64(json, "runs_before", row->a_runs));
    NW_TRY(nw_json_set_u64(json, "runs", row->b_runs));
    if (row->runs_disagree)
        NW_TRY(nw_json_set_bool(json, "runs_disagree", true));
    return nw_json_set_text(json, "verdict", verdict_names[row->verdict]);
}

static nw_rc fill_refusal(json_t *json, const struct nw_comparison *comparison,
                          const struct nw_compare_refusal *refusal)
{
    NW_TRY(nw_json_set_text(json, "against", comparison->sides[0].name));
    NW_TRY(nw_json_set_text(json, "name", comparison->sides[refusal->side].name));
    NW_TRY(nw_json_set_text(json, "of",
                            comparison->sides[refusal->of_first ? 0 : refusal->side].name));
    NW_TRY(set_what(json, refusal->like));
    NW_TRY(nw_json_set_u64(json, "results", refusal->count));
    NW_TRY(nw_json_set_u64(json, "min_bytes", refusal->min_bytes));
    NW_TRY(nw_json_set_u64(json, "max_bytes", refusal->max_bytes));
    return nw_json_set_text(json, "reason", refusal->reason);
}

static nw_rc fill_counts(json_t *json, const struct nw_comparison *comparison)
{
    for (int i = 0; i < NW_COMPARE_VERDICTS; i++)
        NW_TRY(nw_json_set_u64(json, verdict_names[i], comparison->verdicts[i]));
    return NW_OK;
}

static nw_rc append_new(json_t *array, json_t **item_out)
{
    *item_out = json_object();
    return json_array_append_new(array, *item_out) == 0 ? NW_OK
                                                        : nw_fail(NW_ENOMEM, "no memory for JSON");
}

nw_rc nw_comparison_to_json(const struct nw_comparison *comparison, json_t **json_out)
{
    json_t *counts = json_object(), *rows = json_array(), *refusals = json_array(), *item;
    json_t *root = json_pack("{s:i, s:s, s:b, s:f, s:f, s:I, s:o, s:o, s:o}", "schema",
                             NW_SCHEMA_VERSION, "kind", "comparison", "simulated",
                             comparison->simulated, "threshold", comparison->threshold, "alpha",
                             NW_COMPARE_ALPHA, "tested", (json_int_t)comparison->tested_count,
                             "verdicts", counts, "rows", rows, "not_compared", refusals);
    nw_rc rc =
        root != NULL ? fill_counts(counts, comparison) : nw_fail(NW_ENOMEM, "no memory for JSON");

    for (size_t i = 0; i < comparison->row_count && rc == NW_OK; i++) {
        rc = append_new(rows, &item);
        if (rc == NW_OK)
            rc = fill_row(item, comparison, &comparison->rows[i]);
    }
    for (size_t i = 0; i < comparison->refusal_count && rc == NW_OK; i++) {
        rc = append_new(refusals, &item);
        if (rc == NW_OK)
            rc = fill_refusal(item, comparison, &comparison->refusals[i]);
    }
    if (rc == NW_OK)
        *json_out = root;
    else
        json_decref(root);
    return rc;
}
