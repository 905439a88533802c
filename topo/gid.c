#include "topo/gid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How good a row of a GID table is. */
enum { NO_ROW, ROCE_V1, LINK_LOCAL, OVER_IPV6, OVER_IPV4 };

struct port {
    const struct nw_topo *topo;
    size_t host; /* index in the list of topologies */
    int node;
};

struct ports {
    struct port *items; /* owned */
    size_t count;
};

/* --- the ports --- */

static bool is_active(const struct nw_topo *topo, int port)
{
    const char *state = nw_topo_text(topo, port, NW_FACT_STATE);

    if (state != NULL)
        return strncmp(state, "active", 6) == 0;
    return topo->nodes[topo->nodes[port].parent].port_up != 0;
}

static bool is_of_fabric(const struct nw_topo *topo, int port, const char *layer,
                         const char *fabric)
{
    const char *known = nw_topo_text(topo, port, NW_FACT_LINK_LAYER);

    if (strcmp(topo->nodes[topo->nodes[port].parent].fabric, "iwarp") == 0)
        return false;
    return known != NULL ? strcmp(known, layer) == 0
                         : strcmp(topo->nodes[topo->nodes[port].parent].fabric, fabric) == 0;
}

static double fastest_of(const struct nw_topo *topo, const char *layer, const char *fabric)
{
    double fastest = -1; /* none; 0: one of unknown rate */

    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_PORT && is_active(topo, (int)i) &&
            is_of_fabric(topo, (int)i, layer, fabric) && topo->nodes[i].rate_bits_per_s > fastest)
            fastest = topo->nodes[i].rate_bits_per_s;
    return fastest;
}

/* Active RoCE ports of all hosts, or the fastest of each host. */
static nw_rc collect(const struct nw_topo *const *topos, size_t count, bool fastest_only,
                     struct ports *ports)
{
    ports->count = 0;
    for (size_t host = 0; host < count; host++) {
        const double fastest = fastest_of(topos[host], "ethernet", "roce");

        for (size_t i = 0; i < topos[host]->node_count; i++) {
            struct port *items;

            if (topos[host]->nodes[i].kind != NW_NODE_PORT || !is_active(topos[host], (int)i) ||
                !is_of_fabric(topos[host], (int)i, "ethernet", "roce") ||
                (fastest_only && topos[host]->nodes[i].rate_bits_per_s < fastest))
                continue;
            items = realloc(ports->items, (ports->count + 1) * sizeof *items);
            if (items == NULL)
                return nw_fail(NW_ENOMEM, "out of memory for %zu RoCE ports", ports->count + 1);
            ports->items = items;
            items[ports->count++] =
                (struct port){.topo = topos[host], .host = host, .node = (int)i};
        }
    }
    return NW_OK;
}

/* --- the rows --- */

static int quality(const struct nw_topo_gid *gid)
{
    if (strcmp(gid->type, "roce v1") == 0)
        return ROCE_V1;
    if (strcmp(gid->type, "roce v2") != 0)
        return NO_ROW;
    if (strchr(gid->ip, '.') != NULL)
        return OVER_IPV4;
    return gid->ip[0] != '\0' ? OVER_IPV6 : LINK_LOCAL;
}

static int quality_at(const struct port *port, int index)
{
    for (size_t i = 0; i < port->topo->gid_count; i++)
        if (port->topo->gids[i].port == port->node && port->topo->gids[i].index == index)
            return quality(&port->topo->gids[i]);
    return NO_ROW;
}

static int best_of_port(const struct port *port)
{
    int best = NO_ROW;

    for (size_t i = 0; i < port->topo->gid_count; i++)
        if (port->topo->gids[i].port == port->node && quality(&port->topo->gids[i]) > best)
            best = quality(&port->topo->gids[i]);
    return best;
}

/* The lowest index at which all ports [from, to) have a row of this kind; -1: none. Of one kind: an
 * IPv4 address does not reach an IPv6 one. */
