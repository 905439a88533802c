#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/words.h"
#include "report/bench_text_parts.h"
#include "report/lanes_text.h"

/* ---- cells ------------------------------------------------------------------------------------
 */

const char *nw_bench_cell(char text[32], double value, int width)
{
    const bool tiny = value > 0 && value < 0.001;
    int decimals = tiny ? 1 : value > 0 && value < 0.1 ? 4 : 2;

    if (!isfinite(value))
        return "N/A";
    while (snprintf(text, 32, tiny ? "%.*e" : "%.*f", decimals, value) > width && decimals > 0)
        decimals--;
    return text;
}

const char *nw_bench_wrong_cell(char text[32], const struct nw_record *record)
{
    if (record == NULL || record->wrong_elements < 0)
        return "N/A";
    snprintf(text, 32, "%" PRId64, record->wrong_elements);
    return text;
}

double nw_bench_rel_percent(const struct nw_record *record)
{
    return record != NULL ? 100 * nw_stats_rel_half_interval(&record->time_ns) : NAN;
}

const char *nw_bench_simulated(const struct nw_bench_text *text)
{
    return text->simulated || text->series.simulated ? ", SIMULATED" : "";
}

void nw_bench_hold(struct nw_bench_text *text, const struct nw_record *record)
{
    text->held = *record;
    text->held.samples_ns = NULL;
    text->held.warnings = (struct nw_findings){0};
    text->holds = true;
}

/* ---- tables -----------------------------------------------------------------------------------
 */

static const struct nw_bench_layout *layout_of(const struct nw_record *record)
{
    static const struct nw_bench_layout *const tables[] = {
        nw_bench_coll_layouts, nw_bench_device_layouts, nw_bench_nic_layouts};

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct nw_bench_layout *row = tables[i]; row->case_name != NULL; row++)
            if (strcmp(row->case_name, record->case_name) == 0)
                return row;
    return NULL;
}

static bool same_series(const struct nw_record *a, const struct nw_record *b)
{
    if (strcmp(a->case_name, b->case_name) != 0)
        return false;
    return layout_of(a)->whole_case ||
           (strcmp(a->collective, b->collective) == 0 && strcmp(a->lane, b->lane) == 0 &&
            strcmp(a->features, b->features) == 0 && strcmp(a->dtype, b->dtype) == 0 &&
            strcmp(a->op, b->op) == 0 && a->root == b->root);
}

static void end_series(struct nw_bench_text *text)
{
    if (!text->in_series)
        return;
    layout_of(&text->series)->footer(text);
    nw_results_free(&text->results);
    text->results = (struct nw_results){0};
    text->wrong = 0;
    text->checked = text->busbw_count = 0;
    text->busbw_sum = 0;
    text->holds = text->in_series = false;
}

static void begin_series(struct nw_bench_text *text, const struct nw_record *record)
{
    nw_bench_hold(text, record);
    text->series = text->held;
    text->holds = false;
    text->in_series = true;
    layout_of(record)->header(text);
}

static struct nw_run *run_of(struct nw_results *results)
{
    return results->run_count > 0 ? &results->runs[0] : nw_results_add_run(results);
}

/* Without samples and warnings. Out of memory: a footer line less. */
static void keep_in(struct nw_results *results, const struct nw_record *record)
{
    struct nw_record copy = *record;
    struct nw_run *run = run_of(results);

    copy.samples_ns = NULL;
    copy.warnings = (struct nw_findings){0};
    if (run != NULL)
        (void)nw_run_add_record(run, &copy);
}

/* What the footers need. */
static void keep(struct nw_bench_text *text, const struct nw_record *record)
{
    keep_in(&text->results, record);
    if (strcmp(record->case_name, "coll") == 0)
        keep_in(&text->whole, record);
    if (record->wrong_elements >= 0) {
        text->checked++;
        text->wrong += record->wrong_elements;
    }
    if (isfinite(record->busbw_bytes_per_s) && record->piece_bytes == text->plan->piece_bytes) {
        text->busbw_sum += record->busbw_bytes_per_s;
        text->busbw_count++;
    }
}

