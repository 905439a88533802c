/* Public. Memory of one GPU, part by part, at the moment when it needs most. Every formula stands
 * in model/memory.c or memory_*.c with its source. Plain data, nothing owned.
 *
 *     struct nw_memory memory;
 *     nw_assumed assumed = 0;
 *     nw_memory_of(&job, &layout, micro_batch, count, &platform.assumptions, &memory, &assumed);
 *     memory.total_bytes, nw_peak_name(memory.peak) …
 */
#ifndef NW_MODEL_MEMORY_H
#define NW_MODEL_MEMORY_H

#include "model/layout.h"

typedef enum {
    NW_PEAK_FORWARD_END, /* all activations, the loss */
    NW_PEAK_BACKWARD,    /* a recomputed layer beside the gradients */
    NW_PEAK_UPDATE,      /* states, gradients, the update's copies */
} nw_peak_moment;

struct nw_memory { /* bytes of the GPU that needs most */
    double weights_bytes, gradients_bytes, optimizer_bytes;
    double activations_bytes; /* with the logits */
    double logits_bytes;      /* of which: logits and loss */
    double buffers_bytes;     /* communication buckets, gathered layers */
    double runtime_bytes;     /* CUDA context, NCCL, framework */
    double fragmentation_bytes;
    double allocated_bytes; /* what the framework's allocator reports: without runtime_bytes and
                               fragmentation_bytes */
    double total_bytes;     /* what nvidia-smi shows */
    double host_bytes;      /* of the CPU's memory, per GPU: offloaded parts */
    nw_peak_moment peak;
    int stage;          /* pipeline stage of this GPU */
    const char *policy; /* for people: what the framework was taken to keep */
};

struct nw_assumptions;

/* `micro_batch_count`: of one step; a pipeline stage keeps several at a time. `assumptions` NULL:
 * the table's. `assumed`: nw_assumed, what was used is added. */
void nw_memory_of(const struct nw_job *job, const struct nw_layout *layout, uint64_t micro_batch,
                  uint64_t micro_batch_count, const struct nw_assumptions *assumptions,
                  struct nw_memory *memory_out, uint64_t *assumed);

#endif
