#include "results/baseline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rank_test.h"
#include "results/baseline_nodes.h"

/* An outlier by both: how far, in robust standard deviations, and by what share. */
#define OUTLIER_Z     3.5
#define OUTLIER_SHARE 0.10
#define MAD_SIGMA     1.4826 /* of a normal distribution */

void nw_baseline_free(struct nw_baseline *baseline)
{
    for (size_t i = 0; i < baseline->node_count; i++)
        free(baseline->nodes[i]);
    free(baseline->nodes);
    free(baseline->rows);
    nw_findings_free(&baseline->findings);
    nw_context_free(&baseline->context);
    *baseline = (struct nw_baseline){0};
}

/* ---- making ------------------------------------------------------------------------------------
 */

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double median_of(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return nw_quantile_sorted(values, count, 0.5);
}

static nw_rc note_outlier(struct nw_baseline *baseline, const struct nw_node_values *values,
                          const struct nw_node_value *value, double median)
{
    const double speed = exp(median) / value->time_ns;

    return nw_findings_add(
        &baseline->findings, NW_FINDING_WARN, "baseline-outlier", values->nodes[value->node], NULL,
        "%s: %s %s of %llu B is at %.0f %% of the other nodes' speed and does "
        "not count in the baseline",
        values->nodes[value->node], value->entry.record->case_name, value->entry.record->collective,
        (unsigned long long)value->entry.record->bytes, 100 * speed);
}

/* Mean and deviation of the logarithms, without outliers. `scratch`: room for `count`. */
static nw_rc fill_row(struct nw_baseline *baseline, const struct nw_node_values *values,
                      size_t first, size_t count, double *scratch, struct nw_baseline_row *row)
{
    const struct nw_node_value *items = &values->items[first];
    double sum = 0, squares = 0;
    int kept = 0;

    for (size_t i = 0; i < count; i++)
        scratch[i] = log(items[i].time_ns);
    const double median = median_of(scratch, count);

    for (size_t i = 0; i < count; i++)
        scratch[i] = fabs(log(items[i].time_ns) - median);
    row->spread = MAD_SIGMA * median_of(scratch, count);
    row->time_ns = exp(median);
    for (size_t i = 0; i < count; i++) {
        const double distance = log(items[i].time_ns) - median;

        if (fabs(distance) > OUTLIER_SHARE &&
            fabs(distance) > OUTLIER_Z * fmax(row->spread, NW_BASELINE_FLOOR)) {
            NW_TRY(note_outlier(baseline, values, &items[i], median));
            continue;
        }
        sum += distance;
        squares += distance * distance;
        kept++;
    }
    row->node_count = kept;
    if (kept < NW_BASELINE_LEAST)
        return NW_OK;
    const double mean = sum / kept;

    row->mean_ns = exp(median + mean);
    row->deviation =
        fmax(sqrt(fmax(squares - kept * mean * mean, 0) / (kept - 1)), NW_BASELINE_FLOOR);
    return NW_OK;
}

static size_t same_from(const struct nw_node_values *values, size_t at)
{
    size_t same = 1;

    while (at + same < values->count &&
           nw_compare_order(&values->items[at].entry, &values->items[at + same].entry, 0) == 0)
        same++;
    return same;
}

static nw_rc fill_rows(struct nw_baseline *baseline, const struct nw_node_values *values)
{
    double *scratch = malloc((values->node_count + 1) * sizeof *scratch);
    nw_rc rc = NW_OK;

    baseline->rows = calloc(values->count + 1, sizeof *baseline->rows);
    if (scratch == NULL || baseline->rows == NULL) {
        free(scratch);
        return nw_fail(NW_ENOMEM, "no memory for a baseline");
    }
    for (size_t i = 0, same; i < values->count && rc == NW_OK; i += same) {
        struct nw_baseline_row *row = &baseline->rows[baseline->row_count];

        same = same_from(values, i);
        *row = (struct nw_baseline_row){.like = *values->items[i].entry.record};
        row->like.samples_ns = NULL;
        row->like.warnings = (struct nw_findings){0};
        if (same >= NW_BASELINE_LEAST)
            rc = fill_row(baseline, values, i, same, scratch, row);
        if (row->node_count >= NW_BASELINE_LEAST)
            baseline->row_count++;
        else
            baseline->few_count++;
    }
    free(scratch);
    return rc;
}

