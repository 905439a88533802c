#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "bench/disk.h"
#include "bench/disk_parts.h"
#include "tests/unit/system_tree.h"
#include "topo/read.h"

enum { SMALL = 32 << 20 };

static char folder[32]; /* Criterion runs each test in a process of its own */

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/nw-disk-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static int count_files(void)
{
    DIR *stream = opendir(folder);
    int count = 0;

    cr_assert_not_null(stream);
    while (readdir(stream) != NULL)
        count++;
    closedir(stream);
    return count - 2;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static nw_rc measure(const struct nw_disk_calls *calls, struct nw_disk_result *result)
{
    return nw_disk_measure(&(struct nw_disk_wish){.path = folder,
                                                  .limit_s = 5, /* a busy disk syncs slowly */
                                                  .max_bytes = SMALL,
                                                  .stop_rel = 10, /* soon */
                                                  .threads = 4,
                                                  .tool = NW_DISK_OWN,
                                                  .calls = calls},
                           result);
}

static void expect_measured(const struct nw_disk_result *result)
{
    for (int i = 0; i < NW_DISK_RATE_COUNT; i++) {
        const struct nw_stats *rate = &result->rates[i];

        cr_expect_gt(rate->count, 0, "rate %d", i);
        cr_expect(rate->median > 0 && rate->low <= rate->median && rate->median <= rate->high,
                  "rate %d: %g [%g, %g]", i, rate->median, rate->low, rate->high);
    }
    cr_expect_leq(result->file_bytes, result->written_bytes);
    cr_expect_eq(result->findings.count, 0);
}

static ssize_t read_short(int fd, void *data, size_t length, off_t at)
{
    return pread(fd, data, length > NW_DISK_SECTOR ? length / 2 : length, at);
}

static ssize_t write_short(int fd, const void *data, size_t length, off_t at)
{
    return pwrite(fd, data, length > NW_DISK_SECTOR ? length / 2 : length, at);
}

static int cannot_unlink(const char *path)
{
    (void)path;
    errno = EBUSY;
    return -1;
}

Test(bench_disk, four_rates_are_measured_and_nothing_is_left)
{
    static const struct nw_disk_calls ways[] = {
        {.read = NULL},
        {.no_unnamed = true},
        {.no_direct = true},
        {.no_direct = true, .no_unnamed = true},
        {.no_unnamed = true, .unlink = cannot_unlink}, /* a guard removes it */
        {.read = read_short, .write = write_short},
    };
    struct nw_disk_result result;

    make_folder();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        cr_assert_eq(measure(&ways[i], &result), NW_OK, "way %zu: %s", i, nw_last_error()->text);
        expect_measured(&result);
        cr_expect_leq(result.written_bytes, SMALL);
        cr_expect_leq(result.file_bytes, SMALL * 3 / 4);
        cr_expect(!ways[i].no_direct || !result.direct, "way %zu", i);
        cr_expect_str_eq(result.tool, "own loop");
        cr_expect_str_eq(result.place.path, folder);
        cr_expect_eq(count_files(), 0, "way %zu leaves files", i);
        nw_disk_free(&result);
    }
    errno = 0;
    cr_expect(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "a guard is left");
    cr_expect_eq(rmdir(folder), 0);
}

/* --- faults --- */

static atomic_int reads, writes;
static atomic_bool let_on;

static ssize_t read_flipped(int fd, void *data, size_t length, off_t at)
{
    const ssize_t done = pread(fd, data, length, at);

    if (atomic_fetch_add(&reads, 1) == 5 && done > 100)
        ((uint8_t *)data)[done - 100] ^= 0x10;
    return done;
}

static ssize_t read_stale(int fd, void *data, size_t length, off_t at) /* another sector's */
{
    return pread(fd, data, length, at ^ (length == NW_DISK_SECTOR ? NW_DISK_SECTOR : 0));
}

static ssize_t write_lost(int fd, const void *data, size_t length, off_t at)
{
    return length == NW_DISK_SECTOR ? (ssize_t)length : pwrite(fd, data, length, at);
}

static ssize_t read_failing(int fd, void *data, size_t length, off_t at)
{
    if (atomic_fetch_add(&reads, 1) < 3)
        return pread(fd, data, length, at);
    errno = EIO;
    return -1;
}

