#include "report/bench_text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "results/results.h"

struct nw_bench_text {
    FILE *stream;
    const struct nw_plan *plan;
    bool in_series;          /* a table has begun */
    struct nw_record series; /* identity of its first record */
    struct nw_record held; /* waits for its other half: out of place, a pair's latency, one host */
    bool holds;
    struct nw_results results; /* this table's records, without samples */
    int64_t wrong;
    uint64_t checked;
    double busbw_sum;
    uint64_t busbw_count;
};

/* ---- cells ------------------------------------------------------------------------------------
 */

/* At most `width` characters: 6e-06, 0.0083, 12.34, 1806.7, 10094. */
static const char *cell(char text[32], double value, int width)
{
    const bool tiny = value > 0 && value < 0.001;
    int decimals = tiny ? 1 : value > 0 && value < 0.1 ? 4 : 2;

    if (!isfinite(value))
        return "N/A";
    while (snprintf(text, 32, tiny ? "%.*e" : "%.*f", decimals, value) > width && decimals > 0)
        decimals--;
    return text;
}

static const char *wrong_cell(char text[32], const struct nw_record *record)
{
    if (record == NULL || record->wrong_elements < 0)
        return "N/A";
    snprintf(text, 32, "%" PRId64, record->wrong_elements);
    return text;
}

static double rel_percent(const struct nw_record *record)
{
    return record != NULL ? 100 * nw_stats_rel_half_interval(&record->time_ns) : NAN;
}

static const char *rank_cell(char text[32], const struct nw_record *record)
{
    if (record == NULL || record->slowest_rank < 0)
        return "N/A";
    snprintf(text, 32, "%d", record->slowest_rank);
    return text;
}

/* ---- case coll: nccl-tests' table -------------------------------------------------------------
 */

static void coll_header(const struct nw_bench_text *text)
{
    FILE *out = text->stream;

    fprintf(out, "#\n# %s\n#\n", text->series.collective);
    fprintf(out, "# %73s%35s%31s%21s\n", "out-of-place", "in-place", "out-of-place", "in-place");
    fprintf(out,
            "#%11s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s   %6s  %8s  %5s   "
            "%6s  %8s  %5s\n",
            "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time",
            "algbw", "busbw", "#wrong", "+/-", "skew", "slow", "+/-", "skew", "slow");
    fprintf(out,
            "#%11s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s   %6s  %8s  %5s   "
            "%6s  %8s  %5s\n",
            "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)",
            "(GB/s)", "", "(%)", "(us)", "rank", "(%)", "(us)", "rank");
}

static void print_block(FILE *out, const struct nw_record *record)
{
    char time[32], algbw[32], busbw[32], wrong[32];

    fprintf(out, "  %7s  %6s  %6s  %5s",
            cell(time, record != NULL ? record->time_ns.median / 1e3 : NAN, 7),
            cell(algbw, record != NULL ? record->algbw_bytes_per_s / 1e9 : NAN, 6),
            cell(busbw, record != NULL ? record->busbw_bytes_per_s / 1e9 : NAN, 6),
            wrong_cell(wrong, record));
}

static void print_spread(FILE *out, const struct nw_record *record)
{
    char interval[32], skew[32], rank[32];

    fprintf(out, "   %6s  %8s  %5s", cell(interval, rel_percent(record), 5),
            cell(skew, record != NULL ? record->skew_ns / 1e3 : NAN, 8), rank_cell(rank, record));
}

/* One line; either half may be missing. */
static void coll_row(const struct nw_bench_text *text, const struct nw_record *out_of_place,
                     const struct nw_record *in_place)
{
    const struct nw_record *any = out_of_place != NULL ? out_of_place : in_place;
    FILE *out = text->stream;

    fprintf(out, "%12" PRIu64 "  %12" PRIu64 "  %8s  %6s  %6d", any->bytes, any->count, any->dtype,
            any->op, any->root);
    print_block(out, out_of_place);
    print_block(out, in_place);
    print_spread(out, out_of_place);
    print_spread(out, in_place);
    fprintf(out, "\n");
}

static void flush_held_coll(struct nw_bench_text *text)
{
    if (text->holds)
        coll_row(text, &text->held, NULL);
    text->holds = false;
}

static void hold(struct nw_bench_text *text, const struct nw_record *record)
{
    text->held = *record;
    text->held.samples_ns = NULL;
    text->held.warnings = (struct nw_findings){0};
    text->holds = true;
}

/* The remedy for a falling curve: a comment, so that no parser takes it for another row. */
static void coll_pieces(struct nw_bench_text *text, const struct nw_record *record)
{
    char bytes[32], piece[32], time[32], algbw[32], busbw[32];

    fprintf(text->stream,
            "#   %s %s in pieces of %s: %s us, algbw %s GB/s, busbw %s GB/s, +/-%.1f %%\n",
            nw_format_bytes(bytes, record->bytes), record->in_place ? "in place" : "out of place",
            nw_format_bytes(piece, record->piece_bytes),
            cell(time, record->time_ns.median / 1e3, 7),
            cell(algbw, record->algbw_bytes_per_s / 1e9, 6),
            cell(busbw, record->busbw_bytes_per_s / 1e9, 6), rel_percent(record));
}

