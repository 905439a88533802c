/* What TCP carries between hosts, one way, over 1, 2, 4 … connections, and the time of a small
 * message: the control for a network that is sold with RDMA. One rank of each host takes part. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench/agree.h"
#include "bench/case.h"
#include "bench/tcp_rounds.h"
#include "bench/tcp_work.h"

#define LATENCY_BYTES 8
#define WORD_BYTES    8
#define CONNECT_NS    2e9
#define STREAM_NS     0.25e9 /* each in turn: two round trips */
/* The window of a new connection opens within some ten round trips. */
#define WARMUP_CALLS        4
#define OUTCOME_TEXT        300
#define SLOWEST_BYTES_PER_S 10e6
#define PATIENCE                                                                                   \
    0.9 /* of the margin: a wire that stands still is told before the watchdog ends all */
#define ASYMMETRIC 0.7 /* one way below so much of the other is worth a word */

struct best {           /* of one direction, rank 0 */
    double bytes_per_s; /* 0: not measured */
    double one_stream;
    int streams;
};

struct tcp {
    struct nw_bench *bench;
    int *leader_of_host;
    struct nw_tcp_end *end;     /* of this host's leader; NULL: another rank's */
    struct nw_reach_end *cards; /* of the hosts */
    struct best *best;          /* host_count × host_count: from, to */
    bool *blocked;              /* the same: no connection. On all ranks */
    int *group_of_rank;         /* of the current round */
    struct nw_record *identities;
    const struct nw_record **kept;
    int pair_count; /* of a round */
    /* What a connection must say to be ours: rank 0's random number, and how many times all ranks
     * have connected. */
    uint64_t secret, connected;
    uint64_t *data; /* of a leader: `bytes` */
    uint64_t bytes;
};

/* ---- a round -----------------------------------------------------------------------------------
 */

struct step { /* what is measured in a round */
    int round, streams;
    uint64_t bytes;
    bool latency;
};

static double ceiling_of(const struct tcp *tcp, int from, int to)
{
    int a, b;

    nw_tcp_choose(&tcp->cards[from], &tcp->cards[to], &a, &b);
    const double rate =
        fmin(tcp->cards[from].addresses[a].bits_per_s, tcp->cards[to].addresses[b].bits_per_s) / 8;

    return rate > 0 ? rate : NAN;
}

static void identify(const struct tcp *tcp, const struct step *step, int from, int to,
                     struct nw_record *record)
{
    const struct nw_comm *comm = tcp->bench->comm;

    nw_bench_identity(tcp->bench, "tcp", record);
    snprintf(record->collective, sizeof record->collective, step->latency ? "latency" : "stream");
    snprintf(record->lane, sizeof record->lane, "tcp");
    snprintf(record->dtype, sizeof record->dtype, "uint64");
    record->rank_count = record->host_count = 2;
    record->bytes = step->bytes;
    record->count = step->bytes / WORD_BYTES;
    record->stream_count = step->streams;
    record->peer_a = tcp->leader_of_host[from];
    record->peer_b = tcp->leader_of_host[to];
    snprintf(record->host_a, sizeof record->host_a, "%s", comm->host_names[from]);
    snprintf(record->host_b, sizeof record->host_b, "%s", comm->host_names[to]);
    if (!step->latency && !tcp->bench->dry)
        record->ceiling_bytes_per_s = ceiling_of(tcp, from, to);
}

static void pair_up(struct tcp *tcp, const struct step *step)
{
    const struct nw_comm *comm = tcp->bench->comm;

    tcp->pair_count = 0;
    for (int rank = 0; rank < comm->rank_count; rank++)
        tcp->group_of_rank[rank] = -1;
    for (int host = 0; host < comm->host_count; host++) {
        bool sends;
        const int peer = nw_tcp_round_peer(host, step->round, comm->host_count, &sends);

        if (peer < 0 || !sends || tcp->blocked[host * comm->host_count + peer])
            continue;
        tcp->group_of_rank[tcp->leader_of_host[host]] = tcp->pair_count;
        tcp->group_of_rank[tcp->leader_of_host[peer]] = tcp->pair_count;
        identify(tcp, step, host, peer, &tcp->identities[tcp->pair_count++]);
    }
}

