/* Public. Every constant that the model assumes, in one place: at most twelve physical ones, and
 * beside them the errors of what is derived, extrapolated or assumed. What a framework does by
 * default is no constant (model/profile.h), nor is what a datasheet says (topo/gpus.csv). A result
 * says which of them it used (nw_assumed).
 */
#ifndef NW_MODEL_CONSTANTS_H
#define NW_MODEL_CONSTANTS_H

#include <stdint.h>

#include "base/err.h"

/* X(key, value, unit, what it is, source, how the suite measures it, sensitivity)
 * Sensitivity: points of per cent that the medians of ci/validate's claims change by when the
 * constant is 10 % lower and 10 % higher: scaling ratio · absolute, anchored · from specifications.
 */
#define NW_CONSTANT_MAP(X)                                                                         \
    X(GEMM_SHARE, 0.97, "of the best",                                                             \
      "matrix products of a training step over the best product that the GPU was seen to reach, "  \
      "its power limit aside",                                                                     \
      "published steps of 60 sources, A100 and Hopper",                                            \
      "bench --cases gemm, 30 s, over the catalogue (or given: --gemm-tflops)",                    \
      "-0.01 0.00 · 0.00 -0.20 · +3.51 +2.11")                                                     \
    X(ATTENTION_SHARE, 0.75, "of products",                                                        \
      "rate of a fused attention core of the best kernels (cuDNN) at heads of 128",                \
      "88 measured cores (A100 PCIe, B200): 0.65-0.85; published steps of long sequences",         \
      "--measured-step of a long sequence", "0.00 0.00 · +0.03 +0.10 · +0.11 +0.49")               \
    X(HBM_SHARE, 0.85, "of datasheet", "memory bandwidth that fused kernels and updates reach",    \
      "DRAM refresh and turnaround: 0.80-0.90 in published triads",                                \
      "bench --cases d2d over the datasheet (or given: --hbm)",                                    \
      "-0.01 -0.02 · +0.18 -0.27 · +1.05 -0.40")                                                   \
    X(LAUNCH_NS, 9e3, "ns", "the CPU's time to launch one kernel through a framework",             \
      "600 published steps of small models: 3.2 ms a layer of 350 kernels",                        \
      "bench --cases gemm at the smallest size, host time",                                        \
      "0.00 0.00 · +0.42 -0.46 · +0.09 +1.08")                                                     \
    X(RUNTIME_BYTES, 2.5 * 1024 * 1024 * 1024, "bytes",                                            \
      "memory of the CUDA context and the framework's libraries, per GPU, without NCCL's buffers", \
      "133 published rows that read nvidia-smi; without any one source: 2.25-2.5 GiB",             \
      "nvidia-smi of an idle framework, topo --from smi", "of memory only")                        \
    X(ALLOCATOR_SHARE, 0.11, "of allocated",                                                       \
      "what the framework's allocator holds beside what is in use: caches, holes",                 \
      "153 published rows of reserved memory or nvidia-smi; without any one source: 0.11",         \
      "reserved over allocated, as frameworks log it", "of memory only")                           \
    X(OVERLAP_LOSS, 0.45, "of hidden time",                                                        \
      "communication behind computation that still shows up (shared SMs and memory)",              \
      "203 published scaling pairs, held out by source: 0.4-0.5", "bench --cases overlap",         \
      "0.00 -0.02 · +0.03 +0.03 · +0.13 +0.09")                                                    \
    X(FUSED_LOSS, 0.10, "of hidden time",                                                          \
      "the same where it is sent in chunks or with few SMs (Megatron-Core, XLA)",                  \
      "80 published pairs of Megatron-Core: 0-0.2", "bench --cases overlap, few channels",         \
      "-0.01 -0.01 · -0.02 0.00 · 0.00 0.00")                                                      \
    X(JITTER, 0.005, "per doubling",                                                               \
      "of the step, waiting for the slowest, per doubling of the nodes",                           \
      "published pairs whose messages are hidden: 0.4-1.0 %",                                      \
      "p95 over median of a collective's samples", "-0.03 0.00 · -0.01 +0.01 · 0.00 -0.05")        \
    X(LINK_SHARE, 0.79, "of datasheet",                                                            \
      "bus bandwidth of a ring inside a node over the link's one-way rate",                        \
      "16 published NVLink boards: 0.73-0.83 for messages of 256 MiB and more",                    \
      "bench --cases coll on one node", "-0.01 -0.01 · +0.16 -0.05 · +0.14 -0.13")                 \
    X(WIRE_SHARE, 0.90, "of line rate",                                                            \
      "bus bandwidth of a ring between nodes over the line rate of a node's NICs",                 \
      "10 published fabrics: InfiniBand, RoCE 0.88-0.98, Slingshot 0.73, TCPX 0.57",               \
      "bench --cases coll on all nodes", "-0.01 -0.01 · +0.06 -0.04 · +0.11 0.00")                 \
    X(WIRE_LATENCY_NS, 12e3, "ns", "one hop of a small message between nodes",                     \
      "11 published fabrics: InfiniBand 5-12 us, RoCE 17, Slingshot 9-27, EFA 25, TCPX 33",        \
      "bench --cases coll on all nodes, smallest size", "-0.01 0.00 · -0.02 0.00 · 0.00 0.00")

