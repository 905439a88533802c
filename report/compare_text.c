#include "report/compare_text.h"

#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"

enum { ROWS_SHOWN = 20 };

struct cell {
    char text[256];
};

/* ---- cells -------------------------------------------------------------------------------------
 */

static const char *put_count(struct cell *cell, size_t count)
{
    snprintf(cell->text, sizeof cell->text, "%zu", count);
    return cell->text;
}

/* "1.25 [1.22, 1.29]": times as fast */
static const char *put_speed(struct cell *cell, struct nw_value speed)
{
    if (isfinite(speed.low) && isfinite(speed.high))
        snprintf(cell->text, sizeof cell->text, "%.3f [%.3f, %.3f]", speed.value, speed.low,
                 speed.high);
    else
        snprintf(cell->text, sizeof cell->text, "%.3f", speed.value);
    return cell->text;
}

static const char *put_p(struct cell *cell, double p)
{
    if (isnan(p))
        return "–";
    snprintf(cell->text, sizeof cell->text, p < 0.001 ? "%.0e" : "%.3f", p);
    return cell->text;
}

static const char *put_what(struct cell *cell, const struct nw_record *like)
{
    snprintf(cell->text, sizeof cell->text, "%s %s", like->case_name, like->collective);
    return cell->text;
}

static const char *put_ranks(struct cell *cell, const struct nw_record *like)
{
    if (like->host_count > 0)
        snprintf(cell->text, sizeof cell->text, "%d on %d", like->rank_count, like->host_count);
    else
        snprintf(cell->text, sizeof cell->text, "%d", like->rank_count);
    return cell->text;
}

static const char *put_lane(struct cell *cell, const struct nw_record *like)
{
    snprintf(cell->text, sizeof cell->text, "%s%s%s", like->lane,
             like->features[0] != '\0' ? " +" : "", like->features);
    return cell->text;
}

/* ---- one line for each thing measured ----------------------------------------------------------
 */

static bool is_like(const struct nw_compare_row *a, const struct nw_compare_row *b)
{
    const struct nw_record *x = a->like, *y = b->like;

    return a->side == b->side && strcmp(x->case_name, y->case_name) == 0 &&
           strcmp(x->collective, y->collective) == 0 && strcmp(x->lane, y->lane) == 0 &&
           strcmp(x->features, y->features) == 0 && strcmp(x->dtype, y->dtype) == 0 &&
           strcmp(x->op, y->op) == 0 && x->rank_count == y->rank_count &&
           x->host_count == y->host_count;
}

static void thing_row(struct nw_table *table, const struct nw_comparison *comparison, size_t first)
{
    const struct nw_compare_row *rows = comparison->rows, *small = &rows[first], *large = small;
    const struct nw_compare_row *worst = small;
    size_t counts[NW_COMPARE_VERDICTS] = {0};
    char size[3][32];
    struct cell c[11];

    for (size_t i = first; i < comparison->row_count; i++) {
        const struct nw_compare_row *row = &rows[i];

        if (!is_like(&rows[first], row))
            continue;
        counts[row->verdict]++;
        if (row->like->bytes < small->like->bytes)
            small = row;
        if (row->like->bytes > large->like->bytes)
            large = row;
        if (row->speed.value < worst->speed.value)
            worst = row;
    }
    snprintf(c[8].text, sizeof c[8].text, "%.3f at %s", worst->speed.value,
             nw_format_bytes(size[0], worst->like->bytes));
    snprintf(c[9].text, sizeof c[9].text, "%.3f at %s", small->speed.value,
             nw_format_bytes(size[1], small->like->bytes));
    snprintf(c[10].text, sizeof c[10].text, "%.3f at %s", large->speed.value,
             nw_format_bytes(size[2], large->like->bytes));
    nw_table_row(table,
                 (const char *[]){
                     comparison->sides[rows[first].side].name, put_what(&c[0], rows[first].like),
                     put_lane(&c[1], rows[first].like), put_ranks(&c[2], rows[first].like),
                     put_count(&c[3], counts[NW_COMPARE_FASTER]),
                     put_count(&c[4], counts[NW_COMPARE_SLOWER]),
                     put_count(&c[5], counts[NW_COMPARE_SAME]),
                     put_count(&c[6], counts[NW_COMPARE_UNCLEAR] + counts[NW_COMPARE_NO_SAMPLES]),
                     c[9].text, c[10].text, c[8].text});
}

static nw_rc put_things(FILE *stream, const struct nw_comparison *comparison)
{
    static const struct nw_column columns[] = {
        {"", NW_WRAP},          {"what", NW_WRAP},     {"lane", NW_WRAP},   {"ranks", NW_RIGHT},
        {"faster", NW_RIGHT},   {"slower", NW_RIGHT},  {"same", NW_RIGHT},  {"unclear", NW_RIGHT},
        {"smallest", NW_RIGHT}, {"largest", NW_RIGHT}, {"lowest", NW_RIGHT}};
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < comparison->row_count; i++) {
        bool shown = false;

        for (size_t k = 0; k < i && !shown; k++)
            shown = is_like(&comparison->rows[k], &comparison->rows[i]);
        if (!shown)
            thing_row(table, comparison, i);
    }
    nw_print(stream, "\nSpeed over %s (1.1: a tenth faster), and how many sizes differ\n",
             comparison->sides[0].name);
    return nw_table_print(table, stream);
}

/* ---- rows --------------------------------------------------------------------------------------
 */

