/* Degrees of parallelism and how their groups lie on the nodes. */
#include "model/layout.h"

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

static int at_least_one(int count)
{
    return count > 1 ? count : 1;
}

static int per_node_of(const struct nw_layout *layout)
{
    return at_least_one(layout->rank_count / at_least_one(layout->node_count));
}

const struct nw_profile *nw_layout_profile(const struct nw_layout *layout)
{
    return layout->profile != NULL ? layout->profile : &nw_profiles[0];
}

int nw_layout_tp(const struct nw_layout *layout)
{
    return at_least_one(layout->parallel.tp);
}

int nw_layout_pp(const struct nw_layout *layout)
{
    return at_least_one(layout->parallel.pp);
}

int nw_layout_cp(const struct nw_layout *layout)
{
    return at_least_one(layout->parallel.cp);
}

int nw_layout_ep(const struct nw_layout *layout)
{
    return at_least_one(layout->parallel.ep);
}

int nw_layout_virtual_stages(const struct nw_layout *layout)
{
    return at_least_one(layout->parallel.virtual_stages);
}

int nw_layout_dp(const struct nw_layout *layout)
{
    const int64_t cut = (int64_t)nw_layout_tp(layout) * nw_layout_pp(layout) * nw_layout_cp(layout);

    return cut <= layout->rank_count ? layout->rank_count / (int)cut : 1;
}

int nw_layout_reduce_count(const struct nw_layout *layout)
{
    return nw_layout_dp(layout) * nw_layout_cp(layout);
}

/* A hybrid shards within the node where nothing else is asked for (PyTorch HYBRID_SHARD, DeepSpeed
 * zero_hpz_partition_size). */
int nw_layout_shard_count(const struct nw_layout *layout)
{
    const int all = nw_layout_reduce_count(layout);
    int asked = layout->parallel.shard_count;

    if (asked == 0 && layout->strategy != NULL && layout->strategy->hybrid)
        asked = at_least_one(per_node_of(layout) / nw_layout_tp(layout));
    return asked > 0 && asked < all ? asked : all;
}

int nw_layout_state_count(const struct nw_layout *layout)
{
    return layout->strategy != NULL && layout->strategy->quantised ? nw_layout_reduce_count(layout)
                                                                   : nw_layout_shard_count(layout);
}

double nw_layout_kv_heads(const struct nw_layout *layout, const struct nw_transformer *net)
{
    const double heads = (double)net->kv_heads, tp = nw_layout_tp(layout);

    return heads > tp ? heads / tp : heads < 1 ? heads : 1;
}

/* `count` ranks, `stride` apart, on nodes of `per_node` ranks. */
static struct nw_group group_of(int count, int stride, int per_node)
{
    const int fit = stride < per_node ? per_node / stride : 1; /* of one group on one node */
    const int here = count < fit ? count : fit;

    return (struct nw_group){.rank_count = count,
                             .host_count = (count + here - 1) / here,
                             .sharing = at_least_one(per_node / here),
                             .host_span = (int)((int64_t)(count - 1) * stride / per_node) + 1};
}

struct nw_group nw_layout_group(const struct nw_layout *layout, nw_group_kind kind)
{
    const int tp = nw_layout_tp(layout), cp = nw_layout_cp(layout);
    const int reduce = nw_layout_reduce_count(layout), shard = nw_layout_shard_count(layout);
    const int per_node = per_node_of(layout);

    switch (kind) {
    case NW_GROUP_TP:
        return group_of(tp, 1, per_node);
    case NW_GROUP_CP:
        return group_of(cp, tp, per_node);
    case NW_GROUP_DP:
        return group_of(reduce, tp, per_node);
    case NW_GROUP_SHARD:
        return group_of(shard, tp, per_node);
    case NW_GROUP_REPLICA:
        return group_of(at_least_one(reduce / shard), tp * shard, per_node);
    case NW_GROUP_EP:
        return group_of(nw_layout_ep(layout), tp, per_node);
    case NW_GROUP_EXPERT:
        return group_of(at_least_one(reduce / nw_layout_ep(layout)), tp * nw_layout_ep(layout),
                        per_node);
    case NW_GROUP_PP: { /* the boundary that crosses nodes, if one does */
        struct nw_group pair = group_of(nw_layout_pp(layout) > 1 ? 2 : 1, tp * reduce, per_node);

        if (pair.rank_count == 2 && nw_layout_pp(layout) * tp * reduce > per_node)
            pair = (struct nw_group){.rank_count = 2,
                                     .host_count = 2,
                                     .sharing = tp * reduce < per_node ? tp * reduce : per_node,
                                     .host_span = pair.host_span};
        return pair;
    }
    case NW_GROUP_WORLD:
    case NW_GROUP_COUNT:
        break;
    }
    return group_of(layout->rank_count, 1, per_node);
}
