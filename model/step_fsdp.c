/* ZeRO-3 and FSDP: weights are gathered layer by layer, in the forward and again in the backward
 * pass, gradients leave by reduce-scatter (Rajbhandari et al. 2020, section 7.2: 3Ψ; Zhao et al.
 * 2023, PyTorch FSDP, section 3.3: the next layer is gathered while this one computes). */
#include "model/step.h"

#include <math.h>

/* How a framework cuts the messages, in elements. */
struct cut {
    double gather;      /* no gather is larger */
    double reduce_from; /* gradients wait until there are so many */
    double held;        /* gradients that wait */
};

struct unit {
    double elements, forward_ns, backward_ns;
};

/* Unit 0 the embeddings, 1 … layers, layers + 1 the output layer. */
static struct unit unit_at(const struct nw_simulation *simulation, uint64_t index)
{
    const uint64_t layers = simulation->job->net.layers;

    if (index == 0)
        return (struct unit){.elements = (double)simulation->embedding.total};
    if (index <= layers)
        return (struct unit){.elements = (double)simulation->layer.total,
                             .forward_ns = simulation->layer_forward_ns,
                             .backward_ns = simulation->layer_backward_ns};
    return (struct unit){.elements = (double)simulation->head.total,
                         .forward_ns = simulation->head_forward_ns,
                         .backward_ns = simulation->head_backward_ns};
}

/* Gather unit `index`, not before `ready_ns`. */
static nw_rc gather(const struct nw_simulation *simulation, struct nw_timeline *timeline,
                    struct nw_step *step, const struct cut *cut, uint64_t index, double ready_ns,
                    double *end_out)
{
    const double element_bytes = simulation->job->precision->element_bytes;
    double end = ready_ns;

    for (double left = unit_at(simulation, index).elements; left > 0; left -= cut->gather)
        NW_TRY(nw_send(simulation, timeline, step, "all_gather",
                       fmin(left, cut->gather) * element_bytes, ready_ns, &end));
    *end_out = end;
    return NW_OK;
}

static nw_rc forward(const struct nw_simulation *simulation, struct nw_timeline *timeline,
                     struct nw_step *step, const struct cut *cut)
{
    const uint64_t count = simulation->job->net.layers + 2;
    double here, next = 0;

    NW_TRY(gather(simulation, timeline, step, cut, 0, timeline->compute_free_ns, &here));
    for (uint64_t i = 0; i < count; i++) {
        const double start = fmax(timeline->compute_free_ns, here);

        if (i + 1 < count)
            NW_TRY(gather(simulation, timeline, step, cut, i + 1, start, &next));
        nw_compute(timeline, step, start, unit_at(simulation, i).forward_ns);
        here = next;
    }
    return NW_OK;
}

static nw_rc backward(const struct nw_simulation *simulation, struct nw_timeline *timeline,
                      struct nw_step *step, struct cut *cut)
{
    const uint64_t count = simulation->job->net.layers + 2;
    const double gradient_bytes = simulation->job->gradient_bytes;
    double here, next = 0, end;

    NW_TRY(gather(simulation, timeline, step, cut, count - 1, timeline->compute_free_ns, &here));
    for (uint64_t i = count; i-- > 0;) {
        const struct unit unit = unit_at(simulation, i);
        const double start = fmax(timeline->compute_free_ns, here);

        if (i > 0)
            NW_TRY(gather(simulation, timeline, step, cut, i - 1, start, &next));
        const double ready = nw_compute(timeline, step, start, unit.backward_ns);

        cut->held += unit.elements;
        if (cut->held >= cut->reduce_from || i == 0) {
            NW_TRY(nw_send(simulation, timeline, step, "reduce_scatter", cut->held * gradient_bytes,
                           ready, &end));
            cut->held = 0;
        }
        here = next;
    }
    return NW_OK;
}

static nw_rc simulate(const struct nw_simulation *simulation, struct nw_step *step, struct cut cut)
{
    struct nw_timeline timeline = {0};

    NW_TRY(forward(simulation, &timeline, step, &cut));
    NW_TRY(backward(simulation, &timeline, step, &cut));
    nw_join(&timeline, step);
    nw_step_repeat(step, (double)simulation->micro_batch_count);
    return NW_OK;
}

/* One message a layer. */
nw_rc nw_simulate_fsdp(const struct nw_simulation *simulation, struct nw_step *step)
{
    return simulate(simulation, step, (struct cut){.gather = INFINITY, .reduce_from = 0});
}

/* DeepSpeed gathers in pieces and reduces in buckets. */
nw_rc nw_simulate_zero3(const struct nw_simulation *simulation, struct nw_step *step)
{
    step->assumed |= NW_ASSUMES(ZERO3_GATHER_ELEMENTS) | NW_ASSUMES(ZERO_BUCKET_ELEMENTS);
    return simulate(
        simulation, step,
        (struct cut){.gather = nw_constants[NW_CONSTANT_ZERO3_GATHER_ELEMENTS].value,
                     .reduce_from = nw_constants[NW_CONSTANT_ZERO_BUCKET_ELEMENTS].value});
}
