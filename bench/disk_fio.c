/* fio on our file, which it opens through our descriptor's entry in /proc: so the file needs no
 * name here either. Two runs: writing (which fio reads back and compares), then reading and the
 * random ones. Each rate is measured three times.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/command.h"
#include "bench/disk_parts.h"

enum {
    REPEATS = 3,
    MAX_ARGUMENTS = 256,
    MAX_TEXT = 96,
    MAX_OUTPUT = 4 << 20,
    LEAST_BYTES = 64 << 20
};

/* Parts of the budget: each repeat of write, of read, of the random ones. Reading back what was
 * written takes about as long as writing it: 3 (2 x 0.07 + 0.07 + 2 x 0.06) = 0.99. */
#define WRITE_SHARE  0.07
#define READ_SHARE   0.07
#define RANDOM_SHARE 0.06
#define START_S      2.2 /* of two starts of fio and the ends of its twelve groups */
#define WRITE_LIMIT  0.6 /* of the time, then the first run is killed */
#define LATE_S       1.5 /* that the second may be late */

struct arguments {
    char text[MAX_ARGUMENTS][MAX_TEXT];
    const char *list[MAX_ARGUMENTS + 1];
    size_t count;
};

static void add(struct arguments *arguments, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(struct arguments *arguments, const char *format, ...)
{
    va_list values;

    if (arguments->count == MAX_ARGUMENTS)
        return; /* the two runs have some 60 */
    va_start(values, format);
    vsnprintf(arguments->text[arguments->count], MAX_TEXT, format, values);
    va_end(values);
    arguments->list[arguments->count] = arguments->text[arguments->count];
    arguments->count++;
    arguments->list[arguments->count] = NULL;
}

static void add_common(struct arguments *arguments, const struct nw_disk_plan *plan,
                       const char *program)
{
    add(arguments, "%s", program);
    add(arguments, "--output-format=json");
    add(arguments, "--eta=never");
    add(arguments, "--name=global");
    add(arguments, "--filename=/proc/%ld/fd/%d", (long)getpid(), plan->file->fd);
    add(arguments, "--allow_file_create=0");
    add(arguments, "--ioengine=psync");
    add(arguments, "--thread=1");
    add(arguments, "--direct=1");
    add(arguments, "--randrepeat=0");
    add(arguments, "--refill_buffers=1");
    add(arguments, "--numjobs=%d", plan->threads);
}

static void add_job(struct arguments *arguments, const char *name, int repeat, const char *how)
{
    add(arguments, "--name=%s%d", name, repeat);
    add(arguments, "--stonewall");
    add(arguments, "--new_group");
    add(arguments, "--rw=%s", how);
}

/* fio prints notes before its JSON. */
static json_t *find_json(const char *output)
{
    const char *at = output[0] == '{' ? output : strstr(output, "\n{");

    return at != NULL ? json_loads(at, 0, NULL) : NULL;
}

/* NW_ELIB: fio itself could not work, or did not keep to its time. */
static nw_rc run(const struct arguments *arguments, double limit_s, json_t **jobs_out)
{
    const struct nw_command command = {
        .arguments = arguments->list, .limit_s = limit_s, .output_max = MAX_OUTPUT};
    struct nw_command_result result;
    const nw_rc rc = nw_command_run(&command, &result);
    json_t *root, *jobs;

    if (rc == NW_ETIMEOUT)
        return nw_fail(NW_ELIB, "%s: no end after %.3g s", arguments->list[0], limit_s);
    NW_TRY(rc);
    root = find_json(result.output);
    jobs = json_incref(json_object_get(root, "jobs"));
    json_decref(root);
    if (!json_is_array(jobs) || json_array_size(jobs) == 0) {
        json_decref(jobs);
        result.errors[strcspn(result.errors, "\n")] = '\0';
        nw_fail(NW_ELIB, "%s gave no result (exit code %d): %.200s", arguments->list[0],
                result.exit_code, result.errors);
        nw_command_free(&result);
        return NW_ELIB;
    }
    nw_command_free(&result);
    *jobs_out = jobs;
    return NW_OK;
}

static double member(const json_t *job, const char *side, const char *key)
{
    return json_number_value(json_object_get(json_object_get(job, side), key));
}

static const char *name_of(const json_t *job)
{
    const char *name = json_string_value(json_object_get(job, "jobname"));

    return name != NULL ? name : "";
}

/* An error of any job becomes a finding; *fine_out: there was none. EILSEQ is fio's word for data
 * that differ from what it wrote. */
static nw_rc check_errors(const json_t *jobs, struct nw_disk_result *result, bool *fine_out)
{
    size_t index;
    const json_t *job;

    *fine_out = false;
    json_array_foreach(jobs, index, job)
    {
        const int error = (int)json_integer_value(json_object_get(job, "error"));

        if (error == 0)
            continue;
        if (error == EILSEQ)
            return nw_disk_tell(result, "disk-wrong-data",
                                "do not store data there; check memory, disk and cables",
                                "what was read of a file just written is not what was written");
        return nw_disk_tell(result, error == ENOSPC || error == EDQUOT ? "disk-full" : "disk-error",
                            "look for the disk's or server's errors, and its free space",
                            "%s of fio failed: %s", name_of(job), strerror(error));
    }
    *fine_out = true;
    return NW_OK;
}

/* --- writing --- */

struct region {
    uint64_t stride, bytes; /* each thread's part begins at stride * thread */
    bool whole;             /* the parts join: one range of threads * bytes */
};

/* Rates of the repeats, from their threads: all bytes over the slowest thread's time. */
static nw_rc take_writes(const struct nw_disk_plan *plan, const json_t *jobs, uint64_t part,
                         struct nw_disk_result *result, struct region *region)
{
    double rates[REPEATS], least = (double)part;
    bool whole = true;
    size_t index, count = 0;
    const json_t *job;

    for (int repeat = 0; repeat < REPEATS; repeat++) {
        char name[16];
        double bytes = 0, took_ms = 0;

        snprintf(name, sizeof name, "write%d", repeat);
        json_array_foreach(jobs, index, job)
        {
            if (strcmp(name_of(job), name) != 0)
                continue;
            bytes += member(job, "write", "io_bytes");
            took_ms = fmax(took_ms, member(job, "write", "runtime"));
            if (repeat == 0)
                least = fmin(least, member(job, "write", "io_bytes"));
        }
        whole &= bytes == (double)part * plan->threads;
        result->written_bytes += (uint64_t)bytes;
        if (bytes > 0 && took_ms > 0)
            rates[count++] = bytes / took_ms * 1e3;
    }
    region->whole = whole;
    region->stride = whole ? part * REPEATS : part;
    region->bytes = whole ? part * REPEATS : (uint64_t)least / NW_DISK_BLOCK * NW_DISK_BLOCK;
    result->file_bytes = region->bytes * (uint64_t)plan->threads;
    return nw_stats_of(rates, count, &result->rates[NW_DISK_WRITE]);
}

static nw_rc write_file(const struct nw_disk_plan *plan, const char *program, double budget_s,
                        struct nw_disk_result *result, struct region *region, bool *fine)
{
    const uint64_t part =
        plan->file_bytes / REPEATS / (uint64_t)plan->threads / NW_DISK_BLOCK * NW_DISK_BLOCK;
    struct arguments *arguments = calloc(1, sizeof *arguments);
    json_t *jobs;
    nw_rc rc;

    if (arguments == NULL)
        return nw_fail(NW_ENOMEM, "no memory to run fio");
    add_common(arguments, plan, program);
    add(arguments, "--bs=1m");
    add(arguments, "--verify=crc32c");
    add(arguments, "--verify_fatal=1");
    add(arguments, "--verify_state_save=0"); /* else a run cut by its time leaves files here */
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        add_job(arguments, "write", repeat, "write");
        add(arguments, "--offset=%llu",
            (unsigned long long)(part * (uint64_t)plan->threads * (uint64_t)repeat));
        add(arguments, "--offset_increment=%llu", (unsigned long long)part);
        add(arguments, "--size=%llu", (unsigned long long)part);
        add(arguments, "--runtime=%.0fms", fmax(budget_s * WRITE_SHARE * 1e3, 20));
    }
    rc = run(arguments, plan->budget_s * WRITE_LIMIT, &jobs);
    free(arguments);
    NW_TRY(rc);
    rc = check_errors(jobs, result, fine);
    if (rc == NW_OK && *fine)
        rc = take_writes(plan, jobs, part, result, region);
    json_decref(jobs);
    return rc;
}