static ssize_t write_full(int fd, const void *data, size_t length, off_t at)
{
    if (atomic_fetch_add(&writes, 1) < 3)
        return pwrite(fd, data, length, at);
    errno = ENOSPC;
    return -1;
}

static ssize_t read_ending(int fd, void *data, size_t length, off_t at)
{
    (void)fd, (void)data, (void)length, (void)at;
    return 0;
}

static ssize_t write_hanging(int fd, const void *data, size_t length, off_t at)
{
    while (!atomic_load(&let_on))
        pause_ms(1);
    return pwrite(fd, data, length, at);
}

Test(bench_disk, wrong_data_and_failed_calls_are_findings)
{
    static const struct {
        struct nw_disk_calls calls;
        const char *code, *words;
        nw_disk_rate_id first_missing; /* what came before is kept */
    } rows[] = {
        {{.read = read_flipped}, "disk-wrong-data", "is not what was written", NW_DISK_READ},
        {{.read = read_stale}, "disk-wrong-data", "is not what was written", NW_DISK_READ_IOPS},
        {{.write = write_lost}, "disk-wrong-data", "is not what was written", NW_DISK_WRITE_IOPS},
        {{.read = read_failing}, "disk-error", "read failed at offset", NW_DISK_READ},
        {{.read = read_ending}, "disk-error", "Input/output error", NW_DISK_READ},
        {{.write = write_full}, "disk-full", "No space left on device", NW_DISK_WRITE},
    };
    struct nw_disk_result result;

    make_folder();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        atomic_store(&reads, 0);
        atomic_store(&writes, 0);
        cr_assert_eq(measure(&rows[i].calls, &result), NW_OK, "%s", nw_last_error()->text);
        cr_assert_eq(result.findings.count, 1, "row %zu", i);
        cr_expect_str_eq(result.findings.items[0].code, rows[i].code, "row %zu", i);
        cr_expect_not_null(strstr(result.findings.items[0].text, rows[i].words), "row %zu: %s", i,
                           result.findings.items[0].text);
        for (int rate = 0; rate < NW_DISK_RATE_COUNT; rate++)
            cr_expect_eq(result.rates[rate].count > 0, rate < (int)rows[i].first_missing,
                         "row %zu: rate %d", i, rate);
        cr_expect_eq(count_files(), 0);
        nw_disk_free(&result);
    }
    rmdir(folder);
}

Test(bench_disk, a_server_that_does_not_answer_does_not_hold_us)
{
    static const struct nw_disk_calls calls = {.write = write_hanging};
    struct nw_disk_result result;
    struct timespec before, after;

    make_folder();
    clock_gettime(CLOCK_MONOTONIC, &before);
    cr_assert_eq(measure(&calls, &result), NW_OK, "%s", nw_last_error()->text);
    clock_gettime(CLOCK_MONOTONIC, &after);
    cr_expect_lt(after.tv_sec - before.tv_sec, 10);
    cr_assert_eq(result.findings.count, 1);
    cr_expect_str_eq(result.findings.items[0].code, "disk-no-answer");
    for (int rate = 0; rate < NW_DISK_RATE_COUNT; rate++)
        cr_expect_eq(result.rates[rate].count, 0);
    nw_disk_free(&result);
    atomic_store(&let_on, true); /* the thread left behind frees what it has */
    pause_ms(300);
    rmdir(folder);
}

static atomic_llong slow_reads_ns, slow_reads; /* time spent in calls, and their number */

static ssize_t read_in_5_ms(int fd, void *data, size_t length, off_t at)
{
    const uint64_t began_ns = nw_now_ns();

    pause_ms(5);
    const ssize_t done = pread(fd, data, length, at);

    atomic_fetch_add(&slow_reads_ns, (long long)(nw_now_ns() - began_ns));
    atomic_fetch_add(&slow_reads, 1);
    return done;
}

static ssize_t write_in_5_ms(int fd, const void *data, size_t length, off_t at)
{
    pause_ms(5);
    return pwrite(fd, data, length, at);
}

/* Four threads and 5 ms a call: at most 800 calls a second. Slower on a busy machine: reads as much
 * as their calls took; writes also wait for the disk outside of them. */
