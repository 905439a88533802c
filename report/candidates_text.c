#include "report/candidates_text.h"

#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "report/decide_text_parts.h"

/* ---- claims -------------------------------------------------------------------------------- */

static const char *rate(struct nw_cell *cell, const struct nw_claim_cost *cost, double value)
{
    char text[32];

    if (cost->unit == NW_AUDIT_FLOP_PER_S)
        nw_print_to(cell->text, sizeof cell->text, "%s TFLOP/s",
                    nw_format_sig(text, value / 1e12, 3));
    else
        nw_print_to(cell->text, sizeof cell->text, "%s GB/s", nw_format_gb_per_s(text, value));
    return cell->text;
}

static const char *more(struct nw_cell *cell, double measured, double healthy)
{
    if (measured > 2 * healthy)
        snprintf(cell->text, sizeof cell->text, "%.3g×", measured / healthy);
    else
        snprintf(cell->text, sizeof cell->text, "+%.1f %%", 100 * (measured / healthy - 1));
    return cell->text;
}

static void claim_row(struct nw_table *table, const struct nw_model *model,
                      const struct nw_claim_cost *cost)
{
    const bool all = isfinite(model->job.tokens);
    struct nw_cell c[7];

    if (!cost->on_path) {
        nw_table_row(table,
                     (const char *[]){cost->claim, rate(&c[0], cost, cost->quoted),
                                      rate(&c[5], cost, cost->healthy),
                                      rate(&c[1], cost, cost->measured), "no effect", "", "", ""});
        return;
    }
    nw_table_row(
        table,
        (const char *[]){
            cost->claim, rate(&c[0], cost, cost->quoted), rate(&c[6], cost, cost->healthy),
            rate(&c[1], cost, cost->measured), more(&c[2], cost->step_ns, cost->healthy_step_ns),
            more(&c[3], cost->cost_per_billion_tokens, cost->healthy_cost_per_billion_tokens),
            nw_cell_money(&c[4], all ? cost->cost - cost->healthy_cost
                                     : cost->cost_per_billion_tokens -
                                           cost->healthy_cost_per_billion_tokens),
            all ? nw_cell_span(&c[5], cost->time_ns - cost->healthy_time_ns) : "–"});
}

nw_rc nw_report_claim_costs(FILE *stream, const struct nw_model *model,
                            const struct nw_claim_costs *costs, const char *name)
{
    const bool all = isfinite(model->job.tokens);
    const struct nw_column columns[] = {
        {"claim that is short", NW_WRAP},
        {"quoted", NW_RIGHT},
        {"normal", NW_RIGHT},
        {"measured", NW_RIGHT},
        {"step", NW_RIGHT},
        {"cost", NW_RIGHT},
        {all ? nw_tr("all tokens: cost") : nw_tr("10^9 tokens"), NW_RIGHT},
        {"time", NW_RIGHT}};
    struct nw_table *table;
    char title[320], whose[80] = "the quote's";
    bool simulated = false;

    if (costs->count == 0)
        return NW_OK;
    if (name != NULL)
        nw_print_to(whose, sizeof whose, "%.64s's", name);
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < costs->count; i++) {
        claim_row(table, model, &costs->items[i]);
        simulated = simulated || costs->items[i].simulated;
    }
    nw_print_to(
        title, sizeof title,
        "What %s short claims cost on %d node%s, against the same step where the one rate is "
        "normal%s",
        whose, costs->node_count, costs->node_count == 1 ? "" : "s",
        simulated ? nw_tr(" (SIMULATED, no measurement)") : "");
    fputc('\n', stream);
    nw_print_wrapped(stream, "", "", title);
    return nw_table_print(table, stream);
}

/* ---- the ranking --------------------------------------------------------------------------- */

static const char *money_range(struct nw_cell *cell, const struct nw_candidate *candidate)
{
    struct nw_cell middle, low, high;

    nw_print_to(cell->text, sizeof cell->text, "%.20s [%.18s, %.18s]",
                nw_cell_money(&middle, candidate->cost_per_billion_tokens),
                nw_cell_money(&low, candidate->cost_low),
                nw_cell_money(&high, candidate->cost_high));
    return cell->text;
}

