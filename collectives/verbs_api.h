/* Private to collectives/. libibverbs and librdmacm, opened at run time: one binary starts on
 * machines with and without them. Their headers are needed to build (NW_HAVE_VERBS); the structures
 * are of the libraries' stable interfaces (symbol versions IBVERBS_1.1, RDMACM_1.0). What is inline
 * in infiniband/verbs.h (posting, polling) goes through the device's own table and needs no symbol.
 */
#ifndef NW_COLLECTIVES_VERBS_API_H
#define NW_COLLECTIVES_VERBS_API_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "base/err.h"

/* X(member, required, result, arguments); the symbol is ibv_<member> */
#define NW_VERBS_API_MAP(X)                                                                        \
    X(get_device_list, true, struct ibv_device **, (int *count))                                   \
    X(free_device_list, true, void, (struct ibv_device * *list))                                   \
    X(get_device_name, true, const char *, (struct ibv_device * device))                           \
    X(open_device, true, struct ibv_context *, (struct ibv_device * device))                       \
    X(close_device, true, int, (struct ibv_context * context))                                     \
    X(query_device, true, int, (struct ibv_context * context, struct ibv_device_attr * attr))      \
    X(query_port, true, int,                                                                       \
      (struct ibv_context * context, uint8_t number, struct ibv_port_attr * attr))                 \
    X(alloc_pd, true, struct ibv_pd *, (struct ibv_context * context))                             \
    X(dealloc_pd, true, int, (struct ibv_pd * pd))                                                 \
    X(reg_mr, true, struct ibv_mr *,                                                               \
      (struct ibv_pd * pd, void *address, size_t bytes, int access))                               \
    X(reg_mr_iova2, false, struct ibv_mr *,                                                        \
      (struct ibv_pd * pd, void *address, size_t bytes, uint64_t iova, unsigned int access))       \
    X(reg_dmabuf_mr, false, struct ibv_mr *,                                                       \
      (struct ibv_pd * pd, uint64_t offset, size_t bytes, uint64_t iova, int fd, int access))      \
    X(dereg_mr, true, int, (struct ibv_mr * mr))                                                   \
    X(create_comp_channel, true, struct ibv_comp_channel *, (struct ibv_context * context))        \
    X(destroy_comp_channel, true, int, (struct ibv_comp_channel * channel))                        \
    X(create_cq, true, struct ibv_cq *,                                                            \
      (struct ibv_context * context, int entries, void *cq_context,                                \
       struct ibv_comp_channel *channel, int vector))                                              \
    X(destroy_cq, true, int, (struct ibv_cq * cq))                                                 \
    X(get_cq_event, true, int,                                                                     \
      (struct ibv_comp_channel * channel, struct ibv_cq * *cq, void **cq_context))                 \
    X(ack_cq_events, true, void, (struct ibv_cq * cq, unsigned int count))                         \
    X(create_qp, true, struct ibv_qp *, (struct ibv_pd * pd, struct ibv_qp_init_attr * attr))      \
    X(modify_qp, true, int, (struct ibv_qp * qp, struct ibv_qp_attr * attr, int mask))             \
    X(destroy_qp, true, int, (struct ibv_qp * qp))                                                 \
    X(get_async_event, true, int, (struct ibv_context * context, struct ibv_async_event * event))  \
    X(ack_async_event, true, void, (struct ibv_async_event * event))

/* The same of librdmacm; the symbol is rdma_<member> */
#define NW_VERBS_CM_MAP(X)                                                                         \
    X(create_event_channel, true, struct rdma_event_channel *, (void))                             \
    X(destroy_event_channel, true, void, (struct rdma_event_channel * channel))                    \
    X(create_id, true, int,                                                                        \
      (struct rdma_event_channel * channel, struct rdma_cm_id * *id, void *context,                \
       enum rdma_port_space space))                                                                \
    X(destroy_id, true, int, (struct rdma_cm_id * id))                                             \
    X(bind_addr, true, int, (struct rdma_cm_id * id, struct sockaddr * address))                   \
    X(listen, true, int, (struct rdma_cm_id * id, int backlog))                                    \
    X(get_src_port, true, __be16, (struct rdma_cm_id * id))                                        \
    X(resolve_addr, true, int,                                                                     \
      (struct rdma_cm_id * id, struct sockaddr * from, struct sockaddr * to, int timeout_ms))      \
    X(resolve_route, true, int, (struct rdma_cm_id * id, int timeout_ms))                          \
    X(set_option, true, int,                                                                       \
      (struct rdma_cm_id * id, int level, int name, void *value, size_t size))                     \
    X(connect, true, int, (struct rdma_cm_id * id, struct rdma_conn_param * param))                \
    X(establish, true, int, (struct rdma_cm_id * id))                                              \
    X(accept, true, int, (struct rdma_cm_id * id, struct rdma_conn_param * param))                 \
    X(reject, true, int, (struct rdma_cm_id * id, const void *data, uint8_t size))                 \
    X(init_qp_attr, true, int, (struct rdma_cm_id * id, struct ibv_qp_attr * attr, int *mask))     \
    X(get_cm_event, true, int,                                                                     \
      (struct rdma_event_channel * channel, struct rdma_cm_event * *event))                        \
    X(ack_cm_event, true, int, (struct rdma_cm_event * event))

struct nw_verbs_cm_api {
#define X(member, required, result, arguments) result(*member) arguments;
    NW_VERBS_CM_MAP(X)
#undef X
};

struct nw_verbs_api {
#define X(member, required, result, arguments) result(*member) arguments;
    NW_VERBS_API_MAP(X)
#undef X
};

/* Once per process; later calls return the same table or the same reason (NW_ENODEV). */
nw_rc nw_verbs_api_open(const struct nw_verbs_api **api_out);
nw_rc nw_verbs_cm_api_open(const struct nw_verbs_cm_api **api_out);

#endif
