#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "model/infer.h"
#include "model/slice.h"
#include "tests/unit/model_support.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static struct nw_serving serving_of(const char *model, const char *format)
{
    struct nw_serving serving = {.format = nw_weight_formats,
                                 .kv_bytes = 2,
                                 .prompt_tokens = 1024,
                                 .output_tokens = 256,
                                 .max_token_ns = NAN,
                                 .max_first_ns = NAN};

    cr_assert_eq(nw_transformer_find(model, &serving.net), NW_OK);
    while (strcmp(serving.format->name, format) != 0)
        serving.format++;
    return serving;
}

static struct nw_server server_of(const char *text)
{
    struct nw_server server;

    cr_assert_eq(nw_server_parse(text, NULL, NULL, &server), NW_OK, "%s: %s", text,
                 nw_last_error()->text);
    return server;
}

static struct nw_infer best(const struct nw_serving *serving, const struct nw_server *server)
{
    struct nw_infer infer;

    cr_assert_eq(nw_infer_best(serving, server, &infer), NW_OK, "%s", nw_last_error()->text);
    return infer;
}

Test(infer, servers_are_read_from_one_word)
{
    static const struct {
        const char *text, *name;
        int count;
        double price;
    } good[] = {
        {"4xRTX 4090@12", "4x RTX 4090 24GB", 4, 12},
        {"4\xc3\x97rtx-4090", "4x RTX 4090 24GB", 4, NAN},
        {"A100-80", "1x A100 SXM4 80GB", 1, NAN},
        {"7xa100-80:1g.10gb@3.5", "7x A100 SXM4 80GB 1g.10gb", 7, 3.5},
    };
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "names no GPU"},
        {"4x", "names no GPU"},
        {"0xA100-80", "accepted: 1 to 1024"},
        {"99999999999999999999xA100-80", "accepted: 1 to 1024"},
        {"2xA100-80@cheap", "is no price"},
        {"2xA100-80@-1", "is no price"},
        {"2xA100-80:9g.90gb", "accepted: 1g.10gb"},
        {"2xRTX 4090:1g.10gb", "cannot be cut"},
        {"2xNothing-9000", "not in the catalogue"},
    };

    for (size_t i = 0; i < COUNT(good); i++) {
        const struct nw_server server = server_of(good[i].text);

        cr_expect_str_eq(server.name, good[i].name);
        cr_expect_eq(server.gpu_count, good[i].count);
        cr_expect(isnan(good[i].price) ? isnan(server.price_per_gpu_hour)
                                       : server.price_per_gpu_hour == good[i].price);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct nw_server server;

        cr_expect_eq(nw_server_parse(bad[i].text, NULL, NULL, &server), NW_EUSAGE, "%s",
                     bad[i].text);
        cr_expect_not_null(strstr(nw_last_error()->text, bad[i].says), "%s: %s", bad[i].text,
                           nw_last_error()->text);
    }
}

/* 2 × layers × key-value heads × head size × 2 bytes. */
Test(infer, cache_and_weights_are_those_of_the_shape)
{
    static const struct {
        const char *model, *format;
        double cache_bytes, weights_bytes;
    } rows[] = {
        {"llama-2-7b", "fp16", 2.0 * 32 * 32 * 128 * 2, 2.0 * 6738415616},
        {"llama-3-8b", "bf16", 2.0 * 32 * 8 * 128 * 2, 2.0 * 8030261248},
        {"llama-3-8b", "int4", 2.0 * 32 * 8 * 128 * 2, (0.5 + 2.5 / 128) * 8030261248},
    };
    const struct nw_server server = server_of("1xH200 SXM 141GB");

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct nw_serving serving = serving_of(rows[i].model, rows[i].format);
        const struct nw_infer infer = best(&serving, &server);

        cr_expect_float_eq(infer.cache_bytes_per_token, rows[i].cache_bytes, 1e-6);
        cr_expect_float_eq(infer.weights_bytes / rows[i].weights_bytes, 1, 1e-9);
    }
}

