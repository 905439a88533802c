/* Public. What one machine is: a tree of nodes (packages, NUMA nodes, PCI bridges, devices) and
 * links between devices.
 *
 * Readers fill it (nw_topo_read_live, the table nw_topo_formats); everybody else only reads it.
 * nw_topo_free frees all. "Not in this file" is not "not in this machine": when the source carries
 * no I/O objects, NW_TOPO_NO_IO is set and no statement about GPUs, NICs or disks may be made.
 *
 *     struct nw_topo *topo;
 *     NW_TRY(nw_topo_read_live(&topo));
 *     printf("%s: %d GPUs\n", topo->host, nw_topo_count(topo, NW_NODE_GPU));
 *     nw_topo_free(topo);
 */
#ifndef NW_TOPO_TOPO_H
#define NW_TOPO_TOPO_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/finding.h"
#include "topo/facts.h"

/* X(enumerator, key in JSON, title for people) */
#define NW_NODE_KIND_MAP(X)                                                                        \
    X(NW_NODE_MACHINE, "machine", "machine")                                                       \
    X(NW_NODE_PACKAGE, "package", "package")                                                       \
    X(NW_NODE_NUMA, "numa", "NUMA node")                                                           \
    X(NW_NODE_BRIDGE, "bridge", "PCI bridge")                                                      \
    X(NW_NODE_GPU, "gpu", "GPU")                                                                   \
    X(NW_NODE_NIC, "nic", "NIC")                                                                   \
    X(NW_NODE_DISK, "disk", "disk")                                                                \
    X(NW_NODE_PCI, "pci", "PCI device")                                                            \
    X(NW_NODE_PORT, "port", "port of a NIC")

typedef enum {
#define X(kind, key, title) kind,
    NW_NODE_KIND_MAP(X)
#undef X
        NW_NODE_KIND_COUNT
} nw_node_kind;

/* X(enumerator, key in JSON, title for people) */
#define NW_LINK_KIND_MAP(X)                                                                        \
    X(NW_LINK_PCI, "pci", "PCIe")                                                                  \
    X(NW_LINK_NVLINK, "nvlink", "NVLink")                                                          \
    X(NW_LINK_OTHER, "other", "link")                                                              \
    X(NW_LINK_XGMI, "xgmi", "XGMI")                                                                \
    X(NW_LINK_C2C, "c2c", "NVLink-C2C")

typedef enum {
#define X(kind, key, title) kind,
    NW_LINK_KIND_MAP(X)
#undef X
        NW_LINK_KIND_COUNT
} nw_link_kind;

struct nw_topo_node {
    nw_node_kind kind;
    int parent;         /* index of the node above it, always smaller than its own; -1: the machine
                           itself (index 0) */
    char name[64];      /* "package0" "numa1" "gpu0" "mlx5_0" "eth0" "nvme0n1" */
    char model[128];    /* "NVIDIA H100 80GB HBM3", CPU model, disk model; NUMA node: "" RAM, "GPU
                           memory", "persistent memory"; machine: product name; "": unknown */
    char pci[16];       /* "0000:17:00.0"; "": not a PCI device */
    uint32_t pci_class; /* 0x0302 = 3D controller; 0: unknown */
    uint32_t pci_vendor, pci_device;
    int numa;                 /* OS index of the nearest NUMA node; -1: unknown */
    int core_count, pu_count; /* package: its cores and hardware threads; 0: unknown */
    uint64_t memory_bytes;    /* NUMA: RAM; GPU: VRAM; disk: capacity; 0: unknown */
    double link_bytes_per_s;  /* PCI devices: the link as it runs now, one way, payload ceiling; 0:
                                 unknown */
    double link_max_bytes_per_s; /* the same at the best speed and width that both ends can do (an
                                    idle GPU runs its link slower); 0: unknown */
    int link_lanes, link_max_lanes; /* PCIe width now and at best; 0: unknown */
    double rate_bits_per_s;         /* NIC: summed over its active ports; 0: unknown */
    int port_up;       /* NIC: 1 a port is active, 0 none is, -1 unknown (and every other kind) */
    char fabric[16];   /* NIC: "ethernet" "infiniband" "roce" "cxi" "efa" "iwarp" "omnipath" "wifi";
                          "": unknown */
    char os_names[96]; /* every OS device of this PCI device, blank-separated: "mlx5_0 ib0", "cuda0
                          nvml0" */
    int first_link;    /* 1 + index of the newest link that ends here, which are chained; 0: none */
    int first_fact;    /* 1 + index of the newest of its facts, which are chained; 0: none. Kept by
                          nw_topo_set_number and _text */
};

struct nw_topo_link { /* beyond the tree: NVLink and the like; one way */
    int a, b;         /* node indexes */
    nw_link_kind kind;
    int lane_count;           /* NVLinks in the bundle; 0: unknown */
    double bytes_per_s;       /* one direction, whole bundle; 0: unknown */
    int next_of_a, next_of_b; /* 1 + index of the next link that ends at a, at b; 0: none. Kept by
                                 nw_topo_add_link */
};

