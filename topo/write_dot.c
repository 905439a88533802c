/* Graphviz' language: graph { node statements, edge statements, clusters }. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/ceiling.h"
#include "topo/write.h"

struct drawing {
    const struct nw_topo *topo;
    FILE *stream;
    int *children; /* of each node: shown subtrees; 0: not shown */
};

/* In double quotes; a backslash would begin an escape. */
static void print_quoted(FILE *stream, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', stream);
        fputc(*text, stream);
    }
}

static bool is_device(const struct nw_topo_node *node)
{
    return node->kind == NW_NODE_GPU || node->kind == NW_NODE_NIC || node->kind == NW_NODE_DISK;
}

static bool is_place(const struct nw_topo_node *node)
{
    return node->kind == NW_NODE_PACKAGE || node->kind == NW_NODE_NUMA;
}

static void count_children(const struct drawing *drawing)
{
    const struct nw_topo *topo = drawing->topo;

    for (int i = (int)topo->node_count - 1; i > 0; i--) {
        if (is_device(&topo->nodes[i]) || is_place(&topo->nodes[i]))
            drawing->children[i]++;
        if (drawing->children[i] > 0)
            drawing->children[topo->nodes[i].parent]++;
    }
}

static void print_node(const struct drawing *drawing, int index)
{
    static const char *const shapes[NW_NODE_KIND_COUNT] = {[NW_NODE_GPU] = "box",
                                                           [NW_NODE_NIC] = "ellipse",
                                                           [NW_NODE_DISK] = "cylinder",
                                                           [NW_NODE_BRIDGE] = "diamond"};
    const struct nw_topo_node *node = &drawing->topo->nodes[index];
    FILE *stream = drawing->stream;

    fprintf(stream, "n%d [shape=%s, label=\"", index,
            shapes[node->kind] != NULL ? shapes[node->kind] : "box");
    print_quoted(stream, node->name);
    if (node->model[0] != '\0' && node->kind != NW_NODE_BRIDGE) {
        fputs("\\n", stream);
        print_quoted(stream, node->model);
    }
    if (node->pci[0] != '\0' && strcmp(node->pci, node->name) != 0) {
        fputs("\\n", stream);
        print_quoted(stream, node->pci);
    }
    if (node->rate_bits_per_s > 0)
        fprintf(stream, "\\n%.4g Gb/s", node->rate_bits_per_s / 1e9);
    fputs("\"];\n", stream);
}

static int place_of(const struct nw_topo *topo, int index)
{
    int at = topo->nodes[index].parent;

    while (at > 0 && !is_place(&topo->nodes[at]))
        at = topo->nodes[at].parent;
    return at;
}

static void print_members(const struct drawing *drawing, int place)
{
    const struct nw_topo *topo = drawing->topo;

    for (int i = 1; i < (int)topo->node_count; i++)
        if (drawing->children[i] > 0 && !is_place(&topo->nodes[i]) &&
            topo->nodes[i].kind != NW_NODE_MACHINE && place_of(topo, i) == place)
            print_node(drawing, i);
}

static void open_cluster(const struct drawing *drawing, int index)
{
    const struct nw_topo_node *node = &drawing->topo->nodes[index];

    fprintf(drawing->stream, "subgraph cluster_%d {\nlabel=\"", index);
    print_quoted(drawing->stream, node->name);
    if (node->model[0] != '\0') {
        fputs("\\n", drawing->stream);
        print_quoted(drawing->stream, node->model);
    }
    fprintf(drawing->stream, "\";\nn%d [shape=plaintext, label=\"", index);
    print_quoted(drawing->stream, node->name);
    fputs("\"];\n", drawing->stream);
    print_members(drawing, index);
}

/* NUMA nodes inside their packages. */
static void print_clusters(const struct drawing *drawing)
{
    const struct nw_topo *topo = drawing->topo;

    for (int i = 1; i < (int)topo->node_count; i++) {
        if (!is_place(&topo->nodes[i]) || place_of(topo, i) > 0)
            continue;
        open_cluster(drawing, i);
        for (int j = i + 1; j < (int)topo->node_count; j++)
            if (is_place(&topo->nodes[j]) && place_of(topo, j) > 0 && topo->nodes[j].parent == i) {
                open_cluster(drawing, j);
                fputs("}\n", drawing->stream);
            }
        fputs("}\n", drawing->stream);
    }
    print_members(drawing, 0);
}

