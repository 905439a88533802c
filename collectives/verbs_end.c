#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "collectives/verbs_gid.h"
#include "collectives/verbs_parts.h"

/* --- what is wished --- */

static nw_rc check_range(const char *what, long value, long low, long high)
{
    if (value >= low && value <= high)
        return NW_OK;
    return nw_fail(NW_EUSAGE, "%s is %ld; accepted: %ld to %ld", what, value, low, high);
}

static nw_rc check_wish(const struct nw_verbs_port *port, const struct nw_verbs_wish *wish)
{
    NW_TRY(check_range("RDMA queue pairs", wish->qps, 0, NW_VERBS_CARD_QPS));
    NW_TRY(check_range("RDMA depth", wish->depth, 0, NW_VERBS_MAX_DEPTH));
    NW_TRY(check_range("the most RDMA depth", wish->most_depth, 0, NW_VERBS_MAX_DEPTH));
    NW_TRY(check_range("RDMA traffic class", wish->traffic_class, 0, 255));
    NW_TRY(check_range("RDMA service level", wish->service_level, 0, 15));
    NW_TRY(check_range("RDMA ACK timeout", wish->ack_timeout, 0, 31));
    NW_TRY(check_range("RDMA retries", wish->retries, -1, 7));
    NW_TRY(check_range("GID index", wish->gid_index, -1, 255));
    if (port->max_qp_depth > 0)
        NW_TRY(check_range("RDMA depth on this NIC", wish->depth, 0, port->max_qp_depth));
    if (wish->mtu_bytes != 0 && (wish->mtu_bytes < 256 || wish->mtu_bytes > 4096 ||
                                 (wish->mtu_bytes & (wish->mtu_bytes - 1)) != 0))
        return nw_fail(NW_EUSAGE, "RDMA MTU is %u; accepted: 256, 512, 1024, 2048, 4096",
                       wish->mtu_bytes);
    if (wish->mtu_bytes > port->mtu_bytes && port->mtu_bytes != 0)
        return nw_fail(
            NW_EUSAGE,
            "%s/%d cannot do an RDMA MTU of %u: %u is in force there. RoCE takes it from "
            "its network interface (ip link set %s mtu %u does for %u)",
            port->device, port->number, wish->mtu_bytes, port->mtu_bytes,
            port->interface[0] != '\0' ? port->interface : "IFACE", wish->mtu_bytes + 104,
            wish->mtu_bytes);
    return NW_OK;
}

static nw_rc check_port(const struct nw_verbs_port *port)
{
    if (port->closed[0] != '\0')
        return nw_fail(NW_ENODEV, "%s", port->closed);
    if (port->iwarp)
        return nw_fail(NW_ENOTSUP,
                       "%s/%d is iWARP, which this program does not drive; RoCE and "
                       "InfiniBand it does",
                       port->device, port->number);
    /* EFA is "active" and of no known link layer. */
    if (port->active && !nw_verbs_is_driven(port))
        return nw_fail(NW_ENOTSUP,
                       "%s/%d is neither RoCE nor InfiniBand, which this program drives (AWS's EFA "
                       "is such a NIC; NCCL and MPI use it by libfabric)",
                       port->device, port->number);
    if (!port->active)
        return nw_fail(
            NW_ENODEV, "RDMA port %s/%d is %s: %s", port->device, port->number, port->state,
            strcmp(port->link_layer, "infiniband") == 0
                ? "look at the cable, and at the subnet manager (ibstat)"
                : "look at the cable, and whether its network interface is up (ip link)");
    return NW_OK;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void settle_wish(const struct nw_verbs_wish *wish, struct nw_verbs_end *end)
{
    const uint32_t limit =
        end->port.max_qp_depth > 0 ? (uint32_t)end->port.max_qp_depth : NW_VERBS_MAX_DEPTH;

    end->wish = *wish;
    end->qp_count = wish->qps > 0 ? wish->qps : 1;
    end->depth = (uint32_t)(wish->depth > 0        ? wish->depth
                            : wish->most_depth > 0 ? wish->most_depth
                                                   : NW_VERBS_DEFAULT_DEPTH);
    end->depth = least(end->depth, limit);
    end->receive_depth = least(
        limit, end->depth * 2 > NW_VERBS_MIN_RECEIVES ? end->depth * 2 : NW_VERBS_MIN_RECEIVES);
    if (wish->ack_timeout == 0)
        end->wish.ack_timeout = NW_VERBS_DEFAULT_TIMEOUT;
    if (wish->retries < 0)
        end->wish.retries = NW_VERBS_DEFAULT_RETRIES;
    if (!(wish->timeout_ns > 0))
        end->wish.timeout_ns = 10e9;
}

/* --- queues --- */

static nw_rc open_cq(struct nw_verbs_end *end, int most)
{
    const uint32_t each = (uint32_t)(most / end->qp_count);

    if (end->wish.depth == 0)
        end->depth = least(end->depth, each / 2);
    if (each <= end->depth || end->depth == 0)
        return nw_fail(NW_EUSAGE,
                       "%s: RDMA queue pairs x depth is %d x %u; the NIC's completion queue takes "
                       "less than %d: use fewer queue pairs or less depth",
                       end->name, end->qp_count, end->depth, most);
    if (end->receive_depth > each - end->depth)
        end->receive_depth = each - end->depth;
    if (end->wish.events) {
        end->channel = end->api->create_comp_channel(end->context);
        if (end->channel == NULL)
            return nw_verbs_fail_call(end, errno, "no completion channel");
    }
    end->cq =
        end->api->create_cq(end->context, end->qp_count * (int)(end->depth + end->receive_depth),
                            NULL, end->channel, 0);
    return end->cq != NULL ? NW_OK : nw_verbs_fail_call(end, errno, "no completion queue");
}

static nw_rc open_qp(struct nw_verbs_end *end, int index)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = end->cq,
        .recv_cq = end->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = end->depth,
                .max_recv_wr = end->receive_depth,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = end->wish.inline_bytes},
    };

    end->qps[index] = end->api->create_qp(end->pd, &attr);
    if (end->qps[index] == NULL && attr.cap.max_inline_data > 0) {
        attr.cap.max_inline_data = 0; /* "may have less" */
        end->qps[index] = end->api->create_qp(end->pd, &attr);
    }
    if (end->qps[index] == NULL)
        return nw_verbs_fail_call(end, errno, "no queue pair");
    if (index == 0 || attr.cap.max_inline_data < end->inline_bytes)
        end->inline_bytes = attr.cap.max_inline_data;
    if (end->inline_bytes > end->wish.inline_bytes)
        end->inline_bytes = end->wish.inline_bytes;
    return nw_verbs_to_init(end, end->qps[index]);
}

