/* Matrix products on the double: exact for any operands, and quick for the ones that a load of
 * products has: equal rows are multiplied once, and a product of operands that nobody has written
 * since it was last made is there already. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/float8.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "tests/fake/fake.h"
#include "tests/fake/fault.h"

static const char who[] = "a matrix product";

/* ---- the rows of an operand that differ ---- */

struct rows {
    float *wide;      /* distinct rows, k floats each */
    uint32_t *number; /* of each row: which of the distinct ones it is */
    size_t distinct;
};

static uint64_t hash_of(const unsigned char *row, size_t bytes)
{
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < bytes; i += 8) { /* rows are multiples of 64 bytes */
        uint64_t word;
        memcpy(&word, row + i, 8);
        hash = (hash ^ word) * 0xd6e8feb86659fd93u;
        hash ^= hash >> 32;
    }
    return hash;
}

static void widen(float *to, const unsigned char *from, size_t count, int32_t dtype)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t bits;
        if (dtype == NW_FLOAT8) {
            to[i] = nw_float8_to_float(from[i]);
            continue;
        }
        memcpy(&bits, from + 2 * i, 2);
        to[i] = dtype == NW_HALF ? nw_half_to_float(bits) : nw_bfloat16_to_float(bits);
    }
}

/* Which of the rows before it is equal to row `i`; none: i. `table`: of `size` (a power of 2) row
 * numbers + 1, by hash. */
static size_t first_equal(const unsigned char *rows, size_t i, size_t bytes, uint32_t *table,
                          size_t size)
{
    const unsigned char *row = rows + i * bytes;
    for (size_t at = hash_of(row, bytes) & (size - 1);; at = (at + 1) & (size - 1)) {
        if (table[at] == 0) {
            table[at] = (uint32_t)i + 1;
            return i;
        }
        if (memcmp(rows + (table[at] - 1) * bytes, row, bytes) == 0)
            return table[at] - 1;
    }
}

static bool find_rows(struct rows *rows, const unsigned char *from, size_t count, size_t k,
                      int32_t dtype)
{
    const size_t bytes = k * nw_gemm_element_bytes(dtype);
    size_t size = 1, room = 0;
    while (size < 2 * count)
        size *= 2;
    uint32_t *table = calloc(size, sizeof *table);
    rows->number = malloc(count * sizeof *rows->number);
    rows->wide = NULL;
    rows->distinct = 0;
    bool good = table && rows->number;
    for (size_t i = 0; good && i < count; i++) {
        const size_t equal = first_equal(from, i, bytes, table, size);
        if (equal < i) {
            rows->number[i] = rows->number[equal];
            continue;
        }
        if (rows->distinct == room) {
            room = room ? 2 * room : 128;
            float *more = realloc(rows->wide, room * k * sizeof *more);
            good = more != NULL;
            rows->wide = good ? more : rows->wide;
        }
        if (good)
            widen(rows->wide + rows->distinct * k, from + i * bytes, k, dtype);
        rows->number[i] = (uint32_t)rows->distinct++;
    }
    free(table);
    return good;
}

static void free_rows(struct rows *rows)
{
    free(rows->wide);
    free(rows->number);
}

/* As the twin, sums in the order of k, but fast enough for a matrix of a thousand. */
static bool multiply(float *d, const struct rows *a, const struct rows *b, size_t k)
{
    const size_t n = b->distinct;
    float *across = malloc(n * k * sizeof *across); /* b by columns */
    for (size_t j = 0; across && j < n; j++)
        for (size_t l = 0; l < k; l++)
            across[l * n + j] = b->wide[j * k + l];
    memset(d, 0, a->distinct * n * sizeof *d);
    for (size_t i = 0; across && i < a->distinct; i++)
        for (size_t l = 0; l < k; l++) {
            const float factor = a->wide[i * k + l];
            float *restrict row = d + i * n;
            const float *restrict column = across + l * n;
            for (size_t j = 0; j < n; j++)
                row[j] += factor * column[j];
        }
    free(across);
    return across != NULL;
}

static bool product(float *d, const unsigned char *from_a, const unsigned char *from_b,
                    const struct nw_gemm *gemm)
{
    const size_t m = (size_t)gemm->m, n = (size_t)gemm->n, k = (size_t)gemm->k;
    struct rows a = {0}, b = {0};
    float *distinct = NULL;
    bool good =
        find_rows(&a, from_a, m, k, gemm->dtype) && find_rows(&b, from_b, n, k, gemm->dtype);
    if (good)
        distinct = malloc(a.distinct * b.distinct * sizeof *distinct);
    good = good && distinct && multiply(distinct, &a, &b, k);
    for (size_t i = 0; good && i < m; i++)
        for (size_t j = 0; j < n; j++)
            d[i * n + j] = distinct[a.number[i] * b.distinct + b.number[j]];
    free(distinct);
    free_rows(&a);
    free_rows(&b);
    return good;
}

