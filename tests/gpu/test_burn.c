/* Matrix products for seconds on end, as training makes them, on random data: how fast, how much of
 * cuBLAS, whether the rate falls as the chip warms up, and what the driver says meanwhile (NVML,
 * ten times a second). Then a copy beside products.
 *
 *     test_burn [--json FILE] [--only burn,overlap]
 */
#include <pthread.h>
#include <stdatomic.h>

#include "kernels/cublas_api.h"
#include "kernels/float8.h"
#include "kernels/half.h"
#include "topo/nvml_api.h"
#include "tests/gpu/rates.h"

#define SAMPLES_MAX 1024
#define BATCHES_MAX 4096

/* What NVML said, ten times a second, by a thread of its own. */
struct watch {
    struct nw_nvml *nvml;
    int index;
    pthread_t thread;
    atomic_bool stop;
    size_t count;
    struct nw_nvml_sample samples[SAMPLES_MAX];
};

static void watch_look(struct watch *watch)
{
    if (watch->count < SAMPLES_MAX &&
        nw_nvml_sample(watch->nvml, watch->index, &watch->samples[watch->count]) == NW_OK)
        watch->count++;
}

static void *watch_loop(void *argument)
{
    struct watch *watch = argument;
    while (!atomic_load(&watch->stop)) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        watch_look(watch);
    }
    return NULL;
}

/* Without NVML there is no watch, and a line that says so. */
static struct watch *watch_start(const struct nw_dev *dev)
{
    struct watch *watch = calloc(1, sizeof *watch);
    if (watch && nw_nvml_open(&watch->nvml) == NW_OK &&
        nw_nvml_find(watch->nvml, dev->pci, &watch->index) == NW_OK &&
        (watch_look(watch), true) && /* before the work */
        pthread_create(&watch->thread, NULL, watch_loop, watch) == 0)
        return watch;
    printf("  the driver says nothing of the GPU's state: %s\n", nw_last_error()->text);
    if (watch)
        nw_nvml_close(watch->nvml);
    free(watch);
    return NULL;
}

