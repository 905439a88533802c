#include "report/model_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"

#define GIB (1024.0 * 1024 * 1024)

struct cell {
    char text[64];
};

static const char *gib(struct cell *cell, double bytes)
{
    char number[32];

    snprintf(cell->text, sizeof cell->text, "%s", nw_format_sig(number, bytes / GIB, 3));
    return cell->text;
}

static const char *duration(struct cell *cell, double ns)
{
    char text[32];

    snprintf(cell->text, sizeof cell->text, "%s", ns == 0 ? "0" : nw_format_ns(text, ns));
    return cell->text;
}

struct unit {
    double ns;
    const char *name;
};

/* One unit, not two ("4 min 58 s"): the columns stay narrow and comparable. */
static const struct unit *unit_for(double ns)
{
    static const struct unit units[] = {
        {3.6e12, "h"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    size_t u = 0;

    while (u + 1 < sizeof units / sizeof units[0] && ns < 0.9995 * units[u].ns)
        u++;
    return &units[u];
}

static const char *part(struct cell *cell, double ns)
{
    const struct unit *unit = unit_for(ns);
    char number[32];

    if (ns == 0)
        return "0";
    snprintf(cell->text, sizeof cell->text, "%s %s", nw_format_sig(number, ns / unit->ns, 3),
             unit->name);
    return cell->text;
}

const char *nw_report_step_time(char *to, size_t size, const struct nw_step *step)
{
    const struct unit *unit = unit_for(step->step_ns);
    char middle[32], low[32], high[32];

    snprintf(to, size, "%s %s [%s, %s]", nw_format_sig(middle, step->step_ns / unit->ns, 3),
             unit->name, nw_format_sig(low, step->low_ns / unit->ns, 3),
             nw_format_sig(high, step->high_ns / unit->ns, 3));
    return to;
}

static const char *interval(struct cell *cell, const struct nw_step *step)
{
    return nw_report_step_time(cell->text, sizeof cell->text, step);
}

static const char *bounds(struct cell *cell, const struct nw_step *step)
{
    struct cell none, full;

    snprintf(cell->text, sizeof cell->text, "%.20s … %.20s", part(&none, step->no_overlap_ns),
             part(&full, step->full_overlap_ns));
    return cell->text;
}

static const char *count(struct cell *cell, double value)
{
    char text[32];

    snprintf(cell->text, sizeof cell->text, "%s", nw_format_count(text, value));
    return cell->text;
}

static const char *percent(struct cell *cell, double share)
{
    if (!isfinite(share))
        return "–";
    snprintf(cell->text, sizeof cell->text, "%.0f %%", 100 * share);
    return cell->text;
}

/* The model of errors is too coarse to tell 99.5 from 99.9 %. */
static const char *certainty(struct cell *cell, double probability)
{
    return probability > 0.99 ? "> 99 %" : percent(cell, probability);
}

static const char *nodes(struct cell *cell, int node_count)
{
    snprintf(cell->text, sizeof cell->text, "%d", node_count);
    return cell->text;
}

static const char *room(struct cell *cell, const struct nw_model *model, const struct nw_step *step)
{
    char text[32];
    const double left = (double)model->platform.memory_bytes - step->memory.total_bytes;

    if (step->fits < 0)
        return "unknown";
    snprintf(cell->text, sizeof cell->text, "%s %s", step->fits == 1 ? "fits, free" : "NO, short",
             nw_format_sig(text, fabs(left) / GIB, 3));
    return cell->text;
}

/* The weakest link of how the communication was come by. */
static const char *come_by(const struct nw_step *step)
{
    if (step->rank_count < 2)
        return "–";
    if ((step->how & NW_COST_DATASHEET) != 0)
        return "datasheet";
    if ((step->how & NW_COST_GIVEN) != 0)
        return "given";
    if ((step->how & (NW_COST_RANKS | NW_COST_NODES)) != 0)
        return "extrapolated";
    if ((step->how & NW_COST_DERIVED) != 0)
        return "derived";
    return (step->how & NW_COST_SIZE) != 0 ? "extrapolated" : "measured";
}

/* ---- head ---------------------------------------------------------------------------------- */

static void print_rate(FILE *stream, const struct nw_platform *platform)
{
    const struct nw_rate *rate = &platform->rate;
    char got[32], base[32];

    nw_format_sig(got, rate->flops_per_s / 1e12, 3);
    nw_format_sig(base, rate->base_flops_per_s / 1e12, 3);
    if (rate->source == NW_RATE_STATED)
        fprintf(stream, "%s TFLOP/s per GPU in a training step (given)", got);
    else if (rate->source == NW_RATE_GEMM)
        fprintf(stream, "%s TFLOP/s per GPU: %.0f %% (assumed) of %s in matrix products%s%s", got,
                100 * rate->flops_per_s / rate->base_flops_per_s, base,
                rate->measured ? ", measured (the slowest GPU)" : "",
                rate->simulated ? ", SIMULATED" : "");
    else
        fprintf(stream, "%s TFLOP/s per GPU: %.0f %% (assumed) of the datasheet's %s", got,
                100 * rate->flops_per_s / rate->base_flops_per_s, base);
}

void nw_report_training(FILE *stream, const struct nw_job *job)
{
    fprintf(stream, "%s: %" PRIu64 " parameters · %s, %s%s%s\n", job->net.name,
            nw_transformer_parameter_count(&job->net), job->precision->name, job->optimizer->title,
            job->gradient_bytes > job->precision->element_bytes ? ", fp32 gradients" : "",
            job->recompute ? ", full recomputation" : "");
    fprintf(stream,
            "step: %" PRIu64 " sequences of %" PRIu64 " tokens, at most %" PRIu64
            " per GPU at a time\n",
            job->global_batch, job->sequence, job->micro_batch);
}

static bool has_several_lanes(const struct nw_curves *curves)
{
    for (size_t i = 1; i < curves->count; i++)
        if (strcmp(curves->items[i].lane, curves->items[0].lane) != 0)
            return true;
    return false;
}

nw_rc nw_report_job(FILE *stream, const struct nw_model *model)
{
    const struct nw_platform *platform = &model->platform;
    const struct nw_fabric *fabric = &platform->fabric;
    char text[32];

    nw_report_training(stream, &model->job);
    fprintf(stream, "%d GPU%s per node%s%s", fabric->gpus_per_node,
            fabric->gpus_per_node == 1 ? "" : "s", platform->gpu != NULL ? ", " : "",
            platform->gpu != NULL ? platform->gpu->name : "");
    if (platform->memory_bytes > 0)
        fprintf(stream, ", %s each", nw_format_bytes(text, platform->memory_bytes));
    fprintf(stream, "\ncomputes at ");
    print_rate(stream, platform);
    fprintf(stream, "\n");
    if (has_several_lanes(&model->curves))
        fprintf(stream, "communication as measured over lane %s\n",
                fabric->lane != NULL ? fabric->lane : nw_curves_lane(&model->curves));
    if (model->curves.count == 0)
        fprintf(stream, "no measured communication was given (--results FILE)\n");
    return NW_OK;
}

/* ---- predict ------------------------------------------------------------------------------- */

static nw_rc print_memory(FILE *stream, const struct nw_model *model, const struct nw_steps *steps)
{
    static const struct nw_column columns[] = {{"nodes", NW_RIGHT},     {"strategy", NW_LEFT},
                                               {"weights", NW_RIGHT},   {"gradients", NW_RIGHT},
                                               {"optimizer", NW_RIGHT}, {"activations", NW_RIGHT},
                                               {"buffers", NW_RIGHT},   {"runtime", NW_RIGHT},
                                               {"total", NW_RIGHT},     {"card", NW_LEFT}};
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < steps->count; i++) {
        const struct nw_step *step = &steps->items[i];
        const struct nw_memory *memory = &step->memory;
        struct cell c[9];

        nw_table_row(table,
                     (const char *[]){
                         nodes(&c[0], step->node_count), step->strategy->name,
                         gib(&c[1], memory->weights_bytes), gib(&c[2], memory->gradients_bytes),
                         gib(&c[3], memory->optimizer_bytes), gib(&c[4], memory->activations_bytes),
                         gib(&c[5], memory->buffers_bytes), gib(&c[6], memory->runtime_bytes),
                         gib(&c[7], memory->total_bytes), room(&c[8], model, step)});
    }
    fprintf(stream, "\nMemory per GPU, GiB\n");
    return nw_table_print(table, stream);
}

static nw_rc print_times(FILE *stream, const struct nw_steps *steps)
{
    static const struct nw_column columns[] = {
        {"nodes", NW_RIGHT},    {"strategy", NW_LEFT},  {"compute", NW_RIGHT},
        {"exposed", NW_RIGHT},  {"hidden", NW_RIGHT},   {"step [range]", NW_LEFT},
        {"no … full", NW_LEFT}, {"tokens/s", NW_RIGHT}, {"from", NW_LEFT}};
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < steps->count; i++) {
        const struct nw_step *step = &steps->items[i];
        struct cell c[7];

        nw_table_row(table,
                     (const char *[]){nodes(&c[0], step->node_count), step->strategy->name,
                                      part(&c[1], step->compute_ns), part(&c[2], step->exposed_ns),
                                      part(&c[3], step->hidden_ns), interval(&c[4], step),
                                      bounds(&c[6], step), count(&c[5], step->tokens_per_s),
                                      come_by(step)});
    }
    fprintf(stream,
            "\nTime of one step: communication exposed, and hidden behind computation; with no "
            "and full overlap\n");
    return nw_table_print(table, stream);
}

