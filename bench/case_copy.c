/* Copies between pinned host memory and a GPU, by its copy engines: one way size by size, both ways
 * at once, one GPU after the other; then all GPUs of a host at once, where a shared uplink shows.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/copies_judge.h"
#include "bench/device_work.h"

#define LATENCY_BYTES 8
#define SIZE_MIN      (64u << 10)
#define SIZE_LARGEST  (256u << 20)
#define SIZE_FACTOR   16
#define SIZES         8
#define BUDGET_NS     50e6
/* From here on the time of a copy is that of its bytes: 1 ms over Gen3 x16. */
#define JUDGED_BYTES (16u << 20)
/* Of what a GPU has alone: less is a shared uplink; less than that is worth a warning. */
#define SHARED_SHARE 0.9
#define SHARED_BADLY 0.6

struct way {
    const char *name, *from, *to;
    bool to_device;
};
static const struct way to_device = {"h2d", "host", "GPU", true};
static const struct way to_host = {"d2h", "GPU", "host", false};

struct copies {
    struct nw_bench *bench;
    const struct way *way;
    struct nw_devices devices;
    uint64_t sizes[SIZES]; /* ascending */
    size_t size_count;
    struct nw_record *records; /* a rank each */
    int *group_of_rank;
    /* of each rank, at the largest size; on rank 0 */
    double *alone, *together;
    struct nw_pcie_link *pcie;
    void *on_device[2], *on_host[2]; /* for the measured way; for the other one */
};

/* ---- the work ----------------------------------------------------------------------------------
 */

struct copy_work {
    struct nw_device_work base; /* first */
    const struct way *way;
    void *to[2];
    const void *from[2]; /* measured, other way */
    uint64_t bytes;
};

static nw_rc queue_copy(struct nw_device_work *base, uint64_t index)
{
    const struct copy_work *work = (const struct copy_work *)base;

    (void)index;
    return base->device->dev->ops->copy(base->device->stream, work->to[0], work->from[0],
                                        work->bytes);
}

static nw_rc queue_back(struct nw_device_work *base, uint64_t index)
{
    const struct copy_work *work = (const struct copy_work *)base;

    (void)index;
    return base->device->dev->ops->copy(base->back, work->to[1], work->from[1], work->bytes);
}

static nw_rc prepare(struct nw_device_work *base, uint64_t round)
{
    const struct copy_work *work = (const struct copy_work *)base;

    NW_TRY(nw_device_pattern(base->device, base->bench->comm->rank, round));
    return nw_device_fill(base->device, work->way->to_device ? NW_SPACE_PINNED : NW_SPACE_DEVICE,
                          (void *)(uintptr_t)work->from[0], work->bytes);
}

static nw_rc verify(struct nw_device_work *base, uint64_t round, uint64_t *wrong_out,
                    struct nw_wrong *first_out)
{
    const struct copy_work *work = (const struct copy_work *)base;

    (void)round;
    return nw_device_check(base->device, work->way->to_device ? NW_SPACE_DEVICE : NW_SPACE_PINNED,
                           work->to[0], work->bytes, wrong_out, first_out);
}

static struct copy_work work_of(struct copies *copies, uint64_t bytes, bool both)
{
    const bool down = copies->way->to_device;
    struct copy_work work = {
        .base = {.queue = queue_copy,
                 .queue_back = both ? queue_back : NULL,
                 .prepare = prepare,
                 .verify = verify},
        .way = copies->way,
        .to = {down ? copies->on_device[0] : copies->on_host[0],
               down ? copies->on_host[1] : copies->on_device[1]},
        .from = {down ? copies->on_host[0] : copies->on_device[0],
                 down ? copies->on_device[1] : copies->on_host[1]},
        .bytes = bytes,
    };

    return work;
}

/* ---- a measurement -----------------------------------------------------------------------------
 */

static double ceiling_of(void *user, const struct nw_record *record,
                         const struct nw_pcie_link *pcie)
{
    (void)user;
    return nw_pcie_link_ceiling(&pcie[record->peer_a]);
}

static uint64_t largest(const struct copies *copies)
{
    return copies->sizes[copies->size_count - 1];
}

static void note(void *user, const struct nw_record *record, const struct nw_pcie_link *pcie)
{
    struct copies *copies = user;

    if (strcmp(record->collective, "copy") != 0 || record->bytes != largest(copies))
        return;
    if (record->rank_count > 1) {
        copies->together[record->peer_a] = record->algbw_bytes_per_s;
        return;
    }
    copies->alone[record->peer_a] = record->algbw_bytes_per_s;
    if (pcie != NULL)
        copies->pcie[record->peer_a] = pcie[record->peer_a];
}

