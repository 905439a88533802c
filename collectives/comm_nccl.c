/* An NCCL communicator. MPI, the bootstrap, passes around what is small and in host memory. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "collectives/comm_nccl.h"
#include "collectives/common.h"

static const struct nw_comm_ops nccl_ops;

/* ---- the ops ------------------------------------------------------------------------------------
 */

/* It waits as this communicator is told to. */
static struct nw_comm *bootstrap_of(struct nw_comm *base)
{
    struct nw_comm *bootstrap = ((struct nccl_comm *)base)->bootstrap;

    bootstrap->gentle = base->gentle;
    return bootstrap;
}

static nw_rc nccl_barrier(struct nw_comm *base)
{
    struct nw_comm *bootstrap = bootstrap_of(base);
    return bootstrap->ops->barrier(bootstrap);
}

static nw_rc nccl_exchange(struct nw_comm *base, const void *mine, uint64_t bytes, void *all)
{
    struct nw_comm *bootstrap = bootstrap_of(base);
    return bootstrap->ops->exchange(bootstrap, mine, bytes, all);
}

static nw_rc nccl_share(struct nw_comm *base, void *data, uint64_t bytes, int root)
{
    struct nw_comm *bootstrap = bootstrap_of(base);
    return bootstrap->ops->share(bootstrap, data, bytes, root);
}

static void nccl_close(struct nw_comm *base)
{
    struct nccl_comm *comm = (struct nccl_comm *)base;
    struct nccl_gpu *gpu = comm->gpu;

    (void)nw_nccl_end(base);
    nw_nccl_conceal_all(comm);
    for (struct nccl_comm **at = &gpu->comms; *at != NULL; at = &(*at)->next) {
        if (*at == comm) {
            *at = comm->next;
            break;
        }
    }
    nw_nccl_gpu_release(gpu);
    nw_comm_close(comm->bootstrap);
    nw_findings_free(&base->findings);
    free(base->gpus);
    free(comm);
}

/* What the environment forces. */
static void name_lane(char lane[16])
{
    static const struct {
        const char *variable, *value, *lane;
    } forced[] = {
        {"NCCL_P2P_DISABLE", "1", "shm"},       {"NCCL_P2P_LEVEL", "LOC", "shm"},
        {"NCCL_ALGO", "Ring", "ring"},          {"NCCL_ALGO", "Tree", "tree"},
        {"NCCL_ALGO", "NVLS", "nvls"},          {"NCCL_P2P_LEVEL", "NVL", "nvlink"},
        {"NCCL_NET", "Socket", "tcp"},          {"NCCL_IB_DISABLE", "1", "tcp"},
        {"NCCL_NET_GDR_LEVEL", "LOC", "nogdr"},
    };

    snprintf(lane, 16, "auto");
    for (size_t i = 0; i < sizeof forced / sizeof *forced; i++) {
        const char *value = getenv(forced[i].variable);

        if (value != NULL && strcasecmp(value, forced[i].value) == 0) {
            snprintf(lane, 16, "%s", forced[i].lane);
            return;
        }
    }
}

