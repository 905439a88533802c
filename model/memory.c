/* Memory of one GPU: the parts put together at the moment that needs most. */
#include "model/memory.h"

#include <math.h>

#include "model/memory_parts.h"
#include "model/model.h"

/* All weights of the stage, as they come over the wire: a quantised base in its own type. */
static double gathered_bytes(const struct nw_memory_task *task,
                             const struct nw_stage_parameters *own)
{
    return (own->quantised + own->experts) * nw_job_base_bytes(task->job) +
           (own->layers - own->quantised + own->ends) * task->job->precision->element_bytes;
}

/* fsdp: the units at work and prefetched, the unreduced gradient of one, and the root's unit
 * (embedding, output layer), which stays gathered; everything where weights are kept between
 * forward and backward. DeepSpeed zero3: gathered weights up to stage3_max_live_parameters, at
 * least the largest unit, and a reduction bucket. */
static double gathered(const struct nw_memory_task *task, const struct nw_stage_parameters *own)
{
    const struct nw_profile *profile = task->profile;
    const double e = task->job->precision->element_bytes;
    const double all = own->layers + own->experts + own->ends;
    const double all_bytes = gathered_bytes(task, own);
    const double unit_bytes = own->unit_quantised * nw_job_base_bytes(task->job) +
                              (own->layer_unit - own->unit_quantised) * e;
    const double reduce = nw_job_reduce_bytes(task->job);
    const bool trains = nw_memory_trains_all(task);

    if (profile->live_elements > 0)
        return nw_larger(nw_smaller(profile->live_elements, all) / all * all_bytes,
                         nw_larger(unit_bytes, own->ends * e)) +
               (trains ? reduce * nw_smaller(profile->reduce_bucket_elements, all) : 0);
    return (nw_memory_keeps_gathered(task)
                ? all_bytes
                : (task->policy->gathered_units > 1 ? task->policy->gathered_units : 1) *
                          unit_bytes +
                      own->ends * e) +
           (trains ? own->layer_unit * (e + reduce) + own->ends * e : 0);
}

double nw_memory_buffers(const struct nw_memory_task *task, const struct nw_stage_parameters *own)
{
    const struct nw_strategy *strategy = task->layout->strategy;
    const struct nw_profile *profile = task->profile;
    const double e = task->job->precision->element_bytes;
    const double all = own->layers + own->experts + own->ends;
    const bool trains = nw_memory_trains_all(task), alone = nw_layout_shard_count(task->layout) < 2;
    const bool cut = nw_memory_weights_cut(task) && !alone;
    double bytes = 0;

    if (cut)
        bytes += gathered(task, own);
    if (cut && strategy->quantised) /* ZeRO++ hpZ (Wang et al. 2023, section 3.2) */
        bytes += gathered_bytes(task, own) / nw_layout_shard_count(task->layout);
    if (!cut && strategy != NULL && !alone && trains && strategy->optimizer_sharded &&
        task->policy->bucket_copies)
        bytes +=
            nw_smaller(profile->reduce_bucket_elements, all) * nw_job_gradient_bytes(task->job) +
            nw_smaller(profile->gather_bucket_elements, all) * e;
    else if (strategy != NULL && trains && !strategy->optimizer_sharded &&
             nw_layout_reduce_count(task->layout) > 1 && profile->buckets_are_copies)
        bytes += all * nw_memory_gradient_bytes(task);
    if (nw_memory_weight_bytes(task) > e && trains && !cut)
        bytes += (own->quantised + own->experts) * e; /* autocast's copies, kept for the backward */
    if (task->pp > 1) /* a boundary's activations, received and to send */
        bytes += 2 * nw_memory_boundary(task);
    if (task->cp > 1) /* the next rank's keys and values */
        bytes += 4 * e * task->tokens * nw_layout_kv_heads(task->layout, &task->job->net) *
                 (double)task->job->net.head_size;
    return bytes;
}

/* Units without gradients have no hook that frees them in the backward pass (PyTorch FSDP1). */
static double frozen_gathered(const struct nw_memory_task *task,
                              const struct nw_stage_parameters *own)
{
    if (!task->policy->frozen_stay || nw_memory_trains_all(task) || !nw_memory_weights_cut(task) ||
        nw_layout_shard_count(task->layout) < 2)
        return 0;
    return gathered_bytes(task, own);
}

