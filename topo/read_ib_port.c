/* Ports of RDMA devices: words and rates of the tools made one. Sources: InfiniBand Architecture
 * Specification volume 1 (PortInfo: state, physical state, width), volume 2 (signalling rates);
 * Linux drivers/infiniband/core/sysfs.c (the texts of sysfs). */
#include "topo/read_ib.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/read.h"
#include "topo/scan.h"

void nw_ib_port_init(struct nw_ib_port *port, const char *device, int number)
{
    *port =
        (struct nw_ib_port){.number = number, .mtu_bytes = NAN, .mtu_max_bytes = NAN, .lid = NAN};
    snprintf(port->device, sizeof port->device, "%.63s", device);
}

/* --- words --- */

struct word {
    const char *key, *word; /* `key`: letters only, in lower case */
};

/* The word of the first row whose key is in the letters of `text`. */
static void find_word(const struct word *words, size_t count, const char *text, char *to,
                      size_t size)
{
    char letters[48];
    size_t used = 0;

    for (; *text != '\0' && used + 1 < sizeof letters; text++)
        if (isalpha((unsigned char)*text))
            letters[used++] = (char)tolower((unsigned char)*text);
    letters[used] = '\0';
    for (size_t i = 0; i < count; i++)
        if (strstr(letters, words[i].key) != NULL) {
            snprintf(to, size, "%s", words[i].word);
            return;
        }
}

void nw_ib_state(struct nw_ib_port *port, const char *text)
{
    static const struct word words[] = {{"activedefer", "active defer"},
                                        {"active", "active"},
                                        {"init", "init"},
                                        {"armed", "armed"},
                                        {"down", "down"}};

    find_word(words, sizeof words / sizeof *words, text, port->state, sizeof port->state);
}

void nw_ib_physical_state(struct nw_ib_port *port, const char *text)
{
    static const struct word words[] = {
        {"linkup", "link up"},       {"polling", "polling"},   {"disabled", "disabled"},
        {"sleep", "sleep"},          {"training", "training"}, {"recovery", "link error recovery"},
        {"phytest", "physical test"}};

    find_word(words, sizeof words / sizeof *words, text, port->physical_state,
              sizeof port->physical_state);
}

void nw_ib_link_layer(struct nw_ib_port *port, const char *text)
{
    static const struct word words[] = {
        {"infiniband", "infiniband"}, {"ethernet", "ethernet"}, {"ib", "infiniband"}};

    find_word(words, sizeof words / sizeof *words, text, port->link_layer, sizeof port->link_layer);
}

/* --- rates --- */

/* One lane: the rate it signals at, the share of a port's rate as it is sold, the name. QDR and
 * FDR10 are both sold as 10: a nominal rate finds the first row. */
static const struct {
    const char *name;
    double signalled_gbit_per_s, sold_gbit_per_s;
} generations[] = {
    {"SDR", 2.5, 2.5},      {"DDR", 5, 5},        {"QDR", 10, 10},
    {"FDR10", 10.3125, 10}, {"FDR", 14.0625, 14}, {"EDR", 25.78125, 25},
    {"HDR", 53.125, 50},    {"NDR", 106.25, 100}, {"XDR", 212.5, 200},
};

enum { GENERATION_COUNT = sizeof generations / sizeof *generations };

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 0.005 * b;
}

const char *nw_ib_generation(double lane_bits_per_s)
{
    for (size_t i = 0; i < GENERATION_COUNT; i++)
        if (is_near(lane_bits_per_s / 1e9, generations[i].signalled_gbit_per_s))
            return generations[i].name;
    return NULL;
}

void nw_ib_lane(struct nw_ib_port *port, double gbit_per_s)
{
    double sold = gbit_per_s;

    if (!(gbit_per_s > 0 && gbit_per_s < 1e4))
        return;
    port->lane_bits_per_s = gbit_per_s * 1e9;
    for (size_t i = 0; i < GENERATION_COUNT; i++)
        if (is_near(gbit_per_s, generations[i].signalled_gbit_per_s) ||
            is_near(gbit_per_s, generations[i].sold_gbit_per_s)) {
            sold = generations[i].sold_gbit_per_s;
            port->lane_bits_per_s = generations[i].signalled_gbit_per_s * 1e9;
            break;
        }
    if (port->width > 0)
        port->rate_bits_per_s = port->width * sold * 1e9;
}

