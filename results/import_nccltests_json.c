/* nccl-tests' JSON (-J FILE, https://github.com/NVIDIA/nccl-tests, src/util.cu, versions 1 to 3):
 * the same run as its text (nccltests.h), with more digits, judged in the same way.
 *
 * Of each process only the first GPU's line is kept in "devices"; the others follow from nthreads
 * and ngpus. Its "env" is all of the environment: only NCCL's variables are taken.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "results/importers.h"
#include "results/nccltests.h"

static struct nw_printed printed(const json_t *object, const char *key, int scale)
{
    const double value = nw_imp_json_number(object, key) * pow(10, scale);

    return (struct nw_printed){isfinite(value) ? value : NAN, 0.5e-6 * pow(10, scale)}; /* "%lf" */
}

static void read_block(const json_t *result, const char *key, struct nw_nt_block *block)
{
    const json_t *object = json_object_get(result, key);
    const bool cpu = json_object_get(object, "cpu_time") != NULL;

    *block = (struct nw_nt_block){.check = {NAN, NAN}};
    if (!json_is_object(object))
        return;
    block->time_ns = printed(object, cpu ? "cpu_time" : "time", 3);
    block->algbw = printed(object, "alg_bw", 9);
    block->busbw = printed(object, "bus_bw", 9);
    block->check.value = nw_imp_json_number(object, "nwrong");
    block->present = block->time_ns.value > 0;
}

static void copy_key(const json_t *object, const char *key, char *field, size_t size)
{
    const char *text = nw_imp_json_text(object, key);

    if (text != NULL)
        nw_imp_copy(field, size, nw_imp_trim(nw_imp_slice(text)));
}

static bool read_row(const json_t *result, struct nw_nt_row *row)
{
    const double bytes = nw_imp_json_number(result, "size");
    const double count = nw_imp_json_number(result, "count");
    const char *root = nw_imp_json_text(result, "root"); /* "    -1" */
    uint64_t number;

    *row = (struct nw_nt_row){.root = -1, .line = 1};
    if (!(bytes < 9e18) || !(count < 9e18))
        return false;
    row->bytes = (uint64_t)bytes;
    row->count = (uint64_t)count;
    copy_key(result, "type", row->dtype, sizeof row->dtype);
    copy_key(result, "redop", row->op, sizeof row->op);
    if (root != NULL && nw_imp_u64(nw_imp_trim(nw_imp_slice(root)), &number) && number < 100000000)
        row->root = (int)number;
    read_block(result, "out_of_place", &row->place[0]);
    read_block(result, "in_place", &row->place[1]);
    return true;
}

