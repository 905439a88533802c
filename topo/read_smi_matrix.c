/* The matrix of nvidia-smi topo into nodes, classes of pairs and links. */
#include "topo/read_smi_matrix.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/read.h"

enum {
    NAME_CUT = 7,       /* characters that old drivers leave of a NIC's name */
    MAX_LINKS_OF = 18,  /* NVLinks that a GPU has at most (Hopper, Blackwell) */
    MAX_ASYMMETRIC = 8, /* findings of that kind; the others are counted */
};

size_t nw_smi_cell_of(const char *text, struct nw_smi_cell *cell_out)
{
    static const struct {
        const char *word;
        nw_smi_cell_kind kind;
        nw_class class_id;
    } words[] = {
        {"NODE", NW_CELL_CLASS, NW_CLASS_NODE},
        {"SYS", NW_CELL_CLASS, NW_CLASS_SYS},
        {"SOC", NW_CELL_CLASS, NW_CLASS_SYS}, /* before driver 384 */
        {"PHB", NW_CELL_CLASS, NW_CLASS_PHB},
        {"PXB", NW_CELL_CLASS, NW_CLASS_PXB},
        {"PIX", NW_CELL_CLASS, NW_CLASS_PIX},
        {"X", NW_CELL_SELF, NW_CLASS_SELF},
        {"OK", NW_CELL_YES, 0},
        {"CNS", NW_CELL_NO, 0},
        {"GNS", NW_CELL_NO, 0},
        {"TNS", NW_CELL_NO, 0},
        {"NS", NW_CELL_NO, 0},
        {"DR", NW_CELL_NO, 0},
        {"U", NW_CELL_UNKNOWN, 0},
    };
    size_t digits;
    char number[8];
    uint64_t nvlinks;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (nw_scan_starts(text, words[i].word)) {
            *cell_out = (struct nw_smi_cell){.kind = words[i].kind, .class_id = words[i].class_id};
            return strlen(words[i].word);
        }
    digits = nw_scan_starts(text, "NV") ? strspn(text + 2, "0123456789") : 0;
    if (digits == 0 || digits >= sizeof number)
        return 0;
    memcpy(number, text + 2, digits);
    number[digits] = '\0';
    if (nw_parse_u64(number, 1, 1000, &nvlinks) != NW_OK) {
        nw_clear_error();
        return 0;
    }
    *cell_out = (struct nw_smi_cell){
        .kind = NW_CELL_CLASS, .class_id = NW_CLASS_NV, .nvlinks = (int)nvlinks};
    return digits + 2;
}

nw_rc nw_smi_matrix_open(struct nw_smi_matrix *matrix)
{
    for (size_t i = 0; i < matrix->count; i++) {
        struct nw_smi_column *column = &matrix->columns[i];

        if (column->number >= 0) {
            NW_TRY(nw_smi_begin_numbered(matrix->smi, column->number));
            column->node = matrix->smi->gpu;
            NW_TRY(nw_smi_end_gpu(matrix->smi));
        } else {
            NW_TRY(nw_topo_add_node(matrix->smi->topo, NW_NODE_NIC, 0, &column->node));
        }
    }
    return NW_OK;
}

void nw_smi_matrix_free(struct nw_smi_matrix *matrix)
{
    free(matrix->columns);
    free(matrix->cells);
    matrix->columns = NULL;
    matrix->cells = NULL;
}

/* --- what stands behind the cells --- */

struct affinity {
    char cpu[160], numa[96], memory[24];
};

/* As many values as headings: no place is empty. */
static bool is_complete(const struct nw_smi_matrix *matrix, const char *rest)
{
    size_t count = 0;

    for (; !nw_scan_blank(rest); count++) {
        rest += strspn(rest, " \t");
        rest += strcspn(rest, " \t");
    }
    return count == (size_t)matrix->has_cpu + matrix->has_numa + matrix->has_memory;
}

/* With tabs, a missing value leaves its place empty. */
static void split_tabs(const struct nw_smi_matrix *matrix, const char *rest,
                       struct affinity *affinity)
{
    char cells[4][160] = {"", "", "", ""};
    int count = 0;

