#include "bench/burn.h"

#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "bench/gpu_watch.h"

/* A batch is what is queued at once. The gap to the next one is the time to queue it, 3 us a
 * launch: below one per cent, and the chip does not cool down in it. NVML is asked once a batch:
 * ten times a second. */
#define BATCH_NS     100e6
#define BATCHES_MIN  20
#define SAMPLES_MIN  8 /* below that there are no quarters to compare */
#define GATE_NS      10e9
#define CALLS_MAX    256  /* a driver's queue holds about a thousand */
#define LONGEST_CALL 20.0 /* times what the first calls took */

struct load {
    struct nw_product *product;
    nw_product_lane lane;
    struct nw_burn *burn;
    double call_ns; /* expected; 0: not known yet */
    uint64_t looked_ns;
};

/* With the batch under way: half of it is over before the driver is asked, so that the answer is of
 * the load. */
static void look(struct load *load, uint32_t calls)
{
    const struct nw_device *device = load->product->device;
    const double half_ns = calls * load->call_ns / 2;
    struct nw_gpu_state state;

    if (load->call_ns == 0)
        return;
    if (load->burn->real_time) {
        if ((double)(nw_now_ns() - load->looked_ns) < BATCH_NS / 2)
            return;
        nanosleep(&(struct timespec){.tv_sec = (time_t)(half_ns * 1e-9),
                                     .tv_nsec = (long)fmod(half_ns, 1e9)},
                  NULL);
        load->looked_ns = nw_now_ns();
    }
    state = nw_gpu_look(device->nvml, device->nvml_index);
    nw_gpu_state_worsen(&load->burn->during, &state);
}

static nw_rc queue(struct load *load, uint32_t calls)
{
    struct nw_device *device = load->product->device;
    const struct nw_dev_ops *ops = device->dev->ops;

    NW_TRY(ops->mark_set(device->stream, device->start));
    for (uint32_t call = 0; call < calls; call++)
        NW_TRY(nw_product_queue(load->product, load->lane));
    return ops->mark_set(device->stream, device->end);
}

static nw_rc batch(struct load *load, uint32_t calls, double *ns_out)
{
    struct nw_device *device = load->product->device;
    const struct nw_dev_ops *ops = device->dev->ops;
    const double limit_ns = load->burn->margin_ns + calls * load->call_ns * LONGEST_CALL;
    nw_rc rc;

    nw_bench_status_deadline(load->burn->status, nw_now_ns() + (uint64_t)(GATE_NS + limit_ns));
    NW_TRY(ops->gate_hold(device->stream, GATE_NS));
    rc = queue(load, calls);
    ops->gate_release(device->stream);
    NW_TRY(rc);
    look(load, calls);
    NW_TRY(ops->wait(device->stream, limit_ns));
    return ops->mark_elapsed(device->start, device->end, ns_out);
}

static uint32_t calls_of_batch(const struct load *load)
{
    const double wanted_ns = fmin(BATCH_NS, load->burn->budget_ns / BATCHES_MIN);

    return (uint32_t)fmin(fmax(round(wanted_ns / load->call_ns), 1), CALLS_MAX);
}

/* So many batches make a sample that the samples last for the whole budget. */
static uint32_t batches_of_sample(const struct load *load, uint32_t calls)
{
    const double batches = load->burn->budget_ns / (calls * load->call_ns);

    return (uint32_t)fmax(ceil(batches / (NW_BURN_SAMPLES / 2)), 1);
}

static nw_rc take(struct load *load)
{
    struct nw_burn *burn = load->burn;
    const uint32_t calls = calls_of_batch(load), batches = batches_of_sample(load, calls);
    double spent_ns = 0;

    burn->calls = calls * batches;
    while (burn->count < NW_BURN_SAMPLES &&
           (burn->count < SAMPLES_MIN || spent_ns < burn->budget_ns)) {
        double sample_ns = 0;

        for (uint32_t i = 0; i < batches; i++) {
            double ns;

            NW_TRY(batch(load, calls, &ns));
            sample_ns += ns;
        }
        burn->samples_ns[burn->count++] = sample_ns / burn->calls;
        spent_ns += sample_ns;
    }
    return NW_OK;
}

nw_rc nw_burn_run(struct nw_product *product, nw_product_lane lane, struct nw_burn *burn)
{
    struct load load = {.product = product, .lane = lane, .burn = burn};
    double ns;

    burn->count = 0;
    burn->during = nw_gpu_look(NULL, -1);
    NW_TRY(batch(&load, 1, &ns)); /* the clocks rise */
    NW_TRY(batch(&load, 1, &ns));
    load.call_ns = fmax(ns, 1);
    return take(&load);
}
