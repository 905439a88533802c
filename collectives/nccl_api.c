#include "collectives/nccl_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"

#define FILE_NAME "libnccl.so.2"

/* One NCCL per process. Written under pthread_once and never again. */
static pthread_once_t nccl_once = PTHREAD_ONCE_INIT;
static struct nw_nccl_api nccl_api;
static struct nw_err nccl_error;

static const struct nw_library_symbol nccl_symbols[] = {
#define X(member, symbol, required, arguments)                                                     \
    {offsetof(struct nw_nccl_api, member), symbol, NULL, required},
    NW_NCCL_API_MAP(X)
#undef X
        {offsetof(struct nw_nccl_api, get_error_string), "ncclGetErrorString", NULL, true},
    {offsetof(struct nw_nccl_api, get_last_error), "ncclGetLastError", NULL, false},
};

/* Where the loader's own search fails: NVIDIA's packages and the toolkit's folder. */
static const char *const usual_files[] = {
    "/usr/local/cuda/lib64/" FILE_NAME,
    "/usr/local/cuda/lib/" FILE_NAME,
    "/opt/nccl/lib/" FILE_NAME,
};

static nw_rc find_library(void **library_out)
{
    const char *given = getenv("NW_NCCL_LIBRARY");
    void *library;

    if (given != NULL && given[0] != '\0') {
        library = dlopen(given, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
            return nw_fail(NW_ENODEV, "NW_NCCL_LIBRARY: %s", dlerror());
        *library_out = library;
        return NW_OK;
    }
    library = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        char error[512];

        snprintf(error, sizeof error, "%s", dlerror());
        for (size_t i = 0; i < sizeof usual_files / sizeof *usual_files && library == NULL; i++)
            library = dlopen(usual_files[i], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
            return nw_library_missing(FILE_NAME, "NCCL", error);
    }
    *library_out = library;
    return NW_OK;
}

static nw_rc nccl_open(void)
{
    const char *given = getenv("NW_NCCL_LIBRARY");
    const char *file = given != NULL && given[0] != '\0' ? given : FILE_NAME;
    void *library;

    NW_TRY(find_library(&library));
    for (size_t i = 0; i < sizeof nccl_symbols / sizeof *nccl_symbols; i++)
        if (nccl_symbols[i].required && dlsym(library, nccl_symbols[i].name) == NULL)
            return nw_fail(NW_ENODEV,
                           "%s has no %s: it is older than NCCL 2.12, which this program needs, "
                           "or no NCCL",
                           file, nccl_symbols[i].name);
    NW_TRY(nw_library_symbols(library, file, nccl_symbols,
                              sizeof nccl_symbols / sizeof *nccl_symbols, &nccl_api));
    nccl_api.path = nw_library_path((void *)nccl_api.get_version);
    nccl_api.simulated = dlsym(library, NW_SIMULATED_MARKER) != NULL;
    if (nccl_api.simulated)
        NW_TRY(nw_library_simulated_allowed(nccl_api.path));
    if (nccl_api.get_version(&nccl_api.version) != NW_NCCL_SUCCESS)
        return nw_fail(NW_ENODEV, "%s does not say its version", nccl_api.path);
    return NW_OK;
}

static void nccl_open_once(void)
{
    if (nccl_open() != NW_OK)
        nccl_error = *nw_last_error();
}

nw_rc nw_nccl_api_open(const struct nw_nccl_api **api_out)
{
    pthread_once(&nccl_once, nccl_open_once);
    if (nccl_error.rc != NW_OK)
        return nw_fail_at(nccl_error.rc, nccl_error.lib, nccl_error.lib_code, nccl_error.where,
                          "%s", nccl_error.text);
    *api_out = &nccl_api;
    return NW_OK;
}

/* NCCL_VERSION_CODE: 2809 was 2.8.9; from 2.9 on 10000 × major + 100 × minor + patch. */
const char *nw_nccl_version_text(int version, char text[24])
{
    const int base = version < 10000 ? 1000 : 10000;

    snprintf(text, 24, "%d.%d.%d", version / base, version % base / 100, version % 100);
    return text;
}

nw_rc nw_nccl_fail_at(const struct nw_nccl_api *api, struct ncclComm *comm, nw_nccl_result code,
                      const char *where, const char *format, ...)
{
    char what[400], detail[400] = "";
    const char *text = api->get_error_string(code);
    const char *last = api->get_last_error != NULL ? api->get_last_error(comm) : NULL;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (last != NULL && last[0] != '\0')
        snprintf(detail, sizeof detail, ": %.390s", last);
    return nw_fail_at(NW_ELIB, "nccl", code, where, "%s: NCCL: %s (%d)%s", what,
                      text != NULL ? text : "no text", code, detail);
}
