/* One step: the batch dealt to the GPUs, its events timed, interval and bounds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/step_build.h"

/* ---- one timing ---------------------------------------------------------------------------- */

static void set_overlap(const struct nw_profile *profile, const nw_overlap *all,
                        struct nw_timing *timing)
{
    const nw_overlap modes[NW_STREAM_COUNT] = {
        [NW_STREAM_GRADIENTS] = profile->gradients, [NW_STREAM_WEIGHTS] = profile->weights,
        [NW_STREAM_TENSOR] = profile->tensor,       [NW_STREAM_CONTEXT] = NW_OVERLAP_STREAM,
        [NW_STREAM_PIPELINE] = NW_OVERLAP_STREAM,   [NW_STREAM_COPIES] = NW_OVERLAP_STREAM,
    };

    for (int s = 0; s < NW_STREAM_COUNT; s++)
        timing->overlap[s] = all != NULL ? *all : modes[s];
}

/* What hidden communication costs all the same. A GPU that waits for the CPU's launches loses
 * nothing meanwhile. Of fused messages the loss is known as well as it is small. */
static double share_of_hidden(const struct nw_build *build, nw_overlap mode)
{
    const struct nw_scenario *scenario = build->scenario;
    const double usual = nw_assumption(build->platform, NW_CONSTANT_OVERLAP_LOSS);
    const double own =
        mode == NW_OVERLAP_FUSED ? nw_assumption(build->platform, NW_CONSTANT_FUSED_LOSS) : usual;
    const double error = nw_assumption(build->platform, NW_CONSTANT_OVERLAP_LOSS_ERROR) *
                         (usual > 0 ? fmin(own / usual, 1) : 1);

    if (mode == NW_OVERLAP_SERIAL)
        return 0;
    if (isfinite(scenario->overlap_loss))
        return scenario->overlap_loss;
    return fmin(fmax(own + scenario->overlap_end * error, 0), 1) * (1 - build->idle_share);
}

static nw_assumed loss_assumptions(const struct nw_build *build, nw_overlap mode)
{
    if (mode == NW_OVERLAP_SERIAL || isfinite(build->scenario->overlap_loss))
        return 0;
    return NW_ASSUMES(OVERLAP_LOSS_ERROR) |
           (mode == NW_OVERLAP_FUSED ? NW_ASSUMES(FUSED_LOSS) : NW_ASSUMES(OVERLAP_LOSS));
}

/* Of the copies to and from the host nothing is lost: they take no SMs. What hides of all other
 * messages, those between pipeline stages among them, costs what its overlap says, as far as there
 * is computation to hide behind: behind waits and other messages nothing is slowed. */
static void add_sums(const struct nw_build *build, const struct nw_timing *timing,
                     const struct nw_stage_sums *sums, struct nw_step *step)
{
    step->compute_ns = sums->compute_ns;
    step->bubble_ns = sums->bubble_ns;
    step->optimizer_ns = sums->update_ns;
    step->offload_ns = sums->stream_exposed_ns[NW_STREAM_COPIES];
    step->exposed_ns = step->communication_ns = step->overlap_loss_ns = 0;
    for (int s = 0; s < NW_STREAM_COUNT; s++) {
        const double exposed = sums->stream_exposed_ns[s];
        const double all = fmax(sums->stream_ns[s], exposed);

        if (s == NW_STREAM_COPIES)
            continue;
        step->exposed_ns += exposed;
        step->communication_ns += all;
        step->overlap_loss_ns += share_of_hidden(build, timing->overlap[s]) * (all - exposed);
        if (all > exposed)
            step->assumed |= loss_assumptions(build, timing->overlap[s]);
    }
    step->hidden_ns = step->communication_ns - step->exposed_ns;
    if (step->hidden_ns < 1e-9 * step->communication_ns) /* rounding */
        step->hidden_ns = 0;
    if (step->hidden_ns > step->compute_ns && !isfinite(build->scenario->overlap_loss))
        step->overlap_loss_ns *= step->compute_ns / step->hidden_ns;
    memcpy(step->group_exposed_ns, sums->group_exposed_ns, sizeof step->group_exposed_ns);
}

