/* Any bytes as text of a page, and as a results file made into one: nothing of them is markup, no
 * script but the page's own, valid UTF-8, bounded. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/html.h"
#include "report/html_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool truth)
{
    if (!truth)
        abort();
}

static size_t occurrences(const char *text, const char *what)
{
    size_t count = 0;

    for (; (text = strstr(text, what)) != NULL; text += strlen(what))
        count++;
    return count;
}

/* Neither tags nor quotes, no control character, no newline; every byte belongs to a character. */
static void check_text(const char *text)
{
    int behind = 0;

    demand(strpbrk(text, "<>\"'\n\r\t") == NULL);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        demand(*c >= 0x20 && *c != 0x7F);
        if ((*c & 0xC0) == 0x80)
            demand(behind-- > 0);
        else
            demand(behind == 0);
        if (*c >= 0xC0)
            behind = *c >= 0xF0 ? 3 : *c >= 0xE0 ? 2 : 1;
    }
    demand(behind == 0);
}

static void escape(const uint8_t *data, size_t size)
{
    char *input = malloc(size + 1), *out = NULL;
    size_t length;
    FILE *stream = open_memstream(&out, &length);

    demand(input != NULL && stream != NULL);
    memcpy(input, data, size);
    input[size] = '\0';
    nw_html_text(stream, input);
    fclose(stream);
    check_text(out);
    demand(length <= 8 * NW_HTML_TEXT_MAX);
    free(out);
    free(input);
}

static void check_page(const struct nw_results *results, const char *language)
{
    char *page = NULL;
    size_t length;
    FILE *stream = open_memstream(&page, &length);

    demand(stream != NULL);
    demand(nw_report_html(stream, &(struct nw_page){.version = "0",
                                                    .language = language,
                                                    .results = results}) == NW_OK);
    fclose(stream);
    demand(strlen(page) == length);
    demand(occurrences(page, "<script") == 1 && occurrences(page, "</script") == 1);
    demand(occurrences(page, "<style") == 1 && occurrences(page, "<main ") == 2);
    demand(occurrences(page, "<section") == occurrences(page, "</section"));
    demand(occurrences(page, "<table") == occurrences(page, "</table"));
    demand(occurrences(page, "<svg") == occurrences(page, "</svg"));
    demand(occurrences(page, " style=") == 0 && strstr(page, "nan\"") == NULL &&
           strstr(page, "inf\"") == NULL);
    free(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nw_results results = {0};

    escape(data, size);
    if (nw_results_read_data((const char *)data, size, "fuzz", &results) != NW_OK)
        return 0;
    check_page(&results, size % 2 == 0 ? "en" : "zh");
    nw_results_free(&results);
    return 0;
}
