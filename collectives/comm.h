/* Public. A group of ranks that moves data: an ops table per backend. Every call is collective
 * unless said otherwise.
 *
 * The communicator belongs to whoever opened it; nw_comm_close accepts NULL. Buffers belong to the
 * caller and come from nw_comm_alloc, which hands out what the backend moves fastest.
 *
 *     NW_TRY(nw_comm_open("mpi", &argc_argv, &comm));
 *     NW_TRY(comm->ops->call(comm, &call));       // returns when the result is in the receive
 * buffer nw_comm_close(comm);
 */
#ifndef NW_COLLECTIVES_COMM_H
#define NW_COLLECTIVES_COMM_H

#include "collectives/coll.h"

struct nw_comm;

struct nw_call {
    const struct nw_coll *coll;
    nw_dtype dtype;
    nw_redop op;
    int root;
    struct nw_shape shape;
    void *send; /* in place: where nccl-tests has it (all_gather: recv + rank × chunk;
                   reduce_scatter: recv = send + …) */
    void *recv;
    bool in_place;
};

struct nw_comm_ops {
    const char *name;  /* "mpi" "local" */
    const char *title; /* "Open MPI on host memory" */
    bool simulated;    /* results made with it are no measurement of a machine */
    nw_rc (*call)(struct nw_comm *comm, const struct nw_call *call);
    /* Exchange with one peer, both ways at once: send `bytes` to it and receive as many. NW_EPEER
     * when it is gone. */
    nw_rc (*swap)(struct nw_comm *comm, int peer, const void *send, void *recv, uint64_t bytes);
    nw_rc (*barrier)(struct nw_comm *comm);
    /* Every rank's `bytes` bytes into `all` (rank_count × bytes) on every rank. */
    nw_rc (*exchange)(struct nw_comm *comm, const void *mine, uint64_t bytes, void *all);
    /* `data` of `root` to all. */
    nw_rc (*share)(struct nw_comm *comm, void *data, uint64_t bytes, int root);
    /* New communicator of the ranks with equal colour, in rank order; colour < 0: none (*comm_out =
     * NULL). */
    nw_rc (*split)(struct nw_comm *comm, int colour, struct nw_comm **comm_out);
    void (*close)(struct nw_comm *comm);
    bool (*supports)(const struct nw_comm *comm,
                     const struct nw_call *call); /* e.g. avg under MPI: no */
};

struct nw_comm {
    const struct nw_comm_ops *ops;
    int rank, rank_count;
    int local_rank, local_count; /* within the host */
    int host_index, host_count;  /* hosts numbered by their lowest rank */
    int *host_of_rank;           /* rank_count entries */
    char (*host_names)[64];      /* host_count entries */
    char library[128];           /* "Open MPI v4.1.4, …" */
};

struct nw_comm_backend {
    const char *name, *title;
    bool built;
};
extern const struct nw_comm_backend nw_comm_backends[]; /* ends with name NULL */

/* Process-wide start and end of MPI; nw_mpi_start may be called once. Thread level FUNNELED. */
nw_rc nw_mpi_start(int *argc, char ***argv);
void nw_mpi_stop(void);
void nw_mpi_abort(int exit_code); /* ends every rank; does not return */
nw_rc nw_comm_open_mpi(
    struct nw_comm **comm_out); /* all ranks of MPI_COMM_WORLD; after nw_mpi_start */

/* `rank_count` threads, each runs body(comm, argument); returns the first failure of the lowest
 * rank. One rank's failure makes the others' pending calls return NW_EPEER. hosts > 1: ranks are
 * dealt to that many pretended hosts. */
nw_rc nw_comm_run_local(int rank_count, int host_count,
                        nw_rc (*body)(struct nw_comm *comm, void *argument), void *argument);

void nw_comm_close(struct nw_comm *comm);
void *nw_comm_alloc(uint64_t bytes); /* page-aligned, touched; NULL when out of memory */
void nw_comm_free(void *buffer, uint64_t bytes);

#endif
