/* Our own loop: threads that each wait for one read or write at a time, so that as many are under
 * way as there are threads.
 *
 * Blocks are handed out in order, so what was written is always the file's beginning, without a
 * gap. Rates are taken over intervals of some 20 ms and more; what the phase is worth is their
 * median, and it ends when the median's interval is narrow enough or its time is over.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench/disk_parts.h"

enum {
    MAX_SAMPLES = 256,
    ENOUGH_SAMPLES = 15,
    STAMP_BYTES = 16,
    CHECKED_AGAIN = 16, /* random writes of a thread that are read back */
};
#define CHECK_NS       300e6 /* at most, for that: hard disks read some 100 places a second */
#define SAMPLE_NS      20e6
#define SAMPLE_MOST_NS 400e6 /* of a slow disk */

typedef enum { WRITING = 1, OVERWRITING = 2 } generation; /* who wrote a sector, in its stamp */

struct work {
    const struct nw_disk_plan *plan;
    nw_disk_rate_id phase;
    const uint8_t *base;          /* a block of noise, the same in all blocks but for the stamps */
    uint64_t filled_bytes;        /* before this phase */
    atomic_uint_fast64_t next;    /* block to be handed out */
    atomic_uint_fast64_t done;    /* calls that have ended */
    atomic_uint_fast64_t written; /* bytes, all phases */
    atomic_bool stop, finished;   /* finished: a thread found nothing left to do */
    atomic_int error;             /* errno of the first failure; 0: none */
    atomic_int_fast64_t failed_at, wrong_at; /* -1: nowhere */
};

struct worker {
    struct work *work;
    pthread_t thread;
    uint8_t *data;
    uint64_t random;
    bool started;
};

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* --- one sector --- */

static void stamp(const struct work *work, uint8_t *sector, uint64_t at, generation who)
{
    const uint64_t words[2] = {work->plan->seed + at, who};

    memcpy(sector, words, STAMP_BYTES);
}

static bool is_right(const struct work *work, const uint8_t *sector, uint64_t at, generation who)
{
    const uint8_t *base = work->base + at % NW_DISK_BLOCK;
    uint8_t wanted[STAMP_BYTES];

    stamp(work, wanted, at, who);
    return memcmp(sector, wanted, STAMP_BYTES) == 0 &&
           memcmp(sector + STAMP_BYTES, base + STAMP_BYTES, NW_DISK_SECTOR - STAMP_BYTES) == 0;
}

/* --- one call --- */

static void fail_at(struct work *work, int error, uint64_t at)
{
    int none = 0;

    if (atomic_compare_exchange_strong(&work->error, &none, error != 0 ? error : EIO))
        atomic_store(&work->failed_at, (int_fast64_t)at);
    atomic_store(&work->stop, true);
}

/* All of it, as calls may do a part or be interrupted. Reading only fills `data`. */
static bool transfer(struct work *work, bool writes, uint8_t *data, size_t length, uint64_t at)
{
    const struct nw_disk_calls *calls = work->plan->calls;
    const int fd = work->plan->file->fd;
    size_t done = 0;

    while (done < length) {
        const off_t place = (off_t)(at + done);
        const ssize_t some = writes ? (calls->write != NULL ? calls->write : pwrite)(
                                          fd, data + done, length - done, place)
                                    : (calls->read != NULL ? calls->read : pread)(
                                          fd, data + done, length - done, place);

        if (some > 0) {
            done += (size_t)some;
        } else if (some == 0 || errno != EINTR) {
            fail_at(work, some == 0 ? EIO : errno, at);
            return false;
        }
    }
    return true;
}

static bool write_all(struct work *work, uint8_t *data, size_t length, uint64_t at)
{
    if (!transfer(work, true, data, length, at))
        return false;
    atomic_fetch_add(&work->written, length);
    /* Through the page cache a write is only worth something when it has reached the disk. */
    if (!work->plan->file->direct && fdatasync(work->plan->file->fd) != 0) {
        fail_at(work, errno, at);
        return false;
    }
    return true;
}

