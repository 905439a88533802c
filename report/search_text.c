#include "report/search_text.h"

#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "report/model_text_parts.h"

#define COLUMN_COUNT 11

/* "tp8 sp pp4x2 cp2" */
static const char *degrees(struct nw_cell *cell, const struct nw_layout *layout)
{
    const struct nw_parallel *parallel = &layout->parallel;
    size_t at = 0;

    cell->text[0] = '\0';
    if (parallel->tp > 1)
        at += (size_t)nw_print_to(cell->text, sizeof cell->text, "tp%d%s ", parallel->tp,
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

static const char *memory_saving(struct nw_cell *cell, const struct nw_job *job)
{
    static const char *const again[] = {"", "recompute", "selective"};
    const bool both =
        job->recompute != NW_RECOMPUTE_NONE && job->offload.optimizer != NW_OFFLOAD_NONE;

    nw_print_to(cell->text, sizeof cell->text, "%s%s%s", again[job->recompute], both ? ", " : "",
                job->offload.parameters != NW_OFFLOAD_NONE  ? nw_tr("offload all")
                : job->offload.optimizer != NW_OFFLOAD_NONE ? nw_tr("offload")
                                                            : "");
    return cell->text;
}

/* A page is 100 columns wide: what is the same in every row stands above the table. */
struct page {
    bool one_node_count;
    const struct nw_search_result *result;
};

/* ddp and zero1 are built by several frameworks: theirs are told apart. */
static bool of_several(const struct page *page, const struct nw_step *step)
{
    for (size_t i = 0; i < page->result->count; i++) {
        const struct nw_step *other = &page->result->items[i].step;

        if (other->strategy == step->strategy && other->layout.profile != step->layout.profile)
            return true;
    }
    return false;
}

static void add_row(struct nw_table *table, const struct page *page, size_t rank)
{
    const struct nw_found *found = &page->result->items[rank - 1];
    const struct nw_step *step = &found->step;
    struct nw_cell way, spread, saving;
    const bool named = of_several(page, step);
    char number[32], nodes[16], batch[64], memory[32], time[32], rate[32], mfu[16], cost[32],
        text[32];

    snprintf(number, sizeof number, "%zu", rank);
    snprintf(nodes, sizeof nodes, "%d", step->node_count);
    nw_print_to(way.text, sizeof way.text, "%s%s%s", step->strategy->name, named ? " " : "",
                named ? step->layout.profile->name : "");
    snprintf(batch, sizeof batch, "%llu x %llu", (unsigned long long)step->micro_batch,
             (unsigned long long)step->micro_batch_count);
    nw_print_to(time, sizeof time, "%s s", nw_format_sig(text, step->step_ns / 1e9, 3));
    snprintf(mfu, sizeof mfu, isfinite(step->mfu) ? "%.0f %%" : "–", 100 * step->mfu);
    const char *const cells[] = {number,
                                 nodes,
                                 way.text,
                                 degrees(&spread, &step->layout),
                                 batch,
                                 memory_saving(&saving, &found->job),
                                 nw_format_sig(memory, step->memory.total_bytes / GIB, 3),
                                 time,
                                 nw_format_count(rate, step->tokens_per_s),
                                 mfu,
                                 nw_format_sig(cost, found->cost_per_billion_tokens, 3)};
    const char *without[COLUMN_COUNT - 1] = {number};

    memcpy(&without[1], &cells[2], sizeof cells - 2 * sizeof cells[0]);
    nw_table_row(table, page->one_node_count ? without : cells);
}

static nw_rc open_table(const struct page *page, struct nw_table **table_out)
{
    static const struct nw_column all[COLUMN_COUNT] = {
        {"", NW_RIGHT},      {"nodes", NW_RIGHT}, {"strategy", NW_LEFT},
        {"spread", NW_LEFT}, {"batch", NW_RIGHT}, {"memory saved by", NW_LEFT},
        {"GiB", NW_RIGHT},   {"step", NW_RIGHT},  {"tokens/s", NW_RIGHT},
        {"MFU", NW_RIGHT},   {"cost", NW_RIGHT},
    };
    struct nw_column without[COLUMN_COUNT - 1] = {all[0]};

    memcpy(&without[1], &all[2], sizeof all - 2 * sizeof all[0]);
    return page->one_node_count ? nw_table_open(without, COLUMN_COUNT - 1, table_out)
                                : nw_table_open(all, COLUMN_COUNT, table_out);
}

static void print_frameworks(FILE *stream, const struct page *page)
{
    char text[400];
    size_t at = 0;

    for (size_t i = 0; i < page->result->count; i++) {
        const struct nw_step *step = &page->result->items[i].step;

        if (!page->result->items[i].leads_strategy || of_several(page, step) ||
            at >= sizeof text - 64)
            continue;
        at += (size_t)nw_print_to(text + at, sizeof text - at, "%s%s of %s", at > 0 ? ", " : "",
                                  step->strategy->name, step->layout.profile->name);
    }
    if (at > 0) {
        fputc('\n', stream);
        nw_print_wrapped(stream, "Frameworks: ", "", text);
    }
}

static void print_head(FILE *stream, const struct nw_model *model,
                       const struct nw_search_result *result, const struct page *page)
{
    char seen[32], parameters[32], text[480], batch[96], on[64] = "";
    const struct nw_step *first = result->count > 0 ? &result->items[0].step : NULL;

    if (model->job.net.stated_parameters > 0 && model->job.sequence == 1)
        nw_print_to(batch, sizeof batch, "%llu samples, each counted as a token,",
                    (unsigned long long)model->job.global_batch);
    else
        nw_print_to(batch, sizeof batch, "%llu sequences of %llu tokens",
                    (unsigned long long)model->job.global_batch,
                    (unsigned long long)model->job.sequence);
    if (first != NULL && page->one_node_count)
        nw_print_to(on, sizeof on, " on %d GPUs, %d node%s", first->rank_count, first->node_count,
                    first->node_count == 1 ? "" : "s");

    nw_print_to(
        text, sizeof text,
        "%s, %s parameters, %s a step%s. %s plans put through the "
        "closed form in %.2f s, the best %zu that fit predicted by the event simulation in "
        "%.2f s.",
        model->job.net.name,
        nw_format_count(parameters, (double)nw_transformer_parameter_count(&model->job.net)), batch,
        on, nw_format_count(seen, (double)result->seen), result->quick_s, result->count,
        result->exact_s);
    nw_print_wrapped(stream, "", "", text);
}

nw_rc nw_report_search(FILE *stream, const struct nw_model *model,
                       const struct nw_search_result *result, size_t most)
{
    const bool priced = isfinite(model->terms.price_per_node_hour);
    struct page page = {.one_node_count = true, .result = result};
    struct nw_table *table;
    unsigned how = 0;

    for (size_t i = 0; i < result->count; i++)
        how |= result->items[i].step.how;
    for (size_t i = 1; i < result->count; i++)
        if (result->items[i].step.node_count != result->items[0].step.node_count)
            page.one_node_count = false;
    print_head(stream, model, result, &page);
    nw_print(stream, "\nFastest, the first of each kind\n");
    NW_TRY(open_table(&page, &table));
    for (size_t i = 0, shown = 0; i < result->count && shown < most; i++) {
        if (!result->items[i].is_first)
            continue;
        add_row(table, &page, i + 1);
        shown++;
    }
    NW_TRY(nw_table_print(table, stream));
    nw_print(stream, "\nFastest of each strategy\n");
    NW_TRY(open_table(&page, &table));
    for (size_t i = 0; i < result->count; i++)
        if (result->items[i].leads_strategy)
            add_row(table, &page, i + 1);
    NW_TRY(nw_table_print(table, stream));
    nw_print(stream, "\nCheapest\n");
    NW_TRY(open_table(&page, &table));
    add_row(table, &page, result->cheapest + 1);
    NW_TRY(nw_table_print(table, stream));
    print_frameworks(stream, &page);
    nw_print_wrapped(stream, "", "",
                     "Batch: micro-batch x micro-batches of a step. Offload: of the optimizer's "
                     "states to the CPU; all: of the weights too.");
    nw_print_wrapped(
        stream, "", "",
        priced ? nw_tr("Cost: per 10^9 tokens, in the currency of the price. Further plans "
                       "of the same strategy and degrees are left out (--json).")
               : nw_tr("Cost: node hours per 10^9 tokens; give --price-per-node-hour for "
                       "money. Further plans of the same strategy and degrees are left out "
                       "(--json)."));
    if ((how & NW_COST_SIMULATED) != 0)
        nw_print_wrapped(stream, "", "",
                         "Made from SIMULATED results: no statement about a machine.");
    nw_print_wrapped(stream, "", "",
                     "Steps are predictions: `nodeworth predict` shows the range and what it rests "
                     "on; --emit DIR writes the fastest down for the tools that run it.");
    return NW_OK;
}
