#include "topo/traffic.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/files.h"

#define INFINIBAND_WORD 4 /* bytes; of port_xmit_data, by the InfiniBand specification */
#define ARPHRD_IPOIB    "32"

static void add_port(struct nw_traffic *traffic, const struct nw_traffic_port *port)
{
    if (!isfinite(port->sent_bytes) || !isfinite(port->received_bytes))
        return;
    if (traffic->count < NW_TRAFFIC_PORTS_MAX)
        traffic->ports[traffic->count++] = *port;
    else
        traffic->left_out++;
}

/* "400 Gb/sec (4X NDR)"; 0: unknown. */
static double rdma_rate(const struct nw_files *files, const char *folder)
{
    char text[64], *unit;
    double gbit_per_s;

    if (!nw_files_read(files, text, sizeof text, "%s/rate", folder))
        return 0;
    unit = strstr(text, " Gb/sec");
    if (unit == NULL)
        return 0;
    *unit = '\0';
    if (nw_parse_double(text, 0, 1e6, &gbit_per_s) == NW_OK)
        return gbit_per_s * 1e9;
    nw_clear_error();
    return 0;
}

/* The kernel links an interface to the device that it belongs to, where it has one. */
static bool has_device(const struct nw_files *files, const char *folder)
{
    struct nw_names names;
    char device[128];
    bool found;

    snprintf(device, sizeof device, "%.100s/device", folder);
    if (nw_files_list(files, device, &names) != NW_OK)
        return false;
    found = names.count > 0;
    nw_names_free(&names);
    return found;
}

static void read_rdma_port(const struct nw_files *files, const char *device, const char *number,
                           struct nw_traffic *traffic)
{
    struct nw_traffic_port port = {.rdma = true};
    char folder[160], parent[96], state[32];

    snprintf(folder, sizeof folder, "class/infiniband/%.64s/ports/%.16s", device, number);
    if (!nw_files_read(files, state, sizeof state, "%s/state", folder) ||
        strstr(state, "ACTIVE") == NULL)
        return;
    snprintf(port.name, sizeof port.name, strcmp(number, "1") == 0 ? "%.20s" : "%.20s/%.8s", device,
             number);
    port.bits_per_s = rdma_rate(files, folder);
    snprintf(parent, sizeof parent, "class/infiniband/%.64s", device);
    port.physical = has_device(files, parent);
    port.sent_bytes = INFINIBAND_WORD * nw_files_number(files, folder, "counters/port_xmit_data");
    port.received_bytes =
        INFINIBAND_WORD * nw_files_number(files, folder, "counters/port_rcv_data");
    if (!isfinite(port.sent_bytes)) { /* EFA counts bytes, in a place of its own */
        port.sent_bytes = nw_files_number(files, folder, "hw_counters/tx_bytes");
        port.received_bytes = nw_files_number(files, folder, "hw_counters/rx_bytes");
    }
    add_port(traffic, &port);
}

static void read_rdma(const struct nw_files *files, struct nw_traffic *traffic)
{
    struct nw_names devices, ports;
    char folder[128];

    if (nw_files_list(files, "class/infiniband", &devices) != NW_OK)
        return;
    for (size_t i = 0; i < devices.count; i++) {
        snprintf(folder, sizeof folder, "class/infiniband/%.64s/ports", devices.items[i]);
        if (nw_files_list(files, folder, &ports) != NW_OK)
            continue;
        for (size_t j = 0; j < ports.count; j++)
            read_rdma_port(files, devices.items[i], ports.items[j], traffic);
        nw_names_free(&ports);
    }
    nw_names_free(&devices);
}

/* Bonds, bridges and VLANs stand on other interfaces, which count the same bytes. */
static bool stands_on_others(const struct nw_files *files, const char *folder)
{
    struct nw_names names;
    bool found = false;

    if (nw_files_list(files, folder, &names) != NW_OK)
        return false;
    for (size_t i = 0; i < names.count; i++)
        found |= strncmp(names.items[i], "lower_", 6) == 0;
    nw_names_free(&names);
    return found;
}

static void read_interface(const struct nw_files *files, const char *name, bool physical,
                           struct nw_traffic *traffic)
{
    struct nw_traffic_port port = {.physical = physical};
    double megabits = 0;
    char folder[96], text[64];

    snprintf(folder, sizeof folder, "class/net/%.31s", name);
    if (has_device(files, folder) != physical ||
        !nw_files_read(files, text, sizeof text, "%s/operstate", folder) ||
        strcmp(text, "up") != 0 || strcmp(name, "lo") == 0 || stands_on_others(files, folder))
        return;
    if (nw_files_read(files, text, sizeof text, "%s/type", folder) &&
        strcmp(text, ARPHRD_IPOIB) == 0)
        return;
    snprintf(port.name, sizeof port.name, "%.31s", name);
    port.sent_bytes = nw_files_number(files, folder, "statistics/tx_bytes");
    port.received_bytes = nw_files_number(files, folder, "statistics/rx_bytes");
    /* A virtual interface has a speed that means nothing: veth says 10 Gb/s. */
    if (port.physical)
        megabits = nw_files_number(files, folder, "speed");
    if (megabits > 0)
        port.bits_per_s = megabits * 1e6;
    add_port(traffic, &port);
}

static void read_interfaces(const struct nw_files *files, struct nw_traffic *traffic)
{
    struct nw_names names;

    if (nw_files_list(files, "class/net", &names) != NW_OK)
        return;
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < names.count; i++)
            read_interface(files, names.items[i], turn == 0, traffic);
    nw_names_free(&names);
}

void nw_traffic_read(const char *root, struct nw_traffic *traffic_out)
{
    const struct nw_files files = {.root = root != NULL ? root : "/sys"};

    traffic_out->count = traffic_out->left_out = 0;
    read_rdma(&files, traffic_out);
    read_interfaces(&files, traffic_out);
    nw_clear_error(); /* a folder that is not there is no failure here */
}

void nw_traffic_since(const struct nw_traffic *before, const struct nw_traffic *after,
                      struct nw_traffic *moved_out)
{
    moved_out->count = 0;
    moved_out->left_out = after->left_out;
    for (size_t i = 0; i < after->count; i++) {
        struct nw_traffic_port port = after->ports[i];

        for (size_t j = 0; j < before->count; j++) {
            const struct nw_traffic_port *old = &before->ports[j];

            if (old->rdma != port.rdma || strcmp(old->name, port.name) != 0)
                continue;
            port.sent_bytes = fmax(port.sent_bytes - old->sent_bytes, 0);
            port.received_bytes = fmax(port.received_bytes - old->received_bytes, 0);
            moved_out->ports[moved_out->count++] = port;
            break;
        }
    }
}
