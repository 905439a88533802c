/* Network interfaces of NICs: name, MTU, MAC address, IP addresses. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "topo/live_rdma.h"

#define SOURCE "sysfs"

enum { MAX_INTERFACES = 64 }; /* of one device; virtual functions have their own */

/* dev_port is the port's number less one; mlx4 has dev_id in its place, and two ports of one PCI
 * function. */
static bool is_of_port(const struct nw_files *files, const char *folder, const char *name,
                       int number)
{
    static const char *const keys[] = {"dev_port", "dev_id"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char text[32];
        unsigned int port;

        if (nw_files_read(files, text, sizeof text, "%s/net/%s/%s", folder, name, keys[i]) &&
            sscanf(text, strncmp(text, "0x", 2) == 0 ? "%10x" : "%10u", &port) == 1 &&
            (int)port == number - 1)
            return true;
    }
    return false;
}

bool nw_rdma_interface_of_port(const struct nw_files *files, const char *folder, int number,
                               char name[32])
{
    char path[300];
    struct nw_names names;
    bool found = false;

    name[0] = '\0';
    snprintf(path, sizeof path, "%.255s/net", folder);
    if (folder[0] == '\0' || nw_files_list(files, path, &names) != NW_OK)
        return false;
    for (size_t i = 0; i < names.count && i < MAX_INTERFACES && !found; i++)
        if (names.count == 1 || is_of_port(files, folder, names.items[i], number)) {
            snprintf(name, 32, "%.31s", names.items[i]);
            found = true;
        }
    nw_names_free(&names);
    return found;
}

/* Six octets; IP over InfiniBand's twenty are no MAC address. */
static bool is_mac(const char *text)
{
    unsigned int octets[6];
    int end = -1;

    return sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &octets[0], &octets[1], &octets[2], &octets[3],
                  &octets[4], &octets[5], &end) == 6 &&
           end == 17 && text[end] == '\0' && strcmp(text, "00:00:00:00:00:00") != 0;
}

/* class/net/NAME, or the folder below the PCI device where that is all there is. */
static bool read_of_interface(const struct nw_files *files, const struct nw_topo_node *nic,
                              const char *name, const char *file, char *text, size_t size)
{
    if (nw_files_read(files, text, size, "class/net/%s/%s", name, file))
        return true;
    return nic->pci[0] != '\0' &&
           nw_files_read(files, text, size, "bus/pci/devices/%s/net/%s/%s", nic->pci, name, file);
}

static nw_rc read_interface(const struct nw_files *files, struct nw_topo *topo, int nic,
                            const char *name, bool *done_out)
{
    char text[128];
    uint64_t mtu;

    if (!read_of_interface(files, &topo->nodes[nic], name, "mtu", text, sizeof text))
        return NW_OK;
    *done_out = true;
    NW_TRY(nw_topo_set_text(topo, nic, NW_FACT_NETDEV, name, SOURCE));
    /* IP over InfiniBand has an MTU of its own, which RDMA does not use. */
    if (strcmp(topo->nodes[nic].fabric, "infiniband") == 0)
        return NW_OK;
    if (nw_parse_u64(text, 64, 1 << 20, &mtu) == NW_OK)
        NW_TRY(nw_topo_set_number(topo, nic, NW_FACT_MTU, (double)mtu, SOURCE));
    else
        nw_clear_error();
    if (read_of_interface(files, &topo->nodes[nic], name, "address", text, sizeof text) &&
        is_mac(text))
        return nw_topo_set_text(topo, nic, NW_FACT_MAC, text, SOURCE);
    return NW_OK;
}

nw_rc nw_rdma_interfaces(const struct nw_files *files, struct nw_topo *topo, int nic)
{
    char names[sizeof topo->nodes[nic].os_names], *rest = names, *name;
    char path[64];
    struct nw_names below;
    bool done = false;
    nw_rc rc = NW_OK;

    snprintf(names, sizeof names, "%s", topo->nodes[nic].os_names);
    while (!done && (name = strsep(&rest, " ")) != NULL)
        if (name[0] != '\0')
            NW_TRY(read_interface(files, topo, nic, name, &done));
    if (done || topo->nodes[nic].pci[0] == '\0')
        return NW_OK;
    snprintf(path, sizeof path, "bus/pci/devices/%.15s/net", topo->nodes[nic].pci);
    NW_TRY(nw_files_list(files, path, &below));
    for (size_t i = 0; i < below.count && i < MAX_INTERFACES && rc == NW_OK && !done; i++)
        rc = read_interface(files, topo, nic, below.items[i], &done);
    nw_names_free(&below);
    return rc;
}

/* --- IP addresses --- */

static int prefix_length(const struct sockaddr *mask)
{
    const unsigned char *octets;
    size_t count;
    int length = 0;

    if (mask == NULL)
        return -1;
    if (mask->sa_family == AF_INET) {
        octets = (const unsigned char *)&((const struct sockaddr_in *)mask)->sin_addr;
        count = 4;
    } else if (mask->sa_family == AF_INET6) {
        octets = ((const struct sockaddr_in6 *)mask)->sin6_addr.s6_addr;
        count = 16;
    } else {
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        length += __builtin_popcount(octets[i]);
    return length;
}

static void add_address(const struct ifaddrs *entry, char *list, size_t size)
{
    char text[INET6_ADDRSTRLEN] = "";
    const size_t used = strlen(list);

    if (entry->ifa_addr->sa_family == AF_INET)
        (void)inet_ntop(AF_INET, &((const struct sockaddr_in *)entry->ifa_addr)->sin_addr, text,
                        sizeof text);
    else
        (void)inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)entry->ifa_addr)->sin6_addr, text,
                        sizeof text);
    if (used + strlen(text) + 8 < size) /* whole addresses only */
        snprintf(list + used, size - used, "%s%s/%d", used > 0 ? ", " : "", text,
                 prefix_length(entry->ifa_netmask));
}

/* "10.0.0.1/24, fe80::1/64"; "": none. */
static void addresses_of(const struct ifaddrs *all, const char *interface, char *list, size_t size)
{
    list[0] = '\0';
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next)
        if (entry->ifa_addr != NULL &&
            (entry->ifa_addr->sa_family == AF_INET || entry->ifa_addr->sa_family == AF_INET6) &&
            strcmp(entry->ifa_name, interface) == 0)
            add_address(entry, list, size);
}

nw_rc nw_rdma_addresses(struct nw_topo *topo)
{
    struct ifaddrs *all;
    nw_rc rc = NW_OK;

    if (getifaddrs(&all) != 0)
        return NW_OK; /* no addresses known */
    for (size_t i = 0; i < topo->node_count && rc == NW_OK; i++) {
        const nw_node_kind kind = topo->nodes[i].kind;
        const char *interface = nw_topo_text(topo, (int)i, NW_FACT_NETDEV);
        char list[192];

        if ((kind != NW_NODE_NIC && kind != NW_NODE_PORT) || interface == NULL)
            continue;
        addresses_of(all, interface, list, sizeof list);
        rc = nw_topo_set_text(topo, (int)i, NW_FACT_IP, list, "system");
    }
    freeifaddrs(all);
    return rc;
}
