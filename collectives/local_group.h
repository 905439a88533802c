/* Private to collectives/: groups of threads, and how they meet.
 *
 * One lock guards a world; each group (the world's own, and those of split) has its own condition.
 * A rank whose body has returned is gone from every group that it was in: calls that need it return
 * NW_EPEER. A rank inside a call cannot go, so nobody loses a buffer that another still reads.
 */
#ifndef NW_COLLECTIVES_LOCAL_GROUP_H
#define NW_COLLECTIVES_LOCAL_GROUP_H

#include <pthread.h>

#include "collectives/comm.h"

struct mailbox { /* of one rank, for swap */
    bool posted, taken;
    bool gone; /* the rank's body has returned */
    int peer;
    const void *send;
    uint64_t bytes;
};

struct group {
    struct world *world;
    struct group *next; /* in the world's list */
    int rank_count, open_count, arrived_count;
    int gone_count;
    uint64_t generation; /* of the barrier */
    pthread_cond_t condition;
    const struct nw_call **calls; /* by rank: what each published before a barrier */
    const void **data;
    struct mailbox *mailboxes;
    int *world_ranks;
};

struct world {
    pthread_mutex_t lock;
    struct group *groups;
    int failed_rank; /* the first that failed by itself; -1 none */
    char failure[256];
};

struct group *nw_group_new(struct world *world, int rank_count); /* NULL: out of memory */
void nw_group_free(struct group *group);                         /* accepts NULL */
void nw_group_enlist(struct group *group);
void nw_group_leave(struct group *group); /* the last member frees it */

/* Wait for all members. */
nw_rc nw_group_meet(struct group *group);
/* With the world's lock held: `world_rank` takes part in nothing any more. */
void nw_group_mark_gone(struct world *world, int world_rank);
/* Word NW_EPEER. */
nw_rc nw_group_peer_is_gone(const struct world *world);

/* One collective; `call` is checked. */
nw_rc nw_local_run(struct group *group, int rank, const struct nw_call *call);

#endif