/* NCCL's receive buffers of one channel: 4 MiB (NCCL_BUFFSIZE) and those of LL and LL128; a ring's
 * and a tree's three connections on 24 channels. */
#define NCCL_GROUP_BYTES (24 * 3 * 9.4 * 1024 * 1024)

/* CUDA context, framework, and NCCL's buffers of each communicator: of each kind of group, two of a
 * pipeline rank's (neighbours), and one of all ranks where there are several kinds (norms). */
double nw_memory_runtime(const struct nw_memory_task *task,
                         const struct nw_assumptions *assumptions)
{
    const int kinds = (task->tp > 1) + (task->pp > 1) + (task->cp > 1) + (task->ep > 1) +
                      (nw_layout_reduce_count(task->layout) > 1);
    const double communicators = kinds + (task->pp > 1) + (kinds > 1);

    return assumptions->value[NW_CONSTANT_RUNTIME_BYTES] + communicators * NCCL_GROUP_BYTES;
}

static void fill_net(struct nw_memory_task *task)
{
    const struct nw_transformer *net = &task->job->net;
    const struct nw_lora *lora = &task->job->lora;
    struct nw_tensors ends;

    for (int kind = 0; kind < NW_LAYER_KINDS; kind++) {
        task->layer_count[kind] = (double)nw_transformer_layer_count(net, kind);
        if (task->layer_count[kind] <= 0)
            continue;
        task->all_layers += task->layer_count[kind];
        task->parts[kind] = nw_transformer_layer_parts(net, kind);
        if (lora->rank > 0)
            task->adapters[kind] =
                nw_transformer_adapter_parts(net, kind, lora->rank, lora->targets);
        task->saved[kind] = nw_memory_layer(task, kind);
    }
    nw_transformer_embedding(net, &ends);
    task->embedding = (double)ends.total;
    nw_transformer_head(net, &ends);
    task->head = (double)ends.total;
}

struct nw_memory_task nw_memory_task_of(const struct nw_job *job, const struct nw_layout *layout,
                                        uint64_t micro_batch, uint64_t micro_batch_count)
{
    struct nw_memory_task task = {
        .job = job,
        .layout = layout,
        .profile = nw_layout_profile(layout),
        .policy = nw_memory_policy_of(layout->profile),
        .micro_batch = (double)micro_batch,
        .micro_batch_count = (double)(micro_batch_count > 0 ? micro_batch_count : 1),
        .tp = nw_layout_tp(layout),
        .pp = nw_layout_pp(layout),
        .cp = nw_layout_cp(layout),
        .ep = nw_layout_ep(layout),
    };

    task.tokens = (double)micro_batch * (double)job->sequence / task.cp;
    task.norm_cut = layout->parallel.sequence_parallel ? task.tp : 1;
    fill_net(&task);
    return task;
}

/* What is there beside weights and optimizer states at one moment. */
struct moment {
    double activations, logits, gradients, buffers;
    double offloaded; /* activations on the CPU */
};

static double sum_of(const struct moment *moment)
{
    return moment->activations + moment->gradients + moment->buffers;
}

/* Forward end: every activation and the loss; the gradients if they stay or hold earlier
 * micro-batches. Backward: at its begin the activations with one layer at work, at its end all
 * gradients and the first layer. Update: gradients and the update's copies. */
#define MOMENTS 4
static const nw_peak_moment peaks[MOMENTS] = {NW_PEAK_FORWARD_END, NW_PEAK_BACKWARD,
                                              NW_PEAK_BACKWARD, NW_PEAK_UPDATE};

static void moments_of(const struct nw_memory_task *task, const struct nw_stage_share *stage,
                       const struct nw_stage_parameters *own, const struct nw_states *states,
                       struct moment moments_out[MOMENTS])
{
    const double buffers = nw_memory_buffers(task, own);
    const double logits = stage->last ? nw_memory_logits(task) : 0;
    const bool resident = task->policy->gradients_stay || task->micro_batch_count > 1;
    const double held = resident ? states->gradients : 0;
    double stored = 0, working = 0, first = 0;

