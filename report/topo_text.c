#include "report/topo_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "report/topo_text_parts.h"

enum {
    MODEL_MIN = 12,
    MODEL_MAX = 34,
    MODELS_SHOWN = 7,
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

    /* All that a kernel's log shows of a device is its address. */
    if ((tree->topo->gaps & NW_TOPO_PARTIAL) != 0 && x->model[0] == '\0')
        return a == b;
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

static void write_detail(const struct nw_topo *topo, const struct nw_topo_node *node, char *text,
                         size_t size)
{
    char bytes[32] = "";

    if (node->memory_bytes > 0)
        nw_format_bytes(bytes, node->memory_bytes);
    switch (node->kind) {
    case NW_NODE_PACKAGE:
        if (node->pu_count > 0 || topo->pu_count > 0)
            nw_print_to(text, size, "%d cores, %d threads", node->core_count, node->pu_count);
        break;
    case NW_NODE_NIC:
        nw_print_to(text, size, "%s%s", node->fabric,
                    node->port_up != 0        ? ""
                    : node->fabric[0] != '\0' ? nw_tr(", port down")
                                              : nw_tr("port down"));
        if (node->rate_bits_per_s > 0)
            nw_print_to(text, size, "%s%s%.4g Gb/s", node->fabric,
                        node->fabric[0] != '\0' ? ", " : "", node->rate_bits_per_s / 1e9);
        break;
    case NW_NODE_NUMA:
        nw_print_to(text, size, "%s",
                    bytes[0] != '\0'         ? bytes
                    : topo->memory_bytes > 0 ? nw_tr("no memory")
                                             : "");
        break;
    default:
        nw_print_to(text, size, "%s", bytes);
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
        nw_print_to(text, size, "%s of %s", node->link_bytes_per_s > 0 ? now : "?", best);
    else
        nw_print_to(text, size, "%s", node->link_bytes_per_s > 0 ? now : "");
}

/* A port of the host bridge leads to one slot; a fork further down is a switch. */
static const char *bridge_title(const struct nw_topo *topo, const struct nw_topo_node *node)
{
    const struct nw_topo_node *above = &topo->nodes[node->parent];

    if (node->pci[0] == '\0')
        return "PCIe root";
    return above->kind == NW_NODE_BRIDGE && above->pci[0] != '\0' ? nw_tr("PCIe switch")
                                                                  : nw_tr("PCIe port");
}

static void write_name(const struct nw_topo *topo, const struct nw_topo_node *node, int twins,
                       char *text, size_t size)
{
    switch (node->kind) {
    case NW_NODE_BRIDGE:
        nw_print_to(text, size, "%s", bridge_title(topo, node));
        break;
    case NW_NODE_PCI:
        snprintf(text, size, twins > 1 ? nw_tr("%d devices") : nw_tr("device"), twins);
        break;
    default:
        nw_print_to(text, size, "%s", node->name);
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
    nw_print_to(text, MODEL_MAX + 8, "%.*s…", (int)length, node->model);
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
    write_detail(tree->topo, node, row->detail, sizeof row->detail);
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
    width = NW_TOPO_TEXT_WIDTH - name - link - detail - (int)strlen("0000:00:00.0") - 5;
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
        if (tree.row_count > 0) {
            fputs("\n", stream);
            rc = print_rows(stream, &tree);
        }
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

/* Nodes from `from` on that are GPUs of this model. */
static int count_model(const struct nw_topo *topo, int from, const char *model)
{
    int count = 0;

    for (int i = from; i < (int)topo->node_count; i++)
        count += topo->nodes[i].kind == NW_NODE_GPU && strcmp(topo->nodes[i].model, model) == 0;
    return count;
}

/* "(8 × NVIDIA H200)": models in order of appearance, six at most. */
static void print_models(FILE *stream, const struct nw_topo *topo, int gpus, int *column)
{
    char word[96];
    int told = 0, models = 0;

    for (int i = 0; i < (int)topo->node_count && told < gpus; i++) {
        const char *model = topo->nodes[i].model;
        const int same = topo->nodes[i].kind == NW_NODE_GPU ? count_model(topo, i, model) : 0;

        if (same == 0 || same < count_model(topo, 0, model))
            continue; /* no GPU, or told already */
        if (++models == MODELS_SHOWN) {
            nw_topo_text_word(stream, "and others)", 0, column);
            return;
        }
        nw_print_to(word, sizeof word, "%s%d × %.60s%s", told == 0 ? "(" : "", same,
                    model[0] != '\0' ? model : nw_tr("unknown model"),
                    told + same == gpus ? ")" : ",");
        told += same;
        nw_topo_text_word(stream, word, 0, column);
    }
}

/* "8 GPUs (8 × NVIDIA H200), 8 NICs, 1 disk". Of a source that shows one aspect nothing is said
 * to be absent: "8 GPUs (8 × NVIDIA H200); NICs, disks: not in this source". */
static void print_devices(FILE *stream, const struct nw_topo *topo)
{
    static const struct {
        nw_node_kind kind;
        const char *name, *counted;
    } kinds[] = {{NW_NODE_GPU, "GPUs", "%d GPU%s"},
                 {NW_NODE_NIC, "NICs", "%d NIC%s"},
                 {NW_NODE_DISK, "disks", "%d disk%s"}};
    char word[96], missing[64] = "";
    int column = 0;
    bool any = false;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const int count = nw_topo_count(topo, kinds[i].kind);
        const size_t used = strlen(missing);

        if (count == 0 && (topo->gaps & NW_TOPO_PARTIAL) != 0) {
            nw_print_to(missing + used, sizeof missing - used, "%s%s", used > 0 ? ", " : "",
                        kinds[i].name);
            continue;
        }
        if (any) {
            fputc(',', stream);
            column++;
        }
        any = true;
        nw_print_to(word, sizeof word, kinds[i].counted, count, plural(count));
        nw_topo_text_word(stream, word, 0, &column);
        if (kinds[i].kind == NW_NODE_GPU)
            print_models(stream, topo, count, &column);
    }
    if (missing[0] != '\0') {
        if (any) {
            fputc(';', stream);
            column++;
        }
        nw_print_to(word, sizeof word, "%s: not in this source", missing);
        nw_topo_text_word(stream, word, 0, &column);
    }
    fputc('\n', stream);
}

/* A source that shows the devices only counts no cores. */
static void print_size(FILE *stream, const struct nw_topo *topo)
{
    char bytes[32];

    if (topo->pu_count == 0 && (topo->gaps & NW_TOPO_PARTIAL) != 0) {
        if (topo->numa_count > 0)
            nw_print(stream, "%d NUMA node%s; cores and memory: not in this source\n",
                     topo->numa_count, plural(topo->numa_count));
        else
            fputs(nw_tr("cores, memory, NUMA nodes: not in this source\n"), stream);
        return;
    }
    nw_print(stream,
             "%d package%s, %d core%s, %d hardware thread%s, %d NUMA node%s, %s of memory\n",
             topo->package_count, plural(topo->package_count), topo->core_count,
             plural(topo->core_count), topo->pu_count, plural(topo->pu_count), topo->numa_count,
             plural(topo->numa_count),
             topo->memory_bytes > 0 ? nw_format_bytes(bytes, topo->memory_bytes)
                                    : nw_tr("unknown size"));
}

static void print_summary(FILE *stream, const struct nw_topo *topo)
{
    const struct nw_topo_node *machine = &topo->nodes[0];

    nw_print(stream, "%.60s%s%.60s%s%.60s\n",
             topo->host[0] != '\0' ? topo->host : nw_tr("unnamed machine"),
             machine->model[0] != '\0' ? ", " : "", machine->model, topo->os[0] != '\0' ? ", " : "",
             topo->os);
    nw_print(stream, "source: %.90s%s\n", topo->source,
             (topo->sources & NW_SOURCE_JSON) != 0 ? nw_tr(" (saved)") : "");
    if (nw_topo_number(topo, 0, NW_FACT_SIMULATED) > 0)
        fputs(nw_tr("SIMULATED: the GPUs are those of a pretended machine\n"), stream);
    print_size(stream, topo);
    if ((topo->gaps & NW_TOPO_NO_IO) != 0) {
        fputs(nw_tr("GPUs, NICs, disks: unknown, the source does not tell\n"), stream);
        return;
    }
    print_devices(stream, topo);
}

/* "warning: text" and the remedy below it, broken at blanks. */
static void print_sentence(FILE *stream, const char *start, const char *text)
{
    const char *rest = text;
    int column = (int)strlen(start);

    fputs(start, stream);
    while (*rest != '\0') {
        char word[NW_TOPO_TEXT_WIDTH];
        const size_t length = strcspn(rest, " ");

        nw_print_to(word, sizeof word, "%.*s", (int)length, rest);
        nw_topo_text_word(stream, word, FINDING_INDENT, &column);
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
    NW_TRY(nw_topo_text_links(stream, topo));
    NW_TRY(nw_topo_text_paths(stream, topo));
    NW_TRY(nw_topo_text_facts(stream, topo));
    print_findings(stream, &topo->findings);
    if (ferror(stream))
        return nw_fail(NW_EIO, "the topology could not be written");
    return NW_OK;
}
