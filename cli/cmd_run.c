/* nodeworth run: measure, hold against the quote, predict, decide; one screen, report.txt,
 * results.jsonl. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/io.h"
#include "bench/agree.h"
#include "bench/bench.h"
#include "cli/cli.h"
#include "cli/exclude.h"
#include "cli/lanes.h"
#include "cli/host_rate.h"
#include "cli/launch.h"
#include "cli/progress.h"
#include "cli/run_verdict.h"
#include "cli/shapes.h"
#include "cli/watch.h"
#include "model/request.h"
#include "results/results.h"

#define LANES "auto,nvlink,pcie" /* where GPUs are measured */

struct options {
    struct nw_plan plan;
    struct nw_model_request model;
    const char *quote;
};

static const struct nw_option quote_rows[] = {
    {.help = "The quote"},
    {.name = "quote",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, quote),
     .help = "what the vendor promised (nodeworth quote init writes a template)"},
};
#define ROWS_MAX 160

/* What a renter wants in a minute or two, where bench has other habits. */
static const struct habit {
    const char *name, *fallback, *help; /* help NULL: bench's */
    int key;
} quick[] = {
    {.name = "minbytes", .key = 'b'},
    {.name = "maxbytes", .key = 'e'},
    {.name = "stepfactor",
     .key = 'f',
     .fallback = "4",
     .help = "each size is N times the one before (4)"},
    {.name = "cases",
     .fallback = "all",
     .help =
         "coll, scaling, pairs, tcp; of GPUs also h2d, d2h, d2d, p2p, gemm, overlap (all that the "
         "machine has)"},
    {.name = "burn",
     .fallback = "1s",
     .help = "how long each matrix product of the case gemm loads the GPUs (1s)"},
    {.name = "collectives",
     .fallback = "all_reduce,all_gather,reduce_scatter",
     .help = "comma-separated, or all (all_reduce,all_gather,reduce_scatter)"},
    {.name = "place", .fallback = "out", .help = "out (of place), in (place) or both (out)"},
    {.name = "out", .key = 'o', .help = "directory of what is written (nodeworth-DATE-TIME)"},
    {.name = "lanes",
     .fallback = LANES,
     .help =
         "on GPUs, the ways to make the bytes go, one after the other: auto, nvlink, pcie, shm, "
         "ring, tree, nvls, rdma, tcp, nogdr, or all that the machine has (auto,nvlink,pcie)"},
    {.name = "backend",
     .fallback = "auto",
     .help = "nccl: GPUs; mpi: host memory; auto: GPUs where every rank has one (auto)"},
    {.name = "json", .help = "one JSON object on standard output instead of the screen"},
};

/* Of bench alone: the local double's ranks, other files, and going on with a run. */
static const char *const left_out[] = {"ranks", "hosts", "json-file", "resume", NULL};

static bool is_left_out(const struct nw_option *row)
{
    for (size_t i = 0; row->name != NULL && left_out[i] != NULL; i++)
        if (strcmp(row->name, left_out[i]) == 0)
            return true;
    return false;
}

static void adapt_row(struct nw_option *row, const struct habit *habit)
{
    row->key = habit->key;
    if (habit->fallback != NULL)
        row->fallback = habit->fallback;
    if (habit->help != NULL)
        row->help = habit->help;
}

static size_t build_rows(struct nw_option rows[ROWS_MAX])
{
    const size_t model = offsetof(struct options, model);
    size_t count = nw_cli_embed(rows, nw_model_options, nw_model_option_count, model, true);

    count += nw_cli_embed(rows + count, nw_price_options, nw_price_option_count, model, true);
    count +=
        nw_cli_embed(rows + count, quote_rows, sizeof quote_rows / sizeof *quote_rows, 0, true);
    for (size_t i = 0; i < nw_plan_row_count; i++) {
        struct nw_option *row = rows + count;

        if (is_left_out(&nw_plan_rows[i]))
            continue;
        count += nw_cli_embed(row, &nw_plan_rows[i], 1, offsetof(struct options, plan), false);
        for (size_t j = 0; j < sizeof quick / sizeof *quick; j++)
            if (row->name != NULL && strcmp(row->name, quick[j].name) == 0)
                adapt_row(row, &quick[j]);
    }
    return count;
}

