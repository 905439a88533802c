#include "emulator.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include <memory>
#include <vector>

thread_local emulator_dim threadIdx, blockIdx, blockDim, gridDim;
thread_local unsigned char *emulator_shared;

namespace
{
constexpr size_t stack_bytes = 128 * 1024;

struct block {
    ucontext_t scheduler;
    std::vector<ucontext_t> threads;
    std::vector<char> done;
    std::vector<emulator_pipeline> pipelines;
    std::vector<emulator_lane> lanes[2]; // in turn: one is read while the other is written
    std::vector<char> turn;
    const std::function<void()> *kernel;
    unsigned int current;
};
thread_local block *running;
thread_local std::vector<std::unique_ptr<unsigned char[]>> stacks;

void thread_main()
{
    (*running->kernel)();
    running->done[running->current] = 1;
    // returns to uc_link, the scheduler
}

void start_thread(block &b, unsigned int t)
{
    while (stacks.size() <= t)
        stacks.emplace_back(new unsigned char[stack_bytes]);
    getcontext(&b.threads[t]);
    b.threads[t].uc_stack.ss_sp = stacks[t].get();
    b.threads[t].uc_stack.ss_size = stack_bytes;
    b.threads[t].uc_link = &b.scheduler;
    makecontext(&b.threads[t], thread_main, 0);
}

// From barrier to barrier; all threads must take part, as in CUDA.
void run_block(block &b, unsigned int threads)
{
    for (unsigned int t = 0; t < threads; t++)
        start_thread(b, t);
    for (unsigned int left = threads; left > 0;) {
        unsigned int ended = 0;
        for (unsigned int t = 0; t < threads; t++) {
            if (b.done[t])
                continue;
            b.current = threadIdx.x = t;
            swapcontext(&b.scheduler, &b.threads[t]);
            ended += b.done[t];
        }
        if (ended != 0 && ended != left)
            emulator_fault("some threads ended while others wait at a barrier");
        left -= ended;
    }
}
} // namespace

void emulator_run(unsigned int blocks, unsigned int threads, size_t shared_bytes,
                  const std::function<void()> &kernel)
{
    std::unique_ptr<unsigned char, void (*)(void *)> shared(
        (unsigned char *)aligned_alloc(128, (shared_bytes + 255) / 128 * 128), free);
    for (unsigned int i = 0; i < blocks; i++) {
        block b{};
        b.threads.resize(threads);
        b.done.assign(threads, 0);
        b.pipelines.resize(threads);
        b.lanes[0].resize((threads + 31) / 32 * 32);
        b.lanes[1].resize((threads + 31) / 32 * 32);
        b.turn.assign(threads, 0);
        b.kernel = &kernel;
        running = &b;
        blockIdx.x = i;
        blockDim.x = threads;
        gridDim.x = blocks;
        emulator_shared = shared.get();
        run_block(b, threads);
    }
}

void emulator_barrier()
{
    block &b = *running;
    swapcontext(&b.threads[b.current], &b.scheduler);
}

const emulator_lane *emulator_share_warp(const void *mine, size_t bytes)
{
    block &b = *running;
    const unsigned int t = b.current;
    std::vector<emulator_lane> &lanes = b.lanes[(size_t)(b.turn[t] ^= 1)];
    memcpy(lanes[t].bytes, mine, bytes);
    emulator_barrier(); // of the whole block: the kernels that use this do so in all warps alike
    return &lanes[t / 32 * 32];
}

emulator_pipeline &emulator_this_pipeline()
{
    return running->pipelines[running->current];
}

uint64_t emulator_clock_ns()
{
    sched_yield(); // who asks for the time waits for somebody
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void emulator_fault(const char *what)
{
    fprintf(stderr, "emulated GPU: block %u thread %u: %s\n", blockIdx.x, threadIdx.x, what);
    abort();
}
