/* Why, and where the answer turns. */
#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "report/decide_text_parts.h"

static const char *on_nodes(struct nw_cell *cell, const struct nw_choice *choice)
{
    nw_print_to(cell->text, sizeof cell->text, "%d node%s", choice->node_count,
                choice->node_count == 1 ? "" : "s");
    return cell->text;
}

/* ---- reasons ------------------------------------------------------------------------------- */

struct context {
    const struct nw_model *model;
    const struct nw_choice *base, *choice; /* base NULL: none */
    const struct nw_choice *smaller;       /* NULL: none */
};

static void tell_memory(struct nw_say *say, const struct context *context,
                        const struct nw_reason *reason)
{
    const bool unfit = reason->kind == NW_REASON_UNFIT;
    struct nw_cell nodes, least, card;

    nw_say(say, "memory: on %s the strategy that needs least takes %s GiB per GPU; the card has %s",
           on_nodes(&nodes, unfit ? context->choice : context->smaller),
           nw_cell_gib(&least, reason->value), nw_cell_gib(&card, reason->limit));
}

static void tell_time(struct nw_say *say, const struct context *context,
                      const struct nw_reason *reason)
{
    const bool too = reason->kind == NW_REASON_LATE_TOO;
    struct nw_cell nodes, value, limit;

    nw_say(say, "deadline: all tokens take %s on %s; %s are allowed",
           nw_cell_span(&value, reason->value),
           on_nodes(&nodes, too ? context->choice : context->base),
           nw_cell_span(&limit, reason->limit));
}

static void tell_step(struct nw_say *say, const struct context *context,
                      const struct nw_reason *reason)
{
    const bool too = reason->kind == NW_REASON_SLOW_TOO;
    struct nw_cell nodes, value, limit;

    nw_say(say, "step: %s on %s; --max-step is %s", nw_cell_part(&value, reason->value),
           on_nodes(&nodes, too ? context->choice : context->base),
           nw_cell_part(&limit, reason->limit));
}

static void tell_loading(struct nw_say *say, const struct context *context,
                         const struct nw_reason *reason)
{
    struct nw_cell nodes, value, limit;

    if (reason->kind == NW_REASON_SHARED_STORAGE)
        nw_say(say,
               "storage: %s take in %s, the shared storage gives %s on any node count; the step "
               "waits for it",
               on_nodes(&nodes, context->choice), nw_cell_rate(&value, reason->value),
               nw_cell_rate(&limit, reason->limit));
    else
        nw_say(say,
               "storage: the GPUs of %s could take in %s but read %s; a further node reads "
               "beside it",
               on_nodes(&nodes, context->base), nw_cell_rate(&value, reason->value),
               nw_cell_rate(&limit, reason->limit));
}

static void tell_cost(struct nw_say *say, const struct context *context,
                      const struct nw_reason *reason)
{
    const char *what =
        isfinite(context->model->job.tokens) ? nw_tr("the training") : nw_tr("a token");
    char more[32];

    if (reason->kind == NW_REASON_CHEAPER)
        nw_say(say, "cost: %s costs %.1f %% less", what, 100 * (1 - reason->value));
    else
        nw_say(say, "cost: %s costs %s %% more; %.0f %% more are worth the time won", what,
               nw_format_sig(more, 100 * (reason->value - 1), 3), 100 * (reason->limit - 1));
}

static void tell_faster(struct nw_say *say, const struct context *context,
                        const struct nw_reason *reason)
{
    struct nw_cell won;

    nw_say(say, "speed: %.2f× the tokens per second; %.2f× pay at this price", reason->value,
           reason->limit);
    if (isfinite(context->choice->time_ns))
        nw_say(say, "; the training ends %s earlier",
               nw_cell_span(&won, context->base->time_ns - context->choice->time_ns));
}

static void tell_wire(struct nw_say *say, const struct context *context,
                      const struct nw_reason *reason)
{
    (void)context;
    nw_say(say,
           "network: %.0f %% of each step wait for the wire; %.0f %% are the most that pays at "
           "equal prices",
           100 * reason->value, 100 * reason->limit);
}

static void tell_batch(struct nw_say *say, const struct context *context,
                       const struct nw_reason *reason)
{
    if (reason->kind == NW_REASON_BATCH && !isfinite(reason->limit)) {
        nw_say(say, "layout: %s", context->choice->problem);
        return;
    }
    if (reason->kind == NW_REASON_LARGER_BATCH)
        nw_say(say,
               "batch: it would pay with a global batch of %.0f sequences instead of %.0f "
               "(the same per GPU)",
               reason->value, reason->limit);
    else
        nw_say(say, "batch: %.0f sequences cannot be dealt to these GPUs; a multiple of %.0f can",
               reason->value, reason->limit);
}

