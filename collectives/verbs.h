/* Public. RDMA below NCCL and MPI: one port of a NIC to one port of another over a reliable
 * connection (RC), by libibverbs, which is opened at run time. Host memory and GPU memory.
 *
 * Both sides do the same, and the caller carries the cards and the barriers (MPI, sockets, one
 * process for both ends). A handle outlives its ends; a buffer outlives the end that registered it;
 * closes accept NULL. One thread at a time. Every wait has a deadline. What fails has said so in
 * nw_last_error(): which side, which NIC, likely cause, what to do; that end can then only be
 * closed.
 *
 *     struct nw_verbs *verbs;
 *     NW_TRY(nw_verbs_open(&verbs));             // NW_OK without RDMA, too: port_count is 0 then
 *     struct nw_verbs_wish wish = NW_VERBS_WISH; // -d -i -x -m -q …: what is set is what is used
 *     NW_TRY(nw_verbs_end_open(verbs, port, &wish, buffer, bytes, NULL, &end));
 *     nw_verbs_end_card(end, mine);
 *     … comm->ops->swap(comm, peer, mine, theirs, NW_VERBS_CARD_BYTES) …
 *     NW_TRY(nw_verbs_connect(end, theirs));
 *     struct nw_verbs_run run = {.op = NW_VERBS_WRITE, .bytes = 65536, .count = 5000,
 *                                .roles = first ? NW_VERBS_GIVES : NW_VERBS_TAKES,
 *                                .give_at = 0, .take_at = bytes / 2, .span_bytes = bytes / 2};
 *     NW_TRY(nw_verbs_prepare(end, &run));       // both sides
 *     … barrier …
 *     NW_TRY(nw_verbs_run(end, &run, &result));  // both sides; NAN on the side that only looks on
 *     … barrier, compare the data …
 */
#ifndef NW_COLLECTIVES_VERBS_H
#define NW_COLLECTIVES_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct nw_dev;

/* --- what is there --- */

/* In order of preference between RoCE ports; InfiniBand has one kind. */
typedef enum {
    NW_VERBS_GID_INFINIBAND,
    NW_VERBS_GID_V2_IPV4,
    NW_VERBS_GID_V2_IPV6,
    NW_VERBS_GID_V2_LINK_LOCAL, /* reaches one Ethernet segment only */
    NW_VERBS_GID_V1,            /* not routable */
    NW_VERBS_GID_KIND_COUNT
} nw_verbs_gid_kind;
const char *nw_verbs_gid_kind_text(nw_verbs_gid_kind kind); /* "RoCE v2, IPv4" */

struct nw_verbs_gid {
    uint8_t raw[16];
    int index;
    nw_verbs_gid_kind kind;
};
/* "10.1.0.1", "fe80::1" */
#define NW_VERBS_GID_TEXT 48
const char *nw_verbs_gid_text(const struct nw_verbs_gid *gid, char text[NW_VERBS_GID_TEXT]);

struct nw_verbs_port {
    char device[64];     /* "mlx5_0" */
    int number;          /* from 1 */
    bool active;         /* only such a port carries data */
    char state[16];      /* "active" "down" "init" "armed" "unknown" */
    char link_layer[16]; /* "infiniband" "ethernet" "unknown" */
    bool roce;           /* Ethernet, and not iWARP */
    bool iwarp;          /* cannot be used here */
    bool software;       /* the CPU does a NIC's work (rdma_rxe, siw) */
    double bits_per_s;   /* as sold, one way; NAN: unknown */
    uint32_t mtu_bytes;  /* in force; 0: unknown */
    uint32_t max_mtu_bytes;
    uint16_t lid;              /* of InfiniBand */
    int numa;                  /* -1: unknown */
    char pci[16];              /* "0000:17:00.0"; "": none */
    char interface[32];        /* the network interface of RoCE; "": unknown */
    int max_qp_depth;          /* of the device */
    struct nw_verbs_gid *gids; /* rows that are in use */
    size_t gid_count;
    char closed[256]; /* "": can be opened; else why not */
};