static void print_state(struct run *run, const char *when, const struct nw_nvml_sample *s)
{
    char text[160];
    const char *throttle = s->throttle_known ? nw_throttle_text(text, s->throttle) : "unknown";
    printf("    %-7s SM %.0f MHz, memory %.0f MHz, %.1f W of %.0f, %.0f °C, throttle: %s\n", when,
           s->sm_clock_hz * 1e-6, s->memory_clock_hz * 1e-6, s->power_w, s->power_limit_w,
           s->temperature_c, throttle);
    if (run->json)
        fprintf(run->json,
                "{\"check\": \"gpu_state\", \"device\": %d, \"when\": \"%s\", \"sm_clock_hz\": "
                "%.9g, \"memory_clock_hz\": %.9g, \"power_w\": %.6g, \"power_limit_w\": %.6g, "
                "\"temperature_c\": %.4g, \"throttle\": \"%s\", \"simulated\": %s}\n",
                run->dev->index, when, s->sm_clock_hz, s->memory_clock_hz, s->power_w,
                s->power_limit_w, s->temperature_c, throttle,
                run->dev->simulated ? "true" : "false");
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void watch_end(struct run *run, struct watch *watch)
{
    uint64_t throttle = 0;
    double clocks[SAMPLES_MAX];
    if (!watch)
        return;
    atomic_store(&watch->stop, true);
    pthread_join(watch->thread, NULL);
    for (size_t i = 0; i < watch->count; i++) {
        throttle |= watch->samples[i].throttle;
        clocks[i] = watch->samples[i].sm_clock_hz;
    }
    if (watch->count > 0) {
        char text[160];
        struct nw_nvml_sample *middle = &watch->samples[watch->count / 2];
        qsort(clocks, watch->count, sizeof *clocks, by_size);
        print_state(run, "before", &watch->samples[0]);
        print_state(run, "during", middle);
        print_state(run, "after", &watch->samples[watch->count - 1]);
        printf("    %zu samples: SM %.0f to %.0f MHz, median %.0f; throttle reasons seen: %s\n",
               watch->count, clocks[0] * 1e-6, clocks[watch->count - 1] * 1e-6,
               clocks[watch->count / 2] * 1e-6, nw_throttle_text(text, throttle));
    }
    nw_nvml_close(watch->nvml);
    free(watch);
}

/* One way to make a product. */
struct product {
    const char *what;
    int32_t dtype;
    bool by_cublas; /* else by our own kernel */
    double seconds;
};

static nw_rc queue_product(struct run *run, struct nw_cublas *cublas, const struct nw_gemm *gemm)
{
    return cublas ? nw_cublas_gemm(cublas, gemm) : run->dev->ops->gemm(run->stream, gemm);
}

static struct nw_gemm gemm_of(const struct run *run, int32_t dtype)
{
    const int n = run->dev->simulated ? 256 : 8192;
    return (struct nw_gemm){.a = run->a,
                            .b = run->a + run->bytes / 2,
                            .d = run->b,
                            .m = n,
                            .n = n,
                            .k = run->dev->simulated ? 64 : n,
                            .dtype = dtype};
}

/* As e4m3: ±0.5 to 1.875 of each byte, never NaN; so the words are not infinite as half either. */
static nw_rc fill_float8(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    uint64_t state = 88172645463325252u;
    for (uint64_t i = 0; i < run->pinned_bytes; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        run->pinned[i] = (unsigned char)(0x30 | (state >> 40 & 0x8f));
    }
    for (uint64_t at = 0; at < run->bytes; at += run->pinned_bytes)
        NW_TRY(ops->copy(run->stream, run->a + at, run->pinned, run->pinned_bytes));
    return ops->wait(run->stream, WAIT_NS);
}

static double operand(const struct nw_gemm *gemm, const unsigned char *row, int at)
{
    uint16_t bits;
    if (gemm->dtype == NW_FLOAT8)
        return (double)nw_float8_to_float(row[at]);
    memcpy(&bits, row + 2 * at, sizeof bits);
    return gemm->dtype == NW_HALF ? (double)nw_half_to_float(bits)
                                  : (double)nw_bfloat16_to_float(bits);
}

/* The largest error of 64 elements against sums in double, as a share of what a sum of k random
 * terms is: sqrt(k) times the terms' own size. */
static nw_rc gemm_error(struct run *run, const struct nw_gemm *gemm, double *error_out)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    const size_t row_bytes = nw_gemm_element_bytes(gemm->dtype) * (size_t)gemm->k;
    unsigned char *const a = run->pinned, *const b = a + row_bytes;
    float *const d = (float *)(void *)(b + row_bytes);
    *error_out = 0;
    for (int i = 0; i < 64; i++) {
        const size_t row = (size_t)(i * 2654435761u % (unsigned)gemm->m);
        const size_t column = (size_t)(i * 40503u % (unsigned)gemm->n);
        double sum = 0, squares = 0;
        NW_TRY(ops->copy(run->stream, a, (const char *)gemm->a + row * row_bytes, row_bytes));
        NW_TRY(ops->copy(run->stream, b, (const char *)gemm->b + column * row_bytes, row_bytes));
        NW_TRY(ops->copy(run->stream, d, (float *)gemm->d + row * (size_t)gemm->n + column, 4));
        NW_TRY(ops->wait(run->stream, WAIT_NS));
        for (int k = 0; k < gemm->k; k++) {
            const double term = operand(gemm, a, k) * operand(gemm, b, k);
            sum += term;
            squares += term * term;
        }
        const double error = fabs((double)*d - sum) / sqrt(squares);
        *error_out = error > *error_out || isnan(error) ? error : *error_out;
    }
    return NW_OK;
}

