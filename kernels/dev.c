#include "kernels/dev.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "kernels/backends.h"

const struct nw_dev_backend nw_dev_backends[] = {
    {
        .name = "cuda",
        .title = "NVIDIA GPUs",
#ifdef NW_HAVE_CUDA
        .ops = &nw_dev_cuda_ops,
#else
        .absent = "built without CUDA: there was no nvcc, or NW_CUDA=OFF",
#endif
    },
    {.name = "host", .title = "host memory", .ops = &nw_dev_host_ops},
    {.name = NULL},
};

static nw_rc backend_find(const char *name, const struct nw_dev_backend **backend_out)
{
    for (const struct nw_dev_backend *b = nw_dev_backends; b->name; b++) {
        if (strcmp(b->name, name) != 0)
            continue;
        if (!b->ops)
            return nw_fail(NW_ENODEV, "%s: %s", b->title, b->absent);
        *backend_out = b;
        return NW_OK;
    }
    return nw_fail(NW_EUSAGE, "\"%s\" is no device backend; accepted: cuda, host", name);
}

nw_rc nw_dev_open(const char *backend, int index, struct nw_dev **dev_out)
{
    const struct nw_dev_backend *b;
    NW_TRY(backend_find(backend, &b));
    int count;
    NW_TRY(b->ops->count(&count));
    if (index < 0 || index >= count)
        return nw_fail(NW_ENODEV, "there is no %s device %d: this machine has %d", b->name, index,
                       count);
    return b->ops->open(index, dev_out);
}

nw_rc nw_dev_open_best(int index, struct nw_dev **dev_out)
{
    for (const struct nw_dev_backend *b = nw_dev_backends; b->name; b++) {
        if (!b->ops)
            continue;
        nw_rc rc = nw_dev_open(b->name, index, dev_out);
        if (rc != NW_ENODEV)
            return rc;
    }
    return NW_ENODEV; /* worded by the last one */
}

void nw_dev_close(struct nw_dev *dev)
{
    if (dev)
        dev->ops->close(dev);
}

int nw_dev_count(const char *backend, char *why_out, size_t why_size)
{
    const struct nw_dev_backend *b;
    int count = 0;
    nw_rc rc = backend_find(backend, &b);
    if (rc == NW_OK)
        rc = b->ops->count(&count);
    if (why_out)
        snprintf(why_out, why_size, "%s", rc == NW_OK ? "" : nw_last_error()->text);
    return rc == NW_OK ? count : 0;
}
