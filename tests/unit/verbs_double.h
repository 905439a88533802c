/* A NIC of RDMA in memory: one device, one port, behind the table that the verbs layer calls. Data
 * are copied when a request is posted; what goes wrong is told beforehand. */
#ifndef NW_TESTS_VERBS_DOUBLE_H
#define NW_TESTS_VERBS_DOUBLE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "collectives/verbs_parts.h"
#include "kernels/dev.h"
#include "system_tree.h"

enum { DOUBLE_QPS = 16, DOUBLE_MRS = 4, DOUBLE_QUEUE = 8192 };

struct double_qp {
    struct ibv_qp qp;
    uint32_t peer; /* its number */
    struct ibv_qp_attr receive, send;
    struct ibv_recv_wr waiting[DOUBLE_QUEUE];
    struct ibv_sge pieces[DOUBLE_QUEUE];
    unsigned first_waiting, last_waiting;
    bool used;
};

struct double_cq {
    struct ibv_cq cq;
    struct ibv_wc done[DOUBLE_QUEUE];
    unsigned first, last;
};

/* One NIC; a test program has one at a time. */
static struct {
    /* What a test sets. */
    int device_count; /* -1: the list is NULL */
    int list_errno, open_errno, register_errno, receive_errno;
    int dmabuf_errno, share_rc;       /* of a GPU's memory */
    int fail_status;                  /* of the completion of request `fail_at` and later ones */
    uint64_t fail_at;                 /* from 1; 0: none fails */
    bool lose;                        /* nothing completes */
    int post_errno;                   /* a request is refused */
    struct ibv_qp *only_qp;           /* that lose and post_errno are of; NULL: of all */
    bool damage;                      /* a byte of each message is changed on its way */
    struct ibv_async_event events[8]; /* of the device, each once */
    int event_count, event_read;
    enum ibv_mtu mtu;
    int max_qp_wr, max_cqe;
    /* What it sees. */
    uint64_t requests, signaled, inlined;
    int registered_access;
    int open_handles;
    /* Its own. */
    struct ibv_device device;
    struct ibv_device *list[2];
    struct ibv_context context;
    int pipe[2];
    struct ibv_pd pd;
    struct double_cq cqs[4];
    struct double_qp qps[DOUBLE_QPS];
    struct {
        struct ibv_mr mr;
        bool used;
    } mrs[DOUBLE_MRS];
} nic;

static struct ibv_device **double_list(int *count)
{
    errno = nic.list_errno;
    *count = nic.device_count > 0 ? nic.device_count : 0;
    nic.list[0] = &nic.device;
    return nic.device_count < 0 ? NULL : nic.list;
}

static void double_free_list(struct ibv_device **list)
{
    (void)list;
}

static const char *double_name(struct ibv_device *device)
{
    return device->name;
}

static int double_poll(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    struct double_cq *queue = (struct double_cq *)cq;
    int count = 0;

    while (count < most && queue->first != queue->last)
        wc[count++] = queue->done[queue->first++ % DOUBLE_QUEUE];
    return count;
}

static void double_complete(struct ibv_cq *cq, uint64_t id, enum ibv_wc_opcode opcode, int status)
{
    struct double_cq *queue = (struct double_cq *)cq;

    queue->done[queue->last++ % DOUBLE_QUEUE] =
        (struct ibv_wc){.wr_id = id, .opcode = opcode, .status = (enum ibv_wc_status)status};
}

static int double_receive(struct ibv_qp *qp, struct ibv_recv_wr *request,
                          struct ibv_recv_wr **refused)
{
    struct double_qp *own = (struct double_qp *)qp;

    (void)refused;
    for (; request != NULL; request = request->next) {
        const unsigned at = own->last_waiting++ % DOUBLE_QUEUE;

        own->waiting[at] = *request;
        own->pieces[at] = *request->sg_list;
    }
    return 0;
}

static void double_deliver(struct double_qp *own, const struct ibv_send_wr *request)
{
    struct double_qp *peer = &nic.qps[own->peer];
    uint8_t *here = (uint8_t *)(uintptr_t)request->sg_list->addr;
    uint8_t *there = (uint8_t *)(uintptr_t)request->wr.rdma.remote_addr;

    if (request->opcode == IBV_WR_SEND) {
        const unsigned at = peer->first_waiting++ % DOUBLE_QUEUE;

        cr_assert(peer->first_waiting <= peer->last_waiting, "a send found no receive");
        cr_assert_leq(request->sg_list->length, peer->pieces[at].length);
        there = (uint8_t *)(uintptr_t)peer->pieces[at].addr;
        double_complete(peer->qp.recv_cq, peer->waiting[at].wr_id, IBV_WC_RECV, 0);
    }
    if (request->opcode == IBV_WR_RDMA_READ)
        memcpy(here, there, request->sg_list->length);
    else
        memcpy(there, here, request->sg_list->length);
    if (nic.damage)
        (request->opcode == IBV_WR_RDMA_READ ? here : there)[0] ^= 1;
}