static void coll_record(struct nw_bench_text *text, const struct nw_record *record)
{
    if (record->piece_bytes > 0 && text->plan->piece_bytes == 0) {
        flush_held_coll(text);
        coll_pieces(text, record);
        return;
    }
    if (!record->in_place) {
        const struct nw_coll *coll = nw_coll_find(record->collective);

        flush_held_coll(text);
        if (text->plan->places & NW_PLACE_IN && coll != NULL && !(coll->flags & NW_COLL_NO_INPLACE))
            hold(text, record);
        else
            coll_row(text, record, NULL);
        return;
    }
    if (text->holds && text->held.bytes == record->bytes) {
        coll_row(text, &text->held, record);
        text->holds = false;
    } else {
        flush_held_coll(text);
        coll_row(text, NULL, record);
    }
}

static void plateau_line(const struct nw_bench_text *text, int place)
{
    struct nw_plateau plateau;
    char rate[32], low[32], high[32], from[32], to[32];

    if (nw_plateau_of(&text->results.runs[0], "coll", text->series.collective, 0, 0, place,
                      &plateau) != NW_OK ||
        !isfinite(plateau.busbw_bytes_per_s))
        return;
    fprintf(text->stream, "# Plateau %s: busbw %s GB/s [%s, %s] from %s to %s (%s %s)\n",
            place == 1 ? "in place" : "out of place",
            nw_format_gb_per_s(rate, plateau.busbw_bytes_per_s),
            nw_format_gb_per_s(low, plateau.low), nw_format_gb_per_s(high, plateau.high),
            nw_format_bytes(from, plateau.from_bytes), nw_format_bytes(to, plateau.to_bytes),
            text->series.dtype, text->series.op);
}

static void coll_footer(struct nw_bench_text *text)
{
    flush_held_coll(text);
    fprintf(text->stream, "#\n");
    if (text->results.run_count > 0) {
        plateau_line(text, 0);
        plateau_line(text, 1);
    }
    /* nccl-tests' last lines, for what parses them */
    if (text->checked > 0)
        fprintf(text->stream, "# Out of bounds values : %" PRId64 " %s\n", text->wrong,
                text->wrong > 0 ? "FAILED" : "OK");
    else
        fprintf(text->stream, "# Out of bounds values : N/A\n");
    if (text->busbw_count > 0)
        fprintf(text->stream, "# Avg bus bandwidth    : %g \n#\n",
                text->busbw_sum / (double)text->busbw_count / 1e9);
    else
        fprintf(text->stream, "# Avg bus bandwidth    : N/A\n#\n");
}

/* ---- case pairs -------------------------------------------------------------------------------
 */

static void pairs_header(const struct nw_bench_text *text)
{
    fprintf(
        text->stream,
        "#\n# pairs: both ways at once, one way is shown; disjoint pairs at the same time\n#\n");
    fprintf(text->stream, "#    %5s %5s  %-20s %-20s  %10s  %9s  %6s  %8s %6s\n", "rank", "rank",
            "host", "host", "size (B)", "time (us)", "+/-(%)", "GB/s", "#wrong");
}

static void pairs_record(struct nw_bench_text *text, const struct nw_record *record)
{
    char time[32], interval[32], rate[32], wrong[32];

    fprintf(text->stream, "pair %5d %5d  %-20s %-20s  %10" PRIu64 "  %9s  %6s  %8s %6s\n",
            record->peer_a, record->peer_b, record->host_a, record->host_b, record->bytes,
            cell(time, record->time_ns.median / 1e3, 9), cell(interval, rel_percent(record), 6),
            cell(rate, record->algbw_bytes_per_s / 1e9, 8), wrong_cell(wrong, record));
}

static void pairs_footer(struct nw_bench_text *text)
{
    fprintf(text->stream, "#\n");
}

/* ---- case scaling -----------------------------------------------------------------------------
 */

static void scaling_header(const struct nw_bench_text *text)
{
    fprintf(text->stream, "#\n# scaling of %s: the slowest host alone, then all hosts\n#\n",
            text->series.collective);
    fprintf(text->stream, "#       %12s  %-20s  %5s %9s %8s  %5s %5s %9s %8s  %10s\n", "size (B)",
            "slowest host", "ranks", "time (us)", "busbw", "hosts", "ranks", "time (us)", "busbw",
            "efficiency");
}

