/* Format: Linux Documentation/ABI/testing/sysfs-bus-pci; PCI Express Base Specification 7.5.3
 * (link), 7.6.3 (extended capabilities), 7.7.11 (ACS). */
#include "topo/live_pci.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "topo/link.h"
#include "topo/pci_address.h"
#include "topo/system.h"
#include "topo/system_text.h"

enum {
    CONFIG_BYTES = 4096,
    CONFIG_EXTENDED = 0x100, /* where the extended capabilities begin */
    CAPABILITY_ACS = 0x000d,
    ACS_CONTROL = 6, /* offset of the control register in the capability */
    MAX_CAPABILITIES = (CONFIG_BYTES - CONFIG_EXTENDED) / 8,
    MAX_DEPTH = 32, /* bridges above a device; the specification has room for 256 buses in all */
};

struct link {
    int generation, lanes; /* 0: unknown */
};

struct device {
    char address[16];
    struct link now, own; /* what runs, what it can do itself */
    bool emulated;        /* a hypervisor's bridge: what it says of its link means nothing */
};

struct path { /* from the root port down to the device itself */
    struct device devices[MAX_DEPTH];
    size_t count;
};

/* --- links --- */

/* "16.0 GT/s PCIe" */
static int generation_of(const char *text)
{
    static const double transfer_rates[] = {2.5, 5, 8, 16, 32, 64};
    double rate;

    if (sscanf(text, "%lf GT/s", &rate) != 1)
        return 0;
    for (size_t i = 0; i < sizeof transfer_rates / sizeof *transfer_rates; i++)
        if (fabs(rate - transfer_rates[i]) < 0.01)
            return (int)i + 1;
    return 0;
}

static struct link read_link(const char *device, const char *when)
{
    struct link link = {0, 0};
    char text[64];
    uint64_t lanes;

    if (nw_system_text(text, sizeof text, "%s/%s_link_speed", device, when))
        link.generation = generation_of(text);
    if (nw_system_text(text, sizeof text, "%s/%s_link_width", device, when) &&
        nw_parse_u64(text, 1, 32, &lanes) == NW_OK) /* 0 or 255: no link */
        link.lanes = (int)lanes;
    return link;
}

static int smaller_known(int a, int b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static struct link smaller(struct link a, struct link b)
{
    return (struct link){smaller_known(a.generation, b.generation),
                         smaller_known(a.lanes, b.lanes)};
}

/* 0: unknown */
static double rate_of(struct link link)
{
    const double rate = nw_pcie_bytes_per_s(link.generation, link.lanes);

    return rate > 0 ? round(rate) : 0; /* whole bytes: exact in JSON */
}

/* Bridges that hypervisors make up show any speed; the traffic does not pass them. Vendors: Red Hat
 * (QEMU), virtio, VMware, Amazon, Hyper-V. Source: pci.ids. */
static bool is_emulated(const char *device)
{
    static const char *const vendors[] = {"0x1b36", "0x1af4", "0x15ad", "0x1d0f", "0x1414"};
    char text[16];

    nw_system_text(text, sizeof text, "%s/vendor", device);
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++)
        if (strcmp(text, vendors[i]) == 0)
            return true;
    return false;
}

/* The PCI devices in a resolved path below /sys/devices, outermost first. */
static void read_path(char *resolved, struct path *path)
{
    struct nw_pci_address address;

    path->count = 0;
    for (char *part = strchr(resolved, '/'); part != NULL && path->count < MAX_DEPTH;) {
        const size_t length = strcspn(part + 1, "/");
        char *end = part + 1 + length;
        const char kept = *end;

        if (strncmp(part + 1, "pci", 3) == 0) /* "pci10000:e0": a root of its own (Intel VMD) */
            path->count = 0;
        if (nw_pci_scan(part + 1, &address) == end && address.has_function &&
            address.domain_digits >= 4) {
            struct device *device = &path->devices[path->count++];

            *end = '\0';
            snprintf(device->address, sizeof device->address, "%s", part + 1);
            device->now = read_link(resolved, "current");
            device->own = read_link(resolved, "max");
            device->emulated = kept != '\0' && is_emulated(resolved);
            *end = kept;
        }
        part = kept != '\0' ? end : NULL;
    }
}

/* Root port, then a switch's upper and lower port in turn, then the device: so every second one
 * ends a link towards the CPU, whose other end is the one before it. The registers of a lower port
 * are of the link below it; between a switch's own ports there is none. */
static bool ends_link(size_t index)
{
    return index % 2 == 1;
}

/* The link above an end at its best: what both ends can do. */
static struct link best_of(const struct path *path, size_t index)
{
    const struct device *below = &path->devices[index];
    const struct device *above = ends_link(index) ? &path->devices[index - 1] : NULL;

    return above != NULL && !above->emulated ? smaller(below->own, above->own) : below->own;
}

static nw_rc tell_limit(struct nw_topo *topo, int node, const struct path *path, size_t index,
                        struct link link)
{
    const struct device *below = &path->devices[index], *above = &path->devices[index - 1];
    const bool device_itself = index == path->count - 1;
    const struct link both = smaller(above->own, below->own);
    const bool narrow = link.lanes < both.lanes;
    char text[160], narrower[48] = "";

