#include "bench/p2p_survey.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/agree.h"

int nw_survey_place(const struct nw_comm *comm, int rank)
{
    int place = 0;

    for (int before = 0; before < rank; before++)
        place += comm->host_of_rank[before] == comm->host_of_rank[rank];
    return place;
}

int nw_survey_rank(const struct nw_comm *comm, int host, int place)
{
    for (int rank = 0; rank < comm->rank_count; rank++)
        if (comm->host_of_rank[rank] == host && place-- == 0)
            return rank;
    return -1;
}

static bool is_it(const struct nw_dev *dev, const struct nw_device_about *about)
{
    return strcmp(dev->pci, about->pci) == 0 && strcmp(dev->uuid, about->uuid) == 0;
}

/* The GPU of that number, if it is the one. */
static nw_rc try_index(const struct nw_dev *own, int index, const struct nw_device_about *about,
                       struct nw_dev **dev_out)
{
    struct nw_dev *dev;

    NW_TRY(nw_dev_open(own->ops->name, index, &dev));
    if (is_it(dev, about)) {
        *dev_out = dev;
        return NW_OK;
    }
    nw_dev_close(dev);
    return nw_fail(NW_ENODEV, "gpu %d is another one", index);
}

/* Processes usually number GPUs alike, so the rank's own number is tried first. */
static nw_rc open_peer(const struct nw_dev *own, const struct nw_device_about *about,
                       struct nw_dev **dev_out)
{
    const int count = nw_dev_count(own->ops->name, NULL, 0);
    nw_rc rc = NW_ENODEV;

    if (about->index < count && about->index != own->index)
        rc = try_index(own, about->index, about, dev_out);
    for (int index = 0; index < count && rc == NW_ENODEV; index++)
        if (index != own->index && index != about->index)
            rc = try_index(own, index, about, dev_out);
    if (rc != NW_ENODEV)
        return rc;
    return nw_fail(
        NW_ENODEV,
        "%s is not shown to the process of another rank on its host, which sees %d GPU%s "
        "(CUDA_VISIBLE_DEVICES shows each rank its own)",
        about->pci, count, count == 1 ? "" : "s");
}

static nw_rc open_place(struct nw_survey *survey, int place, const struct nw_device_about *about)
{
    struct nw_survey_gpu *gpu = &survey->gpus[place];
    struct nw_dev *own = survey->bench->comm->dev;

    if (is_it(own, about)) {
        gpu->dev = own;
    } else {
        NW_TRY(open_peer(own, about, &gpu->dev));
        gpu->opened = true;
    }
    return nw_device_open(gpu->dev, &gpu->device);
}

nw_rc nw_survey_connect(struct nw_survey *survey, int a, int b, bool on)
{
    struct nw_dev *dev_a = survey->gpus[a].dev, *dev_b = survey->gpus[b].dev;

    NW_TRY(dev_a->ops->peer_enable(dev_a, dev_b, on));
    return dev_b->ops->peer_enable(dev_b, dev_a, on);
}

/* By trying: what the driver says it can, and then does. */
static nw_peers ask(struct nw_survey *survey, int a, int b)
{
    struct nw_dev *dev_a = survey->gpus[a].dev, *dev_b = survey->gpus[b].dev;
    bool there, back;

    if (survey->gpus[a].device.dev == NULL || survey->gpus[b].device.dev == NULL)
        return NW_PEERS_UNKNOWN;
    if (strcmp(dev_a->pci, dev_b->pci) == 0 && strcmp(dev_a->uuid, dev_b->uuid) == 0)
        return NW_PEERS_UNKNOWN; /* two ranks share it */
    if (dev_a->ops->peer_can(dev_a, dev_b, &there) != NW_OK ||
        dev_b->ops->peer_can(dev_b, dev_a, &back) != NW_OK || !there || !back)
        return NW_PEERS_STAGED;
    if (nw_survey_connect(survey, a, b, true) != NW_OK)
        return NW_PEERS_STAGED;
    return nw_survey_connect(survey, a, b, false) == NW_OK ? NW_PEERS_DIRECT : NW_PEERS_DIRECT_ONLY;
}

/* Where sysfs has it; "": nowhere (a double, another system). `path` holds PATH_MAX. */
static void resolve(const char *pci, char *path)
{
    char link[64];

    snprintf(link, sizeof link, "/sys/bus/pci/devices/%.15s", pci);
    if (realpath(link, path) == NULL)
        path[0] = '\0';
}

