/* How fast one GPU computes and what it holds, from what the request and the results say. */
#include "model/model.h"

#include <math.h>
#include <string.h>

#include "model/gemm.h"
#include "model/platform.h"
#include "model/topologies.h"

/* Of a training step's time on one GPU, what its products take: the middle of published steps in 16
 * bit. For people, and for GPUs whose memory bandwidth is unknown; where it is known the step is
 * counted operator by operator. */
#define PRODUCTS_SHARE 0.75

static nw_rc catalogue_rate(const struct nw_platform *platform,
                            const struct nw_precision *precision, struct nw_rate *rate_out)
{
    const double peak = nw_gpu_peak(platform->gpu, precision);

    if (!(peak > 0))
        return nw_fail(NW_EUSAGE,
                       "the catalogue has no %s rate for %s; give --tflops, or another --precision",
                       precision->name, platform->gpu->name);
    *rate_out = (struct nw_rate){
        .flops_per_s = nw_sustained_flops(platform, precision->units) * PRODUCTS_SHARE,
        .rel_error = platform->assumptions.value[NW_CONSTANT_RATE_ERROR_ASSUMED],
        .source = NW_RATE_CATALOGUE,
        .base_flops_per_s = peak};
    return NW_OK;
}

/* Is the GPU that was asked for the one that the results were measured on? */
static bool is_same_gpu(const struct nw_gpu *gpu, const char *measured)
{
    const struct nw_gpu *other;

    if (measured == NULL)
        return false;
    if (nw_gpu_find(measured, &other) == NW_OK)
        return other == gpu;
    nw_clear_error();
    return false;
}

/* A step's rate from one of matrix products. */
static struct nw_rate rate_of_products(const struct nw_platform *platform, double flop_per_s)
{
    return (struct nw_rate){
        .flops_per_s = flop_per_s * PRODUCTS_SHARE,
        .rel_error = platform->assumptions.value[NW_CONSTANT_RATE_ERROR_ASSUMED],
        .source = NW_RATE_GEMM,
        .base_flops_per_s = flop_per_s,
        .base_low = NAN,
        .base_high = NAN,
    };
}

/* How records name the types in which the job's products may have been measured, the own one
 * first: the matrix units run both 16-bit types at one rate. */
static const char *const *product_types(const struct nw_precision *precision)
{
    static const struct {
        const char *precision, *dtypes[3];
    } rows[] = {{"bf16", {"bfloat16", "half", NULL}},
                {"fp16", {"half", "bfloat16", NULL}},
                {"fp8", {"f8e4m3", NULL, NULL}}};
    static const char *const none[] = {NULL};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(precision->name, rows[i].precision) == 0)
            return rows[i].dtypes;
    return none;
}

/* The results of the GPU that is asked for: its shapes in the type that was measured. */
static void read_results(const struct nw_results *results, const struct nw_precision *precision,
                         struct nw_measured *measured)
{
    const char *const *dtypes = product_types(precision);

    nw_measured_of(results, dtypes[0], measured);
    if (measured->product_count == 0 && dtypes[0] != NULL && dtypes[1] != NULL)
        nw_measured_of(results, dtypes[1], measured);
}

/* Of the largest rate that the slowest GPU reached. */
static bool measured_rate(const struct nw_platform *platform, struct nw_rate *rate_out)
{
    const struct nw_measured *measured = &platform->measured;
    const struct nw_gemm_point *best = NULL;
    double error = 0;

    for (size_t i = 0; i < measured->product_count; i++) {
        const struct nw_gemm_point *point = &measured->products[i];

        if (best == NULL || point->flops_per_s > best->flops_per_s)
            best = point;
        error = fmax(error, (point->high - point->low) / 2 / point->flops_per_s);
    }
    if (best == NULL)
        return false;
    *rate_out = rate_of_products(platform, best->flops_per_s);
    rate_out->measured = true;
    rate_out->base_low = best->low;
    rate_out->base_high = best->high;
    rate_out->simulated = measured->products_simulated;
    rate_out->rel_error = hypot(rate_out->rel_error, isfinite(error) ? error : 0);
    return true;
}

