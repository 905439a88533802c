/* Time of the computation: operators (model/operators.c) over the rates of one GPU.
 *
 *     pass = products + attention core + bytes between them × passes of the framework
 *            + kernels × gap, and never less than it takes the CPU to launch its kernels
 *
 * Where only the rate of a whole step is known (--tflops), FLOPs over that rate. */
#include "model/model.h"

#include <math.h>
#include <string.h>

#include "model/gemm.h"
#include "model/operators.h"
#include "model/profile.h"

/* Of each product of an adapter, with its part of dropout, cast, scale and sum (PEFT
 * lora/layer.py: six kernels for two products): an eager framework launches no more for it. */
#define ADAPTER_KERNELS 3.0

struct rates {
    const struct nw_platform *platform;
    const struct nw_profile *profile;
    nw_units_kind units, wide_units; /* wide: of what fp8 leaves in 16 bit */
    double e, gradient_bytes;
    double launch_ns, gap_ns; /* of a kernel: on the CPU, on the GPU */
    double scale;             /* of everything: framework × anchor */
    double adapter_kernels;   /* as many of a layer's own */
};

static struct rates rates_of(const struct nw_job *job, const struct nw_layout *layout,
                             const struct nw_platform *platform)
{
    const struct nw_profile *profile = nw_layout_profile(layout);
    const nw_units_kind units = job->precision->units;

    return (struct rates){
        .platform = platform,
        .profile = profile,
        .units = units,
        .wide_units = units == NW_UNITS_FP8 ? NW_UNITS_BF16 : units,
        .e = job->precision->element_bytes,
        .gradient_bytes = nw_job_gradient_bytes(job),
        .launch_ns = nw_assumption(platform, NW_CONSTANT_LAUNCH_NS) * profile->launch_share,
        .gap_ns = NW_KERNEL_GAP_NS * profile->launch_share,
        .adapter_kernels = profile->launch_share > 0
                               ? fmin(ADAPTER_KERNELS / profile->launch_share, ADAPTER_KERNELS)
                               : 1,
        .scale = profile->time_factor *
                 (platform->step_time_factor > 0 ? platform->step_time_factor : 1),
    };
}

/* ---- one pass over a unit ------------------------------------------------------------------ */

struct pass {
    double product_ns, attention_ns, memory_ns;
    double kernels;
};

static void add_product(const struct rates *rates, const struct nw_linear *linear,
                        struct nw_product product, struct pass *pass)
{
    const bool narrow = linear->narrow && rates->units == NW_UNITS_FP8;

    product.in_bytes = narrow ? 1 : rates->e;
    if (product.out_bytes == 0)
        product.out_bytes = rates->e;
    const double ns =
        nw_product_ns(rates->platform, narrow ? rates->units : rates->wide_units, &product);

    *(linear->attention ? &pass->attention_ns : &pass->product_ns) += ns;
    pass->kernels += linear->adapter ? rates->adapter_kernels : 1;
}

static void forward_linear(const struct rates *rates, const struct nw_linear *linear,
                           struct pass *pass)
{
    add_product(rates, linear,
                (struct nw_product){
                    .batch = linear->batch, .m = linear->rows, .n = linear->out, .k = linear->in},
                pass);
}

/* A weight's gradient is added to what earlier micro-batches left: read and written. */
static void backward_linear(const struct rates *rates, const struct nw_linear *linear,
                            struct pass *pass)
{
    add_product(rates, linear,
                (struct nw_product){
                    .batch = linear->batch, .m = linear->rows, .n = linear->in, .k = linear->out},
                pass);
    if (!linear->frozen)
        add_product(
            rates, linear,
            (struct nw_product){.batch = linear->batch,
                                .m = linear->in,
                                .n = linear->out,
                                .k = linear->rows,
                                .outer = true,
                                .out_bytes = linear->weights ? 2 * rates->gradient_bytes : 0},
            pass);
}

/* Kernels that were written for Ampere's matrix instructions reach 0.63 of the rate of those that
 * came with Hopper (Luo et al. 2024, Benchmarking and Dissecting the Nvidia Hopper GPU, table 7).
 */
static double instruction_share(const struct rates *rates)
{
    const struct nw_gpu *gpu = rates->platform->gpu;
    const bool has_new =
        gpu != NULL && (strcmp(gpu->arch, "hopper") == 0 || strcmp(gpu->arch, "blackwell-dc") == 0);

    return has_new && rates->profile->attention_share < 1 ? 0.63 : 1;
}

/* A fused core: its tiles of 128 queries are dealt to the SMs like a product's; heads of 64 feed
 * the matrix units less than those of 128 (Dao 2023, figures 4-7). */
