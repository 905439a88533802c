#include "cli/run_verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/words.h"
#include "cli/cli.h"
#include "cli/judgement.h"
#include "report/letter.h"
#include "report/screen.h"

struct verdict {
    struct nw_judgement judgement; /* owned */
    bool host_compute;
};

/* What the user did not say about the machine, from what was found on it. */
static void complete_request(const struct nw_run_question *question,
                             const struct nw_context *context, struct verdict *verdict)
{
    struct nw_model_request *request = question->model;
    const struct nw_host *host = context->hosts;

    if (strcmp(context->backend, "mpi") == 0 &&
        (request->gpu != NULL || (host != NULL && host->gpu_count > 0)))
        snprintf(
            verdict->judgement.note, sizeof verdict->judgement.note,
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
    snprintf(verdict->judgement.note, sizeof verdict->judgement.note,
             "No GPU here: each rank is one CPU core, %.3g GFLOP/s of fp32 matrix products "
             "(measured now, all ranks at once), with its share of the host's memory. For a GPU: "
             "--gpu NAME or --tflops X.",
             question->host_flop_per_s / 1e9);
}

static nw_rc judge(const struct nw_run_question *question, struct verdict *verdict)
{
    struct nw_judgement *judgement = &verdict->judgement;
    const bool job = question->model->model != NULL;

    NW_TRY(nw_results_read(question->results_path, &judgement->results));
    if (judgement->results.run_count != 1)
        return nw_fail(NW_EIO, "%s: %zu runs found where one was just written",
                       question->results_path, judgement->results.run_count);
    if (job && question->quote != NULL)
        nw_model_request_take_quote(question->model, question->quote);
    if (job)
        complete_request(question, &judgement->results.runs[0].context, verdict);
    return nw_judgement_make(judgement, question->quote, job ? question->model : NULL);
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

static void page_path(const struct nw_run_question *question, char path[PATH_SIZE])
{
    const size_t length = strlen(question->report_path);
    const size_t stem = length > 4 ? length - 4 : 0; /* "out/report.txt" */

    snprintf(path, PATH_SIZE, "%.*s.html", (int)stem, question->report_path);
}

static nw_rc show(const struct nw_run_question *question, const struct verdict *verdict)
{
    const struct nw_judgement *judgement = &verdict->judgement;
    char paths[LETTERS][PATH_SIZE], letters[LETTERS * PATH_SIZE] = "", page[PATH_SIZE];

    for (size_t i = 0; i < LETTERS; i++) {
        letter_path(question, letter_languages[i], paths[i]);
        snprintf(letters + strlen(letters), sizeof letters - strlen(letters), "%s%s",
                 i > 0 ? "   " : "", paths[i]);
    }
    page_path(question, page);
    const bool predicted = nw_judgement_predicted(judgement);
    const struct nw_screen screen = {
        .version = nw_version,
        .run = &judgement->results.runs[0],
        .lanes = &judgement->lanes[0],
        .elapsed_ns = (double)(nw_now_ns() - question->began_ns),
        .preflight = judgement->preflighted ? &judgement->preflight : NULL,
        .audit = judgement->audited ? &judgement->audit : NULL,
        .model = predicted ? &judgement->model : NULL,
        .steps = predicted ? &judgement->steps : NULL,
        .decision = predicted ? &judgement->decision : NULL,
        .lane_effects = predicted ? &judgement->lane_effects : NULL,
        .scaling_cost = predicted ? &judgement->scaling_cost : NULL,
        .job_problem = judgement->job_problem[0] != '\0' ? judgement->job_problem : NULL,
        .note = judgement->note[0] != '\0' ? judgement->note : NULL,
        .host_compute = verdict->host_compute,
        .page_path = page,
        .report_path = question->report_path,
        .results_path = question->results_path,
        .letter_paths = judgement->audited ? letters : NULL,
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

/* The page of everything, beside the report. */
static nw_rc write_page(const struct nw_run_question *question, const struct verdict *verdict)
{
    const struct nw_page page = nw_judgement_page(&verdict->judgement, nw_spoken_language()->key);
    struct nw_atomic_file *file;
    char path[PATH_SIZE];

    page_path(question, path);
    NW_TRY(nw_atomic_open(path, &file));
    const nw_rc rc = nw_report_html(nw_atomic_stream(file), &page);

    if (rc != NW_OK) {
        nw_atomic_abandon(file);
        return nw_fail(rc, "%s: %s", path, nw_last_error()->text);
    }
    return nw_atomic_commit(file);
}

/* The page for the vendor. */
static nw_rc write_letter(const struct nw_run_question *question, const struct verdict *verdict,
                          const char *language)
{
    const struct nw_letter letter = {.audit = &verdict->judgement.audit,
                                     .results = &verdict->judgement.results,
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
    struct verdict verdict = {.host_compute = false};
    nw_rc rc = judge(question, &verdict);
    int exit_code;

    for (size_t i = 0; rc == NW_OK && verdict.judgement.audited && i < LETTERS; i++)
        rc = write_letter(question, &verdict, letter_languages[i]);
    if (rc == NW_OK)
        rc = write_page(question, &verdict);
    if (rc == NW_OK)
        rc = show(question, &verdict);
    exit_code = rc != NW_OK                 ? nw_cli_fail(rc)
                : verdict.judgement.audited ? nw_audit_exit_code(&verdict.judgement.audit)
                                            : 0;
    nw_judgement_free(&verdict.judgement);
    return exit_code;
}
