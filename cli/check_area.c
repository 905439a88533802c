#include "cli/check_area.h"

#include <string.h>

static const char *const keys[] = {
#define X(area, key, title) key,
    NW_CHECK_AREA_MAP(X)
#undef X
};
static const char *const titles[] = {
#define X(area, key, title) title,
    NW_CHECK_AREA_MAP(X)
#undef X
};

/* Beginnings of codes; the first that fits counts. */
static const struct {
    const char *begin;
    nw_check_area area;
} codes[] = {
    {"xid-nvlink", NW_AREA_NVLINK},
    {"nvlink", NW_AREA_NVLINK},
    {"fabric-manager", NW_AREA_NVLINK},
    {"imex", NW_AREA_NVLINK},
    {"gpudirect", NW_AREA_RDMA},
    {"gpu", NW_AREA_GPU},
    {"xid", NW_AREA_GPU},
    {"ecc", NW_AREA_GPU},
    {"mig", NW_AREA_GPU},
    {"compute", NW_AREA_GPU},
    {"persistence", NW_AREA_GPU},
    {"power", NW_AREA_GPU},
    {"hw-slowdown", NW_AREA_GPU},
    {"memory-remap", NW_AREA_GPU},
    {"memory-worn", NW_AREA_GPU},
    {"no-nvidia", NW_AREA_GPU},
    {"pcie", NW_AREA_PCIE},
    {"acs", NW_AREA_PCIE},
    {"iommu", NW_AREA_PCIE},
    {"product", NW_AREA_GPU},
    {"near-nic", NW_AREA_NETWORK},
    {"reach", NW_AREA_NETWORK},
    {"nic", NW_AREA_NETWORK},
    {"mtu", NW_AREA_NETWORK},
    {"link-", NW_AREA_NETWORK},
    {"bond", NW_AREA_NETWORK},
    {"environment", NW_AREA_SOFTWARE},
    {"rdma", NW_AREA_RDMA},
    {"roce", NW_AREA_RDMA},
    {"gid", NW_AREA_RDMA},
    {"ib-", NW_AREA_RDMA},
    {"port", NW_AREA_RDMA},
    {"memlock", NW_AREA_RDMA},
    {"sm-", NW_AREA_RDMA},
    {"cpu", NW_AREA_CPU},
    {"memory", NW_AREA_CPU},
    {"binding", NW_AREA_CPU},
    {"cores", NW_AREA_CPU},
    {"ranks", NW_AREA_CPU},
    {"numa", NW_AREA_CPU},
    {"shm", NW_AREA_CPU},
    {"huge", NW_AREA_CPU},
    {"governor", NW_AREA_CPU},
    {"clock", NW_AREA_CPU},
    {"disk", NW_AREA_STORAGE},
    {"data", NW_AREA_STORAGE},
    {"storage", NW_AREA_STORAGE},
    {"file-", NW_CHECK_AREA_COUNT}, /* of a file that was given, not of a part of the machine */
    {"file", NW_AREA_STORAGE},
    {"nfs", NW_AREA_STORAGE},
    {"nvme", NW_AREA_STORAGE},
    {"pytorch", NW_AREA_SOFTWARE},
    {"driver", NW_AREA_SOFTWARE},
    {"cuda", NW_AREA_SOFTWARE},
    {"nccl", NW_AREA_SOFTWARE},
    {"mpi", NW_AREA_SOFTWARE},
    {"ofed", NW_AREA_SOFTWARE},
    {"kernel", NW_AREA_SOFTWARE},
    {"open-files", NW_AREA_SOFTWARE},
    {"container", NW_AREA_SOFTWARE},
    {"program", NW_AREA_SOFTWARE},
    {"scheduler", NW_AREA_SCHEDULER},
    {"slurm", NW_AREA_SCHEDULER},
    {"kubernetes", NW_AREA_SCHEDULER},
};

/* Of findings whose code is the same for several parts (hosts-differ, siblings-differ, …): words of
 * the text, most special first. */
static const struct {
    const char *word;
    nw_check_area area;
} words[] = {
    {"NVLink", NW_AREA_NVLINK},
    {"NVSwitch", NW_AREA_NVLINK},
    {"fabric manager", NW_AREA_NVLINK},
    {"PCIe", NW_AREA_PCIE},
    {"IOMMU", NW_AREA_PCIE},
    {"nvidia_peermem", NW_AREA_RDMA},
    {"dma-buf", NW_AREA_RDMA},
    {"GDRCopy", NW_AREA_RDMA},
    {"RDMA", NW_AREA_RDMA},
    {"GID", NW_AREA_RDMA},
    {"firmware", NW_AREA_RDMA},
    {"mlx", NW_AREA_RDMA},
    {"MTU", NW_AREA_NETWORK},
    {"driver", NW_AREA_SOFTWARE},
    {"CUDA", NW_AREA_SOFTWARE},
    {"NCCL", NW_AREA_SOFTWARE},
    {"MPI", NW_AREA_SOFTWARE},
    {"PyTorch", NW_AREA_SOFTWARE},
    {"kernel", NW_AREA_SOFTWARE},
    {"scheduler", NW_AREA_SCHEDULER},
    {"file system", NW_AREA_STORAGE},
    {"disk", NW_AREA_STORAGE},
    {"NIC", NW_AREA_NETWORK},
    {"interface", NW_AREA_NETWORK},
    {"GPU", NW_AREA_GPU},
    {"VBIOS", NW_AREA_GPU},
    {"power", NW_AREA_GPU},
    {"ECC", NW_AREA_GPU},
    {"core", NW_AREA_CPU},
    {"memory", NW_AREA_CPU},
    {"huge pages", NW_AREA_CPU},
    {"clock", NW_AREA_CPU},
    {"/dev/shm", NW_AREA_CPU},
    {"NUMA", NW_AREA_CPU},
    {"open files", NW_AREA_SOFTWARE},
    {"hypervisor", NW_AREA_SOFTWARE},
    {"container", NW_AREA_SOFTWARE},
};

const char *nw_check_area_key(nw_check_area area)
{
    return keys[area];
}

const char *nw_check_area_title(nw_check_area area)
{
    return titles[area];
}

nw_check_area nw_check_area_of(const struct nw_finding *finding)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strncmp(finding->code, codes[i].begin, strlen(codes[i].begin)) == 0)
            return codes[i].area;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(finding->text, words[i].word) != NULL)
            return words[i].area;
    return NW_CHECK_AREA_COUNT;
}
