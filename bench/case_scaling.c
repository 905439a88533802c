/* The same collective within each host, all hosts at the same time, and over all ranks: how much of
 * one host's bus bandwidth is left between hosts. Of the hosts the slowest one's numbers are kept:
 * it is the one that all will wait for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/work_coll.h"

struct scaling {
    struct nw_bench *bench;
    int host_ranks;            /* on every host */
    struct nw_comm stand_in;   /* in a dry run: only its size is asked for */
    struct nw_comm *host_comm; /* this rank's host */
};

struct reached { /* of a variant, at the last size; rank 0 */
    double one_busbw, all_busbw;
    uint64_t bytes;
};

static int ranks_on(const struct nw_comm *comm, int host)
{
    int count = 0;

    for (int rank = 0; rank < comm->rank_count; rank++)
        count += comm->host_of_rank[rank] == host;
    return count;
}

static void identify(const struct nw_bench *bench, const struct nw_variant *variant,
                     const struct nw_coll_work *work, struct nw_record *record)
{
    nw_bench_identity(bench, "scaling", record);
    nw_variant_identity(variant, record);
    record->bytes = work->bytes;
    record->rank_count = work->comm->rank_count;
    record->count =
        nw_coll_shape(variant->coll, work->bytes, variant->dtype, record->rank_count).count;
    record->in_place = work->call.in_place;
}

/* The host with the lowest bus bandwidth; one with wrong data before all. */
static nw_rc report_slowest_host(const struct nw_bench *bench, const struct nw_measured *measured,
                                 double bus_factor, struct nw_record *record)
{
    const struct nw_comm *comm = bench->comm;
    const struct nw_record identity = *record;

    for (int host = 0; host < comm->host_count; host++) {
        struct nw_record of_host = identity;
        nw_rc rc;

        snprintf(of_host.host_a, sizeof of_host.host_a, "%s", comm->host_names[host]);
        rc = nw_measured_report(measured, host, comm, bus_factor, &of_host);
        if (rc != NW_OK) {
            nw_record_free(&of_host);
            return rc;
        }
        if (host == 0 || of_host.rc != NW_OK ||
            (record->rc == NW_OK && of_host.busbw_bytes_per_s < record->busbw_bytes_per_s)) {
            if (host > 0)
                nw_record_free(record);
            *record = of_host;
        } else {
            nw_record_free(&of_host);
        }
    }
    return NW_OK;
}

static nw_rc measure(const struct scaling *scaling, const struct nw_coll_work *work, bool within,
                     const char *title, struct nw_record *record)
{
    struct nw_bench *bench = scaling->bench;
    const double bus_factor = work->call.coll->bus_factor(work->comm->rank_count);
    struct nw_measure how = nw_bench_how(bench, work->bytes, title);
    struct nw_measured measured;
    nw_rc rc;

    if (within) {
        how.group_of_rank = bench->comm->host_of_rank;
        how.group_count = bench->comm->host_count;
    }
    NW_TRY(nw_measure(&how, &work->work, &measured));
    rc = within ? report_slowest_host(bench, &measured, bus_factor, record)
                : nw_measured_report(&measured, 0, bench->comm, bus_factor, record);
    nw_measured_free(&measured);
    NW_TRY(rc);
    nw_bench_record(bench, record);
    return NW_OK;
}

static struct nw_call call_of(const struct scaling *scaling, const struct nw_variant *variant,
                              bool within)
{
    return (struct nw_call){.coll = variant->coll,
                            .dtype = variant->dtype,
                            .op = variant->op,
                            .root = within ? variant->root % scaling->host_ranks : variant->root,
                            .in_place = !(scaling->bench->plan->places & NW_PLACE_OUT) &&
                                        !(variant->coll->flags & NW_COLL_NO_INPLACE)};
}

/* `busbw_out`: on rank 0. */
static nw_rc unit(struct scaling *scaling, const struct nw_variant *variant, uint64_t bytes,
                  bool within, double *busbw_out)
{
    struct nw_bench *bench = scaling->bench;
    const struct nw_call call = call_of(scaling, variant, within);
    const struct nw_coll_work work =
        nw_coll_work_of(bench, within ? scaling->host_comm : bench->comm, &call, bytes, 0);
    const struct nw_record *kept = NULL;
    struct nw_record record;
    struct nw_unit unit = {.identities = &record, .identity_count = 1};
    char title[128], size[32];
    bool go;
    nw_rc rc = NW_OK;

    identify(bench, variant, &work, &record);
    if (within)
        record.host_count = 1;
    snprintf(title, sizeof title, "scaling %s %s, %s", variant->coll->name,
             nw_format_bytes(size, work.bytes), within ? "each host alone" : "all hosts");
    unit.title = title;
    nw_coll_work_buffers(&work, &unit.send_bytes, &unit.recv_bytes);
    NW_TRY(nw_bench_begin(bench, &unit, &go, &kept));
    if (go) {
        rc = measure(scaling, &work, within, title, &record);
        kept = &record;
        nw_bench_end(bench, &unit);
    }
    if (rc == NW_OK && kept != NULL)
        *busbw_out = kept->busbw_bytes_per_s;
    nw_record_free(&record);
    return rc;
}

