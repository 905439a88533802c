/* For the programs of ci/gpu that measure one GPU at a time: the device with its buffers, how a
 * stretch of its work is timed, how a result is judged, printed and kept.
 *
 *     static const struct rates_check checks[] = {{"clocks", clocks}, …};
 *     int main(int argc, char **argv) { return rates_main(argc, argv, checks, count); }
 *
 *     PROGRAM [--json FILE] [--only CHECK,CHECK…]    exits 0 in order, 1 not, 77 without a GPU
 */
#ifndef NW_TESTS_GPU_RATES_H
#define NW_TESTS_GPU_RATES_H

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "kernels/dev.h"
#include "topo/gpu.h"

#define WAIT_NS 30e9

struct run {
    struct nw_dev *dev;
    struct nw_stream *stream, *stream2;
    struct nw_mark *start, *end, *start2, *end2;
    FILE *json;
    int failed;
    unsigned char *a, *b, *pinned;
    uint64_t bytes, pinned_bytes;
    const struct nw_gpu *datasheet; /* NULL: the catalogue has no such GPU */
};

struct rates_check {
    const char *name;
    void (*run)(struct run *run);
};

#define DO(run, call)                                                                              \
    do {                                                                                           \
        if ((call) != NW_OK) {                                                                     \
            printf("  %s:%d: NOT IN ORDER: %s\n", __FILE__, __LINE__, nw_last_error()->text);      \
            (run)->failed++;                                                                       \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* One line; `low` and `high` are what a result may be, NAN: anything. A simulated device has no
 * rates to be right or wrong. `bytes` 0: the result has no size. */
static inline void report_sized(struct run *run, const char *what, uint64_t bytes, double value,
                                const char *unit, double low, double high)
{
    const bool judged = !run->dev->simulated && (!isnan(low) || !isnan(high));
    const bool ok = isfinite(value) && !(judged && (value < low || value > high)); /* NAN: false */
    printf("  %-40s %10.4g %-8s %s", what, value, unit, ok ? "" : "NOT IN ORDER: ");
    if (judged)
        printf("(%.4g to %.4g)", low, high);
    printf("\n");
    fflush(stdout);
    run->failed += !ok;
    if (!run->json)
        return;
    fprintf(run->json, "{\"check\": \"rate\", \"device\": %d, \"what\": \"%s\", \"bytes\": %llu, ",
            run->dev->index, what, (unsigned long long)bytes);
    if (isfinite(value))
        fprintf(run->json, "\"value\": %.9g", value);
    else
        fprintf(run->json, "\"value\": null"); /* JSON has no NaN */
    fprintf(run->json, ", \"unit\": \"%s\", \"ok\": %s, \"simulated\": %s}\n", unit,
            ok ? "true" : "false", run->dev->simulated ? "true" : "false");
}

static inline void report(struct run *run, const char *what, double value, const char *unit,
                          double low, double high)
{
    report_sized(run, what, 0, value, unit, low, high);
}

/* Device time of a call, launches excluded by the gate: `repeat` of them between two marks; the
 * best of five. */
#define TIME(run, repeat, call, ns_out)                                                            \
    do {                                                                                           \
        *(ns_out) = INFINITY;                                                                      \
        for (int round_ = 0; round_ < 5; round_++) {                                               \
            double ns_;                                                                            \
            DO(run, ops->gate_hold(run->stream, 5e9));                                             \
            DO(run, ops->mark_set(run->stream, run->start));                                       \
            for (int i = 0; i < (repeat); i++)                                                     \
                DO(run, call);                                                                     \
            DO(run, ops->mark_set(run->stream, run->end));                                         \
            ops->gate_release(run->stream);                                                        \
            DO(run, ops->wait(run->stream, WAIT_NS));                                              \
            DO(run, ops->mark_elapsed(run->start, run->end, &ns_));                                \
            *(ns_out) = ns_ / (repeat) < *(ns_out) ? ns_ / (repeat) : *(ns_out);                   \
        }                                                                                          \
    } while (0)

/* Two calls at the same time, on a stream each; the best of five. */
#define TIME_BOTH(run, first, second, ns_out)                                                      \
    do {                                                                                           \
        *(ns_out) = INFINITY;                                                                      \
        for (int round_ = 0; round_ < 5; round_++) {                                               \
            double one_, two_;                                                                     \
            DO(run, ops->gate_hold(run->stream, 5e9));                                             \
            DO(run, ops->gate_hold(run->stream2, 5e9));                                            \
            DO(run, ops->mark_set(run->stream, run->start));                                       \
            DO(run, ops->mark_set(run->stream2, run->start2));                                     \
            DO(run, first);                                                                        \
            DO(run, second);                                                                       \
            DO(run, ops->mark_set(run->stream, run->end));                                         \
            DO(run, ops->mark_set(run->stream2, run->end2));                                       \
            ops->gate_release(run->stream);                                                        \
            ops->gate_release(run->stream2);                                                       \
            DO(run, ops->wait(run->stream, WAIT_NS));                                              \
            DO(run, ops->wait(run->stream2, WAIT_NS));                                             \
            DO(run, ops->mark_elapsed(run->start, run->end, &one_));                               \
            DO(run, ops->mark_elapsed(run->start2, run->end2, &two_));                             \
            const double ns_ = one_ > two_ ? one_ : two_;                                          \
            *(ns_out) = ns_ < *(ns_out) ? ns_ : *(ns_out);                                         \
        }                                                                                          \
    } while (0)

/* Random bits make infinities and slow nothing down, but numbers of like size switch the most
 * transistors that real data do. As half: ±1 to 2; as bfloat16: ±2^-7 to 2. */
static inline void fill_random(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    uint64_t state = 88172645463325252u;
    uint16_t *words = (uint16_t *)(void *)run->pinned;
    for (uint64_t i = 0; i < run->pinned_bytes / 2; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words[i] = (uint16_t)(0x3c00 | (state >> 20 & 0x83ff));
    }
    for (uint64_t at = 0; at < run->bytes; at += run->pinned_bytes) {
        const uint64_t left = run->bytes - at;
        DO(run, ops->copy(run->stream, run->a + at, run->pinned,
                          left < run->pinned_bytes ? left : run->pinned_bytes));
    }
    DO(run, ops->wait(run->stream, WAIT_NS));
}

/* What the catalogue knows of it; NULL: nothing. Doubles are called "SIMULATED … (no hardware)". */
static inline const struct nw_gpu *datasheet_of(const struct nw_dev *dev)
{
    static const char mark[] = "SIMULATED ";
    const bool marked = strncmp(dev->name, mark, sizeof mark - 1) == 0;
    const struct nw_gpu *gpu = NULL;
    char name[sizeof dev->name];
    snprintf(name, sizeof name, "%s", dev->name + (marked ? sizeof mark - 1 : 0));
    name[strcspn(name, "(")] = '\0';
    return nw_gpu_find(name, &gpu) == NW_OK ? gpu : NULL;
}

/* The doubles of tests/fake have a clock of their own, in which their work lasts. */
static inline void take_clock(const struct nw_dev *dev)
{
    void *library = dev->simulated ? dlopen(dev->library_path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *symbol = library ? dlsym(library, "fk_now") : NULL;
    if (symbol)
        memcpy(&nw_clock_ns, &symbol, sizeof symbol);
}

static inline nw_rc rates_open(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    void *a, *b, *pinned;
    uint64_t free_bytes;
    NW_TRY(ops->free_bytes(run->dev, &free_bytes));
    /* Many times the largest L2 (126 MB on B200); two of them, and something left. */
    run->bytes = run->dev->simulated ? 1 << 20 : UINT64_C(4) << 30;
    while (run->bytes > free_bytes / 3)
        run->bytes /= 2;
    run->pinned_bytes = run->dev->simulated ? 1 << 18 : 256 << 20;
    NW_TRY(ops->stream_open(run->dev, &run->stream));
    NW_TRY(ops->stream_open(run->dev, &run->stream2));
    NW_TRY(ops->mark_open(run->dev, &run->start));
    NW_TRY(ops->mark_open(run->dev, &run->end));
    NW_TRY(ops->mark_open(run->dev, &run->start2));
    NW_TRY(ops->mark_open(run->dev, &run->end2));
    NW_TRY(ops->alloc(run->dev, NW_SPACE_DEVICE, run->bytes, &a));
    run->a = a;
    NW_TRY(ops->alloc(run->dev, NW_SPACE_DEVICE, run->bytes, &b));
    run->b = b;
    NW_TRY(ops->alloc(run->dev, NW_SPACE_PINNED, run->pinned_bytes, &pinned));
    run->pinned = pinned;
    run->datasheet = datasheet_of(run->dev);
    take_clock(run->dev);
    return NW_OK;
}

static inline void rates_close(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    ops->free(run->dev, NW_SPACE_DEVICE, run->a);
    ops->free(run->dev, NW_SPACE_DEVICE, run->b);
    ops->free(run->dev, NW_SPACE_PINNED, run->pinned);
    ops->mark_close(run->start);
    ops->mark_close(run->end);
    ops->mark_close(run->start2);
    ops->mark_close(run->end2);
    ops->stream_close(run->stream);
    ops->stream_close(run->stream2);
}

/* Whether `name` is in the comma-separated list; NULL: it is. */
static inline bool chosen(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return !list;
}

static inline int rates_of_device(int index, FILE *json, const char *only,
                                  const struct rates_check *checks, size_t count)
{
    struct run run = {.json = json};
    if (nw_dev_open("cuda", index, &run.dev) != NW_OK) {
        printf("NOT IN ORDER: %s\n", nw_last_error()->text);
        return 1;
    }
    printf("%s%s\n", run.dev->name,
           run.dev->simulated ? " (SIMULATED: the rates mean nothing)" : "");
    if (rates_open(&run) != NW_OK) {
        printf("NOT IN ORDER: %s\n", nw_last_error()->text);
        run.failed++;
    } else {
        fill_random(&run);
        for (size_t i = 0; i < count; i++)
            if (chosen(only, checks[i].name))
                checks[i].run(&run);
    }
    rates_close(&run);
    nw_dev_close(run.dev);
    return run.failed;
}

static inline int rates_main(int argc, char **argv, const struct rates_check *checks, size_t count)
{
    const char *path = NULL, *only = NULL;
    char why[1024];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
            path = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else {
            printf("%s; accepted: [--json FILE] [--only CHECK,CHECK…], CHECK one of", argv[i]);
            for (size_t k = 0; k < count; k++)
                printf(" %s", checks[k].name);
            printf("\n");
            return 2;
        }
    }
    const int devices = nw_dev_count("cuda", why, sizeof why);
    if (devices == 0) {
        printf("skipped: %s\n", why);
        return 77;
    }
    FILE *json = path ? fopen(path, "w") : NULL;
    if (path && !json) {
        perror(path);
        return 1;
    }
    int failed = 0;
    for (int i = 0; i < devices; i++)
        failed += rates_of_device(i, json, only, checks, count);
    if (json && fclose(json) != 0)
        failed++;
    return failed ? 1 : 0;
}

#endif