struct batches {
    double began_ns[BATCHES_MAX], rates[BATCHES_MAX]; /* since the start; TFLOP/s */
    int count;
};

/* Of the batches that began between `from` and `to`. */
static double mean_rate(const struct batches *batches, double from, double to)
{
    double sum = 0;
    int used = 0;
    for (int i = 0; i < batches->count; i++)
        if (batches->began_ns[i] >= from && batches->began_ns[i] <= to) {
            sum += batches->rates[i];
            used++;
        }
    return used ? sum / used : NAN;
}

/* Batches of a tenth of a second until `burn_ns` have passed; the rate of each. */
static nw_rc burn_batches(struct run *run, struct nw_cublas *cublas, const struct nw_gemm *gemm,
                          double burn_ns, struct batches *batches)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    const double flop = 2.0 * gemm->m * gemm->n * gemm->k;
    const uint64_t start = nw_now_ns();
    int calls = 4;
    for (batches->count = 0;
         batches->count < BATCHES_MAX && (double)(nw_now_ns() - start) < burn_ns;) {
        double ns;
        batches->began_ns[batches->count] = (double)(nw_now_ns() - start);
        NW_TRY(ops->mark_set(run->stream, run->start));
        for (int i = 0; i < calls; i++)
            NW_TRY(queue_product(run, cublas, gemm));
        NW_TRY(ops->mark_set(run->stream, run->end));
        NW_TRY(ops->wait(run->stream, WAIT_NS));
        NW_TRY(ops->mark_elapsed(run->start, run->end, &ns));
        batches->rates[batches->count++] = flop * calls / ns * 1e-3;
        if (!run->dev->simulated && ns < 5e7 && calls < 256)
            calls *= 2;
    }
    return NW_OK;
}

/* Of the datasheet, for the type; NAN: unknown. */
static double peak_tflops(const struct run *run, int32_t dtype)
{
    const struct nw_gpu *gpu = run->datasheet;
    const double flops = !gpu                 ? 0
                         : dtype == NW_FLOAT8 ? gpu->fp8_flops
                         : dtype == NW_HALF   ? gpu->fp16_flops
                                              : gpu->bf16_flops;
    return flops > 0 ? flops * 1e-12 : NAN;
}

static double report_burn(struct run *run, const struct product *product, double burn_ns,
                          const struct batches *batches, double error)
{
    static double sorted[BATCHES_MAX];
    const int count = batches->count;
    const double last = batches->began_ns[count - 1], window_ns = burn_ns / 5;
    char what[64];
    memcpy(sorted, batches->rates, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_size);
    report(run, product->what, sorted[count / 2], "TFLOP/s", NAN, peak_tflops(run, product->dtype));
    snprintf(what, sizeof what, "%s, slowest batch", product->what);
    report(run, what, sorted[0], "TFLOP/s", NAN, NAN);
    snprintf(what, sizeof what, "%s, last to first fifth", product->what);
    report(run, what, mean_rate(batches, last - window_ns, last) / mean_rate(batches, 0, window_ns),
           "", 0.5, 2);
    snprintf(what, sizeof what, "%s, error", product->what);
    report(run, what, error, "", 0, 1e-2);
    return sorted[count / 2];
}

