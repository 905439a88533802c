#include "cli/lifeline.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "collectives/address.h"

/* A host that does not answer is lost after IDLE + PROBES * INTERVAL seconds; one that is only busy
 * answers, since its kernel does. */
enum { IDLE_S = 2, INTERVAL_S = 2, PROBES = 4 };
#define CALL_NS 1500000000ull /* for an address to answer */

enum kind { HELLO = 1, DIED, LOST, BYE };

struct message { /* the same size for all: the stream needs no lengths */
    uint32_t kind;
    int32_t rank;
    unsigned char token[16];
    char host[64];
    char text[116];
};

struct peer { /* of rank 0's parent: another rank's */
    int fd;   /* -1: ended */
    int rank; /* -1: has not said */
    char host[64];
    bool lost, silent, left; /* left: in order */
    size_t got;              /* bytes of `message` */
    struct message message;
};

struct nw_cli_lifeline {
    struct nw_lifeline *shared;
    int listener; /* rank 0's; -1 */
    struct peer *peers;
    int peer_count, peer_capacity;
    struct peer first; /* of another: rank 0's parent */
    int address;       /* that is called now */
    uint64_t called_ns;
    bool calling, connected, gone;
};

nw_rc nw_cli_lifeline_open(struct nw_lifeline *shared, struct nw_cli_lifeline **line_out)
{
    struct nw_cli_lifeline *line = calloc(1, sizeof *line);

    if (line == NULL)
        return nw_fail(NW_ENOMEM, "no memory to watch other ranks");
    line->shared = shared;
    line->listener = line->first.fd = -1;
    *line_out = line;
    return NW_OK;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- messages ----------------------------------------------------------------------------------
 */

static void watch_peer(int fd)
{
    const int on = 1, idle = IDLE_S, interval = INTERVAL_S, probes = PROBES;
    const unsigned patience_ms = 1000 * (IDLE_S + PROBES * INTERVAL_S);

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof patience_ms);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* So few and short that they fit into any buffer of a socket. */
static bool send_message(int fd, enum kind kind, int rank, const unsigned char *token,
                         const char *text)
{
    struct message message = {.kind = kind, .rank = rank};

    if (fd < 0)
        return false;
    memcpy(message.token, token, sizeof message.token);
    gethostname(message.host, sizeof message.host - 1);
    snprintf(message.text, sizeof message.text, "%s", text);
    return send(fd, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           (ssize_t)sizeof message;
}

/* 1: a message is complete; 0: not yet; -1: the connection has ended. */
static int take_message(struct peer *peer)
{
    while (peer->fd >= 0) {
        const ssize_t count = recv(peer->fd, (char *)&peer->message + peer->got,
                                   sizeof peer->message - peer->got, MSG_DONTWAIT);

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (count <= 0)
            return -1;
        peer->got += (size_t)count;
        if (peer->got < sizeof peer->message)
            continue;
        peer->got = 0;
        peer->message.host[sizeof peer->message.host - 1] = '\0';
        peer->message.text[sizeof peer->message.text - 1] = '\0';
        return 1;
    }
    return -1;
}

static void note_loss(struct nw_lifeline *shared, int rank, const char *text)
{
    const uint32_t count = atomic_load(&shared->lost_count);

    if (count == NW_LIFELINE_LOST_MAX)
        return;
    shared->lost[count].rank = rank;
    snprintf(shared->lost[count].text, sizeof shared->lost[count].text, "%s", text);
    atomic_store(&shared->lost_count, count + 1);
}

/* ---- rank 0's parent ---------------------------------------------------------------------------
 */

static void list_addresses(struct nw_lifeline_call *call)
{
    struct ifaddrs *all;

    if (getifaddrs(&all) != 0)
        return;
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
        const int family = at->ifa_addr != NULL ? at->ifa_addr->sa_family : AF_UNSPEC;
        const socklen_t length =
            family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        char *text = call->addresses[call->address_count];

        if ((family != AF_INET && family != AF_INET6) || (at->ifa_flags & IFF_UP) == 0 ||
            (at->ifa_flags & IFF_LOOPBACK) != 0 || call->address_count == NW_LIFELINE_ADDRESSES ||
            getnameinfo(at->ifa_addr, length, text, sizeof call->addresses[0], NULL, 0,
                        NI_NUMERICHOST) != 0 ||
            strchr(text, '%') != NULL) /* of one link only */
            continue;
        call->address_count++;
    }
    freeifaddrs(all);
}

/* One descriptor a rank: as many as the system gives. */
static void raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void begin_listening(struct nw_cli_lifeline *line)
{
    struct nw_lifeline *shared = line->shared;
    struct nw_lifeline_call *call = &shared->call;
    int port = 0;

    raise_limit();
    line->listener = nw_address_listen(&port);
    if (line->listener >= 0 &&
        getrandom(call->token, sizeof call->token, 0) != (ssize_t)sizeof call->token)
        close_fd(&line->listener);
    if (line->listener < 0) {
        atomic_store(&shared->state, NW_LIFELINE_FAILED);
        return;
    }
    call->port = port;
    call->address_count = 0;
    list_addresses(call);
    atomic_store(&shared->state, call->address_count > 0 ? NW_LIFELINE_THERE : NW_LIFELINE_FAILED);
}

static void accept_all(struct nw_cli_lifeline *line)
{
    int fd;

    while ((fd = accept4(line->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (line->peer_count == line->peer_capacity) {
            const int capacity = 2 * line->peer_capacity + 64;
            struct peer *peers = realloc(line->peers, (size_t)capacity * sizeof *peers);

            if (peers == NULL) {
                close(fd);
                return;
            }
            line->peers = peers;
            line->peer_capacity = capacity;
        }
        watch_peer(fd);
        line->peers[line->peer_count++] = (struct peer){.fd = fd, .rank = -1};
    }
}

static void lose(struct nw_cli_lifeline *line, struct peer *peer, const char *text)
{
    const struct nw_lifeline *shared = line->shared;

    if (peer->lost || peer->left || peer->rank < 0)
        return;
    peer->lost = true;
    note_loss(line->shared, peer->rank, text);
    for (int i = 0; i < line->peer_count; i++)
        if (line->peers[i].rank >= 0)
            (void)send_message(line->peers[i].fd, LOST, peer->rank, shared->call.token, text);
}

static void hear(struct nw_cli_lifeline *line, struct peer *peer)
{
    const struct nw_lifeline *shared = line->shared;
    const struct message *message = &peer->message;

    if (memcmp(message->token, shared->call.token, sizeof message->token) != 0) {
        close_fd(&peer->fd); /* somebody else */
    } else if (message->kind == HELLO && peer->rank < 0) {
        peer->rank = message->rank;
        snprintf(peer->host, sizeof peer->host, "%s", message->host);
        (void)send_message(peer->fd, HELLO, 0, shared->call.token, "");
    } else if (message->kind == DIED) {
        lose(line, peer, message->text);
    } else if (message->kind == BYE) {
        peer->left = true;
        close_fd(&peer->fd);
    }
}

static void serve(struct nw_cli_lifeline *line)
{
    accept_all(line);
    for (int i = 0; i < line->peer_count; i++) {
        int taken = 0;

        while (line->peers[i].fd >= 0 && (taken = take_message(&line->peers[i])) > 0)
            hear(line, &line->peers[i]);
        if (line->peers[i].fd >= 0 && taken < 0) {
            close_fd(&line->peers[i].fd);
            line->peers[i].silent = !line->peers[i].lost && !line->peers[i].left;
            lose(line, &line->peers[i], "its host does not answer any more");
        }
    }
}

/* ---- the others --------------------------------------------------------------------------------
 */

static void call_next(struct nw_cli_lifeline *line)
{
    struct nw_lifeline *shared = line->shared;
    struct sockaddr_storage address;
    socklen_t length;

    close_fd(&line->first.fd);
    if (line->address >= shared->call.address_count) {
        line->calling = false;
        atomic_store(&shared->state, NW_LIFELINE_FAILED);
        return;
    }
    length = nw_address_make(shared->call.addresses[line->address++], shared->call.port, &address);
    line->called_ns = nw_now_ns();
    if (length == 0)
        return;
    line->first.fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (line->first.fd >= 0 &&
        connect(line->first.fd, (const struct sockaddr *)&address, length) != 0 &&
        errno != EINPROGRESS)
        close_fd(&line->first.fd);
}

/* The call is up when rank 0's parent has said so: another service may listen there. */
static void go_on_calling(struct nw_cli_lifeline *line)
{
    struct nw_lifeline *shared = line->shared;

    if (!line->connected &&
        send_message(line->first.fd, HELLO, shared->rank, shared->call.token, "")) {
        line->connected = true;
        watch_peer(line->first.fd);
    }
    if (line->connected && take_message(&line->first) > 0 && line->first.message.kind == HELLO &&
        memcmp(line->first.message.token, shared->call.token, sizeof shared->call.token) == 0) {
        line->calling = false;
        atomic_store(&shared->state, NW_LIFELINE_THERE);
    } else if (line->first.fd < 0 || nw_now_ns() - line->called_ns > CALL_NS) {
        line->connected = false;
        call_next(line);
    }
}

static void listen_to_first(struct nw_cli_lifeline *line)
{
    int taken;

    while ((taken = take_message(&line->first)) > 0)
        if (line->first.message.kind == LOST)
            note_loss(line->shared, line->first.message.rank, line->first.message.text);
    if (taken >= 0)
        return;
    close_fd(&line->first.fd);
    line->gone = true;
    if (atomic_load(&line->shared->guarded) != 0)
        note_loss(line->shared, 0, "rank 0 has ended, or its host does not answer any more");
}

/* ---- both --------------------------------------------------------------------------------------
 */

void nw_cli_lifeline_turn(struct nw_cli_lifeline *line)
{
    struct nw_lifeline *shared = line->shared;

    if (shared->rank == 0 && line->listener < 0 &&
        atomic_load(&shared->state) == NW_LIFELINE_WANTED)
        begin_listening(line);
    else if (shared->rank != 0 && !line->calling && line->first.fd < 0 && !line->gone &&
             atomic_load(&shared->state) == NW_LIFELINE_WANTED) {
        line->calling = true;
        call_next(line);
    }
    if (line->listener >= 0)
        serve(line);
    else if (line->calling)
        go_on_calling(line);
    else if (line->first.fd >= 0)
        listen_to_first(line);
}

bool nw_cli_lifeline_is_busy(const struct nw_cli_lifeline *line)
{
    if (line->calling)
        return true;
    for (int i = 0; i < line->peer_count; i++)
        if (line->peers[i].fd >= 0 && line->peers[i].rank < 0)
            return true;
    return line->listener >= 0 && atomic_load(&line->shared->guarded) == 0;
}

bool nw_cli_lifeline_holds(const struct nw_cli_lifeline *line)
{
    return line->first.fd >= 0 && !line->calling && !line->gone;
}

bool nw_cli_lifeline_died(struct nw_cli_lifeline *line, const char *text)
{
    const struct nw_lifeline *shared = line->shared;

    return nw_cli_lifeline_holds(line) && atomic_load(&shared->guarded) != 0 &&
           send_message(line->first.fd, DIED, shared->rank, shared->call.token, text);
}

bool nw_cli_lifeline_has_silent(const struct nw_cli_lifeline *line)
{
    for (int i = 0; i < line->peer_count; i++)
        if (line->peers[i].silent && line->peers[i].rank >= 0)
            return true;
    return false;
}

void nw_cli_lifeline_close(struct nw_cli_lifeline *line)
{
    if (line == NULL)
        return;
    if (nw_cli_lifeline_holds(line))
        (void)send_message(line->first.fd, BYE, line->shared->rank, line->shared->call.token, "");
    close_fd(&line->first.fd);
    close_fd(&line->listener);
    for (int i = 0; i < line->peer_count; i++)
        close_fd(&line->peers[i].fd);
    free(line->peers);
    free(line);
}

bool nw_cli_lifeline_host_of(const struct nw_cli_lifeline *line, int rank, char name[64])
{
    for (int i = 0; i < line->peer_count; i++)
        if (line->peers[i].rank == rank) {
            memcpy(name, line->peers[i].host, sizeof line->peers[i].host);
            return true;
        }
    return false;
}

static void add_host(struct nw_cli_lifeline_host *hosts, int *count, int most, const char *name,
                     bool lost)
{
    int at = 0;

    while (at < *count && strcmp(hosts[at].name, name) != 0)
        at++;
    if (at == *count && *count < most) {
        hosts[at] = (struct nw_cli_lifeline_host){.rank_count = 0};
        snprintf(hosts[(*count)++].name, sizeof hosts[0].name, "%s", name);
    }
    if (at == *count)
        return;
    hosts[at].rank_count++;
    hosts[at].lost |= lost;
}

static int compare_peers(const void *a, const void *b)
{
    const struct peer *x = a, *y = b;

    return (x->rank > y->rank) - (x->rank < y->rank);
}

int nw_cli_lifeline_hosts(const struct nw_cli_lifeline *line, struct nw_cli_lifeline_host *hosts,
                          int most)
{
    char mine[64] = "";
    int count = 0;

    gethostname(mine, sizeof mine - 1);
    add_host(hosts, &count, most, mine, false);
    if (line->peer_count > 0)
        qsort(line->peers, (size_t)line->peer_count, sizeof *line->peers, compare_peers);
    for (int i = 0; i < line->peer_count; i++)
        if (line->peers[i].rank >= 0)
            add_host(hosts, &count, most, line->peers[i].host, line->peers[i].lost);
    return count;
}