static void note(struct tcp *tcp, const struct nw_record *record)
{
    const struct nw_comm *comm = tcp->bench->comm;

    if (comm->rank != 0 || strcmp(record->collective, "stream") != 0 ||
        !(record->algbw_bytes_per_s > 0))
        return;
    struct best *best = &tcp->best[comm->host_of_rank[record->peer_a] * comm->host_count +
                                   comm->host_of_rank[record->peer_b]];

    if (record->stream_count == 1)
        best->one_stream = record->algbw_bytes_per_s;
    if (record->algbw_bytes_per_s > best->bytes_per_s) {
        best->bytes_per_s = record->algbw_bytes_per_s;
        best->streams = record->stream_count;
    }
}

struct outcome { /* of connecting, of each rank */
    int rc;
    char text[OUTCOME_TEXT];
};

static double connect_ns(const struct step *step)
{
    return CONNECT_NS + STREAM_NS * step->streams;
}

/* Before the deadline that the unit has as a whole (nw_bench_how): where -T gives it, whatever the
 * size. */
static double transfer_ns(const struct nw_bench *bench, uint64_t bytes)
{
    return PATIENCE * nw_bench_margin_ns(bench) +
           (bench->plan->timeout_ns > 0 ? 0 : (double)bytes / SLOWEST_BYTES_PER_S * 1e9);
}

static struct outcome connect_pair(const struct tcp *tcp, const struct step *step,
                                   struct nw_tcp_work *work)
{
    struct nw_bench *bench = tcp->bench;
    const int host = bench->comm->host_index;
    const struct nw_tcp_how how = {
        .stream_count = step->streams,
        .run = tcp->secret + tcp->connected,
        .connect_ns = connect_ns(step),
        .transfer_ns = transfer_ns(bench, step->bytes),
    };
    struct outcome outcome = {.rc = NW_OK};
    bool sends;
    const int peer = nw_tcp_round_peer(host, step->round, bench->comm->host_count, &sends);

    if (tcp->group_of_rank[bench->comm->rank] < 0)
        return outcome;
    work->sends = sends;
    work->from_rank = tcp->leader_of_host[sends ? host : peer];
    outcome.rc =
        (sends ? nw_tcp_connect : nw_tcp_accept)(tcp->end, &tcp->cards[peer], &how, &work->link);
    if (outcome.rc != NW_OK)
        snprintf(outcome.text, sizeof outcome.text, "%.299s", nw_last_error()->text);
    return outcome;
}

static void tell_blocked(const struct tcp *tcp, const struct nw_record *record,
                         const struct outcome *all)
{
    const struct outcome *a = &all[record->peer_a], *b = &all[record->peer_b];
    char where[160];

    snprintf(where, sizeof where, "%s to %s", record->host_a, record->host_b);
    nw_bench_finding(tcp->bench, NW_FINDING_WARN, "tcp-blocked", where,
                     "nodeworth check over both hosts says where it ends; NCCL and MPI need it too",
                     "%s", a->rc != NW_OK ? a->text : b->text);
}

/* Pairs that did not connect are left out from here on, by all ranks alike. */
static nw_rc connect_round(struct tcp *tcp, const struct step *step, const char *title,
                           struct nw_tcp_work *work)
{
    struct nw_comm *comm = tcp->bench->comm;
    struct outcome mine, *all = calloc((size_t)comm->rank_count, sizeof *all);
    bool lost = false;
    nw_rc rc;

