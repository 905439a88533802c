/* The decision in words. */
#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "report/decide_text_parts.h"

/* Less of a step than this is not worth a word. */
#define WAIT_WORTH_NAMING 0.005

static bool is_second(const struct nw_choice *base, const struct nw_choice *choice)
{
    return base->node_count == 1 && choice->node_count == 2;
}

/* "A second node", "4 nodes instead of 1". */
static void say_nodes(struct nw_say *say, const struct nw_choice *base,
                      const struct nw_choice *choice)
{
    if (is_second(base, choice))
        nw_say(say, "A second node");
    else
        nw_say(say, "%d nodes instead of %d", choice->node_count, base->node_count);
}

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

static void say_certainty(struct nw_say *say, double probability)
{
    struct nw_cell cell;

    if (!isfinite(probability))
        return;
    if (probability > 0.99)
        nw_say(say, "; certainty more than 99 %%");
    else
        nw_say(say, "; certainty %s", nw_cell_percent(&cell, probability));
}

/* ---- where it turns ------------------------------------------------------------------------ */

static void say_wire(struct nw_say *say, const struct nw_choice *choice, bool pays)
{
    char at[32], measured[32];

    if (choice->break_even_collective == NULL || choice->break_even == NW_BREAK_EVEN_NONE)
        return;
    if (choice->break_even == NW_BREAK_EVEN_NEVER) {
        nw_say(say, " Even an infinitely fast wire between nodes would not change that.");
        return;
    }
    if (choice->break_even == NW_BREAK_EVEN_ALWAYS) {
        nw_say(say, pays ? nw_tr(" It would at any speed between nodes.") : "");
        return;
    }
    nw_format_gb_per_s(at, choice->break_even_busbw_bytes_per_s);
    nw_format_gb_per_s(measured, choice->measured_busbw_bytes_per_s);
    if (pays || choice->measured_busbw_bytes_per_s < choice->break_even_busbw_bytes_per_s)
        nw_say(say, " It %s from %s GB/s between nodes (%s); %s GB/s are at hand.",
               pays ? nw_tr("does") : nw_tr("would"), at, choice->break_even_strategy->name,
               measured);
}

/* Set-up and minimum rental that a short training does not earn back. */
static bool is_too_short(const struct nw_model *model, const struct nw_choice *choice)
{
    return choice->token_even == NW_BREAK_EVEN_AT && model->job.tokens < choice->token_even_count;
}

static void say_length(struct nw_say *say, const struct nw_model *model,
                       const struct nw_choice *choice)
{
    struct nw_cell even, tokens;

    if (is_too_short(model, choice))
        nw_say(say, " What is paid once is earned back from %s tokens on; this training has %s.",
               nw_cell_count(&even, choice->token_even_count),
               nw_cell_count(&tokens, model->job.tokens));
}

/* ---- with figures -------------------------------------------------------------------------- */

/* "your measured 12.9 s a step on 8 GPUs becomes 6.62 s on 16, 1.95× [1.91, 1.99] the tokens/s,
 * with fsdp". */
static void say_anchored(struct nw_say *say, const struct nw_model *model,
                         const struct nw_choice *choice)
{
    const struct nw_anchor *anchor = &model->anchor;
    struct nw_cell before, after;

    nw_say(say,
           "%s, measured at %s a step on %d GPUs, takes %s on %d with %s: %.2f× [%.2f, %.2f] the "
           "tokens/s",
           model->job.net.name, nw_cell_part(&before, anchor->step_ns), anchor->rank_count,
           nw_cell_part(&after, choice->strong.step_ns), choice->rank_count,
           choice->strong.strategy->name, choice->anchor_speedup, choice->anchor_speedup_low,
           choice->anchor_speedup_high);
}

/* "gpt2-124m with ddp is 1.81× as fast for 2.00× the price (91 % efficiency, 8 % of each step waits
 * for the wire), so that a token costs 1.10× [1.06, 1.15] as much". */
static void say_reason(struct nw_say *say, const struct nw_model *model,
                       const struct nw_choice *base, const struct nw_choice *choice)
{
    const struct nw_step *step = &choice->strong;
    const double waits = (step->exposed_ns + step->overlap_loss_ns) / step->step_ns;
    struct nw_cell cell;

    if (isfinite(choice->anchor_speedup))
        say_anchored(say, model, choice);
    else
        nw_say(say, "%s with %s is %.2f× as fast", model->job.net.name, step->strategy->name,
               choice->speedup);
    nw_say(say, " for %.2f× the price (%s efficiency",
           choice->price_per_hour / base->price_per_hour,
           nw_cell_percent(&cell, choice->efficiency));
    if (waits > WAIT_WORTH_NAMING)
        nw_say(say, ", %s of each step waits for the wire", nw_cell_percent(&cell, waits));
    nw_say(say, "), so that %s %.2f× [%.2f, %.2f] as much",
           isfinite(model->job.tokens) ? nw_tr("the training costs") : nw_tr("a token costs"),
           choice->cost_ratio, choice->cost_ratio_low, choice->cost_ratio_high);
}

