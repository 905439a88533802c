/* Man pages (man(7)), one for the program and one a command. Every text is looked up in the
 * language's catalogue as a whole, as --help does; what has no translation stays English. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/generate.h"

struct page {
    FILE *stream;
    const struct nw_language *language;
};

static const char *tr(const struct page *page, const char *text)
{
    return nw_words(page->language, text);
}

/* ---- roff --------------------------------------------------------------------------------------
 */

/* U+3000 to U+FFFF: Chinese characters and their marks. */
static bool is_wide(const char *at)
{
    return (unsigned char)at[0] >= 0xE3 && (unsigned char)at[0] <= 0xEF;
}

static bool is_among(const char *at, const char *const *marks)
{
    for (; *marks != NULL; marks++)
        if (strncmp(at, *marks, strlen(*marks)) == 0)
            return true;
    return false;
}

/* In Chinese a line may break between any two characters, also beside a foreign word, which roff is
 * told: its own rules for that are loaded by few. Not before a closing mark nor behind an opening
 * one. */
static bool may_break(const char *text, const char *at)
{
    static const char *const closing[] = {"，", "。", "；", "：", "、", "）", "”", "？", "！",
                                          "》", ",",  ".",  ";",  ":",  ")",  "]", "/",  NULL};
    static const char *const opening[] = {"（", "“", "《", NULL};
    const char *before = at;

    if (at == text || *at == ' ' || at[-1] == ' ' || ((unsigned char)*at & 0xC0) == 0x80)
        return false;
    do
        before--;
    while (before > text && ((unsigned char)*before & 0xC0) == 0x80);
    return (is_wide(at) || is_wide(before)) && !is_among(at, closing) && !is_among(before, opening);
}

/* As running text; `fixed`: within .EX, where nothing is joined or broken. Options keep their ASCII
 * hyphens, so that they can be copied. */
static void put(const struct page *page, const char *text, size_t length, bool fixed)
{
    bool line_begins = true;

    for (const char *at = text; at < text + length; at++) {
        if (line_begins && (*at == '.' || *at == '\''))
            fputs("\\&", page->stream);
        if (!fixed && may_break(text, at))
            fputs("\\:", page->stream);
        if (*at == '\\')
            fputs("\\e", page->stream);
        else if (*at == '-')
            fputs("\\-", page->stream);
        else if (*at == '^')
            fputs("\\(ha", page->stream);
        else if (*at == '~')
            fputs("\\(ti", page->stream);
        else
            fputc(*at, page->stream);
        line_begins = *at == '\n';
    }
}

static void put_text(const struct page *page, const char *text)
{
    put(page, text, strlen(text), false);
}

/* A .B or .I argument. */
static void put_quoted(const struct page *page, const char *request, const char *text)
{
    fprintf(page->stream, "%s \"", request);
    put(page, text, strcspn(text, "\n"), true);
    fprintf(page->stream, "\"\n");
}

static void heading(const struct page *page, const char *title)
{
    put_quoted(page, ".SH", title);
}

/* One line, which may be within a paragraph or, indented, of an example. */
static void put_line(const struct page *page, const char *line, size_t length, bool *example)
{
    const bool indented = length > 2 && line[0] == ' ' && line[1] == ' ';

    if (indented != *example)
        fputs(indented ? ".PP\n.EX\n" : ".EE\n.PP\n", page->stream);
    *example = indented;
    if (length == 0 && !indented) {
        fputs(".PP\n", page->stream);
        return;
    }
    put(page, line, length, indented);
    fputc('\n', page->stream);
}

/* Paragraphs with blank lines between them, as in --help. */
static void paragraphs(const struct page *page, const char *text, size_t length)
{
    const char *end = text + length;
    bool example = false, blank = false;

    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const size_t line = (size_t)((stop != NULL ? stop : end) - text);

        if (line == 0) {
            blank = true;
        } else {
            const bool indented = line > 2 && text[0] == ' ' && text[1] == ' ';

            if (blank && !example && !indented)
                fputs(".PP\n", page->stream);
            put_line(page, text, line, &example);
            blank = false;
        }
        text += line + (stop != NULL);
    }
    if (example)
        fputs(".EE\n", page->stream);
}

