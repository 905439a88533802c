/* Matrix products on every rank's GPU at once, ours and cuBLAS', of each 16-bit type and fp8: the
 * compute rate that a step is predicted from, and the load under which a GPU must hold its clock,
 * its temperature and its results. A GPU that is throttled, or slower than its like, is named. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/burn.h"
#include "bench/gemm_judge.h"
#include "bench/gpu_watch.h"

static const int32_t types[] = {NW_BFLOAT16, NW_HALF, NW_FLOAT8};
#define TYPE_COUNT (sizeof types / sizeof *types)
/* Of the load's time, for a further shape: the GPU is hot already, only its rate is asked for. */
#define BESIDE_SHARE 0.25

/* What a rank found out, for rank 0. */
struct outcome {
    int left_out; /* its GPU, or the library, has no such product */
    char why[512];
    double wrong; /* elements */
    struct nw_wrong first;
    struct nw_gpu_state before, after;
    struct nw_burn burn;
};

struct gemm {
    struct nw_bench *bench;
    struct nw_devices devices;
    struct nw_product product;
    struct nw_gemm_shape shape;   /* of the current unit */
    bool beside;                  /* one of the further shapes, not the square load */
    struct outcome mine, *all;    /* all: of each rank */
    struct nw_record *identities; /* of a unit: one a rank */
    const struct nw_record **kept;
    struct nw_gemm_rate *rates; /* rank 0 */
    size_t rate_count;
    bool told_cublas;
};

/* ---- one lane, one type ------------------------------------------------------------------------
 */

static void identify(const struct gemm *gemm, nw_product_lane lane, int32_t dtype)
{
    const struct nw_comm *comm = gemm->bench->comm;

    for (int rank = 0; rank < comm->rank_count; rank++) {
        struct nw_record *record = &gemm->identities[rank];

        nw_bench_identity(gemm->bench, "gemm", record);
        snprintf(record->collective, sizeof record->collective, "gemm");
        snprintf(record->lane, sizeof record->lane, "%s", nw_product_lanes[lane]);
        snprintf(record->dtype, sizeof record->dtype, "%s", nw_gemm_dtype_name(dtype));
        record->features[0] = '\0'; /* those are the collective library's */
        record->bytes = nw_product_bytes(&gemm->shape, dtype);
        record->count = (uint64_t)gemm->shape.m * (uint64_t)gemm->shape.n;
        record->m = (uint64_t)gemm->shape.m;
        record->n = (uint64_t)gemm->shape.n;
        record->k = (uint64_t)gemm->shape.k;
        record->peer_a = rank;
        snprintf(record->host_a, sizeof record->host_a, "%s",
                 comm->host_names[comm->host_of_rank[rank]]);
    }
}

static nw_rc check(struct gemm *gemm)
{
    uint64_t wrong;

    NW_TRY(nw_product_check(&gemm->product, &wrong, &gemm->mine.first));
    gemm->mine.wrong += (double)wrong;
    return NW_OK;
}

/* The first product, never timed, every element compared. */
static nw_rc first_product(struct gemm *gemm, nw_product_lane lane, int32_t dtype)
{
    struct nw_device *device = &gemm->devices.own;
    const struct nw_dev_ops *ops = device->dev->ops;
    nw_rc rc;

    if (gemm->product.gemm.dtype != dtype || gemm->product.range == 0)
        NW_TRY(nw_product_operands(&gemm->product, dtype));
    NW_TRY(nw_product_spoil(&gemm->product));
    rc = nw_product_queue(&gemm->product, lane);
    if (rc == NW_ENOTSUP || rc == NW_ENODEV) {
        gemm->mine.left_out = 1;
        snprintf(gemm->mine.why, sizeof gemm->mine.why, "%.500s", nw_last_error()->text);
        nw_clear_error();
        return ops->wait(device->stream, nw_bench_margin_ns(gemm->bench));
    }
    NW_TRY(rc);
    NW_TRY(ops->wait(device->stream, nw_bench_margin_ns(gemm->bench)));
    return check(gemm);
}

static nw_rc load(struct gemm *gemm, nw_product_lane lane)
{
    struct nw_bench *bench = gemm->bench;
    struct nw_device *device = &gemm->devices.own;
    struct outcome *mine = &gemm->mine;

    if (mine->left_out || mine->wrong > 0)
        return NW_OK;
    mine->burn = (struct nw_burn){
        .budget_ns = bench->plan->burn_ns * (gemm->beside ? BESIDE_SHARE : 1),
        .margin_ns = nw_bench_margin_ns(bench),
        .status = bench->events->status,
        .real_time = bench->comm->now_ns == NULL,
    };
    NW_TRY(nw_burn_run(&gemm->product, lane, &mine->burn));
    mine->burn.status = NULL; /* the other ranks get all of this */
    mine->after = nw_gpu_look(device->nvml, device->nvml_index);
    return check(gemm); /* the last of the load: a hot chip's */
}

