/* What a GPU does per second, held against what it can do by its own clocks and its datasheet, so
 * that a wrong result shows as one: more than the memory can give is a bug of the measurement, not
 * a success. For a person at a new machine and for ci/gpu; the program's own cases measure
 * properly. Products: test_burn.
 *
 *     test_rates [--json FILE] [--only clocks,launches,memory,bus,p2p]
 */
#include "tests/gpu/graph.h"
#include "tests/gpu/rates.h"

/* Events against the host's clock, over work of a good fraction of a second; and how fine they are.
 */
static void clocks(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    const uint64_t bytes = run->bytes / 2;
    double ns, finest = INFINITY;
    DO(run, ops->wait(run->stream, WAIT_NS));
    const uint64_t before = nw_now_ns();
    DO(run, ops->mark_set(run->stream, run->start));
    for (int i = 0; i < 64; i++)
        DO(run, ops->copy(run->stream, run->b, run->a, bytes));
    DO(run, ops->mark_set(run->stream, run->end));
    DO(run, ops->wait(run->stream, WAIT_NS));
    const double host_ns = (double)(nw_now_ns() - before);
    DO(run, ops->mark_elapsed(run->start, run->end, &ns));
    report(run, "events to host clock", ns / host_ns, "", 0.97, 1.001);
    for (int i = 0; i < 200; i++) {
        DO(run, ops->mark_set(run->stream, run->start));
        if (i % 2)
            DO(run, ops->kernel_write(run->stream, run->a, 16, 0));
        DO(run, ops->mark_set(run->stream, run->end));
        DO(run, ops->wait(run->stream, WAIT_NS));
        DO(run, ops->mark_elapsed(run->start, run->end, &ns));
        finest = ns > 0 && ns < finest ? ns : finest;
    }
    report(run, "smallest time between events", finest * 1e-3, "us", NAN, NAN);
}

#define GRAPH_KERNELS 100

static nw_rc queue_kernels(void *user)
{
    struct run *run = user;
    for (int i = 0; i < GRAPH_KERNELS; i++)
        NW_TRY(run->dev->ops->kernel_write(run->stream, run->a, 16, 0));
    return NW_OK;
}

static void graph(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    const int rounds = run->dev->simulated ? 3 : 100;
    struct graph_api api;
    void *handle, *instance;
    double ns;
    if (graph_open(run->dev, &api) != NW_OK) {
        printf("  %-40s %s\n", "graph of 100 kernels", nw_last_error()->text);
        return;
    }
    DO(run, ops->native(run->stream, &handle));
    DO(run, graph_of(&api, handle, queue_kernels, run, &instance));
    api.launch(instance, handle); /* the first launch uploads it */
    DO(run, ops->wait(run->stream, WAIT_NS));
    const uint64_t before = nw_now_ns();
    for (int i = 0; i < rounds; i++)
        run->failed += api.launch(instance, handle) != 0;
    DO(run, ops->mark_set(run->stream, run->start));
    const uint64_t queued = nw_now_ns();
    DO(run, ops->wait(run->stream, WAIT_NS));
    report(run, "launch of a graph of 100 kernels", (double)(queued - before) / rounds * 1e-3, "us",
           0.5, 500);
    DO(run, ops->mark_set(run->stream, run->start));
    run->failed += api.launch(instance, handle) != 0;
    DO(run, ops->mark_set(run->stream, run->end));
    DO(run, ops->wait(run->stream, WAIT_NS));
    DO(run, ops->mark_elapsed(run->start, run->end, &ns));
    report(run, "a kernel of that graph, on the device", ns / GRAPH_KERNELS * 1e-3, "us", 0.3, 20);
    api.destroy_instance(instance);
}

static void launches(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    const int queue = run->dev->simulated ? 50 : 10000, waits = queue / 10;
    const uint64_t before = nw_now_ns();
    for (int i = 0; i < queue; i++)
        DO(run, ops->kernel_write(run->stream, run->a, 16, 0));
    const uint64_t queued = nw_now_ns();
    DO(run, ops->wait(run->stream, WAIT_NS));
    report(run, "launch of a small kernel, queued", (double)(queued - before) / queue * 1e-3, "us",
           0.5, 20);
    const uint64_t again = nw_now_ns();
    for (int i = 0; i < waits; i++) {
        DO(run, ops->kernel_write(run->stream, run->a, 16, 0));
        DO(run, ops->wait(run->stream, WAIT_NS));
    }
    report(run, "launch of a small kernel and wait", (double)(nw_now_ns() - again) / waits * 1e-3,
           "us", 1, 100);
    graph(run);
}

