/* Every two ranks, GPUs and hosts: matrices as maps of colours, the slowest pairs as a table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/html_map.h"
#include "report/html_parts.h"

#define MAPS_MAX  8
#define PAIRS_MAX 40  /* rows of the table behind a map */
#define HOSTS_MAX 100 /* rows of the scores */

/* ---- records -----------------------------------------------------------------------------------
 */

static bool is_of_pair(const struct nw_record *record)
{
    return (strcmp(record->case_name, "pairs") == 0 || strcmp(record->case_name, "p2p") == 0) &&
           strcmp(record->collective, "latency") != 0 && record->peer_a >= 0 && record->peer_b >= 0;
}

static bool same_map(const struct nw_record *a, const struct nw_record *b)
{
    return strcmp(a->case_name, b->case_name) == 0 && strcmp(a->collective, b->collective) == 0 &&
           strcmp(a->lane, b->lane) == 0;
}

static uint64_t largest_like(const struct nw_run *run, const struct nw_record *like)
{
    uint64_t most = 0;

    for (size_t i = 0; i < run->record_count; i++)
        if (is_of_pair(&run->records[i]) && same_map(&run->records[i], like) &&
            run->records[i].bytes > most)
            most = run->records[i].bytes;
    return most;
}

static double rate_of(const struct nw_record *record)
{
    return record->rc != NW_OK                   ? NAN
           : isfinite(record->busbw_bytes_per_s) ? record->busbw_bytes_per_s
                                                 : record->algbw_bytes_per_s;
}

static nw_rc map_of(const struct nw_run *run, const struct nw_record *like, struct nw_map *map)
{
    const uint64_t bytes = largest_like(run, like);

    NW_TRY(nw_map_open(map));
    map->both_ways = strcmp(like->case_name, "pairs") == 0;
    map->bytes = bytes;
    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (!is_of_pair(record) || !same_map(record, like) || record->bytes != bytes)
            continue;
        NW_TRY(nw_map_add(map, record->peer_a, record->peer_b, record->host_a, record->host_b,
                          rate_of(record)));
        map->simulated = map->simulated || record->simulated;
    }
    return NW_OK;
}

/* ---- into the page -----------------------------------------------------------------------------
 */

static void put_pairs(const struct nw_html *html, const struct nw_map *map)
{
    static const struct nw_html_column columns[] = {
        {"From", NW_LEFT}, {"To", NW_LEFT}, {"GB/s", NW_RIGHT}, {"Of the median", NW_RIGHT}};

    nw_html_fold(html, tr(html, "The slowest pairs"));
    nw_html_table(html, tr(html, "The slowest pairs"), columns, 4);
    for (size_t i = 0; i < map->pair_count && i < PAIRS_MAX; i++) {
        const struct nw_map_pair *pair = &map->pairs[i];
        char from[96], to[96], rate[32] = "", share[32] = "";

        snprintf(from, sizeof from, "%d %s", pair->a, map->hosts[pair->host_a]);
        snprintf(to, sizeof to, "%d %s", pair->b, map->hosts[pair->host_b]);
        if (isfinite(pair->bytes_per_s)) {
            nw_format_gb_per_s(rate, pair->bytes_per_s);
            snprintf(share, sizeof share, "%.0f %%",
                     100 * pair->bytes_per_s / map->median_bytes_per_s);
        }
        nw_html_row(
            html, columns, 4,
            (const char *[]){from, to, rate[0] != '\0' ? rate : tr(html, "no result"), share});
    }
    nw_html_table_end(html);
    if (map->pair_count > PAIRS_MAX)
        nw_html_say(html, "note", tr(html, "and %zu faster ones"), map->pair_count - PAIRS_MAX);
    nw_html_fold_end(html);
}

static nw_rc put_map(struct nw_html *html, const struct nw_run *run, const struct nw_record *like)
{
    struct nw_map map;
    char title[256], id[64], size[32], low[32], high[32];
    nw_rc rc = map_of(run, like, &map);

    if (rc == NW_OK && map.pair_count > 0) {
        nw_map_sort(&map);
        snprintf(title, sizeof title,
                 tr(html, "%s (case %s, way %s), %s: GB/s between every two%s"), like->collective,
                 like->case_name, like->lane, nw_format_bytes(size, map.bytes),
                 nw_html_mark(html, map.simulated));
        nw_html_figure(html, title, id);
        if (map.end_count <= NW_MAP_ENDS_MAX)
            nw_map_draw(html, &map, title, id);
        else
            nw_html_say(html, "note",
                        tr(html, "%d ranks are too many for a picture; the slowest pairs "
                                 "stand in the table."),
                        map.end_count);
        nw_html_say(html, "note", tr(html, "slowest %s, median %s, pairs: %zu"),
                    nw_format_gb_per_s(low, map.least_bytes_per_s),
                    nw_format_gb_per_s(high, map.median_bytes_per_s), map.pair_count);
        put_pairs(html, &map);
        nw_html_figure_end(html);
    }
    nw_map_close(&map);
    return rc;
}

