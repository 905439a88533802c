/* nodeworth replay: the predicted step executed by real ranks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/units.h"
#include "bench/agree.h"
#include "bench/bench.h"
#include "cli/cli.h"
#include "cli/host_rate.h"
#include "cli/launch.h"
#include "cli/model_args.h"
#include "cli/watch.h"
#include "model/replay.h"
#include "report/model_text.h"
#include "report/replay_text.h"

static const char doc[] =
    "Execute the predicted step on these ranks: computation for as long as it is predicted to "
    "take, the strategy's own collectives on its own groups at their moments; then hold the "
    "prediction against it.\v"
    "Start it with mpirun on the ranks that the results were measured on. Messages are host memory "
    "over MPI. --scale and --layers make a job small enough for the machine. Exit codes: 0; 1 "
    "wrong "
    "data; 2 bad input; 3 the communication that the job needs was not measured; 4 a rank died or "
    "hung. Examples:\n\n"
    "  mpirun -np 2 nodeworth bench --collectives all_reduce -J results.jsonl\n"
    "  mpirun -np 2 nodeworth replay --model gpt2-124m --layers 4 --scale 1/16 --strategy ddp "
    "results.jsonl";

#define STEP_MARGIN_NS 60e9 /* beside 20 times the step: connections, verification */

struct session {
    struct nw_model_args args;
    struct nw_results results; /* rank 0's */
    double scale;
    struct nw_bench_status *status;
    nw_rc rc;
};

/* "1/16" or "0.0625" */
static nw_rc parse_scale(const char *text, double *scale_out)
{
    const char *slash = strchr(text, '/');
    char top[32];
    double above, below = 1;

    snprintf(top, sizeof top, "%.*s", slash != NULL ? (int)(slash - text) : (int)strlen(text),
             text);
    if (nw_parse_double(top, 1e-9, 1e9, &above) != NW_OK ||
        (slash != NULL && nw_parse_double(slash + 1, 1e-9, 1e9, &below) != NW_OK) ||
        above / below > 1)
        return nw_fail(NW_EUSAGE,
                       "option --scale: \"%s\"; accepted: more than 0, up to 1: 1/16, "
                       "0.25",
                       text);
    *scale_out = above / below;
    return NW_OK;
}

/* ---- rank 0: the plan ---------------------------------------------------------------------- */

static nw_rc choose(const struct nw_model *model, int node_count, struct nw_layout *layout_out)
{
    const struct nw_platform platform = nw_model_platform(model);
    double least = INFINITY;
    nw_rc rc = NW_OK;

    for (size_t i = 0; model->strategies[i] != NULL; i++) {
        const struct nw_layout layout = nw_model_layout(model, node_count, model->strategies[i]);
        const struct nw_job job = nw_model_job(model, &layout);
        struct nw_step step;

        rc = nw_layout_check(&layout, &job);
        if (rc == NW_OK)
            rc = nw_predict(&job, &platform, &layout, &model->scenario, &step);
        if (rc != NW_OK || !(step.step_ns < least))
            continue;
        least = step.step_ns;
        *layout_out = layout;
    }
    return isfinite(least) ? NW_OK : rc;
}

struct plan { /* owned */
    struct nw_model model;
    struct nw_job job;
    struct nw_platform platform;
    struct nw_layout layout;
    char nodes[16];
};

static nw_rc make_plan(struct session *session, const struct nw_comm *comm, double host_flop_per_s,
                       struct plan *plan)
{
    struct nw_model_request *request = &session->args.request;

    if (request->ranks > 0 && request->ranks != comm->rank_count)
        return nw_fail(NW_EUSAGE,
                       "option --ranks: %d, and mpirun started %d; accepted: %d, or "
                       "nothing",
                       request->ranks, comm->rank_count, comm->rank_count);
    request->ranks = comm->rank_count;
    snprintf(plan->nodes, sizeof plan->nodes, "%d", comm->host_count);
    request->nodes = plan->nodes;
    if (isfinite(host_flop_per_s))
        request->gemm_tflops = host_flop_per_s / 1e12;
    NW_TRY(nw_model_open(request, &session->results, &plan->model));
    nw_rc rc = choose(&plan->model, comm->host_count, &plan->layout);

