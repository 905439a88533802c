/* The interfaces that NCCL would take, by its own rules (NCCL's user guide, NCCL_SOCKET_IFNAME;
 * src/misc/socket.cc): without the variable interfaces named ib*, else all but loopback and
 * docker*; of each its first address, IPv4 before IPv6. Those of other container engines and
 * hypervisors are left out as well: they lead to no other host. */
#include "collectives/reach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/units.h"

static const char *const inner[] = {"lo",     "docker",  "veth",  "virbr", "br-",   "tunl",
                                    "cni",    "flannel", "cali",  "vxlan", "dummy", "ifb",
                                    "podman", "lxc",     "lxdbr", NULL};

static bool is_inner(const char *interface)
{
    for (size_t i = 0; inner[i] != NULL; i++)
        if (strncmp(interface, inner[i], strlen(inner[i])) == 0)
            return true;
    return false;
}

/* Is the interface one of the list's names (`exact`) or does it begin with one? */
static bool is_listed(const char *list, bool exact, const char *interface)
{
    while (*list != '\0') {
        const size_t length = strcspn(list, ",:"); /* "eth0:port" is accepted by NCCL */
        const size_t name = strcspn(list, ",");

        if (length > 0 && strncmp(interface, list, length) == 0 &&
            (!exact || interface[length] == '\0'))
            return true;
        list += name;
        list += *list == ',';
    }
    return false;
}

bool nw_reach_takes(const char *filter, const char *interface)
{
    bool except, exact;

    if (filter == NULL || filter[0] == '\0')
        return !is_inner(interface);
    except = *filter == '^';
    filter += except;
    exact = *filter == '=';
    filter += exact;
    return is_listed(filter, exact, interface) != except;
}

static int prefix_bits(const struct sockaddr *mask)
{
    const unsigned char *bytes;
    size_t length;
    int bits = 0;

    if (mask == NULL)
        return 0;
    if (mask->sa_family == AF_INET) {
        bytes = (const unsigned char *)&((const struct sockaddr_in *)(const void *)mask)->sin_addr;
        length = 4;
    } else {
        bytes =
            (const unsigned char *)&((const struct sockaddr_in6 *)(const void *)mask)->sin6_addr;
        length = 16;
    }
    for (size_t i = 0; i < length; i++)
        bits += __builtin_popcount(bytes[i]);
    return bits;
}

/* A number of /sys/class/net/NAME/FILE; 0: none. "-1" is what a port that is down says. */
static double of_interface(const char *name, const char *file)
{
    char path[128], *text;
    size_t length;
    double value = 0;

    snprintf(path, sizeof path, "/sys/class/net/%.31s/%s", name, file);
    if (nw_file_read(path, 4096, &text, &length) == NW_OK) {
        text[strcspn(text, "\n")] = '\0';
        if (nw_parse_double(text, 0, 1e9, &value) != NW_OK)
            value = 0;
        free(text);
    }
    nw_clear_error();
    return value;
}

/* An address that another host can be told: no link-local IPv6, which needs an interface too. */
static bool address_text(const struct sockaddr *address, char ip[48])
{
    if (address->sa_family == AF_INET)
        return inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr,
                         ip, 48) != NULL;
    if (address->sa_family != AF_INET6)
        return false;
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

    return !IN6_IS_ADDR_LINKLOCAL(v6) && !IN6_IS_ADDR_LOOPBACK(v6) &&
           inet_ntop(AF_INET6, v6, ip, 48) != NULL;
}

static bool has_interface(const struct nw_reach_end *end, const char *name)
{
    for (size_t i = 0; i < end->address_count; i++)
        if (strcmp(end->addresses[i].interface, name) == 0)
            return true;
    return false;
}

/* Appends a name that is not there yet. */
static void note(char *list, size_t size, const char *name)
{
    const size_t used = strlen(list);

    if (!is_listed(list, true, name) && used + strlen(name) + 2 < size)
        snprintf(list + used, size - used, "%s%s", used > 0 ? "," : "", name);
}

