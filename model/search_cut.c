/* What is the same for all placements of one cut of the layers: units, their times and what they
 * keep; and the prices of messages. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/search_parts.h"

/* ---- prices ---------------------------------------------------------------------------------- */

nw_rc nw_prices_make(const struct nw_fabric *fabric, const struct nw_scenario *scenario,
                     struct nw_prices *prices_out)
{
    struct nw_price *items = calloc(NW_PRICES_MAX, sizeof *items);

    if (items == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the prices of messages");
    *prices_out = (struct nw_prices){.fabric = fabric, .scenario = scenario, .items = items};
    return NW_OK;
}

void nw_prices_free(struct nw_prices *prices)
{
    free(prices->items);
    *prices = (struct nw_prices){0};
}

static size_t place_of(const char *collective, const struct nw_group *group)
{
    const uint64_t text = (uint64_t)(unsigned char)collective[0] << 8 |
                          (uint64_t)(unsigned char)collective[strlen(collective) - 1];
    const uint64_t key =
        ((((uint64_t)group->rank_count * 1021 + (uint64_t)group->host_count) * 1031 +
          (uint64_t)group->sharing) *
             1033 +
         (uint64_t)group->host_span) *
            65537 +
        text;

    return (size_t)((key * 0x9e3779b97f4a7c15u) >> 40) % NW_PRICES_MAX;
}

static bool is_price(const struct nw_price *price, const char *collective,
                     const struct nw_group *group)
{
    return (price->collective == collective || strcmp(price->collective, collective) == 0) &&
           price->group.rank_count == group->rank_count &&
           price->group.host_count == group->host_count && price->group.sharing == group->sharing &&
           price->group.host_span == group->host_span;
}

/* What cannot be priced stays so; its words are found again when it is asked for directly. */
nw_rc nw_price_ns(struct nw_prices *prices, const char *collective, double bytes,
                  struct nw_group group, double *ns_out)
{
    size_t i = place_of(collective, &group);
    int steps = 0;

    *ns_out = 0;
    if (group.rank_count < 2 || !(bytes > 0))
        return NW_OK;
    while (prices->items[i].collective != NULL &&
           !is_price(&prices->items[i], collective, &group) && ++steps < 64)
        i = (i + 1) % NW_PRICES_MAX;
    struct nw_price *price = &prices->items[i];

    if (price->collective == NULL || !is_price(price, collective, &group)) {
        *price = (struct nw_price){.collective = collective, .group = group};
        price->rc =
            nw_fabric_prepare(prices->fabric, collective, group, prices->scenario, &price->line);
    }
    if (price->rc != NW_OK)
        return nw_fabric_prepare(prices->fabric, collective, group, prices->scenario, &price->line);
    *ns_out = nw_line_time(&price->line, bytes);
    return NW_OK;
}

/* ---- one cut --------------------------------------------------------------------------------- */

nw_rc nw_cut_make(const struct nw_job *job, const struct nw_platform *platform,
                  const struct nw_layout *layout, const struct nw_scenario *scenario,
                  struct nw_cut *cut_out)
{
    NW_TRY(nw_build_init(job, platform, layout, 1, 1, scenario, &cut_out->build));
    cut_out->task = nw_memory_task_of(job, &cut_out->build.layout, 1, 1);
    return NW_OK;
}

void nw_cut_free(struct nw_cut *cut)
{
    nw_build_free(&cut->build);
}

static nw_rc price_list(const struct nw_build *build, struct nw_prices *prices,
                        const struct nw_message *list, nw_stream stream, double *ns_out)
{
    *ns_out = 0;
    for (int i = 0; i < NW_MESSAGES_MAX; i++) {
        double ns;

        if (list[i].collective == NULL || list[i].stream != stream)
            continue;
        NW_TRY(nw_price_ns(prices, list[i].collective, list[i].bytes,
                           nw_layout_group(&build->layout, list[i].group), &ns));
        *ns_out += ns * list[i].times;
    }
    return NW_OK;
}

/* What a message of `ns` adds to computation of `cover_ns` that it may hide behind. */
static double added(double ns, double cover_ns, double loss)
{
    const double hidden = fmin(ns, cover_ns);

    return ns - hidden + loss * hidden;
}

static nw_rc unit_ns(const struct nw_build *build, struct nw_prices *prices,
                     const struct nw_unit *unit, bool backward, double busy, double *ns_out)
{
    const struct nw_message *list = backward ? unit->backward : unit->forward;
    const double compute = backward ? unit->backward_ns : unit->forward_ns;
    const double attention = backward ? unit->attention_backward_ns : unit->attention_forward_ns;
    const nw_overlap mode = build->profile->tensor;
    double tensor, ring;

    NW_TRY(price_list(build, prices, list, NW_STREAM_TENSOR, &tensor));
    NW_TRY(price_list(build, prices, list, NW_STREAM_CONTEXT, &ring));
    *ns_out =
        compute +
        (mode == NW_OVERLAP_SERIAL ? fmax(tensor - unit->idle_share * compute, 0)
                                   : added(tensor, compute, busy * nw_search_loss(build, mode))) +
        added(ring, attention, busy * nw_search_loss(build, NW_OVERLAP_STREAM));
    return NW_OK;
}

nw_rc nw_quick_shape_make(const struct nw_cut *cut, const struct nw_job *job,
                          struct nw_prices *prices, uint64_t micro_batch,
                          struct nw_quick_shape *shape_out)
{
    struct nw_quick_shape shape = {.made = true, .micro_batch = (double)micro_batch};
    struct nw_memory_task task = cut->task;
    struct nw_build build = cut->build; /* borrows what the cut owns */

