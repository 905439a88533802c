#include "report/check_json.h"

#include <math.h>

#include "base/finding_json.h"
#include "base/json.h"
#include "results/results.h"

static nw_rc add_rows(json_t *root, const struct nw_check_screen *screen)
{
    json_t *array = json_array();
    nw_rc rc = NW_OK;

    for (size_t i = 0; i < screen->row_count && rc == NW_OK; i++) {
        const struct nw_check_row *row = &screen->rows[i];
        json_t *item = json_object();

        if (json_array_append_new(array, item) != 0)
            rc = nw_fail(NW_ENOMEM, "no memory for the rows of the check");
        if (rc == NW_OK)
            rc = nw_json_set_text(item, "area", row->key);
        if (rc == NW_OK)
            rc = nw_json_set_text(item, "value", row->value[0] != '\0' ? row->value : NULL);
        if (rc == NW_OK)
            rc = nw_json_set_text(item, "hosts", row->hosts[0] != '\0' ? row->hosts : NULL);
        if (rc == NW_OK)
            rc = nw_json_set_text(item, "state", nw_check_state_key(row->state));
    }
    if (rc == NW_OK)
        return nw_json_set_new(root, "areas", array);
    json_decref(array);
    return rc;
}

static nw_rc add_findings(json_t *root, const char *key, const struct nw_findings *findings)
{
    json_t *array;

    NW_TRY(nw_findings_to_json(findings, &array));
    return nw_json_set_new(root, key, array);
}

static nw_rc add_costs(json_t *root, const struct nw_finding_costs *costs)
{
    json_t *json;

    if (costs == NULL)
        return NW_OK;
    json = json_object();
    NW_TRY(nw_json_set_new(root, "step", json));
    NW_TRY(nw_json_set_text(json, "text", costs->text));
    if (!costs->known)
        return NW_OK;
    NW_TRY(nw_json_set_text(json, "strategy", costs->strategy->name));
    NW_TRY(nw_json_set_int(json, "nodes", costs->node_count));
    NW_TRY(nw_json_set_int(json, "gpus_per_node", costs->gpus_per_node));
    NW_TRY(nw_json_set_real(json, "intra_busbw_bytes_per_s", costs->intra_bytes_per_s));
    NW_TRY(nw_json_set_real(json, "inter_busbw_bytes_per_s", costs->inter_bytes_per_s));
    return nw_json_set_real(json, "step_ns", costs->step_ns);
}

static nw_rc add_audit(json_t *root, const struct nw_audit *audit)
{
    json_t *json;

    if (audit == NULL)
        return NW_OK;
    NW_TRY(nw_audit_to_json(audit, &json));
    return nw_json_set_new(root, "audit", json);
}

static nw_rc add_head(json_t *root, const struct nw_check_screen *screen)
{
    NW_TRY(nw_json_set_int(root, "schema", NW_CHECK_SCHEMA_VERSION));
    NW_TRY(nw_json_set_text(root, "kind", "check"));
    NW_TRY(nw_json_set_text(root, "tool_version", screen->version));
    NW_TRY(nw_json_set_text(root, "verdict", nw_check_verdict_key(screen->verdict)));
    NW_TRY(nw_json_set_text(root, "verdict_text", screen->verdict_text));
    NW_TRY(nw_json_set_bool(root, "simulated", screen->simulated));
    NW_TRY(nw_json_set_u64(root, "host_count", screen->host_count));
    NW_TRY(nw_json_set_u64(root, "read_count", screen->read_count));
    if (screen->rank_count > 0)
        NW_TRY(nw_json_set_int(root, "rank_count", screen->rank_count));
    NW_TRY(nw_json_set_real(root, "duration_ns", screen->elapsed_ns));
    return nw_json_set_text(root, "machines", screen->machines);
}

static nw_rc fill(json_t *root, const struct nw_check_screen *screen, const char *map_by,
                  const char *rankfile)
{
    NW_TRY(add_head(root, screen));
    NW_TRY(add_rows(root, screen));
    NW_TRY(add_findings(root, "findings", screen->findings));
    NW_TRY(add_findings(root, "not_checked", screen->not_checked));
    if (map_by[0] != '\0')
        NW_TRY(nw_json_set_text(root, "map_by", map_by));
    NW_TRY(nw_json_set_text(root, "rankfile", rankfile));
    NW_TRY(add_costs(root, screen->costs));
    return add_audit(root, screen->audit);
}

nw_rc nw_report_check_json(FILE *stream, const struct nw_check_screen *screen, json_t *hosts,
                           json_t *ranks, const char *map_by, const char *rankfile)
{
    json_t *root = json_object();
    nw_rc rc = nw_json_set_new(root, "hosts", hosts);
    const nw_rc second = nw_json_set_new(root, "ranks", ranks);

    if (rc == NW_OK)
        rc = second;
    if (rc == NW_OK)
        rc = fill(root, screen, map_by, rankfile);
    if (rc == NW_OK)
        rc = nw_json_print(stream, root);
    json_decref(root);
    return rc;
}
