/* Public. IP addresses as text, for sockets; a port that is listened on. */
#ifndef NW_COLLECTIVES_ADDRESS_H
#define NW_COLLECTIVES_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/* IPv4 or IPv6, without scope. The length for connect(); 0: the text is no address. */
socklen_t nw_address_make(const char *ip, int port, struct sockaddr_storage *address_out);
/* Of one network by the bits of its prefix, which is the same for both: 0, or more than an address
 * has, is no network. */
bool nw_address_share_network(const char *a, int a_prefix, const char *b, int b_prefix);
/* A port that the kernel chooses, on all addresses, of both families where it has IPv6. The
 * descriptor does not block; -1: errno says why. */
int nw_address_listen(int *port_out);

#endif
