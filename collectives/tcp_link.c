/* The bytes. Stream 0 is moved by the caller's thread, each other one by a thread of its own: one
 * core copies some 3 to 5 GB/s, which is a third of a 100 Gb/s wire. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "collectives/tcp_parts.h"

#define SPIN_NS   200000 /* small messages are waited for awake so long, then asleep */
#define CORES_MAX 8192   /* NR_CPUS of the largest kernels */

struct stream {
    struct nw_tcp_link *link;
    int fd;
    pthread_t thread;
    bool runs;
    sem_t go, done;
    /* of the transfer */
    char *data;
    uint64_t bytes, moved;
    bool out;
    int error; /* errno; 0 */
};

struct nw_tcp_link {
    char peer[64];
    int count;
    double transfer_ns;
    uint64_t deadline_ns; /* of the transfer */
    bool small;
    atomic_bool ends;
    struct stream streams[NW_TCP_STREAMS_MAX];
};

bool nw_tcp_wait(int fd, short events, uint64_t deadline_ns)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};

    for (;;) {
        const uint64_t now = nw_now_ns();
        const uint64_t left_ms = now < deadline_ns ? (deadline_ns - now) / 1000000 + 1 : 0;
        const int n = poll(&poll_fd, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX);

        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

/* More can go. Awake for a while where little goes. */
static bool await(const struct stream *stream, uint64_t began_ns)
{
    if (stream->link->small && nw_now_ns() < began_ns + SPIN_NS) {
        sched_yield();
        return true;
    }
    return nw_tcp_wait(stream->fd, stream->out ? POLLOUT : POLLIN, stream->link->deadline_ns);
}

static void move(struct stream *stream)
{
    const uint64_t began_ns = nw_now_ns();

    stream->error = 0;
    for (stream->moved = 0; stream->moved < stream->bytes;) {
        char *at = stream->data + stream->moved;
        const size_t left = stream->bytes - stream->moved;
        const ssize_t n =
            stream->out ? send(stream->fd, at, left, MSG_NOSIGNAL) : recv(stream->fd, at, left, 0);

        if (n > 0) {
            stream->moved += (uint64_t)n;
            continue;
        }
        if (n == 0)
            stream->error = ECONNRESET;
        else if (errno != EAGAIN && errno != EINTR)
            stream->error = errno;
        else if (!await(stream, began_ns))
            stream->error = ETIMEDOUT;
        if (stream->error != 0)
            return;
    }
}

static void *serve(void *argument)
{
    struct stream *stream = argument;

    for (;;) {
        while (sem_wait(&stream->go) != 0)
            ;
        if (atomic_load(&stream->link->ends))
            return NULL;
        move(stream);
        sem_post(&stream->done);
    }
}

/* mpirun binds a rank to one core, and the threads would share it. The kernel takes out of the set
 * what the cgroup does not allow (sched_setaffinity(2)). Where it refuses, they share. */
static void let_run_anywhere(pthread_t thread)
{
    unsigned char cores[CORES_MAX / 8];

    memset(cores, 0xff, sizeof cores);
    (void)pthread_setaffinity_np(thread, sizeof cores, (const cpu_set_t *)(const void *)cores);
}

/* Signals are the main thread's. */
static int start_thread(struct stream *stream)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&stream->thread, NULL, serve, stream);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    stream->runs = error == 0;
    if (stream->runs)
        let_run_anywhere(stream->thread);
    return error;
}

nw_rc nw_tcp_link_of(const int *fds, const struct nw_tcp_how *how, const char *peer,
                     struct nw_tcp_link **link_out)
{
    struct nw_tcp_link *link = calloc(1, sizeof *link);

    if (link == NULL) {
        for (int i = 0; i < how->stream_count; i++)
            close(fds[i]);
        return nw_fail(NW_ENOMEM, "no memory for %d TCP streams", how->stream_count);
    }
    link->count = how->stream_count;
    link->transfer_ns = how->transfer_ns;
    snprintf(link->peer, sizeof link->peer, "%s", peer);
    for (int i = 0; i < link->count; i++) {
        struct stream *stream = &link->streams[i];

        stream->link = link;
        stream->fd = fds[i];
        sem_init(&stream->go, 0, 0);
        sem_init(&stream->done, 0, 0);
    }
    for (int i = 1; i < link->count; i++) {
        const int error = start_thread(&link->streams[i]);

        if (error != 0) {
            nw_tcp_link_close(link);
            return nw_fail(NW_ELIB, "no thread for TCP stream %d of %d: %s", i + 1,
                           how->stream_count, strerror(error));
        }
    }
    *link_out = link;
    return NW_OK;
}

void nw_tcp_link_close(struct nw_tcp_link *link)
{
    if (link == NULL)
        return;
    atomic_store(&link->ends, true);
    for (int i = 0; i < link->count; i++) {
        struct stream *stream = &link->streams[i];

        if (stream->runs) {
            sem_post(&stream->go);
            pthread_join(stream->thread, NULL);
        }
        close(stream->fd);
        sem_destroy(&stream->go);
        sem_destroy(&stream->done);
    }
    free(link);
}

static nw_rc fail(const struct nw_tcp_link *link, const struct stream *stream, int index)
{
    return nw_fail_lib(stream->error == ETIMEDOUT ? NW_ETIMEOUT : NW_EPEER, "sockets",
                       stream->error, "TCP stream %d of %d %s %s, after %llu of %llu bytes: %s",
                       index + 1, link->count, stream->out ? "to" : "from", link->peer,
                       (unsigned long long)stream->moved, (unsigned long long)stream->bytes,
                       stream->error == ETIMEDOUT ? "nothing went for too long"
                                                  : strerror(stream->error));
}

static nw_rc transfer(struct nw_tcp_link *link, char *data, uint64_t bytes, bool out)
{
    const int count = bytes < NW_TCP_SMALL_BYTES ? 1 : link->count;

    link->small = bytes < NW_TCP_SMALL_BYTES;
    link->deadline_ns = nw_now_ns() + (uint64_t)link->transfer_ns;
    for (int i = count - 1; i >= 0; i--) { /* the caller's own last */
        struct stream *stream = &link->streams[i];
        const uint64_t from = bytes / (uint64_t)count * (uint64_t)i;

        stream->data = data + from;
        stream->bytes = i == count - 1 ? bytes - from : bytes / (uint64_t)count;
        stream->out = out;
        if (i > 0)
            sem_post(&stream->go);
        else
            move(stream);
    }
    for (int i = 1; i < count; i++)
        while (sem_wait(&link->streams[i].done) != 0)
            ;
    for (int i = 0; i < count; i++)
        if (link->streams[i].error != 0)
            return fail(link, &link->streams[i], i);
    return NW_OK;
}

nw_rc nw_tcp_send(struct nw_tcp_link *link, const void *data, uint64_t bytes)
{
    return transfer(link, (char *)data, bytes, true); /* only read */
}

nw_rc nw_tcp_receive(struct nw_tcp_link *link, void *data, uint64_t bytes)
{
    return transfer(link, data, bytes, false);
}