/* A phase ends when the slowest rank is there: the first product of all types makes the operands
 * on the host, and the load lasts as long as the slowest GPU needs for it. */
static void enter(const struct gemm *gemm, const char *title, const char *phase)
{
    const double limit_ns = 6 * nw_bench_margin_ns(gemm->bench) + 4 * gemm->bench->plan->burn_ns;
    char text[NW_BENCH_STATUS_TEXT];

    snprintf(text, sizeof text, "%s, %s", title, phase);
    nw_bench_status_write(gemm->bench->events->status, nw_now_ns() + (uint64_t)limit_ns, text);
}

static nw_rc measure(struct gemm *gemm, nw_product_lane lane, int32_t dtype, const char *title)
{
    struct nw_comm *comm = gemm->bench->comm;
    struct nw_device *device = &gemm->devices.own;
    nw_rc rc;

    gemm->mine = (struct outcome){
        .before = nw_gpu_look(device->nvml, device->nvml_index),
        .after = nw_gpu_look(NULL, -1),
    };
    enter(gemm, title, "first product and check");
    NW_TRY(nw_agree(comm, first_product(gemm, lane, dtype))); /* then all start together */
    enter(gemm, title, "load");
    rc = load(gemm, lane);
    enter(gemm, title, "waiting for the other GPUs");
    NW_TRY(nw_agree(comm, rc));
    return comm->ops->exchange(comm, &gemm->mine, sizeof gemm->mine, gemm->all);
}

/* ---- records -----------------------------------------------------------------------------------
 */

static nw_rc report_wrong(const struct gemm *gemm, int rank, struct nw_record *record)
{
    const struct outcome *outcome = &gemm->all[rank];
    char where[NW_DEVICE_TEXT];

    record->rc = NW_EWRONG;
    return nw_findings_add(
        &record->warnings, NW_FINDING_FAIL, "wrong-data",
        nw_device_text(gemm->bench, &gemm->devices, rank, where),
        "do not use this GPU; test its memory and its cooling (dcgmi diag -r 3)",
        "the %s %s product of %d × %d × %d is wrong in %.0f of its elements; the first is %llu: "
        "%.9g instead of %.9g",
        record->lane, record->dtype, gemm->shape.m, gemm->shape.n, gemm->shape.k, outcome->wrong,
        (unsigned long long)outcome->first.index, outcome->first.found, outcome->first.expected);
}

