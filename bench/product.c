#include "bench/product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/float8.h"
#include "kernels/half.h"

#define STAGE_BYTES (8u << 20)
#define WAIT_NS     60e9
/* At most so much of the free memory: a library has buffers of its own, and others use the GPU. */
#define MEMORY_SHARE 0.5

/* Sums must be exact in the tensor cores' sums. Random signs: a sum of n products has a standard
 * deviation of sqrt(n) · (2·range + 1)² / 12; with n = 8192 and range 255 that is 2.0e6, an eighth
 * of 2^24, where floats stop being exact. 255 is also the largest whole number of which bfloat16
 * has all bits. fp8 is summed with some 14 bits on Hopper (DeepSeek-V3, arXiv 2412.19437, 3.3.2):
 * with range 6 the deviation is 1270, a sixth of 2^13. */
#define RANGE_16BIT 255
#define RANGE_8BIT  6

const char *const nw_product_lanes[NW_PRODUCT_LANE_COUNT] = {
#define X(id, name) [id] = name,
    NW_PRODUCT_LANE_MAP(X)
#undef X
};

uint64_t nw_product_bytes(const struct nw_gemm_shape *shape, int32_t dtype)
{
    const uint64_t m = (uint64_t)shape->m, n = (uint64_t)shape->n, k = (uint64_t)shape->k;

    return (m + n) * k * nw_gemm_element_bytes(dtype) + m * n * sizeof(float);
}

bool nw_product_fits(const struct nw_gemm_shape *shape, uint64_t free_bytes)
{
    return (double)nw_product_bytes(shape, NW_HALF) <= MEMORY_SHARE * (double)free_bytes;
}

bool nw_product_is_tiled(const struct nw_gemm_shape *shape)
{
    return shape->m % NW_GEMM_TILE_M == 0 && shape->n % NW_GEMM_TILE_N == 0 &&
           shape->k % NW_GEMM_TILE_K_BYTES == 0;
}

int nw_product_size(int wanted, uint64_t free_bytes)
{
    int n = wanted > 0 ? wanted : NW_PRODUCT_MAX;

    while (n > 0 && !nw_product_fits(&(struct nw_gemm_shape){n, n, n}, free_bytes))
        n -= NW_PRODUCT_STEP;
    return n;
}

double nw_product_flop(const struct nw_product *product)
{
    return 2.0 * product->gemm.m * product->gemm.n * product->gemm.k;
}

static nw_rc open_memory(struct nw_product *product)
{
    struct nw_dev *dev = product->device->dev;
    const size_t m = (size_t)product->gemm.m, n = (size_t)product->gemm.n,
                 k = (size_t)product->gemm.k;
    void *memory;

    NW_TRY(dev->ops->alloc(dev, NW_SPACE_DEVICE, 2 * m * k, &memory));
    product->gemm.a = memory;
    NW_TRY(dev->ops->alloc(dev, NW_SPACE_DEVICE, 2 * n * k, &memory));
    product->gemm.b = memory;
    NW_TRY(dev->ops->alloc(dev, NW_SPACE_DEVICE, sizeof(float) * m * n, &memory));
    product->gemm.d = memory;
    product->numbers = malloc(2 * NW_PRODUCT_PERIOD * k * sizeof *product->numbers);
    return product->numbers != NULL
               ? NW_OK
               : nw_fail(NW_ENOMEM, "no memory for the operands of a matrix product");
}

static void free_memory(struct nw_product *product)
{
    struct nw_dev *dev = product->device->dev;
    void *const memory[] = {(void *)(uintptr_t)product->gemm.a, (void *)(uintptr_t)product->gemm.b,
                            product->gemm.d};

    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        dev->ops->free(dev, NW_SPACE_DEVICE, memory[i]);
    free(product->numbers);
    product->numbers = NULL;
    product->gemm.a = product->gemm.b = product->gemm.d = NULL;
    product->range = 0;
}

