/* One table of checks for every device: the CPU twins (tests/unit/test_kernels_twins.c), a GPU
 * (tests/gpu/test_kernels.c), and the CUDA sources compiled for the CPU (tests/gpu/emulate).
 *
 * Results are compared bit for bit with naive references that share no code with what they check,
 * at odd sizes and offsets, and with the bytes around the buffers: a write outside shows.
 */
#ifndef NW_TESTS_GPU_KERNEL_CASES_H
#define NW_TESTS_GPU_KERNEL_CASES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/dev.h"
#include "kernels/pattern.h"

#define KC_MARGIN   64
#define KC_TIMEOUT  60e9
#define KC_COUNT(a) (sizeof(a) / sizeof *(a))

struct kc {
    struct nw_dev *dev;
    struct nw_stream *stream;
    bool few; /* one case in eight */
    int checked, failed, skipped, count;
    char first[800]; /* what failed first */
};

#define KC_FAIL(kc, ...)                                                                           \
    do {                                                                                           \
        if ((kc)->failed++ == 0)                                                                   \
            snprintf((kc)->first, sizeof(kc)->first, __VA_ARGS__);                                 \
    } while (0)

/* Whether the next case is left out. */
static bool kc_left_out(struct kc *kc)
{
    return kc->few && kc->count++ % 8 != 0;
}

/* A call that must succeed; the group ends otherwise. */
#define KC_DO(kc, call)                                                                            \
    do {                                                                                           \
        if ((call) != NW_OK) {                                                                     \
            KC_FAIL(kc, "line %d: %s: %.300s", __LINE__, #call, nw_last_error()->text);            \
            return;                                                                                \
        }                                                                                          \
    } while (0)

static uint64_t kc_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void kc_random_bytes(void *to, size_t bytes, uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)to)[i] = (unsigned char)(kc_random(&state) >> 32);
}

/* Device memory with an image of it on the host: `image` is what it must hold. */
struct kc_buffer {
    unsigned char *memory, *image, *back;
    size_t bytes;
};

static struct kc_buffer kc_open(struct kc *kc, size_t bytes, uint64_t seed)
{
    struct kc_buffer b = {.bytes = bytes + 2 * KC_MARGIN};
    void *memory = NULL;
    b.image = malloc(b.bytes);
    b.back = malloc(b.bytes);
    if (!b.image || !b.back ||
        kc->dev->ops->alloc(kc->dev, NW_SPACE_DEVICE, b.bytes, &memory) != NW_OK) {
        fprintf(stderr, "no memory for the test's buffers: %s\n", nw_last_error()->text);
        abort();
    }
    b.memory = memory;
    kc_random_bytes(b.image, b.bytes, seed);
    return b;
}

static void kc_close(struct kc *kc, struct kc_buffer *b)
{
    kc->dev->ops->free(kc->dev, NW_SPACE_DEVICE, b->memory);
    free(b->image);
    free(b->back);
}

static nw_rc kc_done(struct kc *kc)
{
    return kc->dev->ops->wait(kc->stream, KC_TIMEOUT);
}

/* Done on return: the caller may change the image. */
static nw_rc kc_upload(struct kc *kc, const struct kc_buffer *b)
{
    const nw_rc rc = kc->dev->ops->copy(kc->stream, b->memory, b->image, b->bytes);
    return rc == NW_OK ? kc_done(kc) : rc;
}

/* Index of the first byte that differs from the image; SIZE_MAX: none. */
static size_t kc_compare(struct kc *kc, const struct kc_buffer *b)
{
    if (kc->dev->ops->copy(kc->stream, b->back, b->memory, b->bytes) != NW_OK ||
        kc_done(kc) != NW_OK)
        return 0;
    if (memcmp(b->back, b->image, b->bytes) == 0)
        return SIZE_MAX;
    for (size_t i = 0;; i++)
        if (b->back[i] != b->image[i])
            return i;
}

static const uint32_t kc_sizes[] = {0,  1,  2,   3,    7,    15,   16,    17,
                                    31, 33, 255, 1024, 4095, 4097, 65549, 300007};
static const uint32_t kc_offsets[] = {0, 1, 2, 3, 4, 6, 8, 13, 16};