static double whole_ns(const struct nw_step *step)
{
    return step->compute_ns + step->bubble_ns + step->exposed_ns + step->overlap_loss_ns +
           step->optimizer_ns + step->offload_ns;
}

/* The stage that takes longest under this timing. */
static nw_rc time_step(struct nw_build *build, const struct nw_timing *timing, struct nw_step *step)
{
    const int stages = build->graph.stage_count;
    struct nw_stage_sums *sums = calloc((size_t)stages, sizeof *sums);
    struct nw_step worst = *step;
    nw_rc rc = sums == NULL ? nw_fail(NW_ENOMEM, "no memory for %d pipeline stages", stages)
                            : nw_graph_time(&build->graph, timing, sums);

    for (int s = 0; s < stages && rc == NW_OK; s++) {
        struct nw_step one = *step;

        one.stage = build->first_stage + s;
        add_sums(build, timing, &sums[s], &one);
        if (s == 0 || whole_ns(&one) > whole_ns(&worst))
            worst = one;
    }
    free(sums);
    NW_TRY(rc);
    const double jitter = nw_assumption(build->platform, NW_CONSTANT_JITTER);

    /* The slowest of many: all wait for it. */
    worst.jitter_ns = jitter * log2(build->layout.node_count) * whole_ns(&worst);
    worst.step_ns = whole_ns(&worst) + worst.jitter_ns;
    *step = worst;
    return NW_OK;
}

static struct nw_timing timing_of(const struct nw_build *build, const struct nw_scenario *scenario,
                                  const nw_overlap *all)
{
    struct nw_timing timing = {.compute_scale = scenario->compute_scale,
                               .curve_end = scenario->curve_end};

    set_overlap(build->profile, all, &timing);
    return timing;
}

/* Everything hidden that can be, at no loss; nothing hidden. */
static nw_rc time_bounds(struct nw_build *build, const struct nw_scenario *scenario,
                         struct nw_step *step)
{
    static const nw_overlap hidden = NW_OVERLAP_STREAM, serial = NW_OVERLAP_SERIAL;
    const struct nw_scenario *kept = build->scenario;
    struct nw_scenario bound = *scenario;
    struct nw_step at[2] = {{0}, {0}};
    nw_rc rc = NW_OK;

    build->scenario = &bound;
    for (int i = 0; i < 2 && rc == NW_OK; i++) {
        const struct nw_timing timing = timing_of(build, scenario, i == 0 ? &hidden : &serial);

        bound.overlap_loss = i;
        rc = time_step(build, &timing, &at[i]);
    }
    build->scenario = kept;
    NW_TRY(rc);
    step->full_overlap_ns = fmin(at[0].step_ns, step->step_ns);
    step->no_overlap_ns = fmax(at[1].step_ns, step->step_ns);
    return NW_OK;
}

/* ---- what it stands on --------------------------------------------------------------------- */

static nw_assumed rate_assumptions(const struct nw_platform *platform)
{
    const nw_assumed error = platform->anchored ? (nw_assumed)1 << platform->anchor_error
                                                : NW_ASSUMES(RATE_ERROR_ASSUMED);
    const nw_assumed operators =
        NW_ASSUMES(ATTENTION_SHARE) | NW_ASSUMES(HBM_SHARE) | NW_ASSUMES(LAUNCH_NS);

    switch (platform->rate.source) {
    case NW_RATE_STATED:
        return NW_ASSUMES(RATE_ERROR_STATED);
    case NW_RATE_GEMM:
        return operators | error;
    case NW_RATE_CATALOGUE:
        break;
    }
    return operators | NW_ASSUMES(GEMM_SHARE) | error;
}