    if (rc != NW_OK) {
        nw_model_close(&plan->model);
        return rc;
    }
    plan->job = nw_model_job(&plan->model, &plan->layout);
    plan->platform = nw_model_platform(&plan->model);
    return NW_OK;
}

static nw_rc print_heading(const struct session *session, const struct plan *plan)
{
    const struct nw_layout *layout = &plan->layout;
    char text[256];

    NW_TRY(nw_report_job(stdout, &plan->model));
    snprintf(text, sizeof text,
             "Replayed: %s; ranks %d, nodes %d, tensor parallel %d, pipeline stages %d, context "
             "parallel %d, scale %g",
             layout->strategy->name, layout->rank_count, layout->node_count, nw_layout_tp(layout),
             nw_layout_pp(layout), nw_layout_cp(layout), session->scale);
    printf("%s\n\n", text);
    return NW_OK;
}

static nw_rc write_trace(const char *path, const struct nw_replay_result *result)
{
    struct nw_atomic_file *file;

    NW_TRY(nw_atomic_open(path, &file));
    const nw_rc rc = nw_replay_write_trace(nw_atomic_stream(file), result);

    if (rc == NW_OK)
        return nw_atomic_commit(file);
    nw_atomic_abandon(file);
    return rc;
}

static nw_rc print(const struct session *session, const struct plan *plan,
                   const struct nw_replay_result *result)
{
    if (session->args.replay_trace != NULL)
        NW_TRY(write_trace(session->args.replay_trace, result));
    if (!session->args.json) {
        NW_TRY(print_heading(session, plan));
        return nw_report_replay(stdout, result);
    }
    json_t *root;

    NW_TRY(nw_replay_to_json(result, &root));
    const nw_rc rc = nw_json_print(stdout, root);

    json_decref(root);
    return rc;
}

/* ---- a rank -------------------------------------------------------------------------------- */

static nw_rc replay(struct session *session, struct nw_comm *comm, const struct plan *plan)
{
    const struct nw_model_args *args = &session->args;
    const struct nw_replay_how how = {
        .is_virtual = comm->ops->simulated,
        .warmup_steps = 1,
        .min_steps = args->replay_steps < 3 ? args->replay_steps : 3,
        .max_steps = args->replay_steps,
        .rel_interval = 0.02,
        .budget_ns = args->replay_budget_ns,
        .margin_ns = STEP_MARGIN_NS,
        .status = comm->ops->simulated && comm->rank != 0 ? NULL : session->status,
    };
    struct nw_replay_result result;
    struct nw_replay *replayed;

    NW_TRY(nw_replay_open(comm,
                          &(struct nw_replay_question){.job = &plan->job,
                                                       .platform = &plan->platform,
                                                       .layout = &plan->layout,
                                                       .scale = session->scale},
                          &replayed));
    nw_rc rc = nw_replay_run(replayed, &how, &result);

    nw_replay_close(replayed);
    NW_TRY(rc);
    rc = nw_agree(comm, comm->rank == 0 ? print(session, plan, &result) : NW_OK);
    if (rc == NW_OK && result.wrong_elements > 0)
        rc = nw_fail(NW_EWRONG, "replay: %lld elements were wrong",
                     (long long)result.wrong_elements);
    nw_replay_result_free(&result);
    return rc;
}

/* Rank 0's plan, or its failure in its own words. */
static nw_rc agree_on_plan(struct session *session, struct nw_comm *comm, double host_flop_per_s,
                           struct plan *plan)
{
    const nw_rc mine = comm->rank == 0 ? make_plan(session, comm, host_flop_per_s, plan) : NW_OK;
    const struct nw_err error = *nw_last_error();
    const nw_rc rc = nw_agree(comm, mine);

    if (mine == NW_OK)
        return rc;
    return nw_fail_at(error.rc, error.lib, error.lib_code, error.where, "%s", error.text);
}

