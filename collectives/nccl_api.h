/* Private to collectives/. NCCL, opened at run time: our own declarations of the calls that we make
 * (names, numbers and layouts of its public API, 2.12 to 2.30), so that one program starts with and
 * without it.
 *
 * What NCCL 2.12 has is required; later calls are NULL where the library has them not, and that
 * alone decides: nothing is inferred from the version.
 *
 *     const struct nw_nccl_api *nccl;
 *     NW_TRY(nw_nccl_api_open(&nccl));           // NW_ENODEV: no NCCL here, with the reason
 *     if (nccl->alltoall != NULL) ...            // since 2.28
 */
#ifndef NW_COLLECTIVES_NCCL_API_H
#define NW_COLLECTIVES_NCCL_API_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct ncclComm;
struct ncclWindow_vidmem;
struct CUstream_st;

typedef int nw_nccl_result; /* NCCL's enums, as they are passed */
typedef int nw_nccl_type;
typedef int nw_nccl_op;
struct nw_nccl_id { /* ncclUniqueId: by value, 128 bytes in all versions */
    char bytes[128];
};

/* ncclConfig_t as of 2.17; later versions append to it, and fill up what a caller says to be older.
 * 2.14 to 2.16 end after `blocking`, and take no NW_NCCL_UNSET for it. */
struct nw_nccl_config {
    size_t size; /* of as much as is filled */
    unsigned int magic, version;
    int blocking;                             /* 0 or 1 */
    int cga_cluster_size, min_ctas, max_ctas; /* the last two: both or neither, see NW_NCCL_UNSET */
    const char *net_name;
};
#define NW_NCCL_CONFIG_MAGIC   0xcafebeefu
#define NW_NCCL_CONFIG_2_14    offsetof(struct nw_nccl_config, cga_cluster_size)
#define NW_NCCL_UNSET          INT_MIN
#define NW_NCCL_WINDOW_ALIGN   4096u
#define NW_NCCL_SPLIT_NOCOLOUR (-1)

/* ncclSimInfo_t, since 2.22.3: the library copies `size` bytes, and takes what `version` had. */
struct nw_nccl_sim_info {
    size_t size;
    unsigned int magic, version;
    float estimated_us; /* NW_NCCL_UNDEF_FLOAT: no estimate */
};
#define NW_NCCL_SIM_INFO_MAGIC   0x74685283u
#define NW_NCCL_SIM_INFO_VERSION 22203u
#define NW_NCCL_UNDEF_FLOAT      (-1.0f)

enum {
    NW_NCCL_SUCCESS = 0,
    NW_NCCL_IN_PROGRESS = 7, /* since 2.14; codes from 8 on have changed their meaning */

    NW_NCCL_SUM = 0,
    NW_NCCL_PROD,
    NW_NCCL_MAX,
    NW_NCCL_MIN,
    NW_NCCL_AVG,

    NW_NCCL_INT8 = 0,
    NW_NCCL_UINT8,
    NW_NCCL_INT32,
    NW_NCCL_UINT32,
    NW_NCCL_INT64,
    NW_NCCL_UINT64,
    NW_NCCL_FLOAT16,
    NW_NCCL_FLOAT32,
    NW_NCCL_FLOAT64,
    NW_NCCL_BFLOAT16,

    NW_NCCL_WINDOW_SYMMETRIC = 1, /* NCCL_WIN_COLL_SYMMETRIC */
};

#define NW_NCCL_STREAM struct ncclComm *comm, struct CUstream_st *stream
#define NW_NCCL_REDUCE const void *send, void *recv, size_t count, nw_nccl_type type, nw_nccl_op op
#define NW_NCCL_MOVE   const void *send, void *recv, size_t count, nw_nccl_type type