/* How two devices are joined, nearest first, in the field's names (nvidia-smi topo -m): SELF the
 * same device, PIX at most one PCIe bridge, PXB several and no host bridge, PHB one host bridge,
 * NODE several host bridges of one NUMA node, SYS across NUMA nodes.
 * X(enumerator, name) */
#define NW_CLASS_MAP(X)                                                                            \
    X(NW_CLASS_UNKNOWN, "?")                                                                       \
    X(NW_CLASS_SELF, "X")                                                                          \
    X(NW_CLASS_NV, "NV")                                                                           \
    X(NW_CLASS_PIX, "PIX")                                                                         \
    X(NW_CLASS_PXB, "PXB")                                                                         \
    X(NW_CLASS_PHB, "PHB")                                                                         \
    X(NW_CLASS_NODE, "NODE")                                                                       \
    X(NW_CLASS_SYS, "SYS")

typedef enum {
#define X(class_id, name) class_id,
    NW_CLASS_MAP(X)
#undef X
        NW_CLASS_COUNT
} nw_class;

/* What a tool said of a pair, where the tree cannot tell or to hold the tree against. */
struct nw_topo_stated {
    int a, b; /* node indexes, a < b */
    nw_class class_id;
    int nvlinks; /* of NW_CLASS_NV: "NV12" is 12; 0: else, or not said */
};

/* One row of a port's GID table. */
struct nw_topo_gid {
    int port; /* node index of the port */
    int index;
    char gid[40];       /* "fe80:0000:…", 8 groups of 4; the secret part is its interface id */
    char type[16];      /* "ib" "roce v1" "roce v2"; "": unknown */
    char ip[48];        /* IPv4 or IPv6 that it stands for; "": none */
    char interface[32]; /* "": unknown */
};

enum { /* nw_topo.sources */
       NW_SOURCE_HWLOC = 1,
       NW_SOURCE_XML = 2,
       NW_SOURCE_JSON = 4,
       NW_SOURCE_SYSFS = 8,
       NW_SOURCE_NVML = 16,
       NW_SOURCE_NCCL_XML = 32, /* NCCL's topology file */
       NW_SOURCE_SMI = 64,      /* some output of nvidia-smi */
       NW_SOURCE_RDMA = 128,    /* verbs, or the output of an RDMA tool */
       NW_SOURCE_LSPCI = 256,
       NW_SOURCE_LOG = 512, /* the kernel's log */
};

enum {                        /* nw_topo.gaps: what the source could not tell */
       NW_TOPO_NO_IO = 1,     /* no I/O objects at all: GPUs, NICs, disks are unknown, not absent */
       NW_TOPO_NO_NVLINK = 2, /* several NVIDIA GPUs seen, but no NVLink information: unknown, not
                                 absent */
       NW_TOPO_RESTRICTED = 4, /* some hardware threads are offline or not allowed to the process
                                  that looked: the cores and memory shown may be a part */
       NW_TOPO_PARTIAL = 8,    /* the source shows one aspect (a matrix of GPUs, a list of ports) or
                                  is cut off: what it does not show is unknown, not absent */
};

struct nw_topo {
    char host[64];    /* "": unknown */
    char source[256]; /* "live", or the file */
    char os[128];     /* kernel and distribution; "": unknown */
    struct nw_topo_node *nodes;
    size_t node_count;
    struct nw_topo_link *links;
    size_t link_count;
    struct nw_fact *facts; /* topo/facts.h */
    size_t fact_count, fact_capacity;
    struct nw_topo_stated *stated;
    size_t stated_count, stated_capacity;
    struct nw_topo_gid *gids;
    size_t gid_count, gid_capacity;
    unsigned sources, gaps;
    int core_count, pu_count, package_count, numa_count;
    int pu_allowed_count;        /* hardware threads this process may use; 0: unknown */
    int pu_complete_count;       /* with those that are offline or hidden; 0: unknown */
    uint64_t memory_bytes;       /* RAM; GPU memory and persistent memory are not in it */
    struct nw_findings findings; /* conflicts and gaps in words */
};

nw_rc nw_topo_read_live(struct nw_topo **topo_out);
/* Any format of nw_topo_formats, decided by content. NW_EUSAGE with file and reason. */
nw_rc nw_topo_read_file(const char *path, struct nw_topo **topo_out);
/* The same from memory; `what` words the errors and becomes the source. */
nw_rc nw_topo_read_data(const char *data, size_t length, const char *what,
                        struct nw_topo **topo_out);
/* A file, or all files of a folder, which are of one machine, merged: what in a folder is in no
 * known format becomes a finding. */
