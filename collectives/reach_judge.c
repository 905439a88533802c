/* What the connections between hosts say, in words. A fault that many pairs share (the same state
 * over interfaces of one name) is told for the first TOLD_MAX of them, then counted. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "collectives/address.h"
#include "collectives/reach.h"

#define TOLD_MAX 4

static bool same_subnet(const struct nw_reach_address *a, const struct nw_reach_address *b)
{
    return nw_address_share_network(a->ip, a->prefix, b->ip, b->prefix);
}

static const struct nw_reach_try *find_try(const struct nw_reach_report *report, size_t from,
                                           size_t to, size_t address)
{
    for (size_t i = 0; report->tries[from] != NULL && i < report->try_counts[from]; i++) {
        const struct nw_reach_try *try = &report->tries[from][i];

        if ((size_t)try->to == to && (size_t)try->address == address)
            return try;
    }
    return NULL;
}

/* ---- blocked pairs -----------------------------------------------------------------------------
 */

struct words {
    const char *code, *said, *cause, *remedy;
};

static const struct words words[NW_REACH_STATE_COUNT] = {
    [NW_REACH_TIMEOUT] = {"reach-blocked", "connection timed out",
                          "a firewall drops the packets, or there is no way back",
                          "open all TCP ports between the nodes (security group, nftables, "
                          "firewalld)"},
    [NW_REACH_REFUSED] = {"reach-blocked", "connection refused",
                          "a firewall rejects it, or another machine has this address",
                          "open all TCP ports between the nodes; look whether the address is "
                          "given twice"},
    [NW_REACH_NO_ROUTE] = {"reach-blocked", "no route",
                           "the routing table has no way there, or the neighbour does not answer",
                           "look at \"ip route get\" on both nodes, cabling and VLAN of the port"},
    [NW_REACH_FORBIDDEN] = {"reach-blocked", "forbidden by this host",
                            "a local firewall rule or a prohibit route",
                            "open all outgoing TCP ports between the nodes"},
    [NW_REACH_OTHER_HOST] = {"reach-other-host", "another process or host answered",
                             "the address is given twice (bridges of container engines often are)",
                             "leave the interface out with NCCL_SOCKET_IFNAME=^NAME, or give every "
                             "host its own address"},
    [NW_REACH_SILENT] = {"reach-silent", "connected, and no data came",
                         "the path loses data packets, or the other process stands still",
                         "look at MTU and at what stands between the nodes"},
    [NW_REACH_CUT] = {"reach-large-packets", "connected, and large packets are lost",
                      "the MTU of both ends is larger than that of the path",
                      "set the same MTU on both hosts and all switch ports, or lower the hosts'"},
    [NW_REACH_FAILED] = {"reach-blocked", "connection failed", "see the error",
                         "look at the addresses and at the limit of open files"},
};

/* An interface over which `from` reaches `to`; NULL: none. */
static const char *way_that_works(const struct nw_reach_report *report, size_t from, size_t to)
{
    for (size_t i = 0; i < report->ends[to].address_count; i++) {
        const struct nw_reach_try *try = find_try(report, from, to, i);

        if (try != NULL && try->state == NW_REACH_OK)
            return report->ends[to].addresses[i].interface;
    }
    return NULL;
}

/* Does the other direction work over an interface of the same network? */
static bool works_back(const struct nw_reach_report *report, size_t from, size_t to, size_t address)
{
    const struct nw_reach_end *own = &report->ends[from];

    for (size_t i = 0; i < own->address_count; i++) {
        const struct nw_reach_try *back = find_try(report, to, from, i);

        if (back != NULL && back->state == NW_REACH_OK &&
            (same_subnet(&own->addresses[i], &report->ends[to].addresses[address]) ||
             strcmp(own->addresses[i].interface, report->ends[to].addresses[address].interface) ==
                 0))
            return true;
    }
    return false;
}