    rest += *rest == ' '; /* of " X " */
    rest += *rest == '\t';
    for (; count < 4 && *rest != '\0'; count++) {
        const size_t length = strcspn(rest, "\t");

        snprintf(cells[count], sizeof cells[count], "%.*s", (int)length, rest);
        memmove(cells[count], nw_scan_trim(cells[count]), strlen(nw_scan_trim(cells[count])) + 1);
        rest += length + (rest[length] == '\t');
    }
    count = 0;
    if (matrix->has_cpu)
        snprintf(affinity->cpu, sizeof affinity->cpu, "%.159s", cells[count++]);
    if (matrix->has_numa)
        snprintf(affinity->numa, sizeof affinity->numa, "%.95s", cells[count++]);
    if (matrix->has_memory) /* behind two tabs in all drivers seen, one would be regular */
        snprintf(affinity->memory, sizeof affinity->memory, "%.23s",
                 cells[count][0] != '\0' || count == 3 ? cells[count] : cells[count + 1]);
}

/* With blanks, all values in order, or each below its heading. */
static void split_blanks(const struct nw_smi_matrix *matrix, const char *rest, int at,
                         struct affinity *affinity)
{
    const int heading_at[] = {matrix->cpu_at, matrix->numa_at, matrix->memory_at};
    const bool has[] = {matrix->has_cpu, matrix->has_numa, matrix->has_memory};
    char *const fields[] = {affinity->cpu, affinity->numa, affinity->memory};
    const size_t sizes[] = {sizeof affinity->cpu, sizeof affinity->numa, sizeof affinity->memory};
    char copy[400], *words[4];
    size_t word_count, wanted = 0, next = 0;

    snprintf(copy, sizeof copy, "%s", rest);
    word_count = nw_scan_words(copy, words, 4);
    for (int i = 0; i < 3; i++)
        wanted += has[i];
    for (size_t w = 0; w < word_count && w < 3; w++) {
        const int word_at = at + (int)(words[w] - copy);
        int best = -1;

        for (int i = (int)next; i < 3; i++)
            if (has[i] &&
                (best < 0 || (word_count < wanted &&
                              abs(heading_at[i] - word_at) < abs(heading_at[best] - word_at))))
                best = i;
        if (best < 0)
            return;
        snprintf(fields[best], sizes[best], "%s", words[w]);
        next = (size_t)best + 1;
    }
}

/* People who paste a matrix add "NUMA 0" themselves. */
static void split_handmade(const char *rest, struct affinity *affinity)
{
    const char *numa = strstr(rest, "NUMA ");

    if (numa != NULL)
        snprintf(affinity->numa, sizeof affinity->numa, "%.*s", (int)strspn(numa + 5, "0123456789"),
                 numa + 5);
}

nw_rc nw_smi_matrix_affinity(struct nw_smi_matrix *matrix, size_t row, const char *rest, int at)
{
    struct nw_topo *topo = matrix->smi->topo;
    const int node = matrix->columns[row].node;
    const char *source = matrix->smi->source;
    struct affinity affinity = {"", "", ""};
    int numa_first = -1, numa_count, memory = -1;

    if (!matrix->has_cpu && !matrix->has_numa)
        split_handmade(rest, &affinity);
    else if (strchr(rest, '\t') != NULL && !is_complete(matrix, rest))
        split_tabs(matrix, rest, &affinity);
    else
        split_blanks(matrix, rest, at, &affinity);
    if (nw_scan_list(affinity.cpu, NULL) > 0)
        NW_TRY(nw_topo_set_text(topo, node, NW_FACT_CPU_AFFINITY, affinity.cpu, source));
    if (nw_scan_list(affinity.memory, &memory) == 1)
        NW_TRY(nw_topo_set_number(topo, node, NW_FACT_GPU_NUMA_ID, memory, source));
    else
        memory = -1;
    numa_count = nw_scan_list(affinity.numa, &numa_first);
    /* Several nodes are no place; but where GPUs' memories are nodes themselves (Grace), the list
     * is the CPU's node, the lowest, and theirs. */
    if (numa_count == 1 || (numa_count > 1 && memory >= 0))
        topo->nodes[node].numa = numa_first;
    return NW_OK;
}

