/* The quote, claim by claim; then what falls short, why, and what to do. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/html_parts.h"
#include "report/letter_figures.h"

static const struct {
    const char *class, *sign, *summary;
} verdicts[] = {[NW_AUDIT_MET] = {"met", "✓", .summary = "met"},
                [NW_AUDIT_SHORT] = {"short", "✗", .summary = "short"},
                [NW_AUDIT_NOT_MEASURED] = {"open", "?", .summary = "not measured"}};

static void put_tile(const struct nw_html *html, nw_audit_verdict verdict, const char *title)
{
    fprintf(html->stream, "<li class=\"tile %s\"><span class=\"big\">%zu</span> ",
            verdicts[verdict].class, nw_audit_count(html->page->audit, verdict));
    nw_html_text(html->stream, title);
    fputs("</li>", html->stream);
}

static void put_badge(const struct nw_html *html, nw_audit_verdict verdict)
{
    fprintf(html->stream, "<span class=\"badge %s\"><span aria-hidden=\"true\">%s</span> ",
            verdicts[verdict].class, verdicts[verdict].sign);
    nw_html_text(html->stream, tr(html, verdicts[verdict].summary));
    fputs("</span>", html->stream);
}

static void put_cell(const struct nw_html *html, const char *class, const char *text)
{
    fprintf(html->stream, class != NULL ? "<td class=\"%s\">" : "<td>", class);
    nw_html_text(html->stream, text[0] != '\0' ? text : NW_DASH);
    fputs("</td>", html->stream);
}

static void put_claim(const struct nw_html *html, const struct nw_audit_row *row)
{
    char text[400], share[32] = "", number[80];

    if (nw_figure_is_rate(row) && isfinite(row->measured) && row->quoted > 0)
        snprintf(share, sizeof share, "%.0f %%", 100 * row->measured / row->quoted / row->part);
    fputs("<tr><th scope=\"row\">", html->stream);
    nw_html_text(html->stream, tr(html, row->claim));
    fputs("</th>", html->stream);
    put_cell(html, NULL, nw_words_say(html->language, row->quoted_text, text, sizeof text));
    put_cell(html, "n", nw_figure_ceiling(row, number));
    put_cell(html, "n", nw_figure_expected(row, number));
    put_cell(html, NULL,
             nw_figure_found(html->language, row, row->measured_text, text, sizeof text));
    put_cell(html, "n", share);
    fputs("<td>", html->stream);
    put_badge(html, row->verdict);
    fputs("</td></tr>\n", html->stream);
}

/* Names of areas, which stand in the audit's table beside keys. */
static const struct {
    const char *summary;
} areas[] = {{.summary = "Cluster"},  {.summary = "GPUs"},           {.summary = "GPU links"},
             {.summary = "Network"},  {.summary = "CPU and memory"}, {.summary = "Storage"},
             {.summary = "Software"}, {.summary = "Price"}};

static const char *area_of(const struct nw_html *html, const char *area)
{
    for (size_t i = 0; i < sizeof areas / sizeof *areas; i++)
        if (strcmp(areas[i].summary, area) == 0)
            return tr(html, areas[i].summary);
    return area;
}

static void put_claims(const struct nw_html *html)
{
    static const struct nw_html_column columns[] = {
        {"Claim", NW_LEFT},
        {"In the offer", NW_LEFT},
        {"Physical ceiling", NW_RIGHT},
        {"Healthy machines reach", NW_RIGHT},
        {"Measured (95 %)", NW_LEFT},
        {"Of the offer", NW_RIGHT},
        {"Result", NW_LEFT},
    };
    const struct nw_audit *audit = html->page->audit;

    nw_html_table(html, tr(html, "The offer, claim by claim"), columns,
                  sizeof columns / sizeof *columns);
    for (size_t i = 0; i < audit->row_count; i++) {
        if (i == 0 || strcmp(audit->rows[i - 1].area, audit->rows[i].area) != 0) {
            fputs("<tr class=\"area\"><th colspan=\"7\" scope=\"rowgroup\">", html->stream);
            nw_html_text(html->stream, area_of(html, audit->rows[i].area));
            fputs("</th></tr>\n", html->stream);
        }
        put_claim(html, &audit->rows[i]);
    }
    nw_html_table_end(html);
    nw_html_say(html, "note", "%s",
                tr(html, "A figure in brackets [low, high] is the 95 % interval of the median. "
                         "Rates are in one direction; 1 GB/s is 10^9 bytes a second. NVLink is "
                         "often advertised with both directions added: 900 GB/s there is 450 "
                         "GB/s one way. Every node must be as offered, so the worst one "
                         "speaks."));
}

static void put_item(const struct nw_html *html, const char *name, const char *text, bool foreign)
{
    if (text[0] == '\0')
        return;
    fputs("<dt>", html->stream);
    nw_html_text(html->stream, name);
    fputs("</dt><dd>", html->stream);
    if (foreign)
        nw_html_foreign(html, text);
    else
        nw_html_text(html->stream, text);
    fputs("</dd>\n", html->stream);
}