static const char *time_range(struct nw_cell *cell, const struct nw_candidate *candidate)
{
    struct nw_cell middle, low, high;
    char text[3][32];

    if (candidate->time_ns >= 2 * DAY_NS)
        nw_print_to(cell->text, sizeof cell->text, "%.14s [%.14s, %.14s] days",
                    nw_format_sig(text[0], candidate->time_ns / DAY_NS, 3),
                    nw_format_sig(text[1], candidate->time_low_ns / DAY_NS, 3),
                    nw_format_sig(text[2], candidate->time_high_ns / DAY_NS, 3));
    else
        nw_print_to(cell->text, sizeof cell->text, "%.20s [%.18s, %.18s]",
                    nw_cell_part(&middle, candidate->time_ns),
                    nw_cell_part(&low, candidate->time_low_ns),
                    nw_cell_part(&high, candidate->time_high_ns));
    return cell->text;
}

static const char *claims_of(struct nw_cell *cell, const struct nw_candidate *candidate)
{
    if (!candidate->audited)
        return "no quote";
    if (candidate->unmeasured)
        return "quote only";
    nw_print_to(cell->text, sizeof cell->text, "%d short", candidate->short_count);
    return cell->text;
}

/* What the second node does there. */
static const char *second_of(const struct nw_candidate *candidate)
{
    const struct nw_choice *choice = &candidate->decision.choices[candidate->decision.headline];

    switch (choice->pays) {
    case NW_PAYS_YES:
        return "pay";
    case NW_PAYS_MEMORY:
    case NW_PAYS_DEADLINE:
    case NW_PAYS_STEP:
        return "needed";
    case NW_PAYS_NO:
        return "do not pay";
    case NW_PAYS_UNKNOWN:
        return "not measured";
    default:
        return "–";
    }
}

static void candidate_row(struct nw_table *table, size_t place,
                          const struct nw_candidate *candidate)
{
    const struct nw_choice *choice = &candidate->decision.choices[candidate->chosen];
    const bool priced = isfinite(candidate->model.terms.price_per_node_hour);
    struct nw_cell c[8];

    snprintf(c[0].text, sizeof c[0].text, "%zu", place + 1);
    if (candidate->problem[0] != '\0') {
        nw_table_row(table, (const char *[]){c[0].text, candidate->name, "–", "–", "–", "–", "–",
                                             claims_of(&c[1], candidate), "not predicted"});
        return;
    }
    nw_table_row(table, (const char *[]){
                            c[0].text, candidate->name, nw_cell_nodes(&c[1], choice->node_count),
                            choice->strong.strategy->name,
                            nw_cell_count(&c[2], choice->useful_tokens_per_s),
                            priced ? money_range(&c[3], candidate) : "–",
                            time_range(&c[4], candidate), claims_of(&c[5], candidate),
                            candidate->in_time ? second_of(candidate) : nw_tr("too late")});
}

static nw_rc print_table(FILE *stream, const struct nw_ranking *ranking)
{
    const struct nw_candidate *first = &ranking->items[0];
    const bool all = isfinite(first->model.job.tokens);
    const struct nw_column columns[] = {
        {"#", NW_RIGHT},
        {"candidate", NW_WRAP},
        {"nodes", NW_RIGHT},
        {"strategy", NW_LEFT},
        {"tokens/s", NW_RIGHT},
        {"cost of 10^9 tokens", NW_LEFT},
        {all ? nw_tr("time of all") : nw_tr("time of 10^9 tokens"), NW_LEFT},
        {"claims", NW_LEFT},
        {"more nodes", NW_LEFT}};
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < ranking->count; i++)
        candidate_row(table, i, &ranking->items[i]);
    nw_print(stream, "\nRanked by %s%s%s\n",
             ranking->by == NW_RANK_COST ? nw_tr("cost, in ") : nw_tr("time"),
             ranking->by != NW_RANK_COST              ? ""
             : first->model.terms.currency[0] != '\0' ? first->model.terms.currency
                                                      : nw_tr("the unit of the prices"),
             ranking->currencies_differ ? nw_tr(" (their currencies differ)") : "");
    return nw_table_print(table, stream);
}

static void say_first(struct nw_say *say, const struct nw_ranking *ranking)
{
    const struct nw_candidate *first = &ranking->items[0];
    const struct nw_choice *choice = &first->decision.choices[first->chosen];
    const bool by_cost = ranking->by == NW_RANK_COST;
    struct nw_cell cost, currency, time;

    nw_say(say, "%s is the better %s for %s: on %d node%s ", first->name,
           by_cost ? nw_tr("buy") : nw_tr("machine"), first->model.job.net.name, choice->node_count,
           choice->node_count == 1 ? "" : "s");
    if (by_cost)
        nw_say(say, "10^9 tokens cost %s%s", nw_cell_money(&cost, first->cost_per_billion_tokens),
               nw_cell_currency(&currency, &first->model.terms));
    else
        nw_say(say, "%s take %s",
               isfinite(first->model.job.tokens) ? nw_tr("all tokens") : nw_tr("10^9 tokens"),
               nw_cell_span(&time, first->time_ns));
}

