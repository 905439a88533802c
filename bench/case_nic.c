/* Each NIC against those of a peer host over RDMA, one pair of NICs of two hosts at a time, all
 * pairs of hosts at once: latencies, message rate, and streams each way, both ways, by reads and by
 * sends; where ranks have GPUs, from GPU memory to GPU memory as well. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/nic_settle.h"
#include "bench/nics_judge.h"

static const struct nw_nic_kind kinds[] = {
    {.name = "write_latency",
     NW_VERBS_WRITE,
     NW_NIC_FORTH,
     .ping = true,
     .small = true,
     .host_only = true},
    {.name = "read_latency", NW_VERBS_READ, NW_NIC_FORTH, .ping = true, .small = true},
    {.name = "send_latency", NW_VERBS_SEND, NW_NIC_FORTH, .ping = true, .small = true},
    {.name = "write_rate", NW_VERBS_WRITE, NW_NIC_FORTH, .small = true},
    {.name = "write", NW_VERBS_WRITE, NW_NIC_FORTH, .off_rail = true},
    {.name = "write", NW_VERBS_WRITE, NW_NIC_BACK, .off_rail = true},
    {.name = "write_both", NW_VERBS_WRITE, NW_NIC_FORTH | NW_NIC_BACK},
    {.name = "read", NW_VERBS_READ, NW_NIC_FORTH},
    {.name = "send", NW_VERBS_SEND, NW_NIC_FORTH},
};
#define KINDS (sizeof kinds / sizeof *kinds)

struct nic_case {
    struct nw_bench *bench;
    struct nw_nics nics;
    struct nw_nic_rounds rounds;
    struct nw_nic_ask ask;
    struct nw_record *records; /* one a pair of the round */
    const struct nw_record **kept;
    size_t *pair_of;               /* of each record */
    bool *is_told;                 /* of each pair of the round: that it failed */
    struct nw_nic_stream *streams; /* rank 0's */
    size_t stream_count;
};

/* ---- names -------------------------------------------------------------------------------------
 */

static const char *nic_text(const struct nic_case *nic, int index, char text[192])
{
    const struct nw_nic *of = &nic->nics.items[index];

    snprintf(text, 192, "%s %s", nic->bench->comm->host_names[of->host], of->name);
    return text;
}

static const char *pair_text(const struct nic_case *nic, int from, int to, char text[400])
{
    char a[192], b[192];

    snprintf(text, 400, "%s to %s", nic_text(nic, from, a), nic_text(nic, to, b));
    return text;
}

static uint64_t bytes_of(const struct nic_case *nic, const struct nw_nic_kind *kind)
{
    return kind->small ? NW_NIC_SMALL_BYTES : nic->ask.bytes;
}

static void identify(const struct nic_case *nic, const struct nw_nic_pair *pair,
                     const struct nw_nic_kind *kind, struct nw_record *record)
{
    const struct nw_comm *comm = nic->bench->comm;
    const bool back = kind->ways == NW_NIC_BACK;
    const struct nw_nic *from = &nic->nics.items[back ? pair->b : pair->a];
    const struct nw_nic *to = &nic->nics.items[back ? pair->a : pair->b];

    nw_bench_identity(nic->bench, "nic", record);
    snprintf(record->collective, sizeof record->collective, "%s", kind->name);
    snprintf(record->lane, sizeof record->lane, "verbs");
    snprintf(record->dtype, sizeof record->dtype, "none");
    snprintf(record->memory, sizeof record->memory, "%s", nic->ask.gpu ? "gpu" : "host");
    record->rank_count = 2;
    record->host_count = 2;
    record->bytes = bytes_of(nic, kind);
    record->count = 1;
    record->peer_a = from->owner;
    record->peer_b = to->owner;
    snprintf(record->host_a, sizeof record->host_a, "%s", comm->host_names[from->host]);
    snprintf(record->host_b, sizeof record->host_b, "%s", comm->host_names[to->host]);
    snprintf(record->nic_a, sizeof record->nic_a, "%s", from->name);
    snprintf(record->nic_b, sizeof record->nic_b, "%s", to->name);
}

/* ---- a record ----------------------------------------------------------------------------------
 */

static double ceiling_of(const struct nic_case *nic, const struct nw_nic_pair *pair, uint32_t mtu)
{
    return fmin(nw_nic_ceiling(&nic->nics.items[pair->a], mtu),
                nw_nic_ceiling(&nic->nics.items[pair->b], mtu));
}