Test(bench_disk, rates_are_those_of_the_calls)
{
    static const struct nw_disk_calls calls = {.read = read_in_5_ms, .write = write_in_5_ms};
    static const double bytes[NW_DISK_RATE_COUNT] = {
        [NW_DISK_WRITE] = NW_DISK_BLOCK,
        [NW_DISK_READ] = NW_DISK_BLOCK,
        [NW_DISK_READ_IOPS] = 1,
        [NW_DISK_WRITE_IOPS] = 1,
    };
    struct nw_disk_result result;

    make_folder();
    cr_assert_eq(nw_disk_measure(&(struct nw_disk_wish){.path = folder,
                                                        .limit_s = 1.5,
                                                        .max_bytes = 256 << 20,
                                                        .threads = 4,
                                                        .tool = NW_DISK_OWN,
                                                        .calls = &calls},
                                 &result),
                 NW_OK, "%s", nw_last_error()->text);
    for (int i = 0; i < NW_DISK_RATE_COUNT; i++) {
        const double calls_per_s = result.rates[i].median / bytes[i];

        const bool is_read = i == NW_DISK_READ || i == NW_DISK_READ_IOPS;
        const double four_threads = 4e9 * (double)slow_reads / (double)slow_reads_ns;

        cr_expect(calls_per_s > (is_read ? 0.3 * four_threads : 1) && calls_per_s < 850,
                  "rate %d: %g calls a second; four threads of such reads: %g", i, calls_per_s,
                  four_threads);
    }
    nw_disk_free(&result);
    rmdir(folder);
}

/* --- places that cannot be measured --- */

static void expect_refused(const char *path, uint64_t max_bytes, const char *words)
{
    struct nw_disk_result result;

    cr_expect_eq(nw_disk_measure(
                     &(struct nw_disk_wish){
                         .path = path, .limit_s = 0.5, .max_bytes = max_bytes, .tool = NW_DISK_OWN},
                     &result),
                 NW_EUSAGE, "%s", path);
    cr_expect_not_null(strstr(nw_last_error()->text, words), "%s", nw_last_error()->text);
    cr_expect_eq(strncmp(nw_last_error()->text, path, strlen(path)), 0, "%s",
                 nw_last_error()->text);
}

/* A directory on a file system that is mounted read-only, if there is one. */
static const char *find_read_only(const struct nw_mounts *mounts)
{
    for (size_t i = 0; i < mounts->count; i++)
        if (nw_mount_has_option(&mounts->items[i], "ro") &&
            nw_mounts_find(mounts, mounts->items[i].point) == &mounts->items[i] &&
            access(mounts->items[i].point, X_OK) == 0)
            return mounts->items[i].point;
    return NULL;
}

Test(bench_disk, bad_places_are_refused_with_the_reason)
{
    char file[64];
    struct nw_disk_result looked;
    struct nw_mounts mounts;
    int status;

    make_folder();
    snprintf(file, sizeof file, "%s/file", folder);
    tree_write(folder, "file", "x", 1);
    expect_refused("/nowhere/at/all", 0, "No such file or directory");
    expect_refused("", 0, "No such file or directory");
    expect_refused(file, 0, "not a directory");
    expect_refused("/proc", 0, "no room to measure: 0 B free");
    expect_refused(folder, 1 << 20, "16 MiB are needed");
    unlink(file);
    cr_assert_eq(nw_mounts_read("", &mounts), NW_OK);
    if (find_read_only(&mounts) != NULL)
        expect_refused(find_read_only(&mounts), 0, "mounted read-only");
    nw_mounts_free(&mounts);
    chmod(folder, 0555);
    if (fork() == 0) {
        struct nw_disk_result result;

        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(3);
        const nw_rc rc = nw_disk_measure(&(struct nw_disk_wish){.path = folder}, &result);

        _exit(rc == NW_EUSAGE && strstr(nw_last_error()->text, "Permission denied") ? 0 : 1);
    }
    cr_assert_gt(wait(&status), 0);
    cr_expect_eq(status, 0, "status %x", (unsigned)status);
    cr_assert_eq(nw_disk_look(folder, &looked), NW_OK, "%s", nw_last_error()->text);
    cr_expect_str_eq(looked.place.path, folder);
    cr_expect_gt(strlen(looked.place.type), 0);
    cr_expect_gt(looked.free_bytes, 0);
    nw_disk_free(&looked);
    cr_expect_eq(nw_disk_look("/nowhere/at/all", &looked), NW_EUSAGE);
    chmod(folder, 0755);
    cr_expect_eq(rmdir(folder), 0);
}

