/* Private to collectives/. A rank's service for its worker: relay.c (the worker, the rounds) and
 * relay_do.c (groups, and what is asked for in them). */
#ifndef NW_COLLECTIVES_RELAY_SERVE_H
#define NW_COLLECTIVES_RELAY_SERVE_H

#include "collectives/relay.h"
#include "collectives/relay_wire.h"

enum relay_state { NOTHING, ASKS, ENDED, LOST };

#define NOTE_BYTES 64 /* so much of a request goes with the note itself */
struct relay_note {
    int32_t state, kind, group, number;
    uint64_t wanted, serial; /* serial: of the requests; unchanged everywhere: nothing moves */
    int32_t next_group;      /* a number that no group of this rank has */
    int32_t rc;
    char data[NOTE_BYTES];
};

/* Why a worker is lost, the heaviest is the cause: a worker that died weighs more than one that
 * misses it. */
enum relay_weight { FINE, MISSES_OTHERS, TIMED_OUT, NO_ANSWER, FAILED, DIED };

struct relay_grave {
    int32_t weight, rc;
    char text[sizeof((struct nw_err *)NULL)->text];
};

struct relay_group {
    int32_t number;
    struct nw_comm *comm; /* the first one's: the caller's */
    int *ranks;           /* of the whole, comm->rank_count entries */
};

struct relay_serve {
    struct nw_comm *comm;
    const struct nw_relay_client *client;
    struct relay_group *groups;
    size_t group_count;
    struct relay_note mine, *all, *before;
    char *data; /* of the request, where it does not fit into the note */
    struct relay_grave grave;
};

void nw_relay_answer(struct relay_serve *serve, nw_rc rc, const void *data, uint64_t bytes);
/* Takes `comm` and `ranks`, also when it fails. */
nw_rc nw_relay_add_group(struct relay_serve *serve, int32_t number, struct nw_comm *comm,
                         int *ranks);
void nw_relay_drop_group(struct relay_serve *serve, int32_t number);
void nw_relay_drop_groups(struct relay_serve *serve);
/* My worker's request, when all whom it concerns have made theirs. */
nw_rc nw_relay_perform(struct relay_serve *serve);

#endif
