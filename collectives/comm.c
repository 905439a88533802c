#include "collectives/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectives/common.h"
#include "collectives/oracle.h"
#ifdef NW_HAVE_NCCL
#include "collectives/comm_nccl.h"
#endif

const struct nw_comm_backend nw_comm_backends[] = {
    {.name = "mpi", .title = "MPI on host memory", .built = true},
#ifdef NW_HAVE_NCCL
    {.name = "nccl", .title = "NCCL, one GPU a rank", .built = true},
#else
    {.name = "nccl", .title = "NCCL, one GPU a rank", .built = false},
#endif
    {.name = "local", .title = "threads of one process, a double for tests", .built = true},
    {.name = NULL},
};

void nw_call_place(struct nw_call *call, int rank, void *send_buffer, void *recv_buffer)
{
    const struct nw_shape *shape = &call->shape;
    const uint64_t own = shape->count * nw_dtype_bytes(call->dtype) * (uint64_t)rank;
    call->send = send_buffer;
    call->recv = recv_buffer;
    if (!call->in_place)
        return;
    if (shape->send_bytes > shape->recv_bytes)
        call->recv = (char *)send_buffer + own;
    else if (shape->send_bytes < shape->recv_bytes)
        call->send = (char *)recv_buffer + own;
    else
        call->send = recv_buffer;
}

nw_rc nw_comm_set_hosts(struct nw_comm *comm, const char (*name_of_rank)[NW_HOST_NAME_SIZE])
{
    const int rank_count = comm->rank_count;
    int *host_of_rank = calloc((size_t)rank_count, sizeof *host_of_rank);
    char(*names)[NW_HOST_NAME_SIZE] = calloc((size_t)rank_count, sizeof *names);
    if (!host_of_rank || !names) {
        free(host_of_rank);
        free(names);
        return nw_fail(NW_ENOMEM, "cannot keep the host names of %d ranks", rank_count);
    }
    int host_count = 0;
    for (int rank = 0; rank < rank_count; rank++) {
        int host = 0;
        while (host < host_count && strcmp(names[host], name_of_rank[rank]))
            host++;
        if (host == host_count)
            memcpy(names[host_count++], name_of_rank[rank], sizeof *names);
        host_of_rank[rank] = host;
    }
    comm->host_of_rank = host_of_rank;
    comm->host_names = names;
    comm->host_count = host_count;
    comm->host_index = host_of_rank[comm->rank];
    comm->local_rank = comm->local_count = 0;
    for (int rank = 0; rank < rank_count; rank++) {
        if (host_of_rank[rank] != comm->host_index)
            continue;
        comm->local_rank += rank < comm->rank;
        comm->local_count++;
    }
    return NW_OK;
}

void nw_comm_drop_hosts(struct nw_comm *comm)
{
    free(comm->host_of_rank);
    free(comm->host_names);
    comm->host_of_rank = NULL;
    comm->host_names = NULL;
}

bool nw_call_is_valid(const struct nw_comm *comm, const struct nw_call *call)
{
    if (call->in_place && call->coll->flags & NW_COLL_NO_INPLACE) {
        (void)nw_fail(NW_ENOTSUP, "%s has no in-place form", call->coll->name);
        return false;
    }
    if (call->coll->flags & NW_COLL_ROOTED && (call->root < 0 || call->root >= comm->rank_count)) {
        (void)nw_fail(NW_EUSAGE, "%s: root %d is no rank; accepted: 0 to %d", call->coll->name,
                      call->root, comm->rank_count - 1);
        return false;
    }
    return true;
}

const char *nw_comm_rank_text(const struct nw_comm *comm, int rank, char text[NW_COMM_RANK_TEXT])
{
    const int length = snprintf(text, NW_COMM_RANK_TEXT, "rank %d on %s", rank,
                                comm->host_names[comm->host_of_rank[rank]]);
    const struct nw_comm_gpu *gpu = comm->gpus != NULL ? &comm->gpus[rank] : NULL;

    if (gpu != NULL && gpu->pci[0] != '\0')
        snprintf(text + length, NW_COMM_RANK_TEXT - (size_t)length, " (gpu %d, %s)", gpu->index,
                 gpu->pci);
    return text;
}

