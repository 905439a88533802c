/* GPUs behind one uplink: each rank copies to its GPU, first alone, then all at once.
 *
 *     with-gpus uplink.machine spawn 4 test_share
 */
#include <math.h>
#include <sys/mman.h>

#include "tests/fake/tests/gpus.h"

#define BYTES 5000000

static struct gpus g;
static struct CUstream_st *stream;
static struct gate gate;
static struct CUevent_st *start, *end;
static void *device, *pinned;

/* All ranks; through a file of the job. */
static void barrier(int ranks)
{
    static _Atomic uint32_t *counter;
    static uint32_t round;
    if (!counter) {
        char path[400];
        snprintf(path, sizeof path, "%s/barrier", getenv("FAKE_DIR"));
        const int fd = open(path, O_RDWR | O_CREAT, 0600);
        MUST(ftruncate(fd, 4096));
        counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
    }
    (*counter)++;
    for (round++; *counter < round * (uint32_t)ranks;)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static void queue(bool up)
{
    void *to = up ? pinned : device, *from = up ? device : pinned;
    gate_hold(&g, &gate, stream);
    MUST(g.cu.cuEventRecord(start, stream));
    MUST(g.cu.cuMemcpyAsync((nw_cu_ptr)(uintptr_t)to, (nw_cu_ptr)(uintptr_t)from, BYTES, stream));
    MUST(g.cu.cuEventRecord(end, stream));
}

static double finish_us(void)
{
    float ms;
    gate_release(&gate);
    MUST(g.cu.cuStreamSynchronize(stream));
    MUST(g.cu.cuEventElapsedTime(&ms, start, end));
    return (double)ms * 1e3;
}

int main(void)
{
    int rank, ranks;
    find_rank(&rank, &ranks);
    gpus_open(&g);
    gpus_use(&g, rank);
    gate_open(&g, &gate);
    MUST(g.cu.cuStreamCreate(&stream, 1));
    MUST(g.cu.cuEventCreate(&start, 0));
    MUST(g.cu.cuEventCreate(&end, 0));
    device = gpus_alloc(&g, BYTES);
    MUST(g.cu.cuMemHostAlloc(&pinned, BYTES, 0));
    for (int r = 0; r < ranks; r++) {
        barrier(ranks);
        if (r != rank)
            continue;
        queue(false);
        const double us = finish_us();
        EXPECT(fabs(us / (8 + 100) - 1) < 1e-6, "rank %d alone: %.3f us", rank, us); /* 50 GB/s */
    }
    for (int again = 0; again < 3; again++) {
        /* GPUs 0 and 1 share 60 GB/s, GPU 3 has its uplink for itself; GPU 2 goes the other way. */
        queue(rank == 2);
        barrier(ranks);
        const double us = finish_us(), model = rank < 2    ? 8 + 5e3 / 30
                                               : rank == 2 ? 9 + 5e3 / 40
                                                           : 8 + 5e3 / 50;
        EXPECT(fabs(us / model - 1) < 1e-6, "rank %d of all: %.3f us, model %.3f", rank, us, model);
    }
    return failures != 0;
}