/* The datasheet; where the catalogue has none, the memory's clock and width; NAN: unknown. */
static double memory_ceiling(const struct run *run)
{
    if (run->datasheet && run->datasheet->hbm_bytes_per_s > 0)
        return run->datasheet->hbm_bytes_per_s;
    return run->dev->memory_bytes_per_s > 0 ? run->dev->memory_bytes_per_s : NAN;
}

/* 64 KiB to 4 GiB. What fits into the L2 may be faster than the memory; what does not, several
 * times over, may not. */
static void memory_sizes(struct run *run, double most)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    const double l2 = run->dev->l2_bytes > 0 ? (double)run->dev->l2_bytes : 128e6;
    double ns;
    for (uint64_t bytes = 64 << 10; bytes <= run->bytes; bytes *= 4) {
        const bool beyond = 2.0 * (double)bytes > 4 * l2;
        const double share = bytes >= 1 << 28 ? 0.80 : 0;
        const int repeat = bytes < 64 << 20 ? 20 : 2;
        const double low = beyond ? share * 1e-9 * most : NAN, high = beyond ? 1e-9 * most : NAN;
        char what[64];
        TIME(run, repeat, ops->copy(run->stream, run->b, run->a, bytes), &ns);
        snprintf(what, sizeof what, "copy engine, read + write, %llu KiB",
                 (unsigned long long)bytes >> 10);
        report_sized(run, what, bytes, 2 * (double)bytes / ns, "GB/s", low, high);
        TIME(run, repeat, ops->kernel_copy(run->stream, run->b, run->a, bytes), &ns);
        snprintf(what, sizeof what, "copy kernel, read + write, %llu KiB",
                 (unsigned long long)bytes >> 10);
        report_sized(run, what, bytes, 2 * (double)bytes / ns, "GB/s", low, high);
    }
}

static void memory(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    const double most = memory_ceiling(run), bytes = (double)run->bytes;
    uint32_t *const fold = (uint32_t *)(void *)run->b;
    double ns;
    printf("  memory: datasheet %.4g GB/s, by its clock and width %.4g GB/s, L2 %.4g MB\n",
           run->datasheet ? run->datasheet->hbm_bytes_per_s * 1e-9 : NAN,
           run->dev->memory_bytes_per_s > 0 ? run->dev->memory_bytes_per_s * 1e-9 : NAN,
           (double)run->dev->l2_bytes * 1e-6);
    memory_sizes(run, most);
    TIME(run, 4, ops->copy(run->stream, run->b, run->a, run->bytes), &ns);
    report_sized(run, "copy engine, read + write", run->bytes, 2 * bytes / ns, "GB/s",
                 0.80e-9 * most, 1e-9 * most);
    TIME(run, 4, ops->kernel_copy(run->stream, run->b, run->a, run->bytes), &ns);
    report_sized(run, "copy kernel, read + write", run->bytes, 2 * bytes / ns, "GB/s",
                 0.88e-9 * most, 1e-9 * most);
    TIME(run, 4, ops->kernel_read(run->stream, run->a, run->bytes, fold), &ns);
    report_sized(run, "read kernel", run->bytes, bytes / ns, "GB/s", 0.80e-9 * most, 1e-9 * most);
    TIME(run, 4, ops->kernel_write(run->stream, run->b, run->bytes, 0x12345678), &ns);
    report_sized(run, "write kernel", run->bytes, bytes / ns, "GB/s", 0.80e-9 * most, 1e-9 * most);
    /* three streams through the same memory: a third each */
    const uint64_t third = run->bytes / 3 & ~(uint64_t)255;
    const struct nw_reduce_inputs inputs = {.count = 2, .from = {run->a, run->a + third}};
    TIME(run, 4, ops->reduce(run->stream, run->b, &inputs, third / 4, NW_FLOAT), &ns);
    report_sized(run, "reduce of 2 float inputs", 3 * third, 3 * (double)third / ns, "GB/s",
                 0.80e-9 * most, 1e-9 * most);
}

/* The data that went over and came back. */
static void bus_data(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    const size_t bytes = (size_t)run->pinned_bytes / 2;
    unsigned char *const from = run->pinned, *const back = run->pinned + bytes;
    memset(back, 0xa5, bytes);
    DO(run, ops->copy(run->stream, run->b, from, bytes));
    DO(run, ops->copy(run->stream, back, run->b, bytes));
    DO(run, ops->wait(run->stream, WAIT_NS));
    report(run, "bytes that came back as they went",
           memcmp(from, back, bytes) == 0 ? 1 : NAN /* never in order */, "", NAN, NAN);
}

