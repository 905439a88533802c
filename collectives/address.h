/* Private to collectives/. IP addresses as text, for sockets. */
#ifndef NW_COLLECTIVES_ADDRESS_H
#define NW_COLLECTIVES_ADDRESS_H

#include <sys/socket.h>

/* IPv4 or IPv6, without scope. The length for connect(); 0: the text is no address. */
socklen_t nw_address_make(const char *ip, int port, struct sockaddr_storage *address_out);

#endif
