/* RDMA tools that print one line a device, port or GID: rdma link, rdma dev (iproute2),
 * ibdev2netdev, show_gids (MLNX_OFED). */
#include "topo/read_ib_lines.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "topo/classify.h"
#include "topo/pci_address.h"
#include "topo/scan.h"

enum { MAX_WORDS = 40 };

/* --- reading, what all tools share --- */

nw_rc nw_ib_reading_nic(struct nw_ib_reading *reading, const char *device, int *nic_out)
{
    if (reading->topo->node_count > NW_IB_MAX_PORTS)
        return nw_fail(NW_EUSAGE, "%s: more than %d devices and ports; no machine has that many",
                       reading->topo->source, NW_IB_MAX_PORTS);
    return nw_ib_nic(reading->topo, device, nic_out);
}

nw_rc nw_ib_reading_put(struct nw_ib_reading *reading, const struct nw_ib_port *port, int *port_out)
{
    int nic;

    NW_TRY(nw_ib_reading_nic(reading, port->device, &nic));
    return nw_ib_port_put(reading->topo, port, reading->source, port_out);
}

nw_rc nw_ib_reading_complaint(struct nw_ib_reading *reading, int line_number, const char *line)
{
    char where[300];

    reading->cut = false; /* said already, with the reason */
    if (reading->topo->findings.count >= 20)
        return NW_OK;
    snprintf(where, sizeof where, "%.250s:%d", reading->topo->source, line_number);
    return nw_findings_add(&reading->topo->findings, NW_FINDING_WARN, "tool-failed", where,
                           "look for the device in ls /sys/class/infiniband and in dmesg, then run "
                           "the tool again",
                           "the tool stopped with \"%.160s\": devices after the ones read here are "
                           "unknown",
                           line);
}

nw_rc nw_ib_reading_end(struct nw_ib_reading *reading)
{
    const bool gids_missing = reading->gids_promised > reading->gids_read;

    NW_TRY(nw_ib_finish(reading->topo));
    if (!reading->cut && !gids_missing)
        return NW_OK;
    if (gids_missing)
        return nw_findings_add(&reading->topo->findings, NW_FINDING_WARN, "file-cut",
                               reading->topo->source, "save the whole output of show_gids",
                               "%d GIDs are announced, %d are there", reading->gids_promised,
                               reading->gids_read);
    return nw_findings_add(&reading->topo->findings, NW_FINDING_WARN, "file-cut",
                           reading->topo->source, "save the tool's whole output",
                           "ends before a port that it announces: what is not there is unknown");
}

/* Names of the PCI ID database (https://pci-ids.ucw.cz), the ids in decimal as the tools print
 * them. */
void nw_ib_name_model(struct nw_topo_node *nic, uint32_t pci_device)
{
    static const struct {
        uint32_t device;
        const char *name;
    } names[] = {{4099, "ConnectX-3"},      {4103, "ConnectX-3 Pro"}, {4113, "Connect-IB"},
                 {4115, "ConnectX-4"},      {4117, "ConnectX-4 Lx"},  {4119, "ConnectX-5"},
                 {4121, "ConnectX-5 Ex"},   {4123, "ConnectX-6"},     {4125, "ConnectX-6 Dx"},
                 {4127, "ConnectX-6 Lx"},   {4129, "ConnectX-7"},     {4131, "ConnectX-8"},
                 {41682, "BlueField"},      {41686, "BlueField-2"},   {41692, "BlueField-3"},
                 {4116, "ConnectX-4 VF"},   {4120, "ConnectX-5 VF"},  {4124, "ConnectX-6 VF"},
                 {4126, "ConnectX mlx5 VF"}};

    nic->pci_vendor = NW_PCI_VENDOR_MELLANOX;
    nic->pci_device = pci_device;
    if (nic->model[0] != '\0')
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].device == pci_device)
            snprintf(nic->model, sizeof nic->model, "Mellanox %s", names[i].name);
    if (nic->model[0] == '\0')
        snprintf(nic->model, sizeof nic->model, "Mellanox MT%u", pci_device);
}

/* --- "mlx5_0/1" --- */

static bool split_port(const char *text, char device[64], int *number_out)
{
    int end = -1;

    if (sscanf(text, "%63[^/ \t:]/%3d%n", device, number_out, &end) != 2 || *number_out < 1)
        return false;
    return text[end] == '\0' || text[end] == ':';
}

/* --- rdma link, rdma dev --- */

static bool is_rdma_link(const char *line)
{
    char device[64], word[8];
    int number, index, port;

    if (sscanf(line, "link %63[^/ ]/%3d %7s", device, &number, word) == 3)
        return strcmp(word, "state") == 0 || strcmp(word, "subnet_") == 0;
    return sscanf(line, "%5d/%3d: %63[^/ ]/%3d: %7s", &index, &port, device, &number, word) == 5 &&
           (strcmp(word, "state") == 0 || strcmp(word, "subnet_") == 0);
}

