#include <stdlib.h>

#include "bench/nics.h"

void nw_nic_rounds_free(struct nw_nic_rounds *rounds)
{
    for (size_t i = 0; i < rounds->count; i++)
        free(rounds->items[i].pairs);
    free(rounds->items);
    *rounds = (struct nw_nic_rounds){0};
}

struct span { /* of a host's NICs */
    int first, count;
};

static struct span span_of(const struct nw_nic *nics, size_t count, int host)
{
    struct span span = {0};

    for (size_t i = 0; i < count; i++) {
        if (nics[i].host != host)
            continue;
        if (span.count++ == 0)
            span.first = (int)i;
    }
    return span;
}

/* The index-th of two hosts' pairs of NICs: those of one place first. */
static bool pair_at(const struct nw_nic *nics, struct span a, struct span b, bool all, int index,
                    struct nw_nic_pair *pair_out)
{
    const int shift = a.count > 0 ? index / a.count : 0;

    if (a.count == 0 || b.count == 0 || shift >= (all ? b.count : 1))
        return false;
    *pair_out = (struct nw_nic_pair){.a = a.first + index % a.count,
                                     .b = b.first + (index % a.count + shift) % b.count,
                                     .rail = shift == 0 && index < b.count};
    return (all || pair_out->rail) && nics[pair_out->a].infiniband == nics[pair_out->b].infiniband;
}

static int most_pairs(const struct nw_nic *nics, size_t count, int host_count)
{
    int most = 0;

    for (int host = 0; host < host_count; host++) {
        const int of_host = span_of(nics, count, host).count;

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

static nw_rc add_round(const struct nw_nic *nics, size_t count, int host_count, bool all, int turn,
                       int index, struct nw_nic_rounds *rounds)
{
    struct nw_nic_round *round = &rounds->items[rounds->count];

    round->pairs = calloc((size_t)host_count, sizeof *round->pairs);
    if (round->pairs == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the pairs of %d hosts", host_count);
    for (int host = 0; host < host_count; host++) {
        const int other = partner(host, turn, host_count);

        if (other >= 0 && pair_at(nics, span_of(nics, count, host), span_of(nics, count, other),
                                  all, index, &round->pairs[round->count]))
            round->count++;
    }
    if (round->count > 0)
        rounds->count++;
    else
        free(round->pairs);
    return NW_OK;
}

nw_rc nw_nic_rounds_of_pairs(const struct nw_nic *nics, size_t count, int host_count, bool all,
                             struct nw_nic_rounds *rounds_out)
{
    const int most = most_pairs(nics, count, host_count);
    const int turns = host_count < 2 ? 0 : host_count % 2 == 0 ? 1 : 2;
    struct nw_nic_rounds rounds = {0};

    rounds.items = calloc((size_t)(turns * most * most) + 1, sizeof *rounds.items);
    if (rounds.items == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the rounds of %zu NICs", count);
    for (int turn = 0; turn < turns; turn++)
        for (int index = 0; index < (all ? most * most : most); index++)
            if (add_round(nics, count, host_count, all, turn, index, &rounds) != NW_OK) {
                nw_nic_rounds_free(&rounds);
                return nw_last_error()->rc;
            }
    *rounds_out = rounds;
    return NW_OK;
}
