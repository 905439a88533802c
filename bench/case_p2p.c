/* Copies between the GPUs of a host, each ordered pair on its own: by the copy engines and by a
 * kernel, writing, reading and both ways at once, 8 bytes for the latency; and through host memory,
 * without access to each other's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/p2p_survey.h"
#include "bench/p2p_tell.h"

#define LATENCY_BYTES 8
#define SIZE_LARGEST  (64u << 20)
/* Eight GPUs are 56 pairs with eight measurements each. */
#define BUDGET_NS    20e6
#define JUDGED_BYTES (16u << 20)

struct p2p {
    struct nw_p2p_result result; /* first */
    struct nw_survey survey;
    uint64_t bytes;
    struct nw_record *records; /* a host each */
    int *group_of_rank;
    bool surveyed;
    uint64_t planned; /* units of the first dry run, before the survey; and their weight */
    double planned_weight;
};

struct p2p_work {
    struct nw_device_work base;            /* first */
    struct nw_survey_gpu *a, *b;           /* of the surveyor; a does the work */
    struct nw_survey_gpu *source, *target; /* of the measured way */
    uint64_t bytes;
};

static struct p2p_work *work_of(struct nw_device_work *base)
{
    return (struct p2p_work *)base;
}

static nw_rc queue_ce(struct nw_device_work *base, uint64_t index)
{
    const struct p2p_work *work = work_of(base);

    (void)index;
    return work->a->dev->ops->copy_peer(work->a->device.stream, work->target->to, work->target->dev,
                                        work->source->from, work->source->dev, work->bytes);
}

static nw_rc queue_sm(struct nw_device_work *base, uint64_t index)
{
    const struct p2p_work *work = work_of(base);

    (void)index;
    return work->a->dev->ops->kernel_copy(work->a->device.stream, work->target->to,
                                          work->source->from, work->bytes);
}

/* The other way is b's own work: it writes to a. */
static nw_rc queue_back_ce(struct nw_device_work *base, uint64_t index)
{
    const struct p2p_work *work = work_of(base);

    (void)index;
    return work->b->dev->ops->copy_peer(work->b->device.back, work->a->to, work->a->dev,
                                        work->b->from, work->b->dev, work->bytes);
}

static nw_rc queue_back_sm(struct nw_device_work *base, uint64_t index)
{
    const struct p2p_work *work = work_of(base);

    (void)index;
    return work->b->dev->ops->kernel_copy(work->b->device.back, work->a->to, work->b->from,
                                          work->bytes);
}

static nw_rc prepare(struct nw_device_work *base, uint64_t round)
{
    const struct p2p_work *work = work_of(base);

    NW_TRY(nw_device_pattern(&work->source->device, work->source->dev->index, round));
    NW_TRY(nw_device_pattern(&work->target->device, work->source->dev->index, round));
    return nw_device_fill(&work->source->device, NW_SPACE_DEVICE, work->source->from, work->bytes);
}

static nw_rc verify(struct nw_device_work *base, uint64_t round, uint64_t *wrong_out,
                    struct nw_wrong *first_out)
{
    const struct p2p_work *work = work_of(base);

    (void)round;
    return nw_device_check(&work->target->device, NW_SPACE_DEVICE, work->target->to, work->bytes,
                           wrong_out, first_out);
}

/* ---- a measurement -----------------------------------------------------------------------------
 */

struct kind {
    const char *collective, *lane;
    nw_rc (*queue)(struct nw_device_work *work, uint64_t index);
    nw_rc (*queue_back)(struct nw_device_work *work, uint64_t index);
    bool reads, direct;
};
static const struct kind kinds[] = {
    {"latency", "ce", queue_ce, NULL, false, true},
    {"write", "ce", queue_ce, NULL, false, true},
    {"read", "ce", queue_ce, NULL, true, true},
    {"copy_both", "ce", queue_ce, queue_back_ce, false, true},
    {"latency", "sm", queue_sm, NULL, false, true},
    {"write", "sm", queue_sm, NULL, false, true},
    {"read", "sm", queue_sm, NULL, true, true},
    {"copy_both", "sm", queue_sm, queue_back_sm, false, true},
};
static const struct kind staged = {"write", "staged", queue_ce, NULL, false, false};

static bool applies(const struct p2p *p2p, const struct kind *kind, int host, int a, int b)
{
    const nw_peers peers =
        p2p->surveyed ? nw_survey_peers(&p2p->survey, host, a, b) : NW_PEERS_DIRECT;

    return kind->direct ? peers == NW_PEERS_DIRECT || peers == NW_PEERS_DIRECT_ONLY
                        : peers == NW_PEERS_DIRECT || peers == NW_PEERS_STAGED;
}

