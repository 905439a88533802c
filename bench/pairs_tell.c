#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "bench/fleet_tell.h"
#include "bench/pairs_parts.h"

nw_rc nw_pairs_judge_hosts(const struct nw_pairs *pairs, struct nw_pairs_fleet *judged_out)
{
    const struct nw_pairs_plan *plan = &pairs->plan;
    struct nw_pair_rate *rates = calloc(pairs->rate_count + 1, sizeof *rates);
    size_t count = 0;
    nw_rc rc;

    if (rates == NULL)
        return nw_fail(NW_ENOMEM, "no memory to judge %zu pairs", pairs->rate_count);
    for (size_t i = 0; i < pairs->rate_count; i++)
        if (!pairs->lost_hosts[plan->host_of_rank[pairs->rates[i].edge.a]] &&
            !pairs->lost_hosts[plan->host_of_rank[pairs->rates[i].edge.b]])
            rates[count++] = pairs->rates[i];
    rc = nw_pairs_fleet_judge(rates, count, plan->host_of_rank, plan->rank_count, plan->host_count,
                              judged_out);
    free(rates);
    return rc;
}

static void tell_slow(struct nw_pairs *pairs, const struct nw_slow_pairs *slow)
{
    const struct nw_comm *comm = pairs->bench->comm;
    char where[192], rate[32], usual[32];

    for (size_t i = 0; i < slow->rank_count; i++) {
        nw_comm_rank_text(comm, slow->ranks[i], where);
        nw_bench_finding(pairs->bench, NW_FINDING_WARN, "rank-slow", where,
                         "look at this host's port, cable, PCIe link and load",
                         "most of its pairs are slower than %.0f %% of what like pairs reach",
                         100 * NW_SLOW_PAIR_SHARE);
    }
    for (size_t i = 0; i < slow->pair_count; i++) {
        const struct nw_slow_pair *pair = &slow->pairs[i];

        snprintf(where, sizeof where, "ranks %d on %s, %d on %s", pair->rate.edge.a,
                 comm->host_names[comm->host_of_rank[pair->rate.edge.a]], pair->rate.edge.b,
                 comm->host_names[comm->host_of_rank[pair->rate.edge.b]]);
        nw_bench_finding(pairs->bench, NW_FINDING_WARN, "pair-slow", where,
                         "look at the path between the two",
                         "%s GB/s each way, where the median of like pairs is %s GB/s",
                         nw_format_gb_per_s(rate, pair->rate.edge.bytes_per_s),
                         nw_format_gb_per_s(usual, pair->median_bytes_per_s));
    }
}

/* Those of one host are compared by rank. */
nw_rc nw_pairs_tell_ranks(struct nw_pairs *pairs)
{
    struct nw_slow_pairs slow = {0};
    size_t count = pairs->rate_count;

    if (pairs->plan.by_host) {
        count = 0;
        for (size_t i = 0; i < pairs->rate_count; i++)
            if (pairs->rates[i].same_host)
                pairs->rates[count++] = pairs->rates[i];
    }
    NW_TRY(nw_pairs_judge(pairs->rates, count, pairs->bench->comm->rank_count, &slow));
    tell_slow(pairs, &slow);
    nw_slow_pairs_free(&slow);
    return NW_OK;
}

static nw_rc tell_fleet(struct nw_pairs *pairs, const struct nw_fleet *fleet,
                        const struct nw_fleet_scores *scores, const struct nw_fleet_names *names)
{
    struct nw_findings findings = {0};
    nw_rc rc = nw_fleet_findings(fleet, scores, names, NW_SLOW_PAIRS_MAX, &findings);

    for (size_t i = 0; i < findings.count && rc == NW_OK; i++)
        nw_bench_finding(pairs->bench, findings.items[i].severity, findings.items[i].code,
                         findings.items[i].where, findings.items[i].remedy, "%s",
                         findings.items[i].text);
    nw_findings_free(&findings);
    return rc;
}

static nw_rc tell_between_ranks(struct nw_pairs *pairs, const struct nw_pairs_fleet *judged)
{
    static const char *const classes[] = {"ranks of two hosts"};
    const struct nw_comm *comm = pairs->bench->comm;
    const size_t count = (size_t)comm->rank_count;
    const char **names = calloc(count + 1, sizeof *names);
    char(*texts)[96] = calloc(count + 1, sizeof *texts);
    const struct nw_fleet_names all = {"rank", "ranks", names, classes};
    nw_rc rc = NW_OK;

    if (names == NULL || texts == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for %zu names", count);
    for (size_t rank = 0; rank < count && rc == NW_OK; rank++) {
        snprintf(texts[rank], sizeof texts[rank], "rank %zu on %.64s", rank,
                 comm->host_names[comm->host_of_rank[rank]]);
        names[rank] = texts[rank];
    }
    if (rc == NW_OK)
        rc = tell_fleet(pairs, &judged->ranks, &judged->rank_scores, &all);
    free(texts);
    free(names);
    return rc;
}

nw_rc nw_pairs_tell_hosts(struct nw_pairs *pairs)
{
    static const char *const classes[] = {"pairs of hosts"};
    const struct nw_comm *comm = pairs->bench->comm;
    const char **names = calloc((size_t)comm->host_count + 1, sizeof *names);
    const struct nw_fleet_names all = {"host", "hosts", names, classes};
    struct nw_pairs_fleet judged;
    nw_rc rc = names != NULL ? nw_pairs_judge_hosts(pairs, &judged)
                             : nw_fail(NW_ENOMEM, "no memory for %d names", comm->host_count);

    if (rc != NW_OK) {
        free(names);
        return rc;
    }
    for (int host = 0; host < comm->host_count; host++)
        names[host] = comm->host_names[host];
    rc = tell_fleet(pairs, &judged.hosts, &judged.host_scores, &all);
    if (rc == NW_OK && judged.ranks.edge_count > 0)
        rc = tell_between_ranks(pairs, &judged);
    nw_pairs_fleet_free(&judged);
    free(names);
    return rc;
}