static nw_rc read_rdma_link(struct nw_ib_reading *reading, char *line)
{
    char *words[MAX_WORDS], device[64];
    size_t count = nw_scan_words(line, words, MAX_WORDS);
    struct nw_ib_port port;
    int number, node;

    if (count > MAX_WORDS)
        count = MAX_WORDS;
    if (count < 2 || !split_port(words[1], device, &number))
        return NW_OK;
    reading->source = "rdma link";
    nw_ib_port_init(&port, device, number);
    for (size_t i = 2; i + 1 < count; i += 2) {
        if (strcmp(words[i], "state") == 0)
            nw_ib_state(&port, words[i + 1]);
        else if (strcmp(words[i], "physical_state") == 0)
            nw_ib_physical_state(&port, words[i + 1]);
        else if (strcmp(words[i], "lid") == 0)
            nw_ib_lid(&port, words[i + 1]);
        else if (strcmp(words[i], "netdev") == 0)
            snprintf(port.interface, sizeof port.interface, "%.31s", words[i + 1]);
        else if (strcmp(words[i], "subnet_prefix") == 0)
            nw_ib_link_layer(&port, "InfiniBand"); /* printed where there is a subnet manager */
    }
    return nw_ib_reading_put(reading, &port, &node);
}

static bool is_rdma_dev(const char *line)
{
    char device[64], word[12];
    int index;

    return sscanf(line, "%5d: %63[^: ]: %11s", &index, device, word) == 3 &&
           strcmp(word, "node_type") == 0;
}

static nw_rc read_rdma_dev(struct nw_ib_reading *reading, char *line)
{
    static const struct {
        const char *key;
        nw_fact_id id;
    } keys[] = {{"fw", NW_FACT_FIRMWARE},
                {"node_guid", NW_FACT_NODE_GUID},
                {"sys_image_guid", NW_FACT_SYSTEM_GUID}};
    char *words[MAX_WORDS], guid[24];
    size_t count = nw_scan_words(line, words, MAX_WORDS);
    int nic;

    if (count > MAX_WORDS)
        count = MAX_WORDS;
    words[1][strcspn(words[1], ":")] = '\0';
    NW_TRY(nw_ib_reading_nic(reading, words[1], &nic));
    for (size_t i = 2; i + 1 < count; i += 2)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            if (strcmp(words[i], keys[k].key) != 0)
                continue;
            if (keys[k].id == NW_FACT_FIRMWARE)
                NW_TRY(nw_topo_set_text(reading->topo, nic, keys[k].id, words[i + 1], "rdma dev"));
            else if (nw_ib_guid(words[i + 1], guid))
                NW_TRY(nw_topo_set_text(reading->topo, nic, keys[k].id, guid, "rdma dev"));
        }
    return NW_OK;
}

/* --- ibv_devices --- */

/* "    mlx5_0              0002c90300000001" below the head "device  node GUID" */
static bool is_device_row(const char *line, char device[64], char guid[24])
{
    static const char *const names[] = {"mlx", "bnxt", "rxe",  "siw",  "hfi",   "efa", "irdma",
                                        "ib",  "roce", "qedr", "cxgb", "rocep", "iw"};
    char digits[20];
    int end = -1;

    if (sscanf(line, "%63s %19[0-9a-f]%n", device, digits, &end) != 2 || line[end] != '\0' ||
        strlen(digits) != 16)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (nw_scan_starts(device, names[i]))
            return nw_ib_guid(digits, guid);
    return false;
}

static nw_rc read_device_row(struct nw_ib_reading *reading, const char *device, const char *guid)
{
    int nic;

    NW_TRY(nw_ib_reading_nic(reading, device, &nic));
    return nw_topo_set_text(reading->topo, nic, NW_FACT_NODE_GUID, guid, "ibv_devices");
}

/* --- ibdev2netdev --- */

/* "mlx5_0 port 1 ==> ib0 (Up)"; with -v "0000:17:00.0 mlx5_0 (MT4129 - …) … port 1 (ACTIVE) ==> …"
 */
static const char *find_arrow(const char *line, int *number_out)
{
    const char *arrow = strstr(line, " ==> "), *port;

    if (arrow == NULL)
        return NULL;
    port = strstr(line, " port ");
    return port != NULL && port < arrow && sscanf(port, " port %3d", number_out) == 1 ? arrow
                                                                                      : NULL;
}

