#include "kernels/kernels.h"

#include <string.h>

void nw_copy_host(void *to, const void *from, uint64_t bytes)
{
    memcpy(to, from, bytes);
}

void nw_read_host(const void *from, uint64_t bytes, uint32_t *fold)
{
    const unsigned char *f = from;
    uint64_t wide = 0;
    uint64_t i = 0;
    for (; i + sizeof wide <= bytes; i += sizeof wide) {
        uint64_t word;
        memcpy(&word, f + i, sizeof word);
        wide ^= word;
    }
    uint32_t sum = (uint32_t)wide ^ (uint32_t)(wide >> 32);
    for (; i < bytes; i++)
        sum ^= (uint32_t)f[i] << 8 * (i % 4);
    *fold ^= sum;
}

void nw_write_host(void *to, uint64_t bytes, uint32_t value)
{
    unsigned char *t = to;
    uint64_t i = 0;
    for (; i + sizeof value <= bytes; i += sizeof value)
        memcpy(t + i, &value, sizeof value);
    for (; i < bytes; i++)
        t[i] = (unsigned char)(value >> 8 * (i % 4));
}