struct session {
    struct options options;
    struct nw_bench_status *status;
    uint64_t began_ns;
    bool lane_broke;
    double host_flop_per_s; /* of the slowest rank's core; NAN: not measured */
    /* rank 0's */
    struct nw_quote quote; /* when options.quote is set */
    struct nw_results_writer *writer;
    struct nw_progress_line progress;
    char directory[512], results_path[600], report_path[600];
    char shapes[NW_CLI_SHAPES_TEXT]; /* of the plan */
};

/* ---- rank 0: the files ------------------------------------------------------------------------
 */

static nw_rc open_files(struct session *session, const struct options *options)
{
    if (options->plan.out_dir != NULL) {
        strcpy(session->directory, options->plan.out_dir); /* check_inputs: it fits */
    } else {
        const time_t now = time(NULL);
        struct tm local;

        strftime(session->directory, sizeof session->directory, "nodeworth-%Y%m%d-%H%M%S",
                 localtime_r(&now, &local));
    }
    NW_TRY(nw_make_directory(session->directory));
    snprintf(session->results_path, sizeof session->results_path, "%s/results.jsonl",
             session->directory);
    snprintf(session->report_path, sizeof session->report_path, "%s/report.txt",
             session->directory);
    return nw_results_create(session->results_path, false, &session->writer);
}

static nw_rc write_context(void *user, const struct nw_context *context)
{
    struct session *session = user;

    return nw_results_write_context(session->writer, context);
}

static nw_rc write_record(void *user, const struct nw_record *record, bool kept)
{
    struct session *session = user;

    return kept ? NW_OK : nw_results_write_record(session->writer, record);
}

static nw_rc write_finding(void *user, const struct nw_finding *finding)
{
    struct session *session = user;

    return nw_results_write_finding(session->writer, finding);
}

static void show_progress(void *user, const struct nw_bench_progress *progress)
{
    struct session *session = user;

    nw_progress_show(&session->progress, progress);
}

static nw_rc close_results(struct session *session, bool complete)
{
    nw_rc rc = complete ? nw_results_write_end(session->writer) : NW_OK, closed;

    closed = nw_results_close(session->writer);
    session->writer = NULL;
    return rc != NW_OK ? rc : closed;
}

static void write_excluded(const struct session *session)
{
    char path[sizeof session->results_path + 16];

    snprintf(path, sizeof path, "%s/exclude-hosts", session->directory);
    nw_cli_write_excluded(&session->options.plan, session->results_path, path);
}

/* The exit code of what was found. */
static int finish(struct session *session)
{
    return nw_run_verdict(
        &(struct nw_run_question){.model = &session->options.model,
                                  .quote = session->options.quote != NULL ? &session->quote : NULL,
                                  .host_flop_per_s = session->host_flop_per_s,
                                  .began_ns = session->began_ns,
                                  .results_path = session->results_path,
                                  .report_path = session->report_path,
                                  .json = session->options.plan.json});
}

/* ---- a rank -----------------------------------------------------------------------------------
 */

static nw_rc measure_host_rate(struct session *session, struct nw_comm *comm)
{
    const struct nw_model_request *request = &session->options.model;

    session->host_flop_per_s = NAN;
    if (request->model == NULL || request->tflops > 0 || request->gemm_tflops > 0 ||
        request->gpu != NULL)
        return NW_OK;
    nw_bench_status_write(session->status, nw_now_ns() + 60000000000ull,
                          "matrix products on the host");
    return nw_cli_host_rate(comm, &session->host_flop_per_s);
}

static nw_rc measure(struct session *session, struct nw_comm *comm)
{
    struct nw_bench_events events = {.status = session->status, .version = nw_version};
    nw_rc rc = NW_OK;

    if (comm->rank == 0) {
        events.user = session;
        events.on_context = write_context;
        events.on_record = write_record;
        events.on_finding = write_finding;
        events.on_progress = show_progress;
        session->progress =
            nw_progress_open(strcmp(session->options.plan.progress, "off") != 0, false);
        rc = open_files(session, &session->options);
    }
    NW_TRY(nw_agree(comm, rc));
    NW_TRY(measure_host_rate(session, comm));
    return nw_cli_measure(&(struct nw_cli_measure){.plan = &session->options.plan,
                                                   .comm = comm,
                                                   .events = &events,
                                                   .further_case = "coll"},
                          &session->lane_broke);
}

/* Others were lost; the parent tells the launcher, once rank 0 has ended. */
static int leave_survived(struct session *session, const struct nw_comm *comm, nw_rc rc)
{
    if (comm->rank == 0) {
        nw_cli_fail(rc);
        if (session->writer != NULL && close_results(session, false) == NW_OK)
            write_excluded(session);
    }
    return nw_rc_exit_code(NW_EPEER);
}

