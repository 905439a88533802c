#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "model/transformer.h"

static struct nw_transformer named(const char *name)
{
    struct nw_transformer net;

    cr_assert(eq(int, nw_transformer_find(name, &net), NW_OK), "%s", nw_last_error()->text);
    return net;
}

Test(presets, all_have_exactly_the_published_parameter_counts)
{
    const struct nw_preset *preset;
    size_t count = 0;

    for (; (preset = nw_preset_at(count)) != NULL; count++) {
        const struct nw_transformer *net = &preset->net;

        cr_expect(eq(u64, nw_transformer_parameter_count(net), preset->published_parameters), "%s",
                  net->name);
        cr_expect(eq(int, nw_transformer_check(net, net->name), NW_OK), "%s",
                  nw_last_error()->text);
        cr_expect(gt(sz, strlen(preset->source), 10), "%s", net->name);
        cr_expect(eq(u64, named(net->name).layers, net->layers));
        cr_expect(
            gt(dbl, net->stated_parameters > 0 ? net->flops_per_sample : (double)net->max_positions,
               0),
            "%s", net->name);
    }
    cr_expect(eq(sz, count, nw_preset_count()));
    cr_expect(ge(sz, count, 140));
}

Test(presets, names_are_unique)
{
    const struct nw_preset *one, *other;

    for (size_t i = 0; (one = nw_preset_at(i)) != NULL; i++)
        for (size_t j = i + 1; (other = nw_preset_at(j)) != NULL; j++)
            cr_expect(ne(int, strcasecmp(one->net.name, other->net.name), 0), "%s", one->net.name);
}

/* The same numbers once more, so that a changed table is seen. */
Test(presets, well_known_counts)
{
    static const struct {
        const char *name;
        uint64_t parameters;
    } known[] = {
        {"gpt2-124m", 124439808},
        {"gpt2-1.5b", 1557611200},
        {"bert-base", 109482240},
        {"bert-large", 335141888},
        {"bert-large-pretraining", 336226108},
        {"opt-350m", 331196416},
        {"bloom-176b", 176247271424},
        {"mpt-7b", 6649286656},
        {"gpt-neox-20b", 20554567680},
        {"gpt-j-6b", 6050882784},
        {"falcon-40b", 41303293952},
        {"phi-2", 2779683840},
        {"phi-3-mini", 3821079552},
        {"llama-2-7b", 6738415616},
        {"LLAMA-2-7B", 6738415616},
        {"llama-2-70b", 68976648192},
        {"llama-3-8b", 8030261248},
        {"llama-3.1-405b", 405853388800},
        {"llama-3.2-1b", 1235814400},
        {"mistral-7b", 7241732096},
        {"mixtral-8x7b", 46702792704},
        {"mixtral-8x22b", 140620634112},
        {"qwen2.5-7b", 7615616512},
        {"qwen3-30b-a3b", 30532122624},
        {"qwen3-235b-a22b", 235093634560},
        {"deepseek-v2-lite", 15706484224},
        {"deepseek-v2", 235741434880},
        {"deepseek-v3", 671026419200},
        {"kimi-k2", 1026408232448},
        {"gemma-2-27b", 27227128320},
        {"yi-34b", 34388917248},
        {"chatglm3-6b", 6243584000},
        {"baichuan2-7b", 7505973248},
        {"gpt-oss-120b", 116829156672},
        {"resnet-50", 25557032},
        {"vit-b-16", 86567656},
        {"sdxl-unet", 2567463684},
        /* by their name on the hub */
        {"meta-llama/Llama-2-7b-hf", 6738415616},
        {"Qwen2.5-7B", 7615616512},
        {"gpt2-xl", 1557611200},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct nw_transformer net = named(known[i].name);

        cr_expect(eq(u64, nw_transformer_parameter_count(&net), known[i].parameters), "%s",
                  known[i].name);
    }
}

/* Counts that their papers and model cards give rounded, in 10^9, of shapes without a checkpoint.
 * MPT: llm-foundry's table of throughputs, at the sequence length 2048. */