static int common_index(const struct ports *ports, size_t from, size_t to, int kind)
{
    const struct port *first = &ports->items[from];
    int best = -1;

    for (size_t i = 0; i < first->topo->gid_count; i++) {
        const struct nw_topo_gid *gid = &first->topo->gids[i];
        bool all = gid->port == first->node && quality(gid) == kind;

        for (size_t k = from + 1; k < to && all; k++)
            all = quality_at(&ports->items[k], gid->index) == kind;
        if (all && (best < 0 || gid->index < best))
            best = gid->index;
    }
    return best;
}

/* The end of the ports of the host that `from` belongs to. */
static size_t end_of_host(const struct ports *ports, size_t from)
{
    size_t to = from;

    while (to < ports->count && ports->items[to].host == ports->items[from].host)
        to++;
    return to;
}

/* --- NCCL --- */

/* From 2.21 on NCCL looks for the index itself (its release notes: dynamic GID detection;
 * NCCL_IB_ROCE_VERSION_NUM, NCCL_IB_ADDR_FAMILY and NCCL_IB_ADDR_RANGE guide it). */
static bool nccl_chooses(const struct nw_topo *const *topos, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *version = nw_topo_text(topos[i], 0, NW_FACT_NCCL);
        unsigned int major, minor;

        if (version == NULL || sscanf(version, "%3u.%3u", &major, &minor) != 2 ||
            major * 1000 + minor < 2021)
            return false;
    }
    return count > 0;
}

/* --- what is to be said --- */

static const char *host_name(const struct port *port, char text[80])
{
    if (port->topo->host[0] != '\0')
        snprintf(text, 80, "%s", port->topo->host);
    else
        snprintf(text, 80, "host %zu", port->host);
    return text;
}

/* "node1 3, node2 5" of hosts that differ; the list ends with "…" where it is long. */
static void list_hosts(const struct ports *ports, int kind, char *text, size_t size)
{
    char name[80];

    text[0] = '\0';
    for (size_t from = 0; from < ports->count; from = end_of_host(ports, from)) {
        const size_t used = strlen(text);
        const int index = common_index(ports, from, end_of_host(ports, from), kind);

        if (used + 100 > size) {
            snprintf(text + used, size - used, ", …");
            return;
        }
        snprintf(text + used, size - used, "%s%s %d", used > 0 ? ", " : "",
                 host_name(&ports->items[from], name), index);
    }
}

/* "mlx5_0/1 3, mlx5_1/1 5": of one host */
static void list_ports(const struct ports *ports, size_t from, int kind, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = from; i < end_of_host(ports, from); i++) {
        const size_t used = strlen(text);
        const int index = common_index(ports, i, i + 1, kind);

        if (used + 90 > size) {
            snprintf(text + used, size - used, ", …");
            return;
        }
        snprintf(text + used, size - used, "%s%s ", used > 0 ? ", " : "",
                 ports->items[i].topo->nodes[ports->items[i].node].name);
        if (index >= 0)
            snprintf(text + strlen(text), size - strlen(text), "%d", index);
        else
            snprintf(text + strlen(text), size - strlen(text), "none");
    }
}

static nw_rc say_shared(const struct nw_gid_choice *choice, struct nw_findings *findings)
{
    char remedy[160];

    if (choice->link_local)
        return nw_findings_add(findings, NW_FINDING_WARN, "gid-link-local", "RoCE",
                               "give each RoCE interface an IPv4 address",
                               "the one RoCE v2 GID that all %d ports share, index %d, is "
                               "link-local: it reaches no host beyond the same Ethernet segment",
                               choice->port_count, choice->index);
    if (choice->nccl_chooses)
        snprintf(remedy, sizeof remedy,
                 "nothing: NCCL 2.21 and later find it (leave NCCL_IB_GID_INDEX unset, or set %d)",
                 choice->index);
    else
        snprintf(remedy, sizeof remedy, "set NCCL_IB_GID_INDEX=%d (NCCL before 2.21 needs it)",
                 choice->index);
    return nw_findings_add(findings, NW_FINDING_INFO, "gid-index", "RoCE", remedy,
                           "GID index %d is RoCE v2 over %s on %s%d RoCE ports", choice->index,
                           choice->ipv4 ? "IPv4" : "IPv6",
                           choice->fastest_only ? "the fastest " : "all ", choice->port_count);
}

