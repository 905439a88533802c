/* Private to tests/fake/. The pretended machine, read from a text file
 * tests/fake/machines/NAME.machine (the format: tests/fake/README.md): what its GPUs say of
 * themselves, and how long everything takes.
 *
 * One constant table per process, read at the first call of any double. A mistake in the file ends
 * the process with exit code 2 and a sentence: doubles that guess would be worse than none.
 */
#ifndef NW_TESTS_FAKE_MACHINE_H
#define NW_TESTS_FAKE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FK_MAX_GPUS       16
#define FK_MAX_LINKS      18
#define FK_MAX_LANES      16
#define FK_MAX_CONDITIONS 6

/* Time of a transfer: alpha + bytes / rate. */
struct fk_path {
    double alpha_us, bytes_per_s;
};

/* X(id, key): the collectives, keyed as in collectives/coll.h */
#define FK_COLL_MAP(X)                                                                             \
    X(FK_ALL_REDUCE, "all_reduce")                                                                 \
    X(FK_ALL_GATHER, "all_gather")                                                                 \
    X(FK_REDUCE_SCATTER, "reduce_scatter")                                                         \
    X(FK_BROADCAST, "broadcast")                                                                   \
    X(FK_REDUCE, "reduce")                                                                         \
    X(FK_ALLTOALL, "alltoall")                                                                     \
    X(FK_GATHER, "gather")                                                                         \
    X(FK_SCATTER, "scatter")                                                                       \
    X(FK_SENDRECV, "sendrecv")

typedef enum {
#define X(id, key) id,
    FK_COLL_MAP(X)
#undef X
        FK_COLL_COUNT
} fk_coll;
extern const char *const fk_coll_names[FK_COLL_COUNT];

/* A way through the machine (lane) or between machines (wire), taken when all its conditions on the
 * environment hold; of several the first. Rates are bus bandwidths as nccl-tests has them. */
struct fk_lane {
    char name[24];
    char when[FK_MAX_CONDITIONS][96]; /* "NCCL_P2P_DISABLE=1", "NCCL_ALGO=Ring|RING" */
    int when_count;
    struct fk_path path[FK_COLL_COUNT];
    char refuse[160]; /* all-reduce is an invalid usage, with this text; "" */
};

struct fk_gpu {
    char name[64]; /* "NVIDIA H100 80GB HBM3"; the doubles put SIMULATED in front */
    char product[16];
    int bus; /* PCI f00d:<bus>:00.0 */
    uint64_t memory_bytes, reserved_bytes, l2_bytes;
    int capability, sm_count, shared_optin_bytes;
    int clock_mhz, max_clock_mhz, idle_clock_mhz, memory_clock_mhz, memory_bus_bits;
    double power_w, idle_power_w, power_limit_w, energy_j;
    int temperature_c, idle_temperature_c;
    uint64_t throttle, idle_throttle; /* NVML's bits, under load and idle */
    int pcie_generation, pcie_idle_generation, pcie_max_generation, pcie_width, pcie_max_width;
    double power_default_w; /* the product's; 0: power_limit */
    uint64_t bar1_bytes;    /* 0: not supported */
    int ecc, persistence, replays, link_errors, retired, remap_pending;
    int fabric;    /* NVML's state, 3: completed; 0: none */
    int answer_ms; /* how long the driver takes to tell of the NVLinks */
    int mig;       /* 1, 0; -1: not supported */
    int links;     /* NVLinks of the model */
    int link_version, link_mb_per_s;
    bool link_up[FK_MAX_LINKS];
    int share; /* GPUs with the same number > 0 share `shared` bytes/s of PCIe */
    /* Times: of the copy engines, of kernels by memory and arithmetic. */
    struct fk_path h2d, d2h, pageable, d2d, p2p, staged;
    double memory_efficiency, tensor_flops, cublas_factor, kernel_us;
};

struct fk_machine {
    char name[64], driver[32];
    int cuda_version; /* 13000 */
    int gpu_count, switch_count;
    bool peer; /* GPUs reach each other's memory */
    double launch_us, shared_bytes_per_s, simulate_factor;
    struct fk_gpu gpus[FK_MAX_GPUS];
    struct fk_lane lanes[FK_MAX_LANES], wires[FK_MAX_LANES];
    int lane_count, wire_count;
};

/* $FAKE_MACHINE: a path, or a name of a file beside which FAKE_MACHINES points to. */
const struct fk_machine *fk_machine(void);
/* The first whose conditions hold in this process's environment. */
const struct fk_lane *fk_machine_lane(const struct fk_machine *machine);
const struct fk_lane *fk_machine_wire(const struct fk_machine *machine);

/* A GPU's UUID on this host: the same in all processes of a host, another on every host. 16 bytes.
 */
void fk_gpu_uuid(const struct fk_machine *machine, int gpu, unsigned char uuid[16]);
/* The physical GPUs that CUDA_VISIBLE_DEVICES leaves, in its order; how many. */
int fk_visible_gpus(const struct fk_machine *machine, int gpus_out[FK_MAX_GPUS]);

/* For every double: one sentence on stderr, exit 2. */
void fk_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
