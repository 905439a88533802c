/* Public. A group of ranks that moves data: an ops table per backend. Every call is collective
 * unless said otherwise.
 *
 * The communicator belongs to whoever opened it; nw_comm_close accepts NULL. Buffers belong to the
 * caller and come from nw_comm_alloc, which hands out what the backend moves fastest.
 *
 *     NW_TRY(nw_mpi_start(&argc, &argv));
 *     NW_TRY(nw_comm_open_mpi(&comm));
 *     struct nw_call call = {.coll = nw_coll_find("all_reduce"), .dtype = NW_FLOAT, .op = NW_SUM};
 *     call.shape = nw_coll_shape(call.coll, 1 << 20, call.dtype, comm->rank_count);
 *     nw_call_place(&call, comm->rank, send_buffer, recv_buffer);
 *     NW_TRY(comm->ops->call(comm, &call));      // returns when the result is in call.recv
 *     nw_comm_close(comm);
 */
#ifndef NW_COLLECTIVES_COMM_H
#define NW_COLLECTIVES_COMM_H

#include "base/clock.h"
#include "base/finding.h"
#include "collectives/coll.h"
#include "kernels/dev.h"

struct nw_comm;
struct nw_wrong;

struct nw_call {
    const struct nw_coll *coll;
    nw_dtype dtype;
    nw_redop op;
    int root; /* 0 … rank_count - 1 where the collective is rooted, else ignored */
    struct nw_shape shape;
    bool in_place;
    void *send, *recv; /* set by nw_call_place */
};

/* Say where a call reads and writes. `send_buffer` has shape.send_bytes, `recv_buffer` has
 * shape.recv_bytes. In place only the larger of the two is touched (recv_buffer where they are
 * equal) and the smaller end lies inside it, as in nccl-tests: all_gather and gather send
 * recv + rank × chunk; reduce_scatter and scatter receive at send + rank × chunk. */
void nw_call_place(struct nw_call *call, int rank, void *send_buffer, void *recv_buffer);

struct nw_message {
    int peer; /* another rank */
    void *data;
    uint64_t bytes;
};

struct nw_comm_ops {
    const char *name;  /* "mpi" "local" "nccl" */
    const char *title; /* "MPI on host memory" */
    bool simulated;    /* results made with it are no measurement of a machine */
    /* This rank's part; where there is a `finish`, it is only begun. NW_ENOTSUP: see supports. */
    nw_rc (*call)(struct nw_comm *comm, const struct nw_call *call);
    /* Exchange with one peer, both ways at once: send `bytes` to it and receive as many. Only the
     * two ranks call it. NW_EPEER when it is gone. The buffers may not overlap. */
    nw_rc (*swap)(struct nw_comm *comm, int peer, const void *send, void *recv, uint64_t bytes);
    /* Messages to others (`out`), or from others, all at once; those whom they are of call it with
     * the counterparts. One way of a rank at a time. */
    nw_rc (*pass)(struct nw_comm *comm, bool out, const struct nw_message *messages, size_t count);
    nw_rc (*barrier)(struct nw_comm *comm);
    /* Every rank's `bytes` bytes into `all` (rank_count × bytes, in rank order) on every rank. */
    nw_rc (*exchange)(struct nw_comm *comm, const void *mine, uint64_t bytes, void *all);
    /* `data` of `root` to all. */
    nw_rc (*share)(struct nw_comm *comm, void *data, uint64_t bytes, int root);
    /* New communicator of the ranks with equal colour, in rank order; colour < 0: none (*comm_out =
     * NULL). */
    nw_rc (*split)(struct nw_comm *comm, int colour, struct nw_comm **comm_out);
    void (*close)(struct nw_comm *comm);
    nw_rc (*end)(struct nw_comm *comm); /* nw_comm_end; NULL: nothing can hang */
    /* Can this call run? Not collective. No: the sentence in nw_last_error() says why. */
    bool (*supports)(const struct nw_comm *comm, const struct nw_call *call);

    /* Not collective, does not wait: tell all other ranks that group of calls number `generation`
     * is given up; has one of them said so? NULL: the backend cannot, and they find out by waiting.
     */
    void (*alarm)(struct nw_comm *comm, int generation);
    bool (*alarmed)(struct nw_comm *comm, int generation);

