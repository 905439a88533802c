/* A worker: one lane, in a process of its own. */
#include "cli/worker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/finding_json.h"
#include "base/json.h"
#include "cli/cli.h"
#include "collectives/relay.h"
#include "results/results.h"

/* NCCL's start takes seconds on eight GPUs, and the driver's some more where nothing keeps it awake
 * (persistence mode off). */
#define START_NS  120e9
#define MARGIN_NS 10e9
#define END_NS    30e9

struct worker {
    struct nw_worker_shared *shared;
    struct nw_comm *relay, *comm;
    json_t *order;
    const char *lane;
    struct nw_plan plan;
    struct nw_record *done;
    size_t done_count;
};

/* ---- the order ----------------------------------------------------------------------------------
 */

/* Options that are not as they are without being given. */
static nw_rc add_options(json_t *object, const struct nw_plan *plan)
{
    struct nw_plan plain;

    NW_TRY(nw_options_reset(nw_plan_rows, nw_plan_row_count, &plain));
    for (size_t i = 0; i < nw_plan_row_count; i++) {
        const struct nw_option *row = &nw_plan_rows[i];
        char text[256], usual[256];
        const char *value = text;

        if (row->name == NULL)
            continue;
        nw_option_text(row, plan, text, sizeof text);
        nw_option_text(row, &plain, usual, sizeof usual);
        if (row->type == NW_OPTION_TEXT) /* may be longer */
            value = *(const char *const *)((const char *)plan + row->offset);
        if (value != NULL && strcmp(text, usual) != 0)
            NW_TRY(nw_json_set_text(object, row->name, value));
    }
    return NW_OK;
}

/* All of it: whose lane is whose, the records' identity tells (those of devices have their own). */
static nw_rc add_done(json_t *list, const struct nw_record *done, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_t *record;

        NW_TRY(nw_record_to_json(&done[i], &record));
        if (json_array_append_new(list, record) != 0)
            return nw_fail(NW_ENOMEM, "no memory for what an earlier run has measured");
    }
    return NW_OK;
}

