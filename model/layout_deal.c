/* The global batch, dealt to the data-parallel ranks. */
#include "model/layout.h"

#include "model/job.h"

static uint64_t data_ranks(const struct nw_layout *layout, int rank_count)
{
    struct nw_layout on = *layout;

    on.rank_count = rank_count;
    return (uint64_t)nw_layout_dp(&on);
}

nw_rc nw_layout_deal(const struct nw_layout *layout, const struct nw_job *job,
                     struct nw_deal *deal_out)
{
    const bool weak = layout->scaling == NW_SCALING_WEAK;
    const uint64_t ranks = data_ranks(layout, weak ? layout->base_rank_count : layout->rank_count);
    const int pp = nw_layout_pp(layout), chunks = nw_layout_virtual_stages(layout);
    struct nw_deal deal;

    if (job->micro_batch == 0)
        return nw_fail(NW_EUSAGE, "--micro-batch 0: a step of no sequences; accepted: 1 or more");
    if (job->global_batch == 0 || job->global_batch % ranks != 0)
        return nw_fail(NW_EUSAGE,
                       "--global-batch %llu: so many sequences cannot be dealt evenly to %llu "
                       "data-parallel ranks; accepted: a multiple of %llu",
                       (unsigned long long)job->global_batch, (unsigned long long)ranks,
                       (unsigned long long)ranks);
    const uint64_t share = job->global_batch / ranks;

    deal.micro_batch = job->micro_batch < share ? job->micro_batch : share;
    while (share % deal.micro_batch != 0)
        deal.micro_batch--;
    deal.micro_batch_count = share / deal.micro_batch;
    deal.global_batch = share * data_ranks(layout, layout->rank_count);
    if (chunks > 1 && pp > 1 && deal.micro_batch_count % (uint64_t)pp != 0)
        return nw_fail(
            NW_EUSAGE,
            "--virtual-stages %d: %llu micro-batches of a step do not go round %d "
            "pipeline stages evenly; accepted: --global-batch a multiple of %llu (or less "
            "--micro-batch)",
            chunks, (unsigned long long)deal.micro_batch_count, pp,
            (unsigned long long)(ranks * deal.micro_batch) * (unsigned)pp);
    *deal_out = deal;
    return NW_OK;
}
