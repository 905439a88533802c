#include "report/letter.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/units.h"
#include "base/words.h"
#include "report/letter_figures.h"
#include "report/letter_names.h"
#include "report/letter_parts.h"

#define DASH "\xE2\x80\x93"

static const char *tr(const struct nw_letter_page *page, const char *text)
{
    return nw_words(page->language, text);
}

/* A sentence made elsewhere, without host names, in the letter's language. */
static const char *say(const struct nw_letter_page *page, const char *sentence, char *out,
                       size_t size)
{
    char hidden[1500];

    nw_names_hide(&page->names, sentence, hidden, sizeof hidden);
    return nw_words_say(page->language, hidden, out, size);
}

/* A host, a GPU of it, or a file without its folders. */
static const char *place(const struct nw_letter_page *page, const char *source, char *out,
                         size_t size)
{
    char hidden[400];

    nw_names_file(&page->names, source, hidden, sizeof hidden);
    return nw_words_say(page->language, hidden, out, size);
}

/* The text with a backslash before each of `marks`, which Markdown would take for its own. */
static void put_escaped(FILE *stream, const char *text, const char *marks)
{
    for (; *text != '\0'; text++) {
        if (strchr(marks, *text) != NULL)
            fputc('\\', stream);
        fputc(*text == '\n' ? ' ' : *text, stream);
    }
}

/* A cell may have emphasis of our own. */
static void put_cell(FILE *stream, const char *text)
{
    fputs("| ", stream);
    put_escaped(stream, text, "|<`");
    fputc(' ', stream);
}

static void put_row(FILE *stream, const char *const *cells, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_cell(stream, cells[i]);
    fputs("|\n", stream);
}

static void put_head(FILE *stream, const struct nw_letter_page *page, const char *const *titles,
                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_cell(stream, tr(page, titles[i]));
    fputs("|\n", stream);
    for (size_t i = 0; i < count; i++)
        fputs("|---", stream);
    fputs("|\n", stream);
}

/* ---- figures, as in the audit's table ----------------------------------------------------------
 */

static const char *found(const struct nw_letter_page *page, const struct nw_audit_row *row,
                         char *out, size_t size)
{
    char hidden[1500];

    nw_names_hide(&page->names, row->measured_text, hidden, sizeof hidden);
    return nw_figure_found(page->language, row, hidden, out, size);
}

static const char *verdict_of(const struct nw_letter_page *page, const struct nw_audit_row *row)
{
    static const char *const texts[] = {[NW_AUDIT_MET] = "met",
                                        [NW_AUDIT_SHORT] = "**short**",
                                        [NW_AUDIT_NOT_MEASURED] = "not measured"};

    return tr(page, texts[row->verdict]);
}

/* What was quoted, and for NVLink both ways of counting it. */
static const char *quoted(const struct nw_letter_page *page, const struct nw_audit_row *row,
                          char *out, size_t size)
{
    const struct nw_quote *quote = &page->letter->audit->quote;

    say(page, row->quoted_text, out, size);
    if (strcmp(row->key, "nvlink") == 0 && quote->nvlink_is != NULL)
        snprintf(out + strlen(out), size - strlen(out),
                 strcmp(quote->nvlink_is, "bidirectional") == 0
                     ? tr(page, " (%.4g GB/s, both directions added)")
                     : tr(page, " (one way, as the offer says)"),
                 quote->nvlink_quoted_bytes_per_s / 1e9);
    return out;
}

/* ---- what falls short --------------------------------------------------------------------------
 */

