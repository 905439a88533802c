/* The rank's end of the relay: rounds in which every rank says what its worker asks for. What all
 * members of a group ask for is then done; the rest waits for the next round. A rank takes part
 * with what it has: a request, the worker's end, or its loss. So no rank waits for a worker that is
 * gone. */
#include "collectives/relay.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collectives/relay_wire.h"

#define LOOK_MS 100
/* When another worker is lost, this one usually is about to say that it misses it. */
#define ALARM_GRACE_NS 1000000000ull

enum state { NOTHING, ASKS, ENDED, LOST };

#define NOTE_BYTES 64 /* so much of a request goes with the note itself */
struct note {
    int32_t state, kind, group, number;
    uint64_t wanted, serial; /* serial: of the requests; unchanged everywhere: nothing moves */
    int32_t next_group;      /* a number that no group of this rank has */
    int32_t rc;
    char data[NOTE_BYTES];
};

/* Why a worker is lost, the heaviest is the cause: a worker that died weighs more than one that
 * misses it. */
enum weight { FINE, MISSES_OTHERS, TIMED_OUT, NO_ANSWER, FAILED, DIED };

struct grave {
    int32_t weight, rc;
    char text[sizeof((struct nw_err *)NULL)->text];
};

struct group {
    int32_t number;
    struct nw_comm *comm; /* the first one's: the caller's */
    int *ranks;           /* of the whole, comm->rank_count entries */
};

struct serve {
    struct nw_comm *comm;
    const struct nw_relay_client *client;
    struct group *groups;
    size_t group_count;
    struct note mine, *all, *before;
    char *data; /* of the request, where it does not fit into the note */
    struct grave grave;
};

/* ---- groups -------------------------------------------------------------------------------------
 */

static struct group *find_group(struct serve *serve, int32_t number)
{
    for (size_t i = 0; i < serve->group_count; i++)
        if (serve->groups[i].number == number)
            return &serve->groups[i];
    return NULL;
}

/* Takes `comm` and `ranks`, also when it fails. */
static nw_rc add_group(struct serve *serve, int32_t number, struct nw_comm *comm, int *ranks)
{
    struct group *more = realloc(serve->groups, (serve->group_count + 1) * sizeof *serve->groups);

    if (more == NULL) {
        free(ranks);
        if (number != 0)
            nw_comm_close(comm);
        return nw_fail(NW_ENOMEM, "no memory for a group of ranks");
    }
    serve->groups = more;
    more[serve->group_count++] = (struct group){.number = number, .comm = comm, .ranks = ranks};
    if (number >= serve->mine.next_group)
        serve->mine.next_group = number + 1;
    return NW_OK;
}

static void drop_group(struct serve *serve, int32_t number)
{
    struct group *group = find_group(serve, number);

    if (group == NULL || number == 0)
        return;
    nw_comm_close(group->comm);
    free(group->ranks);
    *group = serve->groups[--serve->group_count];
}

/* ---- the worker ---------------------------------------------------------------------------------
 */

static void bury(struct serve *serve, enum weight weight, nw_rc rc)
{
    serve->mine.state = LOST;
    serve->mine.rc = (int32_t)rc;
    serve->grave = (struct grave){.weight = weight, .rc = (int32_t)rc};
    snprintf(serve->grave.text, sizeof serve->grave.text, "%s", nw_last_error()->text);
    if (weight > MISSES_OTHERS && serve->comm->ops->alarm != NULL)
        serve->comm->ops->alarm(serve->comm, serve->client->generation);
}

static void answer(struct serve *serve, nw_rc rc, const void *data, uint64_t bytes)
{
    struct nw_wire_head head = {.kind = NW_WIRE_ANSWER, .number = (int32_t)rc, .bytes = bytes};

    if (rc != NW_OK) {
        data = nw_last_error()->text;
        head.bytes = strlen(data);
    }
    if (nw_wire_send(serve->client->fd, &head, data) != NW_OK)
        nw_clear_error(); /* it has gone: the next look finds out */
}

/* A worker's end: with the others', or on its own. */
static nw_rc take_end(struct serve *serve, const struct nw_wire_head *head)
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

static nw_rc take_event(struct serve *serve, const struct nw_wire_head *head)
{
    char *data = malloc(head->bytes + 1);
    nw_rc rc = data != NULL ? nw_wire_read(serve->client->fd, data, head->bytes)
                            : nw_fail(NW_ENOMEM, "no memory for a message of %llu bytes",
                                      (unsigned long long)head->bytes);

    if (rc == NW_OK) {
        data[head->bytes] = '\0';
        answer(
            serve,
            serve->client->on_event(serve->client->user, (unsigned)head->number, data, head->bytes),
            NULL, 0);
    }
    free(data);
    return rc;
}