static double core_ns(const struct rates *rates, const struct nw_attention_core *core, double flops)
{
    const struct nw_product tiles = {
        .batch = core->batch, .m = core->rows, .n = 128, .k = 1e9 /* depth costs nothing */};
    const double size = (core->query_size + core->value_size) / 2;
    const double share = nw_assumption(rates->platform, NW_CONSTANT_ATTENTION_SHARE) * size /
                         (size + 32) * (160.0 / 128) * rates->profile->attention_share *
                         fmin(nw_shape_share(rates->platform, &tiles) / 0.92, 1);

    return core->batch > 0 ? flops /
                                 (nw_instruction_flops(rates->platform, rates->wide_units,
                                                       instruction_share(rates)) *
                                  share) *
                                 1e9
                           : 0;
}

static struct pass forward_pass(const struct rates *rates, const struct nw_operators *operators)
{
    const double passes = rates->profile->memory_passes;
    struct pass pass = {.kernels = operators->forward_kernels * passes};

    for (size_t i = 0; i < operators->linear_count; i++)
        forward_linear(rates, &operators->linears[i], &pass);
    pass.attention_ns += core_ns(rates, &operators->core, nw_core_flops(&operators->core));
    pass.kernels += operators->core.batch > 0 ? 1 : 0;
    pass.memory_ns =
        nw_traffic_ns(rates->platform, operators->forward_bytes * passes + operators->pass_bytes);
    if (operators->stated_flops > 0)
        pass.product_ns +=
            operators->stated_flops / nw_sustained_flops(rates->platform, rates->units) * 1e9;
    return pass;
}

/* Where the sum over the micro-batches is no part of the product: the new gradient is read, the sum
 * read and written; DeepSpeed's BF16_Optimizer sums in fp32, through an fp32 copy. */
static double sum_bytes(const struct rates *rates, const struct nw_operators *operators)
{
    const double sum = rates->units == NW_UNITS_BF16 ? 4 : rates->gradient_bytes;
    const double copy = sum > rates->gradient_bytes ? 2 * sum : 0;
    double elements = 0;

    if (!rates->profile->sums_apart)
        return 0;
    for (size_t i = 0; i < operators->linear_count; i++) {
        const struct nw_linear *linear = &operators->linears[i];

        if (linear->weights && !linear->frozen)
            elements += linear->batch * linear->in * linear->out;
    }
    return elements * (rates->gradient_bytes + copy + 2 * sum);
}

static struct pass backward_pass(const struct rates *rates, const struct nw_operators *operators)
{
    const double passes = rates->profile->memory_passes;
    struct pass pass = {.kernels = operators->backward_kernels * passes};

    for (size_t i = 0; i < operators->linear_count; i++)
        backward_linear(rates, &operators->linears[i], &pass);
    pass.attention_ns += core_ns(rates, &operators->core, 2.5 * nw_core_flops(&operators->core));
    pass.kernels += operators->core.batch > 0 ? 2 : 0;
    pass.memory_ns =
        nw_traffic_ns(rates->platform, operators->backward_bytes * passes + operators->pass_bytes +
                                           sum_bytes(rates, operators));
    if (operators->stated_flops > 0)
        pass.product_ns +=
            2 * operators->stated_flops / nw_sustained_flops(rates->platform, rates->units) * 1e9;
    return pass;
}

/* The attention core once more: materialised scores are made again; a flash kernel's backward does
 * that anyway, frameworks that checkpoint it run its forward again. */
static struct pass selective_pass(const struct rates *rates, const struct nw_operators *operators)
{
    struct pass pass = {.kernels = operators->core.batch > 0 ? 1 : 2};

    for (size_t i = 0; i < operators->linear_count; i++)
        if (operators->linears[i].attention)
            forward_linear(rates, &operators->linears[i], &pass);
    pass.attention_ns += core_ns(rates, &operators->core, nw_core_flops(&operators->core));
    pass.memory_ns =
        nw_traffic_ns(rates->platform, operators->softmax_bytes * rates->profile->memory_passes);
    return pass;
}

/* The block's last product makes nothing that its backward pass needs. */
static struct pass again_pass(const struct rates *rates, const struct nw_operators *operators,
                              const struct pass *forward)
{
    struct pass pass = *forward, last = {0};
    size_t i = operators->linear_count;

    while (i > 0 && !operators->linears[i - 1].narrow)
        i--;
    if (rates->profile->stops_recompute && i > 0)
        forward_linear(rates, &operators->linears[i - 1], &last);
    pass.product_ns -= last.product_ns;
    pass.kernels -= last.kernels;
    return pass;
}

