/* The decision as tables. */
#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "report/model_text_parts.h"

/* The model of errors is too coarse to tell 99.5 from 99.9 %. */
static const char *certainty(struct nw_cell *cell, double probability)
{
    return probability > 0.99 ? "> 99 %" : nw_cell_percent(cell, probability);
}

static const char *verdict(const struct nw_choice *choice)
{
    static const char *const names[] = {
        [NW_PAYS_BASE] = "–",
        [NW_PAYS_YES] = "pays",
        [NW_PAYS_MEMORY] = "needed",
        [NW_PAYS_DEADLINE] = "needed (deadline)",
        [NW_PAYS_NO] = "does not pay",
        [NW_PAYS_UNFIT] = "does not fit",
        [NW_PAYS_UNKNOWN] = "not measured",
        [NW_PAYS_BATCH] = "batch not divisible",
    };

    return names[choice->pays];
}

static const char *times(struct nw_cell *cell, double speedup)
{
    snprintf(cell->text, sizeof cell->text, "%.2f×", speedup);
    return cell->text;
}

static const char *money(struct nw_cell *cell, double amount)
{
    char text[32];

    snprintf(cell->text, sizeof cell->text, "%s", nw_format_sig(text, amount, 3));
    return cell->text;
}

static nw_rc print_scaling(FILE *stream, const struct nw_decision *decision, bool weak)
{
    static const struct nw_column columns[] = {
        {"nodes", NW_RIGHT},       {"strategy", NW_LEFT},    {"memory", NW_RIGHT},
        {"step [range]", NW_LEFT}, {"exposed", NW_RIGHT},    {"tokens/s", NW_RIGHT},
        {"speed", NW_RIGHT},       {"efficiency", NW_RIGHT}, {"from", NW_LEFT}};
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < decision->count; i++) {
        const struct nw_choice *choice = &decision->choices[i];
        const struct nw_step *step = weak ? &choice->weak : &choice->strong;
        struct nw_cell c[7];

        if (!(weak ? choice->weak_predicted : choice->predicted)) {
            nw_table_row(table, (const char *[]){nw_cell_nodes(&c[0], choice->node_count), "–", "–",
                                                 weak && choice->predicted ? "does not fit"
                                                                           : verdict(choice),
                                                 "", "", "", "", ""});
            continue;
        }
        nw_table_row(
            table,
            (const char *[]){
                nw_cell_nodes(&c[0], choice->node_count), step->strategy->name,
                nw_cell_gib(&c[1], step->memory.total_bytes), nw_cell_interval(&c[2], step),
                nw_cell_part(&c[3], step->exposed_ns), nw_cell_count(&c[4], step->tokens_per_s),
                times(&c[5], weak ? choice->weak_speedup : choice->speedup),
                nw_cell_percent(&c[6], weak ? choice->weak_efficiency : choice->efficiency),
                nw_cell_come_by(step)});
    }
    return nw_table_print(table, stream);
}

static nw_rc print_cost(FILE *stream, const struct nw_model *model,
                        const struct nw_decision *decision)
{
    const bool priced = isfinite(model->terms.price_per_node_hour);
    static const struct nw_column columns[] = {{"nodes", NW_RIGHT},       {"per hour", NW_RIGHT},
                                               {"10^9 tokens", NW_RIGHT}, {"against one", NW_LEFT},
                                               {"time, all", NW_RIGHT},   {"cost, all", NW_RIGHT},
                                               {"verdict", NW_LEFT},      {"certainty", NW_RIGHT}};
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < decision->count; i++) {
        const struct nw_choice *choice = &decision->choices[i];
        const bool compared = choice->predicted && isfinite(choice->probability);
        const bool pays = choice->pays == NW_PAYS_YES;
        struct nw_cell c[7];

        snprintf(c[4].text, sizeof c[4].text, "%.2f× [%.2f, %.2f]", choice->cost_ratio,
                 choice->cost_ratio_low, choice->cost_ratio_high);
        nw_table_row(
            table,
            (const char *[]){
                nw_cell_nodes(&c[0], choice->node_count),
                choice->predicted ? money(&c[1], choice->price_per_hour) : "–",
                choice->predicted ? money(&c[2], choice->cost_per_billion_tokens) : "–",
                compared ? c[4].text : "–",
                choice->predicted ? nw_cell_duration(&c[3], choice->time_ns) : "–",
                choice->predicted ? money(&c[5], choice->cost) : "–", verdict(choice),
                compared ? certainty(&c[6], pays ? choice->probability : 1 - choice->probability)
                         : "–"});
    }
    fprintf(stream, "\nCost, %s%s\n", priced ? "in " : "in node-hours (no price was given)",
            !priced                            ? ""
            : model->terms.currency[0] != '\0' ? model->terms.currency
                                               : "the unit of --price-per-node-hour");
    return nw_table_print(table, stream);
}

static void print_break_even(FILE *stream, const struct nw_choice *choice)
{
    char at[32], measured[32], message[32];

    if (choice->break_even == NW_BREAK_EVEN_NONE || choice->break_even_collective == NULL)
        return;
    fprintf(stream, "  %d nodes, %s: ", choice->node_count, choice->break_even_strategy->name);
    if (choice->break_even == NW_BREAK_EVEN_AT)
        fprintf(stream, "from %s GB/s",
                nw_format_gb_per_s(at, choice->break_even_busbw_bytes_per_s));
    else
        fprintf(stream, "%s",
                choice->break_even == NW_BREAK_EVEN_NEVER ? "at no speed" : "at any speed");
    nw_format_bytes(message, (uint64_t)choice->break_even_message_bytes);
    if (isfinite(choice->measured_busbw_bytes_per_s))
        fprintf(stream, "; at hand: %s GB/s (bus bandwidth of %s, %s)\n",
                nw_format_gb_per_s(measured, choice->measured_busbw_bytes_per_s),
                choice->break_even_collective, message);
    else
        fprintf(stream, "; not measured (bus bandwidth of %s, %s)\n", choice->break_even_collective,
                message);
}

nw_rc nw_report_decide(FILE *stream, const struct nw_model *model,
                       const struct nw_decision *decision)
{
    char text[1024];
    bool any = false;

    NW_TRY(nw_report_job(stream, model));
    fprintf(stream, "\nSame global batch on every node count (strong scaling)\n");
    NW_TRY(print_scaling(stream, decision, false));
    fprintf(stream, "\nSame batch per GPU, larger global batch (weak scaling)\n");
    NW_TRY(print_scaling(stream, decision, true));
    NW_TRY(print_cost(stream, model, decision));
    fprintf(stream, "%s\n", nw_report_pays_rule(text, sizeof text, model));
    for (size_t i = 0; i < decision->count; i++)
        any = any || decision->choices[i].break_even != NW_BREAK_EVEN_NONE;
    if (any)
        fprintf(stream, "\nPays, between nodes\n");
    for (size_t i = 0; i < decision->count; i++)
        print_break_even(stream, &decision->choices[i]);
    fputc('\n', stream);
    nw_print_wrapped(stream, "", "", nw_report_sentence(text, sizeof text, model, decision));
    return nw_report_notes(stream, decision->how, decision->assumed);
}