static void say_cost(struct nw_say *say, const struct nw_model *model, const struct nw_choice *base,
                     const struct nw_choice *choice)
{
    struct nw_cell less, more, currency;

    if (isfinite(model->terms.price_per_node_hour) && isfinite(choice->cost))
        nw_say(say, " (%s%s instead of %s)", nw_cell_money(&more, choice->cost),
               nw_cell_currency(&currency, &model->terms), nw_cell_money(&less, base->cost));
}

/* A deadline that did not decide. */
static void say_in_time(struct nw_say *say, const struct nw_model *model,
                        const struct nw_choice *base, const struct nw_choice *choice)
{
    const double deadline_ns = model->terms.deadline_ns;
    const bool base_late = base->time_ns > deadline_ns, late = choice->time_ns > deadline_ns;
    struct nw_cell deadline, time;

    if (!base_late && !late)
        return;
    nw_say(say, " The deadline of %s is %s: all tokens take %s.",
           nw_cell_span(&deadline, deadline_ns),
           !late       ? nw_tr("met, which fewer nodes miss")
           : base_late ? nw_tr("missed all the same")
                       : nw_tr("missed, which fewer nodes meet"),
           nw_cell_span(&time, choice->time_ns));
}

static void say_worth(struct nw_say *say, const struct nw_model *model,
                      const struct nw_choice *base, const struct nw_choice *choice)
{
    const bool pays = choice->pays == NW_PAYS_YES;
    const bool second = is_second(base, choice);

    if (pays)
        nw_say(say, " %s: ", second ? nw_tr("pays") : nw_tr("pay"));
    else
        nw_say(say, " %s not pay as it stands: ", second ? nw_tr("does") : "do");
    say_reason(say, model, base, choice);
    say_cost(say, model, base, choice);
    nw_say(say, " where %.2f× is the limit", 1 + model->terms.max_extra_cost);
    say_certainty(say, nw_verdict_certainty(choice));
    nw_say(say, ".");
    say_wire(say, choice, pays);
    say_length(say, model, choice);
    say_in_time(say, model, base, choice);
    if (!isfinite(model->terms.price_per_node_hour))
        nw_say(say, " No price was given: all nodes count the same.");
}

static void say_deadline(struct nw_say *say, const struct nw_model *model,
                         const struct nw_choice *base, const struct nw_choice *choice)
{
    struct nw_cell deadline, now, then;

    nw_say(say, " %s the deadline of %s: all tokens take %s instead of %s; ",
           is_second(base, choice) ? nw_tr("meets") : nw_tr("meet"),
           nw_cell_span(&deadline, model->terms.deadline_ns), nw_cell_span(&now, choice->time_ns),
           nw_cell_span(&then, base->time_ns));
    say_reason(say, model, base, choice);
    say_cost(say, model, base, choice);
    say_certainty(say, nw_verdict_certainty(choice));
    nw_say(say, ".");
}

static void say_step(struct nw_say *say, const struct nw_model *model, const struct nw_choice *base,
                     const struct nw_choice *choice)
{
    char limit[32];
    struct nw_cell now, then;

    nw_say(say, " %s steps within %s: %s instead of %s; ",
           is_second(base, choice) ? nw_tr("brings") : nw_tr("bring"),
           nw_format_ns(limit, model->terms.max_step_ns),
           nw_cell_part(&now, choice->strong.step_ns), nw_cell_part(&then, base->strong.step_ns));
    say_reason(say, model, base, choice);
    say_cost(say, model, base, choice);
    nw_say(say, ".");
}

static void say_measured(struct nw_say *say, const struct nw_model *model,
                         const struct nw_choice *base, const struct nw_choice *choice)
{
    say_nodes(say, base, choice);
    if (choice->pays == NW_PAYS_DEADLINE)
        say_deadline(say, model, base, choice);
    else if (choice->pays == NW_PAYS_STEP)
        say_step(say, model, base, choice);
    else
        say_worth(say, model, base, choice);
}

/* ---- without ------------------------------------------------------------------------------- */

