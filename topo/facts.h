/* Public. Facts: what was read of a machine or one of its devices beyond the tree. One row per fact
 * in NW_FACT_MAP: everybody who reads, merges, saves, hides, compares or judges facts goes over
 * this table, so a new fact is one row here and one line in the reader that knows it.
 *
 * A fact belongs to a node of the topology (0: the machine) and has a text or a number, and the
 * name of the source that said so ("nvml", "sysfs", "nvidia-smi -q", a file). What no source said
 * is not there: nw_topo_number is NAN, nw_topo_text NULL. Never write "N/A", 0 or "" for unknown.
 *
 *     NW_TRY(nw_topo_set_number(topo, gpu, NW_FACT_POWER_LIMIT, 700, "nvml"));
 *     if (nw_topo_number(topo, gpu, NW_FACT_POWER_LIMIT) < 700) …      // NAN: false
 */
#ifndef NW_TOPO_FACTS_H
#define NW_TOPO_FACTS_H

#include <stdbool.h>

#include "base/err.h"

struct nw_topo;

typedef enum {
    NW_FACT_TEXT,
    NW_FACT_NUMBER, /* in the unit of its key */
    NW_FACT_YES_NO, /* number 1 or 0 */
} nw_fact_type;

enum { /* flags of a fact */
       NW_FACT_OF_MACHINE = 1,
       NW_FACT_OF_GPU = 2,
       NW_FACT_OF_NIC = 4,
       NW_FACT_OF_PORT = 8,
       NW_FACT_OF_PCI = 16,            /* every PCI device and bridge */
       NW_FACT_EQUAL_ON_HOSTS = 32,    /* differing machines of one cluster are a finding */
       NW_FACT_EQUAL_ON_SIBLINGS = 64, /* so are differing GPUs (NICs) of one model */
       NW_FACT_PASSING = 128, /* changes from moment to moment: two readings are no conflict */
       NW_FACT_SECRET = 256,  /* replaced consistently when a topology is made anonymous */
};