nw_rc nw_comm_end(struct nw_comm *comm)
{
    return comm->ops->end != NULL ? comm->ops->end(comm) : NW_OK;
}

void nw_comm_close(struct nw_comm *comm)
{
    if (!comm)
        return;
    nw_findings_free(&comm->findings);
    comm->ops->close(comm);
}

nw_rc nw_comm_open_nccl(struct nw_comm *bootstrap, double timeout_ns,
                        const struct nw_nccl_wish *wish, struct nw_comm **comm_out)
{
#ifdef NW_HAVE_NCCL
    return nw_nccl_comm_open(bootstrap, timeout_ns, wish, comm_out);
#else
    (void)bootstrap;
    (void)timeout_ns;
    (void)wish;
    (void)comm_out;
    return nw_fail(NW_ENODEV,
                   "built without NCCL: there was no nvcc, or NW_CUDA or NW_NCCL is OFF");
#endif
}

nw_rc nw_comm_finish(struct nw_comm *comm, double timeout_ns)
{
    return comm->ops->finish != NULL ? comm->ops->finish(comm, timeout_ns) : NW_OK;
}

void *nw_comm_buffer(struct nw_comm *comm, uint64_t bytes)
{
    void *buffer = NULL;

    if (comm->ops->alloc != NULL)
        return comm->ops->alloc(comm, bytes, &buffer) == NW_OK ? buffer : NULL;
    buffer = nw_comm_alloc(bytes);
    if (buffer == NULL)
        (void)nw_fail(NW_ENOMEM, "no memory for a buffer of %llu bytes", (unsigned long long)bytes);
    return buffer;
}

void nw_comm_drop_buffer(struct nw_comm *comm, void *buffer, uint64_t bytes)
{
    if (buffer != NULL && comm->ops->free != NULL)
        comm->ops->free(comm, buffer);
    else
        nw_comm_free(buffer, bytes);
}

void nw_comm_put(struct nw_comm *comm, void *to, const void *from_host, uint64_t bytes)
{
    if (comm->ops->put != NULL)
        comm->ops->put(comm, to, from_host, bytes);
    else
        memcpy(to, from_host, bytes);
}

void nw_comm_get(struct nw_comm *comm, void *to_host, const void *from, uint64_t bytes)
{
    if (comm->ops->get != NULL)
        comm->ops->get(comm, to_host, from, bytes);
    else
        memcpy(to_host, from, bytes);
}

void nw_comm_fill(struct nw_comm *comm, const struct nw_call *call, uint64_t round)
{
    if (comm->ops->fill != NULL)
        comm->ops->fill(comm, call, round);
    else
        nw_oracle_fill(call, comm->rank, comm->rank_count, round);
}

uint64_t nw_comm_check(struct nw_comm *comm, const struct nw_call *call, uint64_t round,
                       struct nw_wrong *first_out)
{
    if (comm->ops->check != NULL)
        return comm->ops->check(comm, call, round, first_out);
    return nw_oracle_check(call, comm->rank, comm->rank_count, round, first_out);
}

static size_t whole_pages(uint64_t bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return (size_t)((bytes + (bytes == 0) + page - 1) / page * page);
}

/* Linux grants more than it has and kills whoever touches it: ask first. UINT64_MAX: unknown. */
static uint64_t available_bytes(void)
{
    FILE *stream = fopen("/proc/meminfo", "re");
    char line[128];
    unsigned long long kib;
    uint64_t bytes = UINT64_MAX;
    while (stream && fgets(line, sizeof line, stream)) {
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            bytes = kib * 1024;
    }
    if (stream)
        fclose(stream);
    return bytes;
}

void *nw_comm_alloc(uint64_t bytes)
{
    if (bytes > SIZE_MAX / 2 || bytes > available_bytes())
        return NULL;
    const size_t length = whole_pages(bytes);
    void *buffer = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED)
        return NULL;
    /* Ordinary pages, as malloc gives to most programs: with huge ones (MADV_HUGEPAGE) an
     * all-reduce of 16 MiB is 1.5 to 2.4 times as fast (docs/notes-openmpi.md), which they would
     * not see. */
    memset(buffer, 0, length);
    return buffer;
}

void nw_comm_free(void *buffer, uint64_t bytes)
{
    if (buffer)
        munmap(buffer, whole_pages(bytes));
}