void nw_ib_lane_of_generation(struct nw_ib_port *port, const char *name)
{
    for (size_t i = 0; i < GENERATION_COUNT; i++)
        if (nw_scan_same(name, generations[i].name))
            nw_ib_lane(port, generations[i].signalled_gbit_per_s);
}

void nw_ib_width(struct nw_ib_port *port, const char *text)
{
    const size_t digits = strspn(text, "0123456789");

    if (digits >= 1 && digits <= 2 && (text[digits] == 'X' || text[digits] == 'x')) {
        const int width = atoi(text); /* two digits */

        if (width >= 1 && width <= 16)
            port->width = width;
    }
}

void nw_ib_rate(struct nw_ib_port *port, const char *text)
{
    char *end;
    const double rate = strtod(text, &end);
    char width[8] = "", name[8] = "";

    if (end == text || !(rate > 0 && rate < 1e5))
        return;
    port->rate_bits_per_s = rate * 1e9;
    end += strcspn(end, "(");
    if (sscanf(end, "(%7[0-9Xx] %7[A-Za-z0-9]", width, name) >= 1 ||
        sscanf(end, "(%7[A-Za-z0-9])", name) >= 1) {
        nw_ib_width(port, width);
        if (name[0] != '\0')
            nw_ib_lane_of_generation(port, name);
        else if (port->width > 0)
            nw_ib_lane(port, rate / port->width);
    }
    port->rate_bits_per_s = rate * 1e9;
}

/* --- numbers --- */

void nw_ib_lid(struct nw_ib_port *port, const char *text)
{
    char *end;
    const unsigned long lid = strtoul(text, &end, 0);

    /* 0: none given, and on Ethernet; 0xffff: the permissive LID of a port that is down */
    if (isdigit((unsigned char)*text) && end != text && lid > 0 && lid < 0xffff)
        port->lid = (double)lid;
}

bool nw_ib_guid(const char *text, char guid_out[24])
{
    char digits[17];
    size_t used = 0;
    bool zero = true;

    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        text += 2;
    for (; *text != '\0' && *text != ' '; text++) {
        if (*text == ':')
            continue;
        if (!isxdigit((unsigned char)*text) || used == 16)
            return false;
        zero &= *text == '0';
        digits[used++] = (char)tolower((unsigned char)*text);
    }
    if (used != 16 || zero)
        return false;
    digits[16] = '\0';
    snprintf(guid_out, 24, "%.4s:%.4s:%.4s:%.4s", digits, digits + 4, digits + 8, digits + 12);
    return true;
}

/* --- nodes --- */

nw_rc nw_topo_start(const char *what, unsigned sources, struct nw_topo **topo_out)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    int machine;
    nw_rc rc;

    if (topo == NULL)
        return nw_fail(NW_ENOMEM, "%s: out of memory for a topology", what);
    rc = nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &machine);
    if (rc != NW_OK) {
        nw_topo_free(topo);
        return rc;
    }
    snprintf(topo->nodes[machine].name, sizeof topo->nodes[machine].name, "machine");
    snprintf(topo->source, sizeof topo->source, "%s", what);
    topo->sources = sources;
    topo->gaps = NW_TOPO_PARTIAL;
    *topo_out = topo;
    return NW_OK;
}

/* Is `name` one of the blank-separated words? */
static bool has_name(const char *words, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = strstr(words, name); at != NULL && length > 0; at = strstr(at + 1, name))
        if ((at == words || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' '))
            return true;
    return false;
}

nw_rc nw_ib_nic(struct nw_topo *topo, const char *device, int *nic_out)
{
    int index;

    for (size_t i = topo->node_count; i-- > 0;)
        if (topo->nodes[i].kind == NW_NODE_NIC && (strcmp(topo->nodes[i].name, device) == 0 ||
                                                   has_name(topo->nodes[i].os_names, device))) {
            *nic_out = (int)i;
            return NW_OK;
        }
    NW_TRY(nw_topo_add_node(topo, NW_NODE_NIC, 0, &index));
    snprintf(topo->nodes[index].name, sizeof topo->nodes[index].name, "%.63s", device);
    if (strchr(device, ' ') == NULL) /* a fabric's "node1 HCA-1" is no name of the system */
        snprintf(topo->nodes[index].os_names, sizeof topo->nodes[index].os_names, "%.63s", device);
    *nic_out = index;
    return NW_OK;
}