static double core_forward_flops(const struct nw_operators *operators)
{
    double sum = nw_core_flops(&operators->core);

    for (size_t i = 0; i < operators->linear_count; i++)
        if (operators->linears[i].attention)
            sum += 2 * operators->linears[i].batch * operators->linears[i].rows *
                   operators->linears[i].in * operators->linears[i].out;
    return sum;
}

/* ---- units --------------------------------------------------------------------------------- */

/* Adds the pass to the parts; returns its time. */
static double take(const struct rates *rates, const struct pass *pass, struct nw_unit_time *time)
{
    const double busy = pass->product_ns + pass->attention_ns + pass->memory_ns;
    const double gaps = pass->kernels * rates->gap_ns;
    const double idle = fmax(pass->kernels * rates->launch_ns - busy - gaps, 0);
    const double whole = busy + gaps + idle;

    time->product_ns += pass->product_ns * rates->scale;
    time->attention_ns += pass->attention_ns * rates->scale;
    time->memory_ns += pass->memory_ns * rates->scale;
    time->launch_ns += (gaps + idle) * rates->scale;
    time->idle_ns += idle * rates->scale;
    return whole * rates->scale;
}

static void count_flops(const struct nw_operators *operators, nw_recompute recompute,
                        struct nw_unit_time *time)
{
    const double forward = nw_operators_forward_flops(operators);
    const double again = recompute == NW_RECOMPUTE_FULL        ? forward
                         : recompute == NW_RECOMPUTE_SELECTIVE ? core_forward_flops(operators)
                                                               : 0;

    time->model_flops = forward + nw_operators_backward_flops(operators);
    time->flops = time->model_flops + again;
}

/* A step's own rate: everything that is not a product is inside it. */
static struct nw_unit_time stated_time(const struct rates *rates,
                                       const struct nw_operators *operators, nw_recompute recompute)
{
    const double ns_per_flop =
        1e9 / rates->platform->rate.flops_per_s *
        (rates->platform->step_time_factor > 0 ? rates->platform->step_time_factor : 1);
    struct nw_unit_time time = {0};

    count_flops(operators, recompute, &time);
    time.forward_ns = nw_operators_forward_flops(operators) * ns_per_flop;
    time.backward_ns = nw_operators_backward_flops(operators) * ns_per_flop;
    time.recompute_ns = (time.flops - time.model_flops) * ns_per_flop;
    time.product_ns = time.forward_ns + time.backward_ns + time.recompute_ns;
    return time;
}

static bool only_step_rate(const struct rates *rates)
{
    const struct nw_platform *platform = rates->platform;

    return platform->rate.source == NW_RATE_STATED || !(platform->hbm_bytes_per_s > 0) ||
           !isfinite(nw_sustained_flops(platform, rates->units)) ||
           !isfinite(nw_sustained_flops(platform, rates->wide_units));
}

static struct nw_unit_time unit_time(const struct rates *rates,
                                     const struct nw_operators *operators, nw_recompute recompute)
{
    struct nw_unit_time time = {0};

    if (only_step_rate(rates))
        return stated_time(rates, operators, recompute);
    const struct pass forward = forward_pass(rates, operators);
    const struct pass backward = backward_pass(rates, operators);

    count_flops(operators, recompute, &time);
    time.forward_ns = take(rates, &forward, &time);
    time.backward_ns = take(rates, &backward, &time);
    if (recompute == NW_RECOMPUTE_FULL) {
        const struct pass again = again_pass(rates, operators, &forward);

        time.recompute_ns = take(rates, &again, &time);
    }
    if (recompute == NW_RECOMPUTE_SELECTIVE) {
        const struct pass again = selective_pass(rates, operators);

        time.recompute_ns = take(rates, &again, &time);
    }
    return time;
}

void nw_compute_of(const struct nw_job *job, const struct nw_layout *layout, uint64_t micro_batch,
                   const struct nw_platform *platform, struct nw_compute *compute_out)
{
    const struct rates rates = rates_of(job, layout, platform);
    struct nw_compute compute = {0};
    struct nw_operators operators;

    for (int kind = 0; kind < NW_LAYER_KINDS; kind++) {
        compute.layer_count[kind] = (double)nw_transformer_layer_count(&job->net, kind);
        if (!(compute.layer_count[kind] > 0))
            continue;
        nw_operators_layer(job, layout, micro_batch, kind, &operators);
        compute.layer[kind] = unit_time(&rates, &operators, job->recompute);
    }
    nw_operators_embedding(job, layout, micro_batch, &operators);
    compute.embedding = unit_time(&rates, &operators, NW_RECOMPUTE_NONE);
    nw_operators_head(job, layout, micro_batch, rates.profile->fused_loss, &operators);
    compute.head = unit_time(&rates, &operators, NW_RECOMPUTE_NONE);
    *compute_out = compute;
}
