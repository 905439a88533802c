#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "report/topo_paths.h"
#include "report/topo_text_parts.h"

enum {
    LINKED_GPUS = 16, /* of a matrix */
    PLACED_GPUS = 64, /* in the list of nearest NICs */
};

/* Adds text to a line, on a new line where it would not fit. */
void nw_topo_text_word(FILE *stream, const char *word, int indent, int *column)
{
    const int length = (int)strlen(word);

    if (*column > indent && *column + 1 + length > NW_TOPO_TEXT_WIDTH) {
        fprintf(stream, "\n%*s", indent, "");
        *column = indent;
    } else if (*column > indent) {
        fputc(' ', stream);
        ++*column;
    }
    fputs(word, stream);
    *column += length;
}

/* The GPUs that links of this kind join, in order; the caller frees. */
static nw_rc linked_gpus(const struct nw_topo *topo, nw_link_kind kind, int **gpus_out,
                         int *count_out)
{
    bool *linked = calloc(topo->node_count, sizeof *linked);
    int *gpus = calloc(topo->node_count, sizeof *gpus);
    int count = 0;

    if (linked == NULL || gpus == NULL) {
        free(linked);
        free(gpus);
        return nw_fail(NW_ENOMEM, "out of memory for the links between GPUs");
    }
    for (size_t i = 0; i < topo->link_count; i++)
        if (topo->links[i].kind == kind)
            linked[topo->links[i].a] = linked[topo->links[i].b] = true;
    for (int i = 0; i < (int)topo->node_count; i++)
        if (linked[i] && topo->nodes[i].kind == NW_NODE_GPU)
            gpus[count++] = i;
    free(linked);
    *gpus_out = gpus;
    *count_out = count;
    return NW_OK;
}

/* One link stands for all pairs when every pair has one of the same rate. */
static const struct nw_topo_link *uniform_link(const struct nw_topo *topo, nw_link_kind kind,
                                               const int *gpus, int count)
{
    const struct nw_topo_link *one = NULL;
    size_t links = 0;

    for (size_t i = 0; i < topo->link_count; i++)
        links += topo->links[i].kind == kind;
    if (links < (size_t)count * (size_t)(count - 1) / 2)
        return NULL;
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++) {
            const struct nw_topo_link *link = nw_topo_link_between(topo, kind, gpus[i], gpus[j]);

            if (link == NULL || (one != NULL && link->bytes_per_s != one->bytes_per_s))
                return NULL;
            one = link;
        }
    return one;
}

/* A matrix of topo -m has the links, not their rate. */
static const char *link_text(const struct nw_topo_link *link, char text[32])
{
    if (link->bytes_per_s > 0)
        return nw_format_gb_per_s(text, link->bytes_per_s);
    if (link->lane_count > 0)
        nw_print_to(text, 32, "%d link%s", link->lane_count, link->lane_count == 1 ? "" : "s");
    else
        snprintf(text, 32, "?");
    return text;
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

            row[j + 1] = link != NULL ? link_text(link, cells[j]) : "–";
        }
        nw_table_row(table, row);
    }
    return nw_table_print(table, stream);
}

static nw_rc print_links_of(FILE *stream, const struct nw_topo *topo, nw_link_kind kind,
                            const int *gpus, int count)
{
    const struct nw_topo_link *link;
    char rate[32];

    if (count < 2)
        return NW_OK;
    link = uniform_link(topo, kind, gpus, count);
    if (link == NULL) {
        nw_print(stream, "\n%s between GPUs:\n", nw_link_kind_title(kind));
        return print_link_matrix(stream, topo, kind, gpus,
                                 count < LINKED_GPUS ? count : LINKED_GPUS);
    }
    nw_print(stream, "\n%s: every pair of %s to %s has ", nw_link_kind_title(kind),
             topo->nodes[gpus[0]].name, topo->nodes[gpus[count - 1]].name);
    if (link->bytes_per_s > 0)
        nw_print(stream, "%s GB/s one way", nw_format_gb_per_s(rate, link->bytes_per_s));
    if (link->lane_count > 0)
        fprintf(stream,
                link->bytes_per_s > 0 ? nw_tr(" (%d links)") : nw_tr("%d links, rate unknown"),
                link->lane_count);
    else if (!(link->bytes_per_s > 0))
        fputs(nw_tr("links, number and rate unknown"), stream);
    fputs("\n", stream);
    return NW_OK;
}

static nw_rc print_links(FILE *stream, const struct nw_topo *topo, nw_link_kind kind)
{
    int *gpus = NULL, count = 0;
    nw_rc rc;

    NW_TRY(linked_gpus(topo, kind, &gpus, &count));
    rc = print_links_of(stream, topo, kind, gpus, count);
    free(gpus);
    return rc;
}

/* The NIC that a tool stated as nearest to the GPU; -1: none, or the tree is there to tell. */
static int stated_nic(const struct nw_topo *topo, int gpu, nw_class *class_out)
{
    int nearest = -1;

    if (topo->stated_count == 0 || (topo->gaps & NW_TOPO_PARTIAL) == 0)
        return -1;
    *class_out = NW_CLASS_COUNT;
    for (int i = 0; i < (int)topo->node_count; i++) {
        const nw_class class_id = topo->nodes[i].kind == NW_NODE_NIC
                                      ? nw_topo_class(topo, gpu, i, NULL)
                                      : NW_CLASS_UNKNOWN;

        if (class_id != NW_CLASS_UNKNOWN && class_id < *class_out) {
            *class_out = class_id;
            nearest = i;
        }
    }
    return nearest;
}

/* How the GPU's nearest NIC is joined to it, in the matrix's words; -1: the source has no NIC, or
 * does not say. A NIC across the machine ("SYS") is near no GPU. */
static int nearest_nic(const struct nw_topo *topo, int gpu, char cell[16])
{
    nw_class class_id;
    const int stated = stated_nic(topo, gpu, &class_id);
    const int nic = stated >= 0 ? stated : nw_topo_nearest(topo, gpu, NW_NODE_NIC, NULL);

    if (nic < 0 || strcmp(nw_report_path_cell(topo, gpu, nic, cell), "?") == 0)
        return -1;
    return nic;
}

static void print_affinity(FILE *stream, const struct nw_topo *topo)
{
    const int total = nw_topo_count(topo, NW_NODE_GPU);
    int column = 2, done = 0, far = 0;

    for (int i = 0; i < (int)topo->node_count && done < PLACED_GPUS; i++) {
        char word[160], cell[16];
        const int nic = topo->nodes[i].kind == NW_NODE_GPU ? nearest_nic(topo, i, cell) : -1;

        if (nic < 0)
            continue;
        if (strcmp(cell, nw_class_name(NW_CLASS_SYS)) == 0) {
            far++;
            continue;
        }
        if (done++ == 0)
            fputs(nw_tr("\nnearest NIC of each GPU, and what joins them:\n  "), stream);
        nw_print_to(word, sizeof word, "%s: %s (%s)%s", topo->nodes[i].name, topo->nodes[nic].name,
                    cell, done + far < total ? "," : "");
        nw_topo_text_word(stream, word, 2, &column);
    }
    if (done > 0)
        fputs("\n", stream);
    else if (far > 0 && far == total)
        fputs(nw_tr("\nno NIC near any GPU: each is across NUMA nodes\n"), stream);
}

nw_rc nw_topo_text_links(FILE *stream, const struct nw_topo *topo)
{
    NW_TRY(print_links(stream, topo, NW_LINK_NVLINK));
    NW_TRY(print_links(stream, topo, NW_LINK_XGMI));
    print_affinity(stream, topo);
    return NW_OK;
}
