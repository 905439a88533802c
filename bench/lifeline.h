/* Public. Which ranks are lost, for one that waits for them: in memory that a rank shares with its
 * watching parent, which begins as zeroes.
 *
 * The parent of rank 0 listens, those of the others call it (cli/lifeline.h): a rank that died is
 * told of by its parent, a host that is gone by its silence. The rank asks for that, and reads the
 * losses.
 */
#ifndef NW_BENCH_LIFELINE_H
#define NW_BENCH_LIFELINE_H

#include <stdatomic.h>
#include <stdint.h>

#define NW_LIFELINE_ADDRESSES 16
#define NW_LIFELINE_LOST_MAX  256 /* more are not told apart */

struct nw_lifeline_call { /* where rank 0's parent listens; plain data, sent by MPI */
    int32_t port, address_count;
    unsigned char token[16];
    char addresses[NW_LIFELINE_ADDRESSES][46];
};

struct nw_lifeline_loss {
    int32_t rank;
    char text[116]; /* "killed by signal 9 (Killed) in pairs round 1 of 3, 64 MiB, timing" */
};

enum { NW_LIFELINE_NONE, NW_LIFELINE_WANTED, NW_LIFELINE_THERE, NW_LIFELINE_FAILED };

struct nw_lifeline {
    int32_t parent;               /* its pid; 0: nobody watches */
    _Atomic uint32_t state;       /* the rank: WANTED; then the parent: THERE or FAILED */
    int32_t rank;                 /* set by the rank before WANTED */
    struct nw_lifeline_call call; /* by rank 0's parent before THERE, by others before WANTED */
    /* The rank: its death does not end the run; so its parent stays until rank 0's has ended. */
    _Atomic uint32_t guarded;
    /* The rank: it goes on without others; it will end with a failure, and not by MPI's end. */
    _Atomic uint32_t survived;
    char results[4096];     /* rank 0's file; "": none */
    _Atomic uint32_t noted; /* losses that rank 0 has written down */
    _Atomic uint32_t lost_count;
    struct nw_lifeline_loss lost[NW_LIFELINE_LOST_MAX]; /* in the order of rank 0's parent */
};

#endif
