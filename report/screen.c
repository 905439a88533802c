#include "report/screen.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "report/audit_text.h"
#include "report/lanes_text.h"
#include "report/measured_text.h"
#include "report/model_text.h"

enum { FINDINGS_SHOWN = 3, WIDTH = 100 };

/* " · 8 × NVIDIA H100 80GB HBM3 · NCCL 2.28.9", " · no GPU found: host memory over Open MPI v4.1.4"
 */
static void print_machine(FILE *stream, const struct nw_context *context)
{
    const struct nw_host *host = context->hosts;
    const bool gpus = host != NULL && host->gpu_count > 0;
    int library_length = (int)strcspn(context->library, ",("); /* without where it is */

    while (library_length > 0 && context->library[library_length - 1] == ' ')
        library_length--;
    if (strcmp(context->backend, "nccl") == 0)
        nw_print(stream, " · %s · %.*s",
                 context->gpu_model[0] != '\0' ? context->gpu_model : "GPUs", library_length,
                 context->library);
    else if (gpus)
        nw_print(stream, " · %d × %s found, not measured: %.*s on host memory", host->gpu_count,
                 host->gpu_model[0] != '\0' ? host->gpu_model : "GPU", library_length,
                 context->library);
    else
        nw_print(stream, " · %s: host memory over %.*s",
                 host != NULL && host->gpu_count == 0 ? nw_tr("no GPU found")
                                                      : nw_tr("GPUs unknown"),
                 library_length, context->library);
}

/* "nodeworth 0.1.0 · 2 nodes × 8 ranks · no GPU found: Open MPI v4.1.4 on host memory · 12 s · 240
 * records" */
static void write_title(FILE *stream, const struct nw_screen *screen)
{
    const struct nw_context *context = &screen->run->context;
    char elapsed[32];

    nw_print(stream, "nodeworth %s · %d node%s × %d rank%s", screen->version, context->host_count,
             context->host_count == 1 ? "" : "s",
             context->host_count > 0 ? context->rank_count / context->host_count
                                     : context->rank_count,
             context->rank_count == context->host_count ? "" : "s");
    print_machine(stream, context);
    nw_print(stream, " · %s · %zu records%s", nw_format_ns(elapsed, screen->elapsed_ns),
             screen->run->record_count,
             context->simulated ? nw_tr(" · SIMULATED, no measurement") : "");
}

