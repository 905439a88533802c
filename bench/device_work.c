#include "bench/device_work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/agree.h"
#include "bench/device_stage.h"
#include "topo/link.h"

/* Of what is free: contexts, and what the driver keeps for itself, come on top. */
#define DEVICE_SHARE 0.9
/* Pinned memory cannot be taken back: half of a host's is left to everybody else. */
#define HOST_SHARE 0.5

double nw_pcie_link_ceiling(const struct nw_pcie_link *link)
{
    return nw_pcie_bytes_per_s(link->generation, link->width);
}

/* ---- is there a GPU ----------------------------------------------------------------------------
 */

static bool is_first_of_plan(const struct nw_bench *bench, const char *case_name)
{
    for (size_t i = 0; i < nw_case_count; i++)
        if (bench->plan->cases & 1u << i && nw_cases[i].needs_gpu)
            return strcmp(nw_cases[i].name, case_name) == 0;
    return false;
}

bool nw_device_is_here(struct nw_bench *bench, const char *case_name)
{
    const char *names[NW_PLAN_LIST_MAX] = {NULL};
    char text[256];
    size_t count = 0;

    if (bench->comm->dev != NULL)
        return true;
    for (size_t i = 0; i < nw_case_count; i++)
        if (bench->plan->cases & 1u << i && nw_cases[i].needs_gpu)
            names[count++] = nw_cases[i].name;
    if (is_first_of_plan(bench, case_name))
        nw_bench_finding(bench, NW_FINDING_INFO, "no-gpu", "",
                         "--backend nccl, on a machine with a GPU for each rank",
                         "left out, as this run measures host memory: %s",
                         nw_join_names(text, sizeof text, names));
    return false;
}

/* ---- a GPU made ready --------------------------------------------------------------------------
 */

nw_rc nw_device_open(struct nw_dev *dev, struct nw_device *device_out)
{
    struct nw_device device = {.dev = dev, .nvml_index = -1};
    const struct nw_dev_ops *ops = dev->ops;
    void *pinned = NULL, *memory = NULL;
    nw_rc rc;

    NW_TRY_GOTO(ops->stream_open(dev, &device.stream), fail);
    NW_TRY_GOTO(ops->stream_open(dev, &device.back), fail);
    NW_TRY_GOTO(ops->mark_open(dev, &device.start), fail);
    NW_TRY_GOTO(ops->mark_open(dev, &device.end), fail);
    NW_TRY_GOTO(ops->alloc(dev, NW_SPACE_PINNED, sizeof *device.pinned, &pinned), fail);
    device.pinned = pinned;
    NW_TRY_GOTO(ops->alloc(dev, NW_SPACE_DEVICE, sizeof *device.memory, &memory), fail);
    device.memory = memory;
    if (nw_nvml_open(&device.nvml) != NW_OK ||
        nw_nvml_find(device.nvml, dev->pci, &device.nvml_index) != NW_OK) {
        nw_nvml_close(device.nvml); /* then what it would say is unknown */
        device.nvml = NULL;
        device.nvml_index = -1;
        nw_clear_error();
    }
    *device_out = device;
    return NW_OK;
fail:
    nw_device_close(&device);
    return rc;
}

/* Work that hangs: a driver waits for it before it frees anything. */
static bool is_stuck(const struct nw_device *device)
{
    const struct nw_dev_ops *ops = device->dev->ops;

    return (device->stream != NULL && ops->wait(device->stream, 0) == NW_ETIMEOUT) ||
           (device->back != NULL && ops->wait(device->back, 0) == NW_ETIMEOUT);
}

