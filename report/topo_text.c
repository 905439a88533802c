#include "report/topo_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"

enum {
    MODEL_MIN = 12,
    MODEL_MAX = 34,
    LINKED_GPUS = 16, /* more are said in words only */
    LINE_WIDTH = 100,
    FINDING_INDENT = 9, /* "warning  " */
};

/* --- the tree --- */

struct row {
    const struct nw_topo_node *node;
    int parent, depth; /* parent: its row; -1 */
    int twins;
    char name[80], link[72], detail[64];
};

struct tree {
    const struct nw_topo *topo;
    int *children; /* of each node: how many of its subtrees are shown */
    int *row_of;   /* of each node: its row */
    struct row *rows;
    int row_count;
};

/* A VGA console says nothing to somebody who rents GPUs. */
static bool is_shown(const struct nw_topo_node *node)
{
    return node->kind != NW_NODE_PCI || node->pci_class >> 8 != 0x03;
}

/* A bridge with one subtree below it is no fork: it is folded away. */
static bool is_folded(const struct tree *tree, int index)
{
    return tree->topo->nodes[index].kind == NW_NODE_BRIDGE && tree->children[index] <= 1;
}

/* The nearest node above that has a row. */
static int shown_parent(const struct tree *tree, int index)
{
    int parent = tree->topo->nodes[index].parent;

    while (parent > 0 && is_folded(tree, parent))
        parent = tree->topo->nodes[parent].parent;
    return parent;
}

static bool is_twin(const struct tree *tree, int a, int b)
{
    const struct nw_topo_node *x = &tree->topo->nodes[a], *y = &tree->topo->nodes[b];

    return x->kind == NW_NODE_PCI && y->kind == NW_NODE_PCI && strcmp(x->model, y->model) == 0 &&
           shown_parent(tree, a) == shown_parent(tree, b);
}

static int twins_of(const struct tree *tree, int index, bool *first_out)
{
    int count = 0;

    *first_out = true;
    for (int i = 0; i < (int)tree->topo->node_count; i++)
        if (is_twin(tree, index, i)) {
            *first_out &= count > 0 || i == index;
            count++;
        }
    return count;
}

static void write_detail(const struct nw_topo_node *node, char *text, size_t size)
{
    char bytes[32] = "";

    if (node->memory_bytes > 0)
        nw_format_bytes(bytes, node->memory_bytes);
    switch (node->kind) {
    case NW_NODE_PACKAGE:
        snprintf(text, size, "%d cores, %d threads", node->core_count, node->pu_count);
        break;
    case NW_NODE_NIC:
        snprintf(text, size, "%s%s", node->fabric, node->port_up == 0 ? ", port down" : "");
        if (node->rate_bits_per_s > 0)
            snprintf(text, size, "%s, %.4g Gb/s", node->fabric, node->rate_bits_per_s / 1e9);
        break;
    case NW_NODE_NUMA:
        snprintf(text, size, "%s", bytes[0] != '\0' ? bytes : "no memory");
        break;
    default:
        snprintf(text, size, "%s", bytes);
        break;
    }
}

/* "63.0"; "4.0 of 63.0" where the link runs below what both ends can, as an idle GPU's does. */
static void write_link(const struct nw_topo_node *node, char *text, size_t size)
{
    char now[32], best[32];

    nw_format_gb_per_s(now, node->link_bytes_per_s);
    nw_format_gb_per_s(best, node->link_max_bytes_per_s);
    if (node->link_max_bytes_per_s > node->link_bytes_per_s * 1.01)
        snprintf(text, size, "%s of %s", node->link_bytes_per_s > 0 ? now : "?", best);
    else
        snprintf(text, size, "%s", node->link_bytes_per_s > 0 ? now : "");
}

/* A port of the host bridge leads to one slot; a fork further down is a switch. */
static const char *bridge_title(const struct nw_topo *topo, const struct nw_topo_node *node)
{
    const struct nw_topo_node *above = &topo->nodes[node->parent];

    if (node->pci[0] == '\0')
        return "PCIe root";
    return above->kind == NW_NODE_BRIDGE && above->pci[0] != '\0' ? "PCIe switch" : "PCIe port";
}

static void write_name(const struct nw_topo *topo, const struct nw_topo_node *node, int twins,
                       char *text, size_t size)
{
    switch (node->kind) {
    case NW_NODE_BRIDGE:
        snprintf(text, size, "%s", bridge_title(topo, node));
        break;
    case NW_NODE_PCI:
        snprintf(text, size, twins > 1 ? "%d devices" : "device", twins);
        break;
    default:
        snprintf(text, size, "%s", node->name);
        break;
    }
}

