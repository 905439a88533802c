#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "model/emit.h"
#include "tests/unit/model_support.h"

struct plan {
    const char *strategy, *model, *precision, *recompute;
    int tp, pp;
    const char *offload_optimizer, *offload_params, *offload_activations;
    int virtual_stages, shard, ep;
    const char *nodes; /* "2" */
    const char *optimizer, *gradients, *reduce, *master, *attention;
};

/* Predicted on two nodes of eight cards that hold anything. */
static void make(const struct plan *plan, struct nw_model *model, struct nw_steps *steps,
                 struct nw_emission *emission)
{
    struct nw_model_request request = request_for(plan->model != NULL ? plan->model : "llama-3-8b");

    request.gpu = "h100-sxm";
    request.nodes = plan->nodes != NULL ? plan->nodes : "2";
    request.gpus_per_node = 8;
    request.nic_gbit_per_s = 3200;
    request.gpu_memory_bytes = 900ull << 30;
    request.micro_batch = 1;
    request.global_batch = 64;
    request.strategy = plan->strategy;
    request.precision = plan->precision != NULL ? plan->precision : request.precision;
    request.recompute = plan->recompute;
    request.tp = plan->tp;
    request.pp = plan->pp;
    request.offload_optimizer = plan->offload_optimizer;
    request.offload_params = plan->offload_params;
    request.nvme_gb_per_s = 5;
    request.offload_activations = plan->offload_activations;
    request.virtual_stages = plan->virtual_stages;
    request.shard = plan->shard;
    request.ep = plan->ep;
    request.optimizer = plan->optimizer != NULL ? plan->optimizer : request.optimizer;
    request.gradients = plan->gradients;
    request.reduce = plan->reduce;
    request.master = plan->master;
    request.attention = plan->attention;
    cr_assert_eq(nw_model_open(&request, NULL, model), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_predict_all(model, steps), NW_OK, "%s", nw_last_error()->text);
    cr_assert_gt(steps->count, 0);
    cr_assert_eq(nw_emission_make(model, NULL, &steps->items[0], emission), NW_OK);
}

/* The emitted text; NULL where the tool has no such plan. The caller frees. */
static char *text_of(const struct plan *plan, const char *format)
{
    const struct nw_emitter *emitter;
    struct nw_model model;
    struct nw_steps steps;
    struct nw_emission emission;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    make(plan, &model, &steps, &emission);
    cr_assert_eq(nw_emitter_find(format, &emitter), NW_OK);
    const nw_rc rc = nw_emit(emitter, &emission, stream);

    fclose(stream);
    nw_steps_free(&steps);
    nw_model_close(&model);
    if (rc == NW_OK)
        return text;
    cr_expect_eq(rc, NW_EUSAGE);
    free(text);
    return NULL;
}

Test(emit, each_strategy_is_written_or_refused_with_what_is_accepted, .timeout = 60)
{
    static const struct {
        const char *format, *has;
    } rows[] = {
        {"deepspeed", " ddp zero1 zero2 zero3 zeropp "},
        {"accelerate", " ddp fsdp fsdp-keep hsdp "},
        {"megatron", " ddp zero1 distopt "},
        {"torchrun", NULL},
        {"slurm", NULL},
        {"mpijob", NULL},
        {"pytorchjob", NULL},
    };

    cr_expect_eq(sizeof rows / sizeof rows[0], nw_emitter_count);
    for (size_t s = 0; s + 1 < nw_strategy_count; s++) { /* the last is "none": one copy */
        const struct plan plan = {.strategy = nw_strategies[s].name};

        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            char word[32];
            char *text = text_of(&plan, rows[i].format);

            snprintf(word, sizeof word, " %s ", plan.strategy);
            cr_expect_eq(text != NULL, rows[i].has == NULL || strstr(rows[i].has, word) != NULL,
                         "%s as %s", plan.strategy, rows[i].format);
            if (text == NULL)
                cr_expect_not_null(strstr(nw_last_error()->text, "accepted: "), "%s",
                                   nw_last_error()->text);
            free(text);
        }
    }
}

