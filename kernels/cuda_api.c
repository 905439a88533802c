#include "kernels/cuda_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/library.h"

/* One driver per process: it initialises once, and nothing can close it. Written under pthread_once
 * and never again. */
static pthread_once_t cuda_once = PTHREAD_ONCE_INIT;
static struct nw_cuda_api cuda_api;
static struct nw_err cuda_error;

static const struct nw_library_symbol cuda_symbols[] = {
#define X(member, symbol, older, arguments)                                                        \
    {offsetof(struct nw_cuda_api, member), symbol, older, true},
    NW_CUDA_API_MAP(X)
#undef X
#define X(member, symbol, older, arguments)                                                        \
    {offsetof(struct nw_cuda_api, member), symbol, older, false},
        NW_CUDA_API_OPTIONAL_MAP(X)
#undef X
};

static nw_rc cuda_init(void)
{
    nw_cu_result code = cuda_api.cuInit(0);
    if (code == NW_CU_STUB_LIBRARY)
        return nw_fail_lib(NW_ENODEV, "cuda", (int)code,
                           "%s is the toolkit's stub for linking, no driver; take its folder out "
                           "of LD_LIBRARY_PATH",
                           cuda_api.path);
    if (code == NW_CU_NO_DEVICE)
        return nw_fail_lib(NW_ENODEV, "cuda", (int)code,
                           "the NVIDIA driver is here but sees no GPU (%s); look at nvidia-smi and "
                           "at CUDA_VISIBLE_DEVICES",
                           cuda_api.path);
    if (code == NW_CU_SYSTEM_NOT_READY)
        return nw_fail_lib(NW_ENODEV, "cuda", (int)code,
                           "the NVIDIA driver is not ready: on NVSwitch machines start "
                           "nvidia-fabricmanager of the driver's own version");
    if (code == NW_CU_SYSTEM_DRIVER_MISMATCH)
        return nw_fail_lib(NW_ENODEV, "cuda", (int)code,
                           "%s and the kernel's NVIDIA module are of different versions; reboot, "
                           "or reload the module",
                           cuda_api.path);
    if (code != NW_CU_SUCCESS) {
        nw_cuda_fail(&cuda_api, code, "cannot start the NVIDIA driver (cuInit of %s)",
                     cuda_api.path);
        return NW_ENODEV;
    }
    if (cuda_api.cuDriverGetVersion(&cuda_api.driver_version) != NW_CU_SUCCESS)
        cuda_api.driver_version = 0;
    return NW_OK;
}

static nw_rc cuda_open(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return nw_library_missing("libcuda.so.1", "NVIDIA driver", dlerror());
    NW_TRY(nw_library_symbols(library, "libcuda.so.1", cuda_symbols,
                              sizeof cuda_symbols / sizeof *cuda_symbols, &cuda_api));
    cuda_api.path = nw_library_path((void *)cuda_api.cuInit);
    cuda_api.simulated = dlsym(library, NW_SIMULATED_MARKER) != NULL;
    if (cuda_api.simulated)
        NW_TRY(nw_library_simulated_allowed(cuda_api.path));
    return cuda_init();
}

static void cuda_open_once(void)
{
    if (cuda_open() != NW_OK) {
        cuda_error = *nw_last_error();
        cuda_error.rc = NW_ENODEV;
    }
}

nw_rc nw_cuda_api_open(const struct nw_cuda_api **api_out)
{
    pthread_once(&cuda_once, cuda_open_once);
    if (cuda_error.rc != NW_OK)
        return nw_fail_at(cuda_error.rc, cuda_error.lib, cuda_error.lib_code, cuda_error.where,
                          "%s", cuda_error.text);
    *api_out = &cuda_api;
    return NW_OK;
}

nw_rc nw_cuda_fail_at(const struct nw_cuda_api *api, nw_cu_result code, const char *where,
                      const char *format, ...)
{
    char what[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);

    const char *name = NULL, *text = NULL;
    if (api->cuGetErrorName(code, &name) != NW_CU_SUCCESS || !name)
        name = "unknown to this driver";
    if (api->cuGetErrorString(code, &text) != NW_CU_SUCCESS || !text)
        text = "no text";
    nw_rc rc = code == NW_CU_OUT_OF_MEMORY ? NW_ENOMEM
               : code == NW_CU_NO_DEVICE   ? NW_ENODEV
                                           : NW_ELIB;
    return nw_fail_at(rc, "cuda", (int)code, where, "%s: %s (%s, %u)", what, text, name, code);
}
