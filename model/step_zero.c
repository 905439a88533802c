/* ZeRO-1 and ZeRO-2: each GPU updates its share, gradients arrive by reduce-scatter, new weights
 * leave by all-gather (Rajbhandari et al. 2020, section 7.1: 2Ψ). */
#include "model/step.h"

#include <math.h>

static struct nw_bucketing buckets(const struct nw_simulation *simulation)
{
    const double bytes =
        nw_constants[NW_CONSTANT_ZERO_BUCKET_ELEMENTS].value * simulation->job->gradient_bytes;

    return (struct nw_bucketing){
        .collective = "reduce_scatter", .first_bytes = bytes, .bytes = bytes};
}

/* All updated weights to everybody, bucket by bucket; nothing to compute meanwhile. */
static nw_rc gather_weights(const struct nw_simulation *simulation, struct nw_timeline *timeline,
                            struct nw_step *step)
{
    const double element_bytes = simulation->job->precision->element_bytes;
    const double bucket = nw_constants[NW_CONSTANT_ZERO_BUCKET_ELEMENTS].value * element_bytes;
    double left = (double)nw_transformer_parameter_count(&simulation->job->net) * element_bytes;

    for (; left > 0; left -= bucket) {
        double end;

        NW_TRY(nw_send(simulation, timeline, step, "all_gather", fmin(left, bucket),
                       timeline->compute_free_ns, &end));
    }
    nw_join(timeline, step);
    return NW_OK;
}

static double forward_ns(const struct nw_simulation *simulation)
{
    return (double)simulation->job->net.layers * simulation->layer_forward_ns +
           simulation->head_forward_ns;
}

/* Gradients accumulate locally and are reduced once. */
nw_rc nw_simulate_zero1(const struct nw_simulation *simulation, struct nw_step *step)
{
    const struct nw_bucketing bucketing = buckets(simulation);
    struct nw_timeline timeline = {0};

    step->assumed |= NW_ASSUMES(ZERO_BUCKET_ELEMENTS);
    nw_compute(&timeline, step, 0,
               ((double)simulation->micro_batch_count - 1) * nw_micro_batch_ns(simulation) +
                   forward_ns(simulation));
    NW_TRY(nw_backward_buckets(simulation, &timeline, step, &bucketing));
    nw_join(&timeline, step);
    return gather_weights(simulation, &timeline, step);
}

/* Nobody holds all gradients, so they are reduced in every micro-batch; DeepSpeed waits for the
 * reduction at the end of each backward pass. */
nw_rc nw_simulate_zero2(const struct nw_simulation *simulation, struct nw_step *step)
{
    const struct nw_bucketing bucketing = buckets(simulation);
    struct nw_timeline timeline = {0};

    step->assumed |= NW_ASSUMES(ZERO_BUCKET_ELEMENTS);
    nw_compute(&timeline, step, 0, forward_ns(simulation));
    NW_TRY(nw_backward_buckets(simulation, &timeline, step, &bucketing));
    nw_join(&timeline, step);
    nw_step_repeat(step, (double)simulation->micro_batch_count);
    timeline.compute_free_ns = timeline.wire_free_ns = step->compute_ns + step->exposed_ns;
    return gather_weights(simulation, &timeline, step);
}
