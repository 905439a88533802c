/* Public. Can every host open a TCP connection to every other one, over the interfaces that NCCL
 * and MPI would take? Asked before NCCL starts, which does not say which pair is blocked.
 *
 * Each host listens on one ephemeral port and learns all ends; then every host connects to the
 * others, all at once. Whoever accepts says who it is and sends 16 KiB, so that a foreign machine
 * at the address and a path that loses large packets show, too. Nothing is kept open.
 *
 *     NW_TRY(nw_reach_open(&filter, host_name, &reach));      // listens; nw_reach_end(reach)
 *     … all ends to all hosts …
 *     NW_TRY(nw_reach_start(reach, ends, count, self, run));  // connects
 *     while (nw_reach_step(reach, 20))                        // serves others meanwhile
 *         …;
 *     nw_reach_tries(reach, &count);          // and keep stepping until all hosts are done
 *     nw_reach_close(reach);
 */
#ifndef NW_COLLECTIVES_REACH_H
#define NW_COLLECTIVES_REACH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/finding.h"

#define NW_REACH_ADDRESSES_MAX 16 /* of a host; NCCL itself takes up to 16 interfaces */
#define NW_REACH_ALL_HOSTS     64 /* above: not every pair, but NW_REACH_PARTNERS of each host */
#define NW_REACH_PARTNERS      16
#define NW_REACH_LIMIT_NS      1000000000.0 /* for a connection; it takes one round trip */
#define NW_REACH_PAYLOAD       16384

struct nw_reach_address {
    char interface[32], ip[48];
    int prefix;        /* bits of the network */
    int mtu;           /* bytes; 0: unknown */
    double bits_per_s; /* as the kernel says; 0: unknown */
    bool chosen; /* NCCL takes it by itself: where there are interfaces named ib*, only those */
};

struct nw_reach_end { /* a host that listens */
    char host[64];
    int port;
    struct nw_reach_address addresses[NW_REACH_ADDRESSES_MAX];
    size_t address_count;
    char filter[96];    /* NCCL_SOCKET_IFNAME in force; "": none */
    char left_out[256]; /* interfaces that are up and not taken, with commas */
    char
        link_local[96]; /* of those the ones with an address that no router and no other host knows:
                           of a management controller mostly. NCCL does not leave them out */
};

/* X(enumerator, key in JSON) */
#define NW_REACH_STATE_MAP(X)                                                                      \
    X(NW_REACH_OK, "ok")                                                                           \
    X(NW_REACH_TIMEOUT, "timed_out")                                                               \
    X(NW_REACH_REFUSED, "refused")                                                                 \
    X(NW_REACH_NO_ROUTE, "no_route")                                                               \
    X(NW_REACH_FORBIDDEN, "forbidden")                                                             \
    X(NW_REACH_OTHER_HOST, "other_host")                                                           \
    X(NW_REACH_SILENT, "silent")                                                                   \
    X(NW_REACH_CUT, "large_packets_lost")                                                          \
    X(NW_REACH_FAILED, "failed")

typedef enum {
#define X(state, key) state,
    NW_REACH_STATE_MAP(X)
#undef X
        NW_REACH_STATE_COUNT
} nw_reach_state;

struct nw_reach_try { /* one connection that was tried */
    int to, address;  /* index of end and address */
    nw_reach_state state;
    int error;      /* errno; 0 */
    char from[48];  /* the address that the kernel chose; "": unknown */
    double took_ns; /* NAN: never */
};

/* The interfaces of this host that NCCL would use: up, with an address, not loopback and not made
 * by a container engine or a hypervisor; where NCCL_SOCKET_IFNAME (`filter`, NULL: not set) says
 * which, those ("eth", "=eth0,eth1", "^docker,lo": prefixes, exact names, all but these). Nothing
 * fits: `end_out` has no address. */
nw_rc nw_reach_find(const char *filter, struct nw_reach_end *end_out);
/* Does NCCL_SOCKET_IFNAME take this interface? NULL: the usual choice. */
bool nw_reach_takes(const char *filter, const char *interface);

struct nw_reach;
nw_rc nw_reach_open(const char *filter, const char *host, struct nw_reach **reach_out);
const struct nw_reach_end *nw_reach_end(const struct nw_reach *reach);
/* `self`: index of this host in `ends`, which are copied; `run`: the same number on all hosts. */
nw_rc nw_reach_start(struct nw_reach *reach, const struct nw_reach_end *ends, size_t count,
                     size_t self, uint64_t run);
/* One round of waiting, at most `wait_ms`. False: all own connections are decided; others may still
 * be coming in. */
bool nw_reach_step(struct nw_reach *reach, int wait_ms);
const struct nw_reach_try *nw_reach_tries(const struct nw_reach *reach, size_t *count_out);
void nw_reach_close(struct nw_reach *reach); /* accepts NULL */

/* Does host `from` try host `to` of `count`? All pairs up to NW_REACH_ALL_HOSTS; then its
 * neighbours in the ring and some more, the same on every run. */
bool nw_reach_is_partner(size_t from, size_t to, size_t count);

/* What all hosts tried, judged. */
struct nw_reach_report {
    const struct nw_reach_end *ends; /* of `count` hosts; port 0: it did not answer */
    size_t count;
    struct nw_reach_try *const *tries; /* of each host; NULL: no answer */
    const size_t *try_counts;
};
nw_rc nw_reach_judge(const struct nw_reach_report *report, struct nw_findings *findings);

nw_rc nw_reach_end_to_json(const struct nw_reach_end *end, json_t **json_out);
nw_rc nw_reach_end_from_json(const json_t *json, const char *what, struct nw_reach_end *end_out);
nw_rc nw_reach_tries_to_json(const struct nw_reach_try *tries, size_t count, json_t **array_out);
/* The caller frees *tries_out. */
nw_rc nw_reach_tries_from_json(const json_t *array, const char *what,
                               const struct nw_reach_end *ends, size_t end_count,
                               struct nw_reach_try **tries_out, size_t *count_out);

#endif