/* The model, cut to `width` columns at a character's start. */
static const char *cut_model(const struct nw_topo_node *node, int width, char text[MODEL_MAX + 8])
{
    size_t length = strlen(node->model);

    if (node->kind == NW_NODE_BRIDGE)
        return "";
    if (length <= (size_t)width)
        return node->model;
    length = (size_t)width - 1;
    while (length > 0 && ((unsigned char)node->model[length] & 0xc0) == 0x80)
        length--;
    snprintf(text, MODEL_MAX + 8, "%.*s…", (int)length, node->model);
    return text;
}

static void add_row(struct tree *tree, int index)
{
    const struct nw_topo_node *node = &tree->topo->nodes[index];
    const int parent = shown_parent(tree, index);
    struct row *row = &tree->rows[tree->row_count];
    bool first;
    const int twins = twins_of(tree, index, &first);

    if (twins > 1 && !first)
        return;
    *row = (struct row){.node = node, .twins = twins, .parent = -1};
    if (parent > 0) {
        row->parent = tree->row_of[parent];
        row->depth = tree->rows[row->parent].depth + 1;
    }
    write_name(tree->topo, node, twins, row->name, sizeof row->name);
    write_link(node, row->link, sizeof row->link);
    write_detail(node, row->detail, sizeof row->detail);
    tree->row_of[index] = tree->row_count++;
}

/* Depth first, in the order of the PCI addresses below each node. */
static void add_subtree(struct tree *tree, int index)
{
    if (index > 0 && !is_folded(tree, index))
        add_row(tree, index);
    for (int i = index + 1; i < (int)tree->topo->node_count; i++)
        if (tree->topo->nodes[i].parent == index && tree->children[i] > 0)
            add_subtree(tree, i);
}

/* How many shown subtrees each node has; a node that is shown itself counts one at least. */
static void count_children(struct tree *tree)
{
    for (int i = (int)tree->topo->node_count - 1; i > 0; i--) {
        const struct nw_topo_node *node = &tree->topo->nodes[i];

        if (node->kind != NW_NODE_BRIDGE && is_shown(node) && tree->children[i] == 0)
            tree->children[i] = 1;
        if (tree->children[i] > 0)
            tree->children[node->parent]++;
    }
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* What the other columns leave of the line to the model. */
static int model_width(const struct tree *tree)
{
    int name = 6, link = 9, detail = 0, width;

    for (int i = 0; i < tree->row_count; i++) {
        const struct row *row = &tree->rows[i];

        name = larger(name, 2 * row->depth + (int)strlen(row->name));
        link = larger(link, (int)strlen(row->link));
        detail = larger(detail, (int)strlen(row->detail));
    }
    width = LINE_WIDTH - name - link - detail - (int)strlen("0000:00:00.0") - 5;
    return width < MODEL_MIN ? MODEL_MIN : width > MODEL_MAX ? MODEL_MAX : width;
}

static nw_rc print_rows(FILE *stream, const struct tree *tree)
{
    static const struct nw_column columns[] = {{"device", NW_LEFT},
                                               {"model", NW_LEFT},
                                               {"PCI address", NW_LEFT},
                                               {"PCIe GB/s", NW_RIGHT},
                                               {"", NW_LEFT}};
    const int width = model_width(tree);
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof *columns, &table));
    for (int i = 0; i < tree->row_count; i++) {
        const struct row *row = &tree->rows[i];
        char model[MODEL_MAX + 8];

        nw_table_tree_row(table, row->parent,
                          (const char *[]){row->name, cut_model(row->node, width, model),
                                           row->twins > 1 ? "" : row->node->pci, row->link,
                                           row->detail});
    }
    return nw_table_print(table, stream);
}

static nw_rc print_tree(FILE *stream, const struct nw_topo *topo)
{
    struct tree tree = {.topo = topo,
                        .children = calloc(topo->node_count, sizeof *tree.children),
                        .row_of = calloc(topo->node_count, sizeof *tree.row_of),
                        .rows = calloc(topo->node_count, sizeof *tree.rows)};
    nw_rc rc = NW_OK;

    if (tree.children == NULL || tree.row_of == NULL || tree.rows == NULL) {
        rc = nw_fail(NW_ENOMEM, "out of memory for the topology's table");
    } else {
        count_children(&tree);
        add_subtree(&tree, 0);
        rc = print_rows(stream, &tree);
    }
    free(tree.children);
    free(tree.row_of);
    free(tree.rows);
    return rc;
}

/* --- summary and links --- */

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

