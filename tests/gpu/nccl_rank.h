/* One rank of tests/gpu/test_nccl.c: its GPU, the communicator, how ranks without MPI find each
 * other (a file), how work is waited for, how a result is said and kept. */
#ifndef NW_TESTS_GPU_NCCL_RANK_H
#define NW_TESTS_GPU_NCCL_RANK_H

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collectives/nccl_api.h"
#include "kernels/dev.h"
#include "base/library.h"

#define LIMIT_S 30.0 /* a call that is not done by then is a failure */

/* ncclConfig_t as of 2.14: that much is filled, and `version` says so to later libraries, which
 * then take their own values for their own fields. */
struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, padding;
};
/* ncclSimInfo_t, 2.22 */
struct nccl_sim_info {
    size_t size;
    unsigned magic, version;
    float estimated_us;
};

/* X(member, symbol, arguments): what came after 2.12; NULL where the library has it not. */
#define LATER_MAP(X)                                                                               \
    X(init_config, "ncclCommInitRankConfig",                                                       \
      (struct ncclComm * *comm, int count, struct nw_nccl_id id, int rank,                         \
       struct nccl_config *config))                                                                \
    X(finalize, "ncclCommFinalize", (struct ncclComm * comm))                                      \
    X(split, "ncclCommSplit",                                                                      \
      (struct ncclComm * comm, int color, int key, struct ncclComm **other,                        \
       struct nccl_config *config))                                                                \
    X(mem_alloc, "ncclMemAlloc", (void **memory, size_t bytes))                                    \
    X(mem_free, "ncclMemFree", (void *memory))                                                     \
    X(add, "ncclCommRegister",                                                                     \
      (struct ncclComm * comm, void *buffer, size_t bytes, void **handle))                         \
    X(take_away, "ncclCommDeregister", (struct ncclComm * comm, void *handle))                     \
    X(window, "ncclCommWindowRegister",                                                            \
      (struct ncclComm * comm, void *buffer, size_t bytes, void **window, int flags))              \
    X(window_end, "ncclCommWindowDeregister", (struct ncclComm * comm, void *window))              \
    X(simulate_end, "ncclGroupSimulateEnd", (struct nccl_sim_info * info))

struct later_api {
#define X(member, symbol, arguments) nw_nccl_result(*member) arguments;
    LATER_MAP(X)
#undef X
};

struct rank {
    int rank, size;
    const char *id_file;
    struct nw_dev *dev;
    struct nw_stream *stream;
    struct nw_mark *start, *end;
    struct CUstream_st *handle;
    const struct nw_nccl_api *nccl;
    struct later_api later;
    struct ncclComm *comm;
    bool shared; /* several ranks on one GPU: no time means anything */
    FILE *json;
    int failed, rounds;
};

static inline double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void pause_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* A result: rank 0's good ones are printed, bad ones of all. */
static inline void say(struct rank *r, bool ok, const char *what, const char *detail)
{
    if (!ok || r->rank == 0)
        printf("  rank %d: %-38s %s%s\n", r->rank, what, ok ? "" : "NOT IN ORDER: ", detail);
    fflush(stdout);
    r->failed += !ok;
    if (!r->json)
        return;
    fprintf(r->json,
            "{\"check\": \"nccl\", \"ranks\": %d, \"rank\": %d, \"what\": \"%s\", \"ok\": %s, "
            "\"shared_gpu\": %s, \"simulated\": %s}\n",
            r->size, r->rank, what, ok ? "true" : "false", r->shared ? "true" : "false",
            r->dev->simulated ? "true" : "false");
}

static inline const char *code_text(const struct rank *r, int code, char text[128])
{
    snprintf(text, 128, "%s (%d)", r->nccl->get_error_string(code), code);
    return text;
}

/* Until a communicator that does not block has done what it was asked for. */
static inline int settle(struct rank *r, struct ncclComm *comm, int code, double limit_s)
{
    const double until = now_s() + limit_s;
    while (code == NW_NCCL_IN_PROGRESS && now_s() < until) {
        pause_ms(2);
        if (r->nccl->comm_get_async_error(comm, &code) != NW_NCCL_SUCCESS)
            return -1;
    }
    return code;
}

/* Until the stream's work is done: NW_OK, NW_ETIMEOUT after `limit_s`, NW_ELIB when the
 * communicator says that it broke. */
static inline nw_rc wait_work(struct rank *r, struct ncclComm *comm, double limit_s)
{
    const double until = now_s() + limit_s;
    for (;;) {
        int code = NW_NCCL_SUCCESS;
        const nw_rc rc = r->dev->ops->wait(r->stream, 20e6);
        if (rc != NW_ETIMEOUT)
            return rc;
        r->nccl->comm_get_async_error(comm, &code);
        if (code != NW_NCCL_SUCCESS && code != NW_NCCL_IN_PROGRESS)
            return nw_nccl_fail(r->nccl, comm, code, "asynchronous error");
        if (now_s() > until)
            return nw_fail(NW_ETIMEOUT, "not done after %.3g s", limit_s);
    }
}

