/* gpu-burn (https://github.com/wilicc/gpu-burn, gpu_burn-drv.cpp): progress lines that overwrite
 * each other ("\r"), a summary every ten percent, OK or FAULTY of each GPU at the end.
 *
 *     60.0%  proc'd: 2694 (7987 Gflop/s) - 2694 (7990 Gflop/s)   errors: 0 - 0   temps: 43 C - 44 C
 *
 * Products are square; their side follows from "Results are N bytes each". A rate is of the time
 * since the report before; the first one has the start-up in it.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "base/units.h"
#include "results/import_kit.h"
#include "results/importers.h"

enum { GPUS = 64, SAMPLES = 4096 };
#define DRIFT 0.95 /* last over first after the start-up */
#define SLOW  0.90 /* of the best GPU */

struct gpu {
    double *flops; /* one a report, the first included */
    size_t count;
    size_t last_line;
    double wrong, hottest;
    bool faulty, died;
    char model[128];
};

struct reading {
    struct nw_imp imp;
    struct gpu gpus[GPUS];
    int count; /* GPUs in the progress */
    bool doubles, tensor, tested;
    uint64_t side;
};

static double *room(struct gpu *gpu)
{
    if (gpu->flops == NULL)
        gpu->flops = malloc(SAMPLES * sizeof *gpu->flops);
    return gpu->flops;
}

/* A number at `*at`, which moves behind it; NAN: none. */
static double take_number(const char **at, const char *end)
{
    const char *start = *at;
    struct nw_printed number;

    while (*at < end && (isdigit((unsigned char)**at) || **at == '.'))
        (*at)++;
    return *at < end && nw_imp_number((struct nw_slice){start, (size_t)(*at - start)}, 0, &number)
               ? number.value
               : NAN;
}

/* "2694 (7987 Gflop/s) - 2694 (7990 Gflop/s)   errors: …" */
static nw_rc take_rates(struct reading *reading, struct nw_slice text)
{
    const char *at = text.at, *end = text.at + text.length;
    int index = 0;

    while (index < GPUS && (at = memchr(at, '(', (size_t)(end - at))) != NULL) {
        struct gpu *gpu = &reading->gpus[index];
        double rate;

        at++;
        rate = take_number(&at, end);
        if (!(rate > 0) || end - at < 8 || memcmp(at, " Gflop/s", 8) != 0)
            continue;
        if (room(gpu) == NULL)
            return nw_fail(NW_ENOMEM, "%s: no memory for rates", reading->imp.path);
        if (gpu->count < SAMPLES)
            gpu->flops[gpu->count++] = rate * 1e9;
        gpu->last_line = reading->imp.line;
        index++;
    }
    reading->count = index > reading->count ? index : reading->count;
    return NW_OK;
}

/* "0 - 30472096  (WARNING!)", "43 C - 44 C" */
static void take_list(struct reading *reading, struct nw_slice text, bool errors)
{
    const char *at = text.at, *end = text.at + text.length;

    for (int index = 0; index < reading->count && at < end; index++) {
        struct gpu *gpu = &reading->gpus[index];
        const char *next = memmem(at, (size_t)(end - at), " - ", 3);
        const char *stop = next != NULL ? next : end;

        while (at < stop && *at == ' ')
            at++;
        const double number = take_number(&at, end);

        if (errors && number > gpu->wrong)
            gpu->wrong = number;
        else if (!errors && number > 0)
            gpu->hottest = fmax(gpu->hottest, number);
        gpu->died |= errors && memmem(at, (size_t)(stop - at), "DIED", 4) != NULL;
        if (next == NULL)
            return;
        at = next + 3;
    }
}

static nw_rc take_progress(struct reading *reading, struct nw_slice text)
{
    const struct nw_slice rates = nw_imp_behind(text, "proc'd: ");
    const char *errors = nw_imp_find(rates, "errors: "), *temps = nw_imp_find(rates, "temps: ");

    if (errors == NULL || temps == NULL || temps < errors)
        return NW_OK;
    NW_TRY(take_rates(reading, (struct nw_slice){rates.at, (size_t)(errors - rates.at)}));
    take_list(reading, (struct nw_slice){errors + 8, (size_t)(temps - errors - 8)}, true);
    take_list(reading, (struct nw_slice){temps + 7, rates.length - (size_t)(temps + 7 - rates.at)},
              false);
    return NW_OK;
}

