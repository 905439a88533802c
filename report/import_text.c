#include "report/import_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "report/import_private.h"

/* --- the table --- */

static const char *collective_of(const struct nw_run *run)
{
    return run->record_count > 0 ? run->records[0].collective : "–";
}

static bool share_line(const struct nw_run *a, const struct nw_run *b)
{
    return a->context.rank_count == b->context.rank_count &&
           a->context.host_count == b->context.host_count &&
           strcmp(collective_of(a), collective_of(b)) == 0 &&
           strcmp(a->context.source, b->context.source) == 0 &&
           strcmp(a->context.gpu_model, b->context.gpu_model) == 0;
}

/* The runs of one line, borrowed; never none. */
struct line_runs {
    const struct nw_run **items;
    size_t count;
};

struct sizes {
    uint64_t least, most;
    double latency_ns; /* at `least` */
    int64_t wrong;     /* -1: never checked */
};

static void add_sizes(const struct nw_record *record, struct sizes *sizes)
{
    if (record->wrong_elements >= 0)
        sizes->wrong = (sizes->wrong > 0 ? sizes->wrong : 0) + record->wrong_elements;
    if (record->bytes == 0 || !isfinite(record->time_ns.median))
        return;
    if (record->bytes < sizes->least || (record->bytes == sizes->least && !record->in_place)) {
        sizes->least = record->bytes;
        sizes->latency_ns = record->time_ns.median;
    }
    if (record->bytes > sizes->most)
        sizes->most = record->bytes;
}

static struct sizes sizes_of(const struct line_runs *runs)
{
    struct sizes sizes = {.least = UINT64_MAX, .latency_ns = NAN, .wrong = -1};

    for (size_t i = 0; i < runs->count; i++)
        for (size_t k = 0; k < runs->items[i]->record_count; k++)
            add_sizes(&runs->items[i]->records[k], &sizes);
    return sizes;
}

static void put_ranks(char *text, size_t size, const struct nw_context *context)
{
    if (context->rank_count == 0)
        snprintf(text, size, "?");
    else if (context->host_count == 0)
        snprintf(text, size, "%d", context->rank_count);
    else
        snprintf(text, size, "%d on %d", context->rank_count, context->host_count);
}

static void put_plateau(char *text, size_t size, const struct line_runs *runs)
{
    const struct nw_run *first = runs->items[0];
    struct nw_plateau plateau;
    char rate[32], peak[32], at[32];

    snprintf(text, size, "–");
    if (first->record_count == 0 ||
        nw_plateau_of_runs(runs->items, runs->count, "coll", collective_of(first), 0, 0, -1,
                           &plateau) != NW_OK) {
        nw_clear_error();
        return;
    }
    nw_format_gb_per_s(rate, plateau.busbw_bytes_per_s);
    if (plateau.falls)
        nw_print_to(text, size, "%s, falls from %s at %s", rate,
                    nw_format_gb_per_s(peak, plateau.peak_bytes_per_s),
                    nw_format_bytes(at, plateau.peak_bytes));
    else
        nw_print_to(text, size, "%s from %s", rate, nw_format_bytes(at, plateau.from_bytes));
}

static void add_line(struct nw_table *table, const struct line_runs *line)
{
    const struct nw_run *run = line->items[0];
    const struct sizes sizes = sizes_of(line);
    char runs[32], ranks[32], range[80] = "no result", plateau[96], wrong[32];
    char latency[80] = "–", a[32], b[32];

    snprintf(runs, sizeof runs, "%zu", line->count);
    put_ranks(ranks, sizeof ranks, &run->context);
    put_plateau(plateau, sizeof plateau, line);
    if (sizes.most > 0) {
        nw_print_to(range, sizeof range, "%s … %s", nw_format_bytes(a, sizes.least),
                    nw_format_bytes(b, sizes.most));
        nw_format_ns(latency, sizes.latency_ns);
    } else if (run->record_count > 0 && strcmp(run->records[0].case_name, "pairwise") == 0)
        nw_print_to(range, sizeof range, "averages of %zu", run->record_count);
    snprintf(wrong, sizeof wrong, "%lld", (long long)sizes.wrong);
    nw_table_row(table, (const char *[]){collective_of(run), ranks, runs, range, latency, plateau,
                                         sizes.wrong < 0 ? nw_tr("not checked") : wrong});
}

/* Lines of the log that run `first` is from; `line` has room for all runs. */
static void add_lines(struct nw_table *table, const struct nw_results *results, size_t first,
                      bool *done, struct line_runs *line)
{
    const char *source = results->runs[first].context.source;

    for (; first < results->run_count; first++) {
        if (done[first] || strcmp(results->runs[first].context.source, source) != 0 ||
            nw_report_is_other(&results->runs[first]))
            continue;
        line->count = 0;
        for (size_t i = first; i < results->run_count; i++) {
            if (done[i] || !share_line(&results->runs[first], &results->runs[i]))
                continue;
            done[i] = true;
            line->items[line->count++] = &results->runs[i];
        }
        add_line(table, line);
    }
}

