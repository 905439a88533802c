/* Private to cli/. A plan written into files, for `emit` and `search --emit`. */
#ifndef NW_CLI_EMIT_FILES_H
#define NW_CLI_EMIT_FILES_H

#include "model/emit.h"

struct nw_emit_wishes {
    const char *as;  /* "deepspeed,slurm"; NULL: all that can express the plan */
    const char *out; /* folder; NULL: one format, to standard output */
    const char *script, *image;
};
/* Before anything is computed: formats known, texts that need no quoting. */
nw_rc nw_emit_files_check(const struct nw_emit_wishes *wishes);
nw_rc nw_emit_files(const struct nw_emit_wishes *wishes, struct nw_emission *emission);

#endif
