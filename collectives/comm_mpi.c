/* MPI on host memory. MPI's errors are returned, not fatal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/comm_mpi.h"
#include "collectives/common.h"

#define ALARM_TAG 7

static const struct nw_comm_ops mpi_ops;

nw_rc nw_mpi_fail(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return nw_fail_lib(NW_ELIB, "mpi", code, "%s: %s", what, text[0] ? text : "unknown MPI error");
}

/* MPI's own waits never sleep; on hosts with more ranks than CPUs they keep the kernel's
 * network threads from running, for which they wait. Asleep for a 32nd of what the wait has lasted,
 * from 20 us to 0.5 ms: looking takes 2 us of a CPU that others may be measuring with. */
static int wait_asleep(MPI_Request *request)
{
    const long shortest_ns = 20000, longest_ns = 500000;
    struct timespec pause = {.tv_nsec = shortest_ns};
    long slept_ns = 0;
    int done = 0;

    for (;;) {
        const int code = MPI_Test(request, &done, MPI_STATUS_IGNORE);

        if (code != MPI_SUCCESS || done)
            return code;
        nanosleep(&pause, NULL);
        slept_ns += pause.tv_nsec;
        if (slept_ns / 32 > pause.tv_nsec)
            pause.tv_nsec = slept_ns / 32 < longest_ns ? slept_ns / 32 : longest_ns;
    }
}

static int all_gather_bytes(const struct mpi_comm *comm, const void *mine,
                            const struct nw_mpi_span *span, void *all)
{
    MPI_Request request;

    if (!comm->base.gentle)
        return MPI_Allgather(mine, span->count, span->type, all, span->count, span->type,
                             comm->comm);
    MPI_TRY(MPI_Iallgather(mine, span->count, span->type, all, span->count, span->type, comm->comm,
                           &request));
    return wait_asleep(&request);
}

static int broadcast_bytes(const struct mpi_comm *comm, void *data, const struct nw_mpi_span *span,
                           int root)
{
    MPI_Request request;

    if (!comm->base.gentle)
        return MPI_Bcast(data, span->count, span->type, root, comm->comm);
    MPI_TRY(MPI_Ibcast(data, span->count, span->type, root, comm->comm, &request));
    return wait_asleep(&request);
}

static int meet(const struct mpi_comm *comm)
{
    MPI_Request request;

    if (!comm->base.gentle)
        return MPI_Barrier(comm->comm);
    MPI_TRY(MPI_Ibarrier(comm->comm, &request));
    return wait_asleep(&request);
}

static nw_rc mpi_barrier(struct nw_comm *base)
{
    int code = meet((struct mpi_comm *)base);
    return code == MPI_SUCCESS ? NW_OK : nw_mpi_fail(code, "barrier");
}

static nw_rc mpi_exchange(struct nw_comm *base, const void *mine, uint64_t bytes, void *all)
{
    struct nw_mpi_span span;
    int code = nw_mpi_span_open(bytes, &span);
    if (code == MPI_SUCCESS) {
        code = all_gather_bytes((struct mpi_comm *)base, mine, &span, all);
        nw_mpi_span_close(&span);
    }
    return code == MPI_SUCCESS ? NW_OK : nw_mpi_fail(code, "exchange between all ranks");
}

static nw_rc mpi_share(struct nw_comm *base, void *data, uint64_t bytes, int root)
{
    struct nw_mpi_span span;
    int code = nw_mpi_span_open(bytes, &span);
    if (code == MPI_SUCCESS) {
        code = broadcast_bytes((struct mpi_comm *)base, data, &span, root);
        nw_mpi_span_close(&span);
    }
    return code == MPI_SUCCESS ? NW_OK : nw_mpi_fail(code, "sharing one rank's data");
}

