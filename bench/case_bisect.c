/* Half of the hosts to the other half, all at once: over RDMA, all NICs of each; where there is
 * none, over the run's communicator, all ranks of each. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/nics_at_once.h"
#include "bench/streams.h"

static int across(int host, int host_count)
{
    return host < host_count / 2 ? host + (host_count + 1) / 2 : -1;
}

/* `times`: what all could do together, in first pairs. What is pretended shares CPUs with the rest.
 */
static void tell(struct nw_bench *bench, double alone, double times, const double *rates,
                 int groups, bool pretended)
{
    char sum_text[32], alone_text[32], times_text[32];
    double sum = 0;

    for (int group = 0; group < groups; group++)
        sum += rates[group];
    if (!isfinite(sum) || !isfinite(alone))
        return; /* a pair has failed, and that was said */
    nw_bench_finding(bench,
                     sum < NW_AT_ONCE_SHARE * alone * times && !pretended ? NW_FINDING_WARN
                                                                          : NW_FINDING_INFO,
                     "bisect-sum", "",
                     "ask for the fabric's oversubscription; look at the slowest pair of hosts",
                     "half of the hosts to the other half at once: %s GB/s, %.0f %% of %s times "
                     "the %s GB/s of the "
                     "first pair alone",
                     nw_format_gb_per_s(sum_text, sum), 100 * sum / (alone * times),
                     nw_format_sig(times_text, times, 3), nw_format_gb_per_s(alone_text, alone));
}

/* ---- over NICs ---------------------------------------------------------------------------------
 */

/* What the ports of each pair of hosts could carry, against those of the first pair: of unlike
 * NICs more than their number, or less. */
static double first_pairs(const struct nw_at_once *once, int groups)
{
    double first = 0, all = 0;

    for (size_t i = 0; i < once->round.count; i++) {
        const struct nw_nic_pair *pair = &once->round.pairs[i];
        const double bits =
            fmin(once->nics.items[pair->a].bits_per_s, once->nics.items[pair->b].bits_per_s);

        all += bits;
        first += once->group_of_pair[i] == 0 ? bits : 0;
    }
    return first > 0 && isfinite(all) ? all / first : groups;
}

/* The first pair of hosts alone, then all pairs at once; of two hosts there is nothing to tell. */
static nw_rc over_nics(struct nw_at_once *once)
{
    double *rates, alone = NAN;
    int groups;
    nw_rc rc;

    NW_TRY(nw_agree(once->bench->comm, nw_at_once_rails(once, across)));
    once->none_met = once->round.count == 0;
    if (once->none_met)
        return NW_OK;
    NW_TRY(nw_at_once_settle(once));
    rates = calloc(once->round.count, sizeof *rates);
    rc = nw_agree(once->bench->comm,
                  rates != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for the halves"));
    if (rc != NW_OK) {
        free(rates);
        return rc;
    }
    groups = nw_at_once_by_host(once);
    if (groups > 1) {
        for (size_t i = 0; i < once->round.count; i++)
            if (once->group_of_pair[i] > 0)
                once->group_of_pair[i] = -1;
        rc =
            nw_at_once_unit(once,
                            &(struct nw_nic_kind){
                                .name = "write_alone", NW_VERBS_WRITE, NW_NIC_FORTH, .ping = false},
                            1, "one pair of hosts", rates);
        alone = rates[0];
        (void)nw_at_once_by_host(once);
    }
    if (rc == NW_OK)
        rc = nw_at_once_unit(once, &nw_at_once_write, groups, "all at once", rates);
    if (rc == NW_OK && groups > 1 && !once->bench->dry)
        tell(once->bench, alone, first_pairs(once, groups), rates, groups,
             once->nics.items[0].software);
    free(rates);
    return rc;
}

/* ---- over ranks --------------------------------------------------------------------------------
 */

struct halves {
    struct nw_streams streams;
    double *rates; /* of each pair of hosts */
};

static int pair_up(struct nw_streams *streams, int most)
{
    const int hosts = streams->bench->comm->host_count;
    int groups = 0;

    nw_streams_clear(streams);
    for (int host = 0; host < hosts && groups < most; host++)
        if (across(host, hosts) >= 0)
            nw_streams_add(streams, host, across(host, hosts), groups++);
    return groups;
}

static nw_rc walk(void *user)
{
    struct halves *halves = user;
    struct nw_bench *bench = halves->streams.bench;
    const int groups = pair_up(&halves->streams, bench->comm->host_count);
    double alone = NAN;

    if (groups > 1) {
        (void)pair_up(&halves->streams, 1);
        NW_TRY(nw_streams_unit(&halves->streams, "send_alone", 1, "one pair of hosts", &alone));
        (void)pair_up(&halves->streams, groups);
    }
    NW_TRY(nw_streams_unit(&halves->streams, "send", groups, "all at once", halves->rates));
    if (groups > 1 && !bench->dry)
        tell(bench, alone, groups, halves->rates, groups,
             bench->comm->simulated || bench->comm->ops->simulated);
    return NW_OK;
}

static nw_rc over_ranks(struct nw_bench *bench)
{
    struct halves halves = {.rates = calloc((size_t)bench->comm->host_count, sizeof *halves.rates)};
    nw_rc rc = nw_streams_open(bench, "bisect", bench->plan->pair_bytes / 8 * 8, &halves.streams);

    if (rc == NW_OK && halves.rates == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for the halves");
    rc = nw_agree(bench->comm, rc);
    if (rc == NW_OK)
        rc = nw_bench_series(bench, walk, &halves);
    nw_streams_close(&halves.streams);
    free(halves.rates);
    return rc;
}

nw_rc nw_case_bisect(struct nw_bench *bench)
{
    return nw_at_once_run(bench, "bisect", 2, over_nics, over_ranks);
}
