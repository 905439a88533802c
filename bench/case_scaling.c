/* The same collective over one host, 2, 4, ... hosts and all of them, with the same number of ranks
 * on each: how much of one host's bus bandwidth is left between hosts. Of so many hosts there are
 * as many groups as the run has room for, side by side and all at the same time; the slowest one's
 * numbers are kept: it is the one that all will wait for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/ports.h"
#include "bench/work_coll.h"

#define LEVELS_MAX 34 /* powers of two that an int holds, and the whole */

struct level { /* groups of so many hosts */
    int host_count, group_count;
    int rank_count;          /* of a group */
    int *group_of_rank;      /* -1: idles, as the hosts left over are too few for a group */
    struct nw_comm *comm;    /* this rank's group; NULL: it idles, or a dry run */
    struct nw_comm stand_in; /* where there is none: only its size is asked for */
};

struct scaling {
    struct nw_bench *bench;
    struct nw_ports_use use; /* of all hosts at the largest size of a variant; rank 0 */
    uint64_t use_bytes;      /* 0: nothing is known */
    double use_time_ns;
    int host_ranks; /* on every host */
    struct level levels[LEVELS_MAX];
    int level_count;
};

static int ranks_on(const struct nw_comm *comm, int host)
{
    int count = 0;

    for (int rank = 0; rank < comm->rank_count; rank++)
        count += comm->host_of_rank[rank] == host;
    return count;
}

/* ---- the work ---------------------------------------------------------------------------------
 */

struct idle_work {       /* of a rank without a group: it keeps the others' barriers */
    struct nw_work work; /* first */
    const struct nw_bench *bench;
    uint64_t bytes;
};

static nw_rc idle_call(const struct nw_work *base, uint64_t index)
{
    (void)base;
    (void)index;
    return NW_OK;
}

static void idle_fill(const struct nw_work *base, uint64_t round)
{
    (void)base;
    (void)round;
}

static uint64_t idle_check(const struct nw_work *base, uint64_t round, struct nw_wrong *first_out)
{
    (void)base;
    (void)round;
    (void)first_out;
    return 0;
}

static nw_rc idle_time(const struct nw_work *base, uint64_t index, uint32_t calls, double *ns_out)
{
    const struct idle_work *work = (const struct idle_work *)base;
    struct nw_gated gated = nw_bench_gate(work->bench, work->bytes, calls);

    gated.stream = NULL;
    return nw_gated_time(&gated, index, calls, ns_out);
}

static struct idle_work idle_beside(const struct nw_coll_work *work)
{
    struct idle_work idle = {.work = work->work, .bench = work->bench, .bytes = work->bytes};

    idle.work.call = idle_call;
    idle.work.fill = idle_fill;
    idle.work.check = idle_check;
    if (work->work.time != NULL)
        idle.work.time = idle_time;
    return idle;
}

/* ---- a measurement ----------------------------------------------------------------------------
 */

static void identify(const struct nw_bench *bench, const struct nw_variant *variant,
                     const struct level *level, const struct nw_coll_work *work,
                     struct nw_record *record)
{
    nw_bench_identity(bench, "scaling", record);
    nw_variant_identity(variant, record);
    record->bytes = work->bytes;
    record->rank_count = level->rank_count;
    record->host_count = level->host_count;
    record->count =
        nw_coll_shape(variant->coll, work->bytes, variant->dtype, record->rank_count).count;
    record->in_place = work->call.in_place;
}

/* Its first host and its last; of one group of all hosts none. */
static void name_group(const struct nw_comm *comm, const struct level *level, int group,
                       struct nw_record *record)
{
    const int first = group * level->host_count, last = first + level->host_count - 1;

    if (level->host_count == comm->host_count)
        return;
    snprintf(record->host_a, sizeof record->host_a, "%s", comm->host_names[first]);
    if (last > first)
        snprintf(record->host_b, sizeof record->host_b, "%s", comm->host_names[last]);
}

struct measurement { /* of one unit, all groups */
    struct nw_measured measured;
    struct nw_ports_host *wires; /* rank 0, a host each; NULL: not looked at */
};

static void add_wire(struct scaling *scaling, const struct measurement *made,
                     const struct level *level, int group, struct nw_record *record)
{
    struct nw_ports_use use;

    nw_ports_use(made->wires, group * level->host_count, level->host_count, &use);
    if (use.host < 0 || !(record->time_ns.median > 0))
        return;
    record->wire_bytes_per_s = use.call_bytes / record->time_ns.median * 1e9;
    record->nic_bytes_per_s = use.bits_per_s > 0 ? use.bits_per_s / 8 : NAN;
    record->port_share = use.busiest_share;
    record->port_count = use.port_count;
    record->used_port_count = use.used_count;
    if (level->host_count < scaling->bench->comm->host_count || record->bytes < scaling->use_bytes)
        return;
    scaling->use = use;
    scaling->use_bytes = record->bytes;
    scaling->use_time_ns = record->time_ns.median;
}