static void put_short(const struct nw_html *html, const struct nw_audit_row *row)
{
    char text[400];

    fputs("<article class=\"card short\"><h4>", html->stream);
    nw_html_text(html->stream, tr(html, row->claim));
    fputs("</h4><dl>\n", html->stream);
    put_item(html, tr(html, "In the offer"), row->quoted_text, true);
    put_item(html, tr(html, "Found"),
             nw_figure_found(html->language, row, row->measured_text, text, sizeof text), false);
    put_item(html, tr(html, "Where"), row->source, false);
    put_item(html, tr(html, "What was read"), row->reason, true);
    for (size_t i = 0; i < row->causes.count; i++) {
        const struct nw_finding *cause = &row->causes.items[i];

        put_item(html, tr(html, "Likely cause"), cause->text, true);
        put_item(html, tr(html, "What to do"), cause->remedy != NULL ? cause->remedy : "", true);
    }
    fputs("</dl></article>\n", html->stream);
}

static void put_all_short(const struct nw_html *html)
{
    const struct nw_audit *audit = html->page->audit;

    if (nw_audit_count(audit, NW_AUDIT_SHORT) == 0)
        return;
    nw_html_heading(html, tr(html, "What falls short of the offer"));
    for (size_t i = 0; i < audit->row_count; i++)
        if (audit->rows[i].verdict == NW_AUDIT_SHORT)
            put_short(html, &audit->rows[i]);
}

static void put_unmeasured(const struct nw_html *html)
{
    static const struct nw_html_column columns[] = {
        {"Claim", NW_LEFT}, {"In the offer", NW_LEFT}, {"Why not", NW_LEFT}};
    const struct nw_audit *audit = html->page->audit;

    if (nw_audit_count(audit, NW_AUDIT_NOT_MEASURED) == 0)
        return;
    nw_html_heading(html, tr(html, "What was not measured"));
    nw_html_table(html, tr(html, "What was not measured"), columns, 3);
    for (size_t i = 0; i < audit->row_count; i++) {
        const struct nw_audit_row *row = &audit->rows[i];

        if (row->verdict != NW_AUDIT_NOT_MEASURED)
            continue;
        fputs("<tr><th scope=\"row\">", html->stream);
        nw_html_text(html->stream, tr(html, row->claim));
        fputs("</th><td>", html->stream);
        nw_html_foreign(html, row->quoted_text);
        fputs("</td><td>", html->stream);
        nw_html_foreign(html, row->reason);
        fputs("</td></tr>\n", html->stream);
    }
    nw_html_table_end(html);
    nw_html_say(html, "note", "%s", tr(html, "What was not measured is no shortfall."));
}

static void put_costs(const struct nw_html *html)
{
    static const struct nw_html_column columns[] = {
        {"What it costs", NW_LEFT}, {"Amount", NW_RIGHT}, {"Made of", NW_LEFT}};
    const struct nw_audit *audit = html->page->audit;

    if (audit->cost_count == 0)
        return;
    nw_html_table(html, tr(html, "What it costs"), columns, 3);
    for (size_t i = 0; i < audit->cost_count; i++) {
        const struct nw_audit_cost *cost = &audit->costs[i];
        char value[160];

        snprintf(value, sizeof value, cost->value >= 1000 ? "%.0f %s%s" : "%.4g %s%s", cost->value,
                 audit->quote.currency, nw_html_mark(html, cost->simulated));
        fputs("<tr><th scope=\"row\">", html->stream);
        nw_html_foreign(html, cost->title);
        fputs("</th>", html->stream);
        put_cell(html, "n", value);
        fputs("<td>", html->stream);
        nw_html_foreign(html, cost->how);
        fputs("</td></tr>\n", html->stream);
    }
    nw_html_table_end(html);
}

static void put_quote(const struct nw_html *html)
{
    const struct nw_quote *quote = &html->page->audit->quote;

    fputs("<dl class=\"facts\">", html->stream);
    put_item(html, tr(html, "Vendor"), quote->vendor, false);
    put_item(html, tr(html, "Date of the offer"), quote->date, false);
    put_item(html, tr(html, "Note on the offer"), quote->note, false);
    put_item(html, tr(html, "File of the offer"), quote->path, false);
    fputs("</dl>\n", html->stream);
}

void nw_html_verdict(struct nw_html *html)
{
    const struct nw_audit *audit = html->page->audit;

    nw_html_begin(html, "verdict", tr(html, "Verdict"));
    if (audit == NULL) {
        nw_html_say(html, NULL, "%s",
                    tr(html, "No offer was given to hold the machines against (option "
                             "--quote); what was measured stands below."));
        nw_html_end(html);
        return;
    }
    nw_html_say(html, "headline", "%s",
                tr(html, nw_audit_count(audit, NW_AUDIT_SHORT) > 0
                             ? "The machines are not what was offered."
                         : nw_audit_count(audit, NW_AUDIT_MET) == 0
                             ? "Nothing was measured that could be held against the offer."
                         : nw_audit_count(audit, NW_AUDIT_NOT_MEASURED) > 0
                             ? "What was measured is as offered; some claims were not "
                               "measured."
                             : "The machines are what was offered."));
    fputs("<ul class=\"tiles\">", html->stream);
    put_tile(html, NW_AUDIT_MET, tr(html, "claims met"));
    put_tile(html, NW_AUDIT_SHORT, tr(html, "claims short"));
    put_tile(html, NW_AUDIT_NOT_MEASURED, tr(html, "claims not measured"));
    fputs("</ul>\n", html->stream);
    put_quote(html);
    put_claims(html);
    put_all_short(html);
    put_unmeasured(html);
    put_costs(html);
    nw_html_end(html);
}
