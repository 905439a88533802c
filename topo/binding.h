/* Public. Where ranks run, held against where their GPUs and NICs are: not bound, bound to the far
 * socket, several on one core; and the mpirun options that put each rank beside its GPU.
 *
 *     nw_rank_place_read("/sys", &place);                        // of the calling thread
 *     place.rank = …, place.host = …, place.gpu = nw_rank_place_gpu(topo, local_rank, visible);
 *     NW_TRY(nw_rank_place_judge(&input, &findings, &advice));
 *     if (advice.map_by[0] != '\0') …  else if (advice.rankfile != NULL) …
 *     nw_rank_place_advice_free(&advice);
 */
#ifndef NW_TOPO_BINDING_H
#define NW_TOPO_BINDING_H

#include <jansson.h>

#include "base/finding.h"
#include "topo/topo.h"

#define NW_PLACE_CPUS  1024 /* CPU_SETSIZE of glibc */
#define NW_PLACE_NUMAS 64

struct nw_rank_place { /* of one rank */
    int rank, host;    /* index of its host */
    int local_rank;
    int gpu;                            /* index among the host's GPUs; -1: none, or unknown */
    char cpus[128];                     /* hardware threads, "0-3,8"; cut when longer */
    uint64_t cores[NW_PLACE_CPUS / 64]; /* bit i: the core whose first hardware thread is i */
    uint64_t numas;                     /* bit i: NUMA node i (OS index); 0: unknown */
    int core_count;                     /* of `cores` */
    int host_core_count;                /* of the host, online; 0: unknown */
};

/* `sys`: "/sys", or a test's tree. Fills what belongs to the CPUs. */
void nw_rank_place_read(const char *sys, struct nw_rank_place *place);
/* For tests and for what came as text: from a list of CPUs, with the same tree. NW_EUSAGE. */
nw_rc nw_rank_place_read_cpus(const char *sys, const char *cpus, struct nw_rank_place *place);
/* The GPU that a rank works on: `visible` (CUDA_VISIBLE_DEVICES; NULL: all) by its local rank. -1:
 * none of that number, or a spelling that is not known. */
int nw_rank_place_gpu(const struct nw_topo *topo, int local_rank, const char *visible);

nw_rc nw_rank_place_to_json(const struct nw_rank_place *place, json_t **json_out);
nw_rc nw_rank_place_from_json(const json_t *json, const char *what,
                              struct nw_rank_place *place_out);

struct nw_rank_place_input {
    struct nw_topo *const *hosts; /* NULL entries: not read */
    size_t host_count;
    const struct nw_rank_place *places; /* of the ranks that answered, by rank */
    size_t place_count;
};

/* How to start one rank a GPU (as many ranks as there are, where no GPU is seen), in the words of
 * Open MPI 4.1 and 5; a test holds them against mpirun 4.1.4. */
struct nw_rank_place_advice {
    char map_by[96]; /* "--map-by ppr:4:numa:pe=8 --bind-to core"; "": none fits */
    char *rankfile;  /* for mpirun --rankfile, where no --map-by fits; NULL */
    char why[256];   /* why no --map-by fits, or why nothing can be said */
};

nw_rc nw_rank_place_advise(const struct nw_rank_place_input *input,
                           struct nw_rank_place_advice *advice_out);
void nw_rank_place_advice_free(struct nw_rank_place_advice *advice);
nw_rc nw_rank_place_judge(const struct nw_rank_place_input *input,
                          const struct nw_rank_place_advice *advice, struct nw_findings *findings);

#endif
