/* The decision in words. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "report/model_text.h"

struct text {
    char *to;
    size_t size, length;
};

static void say(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int written =
        vsnprintf(text->to + text->length, text->size - text->length, format, arguments);

    va_end(arguments);
    if (written > 0)
        text->length += (size_t)written;
    if (text->length >= text->size)
        text->length = text->size - 1; /* cut */
}

/* "A second node", "4 nodes instead of 1". */
static void say_nodes(struct text *text, const struct nw_choice *base,
                      const struct nw_choice *choice)
{
    if (base->node_count == 1 && choice->node_count == 2)
        say(text, "A second node");
    else
        say(text, "%d nodes instead of %d", choice->node_count, base->node_count);
}

static const char *pay(const struct nw_choice *base, const struct nw_choice *choice)
{
    return base->node_count == 1 && choice->node_count == 2 ? "pays" : "pay";
}

/* "certainty 94 %"; beyond what a normal error model can tell: "more than 99 %". */
static void say_certainty(struct text *text, double probability)
{
    const double percent = 100 * probability;

    if (percent > 99)
        say(text, "certainty more than 99 %%");
    else
        say(text, "certainty %.0f %%", percent);
}

static void say_break_even(struct text *text, const struct nw_choice *choice, bool pays)
{
    char at[32], measured[32];

    if (choice->break_even_collective == NULL)
        return;
    if (choice->break_even == NW_BREAK_EVEN_NEVER) {
        say(text, " Even an infinitely fast wire between nodes would not change that.");
        return;
    }
    if (choice->break_even == NW_BREAK_EVEN_ALWAYS) {
        say(text, " It would at any speed between nodes.");
        return;
    }
    if (choice->break_even != NW_BREAK_EVEN_AT)
        return;
    nw_format_gb_per_s(at, choice->break_even_busbw_bytes_per_s);
    nw_format_gb_per_s(measured, choice->measured_busbw_bytes_per_s);
    say(text, " It %s from %s GB/s between nodes (%s); %s GB/s %s at hand.",
        pays ? "does" : "would", at, choice->break_even_strategy->name, measured,
        pays ? "are" : "are");
}

/* Why: how much faster for how much more money, and what stands out. */
static void say_reason(struct text *text, const struct nw_model *model,
                       const struct nw_choice *base, const struct nw_choice *choice)
{
    char exposed[32];
    const struct nw_step *step = &choice->strong;

    say(text, "%s on %d %s is %.2f× as fast for %.2f× the price (%.0f %% efficiency",
        model->job.net.name, choice->node_count, choice->node_count == 1 ? "node" : "nodes",
        choice->speedup, choice->price_per_hour / base->price_per_hour, 100 * choice->efficiency);
    if (step->exposed_ns > 0.005 * step->step_ns)
        say(text, ", %s of each step waits for the wire",
            nw_format_ns(exposed, step->exposed_ns + step->overlap_loss_ns));
    say(text, ")");
}

static void say_measured(struct text *text, const struct nw_model *model,
                         const struct nw_choice *base, const struct nw_choice *choice)
{
    const bool pays = choice->pays == NW_PAYS_YES;

    say_nodes(text, base, choice);
    if (choice->pays == NW_PAYS_DEADLINE)
        say(text, " %s the deadline: ",
            base->node_count == 1 && choice->node_count == 2 ? "meets" : "meet");
    else if (pays)
        say(text, " %s: with %s, ", pay(base, choice), choice->strong.strategy->name);
    else
        say(text, " %s not pay as it stands: with %s, ",
            base->node_count == 1 && choice->node_count == 2 ? "does" : "do",
            choice->strong.strategy->name);
    say_reason(text, model, base, choice);
    say(text, "; ");
    say_certainty(text, pays ? choice->probability : 1 - choice->probability);
    say(text, ".");
    say_break_even(text, choice, pays);
}

static void say_unknown(struct text *text, const struct nw_model *model,
                        const struct nw_choice *base, const struct nw_choice *choice)
{
    char at[32];

    say_nodes(text, base, choice);
    if (choice->break_even == NW_BREAK_EVEN_AT)
        say(text, " would pay from %s GB/s between nodes for %s with %s",
            nw_format_gb_per_s(at, choice->break_even_busbw_bytes_per_s), model->job.net.name,
            choice->break_even_strategy->name);
    else if (choice->break_even == NW_BREAK_EVEN_NEVER)
        say(text, " would not pay for %s at any speed between nodes", model->job.net.name);
    else
        say(text, " would pay for %s at any speed between nodes", model->job.net.name);
    say(text, "; nothing between nodes was measured.");
}

static void say_memory(struct text *text, const struct nw_model *model,
                       const struct nw_decision *decision, const struct nw_choice *choice)
{
    const int smaller = choice > decision->choices ? choice[-1].node_count : 0;

    if (choice->pays == NW_PAYS_UNFIT) {
        say(text, "%s does not fit on %d node%s, whatever the strategy", model->job.net.name,
            choice->node_count, choice->node_count == 1 ? "" : "s");
        if (decision->fitting_node_count > 0)
            say(text, "; %d node%s hold it", decision->fitting_node_count,
                decision->fitting_node_count == 1 ? "" : "s");
        say(text, " (a smaller --micro-batch or --recompute full needs less).");
        return;
    }
    say(text, "%d nodes are needed: %s does not fit on %d", choice->node_count, model->job.net.name,
        smaller);
    if (choice->predicted)
        say(text, ", with %s it fits on %d", choice->strong.strategy->name, choice->node_count);
    say(text, ".");
    if (!choice->predicted)
        say(text, " How fast it runs there is not known: nothing between nodes was measured.");
}

