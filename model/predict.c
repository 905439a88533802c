/* One step: the batch dealt to the GPUs, the simulation, its interval and bounds. */
#include "model/step.h"

#include <math.h>

/* The largest micro-batch up to the wanted one that divides the GPU's share. */
static uint64_t fitting_micro_batch(uint64_t share, uint64_t wanted)
{
    uint64_t micro_batch = wanted < share ? wanted : share;

    while (share % micro_batch != 0)
        micro_batch--;
    return micro_batch;
}

static nw_rc deal_batch(const struct nw_job *job, const struct nw_layout *layout,
                        struct nw_step *step)
{
    const bool weak = layout->scaling == NW_SCALING_WEAK;
    const uint64_t dealt_to = (uint64_t)(weak ? layout->base_rank_count : layout->rank_count);

    if (job->global_batch % dealt_to != 0)
        return nw_fail(NW_EUSAGE,
                       "a global batch of %llu sequences cannot be dealt evenly to %llu GPUs; "
                       "accepted: a multiple of %llu",
                       (unsigned long long)job->global_batch, (unsigned long long)dealt_to,
                       (unsigned long long)dealt_to);
    const uint64_t share = job->global_batch / dealt_to;

    step->micro_batch = fitting_micro_batch(share, job->micro_batch);
    step->micro_batch_count = share / step->micro_batch;
    step->global_batch = share * (uint64_t)layout->rank_count;
    return NW_OK;
}

static double step_ns_of(const struct nw_step *step, double overlap_loss)
{
    return step->compute_ns + step->exposed_ns + overlap_loss * step->hidden_ns +
           step->optimizer_ns;
}

static nw_assumed rate_assumptions(const struct nw_rate *rate)
{
    switch (rate->source) {
    case NW_RATE_STATED:
        return NW_ASSUMES(RATE_ERROR_STATED);
    case NW_RATE_GEMM:
        return NW_ASSUMES(STEP_OF_GEMM) | NW_ASSUMES(RATE_ERROR_ASSUMED);
    case NW_RATE_CATALOGUE:
        break;
    }
    return (nw_assumed)1 << rate->efficiency | NW_ASSUMES(RATE_ERROR_ASSUMED);
}

static nw_assumed cost_assumptions(const struct nw_platform *platform, unsigned how)
{
    const struct {
        unsigned how;
        nw_assumed assumed;
    } rows[] = {
        {NW_COST_DERIVED, NW_ASSUMES(DERIVED_ERROR) | NW_ASSUMES(GATHER_OF_REDUCE)},
        {NW_COST_RANKS, NW_ASSUMES(RANKS_ERROR)},
        {NW_COST_NODES, NW_ASSUMES(NODES_ERROR)},
        {NW_COST_GIVEN, NW_ASSUMES(LINK_ERROR) | NW_ASSUMES(WIRE_LATENCY_NS)},
        {NW_COST_DATASHEET, NW_ASSUMES(LINK_ERROR) | NW_ASSUMES(LINK_LATENCY_NS) |
                                (nw_assumed)1 << platform->link_share},
        {NW_COST_NO_INTERVAL, NW_ASSUMES(IMPORT_ERROR)},
    };
    nw_assumed assumed = 0;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assumed |= (how & rows[i].how) != 0 ? rows[i].assumed : 0;
    return assumed;
}

nw_rc nw_predict_scenario(const struct nw_job *job, const struct nw_platform *platform,
                          const struct nw_layout *layout, const struct nw_scenario *scenario,
                          struct nw_step *step_out)
{
    const struct nw_group group = {.rank_count = layout->rank_count,
                                   .host_count = layout->node_count};
    struct nw_memo memo[NW_MEMO_COUNT];
    struct nw_simulation simulation;
    const struct nw_strategy *strategy = layout->strategy;
    struct nw_step step = {.strategy = strategy,
                           .layout = *layout,
                           .node_count = layout->node_count,
                           .rank_count = layout->rank_count};

    NW_TRY(deal_batch(job, layout, &step));
    nw_simulation_init(job, platform, scenario, group, step.micro_batch, step.micro_batch_count,
                       memo, &simulation);
    NW_TRY(strategy->simulate(&simulation, &step));
    const double optimizer = nw_optimizer_ns(job, platform, strategy, layout->rank_count);
    const double loss = isfinite(scenario->overlap_loss)
                            ? scenario->overlap_loss
                            : nw_constants[NW_CONSTANT_OVERLAP_LOSS].value;

