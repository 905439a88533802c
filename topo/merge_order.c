/* The order of the nodes after merging: a parent that a later source knew of has a higher index
 * than its child until here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/merge.h"

enum { MAX_DEPTH = 64 }; /* as the reader of the JSON */

/* As the readers have them. */
static int rank_of(nw_node_kind kind)
{
    static const nw_node_kind order[] = {NW_NODE_MACHINE, NW_NODE_PACKAGE, NW_NODE_NUMA,
                                         NW_NODE_BRIDGE,  NW_NODE_GPU,     NW_NODE_NIC,
                                         NW_NODE_PORT,    NW_NODE_DISK,    NW_NODE_PCI};

    for (int i = 0; i < (int)(sizeof order / sizeof *order); i++)
        if (order[i] == kind)
            return i;
    return (int)(sizeof order / sizeof *order);
}

static int compare(const void *x, const void *y, void *arg)
{
    const struct nw_topo *topo = arg;
    const int i = *(const int *)x, k = *(const int *)y;
    const struct nw_topo_node *a = &topo->nodes[i], *b = &topo->nodes[k];
    const int numbers[][2] = {
        {i != 0, k != 0}, /* the machine is first, whatever a file calls it */
        {rank_of(a->kind), rank_of(b->kind)},
        {a->kind == NW_NODE_GPU ? nw_merge_number(a->name) : 0,
         b->kind == NW_NODE_GPU ? nw_merge_number(b->name) : 0},
        {a->kind == NW_NODE_NUMA ? a->numa : 0, b->kind == NW_NODE_NUMA ? b->numa : 0},
        {a->pci[0] == '\0', b->pci[0] == '\0'},
    };

    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
        if (numbers[n][0] != numbers[n][1])
            return numbers[n][0] < numbers[n][1] ? -1 : 1;
    const int by_pci = strcmp(a->pci, b->pci), by_name = strcmp(a->name, b->name);

    return by_pci != 0 ? by_pci : by_name != 0 ? by_name : (i > k) - (i < k);
}

/* Of those whose parent is placed, the first in order is next: a heap of places in the order. */
struct ordering {
    struct nw_topo *topo;
    int *sorted, *place;     /* node of a place, place of a node */
    int *first_child, *next; /* by node, in any order */
    int *heap, *new_of;      /* places; new index of a node */
    struct nw_topo_node *nodes;
    int heap_count, placed;
};

static void push(struct ordering *ordering, int place)
{
    int at = ordering->heap_count++;

    for (; at > 0 && ordering->heap[(at - 1) / 2] > place; at = (at - 1) / 2)
        ordering->heap[at] = ordering->heap[(at - 1) / 2];
    ordering->heap[at] = place;
}

static int pop(struct ordering *ordering)
{
    const int first = ordering->heap[0], last = ordering->heap[--ordering->heap_count];
    int at = 0;

    for (;;) {
        int child = 2 * at + 1;

        if (child >= ordering->heap_count)
            break;
        if (child + 1 < ordering->heap_count && ordering->heap[child + 1] < ordering->heap[child])
            child++;
        if (ordering->heap[child] >= last)
            break;
        ordering->heap[at] = ordering->heap[child];
        at = child;
    }
    ordering->heap[at] = last;
    return first;
}

static void arrange(struct ordering *ordering)
{
    const struct nw_topo *topo = ordering->topo;
    const int count = (int)topo->node_count;

    for (int i = 0; i < count; i++) {
        ordering->sorted[i] = i;
        ordering->first_child[i] = -1;
    }
    qsort_r(ordering->sorted, (size_t)count, sizeof *ordering->sorted, compare, (void *)topo);
    for (int i = 0; i < count; i++)
        ordering->place[ordering->sorted[i]] = i;
    for (int i = 1; i < count; i++) {
        ordering->next[i] = ordering->first_child[topo->nodes[i].parent];
        ordering->first_child[topo->nodes[i].parent] = i;
    }
    push(ordering, 0);
    while (ordering->heap_count > 0) {
        const int node = ordering->sorted[pop(ordering)];

        ordering->new_of[node] = ordering->placed;
        ordering->nodes[ordering->placed++] = topo->nodes[node];
        for (int child = ordering->first_child[node]; child >= 0; child = ordering->next[child])
            push(ordering, ordering->place[child]);
    }
}

static void renumber(struct nw_topo *topo, const int *new_of)
{
    for (size_t i = 1; i < topo->node_count; i++)
        topo->nodes[i].parent = new_of[topo->nodes[i].parent];
    for (size_t i = 0; i < topo->fact_count; i++)
        topo->facts[i].node = new_of[topo->facts[i].node];
    for (size_t i = 0; i < topo->link_count; i++) {
        topo->links[i].a = new_of[topo->links[i].a];
        topo->links[i].b = new_of[topo->links[i].b];
    }
    for (size_t i = 0; i < topo->stated_count; i++) {
        const int a = new_of[topo->stated[i].a], b = new_of[topo->stated[i].b];

        topo->stated[i].a = a < b ? a : b;
        topo->stated[i].b = a < b ? b : a;
    }
    for (size_t i = 0; i < topo->gid_count; i++)
        topo->gids[i].port = new_of[topo->gids[i].port];
}

static nw_rc check_depth(const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->node_count; i++) {
        int depth = 0;

        for (int up = topo->nodes[i].parent; up >= 0; up = topo->nodes[up].parent)
            if (++depth > MAX_DEPTH)
                return nw_fail(NW_EUSAGE, "%s: more than %d devices above %s: no machine has",
                               topo->source, (int)MAX_DEPTH, topo->nodes[i].name);
    }
    return NW_OK;
}

nw_rc nw_merge_order(struct nw_topo *topo)
{
    struct ordering ordering = {.topo = topo};
    int *numbers = calloc(6 * topo->node_count, sizeof *numbers);

    ordering.nodes = calloc(topo->node_count, sizeof *ordering.nodes);
    if (numbers == NULL || ordering.nodes == NULL) {
        free(numbers);
        free(ordering.nodes);
        return nw_fail(NW_ENOMEM, "out of memory for %zu devices", topo->node_count);
    }
    ordering.sorted = numbers;
    ordering.place = numbers + topo->node_count;
    ordering.first_child = numbers + 2 * topo->node_count;
    ordering.next = numbers + 3 * topo->node_count;
    ordering.heap = numbers + 4 * topo->node_count;
    ordering.new_of = numbers + 5 * topo->node_count;
    arrange(&ordering);
    free(topo->nodes);
    topo->nodes = ordering.nodes;
    renumber(topo, ordering.new_of);
    free(numbers);
    return check_depth(topo);
}
