/* What joins GPUs and NICs, in nvidia-smi's form, what each kind of path carries, and what
 * collectives may reach. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "report/topo_paths.h"
#include "report/topo_text_parts.h"
#include "topo/ceiling.h"

enum {
    GPUS_SHOWN = 16, /* of a matrix; more are told by class */
    BLOCK = 24,      /* columns side by side at most */
    GROUPS = 24,
};

/* --- the matrix --- */

const char *nw_report_path_cell(const struct nw_topo *topo, int a, int b, char text[16])
{
    int nvlinks = 0;
    const nw_class class_id = nw_topo_class(topo, a, b, &nvlinks);

    if (class_id == NW_CLASS_NV && nvlinks > 0)
        snprintf(text, 16, "NV%d", nvlinks);
    else if (class_id != NW_CLASS_NV && nw_topo_link_between(topo, NW_LINK_XGMI, a, b) != NULL)
        snprintf(text, 16, "XGMI");
    else if (class_id == NW_CLASS_UNKNOWN && nw_topo_path(topo, a, b) == NW_PATH_NUMA)
        snprintf(text, 16, "PHB?"); /* or NODE: one NUMA node, host bridges not told */
    else
        nw_print_to(text, 16, "%s", nw_class_name(class_id));
    return text;
}

nw_rc nw_report_path_devices(const struct nw_topo *topo, struct nw_path_devices *devices_out)
{
    struct nw_path_devices devices = {.nodes = calloc(topo->node_count, sizeof *devices.nodes)};

    if (devices.nodes == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the paths between devices");
    for (int i = 0; i < (int)topo->node_count && devices.count < NW_PATH_GPUS_MAX; i++)
        if (topo->nodes[i].kind == NW_NODE_GPU)
            devices.nodes[devices.count++] = i;
    devices.gpu_count = devices.count;
    for (int i = 0;
         i < (int)topo->node_count && devices.count < devices.gpu_count + NW_PATH_NICS_MAX; i++)
        if (topo->nodes[i].kind == NW_NODE_NIC && strcmp(topo->nodes[i].fabric, "ethernet") != 0 &&
            strcmp(topo->nodes[i].fabric, "wifi") != 0)
            devices.nodes[devices.count++] = i;
    *devices_out = devices;
    return NW_OK;
}

static const char *column_name(const struct nw_topo *topo, const struct nw_path_devices *devices,
                               int index, bool fit, char text[72])
{
    if (index < devices->gpu_count || fit)
        nw_print_to(text, 72, "%s", topo->nodes[devices->nodes[index]].name);
    else
        snprintf(text, 72, "NIC%d", index - devices->gpu_count);
    return text;
}

/* Columns from `from` on that fit beside each other. */
static int block_end(const struct nw_topo *topo, const struct nw_path_devices *devices, int from,
                     bool fit)
{
    int width = (int)strlen("gpu00"), end = from;
    char name[72], cell[16];

    for (; end < devices->count && end < from + BLOCK; end++) {
        size_t column = strlen(column_name(topo, devices, end, fit, name));

        for (int i = 0; i < devices->gpu_count; i++) {
            const size_t length =
                strlen(nw_report_path_cell(topo, devices->nodes[i], devices->nodes[end], cell));

            column = length > column ? length : column;
        }
        width += (int)column + 1;
        if (width > NW_TOPO_TEXT_WIDTH)
            break;
    }
    return end > from ? end : from + 1;
}

static nw_rc print_block(FILE *stream, const struct nw_topo *topo,
                         const struct nw_path_devices *devices, int from, int to, bool fit)
{
    struct nw_column columns[BLOCK + 1] = {{"", NW_LEFT}};
    char titles[BLOCK][72], cells[BLOCK][16], name[72];
    const char *row[BLOCK + 1];
    struct nw_table *table;

    for (int i = from; i < to; i++)
        columns[i - from + 1] =
            (struct nw_column){column_name(topo, devices, i, fit, titles[i - from]), NW_LEFT};
    NW_TRY(nw_table_open(columns, (size_t)(to - from) + 1, &table));
    for (int i = 0; i < devices->gpu_count; i++) {
        row[0] = column_name(topo, devices, i, fit, name);
        for (int j = from; j < to; j++)
            row[j - from + 1] =
                nw_report_path_cell(topo, devices->nodes[i], devices->nodes[j], cells[j - from]);
        nw_table_row(table, row);
    }
    return nw_table_print(table, stream);
}

static bool has_cell(const struct nw_topo *topo, const struct nw_path_devices *devices,
                     const char *wanted)
{
    char cell[16];

    for (int i = 0; i < devices->gpu_count; i++)
        for (int j = i + 1; j < devices->count; j++)
            if (strcmp(nw_report_path_cell(topo, devices->nodes[i], devices->nodes[j], cell),
                       wanted) == 0)
                return true;
    return false;
}

/* Does the source say of any pair how it is joined? */
static bool has_known_cell(const struct nw_topo *topo, const struct nw_path_devices *devices)
{
    char cell[16];

    for (int i = 0; i < devices->gpu_count; i++)
        for (int j = i + 1; j < devices->count; j++)
            if (strcmp(nw_report_path_cell(topo, devices->nodes[i], devices->nodes[j], cell),
                       "?") != 0)
                return true;
    return false;
}

static void print_legend(FILE *stream, const struct nw_topo *topo,
                         const struct nw_path_devices *devices, bool fit)
{
    int column = 0;
    char word[96];

    if (has_cell(topo, devices, "PHB?"))
        fputs(
            nw_tr("PHB?: on one NUMA node, PHB or NODE: this source does not show host bridges\n"),
            stream);
    if (has_cell(topo, devices, "?"))
        fputs(nw_tr("?: this source does not say\n"), stream);
    if (fit || devices->count == devices->gpu_count)
        return;
    for (int i = devices->gpu_count; i < devices->count; i++) {
        nw_print_to(word, sizeof word, "NIC%d: %s%s", i - devices->gpu_count,
                    topo->nodes[devices->nodes[i]].name, i + 1 < devices->count ? "," : "");
        nw_topo_text_word(stream, word, 0, &column);
    }
    fputs("\n", stream);
}

static nw_rc print_matrix(FILE *stream, const struct nw_topo *topo,
                          const struct nw_path_devices *devices)
{
    /* nvidia-smi numbers the NICs where their names take too much of the line. */
    const bool fit = block_end(topo, devices, 0, true) == devices->count;

    if (devices->gpu_count == 0 || devices->count < 2 || devices->gpu_count > GPUS_SHOWN ||
        !has_known_cell(topo, devices))
        return NW_OK;
    fputs(nw_tr("\nwhat joins them, as nvidia-smi topo -m names it:\n"), stream);
    for (int from = 0, to; from < devices->count; from = to) {
        to = block_end(topo, devices, from, fit);
        if (from > 0)
            fputs("\n", stream);
        NW_TRY(print_block(stream, topo, devices, from, to, fit));
    }
    print_legend(stream, topo, devices, fit);
    return NW_OK;
}

/* --- ceilings by kind of path --- */

struct group {
    char cell[16];
    bool nic;
    struct nw_ceiling ceiling;
    int count, a, b; /* a, b: its first pair */
};

/* The reading of a class is one, though devices differ in their names. */
static bool same_group(const struct group *group, const char *cell, bool nic,
                       const struct nw_ceiling *ceiling)
{
    const double x = group->ceiling.bytes_per_s, y = ceiling->bytes_per_s;

    return strcmp(group->cell, cell) == 0 && group->nic == nic &&
           isnan(group->ceiling.socket_bytes_per_s) == isnan(ceiling->socket_bytes_per_s) &&
           (x == y || (isnan(x) && isnan(y)));
}

static void add_pair(struct group *groups, int *count, const char *cell, bool nic, int a, int b,
                     const struct nw_ceiling *ceiling)
{
    for (int i = 0; i < *count; i++)
        if (same_group(&groups[i], cell, nic, ceiling)) {
            groups[i].count++;
            return;
        }
    if (*count == GROUPS)
        return;
    groups[*count] = (struct group){.nic = nic, .ceiling = *ceiling, .count = 1, .a = a, .b = b};
    nw_print_to(groups[(*count)++].cell, sizeof groups->cell, "%s", cell);
}

static const char *range(double low, double high, char text[72])
{
    char from[32], to[32];

    if (isnan(low) || isnan(high))
        return "–";
    nw_print_to(text, 72, "%s to %s", nw_format_gb_per_s(from, low), nw_format_gb_per_s(to, high));
    return text;
}

static int by_kind_and_rate(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    const double p = isnan(x->ceiling.bytes_per_s) ? 0 : x->ceiling.bytes_per_s;
    const double q = isnan(y->ceiling.bytes_per_s) ? 0 : y->ceiling.bytes_per_s;

    if (x->nic != y->nic)
        return x->nic ? 1 : -1;
    if (p != q)
        return p > q ? -1 : 1;
    return strcmp(x->cell, y->cell);
}

static nw_rc print_groups(FILE *stream, const struct nw_topo *topo, struct group *groups, int count)
{
    static const struct nw_column columns[] = {{"path", NW_LEFT},      {"pairs", NW_RIGHT},
                                               {"first", NW_LEFT},     {"ceiling", NW_RIGHT},
                                               {"expected", NW_RIGHT}, {"limited by", NW_WRAP}};
    struct nw_table *table;

    qsort(groups, (size_t)count, sizeof *groups, by_kind_and_rate);
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof *columns, &table));
    for (int i = 0; i < count; i++) {
        const struct group *group = &groups[i];
        char number[16], rate[32], expected[72], pair[140], by[280];

        snprintf(number, sizeof number, "%d", group->count);
        nw_print_to(pair, sizeof pair, "%.20s–%.20s", topo->nodes[group->a].name,
                    topo->nodes[group->b].name);
        nw_print_to(by, sizeof by, "%s%s%s", group->ceiling.by,
                    group->ceiling.by[0] != '\0' && group->ceiling.why[0] != '\0' ? "; " : "",
                    group->ceiling.why);
        nw_table_row(
            table, (const char *[]){group->cell, number, pair,
                                    isnan(group->ceiling.bytes_per_s)
                                        ? nw_tr("unknown")
                                        : nw_format_gb_per_s(rate, group->ceiling.bytes_per_s),
                                    range(group->ceiling.low, group->ceiling.high, expected), by});
    }
    return nw_table_print(table, stream);
}

