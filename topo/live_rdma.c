#include "topo/live_rdma.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/read.h"
#include "topo/read_ib.h"
#include "topo/read_ib_lines.h" /* nw_ib_name_model */

#define SOURCE "sysfs"

enum {
    MAX_DEVICES = 1024, /* virtual functions count as well */
    MAX_PORTS = 8,
    MAX_GIDS = 1024, /* of one port; mlx5 has 256, rxe 1024 */
};

struct device {
    const struct nw_files *files;
    char name[64], pci[16]; /* pci "": software, or unknown */
    char folder[256];       /* ".../infiniband/mlx5_0" */
    char owner[256];        /* the folder that has infiniband/ and net/; "": none */
    int nic;
};

/* --- a port --- */

/* Names differ by driver: mlx5, bnxt_re, rxe. Those of one fact are summed. */
static const struct {
    nw_fact_id id;
    const char *file;
} counters[] = {
    {NW_FACT_SEQUENCE_ERRORS, "hw_counters/out_of_sequence"},
    {NW_FACT_SEQUENCE_ERRORS, "hw_counters/packet_seq_err"},
    {NW_FACT_SEQUENCE_ERRORS, "hw_counters/out_of_seq_request"}, /* rxe: as the responder */
    {NW_FACT_SEQUENCE_ERRORS, "hw_counters/rcvd_seq_err"},       /* rxe: as the requester */
    {NW_FACT_SEQUENCE_ERRORS, "hw_counters/seq_err_naks_rcvd"},  /* bnxt_re */
    {NW_FACT_ACK_TIMEOUTS, "hw_counters/local_ack_timeout_err"},
    {NW_FACT_ACK_TIMEOUTS, "hw_counters/to_retransmits"}, /* bnxt_re */
    {NW_FACT_DISCARDS, "hw_counters/rx_discards"},
    {NW_FACT_DISCARDS, "hw_counters/rx_roce_discard_pkts"}, /* bnxt_re */
    {NW_FACT_SYMBOL_ERRORS, "counters/symbol_error"},
    {NW_FACT_FLAPS, "counters/link_downed"},
    {NW_FACT_FLAPS, "hw_counters/link_downed"}, /* rxe, which has no counters/ */
};

static nw_rc read_counters(const struct device *device, const char *folder, struct nw_topo *topo,
                           int node)
{
    double sums[NW_FACT_COUNT];

    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        sums[counters[i].id] = NAN;
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        const double value = nw_files_number(device->files, folder, counters[i].file);
        double *sum = &sums[counters[i].id];

        if (!isnan(value))
            *sum = (isnan(*sum) ? 0 : *sum) + value;
    }
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        NW_TRY(nw_topo_set_number(topo, node, counters[i].id, sums[counters[i].id], SOURCE));
    return NW_OK;
}

static nw_rc read_gids(const struct device *device, const char *folder, struct nw_topo *topo,
                       int node)
{
    char path[300];
    struct nw_names names;
    nw_rc rc = NW_OK;

    snprintf(path, sizeof path, "%.280s/gids", folder);
    NW_TRY(nw_files_list(device->files, path, &names));
    for (size_t i = 0;
         i < names.count && i < MAX_GIDS && topo->gid_count < NW_IB_MAX_GIDS && rc == NW_OK; i++) {
        char gid[64], type[32], interface[32];
        uint64_t index;

        if (nw_parse_u64(names.items[i], 0, 65535, &index) != NW_OK)
            nw_clear_error();
        else if (nw_files_read(device->files, gid, sizeof gid, "%s/%s", path, names.items[i]) &&
                 strcmp(gid, "0000:0000:0000:0000:0000:0000:0000:0000") != 0) {
            (void)nw_files_read(device->files, type, sizeof type, "%s/gid_attrs/types/%s", folder,
                                names.items[i]);
            (void)nw_files_read(device->files, interface, sizeof interface, "%s/gid_attrs/ndevs/%s",
                                folder, names.items[i]);
            rc = nw_ib_gid(topo, node, (int)index, gid, type, interface);
        }
    }
    nw_names_free(&names);
    return rc;
}

