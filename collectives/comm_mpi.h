/* Private to collectives/. An MPI communicator: comm_mpi.c opens it and passes small things around,
 * comm_mpi_call.c moves data. */
#ifndef NW_COLLECTIVES_COMM_MPI_H
#define NW_COLLECTIVES_COMM_MPI_H

#include <stdatomic.h>

#include "collectives/comm.h"
#include "collectives/mpi_kit.h"

#define NW_MPI_ALARMS_MAX 32

struct mpi_comm {
    struct nw_comm base;
    int alarms[NW_MPI_ALARMS_MAX]; /* sent: MPI may still read them */
    int alarm_count;
    int heard; /* the highest generation that was given up; 0: none */
    MPI_Comm comm;
    struct nw_mpi_kit *kit;
    /* collectives/guard.h */
    const _Atomic uint32_t *lost_count; /* NULL: ranks are not outlived */
    uint32_t lost_seen;
    int *place_of_rank; /* in comm; -1: lost; NULL: nobody was */
    struct nw_comm_ops own_ops;
    const struct nw_comm_ops *before;
};

/* Words an MPI error code. */
nw_rc nw_mpi_fail(int code, const char *what);

/* Hand an MPI error code on. */
#define MPI_TRY(call)                                                                              \
    do {                                                                                           \
        int mpi_try_code_ = (call);                                                                \
        if (mpi_try_code_ != MPI_SUCCESS)                                                          \
            return mpi_try_code_;                                                                  \
    } while (0)

/* `bytes` bytes as (count, type). */
struct nw_mpi_span {
    int count;
    MPI_Datatype type;
};

int nw_mpi_span_open(uint64_t bytes, struct nw_mpi_span *span_out);
void nw_mpi_span_close(struct nw_mpi_span *span);

/* nw_comm_ops */
bool nw_mpi_supports(const struct nw_comm *comm, const struct nw_call *call);
nw_rc nw_mpi_call(struct nw_comm *comm, const struct nw_call *call);
nw_rc nw_mpi_swap(struct nw_comm *comm, int peer, const void *send, void *recv, uint64_t bytes);
nw_rc nw_mpi_pass(struct nw_comm *comm, bool out, const struct nw_message *messages, size_t count);

#endif
