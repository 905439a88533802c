/* Which GPU a rank has, and whether all ranks have the like. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/comm_nccl.h"
#include "topo/nvml_api.h"

/* Ranks that share a GPU: NCCL refuses them, unless it is told that each is a host of its own (all
 * versions) or that it may be so (since 2.30.3). For trying out only: their kernels take turns. */
static bool may_share(void)
{
    const char *enabled = getenv("NCCL_MULTI_RANK_GPU_ENABLE");

    return getenv("NCCL_HOSTID") != NULL || (enabled != NULL && strcmp(enabled, "1") == 0);
}

/* Launchers either show all of a host's GPUs to each rank, or each rank its own. */
static nw_rc choose(const struct nw_comm *comm, int count, int *index_out)
{
    if (count == 1 || may_share()) {
        *index_out = comm->local_rank % count;
        return NW_OK;
    }
    if (comm->local_rank >= count) {
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");

        return nw_fail(
            NW_EUSAGE,
            "%d ranks on %s and %d GPUs there%s%.64s%s: NCCL wants one GPU a rank; start "
            "at most %d ranks on a host (mpirun --map-by ppr:%d:node)",
            comm->local_count, comm->host_names[comm->host_index], count,
            visible != NULL ? " (CUDA_VISIBLE_DEVICES is \"" : "", visible != NULL ? visible : "",
            visible != NULL ? "\")" : "", count, count);
    }
    *index_out = comm->local_rank;
    return NW_OK;
}

static void read_driver(struct nccl_gpu *gpu)
{
    struct nccl_about *about = &gpu->about;
    struct nw_nvml *nvml;

    about->index = gpu->dev->index;
    if (nw_nvml_open(&nvml) != NW_OK) {
        nw_clear_error();
        snprintf(about->driver, sizeof about->driver, "%.60s", gpu->dev->library);
        return;
    }
    snprintf(about->driver, sizeof about->driver, "%.30s, %.28s", nw_nvml_driver_version(nvml),
             gpu->dev->library);
    if (nw_nvml_find(nvml, about->pci, &about->index) != NW_OK)
        nw_clear_error();
    nw_nvml_close(nvml);
}

static void describe(struct nccl_gpu *gpu)
{
    struct nccl_about *about = &gpu->about;
    char version[24];

    about->simulated = gpu->dev->simulated;
    snprintf(about->model, sizeof about->model, "%s", gpu->dev->name);
    snprintf(about->uuid, sizeof about->uuid, "%s", gpu->dev->uuid);
    snprintf(about->pci, sizeof about->pci, "%s", gpu->dev->pci);
    snprintf(about->library, sizeof about->library, "NCCL %s (%.100s)",
             nw_nccl_version_text(gpu->nccl->version, version), gpu->nccl->path);
    gpu->non_blocking = gpu->nccl->comm_init_rank_config != NULL;
    read_driver(gpu);
}

static nw_rc open_stream(struct nccl_gpu *gpu)
{
    struct nw_dev *dev = gpu->dev;
    void *pinned, *device, *handle;

    NW_TRY(dev->ops->stream_open(dev, &gpu->stream));
    NW_TRY(dev->ops->native(gpu->stream, &handle));
    gpu->handle = handle;
    NW_TRY(dev->ops->alloc(dev, NW_SPACE_PINNED, sizeof *gpu->pinned, &pinned));
    gpu->pinned = pinned;
    NW_TRY(dev->ops->alloc(dev, NW_SPACE_DEVICE, sizeof *gpu->device, &device));
    gpu->device = device;
    return NW_OK;
}

/* This rank's part, without the others. The driver is asked first: without it NCCL is of no use. */
static nw_rc open_alone(const struct nw_comm *comm, struct nccl_gpu *gpu)
{
    struct nccl_about *about = &gpu->about;
    char why[512];
    int index = 0;

    about->index = -1;
    about->gpu_count = nw_dev_count("cuda", why, sizeof why);
    if (about->gpu_count == 0)
        return NW_ENODEV; /* worded */
    NW_TRY(nw_nccl_api_open(&gpu->nccl));
    about->nccl_version = gpu->nccl->version;
    NW_TRY(choose(comm, about->gpu_count, &index));
    NW_TRY(nw_dev_open("cuda", index, &gpu->dev));
    if (gpu->dev->simulated != gpu->nccl->simulated)
        return nw_fail(NW_ENODEV, "%s is a simulation and %s is not: they do not fit",
                       gpu->dev->simulated ? gpu->dev->library_path : gpu->nccl->path,
                       gpu->dev->simulated ? gpu->nccl->path : gpu->dev->library_path);
    describe(gpu);
    NW_TRY(open_stream(gpu));
    about->can = nw_nccl_can(gpu);
    return NW_OK;
}