static void survey_paths(const struct nw_survey *survey, const struct nw_devices *devices,
                         struct nw_survey_host *host)
{
    const struct nw_comm *comm = survey->bench->comm;
    char own[PATH_MAX], other[PATH_MAX];

    for (int a = 0; a < survey->gpu_count; a++) {
        resolve(devices->about[nw_survey_rank(comm, comm->host_index, a)].pci, own);
        for (int b = 0; b < survey->gpu_count; b++) {
            resolve(devices->about[nw_survey_rank(comm, comm->host_index, b)].pci, other);
            host->nearness[a][b] = (unsigned char)nw_pci_nearness(own, other);
        }
    }
}

static void survey_host(struct nw_survey *survey, const struct nw_devices *devices,
                        struct nw_survey_host *host)
{
    const struct nw_comm *comm = survey->bench->comm;

    for (int place = 0; place < survey->gpu_count; place++) {
        const int rank = nw_survey_rank(comm, comm->host_index, place);

        if (open_place(survey, place, &devices->about[rank]) != NW_OK && host->why[0] == '\0')
            snprintf(host->why, sizeof host->why, "%.*s", (int)sizeof host->why - 1,
                     nw_last_error()->text);
    }
    survey_paths(survey, devices, host);
    for (int a = 0; a < survey->gpu_count; a++)
        for (int b = 0; b < survey->gpu_count; b++)
            host->peers[a][b] = (unsigned char)(a < b ? ask(survey, a, b) : host->peers[b][a]);
    nw_clear_error();
}

nw_rc nw_survey_open(struct nw_bench *bench, const struct nw_devices *devices,
                     struct nw_survey *survey_out)
{
    struct nw_comm *comm = bench->comm;
    struct nw_survey_host mine = {.why = ""};
    nw_rc rc = NW_OK;

    *survey_out = (struct nw_survey){.bench = bench};
    survey_out->hosts = calloc((size_t)comm->rank_count, sizeof *survey_out->hosts);
    if (survey_out->hosts == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for the GPUs of %d ranks", comm->rank_count);
    rc = nw_agree(comm, rc);
    if (rc == NW_OK && nw_survey_place(comm, comm->rank) == 0) {
        while (survey_out->gpu_count < NW_SURVEY_MAX &&
               nw_survey_rank(comm, comm->host_index, survey_out->gpu_count) >= 0)
            survey_out->gpu_count++;
        survey_host(survey_out, devices, &mine);
    }
    if (rc == NW_OK)
        rc = comm->ops->exchange(comm, &mine, sizeof mine, survey_out->hosts);
    if (rc != NW_OK)
        nw_survey_close(survey_out);
    return rc;
}

nw_rc nw_survey_allocate(struct nw_survey *survey, uint64_t bytes)
{
    for (int place = 0; place < survey->gpu_count; place++) {
        struct nw_survey_gpu *gpu = &survey->gpus[place];

        if (gpu->device.dev == NULL)
            continue;
        NW_TRY(gpu->dev->ops->alloc(gpu->dev, NW_SPACE_DEVICE, bytes, &gpu->to));
        NW_TRY(gpu->dev->ops->alloc(gpu->dev, NW_SPACE_DEVICE, bytes, &gpu->from));
    }
    return NW_OK;
}

void nw_survey_close(struct nw_survey *survey)
{
    for (int place = 0; place < survey->gpu_count; place++) {
        struct nw_survey_gpu *gpu = &survey->gpus[place];

        if (gpu->dev == NULL)
            continue;
        gpu->dev->ops->free(gpu->dev, NW_SPACE_DEVICE, gpu->to);
        gpu->dev->ops->free(gpu->dev, NW_SPACE_DEVICE, gpu->from);
        nw_device_close(&gpu->device);
        if (gpu->opened)
            nw_dev_close(gpu->dev);
    }
    free(survey->hosts);
    *survey = (struct nw_survey){.bench = survey->bench};
}

nw_peers nw_survey_peers(const struct nw_survey *survey, int host, int a, int b)
{
    return (nw_peers)survey->hosts[nw_survey_rank(survey->bench->comm, host, 0)].peers[a][b];
}

nw_nearness nw_survey_nearness(const struct nw_survey *survey, int host, int a, int b)
{
    return (nw_nearness)survey->hosts[nw_survey_rank(survey->bench->comm, host, 0)].nearness[a][b];
}
