/* OpenMetrics 1.0 text that the older Prometheus text format 0.0.4 (node_exporter's textfile
 * collector reads that) takes as well: only gauges, no timestamps; UNIT and EOF are comments there.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "results/record_rows.h"
#include "results/sink.h"

static const struct family {
    const char *name, *unit, *help; /* unit NULL: a plain number */
    size_t offset;                  /* of a double in struct nw_record */
    double per;                     /* of the record's unit in one of the metric's */
} families[] = {
#define OF(member) offsetof(struct nw_record, member)
    {"nodeworth_call_median_seconds", "seconds", "Time of one call of the slowest rank, median",
     OF(time_ns.median), 1e9},
    {"nodeworth_call_low_seconds", "seconds", "Lower end of the median's interval", OF(time_ns.low),
     1e9},
    {"nodeworth_call_high_seconds", "seconds", "Upper end of the median's interval",
     OF(time_ns.high), 1e9},
    {"nodeworth_call_p99_seconds", "seconds", "Time that one call in a hundred exceeds",
     OF(time_ns.p99), 1e9},
    {"nodeworth_skew_seconds", "seconds", "Slowest minus fastest rank, median", OF(skew_ns), 1e9},
    {"nodeworth_busbw_bytes_per_second", "bytes_per_second",
     "Bus bandwidth as nccl-tests counts it", OF(busbw_bytes_per_s), 1},
    {"nodeworth_algbw_bytes_per_second", "bytes_per_second", "Bytes over time",
     OF(algbw_bytes_per_s), 1},
    {"nodeworth_ceiling_bytes_per_second", "bytes_per_second", "What the path can carry, one way",
     OF(ceiling_bytes_per_s), 1},
    {"nodeworth_wire_bytes_per_second", "bytes_per_second",
     "What the busiest host's ports moved by their counters, one way", OF(wire_bytes_per_s), 1},
    {"nodeworth_matrix_product_flop_per_second", "flop_per_second", "Rate of a matrix product",
     OF(flop_per_s), 1},
    {"nodeworth_rdma_messages_per_second", "messages_per_second", "RDMA message rate",
     OF(messages_per_s), 1},
#undef OF
};
enum { FAMILY_COUNT = sizeof families / sizeof families[0] };

struct series { /* of one record */
    char *labels;
    double values[FAMILY_COUNT];
    double wrong, failed; /* NAN: not checked */
};

struct run_series {
    char *labels, *info; /* run="1"; with everything about it */
    double complete, simulated, ranks, start_s;
};

struct finding_series {
    char *labels;
    size_t count;
};

struct nw_metrics {
    struct series *series;
    size_t count, capacity;
    size_t *slots; /* hash of labels: index + 1 */
    struct run_series *runs;
    size_t run_count;
    struct finding_series *findings;
    size_t finding_count;
    int run; /* the present one's number */
};

enum { SLOT_COUNT = 1 << 18 }; /* more than twice as many as there may be */

nw_rc nw_metrics_open(struct nw_metrics **metrics_out)
{
    struct nw_metrics *metrics = calloc(1, sizeof *metrics);

    if (metrics != NULL)
        metrics->slots = calloc(SLOT_COUNT, sizeof *metrics->slots);
    if (metrics == NULL || metrics->slots == NULL) {
        free(metrics);
        return nw_fail(NW_ENOMEM, "no memory for metrics");
    }
    *metrics_out = metrics;
    return NW_OK;
}

void nw_metrics_free(struct nw_metrics *metrics)
{
    if (metrics == NULL)
        return;
    for (size_t i = 0; i < metrics->count; i++)
        free(metrics->series[i].labels);
    for (size_t i = 0; i < metrics->run_count; i++) {
        free(metrics->runs[i].labels);
        free(metrics->runs[i].info);
    }
    for (size_t i = 0; i < metrics->finding_count; i++)
        free(metrics->findings[i].labels);
    free(metrics->series);
    free(metrics->slots);
    free(metrics->runs);
    free(metrics->findings);
    free(metrics);
}