/* One kind of machine: what differs between its runs is said. */
static nw_rc take_context(struct nw_baseline *baseline, const struct nw_results *results)
{
    struct nw_context *common = &baseline->context;

    for (size_t i = 0; i < results->run_count; i++) {
        const struct nw_context *context = &results->runs[i].context;
        const char *gpu = context->gpu_model[0] != '\0' || context->hosts == NULL
                              ? context->gpu_model
                              : context->hosts[0].gpu_model;

        if (i == 0) {
            memcpy(common->backend, context->backend, sizeof common->backend);
            snprintf(common->gpu_model, sizeof common->gpu_model, "%s", gpu);
            common->simulated = context->simulated;
        }
        if (common->simulated != context->simulated)
            return nw_fail(NW_EUSAGE, "simulated results and real ones make no baseline together; "
                                      "make one of each");
        if (strcmp(common->gpu_model, gpu) != 0)
            return nw_fail(NW_EUSAGE,
                           "the nodes have different GPUs (\"%s\", \"%s\"); a baseline is of one "
                           "kind",
                           common->gpu_model, gpu);
        if (strcmp(common->backend, context->backend) != 0)
            return nw_fail(NW_EUSAGE,
                           "the results are of different backends (\"%s\", \"%s\"); a baseline is "
                           "of one",
                           common->backend, context->backend);
    }
    return NW_OK;
}

static nw_rc make(const struct nw_results *results, struct nw_node_values *values,
                  struct nw_baseline *baseline)
{
    NW_TRY(take_context(baseline, results));
    NW_TRY(fill_rows(baseline, values));
    if (baseline->row_count == 0)
        return nw_fail(NW_ENODEV,
                       "nothing was measured on %d nodes or more (%zu here); a baseline needs "
                       "results of several nodes of one kind, each alone",
                       NW_BASELINE_LEAST, values->node_count);
    baseline->nodes = values->nodes;
    baseline->node_count = values->node_count;
    values->nodes = NULL;
    values->node_count = 0;
    return NW_OK;
}

nw_rc nw_baseline_make(const struct nw_results *results, const struct nw_select *select,
                       struct nw_baseline *baseline_out)
{
    struct nw_baseline baseline = {.row_count = 0};
    struct nw_node_values values;

    nw_context_init(&baseline.context);
    NW_TRY(nw_node_values_of(results, select, &values));
    const nw_rc rc = make(results, &values, &baseline);

    nw_node_values_free(&values);
    if (rc == NW_OK)
        *baseline_out = baseline;
    else
        nw_baseline_free(&baseline);
    return rc;
}

/* ---- holding a node against it ------------------------------------------------------------------
 */

void nw_baseline_report_free(struct nw_baseline_report *report)
{
    for (size_t i = 0; i < report->node_count; i++)
        free(report->nodes[i]);
    free(report->nodes);
    free(report->slower_of_node);
    free(report->rows);
    *report = (struct nw_baseline_report){0};
}

static struct nw_compare_entry entry_of(const struct nw_baseline *baseline, size_t row)
{
    return (struct nw_compare_entry){&baseline->rows[row].like, &baseline->context};
}

/* One more node of the same kind would lie as far up with this chance. */
static double p_of(const struct nw_baseline_row *row, double time_ns)
{
    const double n = row->node_count;
    const double t = (log(time_ns) - log(row->mean_ns)) / (row->deviation * sqrt(1 + 1 / n));

    return nw_student(-t, n - 1);
}