static nw_assumed cost_assumptions(unsigned how)
{
    const struct {
        unsigned how;
        nw_assumed assumed;
    } rows[] = {
        {NW_COST_DERIVED, NW_ASSUMES(DERIVED_ERROR)},
        {NW_COST_RANKS, NW_ASSUMES(RANKS_ERROR)},
        {NW_COST_NODES, NW_ASSUMES(NODES_ERROR)},
        {NW_COST_GIVEN, NW_ASSUMES(LINK_ERROR) | NW_ASSUMES(WIRE_LATENCY_NS)},
        {NW_COST_DATASHEET, NW_ASSUMES(LINK_ERROR) | NW_ASSUMES(LINK_SHARE)},
        {NW_COST_WIRE,
         NW_ASSUMES(WIRE_SHARE) | NW_ASSUMES(WIRE_LATENCY_NS) | NW_ASSUMES(WIRE_ERROR)},
        {NW_COST_NO_INTERVAL, NW_ASSUMES(IMPORT_ERROR)},
    };
    nw_assumed assumed = 0;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assumed |= (how & rows[i].how) != 0 ? rows[i].assumed : 0;
    return assumed;
}

static nw_assumed assumptions_of(const struct nw_build *build, const struct nw_step *step)
{
    nw_assumed assumed =
        step->assumed | rate_assumptions(build->platform) | cost_assumptions(step->how);

    if (step->jitter_ns > 0)
        assumed |= NW_ASSUMES(JITTER);
    if (step->optimizer_known && step->optimizer_ns > 0)
        assumed |= NW_ASSUMES(HBM_SHARE);
    return assumed & ~build->platform->assumptions.measured;
}

/* Parts of the computation of the stage that takes longest: its units × micro-batches. */
static void fill_parts(const struct nw_build *build, struct nw_step *step)
{
    const double m = build->micro_batch_count, scale = build->scenario->compute_scale;

    for (int c = 0; c < build->virtual_stages; c++) {
        const struct nw_chunk chunk = nw_build_chunk(build, step->stage, c);
        const double counts[NW_UNIT_KINDS] = {chunk.embedding, chunk.count[NW_LAYER_PLAIN],
                                              chunk.count[NW_LAYER_EXPERTS], chunk.head};

        for (int k = 0; k < NW_UNIT_KINDS; k++) {
            const struct nw_unit_time *time = &build->units[k].time;
            const double n = counts[k] * m * scale;

            step->recompute_ns += n * time->recompute_ns;
            step->product_ns += n * time->product_ns;
            step->attention_ns += n * time->attention_ns;
            step->memory_ns += n * time->memory_ns;
            step->launch_ns += n * time->launch_ns;
        }
    }
}

static nw_rc start_step(const struct nw_job *job, const struct nw_layout *layout,
                        struct nw_step *step_out)
{
    struct nw_step step = {.strategy = layout->strategy,
                           .layout = *layout,
                           .node_count = layout->node_count,
                           .rank_count = layout->rank_count};
    struct nw_deal deal;

    if (step.strategy == NULL) /* one rank only */
        step.strategy = step.layout.strategy = nw_strategy_named("none");
    NW_TRY(nw_layout_deal(layout, job, &deal));
    step.micro_batch = deal.micro_batch;
    step.micro_batch_count = deal.micro_batch_count;
    step.global_batch = deal.global_batch;
    *step_out = step;
    return NW_OK;
}

static nw_rc finish_step(struct nw_build *build, const struct nw_scenario *scenario,
                         struct nw_step *step)
{
    const struct nw_timing timing = timing_of(build, scenario, NULL);
    const bool offloaded = build->job->offload.optimizer != NW_OFFLOAD_NONE;

    NW_TRY(time_step(build, &timing, step));
    NW_TRY(time_bounds(build, scenario, step));
    step->optimizer_known =
        isfinite(offloaded ? build->update.cpu_ns + build->update.down_ns + build->update.up_ns
                           : build->update.gpu_ns);
    step->how =
        build->how | (nw_measured_is_simulated(&build->platform->measured) ? NW_COST_SIMULATED : 0);
    step->traffic = build->traffic;
    fill_parts(build, step);
    step->assumed = assumptions_of(build, step);
    return NW_OK;
}