static void kc_copy(struct kc *kc)
{
    struct kc_buffer from = kc_open(kc, 300007 + 16, 1), to = kc_open(kc, 300007 + 16, 2);
    KC_DO(kc, kc_upload(kc, &from));
    KC_DO(kc, kc_upload(kc, &to));
    for (size_t s = 0; s < KC_COUNT(kc_sizes); s++)
        for (size_t a = 0; a < KC_COUNT(kc_offsets); a++)
            for (size_t b = 0; b < KC_COUNT(kc_offsets); b++) {
                const size_t bytes = kc_sizes[s], f = KC_MARGIN + kc_offsets[a],
                             t = KC_MARGIN + kc_offsets[b];
                if (kc_left_out(kc) || (bytes > 5000 && (a + b) % 4 != 0))
                    continue; /* enough of the large ones */
                /* New data each time, else a missing copy would not show. */
                kc_random_bytes(to.image + t, bytes, s * 100 + a * 10 + b);
                KC_DO(kc, kc->dev->ops->copy(kc->stream, to.memory + t, to.image + t, bytes));
                KC_DO(kc, kc_done(kc));
                memcpy(to.image + t, from.image + f, bytes);
                KC_DO(kc,
                      kc->dev->ops->kernel_copy(kc->stream, to.memory + t, from.memory + f, bytes));
                KC_DO(kc, kc_done(kc));
                const size_t wrong = kc_compare(kc, &to);
                kc->checked++;
                if (wrong != SIZE_MAX)
                    KC_FAIL(kc, "copy of %zu bytes from offset %u to %u: byte %td is wrong", bytes,
                            kc_offsets[a], kc_offsets[b], (ptrdiff_t)wrong - (ptrdiff_t)t);
            }
    kc_close(kc, &from);
    kc_close(kc, &to);
}

static void kc_read(struct kc *kc)
{
    struct kc_buffer from = kc_open(kc, 300007 + 16, 3), fold = kc_open(kc, 4, 4);
    KC_DO(kc, kc_upload(kc, &from));
    for (size_t s = 0; s < KC_COUNT(kc_sizes); s++)
        for (size_t a = 0; a < KC_COUNT(kc_offsets); a++) {
            const size_t at = KC_MARGIN + kc_offsets[a];
            if (kc_left_out(kc))
                continue;
            KC_DO(kc, kc_upload(kc, &fold));
            KC_DO(kc, kc->dev->ops->kernel_read(kc->stream, from.memory + at, kc_sizes[s],
                                                (uint32_t *)(void *)(fold.memory + KC_MARGIN)));
            KC_DO(kc, kc_done(kc));
            for (size_t i = 0; i < kc_sizes[s]; i++) /* little-endian */
                fold.image[KC_MARGIN + i % 4] ^= from.image[at + i];
            kc->checked++;
            if (kc_compare(kc, &fold) != SIZE_MAX)
                KC_FAIL(kc, "read of %u bytes at offset %u: the fold is wrong", kc_sizes[s],
                        kc_offsets[a]);
        }
    kc_close(kc, &from);
    kc_close(kc, &fold);
}

static void kc_write(struct kc *kc)
{
    struct kc_buffer to = kc_open(kc, 300007 + 16, 5);
    KC_DO(kc, kc_upload(kc, &to));
    for (size_t s = 0; s < KC_COUNT(kc_sizes); s++)
        for (size_t a = 0; a < KC_COUNT(kc_offsets); a++) {
            const uint32_t value = 0x87654321u + (uint32_t)(s * 64 + a);
            const size_t at = KC_MARGIN + kc_offsets[a];
            if (kc_left_out(kc))
                continue;
            for (size_t i = 0; i < kc_sizes[s]; i++)
                to.image[at + i] = (unsigned char)(value >> 8 * (i % 4));
            KC_DO(kc, kc->dev->ops->kernel_write(kc->stream, to.memory + at, kc_sizes[s], value));
            KC_DO(kc, kc_done(kc));
            const size_t wrong = kc_compare(kc, &to);
            kc->checked++;
            if (wrong != SIZE_MAX)
                KC_FAIL(kc, "write of %u bytes at offset %u: byte %td is wrong", kc_sizes[s],
                        kc_offsets[a], (ptrdiff_t)wrong - (ptrdiff_t)at);
        }
    kc_close(kc, &to);
}