static void note_unknown(struct nw_baseline_report *report, const struct nw_baseline *baseline,
                         const struct nw_compare_entry *entry)
{
    size_t least = SIZE_MAX, nearest = 0;

    if (report->unknown_count++ > 0)
        return;
    for (size_t i = 0; i < baseline->row_count; i++) {
        const struct nw_compare_entry of = entry_of(baseline, i);
        const size_t differences = nw_compare_differences(&of, entry, 0, NULL, 0);

        if (differences < least) {
            least = differences;
            nearest = i;
        }
    }
    const struct nw_compare_entry of = entry_of(baseline, nearest);

    nw_compare_differences(&of, entry, 0, report->unknown_reason, sizeof report->unknown_reason);
}

static void hold_value(struct nw_baseline_report *report, const struct nw_baseline *baseline,
                       size_t row, const struct nw_node_value *value)
{
    const struct nw_baseline_row *of = &baseline->rows[row];

    report->rows[report->row_count++] = (struct nw_held_row){.node = value->node,
                                                             .of = of,
                                                             .time_ns = value->time_ns,
                                                             .speed = of->time_ns / value->time_ns,
                                                             .p = p_of(of, value->time_ns)};
}

/* Both are in the same order. */
static void merge(struct nw_baseline_report *report, const struct nw_baseline *baseline,
                  const struct nw_node_values *values)
{
    size_t row = 0;
    bool met = false;

    for (size_t i = 0; i < values->count;) {
        const struct nw_compare_entry of = row < baseline->row_count
                                               ? entry_of(baseline, row)
                                               : (struct nw_compare_entry){NULL, NULL};
        const int order = of.record == NULL ? 1 : nw_compare_order(&of, &values->items[i].entry, 0);

        if (order < 0) {
            report->missing_count += !met;
            met = false;
            row++;
        } else if (order == 0) {
            hold_value(report, baseline, row, &values->items[i++]);
            met = true;
        } else {
            note_unknown(report, baseline, &values->items[i++].entry);
        }
    }
    if (row < baseline->row_count)
        report->missing_count += baseline->row_count - row - (met ? 1 : 0);
}

static nw_rc judge(struct nw_baseline_report *report)
{
    double *p = malloc((report->row_count + 1) * sizeof *p);

    if (p == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu tests", report->row_count);
    for (size_t i = 0; i < report->row_count; i++)
        p[i] = report->rows[i].p;
    const nw_rc rc = nw_holm(p, report->row_count);

    for (size_t i = 0; rc == NW_OK && i < report->row_count; i++) {
        struct nw_held_row *row = &report->rows[i];

        row->p_joint = p[i];
        row->slower = row->p_joint <= NW_COMPARE_ALPHA && row->speed <= 1 / (1 + report->threshold);
        report->slower_count += row->slower;
        report->slower_of_node[row->node] += row->slower;
    }
    report->compared_count = report->row_count;
    free(p);
    return rc;
}

nw_rc nw_baseline_hold(const struct nw_baseline *baseline, const struct nw_results *results,
                       const struct nw_baseline_plan *plan, struct nw_baseline_report *report_out)
{
    struct nw_baseline_report report = {.threshold = plan->threshold,
                                        .baseline_node_count = (int)baseline->node_count,
                                        .simulated = baseline->context.simulated};
    struct nw_node_values values;

    NW_TRY(nw_node_values_of(results, &plan->select, &values));
    report.rows = calloc(values.count + 1, sizeof *report.rows);
    report.slower_of_node = calloc(values.node_count + 1, sizeof *report.slower_of_node);
    nw_rc rc = report.rows != NULL && report.slower_of_node != NULL
                   ? NW_OK
                   : nw_fail(NW_ENOMEM, "no memory for %zu results", values.count);

    if (rc == NW_OK) {
        merge(&report, baseline, &values);
        rc = judge(&report);
    }
    report.nodes = values.nodes;
    report.node_count = values.node_count;
    values.nodes = NULL;
    values.node_count = 0;
    nw_node_values_free(&values);
    if (rc == NW_OK)
        *report_out = report;
    else
        nw_baseline_report_free(&report);
    return rc;
}
