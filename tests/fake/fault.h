/* Private to tests/fake/. Faults on request:
 *
 *     FAKE_FAULT=KIND[=VALUE]:RANK:COLLECTIVE:NTH[@LANE][,…]
 *
 * RANK is that of the communicator, or *; for alloc, copy and gemm that of mpirun. COLLECTIVE is a
 * collective's key, init (making a communicator), finalize, alloc (device memory), copy (by the
 * copy engines, 4 KiB or more), gemm (matrix products: corrupt, slow), or * (any collective). NTH
 * is the how-manieth call, from 1, of that collective (with *: of any) on its communicator, of
 * init, alloc, copy and gemm in its process; 5+ from the fifth on; * every. LANE is a [lane] or
 * [wire] of the machine
 * file. Default values: slow=3%, slowlink=3, corrupt=50% (where in the result).
 */
#ifndef NW_TESTS_FAKE_FAULT_H
#define NW_TESTS_FAKE_FAULT_H

#include <stdbool.h>

/* X(id, name) */
#define FK_FAULT_MAP(X)                                                                            \
    X(FK_FAULT_ERROR, "error")       /* the call answers ncclSystemError */                        \
    X(FK_FAULT_HANG, "hang")         /* the rank never arrives */                                  \
    X(FK_FAULT_INITHANG, "inithang") /* the same, in making a communicator */                      \
    X(FK_FAULT_ASYNC, "async")       /* an asynchronous ncclRemoteError; the work never ends */    \
    X(FK_FAULT_CORRUPT, "corrupt")   /* one bit of the rank's result is wrong */                   \
    X(FK_FAULT_SLOW, "slow")         /* =3%: its part lasts longer; =100us: it arrives later */    \
    X(FK_FAULT_SLOWLINK, "slowlink") /* =3: everybody's transfer lasts three times as long */      \
    X(FK_FAULT_CRASH, "crash")       /* SIGKILL */                                                 \
    X(FK_FAULT_OOM, "oom")           /* no device memory */

typedef enum {
#define X(id, name) id,
    FK_FAULT_MAP(X)
#undef X
        FK_FAULT_COUNT
} fk_fault_kind;

/* What to do to one call: bit k is set for kind k. */
struct fk_faults {
    unsigned kinds;
    double slow_factor, late_us, link_factor, corrupt_at;
};

/* Of the `nth` call (from 1) of `what` by `rank`, the `nth_any` of any collective. */
struct fk_faults fk_faults_of(const char *what, int rank, long nth, long nth_any);
static inline bool fk_fault_has(const struct fk_faults *faults, fk_fault_kind kind)
{
    return faults->kinds >> kind & 1;
}
/* This process's rank as its launcher says (OMPI_COMM_WORLD_RANK and the like); 0 without one. */
int fk_process_rank(void);
/* Reads FAKE_FAULT; a mistake in it ends the process. */
void fk_faults_check(void);

#endif
