#include "bench/case.h"
nw_rc nw_case_pairs(struct nw_bench *bench)
{
    (void)bench;
    return NW_OK;
}
nw_rc nw_case_scaling(struct nw_bench *bench)
{
    (void)bench;
    return NW_OK;
}