/* --- reading, and at random places --- */

static const struct {
    nw_disk_rate_id rate;
    const char *name, *how, *side, *key;
} kinds[] = {
    {NW_DISK_READ, "read", "read", "read", "bw_bytes"},
    {NW_DISK_READ_IOPS, "randread", "randread", "read", "iops"},
    {NW_DISK_WRITE_IOPS, "randwrite", "randwrite", "write", "iops"},
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

static void add_kind(struct arguments *arguments, const struct nw_disk_plan *plan, size_t kind,
                     int repeat, double budget_s, const struct region *region)
{
    const nw_disk_rate_id rate = kinds[kind].rate;
    const bool random = rate != NW_DISK_READ;
    /* Where the parts join, random places are of the whole file and as many threads as wanted. */
    const bool all = random && region->whole;
    const int threads = all ? plan->random_threads : plan->threads;
    const uint64_t bytes = all ? region->bytes * (uint64_t)plan->threads : region->bytes;

    add_job(arguments, kinds[kind].name, repeat, kinds[kind].how);
    add(arguments, "--bs=%s", random ? "4k" : "1m");
    add(arguments, "--numjobs=%d", threads);
    add(arguments, "--size=%llu", (unsigned long long)bytes);
    add(arguments, "--offset_increment=%llu", (unsigned long long)(all ? 0 : region->stride));
    add(arguments, "--runtime=%.0fms",
        fmax(budget_s * (random ? RANDOM_SHARE : READ_SHARE) * 1e3, 20));
    if (rate == NW_DISK_WRITE_IOPS) { /* bounded by bytes as well, so not by time alone */
        const uint64_t each = plan->random_write_bytes / REPEATS / (uint64_t)threads;

        add(arguments, "--io_size=%llu",
            (unsigned long long)(each / NW_DISK_SECTOR * NW_DISK_SECTOR));
    } else {
        add(arguments, "--time_based=1");
    }
}

static nw_rc take_kinds(const json_t *jobs, struct nw_disk_result *result)
{
    for (size_t kind = 0; kind < KIND_COUNT; kind++) {
        double values[REPEATS];
        size_t index, count = 0;
        const json_t *job;

        json_array_foreach(jobs, index, job)
        {
            const double value = member(job, kinds[kind].side, kinds[kind].key);

            if (strncmp(name_of(job), kinds[kind].name, strlen(kinds[kind].name)) != 0 ||
                !(value > 0) || !isfinite(value) || count == REPEATS)
                continue;
            values[count++] = value;
            result->written_bytes += (uint64_t)member(job, "write", "io_bytes");
        }
        NW_TRY(nw_stats_of(values, count, &result->rates[kinds[kind].rate]));
    }
    return NW_OK;
}

static nw_rc read_file(const struct nw_disk_plan *plan, const char *program, double budget_s,
                       double limit_s, const struct region *region, struct nw_disk_result *result)
{
    struct arguments *arguments = calloc(1, sizeof *arguments);
    bool fine;
    json_t *jobs;
    nw_rc rc;

    if (arguments == NULL)
        return nw_fail(NW_ENOMEM, "no memory to run fio");
    add_common(arguments, plan, program);
    add(arguments, "--group_reporting=1");
    add(arguments, "--norandommap=1");
    for (size_t kind = 0; kind < KIND_COUNT; kind++)
        for (int repeat = 0; repeat < REPEATS; repeat++)
            add_kind(arguments, plan, kind, repeat, budget_s, region);
    rc = run(arguments, limit_s, &jobs);
    free(arguments);
    NW_TRY(rc);
    rc = check_errors(jobs, result, &fine);
    if (rc == NW_OK && fine)
        rc = take_kinds(jobs, result);
    json_decref(jobs);
    return rc;
}

nw_rc nw_disk_fio(const struct nw_disk_plan *plan, const char *program,
                  struct nw_disk_result *result)
{
    const double budget_s = fmax(plan->budget_s - START_S, 0.3);
    const uint64_t start = nw_now_ns();
    double left_s;
    struct region region = {0};
    bool fine;

    if (ftruncate(plan->file->fd, (off_t)plan->file_bytes) != 0) /* fio wants its size */
        return nw_fail(NW_EIO, "%s: cannot make a file of %llu bytes: %s", result->place.path,
                       (unsigned long long)plan->file_bytes, strerror(errno));
    NW_TRY(write_file(plan, program, budget_s, result, &region, &fine));
    if (!fine)
        return NW_OK;
    if (result->file_bytes < LEAST_BYTES && !region.whole)
        return nw_fail(
            NW_ENOTSUP,
            "%s: fio wrote too little in its time for reading it to tell something; give "
            "more time",
            result->place.path);
    left_s = plan->budget_s - (double)(nw_now_ns() - start) * 1e-9;
    NW_TRY(read_file(plan, program, budget_s, fmax(left_s, 0) + LATE_S, &region, result));
    for (int i = 0; i < NW_DISK_RATE_COUNT; i++)
        result->steady[i] = nw_stats_rel_half_interval(&result->rates[i]) <= plan->stop_rel;
    return NW_OK;
}

nw_rc nw_disk_fio_version(const char *program, char version[32])
{
    const char *arguments[] = {program, "--version", NULL};
    struct nw_command_result result;

    NW_TRY(nw_command_run(
        &(struct nw_command){.arguments = arguments, .limit_s = 5, .output_max = 256}, &result));
    result.output[strcspn(result.output, "\n")] = '\0';
    const bool good = result.exit_code == 0 && strncmp(result.output, "fio-", 4) == 0;

    if (good)
        snprintf(version, 32, "%.31s", result.output);
    nw_command_free(&result);
    return good ? NW_OK : nw_fail(NW_ENODEV, "%s --version does not say fio-…", program);
}
