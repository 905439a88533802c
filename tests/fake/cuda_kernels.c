/* The kernels of kernels/ (.cu) on the double: the project's CPU twins on the double's memory, and
 * how long a GPU takes. The twins' arithmetic is held against the CUDA sources by tests/gpu. */
#include <stdlib.h>
#include <string.h>

#include "kernels/pattern.h"
#include "tests/fake/fake.h"

#define ARGUMENT(type, i) (*(const type *)arguments[i])

static const char who[] = "a kernel";

static bool copy_body(void **arguments)
{
    const uint64_t bytes = ARGUMENT(uint64_t, 2);
    void *to = fk_view(ARGUMENT(void *, 0), bytes, who);
    const void *from = fk_view(ARGUMENT(void *, 1), bytes, who);
    if (bytes > 0 && to && from)
        nw_copy_host(to, from, bytes);
    return bytes == 0 || (to && from);
}

static double copy_us(const struct CUctx_st *context, void **arguments)
{
    struct fk_traffic traffic = {.context = context};
    fk_traffic_add(&traffic, ARGUMENT(void *, 0), (double)ARGUMENT(uint64_t, 2));
    fk_traffic_add(&traffic, ARGUMENT(void *, 1), (double)ARGUMENT(uint64_t, 2));
    return fk_traffic_us(&traffic);
}

static bool read_body(void **arguments)
{
    const uint64_t bytes = ARGUMENT(uint64_t, 1);
    const void *from = fk_view(ARGUMENT(void *, 0), bytes, who);
    uint32_t *fold = fk_view(ARGUMENT(void *, 2), sizeof *fold, who);
    if (from && fold)
        nw_read_host(from, bytes, fold);
    return from && fold;
}

/* Address first, bytes second: read and write. */
static double one_way_us(const struct CUctx_st *context, void **arguments)
{
    struct fk_traffic traffic = {.context = context};
    fk_traffic_add(&traffic, ARGUMENT(void *, 0), (double)ARGUMENT(uint64_t, 1));
    return fk_traffic_us(&traffic);
}

static bool write_body(void **arguments)
{
    const uint64_t bytes = ARGUMENT(uint64_t, 1);
    void *to = fk_view(ARGUMENT(void *, 0), bytes, who);
    if (to)
        nw_write_host(to, bytes, ARGUMENT(uint32_t, 2));
    return to;
}

static bool reduce(void **arguments, nw_dtype dtype)
{
    struct nw_reduce_inputs inputs = ARGUMENT(struct nw_reduce_inputs, 1);
    const uint64_t count = ARGUMENT(uint64_t, 2),
                   bytes = count * (dtype == NW_FLOAT || dtype == NW_INT32 ? 4 : 2);
    void *to = fk_view(ARGUMENT(void *, 0), bytes, who);
    bool good = to;
    for (int i = 0; i < inputs.count; i++)
        good &= (inputs.from[i] = fk_view(inputs.from[i], bytes, who)) != NULL;
    if (good)
        nw_reduce_host(to, &inputs, count, dtype);
    return good;
}

static double reduce_time(const struct CUctx_st *context, void **arguments, double element_bytes)
{
    const struct nw_reduce_inputs inputs = ARGUMENT(struct nw_reduce_inputs, 1);
    const double bytes = (double)ARGUMENT(uint64_t, 2) * element_bytes;
    struct fk_traffic traffic = {.context = context};
    fk_traffic_add(&traffic, ARGUMENT(void *, 0), bytes);
    for (int i = 0; i < inputs.count; i++)
        fk_traffic_add(&traffic, inputs.from[i], bytes);
    return fk_traffic_us(&traffic);
}

#define REDUCE(name, dtype, element_bytes)                                                         \
    static bool reduce_##name(void **arguments)                                                    \
    {                                                                                              \
        return reduce(arguments, dtype);                                                           \
    }                                                                                              \
    static double reduce_##name##_us(const struct CUctx_st *context, void **arguments)             \
    {                                                                                              \
        return reduce_time(context, arguments, element_bytes);                                     \
    }
REDUCE(float, NW_FLOAT, 4)
REDUCE(int32, NW_INT32, 4)
REDUCE(half, NW_HALF, 2)
REDUCE(bfloat16, NW_BFLOAT16, 2)

/* The pattern with its table where the double can read it. */
static bool pattern_view(const void *argument, struct nw_pattern *pattern)
{
    memcpy(pattern, argument, sizeof *pattern);
    pattern->table =
        fk_view(pattern->table, NW_PATTERN_TABLE * (size_t)pattern->element_bytes, who);
    return pattern->table;
}

static bool fill_body(void **arguments)
{
    struct nw_pattern pattern;
    if (!pattern_view(arguments[2], &pattern))
        return false;
    const uint64_t count = ARGUMENT(uint64_t, 1);
    void *to = fk_view(ARGUMENT(void *, 0), count * (size_t)pattern.element_bytes, who);
    if (to)
        nw_fill_host(to, count, &pattern);
    return to;
}