static nw_rc choose_rate(const struct nw_model_request *request,
                         const struct nw_precision *precision, const char *measured,
                         struct nw_platform *platform)
{
    if (request->tflops > 0) {
        platform->rate = (struct nw_rate){
            .flops_per_s = request->tflops * 1e12,
            .rel_error = platform->assumptions.value[NW_CONSTANT_RATE_ERROR_STATED],
            .source = NW_RATE_STATED,
            .base_flops_per_s = request->tflops * 1e12};
        return NW_OK;
    }
    if (request->gemm_tflops > 0) {
        platform->rate = rate_of_products(platform, request->gemm_tflops * 1e12);
        return NW_OK;
    }
    if (measured_rate(platform, &platform->rate))
        return NW_OK;
    if (platform->gpu != NULL) {
        platform->rate.source = NW_RATE_CATALOGUE;
        return catalogue_rate(platform, precision, &platform->rate);
    }
    if (measured != NULL)
        return nw_fail(NW_EUSAGE,
                       "how fast one GPU computes is not known: the results name \"%s\", which is "
                       "not in the catalogue; give --tflops X or --gpu NAME",
                       measured);
    return nw_fail(NW_EUSAGE, "how fast one GPU computes is not known; give --tflops X (measured "
                              "in a training step), --gemm-tflops X (measured matrix products) or "
                              "--gpu NAME (nodeworth list gpus)");
}

static void datasheet_ring(struct nw_platform *platform)
{
    struct nw_fabric *fabric = &platform->fabric;

    if (fabric->link_bytes_per_s > 0) {
        fabric->intra_busbw_bytes_per_s = fabric->link_bytes_per_s *
                                          platform->assumptions.value[NW_CONSTANT_LINK_SHARE] *
                                          (fabric->link_is_pcie ? NW_PCIE_RING : 1);
        fabric->intra_from_datasheet = true;
    }
}

/* ---- what the results say in the place of the data sheet ----------------------------------- */

/* The share of the datasheet's rate is then a measured one. */
static void take_memory(const struct nw_model_request *request, struct nw_platform *platform)
{
    struct nw_figure *memory = &platform->measured.memory;

    if (request->hbm_gb_per_s > 0 || (platform->assumptions.stated & NW_ASSUMES(HBM_SHARE)) != 0)
        *memory = (struct nw_figure){.known = false};
    if (!memory->known)
        return;
    if (!(platform->hbm_bytes_per_s > 0))
        platform->hbm_bytes_per_s = memory->value;
    platform->assumptions.value[NW_CONSTANT_HBM_SHARE] = memory->value / platform->hbm_bytes_per_s;
    platform->assumptions.measured |= NW_ASSUMES(HBM_SHARE);
    if (platform->rate.source != NW_RATE_STATED)
        platform->rate.rel_error =
            hypot(platform->rate.rel_error, (memory->high - memory->low) / 2 / memory->value);
}

/* What is sent with few SMs or in chunks disturbs no more than what is not. */
static void take_overlap(struct nw_platform *platform)
{
    double *value = platform->assumptions.value;
    const struct nw_figure *loss = &platform->measured.overlap_loss;

    if ((platform->assumptions.stated & NW_ASSUMES(OVERLAP_LOSS)) != 0)
        platform->measured.overlap_loss = (struct nw_figure){.known = false};
    if (!loss->known)
        return;
    value[NW_CONSTANT_OVERLAP_LOSS] = loss->value;
    value[NW_CONSTANT_FUSED_LOSS] = fmin(value[NW_CONSTANT_FUSED_LOSS], loss->value);
    value[NW_CONSTANT_OVERLAP_LOSS_ERROR] =
        fmax(value[NW_CONSTANT_OVERLAP_LOSS_ERROR], (loss->high - loss->low) / 2);
    platform->assumptions.measured |= NW_ASSUMES(OVERLAP_LOSS);
}

/* Both ways count alike: weights come, gradients go. */
static void take_host_link(const struct nw_model_request *request, struct nw_platform *platform)
{
    struct nw_measured *measured = &platform->measured;
    const struct nw_figure *in = &measured->to_device, *out = &measured->to_host;

    if (request->host_gb_per_s > 0)
        measured->to_device = measured->to_host = (struct nw_figure){.known = false};
    if (!in->known && !out->known)
        return;
    platform->host_to_device_bytes_per_s =
        !out->known || (in->known && in->value < out->value) ? in->value : out->value;
    if (!isfinite(platform->host_memory_bytes_per_s))
        platform->host_memory_bytes_per_s = platform->host_to_device_bytes_per_s;
}

/* Pinned copies reach 0.8 of the lanes' rate (25 of 31.5 GB/s in generation 4). The CPU's update is
 * fed by host memory, which servers have about as much of as their GPUs' lanes together (8 channels
 * of DDR4-3200 a socket for four GPUs on generation 4, 8 of DDR5-4800 on generation 5). */
#define PINNED_SHARE 0.8

static void datasheet_host(struct nw_platform *platform)
{
    const double lanes = platform->gpu->pcie_one_way_bytes_per_s;

    if (!(lanes > 0))
        return;
    platform->host_to_device_bytes_per_s = PINNED_SHARE * lanes;
    platform->host_memory_bytes_per_s = lanes;
}

