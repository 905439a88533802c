/* Computation of a wanted length: multiply-adds on registers, which neither caches nor memory slow.
 */
#include <math.h>

#include "base/clock.h"
#include "model/replay_parts.h"

enum { STEPS = 400, TRIALS = 9, TRIAL_UNITS = 500 };

/* Kept by somebody who might look: else the loop is nothing to the compiler. */
static volatile double nw_replay_sink;

void nw_replay_units(uint64_t count)
{
    double a[8] = {1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8};

    for (uint64_t i = 0; i < count; i++)
        for (int step = 0; step < STEPS; step++)
            for (int k = 0; k < 8; k++)
                a[k] = a[k] * 0.999999 + 1e-6;
    nw_replay_sink = a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];
}

/* The fastest of several: what disturbs only adds. */
double nw_replay_unit_ns(void)
{
    double least = INFINITY;

    for (int i = 0; i < TRIALS; i++) {
        const uint64_t start = nw_now_ns();

        nw_replay_units(TRIAL_UNITS);
        least = fmin(least, (double)(nw_now_ns() - start) / TRIAL_UNITS);
    }
    return least;
}
