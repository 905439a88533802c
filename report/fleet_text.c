#include "report/fleet_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"

#define GOOD_ENDS_MAX 24  /* more good ones are only counted */
#define MAP_ENDS_MAX  256 /* columns of a wide terminal */

static const char *percent(char text[32], double share)
{
    if (isnan(share))
        return "–";
    snprintf(text, 32, "%.0f %%", 100 * share);
    return text;
}

static const char *whole(char text[32], double value)
{
    if (isnan(value))
        return "–";
    snprintf(text, 32, "%.1f", value);
    return text;
}

static nw_rc print_classes(FILE *stream, const struct nw_fleet_level *level)
{
    static const struct nw_column columns[] = {
        {"pairs of", NW_LEFT},     {"measured", NW_RIGHT},    {"no result", NW_RIGHT},
        {"slow", NW_RIGHT},        {"median GB/s", NW_RIGHT}, {"usual best GB/s", NW_RIGHT},
        {"named below", NW_RIGHT}, {"two clusters", NW_LEFT},
    };
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof *columns, &table));
    for (int i = 0; i < level->fleet.class_count; i++) {
        const struct nw_fleet_class *row = &level->scores.classes[i];
        char measured[32], failed[32], slow[32], median[32], usual[32], low[32], high[32];
        char clusters[96] = "", limit[32];

        if (row->pair_count == 0)
            continue;
        snprintf(measured, sizeof measured, "%zu", row->pair_count);
        snprintf(failed, sizeof failed, "%zu", row->failed_count);
        snprintf(slow, sizeof slow, "%zu", row->slow_count);
        if (row->two_clusters)
            nw_print_to(clusters, sizeof clusters, "%zu near %s, %zu near %s",
                        row->clusters.high_count, nw_format_gb_per_s(high, row->clusters.high_mean),
                        row->clusters.low_count, nw_format_gb_per_s(low, row->clusters.low_mean));
        nw_table_row(table, (const char *[]){level->classes[i], measured, failed, slow,
                                             nw_format_gb_per_s(median, row->median_bytes_per_s),
                                             nw_format_gb_per_s(usual, row->usual_bytes_per_s),
                                             percent(limit, row->detect_share), clusters});
    }
    return nw_table_print(table, stream);
}

static int rank_of_state(nw_fleet_state state)
{
    static const int ranks[] = {[NW_FLEET_FAILED] = 0,
                                [NW_FLEET_SLOW] = 1,
                                [NW_FLEET_FLAKY] = 1,
                                [NW_FLEET_GOOD] = 2,
                                [NW_FLEET_UNKNOWN] = 2};

    return ranks[state];
}

/* Suspects first, then those with most bad pairs, then the slowest. */
static int compare_ends(const void *left, const void *right, void *user)
{
    const struct nw_fleet_end *ends = user;
    const int x = *(const int *)left, y = *(const int *)right;
    const struct nw_fleet_end *a = &ends[x], *b = &ends[y];
    const double share_a = isnan(a->share) ? INFINITY : a->share;
    const double share_b = isnan(b->share) ? INFINITY : b->share;
    const size_t bad_a = a->slow_count + a->failed_count, bad_b = b->slow_count + b->failed_count;

    if (rank_of_state(a->state) != rank_of_state(b->state))
        return rank_of_state(a->state) - rank_of_state(b->state);
    if (bad_a != bad_b)
        return bad_a > bad_b ? -1 : 1;
    if (share_a != share_b)
        return share_a < share_b ? -1 : 1;
    return x - y;
}

static void end_row(struct nw_table *table, const struct nw_fleet_level *level, int index)
{
    const struct nw_fleet_end *end = &level->scores.ends[index];
    char share[32], z[32], pairs[32], slow[32], failed[32], bad[32];

    snprintf(pairs, sizeof pairs, "%zu", end->pair_count);
    snprintf(slow, sizeof slow, "%zu", end->slow_count);
    snprintf(failed, sizeof failed, "%zu", end->failed_count);
    nw_table_row(table, (const char *[]){level->ends[index], nw_fleet_state_name(end->state),
                                         percent(share, end->share), whole(z, end->z), pairs, slow,
                                         failed, whole(bad, end->bad_z)});
}

