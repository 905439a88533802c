/* A group's cost, asked for and checked, for the tests of the fabric. */
#ifndef NW_TESTS_FABRIC_SUPPORT_H
#define NW_TESTS_FABRIC_SUPPORT_H

#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static inline void near(double value, double expected, double tolerance, const char *what)
{
    cr_expect(lt(dbl, fabs(value - expected), tolerance * fabs(expected) + 1e-300),
              "%s: %.9g instead of %.9g", what, value, expected);
}

static inline struct nw_curves curves_of(struct nw_results *results, int gpus_per_node)
{
    struct nw_curves curves = {0};

    cr_assert(eq(int, nw_curves_add(&curves, results, gpus_per_node), NW_OK));
    return curves;
}

static inline struct nw_group group(int ranks, int hosts, int sharing)
{
    return (struct nw_group){.rank_count = ranks, .host_count = hosts, .sharing = sharing};
}

static inline struct nw_cost cost_in(const struct nw_fabric *fabric, const char *collective,
                                     double bytes, struct nw_group where, double inter_scale)
{
    struct nw_scenario scenario = nw_scenario_likely;
    struct nw_cost found = {0};

    scenario.inter_scale = inter_scale;
    cr_assert(eq(int, nw_fabric_cost(fabric, collective, bytes, where, &scenario, &found), NW_OK),
              "%s", nw_last_error()->text);
    cr_expect(le(dbl, found.low_ns, found.time_ns));
    cr_expect(ge(dbl, found.high_ns, found.time_ns));
    return found;
}

static inline struct nw_cost cost(const struct nw_fabric *fabric, const char *collective,
                                  double bytes, int ranks, int hosts, double inter_scale)
{
    return cost_in(fabric, collective, bytes, group(ranks, hosts, 0), inter_scale);
}

/* A machine of the catalogue's GPU, with nothing measured. */
static inline struct nw_fabric datasheet(const char *gpu_name, int gpus_per_node, double nic_gbps,
                                         int nic_count)
{
    const struct nw_gpu *gpu;
    struct nw_fabric fabric = platform_on(NULL, 1, gpus_per_node).fabric;

    cr_assert(eq(int, nw_gpu_find(gpu_name, &gpu), NW_OK));
    cr_assert(eq(int, nw_fabric_take_gpu(&fabric, gpu, NULL), NW_OK));
    fabric.wire_bytes_per_s = nic_gbps * 1e9 / 8;
    fabric.nic_count = nic_count;
    return fabric;
}

static inline double busbw(const struct nw_fabric *fabric, const char *collective, double bytes,
                           struct nw_group where)
{
    return nw_coll_find(collective)->bus_factor(where.rank_count) * bytes /
           cost_in(fabric, collective, bytes, where, 1).time_ns;
}

#endif
