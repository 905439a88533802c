/* nvidia-smi -q: "Key : value" lines, indented below the sections they belong to, one section for
 * each GPU. Any selection (-d), any layout since 2015, with lines left out. */
#include <stdio.h>
#include <string.h>

#include "topo/read_smi.h"

enum { MAX_DEPTH = 8, MAX_NAME = 64 };

struct sections { /* the open sections, outermost first */
    struct {
        int indent;
        char name[MAX_NAME];
    } at[MAX_DEPTH];
    size_t count;
    int mig_indent; /* inside a MIG device, whose section is indented so far; -1: in none */
};

struct query {
    struct nw_smi *smi;
    struct nw_scan *text;
    struct sections sections;
    bool elided, again;
    bool flat;       /* the indentation was lost on the way */
    int gpu_indent;  /* of the "GPU …" line; -1: the line before was no such line */
    bool after_pair; /* flat: the last line was "key : value" */
    bool flat_mig;   /* flat: in a MIG device */
};

/* "GPU 00000000:19:00.0" */
static const char *gpu_of(const char *line)
{
    static const char word[] = "GPU ";
    const char *at = line + strspn(line, " \t");

    if (!nw_scan_starts(at, word))
        return NULL;
    at += sizeof word - 1;
    at += strspn(at, " ");
    return strlen(at) < 20 && nw_smi_is_bus_id(at) ? at : NULL;
}

bool nw_is_smi_query(const char *data, size_t length)
{
    struct nw_scan text;
    bool found = false;

    if (nw_scan_has(data, length, 0, "NVSMI LOG"))
        return true;
    if (!nw_scan_has(data, length, 0, "GPU ") || nw_scan_open(&text, data, length, "") != NW_OK)
        return false;
    while (!found && nw_scan_next(&text))
        found =
            gpu_of(nw_scan_trim(text.line)) != NULL || nw_scan_starts(text.line, "Attached GPUs ");
    nw_scan_close(&text);
    nw_clear_error();
    return found;
}

static void close_to(struct sections *sections, int indent)
{
    while (sections->count > 0 && sections->at[sections->count - 1].indent >= indent)
        sections->count--;
    if (indent <= sections->mig_indent)
        sections->mig_indent = -1;
}

static void open_section(struct sections *sections, int indent, const char *name)
{
    close_to(sections, indent);
    if (nw_scan_same(name, "MIG Device") && sections->mig_indent < 0)
        sections->mig_indent = indent;
    if (sections->count == MAX_DEPTH)
        return;
    sections->at[sections->count].indent = indent;
    snprintf(sections->at[sections->count].name, MAX_NAME, "%s", name);
    sections->count++;
}

static void path_of(const struct sections *sections, const char *key, char *path, size_t size)
{
    size_t used = 0;

    path[0] = '\0';
    for (size_t i = 0; i < sections->count && used < size; i++)
        used += (size_t)snprintf(path + used, size - used, "%s/", sections->at[i].name);
    if (used < size)
        snprintf(path + used, size - used, "%.*s", MAX_NAME, key);
}

static bool seen_before(const struct nw_topo *topo)
{
    const struct nw_topo_node *last = &topo->nodes[topo->node_count - 1];

    for (size_t i = 1; i + 1 < topo->node_count; i++)
        if (strcmp(topo->nodes[i].pci, last->pci) == 0)
            return true;
    return false;
}

static nw_rc begin_gpu(struct query *query, const char *bus_id, int indent)
{
    struct nw_topo *topo = query->smi->topo;

    query->sections = (struct sections){.mig_indent = -1};
    query->gpu_indent = indent;
    NW_TRY(nw_smi_begin_gpu(query->smi, bus_id));
    if (seen_before(topo)) { /* -l prints all again and again: the first round is taken */
        topo->node_count--;
        query->smi->gpu = 0;
        query->again = true;
    }
    return NW_OK;
}