/* --- names --- */

static bool is_twice(const struct nw_smi_matrix *matrix, size_t column)
{
    for (size_t i = 0; i < matrix->count; i++)
        if (i != column && strcmp(matrix->columns[i].label, matrix->columns[column].label) == 0)
            return true;
    return false;
}

/* What udev's and the drivers' names tell for sure. */
static const char *fabric_of(const char *name)
{
    static const char *const prefixes[][2] = {
        {"mlx5_an", "ethernet"}, /* Azure: accelerated networking */
        {"mlx5_ib", "infiniband"}, {"ibp", "infiniband"}, {"ibs", "infiniband"},
        {"roce", "roce"},          {"bnxt_re", "roce"},   {"rdmap", "efa"},
        {"efa_", "efa"},           {"hfi1_", "omnipath"},
    };

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (nw_scan_starts(name, prefixes[i][0]))
            return prefixes[i][1];
    return "";
}

static const char *cut_name(const struct nw_smi_matrix *matrix)
{
    for (size_t i = 0; i < matrix->count; i++)
        if (matrix->columns[i].number < 0 && is_twice(matrix, i))
            return matrix->columns[i].label;
    return "";
}

static nw_rc name_nics(struct nw_smi_matrix *matrix)
{
    struct nw_topo *topo = matrix->smi->topo;
    bool twice = false;
    int place = 0;

    for (size_t i = 0; i < matrix->count; i++)
        twice |= matrix->columns[i].number < 0 && is_twice(matrix, i);
    for (size_t i = 0; i < matrix->count; i++) {
        const struct nw_smi_column *column = &matrix->columns[i];
        struct nw_topo_node *node = &topo->nodes[column->node];
        const bool numbered = nw_scan_starts(column->label, "NIC");
        const bool cut = twice && (is_twice(matrix, i) || strlen(column->label) == NAME_CUT);

        if (column->number >= 0)
            continue;
        if (column->real[0] != '\0')
            snprintf(node->name, sizeof node->name, "%s", column->real);
        else if (cut || numbered)
            snprintf(node->name, sizeof node->name, "nic%d", place);
        else
            snprintf(node->name, sizeof node->name, "%s", column->label);
        if (!numbered && !cut)
            snprintf(node->os_names, sizeof node->os_names, "%s", column->label);
        snprintf(node->fabric, sizeof node->fabric, "%s",
                 fabric_of(column->real[0] != '\0' ? column->real : column->label));
        place++;
    }
    if (!twice)
        return NW_OK;
    return nw_findings_add(&topo->findings, NW_FINDING_INFO, "nic-names-cut", matrix->smi->what,
                           "an ibv_devinfo of the machine has the names",
                           "the driver cut the NICs' names to equal ones (\"%s\"): they are called "
                           "nic0, nic1, … by their place",
                           cut_name(matrix));
}

/* --- pairs --- */

static const struct nw_smi_cell *cell_at(const struct nw_smi_matrix *matrix, size_t a, size_t b)
{
    return &matrix->cells[a * matrix->count + b];
}

static const char *cell_text(const struct nw_smi_cell *cell, char text[16])
{
    snprintf(text, 16, "%s", cell->kind == NW_CELL_CLASS ? nw_class_name(cell->class_id) : "?");
    if (cell->nvlinks > 0)
        snprintf(text, 16, "NV%d", cell->nvlinks);
    return text;
}

static nw_rc add_asymmetric(struct nw_smi_matrix *matrix, size_t a, size_t b)
{
    const struct nw_topo *topo = matrix->smi->topo;
    const char *names[] = {topo->nodes[matrix->columns[a].node].name,
                           topo->nodes[matrix->columns[b].node].name};
    char texts[2][16], where[140];

    snprintf(where, sizeof where, "%s %s", names[0], names[1]);
    return nw_findings_add(&matrix->smi->topo->findings, NW_FINDING_WARN, "matrix-asymmetric",
                           where, "give the output as nvidia-smi printed it",
                           "row %s says %s and row %s says %s of the same pair", names[0],
                           cell_text(cell_at(matrix, a, b), texts[0]), names[1],
                           cell_text(cell_at(matrix, b, a), texts[1]));
}