Test(bench_disk, the_process_limit_of_a_files_size_is_kept)
{
    struct nw_disk_result result;

    make_folder();
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){8 << 20, RLIM_INFINITY});
    cr_expect_eq(measure(NULL, &result), NW_EUSAGE);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){20 << 20, RLIM_INFINITY});
    cr_assert_eq(measure(NULL, &result), NW_OK, "%s", nw_last_error()->text);
    cr_expect_leq(result.file_bytes, 20 << 20);
    nw_disk_free(&result);
    rmdir(folder);
}

/* --- killed in the middle --- */

static ssize_t write_slowly(int fd, const void *data, size_t length, off_t at)
{
    pause_ms(50);
    return pwrite(fd, data, length, at);
}

Test(bench_disk, killed_it_leaves_no_file)
{
    static const struct nw_disk_calls ways[] = {
        {.write = write_slowly},
        {.write = write_slowly, .no_unnamed = true},
        {.write = write_slowly, .no_unnamed = true, .unlink = cannot_unlink},
    };

    make_folder();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const pid_t pid = fork();
        int waited = 0;

        if (pid == 0) {
            struct nw_disk_result result;

            (void)nw_disk_measure(&(struct nw_disk_wish){.path = folder,
                                                         .limit_s = 20,
                                                         .threads = 2,
                                                         .tool = NW_DISK_OWN,
                                                         .calls = &ways[i]},
                                  &result);
            _exit(0);
        }
        pause_ms(400);
        if (i == 2)
            cr_expect_eq(count_files(), 1, "here the file has a name while it is measured");
        cr_assert_eq(kill(pid, SIGKILL), 0);
        cr_assert_eq(waitpid(pid, NULL, 0), pid);
        while (count_files() > 0 && waited++ < 200)
            pause_ms(10);
        cr_expect_eq(count_files(), 0, "way %zu", i);
    }
    rmdir(folder);
}

/* --- fio --- */

/* What fio prints, by the kind of run: three write jobs of two threads each, then three each of the
 * others. */
static const char fake_writes[] =
    "fio: a note\n{\"jobs\":["
    "{\"jobname\":\"write0\",\"error\":0,\"write\":{\"io_bytes\":4194304,\"runtime\":10}},"
    "{\"jobname\":\"write0\",\"error\":0,\"write\":{\"io_bytes\":4194304,\"runtime\":8}},"
    "{\"jobname\":\"write1\",\"error\":0,\"write\":{\"io_bytes\":4194304,\"runtime\":20}},"
    "{\"jobname\":\"write1\",\"error\":0,\"write\":{\"io_bytes\":4194304,\"runtime\":20}},"
    "{\"jobname\":\"write2\",\"error\":0,\"write\":{\"io_bytes\":4194304,\"runtime\":5}},"
    "{\"jobname\":\"write2\",\"error\":0,\"write\":{\"io_bytes\":4194304,\"runtime\":4}}]}\n";
#define FAKE_KIND(name, side, key, a, b, c)                                                        \
    "{\"jobname\":\"" name "0\",\"error\":0,\"" side "\":{\"" key "\":" a "}},"                    \
    "{\"jobname\":\"" name "1\",\"error\":0,\"" side "\":{\"" key "\":" b "}},"                    \
    "{\"jobname\":\"" name "2\",\"error\":0,\"" side "\":{\"" key "\":" c "}}"
static const char fake_reads[] =
    "{\"jobs\":[" FAKE_KIND("read", "read", "bw_bytes", "3e9", "1e9", "2e9") "," FAKE_KIND(
        "randread", "read", "iops", "100", "300", "200") "," FAKE_KIND("randwrite", "write", "iops",
                                                                       "70.5", "0", "50.5") "]}\n";

static void make_fake_fio(char path[64], const char *write_text, const char *read_text)
{
    char text[8192];

    snprintf(path, 64, "%s-fio", folder);
    snprintf(
        text, sizeof text,
        "#!/bin/sh\n[ \"$1\" = --version ] && { echo fio-9.9; exit; }\n"
        "printf '%%s\\n' \"$@\" >>%s.args\n"
        "case \"$*\" in *write0*randwrite*|*randread*) cat <<'X'\n%sX\n;; *) cat <<'X'\n%sX\n;; "
        "esac\n",
        path, read_text, write_text);
    tree_write("", path, text, strlen(text));
    chmod(path, 0700);
}