static void say_unknown(struct nw_say *say, const struct nw_model *model,
                        const struct nw_choice *base, const struct nw_choice *choice)
{
    char at[32];

    say_nodes(say, base, choice);
    if (choice->break_even == NW_BREAK_EVEN_AT)
        nw_say(say, " would pay from %s GB/s between nodes for %s with %s",
               nw_format_gb_per_s(at, choice->break_even_busbw_bytes_per_s), model->job.net.name,
               choice->break_even_strategy->name);
    else if (choice->break_even == NW_BREAK_EVEN_NEVER)
        nw_say(say, " would not pay for %s at any speed between nodes", model->job.net.name);
    else if (choice->break_even == NW_BREAK_EVEN_ALWAYS)
        nw_say(say, " would pay for %s at any speed between nodes", model->job.net.name);
    else
        nw_say(say, ": how fast %s runs there is not known", model->job.net.name);
    nw_say(say, "; nothing between nodes was measured.");
}

static void say_needs(struct nw_say *say, const struct nw_model *model,
                      const struct nw_choice *choice)
{
    char least[32], card[32];

    if (isfinite(choice->least_bytes) && model->platform.memory_bytes > 0)
        nw_say(say, " (at least %s GiB per GPU, the card has %s)",
               nw_format_sig(least, choice->least_bytes / GIB, 3),
               nw_format_sig(card, (double)model->platform.memory_bytes / GIB, 3));
}

/* The fastest single change with which fewer nodes would do. */
static void say_instead(struct nw_say *say, const struct nw_decision *decision)
{
    const struct nw_fit_way *way = &decision->fit_ways[0];

    if (decision->fit_way_count == 0)
        return;
    nw_say(say, " With %s it would fit on %d node%s", way->text, decision->fit_way_nodes,
           plural(decision->fit_way_nodes));
    if (isfinite(way->time_ratio))
        nw_say(say, ", for %.2f× the GPU time per token", way->time_ratio);
    nw_say(say, ".");
}

static void say_unfit(struct nw_say *say, const struct nw_model *model,
                      const struct nw_decision *decision, const struct nw_choice *choice)
{
    nw_say(say, "%s does not fit on %d node%s, whatever the strategy", model->job.net.name,
           choice->node_count, plural(choice->node_count));
    if (decision->fitting_node_count > 0)
        nw_say(say, "; %d node%s hold%s it", decision->fitting_node_count,
               plural(decision->fitting_node_count), decision->fitting_node_count == 1 ? "s" : "");
    else if (model->rank_count == 0)
        nw_say(say, "; nor on any node count up to 4096");
    say_needs(say, model, choice);
    nw_say(say, ".");
    say_instead(say, decision);
}

static void say_memory(struct nw_say *say, const struct nw_model *model,
                       const struct nw_decision *decision, const struct nw_choice *choice)
{
    const struct nw_choice *smaller = choice > decision->choices ? choice - 1 : NULL;
    struct nw_cell rate, cost, currency;

    nw_say(say, "%d nodes are needed: %s does not fit on %d", choice->node_count,
           model->job.net.name, smaller != NULL ? smaller->node_count : 0);
    if (smaller != NULL)
        say_needs(say, model, smaller);
    if (!choice->predicted) {
        nw_say(say, ". How fast it runs there is not known: nothing between nodes was measured.");
        say_instead(say, decision);
        return;
    }
    nw_say(say, "; with %s it does, at %s tokens/s", choice->strong.strategy->name,
           nw_cell_count(&rate, choice->useful_tokens_per_s));
    if (isfinite(model->terms.price_per_node_hour))
        nw_say(say, " and %s%s for 10^9 tokens",
               nw_cell_money(&cost, choice->cost_per_billion_tokens),
               nw_cell_currency(&currency, &model->terms));
    nw_say(say, ".");
    if (decision->fitting_node_count > 0 && decision->fitting_node_count < choice->node_count)
        nw_say(say, " %d would hold it too (--nodes).", decision->fitting_node_count);
    say_instead(say, decision);
}

static void say_batch(struct nw_say *say, const struct nw_model *model,
                      const struct nw_choice *choice)
{
    const double multiple = choice->reason_count > 0 ? choice->reasons[0].limit : NAN;

    if (!isfinite(multiple)) {
        nw_say(say, "%s cannot be laid out on %d nodes: %s.", model->job.net.name,
               choice->node_count, choice->problem);
        return;
    }
    nw_say(say,
           "A global batch of %llu sequences cannot be dealt evenly to %d GPUs; choose a "
           "--global-batch that is a multiple of %.0f.",
           (unsigned long long)model->job.global_batch, choice->rank_count, multiple);
}

static void say_alone(struct nw_say *say, const struct nw_model *model,
                      const struct nw_choice *choice)
{
    struct nw_cell rate;

    nw_say(say,
           "%s runs on %d node%s at %s tokens/s; there is no other node count to hold it "
           "against (--nodes 1,2).",
           model->job.net.name, choice->node_count, plural(choice->node_count),
           nw_cell_count(&rate, choice->useful_tokens_per_s));
}

