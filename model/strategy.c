/* The strategies: one row each. */
#include "model/step.h"

#include <math.h>

/* DistributedDataParallel copies gradients into its buckets (gradient_as_bucket_view = False). */
static double ddp_buffers(const struct nw_job *job, nw_assumed *assumed)
{
    (void)assumed;
    return (double)nw_transformer_parameter_count(&job->net) * job->gradient_bytes;
}

/* One bucket for the reduction, one for the gathering. */
static double zero_buffers(const struct nw_job *job, nw_assumed *assumed)
{
    const double elements = fmin(nw_constants[NW_CONSTANT_ZERO_BUCKET_ELEMENTS].value,
                                 (double)nw_transformer_parameter_count(&job->net));

    *assumed |= NW_ASSUMES(ZERO_BUCKET_ELEMENTS);
    return elements * (job->gradient_bytes + job->precision->element_bytes);
}

/* Two gathered units, the one at work and the next, and the unreduced gradient of one. */
static double fsdp_buffers(const struct nw_job *job, nw_assumed *assumed)
{
    (void)assumed;
    return nw_largest_unit(&job->net) * (2 * job->precision->element_bytes + job->gradient_bytes);
}

/* Gathered weights up to the limit that DeepSpeed keeps, at least the largest unit, and one
 * reduction bucket. */
static double zero3_buffers(const struct nw_job *job, nw_assumed *assumed)
{
    const double parameters = (double)nw_transformer_parameter_count(&job->net);
    const double live = fmax(fmin(nw_constants[NW_CONSTANT_ZERO3_LIVE_ELEMENTS].value, parameters),
                             nw_largest_unit(&job->net));
    const double bucket = fmin(nw_constants[NW_CONSTANT_ZERO_BUCKET_ELEMENTS].value, parameters);

    *assumed |= NW_ASSUMES(ZERO3_LIVE_ELEMENTS) | NW_ASSUMES(ZERO_BUCKET_ELEMENTS);
    return live * job->precision->element_bytes + bucket * job->gradient_bytes;
}

const struct nw_strategy nw_strategies[] = {
    {
        .name = "ddp",
        .title = "replicated, gradients all-reduced",
        .volume = "2Ψ",
        .source = "Li et al. 2020, PyTorch Distributed",
        .simulate = nw_simulate_ddp,
        .buffers = ddp_buffers,
    },
    {
        .name = "zero1",
        .title = "optimizer cut",
        .optimizer_sharded = true,
        .volume = "2Ψ",
        .source = "Rajbhandari et al. 2020, ZeRO, Pos",
        .simulate = nw_simulate_zero1,
        .buffers = zero_buffers,
    },
    {
        .name = "zero2",
        .title = "optimizer and gradients cut",
        .optimizer_sharded = true,
        .gradients_sharded = true,
        .volume = "Ψ per micro-batch + Ψ",
        .source = "Rajbhandari et al. 2020, ZeRO, Pos+g",
        .simulate = nw_simulate_zero2,
        .buffers = zero_buffers,
    },
    {
        .name = "zero3",
        .title = "optimizer, gradients and weights cut",
        .optimizer_sharded = true,
        .gradients_sharded = true,
        .weights_sharded = true,
        .volume = "3Ψ per micro-batch",
        .source = "Rajbhandari et al. 2020, ZeRO, Pos+g+p",
        .simulate = nw_simulate_zero3,
        .buffers = zero3_buffers,
    },
    {
        .name = "fsdp",
        .title = "optimizer, gradients and weights cut (PyTorch)",
        .optimizer_sharded = true,
        .gradients_sharded = true,
        .weights_sharded = true,
        .volume = "3Ψ per micro-batch",
        .source = "Zhao et al. 2023, PyTorch FSDP",
        .simulate = nw_simulate_fsdp,
        .buffers = fsdp_buffers,
    },
};
const size_t nw_strategy_count = sizeof nw_strategies / sizeof nw_strategies[0];
const char *const nw_strategy_names[] = {"ddp", "zero1", "zero2", "zero3", "fsdp", NULL};
