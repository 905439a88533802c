#include "collectives/lane.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/comm.h"
#ifdef NW_HAVE_NCCL
#include "collectives/nccl_api.h"
#include "topo/nvml_api.h"
#endif

#define NVLS_SINCE 21701 /* NCCL 2.17.1: first with NVLink SHARP (release notes) */

static const char *without_links(const struct nw_lane_facts *facts)
{
    if (!facts->gpus_known)
        return "whether the GPUs have NVLinks is unknown: NVML does not answer on every host";
    return facts->nvlinks == 0 ? "no NVLink between the GPUs here" : NULL;
}

static const char *without_switch_sums(const struct nw_lane_facts *facts)
{
    if (facts->nccl_version > 0 && facts->nccl_version < NVLS_SINCE)
        return "NVLink SHARP needs NCCL 2.17 or later";
    if (!facts->gpus_known)
        return "whether there are NVSwitches is unknown: NVML does not answer on every host";
    if (facts->capability < 90)
        return "NVLink SHARP needs GPUs of compute capability 9.0 (Hopper) or later";
    return facts->switched ? NULL : "NVLink SHARP needs NVSwitches, and there are none";
}

static const char *on_one_host(const struct nw_lane_facts *facts)
{
    return facts->host_count < 2 ? "there is one host, nothing goes over a network" : NULL;
}

static const char *without_rdma(const struct nw_lane_facts *facts)
{
    if (facts->host_count < 2)
        return on_one_host(facts);
    return facts->rdma_devices == 0 ? "no RDMA device on every host (/sys/class/infiniband)" : NULL;
}

static const char *one_rank_a_host(const struct nw_lane_facts *facts)
{
    return facts->ranks_on_a_host < 2 ? "one rank on each host, nothing goes between its GPUs"
                                      : NULL;
}

/* Names and values: NCCL user guide, "Environment Variables". NVLink SHARP does not count as peer
 * access, so lanes without NVLink switch it off by its own variable. */
const struct nw_lane nw_lanes[] = {
    {.name = "auto", .title = "the library's own choice"},
    {.name = "nvlink",
     .title = "peer access over NVLink only",
     .settings = {{"NCCL_P2P_LEVEL", "NVL"}},
     .unfit = without_links},
    {.name = "pcie",
     .title = "over PCIe: staged in host memory by copy engines, where NVLink would be taken for "
              "peer access",
     .settings = {{"NCCL_P2P_DISABLE", "1"},
                  {"NCCL_SHM_USE_CUDA_MEMCPY", "1"},
                  {"NCCL_NVLS_ENABLE", "0"}},
     .without_nvlink = {{"NCCL_P2P_LEVEL", "SYS"}},
     .unfit = one_rank_a_host},
    {.name = "shm",
     .title = "no peer access: staged in host memory by kernels",
     .settings = {{"NCCL_P2P_DISABLE", "1"}, {"NCCL_NVLS_ENABLE", "0"}},
     .unfit = one_rank_a_host},
    {.name = "ring", .title = "the ring algorithm", .settings = {{"NCCL_ALGO", "Ring"}}},
    {.name = "tree",
     .title = "the tree algorithm",
     .settings = {{"NCCL_ALGO", "Tree"}},
     .only = "all_reduce"},
    {.name = "nvls",
     .title = "sums in the NVSwitches (NVLink SHARP)",
     .settings = {{"NCCL_ALGO", "NVLS,NVLSTree"}},
     .only = "all_reduce",
     .unfit = without_switch_sums},
    {.name = "rdma",
     .title = "between hosts by RDMA",
     .settings = {{"NCCL_NET", "IB"}},
     .unfit = without_rdma},
    {.name = "tcp",
     .title = "between hosts by sockets",
     .settings = {{"NCCL_NET", "Socket"}, {"NCCL_IB_DISABLE", "1"}},
     .unfit = on_one_host},
    {.name = "nogdr",
     .title = "between hosts by RDMA from host memory, without GPUDirect",
     .settings = {{"NCCL_NET_GDR_LEVEL", "LOC"}},
     .unfit = without_rdma},
    {.name = NULL},
};

const char *const nw_lane_variables[] = {
    "NCCL_ALGO",        "NCCL_PROTO",       "NCCL_P2P_LEVEL",           "NCCL_P2P_DISABLE",
    "NCCL_SHM_DISABLE", "NCCL_NVLS_ENABLE", "NCCL_SHM_USE_CUDA_MEMCPY", NULL,
};

