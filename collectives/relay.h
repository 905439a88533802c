/* Public. A communicator for a worker process that has no MPI: its small exchanges go over a socket
 * to the rank that started it, which does them over its own communicator.
 *
 * The worker's end is a struct nw_comm whose bootstrap operations work and whose calls do not: NCCL
 * is opened over it. It also hands over what it measures (events) and how it ended. The rank's end
 * serves until all workers have ended, or one is lost; then it knows on every rank which and why.
 *
 *     rank:   NW_TRY(nw_relay_greet(fd, comm, plan_text));
 *             NW_TRY(nw_relay_serve(comm, &client, &end));        // collective over comm
 *     worker: NW_TRY(nw_comm_open_relay(fd, &comm, &plan_text));
 *             … nw_comm_open_nccl(comm, …), nw_relay_event(fd, …) …
 *             nw_relay_end(fd, rc);
 */
#ifndef NW_COLLECTIVES_RELAY_H
#define NW_COLLECTIVES_RELAY_H

#include "collectives/comm.h"

/* ---- the worker's end ---- */

/* Reads the greeting. The communicator keeps `fd`, the caller closes it after it; frees the text.
 */
nw_rc nw_comm_open_relay(int fd, struct nw_comm **comm_out, char **text_out);
/* Not collective. The rank's on_event has done it when this returns, or failed: its code and words.
 */
nw_rc nw_relay_event(int fd, unsigned kind, const char *data, size_t bytes);
/* The last thing that is said; with the words of nw_last_error() when rc is not NW_OK. */
nw_rc nw_relay_end(int fd, nw_rc rc);

/* ---- the rank's end ---- */

struct nw_relay_client {
    int fd;
    int generation; /* other than of the services before on the same communicator, the same on all
                       ranks */
    void *user;
    nw_rc (*on_event)(void *user, unsigned kind, const char *data, size_t bytes);
    /* Every 100 ms while the worker says nothing. Not NW_OK: it is given up, worded.
     * `others_ended`: another rank's worker is lost; what can be seen to be wrong with this one? */
    nw_rc (*watch)(void *user, bool others_ended);
    /* The worker closed its end without a word: why, worded. */
    nw_rc (*lost)(void *user);
    /* Before this rank waits for the others. */
    void (*meeting)(void *user);
    /* It will not be heard any more; called once on every rank when a worker was lost. */
    void (*stop)(void *user);
    /* rc of an end that all ranks share; else the worker is broken */
    bool (*is_broken)(nw_rc rc);
};

struct nw_relay_end { /* the same on all ranks */
    bool broken;
    int rank; /* whose worker has the cause */
    nw_rc rc; /* of the worker */
    char text[1024];
};

nw_rc nw_relay_greet(int fd, const struct nw_comm *comm, const char *text);
/* Collective. A failure is one of `comm` itself. The end's words are in nw_last_error() too when
 * its rc is not NW_OK. */
nw_rc nw_relay_serve(struct nw_comm *comm, const struct nw_relay_client *client,
                     struct nw_relay_end *end_out);

#endif