    /* Idle ranks wait as long for those that connect. */
    nw_bench_status_write(
        tcp->bench->events->status,
        nw_now_ns() + (uint64_t)(connect_ns(step) + nw_bench_margin_ns(tcp->bench)), title);
    tcp->connected++;
    mine = connect_pair(tcp, step, work);
    rc = nw_agree(comm, all != NULL ? NW_OK
                                    : nw_fail(NW_ENOMEM, "no memory for the answers of %d ranks",
                                              comm->rank_count));
    if (rc == NW_OK)
        rc = comm->ops->exchange(comm, &mine, sizeof mine, all);

    for (int pair = 0; rc == NW_OK && pair < tcp->pair_count; pair++) {
        const struct nw_record *record = &tcp->identities[pair];
        const int from = comm->host_of_rank[record->peer_a],
                  to = comm->host_of_rank[record->peer_b];

        if (all[record->peer_a].rc == NW_OK && all[record->peer_b].rc == NW_OK)
            continue;
        lost = tcp->blocked[from * comm->host_count + to] = true;
        tell_blocked(tcp, record, all);
    }
    free(all);
    if (lost)
        pair_up(tcp, step);
    if (tcp->group_of_rank[comm->rank] < 0) {
        nw_tcp_link_close(work->link);
        work->link = NULL;
    }
    return rc;
}

static nw_rc measure(struct tcp *tcp, const struct step *step, const struct nw_tcp_work *work,
                     const char *title)
{
    struct nw_bench *bench = tcp->bench;
    struct nw_measure how = nw_bench_how(bench, step->bytes, title);
    struct nw_measured measured;
    nw_rc rc = NW_OK;

    how.group_of_rank = tcp->group_of_rank;
    how.group_count = tcp->pair_count;
    if (how.warmup_calls < WARMUP_CALLS)
        how.warmup_calls = WARMUP_CALLS;
    NW_TRY(nw_measure(&how, &work->work, &measured));
    for (int pair = 0; pair < tcp->pair_count && rc == NW_OK; pair++) {
        struct nw_record *record = &tcp->identities[pair];

        rc = nw_measured_report(&measured, pair, bench->comm, 1, record);
        if (rc == NW_OK) {
            nw_bench_record(bench, record);
            note(tcp, record);
        }
        nw_record_free(record);
    }
    nw_measured_free(&measured);
    return rc;
}

static nw_rc unit(struct tcp *tcp, const struct step *step)
{
    struct nw_bench *bench = tcp->bench;
    struct nw_tcp_work work = nw_tcp_work_of(tcp->data, step->bytes, step->latency);
    char title[128], size[32];
    struct nw_unit unit = {.identities = tcp->identities, .title = title};
    bool go;
    nw_rc rc;

    pair_up(tcp, step);
    if (tcp->pair_count == 0)
        return NW_OK;
    unit.identity_count = (size_t)tcp->pair_count;
    snprintf(title, sizeof title, "tcp round %d of %d, %s, %d stream%s", step->round + 1,
             nw_tcp_round_count(bench->comm->host_count), nw_format_bytes(size, step->bytes),
             step->streams, step->streams == 1 ? "" : "s");
    memset(tcp->kept, 0, (size_t)tcp->pair_count * sizeof *tcp->kept);
    NW_TRY(nw_bench_begin(bench, &unit, &go, tcp->kept));
    for (int pair = 0; pair < tcp->pair_count; pair++)
        if (tcp->kept[pair] != NULL)
            note(tcp, tcp->kept[pair]);
    if (!go)
        return NW_OK;
    rc = connect_round(tcp, step, title, &work);
    if (rc == NW_OK && tcp->pair_count > 0)
        rc = measure(tcp, step, &work, title);
    nw_tcp_link_close(work.link);
    NW_TRY(rc);
    nw_bench_end(bench, &unit);
    return NW_OK;
}

/* ---- afterwards --------------------------------------------------------------------------------
 */

