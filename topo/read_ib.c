/* What ibstat, ibstatus, ibv_devinfo, rdma link/dev, ibdev2netdev and show_gids print of one
 * machine. Their lines do not resemble each other, so one reader takes any of them, in any order,
 * in one file: people paste them together. Formats: the tools' sources (infiniband-diags,
 * libibverbs/examples, iproute2, MLNX_OFED's scripts). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "topo/read.h"
#include "topo/read_ib.h"
#include "topo/read_ib_lines.h"
#include "topo/scan.h"

/* --- "key: value" lines, below a device and a port --- */

typedef void port_setter(struct nw_ib_port *port, const char *text);

static void set_guid(struct nw_ib_port *port, const char *text)
{
    (void)nw_ib_guid(text, port->guid);
}

/* "4096 (5)" */
static double mtu_of(const char *text)
{
    unsigned int bytes;

    return sscanf(text, "%6u", &bytes) == 1 && bytes >= 256 && bytes <= 65536 ? bytes : 0;
}

static void set_mtu(struct nw_ib_port *port, const char *text)
{
    if (mtu_of(text) > 0)
        port->mtu_bytes = mtu_of(text);
}

static void set_mtu_max(struct nw_ib_port *port, const char *text)
{
    if (mtu_of(text) > 0)
        port->mtu_max_bytes = mtu_of(text);
}

/* ibv_devinfo -v: "25.0 Gbps (32)", of one lane */
static void set_lane(struct nw_ib_port *port, const char *text)
{
    double gbit_per_s;

    if (sscanf(text, "%lf Gbps", &gbit_per_s) == 1)
        nw_ib_lane(port, gbit_per_s);
}

static const struct {
    const char *key;
    port_setter *set;
} port_keys[] = {
    {"state", nw_ib_state},
    {"physical state", nw_ib_physical_state},
    {"phys state", nw_ib_physical_state},
    {"phys_state", nw_ib_physical_state},
    {"rate", nw_ib_rate},
    {"base lid", nw_ib_lid},
    {"port_lid", nw_ib_lid},
    {"port guid", set_guid},
    {"link layer", nw_ib_link_layer},
    {"link_layer", nw_ib_link_layer},
    {"active_mtu", set_mtu},
    {"max_mtu", set_mtu_max},
    {"active_width", nw_ib_width},
    {"active_speed", set_lane},
};

/* Of a device. A GUID is written as sysfs writes it, so that two sources agree. */
static const struct {
    const char *key;
    nw_fact_id id;
    bool guid;
} device_keys[] = {
    {"firmware version", NW_FACT_FIRMWARE, false},
    {"fw_ver", NW_FACT_FIRMWARE, false},
    {"board_id", NW_FACT_BOARD, false},
    {"node guid", NW_FACT_NODE_GUID, true},
    {"node_guid", NW_FACT_NODE_GUID, true},
    {"system image guid", NW_FACT_SYSTEM_GUID, true},
    {"sys_image_guid", NW_FACT_SYSTEM_GUID, true},
};

static nw_rc flush_port(struct nw_ib_reading *reading)
{
    if (reading->port.number == 0)
        return NW_OK;
    reading->ports_of_device++;
    if (reading->port.state[0] == '\0')
        reading->cut = true; /* every tool prints the state first */
    NW_TRY(nw_ib_reading_put(reading, &reading->port, &reading->port_node));
    reading->port.number = 0;
    return NW_OK;
}

static nw_rc end_device(struct nw_ib_reading *reading)
{
    NW_TRY(flush_port(reading));
    if (reading->device[0] != '\0' && reading->ports_of_device < reading->ports_promised)
        reading->cut = true;
    reading->device[0] = '\0';
    reading->ports_promised = reading->ports_of_device = 0;
    reading->port_node = -1;
    return NW_OK;
}

static nw_rc begin_device(struct nw_ib_reading *reading, const char *name, const char *source)
{
    int nic;

    NW_TRY(end_device(reading));
    snprintf(reading->device, sizeof reading->device, "%.63s", name);
    reading->source = source;
    return nw_ib_reading_nic(reading, reading->device, &nic);
}

