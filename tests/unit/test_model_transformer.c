#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "model/job.h"

static struct nw_transformer named(const char *name)
{
    struct nw_transformer net;

    cr_assert(eq(int, nw_transformer_find(name, &net), NW_OK), "%s", nw_last_error()->text);
    return net;
}

static bool close_to(double value, double expected, double relative)
{
    return fabs(value - expected) <= relative * fabs(expected);
}

static bool says(const char *text)
{
    return strstr(nw_last_error()->text, text) != NULL;
}

/* 6 FLOPs per parameter and token (Kaplan et al. 2020), for the weights that are multiplied with;
 * norms and biases, which are vectors, are less than a hundredth. */
Test(transformer, flops_are_six_per_matrix_weight_and_token_without_attention)
{
    const struct nw_preset *preset;

    for (size_t i = 0; (preset = nw_preset_at(i)) != NULL; i++) {
        const struct nw_transformer *net = &preset->net;

        if (net->stated_parameters > 0)
            continue;
        const struct nw_flops flops = nw_transformer_flops(net, 1, 0, true);
        const double all = (double)net->layers * (flops.layer_forward + flops.layer_backward) +
                           flops.head_forward + flops.head_backward;
        struct nw_tensors embedding;
        double matrices = (double)nw_transformer_active_count(net);

        nw_transformer_embedding(net, &embedding);
        matrices -= (double)embedding.total; /* looked up, but where it is the output layer too */
        if (net->tied)
            matrices += (double)embedding.elements[0];
        cr_expect(close_to(all, 6 * matrices, 0.01), "%s: %g", net->name, all / (6 * matrices));
    }
}

Test(transformer, flops_of_a_plain_shape_to_the_last_one)
{
    const struct nw_transformer net = named("llama-2-70b");
    const struct nw_flops flops = nw_transformer_flops(&net, 1, 0, true);

    cr_expect(eq(dbl, flops.layer_forward,
                 2.0 * (8192.0 * 8192 * 2 + 8192.0 * 1024 * 2 + 3 * 8192.0 * 28672)));
    cr_expect(eq(dbl, flops.head_forward, 2.0 * 8192 * 32000));
}

Test(transformer, attention_flops_know_causal_flash_and_encoder)
{
    const struct nw_transformer gpt = named("gpt2-124m"), bert = named("bert-large");
    const double without = nw_transformer_flops(&gpt, 100, 0, true).layer_forward;
    const double flash = nw_transformer_flops(&gpt, 100, 1024, true).layer_forward - without;
    const double full = nw_transformer_flops(&gpt, 100, 1024, false).layer_forward - without;
    const double back = nw_transformer_flops(&gpt, 100, 0, true).layer_backward;

    cr_expect(close_to(full, 4.0 * 100 * 1024 * 768, 1e-12));
    cr_expect(close_to(full / flash, 2, 1e-12));
    cr_expect(close_to(back / without, 2, 1e-12));
    cr_expect(close_to((nw_transformer_flops(&gpt, 100, 1024, true).layer_backward - back) / flash,
                       2.5, 1e-9));
    cr_expect(close_to((nw_transformer_flops(&gpt, 100, 1024, false).layer_backward - back) / full,
                       2, 1e-9));
    cr_expect(eq(dbl, nw_transformer_flops(&bert, 64, 512, true).layer_forward,
                 nw_transformer_flops(&bert, 64, 512, false).layer_forward));
}

/* Scores of 128 heads of 128 + 64, values of 128 (DeepSeek-V3's technical report, table of
 * hyper-parameters). */
Test(transformer, latent_attention_has_wide_keys_and_narrow_values)
{
    const struct nw_transformer net = named("deepseek-v3");
    const double scores = nw_transformer_flops(&net, 1, 4096, false).layer_forward -
                          nw_transformer_flops(&net, 1, 0, false).layer_forward;

    cr_expect(close_to(scores, 2.0 * 4096 * 128 * (128 + 64 + 128), 1e-9));
}

Test(transformer, a_stated_net_costs_what_was_stated)
{
    const struct nw_transformer net = named("resnet-50");
    const struct nw_flops flops = nw_transformer_flops(&net, 256, 1, true);
    const double forward = (double)net.layers * flops.layer_forward + flops.head_forward;
    struct nw_tensors embedding, layer, head;

    cr_expect(close_to(forward, 256 * 2 * 4.09e9, 0.001)); /* 4.09 GMAC */
    cr_expect(close_to(flops.layer_backward, 2 * flops.layer_forward, 1e-12));
    nw_transformer_embedding(&net, &embedding);
    nw_transformer_layer(&net, &layer);
    nw_transformer_head(&net, &head);
    cr_expect(eq(u64, embedding.total + net.layers * layer.total + head.total, 25557032));
    cr_expect(eq(u64, nw_transformer_active_count(&net), 25557032));
}

