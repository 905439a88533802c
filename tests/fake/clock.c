#include "tests/fake/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/fake/machine.h"

struct job {
    atomic_int banner;
    _Alignas(64) unsigned char memory[FK_JOB_BYTES];
};

static struct {
    bool real;
    int64_t stall_ns;
    _Atomic int64_t host_ps, queued_ps;
    _Atomic int64_t moved_ns; /* real time of the last progress, or until when a stall is counted */
    struct job *job;
    char prefix[64];
} state;
static pthread_once_t state_once = PTHREAD_ONCE_INIT;

static int64_t real_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

const char *fk_job_folder(void)
{
    const char *folder = getenv("FAKE_DIR");
    return folder && folder[0] ? folder : "/dev/shm";
}

static struct job *open_job(void)
{
    static struct job alone;
    const char *folder = getenv("FAKE_DIR");
    char path[512];
    if (!folder || !folder[0])
        return &alone;
    snprintf(path, sizeof path, "%s/job", folder);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *map = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof(struct job)) == 0)
        map = mmap(NULL, sizeof(struct job), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        fk_die("%s: cannot be shared by the processes of the job", path);
    close(fd);
    return map;
}

static void start(void)
{
    const char *clock = getenv("FAKE_CLOCK"), *stall = getenv("FAKE_STALL_MS");
    if (clock && strcmp(clock, "real") != 0 && strcmp(clock, "virtual") != 0)
        fk_die("FAKE_CLOCK=%s; accepted: virtual, real", clock);
    state.real = clock && strcmp(clock, "real") == 0;
    state.stall_ns = (stall ? atoll(stall) : 3000) * 1000000;
    state.job = open_job();
    state.moved_ns = real_ns();
    snprintf(state.prefix, sizeof state.prefix, "nwfake-%u", (unsigned)getuid());
}

static void ready(void)
{
    pthread_once(&state_once, start);
}

const char *fk_job_prefix(void)
{
    ready();
    return state.prefix;
}

void *fk_job_memory(void)
{
    ready();
    return state.job->memory;
}

bool fk_job_first(void)
{
    ready();
    return atomic_exchange(&state.job->banner, 1) == 0;
}

bool fk_clock_is_real(void)
{
    ready();
    return state.real;
}

static int64_t raise_to(_Atomic int64_t *value, int64_t least)
{
    int64_t have = atomic_load(value);
    while (have < least && !atomic_compare_exchange_weak(value, &have, least))
        ;
    return have < least ? least : have;
}

int64_t fk_host_ps(void)
{
    ready();
    return state.real ? real_ns() * FK_PS_PER_NS : atomic_load(&state.host_ps);
}

int64_t fk_host_spend(double us)
{
    ready();
    fk_progress();
    int64_t now = real_ns() * FK_PS_PER_NS;
    if (!state.real) {
        const int64_t cost = (int64_t)(us * FK_PS_PER_US);
        now = atomic_fetch_add(&state.host_ps, cost) + cost;
    }
    raise_to(&state.queued_ps, now);
    return now;
}

void fk_host_reach(int64_t ps)
{
    ready();
    fk_progress();
    if (!state.real)
        raise_to(&state.host_ps, ps);
}

int64_t fk_gate_ps(void)
{
    ready();
    return state.real ? fk_host_ps() : atomic_load(&state.queued_ps);
}

int64_t fk_until(int64_t ps)
{
    ready();
    if (!state.real)
        return ps;
    for (;;) {
        const int64_t now = fk_host_ps(), left = ps - now;
        if (left <= 0)
            return now;
        if (left > 200 * (int64_t)FK_PS_PER_US) /* sleep the most of it, spin the rest */
            nanosleep(&(struct timespec){.tv_sec = left / 2 / 1000000000000,
                                         .tv_nsec = left / 2 / 1000 % 1000000000},
                      NULL);
    }
}

void fk_progress(void)
{
    ready();
    atomic_store(&state.moved_ns, real_ns());
}

uint64_t fk_now(void)
{
    ready();
    if (!state.real) {
        const int64_t now = real_ns();
        int64_t moved = atomic_load(&state.moved_ns);
        const int64_t stalled = now - moved - state.stall_ns;
        if (stalled > 0 &&
            atomic_compare_exchange_strong(&state.moved_ns, &moved, now - state.stall_ns))
            atomic_fetch_add(&state.host_ps, stalled * FK_PS_PER_NS);
    }
    return (uint64_t)(fk_host_ps() / FK_PS_PER_NS);
}
