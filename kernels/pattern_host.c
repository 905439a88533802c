#include "kernels/pattern.h"

#include <string.h>

void nw_fill_host(void *to, uint64_t count, const struct nw_pattern *pattern)
{
    const size_t bytes = (size_t)pattern->element_bytes;
    for (uint64_t i = 0; i < count; i++)
        memcpy((unsigned char *)to + i * bytes,
               (const unsigned char *)pattern->table + nw_pattern_place(pattern->first + i) * bytes,
               bytes);
}

static uint64_t bits_at(const void *elements, uint64_t i, size_t bytes)
{
    uint64_t bits = 0; /* little-endian: the element in the low bytes */
    memcpy(&bits, (const unsigned char *)elements + i * bytes, bytes);
    return bits;
}

void nw_verify_host(const void *buffer, uint64_t count, const struct nw_pattern *pattern,
                    struct nw_verdict *verdict)
{
    const size_t bytes = (size_t)pattern->element_bytes;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t found = bits_at(buffer, i, bytes);
        const uint64_t expected =
            bits_at(pattern->table, nw_pattern_place(pattern->first + i), bytes);
        if (found == expected)
            continue;
        verdict->wrong_count++;
        if (i < verdict->first_index) {
            verdict->first_index = i;
            verdict->expected_bits = expected;
            verdict->found_bits = found;
        }
    }
}