/* Parts, tensors, kinds and ends all give the same sum. */
Test(transformer, parts_and_tensors_add_up)
{
    const struct nw_preset *preset;

    for (size_t i = 0; (preset = nw_preset_at(i)) != NULL; i++) {
        const struct nw_transformer *net = &preset->net;
        struct nw_tensors embedding, head;
        uint64_t sum;

        nw_transformer_embedding(net, &embedding);
        nw_transformer_head(net, &head);
        sum = embedding.total + head.total;
        for (int kind = 0; kind < NW_LAYER_KINDS; kind++) {
            const uint64_t layers = nw_transformer_layer_count(net, kind);
            const struct nw_layer_parts parts = nw_transformer_layer_parts(net, kind);
            struct nw_tensors layer;
            uint64_t tensors = 0;

            if (layers == 0)
                continue;
            nw_transformer_layer_kind(net, kind, &layer);
            for (size_t t = 0; t < layer.count; t++)
                tensors += layer.elements[t];
            cr_expect(eq(u64, tensors, layer.total), "%s", net->name);
            cr_expect(eq(u64, parts.total, layer.total), "%s", net->name);
            cr_expect(eq(u64,
                         parts.attention + parts.mlp + parts.router + parts.experts + parts.norms,
                         layer.total),
                      "%s", net->name);
            cr_expect(lt(sz, layer.count, NW_TENSORS_MAX), "%s", net->name);
            sum += layers * layer.total;
        }
        cr_expect(eq(u64, sum, preset->published_parameters), "%s", net->name);
    }
}

Test(transformer, the_usual_layer_is_the_most_frequent_kind)
{
    const struct nw_transformer net = named("deepseek-v3");
    struct nw_tensors usual, experts, plain;

    nw_transformer_layer(&net, &usual);
    nw_transformer_layer_kind(&net, NW_LAYER_EXPERTS, &experts);
    nw_transformer_layer_kind(&net, NW_LAYER_PLAIN, &plain);
    cr_expect(eq(u64, nw_transformer_layer_count(&net, NW_LAYER_PLAIN), 3));
    cr_expect(eq(u64, nw_transformer_layer_count(&net, NW_LAYER_EXPERTS), 58));
    cr_expect(eq(u64, usual.total, experts.total));
    cr_expect(lt(u64, plain.total, experts.total));
}

/* What peft prints as "trainable params" (its README and issues; QLoRA's repository for all linear
 * layers of Llama-2-7B). */
Test(transformer, adapters_have_the_counts_that_peft_prints)
{
    const unsigned attention = NW_LORA_Q | NW_LORA_K | NW_LORA_V | NW_LORA_O;
    const unsigned all = attention | NW_LORA_GATE | NW_LORA_UP | NW_LORA_DOWN;
    const struct {
        const char *model;
        uint64_t rank;
        unsigned targets;
        double trainable;
    } cases[] = {
        {"llama-2-7b", 8, NW_LORA_Q | NW_LORA_V, 4194304},
        {"llama-2-7b", 64, all, 159907840},
        {"llama-2-13b", 64, all, 250347520},
        {"llama-3-8b", 16, all, 41943040},
        {"mistral-7b", 16, all, 41943040},
        {"llama-3-8b", 8, NW_LORA_Q | NW_LORA_V, 3407872},
        /* by hand: 32 layers × 8 experts × 3 matrices × 2 × (4096 + 14336) */
        {"mixtral-8x7b", 2, NW_LORA_GATE | NW_LORA_UP | NW_LORA_DOWN,
         32.0 * 8 * 3 * 2 * (4096 + 14336)},
        /* no gate: its adapters are none */
        {"gpt2-124m", 4, NW_LORA_GATE, 0},
        {"gpt2-124m", 4, NW_LORA_UP | NW_LORA_DOWN, 12.0 * 2 * 4 * (768 + 3072)},
        {"resnet-50", 4, NW_LORA_Q, 0},
        /* V2-Lite: one matrix for the query, 27 layers */
        {"deepseek-v2-lite", 1, NW_LORA_Q, 27.0 * (2048 + 16 * 192)},
        {"deepseek-v2", 1, NW_LORA_Q, 60.0 * (5120 + 1536 + 1536 + 128 * 192)},
        {"deepseek-v2", 1, NW_LORA_K | NW_LORA_V, 60.0 * (5120 + 576 + 512 + 128 * (128 + 128))},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct nw_job job = {
            .net = named(cases[i].model),
            .lora = {.rank = cases[i].rank, .targets = cases[i].targets},
        };

        cr_expect(eq(dbl, nw_job_trained_parameters(&job), cases[i].trainable), "%zu: %s", i,
                  cases[i].model);
    }
    const struct nw_job whole = {.net = named("llama-3-8b")};

    cr_expect(eq(dbl, nw_job_trained_parameters(&whole), 8030261248.0));
}

