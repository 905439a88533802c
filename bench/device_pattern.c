/* Test patterns of the device cases: made and compared by the GPU, in words; only what is wrong is
 * looked at byte by byte, on the host. */
#include <string.h>

#include "bench/device_stage.h"

/* A copy or kernel over one buffer; the slowest bus is PCIe Gen1 x1 with 0.2 GB/s. */
#define STEP_TIMEOUT_NS(bytes) (10e9 + 5.0 * (double)(bytes))

static nw_rc wait(struct nw_device *device, uint64_t bytes)
{
    return device->dev->ops->wait(device->stream, STEP_TIMEOUT_NS(bytes));
}

static nw_rc copy(struct nw_device *device, void *to, const void *from, uint64_t bytes)
{
    NW_TRY(device->dev->ops->copy(device->stream, to, from, bytes));
    return wait(device, bytes);
}

static nw_rc upload(struct nw_device *device)
{
    return copy(device, device->memory->table, device->pinned->table, sizeof device->pinned->table);
}

nw_rc nw_device_pattern(struct nw_device *device, int seed, uint64_t round)
{
    const uint64_t start = nw_pattern_mix((uint64_t)(uint32_t)seed << 32 ^ nw_pattern_mix(round));

    for (uint64_t i = 0; i < NW_PATTERN_TABLE; i++)
        device->pinned->table[i] = nw_pattern_mix(start + i);
    return upload(device);
}

nw_rc nw_device_pattern_constant(struct nw_device *device, uint64_t word)
{
    for (uint64_t i = 0; i < NW_PATTERN_TABLE; i++)
        device->pinned->table[i] = word;
    return upload(device);
}

static struct nw_pattern pattern_in(const struct nw_device_stage *stage)
{
    return (struct nw_pattern){.table = stage->table, .element_bytes = NW_DEVICE_WORD};
}

nw_rc nw_device_fill(struct nw_device *device, nw_space space, void *to, uint64_t bytes)
{
    const struct nw_pattern pattern =
        pattern_in(space == NW_SPACE_DEVICE ? device->memory : device->pinned);

    if (space == NW_SPACE_PINNED) {
        nw_fill_host(to, bytes / NW_DEVICE_WORD, &pattern);
        return NW_OK;
    }
    NW_TRY(device->dev->ops->fill(device->stream, to, bytes / NW_DEVICE_WORD, &pattern));
    return wait(device, bytes);
}

/* The words that differ, into pinned->verdict. */
static nw_rc verify(struct nw_device *device, nw_space space, const void *from, uint64_t bytes)
{
    const struct nw_dev_ops *ops = device->dev->ops;
    struct nw_verdict *verdict = &device->pinned->verdict;
    const struct nw_pattern pattern =
        pattern_in(space == NW_SPACE_DEVICE ? device->memory : device->pinned);

    *verdict = (struct nw_verdict)NW_VERDICT_CLEAN;
    if (space == NW_SPACE_PINNED) {
        nw_verify_host(from, bytes / NW_DEVICE_WORD, &pattern, verdict);
        return NW_OK;
    }
    NW_TRY(ops->copy(device->stream, &device->memory->verdict, verdict, sizeof *verdict));
    NW_TRY(ops->verify(device->stream, from, bytes / NW_DEVICE_WORD, &pattern,
                       &device->memory->verdict));
    NW_TRY(ops->copy(device->stream, verdict, &device->memory->verdict, sizeof *verdict));
    return wait(device, bytes);
}

static void count_bytes(const unsigned char *expected, const unsigned char *found, uint64_t at,
                        uint64_t bytes, uint64_t *wrong, struct nw_wrong *first)
{
    for (uint64_t i = 0; i < bytes; i++) {
        if (expected[i] == found[i])
            continue;
        if ((*wrong)++ == 0)
            *first = (struct nw_wrong){
                .index = at + i, .expected = expected[i], .found = found[i], .from_rank = -1};
    }
}

nw_rc nw_device_check(struct nw_device *device, nw_space space, const void *from, uint64_t bytes,
                      uint64_t *wrong_out, struct nw_wrong *first_out)
{
    uint64_t expected[NW_DEVICE_PIECE / NW_DEVICE_WORD], wrong = 0;
    const struct nw_verdict *verdict = &device->pinned->verdict;
    struct nw_pattern pattern = pattern_in(device->pinned);

    NW_TRY(verify(device, space, from, bytes));
    for (uint64_t at = 0; at < bytes && verdict->wrong_count > 0; at += NW_DEVICE_PIECE) {
        const uint64_t count = bytes - at < NW_DEVICE_PIECE ? bytes - at : NW_DEVICE_PIECE;
        const void *found = (const char *)from + at;

        if (space == NW_SPACE_DEVICE) {
            NW_TRY(copy(device, device->pinned->piece, found, count));
            found = device->pinned->piece;
        }
        pattern.first = at / NW_DEVICE_WORD;
        nw_fill_host(expected, count / NW_DEVICE_WORD, &pattern);
        count_bytes((const unsigned char *)expected, found, at, count, &wrong, first_out);
    }
    if (verdict->wrong_count > 0 && wrong == 0) { /* right at the second look: still no result */
        wrong = verdict->wrong_count;
        *first_out = (struct nw_wrong){.index = verdict->first_index * NW_DEVICE_WORD,
                                       .expected = (double)verdict->expected_bits,
                                       .found = (double)verdict->found_bits,
                                       .from_rank = -1};
    }
    *wrong_out = wrong;
    return NW_OK;
}

/* Every block of the pattern is a window of the table: the exclusive or of a window is that of two
 * prefixes. */
uint32_t nw_device_pattern_fold(const struct nw_device *device, uint64_t bytes)
{
    const uint64_t count = bytes / NW_DEVICE_WORD;
    uint64_t prefix[NW_PATTERN_TABLE + 1], fold = 0;

    prefix[0] = 0;
    for (uint64_t i = 0; i < NW_PATTERN_TABLE; i++)
        prefix[i + 1] = prefix[i] ^ device->pinned->table[i];
    for (uint64_t at = 0; at < count; at += NW_PATTERN_BLOCK) {
        const uint64_t length = count - at < NW_PATTERN_BLOCK ? count - at : NW_PATTERN_BLOCK;
        const uint32_t start = nw_pattern_start(at / NW_PATTERN_BLOCK);

        fold ^= prefix[start + length] ^ prefix[start];
    }
    return (uint32_t)fold ^ (uint32_t)(fold >> 32);
}

uint32_t *nw_device_fold(struct nw_device *device)
{
    return &device->memory->fold;
}

nw_rc nw_device_fold_clear(struct nw_device *device)
{
    device->pinned->fold = 0;
    return copy(device, &device->memory->fold, &device->pinned->fold, sizeof device->pinned->fold);
}

nw_rc nw_device_fold_get(struct nw_device *device, uint32_t *fold_out)
{
    NW_TRY(copy(device, &device->pinned->fold, &device->memory->fold, sizeof device->pinned->fold));
    *fold_out = device->pinned->fold;
    return NW_OK;
}