nw_rc nw_report_predict(FILE *stream, const struct nw_model *model, const struct nw_steps *steps)
{
    unsigned how = 0;
    nw_assumed assumed = 0;
    bool optimizer_known = true;

    NW_TRY(nw_report_job(stream, model));
    NW_TRY(print_memory(stream, model, steps));
    NW_TRY(print_times(stream, steps));
    for (size_t i = 0; i < steps->count; i++) {
        how |= steps->items[i].rank_count > 1 ? steps->items[i].how : 0;
        assumed |= steps->items[i].assumed;
        optimizer_known = optimizer_known && steps->items[i].optimizer_known;
    }
    if (steps->unpredicted > 0)
        fprintf(stream, "\nMore nodes: nothing between nodes was measured; give --inter-node GB/s "
                        "or results of two nodes.\n");
    if (steps->undealt > 0)
        fprintf(stream,
                "\n%zu node count%s left out: the global batch cannot be dealt evenly to "
                "so many GPUs.\n",
                steps->undealt, steps->undealt == 1 ? " is" : "s are");
    if (!optimizer_known)
        fprintf(stream, "\nThe optimizer's own time is left out: memory bandwidth unknown "
                        "(--hbm or --gpu).\n");
    return nw_report_notes(stream, how, assumed);
}