Test(transformer_override, replaces_fields_of_a_preset)
{
    struct nw_transformer net = named("llama-2-7b");

    cr_assert(
        eq(int,
           nw_transformer_override(
               &net, &(struct nw_transformer_fields){.vocab = 128256, .kv_heads = 8, .ffn = 14336}),
           NW_OK));
    cr_expect(eq(u64, nw_transformer_parameter_count(&net), 8030261248)); /* Llama-3-8B */

    net = named("llama-3-8b");
    cr_assert(eq(int,
                 nw_transformer_override(&net,
                                         &(struct nw_transformer_fields){
                                             .vocab = 32000, .experts = 8, .experts_per_token = 2}),
                 NW_OK));
    cr_expect(eq(u64, nw_transformer_parameter_count(&net), 46702792704)); /* Mixtral-8x7B */

    /* heads and hidden take the head size with them */
    net = named("llama-2-7b");
    cr_assert(
        eq(int,
           nw_transformer_override(&net,
                                   &(struct nw_transformer_fields){
                                       .layers = 40, .hidden = 5120, .heads = 40, .ffn = 13824}),
           NW_OK));
    cr_expect(eq(u64, nw_transformer_parameter_count(&net), 13015864320));

    net = named("gpt2-124m");
    cr_assert(eq(int,
                 nw_transformer_override(
                     &net, &(struct nw_transformer_fields){.tied = NW_NO, .encoder = NW_YES}),
                 NW_OK));
    cr_expect(eq(u64, nw_transformer_parameter_count(&net), 124439808 + 50257 * 768));
    cr_expect(net.encoder);

    net = named("resnet-50");
    cr_assert(
        eq(int,
           nw_transformer_override(&net, &(struct nw_transformer_fields){.flops_per_sample = 1e9}),
           NW_OK));
    cr_expect(eq(dbl, net.flops_per_sample, 1e9));
}

Test(transformer_override, makes_a_net_of_numbers_alone)
{
    struct nw_transformer net = {0};

    cr_assert(eq(int,
                 nw_transformer_override(&net, &(struct nw_transformer_fields){.layers = 32,
                                                                               .hidden = 4096,
                                                                               .heads = 32,
                                                                               .kv_heads = 8,
                                                                               .ffn = 14336,
                                                                               .vocab = 128256,
                                                                               .gated = NW_YES}),
                 NW_OK));
    cr_expect(eq(u64, nw_transformer_parameter_count(&net), 8030261248));
    cr_expect(eq(str, net.name, "custom"));

    memset(&net, 0, sizeof net);
    cr_assert(
        eq(int,
           nw_transformer_override(&net,
                                   &(struct nw_transformer_fields){
                                       .layers = 12, .hidden = 768, .heads = 12, .vocab = 50257}),
           NW_OK));
    cr_expect(eq(u64, nw_transformer_parameter_count(&net), 124439808 - 1024 * 768));

    memset(&net, 0, sizeof net);
    cr_assert(eq(
        int,
        nw_transformer_override(&net, &(struct nw_transformer_fields){.parameters = 7e9 + 1,
                                                                      .flops_per_sample = 1e12,
                                                                      .activations_per_sample = 5}),
        NW_OK));
    cr_expect(eq(u64, nw_transformer_parameter_count(&net), 7000000001));
    cr_expect(eq(dbl, net.activations_per_sample, 5));
}