/* What is asked for, by the row's key; "" ends with what holds for all others. */
static const struct {
    const char *key, *ask;
} asks[] = {
    {"gpu_model", "Please deliver the quoted GPU, or make us an offer for the one that is there."},
    {"gpu_count", "Please make all quoted GPUs visible on this node, or replace the node."},
    {"gpu_memory", "Please deliver GPUs with the quoted memory, without a partition (MIG, vGPU)."},
    {"power", "Please set the power limit of the quoted product, or tell us why it is lower."},
    {"memory_rate", "Please check this GPU's memory and replace the GPU if the figure stays."},
    {"compute", "Please check clocks, power and cooling of this GPU and replace it if the figure "
                "stays."},
    {"stress", "Please repair the cooling or the power supply, or replace the server."},
    {"nvlink", "Please check the NVLinks and the fabric manager, and repair or replace the part. "
               "If the figure of the offer counts both directions, please confirm it in writing."},
    {"no_nvlink", "Please deliver GPUs that NVLink joins as offered, or correct the offer."},
    {"nvlink_count", "Please check the NVLinks and the fabric manager, and repair or replace the "
                     "part."},
    {"nvswitch", "Please deliver servers whose GPUs are joined by NVSwitches, or correct the "
                 "offer."},
    {"pcie", "Please check the slot, the riser and the PCIe switches, and repair the link."},
    {"network", "Please find the cause with us (ports, cables, GPUDirect, the switches between the "
                "nodes) and repair it."},
    {"nics", "Please attach the quoted NICs, bring their ports up and pass them through to us."},
    {"rdma", "Please pass the RDMA devices through to us and install their driver."},
    {"gpudirect", "Please load nvidia_peermem, or make dma-buf possible."},
    {"cores",
     "Please tell us whether the offer counts physical cores or hardware threads (vCPUs)."},
    {"os", "Please install the quoted version."},
    {"driver", "Please install the quoted version."},
    {"cuda", "Please install the quoted version."},
    {"nccl", "Please install the quoted version."},
    {"pytorch", "Please install the quoted version."},
    {"price", "Please tell us in writing which price holds."},
    {"", "Please repair it or replace the part, or correct the offer."},
};

static const char *ask_of(const struct nw_audit_row *row)
{
    const bool no_nvlink = (strcmp(row->key, "nvlink") == 0 && row->ceiling == 0) ||
                           (strcmp(row->key, "nvlink_count") == 0 && row->measured == 0);
    const char *key = no_nvlink ? "no_nvlink" : row->key;
    size_t i = 0;

    while (asks[i].key[0] != '\0' && strcmp(asks[i].key, key) != 0)
        i++;
    return asks[i].ask;
}

static void put_item(FILE *stream, const struct nw_letter_page *page, const char *name,
                     const char *value)
{
    if (value[0] == '\0' || strcmp(value, DASH) == 0)
        return;
    fprintf(stream, "- %s%s", tr(page, name), tr(page, ": "));
    put_escaped(stream, value, "\\*<`");
    fputc('\n', stream);
}

/* Advice to whoever rents, not to the vendor. */
static bool is_for_renter(const char *remedy)
{
    return strncmp(remedy, "ask ", 4) == 0 || strncmp(remedy, "in the quote", 12) == 0;
}

static void put_short(FILE *stream, const struct nw_letter_page *page, size_t number,
                      const struct nw_audit_row *row)
{
    char text[1500], text2[80];

    fprintf(stream, "\n### %zu. %s\n\n", number, tr(page, row->claim));
    put_item(stream, page, "In the offer", quoted(page, row, text, sizeof text));
    found(page, row, text, sizeof text);
    if (nw_figure_is_rate(row) && isfinite(row->measured) && row->quoted > 0)
        snprintf(text + strlen(text), sizeof text - strlen(text), tr(page, ", %.0f %% of it"),
                 100 * row->measured / row->quoted / row->part);
    put_item(stream, page, "Found", text);
    put_item(stream, page, "Physical ceiling",
             row->ceiling > 0 ? nw_figure_ceiling(row, text2) : "");
    put_item(stream, page, "Healthy machines reach", nw_figure_expected(row, text2));
    put_item(stream, page, "Where", place(page, row->source, text, sizeof text));
    put_item(stream, page, "What was read", say(page, row->reason, text, sizeof text));
    for (size_t i = 0; i < row->causes.count; i++)
        put_item(stream, page, "Likely cause",
                 say(page, row->causes.items[i].text, text, sizeof text));
    for (size_t i = 0; i < row->causes.count; i++)
        if (row->causes.items[i].remedy != NULL && !is_for_renter(row->causes.items[i].remedy))
            put_item(stream, page, "How to check",
                     say(page, row->causes.items[i].remedy, text, sizeof text));
    fprintf(stream, "\n**%s** %s\n", tr(page, "What we ask:"), tr(page, ask_of(row)));
}