static void add_settled(const struct nic_case *nic, const struct nw_nic_links *links, size_t index,
                        const struct nw_nic_pair *pair, const struct nw_nic_kind *kind,
                        struct nw_record *record)
{
    const struct nw_nic_settled *settled = nw_nic_settled(links, index);
    const bool back = kind->ways == NW_NIC_BACK;

    record->mtu_bytes = settled->mtu_bytes;
    snprintf(record->gid_a, sizeof record->gid_a, "%s", back ? settled->gid_b : settled->gid_a);
    snprintf(record->gid_b, sizeof record->gid_b, "%s", back ? settled->gid_a : settled->gid_b);
    if (nic->ask.gpu)
        snprintf(record->registered, sizeof record->registered, "%s", settled->memory);
    record->qps = kind->ping ? 1 : nic->ask.qps;
    record->depth = kind->ping                        ? 1
                    : settled->depth < nic->ask.depth ? settled->depth
                                                      : nic->ask.depth;
    if (!kind->ping && record->time_ns.median > 0)
        record->messages_per_s = 1e9 / record->time_ns.median;
    if (!kind->small && settled->mtu_bytes > 0)
        record->ceiling_bytes_per_s = ceiling_of(nic, pair, settled->mtu_bytes);
}

static nw_rc add_failure(const struct nic_case *nic, const struct nw_nic_links *links, size_t index,
                         const struct nw_nic_pair *pair, struct nw_record *record)
{
    char where[400];

    nic->bench->failed = true;
    return nw_findings_add(&record->warnings, NW_FINDING_FAIL, "nic-failed",
                           pair_text(nic, pair->a, pair->b, where), NULL, "%s",
                           nw_nic_why(links, index));
}

static void keep_stream(struct nic_case *nic, const struct nw_nic_kind *kind,
                        const struct nw_nic_pair *pair, const struct nw_record *record)
{
    const bool back = kind->ways == NW_NIC_BACK;

    if (nic->streams == NULL || strcmp(kind->name, "write") != 0 ||
        !(record->algbw_bytes_per_s > 0))
        return;
    nic->streams[nic->stream_count++] =
        (struct nw_nic_stream){.from = back ? pair->b : pair->a,
                               .to = back ? pair->a : pair->b,
                               .gpu = nic->ask.gpu,
                               .bytes_per_s = record->algbw_bytes_per_s,
                               .ceiling_bytes_per_s = record->ceiling_bytes_per_s};
}

/* ---- a unit ------------------------------------------------------------------------------------
 */

static bool takes_part(const struct nic_case *nic, const struct nw_nic_pair *pair,
                       const struct nw_nic_kind *kind)
{
    return (pair->rail != NW_RAIL_NONE || kind->off_rail) && !(nic->ask.gpu && kind->host_only);
}

/* A failed pair is told once, with its first measurement. */
static nw_rc hand_out(struct nic_case *nic, const struct nw_nic_links *links,
                      const struct nw_nic_pair *pairs, const struct nw_nic_kind *kind, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct nw_record *record = &nic->records[i];
        const size_t pair = nic->pair_of[i];
        const bool failed = nw_nic_rc(links, pair) != NW_OK;

        add_settled(nic, links, pair, &pairs[pair], kind, record);
        if (failed && nic->is_told[pair])
            continue;
        if (failed)
            NW_TRY(add_failure(nic, links, pair, &pairs[pair], record));
        nic->is_told[pair] = failed;
        nw_bench_record(nic->bench, record);
        keep_stream(nic, kind, &pairs[pair], record);
    }
    return NW_OK;
}

struct running { /* a round */
    struct nic_case *nic;
    const struct nw_nic_round *round;
    struct nw_nic_links *links; /* NULL: not opened yet */
    int *group_of_pair;
};

static nw_rc open_links(struct running *running)
{
    struct nic_case *nic = running->nic;

    if (running->links != NULL)
        return NW_OK;
    memset(nic->is_told, 0, running->round->count * sizeof *nic->is_told);
    return nw_nic_links_open(nic->bench, &nic->nics, running->round, &nic->ask, &running->links);
}

static nw_rc measure(struct running *running, const struct nw_nic_kind *kind, size_t count,
                     const char *title)
{
    struct nic_case *nic = running->nic;
    const struct nw_nic_task task = {.op = kind->op,
                                     .ping = kind->ping,
                                     .ways = kind->ways,
                                     .bytes = bytes_of(nic, kind),
                                     .qps = kind->ping ? 1 : nic->ask.qps,
                                     .depth = nic->ask.depth,
                                     .title = title,
                                     .group_of_pair = running->group_of_pair,
                                     .group_count = (int)count};
    nw_rc rc;

    NW_TRY(open_links(running));
    rc = nw_nic_measure(running->links, &task, nic->records);
    if (rc == NW_OK)
        rc = nw_agree(nic->bench->comm,
                      hand_out(nic, running->links, running->round->pairs, kind, count));
    return rc;
}