static int ranks_of_host(const struct nw_comm *comm, int host)
{
    int count = 0;

    for (int rank = 0; rank < comm->rank_count; rank++)
        count += comm->host_of_rank[rank] == host;
    return count;
}

static int most_ranks(const struct nw_comm *comm)
{
    int most = 0;

    for (int host = 0; host < comm->host_count; host++)
        most = most > ranks_of_host(comm, host) ? most : ranks_of_host(comm, host);
    return most;
}

/* Position of a rank among those of its host. */
static int place_of(const struct nw_comm *comm, int rank)
{
    int place = 0;

    for (int before = 0; before < rank; before++)
        place += comm->host_of_rank[before] == comm->host_of_rank[rank];
    return place;
}

/* The ranks that work: of each host the one at `turn`, or with turn -1 all of hosts with several.
 * Returns how many. */
static size_t choose(struct copies *copies, int turn, const char *collective, uint64_t bytes)
{
    const struct nw_comm *comm = copies->bench->comm;
    size_t count = 0;

    for (int rank = 0; rank < comm->rank_count; rank++) {
        const int here = ranks_of_host(comm, comm->host_of_rank[rank]);

        copies->group_of_rank[rank] = -1;
        if (turn >= 0 ? place_of(comm, rank) != turn : here < 2)
            continue;
        nw_device_identity(copies->bench, copies->way->name, collective, "ce", bytes, rank, -1,
                           &copies->records[count]);
        copies->records[count].rank_count = turn >= 0 ? 1 : here;
        copies->group_of_rank[rank] = (int)count++;
    }
    return count;
}

static nw_rc unit(struct copies *copies, int turn, const char *collective, uint64_t bytes)
{
    struct nw_bench *bench = copies->bench;
    struct copy_work work = work_of(copies, bytes, strcmp(collective, "copy_both") == 0);
    char title[128], size[32], who[32] = "all GPUs";
    struct nw_device_unit unit = {
        .records = copies->records,
        .group_of_rank = copies->group_of_rank,
        .bytes = bytes,
        .title = title,
        .budget_ns = BUDGET_NS,
        .judged = turn >= 0 && bytes == largest(copies) && bytes >= JUDGED_BYTES,
        .ceiling = strcmp(collective, "latency") != 0 ? ceiling_of : NULL,
        .note = note,
        .user = copies,
    };

    unit.count = choose(copies, turn, collective, bytes);
    if (turn >= 0)
        snprintf(who, sizeof who, "GPU %d of each host", turn);
    snprintf(title, sizeof title, "%s %s %s, %s", copies->way->name, collective,
             nw_format_bytes(size, bytes), who);
    nw_device_work_init(&work.base, bench,
                        copies->group_of_rank[bench->comm->rank] >= 0 ? &copies->devices.own
                                                                      : NULL);
    return nw_device_measure(bench, &unit, &work.base);
}

static nw_rc measure_all(struct copies *copies)
{
    const int turns = most_ranks(copies->bench->comm);

    for (int turn = 0; turn < turns; turn++) {
        NW_TRY(unit(copies, turn, "latency", LATENCY_BYTES));
        for (size_t i = 0; i < copies->size_count; i++)
            NW_TRY(unit(copies, turn, "copy", copies->sizes[i]));
        NW_TRY(unit(copies, turn, "copy_both", largest(copies)));
    }
    return turns > 1 ? unit(copies, -1, "copy", largest(copies)) : NW_OK;
}

/* ---- afterwards --------------------------------------------------------------------------------
 */

static bool is_degraded(const struct nw_pcie_link *link)
{
    return link->generation >= 0 && link->width >= 0 &&
           (link->generation < link->max_generation || link->width < link->max_width);
}

static void tell_link(struct copies *copies, int rank)
{
    const struct nw_pcie_link *link = &copies->pcie[rank];
    char where[NW_COMM_RANK_TEXT], rate[32];

    if (is_degraded(link))
        nw_bench_finding(
            copies->bench, NW_FINDING_WARN, "pcie-link",
            nw_comm_rank_text(copies->bench->comm, rank, where),
            "reseat the card or its riser, look at the slot's setting in the BIOS, or ask the "
            "vendor",
            "its PCIe link runs at Gen%d x%d while data is copied, GPU and slot can do Gen%d x%d: "
            "%s reaches %s GB/s",
            link->generation, link->width, link->max_generation, link->max_width, copies->way->name,
            nw_format_gb_per_s(rate, copies->alone[rank]));
}

