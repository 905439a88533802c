/* What NCCL does on the host and may never come back from: making communicators, ending them. Each
 * such call runs in a thread of its own with a deadline.
 *
 * Where NCCL has it (2.14) the communicator is a non-blocking one: its calls come back at once, and
 * what they started is waited for here, on the host, until ncclCommGetAsyncError says ncclSuccess;
 * after the deadline ncclCommAbort ends it, also in the middle of its start. The price is a thread
 * of NCCL's for every call (ncclGroupEnd, 2.14 to 2.30), which a sample does not contain: its calls
 * are queued behind a gate (bench/gated.h). Below 2.14, and with NCCL_COMM_BLOCKING=1, a start that
 * hangs cannot be aborted: it is left behind with its thread, and ends with the process. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "collectives/comm_nccl.h"

#define END_NS   10e9
#define ABORT_NS 4e9 /* a start ends at most 5 s after its deadline */

/* ---- in a thread --------------------------------------------------------------------------------
 */

struct task {
    int (*run)(struct task *task); /* NCCL's code; done or begun: no failure */
    struct nccl_gpu *gpu;
    struct ncclComm *comm, *made; /* NCCL may write `made` as long as `comm` is in progress */
    int rank, rank_count, colour;
    struct nw_nccl_id id;
    struct nw_nccl_config config;
    char what[96]; /* "starting NCCL for 8 ranks" */
    nw_rc rc;
    struct nw_err error;
};

static bool is_failure(int code)
{
    return code != NW_NCCL_SUCCESS && code != NW_NCCL_IN_PROGRESS;
}

static void *run_task(void *argument)
{
    struct task *task = argument;
    void *handle;
    int code;

    task->rc = task->gpu->dev->ops->native(task->gpu->stream, &handle);
    if (task->rc == NW_OK) {
        code = task->run(task);
        if (is_failure(code))
            task->rc = nw_nccl_fail(task->gpu->nccl, NULL, code, "%s", task->what);
    }
    if (task->rc != NW_OK)
        task->error = *nw_last_error();
    return NULL;
}

static struct timespec wall_clock_in(double ns)
{
    struct timespec until;
    const double limit_ns = ns < 0 ? 0 : ns < 1e17 ? ns : 1e17; /* three years */

    clock_gettime(CLOCK_REALTIME, &until);
    const uint64_t sum_ns = (uint64_t)until.tv_nsec + (uint64_t)limit_ns;

    until.tv_sec += (time_t)(sum_ns / 1000000000u);
    until.tv_nsec = (long)(sum_ns % 1000000000u);
    return until;
}

static nw_rc no_answer(const char *what, double timeout_ns)
{
    return nw_fail(NW_ETIMEOUT, "%s: no answer after %.3g s; given up (ncclCommAbort)", what,
                   timeout_ns * 1e-9);
}

/* NW_ETIMEOUT: the task goes on by itself and must be left alone. */
static nw_rc run_in_time(struct task *task, double timeout_ns)
{
    const struct timespec until = wall_clock_in(timeout_ns);
    pthread_t thread;

    if (pthread_create(&thread, NULL, run_task, task) != 0)
        return nw_fail(NW_ENOMEM, "%s: no thread for it", task->what);
    if (pthread_timedjoin_np(thread, NULL, &until) != 0) {
        pthread_detach(thread);
        return nw_fail(NW_ETIMEOUT, "%s: no answer after %.3g s; given up, left in its thread",
                       task->what, timeout_ns * 1e-9);
    }
    return task->rc == NW_OK ? NW_OK
                             : nw_fail_at(task->rc, task->error.lib, task->error.lib_code,
                                          task->error.where, "%s", task->error.text);
}

static struct task *new_task(struct nccl_gpu *gpu, int (*run)(struct task *task))
{
    struct task *task = calloc(1, sizeof *task);

    if (task == NULL)
        (void)nw_fail(NW_ENOMEM, "no memory for a call into NCCL");
    else
        *task = (struct task){.run = run, .gpu = gpu};
    return task;
}

/* ---- waiting for what a call has begun ----------------------------------------------------------
 */

/* Looks without a pause at first: most calls are queued within some 20 us. */
#define BUSY_NS 200e3

static nw_rc wait_ready(const struct nw_nccl_api *nccl, struct ncclComm *handle, const char *what,
                        uint64_t began_ns, double timeout_ns)
{
    for (;;) {
        const double waited_ns = (double)(nw_now_ns() - began_ns);
        int state = NW_NCCL_SUCCESS;
        int code = nccl->comm_get_async_error(handle, &state);

        if (code == NW_NCCL_SUCCESS)
            code = state;
        if (code == NW_NCCL_SUCCESS)
            return NW_OK;
        if (code != NW_NCCL_IN_PROGRESS)
            return nw_nccl_fail(nccl, handle, code, "%s", what);
        if (waited_ns > timeout_ns)
            return no_answer(what, timeout_ns);
        if (waited_ns > BUSY_NS)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        else
            sched_yield();
    }
}

