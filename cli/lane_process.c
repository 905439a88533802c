#include "cli/lane_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "bench/agree.h"

/* Until the new process has said where it is. */
#define SPAWN_NS 60e9
/* A worker gives itself up at its deadline (ncclCommAbort, words); one that does not gets so much
 * more. */
#define GRACE_NS 2000000000ull
/* For a worker to be gone after its last word. */
#define EXIT_NS 10000000000ull
/* This rank waits for others, whose workers may be at their deadlines: the process that watches it
 * lets that pass. */
#define MEETING_NS 40000000000ull

struct process {
    const struct nw_lane_process *how;
    pid_t pid; /* 0: none, or it has been seen to end */
    int socket, shared_fd;
    struct nw_worker_shared *shared;
};

/* ---- start --------------------------------------------------------------------------------------
 */

static nw_rc share_memory(struct process *process)
{
    void *memory;

    process->shared_fd = memfd_create("nodeworth worker", MFD_CLOEXEC);
    if (process->shared_fd < 0 || ftruncate(process->shared_fd, sizeof *process->shared) != 0)
        return nw_fail(NW_ENOMEM, "no memory to watch a worker: %s", strerror(errno));
    memory = mmap(NULL, sizeof *process->shared, PROT_READ | PROT_WRITE, MAP_SHARED,
                  process->shared_fd, 0);
    if (memory == MAP_FAILED)
        return nw_fail(NW_ENOMEM, "no memory to watch a worker: %s", strerror(errno));
    process->shared = memory;
    nw_bench_status_write(&process->shared->status, nw_now_ns() + (uint64_t)SPAWN_NS,
                          "the start of the worker");
    return NW_OK;
}

/* The user's environment, in a forced lane without what forces others. */
static nw_rc environment_of(const struct nw_lane_process *how, char ***environment_out)
{
    struct nw_child_change changes[32];
    size_t count = 0;

    for (size_t i = 0; how->lane != nw_lanes && nw_lane_variables[i] != NULL; i++)
        changes[count++] = (struct nw_child_change){.name = nw_lane_variables[i]};
    for (const struct nw_lane_setting *setting = how->settings; setting->name != NULL; setting++)
        changes[count++] = (struct nw_child_change){setting->name, setting->value};
    return nw_child_environment(changes, count, environment_out);
}

static nw_rc spawn(struct process *process)
{
    char program[] = "nodeworth", command[] = "worker", lane[24];
    char *arguments[] = {program, command, lane, NULL};
    char **environment;
    int ends[2], given[NW_WORKER_FD_COUNT];
    nw_rc rc;

    snprintf(lane, sizeof lane, "%s", process->how->lane->name);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return nw_fail(NW_ENOMEM, "no socket for a worker: %s", strerror(errno));
    process->socket = ends[0];
    given[0] = ends[1];
    given[1] = process->shared_fd;
    rc = environment_of(process->how, &environment);
    if (rc == NW_OK) {
        rc = nw_child_start(arguments, environment, given, NW_WORKER_FD_COUNT, &process->pid);
        nw_child_free_environment(environment);
    }
    close(ends[1]);
    return rc;
}

static nw_rc greet(struct process *process)
{
    const struct nw_lane_process *how = process->how;
    const bool first = how->comm->rank == 0;
    char *order;
    nw_rc rc;

    NW_TRY(nw_worker_order_write(how->plan, how->lane->name, first ? how->done : NULL,
                                 first ? how->done_count : 0, &order));
    rc = nw_relay_greet(process->socket, how->comm, order);
    free(order);
    if (rc == NW_EPEER) { /* it died at once: serving it will say of what */
        nw_clear_error();
        rc = NW_OK;
    }
    return rc;
}

static nw_rc start(struct process *process)
{
    NW_TRY(share_memory(process));
    NW_TRY(spawn(process));
    return greet(process);
}

/* ---- watch --------------------------------------------------------------------------------------
 */

/* "rank 3 on node1 (gpu 3, 0000:1b:00.0): WHAT in all_reduce 1 MiB, timing" */
static nw_rc word(const struct process *process, nw_rc rc, const char *what)
{
    const struct nw_comm *comm = process->how->comm;
    char where[NW_BENCH_STATUS_TEXT], device[sizeof process->shared->device + 4] = "";
    uint64_t deadline_ns;

    nw_bench_status_read(&process->shared->status, where, &deadline_ns);
    if (atomic_load(&process->shared->known))
        snprintf(device, sizeof device, " (%.95s)", process->shared->device);
    return nw_fail(rc, "rank %d on %s%s: %s%s%s", comm->rank, comm->host_names[comm->host_index],
                   device, what, where[0] != '\0' ? " in " : "", where);
}

