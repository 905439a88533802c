/* The importer of nccl-tests logs on any bytes: no crash, what it reads is a result that the schema
 * allows, and survives being written and read. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "results/import.h"

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

    if (strcmp(record->case_name, "pairwise") == 0) /* another importer's: fuzz_pairwise */
        return;
    demand(isfinite(record->time_ns.median) && record->time_ns.median >= 0);
    demand(isnan(record->busbw_bytes_per_s) || record->busbw_bytes_per_s >= 0);
    demand(isnan(record->algbw_bytes_per_s) || record->algbw_bytes_per_s >= 0);
    demand(record->rank_count >= 0 && record->host_count >= 0 && record->wrong_elements >= -1);
    demand(record->rank_count != 1 || isnan(record->busbw_bytes_per_s));
    demand(strncmp(record->source, "fuzz:", 5) == 0);
    demand(nw_record_to_json(record, &json) == NW_OK);
    demand(nw_record_from_json(json, "fuzz", &back) == NW_OK);
    demand(nw_record_same_identity(record, &back));
    demand(back.time_ns.median == record->time_ns.median);
    json_decref(json);
    nw_record_free(&back);
}

static void check_run(const struct nw_run *run)
{
    struct nw_context context;
    json_t *json;

    for (size_t i = 0; i < run->record_count; i++)
        check_record(&run->records[i]);
    demand(run->record_count > 0 || run->context.findings.count > 0); /* or it says why */
    demand(nw_context_to_json(&run->context, &json) == NW_OK);
    demand(nw_context_from_json(json, "fuzz", &context) == NW_OK);
    demand(context.rank_count == run->context.rank_count);
    json_decref(json);
    nw_context_free(&context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nw_results results = {0};

    if (nw_import_data((const char *)data, size, "fuzz", &results) != NW_OK) {
        demand(nw_last_error()->rc == NW_EUSAGE);
        demand(strncmp(nw_last_error()->text, "fuzz:", 5) == 0 && results.run_count == 0);
        return 0;
    }
    for (size_t i = 0; i < results.run_count; i++)
        if (strstr(results.runs[i].context.tool, "ccl-tests") != NULL) /* else: fuzz_import */
            check_run(&results.runs[i]);
    nw_results_free(&results);
    return 0;
}