/* Adds text to a line, on a new line where it would not fit. */
static void print_word(FILE *stream, const char *word, int indent, int *column)
{
    const int length = (int)strlen(word);

    if (*column > indent && *column + 1 + length > LINE_WIDTH) {
        fprintf(stream, "\n%*s", indent, "");
        *column = indent;
    } else if (*column > indent) {
        fputc(' ', stream);
        ++*column;
    }
    fputs(word, stream);
    *column += length;
}

/* "8 GPUs (8 × NVIDIA H200), 8 NICs, 1 disk"; models in order of appearance. */
static void print_devices(FILE *stream, const struct nw_topo *topo)
{
    const int gpus = nw_topo_count(topo, NW_NODE_GPU), nics = nw_topo_count(topo, NW_NODE_NIC),
              disks = nw_topo_count(topo, NW_NODE_DISK);
    char word[96];
    int column = 0, told = 0;

    snprintf(word, sizeof word, "%d GPU%s%s", gpus, plural(gpus), gpus > 0 ? "" : ",");
    print_word(stream, word, 0, &column);
    for (int i = 0; i < gpus; i++) {
        const char *model = nw_topo_nth(topo, NW_NODE_GPU, i)->model;
        int same = 0, before = 0;

        for (int other = 0; other < gpus; other++)
            if (strcmp(nw_topo_nth(topo, NW_NODE_GPU, other)->model, model) == 0) {
                before += other < i;
                same++;
            }
        if (before > 0)
            continue;
        told += same;
        snprintf(word, sizeof word, "%s%d × %.60s%s", told == same ? "(" : "", same,
                 model[0] != '\0' ? model : "unknown model", told == gpus ? ")," : ",");
        print_word(stream, word, 0, &column);
    }
    snprintf(word, sizeof word, "%d NIC%s, %d disk%s\n\n", nics, plural(nics), disks,
             plural(disks));
    print_word(stream, word, 0, &column);
}

static void print_summary(FILE *stream, const struct nw_topo *topo)
{
    const struct nw_topo_node *machine = &topo->nodes[0];
    char bytes[32];

    fprintf(stream, "%.60s%s%.60s%s%.60s\n", topo->host[0] != '\0' ? topo->host : "unnamed machine",
            machine->model[0] != '\0' ? ", " : "", machine->model, topo->os[0] != '\0' ? ", " : "",
            topo->os);
    fprintf(stream, "source: %.90s%s\n", topo->source,
            (topo->sources & NW_SOURCE_JSON) != 0 ? " (saved)" : "");
    fprintf(stream, "%d package%s, %d core%s, %d hardware thread%s, %d NUMA node%s, %s of memory\n",
            topo->package_count, plural(topo->package_count), topo->core_count,
            plural(topo->core_count), topo->pu_count, plural(topo->pu_count), topo->numa_count,
            plural(topo->numa_count),
            topo->memory_bytes > 0 ? nw_format_bytes(bytes, topo->memory_bytes) : "unknown size");
    if ((topo->gaps & NW_TOPO_NO_IO) != 0) {
        fputs("GPUs, NICs, disks: unknown, the source does not tell\n\n", stream);
        return;
    }
    print_devices(stream, topo);
}

/* The GPUs that links of this kind join, in order; the first LINKED_GPUS of them. */
static nw_rc linked_gpus(const struct nw_topo *topo, nw_link_kind kind, int gpus[LINKED_GPUS],
                         int *count_out)
{
    bool *linked = calloc(topo->node_count, sizeof *linked);
    int count = 0;

    if (linked == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the links between GPUs");
    for (size_t i = 0; i < topo->link_count; i++)
        if (topo->links[i].kind == kind)
            linked[topo->links[i].a] = linked[topo->links[i].b] = true;
    for (int i = 0; i < (int)topo->node_count && count < LINKED_GPUS; i++)
        if (linked[i] && topo->nodes[i].kind == NW_NODE_GPU)
            gpus[count++] = i;
    free(linked);
    *count_out = count;
    return NW_OK;
}

/* One link stands for all pairs when every pair has one of the same rate. */
static const struct nw_topo_link *uniform_link(const struct nw_topo *topo, nw_link_kind kind,
                                               const int *gpus, int count)
{
    const struct nw_topo_link *one = NULL;

    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++) {
            const struct nw_topo_link *link = nw_topo_link_between(topo, kind, gpus[i], gpus[j]);

            if (link == NULL || (one != NULL && link->bytes_per_s != one->bytes_per_s))
                return NULL;
            one = link;
        }
    return one;
}

