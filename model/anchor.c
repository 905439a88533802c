#include "model/anchor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "model/request.h"
#include "model/request_parts.h"
#include "model/training_log.h"

/* Software that computes four times as fast as the model holds for possible, or a hundred times as
 * slow: then something else was measured. */
#define FACTOR_MIN 0.25
#define FACTOR_MAX 100
#define MAX_RANKS  131072
#define ERROR_MAX  0.9 /* of the computation's time: it stays above 0 */

struct measured { /* on the way to a step */
    struct nw_anchor *anchor;
    double tokens, sequences; /* of one step */
};

/* ---- what was measured, as a step ---------------------------------------------------------- */

static double step_of(const struct measured *measured, nw_log_unit unit, double value)
{
    switch (unit) {
    case NW_LOG_NS:
        return value;
    case NW_LOG_TOKENS_PER_S:
        return measured->tokens / value * 1e9;
    case NW_LOG_TOKENS_PER_S_PER_GPU:
        return measured->tokens / (value * measured->anchor->rank_count) * 1e9;
    case NW_LOG_SAMPLES_PER_S:
        return measured->sequences / value * 1e9;
    }
    return NAN;
}

static void take_log(const struct measured *measured, const char *path,
                     const struct nw_training_log *log)
{
    struct nw_anchor *anchor = measured->anchor;
    const double low = step_of(measured, log->unit, log->value.low);
    const double high = step_of(measured, log->unit, log->value.high);
    const char *name = strrchr(path, '/');

    anchor->step_ns = step_of(measured, log->unit, log->value.median);
    anchor->low_ns = fmin(low, high);
    anchor->high_ns = fmax(low, high);
    snprintf(anchor->source, sizeof anchor->source, "%.80s: %zu steady line%s of %zu, %s",
             name != NULL ? name + 1 : path, log->value.count, log->value.count == 1 ? "" : "s",
             log->lines, log->writer);
}

static nw_rc check_ways(const struct nw_model_request *request)
{
    if (request->time_factor > 0 &&
        (request->measured_step_ns > 0 || request->measured_tokens_per_s > 0 ||
         request->measured_log != NULL))
        return nw_fail(NW_EUSAGE, "--time-factor is what a measured step leads to; not with one");
    const int ways = (request->measured_step_ns > 0) + (request->measured_tokens_per_s > 0) +
                     (request->measured_log != NULL);

    if (ways > 1)
        return nw_fail(NW_EUSAGE, "--measured-step, --measured-tokens-per-s and --measured-log say "
                                  "the same in different ways; give one of them");
    if (ways == 0 && request->measured_ranks > 0)
        return nw_fail(NW_EUSAGE,
                       "--on %d: what was measured there? Give --measured-step, "
                       "--measured-tokens-per-s or --measured-log",
                       request->measured_ranks);
    if (ways == 0 && request->measured_nodes > 0)
        return nw_fail(NW_EUSAGE, "--measured-nodes needs --measured-step or its like, and --on");
    return NW_OK;
}

static nw_rc find_place(const struct nw_model_request *request, const struct nw_training_log *log,
                        const struct nw_model *model, struct nw_anchor *anchor)
{
    const int per_node = model->platform.fabric.gpus_per_node;

    anchor->rank_count =
        request->measured_ranks > 0 ? request->measured_ranks : (int)log->stated[NW_LOG_RANKS];
    if (anchor->rank_count > MAX_RANKS)
        return nw_fail(NW_EUSAGE, "the log is of %d GPUs; accepted: up to %d", anchor->rank_count,
                       MAX_RANKS);
    if (anchor->rank_count == 0)
        return nw_fail(NW_EUSAGE, "a measured step needs --on N: the GPUs that it was measured on");
    anchor->node_count = request->measured_nodes > 0
                             ? request->measured_nodes
                             : (anchor->rank_count + per_node - 1) / per_node;
    if (anchor->rank_count % anchor->node_count != 0)
        return nw_fail(NW_EUSAGE,
                       "--on %d GPUs are not the same number on each of %d nodes; accepted: a "
                       "multiple, or give --measured-nodes or --gpus-per-node",
                       anchor->rank_count, anchor->node_count);
    if (anchor->rank_count > 1 && model->strategies[1] != NULL && request->strategy == NULL)
        return nw_fail(NW_EUSAGE,
                       "a step measured on %d GPUs needs the --strategy that it was "
                       "measured with",
                       anchor->rank_count);
    return NW_OK;
}

/* ---- the factor ---------------------------------------------------------------------------- */

struct fit {
    const struct nw_job *job;
    struct nw_platform platform;
    struct nw_layout layout;
    const struct nw_scenario *scenario;
};