static nw_rc measure_fio(const char *program, nw_disk_tool tool, struct nw_disk_result *result)
{
    return nw_disk_measure(&(struct nw_disk_wish){.path = folder,
                                                  .limit_s = 3,
                                                  .max_bytes = SMALL,
                                                  .stop_rel = 10, /* soon */
                                                  .threads = 2,
                                                  .tool = tool,
                                                  .fio = program},
                           result);
}

Test(bench_disk, fio_is_asked_and_its_json_understood)
{
    char path[64], arguments[72], *asked;
    struct nw_disk_result result;
    size_t length;

    make_folder();
    make_fake_fio(path, fake_writes, fake_reads);
    cr_assert_eq(measure_fio(path, NW_DISK_ANY, &result), NW_OK, "%s", nw_last_error()->text);
    cr_expect_str_eq(result.tool, "fio-9.9");
    cr_expect(result.direct);
    /* 8 MiB in 10, 20, 5 ms */
    cr_expect_float_eq(result.rates[NW_DISK_WRITE].median, 838860800.0, 1);
    cr_expect_float_eq(result.rates[NW_DISK_READ].median, 2e9, 1);
    cr_expect_float_eq(result.rates[NW_DISK_READ].low, 1e9, 1);
    cr_expect_float_eq(result.rates[NW_DISK_READ_IOPS].median, 200, 1e-6);
    cr_expect_float_eq(result.rates[NW_DISK_WRITE_IOPS].median, 60.5, 1e-6);
    cr_expect_eq(result.rates[NW_DISK_WRITE_IOPS].count, 2, "0 is not a measurement");
    snprintf(arguments, sizeof arguments, "%s.args", path);
    cr_assert_eq(nw_file_read(arguments, 1 << 20, &asked, &length), NW_OK);
    cr_expect_not_null(strstr(asked, "\n--filename=/proc/"), "%s", asked);
    cr_expect_not_null(strstr(asked, "\n--verify=crc32c\n"));
    cr_expect_not_null(strstr(asked, "\n--direct=1\n"));
    free(asked);
    nw_disk_free(&result);
    unlink(arguments);
    unlink(path);
    cr_expect_eq(rmdir(folder), 0);
}

Test(bench_disk, fio_that_fails_is_told_or_replaced)
{
    static const char wrong[] = "{\"jobs\":[{\"jobname\":\"write0\",\"error\":84}]}\n";
    static const char failed[] = "{\"jobs\":[{\"jobname\":\"write1\",\"error\":5}]}\n";
    static const struct {
        const char *writes, *reads;
        const char *tool, *code; /* "": no finding */
        nw_rc forced;            /* when fio must be used */
    } rows[] = {
        {wrong, fake_reads, "fio-9.9", "disk-wrong-data", NW_OK},
        {failed, fake_reads, "fio-9.9", "disk-error", NW_OK},
        {"no JSON\n", fake_reads, "own loop", "", NW_ELIB},
        {"{\"jobs\":[]}\n", fake_reads, "own loop", "", NW_ELIB},
        {"{\"jobs\":[1,null,{}]}\n", fake_reads, "own loop", "", NW_ENOTSUP},
    };
    char path[64], arguments[72];
    struct nw_disk_result result;

    make_folder();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        make_fake_fio(path, rows[i].writes, rows[i].reads);
        cr_assert_eq(measure_fio(path, NW_DISK_ANY, &result), NW_OK, "%s", nw_last_error()->text);
        cr_expect_str_eq(result.tool, rows[i].tool, "row %zu: %s", i, result.tool);
        cr_expect_eq(result.findings.count, rows[i].code[0] != '\0', "row %zu", i);
        if (result.findings.count > 0)
            cr_expect_str_eq(result.findings.items[0].code, rows[i].code, "row %zu", i);
        nw_disk_free(&result);
        cr_expect_eq(measure_fio(path, NW_DISK_FIO, &result), rows[i].forced, "row %zu", i);
        if (rows[i].forced == NW_OK)
            nw_disk_free(&result);
    }
    snprintf(arguments, sizeof arguments, "%s.args", path);
    unlink(arguments);
    unlink(path);
    cr_expect_eq(measure_fio("/nowhere/fio", NW_DISK_FIO, &result), NW_ENODEV);
    cr_assert_eq(measure_fio("/nowhere/fio", NW_DISK_ANY, &result), NW_OK);
    cr_expect_str_eq(result.tool, "own loop");
    nw_disk_free(&result);
    rmdir(folder);
}

