/* The job of a request: the model, its numbers in place of a preset's, the types. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "model/request_parts.h"

/* A job's own defaults: the model's sequence length up to this, micro-batches of so many tokens. */
#define DEFAULT_SEQUENCE     4096u
#define MICRO_BATCH_TOKENS   8192u
#define DEFAULT_GLOBAL_BATCH 512u

void nw_default_note(struct nw_defaults *defaults, const char *option, const char *text,
                     const char *format, ...)
{
    struct nw_default *item = &defaults->items[defaults->count];
    va_list arguments;

    if (defaults->count == NW_DEFAULTS_MAX)
        return;
    va_start(arguments, format);
    vsnprintf(item->value, sizeof item->value, format, arguments);
    va_end(arguments);
    item->option = option;
    item->text = text;
    defaults->count++;
}

static bool is(const char *text, const char *word)
{
    return text != NULL && strcmp(text, word) == 0;
}

/* ---- the model by its numbers -------------------------------------------------------------- */

static nw_yes_no yes_no(const char *text)
{
    return text == NULL ? NW_NOT_GIVEN : is(text, "yes") ? NW_YES : NW_NO;
}

static struct nw_transformer_fields fields_of(const struct nw_model_request *request)
{
    return (struct nw_transformer_fields){
        .layers = request->layers,
        .hidden = request->hidden,
        .heads = request->heads,
        .kv_heads = request->kv_heads,
        .head_size = request->head_size,
        .ffn = request->ffn,
        .vocab = request->vocab,
        .experts = request->experts,
        .experts_per_token = request->experts_per_token,
        .expert_ffn = request->expert_ffn,
        .gated = yes_no(request->gated),
        .tied = yes_no(request->tied),
        .encoder = yes_no(request->encoder),
        .parameters = request->parameters,
        .flops_per_sample = request->flops_per_sample,
        .activations_per_sample = request->activations_per_sample,
    };
}

/* What nw_transformer_override concluded for a model without a preset. */
static void note_conclusions(const struct nw_model_request *request,
                             const struct nw_transformer *net, struct nw_defaults *defaults)
{
    if (net->stated_parameters > 0) {
        if (request->layers == 0)
            nw_default_note(defaults, "layers", "equal units of a net that is no transformer",
                            "%llu", (unsigned long long)net->layers);
        return;
    }
    if (request->kv_heads == 0)
        nw_default_note(defaults, "kv-heads", "as many as heads", "%llu",
                        (unsigned long long)net->kv_heads);
    if (request->gated == NULL)
        nw_default_note(defaults, "gated", "plain MLP", "no");
    if (request->tied == NULL)
        nw_default_note(defaults, "tied",
                        net->tied ? "the embedding is the output matrix, as in GPT"
                                  : "an output matrix of its own, as in Llama",
                        net->tied ? "yes" : "no");
    if (request->ffn == 0)
        nw_default_note(defaults, "ffn", net->gated ? "8/3 of --hidden" : "4 x --hidden", "%llu",
                        (unsigned long long)net->ffn);
    if (request->experts > 0 && request->expert_ffn == 0)
        nw_default_note(defaults, "expert-ffn", "as --ffn", "%llu",
                        (unsigned long long)net->expert_ffn);
}

static nw_rc make_net(const struct nw_model_request *request, struct nw_transformer *net,
                      struct nw_defaults *defaults)
{
    const struct nw_transformer_fields fields = fields_of(request);
    const bool numbers = nw_transformer_fields_given(&fields);

    if (request->model == NULL && !numbers)
        return nw_fail(NW_EUSAGE,
                       "no model: give --model NAME (nodeworth list models), a Hugging Face "
                       "config.json, or its numbers (--layers --hidden --heads --vocab …)");
    *net = (struct nw_transformer){0};
    if (request->model != NULL)
        NW_TRY(nw_transformer_find(request->model, net));
    if (!numbers)
        return NW_OK;
    NW_TRY(nw_transformer_override(net, &fields));
    if (request->model == NULL)
        note_conclusions(request, net, defaults);
    return NW_OK;
}

/* ---- the rest of the job ------------------------------------------------------------------- */

static nw_rc choose_sequence(const struct nw_model_request *request, struct nw_job *job,
                             struct nw_defaults *defaults)
{
    const struct nw_transformer *net = &job->net;

    if (net->stated_parameters > 0) { /* a sample is its unit */
        job->sequence = request->sequence > 0 ? request->sequence : 1;
        return NW_OK;
    }
    const uint64_t longest = net->max_positions > 0 ? net->max_positions : DEFAULT_SEQUENCE;

    job->sequence = request->sequence;
    if (job->sequence == 0) {
        job->sequence = longest < DEFAULT_SEQUENCE ? longest : DEFAULT_SEQUENCE;
        nw_default_note(defaults, "seq",
                        longest < DEFAULT_SEQUENCE ? "the longest that the model was made for"
                                                   : "usual in pre-training",
                        "%llu", (unsigned long long)job->sequence);
    }
    if (net->positions > 0 && job->sequence > net->positions)
        return nw_fail(
            NW_EUSAGE,
            "--seq %llu is longer than the %llu learned positions of %s; accepted: up to that",
            (unsigned long long)job->sequence, (unsigned long long)net->positions, net->name);
    return NW_OK;
}

