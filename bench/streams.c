#include "bench/streams.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/words.h"

/* ---- the work ----------------------------------------------------------------------------------
 */

struct stream_work {
    struct nw_work work; /* first */
    const struct nw_bench *bench;
    bool out;
    const struct nw_message *messages;
    size_t count; /* 0: this rank looks on */
};

static nw_rc stream_call(const struct nw_work *base, uint64_t index)
{
    const struct stream_work *work = (const struct stream_work *)base;
    struct nw_comm *comm = work->bench->comm;

    (void)index;
    return work->count > 0 ? comm->ops->pass(comm, work->out, work->messages, work->count) : NW_OK;
}

static nw_rc stream_queue(void *user, uint64_t index)
{
    return stream_call(user, index);
}

static nw_rc stream_finish(void *user, double timeout_ns)
{
    const struct stream_work *work = user;

    return nw_comm_finish(work->bench->comm, timeout_ns);
}

static nw_rc stream_time(const struct nw_work *base, uint64_t index, uint32_t calls, double *ns_out)
{
    struct stream_work work = *(const struct stream_work *)base;
    const uint64_t bytes = work.count > 0 ? work.count * work.messages[0].bytes : 0;
    struct nw_gated gated = nw_bench_gate(work.bench, bytes, calls);

    gated.queue = stream_queue;
    gated.finish = stream_finish;
    gated.user = &work;
    if (work.count == 0)
        gated.stream = NULL;
    return nw_gated_time(&gated, index, calls, ns_out);
}

static void stream_fill(const struct nw_work *base, uint64_t round)
{
    const struct stream_work *work = (const struct stream_work *)base;
    struct nw_comm *comm = work->bench->comm;

    for (size_t i = 0; i < work->count; i++) {
        uint64_t *data = work->messages[i].data;
        const uint64_t words = work->messages[i].bytes / NW_WORD_BYTES;

        if (work->out)
            nw_words_put(comm, data, words, comm->rank, round);
        else
            nw_words_poison(comm, data, words);
    }
}

static uint64_t stream_check(const struct nw_work *base, uint64_t round, struct nw_wrong *first_out)
{
    const struct stream_work *work = (const struct stream_work *)base;
    uint64_t wrong = 0;

    for (size_t i = 0; i < work->count && !work->out; i++) {
        const struct nw_message *message = &work->messages[i];
        struct nw_wrong first;
        const uint64_t of_message =
            nw_words_check(work->bench->comm, message->data, message->bytes / NW_WORD_BYTES,
                           message->peer, round, &first);

        if (of_message > 0 && wrong == 0)
            *first_out = first;
        wrong += of_message;
    }
    return wrong;
}

/* ---- who sends to whom -------------------------------------------------------------------------
 */

nw_rc nw_streams_open(struct nw_bench *bench, const char *case_name, uint64_t bytes,
                      struct nw_streams *streams_out)
{
    const struct nw_comm *comm = bench->comm;
    const size_t ranks = (size_t)comm->rank_count, hosts = (size_t)comm->host_count;
    struct nw_streams streams = {.bench = bench,
                                 .case_name = case_name,
                                 .bytes = bytes,
                                 .index_in_host = calloc(ranks, sizeof *streams.index_in_host),
                                 .to_of_rank = calloc(ranks, sizeof *streams.to_of_rank),
                                 .group_of_rank = calloc(ranks, sizeof *streams.group_of_rank),
                                 .records = calloc(hosts, sizeof *streams.records),
                                 .kept = calloc(hosts, sizeof *streams.kept),
                                 .messages = calloc(hosts, sizeof *streams.messages)};

    *streams_out = streams;
    if (streams.index_in_host == NULL || streams.to_of_rank == NULL ||
        streams.group_of_rank == NULL || streams.records == NULL || streams.kept == NULL ||
        streams.messages == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the streams of %zu hosts", hosts);
    for (size_t rank = 0; rank < ranks; rank++)
        for (size_t before = 0; before < rank; before++)
            streams.index_in_host[rank] += comm->host_of_rank[before] == comm->host_of_rank[rank];
    return NW_OK;
}

void nw_streams_close(struct nw_streams *streams)
{
    free(streams->index_in_host);
    free(streams->to_of_rank);
    free(streams->group_of_rank);
    free(streams->records);
    free(streams->kept);
    free(streams->messages);
}

void nw_streams_clear(struct nw_streams *streams)
{
    for (int rank = 0; rank < streams->bench->comm->rank_count; rank++)
        streams->to_of_rank[rank] = streams->group_of_rank[rank] = -1;
}

void nw_streams_add(struct nw_streams *streams, int from_host, int to_host, int group)
{
    const struct nw_comm *comm = streams->bench->comm;

    for (int from = 0; from < comm->rank_count; from++)
        for (int to = 0; comm->host_of_rank[from] == from_host && to < comm->rank_count; to++)
            if (comm->host_of_rank[to] == to_host &&
                streams->index_in_host[to] == streams->index_in_host[from]) {
                streams->to_of_rank[from] = to;
                streams->group_of_rank[from] = streams->group_of_rank[to] = group;
            }
}

/* ---- a unit ------------------------------------------------------------------------------------
 */

struct group { /* what a record says of it */
    int streams, ranks, hosts, from_hosts;
    int from, to; /* of its first stream */
};

static struct group look_at(const struct nw_streams *streams, int group)
{
    const struct nw_comm *comm = streams->bench->comm;
    struct group found = {.from = -1, .to = -1};
    int last_host = -1, last_from = -1;