Test(presets, shapes_without_a_checkpoint_have_the_rounded_counts_of_their_papers)
{
    static const struct {
        const char *name;
        double billions, digit;
    } rounded[] = {
        {"megatron-1.7b", 1.7, 0.1},   {"megatron-3.6b", 3.6, 0.1},   {"megatron-7.5b", 7.5, 0.1},
        {"megatron-18b", 18.4, 0.1},   {"megatron-39b", 39.1, 0.1},   {"megatron-76b", 76.1, 0.1},
        {"megatron-145b", 145.6, 0.1}, {"megatron-310b", 310.1, 0.1}, {"megatron-530b", 529.6, 0.1},
        {"megatron-1t", 1008.0, 0.1},  {"gpt3-125m", 0.125, 0.001},   {"gpt3-1.3b", 1.3, 0.1},
        {"gpt3-2.7b", 2.7, 0.1},       {"gpt3-6.7b", 6.7, 0.1},       {"gpt3-175b", 175, 1},
        {"mpt-125m", 0.1253, 1e-4},    {"mpt-350m", 0.3560, 1e-4},    {"mpt-760m", 0.7605, 1e-4},
        {"mpt-1b", 1.3160, 1e-4},      {"mpt-3b", 2.6518, 1e-4},      {"mpt-13b", 12.8540, 1e-4},
        {"mpt-70b", 64.8624, 1e-4},    {"nemotron-4-340b", 341, 1},   {"nemotron-4-15b", 15.6, 0.1},
    };

    for (size_t i = 0; i < sizeof rounded / sizeof rounded[0]; i++) {
        const struct nw_transformer net = named(rounded[i].name);
        const double billions = (double)nw_transformer_parameter_count(&net) / 1e9;

        cr_expect(le(dbl, fabs(billions - rounded[i].billions), 0.5001 * rounded[i].digit),
                  "%s: %.4f", rounded[i].name, billions);
    }
}

/* Parameters that work on one token, as the model cards and papers give them; some leave out
 * the embedding, or both it and the output layer. */
Test(presets, active_parameters_of_mixtures)
{
    static const struct {
        const char *name;
        double billions, digit;
        uint64_t left_out;
    } active[] = {
        {"mixtral-8x7b", 12.9, 0.1, 0},
        {"mixtral-8x22b", 39.1, 0.2, 0},
        {"deepseek-v2", 21, 1, 0},
        {"deepseek-v2-lite", 2.4, 0.2, 1},
        {"deepseek-v3", 37, 1, 1},
        {"kimi-k2", 32, 1, 1},
        {"qwen3-30b-a3b", 3.3, 0.2, 0},
        {"qwen3-235b-a22b", 22, 1, 0},
        {"qwen1.5-moe-a2.7b", 2.7, 0.1, 0},
        {"qwen2-57b-a14b", 14, 1, 0},
        {"gpt-oss-20b", 3.6, 0.1, 1},
        {"gpt-oss-120b", 5.1, 0.1, 1},
        {"llama-4-scout-109b", 17, 1, 0},
        {"llama-4-maverick-400b", 17, 1, 0},
        {"glm-4.5", 32, 1, 2},
        {"glm-4.5-air", 12, 1, 2},
        {"olmoe-1b-7b", 1.3, 0.1, 0},
        {"llama-2-7b", 6.738, 0.001, 0},
    };

    for (size_t i = 0; i < sizeof active / sizeof active[0]; i++) {
        const struct nw_transformer net = named(active[i].name);
        const uint64_t embedding = active[i].left_out * net.vocab * net.hidden;
        const double billions = (double)(nw_transformer_active_count(&net) - embedding) / 1e9;

        cr_expect(le(dbl, fabs(billions - active[i].billions), 0.5001 * active[i].digit),
                  "%s: %.4f", active[i].name, billions);
    }
}

Test(presets, unknown_name_names_the_nearest_and_its_relatives)
{
    struct nw_transformer net;

    static const char *const spelled[][2] = {{"llama2-7b", "llama-2-7b"},
                                             {"Llama_2_7B", "llama-2-7b"},
                                             {"gpt-3-175b", "gpt3-175b"},
                                             {"resnet50", "resnet-50"}};

    for (size_t i = 0; i < sizeof spelled / sizeof spelled[0]; i++) {
        cr_assert(eq(int, nw_transformer_find(spelled[i][0], &net), NW_OK), "%s", spelled[i][0]);
        cr_expect(eq(str, (char *)net.name, (char *)spelled[i][1]));
    }
    cr_assert(eq(int, nw_transformer_find("lama-2-7b", &net), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "did you mean \"llama-2-7b\""), NULL), "%s",
              nw_last_error()->text);
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "llama-3-70b"), NULL), "%s",
              nw_last_error()->text);
    cr_assert(eq(int, nw_transformer_find("zzzzzz", &net), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "list models"), NULL));
    cr_assert(eq(int, nw_transformer_find("", &net), NW_EUSAGE));
    cr_assert(eq(int, nw_transformer_find("nobody/nothing", &net), NW_EIO), "%s",
              nw_last_error()->text);
}
