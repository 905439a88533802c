#include <criterion/criterion.h>
#include <stdlib.h>

#include "bench/pairs_plan.h"
#include "bench/rounds.h"

enum { RANKS_MAX = 600 };

/* `uneven`: host h has one rank less when h % 3 == 1; dealt round robin or in blocks. */
static int deal(int hosts, int per_host, bool uneven, bool blocks, int host_of_rank[RANKS_MAX])
{
    int count = 0;

    for (int i = 0; i < hosts * per_host; i++) {
        const int host = blocks ? i / per_host : i % hosts;
        const int local = blocks ? i % per_host : i / hosts;

        if (!uneven || host % 3 != 1 || local + 1 < per_host)
            host_of_rank[count++] = host;
    }
    return count;
}

static void check(int hosts, int per_host, bool uneven, bool blocks)
{
    int host_of_rank[RANKS_MAX];
    const int ranks = deal(hosts, per_host, uneven, blocks, host_of_rank);
    struct nw_pairs_plan plan;
    unsigned char *met = calloc((size_t)ranks * (size_t)ranks, 1);

    cr_assert_not_null(met);
    cr_assert_eq(nw_pairs_plan_open(host_of_rank, ranks, hosts, &plan), NW_OK);
    cr_expect_eq(plan.round_count, nw_round_count(per_host) + nw_round_count(hosts));
    for (int round = 0; round < plan.round_count; round++)
        for (int rank = 0; rank < ranks; rank++) {
            const int peer = nw_pairs_peer(&plan, rank, round);

            if (peer < 0)
                continue;
            cr_assert(peer < ranks && peer != rank);
            cr_assert_eq(nw_pairs_peer(&plan, peer, round), rank, "nobody twice in a round");
            met[rank * ranks + peer]++;
        }
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++) {
            const bool same = host_of_rank[a] == host_of_rank[b];
            const bool meet = a != b && (same || plan.local_of_rank[a] == plan.local_of_rank[b]);

            cr_assert_eq(met[a * ranks + b], meet, "%d hosts of %d: %d and %d met %d times", hosts,
                         per_host, a, b, met[a * ranks + b]);
        }
    nw_pairs_plan_free(&plan);
    free(met);
}

Test(bench_pairs_plan, every_two_hosts_and_every_two_ranks_of_a_host_meet_once)
{
    for (int hosts = 3; hosts <= 33; hosts += hosts < 8 ? 1 : 5)
        for (int per_host = 1; per_host <= 8; per_host += per_host < 4 ? 1 : 4)
            for (int kind = 0; kind < 4; kind++)
                if (per_host > 1 || kind < 2)
                    check(hosts, per_host, kind >= 2, kind % 2);
}

Test(bench_pairs_plan, on_two_hosts_every_two_ranks_meet)
{
    static const int host_of_rank[] = {0, 0, 0, 1, 1, 1};
    struct nw_pairs_plan plan;

    cr_assert_eq(nw_pairs_plan_open(host_of_rank, 6, 2, &plan), NW_OK);
    cr_expect_eq(plan.round_count, 5);
    cr_expect_eq(nw_pairs_peer(&plan, 5, 2), nw_round_peer(5, 2, 6));
    nw_pairs_plan_free(&plan);
}

Test(bench_pairs_plan, two_hosts_that_meet_alone_leave_the_others_idle)
{
    static const int host_of_rank[] = {0, 0, 1, 1, 2, 2, 2};
    static const int peers[] = {-1, -1, 4, 5, 2, 3, -1};
    struct nw_pairs_plan plan;

    cr_assert_eq(nw_pairs_plan_open(host_of_rank, 7, 3, &plan), NW_OK);
    for (int rank = 0; rank < 7; rank++)
        cr_expect_eq(nw_pairs_peer_of_hosts(&plan, rank, 2, 1), peers[rank], "rank %d", rank);
    nw_pairs_plan_free(&plan);
}
