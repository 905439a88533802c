/* TCP links between two threads of this process: data, deadlines, a peer that goes, strangers. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collectives/tcp.h"

#define BYTES 1000003u /* a prime: parts of no equal size */

struct side {
    struct nw_tcp_end *end;
    struct nw_reach_end peer;
    struct nw_tcp_how how;
    bool connects;
    struct nw_tcp_link *link;
    nw_rc rc;
    char text[1024];
};

static void *open_link(void *argument)
{
    struct side *side = argument;

    side->rc = (side->connects ? nw_tcp_connect : nw_tcp_accept)(side->end, &side->peer, &side->how,
                                                                 &side->link);
    if (side->rc != NW_OK)
        snprintf(side->text, sizeof side->text, "%s", nw_last_error()->text);
    return NULL;
}

/* Two ends of this machine, over its own address. */
static void open_sides(struct side sides[2], int streams)
{
    for (int i = 0; i < 2; i++) {
        const nw_rc rc = nw_tcp_open(NULL, i == 0 ? "left" : "right", &sides[i].end);

        if (rc == NW_ENODEV)
            cr_skip_test("no interface is up here: %s", nw_last_error()->text);
        cr_assert_eq(rc, NW_OK, "%s", nw_last_error()->text);
        sides[i].how = (struct nw_tcp_how){
            .stream_count = streams, .run = 7, .connect_ns = 5e9, .transfer_ns = 5e9};
        sides[i].connects = i == 0;
    }
    sides[0].peer = *nw_tcp_card(sides[1].end);
    sides[1].peer = *nw_tcp_card(sides[0].end);
}

static void connect_sides(struct side sides[2])
{
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, open_link, &sides[1]), 0);
    open_link(&sides[0]);
    pthread_join(thread, NULL);
}

static void close_sides(struct side sides[2])
{
    for (int i = 0; i < 2; i++) {
        nw_tcp_link_close(sides[i].link);
        nw_tcp_close(sides[i].end);
    }
}

struct transfer {
    struct nw_tcp_link *link;
    unsigned char *data;
    uint64_t bytes;
    nw_rc rc;
};

static void *receive(void *argument)
{
    struct transfer *transfer = argument;

    transfer->rc = nw_tcp_receive(transfer->link, transfer->data, transfer->bytes);
    return NULL;
}

Test(collectives_tcp, what_is_sent_arrives_over_any_number_of_streams)
{
    static const int streams[] = {1, 2, 7, NW_TCP_STREAMS_MAX};
    static const uint64_t sizes[] = {1, 8, 65535, 65536, BYTES};
    static unsigned char out[BYTES], in[BYTES];

    for (size_t i = 0; i < BYTES; i++)
        out[i] = (unsigned char)(i * 31 + i / 256);
    for (size_t s = 0; s < sizeof streams / sizeof *streams; s++) {
        struct side sides[2] = {0};

        open_sides(sides, streams[s]);
        connect_sides(sides);
        cr_assert(sides[0].rc == NW_OK && sides[1].rc == NW_OK, "%s %s", sides[0].text,
                  sides[1].text);
        for (size_t k = 0; k < 2 * sizeof sizes / sizeof *sizes; k++) {
            const uint64_t bytes = sizes[k / 2];
            struct transfer transfer = {sides[k % 2].link, in, bytes, NW_ELIB};
            pthread_t thread;

            memset(in, 0, sizeof in);
            cr_assert_eq(pthread_create(&thread, NULL, receive, &transfer), 0);
            cr_expect_eq(nw_tcp_send(sides[1 - k % 2].link, out, bytes), NW_OK);
            pthread_join(thread, NULL);
            cr_expect_eq(transfer.rc, NW_OK);
            cr_expect(memcmp(in, out, bytes) == 0, "%d streams, %llu bytes", streams[s],
                      (unsigned long long)bytes);
            cr_expect(bytes == BYTES || in[bytes] == 0, "more than %llu bytes",
                      (unsigned long long)bytes);
        }
        close_sides(sides);
    }
}

Test(collectives_tcp, a_silent_peer_is_given_up_at_the_deadline_and_one_that_goes_at_once)
{
    struct side sides[2] = {0};
    static unsigned char data[BYTES];
    uint64_t began;

    open_sides(sides, 3);
    sides[0].how.transfer_ns = 3e8;
    connect_sides(sides);
    cr_assert(sides[0].rc == NW_OK && sides[1].rc == NW_OK);
    began = nw_now_ns();
    cr_expect_eq(nw_tcp_receive(sides[0].link, data, BYTES), NW_ETIMEOUT);
    cr_expect_geq(nw_now_ns() - began, 300000000u);
    cr_expect_not_null(strstr(nw_last_error()->text, "stream 1 of 3 from right, after 0 of"), "%s",
                       nw_last_error()->text);
    nw_tcp_link_close(sides[1].link);
    sides[1].link = NULL;
    cr_expect_eq(nw_tcp_receive(sides[0].link, data, BYTES), NW_EPEER);
    close_sides(sides);
}