/* What both rows say of a pair; kind NONE: they disagree, or say nothing. */
static struct nw_smi_cell pair_of(const struct nw_smi_matrix *matrix, size_t a, size_t b,
                                  bool *differ_out)
{
    const struct nw_smi_cell *one = cell_at(matrix, a, b), *two = cell_at(matrix, b, a);
    struct nw_smi_cell both = *one;

    *differ_out = false;
    if (one->kind == NW_CELL_NONE || one->kind == NW_CELL_UNKNOWN)
        return *two;
    if (two->kind == NW_CELL_NONE || two->kind == NW_CELL_UNKNOWN)
        return *one;
    if (one->kind == two->kind && one->class_id == two->class_id && one->nvlinks == two->nvlinks)
        return both;
    *differ_out = true;
    both.nvlinks = 0;
    if (one->class_id != NW_CLASS_NV || two->class_id != NW_CLASS_NV)
        both.kind = NW_CELL_NONE;
    return both;
}

static nw_rc state_pair(struct nw_smi_matrix *matrix, size_t a, size_t b,
                        const struct nw_smi_cell *pair)
{
    struct nw_topo *topo = matrix->smi->topo;
    const int nodes[] = {matrix->columns[a].node, matrix->columns[b].node};
    const bool is_nvlink = (pair->kind == NW_CELL_CLASS && pair->class_id == NW_CLASS_NV) ||
                           (pair->kind == NW_CELL_YES && matrix->capability == 'n');

    if (is_nvlink)
        NW_TRY(nw_topo_add_link(topo, &(struct nw_topo_link){.a = nodes[0],
                                                             .b = nodes[1],
                                                             .kind = NW_LINK_NVLINK,
                                                             .lane_count = pair->nvlinks}));
    if (pair->kind != NW_CELL_CLASS)
        return NW_OK;
    return nw_topo_state(topo, nodes[0], nodes[1], pair->class_id, pair->nvlinks);
}

static nw_rc state_pairs(struct nw_smi_matrix *matrix)
{
    int asymmetric = 0;

    for (size_t a = 0; a < matrix->count; a++)
        for (size_t b = a + 1; b < matrix->count; b++) {
            bool differ;
            const struct nw_smi_cell pair = pair_of(matrix, a, b, &differ);

            if (differ && asymmetric++ < MAX_ASYMMETRIC)
                NW_TRY(add_asymmetric(matrix, a, b));
            NW_TRY(state_pair(matrix, a, b, &pair));
        }
    if (asymmetric > MAX_ASYMMETRIC)
        return nw_findings_add(&matrix->smi->topo->findings, NW_FINDING_WARN, "matrix-asymmetric",
                               matrix->smi->what, "give the output as nvidia-smi printed it",
                               "the rows disagree on %d more pairs", asymmetric - MAX_ASYMMETRIC);
    return NW_OK;
}

/* --- what a GPU's row says of it --- */

/* NV12 to seven others would be 84 links: they all go to switches, and NV12 counts the GPU's own.
 */
static nw_rc judge_switch(struct nw_smi_matrix *matrix, size_t gpu)
{
    int sum = 0, most = 0;

    for (size_t i = 0; i < matrix->count; i++) {
        const int nvlinks = cell_at(matrix, gpu, i)->nvlinks;

        sum += nvlinks;
        most = nvlinks > most ? nvlinks : most;
    }
    if (sum <= MAX_LINKS_OF || most > MAX_LINKS_OF)
        return NW_OK;
    NW_TRY(nw_topo_set_number(matrix->smi->topo, matrix->columns[gpu].node, NW_FACT_NVLINK_SWITCH,
                              1, matrix->smi->source));
    return nw_topo_set_number(matrix->smi->topo, matrix->columns[gpu].node, NW_FACT_NVLINK_COUNT,
                              most, matrix->smi->source);
}

