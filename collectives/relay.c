/* The rank's end of the relay: rounds in which every rank says what its worker asks for. What all
 * members of a group ask for is then done; the rest waits for the next round. A rank takes part
 * with what it has: a request, the worker's end, or its loss. So no rank waits for a worker that is
 * gone. */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collectives/relay_serve.h"

#define LOOK_MS 100
/* A library over a network may come back from an exchange with its last messages still in its own
 * queue, to be sent when it is called again (Open MPI's TCP). So between hosts a rank goes on
 * calling it for a while after a round. */
#define BRISK_NS 50000000ull
/* When another worker is lost, this one usually is about to say that it misses it. */
#define ALARM_GRACE_NS 1000000000ull

/* ---- the worker ---------------------------------------------------------------------------------
 */

static void bury(struct relay_serve *serve, enum relay_weight weight, nw_rc rc)
{
    serve->mine.state = LOST;
    serve->mine.rc = (int32_t)rc;
    serve->grave = (struct relay_grave){.weight = weight, .rc = (int32_t)rc};
    snprintf(serve->grave.text, sizeof serve->grave.text, "%s", nw_last_error()->text);
    if (weight > MISSES_OTHERS && serve->comm->ops->alarm != NULL)
        serve->comm->ops->alarm(serve->comm, serve->client->generation);
}

/* A worker's end: with the others', or on its own. */
static nw_rc take_end(struct relay_serve *serve, const struct nw_wire_head *head)
{
    const nw_rc rc = (nw_rc)head->number;
    char text[sizeof serve->grave.text] = "";

    NW_TRY(nw_wire_read(serve->client->fd, text, head->bytes < sizeof text ? head->bytes : 0));
    if (rc != NW_OK)
        (void)nw_fail(rc, "%s", text);
    if (serve->client->is_broken(rc)) {
        bury(serve, rc == NW_EPEER ? MISSES_OTHERS : rc == NW_ETIMEOUT ? TIMED_OUT : FAILED, rc);
        return NW_OK;
    }
    serve->mine.state = ENDED;
    serve->mine.rc = (int32_t)rc;
    snprintf(serve->grave.text, sizeof serve->grave.text, "%s", text);
    return NW_OK;
}

static nw_rc take_event(struct relay_serve *serve, const struct nw_wire_head *head)
{
    char *data = malloc(head->bytes + 1);
    nw_rc rc = data != NULL ? nw_wire_read(serve->client->fd, data, head->bytes)
                            : nw_fail(NW_ENOMEM, "no memory for a message of %llu bytes",
                                      (unsigned long long)head->bytes);

    if (rc == NW_OK) {
        data[head->bytes] = '\0';
        nw_relay_answer(
            serve,
            serve->client->on_event(serve->client->user, (unsigned)head->number, data, head->bytes),
            NULL, 0);
    }
    free(data);
    return rc;
}

static nw_rc take_request(struct relay_serve *serve, const struct nw_wire_head *head)
{
    struct relay_note *note = &serve->mine;

    free(serve->data);
    serve->data = NULL;
    *note = (struct relay_note){.state = ASKS,
                                .kind = (int32_t)head->kind,
                                .group = head->group,
                                .number = head->number,
                                .wanted = head->wanted,
                                .serial = note->serial + 1,
                                .next_group = note->next_group};
    if (head->wanted <= NOTE_BYTES)
        return nw_wire_read(serve->client->fd, note->data,
                            head->bytes <= NOTE_BYTES ? head->bytes : 0);
    serve->data = malloc(head->wanted);
    if (serve->data == NULL || head->bytes > head->wanted)
        return nw_fail(NW_ENOMEM, "no memory for an exchange of %llu bytes",
                       (unsigned long long)head->wanted);
    return nw_wire_read(serve->client->fd, serve->data, head->bytes);
}