    if (narrow)
        snprintf(narrower, sizeof narrower, " (of x%d)", both.lanes);
    if (device_itself || rate_of(above->own) <= rate_of(below->own))
        snprintf(text, sizeof text, "the Gen%d x%d link%s below bridge %s", link.generation,
                 link.lanes, narrower, above->address);
    else
        snprintf(text, sizeof text, "the Gen%d x%d link%s above bridge %s", link.generation,
                 link.lanes, narrower, below->address);
    return nw_topo_set_text(topo, node, NW_FACT_LIMITED_BY, text, "sysfs");
}

/* The slowest link up to the root port. Idle links lower their speed, not their width: so the best
 * speed counts, and above the device itself the width that runs now. */
static nw_rc judge_path(struct nw_topo *topo, int node, const struct path *path)
{
    const size_t last = path->count - 1;
    const double own = rate_of(path->devices[last].own);
    struct link slowest = path->devices[last].own;
    size_t at = 0;

    if (own == 0)
        return NW_OK;
    for (size_t i = 1; i < path->count; i++) {
        struct link link = best_of(path, i);

        if (!ends_link(i) || path->devices[i].emulated || path->devices[i - 1].emulated)
            continue;
        if (i < last && path->devices[i].now.lanes > 0)
            link.lanes = smaller_known(link.lanes, path->devices[i].now.lanes);
        if (rate_of(link) > 0 && rate_of(link) < rate_of(slowest)) {
            slowest = link;
            at = i;
        }
    }
    NW_TRY(nw_topo_set_number(topo, node, NW_FACT_PATH_RATE, rate_of(slowest), "sysfs"));
    return at > 0 ? tell_limit(topo, node, path, at, slowest) : NW_OK;
}

static nw_rc set_generation(struct nw_topo *topo, int node, nw_fact_id id, int generation)
{
    return generation > 0 ? nw_topo_set_number(topo, node, id, generation, "sysfs") : NW_OK;
}

static nw_rc take_links(struct nw_topo *topo, int index, const struct path *path)
{
    struct nw_topo_node *node = &topo->nodes[index];
    const struct device *device = &path->devices[path->count - 1];
    const struct link best = best_of(path, path->count - 1);

    if (rate_of(device->now) > 0)
        node->link_bytes_per_s = rate_of(device->now);
    node->link_lanes = device->now.lanes;
    node->link_max_bytes_per_s = rate_of(best);
    node->link_max_lanes = best.lanes;
    NW_TRY(set_generation(topo, index, NW_FACT_LINK_GENERATION, device->now.generation));
    NW_TRY(set_generation(topo, index, NW_FACT_LINK_MAX_GENERATION, best.generation));
    NW_TRY(set_generation(topo, index, NW_FACT_DEVICE_MAX_GENERATION, device->own.generation));
    if (node->kind == NW_NODE_GPU || node->kind == NW_NODE_NIC)
        return judge_path(topo, index, path);
    return NW_OK;
}

/* --- ACS --- */

static unsigned read16(const uint8_t *bytes)
{
    return (unsigned)bytes[0] | (unsigned)bytes[1] << 8;
}

nw_acs nw_pci_find_acs(const uint8_t *config, size_t length, unsigned *control_out)
{
    size_t at = CONFIG_EXTENDED;

    for (int i = 0; i < MAX_CAPABILITIES; i++) {
        unsigned id, next;

        if (at + 4 > length)
            return NW_ACS_UNKNOWN;
        id = read16(config + at);
        next = read16(config + at + 2) >> 4;
        if (id == 0xffff && next == 0xfff) /* no answer: the device is asleep, or gone */
            return NW_ACS_UNKNOWN;
        if (id == CAPABILITY_ACS) {
            if (at + ACS_CONTROL + 2 > length)
                return NW_ACS_UNKNOWN;
            *control_out = read16(config + at + ACS_CONTROL);
            return NW_ACS_FOUND;
        }
        if (next == 0) /* also an empty list, which is a header of zeros */
            return NW_ACS_NONE;
        if (next < CONFIG_EXTENDED || next % 4 != 0)
            return NW_ACS_UNKNOWN;
        at = next;
    }
    return NW_ACS_UNKNOWN; /* more than there is room for: a loop */
}

/* Bytes read; *whole_out: the size of the file, which is more where this user may not read all. */
static size_t read_config(const char *device, uint8_t *config, size_t *whole_out)
{
    char path[PATH_MAX];
    struct stat status;
    size_t length = 0;
    ssize_t more = 1;
    int fd;

    *whole_out = 0;
    if (snprintf(path, sizeof path, "%s/config", device) >= (int)sizeof path)
        return 0;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    if (fstat(fd, &status) == 0 && status.st_size > 0)
        *whole_out = (size_t)status.st_size;
    while (more > 0 && length < CONFIG_BYTES) {
        more = read(fd, config + length, CONFIG_BYTES - length);
        length += more > 0 ? (size_t)more : 0;
    }
    close(fd);
    return length;
}

