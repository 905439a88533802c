/* Arguments of Megatron-LM (megatron/training/arguments.py), one a line, for
 * `torchrun … pretrain_gpt.py $(cat megatron.args) …`: shape, degrees, batch, precision, what is
 * overlapped and recomputed. Data, tokenizer and learning rate are not ours to choose. */
#include <string.h>

#include "model/emit.h"

/* What a net has and pretrain_gpt.py has no argument for. */
static const char *missing_of(const struct nw_transformer *net)
{
    const struct {
        bool has;
        const char *what;
    } rows[] = {
        {net->stated_parameters > 0 || net->encoder, "anything but decoders"},
        {net->alibi, "ALiBi"},
        {net->parallel, "attention and MLP in parallel"},
        {net->embedding_norm, "a norm behind the embeddings"},
        {net->embedding_size > 0 && net->embedding_size != net->hidden,
         "embeddings of a width of their own"},
        {net->post_norm, "norms behind the blocks"},
        {net->four_norms, "norms behind attention and MLP"},
        {net->norm_free, "norms without weights"},
        {net->wide_query_norm, "one norm over all heads"},
        {net->head_bias, "a bias of the output layer"},
        {net->classes > 0, "a classifier"},
        {net->mlp_bias ? !net->qkv_bias || !net->output_bias : net->output_bias,
         "biases of some layers only"},
        /* Interleaved with experts, the dense ones are half or more; which is not in the shape. */
        {net->experts > 0 && 2 * net->dense_layers >= net->layers,
         "layers without experts but the first"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].has)
            return rows[i].what;
    return NULL;
}

static nw_rc check_experts(const struct nw_emission *emission)
{
    const struct nw_layout *layout = &emission->step->layout;
    const struct nw_transformer *net = &emission->job.net;

    if (net->experts == 0 || nw_layout_tp(layout) == 1)
        return NW_OK;
    if (net->mlp_bias) /* Megatron-Core: only with expert-tensor-parallel-size 1 */
        return nw_fail(NW_EUSAGE,
                       "Megatron-LM does not cut experts with biases, those of %s; accepted: "
                       "--tp 1",
                       net->name);
    if (!layout->parallel.sequence_parallel) /* its moe_layer.py refuses to train them */
        return nw_fail(NW_EUSAGE, "Megatron-LM trains experts with --tp only with "
                                  "--sequence-parallel; accepted: yes");
    return NW_OK;
}

/* Layers of a piece of the pipeline. Where they cannot be dealt evenly, embeddings and output layer
 * count as one each. 0: not then either. */
static uint64_t layers_of_piece(const struct nw_emission *emission, bool *with_ends_out)
{
    const struct nw_layout *layout = &emission->step->layout;
    const uint64_t pieces =
        (uint64_t)nw_layout_pp(layout) * (uint64_t)nw_layout_virtual_stages(layout);
    const uint64_t layers = emission->job.net.layers;

    *with_ends_out = layers % pieces != 0;
    if (!*with_ends_out)
        return layers / pieces;
    return (layers + 2) % pieces == 0 ? (layers + 2) / pieces : 0;
}

static nw_rc check_pipeline(const struct nw_emission *emission)
{
    const struct nw_layout *layout = &emission->step->layout;
    const unsigned long long layers = emission->job.net.layers;
    bool with_ends;

    if (layers_of_piece(emission, &with_ends) > 0)
        return NW_OK;
    return nw_fail(NW_EUSAGE,
                   "Megatron-LM cannot deal %llu layers to --pp %d x --virtual-stages %d evenly; "
                   "accepted: a product that divides %llu, or %llu with embeddings and output "
                   "layer",
                   layers, nw_layout_pp(layout), nw_layout_virtual_stages(layout), layers,
                   layers + 2);
}

/* --optimizer-cpu-offload stands on the distributed optimizer. */
static nw_rc check_offload(const struct nw_emission *emission)
{
    const struct nw_offload *offload = &emission->job.offload;

    if (offload->parameters != NW_OFFLOAD_NONE || offload->activations != NW_OFFLOAD_NONE)
        return nw_fail(
            NW_EUSAGE, "the arguments for Megatron-LM are written without %s; accepted: none",
            offload->parameters != NW_OFFLOAD_NONE ? "--offload-params" : "--offload-activations");
    if (offload->optimizer == NW_OFFLOAD_NVME)
        return nw_fail(NW_EUSAGE, "Megatron-LM has no --offload-optimizer nvme; accepted: none or "
                                  "cpu");
    if (offload->optimizer != NW_OFFLOAD_NONE && nw_emit_is(emission, "ddp"))
        return nw_fail(NW_EUSAGE, "Megatron-LM offloads its distributed optimizer only; accepted: "
                                  "--strategy distopt");
    return NW_OK;
}

