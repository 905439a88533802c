/* How the figures of a letter came about: each run with its tool, hosts and command. */
#include <stdarg.h>
#include <string.h>

#include "base/units.h"
#include "report/letter_parts.h"

static const char *tr(const struct nw_letter_page *page, const char *text)
{
    return nw_words(page->language, text);
}

void nw_letter_date(struct nw_letter_page *page)
{
    const struct nw_results *results = page->letter->results;
    const char *first = "", *last = "";

    for (size_t i = 0; results != NULL && i < results->run_count; i++) {
        const char *started = results->runs[i].context.started;

        if (started[0] == '\0')
            continue;
        if (first[0] == '\0' || strcmp(started, first) < 0)
            first = started;
        if (strcmp(started, last) > 0)
            last = started;
    }
    if (strncmp(first, last, 10) == 0)
        snprintf(page->tested, sizeof page->tested, "%.10s", first);
    else
        snprintf(page->tested, sizeof page->tested, "%.10s \xE2\x80\x93 %.10s", first, last);
}

struct command {
    char *text;
    size_t size, used;
};

static void add(struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add(struct command *command, const char *format, ...)
{
    va_list arguments;

    if (command->used >= command->size)
        return;
    va_start(arguments, format);
    command->used += (size_t)vsnprintf(command->text + command->used, command->size - command->used,
                                       format, arguments);
    va_end(arguments);
}

/* The options of a plan that say what was measured; the rest is the tool's own habit. */
static void command_of(const struct nw_context *context, char *text, size_t size)
{
    static const struct {
        const char *key, *option;
    } texts[] = {{"cases", "--cases"}, {"collectives", "--collectives"}, {"lanes", "--lanes"}};
    static const struct {
        const char *key, *option;
    } numbers[] = {{"minbytes", "-b"}, {"maxbytes", "-e"}, {"stepfactor", "-f"}};
    struct command command = {text, size, 0};
    const json_t *burn = json_object_get(context->plan, "burn");

    add(&command, "mpirun -np %d nodeworth bench", context->rank_count);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *value = json_string_value(json_object_get(context->plan, texts[i].key));

        if (value != NULL && value[0] != '\0')
            add(&command, " %s %s", texts[i].option, value);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const json_t *value = json_object_get(context->plan, numbers[i].key);

        if (json_integer_value(value) > 0)
            add(&command, " %s %lld", numbers[i].option, (long long)json_integer_value(value));
    }
    if (json_number_value(burn) > 0)
        add(&command, " --burn %.4gs", json_number_value(burn));
}

static void put_hosts(FILE *stream, const struct nw_letter_page *page,
                      const struct nw_context *context)
{
    char name[96];

    for (int i = 0; context->hosts != NULL && i < context->host_count; i++)
        fprintf(stream, "%s%s", i > 0 ? ", " : "",
                nw_names_hide(&page->names, context->hosts[i].name, name, sizeof name));
}

static void put_run(FILE *stream, const struct nw_letter_page *page, const struct nw_run *run)
{
    const struct nw_context *context = &run->context;
    char command[600], file[256], text[400];
    size_t library = strcspn(context->library, "(");

    while (library > 0 && context->library[library - 1] == ' ')
        library--;

    fprintf(stream, "- %s %s%s%.19s", context->tool, context->tool_version,
            context->started[0] != '\0' ? ", " : "", context->started);
    if (library > 0)
        fprintf(stream, ", %.*s", (int)library, context->library);
    fprintf(stream, tr(page, "; ranks: %d"), context->rank_count);
    fprintf(stream, tr(page, "; hosts: %d"), context->host_count);
    if (context->hosts != NULL) {
        fputs(" (", stream);
        put_hosts(stream, page, context);
        fputs(")", stream);
    }
    fprintf(stream, tr(page, "; records: %zu"), run->record_count);
    if (context->simulated)
        fputs(tr(page, " (simulated)"), stream);
    if (context->source[0] != '\0') {
        snprintf(text, sizeof text, "%s",
                 nw_names_file(&page->names, context->source, file, sizeof file));
        fprintf(stream, "\n  %s`%s`\n", tr(page, "Log: "), text);
    } else if (context->plan != NULL) {
        command_of(context, command, sizeof command);
        fprintf(stream, "\n  %s`%s`\n", tr(page, "Command: "), command);
    } else {
        fputc('\n', stream);
    }
}

void nw_letter_how(FILE *stream, const struct nw_letter_page *page)
{
    const struct nw_letter *letter = page->letter;
    char name[256];

    fprintf(stream, "\n## %s\n\n", tr(page, "How it was measured"));
    for (size_t i = 0; letter->results != NULL && i < letter->results->run_count; i++)
        put_run(stream, page, &letter->results->runs[i]);
    for (size_t i = 0; i < letter->topo_count; i++) {
        const struct nw_topo *topo = letter->topos[i];

        fprintf(stream, "- %s%s\n", tr(page, "Hardware as the machine lists it: "),
                topo->host[0] != '\0'
                    ? nw_names_hide(&page->names, topo->host, name, sizeof name)
                    : nw_names_file(&page->names, topo->source, name, sizeof name));
    }
    fprintf(stream, "- %s %s\n", tr(page, "This letter was written by nodeworth"), letter->version);
    fprintf(stream, "\n%s\n",
            tr(page, "A time is that of the slowest rank, after a warm-up; every result was "
                     "checked for wrong elements. A rate is the plateau of the largest sizes, "
                     "never an average over sizes, and is held against what healthy machines "
                     "reach, not against the ceiling."));
}
