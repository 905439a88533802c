/* The reader of results files on any bytes: no crash, and what it takes is written back as lines
 * that it takes again, to the same values. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/record_rows.h"
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

/* A line that the fast reader takes is the same record to jansson. `line` ends in a newline. */
static void check_fast(const char *line, size_t length)
{
    struct nw_record fast, slow, brief;
    struct nw_text a = {0}, b = {0};

    if (nw_record_scan(line, length, true, &brief))
        nw_record_free(&brief);
    if (!nw_record_scan(line, length, false, &fast))
        return;
    json_t *json = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);

    demand(json != NULL && nw_record_from_json(json, "fuzz", &slow) == NW_OK);
    nw_record_write(&a, &fast);
    nw_record_write(&b, &slow);
    demand(a.length == b.length && memcmp(a.data, b.data, a.length) == 0);
    nw_text_free(&a);
    nw_text_free(&b);
    json_decref(json);
    nw_record_free(&fast);
    nw_record_free(&slow);
}

static void check_lines(const char *data, size_t size)
{
    const char *end;

    for (size_t at = 0; (end = memchr(data + at, '\n', size - at)) != NULL;
         at = (size_t)(end - data) + 1)
        check_fast(data + at, (size_t)(end - data) - at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0)
        check_lines((const char *)data, size);
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