static nw_rc begin_port(struct nw_ib_reading *reading, int number)
{
    NW_TRY(flush_port(reading));
    reading->port_node = -1;
    if (reading->device[0] != '\0' && number > 0)
        nw_ib_port_init(&reading->port, reading->device, number);
    return NW_OK;
}

/* "MT4129" and the vendor_part_id 4129 are the PCI device id of a Mellanox adapter, in decimal. */
static nw_rc set_model(struct nw_ib_reading *reading, const char *text)
{
    uint64_t id;
    int nic;

    NW_TRY(nw_ib_reading_nic(reading, reading->device, &nic));
    if (nw_parse_u64(nw_scan_starts(text, "MT") ? text + 2 : text, 4000, 0xffff, &id) != NW_OK) {
        nw_clear_error();
        return NW_OK;
    }
    nw_ib_name_model(&reading->topo->nodes[nic], (uint32_t)id);
    return NW_OK;
}

/* "GID[  0]:   fe80:…:0001, RoCE v2" below a port that was seen. */
static nw_rc read_gid_of_port(struct nw_ib_reading *reading, const char *key, const char *value)
{
    char address[64];
    const char *type = strchr(value, ',');
    int index;

    if (sscanf(key, "GID[%5d", &index) != 1 || index < 0 ||
        sscanf(value, "%63[0-9a-fA-F:.]", address) != 1)
        return NW_OK;
    NW_TRY(flush_port(reading));
    if (reading->port_node < 0)
        return NW_OK;
    return nw_ib_gid(reading->topo, reading->port_node, index, address, type != NULL ? type : "",
                     "");
}

static nw_rc read_device_pair(struct nw_ib_reading *reading, const struct nw_scan_pair *pair)
{
    char guid[24];
    int nic;

    if (nw_scan_same(pair->key, "Number of ports") || nw_scan_same(pair->key, "phys_port_cnt")) {
        if (sscanf(pair->value, "%3d", &reading->ports_promised) != 1)
            reading->ports_promised = 0;
        return NW_OK;
    }
    if (nw_scan_same(pair->key, "CA type") || nw_scan_same(pair->key, "vendor_part_id"))
        return set_model(reading, pair->value);
    for (size_t i = 0; i < sizeof device_keys / sizeof *device_keys; i++) {
        if (!nw_scan_same(pair->key, device_keys[i].key))
            continue;
        NW_TRY(nw_ib_reading_nic(reading, reading->device, &nic));
        if (!device_keys[i].guid)
            return nw_topo_set_text(reading->topo, nic, device_keys[i].id, pair->value,
                                    reading->source);
        return nw_ib_guid(pair->value, guid)
                   ? nw_topo_set_text(reading->topo, nic, device_keys[i].id, guid, reading->source)
                   : NW_OK;
    }
    return NW_OK;
}

static nw_rc read_pair(struct nw_ib_reading *reading, const struct nw_scan_pair *pair)
{
    int number;

    if (nw_scan_same(pair->key, "hca_id"))
        return begin_device(reading, pair->value, "ibv_devinfo");
    if (nw_scan_same(pair->key, "port") && sscanf(pair->value, "%3d", &number) == 1)
        return begin_port(reading, number);
    if (sscanf(pair->key, "Port %3d", &number) == 1 && pair->value[0] == '\0')
        return begin_port(reading, number);
    if (reading->device[0] == '\0')
        return NW_OK;
    if (nw_scan_starts(pair->key, "GID["))
        return read_gid_of_port(reading, pair->key, pair->value);
    if (reading->port.number == 0)
        return read_device_pair(reading, pair);
    for (size_t i = 0; i < sizeof port_keys / sizeof *port_keys; i++)
        if (nw_scan_same(pair->key, port_keys[i].key)) {
            port_keys[i].set(&reading->port, pair->value);
            return NW_OK;
        }
    return NW_OK;
}

