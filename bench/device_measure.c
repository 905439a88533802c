/* One measurement on the ranks' GPUs: behind a gate, looked at by NVML while it runs, with its
 * ceiling. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/device_work.h"

/* The way back is given so many calls for one of the measured way: it is busy until the end, also
 * where it is up to twice as fast. */
#define BACK_CALLS 2
/* NVML is asked behind so many gates: each costs the host some 100 us, and the link's generation
 * rises with the first of them. */
#define LOOKS_MAX 4
/* Clocks and links are exact, marks to 0.5 us. */
#define ABOVE_REL 0.01
/* A GPU that hangs is given up after this part of the margin: the others, and whoever watches, wait
 * for the whole of it, and then name a rank that only waits. */
#define PATIENCE  0.5
#define FAR_BELOW 0.5

/* In the middle of a measurement the other ranks are in theirs: what fails here ends the run. */
static nw_rc as_broken(nw_rc rc)
{
    const struct nw_err error = *nw_last_error();

    if (rc == NW_OK || nw_bench_is_broken(rc))
        return rc;
    return nw_fail_at(NW_ELIB, error.lib, error.lib_code, error.where, "%s", error.text);
}

static struct nw_device_work *work_of(const struct nw_work *base)
{
    return (struct nw_device_work *)(uintptr_t)base;
}

static void keep_failure(struct nw_device_work *work, nw_rc rc)
{
    if (rc != NW_OK && work->failed.rc == NW_OK)
        work->failed = *nw_last_error();
}

