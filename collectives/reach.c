/* All sockets are non-blocking and belong to one poll(): the listener, the connections that came in
 * and are being told who is here, and the own ones. */
#include "collectives/reach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "collectives/address.h"

/* What comes in at once at most: every host with every address, and strangers. */
#define GUESTS_MAX 1024
/* Own connections at a time: with as many coming in they stay below 1024 descriptors. */
#define CALLS_AT_ONCE 256
#define MAGIC         0x6e77726561636831u /* "nwreach1" */

struct greeting {
    uint64_t magic, run;
    uint64_t host; /* index of whoever accepted */
    unsigned char padding[NW_REACH_PAYLOAD - 24];
};

struct guest { /* a connection that came in */
    int fd;
    size_t sent;
};

struct call { /* an own connection */
    int fd;   /* -1: decided, or not begun */
    uint64_t began_ns;
    size_t received;
    bool connected;
    struct nw_reach_try *result;
    struct greeting greeting;
};

struct nw_reach {
    struct nw_reach_end end;
    int listener;
    struct greeting greeting;
    struct guest guests[GUESTS_MAX];
    size_t guest_count;
    struct call *calls;
    struct nw_reach_try *tries;
    struct nw_reach_end *ends; /* of all hosts */
    size_t call_count, begun;
    size_t waiting; /* undecided */
    struct pollfd *polls;
};

/* ---- listening ---------------------------------------------------------------------------------
 */

nw_rc nw_reach_open(const char *filter, const char *host, struct nw_reach **reach_out)
{
    struct nw_reach *reach = calloc(1, sizeof *reach);
    nw_rc rc;

    if (reach == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the probe between hosts");
    reach->listener = -1;
    rc = nw_reach_find(filter, &reach->end);
    if (rc != NW_OK) {
        free(reach);
        return rc;
    }
    snprintf(reach->end.host, sizeof reach->end.host, "%.63s", host);
    reach->listener = nw_address_listen(&reach->end.port);
    if (reach->listener < 0) {
        rc = nw_fail(NW_EIO, "%s: no TCP port can be listened on: %s", host, strerror(errno));
        free(reach);
        return rc;
    }
    *reach_out = reach;
    return NW_OK;
}

const struct nw_reach_end *nw_reach_end(const struct nw_reach *reach)
{
    return &reach->end;
}

static void welcome(struct nw_reach *reach)
{
    while (reach->guest_count < GUESTS_MAX) {
        const int fd = accept4(reach->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0)
            return;
        reach->guests[reach->guest_count++] = (struct guest){.fd = fd};
    }
}

/* False: done with it, or it is gone. */
static bool serve(struct nw_reach *reach, struct guest *guest)
{
    while (guest->sent < sizeof reach->greeting) {
        const ssize_t n = send(guest->fd, (char *)&reach->greeting + guest->sent,
                               sizeof reach->greeting - guest->sent, MSG_NOSIGNAL);

        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        guest->sent += (size_t)n;
    }
    return false;
}

/* ---- connecting --------------------------------------------------------------------------------
 */

static nw_reach_state state_of(int error)
{
    static const struct {
        int error;
        nw_reach_state state;
    } known[] = {
        {ETIMEDOUT, NW_REACH_TIMEOUT},     {ECONNREFUSED, NW_REACH_REFUSED},
        {EHOSTUNREACH, NW_REACH_NO_ROUTE}, {ENETUNREACH, NW_REACH_NO_ROUTE},
        {EINVAL, NW_REACH_NO_ROUTE}, /* what Linux says of a blackhole route */
        {EACCES, NW_REACH_FORBIDDEN},      {EPERM, NW_REACH_FORBIDDEN},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].error == error)
            return known[i].state;
    return NW_REACH_FAILED;
}

static void decide(struct nw_reach *reach, struct call *call, nw_reach_state state, int error)
{
    call->result->state = state;
    call->result->error = error;
    if (state == NW_REACH_OK)
        call->result->took_ns = (double)(nw_now_ns() - call->began_ns);
    if (call->fd >= 0)
        close(call->fd);
    call->fd = -1;
    reach->waiting--;
}

