#include "collectives/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "collectives/address.h"
#include "collectives/tcp_parts.h"

#define MAGIC 0x6e77746370303031u /* "nwtcp001" */

/* One of ours speaks at once; a port scanner does not. */
#define STRANGER_NS 500000000

struct nw_tcp_end {
    struct nw_reach_end card;
    int listener;
};

struct hello { /* of who connects; sent back by who accepts */
    uint64_t magic, run;
    uint32_t stream, stream_count;
};

/* --- an end --- */

nw_rc nw_tcp_open(const char *filter, const char *host, struct nw_tcp_end **end_out)
{
    struct nw_tcp_end *end = calloc(1, sizeof *end);
    nw_rc rc;

    if (end == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a TCP port");
    rc = nw_reach_find(filter, &end->card);
    if (rc == NW_OK && end->card.address_count == 0)
        rc = nw_fail(NW_ENODEV, "%s: no interface is up with an address%s%s", host,
                     filter != NULL ? " that NCCL_SOCKET_IFNAME takes: " : "",
                     filter != NULL ? filter : "");
    if (rc == NW_OK) {
        snprintf(end->card.host, sizeof end->card.host, "%.63s", host);
        end->listener = nw_address_listen(&end->card.port);
        if (end->listener < 0)
            rc = nw_fail(NW_EIO, "%s: no TCP port can be listened on: %s", host, strerror(errno));
    }
    if (rc != NW_OK) {
        free(end);
        return rc;
    }
    *end_out = end;
    return NW_OK;
}

const struct nw_reach_end *nw_tcp_card(const struct nw_tcp_end *end)
{
    return &end->card;
}

void nw_tcp_close(struct nw_tcp_end *end)
{
    if (end == NULL)
        return;
    close(end->listener);
    free(end);
}

/* --- which addresses --- */

/* Larger is better: what NCCL takes, then a network of both, then the rate. */
static double fitness(const struct nw_reach_address *a, const struct nw_reach_address *b)
{
    const double rate = a->bits_per_s < b->bits_per_s ? a->bits_per_s : b->bits_per_s;
    const bool same_family = (strchr(a->ip, ':') != NULL) == (strchr(b->ip, ':') != NULL);

    return same_family * 4e15 + (a->chosen && b->chosen) * 2e15 +
           nw_address_share_network(a->ip, a->prefix, b->ip, b->prefix) * 1e15 +
           rate; /* below 1e15 bit/s for some time to come */
}

void nw_tcp_choose(const struct nw_reach_end *from, const struct nw_reach_end *to, int *from_out,
                   int *to_out)
{
    double best = -1;

    *from_out = *to_out = 0;
    for (size_t i = 0; i < from->address_count; i++)
        for (size_t j = 0; j < to->address_count; j++)
            if (fitness(&from->addresses[i], &to->addresses[j]) > best) {
                best = fitness(&from->addresses[i], &to->addresses[j]);
                *from_out = (int)i;
                *to_out = (int)j;
            }
}

/* --- connections --- */

/* All of a small message, one way. 0, or an errno. */
static int pass(int fd, void *data, size_t bytes, bool out, uint64_t deadline_ns)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = out ? send(fd, (char *)data + done, bytes - done, MSG_NOSIGNAL)
                              : recv(fd, (char *)data + done, bytes - done, 0);

        if (n > 0)
            done += (size_t)n;
        else if (n == 0)
            return ECONNRESET;
        else if (errno != EAGAIN && errno != EINTR)
            return errno;
        else if (!nw_tcp_wait(fd, out ? POLLOUT : POLLIN, deadline_ns))
            return ETIMEDOUT;
    }
    return 0;
}

