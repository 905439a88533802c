/* Connecting by rdma_cm: the kernel resolves the address to a NIC, the path and the numbers, as
 * storage and MPI libraries do, so a fault of that way shows, too. The queue pairs stay the end's
 * own; rdma_cm carries their numbers and says how to bring them up (rdma_init_qp_attr). The side
 * with the lower card is the one that is called. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "collectives/verbs_parts.h"

enum { BACKLOG = NW_VERBS_CARD_QPS, RESOLVE_MS = 5000, RNR_FOR_EVER = 7, RETRIES_OF_CALL = 6 };

struct nw_verbs_cm {
    const struct nw_verbs_cm_api *api;
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener;
    struct rdma_cm_id *ids[NW_VERBS_CARD_QPS];
    struct nw_verbs_gid gid; /* that the listener is bound to */
    bool calls;              /* this side does; the other is called */
    int connected;           /* queue pairs; calls are made one after the other */
    uint64_t deadline_ns;
};

/* What a call says of itself. */
struct greeting {
    uint32_t token, queue; /* of the caller's card; big end first */
};

static nw_rc fail_cm(const struct nw_verbs_end *end, const char *what, int code)
{
    return nw_fail_lib(NW_ELIB, "rdmacm", code, "%s: rdma_cm: %s: %s (%d)", end->name, what,
                       strerror(code), code);
}

static struct sockaddr *address_of(const struct nw_verbs_gid *gid, uint16_t port,
                                   struct sockaddr_storage *address)
{
    memset(address, 0, sizeof *address);
    if (gid->kind == NW_VERBS_GID_V2_IPV4) {
        struct sockaddr_in *in = (struct sockaddr_in *)address;

        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, gid->raw + 12, 4);
    } else {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;

        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
        memcpy(&in6->sin6_addr, gid->raw, 16);
    }
    return (struct sockaddr *)address;
}

/* --- listening --- */

/* The wished row, else the best one: an address must be known before there is a peer. */
static nw_rc choose_gid(struct nw_verbs_end *end, struct nw_verbs_gid *gid_out)
{
    const struct nw_verbs_gid *best = NULL;

    for (size_t i = 0; i < end->port.gid_count; i++) {
        const struct nw_verbs_gid *gid = &end->port.gids[i];

        if (end->wish.gid_index >= 0 ? gid->index == end->wish.gid_index
                                     : best == NULL || gid->kind < best->kind)
            best = gid;
    }
    if (best == NULL || (best->kind != NW_VERBS_GID_V2_IPV4 && best->kind != NW_VERBS_GID_V2_IPV6))
        return nw_fail(NW_ENOTSUP,
                       "%s has no IP address that rdma_cm could use; connect without it (the "
                       "queues' data go through MPI then)",
                       end->name);
    *gid_out = *best;
    return NW_OK;
}

static nw_rc start_listening(struct nw_verbs_end *end, struct nw_verbs_cm *cm)
{
    struct sockaddr_storage address;

    cm->channel = cm->api->create_event_channel();
    if (cm->channel == NULL)
        return fail_cm(end, "no event channel (is rdma_ucm loaded, /dev/infiniband/rdma_cm open?)",
                       errno);
    if (fcntl(cm->channel->fd, F_SETFL, O_NONBLOCK) != 0 ||
        cm->api->create_id(cm->channel, &cm->listener, NULL, RDMA_PS_TCP) != 0)
        return fail_cm(end, "no identifier", errno);
    if (cm->api->bind_addr(cm->listener, address_of(&cm->gid, 0, &address)) != 0)
        return fail_cm(end, "the address of the chosen GID is not of this network namespace",
                       errno);
    if (cm->listener->verbs == NULL ||
        strcmp(cm->listener->verbs->device->name, end->port.device) != 0)
        return nw_fail(NW_ELIB,
                       "%s: rdma_cm takes the address of its GID %d to another device (%s)",
                       end->name, cm->gid.index,
                       cm->listener->verbs != NULL ? cm->listener->verbs->device->name : "none");
    if (cm->api->listen(cm->listener, BACKLOG) != 0)
        return fail_cm(end, "cannot listen", errno);
    return NW_OK;
}