Test(infer, one_sequence_reads_every_weight_once_a_token)
{
    const struct nw_serving serving = serving_of("llama-2-7b", "fp16");
    const struct nw_server server = server_of("A100 SXM4 80GB");
    const struct nw_infer infer = best(&serving, &server);
    const double lookup = 32000.0 * 4096 * 2; /* rows of the embedding, of which one is read */
    const double least = (2.0 * 6738415616 - lookup) / server.gpu.hbm_bytes_per_s * 1e9;

    cr_expect_geq(infer.single.total_ns, least);
    cr_expect_leq(infer.single.total_ns, 2 * least);
    cr_expect_float_eq(infer.single.weights_ns, least / 0.85, 0.08 * least);
}

/* Scores and values of every head are in the width of the compressed cache. */
Test(infer, decoding_with_latent_attention_computes_in_the_width_of_its_cache)
{
    const struct nw_server server = server_of("H200 SXM 141GB");
    struct nw_serving serving = serving_of("deepseek-v2-lite", "bf16");
    const struct nw_transformer *net = &serving.net;
    const double one =
        (double)(net->layers * net->heads * (2 * net->kv_rank + net->rope_head_size));
    const double active = (double)(nw_transformer_active_count(net) - net->hidden * net->vocab);
    const double before = best(&serving, &server).single.compute_ns;

    cr_assert_eq(net->kv_rank, 512);
    serving.prompt_tokens += 4096;
    cr_expect_float_eq(best(&serving, &server).single.compute_ns / before,
                       1 + 4096 * one / (active + (1024 + 128) * one), 1e-6);
}

Test(infer, a_shorter_time_between_tokens_never_serves_more)
{
    struct nw_serving serving = serving_of("llama-3-8b", "bf16");
    const struct nw_server server = server_of("2xA100-80");
    double before = INFINITY;

    for (double ns = 400e6; ns > 5e6; ns /= 1.3) {
        serving.max_token_ns = ns;
        const struct nw_infer infer = best(&serving, &server);

        cr_expect(infer.fits);
        if (!infer.fast_enough)
            break;
        cr_expect_leq(infer.token_ns, ns);
        cr_expect_leq(infer.tokens_per_s, before * (1 + 1e-9));
        before = infer.tokens_per_s;
    }
    serving.max_token_ns = 1e3;
    cr_expect_not(best(&serving, &server).fast_enough);
}

Test(infer, faster_memory_and_a_better_price_never_hurt)
{
    const struct nw_serving serving = serving_of("llama-2-13b", "fp16");
    struct nw_server server = server_of("2xA100-80@40");
    const struct nw_infer before = best(&serving, &server);

    server.platform.hbm_bytes_per_s *= 1.5;
    cr_expect_geq(best(&serving, &server).tokens_per_s, before.tokens_per_s);
    cr_expect_float_eq(before.cost_per_million_tokens, 80 / (before.tokens_per_s * 3600) * 1e6,
                       1e-9);
}

Test(infer, what_cannot_be_split_is_said)
{
    const struct nw_serving llama = serving_of("llama-3-70b", "bf16");
    const struct nw_serving bert = serving_of("bert-large", "bf16");
    const struct nw_server small = server_of("2xRTX 4090"), slices = server_of("2xa100-80:3g.40gb");
    struct nw_infer infer;

    cr_expect_not(best(&llama, &small).fits); /* 141 GB on 48 */
    cr_expect_eq(nw_infer(&llama, &slices, 2, 1, &infer), NW_EUSAGE);
    cr_expect_not_null(strstr(nw_last_error()->text, "no access to each other"));
    cr_expect_eq(nw_infer(&llama, &small, 3, 1, &infer), NW_EUSAGE);
    cr_expect_eq(nw_infer_best(&bert, &small, &infer), NW_EUSAGE);
    cr_expect_not_null(strstr(nw_last_error()->text, "token by token"));
}

