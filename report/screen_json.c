#include <string.h>

#include "base/finding_json.h"
#include "base/json.h"
#include "report/screen.h"

static nw_rc add_plateau(json_t *list, const struct nw_run *run, const struct nw_record *record)
{
    struct nw_plateau plateau;
    json_t *item;
    nw_rc rc;

    if (nw_plateau_like(run, record, -1, &plateau) != NW_OK)
        return NW_OK; /* nothing with a time: the key stays away */
    item = json_object();
    if (item == NULL || json_array_append_new(list, item) != 0)
        return nw_fail(NW_ENOMEM, "out of memory for the JSON of the run");
    rc = nw_json_set_text(item, "case", record->case_name);
    rc = rc != NW_OK ? rc : nw_json_set_text(item, "collective", record->collective);
    rc = rc != NW_OK ? rc : nw_json_set_text(item, "lane", record->lane);
    if (record->features[0] != '\0')
        rc = rc != NW_OK ? rc : nw_json_set_text(item, "features", record->features);
    rc = rc != NW_OK ? rc : nw_json_set_int(item, "ranks", record->rank_count);
    rc = rc != NW_OK ? rc : nw_json_set_int(item, "hosts", record->host_count);
    rc = rc != NW_OK ? rc : nw_json_set_real(item, "busbw_bytes_per_s", plateau.busbw_bytes_per_s);
    rc = rc != NW_OK ? rc : nw_json_set_real(item, "busbw_low_bytes_per_s", plateau.low);
    rc = rc != NW_OK ? rc : nw_json_set_real(item, "busbw_high_bytes_per_s", plateau.high);
    rc = rc != NW_OK ? rc : nw_json_set_u64(item, "from_bytes", plateau.from_bytes);
    rc = rc != NW_OK ? rc : nw_json_set_u64(item, "to_bytes", plateau.to_bytes);
    return rc != NW_OK ? rc : nw_json_set_bool(item, "falls_with_size", plateau.falls);
}

static bool seen_before(const struct nw_run *run, size_t index)
{
    const struct nw_record *record = &run->records[index];

    for (size_t i = 0; i < index; i++)
        if (strcmp(run->records[i].case_name, record->case_name) == 0 &&
            strcmp(run->records[i].collective, record->collective) == 0 &&
            strcmp(run->records[i].lane, record->lane) == 0 &&
            strcmp(run->records[i].features, record->features) == 0 &&
            run->records[i].rank_count == record->rank_count &&
            run->records[i].host_count == record->host_count)
            return true;
    return false;
}

static nw_rc add_measured(json_t *root, const struct nw_run *run)
{
    json_t *list = json_array();

    NW_TRY(nw_json_set_new(root, "measured", list));
    for (size_t i = 0; i < run->record_count; i++)
        if (nw_record_is_collective(&run->records[i]) && !seen_before(run, i))
            NW_TRY(add_plateau(list, run, &run->records[i]));
    return NW_OK;
}

static nw_rc add_job(json_t *root, const struct nw_screen *screen)
{
    json_t *item;

    NW_TRY(nw_steps_to_json(screen->model, screen->steps, &item));
    NW_TRY(nw_json_set_new(root, "prediction", item));
    NW_TRY(nw_lane_effects_to_json(screen->lane_effects, &item));
    NW_TRY(nw_json_set_new(root, "lane_effects", item));
    NW_TRY(nw_scaling_cost_to_json(screen->scaling_cost, &item));
    NW_TRY(nw_json_set_new(root, "scaling_cost", item));
    NW_TRY(nw_decision_to_json(screen->model, screen->decision, &item));
    return nw_json_set_new(root, "decision", item);
}

static nw_rc fill(json_t *root, const struct nw_screen *screen)
{
    json_t *item;

    NW_TRY(nw_json_set_int(root, "schema", NW_SCHEMA_VERSION));
    NW_TRY(nw_json_set_text(root, "kind", "run"));
    NW_TRY(nw_json_set_text(root, "version", screen->version));
    NW_TRY(nw_json_set_bool(root, "simulated", screen->run->context.simulated));
    NW_TRY(nw_json_set_real(root, "elapsed_ns", screen->elapsed_ns));
    NW_TRY(nw_json_set_text(root, "results", screen->results_path));
    NW_TRY(nw_json_set_text(root, "report", screen->report_path));
    NW_TRY(nw_json_set_text(root, "page", screen->page_path));
    NW_TRY(nw_json_set_text(root, "job_problem", screen->job_problem));
    NW_TRY(add_measured(root, screen->run));
    NW_TRY(nw_lanes_to_json(screen->lanes, &item));
    NW_TRY(nw_json_set_new(root, "lanes", item));
    if (screen->preflight != NULL) {
        NW_TRY(nw_findings_to_json(screen->preflight, &item));
        NW_TRY(nw_json_set_new(root, "preflight", item));
    }
    if (screen->audit != NULL) {
        NW_TRY(nw_audit_to_json(screen->audit, &item));
        NW_TRY(nw_json_set_new(root, "audit", item));
    }
    return screen->model != NULL ? add_job(root, screen) : NW_OK;
}

nw_rc nw_report_screen_json(FILE *stream, const struct nw_screen *screen)
{
    json_t *root = json_object();
    nw_rc rc = root != NULL ? fill(root, screen) : nw_fail(NW_ENOMEM, "out of memory for the JSON");

    if (rc == NW_OK)
        rc = nw_json_print(stream, root);
    json_decref(root);
    return rc;
}
