/* Every importer, chosen by content, on any bytes: no crash; what is read is a result that the
 * schema allows and that survives being written and read; what is refused is refused with the
 * file's name; a run without a result says why. */
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

/* Unknown, or a measurement. */
static bool is_amount(double value)
{
    return isnan(value) || (isfinite(value) && value >= 0);
}

static bool is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b;
}

static void check_record(const struct nw_record *record)
{
    struct nw_record back;
    json_t *json;

    demand(is_amount(record->time_ns.median) && is_amount(record->time_ns.min) &&
           is_amount(record->time_ns.max) && is_amount(record->time_ns.mean));
    demand(is_amount(record->algbw_bytes_per_s) && is_amount(record->busbw_bytes_per_s) &&
           is_amount(record->flop_per_s) && is_amount(record->messages_per_s));
    demand(isfinite(record->time_ns.median) || isfinite(record->algbw_bytes_per_s) ||
           isfinite(record->busbw_bytes_per_s) || isfinite(record->flop_per_s) ||
           record->rc != NW_OK);
    demand(record->rank_count >= 0 && record->host_count >= 0 && record->wrong_elements >= -1);
    demand(record->rank_count != 1 || isnan(record->busbw_bytes_per_s));
    demand(record->case_name[0] != '\0' && record->collective[0] != '\0' &&
           record->lane[0] != '\0' && record->dtype[0] != '\0');
    demand(strncmp(record->source, "fuzz:", 5) == 0);
    demand(nw_record_to_json(record, &json) == NW_OK);
    demand(nw_record_from_json(json, "fuzz", &back) == NW_OK);
    demand(nw_record_same_identity(record, &back));
    demand(is_same(back.time_ns.median, record->time_ns.median) &&
           is_same(back.algbw_bytes_per_s, record->algbw_bytes_per_s));
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
    demand(run->context.tool[0] != '\0');
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
        check_run(&results.runs[i]);
    nw_results_free(&results);
    return 0;
}