static nw_rc print_ceilings(FILE *stream, const struct nw_topo *topo,
                            const struct nw_path_devices *devices)
{
    struct group *groups;
    int count = 0;
    nw_rc rc;

    if (devices->gpu_count == 0 || devices->count < 2)
        return NW_OK;
    groups = calloc(GROUPS, sizeof *groups);
    if (groups == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the ceilings of paths");
    for (int i = 0; i < devices->gpu_count; i++)
        for (int j = i + 1; j < devices->count; j++) {
            const int a = devices->nodes[i], b = devices->nodes[j];
            struct nw_ceiling ceiling;
            char cell[16];

            nw_ceiling_pair(topo, a, b, &ceiling);
            add_pair(groups, &count, nw_report_path_cell(topo, a, b, cell), j >= devices->gpu_count,
                     a, b, &ceiling);
        }
    fputs(nw_tr("\nceilings and what healthy machines reach, GB/s one way:\n"), stream);
    rc = print_groups(stream, topo, groups, count);
    free(groups);
    return rc;
}

/* --- network and collectives --- */

static void print_network(FILE *stream, const struct nw_ceiling_network *network)
{
    char rate[32], text[700];

    if (network->port_count == 0 && network->left_out_count == 0)
        return;
    if (isfinite(network->bytes_per_s))
        nw_print_to(text, sizeof text, "%s GB/s one way over %d port%s (%s)",
                    nw_format_gb_per_s(rate, network->bytes_per_s), network->port_count,
                    network->port_count == 1 ? "" : "s", network->ports);
    else
        nw_print_to(text, sizeof text, "unknown: %s", network->why);
    if (network->left_out_count > 0)
        nw_print_to(text + strlen(text), sizeof text - strlen(text), "; not counted: %s",
                    network->left_out);
    nw_print_wrapped(stream, "network of the node: ", "  ", text);
}

static const char *ceiling_text(const struct nw_ceiling_collective *ceiling, char text[72])
{
    return isnan(ceiling->bus_bytes_per_s) ? nw_tr("unknown")
                                           : nw_format_gb_per_s(text, ceiling->bus_bytes_per_s);
}

static nw_rc print_collectives(FILE *stream, const struct nw_topo *topo,
                               const struct nw_ceiling_network *network)
{
    static const struct nw_column columns[] = {{"busbw, GB/s", NW_LEFT}, {"algorithm", NW_LEFT},
                                               {"1 node", NW_RIGHT},     {"expected", NW_RIGHT},
                                               {"bound by", NW_LEFT},    {"2 nodes", NW_RIGHT},
                                               {"expected", NW_RIGHT},   {"bound by", NW_LEFT}};
    struct nw_table *table;
    bool any = false;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof *columns, &table));
    for (const struct nw_ceiling_coll_row *row = nw_ceiling_collectives; row->collective != NULL;
         row++) {
        struct nw_ceiling_collective one, two;
        char rates[2][72], ranges[2][72];

        if (nw_ceiling_collective(topo, network, row->collective, row->algorithm, 1, &one) !=
                NW_OK ||
            nw_ceiling_collective(topo, network, row->collective, row->algorithm, 2, &two) !=
                NW_OK) {
            nw_clear_error();
            continue;
        }
        if (isnan(one.bus_bytes_per_s) && isnan(two.bus_bytes_per_s))
            continue;
        any = true;
        nw_table_row(table,
                     (const char *[]){row->collective, row->algorithm, ceiling_text(&one, rates[0]),
                                      range(one.low, one.high, ranges[0]), one.bound,
                                      ceiling_text(&two, rates[1]),
                                      range(two.low, two.high, ranges[1]), two.bound});
    }
    if (!any) {
        nw_table_free(table);
        return NW_OK;
    }
    fputs(nw_tr("\ncollectives over all GPUs of one such node and of two; – : no published "
                "measurement\n"),
          stream);
    return nw_table_print(table, stream);
}

nw_rc nw_topo_text_paths(FILE *stream, const struct nw_topo *topo)
{
    struct nw_path_devices devices;
    struct nw_ceiling_network network;
    nw_rc rc;

    NW_TRY(nw_report_path_devices(topo, &devices));
    rc = print_matrix(stream, topo, &devices);
    if (rc == NW_OK)
        rc = print_ceilings(stream, topo, &devices);
    nw_ceiling_network(topo, &network);
    if (rc == NW_OK && devices.gpu_count > 0) {
        print_network(stream, &network);
        rc = print_collectives(stream, topo, &network);
    }
    free(devices.nodes);
    return rc;
}
