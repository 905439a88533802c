/* Life of an NCCL communicator. MPI, the bootstrap, passes around what is small and in host memory.
 *
 * The communicator is a blocking one: with a non-blocking one NCCL (2.14 to 2.30, ncclGroupEnd)
 * starts a thread for every single collective, which would be measured with it. What blocking could
 * make hang runs in a thread of ours with a deadline instead. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/units.h"
#include "collectives/comm_nccl.h"
#include "collectives/common.h"

#define CLOSE_TIMEOUT_NS 10e9

static const struct nw_comm_ops nccl_ops;

/* ---- start and end of NCCL's communicator, in a thread
 * -------------------------------------------
 */

/* Left behind, with its thread, when it does not end in time. */
struct task {
    void (*run)(struct task *task);
    struct nccl_gpu *gpu;
    struct ncclComm *handle;
    int rank, rank_count;
    struct nw_nccl_id id;
    nw_rc rc;
    struct nw_err error;
};

static void start_handle(struct task *task)
{
    const struct nw_nccl_api *nccl = task->gpu->nccl;
    const int code = nccl->comm_init_rank(&task->handle, task->rank_count, task->id, task->rank);

    task->rc = code == NW_NCCL_SUCCESS
                   ? NW_OK
                   : nw_nccl_fail(nccl, NULL, code, "rank %d: starting NCCL for %d ranks",
                                  task->rank, task->rank_count);
}

static void end_handle(struct task *task)
{
    const int code = task->gpu->nccl->comm_destroy(task->handle);

    task->rc = code == NW_NCCL_SUCCESS
                   ? NW_OK
                   : nw_nccl_fail(task->gpu->nccl, NULL, code, "ending a communicator");
}

static void *run_task(void *argument)
{
    struct task *task = argument;
    void *handle;

    task->rc = task->gpu->dev->ops->native(task->gpu->stream, &handle);
    if (task->rc == NW_OK)
        task->run(task);
    task->error = *nw_last_error();
    return NULL;
}

static struct timespec deadline_of(double timeout_ns)
{
    struct timespec until;
    const double limit_ns = timeout_ns < 1e17 ? timeout_ns : 1e17; /* three years */

    clock_gettime(CLOCK_REALTIME, &until);
    const uint64_t ns = (uint64_t)until.tv_nsec + (uint64_t)limit_ns;

    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    return until;
}

/* Takes `task`; the handle that it made into *handle_out. */
static nw_rc run_in_time(struct task *task, const char *what, double timeout_ns,
                         struct ncclComm **handle_out)
{
    const struct timespec until = deadline_of(timeout_ns);
    pthread_t thread;
    nw_rc rc;

    if (pthread_create(&thread, NULL, run_task, task) != 0) {
        free(task);
        return nw_fail(NW_ENOMEM, "%s: no thread for it", what);
    }
    if (pthread_timedjoin_np(thread, NULL, &until) != 0) {
        pthread_detach(thread);
        return nw_fail(NW_ETIMEOUT, "%s: no answer after %.3g s; given up", what,
                       timeout_ns * 1e-9);
    }
    rc = task->rc;
    *handle_out = task->handle;
    if (rc != NW_OK)
        (void)nw_fail_at(rc, task->error.lib, task->error.lib_code, task->error.where, "%s",
                         task->error.text);
    free(task);
    return rc;
}

static struct task *new_task(struct nccl_gpu *gpu, void (*run)(struct task *task))
{
    struct task *task = calloc(1, sizeof *task);

    if (task != NULL)
        *task = (struct task){.run = run, .gpu = gpu};
    return task;
}

/* Rank 0's id to all. Collective over the bootstrap, whatever happens on rank 0. */
static nw_rc share_id(struct nccl_comm *comm, struct nw_nccl_id *id_out)
{
    const struct nw_nccl_api *nccl = comm->gpu->nccl;
    struct {
        int code;
        struct nw_nccl_id id;
    } shared = {.code = NW_NCCL_SUCCESS};

    if (comm->base.rank == 0)
        shared.code = nccl->get_unique_id(&shared.id);
    NW_TRY(comm->bootstrap->ops->share(comm->bootstrap, &shared, sizeof shared, 0));
    if (shared.code != NW_NCCL_SUCCESS)
        return nw_nccl_fail(nccl, NULL, shared.code, "rank 0: asking NCCL for an id of the job");
    *id_out = shared.id;
    return NW_OK;
}

