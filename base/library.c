#include "base/library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

nw_rc nw_library_symbols(void *library, const char *file, const struct nw_library_symbol *symbols,
                         size_t count, void *table)
{
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address && symbols[i].older)
            address = dlsym(library, symbols[i].older);
        if (!address && symbols[i].required)
            return nw_fail(NW_ENODEV, "%s has no %s: the driver is too old for this program", file,
                           symbols[i].name);
        /* A copy of the bytes: ISO C has no cast from void * to a function pointer. */
        memcpy((char *)table + symbols[i].offset, &address, sizeof address);
    }
    return NW_OK;
}

nw_rc nw_library_missing(const char *file, const char *title, const char *dl_error)
{
    if (dl_error && !strstr(dl_error, "No such file"))
        return nw_fail(NW_ENODEV, "%s cannot be loaded: %s", file, dl_error);
    return nw_fail(NW_ENODEV, "no %s: %s not found", title, file);
}

nw_rc nw_library_simulated_allowed(const char *file)
{
    const char *allow = getenv("NW_ALLOW_SIMULATED");
    if (allow && strcmp(allow, "1") == 0)
        return NW_OK;
    return nw_fail(NW_ENODEV,
                   "%s is a simulation of the NVIDIA library, no measurement of a machine; set "
                   "NW_ALLOW_SIMULATED=1 to use it",
                   file);
}

const char *nw_library_path(void *function)
{
    Dl_info info;
    return dladdr(function, &info) && info.dli_fname ? info.dli_fname : "unknown file";
}