static nw_rc tell_blocked(const struct nw_reach_report *report, size_t from,
                          const struct nw_reach_try *try, struct nw_findings *findings)
{
    const size_t to = (size_t)try->to;
    const struct nw_reach_end *here = &report->ends[from], *there = &report->ends[to];
    const struct nw_reach_address *address = &there->addresses[try->address];
    const struct words *say = &words[try->state];
    const char *other = way_that_works(report, from, to);
    char where[192], remedy[400];

    snprintf(where, sizeof where, "%s -> %s %s", here->host, there->host, address->interface);
    snprintf(remedy, sizeof remedy, "%s%s%s", say->remedy,
             other != NULL ? "; until then NCCL_SOCKET_IFNAME=" : "", other != NULL ? other : "");
    NW_TRY(nw_findings_add(
        findings, address->chosen ? NW_FINDING_FAIL : NW_FINDING_WARN, say->code, where, remedy,
        "%s %s -> %s %s port %d: %s%s%s%s: %s; %s%s%s", here->host,
        try->from[0] != '\0' ? try->from : "(no source address)", there->host, address->ip,
        there->port, say->said, try->error != 0 && try->state == NW_REACH_FAILED ? " (" : "",
        try->error != 0 && try->state == NW_REACH_FAILED ? strerror(try->error) : "",
        try->error != 0 && try->state == NW_REACH_FAILED ? ")" : "", say->cause,
        "NCCL needs all ports open between nodes",
        works_back(report, from, to, (size_t)try->address)
            ? "; the other way works, so it is one side's firewall or the way back"
            : "",
        other != NULL ? "; over another interface they reach each other" : ""));
    return nw_findings_effect(findings, NAN, "%s",
                              other != NULL ? "NCCL hangs or fails at its start if it takes this "
                                              "interface: 0 GB/s between these nodes"
                                            : "NCCL hangs or fails at its start: 0 GB/s between "
                                              "these nodes");
}

static const struct nw_reach_address *address_of(const struct nw_reach_report *report,
                                                 const struct nw_reach_try *try)
{
    return &report->ends[try->to].addresses[try->address];
}

static bool is_alike(const struct nw_reach_report *report, const struct nw_reach_try *a,
                     const struct nw_reach_try *b)
{
    return a->state == b->state &&
           strcmp(address_of(report, a)->interface, address_of(report, b)->interface) == 0;
}

/* How many of those alike there are ahead of this one (`ahead`), or in all; counts up to `most`. */
static size_t count_alike(const struct nw_reach_report *report, size_t host, size_t index,
                          bool ahead, size_t most)
{
    const struct nw_reach_try *one = &report->tries[host][index];
    size_t count = 0;

    for (size_t from = 0; from < report->count; from++)
        for (size_t i = 0; report->tries[from] != NULL && i < report->try_counts[from]; i++) {
            if (count == most || (ahead && from == host && i == index))
                return count;
            count += is_alike(report, one, &report->tries[from][i]);
        }
    return count;
}

static nw_rc judge_one(const struct nw_reach_report *report, size_t from, size_t index,
                       struct nw_findings *findings)
{
    const struct nw_reach_try *try = &report->tries[from][index];
    const struct nw_reach_address *address = address_of(report, try);
    const size_t before = count_alike(report, from, index, true, TOLD_MAX + 1);

    if (before < TOLD_MAX)
        return tell_blocked(report, from, try, findings);
    if (before > TOLD_MAX)
        return NW_OK;
    return nw_findings_add(findings, address->chosen ? NW_FINDING_FAIL : NW_FINDING_WARN,
                           words[try->state].code, "all hosts", words[try->state].remedy,
                           "%zu more connections over %s fail in the same way (--json lists them)",
                           count_alike(report, from, index, false, SIZE_MAX) - TOLD_MAX,
                           address->interface);
}

static nw_rc judge_pairs(const struct nw_reach_report *report, struct nw_findings *findings)
{
    for (size_t from = 0; from < report->count; from++)
        for (size_t i = 0; report->tries[from] != NULL && i < report->try_counts[from]; i++)
            if (report->tries[from][i].state != NW_REACH_OK)
                NW_TRY(judge_one(report, from, i, findings));
    return NW_OK;
}

