/* Arguments of Megatron-LM (megatron/training/arguments.py), one a line, for
 * `torchrun … pretrain_gpt.py $(cat megatron.args) …`: shape, degrees, batch, precision, what is
 * overlapped and recomputed. Data, tokenizer and learning rate are not ours to choose. */
#include <string.h>

#include "model/emit.h"

nw_rc nw_emit_megatron_check(const struct nw_emission *emission)
{
    const struct nw_transformer *net = &emission->job.net;

    if (!nw_emit_is(emission, "ddp distopt zero1"))
        return nw_fail(NW_EUSAGE,
                       "Megatron-LM has no %s; accepted: --strategy ddp, distopt or "
                       "zero1 (its distributed optimizer)",
                       emission->step->strategy->name);
    if (net->stated_parameters > 0 || net->encoder)
        return nw_fail(NW_EUSAGE, "pretrain_gpt.py trains decoders; %s is none", net->name);
    if (emission->job.lora.rank > 0)
        return nw_fail(NW_EUSAGE, "pretrain_gpt.py has no adapters; accepted: a plan without "
                                  "--lora-rank");
    return NW_OK;
}

static void number(FILE *stream, const char *name, uint64_t value)
{
    fprintf(stream, "--%s %llu\n", name, (unsigned long long)value);
}

static void flag(FILE *stream, const char *name, bool wanted)
{
    if (wanted)
        fprintf(stream, "--%s\n", name);
}

static void write_shape(const struct nw_emission *emission, FILE *stream)
{
    const struct nw_transformer *net = &emission->job.net;
    const uint64_t sequence = emission->job.sequence;

    number(stream, "num-layers", net->layers);
    number(stream, "hidden-size", net->hidden);
    number(stream, "ffn-hidden-size", net->ffn);
    number(stream, "num-attention-heads", net->heads);
    if (net->head_size * net->heads != net->hidden)
        number(stream, "kv-channels", net->head_size);
    if (net->kv_heads != net->heads) {
        fprintf(stream, "--group-query-attention\n");
        number(stream, "num-query-groups", net->kv_heads);
    }
    number(stream, "seq-length", sequence);
    number(stream, "max-position-embeddings", net->positions > 0 ? net->positions : sequence);
    fprintf(stream, "--position-embedding-type %s\n",
            net->positions > 0 ? "learned_absolute" : "rope");
    fprintf(stream, "--normalization %s\n", net->norm_bias ? "LayerNorm" : "RMSNorm");
    flag(stream, "swiglu", net->gated);
    flag(stream, "disable-bias-linear", !net->mlp_bias && !net->output_bias);
    flag(stream, "add-qkv-bias", net->qkv_bias && !net->mlp_bias);
    flag(stream, "untie-embeddings-and-output-weights", !net->tied);
    if (net->experts > 0) {
        number(stream, "num-experts", net->experts);
        number(stream, "moe-router-topk", net->experts_per_token);
        number(stream, "moe-ffn-hidden-size", net->expert_ffn);
        fprintf(stream, "--moe-token-dispatcher-type alltoall\n--moe-grouped-gemm\n");
    }
}

static void write_degrees(const struct nw_emission *emission, FILE *stream)
{
    const struct nw_layout *layout = &emission->step->layout;
    const int virtual_stages = nw_layout_virtual_stages(layout), pp = nw_layout_pp(layout);

    number(stream, "tensor-model-parallel-size", (uint64_t)nw_layout_tp(layout));
    number(stream, "pipeline-model-parallel-size", (uint64_t)pp);
    number(stream, "context-parallel-size", (uint64_t)nw_layout_cp(layout));
    if (emission->job.net.experts > 0)
        number(stream, "expert-model-parallel-size", (uint64_t)nw_layout_ep(layout));
    if (virtual_stages > 1)
        number(stream, "num-layers-per-virtual-pipeline-stage",
               emission->job.net.layers / (uint64_t)(pp * virtual_stages));
    flag(stream, "sequence-parallel",
         layout->parallel.sequence_parallel && nw_layout_tp(layout) > 1);
}

static void write_training(const struct nw_emission *emission, FILE *stream)
{
    const struct nw_job *job = &emission->job;
    const bool distributed = !nw_emit_is(emission, "ddp");

    number(stream, "micro-batch-size", emission->step->micro_batch);
    number(stream, "global-batch-size", emission->step->global_batch);
    flag(stream, "bf16", job->precision->half && strcmp(job->precision->name, "fp16") != 0);
    flag(stream, "fp16", strcmp(job->precision->name, "fp16") == 0);
    if (strcmp(job->precision->name, "fp8") == 0)
        fprintf(stream, "--fp8-format hybrid\n");
    flag(stream, "use-flash-attn", job->flash);
    flag(stream, "use-distributed-optimizer", distributed);
    flag(stream, "overlap-grad-reduce", true);
    flag(stream, "overlap-param-gather", distributed);
    if (emission->bucket_bytes > 0) /* in elements of the reduced type */
        number(
            stream, "ddp-bucket-size",
            (uint64_t)(emission->bucket_bytes / (job->reduce_bytes > 0 ? job->reduce_bytes : 4)));
    if (job->recompute == NW_RECOMPUTE_FULL)
        fprintf(stream, "--recompute-granularity full\n--recompute-method uniform\n"
                        "--recompute-num-layers 1\n");
    else if (job->recompute == NW_RECOMPUTE_SELECTIVE)
        fprintf(stream, "--recompute-granularity selective\n");
}

nw_rc nw_emit_megatron(const struct nw_emission *emission, FILE *stream)
{
    write_shape(emission, stream);
    write_degrees(emission, stream);
    write_training(emission, stream);
    return NW_OK;
}
