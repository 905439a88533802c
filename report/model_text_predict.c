/* Predictions as tables. */
#include <math.h>

#include "base/table.h"
#include "base/units.h"
#include "report/model_text_parts.h"

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
        struct nw_cell c[9];

        nw_table_row(table,
                     (const char *[]){nw_cell_nodes(&c[0], step->node_count), step->strategy->name,
                                      nw_cell_gib(&c[1], memory->weights_bytes),
                                      nw_cell_gib(&c[2], memory->gradients_bytes),
                                      nw_cell_gib(&c[3], memory->optimizer_bytes),
                                      nw_cell_gib(&c[4], memory->activations_bytes),
                                      nw_cell_gib(&c[5], memory->buffers_bytes),
                                      nw_cell_gib(&c[6], memory->runtime_bytes),
                                      nw_cell_gib(&c[7], memory->total_bytes),
                                      nw_cell_room(&c[8], model, step)});
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
        struct nw_cell c[7];

        nw_table_row(table, (const char *[]){
                                nw_cell_nodes(&c[0], step->node_count), step->strategy->name,
                                nw_cell_part(&c[1], step->compute_ns),
                                nw_cell_part(&c[2], step->exposed_ns),
                                nw_cell_part(&c[3], step->hidden_ns), nw_cell_interval(&c[4], step),
                                nw_cell_bounds(&c[6], step),
                                nw_cell_count(&c[5], step->tokens_per_s), nw_cell_come_by(step)});
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
