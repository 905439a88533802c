#include <criterion/criterion.h>
#include <stdlib.h>

#include "bench/rounds.h"

/* For every number of ranks up to 512: rounds of disjoint pairs in which each pair meets once. */
static void check_rounds(int ranks, unsigned char *met)
{
    const int rounds = nw_round_count(ranks);

    cr_assert_eq(rounds, ranks % 2 == 0 ? ranks - 1 : ranks, "%d ranks: %d rounds", ranks, rounds);
    for (int i = 0; i < ranks * ranks; i++)
        met[i] = 0;
    for (int round = 0; round < rounds; round++) {
        int idle = 0;

        for (int rank = 0; rank < ranks; rank++) {
            const int peer = nw_round_peer(rank, round, ranks);

            if (peer < 0) {
                idle++;
                continue;
            }
            cr_assert(peer < ranks && peer != rank, "%d ranks, round %d: %d meets %d", ranks, round,
                      rank, peer);
            cr_assert_eq(nw_round_peer(peer, round, ranks), rank,
                         "%d ranks, round %d: %d meets %d, but not the other way", ranks, round,
                         rank, peer);
            met[rank * ranks + peer]++;
        }
        cr_assert_eq(idle, ranks % 2, "%d ranks, round %d: %d idle", ranks, round, idle);
    }
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++)
            cr_assert_eq(met[a * ranks + b], a != b, "%d ranks: %d and %d meet %d times", ranks, a,
                         b, met[a * ranks + b]);
}

Test(bench_rounds, every_pair_meets_once_in_disjoint_rounds_up_to_512_ranks)
{
    unsigned char *met = malloc(512 * 512);

    cr_assert_not_null(met);
    for (int ranks = 2; ranks <= 512; ranks++)
        check_rounds(ranks, met);
    free(met);
}

Test(bench_rounds, fewer_than_two_ranks_have_no_round)
{
    for (int ranks = 0; ranks < 2; ranks++) {
        cr_assert_eq(nw_round_count(ranks), 0);
        cr_assert_eq(nw_round_peer(0, 0, ranks), -1);
    }
}
