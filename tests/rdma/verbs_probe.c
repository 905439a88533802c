/* verbs_probe [options] [PEER]: collectives/verbs.h between two processes, which meet over TCP: the
 * one without PEER listens. One line of key=value for each result; data are compared. Options named
 * as perftest's where it has them.
 *
 *   -d DEVICE -i PORT -x GID -m MTU -q QPS -t DEPTH -I INLINE -u ACK_TIMEOUT -r RETRIES -T CLASS
 *   -o write|read|send   -s BYTES -n COUNT   -b (both ways)   -L (latency)   -e (events)
 *   -y (do not give the CPU away)   -D SECONDS (without completion)   -p TCP_PORT   -M BUFFER_BYTES
 *   -R (connect by rdma_cm)   -k TIMES (the run is repeated)   -l (list the ports and end)   -c (a
 * card with itself)
 *
 * Exit status: 0; 1 failed or wrong data, with one sentence; 2 usage; 77 no RDMA here. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/stats.h"
#include "base/units.h"
#include "collectives/comm.h"
#include "collectives/verbs.h"

struct options {
    const char *device, *peer, *tcp_port;
    int number, repeats;
    bool list, loop, both;
    uint64_t buffer_bytes;
    struct nw_verbs_wish wish;
    struct nw_verbs_run run;
};

/* --- the other process --- */

static int wire_open(const char *peer, const char *port)
{
    struct addrinfo hints = {.ai_family = AF_INET,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = peer == NULL ? AI_PASSIVE : 0},
                    *found;
    const struct timeval limit = {.tv_sec = 60};
    int wire = -1, one = 1;

    if (getaddrinfo(peer, port, &hints, &found) != 0)
        return -1;
    for (int i = 0; i < 300 && wire < 0; i++) {
        int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void)setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (peer == NULL && bind(s, found->ai_addr, found->ai_addrlen) == 0 && listen(s, 1) == 0) {
            struct pollfd ready = {.fd = s, .events = POLLIN};

            wire = poll(&ready, 1, 60000) == 1 ? accept(s, NULL, NULL) : -1;
            (void)close(s);
            break;
        }
        if (peer != NULL && connect(s, found->ai_addr, found->ai_addrlen) == 0) {
            wire = s;
            break;
        }
        (void)close(s);
        usleep(100000);
    }
    freeaddrinfo(found);
    if (wire >= 0)
        (void)setsockopt(wire, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return wire;
}

static nw_rc wire_swap(int wire, const void *mine, void *theirs, size_t bytes)
{
    if (send(wire, mine, bytes, MSG_NOSIGNAL) != (ssize_t)bytes ||
        recv(wire, theirs, bytes, MSG_WAITALL) != (ssize_t)bytes)
        return nw_fail(NW_EPEER, "the other process has gone (%s)", strerror(errno));
    return NW_OK;
}

/* Both go on, or both end. */
static nw_rc agree(int wire, nw_rc rc)
{
    const struct nw_err error = *nw_last_error();
    int mine = (int)rc, theirs = 0;
    const nw_rc swapped = wire_swap(wire, &mine, &theirs, sizeof mine);

    if (rc != NW_OK)
        return nw_fail_at(rc, error.lib, error.lib_code, error.where, "%s", error.text);
    NW_TRY(swapped);
    return theirs == NW_OK ? NW_OK : nw_fail(NW_EPEER, "the other side has failed");
}

/* --- data --- */

static uint8_t pattern(uint64_t i, uint64_t round)
{
    return (uint8_t)((i * 0x9e3779b97f4a7c15u >> 56) ^ (round * 31 + 7));
}

static uint64_t used_bytes(const struct nw_verbs_run *run, uint64_t slot)
{
    const uint64_t slots = nw_verbs_slots(run);

    return slot < (run->count < slots ? run->count : slots) ? run->bytes : 0;
}

static void fill(uint8_t *buffer, const struct nw_verbs_run *run, uint64_t round)
{
    memset(buffer + run->take_at, 0, run->span_bytes);
    for (uint64_t i = 0; i < run->span_bytes; i++)
        buffer[run->give_at + i] = pattern(i, round);
}