static nw_rc fill_record(const struct gemm *gemm, int rank, struct nw_record *record)
{
    const struct outcome *outcome = &gemm->all[rank];
    const struct nw_burn *burn = &outcome->burn;

    record->wrong_elements = (int64_t)outcome->wrong;
    record->before = outcome->before;
    record->after = outcome->after;
    if (outcome->wrong > 0)
        return report_wrong(gemm, rank, record);
    record->during = burn->during;
    NW_TRY(nw_stats_of(burn->samples_ns, burn->count, &record->time_ns));
    record->samples_ns = malloc(burn->count * sizeof *record->samples_ns);
    if (record->samples_ns == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the samples of a matrix product");
    memcpy(record->samples_ns, burn->samples_ns, burn->count * sizeof *record->samples_ns);
    record->calls_per_sample = burn->calls;
    record->stop = NW_STOP_BUDGET;
    record->flop_per_s = nw_product_flop(&gemm->product) / record->time_ns.median * 1e9;
    return NW_OK;
}

static void note(struct gemm *gemm, nw_product_lane lane, const struct nw_record *record)
{
    struct nw_gemm_rate *rate;

    if (gemm->rates == NULL || gemm->beside || !(record->flop_per_s > 0))
        return;
    rate = &gemm->rates[gemm->rate_count++];
    *rate = (struct nw_gemm_rate){
        .rank = record->peer_a,
        .lane = (int)lane,
        .model = gemm->devices.about[record->peer_a].model,
        .flop_per_s = record->flop_per_s,
        .drift = record->samples_ns != NULL
                     ? nw_gemm_drift(record->samples_ns, record->time_ns.count)
                     : NAN,
        .during = record->during,
    };
    snprintf(rate->dtype, sizeof rate->dtype, "%s", record->dtype);
}

static nw_rc hand_out(struct gemm *gemm, nw_product_lane lane)
{
    for (int rank = 0; rank < gemm->bench->comm->rank_count; rank++) {
        struct nw_record *record = &gemm->identities[rank];
        nw_rc rc;

        if (gemm->all[rank].left_out)
            continue;
        rc = fill_record(gemm, rank, record);
        if (rc == NW_OK) {
            nw_bench_record(gemm->bench, record);
            note(gemm, lane, record);
        }
        nw_record_free(record);
        NW_TRY(rc);
    }
    return NW_OK;
}

/* Once for cuBLAS as a whole; else for a lane and type. The first rank's words stand for all. */
static void tell_left_out(struct gemm *gemm, nw_product_lane lane, int32_t dtype)
{
    char where[NW_DEVICE_TEXT];
    int rank = 0, count = 0;

    for (int other = gemm->bench->comm->rank_count - 1; other >= 0; other--)
        if (gemm->all[other].left_out) {
            rank = other;
            count++;
        }
    if (count == 0 || gemm->told_cublas)
        return;
    nw_device_text(gemm->bench, &gemm->devices, rank, where);
    if (lane == NW_PRODUCT_CUBLAS && dtype == types[0]) {
        gemm->told_cublas = true;
        nw_bench_finding(gemm->bench, NW_FINDING_INFO, "no-cublas", where,
                         "put the folder of libcublas.so.13, .12 or .11 into LD_LIBRARY_PATH, or "
                         "name the file in NW_CUBLAS_LIBRARY",
                         "without cuBLAS the compute rate is that of our own product alone: %s",
                         gemm->all[rank].why);
        return;
    }
    nw_bench_finding(gemm->bench, NW_FINDING_INFO, "gemm-left-out", where, NULL,
                     "no %s product of %s: %s", nw_product_lanes[lane], nw_gemm_dtype_name(dtype),
                     gemm->all[rank].why);
}

static nw_rc unit(struct gemm *gemm, nw_product_lane lane, int32_t dtype)
{
    struct nw_bench *bench = gemm->bench;
    const size_t ranks = (size_t)bench->comm->rank_count;
    char title[128];
    struct nw_unit unit = {.identities = gemm->identities, .identity_count = ranks, .title = title};
    bool go;

    identify(gemm, lane, dtype);
    snprintf(title, sizeof title, "gemm %s %s %d x %d x %d", nw_product_lanes[lane],
             nw_gemm_dtype_name(dtype), gemm->shape.m, gemm->shape.n, gemm->shape.k);
    memset(gemm->kept, 0, ranks * sizeof(const struct nw_record *));
    NW_TRY(nw_bench_begin(bench, &unit, &go, gemm->kept));
    for (size_t rank = 0; rank < ranks; rank++)
        if (gemm->kept[rank] != NULL)
            note(gemm, lane, gemm->kept[rank]);
    if (!go)
        return NW_OK;
    NW_TRY(measure(gemm, lane, dtype, title));
    if (bench->comm->rank == 0 && !gemm->beside)
        tell_left_out(gemm, lane, dtype);
    for (size_t rank = 0; rank < ranks; rank++)
        bench->wrong |= gemm->all[rank].wrong > 0;
    NW_TRY(nw_agree(bench->comm, bench->comm->rank == 0 ? hand_out(gemm, lane) : NW_OK));
    nw_bench_end(bench, &unit);
    return NW_OK;
}

/* ---- afterwards, on rank 0 ---------------------------------------------------------------------
 */

static void tell_throttled(struct gemm *gemm, const struct nw_gemm_fault *fault)
{
    char where[NW_DEVICE_TEXT], text[NW_GPU_STATE_TEXT];

    nw_device_text(gemm->bench, &gemm->devices, fault->rank, where);
    nw_bench_finding(gemm->bench, NW_FINDING_WARN, "throttled", where,
                     "look at fans, air flow and power supply of this GPU's place; ask the vendor "
                     "to replace it if its neighbours are not throttled",
                     "is slowed down under load: %s",
                     nw_gpu_state_text(&fault->rate->during, text));
}

static void tell_slow(struct gemm *gemm, const struct nw_gemm_fault *fault)
{
    char where[NW_DEVICE_TEXT];

    nw_device_text(gemm->bench, &gemm->devices, fault->rank, where);
    nw_bench_finding(gemm->bench, NW_FINDING_WARN, "gpu-slow", where,
                     "every step waits for the slowest GPU: have this one looked at, or leave it "
                     "out",
                     "%.1f TFLOP/s (%s, %s), %.1f %% less than the %.1f that GPUs like it reach",
                     fault->rate->flop_per_s * 1e-12, nw_product_lanes[fault->rate->lane],
                     fault->rate->dtype, 100 * (1 - fault->rate->flop_per_s / fault->usual),
                     fault->usual * 1e-12);
}

static void tell_drift(struct gemm *gemm, const struct nw_gemm_fault *fault)
{
    char where[NW_DEVICE_TEXT], burn[32];

    nw_device_text(gemm->bench, &gemm->devices, fault->rank, where);
    nw_bench_finding(gemm->bench, NW_FINDING_WARN, "gemm-drift", where,
                     "measure longer (--burn 60s): the rate that lasts is the last one",
                     "becomes %.1f %% slower within %s of load (%s, %s)", 100 * fault->rate->drift,
                     nw_format_ns(burn, gemm->bench->plan->burn_ns),
                     nw_product_lanes[fault->rate->lane], fault->rate->dtype);
}

static void tell_capped(struct gemm *gemm, const struct nw_gemm_fault *faults, size_t count)
{
    const struct nw_gemm_fault *worst = faults;
    char where[NW_DEVICE_TEXT], text[NW_GPU_STATE_TEXT];

    if (count == 0)
        return;
    for (size_t i = 1; i < count; i++)
        if (faults[i].rate->during.sm_clock_hz < worst->rate->during.sm_clock_hz)
            worst = &faults[i];
    nw_device_text(gemm->bench, &gemm->devices, worst->rank, where);
    nw_bench_finding(gemm->bench, NW_FINDING_INFO, "power-cap", where, NULL,
                     "%zu of %d GPUs lower their clock to hold their power limit, which is usual "
                     "under matrix products; the lowest: %s",
                     count, gemm->bench->comm->rank_count,
                     nw_gpu_state_text(&worst->rate->during, text));
}

static void tell_share_of_cublas(struct gemm *gemm)
{
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        const char *dtype = nw_gemm_dtype_name(types[t]);
        const double own = nw_gemm_median(gemm->rates, gemm->rate_count, NW_PRODUCT_OWN, dtype);
        const double cublas =
            nw_gemm_median(gemm->rates, gemm->rate_count, NW_PRODUCT_CUBLAS, dtype);

        if (own < NW_GEMM_OWN_SHARE * cublas)
            nw_bench_finding(gemm->bench, NW_FINDING_INFO, "gemm-far-from-cublas", dtype, NULL,
                             "our own product reaches %.0f %% of cuBLAS' %.1f TFLOP/s: cuBLAS' "
                             "rate is the GPU's",
                             100 * own / cublas, cublas * 1e-12);
    }
}

