/* Public. What TCP sockets carry between two hosts: the measure that RDMA is held against. Several
 * connections ("streams") side by side, one thread each; one way, or a message at a time. The first
 * stream is the caller's own thread; the others run on all cores that the process may use at all
 * (its cgroup's), not only on those that mpirun bound the caller to.
 *
 * Each host opens an end, which listens, and its card (plain bytes) goes to the others. For a pair
 * one side connects, the other accepts; both then have a link. Every wait has a deadline; the first
 * failure ends the link.
 *
 *     NW_TRY(nw_tcp_open(getenv("NCCL_SOCKET_IFNAME"), host, &end));    // nw_tcp_card(end)
 *     … all cards to all hosts …
 *     a: NW_TRY(nw_tcp_connect(end, &card_of_b, how, &link));           // at the same time as
 *     b: NW_TRY(nw_tcp_accept(end, &card_of_a, how, &link));
 *     a: NW_TRY(nw_tcp_send(link, data, bytes));  b: NW_TRY(nw_tcp_receive(link, data, bytes));
 *     nw_tcp_link_close(link);
 *     nw_tcp_close(end);
 */
#ifndef NW_COLLECTIVES_TCP_H
#define NW_COLLECTIVES_TCP_H

#include "collectives/reach.h"

#define NW_TCP_STREAMS_MAX 64
/* Less goes over one stream, and is waited for awake, as NCCL's and MPI's threads do: waking up
 * costs as much as the way through the wire. */
#define NW_TCP_SMALL_BYTES 65536

struct nw_tcp_end;
struct nw_tcp_link;

struct nw_tcp_how {
    int stream_count; /* 1 … NW_TCP_STREAMS_MAX; the same on both sides */
    /* The same on both sides, another one for each link of a process, and not to be guessed:
     * whoever says it is let in. */
    uint64_t run;
    double connect_ns;  /* deadline of connecting all streams */
    double transfer_ns; /* and of a send or a receive */
};

/* NW_ENODEV: no interface with an address that NCCL would take (`filter`: nw_reach_find). */
nw_rc nw_tcp_open(const char *filter, const char *host, struct nw_tcp_end **end_out);
const struct nw_reach_end *nw_tcp_card(const struct nw_tcp_end *end);
void nw_tcp_close(struct nw_tcp_end *end); /* accepts NULL */

/* Which address of each: of one network where there is one, the fastest that the kernel names.
 * Indexes into the cards' addresses. */
void nw_tcp_choose(const struct nw_reach_end *from, const struct nw_reach_end *to, int *from_out,
                   int *to_out);

/* NW_EPEER, NW_ETIMEOUT: worded with host, address and port. */
nw_rc nw_tcp_connect(struct nw_tcp_end *end, const struct nw_reach_end *peer,
                     const struct nw_tcp_how *how, struct nw_tcp_link **link_out);
nw_rc nw_tcp_accept(struct nw_tcp_end *end, const struct nw_reach_end *peer,
                    const struct nw_tcp_how *how, struct nw_tcp_link **link_out);
void nw_tcp_link_close(struct nw_tcp_link *link); /* accepts NULL */

/* The data goes in even parts over all streams, or, below NW_TCP_SMALL_BYTES, over the first. Sent:
 * handed to the kernel. Received: all of it is here. */
nw_rc nw_tcp_send(struct nw_tcp_link *link, const void *data, uint64_t bytes);
nw_rc nw_tcp_receive(struct nw_tcp_link *link, void *data, uint64_t bytes);

#endif