static int abort_handle(struct task *task)
{
    return task->gpu->nccl->comm_abort(task->comm);
}

/* Keeps the failure's words. */
static void abort_in_time(struct nccl_gpu *gpu, struct ncclComm *handle, double timeout_ns)
{
    const struct nw_err error = *nw_last_error();
    struct task *task = handle != NULL ? new_task(gpu, abort_handle) : NULL;

    if (task != NULL) {
        task->comm = handle;
        snprintf(task->what, sizeof task->what, "ncclCommAbort");
        if (run_in_time(task, timeout_ns) != NW_ETIMEOUT)
            free(task);
    }
    if (error.rc != NW_OK)
        (void)nw_fail_at(error.rc, error.lib, error.lib_code, error.where, "%s", error.text);
}

void nw_nccl_give_up(struct nccl_gpu *gpu)
{
    const uint64_t began_ns = nw_now_ns();

    gpu->given_up = true;
    for (struct nccl_comm *comm = gpu->comms; comm != NULL; comm = comm->next) {
        abort_in_time(gpu, comm->estimator, ABORT_NS - (double)(nw_now_ns() - began_ns));
        abort_in_time(gpu, comm->handle, ABORT_NS - (double)(nw_now_ns() - began_ns));
        comm->handle = comm->estimator = NULL;
    }
}

nw_rc nw_nccl_settle(struct nccl_comm *comm, int code)
{
    char what[128];
    nw_rc rc;

    snprintf(what, sizeof what, "%s over %d ranks", comm->last, comm->base.rank_count);
    if (is_failure(code))
        return nw_nccl_fail(comm->gpu->nccl, comm->handle, code, "%s", what);
    if (!comm->gpu->non_blocking)
        return NW_OK;
    rc = wait_ready(comm->gpu->nccl, comm->handle, what, nw_now_ns(), comm->gpu->timeout_ns);
    if (rc == NW_ETIMEOUT)
        nw_nccl_give_up(comm->gpu);
    return rc;
}

/* ---- start --------------------------------------------------------------------------------------
 */

static int start_by_id(struct task *task)
{
    const struct nw_nccl_api *nccl = task->gpu->nccl;

    if (nccl->comm_init_rank_config != NULL)
        return nccl->comm_init_rank_config(&task->made, task->rank_count, task->id, task->rank,
                                           &task->config);
    return nccl->comm_init_rank(&task->made, task->rank_count, task->id, task->rank);
}

/* Without a configuration the parent's is taken. */
static int start_by_split(struct task *task)
{
    struct nw_nccl_config *config = task->config.size > 0 ? &task->config : NULL;

    return task->gpu->nccl->comm_split(task->comm, task->colour, task->rank, &task->made, config);
}

/* 2.14 to 2.16 know `blocking` alone. Later ones compare the two CTA fields also where only one of
 * them is set. */
static struct nw_nccl_config config_of(const struct nccl_gpu *gpu)
{
    const bool ctas = gpu->features & NW_NCCL_CTAS;
    const bool old = gpu->nccl->version < 21700;