static nw_rc say_failure(const struct nw_device_work *work)
{
    const struct nw_err *failed = &work->failed;

    if (failed->rc == NW_OK)
        return NW_OK;
    return nw_fail_at(failed->rc, failed->lib, failed->lib_code, failed->where, "%s", failed->text);
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* An idle GPU lowers its link's generation: what counts is the highest while work runs. */
static void look(struct nw_device_work *work)
{
    const struct nw_device *device = work->device;
    struct nw_nvml_gpu gpu;

    if (device->nvml == NULL || work->looks++ >= LOOKS_MAX)
        return;
    if (nw_nvml_gpu(device->nvml, device->nvml_index, &gpu) != NW_OK) {
        nw_clear_error();
        return;
    }
    work->pcie.generation = larger(work->pcie.generation, gpu.pcie_generation);
    work->pcie.width = larger(work->pcie.width, gpu.pcie_width);
    work->pcie.max_generation = gpu.pcie_max_generation;
    work->pcie.max_width = gpu.pcie_max_width;
}

static nw_rc wait_both(struct nw_device_work *work, double timeout_ns)
{
    NW_TRY(work->device->dev->ops->wait(work->device->stream, timeout_ns));
    if (work->queue_back == NULL)
        return NW_OK;
    return work->back_dev->ops->wait(work->back, timeout_ns);
}

static nw_rc call(const struct nw_work *base, uint64_t index)
{
    struct nw_device_work *work = work_of(base);

    if (work->device == NULL)
        return NW_OK;
    NW_TRY(as_broken(say_failure(work)));
    if (work->queue_back != NULL)
        NW_TRY(as_broken(work->queue_back(work, index)));
    NW_TRY(as_broken(work->queue(work, index)));
    return as_broken(wait_both(work, PATIENCE * work->margin_ns + work->call_deadline_ns));
}

struct sample { /* all calls of one, as one call of nw_gated_time */
    struct nw_device_work *work;
    uint32_t calls;
};

static nw_rc queue_sample(void *user, uint64_t index)
{
    const struct sample *sample = user;
    struct nw_device_work *work = sample->work;

    if (work->queue_back != NULL)
        NW_TRY(work->back_dev->ops->follow(work->back, work->device->start));
    for (uint32_t i = 0; work->queue_back != NULL && i < BACK_CALLS * sample->calls; i++)
        NW_TRY(work->queue_back(work, index + i));
    for (uint32_t i = 0; i < sample->calls; i++)
        NW_TRY(work->queue(work, index + i));
    return NW_OK;
}

static nw_rc finish_sample(void *user, double timeout_ns)
{
    const struct sample *sample = user;

    look(sample->work);
    return wait_both(sample->work, timeout_ns);
}

static nw_rc time_calls(const struct nw_work *base, uint64_t index, uint32_t calls, double *ns_out)
{
    struct nw_device_work *work = work_of(base);
    struct sample sample = {.work = work, .calls = calls};
    const struct nw_device *device = work->device;
    struct nw_gated gated = {.comm = work->bench->comm};

    if (device != NULL) {
        NW_TRY(as_broken(say_failure(work)));
        gated.dev = device->dev;
        gated.stream = device->stream;
        gated.start = device->start;
        gated.end = device->end;
        gated.queue = queue_sample;
        gated.finish = finish_sample;
        gated.user = &sample;
        gated.timeout_ns = PATIENCE * work->margin_ns + calls * work->call_deadline_ns;
    }
    return as_broken(nw_gated_time(&gated, index, 1, ns_out));
}

static void fill(const struct nw_work *base, uint64_t round)
{
    struct nw_device_work *work = work_of(base);

    if (work->device != NULL)
        keep_failure(work, work->prepare(work, round));
}

static uint64_t check(const struct nw_work *base, uint64_t round, struct nw_wrong *first_out)
{
    struct nw_device_work *work = work_of(base);
    uint64_t wrong = 0;

    if (work->device != NULL && work->failed.rc == NW_OK)
        keep_failure(work, work->verify(work, round, &wrong, first_out));
    return wrong;
}

void nw_device_work_init(struct nw_device_work *work, struct nw_bench *bench,
                         struct nw_device *device)
{
    work->work = (struct nw_work){
        .call = call,
        .fill = fill,
        .check = check,
        .time = time_calls,
        .calls_max = NW_GATED_CALLS_MAX / (1 + BACK_CALLS), /* the same on all ranks */
    };
    work->bench = bench;
    work->device = device;
    if (work->back == NULL && device != NULL) {
        work->back = device->back;
        work->back_dev = device->dev;
    }
    work->failed = (struct nw_err){.rc = NW_OK};
    work->pcie = (struct nw_pcie_link){-1, -1, -1, -1};
    work->looks = 0;
}

static nw_rc judge(const struct nw_device_unit *unit, struct nw_record *record)
{
    const double rate = record->algbw_bytes_per_s, ceiling = record->ceiling_bytes_per_s;
    char rate_text[32], ceiling_text[32];

    nw_format_gb_per_s(rate_text, rate);
    nw_format_gb_per_s(ceiling_text, ceiling);
    if (rate > (1 + ABOVE_REL) * ceiling)
        return nw_findings_add(
            &record->warnings, NW_FINDING_WARN, "above-ceiling", record->collective,
            "do not use this number: a cache or a clock has a part in it",
            "%s GB/s are more than the %s GB/s that the path can carry", rate_text, ceiling_text);
    if (unit->judged && rate < (unit->far_below > 0 ? unit->far_below : FAR_BELOW) * ceiling)
        return nw_findings_add(&record->warnings, NW_FINDING_WARN, "far-below-ceiling",
                               record->collective,
                               "look for other work on this host and GPU, and at the path",
                               "%s GB/s are %.0f %% of the %s GB/s that the path can carry",
                               rate_text, 100 * rate / ceiling, ceiling_text);
    return NW_OK;
}

static nw_rc report(struct nw_bench *bench, const struct nw_device_unit *unit,
                    const struct nw_measured *measured, const struct nw_pcie_link *pcie)
{
    for (size_t i = 0; i < unit->count; i++) {
        struct nw_record *record = &unit->records[i];

        NW_TRY(nw_measured_report(measured, (int)i, bench->comm, 1, record));
        if (record->slowest_rank >= 0) /* the one GPU of the record, whoever gave it the work */
            record->slowest_rank = record->peer_a;
        if (unit->ceiling != NULL)
            record->ceiling_bytes_per_s = unit->ceiling(unit->user, record, pcie);
        NW_TRY(judge(unit, record));
        nw_bench_record(bench, record);
        if (unit->note != NULL && bench->comm->rank == 0)
            unit->note(unit->user, record, pcie);
    }
    return NW_OK;
}

static nw_rc measure(struct nw_bench *bench, const struct nw_device_unit *unit,
                     struct nw_device_work *work)
{
    struct nw_measure how = nw_bench_how(bench, unit->bytes, unit->title);
    struct nw_pcie_link *pcie;
    struct nw_measured measured;
    nw_rc rc;

    how.group_of_rank = unit->group_of_rank;
    how.group_count = (int)unit->count;
    if (unit->budget_ns > 0 && unit->budget_ns < how.rules.budget_ns)
        how.rules.budget_ns = unit->budget_ns;
    work->margin_ns = how.margin_ns;
    work->call_deadline_ns = how.call_deadline_ns;
    NW_TRY(nw_measure(&how, &work->work, &measured));
    rc = nw_agree(bench->comm, say_failure(work));
    pcie = calloc((size_t)bench->comm->rank_count, sizeof *pcie);
    if (rc == NW_OK)
        rc = nw_agree(bench->comm, pcie != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory"));
    if (rc == NW_OK)
        rc = bench->comm->ops->exchange(bench->comm, &work->pcie, sizeof work->pcie, pcie);
    if (rc == NW_OK)
        rc = report(bench, unit, &measured, pcie);
    free(pcie);
    nw_measured_free(&measured);
    return rc;
}

nw_rc nw_device_measure(struct nw_bench *bench, const struct nw_device_unit *unit,
                        struct nw_device_work *work)
{
    const struct nw_record **kept = calloc(unit->count, sizeof *kept);
    const struct nw_unit counted = {
        .identities = unit->records, .identity_count = unit->count, .title = unit->title};
    bool go = false;
    nw_rc rc = NW_OK;

    if (kept == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for %zu records", unit->count);
    if (rc == NW_OK)
        rc = nw_bench_begin(bench, &counted, &go, kept);
    for (size_t i = 0; rc == NW_OK && i < unit->count; i++)
        if (kept[i] != NULL && unit->note != NULL)
            unit->note(unit->user, kept[i], NULL);
    if (rc == NW_OK && go) {
        rc = measure(bench, unit, work);
        nw_bench_end(bench, &counted);
    }
    for (size_t i = 0; i < unit->count; i++)
        nw_record_free(&unit->records[i]);
    free(kept);
    return rc;
}
