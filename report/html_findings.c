/* What a person must know, worst first, with what to do about it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/html_parts.h"

#define SHOWN_MAX 100 /* more of a kind help nobody */

static nw_rc collect(const struct nw_page *page, struct nw_findings *all)
{
    if (page->preflight != NULL)
        NW_TRY(nw_findings_copy(all, page->preflight));
    if (page->audit != NULL)
        NW_TRY(nw_findings_copy(all, &page->audit->findings));
    if (page->fleet != NULL)
        NW_TRY(nw_findings_copy(all, &page->fleet->findings));
    for (size_t i = 0; i < page->results->run_count; i++) {
        const struct nw_run *run = &page->results->runs[i];

        NW_TRY(nw_findings_copy(all, &run->context.findings));
        for (size_t k = 0; k < run->record_count && all->count < 100 * SHOWN_MAX; k++)
            if (run->records[k].rc != NW_OK)
                NW_TRY(nw_findings_copy(all, &run->records[k].warnings));
    }
    return NW_OK;
}

static int compare(const void *left, const void *right)
{
    const struct nw_finding *a = left, *b = right;

    if (a->severity != b->severity)
        return (int)b->severity - (int)a->severity;
    const double x = isfinite(a->lost_bytes_per_s) ? a->lost_bytes_per_s : 0;
    const double y = isfinite(b->lost_bytes_per_s) ? b->lost_bytes_per_s : 0;

    if (x != y)
        return x > y ? -1 : 1;
    const int order = strcmp(a->where, b->where);

    return order != 0 ? order : strcmp(a->text, b->text);
}

static void put_line(const struct nw_html *html, const char *name, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return;
    fputs("<p><strong>", html->stream);
    nw_html_text(html->stream, name);
    fputs("</strong> ", html->stream);
    nw_html_foreign(html, text);
    fputs("</p>\n", html->stream);
}

static void put_finding(const struct nw_html *html, const struct nw_finding *finding)
{
    static const struct {
        const char *class, *sign, *summary;
    } kinds[] = {[NW_FINDING_INFO] = {"open", "i", .summary = "note"},
                 [NW_FINDING_WARN] = {"warn", "!", .summary = "warning"},
                 [NW_FINDING_FAIL] = {"short", "✗", .summary = "failure"}};

    fprintf(
        html->stream,
        "<li class=\"card %s\"><p><span class=\"badge %s\"><span aria-hidden=\"true\">%s</span> ",
        kinds[finding->severity].class, kinds[finding->severity].class,
        kinds[finding->severity].sign);
    nw_html_text(html->stream, tr(html, kinds[finding->severity].summary));
    fputs("</span> <b>", html->stream);
    nw_html_text(html->stream, finding->where);
    fputs("</b> ", html->stream);
    nw_html_foreign(html, finding->text);
    fputs("</p>\n", html->stream);
    put_line(html, tr(html, "What it costs:"), finding->effect);
    put_line(html, tr(html, "What to do:"), finding->remedy);
    fputs("</li>\n", html->stream);
}

/* The same thing found twice is said once. */
static size_t drop_doubles(struct nw_finding *items, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && strcmp(items[kept - 1].where, items[i].where) == 0 &&
            strcmp(items[kept - 1].text, items[i].text) == 0)
            continue;
        const struct nw_finding item = items[i];

        items[i] = items[kept];
        items[kept++] = item;
    }
    return kept;
}

static void put_list(const struct nw_html *html, const struct nw_finding *items, size_t count)
{
    if (count == 0)
        return;
    fputs("<ol class=\"findings\">\n", html->stream);
    for (size_t i = 0; i < count && i < SHOWN_MAX; i++)
        put_finding(html, &items[i]);
    fputs("</ol>\n", html->stream);
    if (count > SHOWN_MAX)
        nw_html_say(html, "note", tr(html, "and %zu further findings, in the results file"),
                    count - SHOWN_MAX);
}

nw_rc nw_html_findings(struct nw_html *html)
{
    struct nw_findings all = {0};
    char title[64];
    const nw_rc rc = collect(html->page, &all);

    if (rc != NW_OK) {
        nw_findings_free(&all);
        return rc;
    }
    if (all.count > 0)
        qsort(all.items, all.count, sizeof *all.items, compare);
    const size_t count = drop_doubles(all.items, all.count);

    nw_html_begin(html, "findings", tr(html, "Findings"));
    size_t serious = 0; /* they stand first */

    while (serious < count && all.items[serious].severity != NW_FINDING_INFO)
        serious++;
    if (serious == 0)
        nw_html_say(html, NULL, "%s", tr(html, "Nothing was found that needs a word."));
    put_list(html, all.items, serious);
    if (count > serious) {
        snprintf(title, sizeof title, tr(html, "Notes: %zu"), count - serious);
        nw_html_fold(html, title);
        put_list(html, all.items + serious, count - serious);
        nw_html_fold_end(html);
    }
    nw_html_end(html);
    nw_findings_free(&all);
    return NW_OK;
}