/* As cudaMemcpy does it, by the host's clock; the best of five. */
static void bus_by_host(struct run *run, const char *what, void *to, const void *from,
                        uint64_t bytes, double event_rate)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    double best = INFINITY;
    char ratio[64];
    for (int i = 0; i < 5; i++) {
        const uint64_t before = nw_now_ns();
        DO(run, ops->copy(run->stream, to, from, bytes));
        DO(run, ops->wait(run->stream, WAIT_NS));
        const double ns = (double)(nw_now_ns() - before);
        best = ns < best ? ns : best;
    }
    report_sized(run, what, bytes, (double)bytes / best, "GB/s", 0.5, 500);
    if (isnan(event_rate))
        return;
    snprintf(ratio, sizeof ratio, "%s: events to it", what);
    report(run, ratio, event_rate * best / (double)bytes, "", 0.95, 1.05);
}

static void bus(struct run *run)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    const uint64_t n = run->pinned_bytes, half = n / 2;
    double ns;
    bus_data(run);
    /* 64 GB/s: PCIe 5.0 x16 one way, the fastest slot there is today, NVLink-C2C excepted. */
    TIME(run, 1, ops->copy(run->stream, run->a, run->pinned, n), &ns);
    report_sized(run, "host to device, pinned", n, (double)n / ns, "GB/s", 5, 500);
    bus_by_host(run, "host to device, pinned, by the host", run->a, run->pinned, n, (double)n / ns);
    TIME(run, 1, ops->copy(run->stream, run->pinned, run->a, n), &ns);
    report_sized(run, "device to host, pinned", n, (double)n / ns, "GB/s", 5, 500);
    bus_by_host(run, "device to host, pinned, by the host", run->pinned, run->a, n, (double)n / ns);
    TIME_BOTH(run, ops->copy(run->stream, run->a, run->pinned, half),
              ops->copy(run->stream2, run->pinned + half, run->b, half), &ns);
    report_sized(run, "both ways at once, pinned, the sum", n, (double)n / ns, "GB/s", 5, 1000);
    unsigned char *pageable = malloc(n);
    if (!pageable) {
        printf("  NOT IN ORDER: no memory for %llu bytes\n", (unsigned long long)n);
        run->failed++;
        return;
    }
    memcpy(pageable, run->pinned, n); /* pages that are there */
    bus_by_host(run, "host to device, pageable, by the host", run->a, pageable, n, NAN);
    bus_by_host(run, "device to host, pageable, by the host", pageable, run->a, n, NAN);
    free(pageable);
}

/* One way from this device to every other one: by the copy engines, and by a kernel that writes. */
static void p2p_pair(struct run *run, struct nw_dev *peer)
{
    const struct nw_dev_ops *ops = run->dev->ops;
    const uint64_t bytes = run->bytes < 256 << 20 ? run->bytes : 256 << 20;
    const double most = run->datasheet && run->datasheet->nvlink_one_way_bytes_per_s > 0
                            ? run->datasheet->nvlink_one_way_bytes_per_s * 1e-9
                            : 500;
    bool can = false;
    void *there;
    double ns;
    char what[64];
    DO(run, ops->peer_can(run->dev, peer, &can));
    DO(run, ops->alloc(peer, NW_SPACE_DEVICE, bytes, &there));
    for (int enable = 0; enable <= can; enable++) {
        if (enable)
            DO(run, ops->peer_enable(run->dev, peer, true));
        TIME(run, 4, ops->copy_peer(run->stream, there, peer, run->a, run->dev, bytes), &ns);
        snprintf(what, sizeof what, "gpu %d to %d, copy engine, peer access %s", run->dev->index,
                 peer->index, enable ? "on" : "off");
        report_sized(run, what, bytes, (double)bytes / ns, "GB/s", 0.1, most);
    }
    if (can) {
        TIME(run, 4, ops->kernel_copy(run->stream, there, run->a, bytes), &ns);
        snprintf(what, sizeof what, "gpu %d to %d, kernel", run->dev->index, peer->index);
        report_sized(run, what, bytes, (double)bytes / ns, "GB/s", 0.1, most);
        DO(run, ops->peer_enable(run->dev, peer, false));
    }
    ops->free(peer, NW_SPACE_DEVICE, there);
}

static void p2p(struct run *run)
{
    char why[256];
    const int count = nw_dev_count("cuda", why, sizeof why);
    for (int i = 0; i < count; i++) {
        struct nw_dev *peer;
        if (i == run->dev->index)
            continue;
        DO(run, nw_dev_open("cuda", i, &peer));
        p2p_pair(run, peer);
        nw_dev_close(peer);
    }
}

int main(int argc, char **argv)
{
    static const struct rates_check checks[] = {
        {"clocks", clocks}, {"launches", launches}, {"memory", memory}, {"bus", bus}, {"p2p", p2p},
    };
    return rates_main(argc, argv, checks, sizeof checks / sizeof *checks);
}
