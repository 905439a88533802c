#include "bench/nic_settle.h"

#include <math.h>
#include <stdio.h>
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
/* A dead NIC costs its deadline. */
#define ROUNDS_MOST 4

struct nw_nic_ask nw_nic_settle_most(const struct nw_nic_ask *fixed)
{
    return (struct nw_nic_ask){.qps = fixed->qps > 0 ? fixed->qps : QPS_MOST,
                               .depth = fixed->depth > 0 ? fixed->depth : DEPTH_MOST,
                               .bytes = fixed->bytes > 0 ? fixed->bytes : BYTES_MOST,
                               .gpu = fixed->gpu};
}

/* Of the pairs that work in both, the middle one: one pair's luck is not what all need. */
static double gain(const double *before, const double *after, size_t count)
{
    size_t working = 0, below;

    for (size_t i = 0; i < count; i++)
        working += before[i] > 0 && after[i] > 0;
    for (size_t i = 0; i < count; i++) {
        if (!(before[i] > 0 && after[i] > 0))
            continue;
        below = 0;
        for (size_t k = 0; k < count; k++)
            below += before[k] > 0 && after[k] > 0 &&
                     (after[k] / before[k] < after[i] / before[i] ||
                      (after[k] / before[k] == after[i] / before[i] && k < i));
        if (below == working / 2)
            return after[i] / before[i];
    }
    return 0;
}

bool nw_nic_settle_less(const struct nw_nic_ask *fixed, struct nw_nic_ask *most)
{
    if (fixed->bytes == 0 && most->bytes > BYTES_FIRST)
        most->bytes /= 4;
    else if (fixed->qps == 0 && most->qps > 1)
        most->qps /= 4;
    else
        return false;
    return true;
}

static bool raise_qps(struct nw_nic_ask *ask, const struct nw_nic_ask *most)
{
    return (ask->qps *= 2) <= most->qps;
}

static bool raise_depth(struct nw_nic_ask *ask, const struct nw_nic_ask *most)
{
    return (ask->depth *= 2) <= most->depth;
}

static bool raise_bytes(struct nw_nic_ask *ask, const struct nw_nic_ask *most)
{
    return (ask->bytes *= 4) <= most->bytes;
}

nw_rc nw_nic_settle_by(const struct nw_nic_trial *trial, struct nw_nic_ask *ask_out)
{
    bool (*const raises[])(struct nw_nic_ask *,
                           const struct nw_nic_ask *) = {raise_qps, raise_bytes, raise_depth};
    const struct nw_nic_ask most =
        trial->most.qps > 0 ? trial->most : nw_nic_settle_most(&trial->fixed);
    const bool open[] = {trial->fixed.qps == 0, trial->fixed.bytes == 0, trial->fixed.depth == 0};
    struct nw_nic_ask best = {.qps = open[0] ? 1 : trial->fixed.qps,
                              .bytes = open[1] ? BYTES_FIRST : trial->fixed.bytes,
                              .depth = open[2] ? DEPTH_FIRST : trial->fixed.depth,
                              .gpu = trial->fixed.gpu};
    double *before = trial->rates, *after = trial->rates + trial->count;
    nw_rc rc = NW_OK;

    if (open[0] || open[1] || open[2])
        rc = trial->try(trial->user, &best, before);
    for (size_t i = 0; i < 3; i++) {
        struct nw_nic_ask ask = best;

        while (rc == NW_OK && open[i] && raises[i](&ask, &most)) {
            rc = trial->try(trial->user, &ask, after);
            if (rc != NW_OK || gain(before, after, trial->count) < GAIN)
                break;
            best = ask;
            memcpy(before, after, trial->count * sizeof *before);
        }
    }
    if (rc == NW_OK)
        *ask_out = best;
    return rc;
}

static nw_rc try_links(void *user, const struct nw_nic_ask *ask, double *rates)
{
    return nw_nic_probe(user, ask->qps, ask->depth, ask->bytes, PROBE_NS, rates);
}

