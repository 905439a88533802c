/* Every two ranks exchange data, both ways at once, in rounds of disjoint pairs that run at the
 * same time: a latency size and a bandwidth size. A pair far below its like is named: a bad cable,
 * port, or host. Of three hosts and more every two meet as a whole (bench/pairs_plan.h); suspects
 * are measured again alone, a host against one known to be good, before they are named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/pairs_parts.h"
#include "bench/pairs_survive.h"
#include "bench/pairs_swap.h"

#define LATENCY_BYTES 8
/* Suspects of either kind that are measured again; the slowest ones. */
#define RETESTS_MAX  12
#define RETEST_TIMES 4 /* the sampling time of others: they are few, and must not be misjudged */
/* What a measurement takes beside its samples: first call, checks, exchanges. */
#define UNIT_NS 50e6

/* ---- a round -----------------------------------------------------------------------------------
 */

static void identify(struct nw_pairs *pairs, int a, int b, uint64_t bytes, struct nw_record *record)
{
    const struct nw_comm *comm = pairs->bench->comm;

    nw_bench_identity(pairs->bench, pairs->case_name, record);
    snprintf(record->collective, sizeof record->collective, "%s",
             pairs->one_way ? NW_FLEET_ONE_WAY : "sendrecv");
    snprintf(record->dtype, sizeof record->dtype, "uint64");
    record->rank_count = 2;
    record->host_count = comm->host_of_rank[a] == comm->host_of_rank[b] ? 1 : 2;
    record->bytes = bytes;
    record->count = bytes / NW_PAIRS_WORD_BYTES;
    record->peer_a = a;
    record->peer_b = b;
    snprintf(record->host_a, sizeof record->host_a, "%s", comm->host_names[comm->host_of_rank[a]]);
    snprintf(record->host_b, sizeof record->host_b, "%s", comm->host_names[comm->host_of_rank[b]]);
}

/* By peer_of_rank. */
static void pair_up(struct nw_pairs *pairs, uint64_t bytes)
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

/* Alone a pair is not slowed by others. */
static void add_again(struct nw_pairs *pairs, const struct nw_pair_rate *again, bool one_way)
{
    for (size_t i = 0; i < pairs->rate_count; i++) {
        struct nw_pair_rate *rate = &pairs->rates[i];

        if (rate->edge.a == again->edge.a && rate->edge.b == again->edge.b)
            nw_fleet_again(&rate->edge, &again->edge, one_way);
    }
}

static void add_rate(struct nw_pairs *pairs, const struct nw_record *record)
{
    const double bytes_per_s = record->busbw_bytes_per_s;
    const struct nw_pair_rate rate = {
        .same_host = record->host_count == 1,
        .edge = {.a = record->peer_a,
                 .b = record->peer_b,
                 .bytes_per_s = bytes_per_s,
                 .high_bytes_per_s = nw_fleet_high(bytes_per_s, &record->time_ns),
                 .low_bytes_per_s = nw_fleet_low(bytes_per_s, &record->time_ns)}};

    if (pairs->rates == NULL ||
        record->bytes !=
            pairs->bench->plan->pair_bytes / NW_PAIRS_WORD_BYTES * NW_PAIRS_WORD_BYTES ||
        !(record->busbw_bytes_per_s > 0))
        return;
    if (strcmp(record->case_name, "retest") == 0)
        add_again(pairs, &rate, strcmp(record->collective, NW_FLEET_ONE_WAY) == 0);
    else
        pairs->rates[pairs->rate_count++] = rate;
}

static nw_rc measure_round(struct nw_pairs *pairs, uint64_t bytes, const char *title)
{
    struct nw_bench *bench = pairs->bench;
    struct nw_pairs_work work;
    struct nw_measure how = nw_bench_how(bench, bytes, title);
    struct nw_measured measured;
    nw_rc rc = NW_OK;

    if (strcmp(pairs->case_name, "retest") == 0)
        how.rules.budget_ns *= RETEST_TIMES;
    how.group_of_rank = pairs->group_of_rank;
    how.group_count = pairs->pair_count;
    nw_pairs_work_open(bench, pairs->peer_of_rank[bench->comm->rank], bytes, pairs->one_way, &work);
    NW_TRY(nw_measure(&how, &work.work, &measured));
    for (int pair = 0; pair < pairs->pair_count && rc == NW_OK; pair++)
        rc = nw_measured_report(&measured, pair, bench->comm, pairs->one_way ? 2 : 1,
                                &pairs->identities[pair]);
    nw_measured_free(&measured);
    rc = nw_agree(bench->comm, rc); /* memory may be short on one rank */
    for (int pair = 0; pair < pairs->pair_count; pair++) {
        if (rc ==
            NW_OK) { /* from here to the unit's end nothing waits: it is done, or not at all */
            nw_bench_record(bench, &pairs->identities[pair]);
            add_rate(pairs, &pairs->identities[pair]);
        }
        nw_record_free(&pairs->identities[pair]);
    }
    return rc;
}