/* ---- interfaces --------------------------------------------------------------------------------
 */

static nw_rc judge_no_interface(const struct nw_reach_end *end, struct nw_findings *findings)
{
    if (end->address_count > 0 || end->port == 0)
        return NW_OK;
    if (end->filter[0] != '\0')
        return nw_findings_add(findings, NW_FINDING_FAIL, "reach-no-interface", end->host,
                               "name an interface that the host has, or unset NCCL_SOCKET_IFNAME",
                               "NCCL_SOCKET_IFNAME=%s fits none of its interfaces with an address"
                               "%s%s: NCCL finds no network",
                               end->filter, end->left_out[0] != '\0' ? "; it has " : "",
                               end->left_out);
    return nw_findings_add(findings, NW_FINDING_FAIL, "reach-no-interface", end->host,
                           "give the host an interface with an address in the nodes' network",
                           "no interface is up with an address that another host can reach%s%s",
                           end->left_out[0] != '\0' ? "; left out: " : "", end->left_out);
}

/* Linux answers for all its addresses on every interface and sends through the first route: one of
 * the two carries everything (Documentation/networking/ip-sysctl, arp_ignore, rp_filter). */
static nw_rc judge_same_subnet(const struct nw_reach_end *end, struct nw_findings *findings)
{
    for (size_t a = 0; a < end->address_count; a++)
        for (size_t b = a + 1; b < end->address_count; b++) {
            const struct nw_reach_address *x = &end->addresses[a], *y = &end->addresses[b];
            const double lost = y->bits_per_s > 0 ? y->bits_per_s / 8 : NAN;
            char where[128], rate[32];

            if (!x->chosen || !y->chosen || !same_subnet(x, y))
                continue;
            snprintf(where, sizeof where, "%s %s %s", end->host, x->interface, y->interface);
            NW_TRY(nw_findings_add(
                findings, NW_FINDING_WARN, "reach-same-subnet", where,
                "give each interface a subnet of its own, or bond them, or name one in "
                "NCCL_SOCKET_IFNAME",
                "%s (%s/%d) and %s (%s/%d) are in one subnet: Linux sends through one of them only",
                x->interface, x->ip, x->prefix, y->interface, y->ip, y->prefix));
            NW_TRY(nw_findings_effect(findings, lost, "TCP traffic of both goes over one%s%s%s",
                                      isnan(lost) ? "" : ": ",
                                      isnan(lost) ? "" : nw_format_gb_per_s(rate, lost),
                                      isnan(lost) ? "" : " GB/s of a node unused"));
        }
    return NW_OK;
}

/* The first pair of each host with an earlier one; more would repeat it. */
static nw_rc judge_mtu(const struct nw_reach_report *report, size_t host,
                       struct nw_findings *findings)
{
    for (size_t before = 0; before < host; before++)
        for (size_t a = 0; a < report->ends[host].address_count; a++)
            for (size_t b = 0; b < report->ends[before].address_count; b++) {
                const struct nw_reach_end *x = &report->ends[before], *y = &report->ends[host];
                const struct nw_reach_address *p = &x->addresses[b], *q = &y->addresses[a];
                char where[192];

                if (!same_subnet(p, q) || p->mtu == q->mtu || p->mtu == 0 || q->mtu == 0)
                    continue;
                snprintf(where, sizeof where, "%s %s", y->host, q->interface);
                NW_TRY(nw_findings_add(
                    findings, NW_FINDING_WARN, "reach-mtu", where,
                    "set one MTU on all hosts and switch ports of the network (ip link set DEV mtu "
                    "N)",
                    "%s %s has MTU %d, %s %s in the same subnet %d: large packets may be lost "
                    "between them",
                    x->host, p->interface, p->mtu, y->host, q->interface, q->mtu));
                return nw_findings_effect(findings, NAN,
                                          "the smaller MTU counts; where packets are lost, TCP "
                                          "stands still");
            }
    return NW_OK;
}

