/* Every two ranks exchange data, both ways at once, in rounds of disjoint pairs that run at the
 * same time: a latency size and a bandwidth size. A pair far below its like is named: a bad cable,
 * port, or host. Of three hosts and more every two meet as a whole (bench/pairs_plan.h); suspects
 * are measured again alone, a host against one known to be good, before they are named. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/case.h"
#include "bench/fleet_tell.h"
#include "bench/pairs_fleet.h"
#include "bench/pairs_judge.h"
#include "bench/pairs_plan.h"

#define LATENCY_BYTES 8
#define WORD_BYTES    8
#define POISON        0xa5
/* Suspects of either kind that are measured again; the slowest ones. */
#define RETESTS_MAX  12
#define RETEST_TIMES 4 /* the sampling time of others: they are few, and must not be misjudged */
/* What a measurement takes beside its samples: first call, checks, exchanges. */
#define UNIT_NS 50e6

struct pairs {
    struct nw_bench *bench;
    struct nw_pairs_plan plan;
    const char *case_name;        /* "pairs", "retest" */
    int *peer_of_rank;            /* of the current round; -1: idle */
    int *group_of_rank;           /* of the current round */
    struct nw_record *identities; /* one a pair of the current round */
    const struct nw_record **kept;
    int pair_count;             /* of a round */
    struct nw_pair_rate *rates; /* rank 0: of all pairs at the bandwidth size */
    size_t rate_count;
};

/* ---- the work: swap ----------------------------------------------------------------------------
 */

struct swap_work {
    struct nw_work work; /* first */
    const struct nw_bench *bench;
    struct nw_comm *comm;
    int peer; /* -1: idle */
    uint64_t *send, *recv;
    uint64_t word_count;
};

static uint64_t word_of(int rank, uint64_t round, uint64_t index)
{
    return (((uint64_t)rank << 48) ^ (round << 32) ^ index) * 0x9e3779b97f4a7c15u;
}

static nw_rc swap_call(const struct nw_work *base, uint64_t index)
{
    const struct swap_work *work = (const struct swap_work *)base;

    (void)index;
    if (work->peer < 0)
        return NW_OK;
    return work->comm->ops->swap(work->comm, work->peer, work->send, work->recv,
                                 work->word_count * WORD_BYTES);
}

static nw_rc swap_queue(void *user, uint64_t index)
{
    return swap_call(user, index);
}

static nw_rc swap_finish(void *user, double timeout_ns)
{
    const struct swap_work *work = user;

    return nw_comm_finish(work->comm, timeout_ns);
}

static nw_rc swap_time(const struct nw_work *base, uint64_t index, uint32_t calls, double *ns_out)
{
    struct swap_work work = *(const struct swap_work *)base;
    struct nw_gated gated = nw_bench_gate(work.bench, work.word_count * WORD_BYTES, calls);

    gated.queue = swap_queue;
    gated.finish = swap_finish;
    gated.user = &work;
    gated.graph = work.comm->graphs;
    if (work.peer < 0)
        gated.stream = NULL;
    return nw_gated_time(&gated, index, calls, ns_out);
}

/* Buffers may lie on a device: patterns are made, and results looked at, this much at a time. */
#define STAGE_WORDS 8192

static uint64_t stage_words(const struct swap_work *work, uint64_t done)
{
    const uint64_t left = work->word_count - done;

    return left < STAGE_WORDS ? left : STAGE_WORDS;
}

static void swap_fill(const struct nw_work *base, uint64_t round)
{
    const struct swap_work *work = (const struct swap_work *)base;
    uint64_t stage[STAGE_WORDS];

    for (uint64_t done = 0; work->peer >= 0 && done < work->word_count; done += STAGE_WORDS) {
        const uint64_t count = stage_words(work, done);

        for (uint64_t i = 0; i < count; i++)
            stage[i] = word_of(work->comm->rank, round, done + i);
        nw_comm_put(work->comm, work->send + done, stage, count * WORD_BYTES);
        memset(stage, POISON, count * WORD_BYTES);
        nw_comm_put(work->comm, work->recv + done, stage, count * WORD_BYTES);
    }
}

static uint64_t swap_check(const struct nw_work *base, uint64_t round, struct nw_wrong *first_out)
{
    const struct swap_work *work = (const struct swap_work *)base;
    uint64_t stage[STAGE_WORDS];
    uint64_t wrong = 0;

    for (uint64_t i = 0; work->peer >= 0 && i < work->word_count; i++) {
        const uint64_t expected = word_of(work->peer, round, i);

        if (i % STAGE_WORDS == 0)
            nw_comm_get(work->comm, stage, work->recv + i, stage_words(work, i) * WORD_BYTES);
        if (stage[i % STAGE_WORDS] == expected)
            continue;
        if (wrong++ == 0)
            *first_out = (struct nw_wrong){.index = i,
                                           .expected = (double)expected,
                                           .found = (double)stage[i % STAGE_WORDS],
                                           .from_rank = work->peer};
    }
    return wrong;
}