void nw_device_close(struct nw_device *device)
{
    const struct nw_err error = *nw_last_error(); /* what led here is what is told */

    if (device->dev != NULL && !is_stuck(device)) { /* else it ends with the process */
        const struct nw_dev_ops *ops = device->dev->ops;

        ops->stream_close(device->stream);
        ops->stream_close(device->back);
        ops->mark_close(device->start);
        ops->mark_close(device->end);
        ops->free(device->dev, NW_SPACE_PINNED, device->pinned);
        ops->free(device->dev, NW_SPACE_DEVICE, device->memory);
        nw_nvml_close(device->nvml);
    }
    *device = (struct nw_device){.nvml_index = -1};
    if (error.rc != NW_OK)
        (void)nw_fail_at(error.rc, error.lib, error.lib_code, error.where, "%s", error.text);
}

/* ---- all ranks' GPUs ---------------------------------------------------------------------------
 */

static void describe_links(const struct nw_nvml_gpu *gpu, struct nw_device_about *about)
{
    about->link_count = gpu->link_count;
    for (int i = 0; i < gpu->link_count; i++) {
        const struct nw_nvml_link *link = &gpu->links[i];

        if (!link->active)
            continue;
        about->links[about->link_up_count].to_switch = link->peer == NW_NVLINK_PEER_SWITCH;
        about->links[about->link_up_count].bytes_per_s = link->bytes_per_s;
        snprintf(about->links[about->link_up_count].peer_pci, sizeof about->links[0].peer_pci, "%s",
                 link->peer_pci);
        about->link_up_count++;
    }
}

static nw_rc describe(const struct nw_device *device, struct nw_device_about *about)
{
    const struct nw_dev *dev = device->dev;
    struct nw_nvml_gpu gpu;

    *about = (struct nw_device_about){
        .index = dev->index,
        .smi_index = device->nvml_index,
        .seen_count = nw_dev_count(dev->ops->name, NULL, 0),
        .l2_bytes = dev->l2_bytes,
        .host_bytes = nw_env_available_bytes(),
        .memory_bytes_per_s = dev->memory_bytes_per_s > 0 ? dev->memory_bytes_per_s : NAN,
        .pcie = {-1, -1, -1, -1},
    };
    snprintf(about->model, sizeof about->model, "%s", dev->name);
    snprintf(about->uuid, sizeof about->uuid, "%s", dev->uuid);
    snprintf(about->pci, sizeof about->pci, "%s", dev->pci);
    if (device->nvml != NULL && nw_nvml_gpu(device->nvml, device->nvml_index, &gpu) == NW_OK) {
        about->pcie = (struct nw_pcie_link){gpu.pcie_generation, gpu.pcie_width,
                                            gpu.pcie_max_generation, gpu.pcie_max_width};
        describe_links(&gpu, about);
    }
    nw_clear_error();
    return dev->ops->free_bytes(device->dev, &about->free_bytes);
}

