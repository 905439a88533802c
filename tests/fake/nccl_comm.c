/* Questions to a communicator, its end, its buffers and operators; errors. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/nccl_comm.h"

/* The program refuses libraries that have it, without an opt-in (base/library.h). */
FK_EXPORT const int nw_simulated_marker = 1;

fk_result cuMemAlloc_v2(fk_ptr *pointer, size_t bytes);
fk_result cuMemFree_v2(fk_ptr pointer);

static _Thread_local char last_error[256];

ncclResult_t fk_nccl_fail(ncclComm_t comm, ncclResult_t code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    if (comm)
        memcpy(comm->error, last_error, sizeof comm->error);
    if (getenv("NCCL_DEBUG"))
        fprintf(stderr, "SIMULATED NCCL: %s\n", last_error);
    return code;
}

void fk_nccl_async(ncclComm_t comm, ncclResult_t code, const char *text)
{
    if (FAKE_NCCL_VERSION < 21304 && code == ncclRemoteError)
        code = ncclSystemError; /* it had no other name then */
    int fine = ncclSuccess;
    if (atomic_compare_exchange_strong(&comm->state, &fine, code))
        snprintf(comm->error, sizeof comm->error, "%s", text);
}

/* NCCL hands a call of a non-blocking communicator to a thread (2.14 to 2.30, ncclGroupEnd). Here
 * the call is done, and two looks have to be taken until that is said. */
ncclResult_t fk_nccl_begun(ncclComm_t comm)
{
    if (!comm || comm->config.blocking)
        return ncclSuccess;
    atomic_store(&comm->busy, 2);
    return ncclInProgress;
}

static bool look_at_busy(ncclComm_t comm)
{
    if (atomic_load(&comm->busy) == 0)
        return false;
    if (atomic_fetch_sub(&comm->busy, 1) > 1)
        return true;
    if (comm->late_out)
        *comm->late_out = comm->late;
    comm->late_out = NULL;
    return false;
}

ncclResult_t fk_nccl_usable(ncclComm_t comm)
{
    if (!comm)
        return fk_nccl_fail(NULL, ncclInvalidArgument, "comm is NULL");
    if (atomic_load(&comm->state) == ncclInProgress)
        return fk_nccl_fail(comm, ncclInvalidUsage, "the communicator is not ready yet");
    if (atomic_load(&comm->busy) > 0)
        return fk_nccl_fail(comm, ncclInvalidArgument,
                            "the previous operation has not returned ncclSuccess yet");
    if (comm->finalized || comm->revoked)
        return fk_nccl_fail(comm, ncclInvalidUsage, "the communicator is finalized or revoked");
    return (ncclResult_t)atomic_load(&comm->state);
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = FAKE_NCCL_VERSION;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {
        "no error",
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "internal error - please report this issue to the NCCL developers",
        "invalid argument (run with NCCL_DEBUG=WARN for details)",
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
    };
    return (unsigned)result < sizeof texts / sizeof *texts ? texts[result] : "unknown result code";
}

#if FAKE_NCCL_VERSION >= 21304
const char *ncclGetLastError(ncclComm_t comm)
{
    return comm && comm->error[0] ? comm->error : last_error;
}
#endif

static bool is_quiet(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    const bool quiet = comm->done == comm->issued;
    pthread_mutex_unlock(&comm->lock);
    return quiet;
}

static void wait_quiet(ncclComm_t comm)
{
    while (!is_quiet(comm))
        fk_pause();
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    if (!comm || !error)
        return fk_nccl_fail(NULL, ncclInvalidArgument, "comm is NULL");
    *error = (ncclResult_t)atomic_load(&comm->state);
    if (*error == ncclSuccess && (comm->finalized || comm->revoked) && !is_quiet(comm))
        *error = ncclInProgress;
    if (*error == ncclSuccess && look_at_busy(comm))
        *error = ncclInProgress;
    if (*error == ncclSuccess && comm->stuck)
        *error = ncclInProgress;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    const ncclResult_t code = fk_nccl_usable(comm);
    if (code == ncclSuccess)
        *count = comm->rank_count;
    return code;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    const ncclResult_t code = fk_nccl_usable(comm);
    if (code == ncclSuccess)
        *device = fk_context_ordinal(comm->context);
    return code;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    const ncclResult_t code = fk_nccl_usable(comm);
    if (code == ncclSuccess)
        *rank = comm->rank;
    return code;
}

/* The end */

#if FAKE_NCCL_VERSION >= 21403
ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    const ncclResult_t code = fk_nccl_usable(comm);
    if (code != ncclSuccess)
        return code;
    comm->finalized = true;
    const struct fk_faults faults = fk_faults_of("finalize", comm->rank, 1, 0);
    comm->stuck = fk_fault_has(&faults, FK_FAULT_HANG);
    if (!comm->config.blocking)
        return is_quiet(comm) && !comm->stuck ? ncclSuccess : ncclInProgress;
    atomic_fetch_add(&comm->ending, 1);
    while (comm->stuck && !atomic_load(&comm->aborted))
        fk_pause();
    wait_quiet(comm);
    atomic_fetch_sub(&comm->ending, 1);
    return ncclSuccess;
}
#endif

