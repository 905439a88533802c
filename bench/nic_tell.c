/* Who has which end of a round, and what the ranks tell each other about their ends. Most ranks
 * have none or one: one entry of each rank goes to all at once, and what few ranks have more of
 * comes from each of these alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/nic_links_parts.h"

/* Fewer than one rank in so many: each is heard alone. */
#define FEW 16

int nw_nic_owner(const struct nw_nic_links *links, size_t pair, int side)
{
    const struct nw_nic_pair *nics = &links->round->pairs[pair];

    return links->nics->items[side == 0 ? nics->a : nics->b].owner;
}

static size_t ends_of(const struct nw_nic_links *links, int rank)
{
    return links->first_of_rank[rank + 1] - links->first_of_rank[rank];
}

static void sort_ends(struct nw_nic_links *links)
{
    const int ranks = links->bench->comm->rank_count;
    const size_t count = 2 * links->round->count;

    for (size_t i = 0; i < count; i++)
        links->first_of_rank[nw_nic_owner(links, i / 2, (int)(i % 2)) + 1]++;
    for (int rank = 0; rank < ranks; rank++)
        links->first_of_rank[rank + 1] += links->first_of_rank[rank];
    for (size_t i = 0; i < count; i++)
        links->end_at[links->first_of_rank[nw_nic_owner(links, i / 2, (int)(i % 2))]++] = i;
    for (int rank = ranks; rank > 0; rank--)
        links->first_of_rank[rank] = links->first_of_rank[rank - 1];
    links->first_of_rank[0] = 0;
}

static size_t most_ends(const struct nw_nic_links *links)
{
    size_t most = 0;

    for (int rank = 0; rank < links->bench->comm->rank_count; rank++)
        most = ends_of(links, rank) > most ? ends_of(links, rank) : most;
    return most;
}

static bool take_own(struct nw_nic_links *links)
{
    const struct nw_comm *comm = links->bench->comm;
    const size_t ranks = (size_t)comm->rank_count, most = most_ends(links);
    const size_t *own = &links->end_at[links->first_of_rank[comm->rank]];

    links->end_count = ends_of(links, comm->rank);
    links->ends = calloc(links->end_count + 1, sizeof *links->ends);
    links->own_codes = calloc(links->end_count + 1, sizeof *links->own_codes);
    /* and an entry of zeros, for ranks that have nothing to say */
    links->scratch_bytes = ((ranks > most ? ranks : most) + 1) * NW_NIC_TOLD_MOST;
    links->scratch = calloc(1, links->scratch_bytes);
    if (links->ends == NULL || links->own_codes == NULL || links->scratch == NULL)
        return false;
    for (size_t i = 0; i < links->end_count; i++)
        links->ends[i] = (struct nw_nic_end){.pair = own[i] / 2, .side = (int)(own[i] % 2)};
    return true;
}

static bool take_room(struct nw_nic_links *links)
{
    const struct nw_comm *comm = links->bench->comm;
    const size_t pairs = links->round->count;

    links->first_of_rank = calloc((size_t)comm->rank_count + 1, sizeof *links->first_of_rank);
    links->end_at = calloc(2 * pairs + 1, sizeof *links->end_at);
    links->codes = calloc(2 * pairs + 1, sizeof *links->codes);
    links->values = calloc(2 * pairs + 1, sizeof *links->values);
    links->own_rates = calloc(pairs + 1, sizeof *links->own_rates);
    links->is_out = calloc(pairs + 1, sizeof *links->is_out);
    if (comm->rank == 0) {
        links->failures = calloc(pairs + 1, sizeof *links->failures);
        links->settled = calloc(pairs + 1, sizeof *links->settled);
    }
    return links->first_of_rank != NULL && links->end_at != NULL && links->codes != NULL &&
           links->values != NULL && links->own_rates != NULL && links->is_out != NULL &&
           (comm->rank != 0 || (links->failures != NULL && links->settled != NULL));
}

nw_rc nw_nic_deal(struct nw_nic_links *links)
{
    bool done = take_room(links);

    if (done) {
        sort_ends(links);
        done = take_own(links);
    }
    return done ? NW_OK
                : nw_fail(NW_ENOMEM, "no memory for %zu pairs of NICs", links->round->count);
}

void nw_nic_undeal(struct nw_nic_links *links)
{
    free(links->ends);
    free(links->first_of_rank);
    free(links->end_at);
    free(links->scratch);
    free(links->codes);
    free(links->own_codes);
    free(links->values);
    free(links->own_rates);
    free(links->is_out);
    free(links->failures);
    free(links->settled);
}

/* ---- telling -----------------------------------------------------------------------------------
 */

static void hand(const struct nw_nic_links *links, int rank, size_t index, const void *what,
                 nw_nic_take take, void *user)
{
    const size_t end = links->end_at[links->first_of_rank[rank] + index];

    take(user, end / 2, (int)(end % 2), what);
}

static void put_off(const struct nw_nic_links *links)
{
    nw_bench_status_deadline(links->bench->events->status,
                             nw_now_ns() + (uint64_t)(2 * nw_bench_margin_ns(links->bench)));
}