nw_rc nw_verbs_cm_open(struct nw_verbs_end *end)
{
    struct nw_verbs_cm *cm = calloc(1, sizeof *cm);

    if (cm == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for rdma_cm");
    end->cm = cm;
    NW_TRY(nw_verbs_cm_api_open(&cm->api));
    NW_TRY(choose_gid(end, &cm->gid));
    NW_TRY(start_listening(end, cm));
    end->wish.gid_index = cm->gid.index;
    end->mine.cm_port = ntohs(cm->api->get_src_port(cm->listener));
    return NW_OK;
}

void nw_verbs_cm_close(struct nw_verbs_cm *cm)
{
    if (cm == NULL)
        return;
    for (int i = 0; i < NW_VERBS_CARD_QPS; i++)
        if (cm->ids[i] != NULL)
            (void)cm->api->destroy_id(cm->ids[i]);
    if (cm->listener != NULL)
        (void)cm->api->destroy_id(cm->listener);
    if (cm->channel != NULL)
        cm->api->destroy_event_channel(cm->channel);
    free(cm);
}

/* --- events --- */

static const char *event_words(int event)
{
    switch (event) {
    case RDMA_CM_EVENT_ADDR_ERROR:
        return "the other side's address cannot be resolved: is it of the same network, does it "
               "answer (ping -I INTERFACE)?";
    case RDMA_CM_EVENT_ROUTE_ERROR:
        return "there is no route to the other side's address";
    case RDMA_CM_EVENT_UNREACHABLE:
        return "the other side does not answer the call: its port is down, or packets do not "
               "arrive "
               "(firewall on UDP port 4791?)";
    case RDMA_CM_EVENT_REJECTED:
        return "the other side refused the call: nobody listens there any more";
    case RDMA_CM_EVENT_CONNECT_ERROR:
        return "the call failed on the way";
    case RDMA_CM_EVENT_DISCONNECTED:
        return "the other side hung up";
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        return "the NIC was taken away";
    default:
        return "an event that was not expected";
    }
}

static nw_rc fail_event(const struct nw_verbs_end *end, int event, int status)
{
    return nw_fail_lib(NW_EPEER, "rdmacm", status,
                       "rdma_cm cannot connect %s to %s: %s (event %d, status %d)", end->link.here,
                       end->link.there, event_words(event), event, status);
}

/* --- a queue pair --- */

static nw_rc bring_up(struct nw_verbs_end *end, struct rdma_cm_id *id, int queue)
{
    struct ibv_qp_attr attr;
    int mask;

    memset(&attr, 0, sizeof attr);
    attr.qp_state = IBV_QPS_RTR;
    if (end->cm->api->init_qp_attr(id, &attr, &mask) != 0)
        return fail_cm(end, "no values to receive by", errno);
    NW_TRY(nw_verbs_to_receive(end, queue, &attr));
    memset(&attr, 0, sizeof attr);
    attr.qp_state = IBV_QPS_RTS;
    if (end->cm->api->init_qp_attr(id, &attr, &mask) != 0)
        return fail_cm(end, "no values to send by", errno);
    return nw_verbs_to_send(end, queue, &attr);
}

static struct rdma_conn_param parameters(const struct nw_verbs_end *end, int queue,
                                         const struct greeting *greeting)
{
    const uint32_t reads = end->read_depth < 16 ? end->read_depth : 16;

    return (struct rdma_conn_param){
        .private_data = greeting,
        .private_data_len = greeting != NULL ? sizeof *greeting : 0,
        .responder_resources = (uint8_t)reads,
        .initiator_depth = (uint8_t)reads,
        .retry_count = RETRIES_OF_CALL,
        .rnr_retry_count = RNR_FOR_EVER,
        .qp_num = end->qps[queue]->qp_num,
    };
}

/* --- calling --- */

/* The next queue pair. */
static nw_rc start_call(struct nw_verbs_end *end)
{
    const struct nw_verbs_cm_api *api = end->cm->api;
    struct sockaddr_storage from, to;
    struct rdma_cm_id *id;
    uint8_t tos = (uint8_t)end->wish.traffic_class;

    if (api->create_id(end->cm->channel, &id, NULL, RDMA_PS_TCP) != 0)
        return fail_cm(end, "no identifier", errno);
    end->cm->ids[end->cm->connected] = id;
    if (tos != 0 && api->set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos) != 0)
        return fail_cm(end, "the traffic class was refused", errno);
    if (api->resolve_addr(id, address_of(&end->link.here_gid, 0, &from),
                          address_of(&end->link.there_gid, end->theirs.cm_port, &to),
                          RESOLVE_MS) != 0)
        return fail_cm(end, "the address of the other side cannot be resolved", errno);
    return NW_OK;
}

static nw_rc make_call(struct nw_verbs_end *end, struct rdma_cm_id *id)
{
    const struct greeting greeting = {htonl(end->mine.token), htonl((uint32_t)end->cm->connected)};
    struct rdma_conn_param param = parameters(end, end->cm->connected, &greeting);

    return end->cm->api->connect(id, &param) == 0 ? NW_OK
                                                  : fail_cm(end, "the call cannot be made", errno);
}

