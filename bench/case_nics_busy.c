/* Many NICs at once, over RDMA: a card with itself (loopback), all NICs of a host to those of a
 * peer host (rail), half of the hosts to the other half (bisect), all hosts to one (incast). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/nic_settle.h"

#define SMALL_BYTES 8
/* Of what each has alone, all together. */
#define TOGETHER_SHARE 0.9
/* Of what the one that all send to can take. */
#define INTO_ONE_SHARE 0.9

struct busy {
    struct nw_bench *bench;
    const char *case_name;
    bool into_one; /* all groups' data go to one NIC: its rate is the ceiling */
    struct nw_nics nics;
    struct nw_nic_ask ask;
    int stream_qps; /* what settling gave one stream; 0: not settled yet */
    /* of the round at hand */
    struct nw_nic_round round;
    struct nw_nic_links *links; /* NULL: not opened yet */
    int *group_of_pair;
    bool *is_told;
    struct nw_record *records; /* a group each */
    const struct nw_record **kept;
};

static void end_round(struct busy *busy)
{
    nw_nic_links_close(busy->links);
    free(busy->round.pairs);
    free(busy->group_of_pair);
    free(busy->is_told);
    free(busy->records);
    free(busy->kept);
    busy->links = NULL;
    busy->round = (struct nw_nic_round){0};
    busy->group_of_pair = NULL;
    busy->is_told = NULL;
    busy->records = NULL;
    busy->kept = NULL;
}