static nw_rc say_differs(const struct ports *ports, int kind, const struct nw_gid_choice *choice,
                         struct nw_findings *findings)
{
    char hosts[500];

    list_hosts(ports, kind, hosts, sizeof hosts);
    return nw_findings_add(
        findings, choice->nccl_chooses ? NW_FINDING_INFO : NW_FINDING_WARN, "gid-index-differs",
        "RoCE",
        choice->nccl_chooses
            ? "leave NCCL_IB_GID_INDEX unset: NCCL 2.21 and later find each host's own"
            : "write NCCL_IB_GID_INDEX host by host into /etc/nccl.conf, or use NCCL 2.21 or later "
              "and leave it unset",
        "the GID index of RoCE v2 differs between hosts (%s): one NCCL_IB_GID_INDEX for all does "
        "not work",
        hosts);
}

static nw_rc say_mixed(const struct ports *ports, size_t from, int kind,
                       const struct nw_gid_choice *choice, struct nw_findings *findings)
{
    char indexes[500], host[80];

    list_ports(ports, from, kind, indexes, sizeof indexes);
    return nw_findings_add(
        findings, choice->nccl_chooses ? NW_FINDING_INFO : NW_FINDING_WARN, "gid-index-mixed",
        host_name(&ports->items[from], host),
        choice->nccl_chooses
            ? "leave NCCL_IB_GID_INDEX unset: NCCL 2.21 and later find each NIC's own"
            : "give all RoCE interfaces the same number of addresses (one IPv4 each), name the "
              "NICs that agree in NCCL_IB_HCA, or use NCCL 2.21 or later",
        "no GID index is RoCE v2 on all ports (%s): one NCCL_IB_GID_INDEX does not serve them",
        indexes);
}

/* --- the choice --- */

struct decision {
    nw_gid_verdict verdict;
    int index, kind;
    size_t mixed_from; /* NW_GID_MIXED: the first port of a host that has no index for all */
};

/* Is there an index of the kind on every host? *failed_out: the first port of one without. */
static bool each_host_has(const struct ports *ports, int kind, size_t *failed_out)
{
    for (size_t from = 0; from < ports->count; from = end_of_host(ports, from))
        if (common_index(ports, from, end_of_host(ports, from), kind) < 0) {
            *failed_out = from;
            return false;
        }
    return true;
}

static bool each_port_has(const struct ports *ports, int kind)
{
    for (size_t i = 0; i < ports->count; i++)
        if (common_index(ports, i, i + 1, kind) < 0)
            return false;
    return true;
}

/* One index for all, else one for each host, else rows at different places; link-local addresses,
 * which are there always, only where there is nothing better. */
static struct decision decide(const struct ports *ports)
{
    static const int kinds[] = {OVER_IPV4, OVER_IPV6, LINK_LOCAL};
    enum { ROUTABLE = 2 }; /* of them */
    struct decision decision = {.verdict = NW_GID_SHARED, .index = -1};

    for (int i = 0; i < ROUTABLE; i++) {
        decision.kind = kinds[i];
        decision.index = common_index(ports, 0, ports->count, decision.kind);
        if (decision.index >= 0)
            return decision;
    }
    for (int i = 0; i < ROUTABLE; i++) {
        decision.kind = kinds[i];
        decision.verdict =
            each_host_has(ports, kinds[i], &decision.mixed_from) ? NW_GID_DIFFERS : NW_GID_MIXED;
        if (decision.verdict == NW_GID_DIFFERS || each_port_has(ports, kinds[i]))
            return decision;
    }
    decision.kind = kinds[ROUTABLE];
    decision.index = common_index(ports, 0, ports->count, decision.kind);
    if (decision.index >= 0) {
        decision.verdict = NW_GID_SHARED;
        return decision;
    }
    decision.verdict = NW_GID_MIXED;
    decision.kind = OVER_IPV4;
    if (each_host_has(ports, decision.kind, &decision.mixed_from))
        decision.mixed_from = 0;
    return decision;
}

