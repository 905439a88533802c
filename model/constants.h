/* Public. Every constant that the model assumes, in one place: key, value, unit, meaning, source.
 * A result says which of them it used (nw_assumed).
 */
#ifndef NW_MODEL_CONSTANTS_H
#define NW_MODEL_CONSTANTS_H

#include <stdint.h>

#include "base/err.h"

#define NW_CONSTANTS_VERSION 2

/* X(key, value, unit, what it is, source) */
#define NW_CONSTANT_MAP(X)                                                                         \
    X(GEMM_SHARE, 0.97, "of the best",                                                             \
      "matrix products of a training step over the best product seen, for power and heat",         \
      "sustained over burst on A100 PCIe: 0.93 (697 shapes against the best)")                     \
    X(GEMM_DEPTH, 130, "elements",                                                                 \
      "depth k at which a product loses half: a tile fills its pipeline and writes its result",    \
      "697 measured shapes (A100 PCIe, B200): 100-200 on either GPU alone")                        \
    X(ATTENTION_SHARE, 0.75, "of sustained products",                                              \
      "what a fused attention core reaches at heads of 128",                                       \
      "88 measured cores (A100 PCIe, B200)")                                                       \
    X(LAUNCH_NS, 10000, "ns", "the CPU's time to launch a kernel from a framework",                \
      "published small models")                                                                    \
    X(RUNTIME_BYTES, 2.5 * 1024 * 1024 * 1024, "bytes",                                            \
      "memory of the CUDA context and the framework's libraries, per GPU, without NCCL's buffers", \
      "133 published rows that read nvidia-smi; without any one source: 2.25-2.5 GiB")             \
    X(ALLOCATOR_SHARE, 0.11, "of allocated",                                                       \
      "what the framework's allocator holds beside what is in use: caches, holes",                 \
      "153 published rows of reserved memory or nvidia-smi; without any one source: 0.11")         \
    X(EFFICIENCY_AMPERE, 0.52, "of peak", "executed FLOP/s of a training step, A100 class",        \
      "median of 12 published sources (344 rows)")                                                 \
    X(EFFICIENCY_HOPPER, 0.40, "of peak", "executed FLOP/s of a training step, H100 class",        \
      "median of 10 published sources (155 rows)")                                                 \
    X(EFFICIENCY_OTHER, 0.40, "of peak", "executed FLOP/s of a training step, other GPUs",         \
      "as the H100 class; too few published rows")                                                 \
    X(STEP_OF_GEMM, 0.80, "of GEMM rate",                                                          \
      "rate of a training step over the rate of its matrix products",                              \
      "stack factors 1.1-1.35 of published steps")                                                 \
    X(RATE_ERROR_ASSUMED, 0.35, "±", "error of compute time from an assumed rate",                 \
      "828 published rows held out by source: median 14 %, 90 % within 35 %")                      \
    X(RATE_ERROR_STATED, 0.10, "±", "error of compute time from a rate measured in a step",        \
      "203 published pairs that differ in GPU count: 92 % within 10 %")                            \
    X(OVERLAP_LOSS, 0.45, "of hidden time",                                                        \
      "communication behind computation that still shows up (shared SMs and memory)",              \
      "203 published scaling pairs, held out by source: 0.4-0.5")                                  \
    X(FUSED_LOSS, 0.10, "of hidden time",                                                          \
      "the same where it is sent in chunks or with few SMs (Megatron-Core, XLA)",                  \
      "80 published pairs of Megatron-Core: 0-0.2")                                                \
    X(JITTER, 0.005, "per doubling",                                                               \
      "of the step, waiting for the slowest, per doubling of the nodes",                           \
      "published pairs whose messages are hidden: 0.4-1.0 %")                                      \
    X(OVERLAP_LOSS_ERROR, 0.25, "±", "error of the overlap loss",                                  \
      "modes of published frameworks: 0.05-0.2 fused, 0.45 PyTorch, 1 serial")                     \
    X(DDP_BUCKET_BYTES, 25.0 * 1024 * 1024, "bytes", "gradient bucket of ddp",                     \
      "PyTorch DistributedDataParallel bucket_cap_mb = 25")                                        \
    X(DDP_FIRST_BUCKET_BYTES, 1024.0 * 1024, "bytes", "first gradient bucket of ddp",              \
      "PyTorch c10d kDefaultFirstBucketBytes")                                                     \
    X(ZERO_BUCKET_ELEMENTS, 5e8, "elements", "reduce and gather bucket of zero1 and zero2",        \
      "DeepSpeed reduce_bucket_size, allgather_bucket_size")                                       \
    X(ZERO3_GATHER_ELEMENTS, 5e7, "elements", "largest gather of zero3",                           \
      "DeepSpeed stage3_prefetch_bucket_size")                                                     \
    X(ZERO3_LIVE_ELEMENTS, 1e9, "elements", "gathered weights that zero3 keeps at a time",         \
      "DeepSpeed stage3_max_live_parameters")                                                      \
    X(HBM_SHARE, 0.85, "of datasheet", "memory bandwidth that an update reaches",                  \
      "DRAM refresh and turnaround: 0.80-0.90 in published triads")                                \
    X(LINK_SHARE, 0.79, "of datasheet",                                                            \
      "bus bandwidth of a ring inside a node over the link's one-way rate",                        \
      "16 published NVLink boards: 0.73-0.83 for messages of 256 MiB and more")                    \
    X(PCIE_SHARE, 0.38, "of datasheet", "the same for GPUs that meet over PCIe",                   \
      "published nodes of 4 and 8: 0.26-0.42, one of L40S 0.05-0.16; pairs 1.6 times that")        \
    X(WIRE_SHARE, 0.90, "of line rate",                                                            \
      "bus bandwidth of a ring between nodes over the line rate of a node's NICs",                 \
      "10 published fabrics: InfiniBand, RoCE 0.88-0.98, Slingshot 0.73, TCPX 0.57")               \
    X(LINK_LATENCY_NS, 1.1e3, "ns", "one hop of a small message inside a node",                    \
      "11 published boards: 0.82-1.5 us; NCCL 2.30 tuning.cc: 0.6-1 us")                           \
    X(WIRE_LATENCY_NS, 12e3, "ns", "one hop of a small message between nodes",                     \
      "11 published fabrics: InfiniBand 5-12 us, RoCE 17, Slingshot 9-27, EFA 25, TCPX 33")        \
    X(DERIVED_ERROR, 0.22, "±", "error of a collective derived from another",                      \
      "published curves, gathers and all-reduces of one node hidden: 90 % within 21 %")            \
    X(PAIRS_ERROR, 0.50, "±", "error of all-to-all and send/recv derived from rings",              \
      "published all-to-all curves hidden: 90 % within 54 % from 1 MiB on")                        \
    X(IMPORT_ERROR, 0.08, "±", "error of an imported time that has no interval",                   \
      "341 published pairs in place and out of place: 90 % within 8 %")                            \
    X(RANKS_ERROR, 0.25, "±", "error of a rank count that was not measured",                       \
      "published NVLink boards, each rank count hidden: 90 % within 25 %")                         \
    X(NODES_ERROR, 0.35, "±", "error of a node count that was not measured",                       \
      "published curves of 2 to 540 nodes, a node count hidden: 90 % within 30 % from 64 MiB on")  \
    X(LINK_ERROR, 0.40, "±", "error of communication from an NVLink rate, not from a curve",       \
      "published boards by their datasheet alone: 90 % within 36 % from 64 MiB on, 48 % in all")   \
    X(PCIE_ERROR, 1.50, "±", "the same of GPUs that meet over PCIe, and of their rank counts",     \
      "published nodes of four cards: 80 % within 117 %; host bridges are not in a datasheet")     \
    X(WIRE_ERROR, 0.75, "±", "the same between nodes, from the line rate of the NICs",             \
      "published fabrics by their line rate: 90 % within 74 % from 64 MiB on")                     \
    X(HOP_ERROR, 1.30, "±", "error of the hops between nodes where only others were measured",     \
      "published curves hidden, below 1 MiB: 80-90 % within 110-150 %")

typedef enum {
#define X(key, value, unit, text, source) NW_CONSTANT_##key,
    NW_CONSTANT_MAP(X)
#undef X
        NW_CONSTANT_COUNT
} nw_constant;

struct nw_constant_row {
    const char *key, *unit, *text, *source;
    double value;
};
extern const struct nw_constant_row nw_constants[NW_CONSTANT_COUNT];

/* The values in use: the table's, with what the user or a fit put in their place. */
struct nw_assumptions {
    double value[NW_CONSTANT_COUNT];
};
void nw_assumptions_reset(struct nw_assumptions *assumptions);
/* "KEY=VALUE", a key of the table in any case; NW_EUSAGE names the keys. */
nw_rc nw_assumptions_set(struct nw_assumptions *assumptions, const char *text);

/* A set of constants that a result used. */
typedef uint64_t nw_assumed;
#define NW_ASSUMES(key) ((nw_assumed)1 << NW_CONSTANT_##key)

#endif
