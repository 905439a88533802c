/* Private to topo/. What a reader found, before it is judged: a flat list of objects in tree order
 * (a parent always before its children), as hwloc names them. The readers (hwloc live, hwloc XML)
 * fill it, sysfs completes it, nw_topo_build() turns it into a struct nw_topo.
 *
 *     struct nw_raw raw;
 *     nw_raw_init(&raw);
 *     rc = nw_raw_from_xml(data, length, path, &raw);
 *     if (rc == NW_OK)
 *         rc = nw_topo_build(&raw, &topo);
 *     nw_raw_free(&raw);
 */
#ifndef NW_TOPO_READ_H
#define NW_TOPO_READ_H

#include <hwloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/topo.h"

enum {
    /* The largest real export seen has some 5000 objects (8 packages, 1000 threads). */
    NW_RAW_MAX_OBJECTS = 100000,
    NW_RAW_MAX_INFOS = 256, /* of one object */
    NW_RAW_MAX_MATRIX = 512,
    NW_RAW_MAX_NUMA = 1024,
    NW_RAW_MAX_DEVICES = 8192,
    NW_TOPO_MAX_FILE_BYTES = 32 << 20,
};

typedef enum {
    NW_RAW_OTHER, /* groups, caches, dies: only their place in the tree matters */
    NW_RAW_MACHINE,
    NW_RAW_PACKAGE,
    NW_RAW_NUMA,
    NW_RAW_CORE,
    NW_RAW_PU,
    NW_RAW_HOST_BRIDGE,
    NW_RAW_PCI_BRIDGE,
    NW_RAW_PCI,
    NW_RAW_OSDEV,
} nw_raw_type;

typedef enum {
    NW_OSDEV_UNKNOWN,
    NW_OSDEV_BLOCK,
    NW_OSDEV_GPU, /* a GPU's display or management side: card0, nvml0, rsmi0 */
    NW_OSDEV_NETWORK,
    NW_OSDEV_RDMA,
    NW_OSDEV_DMA,
    NW_OSDEV_COPROC, /* a GPU's compute side: cuda0, opencl0d0 */
} nw_osdev;

struct nw_raw_info {
    char *name, *value;
};

struct nw_raw_object {
    nw_raw_type type;
    nw_osdev osdev;
    int parent;   /* -1: the machine */
    int os_index; /* -1: none */
    uint64_t id;  /* gp_index; 0: none */
    char name[64], subtype[32];
    uint32_t domain, bus, device, function; /* a host bridge has domain and bus */
    uint32_t pci_class, pci_vendor, pci_device;
    double link_bytes_per_s; /* 0: unknown */
    uint64_t memory_bytes;
    hwloc_bitmap_t cpuset, nodeset; /* NULL: none given. cpuset of machine and NUMA nodes only */
    struct nw_raw_info *infos;
    size_t info_count;
};

struct nw_raw_matrix { /* square, row-major; object -1: unknown id */
    char name[32];
    size_t count;
    int *objects;
    uint64_t *values;
};

struct nw_raw {
    struct nw_raw_object *objects;
    size_t count, capacity;
    struct nw_raw_matrix *matrices;
    size_t matrix_count;
    int *numas; /* indexes of the NUMA nodes, set by nw_raw_finish */
    size_t numa_count;
    int format;            /* 0: live; 1, 2, 3: XML */
    int hwloc_version;     /* major * 100 + minor of the writer; 0: unknown */
    int pu_complete_count; /* 0: unknown */
    int pu_allowed_count;  /* 0: unknown */
    char source[256];
};

void nw_raw_init(struct nw_raw *raw);
void nw_raw_free(struct nw_raw *raw);
/* The new object's index; its parent must be there already. NW_EUSAGE beyond NW_RAW_MAX_OBJECTS. */
nw_rc nw_raw_add(struct nw_raw *raw, nw_raw_type type, int parent, int *index_out);
/* Keeps the facts this folder uses and drops the others. */
nw_rc nw_raw_add_info(struct nw_raw *raw, int index, const char *name, const char *value);
const char *nw_raw_info(const struct nw_raw *raw, int index, const char *name); /* NULL: none */
nw_rc nw_raw_add_matrix(struct nw_raw *raw, const char *name, size_t count,
                        struct nw_raw_matrix **matrix_out);
/* "2.13.0" to 213; 0 when it is no version. */
int nw_raw_hwloc_version(const char *text);
/* PCI address as text; `text` holds 16 bytes. */
const char *nw_raw_pci_text(const struct nw_raw_object *object, char text[16]);

/* After the last object: collects the NUMA nodes, refuses what no machine has. */
nw_rc nw_raw_finish(struct nw_raw *raw);

/* The readers. `what` names the file in errors. */
nw_rc nw_raw_from_hwloc(struct nw_raw *raw);
nw_rc nw_raw_from_xml(const char *data, size_t length, const char *what, struct nw_raw *raw);

/* Where sysfs and proc are; tests put their own trees in. */
struct nw_sysfs {
    const char *sys, *proc;
    const char *const
        *pci_ids; /* the PCI ID database: first of these that is there; ends with NULL */
};
/* Network and block devices that hwloc left out. */
nw_rc nw_sysfs_complete(const struct nw_sysfs *sysfs, struct nw_raw *raw);
/* Names of PCI devices that have none. */
nw_rc nw_pci_ids_complete(const struct nw_sysfs *sysfs, struct nw_raw *raw);
/* Port rates, GPU names and memory from the driver. */
void nw_sysfs_annotate(const struct nw_sysfs *sysfs, struct nw_topo *topo);
/* Memory and CPU limits of a container or job, as findings. */
nw_rc nw_sysfs_judge_limits(const struct nw_sysfs *sysfs, struct nw_topo *topo);

nw_rc nw_topo_build(struct nw_raw *raw, struct nw_topo **topo_out);
/* NVLink and XGMI from the matrices; `node_of[raw index]` is the node index or -1. */
nw_rc nw_topo_build_links(const struct nw_raw *raw, const int *node_of, struct nw_topo *topo);
/* Gaps and oddities in words. */
nw_rc nw_topo_judge(struct nw_topo *topo);
bool nw_topo_is_judged(const char *code); /* a code of nw_topo_judge's findings */

/* Texts come from devices and files: cuts torn UTF-8, replaces control characters. */
void nw_topo_clean(struct nw_topo *topo);
void nw_clean_text(char *text); /* one of them, in place */

/* Does a text begin with the byte order mark of UTF-16? Then it can be made UTF-8; the caller
 * frees, NUL-terminated. */
bool nw_utf16_is(const char *data, size_t length);
nw_rc nw_utf16_to_utf8(const char *data, size_t length, char **text_out, size_t *length_out);

/* NCCL's topology files (read_nccl_xml.c); a row of nw_topo_formats. */
bool nw_nccl_xml_recognise(const char *data, size_t length);
nw_rc nw_nccl_xml_read(const char *data, size_t length, const char *what,
                       struct nw_topo **topo_out);

nw_rc nw_topo_add_node(struct nw_topo *topo, nw_node_kind kind, int parent, int *index_out);

#endif
