/* Matrix products by shape. A product is cut into tiles of its result, one SM works on one tile at
 * a time, and each tile begins with filling its pipeline and ends with writing its result:
 *
 *     share = useful part of the tiles × busy part of the SMs × k / (k + PIPELINE_DEPTH)
 *     rate  = what the largest products sustain × share, and never faster than memory feeds it
 *
 * Tiles: of 128 × 256, 256 × 128, 128 × 128 or 64 × 64 whichever serves best, as libraries choose;
 * the small ones move more bytes a FLOP and reach less (0.92, 0.6). The one constant that is
 * fitted, and what it leaves: docs/model.md, "Compute". */
#include "model/gemm.h"

#include <math.h>
#include <string.h>

#define DEFAULT_SM_COUNT 108
/* Elements of k that a tile's pipeline holds before it runs at full rate: four stages of 32
 * (CUTLASS defaults for 16 bit). 697 measured shapes give 100 to 160 on A100 alone and on B200
 * alone. */
#define PIPELINE_DEPTH 128
/* Best product over the peak where the catalogue does not say: between 0.73 and 0.87 on seven
 * NVIDIA boards. */
#define UNKNOWN_BEST 0.8
#define FP32_BEST    0.95 /* without matrix units: cuBLAS on V100 and A100 */

/* ---- rates --------------------------------------------------------------------------------- */

static double peak_of(const struct nw_gpu *gpu, nw_units_kind units)
{
    switch (units) {
    case NW_UNITS_FP32:
        return gpu->fp32_flops;
    case NW_UNITS_TF32: /* units before Ampere have none: the fp32 ones do it */
        return gpu->tf32_flops > 0 ? gpu->tf32_flops : gpu->fp32_flops;
    case NW_UNITS_FP16:
        return gpu->fp16_flops;
    case NW_UNITS_BF16:
        return gpu->bf16_flops;
    case NW_UNITS_FP8:
        return gpu->fp8_flops;
    }
    return 0;
}

double nw_gpu_peak(const struct nw_gpu *gpu, const struct nw_precision *precision)
{
    return peak_of(gpu, precision->units);
}

/* Watts for each 10^12 FLOP/s of 16-bit products at the clock of the datasheet's peak, by chip:
 * what a board's power limit falls short of lowers its clock. From boards of one chip with
 * different limits (A100 PCIe 300 W against SXM: 697 shapes; A10 against A6000; L4 against L40S;
 * GB300 against GB200) and, for Hopper, published steps of one software on A100 and on H100. */
static const struct {
    const char *arch;
    double watts;
} needs[] = {{"volta", 2.4}, {"turing", 2.4},  {"ampere-dc", 1.1}, {"ampere", 1.9},
             {"ada", 1.05},  {"hopper", 0.85}, {"blackwell", 1.0}, {"blackwell-dc", 0.68}};
/* Clock over power below that: P = f V², V falls with f until it reaches its floor, so between the
 * third root and the first power. H100 PCIe (350 W) against SXM (700 W) and T4 fit 0.65. */
#define CLOCK_POWER 0.65

static double power_share(const struct nw_gpu *gpu)
{
    const double peak = gpu->bf16_flops > 0 ? gpu->bf16_flops : gpu->fp16_flops;

    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        if (strcmp(gpu->arch, needs[i].arch) == 0 && gpu->tdp_w > 0 && peak > 0)
            return fmin(1, pow(gpu->tdp_w / (needs[i].watts * peak / 1e12), CLOCK_POWER));
    return 1;
}

/* Sustained rate from the catalogue: what the largest products were seen to reach, scaled between
 * units by their peaks. */