static nw_rc read_ibdev2netdev(struct nw_ib_reading *reading, char *line)
{
    char *words[4], address[16];
    struct nw_ib_port port;
    int number, first = 0, node;
    unsigned int mellanox;
    const char *arrow = find_arrow(line, &number), *state;
    struct nw_topo_node *nic;

    reading->source = "ibdev2netdev";
    nw_ib_port_init(&port, "", number);
    if (sscanf(arrow, " ==> %31s", port.interface) != 1)
        port.interface[0] = '\0';
    state = strstr(strstr(line, " port "), "(");
    if (state != NULL && state < arrow) /* of the port; the one at the end is the interface's */
        nw_ib_state(&port, state);
    mellanox = 0;
    if (strstr(line, "(MT") != NULL && sscanf(strstr(line, "(MT"), "(MT%5u", &mellanox) != 1)
        mellanox = 0;
    if (nw_scan_words(line, words, 4) < 4)
        return NW_OK;
    address[0] = '\0';
    if (strchr(words[0], ':') != NULL) {
        if (nw_pci_normalise(words[0], address) != NW_OK) {
            nw_clear_error();
            return NW_OK;
        }
        first = 1;
    }
    snprintf(port.device, sizeof port.device, "%.63s", words[first]);
    NW_TRY(nw_ib_reading_put(reading, &port, &node));
    nic = &reading->topo->nodes[reading->topo->nodes[node].parent];
    snprintf(nic->pci, sizeof nic->pci, "%s", address);
    if (mellanox > 4000 && mellanox < 65536)
        nw_ib_name_model(nic, mellanox);
    return nw_topo_set_text(reading->topo, reading->topo->nodes[node].parent, NW_FACT_NETDEV,
                            port.interface, reading->source);
}

/* --- show_gids --- */

/* "mlx5_0  1  3  0000:…:ffff:c000:0201  192.0.2.1  v2  eth05": the IPv4 column is empty for other
 * addresses, the interface in a container that does not see it. */
static bool is_gid_row(const char *line)
{
    char device[64], gid[48];
    int number, index;

    return sscanf(line, "%63s %3d %5d %47s", device, &number, &index, gid) == 4 && number > 0 &&
           index >= 0 && strlen(gid) == 39 && gid[4] == ':' && gid[34] == ':';
}

static nw_rc read_gid_row(struct nw_ib_reading *reading, char *line)
{
    char *words[8], device[64];
    int number, index, nic, node;
    const char *type = "", *interface = "";
    size_t count;
    struct nw_ib_port port;

    if (sscanf(line, "%63s %3d %5d", device, &number, &index) != 3)
        return NW_OK;
    count = nw_scan_words(line, words, 8);
    for (size_t i = 4; i < count && i < 8; i++)
        if (strcmp(words[i], "v1") == 0 || strcmp(words[i], "v2") == 0) {
            type = words[i];
            interface = i + 1 < count && i + 1 < 8 ? words[i + 1] : "";
        }
    reading->gids_read++;
    reading->source = "show_gids";
    NW_TRY(nw_ib_reading_nic(reading, device, &nic));
    node = nw_ib_port_find(reading->topo, nic, number);
    if (node < 0) {
        nw_ib_port_init(&port, device, number);
        NW_TRY(nw_ib_reading_put(reading, &port, &node));
    }
    if (interface[0] != '\0' && nw_topo_text(reading->topo, node, NW_FACT_NETDEV) == NULL)
        NW_TRY(nw_topo_set_text(reading->topo, node, NW_FACT_NETDEV, interface, reading->source));
    return nw_ib_gid(reading->topo, node, index, words[3], type, interface);
}

/* --- which of them --- */

static bool is_gid_header(const char *line)
{
    return nw_scan_starts(line, "DEV") && strstr(line, "PORT") != NULL &&
           strstr(line, "INDEX") != NULL && strstr(line, "GID") != NULL;
}

bool nw_ib_is_one_line(const char *line)
{
    char device[64], guid[24];
    int number;

    return is_rdma_link(line) || is_rdma_dev(line) || find_arrow(line, &number) != NULL ||
           is_gid_row(line) || is_gid_header(line) || is_device_row(line, device, guid);
}

nw_rc nw_ib_read_one_line(struct nw_ib_reading *reading, char *line, bool *done_out)
{
    char device[64], guid[24];
    int number;

    *done_out = true;
    if (sscanf(line, "n_gids_found=%5d", &number) == 1) {
        reading->gids_promised = (reading->gids_promised < 0 ? 0 : reading->gids_promised) + number;
        return NW_OK;
    }
    if (is_rdma_link(line))
        return read_rdma_link(reading, line);
    if (is_rdma_dev(line))
        return read_rdma_dev(reading, line);
    if (find_arrow(line, &number) != NULL)
        return read_ibdev2netdev(reading, line);
    if (is_gid_row(line))
        return read_gid_row(reading, line);
    if (is_device_row(line, device, guid))
        return read_device_row(reading, device, guid);
    *done_out = is_gid_header(line);
    return NW_OK;
}
