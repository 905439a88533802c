/* Two ends made one: the addresses that both use, and the queue pairs' states (InfiniBand
 * Architecture Specification 1, 10.3.1: reset, init, ready to receive, ready to send). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collectives/verbs_gid.h"
#include "collectives/verbs_parts.h"

enum {
    HOP_LIMIT = 64,
    RNR_TIMER = 12,   /* 0.64 ms */
    RNR_FOR_EVER = 7, /* a receiver that is late is no error; the deadline is ours */
    MAX_READS = 16,
};

static enum ibv_mtu mtu_code(uint32_t bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    while (mtu < IBV_MTU_4096 && 128u << (mtu + 1) <= bytes)
        mtu = (enum ibv_mtu)(mtu + 1);
    return mtu;
}

/* --- what both use --- */

static nw_rc settle_mtu(struct nw_verbs_end *end)
{
    const struct nw_verbs_card *a = &end->mine, *b = &end->theirs;
    const uint32_t there = b->mtu_bytes > 0 ? b->mtu_bytes : a->mtu_bytes;
    uint32_t mtu = a->mtu_bytes > 0 && a->mtu_bytes < there ? a->mtu_bytes : there;
    const uint32_t wished =
        a->wished_mtu_bytes > b->wished_mtu_bytes ? a->wished_mtu_bytes : b->wished_mtu_bytes;

    if (wished > 0 && mtu > 0 && wished > mtu)
        return nw_fail(NW_EUSAGE,
                       "an RDMA MTU of %u was asked for, but %s has %u and %s %u in force", wished,
                       end->link.here, a->mtu_bytes, end->link.there, b->mtu_bytes);
    if (a->wished_mtu_bytes > 0 && a->wished_mtu_bytes < mtu)
        mtu = a->wished_mtu_bytes;
    if (b->wished_mtu_bytes > 0 && b->wished_mtu_bytes < mtu)
        mtu = b->wished_mtu_bytes;
    end->link.mtu_bytes = mtu > 0 ? mtu : 1024;
    end->link.here_mtu_bytes = a->mtu_bytes;
    end->link.there_mtu_bytes = b->mtu_bytes;
    return NW_OK;
}

static void name_gid(char name[160], const char *base, const struct nw_verbs_gid *gid)
{
    char address[NW_VERBS_GID_TEXT];

    snprintf(name, 160, "%.100s (%s, GID %d)", base, nw_verbs_gid_text(gid, address), gid->index);
}

static nw_rc settle_gids(struct nw_verbs_end *end)
{
    const struct nw_verbs_gids here = {end->mine.gids, end->mine.gid_count, end->mine.wished_gid,
                                       end->link.here},
                               there = {end->theirs.gids, end->theirs.gid_count,
                                        end->theirs.wished_gid, end->link.there};
    size_t mine, theirs;

    if (end->mine.infiniband && (here.count == 0 || there.count == 0))
        return NW_OK; /* addressed by LID */
    NW_TRY(nw_verbs_gid_pair(&here, &there, &mine, &theirs));
    end->link.here_gid = end->mine.gids[mine];
    end->link.there_gid = end->theirs.gids[theirs];
    name_gid(end->link.here, end->name, &end->link.here_gid);
    return NW_OK;
}

static nw_rc settle(struct nw_verbs_end *end)
{
    const struct nw_verbs_card *theirs = &end->theirs;
    char base[140];

    snprintf(base, sizeof base, "%s %s/%d", theirs->host, theirs->device, theirs->port);
    snprintf(end->link.there, sizeof end->link.there, "%s", base);
    if (end->mine.infiniband != theirs->infiniband)
        return nw_fail(NW_EUSAGE, "%s is %s and %s is %s: there is no way between them",
                       end->link.here, end->mine.infiniband ? "InfiniBand" : "RoCE",
                       end->link.there, theirs->infiniband ? "InfiniBand" : "RoCE");
    if (end->mine.qp_count != theirs->qp_count)
        return nw_fail(NW_EUSAGE, "%s has %u queue pairs and %s %u: both must have as many",
                       end->link.here, end->mine.qp_count, end->link.there, theirs->qp_count);
    if ((end->mine.cm_port != 0) != (theirs->cm_port != 0))
        return nw_fail(NW_EUSAGE, "%s connects by rdma_cm and %s does not: both must",
                       end->mine.cm_port != 0 ? end->link.here : end->link.there,
                       end->mine.cm_port != 0 ? end->link.there : end->link.here);
    NW_TRY(settle_mtu(end));
    NW_TRY(settle_gids(end));
    if (end->link.there_gid.index >= 0 && theirs->gid_count > 0)
        name_gid(end->link.there, base, &end->link.there_gid);
    end->link.qps = end->qp_count;
    end->link.depth = (int)(end->depth < theirs->depth ? end->depth : theirs->depth);
    end->link.inline_bytes = end->inline_bytes;
    end->link.by_cm = end->cm != NULL;
    snprintf(end->link.there_memory, sizeof end->link.there_memory, "%s", theirs->memory);
    return NW_OK;
}

