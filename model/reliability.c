/* What checkpoints, failures and the loading of data take from a training's time. */
#include <math.h>

#include "model/model.h"
#include "results/quote.h"

/* A training that hardly ever gets through still has a cost, so that two can be compared. */
#define LEAST_KEPT 1e-12

double nw_young_interval(double write_ns, double failure_ns)
{
    return sqrt(2 * write_ns * failure_ns);
}

double nw_daly_interval(double write_ns, double failure_ns)
{
    const double x = write_ns / (2 * failure_ns);

    if (!isfinite(failure_ns))
        return INFINITY;
    if (x >= 1)
        return failure_ns;
    return nw_young_interval(write_ns, failure_ns) * (1 + sqrt(x) / 3 + x / 9) - write_ns;
}

double nw_useful_share(double interval_ns, double write_ns, double restart_ns, double failure_ns)
{
    if (!isfinite(failure_ns))
        return isfinite(interval_ns) && interval_ns + write_ns > 0
                   ? interval_ns / (interval_ns + write_ns)
                   : 1;
    const double restarts = exp(-restart_ns / failure_ns);
    const double cycle = (interval_ns + write_ns) / failure_ns;

    return cycle > 0 ? restarts * (interval_ns / failure_ns) / expm1(cycle) : restarts;
}

double nw_checkpoint_bytes(const struct nw_job *job)
{
    const double element = job->precision->element_bytes;

    return nw_job_trained_parameters(job) *
           (element + nw_job_master_bytes(job) + nw_job_state_bytes(job));
}

/* Nodes that write at the same time: all where the optimizer's states are cut over all ranks, else
 * those of one copy of the model. */
static int writer_count(const struct nw_terms *terms, const struct nw_step *step)
{
    const int model_ranks = nw_layout_tp(&step->layout) * nw_layout_pp(&step->layout);

    if (terms->storage.shared)
        return 1;
    if (step->strategy != NULL && step->strategy->optimizer_sharded)
        return step->node_count;
    const double nodes = ceil((double)model_ranks * step->node_count / step->rank_count);

    return nodes < 1 ? 1 : nodes > step->node_count ? step->node_count : (int)nodes;
}

static void fill_loading(const struct nw_terms *terms, const struct nw_step *step, double tokens,
                         struct nw_upkeep *upkeep)
{
    const struct nw_storage *storage = &terms->storage;
    const double bytes = tokens * terms->bytes_per_token;

    upkeep->loading_needed_bytes_per_s = bytes / step->step_ns * 1e9;
    upkeep->loading_bytes_per_s =
        storage->read_bytes_per_s * (storage->shared ? 1 : step->node_count);
    if (!isfinite(upkeep->loading_bytes_per_s))
        return;
    upkeep->loading_ns = bytes / upkeep->loading_bytes_per_s * 1e9;
    upkeep->saturated = upkeep->loading_ns > step->step_ns;
}

void nw_upkeep_of(const struct nw_job *job, const struct nw_terms *terms,
                  const struct nw_step *step, struct nw_upkeep *upkeep_out)
{
    const struct nw_failures *failures = &terms->failures;
    const bool spot = terms->rental == NW_RENTAL_SPOT && isfinite(terms->price_per_node_hour);
    const double per_hour = failures->per_gpu_hour * step->rank_count +
                            (spot ? terms->interruptions_per_node_hour * step->node_count : 0);
    struct nw_upkeep upkeep = {
        .checkpoint_bytes = nw_checkpoint_bytes(job),
        .failure_ns = per_hour > 0 ? NW_HOUR_NS / per_hour : INFINITY,
    };

    upkeep.write_ns = upkeep.checkpoint_bytes /
                      (terms->storage.write_bytes_per_s * writer_count(terms, step)) * 1e9;
    upkeep.interval_ns =
        isfinite(failures->checkpoint_interval_ns) ? failures->checkpoint_interval_ns
        : isfinite(upkeep.write_ns) ? nw_daly_interval(upkeep.write_ns, upkeep.failure_ns)
                                    : NAN;
    upkeep.useful = fmax(nw_useful_share(isnan(upkeep.interval_ns) ? 0 : upkeep.interval_ns,
                                         isnan(upkeep.write_ns) ? 0 : upkeep.write_ns,
                                         failures->restart_ns, upkeep.failure_ns),
                         LEAST_KEPT);
    fill_loading(terms, step, (double)step->global_batch * (double)job->sequence, &upkeep);
    *upkeep_out = upkeep;
}

double nw_useful_tokens_per_s(const struct nw_job *job, const struct nw_terms *terms,
                              const struct nw_step *step)
{
    struct nw_upkeep upkeep;

    nw_upkeep_of(job, terms, step, &upkeep);
    return (double)step->global_batch * (double)job->sequence /
           fmax(step->step_ns, upkeep.loading_ns) * 1e9 * upkeep.useful;
}