static void note_source(struct call *call)
{
    struct sockaddr_storage own;
    socklen_t length = sizeof own;

    if (getsockname(call->fd, (struct sockaddr *)&own, &length) != 0)
        return;
    if (own.ss_family == AF_INET)
        inet_ntop(AF_INET, &((struct sockaddr_in *)&own)->sin_addr, call->result->from,
                  sizeof call->result->from);
    else
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&own)->sin6_addr, call->result->from,
                  sizeof call->result->from);
}

static void dial(struct nw_reach *reach, struct call *call)
{
    const struct nw_reach_end *end = &reach->ends[call->result->to];
    struct sockaddr_storage address;
    const socklen_t length =
        nw_address_make(end->addresses[call->result->address].ip, end->port, &address);

    call->began_ns = nw_now_ns();
    call->fd =
        length > 0 ? socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
    if (call->fd < 0) {
        decide(reach, call, NW_REACH_FAILED, length > 0 ? errno : EAFNOSUPPORT);
        return;
    }
    if (connect(call->fd, (struct sockaddr *)&address, length) != 0 && errno != EINPROGRESS) {
        decide(reach, call, state_of(errno), errno);
        return;
    }
    note_source(call); /* bound by now, whether it will be answered or not */
}

/* What was heard so far, when no more will come. */
static void judge_heard(struct nw_reach *reach, struct call *call, int error)
{
    const struct greeting *said = &call->greeting;

    if (call->received < 24)
        decide(reach, call, call->connected ? NW_REACH_SILENT : NW_REACH_TIMEOUT, error);
    else if (said->magic != reach->greeting.magic || said->run != reach->greeting.run ||
             said->host != (uint64_t)call->result->to)
        decide(reach, call, NW_REACH_OTHER_HOST, 0);
    else
        decide(reach, call, call->received == sizeof *said ? NW_REACH_OK : NW_REACH_CUT, error);
}

static void listen_to(struct nw_reach *reach, struct call *call)
{
    while (call->received < sizeof call->greeting) {
        const ssize_t n = recv(call->fd, (char *)&call->greeting + call->received,
                               sizeof call->greeting - call->received, 0);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            judge_heard(reach, call, n < 0 ? errno : 0);
            return;
        }
        call->received += (size_t)n;
    }
    judge_heard(reach, call, 0);
}

