/* Public. What `check` reads of the live system beside its devices: kernel, drivers' modules,
 * IOMMU, virtual machine and container, limits, services, schedulers, shared file systems, library
 * versions. All of it becomes facts of the machine (topo/facts.h) with the file that said so;
 * what could not be read stays unknown. No root needed; what root or the host outside a container
 * would add is named in one finding "not-checked".
 *
 *     NW_TRY(nw_system_read(&(struct nw_system_places){.root = ""}, topo));
 *     NW_TRY(nw_system_probe_python(topo, 20));
 */
#ifndef NW_TOPO_SYSTEM_H
#define NW_TOPO_SYSTEM_H

#include "topo/topo.h"

struct nw_system_places {
    const char *root;               /* stands before /proc, /sys, /etc …; "": the live system */
    const char *const *environment; /* "NAME=value", ends with NULL; NULL: this process's */
};

nw_rc nw_system_read(const struct nw_system_places *places, struct nw_topo *topo);

/* Starts python3 and imports torch: seconds, and memory for CUDA's libraries. Facts of PyTorch; a
 * missing torch is the fact "absent", a missing python3 none; a torch that cannot be imported is a
 * finding "pytorch-broken", no answer in time part of "not-checked". `program`: NULL for python3.
 */
nw_rc nw_system_probe_python(struct nw_topo *topo, const char *program, double limit_s);

/* The kernel's log: GPU errors (Xid), PCIe limits and errors, links that went down, as facts of the
 * devices that are there. Where it may not be read: part of "not-checked". */
nw_rc nw_kernel_log_live(struct nw_topo *topo);

/* Adds to the finding "not-checked" of this machine: "ACS of 4 bridges (run as root)": what,
 * why, and how to learn it. */
nw_rc nw_topo_not_checked(struct nw_topo *topo, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
