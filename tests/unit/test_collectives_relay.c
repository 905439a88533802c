/* The relay between ranks (threads) and their workers (threads at the other end of a socket). */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collectives/relay.h"

#define RANKS 4

struct scene {
    void (*worker)(struct nw_comm *comm, int fd);
    nw_rc expected_rc;
    bool expected_broken;
    int expected_rank;
    const char *expected_text;
    int patience; /* looks before a silent worker is given up; 0: never */
};

struct rank {
    const struct scene *scene;
    int fds[2];
    pthread_t thread;
    int looks, events;
    bool stopped;
};

static void *run_worker(void *argument)
{
    struct rank *rank = argument;
    struct nw_comm *comm;
    char *text;

    if (nw_comm_open_relay(rank->fds[1], &comm, &text) == NW_OK) {
        if (strcmp(text, "the plan") == 0)
            rank->scene->worker(comm, rank->fds[1]);
        nw_comm_close(comm);
        free(text);
    }
    shutdown(rank->fds[1], SHUT_RDWR);
    return NULL;
}

static nw_rc on_event(void *user, unsigned kind, const char *data, size_t bytes)
{
    struct rank *rank = user;

    rank->events += kind == 7 && bytes == 5 && memcmp(data, "event", 5) == 0;
    return rank->events > 2 ? nw_fail(NW_EIO, "the disk is full") : NW_OK;
}

static nw_rc watch(void *user, bool others_ended)
{
    struct rank *rank = user;

    (void)others_ended;
    rank->looks++;
    return rank->scene->patience > 0 && rank->looks > rank->scene->patience
               ? nw_fail(NW_ETIMEOUT, "no answer")
               : NW_OK;
}

static nw_rc lost(void *user)
{
    (void)user;
    return nw_fail(NW_EPEER, "it is gone");
}

static void meeting(void *user)
{
    (void)user;
}

static void stop(void *user)
{
    struct rank *rank = user;

    rank->stopped = true;
    shutdown(rank->fds[0], SHUT_RDWR); /* what a kill does to the socket */
}

static bool is_broken(nw_rc rc)
{
    return rc == NW_ELIB || rc == NW_EPEER || rc == NW_ETIMEOUT;
}

static nw_rc run_rank(struct nw_comm *comm, void *argument)
{
    const struct scene *scene = argument;
    struct rank rank = {.scene = scene};
    const struct nw_relay_client client = {.generation = 1,
                                           .user = &rank,
                                           .on_event = on_event,
                                           .watch = watch,
                                           .lost = lost,
                                           .meeting = meeting,
                                           .stop = stop,
                                           .is_broken = is_broken};
    struct nw_relay_client mine = client;
    struct nw_relay_end end;
    nw_rc rc;

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, rank.fds), 0);
    mine.fd = rank.fds[0];
    cr_assert_eq(pthread_create(&rank.thread, NULL, run_worker, &rank), 0);
    cr_assert_eq(nw_relay_greet(rank.fds[0], comm, "the plan"), NW_OK);
    rc = nw_relay_serve(comm, &mine, &end);
    cr_expect_eq(rc, NW_OK, "%s", nw_last_error()->text);
    if (rc == NW_OK) {
        cr_expect_eq(end.rc, scene->expected_rc, "rank %d: %s", comm->rank, end.text);
        cr_expect_eq(end.broken, scene->expected_broken);
        cr_expect_eq(end.rank, scene->expected_rank, "rank %d has the cause", end.rank);
        cr_expect_str_eq(end.text, scene->expected_text);
        cr_expect_eq(rank.stopped, scene->expected_broken);
    }
    shutdown(rank.fds[0], SHUT_RDWR);
    pthread_join(rank.thread, NULL);
    close(rank.fds[0]);
    close(rank.fds[1]);
    return NW_OK;
}

/* ---- workers ------------------------------------------------------------------------------------
 */

static void exchange_all(struct nw_comm *comm, int fd)
{
    static const size_t sizes[] = {0, 1, 64, 65, 100000};
    nw_rc rc = NW_OK;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t bytes = sizes[i];
        unsigned char *mine = malloc(bytes + 1);
        unsigned char *all = malloc(bytes * (size_t)comm->rank_count + 1);

        memset(mine, comm->rank + 1, bytes);
        if (rc == NW_OK)
            rc = comm->ops->exchange(comm, mine, bytes, all);
        for (size_t at = 0; rc == NW_OK && at < bytes * (size_t)comm->rank_count; at++)
            if (all[at] != at / bytes + 1)
                rc = nw_fail(NW_EWRONG, "exchange of %zu bytes", bytes);
        for (int root = 0; rc == NW_OK && root < comm->rank_count; root++) {
            memset(mine, comm->rank == root ? 40 + root : 0, bytes);
            rc = comm->ops->share(comm, mine, bytes, root);
            for (size_t at = 0; rc == NW_OK && at < bytes; at++)
                if (mine[at] != 40 + root)
                    rc = nw_fail(NW_EWRONG, "share of %zu bytes by %d", bytes, root);
        }
        if (rc == NW_OK)
            rc = comm->ops->barrier(comm);
        free(mine);
        free(all);
    }
    (void)nw_relay_end(fd, rc);
}

