/* The decision: the sentence first, then its tables. */
#include "report/decide_text.h"

#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "report/candidates_text.h"
#include "report/decide_text_parts.h"

static const char *verdict(const struct nw_choice *choice)
{
    static const char *const names[] = {
        [NW_PAYS_BASE] = "–",
        [NW_PAYS_YES] = "pays",
        [NW_PAYS_MEMORY] = "needed: memory",
        [NW_PAYS_DEADLINE] = "needed: time",
        [NW_PAYS_NO] = "does not pay",
        [NW_PAYS_UNFIT] = "does not fit",
        [NW_PAYS_UNKNOWN] = "not measured",
        [NW_PAYS_BATCH] = "batch",
        [NW_PAYS_STEP] = "needed: step",
    };

    return names[choice->pays];
}

static const char *times(struct nw_cell *cell, double speedup)
{
    snprintf(cell->text, sizeof cell->text, "%.2f×", speedup);
    return cell->text;
}

static const char *batch(struct nw_cell *cell, const struct nw_choice *choice)
{
    if (!choice->weak_predicted)
        return "–";
    snprintf(cell->text, sizeof cell->text, "%llu", (unsigned long long)choice->weak.global_batch);
    return cell->text;
}

static nw_rc print_scaling(FILE *stream, const struct nw_decision *decision)
{
    static const struct nw_column columns[] = {
        {"nodes", NW_RIGHT}, {"strategy", NW_LEFT},  {"GiB", NW_RIGHT},   {"step [range]", NW_LEFT},
        {"waits", NW_RIGHT}, {"tokens/s", NW_RIGHT}, {"speed", NW_RIGHT}, {"eff.", NW_RIGHT},
        {"weak", NW_RIGHT},  {"eff.", NW_RIGHT},     {"from", NW_LEFT}};
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < decision->count; i++) {
        const struct nw_choice *choice = &decision->choices[i];
        const struct nw_step *step = &choice->strong;
        struct nw_cell c[10];

        if (!choice->predicted) {
            nw_table_row(table, (const char *[]){nw_cell_nodes(&c[0], choice->node_count), "–", "–",
                                                 verdict(choice), "", "", "", "", "", "", ""});
            continue;
        }
        nw_table_row(
            table,
            (const char *[]){
                nw_cell_nodes(&c[0], choice->node_count), step->strategy->name,
                nw_cell_gib(&c[1], step->memory.total_bytes), nw_cell_interval(&c[2], step),
                nw_cell_part(&c[3], step->exposed_ns + step->overlap_loss_ns),
                nw_cell_count(&c[4], step->tokens_per_s), times(&c[5], choice->speedup),
                nw_cell_percent(&c[6], choice->efficiency), batch(&c[7], choice),
                choice->weak_predicted ? nw_cell_percent(&c[8], choice->weak_efficiency) : "–",
                nw_cell_come_by(step)});
    }
    nw_print(stream,
             "\nSame global batch on every node count (strong scaling); weak: the same batch "
             "per GPU\n");
    return nw_table_print(table, stream);
}

/* ---- cost ---------------------------------------------------------------------------------- */

static const char *kept(struct nw_cell *cell, double useful)
{
    snprintf(cell->text, sizeof cell->text, useful > 0.9995 ? "> 99.9 %%" : "%.1f %%",
             100 * useful);
    return cell->text;
}

static const char *against(struct nw_cell *cell, const struct nw_choice *choice)
{
    if (!isfinite(choice->probability))
        return "–";
    snprintf(cell->text, sizeof cell->text, "%.2f× [%.2f, %.2f]", choice->cost_ratio,
             choice->cost_ratio_low, choice->cost_ratio_high);
    return cell->text;
}

static void cost_row(struct nw_table *table, const struct nw_model *model,
                     const struct nw_choice *choice)
{
    const bool by_deadline = !isfinite(model->job.tokens) && isfinite(model->terms.deadline_ns);
    const double certainty = nw_verdict_certainty(choice);
    struct nw_cell c[8];

    if (!choice->predicted) {
        nw_table_row(table, (const char *[]){nw_cell_nodes(&c[0], choice->node_count), "–", "–",
                                             "–", "–", "–", "–", verdict(choice), "–"});
        return;
    }
    nw_table_row(
        table,
        (const char *[]){
            nw_cell_nodes(&c[0], choice->node_count), nw_cell_money(&c[1], choice->price_per_hour),
            kept(&c[2], choice->upkeep.useful),
            nw_cell_money(&c[3], choice->cost_per_billion_tokens), against(&c[4], choice),
            by_deadline ? nw_cell_count(&c[5], choice->deadline_tokens)
                        : nw_cell_span(&c[5], choice->time_ns),
            nw_cell_money(&c[6], by_deadline ? choice->deadline_cost : choice->cost),
            verdict(choice), isfinite(certainty) ? nw_cell_certainty(&c[7], certainty) : "–"});
}