static nw_rc step_at(struct fit *fit, double factor, struct nw_step *step_out)
{
    fit->platform.step_time_factor = factor;
    return nw_predict_scenario(fit->job, &fit->platform, &fit->layout, fit->scenario, step_out);
}

/* The step rises with the factor, close to a line: secants inside a bracket. */
static nw_rc solve(struct fit *fit, double wanted_ns, double *factor_out, double *rest_out)
{
    double low = FACTOR_MIN, high = FACTOR_MAX, factor = 1, last = 0, last_ns = 0, ns = 0;

    for (int i = 0; i < 60; i++) {
        struct nw_step step;

        NW_TRY(step_at(fit, factor, &step));
        ns = step.step_ns;
        if (fabs(ns / wanted_ns - 1) < 1e-6)
            break;
        *(ns < wanted_ns ? &low : &high) = factor;
        if (high / low < 1 + 1e-9)
            break;
        double next = i > 0 && ns != last_ns
                          ? factor + (wanted_ns - ns) * (factor - last) / (ns - last_ns)
                          : factor * wanted_ns / ns;

        if (!(next > low && next < high))
            next = i < 2 ? (next <= low ? low : high) : sqrt(low * high);
        last = factor;
        last_ns = ns;
        factor = next;
    }
    *factor_out = factor;
    *rest_out = wanted_ns / ns;
    return NW_OK;
}

/* Forward and backward once, nothing recomputed: no step does with less. `peak` 0: unknown. */
static double of_peak(double peak, const struct nw_job *job, const struct nw_anchor *anchor)
{
    const double tokens = (double)anchor->global_batch * (double)job->sequence;
    const struct nw_flops flops =
        nw_transformer_flops(&job->net, tokens, (double)job->sequence, true);
    const double passes = job->lora.rank > 0 ? 2 : 3;
    const double all =
        passes * ((double)job->net.layers * flops.layer_forward + flops.head_forward);

    return peak > 0 ? all / (anchor->step_ns * 1e-9 * peak * anchor->rank_count) : NAN;
}

static nw_rc check_physics(const struct nw_gpu *gpu, double peak, const struct nw_anchor *anchor,
                           const struct nw_job *job)
{
    char step[32], tflops[32], times[32];

    if (!(anchor->of_peak > 1))
        return NW_OK;
    return nw_fail(
        NW_EUSAGE,
        "a step of %s on %d GPUs would be %s times the peak of %s (%s TFLOP/s in %s); check "
        "--measured-…, --on, the batch of %llu sequences, --seq, --precision and --gpu",
        nw_format_ns(step, anchor->step_ns), anchor->rank_count,
        nw_format_sig(times, anchor->of_peak, 3), gpu->name, nw_format_sig(tflops, peak / 1e12, 3),
        job->precision->name, (unsigned long long)anchor->global_batch);
}

/* As asked for; what the log states where the user leaves it open. */
static void set_batch(const struct nw_model_request *request, const struct nw_layout *layout,
                      const struct nw_training_log *log, struct nw_job *job)
{
    if (request->grad_accum > 0)
        job->global_batch = nw_grad_accum_batch(request->grad_accum, job, layout);
    else if (request->global_batch == 0 && log->stated[NW_LOG_GLOBAL_BATCH] > 0)
        job->global_batch = log->stated[NW_LOG_GLOBAL_BATCH];
}

/* A log that says otherwise than the options: the factor would be that of another job. */
static nw_rc check_log(const struct nw_training_log *log, const struct nw_job *job,
                       const struct nw_layout *layout)
{
    const struct {
        nw_log_stated stated;
        const char *option;
        uint64_t value;
    } rows[] = {
        {NW_LOG_SEQUENCE, "--seq", job->sequence},
        {NW_LOG_MICRO_BATCH, "--micro-batch", job->micro_batch},
        {NW_LOG_GLOBAL_BATCH, "a global batch of", job->global_batch},
        {NW_LOG_TP, "--tp", (uint64_t)nw_layout_tp(layout)},
        {NW_LOG_PP, "--pp", (uint64_t)nw_layout_pp(layout)},
        {NW_LOG_CP, "--cp", (uint64_t)nw_layout_cp(layout)},
        {NW_LOG_RANKS, "--on", (uint64_t)layout->rank_count},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint64_t stated = log->stated[rows[i].stated];

        if (stated > 0 && stated != rows[i].value)
            return nw_fail(NW_EUSAGE,
                           "--measured-log is of a run with %s %llu, here it is %llu; "
                           "accepted: the job that was measured",
                           rows[i].option, (unsigned long long)stated,
                           (unsigned long long)rows[i].value);
    }
    return NW_OK;
}