static void port_name(const struct nw_topo *topo, int nic, int number, char name[64])
{
    snprintf(name, 64, "%.55s/%d", topo->nodes[nic].name, number);
}

int nw_ib_port_find(const struct nw_topo *topo, int nic, int number)
{
    char name[64];

    port_name(topo, nic, number, name);
    for (size_t i = topo->node_count; i-- > 0;)
        if (topo->nodes[i].kind == NW_NODE_PORT && topo->nodes[i].parent == nic &&
            strcmp(topo->nodes[i].name, name) == 0)
            return (int)i;
    return -1;
}

static nw_rc put_facts(struct nw_topo *topo, int node, const struct nw_ib_port *port,
                       const char *source)
{
    const bool carries = port->state[0] == '\0' || strncmp(port->state, "active", 6) == 0;
    const struct {
        nw_fact_id id;
        const char *text;
    } texts[] = {{NW_FACT_STATE, port->state},      {NW_FACT_LINK_LAYER, port->link_layer},
                 {NW_FACT_PORT_GUID, port->guid},   {NW_FACT_PHYSICAL_STATE, port->physical_state},
                 {NW_FACT_NETDEV, port->interface}, {NW_FACT_PEER, port->peer}};
    const struct {
        nw_fact_id id;
        double number;
    } numbers[] = {
        {NW_FACT_MTU, port->mtu_bytes},
        {NW_FACT_MTU_MAX, port->mtu_max_bytes},
        {NW_FACT_LID, port->lid},
        {NW_FACT_WIDTH, carries && port->width > 0 ? port->width : NAN},
        {NW_FACT_LANE_RATE, carries && port->lane_bits_per_s > 0 ? port->lane_bits_per_s : NAN}};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        NW_TRY(nw_topo_set_text(topo, node, texts[i].id, texts[i].text, source));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        NW_TRY(nw_topo_set_number(topo, node, numbers[i].id, numbers[i].number, source));
    if (carries && port->rate_bits_per_s > 0)
        topo->nodes[node].rate_bits_per_s = port->rate_bits_per_s;
    return NW_OK;
}

nw_rc nw_ib_port_put(struct nw_topo *topo, const struct nw_ib_port *port, const char *source,
                     int *port_out)
{
    int nic, node;

    NW_TRY(nw_ib_nic(topo, port->device, &nic));
    node = nw_ib_port_find(topo, nic, port->number);
    if (node < 0) {
        char name[64];

        port_name(topo, nic, port->number, name);
        NW_TRY(nw_topo_add_node(topo, NW_NODE_PORT, nic, &node));
        memcpy(topo->nodes[node].name, name, sizeof name);
    }
    if (port_out != NULL)
        *port_out = node;
    return put_facts(topo, node, port, source);
}

/* --- GIDs --- */

/* The IP address that a RoCE GID stands for: IPv4 in its mapped form (::ffff:192.0.2.1), IPv6 that
 * is not link-local. */
static void ip_of_gid(const struct in6_addr *address, char ip[48])
{
    ip[0] = '\0';
    if (IN6_IS_ADDR_V4MAPPED(address))
        (void)inet_ntop(AF_INET, &address->s6_addr[12], ip, 48);
    else if (!IN6_IS_ADDR_LINKLOCAL(address))
        (void)inet_ntop(AF_INET6, address, ip, 48);
}

static const char *gid_type(const char *text, bool infiniband)
{
    if (strstr(text, "v2") != NULL || strstr(text, "V2") != NULL)
        return "roce v2";
    if (infiniband)
        return "ib";
    /* sysfs says "IB/RoCE v1" on either fabric. */
    return strstr(text, "v1") != NULL || strstr(text, "V1") != NULL ? "roce v1" : "";
}

/* Two tools may print the same row. */
static struct nw_topo_gid *find_gid(struct nw_topo *topo, int port, int index)
{
    for (size_t i = topo->gid_count; i-- > 0;)
        if (topo->gids[i].port == port && topo->gids[i].index == index)
            return &topo->gids[i];
    return NULL;
}