static const struct nw_choice *base_of(const struct nw_decision *decision)
{
    for (size_t i = 0; i < decision->count; i++)
        if (decision->choices[i].predicted)
            return &decision->choices[i];
    return NULL;
}

const char *nw_report_sentence(char *to, size_t size, const struct nw_model *model,
                               const struct nw_decision *decision)
{
    const struct nw_choice *choice = &decision->choices[decision->headline];
    const struct nw_choice *base = base_of(decision);
    struct text text = {.to = to, .size = size};

    to[0] = '\0';
    if (choice->pays == NW_PAYS_UNFIT || choice->pays == NW_PAYS_MEMORY)
        say_memory(&text, model, decision, choice);
    else if (choice->pays == NW_PAYS_BATCH)
        say(&text,
            "A global batch of %llu sequences cannot be dealt evenly to %d GPUs; choose another "
            "--global-batch.",
            (unsigned long long)model->job.global_batch, choice->rank_count);
    else if (choice == base)
        say(&text, "%s fits on %d node%s; there is no other node count to hold it against.",
            model->job.net.name, choice->node_count, choice->node_count == 1 ? "" : "s");
    else if (choice->pays == NW_PAYS_UNKNOWN)
        say_unknown(&text, model, base, choice);
    else
        say_measured(&text, model, base, choice);
    if ((decision->how & NW_COST_SIMULATED) != 0)
        say(&text, " Made from simulated results: no statement about a machine.");
    return to;
}

const char *nw_report_pays_rule(char *text, size_t size, const struct nw_model *model)
{
    snprintf(text, size,
             "pays: a token costs at most %.0f %% more than on the fewest nodes (at equal prices: "
             "%.0f %% scaling\n      efficiency), or the job does not fit on fewer, or fewer miss "
             "--deadline",
             100 * model->terms.max_extra_cost, 100 / (1 + model->terms.max_extra_cost));
    return text;
}

/* ---- notes --------------------------------------------------------------------------------- */

static const struct {
    unsigned how;
    const char *text;
} how_notes[] = {
    {NW_COST_SIMULATED, "simulated: a double was measured, no machine"},
    {NW_COST_SIZE, "extrapolated: some messages are outside the measured sizes; latency + bytes / "
                   "rate there"},
    {NW_COST_DERIVED,
     "derived: a collective that was not measured, from one that was (an all-reduce is a "
     "reduce-scatter and an all-gather); switches that add (NVLS) speed up all_reduce only"},
    {NW_COST_RANKS,
     "extrapolated: rank count inside a node not measured; ring scaling, which is far "
     "off where GPUs share PCIe"},
    {NW_COST_NODES, "extrapolated: node count not measured; ring scaling. Two nodes alone do not "
                    "characterise a network"},
    {NW_COST_GIVEN, "given: bandwidth from --intra-node or --inter-node, the same for all sizes"},
    {NW_COST_DATASHEET, "datasheet: communication inside the node was not measured; a share of the "
                        "GPU's link rate stands in"},
    {NW_COST_NO_INTERVAL, "no interval: imported times have none"},
    {NW_COST_HOSTS, "hosts: a log does not say how many; taken from GPUs per node"},
};

static const char *value_of(char text[64], const struct nw_constant_row *row)
{
    char number[32];

    if (strcmp(row->unit, "bytes") == 0)
        snprintf(text, 64, "%s", nw_format_bytes(number, (uint64_t)row->value));
    else if (strcmp(row->unit, "ns") == 0)
        snprintf(text, 64, "%s", nw_format_ns(number, row->value));
    else if (strcmp(row->unit, "±") == 0)
        snprintf(text, 64, "±%.0f %%", 100 * row->value);
    else if (row->value < 1)
        snprintf(text, 64, "%.0f %% %s", 100 * row->value, row->unit);
    else
        snprintf(text, 64, "%s %s", nw_format_count(number, row->value), row->unit);
    return text;
}

static void print_assumed(FILE *stream, nw_assumed assumed)
{
    fprintf(stream, "\nassumed:\n");
    for (int i = 0; i < NW_CONSTANT_COUNT; i++) {
        char value[64], line[512];

        if ((assumed & (nw_assumed)1 << i) == 0)
            continue;
        snprintf(line, sizeof line, "%s: %s (%s)", nw_constants[i].text,
                 value_of(value, &nw_constants[i]), nw_constants[i].source);
        nw_print_wrapped(stream, "- ", "    ", line);
    }
}

nw_rc nw_report_notes(FILE *stream, unsigned how, nw_assumed assumed)
{
    bool any = false;

    for (size_t i = 0; i < sizeof how_notes / sizeof how_notes[0]; i++) {
        if ((how & how_notes[i].how) == 0)
            continue;
        if (!any)
            fprintf(stream, "\n");
        nw_print_wrapped(stream, "", "    ", how_notes[i].text);
        any = true;
    }
    if (assumed != 0)
        print_assumed(stream, assumed);
    return NW_OK;
}
