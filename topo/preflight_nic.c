/* NICs and their ports: down, slow, narrow, losing packets; functions of one card that look like
 * several; names that moved. */
#include <stdlib.h>

#include "base/units.h"
#include "topo/preflight_run.h"

/* A link below this share of the median of its like is degraded. */
#define SLOW_SHARE 0.75
/* Since the counters began; a few come with every start of a job or switch. */
#define LOSSES_SOME 100
#define LOSSES_MANY 1000
#define FLAPS_MANY  5

static bool is_port_active(const struct nw_topo *topo, int port)
{
    const char *state = nw_topo_text(topo, port, NW_FACT_STATE);

    return state == NULL ? topo->nodes[port].rate_bits_per_s > 0 : strncmp(state, "active", 6) == 0;
}

static bool is_layer(const struct nw_topo *topo, int port, const char *layer)
{
    return nw_text_is(topo, port, NW_FACT_LINK_LAYER, layer);
}

/* --- down --------------------------------------------------------------------------------------
 */

static bool in_same_slot(const struct nw_topo_node *a, const struct nw_topo_node *b)
{
    return a->pci[0] != '\0' && strncmp(a->pci, b->pci, 10) == 0;
}

/* NICs of one card: functions of one slot, or with one system GUID. */
static int count_of_card(const struct nw_topo *topo, int nic)
{
    const char *guid = nw_topo_text(topo, nic, NW_FACT_SYSTEM_GUID);
    int count = 0;

    for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;)
        count += i == nic || in_same_slot(&topo->nodes[i], &topo->nodes[nic]) ||
                 (guid != NULL && nw_text_is(topo, i, NW_FACT_SYSTEM_GUID, guid));
    return count;
}

/* Of one purpose: the same model and network, the same board where that is known, and as many ports
 * a card. A machine's storage NICs are often of the model of its others, with two ports each. */
static bool is_peer(const struct nw_topo *topo, int a, int b)
{
    const char *board = nw_topo_text(topo, a, NW_FACT_BOARD);
    const char *other = nw_topo_text(topo, b, NW_FACT_BOARD);

    return topo->nodes[a].model[0] != '\0' && nw_is_alike(&topo->nodes[a], &topo->nodes[b]) &&
           strcmp(topo->nodes[a].fabric, topo->nodes[b].fabric) == 0 &&
           (board == NULL || other == NULL || strcmp(board, other) == 0) &&
           count_of_card(topo, a) == count_of_card(topo, b);
}

static int count_alike(const struct nw_topo *topo, int nic, int port_up)
{
    int count = 0;

    for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;)
        count += is_peer(topo, i, nic) && topo->nodes[i].port_up == port_up;
    return count;
}

static double rate_alike(const struct nw_topo *topo, int nic)
{
    double rate = 0;

    for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;)
        if (is_peer(topo, i, nic))
            rate = fmax(rate, topo->nodes[i].rate_bits_per_s / 8);
    return rate;
}

static nw_rc judge_down(struct nw_preflight_run *run, size_t host, int nic)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const int up = count_alike(topo, nic, 1), down = count_alike(topo, nic, 0);
    const double rate = rate_alike(topo, nic);
    char text[32];

    if (topo->nodes[nic].port_up != 0)
        return NW_OK;
    if (!nw_is_rdma(&topo->nodes[nic]) || topo->nodes[nic].model[0] == '\0' || up <= down)
        return nw_tell(run, host, nic, NW_FINDING_INFO, "nic-down",
                       "if it belongs to the quoted network: cable, switch port, driver",
                       "no port is active");
    NW_TRY(nw_tell(run, host, nic, NW_FINDING_WARN, "nic-port-down",
                   "look at its cable and transceiver, then at the switch port",
                   "no port is active, %d others of its model here are up", up));
    if (!(rate > 0))
        return NW_OK;
    return nw_tell_effect(run, rate, "the host loses %s GB/s of its %d NICs",
                          nw_format_gb_per_s(text, rate), up + down);
}

static nw_rc judge_initialising(struct nw_preflight_run *run, size_t host, int port)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const char *state = nw_topo_text(topo, port, NW_FACT_STATE);

    if (state == NULL || strncmp(state, "init", 4) != 0)
        return NW_OK;
    return nw_tell(run, host, port, NW_FINDING_WARN, "ib-no-subnet-manager",
                   "start a subnet manager in this fabric (opensm, or the switch's)",
                   "the link is up, its state stays \"%s\": no subnet manager has set it up",
                   state);
}

