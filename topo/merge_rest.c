/* Facts, links, stated classes and GIDs of another source. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/merge.h"

/* --- facts --- */

/* Every tool has its own words or numbers for these: no two readings contradict. */
static bool is_worded_freely(nw_fact_id id)
{
    static const nw_fact_id ids[] = {NW_FACT_GPU_INDEX,  NW_FACT_STATE,  NW_FACT_PHYSICAL_STATE,
                                     NW_FACT_LINK_LAYER, NW_FACT_BOARD,  NW_FACT_PEER,
                                     NW_FACT_XID,        NW_FACT_NETDEV, NW_FACT_IP};

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* Rates and amounts are rounded differently ("26.562 GB/s", "25 GB/s" by the generation); all
 * others must be the same. */
static bool numbers_differ(const struct nw_fact *a, const struct nw_fact *b)
{
    const char *key = nw_fact_rows[a->id].key;
    const double most = fmax(fabs(a->number), fabs(b->number));

    return fabs(a->number - b->number) > (strstr(key, "per_s") != NULL ? 0.1 : 0.001) * most;
}

/* Blanks and case apart; a version may have more behind it ("28.39.1002 (MT_0000000838)"). */
static bool texts_differ(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        if (isspace((unsigned char)*a))
            a++;
        else if (isspace((unsigned char)*b))
            b++;
        else if (tolower((unsigned char)*a++) != tolower((unsigned char)*b++))
            return true;
    }
    a += strspn(a, " ");
    b += strspn(b, " ");
    return *a != '\0' ? *a != '(' : *b != '\0' && *b != '(';
}

static nw_rc merge_fact(struct nw_merge *merge, const struct nw_fact *fact, int node)
{
    const struct nw_fact *known = nw_topo_fact(merge->into, node, fact->id);
    const struct nw_fact_row *row = &nw_fact_rows[fact->id];
    char values[2][224];

    if (known == NULL)
        return row->type == NW_FACT_TEXT
                   ? nw_topo_set_text(merge->into, node, fact->id, fact->text, fact->source)
                   : nw_topo_set_number(merge->into, node, fact->id, fact->number, fact->source);
    if ((row->flags & NW_FACT_PASSING) != 0 || is_worded_freely(fact->id) ||
        !(row->type == NW_FACT_TEXT ? texts_differ(known->text, fact->text)
                                    : numbers_differ(known, fact)))
        return NW_OK;
    return nw_merge_disagree(merge, node, row->title, nw_fact_value_text(known, values[0]),
                             known->source, nw_fact_value_text(fact, values[1]), fact->source);
}

nw_rc nw_merge_facts(struct nw_merge *merge)
{
    for (size_t i = 0; i < merge->from->fact_count; i++) {
        const struct nw_fact *fact = &merge->from->facts[i];

        if (merge->into_of[fact->node] >= 0)
            NW_TRY(merge_fact(merge, fact, merge->into_of[fact->node]));
    }
    return NW_OK;
}

/* --- what is there already, by two numbers --- */

struct pair {
    int a, b, kind;
    size_t index;
};

struct pairs {
    struct pair *items;
    size_t count;
};

static int compare(const void *x, const void *y)
{
    const struct pair *p = x, *q = y;

    if (p->a != q->a)
        return (p->a > q->a) - (p->a < q->a);
    if (p->b != q->b)
        return (p->b > q->b) - (p->b < q->b);
    return (p->kind > q->kind) - (p->kind < q->kind);
}

static nw_rc pairs_open(struct pairs *pairs, size_t count)
{
    pairs->count = count;
    pairs->items = calloc(count + 1, sizeof *pairs->items);
    return pairs->items != NULL ? NW_OK : nw_fail(NW_ENOMEM, "out of memory for %zu pairs", count);
}

static void pairs_sort(struct pairs *pairs)
{
    if (pairs->count > 1)
        qsort(pairs->items, pairs->count, sizeof *pairs->items, compare);
}

