#include "results/results.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Arrays grow at every power of two, so that a count is enough to know the room. */
static bool needs_room(size_t count)
{
    return (count & (count - 1)) == 0;
}

static void *grow(void *items, size_t count, size_t size)
{
    const size_t room = count > 0 ? 2 * count : 1;

    return room > SIZE_MAX / size ? NULL : realloc(items, room * size);
}

struct nw_run *nw_results_add_run(struct nw_results *results)
{
    if (needs_room(results->run_count)) {
        struct nw_run *runs = grow(results->runs, results->run_count, sizeof *runs);

        if (runs == NULL)
            return NULL;
        results->runs = runs;
    }
    struct nw_run *run = &results->runs[results->run_count++];

    *run = (struct nw_run){0};
    nw_context_init(&run->context);
    return run;
}

struct nw_record *nw_run_new_record(struct nw_run *run)
{
    if (needs_room(run->record_count)) {
        struct nw_record *records = grow(run->records, run->record_count, sizeof *records);

        if (records == NULL)
            return NULL;
        run->records = records;
    }
    struct nw_record *record = &run->records[run->record_count++];

    nw_record_init(record);
    return record;
}

nw_rc nw_run_add_record(struct nw_run *run, struct nw_record *record)
{
    struct nw_record *added = nw_run_new_record(run);

    if (added == NULL)
        return nw_fail(NW_ENOMEM, "no memory for record %zu", run->record_count + 1);
    *added = *record;
    nw_record_init(record);
    return NW_OK;
}

void nw_run_free(struct nw_run *run)
{
    for (size_t i = 0; i < run->record_count; i++)
        nw_record_free(&run->records[i]);
    free(run->records);
    nw_context_free(&run->context);
    run->records = NULL;
    run->record_count = 0;
}

void nw_results_free(struct nw_results *results)
{
    for (size_t i = 0; i < results->run_count; i++)
        nw_run_free(&results->runs[i]);
    free(results->runs);
    *results = (struct nw_results){0};
}

size_t nw_results_record_count(const struct nw_results *results)
{
    size_t count = 0;

    for (size_t i = 0; i < results->run_count; i++)
        count += results->runs[i].record_count;
    return count;
}