/* The pairs of peer_of_rank, at one size. */
static nw_rc unit(struct nw_pairs *pairs, const char *what, uint64_t bytes)
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

static uint64_t bandwidth_bytes(const struct nw_pairs *pairs)
{
    return pairs->bench->plan->pair_bytes / NW_PAIRS_WORD_BYTES * NW_PAIRS_WORD_BYTES;
}

static bool has_bandwidth(const struct nw_pairs *pairs)
{
    return pairs->bench->plan->pair_bytes >= LATENCY_BYTES + NW_PAIRS_WORD_BYTES;
}

/* ---- suspects, of three hosts and more ---------------------------------------------------------
 */

/* Both ends of a pair idle. */
static void leave_out_lost(struct nw_pairs *pairs)
{
    const struct nw_comm *comm = pairs->bench->comm;

    for (int rank = 0; rank < comm->rank_count; rank++) {
        const int peer = pairs->peer_of_rank[rank];

        if (peer >= 0 && (pairs->lost_hosts[comm->host_of_rank[rank]] ||
                          pairs->lost_hosts[comm->host_of_rank[peer]]))
            pairs->peer_of_rank[rank] = pairs->peer_of_rank[peer] = -1;
    }
}

struct retests {
    int count, left_out;
    struct nw_pairs_again hosts[2 * RETESTS_MAX];
};

static nw_rc measure_again(struct nw_pairs *pairs, int a, int b)
{
    const struct nw_comm *comm = pairs->bench->comm;
    char title[192];

    for (int rank = 0; rank < comm->rank_count; rank++)
        pairs->peer_of_rank[rank] = nw_pairs_peer_of_hosts(&pairs->plan, rank, a, b);
    leave_out_lost(pairs);
    snprintf(title, sizeof title, "%.50s and %.50s again, alone%s", comm->host_names[a],
             comm->host_names[b], pairs->one_way ? ", one way at a time" : "");
    return unit(pairs, title, bandwidth_bytes(pairs));
}

/* Both ways at once as before; then one way at a time, since over TCP a large message's handshake
 * can stand behind the other way's data, call after call: half of the rate, on a good wire. */
static nw_rc measure_again_twice(struct nw_pairs *pairs, int a, int b)
{
    nw_rc rc = measure_again(pairs, a, b);

    if (rc != NW_OK)
        return rc;
    pairs->one_way = true;
    rc = measure_again(pairs, a, b);
    pairs->one_way = false;
    return rc;
}

/* Collective. */
static nw_rc retest(struct nw_pairs *pairs, bool first)
{
    struct nw_bench *bench = pairs->bench;
    struct retests retests = {.count = 0};
    nw_rc rc = NW_OK;

    if (bench->comm->rank == 0) {
        struct nw_pairs_fleet judged;

        rc = nw_pairs_judge_hosts(pairs, &judged);
        if (rc == NW_OK) {
            rc = nw_pairs_fleet_again(&judged, pairs->plan.host_of_rank, RETESTS_MAX, retests.hosts,
                                      &retests.count, &retests.left_out);
            nw_pairs_fleet_free(&judged);
        }
    }
    NW_TRY(nw_agree(bench->comm, rc));
    NW_TRY(bench->comm->ops->share(bench->comm, &retests, sizeof retests, 0));
    bench->total += 2 * (uint64_t)retests.count;
    if (bench->done > 0) /* each as long as the others in the mean */
        bench->total_weight += 2 * retests.count * bench->done_weight / (double)bench->done;
    pairs->case_name = "retest";
    for (int i = 0; i < retests.count; i++)
        NW_TRY(measure_again_twice(pairs, retests.hosts[i].a, retests.hosts[i].b));
    if (first && retests.left_out > 0)
        nw_bench_finding(bench, NW_FINDING_INFO, "retests-left-out", "",
                         "repair those named first, then measure anew",
                         "%d suspects were measured again alone; %d more were not", retests.count,
                         retests.left_out);
    return NW_OK;
}

