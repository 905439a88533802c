/* nodeworth bench: measure, show nccl-tests' table, keep every record on disk as it comes. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "bench/agree.h"
#include "bench/bench.h"
#include "cli/cli.h"
#include "cli/exclude.h"
#include "cli/lanes.h"
#include "cli/launch.h"
#include "cli/progress.h"
#include "cli/resume.h"
#include "cli/shapes.h"
#include "cli/watch.h"
#include "report/bench_text.h"
#include "results/results.h"

/* 64 ranks on two cores need more than 10 s to take leave of each other. */
#define STOP_RANK_NS 500000000ull

struct session {
    struct nw_plan plan;
    struct nw_model_request model;   /* whose products are measured */
    char shapes[NW_CLI_SHAPES_TEXT]; /* of the plan */
    struct nw_bench_status *status;
    /* rank 0's */
    char path[4096]; /* of results.jsonl; "": only the table */
    struct nw_results_writer *file, *json;
    struct nw_bench_text *text;
    struct nw_progress_line progress;
    struct nw_results before;        /* --resume: what the file holds */
    const struct nw_run *unfinished; /* its last run, to go on in; NULL: a new one is begun */
    struct nw_cli_resume fewer;      /* that run had more hosts; rank_count 0: it had the same */
    bool nothing_left;               /* its last run reached its end */
    bool lane_broke;
    nw_rc rc; /* what the run came to, for the exit code of --backend local */
};

/* ---- where results go (rank 0) ----------------------------------------------------------------
 */

static nw_rc find_path(struct session *session)
{
    const struct nw_plan *plan = &session->plan;
    int length = 0;

    if (plan->json_file != NULL)
        length = snprintf(session->path, sizeof session->path, "%s", plan->json_file);
    else if (plan->out_dir != NULL)
        length = snprintf(session->path, sizeof session->path, "%s/results.jsonl", plan->out_dir);
    if ((size_t)length >= sizeof session->path)
        return nw_fail(NW_EUSAGE, "the name of the results file is too long");
    return plan->out_dir != NULL ? nw_make_directory(plan->out_dir) : NW_OK;
}

/* On some of its hosts only pairs can be gone on with. */
static bool has_fewer_hosts(const struct session *session, const struct nw_comm *comm)
{
    const struct nw_context *context = &session->unfinished->context;

    return comm->host_count < context->host_count && comm->rank_count < context->rank_count &&
           strcmp(session->plan.cases_text, "pairs") == 0;
}

static nw_rc check_resumable(const struct session *session, const struct nw_comm *comm)
{
    const struct nw_context *context = &session->unfinished->context;
    const char *backend = session->plan.backend;

    if (context->rank_count == comm->rank_count && context->host_count == comm->host_count &&
        (strcmp(backend, "auto") == 0 || strcmp(context->backend, backend) == 0) &&
        strcmp(context->tool, "nodeworth") == 0)
        return NW_OK;
    return nw_fail(NW_EUSAGE,
                   "%s: the run to go on with was made by %s with %d ranks on %d hosts (%s), this "
                   "one has %d on %d (%s); start it alike, or without --resume",
                   session->path, context->tool, context->rank_count, context->host_count,
                   context->backend, comm->rank_count, comm->host_count, backend);
}

/* What the file holds already. A file that is not there is a run that had no time to begin. */
static nw_rc read_before(struct session *session, const struct nw_comm *comm)
{
    const struct nw_results *before = &session->before;

    if (!session->plan.resume || access(session->path, F_OK) != 0)
        return NW_OK;
    NW_TRY(nw_results_read(session->path, &session->before));
    if (before->run_count == 0)
        return NW_OK;
    if (before->runs[before->run_count - 1].context.complete) {
        session->nothing_left = true;
        nw_message("%s: the last run in it reached its end, there is nothing to go on with; for "
                   "another plan start without --resume",
                   session->path);
        return NW_OK;
    }
    session->unfinished = &before->runs[before->run_count - 1];
    if (has_fewer_hosts(session, comm))
        return nw_cli_resume_open(session->unfinished, comm, session->path, &session->fewer);
    return check_resumable(session, comm);
}