/* 169.254.0.0/16 (RFC 3927): the same on every host, as of management controllers (BMC). */
static bool is_link_local(const char *ip)
{
    return strncmp(ip, "169.254.", 8) == 0;
}

static void add(struct nw_reach_end *end, const struct ifaddrs *entry, const char *ip)
{
    struct nw_reach_address *address;

    if (end->address_count == NW_REACH_ADDRESSES_MAX || has_interface(end, entry->ifa_name))
        return;
    address = &end->addresses[end->address_count++];
    *address = (struct nw_reach_address){.prefix = prefix_bits(entry->ifa_netmask)};
    snprintf(address->interface, sizeof address->interface, "%.31s", entry->ifa_name);
    snprintf(address->ip, sizeof address->ip, "%s", ip);
    address->mtu = (int)of_interface(entry->ifa_name, "mtu");
    address->bits_per_s = of_interface(entry->ifa_name, "speed") * 1e6; /* Mb/s */
}

/* IFF_RUNNING follows a new carrier up to a second late. */
static bool is_up(const struct ifaddrs *entry)
{
    return entry->ifa_addr != NULL && (entry->ifa_flags & IFF_UP) &&
           !(entry->ifa_flags & IFF_LOOPBACK) &&
           ((entry->ifa_flags & IFF_RUNNING) || of_interface(entry->ifa_name, "carrier") == 1);
}

static bool is_ib(const struct nw_reach_address *address)
{
    return strncmp(address->interface, "ib", 2) == 0;
}

static void choose(struct nw_reach_end *end)
{
    bool any_ib = false;

    for (size_t i = 0; i < end->address_count; i++)
        any_ib |= is_ib(&end->addresses[i]);
    for (size_t i = 0; i < end->address_count; i++)
        end->addresses[i].chosen = end->filter[0] != '\0' || !any_ib || is_ib(&end->addresses[i]);
}

nw_rc nw_reach_find(const char *filter, struct nw_reach_end *end_out)
{
    static const int families[] = {AF_INET, AF_INET6};
    struct nw_reach_end end = {.port = 0};
    struct ifaddrs *list;

    if (getifaddrs(&list) != 0)
        return nw_fail(NW_EIO, "the network interfaces of this host cannot be listed: %s",
                       strerror(errno));
    if (filter != NULL)
        snprintf(end.filter, sizeof end.filter, "%.95s", filter);
    for (size_t family = 0; family < 2; family++)
        for (const struct ifaddrs *entry = list; entry != NULL; entry = entry->ifa_next) {
            char ip[48];

            if (!is_up(entry) || entry->ifa_addr->sa_family != families[family] ||
                !address_text(entry->ifa_addr, ip))
                continue;
            if (!nw_reach_takes(filter, entry->ifa_name)) {
                note(end.left_out, sizeof end.left_out, entry->ifa_name);
            } else if (is_link_local(ip) && end.filter[0] == '\0') {
                note(end.left_out, sizeof end.left_out, entry->ifa_name);
                note(end.link_local, sizeof end.link_local, entry->ifa_name);
            } else {
                add(&end, entry, ip);
            }
        }
    freeifaddrs(list);
    choose(&end);
    *end_out = end;
    return NW_OK;
}

bool nw_reach_is_partner(size_t from, size_t to, size_t count)
{
    if (from == to || from >= count || to >= count)
        return false;
    if (count <= NW_REACH_ALL_HOSTS)
        return true;
    if (to == (from + 1) % count || from == (to + 1) % count)
        return true;
    /* NW_REACH_PARTNERS of count, spread without order: multiplicative hash (Knuth). */
    const uint64_t mixed =
        ((uint64_t)from * 0x9e3779b97f4a7c15u) ^ ((uint64_t)to * 0xc2b2ae3d27d4eb4fu);

    return (mixed * 0xff51afd7ed558ccdu >> 32) % count < NW_REACH_PARTNERS;
}
