/* Public. What a machine's paths can carry: the physical ceiling (arithmetic over what was read)
 * and beside it what healthy machines reach (published measurements, with their source).
 *
 * All rates are bytes per second in one direction. Unknown is NAN, and `why` says what is missing;
 * a ceiling is never guessed.
 *
 *     struct nw_ceiling pair;
 *     nw_ceiling_pair(topo, gpu, nic, &pair);
 *     if (isfinite(pair.bytes_per_s)) printf("%s: %g by %s\n", nw_class_name(pair.class_id), …);
 */
#ifndef NW_TOPO_CEILING_H
#define NW_TOPO_CEILING_H

#include "topo/link.h"
#include "topo/topo.h"

struct nw_ceiling {
    nw_class class_id;
    nw_link_kind link; /* NVLINK or XGMI where such a link carries it, else PCI */
    int lane_count;    /* of that link; 0: unknown or PCIe */
    double bytes_per_s;
    double low, high;          /* expected, bytes/s; NAN: no published measurement */
    const char *source;        /* of the efficiencies; "": none */
    double socket_bytes_per_s; /* what joins the sockets on the way, all its links; NAN: none on the
                                  way, or unknown (`why`) */
    char by[96];               /* what limits: "18 NVLinks of 25 GB/s", "PCIe Gen5 x16 at gpu0" */
    char why[160];             /* why something is unknown, or how to read it; "": nothing to say */
};

/* Two devices (GPU, NIC or port of one). */
void nw_ceiling_pair(const struct nw_topo *topo, int a, int b, struct nw_ceiling *ceiling_out);

/* The link of a PCI device at best: the lesser of what it and its slot can do, at the width that it
 * has. NAN: unknown. */
double nw_ceiling_pcie(const struct nw_topo *topo, int node);

/* All NVLinks of one GPU to other GPUs, one way: through switches active links x rate, in a direct
 * mesh the sum over its peers. NAN: no NVLink, or unknown. Both outs may be NULL. */
double nw_ceiling_nvlink(const struct nw_topo *topo, int gpu, int *lane_count_out,
                         bool *switched_out);

/* What the node can send to other nodes. */
struct nw_ceiling_network {
    double bytes_per_s;     /* summed over the physical ports that count; NAN: unknown */
    double nic_bytes_per_s; /* the fastest card near one GPU; NAN */
    int port_count;         /* physical ports that count */
    int left_out_count;     /* NICs that do not */
    char ports[200];        /* names of those that count: "mlx5_0, mlx5_1" */
    char left_out[300];     /* "mlx5_3 (far from all GPUs), eth0 (no RDMA)" */
    char why[160];          /* why unknown */
};
void nw_ceiling_network(const struct nw_topo *topo, struct nw_ceiling_network *network_out);

/* A collective over all GPUs of `host_count` such nodes. */
struct nw_ceiling_collective {
    const char *collective, *algorithm; /* rows of nw_ceiling_collectives */
    int gpu_count, host_count;
    double bus_bytes_per_s; /* the busbw at which a wire is full; NAN: unknown */
    double low, high;       /* busbw to expect; NAN: no published measurement */
    const char *source;     /* of the efficiencies */
    const char *bound;      /* "NVLink" "XGMI" "PCIe" "network"; "": unknown */
    char why[160];
};
struct nw_ceiling_coll_row {
    const char *collective, *algorithm;
};
/* What can be asked for; ends with a row whose names are NULL. */
extern const struct nw_ceiling_coll_row nw_ceiling_collectives[];
/* `network` of nw_ceiling_network. NW_ENOTSUP: no such row, or the machine cannot run it (NVLS
 * without NVSwitch and compute capability 9). */
nw_rc nw_ceiling_collective(const struct nw_topo *topo, const struct nw_ceiling_network *network,
                            const char *collective, const char *algorithm, int host_count,
                            struct nw_ceiling_collective *ceiling_out);
/* busbw / algbw of nccl-tests for n ranks: all_reduce 2(n-1)/n and so on; NAN: unknown name. */
double nw_ceiling_bus_factor(const char *collective, int rank_count);

#endif