/* The index-th of each rank's. */
static nw_rc tell_each(struct nw_nic_links *links, size_t index, const char *mine, size_t size,
                       nw_nic_take take, void *user)
{
    struct nw_comm *comm = links->bench->comm;
    const char *own = index < links->end_count
                          ? mine + index * size
                          : links->scratch + links->scratch_bytes - NW_NIC_TOLD_MOST;

    put_off(links);
    NW_TRY(comm->ops->exchange(comm, own, size, links->scratch));
    for (int rank = 0; rank < comm->rank_count; rank++)
        if (index < ends_of(links, rank))
            hand(links, rank, index, links->scratch + (size_t)rank * size, take, user);
    return NW_OK;
}

/* From the index-th on, of each rank that has so many. */
static nw_rc tell_rest(struct nw_nic_links *links, size_t index, const char *mine, size_t size,
                       nw_nic_take take, void *user)
{
    struct nw_comm *comm = links->bench->comm;

    for (int rank = 0; rank < comm->rank_count; rank++) {
        const size_t count = ends_of(links, rank);

        if (count <= index)
            continue;
        if (rank == comm->rank)
            memcpy(links->scratch, mine + index * size, (count - index) * size);
        put_off(links);
        NW_TRY(comm->ops->share(comm, links->scratch, (count - index) * size, rank));
        for (size_t i = index; i < count; i++)
            hand(links, rank, i, links->scratch + (i - index) * size, take, user);
    }
    return NW_OK;
}

nw_rc nw_nic_tell(struct nw_nic_links *links, const void *mine, size_t size, nw_nic_take take,
                  void *user)
{
    const int ranks = links->bench->comm->rank_count;

    for (size_t index = 0;; index++) {
        int having = 0;

        for (int rank = 0; rank < ranks; rank++)
            having += ends_of(links, rank) > index;
        if (having == 0)
            return NW_OK;
        if (having < (ranks + FEW - 1) / FEW || having == 1)
            return tell_rest(links, index, mine, size, take, user);
        NW_TRY(tell_each(links, index, mine, size, take, user));
    }
}

static void take_value(void *user, size_t pair, int side, const void *what)
{
    const struct nw_nic_links *links = user;

    memcpy(&links->values[2 * pair + (size_t)side], what, sizeof *links->values);
}

nw_rc nw_nic_tell_values(struct nw_nic_links *links, const double *mine)
{
    return nw_nic_tell(links, mine, sizeof *mine, take_value, links);
}

/* ---- failures ----------------------------------------------------------------------------------
 */

void nw_nic_note(struct nw_nic_failure *failure, nw_rc rc)
{
    failure->rc = rc;
    if (rc != NW_OK)
        snprintf(failure->text, sizeof failure->text, "%.*s", (int)sizeof failure->text - 1,
                 nw_last_error()->text);
}

static int telling(int rc)
{
    return rc == NW_OK ? 0 : rc == NW_ETIMEOUT ? 1 : rc == NW_EPEER ? 2 : 3;
}

int nw_nic_cause(int a_rc, int b_rc)
{
    return telling(a_rc) < telling(b_rc);
}

static void take_code(void *user, size_t pair, int side, const void *what)
{
    const struct nw_nic_links *links = user;

    memcpy(&links->codes[2 * pair + (size_t)side], what, sizeof *links->codes);
}

/* Its words to rank 0, by whoever has them. */
static nw_rc report(struct nw_nic_links *links, size_t pair, int side,
                    const struct nw_nic_failure *mine)
{
    struct nw_comm *comm = links->bench->comm;
    const int speaker = nw_nic_owner(links, pair, side);

    for (size_t i = 0; i < links->end_count; i++)
        if (links->ends[i].pair == pair && links->ends[i].side == side)
            memcpy(links->scratch, &mine[i], sizeof *mine);
    if (speaker != 0)
        NW_TRY(comm->ops->share(comm, links->scratch, sizeof *mine, speaker));
    if (links->failures != NULL)
        memcpy(&links->failures[pair], links->scratch, sizeof *mine);
    return NW_OK;
}

nw_rc nw_nic_agree(struct nw_nic_links *links, const struct nw_nic_failure *mine)
{
    for (size_t i = 0; i < links->end_count; i++)
        links->own_codes[i] = (int)mine[i].rc;
    NW_TRY(nw_nic_tell(links, links->own_codes, sizeof *links->own_codes, take_code, links));
    for (size_t pair = 0; pair < links->round->count; pair++) {
        const int *codes = &links->codes[2 * pair];
        const int side = nw_nic_cause(codes[0], codes[1]);

        if (links->is_out[pair] || codes[side] == NW_OK)
            continue;
        links->is_out[pair] = true;
        NW_TRY(report(links, pair, side, mine));
    }
    return NW_OK;
}

nw_rc nw_nic_rc(const struct nw_nic_links *links, size_t pair)
{
    const int *codes = &links->codes[2 * pair];

    return links->is_out[pair] ? (nw_rc)codes[nw_nic_cause(codes[0], codes[1])] : NW_OK;
}

const char *nw_nic_why(const struct nw_nic_links *links, size_t pair)
{
    return links->failures != NULL ? links->failures[pair].text : "";
}
