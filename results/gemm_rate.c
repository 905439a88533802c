#include "results/gemm_rate.h"

#include <math.h>
#include <string.h>

static bool is_product(const struct nw_record *record, const char *dtype)
{
    return strcmp(record->case_name, "gemm") == 0 && strcmp(record->dtype, dtype) == 0 &&
           record->peer_a >= 0;
}

/* The rank's best; NULL: none that is right. */
static const struct nw_record *best_of(const struct nw_record *records, size_t count,
                                       const char *dtype, int rank)
{
    const struct nw_record *best = NULL;

    for (size_t i = 0; i < count; i++)
        if (is_product(&records[i], dtype) && records[i].peer_a == rank && records[i].rc == NW_OK &&
            records[i].flop_per_s > 0 && (best == NULL || records[i].flop_per_s > best->flop_per_s))
            best = &records[i];
    return best;
}

bool nw_gemm_rate_of(const struct nw_record *records, size_t count, const char *dtype,
                     double *flop_per_s_out, double *low_out, double *high_out)
{
    const struct nw_record *slowest = NULL;
    double flop;

    for (size_t i = 0; i < count; i++) {
        const struct nw_record *best;

        if (!is_product(&records[i], dtype))
            continue;
        best = best_of(records, count, dtype, records[i].peer_a);
        if (best ==
            NULL) /* wrong, or it failed: its rate is not known, and it might be the lowest */
            return false;
        if (slowest == NULL || best->flop_per_s < slowest->flop_per_s)
            slowest = best;
    }
    if (slowest == NULL)
        return false;
    flop = slowest->flop_per_s * slowest->time_ns.median; /* of a call, times 1e9 */
    if (flop_per_s_out != NULL)
        *flop_per_s_out = slowest->flop_per_s;
    if (low_out != NULL)
        *low_out = flop / slowest->time_ns.high;
    if (high_out != NULL)
        *high_out = flop / slowest->time_ns.low;
    return true;
}
