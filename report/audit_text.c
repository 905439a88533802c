#include "report/audit_text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"

#define DASH "\xE2\x80\x93"
/* A short table needs no names of areas between its rows. */
#define ROWS_WITHOUT_AREAS 12

static const char *rate(char text[32], double bytes_per_s)
{
    return nw_format_gb_per_s(text, bytes_per_s);
}

static bool is_rate(const struct nw_audit_row *row)
{
    return row->unit == NW_AUDIT_BYTES_PER_S || row->unit == NW_AUDIT_FLOP_PER_S;
}

/* In the row's unit for people, without it. */
static const char *row_rate(char text[32], const struct nw_audit_row *row, double value)
{
    return row->unit == NW_AUDIT_FLOP_PER_S ? nw_format_sig(text, value / 1e12, 3)
                                            : rate(text, value);
}

static void measured_cell(char *text, size_t size, const struct nw_audit_row *row)
{
    const char *unit = row->unit == NW_AUDIT_FLOP_PER_S ? "TFLOP/s" : "GB/s";
    char value[32], low[32], high[32];

    if (row->measured_text[0] != '\0')
        nw_print_to(text, size, "%s", row->measured_text);
    else if (!is_rate(row) || isnan(row->measured))
        snprintf(text, size, DASH);
    else if (isnan(row->measured_low))
        nw_print_to(text, size, "%s%s %s", /* a bound: the network carried this or more */
                    row->verdict == NW_AUDIT_NOT_MEASURED ? "\xE2\x89\xA5 " : "",
                    row_rate(value, row, row->measured), unit);
    else
        nw_print_to(text, size, "%s %s [%s, %s]", row_rate(value, row, row->measured), unit,
                    row_rate(low, row, row->measured_low), row_rate(high, row, row->measured_high));
    if (row->simulated && strcmp(text, DASH) != 0)
        strncat(text, " (simulated)", size - strlen(text) - 1);
}

/* `indent`: the row stands below the name of its area. */
static void add_row(struct nw_table *table, const struct nw_audit_row *row, bool indent)
{
    char claim[80];
    char ceiling[32] = DASH, expected[80] = DASH, measured[200], share[32] = DASH;
    char low[32], high[32];

    if (is_rate(row) && isfinite(row->ceiling))
        row_rate(ceiling, row, row->ceiling);
    if (is_rate(row) && isfinite(row->expected_low))
        nw_print_to(expected, sizeof expected, "%s" DASH "%s",
                    row_rate(low, row, row->expected_low), row_rate(high, row, row->expected_high));
    if (is_rate(row) && isfinite(row->measured) && row->quoted > 0)
        snprintf(share, sizeof share, "%.0f %%", 100 * row->measured / row->quoted / row->part);
    measured_cell(measured, sizeof measured, row);
    nw_print_to(claim, sizeof claim, "%s%s", indent ? " " : "", row->claim);
    nw_table_row(table, (const char *[]){claim, row->quoted_text, ceiling, expected, measured,
                                         share, nw_audit_verdict_text(row->verdict)});
}

nw_rc nw_report_audit_table(FILE *stream, const struct nw_audit *audit)
{
    static const struct nw_column columns[] = {
        {"Claim", NW_LEFT},     {"quoted", NW_WRAP},          {"ceiling", NW_RIGHT},
        {"expected", NW_RIGHT}, {"measured (95 %)", NW_WRAP}, {"of quote", NW_RIGHT},
        {"verdict", NW_LEFT},
    };
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    const bool grouped = audit->row_count > ROWS_WITHOUT_AREAS;

    for (size_t i = 0; i < audit->row_count; i++) {
        if (grouped && (i == 0 || strcmp(audit->rows[i - 1].area, audit->rows[i].area) != 0))
            nw_table_row(table, (const char *[]){audit->rows[i].area, "", "", "", "", "", ""});
        add_row(table, &audit->rows[i], grouped);
    }
    return nw_table_print(table, stream);
}

/* "ring 471, tree 251 GB/s; ring is more than the link carries" */
static void say_readings(FILE *stream, const struct nw_audit_row *row)
{
    char text[512], value[32], low[32], high[32];
    size_t used = 0;

    if (row->reading_count == 0)
        return;
    used += (size_t)nw_print_to(text, sizeof text, "on the wire, GB/s:");
    for (size_t i = 0; i < row->reading_count; i++) {
        const struct nw_audit_reading *reading = &row->readings[i];

        used += (size_t)nw_print_to(
            text + used, sizeof text - used, "%s %s if %s (healthy: %s to %s%s)", i > 0 ? ";" : "",
            rate(value, reading->bytes_per_s), reading->algorithm, rate(low, reading->expected_low),
            rate(high, reading->expected_high),
            reading->possible ? "" : nw_tr("; more than the link carries, so it is not"));
    }
    nw_print_wrapped(stream, "    ", "    ", text);
}