static nw_rc open_queues(struct nw_verbs_end *end)
{
    struct ibv_device_attr attr;
    int code;

    memset(&attr, 0, sizeof attr);
    code = end->api->query_device(end->context, &attr);
    if (code != 0)
        return nw_verbs_fail_call(end, code, "the device does not answer");
    /* What it serves, and what it asks for, of RDMA reads at a time. */
    end->read_depth =
        (uint32_t)(attr.max_qp_rd_atom < attr.max_qp_init_rd_atom ? attr.max_qp_rd_atom
                                                                  : attr.max_qp_init_rd_atom);
    end->pd = end->api->alloc_pd(end->context);
    if (end->pd == NULL)
        return nw_verbs_fail_call(end, errno, "no protection domain");
    NW_TRY(open_cq(end, attr.max_cqe > 0 ? attr.max_cqe : 1 << 16));
    for (int i = 0; i < end->qp_count; i++)
        NW_TRY(open_qp(end, i));
    return NW_OK;
}

/* --- the card --- */

/* The wished row, else the best kinds first: a port with many VLANs has more than a card takes. */
static void card_gids(const struct nw_verbs_end *end, struct nw_verbs_card *card)
{
    for (int kind = 0; kind < NW_VERBS_GID_KIND_COUNT; kind++)
        for (size_t i = 0; i < end->port.gid_count; i++) {
            const struct nw_verbs_gid *gid = &end->port.gids[i];

            if ((int)gid->kind == kind && card->gid_count < NW_VERBS_CARD_GIDS &&
                (end->wish.gid_index < 0 || gid->index == end->wish.gid_index))
                card->gids[card->gid_count++] = *gid;
        }
}

static void fill_card(struct nw_verbs_end *end)
{
    struct nw_verbs_card *card = &end->mine;
    /* Any start will do; one that differs each time keeps packets of an old connection out. */
    const uint32_t seed = (uint32_t)(nw_now_ns() >> 6) ^ ((uint32_t)getpid() << 8);

    if (gethostname(card->host, sizeof card->host - 1) != 0)
        snprintf(card->host, sizeof card->host, "this host");
    snprintf(card->device, sizeof card->device, "%s", end->port.device);
    snprintf(card->memory, sizeof card->memory, "%s", end->link.memory);
    card->port = end->port.number;
    card->infiniband = strcmp(end->port.link_layer, "infiniband") == 0;
    card->lid = end->port.lid;
    card->mtu_bytes = end->port.mtu_bytes;
    card->wished_mtu_bytes = end->wish.mtu_bytes;
    card->wished_gid = end->wish.gid_index;
    card->rkey = end->mr->rkey;
    card->address = (uint64_t)(uintptr_t)end->buffer;
    card->bytes = end->bytes;
    card->depth = end->depth;
    card->read_depth = end->read_depth;
    card->token = seed;
    card->qp_count = (uint32_t)end->qp_count;
    for (int i = 0; i < end->qp_count; i++) {
        card->qps[i].number = end->qps[i]->qp_num;
        card->qps[i].sequence = (seed + (uint32_t)i * 4099u) & 0xffffff;
    }
    card_gids(end, card);
}

