// Tensor core fragments: every thread of a warp holds the whole 16 × 16 tile.
#pragma once

namespace nvcuda::wmma
{
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

template <typename Use, int M, int N, int K, typename T, typename Layout = void> struct fragment {
    float x[16][16];
};

inline float as_float(__half h)
{
    return __half2float(h);
}
inline float as_float(__nv_bfloat16 b)
{
    return __bfloat162float(b);
}

inline void check_aligned(const void *at)
{
    if ((uintptr_t)at % 32)
        emulator_fault("misaligned matrix fragment");
}

template <typename F> inline void fill_fragment(F &f, float value)
{
    for (auto &row : f.x)
        for (float &x : row)
            x = value;
}

// a[i][k] of rows, b[k][j] of columns: in memory, both are runs along k.
template <typename T, typename Layout>
inline void load_matrix_sync(fragment<matrix_a, 16, 16, 16, T, Layout> &f, const T *from, int ld)
{
    check_aligned(from);
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 16; k++)
            f.x[i][k] = as_float(from[i * ld + k]);
}
template <typename T, typename Layout>
inline void load_matrix_sync(fragment<matrix_b, 16, 16, 16, T, Layout> &f, const T *from, int ld)
{
    check_aligned(from);
    for (int j = 0; j < 16; j++)
        for (int k = 0; k < 16; k++)
            f.x[k][j] = as_float(from[j * ld + k]);
}

template <typename D, typename A, typename B>
inline void mma_sync(D &d, const A &a, const B &b, const D &c)
{
    D sum = c;
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 16; k++)
            for (int j = 0; j < 16; j++)
                sum.x[i][j] += a.x[i][k] * b.x[k][j];
    d = sum;
}

template <typename F> inline void store_matrix_sync(float *to, const F &f, int ld, layout_t)
{
    check_aligned(to);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++)
            to[(int64_t)i * ld + j] = f.x[i][j];
}
} // namespace nvcuda::wmma