nw_rc nw_topo_read_path(const char *path, struct nw_topo **topo_out);
/* Several of those, of one machine, merged; the first one counts where they disagree. */
nw_rc nw_topo_read_paths(const char *const *paths, size_t count, struct nw_topo **topo_out);
/* What can be read; ends with a row whose name is NULL. */
struct nw_topo_format {
    const char *name, *title; /* "nvidia-smi-topo", "nvidia-smi topo -m, -mp" */
    /* Is this such a file? Cheap; `data` is NUL-terminated behind `length`. */
    bool (*recognise)(const char *data, size_t length);
    nw_rc (*read)(const char *data, size_t length, const char *what, struct nw_topo **topo_out);
};
extern const struct nw_topo_format nw_topo_formats[];

/* Takes what `from` knows into `into`: devices are matched by PCI address, UUID, name, place in the
 * list; what both know and say differently becomes a finding "sources-disagree" and `into` keeps
 * its own. */
nw_rc nw_topo_merge(struct nw_topo *into, const struct nw_topo *from);
/* Host names, serial numbers, UUIDs, GUIDs, MAC and IP addresses, paths replaced, equal ones by
 * equal ones; `seed`: the same name gets the same replacement in all files of one seed. NULL: a
 * random one. Addresses of one network stay in one network. */
nw_rc nw_topo_anonymise(struct nw_topo *topo, const char *seed);
/* A copy made anonymous, to a file. */
nw_rc nw_topo_save_anonymous(const struct nw_topo *topo, const char *seed, const char *path);

nw_rc nw_topo_to_json(const struct nw_topo *topo, json_t **json_out);
nw_rc nw_topo_from_json(const json_t *json, const char *what, struct nw_topo **topo_out);
nw_rc nw_topo_save(const struct nw_topo *topo, const char *path);
void nw_topo_free(struct nw_topo *topo);

int nw_topo_count(const struct nw_topo *topo, nw_node_kind kind);
/* The index-th node of a kind, NULL past the end. */
const struct nw_topo_node *nw_topo_nth(const struct nw_topo *topo, nw_node_kind kind, int index);
bool nw_topo_is_nvidia(const struct nw_topo_node *node);
const char *nw_node_kind_key(nw_node_kind kind);
const char *nw_node_kind_title(nw_node_kind kind);
const char *nw_link_kind_key(nw_link_kind kind);
const char *nw_link_kind_title(nw_link_kind kind);
/* The link between two nodes (indexes, in any order), NULL when there is none of that kind. */
const struct nw_topo_link *nw_topo_link_between(const struct nw_topo *topo, nw_link_kind kind,
                                                int a, int b);
/* The links that end at a node, in no order: NULL begins, NULL ends. */
const struct nw_topo_link *nw_topo_next_link(const struct nw_topo *topo, int node,
                                             const struct nw_topo_link *after);
/* How two nodes are joined over PCIe, nearest first. */
#define NW_PATH_MAP(X)                                                                             \
    X(NW_PATH_SAME, "same", "the same device")                                                     \
    X(NW_PATH_SWITCH, "switch", "below one PCIe switch or port")                                   \
    X(NW_PATH_ROOT, "root", "below one PCIe host bridge")                                          \
    X(NW_PATH_NUMA, "numa", "on one NUMA node")                                                    \
    X(NW_PATH_PACKAGE, "package", "on one package")                                                \
    X(NW_PATH_MACHINE, "machine", "across packages, or place unknown")

typedef enum {
#define X(path, key, title) path,
    NW_PATH_MAP(X)
#undef X
        NW_PATH_COUNT
} nw_path;
nw_path nw_topo_path(const struct nw_topo *topo, int a, int b);
const char *nw_path_key(nw_path path);
/* The class of a pair in nvidia-smi's sense: what a tool stated, else NVLink where a link is known,
 * else from the tree. `nvlinks_out` (may be NULL): links in the bundle, 0 unknown or none. */
nw_class nw_topo_class(const struct nw_topo *topo, int a, int b, int *nvlinks_out);
/* The same over PCIe alone, from the tree alone: UNKNOWN where the tree has no PCI bridges. */
nw_class nw_topo_class_of_tree(const struct nw_topo *topo, int a, int b);
const char *nw_class_name(nw_class class_id); /* "PIX" */
nw_rc nw_topo_state(struct nw_topo *topo, int a, int b, nw_class class_id, int nvlinks);
nw_rc nw_topo_add_gid(struct nw_topo *topo, const struct nw_topo_gid *gid);
nw_rc nw_topo_add_link(struct nw_topo *topo, const struct nw_topo_link *link);
/* Chains a link that was put into the array by hand. */
void nw_topo_chain_link(struct nw_topo *topo, size_t index);
/* Of two hosts of one NVLink domain? */
bool nw_topo_on_other_hosts(const struct nw_topo *topo, int a, int b);

/* The nearest node of a kind, -1 when there is none. GPU to NIC
 * affinity: nw_topo_nearest(topo, gpu, NW_NODE_NIC, &path). `path_out` may be NULL. */
int nw_topo_nearest(const struct nw_topo *topo, int from, nw_node_kind kind, nw_path *path_out);

#endif
