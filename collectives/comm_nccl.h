/* Private to collectives/. NCCL: what comm_nccl.c (life of a communicator), comm_nccl_gpu.c (which
 * GPU), comm_nccl_call.c (calls and waiting for them) and comm_nccl_data.c (buffers, patterns)
 * share. */
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
    char driver[64]; /* "580.65.06, CUDA 13.0" */
    int gpu_count;   /* visible to the rank */
    int nccl_version;
    bool simulated;
};

/* Pinned host memory, and the same on the device. */
struct nccl_staging {
    struct nw_oracle_table table;
    struct nw_verdict verdict;
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
    struct nw_err failed; /* of fill, check, put, get: the next finish reports it */
    bool given_up;        /* the communicators were aborted */
    bool shared;          /* several ranks on the GPU: allowed by the user, for trying out */
    struct nccl_about about;
};

struct nccl_comm {
    struct nw_comm base;
    struct nw_comm *bootstrap; /* owned */
    struct nccl_gpu *gpu;
    struct ncclComm *handle; /* NULL when it was aborted */
    struct nccl_comm *next;  /* of the GPU */
    char last[64];           /* the last call: "all_reduce of 1 MiB" */
};

nw_rc nw_nccl_comm_open(struct nw_comm *bootstrap, double timeout_ns, struct nw_comm **comm_out);

/* comm_nccl_gpu.c */
/* Collective over `bootstrap`; the same answer on all ranks. */
nw_rc nw_nccl_gpu_open(struct nw_comm *bootstrap, struct nccl_gpu **gpu_out,
                       struct nw_findings *findings);
void nw_nccl_gpu_release(struct nccl_gpu *gpu);

/* comm_nccl_call.c */
nw_rc nw_nccl_call(struct nw_comm *comm, const struct nw_call *call);
nw_rc nw_nccl_swap(struct nw_comm *comm, int peer, const void *send, void *recv, uint64_t bytes);
bool nw_nccl_supports(const struct nw_comm *comm, const struct nw_call *call);
nw_rc nw_nccl_finish(struct nw_comm *comm, double timeout_ns);
struct nw_stream *nw_nccl_stream(struct nw_comm *comm);
nw_rc nw_nccl_expect(struct nw_comm *comm, const struct nw_call *call, double *ns_out);

/* comm_nccl_data.c */
nw_rc nw_nccl_alloc(struct nw_comm *comm, uint64_t bytes, void **buffer_out);
void nw_nccl_free(struct nw_comm *comm, void *buffer);
nw_rc nw_nccl_free_bytes(struct nw_comm *comm, uint64_t *bytes_out);
void nw_nccl_put(struct nw_comm *comm, void *to, const void *from_host, uint64_t bytes);
void nw_nccl_get(struct nw_comm *comm, void *to_host, const void *from, uint64_t bytes);
void nw_nccl_fill(struct nw_comm *comm, const struct nw_call *call, uint64_t round);
uint64_t nw_nccl_check(struct nw_comm *comm, const struct nw_call *call, uint64_t round,
                       struct nw_wrong *first_out);

#endif