static void make_prompt(int fd)
{
    const int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* The source address too: with several interfaces on one network the kernel would choose. 0, or an
 * errno; *fd_out is open in either case, or -1. */
static int call(const struct nw_reach_address *from, const struct nw_reach_address *to, int port,
                uint64_t deadline_ns, int *fd_out)
{
    struct sockaddr_storage source, target;
    const socklen_t source_size = nw_address_make(from->ip, 0, &source);
    const socklen_t size = nw_address_make(to->ip, port, &target);
    int error = 0;
    socklen_t length = sizeof error;
    const int fd =
        size > 0 ? socket(target.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;

    *fd_out = fd;
    if (fd < 0)
        return size > 0 ? errno : EAFNOSUPPORT;
    if (source_size > 0 && bind(fd, (struct sockaddr *)&source, source_size) != 0)
        return errno;
    if (connect(fd, (struct sockaddr *)&target, size) != 0) {
        if (errno != EINPROGRESS)
            return errno;
        if (!nw_tcp_wait(fd, POLLOUT, deadline_ns))
            return ETIMEDOUT;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
            return errno;
    }
    make_prompt(fd);
    return error;
}

static void close_all(const int *fds, int count)
{
    for (int i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static nw_rc fail(int error, const char *what, const struct nw_tcp_end *end,
                  const struct nw_reach_end *peer, const char *ip, int port)
{
    return nw_fail_lib(error == ETIMEDOUT ? NW_ETIMEOUT : NW_EPEER, "sockets", error,
                       "%s: TCP %s %s (%s port %d): %s", end->card.host, what, peer->host, ip, port,
                       error == ETIMEDOUT ? "no answer in time; look for a firewall or a route"
                                          : strerror(error));
}

static int greet(int fd, const struct nw_tcp_how *how, int stream, uint64_t deadline_ns)
{
    struct hello hello = {MAGIC, how->run, (uint32_t)stream, (uint32_t)how->stream_count}, back;
    int error = pass(fd, &hello, sizeof hello, true, deadline_ns);

    if (error == 0)
        error = pass(fd, &back, sizeof back, false, deadline_ns);
    return error == 0 && memcmp(&hello, &back, sizeof back) != 0 ? EPROTO : error;
}

nw_rc nw_tcp_connect(struct nw_tcp_end *end, const struct nw_reach_end *peer,
                     const struct nw_tcp_how *how, struct nw_tcp_link **link_out)
{
    const uint64_t deadline_ns = nw_now_ns() + (uint64_t)how->connect_ns;
    int fds[NW_TCP_STREAMS_MAX], from, to;

    nw_tcp_choose(&end->card, peer, &from, &to);
    for (int i = 0; i < how->stream_count; i++) {
        int error = call(&end->card.addresses[from], &peer->addresses[to], peer->port, deadline_ns,
                         &fds[i]);

        if (error == 0)
            error = greet(fds[i], how, i, deadline_ns);
        if (error != 0) {
            close_all(fds, i + 1);
            return fail(error, "to", end, peer, peer->addresses[to].ip, peer->port);
        }
    }
    return nw_tcp_link_of(fds, how, peer->host, link_out);
}

/* Takes one of our connections; strangers, and those of a link that was given up, are sent away. */
static int welcome(int listener, const struct nw_tcp_how *how, int *fds, uint64_t deadline_ns)
{
    const uint64_t soon_ns = nw_now_ns() + STRANGER_NS;
    struct hello hello;
    const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0)
        return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? 0 : errno;
    if (pass(fd, &hello, sizeof hello, false, soon_ns < deadline_ns ? soon_ns : deadline_ns) != 0 ||
        hello.magic != MAGIC || hello.run != how->run ||
        hello.stream_count != (uint32_t)how->stream_count || hello.stream >= hello.stream_count ||
        fds[hello.stream] >= 0 || pass(fd, &hello, sizeof hello, true, deadline_ns) != 0) {
        close(fd);
        return 0;
    }
    make_prompt(fd);
    fds[hello.stream] = fd;
    return 0;
}

static int missing(const int *fds, int count)
{
    int none = 0;

    for (int i = 0; i < count; i++)
        none += fds[i] < 0;
    return none;
}

nw_rc nw_tcp_accept(struct nw_tcp_end *end, const struct nw_reach_end *peer,
                    const struct nw_tcp_how *how, struct nw_tcp_link **link_out)
{
    const uint64_t deadline_ns = nw_now_ns() + (uint64_t)how->connect_ns;
    int fds[NW_TCP_STREAMS_MAX], error = 0, from, to;

    for (int i = 0; i < NW_TCP_STREAMS_MAX; i++)
        fds[i] = -1;
    while (error == 0 && missing(fds, how->stream_count) > 0)
        error = nw_tcp_wait(end->listener, POLLIN, deadline_ns)
                    ? welcome(end->listener, how, fds, deadline_ns)
                    : ETIMEDOUT;
    if (error != 0) {
        close_all(fds, how->stream_count);
        nw_tcp_choose(peer, &end->card, &from, &to);
        return fail(error, "from", end, peer, end->card.addresses[to].ip, end->card.port);
    }
    return nw_tcp_link_of(fds, how, peer->host, link_out);
}