static nw_rc judge(struct gemm *gemm)
{
    const struct nw_gemm_rate *rates = gemm->rates;
    const size_t count = gemm->rate_count;
    struct nw_gemm_fault *faults = calloc(count > 0 ? count : 1, sizeof *faults);
    size_t faulty;

    if (faults == NULL)
        return nw_fail(NW_ENOMEM, "no memory to judge %zu rates", count);
    faulty = nw_gemm_throttled(rates, count, faults);
    for (size_t i = 0; i < faulty; i++)
        tell_throttled(gemm, &faults[i]);
    tell_capped(gemm, faults, nw_gemm_power_capped(rates, count, faults));
    faulty = nw_gemm_slow(rates, count, faults);
    for (size_t i = 0; i < faulty; i++)
        tell_slow(gemm, &faults[i]);
    faulty = nw_gemm_drifting(rates, count, faults);
    for (size_t i = 0; i < faulty; i++)
        tell_drift(gemm, &faults[i]);
    tell_share_of_cublas(gemm);
    free(faults);
    return NW_OK;
}

static void tell_no_nvml(struct gemm *gemm)
{
    char where[NW_DEVICE_TEXT];

    for (int rank = 0; rank < gemm->devices.rank_count; rank++)
        if (gemm->devices.about[rank].smi_index < 0) {
            nw_device_text(gemm->bench, &gemm->devices, rank, where);
            nw_bench_finding(gemm->bench, NW_FINDING_INFO, "no-nvml", where,
                             "install the driver's libnvidia-ml.so.1",
                             "clocks, power, temperature and throttling under load are unknown: "
                             "the driver's NVML does not answer");
            return;
        }
}

