/* The training job: what is trained. */
#include "model/job.h"

#include <math.h>

unsigned nw_lora_all(const struct nw_transformer *net)
{
    return NW_LORA_Q | NW_LORA_K | NW_LORA_V | NW_LORA_O | NW_LORA_UP | NW_LORA_DOWN |
           (net->gated ? NW_LORA_GATE : 0);
}

double nw_job_trained_parameters(const struct nw_job *job)
{
    const struct nw_transformer *net = &job->net;
    double trained = 0;

    if (job->lora.rank == 0)
        return (double)nw_transformer_parameter_count(net);
    for (int kind = 0; kind < NW_LAYER_KINDS; kind++)
        trained += (double)nw_transformer_layer_count(net, kind) *
                   (double)nw_transformer_adapter(net, kind, job->lora.rank, job->lora.targets);
    return trained;
}

double nw_job_master_bytes(const struct nw_job *job)
{
    return isnan(job->master_bytes) ? job->precision->master_bytes : job->master_bytes;
}

double nw_job_base_bytes(const struct nw_job *job)
{
    const struct nw_lora *lora = &job->lora;

    return lora->rank > 0 && lora->base_bytes > 0 ? lora->base_bytes
                                                  : job->precision->element_bytes;
}

double nw_job_gradient_bytes(const struct nw_job *job)
{
    return job->gradient_bytes > 0 ? job->gradient_bytes : job->precision->element_bytes;
}

double nw_job_reduce_bytes(const struct nw_job *job)
{
    return job->reduce_bytes > 0 ? job->reduce_bytes : nw_job_gradient_bytes(job);
}

/* torch.optim keeps exp_avg in the parameter's own type; 8-bit moments stay. */
double nw_job_state_bytes(const struct nw_job *job)
{
    const double e = job->precision->element_bytes, state = job->optimizer->state_bytes;

    return nw_job_master_bytes(job) <= 0 && e < 4 && state >= 4 ? state * e / 4 : state;
}

/* ---- contradictions ------------------------------------------------------------------------ */

typedef unsigned long long number; /* for messages */

static nw_rc check_batch(const struct nw_job *job)
{
    if (job->sequence == 0 || job->micro_batch == 0 || job->global_batch == 0)
        return nw_fail(NW_EUSAGE,
                       "--seq %llu, --micro-batch %llu, --global-batch %llu; accepted: 1 or more",
                       (number)job->sequence, (number)job->micro_batch, (number)job->global_batch);
    if (job->net.positions > 0 && job->sequence > job->net.positions)
        return nw_fail(NW_EUSAGE,
                       "--seq %llu: %s has learned positions for %llu tokens; accepted: 1 to %llu",
                       (number)job->sequence, job->net.name, (number)job->net.positions,
                       (number)job->net.positions);
    return NW_OK;
}

static nw_rc check_lora(const struct nw_job *job)
{
    const struct nw_lora *lora = &job->lora;

    if (lora->rank == 0)
        return lora->base_bytes > 0
                   ? nw_fail(NW_EUSAGE, "--base needs --lora-rank: without adapters nothing of a "
                                        "frozen base would be trained")
                   : NW_OK;
    if (job->net.stated_parameters > 0)
        return nw_fail(NW_EUSAGE, "--lora-rank needs a transformer; %s states parameters only",
                       job->net.name);
    if (lora->targets == 0)
        return nw_fail(NW_EUSAGE,
                       "--lora-rank %llu adapts no matrix; accepted: --lora-targets of "
                       "q, k, v, o, gate, up, down",
                       (number)lora->rank);
    if (lora->rank > job->net.hidden)
        return nw_fail(NW_EUSAGE,
                       "--lora-rank %llu is more than the model's width of %llu; accepted: 1 to "
                       "%llu",
                       (number)lora->rank, (number)job->net.hidden, (number)job->net.hidden);
    return NW_OK;
}

nw_rc nw_job_check(const struct nw_job *job)
{
    NW_TRY(nw_transformer_check(&job->net, job->net.name));
    NW_TRY(check_batch(job));
    return check_lora(job);
}
