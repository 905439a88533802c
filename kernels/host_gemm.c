/* Blocked as in Goto & van de Geijn, "Anatomy of high-performance matrix multiplication" (ACM TOMS
 * 34, 2008): panels of b stay in the last cache, blocks of a in the second, a strip of b in the
 * first, and a tile of c in registers.
 */
#include "kernels/host_gemm.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
    BLOCK_K = 256, /* a strip of b, 256 × 32 floats = 32 KiB, and one of a */
    BLOCK_M =
        168, /* 168 × 256 floats = 168 KiB: half of a usual second cache; whole tiles of 6 and 14 */
    BLOCK_N = 1024, /* 1 MiB of b */
    TILE_MAX = 14 * 32,
};

/* c (rows × columns of a tile, leading dimension `stride`) += a strip × b strip. The strips are
 * packed: `depth` steps of `rows` and of `columns` floats. */
typedef void (*tile_fn)(size_t depth, const float *a, const float *b, float *c, size_t stride);

/* Rows × columns are chosen so that the tile fills the registers: with AVX-512 28 of 32, with AVX2
 * and 128-bit vectors 12 of 16; each step loads columns / width vectors of b and as many scalars of
 * a as there are rows. */
#define TILE(name, attribute, VECTOR, WIDTH, ROWS, VECTORS)                                        \
    typedef float VECTOR __attribute__((vector_size(WIDTH * 4), aligned(4)));                      \
    attribute static void name(size_t depth, const float *a, const float *b, float *c,             \
                               size_t stride)                                                      \
    {                                                                                              \
        VECTOR sum[ROWS][VECTORS] = {{{0}}};                                                       \
        for (size_t step = 0; step < depth; step++) {                                              \
            VECTOR right[VECTORS];                                                                 \
            _Pragma("GCC unroll 4") for (int j = 0; j < VECTORS; j++) right[j] =                   \
                ((const VECTOR *)b)[j];                                                            \
            _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; i++)                                \
            {                                                                                      \
                _Pragma("GCC unroll 4") for (int j = 0; j < VECTORS; j++) sum[i][j] +=             \
                    a[i] * right[j];                                                               \
            }                                                                                      \
            a += ROWS;                                                                             \
            b += VECTORS * WIDTH;                                                                  \
        }                                                                                          \
        _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; i++)                                    \
        {                                                                                          \
            _Pragma("GCC unroll 4") for (int j = 0; j < VECTORS;                                   \
                                         j++)((VECTOR *)(c + i * stride))[j] += sum[i][j];         \
        }                                                                                          \
    }

struct tile {
    const char *name;
    size_t rows, columns;
    tile_fn run;
};

TILE(tile_128, , vector_128, 4, 6, 2)
#if defined __x86_64__ && defined __GNUC__
TILE(tile_avx2, __attribute__((target("avx2,fma"))), vector_256, 8, 6, 2)
TILE(tile_avx512, __attribute__((target("avx512f,fma"))), vector_512, 16, 14, 2)
#endif

/* The widest first. */
static const struct tile tiles[] = {
#if defined __x86_64__ && defined __GNUC__
    {"AVX-512", 14, 32, tile_avx512},
    {"AVX2", 6, 16, tile_avx2},
#endif
    {"128-bit vectors", 6, 8, tile_128},
};
#define TILE_COUNT (sizeof tiles / sizeof *tiles)

static bool can_run(const struct tile *tile)
{
#if defined __x86_64__ && defined __GNUC__
    if (tile->run == tile_avx512)
        return __builtin_cpu_supports("avx512f");
    if (tile->run == tile_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return tile->run == tile_128;
}

static const struct tile *find_tile(const char *name)
{
    for (size_t i = 0; i < TILE_COUNT; i++) {
        if (can_run(&tiles[i]) && (!name || !strcmp(tiles[i].name, name)))
            return &tiles[i];
    }
    return NULL;
}

const char *nw_host_gemm_kernel(size_t index)
{
    for (size_t i = 0; i < TILE_COUNT; i++) {
        if (can_run(&tiles[i]) && index-- == 0)
            return tiles[i].name;
    }
    return NULL;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* `count` lines of a matrix as strips of `width` lines, step by step; missing lines are zero.
 * Element (line, step) is at from[line * line_stride + step * step_stride]. */
static void pack(const float *from, size_t line_stride, size_t step_stride, size_t count,
                 size_t depth, size_t width, float *to)
{
    for (size_t first = 0; first < count; first += width) {
        const size_t present = smaller(width, count - first);
        for (size_t step = 0; step < depth; step++, to += width) {
            const float *source = from + first * line_stride + step * step_stride;
            size_t i = 0;
            for (; i < present; i++)
                to[i] = source[i * line_stride];
            for (; i < width; i++)
                to[i] = 0;
        }
    }
}

/* A tile that sticks out of c goes through one that does not. */
static void edge_tile(const struct tile *tile, size_t depth, const float *a, const float *b,
                      float *c, size_t stride, size_t rows, size_t columns)
{
    float whole[TILE_MAX] = {0};
    tile->run(depth, a, b, whole, tile->columns);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < columns; j++)
            c[i * stride + j] += whole[i * tile->columns + j];
    }
}

