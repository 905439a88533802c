/* A GPU's own memory: copies by its copy engines and by a kernel, and kernels that only read and
 * only write. All GPUs at once, each with a record of its own; one that is slower than its like is
 * named. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/copies_judge.h"
#include "bench/device_work.h"

/* A GPU's memory is some ten times as fast as any wire: with -e's size a call would be as short as
 * the gap between two kernels counts. 256 MiB are 0.16 ms at 3.35 TB/s, the gap 1 to 2 us. */
#define SIZE_TIMES   4
#define SIZE_LARGEST (256u << 20)
/* Calls go round through so many times the L2 on either side. Were it replaced at random, a
 * sixteenth of the reads would still find their line there. */
#define L2_TIMES  16
#define BUDGET_NS 50e6
/* From here on a call is long beside the gap between two. */
/* Healthy GPUs reach 0.85 and more of their memory's rate (H200: 4.3 of 4.8 TB/s); one that had 50
 * GB/s was only found by a slow program (vllm-project/vllm#27437). */
#define MEMORY_FAR_BELOW 0.7
#define JUDGED_BYTES     (128u << 20)
#define WORD             0x5bd1e995u

struct d2d {
    struct nw_bench *bench;
    struct nw_devices devices;
    uint64_t bytes, slot_count;
    char *to, *from; /* slot_count × bytes each */
    struct nw_record *records;
    int *group_of_rank;
    struct nw_gpu_rate *rates; /* of the current unit, of each rank; rank 0 */
};

struct d2d_work {
    struct nw_device_work base; /* first */
    const struct d2d *d2d;
};

static const struct d2d *d2d_of(const struct nw_device_work *base)
{
    return ((const struct d2d_work *)base)->d2d;
}

static char *slot(char *memory, const struct d2d *d2d, uint64_t index)
{
    return memory + index % d2d->slot_count * d2d->bytes;
}

static nw_rc queue_ce(struct nw_device_work *base, uint64_t index)
{
    const struct d2d *d2d = d2d_of(base);

    return base->device->dev->ops->copy(base->device->stream, slot(d2d->to, d2d, index),
                                        slot(d2d->from, d2d, index), d2d->bytes);
}

static nw_rc queue_sm(struct nw_device_work *base, uint64_t index)
{
    const struct d2d *d2d = d2d_of(base);

    return base->device->dev->ops->kernel_copy(base->device->stream, slot(d2d->to, d2d, index),
                                               slot(d2d->from, d2d, index), d2d->bytes);
}

static nw_rc queue_read(struct nw_device_work *base, uint64_t index)
{
    const struct d2d *d2d = d2d_of(base);

    return base->device->dev->ops->kernel_read(base->device->stream, slot(d2d->from, d2d, index),
                                               d2d->bytes, nw_device_fold(base->device));
}

static nw_rc queue_write(struct nw_device_work *base, uint64_t index)
{
    const struct d2d *d2d = d2d_of(base);

    return base->device->dev->ops->kernel_write(base->device->stream, slot(d2d->to, d2d, index),
                                                d2d->bytes, WORD);
}

static nw_rc prepare_copy(struct nw_device_work *base, uint64_t round)
{
    const struct d2d *d2d = d2d_of(base);

    NW_TRY(nw_device_pattern(base->device, base->bench->comm->rank, round));
    return nw_device_fill(base->device, NW_SPACE_DEVICE, d2d->from, d2d->bytes);
}

static nw_rc verify_copy(struct nw_device_work *base, uint64_t round, uint64_t *wrong_out,
                         struct nw_wrong *first_out)
{
    const struct d2d *d2d = d2d_of(base);

    (void)round;
    return nw_device_check(base->device, NW_SPACE_DEVICE, d2d->to, d2d->bytes, wrong_out,
                           first_out);
}

static nw_rc prepare_read(struct nw_device_work *base, uint64_t round)
{
    NW_TRY(prepare_copy(base, round));
    return nw_device_fold_clear(base->device);
}

static nw_rc verify_read(struct nw_device_work *base, uint64_t round, uint64_t *wrong_out,
                         struct nw_wrong *first_out)
{
    const uint32_t expected = nw_device_pattern_fold(base->device, d2d_of(base)->bytes);
    uint32_t found;

    (void)round;
    NW_TRY(nw_device_fold_get(base->device, &found));
    *wrong_out = found != expected;
    if (found != expected)
        *first_out =
            (struct nw_wrong){.expected = expected, .found = (double)found, .from_rank = -1};
    return NW_OK;
}

/* Something else than what the kernel is to write. */
static nw_rc prepare_write(struct nw_device_work *base, uint64_t round)
{
    const struct d2d *d2d = d2d_of(base);

    NW_TRY(nw_device_pattern(base->device, base->bench->comm->rank, round));
    NW_TRY(nw_device_fill(base->device, NW_SPACE_DEVICE, d2d->to, d2d->bytes));
    return nw_device_pattern_constant(base->device, (uint64_t)WORD << 32 | WORD);
}

