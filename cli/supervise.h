/* Private to cli/. A rank under watch: the process that mpirun started only waits; its child is the
 * rank.
 *
 * When the rank is killed, crashes or hangs, the parent is still there to say which rank, on which
 * host, in which case, and to end with exit code 4, so that what was measured is found and the
 * launcher stops the other ranks. Where these can go on without it (bench/lifeline.h), the parent
 * stays until rank 0's has ended. The child reports where it is through memory that both share. In
 * `ps` the parent is "nw-supervise".
 */
#ifndef NW_CLI_SUPERVISE_H
#define NW_CLI_SUPERVISE_H

#include <stddef.h>
#include <stdint.h>

#include "bench/lifeline.h"

struct nw_supervision {
    size_t shared_bytes;                       /* zeroed before `work` begins */
    int (*work)(void *argument, void *shared); /* the rank; returns the exit code */
    void *argument; /* of `work`; as it was when nw_supervise was called */
    void (*describe)(const void *shared, char *text,
                     size_t size);                 /* "all_reduce 1 MiB, timing; 31 records kept" */
    uint64_t (*deadline_ns)(const void *shared);   /* of nw_now_ns(); 0: no deadline now */
    struct nw_lifeline *(*lifeline)(void *shared); /* in it; NULL: other ranks are not watched */
};

/* `argc` and `argv` are the program's own, only renamed. Returns the exit code: the rank's own, or
 * 4 when it did not end by itself. */
int nw_supervise(const struct nw_supervision *supervision, int argc, char **argv);

#endif
