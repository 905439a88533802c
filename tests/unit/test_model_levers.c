#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "model/breakdown.h"
#include "model/levers.h"

static struct nw_model open_job(const char *strategy, const char *framework, int tp, int pp)
{
    struct nw_model_request request = request_for("llama-3-8b");
    struct nw_model model;

    request.gpu = "h100-sxm";
    request.nodes = "1,2";
    request.nic_gbit_per_s = 400;
    request.strategy = strategy;
    request.framework = framework;
    request.tp = tp;
    request.pp = pp;
    request.micro_batch = 1;
    request.recompute = "full";
    cr_assert(eq(int, nw_model_open(&request, NULL, &model), NW_OK), "%s", nw_last_error()->text);
    return model;
}

static const struct {
    const char *strategy, *framework;
    int tp, pp;
} jobs[] = {{"ddp", NULL, 1, 1},      {"zero1", NULL, 1, 1},   {"zero3", NULL, 1, 1},
            {"fsdp", NULL, 2, 1},     {"distopt", NULL, 4, 2}, {"distopt", "megatron", 1, 4},
            {"fsdp-keep", NULL, 1, 1}};

Test(breakdown, its_parts_sum_to_the_step)
{
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        struct nw_model model =
            open_job(jobs[i].strategy, jobs[i].framework, jobs[i].tp, jobs[i].pp);
        struct nw_steps steps;

        cr_assert(eq(int, nw_predict_all(&model, &steps), NW_OK), "%s", nw_last_error()->text);
        for (size_t s = 0; s < steps.count; s++) {
            struct nw_breakdown breakdown;
            double sum = 0;

            nw_breakdown_of(&steps.items[s], &breakdown);
            for (size_t p = 0; p < breakdown.count; p++) {
                cr_expect(gt(dbl, breakdown.items[p].ns, 0));
                cr_expect(ne(str, (char *)breakdown.items[p].key, "other"), "%s: %g of the step",
                          jobs[i].strategy, breakdown.items[p].ns / steps.items[s].step_ns);
                sum += breakdown.items[p].ns;
            }
            cr_expect(epsilon_eq(dbl, sum / steps.items[s].step_ns, 1, 1e-5), "%s tp %d pp %d",
                      jobs[i].strategy, jobs[i].tp, jobs[i].pp);
        }
        nw_steps_free(&steps);
        nw_model_close(&model);
    }
}

Test(levers, each_is_faster_fits_and_the_largest_comes_first)
{
    size_t found = 0;

    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        struct nw_model model =
            open_job(jobs[i].strategy, jobs[i].framework, jobs[i].tp, jobs[i].pp);
        const struct nw_platform platform = nw_model_platform(&model);
        struct nw_steps steps;
        struct nw_levers levers;

        cr_assert(eq(int, nw_predict_all(&model, &steps), NW_OK));
        for (size_t s = 0; s < steps.count; s++) {
            const struct nw_step *step = &steps.items[s];
            const struct nw_job job = nw_model_job(&model, &step->layout);

            nw_levers_of(&job, &platform, &step->layout, &model.scenario, step, &levers);
            for (size_t l = 0; l < levers.count; l++) {
                const struct nw_lever *lever = &levers.items[l];

                cr_expect(lt(dbl, lever->step_ns, step->step_ns), "%s", lever->what);
                cr_expect(le(dbl, lever->memory_bytes, (double)platform.memory_bytes), "%s",
                          lever->what);
                cr_expect(gt(sz, strlen(lever->what), 0));
                if (l > 0)
                    cr_expect(ge(dbl, lever->change, lever[-1].change));
            }
            found += levers.count;
        }
        nw_steps_free(&steps);
        nw_model_close(&model);
    }
    cr_expect(gt(sz, found, 10));
}

/* What a lever promises is what the model says when the user makes the change. */
Test(levers, a_change_made_by_hand_gives_the_step_that_was_promised)
{
    struct nw_model model = open_job("distopt", NULL, 2, 1);
    const struct nw_platform platform = nw_model_platform(&model);
    struct nw_steps steps;
    struct nw_levers levers;
    bool checked = false;

    cr_assert(eq(int, nw_predict_all(&model, &steps), NW_OK));
    const struct nw_step *before = &steps.items[0];
    struct nw_job job = nw_model_job(&model, &before->layout);
    struct nw_step after;

    nw_levers_of(&job, &platform, &before->layout, &model.scenario, before, &levers);
    job.recompute = NW_RECOMPUTE_NONE;
    cr_assert(
        eq(int, nw_predict(&job, &platform, &before->layout, &model.scenario, &after), NW_OK));
    for (size_t i = 0; i < levers.count; i++) {
        if (strcmp(levers.items[i].key, "recompute") != 0)
            continue;
        checked = true;
        cr_expect(eq(int, after.fits, 1));
        cr_expect(epsilon_eq(dbl, levers.items[i].step_ns / after.step_ns, 1, 1e-9));
    }
    cr_expect(checked);
    nw_steps_free(&steps);
    nw_model_close(&model);
}

/* A setting is named as the framework in use names it; what it has no switch for is not advised,
 * nor what it does already. */
Test(levers, settings_are_those_of_the_framework)
{
    static const struct {
        const char *framework, *strategy, *key, *how; /* how NULL: no such lever */
    } cases[] = {
        {"torchtitan", "fsdp", "fused_kernels", "--compile.enable"},
        {"pytorch", "fsdp", "fused_kernels", "torch.compile"},
        {"megatron-lm", "ddp", "fused_kernels", "--transformer-impl transformer_engine"},
        {"torchtitan-compile", "fsdp", "fused_kernels", NULL},
        {"pytorch-compile", "fsdp", "fused_kernels", NULL},
        {"megatron", "distopt", "fused_kernels", NULL},
        {"jax", "fsdp", "fused_kernels", NULL},
        {"torchtitan", "fsdp", "keep_weights", "fsdp_reshard_after_forward never"},
        {"pytorch", "fsdp", "keep_weights", "SHARD_GRAD_OP; reshard_after_forward=False"},
        {"deepspeed", "zero1", "overlap_gradients", "overlap_comm"},
        {"deepspeed", "zero1", "overlap_weights", NULL}, /* it has no such switch */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_model model = open_job(cases[i].strategy, cases[i].framework, 1, 1);
        struct nw_platform platform = nw_model_platform(&model);
        const struct nw_layout layout = nw_model_layout(&model, 2, model.strategies[0]);
        const struct nw_job job = nw_model_job(&model, &layout);
        const char *how = NULL;
        struct nw_levers levers;
        struct nw_step step;

        platform.memory_bytes = 0; /* whether it fits is not the question */
        cr_assert(eq(int, nw_predict(&job, &platform, &layout, &model.scenario, &step), NW_OK));
        nw_levers_of(&job, &platform, &layout, &model.scenario, &step, &levers);
        for (size_t l = 0; l < levers.count; l++)
            if (strcmp(levers.items[l].key, cases[i].key) == 0)
                how = levers.items[l].how;
        if (cases[i].how == NULL)
            cr_expect(how == NULL, "%s: %s (%s)", cases[i].framework, cases[i].key, how);
        else
            cr_expect(how != NULL && strcmp(how, cases[i].how) == 0, "%s: %s (%s)",
                      cases[i].framework, cases[i].key, how != NULL ? how : "none");
        nw_model_close(&model);
    }
}
