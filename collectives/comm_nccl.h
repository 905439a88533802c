/* Private to collectives/. NCCL: what comm_nccl.c (the communicator and its table),
 * comm_nccl_life.c (its start and end), comm_nccl_features.c (what NCCL is asked to use besides),
 * comm_nccl_gpu.c (which GPU), comm_nccl_call.c (calls and waiting for them) and comm_nccl_data.c
 * (buffers, patterns) share. */
#ifndef NW_COLLECTIVES_COMM_NCCL_H
#define NW_COLLECTIVES_COMM_NCCL_H

#include "collectives/comm.h"
#include "collectives/nccl_api.h"
#include "collectives/oracle.h"

/* What a rank tells the others before NCCL starts. */
struct nccl_about {
    int rc; /* nw_rc: why this rank has no GPU, in `text` */
    char text[512];
    char model[64], uuid[48], pci[16];
    char driver[64]; /* "580.65.06, CUDA driver API 13.0" */
    char library[128];
    int index;     /* nw_comm_gpu.index */
    int gpu_count; /* visible to the rank */
    int nccl_version;
    unsigned can; /* NW_NCCL_… of comm.h and NCCL_CAN_SPLIT: what library and driver have here */
    struct nw_nccl_wish wish;
    bool simulated;
};
#define NCCL_CAN_SPLIT 0x100u

/* Pinned host memory, and the same on the device. */
struct nccl_staging {
    struct nw_oracle_table table;
    struct nw_verdict verdict;
    float met; /* of nw_nccl_meet */
};

/* A rank's GPU: of the first communicator and those split from it. One stream for all. */
struct nccl_gpu {
    int users;
    const struct nw_nccl_api *nccl;
    struct nw_dev *dev;
    struct nw_stream *stream;
    struct CUstream_st *handle;           /* of the stream */
    struct nccl_staging *pinned, *device; /* device: an address on the device */
    struct nccl_comm *comms;
    struct nccl_buffer *buffers;
    struct nw_err failed; /* of fill, check, put, get: the next finish reports it */
    double timeout_ns;    /* of what NCCL does on the host */
    bool non_blocking;    /* the communicators: NCCL's calls only begin things on the host */
    unsigned can;         /* of all ranks */
    unsigned features;    /* NW_NCCL_… in use, the same on all ranks */
    struct nw_nccl_wish wish;
    bool given_up; /* the communicators were aborted */
    bool shared;   /* several ranks on the GPU: allowed by the user, for trying out */
    struct nccl_about about;
};

/* Of nw_nccl_alloc, where buffers are registered. */
struct nccl_buffer {
    void *memory;
    uint64_t bytes;
    bool by_nccl; /* ncclMemAlloc */
    bool exposed; /* to every communicator of the GPU */
    struct nccl_buffer *next;
};

/* What a communicator has of an exposed buffer. */
struct nccl_grip {
    void *memory, *handle;
    struct ncclWindow_vidmem *window;
    struct nccl_grip *next;
};

struct nccl_comm {
    struct nw_comm base;
    struct nw_comm *bootstrap; /* owned */
    struct nccl_gpu *gpu;
    struct ncclComm *handle; /* NULL when it was aborted */
    struct nccl_comm *next;  /* of the GPU */
    struct nccl_grip *grips;
    struct ncclComm *estimator; /* nw_nccl_estimator's, where it is not `handle`; NULL: not yet */
    char last[64];              /* the last call: "all_reduce of 1 MiB" */
};

nw_rc nw_nccl_comm_open(struct nw_comm *bootstrap, double timeout_ns,
                        const struct nw_nccl_wish *wish, struct nw_comm **comm_out);

/* comm_nccl_gpu.c */
/* Collective over `bootstrap`; the same answer on all ranks. `gpus_out`: nw_comm.gpus. */
nw_rc nw_nccl_gpu_open(struct nw_comm *bootstrap, const struct nw_nccl_wish *wish,
                       struct nccl_gpu **gpu_out, struct nw_comm_gpu **gpus_out,
                       struct nw_findings *findings);
void nw_nccl_gpu_release(struct nccl_gpu *gpu);

/* comm_nccl_life.c: all collective, worded with rank and phase */
nw_rc nw_nccl_start(struct nccl_comm *comm);
/* Also of the ranks that are in none of the parts (colour < 0): NULL for them. */
nw_rc nw_nccl_split_handle(struct nccl_comm *parent, int colour, struct ncclComm **handle_out);
/* Collective. The communicator for ncclGroupSimulateEnd, which runs the calls of a non-blocking one
 * for real (2.22 to 2.30, ncclGroupEndInternal in group.cc): a blocking one, made the first time.
 */
nw_rc nw_nccl_estimator(struct nccl_comm *comm, struct ncclComm **handle_out);
nw_rc nw_nccl_end(struct nw_comm *comm);
/* Not collective. Aborts all communicators of the GPU; keeps the failure's words. */
void nw_nccl_give_up(struct nccl_gpu *gpu);
/* After a call of NCCL's with this result: until it has done on the host what it has to. Not
 * collective; the failure is worded by comm->last. */
nw_rc nw_nccl_settle(struct nccl_comm *comm, int code);

/* comm_nccl_features.c */
unsigned nw_nccl_can(const struct nccl_gpu *gpu); /* NW_NCCL_…; its stream is open */
/* Before the start: what of the wish is used; a finding for the rest. `all`: of every rank. */
nw_rc nw_nccl_features_choose(const struct nw_comm *bootstrap, const struct nccl_about *all,
                              struct nccl_gpu *gpu, struct nw_findings *findings);
/* After it, collective: does registration work here? Then nw_comm.features. */
nw_rc nw_nccl_features_try(struct nccl_comm *comm, struct nw_findings *findings);
/* Collective: the exposed buffers to a new communicator. */
nw_rc nw_nccl_expose_all(struct nccl_comm *comm);
void nw_nccl_conceal_all(struct nccl_comm *comm);
nw_rc nw_nccl_expose(struct nw_comm *comm, void *buffer, uint64_t bytes);
nw_rc nw_nccl_alloc(struct nw_comm *comm, uint64_t bytes, void **buffer_out);
void nw_nccl_free(struct nw_comm *comm, void *buffer);

/* comm_nccl_call.c */
nw_rc nw_nccl_call(struct nw_comm *comm, const struct nw_call *call);
nw_rc nw_nccl_meet(struct nw_comm *comm);
nw_rc nw_nccl_swap(struct nw_comm *comm, int peer, const void *send, void *recv, uint64_t bytes);
nw_rc nw_nccl_pass(struct nw_comm *comm, bool out, const struct nw_message *messages, size_t count);
bool nw_nccl_supports(const struct nw_comm *comm, const struct nw_call *call);
nw_rc nw_nccl_finish(struct nw_comm *comm, double timeout_ns);
struct nw_stream *nw_nccl_stream(struct nw_comm *comm);
nw_rc nw_nccl_expect(struct nw_comm *comm, const struct nw_call *call, double *ns_out);

/* comm_nccl_data.c */
nw_rc nw_nccl_free_bytes(struct nw_comm *comm, uint64_t *bytes_out);
void nw_nccl_put(struct nw_comm *comm, void *to, const void *from_host, uint64_t bytes);
void nw_nccl_get(struct nw_comm *comm, void *to_host, const void *from, uint64_t bytes);
void nw_nccl_fill(struct nw_comm *comm, const struct nw_call *call, uint64_t round);
uint64_t nw_nccl_check(struct nw_comm *comm, const struct nw_call *call, uint64_t round,
                       struct nw_wrong *first_out);

#endif
