/* Private to topo/. RDMA devices and network interfaces of a machine, from its sysfs (the real one,
 * a copy, a JSON map: topo/files.h), and of the live machine what sysfs does not tell.
 * Formats: Linux Documentation/ABI/stable/sysfs-class-infiniband, testing/sysfs-class-infiniband,
 * testing/sysfs-class-net.
 */
#ifndef NW_TOPO_LIVE_RDMA_H
#define NW_TOPO_LIVE_RDMA_H

#include "topo/files.h"
#include "topo/topo.h"

/* Ports, GIDs, counters of every RDMA device and the interfaces of every NIC. NICs that the
 * topology lacks (software RDMA, hidden by hwloc) are added. */
nw_rc nw_rdma_read(const struct nw_files *files, struct nw_topo *topo);
/* The same for the live machine, with verbs and IP addresses where `sys` is the real /sys. */
nw_rc nw_rdma_live(const char *sys, struct nw_topo *topo);

/* MTU in force and at most, by libibverbs. Nothing where the library is not installed; a finding
 * "not-checked" where devices are there and may not be opened. */
nw_rc nw_rdma_verbs(struct nw_topo *topo);
/* IP addresses of the process's network namespace, as facts of NICs and ports. */
nw_rc nw_rdma_addresses(struct nw_topo *topo);
/* Interfaces of one NIC: name, MTU, MAC address; `folder` is where its net/ folder is ("" where
 * only class/net is to be looked at). */
nw_rc nw_rdma_interfaces(const struct nw_files *files, struct nw_topo *topo, int nic);
/* "eth0" of port 1 of a device whose PCI folder is `folder`; false: none. */
bool nw_rdma_interface_of_port(const struct nw_files *files, const char *folder, int number,
                               char name[32]);

#endif