/* Reduction: references on the compiler's own half type, and bfloat16 by distance. */

static float kc_widen(nw_dtype dtype, const unsigned char *element)
{
    uint32_t bits = 0;
    float value;
    if (dtype == NW_HALF) {
        _Float16 half;
        memcpy(&half, element, sizeof half);
        return (float)half;
    }
    if (dtype == NW_BFLOAT16)
        memcpy((unsigned char *)&bits + 2, element, 2);
    else
        memcpy(&bits, element, 4);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Of the two bfloat16 on either side of a number: the nearer one, the even one between them. */
static uint16_t kc_nearest_bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t below = (uint16_t)(bits >> 16), above = (uint16_t)(below + 1);
    unsigned char b[2], a[2];
    memcpy(b, &below, 2);
    memcpy(a, &above, 2);
    if ((bits & 0xffff) == 0)
        return below;
    const double down = fabs((double)value - kc_widen(NW_BFLOAT16, b));
    const double next = kc_widen(NW_BFLOAT16, a);
    const double up = fabs((isinf(next) ? copysign(0x1p128, next) : next) - (double)value);
    if (down != up)
        return down < up ? below : above;
    return below % 2 == 0 ? below : above;
}

static void kc_narrow(nw_dtype dtype, float value, unsigned char *element)
{
    if (dtype == NW_HALF) {
        const _Float16 half = (_Float16)value;
        memcpy(element, &half, sizeof half);
    } else if (dtype == NW_BFLOAT16) {
        const uint16_t nearest = kc_nearest_bfloat16(value);
        memcpy(element, &nearest, sizeof nearest);
    } else {
        memcpy(element, &value, sizeof value);
    }
}

/* Finite numbers of the magnitudes that gradients have, the smallest and the largest among them. */
static void kc_random_elements(nw_dtype dtype, unsigned char *to, size_t count, uint64_t seed)
{
    uint64_t state = seed * 77777 + 5;
    const size_t size = nw_dtype_bytes(dtype);
    for (size_t i = 0; i < count; i++) {
        const uint64_t r = kc_random(&state);
        const int exponent = (int)(r % 36) - 22; /* half: subnormal to near the largest */
        const float value = ldexpf((float)((int64_t)(r >> 40) - (1 << 23)) * 0x1p-23f, exponent);
        if (dtype == NW_INT32)
            memcpy(to + i * size, &r, size);
        else
            kc_narrow(dtype, value, to + i * size);
    }
}

static void kc_naive_reduce(nw_dtype dtype, unsigned char *to, unsigned char *const *from,
                            int inputs, size_t count)
{
    const size_t size = nw_dtype_bytes(dtype);
    for (size_t i = 0; i < count; i++) {
        uint32_t whole = 0, word;
        float sum = 0;
        for (int k = 0; k < inputs; k++) {
            memcpy(&word, from[k] + i * size, size == 4 ? 4 : 2);
            whole += word;
            sum = k == 0 ? kc_widen(dtype, from[k] + i * size)
                         : sum + kc_widen(dtype, from[k] + i * size);
        }
        if (dtype == NW_INT32)
            memcpy(to + i * size, &whole, size);
        else
            kc_narrow(dtype, sum, to + i * size);
    }
}

static void kc_reduce_case(struct kc *kc, nw_dtype dtype, int inputs, size_t count, size_t shift,
                           bool in_place)
{
    if (kc_left_out(kc))
        return;
    const size_t size = nw_dtype_bytes(dtype), at = KC_MARGIN + shift * size;
    struct kc_buffer in[NW_REDUCE_MAX_INPUTS], out = kc_open(kc, (count + shift) * size, 9);
    struct nw_reduce_inputs device = {.count = inputs};
    unsigned char *host[NW_REDUCE_MAX_INPUTS];
    for (int k = 0; k < inputs; k++) {
        in[k] = kc_open(kc, (count + shift) * size, (uint64_t)(10 + k));
        kc_random_elements(dtype, in[k].image + at, count, (uint64_t)k * 31 + count);
        KC_DO(kc, kc_upload(kc, &in[k]));
        device.from[k] = in[k].memory + at;
        host[k] = in[k].image + at;
    }
    struct kc_buffer *to = in_place ? &in[0] : &out;
    KC_DO(kc, kc_upload(kc, &out));
    KC_DO(kc, kc->dev->ops->reduce(kc->stream, to->memory + at, &device, count, dtype));
    KC_DO(kc, kc_done(kc));
    kc_naive_reduce(dtype, to->image + at, host, inputs, count);
    const size_t wrong = kc_compare(kc, to);
    kc->checked++;
    if (wrong != SIZE_MAX)
        KC_FAIL(kc, "reduce of %d × %zu %s from element %zu%s: byte %td is wrong", inputs, count,
                nw_dtype_name(dtype), shift, in_place ? ", in place" : "",
                (ptrdiff_t)wrong - (ptrdiff_t)at);
    for (int k = 0; k < inputs; k++)
        kc_close(kc, &in[k]);
    kc_close(kc, &out);
}

