/* Private to cli/. What rank 0 of a check gathers: of each host its topology, its interfaces and
 * whom it reaches; of each rank where it runs. Nobody waits for a host that stays silent.
 *
 * Every rank calls nw_check_gather; it returns on rank 0 when all is here or what is missing has
 * been silent for the time allowed, on the others when rank 0 says so. The gathering owns all that
 * is in it.
 *
 *     NW_TRY(nw_check_gather(comm, &how, &gathered));
 *     … gathered.hosts[i].topo …
 *     nw_check_gathered_free(&gathered);
 */
#ifndef NW_CLI_CHECK_GATHER_H
#define NW_CLI_CHECK_GATHER_H

#include <jansson.h>

#include "base/finding.h"
#include "bench/status.h"
#include "cli/check_read.h"
#include "collectives/comm.h"
#include "collectives/reach.h"
#include "topo/binding.h"
#include "topo/topo.h"

struct nw_check_host {
    char name[64];
    int rank_count;
    struct nw_topo *topo;       /* NULL: not read */
    bool answered;              /* its first rank said everything it had to say */
    char phase[96];             /* the last it said of itself */
    char mpi[128], version[64]; /* MPI library and this program; "" unknown */
    struct nw_reach_end end;    /* port 0: unknown */
    struct nw_reach_try *tries; /* NULL: unknown */
    size_t try_count;
    bool tried;
};

struct nw_check_gathered {
    struct nw_check_host *hosts;
    size_t host_count;
    struct nw_rank_place *places; /* of ranks that answered, by rank */
    size_t place_count;
    json_t **environments;       /* of each rank, allow-listed variables; NULL: no answer */
    int rank_count;              /* of the job; 0: from files */
    struct nw_findings findings; /* of gathering: who did not answer, what could not be read */
    bool all_answered;           /* MPI can be ended in order */
};

struct nw_check_how {
    struct nw_check_wish wish;
    double silence_ns; /* a host that says nothing for so long is left out */
    const char *version;
    struct nw_check_reader *reader; /* started before MPI, where it was known that this rank reads;
                                       NULL */
    struct nw_bench_status *status; /* of whoever watches this rank; may be NULL */
};

/* Takes how->reader. Complete on rank 0, empty elsewhere. */
nw_rc nw_check_gather(struct nw_comm *comm, const struct nw_check_how *how,
                      struct nw_check_gathered *gathered_out);
void nw_check_gathered_free(struct nw_check_gathered *gathered);

#endif
