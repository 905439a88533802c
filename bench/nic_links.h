/* Private to bench/. The connections of one round of NIC pairs, and one measurement over them.
 *
 * Everybody calls everything in the same order; a rank without a NIC in the round takes part in the
 * barriers. A pair that fails (no way between them, a NIC that gives up) is left out from then on
 * and does not end the run: nw_nic_failure says what happened.
 *
 *     NW_TRY(nw_nic_links_open(bench, &nics, &round, &ask, &links));     // collective
 *     NW_TRY(nw_nic_measure(links, &task, records));                     // collective
 *     nw_nic_links_close(links);
 */
#ifndef NW_BENCH_NIC_LINKS_H
#define NW_BENCH_NIC_LINKS_H

#include "bench/nics.h"

/* Message sizes are multiples of it. */
#define NW_NIC_WORD 8
/* Of latencies and message rates. */
#define NW_NIC_SMALL_BYTES 8

struct nw_nic_ask { /* of each connection; the most that a task will use */
    int qps, depth;
    uint64_t bytes;
    bool gpu; /* memory of the ranks' GPUs */
};

enum { NW_NIC_FORTH = 1, NW_NIC_BACK = 2 }; /* from a to b; from b to a */

struct nw_nic_kind { /* a measurement of a pair, as the cases list them */
    const char *name;
    nw_verbs_op op;
    unsigned ways;
    bool ping, small;
    bool off_rail; /* case nic: also between NICs of different places */
    bool host_only;
};

struct nw_nic_task {
    nw_verbs_op op;
    bool ping;
    unsigned ways;
    uint64_t bytes; /* of a message */
    int qps, depth;
    const char *title;
    const int *group_of_pair; /* pairs whose slowest counts; -1: looks on; NULL: each for itself */
    int group_count;
};

struct nw_nic_links;
nw_rc nw_nic_links_open(struct nw_bench *bench, const struct nw_nics *nics,
                        const struct nw_nic_round *round, const struct nw_nic_ask *ask,
                        struct nw_nic_links **links_out);
void nw_nic_links_close(struct nw_nic_links *links);

/* NW_OK: the pair works. Why it does not, remedy included, is known on rank 0; elsewhere "". */
nw_rc nw_nic_rc(const struct nw_nic_links *links, size_t pair);
const char *nw_nic_why(const struct nw_nic_links *links, size_t pair);

struct nw_nic_settled { /* of a pair; known on rank 0, elsewhere 0 and "" */
    uint32_t mtu_bytes;
    int depth;
    char gid_a[64], gid_b[64]; /* "192.0.2.1 (index 1)"; "": addressed by LID */
    char memory[32];           /* "host", "gpu (dma-buf)" */
};
const struct nw_nic_settled *nw_nic_settled(const struct nw_nic_links *links, size_t pair);

/* One record a group, whose identities are set: times, rates, check. A group of which a pair has
 * failed gets that failure's rc and no time. */
nw_rc nw_nic_measure(struct nw_nic_links *links, const struct nw_nic_task *task,
                     struct nw_record *records);
/* Of the last measurement, the same on all ranks: what the pair's own ends did from their first
 * request to their last completion, though others of its group took longer: the median, bytes/s of
 * one way; of both ways the slower one. NAN: not in it, a ping, or it failed. */
double nw_nic_own_rate(const struct nw_nic_links *links, size_t pair);
/* Writes from a to b for about `ns`, without samples: bytes/s of each pair, the same on all ranks;
 * NAN where it failed. For finding out what suits. */
nw_rc nw_nic_probe(struct nw_nic_links *links, int qps, int depth, uint64_t bytes, double ns,
                   double *rates);

#endif