/* Copies need no wire; what does need one says so in this command's words. */
Test(infer, splits_over_an_unknown_wire_are_passed_over)
{
    struct nw_serving small = serving_of("llama-3-8b", "bf16");
    const struct nw_serving large = serving_of("llama-3.1-405b", "bf16");
    struct nw_server server = server_of("16xH100 SXM5 80GB");
    struct nw_infer infer;

    cr_assert_eq(nw_infer_best(&small, &server, &infer), NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(infer.pp, 1);
    small.tp = 8; /* two copies, or two stages over the wire */
    cr_expect_eq(best(&small, &server).pp, 1);
    small.pp = 2;
    cr_expect_eq(nw_infer_best(&small, &server, &infer), NW_ENODEV);
    cr_expect_not_null(strstr(nw_last_error()->text, "--nic-gbps"));
    cr_expect_null(strstr(nw_last_error()->text, "--inter-node"));
    /* no node holds it, two of them would */
    cr_expect_eq(nw_infer_best(&large, &server, &infer), NW_ENODEV);
    server.platform.fabric.wire_bytes_per_s = 400e9;
    cr_expect(best(&large, &server).fits);

    small.tp = 1, small.pp = 0; /* 64 stages are more than there are layers */
    server = server_of("64xA100-80");
    cr_expect_eq(best(&small, &server).pp, 1);
}

/* Stages × GPUs of each over those of a node: so many nodes, one hop less between them. */
Test(infer, stages_on_several_nodes_pay_for_the_wire)
{
    static const struct {
        int tp, pp, inside, between;
    } rows[] = {{1, 8, 7, 0}, {1, 16, 14, 1}, {2, 8, 6, 1}, {4, 4, 2, 1}, {8, 2, 0, 1}};
    const struct nw_serving serving = serving_of("llama-3-8b", "bf16");
    struct nw_server server = server_of("16xA100-80");
    const double bytes = 4096 * 2; /* a token's hidden vector */

    server.platform.fabric.wire_bytes_per_s = 12.5e9;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct nw_group here = {.rank_count = 2, .host_count = 1, .sharing = rows[i].tp};
        const struct nw_group over = {.rank_count = 2, .host_count = 2, .sharing = rows[i].tp};
        const struct nw_group all = {.rank_count = rows[i].tp, .host_count = 1};
        const struct nw_fabric *fabric = &server.platform.fabric;
        struct nw_cost inside, between, reduce;
        struct nw_infer infer;

        cr_assert_eq(nw_infer(&serving, &server, rows[i].tp, rows[i].pp, &infer), NW_OK);
        nw_fabric_cost(fabric, "sendrecv", bytes / rows[i].tp, here, NULL, &inside);
        nw_fabric_cost(fabric, "sendrecv", bytes / rows[i].tp, over, NULL, &between);
        nw_fabric_cost(fabric, "all_reduce", bytes, all, NULL, &reduce);
        cr_expect_gt(between.time_ns, inside.time_ns);
        cr_expect_float_eq(infer.single.communication_ns,
                           2 * 32 * reduce.time_ns + rows[i].inside * inside.time_ns +
                               rows[i].between * between.time_ns,
                           1, "TP%d PP%d", rows[i].tp, rows[i].pp);
    }
}

Test(infer, no_more_sequences_than_were_asked_for)
{
    struct nw_serving serving = serving_of("llama-3-8b", "bf16");
    const struct nw_server server = server_of("2xA100-80");
    struct nw_infer infer;

    for (int asked = 1; asked <= 7; asked++) {
        serving.sequences = asked;
        cr_assert_eq(nw_infer(&serving, &server, 1, 1, &infer), NW_OK);
        cr_expect_eq(infer.bound, NW_INFER_BY_WISH);
        cr_expect_eq(infer.sequences, asked);
        cr_expect_float_eq(infer.tokens_per_s * infer.token_ns / 1e9, asked, 1e-9);
        if (asked == 1)
            serving.max_token_ns = infer.token_ns * 1.5; /* of all that follow */
    }
    /* 2.5 a copy: the search for the most within the limit has whole numbers and an end */
    serving.sequences = 5;
    serving.max_token_ns = NAN;
    cr_assert_eq(nw_infer(&serving, &server, 1, 1, &infer), NW_OK);
    serving.max_token_ns = infer.token_ns * (1 - 1e-6);
    cr_assert_eq(nw_infer(&serving, &server, 1, 1, &infer), NW_OK);
    cr_expect_eq(infer.bound, NW_INFER_BY_LATENCY);
    cr_expect_eq(infer.sequences, 4);
    cr_expect(infer.fast_enough);
}

