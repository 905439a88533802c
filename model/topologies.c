#include "model/topologies.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "topo/facts.h"

const char *nw_topologies_gpu(const struct nw_model_request *request)
{
    for (size_t i = 0; i < request->topo_count; i++)
        for (int g = 0; g < nw_topo_count(request->topos[i], NW_NODE_GPU); g++) {
            const struct nw_topo_node *node = nw_topo_nth(request->topos[i], NW_NODE_GPU, g);

            if (node->model[0] != '\0')
                return node->model;
        }
    return NULL;
}

/* Of the GPU that is predicted for, or of one that nobody knows. */
static bool has_gpu(const struct nw_topo *topo, const struct nw_gpu *gpu)
{
    const struct nw_gpu *own;
    const char *model = nw_topo_nth(topo, NW_NODE_GPU, 0)->model;

    if (gpu == NULL || model[0] == '\0')
        return true;
    if (nw_gpu_find(model, &own) == NW_OK)
        return own == gpu;
    nw_clear_error();
    return true;
}

/* A source without NVLinks may only not have looked for them: that GPUs whose datasheet has them
 * meet over PCIe all the same, the driver must say. */
static bool is_known(const struct nw_topo *topo, const struct nw_fabric *read,
                     const struct nw_fabric *datasheet)
{
    double count = 0;

    if (!read->link_is_pcie || datasheet->link_is_pcie || !(datasheet->link_bytes_per_s > 0))
        return true;
    for (int g = 0; g < nw_topo_count(topo, NW_NODE_GPU) && count == 0; g++)
        count = nw_topo_number(topo, (int)(nw_topo_nth(topo, NW_NODE_GPU, g) - topo->nodes),
                               NW_FACT_NVLINK_COUNT);
    return count == 0; /* NAN: unknown */
}

static void take_links(const struct nw_fabric *read, struct nw_platform *platform)
{
    struct nw_fabric *fabric = &platform->fabric;
    struct nw_measured *measured = &platform->measured;

    if (!(read->link_bytes_per_s > 0) ||
        (measured->links_by_topology && read->link_bytes_per_s >= fabric->link_bytes_per_s))
        return;
    fabric->link_bytes_per_s = read->link_bytes_per_s;
    fabric->link_is_pcie = read->link_is_pcie;
    fabric->link_is_mesh = read->link_is_mesh;
    fabric->switch_bytes_per_s = read->switch_bytes_per_s;
    measured->links_by_topology = true;
}

static void take_nics(const struct nw_fabric *read, struct nw_platform *platform)
{
    struct nw_fabric *fabric = &platform->fabric;
    struct nw_measured *measured = &platform->measured;

    if (!(read->wire_bytes_per_s > 0) || read->nic_count <= 0 ||
        (measured->nics_by_topology && read->wire_bytes_per_s >= fabric->wire_bytes_per_s))
        return;
    fabric->wire_bytes_per_s = read->wire_bytes_per_s;
    fabric->nic_count = read->nic_count;
    measured->nics_by_topology = true;
}

/* `datasheet`: the fabric before any topology was taken; `simulated`: it came with a double's
 * records. A machine without GPUs says nothing of what GPUs reach. */
static void take_one(const struct nw_topo *topo, bool simulated, const struct nw_fabric *datasheet,
                     bool links_are_open, struct nw_platform *platform)
{
    struct nw_measured *measured = &platform->measured;
    const int gpu_count = nw_topo_count(topo, NW_NODE_GPU);
    struct nw_fabric read = *datasheet;

    if (gpu_count == 0)
        return;
    read.link_bytes_per_s = read.wire_bytes_per_s = NAN;
    read.nic_count = 0;
    nw_fabric_take_topo(&read, topo);
    if (links_are_open && gpu_count > 1 && has_gpu(topo, platform->gpu) &&
        is_known(topo, &read, datasheet))
        take_links(&read, platform);
    take_nics(&read, platform);
    if (simulated || nw_topo_number(topo, 0, NW_FACT_SIMULATED) > 0)
        measured->topology_simulated = true;
    if (measured->topology_gpu_count == 0 || gpu_count < measured->topology_gpu_count)
        measured->topology_gpu_count = gpu_count;
    if (measured->topology_host[0] == '\0')
        snprintf(measured->topology_host, sizeof measured->topology_host, "%s", topo->host);
}

static nw_rc take_context(const struct nw_context *context, const struct nw_fabric *datasheet,
                          bool links_are_open, struct nw_platform *platform)
{
    size_t index;
    json_t *item;

    json_array_foreach(context->topology, index, item)
    {
        struct nw_topo *topo;

        if (json_is_null(item))
            continue;
        NW_TRY(nw_topo_from_json(item, "topology of the results", &topo));
        take_one(topo, context->simulated, datasheet, links_are_open, platform);
        nw_topo_free(topo);
    }
    return NW_OK;
}

nw_rc nw_topologies_take(const struct nw_model_request *request, const struct nw_results *results,
                         struct nw_platform *platform)
{
    const struct nw_fabric datasheet = platform->fabric;
    const bool links_are_open = request->link == NULL || strcmp(request->link, "auto") == 0;

    for (size_t i = 0; i < request->topo_count; i++)
        take_one(request->topos[i], false, &datasheet, links_are_open, platform);
    for (size_t r = 0; request->topo_count == 0 && results != NULL && r < results->run_count; r++)
        NW_TRY(take_context(&results->runs[r].context, &datasheet, links_are_open, platform));
    return NW_OK;
}
