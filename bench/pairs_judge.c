#include "bench/pairs_judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"

/* A class of fewer says nothing about what is usual. */
#define CLASS_MIN 3

struct class
{
    size_t count;
    double median, mad;
};

static nw_rc summarise(const struct nw_pair_rate *rates, size_t count, bool same_host,
                       struct class *class_out)
{
    double *values = malloc((count > 0 ? count : 1) * sizeof *values);
    struct nw_stats stats;
    size_t found = 0;
    nw_rc rc;

    if (values == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu pairs", count);
    for (size_t i = 0; i < count; i++)
        if (rates[i].same_host == same_host)
            values[found++] = rates[i].edge.bytes_per_s;
    rc = nw_stats_of(values, found, &stats);
    free(values);
    if (rc != NW_OK)
        return rc;
    *class_out = (struct class){.count = found, .median = stats.median, .mad = stats.mad};
    return NW_OK;
}

static bool is_slow(const struct nw_pair_rate *rate, const struct class *class)
{
    if (class->count < CLASS_MIN || rate->edge.bytes_per_s >= NW_SLOW_PAIR_SHARE * class->median)
        return false;
    return class->mad == 0 ||
           nw_modified_z(rate->edge.bytes_per_s, class->median, class->mad) < -NW_SLOW_PAIR_Z;
}

static double share_of(const struct nw_slow_pair *pair)
{
    return pair->rate.edge.bytes_per_s / pair->median_bytes_per_s;
}

/* Keep the slowest, in order. */
static void insert(struct nw_slow_pairs *slow, const struct nw_pair_rate *rate, double median)
{
    const struct nw_slow_pair pair = {.rate = *rate, .median_bytes_per_s = median};
    size_t at = slow->pair_count;

    if (at < NW_SLOW_PAIRS_MAX)
        slow->pair_count++;
    else if (share_of(&slow->pairs[--at]) <= share_of(&pair))
        return;
    for (; at > 0 && share_of(&slow->pairs[at - 1]) > share_of(&pair); at--)
        slow->pairs[at] = slow->pairs[at - 1];
    slow->pairs[at] = pair;
}

static bool is_suspect(const struct nw_slow_pairs *slow, int rank)
{
    for (size_t i = 0; i < slow->rank_count; i++)
        if (slow->ranks[i] == rank)
            return true;
    return false;
}

nw_rc nw_pairs_judge(const struct nw_pair_rate *rates, size_t count, int rank_count,
                     struct nw_slow_pairs *slow_out)
{
    struct nw_slow_pairs slow = {.rank_count = 0};
    struct class classes[2]; /* [same_host] */
    int *slow_count = calloc((size_t)rank_count, sizeof *slow_count);
    int *pair_count = calloc((size_t)rank_count, sizeof *pair_count);
    nw_rc rc = NW_OK;

    slow.ranks = calloc((size_t)rank_count, sizeof *slow.ranks);
    if (slow_count == NULL || pair_count == NULL || slow.ranks == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory to judge the pairs of %d ranks", rank_count);
    for (int same_host = 0; same_host < 2 && rc == NW_OK; same_host++)
        rc = summarise(rates, count, same_host, &classes[same_host]);
    if (rc != NW_OK) {
        nw_slow_pairs_free(&slow);
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        const int is = is_slow(&rates[i], &classes[rates[i].same_host]);

        slow_count[rates[i].edge.a] += is;
        slow_count[rates[i].edge.b] += is;
        pair_count[rates[i].edge.a]++;
        pair_count[rates[i].edge.b]++;
    }
    for (int rank = 0; rank < rank_count; rank++)
        if (slow_count[rank] > 1 && 2 * slow_count[rank] > pair_count[rank])
            slow.ranks[slow.rank_count++] = rank;
    for (size_t i = 0; i < count; i++)
        if (is_slow(&rates[i], &classes[rates[i].same_host]) &&
            !is_suspect(&slow, rates[i].edge.a) && !is_suspect(&slow, rates[i].edge.b))
            insert(&slow, &rates[i], classes[rates[i].same_host].median);
    *slow_out = slow;
out:
    free(slow_count);
    free(pair_count);
    return rc;
}

void nw_slow_pairs_free(struct nw_slow_pairs *slow)
{
    free(slow->ranks);
    *slow = (struct nw_slow_pairs){0};
}