/* What this rank's own process is about, for whoever watches it. */
static void show(const struct process *process, uint64_t more_ns)
{
    char where[NW_BENCH_STATUS_TEXT], text[NW_BENCH_STATUS_TEXT + 32];
    uint64_t deadline_ns, now_ns = nw_now_ns();

    nw_bench_status_read(&process->shared->status, where, &deadline_ns);
    snprintf(text, sizeof text, "lane %s: %s", process->how->lane->name,
             where[0] != '\0' ? where : "start or end");
    if (deadline_ns < now_ns)
        deadline_ns = now_ns;
    nw_bench_status_write(process->how->status, deadline_ns + more_ns, text);
}

static bool stands_still(pid_t pid)
{
    const char state = nw_child_state(pid);

    return state == 'T' || state == 't' || state == 'D';
}

static nw_rc watch(void *user, bool others_ended)
{
    struct process *process = user;
    const uint64_t deadline_ns =
        atomic_load_explicit(&process->shared->status.deadline_ns, memory_order_relaxed);
    const uint64_t now_ns = nw_now_ns();
    char what[128];

    show(process, MEETING_NS);
    if ((deadline_ns == 0 || now_ns < deadline_ns) && !others_ended)
        return NW_OK;
    if (stands_still(process->pid)) {
        snprintf(what, sizeof what, "no answer (the process %s); given up",
                 nw_child_state(process->pid) == 'D' ? "waits for a device" : "is stopped");
        return word(process, NW_ETIMEOUT, what);
    }
    return deadline_ns != 0 && now_ns > deadline_ns + GRACE_NS
               ? word(process, NW_ETIMEOUT, "no answer; given up")
               : NW_OK;
}

static void meeting(void *user)
{
    show(user, MEETING_NS);
}

static void stop(void *user)
{
    struct process *process = user;

    if (process->pid > 0)
        nw_child_kill(process->pid);
    process->pid = 0;
}

/* Until it has ended, but not for ever. */
static bool reap(struct process *process, int *status_out)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    const uint64_t until_ns = nw_now_ns() + EXIT_NS;

    while (process->pid > 0) {
        if (nw_child_ended(process->pid, status_out)) {
            process->pid = 0;
            return true;
        }
        if (nw_now_ns() > until_ns)
            break;
        nanosleep(&pause, NULL);
    }
    stop(process);
    return false;
}

static nw_rc lost(void *user)
{
    struct process *process = user;
    char fate[96] = "closed its end and does not end";
    int status;

    if (reap(process, &status))
        nw_child_fate(fate, sizeof fate, status);
    return word(process, NW_EPEER, fate);
}

static nw_rc on_event(void *user, unsigned kind, const char *data, size_t bytes)
{
    struct process *process = user;
    json_t *json = json_loadb(data, bytes, JSON_REJECT_DUPLICATES, NULL);
    nw_rc rc;

    if (json == NULL)
        return nw_fail(NW_EPEER, "a worker sent what is no JSON (%zu bytes)", bytes);
    rc = process->how->on_event(process->how->user, kind, json);
    json_decref(json);
    return rc;
}

/* ---- all of it ----------------------------------------------------------------------------------
 */

static nw_rc serve(struct process *process, struct nw_relay_end *end_out)
{
    const struct nw_relay_client client = {.fd = process->socket,
                                           .generation = process->how->generation,
                                           .user = process,
                                           .on_event = on_event,
                                           .watch = watch,
                                           .lost = lost,
                                           .meeting = meeting,
                                           .stop = stop,
                                           .is_broken = nw_bench_is_broken};
    struct nw_err error;
    int status;

    NW_TRY(nw_relay_serve(process->how->comm, &client, end_out));
    error = *nw_last_error();
    (void)reap(process, &status);
    if (end_out->rc != NW_OK) /* the end's words stay the last ones */
        (void)nw_fail_at(error.rc, error.lib, error.lib_code, error.where, "%s", error.text);
    return NW_OK;
}

nw_rc nw_lane_process_run(const struct nw_lane_process *how, struct nw_relay_end *end_out)
{
    struct process process = {.how = how, .socket = -1, .shared_fd = -1};
    nw_rc rc = nw_agree(how->comm, start(&process));

    if (rc == NW_OK)
        rc = serve(&process, end_out);
    stop(&process);
    if (process.socket >= 0)
        close(process.socket);
    if (process.shared_fd >= 0)
        close(process.shared_fd);
    if (process.shared != NULL)
        munmap(process.shared, sizeof *process.shared);
    nw_bench_status_write(how->status, 0, "");
    return rc;
}