static uint64_t count_wrong(const uint8_t *buffer, const struct nw_verbs_run *run, uint64_t round)
{
    const uint64_t stride = nw_verbs_stride(run->bytes);
    uint64_t wrong = 0;

    for (uint64_t slot = 0; slot < nw_verbs_slots(run); slot++)
        for (uint64_t i = 0; i < used_bytes(run, slot); i++)
            wrong += buffer[run->take_at + slot * stride + i] != pattern(slot * stride + i, round);
    return wrong;
}

/* --- what is printed --- */

static void print_port(const struct nw_verbs_port *port)
{
    char address[NW_VERBS_GID_TEXT];

    printf("port %s/%d state=%s link=%s gbit=%.1f mtu=%u max_mtu=%u numa=%d pci=%s interface=%s "
           "software=%d depth=%d%s%s\n",
           port->device, port->number, port->state, port->link_layer, port->bits_per_s / 1e9,
           port->mtu_bytes, port->max_mtu_bytes, port->numa, port->pci, port->interface,
           port->software, port->max_qp_depth, port->closed[0] != '\0' ? " closed: " : "",
           port->closed);
    for (size_t i = 0; i < port->gid_count; i++)
        printf("  gid %d %s (%s)\n", port->gids[i].index,
               nw_verbs_gid_text(&port->gids[i], address),
               nw_verbs_gid_kind_text(port->gids[i].kind));
}

static void print_result(const struct options *options, const struct nw_verbs_link *link,
                         const struct nw_verbs_result *result, uint64_t wrong)
{
    const struct nw_verbs_run *run = &options->run;

    printf("result op=%s bytes=%llu count=%llu qps=%d depth=%d mtu=%u inline=%u",
           nw_verbs_op_name(run->op), (unsigned long long)run->bytes,
           (unsigned long long)run->count, link->qps, link->depth, link->mtu_bytes,
           link->inline_bytes);
    if (!run->ping)
        printf(" MB_per_s=%.3f MiB_per_s=%.3f messages_per_s=%.1f", result->bytes_per_s / 1e6,
               result->bytes_per_s / 1048576, result->messages_per_s);
    else if (run->samples_ns != NULL) {
        struct nw_stats stats;

        if (nw_stats_of(run->samples_ns, run->count, &stats) == NW_OK)
            printf(" median_us=%.3f min_us=%.3f p99_us=%.3f mean_us=%.3f", stats.median / 1e3,
                   stats.min / 1e3, stats.p99 / 1e3, result->ns / 1e3 / 2 / (double)run->count);
    }
    printf(" wrong=%llu here=\"%s\" there=\"%s\"\n", (unsigned long long)wrong, link->here,
           link->there);
    (void)fflush(stdout);
}

/* --- two processes --- */

static nw_rc one_run(int wire, struct nw_verbs_end *end, const struct options *options,
                     uint8_t *buffer, uint64_t round)
{
    const struct nw_verbs_run *run = &options->run;
    struct nw_verbs_result result;
    uint64_t wrong = 0;
    nw_rc rc;

    fill(buffer, run, round);
    NW_TRY(agree(wire, nw_verbs_prepare(end, run)));
    rc = nw_verbs_run(end, run, &result);
    NW_TRY(agree(wire, rc));
    if (!run->ping && (run->roles & NW_VERBS_TAKES) != 0)
        wrong = count_wrong(buffer, run, round);
    if (wrong > 0 || result.messages > 0)
        print_result(options, nw_verbs_end_link(end), &result, wrong);
    return agree(wire, wrong == 0
                           ? NW_OK
                           : nw_fail(NW_EWRONG, "%llu bytes are wrong", (unsigned long long)wrong));
}

static nw_rc two_processes(const struct nw_verbs *verbs, const struct nw_verbs_port *port,
                           const struct options *options, uint8_t *buffer)
{
    const int wire = wire_open(options->peer, options->tcp_port);
    uint8_t mine[NW_VERBS_CARD_BYTES], theirs[NW_VERBS_CARD_BYTES];
    struct nw_verbs_end *end = NULL;
    nw_rc rc;

    if (wire < 0)
        return nw_fail(NW_EPEER, "the other process cannot be reached: %s", strerror(errno));
    rc = agree(wire, nw_verbs_end_open(verbs, port, &options->wish, buffer, options->buffer_bytes,
                                       NULL, &end));
    if (rc == NW_OK) {
        nw_verbs_end_card(end, mine);
        rc = wire_swap(wire, mine, theirs, sizeof mine);
    }
    if (rc == NW_OK)
        rc = agree(wire, nw_verbs_connect(end, theirs));
    for (int i = 0; i < options->repeats && rc == NW_OK; i++)
        rc = one_run(wire, end, options, buffer, (uint64_t)i);
    nw_verbs_end_close(end);
    (void)close(wire);
    return rc;
}

