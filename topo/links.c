/* NVLink and XGMI, from hwloc's bandwidth matrices (MB/s, 10^6 bytes, one way; hwloc 2.5 and
 * later). A GPU of an HGX board is linked to NVSwitches, not to its peers: what a pair can carry is
 * then the smaller of the two sums over the switches. */
#include "topo/read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/classify.h"
#include "topo/link.h"
#include "topo/product.h"

/* One NVLink of a product; the matrices carry sums only. */
static double lane_bytes_per_s(const struct nw_topo_node *gpu)
{
    struct nw_gpu_product product;
    double rate;

    nw_gpu_identify_name(gpu->model, &product);
    if (product.gpu != NULL && product.gpu->nvlink_lane_bytes_per_s > 0)
        return product.gpu->nvlink_lane_bytes_per_s;
    rate = nw_nvlink_bytes_per_s_of(gpu->model, NAN); /* also of products without a row */
    return isnan(rate) ? 0 : rate;
}

static int lanes_of(const struct nw_topo_node *gpu, double bytes_per_s)
{
    const double lane = lane_bytes_per_s(gpu);
    double lanes;

    if (!(lane > 0))
        return 0;
    lanes = bytes_per_s / lane;
    return lanes > 0.98 && lanes < 100 && lanes - (int)(lanes + 0.5) < 0.02 &&
                   (int)(lanes + 0.5) - lanes < 0.02
               ? (int)(lanes + 0.5)
               : 0;
}

static bool is_switch(const struct nw_raw *raw, int object)
{
    const struct nw_raw_object *at;

    if (object < 0)
        return false;
    at = &raw->objects[object];
    return strcmp(at->subtype, "NVSwitch") == 0 ||
           (at->type == NW_RAW_PCI && at->pci_vendor == NW_PCI_VENDOR_NVIDIA &&
            at->pci_class == NW_PCI_CLASS_BRIDGE_OTHER);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* MB/s between objects i and j, one way: the direct link, else through the switches. */
static double megabytes_per_s(const struct nw_raw *raw, const struct nw_raw_matrix *matrix,
                              size_t i, size_t j)
{
    const size_t n = matrix->count;
    const uint64_t direct = smaller(matrix->values[i * n + j], matrix->values[j * n + i]);
    double up = 0, down = 0;

    if (direct > 0)
        return (double)direct;
    for (size_t k = 0; k < n; k++)
        if (is_switch(raw, matrix->objects[k])) {
            up += (double)smaller(matrix->values[i * n + k], matrix->values[k * n + i]);
            down += (double)smaller(matrix->values[k * n + j], matrix->values[j * n + k]);
        }
    return up < down ? up : down;
}

static int end_of(const struct nw_topo *topo, const struct nw_raw_matrix *matrix,
                  const int *node_of, size_t i)
{
    const int node = matrix->objects[i] >= 0 ? node_of[matrix->objects[i]] : -1;

    if (node < 0)
        return -1;
    return topo->nodes[node].kind == NW_NODE_GPU || topo->nodes[node].kind == NW_NODE_PACKAGE ? node
                                                                                              : -1;
}

static nw_rc add_matrix(const struct nw_raw *raw, const struct nw_raw_matrix *matrix,
                        const int *node_of, nw_link_kind kind, struct nw_topo *topo)
{
    for (size_t i = 0; i < matrix->count; i++)
        for (size_t j = i + 1; j < matrix->count; j++) {
            struct nw_topo_link link = {.kind = kind,
                                        .a = end_of(topo, matrix, node_of, i),
                                        .b = end_of(topo, matrix, node_of, j)};

            if (link.a < 0 || link.b < 0 || link.a == link.b)
                continue;
            link.bytes_per_s = megabytes_per_s(raw, matrix, i, j) * 1e6;
            if (link.bytes_per_s <= 0)
                continue;
            if (kind == NW_LINK_NVLINK) {
                const bool a_is_gpu = topo->nodes[link.a].kind == NW_NODE_GPU;

                link.lane_count =
                    lanes_of(&topo->nodes[a_is_gpu ? link.a : link.b], link.bytes_per_s);
            }
            NW_TRY(nw_topo_add_link(topo, &link));
        }
    return NW_OK;
}

/* Does the source say whether there is NVLink? hwloc writes no matrix when NVML reports no active
 * link, so NVML devices of a version that knows NVLink (2.5) and no matrix mean there is none. */
static bool nvlink_is_known(const struct nw_raw *raw)
{
    for (size_t i = 0; i < raw->matrix_count; i++)
        if (strcmp(raw->matrices[i].name, "NVLinkBandwidth") == 0)
            return true;
    for (size_t i = 0; i < raw->count && raw->hwloc_version >= 205; i++)
        if (raw->objects[i].type == NW_RAW_OSDEV && strncmp(raw->objects[i].name, "nvml", 4) == 0)
            return true;
    return false;
}

nw_rc nw_topo_build_links(const struct nw_raw *raw, const int *node_of, struct nw_topo *topo)
{
    static const struct {
        const char *matrix;
        nw_link_kind kind;
    } kinds[] = {{"NVLinkBandwidth", NW_LINK_NVLINK}, {"XGMIBandwidth", NW_LINK_XGMI}};
    int nvidia = 0;

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t i = 0; i < raw->matrix_count; i++)
            if (strcmp(raw->matrices[i].name, kinds[k].matrix) == 0) {
                NW_TRY(add_matrix(raw, &raw->matrices[i], node_of, kinds[k].kind, topo));
                break; /* a second one of the same name would say the same again */
            }
    for (size_t i = 0; i < topo->node_count; i++)
        nvidia += topo->nodes[i].kind == NW_NODE_GPU && nw_topo_is_nvidia(&topo->nodes[i]);
    if (nvidia >= 2 && !nvlink_is_known(raw))
        topo->gaps |= NW_TOPO_NO_NVLINK;
    return NW_OK;
}
