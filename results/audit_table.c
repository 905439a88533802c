/* The claims of a quote: one row each, in the order of the report. */
#include <math.h>
#include <string.h>

#include "results/audit_private.h"
#include "topo/link.h"

/* quote_NAME: what is promised, in the row's unit (NAN: a text), and its text for people. */
#define QUOTED(name, number, ...)                                                                  \
    static void quote_##name(const struct nw_quote *quote, struct nw_audit_row *row)               \
    {                                                                                              \
        row->quoted = (number);                                                                    \
        snprintf(row->quoted_text, sizeof row->quoted_text, __VA_ARGS__);                          \
    }
#define QUOTED_COUNT(name, member)   QUOTED(name, quote->member, "%d", quote->member)
#define QUOTED_YES_NO(name, member)  QUOTED(name, NAN, "%s", quote->member == 1 ? "yes" : "no")
#define QUOTED_TEXT(name, member)    QUOTED(name, NAN, "%.90s", quote->member)
#define QUOTED_VERSION(name, member) QUOTED(name, NAN, "\xE2\x89\xA5 %.31s", quote->member)
#define QUOTED_RATE(name, member)                                                                  \
    QUOTED(name, quote->member, "%.4g GB/s", quote->member / 1e9) /* one way */
#define QUOTED_GIB(name, member) QUOTED(name, quote->member, "%.6g GiB", quote->member / NW_GIB)

static int at_least_one(int count)
{
    return count > 0 ? count : 1;
}

static int pcie_lanes(const struct nw_quote *quote)
{
    return quote->pcie_lanes > 0 ? quote->pcie_lanes : 16;
}

QUOTED_COUNT(nodes, node_count)
QUOTED_TEXT(gpu_model, gpu_model)
QUOTED_COUNT(gpu_count, gpu_count)
QUOTED_GIB(gpu_memory, gpu_memory_bytes)
QUOTED_RATE(memory_rate, memory_bytes_per_s)
QUOTED(compute, quote->bf16_flop_per_s, "%.4g TFLOP/s", quote->bf16_flop_per_s / 1e12)
QUOTED(power, quote->power_w, "%.4g W", quote->power_w)
QUOTED_YES_NO(ecc, has_ecc)
QUOTED_RATE(nvlink, nvlink_one_way_bytes_per_s)
QUOTED_COUNT(nvlink_count, nvlink_count)
QUOTED_YES_NO(nvswitch, has_nvswitch)
QUOTED(pcie, nw_pcie_bytes_per_s(quote->pcie_generation, pcie_lanes(quote)), "Gen%d x%d",
       quote->pcie_generation, pcie_lanes(quote))
QUOTED_YES_NO(peer_access, has_peer_access)
QUOTED_YES_NO(rdma, has_rdma)
QUOTED_TEXT(kind, network_kind)
QUOTED_YES_NO(gpudirect, has_gpudirect)
QUOTED_YES_NO(nic_per_gpu, has_nic_per_gpu)
QUOTED_COUNT(mtu, mtu_bytes)
QUOTED_COUNT(cores, core_count)
QUOTED_COUNT(threads, thread_count)
QUOTED_GIB(ram, ram_bytes)
QUOTED_RATE(disk_read, disk_read_bytes_per_s)
QUOTED_RATE(disk_write, disk_write_bytes_per_s)
QUOTED(disk_iops, quote->disk_read_iops, "%.6g k/s", quote->disk_read_iops / 1e3)
QUOTED_TEXT(os, os)
QUOTED_VERSION(driver, driver)
QUOTED_VERSION(cuda, cuda)
QUOTED_VERSION(nccl, nccl)
QUOTED_VERSION(pytorch, pytorch)
QUOTED_TEXT(scheduler, scheduler)

static void quote_stress(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = quote->stress_ns;
    if (isfinite(quote->stress_ns))
        snprintf(row->quoted_text, sizeof row->quoted_text, "%.4g min", quote->stress_ns / 60e9);
    else
        snprintf(row->quoted_text, sizeof row->quoted_text, "%s",
                 quote->has_stress == 1 ? "yes" : "no");
}

static void quote_nics(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = quote->nic_count;
    if (isfinite(quote->nic_bytes_per_s))
        snprintf(row->quoted_text, sizeof row->quoted_text, "%d \xC3\x97 %.4g Gb/s",
                 quote->nic_count, quote->nic_bytes_per_s * 8 / 1e9);
    else
        snprintf(row->quoted_text, sizeof row->quoted_text, "%d", quote->nic_count);
}

