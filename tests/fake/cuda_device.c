/* The driver's start, devices and contexts. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/fake/fake.h"
#include "tests/fake/fault.h"

/* The program refuses libraries that have it, without an opt-in (base/library.h). */
FK_EXPORT const int nw_simulated_marker = 1;

static struct CUctx_st contexts[FK_MAX_GPUS];
static int device_count;
static bool started;
static pthread_once_t start_once = PTHREAD_ONCE_INIT;
static _Thread_local struct CUctx_st *current;

static void start(void)
{
    const struct fk_machine *machine = fk_machine();
    int gpus[FK_MAX_GPUS];
    fk_faults_check();
    device_count = fk_visible_gpus(machine, gpus);
    for (int i = 0; i < device_count; i++)
        contexts[i] = (struct CUctx_st){.ordinal = i, .gpu = gpus[i]};
    if (fk_job_first())
        fprintf(stderr,
                "SIMULATED GPUs: machine \"%s\", %d × %s. There is no such hardware here; times "
                "come from a model.\n",
                machine->name, machine->gpu_count, machine->gpus[0].name);
    started = true;
}

fk_result fk_started(void)
{
    return !started ? CU_NOT_INITIALIZED : device_count == 0 ? CU_NO_DEVICE : CU_OK;
}

FK_EXPORT fk_result cuInit(unsigned flags)
{
    if (flags != 0)
        return CU_INVALID_VALUE;
    pthread_once(&start_once, start);
    return fk_started();
}

FK_EXPORT fk_result cuDriverGetVersion(int *version)
{
    *version = fk_machine()->cuda_version;
    return CU_OK;
}

/* Numbers, names and texts of the public API. */
static const struct {
    fk_result code;
    const char *name, *text;
} errors[] = {
    {CU_OK, "CUDA_SUCCESS", "no error"},
    {CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CU_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CU_PEER_ALREADY, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {CU_PEER_NOT, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {CU_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {CU_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
};

static fk_result describe(fk_result code, const char **text, bool name)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) {
            *text = name ? errors[i].name : errors[i].text;
            return CU_OK;
        }
    *text = NULL;
    return CU_INVALID_VALUE;
}

FK_EXPORT fk_result cuGetErrorName(fk_result code, const char **text)
{
    return describe(code, text, true);
}

FK_EXPORT fk_result cuGetErrorString(fk_result code, const char **text)
{
    return describe(code, text, false);
}

/* Devices: CUdevice is the ordinal. */

static const struct fk_gpu *gpu_at(int device)
{
    return fk_started() == CU_OK && device >= 0 && device < device_count
               ? &fk_machine()->gpus[contexts[device].gpu]
               : NULL;
}

FK_EXPORT fk_result cuDeviceGetCount(int *count)
{
    *count = started ? device_count : 0;
    return started ? CU_OK : CU_NOT_INITIALIZED;
}

FK_EXPORT fk_result cuDeviceGet(int *device, int ordinal)
{
    if (!gpu_at(ordinal))
        return started ? CU_INVALID_DEVICE : CU_NOT_INITIALIZED;
    *device = ordinal;
    return CU_OK;
}

FK_EXPORT fk_result cuDeviceGetName(char *name, int length, int device)
{
    const struct fk_gpu *gpu = gpu_at(device);
    if (!gpu)
        return CU_INVALID_DEVICE;
    snprintf(name, (size_t)length, "SIMULATED %s (no hardware)", gpu->name);
    return CU_OK;
}

FK_EXPORT fk_result cuDeviceGetUuid_v2(void *uuid, int device)
{
    if (!gpu_at(device))
        return CU_INVALID_DEVICE;
    fk_gpu_uuid(fk_machine(), contexts[device].gpu, uuid);
    return CU_OK;
}

FK_EXPORT fk_result cuDeviceGetUuid(void *uuid, int device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

FK_EXPORT fk_result cuDeviceGetPCIBusId(char *text, int length, int device)
{
    const struct fk_gpu *gpu = gpu_at(device);
    if (!gpu)
        return CU_INVALID_DEVICE;
    snprintf(text, (size_t)length, "F00D:%02X:00.0", gpu->bus);
    return CU_OK;
}

FK_EXPORT fk_result cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    const struct fk_gpu *gpu = gpu_at(device);
    if (!gpu)
        return CU_INVALID_DEVICE;
    *bytes = gpu->memory_bytes;
    return CU_OK;
}

FK_EXPORT fk_result cuDeviceGetAttribute(int *value, unsigned attribute, int device)
{
    const struct fk_gpu *gpu = gpu_at(device);
    if (!gpu)
        return CU_INVALID_DEVICE;
    const struct {
        unsigned attribute;
        int value;
    } values[] = {
        {1, 1024},                       /* threads of a block */
        {8, 48 * 1024},                  /* shared memory of a block, without opt-in */
        {10, 32},                        /* warp */
        {13, gpu->max_clock_mhz * 1000}, /* kHz */
        {16, gpu->sm_count},
        {31, 1}, /* concurrent kernels */
        {32, 1}, /* ECC */
        {33, gpu->bus},
        {34, 0}, /* PCI device */
        {36, gpu->memory_clock_mhz * 1000},
        {37, gpu->memory_bus_bits},
        {38, (int)gpu->l2_bytes},
        {39, 2048},   /* threads of a multiprocessor */
        {40, 3},      /* copy engines */
        {41, 1},      /* unified addressing */
        {50, 0xf00d}, /* PCI domain */
        {75, gpu->capability / 10},
        {76, gpu->capability % 10},
        {97, gpu->shared_optin_bytes},
        {124, 1}, /* memory as a dma-buf */
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i].attribute == attribute) {
            *value = values[i].value;
            return CU_OK;
        }
    return CU_INVALID_VALUE;
}

FK_EXPORT fk_result cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    if (!gpu_at(device) || !gpu_at(peer))
        return CU_INVALID_DEVICE;
    *can = device != peer && fk_machine()->peer;
    return CU_OK;
}