static nw_rc open_own(struct nw_bench *bench, struct nw_devices *devices,
                      struct nw_device_about *mine)
{
    devices->rank_count = bench->comm->rank_count;
    devices->about = calloc((size_t)devices->rank_count, sizeof *devices->about);
    if (devices->about == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the GPUs of %d ranks", devices->rank_count);
    NW_TRY(nw_device_open(bench->comm->dev, &devices->own));
    return describe(&devices->own, mine);
}

nw_rc nw_devices_open(struct nw_bench *bench, struct nw_devices *devices_out)
{
    struct nw_device_about mine;
    nw_rc rc;

    *devices_out = (struct nw_devices){.own.nvml_index = -1};
    rc = nw_agree(bench->comm, open_own(bench, devices_out, &mine));
    if (rc == NW_OK)
        rc = bench->comm->ops->exchange(bench->comm, &mine, sizeof mine, devices_out->about);
    if (rc != NW_OK)
        nw_devices_close(devices_out);
    return rc;
}

uint64_t nw_devices_least_free(const struct nw_devices *devices)
{
    uint64_t least = UINT64_MAX;

    for (int rank = 0; rank < devices->rank_count; rank++)
        if (devices->about[rank].free_bytes < least)
            least = devices->about[rank].free_bytes;
    return least;
}

void nw_devices_close(struct nw_devices *devices)
{
    nw_device_close(&devices->own);
    free(devices->about);
    *devices = (struct nw_devices){.own.nvml_index = -1};
}

const char *nw_device_text(const struct nw_bench *bench, const struct nw_devices *devices, int rank,
                           char text[NW_DEVICE_TEXT])
{
    (void)devices;
    return nw_comm_rank_text(bench->comm, rank, text);
}

/* ---- sizes -------------------------------------------------------------------------------------
 */

static int ranks_on_host_of(const struct nw_comm *comm, int rank)
{
    int count = 0;

    for (int other = 0; other < comm->rank_count; other++)
        count += comm->host_of_rank[other] == comm->host_of_rank[rank];
    return count;
}

static bool fits(const struct nw_bench *bench, const struct nw_devices *devices, int rank,
                 uint64_t bytes, int device_count, int host_count)
{
    const struct nw_device_about *about = &devices->about[rank];
    const double size = (double)bytes;

    if (size * device_count > DEVICE_SHARE * (double)about->free_bytes)
        return false;
    return about->host_bytes == 0 || size * host_count * ranks_on_host_of(bench->comm, rank) <=
                                         HOST_SHARE * (double)about->host_bytes;
}

nw_rc nw_device_fit(struct nw_bench *bench, const struct nw_devices *devices, const char *case_name,
                    uint64_t bytes, int device_count, int host_count, uint64_t *bytes_out)
{
    uint64_t fitting = bytes / NW_DEVICE_WORD * NW_DEVICE_WORD;
    char where[NW_COMM_RANK_TEXT], wanted[32], left[32], device_free[32], host_free[32];
    int tightest = -1;

    for (int rank = 0; rank < devices->rank_count; rank++)
        while (fitting >= NW_DEVICE_WORD &&
               !fits(bench, devices, rank, fitting, device_count, host_count)) {
            fitting = fitting / 2 / NW_DEVICE_WORD * NW_DEVICE_WORD;
            tightest = rank;
        }
    *bytes_out = fitting;
    if (tightest < 0)
        return NW_OK;
    nw_comm_rank_text(bench->comm, tightest, where);
    nw_format_bytes(device_free, devices->about[tightest].free_bytes);
    nw_format_bytes(host_free, devices->about[tightest].host_bytes);
    if (fitting < NW_DEVICE_WORD)
        return nw_fail(NW_ENOMEM, "%s: no memory left on %s: %s free on the GPU, %s on its host",
                       case_name, where, device_free, host_free);
    nw_bench_finding(bench, NW_FINDING_INFO, "size-reduced", where,
                     "free the memory of GPU or host, or lower -e (--maxbytes)",
                     "%s moves %s at a time, not %s: %s are free on the GPU, %s on its host",
                     case_name, nw_format_bytes(left, fitting), nw_format_bytes(wanted, bytes),
                     device_free, host_free);
    return NW_OK;
}

void nw_device_identity(const struct nw_bench *bench, const char *case_name, const char *collective,
                        const char *lane, uint64_t bytes, int rank, int peer,
                        struct nw_record *record_out)
{
    const struct nw_comm *comm = bench->comm;

    nw_bench_identity(bench, case_name, record_out);
    snprintf(record_out->collective, sizeof record_out->collective, "%s", collective);
    snprintf(record_out->lane, sizeof record_out->lane, "%s", lane);
    snprintf(record_out->dtype, sizeof record_out->dtype, "int8");
    snprintf(record_out->op, sizeof record_out->op, "none");
    record_out->features[0] = '\0'; /* those are the collective library's */
    record_out->rank_count = record_out->host_count = 1;
    record_out->bytes = record_out->count = bytes;
    record_out->peer_a = rank;
    record_out->peer_b = peer;
    snprintf(record_out->host_a, sizeof record_out->host_a, "%s",
             comm->host_names[comm->host_of_rank[rank]]);
    if (peer >= 0)
        snprintf(record_out->host_b, sizeof record_out->host_b, "%s",
                 comm->host_names[comm->host_of_rank[peer]]);
}