static void say_in_time(struct nw_say *say, const struct nw_candidate *candidate)
{
    const struct nw_choice *choice = &candidate->decision.choices[candidate->chosen];
    struct nw_cell deadline, sure;

    if (isfinite(choice->in_time_probability))
        nw_say(say, " %s keeps the deadline of %s with %s certainty.", candidate->name,
               nw_cell_span(&deadline, candidate->model.terms.deadline_ns),
               nw_cell_certainty(&sure, choice->in_time_probability));
}

static void say_second(struct nw_say *say, const struct nw_ranking *ranking)
{
    const struct nw_candidate *second = &ranking->items[1];
    const struct nw_choice *choice = &second->decision.choices[second->chosen];
    const bool by_cost = ranking->by == NW_RANK_COST;
    struct nw_cell value, sure;

    nw_say(say, ", against %s on %d node%s of %s",
           by_cost ? nw_cell_money(&value, second->cost_per_billion_tokens)
                   : nw_cell_span(&value, second->time_ns),
           choice->node_count, choice->node_count == 1 ? "" : "s", second->name);
    if (isfinite(ranking->probability))
        nw_say(say, "; certainty %s", nw_cell_certainty(&sure, ranking->probability));
    if (ranking->items[0].in_time && !second->in_time)
        nw_say(say, ", and %s is too late", second->name);
}

void nw_say_weakest(struct nw_say *say, const struct nw_claim_costs *claims, const char *name)
{
    const struct nw_claim_cost *worst = &claims->items[0];
    struct nw_cell quoted, measured;

    if (claims->count == 0 || !worst->on_path)
        return;
    nw_say(say, " %s%s weakest claim, %s (%s quoted, %s measured), makes each token ",
           name != NULL ? name : nw_tr("The quote"), "'s", worst->claim,
           rate(&quoted, worst, worst->quoted), rate(&measured, worst, worst->measured));
    nw_say(say, "%s dearer than a machine as quoted would.",
           more(&quoted, worst->cost_per_billion_tokens, worst->healthy_cost_per_billion_tokens));
}

const char *nw_report_ranking_sentence(char *to, size_t size, const struct nw_ranking *ranking)
{
    struct nw_say say = {.to = to, .size = size};
    unsigned how = 0;

    to[0] = '\0';
    if (ranking->known == 0) {
        nw_say(&say, "None of the %zu candidates can be predicted: %s.", ranking->count,
               ranking->items[0].problem);
        return to;
    }
    say_first(&say, ranking);
    if (ranking->known > 1)
        say_second(&say, ranking);
    nw_say(&say, ".");
    say_in_time(&say, &ranking->items[0]);
    for (size_t i = 0; i < ranking->known; i++) {
        nw_say_weakest(&say, &ranking->items[i].claims, ranking->items[i].name);
        how |= ranking->items[i].decision.how;
    }
    if ((how & NW_COST_SIMULATED) != 0)
        nw_say(&say, " Made from simulated results: no statement about a machine.");
    return to;
}

nw_rc nw_report_ranking(FILE *stream, const struct nw_ranking *ranking)
{
    char text[2048];
    unsigned how = 0;
    nw_assumed assumed = 0;

    nw_print_wrapped(stream, "", "", nw_report_ranking_sentence(text, sizeof text, ranking));
    NW_TRY(print_table(stream, ranking));
    for (size_t i = 0; i < ranking->count; i++) {
        const struct nw_candidate *candidate = &ranking->items[i];

        how |= candidate->decision.how;
        assumed |= candidate->decision.assumed;
        if (candidate->problem[0] != '\0')
            nw_print_wrapped(stream, "  ", "    ", candidate->problem);
        NW_TRY(
            nw_report_claim_costs(stream, &candidate->model, &candidate->claims, candidate->name));
    }
    for (size_t i = 0; i < ranking->count; i++) {
        const struct nw_candidate *candidate = &ranking->items[i];

        nw_print(stream, "\n%s\n", candidate->name);
        nw_print_wrapped(
            stream, "  ", "  ",
            nw_report_sentence(text, sizeof text, &candidate->model, &candidate->decision));
    }
    return nw_report_notes(stream, how, assumed, &ranking->items[0].model.platform.assumptions);
}