/* Its distributed optimizer takes Adam only (core/optimizer/distrib_optimizer.py). */
static nw_rc check_optimizer(const struct nw_emission *emission)
{
    const char *name = emission->job.optimizer->name;

    if (nw_emit_is_adam(emission))
        return NW_OK;
    if (strcmp(name, "sgd") != 0 && strcmp(name, "sgd-plain") != 0)
        return nw_fail(NW_EUSAGE,
                       "the arguments for Megatron-LM are written without --optimizer %s; "
                       "accepted: adam, adamw, sgd or sgd-plain",
                       name);
    if (!nw_emit_is(emission, "ddp"))
        return nw_fail(NW_EUSAGE,
                       "Megatron-LM's distributed optimizer has no --optimizer %s; accepted: adam "
                       "or adamw, or --strategy ddp",
                       name);
    return NW_OK;
}

/* Gradients are reduced in the buffer that keeps them. */
static nw_rc check_types(const struct nw_emission *emission)
{
    const struct nw_job *job = &emission->job;

    if (job->precision->half && nw_job_master_bytes(job) <= 0)
        return nw_fail(NW_EUSAGE, "Megatron-LM's optimizer keeps an fp32 copy of the weights; "
                                  "accepted: --master fp32");
    if (nw_job_reduce_bytes(job) != nw_job_gradient_bytes(job))
        return nw_fail(NW_EUSAGE, "Megatron-LM reduces gradients in the type in which it keeps "
                                  "them; accepted: --reduce same");
    return NW_OK;
}

