#include "report/html_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

nw_rc nw_map_open(struct nw_map *map)
{
    *map = (struct nw_map){.least_bytes_per_s = NAN, .median_bytes_per_s = NAN};
    map->hosts = calloc(NW_MAP_HOSTS_MAX, sizeof *map->hosts);
    return map->hosts != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for a map of pairs");
}

void nw_map_close(struct nw_map *map)
{
    free(map->pairs);
    free(map->hosts);
    *map = (struct nw_map){.pair_count = 0};
}

/* Names come again soon: looked for from the newest. */
static int host_of(struct nw_map *map, const char *name)
{
    for (int i = map->host_count; i > 0; i--)
        if (strcmp(map->hosts[i - 1], name) == 0)
            return i - 1;
    if (map->host_count == NW_MAP_HOSTS_MAX)
        return NW_MAP_HOSTS_MAX - 1;
    snprintf(map->hosts[map->host_count], sizeof *map->hosts, "%s", name);
    return map->host_count++;
}

nw_rc nw_map_add(struct nw_map *map, int a, int b, const char *host_a, const char *host_b,
                 double bytes_per_s)
{
    if (map->pair_count == map->pair_capacity) {
        const size_t capacity = map->pair_capacity > 0 ? 2 * map->pair_capacity : 64;
        struct nw_map_pair *pairs = realloc(map->pairs, capacity * sizeof *pairs);

        if (pairs == NULL)
            return nw_fail(NW_ENOMEM, "no memory for %zu pairs", capacity);
        map->pairs = pairs;
        map->pair_capacity = capacity;
    }
    const int last = a > b ? a : b;

    map->end_count = last >= map->end_count && last < 1 << 20 ? last + 1 : map->end_count;
    map->pairs[map->pair_count++] = (struct nw_map_pair){.a = a,
                                                         .b = b,
                                                         .host_a = host_of(map, host_a),
                                                         .host_b = host_of(map, host_b),
                                                         .bytes_per_s = bytes_per_s};
    return NW_OK;
}

static int compare(const void *left, const void *right)
{
    const struct nw_map_pair *a = left, *b = right;
    const double x = isfinite(a->bytes_per_s) ? a->bytes_per_s : -1;
    const double y = isfinite(b->bytes_per_s) ? b->bytes_per_s : -1;

    if (x != y)
        return x < y ? -1 : 1;
    return a->a != b->a ? a->a - b->a : a->b - b->b;
}

void nw_map_sort(struct nw_map *map)
{
    size_t failed = 0;

    qsort(map->pairs, map->pair_count, sizeof *map->pairs, compare);
    while (failed < map->pair_count && !isfinite(map->pairs[failed].bytes_per_s))
        failed++;
    if (failed == map->pair_count)
        return;
    map->least_bytes_per_s = map->pairs[failed].bytes_per_s;
    map->most_bytes_per_s = map->pairs[map->pair_count - 1].bytes_per_s;
    map->median_bytes_per_s = map->pairs[failed + (map->pair_count - failed) / 2].bytes_per_s;
}

/* Ways of different kinds (NVLink within a node, a network between) lie decades apart: logarithmic.
 * Rates that agree are all good. */
static double share_of(const struct nw_map *map, double bytes_per_s)
{
    const double least = fmin(map->least_bytes_per_s, 0.7 * map->most_bytes_per_s);

    if (!(bytes_per_s > 0) || !(least > 0))
        return 0;
    return log(bytes_per_s / least) / log(map->most_bytes_per_s / least);
}

enum { HEAD = 40, SCALE = 44 };

static void draw_cell(const struct nw_html *html, const struct nw_map *map,
                      const struct nw_map_pair *pair, bool turned, double cell)
{
    const double x = HEAD + cell * (turned ? pair->a : pair->b);
    const double y = HEAD + cell * (turned ? pair->b : pair->a);
    const double share = share_of(map, pair->bytes_per_s);
    const bool known = isfinite(pair->bytes_per_s);
    char fill[8], rate[32], tip[240];

    nw_svg_heat(fill, share);
    snprintf(tip, sizeof tip, "%d %s %s %d %s: %s%s", pair->a, map->hosts[pair->host_a],
             map->both_ways ? "↔" : "→", pair->b, map->hosts[pair->host_b],
             known ? nw_format_gb_per_s(rate, pair->bytes_per_s) : tr(html, "no result"),
             known ? " GB/s" : "");
    nw_svg_box(html->stream, x, y, cell - 1, cell - 1, known ? "m" : "m failed",
               known ? fill : NULL, tip);
    if (cell < 30)
        return;
    snprintf(rate, sizeof rate, "%.3g", pair->bytes_per_s / 1e9);
    nw_svg_words(html->stream, x + cell / 2, y + cell / 2 + 3.5,
                 share > 0.2 && share < 0.8 ? "cell dark" : "cell light", "middle",
                 known ? rate : "×");
}

static void draw_scale(const struct nw_html *html, const struct nw_map *map, double y)
{
    const double least = fmin(map->least_bytes_per_s, 0.7 * map->most_bytes_per_s);
    char text[64], rate[32], fill[8];

    for (int i = 0; i < 40; i++) {
        nw_svg_heat(fill, i / 39.0);
        nw_svg_box(html->stream, HEAD + 4 * i, y, 4, 10, NULL, fill, NULL);
    }
    snprintf(text, sizeof text, "%s GB/s", nw_format_gb_per_s(rate, least));
    nw_svg_words(html->stream, HEAD, y + 24, NULL, "start", text);
    snprintf(text, sizeof text, "%s GB/s", nw_format_gb_per_s(rate, map->most_bytes_per_s));
    nw_svg_words(html->stream, HEAD + 160, y + 24, NULL, "end", text);
}

void nw_map_draw(struct nw_html *html, const struct nw_map *map, const char *title, const char *id)
{
    const int ends = map->end_count;
    const double cell = fmin(48, fmax(8, 560.0 / (ends > 0 ? ends : 1)));
    struct nw_chart chart = {.stream = html->stream,
                             .alone = html->alone,
                             .width = fmax(HEAD + cell * ends + 8, 240),
                             .height = HEAD + cell * ends + SCALE};
    bool drawn[NW_MAP_ENDS_MAX][NW_MAP_ENDS_MAX] = {{false}};
    char text[16];

    nw_chart_open(&chart, id, title,
                  tr(html, "A square for every two, from the row to the column; the "
                           "slowest pairs stand in the table below."));
    for (int i = 0; i < ends; i++) {
        if (cell < 14 && i % 4 != 0)
            continue;
        snprintf(text, sizeof text, "%d", i);
        nw_svg_words(html->stream, HEAD + cell * (i + 0.5), HEAD - 8, NULL, "middle", text);
        nw_svg_words(html->stream, HEAD - 8, HEAD + cell * (i + 0.5) + 4, NULL, "end", text);
    }
    for (size_t i = 0; i < map->pair_count; i++) {
        const struct nw_map_pair *pair = &map->pairs[i];

        if (drawn[pair->a][pair->b]) /* a slower one of the same two is there */
            continue;
        drawn[pair->a][pair->b] = true;
        draw_cell(html, map, pair, false, cell);
        if (!map->both_ways || drawn[pair->b][pair->a])
            continue;
        drawn[pair->b][pair->a] = true;
        draw_cell(html, map, pair, true, cell);
    }
    if (map->most_bytes_per_s > 0)
        draw_scale(html, map, HEAD + cell * ends + 10);
    nw_chart_close(&chart);
}