static nw_rc print_cost(FILE *stream, const struct nw_model *model,
                        const struct nw_decision *decision)
{
    const bool priced = isfinite(model->terms.price_per_node_hour);
    const bool by_deadline = !isfinite(model->job.tokens) && isfinite(model->terms.deadline_ns);
    const struct nw_column columns[] = {
        {"nodes", NW_RIGHT},
        {"per hour", NW_RIGHT},
        {"kept", NW_RIGHT},
        {"10^9 tokens", NW_RIGHT},
        {"cost over base", NW_LEFT},
        {by_deadline ? nw_tr("tokens by then") : nw_tr("time, all"), NW_RIGHT},
        {by_deadline ? nw_tr("cost by then") : nw_tr("cost, all"), NW_RIGHT},
        {"verdict", NW_LEFT},
        {"sure", NW_RIGHT}};
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < decision->count; i++)
        cost_row(table, model, &decision->choices[i]);
    nw_print(stream, "\nCost, %s%s%s\n",
             priced ? nw_tr("in ") : nw_tr("in node-hours (no price was given)"),
             !priced                            ? ""
             : model->terms.currency[0] != '\0' ? model->terms.currency
                                                : nw_tr("the unit of the price"),
             !priced                                  ? ""
             : model->terms.rental == NW_RENTAL_MONTH ? nw_tr(", by the month")
             : model->terms.rental == NW_RENTAL_SPOT  ? nw_tr(", on spot terms")
                                                      : nw_tr(", by the hour"));
    return nw_table_print(table, stream);
}

static void rental_row(struct nw_table *table, const struct nw_rental_cost *cost)
{
    static const char *const names[NW_RENTAL_COUNT] = {[NW_RENTAL_HOUR] = "by the hour",
                                                       [NW_RENTAL_MONTH] = "by the month",
                                                       [NW_RENTAL_SPOT] = "spot"};
    struct nw_cell c[7];

    if (!cost->known) {
        nw_table_row(table, (const char *[]){names[cost->rental],
                                             nw_cell_money(&c[0], cost->per_node_hour), "unknown",
                                             "–", "–", "–", "–", "–"});
        return;
    }
    nw_table_row(table, (const char *[]){
                            names[cost->rental], nw_cell_money(&c[0], cost->per_node_hour),
                            kept(&c[1], cost->useful),
                            nw_cell_money(&c[2], cost->base_cost_per_billion_tokens),
                            nw_cell_money(&c[3], cost->cost_per_billion_tokens),
                            times(&c[4], cost->cost_ratio), nw_cell_money(&c[5], cost->base_cost),
                            nw_cell_money(&c[6], cost->cost)});
}

static nw_rc print_rentals(FILE *stream, const struct nw_model *model,
                           const struct nw_decision *decision)
{
    char base_title[32], title[32], token_title[32];
    const struct nw_column columns[] = {{"rented", NW_LEFT},    {"node-hour", NW_RIGHT},
                                        {"kept", NW_RIGHT},     {token_title, NW_RIGHT},
                                        {title, NW_RIGHT},      {"ratio", NW_RIGHT},
                                        {base_title, NW_RIGHT}, {title, NW_RIGHT}};
    struct nw_table *table;
    bool known = true;

    if (decision->rental_count < 2)
        return NW_OK;
    const int base = decision->choices[decision->base].node_count;
    const int nodes = decision->choices[decision->headline].node_count;

    nw_print_to(base_title, sizeof base_title, "all tokens on %d", base);
    nw_print_to(token_title, sizeof token_title, "10^9 tokens on %d", base);
    snprintf(title, sizeof title, "on %d", nodes);
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < decision->rental_count; i++) {
        rental_row(table, &decision->rentals[i]);
        known = known && decision->rentals[i].known;
    }
    nw_print(stream, "\nWays to rent%s\n",
             isfinite(model->job.tokens) ? nw_tr("; all tokens: by the month, whole months") : "");
    NW_TRY(nw_table_print(table, stream));
    if (!known)
        nw_print(stream, "spot: how often a node is taken back is not known "
                         "(--spot-interruptions)\n");
    return NW_OK;
}

/* ---- checkpoints, failures, loading -------------------------------------------------------- */

static const char *source_of(nw_figure figure)
{
    return figure == NW_FIGURE_MEASURED ? nw_tr("measured")
           : figure == NW_FIGURE_QUOTED ? nw_tr("quoted, not measured")
                                        : nw_tr("given");
}

