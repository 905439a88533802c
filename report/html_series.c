#include "report/html_series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More runs than these are the same thing again and again: one series. */
#define RUNS_APART 6

struct entry {
    const struct nw_record *record;
    size_t run;
};

static bool is_drawn(const struct nw_record *record)
{
    return nw_record_is_collective(record) && record->rc == NW_OK && record->bytes > 0 &&
           record->time_ns.count > 0 && isfinite(record->busbw_bytes_per_s) &&
           record->busbw_bytes_per_s > 0 && record->piece_bytes == 0 && record->wrong_elements <= 0;
}

static int order_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

/* The same chart: all lanes of one collective over one group; of the case scaling all groups. */
static int compare_charts(const struct entry *a, const struct entry *b)
{
    const struct nw_record *x = a->record, *y = b->record;
    int order = strcmp(x->case_name, y->case_name);

    order = order != 0 ? order : strcmp(x->collective, y->collective);
    if (order != 0 || strcmp(x->case_name, "scaling") == 0)
        return order;
    order = order_numbers(x->rank_count, y->rank_count);
    return order != 0 ? order : order_numbers(x->host_count, y->host_count);
}

static int compare_series(const struct entry *a, const struct entry *b)
{
    const struct nw_record *x = a->record, *y = b->record;
    int order = compare_charts(a, b);

    order = order != 0 ? order : order_numbers(x->host_count, y->host_count);
    order = order != 0 ? order : order_numbers(x->rank_count, y->rank_count);
    order = order != 0 ? order : strcmp(x->lane, y->lane);
    order = order != 0 ? order : strcmp(x->features, y->features);
    order = order != 0 ? order : strcmp(x->dtype, y->dtype);
    order = order != 0 ? order : strcmp(x->op, y->op);
    return order != 0 ? order : order_numbers((double)a->run, (double)b->run);
}

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = compare_series(a, b);

    order = order != 0
                ? order
                : (a->record->bytes > b->record->bytes) - (a->record->bytes < b->record->bytes);
    order = order != 0 ? order : a->record->in_place - b->record->in_place;
    return order != 0 ? order
                      : order_numbers(a->record->busbw_bytes_per_s, b->record->busbw_bytes_per_s);
}

static struct entry *collect(const struct nw_results *results, size_t *count_out)
{
    struct entry *entries =
        malloc((nw_results_record_count(results) + 1) * sizeof *entries); /* never 0 bytes */
    size_t count = 0;

    if (entries == NULL)
        return NULL;
    for (size_t i = 0; i < results->run_count; i++)
        for (size_t k = 0; k < results->runs[i].record_count; k++)
            if (is_drawn(&results->runs[i].records[k]))
                entries[count++] = (struct entry){.record = &results->runs[i].records[k],
                                                  .run = results->run_count <= RUNS_APART ? i : 0};
    qsort(entries, count, sizeof *entries, compare_entries);
    *count_out = count;
    return entries;
}

/* The middle one of those with the size and place of the first. */
static const struct nw_record *middle(const struct entry *entries, size_t count)
{
    size_t same = 1;

    while (same < count && entries[same].record->in_place == entries[0].record->in_place)
        same++;
    return entries[(same - 1) / 2].record;
}

static void fill(struct nw_series_list *list, const struct entry *entries, size_t count)
{
    size_t used = 0;

    for (size_t i = 0; i < count;) {
        const struct entry *first = &entries[i];
        size_t same = 1;

        if (i == 0 || compare_charts(first, first - 1) != 0)
            list->chart_count++;
        if (i == 0 || compare_series(first, first - 1) != 0)
            list->items[list->count++] = (struct nw_series){
                .run = first->run, .records = list->records + used, .chart = list->chart_count - 1};
        while (i + same < count && first[same].record->bytes == first->record->bytes &&
               compare_series(first, &first[same]) == 0)
            same++;
        list->records[used++] = middle(first, same);
        list->items[list->count - 1].count++;
        i += same;
    }
}

nw_rc nw_series_of(const struct nw_results *results, struct nw_series_list *list_out)
{
    struct nw_series_list list = {.count = 0};
    size_t count = 0;
    struct entry *entries = collect(results, &count);

    if (entries != NULL) {
        list.records = malloc((count + 1) * sizeof *list.records);
        list.items = malloc((count + 1) * sizeof *list.items);
    }
    if (list.records == NULL || list.items == NULL) {
        free(entries);
        nw_series_free(&list);
        return nw_fail(NW_ENOMEM, "no memory for the curves of %zu records",
                       nw_results_record_count(results));
    }
    fill(&list, entries, count);
    free(entries);
    *list_out = list;
    return NW_OK;
}

void nw_series_free(struct nw_series_list *list)
{
    free(list->records);
    free(list->items);
    *list = (struct nw_series_list){.count = 0};
}