/* The index that was kept under these numbers, -1: none. */
static long pairs_find(const struct pairs *pairs, int a, int b, int kind)
{
    const struct pair wanted = {.a = a, .b = b, .kind = kind};
    const struct pair *found = pairs->count > 0 ? bsearch(&wanted, pairs->items, pairs->count,
                                                          sizeof *pairs->items, compare)
                                                : NULL;

    return found != NULL ? (long)found->index : -1;
}

static int low(int a, int b)
{
    return a < b ? a : b;
}

static int high(int a, int b)
{
    return a < b ? b : a;
}

static const char *pair_title(const struct nw_merge *merge, const char *what, int other,
                              char text[128])
{
    snprintf(text, 128, "%s to %s", what, merge->into->nodes[other].name);
    return text;
}

/* --- links --- */

static nw_rc merge_link(struct nw_merge *merge, const struct nw_topo_link *link,
                        struct nw_topo_link *known)
{
    char values[2][32], what[128];

    if (known->lane_count > 0 && link->lane_count > 0 && known->lane_count != link->lane_count) {
        snprintf(values[0], sizeof values[0], "%d", known->lane_count);
        snprintf(values[1], sizeof values[1], "%d", link->lane_count);
        return nw_merge_disagree(merge, known->a,
                                 pair_title(merge, "number of NVLinks", known->b, what), values[0],
                                 NULL, values[1], NULL);
    }
    if (known->lane_count == 0)
        known->lane_count = link->lane_count;
    if (!(known->bytes_per_s > 0))
        known->bytes_per_s = link->bytes_per_s;
    return NW_OK;
}

static nw_rc take_links(struct nw_merge *merge, struct pairs *pairs)
{
    struct nw_topo *into = merge->into;

    for (size_t i = 0; i < pairs->count; i++) {
        const struct nw_topo_link *link = &into->links[i];

        pairs->items[i] =
            (struct pair){low(link->a, link->b), high(link->a, link->b), (int)link->kind, i};
    }
    pairs_sort(pairs);
    for (size_t i = 0; i < merge->from->link_count; i++) {
        struct nw_topo_link link = merge->from->links[i];

        link.a = merge->into_of[link.a];
        link.b = merge->into_of[link.b];
        if (link.a < 0 || link.b < 0 || link.a == link.b)
            continue;
        const long known =
            pairs_find(pairs, low(link.a, link.b), high(link.a, link.b), (int)link.kind);

        if (known >= 0)
            NW_TRY(merge_link(merge, &link, &into->links[known]));
        else
            NW_TRY(nw_topo_add_link(into, &link));
    }
    return NW_OK;
}

nw_rc nw_merge_links(struct nw_merge *merge)
{
    struct pairs pairs;

    NW_TRY(pairs_open(&pairs, merge->into->link_count));
    const nw_rc rc = take_links(merge, &pairs);

    free(pairs.items);
    return rc;
}

/* --- stated classes --- */

static const char *class_text(const struct nw_topo_stated *stated, char text[32])
{
    if (stated->class_id == NW_CLASS_NV && stated->nvlinks > 0)
        snprintf(text, 32, "NV%d", stated->nvlinks);
    else
        snprintf(text, 32, "%s", nw_class_name(stated->class_id));
    return text;
}

static nw_rc merge_stated(struct nw_merge *merge, const struct nw_topo_stated *stated,
                          struct nw_topo_stated *known)
{
    char values[2][32], what[128];

