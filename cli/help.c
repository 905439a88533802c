#include "cli/help.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/words.h"

enum { PAGE_WIDTH = 79, HELP_COLUMN = 29 }; /* as argp has them */

const struct argp_option nw_help_lang_row = {
    .name = "lang",
    .key = NW_OPTION_KEY_BASE - 1,
    .arg = "en|zh",
    .doc = "the language of what is printed; without it, that of LC_ALL, LC_MESSAGES or LANG",
    .group = -1,
};

static void put_paragraphs(FILE *stream, const char *text, int indent)
{
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        char *line = strndup(text, length);
        char *wrapped = line != NULL ? nw_text_wrap(line, PAGE_WIDTH - indent) : NULL;

        for (const char *at = wrapped != NULL ? wrapped : ""; *at != '\0';) {
            const size_t piece = strcspn(at, "\n");

            fprintf(stream, "%.*s\n", (int)piece, at);
            at += piece;
            if (*at == '\n')
                fprintf(stream, "%*s", indent, *++at != '\0' ? "" : "");
        }
        if (length == 0)
            fputc('\n', stream);
        free(wrapped);
        free(line);
        text += length + (text[length] == '\n');
    }
}

static void put_option(FILE *stream, int letter, const char *name, const char *argument,
                       const char *help)
{
    char left[200];

    if (letter > 0 && letter < 128)
        snprintf(left, sizeof left, "  -%c, --%s%s%s", letter, name, argument != NULL ? "=" : "",
                 argument != NULL ? argument : "");
    else
        snprintf(left, sizeof left, "      --%s%s%s", name, argument != NULL ? "=" : "",
                 argument != NULL ? argument : "");
    fputs(left, stream);
    const int width = nw_text_width(left);

    if (width >= HELP_COLUMN)
        fprintf(stream, "\n%*s", HELP_COLUMN, "");
    else
        fprintf(stream, "%*s", HELP_COLUMN - width, "");
    const char *said = help != NULL ? nw_tr(help) : "\n";

    put_paragraphs(stream, said == help ? nw_spoken(help) : said, HELP_COLUMN); /* with a figure */
}

static void put_row(FILE *stream, const struct nw_option *row)
{
    if (row->name == NULL)
        fprintf(stream, "\n %s\n", row->help != NULL ? nw_tr(row->help) : "");
    else
        put_option(stream, row->key, row->name,
                   row->type == NW_OPTION_FLAG ? NULL
                   : row->argument != NULL     ? row->argument
                                               : "VALUE",
                   row->help);
}

void nw_help_print(FILE *stream, const char *title, const struct nw_cli *cli)
{
    const char *doc = cli->doc != NULL ? nw_tr(cli->doc) : "";
    const size_t before = strcspn(doc, "\v");
    char *first = strndup(doc, before);

    nw_print(stream, "Usage: %s [OPTION...] %s\n", title,
             cli->arguments != NULL ? cli->arguments : "");
    put_paragraphs(stream, first != NULL ? first : "", 0);
    if (cli->row_count > 0 && cli->rows[0].name != NULL)
        fputc('\n', stream);
    for (size_t i = 0; i < cli->row_count; i++)
        put_row(stream, &cli->rows[i]);
    fputc('\n', stream);
    put_option(stream, '?', "help", NULL, "Give this help list");
    put_option(stream, 0, nw_help_lang_row.name, nw_help_lang_row.arg, nw_help_lang_row.doc);
    put_option(stream, 0, "usage", NULL, "Give a short usage message");
    put_option(stream, 'V', "version", NULL, "Print program version");
    if (doc[before] == '\v') {
        fputc('\n', stream);
        put_paragraphs(stream, doc + before + 1, 0);
    }
    free(first);
}

void nw_help_print_usage(FILE *stream, const char *title, const struct argp *argp)
{
    static const char english[] = "Usage: ";
    char *text = NULL, name[64];
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);

    if (memory == NULL)
        return;
    snprintf(name, sizeof name, "%s", title);
    argp_help(argp, memory, ARGP_HELP_USAGE, name);
    fclose(memory);
    const bool known = strncmp(text, english, sizeof english - 1) == 0;

    fprintf(stream, "%s%s", known ? nw_tr("Usage: ") : "",
            known ? text + sizeof english - 1 : text);
    free(text);
}

error_t nw_help_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    FILE *const real = stderr;
    char *said = NULL;
    size_t size = 0;
    FILE *kept = open_memstream(&said, &size);

    if (kept == NULL)
        return argp_parse(argp, argc, argv, 0, NULL, input);
    stderr = kept; /* getopt writes there and nowhere else */
    const error_t error = argp_parse(argp, argc, argv, ARGP_NO_EXIT, NULL, input);

    stderr = real;
    fclose(kept);
    if (size > 0) {
        for (char *line = strtok(said, "\n"); line != NULL && line[0] != 'T';
             line = strtok(NULL, "\n"))
            fprintf(stderr, "%s\n", nw_spoken(line)); /* up to "Try ... --help" */
        nw_print(stderr, "More is said by %s --help\n", argv[0]);
        exit(2);
    }
    free(said);
    return error;
}