nw_rc nw_bench_text_open(FILE *stream, const struct nw_plan *plan, struct nw_bench_text **text_out)
{
    struct nw_bench_text *text = calloc(1, sizeof *text);

    if (text == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the table");
    text->stream = stream;
    text->plan = plan;
    *text_out = text;
    return NW_OK;
}

static void print_plan(FILE *out, const struct nw_plan *plan)
{
    char least[32], most[32], step[32], budget[32];

    fprintf(out, "# minBytes %" PRIu64 " maxBytes %" PRIu64 " (%s to %s) step: ", plan->min_bytes,
            plan->max_bytes, nw_format_bytes(least, plan->min_bytes),
            nw_format_bytes(most, plan->max_bytes));
    if (plan->step_factor > 1)
        fprintf(out, "%d(factor)", plan->step_factor);
    else
        fprintf(out, "%s(bytes)", nw_format_bytes(step, plan->step_bytes));
    fprintf(out, " warmup iters: %d validation: %d ", plan->warmup_iters, plan->check);
    if (plan->iters > 0)
        fprintf(out, "iters: %" PRIu64 "\n", plan->iters);
    else
        nw_print(out, "iters: until the interval is within +/-%g %%, for %s a size\n",
                 100 * plan->stop_rel_ci, nw_format_ns(budget, plan->budget_ns));
}

static void print_finding(FILE *out, const struct nw_finding *finding)
{
    const bool placed = finding->where != NULL && finding->where[0] != '\0';

    fprintf(out, "# %s (%s)%s%s: %s%s%s\n", nw_severity_name(finding->severity), finding->code,
            placed ? " " : "", placed ? finding->where : "", finding->text,
            finding->remedy != NULL ? "; do: " : "",
            finding->remedy != NULL ? finding->remedy : "");
}

/* What the lanes need of it. */
static void keep_context(struct nw_bench_text *text, const struct nw_context *context)
{
    struct nw_run *run = run_of(&text->whole);

    if (run == NULL)
        return;
    json_decref(run->context.lanes);
    run->context.lanes = json_incref(context->lanes);
    run->context.simulated = context->simulated;
}

void nw_bench_text_context(struct nw_bench_text *text, const struct nw_context *context)
{
    FILE *out = text->stream;
    char memory[32];

    nw_print(out, "# nodeworth %s, %s, %s\n", context->tool_version, context->library,
             context->started);
    print_plan(out, text->plan);
    nw_print(out,
             "# time is the slowest rank's: median of the samples, +/- half its 95 %% interval; "
             "skew: slowest minus fastest rank\n");
    if (context->simulated)
        nw_print(out, "# SIMULATED: %s; these are no results of this machine\n",
                 strcmp(context->backend, "local") == 0 ? nw_tr("ranks are threads of one process")
                                                        : nw_tr("the libraries are doubles"));
    for (int host = 0; context->hosts != NULL && host < context->host_count; host++) {
        const struct nw_host *about = &context->hosts[host];

        nw_print(out, "# host %s: %d rank%s, %s, %d cores, %s", about->name, about->rank_count,
                 about->rank_count == 1 ? "" : "s",
                 about->cpu[0] != '\0' ? about->cpu : nw_tr("CPU unknown"), about->core_count,
                 nw_format_bytes(memory, about->memory_bytes));
        if (about->gpu_count > 0)
            fprintf(out, ", %d GPU%s %s", about->gpu_count, about->gpu_count == 1 ? "" : "s",
                    about->gpu_model);
        fprintf(out, "\n");
    }
    for (size_t i = 0; i < context->findings.count; i++)
        print_finding(out, &context->findings.items[i]);
    fflush(out);
    text->simulated = context->simulated;
    keep_context(text, context);
}

void nw_bench_text_record(struct nw_bench_text *text, const struct nw_record *record)
{
    const struct nw_bench_layout *layout = layout_of(record);

    if (layout == NULL)
        return;
    if (!text->in_series || !same_series(&text->series, record)) {
        end_series(text);
        begin_series(text, record);
    }
    keep(text, record);
    layout->record(text, record);
    for (size_t i = 0; i < record->warnings.count; i++)
        if (record->warnings.items[i].severity == NW_FINDING_FAIL)
            print_finding(text->stream, &record->warnings.items[i]);
    fflush(text->stream);
}

void nw_bench_text_finding(struct nw_bench_text *text, const struct nw_finding *finding)
{
    const char *collective = text->series.collective;

    /* One about something else than the table at hand comes after its footer. */
    if (text->in_series && !layout_of(&text->series)->rows_at_once &&
        (finding->where == NULL || strncmp(finding->where, collective, strlen(collective)) != 0))
        end_series(text);
    print_finding(text->stream, finding);
    fflush(text->stream);
    if (strcmp(finding->code, "lane-broken") == 0 && run_of(&text->whole) != NULL)
        (void)nw_findings_copy(
            &run_of(&text->whole)->context.findings,
            &(const struct nw_findings){.items = (struct nw_finding *)finding, .count = 1});
}

/* As comments, so that no parser takes them for rows. */
static void print_commented(FILE *stream, char *block)
{
    char *rest = NULL;

    fprintf(stream, "#\n");
    for (char *line = strtok_r(block, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        fprintf(stream, "# %s\n", line);
    fprintf(stream, "#\n");
}

static nw_rc print_lanes(const struct nw_bench_text *text)
{
    struct nw_lanes lanes;
    char *block = NULL;
    size_t size = 0;
    FILE *memory;
    nw_rc rc;

    if (text->whole.run_count == 0)
        return NW_OK;
    NW_TRY(nw_lanes_compare(&text->whole.runs[0], &lanes));
    memory = open_memstream(&block, &size);
    rc = memory != NULL ? nw_report_lanes(memory, &lanes)
                        : nw_fail(NW_ENOMEM, "no memory for the table of lanes");
    if (memory != NULL && fclose(memory) != 0 && rc == NW_OK)
        rc = nw_fail(NW_ENOMEM, "no memory for the table of lanes");
    if (rc == NW_OK && size > 0)
        print_commented(text->stream, block);
    free(block);
    nw_lanes_free(&lanes);
    return rc;
}

nw_rc nw_bench_text_close(struct nw_bench_text *text)
{
    nw_rc rc;

    if (text == NULL)
        return NW_OK;
    end_series(text);
    rc = print_lanes(text);
    if (fflush(text->stream) != 0 || ferror(text->stream))
        rc = nw_fail(NW_EIO, "cannot write the table: %s", strerror(errno));
    nw_results_free(&text->results);
    nw_results_free(&text->whole);
    free(text);
    return rc;
}