    for (int rank = 0; rank < comm->rank_count; rank++) {
        const int host = comm->host_of_rank[rank];
        const bool sends = streams->to_of_rank[rank] >= 0;

        if (streams->group_of_rank[rank] != group)
            continue;
        found.ranks++;
        found.hosts += host != last_host;
        last_host = host;
        if (!sends)
            continue;
        found.from_hosts += host != last_from;
        last_from = host;
        if (found.streams++ == 0) {
            found.from = rank;
            found.to = streams->to_of_rank[rank];
        }
    }
    return found;
}

static void identify(const struct nw_streams *streams, const char *name, int group,
                     struct nw_record *record)
{
    const struct nw_comm *comm = streams->bench->comm;
    const struct group found = look_at(streams, group);

    nw_bench_identity(streams->bench, streams->case_name, record);
    snprintf(record->collective, sizeof record->collective, "%s", name);
    snprintf(record->dtype, sizeof record->dtype, "uint64");
    snprintf(record->memory, sizeof record->memory, "%s", comm->dev != NULL ? "gpu" : "host");
    record->rank_count = found.ranks;
    record->host_count = found.hosts;
    record->bytes = streams->bytes;
    record->count = (uint64_t)found.streams;
    record->peer_b = found.to;
    snprintf(record->host_b, sizeof record->host_b, "%s",
             comm->host_names[comm->host_of_rank[found.to]]);
    if (found.from_hosts > 1)
        return;
    record->peer_a = found.from;
    snprintf(record->host_a, sizeof record->host_a, "%s",
             comm->host_names[comm->host_of_rank[found.from]]);
}

/* This rank's messages. */
static size_t messages_of(const struct nw_streams *streams, bool *out_out)
{
    const struct nw_bench *bench = streams->bench;
    const int mine = bench->comm->rank;
    size_t count = 0;

    *out_out = streams->to_of_rank[mine] >= 0;
    if (*out_out)
        streams->messages[count++] = (struct nw_message){
            .peer = streams->to_of_rank[mine], .data = bench->send, .bytes = streams->bytes};
    for (int rank = 0; rank < bench->comm->rank_count && !*out_out; rank++)
        if (streams->to_of_rank[rank] == mine) {
            streams->messages[count] =
                (struct nw_message){.peer = rank,
                                    .data = bench->recv + count * streams->bytes,
                                    .bytes = streams->bytes};
            count++;
        }
    return count;
}

/* The most that a rank takes: the same on all ranks. */
static uint64_t taken_bytes(const struct nw_streams *streams)
{
    const struct nw_comm *comm = streams->bench->comm;
    uint64_t most = 0;

    for (int to = 0; to < comm->rank_count; to++) {
        uint64_t count = 0;

        for (int rank = 0; streams->group_of_rank[to] >= 0 && rank < comm->rank_count; rank++)
            count += streams->to_of_rank[rank] == to;
        most = count > most ? count : most;
    }
    return most * streams->bytes;
}

static nw_rc hand_out(struct nw_streams *streams, const struct nw_measured *measured, int groups)
{
    for (int group = 0; group < groups; group++) {
        struct nw_record *record = &streams->records[group];

        NW_TRY(nw_measured_report(measured, group, streams->bench->comm, 1, record));
        record->algbw_bytes_per_s *= (double)record->count; /* all streams of the group */
        record->busbw_bytes_per_s = record->algbw_bytes_per_s;
        nw_bench_record(streams->bench, record);
    }
    return NW_OK;
}

static nw_rc measure(struct nw_streams *streams, int groups, const char *title)
{
    struct nw_bench *bench = streams->bench;
    struct stream_work work = {.work = {.call = stream_call,
                                        .fill = stream_fill,
                                        .check = stream_check,
                                        .time = bench->start != NULL ? stream_time : NULL,
                                        .calls_max = NW_GATED_CALLS_MAX,
                                        .result_stays = true},
                               .bench = bench,
                               .messages = streams->messages};
    struct nw_measure how = nw_bench_how(bench, taken_bytes(streams), title);
    struct nw_measured measured;
    nw_rc rc;

    work.count = messages_of(streams, &work.out);
    how.group_of_rank = streams->group_of_rank;
    how.group_count = groups;
    NW_TRY(nw_measure(&how, &work.work, &measured));
    rc = nw_agree(bench->comm, hand_out(streams, &measured, groups));
    nw_measured_free(&measured);
    return rc;
}

nw_rc nw_streams_unit(struct nw_streams *streams, const char *name, int groups, const char *what,
                      double *rates)
{
    struct nw_bench *bench = streams->bench;
    char title[128];
    const struct nw_unit unit = {.identities = streams->records,
                                 .identity_count = (size_t)groups,
                                 .send_bytes = streams->bytes,
                                 .recv_bytes = taken_bytes(streams),
                                 .title = title};
    bool go;
    nw_rc rc = NW_OK;

    snprintf(title, sizeof title, "%s, %s, %s", streams->case_name, name, what);
    for (int group = 0; group < groups; group++)
        identify(streams, name, group, &streams->records[group]);
    memset(streams->kept, 0, (size_t)groups * sizeof(const struct nw_record *));
    NW_TRY(nw_bench_begin(bench, &unit, &go, streams->kept));
    if (go) {
        rc = measure(streams, groups, title);
        nw_bench_end(bench, &unit);
    }
    for (int group = 0; group < groups; group++) {
        const struct nw_record *record =
            streams->kept[group] != NULL ? streams->kept[group] : &streams->records[group];

        if (rates != NULL)
            rates[group] = record->algbw_bytes_per_s;
        nw_record_free(&streams->records[group]);
    }
    return rc;
}
