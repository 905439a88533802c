/* All events of a step in order: micro-batches, what is left to reduce, the update. */
#include "model/step_build.h"

#include <math.h>
#include <stdlib.h>

static double known(double value)
{
    return isfinite(value) && value > 0 ? value : 0;
}

nw_rc nw_build_init(const struct nw_job *job, const struct nw_platform *platform,
                    const struct nw_layout *layout, uint64_t micro_batch,
                    uint64_t micro_batch_count, const struct nw_scenario *scenario,
                    struct nw_build *build_out)
{
    struct nw_build build = {
        .job = job,
        .platform = platform,
        .layout = *layout,
        .scenario = scenario,
        .strategy = layout->strategy,
        .profile = nw_layout_profile(layout),
        .micro_batch = (double)micro_batch,
        .micro_batch_count = (double)micro_batch_count,
        .scale = 1,
        .tokens = (double)micro_batch * (double)job->sequence / nw_layout_cp(layout),
        .stage_count = nw_layout_pp(layout),
        .virtual_stages = nw_layout_pp(layout) > 1 ? nw_layout_virtual_stages(layout) : 1,
    };

    build.stages = calloc((size_t)build.stage_count, sizeof *build.stages);
    if (build.stages == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a pipeline of %d stages", build.stage_count);
    build.graph.stage_count = build.stage_count;
    build.update = nw_update_of(job, layout, platform);
    nw_build_units(&build);
    *build_out = build;
    return NW_OK;
}

void nw_build_free(struct nw_build *build)
{
    nw_graph_free(&build->graph);
    free(build->stages);
    build->stages = NULL;
}

/* The output layer of the last stage and the embeddings of the first are one matrix in two places:
 * their gradients are added up (Megatron-LM, "embedding group"). */
static void put_tied_gradients(struct nw_build *build, int stage)
{
    const double shared = (double)nw_transformer_shared_embedding(&build->job->net);
    const struct nw_message message = {
        .collective = "all_reduce",
        .bytes = shared * nw_job_reduce_bytes(build->job) / nw_layout_tp(&build->layout),
        .times = 1,
        .group = NW_GROUP_PP,
        .stream = NW_STREAM_GRADIENTS,
    };

    if (!(shared > 0) || build->stage_count < 2 || build->job->lora.rank > 0 ||
        (stage != 0 && stage != build->stage_count - 1))
        return;
    const int32_t sum = nw_put_message(build, stage, &message, 1, build->tied[stage == 0 ? 0 : 1]);

    if (sum > 0) /* both must be there */
        build->graph.events[sum - 1].after[1] = build->tied[stage == 0 ? 1 : 0];
    nw_stage_waits(&build->stages[stage], sum);
}

static int32_t last_of_gradients(const struct nw_stage *stage)
{
    return stage->reduced_replica > 0 ? stage->reduced_replica
           : stage->reduced > 0       ? stage->reduced
                                      : stage->computed;
}

/* On the GPU; or gradients to the host, the update there, weights back (Ren et al. 2021,
 * ZeRO-Offload, section 4): the way down runs behind the last backward pass, the way up does not.
 */
static void put_update(struct nw_build *build, int stage, int32_t last_pass)
{
    const struct nw_update *update = &build->update;
    struct nw_stage *at = &build->stages[stage];

    nw_stage_waits(at, at->reduced);
    nw_stage_waits(at, at->reduced_replica);
    put_tied_gradients(build, stage);
    if (build->job->offload.optimizer != NW_OFFLOAD_NONE)
        nw_stage_waits(at, nw_put_copy(build, stage, known(update->down_ns), 1, last_pass));
    int32_t done = nw_put_compute(build, stage, NW_EVENT_UPDATE, 0, 0, known(update->gpu_ns), 1);

    if (known(update->cpu_ns) > 0)
        done = nw_put_compute(build, stage, NW_EVENT_HOST_UPDATE, 0, 0, update->cpu_ns, 1);
    if (build->job->offload.optimizer != NW_OFFLOAD_NONE) {
        const int32_t back = nw_put_copy(build, stage, known(update->up_ns), 1, done);

        done = back > 0 ? back : done;
    }
    nw_put_updated_weights(build, stage, done);
}

nw_rc nw_build_step(struct nw_build *build)
{
    nw_put_micro_batches(build);
    build->tied[0] = last_of_gradients(&build->stages[0]);
    build->tied[1] = last_of_gradients(&build->stages[build->graph.stage_count - 1]);
    for (int stage = 0; stage < build->graph.stage_count && build->rc == NW_OK; stage++)
        put_update(build, stage, build->stages[stage].before_last);
    return build->rc;
}
