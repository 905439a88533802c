#include "report/search_text.h"

#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"

#define GIB (1024.0 * 1024 * 1024)

struct cell {
    char text[64];
};

/* "tp8 sp pp4x2 cp2" */
static const char *degrees(struct cell *cell, const struct nw_layout *layout)
{
    const struct nw_parallel *parallel = &layout->parallel;
    size_t at = 0;

    cell->text[0] = '\0';
    if (parallel->tp > 1)
        at += (size_t)snprintf(cell->text, sizeof cell->text, "tp%d%s ", parallel->tp,
                               parallel->sequence_parallel ? " sp" : "");
    if (parallel->pp > 1)
        at += (size_t)snprintf(cell->text + at, sizeof cell->text - at, "pp%d", parallel->pp);
    if (parallel->pp > 1)
        at +=
            (size_t)snprintf(cell->text + at, sizeof cell->text - at,
                             parallel->virtual_stages > 1 ? "x%d " : " ", parallel->virtual_stages);
    if (parallel->cp > 1)
        at += (size_t)snprintf(cell->text + at, sizeof cell->text - at, "cp%d ", parallel->cp);
    if (parallel->ep > 1)
        at += (size_t)snprintf(cell->text + at, sizeof cell->text - at, "ep%d ", parallel->ep);
    snprintf(cell->text + at, sizeof cell->text - at, "dp%d", nw_layout_dp(layout));
    return cell->text;
}

static const char *memory_saving(struct cell *cell, const struct nw_job *job)
{
    static const char *const again[] = {"", "recompute", "selective"};

    snprintf(cell->text, sizeof cell->text, "%s%s%s", again[job->recompute],
             job->recompute != NW_RECOMPUTE_NONE && job->offload.optimizer != NW_OFFLOAD_NONE ? ", "
                                                                                              : "",
             job->offload.parameters != NW_OFFLOAD_NONE  ? "offload all"
             : job->offload.optimizer != NW_OFFLOAD_NONE ? "offload states"
                                                         : "");
    return cell->text;
}

static void add_row(struct nw_table *table, const struct nw_found *found, size_t rank)
{
    const struct nw_step *step = &found->step;
    struct cell way, spread, saving;
    char number[32], nodes[16], batch[32], alike[32] = "", memory[32], time[32], rate[32], mfu[16],
                                           cost[32], text[32];

    snprintf(number, sizeof number, "%zu", rank);
    snprintf(nodes, sizeof nodes, "%d", step->node_count);
    snprintf(way.text, sizeof way.text, "%s (%s)", step->strategy->name,
             step->layout.profile->name);
    snprintf(batch, sizeof batch, "%llu x %llu", (unsigned long long)step->micro_batch,
             (unsigned long long)step->micro_batch_count);
    snprintf(time, sizeof time, "%s s", nw_format_sig(text, step->step_ns / 1e9, 3));
    snprintf(mfu, sizeof mfu, isfinite(step->mfu) ? "%.0f %%" : "–", 100 * step->mfu);
    if (found->alike > 0)
        snprintf(alike, sizeof alike, "+%zu", found->alike);
    nw_table_row(table,
                 (const char *[]){number, nodes, way.text, degrees(&spread, &step->layout), batch,
                                  memory_saving(&saving, &found->job),
                                  nw_format_sig(memory, step->memory.total_bytes / GIB, 3), time,
                                  nw_format_count(rate, step->tokens_per_s), mfu,
                                  nw_format_sig(cost, found->cost_per_billion_tokens, 3), alike});
}

static void print_head(FILE *stream, const struct nw_model *model,
                       const struct nw_search_result *result)
{
    char seen[32], parameters[32], text[400];

    snprintf(text, sizeof text,
             "%s, %s parameters, %llu sequences of %llu tokens a step. %s plans put through the "
             "closed form in %.2f s, the best %zu that fit predicted by the event simulation in "
             "%.2f s.",
             model->job.net.name,
             nw_format_count(parameters, (double)nw_transformer_parameter_count(&model->job.net)),
             (unsigned long long)model->job.global_batch, (unsigned long long)model->job.sequence,
             nw_format_count(seen, (double)result->seen), result->quick_s, result->count,
             result->exact_s);
    nw_print_wrapped(stream, "", "", text);
}

nw_rc nw_report_search(FILE *stream, const struct nw_model *model,
                       const struct nw_search_result *result, size_t most)
{
    static const struct nw_column columns[] = {
        {"", NW_RIGHT},      {"nodes", NW_RIGHT},    {"strategy", NW_LEFT},
        {"spread", NW_LEFT}, {"batch", NW_RIGHT},    {"memory saved by", NW_LEFT},
        {"GiB", NW_RIGHT},   {"step", NW_RIGHT},     {"tokens/s", NW_RIGHT},
        {"MFU", NW_RIGHT},   {"per 10^9", NW_RIGHT}, {"alike", NW_RIGHT},
    };
    const bool priced = isfinite(model->terms.price_per_node_hour);
    const struct nw_found *cheapest = &result->items[result->cheapest];
    struct nw_table *table;

    print_head(stream, model, result);
    fprintf(stream, "\nFastest, the first of each kind\n");
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0, shown = 0; i < result->count && shown < most; i++) {
        if (!result->items[i].is_first)
            continue;
        add_row(table, &result->items[i], i + 1);
        shown++;
    }
    NW_TRY(nw_table_print(table, stream));
    fprintf(stream, "\nFastest of each strategy\n");
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < result->count; i++)
        if (result->items[i].leads_strategy)
            add_row(table, &result->items[i], i + 1);
    NW_TRY(nw_table_print(table, stream));
    fprintf(stream, "\nCheapest\n");
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    add_row(table, cheapest, result->cheapest + 1);
    NW_TRY(nw_table_print(table, stream));
    nw_print_wrapped(
        stream, "\n", "",
        priced ? "Batch: micro-batch x micro-batches of a step. Cost: per 10^9 tokens, in the "
                 "currency of the price. Alike: further plans of the same strategy and degrees, "
                 "with other batches, recomputation, stages, shards."
               : "Batch: micro-batch x micro-batches of a step. Cost: node hours per 10^9 tokens; "
                 "give --price-per-node-hour for money. Alike: further plans of the same strategy "
                 "and degrees, with other batches, recomputation, stages, shards.");
    nw_print_wrapped(stream, "", "",
                     "Steps are predictions: `nodeworth predict` shows the range and what it rests "
                     "on; --emit DIR writes the fastest down for the tools that run it.");
    return NW_OK;
}