/* --- the states --- */

nw_rc nw_verbs_to_init(struct nw_verbs_end *end, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = (uint8_t)end->port.number,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
    };
    const int code = end->api->modify_qp(
        qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    return code == 0 ? NW_OK
                     : nw_verbs_fail_call(end, code, "a queue pair cannot be brought to \"init\"");
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Reads that this side may have on their way, and that it serves. */
static uint8_t reads(uint32_t asks, uint32_t serves)
{
    return (uint8_t)least(least(asks, serves), MAX_READS);
}

static nw_rc fail_ready(const struct nw_verbs_end *end, int code)
{
    const char *cause;

    switch (code) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
        cause =
            "no way to that address from this NIC: is it of the same network (ip addr), does it "
            "answer (ping -I INTERFACE)? Another GID index (--gid) may be meant";
        break;
    case EINVAL:
        cause =
            "a GID, MTU or queue size that the device does not take; try another GID index (--gid) "
            "or a smaller MTU (--mtu)";
        break;
    default:
        cause = "the driver refused it";
    }
    return nw_fail_lib(NW_ELIB, "verbs", code, "%s cannot be connected to %s: %s (%d): %s",
                       end->link.here, end->link.there, strerror(code), code, cause);
}

/* By rdma_cm path and sequence numbers are as it has settled them. */
nw_rc nw_verbs_to_receive(struct nw_verbs_end *end, int index, const struct ibv_qp_attr *from_cm)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu_code(end->link.mtu_bytes),
        .dest_qp_num = end->theirs.qps[index].number,
        .rq_psn = end->theirs.qps[index].sequence,
        .max_dest_rd_atomic = reads(end->theirs.read_depth, end->read_depth),
        .min_rnr_timer = RNR_TIMER,
        .ah_attr = {.dlid = end->theirs.lid,
                    .sl = (uint8_t)end->wish.service_level,
                    .port_num = (uint8_t)end->port.number},
    };
    int code;

    if (!end->mine.infiniband) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.sgid_index = (uint8_t)end->link.here_gid.index;
        attr.ah_attr.grh.hop_limit = HOP_LIMIT;
        attr.ah_attr.grh.traffic_class = (uint8_t)end->wish.traffic_class;
        memcpy(attr.ah_attr.grh.dgid.raw, end->link.there_gid.raw, 16);
    }
    if (from_cm != NULL) {
        attr.ah_attr = from_cm->ah_attr;
        attr.rq_psn = from_cm->rq_psn;
        attr.dest_qp_num = from_cm->dest_qp_num;
        if (from_cm->path_mtu != 0 && from_cm->path_mtu < attr.path_mtu)
            attr.path_mtu = from_cm->path_mtu;
    }
    code =
        end->api->modify_qp(end->qps[index], &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    return code == 0 ? NW_OK : fail_ready(end, code);
}

nw_rc nw_verbs_to_send(struct nw_verbs_end *end, int index, const struct ibv_qp_attr *from_cm)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = (uint8_t)end->wish.ack_timeout,
        .retry_cnt = (uint8_t)end->wish.retries,
        .rnr_retry = RNR_FOR_EVER,
        .sq_psn = from_cm != NULL ? from_cm->sq_psn : end->mine.qps[index].sequence,
        .max_rd_atomic = reads(end->read_depth, end->theirs.read_depth),
    };
    const int code =
        end->api->modify_qp(end->qps[index], &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);

    return code == 0 ? NW_OK : fail_ready(end, code);
}

nw_rc nw_verbs_connect_start(struct nw_verbs_end *end, const uint8_t card[NW_VERBS_CARD_BYTES])
{
    if (end->connecting)
        return nw_fail(NW_EUSAGE, "%s is connected already", end->name);
    end->connecting = true;
    NW_TRY(nw_verbs_card_read(card, &end->theirs));
    NW_TRY(settle(end));
    if (end->cm != NULL)
        return nw_verbs_cm_start(end);
    for (int i = 0; i < end->qp_count; i++) {
        NW_TRY(nw_verbs_to_receive(end, i, NULL));
        NW_TRY(nw_verbs_to_send(end, i, NULL));
    }
    end->connected = true;
    return NW_OK;
}

nw_rc nw_verbs_connect_step(struct nw_verbs_end *end, bool *done_out)
{
    if (!end->connected) {
        if (end->cm == NULL || !end->connecting)
            return nw_fail(NW_EUSAGE, "%s was not told whom to connect to", end->name);
        NW_TRY(nw_verbs_cm_step(end, &end->connected));
    }
    *done_out = end->connected;
    return NW_OK;
}

nw_rc nw_verbs_connect(struct nw_verbs_end *end, const uint8_t card[NW_VERBS_CARD_BYTES])
{
    bool done = false;

    NW_TRY(nw_verbs_connect_start(end, card));
    while (!done)
        NW_TRY(nw_verbs_connect_step(end, &done));
    return NW_OK;
}