static bool any_works(const struct nw_nic_links *links, size_t count)
{
    for (size_t pair = 0; pair < count; pair++)
        if (nw_nic_rc(links, pair) == NW_OK)
            return true;
    return false;
}

struct settling {
    struct nw_bench *bench;
    const struct nw_nics *nics;
    struct nw_nic_ask fixed;
    char why[1024]; /* rank 0: of the first that failed; "": nothing did */
};

static void note_why(struct settling *settling, const struct nw_nic_links *links)
{
    if (settling->why[0] == '\0')
        snprintf(settling->why, sizeof settling->why, "%s", nw_nic_why(links, 0));
}

/* With the most that opens on a pair of the round; *links_out is NULL where nothing does. */
static nw_rc open_most(struct settling *settling, const struct nw_nic_round *round,
                       struct nw_nic_ask *most_out, struct nw_nic_links **links_out)
{
    *most_out = nw_nic_settle_most(&settling->fixed);
    *links_out = NULL;
    do {
        struct nw_nic_links *links;

        NW_TRY(nw_nic_links_open(settling->bench, settling->nics, round, most_out, &links));
        if (any_works(links, round->count)) {
            *links_out = links;
            return NW_OK;
        }
        note_why(settling, links);
        nw_nic_links_close(links);
    } while (nw_nic_settle_less(&settling->fixed, most_out));
    return NW_OK;
}

static nw_rc settle_links(struct settling *settling, struct nw_nic_links *links,
                          struct nw_nic_trial *trial, bool *done_out, struct nw_nic_ask *ask_out)
{
    struct nw_comm *comm = settling->bench->comm;
    nw_rc rc;

    trial->user = links;
    trial->rates = calloc(2 * trial->count + 1, sizeof *trial->rates);
    rc = nw_agree(comm, trial->rates != NULL
                            ? NW_OK
                            : nw_fail(NW_ENOMEM, "no memory for %zu rates", trial->count));
    if (rc == NW_OK)
        rc = nw_nic_settle_by(trial, ask_out);
    free(trial->rates);
    NW_TRY(rc);
    *done_out = any_works(links, trial->count);
    if (!*done_out)
        note_why(settling, links);
    return NW_OK;
}

static nw_rc settle_on(struct settling *settling, const struct nw_nic_round *round, bool *done_out,
                       struct nw_nic_ask *ask_out)
{
    struct nw_nic_trial trial = {.try = try_links, .count = round->count, .fixed = settling->fixed};
    struct nw_nic_links *links;
    nw_rc rc;

    *done_out = false;
    NW_TRY(open_most(settling, round, &trial.most, &links));
    if (links == NULL)
        return NW_OK;
    rc = settle_links(settling, links, &trial, done_out, ask_out);
    nw_nic_links_close(links);
    return rc;
}

/* ---- as an interrupted run had it --------------------------------------------------------------
 */

/* A file's numbers: only what a plan could have asked for. */
#define KEPT_QPS_MOST   64
#define KEPT_DEPTH_MOST 8192
#define KEPT_BYTES_MOST 1000000000

static bool is_stream(const struct nw_record *record, const char *case_name, bool gpu)
{
    return strcmp(record->case_name, case_name) == 0 && strcmp(record->lane, "verbs") == 0 &&
           strcmp(record->memory, gpu ? "gpu" : "host") == 0 && record->rc == NW_OK &&
           record->bytes > NW_NIC_SMALL_BYTES && record->bytes % NW_NIC_WORD == 0 &&
           record->bytes <= KEPT_BYTES_MOST && record->qps >= 1 && record->qps <= KEPT_QPS_MOST &&
           record->depth >= 1 && record->depth <= KEPT_DEPTH_MOST;
}

