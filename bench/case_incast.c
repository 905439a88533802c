/* Each host in turn is the one that all others send to: over RDMA into its first NIC; where there
 * is none, over the run's communicator. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/nics_at_once.h"
#include "bench/streams.h"

/* What the senders together put into one; each has at least a page. */
#define BYTES_AT_ONCE (64u << 20)
#define BYTES_LEAST   4096u

/* ---- over NICs ---------------------------------------------------------------------------------
 */

/* The counterpart of `target` on another host, else that host's first; -1: none can meet it. */
static int sender(const struct nw_at_once *once, int other, int target, struct nw_nic_pair *rails)
{
    const struct nw_nic *nics = once->nics.items;
    const size_t count = nw_nic_rails(nics, once->nics.count, other, nics[target].host, rails);
    int first = -1;

    for (size_t i = 0; i < count; i++)
        if (rails[i].b == target)
            return rails[i].a;
    for (int place = 0; first < 0; place++) {
        const int from = nw_at_once_nic(once, other, place);

        if (from < 0)
            break;
        if (nics[from].infiniband == nics[target].infiniband)
            first = from;
    }
    return first;
}

static nw_rc add_senders(struct nw_at_once *once, int target)
{
    const struct nw_comm *comm = once->bench->comm;
    struct nw_nic_pair *rails = calloc(once->nics.count + 1, sizeof *rails);
    nw_rc rc = nw_at_once_begin(once, (size_t)comm->host_count);

    if (rc == NW_OK && rails == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for %zu NICs", once->nics.count);
    for (int other = 0; rc == NW_OK && target >= 0 && other < comm->host_count; other++) {
        const int from =
            other != once->nics.items[target].host ? sender(once, other, target, rails) : -1;

        if (from >= 0)
            nw_at_once_add(once, from, target);
    }
    free(rails);
    return rc;
}

static void tell_nic(const struct nw_at_once *once, int target, double rate)
{
    const struct nw_nic *nic = &once->nics.items[target];
    const double ceiling = nw_nic_ceiling(nic, nw_nic_settled(once->links, 0)->mtu_bytes);
    char text[32];

    if (rate < NW_AT_ONCE_SHARE * ceiling)
        nw_bench_finding(once->bench, NW_FINDING_WARN, "incast-slow",
                         once->bench->comm->host_names[nic->host],
                         "look at flow control of NIC and switch (PFC, ECN, DCQCN) and at "
                         "discarded packets of the port",
                         "%zu hosts at once reach %s GB/s into one NIC, %.0f %% of what it has "
                         "room for",
                         once->round.count, nw_format_gb_per_s(text, rate), 100 * rate / ceiling);
}

static nw_rc into_nic(struct nw_at_once *once, int host)
{
    const struct nw_comm *comm = once->bench->comm;
    const int target = nw_at_once_nic(once, host, 0);
    double rate = NAN;
    char what[96];

    NW_TRY(nw_agree(once->bench->comm, add_senders(once, target)));
    if (once->round.count == 0)
        return NW_OK;
    once->none_met = false;
    NW_TRY(nw_at_once_settle(once));
    if (once->stream_qps == 0)
        once->stream_qps = once->ask.qps;
    if (once->bench->plan->nic_qps == 0) /* what fills the NIC, spread over those who send */
        once->ask.qps = (once->stream_qps + (int)once->round.count - 1) / (int)once->round.count;
    snprintf(what, sizeof what, "to %s", comm->host_names[host]);
    NW_TRY(nw_at_once_unit(once, &nw_at_once_write, 1, what, &rate));
    if (!once->bench->dry && once->links != NULL && once->round.count > 1)
        tell_nic(once, target, rate);
    return NW_OK;
}

static nw_rc over_nics(struct nw_at_once *once)
{
    const int hosts = once->bench->comm->host_count;

    once->into_one = once->none_met = true;
    for (int host = 0; host < hosts; host++)
        NW_TRY(into_nic(once, host));
    return NW_OK;
}

/* ---- over ranks --------------------------------------------------------------------------------
 */

static void tell_host(struct nw_bench *bench, int host, double alone, double rate)
{
    char text[32], alone_text[32];

    if (rate < NW_AT_ONCE_SHARE * alone && !bench->comm->simulated && !bench->comm->ops->simulated)
        nw_bench_finding(bench, NW_FINDING_WARN, "incast-slow", bench->comm->host_names[host],
                         "look at flow control of NIC and switch and at discarded packets "
                         "(ethtool -S; nstat TcpRetransSegs)",
                         "%d hosts at once reach %s GB/s into one, %.0f %% of the %s GB/s that one "
                         "of them reaches alone",
                         bench->comm->host_count - 1, nw_format_gb_per_s(text, rate),
                         100 * rate / alone, nw_format_gb_per_s(alone_text, alone));
}

/* One host alone first, what that reaches is what all together are held to. */
static nw_rc into_host(struct nw_streams *streams, int host)
{
    struct nw_bench *bench = streams->bench;
    const int hosts = bench->comm->host_count;
    double alone = NAN, rate = NAN;
    char what[96];

    snprintf(what, sizeof what, "to %s", bench->comm->host_names[host]);
    nw_streams_clear(streams);
    nw_streams_add(streams, (host + 1) % hosts, host, 0);
    if (hosts > 2)
        NW_TRY(nw_streams_unit(streams, "send_alone", 1, what, &alone));
    for (int other = 0; other < hosts; other++)
        if (other != host)
            nw_streams_add(streams, other, host, 0);
    NW_TRY(nw_streams_unit(streams, "send", 1, what, &rate));
    if (!bench->dry)
        tell_host(bench, host, alone, rate);
    return NW_OK;
}

static nw_rc walk(void *user)
{
    struct nw_streams *streams = user;

    for (int host = 0; host < streams->bench->comm->host_count; host++)
        NW_TRY(into_host(streams, host));
    return NW_OK;
}

static nw_rc over_ranks(struct nw_bench *bench)
{
    const uint64_t senders = (uint64_t)bench->comm->host_count - 1;
    const uint64_t most =
        BYTES_AT_ONCE / senders > BYTES_LEAST ? BYTES_AT_ONCE / senders : BYTES_LEAST;
    const uint64_t bytes = bench->plan->pair_bytes < most ? bench->plan->pair_bytes : most;
    struct nw_streams streams;
    nw_rc rc = nw_agree(bench->comm, nw_streams_open(bench, "incast", bytes / 8 * 8, &streams));

    if (rc == NW_OK)
        rc = nw_bench_series(bench, walk, &streams);
    nw_streams_close(&streams);
    return rc;
}

nw_rc nw_case_incast(struct nw_bench *bench)
{
    return nw_at_once_run(bench, "incast", 2, over_nics, over_ranks);
}
