#include "collectives/verbs_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "base/library.h"

#define FILE_NAME    "libibverbs.so.1"
#define CM_FILE_NAME "librdmacm.so.1"

/* One library of each per process. Written under pthread_once and never again. */
static pthread_once_t verbs_once = PTHREAD_ONCE_INIT, cm_once = PTHREAD_ONCE_INIT;
static struct nw_verbs_api verbs_api;
static struct nw_verbs_cm_api cm_api;
static struct nw_err verbs_error, cm_error;

static const struct nw_library_symbol verbs_symbols[] = {
#define X(member, required, result, arguments)                                                     \
    {offsetof(struct nw_verbs_api, member), "ibv_" #member, NULL, required},
    NW_VERBS_API_MAP(X)
#undef X
};

static const struct nw_library_symbol cm_symbols[] = {
#define X(member, required, result, arguments)                                                     \
    {offsetof(struct nw_verbs_cm_api, member), "rdma_" #member, NULL, required},
    NW_VERBS_CM_MAP(X)
#undef X
};

static nw_rc verbs_open(void)
{
    void *library = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        return nw_library_missing(FILE_NAME, "RDMA library (rdma-core's libibverbs)", dlerror());
    return nw_library_symbols(library, FILE_NAME, verbs_symbols,
                              sizeof verbs_symbols / sizeof *verbs_symbols, &verbs_api);
}

static nw_rc cm_open(void)
{
    void *library = dlopen(CM_FILE_NAME, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        return nw_library_missing(CM_FILE_NAME, "RDMA connection library (rdma-core's librdmacm)",
                                  dlerror());
    return nw_library_symbols(library, CM_FILE_NAME, cm_symbols,
                              sizeof cm_symbols / sizeof *cm_symbols, &cm_api);
}

static void verbs_open_once(void)
{
    if (verbs_open() != NW_OK)
        verbs_error = *nw_last_error();
}

static void cm_open_once(void)
{
    if (cm_open() != NW_OK)
        cm_error = *nw_last_error();
}

static nw_rc again(const struct nw_err *error)
{
    return error->rc == NW_OK ? NW_OK
                              : nw_fail_at(error->rc, error->lib, error->lib_code, error->where,
                                           "%s", error->text);
}

nw_rc nw_verbs_api_open(const struct nw_verbs_api **api_out)
{
    pthread_once(&verbs_once, verbs_open_once);
    NW_TRY(again(&verbs_error));
    *api_out = &verbs_api;
    return NW_OK;
}

nw_rc nw_verbs_cm_api_open(const struct nw_verbs_cm_api **api_out)
{
    pthread_once(&cm_once, cm_open_once);
    NW_TRY(again(&cm_error));
    *api_out = &cm_api;
    return NW_OK;
}
