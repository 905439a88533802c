/* Compute comes in sevenths, memory and its bandwidth in eighths (NVIDIA Multi-Instance GPU User
 * Guide, "Supported MIG Profiles": docs.nvidia.com/datacenter/tesla/mig-user-guide). Instances have
 * no peer access to each other (same guide, "Application considerations"). */
#include "model/slice.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"

struct slice {
    const char *family; /* first word of the catalogue's name */
    int card_gib;       /* memory of the whole card */
    const char *name;
    int compute_parts, memory_parts; /* of 7, of 8 */
    double memory_gib;
};

/* The names round: memory is what nvidia-smi shows of an instance, recalled from the guide's tables
 * and never read off a machine: whoever shows such a server says so. */
static const struct slice slices[] = {
    {"A100", 40, "1g.5gb", 1, 1, 4.75},   {"A100", 40, "1g.10gb", 1, 2, 9.75},
    {"A100", 40, "2g.10gb", 2, 2, 9.75},  {"A100", 40, "3g.20gb", 3, 4, 19.5},
    {"A100", 40, "4g.20gb", 4, 4, 19.5},  {"A100", 40, "7g.40gb", 7, 8, 39.25},
    {"A100", 80, "1g.10gb", 1, 1, 9.5},   {"A100", 80, "1g.20gb", 1, 2, 19.5},
    {"A100", 80, "2g.20gb", 2, 2, 19.5},  {"A100", 80, "3g.40gb", 3, 4, 39.25},
    {"A100", 80, "4g.40gb", 4, 4, 39.25}, {"A100", 80, "7g.80gb", 7, 8, 78.75},
    {"H100", 80, "1g.10gb", 1, 1, 9.75},  {"H100", 80, "1g.20gb", 1, 2, 19.5},
    {"H100", 80, "2g.20gb", 2, 2, 19.5},  {"H100", 80, "3g.40gb", 3, 4, 39.5},
    {"H100", 80, "4g.40gb", 4, 4, 39.5},  {"H100", 80, "7g.80gb", 7, 8, 79},
    {"H100", 94, "1g.12gb", 1, 1, 11},    {"H100", 94, "1g.24gb", 1, 2, 22},
    {"H100", 94, "2g.24gb", 2, 2, 22},    {"H100", 94, "3g.47gb", 3, 4, 46},
    {"H100", 94, "4g.47gb", 4, 4, 46},    {"H100", 94, "7g.94gb", 7, 8, 93},
    {"H200", 141, "1g.18gb", 1, 1, 16.5}, {"H200", 141, "1g.35gb", 1, 2, 33},
    {"H200", 141, "2g.35gb", 2, 2, 33},   {"H200", 141, "3g.71gb", 3, 4, 69.5},
    {"H200", 141, "4g.71gb", 4, 4, 69.5}, {"H200", 141, "7g.141gb", 7, 8, 139.5},
    {"B200", 180, "1g.23gb", 1, 1, 21.5}, {"B200", 180, "1g.45gb", 1, 2, 44},
    {"B200", 180, "2g.45gb", 2, 2, 44},   {"B200", 180, "3g.90gb", 3, 4, 88.5},
    {"B200", 180, "4g.90gb", 4, 4, 88.5}, {"B200", 180, "7g.180gb", 7, 8, 178},
};

static bool is_of(const struct slice *row, const struct nw_gpu *gpu)
{
    const size_t length = strlen(row->family);

    return strncmp(gpu->name, row->family, length) == 0 && gpu->name[length] == ' ' &&
           gpu->memory_bytes == (uint64_t)row->card_gib << 30;
}

static nw_rc refuse(const struct nw_gpu *gpu, const char *slice)
{
    const char *names[8] = {NULL};
    char accepted[128];
    size_t count = 0;

    for (size_t i = 0; i < sizeof slices / sizeof slices[0] && count < 7; i++)
        if (is_of(&slices[i], gpu))
            names[count++] = slices[i].name;
    if (count == 0)
        return nw_fail(NW_EUSAGE, "%s cannot be cut into MIG slices, as far as is known here",
                       gpu->name);
    return nw_fail(NW_EUSAGE, "%s has no MIG slice \"%.20s\"; accepted: %s", gpu->name, slice,
                   nw_join_names(accepted, sizeof accepted, names));
}

nw_rc nw_gpu_slice(const struct nw_gpu *gpu, const char *slice, struct nw_gpu *part_out)
{
    for (size_t i = 0; i < sizeof slices / sizeof slices[0]; i++) {
        const struct slice *row = &slices[i];

        if (!is_of(row, gpu) || strcasecmp(row->name, slice) != 0)
            continue;
        const double compute = row->compute_parts / 7.0, memory = row->memory_parts / 8.0;

        *part_out = *gpu;
        part_out->memory_bytes = (uint64_t)(row->memory_gib * 1024 * 1024 * 1024);
        part_out->hbm_bytes_per_s *= memory;
        part_out->bf16_flops *= compute;
        part_out->fp16_flops *= compute;
        part_out->fp8_flops *= compute;
        part_out->nvlink_both_ways_bytes_per_s = part_out->nvlink_one_way_bytes_per_s = 0;
        part_out->nvlink_count = 0;
        part_out->pcie_one_way_bytes_per_s *= memory;
        return NW_OK;
    }
    return refuse(gpu, slice);
}
