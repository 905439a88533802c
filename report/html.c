/* The page's frame: head, what stands above and below the sections, both languages. */
#include "report/html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/html_parts.h"

#include "page_css.inc"
#include "page_js.inc"

static const char *const keys[] = {"en", "zh"};
enum { LANGUAGES = sizeof keys / sizeof *keys };

static bool is_simulated(const struct nw_page *page)
{
    for (size_t i = 0; i < page->results->run_count; i++)
        if (page->results->runs[i].context.simulated)
            return true;
    return page->audit != NULL && page->audit->simulated;
}

/* A script and a style are run only where their hash is the one named here: nothing that somebody
 * put into the page can be. */
static void put_head(FILE *stream, const struct nw_page *page, const struct nw_language *language)
{
    fprintf(stream,
            "<!DOCTYPE html>\n<html lang=\"%s\" dir=\"ltr\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
            "'sha256-%s'; script-src 'sha256-%s'; base-uri 'none'; form-action 'none'\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"referrer\" content=\"no-referrer\">\n"
            "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" "
            "content=",
            language->key, nw_page_css_sha256, nw_page_js_sha256);
    char generator[160];

    snprintf(generator, sizeof generator, "nodeworth %.120s", page->version);
    nw_html_attribute(stream, generator);
    fputs(">\n<title>", stream);
    nw_html_text(stream, nw_words(language, "Report on rented GPU servers"));
    fprintf(stream, " · nodeworth</title>\n<style>%s</style>\n</head>\n<body>\n", nw_page_css);
}

static const struct {
    const char *id, *title;
} parts[] = {
    {"verdict", "Verdict"},
    {"findings", "Findings"},
    {"decision", "Is a second node worth it"},
    {"measured", "What was measured"},
    {"lanes", "Ways side by side"},
    {"pairs", "Every two"},
    {"machine", "The machines"},
    {"step", "The training step"},
    {"records", "Every record"},
    {"how", "How it was measured"},
};

/* Links to what is there: the sections are written first, into memory. */
static void put_contents(const struct nw_html *html, const char *sections)
{
    char id[64], mark[96];

    fputs("<nav aria-label=", html->stream);
    nw_html_attribute(html->stream, tr(html, "Contents"));
    fputs("><ul>", html->stream);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(mark, sizeof mark, "<section id=\"%s\"", nw_html_id(html, parts[i].id, id));
        if (strstr(sections, mark) == NULL)
            continue;
        fprintf(html->stream, "<li><a href=\"#%s\">", id);
        nw_html_text(html->stream, tr(html, parts[i].title));
        fputs("</a></li>", html->stream);
    }
    fputs("</ul></nav>\n", html->stream);
}

/* "NVIDIA H100 80GB HBM3 · 2 hosts · 16 ranks · NCCL 2.28.9 · 2026-11-30" */
static void put_what(const struct nw_html *html)
{
    const struct nw_results *results = html->page->results;
    size_t records = nw_results_record_count(results);

    for (size_t i = 0; i < results->run_count && i < 4; i++) {
        const struct nw_context *context = &results->runs[i].context;
        char text[700], library[130];

        snprintf(library, sizeof library, "%s", context->library);
        library[strcspn(library, ",(")] = '\0'; /* without where it is */
        snprintf(text, sizeof text, tr(html, "%s: hosts: %d, ranks: %d, backend: %s%s%s"),
                 context->gpu_model[0] != '\0' ? context->gpu_model
                 : context->hosts != NULL && context->hosts->cpu[0] != '\0'
                     ? context->hosts->cpu
                     : tr(html, "machine unknown"),
                 context->host_count, context->rank_count, context->backend,
                 library[0] != '\0' ? ", " : "", library);
        nw_html_say(html, "what", "%s%s%.10s", text, context->started[0] != '\0' ? " · " : "",
                    context->started);
    }
    if (results->run_count > 4)
        nw_html_say(html, "what", tr(html, "and %zu further runs"), results->run_count - 4);
    nw_html_say(html, "what", tr(html, "Written by nodeworth %s; records: %zu, runs: %zu."),
                html->page->version, records + html->page->left_out_count, results->run_count);
}

static nw_rc put_sections(struct nw_html *html)
{
    nw_html_verdict(html);
    NW_TRY(nw_html_findings(html));
    NW_TRY(nw_html_decision(html));
    NW_TRY(nw_html_measured(html));
    NW_TRY(nw_html_lanes(html));
    NW_TRY(nw_html_maps(html));
    nw_html_machine(html);
    nw_html_step(html);
    nw_html_records(html);
    nw_html_how(html);
    return NW_OK;
}

