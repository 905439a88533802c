/* The worker's end of the relay. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/relay.h"
#include "collectives/relay_wire.h"

#define TEXT_MAX (1u << 30)

struct relay_comm {
    struct nw_comm base;
    int fd;
    int32_t group;
    char (*names)[NW_HOST_NAME_SIZE]; /* of each rank's host */
};

static const struct nw_comm_ops relay_ops;

static struct relay_comm *of(struct nw_comm *base)
{
    return (struct relay_comm *)base;
}

/* The answer's bytes into `answer`, of which there are `bytes`. */
static nw_rc read_answer(int fd, void *answer, uint64_t bytes)
{
    struct nw_wire_head head;
    char text[sizeof nw_last_error()->text] = "";

    NW_TRY(nw_wire_read(fd, &head, sizeof head));
    if (head.kind == NW_WIRE_ANSWER && head.number == NW_OK && head.bytes == bytes)
        return nw_wire_read(fd, answer, bytes);
    if (head.kind != NW_WIRE_ANSWER || head.number == NW_OK || head.bytes >= sizeof text)
        return nw_fail(NW_EPEER, "the relay answered %llu bytes where %llu were asked for",
                       (unsigned long long)head.bytes, (unsigned long long)bytes);
    NW_TRY(nw_wire_read(fd, text, head.bytes));
    return nw_fail((nw_rc)head.number, "%s", text);
}

static nw_rc ask(struct nw_comm *base, struct nw_wire_head head, const void *data, void *answer,
                 uint64_t answer_bytes)
{
    head.group = of(base)->group;
    NW_TRY(nw_wire_send(of(base)->fd, &head, data));
    return read_answer(of(base)->fd, answer, answer_bytes);
}

static nw_rc relay_barrier(struct nw_comm *base)
{
    return ask(base, (struct nw_wire_head){.kind = NW_WIRE_BARRIER}, NULL, NULL, 0);
}

static nw_rc relay_exchange(struct nw_comm *base, const void *mine, uint64_t bytes, void *all)
{
    const struct nw_wire_head head = {.kind = NW_WIRE_EXCHANGE, .bytes = bytes, .wanted = bytes};

    return ask(base, head, mine, all, bytes * (uint64_t)base->rank_count);
}

static nw_rc relay_share(struct nw_comm *base, void *data, uint64_t bytes, int root)
{
    const struct nw_wire_head head = {.kind = NW_WIRE_SHARE,
                                      .number = root,
                                      .bytes = base->rank == root ? bytes : 0,
                                      .wanted = bytes};

    return ask(base, head, data, data, bytes);
}

static nw_rc wrap(int fd, int32_t group, int rank, int rank_count,
                  const char (*names)[NW_HOST_NAME_SIZE], struct nw_comm **comm_out)
{
    struct relay_comm *comm = calloc(1, sizeof *comm);

    if (comm != NULL)
        comm->names = calloc((size_t)rank_count, sizeof *comm->names);
    if (comm == NULL || comm->names == NULL) {
        free(comm);
        return nw_fail(NW_ENOMEM, "no memory for a communicator of %d ranks", rank_count);
    }
    memcpy(comm->names, names, (size_t)rank_count * sizeof *comm->names);
    comm->fd = fd;
    comm->group = group;
    comm->base.ops = &relay_ops;
    comm->base.rank = rank;
    comm->base.rank_count = rank_count;
    snprintf(comm->base.library, sizeof comm->base.library, "relay");
    const nw_rc rc = nw_comm_set_hosts(&comm->base, names);

    if (rc != NW_OK) {
        free(comm->names);
        free(comm);
        return rc;
    }
    *comm_out = &comm->base;
    return NW_OK;
}

