/* What a way for the bytes does to the step: the same step twice, over the curves of either lane.
 */
#include "model/model.h"

#include <math.h>

static const struct {
    const char *fast, *slow, *title;
} pairs[NW_LANE_EFFECTS_MAX] = {{"nvlink", "pcie", "NVLink"}, {"rdma", "tcp", "RDMA"}};

struct both {
    const struct nw_model *model;
    struct nw_layout layout;
    struct nw_platform fast, slow;
};

/* Share of the slow lane's step that the fast one saves. The two ends of an error that both have in
 * common (the compute rate) move both; those of their curves are independent. */
static nw_rc saved_at(const struct both *both, const struct nw_scenario *fast,
                      const struct nw_scenario *slow, double *saved_out)
{
    const struct nw_job job = nw_model_job(both->model, &both->layout);
    struct nw_step over_fast, over_slow;

    NW_TRY(nw_predict_scenario(&job, &both->fast, &both->layout, fast, &over_fast));
    NW_TRY(nw_predict_scenario(&job, &both->slow, &both->layout, slow, &over_slow));
    *saved_out = 1 - over_fast.step_ns / over_slow.step_ns;
    return NW_OK;
}

static nw_rc find_interval(const struct both *both, struct nw_lane_effect *effect)
{
    const struct nw_scenario *middle = &both->model->scenario;
    double below = 0, above = 0;

    for (enum nw_error_source source = 0; source < NW_ERROR_COUNT; source++) {
        struct nw_scenario ends[2];
        double saved[2];

        nw_scenario_ends(&both->fast, middle, source, ends);
        for (int i = 0; i < 2; i++) {
            if (source == NW_ERROR_CURVE) {
                NW_TRY(saved_at(both, &ends[i], &ends[1 - i], &saved[i]));
            } else {
                NW_TRY(saved_at(both, &ends[i], &ends[i], &saved[i]));
            }
        }
        below = hypot(below, fmin(fmin(saved[0], saved[1]) - effect->saved, 0));
        above = hypot(above, fmax(fmax(saved[0], saved[1]) - effect->saved, 0));
    }
    effect->saved_low = effect->saved - below;
    effect->saved_high = fmin(effect->saved + above, 1);
    return NW_OK;
}

/* From a datasheet or a given rate both lanes would be alike. */
static bool is_of_curves(const struct nw_step *step)
{
    return (step->how & (NW_COST_DATASHEET | NW_COST_GIVEN)) == 0;
}

static nw_rc predict_both(const struct both *both, struct nw_lane_effect *effect)
{
    const struct nw_model *model = both->model;
    const struct nw_job job = nw_model_job(model, &both->layout);

    NW_TRY(nw_predict(&job, &both->fast, &both->layout, &model->scenario, &effect->over_fast));
    NW_TRY(nw_predict(&job, &both->slow, &both->layout, &model->scenario, &effect->over_slow));
    if (!is_of_curves(&effect->over_fast) || !is_of_curves(&effect->over_slow))
        return nw_fail(NW_ENODEV, "the step over %s or %s is not from measured curves",
                       effect->fast, effect->slow);
    effect->saved = 1 - effect->over_fast.step_ns / effect->over_slow.step_ns;
    return find_interval(both, effect);
}

nw_rc nw_predict_lanes(const struct nw_model *model, const struct nw_step *like,
                       struct nw_lane_effects *effects_out)
{
    struct nw_lane_effects effects = {.count = 0};
    struct both both = {.model = model,
                        .layout = nw_model_layout(model, like->node_count, like->strategy),
                        .fast = nw_model_platform(model),
                        .slow = nw_model_platform(model)};

    for (size_t i = 0; i < NW_LANE_EFFECTS_MAX && like->rank_count > 1; i++) {
        struct nw_lane_effect *effect = &effects.items[effects.count];

        if (!nw_curves_have_lane(&model->curves, pairs[i].fast) ||
            !nw_curves_have_lane(&model->curves, pairs[i].slow))
            continue;
        *effect = (struct nw_lane_effect){
            .fast = pairs[i].fast, .slow = pairs[i].slow, .title = pairs[i].title};
        both.fast.fabric.lane = effect->fast;
        both.slow.fabric.lane = effect->slow;
        const nw_rc rc = predict_both(&both, effect);

        if (rc == NW_ENODEV) { /* not measured for these ranks */
            nw_clear_error();
            continue;
        }
        NW_TRY(rc);
        effects.count++;
    }
    *effects_out = effects;
    return NW_OK;
}