/* ---- decide -------------------------------------------------------------------------------- */

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

static const char *times(struct cell *cell, double speedup)
{
    snprintf(cell->text, sizeof cell->text, "%.2f×", speedup);
    return cell->text;
}

static const char *money(struct cell *cell, double amount)
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
        struct cell c[7];

        if (!(weak ? choice->weak_predicted : choice->predicted)) {
            nw_table_row(table, (const char *[]){nodes(&c[0], choice->node_count), "–", "–",
                                                 weak && choice->predicted ? "does not fit"
                                                                           : verdict(choice),
                                                 "", "", "", "", ""});
            continue;
        }
        nw_table_row(table, (const char *[]){
                                nodes(&c[0], choice->node_count), step->strategy->name,
                                gib(&c[1], step->memory.total_bytes), interval(&c[2], step),
                                part(&c[3], step->exposed_ns), count(&c[4], step->tokens_per_s),
                                times(&c[5], weak ? choice->weak_speedup : choice->speedup),
                                percent(&c[6], weak ? choice->weak_efficiency : choice->efficiency),
                                come_by(step)});
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
        struct cell c[7];

        snprintf(c[4].text, sizeof c[4].text, "%.2f× [%.2f, %.2f]", choice->cost_ratio,
                 choice->cost_ratio_low, choice->cost_ratio_high);
        nw_table_row(
            table,
            (const char *[]){
                nodes(&c[0], choice->node_count),
                choice->predicted ? money(&c[1], choice->price_per_hour) : "–",
                choice->predicted ? money(&c[2], choice->cost_per_billion_tokens) : "–",
                compared ? c[4].text : "–",
                choice->predicted ? duration(&c[3], choice->time_ns) : "–",
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
