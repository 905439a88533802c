#include "bench/copies_judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"

/* Fewer say nothing about what is usual. */
#define ALIKE_MIN 3
/* Makes the MAD of normally distributed values their standard deviation. */
#define MAD_SCALE 1.4826

/* The measured ones of `count` values; `values` is scratch. */
static nw_rc summarise(double *values, size_t count, struct nw_stats *stats_out)
{
    size_t known = 0;

    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            values[known++] = values[i];
    return nw_stats_of(values, known, stats_out);
}

static bool is_outlier(double value, const struct nw_stats *stats, double rel)
{
    return stats->count >= ALIKE_MIN && value < (1 - rel) * stats->median &&
           value < stats->median - NW_SLOW_GPU_MADS * MAD_SCALE * stats->mad;
}

nw_rc nw_gpus_judge(const struct nw_gpu_rate *rates, size_t count, double rel, double *usual_out)
{
    double *values = calloc(count > 0 ? count : 1, sizeof *values);
    nw_rc rc = NW_OK;

    if (values == NULL)
        return nw_fail(NW_ENOMEM, "no memory to compare %zu GPUs", count);
    for (size_t i = 0; i < count && rc == NW_OK; i++) {
        struct nw_stats stats;

        for (size_t k = 0; k < count; k++)
            values[k] = strcmp(rates[k].model, rates[i].model) == 0 ? rates[k].bytes_per_s : NAN;
        rc = summarise(values, count, &stats);
        usual_out[i] =
            rc == NW_OK && is_outlier(rates[i].bytes_per_s, &stats, rel) ? stats.median : NAN;
    }
    free(values);
    return rc;
}

/* Slowest first, against what is usual. */
static void insert(struct nw_peer_rate *list, size_t *count, struct nw_peer_rate rate)
{
    const double share = rate.bytes_per_s / rate.usual_bytes_per_s;
    size_t at = *count;

    if (at < NW_SLOW_PEERS_MAX)
        (*count)++;
    else if (at--, list[at].bytes_per_s / list[at].usual_bytes_per_s <= share)
        return;
    for (; at > 0 && list[at - 1].bytes_per_s / list[at - 1].usual_bytes_per_s > share; at--)
        list[at] = list[at - 1];
    list[at] = rate;
}

/* A GPU with a bad link is slow with everybody: its best pair tells. */
static nw_rc judge_gpus(const double *rates, size_t count, double rel, double *best,
                        struct nw_slow_peers *slow)
{
    struct nw_stats stats;
    double *values = calloc(count, sizeof *values);
    nw_rc rc;

    if (values == NULL)
        return nw_fail(NW_ENOMEM, "no memory to compare %zu GPUs", count);
    for (size_t a = 0; a < count; a++) {
        best[a] = NAN;
        for (size_t b = 0; b < count; b++)
            best[a] = fmax(best[a], fmax(rates[a * count + b], rates[b * count + a]));
        values[a] = best[a];
    }
    rc = summarise(values, count, &stats);
    free(values);
    for (size_t a = 0; a < count && rc == NW_OK; a++)
        if (is_outlier(best[a], &stats, rel))
            insert(slow->gpus, &slow->gpu_count,
                   (struct nw_peer_rate){(int)a, -1, best[a], stats.median});
    return rc;
}

static bool is_named(const struct nw_slow_peers *slow, size_t gpu)
{
    for (size_t i = 0; i < slow->gpu_count; i++)
        if (slow->gpus[i].a == (int)gpu)
            return true;
    return false;
}

static void judge_pairs(const double *rates, size_t count, double rel, const struct nw_stats *stats,
                        struct nw_slow_peers *slow)
{
    for (size_t i = 0; i < count * count; i++) {
        const size_t a = i / count, b = i % count;
        const double back = rates[b * count + a];

        if (rates[i] < (1 - NW_ASYMMETRIC_REL) * back)
            insert(slow->asymmetric, &slow->asymmetric_count,
                   (struct nw_peer_rate){(int)a, (int)b, rates[i], back});
        else if (!is_named(slow, a) && !is_named(slow, b) && is_outlier(rates[i], stats, rel))
            insert(slow->pairs, &slow->pair_count,
                   (struct nw_peer_rate){(int)a, (int)b, rates[i], stats->median});
    }
}

nw_rc nw_peers_judge(const double *rates, size_t count, double rel, struct nw_slow_peers *slow_out)
{
    struct nw_slow_peers slow = {.gpu_count = 0};
    double *values = calloc(count * count + 1, sizeof *values);
    struct nw_stats stats;
    nw_rc rc;

    if (values == NULL)
        return nw_fail(NW_ENOMEM, "no memory to compare the pairs of %zu GPUs", count);
    rc = judge_gpus(rates, count, rel, values, &slow);
    if (rc == NW_OK) {
        memcpy(values, rates, count * count * sizeof *values);
        rc = summarise(values, count * count, &stats);
    }
    free(values);
    NW_TRY(rc);
    judge_pairs(rates, count, rel, &stats, &slow);
    *slow_out = slow;
    return NW_OK;
}

const char *nw_index_list(char *text, size_t size, const bool *in, size_t count)
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t from = 0; from < count; from++) {
        size_t to = from;
        char item[48];
        int written;

        if (!in[from])
            continue;
        while (to + 1 < count && in[to + 1])
            to++;
        written = from == to
                      ? snprintf(item, sizeof item, "%s%zu", length > 0 ? "," : "", from)
                      : snprintf(item, sizeof item, "%s%zu-%zu", length > 0 ? "," : "", from, to);
        if (length + (size_t)written + sizeof "…" > size) {
            snprintf(text + length, size - length, "…");
            break;
        }
        memcpy(text + length, item, (size_t)written + 1);
        length += (size_t)written;
        from = to;
    }
    return text;
}