/* "log.txt: nccl-tests 2.17.6, NCCL 2.20.3 over AWS Libfabric, NVIDIA H100 80GB HBM3" */
static void print_heading(FILE *stream, const struct nw_results *results, size_t first)
{
    const struct nw_context *context = &results->runs[first].context;
    const char *gpu = context->gpu_model;

    for (size_t i = first; i < results->run_count && gpu[0] == '\0'; i++)
        if (strcmp(results->runs[i].context.source, context->source) == 0)
            gpu = results->runs[i].context.gpu_model;
    nw_print(stream, "%s%s: %s%s%s", first > 0 ? "\n" : "", context->source, context->tool,
             context->tool_version[0] != '\0' ? " " : "", context->tool_version);
    if (context->library[0] != '\0')
        nw_print(stream, ", %s", context->library);
    if (context->network[0] != '\0')
        nw_print(stream, " over %s", context->network);
    if (gpu[0] != '\0')
        nw_print(stream, ", %s", gpu);
    else if (strcmp(context->backend, "nccl") == 0)
        nw_print(stream, ", GPU not named");
    fprintf(stream, "\n");
}

/* Has the log of run `first` runs from it on that are, or are not, collectives? */
static bool has_kind(const struct nw_results *results, size_t first, bool other)
{
    for (size_t i = first; i < results->run_count; i++)
        if (strcmp(results->runs[i].context.source, results->runs[first].context.source) == 0 &&
            nw_report_is_other(&results->runs[i]) == other)
            return true;
    return false;
}

static nw_rc print_log(FILE *stream, const struct nw_results *results, size_t first, bool *done,
                       struct line_runs *line)
{
    static const struct nw_column columns[] = {
        {"collective", NW_LEFT},    {"ranks on hosts", NW_LEFT}, {"runs", NW_RIGHT},
        {"sizes", NW_LEFT},         {"at smallest", NW_RIGHT},   {"plateau busbw GB/s", NW_LEFT},
        {"wrong values", NW_RIGHT},
    };
    struct nw_table *table;

    print_heading(stream, results, first);
    if (nw_report_is_iperf(&results->runs[first]))
        return nw_report_import_iperf(stream, results, first, done);
    if (has_kind(results, first, true))
        NW_TRY(nw_report_import_other(stream, results, first, done));
    if (!has_kind(results, first, false))
        return NW_OK;
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    add_lines(table, results, first, done, line);
    return nw_table_print(table, stream);
}

nw_rc nw_report_import(FILE *stream, const struct nw_results *results)
{
    bool *done = calloc(results->run_count + 1, sizeof *done);
    struct line_runs line = {.items = calloc(results->run_count + 1, sizeof *line.items)};
    nw_rc rc = NW_OK;

    if (done == NULL || line.items == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for a table of %zu runs", results->run_count);
    for (size_t first = 0; first < results->run_count && rc == NW_OK; first++)
        if (!done[first])
            rc = print_log(stream, results, first, done, &line);
    free(done);
    free(line.items);
    return rc;
}

/* --- findings --- */

struct line {
    const struct nw_finding *finding;
    const char *source;
    size_t order, count;
};

static int by_source_and_code(const void *a, const void *b)
{
    const struct line *left = a, *right = b;
    int order = strcmp(left->source, right->source);

    if (order == 0)
        order = strcmp(left->finding->code, right->finding->code);
    if (order == 0)
        order = (left->order > right->order) - (left->order < right->order);
    return order;
}

static int by_severity(const void *a, const void *b)
{
    const struct line *left = a, *right = b;

    if (left->finding->severity != right->finding->severity)
        return left->finding->severity > right->finding->severity ? -1 : 1;
    return (left->order > right->order) - (left->order < right->order);
}

/* Equal codes of one log stand together: the first one keeps their number. */
static size_t fold(struct line *lines, size_t count)
{
    size_t kept = 0;

    qsort(lines, count, sizeof *lines, by_source_and_code);
    for (size_t i = 0; i < count; i++) {
        struct line *last = kept > 0 ? &lines[kept - 1] : NULL;

        if (last != NULL && strcmp(last->source, lines[i].source) == 0 &&
            strcmp(last->finding->code, lines[i].finding->code) == 0)
            last->count++;
        else
            lines[kept++] = lines[i];
    }
    qsort(lines, kept, sizeof *lines, by_severity);
    return kept;
}

nw_rc nw_report_import_findings(FILE *stream, const struct nw_results *results)
{
    size_t count = 0;

    for (size_t i = 0; i < results->run_count; i++)
        count += results->runs[i].context.findings.count;
    struct line *lines = malloc((count + 1) * sizeof *lines);

    if (lines == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu findings", count);
    count = 0;
    for (size_t i = 0; i < results->run_count; i++) {
        const struct nw_context *context = &results->runs[i].context;

        for (size_t k = 0; k < context->findings.count; k++, count++)
            lines[count] = (struct line){&context->findings.items[k], context->source, count, 1};
    }
    count = fold(lines, count);
    for (size_t i = 0; i < count; i++) {
        const struct nw_finding *finding = lines[i].finding;

        nw_print(stream, "%s: %s: %s", finding->where, nw_severity_name(finding->severity),
                 finding->text);
        if (lines[i].count > 1)
            nw_print(stream, " (and so in %zu more)", lines[i].count - 1);
        fprintf(stream, "\n");
        if (finding->remedy != NULL && finding->severity != NW_FINDING_INFO)
            nw_print(stream, "    → %s\n", finding->remedy);
    }
    free(lines);
    return NW_OK;
}