static nw_rc judge_peers(struct nw_smi_matrix *matrix, size_t gpu)
{
    int peers = 0;

    if (!matrix->is_p2p || matrix->capability == 'n' || matrix->capability == 'a' ||
        matrix->capability == 'p')
        return NW_OK;
    for (size_t i = 0; i < matrix->count; i++) {
        const nw_smi_cell_kind kind = cell_at(matrix, gpu, i)->kind;

        if (kind != NW_CELL_SELF && kind != NW_CELL_YES && kind != NW_CELL_NO)
            return NW_OK;
        peers += kind == NW_CELL_YES;
    }
    return nw_topo_set_number(matrix->smi->topo, matrix->columns[gpu].node, NW_FACT_PEERS, peers,
                              matrix->smi->source);
}

static nw_rc judge_grace(struct nw_smi_matrix *matrix)
{
    bool grace = false, far = false;

    for (size_t i = 0; i < matrix->count; i++)
        for (size_t j = 0; j < matrix->count && matrix->columns[i].number >= 0; j++) {
            const struct nw_smi_cell *cell = cell_at(matrix, i, j);

            grace |= nw_topo_fact(matrix->smi->topo, matrix->columns[i].node,
                                  NW_FACT_GPU_NUMA_ID) != NULL;
            if (matrix->columns[j].number < 0 && cell->kind == NW_CELL_CLASS)
                far = cell->class_id == NW_CLASS_SYS || far;
        }
    if (!grace || !far)
        return NW_OK;
    return nw_findings_add(
        &matrix->smi->topo->findings, NW_FINDING_INFO, "sys-on-grace", matrix->smi->what, NULL,
        "the GPUs' memories are NUMA nodes of their own (Grace): SYS between GPU "
        "and NIC does not mean another socket there");
}

/* --- what is missing --- */

static nw_rc judge_missing(struct nw_smi_matrix *matrix, bool gpus)
{
    char names[300] = "";
    size_t missing = 0;

    for (size_t i = 0; i < matrix->count; i++)
        if (!matrix->columns[i].seen && (matrix->columns[i].number >= 0) == gpus) {
            const size_t used = strlen(names);

            snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "",
                     matrix->smi->topo->nodes[matrix->columns[i].node].name);
            missing++;
        }
    if (missing == 0 || (!gpus && missing == 1 && matrix->count == matrix->row_count + 1))
        return NW_OK;
    if (gpus && missing == 1)
        return nw_smi_cut(matrix->smi, "the row of %s is missing: its affinity is not known",
                          names);
    if (gpus)
        return nw_smi_cut(matrix->smi,
                          "%zu rows of the matrix are missing (%s): how these are joined to each "
                          "other and their affinity are not known",
                          missing, names);
    return nw_findings_add(&matrix->smi->topo->findings, NW_FINDING_INFO, "file-cut",
                           matrix->smi->what, "give the whole output",
                           "the rows of the NICs are missing (%s): how these are joined to each "
                           "other is not known",
                           names);
}

static bool has_nvlink(const struct nw_smi_matrix *matrix)
{
    for (size_t i = 0; i < matrix->count * matrix->count; i++)
        if (matrix->cells[i].nvlinks > 0)
            return true;
    return false;
}

nw_rc nw_smi_matrix_close(struct nw_smi_matrix *matrix)
{
    /* A legend of -m always explains NV#. */
    if (matrix->has_legend && !matrix->legend_has_nvlink && !has_nvlink(matrix))
        matrix->pcie_only = true;
    for (size_t i = 0; i < matrix->count * matrix->count; i++)
        matrix->is_p2p |=
            matrix->cells[i].kind == NW_CELL_YES || matrix->cells[i].kind == NW_CELL_NO;
    if ((matrix->pcie_only || matrix->is_p2p) && !has_nvlink(matrix) && matrix->capability != 'n')
        matrix->smi->topo->gaps |= NW_TOPO_NO_NVLINK;
    NW_TRY(name_nics(matrix));
    NW_TRY(state_pairs(matrix));
    for (size_t i = 0; i < matrix->count; i++)
        if (matrix->columns[i].number >= 0) {
            NW_TRY(judge_switch(matrix, i));
            NW_TRY(judge_peers(matrix, i));
        }
    NW_TRY(judge_grace(matrix));
    NW_TRY(judge_missing(matrix, true));
    return judge_missing(matrix, false);
}
