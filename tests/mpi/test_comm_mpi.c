/* The MPI backend, under mpirun with any number of ranks, or alone: every collective exact.
 *
 *     mpirun -np 3 mpi_comm_mpi             the matrix
 *     mpirun -np 2 mpi_comm_mpi --large     counts above INT_MAX too, where memory allows
 */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "matrix.h"

/* Elements or bytes above what MPI's int holds; both buffers of every rank must fit twice over. */
static nw_rc large(struct nw_comm *comm, struct matrix_tally *tally)
{
    static const struct {
        const char *coll;
        nw_dtype dtype;
        uint64_t bytes_per_chunk;
    } cases[] = {
        {"broadcast", NW_INT8, (1ull << 31) + 12345},
        {"sendrecv", NW_FLOAT, (1ull << 31) + 4096},
        {"all_reduce", NW_INT8, (1ull << 31) + 12345},
        {"all_gather", NW_INT8, (1ull << 31) + 4096},
    };
    const double free_bytes = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    nw_rc rc = NW_OK;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && rc == NW_OK; i++) {
        struct nw_call call = {.coll = nw_coll_find(cases[i].coll), .dtype = cases[i].dtype};
        const bool chunked = call.coll->flags & NW_COLL_CHUNKED;
        call.shape =
            nw_coll_shape(call.coll, cases[i].bytes_per_chunk * (chunked ? comm->rank_count : 1),
                          call.dtype, comm->rank_count);
        const double need = (double)(call.shape.send_bytes + call.shape.recv_bytes) *
                            comm->local_count * 1.5; /* Open MPI's own buffers */
        int fits = need < free_bytes;
        NW_TRY(comm->ops->share(comm, &fits, sizeof fits, 0));
        if (!fits) {
            if (comm->rank == 0)
                printf("skipped: %s above 2^31 bytes needs %.1f GB of memory, free are %.1f GB\n",
                       cases[i].coll, need / 1e9, free_bytes / 1e9);
            continue;
        }
        void *send = nw_comm_alloc(call.shape.send_bytes);
        void *recv = nw_comm_alloc(call.shape.recv_bytes);
        rc = send && recv ? matrix_call(comm, &call, send, recv, i, tally)
                          : nw_fail(NW_ENOMEM, "no memory for %s", cases[i].coll);
        nw_comm_free(send, call.shape.send_bytes);
        nw_comm_free(recv, call.shape.recv_bytes);
    }
    return rc;
}

static nw_rc refused(struct nw_comm *comm)
{
    struct nw_call call = {.coll = nw_coll_find("alltoall"), .in_place = true};
    if (comm->ops->supports(comm, &call) || comm->ops->call(comm, &call) != NW_ENOTSUP)
        return nw_fail(NW_EWRONG, "an all-to-all in place was not refused");
    call = (struct nw_call){.coll = nw_coll_find("broadcast"), .root = comm->rank_count};
    if (comm->ops->supports(comm, &call) || comm->ops->call(comm, &call) != NW_EUSAGE)
        return nw_fail(NW_EWRONG, "a root that is no rank was not refused");
    call = (struct nw_call){.coll = nw_coll_find("reduce_scatter"), .dtype = NW_INT8};
    call.shape = nw_coll_shape(call.coll, 1ull << 33, call.dtype, comm->rank_count);
    if (comm->ops->supports(comm, &call) || comm->ops->call(comm, &call) != NW_ENOTSUP)
        return nw_fail(NW_EWRONG, "a reduce-scatter beyond MPI's int was not refused");
    int mine = 0, theirs;
    if (comm->ops->swap(comm, comm->rank_count, &mine, &theirs, sizeof mine) != NW_ELIB ||
        !strstr(nw_last_error()->text, "MPI_ERR_RANK"))
        return nw_fail(NW_EWRONG, "MPI's error did not come back: %s", nw_last_error()->text);
    return NW_OK;
}

int main(int argc, char **argv)
{
    struct matrix_tally tally = {0};
    struct nw_comm *comm = NULL;
    nw_rc rc = nw_mpi_start(&argc, &argv);
    if (rc == NW_OK)
        rc = nw_comm_open_mpi(&comm);
    if (rc == NW_OK)
        rc = matrix_services(comm);
    if (rc == NW_OK)
        rc = refused(comm);
    if (rc == NW_OK)
        rc = matrix_run(comm, &tally);
    if (rc == NW_OK && argc > 1 && !strcmp(argv[1], "--large"))
        rc = large(comm, &tally);
    if (rc != NW_OK) {
        printf("%s: %s\n", nw_rc_name(rc), nw_last_error()->text);
        fflush(stdout);
        nw_mpi_abort(1);
    }
    if (comm->rank == 0)
        printf("%s, %d ranks on %d hosts: %llu calls, %llu elements checked on rank 0\n",
               comm->library, comm->rank_count, comm->host_count, (unsigned long long)tally.calls,
               (unsigned long long)tally.elements);
    rc = tally.calls < 1000 || tally.wrong > 0;
    nw_comm_close(comm);
    nw_mpi_stop();
    return rc != 0;
}