void nw_verbs_end_card(const struct nw_verbs_end *end, uint8_t card[NW_VERBS_CARD_BYTES])
{
    nw_verbs_card_write(&end->mine, card);
}

const struct nw_verbs_link *nw_verbs_end_link(const struct nw_verbs_end *end)
{
    return &end->link;
}

const struct nw_verbs_word *nw_verbs_end_trouble(const struct nw_verbs_end *end)
{
    return end->trouble;
}

bool nw_verbs_end_is_broken(const struct nw_verbs_end *end)
{
    return end->broken;
}

/* --- the end --- */

static nw_rc copy_port(const struct nw_verbs_port *port, struct nw_verbs_end *end)
{
    end->port = *port;
    end->port.gids = calloc(port->gid_count > 0 ? port->gid_count : 1, sizeof *port->gids);
    if (end->port.gids == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for an RDMA end");
    if (port->gid_count > 0)
        memcpy(end->port.gids, port->gids, port->gid_count * sizeof *port->gids);
    return NW_OK;
}

static nw_rc open_end(const struct nw_verbs_wish *wish, struct nw_dev *dev,
                      struct nw_verbs_end *end)
{
    const struct nw_verbs_gids gids = {end->port.gids, end->port.gid_count, wish->gid_index,
                                       end->name};
    char host[64] = "this host";

    (void)gethostname(host, sizeof host - 1);
    snprintf(end->name, sizeof end->name, "%s %s/%d", host, end->port.device, end->port.number);
    snprintf(end->link.here, sizeof end->link.here, "%s", end->name);
    settle_wish(wish, end);
    if (end->port.roce || wish->gid_index >= 0)
        NW_TRY(nw_verbs_gid_check(&gids));
    NW_TRY(open_queues(end));
    NW_TRY(nw_verbs_register(end, dev));
    if (wish->by_cm)
        NW_TRY(nw_verbs_cm_open(end));
    fill_card(end);
    return NW_OK;
}

nw_rc nw_verbs_end_open(const struct nw_verbs *verbs, const struct nw_verbs_port *port,
                        const struct nw_verbs_wish *wish, void *buffer, uint64_t bytes,
                        struct nw_dev *dev, struct nw_verbs_end **end_out)
{
    const size_t index = (size_t)(port - verbs->ports);
    struct nw_verbs_end *end;
    nw_rc rc;

    if (port->device[0] == '\0' || index >= verbs->port_count || bytes == 0)
        return nw_fail(NW_EUSAGE, "an RDMA end needs a port of the list and a buffer");
    NW_TRY(check_port(port));
    NW_TRY(check_wish(port, wish));
    end = calloc(1, sizeof *end);
    if (end == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for an RDMA end");
    end->api = verbs->devices->api;
    end->context = verbs->devices->contexts[index];
    end->devices = verbs->devices;
    end->seen = &verbs->devices->seen[index];
    end->before = *end->seen;
    end->own_event = -1;
    end->next = verbs->devices->ends;
    verbs->devices->ends = end;
    end->buffer = buffer;
    end->bytes = bytes;
    rc = copy_port(port, end);
    if (rc == NW_OK)
        rc = open_end(wish, dev, end);
    if (rc != NW_OK) {
        const struct nw_err error = *nw_last_error();

        nw_verbs_end_close(end);
        return nw_fail_at(rc, error.lib, error.lib_code, error.where, "%s", error.text);
    }
    *end_out = end;
    return NW_OK;
}

void nw_verbs_end_close(struct nw_verbs_end *end)
{
    if (end == NULL)
        return;
    for (struct nw_verbs_end **at = &end->devices->ends; *at != NULL; at = &(*at)->next)
        if (*at == end) {
            *at = end->next;
            break;
        }
    nw_verbs_cm_close(end->cm);
    for (int i = 0; i < end->qp_count; i++)
        if (end->qps[i] != NULL)
            (void)end->api->destroy_qp(end->qps[i]);
    if (end->mr != NULL)
        (void)end->api->dereg_mr(end->mr);
    if (end->cq != NULL)
        (void)end->api->destroy_cq(end->cq);
    if (end->channel != NULL)
        (void)end->api->destroy_comp_channel(end->channel);
    if (end->pd != NULL)
        (void)end->api->dealloc_pd(end->pd);
    free(end->port.gids);
    free(end);
}