nw_rc nw_ib_gid(struct nw_topo *topo, int port, int index, const char *text, const char *type,
                const char *interface)
{
    struct nw_topo_gid gid = {.port = port, .index = index};
    const char *layer = nw_topo_text(topo, port, NW_FACT_LINK_LAYER);
    struct nw_topo_gid *known;
    struct in6_addr address;
    size_t used = 0;

    if (inet_pton(AF_INET6, text, &address) != 1 || IN6_IS_ADDR_UNSPECIFIED(&address))
        return NW_OK;
    if (topo->gid_count >= NW_IB_MAX_GIDS)
        return nw_fail(NW_EUSAGE, "%s: more than %d GIDs; no machine has that many", topo->source,
                       NW_IB_MAX_GIDS);
    for (int i = 0; i < 16; i += 2)
        used += (size_t)sprintf(gid.gid + used, "%s%02x%02x", i > 0 ? ":" : "", address.s6_addr[i],
                                address.s6_addr[i + 1]);
    snprintf(gid.type, sizeof gid.type, "%s",
             gid_type(type, layer != NULL && strcmp(layer, "infiniband") == 0));
    if (strncmp(gid.type, "roce", 4) == 0 || gid.type[0] == '\0')
        ip_of_gid(&address, gid.ip);
    snprintf(gid.interface, sizeof gid.interface, "%.31s", interface);
    known = find_gid(topo, port, index);
    if (known == NULL)
        return nw_topo_add_gid(topo, &gid);
    if (strcmp(known->gid, gid.gid) == 0 &&
        (known->type[0] == '\0' || known->interface[0] == '\0')) {
        if (gid.interface[0] == '\0')
            memcpy(gid.interface, known->interface, sizeof gid.interface);
        if (gid.type[0] == '\0')
            memcpy(gid.type, known->type, sizeof gid.type);
        *known = gid;
    }
    return NW_OK;
}

/* --- the NICs --- */

struct sum {
    double bits_per_s;
    int up; /* as nw_topo_node.port_up */
    const char *layer;
};

static void add_port(const struct nw_topo *topo, int port, struct sum *sum)
{
    const char *state = nw_topo_text(topo, port, NW_FACT_STATE);
    const char *layer = nw_topo_text(topo, port, NW_FACT_LINK_LAYER);
    const bool active = state != NULL && strncmp(state, "active", 6) == 0;

    if (state != NULL)
        sum->up = active || sum->up == 1;
    if (active || state == NULL)
        sum->bits_per_s += topo->nodes[port].rate_bits_per_s;
    if (layer != NULL && (sum->layer == NULL || active))
        sum->layer = layer;
}

/* RoCE also shows by the kind of its GIDs. */
static bool has_roce_gid(const struct nw_topo *topo, int nic)
{
    for (size_t i = 0; i < topo->gid_count; i++)
        if (topo->nodes[topo->gids[i].port].parent == nic &&
            strncmp(topo->gids[i].type, "roce", 4) == 0)
            return true;
    return false;
}

nw_rc nw_ib_finish(struct nw_topo *topo)
{
    struct sum *sums = calloc(topo->node_count + 1, sizeof *sums);

    if (sums == NULL)
        return nw_fail(NW_ENOMEM, "%s: out of memory for the ports", topo->source);
    for (size_t i = 0; i < topo->node_count; i++)
        sums[i].up = -1;
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_PORT)
            add_port(topo, (int)i, &sums[topo->nodes[i].parent]);
    for (size_t i = 0; i < topo->node_count; i++) {
        static const char *const others[] = {"cxi", "efa", "omnipath", "iwarp"};
        struct nw_topo_node *node = &topo->nodes[i];
        bool own = false;

        if (node->kind != NW_NODE_NIC)
            continue;
        if (sums[i].bits_per_s > 0)
            node->rate_bits_per_s = sums[i].bits_per_s;
        if (sums[i].up >= 0 && node->port_up != 1)
            node->port_up = sums[i].up;
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            own |= strcmp(node->fabric, others[k]) == 0;
        if (own)
            continue;
        if (sums[i].layer != NULL)
            snprintf(node->fabric, sizeof node->fabric, "%s",
                     strcmp(sums[i].layer, "infiniband") == 0 ? "infiniband" : "roce");
        else if (node->fabric[0] == '\0' && has_roce_gid(topo, (int)i))
            snprintf(node->fabric, sizeof node->fabric, "roce");
    }
    free(sums);
    return NW_OK;
}