static nw_rc read_rows(const json_t *root, const struct nw_imp *imp, struct nw_nt_run *run)
{
    const json_t *results = json_object_get(root, "results"), *result;
    struct nw_imp_place place = {0};
    size_t index;

    run->rows = calloc(json_array_size(results) + 1, sizeof *run->rows);
    run->row_capacity = json_array_size(results) + 1;
    if (run->rows == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for its rows", imp->path);
    json_array_foreach(results, index, result)
    {
        struct nw_nt_row *row = &run->rows[run->row_count];
        const size_t line = nw_imp_json_line(imp, "size", &place);

        if (!read_row(result, row))
            continue;
        row->line = line > 0 ? line : 1;
        run->row_count++;
    }
    return NW_OK;
}

/* The processes' first GPUs; each process has `each` of them. */
static nw_rc read_devices(const json_t *config, int each, struct nw_nt_run *run)
{
    const json_t *device;
    size_t index;

    json_array_foreach(json_object_get(config, "devices"), index, device)
    {
        const char *host = nw_imp_json_text(device, "hostname");
        const char *gpu = nw_imp_json_text(device, "device_info");
        const double rank = nw_imp_json_number(device, "rank");
        const double group = nw_imp_json_number(device, "group");

        if (host == NULL || host[0] == '\0' || !(rank < 1e7))
            continue;
        for (int i = 0; i < each; i++)
            NW_TRY(nw_nt_add_rank(run,
                                  &(struct nw_nt_rank){.rank = (int)rank + i,
                                                       .group = group < 1e7 ? (int)group : 0,
                                                       .host = nw_imp_slice(host),
                                                       .gpu = nw_imp_slice(gpu != NULL ? gpu : "")},
                                  1));
    }
    run->ranks_closed = true;
    return NW_OK;
}

static int small_number(const json_t *object, const char *key, int unknown)
{
    const double value = nw_imp_json_number(object, key);

    return value < 1e9 ? (int)value : unknown;
}

static nw_rc read_config(const json_t *root, struct nw_nt_run *run)
{
    const json_t *config = json_object_get(root, "config");
    const double least = nw_imp_json_number(config, "minimum_bytes");
    const double most = nw_imp_json_number(config, "maximum_bytes");
    const double factor = nw_imp_json_number(config, "step_factor");
    const double step = nw_imp_json_number(config, "step_bytes");
    const int threads = small_number(config, "nthreads", 1),
              gpus = small_number(config, "ngpus", 1);

    if (least < 9e18 && most < 9e18) {
        run->options_seen = true;
        run->min_bytes = (uint64_t)least;
        run->max_bytes = (uint64_t)most;
    }
    run->step_is_factor = factor > 1;
    run->step = factor > 1 && factor < 1e9 ? (uint64_t)factor : step < 9e18 ? (uint64_t)step : 0;
    run->warmup = small_number(config, "warmup_iters", -1);
    run->iterations = small_number(config, "iterations", -1);
    run->validation = small_number(config, "validation", -1);
    if (threads < 1 || gpus < 1 || threads > 256 || gpus > 256)
        return NW_OK;
    return read_devices(config, threads * gpus, run);
}

/* The program's name, NCCL's variables and version. */
static nw_rc read_facts(const json_t *root, struct nw_nt_facts *facts)
{
    const char *program = json_string_value(json_array_get(json_object_get(root, "args"), 0));
    const double version = nw_imp_json_number(root, "nccl_version");
    const json_t *item;
    size_t index;

    if (program != NULL)
        nw_nt_collective_name(nw_imp_slice(program), facts->collective, sizeof facts->collective);
    facts->collective_line = 1;
    if (version >= 20000 && version < 1e8) /* NCCL_VERSION: 22705 is 2.27.5 */
        snprintf(facts->nccl_version, sizeof facts->nccl_version, "%d.%d.%d", (int)version / 10000,
                 (int)version / 100 % 100, (int)version % 100);
    json_array_foreach(json_object_get(root, "env"), index, item)
    {
        const char *text = json_string_value(item);

        if (text != NULL && strncmp(text, "NCCL_", 5) == 0)
            NW_TRY(nw_nt_nccl_line(facts, nw_imp_slice(text)));
    }
    return NW_OK;
}

/* -I: a time of each iteration, in µs. */
static nw_rc set_samples(const json_t *result, const char *key, struct nw_record *record)
{
    const json_t *times = json_object_get(json_object_get(result, key), "times_us");
    const size_t count = json_array_size(times);
    double *samples;
    nw_rc rc = NW_OK;

    if (count < 2 || count > 1000000)
        return NW_OK;
    samples = malloc(count * sizeof *samples);
    if (samples == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu samples", count);
    for (size_t i = 0; i < count && samples != NULL; i++) {
        samples[i] = json_number_value(json_array_get(times, i)) * 1e3;
        if (!(samples[i] > 0) || !(samples[i] < 1e15)) { /* not measured: keep the mean */
            free(samples);
            samples = NULL;
        }
    }
    if (samples == NULL)
        return NW_OK;
    rc = nw_stats_of(samples, count, &record->time_ns);
    free(record->samples_ns);
    record->samples_ns = samples;
    record->calls_per_sample = 1;
    return rc;
}

/* Records stand in the order of rows, out of place before in place. */
static nw_rc add_samples(const json_t *root, const struct nw_nt_run *run, struct nw_run *out)
{
    const json_t *results = json_object_get(root, "results");
    size_t at = 0, row = 0;

    for (size_t i = 0; i < json_array_size(results) && row < run->row_count; i++) {
        const json_t *result = json_array_get(results, i);
        struct nw_nt_row same;

        if (!read_row(result, &same))
            continue;
        for (int place = 0; place < 2; place++) {
            if (!run->rows[row].place[place].present)
                continue;
            if (at >= out->record_count)
                return NW_OK;
            NW_TRY(set_samples(result, place ? "in_place_per_iter" : "out_of_place_per_iter",
                               &out->records[at++]));
        }
        row++;
    }
    return NW_OK;
}

static nw_rc read_document(const json_t *root, const struct nw_imp *imp,
                           const struct nw_nt_request *request, struct nw_nt_run *run)
{
    const double bounds = nw_imp_json_number(json_object_get(root, "out_of_bounds"), "count");
    struct nw_run *out;

    nw_nt_run_init(run);
    run->first_line = 1;
    NW_TRY(read_facts(root, &run->facts));
    NW_TRY(read_config(root, run));
    NW_TRY(read_rows(root, imp, run));
    run->layout.known = true;
    run->out_of_bounds = bounds < 9e18 ? (int64_t)bounds : -1;
    run->out_of_bounds_line = 1;
    run->average = printed(json_object_get(root, "average_bus_bandwidth"), "bandwidth", 9);
    run->average_line = 1;
    run->ended = json_object_get(root, "average_bus_bandwidth") != NULL;
    out = nw_results_add_run(imp->results);
    if (out == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for a run", imp->path);
    NW_TRY(nw_nt_judge_run(run, request, out));
    return add_samples(root, run, out);
}

nw_rc nw_nccltests_json_read(const char *data, size_t length, const char *path,
                             const struct nw_import_options *options, struct nw_results *results)
{
    const struct nw_imp imp = nw_imp_open(data, length, path, results);
    const struct nw_nt_request request = {
        .path = path, .collective = options != NULL ? options->collective : NULL};
    struct nw_nt_run run = {0};
    json_t *root;
    size_t line;
    nw_rc rc;

    NW_TRY(nw_imp_json(data, length, path, "nccl-tests", &root, &line));
    rc = read_document(root, &imp, &request, &run);
    nw_nt_run_free(&run);
    json_decref(root);
    return rc;
}

int nw_nccltests_json_recognise(const char *data, size_t length)
{
    return nw_imp_has(data, length, "\"out_of_place\"") || nw_imp_has(data, length, "\"in_place\"")
               ? (nw_imp_has(data, length, "\"bus_bw\"") ? 95 : 0)
               : 0;
}