nw_rc nw_preflight_ports(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    int rdma = 0, up = 0;

    for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;) {
        rdma += nw_is_rdma(&topo->nodes[i]);
        up += nw_is_rdma(&topo->nodes[i]) && topo->nodes[i].port_up != 0;
        NW_TRY(judge_down(run, host, i));
    }
    for (int i = -1; (i = nw_next(topo, NW_NODE_PORT, i)) >= 0;)
        NW_TRY(judge_initialising(run, host, i));
    if (rdma > 0 && up == 0 && run->input->host_count > 1) {
        NW_TRY(nw_tell(run, host, 0, NW_FINDING_WARN, "rdma-all-down",
                       "cables, switch ports, subnet manager",
                       "no RDMA port is active on this host, of %d NICs", rdma));
        NW_TRY(nw_tell_effect(run, NAN, "hosts talk to each other over TCP"));
    }
    return NW_OK;
}

/* --- rates -------------------------------------------------------------------------------------
 */

/* Ports have their own rates where a source knows ports. */
static nw_node_kind rated_kind(const struct nw_topo *topo)
{
    return nw_topo_count(topo, NW_NODE_PORT) > 0 ? NW_NODE_PORT : NW_NODE_NIC;
}

static int card_of(const struct nw_topo *topo, int rated)
{
    return topo->nodes[rated].kind == NW_NODE_PORT ? topo->nodes[rated].parent : rated;
}

static bool is_like(const struct nw_topo *topo, int a, int b)
{
    return is_peer(topo, card_of(topo, a), card_of(topo, b));
}

static double median_rate(const struct nw_topo *topo, int rated, double *values, size_t *count_out)
{
    *count_out = 0;
    for (int i = -1; (i = nw_next(topo, topo->nodes[rated].kind, i)) >= 0;)
        if (topo->nodes[i].rate_bits_per_s > 0 && is_like(topo, i, rated))
            values[(*count_out)++] = topo->nodes[i].rate_bits_per_s;
    return nw_median(values, *count_out);
}

static nw_rc judge_rate(struct nw_preflight_run *run, size_t host, int rated, double *values)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const double rate = topo->nodes[rated].rate_bits_per_s;
    size_t count;
    const double usual = median_rate(topo, rated, values, &count);

    if (!(rate > 0) || count < 3 || rate >= SLOW_SHARE * usual)
        return NW_OK;
    NW_TRY(nw_tell(run, host, rated, NW_FINDING_WARN, "nic-slow",
                   "look at its cable, transceiver and switch port: a bad one makes a link come up "
                   "slower",
                   "runs at %.4g Gb/s, the median of %zu equal links is %.4g Gb/s", rate / 1e9,
                   count, usual / 1e9));
    return nw_tell_effect(run, (usual - rate) / 8,
                          "in a ring over all NICs the slowest one sets the pace");
}

/* One lane of a cable with four: the others are broken. Two of four are a sold variant (HDR100). */
static nw_rc judge_port_width(struct nw_preflight_run *run, size_t host, int port)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const double width = nw_topo_number(topo, port, NW_FACT_WIDTH);
    double most = 0;

    if (!is_layer(topo, port, "infiniband") || !(width > 0) || !is_port_active(topo, port))
        return NW_OK;
    for (int i = -1; (i = nw_next(topo, NW_NODE_PORT, i)) >= 0;) {
        const double other = nw_topo_number(topo, i, NW_FACT_WIDTH);

        if (is_like(topo, i, port) && is_port_active(topo, i) && other > most)
            most = other;
    }
    if (width > 1 && width >= most)
        return NW_OK;
    most = fmax(most, 4);
    NW_TRY(nw_tell(run, host, port, NW_FINDING_WARN, "port-narrow",
                   "clean or replace cable and transceiver",
                   "the InfiniBand link uses %.0f of %.0f lanes", width, most));
    return nw_tell_effect(run, topo->nodes[port].rate_bits_per_s / 8 * (most / width - 1),
                          "the link carries %.3g Gb/s", topo->nodes[port].rate_bits_per_s / 1e9);
}

