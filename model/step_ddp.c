/* Replicated weights: gradients summed in buckets behind the backward pass. */
#include "model/step.h"

struct bucket {
    const struct nw_simulation *simulation;
    struct nw_timeline *timeline;
    struct nw_step *step;
    const char *collective;
    double held_bytes, limit_bytes, later_limit_bytes;
};

static nw_rc send_bucket(struct bucket *bucket, double ready_ns)
{
    const double bytes = bucket->held_bytes;
    double end;

    bucket->held_bytes = 0;
    bucket->limit_bytes = bucket->later_limit_bytes;
    return nw_send(bucket->simulation, bucket->timeline, bucket->step, bucket->collective, bytes,
                   ready_ns, &end);
}

/* Backward of one layer, its tensors in reverse order; the time is dealt out by elements, as the
 * matrix products are. */
static nw_rc unit_backward(struct bucket *bucket, const struct nw_tensors *tensors, double ns)
{
    const double element_bytes = bucket->simulation->job->gradient_bytes;
    const double start = bucket->timeline->compute_free_ns;
    double done = 0;

    for (size_t i = tensors->count; i-- > 0;) {
        done += (double)tensors->elements[i];
        bucket->held_bytes += (double)tensors->elements[i] * element_bytes;
        if (bucket->held_bytes >= bucket->limit_bytes)
            NW_TRY(send_bucket(bucket, start + ns * done / (double)tensors->total));
    }
    nw_compute(bucket->timeline, bucket->step, start, ns);
    return NW_OK;
}

/* PyTorch DistributedDataParallel (Li et al. 2020, section 3.2): tensors fill a bucket in reverse
 * order until it holds the limit, then it is reduced while the backward pass goes on. */
nw_rc nw_backward_buckets(const struct nw_simulation *simulation, struct nw_timeline *timeline,
                          struct nw_step *step, const struct nw_bucketing *bucketing)
{
    struct bucket bucket = {
        .simulation = simulation,
        .timeline = timeline,
        .step = step,
        .collective = bucketing->collective,
        .limit_bytes = bucketing->first_bytes,
        .later_limit_bytes = bucketing->bytes,
    };

    NW_TRY(unit_backward(&bucket, &simulation->head, simulation->head_backward_ns));
    for (uint64_t layer = 0; layer < simulation->job->net.layers; layer++)
        NW_TRY(unit_backward(&bucket, &simulation->layer, simulation->layer_backward_ns));
    NW_TRY(unit_backward(&bucket, &simulation->embedding, 0));
    return send_bucket(&bucket, timeline->compute_free_ns);
}

/* The gradients of all micro-batches but the last stay local (no_sync). */
nw_rc nw_simulate_ddp(const struct nw_simulation *simulation, struct nw_step *step)
{
    const double layers = (double)simulation->job->net.layers;
    const double micro_batches = (double)simulation->micro_batch_count;
    struct nw_timeline timeline = {0};

    step->assumed |= NW_ASSUMES(DDP_BUCKET_BYTES) | NW_ASSUMES(DDP_FIRST_BUCKET_BYTES);
    nw_compute(&timeline, step, 0,
               (micro_batches - 1) * nw_micro_batch_ns(simulation) +
                   layers * simulation->layer_forward_ns + simulation->head_forward_ns);
    NW_TRY(nw_backward_buckets(
        simulation, &timeline, step,
        &(struct nw_bucketing){
            .collective = "all_reduce",
            .first_bytes = nw_constants[NW_CONSTANT_DDP_FIRST_BUCKET_BYTES].value,
            .bytes = nw_constants[NW_CONSTANT_DDP_BUCKET_BYTES].value,
        }));
    nw_join(&timeline, step);
    return NW_OK;
}