static void multiply_block(const struct tile *tile, size_t rows, size_t columns, size_t depth,
                           const float *a, const float *b, float *c, size_t stride)
{
    for (size_t j = 0; j < columns; j += tile->columns) {
        for (size_t i = 0; i < rows; i += tile->rows) {
            const float *left = a + i * depth, *right = b + j * depth;
            float *to = c + i * stride + j;
            if (rows - i >= tile->rows && columns - j >= tile->columns)
                tile->run(depth, left, right, to, stride);
            else
                edge_tile(tile, depth, left, right, to, stride, smaller(tile->rows, rows - i),
                          smaller(tile->columns, columns - j));
        }
    }
}

nw_rc nw_host_gemm(const char *kernel, size_t m, size_t n, size_t k, const float *a, const float *b,
                   float *c)
{
    const struct tile *tile = find_tile(kernel);
    if (!tile)
        return nw_fail(NW_ENOTSUP, "matrix multiplication by %s: not on this processor",
                       kernel ? kernel : "any instructions");
    /* One tile more than the block: its last strip may be padded. */
    float *left = aligned_alloc(64, (BLOCK_M + 64) * BLOCK_K * sizeof *left);
    float *right = aligned_alloc(64, (BLOCK_N + 64) * BLOCK_K * sizeof *right);
    nw_rc rc = NW_OK;
    if (!left || !right) {
        rc = nw_fail(NW_ENOMEM, "no memory to multiply matrices of %zu x %zu x %zu", m, n, k);
        goto out;
    }
    memset(c, 0, m * n * sizeof *c);
    for (size_t j = 0; j < n; j += BLOCK_N) {
        const size_t columns = smaller(BLOCK_N, n - j);
        for (size_t p = 0; p < k; p += BLOCK_K) {
            const size_t depth = smaller(BLOCK_K, k - p);
            pack(b + p * n + j, 1, n, columns, depth, tile->columns, right);
            for (size_t i = 0; i < m; i += BLOCK_M) {
                const size_t rows = smaller(BLOCK_M, m - i);
                pack(a + i * k + p, k, 1, rows, depth, tile->rows, left);
                multiply_block(tile, rows, columns, depth, left, right, c + i * n + j, n);
            }
        }
    }
out:
    free(left);
    free(right);
    return rc;
}

/* ---- the rate ---- */

enum {
    PROBE_SIDE = 896, /* 3 × 3.1 MiB; 1.4 GFLOP: 10 to 100 ms on a core */
    SAMPLES_MIN = 3,
    SAMPLES_MAX = 256,
};

/* Small integers: every sum is exact, |c| <= 9 × 896 < 2^24, so the check can be bit for bit. */
static float probe_value(size_t i)
{
    return (float)((i * 2654435761u >> 13) % 7) - 3;
}

static nw_rc check_product(const float *a, const float *b, const float *c)
{
    for (size_t row = 0; row < PROBE_SIDE; row += PROBE_SIDE - 1) {
        for (size_t column = 0; column < PROBE_SIDE; column++) {
            double sum = 0;
            for (size_t i = 0; i < PROBE_SIDE; i++)
                sum += (double)a[row * PROBE_SIDE + i] * (double)b[i * PROBE_SIDE + column];
            if ((double)c[row * PROBE_SIDE + column] != sum)
                return nw_fail(NW_EWRONG,
                               "multiplying matrices on the host (%s): element %zu, %zu is %g, not "
                               "%g; the processor or its memory miscalculates",
                               nw_host_gemm_kernel(0), row, column,
                               (double)c[row * PROBE_SIDE + column], sum);
        }
    }
    return NW_OK;
}

static nw_rc measure(double budget_ns, const float *a, const float *b, float *c,
                     struct nw_stats *flop_per_s_out)
{
    const size_t side = PROBE_SIDE;
    const double flop = 2.0 * PROBE_SIDE * PROBE_SIDE * PROBE_SIDE;
    double rates[SAMPLES_MAX];
    size_t count = 0;
    NW_TRY(nw_host_gemm(NULL, side, side, side, a, b, c)); /* warm: pages, caches, clock */
    NW_TRY(check_product(a, b, c));
    const uint64_t start = nw_now_ns();
    do {
        const uint64_t before = nw_now_ns();
        NW_TRY(nw_host_gemm(NULL, side, side, side, a, b, c));
        const uint64_t after = nw_now_ns();
        if (after == before)
            return nw_fail(NW_EWRONG, "the clock stands still: no rate can be measured");
        rates[count++] = flop / ((double)(after - before) * 1e-9);
    } while (count < SAMPLES_MAX &&
             (count < SAMPLES_MIN || (double)(nw_now_ns() - start) < budget_ns));
    NW_TRY(check_product(a, b, c));
    return nw_stats_of(rates, count, flop_per_s_out);
}

nw_rc nw_host_gemm_rate(double budget_ns, struct nw_stats *flop_per_s_out)
{
    const size_t count = (size_t)PROBE_SIDE * PROBE_SIDE;
    float *matrices = aligned_alloc(64, 3 * count * sizeof *matrices);
    if (!matrices)
        return nw_fail(NW_ENOMEM, "no memory (%zu bytes) to measure the host's compute rate",
                       3 * count * sizeof *matrices);
    for (size_t i = 0; i < 3 * count; i++)
        matrices[i] = probe_value(i);
    nw_rc rc = measure(budget_ns, matrices, matrices + count, matrices + 2 * count, flop_per_s_out);
    free(matrices);
    return rc;
}
