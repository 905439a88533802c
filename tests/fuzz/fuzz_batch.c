/* Lines of predict --batch, any bytes: no crash, each is answered with one object, and a step that
 * is predicted has finite, ordered figures. Files are made up: nothing outside is read. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static nw_rc read_made_up(const char *path, struct nw_results *results)
{
    if (path[0] == 'x')
        return nw_fail(NW_EIO, "%.20s: cannot open for reading", path);
    struct nw_run *run = nw_results_add_run(results);

    for (uint64_t bytes = 1024; bytes <= 1u << 28; bytes *= 4) {
        struct nw_record record;

        nw_record_init(&record);
        strcpy(record.case_name, "coll");
        strcpy(record.collective, "all_reduce");
        strcpy(record.lane, "host");
        record.rank_count = 16;
        record.host_count = 2;
        record.bytes = bytes;
        record.time_ns = nw_stats_single(2e4 + (double)bytes / 10);
        if (nw_run_add_record(run, &record) != NW_OK)
            abort();
    }
    return NW_OK;
}

/* Other files than results would be opened. */
static int names_a_file(const char *line, size_t size)
{
    return memchr(line, '/', size) != NULL || memmem(line, size, ".json", 5) != NULL ||
           memmem(line, size, "measured-log", 12) != NULL || memchr(line, '\\', size) != NULL;
}

static void check_step(const json_t *step)
{
    const double ns = json_number_value(json_object_get(step, "step_ns"));
    const double low = json_number_value(json_object_get(step, "step_low_ns"));
    const double high = json_number_value(json_object_get(step, "step_high_ns"));
    const json_t *memory = json_object_get(step, "memory");

    if (!(ns > 0) || !isfinite(ns) || !(low <= ns * 1.000001) || !(high >= ns * 0.999999) ||
        !(json_number_value(json_object_get(memory, "total_bytes")) > 0))
        abort();
}

static void check_answer(const json_t *answer)
{
    const json_t *steps = json_object_get(answer, "steps");

    if (json_object_get(answer, "error") != NULL) {
        const json_int_t rc = json_integer_value(json_object_get(answer, "rc"));

        if (rc != 2 && rc != 3)
            abort();
    } else if (steps != NULL) {
        for (size_t i = 0; i < json_array_size(steps); i++)
            check_step(json_array_get(steps, i));
    } else {
        check_step(answer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nw_model_request request = {.model = NULL};
    const char *text = (const char *)data;
    struct nw_batch *batch;
    uint64_t number = 1;

    if (nw_options_reset(nw_model_options, nw_model_option_count, &request) != NW_OK ||
        nw_batch_open(&request, NULL, read_made_up, &batch) != NW_OK)
        abort();
    while (size > 0) {
        const char *end = memchr(text, '\n', size);
        const size_t length = end != NULL ? (size_t)(end - text) : size;
        json_t *answer;

        if (!names_a_file(text, length)) {
            if (nw_batch_answer(batch, text, length, number, &answer) != NW_OK)
                abort();
            check_answer(answer);
            json_decref(answer);
        }
        number++;
        text += end != NULL ? length + 1 : length;
        size -= end != NULL ? length + 1 : length;
    }
    nw_batch_close(batch);
    return 0;
}
