#include "collectives/verbs_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "base/library.h"

#define FILE_NAME "libibverbs.so.1"

/* One library per process. Written under pthread_once and never again. */
static pthread_once_t verbs_once = PTHREAD_ONCE_INIT;
static struct nw_verbs_api verbs_api;
static struct nw_err verbs_error;

static const struct nw_library_symbol verbs_symbols[] = {
#define X(member, required, result, arguments)                                                     \
    {offsetof(struct nw_verbs_api, member), "ibv_" #member, NULL, required},
    NW_VERBS_API_MAP(X)
#undef X
};

static nw_rc verbs_open(void)
{
    void *library = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        return nw_library_missing(FILE_NAME, "RDMA library (rdma-core's libibverbs)", dlerror());
    NW_TRY(nw_library_symbols(library, FILE_NAME, verbs_symbols,
                              sizeof verbs_symbols / sizeof *verbs_symbols, &verbs_api));
    verbs_api.path = nw_library_path((void *)verbs_api.get_device_list);
    return NW_OK;
}

static void verbs_open_once(void)
{
    if (verbs_open() != NW_OK)
        verbs_error = *nw_last_error();
}

nw_rc nw_verbs_api_open(const struct nw_verbs_api **api_out)
{
    pthread_once(&verbs_once, verbs_open_once);
    if (verbs_error.rc != NW_OK)
        return nw_fail_at(verbs_error.rc, verbs_error.lib, verbs_error.lib_code, verbs_error.where,
                          "%s", verbs_error.text);
    *api_out = &verbs_api;
    return NW_OK;
}
