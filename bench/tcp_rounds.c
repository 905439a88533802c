#include "bench/tcp_rounds.h"

#include "bench/rounds.h"

int nw_tcp_round_count(int host_count)
{
    if (host_count <= NW_TCP_ALL_HOSTS)
        return 2 * nw_round_count(host_count);
    return host_count % 2 == 0 ? 2 : 3;
}

/* Edge i of the ring goes from i to i + 1: the even ones, the odd ones, and the last of an odd
 * number alone. */
static int round_of_edge(int edge, int host_count)
{
    return edge == host_count - 1 && host_count % 2 == 1 ? 2 : edge % 2;
}

int nw_tcp_round_peer(int host, int round, int host_count, bool *sends_out)
{
    const int before = (host + host_count - 1) % host_count;

    *sends_out = false;
    if (host_count <= NW_TCP_ALL_HOSTS) {
        const int peer = nw_round_peer(host, round / 2, host_count);

        *sends_out = peer >= 0 && (host < peer) == (round % 2 == 0);
        return peer;
    }
    if (round_of_edge(host, host_count) == round) {
        *sends_out = true;
        return (host + 1) % host_count;
    }
    return round_of_edge(before, host_count) == round ? before : -1;
}