nw_rc nw_product_open(struct nw_device *device, int n, struct nw_product *product_out)
{
    void *stage;

    *product_out = (struct nw_product){.device = device, .gemm = {.m = n, .n = n, .k = n}};
    NW_TRY(open_memory(product_out));
    NW_TRY(device->dev->ops->alloc(device->dev, NW_SPACE_PINNED, STAGE_BYTES, &stage));
    product_out->stage = stage;
    product_out->expected = malloc(sizeof(float) * NW_PRODUCT_PERIOD * NW_PRODUCT_PERIOD);
    if (product_out->expected == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the result of a matrix product");
    if (nw_cublas_open(device->dev, device->stream, &product_out->cublas) != NW_OK) {
        product_out->cublas = NULL;
        snprintf(product_out->no_cublas, sizeof product_out->no_cublas, "%s",
                 nw_last_error()->text);
        nw_clear_error();
    }
    return NW_OK;
}

nw_rc nw_product_reshape(struct nw_product *product, const struct nw_gemm_shape *shape)
{
    free_memory(product);
    product->gemm.m = shape->m;
    product->gemm.n = shape->n;
    product->gemm.k = shape->k;
    return open_memory(product);
}

void nw_product_close(struct nw_product *product)
{
    if (product->device != NULL) {
        struct nw_dev *dev = product->device->dev;

        nw_cublas_close(product->cublas);
        free_memory(product);
        dev->ops->free(dev, NW_SPACE_PINNED, product->stage);
    }
    free(product->expected);
    *product = (struct nw_product){.device = NULL};
}

/* ---- operands ----------------------------------------------------------------------------------
 */

/* splitmix64 of the place. */
static int16_t number_at(uint64_t place, int range)
{
    uint64_t z = (place + 1) * 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (int16_t)((int)(z % (uint64_t)(2 * range + 1)) - range);
}

/* Of longer sums smaller numbers, so that the deviation stays what it is at n = 8192. */
static int range_of(int32_t dtype, int k)
{
    const int range = dtype == NW_FLOAT8 ? RANGE_8BIT : RANGE_16BIT;

    return k <= NW_PRODUCT_MAX ? range
                               : (int)fmax(floor(range * pow((double)NW_PRODUCT_MAX / k, 0.25)), 1);
}

static void make_numbers(struct nw_product *product, int range)
{
    const size_t k = (size_t)product->gemm.k, count = 2 * NW_PRODUCT_PERIOD * k;
    const int16_t *a = product->numbers, *b = product->numbers + NW_PRODUCT_PERIOD * k;

    if (product->range == range)
        return;
    product->range = range;
    for (size_t i = 0; i < count; i++)
        product->numbers[i] = number_at(i, range);
    for (size_t i = 0; i < NW_PRODUCT_PERIOD; i++)
        for (size_t j = 0; j < NW_PRODUCT_PERIOD; j++) {
            int32_t sum = 0;

            for (size_t l = 0; l < k; l++)
                sum += a[i * k + l] * b[j * k + l];
            product->expected[i * NW_PRODUCT_PERIOD + j] = (float)sum;
        }
}

static void encode(void *to, const int16_t *numbers, size_t count, int32_t dtype)
{
    uint8_t *bytes = to;
    uint16_t *words = to;

    for (size_t i = 0; i < count; i++) {
        const float value = numbers[i];

        if (dtype == NW_FLOAT8)
            bytes[i] = nw_float_to_float8(value);
        else
            words[i] = dtype == NW_HALF ? nw_float_to_half(value) : nw_float_to_bfloat16(value);
    }
}

/* The first rows by way of the stage; the GPU doubles them until all are there. */
static nw_rc upload(struct nw_product *product, const void *matrix, size_t rows,
                    const int16_t *numbers)
{
    const struct nw_dev_ops *ops = product->device->dev->ops;
    struct nw_stream *stream = product->device->stream;
    unsigned char *to = (unsigned char *)(uintptr_t)matrix;
    const size_t k = (size_t)product->gemm.k;
    const size_t row_bytes = k * nw_gemm_element_bytes(product->gemm.dtype);
    const size_t rows_at_once = STAGE_BYTES / row_bytes;

    for (size_t row = 0; row < NW_PRODUCT_PERIOD && row < rows; row += rows_at_once) {
        const size_t left = NW_PRODUCT_PERIOD - row;
        const size_t count = left < rows_at_once ? left : rows_at_once;

        encode(product->stage, numbers + row * k, count * k, product->gemm.dtype);
        NW_TRY(ops->copy(stream, to + row * row_bytes, product->stage, count * row_bytes));
        NW_TRY(ops->wait(stream, WAIT_NS));
    }
    for (size_t have = NW_PRODUCT_PERIOD; have < rows; have *= 2) {
        const size_t count = have < rows - have ? have : rows - have;

        NW_TRY(ops->copy(stream, to + have * row_bytes, to, count * row_bytes));
    }
    return ops->wait(stream, WAIT_NS);
}

nw_rc nw_product_operands(struct nw_product *product, int32_t dtype)
{
    make_numbers(product, range_of(dtype, product->gemm.k));
    product->gemm.dtype = dtype;
    NW_TRY(upload(product, product->gemm.a, (size_t)product->gemm.m, product->numbers));
    return upload(product, product->gemm.b, (size_t)product->gemm.n,
                  product->numbers + (size_t)NW_PRODUCT_PERIOD * (size_t)product->gemm.k);
}

/* ---- products ----------------------------------------------------------------------------------
 */

nw_rc nw_product_queue(struct nw_product *product, nw_product_lane lane)
{
    struct nw_device *device = product->device;

    if (lane == NW_PRODUCT_OWN)
        return device->dev->ops->gemm(device->stream, &product->gemm);
    if (product->cublas == NULL)
        return nw_fail(NW_ENODEV, "%s", product->no_cublas);
    return nw_cublas_gemm(product->cublas, &product->gemm);
}

nw_rc nw_product_spoil(struct nw_product *product)
{
    const uint64_t m = (uint64_t)product->gemm.m, n = (uint64_t)product->gemm.n;

    return product->device->dev->ops->set(product->device->stream, product->gemm.d, 0xff,
                                          sizeof(float) * m * n); /* a NaN everywhere */
}

static void check_row(const struct nw_product *product, size_t row, const float *found,
                      float *wanted, uint64_t *wrong, struct nw_wrong *first)
{
    const size_t n = (size_t)product->gemm.n;
    const float *expected = product->expected + row % NW_PRODUCT_PERIOD * NW_PRODUCT_PERIOD;

    for (size_t j = 0; j < n; j += NW_PRODUCT_PERIOD)
        memcpy(wanted + j, expected,
               (n - j < NW_PRODUCT_PERIOD ? n - j : NW_PRODUCT_PERIOD) * sizeof *wanted);
    if (memcmp(found, wanted, n * sizeof *wanted) == 0)
        return;
    for (size_t j = 0; j < n; j++) {
        if (found[j] == wanted[j]) /* -0 is right */
            continue;
        if ((*wrong)++ == 0)
            *first = (struct nw_wrong){.index = row * n + j,
                                       .expected = (double)wanted[j],
                                       .found = (double)found[j],
                                       .from_rank = -1};
    }
}

nw_rc nw_product_check(struct nw_product *product, uint64_t *wrong_out, struct nw_wrong *first_out)
{
    const struct nw_dev_ops *ops = product->device->dev->ops;
    struct nw_stream *stream = product->device->stream;
    const size_t n = (size_t)product->gemm.n, m = (size_t)product->gemm.m;
    const size_t row_bytes = n * sizeof(float);
    const size_t rows_at_once = STAGE_BYTES / row_bytes - 1; /* the stage's last row: wanted */
    float *wanted = (float *)(void *)(product->stage + rows_at_once * row_bytes);
    uint64_t wrong = 0;

    for (size_t row = 0; row < m; row += rows_at_once) {
        const size_t count = m - row < rows_at_once ? m - row : rows_at_once;

        NW_TRY(ops->copy(stream, product->stage, (const char *)product->gemm.d + row * row_bytes,
                         count * row_bytes));
        NW_TRY(ops->wait(stream, WAIT_NS));
        for (size_t i = 0; i < count; i++)
            check_row(product, row + i, (const float *)(const void *)product->stage + i * n, wanted,
                      &wrong, first_out);
    }
    *wrong_out = wrong;
    return NW_OK;
}