static bool share_subnet(const struct nw_reach_end *a, const struct nw_reach_end *b)
{
    for (size_t i = 0; i < a->address_count; i++)
        for (size_t j = 0; j < b->address_count; j++)
            if (a->addresses[i].chosen && b->addresses[j].chosen &&
                same_subnet(&a->addresses[i], &b->addresses[j]))
                return true;
    return false;
}

static nw_rc judge_subnets(const struct nw_reach_report *report, struct nw_findings *findings)
{
    const struct nw_reach_end *first = NULL;

    for (size_t i = 0; i < report->count; i++) {
        const struct nw_reach_end *end = &report->ends[i];

        if (end->address_count == 0)
            continue;
        if (first == NULL) {
            first = end;
        } else if (!share_subnet(first, end)) {
            return nw_findings_add(
                findings, NW_FINDING_INFO, "reach-subnets", end->host,
                "measure the rate between these hosts (nodeworth bench --cases pairs)",
                "it shares no subnet with %s (%s/%d and %s/%d): their traffic goes through a "
                "router, which may be slower than the NICs",
                first->host, first->addresses[0].ip, first->addresses[0].prefix,
                end->addresses[0].ip, end->addresses[0].prefix);
        }
    }
    return NW_OK;
}

static nw_rc judge_link_local(const struct nw_reach_report *report, struct nw_findings *findings)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct nw_reach_end *end = &report->ends[i];

        if (end->link_local[0] == '\0')
            continue;
        return nw_findings_add(findings, NW_FINDING_INFO, "reach-link-local", end->host,
                               "leave it out by name: NCCL_SOCKET_IFNAME=^NAME (and --mca "
                               "btl_tcp_if_exclude for Open MPI)",
                               "%s: a link-local address (169.254.…), mostly the management "
                               "controller's; no other host reaches it, and NCCL may take it",
                               end->link_local);
    }
    return NW_OK;
}

static nw_rc judge_filters(const struct nw_reach_report *report, struct nw_findings *findings)
{
    for (size_t i = 1; i < report->count; i++) {
        const struct nw_reach_end *a = &report->ends[0], *b = &report->ends[i];

        if (a->port > 0 && b->port > 0 && strcmp(a->filter, b->filter) != 0)
            return nw_findings_add(findings, NW_FINDING_WARN, "reach-filter", b->host,
                                   "mpirun -x NCCL_SOCKET_IFNAME=… for all hosts",
                                   "NCCL_SOCKET_IFNAME is \"%s\" here and \"%s\" on %s", b->filter,
                                   a->filter, a->host);
    }
    return NW_OK;
}

static bool any_was_tried(const struct nw_reach_report *report)
{
    for (size_t i = 0; i < report->count; i++)
        if (report->tries[i] != NULL)
            return true;
    return false;
}

nw_rc nw_reach_judge(const struct nw_reach_report *report, struct nw_findings *findings)
{
    if (report->count < 2)
        return NW_OK;
    NW_TRY(judge_pairs(report, findings));
    for (size_t host = 0; host < report->count; host++) {
        NW_TRY(judge_no_interface(&report->ends[host], findings));
        NW_TRY(judge_same_subnet(&report->ends[host], findings));
        NW_TRY(judge_mtu(report, host, findings));
    }
    NW_TRY(judge_subnets(report, findings));
    NW_TRY(judge_filters(report, findings));
    NW_TRY(judge_link_local(report, findings));
    if (report->count <= NW_REACH_ALL_HOSTS || !any_was_tried(report))
        return NW_OK;
    return nw_findings_add(findings, NW_FINDING_INFO, "not-checked", "all hosts", NULL,
                           "with %zu hosts not every pair was tried: each host its neighbours and "
                           "some %d others",
                           report->count, NW_REACH_PARTNERS);
}