nw_rc nw_platform_assume(const struct nw_model_request *request, struct nw_assumptions *assumptions)
{
    nw_assumptions_reset(assumptions);
    for (size_t i = 0; i < request->assume.count; i++)
        NW_TRY(nw_assumptions_set(assumptions, request->assume.items[i]));
    return NW_OK;
}

/* Everything unknown, with the constants in use. */
static nw_rc reset(const struct nw_model_request *request, struct nw_platform *platform)
{
    struct nw_fabric *fabric = &platform->fabric;

    NW_TRY(nw_platform_assume(request, &platform->assumptions));
    platform->hbm_bytes_per_s = NAN;
    platform->peak_flops = platform->host_to_device_bytes_per_s =
        platform->host_memory_bytes_per_s = platform->nvme_bytes_per_s = NAN;
    platform->step_time_factor = 1;
    fabric->intra_busbw_bytes_per_s = fabric->inter_busbw_bytes_per_s = fabric->link_bytes_per_s =
        fabric->wire_bytes_per_s = NAN;
    return NW_OK;
}

static nw_rc take_datasheet(const struct nw_model_request *request,
                            const struct nw_precision *precision, struct nw_platform *platform)
{
    const double peak = nw_gpu_peak(platform->gpu, precision);

    platform->peak_flops = peak > 0 ? peak : NAN;
    platform->memory_bytes = platform->gpu->memory_bytes;
    if (platform->gpu->hbm_bytes_per_s > 0)
        platform->hbm_bytes_per_s = platform->gpu->hbm_bytes_per_s;
    datasheet_host(platform);
    if (request->gpus_per_node > 0)
        platform->fabric.gpus_per_node = request->gpus_per_node;
    return nw_fabric_take_gpu(&platform->fabric, platform->gpu, request->link);
}

/* What the user says of the machine goes before everything else. */
static void take_request(const struct nw_model_request *request, struct nw_platform *platform)
{
    struct nw_fabric *fabric = &platform->fabric;

    if (request->gpu_memory_bytes > 0)
        platform->memory_bytes = request->gpu_memory_bytes;
    if (request->hbm_gb_per_s > 0)
        platform->hbm_bytes_per_s = request->hbm_gb_per_s * 1e9;
    if (request->intra_gb_per_s > 0) {
        fabric->intra_busbw_bytes_per_s = request->intra_gb_per_s * 1e9;
        fabric->intra_from_datasheet = false;
    }
    if (request->inter_gb_per_s > 0)
        fabric->inter_busbw_bytes_per_s = request->inter_gb_per_s * 1e9;
    if (request->nic_gbit_per_s > 0) {
        fabric->wire_bytes_per_s = request->nic_gbit_per_s * 1e9 / 8;
        fabric->nic_count = request->nic_count;
        platform->measured.nics_by_topology = false;
    }
    if (request->nic_count > 0)
        fabric->nic_count = request->nic_count;
    if (request->host_gb_per_s > 0) {
        platform->host_to_device_bytes_per_s = request->host_gb_per_s * 1e9;
        if (!isfinite(platform->host_memory_bytes_per_s))
            platform->host_memory_bytes_per_s = platform->host_to_device_bytes_per_s;
    }
    if (request->nvme_gb_per_s > 0)
        platform->nvme_bytes_per_s = request->nvme_gb_per_s * 1e9;
    platform->host_memory_bytes = request->host_memory_bytes;
}

nw_rc nw_platform_choose(const struct nw_model_request *request, const struct nw_results *results,
                         const struct nw_precision *precision, struct nw_platform *platform)
{
    const char *measured = nw_measured_gpu(results);

    NW_TRY(reset(request, platform));
    if (measured == NULL)
        measured = nw_topologies_gpu(request);
    if (request->gpu != NULL)
        NW_TRY(nw_gpu_find(request->gpu, &platform->gpu));
    else if (measured != NULL && nw_gpu_find(measured, &platform->gpu) != NW_OK)
        nw_clear_error(); /* an unknown GPU is no error while the rate is given */
    const bool is_measured = request->gpu == NULL || is_same_gpu(platform->gpu, measured);

    platform->units = precision->units;
    read_results(is_measured ? results : NULL, precision, &platform->measured);
    if (request->tflops > 0 || request->gemm_tflops > 0)
        platform->measured.product_count = 0;
    NW_TRY(choose_rate(request, precision, measured, platform));
    if (platform->gpu != NULL)
        NW_TRY(take_datasheet(request, precision, platform));
    NW_TRY(nw_topologies_take(request, is_measured ? results : NULL, platform));
    datasheet_ring(platform);
    take_request(request, platform);
    take_memory(request, platform);
    take_host_link(request, platform);
    take_overlap(platform);
    nw_gemm_prepare(platform);
    return NW_OK;
}