/* Where it is too wide the rest goes to a second line: between two parts, not within one. */
static nw_rc print_title(FILE *stream, const struct nw_screen *screen)
{
    static const char between[] = " · ";
    char *text = NULL, *at, *last = NULL;
    size_t length;
    FILE *line = open_memstream(&text, &length);

    if (line == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the title");
    write_title(line, screen);
    if (fclose(line) != 0) {
        free(text);
        return nw_fail(NW_ENOMEM, "out of memory for the title");
    }
    for (at = text; nw_text_width(text) > WIDTH && (at = strstr(at, between)) != NULL; at++) {
        *at = '\0';
        if (nw_text_width(text) <= WIDTH)
            last = at;
        *at = between[0];
    }
    if (last != NULL)
        fprintf(stream, "%.*s\n %s\n", (int)(last - text), text, last);
    else
        fprintf(stream, "%s\n", text);
    free(text);
    return NW_OK;
}

/* What hurts every number stands first: a fault of a machine, then the measurements' own. */
static nw_rc print_findings(FILE *stream, const struct nw_screen *screen, const char *title,
                            size_t most)
{
    const struct nw_run *run = screen->run;
    struct nw_findings all = {0};
    nw_rc rc = screen->preflight != NULL ? nw_findings_copy(&all, screen->preflight) : NW_OK;

    if (rc == NW_OK)
        rc = nw_findings_copy(&all, &run->context.findings);

    for (size_t i = 0; rc == NW_OK && i < run->record_count; i++)
        if (run->records[i].rc != NW_OK)
            rc = nw_findings_copy(&all, &run->records[i].warnings);
    if (rc == NW_OK && all.count > 0) {
        nw_print(stream, "\n%s\n", title);
        rc = nw_report_findings(stream, &all, most);
    }
    nw_findings_free(&all);
    return rc;
}

static void format_memory(char *text, size_t size, const struct nw_step *step, uint64_t card_bytes)
{
    const double gib = 1024.0 * 1024 * 1024;
    char used[32], card[32];

    nw_format_sig(used, step->memory.total_bytes / gib, 3);
    if (card_bytes > 0)
        nw_print_to(text, size, "%s of %s GiB", used,
                    nw_format_sig(card, (double)card_bytes / gib, 3));
    else
        nw_print_to(text, size, "%s GiB", used);
}

static void add_choice(struct nw_table *table, const struct nw_model *model,
                       const struct nw_choice *choice)
{
    char nodes[16], memory[80], step[112], rate[32], cost[32], speedup[32] = "";

    snprintf(nodes, sizeof nodes, "%d", choice->node_count);
    if (!choice->predicted) {
        nw_table_row(table,
                     (const char *[]){nodes, "–", "–",
                                      choice->pays == NW_PAYS_UNFIT     ? nw_tr("does not fit")
                                      : choice->pays == NW_PAYS_UNKNOWN ? nw_tr("not measured")
                                                                        : nw_tr("not predicted"),
                                      "–", "–", "–"});
        return;
    }
    format_memory(memory, sizeof memory, &choice->strong, model->platform.memory_bytes);
    nw_report_step_time(step, sizeof step, &choice->strong);
    if (isfinite(choice->speedup))
        snprintf(speedup, sizeof speedup, "%.2f×", choice->speedup);
    nw_format_sig(cost, choice->cost_per_billion_tokens, 3);
    nw_table_row(table, (const char *[]){nodes, choice->strong.strategy->name, memory, step,
                                         nw_format_count(rate, choice->strong.tokens_per_s),
                                         speedup, cost});
}

static nw_rc print_choices(FILE *stream, const struct nw_screen *screen)
{
    const struct nw_terms *terms = &screen->model->terms;
    char cost_title[64];
    const struct nw_column columns[] = {{"Nodes", NW_RIGHT},          {"fastest", NW_LEFT},
                                        {"memory per GPU", NW_RIGHT}, {"step [90 %]", NW_RIGHT},
                                        {"tokens/s", NW_RIGHT},       {"speed-up", NW_RIGHT},
                                        {cost_title, NW_RIGHT}};
    struct nw_table *table;

    if (isfinite(terms->price_per_node_hour))
        nw_print_to(cost_title, sizeof cost_title, "%.20s / 10^9 tokens",
                    terms->currency[0] != '\0' ? terms->currency : nw_tr("cost"));
    else
        nw_print_to(cost_title, sizeof cost_title, "node-h / 10^9 tokens");
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof *columns, &table));
    for (size_t i = 0; i < screen->decision->count; i++)
        add_choice(table, screen->model, &screen->decision->choices[i]);
    return nw_table_print(table, stream);
}

/* "fsdp on 1 node: step 1.92 s [1.8, 2.1] over nvlink, 3.40 s [3.1, 3.7] over pcie: NVLink saves 44
 * % [38, 49] of the step" */
static void print_lane_effects(FILE *stream, const struct nw_lane_effects *effects)
{
    char text[400], fast[112], slow[112], saved[96];

    for (size_t i = 0; i < effects->count; i++) {
        const struct nw_lane_effect *effect = &effects->items[i];
        const struct nw_step *step = &effect->over_fast;

        if (effect->saved_low <= 0 && effect->saved_high >= 0)
            nw_print_to(saved, sizeof saved, "no difference that the intervals allow to tell");
        else
            nw_print_to(saved, sizeof saved, "%s %s %.0f %% [%.0f, %.0f] of the step",
                        effect->title, effect->saved > 0 ? nw_tr("saves") : nw_tr("costs"),
                        100 * fabs(effect->saved),
                        100 * fmin(fabs(effect->saved_low), fabs(effect->saved_high)),
                        100 * fmax(fabs(effect->saved_low), fabs(effect->saved_high)));
        nw_print_to(text, sizeof text, "%s on %d node%s: step %s over %s, %s over %s: %s%s",
                    step->strategy->name, step->node_count, step->node_count == 1 ? "" : "s",
                    nw_report_step_time(fast, sizeof fast, step), effect->fast,
                    nw_report_step_time(slow, sizeof slow, &effect->over_slow), effect->slow, saved,
                    (step->how & NW_COST_SIMULATED) != 0 ? nw_tr(" (SIMULATED, no measurement)")
                                                         : "");
        nw_print_wrapped(stream, "", "", text);
    }
}

/* "ddp on 4 nodes: all_reduce of 64 MiB over 4 nodes has 45 % of the bus bandwidth over one, which
 * costs 0.52 s of each step of 1.92 s. What would win most: …" */