Test(emit, deepspeed_json_says_what_the_plan_says)
{
    static const struct {
        struct plan plan;
        int stage;
        const char *optimizer, *parameters;
        bool bf16;
    } rows[] = {
        {{.strategy = "ddp"}, 0, NULL, NULL, true},
        {{.strategy = "zero1"}, 1, NULL, NULL, true},
        {{.strategy = "zero2", .precision = "fp16", .model = "gpt2-1.5b"}, 2, NULL, NULL, false},
        {{.strategy = "zero3"}, 3, NULL, NULL, true},
        {{.strategy = "zeropp"}, 3, NULL, NULL, true},
        {{.strategy = "zero3", .offload_optimizer = "cpu", .offload_params = "cpu"},
         3,
         "cpu",
         "cpu",
         true},
        {{.strategy = "zero3", .offload_optimizer = "nvme"}, 3, "nvme", NULL, true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = text_of(&rows[i].plan, "deepspeed");
        json_t *root = json_loads(text, 0, NULL), *zero, *device;

        cr_assert_not_null(root);
        zero = json_object_get(root, "zero_optimization");
        cr_expect_eq(json_integer_value(json_object_get(zero, "stage")), rows[i].stage);
        cr_expect_eq(json_is_true(json_object_get(json_object_get(root, "bf16"), "enabled")),
                     rows[i].bf16);
        cr_expect_eq(json_integer_value(json_object_get(root, "train_batch_size")), 64);
        cr_expect_eq(json_integer_value(json_object_get(root, "train_micro_batch_size_per_gpu")) *
                         json_integer_value(json_object_get(root, "gradient_accumulation_steps")) *
                         16,
                     64);
        device = json_object_get(json_object_get(zero, "offload_optimizer"), "device");
        cr_expect_eq(device != NULL, rows[i].optimizer != NULL);
        if (device != NULL)
            cr_expect_str_eq(json_string_value(device), rows[i].optimizer);
        device = json_object_get(json_object_get(zero, "offload_param"), "device");
        cr_expect_eq(device != NULL, rows[i].parameters != NULL);
        cr_expect_eq(json_is_true(json_object_get(zero, "zero_quantized_weights")),
                     strcmp(rows[i].plan.strategy, "zeropp") == 0);
        json_decref(root);
        free(text);
    }
}

Test(emit, lines_that_must_be_there_are)
{
    static const struct {
        struct plan plan;
        const char *format, *line;
    } rows[] = {
        {{.strategy = "distopt", .tp = 4, .pp = 2}, "megatron", "--tensor-model-parallel-size 4\n"},
        {{.strategy = "distopt", .tp = 4, .pp = 2},
         "megatron",
         "--pipeline-model-parallel-size 2\n"},
        {{.strategy = "distopt"}, "megatron", "--use-distributed-optimizer\n"},
        {{.strategy = "distopt"}, "megatron", "--num-query-groups 8\n"},
        {{.strategy = "ddp", .recompute = "full"}, "megatron", "--recompute-granularity full\n"},
        {{.strategy = "fsdp"}, "accelerate", "fsdp_reshard_after_forward: true\n"},
        {{.strategy = "fsdp-keep"}, "accelerate", "fsdp_reshard_after_forward: false\n"},
        {{.strategy = "hsdp"}, "accelerate", "fsdp_sharding_strategy: HYBRID_SHARD\n"},
        {{.strategy = "fsdp", .recompute = "full"},
         "accelerate",
         "fsdp_activation_checkpointing: true\n"},
        {{.strategy = "ddp"}, "accelerate", "distributed_type: MULTI_GPU\n"},
        {{.strategy = "distopt", .offload_optimizer = "cpu"},
         "megatron",
         "--optimizer-cpu-offload\n--use-precision-aware-optimizer\n"},
        {{.strategy = "distopt", .model = "deepseek-v3"},
         "megatron",
         "--multi-latent-attention\n--qk-layernorm\n--q-lora-rank 1536\n--kv-lora-rank 512\n"
         "--qk-head-dim 128\n--qk-pos-emb-head-dim 64\n--v-head-dim 128\n"},
        {{.strategy = "distopt", .model = "deepseek-v3"},
         "megatron",
         "--moe-layer-freq ([0]*3+[1]*58)\n--moe-shared-expert-intermediate-size 2048\n"
         "--moe-router-score-function sigmoid\n--moe-router-enable-expert-bias\n"},
        {{.strategy = "distopt", .model = "deepseek-v2-lite"},
         "megatron",
         "--qk-layernorm\n--kv-lora-rank 512\n"},
        {{.strategy = "distopt", .model = "qwen3-8b"}, "megatron", "--qk-layernorm\n"},
        {{.strategy = "distopt", .model = "gpt-oss-20b"}, "megatron", "--softmax-type learnable\n"},
        {{.strategy = "distopt", .model = "qwen1.5-moe-a2.7b"},
         "megatron",
         "--moe-shared-expert-gate\n"},
        {{.strategy = "distopt", .model = "llama-3.1-405b", .pp = 4, .virtual_stages = 4},
         "megatron",
         "--account-for-embedding-in-pipeline-split\n--account-for-loss-in-pipeline-split\n"
         "--num-layers-per-virtual-pipeline-stage 8\n"},
        {{.strategy = "distopt", .model = "llama-3-70b", .pp = 2, .virtual_stages = 5},
         "megatron",
         "--num-layers-per-virtual-pipeline-stage 8\n"},
        {{.strategy = "distopt", .shard = 4},
         "megatron",
         "--num-distributed-optimizer-instances 4\n"},
        {{.strategy = "zeropp", .shard = 4}, "deepspeed", "\"zero_hpz_partition_size\": 4"},
        {{.strategy = "zeropp"}, "deepspeed", "\"zero_hpz_partition_size\": 8"},
        {{.strategy = "fsdp", .shard = 8}, "accelerate", "fsdp_sharding_strategy: HYBRID_SHARD\n"},
        {{.strategy = "hsdp", .shard = 16}, "accelerate", "fsdp_reshard_after_forward: true\n"},
        {{.strategy = "fsdp", .offload_optimizer = "cpu", .offload_params = "cpu"},
         "accelerate",
         "fsdp_offload_params: true\n"},
        {{.strategy = "fsdp"}, "accelerate", "fsdp_offload_params: false\n"},
        {{.strategy = "ddp", .optimizer = "sgd"}, "megatron", "--optimizer sgd\n"},
        {{.strategy = "ddp", .optimizer = "sgd-plain"},
         "megatron",
         "--optimizer sgd\n--sgd-momentum 0\n"},
        {{.strategy = "distopt", .gradients = "bf16", .reduce = "same"},
         "megatron",
         "--bf16\n--grad-reduce-in-bf16\n"},
        {{.strategy = "distopt", .precision = "fp16"},
         "megatron",
         "--fp16\n--accumulate-allreduce-grads-in-fp32\n"},
        {{.strategy = "distopt", .attention = "flash"}, "megatron", "--use-flash-attn\n"},
        {{.strategy = "distopt", .attention = "materialized"},
         "megatron",
         "--attention-backend unfused\n"},
        {{.strategy = "zero2", .gradients = "fp32"}, "deepspeed", "\"grad_accum_dtype\": \"fp32\""},
        {{.strategy = "zero2", .precision = "fp8", .reduce = "bf16"},
         "deepspeed",
         "\"communication_data_type\": \"bf16\""},
        {{.strategy = "zero2", .optimizer = "adafactor"},
         "deepspeed",
         "\"zero_allow_untested_optimizer\": true"},
        {{.strategy = "fsdp", .recompute = "selective"},
         "accelerate",
         "gradient_accumulation_steps 4, selective recomputation.\n"},
        {{.strategy = "fsdp", .master = "none"}, "accelerate", "weights in bf16.\n"},
        {{.strategy = "fsdp", .master = "none"}, "accelerate", "mixed_precision: 'no'\n"},
        {{.strategy = "ddp"}, "torchrun", "--nnodes 2 --nproc-per-node 8 "},
        {{.strategy = "ddp"}, "slurm", "#SBATCH --nodes=2\n"},
        {{.strategy = "ddp"}, "mpijob", "  slotsPerWorker: 8\n"},
        {{.strategy = "ddp"}, "pytorchjob", "  nprocPerNode: \"8\"\n"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = text_of(&rows[i].plan, rows[i].format);

        cr_assert_not_null(text, "%s", nw_last_error()->text);
        cr_expect_not_null(strstr(text, rows[i].line), "%s: %s in\n%s", rows[i].format,
                           rows[i].line, text);
        free(text);
    }
}

Test(emit, what_a_tool_cannot_say_is_refused, .timeout = 60)
{
    static const struct {
        struct plan plan;
        const char *format, *said;
    } rows[] = {
        {{.strategy = "distopt", .offload_optimizer = "nvme"}, "megatron", "none or cpu"},
        {{.strategy = "distopt", .offload_activations = "cpu", .recompute = "full"},
         "megatron",
         "--offload-activations"},
        {{.strategy = "zero3", .offload_activations = "cpu", .recompute = "full"},
         "deepspeed",
         "--offload-activations"},
        {{.strategy = "fsdp", .offload_activations = "cpu", .recompute = "full"},
         "accelerate",
         "--offload-activations"},
        {{.strategy = "fsdp", .offload_optimizer = "cpu"}, "accelerate", "or neither"},
        {{.strategy = "fsdp", .offload_params = "cpu"}, "accelerate", "or neither"},
        {{.strategy = "fsdp", .offload_optimizer = "nvme", .offload_params = "nvme"},
         "accelerate",
         "or neither"},
        {{.strategy = "zero2", .offload_optimizer = "nvme"}, "deepspeed", "none or cpu"},
        {{.strategy = "distopt", .model = "deepseek-v3", .pp = 4}, "megatron", "61 layers"},
        {{.strategy = "distopt", .model = "bloom-7b1"}, "megatron", "ALiBi"},
        {{.strategy = "distopt", .model = "mpt-7b"}, "megatron", "ALiBi"},
        {{.strategy = "distopt", .model = "baichuan2-13b"}, "megatron", "ALiBi"},
        {{.strategy = "distopt", .model = "gpt-neox-20b"}, "megatron", "in parallel"},
        {{.strategy = "distopt", .model = "gemma-2-2b"}, "megatron", "norms behind"},
        {{.strategy = "distopt", .model = "olmoe-1b-7b"}, "megatron", "over all heads"},
        {{.strategy = "distopt", .model = "opt-350m"}, "megatron", "a width of their own"},
        {{.strategy = "distopt", .model = "llama-4-maverick-400b"},
         "megatron",
         "layers without experts"},
        {{.strategy = "distopt", .model = "gpt-oss-20b", .tp = 2}, "megatron", "--tp 1"},
        {{.strategy = "ddp", .model = "bert-large"}, "megatron", "decoders"},
        {{.strategy = "distopt", .optimizer = "sgd"}, "megatron", "--strategy ddp"},
        {{.strategy = "ddp", .optimizer = "adafactor"}, "megatron", "sgd-plain"},
        {{.strategy = "distopt", .master = "none"}, "megatron", "--master fp32"},
        {{.strategy = "distopt", .gradients = "bf16", .reduce = "fp32"}, "megatron", "same"},
        {{.strategy = "zero2", .master = "none"}, "deepspeed", "--master fp32"},
        {{.strategy = "ddp", .gradients = "fp32"}, "deepspeed", "--gradients same"},
        {{.strategy = "zero3", .shard = 4}, "deepspeed", "--shard 16"},
        {{.strategy = "zero1", .shard = 4}, "deepspeed", "--shard 16"},
        {{.strategy = "fsdp", .shard = 4}, "accelerate", "8 or 16"},
        {{.strategy = "hsdp", .shard = 2}, "accelerate", "8 or 16"},
        {{.strategy = "fsdp-keep", .shard = 8}, "accelerate", "--strategy hsdp"},
        {{.strategy = "zero1", .model = "mixtral-8x7b", .ep = 8}, "deepspeed", "--ep"},
        {{.strategy = "fsdp", .model = "mixtral-8x7b", .ep = 8}, "accelerate", "--ep"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = text_of(&rows[i].plan, rows[i].format);

        cr_expect_null(text, "row %zu: %s as %s", i, rows[i].plan.strategy, rows[i].format);
        cr_expect_not_null(strstr(nw_last_error()->text, rows[i].said), "row %zu: %s", i,
                           nw_last_error()->text);
        cr_expect_not_null(strstr(nw_last_error()->text, "accepted: "), "row %zu: %s", i,
                           nw_last_error()->text);
        free(text);
    }
}

/* As one format, with a script and the mark of a double's figures. */
static char *marked(const char *format, const char *script, bool simulated)
{
    static const struct plan plan = {.strategy = "ddp"};
    const struct nw_emitter *emitter;
    struct nw_emission emission;
    struct nw_steps steps;
    struct nw_model model;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    make(&plan, &model, &steps, &emission);
    cr_expect_not(emission.simulated);
    emission.simulated = simulated;
    emission.script = script;
    cr_assert_eq(nw_emitter_find(format, &emitter), NW_OK);
    cr_expect_eq(nw_emit(emitter, &emission, stream), NW_OK);
    fclose(stream);
    nw_steps_free(&steps);
    nw_model_close(&model);
    return text;
}

Test(emit, a_plan_from_simulated_results_says_so_where_comments_are)
{
    static const struct {
        const char *format, *begins;
    } rows[] = {
        {"deepspeed", "{"},
        {"megatron", "--num-layers "},
        {"accelerate", "# from SIMULATED results\n"},
        {"torchrun", "#!/bin/bash\n# from SIMULATED results\n"},
        {"slurm", "#!/bin/bash\n# from SIMULATED results\n#SBATCH "},
        {"mpijob", "# from SIMULATED results\napiVersion: "},
        {"pytorchjob", "# from SIMULATED results\napiVersion: "},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = marked(rows[i].format, "train.py", true);
        char *plain = marked(rows[i].format, "train.py", false);

        cr_expect_eq(strncmp(text, rows[i].begins, strlen(rows[i].begins)), 0, "%s: %s",
                     rows[i].format, text);
        cr_expect_null(strstr(plain, "SIMULATED"));
        free(plain);
        free(text);
    }
}

Test(emit, a_long_script_is_written_whole)
{
    static const char *const formats[] = {"torchrun", "slurm", "mpijob", "pytorchjob"};
    char script[301], word[310];

    memset(script, 'x', sizeof script - 1);
    script[sizeof script - 1] = '\0';
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        char *text = marked(formats[i], script, false);

        snprintf(word, sizeof word, i < 2 ? " %s \"$@\"" : "\"%s\"]\n", script);
        cr_expect_not_null(strstr(text, word), "%s: %s", formats[i], text);
        free(text);
    }
}

/* Gradients are kept and reduced in the types of the framework that runs the strategy. */
Test(emit, the_job_has_the_types_of_its_framework)
{
    static const struct plan megatron = {.strategy = "distopt"}, deepspeed = {.strategy = "zero2"};
    struct nw_model model;
    struct nw_steps steps;
    struct nw_emission emission;

    make(&megatron, &model, &steps, &emission);
    cr_expect_eq(emission.job.gradient_bytes, 4);
    nw_steps_free(&steps);
    nw_model_close(&model);
    make(&deepspeed, &model, &steps, &emission);
    cr_expect_eq(emission.job.gradient_bytes,
                 nw_model_job(&model, &steps.items[0].layout).gradient_bytes);
    cr_expect_geq(emission.bucket_bytes, 5 << 20);
    nw_steps_free(&steps);
    nw_model_close(&model);
}

Test(emit, words_are_quoted_for_a_shell)
{
    static const struct {
        const char *word, *quoted;
    } rows[] = {
        {"--tp", "--tp"},       {"4xRTX-4090@12", "4xRTX-4090@12"},
        {"a b", "'a b'"},       {"", "''"},
        {"it's", "'it'\\''s'"}, {"$(rm -rf x)", "'$(rm -rf x)'"},
        {"a;b", "'a;b'"},       {"\xe2\x82\xac", "'\xe2\x82\xac'"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *stream = open_memstream(&text, &size);

        nw_emit_quote(stream, rows[i].word);
        fclose(stream);
        cr_expect_str_eq(text, rows[i].quoted);
        free(text);
    }
}