/* Rank 0's id to all, through a file that appears whole; each call a file of its own. */
static inline bool share_id(struct rank *r, struct nw_nccl_id *id)
{
    char path[512], whole[520];
    snprintf(path, sizeof path, "%s.%d", r->id_file ? r->id_file : "/dev/null", r->rounds++);
    if (r->size == 1)
        return r->nccl->get_unique_id(id) == NW_NCCL_SUCCESS;
    snprintf(whole, sizeof whole, "%s.new", path);
    if (r->rank == 0) {
        const int fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const bool good = r->nccl->get_unique_id(id) == NW_NCCL_SUCCESS && fd >= 0 &&
                          write(fd, id, sizeof *id) == (ssize_t)sizeof *id;
        if (fd >= 0)
            close(fd);
        return good && rename(whole, path) == 0;
    }
    for (const double until = now_s() + LIMIT_S; now_s() < until; pause_ms(5)) {
        const int fd = open(path, O_RDONLY);
        if (fd < 0)
            continue;
        const bool good = read(fd, id, sizeof *id) == (ssize_t)sizeof *id;
        close(fd);
        return good;
    }
    return false;
}

/* Without blocking where the library can (2.14). */
static inline int init_start(struct rank *r, struct ncclComm **comm)
{
    struct nccl_config config = {.size = sizeof config,
                                 .magic = 0xcafebeef,
                                 .version = 21403,
                                 .blocking = 0,
                                 .padding = INT_MIN /* cgaClusterSize of 2.17: undefined */};
    struct nw_nccl_id id;
    if (!share_id(r, &id))
        return -1;
    return r->later.init_config ? r->later.init_config(comm, r->size, id, r->rank, &config)
                                : r->nccl->comm_init_rank(comm, r->size, id, r->rank);
}

static inline bool comm_open(struct rank *r)
{
    char text[128];
    const int code = settle(r, r->comm, init_start(r, &r->comm), LIMIT_S);
    const char *way = r->later.init_config ? "starting NCCL, not blocking" : "starting NCCL";
    say(r, code == NW_NCCL_SUCCESS, way, code_text(r, code, text));
    return code == NW_NCCL_SUCCESS;
}

static inline void comm_close(struct rank *r)
{
    char text[128];
    int code = NW_NCCL_SUCCESS;
    if (!r->comm)
        return;
    if (r->later.finalize)
        code = settle(r, r->comm, r->later.finalize(r->comm), LIMIT_S);
    if (code == NW_NCCL_SUCCESS)
        code = r->nccl->comm_destroy(r->comm);
    say(r, code == NW_NCCL_SUCCESS, "ending NCCL", code_text(r, code, text));
    r->comm = NULL;
}

/* Ranks that share a GPU: NCCL refuses them on one host, so each says that it is a host of its own
 * (NCCL_HOSTID, since 2.5.6), and they talk over the loopback device. Before NCCL is loaded. */
static inline void pretend_hosts(const struct rank *r)
{
    char host[32];
    snprintf(host, sizeof host, "nodeworth-%d", r->rank);
    setenv("NCCL_HOSTID", host, 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    setenv("NCCL_NET", "Socket", 1);
    setenv("NCCL_IB_DISABLE", "1", 1);
    setenv("NCCL_MIN_CTAS", "1", 1);
    setenv("NCCL_MAX_CTAS", "2", 1);
}

static inline nw_rc rank_open(struct rank *r, int gpu_count)
{
    static const struct nw_library_symbol symbols[] = {
#define X(member, symbol, arguments) {offsetof(struct later_api, member), symbol, NULL, false},
        LATER_MAP(X)
#undef X
    };
    void *handle;
    r->shared = r->size > gpu_count;
    if (r->shared)
        pretend_hosts(r);
    NW_TRY(nw_nccl_api_open(&r->nccl));
    void *library = dlopen(r->nccl->path, RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        return nw_fail(NW_ENODEV, "%s is not loaded", r->nccl->path);
    NW_TRY(nw_library_symbols(library, r->nccl->path, symbols, sizeof symbols / sizeof *symbols,
                              &r->later));
    NW_TRY(nw_dev_open("cuda", r->rank % gpu_count, &r->dev));
    if (r->dev->simulated != r->nccl->simulated)
        return nw_fail(NW_ENODEV, "of the driver and NCCL one is a simulation, the other not");
    NW_TRY(r->dev->ops->stream_open(r->dev, &r->stream));
    NW_TRY(r->dev->ops->mark_open(r->dev, &r->start));
    NW_TRY(r->dev->ops->mark_open(r->dev, &r->end));
    NW_TRY(r->dev->ops->native(r->stream, &handle));
    r->handle = handle;
    return NW_OK;
}

#endif