/* InfiniBand: the second half of GID 0 is the port's GUID. */
static void read_port_guid(const struct device *device, const char *folder, struct nw_ib_port *port)
{
    char gid[64];

    if (strcmp(port->link_layer, "infiniband") == 0 &&
        nw_files_read(device->files, gid, sizeof gid, "%s/gids/0", folder) && strlen(gid) == 39)
        (void)nw_ib_guid(gid + 20, port->guid);
}

static nw_rc read_port(const struct device *device, int number, struct nw_topo *topo)
{
    const struct {
        const char *file;
        void (*set)(struct nw_ib_port *port, const char *text);
    } files[] = {{"state", nw_ib_state},
                 {"phys_state", nw_ib_physical_state},
                 {"link_layer", nw_ib_link_layer},
                 {"rate", nw_ib_rate},
                 {"lid", nw_ib_lid}};
    char folder[300], text[64];
    struct nw_ib_port port;
    int node;

    nw_ib_port_init(&port, topo->nodes[device->nic].name, number);
    snprintf(folder, sizeof folder, "%.255s/ports/%d", device->folder, number);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (nw_files_read(device->files, text, sizeof text, "%s/%s", folder, files[i].file))
            files[i].set(&port, text);
    read_port_guid(device, folder, &port);
    if (!nw_files_read(device->files, port.interface, sizeof port.interface, "%s/gid_attrs/ndevs/0",
                       folder))
        (void)nw_rdma_interface_of_port(device->files, device->owner, number, port.interface);
    NW_TRY(nw_ib_port_put(topo, &port, SOURCE, &node));
    NW_TRY(read_counters(device, folder, topo, node));
    return read_gids(device, folder, topo, node);
}

static nw_rc read_ports(const struct device *device, struct nw_topo *topo)
{
    char path[300];
    struct nw_names names;
    nw_rc rc;

    snprintf(path, sizeof path, "%.255s/ports", device->folder);
    NW_TRY(nw_files_list(device->files, path, &names));
    rc = NW_OK;
    for (size_t i = 0; i < names.count && i < MAX_PORTS && rc == NW_OK; i++) {
        uint64_t number;

        if (nw_parse_u64(names.items[i], 1, 255, &number) == NW_OK)
            rc = read_port(device, (int)number, topo);
        else
            nw_clear_error();
    }
    nw_names_free(&names);
    return rc;
}

/* --- a device --- */

/* Its node: by PCI address, by name, else a new one. */
static nw_rc find_nic(struct device *device, struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_NIC && device->pci[0] != '\0' &&
            strcmp(topo->nodes[i].pci, device->pci) == 0) {
            device->nic = (int)i;
            return NW_OK;
        }
    NW_TRY(nw_ib_nic(topo, device->name, &device->nic));
    if (topo->nodes[device->nic].pci[0] == '\0')
        snprintf(topo->nodes[device->nic].pci, sizeof topo->nodes[device->nic].pci, "%s",
                 device->pci);
    return NW_OK;
}

/* "1: CA", "4: RNIC" (iWARP) */
static void read_fabric(const struct device *device, struct nw_topo_node *nic)
{
    char text[64];

    if (nw_files_read(device->files, text, sizeof text, "%s/node_type", device->folder) &&
        strstr(text, "RNIC") != NULL)
        snprintf(nic->fabric, sizeof nic->fabric, "iwarp");
}

static void read_model(const struct device *device, struct nw_topo_node *nic)
{
    char text[64];
    uint64_t id;

    if (nw_files_read(device->files, text, sizeof text, "%s/hca_type", device->folder) &&
        strncmp(text, "MT", 2) == 0 && nic->pci_device == 0) {
        if (nw_parse_u64(text + 2, 4000, 0xffff, &id) == NW_OK)
            nw_ib_name_model(nic, (uint32_t)id);
        else
            nw_clear_error();
    }
}