/* ---- a round -----------------------------------------------------------------------------------
 */

static void identify(struct pairs *pairs, int a, int b, uint64_t bytes, struct nw_record *record)
{
    const struct nw_comm *comm = pairs->bench->comm;

    nw_bench_identity(pairs->bench, pairs->case_name, record);
    snprintf(record->collective, sizeof record->collective, "sendrecv");
    snprintf(record->dtype, sizeof record->dtype, "uint64");
    record->rank_count = 2;
    record->host_count = comm->host_of_rank[a] == comm->host_of_rank[b] ? 1 : 2;
    record->bytes = bytes;
    record->count = bytes / WORD_BYTES;
    record->peer_a = a;
    record->peer_b = b;
    snprintf(record->host_a, sizeof record->host_a, "%s", comm->host_names[comm->host_of_rank[a]]);
    snprintf(record->host_b, sizeof record->host_b, "%s", comm->host_names[comm->host_of_rank[b]]);
}

/* By peer_of_rank. */
static void pair_up(struct pairs *pairs, uint64_t bytes)
{
    const int ranks = pairs->bench->comm->rank_count;

    pairs->pair_count = 0;
    for (int rank = 0; rank < ranks; rank++) {
        const int peer = pairs->peer_of_rank[rank];

        if (peer < 0)
            pairs->group_of_rank[rank] = -1;
        if (peer <= rank)
            continue;
        pairs->group_of_rank[rank] = pairs->group_of_rank[peer] = pairs->pair_count;
        identify(pairs, rank, peer, bytes, &pairs->identities[pairs->pair_count]);
        pairs->pair_count++;
    }
}

/* Of a pair measured again the better rate counts: alone it is not slowed by others. */
static void better_rate(struct pairs *pairs, const struct nw_pair_rate *again)
{
    for (size_t i = 0; i < pairs->rate_count; i++) {
        struct nw_pair_rate *rate = &pairs->rates[i];

        if (rate->rank_a != again->rank_a || rate->rank_b != again->rank_b)
            continue;
        const double before = rate->again ? rate->before_bytes_per_s : rate->bytes_per_s;

        if (again->bytes_per_s > rate->bytes_per_s)
            *rate = *again;
        rate->again = true;
        rate->before_bytes_per_s = before;
    }
}

static void add_rate(struct pairs *pairs, const struct nw_record *record)
{
    const struct nw_pair_rate rate = {
        .rank_a = record->peer_a,
        .rank_b = record->peer_b,
        .same_host = record->host_count == 1,
        .bytes_per_s = record->algbw_bytes_per_s,
        .high_bytes_per_s = nw_fleet_high(record->algbw_bytes_per_s, &record->time_ns),
        .low_bytes_per_s = nw_fleet_low(record->algbw_bytes_per_s, &record->time_ns)};

    if (pairs->rates == NULL ||
        record->bytes != pairs->bench->plan->pair_bytes / WORD_BYTES * WORD_BYTES ||
        !(record->algbw_bytes_per_s > 0))
        return;
    if (strcmp(record->case_name, "retest") == 0)
        better_rate(pairs, &rate);
    else
        pairs->rates[pairs->rate_count++] = rate;
}

static nw_rc measure_round(struct pairs *pairs, uint64_t bytes, const char *title)
{
    struct nw_bench *bench = pairs->bench;
    const struct swap_work work = {
        .work = {.call = swap_call,
                 .fill = swap_fill,
                 .check = swap_check,
                 .time = bench->start != NULL ? swap_time : NULL,
                 .calls_max = NW_GATED_CALLS_MAX,
                 .result_stays = true},
        .bench = bench,
        .comm = bench->comm,
        .peer = pairs->peer_of_rank[bench->comm->rank],
        .send = (uint64_t *)(void *)bench->send,
        .recv = (uint64_t *)(void *)bench->recv,
        .word_count = bytes / WORD_BYTES,
    };
    struct nw_measure how = nw_bench_how(bench, bytes, title);
    struct nw_measured measured;
    nw_rc rc = NW_OK;

    if (strcmp(pairs->case_name, "retest") == 0)
        how.rules.budget_ns *= RETEST_TIMES;
    how.group_of_rank = pairs->group_of_rank;
    how.group_count = pairs->pair_count;
    NW_TRY(nw_measure(&how, &work.work, &measured));
    for (int pair = 0; pair < pairs->pair_count && rc == NW_OK; pair++) {
        struct nw_record *record = &pairs->identities[pair];

        rc = nw_measured_report(&measured, pair, bench->comm, 1, record);
        if (rc == NW_OK) {
            nw_bench_record(bench, record);
            add_rate(pairs, record);
        }
        nw_record_free(record);
    }
    nw_measured_free(&measured);
    return rc;
}

