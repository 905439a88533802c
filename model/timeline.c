#include "model/step.h"

#include <math.h>
#include <string.h>

#include "collectives/coll.h"

double nw_compute(struct nw_timeline *timeline, struct nw_step *step, double ready_ns, double ns)
{
    timeline->compute_free_ns = fmax(timeline->compute_free_ns, ready_ns) + ns;
    step->compute_ns += ns;
    return timeline->compute_free_ns;
}

static nw_rc look_up(const struct nw_simulation *simulation, const char *collective, double bytes,
                     struct nw_cost *cost_out)
{
    struct nw_memo *memo = simulation->memo;
    size_t i;

    for (i = 0; i < NW_MEMO_COUNT && memo[i].collective != NULL; i++) {
        if (memo[i].bytes == bytes && strcmp(memo[i].collective, collective) == 0) {
            *cost_out = memo[i].cost;
            return NW_OK;
        }
    }
    NW_TRY(nw_fabric_cost(&simulation->platform->fabric, collective, bytes, simulation->group,
                          simulation->scenario, cost_out));
    if (i < NW_MEMO_COUNT)
        memo[i] = (struct nw_memo){.collective = collective, .bytes = bytes, .cost = *cost_out};
    return NW_OK;
}

/* Sent by one GPU in a ring: busbw's factor × bytes (nccl-tests, doc/PERFORMANCE.md). */
static void count_traffic(struct nw_step *step, const char *collective, double bytes,
                          struct nw_group group)
{
    const double factor = nw_coll_find(collective)->bus_factor(group.rank_count);

    step->traffic.bytes_sent += factor * bytes;
    step->traffic.calls += 1;
    if (bytes > step->traffic.message_bytes) {
        step->traffic.message_bytes = bytes;
        step->traffic.collective = collective;
        step->traffic.group = group;
    }
}

nw_rc nw_send(const struct nw_simulation *simulation, struct nw_timeline *timeline,
              struct nw_step *step, const char *collective, double bytes, double ready_ns,
              double *end_out)
{
    struct nw_cost cost;

    if (simulation->group.rank_count < 2 || !(bytes > 0)) {
        *end_out = ready_ns;
        return NW_OK;
    }
    NW_TRY(look_up(simulation, collective, bytes, &cost));
    const double end = simulation->scenario->curve_end;
    const double ns = end < 0 ? cost.low_ns : end > 0 ? cost.high_ns : cost.time_ns;

    timeline->wire_free_ns = fmax(timeline->wire_free_ns, ready_ns) + ns;
    step->communication_ns += ns;
    step->how |= cost.how;
    count_traffic(step, collective, bytes, simulation->group);
    *end_out = timeline->wire_free_ns;
    return NW_OK;
}

void nw_join(struct nw_timeline *timeline, struct nw_step *step)
{
    const double end = fmax(timeline->compute_free_ns, timeline->wire_free_ns);

    timeline->compute_free_ns = timeline->wire_free_ns = end;
    step->exposed_ns = fmax(end - step->compute_ns, 0);
}

void nw_step_repeat(struct nw_step *step, double factor)
{
    step->compute_ns *= factor;
    step->communication_ns *= factor;
    step->exposed_ns *= factor;
    step->traffic.bytes_sent *= factor;
    step->traffic.calls *= factor;
}
