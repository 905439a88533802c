#include "bench/pairs_plan.h"

#include <stdlib.h>

#include "bench/rounds.h"

static void number_ranks(struct nw_pairs_plan *plan, int *counts)
{
    for (int rank = 0; rank < plan->rank_count; rank++) {
        plan->local_of_rank[rank] = counts[plan->host_of_rank[rank]]++;
        if (plan->local_of_rank[rank] >= plan->local_most)
            plan->local_most = plan->local_of_rank[rank] + 1;
    }
}

static nw_rc find_places(struct nw_pairs_plan *plan)
{
    const size_t places = (size_t)plan->host_count * (size_t)plan->local_most;

    plan->rank_at = malloc((places + 1) * sizeof *plan->rank_at);
    if (plan->rank_at == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the pairs of %d ranks", plan->rank_count);
    for (size_t i = 0; i < places; i++)
        plan->rank_at[i] = -1;
    for (int rank = 0; rank < plan->rank_count; rank++)
        plan->rank_at[plan->host_of_rank[rank] * plan->local_most + plan->local_of_rank[rank]] =
            rank;
    return NW_OK;
}

nw_rc nw_pairs_plan_open(const int *host_of_rank, int rank_count, int host_count,
                         struct nw_pairs_plan *plan_out)
{
    struct nw_pairs_plan plan = {.rank_count = rank_count,
                                 .host_count = host_count,
                                 .host_of_rank = host_of_rank,
                                 .by_host = host_count >= NW_PAIRS_BY_HOST};
    int *counts = calloc((size_t)host_count + 1, sizeof *counts);
    nw_rc rc = NW_OK;

    plan.local_of_rank = calloc((size_t)rank_count + 1, sizeof *plan.local_of_rank);
    if (counts == NULL || plan.local_of_rank == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for the pairs of %d ranks", rank_count);
    else
        number_ranks(&plan, counts);
    free(counts);
    if (rc == NW_OK)
        rc = find_places(&plan);
    if (rc != NW_OK) {
        nw_pairs_plan_free(&plan);
        return rc;
    }
    plan.within_count = plan.by_host ? nw_round_count(plan.local_most) : 0;
    plan.round_count =
        plan.by_host ? plan.within_count + nw_round_count(host_count) : nw_round_count(rank_count);
    *plan_out = plan;
    return NW_OK;
}

void nw_pairs_plan_free(struct nw_pairs_plan *plan)
{
    free(plan->local_of_rank);
    free(plan->rank_at);
    *plan = (struct nw_pairs_plan){0};
}

static int at(const struct nw_pairs_plan *plan, int host, int local)
{
    return host < 0 || local < 0 ? -1 : plan->rank_at[host * plan->local_most + local];
}

int nw_pairs_peer(const struct nw_pairs_plan *plan, int rank, int round)
{
    const int host = plan->host_of_rank[rank], local = plan->local_of_rank[rank];

    if (!plan->by_host)
        return nw_round_peer(rank, round, plan->rank_count);
    if (round < plan->within_count)
        return at(plan, host, nw_round_peer(local, round, plan->local_most));
    return at(plan, nw_round_peer(host, round - plan->within_count, plan->host_count), local);
}

int nw_pairs_peer_of_hosts(const struct nw_pairs_plan *plan, int rank, int a, int b)
{
    const int host = plan->host_of_rank[rank];

    if (host != a && host != b)
        return -1;
    return at(plan, host == a ? b : a, plan->local_of_rank[rank]);
}
