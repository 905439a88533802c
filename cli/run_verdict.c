#include "cli/run_verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "cli/cli.h"
#include "report/letter.h"
#include "report/screen.h"
#include "results/lanes.h"
#include "topo/preflight.h"

struct verdict { /* owns everything but the strings */
    struct nw_results results;
    struct nw_lanes lanes; /* of the run's records */
    struct nw_audit audit;
    struct nw_model model;
    struct nw_steps steps;
    struct nw_decision decision;
    struct nw_lane_effects lane_effects;
    struct nw_scaling_cost scaling_cost;
    struct nw_findings preflight;
    bool preflighted, audited, modelled, host_compute;
    char note[256], job_problem[1024];
};

static void free_verdict(struct verdict *verdict)
{
    nw_decision_free(&verdict->decision);
    nw_steps_free(&verdict->steps);
    if (verdict->modelled)
        nw_model_close(&verdict->model);
    if (verdict->audited)
        nw_audit_free(&verdict->audit);
    nw_findings_free(&verdict->preflight);
    nw_lanes_free(&verdict->lanes);
    nw_results_free(&verdict->results);
}

/* What the user did not say about the machine, from what was found on it. */
static void complete_request(const struct nw_run_question *question,
                             const struct nw_context *context, struct verdict *verdict)
{
    struct nw_model_request *request = question->model;
    const struct nw_host *host = context->hosts;

    if (strcmp(context->backend, "mpi") == 0 &&
        (request->gpu != NULL || (host != NULL && host->gpu_count > 0)))
        snprintf(
            verdict->note, sizeof verdict->note,
            "Communication below is that of host memory over MPI: no GPU's was measured, so the "
            "times are not those of GPUs joined by NCCL.");
    if (request->tflops > 0 || request->gemm_tflops > 0 || request->gpu != NULL || host == NULL)
        return;
    if (host->gpu_count > 0 && host->gpu_model[0] != '\0')
        return; /* the model takes it from the results */
    if (!isfinite(question->host_flop_per_s))
        return;
    verdict->host_compute = true;
    request->gemm_tflops = question->host_flop_per_s / 1e12;
    if (request->micro_batch == 0)
        request->micro_batch = 1;
    if (request->gpu_memory_bytes == 0 && host->rank_count > 0)
        request->gpu_memory_bytes = host->memory_bytes / (uint64_t)host->rank_count;
    snprintf(verdict->note, sizeof verdict->note,
             "No GPU here: each rank is one CPU core, %.3g GFLOP/s of fp32 matrix products "
             "(measured now, all ranks at once), with its share of the host's memory. For a GPU: "
             "--gpu NAME or --tflops X.",
             question->host_flop_per_s / 1e9);
}

/* Of the fastest strategy on the fewest nodes that can be predicted. */
static nw_rc judge_lanes(struct verdict *verdict)
{
    const struct nw_decision *decision = &verdict->decision;

    for (size_t i = 0; i < decision->count; i++)
        if (decision->choices[i].predicted)
            return nw_predict_lanes(&verdict->model, &decision->choices[i].strong,
                                    &verdict->lane_effects);
    return NW_OK;
}

/* Of the fastest strategy on the most nodes that can be predicted. */
static nw_rc judge_scaling(struct verdict *verdict)
{
    const struct nw_decision *decision = &verdict->decision;

    for (size_t i = decision->count; i > 0; i--)
        if (decision->choices[i - 1].predicted)
            return nw_scaling_cost_of(&verdict->model, &verdict->results,
                                      &decision->choices[i - 1].strong, &verdict->scaling_cost);
    return NW_OK;
}

static nw_rc judge_job(const struct nw_run_question *question, struct verdict *verdict)
{
    nw_rc rc;

    if (question->quote != NULL)
        nw_model_request_take_quote(question->model, question->quote);
    complete_request(question, &verdict->results.runs[0].context, verdict);
    rc = nw_model_open(question->model, &verdict->results, &verdict->model);
    verdict->modelled = rc == NW_OK;
    if (rc == NW_OK)
        rc = nw_predict_all(&verdict->model, &verdict->steps);
    if (rc == NW_OK)
        rc = nw_decide(&verdict->model, &verdict->decision);
    if (rc == NW_OK)
        rc = judge_lanes(verdict);
    if (rc == NW_OK)
        rc = judge_scaling(verdict);
    if (rc != NW_OK && rc != NW_ENOMEM) {
        snprintf(verdict->job_problem, sizeof verdict->job_problem, "%s", nw_last_error()->text);
        return NW_OK;
    }
    return rc;
}

/* Warnings and failures of the hosts, by the topologies that the run kept. What stayed unread is
 * `check`'s to tell. */
static nw_rc judge_hosts(struct verdict *verdict)
{
    const struct nw_context *context = &verdict->results.runs[0].context;
    const size_t count = json_array_size(context->topology);
    struct nw_topo **hosts = calloc(count + 1, sizeof *hosts);
    struct nw_preflight_input input = {.hosts = hosts, .no_gaps = true};
    struct nw_findings all = {0};
    nw_rc rc = hosts != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for %zu topologies", count);

    for (size_t i = 0; i < count && rc == NW_OK; i++) {
        const json_t *item = json_array_get(context->topology, i);

        if (!json_is_null(item))
            rc = nw_topo_from_json(item, "results.jsonl", &hosts[input.host_count]);
        if (rc == NW_OK && !json_is_null(item))
            input.host_count++;
    }
    if (rc == NW_OK && input.host_count > 0)
        rc = nw_preflight_judge(&input, &all);
    for (size_t i = 0; i < all.count && rc == NW_OK; i++)
        if (all.items[i].severity != NW_FINDING_INFO)
            rc = nw_findings_copy_one(&verdict->preflight, &all.items[i]);
    verdict->preflighted = rc == NW_OK && input.host_count > 0;
    nw_findings_free(&all);
    for (size_t i = 0; i < input.host_count; i++)
        nw_topo_free(hosts[i]);
    free(hosts);
    return rc;
}

