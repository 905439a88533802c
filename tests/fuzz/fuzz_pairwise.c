/* The importer of pairwise summaries, and the comparison of hosts on what it read, on any bytes. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "results/fleet.h"
#include "results/pairwise.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool truth)
{
    if (!truth)
        abort();
}

static void check_record(const struct nw_record *record)
{
    struct nw_record back;
    json_t *json;

    demand(record->peer_a >= 0 && record->peer_b >= 0 && record->peer_a != record->peer_b);
    demand(record->rank_count >= 2 && record->host_count == 2);
    demand((record->rc == NW_OK) == (record->busbw_bytes_per_s > 0));
    demand(nw_record_to_json(record, &json) == NW_OK);
    demand(nw_record_from_json(json, "fuzz", &back) == NW_OK);
    demand(back.peer_a == record->peer_a && back.rc == record->rc);
    json_decref(json);
    nw_record_free(&back);
}

static void check_fleet(const struct nw_results *results)
{
    struct nw_fleet_report report;
    json_t *json;

    if (nw_fleet_of_results(results, &report) != NW_OK) {
        demand(nw_last_error()->rc == NW_ENODEV || nw_last_error()->rc == NW_EUSAGE);
        return;
    }
    demand(report.leave_out_count >= report.suspect_count);
    demand(nw_fleet_to_json(&report, &json) == NW_OK);
    json_decref(json);
    nw_fleet_report_free(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nw_results results = {0};

    if (nw_pairwise_recognise((const char *)data, size) == 0)
        return 0;
    demand(nw_pairwise_read((const char *)data, size, "fuzz", NULL, &results) == NW_OK);
    for (size_t i = 0; i < results.runs[0].record_count; i++)
        check_record(&results.runs[0].records[i]);
    check_fleet(&results);
    nw_results_free(&results);
    return 0;
}