static nw_rc start(struct nccl_comm *comm, double timeout_ns)
{
    struct task *task = new_task(comm->gpu, start_handle);
    char what[64];

    if (task == NULL)
        return nw_fail(NW_ENOMEM, "no memory to start NCCL");
    task->rank = comm->base.rank;
    task->rank_count = comm->base.rank_count;
    nw_rc rc = share_id(comm, &task->id);
    if (rc != NW_OK) {
        free(task);
        return rc;
    }
    snprintf(what, sizeof what, "rank %d: starting NCCL for %d ranks", task->rank,
             task->rank_count);
    rc = run_in_time(task, what, timeout_ns, &comm->handle);
    if (rc == NW_ETIMEOUT)
        comm->gpu->given_up = true; /* a thread of NCCL's is still at it */
    return rc;
}

/* ---- the ops ------------------------------------------------------------------------------------
 */

static nw_rc nccl_barrier(struct nw_comm *base)
{
    struct nw_comm *bootstrap = ((struct nccl_comm *)base)->bootstrap;
    return bootstrap->ops->barrier(bootstrap);
}

static nw_rc nccl_exchange(struct nw_comm *base, const void *mine, uint64_t bytes, void *all)
{
    struct nw_comm *bootstrap = ((struct nccl_comm *)base)->bootstrap;
    return bootstrap->ops->exchange(bootstrap, mine, bytes, all);
}

static nw_rc nccl_share(struct nw_comm *base, void *data, uint64_t bytes, int root)
{
    struct nw_comm *bootstrap = ((struct nccl_comm *)base)->bootstrap;
    return bootstrap->ops->share(bootstrap, data, bytes, root);
}

static void nccl_close(struct nw_comm *base)
{
    struct nccl_comm *comm = (struct nccl_comm *)base;
    struct nccl_gpu *gpu = comm->gpu;
    struct task *task = comm->handle != NULL ? new_task(gpu, end_handle) : NULL;
    struct ncclComm *ended;

    if (task != NULL) {
        task->handle = comm->handle;
        if (run_in_time(task, "ending a communicator", CLOSE_TIMEOUT_NS, &ended) == NW_ETIMEOUT)
            gpu->given_up = true;
    }
    for (struct nccl_comm **at = &gpu->comms; *at != NULL; at = &(*at)->next) {
        if (*at == comm) {
            *at = comm->next;
            break;
        }
    }
    nw_nccl_gpu_release(gpu);
    nw_comm_close(comm->bootstrap);
    nw_findings_free(&base->findings);
    free(comm);
}

/* What the environment forces. */
static void name_lane(char lane[16])
{
    static const struct {
        const char *variable, *value, *lane;
    } forced[] = {
        {"NCCL_P2P_DISABLE", "1", "shm"},       {"NCCL_P2P_LEVEL", "LOC", "shm"},
        {"NCCL_ALGO", "Ring", "ring"},          {"NCCL_ALGO", "Tree", "tree"},
        {"NCCL_ALGO", "NVLS", "nvls"},          {"NCCL_P2P_LEVEL", "NVL", "nvlink"},
        {"NCCL_NET", "Socket", "tcp"},          {"NCCL_IB_DISABLE", "1", "tcp"},
        {"NCCL_NET_GDR_LEVEL", "LOC", "nogdr"},
    };

    snprintf(lane, 16, "auto");
    for (size_t i = 0; i < sizeof forced / sizeof *forced; i++) {
        const char *value = getenv(forced[i].variable);

        if (value != NULL && strcasecmp(value, forced[i].value) == 0) {
            snprintf(lane, 16, "%s", forced[i].lane);
            return;
        }
    }
}

