#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/agree.h"
#include "bench/nic_links_parts.h"

/* perftest's, of its latency tests: ib_write_lat. */
#define INLINE_BYTES 220
/* Without a completion for so long a connection is given up; before that the NIC's own retries end
 * (at most 7.5 s: collectives/verbs.h). */
#define WAIT_NS 10e9

double nw_nic_wait_ns(const struct nw_bench *bench)
{
    const double margin_ns = nw_bench_margin_ns(bench);

    return margin_ns / 2 < WAIT_NS ? margin_ns / 2 : WAIT_NS;
}

/* ---- who has which end -------------------------------------------------------------------------
 */

static int owner(const struct nw_nic_links *links, size_t pair, int side)
{
    const struct nw_nic_pair *nics = &links->round->pairs[pair];

    return links->nics->items[side == 0 ? nics->a : nics->b].owner;
}

static nw_rc deal(struct nw_nic_links *links)
{
    const struct nw_comm *comm = links->bench->comm;
    const size_t pairs = links->round->count;
    int *owned = calloc((size_t)comm->rank_count, sizeof *owned);

    links->slot_of = calloc(pairs * 2, sizeof *links->slot_of);
    links->owner_of = calloc(pairs * 2, sizeof *links->owner_of);
    links->is_out = calloc(pairs, sizeof *links->is_out);
    links->failures = calloc(pairs, sizeof *links->failures);
    links->settled = calloc(pairs, sizeof *links->settled);
    links->own_rates = calloc(pairs, sizeof *links->own_rates);
    links->ends = calloc(pairs * 2, sizeof *links->ends);
    if (owned == NULL || links->slot_of == NULL || links->owner_of == NULL ||
        links->is_out == NULL || links->failures == NULL || links->settled == NULL ||
        links->own_rates == NULL || links->ends == NULL) {
        free(owned);
        return nw_fail(NW_ENOMEM, "no memory for %zu pairs of NICs", pairs);
    }
    for (size_t i = 0; i < pairs * 2; i++) {
        const int rank = owner(links, i / 2, (int)(i % 2));

        links->owner_of[i] = rank;
        links->slot_of[i] = owned[rank]++;
        if ((size_t)owned[rank] > links->slots)
            links->slots = (size_t)owned[rank];
        if (rank == comm->rank)
            links->ends[links->end_count++] =
                (struct nw_nic_end){.pair = i / 2, .side = (int)(i % 2)};
    }
    free(owned);
    return NW_OK;
}

nw_rc nw_nic_exchange(struct nw_nic_links *links, const void *mine, size_t size, char **all_out)
{
    struct nw_comm *comm = links->bench->comm;
    char *all = calloc((size_t)comm->rank_count * links->slots, size);
    nw_rc rc;

    /* A rank without memory for it is out of step with all others. */
    if (all == NULL)
        return nw_fail(NW_ENOMEM, "no memory for what %d ranks tell", comm->rank_count);
    nw_bench_status_deadline(links->bench->events->status,
                             nw_now_ns() + (uint64_t)(2 * nw_bench_margin_ns(links->bench)));
    rc = comm->ops->exchange(comm, mine, links->slots * size, all);
    if (rc != NW_OK) {
        free(all);
        return rc;
    }
    *all_out = all;
    return NW_OK;
}

const void *nw_nic_of(const struct nw_nic_links *links, const char *all, size_t size, size_t pair,
                      int side)
{
    const size_t i = pair * 2 + (size_t)side;

    return all + ((size_t)links->owner_of[i] * links->slots + (size_t)links->slot_of[i]) * size;
}

static int telling(nw_rc rc)
{
    return rc == NW_OK ? 0 : rc == NW_ETIMEOUT ? 1 : rc == NW_EPEER ? 2 : 3;
}

const struct nw_nic_failure *nw_nic_cause(const struct nw_nic_failure *a,
                                          const struct nw_nic_failure *b)
{
    return telling(a->rc) < telling(b->rc) ? b : a;
}

nw_rc nw_nic_agree(struct nw_nic_links *links, const struct nw_nic_failure *mine)
{
    char *all;

    NW_TRY(nw_nic_exchange(links, mine, sizeof *mine, &all));
    for (size_t pair = 0; pair < links->round->count; pair++) {
        const struct nw_nic_failure *first =
            nw_nic_cause(nw_nic_of(links, all, sizeof *mine, pair, 0),
                         nw_nic_of(links, all, sizeof *mine, pair, 1));

        if (links->is_out[pair] || first->rc == NW_OK)
            continue;
        links->is_out[pair] = true;
        links->failures[pair] = *first;
    }
    free(all);
    return NW_OK;
}