nw_rc nw_worker_order_write(const struct nw_plan *plan, const char *lane,
                            const struct nw_record *done, size_t done_count, char **text_out)
{
    json_t *order = json_object(), *options = json_object(), *list = json_array();
    nw_rc rc = nw_json_set_new(order, "plan", options);
    char *text;

    if (rc == NW_OK)
        rc = nw_json_set_new(order, "done", list);
    else
        json_decref(list);
    if (rc == NW_OK)
        rc = nw_json_set_text(order, "lane", lane);
    if (rc == NW_OK)
        rc = nw_json_set_int(order, "parent", getpid());
    if (rc == NW_OK)
        rc = add_options(options, plan);
    if (rc == NW_OK)
        rc = add_done(list, done, done_count);
    text = rc == NW_OK ? json_dumps(order, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(order);
    if (rc == NW_OK && text == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for a worker's order");
    if (rc == NW_OK)
        *text_out = text;
    return rc;
}

static nw_rc read_done(struct worker *worker)
{
    const json_t *list = json_object_get(worker->order, "done");
    const size_t count = json_array_size(list);

    worker->done = calloc(count + 1, sizeof *worker->done);
    if (worker->done == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu records", count);
    for (; worker->done_count < count; worker->done_count++)
        NW_TRY(nw_record_from_json(json_array_get(list, worker->done_count), "order",
                                   &worker->done[worker->done_count]));
    return NW_OK;
}

static nw_rc read_order(struct worker *worker, const char *text)
{
    const char *name;
    json_t *value;
    int parent = 0;

    worker->order = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    NW_TRY(nw_json_get_int(worker->order, "order", "parent", true, &parent));
    if (getppid() != parent)
        return nw_fail(NW_EPEER, "the rank that started this worker has died");
    NW_TRY(nw_json_get_text(worker->order, "order", "lane", true, &worker->lane));
    NW_TRY(nw_options_reset(nw_plan_rows, nw_plan_row_count, &worker->plan));
    json_object_foreach(json_object_get(worker->order, "plan"), name, value)
    {
        const struct nw_option *row = nw_option_find(nw_plan_rows, nw_plan_row_count, name);

        if (row == NULL || !json_is_string(value))
            return nw_fail(NW_EUSAGE, "order: no option \"%s\"", name);
        NW_TRY(nw_option_set(row, &worker->plan, json_string_value(value), name));
    }
    NW_TRY(nw_plan_resolve(&worker->plan));
    return read_done(worker);
}

/* ---- events -------------------------------------------------------------------------------------
 */

/* Takes `json`. */
static nw_rc send_json(enum nw_worker_event kind, json_t *json)
{
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    nw_rc rc = text != NULL ? nw_relay_event(NW_WORKER_SOCKET, kind, text, strlen(text))
                            : nw_fail(NW_ENOMEM, "no memory for a result");

    free(text);
    json_decref(json);
    return rc;
}

static nw_rc on_context(void *user, const struct nw_context *context)
{
    json_t *json;

    (void)user;
    NW_TRY(nw_context_to_json(context, &json));
    return send_json(NW_WORKER_CONTEXT, json);
}

static nw_rc on_record(void *user, const struct nw_record *record, bool kept)
{
    json_t *json;

    (void)user;
    NW_TRY(nw_record_to_json(record, &json));
    return send_json(kept ? NW_WORKER_KEPT : NW_WORKER_RECORD, json);
}

static nw_rc on_finding(void *user, const struct nw_finding *finding)
{
    json_t *json;

    (void)user;
    NW_TRY(nw_finding_to_json(finding, &json));
    return send_json(NW_WORKER_FINDING, json);
}

static void on_progress(void *user, const struct nw_bench_progress *progress)
{
    json_t *json = json_object();

    (void)user;
    if (nw_json_set_u64(json, "done", progress->done) == NW_OK &&
        nw_json_set_u64(json, "total", progress->total) == NW_OK &&
        nw_json_set_text(json, "text", progress->text) == NW_OK &&
        nw_json_set_real(json, "left_ns", progress->left_ns) == NW_OK)
        (void)send_json(NW_WORKER_PROGRESS, json); /* only to look at */
    else
        json_decref(json);
}

/* ---- the lane -----------------------------------------------------------------------------------
 */

static void tell_device(struct worker *worker)
{
    const struct nw_comm_gpu *gpu = &worker->comm->gpus[worker->comm->rank];

    snprintf(worker->shared->device, sizeof worker->shared->device, "gpu %d, %s", gpu->index,
             gpu->pci);
    atomic_store(&worker->shared->known, 1);
}

static nw_rc open_lane(struct worker *worker)
{
    const double timeout_ns = worker->plan.timeout_ns > 0 ? worker->plan.timeout_ns : START_NS;

    /* The driver's start comes first; NCCL's has its own deadline and words. */
    nw_bench_status_write(&worker->shared->status,
                          nw_now_ns() + (uint64_t)(timeout_ns + START_NS + MARGIN_NS),
                          "the start of NCCL");
    NW_TRY(nw_comm_open_nccl(worker->relay, timeout_ns, &worker->plan.nccl, &worker->comm));
    worker->relay = NULL; /* the communicator's */
    if (strcmp(worker->lane, nw_lanes[0].name) !=
        0) /* "auto" is what the user's environment says */
        snprintf(worker->comm->lane, sizeof worker->comm->lane, "%s", worker->lane);
    tell_device(worker);
    return NW_OK;
}

static nw_rc measure(struct worker *worker)
{
    struct nw_bench_events events = {.status = &worker->shared->status, .version = nw_version};

    if (worker->comm->rank == 0) {
        events.on_context = on_context;
        events.on_record = on_record;
        events.on_finding = on_finding;
        events.on_progress = on_progress;
        events.done = worker->done;
        events.done_count = worker->done_count;
    }
    return nw_bench_run(&worker->plan, worker->comm, &events);
}

/* Before the end is said, so that an end that hangs is one of this lane. */
static nw_rc close_lane(struct worker *worker)
{
    nw_rc rc = NW_OK;

    nw_bench_status_write(&worker->shared->status, nw_now_ns() + (uint64_t)END_NS,
                          "the end of NCCL");
    if (worker->comm != NULL)
        rc = nw_comm_end(worker->comm);
    if (rc == NW_OK)
        nw_comm_close(worker->comm);
    nw_comm_close(worker->relay);
    if (rc == NW_OK)
        nw_bench_status_write(&worker->shared->status, 0, "");
    return rc;
}

/* A failure's words with the rank's phase: the end of its status, "all_reduce 1 KiB, timing". */
static nw_rc word_failure(const struct worker *worker, const struct nw_err *error)
{
    char status[NW_BENCH_STATUS_TEXT];
    const char *phase;
    uint64_t deadline_ns;

    nw_bench_status_read(&worker->shared->status, status, &deadline_ns);
    phase = strrchr(status, ',') != NULL ? strrchr(status, ',') + 2 : status;
    if (!nw_bench_is_broken(error->rc) || status[0] == '\0')
        return nw_fail_at(error->rc, error->lib, error->lib_code, error->where, "%s", error->text);
    return nw_fail_at(error->rc, error->lib, error->lib_code, error->where, "%s (phase: %s)",
                      error->text, phase);
}

static nw_rc run_lane(struct worker *worker)
{
    struct nw_err error = {.rc = NW_OK};
    char *text = NULL;
    nw_rc rc;

    NW_TRY(nw_comm_open_relay(NW_WORKER_SOCKET, &worker->relay, &text));
    rc = read_order(worker, text);
    free(text);
    if (rc == NW_OK)
        rc = open_lane(worker);
    if (rc == NW_OK)
        rc = measure(worker);
    error = *nw_last_error();
    /* What is broken is aborted already, and may hang in its end. */
    if (!nw_bench_is_broken(rc)) {
        const nw_rc closed = close_lane(worker);

        if (rc == NW_OK && closed != NW_OK) {
            rc = closed;
            error = *nw_last_error();
        }
    }
    error.rc = rc;
    return rc == NW_OK ? NW_OK : word_failure(worker, &error);
}

static nw_rc map_shared(struct worker *worker)
{
    void *memory =
        mmap(NULL, sizeof *worker->shared, PROT_READ | PROT_WRITE, MAP_SHARED, NW_WORKER_SHARED, 0);

    if (memory == MAP_FAILED)
        return nw_fail(NW_EUSAGE,
                       "this command is started by bench and run, for each lane; start those");
    worker->shared = memory;
    return NW_OK;
}

int nw_cmd_worker(int argc, char **argv)
{
    struct worker worker = {.shared = NULL};
    nw_rc rc;

    (void)argc, (void)argv;
    prctl(PR_SET_NAME, "nw-worker"); /* else "exe", of /proc/self/exe */
    rc = map_shared(&worker);
    if (rc != NW_OK)
        return nw_cli_fail(rc);
    nw_child_settle(NW_WORKER_FD_COUNT);
    rc = run_lane(&worker);
    if (nw_relay_end(NW_WORKER_SOCKET, rc) != NW_OK)
        return nw_rc_exit_code(NW_EPEER);
    /* Not exit(): handlers of libraries whose threads still hang would hang too. */
    if (nw_bench_is_broken(rc))
        _exit(nw_rc_exit_code(rc));
    for (size_t i = 0; i < worker.done_count; i++)
        nw_record_free(&worker.done[i]);
    free(worker.done);
    json_decref(worker.order);
    return nw_rc_exit_code(rc);
}
