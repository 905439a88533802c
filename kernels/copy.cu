// Copies by the multiprocessors: read and write, read only, write only. Any size, any alignment.
//
// Floor: a copy moves 2 · bytes through the memory of one GPU (each byte is read once and written
// once), read and write move 1 · bytes:
//     time >= 2 · bytes / memory rate          H200: 4.8 TB/s by datasheet, so 1 GiB >= 447 us
// Between GPUs or to pinned host memory the wire is the floor: bytes / one-way rate of the wire.
// To keep HBM busy, Little's law asks for rate · latency bytes in flight: 4.8 TB/s · 0.7 us =
// 3.4 MB, on 132 multiprocessors 25 KB each. 1024 threads with four 16-byte loads each: 64 KB.
#include "kernels/device.cuh"

// Bytes until `at` is a multiple of `width`, at most `bytes`.
__device__ inline uint64_t head_bytes(const void *at, uint64_t width, uint64_t bytes)
{
    uint64_t head = (width - (uint64_t)(uintptr_t)at % width) % width;
    return head < bytes ? head : bytes;
}

// Four independent loads before the first store. No more: unrolled further, as compilers like to
// for sm_100 and later, the loop does not fit the 64 registers that two blocks of 512 threads
// leave.
template <typename W> __device__ inline void copy_words(W *to, const W *from, uint64_t count)
{
    const uint64_t step = nw_thread_count();
    uint64_t i = nw_thread_first();
#pragma unroll 1
    for (; i + 3 * step < count; i += 4 * step) {
        const W a = nw_load_once(from + i), b = nw_load_once(from + i + step),
                c = nw_load_once(from + i + 2 * step), d = nw_load_once(from + i + 3 * step);
        nw_store_once(to + i, a);
        nw_store_once(to + i + step, b);
        nw_store_once(to + i + 2 * step, c);
        nw_store_once(to + i + 3 * step, d);
    }
#pragma unroll 1
    for (; i < count; i += step)
        nw_store_once(to + i, nw_load_once(from + i));
}

template <typename W>
__device__ inline void copy_by(unsigned char *to, const unsigned char *from, uint64_t bytes)
{
    const uint64_t head = head_bytes(to, sizeof(W), bytes);
    const uint64_t words = (bytes - head) / sizeof(W), tail = head + words * sizeof(W);
    copy_words(to, from, head);
    copy_words((W *)(to + head), (const W *)(from + head), words);
    copy_words(to + tail, from + tail, bytes - tail);
}

extern "C" __global__ void __launch_bounds__(512, 2)
    nw_kernel_copy(void *to, const void *from, uint64_t bytes)
{
    unsigned char *t = (unsigned char *)to;
    const unsigned char *f = (const unsigned char *)from;
    // The widest word at which both sides can be aligned.
    const unsigned int apart = (unsigned int)((uintptr_t)to ^ (uintptr_t)from);
    if (apart % 16 == 0)
        copy_by<uint4>(t, f, bytes);
    else if (apart % 8 == 0)
        copy_by<uint2>(t, f, bytes);
    else if (apart % 4 == 0)
        copy_by<unsigned int>(t, f, bytes);
    else
        copy_by<unsigned char>(t, f, bytes);
}

__device__ inline uint32_t rotate_left(uint32_t value, unsigned int bits)
{
    return bits ? value << bits | value >> (32 - bits) : value;
}

__device__ inline uint32_t fold_bytes(const unsigned char *from, uint64_t first, uint64_t end)
{
    uint32_t fold = 0;
    for (uint64_t i = first + nw_thread_first(); i < end; i += nw_thread_count())
        fold ^= (uint32_t)from[i] << 8 * (i % 4);
    return fold;
}

// *fold ^= every byte at its place in a 32-bit word, so that no load can be left out.
extern "C" __global__ void __launch_bounds__(512, 2)
    nw_kernel_read(const void *from, uint64_t bytes, uint32_t *fold)
{
    const unsigned char *f = (const unsigned char *)from;
    const uint64_t head = head_bytes(from, 16, bytes), words = (bytes - head) / 16;
    const uint4 *body = (const uint4 *)(f + head);
    const uint64_t step = nw_thread_count();
    uint32_t sum = 0;
    uint64_t i = nw_thread_first();
#pragma unroll 1
    for (; i + 3 * step < words; i += 4 * step) {
        const uint4 a = nw_load_once(body + i), b = nw_load_once(body + i + step),
                    c = nw_load_once(body + i + 2 * step), d = nw_load_once(body + i + 3 * step);
        sum ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w;
        sum ^= c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
    }
#pragma unroll 1
    for (; i < words; i += step) {
        const uint4 a = nw_load_once(body + i);
        sum ^= a.x ^ a.y ^ a.z ^ a.w;
    }
    // Byte k of a body word is byte head + k of the buffer.
    sum = rotate_left(sum, 8 * (head % 4));
    sum ^= fold_bytes(f, 0, head) ^ fold_bytes(f, head + words * 16, bytes);
    nw_warp_xor_into(fold, sum);
}

__device__ inline void write_bytes(unsigned char *to, uint64_t first, uint64_t end, uint32_t value)
{
    for (uint64_t i = first + nw_thread_first(); i < end; i += nw_thread_count())
        to[i] = (unsigned char)(value >> 8 * (i % 4));
}

extern "C" __global__ void __launch_bounds__(512, 2)
    nw_kernel_write(void *to, uint64_t bytes, uint32_t value)
{
    unsigned char *t = (unsigned char *)to;
    const uint64_t head = head_bytes(to, 16, bytes), words = (bytes - head) / 16;
    const uint32_t turned = rotate_left(value, (32 - 8 * (head % 4)) % 32);
    uint4 word;
    word.x = word.y = word.z = word.w = turned;
    uint4 *body = (uint4 *)(t + head);
    for (uint64_t i = nw_thread_first(); i < words; i += nw_thread_count())
        nw_store_once(body + i, word);
    write_bytes(t, 0, head, value);
    write_bytes(t, head + words * 16, bytes, value);
}
