/* Private to bench/. What the cases on the ranks' GPUs share: a GPU made ready for work behind a
 * gate, test patterns in its memory, what all ranks' GPUs are, and one measurement from the gate to
 * the record.
 *
 * A rank that idles in a measurement takes part in its barriers and exchanges: everybody calls
 * everything in the same order. Failures of one rank's GPU are agreed on where nothing runs; in the
 * middle of a measurement they end the run, as those of a communicator do.
 *
 *     NW_TRY(nw_devices_open(bench, &devices));                    // collective
 *     struct nw_device_work work = {.queue = queue_copy, …};
 *     nw_device_work_init(&work, bench, my_turn ? &devices.own : NULL);
 *     NW_TRY(nw_device_measure(bench, &unit, &work));              // collective
 *     nw_devices_close(&devices);
 */
#ifndef NW_BENCH_DEVICE_WORK_H
#define NW_BENCH_DEVICE_WORK_H

#include "bench/case.h"
#include "bench/gated.h"
#include "topo/nvml_api.h"
#include "kernels/pattern.h"

/* Patterns are made of, and compared in, words of 8 bytes: sizes are multiples of it. */
#define NW_DEVICE_WORD 8

struct nw_pcie_link { /* -1: unknown */
    int generation, width, max_generation, max_width;
};
/* Payload ceiling, one way (topo/link.h); NAN: unknown. */
double nw_pcie_link_ceiling(const struct nw_pcie_link *link);

/* What a rank says of its GPU. */
struct nw_device_about {
    int index;      /* in the rank's process */
    int smi_index;  /* the driver's own number; -1: no NVML */
    int seen_count; /* GPUs that its process is shown */
    char model[64], uuid[48], pci[16];
    uint64_t l2_bytes, free_bytes;
    uint64_t host_bytes;       /* RAM that its host has to spare; 0: unknown */
    double memory_bytes_per_s; /* NAN: unknown */
    struct nw_pcie_link pcie;  /* idle */
    int link_count, link_up_count;
    struct {
        char peer_pci[16]; /* "": unknown */
        bool to_switch;
        double bytes_per_s;     /* NAN: unknown */
    } links[NW_NVML_MAX_LINKS]; /* those that are up */
};

struct nw_device_stage; /* pinned, and the same on the device: table, verdict, fold, bytes */

struct nw_device { /* made ready */
    struct nw_dev *dev;
    struct nw_stream *stream, *back; /* what is timed; what runs the other way meanwhile */
    struct nw_mark *start, *end;
    struct nw_device_stage *pinned, *memory;
    struct nw_nvml *nvml; /* NULL: none */
    int nvml_index;
};

struct nw_devices { /* of all ranks */
    struct nw_device own;
    struct nw_device_about *about; /* of each rank */
    int rank_count;
};

/* Has the run GPUs? No: one finding names all cases of the plan that need them. */
bool nw_device_is_here(struct nw_bench *bench, const char *case_name);
/* Collective. */
nw_rc nw_devices_open(struct nw_bench *bench, struct nw_devices *devices_out);
void nw_devices_close(struct nw_devices *devices); /* accepts what open left or zeroes */
/* `dev` is borrowed. Not collective. */
nw_rc nw_device_open(struct nw_dev *dev, struct nw_device *device_out);
/* Of the rank's GPU that has least. */
uint64_t nw_devices_least_free(const struct nw_devices *devices);
void nw_device_close(struct nw_device *device);
/* "rank 3 on node1 (gpu 3, 0000:1b:00.0)" */
#define NW_DEVICE_TEXT NW_COMM_RANK_TEXT
const char *nw_device_text(const struct nw_bench *bench, const struct nw_devices *devices, int rank,
                           char text[NW_DEVICE_TEXT]);

/* ---- patterns ----------------------------------------------------------------------------------
 * Of `round` and `seed` (whose data it is), or one word everywhere. The pattern of a device is what
 * the last of these set. `bytes`: a multiple of NW_DEVICE_WORD. */