static double catalogue_flops(const struct nw_platform *platform, nw_units_kind units,
                              double instruction_share)
{
    const struct nw_gpu *gpu = platform->gpu;
    const double peak = gpu != NULL ? peak_of(gpu, units) : 0;
    const double half = gpu == NULL ? 0 : gpu->bf16_flops > 0 ? gpu->bf16_flops : gpu->fp16_flops;

    if (!(peak > 0))
        return NAN;
    const double share =
        nw_assumption(platform, NW_CONSTANT_GEMM_SHARE) * fmin(power_share(gpu), instruction_share);

    if (units == NW_UNITS_FP8 && gpu->matmul_fp8_flops > 0)
        return gpu->matmul_fp8_flops * share;
    if (peak == gpu->fp32_flops) /* no matrix units, no power limit */
        return peak * FP32_BEST * nw_assumption(platform, NW_CONSTANT_GEMM_SHARE);
    if (gpu->matmul_flops > 0 && half > 0)
        return gpu->matmul_flops * peak / half * share;
    return peak * UNKNOWN_BEST * share;
}

double nw_instruction_flops(const struct nw_platform *platform, nw_units_kind units,
                            double instruction_share)
{
    const double known = catalogue_flops(platform, units, instruction_share);

    if (platform->rate.source != NW_RATE_GEMM)
        return known;
    /* Measured in the job's own type; other units and kernels in the ratio of the catalogue. */
    const double own = catalogue_flops(platform, platform->units, 1);

    if (!isfinite(known) || !isfinite(own))
        return platform->rate.base_flops_per_s * instruction_share;
    return platform->rate.base_flops_per_s * known / own;
}

double nw_sustained_flops(const struct nw_platform *platform, nw_units_kind units)
{
    return nw_instruction_flops(platform, units, 1);
}

double nw_traffic_ns(const struct nw_platform *platform, double bytes)
{
    const double rate = platform->hbm_bytes_per_s * nw_assumption(platform, NW_CONSTANT_HBM_SHARE);

    return rate > 0 ? bytes / rate * 1e9 : 0;
}

/* ---- the law ------------------------------------------------------------------------------- */

static double tile_share(double sm_count, const struct nw_product *product, double high,
                         double wide)
{
    const double rows = ceil(product->m / high), columns = ceil(product->n / wide);
    const double tiles = product->batch * rows * columns;
    const double useful = product->m * product->n / (rows * high * columns * wide);
    const double busy = tiles / (ceil(tiles / sm_count) * sm_count);

    return useful * busy;
}

/* Rows that do not begin on whole lines of 128 bytes are fetched in pieces; those that do not begin
 * on 16 bytes cannot be fetched as vectors at all (NVIDIA, Matrix Multiplication Background,
 * "Tensor Core Requirements"). What is lost: published steps of a model 14,400 wide against 14,336,
 * of heads of 108 against heads of 144, TP 8 and 4. Tokens lie apart: their count does not matter.
 */
static double aligned_share(const struct nw_product *product)
{
    const double in_bytes = product->in_bytes > 0 ? product->in_bytes : 2;
    const double sides[] = {product->n * in_bytes,
                            (product->outer ? product->m : product->k) * in_bytes};
    double share = 1;

    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++)
        share = fmin(share, fmod(sides[i], 16) != 0 ? 0.2 : fmod(sides[i], 128) != 0 ? 0.78 : 1);
    return share;
}

double nw_shape_share(const struct nw_platform *platform, const struct nw_product *product)
{
    static const struct {
        double high, wide, reach;
    } tiles[] = {{128, 256, 1}, {256, 128, 1}, {128, 128, 0.92}, {64, 64, 0.6}};
    const int known = platform->gpu != NULL ? platform->gpu->sm_count : 0;
    double best = 0;

    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++)
        best = fmax(best, tiles[i].reach * tile_share(known > 0 ? known : DEFAULT_SM_COUNT, product,
                                                      tiles[i].high, tiles[i].wide));
    return best * product->k / (product->k + PIPELINE_DEPTH) * aligned_share(product);
}

/* ---- measured points ----------------------------------------------------------------------- */

