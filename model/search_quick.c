/* The innermost loop: the closed form of one step and a lower bound of its memory. */
#include <math.h>

#include "model/memory_parts.h"
#include "model/search_parts.h"

/* What a message of `ns` adds to computation of `cover_ns` that it may hide behind. */
static double added(double ns, double cover_ns, double loss)
{
    const double hidden = ns < cover_ns ? ns : cover_ns;

    return ns - hidden + loss * hidden;
}

/* Interleaved chunks leave one after the other, `gap_ns` apart, each with its share of the
 * messages: what of them is not through when the last one leaves. */
static double left_of_chunks(double ns, double chunks, double gap_ns)
{
    return chunks > 1 ? nw_larger(ns / chunks, ns - (chunks - 1) * gap_ns) : ns;
}

struct pass { /* one micro-batch on the stage looked at */
    double forward_ns, backward_ns, busy;
};

static double gathers_ns(const struct nw_placement *at, const struct pass *pass, double m)
{
    const struct nw_quick_messages *messages = &at->messages;
    const double v = at->virtual_stages, loss = at->gather_loss * pass->busy;
    const double forward = pass->forward_ns / v;
    const double first = messages->forward_first_ns / (at->gathers_updated ? 1 : v);

    if (at->gathers_serial) {
        const double passes = at->gathers_updated || at->pp > 1 ? 1 : m;

        return passes * (messages->forward_gather_ns +
                         (at->gathers_twice ? messages->backward_gather_ns : 0) +
                         messages->weight_copy_ns * (at->gathers_twice ? 2 : 1));
    }
    if (at->gathers_updated || at->pp > 1) {
        const double ns = left_of_chunks(messages->forward_gather_ns, v, at->pp * forward);

        const double shown = fmin(first, ns) + added(nw_larger(ns - first, 0), forward, loss);

        /* Unit by unit each stage begins with its own gathers when the first micro-batch comes. */
        return shown * (at->gathers_updated ? 1 : at->pp) +
               loss * (messages->forward_gather_ns - ns);
    }
    const double there = nw_larger(messages->forward_gather_ns, messages->weight_copy_ns);
    const double back = nw_larger(messages->backward_gather_ns, messages->weight_copy_ns);

    return m * (first + added(nw_larger(there - first, 0), pass->forward_ns, loss) +
                (at->gathers_twice ? messages->backward_first_ns +
                                         added(nw_larger(back - messages->backward_first_ns, 0),
                                               pass->backward_ns, loss)
                                   : 0));
}

static double reductions_ns(const struct nw_placement *at, const struct pass *pass, double m)
{
    const struct nw_quick_messages *messages = &at->messages;
    const double v = at->virtual_stages, loss = at->reduce_loss * pass->busy;
    const double times = at->reduces_each ? m : 1;
    double cover = pass->backward_ns / v;
    double ns = messages->reduce_ns;

    /* Buckets that leave within the last backward pass keep the stage before waiting. */
    if (at->reduces_serial) {
        const double all = messages->reduce_ns + messages->replica_ns;
        const double before = nw_larger(messages->reduce_ns - messages->reduce_tail_ns, 0) /
                              nw_larger(messages->reduce_ns, 1) * all;

        return times * (all + (at->pp - 1) / v * before);
    }
    if (at->gathers_twice) /* both go through one communicator */
        cover = nw_larger(cover - messages->backward_gather_ns, 0);
    ns = left_of_chunks(ns, v, at->pp * cover);
    const double tail = fmin(messages->reduce_tail_ns, ns);

    return times * (tail + added(ns - tail, cover, loss) + loss * (messages->reduce_ns - ns) +
                    added(messages->replica_ns, cover, loss));
}

/* Micro-batches behind each other in steady state. A stage waits for the micro-batch that it sent
 * out as many ago as are in flight, of 1F1B p - k on stage k: any stages next to each other wait
 * for the way there and back, two for each other most of all; interleaved stages run further ahead,
 * and a message is late only when it takes longer than the pass that runs meanwhile. */
