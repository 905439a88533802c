/* What NCCL is asked to use besides: registered buffers, symmetric windows, limits on its CTAs.
 * What a library or machine has not is said, and left out of the records.
 *
 * Buffers are registered when they are exposed, with every communicator of the GPU; communicators
 * split later take them over. Windows are made by all ranks together, in the same order, so
 * everything here is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/comm_nccl.h"

/* A granule of the driver's memory mapping, which ncclMemAlloc rounds up to. */
#define TRY_BYTES (2u << 20)

static const struct feature {
    unsigned bit;
    const char *name, *record; /* the option's; nw_record.features' */
    const char *lacking, *since;
} features[] = {
    {NW_NCCL_GRAPH, "graph", "graph", "the driver has no CUDA graphs", "CUDA 11.4"},
    {NW_NCCL_REGISTER, "register", "registered", "it has no ncclMemAlloc and ncclCommRegister",
     "NCCL 2.19"},
    {NW_NCCL_WINDOW, "window", "window", "it has no ncclCommWindowRegister", "NCCL 2.27"},
    {NW_NCCL_CTAS, "ctas", "ctas", "its configuration has no minCTAs and maxCTAs", "NCCL 2.17"},
};
#define FEATURE_COUNT (sizeof features / sizeof *features)

static bool can_capture(const struct nccl_gpu *gpu)
{
    const struct nw_dev_ops *ops = gpu->dev->ops;
    struct nw_graph *graph = NULL;
    nw_rc rc = ops->graph_begin != NULL ? ops->graph_begin(gpu->stream) : NW_ENOTSUP;

    if (rc == NW_OK)
        rc = ops->graph_end(gpu->stream, &graph);
    if (rc == NW_OK)
        ops->graph_close(graph);
    nw_clear_error();
    return rc == NW_OK;
}

unsigned nw_nccl_can(const struct nccl_gpu *gpu)
{
    const struct nw_nccl_api *nccl = gpu->nccl;
    const bool memory = nccl->mem_alloc != NULL && nccl->mem_free != NULL;
    unsigned can = 0;

    if (can_capture(gpu))
        can |= NW_NCCL_GRAPH;
    if (memory && nccl->comm_register != NULL && nccl->comm_deregister != NULL)
        can |= NW_NCCL_REGISTER;
    if (memory && nccl->window_register != NULL && nccl->window_deregister != NULL)
        can |= NW_NCCL_WINDOW;
    /* Fields of a structure show in no symbol. */
    if (nccl->comm_init_rank_config != NULL && nccl->version >= 21700)
        can |= NW_NCCL_CTAS;
    if (nccl->comm_split != NULL)
        can |= NCCL_CAN_SPLIT;
    return can;
}

nw_rc nw_nccl_features_choose(const struct nw_comm *bootstrap, const struct nccl_about *all,
                              struct nccl_gpu *gpu, struct nw_findings *findings)
{
    gpu->can = ~0u;
    for (int rank = 0; rank < bootstrap->rank_count; rank++)
        gpu->can &= all[rank].can;
    gpu->features = gpu->wish.features & gpu->can;
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        const struct feature *feature = &features[i];
        char version[24], who[NW_COMM_RANK_TEXT];
        int rank = 0;

        if (!(gpu->wish.features & ~gpu->can & feature->bit))
            continue;
        while (all[rank].can & feature->bit)
            rank++;
        NW_TRY(
            nw_findings_add(findings, NW_FINDING_INFO, "nccl-feature-absent", feature->name, NULL,
                            "%s needs %s; %s has NCCL %s (driver %s): %s. Measured without it",
                            feature->name, feature->since, nw_comm_rank_text(bootstrap, rank, who),
                            nw_nccl_version_text(all[rank].nccl_version, version), all[rank].driver,
                            feature->lacking));
    }
    return NW_OK;
}

/* ---- one buffer, one communicator ---------------------------------------------------------------
 */

static nw_rc enter(const struct nccl_gpu *gpu)
{
    void *handle;

    return gpu->dev->ops->native(gpu->stream, &handle);
}

static void let_go(struct nccl_comm *comm, struct nccl_grip *grip)
{
    const struct nw_nccl_api *nccl = comm->gpu->nccl;

    if (comm->handle != NULL && enter(comm->gpu) == NW_OK) {
        snprintf(comm->last, sizeof comm->last, "giving up a registered buffer");
        if (grip->window != NULL)
            (void)nw_nccl_settle(comm, nccl->window_deregister(comm->handle, grip->window));
        if (grip->handle != NULL && comm->handle != NULL)
            (void)nw_nccl_settle(comm, nccl->comm_deregister(comm->handle, grip->handle));
    }
    free(grip);
}