static void title(const struct page *page, const struct nw_description *all, const char *command)
{
    fprintf(page->stream, ".\\\" Written by `nodeworth generate man`\n.TH \"NODEWORTH");
    if (command != NULL)
        fputs("\\-", page->stream);
    for (; command != NULL && *command != '\0'; command++)
        fputc(toupper((unsigned char)*command), page->stream);
    fprintf(page->stream, "\" 1 \"%s\" \"nodeworth ", all->date != NULL ? all->date : "");
    put(page, all->version, strlen(all->version), true);
    fprintf(page->stream, "\" \"");
    put(page, tr(page, "User Commands"), strlen(tr(page, "User Commands")), true);
    fprintf(page->stream, "\"\n");
    /* no spread-out lines: commands and paths are long words */
    fprintf(page->stream, ".nh\n.ad l\n");
}

/* ---- a command ---------------------------------------------------------------------------------
 */

static void option(const struct page *page, const struct nw_described_option *row)
{
    fprintf(page->stream, ".TP\n");
    if (row->letter != NULL)
        fprintf(page->stream, "\\fB\\-%s\\fR, ", row->letter);
    fprintf(page->stream, "\\fB\\-\\-");
    put(page, row->name, strlen(row->name), true);
    fprintf(page->stream, "\\fR");
    if (row->argument != NULL) {
        const char *argument = tr(page, row->argument);

        fprintf(page->stream, "=\\fI");
        put(page, argument, strlen(argument), true);
        fprintf(page->stream, "\\fR");
    }
    fputc('\n', page->stream);
    put_text(page, tr(page, row->help != NULL ? row->help : ""));
    fputc('\n', page->stream);
    if (json_array_size(row->choices) == 0)
        return;
    fprintf(page->stream, ".br\n");
    put_text(page, tr(page, "Accepted:"));
    for (size_t i = 0; i < json_array_size(row->choices); i++) {
        const char *choice = json_string_value(json_array_get(row->choices, i));

        fprintf(page->stream, " ");
        put(page, choice, strlen(choice), true);
    }
    fputc('\n', page->stream);
}

static void options(const struct page *page, const struct nw_described_command *command,
                    const struct nw_described_command *common)
{
    heading(page, tr(page, "OPTIONS"));
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].name != NULL)
            option(page, &command->options[i]);
        else
            put_quoted(page, ".SS", tr(page, command->options[i].heading));
    put_quoted(page, ".SS", tr(page, "Of every command"));
    for (size_t i = 0; i < common->option_count; i++)
        option(page, &common->options[i]);
}

static void see_also(const struct page *page, const struct nw_description *all,
                     const struct nw_described_command *but)
{
    heading(page, tr(page, "SEE ALSO"));
    if (but != NULL)
        fprintf(page->stream, ".BR nodeworth (1),\n");
    for (size_t i = 0; i < all->command_count; i++)
        if (&all->commands[i] != but)
            fprintf(page->stream, ".BR nodeworth\\-%s (1),\n", all->commands[i].name);
    fprintf(page->stream, ".BR mpirun (1)\n");
}

static void name(const struct page *page, const char *command, const char *summary)
{
    heading(page, tr(page, "NAME"));
    fprintf(page->stream, "nodeworth%s%s \\- ", command != NULL ? "\\-" : "",
            command != NULL ? command : "");
    put_text(page, summary);
    fputc('\n', page->stream);
}

/* "init [FILE] | check FILE" are two lines. */
static void synopsis(const struct page *page, const struct nw_described_command *command)
{
    const char *arguments = command->arguments != NULL ? command->arguments : "";

    heading(page, tr(page, "SYNOPSIS"));
    for (bool first = true; first || *arguments != '\0'; first = false) {
        const size_t length = strcspn(arguments, "|");

        fprintf(page->stream, "%s\\fBnodeworth %s\\fR [", first ? "" : ".br\n", command->name);
        put_text(page, tr(page, "OPTION..."));
        fputs("] ", page->stream);
        put(page, arguments, length, true);
        fputc('\n', page->stream);
        arguments += length;
        arguments += strspn(arguments, "| ");
    }
}

void nw_manual_of_command(FILE *stream, const struct nw_description *all,
                          const struct nw_described_command *command,
                          const struct nw_language *language)
{
    const struct page page = {stream, language};
    const char *about = command->about != NULL ? tr(&page, command->about) : "";
    const char *more = strchr(about, '\v');

    title(&page, all, command->name);
    name(&page, command->name, tr(&page, command->summary));
    synopsis(&page, command);
    heading(&page, tr(&page, "DESCRIPTION"));
    paragraphs(&page, about, more != NULL ? (size_t)(more - about) : strlen(about));
    options(&page, command, &all->common);
    if (more != NULL) {
        heading(&page, tr(&page, "NOTES"));
        paragraphs(&page, more + 1, strlen(more + 1));
    }
    see_also(&page, all, command);
}