static nw_rc open_sinks(struct session *session, const struct nw_comm *comm)
{
    NW_TRY(find_path(session));
    NW_TRY(read_before(session, comm));
    if (session->nothing_left)
        return NW_OK;
    if (session->path[0] != '\0') {
        NW_TRY(nw_results_create(session->path, session->plan.resume, &session->file));
        if (session->status != NULL)
            snprintf(session->status->lifeline.results, sizeof session->status->lifeline.results,
                     "%s", session->path);
    }
    session->progress =
        nw_progress_open(strcmp(session->plan.progress, "auto") == 0, !session->plan.json);
    if (session->plan.json)
        return nw_results_create("/dev/stdout", true, &session->json);
    return nw_bench_text_open(stdout, &session->plan, &session->text);
}

/* Keeps the first failure. */
static nw_rc close_sinks(struct session *session, bool complete)
{
    struct nw_results_writer *writers[] = {session->file, session->json};
    nw_rc first = nw_bench_text_close(session->text);

    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        nw_rc rc = NW_OK;

        if (writers[i] == NULL)
            continue;
        if (complete)
            rc = nw_results_write_end(writers[i]);
        if (rc == NW_OK)
            rc = nw_results_close(writers[i]);
        else
            (void)nw_results_close(writers[i]); /* the first failure counts */
        first = first == NW_OK ? rc : first;
    }
    nw_cli_resume_free(&session->fewer);
    nw_results_free(&session->before);
    return first;
}

/* FOLDER/exclude-hosts of --out, FILE.exclude-hosts of -J. */
static void write_excluded(const struct session *session)
{
    static const char name[] = "exclude-hosts";
    const struct nw_plan *plan = &session->plan;
    char path[sizeof session->path + sizeof name + 1];

    if (session->path[0] == '\0')
        return;
    if (plan->json_file != NULL)
        snprintf(path, sizeof path, "%s.%s", session->path, name);
    else
        snprintf(path, sizeof path, "%s/%s", plan->out_dir, name);
    nw_cli_write_excluded(plan, session->path, path);
}

static nw_rc on_finding(void *user, const struct nw_finding *finding);

static nw_rc tell_left_out(struct session *session, const struct nw_context *context)
{
    struct nw_findings list = {0};
    nw_rc rc = nw_cli_resume_left_out(session->unfinished, context, &list);

    for (size_t i = 0; i < list.count && rc == NW_OK; i++)
        rc = on_finding(session, &list.items[i]);
    nw_findings_free(&list);
    return rc;
}

static nw_rc check_same_hosts(const struct session *session, const struct nw_context *context)
{
    const struct nw_context *old = &session->unfinished->context;

    if (old->simulated != context->simulated)
        return nw_fail(NW_EUSAGE,
                       "%s: the run to go on with is %s and this one is %s: they never go into one "
                       "file; start without --resume, to another file",
                       session->path, old->simulated ? "simulated" : "real",
                       context->simulated ? "simulated" : "real");
    for (int host = 0; old->hosts != NULL && host < context->host_count; host++)
        if (strcmp(old->hosts[host].name, context->hosts[host].name) != 0)
            return nw_fail(NW_EUSAGE,
                           "%s: the run to go on with was made on other hosts (%s, now %s); start "
                           "it there, or without --resume",
                           session->path, old->hosts[host].name, context->hosts[host].name);
    return NW_OK;
}

static nw_rc on_context(void *user, const struct nw_context *context)
{
    struct session *session = user;

    nw_progress_clear(&session->progress);
    if (session->unfinished != NULL && session->fewer.rank_count == 0)
        NW_TRY(check_same_hosts(session, context));
    if (session->file != NULL && session->unfinished == NULL)
        NW_TRY(nw_results_write_context(session->file, context));
    if (session->json != NULL)
        NW_TRY(nw_results_write_context(session->json, context));
    else
        nw_bench_text_context(session->text, context);
    return session->fewer.rank_count > 0 ? tell_left_out(session, context) : NW_OK;
}

static nw_rc write_record(struct session *session, const struct nw_record *record)
{
    struct nw_record numbered;
    nw_rc rc;

    if (session->fewer.rank_count == 0)
        return nw_results_write_record(session->file, record);
    NW_TRY(nw_record_copy(&numbered, record));
    nw_cli_resume_number(&session->fewer, &numbered);
    rc = nw_results_write_record(session->file, &numbered);
    nw_record_free(&numbered);
    return rc;
}