    /* Of backends whose buffers are not in host memory; NULL: they are, and everything is done when
     * its call returns. Callers use the nw_comm_… functions below. Not collective. */

    /* Queue a meeting of all ranks on the stream: what is queued behind it starts at one time
     * everywhere, whenever the hosts' queues were ready. */
    nw_rc (*meet)(struct nw_comm *comm);
    /* The stream that calls are queued on, for gates and marks around them. Borrowed. */
    struct nw_stream *(*stream)(struct nw_comm *comm);
    /* The library's own estimate of a call that was made before, ns; NULL: it has none. Collective;
     * nothing is run. NW_ENOTSUP: none for this call, or one rank. */
    nw_rc (*expect)(struct nw_comm *comm, const struct nw_call *call, double *ns_out);
    /* Until all that was begun is done, also on the communicators split from this one. NW_ETIMEOUT,
     * NW_ELIB: the communicator is of no more use. A failure of fill, check, put and get shows here
     * at the latest. */
    nw_rc (*finish)(struct nw_comm *comm, double timeout_ns);
    nw_rc (*alloc)(struct nw_comm *comm, uint64_t bytes, void **buffer_out);
    void (*free)(struct nw_comm *comm, void *buffer);
    nw_rc (*free_bytes)(struct nw_comm *comm, uint64_t *bytes_out); /* for this rank alone */
    void (*put)(struct nw_comm *comm, void *to, const void *from_host, uint64_t bytes);
    void (*get)(struct nw_comm *comm, void *to_host, const void *from, uint64_t bytes);
    /* collectives/oracle.h */
    void (*fill)(struct nw_comm *comm, const struct nw_call *call, uint64_t round);
    uint64_t (*check)(struct nw_comm *comm, const struct nw_call *call, uint64_t round,
                      struct nw_wrong *first_out);
    /* Collective: a buffer of alloc's that calls will use again and again, to the library, as it
     * was wished (nw_nccl_wish). NULL: nothing to do. */
    nw_rc (*expose)(struct nw_comm *comm, void *buffer, uint64_t bytes);
};

/* A rank's GPU. Unknown is "" or -1. */
struct nw_comm_gpu {
    int index; /* nvidia-smi's; without NVML the process's own, which CUDA_VISIBLE_DEVICES renumbers
                */
    char model[64], uuid[48], pci[16];
    char driver[64];   /* "580.65.06, CUDA driver API 13.0" */
    char library[128]; /* "NCCL 2.28.9 (/usr/lib/libnccl.so.2)" */
};

struct nw_comm {
    const struct nw_comm_ops *ops;
    int rank, rank_count;
    int local_rank, local_count; /* within the host */
    int host_index, host_count;  /* hosts numbered by their lowest rank */
    int *host_of_rank;           /* rank_count entries */
    char (*host_names)[64];      /* host_count entries */
    char library[128];           /* "Open MPI v4.1.4, …", "MPICH 4.0.2" */
    char lane[16];               /* "host" "local" "auto" "ring" … */
    struct nw_dev *dev;          /* of the buffers; NULL: host memory. Borrowed */
    char driver[64];             /* of the device; "": none or unknown */
    struct nw_comm_gpu *gpus;    /* rank_count entries; NULL: host memory */
    char features[64];           /* nw_record.features of what is measured with it */
    bool graphs;                 /* calls between two marks go as one graph of dev's */
    bool simulated;              /* a vendor's library is a double: no measurement of a machine */
    /* Barriers and exchanges are waited for asleep: up to 0.5 ms later, and nobody else is kept
     * from a CPU. Of those split from it, too. */
    bool gentle;
    struct nw_findings findings; /* of opening it */
    uint64_t (*now_ns)(void);    /* a double's clock; NULL: nw_now_ns */
};

struct nw_comm_backend {
    const char *name, *title;
    bool built;
};
extern const struct nw_comm_backend nw_comm_backends[]; /* ends with name NULL */

/* Process-wide start and end of MPI; nw_mpi_start may be called once. Thread level FUNNELED. Works
 * without mpirun too: one rank. */
nw_rc nw_mpi_start(int *argc, char ***argv);
/* The same at thread level MULTIPLE: threads may call at once, each on a communicator of its own.
 * NW_ENOTSUP: this MPI cannot; it has been started all the same. */
