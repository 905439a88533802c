/* The reader of baselines on any bytes: no crash, and what it takes can be held against results
 * made of its own rows. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "results/baseline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool truth)
{
    if (!truth)
        abort();
}

/* A run of the baseline's own medians. */
static void hold(const struct nw_baseline *baseline)
{
    const struct nw_baseline_plan plan = {.threshold = 0.05};
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    struct nw_baseline_report report;
    json_t *json;

    memcpy(run->context.backend, baseline->context.backend, sizeof run->context.backend);
    memcpy(run->context.gpu_model, baseline->context.gpu_model, sizeof run->context.gpu_model);
    run->context.simulated = baseline->context.simulated;
    for (size_t i = 0; i < baseline->row_count; i++) {
        struct nw_record record = baseline->rows[i].like;

        record.time_ns = nw_stats_single(baseline->rows[i].time_ns);
        demand(nw_run_add_record(run, &record) == NW_OK);
    }
    demand(nw_baseline_hold(baseline, &results, &plan, &report) == NW_OK);
    demand(report.unknown_count == 0);
    demand(report.row_count > 0);
    demand(nw_baseline_report_to_json(&report, &json) == NW_OK);
    json_decref(json);
    nw_baseline_report_free(&report);
    nw_results_free(&results);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nw_baseline baseline;

    if (nw_baseline_read_data((const char *)data, size, "fuzz", &baseline) != NW_OK) {
        demand(nw_last_error()->rc == NW_EUSAGE);
        demand(strncmp(nw_last_error()->text, "fuzz:", 5) == 0);
        return 0;
    }
    hold(&baseline);
    nw_baseline_free(&baseline);
    return 0;
}
