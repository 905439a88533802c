/* Which NIC of a host is the counterpart of which of another: a rail. Names follow the order in
 * which drivers found the devices, so like machines have like names; where one NIC is missing, or
 * was found later, places in the lists shift and names do not. */
#include <stdio.h>
#include <string.h>

#include "bench/nics.h"

static bool is_alike(const struct nw_nic *a, const struct nw_nic *b, nw_rail by)
{
    if (a->infiniband != b->infiniband)
        return false;
    if (by == NW_RAIL_NAME)
        return strcmp(a->name, b->name) == 0;
    return by == NW_RAIL_PLACE ||
           (a->pci[0] != '\0' && strcmp(a->pci, b->pci) == 0 && a->number == b->number);
}

static bool is_taken(const struct nw_nic_pair *pairs, size_t count, int nic)
{
    for (size_t i = 0; i < count; i++)
        if (pairs[i].a == nic || pairs[i].b == nic)
            return true;
    return false;
}

struct span { /* of a host's NICs, which stand together */
    size_t first, end;
};

static struct span span_of(const struct nw_nic *nics, size_t count, int host)
{
    struct span span = {0, 0};

    while (span.first < count && nics[span.first].host != host)
        span.first++;
    for (span.end = span.first; span.end < count && nics[span.end].host == host;)
        span.end++;
    return span;
}

/* The first that is left; -1: none. */
static int counterpart(const struct nw_nic *nics, size_t a, struct span of_b, nw_rail by,
                       const struct nw_nic_pair *pairs, size_t pair_count)
{
    for (size_t b = of_b.first; b < of_b.end; b++)
        if (is_alike(&nics[a], &nics[b], by) && !is_taken(pairs, pair_count, (int)b))
            return (int)b;
    return -1;
}

/* By insertion: they were found name by name first. */
static void sort_pairs(struct nw_nic_pair *pairs, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && pairs[k].a < pairs[k - 1].a; k--) {
            const struct nw_nic_pair later = pairs[k];

            pairs[k] = pairs[k - 1];
            pairs[k - 1] = later;
        }
}

size_t nw_nic_rails(const struct nw_nic *nics, size_t count, int host_a, int host_b,
                    struct nw_nic_pair *pairs)
{
    const struct span of_a = span_of(nics, count, host_a), of_b = span_of(nics, count, host_b);
    size_t found = 0;

    for (int by = NW_RAIL_NAME; by <= NW_RAIL_PLACE; by++)
        for (size_t a = of_a.first; a < of_a.end; a++) {
            const int b = is_taken(pairs, found, (int)a)
                              ? -1
                              : counterpart(nics, a, of_b, (nw_rail)by, pairs, found);

            if (b >= 0)
                pairs[found++] = (struct nw_nic_pair){.a = (int)a, .b = b, .rail = (nw_rail)by};
        }
    sort_pairs(pairs, found);
    return found;
}

static const char *pair_text(const struct nw_bench *bench, const struct nw_nics *nics,
                             const struct nw_nic_pair *pair, char text[400])
{
    const struct nw_nic *a = &nics->items[pair->a], *b = &nics->items[pair->b];

    snprintf(text, 400, "%s %s and %s %s", bench->comm->host_names[a->host], a->name,
             bench->comm->host_names[b->host], b->name);
    return text;
}

static const struct nw_nic_pair *first_by(const struct nw_nic_pair *pairs, size_t count, nw_rail by,
                                          size_t *all_out)
{
    const struct nw_nic_pair *first = NULL;

    *all_out = 0;
    for (size_t i = 0; i < count; i++) {
        if (pairs[i].rail != by)
            continue;
        if (first == NULL)
            first = &pairs[i];
        ++*all_out;
    }
    return first;
}

void nw_nic_tell_rails(struct nw_bench *bench, const struct nw_nics *nics,
                       const struct nw_nic_pair *pairs, size_t count)
{
    static const char remedy[] = "the same names on all hosts (udev, or one order of the driver), "
                                 "or --ib-dev with those that are meant";
    const struct nw_nic_pair *pair;
    char where[400];
    size_t all;

    if (bench->dry || bench->told_rails)
        return;
    bench->told_rails = true;
    pair = first_by(pairs, count, NW_RAIL_PCI, &all);
    if (pair != NULL)
        nw_bench_finding(bench, NW_FINDING_INFO, "nic-matched", pair_text(bench, nics, pair, where),
                         remedy,
                         "NICs of different names were taken for one rail by their PCI address, "
                         "which is the same (pairs of that kind: %zu)",
                         all);
    pair = first_by(pairs, count, NW_RAIL_PLACE, &all);
    if (pair != NULL)
        nw_bench_finding(bench, NW_FINDING_WARN, "nic-matched", pair_text(bench, nics, pair, where),
                         remedy,
                         "NICs of different names and PCI addresses were taken for one rail by "
                         "their place in their hosts' lists: they may be on different switches "
                         "(pairs of that kind: %zu)",
                         all);
}