static nw_rc print_ends(FILE *stream, const struct nw_fleet_level *level, bool all)
{
    const struct nw_column columns[] = {
        {level->kind, NW_LEFT},  {"state", NW_LEFT},         {"best, of usual", NW_RIGHT},
        {"score", NW_RIGHT},     {"pairs", NW_RIGHT},        {"slow", NW_RIGHT},
        {"no result", NW_RIGHT}, {"score of bad", NW_RIGHT},
    };
    const int count = level->fleet.end_count;
    int *order = malloc(((size_t)count + 1) * sizeof *order);
    struct nw_table *table;
    int shown = 0;
    nw_rc rc;

    if (order == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the order of %d %s", count, level->kinds);
    for (int i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, (size_t)count, sizeof *order, compare_ends, level->scores.ends);
    rc = nw_table_open(columns, sizeof columns / sizeof *columns, &table);
    for (; rc == NW_OK && shown < count; shown++) {
        if (!all && shown >= GOOD_ENDS_MAX &&
            !nw_fleet_is_suspect(&level->scores.ends[order[shown]]))
            break;
        end_row(table, level, order[shown]);
    }
    free(order);
    if (rc == NW_OK)
        rc = nw_table_print(table, stream);
    if (rc == NW_OK && shown < count)
        nw_print(stream, "… %d more without a finding (--all)\n", count - shown);
    return rc;
}

/* ---- the map -----------------------------------------------------------------------------------
 */

#define NOT_MEASURED 2
#define FAILED       (-1)

static char sign_of(double share)
{
    if (share == FAILED)
        return 'x';
    if (share >= NOT_MEASURED)
        return ' ';
    if (share >= NW_FLEET_LOW_SHARE)
        return '.';
    return (char)('0' + (int)(share * 10));
}

/* Lowest share of the usual over the classes that are not divided. */
static void fill_map(const struct nw_fleet_level *level, double *map)
{
    const size_t count = (size_t)level->fleet.end_count;

    for (size_t i = 0; i < count * count; i++)
        map[i] = NOT_MEASURED;
    for (size_t i = 0; i < level->fleet.edge_count; i++) {
        const struct nw_fleet_edge *edge = &level->edges[i];
        const struct nw_fleet_class *row = &level->scores.classes[edge->class];
        const double share =
            isnan(edge->bytes_per_s) ? FAILED : edge->bytes_per_s / row->usual_bytes_per_s;
        double *cells[] = {&map[(size_t)edge->a * count + (size_t)edge->b],
                           &map[(size_t)edge->b * count + (size_t)edge->a]};

        if (row->divided && share != FAILED)
            continue;
        for (int k = 0; k < 2; k++)
            *cells[k] = share < *cells[k] ? fmin(share, 1) : *cells[k];
    }
}

static int widest(const struct nw_fleet_level *level)
{
    int most = 0;

    for (int i = 0; i < level->fleet.end_count; i++) {
        const int width = nw_text_width(level->ends[i]);

        most = width > most ? width : most;
    }
    return most;
}

static nw_rc print_map(FILE *stream, const struct nw_fleet_level *level)
{
    const size_t count = (size_t)level->fleet.end_count;
    const int width = widest(level);
    double *map;

    if (count < 3 || count > MAP_ENDS_MAX)
        return NW_OK;
    map = malloc(count * count * sizeof *map);
    if (map == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a map of %zu %s", count, level->kinds);
    fill_map(level, map);
    nw_print(
        stream,
        "\nEvery two %s, the worst of their measurements: . as usual, 0 to 9 tenths of it, x no "
        "result\n\n",
        level->kinds);
    for (size_t i = 0; i < count; i++) {
        fprintf(stream, "%s%*s ", level->ends[i], width - nw_text_width(level->ends[i]), "");
        for (size_t k = 0; k < count; k++)
            fputc(i == k ? '-' : sign_of(map[i * count + k]), stream);
        fputc('\n', stream);
    }
    free(map);
    return NW_OK;
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

/* One remedy behind several findings of a kind that follow each other. */
static void print_findings(FILE *stream, const struct nw_findings *findings)
{
    const char *remedy = NULL;

    for (int severity = NW_FINDING_FAIL; severity >= NW_FINDING_INFO; severity--)
        for (size_t i = 0; i < findings->count; i++) {
            const struct nw_finding *finding = &findings->items[i];
            char first[256];

            if ((int)finding->severity != severity)
                continue;
            if (remedy != NULL && (finding->remedy == NULL || strcmp(finding->remedy, remedy) != 0))
                nw_print_wrapped(stream, "    → ", "      ", remedy);
            remedy = finding->remedy;
            nw_print_to(first, sizeof first, "%s: %.200s: ", nw_severity_name(finding->severity),
                        finding->where);
            nw_print_wrapped(stream, first, "    ", finding->text);
        }
    if (remedy != NULL)
        nw_print_wrapped(stream, "    → ", "      ", remedy);
}

static void print_hosts(FILE *stream, const struct nw_fleet_report *report)
{
    const struct nw_fleet_level *hosts = &report->levels[NW_FLEET_HOSTS];

    nw_print(stream, "\nExclude these hosts:");
    for (int i = 0; i < hosts->fleet.end_count; i++)
        if (nw_fleet_is_suspect(&hosts->scores.ends[i]))
            fprintf(stream, " %s", hosts->ends[i]);
    nw_print(stream, "%s\n", report->suspect_count == 0 ? nw_tr(" none") : "");
    if (report->leave_out_count == report->suspect_count)
        return;
    nw_print(stream, "No bad pair would be left without, in addition:");
    for (int i = 0; i < hosts->fleet.end_count; i++)
        if (report->leave_out[i] && !nw_fleet_is_suspect(&hosts->scores.ends[i]))
            fprintf(stream, " %s", hosts->ends[i]);
    fputc('\n', stream);
}

nw_rc nw_report_fleet(FILE *stream, const struct nw_fleet_report *report, bool all)
{
    for (int i = 0; i < NW_FLEET_LEVELS; i++) {
        const struct nw_fleet_level *level = &report->levels[i];

        if (level->fleet.edge_count == 0)
            continue;
        nw_print(stream, "%s%d %s, %zu pair%s%s\n\n", i > 0 ? "\n" : "", level->fleet.end_count,
                 level->kinds, level->fleet.edge_count, level->fleet.edge_count == 1 ? "" : "s",
                 report->simulated ? nw_tr(", simulated") : "");
        NW_TRY(print_classes(stream, level));
        fputc('\n', stream);
        NW_TRY(print_ends(stream, level, all));
        NW_TRY(print_map(stream, level));
    }
    if (report->retest_count > 0)
        nw_print(stream, "\n%zu pair%s measured again alone; the better result counts\n",
                 report->retest_count, report->retest_count == 1 ? nw_tr(" was") : nw_tr("s were"));
    fputc('\n', stream);
    print_findings(stream, &report->findings);
    print_hosts(stream, report);
    return NW_OK;
}