/* The pairs of peer_of_rank, at one size. */
static nw_rc unit(struct pairs *pairs, const char *what, uint64_t bytes)
{
    struct nw_bench *bench = pairs->bench;
    char title[160], size[32];
    struct nw_unit unit = {
        .identities = pairs->identities, .send_bytes = bytes, .recv_bytes = bytes, .title = title};
    bool go;

    pair_up(pairs, bytes);
    if (pairs->pair_count == 0) /* ranks of one number, on hosts with different numbers of them */
        return NW_OK;
    unit.identity_count = (size_t)pairs->pair_count;
    snprintf(title, sizeof title, "%s, %s", what, nw_format_bytes(size, bytes));
    memset(pairs->kept, 0, (size_t)pairs->pair_count * sizeof(const struct nw_record *));
    NW_TRY(nw_bench_begin(bench, &unit, &go, pairs->kept));
    for (int pair = 0; pair < pairs->pair_count; pair++)
        if (pairs->kept[pair] != NULL)
            add_rate(pairs, pairs->kept[pair]);
    if (!go)
        return NW_OK;
    NW_TRY(measure_round(pairs, bytes, title));
    nw_bench_end(bench, &unit);
    return NW_OK;
}

static uint64_t bandwidth_bytes(const struct pairs *pairs)
{
    return pairs->bench->plan->pair_bytes / WORD_BYTES * WORD_BYTES;
}

static bool has_bandwidth(const struct pairs *pairs)
{
    return pairs->bench->plan->pair_bytes >= LATENCY_BYTES + WORD_BYTES;
}

/* ---- suspects, of three hosts and more ---------------------------------------------------------
 */

static nw_rc judge(const struct pairs *pairs, struct nw_pairs_fleet *judged_out)
{
    const struct nw_pairs_plan *plan = &pairs->plan;

    return nw_pairs_fleet_judge(pairs->rates, pairs->rate_count, plan->host_of_rank,
                                plan->rank_count, plan->host_count, judged_out);
}

struct retests {
    int count, left_out;
    struct nw_pairs_again hosts[2 * RETESTS_MAX];
};

static nw_rc measure_again(struct pairs *pairs, int a, int b)
{
    const struct nw_comm *comm = pairs->bench->comm;
    char title[192];

    for (int rank = 0; rank < comm->rank_count; rank++)
        pairs->peer_of_rank[rank] = nw_pairs_peer_of_hosts(&pairs->plan, rank, a, b);
    snprintf(title, sizeof title, "%.50s and %.50s again, alone", comm->host_names[a],
             comm->host_names[b]);
    return unit(pairs, title, bandwidth_bytes(pairs));
}

/* Collective. */
static nw_rc retest(struct pairs *pairs)
{
    struct nw_bench *bench = pairs->bench;
    struct retests retests = {.count = 0};
    nw_rc rc = NW_OK;

    if (bench->comm->rank == 0) {
        struct nw_pairs_fleet judged;

        rc = judge(pairs, &judged);
        if (rc == NW_OK) {
            rc = nw_pairs_fleet_again(&judged, pairs->plan.host_of_rank, RETESTS_MAX, retests.hosts,
                                      &retests.count, &retests.left_out);
            nw_pairs_fleet_free(&judged);
        }
    }
    NW_TRY(nw_agree(bench->comm, rc));
    NW_TRY(bench->comm->ops->share(bench->comm, &retests, sizeof retests, 0));
    bench->total += (uint64_t)retests.count;
    if (bench->done > 0) /* each as long as the others in the mean */
        bench->total_weight += retests.count * bench->done_weight / (double)bench->done;
    pairs->case_name = "retest";
    for (int i = 0; i < retests.count; i++)
        NW_TRY(measure_again(pairs, retests.hosts[i].a, retests.hosts[i].b));
    if (retests.left_out > 0)
        nw_bench_finding(bench, NW_FINDING_INFO, "retests-left-out", "",
                         "repair those named first, then measure anew",
                         "%d suspects were measured again alone; %d more were not", retests.count,
                         retests.left_out);
    return NW_OK;
}