/* NULL handles where NCCL succeeds and does nothing: registration or windows are off, or GPUs do
 * not reach each other's memory. NCCL writes the window when the call is settled. */
static nw_rc take_hold(struct nccl_comm *comm, void *memory, uint64_t bytes, unsigned wanted,
                       struct nccl_grip **grip_out)
{
    const struct nw_nccl_api *nccl = comm->gpu->nccl;
    struct nccl_grip *grip = calloc(1, sizeof *grip);
    nw_rc rc;

    if (grip == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a registered buffer");
    grip->memory = memory;
    rc = enter(comm->gpu);
    if (rc == NW_OK && wanted & NW_NCCL_REGISTER) {
        snprintf(comm->last, sizeof comm->last, "ncclCommRegister");
        rc = nw_nccl_settle(comm, nccl->comm_register(comm->handle, memory, bytes, &grip->handle));
    }
    if (rc == NW_OK && wanted & NW_NCCL_WINDOW) {
        snprintf(comm->last, sizeof comm->last, "ncclCommWindowRegister");
        rc = nw_nccl_settle(comm, nccl->window_register(comm->handle, memory, bytes, &grip->window,
                                                        NW_NCCL_WINDOW_SYMMETRIC));
    }
    if (rc == NW_ETIMEOUT) /* NCCL may still write into it */
        return rc;
    if (rc != NW_OK) {
        free(grip);
        return rc;
    }
    *grip_out = grip;
    return NW_OK;
}

static unsigned registering(const struct nccl_gpu *gpu)
{
    return gpu->features & (NW_NCCL_REGISTER | NW_NCCL_WINDOW);
}

static nw_rc expose_to(struct nccl_comm *comm, const struct nccl_buffer *buffer)
{
    struct nccl_grip *grip;

    NW_TRY(take_hold(comm, buffer->memory, buffer->bytes, registering(comm->gpu), &grip));
    grip->next = comm->grips;
    comm->grips = grip;
    return NW_OK;
}

/* ---- all of them --------------------------------------------------------------------------------
 */

nw_rc nw_nccl_expose(struct nw_comm *base, void *memory, uint64_t bytes)
{
    struct nccl_gpu *gpu = ((struct nccl_comm *)base)->gpu;
    struct nccl_buffer *buffer = gpu->buffers;

    (void)bytes; /* all of it */
    while (buffer != NULL && buffer->memory != memory)
        buffer = buffer->next;
    if (buffer == NULL || buffer->bytes == 0 || registering(gpu) == 0)
        return NW_OK;
    buffer->exposed = true;
    for (struct nccl_comm *comm = gpu->comms; comm != NULL; comm = comm->next)
        NW_TRY(expose_to(comm, buffer));
    return NW_OK;
}

nw_rc nw_nccl_expose_all(struct nccl_comm *comm)
{
    for (struct nccl_buffer *buffer = comm->gpu->buffers; buffer != NULL; buffer = buffer->next)
        if (buffer->exposed)
            NW_TRY(expose_to(comm, buffer));
    return NW_OK;
}

void nw_nccl_conceal_all(struct nccl_comm *comm)
{
    while (comm->grips != NULL) {
        struct nccl_grip *grip = comm->grips;

        comm->grips = grip->next;
        let_go(comm, grip);
    }
}

static void conceal(struct nccl_comm *comm, const void *memory)
{
    for (struct nccl_grip **at = &comm->grips; *at != NULL; at = &(*at)->next) {
        struct nccl_grip *grip = *at;

        if (grip->memory != memory)
            continue;
        *at = grip->next;
        let_go(comm, grip);
        return;
    }
}

static nw_rc alloc_by_nccl(struct nccl_gpu *gpu, uint64_t bytes, void **memory_out)
{
    void *memory = NULL;
    int code;

    NW_TRY(enter(gpu));
    code = gpu->nccl->mem_alloc(&memory, bytes);
    if (code != NW_NCCL_SUCCESS)
        return nw_nccl_fail(gpu->nccl, NULL, code, "gpu %d: ncclMemAlloc of %llu bytes",
                            gpu->dev->index, (unsigned long long)bytes);
    *memory_out = memory;
    return NW_OK;
}

nw_rc nw_nccl_alloc(struct nw_comm *base, uint64_t bytes, void **memory_out)
{
    struct nccl_gpu *gpu = ((struct nccl_comm *)base)->gpu;
    struct nccl_buffer *buffer;
    nw_rc rc;

    if (registering(gpu) == 0 || bytes == 0)
        return gpu->dev->ops->alloc(gpu->dev, NW_SPACE_DEVICE, bytes, memory_out);
    buffer = calloc(1, sizeof *buffer);
    if (buffer == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a buffer");
    rc = alloc_by_nccl(gpu, bytes, &buffer->memory);
    if (rc != NW_OK) {
        free(buffer);
        return rc;
    }
    buffer->bytes = bytes;
    buffer->next = gpu->buffers;
    gpu->buffers = buffer;
    *memory_out = buffer->memory;
    return NW_OK;
}

void nw_nccl_free(struct nw_comm *base, void *memory)
{
    struct nccl_gpu *gpu = ((struct nccl_comm *)base)->gpu;
    struct nccl_buffer **at = &gpu->buffers;

    if (gpu->given_up) /* a kernel may still stand on it; it ends with the process */
        return;
    while (*at != NULL && (*at)->memory != memory)
        at = &(*at)->next;
    if (*at == NULL) {
        gpu->dev->ops->free(gpu->dev, NW_SPACE_DEVICE, memory);
        return;
    }
    struct nccl_buffer *buffer = *at;

    *at = buffer->next;
    for (struct nccl_comm *comm = gpu->comms; comm != NULL; comm = comm->next)
        conceal(comm, memory);
    if (!gpu->given_up && enter(gpu) == NW_OK)
        gpu->nccl->mem_free(memory);
    free(buffer);
}

/* ---- does it work here? -------------------------------------------------------------------------
 */

static nw_rc try_alone(struct nccl_comm *comm, unsigned *works_out)
{
    struct nccl_grip *grip;
    void *memory;
    nw_rc rc;

    NW_TRY(alloc_by_nccl(comm->gpu, TRY_BYTES, &memory));
    rc = take_hold(comm, memory, TRY_BYTES, registering(comm->gpu), &grip);
    if (rc == NW_OK) {
        *works_out = (grip->handle != NULL ? NW_NCCL_REGISTER : 0u) |
                     (grip->window != NULL ? NW_NCCL_WINDOW : 0u);
        let_go(comm, grip);
    }
    if (!comm->gpu->given_up)
        comm->gpu->nccl->mem_free(memory);
    return rc;
}

static void name_in_records(struct nccl_comm *comm)
{
    const struct nccl_gpu *gpu = comm->gpu;
    char *text = comm->base.features;
    const size_t size = sizeof comm->base.features;
    size_t length = 0;

    text[0] = '\0';
    comm->base.graphs = gpu->features & NW_NCCL_GRAPH;
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        if (!(gpu->features & features[i].bit))
            continue;
        length += (size_t)snprintf(text + length, size - length, "%s%s", length > 0 ? "," : "",
                                   features[i].record);
        if (features[i].bit == NW_NCCL_CTAS && gpu->wish.min_ctas == gpu->wish.max_ctas)
            length += (size_t)snprintf(text + length, size - length, "=%d", gpu->wish.max_ctas);
        else if (features[i].bit == NW_NCCL_CTAS)
            length += (size_t)snprintf(text + length, size - length, "=%d-%d", gpu->wish.min_ctas,
                                       gpu->wish.max_ctas);
    }
}

nw_rc nw_nccl_features_try(struct nccl_comm *comm, struct nw_findings *findings)
{
    static const struct {
        unsigned bit;
        const char *name, *text, *remedy;
    } refused[] = {
        {NW_NCCL_REGISTER, "register",
         "ncclCommRegister succeeds and registers nothing. Measured without it",
         "unset NCCL_LOCAL_REGISTER"},
        {NW_NCCL_WINDOW, "window",
         "ncclCommWindowRegister succeeds and gives no window: GPUs here do not reach each other's "
         "memory, or windows are off. Measured without it",
         "look at NCCL_P2P_DISABLE, NCCL_WIN_ENABLE and NCCL_CUMEM_ENABLE"},
    };
    struct nccl_gpu *gpu = comm->gpu;
    unsigned works = 0, *all;

    name_in_records(comm);
    if (registering(gpu) == 0)
        return NW_OK;
    NW_TRY(try_alone(comm, &works));
    all = calloc((size_t)comm->base.rank_count, sizeof *all);
    if (all == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the features of %d ranks", comm->base.rank_count);
    nw_rc rc = comm->bootstrap->ops->exchange(comm->bootstrap, &works, sizeof works, all);

    for (int rank = 0; rank < comm->base.rank_count; rank++)
        works &= all[rank];
    free(all);
    for (size_t i = 0; i < sizeof refused / sizeof *refused && rc == NW_OK; i++) {
        if (!(gpu->features & refused[i].bit) || works & refused[i].bit)
            continue;
        gpu->features &= ~refused[i].bit;
        rc = nw_findings_add(findings, NW_FINDING_INFO, "nccl-feature-absent", refused[i].name,
                             refused[i].remedy, "%s", refused[i].text);
    }
    name_in_records(comm);
    return rc;
}
