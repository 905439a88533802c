#include "tests/fake/share.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Ranks leave a barrier, and see their gates open, within this time. */
#define TOGETHER_MS 40

struct slot {
    atomic_int pid;       /* 0: free */
    _Atomic uint64_t key; /* host and uplink */
    atomic_int queued[2]; /* by direction */
};
#define SLOTS (FK_JOB_BYTES / sizeof(struct slot))

static struct slot *table(void)
{
    return fk_job_memory();
}

static uint64_t key_of(const struct CUstream_st *stream)
{
    char host[64] = "";
    uint64_t key = 14695981039346656037u; /* FNV-1a */
    gethostname(host, sizeof host - 1);
    for (const char *c = host; *c; c++)
        key = (key ^ (unsigned char)*c) * 1099511628211u;
    return key ^ (uint64_t)fk_gpu_of(fk_stream_context(stream))->share;
}

static bool shares(const struct CUstream_st *stream)
{
    return fk_machine()->shared_bytes_per_s > 0 && fk_gpu_of(fk_stream_context(stream))->share > 0;
}

static bool is_gone(int pid)
{
    return kill(pid, 0) != 0 && errno == ESRCH;
}

void fk_share_queue(struct CUstream_st *stream, int direction)
{
    struct fk_share *share = fk_stream_share(stream);
    if (!shares(stream))
        return;
    for (size_t i = 0; i < SLOTS && !share->slot; i++) {
        int owner = atomic_load(&table()[i].pid);
        if (owner != 0 && !is_gone(owner))
            continue;
        if (atomic_compare_exchange_strong(&table()[i].pid, &owner, (int)getpid())) {
            atomic_store(&table()[i].queued[0], 0);
            atomic_store(&table()[i].queued[1], 0);
            atomic_store(&table()[i].key, key_of(stream));
            share->slot = (int)i + 1;
        }
    }
    if (share->slot)
        atomic_store(&table()[share->slot - 1].queued[direction], 1);
}

void fk_share_end(struct CUstream_st *stream)
{
    struct fk_share *share = fk_stream_share(stream);
    if (share->slot) {
        struct slot *slot = &table()[share->slot - 1];
        share->slot = 0;
        atomic_store(&slot->queued[0], 0);
        atomic_store(&slot->queued[1], 0);
        atomic_store(&slot->pid, 0);
    }
}

void fk_share_count(struct CUstream_st *stream)
{
    struct fk_share *share = fk_stream_share(stream);
    share->count[0] = share->count[1] = 0;
    if (!share->slot)
        return;
    const uint64_t key = key_of(stream);
    for (size_t i = 0; i < SLOTS; i++) {
        const struct slot *slot = &table()[i];
        const int pid = atomic_load(&slot->pid);
        for (int d = 0; d < 2 && pid != 0 && atomic_load(&slot->key) == key && !is_gone(pid); d++)
            share->count[d] += atomic_load(&slot->queued[d]);
    }
    nanosleep(&(struct timespec){.tv_nsec = TOGETHER_MS * 1000000L}, NULL);
}

double fk_share_rate(const struct CUstream_st *stream, int direction, double rate)
{
    const struct fk_share *share = fk_stream_share((struct CUstream_st *)(uintptr_t)stream);
    const int count = share->count[direction] > 1 ? share->count[direction] : 1;
    const double part = fk_machine()->shared_bytes_per_s / count;
    return shares(stream) && part < rate ? part : rate;
}