static double mean(const struct copies *copies, const double *rates, const bool *in)
{
    double sum = 0;
    int count = 0;

    for (int rank = 0; rank < copies->bench->comm->rank_count; rank++)
        if (in[rank]) {
            sum += rates[rank];
            count++;
        }
    return sum / count;
}

static void tell_shared(struct copies *copies, int host, bool *in)
{
    const struct nw_comm *comm = copies->bench->comm;
    char ranks[128], alone[32], together[32];
    bool any = false;
    double share;

    for (int rank = 0; rank < comm->rank_count; rank++) {
        in[rank] = comm->host_of_rank[rank] == host &&
                   copies->together[rank] < SHARED_SHARE * copies->alone[rank];
        any |= in[rank];
    }
    if (!any)
        return;
    share = mean(copies, copies->together, in) / mean(copies, copies->alone, in);
    nw_bench_finding(
        copies->bench, share < SHARED_BADLY ? NW_FINDING_WARN : NW_FINDING_INFO, "shared-uplink",
        comm->host_names[host],
        "nodeworth topo shows which GPUs share a PCIe switch; count on the lower rate "
        "for data loading, offload and checkpoints",
        "%s (%s to %s): %s GB/s each when all %d GPUs copy at once, %s GB/s alone: "
        "the GPUs of rank%s %s share a PCIe switch, a root complex or host memory",
        copies->way->name, copies->way->from, copies->way->to,
        nw_format_gb_per_s(together, mean(copies, copies->together, in)), ranks_of_host(comm, host),
        nw_format_gb_per_s(alone, mean(copies, copies->alone, in)),
        strpbrk(nw_index_list(ranks, sizeof ranks, in, (size_t)comm->rank_count), ",-") != NULL
            ? "s"
            : "",
        ranks);
}

