#include "kernels/fatbin.h"

/* The rows that cmake/fatbin.cmake writes: NW_FATBIN(copy, "/…/copy.fatbin"). */
#define NW_FATBIN(name, path)                                                                      \
    __asm__(".pushsection .rodata\n"                                                               \
            ".balign 64\n"                                                                         \
            "nw_fatbin_" #name ":\n"                                                               \
            ".incbin \"" path "\"\n"                                                               \
            "nw_fatbin_" #name "_end:\n"                                                           \
            ".popsection\n");                                                                      \
    extern const unsigned char nw_fatbin_##name[], nw_fatbin_##name##_end[];
#include NW_FATBINS_INC
#undef NW_FATBIN

const struct nw_fatbin nw_fatbins[] = {
#define NW_FATBIN(name, path) {#name, nw_fatbin_##name, nw_fatbin_##name##_end},
#include NW_FATBINS_INC
#undef NW_FATBIN
};
const size_t nw_fatbin_count = sizeof nw_fatbins / sizeof *nw_fatbins;
const char nw_fatbin_compiler[] = NW_NVCC_VERSION;
const char nw_fatbin_chips[] = NW_CUDA_CHIPS;