static bool seen_before(const struct nw_run *run, const struct nw_record *const *seen, size_t count,
                        const struct nw_record *record)
{
    (void)run;
    for (size_t i = 0; i < count; i++)
        if (same_map(seen[i], record))
            return true;
    return false;
}

static nw_rc put_run(struct nw_html *html, const struct nw_run *run)
{
    const struct nw_record *seen[MAPS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < run->record_count && count < MAPS_MAX; i++) {
        const struct nw_record *record = &run->records[i];

        if (!is_of_pair(record) || seen_before(run, seen, count, record))
            continue;
        seen[count++] = record;
        NW_TRY(put_map(html, run, record));
    }
    return NW_OK;
}

static bool has_pairs(const struct nw_results *results)
{
    for (size_t i = 0; i < results->run_count; i++)
        for (size_t k = 0; k < results->runs[i].record_count; k++)
            if (is_of_pair(&results->runs[i].records[k]))
                return true;
    return false;
}

/* ---- hosts held against each other -------------------------------------------------------------
 */

static int compare_ends(const void *left, const void *right, void *user)
{
    const struct nw_fleet_end *ends = user;
    const struct nw_fleet_end *a = &ends[*(const int *)left], *b = &ends[*(const int *)right];
    const int suspect = nw_fleet_is_suspect(b) - nw_fleet_is_suspect(a);
    const double x = isfinite(a->share) ? a->share : 2, y = isfinite(b->share) ? b->share : 2;

    return suspect != 0 ? suspect : (x > y) - (x < y);
}

static const struct {
    const char *summary;
} states[] = {[NW_FLEET_UNKNOWN] = {.summary = "unknown"},
              [NW_FLEET_GOOD] = {.summary = "good"},
              [NW_FLEET_SLOW] = {.summary = "slow"},
              [NW_FLEET_FLAKY] = {.summary = "flaky"},
              [NW_FLEET_FAILED] = {.summary = "failed"}};

static void put_end(const struct nw_html *html, const struct nw_html_column *columns,
                    const struct nw_fleet_level *level, int index)
{
    const struct nw_fleet_end *end = &level->scores.ends[index];
    char share[32] = "", pairs[32], slow[32], failed[32];

    if (isfinite(end->share))
        snprintf(share, sizeof share, "%.0f %%", 100 * end->share);
    snprintf(pairs, sizeof pairs, "%zu", end->pair_count);
    snprintf(slow, sizeof slow, "%zu", end->slow_count);
    snprintf(failed, sizeof failed, "%zu", end->failed_count);
    nw_html_row(html, columns, 6,
                (const char *[]){level->ends[index], tr(html, states[end->state].summary), share,
                                 pairs, slow, failed});
}

static nw_rc put_level(const struct nw_html *html, const struct nw_fleet_level *level)
{
    static const struct nw_html_column columns[] = {
        {"Which", NW_LEFT},  {"State", NW_LEFT}, {"Of what is usual", NW_RIGHT},
        {"Pairs", NW_RIGHT}, {"Slow", NW_RIGHT}, {"No result", NW_RIGHT},
    };
    const int count = level->fleet.end_count;
    int *order = malloc(((size_t)count + 1) * sizeof *order);
    const char *title;

    if (order == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the order of %d %s", count, level->kinds);
    for (int i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, (size_t)count, sizeof *order, compare_ends, level->scores.ends);
    title = tr(html, strcmp(level->kind, "host") == 0 ? "Hosts held against each other"
                                                      : "Ranks held against each other");
    nw_html_table(html, title, columns, 6);
    for (int i = 0; i < count && i < HOSTS_MAX; i++)
        put_end(html, columns, level, order[i]);
    nw_html_table_end(html);
    if (count > HOSTS_MAX)
        nw_html_say(html, "note", tr(html, "and %d better ones"), count - HOSTS_MAX);
    free(order);
    return NW_OK;
}

/* Two hosts have nothing that they could be held against. */
static bool is_compared(const struct nw_fleet_level *level)
{
    for (int i = 0; level->fleet.edge_count > 0 && i < level->fleet.end_count; i++)
        if (level->scores.ends[i].state != NW_FLEET_UNKNOWN)
            return true;
    return false;
}

nw_rc nw_html_maps(struct nw_html *html)
{
    const struct nw_page *page = html->page;

    if (!has_pairs(page->results) &&
        (page->fleet == NULL || (!is_compared(&page->fleet->levels[NW_FLEET_HOSTS]) &&
                                 !is_compared(&page->fleet->levels[NW_FLEET_RANKS]))))
        return NW_OK;
    nw_html_begin(html, "pairs", tr(html, "Every two"));
    for (size_t i = 0; i < page->results->run_count && i < 4; i++)
        NW_TRY(put_run(html, &page->results->runs[i]));
    for (int i = 0; page->fleet != NULL && i < NW_FLEET_LEVELS; i++)
        if (is_compared(&page->fleet->levels[i]))
            NW_TRY(put_level(html, &page->fleet->levels[i]));
    nw_html_end(html);
    return NW_OK;
}