/* X(member, symbol, required, arguments) */
#define NW_NCCL_API_MAP(X)                                                                         \
    X(get_version, "ncclGetVersion", true, (int *version))                                         \
    X(get_unique_id, "ncclGetUniqueId", true, (struct nw_nccl_id * id))                            \
    X(comm_init_rank, "ncclCommInitRank", true,                                                    \
      (struct ncclComm * *comm, int rank_count, struct nw_nccl_id id, int rank))                   \
    X(comm_destroy, "ncclCommDestroy", true, (struct ncclComm * comm))                             \
    X(comm_abort, "ncclCommAbort", true, (struct ncclComm * comm))                                 \
    X(comm_get_async_error, "ncclCommGetAsyncError", true,                                         \
      (struct ncclComm * comm, nw_nccl_result * error))                                            \
    X(group_start, "ncclGroupStart", true, (void))                                                 \
    X(group_end, "ncclGroupEnd", true, (void))                                                     \
    X(all_reduce, "ncclAllReduce", true, (NW_NCCL_REDUCE, NW_NCCL_STREAM))                         \
    X(all_gather, "ncclAllGather", true, (NW_NCCL_MOVE, NW_NCCL_STREAM))                           \
    X(reduce_scatter, "ncclReduceScatter", true, (NW_NCCL_REDUCE, NW_NCCL_STREAM))                 \
    X(broadcast, "ncclBroadcast", true, (NW_NCCL_MOVE, int root, NW_NCCL_STREAM))                  \
    X(reduce, "ncclReduce", true, (NW_NCCL_REDUCE, int root, NW_NCCL_STREAM))                      \
    X(send, "ncclSend", true,                                                                      \
      (const void *send, size_t count, nw_nccl_type type, int peer, NW_NCCL_STREAM))               \
    X(recv, "ncclRecv", true,                                                                      \
      (void *recv, size_t count, nw_nccl_type type, int peer, NW_NCCL_STREAM))                     \
    X(alltoall, "ncclAlltoAll", false, (NW_NCCL_MOVE, NW_NCCL_STREAM))                             \
    X(gather, "ncclGather", false, (NW_NCCL_MOVE, int root, NW_NCCL_STREAM))                       \
    X(scatter, "ncclScatter", false, (NW_NCCL_MOVE, int root, NW_NCCL_STREAM))                     \
    X(comm_init_rank_config, "ncclCommInitRankConfig", false,                                      \
      (struct ncclComm * *comm, int rank_count, struct nw_nccl_id id, int rank,                    \
       struct nw_nccl_config *config))                                                             \
    X(comm_finalize, "ncclCommFinalize", false, (struct ncclComm * comm))                          \
    X(comm_split, "ncclCommSplit", false,                                                          \
      (struct ncclComm * comm, int colour, int key, struct ncclComm **other,                       \
       struct nw_nccl_config *config))                                                             \
    X(mem_alloc, "ncclMemAlloc", false, (void **memory, size_t bytes))                             \
    X(mem_free, "ncclMemFree", false, (void *memory))                                              \
    X(comm_register, "ncclCommRegister", false,                                                    \
      (struct ncclComm * comm, void *buffer, size_t bytes, void **handle))                         \
    X(comm_deregister, "ncclCommDeregister", false, (struct ncclComm * comm, void *handle))        \
    X(window_register, "ncclCommWindowRegister", false,                                            \
      (struct ncclComm * comm, void *buffer, size_t bytes, struct ncclWindow_vidmem **window,      \
       int flags))                                                                                 \
    X(window_deregister, "ncclCommWindowDeregister", false,                                        \
      (struct ncclComm * comm, struct ncclWindow_vidmem * window))                                 \
    X(group_simulate_end, "ncclGroupSimulateEnd", false, (struct nw_nccl_sim_info * info))

struct nw_nccl_api {
#define X(member, symbol, required, arguments) nw_nccl_result(*member) arguments;
    NW_NCCL_API_MAP(X)
#undef X
    const char *(*get_error_string)(nw_nccl_result code);
    const char *(*get_last_error)(struct ncclComm *comm); /* since 2.13; NULL */
    int version;                                          /* 22809: 2.28.9 */
    const char *path;                                     /* the file that was loaded */
    bool simulated;                                       /* a double, which says so itself */
};

/* Opens the file that NW_NCCL_LIBRARY names, else libnccl.so.2 where the loader finds it or where
 * CUDA is usually installed. Once per process: later calls return the same table or the same
 * reason. The library stays loaded until the process ends. */
nw_rc nw_nccl_api_open(const struct nw_nccl_api **api_out);

/* "2.28.9" */
const char *nw_nccl_version_text(int version, char text[24]);

/* Word a failed call on `comm` (may be NULL): "all_reduce of 1 MiB: unhandled system error (…, 2)".
 */
#define nw_nccl_fail(api, comm, code, ...)                                                         \
    nw_nccl_fail_at((api), (comm), (code), NW_HERE, __VA_ARGS__)
nw_rc nw_nccl_fail_at(const struct nw_nccl_api *api, struct ncclComm *comm, nw_nccl_result code,
                      const char *where, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
