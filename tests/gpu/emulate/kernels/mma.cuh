// The CPU in place of kernels/mma.cuh. Layouts of fragments as there; the lanes of a warp show each
// other what they hold. Asserts what costs a GPU time: rows of one matrix on the same banks.
#ifndef NW_KERNELS_MMA_CUH
#define NW_KERNELS_MMA_CUH

#include <type_traits>

#include "kernels/float8.h"

struct nw_mma_half {
};
struct nw_mma_bfloat16 {
};
struct nw_mma_float8 {
};

inline void nw_load_matrices(uint32_t (&r)[4], const void *row)
{
    const int lane = threadIdx.x % 32;
    const emulator_lane *lanes = emulator_share_warp(&row, sizeof row);
    for (int m = 0; m < 4; m++) {
        unsigned banks = 0;
        for (int i = 0; i < 8; i++) {
            uintptr_t at;
            memcpy(&at, lanes[8 * m + i].bytes, sizeof at);
            if (at % 16)
                emulator_fault("misaligned row of a matrix");
            banks |= 1u << at / 16 % 8;
        }
        if (banks != 0xff)
            emulator_fault("rows of a matrix on the same banks");
        const unsigned char *from;
        memcpy(&from, lanes[8 * m + lane / 4].bytes, sizeof from);
        memcpy(&r[m], from + lane % 4 * 4, 4);
    }
}

inline float emulated_value(nw_mma_half, const unsigned char *at)
{
    uint16_t bits;
    memcpy(&bits, at, 2);
    return nw_half_to_float(bits);
}
inline float emulated_value(nw_mma_bfloat16, const unsigned char *at)
{
    uint16_t bits;
    memcpy(&bits, at, 2);
    return nw_bfloat16_to_float(bits);
}
inline float emulated_value(nw_mma_float8, const unsigned char *at)
{
    return nw_float8_to_float(*at);
}

template <typename Type>
inline void nw_multiply_add(Type type, float (&d)[4], const uint32_t (&a)[4], const uint32_t *b)
{
    const uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    const int lane = threadIdx.x % 32, size = std::is_same<Type, nw_mma_float8>() ? 1 : 2;
    const emulator_lane *lanes = emulator_share_warp(mine, sizeof mine);
    for (int e = 0; e < 4; e++) {
        const int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
        for (int byte = 0; byte < 32; byte += size) {
            const int word_a = row / 8 + byte / 16 * 2, word_b = 4 + byte / 16;
            const int in_quad = byte % 16 / 4, in_word = byte % 4;
            d[e] +=
                emulated_value(type, lanes[row % 8 * 4 + in_quad].bytes + 4 * word_a + in_word) *
                emulated_value(type, lanes[column * 4 + in_quad].bytes + 4 * word_b + in_word);
        }
    }
}

#endif