static void kc_reduce(struct kc *kc)
{
    static const nw_dtype types[] = {NW_FLOAT, NW_HALF, NW_BFLOAT16, NW_INT32};
    static const size_t counts[] = {0, 1, 3, 7, 8, 9, 16, 255, 4097, 70001};
    static const int inputs[] = {1, 2, 3, 8, NW_REDUCE_MAX_INPUTS};
    for (size_t t = 0; t < KC_COUNT(types); t++)
        for (size_t c = 0; c < KC_COUNT(counts); c++)
            for (size_t n = 0; n < KC_COUNT(inputs); n++)
                for (size_t shift = 0; shift < 4; shift += 1 + shift) /* 0, 1, 3 */
                    kc_reduce_case(kc, types[t], inputs[n], counts[c], shift, (c + n) % 3 == 0);
}

static void kc_pattern_case(struct kc *kc, int bytes, size_t count, uint64_t first,
                            const size_t *flips, size_t flip_count)
{
    if (kc_left_out(kc))
        return;
    struct kc_buffer table = kc_open(kc, NW_PATTERN_TABLE * (size_t)bytes, (uint64_t)bytes + 40);
    struct kc_buffer data = kc_open(kc, count * (size_t)bytes, 41);
    struct kc_buffer verdict = kc_open(kc, sizeof(struct nw_verdict), 42);
    const struct nw_pattern pattern = {
        .table = table.memory + KC_MARGIN, .first = first, .element_bytes = bytes};
    struct nw_verdict want = NW_VERDICT_CLEAN, got;
    memcpy(verdict.image + KC_MARGIN, &want, sizeof want);
    KC_DO(kc, kc_upload(kc, &table));
    KC_DO(kc, kc_upload(kc, &data));
    KC_DO(kc, kc_upload(kc, &verdict));
    for (size_t i = 0; i < count; i++)
        memcpy(data.image + KC_MARGIN + i * (size_t)bytes,
               table.image + KC_MARGIN + nw_pattern_place(first + i) * (size_t)bytes,
               (size_t)bytes);
    KC_DO(kc, kc->dev->ops->fill(kc->stream, data.memory + KC_MARGIN, count, &pattern));
    KC_DO(kc, kc_done(kc));
    if (kc_compare(kc, &data) != SIZE_MAX)
        KC_FAIL(kc, "fill of %zu elements of %d bytes from %llu is wrong", count, bytes,
                (unsigned long long)first);

    for (size_t f = 0; f < flip_count; f++) {
        unsigned char *element = data.image + KC_MARGIN + flips[f] * (size_t)bytes;
        if (want.wrong_count++ == 0 || flips[f] < want.first_index) {
            want.first_index = flips[f];
            want.expected_bits = want.found_bits = 0;
            memcpy(&want.expected_bits, element, (size_t)bytes);
            element[bytes - 1] ^= 0x10;
            memcpy(&want.found_bits, element, (size_t)bytes);
        } else {
            element[0] ^= 1;
        }
    }
    KC_DO(kc, kc_upload(kc, &data));
    KC_DO(kc, kc->dev->ops->verify(kc->stream, data.memory + KC_MARGIN, count, &pattern,
                                   (struct nw_verdict *)(void *)(verdict.memory + KC_MARGIN)));
    KC_DO(kc, kc_done(kc));
    memcpy(verdict.image + KC_MARGIN, &want, sizeof want);
    const bool wrong = kc_compare(kc, &verdict) != SIZE_MAX;
    memcpy(&got, verdict.back + KC_MARGIN, sizeof got);
    kc->checked++;
    if (wrong)
        KC_FAIL(kc,
                "verify of %zu elements of %d bytes from %llu: %llu wrong, first %llu (%#llx "
                "for %#llx); right: %llu, %llu (%#llx for %#llx)",
                count, bytes, (unsigned long long)first, (unsigned long long)got.wrong_count,
                (unsigned long long)got.first_index, (unsigned long long)got.found_bits,
                (unsigned long long)got.expected_bits, (unsigned long long)want.wrong_count,
                (unsigned long long)want.first_index, (unsigned long long)want.found_bits,
                (unsigned long long)want.expected_bits);
    kc_close(kc, &table);
    kc_close(kc, &data);
    kc_close(kc, &verdict);
}