static nw_rc judge(struct ports *ports, struct nw_gid_choice *choice, struct nw_findings *findings)
{
    struct decision decision;
    int best = NO_ROW;

    choice->port_count = (int)ports->count;
    for (size_t i = 0; i < ports->count; i++)
        if (best_of_port(&ports->items[i]) > best)
            best = best_of_port(&ports->items[i]);
    if (best == NO_ROW) {
        choice->verdict = NW_GID_UNKNOWN;
        return nw_findings_add(findings, NW_FINDING_INFO, "not-checked", "RoCE",
                               "give show_gids or ibv_devinfo -v as well",
                               "GIDs of %d RoCE ports: their tables were not read",
                               choice->port_count);
    }
    if (best == ROCE_V1) {
        choice->verdict = NW_GID_OLD;
        return nw_findings_add(findings, NW_FINDING_WARN, "roce-v1-only", "RoCE",
                               "switch the NICs to RoCE v2 (cma_roce_mode, or the driver's option)",
                               "%d RoCE ports have GIDs of RoCE v1 only: not routable, and many "
                               "switches give it no lossless queue",
                               choice->port_count);
    }
    decision = decide(ports);
    choice->verdict = decision.verdict;
    choice->index = decision.verdict == NW_GID_SHARED ? decision.index : -1;
    choice->ipv4 = decision.kind == OVER_IPV4;
    choice->link_local = decision.kind == LINK_LOCAL;
    if (choice->verdict == NW_GID_SHARED)
        return say_shared(choice, findings);
    if (choice->verdict == NW_GID_DIFFERS)
        return say_differs(ports, decision.kind, choice, findings);
    return say_mixed(ports, decision.mixed_from, decision.kind, choice, findings);
}

static bool is_good(const struct decision *decision)
{
    return decision->verdict == NW_GID_SHARED && decision->kind != LINK_LOCAL;
}

/* Slower ports serve storage and management: where no index does for all, they need not agree. */
static nw_rc leave_slow_out(const struct nw_topo *const *topos, size_t count, struct ports *ports,
                            bool *fastest_only_out)
{
    const size_t all = ports->count;
    struct decision decision = decide(ports);

    *fastest_only_out = false;
    if (is_good(&decision))
        return NW_OK;
    NW_TRY(collect(topos, count, true, ports));
    decision = decide(ports);
    *fastest_only_out = ports->count < all && is_good(&decision);
    return *fastest_only_out ? NW_OK : collect(topos, count, false, ports);
}

/* Do all hosts have InfiniBand that is at least as fast as their RoCE? */
static bool has_infiniband(const struct nw_topo *const *topos, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double infiniband = fastest_of(topos[i], "infiniband", "infiniband");

        if (infiniband < 0 || infiniband < fastest_of(topos[i], "ethernet", "roce"))
            return false;
    }
    return true;
}

nw_rc nw_gid_choose(const struct nw_topo *const *topos, size_t count,
                    struct nw_gid_choice *choice_out, struct nw_findings *findings)
{
    struct nw_gid_choice choice = {.verdict = NW_GID_NOT_NEEDED, .index = -1};
    struct ports ports = {.items = NULL};
    nw_rc rc = NW_OK;

    choice.nccl_chooses = nccl_chooses(topos, count);
    if (!has_infiniband(topos, count))
        rc = collect(topos, count, false, &ports);
    if (rc == NW_OK && ports.count > 0)
        rc = leave_slow_out(topos, count, &ports, &choice.fastest_only);
    if (rc == NW_OK && ports.count > 0)
        rc = judge(&ports, &choice, findings);
    free(ports.items);
    if (rc != NW_OK)
        return rc;
    *choice_out = choice;
    return NW_OK;
}