/* Small messages leave at once; nobody waits for them to be read. */
static void mpi_alarm(struct nw_comm *base, int generation)
{
    struct mpi_comm *comm = (struct mpi_comm *)base;
    int *message;

    if (comm->alarm_count == NW_MPI_ALARMS_MAX)
        return;
    message = &comm->alarms[comm->alarm_count++];
    *message = generation;
    for (int rank = 0; rank < base->rank_count; rank++) {
        MPI_Request request;

        if (rank != base->rank &&
            MPI_Isend(message, 1, MPI_INT, rank, ALARM_TAG, comm->comm, &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
    }
}

static bool mpi_alarmed(struct nw_comm *base, int generation)
{
    struct mpi_comm *comm = (struct mpi_comm *)base;
    int there = 0, number;

    while (MPI_Iprobe(MPI_ANY_SOURCE, ALARM_TAG, comm->comm, &there, MPI_STATUS_IGNORE) ==
               MPI_SUCCESS &&
           there &&
           MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, ALARM_TAG, comm->comm,
                    MPI_STATUS_IGNORE) == MPI_SUCCESS)
        comm->heard = number > comm->heard ? number : comm->heard;
    return comm->heard >= generation;
}

static void mpi_close(struct nw_comm *base)
{
    struct mpi_comm *comm = (struct mpi_comm *)base;
    int finalized = 1;
    MPI_Finalized(&finalized);
    if (!finalized && comm->comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm->comm);
    nw_mpi_kit_release(comm->kit);
    nw_comm_drop_hosts(base);
    free(comm->place_of_rank);
    free(comm);
}

static nw_rc set_hosts(struct mpi_comm *comm)
{
    char name[MPI_MAX_PROCESSOR_NAME + 1] = "", mine[NW_HOST_NAME_SIZE] = "";
    int length = 0;
    int code = MPI_Get_processor_name(name, &length);
    if (code != MPI_SUCCESS)
        return nw_mpi_fail(code, "asking for the host's name");
    snprintf(mine, sizeof mine, "%.*s", NW_HOST_NAME_SIZE - 1, name);

    char(*names)[NW_HOST_NAME_SIZE] = calloc((size_t)comm->base.rank_count, sizeof *names);
    if (!names)
        return nw_fail(NW_ENOMEM, "cannot keep the host names of %d ranks", comm->base.rank_count);
    nw_rc rc = mpi_exchange(&comm->base, mine, sizeof mine, names);
    if (rc == NW_OK)
        rc = nw_comm_set_hosts(&comm->base, (const char(*)[NW_HOST_NAME_SIZE])names);
    free(names);
    return rc;
}

/* Takes `handle` and a reference to `kit`, also when it fails. */
static nw_rc wrap(MPI_Comm handle, struct nw_mpi_kit *kit, struct nw_comm **comm_out)
{
    struct mpi_comm *comm = calloc(1, sizeof *comm);
    if (!comm) {
        MPI_Comm_free(&handle);
        nw_mpi_kit_release(kit);
        return nw_fail(NW_ENOMEM, "cannot keep a communicator");
    }
    *comm = (struct mpi_comm){.base.ops = &mpi_ops, .comm = handle, .kit = kit};
    MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
    MPI_Comm_rank(handle, &comm->base.rank);
    MPI_Comm_size(handle, &comm->base.rank_count);
    nw_mpi_name(comm->base.library, sizeof comm->base.library);
    nw_rc rc = set_hosts(comm);
    if (rc != NW_OK)
        mpi_close(&comm->base);
    else
        *comm_out = &comm->base;
    return rc;
}

static nw_rc mpi_split(struct nw_comm *base, int colour, struct nw_comm **comm_out)
{
    struct mpi_comm *comm = (struct mpi_comm *)base;
    MPI_Comm handle;
    int code = MPI_Comm_split(comm->comm, colour < 0 ? MPI_UNDEFINED : colour, base->rank, &handle);
    if (code != MPI_SUCCESS)
        return nw_mpi_fail(code, "splitting the ranks");
    if (handle == MPI_COMM_NULL) {
        *comm_out = NULL;
        return NW_OK;
    }
    NW_TRY(wrap(handle, nw_mpi_kit_hold(comm->kit), comm_out));
    (*comm_out)->gentle = base->gentle;
    return NW_OK;
}

static const struct nw_comm_ops mpi_ops = {
    .name = "mpi",
    .title = "MPI on host memory",
    .call = nw_mpi_call,
    .swap = nw_mpi_swap,
    .pass = nw_mpi_pass,
    .barrier = mpi_barrier,
    .exchange = mpi_exchange,
    .share = mpi_share,
    .split = mpi_split,
    .close = mpi_close,
    .supports = nw_mpi_supports,
    .alarm = mpi_alarm,
    .alarmed = mpi_alarmed,
};

nw_rc nw_comm_open_mpi(struct nw_comm **comm_out)
{
    MPI_Comm handle;
    struct nw_mpi_kit *kit;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Comm_dup(MPI_COMM_WORLD, &handle);
    if (code != MPI_SUCCESS)
        return nw_mpi_fail(code, "opening the ranks' communicator");
    nw_rc rc = nw_mpi_kit_make(&kit);
    if (rc != NW_OK) {
        MPI_Comm_free(&handle);
        return rc;
    }
    NW_TRY(wrap(handle, kit, comm_out));
    const char *restriction = nw_mpi_restriction();

    if (restriction == NULL)
        return NW_OK;
    rc = nw_findings_add(&(*comm_out)->findings, NW_FINDING_WARN, "mpi-restricted",
                         (*comm_out)->host_names[(*comm_out)->host_index],
                         "start it with --cap-add SYS_PTRACE", "%s", restriction);
    if (rc != NW_OK)
        nw_comm_close(*comm_out);
    return rc;
}