nw_rc nw_emit_megatron_check(const struct nw_emission *emission)
{
    const struct nw_transformer *net = &emission->job.net;
    const char *missing = missing_of(net);

    if (!nw_emit_is(emission, "ddp distopt zero1"))
        return nw_fail(NW_EUSAGE,
                       "Megatron-LM has no %s; accepted: --strategy ddp, distopt or "
                       "zero1 (its distributed optimizer)",
                       emission->step->strategy->name);
    if (missing != NULL)
        return nw_fail(NW_EUSAGE,
                       "pretrain_gpt.py has no %s, as %s needs; accepted: models of the GPT, "
                       "Llama, Qwen, Mixtral and DeepSeek kinds",
                       missing, net->name);
    if (emission->job.lora.rank > 0)
        return nw_fail(NW_EUSAGE, "pretrain_gpt.py has no adapters; accepted: a plan without "
                                  "--lora-rank");
    NW_TRY(check_experts(emission));
    NW_TRY(check_pipeline(emission));
    NW_TRY(check_optimizer(emission));
    NW_TRY(check_types(emission));
    return check_offload(emission);
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

static void write_attention(const struct nw_transformer *net, FILE *stream)
{
    number(stream, "num-attention-heads", net->heads);
    if (net->kv_rank > 0) { /* --qk-layernorm: the norms of both latents */
        fprintf(stream, "--multi-latent-attention\n--qk-layernorm\n");
        if (net->query_rank > 0)
            number(stream, "q-lora-rank", net->query_rank);
        number(stream, "kv-lora-rank", net->kv_rank);
        number(stream, "qk-head-dim", net->head_size);
        number(stream, "qk-pos-emb-head-dim", net->rope_head_size);
        number(stream, "v-head-dim", net->value_head_size);
        return;
    }
    if (net->head_size * net->heads != net->hidden)
        number(stream, "kv-channels", net->head_size);
    if (net->kv_heads != net->heads) {
        fprintf(stream, "--group-query-attention\n");
        number(stream, "num-query-groups", net->kv_heads);
    }
    flag(stream, "qk-layernorm", net->query_norm);
    if (net->sinks)
        fprintf(stream, "--softmax-type learnable\n");
}

static void write_experts(const struct nw_transformer *net, FILE *stream)
{
    const unsigned long long dense = net->dense_layers, all = net->layers;

    number(stream, "num-experts", net->experts);
    number(stream, "moe-router-topk", net->experts_per_token);
    number(stream, "moe-ffn-hidden-size", net->expert_ffn);
    if (dense > 0) /* one word without blanks: a list in Python */
        fprintf(stream, "--moe-layer-freq ([0]*%llu+[1]*%llu)\n", dense, all - dense);
    if (net->shared_ffn > 0)
        number(stream, "moe-shared-expert-intermediate-size", net->shared_ffn);
    flag(stream, "moe-shared-expert-gate", net->shared_gate);
    if (net->router_bias && !net->mlp_bias) /* with biases everywhere the router has one too */
        fprintf(stream, "--moe-router-score-function sigmoid\n--moe-router-enable-expert-bias\n");
    fprintf(stream, "--moe-token-dispatcher-type alltoall\n--moe-grouped-gemm\n");
}

static void write_shape(const struct nw_emission *emission, FILE *stream)
{
    const struct nw_transformer *net = &emission->job.net;
    const uint64_t sequence = emission->job.sequence;

    number(stream, "num-layers", net->layers);
    number(stream, "hidden-size", net->hidden);
    number(stream, "ffn-hidden-size", net->ffn);
    write_attention(net, stream);
    number(stream, "seq-length", sequence);
    number(stream, "max-position-embeddings", net->positions > 0 ? net->positions : sequence);
    fprintf(stream, "--position-embedding-type %s\n",
            net->positions > 0 ? "learned_absolute" : "rope");
    fprintf(stream, "--normalization %s\n", net->norm_bias ? "LayerNorm" : "RMSNorm");
    flag(stream, "swiglu", net->gated);
    flag(stream, "disable-bias-linear", !net->mlp_bias);
    flag(stream, "add-qkv-bias", net->qkv_bias && !net->mlp_bias);
    flag(stream, "untie-embeddings-and-output-weights", !net->tied);
    if (net->experts > 0)
        write_experts(net, stream);
}

static void write_degrees(const struct nw_emission *emission, FILE *stream)
{
    const struct nw_layout *layout = &emission->step->layout;
    const int copies = nw_layout_reduce_count(layout) / nw_layout_shard_count(layout);
    bool with_ends;
    const uint64_t piece = layers_of_piece(emission, &with_ends);

    number(stream, "tensor-model-parallel-size", (uint64_t)nw_layout_tp(layout));
    number(stream, "pipeline-model-parallel-size", (uint64_t)nw_layout_pp(layout));
    number(stream, "context-parallel-size", (uint64_t)nw_layout_cp(layout));
    if (emission->job.net.experts > 0)
        number(stream, "expert-model-parallel-size", (uint64_t)nw_layout_ep(layout));
    flag(stream, "account-for-embedding-in-pipeline-split", with_ends);
    flag(stream, "account-for-loss-in-pipeline-split", with_ends);
    if (nw_layout_virtual_stages(layout) > 1)
        number(stream, "num-layers-per-virtual-pipeline-stage", piece);
    if (copies > 1 && !nw_emit_is(emission, "ddp"))
        number(stream, "num-distributed-optimizer-instances", (uint64_t)copies);
    flag(stream, "sequence-parallel",
         layout->parallel.sequence_parallel && nw_layout_tp(layout) > 1);
}

/* Unasked, bf16 keeps fp32 gradients and fp16 its own. */
static void write_types(const struct nw_emission *emission, FILE *stream)
{
    const struct nw_job *job = &emission->job;
    const bool fp16 = nw_emit_is_fp16(emission), brain = job->precision->half && !fp16;
    const bool wide = nw_job_gradient_bytes(job) >= 4;

    flag(stream, "bf16", brain);
    flag(stream, "fp16", fp16);
    if (job->precision->units == NW_UNITS_FP8)
        fprintf(stream, "--fp8-format hybrid\n");
    flag(stream, "accumulate-allreduce-grads-in-fp32", fp16 && wide);
    flag(stream, "grad-reduce-in-bf16", brain && !wide);
    if (!nw_emit_is_adam(emission))
        fprintf(stream, "--optimizer sgd\n");
    if (strcmp(job->optimizer->name, "sgd-plain") == 0)
        fprintf(stream, "--sgd-momentum 0\n");
}

static void write_training(const struct nw_emission *emission, FILE *stream)
{
    const struct nw_job *job = &emission->job;
    const bool distributed = !nw_emit_is(emission, "ddp");

    number(stream, "micro-batch-size", emission->step->micro_batch);
    number(stream, "global-batch-size", emission->step->global_batch);
    write_types(emission, stream);
    fprintf(stream, job->flash ? "--use-flash-attn\n" : "--attention-backend unfused\n");
    flag(stream, "use-distributed-optimizer", distributed);
    if (job->offload.optimizer == NW_OFFLOAD_CPU)
        fprintf(stream, "--optimizer-cpu-offload\n--use-precision-aware-optimizer\n");
    flag(stream, "overlap-grad-reduce", true);
    flag(stream, "overlap-param-gather", distributed);
    if (emission->bucket_bytes > 0) /* in elements */
        number(stream, "ddp-bucket-size",
               (uint64_t)(emission->bucket_bytes / nw_job_reduce_bytes(job)));
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