/* ---- the program -------------------------------------------------------------------------------
 */

static const struct {
    const char *name, *about;
} exit_codes[] =
    {
        {"0", "everything is as it should be"},
        {"1", "a claim of the quote is short, data is wrong, a host has a failure, or a result got "
              "worse"},
        {"2", "bad input; the message says what is accepted"},
        {"3", "inconclusive: not enough could be measured to say"},
        {"4", "the run itself broke: a rank or a lane died or hung; what was measured is on disk"},
},
  environment[] = {
      {"LC_ALL, LC_MESSAGES, LANG", "language of what is printed for people: English or Chinese; "
                                    "JSON, CSV and numbers are the same in all"},
      {"CUDA_VISIBLE_DEVICES", "the GPUs that are used, as for every CUDA program"},
      {"NW_NCCL_LIBRARY", "the NCCL that is opened instead of libnccl.so.2"},
      {"NW_CUBLAS_LIBRARY", "the cuBLAS that is opened instead of the one that is found"},
      {"SOURCE_DATE_EPOCH", "time that results say they began at, for files that can be repeated"},
      {"NO_COLOR", "no colour on a terminal"},
};

static void named(const struct page *page, const char *word, const char *about)
{
    fprintf(page->stream, ".TP\n");
    put_quoted(page, ".B", word);
    put_text(page, tr(page, about));
    fputc('\n', page->stream);
}

static void plain(const struct page *page, const char *text)
{
    const char *said = tr(page, text);

    paragraphs(page, said, strlen(said));
}

static void program_synopsis(const struct page *page)
{
    heading(page, tr(page, "SYNOPSIS"));
    fprintf(page->stream, "\\fBnodeworth\\fR \\fICOMMAND\\fR [");
    put_text(page, tr(page, "OPTION..."));
    fprintf(page->stream, "]\n.br\n\\fBmpirun\\fR \\-np \\fIRANKS\\fR [\\-\\-hostfile "
                          "\\fIHOSTS\\fR] \\fBnodeworth\\fR run|check|bench [");
    put_text(page, tr(page, "OPTION..."));
    fprintf(page->stream, "]\n");
}

void nw_manual_of_all(FILE *stream, const struct nw_description *all,
                      const struct nw_language *language)
{
    const struct page page = {stream, language};

    title(&page, all, NULL);
    name(&page, NULL,
         tr(&page, "is a rented GPU node what was quoted, how long is a training step on it, is a "
                   "second node worth its price"));
    program_synopsis(&page);
    heading(&page, tr(&page, "DESCRIPTION"));
    plain(&page,
          "nodeworth measures the nodes of an mpirun, holds what it measured against the vendor's "
          "quote and against physics, and turns it into memory, step time and cost of a training "
          "job, and into one sentence: a second node pays, or it does not.\n\n"
          "A machine without a GPU, without RDMA or without NCCL is an ordinary case: what can be "
          "measured is measured, the rest is said not to be.");
    heading(&page, tr(&page, "COMMANDS"));
    for (size_t i = 0; i < all->command_count; i++)
        named(&page, all->commands[i].name, all->commands[i].summary);
    plain(&page, "\nEach command has a page of its own and --help.");
    heading(&page, tr(&page, "EXIT STATUS"));
    for (size_t i = 0; i < sizeof exit_codes / sizeof exit_codes[0]; i++)
        named(&page, exit_codes[i].name, exit_codes[i].about);
    heading(&page, tr(&page, "ENVIRONMENT"));
    for (size_t i = 0; i < sizeof environment / sizeof environment[0]; i++)
        named(&page, environment[i].name, environment[i].about);
    heading(&page, tr(&page, "EXAMPLES"));
    plain(&page, "Measure two nodes of 8 GPUs, judge them and decide:");
    plain(&page, "\n  mpirun -np 16 --hostfile hosts nodeworth run --model llama-2-7b --quote "
                 "vendor.ini -o out/\n");
    plain(&page, "Nothing measured yet, data sheets alone:");
    plain(&page, "\n  nodeworth predict --model llama-3-8b --gpu h100-sxm --nodes 1,2,4 --nic-gbps "
                 "3200\n");
    heading(&page, tr(&page, "REPORTING BUGS"));
    plain(&page, "Attach what nodeworth env prints: it holds no names of hosts, no keys and no "
                 "tokens.");
    see_also(&page, all, NULL);
}