static const struct kind {
    const char *collective, *lane, *title;
    nw_rc (*queue)(struct nw_device_work *work, uint64_t index);
    nw_rc (*prepare)(struct nw_device_work *work, uint64_t round);
    nw_rc (*verify)(struct nw_device_work *work, uint64_t round, uint64_t *wrong_out,
                    struct nw_wrong *first_out);
} kinds[] = {
    {"copy", "ce", "copies by the copy engines", queue_ce, prepare_copy, verify_copy},
    {"copy", "sm", "copies by a kernel", queue_sm, prepare_copy, verify_copy},
    {"read", "sm", "reading", queue_read, prepare_read, verify_read},
    {"write", "sm", "writing", queue_write, prepare_write, verify_copy},
};

static double ceiling_of(void *user, const struct nw_record *record,
                         const struct nw_pcie_link *pcie)
{
    const struct d2d *d2d = user;
    /* a copied byte is read and written */
    const double traffic = strcmp(record->collective, "copy") == 0 ? 2 : 1;

    (void)pcie;
    return d2d->devices.about[record->peer_a].memory_bytes_per_s / traffic;
}

static void note(void *user, const struct nw_record *record, const struct nw_pcie_link *pcie)
{
    struct d2d *d2d = user;

    (void)pcie;
    d2d->rates[record->peer_a].bytes_per_s = record->algbw_bytes_per_s;
}

static nw_rc tell_slow(struct d2d *d2d, const struct kind *kind)
{
    const size_t count = (size_t)d2d->bench->comm->rank_count;
    double *usual = calloc(count, sizeof *usual);
    nw_rc rc;

    if (usual == NULL)
        return nw_fail(NW_ENOMEM, "no memory to compare %zu GPUs", count);
    for (size_t i = 0; i < count; i++)
        d2d->rates[i].model = d2d->devices.about[i].model;
    rc = nw_gpus_judge(d2d->rates, count, NW_SLOW_GPU_MEMORY_REL, usual);
    for (size_t i = 0; rc == NW_OK && i < count; i++) {
        char where[NW_COMM_RANK_TEXT], rate[32], text[32];

        if (!isnan(usual[i]))
            nw_bench_finding(d2d->bench, NW_FINDING_WARN, "gpu-slow",
                             nw_comm_rank_text(d2d->bench->comm, (int)i, where),
                             "look at its temperature, clocks, power limit and ECC errors "
                             "(nvidia-smi -q), or ask the vendor",
                             "its own memory, %s: %s GB/s, where the median of all is %s GB/s",
                             kind->title, nw_format_gb_per_s(rate, d2d->rates[i].bytes_per_s),
                             nw_format_gb_per_s(text, usual[i]));
    }
    free(usual);
    return rc;
}

static int ranks_beside(const struct nw_comm *comm, int rank)
{
    int count = 0;

    for (int other = 0; other < comm->rank_count; other++)
        count += comm->host_of_rank[other] == comm->host_of_rank[rank];
    return count;
}

static nw_rc unit(struct d2d *d2d, const struct kind *kind)
{
    struct nw_bench *bench = d2d->bench;
    struct d2d_work work = {
        .base = {.queue = kind->queue, .prepare = kind->prepare, .verify = kind->verify},
        .d2d = d2d};
    char title[128], size[32];
    const struct nw_device_unit unit = {.records = d2d->records,
                                        .count = (size_t)bench->comm->rank_count,
                                        .group_of_rank = d2d->group_of_rank,
                                        .bytes = d2d->bytes,
                                        .title = title,
                                        .budget_ns = BUDGET_NS,
                                        .judged = d2d->bytes >= JUDGED_BYTES,
                                        .far_below = MEMORY_FAR_BELOW,
                                        .ceiling = ceiling_of,
                                        .note = note,
                                        .user = d2d};

    for (int rank = 0; rank < bench->comm->rank_count; rank++) {
        nw_device_identity(bench, "d2d", kind->collective, kind->lane, d2d->bytes, rank, -1,
                           &d2d->records[rank]);
        d2d->records[rank].rank_count = ranks_beside(bench->comm, rank);
        d2d->group_of_rank[rank] = rank;
        d2d->rates[rank].bytes_per_s = NAN;
    }
    snprintf(title, sizeof title, "d2d %s %s by %s", kind->collective,
             nw_format_bytes(size, d2d->bytes), kind->lane);
    nw_device_work_init(&work.base, bench, &d2d->devices.own);
    return nw_device_measure(bench, &unit, &work.base);
}