/* X(enumerator, key in JSON with its unit, type, flags, title for people) */
#define NW_FACT_MAP(X)                                                                             \
    /* the machine: drivers and libraries */                                                       \
    X(NW_FACT_DRIVER, "driver_version", NW_FACT_TEXT, NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, \
      "NVIDIA driver")                                                                             \
    X(NW_FACT_DRIVER_KIND, "driver_kind", NW_FACT_TEXT,                                            \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "NVIDIA kernel module: open, proprietary")      \
    X(NW_FACT_CUDA, "cuda_version", NW_FACT_TEXT, NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS,     \
      "CUDA of the driver")                                                                        \
    X(NW_FACT_NCCL, "nccl_version", NW_FACT_TEXT, NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS,     \
      "NCCL")                                                                                      \
    X(NW_FACT_MPI, "mpi_version", NW_FACT_TEXT, NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS,       \
      "MPI")                                                                                       \
    X(NW_FACT_OFED, "ofed_version", NW_FACT_TEXT, NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS,     \
      "RDMA stack")                                                                                \
    X(NW_FACT_PYTORCH, "pytorch_version", NW_FACT_TEXT,                                            \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "PyTorch")                                      \
    X(NW_FACT_PYTORCH_CUDA, "pytorch_cuda_version", NW_FACT_TEXT,                                  \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "PyTorch's CUDA")                               \
    X(NW_FACT_PYTORCH_NCCL, "pytorch_nccl_version", NW_FACT_TEXT,                                  \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "PyTorch's NCCL")                               \
    X(NW_FACT_PYTORCH_GPUS, "pytorch_gpu_count", NW_FACT_NUMBER,                                   \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "GPUs that PyTorch sees")                       \
    X(NW_FACT_GPUS_ATTACHED, "gpu_attached_count", NW_FACT_NUMBER,                                 \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "GPUs attached, as the driver counts")          \
    X(NW_FACT_KERNEL, "kernel_version", NW_FACT_TEXT, NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, \
      "kernel")                                                                                    \
    X(NW_FACT_SIMULATED, "simulated", NW_FACT_YES_NO, NW_FACT_OF_MACHINE,                          \
      "a pretended machine: the driver is a double")                                               \
    /* the machine: GPUDirect and what stands in its way */                                        \
    X(NW_FACT_PEERMEM, "nvidia_peermem", NW_FACT_YES_NO,                                           \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "nvidia_peermem loaded")                        \
    X(NW_FACT_DMABUF, "dma_buf", NW_FACT_YES_NO, NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS,      \
      "dma-buf possible (open kernel module)")                                                     \
    X(NW_FACT_GDRCOPY, "gdrdrv", NW_FACT_YES_NO, NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS,      \
      "GDRCopy module loaded")                                                                     \
    X(NW_FACT_FABRIC_MANAGER, "fabric_manager", NW_FACT_TEXT,                                      \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "fabric manager: running, stopped, absent")     \
    X(NW_FACT_IMEX, "imex", NW_FACT_TEXT, NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS,             \
      "IMEX service of NVLink between nodes: running, stopped")                                    \
    X(NW_FACT_IOMMU, "iommu", NW_FACT_TEXT, NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS,           \
      "IOMMU: off, passthrough, translated")                                                       \
    X(NW_FACT_VIRTUAL, "virtual_machine", NW_FACT_TEXT,                                            \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "hypervisor")                                   \
    X(NW_FACT_CONTAINER, "container", NW_FACT_TEXT, NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS,   \
      "container")                                                                                 \
    /* the machine: limits and services */                                                         \
    X(NW_FACT_MEMLOCK, "memlock_bytes", NW_FACT_NUMBER,                                            \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "memory that may be locked (2^64-1: no limit)") \
    X(NW_FACT_MEMLOCK_EXEMPT, "memlock_exempt", NW_FACT_YES_NO, NW_FACT_OF_MACHINE,                \
      "the process may lock memory beyond the limit (CAP_IPC_LOCK)")                               \
    X(NW_FACT_SHM, "dev_shm_bytes", NW_FACT_NUMBER, NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS,   \
      "/dev/shm")                                                                                  \
    X(NW_FACT_SHM_FREE, "dev_shm_free_bytes", NW_FACT_NUMBER,                                      \
      NW_FACT_OF_MACHINE | NW_FACT_PASSING, "/dev/shm, free")                                      \
    X(NW_FACT_HUGEPAGES, "hugepage_count", NW_FACT_NUMBER,                                         \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "huge pages reserved")                          \
    X(NW_FACT_HUGEPAGE_SIZE, "hugepage_bytes", NW_FACT_NUMBER,                                     \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "size of a huge page")                          \
    X(NW_FACT_THP, "transparent_hugepages", NW_FACT_TEXT,                                          \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "transparent huge pages")                       \
    X(NW_FACT_NUMA_BALANCING, "numa_balancing", NW_FACT_YES_NO,                                    \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "automatic NUMA balancing")                     \
    X(NW_FACT_CPU_GOVERNOR, "cpu_governor", NW_FACT_TEXT,                                          \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "CPU frequency governor")                       \
    X(NW_FACT_OPEN_FILES, "open_files_limit", NW_FACT_NUMBER,                                      \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "open files allowed")                           \
    X(NW_FACT_CLOCK_SYNC, "clock_synchronised", NW_FACT_YES_NO,                                    \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "clock synchronised")                           \
    X(NW_FACT_CLOCK_ERROR, "clock_error_s", NW_FACT_NUMBER, NW_FACT_OF_MACHINE | NW_FACT_PASSING,  \
      "estimated error of the clock")                                                              \
    X(NW_FACT_SCHEDULER, "scheduler", NW_FACT_TEXT, NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS,   \
      "scheduler: slurm, kubernetes, ray …")                                                       \
    X(NW_FACT_PARALLEL_FS, "shared_file_systems", NW_FACT_TEXT,                                    \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "shared file systems mounted: type and place")  \
    /* the machine: the data path (--disk) */                                                      \
    X(NW_FACT_DATA_PATH, "data_path", NW_FACT_TEXT, NW_FACT_OF_MACHINE, "data path")               \
    X(NW_FACT_DATA_FS, "data_file_system", NW_FACT_TEXT,                                           \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS, "file system of the data path")                 \
    X(NW_FACT_DATA_SOURCE, "data_source", NW_FACT_TEXT, NW_FACT_OF_MACHINE | NW_FACT_SECRET,       \
      "what the data path is mounted from")                                                        \
    X(NW_FACT_DATA_MEDIUM, "data_medium", NW_FACT_TEXT,                                            \
      NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS,                                                 \
      "medium of the data path: NVMe SSD, SSD, hard disk, shared, memory …")                       \
    X(NW_FACT_DATA_FREE, "data_free_bytes", NW_FACT_NUMBER, NW_FACT_OF_MACHINE | NW_FACT_PASSING,  \
      "free space of the data path")                                                               \
    X(NW_FACT_DATA_DEVICE, "data_device", NW_FACT_TEXT, NW_FACT_OF_MACHINE,                        \
      "device of the data path")                                                                   \
    X(NW_FACT_DATA_READ, "data_read_bytes_per_s", NW_FACT_NUMBER,                                  \
      NW_FACT_OF_MACHINE | NW_FACT_PASSING, "sequential read of the data path")                    \
    X(NW_FACT_DATA_WRITE, "data_write_bytes_per_s", NW_FACT_NUMBER,                                \
      NW_FACT_OF_MACHINE | NW_FACT_PASSING, "sequential write of the data path")                   \
    X(NW_FACT_DATA_READ_IOPS, "data_read_iops", NW_FACT_NUMBER,                                    \
      NW_FACT_OF_MACHINE | NW_FACT_PASSING, "random 4 KiB reads a second")                         \
    X(NW_FACT_DATA_WRITE_IOPS, "data_write_iops", NW_FACT_NUMBER,                                  \
      NW_FACT_OF_MACHINE | NW_FACT_PASSING, "random 4 KiB writes a second")                        \
    X(NW_FACT_DATA_HOW, "data_measured_how", NW_FACT_TEXT, NW_FACT_OF_MACHINE,                     \
      "how the data path was measured")                                                            \
    /* the machine: the kernel's log */                                                            \
    X(NW_FACT_XID, "xid_errors", NW_FACT_TEXT, NW_FACT_OF_MACHINE | NW_FACT_OF_GPU,                \
      "Xid errors since boot: \"79 x2, 63\"")                                                      \
    X(NW_FACT_AER, "pcie_error_count", NW_FACT_NUMBER,                                             \
      NW_FACT_OF_MACHINE | NW_FACT_OF_PCI | NW_FACT_PASSING, "PCIe errors in the kernel's log")    \
    X(NW_FACT_FLAPS, "link_down_count", NW_FACT_NUMBER,                                            \
      NW_FACT_OF_MACHINE | NW_FACT_OF_NIC | NW_FACT_OF_PORT | NW_FACT_PASSING,                     \
      "times the link went down")                                                                  \
    /* every PCI device */                                                                         \
    X(NW_FACT_LINK_GENERATION, "pcie_generation", NW_FACT_NUMBER,                                  \
      NW_FACT_OF_PCI | NW_FACT_PASSING, "PCIe generation now")                                     \
    X(NW_FACT_LINK_MAX_GENERATION, "pcie_max_generation", NW_FACT_NUMBER,                          \
      NW_FACT_OF_PCI | NW_FACT_EQUAL_ON_SIBLINGS, "PCIe generation of device and slot at best")    \
    X(NW_FACT_DEVICE_MAX_GENERATION, "pcie_device_max_generation", NW_FACT_NUMBER, NW_FACT_OF_PCI, \
      "PCIe generation that the device itself can do")                                             \
    X(NW_FACT_LINK_LOADED, "pcie_generation_under_load", NW_FACT_NUMBER,                           \
      NW_FACT_OF_PCI | NW_FACT_EQUAL_ON_SIBLINGS, "PCIe generation while copying")                 \
    X(NW_FACT_ACS, "acs_control", NW_FACT_NUMBER, NW_FACT_OF_PCI,                                  \
      "ACS control register of a bridge")                                                          \
    X(NW_FACT_LIMITED_BY, "pcie_limited_by", NW_FACT_TEXT, NW_FACT_OF_PCI,                         \
      "the link that limits it, as the kernel says")                                               \
    X(NW_FACT_PATH_RATE, "pcie_path_max_bytes_per_s", NW_FACT_NUMBER, NW_FACT_OF_PCI,              \
      "slowest link up to the root port at its best, one way")                                     \
    X(NW_FACT_VF, "virtual_function", NW_FACT_YES_NO, NW_FACT_OF_PCI, "SR-IOV virtual function")   \
    X(NW_FACT_IOMMU_DOMAIN, "iommu_domain", NW_FACT_TEXT, NW_FACT_OF_PCI,                          \
      "IOMMU of the device: identity, DMA, DMA-FQ")                                                \
    X(NW_FACT_REPLAYS, "pcie_replay_count", NW_FACT_NUMBER, NW_FACT_OF_PCI | NW_FACT_PASSING,      \
      "PCIe replays")                                                                              \
    X(NW_FACT_PCI_DRIVER, "kernel_driver", NW_FACT_TEXT, NW_FACT_OF_PCI, "kernel driver")          \
    X(NW_FACT_IOMMU_GROUP, "iommu_group", NW_FACT_NUMBER, NW_FACT_OF_PCI, "IOMMU group")           \
    X(NW_FACT_LIMITED_TO, "pcie_limited_bytes_per_s", NW_FACT_NUMBER, NW_FACT_OF_PCI,              \
      "what the PCIe path carries, one way, as the kernel says")                                   \
    X(NW_FACT_CAPABLE, "pcie_capable_bytes_per_s", NW_FACT_NUMBER, NW_FACT_OF_PCI,                 \
      "what the device's PCIe side could carry, as the kernel says")                               \
    X(NW_FACT_AER_UNCORRECTED, "pcie_uncorrected_error_count", NW_FACT_NUMBER,                     \
      NW_FACT_OF_MACHINE | NW_FACT_OF_PCI | NW_FACT_PASSING,                                       \
      "PCIe errors in the kernel's log that were not corrected")                                   \
    /* a GPU */                                                                                    \
    X(NW_FACT_UUID, "uuid", NW_FACT_TEXT, NW_FACT_OF_GPU | NW_FACT_SECRET, "UUID")                 \
    X(NW_FACT_SERIAL, "serial", NW_FACT_TEXT, NW_FACT_OF_GPU | NW_FACT_OF_NIC | NW_FACT_SECRET,    \
      "serial number")                                                                             \
    X(NW_FACT_VBIOS, "vbios_version", NW_FACT_TEXT,                                                \
      NW_FACT_OF_GPU | NW_FACT_EQUAL_ON_SIBLINGS | NW_FACT_EQUAL_ON_HOSTS, "VBIOS")                \
    X(NW_FACT_POWER_LIMIT, "power_limit_w", NW_FACT_NUMBER,                                        \
      NW_FACT_OF_GPU | NW_FACT_EQUAL_ON_SIBLINGS | NW_FACT_EQUAL_ON_HOSTS, "power limit in force") \
    X(NW_FACT_POWER_DEFAULT, "power_default_limit_w", NW_FACT_NUMBER,                              \
      NW_FACT_OF_GPU | NW_FACT_EQUAL_ON_SIBLINGS | NW_FACT_EQUAL_ON_HOSTS,                         \
      "power limit of the product")                                                                \
    X(NW_FACT_POWER, "power_w", NW_FACT_NUMBER, NW_FACT_OF_GPU | NW_FACT_PASSING, "power")         \
    X(NW_FACT_TEMPERATURE, "temperature_c", NW_FACT_NUMBER, NW_FACT_OF_GPU | NW_FACT_PASSING,      \
      "temperature")                                                                               \
    X(NW_FACT_THROTTLE, "throttle", NW_FACT_NUMBER, NW_FACT_OF_GPU | NW_FACT_PASSING,              \
      "reasons of lower clocks (bits of NW_THROTTLE_MAP)")                                         \
    X(NW_FACT_SM_CLOCK, "sm_clock_hz", NW_FACT_NUMBER, NW_FACT_OF_GPU | NW_FACT_PASSING,           \
      "SM clock")                                                                                  \
    X(NW_FACT_SM_CLOCK_MAX, "sm_max_clock_hz", NW_FACT_NUMBER,                                     \
      NW_FACT_OF_GPU | NW_FACT_EQUAL_ON_SIBLINGS, "SM clock at most")                              \
    X(NW_FACT_MEMORY_CLOCK_MAX, "memory_max_clock_hz", NW_FACT_NUMBER,                             \
      NW_FACT_OF_GPU | NW_FACT_EQUAL_ON_SIBLINGS, "memory clock at most")                          \
    X(NW_FACT_ECC, "ecc_enabled", NW_FACT_YES_NO,                                                  \
      NW_FACT_OF_GPU | NW_FACT_EQUAL_ON_SIBLINGS | NW_FACT_EQUAL_ON_HOSTS, "ECC")                  \
    X(NW_FACT_ECC_CORRECTED, "ecc_corrected_count", NW_FACT_NUMBER,                                \
      NW_FACT_OF_GPU | NW_FACT_PASSING, "memory errors corrected")                                 \
    X(NW_FACT_ECC_UNCORRECTED, "ecc_uncorrected_count", NW_FACT_NUMBER,                            \
      NW_FACT_OF_GPU | NW_FACT_PASSING, "memory errors not corrected")                             \
    X(NW_FACT_ECC_CORRECTED_EVER, "ecc_corrected_lifetime_count", NW_FACT_NUMBER,                  \
      NW_FACT_OF_GPU | NW_FACT_PASSING, "memory errors corrected in the GPU's lifetime")           \
    X(NW_FACT_ECC_UNCORRECTED_EVER, "ecc_uncorrected_lifetime_count", NW_FACT_NUMBER,              \
      NW_FACT_OF_GPU | NW_FACT_PASSING, "memory errors not corrected in the GPU's lifetime")       \
    X(NW_FACT_REMAP_PENDING, "row_remap_pending", NW_FACT_YES_NO, NW_FACT_OF_GPU,                  \
      "memory rows wait for a reset to be remapped")                                               \
    X(NW_FACT_REMAP_FAILED, "row_remap_failed", NW_FACT_YES_NO, NW_FACT_OF_GPU,                    \
      "memory rows could not be remapped")                                                         \
    X(NW_FACT_RETIRED_PAGES, "retired_page_count", NW_FACT_NUMBER, NW_FACT_OF_GPU,                 \
      "memory pages retired or rows remapped for errors")                                          \
    X(NW_FACT_RETIRED_UNCORRECTED, "retired_uncorrected_count", NW_FACT_NUMBER, NW_FACT_OF_GPU,    \
      "of them for errors that could not be corrected")                                            \
    X(NW_FACT_RECOVERY, "recovery_action", NW_FACT_TEXT, NW_FACT_OF_GPU,                           \
      "what the driver asks for: none, reset, reboot")                                             \
    X(NW_FACT_FABRIC_STATE, "fabric_state", NW_FACT_TEXT, NW_FACT_OF_GPU,                          \
      "NVLink fabric registration: completed, in progress")                                        \
    X(NW_FACT_FABRIC_STATUS, "fabric_status", NW_FACT_TEXT, NW_FACT_OF_GPU,                        \
      "NVLink fabric status: success, or the error")                                               \
    X(NW_FACT_GPU_VIRTUAL, "gpu_virtualization", NW_FACT_TEXT, NW_FACT_OF_GPU,                     \
      "how a virtual machine has the GPU: none, pass-through, vgpu")                               \
    X(NW_FACT_PEERS, "peer_gpu_count", NW_FACT_NUMBER, NW_FACT_OF_GPU | NW_FACT_EQUAL_ON_SIBLINGS, \
      "GPUs that it can reach directly (P2P)")                                                     \
    X(NW_FACT_PERSISTENCE, "persistence_mode", NW_FACT_YES_NO,                                     \
      NW_FACT_OF_GPU | NW_FACT_EQUAL_ON_HOSTS, "persistence mode")                                 \
    X(NW_FACT_MIG, "mig_enabled", NW_FACT_YES_NO, NW_FACT_OF_GPU | NW_FACT_EQUAL_ON_SIBLINGS,      \
      "MIG")                                                                                       \
    X(NW_FACT_COMPUTE_MODE, "compute_mode", NW_FACT_TEXT,                                          \
      NW_FACT_OF_GPU | NW_FACT_EQUAL_ON_SIBLINGS, "compute mode")                                  \
    X(NW_FACT_CAPABILITY, "compute_capability", NW_FACT_NUMBER, NW_FACT_OF_GPU,                    \
      "compute capability, 90 for 9.0")                                                            \
    X(NW_FACT_BAR1, "bar1_bytes", NW_FACT_NUMBER, NW_FACT_OF_GPU | NW_FACT_EQUAL_ON_SIBLINGS,      \
      "BAR1")                                                                                      \
    X(NW_FACT_MEMORY_USED, "memory_used_bytes", NW_FACT_NUMBER, NW_FACT_OF_GPU | NW_FACT_PASSING,  \
      "memory in use")                                                                             \
    X(NW_FACT_GPU_INDEX, "gpu_index", NW_FACT_NUMBER, NW_FACT_OF_GPU,                              \
      "number that nvidia-smi gives it")                                                           \
    X(NW_FACT_NVLINK_COUNT, "nvlink_active_count", NW_FACT_NUMBER,                                 \
      NW_FACT_OF_GPU | NW_FACT_EQUAL_ON_SIBLINGS | NW_FACT_EQUAL_ON_HOSTS, "NVLinks active")       \
    X(NW_FACT_NVLINK_INACTIVE, "nvlink_inactive", NW_FACT_TEXT, NW_FACT_OF_GPU,                    \
      "NVLinks that are down: \"3, 5\"")                                                           \
    X(NW_FACT_NVLINK_INACTIVE_COUNT, "nvlink_inactive_count", NW_FACT_NUMBER, NW_FACT_OF_GPU,      \
      "NVLinks that are down")                                                                     \
    X(NW_FACT_NVLINK_RATE, "nvlink_bytes_per_s", NW_FACT_NUMBER,                                   \
      NW_FACT_OF_GPU | NW_FACT_EQUAL_ON_SIBLINGS, "rate of one NVLink, one way")                   \
    X(NW_FACT_NVLINK_SWITCH, "nvlink_to_switch", NW_FACT_YES_NO, NW_FACT_OF_GPU,                   \
      "its NVLinks go to switches")                                                                \
    X(NW_FACT_NVLINK_ERRORS, "nvlink_error_count", NW_FACT_NUMBER,                                 \
      NW_FACT_OF_GPU | NW_FACT_PASSING, "NVLink replays, recoveries and CRC errors")               \
    X(NW_FACT_CPU_AFFINITY, "cpu_affinity", NW_FACT_TEXT, NW_FACT_OF_GPU,                          \
      "CPUs near, as nvidia-smi says")                                                             \
    X(NW_FACT_GPU_NUMA_ID, "gpu_memory_numa_node", NW_FACT_NUMBER, NW_FACT_OF_GPU,                 \
      "NUMA node that is the GPU's own memory")                                                    \
    X(NW_FACT_QUERY_TIME, "driver_answer_s", NW_FACT_NUMBER, NW_FACT_OF_GPU | NW_FACT_PASSING,     \
      "time the driver took to answer")                                                            \
    /* NCCL's view */                                                                              \
    X(NW_FACT_CPU, "cpu_model", NW_FACT_TEXT, NW_FACT_OF_MACHINE | NW_FACT_EQUAL_ON_HOSTS,         \
      "CPU, as its family and model")                                                              \
    X(NW_FACT_HOST_HASH, "host_hash", NW_FACT_TEXT, NW_FACT_OF_MACHINE | NW_FACT_SECRET,           \
      "host of a NUMA node, where one NVLink domain spans several")                                \
    X(NW_FACT_GDR, "gpudirect_rdma", NW_FACT_YES_NO,                                               \
      NW_FACT_OF_GPU | NW_FACT_OF_NIC | NW_FACT_EQUAL_ON_HOSTS, "GPUDirect RDMA, as NCCL saw it")  \
    X(NW_FACT_CARD, "card_id", NW_FACT_TEXT, NW_FACT_OF_NIC | NW_FACT_SECRET,                      \
      "card, as NCCL identifies it (its system GUID, bytes in memory order)")                      \
    X(NW_FACT_CARD_PORT, "card_port", NW_FACT_NUMBER, NW_FACT_OF_NIC,                              \
      "port of the card, as NCCL counts them")                                                     \
    /* NICs and their ports */                                                                     \
    X(NW_FACT_FIRMWARE, "firmware_version", NW_FACT_TEXT,                                          \
      NW_FACT_OF_NIC | NW_FACT_EQUAL_ON_SIBLINGS | NW_FACT_EQUAL_ON_HOSTS, "firmware")             \
    X(NW_FACT_BOARD, "board_id", NW_FACT_TEXT, NW_FACT_OF_NIC, "board")                            \
    X(NW_FACT_NODE_GUID, "node_guid", NW_FACT_TEXT, NW_FACT_OF_NIC | NW_FACT_SECRET, "node GUID")  \
    X(NW_FACT_SYSTEM_GUID, "system_guid", NW_FACT_TEXT, NW_FACT_OF_NIC | NW_FACT_SECRET,           \
      "system image GUID: equal on the functions of one card")                                     \
    X(NW_FACT_PORT_GUID, "port_guid", NW_FACT_TEXT, NW_FACT_OF_PORT | NW_FACT_SECRET, "port GUID") \
    X(NW_FACT_STATE, "state", NW_FACT_TEXT, NW_FACT_OF_NIC | NW_FACT_OF_PORT,                      \
      "port state: active, init, down")                                                            \
    X(NW_FACT_PHYSICAL_STATE, "physical_state", NW_FACT_TEXT, NW_FACT_OF_PORT,                     \
      "physical state: link up, polling, disabled")                                                \
    X(NW_FACT_LINK_LAYER, "link_layer", NW_FACT_TEXT, NW_FACT_OF_PORT,                             \
      "link layer: infiniband, ethernet")                                                          \
    X(NW_FACT_WIDTH, "width", NW_FACT_NUMBER, NW_FACT_OF_PORT, "lanes of the port: 4 of 4X")       \
    X(NW_FACT_LANE_RATE, "lane_bits_per_s", NW_FACT_NUMBER, NW_FACT_OF_PORT,                       \
      "signalling rate of one lane")                                                               \
    X(NW_FACT_MTU, "mtu_bytes", NW_FACT_NUMBER,                                                    \
      NW_FACT_OF_PORT | NW_FACT_OF_NIC | NW_FACT_EQUAL_ON_SIBLINGS | NW_FACT_EQUAL_ON_HOSTS,       \
      "MTU in force")                                                                              \
    X(NW_FACT_MTU_MAX, "max_mtu_bytes", NW_FACT_NUMBER, NW_FACT_OF_PORT, "MTU at most")            \
    X(NW_FACT_LID, "lid", NW_FACT_NUMBER, NW_FACT_OF_PORT, "LID")                                  \
    X(NW_FACT_NETDEV, "interface", NW_FACT_TEXT, NW_FACT_OF_PORT | NW_FACT_OF_NIC,                 \
      "network interface")                                                                         \
    X(NW_FACT_MAC, "mac_address", NW_FACT_TEXT, NW_FACT_OF_NIC | NW_FACT_SECRET, "MAC address")    \
    X(NW_FACT_IP, "ip_addresses", NW_FACT_TEXT, NW_FACT_OF_NIC | NW_FACT_OF_PORT | NW_FACT_SECRET, \
      "IP addresses with prefix length")                                                           \
    X(NW_FACT_PEER, "peer", NW_FACT_TEXT, NW_FACT_OF_PORT, "what is at the cable's other end")     \
    X(NW_FACT_SEQUENCE_ERRORS, "sequence_error_count", NW_FACT_NUMBER,                             \
      NW_FACT_OF_PORT | NW_FACT_PASSING, "packets out of sequence (RDMA)")                         \
    X(NW_FACT_ACK_TIMEOUTS, "ack_timeout_count", NW_FACT_NUMBER,                                   \
      NW_FACT_OF_PORT | NW_FACT_PASSING, "acknowledgements that came not in time (RDMA)")          \
    X(NW_FACT_DISCARDS, "receive_discard_count", NW_FACT_NUMBER,                                   \
      NW_FACT_OF_PORT | NW_FACT_OF_NIC | NW_FACT_PASSING, "packets discarded on receipt")          \
    X(NW_FACT_SYMBOL_ERRORS, "symbol_error_count", NW_FACT_NUMBER,                                 \
      NW_FACT_OF_PORT | NW_FACT_PASSING, "symbol errors")