/* --- a card with itself --- */

static nw_rc run_loop(struct nw_verbs_end *const ends[2], const struct options *options,
                      uint8_t *const buffers[2])
{
    struct nw_verbs_run runs[2] = {options->run, options->run};
    struct nw_verbs_result results[2];

    runs[0].roles = NW_VERBS_GIVES;
    runs[1].roles = NW_VERBS_TAKES;
    for (int i = 0; i < options->repeats; i++) {
        uint64_t wrong = 0;

        fill(buffers[0], &runs[0], (uint64_t)i);
        fill(buffers[1], &runs[1], ~(uint64_t)i);
        NW_TRY(nw_verbs_prepare(ends[0], &runs[0]));
        NW_TRY(nw_verbs_prepare(ends[1], &runs[1]));
        NW_TRY(nw_verbs_run_all(ends, runs, 2, results));
        if (!options->run.ping)
            wrong = count_wrong(buffers[1], &runs[1], (uint64_t)i);
        print_result(options, nw_verbs_end_link(ends[0]), &results[runs[0].op == NW_VERBS_READ],
                     wrong);
        if (wrong > 0)
            return nw_fail(NW_EWRONG, "%llu bytes are wrong", (unsigned long long)wrong);
    }
    return NW_OK;
}

static nw_rc loop(const struct nw_verbs *verbs, const struct nw_verbs_port *port,
                  const struct options *options, uint8_t *buffer)
{
    uint8_t *const buffers[2] = {buffer, buffer + options->buffer_bytes};
    uint8_t cards[2][NW_VERBS_CARD_BYTES];
    struct nw_verbs_end *ends[2] = {NULL, NULL};
    nw_rc rc = NW_OK;

    for (int i = 0; i < 2 && rc == NW_OK; i++)
        rc = nw_verbs_end_open(verbs, port, &options->wish, buffers[i], options->buffer_bytes, NULL,
                               &ends[i]);
    for (int i = 0; i < 2 && rc == NW_OK; i++)
        nw_verbs_end_card(ends[i], cards[i]);
    for (int i = 0; i < 2 && rc == NW_OK; i++)
        rc = nw_verbs_connect_start(ends[i], cards[1 - i]);
    for (bool done[2] = {false, false}; rc == NW_OK && !(done[0] && done[1]);)
        for (int i = 0; i < 2 && rc == NW_OK; i++)
            rc = nw_verbs_connect_step(ends[i], &done[i]);
    if (rc == NW_OK)
        rc = run_loop(ends, options, buffers);
    nw_verbs_end_close(ends[0]);
    nw_verbs_end_close(ends[1]);
    return rc;
}

/* --- options --- */

static int number(const char *text)
{
    uint64_t value;

    if (nw_parse_bytes(text, &value) != NW_OK || value > INT32_MAX) {
        fprintf(stderr, "verbs_probe: \"%s\" is no number\n", text);
        exit(2);
    }
    return (int)value;
}

static void set_op(const char *text, struct options *options)
{
    for (int op = 0; op < NW_VERBS_OP_COUNT; op++)
        if (strcmp(text, nw_verbs_op_name((nw_verbs_op)op)) == 0) {
            options->run.op = (nw_verbs_op)op;
            return;
        }
    fprintf(stderr, "verbs_probe: -o %s: accepted: write, read, send\n", text);
    exit(2);
}