static nw_rc choose_batch(const struct nw_model_request *request, struct nw_model *model)
{
    struct nw_job *job = &model->job;

    job->micro_batch = request->micro_batch;
    if (job->micro_batch == 0) {
        job->micro_batch =
            job->sequence < MICRO_BATCH_TOKENS ? MICRO_BATCH_TOKENS / job->sequence : 1;
        if (job->net.stated_parameters > 0)
            job->micro_batch = 32;
        nw_default_note(&model->defaults, "micro-batch",
                        job->net.stated_parameters > 0 ? "of samples" : "up to 8192 tokens", "%llu",
                        (unsigned long long)job->micro_batch);
    }
    if (request->grad_accum > 0 && request->global_batch > 0)
        return nw_fail(NW_EUSAGE, "--grad-accum and --global-batch say the same in two ways; give "
                                  "one of them");
    model->grad_accum = request->grad_accum;
    job->global_batch = request->global_batch;
    if (job->global_batch == 0 && model->grad_accum == 0) {
        job->global_batch = DEFAULT_GLOBAL_BATCH;
        nw_default_note(&model->defaults, "global-batch", "sequences", "512");
    }
    return NW_OK;
}

static double bytes_named(const char *name, double same)
{
    return is(name, "fp32") ? 4 : is(name, "bf16") ? 2 : is(name, "none") ? 0 : same;
}

static nw_rc choose_types(const struct nw_model_request *request, struct nw_model *model)
{
    struct nw_job *job = &model->job;
    const char *precision = request->precision != NULL ? request->precision : "bf16";
    const char *optimizer = request->optimizer != NULL ? request->optimizer : "adam";

    job->precision = nw_precision_named(precision);
    job->optimizer = nw_optimizer_named(optimizer);
    if (request->precision == NULL)
        nw_default_note(&model->defaults, "precision", "mixed", "bf16");
    if (request->optimizer == NULL)
        nw_default_note(&model->defaults, "optimizer", "two fp32 moments", "adam");
    job->gradient_bytes = bytes_named(request->gradients, job->precision->element_bytes);
    job->reduce_bytes = request->reduce != NULL ? bytes_named(request->reduce, 0) : 0;
    job->master_bytes = request->master != NULL ? bytes_named(request->master, NAN) : NAN;
    model->gradients_given = request->gradients != NULL;
    model->reduce_given = request->reduce != NULL;
    job->recompute = is(request->recompute, "full")        ? NW_RECOMPUTE_FULL
                     : is(request->recompute, "selective") ? NW_RECOMPUTE_SELECTIVE
                                                           : NW_RECOMPUTE_NONE;
    if (request->recompute == NULL)
        nw_default_note(&model->defaults, "recompute", "all activations kept", "none");
    job->flash = !is(request->attention, "materialized");
    if (request->attention == NULL && job->net.stated_parameters == 0)
        nw_default_note(&model->defaults, "attention", "fused kernels", "flash");
    return NW_OK;
}

static nw_rc take_target(void *target, const char *word, const char *option)
{
    static const char *const names[] = {"q", "k", "v", "o", "gate", "up", "down", NULL};
    unsigned *targets = target;
    char accepted[64];

    for (unsigned i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], word) == 0) {
            *targets |= 1u << i; /* NW_LORA_Q … NW_LORA_DOWN */
            return NW_OK;
        }
    }
    return nw_fail(NW_EUSAGE, "%s: \"%.40s\" is no matrix of a layer; accepted: %s", option, word,
                   nw_join_names(accepted, sizeof accepted, names));
}

static nw_rc choose_adapters(const struct nw_model_request *request, struct nw_model *model)
{
    struct nw_lora *lora = &model->job.lora;

    if (request->lora_rank == 0) {
        if (request->lora_targets != NULL || (request->base != NULL && !is(request->base, "same")))
            return nw_fail(NW_EUSAGE, "--lora-targets and --base need --lora-rank: without "
                                      "adapters all weights are trained");
        return NW_OK;
    }
    if (model->job.net.stated_parameters > 0)
        return nw_fail(NW_EUSAGE, "--lora-rank needs a transformer; %s states parameters only",
                       model->job.net.name);
    lora->rank = request->lora_rank;
    lora->base_bytes = is(request->base, "nf4") ? NW_NF4_BYTES : is(request->base, "int8") ? 1 : 0;
    if (request->lora_targets != NULL)
        return nw_request_each_word(request->lora_targets, "--lora-targets", take_target,
                                    &lora->targets);
    lora->targets = nw_lora_all(&model->job.net);
    nw_default_note(&model->defaults, "lora-targets", "every matrix of a layer", "%s",
                    model->job.net.gated ? "q,k,v,o,gate,up,down" : "q,k,v,o,up,down");
    return NW_OK;
}

static nw_offload_to offload_named(const char *name)
{
    return is(name, "cpu") ? NW_OFFLOAD_CPU : is(name, "nvme") ? NW_OFFLOAD_NVME : NW_OFFLOAD_NONE;
}

nw_rc nw_request_job(const struct nw_model_request *request, struct nw_model *model)
{
    NW_TRY(make_net(request, &model->job.net, &model->defaults));
    NW_TRY(choose_sequence(request, &model->job, &model->defaults));
    NW_TRY(choose_batch(request, model));
    NW_TRY(choose_types(request, model));
    NW_TRY(choose_adapters(request, model));
    model->job.offload =
        (struct nw_offload){.optimizer = offload_named(request->offload_optimizer),
                            .parameters = offload_named(request->offload_params),
                            .activations = offload_named(request->offload_activations)};
    model->job.chunked_loss = is(request->loss, "chunked");
    model->job.tokens = request->tokens > 0 ? request->tokens : NAN;
    return NW_OK;
}