/* Two groups at different work, one rank in none, a group of a group. */
static void split_all(struct nw_comm *comm, int fd)
{
    const int colour = comm->rank == 3 ? -1 : comm->rank == 0 ? 5 : 9;
    struct nw_comm *group = NULL, *within = NULL;
    int all[RANKS] = {0}, value = comm->rank;
    nw_rc rc = comm->ops->split(comm, colour, &group);

    if (rc == NW_OK && (group == NULL) != (comm->rank == 3))
        rc = nw_fail(NW_EWRONG, "no group");
    if (rc == NW_OK && colour == 9) {
        if (group->rank_count != 2 || group->rank != comm->rank - 1)
            rc = nw_fail(NW_EWRONG, "a group of %d", group->rank_count);
        for (int i = 0; rc == NW_OK && i < 3; i++)
            rc = group->ops->exchange(group, &value, sizeof value, all);
        if (rc == NW_OK && (all[0] != 1 || all[1] != 2))
            rc = nw_fail(NW_EWRONG, "exchange in a group");
        if (rc == NW_OK)
            rc = group->ops->split(group, group->rank, &within);
        if (rc == NW_OK && within->rank_count != 1)
            rc = nw_fail(NW_EWRONG, "a group within");
        if (rc == NW_OK)
            rc = within->ops->exchange(within, &value, sizeof value, all);
        nw_comm_close(within);
    } else if (rc == NW_OK && group != NULL) {
        rc = group->ops->barrier(group);
    }
    nw_comm_close(group);
    if (rc == NW_OK)
        rc = comm->ops->barrier(comm);
    (void)nw_relay_end(fd, rc);
}

static void end_alike(struct nw_comm *comm, int fd)
{
    (void)comm;
    (void)nw_relay_end(fd, nw_fail(NW_ENODEV, "no GPU here"));
}

static void send_events(struct nw_comm *comm, int fd)
{
    nw_rc rc = nw_relay_event(fd, 7, "event", 5);

    if (rc == NW_OK)
        rc = nw_relay_event(fd, 7, "event", 5);
    if (rc == NW_OK && (nw_relay_event(fd, 7, "event", 5) != NW_EIO ||
                        strcmp(nw_last_error()->text, "the disk is full") != 0))
        rc = nw_fail(NW_EWRONG, "a failed event passes for a good one");
    if (rc == NW_OK)
        rc = comm->ops->barrier(comm);
    (void)nw_relay_end(fd, rc);
}

static void rank_2_dies(struct nw_comm *comm, int fd)
{
    (void)fd;
    if (comm->rank != 2)
        (void)comm->ops->barrier(comm);
}

static void rank_1_fails(struct nw_comm *comm, int fd)
{
    if (comm->rank == 1)
        (void)nw_relay_end(fd, nw_fail(NW_ELIB, "NCCL says no"));
    else if (comm->ops->barrier(comm) != NW_OK)
        (void)nw_relay_end(fd, NW_EPEER);
}

static void all_time_out(struct nw_comm *comm, int fd)
{
    (void)nw_relay_end(fd, nw_fail(NW_ETIMEOUT, "rank %d waited", comm->rank));
}

static void rank_3_is_silent(struct nw_comm *comm, int fd)
{
    char nothing;

    if (comm->rank == 3)
        (void)(read(fd, &nothing, 1) + 1); /* until its end is closed */
    else
        (void)comm->ops->barrier(comm);
}

static void different_things(struct nw_comm *comm, int fd)
{
    int value = 0, all[RANKS];

    (void)fd;
    if (comm->rank == 0)
        (void)comm->ops->barrier(comm);
    else
        (void)comm->ops->exchange(comm, &value, sizeof value, all);
}

static void play(const struct scene *scene)
{
    cr_expect_eq(nw_comm_run_local(RANKS, 2, run_rank, (void *)scene), NW_OK, "%s",
                 nw_last_error()->text);
}

Test(relay, does_for_workers_what_their_ranks_can_do)
{
    static const struct scene scenes[] = {
        {exchange_all, NW_OK, false, 0, "", 0},
        {split_all, NW_OK, false, 0, "", 0},
        {end_alike, NW_ENODEV, false, 0, "no GPU here", 0},
        {send_events, NW_OK, false, 0, "", 0},
    };

    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        play(&scenes[i]);
}

Test(relay, names_the_worker_that_is_lost)
{
    static const struct scene scenes[] = {
        {rank_2_dies, NW_EPEER, true, 2, "it is gone", 0},
        {rank_1_fails, NW_ELIB, true, 1, "NCCL says no", 0},
        {all_time_out, NW_ETIMEOUT, true, 0, "rank 0 waited (the same on 4 of 4 ranks)", 0},
        {rank_3_is_silent, NW_ETIMEOUT, true, 3, "no answer", 2},
        {different_things, NW_EPEER, true, 0,
         "the ranks' workers wait for each other: they do not do the same things (the same on 4 of "
         "4 ranks)",
         0},
    };

    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        play(&scenes[i]);
}