static void end(ncclComm_t comm)
{
    if (comm->init_threaded)
        pthread_join(comm->init_thread, NULL);
    wait_quiet(comm);
    fk_comm_free(comm);
}

/* Waits for what is running, for ever if it hangs: as NCCL does. */
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (comm)
        end(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (!comm)
        return ncclSuccess;
    atomic_store(&comm->aborted, 1);
    const ncclComm_t child = atomic_load(&comm->child);
    if (child)
        atomic_store(&child->aborted, 1);
    while (atomic_load(&comm->ending) > 0)
        fk_pause();
    end(comm);
    return ncclSuccess;
}

#if FAKE_NCCL_VERSION >= 22807
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags)
{
    if (!comm || flags != 0)
        return fk_nccl_fail(comm, ncclInvalidArgument, "flags %d", flags);
    comm->revoked = true;
    atomic_store(&comm->aborted, 1);
    return ncclSuccess;
}
#endif

/* Buffers and operators */

#if FAKE_NCCL_VERSION >= 21901
ncclResult_t ncclMemAlloc(void **memory, size_t bytes)
{
    fk_ptr pointer;
    const size_t granule = (size_t)2 << 20;
    const fk_result code = cuMemAlloc_v2(&pointer, (bytes + granule - 1) / granule * granule);
    if (code != CU_OK)
        return fk_nccl_fail(NULL, ncclUnhandledCudaError, "Cuda failure %u", code);
    *memory = (void *)(uintptr_t)pointer;
    return ncclSuccess;
}

ncclResult_t ncclMemFree(void *memory)
{
    const fk_result code = cuMemFree_v2((fk_ptr)(uintptr_t)memory);
    return code == CU_OK ? ncclSuccess
                         : fk_nccl_fail(NULL, ncclUnhandledCudaError, "Cuda failure %u", code);
}

static ncclResult_t register_buffer(ncclComm_t comm, void *buffer, size_t bytes, void **handle)
{
    const ncclResult_t code = fk_nccl_usable(comm);
    if (code != ncclSuccess)
        return code;
    if (!fk_view(buffer, bytes, "a registration"))
        return fk_nccl_fail(comm, ncclInvalidArgument, "no %zu bytes at the buffer", bytes);
    *handle = malloc(1);
    return *handle ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes, void **handle)
{
    const char *local = getenv("NCCL_LOCAL_REGISTER");
    *handle = NULL;
    if (local && strcmp(local, "0") == 0)
        return fk_nccl_usable(comm);
    return register_buffer(comm, buffer, bytes, handle);
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    if (!comm || !handle)
        return fk_nccl_fail(comm, ncclInvalidArgument, "nothing to deregister");
    free(handle);
    return ncclSuccess;
}
#endif

#if FAKE_NCCL_VERSION >= 22703
static bool is_set(const char *name, const char *value)
{
    const char *have = getenv(name);
    return have && strcmp(have, value) == 0;
}

/* Where GPUs do not reach each other's memory it succeeds and gives no window: as NCCL does. */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes, void **window,
                                    int flags)
{
    (void)flags;
    *window = NULL;
    if ((uintptr_t)buffer % 4096)
        return fk_nccl_fail(comm, ncclInvalidArgument, "a window must begin at a multiple of 4096");
    const ncclResult_t usable = fk_nccl_usable(comm);
    if (usable != ncclSuccess)
        return usable;
    if (comm->wire || !fk_machine()->peer || is_set("NCCL_P2P_DISABLE", "1") ||
        is_set("NCCL_WIN_ENABLE", "0") || is_set("NCCL_CUMEM_ENABLE", "0"))
        return fk_nccl_begun(comm);
    const ncclResult_t code = register_buffer(comm, buffer, bytes, &comm->late);
    if (code != ncclSuccess)
        return code;
    const ncclResult_t begun = fk_nccl_begun(comm); /* then the window is there later */
    if (begun == ncclSuccess)
        *window = comm->late;
    else
        comm->late_out = window;
    return begun;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, void *window)
{
    (void)comm;
    free(window);
    return ncclSuccess;
}
#endif

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm)
{
    const ncclResult_t code = fk_nccl_usable(comm);
    if (code != ncclSuccess)
        return code;
    if ((unsigned)type >= ncclNumTypes)
        return fk_nccl_fail(comm, ncclInvalidArgument, "data type %d", (int)type);
    const size_t bytes = fk_type_bytes(type);
    const void *from =
        residence == ncclScalarHostImmediate ? scalar : fk_view(scalar, bytes, "a scalar");
    for (int i = 0; i < FK_MAX_SCALED && from; i++)
        if (!comm->scaled[i].used) {
            comm->scaled[i].used = true;
            comm->scaled[i].type = type;
            memcpy(comm->scaled[i].scalar, from, bytes);
            *op = (ncclRedOp_t)(ncclNumOps + i);
            return ncclSuccess;
        }
    return fk_nccl_fail(comm, ncclInvalidUsage, "no room for another reduction operator");
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    const int i = (int)op - ncclNumOps;
    if (!comm || i < 0 || i >= FK_MAX_SCALED || !comm->scaled[i].used)
        return fk_nccl_fail(comm, ncclInvalidArgument, "reduction operator %d", (int)op);
    comm->scaled[i].used = false;
    return ncclSuccess;
}