const struct nw_lane *nw_lane_find(const char *name)
{
    for (const struct nw_lane *lane = nw_lanes; lane->name != NULL; lane++)
        if (strcmp(lane->name, name) == 0)
            return lane;
    return NULL;
}

bool nw_lane_fits(const struct nw_lane *lane, const struct nw_lane_facts *facts, char *why,
                  size_t why_size)
{
    const char *reason = lane->unfit != NULL ? lane->unfit(facts) : NULL;

    if (reason != NULL && why != NULL)
        snprintf(why, why_size, "%s", reason);
    return reason == NULL;
}

const struct nw_lane_setting *nw_lane_settings(const struct nw_lane *lane,
                                               const struct nw_lane_facts *facts)
{
    const bool nvlink = !facts->gpus_known || facts->nvlinks > 0;

    return nvlink || lane->without_nvlink[0].name == NULL ? lane->settings : lane->without_nvlink;
}

/* ---- looking ------------------------------------------------------------------------------------
 */

static int rdma_device_count(void)
{
    DIR *folder = opendir("/sys/class/infiniband");
    const struct dirent *entry;
    int count = 0;

    if (folder == NULL)
        return 0;
    while ((entry = readdir(folder)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

#ifdef NW_HAVE_NCCL
static void count_links(const struct nw_nvml_gpu *gpu, struct nw_lane_facts *facts)
{
    int active = 0, switched = 0;

    for (int i = 0; i < gpu->link_count; i++) {
        active += gpu->links[i].active;
        switched += gpu->links[i].active && gpu->links[i].peer == NW_NVLINK_PEER_SWITCH;
    }
    if (facts->gpus_known == 0 || active < facts->nvlinks)
        facts->nvlinks = active;
    if (facts->gpus_known == 0 || gpu->capability < facts->capability)
        facts->capability = gpu->capability;
    facts->switched =
        (facts->gpus_known == 0 || facts->switched) && active > 0 && switched == active;
    facts->gpus_known = 1;
}

/* Nothing that is missing here is a failure: the worker says it. */
static void look_here(struct nw_lane_facts *facts)
{
    const struct nw_nccl_api *nccl;
    struct nw_nvml *nvml;

    if (nw_nccl_api_open(&nccl) == NW_OK)
        facts->nccl_version = nccl->version;
    if (nw_nvml_open(&nvml) == NW_OK) {
        struct nw_nvml_gpu gpu;

        for (int i = 0; i < nw_nvml_count(nvml); i++)
            if (nw_nvml_gpu(nvml, i, &gpu) == NW_OK)
                count_links(&gpu, facts);
        nw_nvml_close(nvml);
    }
    nw_clear_error();
}
#else
static void look_here(struct nw_lane_facts *facts)
{
    (void)facts;
}
#endif

static int least(int a, int b)
{
    return a < b ? a : b;
}

nw_rc nw_lane_look(struct nw_comm *comm, struct nw_lane_facts *facts_out)
{
    struct nw_lane_facts mine = {.rdma_devices = rdma_device_count(),
                                 .host_count = comm->host_count,
                                 .ranks_on_a_host = comm->local_count};
    struct nw_lane_facts *all = calloc((size_t)comm->rank_count, sizeof *all), facts;
    nw_rc rc;

    if (all == NULL) /* rare, and the others would wait: their exchange fails with ours */
        return nw_fail(NW_ENOMEM, "no memory for the lanes of %d ranks", comm->rank_count);
    look_here(&mine);
    rc = comm->ops->exchange(comm, &mine, sizeof mine, all);
    facts = all[0];
    for (int rank = 1; rc == NW_OK && rank < comm->rank_count; rank++) {
        facts.gpus_known = least(facts.gpus_known, all[rank].gpus_known);
        facts.nvlinks = least(facts.nvlinks, all[rank].nvlinks);
        facts.switched = least(facts.switched, all[rank].switched);
        facts.capability = least(facts.capability, all[rank].capability);
        facts.nccl_version = least(facts.nccl_version, all[rank].nccl_version);
        facts.rdma_devices = least(facts.rdma_devices, all[rank].rdma_devices);
        facts.ranks_on_a_host = -least(-facts.ranks_on_a_host, -all[rank].ranks_on_a_host);
    }
    free(all);
    if (rc == NW_OK)
        *facts_out = facts;
    return rc;
}
