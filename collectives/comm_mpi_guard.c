/* MPI whose waits can be left. Open MPI goes on over TCP and shared memory when a process has died:
 * messages between the others arrive, those with the dead one never complete. So nothing here waits
 * within MPI, and small things travel in buffers of their own, which are left to MPI after a loss.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "collectives/comm_mpi.h"
#include "collectives/guard.h"

enum { ORDER_TAG = 8, GROUP_TAG = 9, PIECE = 1 << 30 };

static struct mpi_comm *guarded(struct nw_comm *base)
{
    return (struct mpi_comm *)base;
}

bool nw_comm_has_loss(const struct nw_comm *base)
{
    const struct mpi_comm *comm = (const struct mpi_comm *)base;

    return comm->lost_count != NULL && atomic_load(comm->lost_count) > comm->lost_seen;
}

/* `until_ns` 0: as long as nobody is lost; else a loss does not matter. */
static nw_rc wait_for(const struct mpi_comm *comm, MPI_Request *requests, int count,
                      uint64_t until_ns, const char *what)
{
    const struct timespec pause = {.tv_nsec = 20000};

    for (;;) {
        int done = 0;
        const int code = MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);

        if (code != MPI_SUCCESS)
            return nw_mpi_fail(code, what);
        if (done)
            return NW_OK;
        if (until_ns == 0 && nw_comm_has_loss(&comm->base))
            return nw_fail(NW_EPEER, "%s: a rank was lost", what);
        if (until_ns > 0 && nw_now_ns() > until_ns)
            return nw_fail(NW_ETIMEOUT, "%s: no answer", what);
        if (comm->base.gentle || until_ns > 0)
            nanosleep(&pause, NULL);
    }
}

static int place_of(const struct mpi_comm *comm, int rank)
{
    return comm->place_of_rank != NULL ? comm->place_of_rank[rank] : rank;
}

static int left_count(const struct mpi_comm *comm)
{
    int count = 0;

    for (int rank = 0; rank < comm->base.rank_count; rank++)
        count += place_of(comm, rank) >= 0;
    return count;
}

/* ---- the operations ----------------------------------------------------------------------------
 */

static nw_rc guarded_barrier(struct nw_comm *base)
{
    struct mpi_comm *comm = guarded(base);
    MPI_Request request;
    const int code = MPI_Ibarrier(comm->comm, &request);

    return code == MPI_SUCCESS ? wait_for(comm, &request, 1, 0, "barrier")
                               : nw_mpi_fail(code, "barrier");
}

static nw_rc guarded_exchange(struct nw_comm *base, const void *mine, uint64_t bytes, void *all)
{
    struct mpi_comm *comm = guarded(base);
    const int count = left_count(comm);
    char *buffer = bytes <= INT_MAX ? malloc((size_t)bytes * ((size_t)count + 1) + 1) : NULL;
    MPI_Request request;
    int code;

    if (buffer == NULL)
        return nw_fail(NW_ENOMEM, "no memory for an exchange between %d ranks", count);
    memcpy(buffer, mine, bytes);
    code = MPI_Iallgather(buffer, (int)bytes, MPI_BYTE, buffer + bytes, (int)bytes, MPI_BYTE,
                          comm->comm, &request);
    if (code != MPI_SUCCESS)
        return nw_mpi_fail(code, "exchange between all ranks");
    NW_TRY(wait_for(comm, &request, 1, 0, "exchange between all ranks"));
    for (int rank = 0; rank < base->rank_count; rank++) {
        char *here = (char *)all + (size_t)rank * bytes;
        const int place = place_of(comm, rank);

        if (place >= 0)
            memcpy(here, buffer + bytes + (size_t)place * bytes, bytes);
        else
            memset(here, 0, bytes);
    }
    free(buffer);
    return NW_OK;
}