/* Soft-RoCE (rxe) names the interface below it in "parent"; devices of hardware have no such file.
 */
static nw_rc judge_software(const struct device *device, struct nw_topo *topo)
{
    char interface[32];

    if (device->pci[0] != '\0' ||
        !nw_files_read(device->files, interface, sizeof interface, "%s/parent", device->folder))
        return NW_OK;
    return nw_findings_add(&topo->findings, NW_FINDING_WARN, "rdma-in-software", device->name,
                           "where NICs that do RDMA were quoted, ask for them; to go past it: "
                           "NCCL_IB_DISABLE=1, or \"rdma link delete DEVICE\"",
                           "RDMA in software on top of %s: the CPU does a NIC's work", interface);
}

static nw_rc read_device(struct device *device, struct nw_topo *topo)
{
    static const struct {
        const char *file;
        nw_fact_id id;
        bool guid;
    } facts[] = {{"fw_ver", NW_FACT_FIRMWARE, false},
                 {"board_id", NW_FACT_BOARD, false},
                 {"node_guid", NW_FACT_NODE_GUID, true},
                 {"sys_image_guid", NW_FACT_SYSTEM_GUID, true}};
    char text[64], guid[24];
    double numa;

    NW_TRY(find_nic(device, topo));
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        if (!nw_files_read(device->files, text, sizeof text, "%s/%s", device->folder,
                           facts[i].file) ||
            (facts[i].guid && !nw_ib_guid(text, guid)) || strcmp(text, facts[i].file) == 0)
            continue; /* health checks blank a value by its file's name */
        NW_TRY(
            nw_topo_set_text(topo, device->nic, facts[i].id, facts[i].guid ? guid : text, SOURCE));
    }
    read_fabric(device, &topo->nodes[device->nic]);
    read_model(device, &topo->nodes[device->nic]);
    numa =
        device->owner[0] != '\0' ? nw_files_number(device->files, device->owner, "numa_node") : NAN;
    if (numa >= 0 && numa < NW_RAW_MAX_NUMA && topo->nodes[device->nic].numa < 0)
        topo->nodes[device->nic].numa = (int)numa; /* -1: unknown, no number here */
    NW_TRY(judge_software(device, topo));
    return read_ports(device, topo);
}

/* --- all devices --- */

struct found {
    struct device *devices;
    size_t count;
};