static void tell_efficiency(const struct scaling *scaling, const struct nw_variant *variant,
                            const struct reached *reached)
{
    const int hosts = scaling->bench->comm->host_count;
    char one[32], all[32], size[32];

    if (!(reached->one_busbw > 0) || !(reached->all_busbw > 0))
        return;
    nw_bench_finding(
        scaling->bench, NW_FINDING_INFO, "scaling-efficiency", variant->coll->name, NULL,
        "over %d hosts %.1f %% of one host's bus bandwidth is left at %s: %s of "
        "%s GB/s",
        hosts, 100 * reached->all_busbw / reached->one_busbw, nw_format_bytes(size, reached->bytes),
        nw_format_gb_per_s(all, reached->all_busbw), nw_format_gb_per_s(one, reached->one_busbw));
}

struct sweep {
    struct scaling *scaling;
    const struct nw_variant *variant;
    const uint64_t *sizes;
    size_t count;
};

static nw_rc sweep_sizes(void *user)
{
    const struct sweep *sweep = user;
    struct reached last = {.one_busbw = NAN, .all_busbw = NAN};

    for (size_t i = 0; i < sweep->count; i++) {
        const uint64_t bytes = sweep->sizes[i];
        struct reached reached = {.one_busbw = NAN, .all_busbw = NAN, .bytes = bytes};

        NW_TRY(unit(sweep->scaling, sweep->variant, bytes, true, &reached.one_busbw));
        NW_TRY(unit(sweep->scaling, sweep->variant, bytes, false, &reached.all_busbw));
        if (reached.bytes > last.bytes)
            last = reached;
    }
    tell_efficiency(sweep->scaling, sweep->variant, &last);
    return NW_OK;
}

static nw_rc run_variant(struct nw_bench *bench, const struct nw_variant *variant, void *user)
{
    struct scaling *scaling = user;
    uint64_t *sizes;
    size_t count, left_out;
    nw_rc rc = NW_OK;

    NW_TRY(nw_variant_sizes(bench, variant, bench->comm->rank_count, &sizes, &count, &left_out));
    if (count > 0 && nw_variant_supported(bench, variant, sizes[0]))
        rc = nw_bench_series(
            bench, sweep_sizes,
            &(struct sweep){
                .scaling = scaling, .variant = variant, .sizes = sizes, .count = count});
    free(sizes);
    return rc;
}

/* Why there is nothing to compare; NULL: there is. */
static const char *obstacle(const struct nw_comm *comm)
{
    const int ranks = ranks_on(comm, 0);

    if (comm->host_count < 2)
        return "all ranks are on one host: there is nothing to compare it with";
    for (int host = 1; host < comm->host_count; host++)
        if (ranks_on(comm, host) != ranks)
            return "the hosts have different numbers of ranks: one host's bus bandwidth is not "
                   "comparable with another's";
    if (ranks < 2)
        return "there is one rank on each host: nothing can be measured within a host";
    return NULL;
}

nw_rc nw_case_scaling(struct nw_bench *bench)
{
    struct nw_comm *comm = bench->comm;
    const char *why_not = obstacle(comm);
    struct scaling scaling = {.bench = bench};
    nw_rc rc;

    if (why_not != NULL) {
        nw_bench_finding(bench, NW_FINDING_INFO, "no-scaling", "",
                         "two hosts and more, with two ranks and more on each", "%s", why_not);
        return NW_OK;
    }
    scaling.host_ranks = ranks_on(comm, 0);
    scaling.stand_in = (struct nw_comm){.rank_count = scaling.host_ranks};
    scaling.host_comm = &scaling.stand_in;
    if (bench->dry)
        return nw_for_each_variant(bench, comm->rank_count, run_variant, &scaling);
    NW_TRY(nw_agree(comm, comm->ops->split(comm, comm->host_index, &scaling.host_comm)));
    rc = nw_for_each_variant(bench, comm->rank_count, run_variant, &scaling);
    nw_comm_close(scaling.host_comm);
    return rc;
}
