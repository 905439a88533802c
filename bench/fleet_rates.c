/* Rates of one pair, from its times and from a second measurement. */
#include <math.h>

#include "bench/fleet.h"

double nw_fleet_high(double bytes_per_s, const struct nw_stats *time_ns)
{
    const double quick_ns = fmin(time_ns->low, time_ns->p25); /* fmin passes NAN over */

    return quick_ns > 0 ? bytes_per_s * time_ns->median / quick_ns : NAN;
}

double nw_fleet_low(double bytes_per_s, const struct nw_stats *time_ns)
{
    const double slow_ns = fmax(time_ns->high, time_ns->p75);

    return slow_ns > 0 ? bytes_per_s * time_ns->median / slow_ns : NAN;
}

void nw_fleet_again(struct nw_fleet_edge *edge, const struct nw_fleet_edge *again, bool one_way)
{
    const double best = fmax(again->bytes_per_s, again->high_bytes_per_s);

    if (!edge->again)
        edge->before_bytes_per_s = edge->bytes_per_s;
    edge->again = true;
    if (isnan(again->bytes_per_s))
        return;
    if (!one_way && !(edge->bytes_per_s >= again->bytes_per_s)) {
        const double high = edge->high_bytes_per_s;

        edge->bytes_per_s = again->bytes_per_s;
        edge->high_bytes_per_s = fmax(again->high_bytes_per_s, high);
        edge->low_bytes_per_s = again->low_bytes_per_s;
    } else if (!isnan(edge->bytes_per_s))
        edge->high_bytes_per_s = fmax(fmax(edge->bytes_per_s, edge->high_bytes_per_s), best);
}
