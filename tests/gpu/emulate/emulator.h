// Runs a CUDA kernel that was compiled for the CPU: block after block; the threads of a block in
// turn, each on a stack of its own, so that a barrier can stand in the middle of one.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <deque>
#include <functional>

struct emulator_dim {
    unsigned int x;
};
extern thread_local emulator_dim threadIdx, blockIdx, blockDim, gridDim;
extern thread_local unsigned char *emulator_shared;

void emulator_run(unsigned int blocks, unsigned int threads, size_t shared_bytes,
                  const std::function<void()> &kernel);
void emulator_barrier();
uint64_t emulator_clock_ns();
[[noreturn]] void emulator_fault(const char *what);

// The asynchronous copies of the running thread.
struct emulator_pipeline {
    struct copy {
        void *to;
        const void *from;
        size_t bytes, group;
    };
    std::deque<copy> copies;
    size_t committed = 0;
};
emulator_pipeline &emulator_this_pipeline();

// What the 32 lanes of the running thread's warp hold, when all have come here: `bytes` (at most
// 64) of each. Valid until the thread's next call but one.
struct emulator_lane {
    unsigned char bytes[64];
};
const emulator_lane *emulator_share_warp(const void *mine, size_t bytes);