static nw_rc tell_slow(struct copies *copies)
{
    const size_t count = (size_t)copies->bench->comm->rank_count;
    struct nw_gpu_rate *rates = calloc(count, sizeof *rates);
    double *usual = calloc(count, sizeof *usual);
    nw_rc rc = NW_OK;

    if (rates == NULL || usual == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory to compare %zu GPUs", count);
    for (size_t i = 0; rc == NW_OK && i < count; i++)
        rates[i] = (struct nw_gpu_rate){copies->devices.about[i].model, copies->alone[i]};
    if (rc == NW_OK)
        rc = nw_gpus_judge(rates, count, NW_SLOW_GPU_BUS_REL, usual);
    for (size_t i = 0; rc == NW_OK && i < count; i++) {
        char where[NW_COMM_RANK_TEXT], rate[32], text[32];

        if (!isnan(usual[i]) && !is_degraded(&copies->pcie[i])) /* which is the cause */
            nw_bench_finding(copies->bench, NW_FINDING_WARN, "gpu-slow",
                             nw_comm_rank_text(copies->bench->comm, (int)i, where),
                             "look at its PCIe link, its slot, and on which socket its rank runs",
                             "%s (%s to %s): %s GB/s, where the median of all is %s GB/s",
                             copies->way->name, copies->way->from, copies->way->to,
                             nw_format_gb_per_s(rate, rates[i].bytes_per_s),
                             nw_format_gb_per_s(text, usual[i]));
    }
    free(usual);
    free(rates);
    return rc;
}

static bool is_planned(const struct nw_bench *bench, const char *name)
{
    for (size_t i = 0; i < nw_case_count; i++)
        if (strcmp(nw_cases[i].name, name) == 0)
            return bench->plan->cases & 1u << i;
    return false;
}

static nw_rc tell(struct copies *copies)
{
    const struct nw_comm *comm = copies->bench->comm;
    bool *in;

    if (comm->rank != 0)
        return NW_OK;
    in = calloc((size_t)comm->rank_count, sizeof *in);
    if (in == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the ranks of a host");
    /* a link is the same in both directions: told once */
    if (copies->way->to_device || !is_planned(copies->bench, to_device.name))
        for (int rank = 0; rank < comm->rank_count; rank++)
            tell_link(copies, rank);
    for (int host = 0; host < comm->host_count; host++)
        tell_shared(copies, host, in);
    free(in);
    return tell_slow(copies);
}

/* ---- memory ------------------------------------------------------------------------------------
 */

/* From SIZE_MIN on, by SIZE_FACTOR; the last one is `most` itself. */
static void set_sizes(struct copies *copies, uint64_t most)
{
    copies->size_count = 0;
    for (uint64_t bytes = SIZE_MIN; bytes < most; bytes *= SIZE_FACTOR)
        copies->sizes[copies->size_count++] = bytes;
    copies->sizes[copies->size_count++] = most;
}

static uint64_t wanted_bytes(const struct nw_bench *bench)
{
    const uint64_t most =
        bench->plan->max_bytes < SIZE_LARGEST ? bench->plan->max_bytes : SIZE_LARGEST;

    return most < NW_DEVICE_WORD ? NW_DEVICE_WORD : most / NW_DEVICE_WORD * NW_DEVICE_WORD;
}

static nw_rc allocate(struct copies *copies)
{
    struct nw_dev *dev = copies->devices.own.dev;

    for (int i = 0; i < 2; i++) {
        NW_TRY(dev->ops->alloc(dev, NW_SPACE_DEVICE, largest(copies), &copies->on_device[i]));
        NW_TRY(dev->ops->alloc(dev, NW_SPACE_PINNED, largest(copies), &copies->on_host[i]));
    }
    return NW_OK;
}

static void release(struct copies *copies)
{
    struct nw_dev *dev = copies->devices.own.dev;

    for (int i = 0; i < 2; i++) {
        dev->ops->free(dev, NW_SPACE_DEVICE, copies->on_device[i]);
        dev->ops->free(dev, NW_SPACE_PINNED, copies->on_host[i]);
        copies->on_device[i] = copies->on_host[i] = NULL;
    }
}

static nw_rc run_on_devices(struct copies *copies)
{
    struct nw_bench *bench = copies->bench;
    uint64_t bytes;
    nw_rc rc;

    NW_TRY(nw_device_fit(bench, &copies->devices, copies->way->name, wanted_bytes(bench), 2, 2,
                         &bytes));
    set_sizes(copies, bytes);
    rc = nw_agree(bench->comm, allocate(copies));
    if (rc == NW_OK)
        rc = measure_all(copies);
    if (rc == NW_OK)
        rc = nw_agree(bench->comm, tell(copies));
    if (rc == NW_OK || !nw_bench_is_broken(rc)) /* else work may still stand on it */
        release(copies);
    return rc;
}

static nw_rc walk(void *user)
{
    struct copies *copies = user;
    nw_rc rc;

    if (copies->bench->dry) {
        set_sizes(copies, wanted_bytes(copies->bench));
        return measure_all(copies);
    }
    NW_TRY(nw_devices_open(copies->bench, &copies->devices));
    rc = run_on_devices(copies);
    nw_devices_close(&copies->devices);
    return rc;
}

static nw_rc run(struct nw_bench *bench, const struct way *way)
{
    const size_t ranks = (size_t)bench->comm->rank_count;
    struct copies copies = {.bench = bench, .way = way};
    nw_rc rc;

    if (!nw_device_is_here(bench, way->name))
        return NW_OK;
    copies.records = calloc(ranks, sizeof *copies.records);
    copies.group_of_rank = calloc(ranks, sizeof *copies.group_of_rank);
    copies.alone = calloc(ranks, sizeof *copies.alone);
    copies.together = calloc(ranks, sizeof *copies.together);
    copies.pcie = calloc(ranks, sizeof *copies.pcie);
    if (copies.records == NULL || copies.group_of_rank == NULL || copies.alone == NULL ||
        copies.together == NULL || copies.pcie == NULL) {
        rc = nw_fail(NW_ENOMEM, "no memory for the copies of %zu ranks", ranks);
    } else {
        for (size_t rank = 0; rank < ranks; rank++) {
            copies.alone[rank] = copies.together[rank] = NAN;
            copies.pcie[rank] = (struct nw_pcie_link){-1, -1, -1, -1};
        }
        rc = nw_bench_series(bench, walk, &copies);
    }
    free(copies.pcie);
    free(copies.together);
    free(copies.alone);
    free(copies.group_of_rank);
    free(copies.records);
    return rc;
}

nw_rc nw_case_h2d(struct nw_bench *bench)
{
    return run(bench, &to_device);
}

nw_rc nw_case_d2h(struct nw_bench *bench)
{
    return run(bench, &to_host);
}
