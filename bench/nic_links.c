#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

double nw_nic_own_rate(const struct nw_nic_links *links, size_t pair)
{
    return links->own_rates[pair];
}

const struct nw_nic_settled *nw_nic_settled(const struct nw_nic_links *links, size_t pair)
{
    static const struct nw_nic_settled unknown;

    return links->settled != NULL ? &links->settled[pair] : &unknown;
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
    if (plan->nic_depth > 0) /* asked for: had, or refused */
        wish.depth = links->ask.depth;
    else
        wish.most_depth = links->ask.depth;
    wish.inline_bytes = INLINE_BYTES;
    wish.by_cm = plan->nic_cm;
    wish.timeout_ns = nw_nic_wait_ns(links->bench);
    mine->buffer = take_buffer(links);
    if (mine->buffer == NULL)
        return nw_last_error()->rc;
    return nw_verbs_end_open(links->nics->verbs, port, &wish, mine->buffer, links->buffer_bytes,
                             links->ask.gpu ? links->bench->comm->dev : NULL, &mine->end);
}

struct card { /* what one side tells the other before they connect */
    uint8_t bytes[NW_VERBS_CARD_BYTES];
};

struct opening { /* of each of this rank's ends */
    struct nw_nic_links *links;
    struct nw_nic_failure *failures;
    struct card *mine, *theirs;
};

static nw_rc open_ends(const struct opening *opening)
{
    struct nw_nic_links *links = opening->links;

    for (size_t i = 0; i < links->end_count; i++) {
        nw_nic_note(&opening->failures[i], open_end(links, &links->ends[i]));
        if (opening->failures[i].rc == NW_OK)
            nw_verbs_end_card(links->ends[i].end, opening->mine[i].bytes);
    }
    return nw_nic_agree(links, opening->failures);
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

static void take_card(void *user, size_t pair, int side, const void *what)
{
    const struct opening *opening = user;

    for (size_t i = 0; i < opening->links->end_count; i++)
        if (opening->links->ends[i].pair == pair && opening->links->ends[i].side == 1 - side)
            memcpy(&opening->theirs[i], what, sizeof *opening->theirs);
}

static nw_rc connect_ends(struct opening *opening)
{
    struct nw_nic_links *links = opening->links;

    NW_TRY(nw_nic_tell(links, opening->mine, sizeof *opening->mine, take_card, opening));
    for (size_t i = 0; i < links->end_count; i++)
        if (!links->is_out[links->ends[i].pair])
            nw_nic_note(&opening->failures[i],
                        nw_verbs_connect_start(links->ends[i].end, opening->theirs[i].bytes));
    connect_steps(links, opening->failures);
    return nw_nic_agree(links, opening->failures);
}

static void gid_text(const struct nw_verbs_gid *gid, char text[64])
{
    char address[NW_VERBS_GID_TEXT];
    static const uint8_t none[16];

    if (memcmp(gid->raw, none, sizeof none) != 0)
        snprintf(text, 64, "%s (index %d)", nw_verbs_gid_text(gid, address), gid->index);
}

static void settle_end(const struct nw_nic_links *links, const struct nw_nic_end *mine,
                       struct nw_nic_settled *settled)
{
    const struct nw_verbs_link *link;

    if (links->is_out[mine->pair] || mine->side != 0)
        return;
    link = nw_verbs_end_link(mine->end);
    settled->mtu_bytes = link->mtu_bytes;
    settled->depth = link->depth;
    gid_text(&link->here_gid, settled->gid_a);
    gid_text(&link->there_gid, settled->gid_b);
    snprintf(settled->memory, sizeof settled->memory, "%s", link->memory);
}

static void take_settled(void *user, size_t pair, int side, const void *what)
{
    const struct nw_nic_links *links = user;

    if (side == 0 && links->settled != NULL)
        memcpy(&links->settled[pair], what, sizeof *links->settled);
}

/* Rank 0 hears from the side of a what was settled. */
static nw_rc tell_settled(struct nw_nic_links *links, struct nw_nic_settled *mine)
{
    for (size_t i = 0; i < links->end_count; i++)
        settle_end(links, &links->ends[i], &mine[i]);
    return nw_nic_tell(links, mine, sizeof *mine, take_settled, links);
}

static nw_rc open_all(struct nw_nic_links *links)
{
    const size_t count = links->end_count + 1;
    struct opening opening = {.links = links,
                              .failures = calloc(count, sizeof *opening.failures),
                              .mine = calloc(count, sizeof *opening.mine),
                              .theirs = calloc(count, sizeof *opening.theirs)};
    struct nw_nic_settled *settled = calloc(count, sizeof *settled);
    nw_rc rc = opening.failures != NULL && opening.mine != NULL && opening.theirs != NULL &&
                       settled != NULL
                   ? NW_OK
                   : nw_fail(NW_ENOMEM, "no memory for %zu connections", links->end_count);

    rc = nw_agree(links->bench->comm, rc);
    if (rc == NW_OK)
        rc = open_ends(&opening);
    if (rc == NW_OK)
        rc = connect_ends(&opening);
    if (rc == NW_OK)
        rc = tell_settled(links, settled);
    free(opening.failures);
    free(opening.mine);
    free(opening.theirs);
    free(settled);
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
        rc = nw_nic_deal(links);
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
    nw_nic_undeal(links);
    free(links);
}