static nw_rc take_request(struct serve *serve, const struct nw_wire_head *head)
{
    struct note *note = &serve->mine;

    free(serve->data);
    serve->data = NULL;
    *note = (struct note){.state = ASKS,
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

static nw_rc take_message(struct serve *serve)
{
    struct nw_wire_head head;

    NW_TRY(nw_wire_read(serve->client->fd, &head, sizeof head));
    switch ((enum nw_wire_kind)head.kind) {
    case NW_WIRE_END:
        return take_end(serve, &head);
    case NW_WIRE_EVENT:
        return take_event(serve, &head);
    case NW_WIRE_CLOSE:
        drop_group(serve, head.group);
        return NW_OK;
    default:
        return take_request(serve, &head);
    }
}

/* Until the worker has said something for the next round, or is given up. */
static void listen_to_worker(struct serve *serve)
{
    const struct nw_relay_client *client = serve->client;
    struct nw_comm *comm = serve->comm;
    uint64_t alarmed_ns = 0;

    while (serve->mine.state == NOTHING) {
        struct pollfd poll_fd = {.fd = client->fd, .events = POLLIN};
        const int ready = poll(&poll_fd, 1, LOOK_MS);
        nw_rc rc;

        if (ready > 0) {
            if (take_message(serve) != NW_OK)
                bury(serve, DIED, client->lost(client->user));
            continue;
        }
        if (alarmed_ns == 0 && comm->ops->alarmed != NULL &&
            comm->ops->alarmed(comm, client->generation))
            alarmed_ns = nw_now_ns();
        const bool urgent = alarmed_ns != 0 && nw_now_ns() - alarmed_ns > ALARM_GRACE_NS;

        rc = client->watch(client->user, urgent);
        if (rc != NW_OK)
            bury(serve, NO_ANSWER, rc);
        else if (urgent)
            bury(serve, FINE, nw_fail(NW_EPEER, "given up with the others"));
    }
}

/* ---- what is asked for --------------------------------------------------------------------------
 */

static bool all_ask_alike(const struct serve *serve, const struct group *group)
{
    for (int member = 0; member < group->comm->rank_count; member++) {
        const struct note *note = &serve->all[group->ranks[member]];

        if (note->state != ASKS || note->kind != serve->mine.kind ||
            note->group != serve->mine.group || note->wanted != serve->mine.wanted)
            return false;
    }
    return true;
}

static nw_rc do_exchange(struct serve *serve, const struct group *group)
{
    const uint64_t bytes = serve->mine.wanted;
    const int count = group->comm->rank_count;
    char *all = malloc(bytes * (uint64_t)count + 1);
    nw_rc rc = NW_OK;

    if (all == NULL)
        return nw_fail(NW_ENOMEM, "no memory for an exchange of %llu bytes between %d ranks",
                       (unsigned long long)bytes, count);
    if (bytes > NOTE_BYTES)
        rc = group->comm->ops->exchange(group->comm, serve->data, bytes, all);
    for (int member = 0; bytes <= NOTE_BYTES && member < count; member++)
        memcpy(all + (uint64_t)member * bytes, serve->all[group->ranks[member]].data, bytes);
    if (rc == NW_OK)
        answer(serve, NW_OK, all, bytes * (uint64_t)count);
    free(all);
    return rc;
}

static nw_rc do_share(struct serve *serve, const struct group *group)
{
    const uint64_t bytes = serve->mine.wanted;
    const int root = serve->mine.number;

    if (root < 0 || root >= group->comm->rank_count) {
        answer(serve, nw_fail(NW_EUSAGE, "rank %d has nothing to share: no such rank", root), NULL,
               0);
        return NW_OK;
    }
    if (bytes > NOTE_BYTES)
        NW_TRY(group->comm->ops->share(group->comm, serve->data, bytes, root));
    answer(serve, NW_OK, bytes > NOTE_BYTES ? serve->data : serve->all[group->ranks[root]].data,
           bytes);
    return NW_OK;
}

/* The number of the new groups: one that none of the members has in use. */
static int32_t free_number(const struct serve *serve, const struct group *group)
{
    int32_t number = 1;

    for (int member = 0; member < group->comm->rank_count; member++) {
        const int32_t next = serve->all[group->ranks[member]].next_group;

        number = next > number ? next : number;
    }
    return number;
}

static nw_rc do_split(struct serve *serve, const struct group *group)
{
    const int count = group->comm->rank_count;
    const int32_t colour = serve->mine.number, number = free_number(serve, group);
    int32_t *colours = calloc((size_t)count + 1, sizeof *colours);
    int *ranks = calloc((size_t)count, sizeof *ranks);
    struct nw_comm *comm = NULL;
    int members = 0;
    nw_rc rc;

    if (colours == NULL || ranks == NULL) {
        free(colours);
        free(ranks);
        return nw_fail(NW_ENOMEM, "no memory to split %d ranks", count);
    }
    for (int member = 0; member < count; member++) {
        colours[member] = serve->all[group->ranks[member]].number;
        if (colours[member] == colour)
            ranks[members++] = group->ranks[member];
    }
    colours[count] = number;
    rc = group->comm->ops->split(group->comm, colour, &comm);
    if (rc == NW_OK && comm != NULL)
        rc = add_group(serve, number, comm, ranks); /* moves the groups */
    else
        free(ranks);
    if (number >= serve->mine.next_group)
        serve->mine.next_group = number + 1;
    if (rc == NW_OK)
        answer(serve, NW_OK, colours, ((uint64_t)count + 1) * sizeof *colours);
    free(colours);
    return rc;
}

static nw_rc do_barrier(struct serve *serve, const struct group *group)
{
    (void)group; /* all are here: their notes say so */
    answer(serve, NW_OK, NULL, 0);
    return NW_OK;
}

/* My worker's request, when all whom it concerns have made theirs. */
static nw_rc perform(struct serve *serve)
{
    static nw_rc (*const functions[])(struct serve *, const struct group *) = {
        [NW_WIRE_BARRIER] = do_barrier,
        [NW_WIRE_EXCHANGE] = do_exchange,
        [NW_WIRE_SHARE] = do_share,
        [NW_WIRE_SPLIT] = do_split,
    };
    const size_t kind = (size_t)serve->mine.kind;
    const struct group *group = find_group(serve, serve->mine.group);

    if (serve->mine.state != ASKS)
        return NW_OK;
    if (group == NULL || kind >= sizeof functions / sizeof *functions || functions[kind] == NULL) {
        answer(serve, nw_fail(NW_EPEER, "the relay has no such request"), NULL, 0);
        serve->mine.state = NOTHING;
        return NW_OK;
    }
    if (!all_ask_alike(serve, group))
        return NW_OK;
    serve->mine.state = NOTHING;
    return functions[kind](serve, group);
}

/* ---- rounds -------------------------------------------------------------------------------------
 */

static bool any_lost(const struct serve *serve)
{
    for (int rank = 0; rank < serve->comm->rank_count; rank++)
        if (serve->all[rank].state == LOST)
            return true;
    return false;
}

static bool all_ended(const struct serve *serve)
{
    for (int rank = 0; rank < serve->comm->rank_count; rank++)
        if (serve->all[rank].state != ENDED)
            return false;
    return true;
}

/* Every rank comes with the same note as before: they wait for each other. */
static bool is_stuck(const struct serve *serve)
{
    return memcmp(serve->all, serve->before,
                  (size_t)serve->comm->rank_count * sizeof *serve->all) == 0;
}

static nw_rc meet(struct serve *serve)
{
    const size_t bytes = (size_t)serve->comm->rank_count * sizeof *serve->all;

    memcpy(serve->before, serve->all, bytes);
    serve->client->meeting(serve->client->user);
    return serve->comm->ops->exchange(serve->comm, &serve->mine, sizeof serve->mine, serve->all);
}

/* Who has the cause, and how many have one like it. */
static nw_rc find_cause(struct serve *serve, struct nw_relay_end *end, int *alike_out)
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

static nw_rc conclude(struct serve *serve, bool broken, struct nw_relay_end *end_out)
{
    struct nw_relay_end end = {.broken = broken};
    struct grave cause = serve->grave;
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

static nw_rc rounds(struct serve *serve, struct nw_relay_end *end_out)
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
        NW_TRY(perform(serve));
    }
}

static nw_rc open_serve(struct serve *serve)
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
    return add_group(serve, 0, serve->comm, ranks);
}

static void close_serve(struct serve *serve)
{
    while (serve->group_count > 0) {
        const struct group *last = &serve->groups[--serve->group_count];

        if (last->number != 0)
            nw_comm_close(last->comm);
        free(last->ranks);
    }
    free(serve->groups);
    free(serve->all);
    free(serve->before);
    free(serve->data);
}

nw_rc nw_relay_serve(struct nw_comm *comm, const struct nw_relay_client *client,
                     struct nw_relay_end *end_out)
{
    struct serve serve = {.comm = comm, .client = client};
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
