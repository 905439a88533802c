#include "bench/nics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/agree.h"

#define PORTS_MAX 64 /* of a host */

struct port_card {
    char device[64];
    int number, distance; /* from the rank; 0: near */
    bool infiniband, software;
    double bits_per_s;
    uint32_t mtu_bytes;
    char pci[16];
};

struct card { /* what a rank tells */
    int count, down_count;
    char why[240], down[240];
    struct port_card ports[PORTS_MAX];
};

/* ---- a rank's own ------------------------------------------------------------------------------
 */

static bool is_listed(const char *list, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

static bool is_wished(const struct nw_plan *plan, const struct nw_verbs_port *port)
{
    return (plan->nic_devices == NULL || is_listed(plan->nic_devices, port->device)) &&
           (plan->nic_port == 0 || plan->nic_port == port->number);
}

static int folders_behind(const char *path, size_t from)
{
    int count = 0;

    for (const char *at = path + from; *at != '\0'; at++)
        count += *at == '/';
    return count;
}

/* PCI bridges between the two that they do not share, by the folders of /sys; 0 without a GPU. Of
 * different roots: more than any. */
static int distance_of(const struct nw_dev *gpu, const struct nw_verbs_port *port)
{
    static const char root[] = "/sys/devices/pci0000:00";
    char path[64], *of_gpu, *of_port;
    int distance = 0;
    size_t same = 0;

    if (gpu == NULL || gpu->pci[0] == '\0' || port->pci[0] == '\0')
        return 0;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s", gpu->pci);
    of_gpu = realpath(path, NULL);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s", port->pci);
    of_port = realpath(path, NULL);
    if (of_gpu != NULL && of_port != NULL) {
        while (of_port[same] != '\0' && of_port[same] == of_gpu[same])
            same++;
        distance = folders_behind(of_port, same) + folders_behind(of_gpu, same) +
                   (strncmp(of_port, of_gpu, sizeof root - 1) != 0 ? 100 : 0);
    }
    free(of_gpu);
    free(of_port);
    return distance;
}

static void fill_card(const struct nw_plan *plan, const struct nw_dev *gpu,
                      const struct nw_verbs *verbs, struct card *card)
{
    snprintf(card->why, sizeof card->why, "%s", verbs->why);
    for (size_t i = 0; i < verbs->port_count && card->count < PORTS_MAX; i++) {
        const struct nw_verbs_port *port = &verbs->ports[i];
        struct port_card *out = &card->ports[card->count];

        if (!is_wished(plan, port)) {
            if (card->why[0] == '\0')
                snprintf(card->why, sizeof card->why,
                         "no RDMA port of the name asked for: there is %.64s/%d", port->device,
                         port->number);
            continue;
        }
        if (!port->active || !nw_verbs_is_driven(port) || port->closed[0] != '\0') {
            snprintf(card->why, sizeof card->why, "RDMA port %.64s/%d %s%.120s", port->device,
                     port->number, port->closed[0] != '\0' ? "cannot be opened: " : "is ",
                     port->closed[0] != '\0' ? port->closed
                     : !port->active         ? port->state
                     : port->iwarp           ? "iWARP, which is not driven here"
                                             : "neither RoCE nor InfiniBand: not driven here");
            if (card->down_count++ == 0)
                snprintf(card->down, sizeof card->down, "%s", card->why);
            continue;
        }
        snprintf(out->device, sizeof out->device, "%s", port->device);
        out->number = port->number;
        out->distance = distance_of(gpu, port);
        out->infiniband = strcmp(port->link_layer, "infiniband") == 0;
        out->software = port->software;
        out->bits_per_s = port->bits_per_s;
        out->mtu_bytes = port->mtu_bytes;
        snprintf(out->pci, sizeof out->pci, "%s", port->pci);
        card->count++;
    }
}

/* ---- of all ------------------------------------------------------------------------------------
 */

/* The same port as another rank of the host sees it; NULL: it does not. */
static const struct port_card *find_port(const struct card *card, const struct port_card *port)
{
    for (int i = 0; i < card->count; i++)
        if (card->ports[i].number == port->number &&
            strcmp(card->ports[i].device, port->device) == 0)
            return &card->ports[i];
    return NULL;
}

static int first_rank(const struct nw_comm *comm, int host)
{
    int rank = 0;

    while (comm->host_of_rank[rank] != host)
        rank++;
    return rank;
}

/* The rank of the host that is nearest, of these the one with the fewest, of these the lowest. */
static int owner_of(const struct nw_comm *comm, const struct card *cards, int host, int index,
                    const int *owned)
{
    const struct port_card *port = &cards[first_rank(comm, host)].ports[index];
    int best = -1, best_distance = 0;

    for (int rank = 0; rank < comm->rank_count; rank++) {
        const struct port_card *its =
            comm->host_of_rank[rank] == host ? find_port(&cards[rank], port) : NULL;

        if (its == NULL)
            continue;
        if (best < 0 || its->distance < best_distance ||
            (its->distance == best_distance && owned[rank] < owned[best])) {
            best = rank;
            best_distance = its->distance;
        }
    }
    return best;
}

static void add_nic(const struct nw_comm *comm, const struct card *cards, int host, int index,
                    int *owned, struct nw_nics *nics)
{
    const struct port_card *port = &cards[first_rank(comm, host)].ports[index];
    struct nw_nic *nic = &nics->items[nics->count++];

    *nic = (struct nw_nic){
        .number = port->number,
        .host = host,
        .owner = owner_of(comm, cards, host, index, owned),
        .infiniband = port->infiniband,
        .software = port->software,
        .bits_per_s = port->bits_per_s,
        .mtu_bytes = port->mtu_bytes,
    };
    snprintf(nic->pci, sizeof nic->pci, "%s", port->pci);
    snprintf(nic->device, sizeof nic->device, "%s", port->device);
    snprintf(nic->name, sizeof nic->name, "%s/%d", port->device, port->number);
    owned[nic->owner]++;
}

static nw_rc list_all(const struct nw_comm *comm, const struct card *cards, struct nw_nics *nics)
{
    const size_t ranks = (size_t)comm->rank_count, hosts = (size_t)comm->host_count;
    int *owned = calloc(ranks, sizeof *owned);
    size_t count = 0;

    for (int host = 0; host < comm->host_count; host++)
        count += (size_t)cards[first_rank(comm, host)].count;
    nics->items = calloc(count > 0 ? count : 1, sizeof *nics->items);
    nics->why = calloc(hosts, sizeof *nics->why);
    nics->down = calloc(hosts, sizeof *nics->down);
    nics->down_count = calloc(hosts, sizeof *nics->down_count);
    if (owned == NULL || nics->items == NULL || nics->why == NULL || nics->down == NULL ||
        nics->down_count == NULL) {
        free(owned);
        return nw_fail(NW_ENOMEM, "no memory for %zu NICs", count);
    }
    for (int host = 0; host < comm->host_count; host++) {
        const struct card *card = &cards[first_rank(comm, host)];

        for (int i = 0; i < card->count; i++)
            add_nic(comm, cards, host, i, owned, nics);
        memcpy(nics->down[host], card->down, sizeof card->down);
        nics->down_count[host] = card->down_count;
        if (card->count == 0)
            snprintf(nics->why[host], sizeof nics->why[host], "%s", card->why);
    }
    free(owned);
    return NW_OK;
}

nw_rc nw_nics_open(struct nw_bench *bench, struct nw_nics *nics_out)
{
    struct nw_comm *comm = bench->comm;
    struct card *cards = calloc((size_t)comm->rank_count + 1, sizeof *cards);
    struct nw_nics nics = {0};
    nw_rc rc = cards != NULL
                   ? nw_verbs_open(&nics.verbs)
                   : nw_fail(NW_ENOMEM, "no memory for the NICs of %d ranks", comm->rank_count);

    if (rc == NW_OK)
        fill_card(bench->plan, comm->dev, nics.verbs, &cards[comm->rank_count]);
    rc = nw_agree(comm, rc);
    if (rc == NW_OK)
        rc = comm->ops->exchange(comm, &cards[comm->rank_count], sizeof *cards, cards);
    if (rc == NW_OK)
        rc = nw_agree(comm, list_all(comm, cards, &nics));
    free(cards);
    if (rc != NW_OK) {
        nw_nics_close(&nics);
        return rc;
    }
    *nics_out = nics;
    return NW_OK;
}

void nw_nics_close(struct nw_nics *nics)
{
    nw_verbs_close(nics->verbs);
    free(nics->items);
    free(nics->why);
    free(nics->down);
    free(nics->down_count);
    *nics = (struct nw_nics){0};
}

bool nw_nics_are_here(struct nw_bench *bench, const struct nw_nics *nics)
{
    const struct nw_comm *comm = bench->comm;

    if (bench->dry || bench->told_no_rdma)
        return nics->count > 0;
    bench->told_no_rdma = true;
    if (nics->count == 0) {
        nw_bench_finding(bench, NW_FINDING_INFO, "no-rdma", "",
                         "nothing, where no RDMA was sold; else nodeworth check says what is "
                         "missing",
                         "the cases that need RDMA are left out: %s",
                         nics->why[0][0] != '\0' ? nics->why[0] : "no RDMA device");
        return false;
    }
    for (int host = 0; host < comm->host_count; host++)
        if (nics->why[host][0] != '\0')
            nw_bench_finding(bench, NW_FINDING_WARN, "no-rdma", comm->host_names[host],
                             "nodeworth check on this host",
                             "no RDMA here, though other hosts of the run have it: %s",
                             nics->why[host]);
        else if (nics->down_count[host] > 0)
            nw_bench_finding(bench, NW_FINDING_WARN, "nic-down", comm->host_names[host],
                             "nodeworth check on this host; --ib-dev names those that count",
                             "%d RDMA port%s left out: %s", nics->down_count[host],
                             nics->down_count[host] == 1 ? "" : "s", nics->down[host]);
    return true;
}

const struct nw_verbs_port *nw_nics_port(const struct nw_nics *nics, const struct nw_nic *nic)
{
    for (size_t i = 0; i < nics->verbs->port_count; i++)
        if (strcmp(nics->verbs->ports[i].device, nic->device) == 0 &&
            nics->verbs->ports[i].number == nic->number)
            return &nics->verbs->ports[i];
    return NULL;
}

/* Bytes on the wire beside each MTU of payload. RoCE v2 over IPv4: preamble and gap 20, Ethernet 14
 * and 4, IPv4 20, UDP 8, base transport header 12, invariant CRC 4 (InfiniBand Architecture
 * Specification 1, annex 17; IEEE 802.3). InfiniBand: local route header 8, base transport header
 * 12, CRCs 4 and 2 (ibid., chapter 5). */
#define ROCE_BYTES       82
#define INFINIBAND_BYTES 26

double nw_nic_ceiling(const struct nw_nic *nic, uint32_t mtu_bytes)
{
    const double beside = nic->infiniband ? INFINIBAND_BYTES : ROCE_BYTES;

    if (nic->software || mtu_bytes == 0)
        return NAN;
    return nic->bits_per_s / 8 * mtu_bytes / (mtu_bytes + beside);
}