static void put_row(struct nw_table *table, const struct nw_comparison *comparison,
                    const struct nw_compare_row *row)
{
    char size[32];
    struct cell c[8];

    snprintf(c[3].text, sizeof c[3].text, "%s%s", nw_format_bytes(size, row->like->bytes),
             row->like->in_place ? ", in place" : "");
    snprintf(c[6].text, sizeof c[6].text, "%zu, %zu", row->a_samples, row->b_samples);
    if (row->like->peer_a >= 0)
        snprintf(c[3].text + strlen(c[3].text), sizeof c[3].text - strlen(c[3].text),
                 row->like->peer_b >= 0 ? ", ranks %d, %d" : ", rank %d", row->like->peer_a,
                 row->like->peer_b);
    nw_table_row(table, (const char *[]){comparison->sides[row->side].name,
                                         put_what(&c[0], row->like), put_lane(&c[1], row->like),
                                         put_ranks(&c[2], row->like), c[3].text,
                                         put_speed(&c[4], row->speed), put_p(&c[5], row->p_joint),
                                         c[6].text, nw_compare_verdict_name(row->verdict)});
}

static bool is_shown(const struct nw_compare_row *row, bool all)
{
    return all || row->verdict == NW_COMPARE_FASTER || row->verdict == NW_COMPARE_SLOWER;
}

static nw_rc put_rows(FILE *stream, const struct nw_comparison *comparison, bool all)
{
    static const struct nw_column columns[] = {
        {"", NW_WRAP},       {"what", NW_WRAP},     {"lane", NW_WRAP},
        {"ranks", NW_RIGHT}, {"size", NW_WRAP},     {"speed [95 %]", NW_RIGHT},
        {"p", NW_RIGHT},     {"samples", NW_RIGHT}, {"verdict", NW_LEFT}};
    struct nw_table *table;
    size_t shown = 0, left = 0;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < comparison->row_count; i++) {
        if (!is_shown(&comparison->rows[i], all))
            continue;
        if (shown == ROWS_SHOWN && !all) {
            left++;
            continue;
        }
        put_row(table, comparison, &comparison->rows[i]);
        shown++;
    }
    if (shown == 0) {
        nw_table_free(table);
        return NW_OK;
    }
    nw_print(stream, all ? "\nEvery row\n" : "\nWhat differs\n");
    NW_TRY(nw_table_print(table, stream));
    if (left > 0)
        nw_print(stream, "%zu more differ; --all shows them.\n", left);
    return NW_OK;
}

/* ---- what was not compared ---------------------------------------------------------------------
 */

static nw_rc put_refusals(FILE *stream, const struct nw_comparison *comparison)
{
    static const struct nw_column columns[] = {{"of", NW_WRAP},
                                               {"what", NW_WRAP},
                                               {"results", NW_RIGHT},
                                               {"sizes", NW_WRAP},
                                               {"why not", NW_WRAP}};
    struct nw_table *table;

    if (comparison->refusal_count == 0)
        return NW_OK;
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < comparison->refusal_count; i++) {
        const struct nw_compare_refusal *refusal = &comparison->refusals[i];
        char from[32], to[32];
        struct cell c[3];

        nw_format_bytes(from, refusal->min_bytes);
        nw_format_bytes(to, refusal->max_bytes);
        if (refusal->min_bytes == refusal->max_bytes)
            snprintf(c[2].text, sizeof c[2].text, "%s", from);
        else
            snprintf(c[2].text, sizeof c[2].text, "%s … %s", from, to);
        nw_table_row(
            table, (const char *[]){comparison->sides[refusal->of_first ? 0 : refusal->side].name,
                                    put_what(&c[0], refusal->like),
                                    put_count(&c[1], refusal->count), c[2].text, refusal->reason});
    }
    nw_print(stream, "\nNot compared (first side, second side)\n");
    return nw_table_print(table, stream);
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

static void put_summary(FILE *stream, const struct nw_comparison *comparison)
{
    const size_t *verdicts = comparison->verdicts;
    char text[512];

    snprintf(
        text, sizeof text,
        "%zu results compared with %s: %zu faster, %zu slower, %zu the same within %.3g %%, %zu "
        "unclear%s.",
        comparison->row_count, comparison->sides[0].name, verdicts[NW_COMPARE_FASTER],
        verdicts[NW_COMPARE_SLOWER], verdicts[NW_COMPARE_SAME], 100 * comparison->threshold,
        verdicts[NW_COMPARE_UNCLEAR] + verdicts[NW_COMPARE_NO_SAMPLES],
        comparison->simulated ? " (SIMULATED, no measurement)" : "");
    nw_print_wrapped(stream, "", "", text);
    if (comparison->tested_count > 0) {
        snprintf(
            text, sizeof text,
            "Faster and slower: beyond %.3g %%, and the chance that any one of them is false is "
            "at most 5 %% (Mann-Whitney on the raw samples, Holm over %zu tests).",
            100 * comparison->threshold, comparison->tested_count);
        nw_print_wrapped(stream, "", "", text);
    }
    if (verdicts[NW_COMPARE_NO_SAMPLES] > 0) {
        snprintf(text, sizeof text,
                 "%zu have one figure a side and no samples: whether their difference is noise "
                 "cannot be said. Measure with bench, or give several logs of each side.",
                 verdicts[NW_COMPARE_NO_SAMPLES]);
        nw_print_wrapped(stream, "", "", text);
    }
}

nw_rc nw_report_comparison(FILE *stream, const struct nw_comparison *comparison, bool all)
{
    put_summary(stream, comparison);
    if (comparison->row_count > 0)
        NW_TRY(put_things(stream, comparison));
    NW_TRY(put_rows(stream, comparison, all));
    return put_refusals(stream, comparison);
}