static void print_scaling_cost(FILE *stream, const struct nw_scaling_cost *cost)
{
    char text[512], size[32], lost[32], step[32];

    if (!cost->known || !(cost->full_step_ns < cost->step.step_ns))
        return;
    nw_print_to(
        text, sizeof text,
        "%s on %d nodes: %s of %s over %d nodes has %.0f %% of the bus bandwidth over one, "
        "which costs %s of each step of %s%s.%s",
        cost->step.strategy->name, cost->step.node_count, cost->collective,
        nw_format_bytes(size, cost->bytes), cost->node_count, 100 * cost->efficiency,
        nw_format_ns(lost, cost->step.step_ns - cost->full_step_ns),
        nw_format_ns(step, cost->step.step_ns),
        (cost->step.how & NW_COST_SIMULATED) != 0 ? nw_tr(" (SIMULATED, no measurement)") : "",
        cost->lever_count > 0 ? nw_tr(" Between nodes these would win most, each alone:") : "");
    nw_print_wrapped(stream, "", "", text);
    for (size_t i = 0; i < cost->lever_count; i++) {
        nw_print_to(text, sizeof text, "%s: step %s (%.1f %%)", cost->levers[i].what,
                    nw_format_ns(step, cost->levers[i].step_ns), 100 * cost->levers[i].change);
        nw_print_wrapped(stream, "  - ", "    ", text);
    }
}

static nw_rc print_job(FILE *stream, const struct nw_screen *screen)
{
    char sentence[1024];

    fputc('\n', stream);
    if (screen->job_problem != NULL) {
        nw_print_wrapped(stream, "Step of the job: not predicted: ", "    ", screen->job_problem);
        return NW_OK;
    }
    if (screen->model == NULL) {
        nw_print(stream,
                 "Step of a job, second node: not asked (--model NAME; nodeworth list models)\n");
        return NW_OK;
    }
    if (screen->host_compute)
        nw_report_training(stream, &screen->model->job);
    else
        NW_TRY(nw_report_job(stream, screen->model));
    if (screen->note != NULL)
        nw_print_wrapped(stream, "", "", screen->note);
    NW_TRY(print_choices(stream, screen));
    print_lane_effects(stream, screen->lane_effects);
    print_scaling_cost(stream, screen->scaling_cost);
    fputc('\n', stream);
    nw_print_wrapped(
        stream, "", "",
        nw_report_sentence(sentence, sizeof sentence, screen->model, screen->decision));
    nw_print(stream, "%s\n", nw_report_pays_rule(sentence, sizeof sentence, screen->model));
    return NW_OK;
}

static nw_rc print_lanes(FILE *stream, const struct nw_lanes *lanes)
{
    if (lanes->count == 0 && lanes->note_count == 0)
        return NW_OK;
    fputc('\n', stream);
    return nw_report_lanes(stream, lanes);
}

nw_rc nw_report_screen(FILE *stream, const struct nw_screen *screen)
{
    NW_TRY(print_title(stream, screen));
    nw_print(stream, "\nMeasured (time of the slowest rank)\n");
    NW_TRY(nw_report_measured(stream, screen->run));
    NW_TRY(nw_report_pairs(stream, screen->run));
    NW_TRY(print_lanes(stream, screen->lanes));
    if (screen->audit != NULL) {
        fputc('\n', stream);
        NW_TRY(nw_report_audit_table(stream, screen->audit));
    }
    NW_TRY(print_findings(stream, screen, "Findings", FINDINGS_SHOWN));
    NW_TRY(print_job(stream, screen));
    if (screen->report_path != NULL)
        nw_print(stream, "\n%s%s%s   %s\n", screen->page_path != NULL ? screen->page_path : "",
                 screen->page_path != NULL ? "   " : "", screen->report_path, screen->results_path);
    if (screen->letter_paths != NULL)
        nw_print(stream, "%s\n", screen->letter_paths);
    return NW_OK;
}

nw_rc nw_report_whole(FILE *stream, const struct nw_screen *screen)
{
    NW_TRY(nw_report_screen(stream, screen));
    NW_TRY(print_findings(stream, screen, "---- All findings\n", SIZE_MAX));
    if (screen->audit != NULL) {
        nw_print(stream, "\n---- The quote, claim by claim\n\n");
        NW_TRY(nw_report_audit(stream, screen->audit));
    }
    if (screen->model == NULL || screen->job_problem != NULL)
        return NW_OK;
    nw_print(stream, "\n---- The step, strategy by strategy\n\n");
    NW_TRY(nw_report_predict(stream, screen->model, screen->steps));
    nw_print(stream, "\n---- The decision\n\n");
    return nw_report_decide(stream, screen->model, screen->decision);
}