/* "GPU 0: NVIDIA RTX A6000 (UUID: GPU-…)", "GPU 0: FAULTY" */
static nw_rc take_gpu(struct reading *reading, struct nw_slice text)
{
    const char *colon = memchr(text.at, ':', text.length);
    const char *uuid = nw_imp_find(text, " (UUID");
    uint64_t index;

    if (colon == NULL ||
        !nw_imp_u64((struct nw_slice){text.at, (size_t)(colon - text.at)}, &index) || index >= GPUS)
        return NW_OK;
    const struct nw_slice rest =
        nw_imp_trim((struct nw_slice){colon + 1, text.length - (size_t)(colon + 1 - text.at)});

    if (uuid != NULL && uuid > colon)
        return nw_imp_gpu(&reading->imp, (int)index,
                          (struct nw_slice){colon + 1, (size_t)(uuid - colon - 1)},
                          nw_imp_slice(""));
    if (reading->tested && nw_imp_is(rest, "FAULTY"))
        reading->gpus[index].faulty = true;
    return NW_OK;
}

static void take_results_size(struct reading *reading, struct nw_slice text)
{
    struct nw_imp_words words;
    uint64_t bytes, side;

    nw_imp_split(nw_imp_behind(text, "Results are "), &words);
    if (words.count == 0 || !nw_imp_u64(words.word[0], &bytes) || bytes == 0)
        return;
    side = (uint64_t)llround(sqrt((double)bytes / (reading->doubles ? 8 : 4)));
    if (side * side * (reading->doubles ? 8 : 4) == bytes)
        reading->side = side;
}

static nw_rc take_piece(struct reading *reading, struct nw_slice piece)
{
    const struct nw_slice text = nw_imp_clean(piece);

    if (nw_imp_find(text, "proc'd: ") != NULL)
        return take_progress(reading, text);
    if (nw_imp_starts(text, "GPU "))
        return take_gpu(reading, nw_imp_behind(text, "GPU "));
    if (nw_imp_starts(text, "Initialized device")) {
        reading->doubles = nw_imp_find(text, "using DOUBLES") != NULL;
        reading->tensor = nw_imp_find(text, "Tensor Cores") != NULL;
    } else if (nw_imp_starts(text, "Results are ")) {
        take_results_size(reading, text);
    } else if (nw_imp_starts(text, "Tested ")) {
        reading->tested = true;
    } else if (nw_imp_find(text, "No clients are alive") != NULL ||
               nw_imp_starts(text, "Couldn't init") || nw_imp_starts(text, "Failure during")) {
        nw_imp_count(&reading->imp.failed, reading->imp.line, text);
    }
    return NW_OK;
}

/* Pieces between carriage returns; the last of a line without newline may be cut. */
static nw_rc take_line(struct reading *reading)
{
    struct nw_slice text = reading->imp.text;

    while (text.length > 0) {
        const char *end = memchr(text.at, '\r', text.length);
        const size_t length = end != NULL ? (size_t)(end - text.at) : text.length;

        if (end != NULL || reading->imp.whole)
            NW_TRY(take_piece(reading, (struct nw_slice){text.at, length}));
        else
            reading->imp.torn = true;
        if (end == NULL)
            return NW_OK;
        text = (struct nw_slice){end + 1, text.length - length - 1};
    }
    return NW_OK;
}

/* --- records and findings --- */