/* The pair of places on each host that has it: a group each, of the surveyor alone. */
static size_t choose(struct p2p *p2p, const struct kind *kind, int a, int b, uint64_t bytes)
{
    const struct nw_comm *comm = p2p->result.bench->comm;
    size_t count = 0;

    for (int rank = 0; rank < comm->rank_count; rank++)
        p2p->group_of_rank[rank] = -1;
    for (int host = 0; host < comm->host_count; host++) {
        const int rank_a = nw_survey_rank(comm, host, a), rank_b = nw_survey_rank(comm, host, b);

        if (rank_a < 0 || rank_b < 0 || !applies(p2p, kind, host, a, b))
            continue;
        nw_device_identity(p2p->result.bench, "p2p", kind->collective, kind->lane, bytes, rank_a,
                           rank_b, &p2p->records[count]);
        p2p->records[count].rank_count = 2;
        p2p->group_of_rank[nw_survey_rank(comm, host, 0)] = (int)count++;
    }
    return count;
}

static double ceiling_of(void *user, const struct nw_record *record,
                         const struct nw_pcie_link *pcie)
{
    const struct p2p *p2p = user;
    const struct nw_comm *comm = p2p->result.bench->comm;
    const int surveyor = nw_survey_rank(comm, comm->host_of_rank[record->peer_a], 0);

    return nw_p2p_ceiling(&p2p->result, record->peer_a, record->peer_b,
                          strcmp(record->lane, staged.lane) == 0, &pcie[surveyor]);
}

static void note(void *user, const struct nw_record *record, const struct nw_pcie_link *pcie)
{
    struct p2p *p2p = user;
    const size_t at = (size_t)record->peer_a * (size_t)p2p->result.bench->comm->rank_count +
                      (size_t)record->peer_b;

    (void)pcie;
    if (strcmp(record->collective, "write") != 0 || record->bytes != p2p->bytes)
        return;
    if (strcmp(record->lane, "ce") == 0)
        p2p->result.direct[at] = record->algbw_bytes_per_s;
    else if (strcmp(record->lane, staged.lane) == 0)
        p2p->result.staged[at] = record->algbw_bytes_per_s;
}

static void set_gpus(struct p2p *p2p, const struct kind *kind, int a, int b, struct p2p_work *work)
{
    work->a = &p2p->survey.gpus[a];
    work->b = &p2p->survey.gpus[b];
    work->source = kind->reads ? work->b : work->a;
    work->target = kind->reads ? work->a : work->b;
    work->base.back = work->b->device.back;
    work->base.back_dev = work->b->dev;
}

static nw_rc unit(struct p2p *p2p, const struct kind *kind, int a, int b)
{
    struct nw_bench *bench = p2p->result.bench;
    const bool latency = strcmp(kind->collective, "latency") == 0;
    const uint64_t bytes = latency ? LATENCY_BYTES : p2p->bytes;
    struct p2p_work work = {.base = {.queue = kind->queue,
                                     .queue_back = kind->queue_back,
                                     .prepare = prepare,
                                     .verify = verify},
                            .bytes = bytes};
    char title[128], size[32];
    struct nw_device_unit unit = {.records = p2p->records,
                                  .group_of_rank = p2p->group_of_rank,
                                  .bytes = bytes,
                                  .title = title,
                                  .budget_ns = BUDGET_NS,
                                  .judged = !latency && bytes >= JUDGED_BYTES,
                                  .ceiling = latency ? NULL : ceiling_of,
                                  .note = note,
                                  .user = p2p};
    bool mine;

    unit.count = choose(p2p, kind, a, b, bytes);
    if (unit.count == 0)
        return NW_OK;
    mine = !bench->dry && p2p->group_of_rank[bench->comm->rank] >= 0;
    if (mine)
        set_gpus(p2p, kind, a, b, &work);
    snprintf(title, sizeof title, "p2p %s %s by %s, GPU %d and %d of each host", kind->collective,
             nw_format_bytes(size, bytes), kind->lane, a, b);
    nw_device_work_init(&work.base, bench, mine ? &work.a->device : NULL);
    return nw_device_measure(bench, &unit, &work.base);
}

/* Access of the two places to each other on or off; on surveyors, where they have it. */
static nw_rc connect(struct p2p *p2p, int a, int b, bool on)
{
    const struct nw_comm *comm = p2p->result.bench->comm;
    nw_peers peers;

    if (p2p->result.bench->dry || a >= p2p->survey.gpu_count || b >= p2p->survey.gpu_count)
        return NW_OK;
    peers = nw_survey_peers(&p2p->survey, comm->host_index, a, b);
    if (peers != NW_PEERS_DIRECT && !(on && peers == NW_PEERS_DIRECT_ONLY))
        return NW_OK;
    return nw_survey_connect(&p2p->survey, a, b, on);
}

static nw_rc agree(struct p2p *p2p, nw_rc rc)
{
    return p2p->result.bench->dry ? rc : nw_agree(p2p->result.bench->comm, rc);
}

