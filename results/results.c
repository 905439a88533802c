#include "results/results.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Room for `wanted` items in all. False: no memory, and nothing has changed. */
static bool reserve(void **items, size_t *capacity, size_t wanted, size_t size)
{
    size_t room = *capacity > 0 ? *capacity : 1;

    if (wanted <= *capacity)
        return true;
    while (room < wanted && room <= SIZE_MAX / 2)
        room *= 2;
    void *grown = room < wanted || room > SIZE_MAX / size ? NULL : realloc(*items, room * size);

    if (grown == NULL)
        return false;
    *items = grown;
    *capacity = room;
    return true;
}

struct nw_run *nw_results_add_run(struct nw_results *results)
{
    void *runs = results->runs;

    if (!reserve(&runs, &results->run_capacity, results->run_count + 1, sizeof *results->runs))
        return NULL;
    results->runs = runs;
    struct nw_run *run = &results->runs[results->run_count++];

    *run = (struct nw_run){0};
    nw_context_init(&run->context);
    return run;
}

nw_rc nw_run_reserve(struct nw_run *run, size_t more)
{
    void *records = run->records;

    if (more > SIZE_MAX - run->record_count ||
        !reserve(&records, &run->record_capacity, run->record_count + more, sizeof *run->records))
        return nw_fail(NW_ENOMEM, "no memory for %zu records more", more);
    run->records = records;
    return NW_OK;
}

struct nw_record *nw_run_new_record(struct nw_run *run)
{
    if (nw_run_reserve(run, 1) != NW_OK)
        return NULL;
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
    run->record_count = run->record_capacity = 0;
}

void nw_results_cut(struct nw_results *results, size_t count)
{
    while (results->run_count > count)
        nw_run_free(&results->runs[--results->run_count]);
    if (results->run_count > 0)
        return;
    free(results->runs);
    *results = (struct nw_results){0};
}

void nw_results_free(struct nw_results *results)
{
    nw_results_cut(results, 0);
}

size_t nw_results_record_count(const struct nw_results *results)
{
    size_t count = 0;

    for (size_t i = 0; i < results->run_count; i++)
        count += results->runs[i].record_count;
    return count;
}

bool nw_record_is_collective(const struct nw_record *record)
{
    return strcmp(record->case_name, "coll") == 0 || strcmp(record->case_name, "scaling") == 0;
}

static const char *lane_in(const struct nw_run *run, const char *wanted)
{
    for (size_t i = 0; i < run->record_count; i++)
        if (nw_record_is_collective(&run->records[i]) &&
            (wanted == NULL || strcmp(run->records[i].lane, wanted) == 0))
            return run->records[i].lane;
    return NULL;
}

const char *nw_run_lane(const struct nw_run *run)
{
    const char *lane = lane_in(run, "auto");
    size_t index;
    json_t *entry;

    json_array_foreach(run->context.lanes, index, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));

        if (lane == NULL && name != NULL)
            lane = lane_in(run, name);
    }
    return lane != NULL ? lane : lane_in(run, NULL);
}
