/* What workers ask for: small exchanges in groups of ranks. */
#include <stdlib.h>
#include <string.h>

#include "collectives/relay_serve.h"

/* ---- groups -------------------------------------------------------------------------------------
 */

static struct relay_group *find_group(struct relay_serve *serve, int32_t number)
{
    for (size_t i = 0; i < serve->group_count; i++)
        if (serve->groups[i].number == number)
            return &serve->groups[i];
    return NULL;
}

nw_rc nw_relay_add_group(struct relay_serve *serve, int32_t number, struct nw_comm *comm,
                         int *ranks)
{
    struct relay_group *more =
        realloc(serve->groups, (serve->group_count + 1) * sizeof *serve->groups);

    if (more == NULL) {
        free(ranks);
        if (number != 0)
            nw_comm_close(comm);
        return nw_fail(NW_ENOMEM, "no memory for a group of ranks");
    }
    serve->groups = more;
    more[serve->group_count++] =
        (struct relay_group){.number = number, .comm = comm, .ranks = ranks};
    if (number >= serve->mine.next_group)
        serve->mine.next_group = number + 1;
    return NW_OK;
}

void nw_relay_drop_group(struct relay_serve *serve, int32_t number)
{
    struct relay_group *group = find_group(serve, number);

    if (group == NULL || number == 0)
        return;
    nw_comm_close(group->comm);
    free(group->ranks);
    *group = serve->groups[--serve->group_count];
}

void nw_relay_drop_groups(struct relay_serve *serve)
{
    while (serve->group_count > 0) {
        const struct relay_group *last = &serve->groups[--serve->group_count];

        if (last->number != 0)
            nw_comm_close(last->comm);
        free(last->ranks);
    }
    free(serve->groups);
}

void nw_relay_answer(struct relay_serve *serve, nw_rc rc, const void *data, uint64_t bytes)
{
    struct nw_wire_head head = {.kind = NW_WIRE_ANSWER, .number = (int32_t)rc, .bytes = bytes};

    if (rc != NW_OK) {
        data = nw_last_error()->text;
        head.bytes = strlen(data);
    }
    if (nw_wire_send(serve->client->fd, &head, data) != NW_OK)
        nw_clear_error(); /* it has gone: the next look finds out */
}

/* ---- what is asked for --------------------------------------------------------------------------
 */

static bool all_ask_alike(const struct relay_serve *serve, const struct relay_group *group)
{
    for (int member = 0; member < group->comm->rank_count; member++) {
        const struct relay_note *note = &serve->all[group->ranks[member]];

        if (note->state != ASKS || note->kind != serve->mine.kind ||
            note->group != serve->mine.group || note->wanted != serve->mine.wanted)
            return false;
    }
    return true;
}

static nw_rc do_exchange(struct relay_serve *serve, const struct relay_group *group)
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
        nw_relay_answer(serve, NW_OK, all, bytes * (uint64_t)count);
    free(all);
    return rc;
}

static nw_rc do_share(struct relay_serve *serve, const struct relay_group *group)
{
    const uint64_t bytes = serve->mine.wanted;
    const int root = serve->mine.number;

    if (root < 0 || root >= group->comm->rank_count) {
        nw_relay_answer(
            serve, nw_fail(NW_EUSAGE, "rank %d has nothing to share: no such rank", root), NULL, 0);
        return NW_OK;
    }
    if (bytes > NOTE_BYTES)
        NW_TRY(group->comm->ops->share(group->comm, serve->data, bytes, root));
    nw_relay_answer(serve, NW_OK,
                    bytes > NOTE_BYTES ? serve->data : serve->all[group->ranks[root]].data, bytes);
    return NW_OK;
}

/* The number of the new groups: one that none of the members has in use. */
static int32_t free_number(const struct relay_serve *serve, const struct relay_group *group)
{
    int32_t number = 1;

    for (int member = 0; member < group->comm->rank_count; member++) {
        const int32_t next = serve->all[group->ranks[member]].next_group;

        number = next > number ? next : number;
    }
    return number;
}

static nw_rc do_split(struct relay_serve *serve, const struct relay_group *group)
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
        rc = nw_relay_add_group(serve, number, comm, ranks); /* moves the groups */
    else
        free(ranks);
    if (number >= serve->mine.next_group)
        serve->mine.next_group = number + 1;
    if (rc == NW_OK)
        nw_relay_answer(serve, NW_OK, colours, ((uint64_t)count + 1) * sizeof *colours);
    free(colours);
    return rc;
}

static nw_rc do_barrier(struct relay_serve *serve, const struct relay_group *group)
{
    (void)group; /* all are here: their notes say so */
    nw_relay_answer(serve, NW_OK, NULL, 0);
    return NW_OK;
}

nw_rc nw_relay_perform(struct relay_serve *serve)
{
    static nw_rc (*const functions[])(struct relay_serve *, const struct relay_group *) = {
        [NW_WIRE_BARRIER] = do_barrier,
        [NW_WIRE_EXCHANGE] = do_exchange,
        [NW_WIRE_SHARE] = do_share,
        [NW_WIRE_SPLIT] = do_split,
    };
    const size_t kind = (size_t)serve->mine.kind;
    const struct relay_group *group = find_group(serve, serve->mine.group);

    if (serve->mine.state != ASKS)
        return NW_OK;
    if (group == NULL || kind >= sizeof functions / sizeof *functions || functions[kind] == NULL) {
        nw_relay_answer(serve, nw_fail(NW_EPEER, "the relay has no such request"), NULL, 0);
        serve->mine.state = NOTHING;
        return NW_OK;
    }
    if (!all_ask_alike(serve, group))
        return NW_OK;
    serve->mine.state = NOTHING;
    return functions[kind](serve, group);
}
