#include "report/infer_text.h"

#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "model/compute.h"
#include "report/decide_text_parts.h"

struct server_name {
    char text[sizeof((struct nw_server *)NULL)->name + 12];
};

static const char *name_of(struct server_name *name, const struct nw_server *server)
{
    nw_print_to(name->text, sizeof name->text, "%s%s", server->name,
                server->simulated ? " SIMULATED" : "");
    return name->text;
}

static const char *number(struct nw_cell *cell, double value, const char *unit)
{
    char digits[32];

    if (!isfinite(value))
        return "–";
    nw_print_to(cell->text, sizeof cell->text, "%s%s", nw_format_sig(digits, value, 3), unit);
    return cell->text;
}

static const char *time_of(struct nw_cell *cell, double ns)
{
    return ns >= 1e9 ? number(cell, ns / 1e9, " s") : number(cell, ns / 1e6, " ms");
}

static const char *split_of(struct nw_cell *cell, const struct nw_infer *infer)
{
    size_t at = 0;

    cell->text[0] = '\0';
    if (infer->replica_count > 1)
        at += (size_t)nw_print_to(cell->text, sizeof cell->text, "%d copies", infer->replica_count);
    if (infer->tp > 1)
        at += (size_t)nw_print_to(cell->text + at, sizeof cell->text - at, "%sTP%d",
                                  at > 0 ? " of " : "", infer->tp);
    if (infer->pp > 1)
        nw_print_to(cell->text + at, sizeof cell->text - at, "%sPP%d", at > 0 ? " " : "",
                    infer->pp);
    return cell->text[0] != '\0' ? cell->text : "1 GPU";
}

static void add_row(struct nw_table *table, const struct nw_server *server,
                    const struct nw_infer *infer)
{
    struct nw_cell split, weights, first, alone, sequences, token, rate, cost;
    char low[32], high[32], middle[32];
    struct server_name name;

    nw_cell_gib(&weights, infer->weights_bytes);
    if (!infer->fits) {
        nw_print_to(rate.text, sizeof rate.text, "needs %.40s GiB a GPU",
                    nw_cell_gib(&alone, infer->needed_bytes));
        nw_table_row(table, (const char *[]){name_of(&name, server), split_of(&split, infer),
                                             weights.text, "NO", "", "", "", rate.text, ""});
        return;
    }
    nw_print_to(rate.text, sizeof rate.text, "%s [%s, %s]",
                nw_format_sig(middle, infer->tokens_per_s, 3),
                nw_format_sig(low, infer->tokens_per_s_low, 3),
                nw_format_sig(high, infer->tokens_per_s_high, 3));
    nw_print_to(sequences.text, sizeof sequences.text, "%.0f %s", infer->sequences,
                infer->bound == NW_INFER_BY_LATENCY ? nw_tr("(time)")
                : infer->bound == NW_INFER_BY_WISH  ? nw_tr("(asked)")
                                                    : nw_tr("(memory)"));
    nw_table_row(table,
                 (const char *[]){name_of(&name, server), split_of(&split, infer), weights.text,
                                  time_of(&first, infer->first_ns),
                                  number(&alone, 1e9 / infer->single.total_ns, ""), sequences.text,
                                  time_of(&token, infer->token_ns), rate.text,
                                  number(&cost, infer->cost_per_million_tokens, "")});
}

/* ---- the sentence -------------------------------------------------------------------------- */

static bool is_usable(const struct nw_infer *infer)
{
    return infer->fits && infer->fast_enough;
}

/* The one with the least of a figure among those within the limits; -1: none. */
static int least(const struct nw_infer *infers, size_t count, bool by_cost)
{
    int best = -1;

    for (size_t i = 0; i < count; i++) {
        const double value = by_cost ? infers[i].cost_per_million_tokens : -infers[i].tokens_per_s;

        if (!is_usable(&infers[i]) || !isfinite(value))
            continue;
        const struct nw_infer *other = best >= 0 ? &infers[best] : NULL;

        if (other == NULL ||
            value < (by_cost ? other->cost_per_million_tokens : -other->tokens_per_s))
            best = (int)i;
    }
    return best;
}

static bool any_fits(const struct nw_infer *infers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (infers[i].fits)
            return true;
    return false;
}

static void print_verdict(FILE *stream, const struct nw_server *servers,
                          const struct nw_infer *infers, size_t count, const char *currency)
{
    const int cheap = least(infers, count, true), fast = least(infers, count, false);
    char text[400];
    struct nw_say say = {.to = text, .size = sizeof text};
    struct server_name name;
    struct nw_cell cell;

    if (fast < 0) {
        nw_print_wrapped(stream, "\n", "",
                         any_fits(infers, count)
                             ? nw_tr("None of them holds the model within the limits given.")
                             : nw_tr("None of them holds the model."));
        return;
    }
    nw_say(&say, "Most tokens: %s, %s tokens/s.", name_of(&name, &servers[fast]),
           number(&cell, infers[fast].tokens_per_s, ""));
    if (cheap >= 0)
        nw_say(&say, " Cheapest: %s, %s%s%s per million output tokens.",
               name_of(&name, &servers[cheap]),
               number(&cell, infers[cheap].cost_per_million_tokens, ""),
               currency[0] != '\0' ? " " : "", currency);
    nw_print_wrapped(stream, "\n", "", text);
}