/* Of an element that these units read. */
static double element_bytes(nw_units_kind units)
{
    switch (units) {
    case NW_UNITS_FP32:
    case NW_UNITS_TF32:
        return 4;
    case NW_UNITS_FP16:
    case NW_UNITS_BF16:
        break;
    case NW_UNITS_FP8:
        return 1;
    }
    return 2;
}

static struct nw_product shape_of(const struct nw_gemm_point *point, nw_units_kind units)
{
    return (struct nw_product){.batch = point->batch > 0 ? point->batch : 1,
                               .m = point->m,
                               .n = point->n,
                               .k = point->k,
                               .in_bytes = element_bytes(units)};
}

void nw_gemm_prepare(struct nw_platform *platform)
{
    const double sustained = nw_sustained_flops(platform, platform->units);

    for (size_t i = 0; i < platform->measured.product_count; i++) {
        struct nw_gemm_point *point = &platform->measured.products[i];
        const struct nw_product shape = shape_of(point, platform->units);

        point->log_rows = log(shape.m * shape.batch);
        point->log_n = log(shape.n);
        point->log_k = log(shape.k);
        point->log_ratio = log(point->flops_per_s / (sustained * nw_shape_share(platform, &shape)));
    }
}

/* Measured over the law's, from the measured shapes, weighted by the inverse square of their
 * distance in log m, n, k: at a measured shape the measurement, far away their mean. */
static double measured_ratio(const struct nw_platform *platform, const struct nw_product *product)
{
    const struct nw_measured *measured = &platform->measured;
    const double rows = log(product->m * product->batch), n = log(product->n), k = log(product->k);
    double weights = 0, sum = 0;

    for (size_t i = 0; i < measured->product_count; i++) {
        const struct nw_gemm_point *point = &measured->products[i];
        const double at[3] = {point->log_rows - rows, point->log_n - n, point->log_k - k};
        const double weight = 1 / (at[0] * at[0] + at[1] * at[1] + at[2] * at[2] + 1e-6);

        if (!isfinite(point->log_ratio))
            continue;
        weights += weight;
        sum += weight * point->log_ratio;
    }
    return weights > 0 ? exp(sum / weights) : 1;
}

/* By the law, or by what was measured of these units; then never faster than the fastest product
 * that was (by the peak where only single shapes are known): a small product says little of large
 * ones. */
static double product_flops(const struct nw_platform *platform, nw_units_kind units,
                            const struct nw_product *product)
{
    const double sustained = nw_sustained_flops(platform, units);
    const double law = sustained * nw_shape_share(platform, product);

    if (platform->measured.product_count == 0 || units != platform->units)
        return law;
    const double most = platform->rate.source == NW_RATE_GEMM ? sustained : platform->peak_flops;
    const double rate = law * measured_ratio(platform, product);

    return most > 0 ? fmin(rate, most) : rate;
}

double nw_product_ns(const struct nw_platform *platform, nw_units_kind units,
                     const struct nw_product *product)
{
    const double flops = nw_product_flops(product);

    if (!(flops > 0))
        return 0;
    const double rate = product_flops(platform, units, product);
    const double bytes =
        product->batch * ((product->m + product->n) * product->k * product->in_bytes +
                          product->m * product->n * product->out_bytes);

    return fmax(flops / rate * 1e9, nw_traffic_ns(platform, bytes));
}

double nw_gemm_efficiency(const struct nw_platform *platform, double batch, double m, double n,
                          double k)
{
    const double in_bytes = element_bytes(platform->units);
    const struct nw_product product = {.batch = batch,
                                       .m = m,
                                       .n = n,
                                       .k = k,
                                       .in_bytes = in_bytes,
                                       .out_bytes = fmax(in_bytes, 2)}; /* of fp8: 16 bit */
    const double ns = nw_product_ns(platform, platform->units, &product);
    const double peak = platform->peak_flops > 0 ? platform->peak_flops
                                                 : nw_sustained_flops(platform, platform->units);

    return nw_product_flops(&product) / ns * 1e9 / peak;
}