static nw_rc add_found(const struct nw_files *files, struct found *found, const char *owner,
                       const char *pci, const char *name)
{
    struct device *devices;

    for (size_t i = 0; i < found->count; i++)
        if (strcmp(found->devices[i].name, name) == 0)
            return NW_OK;
    if (found->count == MAX_DEVICES || strlen(name) > 63 || strlen(owner) > 180)
        return NW_OK;
    devices = realloc(found->devices, (found->count + 1) * sizeof *devices);
    if (devices == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the RDMA devices");
    found->devices = devices;
    devices[found->count] = (struct device){.files = files, .nic = -1};
    snprintf(devices[found->count].name, sizeof devices->name, "%.63s", name);
    snprintf(devices[found->count].pci, sizeof devices->pci, "%.15s", pci);
    snprintf(devices[found->count].owner, sizeof devices->owner, "%.180s%s", owner,
             pci[0] != '\0' ? "" : "/device");
    snprintf(devices[found->count].folder, sizeof devices->folder, "%.180s%s%.63s", owner,
             pci[0] != '\0' ? "/infiniband/" : "", pci[0] != '\0' ? name : "");
    found->count++;
    return NW_OK;
}

/* Below PCI devices first: that names the place. Then what is in class/infiniband only. */
static nw_rc find_pci_devices(const struct nw_files *files, struct found *found)
{
    struct nw_names addresses, names;
    char folder[128];
    nw_rc rc;

    NW_TRY(nw_files_list(files, "bus/pci/devices", &addresses));
    rc = NW_OK;
    for (size_t i = 0; i < addresses.count && rc == NW_OK; i++) {
        if (strlen(addresses.items[i]) > 15)
            continue;
        snprintf(folder, sizeof folder, "bus/pci/devices/%.15s/infiniband", addresses.items[i]);
        rc = nw_files_list(files, folder, &names);
        if (rc != NW_OK)
            break;
        *strrchr(folder, '/') = '\0';
        for (size_t k = 0; k < names.count && rc == NW_OK; k++)
            rc = add_found(files, found, folder, addresses.items[i], names.items[k]);
        nw_names_free(&names);
    }
    nw_names_free(&addresses);
    return rc;
}

static nw_rc find_class_devices(const struct nw_files *files, struct found *found)
{
    struct nw_names names;
    char folder[128];
    nw_rc rc = NW_OK;

    NW_TRY(nw_files_list(files, "class/infiniband", &names));
    for (size_t i = 0; i < names.count && rc == NW_OK; i++) {
        snprintf(folder, sizeof folder, "class/infiniband/%.63s", names.items[i]);
        rc = add_found(files, found, folder, "", names.items[i]);
    }
    nw_names_free(&names);
    return rc;
}

/* mlx5_N, the first function of its slot: virtual functions are named later, out of order. */
static bool is_numbered(const struct device *device)
{
    return strlen(device->pci) == 12 && strcmp(device->pci + 8, "00.0") == 0 &&
           strncmp(device->name, "mlx5_", 5) == 0;
}

/* Devices are found in the order of their PCI addresses; names that do not follow it are where
 * two machines of one kind may differ. */
static nw_rc judge_names(const struct found *found, struct nw_topo *topo)
{
    const struct device *before = NULL;

    for (size_t i = 0; i < found->count; i++) {
        const struct device *device = &found->devices[i];

        if (!is_numbered(device))
            continue;
        if (before == NULL || strverscmp(before->name, device->name) < 0) {
            before = device;
            continue;
        }
        return nw_findings_add(
            &topo->findings, NW_FINDING_INFO, "rdma-names-out-of-order", device->name,
            "compare with the other machines; choose NICs by PCI address, or give them names by "
            "udev (rdma-core's 60-rdma-persistent-naming.rules)",
            "%s is at %s and %s at %s: names do not follow the PCI addresses, so a list of NICs by "
            "name (NCCL_IB_HCA, UCX_NET_DEVICES) may mean other NICs than on the next machine",
            before->name, before->pci, device->name, device->pci);
    }
    return NW_OK;
}

nw_rc nw_rdma_read(const struct nw_files *files, struct nw_topo *topo)
{
    struct found found = {.devices = NULL};
    nw_rc rc = find_pci_devices(files, &found);

    if (rc == NW_OK)
        rc = find_class_devices(files, &found);
    for (size_t i = 0; i < found.count && rc == NW_OK; i++)
        rc = read_device(&found.devices[i], topo);
    if (rc == NW_OK)
        rc = judge_names(&found, topo);
    if (rc == NW_OK && found.count > 0) {
        rc = nw_ib_finish(topo);
        topo->sources |= NW_SOURCE_RDMA;
    }
    free(found.devices);
    for (size_t i = 0; i < topo->node_count && rc == NW_OK; i++)
        if (topo->nodes[i].kind == NW_NODE_NIC)
            rc = nw_rdma_interfaces(files, topo, (int)i);
    return rc;
}

/* What of the live machine sysfs does not tell; a library that was not there at build time has no
 * row. */
static nw_rc (*const live_sources[])(struct nw_topo *topo) = {
#ifdef NW_HAVE_VERBS
    nw_rdma_verbs,
#endif
    nw_rdma_addresses,
};

nw_rc nw_rdma_live(const char *sys, struct nw_topo *topo)
{
    const struct nw_files files = {.root = sys};

    NW_TRY(nw_rdma_read(&files, topo));
    for (size_t i = 0; i < sizeof live_sources / sizeof *live_sources && strcmp(sys, "/sys") == 0;
         i++)
        NW_TRY(live_sources[i](topo));
    return NW_OK;
}