static void kc_pattern(struct kc *kc)
{
    static const uint64_t firsts[] = {0, 1, 2047, 2048, 5000000001u};
    static const size_t counts[] = {1, 5, 2047, 2048, 2049, 50021};
    for (int bytes = 1; bytes <= 8; bytes *= 2)
        for (size_t f = 0; f < KC_COUNT(firsts); f++)
            for (size_t c = 0; c < KC_COUNT(counts); c++) {
                const size_t n = counts[c];
                const size_t flips[] = {n - 1, n / 2, n / 3};
                kc_pattern_case(kc, bytes, n, firsts[f], flips, 0);
                kc_pattern_case(kc, bytes, n, firsts[f], flips, 1);
                if (n > 5)
                    kc_pattern_case(kc, bytes, n, firsts[f], flips, 3);
            }
}

/* Small integers: every partial sum is exact, so the order of the adds does not matter. */
/* e4m3 by its definition; narrow looks for the nearest of all codes. */
static float kc_float8(unsigned char code)
{
    const double fraction = (code & 7) / 8.0;
    const int exponent = code >> 3 & 15;
    const double magnitude =
        exponent == 0 ? fraction * pow(2, -6) : (1 + fraction) * pow(2, exponent - 7);
    return (float)(code & 0x80 ? -magnitude : magnitude);
}

static float kc_gemm_widen(int32_t dtype, const unsigned char *from)
{
    return dtype == NW_FLOAT8 ? kc_float8(*from) : kc_widen((nw_dtype)dtype, from);
}

static void kc_gemm_narrow(int32_t dtype, float value, unsigned char *to)
{
    if (dtype != NW_FLOAT8) {
        kc_narrow((nw_dtype)dtype, value, to);
        return;
    }
    *to = 0;
    for (int code = 1; code < 256; code++)
        if ((code & 0x7f) != 0x7f &&
            fabsf(kc_float8((unsigned char)code) - value) < fabsf(kc_float8(*to) - value))
            *to = (unsigned char)code;
}

static void kc_gemm_case(struct kc *kc, int32_t dtype, int m, int n, int k)
{
    const size_t size = nw_gemm_element_bytes(dtype);
    struct kc_buffer a = kc_open(kc, (size_t)m * (size_t)k * size, 60);
    struct kc_buffer b = kc_open(kc, (size_t)n * (size_t)k * size, 61);
    struct kc_buffer d = kc_open(kc, (size_t)m * (size_t)n * 4, 62);
    uint64_t state = (uint64_t)(m + n + k);
    for (size_t i = 0; i < (size_t)(m + n) * (size_t)k; i++) {
        unsigned char *to = i < (size_t)m * (size_t)k
                                ? a.image + KC_MARGIN + size * i
                                : b.image + KC_MARGIN + size * (i - (size_t)m * (size_t)k);
        kc_gemm_narrow(dtype, (float)((int)(kc_random(&state) % 17) - 8), to);
    }
    const struct nw_gemm gemm = {.a = a.memory + KC_MARGIN,
                                 .b = b.memory + KC_MARGIN,
                                 .d = d.memory + KC_MARGIN,
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .dtype = dtype};
    KC_DO(kc, kc_upload(kc, &a));
    KC_DO(kc, kc_upload(kc, &b));
    KC_DO(kc, kc_upload(kc, &d));
    const nw_rc rc = kc->dev->ops->gemm(kc->stream, &gemm);
    if (rc == NW_ENOTSUP) {
        kc->skipped++;
    } else {
        KC_DO(kc, rc);
        KC_DO(kc, kc_done(kc));
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                double sum = 0;
                for (size_t l = 0; l < (size_t)k; l++)
                    sum += (double)kc_gemm_widen(dtype, a.image + KC_MARGIN +
                                                            size * ((size_t)(i * k) + l)) *
                           (double)kc_gemm_widen(dtype, b.image + KC_MARGIN +
                                                            size * ((size_t)(j * k) + l));
                const float value = (float)sum;
                memcpy(d.image + KC_MARGIN + 4 * (i * n + j), &value, sizeof value);
            }
        const size_t wrong = kc_compare(kc, &d);
        kc->checked++;
        if (wrong != SIZE_MAX)
            KC_FAIL(kc, "product of %s %d × %d × %d: element %td is wrong",
                    nw_gemm_dtype_name(dtype), m, n, k, ((ptrdiff_t)wrong - KC_MARGIN) / 4);
    }
    kc_close(kc, &a);
    kc_close(kc, &b);
    kc_close(kc, &d);
}

