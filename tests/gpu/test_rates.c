/* What a GPU does per second, held against what it can do by its own clocks, so that a wrong result
 * shows as one: more than the memory can give is a bug of the measurement, not a success. For a
 * person at a new machine and for ci/gpu; the program's own cases measure properly.
 *
 *     test_rates [--json FILE]        exits 0 in order, 1 not, 77 without a GPU
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/dev.h"

#define WAIT_NS 30e9

struct run {
    struct nw_dev *dev;
    struct nw_stream *stream;
    struct nw_mark *start, *end;
    FILE *json;
    int failed;
    unsigned char *a, *b, *pinned;
    uint64_t bytes, pinned_bytes;
};

#define DO(run, call)                                                                              \
    do {                                                                                           \
        if ((call) != NW_OK) {                                                                     \
            printf("  %s:%d: %s\n", __FILE__, __LINE__, nw_last_error()->text);                    \
            (run)->failed++;                                                                       \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* One line; `low` and `high` are what a result may be, NAN: anything. A simulated device has no
 * rates to be right or wrong. */
static void report(struct run *run, const char *what, double value, const char *unit, double low,
                   double high)
{
    const bool judged = !run->dev->simulated && (!isnan(low) || !isnan(high));
    const bool ok = isfinite(value) && !(judged && (value < low || value > high));
    printf("  %-34s %10.4g %-8s %s", what, value, unit, ok ? "" : "NOT IN ORDER: ");
    if (judged)
        printf("(%.4g to %.4g)", low, high);
    printf("\n");
    fflush(stdout);
    run->failed += !ok;
    if (run->json)
        fprintf(
            run->json,
            "{\"check\": \"rate\", \"device\": %d, \"what\": \"%s\", \"value\": %.9g, \"unit\": "
            "\"%s\", \"ok\": %s, \"simulated\": %s}\n",
            run->dev->index, what, value, unit, ok ? "true" : "false",
            run->dev->simulated ? "true" : "false");
}

/* Device time of `repeat` calls, launches excluded by the gate; the best of five. */
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

/* Events against the host's clock, over work of a good fraction of a second. */
static void clocks(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    double ns;
    DO(run, ops->wait(run->stream, WAIT_NS));
    const uint64_t before = nw_now_ns();
    DO(run, ops->mark_set(run->stream, run->start));
    for (int i = 0; i < 64; i++)
        DO(run, ops->copy(run->stream, run->b, run->a, run->bytes));
    DO(run, ops->mark_set(run->stream, run->end));
    DO(run, ops->wait(run->stream, WAIT_NS));
    const double host_ns = (double)(nw_now_ns() - before);
    DO(run, ops->mark_elapsed(run->start, run->end, &ns));
    report(run, "events to host clock", ns / host_ns, "", 0.97, 1.001);
}

static void launches(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    const int queue = run->dev->simulated ? 50 : 2000, waits = queue / 10;
    const uint64_t before = nw_now_ns();
    for (int i = 0; i < queue; i++)
        DO(run, ops->kernel_write(run->stream, run->a, 16, 0));
    const uint64_t queued = nw_now_ns();
    DO(run, ops->wait(run->stream, WAIT_NS));
    report(run, "launch, queued", (double)(queued - before) / queue * 1e-3, "us", 0.5, 20);
    const uint64_t again = nw_now_ns();
    for (int i = 0; i < waits; i++) {
        DO(run, ops->kernel_write(run->stream, run->a, 16, 0));
        DO(run, ops->wait(run->stream, WAIT_NS));
    }
    report(run, "launch and wait", (double)(nw_now_ns() - again) / waits * 1e-3, "us", 1, 100);
}

static void memory(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    /* 0: unknown */
    const double most = run->dev->memory_bytes_per_s > 0 ? run->dev->memory_bytes_per_s : NAN;
    const double bytes = (double)run->bytes;
    uint32_t *const fold = (uint32_t *)(void *)run->b;
    double ns;
    printf("  memory by its clock and width: %.4g GB/s\n", most * 1e-9);
    TIME(run, 4, ops->copy(run->stream, run->b, run->a, run->bytes), &ns);
    report(run, "copy engine, read + write", 2 * bytes / ns, "GB/s", 0.80e-9 * most, 1e-9 * most);
    TIME(run, 4, ops->kernel_copy(run->stream, run->b, run->a, run->bytes), &ns);
    report(run, "copy kernel, read + write", 2 * bytes / ns, "GB/s", 0.88e-9 * most, 1e-9 * most);
    TIME(run, 4, ops->kernel_read(run->stream, run->a, run->bytes, fold), &ns);
    report(run, "read kernel", bytes / ns, "GB/s", 0.80e-9 * most, 1e-9 * most);
    TIME(run, 4, ops->kernel_write(run->stream, run->b, run->bytes, 0x12345678), &ns);
    report(run, "write kernel", bytes / ns, "GB/s", 0.80e-9 * most, 1e-9 * most);
    /* three streams through the same memory: a third each */
    const uint64_t third = run->bytes / 3 & ~(uint64_t)255;
    const struct nw_reduce_inputs inputs = {.count = 2, .from = {run->a, run->a + third}};
    TIME(run, 4, ops->reduce(run->stream, run->b, &inputs, third / 4, NW_FLOAT), &ns);
    report(run, "reduce of 2 float inputs", 3 * (double)third / ns, "GB/s", 0.80e-9 * most,
           1e-9 * most);
}