/* The group with the lowest bus bandwidth; one with wrong data before all. */
static nw_rc report_slowest(struct scaling *scaling, const struct level *level,
                            const struct measurement *made, double bus_factor,
                            struct nw_record *record)
{
    const struct nw_bench *bench = scaling->bench;
    int slowest = 0;
    const struct nw_record identity = *record;

    for (int group = 0; group < level->group_count; group++) {
        struct nw_record of_group = identity;
        nw_rc rc;

        name_group(bench->comm, level, group, &of_group);
        rc = nw_measured_report(&made->measured, group, bench->comm, bus_factor, &of_group);
        if (rc != NW_OK) {
            nw_record_free(&of_group);
            return rc;
        }
        if (group == 0 || of_group.rc != NW_OK ||
            (record->rc == NW_OK && of_group.busbw_bytes_per_s < record->busbw_bytes_per_s)) {
            if (group > 0)
                nw_record_free(record);
            *record = of_group;
            slowest = group;
        } else {
            nw_record_free(&of_group);
        }
    }
    add_wire(scaling, made, level, slowest, record);
    return NW_OK;
}

/* Threads of one process have no wire between them, and a double's GPUs none either. */
static bool has_wires(const struct nw_bench *bench, const struct level *level, uint64_t bytes)
{
    return level->host_count > 1 && bytes >= NW_PORTS_BYTES_MIN && !bench->comm->simulated &&
           !bench->comm->ops->simulated;
}

static nw_rc take(const struct scaling *scaling, const struct level *level,
                  const struct nw_coll_work *work, const char *title, struct measurement *made)
{
    struct nw_bench *bench = scaling->bench;
    const struct idle_work idle = idle_beside(work);
    struct nw_ports_watch watch = nw_ports_watch(level->comm != NULL ? &work->work : &idle.work);
    struct nw_measure how = nw_bench_how(bench, work->bytes, title);

    how.group_of_rank = level->group_of_rank;
    how.group_count = level->group_count;
    nw_ports_begin(bench->comm, &watch);
    NW_TRY(nw_measure(&how, &watch.work, &made->measured));
    if (has_wires(bench, level, work->bytes))
        return nw_ports_gather(&watch, bench->comm, &made->wires);
    return NW_OK;
}

static nw_rc measure(struct scaling *scaling, const struct level *level,
                     const struct nw_coll_work *work, const char *title, struct nw_record *record)
{
    const double bus_factor = work->call.coll->bus_factor(level->rank_count);
    struct measurement made = {.wires = NULL};
    nw_rc rc = take(scaling, level, work, title, &made);

    if (rc == NW_OK)
        rc = report_slowest(scaling, level, &made, bus_factor, record);
    free(made.wires);
    nw_measured_free(&made.measured);
    NW_TRY(rc);
    nw_bench_record(scaling->bench, record);
    return NW_OK;
}

static struct nw_call call_of(const struct scaling *scaling, const struct nw_variant *variant,
                              const struct level *level)
{
    return (struct nw_call){.coll = variant->coll,
                            .dtype = variant->dtype,
                            .op = variant->op,
                            .root = variant->root % level->rank_count,
                            .in_place = !(scaling->bench->plan->places & NW_PLACE_OUT) &&
                                        !(variant->coll->flags & NW_COLL_NO_INPLACE)};
}

static void title_of(const struct level *level, const struct nw_variant *variant, uint64_t bytes,
                     char title[128])
{
    char size[32], hosts[64] = "each host alone";

    if (level->host_count > 1)
        snprintf(hosts, sizeof hosts, "%d hosts%s", level->host_count,
                 level->group_count > 1 ? " a group" : "");
    snprintf(title, 128, "scaling %s %s, %s", variant->coll->name, nw_format_bytes(size, bytes),
             hosts);
}

/* `busbw_out`: on rank 0. */
static nw_rc unit(struct scaling *scaling, struct level *level, const struct nw_variant *variant,
                  uint64_t bytes, double *busbw_out)
{
    struct nw_bench *bench = scaling->bench;
    const struct nw_call call = call_of(scaling, variant, level);
    const struct nw_coll_work work = nw_coll_work_of(
        bench, level->comm != NULL ? level->comm : &level->stand_in, &call, bytes, 0);
    const struct nw_record *kept = NULL;
    struct nw_record record;
    struct nw_unit unit = {.identities = &record, .identity_count = 1};
    char title[128];
    bool go;
    nw_rc rc = NW_OK;

    identify(bench, variant, level, &work, &record);
    title_of(level, variant, work.bytes, title);
    unit.title = title;
    nw_coll_work_buffers(&work, &unit.send_bytes, &unit.recv_bytes);
    NW_TRY(nw_bench_begin(bench, &unit, &go, &kept));
    if (go) {
        rc = measure(scaling, level, &work, title, &record);
        kept = &record;
        nw_bench_end(bench, &unit);
    }
    if (rc == NW_OK && kept != NULL)
        *busbw_out = kept->busbw_bytes_per_s;
    nw_record_free(&record);
    return rc;
}

/* ---- a curve for each number of hosts ----------------------------------------------------------
 */