static void kc_gemm(struct kc *kc)
{
    static const int32_t types[] = {NW_HALF, NW_BFLOAT16, NW_FLOAT8};
    for (size_t t = 0; t < KC_COUNT(types); t++) {
        const int tile_k = NW_GEMM_TILE_K_BYTES / (int)nw_gemm_element_bytes(types[t]);
        kc_gemm_case(kc, types[t], 256, 512, tile_k);
        kc_gemm_case(kc, types[t], 128, 256, 2 * tile_k);
        kc_gemm_case(kc, types[t], 128, 256, 5 * tile_k); /* more stages than are in flight */
    }
}

#define KC_EXPECT(kc, condition)                                                                   \
    do {                                                                                           \
        (kc)->checked++;                                                                           \
        if (!(condition))                                                                          \
            KC_FAIL(kc, "line %d: not so: %s (%.200s)", __LINE__, #condition,                      \
                    nw_last_error()->text);                                                        \
    } while (0)

static void kc_streams(struct kc *kc)
{
    const struct nw_dev_ops *ops = kc->dev->ops;
    struct nw_stream *other;
    struct nw_mark *start, *end;
    void *from, *to;
    double ns = -1;
    KC_DO(kc, ops->stream_open(kc->dev, &other));
    KC_DO(kc, ops->mark_open(kc->dev, &start));
    KC_DO(kc, ops->mark_open(kc->dev, &end));
    KC_DO(kc, ops->alloc(kc->dev, NW_SPACE_PINNED, 64, &from));
    KC_DO(kc, ops->alloc(kc->dev, NW_SPACE_PINNED, 64, &to));
    memset(from, 0x5a, 64);
    memset(to, 0, 64);

    /* Behind a closed gate nothing happens, on this stream and on one that follows it. */
    KC_EXPECT(kc, ops->mark_elapsed(start, end, &ns) == NW_EUSAGE);
    KC_DO(kc, ops->gate_hold(kc->stream, 30e9));
    KC_DO(kc, ops->mark_set(kc->stream, start));
    KC_DO(kc, ops->copy(kc->stream, to, from, 32));
    KC_DO(kc, ops->mark_set(kc->stream, end));
    KC_DO(kc, ops->follow(other, end));
    KC_DO(kc, ops->copy(other, (char *)to + 32, from, 32));
    KC_EXPECT(kc, ops->wait(kc->stream, 30e6) == NW_ETIMEOUT);
    KC_EXPECT(kc, ops->wait(other, 1e6) == NW_ETIMEOUT);
    KC_EXPECT(kc, ((volatile char *)to)[0] == 0 && ((volatile char *)to)[40] == 0);
    KC_EXPECT(kc, ops->mark_elapsed(start, end, &ns) == NW_EUSAGE);
    ops->gate_release(kc->stream);
    KC_EXPECT(kc, ops->wait(kc->stream, 10e9) == NW_OK);
    KC_EXPECT(kc, ops->wait(other, 10e9) == NW_OK);
    KC_EXPECT(kc, memcmp(to, from, 64) == 0);
    /* The window holds the copy, not the 30 ms at the gate. */
    KC_EXPECT(kc, ops->mark_elapsed(start, end, &ns) == NW_OK && ns >= 0 && ns < 30e6);

    /* A gate that nobody opens gives up, is reported once, and the next one works. */
    const uint64_t before = nw_now_ns();
    KC_DO(kc, ops->gate_hold(kc->stream, 20e6));
    KC_EXPECT(kc, ops->wait(kc->stream, 10e9) == NW_ETIMEOUT &&
                      strstr(nw_last_error()->text, "gate") != NULL);
    KC_EXPECT(kc, nw_now_ns() - before >= 19000000u);
    KC_EXPECT(kc, ops->wait(kc->stream, 10e9) == NW_OK);
    KC_DO(kc, ops->gate_hold(kc->stream, 10e9));
    ops->gate_release(kc->stream);
    KC_EXPECT(kc, ops->wait(kc->stream, 10e9) == NW_OK);

    KC_DO(kc, ops->set(kc->stream, to, 0xc3, 63));
    KC_EXPECT(kc, kc_done(kc) == NW_OK);
    KC_EXPECT(kc, ((unsigned char *)to)[62] == 0xc3 && ((unsigned char *)to)[63] == 0x5a);
    ops->mark_close(start);
    ops->mark_close(end);
    ops->stream_close(other);
    ops->free(kc->dev, NW_SPACE_PINNED, from);
    ops->free(kc->dev, NW_SPACE_PINNED, to);
}