static nw_rc calibrate(struct nw_model *model, const struct nw_job *job,
                       const struct nw_layout *layout, struct nw_anchor *anchor)
{
    struct fit fit = {.job = job,
                      .platform = nw_model_platform(model),
                      .layout = *layout,
                      .scenario = &model->scenario};
    const double before = model->platform.step_time_factor;
    const struct nw_gpu *gpu = model->platform.gpu;
    const double peak = gpu != NULL ? nw_gpu_peak(gpu, job->precision) : 0;
    char measured[32], predicted[32], times[32];
    struct nw_step step;

    NW_TRY(nw_layout_check(layout, job));
    anchor->of_peak = of_peak(peak, job, anchor);
    NW_TRY(check_physics(gpu, peak, anchor, job));
    NW_TRY(step_at(&fit, before, &step));
    anchor->predicted_ns = step.step_ns;
    NW_TRY(solve(&fit, anchor->step_ns, &anchor->factor, &anchor->rest));
    if (anchor->rest > 1.01)
        return nw_fail(NW_EUSAGE,
                       "a step of %s on %d GPUs is %s times as long as the %s that the model says; "
                       "check --measured-…, --on, the batch of %llu sequences, --seq and --gpu",
                       nw_format_ns(measured, anchor->step_ns), anchor->rank_count,
                       nw_format_sig(times, anchor->step_ns / anchor->predicted_ns, 3),
                       nw_format_ns(predicted, anchor->predicted_ns),
                       (unsigned long long)anchor->global_batch);
    return NW_OK;
}

/* Of the computation on other GPU counts, held out; with the spread of the steps measured and what
 * the factor could not explain. */
static double error_of(const struct nw_model *model, const struct nw_anchor *anchor)
{
    const struct nw_platform *platform = &model->platform;
    const double held_out = platform->assumptions.value[platform->anchor_error];
    const double spread =
        isfinite(anchor->low_ns) ? (anchor->high_ns - anchor->low_ns) / 2 / anchor->step_ns : 0;

    return fmin(hypot(hypot(held_out, spread), fabs(anchor->rest - 1)), ERROR_MAX);
}

nw_rc nw_anchor_take(const struct nw_model_request *request, struct nw_model *model)
{
    struct nw_training_log log = {.writer = NULL};
    struct nw_anchor anchor = {.given = true, .rest = 1, .low_ns = NAN, .high_ns = NAN};
    struct nw_job job;

    NW_TRY(check_ways(request));
    if (request->time_factor > 0) {
        model->platform.step_time_factor = request->time_factor;
        model->platform.anchored = true;
        model->platform.anchor_error = NW_CONSTANT_ANCHOR_ERROR;
        model->platform.rate.rel_error = error_of(model, &anchor);
    }
    if (request->measured_log != NULL)
        NW_TRY(nw_training_log_read(request->measured_log, &log));
    else if (!(request->measured_step_ns > 0 || request->measured_tokens_per_s > 0))
        return NW_OK;
    NW_TRY(find_place(request, &log, model, &anchor));
    struct nw_layout layout = nw_model_layout(model, anchor.node_count, model->strategies[0]);

    layout.rank_count = layout.base_rank_count = anchor.rank_count;
    job = nw_model_job(model, &layout);
    set_batch(request, &layout, &log, &job);
    NW_TRY(check_log(&log, &job, &layout));
    anchor.global_batch = job.global_batch;
    const struct measured measured = {.anchor = &anchor,
                                      .tokens = (double)job.global_batch * (double)job.sequence,
                                      .sequences = (double)job.global_batch};

    if (request->measured_log != NULL) {
        take_log(&measured, request->measured_log, &log);
    } else if (request->measured_step_ns > 0) {
        anchor.step_ns = request->measured_step_ns;
        snprintf(anchor.source, sizeof anchor.source, "--measured-step");
    } else {
        anchor.step_ns = step_of(&measured, NW_LOG_TOKENS_PER_S, request->measured_tokens_per_s);
        snprintf(anchor.source, sizeof anchor.source, "--measured-tokens-per-s");
    }
    NW_TRY(calibrate(model, &job, &layout, &anchor));
    if (model->strategies[1] != NULL && anchor.rank_count > 1)
        nw_default_note(&model->defaults, "measured with", "the first strategy named", "%s",
                        model->strategies[0]->name);
    model->anchor = anchor;
    model->platform.step_time_factor = anchor.factor;
    model->platform.anchored = true;
    model->platform.anchor_error = NW_CONSTANT_RATE_ERROR_STATED;
    model->platform.rate.rel_error = error_of(model, &anchor);
    return NW_OK;
}
