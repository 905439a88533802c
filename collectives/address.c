#include "collectives/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

socklen_t nw_address_make(const char *ip, int port, struct sockaddr_storage *address_out)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address_out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address_out;

    memset(address_out, 0, sizeof *address_out);
    if (inet_pton(AF_INET, ip, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        return sizeof *v4;
    }
    if (inet_pton(AF_INET6, ip, &v6->sin6_addr) != 1)
        return 0;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((uint16_t)port);
    return sizeof *v6;
}
