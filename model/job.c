/* The training job: what is trained. */
#include "model/job.h"

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