/* ---- labels ------------------------------------------------------------------------------------
 */

static void put_label(struct nw_text *text, const char *name, const char *value)
{
    nw_text_put(text, text->length > 0 ? "," : "");
    nw_text_put(text, name);
    nw_text_put(text, "=\"");
    for (; *value != '\0'; value++)
        switch (*value) {
        case '\\':
        case '"':
            nw_text_raw(text, "\\", 1);
            nw_text_raw(text, value, 1);
            break;
        case '\n':
            nw_text_put(text, "\\n");
            break;
        case '\r': /* some readers end a line there */
            nw_text_put(text, " ");
            break;
        default:
            nw_text_raw(text, value, 1);
        }
    nw_text_put(text, "\"");
}

static void put_number_label(struct nw_text *text, const char *name, long long value)
{
    char digits[32];

    snprintf(digits, sizeof digits, "%lld", value);
    put_label(text, name, digits);
}

/* The text as a string of its own; the caller frees. */
static nw_rc take_text(struct nw_text *text, char **string_out)
{
    nw_text_raw(text, "", 1);
    const nw_rc rc = nw_text_check(text);

    if (rc != NW_OK) {
        nw_text_free(text);
        return rc;
    }
    *string_out = text->data;
    return NW_OK;
}

/* What tells the record from others. */
static nw_rc labels_of(int run, const struct nw_record *record, char **labels_out)
{
    struct nw_text text = {0};

    put_number_label(&text, "run", run);
    for (size_t i = 0; i < nw_record_identity_row_count; i++) {
        const struct nw_line_field *row = &nw_record_identity_rows[i];
        struct nw_text value = {0};

        if (strcmp(row->key, "count") == 0 || !nw_field_is_known(row, record))
            continue;
        if (row->type == NW_FIELD_TEXT) {
            put_label(&text, row->key, (const char *)record + row->offset);
            continue;
        }
        nw_field_write(&value, row, record);
        nw_text_raw(&value, "", 1);
        if (nw_text_check(&value) == NW_OK)
            put_label(&text, row->key, value.data);
        else
            text.failed = true;
        nw_text_free(&value);
    }
    return take_text(&text, labels_out);
}

static size_t slot_of(const struct nw_metrics *metrics, const char *labels)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

    for (const char *at = labels; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    size_t slot = hash % SLOT_COUNT;

    while (metrics->slots[slot] != 0 &&
           strcmp(metrics->series[metrics->slots[slot] - 1].labels, labels) != 0)
        slot = (slot + 1) % SLOT_COUNT;
    return slot;
}

/* ---- what is added -----------------------------------------------------------------------------
 */

/* A zeroed item behind `*items`; NULL: no memory. */
static void *add(void **items, size_t *count, size_t size)
{
    void *grown = realloc(*items, (*count + 1) * size);

    if (grown == NULL)
        return NULL;
    *items = grown;
    return memset((char *)grown + size * (*count)++, 0, size);
}

/* "2026-11-30T16:02:24Z"; NAN: another form. */
static double seconds_of(const char *started)
{
    struct tm when = {0};

    if (sscanf(started, "%4d-%2d-%2dT%2d:%2d:%2d", &when.tm_year, &when.tm_mon, &when.tm_mday,
               &when.tm_hour, &when.tm_min, &when.tm_sec) != 6)
        return NAN;
    when.tm_year -= 1900;
    when.tm_mon -= 1;
    return (double)timegm(&when);
}