/* TFLOP/s, median of the batches; NAN: could not, which is said. */
static double burn_product(struct run *run, const struct product *product)
{
    static struct batches batches;
    const double burn_ns = run->dev->simulated ? 1e5 : product->seconds * 1e9;
    const struct nw_gemm gemm = gemm_of(run, product->dtype);
    struct nw_cublas *cublas = NULL;
    double error = NAN, rate = NAN;
    struct watch *watch = watch_start(run->dev);
    nw_rc rc = product->by_cublas ? nw_cublas_open(run->dev, run->stream, &cublas) : NW_OK;
    if (rc == NW_OK && cublas)
        printf("  %s\n", nw_cublas_version(cublas));
    if (rc == NW_OK)
        rc = queue_product(run, cublas, &gemm); /* warm up; the clocks rise */
    const bool absent = rc == NW_ENOTSUP || rc == NW_ENODEV;
    if (rc == NW_OK)
        rc = burn_batches(run, cublas, &gemm, burn_ns, &batches);
    watch_end(run, watch);
    if (rc == NW_OK)
        rc = gemm_error(run, &gemm, &error);
    if (rc == NW_OK && batches.count > 0)
        rate = report_burn(run, product, burn_ns, &batches, error);
    else
        printf("  %-40s %s%s\n", product->what,
               absent ? "" : "NOT IN ORDER: ", nw_last_error()->text);
    run->failed += rc != NW_OK && !absent;
    nw_cublas_close(cublas);
    return rate;
}

/* Our own and its control. */
static void burn_pair(struct run *run, const struct product *own, const struct product *control)
{
    char what[64];
    const double ours = burn_product(run, own), theirs = burn_product(run, control);
    if (isnan(ours) || isnan(theirs))
        return;
    snprintf(what, sizeof what, "%s: own to cuBLAS", own->what);
    report(run, what, ours / theirs, "", 0.70, NAN);
}

static void burn(struct run *run)
{
    static const struct product products[][2] = {
        {{"product, bfloat16", NW_BFLOAT16, false, 10},
         {"cuBLAS, bfloat16", NW_BFLOAT16, true, 10}},
        {{"product, half", NW_HALF, false, 3}, {"cuBLAS, half", NW_HALF, true, 3}},
        {{"product, fp8", NW_FLOAT8, false, 4}, {"cuBLAS, fp8", NW_FLOAT8, true, 4}},
    };
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        if (products[i][0].dtype == NW_FLOAT8)
            DO(run, fill_float8(run));
        burn_pair(run, &products[i][0], &products[i][1]);
    }
}

/* A copy beside products, each as long as the other alone: how much of the shorter is hidden. */
static void overlap_copy(struct run *run, const char *name, void *to, const void *from,
                         uint64_t bytes)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    const struct nw_gemm gemm = gemm_of(run, NW_HALF);
    double product_ns, copy_ns, both_ns;
    char what[64];
    TIME(run, 1, ops->gemm(run->stream, &gemm), &product_ns);
    TIME(run, 1, ops->copy(run->stream, to, from, bytes), &copy_ns);
    TIME_BOTH(run, ops->gemm(run->stream, &gemm), ops->copy(run->stream2, to, from, bytes),
              &both_ns);
    const double shorter = product_ns < copy_ns ? product_ns : copy_ns;
    snprintf(what, sizeof what, "%s beside a product, alone", name);
    report_sized(run, what, bytes, copy_ns * 1e-3, "us", NAN, NAN);
    snprintf(what, sizeof what, "product beside a %s, alone", name);
    report(run, what, product_ns * 1e-3, "us", NAN, NAN);
    snprintf(what, sizeof what, "%s beside a product, both", name);
    report_sized(run, what, bytes, both_ns * 1e-3, "us", NAN, NAN);
    snprintf(what, sizeof what, "%s beside a product, hidden share", name);
    report_sized(run, what, bytes, (product_ns + copy_ns - both_ns) / shorter, "", -0.5, 1.05);
}

static void overlap(struct run *run)
{
    const uint64_t pinned = run->dev->simulated ? run->pinned_bytes : 64 << 20;
    const uint64_t device = run->dev->simulated ? run->bytes / 4 : UINT64_C(1) << 30;
    unsigned char *const quarter = run->b + run->bytes / 2;
    overlap_copy(run, "host copy", quarter, run->pinned, pinned);
    overlap_copy(run, "device copy", quarter, run->a, device);
}

int main(int argc, char **argv)
{
    static const struct rates_check checks[] = {{"burn", burn}, {"overlap", overlap}};
    return rates_main(argc, argv, checks, sizeof checks / sizeof *checks);
}