static void put_all_short(FILE *stream, const struct nw_letter_page *page)
{
    const struct nw_audit *audit = page->letter->audit;
    const struct nw_quote *quote = &audit->quote;
    size_t number = 0;

    if (nw_audit_count(audit, NW_AUDIT_SHORT) == 0)
        return;
    fprintf(stream, "\n## %s\n", tr(page, "What falls short of the offer"));
    for (size_t i = 0; i < audit->row_count; i++)
        if (audit->rows[i].verdict == NW_AUDIT_SHORT)
            put_short(stream, page, ++number, &audit->rows[i]);
    fprintf(stream, "\n%s\n",
            tr(page, "For each of these points, please tell us one of three: by when it is "
                     "repaired, by when the machine is replaced, or that it stays as it is."));
    if (quote->currency[0] != '\0') {
        fputc('\n', stream);
        fprintf(stream,
                tr(page, "If a point stays as it is: what price, in %s, do you offer for these "
                         "machines?"),
                quote->currency);
        fputc('\n', stream);
    }
}

/* ---- every point -------------------------------------------------------------------------------
 */

static void put_points(FILE *stream, const struct nw_letter_page *page)
{
    static const char *const titles[] = {"Point", "In the offer", "Found", "Physical ceiling",
                                         "Result"};
    const struct nw_audit *audit = page->letter->audit;

    fprintf(stream, "\n## %s\n\n", tr(page, "Every point"));
    put_head(stream, page, titles, sizeof titles / sizeof *titles);
    for (size_t i = 0; i < audit->row_count; i++) {
        const struct nw_audit_row *row = &audit->rows[i];
        char offer[300], measured[300], limit[80];

        put_row(stream,
                (const char *[]){tr(page, row->claim), quoted(page, row, offer, sizeof offer),
                                 found(page, row, measured, sizeof measured),
                                 nw_figure_ceiling(row, limit), verdict_of(page, row)},
                5);
    }
    fprintf(stream, "\n%s\n",
            tr(page, "A figure in brackets [low, high] is the 95 % interval of the median. Rates "
                     "are in one direction; 1 GB/s is 10^9 bytes a second. NVLink is often "
                     "advertised with both directions added: 900 GB/s there is 450 GB/s one way. "
                     "Every node must be as offered, so the worst one speaks."));
}

/* Wrong results and the like: about the machine, whatever was quoted. */
static void put_findings(FILE *stream, const struct nw_letter_page *page)
{
    const struct nw_findings *findings = &page->letter->audit->findings;
    char text[1500], where[300];

    if (findings->count == 0)
        return;
    fprintf(stream, "\n## %s\n\n", tr(page, "Also seen"));
    for (size_t i = 0; i < findings->count; i++)
        fprintf(stream, "- %s%s%s\n", place(page, findings->items[i].where, where, sizeof where),
                tr(page, ": "), say(page, findings->items[i].text, text, sizeof text));
}

/* ---- what was not measured ---------------------------------------------------------------------
 */

/* The reason without the way to measure it, which stands in a column of its own. */
static void split_reason(const struct nw_audit_row *row, char *why, size_t size)
{
    const size_t length = strlen(row->reason), tail = strlen(row->how);

    snprintf(why, size, "%s", row->reason);
    if (tail == 0 || tail > length || strcmp(row->reason + length - tail, row->how) != 0)
        return;
    size_t cut = length - tail;

    while (cut > 0 && strchr(" ;:", row->reason[cut - 1]) != NULL)
        cut--;
    if (cut < size)
        why[cut] = '\0';
}

