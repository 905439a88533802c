/* Time of the computation: FLOPs that are executed over the rate that a training step reaches. */
#include "model/step.h"

#include <math.h>

void nw_simulation_init(const struct nw_job *job, const struct nw_platform *platform,
                        const struct nw_scenario *scenario, struct nw_group group,
                        uint64_t micro_batch, uint64_t micro_batch_count, struct nw_memo *memo,
                        struct nw_simulation *simulation_out)
{
    const double tokens = (double)micro_batch * (double)job->sequence;
    const struct nw_flops flops =
        nw_transformer_flops(&job->net, tokens, (double)job->sequence, job->flash);
    const double ns_per_flop = 1e9 / platform->rate.flops_per_s * scenario->compute_scale;
    /* Full checkpointing runs each layer's forward once more (Chen et al. 2016). */
    const double again = job->recompute == NW_RECOMPUTE_FULL ? flops.layer_forward : 0;
    struct nw_simulation simulation = {
        .job = job,
        .platform = platform,
        .scenario = scenario,
        .group = group,
        .micro_batch_count = micro_batch_count,
        .layer_forward_ns = flops.layer_forward * ns_per_flop,
        .layer_backward_ns = (flops.layer_backward + again) * ns_per_flop,
        .head_forward_ns = flops.head_forward * ns_per_flop,
        .head_backward_ns = flops.head_backward * ns_per_flop,
        .memo = memo,
    };

    for (size_t i = 0; i < NW_MEMO_COUNT; i++)
        memo[i].collective = NULL;
    nw_transformer_embedding(&job->net, &simulation.embedding);
    nw_transformer_layer(&job->net, &simulation.layer);
    nw_transformer_head(&job->net, &simulation.head);
    *simulation_out = simulation;
}

double nw_micro_batch_ns(const struct nw_simulation *simulation)
{
    return (double)simulation->job->net.layers *
               (simulation->layer_forward_ns + simulation->layer_backward_ns) +
           simulation->head_forward_ns + simulation->head_backward_ns;
}

/* A fused update reads and writes the optimizer's states and master copy, reads the gradient and
 * writes the weights (without a master copy it reads them too): 28 bytes per parameter for
 * mixed-precision Adam. Memory-bound. */
double nw_optimizer_ns(const struct nw_job *job, const struct nw_platform *platform,
                       const struct nw_strategy *strategy, int rank_count)
{
    const struct nw_precision *precision = job->precision;
    const double weights = precision->element_bytes * (precision->master_bytes > 0 ? 1 : 2);
    const double bytes =
        2 * (job->optimizer->state_bytes + precision->master_bytes) + job->gradient_bytes + weights;
    const double share = strategy->optimizer_sharded ? 1.0 / rank_count : 1;
    const double rate = platform->hbm_bytes_per_s * nw_constants[NW_CONSTANT_HBM_SHARE].value;

    return bytes * (double)nw_transformer_parameter_count(&job->net) * share / rate * 1e9;
}