static nw_rc guarded_share(struct nw_comm *base, void *data, uint64_t bytes, int root)
{
    struct mpi_comm *comm = guarded(base);
    char *buffer = bytes <= INT_MAX ? malloc((size_t)bytes + 1) : NULL;
    MPI_Request request;
    int code;

    if (buffer == NULL)
        return nw_fail(NW_ENOMEM, "no memory to share one rank's data");
    memcpy(buffer, data, bytes);
    code = MPI_Ibcast(buffer, (int)bytes, MPI_BYTE, place_of(comm, root), comm->comm, &request);
    if (code != MPI_SUCCESS)
        return nw_mpi_fail(code, "sharing one rank's data");
    NW_TRY(wait_for(comm, &request, 1, 0, "sharing one rank's data"));
    memcpy(data, buffer, bytes);
    free(buffer);
    return NW_OK;
}

static nw_rc guarded_swap(struct nw_comm *base, int peer, const void *send, void *recv,
                          uint64_t bytes)
{
    struct mpi_comm *comm = guarded(base);
    const int place = place_of(comm, peer);
    uint64_t done = 0;

    if (place < 0)
        return nw_fail(NW_EPEER, "rank %d was lost", peer);
    do {
        const int count = (int)(bytes - done < PIECE ? bytes - done : PIECE);
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        int code = MPI_Irecv((char *)recv + done, count, MPI_BYTE, place, 1, comm->comm, requests);

        if (code == MPI_SUCCESS)
            code = MPI_Isend((const char *)send + done, count, MPI_BYTE, place, 1, comm->comm,
                             requests + 1);
        if (code != MPI_SUCCESS)
            return nw_mpi_fail(code, "exchange between two ranks");
        NW_TRY(wait_for(comm, requests, 2, 0, "exchange between two ranks"));
        done += (uint64_t)count;
    } while (done < bytes);
    return NW_OK;
}

static nw_rc pass_one(struct mpi_comm *comm, bool out, const struct nw_message *message)
{
    const int place = place_of(comm, message->peer);
    uint64_t done = 0;

    if (place < 0)
        return nw_fail(NW_EPEER, "rank %d was lost", message->peer);
    do {
        const int count = (int)(message->bytes - done < PIECE ? message->bytes - done : PIECE);
        char *data = (char *)message->data + done;
        MPI_Request request;
        const int code = out ? MPI_Isend(data, count, MPI_BYTE, place, 2, comm->comm, &request)
                             : MPI_Irecv(data, count, MPI_BYTE, place, 2, comm->comm, &request);

        if (code != MPI_SUCCESS)
            return nw_mpi_fail(code, "a message between two ranks");
        NW_TRY(wait_for(comm, &request, 1, 0, "a message between two ranks"));
        done += (uint64_t)count;
    } while (done < message->bytes);
    return NW_OK;
}

static nw_rc guarded_pass(struct nw_comm *base, bool out, const struct nw_message *messages,
                          size_t count)
{
    for (size_t i = 0; i < count; i++)
        NW_TRY(pass_one(guarded(base), out, &messages[i]));
    return NW_OK;
}

nw_rc nw_comm_guard(struct nw_comm *base, const _Atomic uint32_t *lost_count)
{
    struct mpi_comm *comm = guarded(base);

    if (strcmp(base->ops->name, "mpi") != 0)
        return nw_fail(NW_ENOTSUP, "%s: its ranks cannot be outlived", base->ops->title);
    comm->before = base->ops;
    comm->own_ops = *base->ops;
    comm->own_ops.barrier = guarded_barrier;
    comm->own_ops.exchange = guarded_exchange;
    comm->own_ops.share = guarded_share;
    comm->own_ops.swap = guarded_swap;
    comm->own_ops.pass = guarded_pass;
    comm->lost_count = lost_count;
    comm->lost_seen = 0;
    base->ops = &comm->own_ops;
    return NW_OK;
}