/* Also when its time cuts the writing short: then it would like to leave files where it runs. */
Test(bench_disk, the_real_fio_where_it_is_installed)
{
    static const struct {
        double limit_s;
        uint64_t max_bytes;
    } rows[] = {{2.7, SMALL}, {2.7, 400 << 20}};
    struct nw_disk_result result;
    char version[32];

    if (nw_disk_fio_version("fio", version) != NW_OK)
        return;
    make_folder();
    cr_assert_eq(chdir(folder), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct nw_disk_wish wish = {.path = ".",
                                          .limit_s = rows[i].limit_s,
                                          .max_bytes = rows[i].max_bytes,
                                          .tool = i == 0 ? NW_DISK_FIO : NW_DISK_ANY};

        const nw_rc rc = nw_disk_measure(&wish, &result);

        cr_expect_eq(count_files(), 0, "fio leaves files");
        if (rc == NW_ELIB && strstr(nw_last_error()->text, "no end after") != NULL)
            continue; /* a busy machine: fio itself was late */
        cr_assert_eq(rc, NW_OK, "%s", nw_last_error()->text);
        if (i == 0)
            cr_expect_str_eq(result.tool, version);
        cr_expect_str_eq(result.place.path, folder);
        cr_expect_gt(result.rates[NW_DISK_WRITE].count, 0);
        cr_expect_leq(result.written_bytes, rows[i].max_bytes);
        cr_expect_eq(result.findings.count, 0);
        nw_disk_free(&result);
    }
    cr_assert_eq(chdir("/"), 0);
    rmdir(folder);
}

/* --- facts --- */

Test(bench_disk, what_was_measured_becomes_facts_and_nothing_else)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    struct nw_disk_result result = {
        .tool = "own loop",
        .direct = true,
        .threads = 8,
        .random_threads = 32,
        .file_bytes = 768 << 20,
        .free_bytes = 1ull << 40,
        .place = {.path = "/data",
                  .type = "xfs",
                  .source = "/dev/nvme0n1",
                  .device = "nvme0n1",
                  .model = "SAMSUNG",
                  .medium = "NVMe SSD"},
    };
    const double values[] = {1e9, 1e9, 1.1e9, 1e9, 0.9e9, 1e9};
    char text[192];
    int index;

    cr_assert_not_null(topo);
    snprintf(topo->host, sizeof topo->host, "node7");
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &index), NW_OK);
    cr_assert_eq(nw_stats_of(values, 6, &result.rates[NW_DISK_READ]), NW_OK);
    cr_assert_eq(nw_disk_tell(&result, "disk-error", "look", "read failed"), NW_OK);
    cr_assert_eq(nw_disk_facts(topo, &result), NW_OK);
    cr_expect_str_eq(nw_topo_text(topo, 0, NW_FACT_DATA_PATH), "/data");
    cr_expect_str_eq(nw_topo_text(topo, 0, NW_FACT_DATA_FS), "xfs");
    cr_expect_str_eq(nw_topo_text(topo, 0, NW_FACT_DATA_DEVICE), "nvme0n1, SAMSUNG");
    cr_expect_str_eq(nw_topo_text(topo, 0, NW_FACT_DATA_MEDIUM), "NVMe SSD");
    cr_expect_eq(nw_topo_number(topo, 0, NW_FACT_DATA_READ), 1e9);
    cr_expect(isnan(nw_topo_number(topo, 0, NW_FACT_DATA_WRITE)), "not measured is not there");
    cr_expect_str_eq(
        nw_topo_text(topo, 0, NW_FACT_DATA_HOW),
        "own loop, direct I/O, 8 x 1 MiB and 32 x 4 KiB at once, 768 MiB; read +-10 %");
    result.place.shared = true;
    cr_expect_not_null(strstr(nw_disk_how(&result, text), "perhaps from a cache"), "%s", text);
    result.direct = false;
    cr_expect_not_null(strstr(nw_disk_how(&result, text), "page cache with sync"), "%s", text);
    cr_assert_eq(topo->findings.count, 1);
    cr_expect_str_eq(topo->findings.items[0].where, "node7");
    cr_expect_str_eq(topo->findings.items[0].text, "/data: read failed");
    nw_disk_free(&result);
    nw_topo_free(topo);
}
