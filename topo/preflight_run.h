/* Private to topo/. What the preflight rules share: telling a finding of a device, and short ways
 * to the facts.
 *
 *     NW_TRY(nw_tell(run, host, gpu, NW_FINDING_WARN, "mig-on", "nvidia-smi -mig 0", "MIG is on"));
 *     NW_TRY(nw_tell_effect(run, NAN, "…"));
 */
#ifndef NW_TOPO_PREFLIGHT_RUN_H
#define NW_TOPO_PREFLIGHT_RUN_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "topo/preflight.h"

#define NW_ALL_HOSTS ((size_t)-1)
#define NW_NAMES_MAX 320
/* A800 and H800 have eight NVLinks of 25 GB/s. */
#define NW_CUT_DOWN_LINKS 8

struct nw_preflight_place {
    size_t host; /* NW_ALL_HOSTS: of no single one */
    int node;    /* 0: the machine */
};

struct nw_preflight_run {
    const struct nw_preflight_input *input;
    struct nw_findings told; /* `where` is "" where `places` says it */
    struct nw_preflight_place *places;
    size_t place_capacity;
    char (*gaps)[2048]; /* of each host: what was not checked */
};

nw_rc nw_tell(struct nw_preflight_run *run, size_t host, int node, nw_severity severity,
              const char *code, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 7, 8)));
/* What the last finding costs. */
#define nw_tell_effect(run, lost, ...) nw_findings_effect(&(run)->told, lost, __VA_ARGS__)
/* Where the last finding is, in a reader's words; its host's name or file alone is not kept. */
nw_rc nw_tell_where(struct nw_preflight_run *run, size_t host, const char *where);
/* "PCIe speed under load (load a GPU)": goes into the host's "not-checked". */
void nw_gap(struct nw_preflight_run *run, size_t host, const char *what);

static inline const struct nw_topo *nw_run_host(const struct nw_preflight_run *run, size_t host)
{
    return run->input->hosts[host];
}

/* A number read somewhere as a whole one of 0 to 65535; 0: unknown, or none of these. */
static inline int nw_small(double number)
{
    return number > 0 && number < 65536 ? (int)number : 0;
}

/* Is the fact known and set (a yes, or a number that is not 0)? Known and not set? */
static inline bool nw_is_yes(const struct nw_topo *topo, int node, nw_fact_id id)
{
    const double number = nw_topo_number(topo, node, id);

    return !isnan(number) && number != 0;
}

static inline bool nw_is_no(const struct nw_topo *topo, int node, nw_fact_id id)
{
    return nw_topo_number(topo, node, id) == 0;
}

static inline bool nw_text_is(const struct nw_topo *topo, int node, nw_fact_id id, const char *text)
{
    const char *known = nw_topo_text(topo, node, id);

    return known != NULL && strcmp(known, text) == 0;
}

/* Over the nodes of a kind: for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;) */
int nw_next(const struct nw_topo *topo, nw_node_kind kind, int after);
/* How many of a kind know this fact. */
int nw_count_known(const struct nw_topo *topo, nw_node_kind kind, nw_fact_id id);
/* Does some source say something of RDMA on this machine, and a port that is not down? */
bool nw_is_rdma(const struct nw_topo_node *nic);
int nw_count_rdma(const struct nw_topo *topo);
bool nw_is_alike(const struct nw_topo_node *a, const struct nw_topo_node *b); /* kind and model */
/* Ordinary desktop and workstation cards idle, and carry a display: GeForce, TITAN, Quadro, RTX. */
bool nw_is_consumer(const struct nw_topo_node *gpu);
/* Grace CPUs: NVLink-C2C to the GPUs; every NIC is SYS though it hangs on the same CPU. */
bool nw_is_grace(const struct nw_topo *topo);
bool nw_is_virtual(const struct nw_topo *topo); /* known to be a virtual machine */
/* Median of `count` values, which it sorts; NAN for none. */
double nw_median(double *values, size_t count);

/* "node1"; "host 3" where it has no name. */
const char *nw_host_name(const struct nw_preflight_run *run, size_t host, char text[96]);
/* Appends what was told of this severity, joined. */
nw_rc nw_preflight_join(struct nw_preflight_run *run, nw_severity severity,
                        struct nw_findings *findings);

/* The rules, by what they look at. */
nw_rc nw_preflight_hosts_counts(struct nw_preflight_run *run);
nw_rc nw_preflight_hosts_alike(struct nw_preflight_run *run);
nw_rc nw_preflight_hosts_devices(struct nw_preflight_run *run);
nw_rc nw_preflight_siblings(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_gpu_count(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_product(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_nvlinks(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_fabric(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_memory(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_throttle(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_power(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_modes(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_xid(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_pcie_width(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_pcie_speed(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_pcie_errors(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_acs(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_switches(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_iommu(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_gpudirect(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_ports(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_port_rates(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_cards(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_mtu(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_mtu_hosts(struct nw_preflight_run *run);
nw_rc nw_preflight_losses(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_nic_names(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_nic_names_hosts(struct nw_preflight_run *run);
nw_rc nw_preflight_nic_place(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_gpu_place(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_cpu(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_limits(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_clock(struct nw_preflight_run *run, size_t host);
nw_rc nw_preflight_data(struct nw_preflight_run *run, size_t host);

#endif