/* "CA 'mlx5_0'", "Infiniband device 'mlx5_0' port 1 status:"; the name to `name`. */
static bool quoted_name(const char *line, char name[64], int *port_out)
{
    const char *open = strchr(line, '\''), *close = open != NULL ? strchr(open + 1, '\'') : NULL;

    *port_out = 0;
    if (close == NULL || close == open + 1 || close - open > 64)
        return false;
    snprintf(name, 64, "%.*s", (int)(close - open - 1), open + 1);
    if (sscanf(close, "' port %3d", port_out) != 1)
        *port_out = 0;
    return true;
}

/* A tool that stopped: "ibpanic: [1400444] main: stat of IB device 'mlx5_8' failed: No such …". */
static bool is_complaint(const char *line)
{
    static const char *const starts[] = {"ibpanic:", "ibwarn:", "Failed to ", "ibv_",
                                         "libibverbs: "};
    static const char *const parts[] = {"ailed", "rror", "anic", "No such", "not found"};

    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        for (size_t k = 0; nw_scan_starts(line, starts[i]) && k < sizeof parts / sizeof *parts; k++)
            if (strstr(line, parts[k]) != NULL)
                return true;
    return false;
}

static nw_rc read_line(struct nw_ib_reading *reading, struct nw_scan *text)
{
    char *line = nw_scan_trim(text->line), name[64];
    struct nw_scan_pair pair;
    bool done;
    int number;

    if (nw_scan_elision(line)) {
        reading->cut = true;
        return NW_OK;
    }
    if (is_complaint(line))
        return nw_ib_reading_complaint(reading, text->number, line);
    if (nw_scan_starts(line, "CA '") || nw_scan_starts(line, "CA: '")) {
        if (quoted_name(line, name, &number))
            return begin_device(reading, name, "ibstat");
    }
    if (nw_scan_starts(line, "Infiniband device '") && quoted_name(line, name, &number)) {
        NW_TRY(begin_device(reading, name, "ibstatus"));
        return begin_port(reading, number);
    }
    NW_TRY(nw_ib_read_one_line(reading, line, &done));
    if (done || !nw_scan_pair(line, &pair))
        return NW_OK;
    return read_pair(reading, &pair);
}

static nw_rc read_all(struct nw_ib_reading *reading, struct nw_scan *text)
{
    while (nw_scan_next(text))
        NW_TRY(read_line(reading, text));
    NW_TRY(text->rc);
    NW_TRY(end_device(reading));
    return nw_ib_reading_end(reading);
}

nw_rc nw_read_ib(const char *data, size_t length, const char *what, struct nw_topo **topo_out)
{
    struct nw_ib_reading reading = {.port_node = -1, .gids_promised = -1};
    struct nw_scan text;
    nw_rc rc;

    NW_TRY(nw_scan_open(&text, data, length, what));
    rc = nw_topo_start(what, NW_SOURCE_RDMA, &reading.topo);
    if (rc == NW_OK)
        rc = read_all(&reading, &text);
    if (rc == NW_OK && nw_topo_count(reading.topo, NW_NODE_NIC) == 0)
        rc = nw_fail(NW_EUSAGE,
                     "%s: names no RDMA device. Give the whole output of ibstat, ibv_devinfo -v, "
                     "rdma link or show_gids",
                     what);
    nw_scan_close(&text);
    if (rc != NW_OK) {
        nw_topo_free(reading.topo);
        return rc;
    }
    nw_topo_clean(reading.topo);
    *topo_out = reading.topo;
    return NW_OK;
}

/* --- is it such a file? --- */

bool nw_is_ib(const char *data, size_t length)
{
    struct nw_scan text;
    bool found = false;

    if (nw_scan_open(&text, data, length, "") != NW_OK) {
        nw_clear_error();
        return false;
    }
    while (!found && nw_scan_next(&text)) {
        const char *line = nw_scan_trim(text.line);

        found = nw_scan_starts(line, "CA '") || nw_scan_starts(line, "CA: '") ||
                (nw_scan_starts(line, "hca_id:") && line[7] != '\0') ||
                nw_scan_starts(line, "Infiniband device '") || nw_ib_is_one_line(line);
    }
    nw_scan_close(&text);
    if (text.rc != NW_OK)
        nw_clear_error();
    return found;
}