nw_rc nw_device_pattern(struct nw_device *device, int seed, uint64_t round);
nw_rc nw_device_pattern_constant(struct nw_device *device, uint64_t word);
/* In the device's memory, or in pinned memory. */
nw_rc nw_device_fill(struct nw_device *device, nw_space space, void *to, uint64_t bytes);
/* Bytes that differ; the first of them with its place into *first_out. */
nw_rc nw_device_check(struct nw_device *device, nw_space space, const void *from, uint64_t bytes,
                      uint64_t *wrong_out, struct nw_wrong *first_out);
/* What kernel_read makes of `bytes` of the pattern. */
uint32_t nw_device_pattern_fold(const struct nw_device *device, uint64_t bytes);
/* Where kernel_read may fold to; on the device, and its value on the host. */
uint32_t *nw_device_fold(struct nw_device *device);
nw_rc nw_device_fold_clear(struct nw_device *device);
nw_rc nw_device_fold_get(struct nw_device *device, uint32_t *fold_out);

/* ---- measuring ---------------------------------------------------------------------------------
 */

struct nw_device_work {
    struct nw_work work; /* first */
    /* Set by the case. Queue the index-th call on device->stream; and one of those that keep the
     * other way busy on device->back, or another device's stream (`back`). */
    nw_rc (*queue)(struct nw_device_work *work, uint64_t index);
    nw_rc (*queue_back)(struct nw_device_work *work, uint64_t index); /* NULL: one way */
    nw_rc (*prepare)(struct nw_device_work *work, uint64_t round);
    nw_rc (*verify)(struct nw_device_work *work, uint64_t round, uint64_t *wrong_out,
                    struct nw_wrong *first_out);
    void *user;
    struct nw_stream *back;
    struct nw_dev *back_dev; /* of `back` */

    struct nw_bench *bench;
    struct nw_device *device; /* NULL: this rank idles */
    double margin_ns, call_deadline_ns;
    struct nw_err failed;     /* in fill or check: the next call says it */
    struct nw_pcie_link pcie; /* seen under load */
    int looks;
};

/* The rest of the fields; `device` NULL: this rank idles. */
void nw_device_work_init(struct nw_device_work *work, struct nw_bench *bench,
                         struct nw_device *device);

struct nw_device_unit {
    struct nw_record *records; /* identities; one a group */
    size_t count;              /* of groups */
    const int *group_of_rank;  /* -1: idles */
    uint64_t bytes;            /* that a call of a rank moves */
    const char *title;
    double budget_ns; /* at most; 0: the plan's */
    bool judged;      /* large enough to be held against its ceiling from below, too */
    double far_below; /* a rate below this share of its ceiling is warned of; 0: half */
    /* Rank 0, with the rates but before the record is handed out: its ceiling. `pcie`: under load,
     * of each rank; what a rank does not know is -1. NULL: no ceiling */
    double (*ceiling)(void *user, const struct nw_record *record, const struct nw_pcie_link *pcie);
    /* Rank 0: the finished record, measured or kept from an earlier run (then without `pcie`). */
    void (*note)(void *user, const struct nw_record *record, const struct nw_pcie_link *pcie);
    void *user;
};

/* Collective. Measures unless the run has the records already; hands them out. */
nw_rc nw_device_measure(struct nw_bench *bench, const struct nw_device_unit *unit,
                        struct nw_device_work *work);
/* A record of a device case: one host, bytes of no type. */
void nw_device_identity(const struct nw_bench *bench, const char *case_name, const char *collective,
                        const char *lane, uint64_t bytes, int rank, int peer,
                        struct nw_record *record_out);
/* The sizes that the GPUs' memories leave: `bytes` when a rank has room for device_count times it
 * on the GPU and the host for host_count times it a rank; else the largest power of two less.
 * Reduced: a finding says so. NW_ENOMEM: nothing fits. */
nw_rc nw_device_fit(struct nw_bench *bench, const struct nw_devices *devices, const char *case_name,
                    uint64_t bytes, int device_count, int host_count, uint64_t *bytes_out);

#endif