/* Before it begins: what is measured, and about how long it takes. */
static void tell_plan(struct nw_pairs *pairs)
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

/* A round at one size. */
static nw_rc run_unit(struct nw_pairs *pairs, int number)
{
    const int ranks = pairs->bench->comm->rank_count, sizes = has_bandwidth(pairs) ? 2 : 1;
    const int round = number / sizes;
    char title[96];

    for (int rank = 0; rank < ranks; rank++)
        pairs->peer_of_rank[rank] = nw_pairs_peer(&pairs->plan, rank, round);
    leave_out_lost(pairs);
    snprintf(title, sizeof title, "pairs round %d of %d", round + 1, pairs->plan.round_count);
    return unit(pairs, title, number % sizes == 0 ? LATENCY_BYTES : bandwidth_bytes(pairs));
}

static bool judges_hosts(const struct nw_pairs *pairs)
{
    return pairs->plan.by_host && has_bandwidth(pairs);
}

/* Who is still a suspect after that is measured again once more, some time later: what disturbed
 * the first two times may have passed. */
enum { ROUNDS, RETESTS, CONFIRMS, FINDINGS, DONE };

static nw_rc tell(struct nw_pairs *pairs)
{
    struct nw_comm *comm = pairs->bench->comm;
    nw_rc rc = NW_OK;

    if (comm->rank == 0 && judges_hosts(pairs))
        rc = nw_pairs_tell_hosts(pairs);
    if (comm->rank == 0 && rc == NW_OK)
        rc = nw_pairs_tell_ranks(pairs);
    return nw_agree(comm, rc); /* the others must not go on where rank 0 cannot */
}

static nw_rc step(struct nw_pairs *pairs, const struct nw_pairs_place *place)
{
    if (place->phase == ROUNDS) {
        pairs->case_name = "pairs";
        return run_unit(pairs, place->unit);
    }
    if (place->phase == RETESTS || place->phase == CONFIRMS)
        return judges_hosts(pairs) ? retest(pairs, place->phase == RETESTS) : NW_OK;
    return tell(pairs);
}

/* Hosts that are lost are left out, and the unit is measured without them. */
static nw_rc run_rounds(void *user)
{
    struct nw_pairs *pairs = user;
    struct nw_bench *bench = pairs->bench;
    const int units = pairs->plan.round_count * (has_bandwidth(pairs) ? 2 : 1);
    struct nw_pairs_place place = {.phase = ROUNDS};

    tell_plan(pairs);
    if (!bench->dry)
        NW_TRY(nw_pairs_guard(pairs));
    while (place.phase < (bench->dry ? RETESTS : DONE)) {
        nw_rc rc;

        place.pattern = bench->round;
        rc = step(pairs, &place);
        if (rc != NW_OK) {
            NW_TRY(nw_pairs_survive(pairs, rc, &place));
            continue;
        }
        if (place.phase > ROUNDS || ++place.unit >= units)
            place.phase++;
    }
    NW_TRY(nw_pairs_tell_lost(pairs));
    nw_pairs_unguard(pairs);
    return NW_OK;
}

nw_rc nw_case_pairs(struct nw_bench *bench)
{
    const size_t ranks = (size_t)bench->comm->rank_count;
    struct nw_pairs pairs = {.bench = bench};
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
    pairs.lost_hosts = calloc((size_t)bench->comm->host_count, sizeof *pairs.lost_hosts);
    if (bench->comm->rank == 0 && !bench->dry)
        pairs.rates = calloc(ranks * (ranks - 1) / 2, sizeof *pairs.rates);
    if (pairs.peer_of_rank == NULL || pairs.group_of_rank == NULL || pairs.identities == NULL ||
        pairs.kept == NULL || pairs.lost_hosts == NULL ||
        (bench->comm->rank == 0 && !bench->dry && pairs.rates == NULL))
        rc = nw_fail(NW_ENOMEM, "no memory for the pairs of %zu ranks", ranks);
    else
        rc = NW_OK;
    rc = nw_agree(bench->comm, rc);
    if (rc == NW_OK)
        rc = nw_bench_series(bench, run_rounds, &pairs);
    free(pairs.rates);
    free(pairs.kept);
    free(pairs.lost_hosts);
    free(pairs.identities);
    free(pairs.group_of_rank);
    free(pairs.peer_of_rank);
    nw_pairs_plan_free(&pairs.plan);
    return rc;
}