/* A double has its own clock, in which its work lasts as long as its model says. */
static uint64_t (*clock_of(const struct nw_dev *dev))(void)
{
    uint64_t (*now_ns)(void) = NULL;
    void *library = dev->simulated ? dlopen(dev->library_path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *symbol = library != NULL ? dlsym(library, "fk_now") : NULL;

    memcpy(&now_ns, &symbol, sizeof now_ns);
    return now_ns;
}

/* A wrapped bootstrap without NCCL's part. Takes no argument when it fails. */
static nw_rc wrap(struct nw_comm *bootstrap, struct nccl_gpu *gpu, struct nw_comm_gpu *gpus,
                  struct nccl_comm **comm_out)
{
    struct nccl_comm *comm = calloc(1, sizeof *comm);

    if (comm == NULL)
        return nw_fail(NW_ENOMEM, "cannot keep a communicator");
    comm->base = *bootstrap; /* ranks and hosts are the same, and stay the bootstrap's */
    comm->base.ops = &nccl_ops;
    comm->base.findings = (struct nw_findings){0};
    comm->base.dev = gpu->dev;
    comm->base.simulated = gpu->about.simulated;
    comm->base.now_ns = clock_of(gpu->dev);
    name_lane(comm->base.lane);
    snprintf(comm->base.driver, sizeof comm->base.driver, "%s", gpu->about.driver);
    snprintf(comm->base.library, sizeof comm->base.library, "%s", gpu->about.library);
    comm->base.gpus = gpus;
    comm->bootstrap = bootstrap;
    comm->gpu = gpu;
    comm->next = gpu->comms;
    gpu->comms = comm;
    snprintf(comm->last, sizeof comm->last, "the start");
    *comm_out = comm;
    return NW_OK;
}

/* The parent's, of the ranks that are in the part. */
static nw_rc gather_gpus(const struct nccl_comm *parent, struct nw_comm *bootstrap,
                         struct nw_comm_gpu **gpus_out)
{
    struct nw_comm_gpu *gpus = calloc((size_t)bootstrap->rank_count, sizeof *gpus);
    nw_rc rc;

    if (gpus == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the GPUs of %d ranks", bootstrap->rank_count);
    rc = bootstrap->ops->exchange(bootstrap, &parent->base.gpus[parent->base.rank], sizeof *gpus,
                                  gpus);
    if (rc != NW_OK) {
        free(gpus);
        return rc;
    }
    *gpus_out = gpus;
    return NW_OK;
}

static nw_rc start_part(struct nccl_comm *parent, struct nw_comm *bootstrap,
                        struct ncclComm *handle, struct nccl_comm **comm_out)
{
    struct nw_comm_gpu *gpus = NULL;
    struct nccl_comm *comm;
    nw_rc rc;

    NW_TRY(gather_gpus(parent, bootstrap, &gpus));
    rc = wrap(bootstrap, parent->gpu, gpus, &comm);
    if (rc != NW_OK) {
        free(gpus);
        return rc;
    }
    parent->gpu->users++;
    memcpy(comm->base.features, parent->base.features, sizeof comm->base.features);
    comm->base.graphs = parent->base.graphs;
    comm->handle = handle;
    if (handle == NULL)
        rc = nw_nccl_start(comm);
    if (rc == NW_OK)
        rc = nw_nccl_expose_all(comm);
    if (rc != NW_OK) {
        const struct nw_err error = *nw_last_error();

        comm->bootstrap = NULL; /* stays the caller's */
        nccl_close(&comm->base);
        return nw_fail_at(rc, error.lib, error.lib_code, error.where, "%s", error.text);
    }
    *comm_out = comm;
    return NW_OK;
}

/* Where NCCL can split (2.18), it does, with all ranks; else each part starts by itself. */
static nw_rc nccl_split(struct nw_comm *base, int colour, struct nw_comm **comm_out)
{
    struct nccl_comm *parent = (struct nccl_comm *)base, *comm = NULL;
    struct ncclComm *handle = NULL;
    struct nw_comm *bootstrap;
    nw_rc rc = NW_OK;

    if (parent->handle == NULL)
        return nw_fail(NW_EPEER, "the NCCL communicator was given up");
    NW_TRY(parent->bootstrap->ops->split(parent->bootstrap, colour, &bootstrap));
    if (parent->gpu->can & NCCL_CAN_SPLIT)
        rc = nw_nccl_split_handle(parent, colour, &handle);
    if (rc == NW_OK && bootstrap != NULL)
        rc = start_part(parent, bootstrap, handle, &comm);
    if (rc != NW_OK) {
        const struct nw_err error = *nw_last_error();

        nw_comm_close(bootstrap);
        return nw_fail_at(rc, error.lib, error.lib_code, error.where, "%s", error.text);
    }
    *comm_out = comm != NULL ? &comm->base : NULL;
    return NW_OK;
}

static const struct nw_comm_ops nccl_ops = {
    .name = "nccl",
    .title = "NCCL, one GPU a rank",
    .call = nw_nccl_call,
    .swap = nw_nccl_swap,
    .pass = nw_nccl_pass,
    .barrier = nccl_barrier,
    .exchange = nccl_exchange,
    .share = nccl_share,
    .split = nccl_split,
    .end = nw_nccl_end,
    .close = nccl_close,
    .supports = nw_nccl_supports,
    .meet = nw_nccl_meet,
    .stream = nw_nccl_stream,
    .expect = nw_nccl_expect,
    .finish = nw_nccl_finish,
    .alloc = nw_nccl_alloc,
    .free = nw_nccl_free,
    .free_bytes = nw_nccl_free_bytes,
    .put = nw_nccl_put,
    .get = nw_nccl_get,
    .fill = nw_nccl_fill,
    .check = nw_nccl_check,
    .expose = nw_nccl_expose,
};

static nw_rc tell_fallbacks(const struct nw_nccl_api *nccl, struct nw_findings *findings)
{
    char version[24];

    if (nccl->alltoall != NULL && nccl->gather != NULL && nccl->scatter != NULL)
        return NW_OK;
    return nw_findings_add(
        findings, NW_FINDING_INFO, "nccl-grouped", "", NULL,
        "NCCL %s has no calls for alltoall, gather and scatter: they are made of "
        "grouped send and receive",
        nw_nccl_version_text(nccl->version, version));
}

/* From a wrapped bootstrap to a communicator that works. */
static nw_rc begin(struct nccl_comm *comm)
{
    struct nw_findings *findings = &comm->base.findings;

    NW_TRY(tell_fallbacks(comm->gpu->nccl, findings));
    NW_TRY(nw_nccl_start(comm));
    return nw_nccl_features_try(comm, findings);
}

nw_rc nw_nccl_comm_open(struct nw_comm *bootstrap, double timeout_ns,
                        const struct nw_nccl_wish *wish, struct nw_comm **comm_out)
{
    struct nw_findings findings = {0};
    struct nw_comm_gpu *gpus = NULL;
    struct nccl_gpu *gpu;
    struct nccl_comm *comm;
    nw_rc rc = nw_nccl_gpu_open(bootstrap, wish, &gpu, &gpus, &findings);

    if (rc == NW_OK) {
        gpu->timeout_ns = timeout_ns;
        rc = wrap(bootstrap, gpu, gpus, &comm);
        if (rc != NW_OK) {
            free(gpus);
            nw_nccl_gpu_release(gpu);
        }
    }
    if (rc != NW_OK) {
        nw_findings_free(&findings);
        return rc;
    }
    comm->base.findings = findings;
    rc = begin(comm);
    if (rc != NW_OK) {
        const struct nw_err error = *nw_last_error();

        nw_nccl_give_up(gpu);   /* the others may not be where this rank is */
        comm->bootstrap = NULL; /* stays the caller's */
        nccl_close(&comm->base);
        return nw_fail_at(rc, error.lib, error.lib_code, error.where, "%s", error.text);
    }
    *comm_out = &comm->base;
    return NW_OK;
}
