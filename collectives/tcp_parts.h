/* Private to collectives/. TCP between two hosts: tcp.c listens and connects, tcp_link.c moves. */
#ifndef NW_COLLECTIVES_TCP_PARTS_H
#define NW_COLLECTIVES_TCP_PARTS_H

#include "collectives/tcp.h"

/* Takes the connections (non-blocking) over, also on failure. */
nw_rc nw_tcp_link_of(const int *fds, const struct nw_tcp_how *how, const char *peer,
                     struct nw_tcp_link **link_out);
/* Waits for `events` until `deadline_ns` of nw_now_ns. False: it passed. */
bool nw_tcp_wait(int fd, short events, uint64_t deadline_ns);

#endif