/* ---- together -----------------------------------------------------------------------------------
 */

/* The first rank that has no GPU speaks; without its name where all say the same. */
static nw_rc judge_failures(const struct nw_comm *comm, const struct nccl_about *all)
{
    char who[NW_COMM_RANK_TEXT];
    int speaker = -1;
    bool same = true;

    for (int rank = comm->rank_count - 1; rank >= 0; rank--) {
        if (all[rank].rc != NW_OK)
            speaker = rank;
        same = same && all[rank].rc == all[0].rc && strcmp(all[rank].text, all[0].text) == 0;
    }
    if (speaker < 0)
        return NW_OK;
    if (same || all[speaker].rc == NW_EUSAGE) /* that sentence names the host */
        return nw_fail((nw_rc)all[speaker].rc, "%s", all[speaker].text);
    return nw_fail((nw_rc)all[speaker].rc, "%s: %s", nw_comm_rank_text(comm, speaker, who),
                   all[speaker].text);
}

static nw_rc judge_wishes(const struct nw_comm *comm, const struct nccl_about *all)
{
    char who[NW_COMM_RANK_TEXT];

    for (int rank = 1; rank < comm->rank_count; rank++)
        if (all[rank].wish.features != all[0].wish.features ||
            all[rank].wish.min_ctas != all[0].wish.min_ctas ||
            all[rank].wish.max_ctas != all[0].wish.max_ctas)
            return nw_fail(NW_EUSAGE,
                           "%s: other options for NCCL (--nccl) than rank 0; start all ranks with "
                           "the same ones",
                           nw_comm_rank_text(comm, rank, who));
    return NW_OK;
}

static nw_rc judge_shared(const struct nw_comm *comm, const struct nccl_about *all,
                          struct nw_findings *findings, bool *shared_out)
{
    for (int b = 1; b < comm->rank_count; b++) {
        for (int a = 0; a < b; a++) {
            const char *host = comm->host_names[comm->host_of_rank[a]];

            if (comm->host_of_rank[a] != comm->host_of_rank[b] ||
                strcmp(all[a].pci, all[b].pci) != 0 || strcmp(all[a].uuid, all[b].uuid) != 0)
                continue;
            if (!may_share())
                return nw_fail(
                    NW_EUSAGE,
                    "ranks %d and %d on %s have the same GPU (%s, %s): NCCL wants one GPU "
                    "a rank; start fewer ranks there, or show each rank another one "
                    "(CUDA_VISIBLE_DEVICES)",
                    a, b, host, all[a].pci, all[a].uuid);
            *shared_out = true;
            return nw_findings_add(findings, NW_FINDING_WARN, "gpu-shared", host, "one rank a GPU",
                                   "ranks %d and %d share GPU %s: their kernels take turns, the "
                                   "times say nothing about the machine",
                                   a, b, all[a].pci);
        }
    }
    return NW_OK;
}

/* One finding for each thing that is not the same everywhere: the first rank that differs from
 * rank 0. */
static nw_rc judge_mixed(const struct nw_comm *comm, const struct nccl_about *all,
                         struct nw_findings *findings)
{
    static const struct {
        const char *code, *what, *remedy;
        size_t offset; /* of a text in nccl_about; 0: the NCCL version */
    } things[] = {
        {"gpu-mixed", "GPU",
         "compare like with like: all collectives run at the slowest one's pace",
         offsetof(struct nccl_about, model)},
        {"driver-mixed", "driver", "install the same driver on all hosts",
         offsetof(struct nccl_about, driver)},
        {"nccl-mixed", "NCCL", "install the same NCCL on all hosts", 0},
    };

    for (size_t i = 0; i < sizeof things / sizeof *things; i++) {
        for (int rank = 1; rank < comm->rank_count; rank++) {
            char texts[2][64], where[NW_COMM_RANK_TEXT], first[NW_COMM_RANK_TEXT];

            for (int side = 0; side < 2; side++) {
                const struct nccl_about *about = &all[side == 0 ? 0 : rank];

                if (things[i].offset == 0)
                    nw_nccl_version_text(about->nccl_version, texts[side]);
                else
                    snprintf(texts[side], sizeof texts[side], "%.63s",
                             (const char *)about + things[i].offset);
            }
            if (strcmp(texts[0], texts[1]) == 0)
                continue;
            NW_TRY(nw_findings_add(findings, NW_FINDING_WARN, things[i].code,
                                   nw_comm_rank_text(comm, rank, where), things[i].remedy,
                                   "%s %s, where %s has %s", things[i].what, texts[1],
                                   nw_comm_rank_text(comm, 0, first), texts[0]));
            break;
        }
    }
    return NW_OK;
}