static void tell_direction(const struct tcp *tcp, int from, int to)
{
    const struct nw_comm *comm = tcp->bench->comm;
    const struct best *there = &tcp->best[from * comm->host_count + to];
    const struct best *back = &tcp->best[to * comm->host_count + from];
    char where[160], slow[32], fast[32];

    if (!(there->bytes_per_s > 0) || !(there->bytes_per_s < ASYMMETRIC * back->bytes_per_s))
        return;
    snprintf(where, sizeof where, "%s to %s", comm->host_names[from], comm->host_names[to]);
    nw_bench_finding(tcp->bench, NW_FINDING_WARN, "tcp-asymmetric", where,
                     "look for a limit on what the first may send, or errors on a port: tc qdisc; "
                     "ethtool -S",
                     "TCP reaches %s GB/s this way and %s the other",
                     nw_format_gb_per_s(slow, there->bytes_per_s),
                     nw_format_gb_per_s(fast, back->bytes_per_s));
}

/* The slowest direction, and what more connections bring it. */
static void tell(const struct tcp *tcp)
{
    const struct nw_comm *comm = tcp->bench->comm;
    const int hosts = comm->host_count;
    const struct best *worst = NULL;
    char where[160], one[32], most[32], more[64] = "";

    for (int i = 0; i < hosts * hosts; i++)
        if (tcp->best[i].bytes_per_s > 0 &&
            (worst == NULL || tcp->best[i].bytes_per_s < worst->bytes_per_s))
            worst = &tcp->best[i];
    if (worst == NULL)
        return;
    const int from = (int)(worst - tcp->best) / hosts, to = (int)(worst - tcp->best) % hosts;
    int a, b;

    nw_tcp_choose(&tcp->cards[from], &tcp->cards[to], &a, &b);
    snprintf(where, sizeof where, "%s to %s", comm->host_names[from], comm->host_names[to]);
    nw_format_gb_per_s(one, worst->one_stream > 0 ? worst->one_stream : NAN);
    nw_format_gb_per_s(most, worst->bytes_per_s);
    if (worst->streams > 1)
        snprintf(more, sizeof more, ", %d reach %s", worst->streams, most);
    nw_bench_finding(tcp->bench, NW_FINDING_INFO, "tcp-rate", where, NULL,
                     "the slowest way: over %s and %s one TCP connection reaches %s GB/s%s",
                     tcp->cards[from].addresses[a].interface, tcp->cards[to].addresses[b].interface,
                     one, more);
    for (int i = 0; i < hosts; i++)
        for (int j = 0; j < hosts; j++)
            tell_direction(tcp, i, j);
}

/* ---- the case ----------------------------------------------------------------------------------
 */

static nw_rc run_rounds(void *user)
{
    struct tcp *tcp = user;
    const int rounds = nw_tcp_round_count(tcp->bench->comm->host_count);
    /* what small messages take */
    const int most = tcp->bytes < NW_TCP_SMALL_BYTES ? 1 : tcp->bench->plan->tcp_streams;

    for (int round = 0; round < rounds; round++) {
        struct step step = {.round = round, .streams = 1, .bytes = LATENCY_BYTES, .latency = true};

        NW_TRY(unit(tcp, &step));
        step.latency = false;
        step.bytes = tcp->bytes;
        for (; step.streams <= most; step.streams *= 2)
            NW_TRY(unit(tcp, &step));
    }
    return NW_OK;
}

struct card { /* of a rank */
    struct nw_reach_end end;
    uint64_t secret;
};