/* ---- products that are there already ---- */

#define MADE 4
struct made {
    struct nw_gemm gemm;
    uint64_t a, b, d; /* fk_writes, after it was made; 0: nothing is here */
    bool corrupt;     /* with a wrong element, by request */
};
static struct made made[MADE];
static size_t made_next;
static pthread_mutex_t made_lock = PTHREAD_MUTEX_INITIALIZER;

static bool same_gemm(const struct nw_gemm *x, const struct nw_gemm *y)
{
    return x->a == y->a && x->b == y->b && x->d == y->d && x->m == y->m && x->n == y->n &&
           x->k == y->k && x->dtype == y->dtype;
}

static bool is_made(const struct nw_gemm *gemm, bool corrupt)
{
    const uint64_t a = fk_writes(gemm->a), b = fk_writes(gemm->b), d = fk_writes(gemm->d);
    bool found = false;
    pthread_mutex_lock(&made_lock);
    for (size_t i = 0; i < MADE && a && b && d; i++)
        found |= made[i].corrupt == corrupt && same_gemm(&made[i].gemm, gemm) && made[i].a == a &&
                 made[i].b == b && made[i].d == d;
    pthread_mutex_unlock(&made_lock);
    return found;
}

static void keep_made(const struct nw_gemm *gemm, bool corrupt)
{
    pthread_mutex_lock(&made_lock);
    made[made_next++ % MADE] = (struct made){.gemm = *gemm,
                                             .a = fk_writes(gemm->a),
                                             .b = fk_writes(gemm->b),
                                             .d = fk_writes(gemm->d),
                                             .corrupt = corrupt};
    pthread_mutex_unlock(&made_lock);
}

static atomic_long run_calls, timed_calls;

bool fk_gemm_run(const struct nw_gemm *gemm)
{
    const size_t m = (size_t)gemm->m, n = (size_t)gemm->n;
    const size_t row = (size_t)gemm->k * nw_gemm_element_bytes(gemm->dtype);
    const struct fk_faults faults =
        fk_faults_of("gemm", fk_process_rank(), atomic_fetch_add(&run_calls, 1) + 1, 0);
    const bool corrupt = fk_fault_has(&faults, FK_FAULT_CORRUPT);
    if (is_made(gemm, corrupt))
        return true;
    const unsigned char *a = fk_look(gemm->a, m * row, who), *b = fk_look(gemm->b, n * row, who);
    float *d = fk_view(gemm->d, 4 * m * n, who);
    if (!a || !b || !d || !product(d, a, b, gemm))
        return false;
    if (corrupt)
        ((unsigned char *)d)[(size_t)(faults.corrupt_at * (double)(4 * m * n)) / 4 * 4 + 2] ^= 0x10;
    keep_made(gemm, corrupt);
    return true;
}

static void run_cublas(struct fk_op *op, struct CUstream_st *stream)
{
    struct CUctx_st *context = fk_stream_context(stream);
    struct nw_gemm gemm;
    memcpy(&gemm, op->data, sizeof gemm);
    if (!fk_gemm_run(&gemm))
        context->error = CU_ILLEGAL_ADDRESS;
    fk_span(stream, op, fk_gemm_us(context, &gemm, fk_gpu_of(context)->cublas_factor));
}

fk_result fk_gemm_push_cublas(struct CUstream_st *stream, const struct nw_gemm *gemm)
{
    return fk_push(stream, run_cublas, NULL, gemm, sizeof *gemm);
}

double fk_gemm_us(const struct CUctx_st *context, const struct nw_gemm *gemm, double factor)
{
    const struct fk_gpu *gpu = fk_gpu_of(context);
    const struct fk_faults faults =
        fk_faults_of("gemm", fk_process_rank(), atomic_fetch_add(&timed_calls, 1) + 1, 0);
    const double rate = gpu->tensor_flops * (gemm->dtype == NW_FLOAT8 ? 2 : 1) * factor *
                        gpu->clock_mhz / gpu->max_clock_mhz;
    return gpu->kernel_us + 2.0 * gemm->m * gemm->n * gemm->k / rate * 1e6 * faults.slow_factor;
}