struct nw_verbs {
    struct nw_verbs_port *ports; /* sorted by device, then number */
    size_t port_count;
    /* Of none: "no RDMA device: …", in the kernel's or the library's terms. */
    char why[240];
    struct nw_verbs_devices *devices; /* private */
};

/* NW_OK also where there is no RDMA at all: port_count is 0 and `why` says why. */
nw_rc nw_verbs_open(struct nw_verbs **verbs_out);
void nw_verbs_close(struct nw_verbs *verbs);
bool nw_verbs_built(void);
/* RoCE or InfiniBand; not iWARP, not AWS's EFA, which has no reliable connections. */
bool nw_verbs_is_driven(const struct nw_verbs_port *port);
/* -d and -i: NULL and 0 take the first active port. NW_EUSAGE with what there is; NW_ENODEV: no
 * RDMA. */
nw_rc nw_verbs_find_port(const struct nw_verbs *verbs, const char *device, int number,
                         const struct nw_verbs_port **port_out);

/* --- what went wrong --- */

struct nw_verbs_word {
    const char *key;            /* stable: "retry-exceeded" "port-error" */
    const char *where;          /* "here" "there" "between" "unknown" */
    const char *text;           /* what it says */
    const char *cause, *remedy; /* "": nothing more to say */
};
/* Of a completion (enum ibv_wc_status) and of an event of the device (enum ibv_event_type); never
 * NULL. */
const struct nw_verbs_word *nw_verbs_status_word(int status);
const struct nw_verbs_word *nw_verbs_event_word(int event);
/* Of a deadline that passed, and of a call that was refused. */
const struct nw_verbs_word *nw_verbs_silent_word(void);
const struct nw_verbs_word *nw_verbs_refused_word(void);

/* --- an end --- */

/* Each has a value that leaves it to the rule; what is set is taken or refused, never bent. */
struct nw_verbs_wish {
    int gid_index;      /* -1: RoCE v2 before v1, IPv4 before IPv6, both sides of one kind, the
                           longest common prefix of addresses, the lowest index */
    uint32_t mtu_bytes; /* 0: the smaller of both ports' */
    int traffic_class;  /* 0 … 255; of RoCE: DSCP × 4 */
    int service_level;  /* 0 … 15 */
    int qps;            /* at most this many at once; 0: 1 */
    int depth;      /* messages on their way, of each QP; 0: most_depth, or what the device has */
    int most_depth; /* 0: 128 */
    uint32_t
        inline_bytes; /* messages up to it are copied into the request; the device may have less */
    /* ACK timeout, 4.096 us × 2^n, of which a NIC may make up to 4 times as much; 0: 16 (0.27 s, so
     * that all retries end before timeout_ns; 14 fires for nothing on a slow or shared host) */
    int ack_timeout;
    int retries; /* -1: 6. 7 is for ever in software RoCE */
    bool events; /* sleep for completions instead of polling */
    bool spin;   /* poll without giving the CPU away: where no other rank wants it */
    /* Connect by rdma_cm, which resolves addresses and path itself: RoCE, of the process's own
     * network namespace. */
    bool by_cm;
    double timeout_ns; /* without any completion; 0: 10 s */
};
#define NW_VERBS_WISH                                                                              \
    {                                                                                              \
        .gid_index = -1, .retries = -1                                                             \
    }

struct nw_verbs_end;
/* Registers `buffer`: host memory, or memory of `dev` where that is a GPU (dma-buf, else
 * nvidia_peermem). NW_EUSAGE: the wish cannot be had on this port. NW_ENODEV: the port is not
 * active. NW_ENOTSUP: memory of the GPU cannot be registered, with both reasons. */
nw_rc nw_verbs_end_open(const struct nw_verbs *verbs, const struct nw_verbs_port *port,
                        const struct nw_verbs_wish *wish, void *buffer, uint64_t bytes,
                        struct nw_dev *dev, struct nw_verbs_end **end_out);
void nw_verbs_end_close(struct nw_verbs_end *end);

/* Everything that the other side must know, in a form that both read. */
#define NW_VERBS_CARD_BYTES 1536
void nw_verbs_end_card(const struct nw_verbs_end *end, uint8_t card[NW_VERBS_CARD_BYTES]);
/* Both sides; a side may be connected earlier than the other, so: barrier before the first run.
 * By rdma_cm both must be in it at the same time. */
