/* Public. When is a series of timings long enough? Pure: no clock, no communication. Every rank
 * feeds it the same numbers and so takes the same decisions.
 *
 * Ranks belong to groups that work at the same time (one group: a collective over all; a pair each:
 * a round of pairs). The time of a sample is that of the group's slowest rank. A sample is a number
 * of calls back to back, so many that the clock and the barrier before it do not count; if samples
 * turn out shorter than half of that, they are thrown away and the number is raised.
 *
 *     while ((batch = nw_sampling_next(sampling)) > 0) {
 *         ... `batch` samples of nw_sampling_calls(sampling) calls; exchange ...
 *         NW_TRY(nw_sampling_add(sampling, batch, times, stride, elapsed_ns));
 *     }
 *
 * Looking at the interval before deciding to go on makes it a little too narrow; the batches grow
 * so that there are few looks.
 */
#ifndef NW_BENCH_SAMPLING_H
#define NW_BENCH_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

#include "bench/record.h"

/* A sample shorter than this measures the barrier: leaving it takes ranks 1 to 5 us apart on shared
 * memory (docs/measured.md), which must stay in the per cents. So it is on a device behind a gate:
 * launches are not in the time and a mark's resolution (0.5 us) would allow less, but each rank
 * opens its gate when it leaves the barrier, and the first one's clock runs while its work waits
 * for the last one's. */
#define NW_SAMPLE_MIN_NS 200e3
#define NW_SAMPLES_MAX   512
#define NW_BATCH_MAX     128
#define NW_CALLS_MAX     (1u << 20)

struct nw_sampling_rules {
    size_t min_samples;
    double stop_rel_ci;   /* wanted half width of the median's interval, relative */
    double budget_ns;     /* for the samples */
    uint64_t fixed_calls; /* exactly so many calls; 0: adaptive */
    uint32_t calls_max;   /* of a sample; 0: NW_CALLS_MAX */
    double least_factor;  /* a sample's least time is so many times the usual one; 0: 1 */
};

struct nw_sampling; /* owns its series */

/* `group_of_rank`: rank_count entries 0..group_count-1, or -1 for a rank that idles; copied. */
nw_rc nw_sampling_open(const struct nw_sampling_rules *rules, const int *group_of_rank,
                       int rank_count, int group_count, struct nw_sampling **sampling_out);
void nw_sampling_close(struct nw_sampling *sampling); /* accepts NULL */

uint32_t nw_sampling_calls(const struct nw_sampling *sampling);
/* While this is true, a rank's time of a sample is its fastest call's, times the calls: so a rank
 * that waits for its CPU does not pass for a slow call. */
bool nw_sampling_calibrates(const struct nw_sampling *sampling);
/* Samples to take now; 0: enough. */
size_t nw_sampling_next(const struct nw_sampling *sampling);
/* `times[rank * stride + i]`: the rank's time of sample i of the batch, all its calls, ns.
 * `elapsed_ns`: since sampling began, the slowest rank's. */
nw_rc nw_sampling_add(struct nw_sampling *sampling, size_t batch, const double *times,
                      size_t stride, double elapsed_ns);

/* Times, skew, slowest rank, calls per sample, samples and stop reason of a group into the record.
 */
nw_rc nw_sampling_report(const struct nw_sampling *sampling, int group, struct nw_record *record);

#endif