struct reached {              /* of a variant, at its largest size; rank 0 */
    double busbw[LEVELS_MAX]; /* by level; NAN */
    uint64_t bytes;
};

static void tell_efficiency(const struct scaling *scaling, const struct nw_variant *variant,
                            const struct reached *reached)
{
    const int last = scaling->level_count - 1;
    const int first_hosts = scaling->levels[0].host_count;
    const double first = reached->busbw[0], all = reached->busbw[last];
    char between[256] = "", base[48] = "one host's", one[32], rate[32], size[32];
    size_t length = 0;

    if (!(first > 0) || !(all > 0))
        return;
    if (first_hosts > 1)
        snprintf(base, sizeof base, "%d hosts'", first_hosts);
    for (int i = 1; i < last && length < sizeof between; i++)
        if (reached->busbw[i] > 0)
            length += (size_t)snprintf(between + length, sizeof between - length, "%s %d %.1f %%",
                                       length == 0 ? "; over" : ",", scaling->levels[i].host_count,
                                       100 * reached->busbw[i] / first);
    nw_bench_finding(scaling->bench, NW_FINDING_INFO, "scaling-efficiency", variant->coll->name,
                     NULL,
                     "over %d hosts %.1f %% of %s bus bandwidth is left at %s: %s of %s GB/s%s",
                     scaling->levels[last].host_count, 100 * all / first, base,
                     nw_format_bytes(size, reached->bytes), nw_format_gb_per_s(rate, all),
                     nw_format_gb_per_s(one, first), between);
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
    struct scaling *scaling = sweep->scaling;
    struct reached last = {.bytes = 0};

    scaling->use_bytes = 0;
    for (size_t i = 0; i < sweep->count; i++) {
        struct reached reached = {.bytes = sweep->sizes[i]};

        for (int level = 0; level < scaling->level_count; level++) {
            reached.busbw[level] = NAN;
            NW_TRY(unit(scaling, &scaling->levels[level], sweep->variant, sweep->sizes[i],
                        &reached.busbw[level]));
        }
        if (reached.bytes > last.bytes)
            last = reached;
    }
    tell_efficiency(scaling, sweep->variant, &last);
    if (scaling->use_bytes > 0)
        nw_ports_tell(scaling->bench, sweep->variant->coll->name, &scaling->use, scaling->use_bytes,
                      scaling->use_time_ns);
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

/* ---- the groups -------------------------------------------------------------------------------
 */

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
    if (ranks < 2 && comm->host_count < 3)
        return "there is one rank on each of two hosts: nothing can be measured within a host";
    return NULL;
}

/* Hosts in the order of their ranks, as the launcher dealt them: neighbours make a group. */
static nw_rc deal(struct scaling *scaling, struct level *level)
{
    const struct nw_comm *comm = scaling->bench->comm;

    level->group_count = comm->host_count / level->host_count;
    level->rank_count = level->host_count * scaling->host_ranks;
    level->stand_in = (struct nw_comm){.rank_count = level->rank_count};
    level->group_of_rank = calloc((size_t)comm->rank_count, sizeof *level->group_of_rank);
    if (level->group_of_rank == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the groups of %d ranks", comm->rank_count);
    for (int rank = 0; rank < comm->rank_count; rank++) {
        const int group = comm->host_of_rank[rank] / level->host_count;

        level->group_of_rank[rank] = group < level->group_count ? group : -1;
    }
    return NW_OK;
}

/* 1, 2, 4, ... and all; a group has two ranks or more. */
static nw_rc find_levels(struct scaling *scaling)
{
    const int hosts = scaling->bench->comm->host_count;
    int count = scaling->host_ranks > 1 ? 1 : 2;

    while (scaling->level_count < LEVELS_MAX) {
        struct level *level = &scaling->levels[scaling->level_count++];

        level->host_count = count < hosts ? count : hosts;
        NW_TRY(deal(scaling, level));
        if (count >= hosts)
            break;
        count = count <= hosts / 2 ? 2 * count : hosts;
    }
    return NW_OK;
}

static nw_rc open_groups(struct scaling *scaling)
{
    struct nw_comm *comm = scaling->bench->comm;

    for (int i = 0; i < scaling->level_count; i++) {
        struct level *level = &scaling->levels[i];

        if (level->host_count == comm->host_count)
            level->comm = comm;
        else
            NW_TRY(nw_agree(
                comm, comm->ops->split(comm, level->group_of_rank[comm->rank], &level->comm)));
    }
    return NW_OK;
}

static void close_groups(struct scaling *scaling)
{
    for (int i = 0; i < scaling->level_count; i++) {
        if (scaling->levels[i].comm != scaling->bench->comm)
            nw_comm_close(scaling->levels[i].comm);
        free(scaling->levels[i].group_of_rank);
    }
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
    rc = find_levels(&scaling);
    if (!bench->dry)
        rc = nw_agree(comm, rc);
    if (rc == NW_OK && !bench->dry)
        rc = open_groups(&scaling);
    if (rc == NW_OK)
        rc = nw_for_each_variant(bench, comm->rank_count, run_variant, &scaling);
    close_groups(&scaling);
    return rc;
}
