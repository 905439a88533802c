/* Public. Vendor libraries at run time: symbols by name into a struct of function pointers. */
#ifndef NW_BASE_LIBRARY_H
#define NW_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* A symbol that only the tests' doubles of vendor libraries export. */
#define NW_SIMULATED_MARKER "nw_simulated_marker"

struct nw_library_symbol {
    size_t offset; /* of the function pointer in the table */
    const char *name;
    const char *older; /* taken where `name` is missing; NULL: none */
    bool required;
};

/* Fills `table`; an optional symbol that is missing is NULL there. NW_ENODEV names a required one
 * that is missing, which means a library too old for us. */
nw_rc nw_library_symbols(void *library, const char *file, const struct nw_library_symbol *symbols,
                         size_t count, void *table);

/* NW_ENODEV for a library that dlopen cannot open: not there, or there and broken. */
nw_rc nw_library_missing(const char *file, const char *title, const char *dl_error);

/* NW_ENODEV unless the environment has NW_ALLOW_SIMULATED=1: nobody measures a double by mistake.
 */
nw_rc nw_library_simulated_allowed(const char *file);

/* The file that holds `function`; it lives as long as the library. */
const char *nw_library_path(void *function);

#endif
