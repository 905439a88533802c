/* Memory of one GPU. One function a part. */
#include "model/step.h"

#include <math.h>

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double nw_largest_unit(const struct nw_transformer *net)
{
    struct nw_tensors embedding, layer, head;

    nw_transformer_embedding(net, &embedding);
    nw_transformer_layer(net, &layer);
    nw_transformer_head(net, &head);
    return larger(larger((double)embedding.total, (double)layer.total), (double)head.total);
}

/* Kept for the backward pass by one layer. Plain MLP: Korthikanti et al. 2022, section 4.1,
 * sbh(34 + 5as/h) in 16 bit, of which 32 are 16 elements and 2 are dropout masks of a byte, written
 * out here for any MLP width and element size. Gated MLP without dropout: two norms, their outputs,
 * query, attention output (6h), key and value, and gate, up and their product (3f). */
static double layer_activations(const struct nw_job *job, double tokens)
{
    const struct nw_transformer *net = &job->net;
    const double e = job->precision->element_bytes, h = (double)net->hidden;
    const double f = (double)net->ffn, kv = (double)(net->kv_heads * net->head_size);
    const double scores = tokens * (double)net->heads * (double)job->sequence;
    double bytes = net->gated ? e * tokens * (6 * h + 2 * kv + 3 * f)
                              : e * tokens * (8 * h + 2 * f) + 2 * tokens * h;

    if (!job->flash) /* softmax output, dropout mask and output: 5as² per sequence in 16 bit */
        bytes += scores * (2 * e + 1);
    return bytes;
}

/* Logits in the working precision, their fp32 copy and its gradient (PyTorch cross-entropy). */
static double logits(const struct nw_job *job, double tokens)
{
    const double e = job->precision->element_bytes;

    return tokens * (double)job->net.vocab * (e < 4 ? e + 4 + 4 : 4 + 4);
}

/* Full checkpointing keeps each layer's input and, while it works, one whole layer (Chen et al.
 * 2016; Korthikanti et al. 2022, section 5: 2sbhL). */
static double activations(const struct nw_job *job, double tokens)
{
    const double layers = (double)job->net.layers, one = layer_activations(job, tokens);
    const double input = job->precision->element_bytes * tokens * (double)job->net.hidden;

    return job->recompute == NW_RECOMPUTE_FULL ? layers * input + one : layers * one;
}

/* States: Rajbhandari et al. 2020 (ZeRO), figure 1: (2 + 2 + K)Ψ with K = 12 for mixed-precision
 * Adam; the parts that a strategy cuts are divided by the number of GPUs. */
void nw_memory_of(const struct nw_job *job, const struct nw_layout *layout, uint64_t micro_batch,
                  uint64_t micro_batch_count, const struct nw_assumptions *assumptions,
                  struct nw_memory *memory_out, uint64_t *assumed)
{
    const struct nw_strategy *strategy = layout->strategy;
    const int rank_count = layout->rank_count;
    const double parameters = (double)nw_transformer_parameter_count(&job->net);
    const double tokens = (double)micro_batch * (double)job->sequence, n = rank_count;
    const double optimizer = job->optimizer->state_bytes + job->precision->master_bytes;
    struct nw_memory memory = {
        .weights_bytes =
            parameters * job->precision->element_bytes / (strategy->weights_sharded ? n : 1),
        .gradients_bytes = parameters * job->gradient_bytes / (strategy->gradients_sharded ? n : 1),
        .optimizer_bytes = parameters * optimizer / (strategy->optimizer_sharded ? n : 1),
        .logits_bytes = logits(job, tokens),
        .buffers_bytes = rank_count > 1 ? strategy->buffers(job, assumed) : 0,
        .runtime_bytes = nw_constants[NW_CONSTANT_RUNTIME_BYTES].value,
    };

    (void)micro_batch_count;
    (void)assumptions;
    *assumed |= NW_ASSUMES(RUNTIME_BYTES);
    memory.activations_bytes = activations(job, tokens) + memory.logits_bytes;
    memory.total_bytes = memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes +
                         memory.activations_bytes + memory.buffers_bytes + memory.runtime_bytes;
    *memory_out = memory;
}
