#include <stdlib.h>

#include "bench/nics.h"

void nw_nic_rounds_free(struct nw_nic_rounds *rounds)
{
    for (size_t i = 0; i < rounds->count; i++)
        free(rounds->items[i].pairs);
    free(rounds->items);
    *rounds = (struct nw_nic_rounds){0};
}

static size_t nics_of(const struct nw_nic *nics, size_t count, int host)
{
    size_t of_host = 0;

    for (size_t i = 0; i < count; i++)
        of_host += nics[i].host == host;
    return of_host;
}

static bool is_rail(const struct nw_nic_pair *pairs, size_t count, int a, int b)
{
    for (size_t i = 0; i < count; i++)
        if (pairs[i].a == a && pairs[i].b == b)
            return true;
    return false;
}

/* The index-th NIC of a host; they stand together. */
static int nic_at(const struct nw_nic *nics, size_t count, int host, size_t index)
{
    for (size_t i = 0; i < count; i++)
        if (nics[i].host == host)
            return (int)(i + index);
    return -1;
}

/* Two hosts' pairs of NICs in their order: the rails, then each with each, of which two that follow
 * each other share no NIC where that can be. */
static size_t list_pairs(const struct nw_nic *nics, size_t count, int a, int b, bool all,
                         struct nw_nic_pair *pairs)
{
    const size_t of_a = nics_of(nics, count, a), of_b = nics_of(nics, count, b);
    const size_t rails = nw_nic_rails(nics, count, a, b, pairs);
    size_t found = rails;

    for (size_t shift = 0; all && shift < of_b; shift++)
        for (size_t i = 0; i < of_a; i++) {
            const int from = nic_at(nics, count, a, i),
                      to = nic_at(nics, count, b, (i + shift) % of_b);

            if (nics[from].infiniband == nics[to].infiniband && !is_rail(pairs, rails, from, to))
                pairs[found++] = (struct nw_nic_pair){.a = from, .b = to};
        }
    return found;
}

static size_t most_nics(const struct nw_nic *nics, size_t count, int host_count)
{
    size_t most = 0;

    for (int host = 0; host < host_count; host++) {
        const size_t of_host = nics_of(nics, count, host);

        most = of_host > most ? of_host : most;
    }
    return most;
}

/* Whom `host` leads in turn `turn`; -1: nobody. */
static int partner(int host, int turn, int host_count)
{
    if (turn == 0)
        return host % 2 == 0 && host + 1 < host_count ? host + 1 : -1;
    return host == host_count - 1 ? 0 : -1;
}

/* The pairs of two hosts into the rounds of a turn, one each. */
static nw_rc add_hosts(struct nw_nic_rounds *rounds, size_t first, int host_count,
                       const struct nw_nic_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct nw_nic_round *round = &rounds->items[first + i];

        if (round->pairs == NULL)
            round->pairs = calloc((size_t)host_count, sizeof *round->pairs);
        if (round->pairs == NULL)
            return nw_fail(NW_ENOMEM, "no memory for the pairs of %d hosts", host_count);
        round->pairs[round->count++] = pairs[i];
        if (rounds->count < first + i + 1)
            rounds->count = first + i + 1;
    }
    return NW_OK;
}

nw_rc nw_nic_rounds_of_pairs(const struct nw_nic *nics, size_t count, int host_count, bool all,
                             struct nw_nic_rounds *rounds_out)
{
    const size_t most = most_nics(nics, count, host_count);
    const int turns = host_count < 2 ? 0 : host_count % 2 == 0 ? 1 : 2;
    struct nw_nic_rounds rounds = {0};
    struct nw_nic_pair *pairs = calloc(most * most + 1, sizeof *pairs);
    nw_rc rc = NW_OK;

    rounds.items = calloc(2 * most * most + 1, sizeof *rounds.items);
    if (pairs == NULL || rounds.items == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for the rounds of %zu NICs", count);
    for (int turn = 0; turn < turns && rc == NW_OK; turn++) {
        const size_t first = rounds.count;

        for (int host = 0; host < host_count && rc == NW_OK; host++) {
            const int other = partner(host, turn, host_count);

            if (other >= 0)
                rc = add_hosts(&rounds, first, host_count, pairs,
                               list_pairs(nics, count, host, other, all, pairs));
        }
    }
    free(pairs);
    if (rc != NW_OK) {
        nw_nic_rounds_free(&rounds);
        return rc;
    }
    *rounds_out = rounds;
    return NW_OK;
}