static void tell_one_off(struct nw_say *say, const struct context *context,
                         const struct nw_reason *reason)
{
    struct nw_cell value, limit;

    (void)context;
    nw_say(say, "length: what is paid once is earned back from %s tokens on; this training has %s",
           nw_cell_count(&value, reason->value), nw_cell_count(&limit, reason->limit));
}

static void tell_failures(struct nw_say *say, const struct context *context,
                          const struct nw_reason *reason)
{
    struct nw_cell nodes;

    nw_say(say, "failures: %.1f %% of the time are kept, %.1f %% on %s", 100 * reason->value,
           100 * reason->limit, on_nodes(&nodes, context->base));
}

static void tell_unmeasured(struct nw_say *say, const struct context *context,
                            const struct nw_reason *reason)
{
    (void)context;
    (void)reason;
    nw_say(say, "network: nothing between nodes was measured or given");
}

typedef void tell_reason(struct nw_say *say, const struct context *context,
                         const struct nw_reason *reason);
static tell_reason *const tellers[NW_REASON_COUNT] = {
    [NW_REASON_MEMORY] = tell_memory,
    [NW_REASON_UNFIT] = tell_memory,
    [NW_REASON_DEADLINE] = tell_time,
    [NW_REASON_LATE_TOO] = tell_time,
    [NW_REASON_STEP] = tell_step,
    [NW_REASON_SLOW_TOO] = tell_step,
    [NW_REASON_LOADING] = tell_loading,
    [NW_REASON_SHARED_STORAGE] = tell_loading,
    [NW_REASON_CHEAPER] = tell_cost,
    [NW_REASON_COST] = tell_cost,
    [NW_REASON_FASTER] = tell_faster,
    [NW_REASON_WIRE] = tell_wire,
    [NW_REASON_BATCH] = tell_batch,
    [NW_REASON_LARGER_BATCH] = tell_batch,
    [NW_REASON_ONE_OFF] = tell_one_off,
    [NW_REASON_FAILURES] = tell_failures,
    [NW_REASON_UNMEASURED] = tell_unmeasured,
};

static void print_side(FILE *stream, const struct context *context, bool against)
{
    bool any = false;

    for (size_t i = 0; i < context->choice->reason_count; i++) {
        const struct nw_reason *reason = &context->choice->reasons[i];
        char text[400] = "";
        struct nw_say say = {.to = text, .size = sizeof text};

        if (nw_reason_is_against(reason->kind) != against)
            continue;
        if (!any)
            nw_print(stream, "\n%s %d nodes\n", against ? nw_tr("Against") : nw_tr("For"),
                     context->choice->node_count);
        any = true;
        tellers[reason->kind](&say, context, reason);
        nw_print_wrapped(stream, "  - ", "    ", text);
    }
}

void nw_report_reasons(FILE *stream, const struct nw_model *model,
                       const struct nw_decision *decision)
{
    const struct nw_choice *choice = &decision->choices[decision->headline];
    const struct context context = {
        .model = model,
        .base = decision->base < decision->count ? &decision->choices[decision->base] : NULL,
        .choice = choice,
        .smaller = decision->headline > 0 ? choice - 1 : NULL};

    print_side(stream, &context, false);
    print_side(stream, &context, true);
}

static void print_fit_ways(FILE *stream, const struct nw_decision *decision)
{
    if (decision->fit_way_count == 0)
        return;
    nw_print(stream, "\nOn %d node%s it would fit with\n", decision->fit_way_nodes,
             decision->fit_way_nodes == 1 ? "" : "s");
    for (size_t i = 0; i < decision->fit_way_count; i++) {
        const struct nw_fit_way *way = &decision->fit_ways[i];
        struct nw_cell memory;
        char text[640] = "";
        struct nw_say say = {.to = text, .size = sizeof text};

        nw_say(&say, "%s, %s: %s GiB", way->strategy->name, way->text,
               nw_cell_gib(&memory, way->memory_bytes));
        if (isfinite(way->time_ratio))
            nw_say(&say, ", %.2f× the GPU time per token", way->time_ratio);
        nw_print_wrapped(stream, "  - ", "    ", text);
    }
}

/* ---- where it turns ------------------------------------------------------------------------ */

