/* Public. What a link can carry at most, by arithmetic from its generation and width: the physical
 * ceiling, one way. Sources: PCI Express Base Specification (transfer rate, encoding),
 * link.c for the efficiencies.
 */
#ifndef NW_TOPO_LINK_H
#define NW_TOPO_LINK_H

#include <stdbool.h>

/* PCIe payload ceiling of generation 1..6 and width 1..32 in bytes/s: GT/s × lanes × encoding / 8.
 * Gen3 x16 15.75, Gen4 x16 31.5, Gen5 x16 63.0 GB/s. NAN for an unknown generation or width. */
double nw_pcie_bytes_per_s(int generation, int lanes);
/* The generation and width (16, 8, 4, 2, 1) nearest to a payload rate within 3 %; 0 when none is.
 * Several pairs share a rate (Gen3 x16 = Gen4 x8): the widest is named. */
void nw_pcie_from_rate(double bytes_per_s, int *generation_out, int *lanes_out);
/* One NVLink, one way, by the link's generation 1..5: 20, 25, 25, 25, 50 GB/s. NAN: unknown. */
double nw_nvlink_bytes_per_s(int generation);
/* The same by the GPU: its name, or its compute capability (90 for 9.0; NAN: unknown). Links of the
 * RTX cards of generation 3 are 14.0625 GB/s. */
double nw_nvlink_bytes_per_s_of(const char *model, double capability);
/* One XGMI link between AMD GPUs, one way, by the GPU's name. NAN: unknown. */
double nw_xgmi_bytes_per_s(const char *model);
/* What joins two sockets, by the CPU's name or "GenuineIntel family 6 model 143". */
struct nw_socket_link {
    int link_count;     /* at most, of one socket; boards may use fewer; 0: unknown */
    double bytes_per_s; /* one link, one way; NAN: unknown */
    const char *name;   /* "UPI 2.0 16 GT/s"; "": unknown */
};
struct nw_socket_link nw_socket_link(const char *cpu);
/* NIC: Gb/s as sold to bytes/s. */
double nw_nic_bytes_per_s(double gbit_per_s);

/* Efficiency that a healthy path reaches, as a fraction of its ceiling: [low, high] with source in
 * link.c. */
struct nw_efficiency {
    double low, high;
    const char *source;
};
struct nw_efficiency nw_pcie_efficiency(void);
/* From GPU to GPU over PCIe; near: below one host bridge's switches (PIX, PXB). */
struct nw_efficiency nw_pcie_peer_efficiency(bool near);
struct nw_efficiency nw_pcie_collective_efficiency(void);
struct nw_efficiency nw_nvlink_copy_efficiency(void);
/* All-gather and reduce-scatter; all-to-all. */
struct nw_efficiency nw_nvlink_gather_efficiency(void);
struct nw_efficiency nw_nvlink_alltoall_efficiency(void);
struct nw_efficiency nw_nvlink_collective_efficiency(void);
/* NVLS: the switch reduces; to be held against algbw (n+1)/n. */
struct nw_efficiency nw_nvlink_switch_efficiency(void);
struct nw_efficiency nw_rdma_efficiency(void);            /* one NIC, one transfer */
struct nw_efficiency nw_rdma_collective_efficiency(void); /* a node's NICs, ring all-reduce */
struct nw_efficiency nw_rdma_far_efficiency(void);        /* GPU memory through a host bridge */
struct nw_efficiency nw_rdma_alltoall_efficiency(void);   /* two nodes */
struct nw_efficiency nw_tcp_efficiency(void);

#endif
