/* Predictions as tables. */
#include <math.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "report/model_text_parts.h"

/* What each framework was taken to keep, once. */
static void print_policies(FILE *stream, const struct nw_steps *steps)
{
    for (size_t i = 0; i < steps->count; i++) {
        const struct nw_step *step = &steps->items[i];
        const struct nw_profile *profile = nw_layout_profile(&step->layout);
        bool said = step->memory.policy == NULL;
        char text[320];

        for (size_t before = 0; before < i && !said; before++)
            said = steps->items[before].memory.policy == step->memory.policy;
        if (said)
            continue;
        nw_print_to(text, sizeof text, "%s: %s", profile->name, step->memory.policy);
        nw_print_wrapped(stream, "", "    ", text);
    }
}

static nw_rc print_memory(FILE *stream, const struct nw_model *model, const struct nw_steps *steps)
{
    static const struct nw_column columns[] = {
        {"nodes", NW_RIGHT},     {"strategy", NW_LEFT},   {"weights", NW_RIGHT},
        {"gradients", NW_RIGHT}, {"optimizer", NW_RIGHT}, {"activations", NW_RIGHT},
        {"buffers", NW_RIGHT},   {"runtime", NW_RIGHT},   {"total", NW_RIGHT},
        {"card", NW_LEFT},       {"peak", NW_LEFT}};
    static const char *const peaks[] = {[NW_PEAK_FORWARD_END] = "forward",
                                        [NW_PEAK_BACKWARD] = "backward",
                                        [NW_PEAK_UPDATE] = "update"};
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < steps->count; i++) {
        const struct nw_step *step = &steps->items[i];
        const struct nw_memory *memory = &step->memory;
        struct nw_cell c[9];

        nw_table_row(table,
                     (const char *[]){
                         nw_cell_nodes(&c[0], step->node_count), step->strategy->name,
                         nw_cell_gib(&c[1], memory->weights_bytes),
                         nw_cell_gib(&c[2], memory->gradients_bytes),
                         nw_cell_gib(&c[3], memory->optimizer_bytes),
                         nw_cell_gib(&c[4], memory->activations_bytes),
                         nw_cell_gib(&c[5], memory->buffers_bytes),
                         nw_cell_gib(&c[6], memory->runtime_bytes + memory->fragmentation_bytes),
                         nw_cell_gib(&c[7], memory->total_bytes), nw_cell_room(&c[8], model, step),
                         peaks[memory->peak]});
    }
    nw_print(stream, "\nMemory per GPU, GiB\n");
    NW_TRY(nw_table_print(table, stream));
    print_policies(stream, steps);
    return NW_OK;
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
        struct nw_cell c[7];

        nw_table_row(table, (const char *[]){
                                nw_cell_nodes(&c[0], step->node_count), step->strategy->name,
                                nw_cell_part(&c[1], step->compute_ns),
                                nw_cell_part(&c[2], step->exposed_ns),
                                nw_cell_part(&c[3], step->hidden_ns), nw_cell_interval(&c[4], step),
                                nw_cell_bounds(&c[6], step),
                                nw_cell_count(&c[5], step->tokens_per_s), nw_cell_come_by(step)});
    }
    nw_print(stream,
             "\nTime of one step: communication exposed, and hidden behind computation; with no "
             "and full overlap\n");
    return nw_table_print(table, stream);
}

/* The fastest that fits, on so many nodes; NULL: none does. */
static const struct nw_step *best_of(const struct nw_steps *steps, int node_count)
{
    const struct nw_step *best = NULL;

    for (size_t i = 0; i < steps->count; i++) {
        const struct nw_step *step = &steps->items[i];

        if (step->node_count == node_count && step->fits != 0 &&
            (best == NULL || step->step_ns < best->step_ns))
            best = step;
    }
    return best;
}

/* The fastest strategy that fits on each node count, in detail. */
static nw_rc print_details(FILE *stream, const struct nw_model *model, const struct nw_steps *steps)
{
    bool any = false;

    for (size_t n = 0; n < model->node_count_count; n++) {
        const struct nw_step *best = best_of(steps, model->node_counts[n]);

        if (best == NULL)
            continue;
        if (!any)
            nw_print(stream, "\nWhat a step is made of (the fastest strategy that fits)\n");
        any = true;
        NW_TRY(nw_report_breakdown(stream, best));
    }
    if (any)
        nw_print(stream, "\nWhat would make it faster, each change alone\n");
    for (size_t n = 0; n < model->node_count_count; n++) {
        const struct nw_step *best = best_of(steps, model->node_counts[n]);

        if (best != NULL)
            NW_TRY(nw_report_levers(stream, model, best));
    }
    return NW_OK;
}

/* Of so many nodes the one that is least over; NULL: something fits. */
static const struct nw_step *closest_of(const struct nw_steps *steps, int node_count)
{
    const struct nw_step *closest = NULL;

    for (size_t i = 0; i < steps->count; i++) {
        const struct nw_step *step = &steps->items[i];

        if (step->node_count != node_count)
            continue;
        if (step->fits != 0)
            return NULL;
        if (closest == NULL || step->memory.total_bytes < closest->memory.total_bytes)
            closest = step;
    }
    return closest;
}

