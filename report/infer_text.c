#include "report/infer_text.h"

#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"

#define GIB (1024.0 * 1024 * 1024)

struct cell {
    char text[64];
};

static const char *number(struct cell *cell, double value, const char *unit)
{
    char digits[32];

    if (!isfinite(value))
        return "–";
    snprintf(cell->text, sizeof cell->text, "%s%s", nw_format_sig(digits, value, 3), unit);
    return cell->text;
}

static const char *time_of(struct cell *cell, double ns)
{
    return ns >= 1e9 ? number(cell, ns / 1e9, " s") : number(cell, ns / 1e6, " ms");
}

static const char *split_of(struct cell *cell, const struct nw_infer *infer)
{
    size_t at = 0;

    cell->text[0] = '\0';
    if (infer->replica_count > 1)
        at += (size_t)snprintf(cell->text, sizeof cell->text, "%d copies", infer->replica_count);
    if (infer->tp > 1)
        at += (size_t)snprintf(cell->text + at, sizeof cell->text - at, "%sTP%d",
                               at > 0 ? " of " : "", infer->tp);
    if (infer->pp > 1)
        snprintf(cell->text + at, sizeof cell->text - at, "%sPP%d", at > 0 ? " " : "", infer->pp);
    return cell->text[0] != '\0' ? cell->text : "1 GPU";
}

static void add_row(struct nw_table *table, const struct nw_server *server,
                    const struct nw_infer *infer)
{
    struct cell split, weights, first, alone, sequences, token, rate, cost;
    char low[32], high[32], middle[32];

    if (!infer->fits) {
        number(&alone, infer->needed_bytes / GIB, " GiB");
        snprintf(rate.text, sizeof rate.text, "needs %.40s a GPU", alone.text);
        nw_table_row(table, (const char *[]){server->name, split_of(&split, infer),
                                             number(&weights, infer->weights_bytes / GIB, ""), "NO",
                                             "", "", "", rate.text, ""});
        return;
    }
    snprintf(rate.text, sizeof rate.text, "%s [%s, %s]",
             nw_format_sig(middle, infer->tokens_per_s, 3),
             nw_format_sig(low, infer->tokens_per_s_low, 3),
             nw_format_sig(high, infer->tokens_per_s_high, 3));
    snprintf(sequences.text, sizeof sequences.text, "%.0f %s", infer->sequences,
             infer->bound == NW_INFER_BY_LATENCY ? "(time)"
             : infer->bound == NW_INFER_BY_WISH  ? "(asked)"
                                                 : "(memory)");
    nw_table_row(table,
                 (const char *[]){server->name, split_of(&split, infer),
                                  number(&weights, infer->weights_bytes / GIB, ""),
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

static void print_verdict(FILE *stream, const struct nw_server *servers,
                          const struct nw_infer *infers, size_t count, const char *currency)
{
    const int cheap = least(infers, count, true), fast = least(infers, count, false);
    struct cell a, b;
    char text[400];

    if (fast < 0) {
        nw_print_wrapped(stream, "\n", "", "None of them holds the model within the limits given.");
        return;
    }
    snprintf(text, sizeof text, "Most tokens: %s, %s tokens/s.", servers[fast].name,
             number(&a, infers[fast].tokens_per_s, ""));
    if (cheap >= 0) {
        const size_t at = strlen(text);

        snprintf(text + at, sizeof text - at, " Cheapest: %s, %s%s%s per million output tokens.",
                 servers[cheap].name, number(&b, infers[cheap].cost_per_million_tokens, ""),
                 currency[0] != '\0' ? " " : "", currency);
    }
    nw_print_wrapped(stream, "\n", "", text);
}

static const char notes[] =
    "From data sheets: 85 % of the memory rate, the products' share of the peak by their shape, "
    "all-reduces by the link, 1.5 us between two kernels, 3 ms beside the model for a first token "
    "(assumed). Range: nine in ten of 58 published measurements lie in it (-33 to +10 %). "
    "Alone: tokens per second of one sequence. Sequences at once: what the memory holds, or what "
    "--max-token-time allows; their prompts are counted in. A prompt that comes alone waits for "
    "its first token as shown; behind others it waits longer.";

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

    fprintf(stream, "%s: %s parameters, %s weights · prompts of %llu tokens, answers of %llu\n\n",
            serving->net.name,
            nw_format_count(parameters, (double)nw_transformer_parameter_count(&serving->net)),
            serving->format->name, (unsigned long long)serving->prompt_tokens,
            (unsigned long long)serving->output_tokens);
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < count; i++)
        add_row(table, &servers[i], &infers[i]);
    NW_TRY(nw_table_print(table, stream));
    print_verdict(stream, servers, infers, count, currency);
    nw_print_wrapped(stream, "\n", "", notes);
    return NW_OK;
}
