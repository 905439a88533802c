/* Private to bench/. The RDMA ports (NICs) of all hosts of a run, who drives each, and which meet
 * which in which round.
 *
 *     NW_TRY(nw_nics_open(bench, &nics));                       // collective
 *     if (nw_nics_are_here(bench, &nics))
 *         NW_TRY(nw_nic_rounds_of_pairs(nics.items, nics.count, hosts, true, &rounds));
 *     nw_nic_rounds_free(&rounds);
 *     nw_nics_close(&nics);
 */
#ifndef NW_BENCH_NICS_H
#define NW_BENCH_NICS_H

#include "bench/case.h"
#include "collectives/verbs.h"

struct nw_nic {
    char name[72];   /* "mlx5_0/1" */
    char device[64]; /* "mlx5_0" */
    int number;      /* of the port */
    int host;
    int owner; /* the rank that drives it */
    bool infiniband;
    bool software;     /* its rate is no wire's */
    double bits_per_s; /* one way; NAN: unknown */
    uint32_t mtu_bytes;
    char pci[16]; /* "0000:17:00.0"; "": unknown */
};

struct nw_nics {
    struct nw_verbs *verbs; /* this rank's */
    struct nw_nic *items;   /* by host, then as the library lists them; the same on all ranks */
    size_t count;
    char (*why)[240];  /* of each host without one */
    char (*down)[240]; /* of each host: of its ports one that is left out, and why; "": none */
    int *down_count;   /* how many */
};

/* Collective. The active ports that the plan's --ib-dev and --ib-port leave. No RDMA is no failure.
 */
nw_rc nw_nics_open(struct nw_bench *bench, struct nw_nics *nics_out);
void nw_nics_close(struct nw_nics *nics); /* leaves it empty */
/* False, with a note: no host has one. A host without where others have one is warned of. */
bool nw_nics_are_here(struct nw_bench *bench, const struct nw_nics *nics);
/* This rank's port of that name; NULL: it is not its own. */
const struct nw_verbs_port *nw_nics_port(const struct nw_nics *nics, const struct nw_nic *nic);
/* What its bytes can come to, one way: the port's rate less RoCE's or InfiniBand's headers at an
 * MTU (docs/measuring.md). NAN: unknown, or software. */
double nw_nic_ceiling(const struct nw_nic *nic, uint32_t mtu_bytes);

typedef enum { NW_RAIL_NONE, NW_RAIL_NAME, NW_RAIL_PCI, NW_RAIL_PLACE } nw_rail;

struct nw_nic_pair { /* indices of nics; data go from a to b */
    int a, b;
    nw_rail rail; /* by what the two were taken for each other's counterpart; none: they are not */
};
/* The counterparts of two hosts' NICs, in the order of host_a's: those of one name, then of one PCI
 * address, then of one place in what is left of the lists. InfiniBand and RoCE do not meet. `pairs`
 * has room for all of host_a's; how many there are is returned. */
size_t nw_nic_rails(const struct nw_nic *nics, size_t count, int host_a, int host_b,
                    struct nw_nic_pair *pairs);
/* Once a run: that names differ, where pairs were matched otherwise. */
void nw_nic_tell_rails(struct nw_bench *bench, const struct nw_nics *nics,
                       const struct nw_nic_pair *pairs, size_t count);
struct nw_nic_round { /* at the same time */
    struct nw_nic_pair *pairs;
    size_t count;
};
struct nw_nic_rounds {
    struct nw_nic_round *items;
    size_t count;
};
void nw_nic_rounds_free(struct nw_nic_rounds *rounds);

/* Neighbouring hosts (0 and 1, 2 and 3 …; an odd last one and the first) and in each round one NIC
 * of each: first the rails, then (`all`) each with each. InfiniBand and RoCE do not
 * meet. */
nw_rc nw_nic_rounds_of_pairs(const struct nw_nic *nics, size_t count, int host_count, bool all,
                             struct nw_nic_rounds *rounds_out);

#endif
