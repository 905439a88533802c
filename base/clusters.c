#include "base/clusters.h"

#include <math.h>

struct part { /* of the values */
    size_t count;
    double sum, squares;
};

static void move(struct part *from, struct part *to, double value)
{
    from->count--, to->count++;
    from->sum -= value, to->sum += value;
    from->squares -= value * value, to->squares += value * value;
}

/* Sum of the squared distances from the mean. */
static double spread(const struct part *part)
{
    const double within = part->squares - part->sum * part->sum / (double)part->count;

    return within > 0 ? within : 0;
}

static size_t best_split(const double *sorted, size_t count, struct part parts_out[2])
{
    struct part low = {0}, high = {0};
    double least = INFINITY;
    size_t best = 0;

    for (size_t i = 0; i < count; i++) {
        high.count++;
        high.sum += sorted[i];
        high.squares += sorted[i] * sorted[i];
    }
    for (size_t i = 0; i + 1 < count; i++) {
        move(&high, &low, sorted[i]);
        if (low.count < 2 || high.count < 2 || spread(&low) + spread(&high) >= least)
            continue;
        least = spread(&low) + spread(&high);
        best = i + 1;
        parts_out[0] = low;
        parts_out[1] = high;
    }
    return best;
}

bool nw_two_clusters(const double *sorted, size_t count, struct nw_clusters *clusters_out)
{
    struct part parts[2] = {{0}, {0}};
    const size_t split = count >= NW_CLUSTER_LEAST ? best_split(sorted, count, parts) : 0;

    if (split == 0)
        return false;
    const double low = parts[0].sum / (double)parts[0].count;
    const double high = parts[1].sum / (double)parts[1].count;
    const double within = sqrt((spread(&parts[0]) + spread(&parts[1])) / (double)count);
    const double gap = sorted[split] - sorted[split - 1];

    if (high < NW_CLUSTER_RATIO * low || gap < NW_CLUSTER_GAP * (high - low) ||
        high - low < (NW_CLUSTER_SEPARATION + NW_CLUSTER_FEW / (double)count) * within)
        return false;
    *clusters_out = (struct nw_clusters){.low_count = parts[0].count,
                                         .high_count = parts[1].count,
                                         .low_mean = low,
                                         .high_mean = high,
                                         .boundary = (sorted[split] + sorted[split - 1]) / 2};
    return true;
}