static nw_rc unit(struct running *running, size_t number, const struct nw_nic_kind *kind)
{
    struct nic_case *nic = running->nic;
    char title[128];
    struct nw_unit unit = {.identities = nic->records, .title = title};
    bool go;
    nw_rc rc = NW_OK;

    for (size_t pair = 0; pair < running->round->count; pair++) {
        running->group_of_pair[pair] = -1;
        if (!takes_part(nic, &running->round->pairs[pair], kind))
            continue;
        running->group_of_pair[pair] = (int)unit.identity_count;
        nic->pair_of[unit.identity_count] = pair;
        identify(nic, &running->round->pairs[pair], kind, &nic->records[unit.identity_count++]);
    }
    if (unit.identity_count == 0)
        return NW_OK;
    snprintf(title, sizeof title, "nic round %zu of %zu, %s of %s memory", number + 1,
             nic->rounds.count, kind->name, nic->ask.gpu ? "GPU" : "host");
    memset(nic->kept, 0, unit.identity_count * sizeof(const struct nw_record *));
    NW_TRY(nw_bench_begin(nic->bench, &unit, &go, nic->kept));
    for (size_t i = 0; i < unit.identity_count; i++)
        if (nic->kept[i] != NULL)
            keep_stream(nic, kind, &running->round->pairs[nic->pair_of[i]], nic->kept[i]);
    if (go) {
        rc = measure(running, kind, unit.identity_count, title);
        nw_bench_end(nic->bench, &unit);
    }
    for (size_t i = 0; i < unit.identity_count; i++)
        nw_record_free(&nic->records[i]);
    return rc;
}

static nw_rc run_round(struct nic_case *nic, size_t number)
{
    struct running running = {.nic = nic, .round = &nic->rounds.items[number]};
    nw_rc rc;

    running.group_of_pair = calloc(running.round->count, sizeof *running.group_of_pair);
    rc = nw_agree(nic->bench->comm, running.group_of_pair != NULL
                                        ? NW_OK
                                        : nw_fail(NW_ENOMEM, "no memory for %zu pairs of NICs",
                                                  running.round->count));
    for (size_t i = 0; i < KINDS && rc == NW_OK; i++)
        rc = unit(&running, number, &kinds[i]);
    nw_nic_links_close(running.links);
    free(running.group_of_pair);
    return rc;
}

/* ---- afterwards --------------------------------------------------------------------------------
 */

static void tell_stream(const struct nic_case *nic, const struct nw_nic_verdict *verdict, size_t i)
{
    const struct nw_nic_stream *stream = &nic->streams[i];
    char where[400], rate[32], ceiling[32];

    pair_text(nic, stream->from, stream->to, where);
    if (verdict->is_slow[i] && !stream->gpu && !verdict->nic_is_slow[stream->from] &&
        !verdict->nic_is_slow[stream->to])
        nw_bench_finding(nic->bench, NW_FINDING_WARN, "nic-pair-slow", where,
                         "look at cable, switch port, PCIe link of both NICs and congestion "
                         "settings (PFC, ECN)",
                         "RDMA writes at %s GB/s, where the ports' rate leaves room for %s GB/s",
                         nw_format_gb_per_s(rate, stream->bytes_per_s),
                         nw_format_gb_per_s(ceiling, stream->ceiling_bytes_per_s));
    if (verdict->other_way[i] < NW_NIC_LIKE && !stream->gpu &&
        !nic->nics.items[stream->from].software && !nic->nics.items[stream->to].software)
        nw_bench_finding(nic->bench, NW_FINDING_WARN, "nic-asymmetric", where,
                         "look at error counters of both ports (nodeworth check) and the cable",
                         "RDMA writes reach %.0f %% of what they do the other way",
                         100 * verdict->other_way[i]);
    if (verdict->gpu_share[i] < NW_NIC_LIKE)
        nw_bench_finding(
            nic->bench, NW_FINDING_WARN, "gdr-slow", where,
            "take the NIC that is nearest to the GPU (nodeworth topo); turn ACS off on "
            "the switches between them, or IOMMU pass-through on",
            "from GPU memory RDMA reaches %.0f %% of what it does from host memory",
            100 * verdict->gpu_share[i]);
}