const struct nw_nic_failure *nw_nic_failure(const struct nw_nic_links *links, size_t pair)
{
    return &links->failures[pair];
}

double nw_nic_own_rate(const struct nw_nic_links *links, size_t pair)
{
    return links->own_rates[pair];
}

const struct nw_nic_settled *nw_nic_settled(const struct nw_nic_links *links, size_t pair)
{
    return &links->settled[pair];
}

/* ---- open --------------------------------------------------------------------------------------
 */

static char *take_buffer(const struct nw_nic_links *links)
{
    char *buffer;

    if (links->ask.gpu)
        return nw_comm_buffer(links->bench->comm, links->buffer_bytes);
    buffer = nw_comm_alloc(links->buffer_bytes);
    if (buffer == NULL)
        (void)nw_fail(NW_ENOMEM, "no memory for a buffer of %llu bytes",
                      (unsigned long long)links->buffer_bytes);
    return buffer;
}

static void drop_buffer(const struct nw_nic_links *links, char *buffer)
{
    if (links->ask.gpu)
        nw_comm_drop_buffer(links->bench->comm, buffer, links->buffer_bytes);
    else
        nw_comm_free(buffer, links->buffer_bytes);
}

static nw_rc open_end(const struct nw_nic_links *links, struct nw_nic_end *mine)
{
    const struct nw_plan *plan = links->bench->plan;
    const struct nw_nic_pair *pair = &links->round->pairs[mine->pair];
    const struct nw_nic *nic = &links->nics->items[mine->side == 0 ? pair->a : pair->b];
    const struct nw_verbs_port *port = nw_nics_port(links->nics, nic);
    struct nw_verbs_wish wish = NW_VERBS_WISH;

    if (port == NULL)
        return nw_fail(NW_ENODEV,
                       "this rank does not see RDMA port %s, which another of its host "
                       "does",
                       nic->name);
    wish.gid_index = plan->nic_gid;
    wish.mtu_bytes = (uint32_t)plan->nic_mtu;
    wish.traffic_class = plan->nic_tclass;
    wish.qps = links->ask.qps;
    wish.depth = links->ask.depth;
    wish.inline_bytes = INLINE_BYTES;
    wish.by_cm = plan->nic_cm;
    wish.timeout_ns = nw_nic_wait_ns(links->bench);
    mine->buffer = take_buffer(links);
    if (mine->buffer == NULL)
        return nw_last_error()->rc;
    return nw_verbs_end_open(links->nics->verbs, port, &wish, mine->buffer, links->buffer_bytes,
                             links->ask.gpu ? links->bench->comm->dev : NULL, &mine->end);
}

void nw_nic_note(struct nw_nic_failure *failure, nw_rc rc)
{
    failure->rc = rc;
    if (rc != NW_OK)
        snprintf(failure->text, sizeof failure->text, "%.*s", (int)sizeof failure->text - 1,
                 nw_last_error()->text);
}

struct hello { /* what one side tells the other before they connect */
    uint8_t card[NW_VERBS_CARD_BYTES];
};

static nw_rc open_ends(struct nw_nic_links *links, struct nw_nic_failure *failures,
                       struct hello *hellos)
{
    for (size_t i = 0; i < links->end_count; i++) {
        nw_nic_note(&failures[i], open_end(links, &links->ends[i]));
        if (failures[i].rc == NW_OK)
            nw_verbs_end_card(links->ends[i].end, hellos[i].card);
    }
    return nw_nic_agree(links, failures);
}

/* In turn: by rdma_cm the other sides are met in no known order, and may be in this process. */
static void connect_steps(struct nw_nic_links *links, struct nw_nic_failure *failures)
{
    for (size_t left = 1; left > 0;) {
        left = 0;
        for (size_t i = 0; i < links->end_count; i++) {
            bool done = true;

            if (links->is_out[links->ends[i].pair] || failures[i].rc != NW_OK)
                continue;
            nw_nic_note(&failures[i], nw_verbs_connect_step(links->ends[i].end, &done));
            left += failures[i].rc == NW_OK && !done;
        }
    }
}

