/* A collective beside matrix products on the same GPU, as in a training step that reduces gradients
 * while it computes the next ones: how much of it is hidden, and what each loses.
 *
 * Alone and together are measured in turn, sample by sample, so that warmth touches both alike.
 * Both streams stand behind gates that open at the same time; each has marks of its own. There are
 * so many products that the collectives are done before them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/gemm_judge.h"
#include "bench/product.h"
#include "bench/work_coll.h"

#define GATE_NS 10e9
/* Collectives of one sample last so long: the start of the two streams, microseconds apart, must
 * not count. */
#define WINDOW_NS   1e6
#define CALLS_MAX   64
#define SAMPLES_MAX 64
#define N_MAX       4096 /* products of a layer's size rather than of a load's */
/* Below this share hidden a finding says so. */
#define POOR_SHARE 0.5

static const char *const collectives[] = {"all_reduce", "all_gather"};

enum { COLL = 1, PRODUCT = 2 }; /* what is queued */

/* One sample of a rank, ns of all its calls. */
struct sample {
    double coll_alone, product_alone, coll_beside, product_beside;
};

struct overlap {
    struct nw_bench *bench;
    struct nw_devices devices;
    struct nw_product product;
    nw_product_lane lane;
    int n, sample_count;
    struct nw_mark *start, *end; /* of the communicator's stream */
    struct nw_coll_work work;    /* of the current unit */
    uint32_t coll_calls, product_calls;
    struct sample mine[SAMPLES_MAX];
    struct sample *all; /* of each rank: SAMPLES_MAX */
    double wrong;       /* rank 0: elements, of all ranks */
};

/* ---- timing ------------------------------------------------------------------------------------
 */

static nw_rc queue(struct overlap *overlap, unsigned what)
{
    struct nw_comm *comm = overlap->bench->comm;
    struct nw_device *device = &overlap->devices.own;
    const struct nw_dev_ops *ops = device->dev->ops;
    struct nw_stream *stream = comm->ops->stream(comm);

    if (what & COLL) {
        NW_TRY(ops->mark_set(stream, overlap->start));
        for (uint32_t i = 0; i < overlap->coll_calls; i++)
            NW_TRY(nw_coll_work_queue(&overlap->work, 0));
        NW_TRY(ops->mark_set(stream, overlap->end));
    }
    if (what & PRODUCT) {
        NW_TRY(ops->mark_set(device->stream, device->start));
        for (uint32_t i = 0; i < overlap->product_calls; i++)
            NW_TRY(nw_product_queue(&overlap->product, overlap->lane));
        NW_TRY(ops->mark_set(device->stream, device->end));
    }
    return NW_OK;
}

/* ns of what is queued of the two; those of what is not stay as they are. Collective. */
static nw_rc run(struct overlap *overlap, unsigned what, double *coll_ns, double *product_ns)
{
    struct nw_comm *comm = overlap->bench->comm;
    struct nw_device *device = &overlap->devices.own;
    const struct nw_dev_ops *ops = device->dev->ops;
    struct nw_stream *stream = comm->ops->stream(comm);
    nw_rc rc;

    nw_bench_status_deadline(overlap->bench->events->status,
                             nw_now_ns() + (uint64_t)(6 * nw_bench_margin_ns(overlap->bench)));
    if (what & COLL)
        NW_TRY(ops->gate_hold(stream, GATE_NS));
    rc = what & PRODUCT ? ops->gate_hold(device->stream, GATE_NS) : NW_OK;
    if (rc == NW_OK)
        rc = queue(overlap, what);
    if (rc == NW_OK)
        rc = comm->ops->barrier(comm);
    ops->gate_release(stream);
    ops->gate_release(device->stream);
    NW_TRY(rc);
    if (what & COLL)
        NW_TRY(nw_comm_finish(comm, nw_bench_margin_ns(overlap->bench)));
    if (what & PRODUCT)
        NW_TRY(ops->wait(device->stream, nw_bench_margin_ns(overlap->bench)));
    if (what & COLL)
        NW_TRY(ops->mark_elapsed(overlap->start, overlap->end, coll_ns));
    return what & PRODUCT ? ops->mark_elapsed(device->start, device->end, product_ns) : NW_OK;
}