/* One card a host, from its leader; the same answer on all ranks. */
static nw_rc open_ends(struct tcp *tcp)
{
    struct nw_comm *comm = tcp->bench->comm;
    struct card *all = calloc((size_t)comm->rank_count, sizeof *all), mine = {.secret = 0};
    nw_rc rc = all != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for %d ends", comm->rank_count);

    if (rc == NW_OK && tcp->leader_of_host[comm->host_index] == comm->rank) {
        rc = nw_tcp_open(getenv("NCCL_SOCKET_IFNAME"), comm->host_names[comm->host_index],
                         &tcp->end);
        tcp->data = rc == NW_OK ? nw_comm_alloc(tcp->bytes) : NULL;
        if (rc == NW_OK && tcp->data == NULL)
            rc = nw_fail(NW_ENOMEM, "no memory for %llu bytes", (unsigned long long)tcp->bytes);
        if (rc == NW_OK)
            mine.end = *nw_tcp_card(tcp->end);
    }
    if (rc == NW_OK && comm->rank == 0 &&
        getrandom(&mine.secret, sizeof mine.secret, 0) != sizeof mine.secret)
        rc = nw_fail(NW_ELIB, "no random number from the kernel: %s", strerror(errno));
    rc = nw_agree(comm, rc);
    if (rc == NW_OK)
        rc = comm->ops->exchange(comm, &mine, sizeof mine, all);
    for (int host = 0; rc == NW_OK && host < comm->host_count; host++)
        tcp->cards[host] = all[tcp->leader_of_host[host]].end;
    if (rc == NW_OK)
        tcp->secret = all[0].secret;
    free(all);
    return rc;
}

static bool allocate(struct tcp *tcp)
{
    const struct nw_comm *comm = tcp->bench->comm;
    const size_t hosts = (size_t)comm->host_count;

    tcp->leader_of_host = calloc(hosts, sizeof *tcp->leader_of_host);
    tcp->cards = calloc(hosts, sizeof *tcp->cards);
    tcp->best = calloc(hosts * hosts, sizeof *tcp->best);
    tcp->blocked = calloc(hosts * hosts, sizeof *tcp->blocked);
    tcp->group_of_rank = calloc((size_t)comm->rank_count, sizeof *tcp->group_of_rank);
    tcp->identities = calloc(hosts, sizeof *tcp->identities);
    tcp->kept = calloc(hosts, sizeof *tcp->kept);
    return tcp->leader_of_host != NULL && tcp->cards != NULL && tcp->best != NULL &&
           tcp->blocked != NULL && tcp->group_of_rank != NULL && tcp->identities != NULL &&
           tcp->kept != NULL;
}

static void release(struct tcp *tcp)
{
    nw_comm_free(tcp->data, tcp->bytes);
    nw_tcp_close(tcp->end);
    free(tcp->leader_of_host);
    free(tcp->cards);
    free(tcp->best);
    free(tcp->blocked);
    free(tcp->group_of_rank);
    free(tcp->identities);
    free(tcp->kept);
}

static nw_rc run(struct tcp *tcp)
{
    nw_rc rc;

    if (tcp->bench->dry)
        return run_rounds(tcp);
    rc = open_ends(tcp);
    if (rc == NW_ENODEV) { /* what is sold may be RDMA alone */
        nw_bench_finding(tcp->bench, NW_FINDING_INFO, "no-tcp", "", "ip -br address on each host",
                         "%s", nw_last_error()->text);
        return NW_OK;
    }
    NW_TRY(rc);
    NW_TRY(nw_bench_series(tcp->bench, run_rounds, tcp));
    if (tcp->bench->comm->rank == 0)
        tell(tcp);
    return NW_OK;
}

nw_rc nw_case_tcp(struct nw_bench *bench)
{
    const struct nw_comm *comm = bench->comm;
    struct tcp tcp = {.bench = bench, .bytes = bench->plan->pair_bytes / WORD_BYTES * WORD_BYTES};
    nw_rc rc;

    if (comm->host_count < 2) {
        nw_bench_finding(bench, NW_FINDING_INFO, "no-tcp", "", "ranks on two hosts and more",
                         "all ranks are on one host: TCP would not touch a wire");
        return NW_OK;
    }
    rc = nw_agree(bench->comm, allocate(&tcp) ? NW_OK
                                              : nw_fail(NW_ENOMEM,
                                                        "no memory for the TCP links of "
                                                        "%d hosts",
                                                        comm->host_count));
    for (int rank = comm->rank_count - 1; rc == NW_OK && rank >= 0; rank--)
        tcp.leader_of_host[comm->host_of_rank[rank]] = rank;
    if (rc == NW_OK)
        rc = run(&tcp);
    release(&tcp);
    return rc;
}