static nw_rc on_record(void *user, const struct nw_record *record, bool kept)
{
    struct session *session = user;

    nw_progress_clear(&session->progress);
    if (session->file != NULL && !kept)
        NW_TRY(write_record(session, record));
    if (session->json != NULL)
        return nw_results_write_record(session->json, record);
    nw_bench_text_record(session->text, record);
    return NW_OK;
}

static nw_rc on_finding(void *user, const struct nw_finding *finding)
{
    struct session *session = user;

    nw_progress_clear(&session->progress);
    if (session->file != NULL)
        NW_TRY(nw_results_write_finding(session->file, finding));
    if (session->json != NULL)
        return nw_results_write_finding(session->json, finding);
    nw_bench_text_finding(session->text, finding);
    return NW_OK;
}

static void on_progress(void *user, const struct nw_bench_progress *progress)
{
    struct session *session = user;

    nw_progress_show(&session->progress, progress);
}

/* ---- a rank -----------------------------------------------------------------------------------
 */

/* Did the run reach its end? Wrong data and nothing to measure are results too. */
static bool is_complete(nw_rc rc)
{
    return rc == NW_OK || rc == NW_EWRONG || rc == NW_ENOTSUP;
}

/* This rank has gone on without others: MPI has no end any more in which all meet. */
static bool has_survived(const struct session *session)
{
    return session->status != NULL && atomic_load(&session->status->lifeline.survived) != 0;
}

/* Collective; the same answer on all ranks, except that only rank 0 sees its files fail to close.
 */
static nw_rc run_rank(struct nw_comm *comm, void *argument)
{
    struct session *session = argument;
    struct nw_bench_events events = {.version = nw_version};
    nw_rc rc = NW_OK, closed;
    bool nothing_left = false;

    if (comm->rank == 0) {
        events = (struct nw_bench_events){.user = session,
                                          .on_context = on_context,
                                          .on_record = on_record,
                                          .on_finding = on_finding,
                                          .on_progress = on_progress,
                                          .version = nw_version};
        rc = open_sinks(session, comm);
        nothing_left = session->nothing_left;
    }
    /* the threads of --backend local share one status: rank 0's */
    events.status = comm->ops->simulated && comm->rank != 0 ? NULL : session->status;
    rc = nw_agree(comm, rc);
    if (rc == NW_OK)
        rc = comm->ops->share(comm, &nothing_left, sizeof nothing_left, 0);
    if (comm->rank == 0 && session->unfinished != NULL) {
        const bool fewer = session->fewer.rank_count > 0;

        events.done = fewer ? session->fewer.done : session->unfinished->records;
        events.done_count = fewer ? session->fewer.done_count : session->unfinished->record_count;
    }
    if (rc == NW_OK && !nothing_left)
        rc = nw_cli_measure(
            &(struct nw_cli_measure){.plan = &session->plan, .comm = comm, .events = &events},
            &session->lane_broke);
    if (comm->rank != 0)
        return rc;
    nw_progress_clear(&session->progress);
    if (rc != NW_OK) /* before anything else can fail */
        nw_cli_fail(rc);
    closed = close_sinks(session, is_complete(rc) && !session->lane_broke);
    if ((is_complete(rc) || has_survived(session)) && closed == NW_OK)
        write_excluded(session);
    if (rc == NW_OK && closed != NW_OK)
        nw_cli_fail(rc = closed);
    session->rc = rc;
    return rc;
}

static int work_mpi(struct session *session)
{
    struct nw_comm *comm;
    const int refused = nw_cli_open_mpi(session->status, NW_CLI_MPI_STRICT, &comm);
    nw_rc rc;

    if (refused != 0)
        return refused;
    rc = run_rank(comm, session);
    if (has_survived(session)) /* the parent tells the launcher, once rank 0 has ended */
        return nw_rc_exit_code(rc != NW_OK ? rc : NW_EPEER);
    if (nw_bench_is_broken(rc)) { /* the other ranks may never come out of their calls */
        if (comm->rank != 0 && rc != NW_EPEER)
            nw_cli_fail(rc);
        nw_mpi_abort(nw_rc_exit_code(rc));
    }
    nw_bench_status_write(session->status,
                          nw_now_ns() + NW_CLI_STOP_DEADLINE_NS +
                              (uint64_t)comm->rank_count * STOP_RANK_NS,
                          "the end of MPI");
    nw_comm_close(comm);
    nw_mpi_stop();
    nw_bench_status_write(session->status, 0, "");
    return session->lane_broke ? nw_rc_exit_code(NW_EPEER) : nw_rc_exit_code(rc);
}