/* Where many send to one (no peer_a), each has its share of the queue pairs. */
static int stream_qps(const struct nw_record *record)
{
    const uint64_t senders = record->peer_a < 0 && record->count > 0 ? record->count : 1;

    return senders < KEPT_QPS_MOST && (uint64_t)record->qps * senders < KEPT_QPS_MOST
               ? record->qps * (int)senders
               : KEPT_QPS_MOST;
}

bool nw_nic_settle_kept(const struct nw_record *records, size_t count, const char *case_name,
                        bool gpu, struct nw_nic_ask *ask_out)
{
    bool found = false;

    for (size_t i = 0; i < count; i++) {
        const struct nw_record *record = &records[i];

        /* a NIC that has less depth says less */
        if (!is_stream(record, case_name, gpu) || (found && record->depth <= ask_out->depth))
            continue;
        *ask_out = (struct nw_nic_ask){
            .qps = stream_qps(record), .depth = record->depth, .bytes = record->bytes, .gpu = gpu};
        found = true;
    }
    return found;
}

/* Rank 0 has the records. */
static nw_rc share_kept(struct nw_bench *bench, const char *case_name,
                        const struct nw_nic_ask *fixed, bool *found_out, struct nw_nic_ask *ask_out)
{
    struct nw_nic_ask kept = {0};

    if (bench->comm->rank == 0)
        (void)nw_nic_settle_kept(bench->events->done, bench->events->done_count, case_name,
                                 fixed->gpu, &kept);
    NW_TRY(bench->comm->ops->share(bench->comm, &kept, sizeof kept, 0));
    *found_out = kept.qps > 0;
    if (*found_out)
        *ask_out = (struct nw_nic_ask){.qps = fixed->qps > 0 ? fixed->qps : kept.qps,
                                       .depth = fixed->depth > 0 ? fixed->depth : kept.depth,
                                       .bytes = fixed->bytes > 0 ? fixed->bytes : kept.bytes,
                                       .gpu = fixed->gpu};
    return NW_OK;
}

nw_rc nw_nic_settle(struct nw_bench *bench, const char *case_name, const struct nw_nics *nics,
                    const struct nw_nic_round *rounds, size_t round_count,
                    struct nw_nic_ask *ask_out)
{
    struct settling settling = {.bench = bench,
                                .nics = nics,
                                .fixed = {.qps = bench->plan->nic_qps,
                                          .depth = bench->plan->nic_depth,
                                          .bytes = bench->plan->nic_bytes,
                                          .gpu = ask_out->gpu}};
    const struct nw_nic_ask *fixed = &settling.fixed;
    bool done = false;

    if (fixed->qps > 0 && fixed->depth > 0 && fixed->bytes > 0) {
        *ask_out = *fixed;
        return NW_OK;
    }
    NW_TRY(share_kept(bench, case_name, fixed, &done, ask_out));
    if (done)
        return NW_OK;
    nw_bench_status_write(bench->events->status,
                          nw_now_ns() + (uint64_t)(4 * nw_bench_margin_ns(bench)),
                          "RDMA: queue pairs, depth and size that suit");
    *ask_out = (struct nw_nic_ask){.qps = fixed->qps > 0 ? fixed->qps : 1,
                                   .depth = fixed->depth > 0 ? fixed->depth : DEPTH_FIRST,
                                   .bytes = fixed->bytes > 0 ? fixed->bytes : BYTES_FIRST,
                                   .gpu = fixed->gpu};
    for (size_t i = 0; i < round_count && i < ROUNDS_MOST && !done; i++)
        NW_TRY(settle_on(&settling, &rounds[i], &done, ask_out));
    if (settling.why[0] != '\0')
        nw_bench_finding(bench, NW_FINDING_WARN, "nic-settle", "",
                         "mend that, or set --qps, --nic-bytes and --tx-depth",
                         "what suits a stream could not be tried out as meant, so rates may be "
                         "too low: %s",
                         settling.why);
    return NW_OK;
}