/* ---- all ---------------------------------------------------------------------------------------
 */

static nw_rc walk_types(struct gemm *gemm)
{
    for (size_t t = 0; t < TYPE_COUNT; t++)
        for (int lane = 0; lane < NW_PRODUCT_LANE_COUNT; lane++)
            NW_TRY(unit(gemm, (nw_product_lane)lane, types[t]));
    return NW_OK;
}

/* bfloat16, as most models are trained; half where the chip has no bfloat16 products. Our own
 * kernel makes whole tiles only; what has no room is left out. */
static nw_rc walk_shapes(struct gemm *gemm, uint64_t free_bytes)
{
    struct nw_bench *bench = gemm->bench;
    const int32_t type = bench->comm->dev->capability >= 80 ? NW_BFLOAT16 : NW_HALF;

    gemm->beside = true;
    for (size_t i = 0; i < bench->plan->shape_count; i++) {
        gemm->shape = bench->plan->shapes[i];
        if (!nw_product_fits(&gemm->shape, free_bytes)) {
            if (bench->comm->rank == 0)
                nw_bench_finding(bench, NW_FINDING_INFO, "gemm-left-out", "", NULL,
                                 "no product of %d x %d x %d: no GPU memory left", gemm->shape.m,
                                 gemm->shape.n, gemm->shape.k);
            continue;
        }
        if (!bench->dry)
            NW_TRY(nw_agree(bench->comm, nw_product_reshape(&gemm->product, &gemm->shape)));
        for (int lane = 0; lane < NW_PRODUCT_LANE_COUNT; lane++)
            if (lane != NW_PRODUCT_OWN || nw_product_is_tiled(&gemm->shape))
                NW_TRY(unit(gemm, (nw_product_lane)lane, type));
    }
    return NW_OK;
}

static nw_rc open_product(struct gemm *gemm, uint64_t free_bytes)
{
    const int n = nw_product_size(gemm->bench->plan->gemm_size, free_bytes);

    gemm->shape = (struct nw_gemm_shape){n, n, n};
    if (n == 0)
        return nw_fail(NW_ENOMEM, "gemm: no GPU memory left for a product of %d × %d",
                       NW_PRODUCT_STEP, NW_PRODUCT_STEP);
    return nw_product_open(&gemm->devices.own, n, &gemm->product);
}

static nw_rc walk(void *user)
{
    struct gemm *gemm = user;
    struct nw_comm *comm = gemm->bench->comm;
    uint64_t free_bytes = UINT64_MAX;
    nw_rc rc;

    gemm->beside = false;
    if (gemm->bench->dry) {
        NW_TRY(walk_types(gemm));
        return walk_shapes(gemm, free_bytes);
    }
    enter(gemm, "gemm", "getting ready");
    NW_TRY(nw_devices_open(gemm->bench, &gemm->devices));
    free_bytes = nw_devices_least_free(&gemm->devices);
    rc = nw_agree(comm, open_product(gemm, free_bytes));
    if (rc == NW_OK && comm->rank == 0)
        tell_no_nvml(gemm);
    if (rc == NW_OK)
        rc = walk_types(gemm);
    if (rc == NW_OK)
        rc = nw_agree(comm, comm->rank == 0 ? judge(gemm) : NW_OK);
    if (rc == NW_OK)
        rc = walk_shapes(gemm, free_bytes);
    nw_product_close(&gemm->product);
    nw_devices_close(&gemm->devices);
    return rc;
}

nw_rc nw_case_gemm(struct nw_bench *bench)
{
    const size_t ranks = (size_t)bench->comm->rank_count;
    struct gemm gemm = {.bench = bench};
    nw_rc rc;

    if (!nw_device_is_here(bench, "gemm"))
        return NW_OK;
    gemm.all = calloc(ranks, sizeof *gemm.all);
    gemm.identities = calloc(ranks, sizeof *gemm.identities);
    gemm.kept = calloc(ranks, sizeof *gemm.kept);
    gemm.rates = calloc(ranks * TYPE_COUNT * NW_PRODUCT_LANE_COUNT, sizeof *gemm.rates);
    if (gemm.all == NULL || gemm.identities == NULL || gemm.kept == NULL || gemm.rates == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for the products of %zu ranks", ranks);
    else
        rc = nw_bench_series(bench, walk, &gemm);
    free(gemm.rates);
    free(gemm.kept);
    free(gemm.identities);
    free(gemm.all);
    return rc;
}