/* The answer: for each rank of this communicator, its group's number and its place there, or -1. */
static nw_rc relay_split(struct nw_comm *base, int colour, struct nw_comm **comm_out)
{
    const int rank_count = base->rank_count;
    const struct nw_wire_head head = {.kind = NW_WIRE_SPLIT, .number = colour};
    int32_t *colours = calloc((size_t)rank_count + 1, sizeof *colours);
    char(*names)[NW_HOST_NAME_SIZE] = calloc((size_t)rank_count, sizeof *names);
    int members = 0, place = 0;
    nw_rc rc = NW_OK;

    if (colours == NULL || names == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory to split %d ranks", rank_count);
    if (rc == NW_OK)
        rc = ask(base, head, NULL, colours, ((uint64_t)rank_count + 1) * sizeof *colours);
    for (int rank = 0; rc == NW_OK && rank < rank_count; rank++) {
        if (colours[rank] != colour)
            continue;
        if (rank == base->rank)
            place = members;
        memcpy(names[members++], of(base)->names[rank], sizeof *names);
    }
    if (rc == NW_OK && colour < 0)
        *comm_out = NULL;
    else if (rc == NW_OK)
        rc = wrap(of(base)->fd, colours[rank_count], place, members,
                  (const char(*)[NW_HOST_NAME_SIZE])names, comm_out);
    free(colours);
    free(names);
    return rc;
}

static void relay_close(struct nw_comm *base)
{
    struct relay_comm *comm = of(base);
    const struct nw_wire_head head = {.kind = NW_WIRE_CLOSE, .group = comm->group};

    if (comm->group != 0)
        (void)nw_wire_send(comm->fd, &head, NULL); /* nobody there: nothing to close */
    nw_comm_drop_hosts(base);
    free(comm->names);
    free(comm);
}

static nw_rc relay_call(struct nw_comm *base, const struct nw_call *call)
{
    (void)base;
    return nw_fail(NW_ENOTSUP, "%s: the relay passes small things around, it is no backend",
                   call->coll->name);
}

static nw_rc relay_swap(struct nw_comm *base, int peer, const void *send, void *recv,
                        uint64_t bytes)
{
    (void)base, (void)send, (void)recv, (void)bytes;
    return nw_fail(NW_ENOTSUP,
                   "exchange with rank %d: the relay passes small things around, it is no backend",
                   peer);
}

static nw_rc relay_pass(struct nw_comm *base, bool out, const struct nw_message *messages,
                        size_t count)
{
    (void)base, (void)out, (void)messages;
    return nw_fail(NW_ENOTSUP,
                   "%zu messages: the relay passes small things around, it is no backend", count);
}

static bool relay_supports(const struct nw_comm *base, const struct nw_call *call)
{
    (void)relay_call((struct nw_comm *)base, call);
    return false;
}

static const struct nw_comm_ops relay_ops = {
    .name = "relay",
    .title = "small exchanges through the rank that started this process",
    .call = relay_call,
    .swap = relay_swap,
    .pass = relay_pass,
    .barrier = relay_barrier,
    .exchange = relay_exchange,
    .share = relay_share,
    .split = relay_split,
    .close = relay_close,
    .supports = relay_supports,
};

nw_rc nw_comm_open_relay(int fd, struct nw_comm **comm_out, char **text_out)
{
    struct nw_wire_head head;
    struct nw_wire_world world;
    char(*names)[NW_HOST_NAME_SIZE] = NULL;
    char *text = NULL;
    nw_rc rc;

    NW_TRY(nw_wire_read(fd, &head, sizeof head));
    if (head.kind != NW_WIRE_GREETING)
        return nw_fail(NW_EPEER, "the relay does not begin with a greeting");
    NW_TRY(nw_wire_read(fd, &world, sizeof world));
    if (world.rank_count < 1 || world.rank < 0 || world.rank >= world.rank_count ||
        world.text_bytes > TEXT_MAX)
        return nw_fail(NW_EPEER, "the relay's greeting is torn");
    names = calloc((size_t)world.rank_count, sizeof *names);
    text = calloc(1, world.text_bytes + 1);
    rc = names == NULL || text == NULL
             ? nw_fail(NW_ENOMEM, "no memory for a greeting of %llu bytes",
                       (unsigned long long)world.text_bytes)
             : nw_wire_read(fd, names, (uint64_t)world.rank_count * sizeof *names);
    if (rc == NW_OK)
        rc = nw_wire_read(fd, text, world.text_bytes);
    if (rc == NW_OK)
        rc = wrap(fd, 0, world.rank, world.rank_count, (const char(*)[NW_HOST_NAME_SIZE])names,
                  comm_out);
    free(names);
    if (rc == NW_OK)
        *text_out = text;
    else
        free(text);
    return rc;
}

nw_rc nw_relay_event(int fd, unsigned kind, const char *data, size_t bytes)
{
    const struct nw_wire_head head = {
        .kind = NW_WIRE_EVENT, .number = (int32_t)kind, .bytes = bytes};

    NW_TRY(nw_wire_send(fd, &head, data));
    return read_answer(fd, NULL, 0);
}

nw_rc nw_relay_end(int fd, nw_rc rc)
{
    char text[sizeof nw_last_error()->text] = "";
    struct nw_wire_head head = {.kind = NW_WIRE_END, .number = (int32_t)rc};

    if (rc != NW_OK)
        snprintf(text, sizeof text, "%s", nw_last_error()->text);
    head.bytes = strlen(text);
    return nw_wire_send(fd, &head, text);
}
