#include "cli/check_load.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/dev.h"
#include "topo/link.h"
#include "topo/nvml_api.h"

#define COPY_BYTES (32u << 20) /* 0.5 ms over Gen5 x16, 16 ms over Gen1 x8 */
#define COPIES     8           /* queued at a time: NVML is asked while they run */
#define LOAD_NS    200e6
#define WAIT_NS    10e9

struct load {
    struct nw_dev *dev;
    struct nw_stream *stream;
    void *pinned, *memory;
    struct nw_nvml *nvml;
    int index; /* NVML's */
};

static nw_rc open_load(struct load *load)
{
    const struct nw_dev_ops *ops = load->dev->ops;

    NW_TRY(nw_nvml_find(load->nvml, load->dev->pci, &load->index));
    NW_TRY(ops->stream_open(load->dev, &load->stream));
    NW_TRY(ops->alloc(load->dev, NW_SPACE_PINNED, COPY_BYTES, &load->pinned));
    return ops->alloc(load->dev, NW_SPACE_DEVICE, COPY_BYTES, &load->memory);
}

static void close_load(struct load *load)
{
    const struct nw_dev_ops *ops = load->dev->ops;

    ops->stream_close(load->stream);
    ops->free(load->dev, NW_SPACE_PINNED, load->pinned);
    ops->free(load->dev, NW_SPACE_DEVICE, load->memory);
    nw_dev_close(load->dev);
}

/* The best that is seen while data is on its way: the link needs some ms to speed up. */
static nw_rc watch(struct load *load, struct nw_nvml_gpu *best)
{
    const uint64_t began = nw_now_ns();

    best->pcie_generation = best->pcie_width = -1;
    do {
        struct nw_nvml_gpu now;

        for (int i = 0; i < COPIES; i++)
            NW_TRY(load->dev->ops->copy(load->stream, load->memory, load->pinned, COPY_BYTES));
        NW_TRY(nw_nvml_gpu(load->nvml, load->index, &now));
        NW_TRY(load->dev->ops->wait(load->stream, WAIT_NS));
        if (now.pcie_generation > best->pcie_generation || now.pcie_width > best->pcie_width)
            *best = now;
    } while ((double)(nw_now_ns() - began) < LOAD_NS);
    return NW_OK;
}

static int find_node(const struct nw_topo *topo, const char *pci)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_GPU && strcmp(topo->nodes[i].pci, pci) == 0)
            return (int)i;
    return -1;
}

static nw_rc note(struct nw_topo *topo, const char *pci, const struct nw_nvml_gpu *best)
{
    const int node = find_node(topo, pci);

    if (node < 0 || best->pcie_generation < 0)
        return NW_OK;
    if (best->pcie_width > 0)
        topo->nodes[node].link_lanes = best->pcie_width;
    if (best->pcie_width > 0)
        topo->nodes[node].link_bytes_per_s =
            nw_pcie_bytes_per_s(best->pcie_generation, best->pcie_width);
    NW_TRY(nw_topo_set_number(topo, node, NW_FACT_LINK_GENERATION, best->pcie_generation,
                              "nvml under load"));
    return nw_topo_set_number(topo, node, NW_FACT_LINK_LOADED, best->pcie_generation,
                              "nvml under load");
}

static nw_rc load_one(struct nw_topo *topo, struct nw_nvml *nvml, int index)
{
    struct load load = {.nvml = nvml};
    struct nw_nvml_gpu best = {.pcie_generation = -1};
    nw_rc rc;

    NW_TRY(nw_dev_open("cuda", index, &load.dev));
    rc = open_load(&load);
    if (rc == NW_OK)
        rc = watch(&load, &best);
    if (rc == NW_OK)
        rc = note(topo, load.dev->pci, &best);
    close_load(&load);
    return rc;
}

nw_rc nw_check_load(struct nw_topo *topo)
{
    struct nw_nvml *nvml;
    char why[512] = "";
    const int count = nw_dev_count("cuda", why, sizeof why);
    nw_rc rc = NW_OK;

    if (count == 0)
        return nw_fail(NW_ENODEV, "no link can be loaded: %.400s", why);
    NW_TRY(nw_nvml_open(&nvml));
    for (int i = 0; i < count && rc == NW_OK; i++)
        if (load_one(topo, nvml, i) != NW_OK)
            rc = nw_findings_add(&topo->findings, NW_FINDING_INFO, "not-checked", topo->host, NULL,
                                 "the PCIe link of CUDA's GPU %d under load: %s", i,
                                 nw_last_error()->text);
    nw_nvml_close(nvml);
    return rc;
}