    if (known->class_id == NW_CLASS_UNKNOWN) {
        known->class_id = stated->class_id;
        known->nvlinks = stated->nvlinks;
        return NW_OK;
    }
    if (stated->class_id == NW_CLASS_UNKNOWN)
        return NW_OK;
    /* topo -mp leaves NVLink out on purpose: the way over PCIe is no contradiction to it. */
    if (known->class_id != stated->class_id &&
        (known->class_id == NW_CLASS_NV || stated->class_id == NW_CLASS_NV)) {
        if (stated->class_id == NW_CLASS_NV) {
            known->class_id = stated->class_id;
            known->nvlinks = stated->nvlinks;
        }
        return NW_OK;
    }
    if (known->class_id == stated->class_id &&
        (known->nvlinks == 0 || stated->nvlinks == 0 || known->nvlinks == stated->nvlinks)) {
        known->nvlinks = high(known->nvlinks, stated->nvlinks);
        return NW_OK;
    }
    return nw_merge_disagree(merge, known->a, pair_title(merge, "path", known->b, what),
                             class_text(known, values[0]), NULL, class_text(stated, values[1]),
                             NULL);
}

static nw_rc take_stated(struct nw_merge *merge, struct pairs *pairs)
{
    struct nw_topo *into = merge->into;

    for (size_t i = 0; i < pairs->count; i++)
        pairs->items[i] = (struct pair){into->stated[i].a, into->stated[i].b, 0, i};
    pairs_sort(pairs);
    for (size_t i = 0; i < merge->from->stated_count; i++) {
        struct nw_topo_stated stated = merge->from->stated[i];
        const int a = merge->into_of[stated.a], b = merge->into_of[stated.b];

        if (a < 0 || b < 0 || a == b)
            continue;
        stated.a = low(a, b);
        stated.b = high(a, b);
        const long known = pairs_find(pairs, stated.a, stated.b, 0);

        if (known >= 0)
            NW_TRY(merge_stated(merge, &stated, &into->stated[known]));
        else
            NW_TRY(nw_topo_state(into, a, b, stated.class_id, stated.nvlinks));
    }
    return NW_OK;
}

nw_rc nw_merge_stated(struct nw_merge *merge)
{
    struct pairs pairs;

    NW_TRY(pairs_open(&pairs, merge->into->stated_count));
    const nw_rc rc = take_stated(merge, &pairs);

    free(pairs.items);
    return rc;
}

/* --- GIDs --- */

#define TAKE_TEXT(member)                                                                          \
    do {                                                                                           \
        if (known->member[0] == '\0')                                                              \
            snprintf(known->member, sizeof known->member, "%s", gid->member);                      \
    } while (0)

static nw_rc merge_gid(struct nw_merge *merge, const struct nw_topo_gid *gid,
                       struct nw_topo_gid *known)
{
    char what[64];

    if (texts_differ(known->gid, gid->gid)) {
        snprintf(what, sizeof what, "GID %d", gid->index);
        return nw_merge_disagree(merge, known->port, what, known->gid, NULL, gid->gid, NULL);
    }
    TAKE_TEXT(type);
    TAKE_TEXT(ip);
    TAKE_TEXT(interface);
    return NW_OK;
}

static nw_rc take_gids(struct nw_merge *merge, struct pairs *pairs)
{
    struct nw_topo *into = merge->into;

    for (size_t i = 0; i < pairs->count; i++)
        pairs->items[i] = (struct pair){into->gids[i].port, into->gids[i].index, 0, i};
    pairs_sort(pairs);
    for (size_t i = 0; i < merge->from->gid_count; i++) {
        struct nw_topo_gid gid = merge->from->gids[i];

        gid.port = merge->into_of[gid.port];
        if (gid.port < 0)
            continue;
        const long known = pairs_find(pairs, gid.port, gid.index, 0);

        if (known >= 0)
            NW_TRY(merge_gid(merge, &gid, &into->gids[known]));
        else
            NW_TRY(nw_topo_add_gid(into, &gid));
    }
    return NW_OK;
}

nw_rc nw_merge_gids(struct nw_merge *merge)
{
    struct pairs pairs;

    NW_TRY(pairs_open(&pairs, merge->into->gid_count));
    const nw_rc rc = take_gids(merge, &pairs);

    free(pairs.items);
    return rc;
}