static bool verify_body(void **arguments)
{
    struct nw_pattern pattern;
    if (!pattern_view(arguments[2], &pattern))
        return false;
    const uint64_t count = ARGUMENT(uint64_t, 1);
    const void *from = fk_view(ARGUMENT(void *, 0), count * (size_t)pattern.element_bytes, who);
    struct nw_verdict *verdict = fk_view(ARGUMENT(void *, 3), sizeof *verdict, who);
    if (!from || !verdict)
        return false;
    struct nw_verdict found = *verdict;
    nw_verify_host(from, count, &pattern, &found);
    verdict->wrong_count = found.wrong_count; /* the bits are the next kernel's */
    verdict->first_index = found.first_index;
    return true;
}

/* Buffer first, count second, pattern third: fill and verify. */
static double pattern_us(const struct CUctx_st *context, void **arguments)
{
    const struct nw_pattern pattern = ARGUMENT(struct nw_pattern, 2);
    struct fk_traffic traffic = {.context = context};
    fk_traffic_add(&traffic, ARGUMENT(void *, 0),
                   (double)ARGUMENT(uint64_t, 1) * pattern.element_bytes);
    return fk_traffic_us(&traffic);
}

static bool explain_body(void **arguments)
{
    struct nw_pattern pattern;
    struct nw_verdict *verdict = fk_view(ARGUMENT(void *, 2), sizeof *verdict, who);
    if (!verdict || !pattern_view(arguments[1], &pattern))
        return false;
    if (verdict->first_index == UINT64_MAX)
        return true;
    const size_t size = (size_t)pattern.element_bytes;
    const unsigned char *buffer = ARGUMENT(unsigned char *, 0);
    const void *found = fk_view(buffer + verdict->first_index * size, size, who);
    if (!found)
        return false;
    verdict->expected_bits = verdict->found_bits = 0;
    memcpy(&verdict->expected_bits,
           (const unsigned char *)pattern.table +
               nw_pattern_place(pattern.first + verdict->first_index) * size,
           size);
    memcpy(&verdict->found_bits, found, size);
    return true;
}

static double empty_us(const struct CUctx_st *context, void **arguments)
{
    (void)arguments;
    return fk_gpu_of(context)->kernel_us;
}

static bool gemm_body(void **arguments)
{
    const struct nw_gemm gemm = ARGUMENT(struct nw_gemm, 0);
    return fk_gemm_run(&gemm);
}

static double gemm_us(const struct CUctx_st *context, void **arguments)
{
    const struct nw_gemm gemm = ARGUMENT(struct nw_gemm, 0);
    return fk_gemm_us(context, &gemm, 1);
}

/* As gemm.cu: of those with fp8, the ones whose mma.sync has it. */
static bool has_float8(int capability)
{
    return capability == 89 || capability >= 120;
}

#define P sizeof(void *)
#define PATTERNS(bytes)                                                                            \
    {"nw_kernel_fill_" #bytes,                                                                     \
     3,                                                                                            \
     {P, 8, sizeof(struct nw_pattern)},                                                            \
     fill_body,                                                                                    \
     pattern_us,                                                                                   \
     0,                                                                                            \
     0,                                                                                            \
     NULL},                                                                                        \
        {"nw_kernel_verify_" #bytes,                                                               \
         4,                                                                                        \
         {P, 8, sizeof(struct nw_pattern), P},                                                     \
         verify_body,                                                                              \
         pattern_us,                                                                               \
         0,                                                                                        \
         0,                                                                                        \
         NULL},                                                                                    \
    {                                                                                              \
        "nw_kernel_explain_" #bytes, 3, {P, sizeof(struct nw_pattern), P}, explain_body, empty_us, \
            0, 0, NULL                                                                             \
    }
#define REDUCES(type)                                                                              \
    {                                                                                              \
        "nw_kernel_reduce_" #type, 3, {P, sizeof(struct nw_reduce_inputs), 8}, reduce_##type,      \
            reduce_##type##_us, 0, 0, NULL                                                         \
    }
#define GEMM sizeof(struct nw_gemm), sizeof(int32_t)

const struct fk_kernel fk_kernels[] = {
    {"nw_kernel_copy", 3, {P, P, 8}, copy_body, copy_us, 0, 0, NULL},
    {"nw_kernel_read", 3, {P, 8, P}, read_body, one_way_us, 0, 0, NULL},
    {"nw_kernel_write", 3, {P, 8, 4}, write_body, one_way_us, 0, 0, NULL},
    REDUCES(float),
    REDUCES(int32),
    REDUCES(half),
    REDUCES(bfloat16),
    PATTERNS(1),
    PATTERNS(2),
    PATTERNS(4),
    PATTERNS(8),
    {"nw_kernel_gate", 3, {P, 4, 8}, NULL, NULL, 0, true, NULL},
    {"nw_kernel_gemm_half", 2, {GEMM}, gemm_body, gemm_us, 0, 0, NULL},
    {"nw_kernel_gemm_bfloat16", 2, {GEMM}, gemm_body, gemm_us, 80, 0, NULL},
    {"nw_kernel_gemm_float8", 2, {GEMM}, gemm_body, gemm_us, 89, 0, has_float8},
};
const size_t fk_kernel_count = sizeof fk_kernels / sizeof *fk_kernels;