/* As much of the way round as the memory leaves; at least one. */
static void set_slots(struct d2d *d2d)
{
    uint64_t most = UINT64_MAX, wanted = 1;

    for (int rank = 0; rank < d2d->devices.rank_count; rank++) {
        const struct nw_device_about *about = &d2d->devices.about[rank];
        const uint64_t needed = (L2_TIMES * about->l2_bytes + d2d->bytes - 1) / d2d->bytes;

        wanted = needed > wanted ? needed : wanted;
        most =
            about->free_bytes / 4 / d2d->bytes < most ? about->free_bytes / 4 / d2d->bytes : most;
    }
    d2d->slot_count = wanted < most ? wanted : most > 0 ? most : 1;
    if (d2d->devices.own.dev->simulated) /* no cache there, and its memory is the host's */
        d2d->slot_count = 1;
}

static nw_rc allocate(struct d2d *d2d)
{
    struct nw_dev *dev = d2d->devices.own.dev;
    const uint64_t bytes = d2d->slot_count * d2d->bytes;
    void *to, *from;

    NW_TRY(dev->ops->alloc(dev, NW_SPACE_DEVICE, bytes, &to));
    d2d->to = to;
    NW_TRY(dev->ops->alloc(dev, NW_SPACE_DEVICE, bytes, &from));
    d2d->from = from;
    return NW_OK;
}

/* What fresh memory holds may be compressible; the slots that are not verified get data, too. */
static nw_rc fill_slots(struct d2d *d2d)
{
    struct nw_device *own = &d2d->devices.own;

    NW_TRY(nw_device_pattern(own, d2d->bench->comm->rank, d2d->bench->round));
    for (uint64_t i = 0; i < d2d->slot_count; i++)
        NW_TRY(nw_device_fill(own, NW_SPACE_DEVICE, slot(d2d->from, d2d, i), d2d->bytes));
    return NW_OK;
}

static nw_rc measure_all(struct d2d *d2d)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        NW_TRY(unit(d2d, &kinds[i]));
        if (!d2d->bench->dry)
            NW_TRY(nw_agree(d2d->bench->comm,
                            d2d->bench->comm->rank == 0 ? tell_slow(d2d, &kinds[i]) : NW_OK));
    }
    return NW_OK;
}

static uint64_t wanted_bytes(const struct nw_bench *bench)
{
    const uint64_t most = bench->plan->max_bytes < SIZE_LARGEST / SIZE_TIMES
                              ? bench->plan->max_bytes * SIZE_TIMES
                              : SIZE_LARGEST;

    return most < NW_DEVICE_WORD ? NW_DEVICE_WORD : most / NW_DEVICE_WORD * NW_DEVICE_WORD;
}

static nw_rc run_on_devices(struct d2d *d2d)
{
    struct nw_bench *bench = d2d->bench;
    const struct nw_dev_ops *ops = bench->comm->dev->ops;
    nw_rc rc;

    NW_TRY(nw_device_fit(bench, &d2d->devices, "d2d", wanted_bytes(bench), 2, 0, &d2d->bytes));
    set_slots(d2d);
    rc = allocate(d2d);
    if (rc == NW_OK)
        rc = fill_slots(d2d);
    rc = nw_agree(bench->comm, rc);
    if (rc == NW_OK)
        rc = measure_all(d2d);
    if (rc == NW_OK || !nw_bench_is_broken(rc)) { /* else work may still stand on it */
        ops->free(bench->comm->dev, NW_SPACE_DEVICE, d2d->to);
        ops->free(bench->comm->dev, NW_SPACE_DEVICE, d2d->from);
    }
    return rc;
}

static nw_rc walk(void *user)
{
    struct d2d *d2d = user;
    nw_rc rc;

    d2d->bytes = wanted_bytes(d2d->bench);
    if (d2d->bench->dry)
        return measure_all(d2d);
    NW_TRY(nw_devices_open(d2d->bench, &d2d->devices));
    rc = run_on_devices(d2d);
    nw_devices_close(&d2d->devices);
    return rc;
}

nw_rc nw_case_d2d(struct nw_bench *bench)
{
    const size_t ranks = (size_t)bench->comm->rank_count;
    struct d2d d2d = {.bench = bench};
    nw_rc rc;

    if (!nw_device_is_here(bench, "d2d"))
        return NW_OK;
    d2d.records = calloc(ranks, sizeof *d2d.records);
    d2d.group_of_rank = calloc(ranks, sizeof *d2d.group_of_rank);
    d2d.rates = calloc(ranks, sizeof *d2d.rates);
    if (d2d.records == NULL || d2d.group_of_rank == NULL || d2d.rates == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for the copies of %zu ranks", ranks);
    else
        rc = nw_bench_series(bench, walk, &d2d);
    free(d2d.rates);
    free(d2d.group_of_rank);
    free(d2d.records);
    return rc;
}