static void answer(struct nw_reach *reach, struct call *call, short events)
{
    if (!call->connected) {
        int error = 0;
        socklen_t length = sizeof error;

        if (getsockopt(call->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
            error = errno;
        if (error != 0) {
            decide(reach, call, state_of(error), error);
            return;
        }
        call->connected = (events & POLLOUT) != 0;
    }
    if (call->connected)
        listen_to(reach, call);
}

static size_t count_calls(const struct nw_reach_end *ends, size_t count, size_t self)
{
    size_t calls = 0;

    for (size_t to = 0; to < count; to++)
        if (nw_reach_is_partner(self, to, count) && ends[to].port > 0)
            calls += ends[to].address_count;
    return calls;
}

static void add_calls(struct nw_reach *reach, size_t count, size_t self)
{
    for (size_t to = 0; to < count; to++)
        for (size_t i = 0; i < reach->ends[to].address_count; i++) {
            struct call *call = &reach->calls[reach->call_count];

            if (!nw_reach_is_partner(self, to, count) || reach->ends[to].port <= 0)
                continue;
            call->fd = -1;
            call->result = &reach->tries[reach->call_count++];
            *call->result = (struct nw_reach_try){.to = (int)to, .address = (int)i, .took_ns = NAN};
        }
    reach->waiting = reach->call_count;
}

/* As many as may be under way at a time. */
static void dial_more(struct nw_reach *reach)
{
    while (reach->begun < reach->call_count) {
        const size_t decided = reach->call_count - reach->waiting;

        if (reach->begun - decided >= CALLS_AT_ONCE)
            return;
        dial(reach, &reach->calls[reach->begun++]);
    }
}

nw_rc nw_reach_start(struct nw_reach *reach, const struct nw_reach_end *ends, size_t count,
                     size_t self, uint64_t run)
{
    const size_t calls = count_calls(ends, count, self);

    reach->greeting = (struct greeting){.magic = MAGIC, .run = run, .host = self};
    reach->ends = calloc(count + 1, sizeof *reach->ends);
    reach->calls = calloc(calls + 1, sizeof *reach->calls);
    reach->tries = calloc(calls + 1, sizeof *reach->tries);
    reach->polls = calloc(calls + GUESTS_MAX + 1, sizeof *reach->polls);
    if (reach->ends == NULL || reach->calls == NULL || reach->tries == NULL || reach->polls == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu connections", calls);
    memcpy(reach->ends, ends, count * sizeof *ends);
    add_calls(reach, count, self);
    dial_more(reach);
    return NW_OK;
}

/* ---- waiting -----------------------------------------------------------------------------------
 */

static size_t gather_polls(struct nw_reach *reach)
{
    size_t count = 0;

    reach->polls[count++] = (struct pollfd){
        .fd = reach->guest_count < GUESTS_MAX ? reach->listener : -1, .events = POLLIN};
    for (size_t i = 0; i < reach->guest_count; i++)
        reach->polls[count++] = (struct pollfd){.fd = reach->guests[i].fd, .events = POLLOUT};
    for (size_t i = 0; i < reach->call_count; i++)
        reach->polls[count++] =
            (struct pollfd){.fd = reach->calls[i].fd,
                            .events = reach->calls[i].connected ? POLLIN : POLLIN | POLLOUT};
    return count;
}

static void serve_guests(struct nw_reach *reach, const struct pollfd *polls)
{
    size_t kept = 0;

    for (size_t i = 0; i < reach->guest_count; i++) {
        if (polls[i].revents == 0 || serve(reach, &reach->guests[i]))
            reach->guests[kept++] = reach->guests[i];
        else
            close(reach->guests[i].fd);
    }
    reach->guest_count = kept;
}

/* Twice the limit where the connection stands and only its data is missing: a busy host. */
static void give_up_late(struct nw_reach *reach)
{
    const uint64_t now = nw_now_ns();

    for (size_t i = 0; i < reach->begun; i++) {
        struct call *call = &reach->calls[i];

        if (call->fd >= 0 &&
            (double)(now - call->began_ns) > NW_REACH_LIMIT_NS * (call->connected ? 2 : 1))
            judge_heard(reach, call, ETIMEDOUT);
    }
}

bool nw_reach_step(struct nw_reach *reach, int wait_ms)
{
    size_t count, guests;

    if (reach->polls == NULL) /* not started: whoever comes is served afterwards */
        return false;
    count = gather_polls(reach);
    guests = reach->guest_count;
    if (poll(reach->polls, count, wait_ms) > 0) {
        for (size_t i = 0; i < reach->call_count; i++) {
            const struct pollfd *poll = &reach->polls[1 + guests + i];

            if (reach->calls[i].fd >= 0 && poll->revents != 0)
                answer(reach, &reach->calls[i], poll->revents);
        }
        serve_guests(reach, reach->polls + 1);
        welcome(reach);
    }
    give_up_late(reach);
    dial_more(reach);
    return reach->waiting > 0;
}

const struct nw_reach_try *nw_reach_tries(const struct nw_reach *reach, size_t *count_out)
{
    *count_out = reach->call_count;
    return reach->tries;
}

void nw_reach_close(struct nw_reach *reach)
{
    if (reach == NULL)
        return;
    for (size_t i = 0; i < reach->call_count; i++)
        if (reach->calls[i].fd >= 0)
            close(reach->calls[i].fd);
    for (size_t i = 0; i < reach->guest_count; i++)
        close(reach->guests[i].fd);
    close(reach->listener);
    free(reach->ends);
    free(reach->calls);
    free(reach->tries);
    free(reach->polls);
    free(reach);
}