static void put_unmeasured(FILE *stream, const struct nw_letter_page *page)
{
    static const char *const titles[] = {"Point", "In the offer", "Why not", "How to measure it"};
    const struct nw_audit *audit = page->letter->audit;

    if (nw_audit_count(audit, NW_AUDIT_NOT_MEASURED) == 0)
        return;
    fprintf(stream, "\n## %s\n\n", tr(page, "What was not measured"));
    put_head(stream, page, titles, sizeof titles / sizeof *titles);
    for (size_t i = 0; i < audit->row_count; i++) {
        const struct nw_audit_row *row = &audit->rows[i];
        char why[400], offer[300], reason[1200], how[900];

        if (row->verdict != NW_AUDIT_NOT_MEASURED)
            continue;
        split_reason(row, why, sizeof why);
        put_row(stream,
                (const char *[]){tr(page, row->claim), quoted(page, row, offer, sizeof offer),
                                 why[0] != '\0' ? say(page, why, reason, sizeof reason)
                                                : tr(page, "nothing was read of it"),
                                 row->how[0] != '\0' ? say(page, row->how, how, sizeof how)
                                                     : tr(page, "as the reason says")},
                4);
    }
    fprintf(stream, "\n%s\n",
            tr(page, "What was not measured is no shortfall. Both of us can measure it with the "
                     "commands above; please do, or tell us when we may."));
}

/* ---- the page ----------------------------------------------------------------------------------
 */

static void put_summary(FILE *stream, const struct nw_letter_page *page)
{
    const struct nw_audit *audit = page->letter->audit;
    const struct nw_quote *quote = &audit->quote;

    fprintf(stream, "# %s\n\n", tr(page, "Acceptance test of your offer"));
    put_item(stream, page, "To", quote->vendor);
    put_item(stream, page, "Date of the offer", quote->date);
    put_item(stream, page, "Note on the offer", quote->note);
    put_item(stream, page, "Tested on", page->tested);
    fputc('\n', stream);
    fprintf(stream,
            tr(page, "We held your offer against the machines, point by point. Points: %zu. Met: "
                     "%zu. Short: %zu. Not measured: %zu."),
            audit->row_count, nw_audit_count(audit, NW_AUDIT_MET),
            nw_audit_count(audit, NW_AUDIT_SHORT), nw_audit_count(audit, NW_AUDIT_NOT_MEASURED));
    fputc('\n', stream);
    if (audit->simulated)
        fprintf(stream, "\n> **%s** %s\n", tr(page, "SIMULATED."),
                tr(page, "Figures marked (simulated) come from a pretended machine and are no "
                         "measurement. Do not send this letter to a vendor."));
}

nw_rc nw_letter_check_language(const char *language)
{
    const struct nw_language *found_language;
    char accepted[64];

    if (nw_language_find(language, &found_language) == NW_OK)
        return NW_OK;
    return nw_fail(NW_EUSAGE, "there is no letter in \"%.40s\"; accepted: %s", language,
                   nw_language_names(accepted, sizeof accepted));
}

nw_rc nw_report_letter(FILE *stream, const struct nw_letter *letter)
{
    struct nw_letter_page page = {
        .letter = letter,
        .names = {.audit = letter->audit, .keep = letter->keep_names},
    };

    NW_TRY(nw_language_find(letter->language, &page.language));
    nw_letter_date(&page);
    put_summary(stream, &page);
    put_all_short(stream, &page);
    put_points(stream, &page);
    put_findings(stream, &page);
    put_unmeasured(stream, &page);
    nw_letter_how(stream, &page);
    fprintf(stream, "\n%s\n",
            tr(&page, "Every measurement can be repeated with the same commands; the raw records "
                      "are kept and we will send them on request. We are glad to repeat the test "
                      "together with you. Thank you for your answer, point by point."));
    if (ferror(stream))
        return nw_fail(NW_EIO, "the letter could not be written: %s",
                       errno != 0 ? strerror(errno) : "the output failed");
    return NW_OK;
}