    for (int kind = 0; kind < NW_LAYER_KINDS; kind++) {
        if (stage->layers[kind] <= 0)
            continue;
        const struct nw_saved *saved = &task->saved[kind];

        stored += stage->layers[kind] * saved->stored;
        working = nw_larger(working, saved->whole - saved->stored + saved->working);
        first = nw_larger(first, saved->whole + saved->working);
    }
    if (task->policy->stage_outputs && !stage->last)
        stored += nw_memory_boundary(task);
    stored *= stage->in_flight;
    const double away = task->job->offload.activations == NW_OFFLOAD_CPU ? stored : 0;

    if (task->job->offload.activations != NW_OFFLOAD_NONE)
        stored = 0;
    if (stage->last)
        stored += nw_memory_last_norm(task);
    moments_out[0] = (struct moment){stored + logits, logits, held, buffers, away};
    moments_out[1] = (struct moment){stored + working, 0, held, buffers, away};
    moments_out[2] =
        (struct moment){first, 0, states->gradients, buffers + frozen_gathered(task, own), away};
    moments_out[3] = (struct moment){0, 0, states->gradients, buffers + states->update, away};
}

static struct nw_memory stage_memory(const struct nw_memory_task *task, int index,
                                     const struct nw_assumptions *assumptions)
{
    const struct nw_stage_share stage = nw_memory_stage(task, index);
    const struct nw_stage_parameters own = nw_memory_parameters(task, &stage);
    const struct nw_states states = nw_memory_states(task, &own);
    struct moment moments[MOMENTS];
    int peak = 0;

    moments_of(task, &stage, &own, &states, moments);
    for (int i = 1; i < MOMENTS; i++)
        if (sum_of(&moments[i]) > sum_of(&moments[peak]))
            peak = i;

    struct nw_memory memory = {
        .weights_bytes = states.weights,
        .gradients_bytes = moments[peak].gradients,
        .optimizer_bytes = states.optimizer,
        .activations_bytes = moments[peak].activations,
        .logits_bytes = moments[peak].logits,
        .buffers_bytes = moments[peak].buffers,
        .runtime_bytes = nw_memory_runtime(task, assumptions),
        .host_bytes = states.host + moments[peak].offloaded,
        .peak = peaks[peak],
        .stage = index,
        .policy = task->policy->text,
    };

    memory.allocated_bytes = states.weights + states.optimizer + sum_of(&moments[peak]);
    memory.fragmentation_bytes =
        task->policy->one_arena
            ? 0
            : assumptions->value[NW_CONSTANT_ALLOCATOR_SHARE] * memory.allocated_bytes;
    memory.total_bytes = memory.allocated_bytes + memory.fragmentation_bytes + memory.runtime_bytes;
    return memory;
}

void nw_memory_of(const struct nw_job *job, const struct nw_layout *layout, uint64_t micro_batch,
                  uint64_t micro_batch_count, const struct nw_assumptions *assumptions,
                  struct nw_memory *memory_out, uint64_t *assumed)
{
    const struct nw_memory_task task =
        nw_memory_task_of(job, layout, micro_batch, micro_batch_count);
    struct nw_assumptions table;
    const int stages[] = {0, 1, task.pp - 1};
    struct nw_memory memory = {0};

    /* A platform whose assumptions nobody set has zeros. */
    if (assumptions == NULL || assumptions->value[NW_CONSTANT_HBM_SHARE] <= 0) {
        nw_assumptions_reset(&table);
        assumptions = &table;
    }
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        if (stages[i] >= task.pp || (i > 0 && stages[i] <= stages[i - 1]))
            continue;
        const struct nw_memory stage = stage_memory(&task, stages[i], assumptions);

        if (i == 0 || stage.total_bytes > memory.total_bytes)
            memory = stage;
    }
    *assumed |= NW_ASSUMES(RUNTIME_BYTES);
    if (!task.policy->one_arena)
        *assumed |= NW_ASSUMES(ALLOCATOR_SHARE);
    *memory_out = memory;
}