nw_rc nw_mpi_start_threads(void);
void nw_mpi_stop(void);           /* nothing when MPI is not running */
void nw_mpi_abort(int exit_code); /* ends every rank; does not return */
/* What the surroundings forbid MPI on this host; NULL: nothing found. */
const char *nw_mpi_restriction(void);
/* All ranks of MPI_COMM_WORLD; after nw_mpi_start. Hosts are told apart by their name. */
nw_rc nw_comm_open_mpi(struct nw_comm **comm_out);

/* `rank_count` threads, each runs body(comm, argument) on a communicator that is closed when it
 * returns. Returns the failure of the lowest rank that failed by itself, worded for the calling
 * thread. One rank's failure, or its leaving early, makes the others' pending calls with it return
 * NW_EPEER. host_count > 1: ranks are dealt in blocks to that many pretended hosts. */
#define NW_LOCAL_MAX_RANKS 4096
nw_rc nw_comm_run_local(int rank_count, int host_count,
                        nw_rc (*body)(struct nw_comm *comm, void *argument), void *argument);

/* What NCCL is asked to use besides, where library and machine have it; the rest is a finding. */
enum {
    NW_NCCL_GRAPH = 1,    /* the calls of a sample as one CUDA graph */
    NW_NCCL_REGISTER = 2, /* buffers by ncclMemAlloc and ncclCommRegister (2.19) */
    NW_NCCL_WINDOW = 4,   /* symmetric windows (2.27) */
    NW_NCCL_CTAS = 8,     /* min_ctas and max_ctas (2.17) */
};
struct nw_nccl_wish {
    unsigned features;
    int min_ctas, max_ctas;
};

/* "graph,register,ctas=2-8", "none"; NW_EUSAGE with what is accepted. */
nw_rc nw_nccl_wish_parse(const char *list, struct nw_nccl_wish *wish_out);

/* NCCL on one GPU a rank, over `bootstrap` (mpi), which passes the small things around and belongs
 * to the new communicator when it is open. Collective; the same answer on all ranks, unless NCCL
 * itself failed or did not answer in time (then the bootstrap is of no more use either). NW_ENODEV:
 * a rank has no GPU, driver or NCCL. NW_EUSAGE: more ranks than GPUs. `timeout_ns`: of the start,
 * and of whatever NCCL does on the host later. */
nw_rc nw_comm_open_nccl(struct nw_comm *bootstrap, double timeout_ns,
                        const struct nw_nccl_wish *wish, struct nw_comm **comm_out);

/* Before close, where ending can hang and somebody is there to hear of it; collective. NW_ETIMEOUT,
 * NW_ELIB: other ranks may never come out of theirs. */
nw_rc nw_comm_end(struct nw_comm *comm);
void nw_comm_close(struct nw_comm *comm);
/* "rank 3 on node1 (gpu 3, 0000:1b:00.0)"; without the GPU where there is none. */
#define NW_COMM_RANK_TEXT 160
const char *nw_comm_rank_text(const struct nw_comm *comm, int rank, char text[NW_COMM_RANK_TEXT]);
/* What the backend has, else what is right for host memory. */
nw_rc nw_comm_finish(struct nw_comm *comm, double timeout_ns);
void *nw_comm_buffer(struct nw_comm *comm, uint64_t bytes); /* NULL: no memory, worded */
void nw_comm_drop_buffer(struct nw_comm *comm, void *buffer, uint64_t bytes); /* accepts NULL */
void nw_comm_put(struct nw_comm *comm, void *to, const void *from_host, uint64_t bytes);
void nw_comm_get(struct nw_comm *comm, void *to_host, const void *from, uint64_t bytes);
void nw_comm_fill(struct nw_comm *comm, const struct nw_call *call, uint64_t round);
uint64_t nw_comm_check(struct nw_comm *comm, const struct nw_call *call, uint64_t round,
                       struct nw_wrong *first_out);
static inline uint64_t nw_comm_now_ns(const struct nw_comm *comm)
{
    return comm->now_ns != NULL ? comm->now_ns() : nw_now_ns();
}
/* Page-aligned, touched by the caller (so that it lies in its NUMA node), zero; NULL when the
 * machine has not that much to spare. 0 bytes: a page. */
void *nw_comm_alloc(uint64_t bytes);
void nw_comm_free(void *buffer, uint64_t bytes); /* accepts NULL */

#endif