/* A double has its own clock, in which its work lasts as long as its model says. */
static uint64_t (*clock_of(const struct nw_dev *dev))(void)
{
    uint64_t (*now_ns)(void) = NULL;
    void *library = dev->simulated ? dlopen(dev->library_path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *symbol = library != NULL ? dlsym(library, "fk_now") : NULL;

    memcpy(&now_ns, &symbol, sizeof now_ns);
    return now_ns;
}

/* A wrapped bootstrap without NCCL's part. Takes neither argument when it fails. */
static nw_rc wrap(struct nw_comm *bootstrap, struct nccl_gpu *gpu, struct nccl_comm **comm_out)
{
    struct nccl_comm *comm = calloc(1, sizeof *comm);
    char version[24];

    if (comm == NULL)
        return nw_fail(NW_ENOMEM, "cannot keep a communicator");
    comm->base = *bootstrap; /* ranks and hosts are the same, and stay the bootstrap's */
    comm->base.ops = &nccl_ops;
    comm->base.findings = (struct nw_findings){0};
    comm->base.dev = gpu->dev;
    comm->base.simulated = gpu->about.simulated;
    comm->base.now_ns = clock_of(gpu->dev);
    name_lane(comm->base.lane);
    snprintf(comm->base.driver, sizeof comm->base.driver, "%s", gpu->about.driver);
    snprintf(comm->base.library, sizeof comm->base.library, "NCCL %s (%.100s)",
             nw_nccl_version_text(gpu->nccl->version, version), gpu->nccl->path);
    comm->bootstrap = bootstrap;
    comm->gpu = gpu;
    comm->next = gpu->comms;
    gpu->comms = comm;
    snprintf(comm->last, sizeof comm->last, "the start");
    *comm_out = comm;
    return NW_OK;
}

static nw_rc nccl_split(struct nw_comm *base, int colour, struct nw_comm **comm_out)
{
    struct nccl_comm *parent = (struct nccl_comm *)base, *comm;
    struct nw_comm *bootstrap;

    NW_TRY(parent->bootstrap->ops->split(parent->bootstrap, colour, &bootstrap));
    if (bootstrap == NULL) {
        *comm_out = NULL;
        return NW_OK;
    }
    nw_rc rc = wrap(bootstrap, parent->gpu, &comm);
    if (rc != NW_OK) {
        nw_comm_close(bootstrap);
        return rc;
    }
    parent->gpu->users++;
    rc = start(comm, 60e9);
    if (rc != NW_OK) {
        const struct nw_err error = *nw_last_error();

        nccl_close(&comm->base);
        return nw_fail_at(rc, error.lib, error.lib_code, error.where, "%s", error.text);
    }
    *comm_out = &comm->base;
    return NW_OK;
}

static const struct nw_comm_ops nccl_ops = {
    .name = "nccl",
    .title = "NCCL, one GPU a rank",
    .call = nw_nccl_call,
    .swap = nw_nccl_swap,
    .barrier = nccl_barrier,
    .exchange = nccl_exchange,
    .share = nccl_share,
    .split = nccl_split,
    .close = nccl_close,
    .supports = nw_nccl_supports,
    .stream = nw_nccl_stream,
    .expect = nw_nccl_expect,
    .finish = nw_nccl_finish,
    .alloc = nw_nccl_alloc,
    .free = nw_nccl_free,
    .free_bytes = nw_nccl_free_bytes,
    .put = nw_nccl_put,
    .get = nw_nccl_get,
    .fill = nw_nccl_fill,
    .check = nw_nccl_check,
};

static nw_rc tell_fallbacks(const struct nw_nccl_api *nccl, struct nw_findings *findings)
{
    char version[24];

    if (nccl->alltoall != NULL && nccl->gather != NULL && nccl->scatter != NULL)
        return NW_OK;
    return nw_findings_add(
        findings, NW_FINDING_INFO, "nccl-grouped", "", NULL,
        "NCCL %s has no calls for alltoall, gather and scatter: they are made of "
        "grouped send and receive",
        nw_nccl_version_text(nccl->version, version));
}

nw_rc nw_nccl_comm_open(struct nw_comm *bootstrap, double timeout_ns, struct nw_comm **comm_out)
{
    struct nw_findings findings = {0};
    struct nccl_gpu *gpu;
    struct nccl_comm *comm;
    nw_rc rc = nw_nccl_gpu_open(bootstrap, &gpu, &findings);

    if (rc == NW_OK) {
        rc = wrap(bootstrap, gpu, &comm);
        if (rc != NW_OK)
            nw_nccl_gpu_release(gpu);
    }
    if (rc != NW_OK) {
        nw_findings_free(&findings);
        return rc;
    }
    comm->base.findings = findings;
    rc = tell_fallbacks(gpu->nccl, &comm->base.findings);
    if (rc == NW_OK)
        rc = start(comm, timeout_ns);
    if (rc != NW_OK) {
        const struct nw_err error = *nw_last_error();

        comm->bootstrap = NULL; /* stays the caller's */
        nccl_close(&comm->base);
        return nw_fail_at(rc, error.lib, error.lib_code, error.where, "%s", error.text);
    }
    *comm_out = &comm->base;
    return NW_OK;
}