static void print_tree_edges(const struct drawing *drawing)
{
    const struct nw_topo *topo = drawing->topo;
    char rate[32];

    for (int i = 1; i < (int)topo->node_count; i++) {
        const double link = nw_ceiling_pcie(topo, i);

        if (drawing->children[i] == 0 || is_place(&topo->nodes[i]) || topo->nodes[i].parent == 0)
            continue;
        fprintf(drawing->stream, "n%d -- n%d", topo->nodes[i].parent, i);
        if (isfinite(link) && topo->nodes[i].kind != NW_NODE_DISK)
            fprintf(drawing->stream, " [label=\"%s GB/s\"]", nw_format_gb_per_s(rate, link));
        fputs(";\n", drawing->stream);
    }
}

/* Where GPUs share switches: one node that stands for them, instead of an edge for every pair. */
static void print_switched(const struct drawing *drawing, bool *switched)
{
    const struct nw_topo *topo = drawing->topo;
    bool any = false;
    char rate[32];

    for (int i = 1; i < (int)topo->node_count; i++) {
        double sum;
        int lanes;

        if (topo->nodes[i].kind != NW_NODE_GPU)
            continue;
        sum = nw_ceiling_nvlink(topo, i, &lanes, &switched[i]);
        if (!switched[i])
            continue;
        if (!any)
            fputs("nvswitch [shape=octagon, label=\"NVSwitch\"];\n", drawing->stream);
        any = true;
        fprintf(drawing->stream, "n%d -- nvswitch [style=bold, label=\"%d NVLinks, %s GB/s\"];\n",
                i, lanes, isfinite(sum) ? nw_format_gb_per_s(rate, sum) : "?");
    }
}

static void print_links(const struct drawing *drawing, const bool *switched)
{
    const struct nw_topo *topo = drawing->topo;
    char rate[32];

    for (size_t i = 0; i < topo->link_count; i++) {
        const struct nw_topo_link *link = &topo->links[i];

        if ((link->kind == NW_LINK_NVLINK && switched[link->a] && switched[link->b]) ||
            link->a == 0 || link->b == 0 || drawing->children[link->a] == 0 ||
            drawing->children[link->b] == 0)
            continue;
        fprintf(drawing->stream, "n%d -- n%d [style=bold, label=\"", link->a, link->b);
        if (link->lane_count > 0)
            fprintf(drawing->stream, "%d x ", link->lane_count);
        fprintf(drawing->stream, "%s", nw_link_kind_title(link->kind));
        if (link->bytes_per_s > 0)
            fprintf(drawing->stream, ", %s GB/s", nw_format_gb_per_s(rate, link->bytes_per_s));
        fputs("\"];\n", drawing->stream);
    }
}

nw_rc nw_topo_write_dot(const struct nw_topo *topo, FILE *stream)
{
    struct drawing drawing = {.topo = topo, .stream = stream};
    bool *switched = calloc(topo->node_count, sizeof *switched);

    drawing.children = calloc(topo->node_count, sizeof *drawing.children);
    if (switched == NULL || drawing.children == NULL) {
        free(switched);
        free(drawing.children);
        return nw_fail(NW_ENOMEM, "out of memory for a picture of %zu nodes", topo->node_count);
    }
    count_children(&drawing);
    fputs("graph topology {\nrankdir=LR;\nlabel=\"", stream);
    print_quoted(stream, topo->host[0] != '\0' ? topo->host : "machine");
    fputs(nw_topo_number(topo, 0, NW_FACT_SIMULATED) > 0 ? " (SIMULATED)\";\n" : "\";\n", stream);
    print_clusters(&drawing);
    print_tree_edges(&drawing);
    print_switched(&drawing, switched);
    print_links(&drawing, switched);
    fputs("}\n", stream);
    free(switched);
    free(drawing.children);
    return NW_OK;
}
