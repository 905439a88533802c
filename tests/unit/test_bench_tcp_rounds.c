/* Who sends to whom in the case tcp, for every number of hosts up to 512. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "bench/tcp_rounds.h"

Test(tcp_rounds, every_way_between_few_hosts_and_the_ring_of_many_exactly_once)
{
    for (int hosts = 0; hosts <= 512; hosts++) {
        int *seen = calloc((size_t)hosts * (size_t)hosts + 1, sizeof *seen);
        const int rounds = nw_tcp_round_count(hosts);

        for (int round = 0; round < rounds; round++)
            for (int host = 0; host < hosts; host++) {
                bool sends, receives;
                const int peer = nw_tcp_round_peer(host, round, hosts, &sends);

                if (peer < 0)
                    continue;
                cr_assert_eq(nw_tcp_round_peer(peer, round, hosts, &receives), host,
                             "%d hosts, round %d: %d and %d", hosts, round, host, peer);
                cr_assert_neq(sends, receives, "%d hosts, round %d", hosts, round);
                if (sends)
                    seen[host * hosts + peer]++;
            }
        for (int from = 0; from < hosts; from++)
            for (int to = 0; to < hosts; to++) {
                const int due = hosts <= NW_TCP_ALL_HOSTS ? from != to : to == (from + 1) % hosts;

                cr_assert_eq(seen[from * hosts + to], due, "%d hosts: %d to %d %d times", hosts,
                             from, to, seen[from * hosts + to]);
            }
        cr_assert_leq(rounds, hosts <= NW_TCP_ALL_HOSTS ? 2 * hosts : 3);
        free(seen);
    }
}
