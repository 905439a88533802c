#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "model/emit.h"
#include "tests/unit/model_support.h"

struct plan {
    const char *strategy, *model, *precision, *recompute;
    int tp, pp;
    const char *offload_optimizer, *offload_params;
};

/* Predicted on two nodes of eight cards that hold anything. */
static void make(const struct plan *plan, struct nw_model *model, struct nw_steps *steps,
                 struct nw_emission *emission)
{
    struct nw_model_request request = request_for(plan->model != NULL ? plan->model : "llama-3-8b");

    request.gpu = "h100-sxm";
    request.nodes = "2";
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