static nw_rc print_fit(FILE *stream, const struct nw_model *model, const struct nw_steps *steps)
{
    bool any = false;

    for (size_t n = 0; n < model->node_count_count; n++) {
        const struct nw_step *step = closest_of(steps, model->node_counts[n]);

        if (step == NULL)
            continue;
        if (!any)
            nw_print(stream, "\nWhat would make it fit, the cheapest first\n");
        any = true;
        NW_TRY(nw_report_fit(stream, model, step));
    }
    return NW_OK;
}

static bool is_known(const struct nw_steps *steps, int node_count,
                     const struct nw_strategy *strategy)
{
    for (size_t i = 0; i < steps->count; i++)
        if (steps->items[i].node_count == node_count &&
            (strategy == NULL || steps->items[i].strategy == strategy))
            return true;
    return false;
}

/* Strategies that go on other node counts only. */
static void print_strategies_left_out(FILE *stream, const struct nw_model *model,
                                      const struct nw_steps *steps)
{
    for (size_t n = 0; n < model->node_count_count; n++) {
        const int nodes = model->node_counts[n];
        bool any = false;

        for (size_t s = 0; model->strategies[s] != NULL && is_known(steps, nodes, NULL); s++) {
            if (is_known(steps, nodes, model->strategies[s]))
                continue;
            nw_print(stream, "%s%s", any ? ", " : nw_tr("\nLeft out: "),
                     model->strategies[s]->name);
            any = true;
        }
        if (any)
            nw_print(stream,
                     " on %d node%s (alone, with --strategy and --nodes %d, it says why).\n", nodes,
                     nodes == 1 ? "" : "s", nodes);
    }
}

static void print_left_out(FILE *stream, const struct nw_model *model, const struct nw_steps *steps)
{
    if (steps->unpredicted > 0 && model->node_counts[0] == 1 && !is_known(steps, 1, NULL))
        nw_print(stream, "\nOne node: what passes between its GPUs was not measured; give --gpu, "
                         "--intra-node GB/s\nor results of one node.\n");
    else if (steps->unpredicted > 0)
        nw_print(stream, "\nMore nodes: nothing between nodes was measured; give --nic-gbps, "
                         "--inter-node GB/s\nor results of two nodes.\n");
    if (steps->undealt > 0)
        nw_print(stream,
                 "\n%zu node count%s left out: the batch or the model cannot be dealt "
                 "evenly to so many GPUs.\n",
                 steps->undealt, steps->undealt == 1 ? " is" : nw_tr("s are"));
}

/* "seq 4096 (…), framework pytorch (documented defaults)". */
static void print_defaults(FILE *stream, const struct nw_defaults *defaults)
{
    char text[2048];
    size_t length = 0;

    for (size_t i = 0; i < defaults->count; i++) {
        const struct nw_default *item = &defaults->items[i];
        const int added =
            snprintf(text + length, sizeof text - length, "%s%s %s (%s)", length > 0 ? ", " : "",
                     item->option, item->value, nw_spoken(item->text));

        if (added < 0 || (size_t)added >= sizeof text - length)
            break;
        length += (size_t)added;
    }
    text[length] = '\0';
    if (length > 0)
        nw_print_wrapped(stream, "\nNot said, so taken: ", "    ", text);
}

nw_rc nw_report_predict(FILE *stream, const struct nw_model *model, const struct nw_steps *steps)
{
    unsigned how = 0;
    nw_assumed assumed = 0;
    bool optimizer_known = true;

    NW_TRY(nw_report_job(stream, model));
    NW_TRY(nw_report_anchor(stream, model, steps));
    NW_TRY(print_memory(stream, model, steps));
    NW_TRY(print_times(stream, steps));
    NW_TRY(print_details(stream, model, steps));
    NW_TRY(print_fit(stream, model, steps));
    for (size_t i = 0; i < steps->count; i++) {
        how |= steps->items[i].rank_count > 1 ? steps->items[i].how : 0;
        assumed |= steps->items[i].assumed;
        optimizer_known = optimizer_known && steps->items[i].optimizer_known;
    }
    print_left_out(stream, model, steps);
    print_strategies_left_out(stream, model, steps);
    if (!optimizer_known)
        nw_print(stream, "\nThe optimizer's own time is left out: %s.\n",
                 model->job.offload.optimizer == NW_OFFLOAD_NVME
                     ? nw_tr("the rate of the NVMe disks is unknown (--nvme-gbps)")
                 : model->job.offload.optimizer == NW_OFFLOAD_CPU
                     ? nw_tr("the rate between GPU and host is unknown (--host-gbps or --gpu)")
                     : nw_tr("memory bandwidth unknown (--hbm or --gpu)"));
    print_defaults(stream, &model->defaults);
    return nw_report_notes(stream, how, assumed, &model->platform.assumptions);
}
