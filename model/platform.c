/* How fast one GPU computes and what it holds, from what the request and the results say. */
#include "model/model.h"

#include <math.h>
#include <string.h>

#include "model/gemm.h"
#include "model/platform.h"
#include "results/gemm_rate.h"

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
        .efficiency = NW_CONSTANT_GEMM_SHARE,
        .base_flops_per_s = peak};
    return NW_OK;
}

/* The GPU that the results were measured on, as their context names it. */
static const char *measured_gpu(const struct nw_results *results)
{
    for (size_t r = 0; results != NULL && r < results->run_count; r++) {
        const struct nw_context *context = &results->runs[r].context;

        if (context->gpu_model[0] != '\0')
            return context->gpu_model;
        for (int h = 0; context->hosts != NULL && h < context->host_count; h++)
            if (context->hosts[h].gpu_model[0] != '\0')
                return context->hosts[h].gpu_model;
    }
    return NULL;
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
static struct nw_rate rate_of_products(double flop_per_s)
{
    return (struct nw_rate){
        .flops_per_s = flop_per_s * PRODUCTS_SHARE,
        .rel_error = nw_constants[NW_CONSTANT_RATE_ERROR_ASSUMED].value,
        .source = NW_RATE_GEMM,
        .efficiency = NW_CONSTANT_GEMM_SHARE,
        .base_flops_per_s = flop_per_s,
        .base_low = NAN,
        .base_high = NAN,
    };
}

/* Of the case gemm, in the job's precision: the slowest GPU of all runs. */
static bool measured_rate(const struct nw_results *results, const struct nw_precision *precision,
                          struct nw_rate *rate_out)
{
    static const char *const dtypes[][2] = {{"bf16", "bfloat16"}, {"fp16", "half"}};
    const char *dtype = NULL;
    bool any = false;

    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(precision->name, dtypes[i][0]) == 0)
            dtype = dtypes[i][1];
    for (size_t r = 0; results != NULL && dtype != NULL && r < results->run_count; r++) {
        const struct nw_run *run = &results->runs[r];
        double rate, low, high;

        if (!nw_gemm_rate_of(run->records, run->record_count, dtype, &rate, &low, &high) ||
            (any && rate >= rate_out->base_flops_per_s))
            continue;
        *rate_out = rate_of_products(rate);
        rate_out->measured = any = true;
        rate_out->base_low = low;
        rate_out->base_high = high;
        rate_out->simulated = run->context.simulated;
    }
    return any;
}

static nw_rc choose_rate(const struct nw_model_request *request, const struct nw_results *results,
                         const struct nw_precision *precision, const char *measured,
                         struct nw_platform *platform)
{
    if (request->tflops > 0) {
        platform->rate =
            (struct nw_rate){.flops_per_s = request->tflops * 1e12,
                             .rel_error = nw_constants[NW_CONSTANT_RATE_ERROR_STATED].value,
                             .source = NW_RATE_STATED,
                             .base_flops_per_s = request->tflops * 1e12};
        return NW_OK;
    }
    if (request->gemm_tflops > 0) {
        platform->rate = rate_of_products(request->gemm_tflops * 1e12);
        return NW_OK;
    }
    if ((request->gpu == NULL || is_same_gpu(platform->gpu, measured)) &&
        measured_rate(results, precision, &platform->rate))
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

static nw_rc datasheet_link(struct nw_platform *platform, const struct nw_model_request *request)
{
    struct nw_fabric *fabric = &platform->fabric;

    fabric->gpus_per_node = request->gpus_per_node;
    NW_TRY(nw_fabric_take_gpu(fabric, platform->gpu, request->link));
    if (fabric->link_bytes_per_s > 0) {
        fabric->intra_busbw_bytes_per_s = fabric->link_bytes_per_s *
                                          platform->assumptions.value[NW_CONSTANT_LINK_SHARE] *
                                          (fabric->link_is_pcie ? NW_PCIE_RING : 1);
        fabric->intra_from_datasheet = true;
    }
    return NW_OK;
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

nw_rc nw_platform_choose(const struct nw_model_request *request, const struct nw_results *results,
                         const struct nw_precision *precision, struct nw_platform *platform)
{
    const char *measured = measured_gpu(results);

    nw_assumptions_reset(&platform->assumptions);
    for (size_t i = 0; i < request->assume.count; i++)
        NW_TRY(nw_assumptions_set(&platform->assumptions, request->assume.items[i]));
    platform->hbm_bytes_per_s = NAN;
    platform->peak_flops = platform->host_to_device_bytes_per_s =
        platform->host_memory_bytes_per_s = platform->nvme_bytes_per_s = NAN;
    platform->step_time_factor = 1;
    platform->link_share = NW_CONSTANT_LINK_SHARE;
    platform->fabric.intra_busbw_bytes_per_s = platform->fabric.inter_busbw_bytes_per_s =
        platform->fabric.link_bytes_per_s = platform->fabric.wire_bytes_per_s = NAN;
    if (request->gpu != NULL)
        NW_TRY(nw_gpu_find(request->gpu, &platform->gpu));
    else if (measured != NULL && nw_gpu_find(measured, &platform->gpu) != NW_OK)
        nw_clear_error(); /* an unknown GPU is no error while the rate is given */
    platform->units = precision->units;
    NW_TRY(choose_rate(request, results, precision, measured, platform));
    if (platform->gpu != NULL) {
        const double peak = nw_gpu_peak(platform->gpu, precision);

        platform->peak_flops = peak > 0 ? peak : NAN;
        platform->memory_bytes = platform->gpu->memory_bytes;
        if (platform->gpu->hbm_bytes_per_s > 0)
            platform->hbm_bytes_per_s = platform->gpu->hbm_bytes_per_s;
        NW_TRY(datasheet_link(platform, request));
    }
    if (request->gpu_memory_bytes > 0)
        platform->memory_bytes = request->gpu_memory_bytes;
    if (request->hbm_gb_per_s > 0)
        platform->hbm_bytes_per_s = request->hbm_gb_per_s * 1e9;
    if (request->intra_gb_per_s > 0) {
        platform->fabric.intra_busbw_bytes_per_s = request->intra_gb_per_s * 1e9;
        platform->fabric.intra_from_datasheet = false;
    }
    if (request->inter_gb_per_s > 0)
        platform->fabric.inter_busbw_bytes_per_s = request->inter_gb_per_s * 1e9;
    if (request->nic_gbit_per_s > 0)
        platform->fabric.wire_bytes_per_s = request->nic_gbit_per_s * 1e9 / 8;
    platform->fabric.nic_count = request->nic_count;
    if (platform->gpu != NULL)
        datasheet_host(platform);
    if (request->host_gb_per_s > 0) {
        platform->host_to_device_bytes_per_s = request->host_gb_per_s * 1e9;
        if (!isfinite(platform->host_memory_bytes_per_s))
            platform->host_memory_bytes_per_s = platform->host_to_device_bytes_per_s;
    }
    if (request->nvme_gb_per_s > 0)
        platform->nvme_bytes_per_s = request->nvme_gb_per_s * 1e9;
    platform->host_memory_bytes = request->host_memory_bytes;
    return NW_OK;
}