nw_rc nw_predict_scenario(const struct nw_job *job, const struct nw_platform *platform,
                          const struct nw_layout *layout, const struct nw_scenario *scenario,
                          struct nw_step *step_out)
{
    struct nw_build build;
    struct nw_step step;

    NW_TRY(start_step(job, layout, &step));
    NW_TRY(nw_build_init(job, platform, &step.layout, step.micro_batch, step.micro_batch_count,
                         scenario, &build));
    nw_rc rc = nw_build_step(&build);

    if (rc == NW_OK)
        rc = finish_step(&build, scenario, &step);
    nw_build_free(&build);
    NW_TRY(rc);
    *step_out = step;
    return NW_OK;
}

nw_rc nw_predict_time(const struct nw_job *job, const struct nw_platform *platform,
                      const struct nw_layout *layout, const struct nw_scenario *scenario,
                      struct nw_graph *events, struct nw_step *step_out)
{
    struct nw_build build;
    struct nw_step step;

    NW_TRY(start_step(job, layout, &step));
    NW_TRY(nw_build_init(job, platform, &step.layout, step.micro_batch, step.micro_batch_count,
                         scenario, &build));
    const int stage_count = build.graph.stage_count;

    build.graph = *events; /* its memory */
    nw_graph_clear(&build.graph);
    build.graph.stage_count = stage_count;
    nw_rc rc = nw_build_step(&build);

    if (rc == NW_OK) {
        const struct nw_timing timing = timing_of(&build, scenario, NULL);

        rc = time_step(&build, &timing, &step);
    }
    *events = build.graph;
    build.graph = (struct nw_graph){0};
    nw_build_free(&build);
    NW_TRY(rc);
    *step_out = step;
    return NW_OK;
}

nw_rc nw_predict_events(const struct nw_job *job, const struct nw_platform *platform,
                        const struct nw_layout *layout, double scale, struct nw_graph *events_out,
                        struct nw_timing *timing_out, struct nw_step *step_out)
{
    struct nw_build build;
    struct nw_step step;

    NW_TRY(start_step(job, layout, &step));
    NW_TRY(nw_build_init(job, platform, &step.layout, step.micro_batch, step.micro_batch_count,
                         &nw_scenario_likely, &build));
    build.unrolled = true;
    build.scale = scale;
    nw_rc rc = nw_build_step(&build);

    *timing_out = timing_of(&build, &nw_scenario_likely, NULL);
    if (rc == NW_OK)
        rc = time_step(&build, timing_out, &step);
    if (rc == NW_OK) {
        step.how = build.how;
        step.traffic = build.traffic;
        *events_out = build.graph;
        build.graph = (struct nw_graph){0};
        *step_out = step;
    }
    nw_build_free(&build);
    return rc;
}

/* ---- interval ------------------------------------------------------------------------------ */

void nw_scenario_ends(const struct nw_platform *platform, const struct nw_scenario *middle,
                      enum nw_error_source source, struct nw_scenario ends_out[2])
{
    for (int i = 0; i < 2; i++) {
        const double sign = i == 0 ? -1 : 1;

        ends_out[i] = *middle;
        if (source == NW_ERROR_COMPUTE)
            ends_out[i].compute_scale *= fmax(1 + sign * platform->rate.rel_error, 0);
        else if (source == NW_ERROR_CURVE)
            ends_out[i].curve_end = sign;
        else if (source == NW_ERROR_OVERLAP)
            ends_out[i].overlap_end = sign;
    }
}