    build.job = job;
    build.micro_batch = (double)micro_batch;
    build.tokens = cut->build.tokens * (double)micro_batch;
    memset(build.units, 0, sizeof build.units);
    nw_build_units(&build);
    shape.busy = 1 - build.idle_share;
    for (int k = 0; k < NW_UNIT_KINDS; k++) {
        NW_TRY(unit_ns(&build, prices, &build.units[k], false, shape.busy, &shape.forward_ns[k]));
        NW_TRY(unit_ns(&build, prices, &build.units[k], true, shape.busy, &shape.backward_ns[k]));
    }
    task.job = job;
    task.micro_batch = (double)micro_batch;
    task.tokens *= (double)micro_batch;
    for (int kind = 0; kind < NW_LAYER_KINDS; kind++)
        if (task.layer_count[kind] > 0 && job->offload.activations == NW_OFFLOAD_NONE)
            shape.stored_bytes[kind] = nw_memory_layer(&task, kind).stored;
    *shape_out = shape;
    return NW_OK;
}

/* ---- stages ---------------------------------------------------------------------------------- */

struct nw_stage_counts nw_stage_counts_of(const struct nw_cut *cut, int pp, int virtual_stages)
{
    const int wanted[NW_ENDS] = {0, 1, pp / 2, pp - 1};
    struct nw_stage_counts counts = {.virtual_stages = virtual_stages, .valid = true};
    struct nw_build build = {
        .job = cut->build.job, .stage_count = pp, .virtual_stages = pp > 1 ? virtual_stages : 1};
    const double all = cut->task.all_layers, mine = ceil(all / pp);
    double most = -1;

    for (int kind = 0; kind < NW_LAYER_KINDS; kind++)
        counts.layers[kind] = all > 0 ? cut->task.layer_count[kind] * mine / all : 0;
    counts.all[NW_UNIT_EMBEDDING] = counts.all[NW_UNIT_HEAD] = 1;
    counts.all[NW_UNIT_PLAIN] = cut->task.layer_count[NW_LAYER_PLAIN];
    counts.all[NW_UNIT_EXPERTS] = cut->task.layer_count[NW_LAYER_EXPERTS];
    for (int i = 0; i < NW_ENDS; i++) {
        const int s = counts.stage_count;
        double *units = counts.units[s], elements = 0;

        if (wanted[i] >= pp || (s > 0 && counts.at[s - 1] >= wanted[i]))
            continue;
        counts.at[s] = wanted[i];
        for (int c = 0; c < build.virtual_stages; c++) {
            const struct nw_chunk chunk = nw_build_chunk(&build, wanted[i], c);

            units[NW_UNIT_EMBEDDING] += chunk.embedding;
            units[NW_UNIT_PLAIN] += chunk.count[NW_LAYER_PLAIN];
            units[NW_UNIT_EXPERTS] += chunk.count[NW_LAYER_EXPERTS];
            units[NW_UNIT_HEAD] += chunk.head;
        }
        for (int k = 0; k < NW_UNIT_KINDS; k++)
            elements += units[k] * cut->build.units[k].trained_elements;
        if (elements > most) {
            most = elements;
            counts.most = s;
        }
        counts.stage_count++;
    }
    return counts;
}