/* ---- afterwards --------------------------------------------------------------------------------
 */

static void tell_slow(struct pairs *pairs, const struct nw_slow_pairs *slow)
{
    const struct nw_comm *comm = pairs->bench->comm;
    char where[192], rate[32], usual[32];

    for (size_t i = 0; i < slow->rank_count; i++) {
        nw_comm_rank_text(comm, slow->ranks[i], where);
        nw_bench_finding(pairs->bench, NW_FINDING_WARN, "rank-slow", where,
                         "look at this host's port, cable, PCIe link and load",
                         "most of its pairs are slower than %.0f %% of what like pairs reach",
                         100 * NW_SLOW_PAIR_SHARE);
    }
    for (size_t i = 0; i < slow->pair_count; i++) {
        const struct nw_slow_pair *pair = &slow->pairs[i];

        snprintf(where, sizeof where, "ranks %d on %s, %d on %s", pair->rate.rank_a,
                 comm->host_names[comm->host_of_rank[pair->rate.rank_a]], pair->rate.rank_b,
                 comm->host_names[comm->host_of_rank[pair->rate.rank_b]]);
        nw_bench_finding(pairs->bench, NW_FINDING_WARN, "pair-slow", where,
                         "look at the path between the two",
                         "%s GB/s each way, where the median of like pairs is %s GB/s",
                         nw_format_gb_per_s(rate, pair->rate.bytes_per_s),
                         nw_format_gb_per_s(usual, pair->median_bytes_per_s));
    }
}

/* Those of one host are compared by rank. */
static nw_rc tell_ranks(struct pairs *pairs)
{
    struct nw_slow_pairs slow = {0};
    size_t count = pairs->rate_count;

    if (pairs->plan.by_host) {
        count = 0;
        for (size_t i = 0; i < pairs->rate_count; i++)
            if (pairs->rates[i].same_host)
                pairs->rates[count++] = pairs->rates[i];
    }
    NW_TRY(nw_pairs_judge(pairs->rates, count, pairs->bench->comm->rank_count, &slow));
    tell_slow(pairs, &slow);
    nw_slow_pairs_free(&slow);
    return NW_OK;
}

static nw_rc tell_fleet(struct pairs *pairs, const struct nw_fleet *fleet,
                        const struct nw_fleet_scores *scores, const struct nw_fleet_names *names)
{
    struct nw_findings findings = {0};
    nw_rc rc = nw_fleet_findings(fleet, scores, names, NW_SLOW_PAIRS_MAX, &findings);

    for (size_t i = 0; i < findings.count && rc == NW_OK; i++)
        nw_bench_finding(pairs->bench, findings.items[i].severity, findings.items[i].code,
                         findings.items[i].where, findings.items[i].remedy, "%s",
                         findings.items[i].text);
    nw_findings_free(&findings);
    return rc;
}

