#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/* The lists of names that options accept are those of the rows. */
Test(profile, every_framework_and_strategy_is_named_once_and_says_its_source)
{
    for (size_t i = 0; i < nw_profile_count; i++) {
        const struct nw_profile *profile = &nw_profiles[i];

        cr_assert(ne(ptr, (void *)nw_profile_names[i], NULL));
        cr_expect(eq(str, (char *)nw_profile_names[i], (char *)profile->name));
        cr_expect(gt(sz, strlen(profile->source), 20), "%s", profile->name);
        cr_expect(gt(dbl, profile->time_factor, 0), "%s", profile->name);
        cr_expect(gt(dbl, profile->memory_passes, 0), "%s", profile->name);
        for (size_t k = 0; k < i; k++)
            cr_expect(ne(str, (char *)nw_profiles[k].name, (char *)profile->name));
    }
    cr_expect(eq(ptr, (void *)nw_profile_names[nw_profile_count], NULL));
    for (size_t i = 0; i < nw_strategy_count; i++)
        cr_expect(eq(str, (char *)nw_strategy_names[i], (char *)nw_strategies[i].name));
    cr_expect(eq(ptr, (void *)nw_strategy_names[nw_strategy_count], NULL));
}

static struct nw_step predict(const char *strategy, const char *framework, uint64_t micro_batches)
{
    struct nw_platform platform = platform_on(NULL, 300, 8);
    const struct nw_job job = preset_job("llama-2-7b", 4096, 1, 16 * micro_batches);
    const struct nw_layout layout = {.node_count = 2,
                                     .rank_count = 16,
                                     .base_rank_count = 16,
                                     .profile = nw_profile_named(framework),
                                     .strategy = nw_strategy_named(strategy)};
    struct nw_step step;

    cr_assert(ne(ptr, (void *)layout.profile, NULL), "%s", framework);
    platform.fabric.intra_busbw_bytes_per_s = 200e9;
    platform.fabric.inter_busbw_bytes_per_s = 40e9;
    cr_assert(eq(int, nw_predict(&job, &platform, &layout, NULL, &step), NW_OK), "%s",
              nw_last_error()->text);
    return step;
}

/* After the computation nothing hides; beside it most does; few SMs cost less than many. */
Test(profile, what_hides_is_the_frameworks)
{
    const struct nw_step serial = predict("distopt", "megatron-lm", 8);
    const struct nw_step fused = predict("distopt", "megatron", 8);
    const struct nw_step stream = predict("ddp", "pytorch", 8);

    cr_expect(eq(dbl, serial.hidden_ns, 0));
    cr_expect(gt(dbl, fused.hidden_ns, fused.exposed_ns));
    cr_expect(gt(dbl, stream.overlap_loss_ns / stream.hidden_ns,
                 3 * fused.overlap_loss_ns / fused.hidden_ns));
}

/* Accumulation: what each framework sends for four micro-batches over one, in Ψ of 2 bytes. */
Test(profile, what_is_sent_again_is_the_frameworks)
{
    static const struct {
        const char *strategy, *framework;
        double again;
    } cases[] = {{"ddp", "pytorch", 0},     {"zero1", "deepspeed", 0}, {"zero2", "deepspeed", 1},
                 {"zero3", "deepspeed", 3}, {"fsdp", "pytorch", 3},    {"fsdp", "hf", 2}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double once = predict(cases[i].strategy, cases[i].framework, 1).traffic.bytes_sent;
        const double four = predict(cases[i].strategy, cases[i].framework, 4).traffic.bytes_sent;
        const double again = (four - once) / 3 / (2 * 6738415616.0 * 15 / 16);

        cr_expect(lt(dbl, fabs(again - cases[i].again), 1e-6), "%s in %s: %g", cases[i].strategy,
                  cases[i].framework, again);
    }
}