static int work(void *argument, void *status)
{
    struct session *session = argument;
    struct nw_comm *comm;
    bool reached_end;
    int exit_code = nw_cli_open_mpi(status, NW_CLI_MPI_STRICT, &comm);
    nw_rc rc;

    if (exit_code != 0)
        return exit_code;
    session->status = status;
    rc = measure(session, comm);
    nw_progress_clear(&session->progress);
    if (atomic_load(&session->status->lifeline.survived) != 0) /* MPI has no common end any more */
        return leave_survived(session, comm, rc);
    if (nw_bench_is_broken(rc)) { /* the other ranks may never come out of their calls */
        if (comm->rank == 0 || rc != NW_EPEER)
            nw_cli_fail(rc);
        if (session->writer != NULL)
            (void)close_results(session, false); /* what was measured is on disk already */
        nw_mpi_abort(nw_rc_exit_code(rc));
    }
    reached_end = rc == NW_OK || rc == NW_EWRONG || rc == NW_ENOTSUP;
    exit_code = nw_rc_exit_code(rc);
    if (comm->rank == 0) {
        if (rc != NW_OK)
            nw_cli_fail(rc);
        if (session->writer != NULL &&
            close_results(session, reached_end && !session->lane_broke) != NW_OK && rc == NW_OK)
            exit_code = nw_cli_fail(NW_EIO);
        else if (reached_end) {
            write_excluded(session);
            const int found = finish(session);

            exit_code = exit_code != 0 ? exit_code : found;
        }
    }
    if (session->lane_broke)
        exit_code = nw_rc_exit_code(NW_EPEER);
    nw_bench_status_write(status, nw_now_ns() + NW_CLI_STOP_DEADLINE_NS, "the end of MPI");
    nw_comm_close(comm);
    nw_mpi_stop();
    nw_bench_status_write(status, 0, "");
    return exit_code;
}

/* ---- the command ------------------------------------------------------------------------------
 */

/* Bad input is said before MPI starts and anything is measured. */
static nw_rc check_inputs(struct session *session)
{
    const struct options *options = &session->options;

    if (strcmp(options->plan.backend, "local") == 0)
        return nw_fail(
            NW_EUSAGE,
            "option --backend: the local double is for bench; accepted: auto, mpi, nccl");
    /* Also: can the job be read, whatever its compute rate will be? */
    NW_TRY(nw_cli_take_shapes(&options->model, &session->options.plan, session->shapes));
    if (strcmp(options->plan.backend, "mpi") == 0 && options->plan.lanes_text != NULL &&
        strcmp(options->plan.lanes_text, LANES) == 0)
        session->options.plan.lanes_text = NULL; /* nobody asked for them */
    NW_TRY(nw_plan_resolve(&session->options.plan));
    if (options->plan.out_dir != NULL && strlen(options->plan.out_dir) >= sizeof session->directory)
        return nw_fail(
            NW_EUSAGE,
            "option --out: the name of the directory is too long; accepted: up to %zu bytes",
            sizeof session->directory - 1);
    return options->quote != NULL ? nw_quote_read(options->quote, &session->quote) : NW_OK;
}

int nw_cmd_run(int argc, char **argv)
{
    struct nw_option rows[ROWS_MAX];
    struct session session = {.began_ns = nw_now_ns()};
    struct nw_cli cli = {
        .doc = "Measure between the ranks of an mpirun, say what is wrong with the hosts, hold the "
               "result "
               "against a quote, predict a training step and decide whether a second node pays.\v"
               "Writes DIR/results.jsonl (every record as it is measured), DIR/report.txt (the "
               "screen and "
               "what is behind it) and with --quote DIR/letter.en.md and letter.zh.md (for the "
               "vendor). "
               "Exit codes: 0 pass, 1 a claim is short or data is wrong, 2 bad input, 3 nothing "
               "could be "
               "measured, 4 a rank or a lane died or hung.",
        .rows = rows,
        .row_count = build_rows(rows),
        .target = &session.options,
    };
    const bool speaks = nw_cli_launch_rank() <= 0;
    nw_rc rc = nw_cli_parse(&cli, argc, argv, speaks);

    if (rc == NW_OK)
        rc = check_inputs(&session);
    if (rc != NW_OK)
        return speaks ? nw_cli_fail(rc) : nw_rc_exit_code(rc);
    return nw_cli_watch(work, &session, argc, argv);
}