static void kc_arguments(struct kc *kc)
{
    const struct nw_dev_ops *ops = kc->dev->ops;
    const struct nw_reduce_inputs none = {.count = 0}, many = {.count = NW_REDUCE_MAX_INPUTS + 1},
                                  one = {.count = 1};
    const struct nw_pattern odd = {.table = kc, .element_bytes = 3},
                            no_table = {.element_bytes = 4};
    struct nw_gemm gemm = {.m = 128, .n = 256, .k = 31, .dtype = NW_HALF};
    void *memory = NULL;
    KC_EXPECT(kc, ops->reduce(kc->stream, NULL, &none, 0, NW_FLOAT) == NW_EUSAGE);
    KC_EXPECT(kc, ops->reduce(kc->stream, NULL, &many, 0, NW_FLOAT) == NW_EUSAGE);
    KC_EXPECT(kc, ops->reduce(kc->stream, NULL, &one, 0, NW_INT8) == NW_EUSAGE);
    KC_EXPECT(kc, ops->fill(kc->stream, NULL, 0, &odd) == NW_EUSAGE);
    KC_EXPECT(kc, ops->verify(kc->stream, NULL, 0, &no_table, NULL) == NW_EUSAGE);
    KC_EXPECT(kc, ops->gemm(kc->stream, &gemm) == NW_EUSAGE);
    gemm.k = 32;
    gemm.dtype = NW_FLOAT;
    KC_EXPECT(kc, ops->gemm(kc->stream, &gemm) == NW_EUSAGE);
    KC_EXPECT(kc, ops->alloc(kc->dev, NW_SPACE_DEVICE, UINT64_C(1) << 60, &memory) == NW_ENOMEM);
    uint64_t free_bytes = 0;
    KC_EXPECT(kc, ops->free_bytes(kc->dev, &free_bytes) == NW_OK && free_bytes > 0);
    ops->free(kc->dev, NW_SPACE_DEVICE, NULL);
    ops->stream_close(NULL);
    ops->mark_close(NULL);
}

static const struct {
    const char *name;
    void (*run)(struct kc *kc);
} kc_groups[] = {
    {"copy", kc_copy},       {"read", kc_read},           {"write", kc_write},
    {"reduce", kc_reduce},   {"pattern", kc_pattern},     {"gemm", kc_gemm},
    {"streams", kc_streams}, {"arguments", kc_arguments},
};

/* Runs one group on a device of its own stream. */
static struct kc kc_run(struct nw_dev *dev, size_t group, bool few)
{
    struct kc kc = {.dev = dev, .few = few};
    if (dev->ops->stream_open(dev, &kc.stream) != NW_OK) {
        KC_FAIL(&kc, "no stream: %.300s", nw_last_error()->text);
        return kc;
    }
    kc_groups[group].run(&kc);
    dev->ops->stream_close(kc.stream);
    return kc;
}

#endif
