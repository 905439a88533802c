/* Compiled where NCCL's nccl.h is: our prototypes are those of NVIDIA's header, type for type, our
 * numbers its numbers, and our structures laid out as its. A difference does not compile. */
#include <nccl.h>

#include "collectives/nccl_api.h"

#define EQUAL(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours)

EQUAL(NW_NCCL_SUCCESS, ncclSuccess);
EQUAL(NW_NCCL_IN_PROGRESS, ncclInProgress);
EQUAL(NW_NCCL_SUM, ncclSum);
EQUAL(NW_NCCL_PROD, ncclProd);
EQUAL(NW_NCCL_MAX, ncclMax);
EQUAL(NW_NCCL_MIN, ncclMin);
EQUAL(NW_NCCL_AVG, ncclAvg);
EQUAL(NW_NCCL_INT8, ncclInt8);
EQUAL(NW_NCCL_UINT8, ncclUint8);
EQUAL(NW_NCCL_INT32, ncclInt32);
EQUAL(NW_NCCL_UINT32, ncclUint32);
EQUAL(NW_NCCL_INT64, ncclInt64);
EQUAL(NW_NCCL_UINT64, ncclUint64);
EQUAL(NW_NCCL_FLOAT16, ncclFloat16);
EQUAL(NW_NCCL_FLOAT32, ncclFloat32);
EQUAL(NW_NCCL_FLOAT64, ncclFloat64);
EQUAL(NW_NCCL_BFLOAT16, ncclBfloat16);
EQUAL(NW_NCCL_UNSET, NCCL_CONFIG_UNDEF_INT);
EQUAL(NW_NCCL_SPLIT_NOCOLOUR, NCCL_SPLIT_NOCOLOR);
#ifdef NCCL_WIN_COLL_SYMMETRIC
EQUAL(NW_NCCL_WINDOW_SYMMETRIC, NCCL_WIN_COLL_SYMMETRIC);
EQUAL(NW_NCCL_WINDOW_ALIGN, NCCL_WIN_REQUIRED_ALIGNMENT);
#endif

/* Enums are passed as int, ids by value. */
EQUAL(sizeof(nw_nccl_result), sizeof(ncclResult_t));
EQUAL(sizeof(nw_nccl_type), sizeof(ncclDataType_t));
EQUAL(sizeof(nw_nccl_op), sizeof(ncclRedOp_t));
EQUAL(sizeof(struct nw_nccl_id), sizeof(ncclUniqueId));
EQUAL(_Alignof(struct nw_nccl_id), _Alignof(ncclUniqueId));

#define FIELD(ours, theirs)                                                                        \
    EQUAL(offsetof(struct nw_nccl_config, ours), offsetof(ncclConfig_t, theirs));                  \
    EQUAL(sizeof(((struct nw_nccl_config *)0)->ours), sizeof(((ncclConfig_t *)0)->theirs))
FIELD(size, size);
FIELD(magic, magic);
FIELD(version, version);
FIELD(blocking, blocking);
FIELD(cga_cluster_size, cgaClusterSize);
FIELD(min_ctas, minCTAs);
FIELD(max_ctas, maxCTAs);
FIELD(net_name, netName);
_Static_assert(sizeof(struct nw_nccl_config) <= sizeof(ncclConfig_t), "a part of theirs");

#define SIM_FIELD(ours, theirs)                                                                    \
    EQUAL(offsetof(struct nw_nccl_sim_info, ours), offsetof(ncclSimInfo_t, theirs));               \
    EQUAL(sizeof(((struct nw_nccl_sim_info *)0)->ours), sizeof(((ncclSimInfo_t *)0)->theirs))
SIM_FIELD(size, size);
SIM_FIELD(magic, magic);
SIM_FIELD(version, version);
SIM_FIELD(estimated_us, estimatedTime);
EQUAL(sizeof(struct nw_nccl_sim_info), sizeof(ncclSimInfo_t));

/* What their initialisers say. */
static const ncclConfig_t their_config = NCCL_CONFIG_INITIALIZER;
static const ncclSimInfo_t their_info = NCCL_SIM_INFO_INITIALIZER;

/* The prototypes, with their types under our names. Structures lose their tags here: a type without
 * one, like theirs, cannot be meant otherwise. */
#define nw_nccl_result   ncclResult_t
#define nw_nccl_type     ncclDataType_t
#define nw_nccl_op       ncclRedOp_t
#define nw_nccl_id       ncclUniqueId
#define nw_nccl_config   ncclConfig_t
#define nw_nccl_sim_info ncclSimInfo_t
typedef struct ncclComm ncclComm;
typedef struct ncclWindow_vidmem ncclWindow_vidmem;
typedef struct CUstream_st CUstream_st;
#define struct

#define X(member, symbol, required, arguments) typedef nw_nccl_result our_##member arguments;
NW_NCCL_API_MAP(X)
#undef X
#undef struct

#define SAME(member, function)                                                                     \
    _Static_assert(__builtin_types_compatible_p(our_##member, __typeof__(function)),               \
                   #function " is not what nccl.h declares")
SAME(get_version, ncclGetVersion);
SAME(get_unique_id, ncclGetUniqueId);
SAME(comm_init_rank, ncclCommInitRank);
SAME(comm_destroy, ncclCommDestroy);
SAME(comm_abort, ncclCommAbort);
SAME(comm_get_async_error, ncclCommGetAsyncError);
SAME(group_start, ncclGroupStart);
SAME(group_end, ncclGroupEnd);
SAME(all_reduce, ncclAllReduce);
SAME(all_gather, ncclAllGather);
SAME(reduce_scatter, ncclReduceScatter);
SAME(broadcast, ncclBroadcast);
SAME(reduce, ncclReduce);
SAME(send, ncclSend);
SAME(recv, ncclRecv);
SAME(comm_init_rank_config, ncclCommInitRankConfig);
SAME(comm_finalize, ncclCommFinalize);
SAME(comm_split, ncclCommSplit);
SAME(mem_alloc, ncclMemAlloc);
SAME(mem_free, ncclMemFree);
SAME(comm_register, ncclCommRegister);
SAME(comm_deregister, ncclCommDeregister);
SAME(group_simulate_end, ncclGroupSimulateEnd);
#if NCCL_VERSION_CODE >= 22703
SAME(window_register, ncclCommWindowRegister);
SAME(window_deregister, ncclCommWindowDeregister);
#endif
#if NCCL_VERSION_CODE >= 22803
SAME(alltoall, ncclAlltoAll);
SAME(gather, ncclGather);
SAME(scatter, ncclScatter);
#endif

#define X(member, symbol, required, arguments) +1
_Static_assert(0 NW_NCCL_API_MAP(X) == 28, "a row without its SAME above");
#undef X

int main(void)
{
    return their_config.magic == NW_NCCL_CONFIG_MAGIC &&
                   their_info.magic == NW_NCCL_SIM_INFO_MAGIC &&
                   their_info.estimatedTime == NW_NCCL_UNDEF_FLOAT
               ? 0
               : 1;
}
