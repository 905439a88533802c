#include "report/check_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "report/audit_text.h"

enum { TEXT_MAX = 2048 };

static const char *const state_keys[] = {
#define X(state, key, text) key,
    NW_CHECK_STATE_MAP(X)
#undef X
};
static const char *const state_texts[] = {
#define X(state, key, text) text,
    NW_CHECK_STATE_MAP(X)
#undef X
};
static const char *const verdict_keys[] = {
#define X(verdict, key) key,
    NW_CHECK_VERDICT_MAP(X)
#undef X
};

const char *nw_check_state_key(nw_check_state state)
{
    return state_keys[state];
}

const char *nw_check_verdict_key(nw_check_verdict verdict)
{
    return verdict_keys[verdict];
}

/* "nodeworth 0.1.0 check · 2 hosts × 8 NVIDIA H100 80GB HBM3 · 16 ranks · 1.2 s" */
static void print_title(FILE *stream, const struct nw_check_screen *screen)
{
    char text[TEXT_MAX], ranks[48] = "", elapsed[32], time[48] = "";

    if (screen->rank_count > 0)
        nw_print_to(ranks, sizeof ranks, " · %d rank%s", screen->rank_count,
                    screen->rank_count == 1 ? "" : "s");
    if (!isnan(screen->elapsed_ns))
        nw_print_to(time, sizeof time, " · %s", nw_format_ns(elapsed, screen->elapsed_ns));
    nw_print_to(text, sizeof text, "nodeworth %s · %zu host%s · %s%s%s%s", screen->version,
                screen->host_count, screen->host_count == 1 ? "" : "s", screen->machines, ranks,
                time, screen->simulated ? nw_tr(" · SIMULATED, no measurement") : "");
    nw_print_wrapped(stream, "", "  ", text);
    fputc('\n', stream);
}

static nw_rc print_rows(FILE *stream, const struct nw_check_screen *screen)
{
    static const struct nw_column columns[] = {
        {"", NW_LEFT}, {"what was read", NW_WRAP}, {"hosts", NW_WRAP}, {"state", NW_LEFT}};
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof *columns, &table));
    for (size_t i = 0; i < screen->row_count; i++) {
        const struct nw_check_row *row = &screen->rows[i];

        nw_table_row(table, (const char *[]){row->title, row->value[0] != '\0' ? row->value : "–",
                                             row->hosts, state_texts[row->state]});
    }
    return nw_table_print(table, stream);
}

static void paint(FILE *stream, bool colour, nw_severity severity)
{
    static const char *const codes[] = {[NW_FINDING_INFO] = "\033[36m",
                                        [NW_FINDING_WARN] = "\033[33m",
                                        [NW_FINDING_FAIL] = "\033[1;31m"};

    if (colour)
        fputs(codes[severity], stream);
    fputs(nw_tr(nw_severity_name(severity)), stream);
    if (colour)
        fputs("\033[0m", stream);
}

static void append(char *text, const char *before, const char *what, const char *after)
{
    const size_t used = strlen(text);

    if (what != NULL && what[0] != '\0')
        nw_print_to(text + used, TEXT_MAX - used, "%s%s%s", before, what, after);
}

/* " 1  failure  node1 gpu2: text. Effect: …. Do: …. Step: +0.31 s" */
static void print_finding(FILE *stream, const struct nw_finding *finding, size_t number,
                          bool colour)
{
    char text[TEXT_MAX] = "", step[64], ns[32];

    fprintf(stream, "%2zu  ", number);
    paint(stream, colour, finding->severity);
    fputc('\n', stream);
    append(text, "", finding->where, ": ");
    append(text, "", finding->text, "");
    append(text, ". Effect: ", finding->effect, "");
    if (!isnan(finding->step_ns)) {
        nw_print_to(step, sizeof step, "+%s per step", nw_format_ns(ns, finding->step_ns));
        append(text, ". Costs ", step, "");
    }
    append(text, ". Do: ", finding->remedy, "");
    nw_print_wrapped(stream, "    ", "    ", text);
}

static void print_findings(FILE *stream, const struct nw_check_screen *screen, bool colour)
{
    if (screen->findings->count == 0) {
        nw_print(stream, "\nNo findings.\n");
        return;
    }
    nw_print(stream, "\nFindings\n");
    for (size_t i = 0; i < screen->findings->count; i++)
        print_finding(stream, &screen->findings->items[i], i + 1, colour);
}

static void print_costs(FILE *stream, const struct nw_finding_costs *costs)
{
    if (costs == NULL || costs->text[0] == '\0')
        return;
    fputc('\n', stream);
    nw_print_wrapped(stream, "Step: ", "  ", costs->text);
}

/* Hosts that lack the same are named together. */
static bool told_before(const struct nw_findings *list, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(list->items[i].text, list->items[index].text) == 0)
            return true;
    return false;
}

static nw_rc print_not_checked(FILE *stream, const struct nw_findings *list)
{
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);

    if (memory == NULL)
        return nw_fail(NW_ENOMEM, "no memory for what was not checked");
    for (size_t i = 0; i < list->count; i++) {
        const char *what = list->items[i].text;
        bool named = false;

        if (told_before(list, i))
            continue;
        if (strncmp(what, "not checked: ", 13) == 0)
            what += 13;
        fputs(i > 0 ? ". " : "", memory);
        for (size_t j = i; j < list->count; j++)
            if (strcmp(list->items[j].text, list->items[i].text) == 0 &&
                list->items[j].where[0] != '\0') {
                nw_print(memory, "%s%s", named ? ", " : "", list->items[j].where);
                named = true;
            }
        nw_print(memory, "%s%s", named ? ": " : "", what);
        if (list->items[i].remedy != NULL)
            nw_print(memory, " (%s)", list->items[i].remedy);
    }
    if (fclose(memory) != 0) {
        free(text);
        return nw_fail(NW_ENOMEM, "no memory for what was not checked");
    }
    fputc('\n', stream);
    nw_print_wrapped(stream, "Not checked: ", "  ", text);
    free(text);
    return NW_OK;
}

nw_rc nw_report_check(FILE *stream, const struct nw_check_screen *screen, bool colour)
{
    static const char *const colours[] = {[NW_CHECK_FIT] = "\033[1;32m",
                                          [NW_CHECK_UNFIT] = "\033[1;31m",
                                          [NW_CHECK_UNKNOWN] = "\033[1;33m"};

    print_title(stream, screen);
    NW_TRY(print_rows(stream, screen));
    print_findings(stream, screen, colour);
    print_costs(stream, screen->costs);
    if (screen->audit != NULL) {
        fputc('\n', stream);
        NW_TRY(nw_report_audit_table(stream, screen->audit));
    }
    if (screen->not_checked->count > 0)
        NW_TRY(print_not_checked(stream, screen->not_checked));
    fputc('\n', stream);
    if (colour)
        fputs(colours[screen->verdict], stream);
    nw_print_wrapped(stream, "", "  ", screen->verdict_text);
    if (colour)
        fputs("\033[0m", stream);
    return NW_OK;
}
