#include "collectives/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

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

bool nw_address_share_network(const char *a, int a_prefix, const char *b, int b_prefix)
{
    const int family = strchr(a, ':') != NULL ? AF_INET6 : AF_INET;
    unsigned char x[16] = {0}, y[16] = {0};
    int bits = a_prefix;

    if (a_prefix != b_prefix || bits <= 0 || bits > (family == AF_INET ? 32 : 128) ||
        inet_pton(family, a, x) != 1 || inet_pton(family, b, y) != 1)
        return false;
    for (int i = 0; bits > 0; i++, bits -= 8) {
        const unsigned char mask = bits >= 8 ? 0xff : (unsigned char)(0xff << (8 - bits));

        if ((x[i] & mask) != (y[i] & mask))
            return false;
    }
    return true;
}

static int listen_on(int family, int *port_out)
{
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in any4 = {.sin_family = AF_INET};
    const bool six = family == AF_INET6;
    const struct sockaddr *any = six ? (struct sockaddr *)&any6 : (struct sockaddr *)&any4;
    struct sockaddr_in6 bound = {0};
    socklen_t length = sizeof bound;
    const int off = 0, fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if ((six && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) ||
        bind(fd, any, six ? sizeof any6 : sizeof any4) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, (struct sockaddr *)&bound, &length) != 0) {
        close(fd);
        return -1;
    }
    *port_out = ntohs(bound.sin6_port); /* at the same place in both families */
    return fd;
}

int nw_address_listen(int *port_out)
{
    const int fd = listen_on(AF_INET6, port_out);

    return fd >= 0 ? fd : listen_on(AF_INET, port_out);
}