nw_rc nw_verbs_connect(struct nw_verbs_end *end, const uint8_t card[NW_VERBS_CARD_BYTES]);
/* The same in parts, for several ends of one process by rdma_cm, whose order the other sides do not
 * know: start all, then step each until it is done. */
nw_rc nw_verbs_connect_start(struct nw_verbs_end *end, const uint8_t card[NW_VERBS_CARD_BYTES]);
nw_rc nw_verbs_connect_step(struct nw_verbs_end *end, bool *done_out);

/* What was settled. */
struct nw_verbs_link {
    char here[160], there[160]; /* "node1 mlx5_0/1 (10.1.0.1, GID 3)" */
    struct nw_verbs_gid here_gid, there_gid;
    uint32_t mtu_bytes, here_mtu_bytes, there_mtu_bytes; /* the latter two: in force on each port */
    int qps, depth;
    uint32_t inline_bytes;
    bool by_cm;
    char memory[32], there_memory[32]; /* "host", "gpu (dma-buf)", "gpu (nvidia_peermem)" */
};
const struct nw_verbs_link *nw_verbs_end_link(const struct nw_verbs_end *end);
/* Why the end is broken; NULL: it is not. nw_last_error() had the whole sentence. */
const struct nw_verbs_word *nw_verbs_end_trouble(const struct nw_verbs_end *end);
/* By either: it takes no further run. */
bool nw_verbs_end_is_broken(const struct nw_verbs_end *end);

/* --- runs --- */

typedef enum { NW_VERBS_WRITE, NW_VERBS_READ, NW_VERBS_SEND, NW_VERBS_OP_COUNT } nw_verbs_op;
const char *nw_verbs_op_name(nw_verbs_op op); /* "write" "read" "send" */

enum {
    NW_VERBS_GIVES = 1, /* the data go from here */
    NW_VERBS_TAKES = 2, /* the data come here; of both: two-way */
};

/* The same on both sides but for the roles. Messages go in turn over the QPs; message k of a QP
 * lies in slot (k × qps + QP) mod slots of each side's region, slots being nw_verbs_stride(bytes)
 * apart, so after `slots` messages a region is a copy of the other's. */
struct nw_verbs_run {
    nw_verbs_op op;
    unsigned roles;
    uint64_t bytes, count;     /* of a message; messages of each way */
    uint64_t give_at, take_at; /* offsets in the buffers of who gives and who takes */
    uint64_t span_bytes;       /* of each region; at least a message */
    int qps, depth;            /* 0: all that the end has */
    /* Latency: one message at a time, each answered by one of the other side before the next. Of
     * reads, which need no answer: one at a time. The side that NW_VERBS_GIVES begins (of reads:
     * that TAKES). Host memory for writes: the CPU watches the last byte. */
    bool ping;
    double *samples_ns; /* of ping, `count` of them on the side that begins: half of a round trip;
                           of reads the whole. NULL: not wanted */
    uint64_t (*now_ns)(void); /* NULL: nw_now_ns */
};
uint64_t nw_verbs_stride(uint64_t bytes);
uint64_t nw_verbs_slots(const struct nw_verbs_run *run);

/* Of this side: from its first request to its last completion; NAN where it only looks on. */
struct nw_verbs_result {
    double ns;
    uint64_t messages, bytes; /* one way */
    double bytes_per_s, messages_per_s;
};

nw_rc nw_verbs_prepare(struct nw_verbs_end *end, const struct nw_verbs_run *run);
nw_rc nw_verbs_run(struct nw_verbs_end *end, const struct nw_verbs_run *run,
                   struct nw_verbs_result *result_out);
/* Several ends of this process at once, each with its own run: all rails, or both ends of a card's
 * loop. What fails does not stop the others: they go on to their own end or deadline. The first
 * failure is returned; nw_verbs_end_trouble tells which ends have failed, and results_out is set
 * of all (NAN of those). */
nw_rc nw_verbs_run_all(struct nw_verbs_end *const *ends, const struct nw_verbs_run *runs,
                       size_t count, struct nw_verbs_result *results_out);

#endif