static void quote_network(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = at_least_one(quote->nic_count) * quote->nic_bytes_per_s;
    snprintf(row->quoted_text, sizeof row->quoted_text, "%.4g GB/s", row->quoted / 1e9);
}

static void quote_disks(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = at_least_one(quote->nvme_count);
    if (isfinite(quote->nvme_bytes))
        snprintf(row->quoted_text, sizeof row->quoted_text, "%.0f \xC3\x97 %.4g TB", row->quoted,
                 quote->nvme_bytes / 1e12);
    else
        snprintf(row->quoted_text, sizeof row->quoted_text, "%.0f", row->quoted);
}

static void quote_file_system(const struct nw_quote *quote, struct nw_audit_row *row)
{
    snprintf(row->quoted_text, sizeof row->quoted_text, "%s%s%.70s", quote->file_system,
             quote->file_system_mount[0] != '\0' ? " at " : "", quote->file_system_mount);
}

#define TOPOLOGY "give a topology of the node (--topo)"
#define ON_NODE  "on the node: nodeworth check --save DIR; here: --topo DIR/host1.json"
#define PYTHON   "on the node: nodeworth check --python --save DIR; here: --topo DIR/host1.json"
#define DISK     "on the node: nodeworth check --disk PATH --save DIR; here: --topo DIR/host1.json"