static nw_rc take_message(struct relay_serve *serve)
{
    struct nw_wire_head head;

    NW_TRY(nw_wire_read(serve->client->fd, &head, sizeof head));
    switch ((enum nw_wire_kind)head.kind) {
    case NW_WIRE_END:
        return take_end(serve, &head);
    case NW_WIRE_EVENT:
        return take_event(serve, &head);
    case NW_WIRE_CLOSE:
        nw_relay_drop_group(serve, head.group);
        return NW_OK;
    default:
        return take_request(serve, &head);
    }
}

static int wait_ms(const struct relay_serve *serve, uint64_t began_ns)
{
    const uint64_t since_ns = nw_now_ns() - began_ns;

    if (serve->comm->host_count == 1) /* shared memory: what was sent is there */
        return LOOK_MS;
    return since_ns < BRISK_NS ? 1 : LOOK_MS;
}

/* Asking for alarms is also what drives the library's messages. */
static bool is_alarmed(const struct relay_serve *serve)
{
    struct nw_comm *comm = serve->comm;

    return comm->ops->alarmed != NULL && comm->ops->alarmed(comm, serve->client->generation);
}

static void look_at_worker(struct relay_serve *serve, bool urgent)
{
    const nw_rc rc = serve->client->watch(serve->client->user, urgent);

    if (rc != NW_OK)
        bury(serve, NO_ANSWER, rc);
    else if (urgent)
        bury(serve, FINE, nw_fail(NW_EPEER, "given up with the others"));
}

/* Until the worker has said something for the next round, or is given up. */
static void listen_to_worker(struct relay_serve *serve)
{
    const struct nw_relay_client *client = serve->client;
    const uint64_t began_ns = nw_now_ns();
    uint64_t alarmed_ns = 0;

    while (serve->mine.state == NOTHING) {
        struct pollfd poll_fd = {.fd = client->fd, .events = POLLIN};
        const int wait = wait_ms(serve, began_ns);

        if (poll(&poll_fd, 1, wait) > 0) {
            const nw_rc rc = take_message(serve);

            if (rc == NW_EPEER)
                bury(serve, DIED, client->lost(client->user));
            else if (rc != NW_OK)
                bury(serve, FAILED, rc);
            continue;
        }
        if (alarmed_ns == 0 && is_alarmed(serve))
            alarmed_ns = nw_now_ns();
        if (wait == LOOK_MS)
            look_at_worker(serve, alarmed_ns != 0 && nw_now_ns() - alarmed_ns > ALARM_GRACE_NS);
    }
}

/* ---- rounds -------------------------------------------------------------------------------------
 */

static bool any_lost(const struct relay_serve *serve)
{
    for (int rank = 0; rank < serve->comm->rank_count; rank++)
        if (serve->all[rank].state == LOST)
            return true;
    return false;
}

static bool all_ended(const struct relay_serve *serve)
{
    for (int rank = 0; rank < serve->comm->rank_count; rank++)
        if (serve->all[rank].state != ENDED)
            return false;
    return true;
}

/* Every rank comes with the same note as before: they wait for each other. */
static bool is_stuck(const struct relay_serve *serve)
{
    return memcmp(serve->all, serve->before,
                  (size_t)serve->comm->rank_count * sizeof *serve->all) == 0;
}

static nw_rc meet(struct relay_serve *serve)
{
    const size_t bytes = (size_t)serve->comm->rank_count * sizeof *serve->all;

    memcpy(serve->before, serve->all, bytes);
    serve->client->meeting(serve->client->user);
    return serve->comm->ops->exchange(serve->comm, &serve->mine, sizeof serve->mine, serve->all);
}

