/* How few nodes hold the job. */
#include <math.h>

#include "model/break_even.h"

#define MOST_NODES_LOOKED 4096

static double memory_of(const struct nw_model *model, const struct nw_layout *layout)
{
    const struct nw_job job = nw_model_job(model, layout);
    struct nw_memory memory;
    nw_assumed assumed = 0;

    nw_memory_of(&job, layout, job.micro_batch, 1, &model->platform.assumptions, &memory, &assumed);
    return memory.total_bytes;
}

double nw_least_memory(const struct nw_model *model, int node_count)
{
    double least = NAN;

    for (size_t s = 0; model->strategies[s] != NULL; s++) {
        const struct nw_layout layout = nw_model_layout(model, node_count, model->strategies[s]);

        least = fmin(least, memory_of(model, &layout)); /* fmin: the one that is a number */
    }
    return least;
}

static bool any_fits(const struct nw_model *model, int node_count)
{
    return model->platform.memory_bytes == 0 ||
           nw_least_memory(model, node_count) <= (double)model->platform.memory_bytes;
}

/* What a GPU holds never grows with the node count: doubling, then bisection. */
int nw_fewest_nodes(const struct nw_model *model)
{
    int fits = 1;

    while (fits <= MOST_NODES_LOOKED && !any_fits(model, fits))
        fits *= 2;
    if (fits > MOST_NODES_LOOKED)
        return 0;
    int too_few = fits / 2;

    while (fits - too_few > 1) {
        const int middle = too_few + (fits - too_few) / 2;

        if (any_fits(model, middle))
            fits = middle;
        else
            too_few = middle;
    }
    return fits;
}