    return (struct nw_nccl_config){
        .size = old ? NW_NCCL_CONFIG_2_14 : sizeof(struct nw_nccl_config),
        .magic = NW_NCCL_CONFIG_MAGIC,
        .version = old ? 21400 : 21700,
        .blocking = 0,
        .cga_cluster_size = NW_NCCL_UNSET,
        .min_ctas = ctas ? gpu->wish.min_ctas : NW_NCCL_UNSET,
        .max_ctas = ctas ? gpu->wish.max_ctas : NW_NCCL_UNSET,
    };
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

/* Takes the task. Its communicator, ready, into *handle_out; NULL: none of the split's colours. */
static nw_rc start_in_time(struct task *task, double timeout_ns, struct ncclComm **handle_out)
{
    const uint64_t began_ns = nw_now_ns();
    struct nccl_gpu *gpu = task->gpu;
    nw_rc rc = run_in_time(task, timeout_ns);

    if (rc == NW_ETIMEOUT) { /* left behind */
        nw_nccl_give_up(gpu);
        return rc;
    }
    /* `made` of a split is there as soon as its parent is ready again, and no earlier. */
    if (rc == NW_OK && gpu->non_blocking && task->comm != NULL)
        rc = wait_ready(gpu->nccl, task->comm, task->what, began_ns, timeout_ns);
    if (rc == NW_OK && gpu->non_blocking && task->made != NULL)
        rc = wait_ready(gpu->nccl, task->made, task->what, began_ns, timeout_ns);
    if (rc == NW_OK)
        *handle_out = task->made;
    else if (gpu->non_blocking) {
        abort_in_time(gpu, task->made, ABORT_NS);
        if (rc == NW_ETIMEOUT) {
            nw_nccl_give_up(gpu);
            return rc; /* NCCL may still write into it */
        }
    }
    free(task);
    return rc;
}

/* With who speaks, and in which phase: nobody else may be left to add it. */
static nw_rc name_rank(const struct nccl_comm *comm, nw_rc rc)
{
    const struct nw_err error = *nw_last_error();
    char who[NW_COMM_RANK_TEXT];

    if (rc == NW_OK)
        return NW_OK;
    return nw_fail_at(rc, error.lib, error.lib_code, error.where, "%s: %s",
                      nw_comm_rank_text(&comm->base, comm->base.rank, who), error.text);
}

nw_rc nw_nccl_start(struct nccl_comm *comm)
{
    struct task *task = new_task(comm->gpu, start_by_id);
    nw_rc rc;

    if (task == NULL)
        return nw_last_error()->rc;
    task->rank = comm->base.rank;
    task->rank_count = comm->base.rank_count;
    task->config = config_of(comm->gpu);
    snprintf(task->what, sizeof task->what, "starting NCCL for %d ranks", task->rank_count);
    rc = share_id(comm, &task->id);
    if (rc != NW_OK) {
        free(task);
        return rc;
    }
    return name_rank(comm, start_in_time(task, comm->gpu->timeout_ns, &comm->handle));
}

nw_rc nw_nccl_split_handle(struct nccl_comm *parent, int colour, struct ncclComm **handle_out)
{
    struct task *task = new_task(parent->gpu, start_by_split);

    if (task == NULL)
        return nw_last_error()->rc;
    task->comm = parent->handle;
    task->rank = parent->base.rank;
    task->colour = colour < 0 ? NW_NCCL_SPLIT_NOCOLOUR : colour;
    snprintf(task->what, sizeof task->what, "ncclCommSplit of %d ranks", parent->base.rank_count);
    return name_rank(parent, start_in_time(task, parent->gpu->timeout_ns, handle_out));
}

nw_rc nw_nccl_estimator(struct nccl_comm *comm, struct ncclComm **handle_out)
{
    struct task *task;

    if (!comm->gpu->non_blocking || comm->estimator != NULL) {
        *handle_out = comm->gpu->non_blocking ? comm->estimator : comm->handle;
        return NW_OK;
    }
    task = new_task(comm->gpu, start_by_split);
    if (task == NULL)
        return nw_last_error()->rc;
    task->comm = comm->handle;
    task->rank = comm->base.rank;
    task->config = config_of(comm->gpu);
    task->config.blocking = 1;
    snprintf(task->what, sizeof task->what, "ncclCommSplit of %d ranks, for estimates",
             comm->base.rank_count);
    NW_TRY(name_rank(comm, start_in_time(task, comm->gpu->timeout_ns, &comm->estimator)));
    *handle_out = comm->estimator;
    return NW_OK;
}

/* ---- end ----------------------------------------------------------------------------------------
 */

static int finalize_handle(struct task *task)
{
    return task->gpu->nccl->comm_finalize(task->comm);
}

static int destroy_handle(struct task *task)
{
    return task->gpu->nccl->comm_destroy(task->comm);
}

static double end_ns(const struct nccl_gpu *gpu)
{
    return gpu->timeout_ns < END_NS ? gpu->timeout_ns : END_NS;
}

static nw_rc end_step(struct nccl_comm *comm, struct ncclComm *handle, const char *name,
                      int (*run)(struct task *task))
{
    struct task *task = new_task(comm->gpu, run);
    nw_rc rc;

    if (task == NULL)
        return nw_last_error()->rc;
    task->comm = handle;
    snprintf(task->what, sizeof task->what, "%s of %d ranks", name, comm->base.rank_count);
    rc = run_in_time(task, end_ns(comm->gpu));
    if (rc != NW_ETIMEOUT)
        free(task);
    return rc;
}

static nw_rc end_handle(struct nccl_comm *comm, struct ncclComm *handle)
{
    const struct nw_nccl_api *nccl = comm->gpu->nccl;
    char what[64];

    if (handle == NULL)
        return NW_OK;
    if (nccl->comm_finalize != NULL) {
        NW_TRY(end_step(comm, handle, "ncclCommFinalize", finalize_handle));
        snprintf(what, sizeof what, "ncclCommFinalize of %d ranks", comm->base.rank_count);
        if (comm->gpu->non_blocking)
            NW_TRY(wait_ready(nccl, handle, what, nw_now_ns(), end_ns(comm->gpu)));
    }
    return end_step(comm, handle, "ncclCommDestroy", destroy_handle);
}

nw_rc nw_nccl_end(struct nw_comm *base)
{
    struct nccl_comm *comm = (struct nccl_comm *)base;
    nw_rc rc;

    if (comm->handle == NULL)
        return NW_OK;
    nw_nccl_conceal_all(comm);
    rc = end_handle(comm, comm->estimator);
    if (rc == NW_OK) {
        comm->estimator = NULL;
        rc = end_handle(comm, comm->handle);
    }
    if (rc == NW_OK)
        comm->handle = NULL;
    else
        nw_nccl_give_up(comm->gpu);
    return name_rank(comm, rc);
}
