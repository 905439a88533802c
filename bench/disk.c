/* Checks the place, plans within the bounds, measures in a thread of its own: a call to a server
 * that does not answer never returns, and then only that thread is lost. */
#include "bench/disk.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench/disk_parts.h"

#define DEFAULT_LIMIT_S   6.0
#define LEAST_LIMIT_S     0.5
#define DEFAULT_STOP_REL  0.03
#define DEFAULT_MAX_BYTES (UINT64_C(1) << 30)
#define FREE_SHARE        0.05 /* of the free space, at most */
#define FILE_SHARE        0.75 /* of the bytes; the rest is overwritten at random places */
#define GRACE_S           4.0  /* fio late, our own loop after it; the last calls under way */

static const struct nw_disk_calls system_calls;

struct job {
    pthread_mutex_t mutex;
    pthread_cond_t over;
    int owners; /* the caller and the thread; the last one frees it */
    bool done;
    struct nw_disk_wish wish; /* path and fio owned */
    struct nw_disk_result result;
    nw_rc rc;
    char error[sizeof((struct nw_err *)0)->text];
};

/* --- the place --- */

static nw_rc refuse(const char *path, const char *reason)
{
    return nw_fail(NW_EUSAGE,
                   "%s: %s; give a directory of the storage to measure, in which this "
                   "user may write",
                   path, reason);
}

nw_rc nw_disk_look(const char *path, struct nw_disk_result *result_out)
{
    struct nw_disk_result result = {0};
    char resolved[PATH_MAX];
    struct statvfs status;
    struct nw_mounts mounts;
    nw_rc rc;

    if (realpath(path, resolved) == NULL)
        return refuse(path, strerror(errno));
    NW_TRY(nw_mounts_read("", &mounts));
    rc = nw_place_of("", &mounts, resolved, &result.place);
    nw_mounts_free(&mounts);
    NW_TRY(rc);
    if (statvfs(resolved, &status) == 0)
        result.free_bytes = (uint64_t)status.f_bavail * status.f_frsize;
    *result_out = result;
    return NW_OK;
}