Test(collectives_tcp, connecting_fails_in_time_with_the_address_in_words)
{
    struct side sides[2] = {0};

    /* nobody accepts */
    open_sides(sides, 1);
    sides[1].how.connect_ns = sides[0].how.connect_ns = 2e8;
    open_link(&sides[0]);
    cr_expect_eq(sides[0].rc, NW_ETIMEOUT);
    cr_expect_not_null(strstr(sides[0].text, "left: TCP to right ("), "%s", sides[0].text);
    /* what waits in the queue is of a link that was given up: another run's number */
    sides[1].how.run = 8;
    open_link(&sides[1]);
    cr_expect_eq(sides[1].rc, NW_ETIMEOUT);
    cr_expect_not_null(strstr(sides[1].text, "right: TCP from left ("), "%s", sides[1].text);
    /* nobody listens */
    sides[0].how.connect_ns = 5e9;
    nw_tcp_close(sides[1].end);
    sides[1].end = NULL;
    open_link(&sides[0]);
    cr_expect_eq(sides[0].rc, NW_EPEER);
    cr_expect_not_null(strstr(sides[0].text, "refused"), "%s", sides[0].text);
    close_sides(sides);
}

Test(collectives_tcp, takes_the_network_of_both_then_the_faster_address)
{
    static const struct {
        struct nw_reach_address from[2], to[2];
        int from_index, to_index;
    } rows[] = {
        {{{.ip = "10.0.0.1", .prefix = 24, .chosen = true, .bits_per_s = 1e9},
          {.ip = "10.1.0.1", .prefix = 24, .chosen = true, .bits_per_s = 1e11}},
         {{.ip = "10.1.0.2", .prefix = 24, .chosen = true, .bits_per_s = 1e11},
          {.ip = "10.0.0.2", .prefix = 24, .chosen = true, .bits_per_s = 1e9}},
         1,
         0},
        {{{.ip = "10.0.0.1", .prefix = 24, .chosen = true},
          {.ip = "172.16.0.1", .prefix = 31, .chosen = true, .bits_per_s = 1e11}},
         {{.ip = "172.16.0.2", .prefix = 31, .chosen = true, .bits_per_s = 1e11},
          {.ip = "10.0.0.2", .prefix = 24, .chosen = true}},
         0,
         1},
        {{{.ip = "fd00::1", .prefix = 64, .chosen = true}, {.ip = "10.0.0.1", .prefix = 24}},
         {{.ip = "10.0.9.2", .prefix = 24, .chosen = true}, {.ip = "10.0.9.3", .prefix = 24}},
         1,
         0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_reach_end from = {.address_count = 2}, to = {.address_count = 2};
        int a, b;

        memcpy(from.addresses, rows[i].from, sizeof rows[i].from);
        memcpy(to.addresses, rows[i].to, sizeof rows[i].to);
        nw_tcp_choose(&from, &to, &a, &b);
        cr_expect(a == rows[i].from_index && b == rows[i].to_index, "row %zu: %d and %d", i, a, b);
    }
}

/* Threads of this process that may use as many cores; the test's runner has some, too. */
static int threads_with_cores(int count)
{
    DIR *tasks = opendir("/proc/self/task");
    int threads = 0;

    cr_assert_not_null(tasks);
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        const pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        cpu_set_t cores;

        threads += thread > 0 && sched_getaffinity(thread, sizeof cores, &cores) == 0 &&
                   CPU_COUNT(&cores) >= count;
    }
    closedir(tasks);
    return threads;
}

Test(collectives_tcp, streams_of_a_rank_bound_to_one_core_run_on_others_too)
{
    struct side sides[2] = {0};
    cpu_set_t all, one;
    int core = 0, before;

    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2)
        cr_skip_test("one core alone");
    while (!CPU_ISSET(core, &all))
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    open_sides(sides, 2);
    before = threads_with_cores(CPU_COUNT(&all));
    connect_sides(sides);
    cr_assert(sides[0].rc == NW_OK && sides[1].rc == NW_OK);
    cr_expect_eq(threads_with_cores(CPU_COUNT(&all)), before + 2); /* one of each side */
    close_sides(sides);
}