/* The events built once, timed at both ends of each source of error; all else likely. */
static nw_rc vary(struct nw_build *build, const struct nw_scenario *middle, double likely_ns,
                  double *below_out, double *above_out)
{
    const struct nw_scenario *kept = build->scenario;
    nw_rc rc = NW_OK;

    *below_out = *above_out = 0;
    for (int i = 0; i < 2 * NW_ERROR_COUNT && rc == NW_OK; i++) {
        struct nw_scenario ends[2];
        struct nw_step step = {0};

        nw_scenario_ends(build->platform, middle, (enum nw_error_source)(i / 2), ends);
        const struct nw_timing timing = timing_of(build, &ends[i % 2], NULL);

        build->scenario = &ends[i % 2];
        rc = time_step(build, &timing, &step);
        const double difference = step.step_ns - likely_ns;

        *(difference < 0 ? below_out : above_out) =
            hypot(difference < 0 ? *below_out : *above_out, difference);
        build->scenario = kept;
    }
    return rc;
}

static double mfu_of(const struct nw_job *job, const struct nw_platform *platform,
                     const struct nw_step *step)
{
    const double tokens = (double)step->global_batch * (double)job->sequence;
    const struct nw_flops flops =
        nw_transformer_flops(&job->net, tokens, (double)job->sequence, job->flash);
    /* Model FLOPs: backward is twice the forward, nothing recomputed (Chowdhery et al. 2022);
     * frozen weights have no gradient of their own: once. */
    const double model = (job->lora.rank > 0 ? 2 : 3) *
                         ((double)job->net.layers * flops.layer_forward + flops.head_forward);
    const double peak = platform->gpu != NULL ? nw_gpu_peak(platform->gpu, job->precision) : 0;

    return peak > 0 ? model / (step->step_ns * 1e-9 * peak * step->rank_count) : NAN;
}

static void fill_rest(const struct nw_job *job, const struct nw_platform *platform, double below,
                      double above, struct nw_step *step)
{
    const double tokens = (double)step->global_batch * (double)job->sequence;

    /* What nobody has measured on this software is not known better than this. */
    const bool anchored = platform->anchored || platform->rate.source == NW_RATE_STATED;
    const double least =
        anchored ? 0 : nw_assumption(platform, NW_CONSTANT_LEAST_ERROR) * step->step_ns;

    if (least > fmin(below, above))
        step->assumed |= NW_ASSUMES(LEAST_ERROR);
    below = fmax(below, least);
    above = fmax(above, least);
    step->low_ns = fmax(step->step_ns - below, 0);
    step->high_ns = step->step_ns + above;
    step->tokens_per_s = tokens / step->step_ns * 1e9;
    step->tokens_per_s_low = tokens / step->high_ns * 1e9;
    step->tokens_per_s_high = tokens / step->low_ns * 1e9;
    step->mfu = mfu_of(job, platform, step);
    nw_memory_of(job, &step->layout, step->micro_batch, step->micro_batch_count,
                 &platform->assumptions, &step->memory, &step->assumed);
    step->fits = platform->memory_bytes == 0                                  ? -1
                 : step->memory.total_bytes <= (double)platform->memory_bytes ? 1
                                                                              : 0;
}

nw_rc nw_predict(const struct nw_job *job, const struct nw_platform *platform,
                 const struct nw_layout *layout, const struct nw_scenario *scenario,
                 struct nw_step *step_out)
{
    const struct nw_scenario *middle = scenario != NULL ? scenario : &nw_scenario_likely;
    struct nw_build build;
    struct nw_step step;
    double below = 0, above = 0;

    NW_TRY(start_step(job, layout, &step));
    NW_TRY(nw_build_init(job, platform, &step.layout, step.micro_batch, step.micro_batch_count,
                         middle, &build));
    nw_rc rc = nw_build_step(&build);

    if (rc == NW_OK)
        rc = finish_step(&build, middle, &step);
    if (rc == NW_OK)
        rc = vary(&build, middle, step.step_ns, &below, &above);
    nw_build_free(&build);
    NW_TRY(rc);
    fill_rest(job, platform, below, above, &step);
    *step_out = step;
    return NW_OK;
}