static nw_rc measure_pair(struct p2p *p2p, int a, int b)
{
    NW_TRY(agree(p2p, connect(p2p, a, b, true)));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].queue_back == NULL || a < b) /* both ways at once: a pair is one */
            NW_TRY(unit(p2p, &kinds[i], a, b));
    NW_TRY(agree(p2p, connect(p2p, a, b, false)));
    return unit(p2p, &staged, a, b);
}

static nw_rc measure_all(struct p2p *p2p)
{
    const struct nw_comm *comm = p2p->result.bench->comm;
    int places = 0;

    for (int rank = 0; rank < comm->rank_count; rank++)
        if (nw_survey_place(comm, rank) >= places && places < NW_SURVEY_MAX)
            places = nw_survey_place(comm, rank) + 1;
    for (int a = 0; a < places; a++)
        for (int b = 0; b < places; b++)
            if (a != b)
                NW_TRY(measure_pair(p2p, a, b));
    return NW_OK;
}

/* The dry run did not know which pairs there are: now it does. */
static nw_rc plan_again(struct p2p *p2p)
{
    struct nw_bench *bench = p2p->result.bench;
    nw_rc rc;

    p2p->surveyed = true;
    bench->total -= p2p->planned;
    bench->total_weight -= p2p->planned_weight;
    bench->dry = true;
    rc = measure_all(p2p);
    bench->dry = false;
    if (bench->events->status != NULL)
        atomic_store(&bench->events->status->total, bench->total);
    return rc;
}

static nw_rc run_on_survey(struct p2p *p2p)
{
    struct nw_bench *bench = p2p->result.bench;

    NW_TRY(nw_device_fit(bench, &p2p->result.devices, "p2p", p2p->bytes, 2, 0, &p2p->bytes));
    NW_TRY(nw_agree(bench->comm, nw_survey_allocate(&p2p->survey, p2p->bytes)));
    NW_TRY(plan_again(p2p));
    NW_TRY(measure_all(p2p));
    return nw_agree(bench->comm,
                    bench->comm->rank == 0 ? nw_p2p_tell(&p2p->result, &p2p->survey) : NW_OK);
}

static nw_rc run_on_devices(struct p2p *p2p)
{
    nw_rc rc;

    NW_TRY(nw_survey_open(p2p->result.bench, &p2p->result.devices, &p2p->survey));
    rc = run_on_survey(p2p);
    if (rc == NW_OK || !nw_bench_is_broken(rc)) /* else work may still stand on the memory */
        nw_survey_close(&p2p->survey);
    return rc;
}

static uint64_t wanted_bytes(const struct nw_bench *bench)
{
    const uint64_t most =
        bench->plan->max_bytes < SIZE_LARGEST ? bench->plan->max_bytes : SIZE_LARGEST;

    return most < NW_DEVICE_WORD ? NW_DEVICE_WORD : most / NW_DEVICE_WORD * NW_DEVICE_WORD;
}

static nw_rc walk(void *user)
{
    struct p2p *p2p = user;
    struct nw_bench *bench = p2p->result.bench;
    const uint64_t total = bench->total;
    const double weight = bench->total_weight;
    nw_rc rc;

    p2p->bytes = wanted_bytes(bench);
    if (bench->dry) {
        rc = measure_all(p2p);
        p2p->planned = bench->total - total;
        p2p->planned_weight = bench->total_weight - weight;
        return rc;
    }
    NW_TRY(nw_devices_open(bench, &p2p->result.devices));
    rc = run_on_devices(p2p);
    nw_devices_close(&p2p->result.devices);
    return rc;
}

nw_rc nw_case_p2p(struct nw_bench *bench)
{
    const size_t ranks = (size_t)bench->comm->rank_count;
    struct p2p p2p = {.result = {.bench = bench}};
    nw_rc rc;

    if (!nw_device_is_here(bench, "p2p"))
        return NW_OK;
    if (bench->comm->host_count == bench->comm->rank_count) {
        nw_bench_finding(bench, NW_FINDING_INFO, "no-peers", "", "mpirun with several ranks a host",
                         "p2p: one rank a host: there is no pair of GPUs to measure");
        return NW_OK;
    }
    p2p.records = calloc(ranks, sizeof *p2p.records);
    p2p.group_of_rank = calloc(ranks, sizeof *p2p.group_of_rank);
    p2p.result.direct = calloc(ranks * ranks, sizeof *p2p.result.direct);
    p2p.result.staged = calloc(ranks * ranks, sizeof *p2p.result.staged);
    if (p2p.records == NULL || p2p.group_of_rank == NULL || p2p.result.direct == NULL ||
        p2p.result.staged == NULL) {
        rc = nw_fail(NW_ENOMEM, "no memory for the pairs of %zu GPUs", ranks);
    } else {
        for (size_t i = 0; i < ranks * ranks; i++)
            p2p.result.direct[i] = p2p.result.staged[i] = NAN;
        rc = nw_bench_series(bench, walk, &p2p);
    }
    free(p2p.result.staged);
    free(p2p.result.direct);
    free(p2p.group_of_rank);
    free(p2p.records);
    return rc;
}