static nw_rc judge(const struct nw_run_question *question, struct verdict *verdict)
{
    NW_TRY(nw_results_read(question->results_path, &verdict->results));
    if (verdict->results.run_count != 1)
        return nw_fail(NW_EIO, "%s: %zu runs found where one was just written",
                       question->results_path, verdict->results.run_count);
    NW_TRY(nw_lanes_compare(&verdict->results.runs[0], &verdict->lanes));
    NW_TRY(judge_hosts(verdict));
    if (question->quote != NULL) {
        const struct nw_audit_input input = {.quote = question->quote,
                                             .results = &verdict->results};

        NW_TRY(nw_audit_make(&input, &verdict->audit));
        verdict->audited = true;
    }
    return question->model->model != NULL ? judge_job(question, verdict) : NW_OK;
}

static const char *const letter_languages[] = {"en", "zh"};
enum { LETTERS = sizeof letter_languages / sizeof *letter_languages, PATH_SIZE = 640 };

/* Beside the report. */
static void letter_path(const struct nw_run_question *question, const char *language,
                        char path[PATH_SIZE])
{
    const char *slash = strrchr(question->report_path, '/');
    const int folder = slash != NULL ? (int)(slash - question->report_path) + 1 : 0;

    snprintf(path, PATH_SIZE, "%.*sletter.%s.md", folder, question->report_path, language);
}

static nw_rc show(const struct nw_run_question *question, const struct verdict *verdict)
{
    char paths[LETTERS][PATH_SIZE], letters[LETTERS * PATH_SIZE] = "";

    for (size_t i = 0; i < LETTERS; i++) {
        letter_path(question, letter_languages[i], paths[i]);
        snprintf(letters + strlen(letters), sizeof letters - strlen(letters), "%s%s",
                 i > 0 ? "   " : "", paths[i]);
    }
    const bool predicted = verdict->modelled && verdict->job_problem[0] == '\0';
    const struct nw_screen screen = {
        .version = nw_version,
        .run = &verdict->results.runs[0],
        .lanes = &verdict->lanes,
        .elapsed_ns = (double)(nw_now_ns() - question->began_ns),
        .preflight = verdict->preflighted ? &verdict->preflight : NULL,
        .audit = verdict->audited ? &verdict->audit : NULL,
        .model = predicted ? &verdict->model : NULL,
        .steps = predicted ? &verdict->steps : NULL,
        .decision = predicted ? &verdict->decision : NULL,
        .lane_effects = predicted ? &verdict->lane_effects : NULL,
        .scaling_cost = predicted ? &verdict->scaling_cost : NULL,
        .job_problem = verdict->job_problem[0] != '\0' ? verdict->job_problem : NULL,
        .note = verdict->note[0] != '\0' ? verdict->note : NULL,
        .host_compute = verdict->host_compute,
        .report_path = question->report_path,
        .results_path = question->results_path,
        .letter_paths = verdict->audited ? letters : NULL,
    };
    struct nw_atomic_file *file;
    nw_rc rc;

    NW_TRY(nw_atomic_open(question->report_path, &file));
    rc = nw_report_whole(nw_atomic_stream(file), &screen);
    if (rc != NW_OK) {
        nw_atomic_abandon(file);
        return rc;
    }
    NW_TRY(nw_atomic_commit(file));
    return question->json ? nw_report_screen_json(stdout, &screen)
                          : nw_report_screen(stdout, &screen);
}

/* The page for the vendor. */
static nw_rc write_letter(const struct nw_run_question *question, const struct verdict *verdict,
                          const char *language)
{
    const struct nw_letter letter = {.audit = &verdict->audit,
                                     .results = &verdict->results,
                                     .version = nw_version,
                                     .language = language};
    struct nw_atomic_file *file;
    char path[PATH_SIZE];

    letter_path(question, language, path);
    NW_TRY(nw_atomic_open(path, &file));
    const nw_rc rc = nw_report_letter(nw_atomic_stream(file), &letter);

    if (rc != NW_OK) {
        nw_atomic_abandon(file);
        return nw_fail(rc, "%s: %s", path, nw_last_error()->text);
    }
    return nw_atomic_commit(file);
}

int nw_run_verdict(const struct nw_run_question *question)
{
    struct verdict verdict = {0};
    nw_rc rc = judge(question, &verdict);
    int exit_code;

    for (size_t i = 0; rc == NW_OK && verdict.audited && i < LETTERS; i++)
        rc = write_letter(question, &verdict, letter_languages[i]);
    if (rc == NW_OK)
        rc = show(question, &verdict);
    exit_code = rc != NW_OK       ? nw_cli_fail(rc)
                : verdict.audited ? nw_audit_exit_code(&verdict.audit)
                                  : 0;
    free_verdict(&verdict);
    return exit_code;
}