nw_rc nw_preflight_port_rates(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    double *values = calloc(topo->node_count + 1, sizeof *values);
    nw_rc rc = NW_OK;

    if (values == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the rates of ports");
    for (int i = -1; rc == NW_OK && (i = nw_next(topo, rated_kind(topo), i)) >= 0;)
        rc = judge_rate(run, host, i, values);
    free(values);
    NW_TRY(rc);
    for (int i = -1; (i = nw_next(topo, NW_NODE_PORT, i)) >= 0;)
        NW_TRY(judge_port_width(run, host, i));
    return NW_OK;
}

/* --- one card that looks like several ----------------------------------------------------------
 */

/* Two functions of one slot are two ports with a cable each; two slots of one card (one connector
 * for each CPU) share its ports (NVIDIA/nccl#307). */
static bool in_other_slot(const struct nw_topo_node *a, const struct nw_topo_node *b)
{
    return a->pci[0] != '\0' && b->pci[0] != '\0' && strncmp(a->pci, b->pci, 10) != 0;
}

static nw_rc judge_card(struct nw_preflight_run *run, size_t host, int nic)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const struct nw_topo_node *own = &topo->nodes[nic];
    const char *guid = nw_topo_text(topo, nic, NW_FACT_SYSTEM_GUID);
    char names[160];
    double sum = own->rate_bits_per_s, most = own->rate_bits_per_s;
    int others = 0;

    snprintf(names, sizeof names, "%.60s", own->name);
    for (int i = -1; guid != NULL && (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;) {
        const struct nw_topo_node *other = &topo->nodes[i];
        const size_t length = strlen(names);

        if (i == nic || !nw_text_is(topo, i, NW_FACT_SYSTEM_GUID, guid) ||
            !in_other_slot(own, other) || nw_is_yes(topo, i, NW_FACT_VF))
            continue;
        if (i < nic)
            return NW_OK; /* told already */
        others++;
        sum += other->rate_bits_per_s;
        most = fmax(most, other->rate_bits_per_s);
        snprintf(names + length, sizeof names - length, " and %.60s", other->name);
    }
    if (others == 0)
        return NW_OK;
    NW_TRY(nw_tell(run, host, nic, NW_FINDING_WARN, "nics-share-port",
                   "count the cables: compare a quote with the ports that have one",
                   "%s are one card with several PCIe connections: what they show as %.4g Gb/s "
                   "together is %.4g Gb/s",
                   names, sum / 1e9, most / 1e9));
    return nw_tell_effect(run, NAN, "who adds up the devices expects too much");
}

nw_rc nw_preflight_cards(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;)
        if (topo->nodes[i].port_up != 0)
            NW_TRY(judge_card(run, host, i));
    return NW_OK;
}

/* --- packets and links lost --------------------------------------------------------------------
 */

/* On InfiniBand nothing is dropped for want of room: what is sent again was damaged, or waited. */
static const struct counter {
    nw_fact_id id;
    const char *what, *effect;
} counters[] = {
    {NW_FACT_SEQUENCE_ERRORS, "packets arrived out of sequence",
     "each lost packet makes RDMA send a window again: rates fall to a fraction"},
    {NW_FACT_ACK_TIMEOUTS, "acknowledgements did not come in time",
     "each one stops a connection for the time of its timeout"},
    {NW_FACT_DISCARDS, "packets were discarded on receipt",
     "each lost packet makes RDMA send a window again: rates fall to a fraction"},
    {NW_FACT_SYMBOL_ERRORS, "symbol errors were counted", NULL},
};

static nw_rc judge_counter(struct nw_preflight_run *run, size_t host, int port,
                           const struct counter *counter)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const double count = nw_topo_number(topo, port, counter->id);
    const bool roce = is_layer(topo, port, "ethernet");
    const bool symbols = counter->id == NW_FACT_SYMBOL_ERRORS;

    /* Ports that carry no RDMA may discard. */
    if (!(count >= LOSSES_SOME) || (counter->id == NW_FACT_DISCARDS && !roce))
        return NW_OK;
    NW_TRY(nw_tell(run, host, port, count >= LOSSES_MANY ? NW_FINDING_WARN : NW_FINDING_INFO,
                   symbols ? "port-symbol-errors"
                   : roce  ? "roce-loss"
                           : "ib-retransmits",
                   roce && !symbols
                       ? "make the network lossless for RoCE (PFC or ECN on every switch and NIC); "
                         "read the counter before and after a run: it must not rise"
                       : "clean or replace cable and transceiver; read the counter before and "
                         "after a run",
                   "%s: %.0f times since the counter began", counter->what, count));
    return counter->effect != NULL ? nw_tell_effect(run, NAN, "%s", counter->effect) : NW_OK;
}