static nw_rc tell_between_ranks(struct pairs *pairs, const struct nw_pairs_fleet *judged)
{
    static const char *const classes[] = {"ranks of two hosts"};
    const struct nw_comm *comm = pairs->bench->comm;
    const size_t count = (size_t)comm->rank_count;
    const char **names = calloc(count + 1, sizeof *names);
    char(*texts)[96] = calloc(count + 1, sizeof *texts);
    const struct nw_fleet_names all = {"rank", "ranks", names, classes};
    nw_rc rc = NW_OK;

    if (names == NULL || texts == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for %zu names", count);
    for (size_t rank = 0; rank < count && rc == NW_OK; rank++) {
        snprintf(texts[rank], sizeof texts[rank], "rank %zu on %.64s", rank,
                 comm->host_names[comm->host_of_rank[rank]]);
        names[rank] = texts[rank];
    }
    if (rc == NW_OK)
        rc = tell_fleet(pairs, &judged->ranks, &judged->rank_scores, &all);
    free(texts);
    free(names);
    return rc;
}

static nw_rc tell_hosts(struct pairs *pairs)
{
    static const char *const classes[] = {"pairs of hosts"};
    const struct nw_comm *comm = pairs->bench->comm;
    const char **names = calloc((size_t)comm->host_count + 1, sizeof *names);
    const struct nw_fleet_names all = {"host", "hosts", names, classes};
    struct nw_pairs_fleet judged;
    nw_rc rc = names != NULL ? judge(pairs, &judged)
                             : nw_fail(NW_ENOMEM, "no memory for %d names", comm->host_count);

    if (rc != NW_OK) {
        free(names);
        return rc;
    }
    for (int host = 0; host < comm->host_count; host++)
        names[host] = comm->host_names[host];
    rc = tell_fleet(pairs, &judged.hosts, &judged.host_scores, &all);
    if (rc == NW_OK && judged.ranks.edge_count > 0)
        rc = tell_between_ranks(pairs, &judged);
    nw_pairs_fleet_free(&judged);
    free(names);
    return rc;
}

/* Before it begins: what is measured, and about how long it takes. */
static void tell_plan(struct pairs *pairs)
{
    const struct nw_pairs_plan *plan = &pairs->plan;
    const int sizes = has_bandwidth(pairs) ? 2 : 1, units = plan->round_count * sizes;
    char time[32];

    if (plan->by_host)
        nw_bench_finding(
            pairs->bench, NW_FINDING_INFO, "pairs-plan", "", NULL,
            "%d ranks on %d hosts: %d rounds within hosts, %d of disjoint pairs of "
            "hosts, all ranks of both at once; %d measurements, about %s, and suspects "
            "again alone",
            plan->rank_count, plan->host_count, plan->within_count,
            plan->round_count - plan->within_count, units,
            nw_format_ns(time, units * (pairs->bench->plan->budget_ns + UNIT_NS)));
}

static nw_rc run_round(struct pairs *pairs, int round)
{
    const int ranks = pairs->bench->comm->rank_count;
    char title[96];

    for (int rank = 0; rank < ranks; rank++)
        pairs->peer_of_rank[rank] = nw_pairs_peer(&pairs->plan, rank, round);
    snprintf(title, sizeof title, "pairs round %d of %d", round + 1, pairs->plan.round_count);
    NW_TRY(unit(pairs, title, LATENCY_BYTES));
    return has_bandwidth(pairs) ? unit(pairs, title, bandwidth_bytes(pairs)) : NW_OK;
}

static nw_rc run_rounds(void *user)
{
    struct pairs *pairs = user;
    struct nw_bench *bench = pairs->bench;

    pairs->case_name = "pairs";
    tell_plan(pairs);
    for (int round = 0; round < pairs->plan.round_count; round++)
        NW_TRY(run_round(pairs, round));
    if (bench->dry)
        return NW_OK;
    if (pairs->plan.by_host && has_bandwidth(pairs))
        NW_TRY(retest(pairs));
    nw_rc rc = NW_OK;

    if (bench->comm->rank == 0 && pairs->plan.by_host && has_bandwidth(pairs))
        rc = tell_hosts(pairs);
    if (bench->comm->rank == 0 && rc == NW_OK)
        rc = tell_ranks(pairs);
    return nw_agree(bench->comm, rc); /* the others must not go on where rank 0 cannot */
}

nw_rc nw_case_pairs(struct nw_bench *bench)
{
    const size_t ranks = (size_t)bench->comm->rank_count;
    struct pairs pairs = {.bench = bench};
    nw_rc rc;

    if (ranks < 2) {
        nw_bench_finding(bench, NW_FINDING_INFO, "no-pairs", "", "mpirun -np N with N of 2 or more",
                         "only one rank takes part: there is no pair to measure");
        return NW_OK;
    }
    rc = nw_pairs_plan_open(bench->comm->host_of_rank, bench->comm->rank_count,
                            bench->comm->host_count, &pairs.plan);
    NW_TRY(nw_agree(bench->comm, rc));
    pairs.peer_of_rank = calloc(ranks, sizeof *pairs.peer_of_rank);
    pairs.group_of_rank = calloc(ranks, sizeof *pairs.group_of_rank);
    pairs.identities = calloc(ranks / 2, sizeof *pairs.identities);
    pairs.kept = calloc(ranks / 2, sizeof *pairs.kept);
    if (bench->comm->rank == 0 && !bench->dry)
        pairs.rates = calloc(ranks * (ranks - 1) / 2, sizeof *pairs.rates);
    if (pairs.peer_of_rank == NULL || pairs.group_of_rank == NULL || pairs.identities == NULL ||
        pairs.kept == NULL || (bench->comm->rank == 0 && !bench->dry && pairs.rates == NULL))
        rc = nw_fail(NW_ENOMEM, "no memory for the pairs of %zu ranks", ranks);
    else
        rc = NW_OK;
    rc = nw_agree(bench->comm, rc);
    if (rc == NW_OK)
        rc = nw_bench_series(bench, run_rounds, &pairs);
    free(pairs.rates);
    free(pairs.kept);
    free(pairs.identities);
    free(pairs.group_of_rank);
    free(pairs.peer_of_rank);
    nw_pairs_plan_free(&pairs.plan);
    return rc;
}