static nw_rc find_place(const char *path, struct nw_disk_result *result)
{
    struct stat status;

    NW_TRY(nw_disk_look(path, result));
    if (stat(path, &status) != 0)
        return refuse(path, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return refuse(path, "not a directory");
    if (result->place.read_only)
        return refuse(path, "mounted read-only");
    if (access(path, W_OK | X_OK) != 0)
        return refuse(path, strerror(errno));
    return NW_OK;
}

/* Bytes that may be written. */
static nw_rc bound_bytes(const struct nw_disk_wish *wish, struct nw_disk_result *result,
                         uint64_t *bytes_out)
{
    struct rlimit limit;
    uint64_t bytes = wish->max_bytes > 0 ? wish->max_bytes : DEFAULT_MAX_BYTES;
    char have[32], need[32];
    double share;

    share = FREE_SHARE * (double)result->free_bytes;
    bytes = share < (double)bytes ? (uint64_t)share : bytes;
    /* A file that grows beyond this limit ends the process. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
        bytes = limit.rlim_cur;
    if (bytes < NW_DISK_MIN_BYTES)
        return nw_fail(
            NW_EUSAGE,
            "%s: no room to measure: %s free, of which at most 5 %% are used, and limits "
            "of the wish and the process leave %s; %s are needed",
            wish->path, nw_format_bytes(have, result->free_bytes),
            nw_format_bytes((char[32]){0}, bytes), nw_format_bytes(need, NW_DISK_MIN_BYTES));
    *bytes_out = bytes;
    return NW_OK;
}

nw_rc nw_disk_tell(struct nw_disk_result *result, const char *code, const char *remedy,
                   const char *format, ...)
{
    char *text;
    va_list arguments;
    nw_rc rc;

    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return nw_fail(NW_ENOMEM, "no memory for a finding");
    rc = nw_findings_add(&result->findings, NW_FINDING_FAIL, code, result->place.path, remedy,
                         "%s: %s", result->place.path, text);
    free(text);
    return rc;
}

/* --- measuring --- */

static int within(int value, int least, int most)
{
    return value < least ? least : value > most ? most : value;
}

static nw_rc choose_tool(const struct nw_disk_wish *wish, struct nw_disk_result *result,
                         bool *fio_out)
{
    nw_rc rc;

    *fio_out = false;
    snprintf(result->tool, sizeof result->tool, "own loop");
    if (wish->tool == NW_DISK_OWN)
        return NW_OK;
    rc = nw_disk_fio_version(wish->fio, result->tool);
    *fio_out = rc == NW_OK;
    if (rc == NW_OK || wish->tool == NW_DISK_FIO)
        return rc;
    nw_clear_error();
    snprintf(result->tool, sizeof result->tool, "own loop");
    return NW_OK;
}

/* fio gets its three repeats of four rates only where there is room and time for them, and not
 * where the page cache is in between: it would read what it has read before. */
static bool suits_fio(const struct nw_disk_plan *plan)
{
    return plan->file->direct && plan->budget_s >= 2.5 &&
           plan->file_bytes >= 3 * (uint64_t)plan->threads * NW_DISK_BLOCK;
}

/* What was written already is no longer to be written, in whole blocks; a quarter stays. */
static uint64_t within_file(const struct nw_disk_plan *plan, uint64_t written_bytes)
{
    const uint64_t most = plan->file_bytes / 4 * 3;
    const uint64_t taken = written_bytes < most ? written_bytes : most;

    return (taken + NW_DISK_BLOCK - 1) / NW_DISK_BLOCK * NW_DISK_BLOCK;
}

static nw_rc run_tool(struct nw_disk_plan *plan, const struct nw_disk_wish *wish, bool fio,
                      struct nw_disk_result *result)
{
    const uint64_t start = nw_now_ns();
    nw_rc rc;

    if (fio && (wish->tool == NW_DISK_FIO || suits_fio(plan))) {
        rc = nw_disk_fio(plan, wish->fio, result);
        if ((rc != NW_ELIB && rc != NW_ENOTSUP) || wish->tool == NW_DISK_FIO)
            return rc;
        nw_clear_error(); /* fio cannot work here, or not on so slow a disk: then we do */
        plan->budget_s = fmax(plan->budget_s - (double)(nw_now_ns() - start) * 1e-9, 0.4);
        plan->file_bytes -= within_file(plan, result->written_bytes);
    }
    snprintf(result->tool, sizeof result->tool, "own loop");
    return nw_disk_own(plan, result);
}

static nw_rc measure(const struct nw_disk_wish *wish, struct nw_disk_result *result)
{
    const uint64_t start = nw_now_ns();
    const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    struct nw_disk_file file;
    uint64_t bytes = 0;
    bool fio;
    nw_rc rc;

    NW_TRY(find_place(wish->path, result));
    NW_TRY(bound_bytes(wish, result, &bytes));
    NW_TRY(choose_tool(wish, result, &fio));
    NW_TRY(nw_disk_create(wish->path, wish->calls, &file));
    struct nw_disk_plan plan = {
        .calls = wish->calls,
        .file = &file,
        .threads = wish->threads > 0 ? wish->threads : 8,
        .random_threads = wish->threads > 0 ? wish->threads : within(2 * cpus, 16, 64),
        .file_bytes = (uint64_t)(FILE_SHARE * (double)bytes) / NW_DISK_BLOCK * NW_DISK_BLOCK,
        .stop_rel = wish->stop_rel > 0 ? wish->stop_rel : DEFAULT_STOP_REL,
        .seed = start ^ (uint64_t)getpid() << 32,
    };

    plan.random_write_bytes = bytes - plan.file_bytes;
    plan.budget_s = wish->limit_s - (double)(nw_now_ns() - start) * 1e-9;
    result->threads = plan.threads;
    result->random_threads = plan.random_threads;
    rc = run_tool(&plan, wish, fio, result);
    result->direct = file.direct;
    nw_disk_remove(&file, wish->calls);
    result->seconds = (double)(nw_now_ns() - start) * 1e-9;
    return rc;
}

/* --- the thread --- */

static void let_go(struct job *job)
{
    pthread_mutex_lock(&job->mutex);
    const bool last = --job->owners == 0;

    pthread_mutex_unlock(&job->mutex);
    if (!last)
        return;
    nw_disk_free(&job->result);
    pthread_mutex_destroy(&job->mutex);
    pthread_cond_destroy(&job->over);
    free((char *)job->wish.path);
    free((char *)job->wish.fio);
    free(job);
}

static void *run_job(void *argument)
{
    struct job *job = argument;
    const nw_rc rc = measure(&job->wish, &job->result);

    pthread_mutex_lock(&job->mutex);
    job->rc = rc;
    snprintf(job->error, sizeof job->error, "%s", rc != NW_OK ? nw_last_error()->text : "");
    job->done = true;
    pthread_cond_signal(&job->over);
    pthread_mutex_unlock(&job->mutex);
    let_go(job);
    return NULL;
}

static struct job *new_job(const struct nw_disk_wish *wish)
{
    struct job *job = calloc(1, sizeof *job);
    pthread_condattr_t attributes;

    if (job == NULL)
        return NULL;
    pthread_mutex_init(&job->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&job->over, &attributes);
    pthread_condattr_destroy(&attributes);
    job->owners = 1;
    job->wish = *wish;
    job->wish.path = strdup(wish->path);
    job->wish.fio = strdup(wish->fio != NULL ? wish->fio : "fio");
    if (job->wish.limit_s == 0)
        job->wish.limit_s = DEFAULT_LIMIT_S;
    if (wish->calls == NULL)
        job->wish.calls = &system_calls;
    snprintf(job->result.place.path, sizeof job->result.place.path, "%s", wish->path);
    if (job->wish.path != NULL && job->wish.fio != NULL)
        return job;
    let_go(job);
    return NULL;
}

/* False: it did not end in time. */
static bool wait_for(struct job *job)
{
    struct timespec end;
    const double limit_s = job->wish.limit_s + GRACE_S;
    int code = 0;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)limit_s;
    end.tv_nsec += (long)((limit_s - floor(limit_s)) * 1e9);
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    while (!job->done && code == 0)
        code = pthread_cond_timedwait(&job->over, &job->mutex, &end);
    return job->done;
}

static nw_rc no_answer(const struct nw_disk_wish *wish, double limit_s,
                       struct nw_disk_result *result)
{
    snprintf(result->place.path, sizeof result->place.path, "%s", wish->path);
    return nw_disk_tell(result, "disk-no-answer",
                        "see whether the file server answers (ls there, dmesg) and mount it again",
                        "no answer after %.3g s: a call to this file system does not return",
                        limit_s + GRACE_S);
}

static nw_rc take_over(struct job *job, const struct nw_disk_wish *wish,
                       struct nw_disk_result *result)
{
    nw_rc rc;

    pthread_mutex_lock(&job->mutex);
    if (!wait_for(job)) {
        rc = no_answer(wish, job->wish.limit_s, result);
    } else if (job->rc != NW_OK) {
        rc = nw_fail(job->rc, "%s", job->error);
    } else {
        *result = job->result;
        job->result.findings = (struct nw_findings){0};
        rc = NW_OK;
    }
    pthread_mutex_unlock(&job->mutex);
    return rc;
}

nw_rc nw_disk_measure(const struct nw_disk_wish *wish, struct nw_disk_result *result_out)
{
    struct nw_disk_result result = {0};
    pthread_t thread;
    struct job *job;
    nw_rc rc;

    if (wish->limit_s != 0 && !(wish->limit_s >= LEAST_LIMIT_S && wish->limit_s <= 3600))
        return nw_fail(NW_EUSAGE, "%g s to measure a disk; accepted: %g s to one hour",
                       wish->limit_s, LEAST_LIMIT_S);
    if (wish->threads < 0 || wish->threads > 1024)
        return nw_fail(NW_EUSAGE, "%d threads to measure a disk; accepted: 1 to 1024",
                       wish->threads);
    job = new_job(wish);
    if (job == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory to measure it", wish->path);
    job->owners = 2;
    const int code = pthread_create(&thread, NULL, run_job, job);

    if (code != 0) {
        job->owners = 1;
        let_go(job);
        return nw_fail(NW_ENOMEM, "cannot start a thread: %s", strerror(code));
    }
    pthread_detach(thread);
    rc = take_over(job, wish, &result);
    let_go(job);
    if (rc == NW_OK)
        *result_out = result;
    return rc;
}

void nw_disk_free(struct nw_disk_result *result)
{
    nw_findings_free(&result->findings);
    *result = (struct nw_disk_result){0};
}

/* --- facts --- */

static const struct {
    nw_fact_id fact;
    const char *title;
} rate_rows[NW_DISK_RATE_COUNT] = {
#define X(rate, fact_id, title_text) [rate] = {fact_id, title_text},
    NW_DISK_RATE_MAP(X)
#undef X
};

/* A server has what was just written in its memory; ZFS takes O_DIRECT and caches all the same
 * (before 2.3). */
static const char *around(const struct nw_disk_result *result)
{
    if (strcmp(result->place.medium, "memory") == 0)
        return "memory";
    if (!result->direct)
        return "page cache with sync";
    if (result->place.shared || strcmp(result->place.type, "zfs") == 0)
        return "direct I/O, perhaps from a cache";
    return "direct I/O";
}

const char *nw_disk_how(const struct nw_disk_result *result, char text[192])
{
    char bytes[32];
    const char *mark = ";";

    snprintf(text, 192, "%s, %s, %d x 1 MiB and %d x 4 KiB at once, %s", result->tool,
             around(result), result->threads, result->random_threads,
             nw_format_bytes(bytes, result->file_bytes));
    for (int i = 0; i < NW_DISK_RATE_COUNT; i++) {
        const double half = nw_stats_rel_half_interval(&result->rates[i]);

        const size_t used = strlen(text);

        if (result->rates[i].count == 0 || !isfinite(half))
            continue;
        snprintf(text + used, 192 - used, "%s %s +-%.2g %%", mark, rate_rows[i].title, half * 100);
        mark = ",";
    }
    return text;
}

static nw_rc place_facts(struct nw_topo *topo, const struct nw_disk_result *result)
{
    const struct nw_place *place = &result->place;
    char device[160];

    snprintf(device, sizeof device, "%s%s%s", place->device, place->model[0] != '\0' ? ", " : "",
             place->model);
    NW_TRY(nw_topo_set_text(topo, 0, NW_FACT_DATA_PATH, place->path, "--disk"));
    NW_TRY(nw_topo_set_text(topo, 0, NW_FACT_DATA_FS, place->type, "/proc/self/mountinfo"));
    NW_TRY(nw_topo_set_text(topo, 0, NW_FACT_DATA_SOURCE, place->source, "/proc/self/mountinfo"));
    NW_TRY(nw_topo_set_text(topo, 0, NW_FACT_DATA_DEVICE, device, "/sys/class/block"));
    NW_TRY(nw_topo_set_text(topo, 0, NW_FACT_DATA_MEDIUM, place->medium,
                            place->device[0] != '\0' ? "/sys/class/block" : "file system"));
    if (result->free_bytes > 0)
        return nw_topo_set_number(topo, 0, NW_FACT_DATA_FREE, (double)result->free_bytes,
                                  "statvfs");
    return NW_OK;
}

nw_rc nw_disk_facts(struct nw_topo *topo, const struct nw_disk_result *result)
{
    char text[192];
    bool measured = false;

    NW_TRY(place_facts(topo, result));
    for (int i = 0; i < NW_DISK_RATE_COUNT; i++)
        if (result->rates[i].count > 0) {
            NW_TRY(nw_topo_set_number(topo, 0, rate_rows[i].fact, result->rates[i].median,
                                      result->tool));
            measured = true;
        }
    if (measured)
        NW_TRY(
            nw_topo_set_text(topo, 0, NW_FACT_DATA_HOW, nw_disk_how(result, text), result->tool));
    for (size_t i = 0; i < result->findings.count; i++) {
        const struct nw_finding *item = &result->findings.items[i];

        NW_TRY(nw_findings_add(&topo->findings, item->severity, item->code, topo->host,
                               item->remedy, "%s", item->text));
    }
    return NW_OK;
}