static nw_rc put_main(struct nw_html *html, bool shown)
{
    FILE *stream = html->stream;
    char *sections = NULL;
    size_t length;
    nw_rc rc;

    html->stream = open_memstream(&sections, &length);
    rc = html->stream != NULL ? put_sections(html) : NW_ENOMEM;
    if (html->stream == NULL || fclose(html->stream) != 0)
        rc = nw_fail(NW_ENOMEM, "no memory for the sections of the page");
    html->stream = stream;
    if (rc != NW_OK) {
        free(sections);
        return rc;
    }
    fprintf(stream, "<main id=\"%s\" lang=\"%s\"%s data-title=", html->language->key,
            html->language->key, shown ? "" : " hidden");
    nw_html_attribute(stream, tr(html, "Report on rented GPU servers"));
    fputs(">\n<header><h1>", stream);
    nw_html_text(stream, tr(html, "Report on rented GPU servers"));
    fputs("</h1>\n", stream);
    put_what(html);
    if (html->simulated) {
        fputs("<p class=\"simulated\"><strong>", stream);
        nw_html_text(stream, tr(html, "SIMULATED."));
        fputs("</strong> ", stream);
        nw_html_text(stream, tr(html, "Figures marked (simulated) come from a pretended "
                                      "machine and are no measurement."));
        fputs("</p>\n", stream);
    }
    fputs("</header>\n", stream);
    put_contents(html, sections);
    fwrite(sections, 1, length, stream);
    fputs("</main>\n", stream);
    free(sections);
    return NW_OK;
}

/* Switches work by the script alone, which shows them. */
static nw_rc put_tools(FILE *stream, const struct nw_language *first)
{
    const struct nw_language *language;

    fputs("<header class=\"tools\" hidden>", stream);
    for (size_t i = 0; i < LANGUAGES; i++) {
        NW_TRY(nw_language_find(keys[i], &language));
        fprintf(stream,
                "<button type=\"button\" data-language=\"%s\" lang=\"%s\" aria-pressed=\"%s\">",
                language->key, language->key, language == first ? "true" : "false");
        nw_html_text(stream, language->title);
        fputs("</button>", stream);
    }
    fputs("<button type=\"button\" data-theme-switch", stream);
    for (size_t i = 0; i < LANGUAGES; i++) {
        NW_TRY(nw_language_find(keys[i], &language));
        fprintf(stream, " data-%s=", language->key);
        nw_html_attribute(stream, nw_words(language, "Light or dark"));
    }
    fputs(">", stream);
    nw_html_text(stream, nw_words(first, "Light or dark"));
    fputs("</button></header>\n", stream);
    return NW_OK;
}

/* The texts of other modules follow the language that the process speaks. */
static nw_rc put_page(struct nw_html *html, const struct nw_language *first)
{
    NW_TRY(put_tools(html->stream, first));
    for (size_t i = 0; i <= LANGUAGES; i++) {
        html->language = first;
        if (i > 0)
            NW_TRY(nw_language_find(keys[i - 1], &html->language));
        if (i > 0 && html->language == first)
            continue;
        html->chart_count = 0;
        (void)nw_speak(html->language);
        NW_TRY(put_main(html, i == 0));
    }
    return NW_OK;
}

nw_rc nw_report_html(FILE *stream, const struct nw_page *page)
{
    const struct nw_language *first, *spoken = nw_spoken_language();
    struct nw_series_list series;
    nw_rc rc;

    NW_TRY(nw_language_find(page->language, &first));
    NW_TRY(nw_series_of(page->results, &series));
    struct nw_html html = {
        .stream = stream, .page = page, .series = &series, .simulated = is_simulated(page)};

    put_head(stream, page, first);
    rc = put_page(&html, first);
    (void)nw_speak(spoken);
    fprintf(stream,
            "<div id=\"tip\" role=\"status\" hidden></div>\n<script>%s</script>\n</body>\n"
            "</html>\n",
            nw_page_js);
    nw_series_free(&series);
    if (rc == NW_OK && ferror(stream))
        return nw_fail(NW_EIO, "the page could not be written: %s",
                       errno != 0 ? strerror(errno) : "the output failed");
    return rc;
}
