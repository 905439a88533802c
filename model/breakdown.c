#include "model/breakdown.h"

#include <math.h>

static void add(struct nw_breakdown *breakdown, const char *key, const char *title, double ns)
{
    if (ns > 0 && breakdown->count < NW_PARTS_MAX)
        breakdown->items[breakdown->count++] =
            (struct nw_part){.key = key, .title = title, .ns = ns};
}

/* By kind of work, recomputed or not; by pass where the kinds are not known. */
static void add_compute(const struct nw_step *step, struct nw_breakdown *breakdown)
{
    const double kinds = step->product_ns + step->attention_ns + step->memory_ns + step->launch_ns;

    if (fabs(kinds - step->compute_ns) > 0.01 * step->compute_ns) {
        add(breakdown, "compute", "forward and backward", step->compute_ns - step->recompute_ns);
        add(breakdown, "recompute", "recomputation", step->recompute_ns);
        return;
    }
    add(breakdown, "products", "matrix products", step->product_ns);
    add(breakdown, "attention", "attention", step->attention_ns);
    add(breakdown, "memory_bound", "memory-bound kernels", step->memory_ns);
    add(breakdown, "launch", "launching kernels", step->launch_ns);
}

/* Communication that nothing hides, by whose it is. */
static double add_groups(const struct nw_step *step, struct nw_breakdown *breakdown)
{
    static const struct {
        nw_group_kind kind;
        const char *key, *title;
    } rows[] = {
        {NW_GROUP_TP, "tensor_parallel", "tensor parallel"},
        {NW_GROUP_CP, "context_parallel", "context parallel"},
        {NW_GROUP_EP, "expert_parallel", "expert parallel"},
        {NW_GROUP_PP, "pipeline_messages", "pipeline messages"},
        {NW_GROUP_SHARD, "shards", "weights and gradients, shards"},
        {NW_GROUP_DP, "gradients", "gradients"},
        {NW_GROUP_EXPERT, "expert_gradients", "gradients of experts"},
        {NW_GROUP_REPLICA, "replicas", "gradients, copies"},
    };
    double sum = 0;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        add(breakdown, rows[i].key, rows[i].title, step->group_exposed_ns[rows[i].kind]);
        sum += step->group_exposed_ns[rows[i].kind];
    }
    return sum;
}

void nw_breakdown_of(const struct nw_step *step, struct nw_breakdown *breakdown_out)
{
    struct nw_breakdown breakdown = {.count = 0};
    double sum = 0;

    add_compute(step, &breakdown);
    add(&breakdown, "bubble", "pipeline bubble", step->bubble_ns);
    const double told = add_groups(step, &breakdown);

    add(&breakdown, "communication", "communication",
        step->exposed_ns - told > 1e-5 * step->step_ns ? step->exposed_ns - told : 0);
    add(&breakdown, "overlap_loss", "slowed by hidden communication", step->overlap_loss_ns);
    add(&breakdown, "offload", "copies to the host", step->offload_ns);
    add(&breakdown, "optimizer", "optimizer", step->optimizer_ns);
    add(&breakdown, "jitter", "waiting for the slowest", step->jitter_ns);
    for (size_t i = 0; i < breakdown.count; i++)
        sum += breakdown.items[i].ns;
    add(&breakdown, "other", "other",
        step->step_ns - sum > 1e-5 * step->step_ns ? step->step_ns - sum : 0);
    *breakdown_out = breakdown;
}