/* How many of each make a sample: the same on all ranks. */
static nw_rc calibrate(struct overlap *overlap)
{
    struct nw_comm *comm = overlap->bench->comm;
    double mine[2], slowest_coll = 0, fastest_product = INFINITY;
    double *all = calloc((size_t)comm->rank_count, sizeof mine);
    nw_rc rc = nw_agree(
        comm, all != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for %d ranks", comm->rank_count));

    overlap->coll_calls = overlap->product_calls = 1;
    for (int i = 0; i < 2 && rc == NW_OK; i++) { /* the first warms up */
        rc = run(overlap, COLL, &mine[0], &mine[1]);
        if (rc == NW_OK)
            rc = run(overlap, PRODUCT, &mine[0], &mine[1]);
    }
    if (rc == NW_OK)
        rc = comm->ops->exchange(comm, mine, sizeof mine, all);
    for (int rank = 0; rank < comm->rank_count && rc == NW_OK; rank++) {
        slowest_coll = fmax(slowest_coll, all[2 * rank]);
        fastest_product = fmin(fastest_product, all[2 * rank + 1]);
    }
    free(all);
    NW_TRY(rc);
    overlap->coll_calls =
        (uint32_t)fmin(fmax(ceil(WINDOW_NS / fmax(slowest_coll, 1)), 1), CALLS_MAX);
    overlap->product_calls = (uint32_t)fmin(
        ceil(overlap->coll_calls * slowest_coll / fmax(fastest_product, 1)) + 1, 4 * CALLS_MAX);
    return NW_OK;
}

static nw_rc take_samples(struct overlap *overlap)
{
    for (int i = 0; i < overlap->sample_count; i++) {
        struct sample *sample = &overlap->mine[i];

        NW_TRY(run(overlap, COLL, &sample->coll_alone, &sample->product_alone));
        NW_TRY(run(overlap, PRODUCT, &sample->coll_alone, &sample->product_alone));
        NW_TRY(run(overlap, COLL | PRODUCT, &sample->coll_beside, &sample->product_beside));
    }
    return NW_OK;
}

/* ---- verification ------------------------------------------------------------------------------
 */

/* The collective's result and the product's, both made beside each other. */
static nw_rc verify(struct overlap *overlap, uint64_t round)
{
    struct nw_comm *comm = overlap->bench->comm;
    struct nw_wrong first = {.from_rank = -1};
    uint64_t wrong_product;
    double ns[2], mine, *all;
    nw_rc rc;

    overlap->coll_calls = overlap->product_calls = 1;
    overlap->work.work.fill(&overlap->work.work, round);
    NW_TRY(nw_product_spoil(&overlap->product));
    NW_TRY(run(overlap, COLL | PRODUCT, &ns[0], &ns[1]));
    mine = (double)overlap->work.work.check(&overlap->work.work, round, &first);
    NW_TRY(nw_comm_finish(comm, nw_bench_margin_ns(overlap->bench)));
    NW_TRY(nw_product_check(&overlap->product, &wrong_product, &first));
    mine += (double)wrong_product;
    all = calloc((size_t)comm->rank_count, sizeof *all);
    rc = nw_agree(
        comm, all != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for %d ranks", comm->rank_count));
    if (rc == NW_OK)
        rc = comm->ops->exchange(comm, &mine, sizeof mine, all);
    for (int rank = 0; rank < comm->rank_count && rc == NW_OK; rank++)
        overlap->wrong += all[rank];
    free(all);
    return rc;
}

/* ---- the record --------------------------------------------------------------------------------
 */

struct medians { /* of the slowest rank of each sample, ns of all calls */
    double coll_alone, product_alone, product_beside, together;
};

static double slowest(const struct overlap *overlap, int i, size_t offset)
{
    double most = 0;

    for (int rank = 0; rank < overlap->bench->comm->rank_count; rank++) {
        const struct sample *sample = &overlap->all[(size_t)rank * SAMPLES_MAX + (size_t)i];

        most = fmax(most, *(const double *)(const void *)((const char *)sample + offset));
    }
    return most;
}

static nw_rc median_of(const struct overlap *overlap, size_t offset, size_t other,
                       double *median_out)
{
    double values[SAMPLES_MAX];
    struct nw_stats stats;

    for (int i = 0; i < overlap->sample_count; i++)
        values[i] = fmax(slowest(overlap, i, offset), slowest(overlap, i, other));
    NW_TRY(nw_stats_of(values, (size_t)overlap->sample_count, &stats));
    *median_out = stats.median;
    return NW_OK;
}

static nw_rc find_medians(const struct overlap *overlap, struct medians *medians)
{
    const size_t coll = offsetof(struct sample, coll_alone),
                 product = offsetof(struct sample, product_alone),
                 coll_beside = offsetof(struct sample, coll_beside),
                 product_beside = offsetof(struct sample, product_beside);

    NW_TRY(median_of(overlap, coll, coll, &medians->coll_alone));
    NW_TRY(median_of(overlap, product, product, &medians->product_alone));
    NW_TRY(median_of(overlap, product_beside, product_beside, &medians->product_beside));
    return median_of(overlap, coll_beside, product_beside, &medians->together);
}

static nw_rc fill_record(const struct overlap *overlap, struct nw_record *record)
{
    const double flop = nw_product_flop(&overlap->product) * overlap->product_calls;
    const int ranks = overlap->bench->comm->rank_count;
    const size_t count = (size_t)overlap->sample_count;
    struct medians medians;

    NW_TRY(find_medians(overlap, &medians));
    record->samples_ns = malloc(count * sizeof *record->samples_ns);
    if (record->samples_ns == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu samples", count);
    for (size_t i = 0; i < count; i++)
        record->samples_ns[i] =
            slowest(overlap, (int)i, offsetof(struct sample, coll_beside)) / overlap->coll_calls;
    NW_TRY(nw_stats_of(record->samples_ns, count, &record->time_ns));
    record->calls_per_sample = overlap->coll_calls;
    record->stop = NW_STOP_FIXED;
    record->alone_ns = medians.coll_alone / overlap->coll_calls;
    record->flop_per_s = flop / medians.product_beside * 1e9;
    record->alone_flop_per_s = flop / medians.product_alone * 1e9;
    record->hidden_share =
        nw_hidden_share(medians.coll_alone, medians.product_alone, medians.together);
    record->algbw_bytes_per_s = (double)record->bytes / record->time_ns.median * 1e9;
    record->busbw_bytes_per_s =
        record->algbw_bytes_per_s * overlap->work.call.coll->bus_factor(ranks);
    return NW_OK;
}

static nw_rc report_wrong(const struct overlap *overlap, struct nw_record *record)
{
    record->rc = NW_EWRONG;
    return nw_findings_add(&record->warnings, NW_FINDING_FAIL, "wrong-data", record->collective,
                           "do not use these GPUs; measure coll and gemm to see which of the two "
                           "is wrong alone",
                           "%s of %llu bytes beside matrix products: %.0f wrong elements in the "
                           "results of the two",
                           record->collective, (unsigned long long)record->bytes, overlap->wrong);
}

static void tell_poor(const struct overlap *overlap, const struct nw_record *record)
{
    char size[32];

    if (!(record->hidden_share < POOR_SHARE))
        return;
    nw_bench_finding(overlap->bench, NW_FINDING_WARN, "overlap-poor", record->collective,
                     "let the library use fewer of the multiprocessors (NCCL_MAX_CTAS), or smaller "
                     "buckets",
                     "only %.0f %% of %s of %s is hidden behind matrix products, which then run at "
                     "%.0f %% of their rate",
                     100 * record->hidden_share, record->collective,
                     nw_format_bytes(size, record->bytes),
                     100 * record->flop_per_s / record->alone_flop_per_s);
}

static nw_rc hand_out(struct overlap *overlap, struct nw_record *record)
{
    record->wrong_elements = (int64_t)overlap->wrong;
    NW_TRY(overlap->wrong > 0 ? report_wrong(overlap, record) : fill_record(overlap, record));
    nw_bench_record(overlap->bench, record);
    tell_poor(overlap, record);
    return NW_OK;
}

/* ---- units -------------------------------------------------------------------------------------
 */

static nw_rc measure(struct overlap *overlap, const char *title)
{
    struct nw_bench *bench = overlap->bench;
    struct nw_comm *comm = bench->comm;
    const uint64_t round = bench->round;

    bench->round += 2;
    overlap->wrong = 0;
    nw_bench_status_write(bench->events->status,
                          nw_now_ns() + (uint64_t)(6 * nw_bench_margin_ns(bench)), title);
    NW_TRY(verify(overlap, round)); /* also connects */
    if (overlap->wrong == 0) {
        uint32_t calls[2];

        NW_TRY(calibrate(overlap));
        NW_TRY(take_samples(overlap));
        calls[0] = overlap->coll_calls;
        calls[1] = overlap->product_calls;
        NW_TRY(verify(overlap, round + 1));
        overlap->coll_calls = calls[0];
        overlap->product_calls = calls[1];
    }
    return comm->ops->exchange(comm, overlap->mine, sizeof overlap->mine, overlap->all);
}

/* bfloat16, as gradients mostly are; half where the chip has no bfloat16 products. */
static nw_dtype type_of(const struct nw_bench *bench)
{
    return bench->comm->dev->capability >= 80 ? NW_BFLOAT16 : NW_HALF;
}

static nw_rc unit(struct overlap *overlap, const char *collective)
{
    struct nw_bench *bench = overlap->bench;
    const struct nw_coll *coll = nw_coll_find(collective);
    const struct nw_variant variant = {.coll = coll, .dtype = type_of(bench), .op = NW_SUM};
    const struct nw_call call = {.coll = coll, .dtype = variant.dtype, .op = NW_SUM};
    struct nw_record record;
    struct nw_unit unit = {.identities = &record, .identity_count = 1};
    char title[128], size[32];
    bool go;
    nw_rc rc = NW_OK;

    overlap->work = nw_coll_work_of(bench, bench->comm, &call, bench->plan->overlap_bytes, 0);
    if (overlap->work.bytes == 0 || !nw_variant_supported(bench, &variant, overlap->work.bytes))
        return NW_OK;
    nw_bench_identity(bench, "overlap", &record);
    nw_variant_identity(&variant, &record);
    record.bytes = overlap->work.bytes;
    record.count =
        nw_coll_shape(coll, overlap->work.bytes, variant.dtype, bench->comm->rank_count).count;
    snprintf(title, sizeof title, "overlap %s %s", collective, nw_format_bytes(size, record.bytes));
    unit.title = title;
    nw_coll_work_buffers(&overlap->work, &unit.send_bytes, &unit.recv_bytes);
    NW_TRY(nw_bench_begin(bench, &unit, &go, NULL));
    if (go) {
        rc = measure(overlap, title);
        bench->wrong |= overlap->wrong > 0;
        if (rc == NW_OK)
            rc = nw_agree(bench->comm, bench->comm->rank == 0 ? hand_out(overlap, &record) : NW_OK);
        nw_bench_end(bench, &unit);
    }
    nw_record_free(&record);
    return rc;
}

static nw_rc walk_units(struct overlap *overlap)
{
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++)
        NW_TRY(unit(overlap, collectives[i]));
    return NW_OK;
}

/* ---- getting ready -----------------------------------------------------------------------------
 */

static nw_rc open_product(struct overlap *overlap)
{
    struct nw_device *device = &overlap->devices.own;
    const struct nw_dev_ops *ops = device->dev->ops;
    const int wanted = overlap->bench->plan->gemm_size;
    const uint64_t free_bytes = nw_devices_least_free(&overlap->devices);

    overlap->n = nw_product_size(wanted > 0 && wanted < N_MAX ? wanted : N_MAX, free_bytes);
    if (overlap->n == 0)
        return nw_fail(NW_ENOMEM, "overlap: no GPU memory left for a matrix product");
    NW_TRY(ops->mark_open(device->dev, &overlap->start));
    NW_TRY(ops->mark_open(device->dev, &overlap->end));
    NW_TRY(nw_product_open(device, overlap->n, &overlap->product));
    overlap->lane = overlap->product.cublas != NULL ? NW_PRODUCT_CUBLAS : NW_PRODUCT_OWN;
    NW_TRY(nw_product_operands(&overlap->product, (int32_t)type_of(overlap->bench)));
    /* Not behind a gate: the first product may load code. */
    NW_TRY(nw_product_queue(&overlap->product, overlap->lane));
    return ops->wait(device->stream, nw_bench_margin_ns(overlap->bench));
}

static nw_rc walk(void *user)
{
    struct overlap *overlap = user;
    struct nw_bench *bench = overlap->bench;
    nw_rc rc;

    if (bench->dry)
        return walk_units(overlap);
    nw_bench_status_write(bench->events->status,
                          nw_now_ns() + (uint64_t)(6 * nw_bench_margin_ns(bench)),
                          "overlap, getting ready");
    NW_TRY(nw_devices_open(bench, &overlap->devices));
    rc = nw_agree(bench->comm, open_product(overlap));
    if (rc == NW_OK)
        rc = walk_units(overlap);
    if (overlap->start != NULL)
        bench->comm->dev->ops->mark_close(overlap->start);
    if (overlap->end != NULL)
        bench->comm->dev->ops->mark_close(overlap->end);
    nw_product_close(&overlap->product);
    nw_devices_close(&overlap->devices);
    return rc;
}

nw_rc nw_case_overlap(struct nw_bench *bench)
{
    const size_t ranks = (size_t)bench->comm->rank_count;
    const int samples = bench->plan->min_samples;
    struct overlap *overlap;
    nw_rc rc;

    if (!nw_device_is_here(bench, "overlap"))
        return NW_OK;
    if (ranks < 2 || bench->comm->ops->stream == NULL) {
        nw_bench_finding(bench, NW_FINDING_INFO, "no-overlap", "",
                         "mpirun -np N with N of 2 or more",
                         "only one rank takes part: there is no collective to hide");
        return NW_OK;
    }
    overlap = calloc(1, sizeof *overlap);
    if (overlap == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the case overlap");
    overlap->bench = bench;
    overlap->sample_count = samples < SAMPLES_MAX ? samples : SAMPLES_MAX;
    overlap->all = calloc(ranks * SAMPLES_MAX, sizeof *overlap->all);
    rc = overlap->all != NULL ? nw_bench_series(bench, walk, overlap)
                              : nw_fail(NW_ENOMEM, "no memory for the samples of %zu ranks", ranks);
    free(overlap->all);
    free(overlap);
    return rc;
}
