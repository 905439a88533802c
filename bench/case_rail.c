/* All NICs of a host to those of a neighbouring host over RDMA: one by one, then all at once. */
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/nics_at_once.h"

static int neighbour(int host, int host_count)
{
    return host % 2 == 0 && host + 1 < host_count ? host + 1 : -1;
}

static void tell_rails(const struct nw_at_once *once, const double *alone, const double *together)
{
    const struct nw_comm *comm = once->bench->comm;
    char where[192], sum_text[32], alone_text[32];

    for (size_t i = 0; i < once->round.count; i++) {
        const int group = once->group_of_pair[i];
        const struct nw_nic_pair *pair = &once->round.pairs[i];
        double sum = 0;

        if (nw_at_once_first_of(once, group) != i || nw_at_once_pairs_in(once, group) < 2)
            continue;
        for (size_t k = i; k < i + nw_at_once_pairs_in(once, group); k++)
            sum += alone[k];
        if (once->nics.items[pair->a].software || once->nics.items[pair->b].software ||
            !(together[group] < NW_AT_ONCE_SHARE * sum))
            continue; /* NICs that are software share the CPU */
        snprintf(where, sizeof where, "%s to %s", comm->host_names[once->nics.items[pair->a].host],
                 comm->host_names[once->nics.items[pair->b].host]);
        nw_bench_finding(once->bench, NW_FINDING_WARN, "rail-sum", where,
                         "look for NICs behind one PCIe switch or link (nodeworth topo), and for "
                         "switch ports that share an uplink",
                         "%zu NICs at once reach %s GB/s, one by one %s GB/s together",
                         nw_at_once_pairs_in(once, group),
                         nw_format_gb_per_s(sum_text, together[group]),
                         nw_format_gb_per_s(alone_text, sum));
    }
}

/* One by one, then all at once, one way and both. */
static nw_rc rail(struct nw_at_once *once)
{
    double *alone, *together;
    nw_rc rc;
    int groups;

    NW_TRY(nw_agree(once->bench->comm, nw_at_once_rails(once, neighbour)));
    once->none_met = once->round.count == 0;
    if (once->none_met)
        return NW_OK;
    NW_TRY(nw_at_once_settle(once));
    alone = calloc(2 * once->round.count, sizeof *alone);
    rc = nw_agree(once->bench->comm,
                  alone != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for the rails"));
    if (rc != NW_OK) {
        free(alone);
        return rc;
    }
    together = alone + once->round.count;
    for (int place = 0; rc == NW_OK && (groups = nw_at_once_by_place(once, place)) > 0; place++) {
        char what[32];

        snprintf(what, sizeof what, "NIC %d alone", place);
        rc = nw_at_once_unit(once, &nw_at_once_write, groups, what, together);
        for (size_t i = 0; i < once->round.count; i++)
            if (once->group_of_pair[i] >= 0)
                alone[i] = together[once->group_of_pair[i]];
    }
    groups = nw_at_once_by_host(once);
    if (rc == NW_OK && (size_t)groups < once->round.count)
        rc = nw_at_once_unit(once, &nw_at_once_write, groups, "all NICs", together);
    if (rc == NW_OK && (size_t)groups < once->round.count) {
        tell_rails(once, alone, together);
        rc = nw_at_once_unit(once, &nw_at_once_both, groups, "all NICs", NULL);
    }
    free(alone);
    return rc;
}

nw_rc nw_case_rail(struct nw_bench *bench)
{
    return nw_at_once_run(bench, "rail", 2, rail, NULL);
}
