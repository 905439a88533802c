#include "bench/nic_settle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/agree.h"

/* perftest's size and depth are where it begins. A single queue pair may not fill 400 Gb/s. */
#define QPS_MOST    16
#define DEPTH_FIRST 128
#define DEPTH_MOST  512
#define BYTES_FIRST (64u << 10)
#define BYTES_MOST  (1u << 20)
/* Less is noise. */
#define GAIN     1.02
#define PROBE_NS 10e6

struct nw_nic_ask nw_nic_settle_most(const struct nw_nic_ask *fixed)
{
    return (struct nw_nic_ask){.qps = fixed->qps > 0 ? fixed->qps : QPS_MOST,
                               .depth = fixed->depth > 0 ? fixed->depth : DEPTH_MOST,
                               .bytes = fixed->bytes > 0 ? fixed->bytes : BYTES_MOST,
                               .gpu = fixed->gpu};
}

/* Of the pairs that work in both, the one that gains most: the others may be at their wire's rate.
 */
static double gain(const double *before, const double *after, size_t count)
{
    double most = 0;

    for (size_t i = 0; i < count; i++)
        if (before[i] > 0 && after[i] > 0)
            most = fmax(most, after[i] / before[i]);
    return most;
}

static bool raise_qps(struct nw_nic_ask *ask)
{
    return (ask->qps *= 2) <= QPS_MOST;
}

static bool raise_depth(struct nw_nic_ask *ask)
{
    return (ask->depth *= 2) <= DEPTH_MOST;
}

static bool raise_bytes(struct nw_nic_ask *ask)
{
    return (ask->bytes *= 4) <= BYTES_MOST;
}

nw_rc nw_nic_settle_by(const struct nw_nic_trial *trial, struct nw_nic_ask *ask_out)
{
    bool (*const raises[])(struct nw_nic_ask *) = {raise_qps, raise_bytes, raise_depth};
    const bool open[] = {trial->fixed.qps == 0, trial->fixed.bytes == 0, trial->fixed.depth == 0};
    struct nw_nic_ask best = {.qps = open[0] ? 1 : trial->fixed.qps,
                              .bytes = open[1] ? BYTES_FIRST : trial->fixed.bytes,
                              .depth = open[2] ? DEPTH_FIRST : trial->fixed.depth,
                              .gpu = trial->fixed.gpu};
    double *before = calloc(trial->count + 1, sizeof *before);
    double *after = calloc(trial->count + 1, sizeof *after);
    nw_rc rc = before != NULL && after != NULL
                   ? NW_OK
                   : nw_fail(NW_ENOMEM, "no memory for %zu rates", trial->count);

    if (rc == NW_OK && (open[0] || open[1] || open[2]))
        rc = trial->try(trial->user, &best, before);
    for (size_t i = 0; i < 3; i++) {
        struct nw_nic_ask ask = best;

        while (rc == NW_OK && open[i] && raises[i](&ask)) {
            rc = trial->try(trial->user, &ask, after);
            if (rc != NW_OK || gain(before, after, trial->count) < GAIN)
                break;
            best = ask;
            memcpy(before, after, trial->count * sizeof *before);
        }
    }
    free(before);
    free(after);
    if (rc == NW_OK)
        *ask_out = best;
    return rc;
}

static nw_rc try_links(void *user, const struct nw_nic_ask *ask, double *rates)
{
    return nw_nic_probe(user, ask->qps, ask->depth, ask->bytes, PROBE_NS, rates);
}

nw_rc nw_nic_settle(struct nw_bench *bench, const struct nw_nics *nics,
                    const struct nw_nic_round *round, struct nw_nic_ask *ask_out)
{
    const struct nw_nic_ask fixed = {.qps = bench->plan->nic_qps,
                                     .depth = bench->plan->nic_depth,
                                     .bytes = bench->plan->nic_bytes / NW_NIC_WORD * NW_NIC_WORD,
                                     .gpu = ask_out->gpu};
    const struct nw_nic_ask most = nw_nic_settle_most(&fixed);
    struct nw_nic_trial trial = {.try = try_links, .count = round->count, .fixed = fixed};
    struct nw_nic_links *links;
    nw_rc rc;

    if (fixed.qps > 0 && fixed.depth > 0 && fixed.bytes > 0) {
        *ask_out = fixed;
        return NW_OK;
    }
    nw_bench_status_write(bench->events->status,
                          nw_now_ns() + (uint64_t)(4 * nw_bench_margin_ns(bench)),
                          "RDMA: queue pairs, depth and size that suit");
    NW_TRY(nw_nic_links_open(bench, nics, round, &most, &links));
    trial.user = links;
    rc = nw_nic_settle_by(&trial, ask_out);
    nw_nic_links_close(links);
    return rc;
}