static void tell_nic(const struct nic_case *nic, int index)
{
    char where[192], rate[32];

    nw_bench_finding(nic->bench, NW_FINDING_WARN, "nic-slow", nic_text(nic, index, where),
                     "look at its PCIe link (nodeworth check), cable and switch port",
                     "most RDMA streams of this NIC are below %.0f %% of what its port of %s Gb/s "
                     "has room for",
                     100 * NW_NIC_SHARE,
                     nw_format_sig(rate, nic->nics.items[index].bits_per_s / 1e9, 3));
}

static nw_rc judge(const struct nic_case *nic)
{
    struct nw_nic_verdict verdict;

    if (nic->streams == NULL)
        return NW_OK;
    NW_TRY(nw_nics_judge(nic->streams, nic->stream_count, (int)nic->nics.count, &verdict));
    for (int i = 0; i < (int)nic->nics.count; i++)
        if (verdict.nic_is_slow[i])
            tell_nic(nic, i);
    for (size_t i = 0; i < nic->stream_count; i++)
        tell_stream(nic, &verdict, i);
    nw_nic_verdict_free(&verdict);
    return NW_OK;
}

/* ---- the case ----------------------------------------------------------------------------------
 */

static nw_rc run_memory(struct nic_case *nic, bool gpu)
{
    nic->ask = (struct nw_nic_ask){.gpu = gpu};
    if (!nic->bench->dry)
        NW_TRY(nw_nic_settle(nic->bench, "nic", &nic->nics, nic->rounds.items, nic->rounds.count,
                             &nic->ask));
    for (size_t i = 0; i < nic->rounds.count; i++)
        NW_TRY(run_round(nic, i));
    return NW_OK;
}

static size_t count_pairs(const struct nic_case *nic)
{
    size_t count = 0;

    for (size_t i = 0; i < nic->rounds.count; i++)
        count += nic->rounds.items[i].count;
    return count;
}

static nw_rc prepare(struct nic_case *nic)
{
    const struct nw_bench *bench = nic->bench;
    const size_t hosts = (size_t)bench->comm->host_count;

    NW_TRY(nw_nic_rounds_of_pairs(nic->nics.items, nic->nics.count, (int)hosts,
                                  strcmp(bench->plan->nic_pairs, "all") == 0, &nic->rounds));
    nic->records = calloc(hosts, sizeof *nic->records);
    nic->kept = calloc(hosts, sizeof *nic->kept);
    nic->pair_of = calloc(hosts, sizeof *nic->pair_of);
    nic->is_told = calloc(hosts, sizeof *nic->is_told);
    if (bench->comm->rank == 0 && !bench->dry)
        nic->streams = calloc(count_pairs(nic) * 4 + 1, sizeof *nic->streams);
    if (nic->records == NULL || nic->kept == NULL || nic->pair_of == NULL || nic->is_told == NULL ||
        (bench->comm->rank == 0 && !bench->dry && nic->streams == NULL))
        return nw_fail(NW_ENOMEM, "no memory for the NICs of %zu hosts", hosts);
    return NW_OK;
}

static nw_rc run(struct nic_case *nic)
{
    NW_TRY(nw_agree(nic->bench->comm, prepare(nic)));
    if (nic->rounds.count == 0) {
        nw_bench_finding(nic->bench, NW_FINDING_INFO, "no-nic-pairs", "",
                         "two hosts or more, with RDMA of one kind",
                         "there are no two hosts whose NICs could meet");
        return NW_OK;
    }
    if (!nic->bench->dry)
        nw_nic_tell_rails(nic->bench, &nic->nics, nic->rounds.items[0].pairs,
                          nic->rounds.items[0].count);
    NW_TRY(run_memory(nic, false));
    if (nic->bench->comm->dev != NULL)
        NW_TRY(run_memory(nic, true));
    return nw_agree(nic->bench->comm, judge(nic));
}

nw_rc nw_case_nic(struct nw_bench *bench)
{
    struct nic_case nic = {.bench = bench};
    nw_rc rc = NW_OK;

    NW_TRY(nw_nics_open(bench, &nic.nics));
    if (nw_nics_are_here(bench, &nic.nics))
        rc = run(&nic);
    free(nic.streams);
    free(nic.is_told);
    free(nic.pair_of);
    free(nic.kept);
    free(nic.records);
    nw_nic_rounds_free(&nic.rounds);
    nw_nics_close(&nic.nics);
    return rc;
}
