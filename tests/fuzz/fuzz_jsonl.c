/* The reader of results files on any bytes: no crash, and what it takes is written back as lines
 * that it takes again, to the same values. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/results.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool truth)
{
    if (!truth)
        abort();
}

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b;
}

static void check_run(const struct nw_run *run)
{
    struct nw_plateau plateau;

    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];
        struct nw_record back;
        json_t *json;

        demand(nw_record_to_json(record, &json) == NW_OK);
        demand(nw_record_from_json(json, "fuzz", &back) == NW_OK);
        demand(nw_record_same_identity(record, &back));
        demand(same(record->time_ns.median, back.time_ns.median));
        demand(same(record->busbw_bytes_per_s, back.busbw_bytes_per_s));
        demand(record->warnings.count == back.warnings.count);
        demand((record->samples_ns == NULL) == (back.samples_ns == NULL));
        for (size_t k = 0; record->samples_ns != NULL && k < record->time_ns.count; k++)
            demand(record->samples_ns[k] == back.samples_ns[k]);
        json_decref(json);
        nw_record_free(&back);
        if (nw_plateau_of(run, record->case_name, record->collective, 0, 0, -1, &plateau) == NW_OK)
            demand(plateau.from_bytes <= plateau.to_bytes &&
                   plateau.low <= plateau.busbw_bytes_per_s &&
                   plateau.busbw_bytes_per_s <= plateau.high);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nw_results results = {0};

    if (nw_results_read_data((const char *)data, size, "fuzz", &results) != NW_OK) {
        demand(nw_last_error()->rc == NW_EUSAGE);
        demand(strncmp(nw_last_error()->text, "fuzz:", 5) == 0 && results.run_count == 0);
        return 0;
    }
    for (size_t i = 0; i < results.run_count; i++) {
        json_t *json;

        check_run(&results.runs[i]);
        demand(nw_run_to_json(&results.runs[i], &json) == NW_OK);
        json_decref(json);
    }
    nw_results_free(&results);
    return 0;
}