/* A claim is made when one of its keys is quoted. */
const struct nw_claim nw_claims[] = {
    {"Cluster", "nodes", "Nodes", "cluster", "nodes", "", NW_AUDIT_COUNT, quote_nodes,
     nw_judge_nodes, NULL, NULL},

    {"GPUs", "gpu_model", "GPU model", "gpu", "model", "", NW_AUDIT_TEXT, quote_gpu_model,
     nw_judge_gpu_model, NULL, NULL},
    {"GPUs", "gpu_count", "GPUs per node", "gpu", "count", "", NW_AUDIT_COUNT, quote_gpu_count,
     nw_judge_gpu_count, NULL, NULL},
    {"GPUs", "gpu_memory", "GPU memory", "gpu", "memory_GiB", "", NW_AUDIT_BYTES, quote_gpu_memory,
     nw_judge_gpu_memory, NULL, NULL},
    {"GPUs", "ecc", "ECC of GPU memory", "gpu", "ecc", "", NW_AUDIT_TEXT, quote_ecc, NULL,
     nw_opinion_ecc, ON_NODE},
    {"GPUs", "power", "Power limit of a GPU", "gpu", "power_W", "", NW_AUDIT_W, quote_power,
     nw_judge_power, NULL, NULL},
    {"GPUs", "memory_rate", "GPU memory bandwidth", "gpu", "memory_GBps", "", NW_AUDIT_BYTES_PER_S,
     quote_memory_rate, nw_judge_memory_rate, NULL, NULL},
    {"GPUs", "compute", "bf16 of a GPU, dense", "gpu", "bf16_TFLOPS", "", NW_AUDIT_FLOP_PER_S,
     quote_compute, nw_judge_compute, NULL, NULL},
    {"GPUs", "stress", "Full load, no throttling", "gpu", "stress_minutes", "stress", NW_AUDIT_NS,
     quote_stress, nw_judge_stress, NULL, NULL},

    {"GPU links", "nvlink", "NVLink, per GPU, one way", "gpu", "nvlink_GBps", "",
     NW_AUDIT_BYTES_PER_S, quote_nvlink, nw_judge_nvlink, NULL, NULL},
    {"GPU links", "nvlink_count", "NVLinks of a GPU", "gpu", "nvlink_links", "", NW_AUDIT_COUNT,
     quote_nvlink_count, nw_judge_nvlink_count, NULL, NULL},
    {"GPU links", "nvswitch", "NVSwitch", "gpu", "nvswitch", "", NW_AUDIT_TEXT, quote_nvswitch,
     nw_judge_nvswitch, NULL, NULL},
    {"GPU links", "pcie", "PCIe of the GPUs", "gpu", "pcie_gen", "", NW_AUDIT_BYTES_PER_S,
     quote_pcie, nw_judge_pcie, NULL, NULL},
    {"GPU links", "peer_access", "GPUs reach each other", "gpu", "peer_access", "", NW_AUDIT_TEXT,
     quote_peer_access, nw_judge_peer_access, NULL, NULL},

    {"Network", "nics", "NICs per node", "network", "nic_count", "", NW_AUDIT_COUNT, quote_nics,
     NULL, nw_opinion_nics, TOPOLOGY},
    {"Network", "network", "Network, per node, one way", "network", "nic_gbps", "",
     NW_AUDIT_BYTES_PER_S, quote_network, nw_judge_network, NULL, NULL},
    {"Network", "rdma", "RDMA", "network", "rdma", "", NW_AUDIT_TEXT, quote_rdma, NULL,
     nw_opinion_rdma, TOPOLOGY},
    {"Network", "network_kind", "Kind of network", "network", "kind", "", NW_AUDIT_TEXT, quote_kind,
     NULL, nw_opinion_kind, TOPOLOGY},
    {"Network", "gpudirect", "GPUDirect RDMA", "network", "gpudirect", "", NW_AUDIT_TEXT,
     quote_gpudirect, nw_judge_gpudirect, NULL, NULL},
    {"Network", "nic_per_gpu", "A NIC beside every GPU", "network", "nic_per_gpu", "",
     NW_AUDIT_TEXT, quote_nic_per_gpu, NULL, nw_opinion_nic_per_gpu, ON_NODE},
    {"Network", "mtu", "MTU of the NICs", "network", "mtu", "", NW_AUDIT_BYTES, quote_mtu, NULL,
     nw_opinion_mtu, ON_NODE},

    {"CPU and memory", "cores", "CPU cores per node", "cpu", "cores", "", NW_AUDIT_COUNT,
     quote_cores, NULL, nw_opinion_cores, TOPOLOGY},
    {"CPU and memory", "threads", "CPU threads per node", "cpu", "threads", "", NW_AUDIT_COUNT,
     quote_threads, NULL, nw_opinion_threads, TOPOLOGY},
    {"CPU and memory", "ram", "RAM per node", "cpu", "ram_GiB", "", NW_AUDIT_BYTES, quote_ram, NULL,
     nw_opinion_ram, TOPOLOGY},

    {"Storage", "disks", "NVMe disks per node", "disk", "nvme_count", "nvme_TB", NW_AUDIT_COUNT,
     quote_disks, NULL, nw_opinion_disks, TOPOLOGY},
    {"Storage", "disk_read", "Disk, sequential read", "disk", "read_GBps", "", NW_AUDIT_BYTES_PER_S,
     quote_disk_read, NULL, nw_opinion_disk_read, DISK},
    {"Storage", "disk_write", "Disk, sequential write", "disk", "write_GBps", "",
     NW_AUDIT_BYTES_PER_S, quote_disk_write, NULL, nw_opinion_disk_write, DISK},
    {"Storage", "disk_iops", "Disk, random 4 KiB reads", "disk", "read_IOPS", "", NW_AUDIT_PER_S,
     quote_disk_iops, NULL, nw_opinion_disk_iops, DISK},
    {"Storage", "file_system", "Shared file system", "disk", "file_system", "", NW_AUDIT_TEXT,
     quote_file_system, NULL, nw_opinion_file_system, ON_NODE},

    {"Software", "os", "Operating system", "software", "os", "", NW_AUDIT_TEXT, quote_os, NULL,
     nw_opinion_os, ON_NODE},
    {"Software", "driver", "NVIDIA driver", "software", "driver", "", NW_AUDIT_TEXT, quote_driver,
     NULL, nw_opinion_driver, ON_NODE},
    {"Software", "cuda", "CUDA", "software", "cuda", "", NW_AUDIT_TEXT, quote_cuda, NULL,
     nw_opinion_cuda, ON_NODE},
    {"Software", "nccl", "NCCL", "software", "nccl", "", NW_AUDIT_TEXT, quote_nccl, NULL,
     nw_opinion_nccl, ON_NODE},
    {"Software", "pytorch", "PyTorch", "software", "pytorch", "", NW_AUDIT_TEXT, quote_pytorch,
     NULL, nw_opinion_pytorch, PYTHON},
    {"Software", "scheduler", "Scheduler", "software", "scheduler", "", NW_AUDIT_TEXT,
     quote_scheduler, NULL, nw_opinion_scheduler, ON_NODE},
};
const size_t nw_claim_count = sizeof nw_claims / sizeof nw_claims[0];
