#include "bench/nics_at_once.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/agree.h"

static void end_round(struct nw_at_once *once)
{
    nw_nic_links_close(once->links);
    free(once->round.pairs);
    free(once->group_of_pair);
    free(once->is_told);
    free(once->records);
    free(once->kept);
    once->links = NULL;
    once->round = (struct nw_nic_round){0};
    once->group_of_pair = NULL;
    once->is_told = NULL;
    once->records = NULL;
    once->kept = NULL;
}

/* Room for `count` pairs; the caller puts them in. */
nw_rc nw_at_once_begin(struct nw_at_once *once, size_t count)
{
    end_round(once);
    once->round.pairs = calloc(count + 1, sizeof *once->round.pairs);
    once->group_of_pair = calloc(count + 1, sizeof *once->group_of_pair);
    once->is_told = calloc(count + 1, sizeof *once->is_told);
    once->records = calloc(count + 1, sizeof *once->records);
    once->kept = calloc(count + 1, sizeof *once->kept);
    if (once->round.pairs == NULL || once->group_of_pair == NULL || once->is_told == NULL ||
        once->records == NULL || once->kept == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu pairs of NICs", count);
    return NW_OK;
}

void nw_at_once_add(struct nw_at_once *once, int a, int b)
{
    once->round.pairs[once->round.count++] =
        (struct nw_nic_pair){.a = a, .b = b, .rail = NW_RAIL_PLACE};
}

/* ---- a unit ------------------------------------------------------------------------------------
 */

size_t nw_at_once_pairs_in(const struct nw_at_once *once, int group)
{
    size_t count = 0;

    for (size_t pair = 0; pair < once->round.count; pair++)
        count += once->group_of_pair[pair] == group;
    return count;
}

size_t nw_at_once_first_of(const struct nw_at_once *once, int group)
{
    size_t pair = 0;

    while (once->group_of_pair[pair] != group)
        pair++;
    return pair;
}

/* "mlx5_0/1", or of several "8 NICs". */
static void name_end(const struct nw_at_once *once, int group, bool is_b, char name[72])
{
    const size_t count = nw_at_once_pairs_in(once, group);
    const struct nw_nic_pair *pair = &once->round.pairs[nw_at_once_first_of(once, group)];

    if (count == 1 || (is_b && once->into_one))
        snprintf(name, 72, "%s", once->nics.items[is_b ? pair->b : pair->a].name);
    else
        snprintf(name, 72, "%zu NICs", count);
}

static void identify(const struct nw_at_once *once, const struct nw_nic_kind *kind, int group,
                     struct nw_record *record)
{
    const struct nw_comm *comm = once->bench->comm;
    const struct nw_nic_pair *pair = &once->round.pairs[nw_at_once_first_of(once, group)];
    const struct nw_nic *a = &once->nics.items[pair->a], *b = &once->nics.items[pair->b];
    const bool all_hosts = once->into_one && nw_at_once_pairs_in(once, group) > 1;

    nw_bench_identity(once->bench, once->case_name, record);
    snprintf(record->collective, sizeof record->collective, "%s", kind->name);
    snprintf(record->lane, sizeof record->lane, "verbs");
    snprintf(record->dtype, sizeof record->dtype, "none");
    snprintf(record->memory, sizeof record->memory, "host");
    record->host_count = all_hosts ? comm->host_count : a->host == b->host ? 1 : 2;
    record->rank_count = record->host_count;
    record->bytes = kind->small ? NW_NIC_SMALL_BYTES : once->ask.bytes;
    record->count = nw_at_once_pairs_in(once, group);
    record->peer_a = all_hosts ? -1 : a->owner;
    record->peer_b = b->owner;
    if (!all_hosts)
        snprintf(record->host_a, sizeof record->host_a, "%s", comm->host_names[a->host]);
    snprintf(record->host_b, sizeof record->host_b, "%s", comm->host_names[b->host]);
    name_end(once, group, false, record->nic_a);
    name_end(once, group, true, record->nic_b);
}

/* What the pairs of a group did at once, bytes/s; `slowest`: the one that took longest. Each pair's
 * own rate counts, so that unlike NICs are not held to the slowest one's; a NIC that is software
 * may be done before the next one starts, and into one NIC the others go faster as one ends: of
 * those it is all bytes over the time until the last. */
static double together(const struct nw_at_once *once, int group, double slowest)
{
    double sum = 0;

    for (size_t i = 0; i < once->round.count; i++) {
        const struct nw_nic_pair *pair = &once->round.pairs[i];
        const double own = nw_nic_own_rate(once->links, i);

        if (once->group_of_pair[i] != group)
            continue;
        if (once->into_one || once->nics.items[pair->a].software ||
            once->nics.items[pair->b].software || !(own > 0))
            return slowest * (double)nw_at_once_pairs_in(once, group);
        sum += own;
    }
    return sum;
}

/* All pairs of the group together. */
static void add_sums(const struct nw_at_once *once, const struct nw_nic_kind *kind, int group,
                     struct nw_record *record)
{
    int depth = once->ask.depth;
    double ceiling = 0;

    for (size_t i = 0; i < once->round.count; i++) {
        const struct nw_nic_pair *pair = &once->round.pairs[i];
        const struct nw_nic_settled *settled = nw_nic_settled(once->links, i);
        const uint32_t mtu = settled->mtu_bytes;
        const double of_b = nw_nic_ceiling(&once->nics.items[pair->b], mtu);

        if (once->group_of_pair[i] != group)
            continue;
        record->mtu_bytes = mtu;
        if (settled->depth > 0 && settled->depth < depth)
            depth = settled->depth;
        ceiling = once->into_one
                      ? of_b
                      : ceiling + fmin(of_b, nw_nic_ceiling(&once->nics.items[pair->a], mtu));
    }
    record->qps = kind->ping ? 1 : once->ask.qps;
    record->depth = kind->ping ? 1 : depth;
    if (kind->ping)
        return;
    record->ceiling_bytes_per_s = ceiling;
    if (nw_at_once_pairs_in(once, group) > 1 && record->time_ns.median > 0)
        record->algbw_bytes_per_s = together(once, group, record->algbw_bytes_per_s);
    if (record->time_ns.median > 0)
        record->messages_per_s = record->algbw_bytes_per_s / (double)record->bytes;
}

static nw_rc add_failures(struct nw_at_once *once, int group, struct nw_record *record)
{
    const struct nw_comm *comm = once->bench->comm;

    for (size_t i = 0; i < once->round.count; i++) {
        const struct nw_nic *a = &once->nics.items[once->round.pairs[i].a];
        const struct nw_nic *b = &once->nics.items[once->round.pairs[i].b];
        char where[400];

        if (once->group_of_pair[i] != group || once->is_told[i] ||
            nw_nic_rc(once->links, i) == NW_OK)
            continue;
        once->is_told[i] = once->bench->failed = true;
        snprintf(where, sizeof where, "%s %s to %s %s", comm->host_names[a->host], a->name,
                 comm->host_names[b->host], b->name);
        NW_TRY(nw_findings_add(&record->warnings, NW_FINDING_FAIL, "nic-failed", where, NULL, "%s",
                               nw_nic_why(once->links, i)));
    }
    return NW_OK;
}

static nw_rc hand_out(struct nw_at_once *once, const struct nw_nic_kind *kind, int groups)
{
    for (int group = 0; group < groups; group++) {
        add_sums(once, kind, group, &once->records[group]);
        NW_TRY(add_failures(once, group, &once->records[group]));
        nw_bench_record(once->bench, &once->records[group]);
    }
    return NW_OK;
}

static nw_rc measure(struct nw_at_once *once, const struct nw_nic_kind *kind, int groups,
                     const char *title)
{
    const struct nw_nic_task task = {.op = kind->op,
                                     .ping = kind->ping,
                                     .ways = kind->ways,
                                     .bytes = kind->small ? NW_NIC_SMALL_BYTES : once->ask.bytes,
                                     .qps = kind->ping ? 1 : once->ask.qps,
                                     .depth = once->ask.depth,
                                     .title = title,
                                     .group_of_pair = once->group_of_pair,
                                     .group_count = groups};

    if (once->links == NULL)
        NW_TRY(nw_nic_links_open(once->bench, &once->nics, &once->round, &once->ask, &once->links));
    NW_TRY(nw_nic_measure(once->links, &task, once->records));
    return nw_agree(once->bench->comm, hand_out(once, kind, groups));
}

/* Of the pairs as they are grouped: a record a group. `rates` (groups, on rank 0 what was measured;
 * NAN: not) may be NULL. */
nw_rc nw_at_once_unit(struct nw_at_once *once, const struct nw_nic_kind *kind, int groups,
                      const char *what, double *rates)
{
    char title[128];
    const struct nw_unit unit = {
        .identities = once->records, .identity_count = (size_t)groups, .title = title};
    bool go;
    nw_rc rc = NW_OK;

    snprintf(title, sizeof title, "%s, %s, %s", once->case_name, kind->name, what);
    for (int group = 0; group < groups; group++)
        identify(once, kind, group, &once->records[group]);
    memset(once->kept, 0, (size_t)groups * sizeof(const struct nw_record *));
    NW_TRY(nw_bench_begin(once->bench, &unit, &go, once->kept));
    if (go) {
        rc = measure(once, kind, groups, title);
        nw_bench_end(once->bench, &unit);
    }
    for (int group = 0; group < groups; group++) {
        const struct nw_record *record =
            once->kept[group] != NULL ? once->kept[group] : &once->records[group];

        if (rates != NULL)
            rates[group] = record->algbw_bytes_per_s;
        nw_record_free(&once->records[group]);
    }
    return rc;
}

int nw_at_once_nic(const struct nw_at_once *once, int host, int place)
{
    for (size_t i = 0; i < once->nics.count; i++)
        if (once->nics.items[i].host == host && place-- == 0)
            return (int)i;
    return -1;
}

const struct nw_nic_kind nw_at_once_write = {"write", NW_VERBS_WRITE, NW_NIC_FORTH, .ping = false};
const struct nw_nic_kind nw_at_once_both = {"write_both", NW_VERBS_WRITE,
                                            NW_NIC_FORTH | NW_NIC_BACK, .ping = false};

/* What suits one pair of the round: of the first four, the first that works. */
nw_rc nw_at_once_settle(struct nw_at_once *once)
{
    struct nw_nic_round one[4];
    const size_t count = once->round.count < 4 ? once->round.count : 4;

    if (once->bench->dry || once->ask.bytes > 0)
        return NW_OK;
    for (size_t i = 0; i < count; i++)
        one[i] = (struct nw_nic_round){.pairs = &once->round.pairs[i], .count = 1};
    return nw_nic_settle(once->bench, once->case_name, &once->nics, one, count, &once->ask);
}

nw_rc nw_at_once_rails(struct nw_at_once *once, int (*partner)(int host, int host_count))
{
    const int hosts = once->bench->comm->host_count;

    NW_TRY(nw_at_once_begin(once, once->nics.count));
    for (int host = 0; host < hosts; host++)
        if (partner(host, hosts) >= 0)
            once->round.count +=
                nw_nic_rails(once->nics.items, once->nics.count, host, partner(host, hosts),
                             &once->round.pairs[once->round.count]);
    nw_nic_tell_rails(once->bench, &once->nics, once->round.pairs, once->round.count);
    return NW_OK;
}

/* A group for each pair of hosts; how many. */
int nw_at_once_by_host(struct nw_at_once *once)
{
    int groups = 0;

    for (size_t i = 0; i < once->round.count; i++) {
        const bool next = i > 0 && once->nics.items[once->round.pairs[i].a].host !=
                                       once->nics.items[once->round.pairs[i - 1].a].host;

        groups += next;
        once->group_of_pair[i] = groups;
    }
    return once->round.count > 0 ? groups + 1 : 0;
}

/* The `place`-th pair of each pair of hosts, a group each; 0: there is none. */
int nw_at_once_by_place(struct nw_at_once *once, int place)
{
    int at = 0, groups = 0;

    for (size_t i = 0; i < once->round.count; i++) {
        at = i > 0 && once->nics.items[once->round.pairs[i].a].host ==
                          once->nics.items[once->round.pairs[i - 1].a].host
                 ? at + 1
                 : 0;
        once->group_of_pair[i] = at == place ? groups++ : -1;
    }
    return groups;
}

/* Over the run's communicator where no NIC can meet another. */
static nw_rc run_instead(struct nw_bench *bench, const struct nw_at_once *once,
                         nw_rc (*instead)(struct nw_bench *bench))
{
    nw_bench_finding(bench, NW_FINDING_INFO, "no-rdma", once->case_name,
                     "nothing, where no RDMA was sold; else nodeworth check says what is missing",
                     "there are no NICs for RDMA that could meet, so the data go over the run's "
                     "own communicator (%s): %s",
                     bench->comm->ops->title,
                     once->nics.count > 0           ? "the hosts' NICs are of different kinds"
                     : once->nics.why[0][0] != '\0' ? once->nics.why[0]
                                                    : "no RDMA device");
    return instead(bench);
}

static nw_rc run(struct nw_at_once *once, nw_rc (*body)(struct nw_at_once *once),
                 nw_rc (*instead)(struct nw_bench *bench))
{
    if (once->nics.count > 0 && nw_nics_are_here(once->bench, &once->nics)) {
        NW_TRY(body(once));
        if (!once->none_met)
            return NW_OK;
    }
    if (instead != NULL)
        return run_instead(once->bench, once, instead);
    if (once->none_met)
        nw_bench_finding(once->bench, NW_FINDING_INFO, "no-nic-pairs", "",
                         "two hosts or more, with RDMA of one kind",
                         "%s: there are no two hosts whose NICs could meet", once->case_name);
    else
        (void)nw_nics_are_here(once->bench, &once->nics); /* says that there is none */
    return NW_OK;
}

nw_rc nw_at_once_run(struct nw_bench *bench, const char *case_name, int least_hosts,
                     nw_rc (*body)(struct nw_at_once *once),
                     nw_rc (*instead)(struct nw_bench *bench))
{
    struct nw_at_once once = {.bench = bench, .case_name = case_name};
    nw_rc rc;

    NW_TRY(nw_nics_open(bench, &once.nics));
    if (bench->comm->host_count < least_hosts) {
        if (instead != NULL || nw_nics_are_here(bench, &once.nics))
            nw_bench_finding(bench, NW_FINDING_INFO, "no-nic-pairs", "",
                             "ranks on two hosts or more", "%s: all ranks are on one host",
                             case_name);
        rc = NW_OK;
    } else {
        rc = run(&once, body, instead);
    }
    end_round(&once);
    nw_nics_close(&once.nics);
    return rc;
}