/* X(key, value, unit, what it is, source) */
#define NW_ERROR_MAP(X)                                                                            \
    X(RATE_ERROR_ASSUMED, 0.25, "±", "error of compute time from the catalogue's rates",           \
      "1571 published steps, sources held out: 90 % within 25 %, as shipped within 19 %")          \
    X(LEAST_ERROR, 0.20, "±", "least error of a step of which nothing like it was measured",       \
      "1571 published steps as shipped: 90 % within 19 %, whatever their bottleneck")              \
    X(RATE_ERROR_STATED, 0.15, "±", "error of compute time from a rate measured in another step",  \
      "712 published steps of hidden 4096 and more, each anchored by others of its source: 90 % "  \
      "within 16 %")                                                                               \
    X(ANCHOR_ERROR, 0.20, "±",                                                                     \
      "error of compute time with a factor found on another job of that software and GPU",         \
      "1469 published rows, another run of the same machine and software measured: 90 % within "   \
      "19 %")                                                                                      \
    X(OVERLAP_LOSS_ERROR, 0.25, "±", "error of the overlap loss",                                  \
      "modes of published frameworks: 0.05-0.2 fused, 0.45 PyTorch, 1 serial")                     \
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
#define X(key, value, unit, text, source, measured_by, sensitivity) NW_CONSTANT_##key,
    NW_CONSTANT_MAP(X)
#undef X
        NW_CONSTANT_PHYSICAL_COUNT, /* what follows are errors */
    NW_CONSTANT_LAST_PHYSICAL = NW_CONSTANT_PHYSICAL_COUNT - 1,
#define X(key, value, unit, text, source) NW_CONSTANT_##key,
    NW_ERROR_MAP(X)
#undef X
        NW_CONSTANT_COUNT
} nw_constant;

struct nw_constant_row {
    const char *key, *unit, *text, *source;
    const char *measured_by, *sensitivity; /* of the physical ones; NULL: an error */
    double value;
};
extern const struct nw_constant_row nw_constants[NW_CONSTANT_COUNT];

/* The values in use: the table's, with what the user or a fit put in their place. */
struct nw_assumptions {
    double value[NW_CONSTANT_COUNT];
    uint64_t measured; /* bit i: not assumed, the results say so */
    uint64_t stated;   /* bit i: the user says so */
};
void nw_assumptions_reset(struct nw_assumptions *assumptions);
/* "KEY=VALUE", a key of the table in any case; NW_EUSAGE names the keys. */
nw_rc nw_assumptions_set(struct nw_assumptions *assumptions, const char *text);

/* A set of constants that a result used. */
typedef uint64_t nw_assumed;
#define NW_ASSUMES(key) ((nw_assumed)1 << NW_CONSTANT_##key)

#endif