static void print_checkpoints(FILE *stream, const struct nw_model *model,
                              const struct nw_choice *choice)
{
    const struct nw_upkeep *upkeep = &choice->upkeep;
    const struct nw_terms *terms = &model->terms;
    struct nw_cell size, every;
    char text[640] = "", rate[32], write[32];
    struct nw_say say = {.to = text, .size = sizeof text};

    nw_say(&say, "%d node%s: a checkpoint is %s GiB", choice->node_count,
           choice->node_count == 1 ? "" : "s", nw_cell_gib(&size, upkeep->checkpoint_bytes));
    if (isfinite(upkeep->write_ns))
        nw_say(&say, ", written in %s at %s GB/s a node (%s)",
               nw_format_ns(write, upkeep->write_ns),
               nw_format_gb_per_s(rate, terms->storage.write_bytes_per_s),
               source_of(terms->storage.write_from));
    if (isfinite(upkeep->interval_ns))
        nw_say(&say, " every %s", nw_cell_span(&every, upkeep->interval_ns));
    if (isfinite(upkeep->failure_ns))
        nw_say(&say, "; a failure every %s, %s of the time is kept",
               nw_cell_span(&every, upkeep->failure_ns), kept(&size, upkeep->useful));
    if (!isfinite(upkeep->write_ns))
        nw_say(&say,
               "; writing it%s left out: the storage's write rate is unknown "
               "(--storage-write)",
               isfinite(upkeep->interval_ns) ? " is" : nw_tr(" and work lost with it are"));
    nw_print_wrapped(stream, "  ", "    ", text);
}

static void print_loading(FILE *stream, const struct nw_model *model,
                          const struct nw_choice *choice)
{
    const struct nw_upkeep *upkeep = &choice->upkeep;
    char text[320] = "";
    struct nw_cell needed, reads;

    if (!isfinite(upkeep->loading_bytes_per_s))
        return;
    nw_print_to(text, sizeof text, "%d node%s: training data, %s needed of %s (%s)%s",
                choice->node_count, choice->node_count == 1 ? "" : "s",
                nw_cell_rate(&needed, upkeep->loading_needed_bytes_per_s),
                nw_cell_rate(&reads, upkeep->loading_bytes_per_s),
                source_of(model->terms.storage.read_from),
                upkeep->saturated ? nw_tr(": each step waits for it") : "");
    nw_print_wrapped(stream, "  ", "    ", text);
}

static void print_upkeep(FILE *stream, const struct nw_model *model,
                         const struct nw_decision *decision)
{
    const struct nw_failures *failures = &model->terms.failures;
    const struct nw_choice *choice = &decision->choices[decision->headline];
    char text[400], rate[32], restart[32];

    if (!choice->predicted)
        return;
    nw_print(stream, "\nCheckpoints, failures, data\n");
    print_checkpoints(stream, model, choice);
    print_loading(stream, model, choice);
    nw_print_to(text, sizeof text, "%s failures in 1000 GPU-days (%s), %s to go on after one (%s)",
                nw_format_sig(rate, failures->per_gpu_hour * 24000, 3),
                failures->rate_assumed ? nw_tr("assumed: 419 in 54 days on 16,384 H100, Llama 3")
                                       : nw_tr("given"),
                nw_format_ns(restart, failures->restart_ns),
                failures->restart_assumed ? nw_tr("assumed: judgement") : nw_tr("given"));
    nw_print_wrapped(stream, "  ", "    ", text);
}

/* ---- the page ------------------------------------------------------------------------------ */

nw_rc nw_report_decide_claims(FILE *stream, const struct nw_model *model,
                              const struct nw_decision *decision,
                              const struct nw_claim_costs *claims)
{
    char text[2048], rule[512];

    nw_report_sentence(text, sizeof text, model, decision);
    struct nw_say say = {.to = text, .size = sizeof text, .length = strlen(text)};

    nw_say_weakest(&say, claims, NULL);
    nw_print_wrapped(stream, "", "", text);
    fputc('\n', stream);
    NW_TRY(nw_report_job(stream, model));
    NW_TRY(print_scaling(stream, decision));
    NW_TRY(print_cost(stream, model, decision));
    nw_print(stream, "%s\n", nw_report_pays_rule(rule, sizeof rule, model));
    NW_TRY(print_rentals(stream, model, decision));
    nw_report_reasons(stream, model, decision);
    NW_TRY(nw_report_turns(stream, model, decision));
    NW_TRY(nw_report_claim_costs(stream, model, claims, NULL));
    print_upkeep(stream, model, decision);
    return nw_report_notes(stream, decision->how, decision->assumed, &model->platform.assumptions);
}

nw_rc nw_report_decide(FILE *stream, const struct nw_model *model,
                       const struct nw_decision *decision)
{
    const struct nw_claim_costs none = {.count = 0};

    return nw_report_decide_claims(stream, model, decision, &none);
}