static nw_rc run_rank(struct nw_comm *comm, void *argument)
{
    struct session *session = argument;
    const struct nw_model_request *request = &session->args.request;
    struct plan plan = {0};
    double host_flop_per_s = NAN;
    nw_rc rc = NW_OK;

    nw_bench_status_write(comm->ops->simulated && comm->rank != 0 ? NULL : session->status,
                          nw_now_ns() + 60000000000ull, "the plan of a replay");
    if (!comm->ops->simulated && request->tflops == 0 && request->gemm_tflops == 0 &&
        request->gpu == NULL)
        rc = nw_cli_host_rate(comm, &host_flop_per_s);
    if (rc == NW_OK)
        rc = agree_on_plan(session, comm, host_flop_per_s, &plan);
    if (rc != NW_OK)
        return rc;
    rc = replay(session, comm, &plan);
    if (comm->rank == 0)
        nw_model_close(&plan.model);
    if (comm->rank == 0)
        session->rc = rc;
    return rc;
}

static int work_mpi(struct session *session)
{
    struct nw_comm *comm;
    const int refused =
        nw_cli_open_mpi(session->status, NW_CLI_MPI_STRICT | NW_CLI_MPI_THREADS, &comm);
    nw_rc rc;

    if (refused != 0)
        return refused;
    rc = run_rank(comm, session);
    if (comm->rank == 0 && rc == NW_OK)
        rc = nw_cli_finish_stdout();
    if (rc != NW_OK && (comm->rank == 0 || (nw_bench_is_broken(rc) && rc != NW_EPEER)))
        nw_cli_fail(rc);
    if (nw_bench_is_broken(rc)) /* the other ranks may never come out of their calls */
        nw_mpi_abort(nw_rc_exit_code(rc));
    nw_bench_status_write(session->status, nw_now_ns() + NW_CLI_STOP_DEADLINE_NS, "the end of MPI");
    nw_comm_close(comm);
    nw_mpi_stop();
    nw_bench_status_write(session->status, 0, "");
    return nw_rc_exit_code(rc);
}

static int work_local(struct session *session)
{
    const int nodes = session->args.replay_hosts, ranks = session->args.request.ranks;
    nw_rc rc = nw_comm_run_local(ranks, nodes, run_rank, session);

    if (rc == NW_OK)
        rc = nw_cli_finish_stdout();
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}

static int work(void *argument, void *status)
{
    struct session *session = argument;

    session->status = status;
    return strcmp(session->args.replay_backend, "local") == 0 ? work_local(session)
                                                              : work_mpi(session);
}

/* ---- the command --------------------------------------------------------------------------- */

static nw_rc check(struct session *session)
{
    const struct nw_model_args *args = &session->args;

    NW_TRY(parse_scale(args->replay_scale, &session->scale));
    if (args->request.model == NULL && args->request.layers == 0)
        return nw_fail(NW_EUSAGE, "no job; accepted: --model NAME and what else predict "
                                  "takes");
    if (strcmp(args->replay_backend, "local") != 0)
        return NW_OK;
    if (nw_cli_launch_size() > 1)
        return nw_fail(NW_EUSAGE, "option --backend: local has threads for ranks; start it without "
                                  "mpirun (--ranks N)");
    if (args->request.ranks < 1)
        return nw_fail(NW_EUSAGE, "option --backend: local needs --ranks N");
    return NW_OK;
}

int nw_cmd_replay(int argc, char **argv)
{
    struct session session = {.rc = NW_OK};
    const bool speaks = nw_cli_launch_rank() <= 0;
    nw_rc rc =
        nw_model_args_parse(argc, argv, doc, NW_ARGS_REPLAY | (speaks ? 0 : NW_ARGS_OPTIONS_ONLY),
                            &session.args, &session.results);

    if (rc == NW_OK)
        rc = check(&session);
    if (rc != NW_OK)
        return speaks ? nw_cli_fail(rc) : nw_rc_exit_code(rc);
    const int exit_code = nw_cli_watch(work, &session, argc, argv);

    nw_results_free(&session.results);
    return exit_code;
}