static void say_causes(FILE *stream, const struct nw_audit_row *row)
{
    char text[600];

    if (row->causes.count > 0)
        nw_print(stream, "    Likely:\n");
    for (size_t i = 0; i < row->causes.count; i++) {
        const struct nw_finding *cause = &row->causes.items[i];

        nw_print_to(text, sizeof text, "%s%s%s", cause->text, cause->remedy != NULL ? ". Do: " : "",
                    cause->remedy != NULL ? cause->remedy : "");
        nw_print_wrapped(stream, "    - ", "      ", text);
    }
}

static void say_row(FILE *stream, const struct nw_audit *audit, const struct nw_audit_row *row)
{
    char text[1400], measured[200];

    measured_cell(measured, sizeof measured, row);
    if (row->verdict == NW_AUDIT_SHORT)
        nw_print_to(text, sizeof text, "%s: found %.140s, quoted %s (%.80s:%d)%s%s%s%s", row->claim,
                    measured, row->quoted_text, audit->quote.path, row->quote_line,
                    row->source[0] != '\0' ? nw_tr(", from ") : "", row->source,
                    row->reason[0] != '\0' ? "; " : "", row->reason);
    else
        nw_print_to(text, sizeof text, "%s: %s", row->claim, row->reason);
    nw_print_wrapped(stream, "  ", "    ", text);
    say_readings(stream, row);
    say_causes(stream, row);
}

static void say_all(FILE *stream, const struct nw_audit *audit, nw_audit_verdict verdict,
                    const char *title)
{
    bool first = true;

    for (size_t i = 0; i < audit->row_count; i++) {
        const struct nw_audit_row *row = &audit->rows[i];

        if (row->verdict != verdict || (verdict == NW_AUDIT_MET && row->reason[0] == '\0'))
            continue;
        if (first)
            nw_print(stream, "\n%s\n", title);
        first = false;
        say_row(stream, audit, row);
    }
}

static void say_findings(FILE *stream, const struct nw_audit *audit)
{
    char text[1024];

    if (audit->findings.count > 0)
        nw_print(stream, "\nAbout the results\n");
    for (size_t i = 0; i < audit->findings.count; i++) {
        const struct nw_finding *finding = &audit->findings.items[i];

        nw_print_to(text, sizeof text, "%s: %s%s%s", finding->where, finding->text,
                    finding->remedy != NULL ? ". Do: " : "",
                    finding->remedy != NULL ? finding->remedy : "");
        nw_print_wrapped(stream, "  ", "    ", text);
    }
}

static void say_costs(FILE *stream, const struct nw_audit *audit)
{
    char text[300], value[32];

    if (audit->cost_count > 0)
        nw_print(stream, "\nWhat it costs\n");
    for (size_t i = 0; i < audit->cost_count; i++) {
        const struct nw_audit_cost *cost = &audit->costs[i];

        snprintf(value, sizeof value, cost->value >= 1000 ? "%.0f" : "%.4g", cost->value);
        nw_print_to(text, sizeof text, "%s: %s %s (%s)%s", cost->title, value,
                    audit->quote.currency, cost->how, cost->simulated ? nw_tr(" (simulated)") : "");
        nw_print_wrapped(stream, "  ", "    ", text);
    }
}

nw_rc nw_report_audit(FILE *stream, const struct nw_audit *audit)
{
    const struct nw_quote *quote = &audit->quote;
    char text[600];

    nw_print_to(text, sizeof text, "Quote: %s%s%s%s%s", quote->path,
                quote->vendor[0] != '\0' ? " \xC2\xB7 " : "", quote->vendor,
                quote->date[0] != '\0' ? " \xC2\xB7 " : "", quote->date);
    nw_print_wrapped(stream, "", "  ", text);
    if (audit->simulated)
        nw_print(stream, "SIMULATED: some rows come from a pretended machine, not from a "
                         "measurement.\n");
    fputc('\n', stream);
    NW_TRY(nw_report_audit_table(stream, audit));
    say_all(stream, audit, NW_AUDIT_SHORT, "Short of the quote");
    say_all(stream, audit, NW_AUDIT_NOT_MEASURED, "Not measured");
    say_all(stream, audit, NW_AUDIT_MET, "Met: how it was read");
    say_findings(stream, audit);
    say_costs(stream, audit);
    nw_print(stream, "\n%zu met, %zu short, %zu not measured.\n",
             nw_audit_count(audit, NW_AUDIT_MET), nw_audit_count(audit, NW_AUDIT_SHORT),
             nw_audit_count(audit, NW_AUDIT_NOT_MEASURED));
    if (ferror(stream))
        return nw_fail(NW_EIO, "the audit could not be written: %s",
                       errno != 0 ? strerror(errno) : "the output failed");
    return NW_OK;
}