static bool read_all(struct work *work, uint8_t *data, size_t length, uint64_t at)
{
    if (!transfer(work, false, data, length, at))
        return false;
    if (!work->plan->file->direct)
        (void)posix_fadvise(work->plan->file->fd, (off_t)at, (off_t)length, POSIX_FADV_DONTNEED);
    return true;
}

/* --- the four phases: one call of each; false: no more --- */

static bool write_block(struct worker *worker)
{
    struct work *work = worker->work;
    const uint64_t at = atomic_fetch_add(&work->next, 1) * NW_DISK_BLOCK;

    if (at + NW_DISK_BLOCK > work->plan->file_bytes)
        return false;
    for (size_t sector = 0; sector < NW_DISK_BLOCK; sector += NW_DISK_SECTOR)
        stamp(work, worker->data + sector, at + sector, WRITING);
    return write_all(work, worker->data, NW_DISK_BLOCK, at);
}

static bool check(struct work *work, const uint8_t *data, size_t length, uint64_t at,
                  generation who)
{
    for (size_t sector = 0; sector < length; sector += NW_DISK_SECTOR)
        if (!is_right(work, data + sector, at + sector, who)) {
            int_fast64_t nowhere = -1;

            atomic_compare_exchange_strong(&work->wrong_at, &nowhere, (int_fast64_t)(at + sector));
            atomic_store(&work->stop, true);
            return false;
        }
    return true;
}

static bool read_block(struct worker *worker)
{
    struct work *work = worker->work;
    const uint64_t count = work->filled_bytes / NW_DISK_BLOCK;
    const uint64_t at = atomic_fetch_add(&work->next, 1) % count * NW_DISK_BLOCK;

    return read_all(work, worker->data, NW_DISK_BLOCK, at) &&
           check(work, worker->data, NW_DISK_BLOCK, at, WRITING);
}

static uint64_t random_sector(struct worker *worker)
{
    return next_random(&worker->random) % (worker->work->filled_bytes / NW_DISK_SECTOR) *
           NW_DISK_SECTOR;
}

static bool read_sector(struct worker *worker)
{
    const uint64_t at = random_sector(worker);

    return read_all(worker->work, worker->data, NW_DISK_SECTOR, at) &&
           check(worker->work, worker->data, NW_DISK_SECTOR, at, WRITING);
}

static bool write_sector(struct worker *worker)
{
    struct work *work = worker->work;
    const uint64_t at = random_sector(worker);

    if ((atomic_fetch_add(&work->next, 1) + 1) * NW_DISK_SECTOR > work->plan->random_write_bytes)
        return false;
    memcpy(worker->data, work->base + at % NW_DISK_BLOCK, NW_DISK_SECTOR);
    stamp(work, worker->data, at, OVERWRITING);
    return write_all(work, worker->data, NW_DISK_SECTOR, at);
}

/* The places that a thread overwrote last, from the same random numbers once more. */
static void check_overwritten(struct worker *worker, uint64_t start, uint64_t calls)
{
    const uint64_t skipped = calls > CHECKED_AGAIN ? calls - CHECKED_AGAIN : 0;
    const uint64_t begin = nw_now_ns();

    worker->random = start;
    for (uint64_t call = 0; call < calls; call++) {
        const uint64_t at = random_sector(worker);

        if (call < skipped)
            continue;
        if (!read_all(worker->work, worker->data, NW_DISK_SECTOR, at) ||
            !check(worker->work, worker->data, NW_DISK_SECTOR, at, OVERWRITING) ||
            (double)(nw_now_ns() - begin) > CHECK_NS)
            return;
    }
}

static bool (*const one_call[NW_DISK_RATE_COUNT])(struct worker *) = {
    [NW_DISK_WRITE] = write_block,
    [NW_DISK_READ] = read_block,
    [NW_DISK_READ_IOPS] = read_sector,
    [NW_DISK_WRITE_IOPS] = write_sector,
};

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    struct work *work = worker->work;
    const uint64_t start = worker->random;
    uint64_t calls = 0;

    while (!atomic_load(&work->stop)) {
        if (!one_call[work->phase](worker)) {
            atomic_store(&work->finished, true);
            break;
        }
        calls++;
        atomic_fetch_add(&work->done, 1);
    }
    if (work->phase == NW_DISK_WRITE_IOPS && atomic_load(&work->error) == 0)
        check_overwritten(worker, start, calls);
    return NULL;
}