struct unread {
    int root_only, not_shown; /* bridges whose ACS is unknown, by reason */
};

static nw_rc take_acs(struct nw_topo *topo, int node, const char *device, struct unread *unread)
{
    uint8_t config[CONFIG_BYTES];
    unsigned control = 0;
    size_t whole;
    const size_t length = read_config(device, config, &whole);

    switch (nw_pci_find_acs(config, length, &control)) {
    case NW_ACS_FOUND:
        return nw_topo_set_number(topo, node, NW_FACT_ACS, control, "sysfs config");
    case NW_ACS_NONE:
        return nw_topo_set_number(topo, node, NW_FACT_ACS, 0, "sysfs config: no ACS capability");
    default:
        if (whole > CONFIG_EXTENDED && length < CONFIG_EXTENDED)
            unread->root_only++;
        else
            unread->not_shown++;
        return NW_OK;
    }
}

/* --- the rest --- */

static bool last_part(const char *link, char *name, size_t size)
{
    char target[PATH_MAX];
    const ssize_t length = readlink(link, target, sizeof target - 1);
    const char *slash;

    if (length <= 0)
        return false;
    target[length] = '\0';
    slash = strrchr(target, '/');
    return snprintf(name, size, "%s", slash != NULL ? slash + 1 : target) < (int)size;
}

static nw_rc take_driver(struct nw_topo *topo, int index, const char *device)
{
    const struct nw_topo_node *node = &topo->nodes[index];
    char path[PATH_MAX + 32], name[64];

    snprintf(path, sizeof path, "%s/driver", device);
    if (node->kind != NW_NODE_BRIDGE && last_part(path, name, sizeof name))
        NW_TRY(nw_topo_set_text(topo, index, NW_FACT_PCI_DRIVER, name, "sysfs"));
    if (node->kind != NW_NODE_GPU && node->kind != NW_NODE_NIC)
        return NW_OK;
    if (nw_system_exists("%s/physfn", device))
        NW_TRY(nw_topo_set_number(topo, index, NW_FACT_VF, 1, "sysfs"));
    nw_system_text(name, sizeof name, "%s/iommu_group/type", device);
    return nw_topo_set_text(topo, index, NW_FACT_IOMMU_DOMAIN, name, "sysfs");
}

static nw_rc take_numa(struct nw_topo_node *node, const char *device)
{
    char text[16];
    uint64_t numa;

    if (node->numa < 0 && nw_system_text(text, sizeof text, "%s/numa_node", device) &&
        nw_parse_u64(text, 0, NW_RAW_MAX_NUMA, &numa) == NW_OK) /* -1: the firmware does not say */
        node->numa = (int)numa;
    return NW_OK;
}

/* Is a device of this kind in the part of the tree below? */
static bool has_below(const struct nw_topo *topo, int bridge, nw_node_kind kind)
{
    for (size_t i = 0; i < topo->node_count; i++)
        for (int up = topo->nodes[i].kind == kind ? topo->nodes[i].parent : -1; up > 0;
             up = topo->nodes[up].parent)
            if (up == bridge)
                return true;
    return false;
}

/* ACS matters where GPUs talk with NICs and with each other. */
static bool matters(const struct nw_topo *topo, int bridge)
{
    return nw_topo_count(topo, NW_NODE_GPU) > 0 &&
           (has_below(topo, bridge, NW_NODE_GPU) || has_below(topo, bridge, NW_NODE_NIC));
}

static nw_rc take_device(const struct nw_sysfs *sysfs, struct nw_topo *topo, int index,
                         struct unread *unread)
{
    struct nw_topo_node *node = &topo->nodes[index];
    char link[PATH_MAX], device[PATH_MAX];
    struct path path;

    if (snprintf(link, sizeof link, "%s/bus/pci/devices/%s", sysfs->sys, node->pci) >=
            (int)sizeof link ||
        realpath(link, device) == NULL)
        return NW_OK;
    read_path(device, &path);
    if (path.count > 0 && strcmp(path.devices[path.count - 1].address, node->pci) == 0)
        NW_TRY(take_links(topo, index, &path));
    NW_TRY(take_numa(node, device));
    NW_TRY(take_driver(topo, index, device));
    if (node->kind == NW_NODE_BRIDGE && matters(topo, index))
        return take_acs(topo, index, device, unread);
    return NW_OK;
}

nw_rc nw_live_pci(const struct nw_sysfs *sysfs, struct nw_topo *topo)
{
    struct unread unread = {0, 0};

    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].pci[0] != '\0')
            NW_TRY(take_device(sysfs, topo, (int)i, &unread));
    nw_clear_error(); /* texts that are no numbers mean unknown, here */
    topo->sources |= NW_SOURCE_SYSFS;
    if (unread.root_only > 0)
        NW_TRY(nw_topo_not_checked(
            topo, "ACS of %d PCIe bridges above GPUs and NICs (for root only: run as root)",
            unread.root_only));
    if (unread.not_shown > 0)
        NW_TRY(nw_topo_not_checked(
            topo,
            "ACS of %d PCIe bridges above GPUs and NICs (no extended configuration space is "
            "shown)",
            unread.not_shown));
    return NW_OK;
}
