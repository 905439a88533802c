#include "bench/rounds.h"

int nw_round_count(int rank_count)
{
    if (rank_count < 2)
        return 0;
    return rank_count % 2 == 0 ? rank_count - 1 : rank_count;
}

/* The circle has `rounds` places (odd) and one rank in its centre, the last one; with an odd number
 * of ranks the centre is empty. Places a, b with a + b = round (mod rounds) meet; the place that
 * meets itself meets the centre. */
int nw_round_peer(int rank, int round, int rank_count)
{
    const int rounds = nw_round_count(rank_count);
    const int centre = rank_count % 2 == 0 ? rank_count - 1 : -1;
    int peer;

    if (rounds == 0)
        return -1;
    if (rank == centre) /* 2 x = round (mod rounds): the inverse of 2 is (rounds + 1) / 2 */
        return (int)((long long)round * ((rounds + 1) / 2) % rounds);
    peer = (round - rank) % rounds;
    if (peer < 0)
        peer += rounds;
    return peer == rank ? centre : peer;
}
