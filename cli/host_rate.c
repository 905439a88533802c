#include "cli/host_rate.h"

#include <math.h>
#include <stdlib.h>

#include "bench/agree.h"
#include "kernels/host_gemm.h"

#define BUDGET_NS 0.5e9

nw_rc nw_cli_host_rate(struct nw_comm *comm, double *flop_per_s_out)
{
    struct nw_stats rate;
    double *all = calloc((size_t)comm->rank_count, sizeof *all), least = NAN;
    nw_rc rc =
        nw_agree(comm, all == NULL ? nw_fail(NW_ENOMEM, "out of memory for the compute rates")
                                   : nw_host_gemm_rate(BUDGET_NS, &rate));

    if (rc == NW_OK)
        rc = comm->ops->exchange(comm, &rate.median, sizeof rate.median, all);
    for (int rank = 0; rc == NW_OK && rank < comm->rank_count; rank++)
        least = fmin(least, all[rank]); /* of NAN and x: x */
    free(all);
    NW_TRY(rc);
    *flop_per_s_out = least;
    return NW_OK;
}