/* --- a phase --- */

static bool is_random(nw_disk_rate_id phase)
{
    return phase == NW_DISK_READ_IOPS || phase == NW_DISK_WRITE_IOPS;
}

static nw_rc start_workers(struct work *work, struct worker *workers, int count)
{
    for (int i = 0; i < count; i++) {
        void *data;

        workers[i].work = work;
        workers[i].random = work->plan->seed + (uint64_t)i * 0x1000003u + (unsigned)work->phase;
        if (posix_memalign(&data, NW_DISK_SECTOR,
                           is_random(work->phase) ? NW_DISK_SECTOR : NW_DISK_BLOCK) != 0)
            return nw_fail(NW_ENOMEM, "no memory for the buffers of %d threads", count);
        workers[i].data = data;
        if (!is_random(work->phase))
            memcpy(workers[i].data, work->base, NW_DISK_BLOCK);
        const int code = pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]);

        if (code != 0)
            return nw_fail(NW_ENOMEM, "cannot start %d threads: %s", count, strerror(code));
        workers[i].started = true;
    }
    return NW_OK;
}

static void stop_workers(struct work *work, struct worker *workers, int count)
{
    atomic_store(&work->stop, true);
    for (int i = 0; i < count; i++) {
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
        free(workers[i].data);
    }
}

static bool is_steady(const double *rates, size_t count, double stop_rel)
{
    struct nw_stats stats;

    return count >= ENOUGH_SAMPLES && nw_stats_of(rates, count, &stats) == NW_OK &&
           nw_stats_rel_half_interval(&stats) <= stop_rel;
}

/* Rates of calls until the phase ends; how many. `begin` is before the threads' start, so the first
 * interval does not count; a phase too short for more is worth all its calls over all its time. */
static size_t follow(struct work *work, uint64_t begin, int threads, double budget_ns,
                     double *rates, bool *steady)
{
    uint64_t since = begin, before = 0, done = 0, now = begin;
    size_t count = 0;
    bool ended = false;

    *steady = false;
    while (!ended && !*steady && count < MAX_SAMPLES) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        ended = atomic_load(&work->finished) || atomic_load(&work->stop);
        done = atomic_load(&work->done);
        now = nw_now_ns();
        const double took = (double)(now - since);

        ended |= (double)(now - begin) >= budget_ns;
        if (!(took >= SAMPLE_NS && done - before >= 4 * (uint64_t)threads) &&
            !(took >= SAMPLE_MOST_NS && done > before))
            continue;
        if (since != begin)
            rates[count++] = (double)(done - before) / took * 1e9;
        before = done;
        since = now;
        if (count >= ENOUGH_SAMPLES && count % 5 == 0)
            *steady = is_steady(rates, count, work->plan->stop_rel);
    }
    if (count == 0 && done > 0)
        rates[count++] = (double)done / (double)(now - begin) * 1e9;
    return count;
}

static nw_rc tell_failure(const struct work *work, struct nw_disk_result *result)
{
    static const char *const titles[] = {
#define X(rate, fact, title) title,
        NW_DISK_RATE_MAP(X)
#undef X
    };
    const int error = atomic_load(&work->error);
    const long long wrong = atomic_load(&work->wrong_at);
    char at[32];

    if (wrong >= 0)
        return nw_disk_tell(result, "disk-wrong-data",
                            "do not store data there; check memory, disk and cables",
                            "what was read at offset %s of a file just written is not what was "
                            "written",
                            nw_format_bytes(at, (uint64_t)wrong));
    if (error == ENOSPC || error == EDQUOT)
        return nw_disk_tell(result, "disk-full", "free some space, or give another path",
                            "%s failed: %s", titles[work->phase], strerror(error));
    if (error != 0)
        return nw_disk_tell(result, "disk-error", "look for the disk's or server's errors",
                            "%s failed at offset %s: %s", titles[work->phase],
                            nw_format_bytes(at, (uint64_t)atomic_load(&work->failed_at)),
                            strerror(error));
    return NW_OK;
}