static double period_ns(const struct nw_placement *at, const struct pass *slowest, double all_ns,
                        double pair_ns, double hop, double far, double both)
{
    const double p = at->pp, v = at->virtual_stages;
    const double own = slowest->forward_ns + slowest->backward_ns;
    const double forward = slowest->forward_ns / v, backward = slowest->backward_ns / v;

    if (v > 1)
        return nw_larger(own, v * nw_larger(nw_larger(backward + far, forward + far), both));
    return nw_larger(nw_larger(own, (all_ns + 2 * (p - 1) * hop) / p),
                     nw_larger(pair_ns + far, both));
}

/* The pipeline: filled and emptied once, in between as fast as its slowest stage and its messages
 * allow. */
static double pipeline_ns(const struct nw_placement *at, const double stage_ns[NW_ENDS], double all,
                          const struct pass *slowest, double micro_batch, double m)
{
    const double p = at->pp, v = at->virtual_stages;
    const double own = slowest->forward_ns + slowest->backward_ns;
    const double hop = at->hop_ns + at->hop_ns_per_sequence * micro_batch;
    const double far = at->far_ns + at->far_ns_per_sequence * micro_batch;
    const double both = at->pair_ns + at->pair_ns_per_sequence * micro_batch;
    const int last = at->counts->stage_count - 1;
    /* Two stages next to each other: the last two, or two of the first or the middle ones. */
    const double ends = (stage_ns[last > 0 ? last - 1 : 0] + stage_ns[last]) / 2;
    const double inner = last > 1 ? nw_larger(stage_ns[1], stage_ns[last - 1]) : 0;
    const double period = period_ns(at, slowest, all, nw_larger(ends, inner), hop, far, both);
    const double waits = nw_larger(m - p, 0) * (period - own);

    return m * own + (all - own) / v + 2 * (p - 1) * hop + waits +
           at->hop_loss * slowest->busy * nw_larger(2 * v * hop * m - waits, 0);
}

double nw_quick_ns(const struct nw_placement *at, const struct nw_quick_shape *shape, double m)
{
    const struct nw_stage_counts *counts = at->counts;
    struct pass slowest = {.busy = shape->busy};
    double stage_ns[NW_ENDS], all = 0, ns;

    for (int s = 0; s < counts->stage_count; s++) {
        double forward = 0, backward = 0;

        for (int k = 0; k < NW_UNIT_KINDS; k++) {
            forward += counts->units[s][k] * shape->forward_ns[k];
            backward += counts->units[s][k] * shape->backward_ns[k];
        }
        stage_ns[s] = forward + backward;
        if (s == 0 || stage_ns[s] > slowest.forward_ns + slowest.backward_ns) {
            slowest.forward_ns = forward;
            slowest.backward_ns = backward;
        }
    }
    for (int k = 0; k < NW_UNIT_KINDS; k++)
        all += counts->all[k] * (shape->forward_ns[k] + shape->backward_ns[k]);
    ns = at->pp > 1 ? pipeline_ns(at, stage_ns, all, &slowest, shape->micro_batch, m)
                    : m * (slowest.forward_ns + slowest.backward_ns);
    ns += gathers_ns(at, &slowest, m) + reductions_ns(at, &slowest, m) + at->messages.tied_ns;
    /* Gradients go down behind the last backward pass, weights come up after the update. */
    ns += at->update_ns + at->up_ns + nw_larger(at->down_ns - slowest.backward_ns, 0);
    return ns * at->jitter;
}

double nw_quick_bytes(const struct nw_placement *at, const struct nw_quick_shape *shape,
                      double micro_batch_count)
{
    const struct nw_stage_counts *counts = at->counts;
    const double p = at->pp, v = at->virtual_stages;
    double most = 0;

    for (int s = 0; s < counts->stage_count; s++) {
        /* As nw_memory_stage counts them. */
        const double flight =
            v > 1 ? (2 * (p - counts->at[s] - 1) + (v - 1) * p + 1) / v : p - counts->at[s];
        const double stored =
            nw_larger(fmin(flight, micro_batch_count), 1) *
            (counts->layers[NW_LAYER_PLAIN] * shape->stored_bytes[NW_LAYER_PLAIN] +
             counts->layers[NW_LAYER_EXPERTS] * shape->stored_bytes[NW_LAYER_EXPERTS]);
        const double held = micro_batch_count > 1 ? at->gradient_bytes[s] : 0;

        most =
            nw_larger(most, at->fixed_bytes[s] + nw_larger(stored + held, at->gradient_bytes[s]));
    }
    return most;
}