static void bus(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    const double bytes = (double)run->pinned_bytes;
    double ns;
    /* 64 GB/s: PCIe 5.0 x16 one way, the fastest slot there is today, NVLink-C2C excepted. */
    TIME(run, 1, ops->copy(run->stream, run->a, run->pinned, run->pinned_bytes), &ns);
    report(run, "host to device, pinned", bytes / ns, "GB/s", 5, 500);
    TIME(run, 1, ops->copy(run->stream, run->pinned, run->a, run->pinned_bytes), &ns);
    report(run, "device to host, pinned", bytes / ns, "GB/s", 5, 500);
}

static void product(struct run *run, nw_dtype dtype, const char *what)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    const int n = run->dev->simulated ? 256 : 8192;
    const uint64_t elements = (uint64_t)n * (uint64_t)n;
    const struct nw_gemm gemm = {.a = run->a,
                                 .b = run->a + 2 * elements,
                                 .d = run->b,
                                 .m = n,
                                 .n = n,
                                 .k = n,
                                 .dtype = (int32_t)dtype};
    double ns;
    const nw_rc rc = ops->gemm(run->stream, &gemm); /* warm up; the clocks rise */
    if (rc == NW_ENOTSUP) {
        printf("  %-34s %s\n", what, nw_last_error()->text);
        return;
    }
    DO(run, rc);
    TIME(run, run->dev->simulated ? 1 : 10, ops->gemm(run->stream, &gemm), &ns);
    report(run, what, 2.0 * n * n * n / ns * 1e-3, "TFLOP/s", NAN, NAN);
}

/* Random bits make infinities and slow nothing down, but numbers of one size switch the most
 * transistors that real data do: random bits with the exponent of 1 to 2 (bfloat16: 0x3f80). */
static void fill_random(struct run *run)
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

static void all(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    void *a, *b, *pinned;
    /* Many times the largest L2 (126 MB on B200). */
    run->bytes = run->dev->simulated ? 1 << 20 : UINT64_C(2) << 30;
    run->pinned_bytes = run->dev->simulated ? 1 << 18 : 256 << 20;
    DO(run, ops->stream_open(run->dev, &run->stream));
    DO(run, ops->mark_open(run->dev, &run->start));
    DO(run, ops->mark_open(run->dev, &run->end));
    DO(run, ops->alloc(run->dev, NW_SPACE_DEVICE, run->bytes, &a));
    DO(run, ops->alloc(run->dev, NW_SPACE_DEVICE, run->bytes, &b));
    DO(run, ops->alloc(run->dev, NW_SPACE_PINNED, run->pinned_bytes, &pinned));
    run->a = a;
    run->b = b;
    run->pinned = pinned;
    fill_random(run);
    clocks(run);
    launches(run);
    memory(run);
    bus(run);
    fill_random(run);
    product(run, NW_BFLOAT16, "product, bfloat16");
    product(run, NW_HALF, "product, half");
    ops->free(run->dev, NW_SPACE_DEVICE, a);
    ops->free(run->dev, NW_SPACE_DEVICE, b);
    ops->free(run->dev, NW_SPACE_PINNED, pinned);
    ops->mark_close(run->start);
    ops->mark_close(run->end);
    ops->stream_close(run->stream);
}

int main(int argc, char **argv)
{
    char why[1024];
    const int count = nw_dev_count("cuda", why, sizeof why);
    if (count == 0) {
        printf("skipped: %s\n", why);
        return 77;
    }
    const bool to_file = argc > 2 && strcmp(argv[1], "--json") == 0;
    FILE *json = to_file ? fopen(argv[2], "w") : NULL;
    if (to_file && !json) {
        perror(argv[2]);
        return 1;
    }
    int failed = 0;
    for (int i = 0; i < count; i++) {
        struct run run = {.json = json};
        if (nw_dev_open("cuda", i, &run.dev) != NW_OK) {
            printf("%s\n", nw_last_error()->text);
            failed++;
            continue;
        }
        printf("%s%s\n", run.dev->name,
               run.dev->simulated ? " (SIMULATED: the rates mean nothing)" : "");
        all(&run);
        failed += run.failed;
        nw_dev_close(run.dev);
    }
    if (json && fclose(json) != 0)
        failed++;
    return failed ? 1 : 0;
}