static nw_rc connect_ends(struct nw_nic_links *links, struct nw_nic_failure *failures,
                          const struct hello *hellos)
{
    char *all;

    NW_TRY(nw_nic_exchange(links, hellos, sizeof *hellos, &all));
    for (size_t i = 0; i < links->end_count; i++) {
        const struct nw_nic_end *mine = &links->ends[i];
        const struct hello *theirs =
            nw_nic_of(links, all, sizeof *hellos, mine->pair, 1 - mine->side);

        if (!links->is_out[mine->pair])
            nw_nic_note(&failures[i], nw_verbs_connect_start(mine->end, theirs->card));
    }
    free(all);
    connect_steps(links, failures);
    return nw_nic_agree(links, failures);
}

static void gid_text(const struct nw_verbs_gid *gid, char text[64])
{
    char address[NW_VERBS_GID_TEXT];
    static const uint8_t none[16];

    if (memcmp(gid->raw, none, sizeof none) != 0)
        snprintf(text, 64, "%s (index %d)", nw_verbs_gid_text(gid, address), gid->index);
}

/* Everybody hears from the side of a what was settled. */
static nw_rc tell_settled(struct nw_nic_links *links)
{
    struct nw_nic_settled *mine = calloc(links->slots, sizeof *mine);
    char *all;
    nw_rc rc;

    if (mine == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu connections", links->slots);
    for (size_t i = 0; i < links->end_count; i++) {
        const struct nw_verbs_link *link;

        if (links->is_out[links->ends[i].pair] || links->ends[i].side != 0)
            continue;
        link = nw_verbs_end_link(links->ends[i].end);
        mine[i].mtu_bytes = link->mtu_bytes;
        mine[i].qps = link->qps;
        mine[i].depth = link->depth;
        gid_text(&link->here_gid, mine[i].gid_a);
        gid_text(&link->there_gid, mine[i].gid_b);
        snprintf(mine[i].memory, sizeof mine[i].memory, "%s", link->memory);
    }
    rc = nw_nic_exchange(links, mine, sizeof *mine, &all);
    free(mine);
    NW_TRY(rc);
    for (size_t pair = 0; pair < links->round->count; pair++)
        memcpy(&links->settled[pair], nw_nic_of(links, all, sizeof *links->settled, pair, 0),
               sizeof *links->settled);
    free(all);
    return NW_OK;
}

static nw_rc open_all(struct nw_nic_links *links)
{
    struct nw_nic_failure *failures = calloc(links->slots, sizeof *failures);
    struct hello *hellos = calloc(links->slots, sizeof *hellos);
    nw_rc rc = failures != NULL && hellos != NULL
                   ? NW_OK
                   : nw_fail(NW_ENOMEM, "no memory for %zu connections", links->slots);

    rc = nw_agree(links->bench->comm, rc);
    if (rc == NW_OK)
        rc = open_ends(links, failures, hellos);
    if (rc == NW_OK)
        rc = connect_ends(links, failures, hellos);
    if (rc == NW_OK)
        rc = tell_settled(links);
    free(failures);
    free(hellos);
    return rc;
}

nw_rc nw_nic_links_open(struct nw_bench *bench, const struct nw_nics *nics,
                        const struct nw_nic_round *round, const struct nw_nic_ask *ask,
                        struct nw_nic_links **links_out)
{
    struct nw_nic_links *links = calloc(1, sizeof *links);
    nw_rc rc = NW_OK;

    if (links == NULL) {
        rc = nw_fail(NW_ENOMEM, "no memory for the connections of %zu NICs", round->count);
    } else {
        links->bench = bench;
        links->nics = nics;
        links->round = round;
        links->ask = *ask;
        links->region_bytes = (uint64_t)ask->qps * nw_verbs_stride(ask->bytes);
        links->buffer_bytes = 2 * links->region_bytes;
        rc = deal(links);
    }
    rc = nw_agree(bench->comm, rc);
    if (rc == NW_OK)
        rc = open_all(links);
    if (rc != NW_OK) {
        nw_nic_links_close(links);
        return rc;
    }
    *links_out = links;
    return NW_OK;
}

void nw_nic_links_close(struct nw_nic_links *links)
{
    if (links == NULL)
        return;
    for (size_t i = 0; i < links->end_count; i++) {
        nw_verbs_end_close(links->ends[i].end);
        if (links->ends[i].buffer != NULL)
            drop_buffer(links, links->ends[i].buffer);
    }
    free(links->ends);
    free(links->slot_of);
    free(links->owner_of);
    free(links->is_out);
    free(links->failures);
    free(links->settled);
    free(links->own_rates);
    free(links);
}