typedef enum {
#define X(fact, key, type, flags, title) fact,
    NW_FACT_MAP(X)
#undef X
        NW_FACT_COUNT
} nw_fact_id;

struct nw_fact_row {
    const char *key;
    nw_fact_type type;
    unsigned flags;
    const char *title;
};
extern const struct nw_fact_row nw_fact_rows[NW_FACT_COUNT];

struct nw_fact {
    int node;
    int next; /* 1 + index of the node's next fact; 0: none */
    nw_fact_id id;
    double number;   /* NAN: a text */
    char text[192];  /* "": a number */
    char source[48]; /* "nvml", "sysfs", "nvidia-smi -q" */
};

/* Can the fact be this number on some machine? Numbers that others use as int, PCIe generations and
 * numbers of links, are 65535 at most. */
bool nw_fact_is_possible(nw_fact_id id, double number);
/* Set or replace. Texts are squeezed and cut to fit; an empty text and a number that is not
 * possible set nothing. */
nw_rc nw_topo_set_number(struct nw_topo *topo, int node, nw_fact_id id, double number,
                         const char *source);
nw_rc nw_topo_set_text(struct nw_topo *topo, int node, nw_fact_id id, const char *text,
                       const char *source);
const struct nw_fact *nw_topo_fact(const struct nw_topo *topo, int node, nw_fact_id id); /* NULL */
double nw_topo_number(const struct nw_topo *topo, int node, nw_fact_id id);    /* NAN: unknown */
const char *nw_topo_text(const struct nw_topo *topo, int node, nw_fact_id id); /* NULL: unknown */
/* "700 W", "yes", "26.6 GB/s": the value with its unit, by the key's ending. */
const char *nw_fact_value_text(const struct nw_fact *fact, char text[224]);
/* The row of a key of the JSON; -1: none. */
int nw_fact_find(const char *key);

#endif