const char *nw_report_sentence(char *to, size_t size, const struct nw_model *model,
                               const struct nw_decision *decision)
{
    const struct nw_choice *choice = &decision->choices[decision->headline];
    const struct nw_choice *base =
        decision->base < decision->count ? &decision->choices[decision->base] : NULL;
    struct nw_say say = {.to = to, .size = size};

    to[0] = '\0';
    if (choice->pays == NW_PAYS_UNFIT)
        say_unfit(&say, model, decision, choice);
    else if (choice->pays == NW_PAYS_MEMORY)
        say_memory(&say, model, decision, choice);
    else if (choice->pays == NW_PAYS_BATCH)
        say_batch(&say, model, choice);
    else if (choice == base)
        say_alone(&say, model, choice);
    else if (choice->pays == NW_PAYS_UNKNOWN)
        say_unknown(&say, model, base, choice);
    else
        say_measured(&say, model, base, choice);
    if ((decision->how & NW_COST_SIMULATED) != 0)
        nw_say(&say, " Made from simulated results: no statement about a machine.");
    return to;
}

const char *nw_report_pays_rule(char *text, size_t size, const struct nw_model *model)
{
    const struct nw_terms *terms = &model->terms;

    nw_print_to(text, size,
                "pays: %s at most %.0f %% more than on the fewest nodes (at equal prices: %.0f %% "
                "scaling\n      efficiency), or the job does not fit on fewer%s%s",
                isfinite(model->job.tokens) ? nw_tr("the training costs") : nw_tr("a token costs"),
                100 * terms->max_extra_cost, 100 / (1 + terms->max_extra_cost),
                isfinite(terms->deadline_ns) ? nw_tr(", or fewer miss --deadline") : "",
                isfinite(terms->max_step_ns) ? nw_tr(", or fewer exceed --max-step") : "");
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
    {NW_COST_DATASHEET, "datasheet: communication that was not measured; a share of the GPU's link "
                        "rate inside a node, of the NICs' line rate between nodes stands in"},
    {NW_COST_SHARED, "shared: groups that run at the same time divide the NICs of their node"},
    {NW_COST_NO_INTERVAL, "no interval: imported times have none"},
    {NW_COST_HOSTS, "hosts: a log does not say how many; taken from GPUs per node"},
};

/* "GEMM_SHARE 97 % of the best" */
static void add_constant(char *text, size_t size, const struct nw_constant_row *row, double value)
{
    const size_t at = strlen(text);
    const char *comma = at > 0 && text[at - 1] != ' ' ? ", " : "";
    char number[32];

    if (at >= size)
        return;
    if (strcmp(row->unit, "bytes") == 0)
        nw_print_to(text + at, size - at, "%s%s %s", comma, row->key,
                    nw_format_bytes(number, (uint64_t)value));
    else if (strcmp(row->unit, "ns") == 0)
        nw_print_to(text + at, size - at, "%s%s %s", comma, row->key, nw_format_ns(number, value));
    else if (strcmp(row->unit, "±") == 0)
        nw_print_to(text + at, size - at, "%s%s ±%.3g %%", comma, row->key, 100 * value);
    else if (value < 1)
        nw_print_to(text + at, size - at, "%s%s %.3g %% %s", comma, row->key, 100 * value,
                    row->unit);
    else
        nw_print_to(text + at, size - at, "%s%s %s %s", comma, row->key,
                    nw_format_count(number, value), row->unit);
}

/* The values in use; what each is, where it comes from and how to measure it is a list of its own.
 */
static void print_assumed(FILE *stream, nw_assumed assumed, const struct nw_assumptions *in_use)
{
    static const char *const titles[] = {
        "assumed (nodeworth list constants says what each is, its source, how to measure it; "
        "--assume KEY=VALUE replaces it): ",
        "errors assumed for the range (nodeworth list errors): "};
    const int from[] = {0, NW_CONSTANT_PHYSICAL_COUNT, NW_CONSTANT_COUNT};

    for (int part = 0; part < 2; part++) {
        char text[2048];

        nw_print_to(text, sizeof text, "%s", titles[part]);
        const size_t empty = strlen(text);

        for (int i = from[part]; i < from[part + 1]; i++)
            if ((assumed & (nw_assumed)1 << i) != 0)
                add_constant(text, sizeof text, &nw_constants[i], in_use->value[i]);
        if (strlen(text) > empty)
            nw_print_wrapped(stream, "\n", "    ", text);
    }
}

nw_rc nw_report_notes(FILE *stream, unsigned how, nw_assumed assumed,
                      const struct nw_assumptions *in_use)
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
        print_assumed(stream, assumed, in_use);
    return NW_OK;
}
