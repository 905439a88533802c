/* Memory that a NIC reads and writes: pinned pages of the host, or a GPU's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/units.h"
#include "collectives/verbs_parts.h"
#include "kernels/dev.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Relaxed ordering on PCIe, as perftest and NCCL have it: without it some hosts lose half of the
 * rate. reg_mr_iova2 leaves it out where the kernel does not know it. */
static struct ibv_mr *register_plain(struct nw_verbs_end *end)
{
    if (end->api->reg_mr_iova2 != NULL)
        return end->api->reg_mr_iova2(end->pd, end->buffer, end->bytes,
                                      (uint64_t)(uintptr_t)end->buffer,
                                      ACCESS | IBV_ACCESS_RELAXED_ORDERING);
    return end->api->reg_mr(end->pd, end->buffer, end->bytes, ACCESS);
}

static const char *limit_text(char text[48])
{
    struct rlimit limit;
    char size[32];

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        snprintf(text, 48, "unknown");
    else if (limit.rlim_cur == RLIM_INFINITY)
        snprintf(text, 48, "unlimited");
    else
        snprintf(text, 48, "%s", nw_format_bytes(size, limit.rlim_cur));
    return text;
}

static nw_rc fail_host(struct nw_verbs_end *end, int code)
{
    char size[32], limit[48];

    if (code != ENOMEM && code != EAGAIN && code != EPERM)
        return nw_verbs_fail_call(end, code, "the buffer cannot be registered");
    return nw_fail_lib(
        NW_ELIB, "verbs", code,
        "%s: registering %s of memory was refused (%s): a process may lock %s here. Raise it: "
        "ulimit -l unlimited (limits.conf; docker --ulimit memlock=-1; Slurm "
        "PropagateResourceLimitsExcept=MEMLOCK), then start again",
        end->name, nw_format_bytes(size, end->bytes), strerror(code), limit_text(limit));
}

/* The kernel's common way; its driver on the GPU's side is in the NVIDIA driver itself. */
static nw_rc register_dmabuf(struct nw_verbs_end *end, struct nw_dev *dev)
{
    const uint64_t address = (uint64_t)(uintptr_t)end->buffer;
    uint64_t offset;
    int fd;

    if (dev->ops->share == NULL || end->api->reg_dmabuf_mr == NULL)
        return nw_fail(NW_ENOTSUP, "%s",
                       dev->ops->share == NULL
                           ? "the device has no dma-buf"
                           : "libibverbs is older than 1.12 (rdma-core 34), which "
                             "brought dma-buf");
    NW_TRY(dev->ops->share(dev, end->buffer, end->bytes, &fd, &offset));
    end->mr = end->api->reg_dmabuf_mr(end->pd, offset, end->bytes, address, fd,
                                      ACCESS | IBV_ACCESS_RELAXED_ORDERING);
    if (end->mr == NULL)
        end->mr = end->api->reg_dmabuf_mr(end->pd, offset, end->bytes, address, fd, ACCESS);
    const int code = errno;
    (void)close(fd); /* the registration holds it */
    if (end->mr == NULL)
        return nw_fail_lib(NW_ENOTSUP, "verbs", code, "the NIC's driver refused the dma-buf (%s)",
                           strerror(code));
    snprintf(end->link.memory, sizeof end->link.memory, "gpu (dma-buf)");
    return NW_OK;
}

static nw_rc register_gpu(struct nw_verbs_end *end, struct nw_dev *dev)
{
    char why[512];

    if (register_dmabuf(end, dev) == NW_OK)
        return NW_OK;
    snprintf(why, sizeof why, "%.511s", nw_last_error()->text);
    nw_clear_error();
    end->mr = register_plain(end);
    if (end->mr == NULL)
        return nw_fail_lib(
            NW_ENOTSUP, "verbs", errno,
            "%s cannot reach the memory of %s directly (GPUDirect RDMA): by dma-buf: "
            "%s; by nvidia_peermem: %s (modprobe nvidia_peermem)",
            end->name, dev->name, why, strerror(errno));
    snprintf(end->link.memory, sizeof end->link.memory, "gpu (nvidia_peermem)");
    return NW_OK;
}

nw_rc nw_verbs_register(struct nw_verbs_end *end, struct nw_dev *dev)
{
    if (dev != NULL && strcmp(dev->ops->name, "host") != 0)
        return register_gpu(end, dev);
    end->mr = register_plain(end);
    if (end->mr == NULL)
        return fail_host(end, errno);
    snprintf(end->link.memory, sizeof end->link.memory, "host");
    return NW_OK;
}