Test(transformer_override, what_is_given_is_known)
{
    const struct nw_transformer_fields none = {0},
                                       some[] = {
                                           {.layers = 1},     {.expert_ffn = 1},
                                           {.gated = NW_NO},  {.encoder = NW_YES},
                                           {.parameters = 1}, {.activations_per_sample = NAN},
                                       };

    cr_expect(not(nw_transformer_fields_given(&none)));
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        cr_expect(nw_transformer_fields_given(&some[i]), "%zu", i);
}

Test(transformer_override, bad_numbers_are_refused_by_their_option)
{
    static const struct {
        const char *model; /* NULL: none */
        struct nw_transformer_fields fields;
        const char *says;
    } cases[] = {
        {NULL, {.layers = 12}, "needs --hidden"},
        {NULL, {.layers = 12, .hidden = 768, .heads = 12}, "needs --vocab"},
        {NULL, {.layers = 12, .hidden = 768, .heads = 11, .vocab = 9}, "do not divide"},
        {NULL,
         {.layers = 12, .hidden = 768, .heads = 12, .kv_heads = 5, .vocab = 9},
         "1, 2, 3, 4, 6, 12"},
        {NULL, {.layers = 12, .parameters = 1e9}, "--flops-per-sample"},
        {NULL, {.flops_per_sample = 1e9}, "--parameters"},
        {NULL, {.flops_per_sample = NAN, .parameters = 1e9}, "--flops-per-sample"},
        {NULL, {.flops_per_sample = 1e9, .parameters = 1e15}, "--parameters is 1e+15"},
        {NULL, {.flops_per_sample = 1e9, .parameters = NAN}, "--parameters"},
        {NULL, {.flops_per_sample = 1e9, .parameters = 1e9, .hidden = 4}, "--hidden says"},
        {NULL, {.activations_per_sample = 1e9}, "--activations-per-sample needs --parameters"},
        {"llama-2-7b", {.parameters = 1e9}, "--parameters with the transformer"},
        {"llama-2-7b", {.activations_per_sample = 1e9}, "--activations-per-sample with the"},
        {"llama-2-7b", {.layers = 1u << 20}, "--layers is 1048576; accepted: 1 to 4096"},
        {"llama-2-7b", {.kv_heads = 5}, "5 key-value heads"},
        {"llama-2-7b", {.hidden = 4097}, "do not divide"},
        {"llama-2-7b", {.experts = 8}, "--experts-per-token"},
        {"llama-2-7b", {.expert_ffn = 8}, "--expert-ffn needs --experts"},
        {"llama-2-7b", {.experts_per_token = 8}, "--experts-per-token needs --experts"},
        {"mixtral-8x7b", {.experts_per_token = 9}, "cannot use 9 of 8 experts"},
        {"deepseek-v3", {.layers = 3}, "leave none with them"},
        {"resnet-50", {.hidden = 4}, "\"resnet-50\" is none"},
        {"resnet-50", {.tied = NW_NO}, "--tied says"},
        {"llama-2-7b",
         {.layers = 4096, .hidden = 1u << 20, .head_size = 16, .ffn = 1u << 22},
         "parameters; accepted: up to 1e14"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_transformer net = {0}, before;

        if (cases[i].model != NULL)
            net = named(cases[i].model);
        before = net;
        cr_expect(eq(int, nw_transformer_override(&net, &cases[i].fields), NW_EUSAGE), "%zu", i);
        cr_expect(says(cases[i].says), "%zu: %s", i, nw_last_error()->text);
        cr_expect(eq(int, memcmp(&net, &before, sizeof net), 0), "%zu", i);
    }
}

/* The largest values of every field together: counts still do not wrap around. */
Test(transformer, absurd_shapes_are_refused)
{
    struct nw_transformer net = named("mixtral-8x7b");

    net.layers = 4096;
    net.hidden = 1u << 20;
    net.experts = 1u << 14;
    net.expert_ffn = 1u << 22;
    net.vocab = 1u << 24;
    cr_expect(eq(int, nw_transformer_check(&net, "x"), NW_EUSAGE));
    cr_expect(says("parameters; accepted: up to 1e14"), "%s", nw_last_error()->text);

    net = named("deepseek-v3");
    net.value_head_size = 0;
    cr_expect(eq(int, nw_transformer_check(&net, "x"), NW_EUSAGE));
    net = named("llama-3-8b");
    net.vocab = 0;
    cr_expect(eq(int, nw_transformer_check(&net, "x"), NW_EUSAGE));
    cr_expect(says("vocab is 0; accepted: 1 to"), "%s", nw_last_error()->text);
}