static void scaling_row(const struct nw_bench_text *text, const struct nw_record *one,
                        const struct nw_record *all)
{
    const double efficiency = all->busbw_bytes_per_s / one->busbw_bytes_per_s;
    char one_time[32], one_rate[32], all_time[32], all_rate[32], percent[32];

    fprintf(text->stream, "scaling %12" PRIu64 "  %-20s  %5d %9s %8s  %5d %5d %9s %8s  %8s %%\n",
            all->bytes, one->host_a, one->rank_count, cell(one_time, one->time_ns.median / 1e3, 9),
            cell(one_rate, one->busbw_bytes_per_s / 1e9, 8), all->host_count, all->rank_count,
            cell(all_time, all->time_ns.median / 1e3, 9),
            cell(all_rate, all->busbw_bytes_per_s / 1e9, 8), cell(percent, 100 * efficiency, 8));
}

static void scaling_record(struct nw_bench_text *text, const struct nw_record *record)
{
    if (record->host_count == 1) {
        hold(text, record);
    } else if (text->holds) {
        scaling_row(text, &text->held, record);
        text->holds = false;
    }
}

/* ---- tables -----------------------------------------------------------------------------------
 */

static const struct layout {
    const char *case_name;
    void (*header)(const struct nw_bench_text *text);
    void (*record)(struct nw_bench_text *text, const struct nw_record *record);
    void (*footer)(struct nw_bench_text *text);
} layouts[] = {
    {"coll", coll_header, coll_record, coll_footer},
    {"pairs", pairs_header, pairs_record, pairs_footer},
    {"scaling", scaling_header, scaling_record, pairs_footer},
};

static const struct layout *layout_of(const struct nw_record *record)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (strcmp(layouts[i].case_name, record->case_name) == 0)
            return &layouts[i];
    return NULL;
}

static bool same_series(const struct nw_record *a, const struct nw_record *b)
{
    return strcmp(a->case_name, b->case_name) == 0 && strcmp(a->collective, b->collective) == 0 &&
           strcmp(a->dtype, b->dtype) == 0 && strcmp(a->op, b->op) == 0 && a->root == b->root;
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
    hold(text, record);
    text->series = text->held;
    text->holds = false;
    text->in_series = true;
    layout_of(record)->header(text);
}

/* Keep what the footer needs: the record without its samples. */
static void keep(struct nw_bench_text *text, const struct nw_record *record)
{
    struct nw_record copy = *record;
    struct nw_run *run =
        text->results.run_count > 0 ? &text->results.runs[0] : nw_results_add_run(&text->results);

    copy.samples_ns = NULL;
    copy.warnings = (struct nw_findings){0};
    if (run != NULL)
        (void)nw_run_add_record(run, &copy); /* out of memory: a footer line less */
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
        fprintf(out, "iters: until the interval is within +/-%g %%, for %s a size\n",
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

void nw_bench_text_context(struct nw_bench_text *text, const struct nw_context *context)
{
    FILE *out = text->stream;
    char memory[32];

    fprintf(out, "# nodeworth %s, %s, %s\n", context->tool_version, context->library,
            context->started);
    print_plan(out, text->plan);
    fprintf(out,
            "# time is the slowest rank's: median of the samples, +/- half its 95 %% interval; "
            "skew: slowest minus fastest rank\n");
    if (context->simulated)
        fprintf(out, "# SIMULATED: %s; these are no results of this machine\n",
                strcmp(context->backend, "local") == 0 ? "ranks are threads of one process"
                                                       : "the libraries are doubles");
    for (int host = 0; context->hosts != NULL && host < context->host_count; host++) {
        const struct nw_host *about = &context->hosts[host];

        fprintf(out, "# host %s: %d rank%s, %s, %d cores, %s", about->name, about->rank_count,
                about->rank_count == 1 ? "" : "s",
                about->cpu[0] != '\0' ? about->cpu : "CPU unknown", about->core_count,
                nw_format_bytes(memory, about->memory_bytes));
        if (about->gpu_count > 0)
            fprintf(out, ", %d GPU%s %s", about->gpu_count, about->gpu_count == 1 ? "" : "s",
                    about->gpu_model);
        fprintf(out, "\n");
    }
    for (size_t i = 0; i < context->findings.count; i++)
        print_finding(out, &context->findings.items[i]);
    fflush(out);
}

void nw_bench_text_record(struct nw_bench_text *text, const struct nw_record *record)
{
    const struct layout *layout = layout_of(record);

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
    if (text->in_series &&
        (finding->where == NULL || strncmp(finding->where, collective, strlen(collective)) != 0))
        end_series(text);
    print_finding(text->stream, finding);
    fflush(text->stream);
}

nw_rc nw_bench_text_close(struct nw_bench_text *text)
{
    nw_rc rc = NW_OK;

    if (text == NULL)
        return NW_OK;
    end_series(text);
    if (fflush(text->stream) != 0 || ferror(text->stream))
        rc = nw_fail(NW_EIO, "cannot write the table: %s", strerror(errno));
    nw_results_free(&text->results);
    free(text);
    return rc;
}