static nw_rc run_phase(struct work *work, nw_disk_rate_id phase, double budget_s,
                       struct nw_disk_result *result)
{
    const int threads = is_random(phase) ? work->plan->random_threads : work->plan->threads;
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    double rates[MAX_SAMPLES];
    size_t count = 0;
    bool steady = false;
    nw_rc rc;

    if (workers == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %d threads", threads);
    work->phase = phase;
    atomic_store(&work->next, 0);
    atomic_store(&work->done, 0);
    atomic_store(&work->stop, false);
    atomic_store(&work->finished, false);
    const uint64_t begin = nw_now_ns();

    rc = start_workers(work, workers, threads);
    if (rc == NW_OK)
        count = follow(work, begin, threads, budget_s * 1e9, rates, &steady);
    stop_workers(work, workers, threads);
    free(workers);
    NW_TRY(rc);
    NW_TRY(tell_failure(work, result));
    if (atomic_load(&work->error) != 0 || atomic_load(&work->wrong_at) >= 0 || count == 0)
        return NW_OK;
    for (size_t i = 0; i < count; i++)
        rates[i] *= is_random(phase) ? 1 : NW_DISK_BLOCK;
    result->steady[phase] = steady;
    return nw_stats_of(rates, count, &result->rates[phase]);
}

/* Every block handed out has been written, unless a call failed. */
static uint64_t filled_of(const struct work *work)
{
    const uint64_t handed_out = atomic_load(&work->next) * NW_DISK_BLOCK;

    return handed_out < work->plan->file_bytes ? handed_out : work->plan->file_bytes;
}

static nw_rc run_phases(struct work *work, struct nw_disk_result *result)
{
    static const double shares[NW_DISK_RATE_COUNT] = {0.3, 0.3, 0.2, 0.2};
    double left = work->plan->budget_s, share_left = 1;

    for (int phase = 0; phase < NW_DISK_RATE_COUNT; phase++) {
        const uint64_t start = nw_now_ns();
        const double budget_s = left * shares[phase] / share_left;

        NW_TRY(run_phase(work, (nw_disk_rate_id)phase, budget_s, result));
        if (atomic_load(&work->error) != 0 || atomic_load(&work->wrong_at) >= 0)
            break;
        if (phase == NW_DISK_WRITE) {
            work->filled_bytes = filled_of(work);
            if (work->filled_bytes == 0)
                break;
            if (!work->plan->file->direct) {
                (void)fdatasync(work->plan->file->fd);
                (void)posix_fadvise(work->plan->file->fd, 0, 0, POSIX_FADV_DONTNEED);
            }
        }
        share_left -= shares[phase];
        left -= (double)(nw_now_ns() - start) * 1e-9;
        left = fmax(left, 0.02);
    }
    return NW_OK;
}

nw_rc nw_disk_own(const struct nw_disk_plan *plan, struct nw_disk_result *result)
{
    struct work work = {.plan = plan};
    uint64_t state = plan->seed;
    void *base;
    nw_rc rc;

    if (posix_memalign(&base, NW_DISK_SECTOR, NW_DISK_BLOCK) != 0)
        return nw_fail(NW_ENOMEM, "no memory for a block");
    for (size_t i = 0; i < NW_DISK_BLOCK / sizeof(uint64_t); i++)
        ((uint64_t *)base)[i] = next_random(&state);
    work.base = base;
    atomic_store(&work.failed_at, -1);
    atomic_store(&work.wrong_at, -1);
    rc = run_phases(&work, result);
    result->file_bytes = work.filled_bytes;
    result->written_bytes += atomic_load(&work.written);
    free(base);
    return rc;
}