static nw_rc print_link_matrix(FILE *stream, const struct nw_topo *topo, nw_link_kind kind,
                               const int *gpus, int count)
{
    struct nw_column columns[LINKED_GPUS + 1] = {{"GB/s one way", NW_LEFT}};
    char cells[LINKED_GPUS][32];
    const char *row[LINKED_GPUS + 1];
    struct nw_table *table;

    for (int i = 0; i < count; i++)
        columns[i + 1] = (struct nw_column){topo->nodes[gpus[i]].name, NW_RIGHT};
    NW_TRY(nw_table_open(columns, (size_t)count + 1, &table));
    for (int i = 0; i < count; i++) {
        row[0] = topo->nodes[gpus[i]].name;
        for (int j = 0; j < count; j++) {
            const struct nw_topo_link *link = nw_topo_link_between(topo, kind, gpus[i], gpus[j]);

            row[j + 1] = link != NULL ? nw_format_gb_per_s(cells[j], link->bytes_per_s) : "–";
        }
        nw_table_row(table, row);
    }
    return nw_table_print(table, stream);
}

static nw_rc print_links(FILE *stream, const struct nw_topo *topo, nw_link_kind kind)
{
    const struct nw_topo_link *link;
    int gpus[LINKED_GPUS], count = 0;
    char rate[32];

    NW_TRY(linked_gpus(topo, kind, gpus, &count));
    if (count < 2)
        return NW_OK;
    link = uniform_link(topo, kind, gpus, count);
    if (link == NULL) {
        fprintf(stream, "\n%s between GPUs:\n", nw_link_kind_title(kind));
        return print_link_matrix(stream, topo, kind, gpus, count);
    }
    fprintf(stream, "\n%s: every pair of %s to %s has %s GB/s one way", nw_link_kind_title(kind),
            topo->nodes[gpus[0]].name, topo->nodes[gpus[count - 1]].name,
            nw_format_gb_per_s(rate, link->bytes_per_s));
    if (link->lane_count > 0)
        fprintf(stream, " (%d links)", link->lane_count);
    fputs("\n", stream);
    return NW_OK;
}

static void print_affinity(FILE *stream, const struct nw_topo *topo)
{
    const int total = nw_topo_count(topo, NW_NODE_GPU);
    int column = 2, done = 0;

    for (int i = 0; i < (int)topo->node_count; i++) {
        nw_path path = NW_PATH_MACHINE;
        const int nic =
            topo->nodes[i].kind == NW_NODE_GPU ? nw_topo_nearest(topo, i, NW_NODE_NIC, &path) : -1;
        char word[160];

        if (nic < 0)
            continue;
        if (done++ == 0)
            fputs("\nnearest NIC of each GPU, and what joins them:\n  ", stream);
        snprintf(word, sizeof word, "%s: %s (%s)%s", topo->nodes[i].name, topo->nodes[nic].name,
                 nw_path_key(path), done < total ? "," : "");
        print_word(stream, word, 2, &column);
    }
    if (done > 0)
        fputs("\n", stream);
}

/* "warning: text" and the remedy below it, broken at blanks. */
static void print_sentence(FILE *stream, const char *start, const char *text)
{
    const char *rest = text;
    int column = (int)strlen(start);

    fputs(start, stream);
    while (*rest != '\0') {
        char word[LINE_WIDTH];
        const size_t length = strcspn(rest, " ");

        snprintf(word, sizeof word, "%.*s", (int)length, rest);
        print_word(stream, word, FINDING_INDENT, &column);
        rest += length + (rest[length] == ' ');
    }
    fputs("\n", stream);
}

static void print_findings(FILE *stream, const struct nw_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        const struct nw_finding *finding = &findings->items[i];
        char start[FINDING_INDENT + 1];

        if (i == 0)
            fputs("\n", stream);
        snprintf(start, sizeof start, "%-*s", FINDING_INDENT, nw_severity_name(finding->severity));
        print_sentence(stream, start, finding->text);
        if (finding->remedy != NULL) {
            snprintf(start, sizeof start, "%*s", FINDING_INDENT, "do: ");
            print_sentence(stream, start, finding->remedy);
        }
    }
}

nw_rc nw_report_topo(FILE *stream, const struct nw_topo *topo)
{
    print_summary(stream, topo);
    NW_TRY(print_tree(stream, topo));
    NW_TRY(print_links(stream, topo, NW_LINK_NVLINK));
    NW_TRY(print_links(stream, topo, NW_LINK_XGMI));
    print_affinity(stream, topo);
    print_findings(stream, &topo->findings);
    if (ferror(stream))
        return nw_fail(NW_EIO, "the topology could not be written");
    return NW_OK;
}