void nw_comm_unguard(struct nw_comm *base)
{
    struct mpi_comm *comm = guarded(base);

    base->ops = comm->before;
    comm->lost_count = NULL;
}

/* ---- without the lost --------------------------------------------------------------------------
 */

/* Rank 0's words to all that are left: lost_seen, lost, word. */
static nw_rc tell_order(struct mpi_comm *comm, const bool *lost, char *order, int bytes)
{
    for (int rank = 1; rank < comm->base.rank_count; rank++) {
        MPI_Request request;

        if (!lost[rank] && place_of(comm, rank) >= 0 &&
            MPI_Isend(order, bytes, MPI_BYTE, place_of(comm, rank), ORDER_TAG, comm->comm,
                      &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
    }
    return NW_OK;
}

static nw_rc hear_order(struct mpi_comm *comm, char *order, int bytes, double timeout_ns)
{
    MPI_Request request;
    const int code =
        MPI_Irecv(order, bytes, MPI_BYTE, place_of(comm, 0), ORDER_TAG, comm->comm, &request);

    if (code != MPI_SUCCESS)
        return nw_mpi_fail(code, "hearing how to go on");
    return wait_for(comm, &request, 1, nw_now_ns() + (uint64_t)timeout_ns,
                    "hearing from rank 0 how to go on");
}

static nw_rc leave_out(struct mpi_comm *comm, const bool *lost)
{
    const size_t ranks = (size_t)comm->base.rank_count;
    int *places = calloc(ranks + 1, sizeof *places), *next = calloc(ranks + 1, sizeof *next);
    int count = 0, code;
    MPI_Group all = MPI_GROUP_NULL, left = MPI_GROUP_NULL;
    MPI_Comm handle;

    if (places == NULL || next == NULL) {
        free(places);
        free(next);
        return nw_fail(NW_ENOMEM, "no memory for the places of %zu ranks", ranks);
    }
    for (size_t rank = 0; rank < ranks; rank++) {
        const int place = place_of(comm, (int)rank);

        next[rank] = lost[rank] || place < 0 ? -1 : count;
        if (next[rank] >= 0)
            places[count++] = place;
    }
    code = MPI_Comm_group(comm->comm, &all);
    if (code == MPI_SUCCESS)
        code = MPI_Group_incl(all, count, places, &left);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_create_group(comm->comm, left, GROUP_TAG, &handle);
    free(places);
    if (code != MPI_SUCCESS) {
        free(next);
        return nw_mpi_fail(code, "a communicator of the ranks that are left");
    }
    MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
    MPI_Group_free(&all);
    MPI_Group_free(&left);
    free(comm->place_of_rank);
    comm->place_of_rank = next;
    comm->comm = handle; /* the old one has messages that never come: it stays */
    return NW_OK;
}

nw_rc nw_comm_outlive(struct nw_comm *base, uint32_t seen, bool *lost, void *word, uint64_t bytes,
                      double timeout_ns)
{
    struct mpi_comm *comm = guarded(base);
    const size_t ranks = (size_t)base->rank_count;
    const size_t length = sizeof seen + ranks * sizeof *lost + bytes;
    char *order = calloc(1, length); /* stays: MPI may still read it */

    if (order == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu ranks", ranks);
    if (base->rank == 0) {
        memcpy(order, &seen, sizeof seen);
        memcpy(order + sizeof seen, lost, ranks * sizeof *lost);
        memcpy(order + sizeof seen + ranks * sizeof *lost, word, bytes);
        NW_TRY(tell_order(comm, lost, order, (int)length));
    } else {
        NW_TRY(hear_order(comm, order, (int)length, timeout_ns));
        memcpy(&seen, order, sizeof seen);
        memcpy(lost, order + sizeof seen, ranks * sizeof *lost);
        memcpy(word, order + sizeof seen + ranks * sizeof *lost, bytes);
    }
    comm->lost_seen = seen;
    return leave_out(comm, lost);
}