/* Who has the cause, and how many have one like it. */
static nw_rc find_cause(struct relay_serve *serve, struct nw_relay_end *end, int *alike_out)
{
    struct nw_comm *comm = serve->comm;
    int32_t *weights = calloc((size_t)comm->rank_count, sizeof *weights);
    nw_rc rc;

    if (weights == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the ends of %d workers", comm->rank_count);
    rc = comm->ops->exchange(comm, &serve->grave.weight, sizeof *weights, weights);
    end->rank = 0;
    for (int rank = 1; rc == NW_OK && rank < comm->rank_count; rank++)
        if (weights[rank] > weights[end->rank])
            end->rank = rank;
    *alike_out = 0;
    for (int rank = 0; rc == NW_OK && rank < comm->rank_count; rank++)
        *alike_out += weights[rank] == weights[end->rank];
    free(weights);
    return rc;
}

static nw_rc conclude(struct relay_serve *serve, bool broken, struct nw_relay_end *end_out)
{
    struct nw_relay_end end = {.broken = broken};
    struct relay_grave cause = serve->grave;
    int alike = 1;

    if (broken) {
        serve->client->stop(serve->client->user);
        NW_TRY(find_cause(serve, &end, &alike));
    }
    cause.rc = serve->mine.rc;
    NW_TRY(serve->comm->ops->share(serve->comm, &cause, sizeof cause, end.rank));
    end.rc = (nw_rc)cause.rc;
    if (broken && end.rc == NW_OK)
        end.rc = NW_EPEER;
    if (alike > 1)
        snprintf(end.text, sizeof end.text, "%.900s (the same on %d of %d ranks)", cause.text,
                 alike, serve->comm->rank_count);
    else
        snprintf(end.text, sizeof end.text, "%s", cause.text);
    if (end.rc != NW_OK)
        (void)nw_fail(end.rc, "%s", end.text);
    *end_out = end;
    return NW_OK;
}

static nw_rc rounds(struct relay_serve *serve, struct nw_relay_end *end_out)
{
    for (;;) {
        listen_to_worker(serve);
        NW_TRY(meet(serve));
        if (any_lost(serve))
            return conclude(serve, true, end_out);
        if (all_ended(serve))
            return conclude(serve, false, end_out);
        if (is_stuck(serve)) {
            bury(serve, MISSES_OTHERS,
                 nw_fail(NW_EPEER, "the ranks' workers wait for each other: they do not do the "
                                   "same things"));
            return conclude(serve, true, end_out);
        }
        NW_TRY(nw_relay_perform(serve));
    }
}

static nw_rc open_serve(struct relay_serve *serve)
{
    const size_t count = (size_t)serve->comm->rank_count;
    int *ranks = calloc(count, sizeof *ranks);

    serve->all = calloc(count, sizeof *serve->all);
    serve->before = calloc(count, sizeof *serve->before);
    if (ranks == NULL || serve->all == NULL || serve->before == NULL) {
        free(ranks);
        return nw_fail(NW_ENOMEM, "no memory to serve a worker among %zu ranks", count);
    }
    for (int rank = 0; rank < serve->comm->rank_count; rank++)
        ranks[rank] = rank;
    return nw_relay_add_group(serve, 0, serve->comm, ranks);
}

static void close_serve(struct relay_serve *serve)
{
    nw_relay_drop_groups(serve);
    free(serve->all);
    free(serve->before);
    free(serve->data);
}

nw_rc nw_relay_serve(struct nw_comm *comm, const struct nw_relay_client *client,
                     struct nw_relay_end *end_out)
{
    struct relay_serve serve = {.comm = comm, .client = client};
    nw_rc rc = open_serve(&serve);

    if (rc == NW_OK)
        rc = rounds(&serve, end_out);
    close_serve(&serve);
    return rc;
}

nw_rc nw_relay_greet(int fd, const struct nw_comm *comm, const char *text)
{
    const struct nw_wire_head head = {.kind = NW_WIRE_GREETING};
    const struct nw_wire_world world = {
        .rank = comm->rank, .rank_count = comm->rank_count, .text_bytes = strlen(text)};

    NW_TRY(nw_wire_send(fd, &head, NULL));
    NW_TRY(nw_wire_write(fd, &world, sizeof world));
    for (int rank = 0; rank < comm->rank_count; rank++) {
        char name[NW_HOST_NAME_SIZE] = "";

        snprintf(name, sizeof name, "%s", comm->host_names[comm->host_of_rank[rank]]);
        NW_TRY(nw_wire_write(fd, name, sizeof name));
    }
    return nw_wire_write(fd, text, world.text_bytes);
}