static nw_rc end_call(struct nw_verbs_end *end, struct rdma_cm_id *id)
{
    NW_TRY(bring_up(end, id, end->cm->connected));
    if (end->cm->api->establish(id) != 0)
        return fail_cm(end, "the call cannot be ended", errno);
    return ++end->cm->connected < end->qp_count ? start_call(end) : NW_OK;
}

static nw_rc go_on_calling(struct nw_verbs_end *end, struct rdma_cm_id *id, int event, int status)
{
    switch (event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        return end->cm->api->resolve_route(id, RESOLVE_MS) == 0
                   ? NW_OK
                   : fail_cm(end, "no route to the other side", errno);
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        return make_call(end, id);
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        return end_call(end, id);
    default:
        return fail_event(end, event, status);
    }
}

/* --- being called --- */

static nw_rc answer(struct nw_verbs_end *end, struct rdma_cm_id *id, int queue)
{
    struct rdma_conn_param param = parameters(end, queue, NULL);

    NW_TRY(bring_up(end, id, queue));
    return end->cm->api->accept(id, &param) == 0 ? NW_OK
                                                 : fail_cm(end, "the call was not taken", errno);
}

/* The queue that a request is for; -1: it is a stranger's. */
static int queue_of(const struct nw_verbs_end *end, const struct rdma_cm_event *event)
{
    struct greeting greeting;

    if (event->param.conn.private_data == NULL ||
        event->param.conn.private_data_len < sizeof greeting)
        return -1;
    memcpy(&greeting, event->param.conn.private_data, sizeof greeting);
    greeting.queue = ntohl(greeting.queue);
    return ntohl(greeting.token) == end->theirs.token && greeting.queue < (uint32_t)end->qp_count &&
                   end->cm->ids[greeting.queue] == NULL
               ? (int)greeting.queue
               : -1;
}

static nw_rc go_on_answering(struct nw_verbs_end *end, struct rdma_cm_id *id, int event, int status,
                             int queue)
{
    if (event == RDMA_CM_EVENT_ESTABLISHED) {
        end->cm->connected++;
        return NW_OK;
    }
    if (event != RDMA_CM_EVENT_CONNECT_REQUEST)
        return fail_event(end, event, status);
    if (queue < 0) {
        (void)end->cm->api->reject(id, NULL, 0);
        (void)end->cm->api->destroy_id(id);
        return NW_OK;
    }
    end->cm->ids[queue] = id;
    return answer(end, id, queue);
}

/* --- both --- */

nw_rc nw_verbs_cm_start(struct nw_verbs_end *end)
{
    uint8_t mine[NW_VERBS_CARD_BYTES], theirs[NW_VERBS_CARD_BYTES];

    nw_verbs_card_write(&end->mine, mine);
    nw_verbs_card_write(&end->theirs, theirs);
    end->cm->deadline_ns = nw_now_ns() + (uint64_t)end->wish.timeout_ns;
    end->cm->calls = memcmp(mine, theirs, sizeof mine) > 0;
    return end->cm->calls ? start_call(end) : NW_OK;
}

/* One event, or a short wait for one. */
nw_rc nw_verbs_cm_step(struct nw_verbs_end *end, bool *done_out)
{
    struct nw_verbs_cm *cm = end->cm;
    struct pollfd ready = {.fd = cm->channel->fd, .events = POLLIN};
    struct rdma_cm_event *event;

    *done_out = cm->connected == end->qp_count;
    if (*done_out)
        return NW_OK;
    if (cm->api->get_cm_event(cm->channel, &event) == 0) {
        const int kind = (int)event->event, status = event->status;
        const int queue =
            kind == RDMA_CM_EVENT_CONNECT_REQUEST && !cm->calls ? queue_of(end, event) : -1;
        struct rdma_cm_id *id = event->id;

        (void)cm->api->ack_cm_event(event);
        return cm->calls && kind != RDMA_CM_EVENT_CONNECT_REQUEST
                   ? go_on_calling(end, id, kind, status)
                   : go_on_answering(end, id, kind, status, queue);
    }
    if (errno != EAGAIN && errno != EINTR)
        return fail_cm(end, "no event", errno);
    if (nw_now_ns() >= cm->deadline_ns) {
        char time[32];

        return nw_fail(NW_ETIMEOUT,
                       "rdma_cm did not connect %s to %s within %s: the other side has stopped, or "
                       "packets do not arrive",
                       end->link.here, end->link.there, nw_format_ns(time, end->wish.timeout_ns));
    }
    (void)poll(&ready, 1, 1);
    return NW_OK;
}
