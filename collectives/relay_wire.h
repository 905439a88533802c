/* Private to collectives/. What goes over the socket between a rank and its worker: a head, then
 * its bytes. The worker asks, the rank answers, one at a time. */
#ifndef NW_COLLECTIVES_RELAY_WIRE_H
#define NW_COLLECTIVES_RELAY_WIRE_H

#include "collectives/comm.h"
#include "collectives/common.h"

enum nw_wire_kind {
    NW_WIRE_GREETING = 1, /* rank to worker, first: nw_wire_world, names, text */
    NW_WIRE_ANSWER,       /* rank to worker; number: nw_rc, with words when it is a failure */
    NW_WIRE_BARRIER,
    NW_WIRE_EXCHANGE,
    NW_WIRE_SHARE, /* number: root of the group; others send no bytes: `wanted` */
    NW_WIRE_SPLIT, /* number: colour */
    NW_WIRE_CLOSE, /* a group; no answer */
    NW_WIRE_EVENT, /* number: kind */
    NW_WIRE_END,   /* number: nw_rc, with words; no answer */
};

struct nw_wire_head {
    uint32_t kind;
    int32_t group; /* 0: all ranks */
    int32_t number;
    uint64_t bytes;  /* behind the head */
    uint64_t wanted; /* of the operation, a rank's */
};

struct nw_wire_world {
    int32_t rank, rank_count;
    uint64_t text_bytes;
};

/* Whole or failed. NW_EPEER: the other end is closed. */
nw_rc nw_wire_send(int fd, const struct nw_wire_head *head, const void *data);
nw_rc nw_wire_write(int fd, const void *data, uint64_t bytes);
nw_rc nw_wire_read(int fd, void *data, uint64_t bytes);

#endif
