/* Private to kernels/. The compiled CUDA kernels that the program carries. */
#ifndef NW_KERNELS_FATBIN_H
#define NW_KERNELS_FATBIN_H

#include <stddef.h>

struct nw_fatbin {
    const char *name; /* of the .cu file: "copy" */
    const unsigned char *image, *end;
};

extern const struct nw_fatbin nw_fatbins[];
extern const size_t nw_fatbin_count;
extern const char nw_fatbin_compiler[]; /* "13.0" */
extern const char nw_fatbin_chips[];    /* "sm_75 sm_80 …" */

#endif
