/* Private to tests/fake/. NCCL's interface as of 2.28.9, of what the double has: names, numbers and
 * layouts (facts of the public API), own prototypes. FAKE_NCCL_VERSION (21210, 21806, 22203, 22809)
 * says which NCCL the library is; names of later ones are absent from it. */
#ifndef NW_TESTS_FAKE_NCCL_FAKE_H
#define NW_TESTS_FAKE_NCCL_FAKE_H

#include <limits.h>
#include <stddef.h>

struct CUstream_st;
typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;

typedef enum {
    ncclSuccess,
    ncclUnhandledCudaError,
    ncclSystemError,
    ncclInternalError,
    ncclInvalidArgument,
    ncclInvalidUsage,
    ncclRemoteError, /* since 2.13.4 */
    ncclInProgress,  /* since 2.14.3 */
} ncclResult_t;

typedef enum {
    ncclSum,
    ncclProd,
    ncclMax,
    ncclMin,
    ncclAvg,
    ncclNumOps,
    ncclMaxRedOp = INT_MAX
} ncclRedOp_t;
typedef enum {
    ncclInt8,
    ncclUint8,
    ncclInt32,
    ncclUint32,
    ncclInt64,
    ncclUint64,
    ncclFloat16,
    ncclFloat32,
    ncclFloat64,
    ncclBfloat16,
    ncclNumTypes, /* of the double: the fp8 types are not in it */
} ncclDataType_t;
typedef enum { ncclScalarDevice, ncclScalarHostImmediate } ncclScalarResidence_t;

typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking, cgaClusterSize, minCTAs, maxCTAs;
    const char *netName;
    int splitShare, trafficClass;
    const char *commName;
    int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs, nChannelsPerNetPeer, nvlinkCentricSched;
} ncclConfig_t;
#define FK_NCCL_CONFIG_MAGIC 0xcafebeefu
#define FK_NCCL_UNDEF        INT_MIN

typedef struct {
    size_t size;
    unsigned magic, version;
    float estimatedTime; /* us */
} ncclSimInfo_t;
#define FK_NCCL_SIM_MAGIC 0x74685283u

#pragma GCC visibility push(default)

ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devices);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank, int ids,
                                      ncclUniqueId *id, ncclConfig_t *config);
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *other,
                           ncclConfig_t *config);
ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int excluded_count, ncclComm_t *other,
                            ncclConfig_t *config, int flags);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count);
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank);

ncclResult_t ncclMemAlloc(void **memory, size_t bytes);
ncclResult_t ncclMemFree(void *memory);
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes, void **handle);
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes, void **window,
                                    int flags);
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, void *window);
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info);

#define FK_STREAM ncclComm_t comm, struct CUstream_st *stream
ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, FK_STREAM);
ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, FK_STREAM);
ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, FK_STREAM);
ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
                           FK_STREAM);
ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
                           int root, FK_STREAM);
ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, FK_STREAM);
ncclResult_t ncclAlltoAll(const void *send, void *recv, size_t count, ncclDataType_t type,
                          FK_STREAM);
ncclResult_t ncclGather(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
                        FK_STREAM);
ncclResult_t ncclScatter(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
                         FK_STREAM);
ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, FK_STREAM);
ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, FK_STREAM);

#pragma GCC visibility pop

#endif