nw_rc nw_metrics_run(struct nw_metrics *metrics, int run, const struct nw_context *context)
{
    void *items = metrics->runs;
    struct run_series *added = add(&items, &metrics->run_count, sizeof *metrics->runs);
    struct nw_text text = {0};

    if (added == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the metrics of a run");
    metrics->runs = items;
    metrics->run = run;
    put_number_label(&text, "run", run);
    NW_TRY(take_text(&text, &added->labels));
    text = (struct nw_text){0};
    put_number_label(&text, "run", run);
    put_label(&text, "tool", context->tool);
    put_label(&text, "version", context->tool_version);
    put_label(&text, "backend", context->backend);
    put_label(&text, "library", context->library);
    put_label(&text, "gpu_model", context->gpu_model);
    NW_TRY(take_text(&text, &added->info));
    added->complete = context->complete;
    added->simulated = context->simulated;
    added->ranks = context->rank_count > 0 ? context->rank_count : NAN;
    added->start_s = seconds_of(context->started);
    return NW_OK;
}

void nw_metrics_at_run(struct nw_metrics *metrics, int run)
{
    metrics->run = run;
}

nw_rc nw_metrics_finding(struct nw_metrics *metrics, const struct nw_finding *finding)
{
    void *items = metrics->findings;
    struct nw_text text = {0};
    struct finding_series *added;
    char *labels;

    put_number_label(&text, "run", metrics->run);
    put_label(&text, "severity", nw_severity_name(finding->severity));
    put_label(&text, "code", finding->code);
    NW_TRY(take_text(&text, &labels));
    for (size_t i = 0; i < metrics->finding_count; i++)
        if (strcmp(metrics->findings[i].labels, labels) == 0) {
            metrics->findings[i].count++;
            free(labels);
            return NW_OK;
        }
    added = add(&items, &metrics->finding_count, sizeof *metrics->findings);
    if (added == NULL) {
        free(labels);
        return nw_fail(NW_ENOMEM, "no memory for the metrics of a finding");
    }
    metrics->findings = items;
    *added = (struct finding_series){labels, 1};
    return NW_OK;
}

static nw_rc add_series(struct nw_metrics *metrics, char *labels, struct series **series_out)
{
    const size_t slot = slot_of(metrics, labels);

    if (metrics->slots[slot] != 0) {
        *series_out = &metrics->series[metrics->slots[slot] - 1];
        free(labels);
        return NW_OK;
    }
    if (metrics->count == NW_METRICS_RECORDS_MAX) {
        free(labels);
        return nw_fail(NW_EUSAGE,
                       "more than %d results are too many for one OpenMetrics file; choose some: "
                       "--cases, --collectives, --minbytes …",
                       NW_METRICS_RECORDS_MAX);
    }
    if (metrics->count == metrics->capacity) {
        const size_t capacity = metrics->capacity > 0 ? 2 * metrics->capacity : 64;
        struct series *grown = realloc(metrics->series, capacity * sizeof *grown);

        if (grown == NULL) {
            free(labels);
            return nw_fail(NW_ENOMEM, "no memory for metrics");
        }
        metrics->series = grown;
        metrics->capacity = capacity;
    }
    *series_out = &metrics->series[metrics->count++];
    (*series_out)->labels = labels;
    metrics->slots[slot] = metrics->count;
    return NW_OK;
}

nw_rc nw_metrics_record(struct nw_metrics *metrics, const struct nw_record *record)
{
    struct series *series = NULL;
    char *labels;

    NW_TRY(labels_of(metrics->run, record, &labels));
    NW_TRY(add_series(metrics, labels, &series));
    for (size_t i = 0; i < FAMILY_COUNT; i++)
        series->values[i] =
            *(const double *)((const char *)record + families[i].offset) / families[i].per;
    series->wrong = record->wrong_elements >= 0 ? (double)record->wrong_elements : NAN;
    series->failed = record->rc != NW_OK;
    return NW_OK;
}

/* ---- the file ----------------------------------------------------------------------------------
 */

static void put_head(struct nw_text *text, const char *name, const char *unit, const char *help)
{
    char lines[512];

    snprintf(lines, sizeof lines, "# HELP %s %s.\n# TYPE %s gauge\n", name, help, name);
    nw_text_put(text, lines);
    if (unit == NULL)
        return;
    snprintf(lines, sizeof lines, "# UNIT %s %s\n", name, unit);
    nw_text_put(text, lines);
}

static void put_sample(struct nw_text *text, const char *name, const char *labels, double value)
{
    nw_text_put(text, name);
    nw_text_put(text, "{");
    nw_text_put(text, labels);
    nw_text_put(text, "} ");
    nw_text_real(text, value);
    nw_text_put(text, "\n");
}

/* One family over all series; its head only where there is a sample. `offset`: of the double. */
static void put_family(struct nw_text *text, const struct nw_metrics *metrics,
                       const struct family *family, size_t offset)
{
    bool any = false;

    for (size_t i = 0; i < metrics->count; i++) {
        const struct series *series = &metrics->series[i];
        const double value = *(const double *)((const char *)series + offset);

        if (!isfinite(value))
            continue;
        if (!any)
            put_head(text, family->name, family->unit, family->help);
        any = true;
        put_sample(text, family->name, series->labels, value);
    }
}

static void put_run_family(struct nw_text *text, const struct nw_metrics *metrics, const char *name,
                           const char *unit, const char *help, size_t offset)
{
    bool any = false;

    for (size_t i = 0; i < metrics->run_count; i++) {
        const struct run_series *run = &metrics->runs[i];
        const double value = *(const double *)((const char *)run + offset);

        if (!isfinite(value))
            continue;
        if (!any)
            put_head(text, name, unit, help);
        any = true;
        put_sample(text, name, run->labels, value);
    }
}

static void put_runs(struct nw_text *text, const struct nw_metrics *metrics)
{
    if (metrics->run_count > 0)
        put_head(text, "nodeworth_run_info", NULL, "What made the run, and with what");
    for (size_t i = 0; i < metrics->run_count; i++)
        put_sample(text, "nodeworth_run_info", metrics->runs[i].info, 1);
    put_run_family(text, metrics, "nodeworth_run_start_timestamp_seconds", "seconds",
                   "When the run began, Unix time", offsetof(struct run_series, start_s));
    put_run_family(text, metrics, "nodeworth_run_complete", NULL, "1: the run reached its end",
                   offsetof(struct run_series, complete));
    put_run_family(text, metrics, "nodeworth_run_simulated", NULL,
                   "1: made with a double, no measurement of a machine",
                   offsetof(struct run_series, simulated));
    put_run_family(text, metrics, "nodeworth_run_ranks", NULL, "Ranks of the run",
                   offsetof(struct run_series, ranks));
    if (metrics->finding_count > 0)
        put_head(text, "nodeworth_findings", NULL, "Findings of the run by severity and code");
    for (size_t i = 0; i < metrics->finding_count; i++)
        put_sample(text, "nodeworth_findings", metrics->findings[i].labels,
                   (double)metrics->findings[i].count);
}

nw_rc nw_metrics_write(struct nw_metrics *metrics, FILE *stream)
{
    static const struct family wrong = {.name = "nodeworth_wrong_elements",
                                        .help = "Elements with wrong values"};
    static const struct family failed = {.name = "nodeworth_record_failed",
                                         .help = "1: there is no time because a call failed"};
    struct nw_text text = {0};

    put_runs(&text, metrics);
    for (size_t i = 0; i < FAMILY_COUNT; i++)
        put_family(&text, metrics, &families[i],
                   offsetof(struct series, values) + i * sizeof(double));
    put_family(&text, metrics, &wrong, offsetof(struct series, wrong));
    put_family(&text, metrics, &failed, offsetof(struct series, failed));
    nw_text_put(&text, "# EOF\n");
    nw_rc rc = nw_text_check(&text);

    if (rc == NW_OK && fwrite(text.data, 1, text.length, stream) != text.length)
        rc = nw_fail(NW_EIO, "cannot write the metrics");
    nw_text_free(&text);
    return rc;
}