/* NULL: no memory, worded. */
static struct nw_comm_gpu *list_gpus(const struct nccl_about *all, int rank_count)
{
    struct nw_comm_gpu *gpus = calloc((size_t)rank_count, sizeof *gpus);

    if (gpus == NULL) {
        (void)nw_fail(NW_ENOMEM, "no memory for the GPUs of %d ranks", rank_count);
        return NULL;
    }
    for (int rank = 0; rank < rank_count; rank++) {
        const struct nccl_about *about = &all[rank];

        gpus[rank].index = about->index;
        memcpy(gpus[rank].model, about->model, sizeof about->model);
        memcpy(gpus[rank].uuid, about->uuid, sizeof about->uuid);
        memcpy(gpus[rank].pci, about->pci, sizeof about->pci);
        memcpy(gpus[rank].driver, about->driver, sizeof about->driver);
        memcpy(gpus[rank].library, about->library, sizeof about->library);
    }
    return gpus;
}

/* `named`: the bootstrap, with the ranks' GPUs. */
static nw_rc judge(const struct nw_comm *named, const struct nccl_about *all, struct nccl_gpu *gpu,
                   struct nw_findings *findings)
{
    NW_TRY(judge_failures(named, all));
    NW_TRY(judge_wishes(named, all));
    NW_TRY(judge_shared(named, all, findings, &gpu->shared));
    NW_TRY(judge_mixed(named, all, findings));
    return nw_nccl_features_choose(named, all, gpu, findings);
}

static nw_rc look_at_all(struct nw_comm *bootstrap, struct nccl_gpu *gpu,
                         struct nw_comm_gpu **gpus_out, struct nw_findings *findings)
{
    struct nccl_about *all = calloc((size_t)bootstrap->rank_count, sizeof *all);
    struct nw_comm named = *bootstrap;
    nw_rc rc;

    if (all == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the GPUs of %d ranks", bootstrap->rank_count);
    rc = bootstrap->ops->exchange(bootstrap, &gpu->about, sizeof gpu->about, all);
    if (rc == NW_OK) {
        named.gpus = list_gpus(all, bootstrap->rank_count);
        rc = named.gpus != NULL ? judge(&named, all, gpu, findings) : NW_ENOMEM;
        if (rc == NW_OK)
            *gpus_out = named.gpus;
        else
            free(named.gpus);
    }
    free(all);
    return rc;
}

nw_rc nw_nccl_gpu_open(struct nw_comm *bootstrap, const struct nw_nccl_wish *wish,
                       struct nccl_gpu **gpu_out, struct nw_comm_gpu **gpus_out,
                       struct nw_findings *findings)
{
    struct nccl_gpu *gpu = calloc(1, sizeof *gpu);
    nw_rc rc;

    if (gpu == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a GPU");
    gpu->users = 1;
    if (wish != NULL)
        gpu->wish = *wish;
    gpu->about.wish = gpu->wish;
    gpu->about.rc = (int)open_alone(bootstrap, gpu);
    if (gpu->about.rc != NW_OK)
        snprintf(gpu->about.text, sizeof gpu->about.text, "%.*s", (int)sizeof gpu->about.text - 1,
                 nw_last_error()->text);
    rc = look_at_all(bootstrap, gpu, gpus_out, findings);
    if (rc != NW_OK) {
        const struct nw_err error = *nw_last_error();

        nw_nccl_gpu_release(gpu);
        return nw_fail_at(rc, error.lib, error.lib_code, error.where, "%s", error.text);
    }
    *gpu_out = gpu;
    return NW_OK;
}

void nw_nccl_gpu_release(struct nccl_gpu *gpu)
{
    if (--gpu->users > 0 ||
        gpu->given_up) /* what hangs may still use it: it ends with the process */
        return;
    if (gpu->dev != NULL) {
        gpu->dev->ops->free(gpu->dev, NW_SPACE_PINNED, gpu->pinned);
        gpu->dev->ops->free(gpu->dev, NW_SPACE_DEVICE, gpu->device);
        gpu->dev->ops->stream_close(gpu->stream);
        nw_dev_close(gpu->dev);
    }
    free(gpu);
}