static const char *wire_even(struct nw_cell *cell, const struct nw_choice *choice)
{
    char text[32];

    switch (choice->break_even) {
    case NW_BREAK_EVEN_AT:
        nw_print_to(cell->text, sizeof cell->text, "from %s",
                    nw_format_gb_per_s(text, choice->break_even_busbw_bytes_per_s));
        return cell->text;
    case NW_BREAK_EVEN_NEVER:
        return "at no speed";
    case NW_BREAK_EVEN_ALWAYS:
        return "at any speed";
    default:
        return "–";
    }
}

static const char *wire_now(struct nw_cell *cell, const struct nw_choice *choice)
{
    char text[32];

    if (!isfinite(choice->measured_busbw_bytes_per_s))
        return choice->pays == NW_PAYS_UNKNOWN ? nw_tr("not measured") : "–";
    nw_print_to(cell->text, sizeof cell->text, "%s",
                nw_format_gb_per_s(text, choice->measured_busbw_bytes_per_s));
    return cell->text;
}

static const char *price_even(struct nw_cell *cell, const struct nw_choice *choice)
{
    struct nw_cell money;

    if (choice->price_even == NW_BREAK_EVEN_NONE)
        return "–";
    if (choice->price_even == NW_BREAK_EVEN_NEVER)
        return "at no price";
    nw_print_to(cell->text, sizeof cell->text, "up to %.40s",
                nw_cell_money(&money, choice->price_even_per_further_node_hour));
    return cell->text;
}

static const char *token_even(struct nw_cell *cell, const struct nw_choice *choice)
{
    struct nw_cell count;

    if (choice->token_even == NW_BREAK_EVEN_NONE)
        return "–";
    if (choice->token_even == NW_BREAK_EVEN_NEVER)
        return "at no length";
    nw_print_to(cell->text, sizeof cell->text, "from %.40s",
                nw_cell_count(&count, choice->token_even_count));
    return cell->text;
}

/* "0 %" is the base's own. */
static const char *limit_even(struct nw_cell *cell, const struct nw_choice *choice)
{
    if (!isfinite(choice->cost_ratio))
        return "–";
    nw_print_to(cell->text, sizeof cell->text, "from %.0f %%",
                100 * fmax(ceil((choice->cost_ratio - 1) * 100 - 1e-6) / 100, 0));
    return cell->text;
}

static void print_unit_notes(FILE *stream, const struct nw_model *model,
                             const struct nw_decision *decision)
{
    const struct nw_choice *choice = &decision->choices[decision->headline];
    const struct nw_terms *terms = &model->terms;
    char message[32], line[400];

    if (choice->break_even_collective != NULL) {
        nw_format_bytes(message, (uint64_t)choice->break_even_message_bytes);
        nw_print_to(line, sizeof line,
                    "GB/s between nodes: bus bandwidth of %s at %s, the largest "
                    "message of %s",
                    choice->break_even_collective, message, choice->break_even_strategy->name);
        nw_print_wrapped(stream, "  ", "  ", line);
    }
    if (!isfinite(terms->price_per_node_hour))
        nw_print_wrapped(
            stream, "  ", "  ",
            "a further node, per hour: in prices of the first one (no price was given)");
}

nw_rc nw_report_turns(FILE *stream, const struct nw_model *model,
                      const struct nw_decision *decision)
{
    static const struct nw_column columns[] = {
        {"nodes", NW_RIGHT},          {"GB/s between", NW_LEFT},
        {"at hand", NW_RIGHT},        {"a further node, per hour", NW_LEFT},
        {"costs", NW_RIGHT},          {"tokens", NW_LEFT},
        {"--max-extra-cost", NW_LEFT}};
    struct nw_table *table;
    bool any = false;

    print_fit_ways(stream, decision);
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < decision->count; i++) {
        const struct nw_choice *choice = &decision->choices[i];
        struct nw_cell c[7];

        if (i == decision->base ||
            (choice->break_even == NW_BREAK_EVEN_NONE && choice->price_even == NW_BREAK_EVEN_NONE))
            continue;
        any = true;
        nw_table_row(table, (const char *[]){
                                nw_cell_nodes(&c[0], choice->node_count), wire_even(&c[1], choice),
                                wire_now(&c[2], choice), price_even(&c[3], choice),
                                nw_cell_money(&c[4], choice->price_per_further_node_hour),
                                token_even(&c[5], choice), limit_even(&c[6], choice)});
    }
    if (!any) {
        nw_table_free(table);
        return NW_OK;
    }
    nw_print(stream, "\nWhat would change the answer: it pays\n");
    NW_TRY(nw_table_print(table, stream));
    print_unit_notes(stream, model, decision);
    return NW_OK;
}