static int work_local(struct session *session)
{
    const nw_rc rc = nw_comm_run_local(session->plan.ranks, session->plan.hosts, run_rank, session);

    /* Rank 0 has told its own; a thread that could not be started has not. */
    return rc == NW_OK || rc == session->rc ? nw_rc_exit_code(rc) : nw_cli_fail(rc);
}

static int work(void *argument, void *status)
{
    struct session *session = argument;

    session->status = status;
    return strcmp(session->plan.backend, "local") == 0 ? work_local(session) : work_mpi(session);
}

/* ---- the command -------------------------------------------------------------------------------
 */

static nw_rc check_launch(const struct nw_plan *plan)
{
    if (strcmp(plan->backend, "local") == 0 && nw_cli_launch_size() > 1)
        return nw_fail(NW_EUSAGE, "option --backend: local has threads for ranks; start it without "
                                  "mpirun (--ranks N)");
    return NW_OK;
}

/* The plan's, and what of a model says which products it has. */
static struct nw_option *make_rows(size_t *count_out)
{
    static const char *const of_model[] = {"model", "seq", "micro-batch", "precision", "tp"};
    struct nw_option *rows = calloc(nw_plan_row_count + nw_model_option_count + 1, sizeof *rows);
    static const struct nw_option head = {.help = "Whose matrix products (case gemm):"};
    size_t count;

    if (rows == NULL)
        return NULL;
    count =
        nw_cli_embed(rows, nw_plan_rows, nw_plan_row_count, offsetof(struct session, plan), true);
    count += nw_cli_embed(rows + count, &head, 1, 0, true);
    for (size_t i = 0; i < nw_model_option_count; i++)
        for (size_t j = 0; j < sizeof of_model / sizeof *of_model; j++)
            if (nw_model_options[i].name != NULL &&
                strcmp(nw_model_options[i].name, of_model[j]) == 0)
                count += nw_cli_embed(rows + count, &nw_model_options[i], 1,
                                      offsetof(struct session, model), false);
    *count_out = count;
    return rows;
}

/* The other options of a model as if none was given. */
static nw_rc take_model(struct session *session)
{
    const struct nw_model_request given = session->model;

    NW_TRY(nw_options_reset(nw_model_options, nw_model_option_count, &session->model));
    session->model.model = given.model;
    session->model.sequence = given.sequence;
    session->model.micro_batch = given.micro_batch;
    session->model.precision = given.precision;
    session->model.tp = given.tp;
    return nw_cli_take_shapes(&session->model, &session->plan, session->shapes);
}

int nw_cmd_bench(int argc, char **argv)
{
    struct session session = {.rc = NW_OK};
    size_t row_count = 0;
    struct nw_option *rows = make_rows(&row_count);
    struct nw_cli cli = {
        .doc = "Measure collectives, pairs, scaling and GPUs between the ranks of an mpirun: "
               "verified, "
               "sampled until the 95 % interval is narrow, the slowest rank's time.\v"
               "Letters are nccl-tests' where it has them. Without -J and --out there is only the "
               "table. Exit codes: 0, 1 wrong data, 2 bad input, 3 nothing could be measured, 4 a "
               "rank or a lane died or hung (what was finished is in the file).",
        .rows = rows,
        .row_count = row_count,
        .target = &session,
    };
    const bool speaks = nw_cli_launch_rank() <= 0;
    nw_rc rc = rows != NULL ? nw_cli_parse(&cli, argc, argv, speaks)
                            : nw_fail(NW_ENOMEM, "out of memory for the command line");

    free(rows);
    if (rc == NW_OK)
        rc = take_model(&session);
    if (rc == NW_OK)
        rc = nw_plan_resolve(&session.plan);
    if (rc == NW_OK)
        rc = check_launch(&session.plan);
    if (rc != NW_OK)
        return speaks ? nw_cli_fail(rc) : nw_rc_exit_code(rc);
    return nw_cli_watch(work, &session, argc, argv);
}
