/* Memory that a NIC reads and writes: pinned pages of the host, or a GPU's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

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

static nw_rc fail_host(const struct nw_verbs_end *end, int code)
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

static nw_rc register_gpu(struct nw_verbs_end *end, struct nw_dev *dev)
{
    end->mr = register_plain(end);
    if (end->mr == NULL)
        return nw_fail_lib(
            NW_ENOTSUP, "verbs", errno,
            "%s cannot reach the memory of %s: nvidia_peermem does not serve it (%s; "
            "modprobe nvidia_peermem)",
            end->name, dev->name, strerror(errno));
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