static nw_rc add_gpu(struct reading *reading, int index, double *median_out)
{
    struct gpu *gpu = &reading->gpus[index];
    const size_t skip = gpu->count > 2; /* the start-up */
    const double side = (double)reading->side;
    struct nw_record *record;
    struct nw_stats rates;

    *median_out = NAN;
    if (gpu->count == 0)
        return NW_OK;
    NW_TRY(nw_stats_of(gpu->flops + skip, gpu->count - skip, &rates));
    NW_TRY(nw_imp_record(&reading->imp, "gemm", "gemm", "cublas", gpu->last_line, &record));
    snprintf(record->dtype, sizeof record->dtype, reading->doubles ? "double" : "float");
    if (reading->tensor)
        snprintf(record->features, sizeof record->features, "tensor-cores");
    record->rank_count = reading->count;
    record->host_count = 1;
    record->peer_a = index;
    record->m = record->n = record->k = reading->side;
    record->count = reading->side * reading->side;
    record->bytes = record->count * (reading->doubles ? 8 : 4);
    record->flop_per_s = rates.median;
    if (reading->side > 0)
        record->time_ns = nw_stats_single(2 * side * side * side / rates.median * 1e9);
    record->during.temperature_c = gpu->hottest > 0 ? gpu->hottest : NAN;
    record->wrong_elements = gpu->wrong < 9e18 ? (int64_t)gpu->wrong : INT64_MAX;
    if (record->wrong_elements == 0 && gpu->faulty)
        record->wrong_elements = 1;
    *median_out = rates.median;
    return NW_OK;
}

static nw_rc tell_gpu(const struct reading *reading, int index, double median, double best)
{
    const struct gpu *gpu = &reading->gpus[index];
    const struct nw_imp *imp = &reading->imp;
    char mine[32], others[32];

    if (gpu->wrong > 0 || gpu->faulty)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_FAIL, "wrong-data", gpu->last_line,
                           "do not use this GPU; have it exchanged",
                           "GPU %d computed wrong values (%.0f at once); gpu-burn's exit status is "
                           "0 all the same",
                           index, gpu->wrong));
    if (gpu->died)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_FAIL, "run-failed", gpu->last_line,
                           "dmesg names the Xid", "GPU %d died during the test", index));
    if (gpu->count > 3 && gpu->flops[gpu->count - 1] < DRIFT * gpu->flops[1])
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "gemm-drift", gpu->last_line,
                           "look at its temperature, power limit and fans under load",
                           "GPU %d became slower under load: from %s to %s TFLOP/s", index,
                           nw_format_sig(others, gpu->flops[1] / 1e12, 3),
                           nw_format_sig(mine, gpu->flops[gpu->count - 1] / 1e12, 3)));
    if (median < SLOW * best)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "gpu-slow", gpu->last_line,
                           "compare its clocks, power limit and temperature with the others'",
                           "GPU %d has %s TFLOP/s where the best has %s", index,
                           nw_format_sig(mine, median / 1e12, 3),
                           nw_format_sig(others, best / 1e12, 3)));
    return NW_OK;
}

static nw_rc finish(struct reading *reading)
{
    double medians[GPUS], best = 0;
    struct nw_imp *imp = &reading->imp;

    for (int i = 0; i < reading->count; i++) {
        NW_TRY(add_gpu(reading, i, &medians[i]));
        best = fmax(best, medians[i]);
    }
    imp->run->context.complete = reading->tested;
    imp->run->context.rank_count =
        reading->count > 0 ? reading->count : imp->run->context.rank_count;
    imp->run->context.host_count = 1;
    for (int i = 0; i < reading->count; i++)
        NW_TRY(tell_gpu(reading, i, medians[i], best));
    if (!reading->tested && reading->count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "run-incomplete", imp->line,
                           "let it run to its end",
                           "the log does not reach the end of the test: rates are of its part, and "
                           "no GPU has its verdict"));
    return nw_imp_close(imp, "no progress with Gflop/s is in the log");
}

nw_rc nw_gpu_burn_read(const char *data, size_t length, const char *path,
                       const struct nw_import_options *options, struct nw_results *results)
{
    struct reading *reading = calloc(1, sizeof *reading);
    nw_rc rc;

    (void)options;
    if (reading == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for its GPUs", path);
    reading->imp = nw_imp_open(data, length, path, results);
    rc = nw_imp_begin(&reading->imp, "gpu-burn");
    while (rc == NW_OK && nw_imp_next(&reading->imp))
        rc = take_line(reading);
    if (rc == NW_OK)
        rc = finish(reading);
    for (int i = 0; i < GPUS; i++)
        free(reading->gpus[i].flops);
    free(reading);
    return rc;
}

int nw_gpu_burn_recognise(const char *data, size_t length)
{
    return nw_imp_has(data, length, "proc'd: ") && nw_imp_has(data, length, "Gflop/s)") ? 95 : 0;
}
