#include "report/html_parts.h"

#include <stdarg.h>
#include <string.h>

const char *nw_html_id(const struct nw_html *html, const char *name, char id[64])
{
    snprintf(id, 64, "%s-%s", html->language->key, name);
    return id;
}

void nw_html_begin(const struct nw_html *html, const char *name, const char *title)
{
    char id[64];

    nw_html_id(html, name, id);
    fprintf(html->stream, "<section id=\"%s\" aria-labelledby=\"%s-h\">\n<h2 id=\"%s-h\">", id, id,
            id);
    nw_html_text(html->stream, title);
    fputs("</h2>\n", html->stream);
}

void nw_html_end(const struct nw_html *html)
{
    fputs("</section>\n", html->stream);
}

void nw_html_heading(const struct nw_html *html, const char *title)
{
    fputs("<h3>", html->stream);
    nw_html_text(html->stream, title);
    fputs("</h3>\n", html->stream);
}

void nw_html_say(const struct nw_html *html, const char *class, const char *format, ...)
{
    char text[NW_HTML_TEXT_MAX + 64];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fputs("<p", html->stream);
    if (class != NULL)
        fprintf(html->stream, " class=\"%s\"", class);
    fputc('>', html->stream);
    nw_html_text(html->stream, text);
    fputs("</p>\n", html->stream);
}

/* Has it a character beyond Latin, Greek, Cyrillic and signs (U+3000 and up)? */
static bool is_other_script(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text >= 0xE3)
            return true;
    return false;
}

void nw_html_foreign(const struct nw_html *html, const char *sentence)
{
    char text[NW_HTML_TEXT_MAX + 8], said[2 * NW_HTML_TEXT_MAX];

    if (html->language->words == NULL) {
        nw_html_text(html->stream, sentence);
        return;
    }
    snprintf(text, sizeof text, "%s", sentence);
    nw_words_say(html->language, text, said, sizeof said);
    const bool same = strcmp(said, text) == 0 && !is_other_script(text);

    if (same)
        fputs("<span lang=\"en\">", html->stream);
    nw_html_text(html->stream, said);
    if (same)
        fputs("</span>", html->stream);
}

void nw_html_table(const struct nw_html *html, const char *caption,
                   const struct nw_html_column *columns, size_t count)
{
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=", html->stream);
    nw_html_attribute(html->stream, caption);
    fputs("><table><caption>", html->stream);
    nw_html_text(html->stream, caption);
    fputs("</caption><thead><tr>", html->stream);
    for (size_t i = 0; i < count; i++) {
        fprintf(html->stream, "<th scope=\"col\"%s>",
                columns[i].align == NW_RIGHT ? " class=\"n\"" : "");
        nw_html_text(html->stream, tr(html, columns[i].title));
        fputs("</th>", html->stream);
    }
    fputs("</tr></thead><tbody>\n", html->stream);
}

void nw_html_row(const struct nw_html *html, const struct nw_html_column *columns, size_t count,
                 const char *const *cells)
{
    fputs("<tr>", html->stream);
    for (size_t i = 0; i < count; i++) {
        const bool empty = cells[i] == NULL || cells[i][0] == '\0';

        fprintf(html->stream, i == 0 ? "<th scope=\"row\"%s>" : "<td%s>",
                columns[i].align == NW_RIGHT ? " class=\"n\"" : "");
        nw_html_text(html->stream, empty ? NW_DASH : cells[i]);
        fputs(i == 0 ? "</th>" : "</td>", html->stream);
    }
    fputs("</tr>\n", html->stream);
}

void nw_html_table_end(const struct nw_html *html)
{
    fputs("</tbody></table></div>\n", html->stream);
}

void nw_html_fold(const struct nw_html *html, const char *title)
{
    fputs("<details><summary>", html->stream);
    nw_html_text(html->stream, title);
    fputs("</summary>\n", html->stream);
}

void nw_html_fold_end(const struct nw_html *html)
{
    fputs("</details>\n", html->stream);
}

const char *nw_html_mark(const struct nw_html *html, bool simulated)
{
    return simulated ? tr(html, " (simulated)") : "";
}

void nw_html_figure(struct nw_html *html, const char *caption, char id[64])
{
    char name[32];

    snprintf(name, sizeof name, "chart%d", ++html->chart_count);
    nw_html_id(html, name, id);
    fputs("<figure><figcaption>", html->stream);
    nw_html_text(html->stream, caption);
    fputs("</figcaption>\n", html->stream);
}

void nw_html_legend(const struct nw_html *html, const char *const *names, size_t count)
{
    fputs("<ul class=\"legend\">", html->stream);
    for (size_t i = 0; i < count; i++) {
        fprintf(html->stream, "<li data-series=\"%zu\">", i);
        nw_svg_swatch(html->stream, i);
        fputs("<span>", html->stream);
        nw_html_text(html->stream, names[i]);
        fputs("</span></li>", html->stream);
    }
    fputs("</ul>\n", html->stream);
}

void nw_html_figure_end(const struct nw_html *html)
{
    fputs("</figure>\n", html->stream);
}
