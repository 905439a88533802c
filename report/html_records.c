/* Every record as a row; then runs, versions, settings, files. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/html_parts.h"

#define ROWS_MAX     600 /* the page stays small; all are in results.jsonl */
#define RUNS_MAX     20
#define SETTINGS_MAX 60

static const struct nw_html_column columns[] = {
    {"Case", NW_LEFT},         {"Collective", NW_LEFT},
    {"Way", NW_LEFT},          {"Ranks, hosts", NW_RIGHT},
    {"Between", NW_LEFT},      {"Size", NW_RIGHT},
    {"Median time", NW_RIGHT}, {"Bus bandwidth, GB/s", NW_RIGHT},
    {"Samples", NW_RIGHT},     {"Wrong elements", NW_RIGHT},
    {"Note", NW_LEFT},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void tell_between(const struct nw_record *record, char text[200])
{
    text[0] = '\0';
    if (record->nic_a[0] != '\0')
        snprintf(text, 200, "%s → %s", record->nic_a, record->nic_b);
    else if (record->host_a[0] != '\0' && record->peer_b >= 0)
        snprintf(text, 200, "%d %s → %d %s", record->peer_a, record->host_a, record->peer_b,
                 record->host_b);
    else if (record->host_a[0] != '\0')
        snprintf(text, 200, "%s → %s", record->host_a, record->host_b);
    else if (record->peer_b >= 0)
        snprintf(text, 200, "%d → %d", record->peer_a, record->peer_b);
    else if (record->peer_a >= 0)
        snprintf(text, 200, "%d", record->peer_a);
}

static void put_record(const struct nw_html *html, const struct nw_record *record)
{
    char way[96], ranks[48], between[200], size[32] = "", time[32] = "", rate[32] = "";
    char samples[32], wrong[32] = "", note[160];
    const double bytes_per_s =
        isfinite(record->busbw_bytes_per_s) ? record->busbw_bytes_per_s : record->algbw_bytes_per_s;

    snprintf(way, sizeof way, "%s%s%s%s", record->lane, record->features[0] != '\0' ? "+" : "",
             record->features, record->in_place ? tr(html, ", in place") : "");
    snprintf(ranks, sizeof ranks, record->host_count > 0 ? "%d, %d" : "%d", record->rank_count,
             record->host_count);
    tell_between(record, between);
    if (record->bytes > 0)
        nw_format_bytes(size, record->bytes);
    if (record->time_ns.count > 0)
        nw_format_ns(time, record->time_ns.median);
    if (isfinite(bytes_per_s))
        nw_format_gb_per_s(rate, bytes_per_s);
    snprintf(samples, sizeof samples, "%zu", record->time_ns.count);
    if (record->wrong_elements >= 0)
        snprintf(wrong, sizeof wrong, "%lld", (long long)record->wrong_elements);
    snprintf(note, sizeof note, "%s%s", record->rc != NW_OK ? nw_rc_text(record->rc) : "",
             nw_html_mark(html, record->simulated));
    nw_html_row(html, columns, COLUMNS,
                (const char *[]){record->case_name, record->collective, way, ranks, between, size,
                                 time, rate, samples, wrong, note});
}

void nw_html_records(struct nw_html *html)
{
    const struct nw_results *results = html->page->results;
    const size_t count = nw_results_record_count(results) + html->page->left_out_count;
    size_t rows = 0;

    if (count == 0)
        return;
    nw_html_begin(html, "records", tr(html, "Every record"));
    nw_html_fold(html, tr(html, "Show the records"));
    nw_html_table(html, tr(html, "Every record"), columns, COLUMNS);
    for (size_t i = 0; i < results->run_count; i++)
        for (size_t k = 0; k < results->runs[i].record_count && rows < ROWS_MAX; k++, rows++)
            put_record(html, &results->runs[i].records[k]);
    nw_html_table_end(html);
    if (count > rows)
        nw_html_say(html, "note",
                    tr(html, "%zu of %zu records are shown; all are in the results file."), rows,
                    count);
    nw_html_fold_end(html);
    nw_html_end(html);
}

/* ---- how it was measured -----------------------------------------------------------------------
 */

static void put_fact(const struct nw_html *html, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    fputs("<dt>", html->stream);
    nw_html_text(html->stream, name);
    fputs("</dt><dd>", html->stream);
    nw_html_text(html->stream, value);
    fputs("</dd>\n", html->stream);
}

static void put_settings(const struct nw_html *html, const char *title, const json_t *object)
{
    const char *key;
    json_t *value;
    size_t count = 0;

    if (json_object_size(object) == 0)
        return;
    nw_html_fold(html, title);
    fputs("<dl class=\"facts\">", html->stream);
    json_object_foreach((json_t *)object, key, value)
    {
        char text[400] = "";

        if (++count > SETTINGS_MAX)
            break;
        if (json_is_string(value))
            snprintf(text, sizeof text, "%s", json_string_value(value));
        else if (json_is_integer(value))
            snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
        else if (json_is_number(value))
            snprintf(text, sizeof text, "%.6g", json_number_value(value));
        else if (json_is_boolean(value))
            snprintf(text, sizeof text, "%s", json_is_true(value) ? "true" : "false");
        put_fact(html, key, text);
    }
    fputs("</dl>\n", html->stream);
    nw_html_fold_end(html);
}

static void put_hosts(const struct nw_html *html, const struct nw_context *context)
{
    static const struct nw_html_column host_columns[] = {
        {"Host", NW_LEFT},    {"Ranks", NW_RIGHT}, {"CPU", NW_LEFT},    {"Cores", NW_RIGHT},
        {"Memory", NW_RIGHT}, {"GPUs", NW_LEFT},   {"Kernel", NW_LEFT},
    };

    if (context->hosts == NULL || context->host_count <= 0)
        return;
    nw_html_table(html, tr(html, "Hosts"), host_columns, 7);
    for (int i = 0; i < context->host_count && i < 64; i++) {
        const struct nw_host *host = &context->hosts[i];
        char ranks[16], cores[16] = "", memory[32] = "", gpus[160] = "";

        snprintf(ranks, sizeof ranks, "%d", host->rank_count);
        if (host->core_count > 0)
            snprintf(cores, sizeof cores, "%d", host->core_count);
        if (host->memory_bytes > 0)
            nw_format_bytes(memory, host->memory_bytes);
        if (host->gpu_count >= 0)
            snprintf(gpus, sizeof gpus, "%d%s%s", host->gpu_count,
                     host->gpu_model[0] != '\0' ? " × " : "", host->gpu_model);
        nw_html_row(
            html, host_columns, 7,
            (const char *[]){host->name, ranks, host->cpu, cores, memory, gpus, host->kernel});
    }
    nw_html_table_end(html);
}

static void put_run(const struct nw_html *html, size_t index)
{
    const struct nw_run *run = &html->page->results->runs[index];
    const struct nw_context *context = &run->context;
    char title[64], tool[128];

    snprintf(title, sizeof title, tr(html, "Run %zu"), index + 1);
    nw_html_heading(html, title);
    snprintf(tool, sizeof tool, "%s %s", context->tool, context->tool_version);
    fputs("<dl class=\"facts\">", html->stream);
    put_fact(html, tr(html, "Tool"), tool);
    put_fact(html, tr(html, "Started"), context->started);
    put_fact(html, tr(html, "Backend"), context->backend);
    put_fact(html, tr(html, "Library"), context->library);
    put_fact(html, tr(html, "GPU"), context->gpu_model);
    put_fact(html, tr(html, "Network"), context->network);
    put_fact(html, tr(html, "Log"), context->source);
    put_fact(html, tr(html, "State"),
             tr(html, context->complete ? "ran to its end" : "stopped before its end"));
    if (context->simulated)
        put_fact(html, tr(html, "Simulated"), tr(html, "made with a double, no measurement"));
    fputs("</dl>\n", html->stream);
    put_hosts(html, context);
    put_settings(html, tr(html, "Options in force"), context->plan);
    put_settings(html, tr(html, "Environment"), context->environment);
}

void nw_html_how(struct nw_html *html)
{
    const struct nw_results *results = html->page->results;
    char schema[16];

    nw_html_begin(html, "how", tr(html, "How it was measured"));
    nw_html_say(html, NULL, "%s",
                tr(html, "A time is that of the slowest rank, after a warm-up; every result was "
                         "checked for wrong elements. A rate is the plateau of the largest "
                         "sizes, never an average over sizes, and is held against what healthy "
                         "machines reach, not against the ceiling."));
    for (size_t i = 0; i < results->run_count && i < RUNS_MAX; i++)
        put_run(html, i);
    if (results->run_count > RUNS_MAX)
        nw_html_say(html, "note", tr(html, "and %zu further runs"), results->run_count - RUNS_MAX);
    nw_html_heading(html, tr(html, "Versions"));
    snprintf(schema, sizeof schema, "%d", NW_SCHEMA_VERSION);
    fputs("<dl class=\"facts\">", html->stream);
    put_fact(html, "nodeworth", html->page->version);
    put_fact(html, tr(html, "Schema of the results"), schema);
    fputs("</dl>\n", html->stream);
    nw_html_end(html);
}
