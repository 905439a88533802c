#include "results/baseline_nodes.h"

#include <stdlib.h>
#include <string.h>

/* "node1,node2"; where hosts are not known the log's name, or the run's number. */
static void name_of(const struct nw_context *context, size_t run, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; context->hosts != NULL && i < context->host_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? "," : "",
                                 context->hosts[i].name);
    if (text[0] == '\0' && context->source[0] != '\0')
        snprintf(text, size, "%s", context->source);
    else if (text[0] == '\0')
        snprintf(text, size, "run %zu", run + 1);
}

static nw_rc find_node(struct nw_node_values *values, const char *name, size_t *node_out)
{
    for (size_t i = 0; i < values->node_count; i++)
        if (strcmp(values->nodes[i], name) == 0) {
            *node_out = i;
            return NW_OK;
        }
    char **grown = realloc(values->nodes, (values->node_count + 1) * sizeof *grown);

    if (grown == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu nodes", values->node_count + 1);
    values->nodes = grown;
    grown[values->node_count] = strdup(name);
    if (grown[values->node_count] == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu nodes", values->node_count + 1);
    *node_out = values->node_count++;
    return NW_OK;
}

static int by_thing_and_node(const void *a, const void *b)
{
    const struct nw_node_value *left = a, *right = b;
    const int order = nw_compare_order(&left->entry, &right->entry, 0);

    if (order != 0)
        return order;
    if (left->node != right->node)
        return left->node < right->node ? -1 : 1;
    return (left->time_ns > right->time_ns) - (left->time_ns < right->time_ns);
}

/* Records of one thing on one node become their median. */
static void merge_same(struct nw_node_values *values)
{
    size_t kept = 0;

    for (size_t i = 0, same; i < values->count; i += same) {
        const struct nw_node_value *first = &values->items[i];

        for (same = 1; i + same < values->count; same++)
            if (first->node != values->items[i + same].node ||
                nw_compare_order(&first->entry, &values->items[i + same].entry, 0) != 0)
                break;
        const double low = values->items[i + (same - 1) / 2].time_ns;
        const double high = values->items[i + same / 2].time_ns;
        struct nw_node_value merged = *first;

        merged.time_ns = (low + high) / 2;
        values->items[kept++] = merged;
    }
    values->count = kept;
}

static nw_rc take_run(struct nw_node_values *values, const struct nw_run *run, size_t number,
                      const struct nw_select *select)
{
    char name[1024];
    size_t node = 0;

    name_of(&run->context, number, name, sizeof name);
    NW_TRY(find_node(values, name, &node));
    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (nw_compare_usable(record) && nw_select_takes(select, record, &run->context))
            values->items[values->count++] = (struct nw_node_value){
                .entry = {record, &run->context}, .node = node, .time_ns = nw_compare_time(record)};
    }
    return NW_OK;
}

nw_rc nw_node_values_of(const struct nw_results *results, const struct nw_select *select,
                        struct nw_node_values *values_out)
{
    struct nw_node_values values = {
        .items = calloc(nw_results_record_count(results) + 1, sizeof *values.items)};
    nw_rc rc = values.items != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for the results");

    for (size_t r = 0; r < results->run_count && rc == NW_OK; r++)
        rc = take_run(&values, &results->runs[r], r, select);
    if (rc != NW_OK) {
        nw_node_values_free(&values);
        return rc;
    }
    qsort(values.items, values.count, sizeof *values.items, by_thing_and_node);
    merge_same(&values);
    *values_out = values;
    return NW_OK;
}

void nw_node_values_free(struct nw_node_values *values)
{
    for (size_t i = 0; i < values->node_count; i++)
        free(values->nodes[i]);
    free(values->nodes);
    free(values->items);
    *values = (struct nw_node_values){0};
}
