/* Private to report/. A matrix of rates between every two ends, drawn as a map of colours.
 *
 *     NW_TRY(nw_map_open(&map));
 *     NW_TRY(nw_map_add(&map, a, b, "node1", "node2", rate));
 *     nw_map_sort(&map);
 *     nw_map_draw(html, &map, title, id);
 *     nw_map_close(&map);
 */
#ifndef NW_REPORT_HTML_MAP_H
#define NW_REPORT_HTML_MAP_H

#include "report/html_parts.h"

#define NW_MAP_ENDS_MAX  64 /* more do not fit a page */
#define NW_MAP_HOSTS_MAX 4096

struct nw_map_pair {
    int a, b;           /* from, to */
    int host_a, host_b; /* of nw_map.hosts */
    double bytes_per_s; /* NAN: no result */
};
struct nw_map { /* owns its lists */
    struct nw_map_pair *pairs;
    size_t pair_count, pair_capacity;
    char (*hosts)[64];
    int host_count;
    int end_count; /* the largest number of an end + 1 */
    uint64_t bytes;
    bool both_ways, simulated;
    double least_bytes_per_s, median_bytes_per_s, most_bytes_per_s; /* by nw_map_sort */
};

nw_rc nw_map_open(struct nw_map *map);
nw_rc nw_map_add(struct nw_map *map, int a, int b, const char *host_a, const char *host_b,
                 double bytes_per_s);
void nw_map_sort(struct nw_map *map); /* no result first, then the slowest */
void nw_map_draw(struct nw_html *html, const struct nw_map *map, const char *title, const char *id);
void nw_map_close(struct nw_map *map);

#endif
