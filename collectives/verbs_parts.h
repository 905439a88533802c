/* Private to collectives/. What the files of the verbs layer share. verbs.c: devices and ports;
 * verbs_port.c: what sysfs tells of a port; verbs_find.c, verbs_gid.c, verbs_card.c, verbs_words.c:
 * what needs no device; verbs_end.c, verbs_memory.c: queues and memory; verbs_connect.c,
 * verbs_cm.c: two ends made one; verbs_run.c, verbs_ping.c: the data; verbs_wait.c: completions,
 * deadlines and failures. */
#ifndef NW_COLLECTIVES_VERBS_PARTS_H
#define NW_COLLECTIVES_VERBS_PARTS_H

#include "collectives/verbs.h"
#include "collectives/verbs_api.h"
#include "collectives/verbs_card.h"

enum {
    NW_VERBS_DEFAULT_DEPTH = 128,
    NW_VERBS_MAX_DEPTH = 8192,
    NW_VERBS_MIN_RECEIVES = 512, /* a receiver that is late costs 0.6 ms (RNR) */
    /* 4.096 us << 16 = 0.27 s. A NIC may take up to 4 times as long (InfiniBand Architecture
     * Specification 1, 9.7.6.1.3): (1 + 6 retries) x 0.27 s x 4 = 7.5 s, before the deadline. */
    NW_VERBS_DEFAULT_TIMEOUT = 16,
    NW_VERBS_DEFAULT_RETRIES = 6,
    NW_VERBS_BATCH = 16, /* completions taken, and receives posted, at once */
};

struct nw_verbs_devices {
    const struct nw_verbs_api *api;
    const char *sys;               /* "/sys" */
    struct ibv_context **contexts; /* of each port, shared by ports of one device; NULL: closed */
    struct nw_verbs_seen *seen;    /* of each port */
    size_t count;
    struct nw_verbs_end *ends; /* that are open: an event that one reads may be another's */
};

/* What events have told of a port. */
struct nw_verbs_seen {
    int number;
    bool down, fatal;
    unsigned lid_changes, gid_changes;
};

/* A run in progress, of one QP. */
struct nw_verbs_queue {
    uint64_t quota;             /* messages of each way */
    uint64_t posted, done;      /* given (or read) from here */
    uint64_t expected, arrived; /* receives posted, messages received */
};

struct nw_verbs_flow {
    struct nw_verbs_run run;
    int qps;
    uint32_t depth, signal_every;
    uint64_t slots, stride;
    struct nw_verbs_queue queues[NW_VERBS_CARD_QPS];
    uint64_t give_left, take_left; /* completions still to come */
    uint64_t first_ns, last_ns;    /* the clock at the first request and the last completion */
    uint64_t seen, posted_ns;      /* of ping: answers that were noted; the last request */
};

struct nw_verbs_end {
    const struct nw_verbs_api *api;
    struct ibv_context *context; /* borrowed */
    struct nw_verbs_port port;   /* its gids are owned here */
    struct nw_verbs_wish wish;   /* with the rule's values put in, but for gid_index */
    char name[140];              /* "node1 mlx5_0/1" */
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel; /* NULL: polled */
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qps[NW_VERBS_CARD_QPS];
    int qp_count;
    uint8_t *buffer;
    uint64_t bytes;
    uint32_t depth, receive_depth, inline_bytes, read_depth;
    struct nw_verbs_card mine, theirs;
    struct nw_verbs_cm *cm; /* NULL: connected by the cards alone */
    struct nw_verbs_link link;
    bool connecting, connected, prepared;
    bool broken; /* a queue has failed: no more runs */
    const struct nw_verbs_word *trouble;
    struct nw_verbs_flow flow;
    /* Events. */
    struct nw_verbs_devices *devices;
    struct nw_verbs_end *next;   /* in devices->ends */
    struct nw_verbs_seen *seen;  /* of its port */
    struct nw_verbs_seen before; /* when it was opened */
    int own_event;               /* the first bad one of its queues; -1: none */
    /* Waiting. */
    uint64_t quiet_since_ns, events_looked_ns;
    unsigned idle;
};

/* In a request's wr_id: its queue in the low 8 bits, from bit 8 on how many messages its completion
 * stands for; or this bit: it is a receive. (A completion's opcode means nothing when it failed.)
 */
#define NW_VERBS_RECEIVE (1ull << 63)

/* verbs.c: nw_verbs_open over a table and a sysfs of the caller's, which outlive it. */
nw_rc nw_verbs_open_api(const struct nw_verbs_api *api, const char *sys,
                        struct nw_verbs **verbs_out);

/* verbs_memory.c */
nw_rc nw_verbs_register(struct nw_verbs_end *end, struct nw_dev *dev);

/* verbs_connect.c: the QP's state by state. */
nw_rc nw_verbs_to_init(struct nw_verbs_end *end, struct ibv_qp *qp);

nw_rc nw_verbs_to_receive(struct nw_verbs_end *end, int index, const struct ibv_qp_attr *from_cm);
nw_rc nw_verbs_to_send(struct nw_verbs_end *end, int index, const struct ibv_qp_attr *from_cm);

/* verbs_cm.c: listens on the end's address, so that its card can name the port. */
nw_rc nw_verbs_cm_open(struct nw_verbs_end *end);
void nw_verbs_cm_close(struct nw_verbs_cm *cm); /* accepts NULL */
nw_rc nw_verbs_cm_start(struct nw_verbs_end *end);
nw_rc nw_verbs_cm_step(struct nw_verbs_end *end, bool *done_out);

/* verbs_wait.c */
/* No more runs; the first reason stays. */
void nw_verbs_break(struct nw_verbs_end *end, const struct nw_verbs_word *why);
/* Words a failed call of the library and breaks the end: "… : Cannot allocate memory (12)". `code`
 * 0: the call gives no errno. */
nw_rc nw_verbs_fail_call(struct nw_verbs_end *end, int code, const char *what);
/* A completion that is no success. */
nw_rc nw_verbs_fail_completion(struct nw_verbs_end *end, const struct ibv_wc *wc);
void nw_verbs_wait_start(struct nw_verbs_end *end);
/* There was a completion. */
void nw_verbs_wait_moved(struct nw_verbs_end *end);
/* There was none: yields or sleeps; NW_ETIMEOUT, or what an event says (the port went down). */
nw_rc nw_verbs_wait_idle(struct nw_verbs_end *end, const char *what);

#endif