/* Contexts: the primary one of each device. */

FK_EXPORT fk_result cuDevicePrimaryCtxRetain(struct CUctx_st **context, int device)
{
    if (!gpu_at(device))
        return CU_INVALID_DEVICE;
    contexts[device].users++;
    *context = &contexts[device];
    return CU_OK;
}

FK_EXPORT fk_result cuDevicePrimaryCtxRelease_v2(int device)
{
    if (!gpu_at(device) || contexts[device].users == 0)
        return CU_INVALID_DEVICE;
    contexts[device].users--;
    return CU_OK;
}

FK_EXPORT fk_result cuDevicePrimaryCtxRelease(int device)
{
    return cuDevicePrimaryCtxRelease_v2(device);
}

FK_EXPORT fk_result cuCtxSetCurrent(struct CUctx_st *context)
{
    current = context;
    return started ? CU_OK : CU_NOT_INITIALIZED;
}

FK_EXPORT fk_result cuCtxGetCurrent(struct CUctx_st **context)
{
    *context = current;
    return started ? CU_OK : CU_NOT_INITIALIZED;
}

FK_EXPORT fk_result cuCtxGetDevice(int *device)
{
    if (!current)
        return CU_INVALID_CONTEXT;
    *device = current->ordinal;
    return CU_OK;
}

FK_EXPORT fk_result cuCtxSynchronize(void)
{
    if (!current)
        return CU_INVALID_CONTEXT;
    fk_wait_context(current);
    return current->error;
}

FK_EXPORT fk_result cuCtxEnablePeerAccess(struct CUctx_st *peer, unsigned flags)
{
    if (!current || !peer)
        return CU_INVALID_CONTEXT;
    if (flags != 0 || peer == current)
        return CU_INVALID_VALUE;
    if (!fk_machine()->peer)
        return 217; /* CUDA_ERROR_PEER_ACCESS_UNSUPPORTED */
    const unsigned bit = 1u << peer->ordinal;
    if (current->peers & bit)
        return CU_PEER_ALREADY;
    current->peers |= bit;
    return CU_OK;
}

FK_EXPORT fk_result cuCtxDisablePeerAccess(struct CUctx_st *peer)
{
    if (!current || !peer)
        return CU_INVALID_CONTEXT;
    const unsigned bit = 1u << peer->ordinal;
    if (!(current->peers & bit))
        return CU_PEER_NOT;
    current->peers &= ~bit;
    return CU_OK;
}

struct CUctx_st *fk_context(void)
{
    return current;
}

void fk_set_context(struct CUctx_st *context)
{
    current = context;
}

int fk_context_ordinal(const struct CUctx_st *context)
{
    return context->ordinal;
}

int fk_context_gpu(const struct CUctx_st *context)
{
    return context->gpu;
}

struct CUctx_st *fk_context_at(int ordinal)
{
    return &contexts[ordinal];
}

struct CUctx_st *fk_context_of_ordinal(int ordinal)
{
    return gpu_at(ordinal) ? &contexts[ordinal] : NULL;
}

const struct fk_gpu *fk_gpu_of(const struct CUctx_st *context)
{
    return &fk_machine()->gpus[context->gpu];
}
