/* fio's JSON (--output-format=json, https://fio.readthedocs.io): a record for each job and
 * direction. Rates of versions before 3 are "bw" in KiB/s, times "clat" in µs.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "results/import_kit.h"
#include "results/importers.h"

#define SHORT_MS 3000 /* caches of a disk, and a file system's, fill for seconds */

struct reading {
    struct nw_imp imp;
    const json_t *global; /* options of all jobs */
    struct nw_imp_place place;
    struct nw_imp_tally cached, brief, broken;
};

/* An option of the job, or of all. */
static const char *option_of(const struct reading *reading, const json_t *job, const char *name)
{
    const char *own = nw_imp_json_text(json_object_get(job, "job options"), name);

    return own != NULL ? own : nw_imp_json_text(reading->global, name);
}

static int number_of(const struct reading *reading, const json_t *job, const char *name)
{
    const char *text = option_of(reading, job, name);
    uint64_t number = 0;

    if (text != NULL && nw_parse_u64(text, 1, 1 << 20, &number) != NW_OK)
        nw_clear_error();
    return (int)number;
}

/* Of one read or write: what was asked for (the first of "4k,8k"), else the mean. */
static uint64_t block_of(const struct reading *reading, const json_t *job, const json_t *way)
{
    const char *given = option_of(reading, job, "bs");
    char text[32] = "";
    uint64_t bytes = 0;
    const double total = nw_imp_json_number(way, "io_bytes");
    const double count = nw_imp_json_number(way, "total_ios");

    if (given != NULL)
        snprintf(text, sizeof text, "%.*s", (int)strcspn(given, ",-"), given);
    if (text[0] != '\0' && nw_parse_bytes(text, &bytes) == NW_OK)
        return bytes;
    nw_clear_error();
    if (count >= 1 && total >= count && total < 9e18)
        return (uint64_t)(total / count);
    return option_of(reading, job, "rw") != NULL ? 4096 : 0; /* fio's own */
}

static void set_times(const json_t *way, struct nw_record *record)
{
    static const struct {
        const char *key;
        double unit;
    } keys[] = {{"clat_ns", 1}, {"lat_ns", 1}, {"clat", 1e3}, {"lat", 1e3}};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *times = json_object_get(way, keys[i].key);
        const json_t *shares = json_object_get(times, "percentile");
        const double mean = nw_imp_json_number(times, "mean") * keys[i].unit;
        const double median = nw_imp_json_number(shares, "50.000000") * keys[i].unit;

        if (!(mean > 0))
            continue;
        record->time_ns = nw_stats_single(median > 0 ? median : mean);
        record->time_ns.mean = mean;
        record->time_ns.min = nw_imp_json_number(times, "min") * keys[i].unit;
        record->time_ns.max = nw_imp_json_number(times, "max") * keys[i].unit;
        record->time_ns.stddev = nw_imp_json_number(times, "stddev") * keys[i].unit;
        record->time_ns.p95 = nw_imp_json_number(shares, "95.000000") * keys[i].unit;
        record->time_ns.p99 = nw_imp_json_number(shares, "99.000000") * keys[i].unit;
        return;
    }
}

static double rate_of(const json_t *way)
{
    const double bytes = nw_imp_json_number(way, "bw_bytes");

    return isfinite(bytes) ? bytes : 1024 * nw_imp_json_number(way, "bw");
}

static nw_rc add_way(struct reading *reading, const json_t *job, const char *direction, size_t line)
{
    const json_t *way = json_object_get(job, direction);
    const char *pattern = option_of(reading, job, "rw"),
               *direct = option_of(reading, job, "direct");
    const char *engine = option_of(reading, job, "ioengine");
    const double rate = rate_of(way), calls = nw_imp_json_number(way, "iops");
    const double runtime = nw_imp_json_number(way, "runtime");
    struct nw_record *record;
    char name[24];

    if (!(rate > 0) || rate > 1e15)
        return NW_OK;
    if (pattern == NULL)
        pattern = option_of(reading, job, "readwrite");
    snprintf(name, sizeof name, "%s%s",
             pattern != NULL && strncmp(pattern, "rand", 4) == 0 ? "random_" : "", direction);
    NW_TRY(nw_imp_record(&reading->imp, "disk", name, engine != NULL ? engine : "unknown", line,
                         &record));
    record->bytes = block_of(reading, job, way);
    record->rank_count = record->host_count = 1;
    record->stream_count = number_of(reading, job, "numjobs");
    record->depth = number_of(reading, job, "iodepth");
    set_times(way, record);
    record->algbw_bytes_per_s = rate;
    if (calls > 0 && calls < 1e15)
        record->messages_per_s = calls;
    if (direct == NULL || strcmp(direct, "0") == 0)
        nw_imp_count(&reading->cached, line, nw_imp_slice(name));
    if (runtime < SHORT_MS)
        nw_imp_count(&reading->brief, line, nw_imp_slice(name));
    return NW_OK;
}

static nw_rc add_job(struct reading *reading, const json_t *job)
{
    const char *name = nw_imp_json_text(job, "jobname");
    const double error = nw_imp_json_number(job, "error");
    size_t line = nw_imp_json_line(&reading->imp, "jobname", &reading->place);

    line = line > 0 ? line : 1;
    if (error > 0)
        nw_imp_count(&reading->imp.failed, line, nw_imp_slice(name != NULL ? name : "a job"));
    NW_TRY(add_way(reading, job, "read", line));
    return add_way(reading, job, "write", line);
}

static nw_rc tell(const struct reading *reading)
{
    const struct nw_imp *imp = &reading->imp;

    if (reading->cached.count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "page-cache", reading->cached.line, "--direct=1",
                           "the page cache was not bypassed (direct=1): the rate may be that of "
                           "memory, not of the disk"));
    if (reading->brief.count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "short-run", reading->brief.line,
                           "--time_based --runtime=30",
                           "a test of less than 3 s: caches of the disk may have taken it all"));
    return NW_OK;
}

static nw_rc read_document(struct reading *reading, const json_t *root)
{
    struct nw_context *context = &reading->imp.run->context;
    const char *version = nw_imp_json_text(root, "fio version");
    const json_t *job;
    size_t index;

    if (version != NULL)
        nw_imp_copy(context->tool_version, sizeof context->tool_version,
                    nw_imp_slice(strncmp(version, "fio-", 4) == 0 ? version + 4 : version));
    snprintf(context->backend, sizeof context->backend, "disk");
    reading->global = json_object_get(root, "global options");
    json_array_foreach(json_object_get(root, "jobs"), index, job) NW_TRY(add_job(reading, job));
    context->complete = true;
    context->rank_count = context->host_count = 1;
    return tell(reading);
}

nw_rc nw_fio_read(const char *data, size_t length, const char *path,
                  const struct nw_import_options *options, struct nw_results *results)
{
    struct reading reading = {.imp = nw_imp_open(data, length, path, results)};
    json_t *root;
    size_t line;
    nw_rc rc;

    (void)options;
    NW_TRY(nw_imp_json(data, length, path, "fio", &root, &line));
    rc = nw_imp_begin(&reading.imp, "fio");
    if (rc == NW_OK)
        rc = read_document(&reading, root);
    json_decref(root);
    return rc == NW_OK ? nw_imp_close(&reading.imp, "no job moved anything") : rc;
}

int nw_fio_recognise(const char *data, size_t length)
{
    return nw_imp_has(data, length, "\"fio version\"") && nw_imp_has(data, length, "\"jobs\"") ? 95
                                                                                               : 0;
}