/* ---- where the figures come from ----------------------------------------------------------- */

static double memory_percent(const struct nw_server *server)
{
    return 100 * server->platform.assumptions.value[NW_CONSTANT_HBM_SHARE];
}

static void say_links(struct nw_say *say, const struct nw_infer *infer)
{
    if (infer->fits && infer->tp > 1)
        nw_say(say, "; all-reduces: %s", nw_cell_how(infer->all_reduce_how));
    if (infer->fits && infer->pp > 1)
        nw_say(say, "; from stage to stage: %s", nw_cell_how(infer->stage_how));
}

static void print_measured(FILE *stream, const struct nw_server *server,
                           const struct nw_infer *infer)
{
    const struct nw_measured *measured = &server->platform.measured;
    char text[400];
    struct nw_say say = {.to = text, .size = sizeof text};
    struct server_name name;

    nw_say(&say, "%s: %.0f %% of the data sheet's memory rate (%s); products: %s",
           name_of(&name, server), memory_percent(server),
           measured->memory.known ? nw_tr("measured") : nw_tr("assumed"),
           measured->product_count > 0 ? nw_tr("measured")
                                       : nw_tr("share of the peak by their shape"));
    say_links(&say, infer);
    nw_say(&say, ".%s", server->simulated ? nw_tr(" No statement about a machine.") : "");
    nw_print_wrapped(stream, "", "  ", text);
}

static const char reading[] =
    "Alone: tokens per second of one sequence. Sequences at once: what the memory holds, or what "
    "--max-token-time allows; their prompts are counted in. A prompt that comes alone waits for "
    "its first token as shown; behind others it waits longer.";

static void print_notes(FILE *stream, const struct nw_server *servers,
                        const struct nw_infer *infers, size_t count)
{
    const struct nw_server *sheet = NULL; /* the first without measurements */
    char text[1200];
    struct nw_say say = {.to = text, .size = sizeof text};
    bool sliced = false, measured = false;

    fputc('\n', stream);
    for (size_t i = 0; i < count; i++) {
        sliced = sliced || servers[i].sliced;
        measured = measured || servers[i].measured;
        if (servers[i].measured)
            print_measured(stream, &servers[i], &infers[i]);
        else if (sheet == NULL)
            sheet = &servers[i];
    }
    if (sheet != NULL)
        nw_say(&say,
               "%s data sheets: %.0f %% of the memory rate, the products' share of the peak by "
               "their shape, all-reduces by the link. ",
               measured ? nw_tr("The others from") : nw_tr("From"), memory_percent(sheet));
    nw_say(&say,
           "Assumed: %.2g us between two kernels, %.2g ms beside the model for a first token. ",
           NW_KERNEL_GAP_NS / 1e3, NW_REQUEST_NS / 1e6);
    if (sliced)
        nw_say(&say, "The memory of MIG slices is recalled, not read off a machine (nvidia-smi mig "
                     "-lgip lists it). ");
    nw_say(&say,
           "Range: %.0f to %+.0f %%, chosen on 58 published measurements, of which nine in ten lie "
           "in it. %s",
           100 / NW_INFER_SLOWER - 100, 100 * NW_INFER_FASTER - 100, reading);
    nw_print_wrapped(stream, measured ? "\n" : "", "", text);
}

nw_rc nw_report_infer(FILE *stream, const struct nw_serving *serving,
                      const struct nw_server *servers, const struct nw_infer *infers, size_t count,
                      const char *currency)
{
    static const struct nw_column columns[] = {
        {"server", NW_LEFT},    {"split", NW_LEFT},
        {"GiB", NW_RIGHT},      {"first", NW_RIGHT},
        {"alone", NW_RIGHT},    {"at once", NW_RIGHT},
        {"between", NW_RIGHT},  {"tokens/s [range]", NW_RIGHT},
        {"per 10^6", NW_RIGHT},
    };
    struct nw_table *table;
    char parameters[32];

    nw_print(stream, "%s: %s parameters, %s weights · prompts of %llu tokens, answers of %llu\n\n",
             serving->net.name,
             nw_format_count(parameters, (double)nw_transformer_parameter_count(&serving->net)),
             serving->format->name, (unsigned long long)serving->prompt_tokens,
             (unsigned long long)serving->output_tokens);
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < count; i++)
        add_row(table, &servers[i], &infers[i]);
    NW_TRY(nw_table_print(table, stream));
    print_verdict(stream, servers, infers, count, currency);
    print_notes(stream, servers, infers, count);
    return NW_OK;
}