/* Without indentation a section reaches to the next heading; headings in a row are nested. */
static int flat_indent(struct query *query, bool is_pair, const char *name)
{
    struct sections *sections = &query->sections;

    if (!is_pair && query->after_pair)
        sections->count = 0;
    if (!is_pair && nw_scan_same(name, "MIG Device"))
        query->flat_mig = true;
    if (nw_scan_same(name, "Accounting Mode"))
        query->flat_mig = false;
    query->after_pair = is_pair;
    return is_pair ? MAX_DEPTH : (int)sections->count;
}

static nw_rc take_line(struct query *query)
{
    char *line = query->text->line, path[MAX_DEPTH * (MAX_NAME + 1) + MAX_NAME];
    int indent = nw_scan_indent(line);
    struct sections *sections = &query->sections;
    struct nw_scan_pair pair;
    bool message, is_pair;
    const char *bus_id;

    if (nw_scan_blank(line))
        return NW_OK;
    if (nw_scan_elision(line)) {
        query->elided = true;
        return NW_OK;
    }
    NW_TRY(nw_smi_message(query->smi, line, &message));
    if (message)
        return NW_OK;
    line = nw_scan_trim(line);
    bus_id = gpu_of(line);
    if (bus_id != NULL)
        return begin_gpu(query, bus_id, indent);
    if (query->gpu_indent >= 0)
        query->flat = indent <= query->gpu_indent;
    query->gpu_indent = -1;
    is_pair = nw_scan_pair(line, &pair);
    if (query->flat)
        indent = flat_indent(query, is_pair, is_pair ? pair.key : line);
    if (!is_pair) {
        if (strlen(line) < MAX_NAME)
            open_section(sections, indent, line);
        return NW_OK;
    }
    close_to(sections, indent);
    if (sections->mig_indent >= 0 || query->flat_mig)
        return NW_OK;
    path_of(sections, pair.key, path, sizeof path);
    NW_TRY(nw_smi_value(query->smi, NW_SMI_TEXT, path, pair.value));
    /* "HW Slowdown : Not Active" has its own causes indented below it. */
    open_section(sections, indent, pair.key);
    return NW_OK;
}

static nw_rc take_lines(struct query *query)
{
    struct nw_topo *topo = query->smi->topo;

    while (!query->again && nw_scan_next(query->text))
        NW_TRY(take_line(query));
    NW_TRY(query->text->rc);
    if (nw_topo_count(topo, NW_NODE_GPU) == 0)
        return nw_fail(NW_EUSAGE,
                       "%s: no section of a GPU (\"GPU 00000000:19:00.0\") in this output of "
                       "nvidia-smi -q; give it whole",
                       query->smi->what);
    if (query->elided)
        return nw_smi_cut(query->smi, "lines were left out (\"[...]\")");
    return NW_OK;
}

/* Sections are in the order of the GPUs' numbers, so that the place is the number where none is
 * missing. */
static nw_rc number_gpus(struct nw_smi *smi)
{
    const double attached = nw_topo_number(smi->topo, 0, NW_FACT_GPUS_ATTACHED);
    int number = 0;

    if (attached != nw_topo_count(smi->topo, NW_NODE_GPU))
        return NW_OK;
    for (size_t i = 0; i < smi->topo->node_count; i++)
        if (smi->topo->nodes[i].kind == NW_NODE_GPU)
            NW_TRY(nw_topo_set_number(smi->topo, (int)i, NW_FACT_GPU_INDEX, number++, smi->source));
    return NW_OK;
}

nw_rc nw_read_smi_query(const char *data, size_t length, const char *what,
                        struct nw_topo **topo_out)
{
    struct nw_smi smi;
    struct nw_scan text;
    struct query query = {
        .smi = &smi, .text = &text, .sections = {.mig_indent = -1}, .gpu_indent = -1};
    nw_rc rc;

    NW_TRY(nw_scan_open(&text, data, length, what));
    rc = nw_smi_open(&smi, what, "nvidia-smi -q");
    if (rc == NW_OK) {
        rc = take_lines(&query);
        if (rc == NW_OK)
            rc = number_gpus(&smi);
        rc = nw_smi_close(&smi, rc, topo_out);
    }
    nw_scan_close(&text);
    return rc;
}