nw_rc nw_preflight_losses(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    for (int i = -1; (i = nw_next(topo, NW_NODE_PORT, i)) >= 0;)
        for (size_t k = 0; k < sizeof counters / sizeof *counters; k++)
            NW_TRY(judge_counter(run, host, i, &counters[k]));
    for (size_t i = 0; i < topo->node_count; i++) {
        const double flaps = nw_topo_number(topo, (int)i, NW_FACT_FLAPS);

        if (flaps >= 2)
            NW_TRY(nw_tell(run, host, (int)i,
                           flaps >= FLAPS_MANY ? NW_FINDING_WARN : NW_FINDING_INFO, "link-flaps",
                           "replace cable or transceiver; look at the switch port's log",
                           "the link went down %.0f times", flaps));
    }
    return NW_OK;
}

/* --- MTU ---------------------------------------------------------------------------------------
 */

static bool differs_from_siblings(const struct nw_topo *topo, int port, double *usual_out)
{
    const double mtu = nw_topo_number(topo, port, NW_FACT_MTU);

    for (int i = -1; (i = nw_next(topo, NW_NODE_PORT, i)) >= 0;) {
        *usual_out = nw_topo_number(topo, i, NW_FACT_MTU);
        if (is_like(topo, i, port) && is_port_active(topo, i) && *usual_out > mtu &&
            topo->nodes[i].rate_bits_per_s == topo->nodes[port].rate_bits_per_s)
            return true;
    }
    return false;
}

nw_rc nw_preflight_mtu(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    for (int i = -1; (i = nw_next(topo, NW_NODE_PORT, i)) >= 0;) {
        const double mtu = nw_topo_number(topo, i, NW_FACT_MTU);
        const double most = nw_topo_number(topo, i, NW_FACT_MTU_MAX);
        double usual;

        if (!(mtu > 0) || !is_port_active(topo, i))
            continue;
        if (differs_from_siblings(topo, i, &usual)) {
            NW_TRY(nw_tell(run, host, i, NW_FINDING_WARN, "mtu-differs",
                           "set one MTU on all hosts and switches",
                           "RDMA MTU %.0f, where a port of the same kind has %.0f", mtu, usual));
        } else if (is_layer(topo, i, "ethernet") && mtu <= 1024 && most > mtu) {
            NW_TRY(nw_tell(run, host, i, NW_FINDING_WARN, "roce-mtu-small",
                           "ip link set dev INTERFACE mtu 9000 on all hosts, and jumbo frames on "
                           "the switches",
                           "RDMA MTU %.0f of %.0f: the Ethernet MTU below it is 1500", mtu, most));
            NW_TRY(nw_tell_effect(run, NAN,
                                  "more packets and headers for the same bytes: some "
                                  "per cent of the rate, and CPU or NIC load"));
        } else if (mtu < most) {
            NW_TRY(nw_tell(run, host, i, NW_FINDING_INFO, "mtu-below-max",
                           "let the subnet manager or switches use 4096", "RDMA MTU %.0f of %.0f",
                           mtu, most));
        }
    }
    return NW_OK;
}

/* The smallest of a host's active RDMA ports; NAN: none known. */
static double host_mtu(const struct nw_topo *topo)
{
    double least = NAN;

    for (int i = -1; (i = nw_next(topo, NW_NODE_PORT, i)) >= 0;)
        if (is_port_active(topo, i) && nw_is_rdma(&topo->nodes[card_of(topo, i)]))
            least = fmin(least, nw_topo_number(topo, i, NW_FACT_MTU));
    return least;
}

nw_rc nw_preflight_mtu_hosts(struct nw_preflight_run *run)
{
    double most = NAN;
    size_t best = 0;
    char name[96];

    for (size_t host = 0; host < run->input->host_count; host++) {
        const double mtu = host_mtu(nw_run_host(run, host));

        if (mtu > 0 && !(mtu <= most)) {
            most = mtu;
            best = host;
        }
    }
    for (size_t host = 0; host < run->input->host_count; host++) {
        const double mtu = host_mtu(nw_run_host(run, host));

        if (mtu < most)
            NW_TRY(nw_tell(run, host, 0, NW_FINDING_WARN, "mtu-differs",
                           "set one MTU on all hosts and switches",
                           "RDMA MTU %.0f, where %s has %.0f: connections fail or use the smaller",
                           mtu, nw_host_name(run, best, name), most));
    }
    return NW_OK;
}