static int double_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **refused)
{
    struct double_qp *own = (struct double_qp *)qp;
    const bool hit = nic.only_qp == NULL || nic.only_qp == qp;
    const bool fails = nic.fail_at > 0 && ++nic.requests >= nic.fail_at;

    (void)refused;
    nic.requests += nic.fail_at == 0;
    nic.signaled += (request->send_flags & IBV_SEND_SIGNALED) != 0;
    nic.inlined += (request->send_flags & IBV_SEND_INLINE) != 0;
    if (hit && nic.post_errno != 0)
        return nic.post_errno;
    if (hit && nic.lose)
        return 0;
    if (fails) {
        double_complete(own->qp.send_cq, request->wr_id, IBV_WC_SEND,
                        nic.requests == nic.fail_at ? nic.fail_status : IBV_WC_WR_FLUSH_ERR);
        return 0;
    }
    double_deliver(own, request);
    if ((request->send_flags & IBV_SEND_SIGNALED) != 0)
        double_complete(own->qp.send_cq, request->wr_id, IBV_WC_SEND, 0);
    return 0;
}

static struct ibv_context *double_open(struct ibv_device *device)
{
    errno = nic.open_errno;
    if (nic.open_errno != 0)
        return NULL;
    nic.context.device = device;
    nic.context.ops.poll_cq = double_poll;
    nic.context.ops.post_send = double_send;
    nic.context.ops.post_recv = double_receive;
    cr_assert_eq(pipe2(nic.pipe, O_CLOEXEC), 0);
    nic.context.async_fd = nic.pipe[0];
    nic.open_handles++;
    return &nic.context;
}

static int double_close(struct ibv_context *context)
{
    (void)context;
    (void)close(nic.pipe[0]);
    (void)close(nic.pipe[1]);
    nic.open_handles--;
    return 0;
}

static int double_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    (void)context;
    *attr = (struct ibv_device_attr){.phys_port_cnt = 1,
                                     .max_qp_wr = nic.max_qp_wr,
                                     .max_qp = DOUBLE_QPS,
                                     .max_cqe = nic.max_cqe,
                                     .max_qp_rd_atom = 16,
                                     .max_qp_init_rd_atom = 16};
    return 0;
}

static int double_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr)
{
    (void)context, (void)number;
    attr->active_mtu = nic.mtu;
    attr->max_mtu = IBV_MTU_4096;
    attr->lid = 7;
    return 0;
}

static struct ibv_pd *double_alloc_pd(struct ibv_context *context)
{
    (void)context;
    nic.open_handles++;
    return &nic.pd;
}

static int double_dealloc_pd(struct ibv_pd *pd)
{
    (void)pd;
    nic.open_handles--;
    return 0;
}

static struct ibv_mr *double_register(struct ibv_pd *pd, void *address, size_t bytes, int access)
{
    (void)pd, (void)address, (void)bytes;
    errno = nic.register_errno;
    nic.registered_access = access;
    for (uint32_t i = 0; i < DOUBLE_MRS && nic.register_errno == 0; i++)
        if (!nic.mrs[i].used) {
            nic.mrs[i].used = true;
            nic.mrs[i].mr = (struct ibv_mr){.lkey = i, .rkey = i + 100};
            nic.open_handles++;
            return &nic.mrs[i].mr;
        }
    return NULL;
}

static struct ibv_mr *double_register_dmabuf(struct ibv_pd *pd, uint64_t offset, size_t bytes,
                                             uint64_t iova, int fd, int access)
{
    cr_expect_eq(offset, 256u);
    cr_expect_geq(fcntl(fd, F_GETFD), 0, "a dma-buf that is closed");
    errno = nic.dmabuf_errno;
    return nic.dmabuf_errno == 0 ? double_register(pd, (void *)(uintptr_t)iova, bytes, access)
                                 : NULL;
}

/* A GPU's: memory is any, and its dma-buf an open file. */
static nw_rc double_share(struct nw_dev *dev, const void *memory, uint64_t bytes, int *fd_out,
                          uint64_t *offset_out)
{
    (void)dev, (void)memory, (void)bytes;
    if (nic.share_rc != NW_OK)
        return nw_fail((nw_rc)nic.share_rc, "no dma-buf here");
    *fd_out = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *offset_out = 256;
    return NW_OK;
}

static int double_deregister(struct ibv_mr *mr)
{
    nic.mrs[mr->lkey].used = false;
    nic.open_handles--;
    return 0;
}

static struct ibv_cq *double_create_cq(struct ibv_context *context, int entries, void *cq_context,
                                       struct ibv_comp_channel *channel, int vector)
{
    (void)cq_context, (void)channel, (void)vector;
    cr_expect_leq(entries, nic.max_cqe, "a completion queue of %d", entries);
    for (int i = 0; i < 4; i++)
        if (nic.cqs[i].cq.context == NULL) {
            nic.cqs[i] = (struct double_cq){.cq = {.context = context}};
            nic.open_handles++;
            return &nic.cqs[i].cq;
        }
    return NULL;
}

static int double_destroy_cq(struct ibv_cq *cq)
{
    cq->context = NULL;
    nic.open_handles--;
    return 0;
}