/* What a GPU must have is more than what it has, exactly where it does not fit. */
Test(infer, needed_memory_counts_the_share_that_servers_use)
{
    static const char *const servers[] = {"1xA100-80:1g.20gb", "1xA100-40", "1xRTX 4090",
                                          "1xA100-80:3g.40gb", "1xH100 SXM5 80GB"};
    static const char *const models[] = {"llama-3-8b", "llama-2-7b", "llama-2-13b"};

    for (size_t m = 0; m < COUNT(models); m++) {
        const struct nw_serving serving = serving_of(models[m], "bf16");

        for (size_t i = 0; i < COUNT(servers); i++) {
            const struct nw_server server = server_of(servers[i]);
            const struct nw_infer infer = best(&serving, &server);

            cr_expect_eq(infer.fits, infer.needed_bytes <= (double)server.gpu.memory_bytes,
                         "%s on %s", models[m], servers[i]);
        }
    }
}

/* A part has its share of compute and memory and no link. */
Test(infer, slices_are_smaller_gpus)
{
    const struct nw_gpu *gpu;
    struct nw_gpu part;

    cr_assert_eq(nw_gpu_find("H100 SXM5 80GB", &gpu), NW_OK);
    cr_assert_eq(nw_gpu_slice(gpu, "3G.40GB", &part), NW_OK);
    cr_expect_float_eq(part.bf16_flops / gpu->bf16_flops, 3.0 / 7, 1e-9);
    cr_expect_float_eq(part.hbm_bytes_per_s / gpu->hbm_bytes_per_s, 0.5, 1e-9);
    cr_expect_lt(part.memory_bytes, gpu->memory_bytes);
    cr_expect_eq(part.nvlink_one_way_bytes_per_s, 0);
}

/* Only the servers with the measured card take what was measured. */
Test(infer, measurements_count_for_the_card_they_are_of)
{
    const struct nw_serving serving = serving_of("llama-2-70b", "fp16");
    struct nw_results results = {0};
    struct nw_curves curves = {0};
    struct nw_server same, other;
    struct nw_run *run = nw_results_add_run(&results);

    cr_assert_not_null(run);
    snprintf(run->context.gpu_model, sizeof run->context.gpu_model, "NVIDIA H100 80GB HBM3");
    run->context.simulated = true;
    add_group(run, 4, 1, 400e3, 20e9); /* slower than any NVLink */
    add_group(run, 8, 1, 400e3, 20e9);
    cr_assert_eq(nw_curves_add(&curves, &results, 8), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_server_parse("4xH100 SXM5 80GB", &results, &curves, &same), NW_OK);
    cr_assert_eq(nw_server_parse("4xA100-80", &results, &curves, &other), NW_OK);
    cr_expect(same.measured);
    cr_expect_not(other.measured);
    cr_expect(same.simulated);
    cr_expect_not(other.simulated);

    const struct nw_server sheet = server_of("4xH100 SXM5 80GB"), old = server_of("4xA100-80");
    struct nw_infer measured, stated;

    cr_assert_eq(nw_infer(&serving, &same, 4, 1, &measured), NW_OK);
    cr_assert_eq(nw_infer(&serving, &sheet, 4, 1, &stated), NW_OK);
    cr_expect_gt(measured.single.communication_ns, 2 * 80 * 400e3);
    cr_expect_gt(measured.single.communication_ns, 3 * stated.single.communication_ns);
    cr_expect_eq(measured.all_reduce_how & NW_COST_DATASHEET, 0);
    cr_expect_neq(stated.all_reduce_how & NW_COST_DATASHEET, 0);
    cr_expect_eq(stated.stage_how, 0);
    cr_assert_eq(nw_infer(&serving, &other, 4, 1, &measured), NW_OK);
    cr_assert_eq(nw_infer(&serving, &old, 4, 1, &stated), NW_OK);
    cr_expect_float_eq(measured.single.total_ns, stated.single.total_ns, 1);
    nw_curves_free(&curves);
    nw_results_free(&results);
}