    step.optimizer_known = isfinite(optimizer);
    step.optimizer_ns = step.optimizer_known ? optimizer : 0;
    if (step.exposed_ns > step.communication_ns * (1 - 1e-9)) /* rounding */
        step.exposed_ns = step.communication_ns;
    step.hidden_ns = step.communication_ns - step.exposed_ns;
    step.overlap_loss_ns = loss * step.hidden_ns;
    step.step_ns = step_ns_of(&step, loss);
    step.full_overlap_ns = step_ns_of(&step, 0);
    step.no_overlap_ns = step_ns_of(&step, 1);
    step.assumed |= rate_assumptions(&platform->rate) | cost_assumptions(platform, step.how);
    if (step.hidden_ns > 0 && !isfinite(scenario->overlap_loss))
        step.assumed |= NW_ASSUMES(OVERLAP_LOSS) | NW_ASSUMES(OVERLAP_LOSS_ERROR);
    if (step.optimizer_known)
        step.assumed |= NW_ASSUMES(HBM_SHARE);
    *step_out = step;
    return NW_OK;
}

/* ---- interval ------------------------------------------------------------------------------ */

/* The two ends of one source of error; all else likely. */
static nw_rc vary(const struct nw_job *job, const struct nw_platform *platform,
                  const struct nw_layout *layout, const struct nw_scenario ends[2],
                  double likely_ns, double *below_out, double *above_out)
{
    double difference[2];

    for (int i = 0; i < 2; i++) {
        struct nw_step step;

        NW_TRY(nw_predict_scenario(job, platform, layout, &ends[i], &step));
        difference[i] = step.step_ns - likely_ns;
    }
    *below_out = hypot(*below_out, fmin(fmin(difference[0], difference[1]), 0));
    *above_out = hypot(*above_out, fmax(fmax(difference[0], difference[1]), 0));
    return NW_OK;
}

void nw_scenario_ends(const struct nw_platform *platform, const struct nw_scenario *middle,
                      enum nw_error_source source, struct nw_scenario ends_out[2])
{
    const double loss = nw_constants[NW_CONSTANT_OVERLAP_LOSS].value;
    const double loss_error = nw_constants[NW_CONSTANT_OVERLAP_LOSS_ERROR].value;

    for (int i = 0; i < 2; i++) {
        const double sign = i == 0 ? -1 : 1;

        ends_out[i] = *middle;
        if (source == NW_ERROR_COMPUTE)
            ends_out[i].compute_scale *= 1 + sign * platform->rate.rel_error;
        else if (source == NW_ERROR_CURVE)
            ends_out[i].curve_end = sign;
        else if (!isfinite(middle->overlap_loss))
            ends_out[i].overlap_loss = fmin(fmax(loss + sign * loss_error, 0), 1);
    }
}

static double mfu_of(const struct nw_job *job, const struct nw_platform *platform,
                     const struct nw_step *step)
{
    const double tokens = (double)step->global_batch * (double)job->sequence;
    const struct nw_flops flops =
        nw_transformer_flops(&job->net, tokens, (double)job->sequence, job->flash);
    /* Model FLOPs: backward is twice the forward, nothing recomputed (Chowdhery et al. 2022). */
    const double model = 3 * ((double)job->net.layers * flops.layer_forward + flops.head_forward);
    const double peak = platform->gpu != NULL ? nw_gpu_peak(platform->gpu, job->precision) : 0;

    return peak > 0 ? model / (step->step_ns * 1e-9 * peak * step->rank_count) : NAN;
}

nw_rc nw_predict(const struct nw_job *job, const struct nw_platform *platform,
                 const struct nw_layout *layout, const struct nw_scenario *scenario,
                 struct nw_step *step_out)
{
    const struct nw_scenario *middle = scenario != NULL ? scenario : &nw_scenario_likely;
    struct nw_step step;
    double below = 0, above = 0;

    NW_TRY(nw_predict_scenario(job, platform, layout, middle, &step));
    for (enum nw_error_source source = 0; source < NW_ERROR_COUNT; source++) {
        struct nw_scenario ends[2];

        nw_scenario_ends(platform, middle, source, ends);
        NW_TRY(vary(job, platform, layout, ends, step.step_ns, &below, &above));
    }
    const double tokens = (double)step.global_batch * (double)job->sequence;

    step.low_ns = fmax(step.step_ns - below, 0);
    step.high_ns = step.step_ns + above;
    step.tokens_per_s = tokens / step.step_ns * 1e9;
    step.tokens_per_s_low = tokens / step.high_ns * 1e9;
    step.tokens_per_s_high = tokens / step.low_ns * 1e9;
    step.mfu = mfu_of(job, platform, &step);
    nw_memory_of(job, layout, step.micro_batch, step.micro_batch_count, &platform->assumptions,
                 &step.memory, &step.assumed);
    step.fits = platform->memory_bytes == 0                                 ? -1
                : step.memory.total_bytes <= (double)platform->memory_bytes ? 1
                                                                            : 0;
    *step_out = step;
    return NW_OK;
}
