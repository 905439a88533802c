/* Time of the optimizer's update: memory-bound wherever it runs. */
#include <math.h>
#include <string.h>

#include "model/compute.h"
#include "model/gemm.h"
#include "model/operators.h"
#include "model/profile.h"

/* Parameters that this rank updates, of the stage that has most. */
static double updated_parameters(const struct nw_job *job, const struct nw_layout *layout)
{
    const struct nw_transformer *net = &job->net;
    const double tp = nw_layout_tp(layout), ep = nw_layout_ep(layout), pp = nw_layout_pp(layout);
    const bool sharded = layout->strategy != NULL && layout->strategy->optimizer_sharded;
    const double ranks = sharded ? nw_layout_state_count(layout) : 1;
    const double expert_ranks = sharded ? fmax(ranks / ep, 1) : 1;
    struct nw_tensors embedding, head;
    double plain = 0, experts = 0;

    for (int kind = 0; kind < NW_LAYER_KINDS; kind++) {
        const double count = (double)nw_transformer_layer_count(net, kind) / pp;
        const struct nw_layer_parts parts = nw_transformer_layer_parts(net, kind);

        if (job->lora.rank > 0) {
            const struct nw_adapter_parts adapter =
                nw_transformer_adapter_parts(net, kind, job->lora.rank, job->lora.targets);

            plain += count * (double)adapter.dense / tp;
            experts += count * (double)adapter.experts / (tp * ep);
            continue;
        }
        plain += count * ((double)(parts.attention + parts.mlp) / tp +
                          (double)(parts.router + parts.norms));
        experts += count * (double)parts.experts / (tp * ep);
    }
    if (job->lora.rank > 0)
        return plain / ranks + experts / expert_ranks;
    nw_transformer_embedding(net, &embedding);
    nw_transformer_head(net, &head);
    plain += pp > 1 ? (double)(embedding.total > head.total ? embedding.total : head.total) / tp
                    : (double)(embedding.total + head.total) / tp;
    return plain / ranks + experts / expert_ranks;
}

/* Bytes per parameter: states and master copy read and written, the gradient read, weights written
 * (without a master copy read as well); what the optimizer itself reads again (LAMB's norms,
 * Adafactor's factors); the gradient's norm for clipping: read for the norm, read and written when
 * it is scaled. */
static double update_bytes(const struct nw_job *job)
{
    const double master = nw_job_master_bytes(job), e = job->precision->element_bytes;
    const double gradient = nw_job_gradient_bytes(job);

    return 2 * (nw_job_state_bytes(job) + master) + gradient + e * (master > 0 ? 1 : 2) +
           job->optimizer->again_bytes + 3 * gradient;
}

struct nw_update nw_update_of(const struct nw_job *job, const struct nw_layout *layout,
                              const struct nw_platform *platform)
{
    const struct nw_profile *profile = nw_layout_profile(layout);
    const double parameters = updated_parameters(job, layout);
    const double e = job->precision->element_bytes;
    const double gradient = nw_job_gradient_bytes(job);
    const double states = 2 * (nw_job_state_bytes(job) + nw_job_master_bytes(job));
    const double factor = platform->step_time_factor > 0 ? platform->step_time_factor : 1;
    struct nw_update update = {0};

    if (job->offload.optimizer == NW_OFFLOAD_NONE) {
        update.gpu_ns =
            platform->hbm_bytes_per_s > 0
                ? nw_traffic_ns(platform, parameters * update_bytes(job) * profile->memory_passes) *
                      factor
                : NAN;
        return update;
    }
    /* Gradients go to the host, weights come back (Ren et al. 2021, ZeRO-Offload, section 4). */
    update.cpu_ns = parameters * (states + gradient + e) / platform->host_memory_bytes_per_s * 1e9;
    update.down_ns = parameters * gradient / platform->host_to_device_bytes_per_s * 1e9;
    update.up_ns = parameters * e / platform->host_to_device_bytes_per_s * 1e9;
    if (job->offload.optimizer == NW_OFFLOAD_NVME) /* states there and back (ZeRO-Infinity) */
        update.cpu_ns = fmax(update.cpu_ns, parameters * states / platform->nvme_bytes_per_s * 1e9);
    if (job->offload.optimizer == NW_OFFLOAD_NVME && !isfinite(platform->nvme_bytes_per_s))
        update.cpu_ns = NAN;
    return update;
}
