#include "report/show_json.h"

#include <math.h>

#include "base/finding_json.h"
#include "base/json.h"

static nw_rc append(json_t *array, json_t *item)
{
    return json_array_append_new(array, item) == 0 ? NW_OK
                                                   : nw_fail(NW_ENOMEM, "no memory for JSON");
}

static nw_rc add_run(json_t *array, const struct nw_show_run *run)
{
    json_t *json, *findings;

    NW_TRY(nw_context_to_json(run->context, &json));
    nw_rc rc = nw_json_set_u64(json, "records", run->record_count);

    if (rc == NW_OK)
        rc = nw_json_set_u64(json, "records_selected", run->shown_count);
    if (rc == NW_OK)
        rc = nw_json_set_bool(json, "complete", run->context->complete);
    if (rc == NW_OK)
        rc = nw_findings_to_json(&run->context->findings, &findings);
    if (rc == NW_OK)
        rc = nw_json_set_new(json, "findings", findings);
    if (rc != NW_OK) {
        json_decref(json);
        return rc;
    }
    return append(array, json);
}

static nw_rc set_value(json_t *json, const char *key, struct nw_value value)
{
    char low[64], high[64];

    snprintf(low, sizeof low, "%s_low", key);
    snprintf(high, sizeof high, "%s_high", key);
    NW_TRY(nw_json_set_real(json, key, value.value));
    NW_TRY(nw_json_set_real(json, low, value.low));
    return nw_json_set_real(json, high, value.high);
}

static const char *const rate_keys[] = {[NW_RATE_BUSBW] = "busbw_bytes_per_s",
                                        [NW_RATE_ALGBW] = "algbw_bytes_per_s",
                                        [NW_RATE_FLOP] = "flop_per_s"};

static nw_rc add_points(json_t *json, const struct nw_group *group)
{
    json_t *points = json_array();

    NW_TRY(nw_json_set_new(json, "sizes", points));
    for (size_t i = 0; i < group->point_count; i++) {
        const struct nw_group_point *point = &group->points[i];
        json_t *item = json_object();

        NW_TRY(append(points, item));
        NW_TRY(nw_json_set_u64(item, "bytes", point->bytes));
        NW_TRY(nw_json_set_u64(item, "records", point->count));
        NW_TRY(set_value(item, "time_ns", point->time_ns));
        NW_TRY(set_value(item, rate_keys[group->kind], point->rate));
    }
    return NW_OK;
}

static nw_rc fill_group(json_t *json, const struct nw_group *group)
{
    const struct nw_record *like = &group->like;

    NW_TRY(nw_json_set_text(json, "case", like->case_name));
    NW_TRY(nw_json_set_text(json, "collective", like->collective));
    NW_TRY(nw_json_set_text(json, "lane", like->lane));
    if (like->features[0] != '\0')
        NW_TRY(nw_json_set_text(json, "features", like->features));
    NW_TRY(nw_json_set_text(json, "dtype", like->dtype));
    NW_TRY(nw_json_set_text(json, "op", like->op));
    if (like->root >= 0)
        NW_TRY(nw_json_set_int(json, "root", like->root));
    if (like->rank_count > 0)
        NW_TRY(nw_json_set_int(json, "ranks", like->rank_count));
    if (like->host_count > 0)
        NW_TRY(nw_json_set_int(json, "hosts", like->host_count));
    NW_TRY(nw_json_set_u64(json, "records", group->record_count));
    NW_TRY(nw_json_set_u64(json, "failed", group->failed_count));
    if (group->wrong >= 0)
        NW_TRY(nw_json_set_int(json, "wrong_elements", group->wrong));
    NW_TRY(nw_json_set_bool(json, "simulated", group->simulated));
    if (group->point_count > 0) {
        NW_TRY(set_value(json, "latency_ns", group->latency_ns));
        NW_TRY(set_value(json, rate_keys[group->kind], group->rate));
        NW_TRY(nw_json_set_u64(json, "rate_from_bytes", group->rate_from_bytes));
    }
    return add_points(json, group);
}

nw_rc nw_show_to_json(const struct nw_show_run *runs, size_t run_count,
                      const struct nw_groups *groups, const struct nw_record *records,
                      size_t record_count, json_t **json_out)
{
    json_t *run_list = json_array(), *group_list = json_array(), *record_list = json_array();
    json_t *root =
        json_pack("{s:i, s:s, s:o, s:o, s:o}", "schema", NW_SCHEMA_VERSION, "kind", "show", "runs",
                  run_list, "groups", group_list, "records", record_list);
    nw_rc rc = root != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for JSON");

    for (size_t i = 0; i < run_count && rc == NW_OK; i++)
        rc = add_run(run_list, &runs[i]);
    for (size_t i = 0; i < groups->count && rc == NW_OK; i++) {
        json_t *json = json_object();

        rc = append(group_list, json);
        if (rc == NW_OK)
            rc = fill_group(json, &groups->items[i]);
    }
    for (size_t i = 0; records != NULL && i < record_count && rc == NW_OK; i++) {
        json_t *json;

        rc = nw_record_to_json(&records[i], &json);
        if (rc == NW_OK)
            rc = append(record_list, json);
    }
    if (rc == NW_OK && records == NULL)
        json_object_del(root, "records");
    if (rc == NW_OK)
        *json_out = root;
    else
        json_decref(root);
    return rc;
}