static struct ibv_qp *double_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    (void)pd;
    cr_expect_leq(attr->cap.max_send_wr, (uint32_t)nic.max_qp_wr);
    cr_expect_leq(attr->cap.max_recv_wr, (uint32_t)nic.max_qp_wr);
    for (uint32_t i = 1; i < DOUBLE_QPS; i++)
        if (!nic.qps[i].used) {
            memset(&nic.qps[i], 0, sizeof nic.qps[i]);
            nic.qps[i].used = true;
            nic.qps[i].qp.context = &nic.context;
            nic.qps[i].qp.qp_num = i;
            nic.qps[i].qp.send_cq = attr->send_cq;
            nic.qps[i].qp.recv_cq = attr->recv_cq;
            nic.open_handles++;
            return &nic.qps[i].qp;
        }
    errno = ENOMEM;
    return NULL;
}

static int double_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    struct double_qp *own = (struct double_qp *)qp;

    (void)mask;
    if (attr->qp_state == IBV_QPS_RTR) {
        if (nic.receive_errno != 0)
            return nic.receive_errno;
        own->receive = *attr;
        own->peer = attr->dest_qp_num;
    }
    if (attr->qp_state == IBV_QPS_RTS)
        own->send = *attr;
    return 0;
}

static int double_destroy_qp(struct ibv_qp *qp)
{
    ((struct double_qp *)qp)->used = false;
    nic.open_handles--;
    return 0;
}

static int double_event(struct ibv_context *context, struct ibv_async_event *event)
{
    char byte;

    (void)context;
    cr_assert_eq(read(nic.pipe[0], &byte, 1), 1);
    *event = nic.events[nic.event_read++ % 8];
    return 0;
}

static void double_ack(struct ibv_async_event *event)
{
    (void)event;
}

static const struct nw_verbs_api double_api = {
    .get_device_list = double_list,
    .free_device_list = double_free_list,
    .get_device_name = double_name,
    .open_device = double_open,
    .close_device = double_close,
    .query_device = double_device,
    .query_port = double_port,
    .alloc_pd = double_alloc_pd,
    .dealloc_pd = double_dealloc_pd,
    .reg_mr = double_register,
    .reg_dmabuf_mr = double_register_dmabuf,
    .dereg_mr = double_deregister,
    .create_cq = double_create_cq,
    .destroy_cq = double_destroy_cq,
    .create_qp = double_create_qp,
    .modify_qp = double_modify,
    .destroy_qp = double_destroy_qp,
    .get_async_event = double_event,
    .ack_async_event = double_ack,
};

static inline void double_reset(void)
{
    memset(&nic, 0, sizeof nic);
    nic.device_count = 1;
    nic.mtu = IBV_MTU_4096;
    nic.max_qp_wr = 1024;
    nic.max_cqe = DOUBLE_QUEUE;
    snprintf(nic.device.name, sizeof nic.device.name, "mlx5_9");
}

static inline void double_happens_to(struct ibv_async_event event)
{
    nic.events[nic.event_count++ % 8] = event;
    cr_assert_eq(write(nic.pipe[1], "!", 1), 1);
}

/* Something has happened to the device's port. */
static inline void double_happens(int event)
{
    double_happens_to(
        (struct ibv_async_event){.event_type = (enum ibv_event_type)event, .element.port_num = 1});
}

#define DOUBLE_PORT "class/infiniband/mlx5_9/ports/1/"
static const struct tree_file double_sysfs[] = {
    {"devices/pci0/0000:17:00.0/numa_node", "1\n"},
    {"class/infiniband/mlx5_9/device", "@../../../devices/pci0/0000:17:00.0"},
    {"class/infiniband/mlx5_9/node_type", "1: CA\n"},
    {DOUBLE_PORT "state", "4: ACTIVE\n"},
    {DOUBLE_PORT "link_layer", "Ethernet\n"},
    {DOUBLE_PORT "rate", "400 Gb/sec (4X NDR)\n"},
    {DOUBLE_PORT "gids/0", "fe80:0000:0000:0000:0a00:27ff:fe00:0001\n"},
    {DOUBLE_PORT "gids/1", "fe80:0000:0000:0000:0a00:27ff:fe00:0001\n"},
    {DOUBLE_PORT "gids/2", "0000:0000:0000:0000:0000:ffff:0a01:0001\n"},
    {DOUBLE_PORT "gids/3", "0000:0000:0000:0000:0000:ffff:0a01:0001\n"},
    {DOUBLE_PORT "gids/4", "0000:0000:0000:0000:0000:0000:0000:0000\n"},
    {DOUBLE_PORT "gid_attrs/types/0", "IB/RoCE v1\n"},
    {DOUBLE_PORT "gid_attrs/types/1", "RoCE v2\n"},
    {DOUBLE_PORT "gid_attrs/types/2", "IB/RoCE v1\n"},
    {DOUBLE_PORT "gid_attrs/types/3", "RoCE v2\n"},
    {DOUBLE_PORT "gid_attrs/ndevs/0", "eth5\n"},
};

#endif