/* Room for `count` pairs; the caller puts them in. */
static nw_rc begin_round(struct busy *busy, size_t count)
{
    end_round(busy);
    busy->round.pairs = calloc(count + 1, sizeof *busy->round.pairs);
    busy->group_of_pair = calloc(count + 1, sizeof *busy->group_of_pair);
    busy->is_told = calloc(count + 1, sizeof *busy->is_told);
    busy->records = calloc(count + 1, sizeof *busy->records);
    busy->kept = calloc(count + 1, sizeof *busy->kept);
    if (busy->round.pairs == NULL || busy->group_of_pair == NULL || busy->is_told == NULL ||
        busy->records == NULL || busy->kept == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu pairs of NICs", count);
    return NW_OK;
}

static void add_pair(struct busy *busy, int a, int b)
{
    busy->round.pairs[busy->round.count++] = (struct nw_nic_pair){.a = a, .b = b, .rail = true};
}

/* ---- a unit ------------------------------------------------------------------------------------
 */

struct kind {
    const char *name;
    nw_verbs_op op;
    unsigned ways;
    bool ping;
};

static size_t pairs_in(const struct busy *busy, int group)
{
    size_t count = 0;

    for (size_t pair = 0; pair < busy->round.count; pair++)
        count += busy->group_of_pair[pair] == group;
    return count;
}

static size_t first_of(const struct busy *busy, int group)
{
    size_t pair = 0;

    while (busy->group_of_pair[pair] != group)
        pair++;
    return pair;
}

/* "mlx5_0/1", or of several "8 NICs". */
static void name_end(const struct busy *busy, int group, bool is_b, char name[72])
{
    const size_t count = pairs_in(busy, group);
    const struct nw_nic_pair *pair = &busy->round.pairs[first_of(busy, group)];

    if (count == 1 || (is_b && busy->into_one))
        snprintf(name, 72, "%s", busy->nics.items[is_b ? pair->b : pair->a].name);
    else
        snprintf(name, 72, "%zu NICs", count);
}

static void identify(const struct busy *busy, const struct kind *kind, int group,
                     struct nw_record *record)
{
    const struct nw_comm *comm = busy->bench->comm;
    const struct nw_nic_pair *pair = &busy->round.pairs[first_of(busy, group)];
    const struct nw_nic *a = &busy->nics.items[pair->a], *b = &busy->nics.items[pair->b];
    const bool all_hosts = busy->into_one && pairs_in(busy, group) > 1;

    nw_bench_identity(busy->bench, busy->case_name, record);
    snprintf(record->collective, sizeof record->collective, "%s", kind->name);
    snprintf(record->lane, sizeof record->lane, "verbs");
    snprintf(record->dtype, sizeof record->dtype, "none");
    snprintf(record->memory, sizeof record->memory, "host");
    record->host_count = all_hosts ? comm->host_count : a->host == b->host ? 1 : 2;
    record->rank_count = record->host_count;
    record->bytes = kind->ping ? SMALL_BYTES : busy->ask.bytes;
    record->count = pairs_in(busy, group);
    record->peer_a = all_hosts ? -1 : a->owner;
    record->peer_b = b->owner;
    if (!all_hosts)
        snprintf(record->host_a, sizeof record->host_a, "%s", comm->host_names[a->host]);
    snprintf(record->host_b, sizeof record->host_b, "%s", comm->host_names[b->host]);
    name_end(busy, group, false, record->nic_a);
    name_end(busy, group, true, record->nic_b);
}

/* What the pairs of a group did at once, bytes/s; `slowest`: the one that took longest. Each pair's
 * own rate counts, so that unlike NICs are not held to the slowest one's; a NIC that is software
 * may be done before the next one starts, and into one NIC the others go faster as one ends: of
 * those it is all bytes over the time until the last. */
static double together(const struct busy *busy, int group, double slowest)
{
    double sum = 0;

    for (size_t i = 0; i < busy->round.count; i++) {
        const struct nw_nic_pair *pair = &busy->round.pairs[i];
        const double own = nw_nic_own_rate(busy->links, i);

        if (busy->group_of_pair[i] != group)
            continue;
        if (busy->into_one || busy->nics.items[pair->a].software ||
            busy->nics.items[pair->b].software || !(own > 0))
            return slowest * (double)pairs_in(busy, group);
        sum += own;
    }
    return sum;
}

/* All pairs of the group together. */
static void add_sums(const struct busy *busy, const struct kind *kind, int group,
                     struct nw_record *record)
{
    int depth = busy->ask.depth;
    double ceiling = 0;

    for (size_t i = 0; i < busy->round.count; i++) {
        const struct nw_nic_pair *pair = &busy->round.pairs[i];
        const struct nw_nic_settled *settled = nw_nic_settled(busy->links, i);
        const uint32_t mtu = settled->mtu_bytes;
        const double of_b = nw_nic_ceiling(&busy->nics.items[pair->b], mtu);

        if (busy->group_of_pair[i] != group)
            continue;
        record->mtu_bytes = mtu;
        if (settled->depth > 0 && settled->depth < depth)
            depth = settled->depth;
        ceiling = busy->into_one
                      ? of_b
                      : ceiling + fmin(of_b, nw_nic_ceiling(&busy->nics.items[pair->a], mtu));
    }
    record->qps = kind->ping ? 1 : busy->ask.qps;
    record->depth = kind->ping ? 1 : depth;
    if (kind->ping)
        return;
    record->ceiling_bytes_per_s = ceiling;
    if (pairs_in(busy, group) > 1 && record->time_ns.median > 0)
        record->algbw_bytes_per_s = together(busy, group, record->algbw_bytes_per_s);
    if (record->time_ns.median > 0)
        record->messages_per_s = record->algbw_bytes_per_s / (double)record->bytes;
}

static nw_rc add_failures(struct busy *busy, int group, struct nw_record *record)
{
    const struct nw_comm *comm = busy->bench->comm;

    for (size_t i = 0; i < busy->round.count; i++) {
        const struct nw_nic *a = &busy->nics.items[busy->round.pairs[i].a];
        const struct nw_nic *b = &busy->nics.items[busy->round.pairs[i].b];
        char where[400];

        if (busy->group_of_pair[i] != group || busy->is_told[i] ||
            nw_nic_failure(busy->links, i)->rc == NW_OK)
            continue;
        busy->is_told[i] = busy->bench->failed = true;
        snprintf(where, sizeof where, "%s %s to %s %s", comm->host_names[a->host], a->name,
                 comm->host_names[b->host], b->name);
        NW_TRY(nw_findings_add(&record->warnings, NW_FINDING_FAIL, "nic-failed", where, NULL, "%s",
                               nw_nic_failure(busy->links, i)->text));
    }
    return NW_OK;
}

static nw_rc measure(struct busy *busy, const struct kind *kind, int groups, const char *title)
{
    const struct nw_nic_task task = {.op = kind->op,
                                     .ping = kind->ping,
                                     .ways = kind->ways,
                                     .bytes = kind->ping ? SMALL_BYTES : busy->ask.bytes,
                                     .qps = kind->ping ? 1 : busy->ask.qps,
                                     .depth = busy->ask.depth,
                                     .title = title,
                                     .group_of_pair = busy->group_of_pair,
                                     .group_count = groups};

    if (busy->links == NULL)
        NW_TRY(nw_nic_links_open(busy->bench, &busy->nics, &busy->round, &busy->ask, &busy->links));
    NW_TRY(nw_nic_measure(busy->links, &task, busy->records));
    for (int group = 0; group < groups; group++) {
        add_sums(busy, kind, group, &busy->records[group]);
        NW_TRY(add_failures(busy, group, &busy->records[group]));
        nw_bench_record(busy->bench, &busy->records[group]);
    }
    return NW_OK;
}

/* Of the pairs as they are grouped: a record a group. `rates` (groups, on rank 0 what was measured;
 * NAN: not) may be NULL. */
static nw_rc unit(struct busy *busy, const struct kind *kind, int groups, const char *what,
                  double *rates)
{
    char title[128];
    const struct nw_unit unit = {
        .identities = busy->records, .identity_count = (size_t)groups, .title = title};
    bool go;
    nw_rc rc = NW_OK;

    snprintf(title, sizeof title, "%s, %s, %s", busy->case_name, kind->name, what);
    for (int group = 0; group < groups; group++)
        identify(busy, kind, group, &busy->records[group]);
    memset(busy->kept, 0, (size_t)groups * sizeof(const struct nw_record *));
    NW_TRY(nw_bench_begin(busy->bench, &unit, &go, busy->kept));
    if (go) {
        rc = measure(busy, kind, groups, title);
        nw_bench_end(busy->bench, &unit);
    }
    for (int group = 0; group < groups; group++) {
        const struct nw_record *record =
            busy->kept[group] != NULL ? busy->kept[group] : &busy->records[group];

        if (rates != NULL)
            rates[group] = record->algbw_bytes_per_s;
        nw_record_free(&busy->records[group]);
    }
    return rc;
}

/* ---- the cases ---------------------------------------------------------------------------------
 */

static int nic_at(const struct busy *busy, int host, int place)
{
    for (size_t i = 0; i < busy->nics.count; i++)
        if (busy->nics.items[i].host == host && place-- == 0)
            return (int)i;
    return -1;
}

static const struct kind stream = {"write", NW_VERBS_WRITE, NW_NIC_FORTH, false};
static const struct kind streams_both = {"write_both", NW_VERBS_WRITE, NW_NIC_FORTH | NW_NIC_BACK,
                                         false};

/* What suits one pair of the round: of the first four, the first that works. */
static nw_rc settle(struct busy *busy)
{
    struct nw_nic_round one[4];
    const size_t count = busy->round.count < 4 ? busy->round.count : 4;

    if (busy->bench->dry || busy->ask.bytes > 0)
        return NW_OK;
    for (size_t i = 0; i < count; i++)
        one[i] = (struct nw_nic_round){.pairs = &busy->round.pairs[i], .count = 1};
    return nw_nic_settle(busy->bench, &busy->nics, one, count, &busy->ask);
}

/* A NIC of each host at a time. */
static nw_rc loopback(struct busy *busy)
{
    static const struct kind kinds[] = {
        {"write_latency", NW_VERBS_WRITE, NW_NIC_FORTH, true},
        {"write", NW_VERBS_WRITE, NW_NIC_FORTH, false},
        {"send", NW_VERBS_SEND, NW_NIC_FORTH, false},
    };
    const int hosts = busy->bench->comm->host_count;

    for (int place = 0;; place++) {
        char what[32];

        NW_TRY(nw_agree(busy->bench->comm, begin_round(busy, (size_t)hosts)));
        for (int host = 0; host < hosts; host++)
            if (nic_at(busy, host, place) >= 0)
                add_pair(busy, nic_at(busy, host, place), nic_at(busy, host, place));
        if (busy->round.count == 0)
            return NW_OK;
        NW_TRY(settle(busy));
        for (size_t i = 0; i < busy->round.count; i++)
            busy->group_of_pair[i] = (int)i;
        snprintf(what, sizeof what, "NIC %d", place);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            NW_TRY(unit(busy, &kinds[i], (int)busy->round.count, what, NULL));
    }
}

/* All rails between hosts: host `a` of each pair and `partner` of it. Their order is that of a. */
static nw_rc add_rails(struct busy *busy, int (*partner)(int host, int host_count))
{
    const int hosts = busy->bench->comm->host_count;

    NW_TRY(begin_round(busy, busy->nics.count));
    for (int host = 0; host < hosts; host++)
        for (int place = 0; partner(host, hosts) >= 0; place++) {
            const int a = nic_at(busy, host, place), b = nic_at(busy, partner(host, hosts), place);

            if (a < 0 || b < 0)
                break;
            if (busy->nics.items[a].infiniband == busy->nics.items[b].infiniband)
                add_pair(busy, a, b);
        }
    return NW_OK;
}

/* A group for each pair of hosts; how many. */
static int group_by_host(struct busy *busy)
{
    int groups = 0;

    for (size_t i = 0; i < busy->round.count; i++) {
        const bool next = i > 0 && busy->nics.items[busy->round.pairs[i].a].host !=
                                       busy->nics.items[busy->round.pairs[i - 1].a].host;

        groups += next;
        busy->group_of_pair[i] = groups;
    }
    return busy->round.count > 0 ? groups + 1 : 0;
}

/* The `place`-th pair of each pair of hosts, a group each; 0: there is none. */
static int group_by_place(struct busy *busy, int place)
{
    int at = 0, groups = 0;

    for (size_t i = 0; i < busy->round.count; i++) {
        at = i > 0 && busy->nics.items[busy->round.pairs[i].a].host ==
                          busy->nics.items[busy->round.pairs[i - 1].a].host
                 ? at + 1
                 : 0;
        busy->group_of_pair[i] = at == place ? groups++ : -1;
    }
    return groups;
}

static int neighbour(int host, int host_count)
{
    return host % 2 == 0 && host + 1 < host_count ? host + 1 : -1;
}

static int across(int host, int host_count)
{
    return host < host_count / 2 ? host + (host_count + 1) / 2 : -1;
}

static void tell_rails(const struct busy *busy, const double *alone, const double *together)
{
    const struct nw_comm *comm = busy->bench->comm;
    char where[192], sum_text[32], alone_text[32];

    for (size_t i = 0; i < busy->round.count; i++) {
        const int group = busy->group_of_pair[i];
        const struct nw_nic_pair *pair = &busy->round.pairs[i];
        double sum = 0;

        if (first_of(busy, group) != i || pairs_in(busy, group) < 2)
            continue;
        for (size_t k = i; k < i + pairs_in(busy, group); k++)
            sum += alone[k];
        if (busy->nics.items[pair->a].software || busy->nics.items[pair->b].software ||
            !(together[group] < TOGETHER_SHARE * sum))
            continue; /* NICs that are software share the CPU */
        snprintf(where, sizeof where, "%s to %s", comm->host_names[busy->nics.items[pair->a].host],
                 comm->host_names[busy->nics.items[pair->b].host]);
        nw_bench_finding(busy->bench, NW_FINDING_WARN, "rail-sum", where,
                         "look for NICs behind one PCIe switch or link (nodeworth topo), and for "
                         "switch ports that share an uplink",
                         "%zu NICs at once reach %s GB/s, one by one %s GB/s together",
                         pairs_in(busy, group), nw_format_gb_per_s(sum_text, together[group]),
                         nw_format_gb_per_s(alone_text, sum));
    }
}

/* One by one, then all at once, one way and both. */
static nw_rc rail(struct busy *busy)
{
    double *alone, *together;
    nw_rc rc;
    int groups;

    NW_TRY(nw_agree(busy->bench->comm, add_rails(busy, neighbour)));
    if (busy->round.count == 0)
        return NW_OK;
    NW_TRY(settle(busy));
    alone = calloc(2 * busy->round.count, sizeof *alone);
    rc = nw_agree(busy->bench->comm,
                  alone != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for the rails"));
    if (rc != NW_OK) {
        free(alone);
        return rc;
    }
    together = alone + busy->round.count;
    for (int place = 0; rc == NW_OK && (groups = group_by_place(busy, place)) > 0; place++) {
        char what[32];

        snprintf(what, sizeof what, "NIC %d alone", place);
        rc = unit(busy, &stream, groups, what, together);
        for (size_t i = 0; i < busy->round.count; i++)
            if (busy->group_of_pair[i] >= 0)
                alone[i] = together[busy->group_of_pair[i]];
    }
    groups = group_by_host(busy);
    if (rc == NW_OK && (size_t)groups < busy->round.count)
        rc = unit(busy, &stream, groups, "all NICs", together);
    if (rc == NW_OK && (size_t)groups < busy->round.count) {
        tell_rails(busy, alone, together);
        rc = unit(busy, &streams_both, groups, "all NICs", NULL);
    }
    free(alone);
    return rc;
}

/* What the ports of each pair of hosts could carry, against those of the first pair: of unlike
 * NICs more than their number, or less. */
static double first_pairs(const struct busy *busy, int groups)
{
    double first = 0, all = 0;

    for (size_t i = 0; i < busy->round.count; i++) {
        const struct nw_nic_pair *pair = &busy->round.pairs[i];
        const double bits =
            fmin(busy->nics.items[pair->a].bits_per_s, busy->nics.items[pair->b].bits_per_s);

        all += bits;
        first += busy->group_of_pair[i] == 0 ? bits : 0;
    }
    return first > 0 && isfinite(all) ? all / first : groups;
}

static void tell_bisect(const struct busy *busy, double alone, const double *rates, int groups)
{
    const double times = first_pairs(busy, groups);
    char sum_text[32], alone_text[32], times_text[32];
    double sum = 0;

    for (int group = 0; group < groups; group++)
        sum += rates[group];
    if (!isfinite(sum) || !isfinite(alone))
        return; /* a pair has failed, and that was said */
    nw_bench_finding(busy->bench,
                     sum < TOGETHER_SHARE * alone * times && !busy->nics.items[0].software
                         ? NW_FINDING_WARN
                         : NW_FINDING_INFO,
                     "bisect-sum", "",
                     "ask for the fabric's oversubscription; look at the slowest pair of hosts",
                     "half of the hosts to the other half at once: %s GB/s, %.0f %% of %s times "
                     "the %s GB/s of the "
                     "first pair alone",
                     nw_format_gb_per_s(sum_text, sum), 100 * sum / (alone * times),
                     nw_format_sig(times_text, times, 3), nw_format_gb_per_s(alone_text, alone));
}

/* The first pair of hosts alone, then all pairs at once; of two hosts there is nothing to tell. */
static nw_rc bisect(struct busy *busy)
{
    double *rates, alone = NAN;
    int groups;
    nw_rc rc;

    NW_TRY(nw_agree(busy->bench->comm, add_rails(busy, across)));
    if (busy->round.count == 0)
        return NW_OK;
    NW_TRY(settle(busy));
    rates = calloc(busy->round.count, sizeof *rates);
    rc = nw_agree(busy->bench->comm,
                  rates != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for the halves"));
    if (rc != NW_OK) {
        free(rates);
        return rc;
    }
    groups = group_by_host(busy);
    if (groups > 1) {
        for (size_t i = 0; i < busy->round.count; i++)
            if (busy->group_of_pair[i] > 0)
                busy->group_of_pair[i] = -1;
        rc = unit(busy, &(struct kind){"write_alone", NW_VERBS_WRITE, NW_NIC_FORTH, false}, 1,
                  "one pair of hosts", rates);
        alone = rates[0];
        (void)group_by_host(busy);
    }
    if (rc == NW_OK)
        rc = unit(busy, &stream, groups, "all at once", rates);
    if (rc == NW_OK && groups > 1 && !busy->bench->dry)
        tell_bisect(busy, alone, rates, groups);
    free(rates);
    return rc;
}

static nw_rc incast_to(struct busy *busy, int host)
{
    const struct nw_comm *comm = busy->bench->comm;
    const int target = nic_at(busy, host, 0);
    double rate = NAN;
    char what[96], rate_text[32];

    NW_TRY(nw_agree(busy->bench->comm, begin_round(busy, (size_t)comm->host_count)));
    for (int other = 0; target >= 0 && other < comm->host_count; other++) {
        const int from = nic_at(busy, other, 0);

        if (other != host && from >= 0 &&
            busy->nics.items[from].infiniband == busy->nics.items[target].infiniband)
            add_pair(busy, from, target);
    }
    if (busy->round.count == 0)
        return NW_OK;
    NW_TRY(settle(busy));
    if (busy->stream_qps == 0)
        busy->stream_qps = busy->ask.qps;
    if (busy->bench->plan->nic_qps == 0) /* what fills the NIC, spread over those who send */
        busy->ask.qps = (busy->stream_qps + (int)busy->round.count - 1) / (int)busy->round.count;
    snprintf(what, sizeof what, "to %s", comm->host_names[host]);
    NW_TRY(unit(busy, &stream, 1, what, &rate));
    if (!busy->bench->dry && busy->links != NULL && busy->round.count > 1) {
        const double ceiling =
            nw_nic_ceiling(&busy->nics.items[target], nw_nic_settled(busy->links, 0)->mtu_bytes);

        if (rate < INTO_ONE_SHARE * ceiling)
            nw_bench_finding(busy->bench, NW_FINDING_WARN, "incast-slow", comm->host_names[host],
                             "look at flow control of NIC and switch (PFC, ECN, DCQCN) and at "
                             "discarded packets of the port",
                             "%zu hosts at once reach %s GB/s into one NIC, %.0f %% of what it has "
                             "room for",
                             busy->round.count, nw_format_gb_per_s(rate_text, rate),
                             100 * rate / ceiling);
    }
    return NW_OK;
}

/* Each host in turn is the one that all others write to. */
static nw_rc incast(struct busy *busy)
{
    const int hosts = busy->bench->comm->host_count;

    busy->into_one = true;
    for (int host = 0; host < hosts; host++)
        NW_TRY(incast_to(busy, host));
    return NW_OK;
}

static nw_rc run(struct nw_bench *bench, const char *case_name, int least_hosts,
                 nw_rc (*body)(struct busy *busy))
{
    struct busy busy = {.bench = bench, .case_name = case_name};
    nw_rc rc = NW_OK;

    NW_TRY(nw_nics_open(bench, &busy.nics));
    if (nw_nics_are_here(bench, &busy.nics)) {
        if (bench->comm->host_count >= least_hosts)
            rc = body(&busy);
        else
            nw_bench_finding(bench, NW_FINDING_INFO, "no-nic-pairs", "",
                             "two hosts or more, with RDMA of one kind",
                             "%s: there are no two hosts whose NICs could meet", case_name);
    }
    end_round(&busy);
    nw_nics_close(&busy.nics);
    return rc;
}

nw_rc nw_case_loopback(struct nw_bench *bench)
{
    return run(bench, "loopback", 1, loopback);
}

nw_rc nw_case_rail(struct nw_bench *bench)
{
    return run(bench, "rail", 2, rail);
}

nw_rc nw_case_bisect(struct nw_bench *bench)
{
    return run(bench, "bisect", 2, bisect);
}

nw_rc nw_case_incast(struct nw_bench *bench)
{
    return run(bench, "incast", 2, incast);
}