static void set_option(int key, const char *text, struct options *options)
{
    struct nw_verbs_wish *wish = &options->wish;
    const struct {
        int key, *value;
    } numbers[] = {{'i', &options->number},     {'x', &wish->gid_index},   {'q', &wish->qps},
                   {'t', &wish->depth},         {'u', &wish->ack_timeout}, {'r', &wish->retries},
                   {'T', &wish->traffic_class}, {'k', &options->repeats}};
    const struct {
        int key;
        bool *value;
    } flags[] = {{'b', &options->both}, {'L', &options->run.ping}, {'e', &wish->events},
                 {'y', &wish->spin},    {'l', &options->list},     {'R', &wish->by_cm},
                 {'c', &options->loop}};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].key == key) {
            *numbers[i].value = number(text);
            return;
        }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].key == key) {
            *flags[i].value = true;
            return;
        }
    switch (key) {
    case 'd':
        options->device = text;
        break;
    case 'p':
        options->tcp_port = text;
        break;
    case 'm':
        wish->mtu_bytes = (uint32_t)number(text);
        break;
    case 'I':
        wish->inline_bytes = (uint32_t)number(text);
        break;
    case 'D':
        wish->timeout_ns = number(text) * 1e9;
        break;
    case 's':
        options->run.bytes = (uint64_t)number(text);
        break;
    case 'n':
        options->run.count = (uint64_t)number(text);
        break;
    case 'M':
        options->buffer_bytes = (uint64_t)number(text);
        break;
    case 'o':
        set_op(text, options);
        break;
    default:
        exit(2);
    }
}

static void read_options(int argc, char **argv, struct options *options)
{
    int key;

    while ((key = getopt(argc, argv, "d:i:x:m:q:t:I:u:r:T:o:s:n:D:p:M:k:bLeylcR")) != -1)
        set_option(key, optarg, options);
    options->peer = optind < argc ? argv[optind] : NULL;
    if (options->buffer_bytes == 0)
        options->buffer_bytes = 2 * nw_verbs_stride(options->run.bytes) * 8;
    options->run.span_bytes = options->buffer_bytes / 2;
    options->run.take_at = options->buffer_bytes / 2;
    options->run.roles = options->both           ? NW_VERBS_GIVES | NW_VERBS_TAKES
                         : options->peer != NULL ? NW_VERBS_GIVES
                                                 : NW_VERBS_TAKES;
    /* perftest's client asks: it reads from the server. */
    if (options->run.op == NW_VERBS_READ && !options->both && !options->loop)
        options->run.roles ^= NW_VERBS_GIVES | NW_VERBS_TAKES;
}

static nw_rc work(struct options *options, const struct nw_verbs *verbs)
{
    const struct nw_verbs_port *port;
    uint8_t *buffer;
    nw_rc rc;

    NW_TRY(nw_verbs_find_port(verbs, options->device, options->number, &port));
    buffer = nw_comm_alloc(2 * options->buffer_bytes); /* both ends of a loop */
    if (buffer == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the buffer");
    if (options->run.ping)
        options->run.samples_ns = calloc(options->run.count, sizeof(double));
    rc = options->loop ? loop(verbs, port, options, buffer)
                       : two_processes(verbs, port, options, buffer);
    free(options->run.samples_ns);
    nw_comm_free(buffer, 2 * options->buffer_bytes);
    return rc;
}

int main(int argc, char **argv)
{
    struct options options = {.tcp_port = "18600",
                              .repeats = 1,
                              .wish = NW_VERBS_WISH,
                              .run = {.op = NW_VERBS_WRITE, .bytes = 65536, .count = 500}};
    struct nw_verbs *verbs;
    nw_rc rc;

    read_options(argc, argv, &options);
    rc = nw_verbs_open(&verbs);
    if (rc == NW_OK && verbs->port_count == 0) {
        printf("verbs_probe: %s\n", verbs->why);
        nw_verbs_close(verbs);
        return 77;
    }
    for (size_t i = 0; rc == NW_OK && options.list && i < verbs->port_count; i++)
        print_port(&verbs->ports[i]);
    if (rc == NW_OK && !options.list)
        rc = work(&options, verbs);
    if (rc != NW_OK)
        fprintf(stderr, "verbs_probe: %s: %s\n", nw_rc_name(rc), nw_last_error()->text);
    if (verbs != NULL)
        nw_verbs_close(verbs);
    return rc == NW_OK ? 0 : rc == NW_EUSAGE ? 2 : 1;
}
