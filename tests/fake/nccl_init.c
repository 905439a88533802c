/* Making communicators: from a unique id, or out of another one; at once, in the background, or at
 * the end of a group. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "tests/fake/nccl_comm.h"
#include "tests/fake/nccl_group.h"

#define ID_MAGIC "SIMULATED"
/* NCCL takes this order of time on a machine of 8 GPUs. */
#define INIT_US 150000.0

/* A communicator that is being made. */
struct birth {
    ncclComm_t *out, comm;
    ncclComm_t parent; /* ncclCommSplit */
    ncclConfig_t config;
    int color, key;
    ncclResult_t code;
    pthread_t thread;
    bool late; /* a split in the background */
};

static _Thread_local struct {
    struct birth *births[64];
    int count;
} pending;

static atomic_long init_calls;

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    unsigned char random[16];
    if (!id)
        return fk_nccl_fail(NULL, ncclInvalidArgument, "the id is NULL");
    memset(id, 0, sizeof *id);
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return ncclSystemError;
    int at = sprintf(id->internal, ID_MAGIC);
    for (size_t i = 0; i < sizeof random; i++)
        at += sprintf(id->internal + at, "%02x", random[i]);
    return ncclSuccess;
}

ncclComm_t fk_comm_new(int rank_count, int rank, const char *id, struct CUctx_st *context,
                       const ncclConfig_t *config)
{
    ncclComm_t comm = calloc(1, sizeof *comm);
    if (!comm)
        return NULL;
    comm->rank_count = rank_count;
    comm->rank = rank;
    comm->context = context;
    snprintf(comm->id, sizeof comm->id, "%s", id);
    comm->config.blocking = 1;
    if (config)
        memcpy(&comm->config, config,
               config->size < sizeof comm->config ? config->size : sizeof comm->config);
    if (comm->config.blocking == FK_NCCL_UNDEF)
        comm->config.blocking = 1;
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->changed, NULL);
    comm->lane = fk_machine_lane(fk_machine());
    return comm;
}

void fk_comm_free(ncclComm_t comm)
{
    fk_segment_close(comm);
    pthread_cond_destroy(&comm->changed);
    pthread_mutex_destroy(&comm->lock);
    free(comm);
}

/* The host, as NCCL tells hosts apart: by name, or NCCL_HOSTID. */
static uint64_t host_hash(void)
{
    char name[128] = "";
    const char *given = getenv("NCCL_HOSTID");
    if (given)
        snprintf(name, sizeof name, "%s", given);
    else
        gethostname(name, sizeof name - 1);
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return hash;
}

static ncclResult_t take_seat(ncclComm_t comm)
{
    struct fk_segment *segment = comm->segment;
    struct fk_seat *seat = &segment->seats[comm->rank];
    int none = 0;
    if (!atomic_compare_exchange_strong(&segment->rank_count, &none, comm->rank_count) &&
        none != comm->rank_count)
        return fk_nccl_fail(comm, ncclInvalidArgument, "rank %d says %d ranks, others %d",
                            comm->rank, comm->rank_count, none);
    if (atomic_exchange(&seat->taken, 1))
        return fk_nccl_fail(comm, ncclInvalidUsage, "rank %d is there twice", comm->rank);
    seat->host = host_hash();
    seat->bus = fk_machine()->gpus[fk_context_gpu(comm->context)].bus;
    seat->host_ps = fk_host_ps();
    if (atomic_fetch_add(&segment->joined, 1) + 1 == comm->rank_count)
        fk_segment_forget(comm);
    while (atomic_load(&segment->joined) < comm->rank_count) {
        if (atomic_load(&comm->aborted)) {
            fk_segment_forget(comm);
            return ncclInternalError;
        }
        fk_pause();
    }
    return ncclSuccess;
}

static ncclResult_t look_around(ncclComm_t comm)
{
    const struct fk_seat *seats = comm->segment->seats;
    int64_t latest_ps = 0;
    for (int r = 0; r < comm->rank_count; r++) {
        comm->hosts[r] = seats[r].host;
        if (seats[r].host != seats[comm->rank].host)
            comm->wire = fk_machine_wire(fk_machine());
        if (seats[r].host_ps > latest_ps)
            latest_ps = seats[r].host_ps;
        if (r != comm->rank && seats[r].host == seats[comm->rank].host &&
            seats[r].bus == seats[comm->rank].bus)
            return fk_nccl_fail(comm, ncclInvalidUsage,
                                "Duplicate GPU detected : rank %d and rank %d both on CUDA device "
                                "%x0",
                                comm->rank, r, seats[r].bus);
    }
    fk_host_reach(latest_ps); /* all ranks leave at the same time */
    fk_host_spend(INIT_US);
    return ncclSuccess;
}

static ncclResult_t start_with_faults(ncclComm_t comm)
{
    const struct fk_faults faults =
        fk_faults_of("init", comm->rank, atomic_fetch_add(&init_calls, 1) + 1, 0);
    if (fk_fault_has(&faults, FK_FAULT_CRASH))
        raise(SIGKILL);
    if (fk_fault_has(&faults, FK_FAULT_ERROR))
        return fk_nccl_fail(comm, ncclSystemError, "simulated: unhandled system error in init");
    if (fk_fault_has(&faults, FK_FAULT_OOM))
        return fk_nccl_fail(comm, ncclUnhandledCudaError,
                            "simulated: Cuda failure 2 'out of memory'");
    if (fk_fault_has(&faults, FK_FAULT_ASYNC))
        return fk_nccl_fail(comm, ncclRemoteError, "simulated: a network error in init");
    while (fk_fault_has(&faults, FK_FAULT_INITHANG) || fk_fault_has(&faults, FK_FAULT_HANG)) {
        if (atomic_load(&comm->aborted))
            return ncclInternalError;
        fk_pause();
    }
    return ncclSuccess;
}

static ncclResult_t start(ncclComm_t comm)
{
    ncclResult_t code = start_with_faults(comm);
    if (code == ncclSuccess)
        code = fk_segment_open(comm);
    if (code == ncclSuccess)
        code = take_seat(comm);
    if (code == ncclSuccess)
        code = look_around(comm);
    /* Nobody reads a seat any more. */
    if (code == ncclSuccess && !fk_barrier(comm, &comm->segment->on_host))
        code = ncclInternalError;
    return code;
}

/* Who is in my part of a split: the ranks of my colour by key, then by rank. */
static ncclResult_t part(struct birth *birth)
{
    ncclComm_t parent = birth->parent;
    struct fk_seat *seats = parent->segment->seats;
    char id[64];
    int count = 0, rank = 0;
    seats[parent->rank].color = birth->color;
    seats[parent->rank].key = birth->key;
    if (!fk_barrier(parent, &parent->segment->on_host))
        return ncclInternalError;
    for (int r = 0; r < parent->rank_count; r++) {
        if (seats[r].color != birth->color)
            continue;
        count++;
        rank += seats[r].key < birth->key || (seats[r].key == birth->key && r < parent->rank);
    }
    if (!fk_barrier(parent, &parent->segment->on_host))
        return ncclInternalError;
    snprintf(id, sizeof id, "%.40s-%d.%d", parent->id, ++parent->children, birth->color);
    if (birth->color < 0)
        return ncclSuccess;
    birth->comm = fk_comm_new(count, rank, id, parent->context, &birth->config);
    return birth->comm ? ncclSuccess : ncclSystemError;
}

static void *be_born(void *argument)
{
    struct birth *birth = argument;
    const ncclComm_t comm = birth->comm;
    fk_set_context(birth->parent ? birth->parent->context : comm->context);
    birth->code = birth->parent ? part(birth) : ncclSuccess;
    if (birth->parent)
        atomic_store(&birth->parent->child, birth->comm);
    if (birth->code == ncclSuccess && birth->comm)
        birth->code = start(birth->comm);
    if (birth->parent)
        atomic_store(&birth->parent->child, NULL);
    if (birth->comm)
        atomic_store(&birth->comm->state, birth->code);
    if (birth->late) { /* the part is there when its parent is ready again */
        if (birth->code == ncclSuccess)
            *birth->out = birth->comm;
        atomic_store(&birth->parent->state, birth->code);
    }
    return NULL;
}

/* For the blocking kinds: the result, or nothing. */
static ncclResult_t hand_over(struct birth *birth)
{
    const ncclResult_t code = birth->code;
    if (code != ncclSuccess && birth->comm) {
        if (birth->comm->segment)
            fk_segment_forget(birth->comm);
        fk_comm_free(birth->comm);
        birth->comm = NULL;
    }
    *birth->out = birth->comm;
    free(birth);
    return code;
}

static void *be_born_alone(void *argument)
{
    be_born(argument);
    free(argument);
    return NULL;
}

static ncclResult_t in_background(struct birth *birth)
{
    ncclComm_t comm = birth->parent ? birth->parent : birth->comm;
    birth->late = birth->parent != NULL;
    *birth->out = birth->comm;
    if (birth->late && comm->init_threaded)
        pthread_join(comm->init_thread, NULL);
    atomic_store(&comm->state, ncclInProgress);
    comm->init_threaded = true;
    if (pthread_create(&comm->init_thread, NULL, be_born_alone, birth) != 0)
        fk_die("no thread for a communicator");
    return ncclInProgress;
}

static ncclResult_t deliver(struct birth *birth)
{
    if (fk_group_is_open()) {
        if (pending.count == (int)(sizeof pending.births / sizeof *pending.births))
            return fk_nccl_fail(NULL, ncclInvalidUsage, "too many communicators in a group");
        pending.births[pending.count++] = birth;
        return ncclSuccess;
    }
    if (!(birth->parent ? birth->parent : birth->comm)->config.blocking)
        return in_background(birth);
    struct CUctx_st *context = fk_context();
    be_born(birth);
    fk_set_context(context);
    return hand_over(birth);
}

ncclResult_t fk_group_run_inits(void)
{
    ncclResult_t code = ncclSuccess;
    bool threaded[64];
    for (int i = 0; i < pending.count; i++) {
        struct birth *birth = pending.births[i];
        threaded[i] = (birth->parent ? birth->parent : birth->comm)->config.blocking;
        if (!threaded[i])
            code = in_background(birth);
        else if (pthread_create(&birth->thread, NULL, be_born, birth) != 0)
            fk_die("no thread for a communicator");
    }
    for (int i = 0; i < pending.count; i++) {
        if (!threaded[i])
            continue;
        pthread_join(pending.births[i]->thread, NULL);
        const ncclResult_t one = hand_over(pending.births[i]);
        code = code == ncclSuccess ? one : code;
    }
    pending.count = 0;
    return code;
}

static ncclResult_t check_config(const ncclConfig_t *config)
{
    if (!config)
        return ncclSuccess;
    if (config->magic != FK_NCCL_CONFIG_MAGIC || config->size < 20)
        return fk_nccl_fail(NULL, ncclInvalidArgument, "the configuration is not initialised");
    const bool unset = config->blocking == FK_NCCL_UNDEF && FAKE_NCCL_VERSION >= 21700;
    if (config->blocking != 0 && config->blocking != 1 && !unset)
        return fk_nccl_fail(NULL, ncclInvalidArgument, "blocking = %d", config->blocking);
    /* NCCL compares them also where only one is set. */
    if (config->size >= offsetof(ncclConfig_t, netName) && config->minCTAs > config->maxCTAs)
        return fk_nccl_fail(NULL, ncclInvalidArgument, "minCTAs %d, maxCTAs %d", config->minCTAs,
                            config->maxCTAs);
    return ncclSuccess;
}

static ncclResult_t init(ncclComm_t *out, int rank_count, const ncclUniqueId *id, int rank,
                         const ncclConfig_t *config)
{
    struct CUctx_st *context = fk_context();
    const ncclResult_t good = check_config(config);
    if (good != ncclSuccess)
        return good;
    if (!out || rank_count < 1 || rank_count > FK_MAX_RANKS || rank < 0 || rank >= rank_count)
        return fk_nccl_fail(NULL, ncclInvalidArgument, "rank %d of %d", rank, rank_count);
    if (strncmp(id->internal, ID_MAGIC, strlen(ID_MAGIC)) != 0)
        return fk_nccl_fail(NULL, ncclInvalidArgument, "no id of this library's ncclGetUniqueId");
    if (!context)
        context = fk_context_of_ordinal(0);
    if (!context)
        return fk_nccl_fail(NULL, ncclUnhandledCudaError, "no CUDA device");
    struct birth *birth = calloc(1, sizeof *birth);
    ncclComm_t comm =
        fk_comm_new(rank_count, rank, id->internal + strlen(ID_MAGIC), context, config);
    if (!birth || !comm) {
        free(birth);
        free(comm);
        return ncclSystemError;
    }
    birth->out = out;
    birth->comm = comm;
    return deliver(birth);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    return init(comm, nranks, &id, rank, NULL);
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devices)
{
    struct CUctx_st *context = fk_context();
    ncclUniqueId id;
    ncclResult_t code = ncclGetUniqueId(&id);
    ncclGroupStart();
    for (int i = 0; i < ndev && code == ncclSuccess; i++) {
        fk_set_context(fk_context_of_ordinal(devices ? devices[i] : i));
        code = fk_context() ? init(&comms[i], ndev, &id, i, NULL)
                            : fk_nccl_fail(NULL, ncclInvalidUsage, "no GPU %d", i);
    }
    fk_set_context(context);
    const ncclResult_t end = ncclGroupEnd();
    return code == ncclSuccess ? end : code;
}

#if FAKE_NCCL_VERSION >= 21403
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    return init(comm, nranks, &id, rank, config);
}
#endif

#if FAKE_NCCL_VERSION >= 22304
ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank, int ids,
                                      ncclUniqueId *id, ncclConfig_t *config)
{
    if (ids < 1 || ids > nranks || !id)
        return fk_nccl_fail(NULL, ncclInvalidArgument, "%d ids for %d ranks", ids, nranks);
    return init(comm, nranks, id, rank, config);
}
#endif

#if FAKE_NCCL_VERSION >= 21801
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *other,
                           ncclConfig_t *config)
{
    ncclResult_t good = fk_nccl_usable(comm);
    if (good == ncclSuccess)
        good = check_config(config);
    if (good != ncclSuccess)
        return good;
    struct birth *birth = calloc(1, sizeof *birth);
    if (!birth)
        return ncclSystemError;
    *birth = (struct birth){.out = other, .parent = comm, .color = color, .key = key};
    birth->config = comm->config;
    if (config)
        memcpy(&birth->config, config,
               config->size < sizeof *config ? config->size : sizeof *config);
    return deliver(birth);
}
#endif

#if FAKE_NCCL_VERSION >= 22703
ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int excluded_count, ncclComm_t *other,
                            ncclConfig_t *config, int flags)
{
    char id[64];
    int rank = comm->rank, count = comm->rank_count - excluded_count;
    (void)flags;
    (void)config;
    for (int i = 0; i < excluded_count; i++) {
        if (excluded[i] == comm->rank)
            return fk_nccl_fail(comm, ncclInvalidUsage, "an excluded rank shrinks");
        rank -= excluded[i] < comm->rank;
    }
    snprintf(id, sizeof id, "%.40s-%d.s", comm->id, ++comm->children);
    struct birth *birth = calloc(1, sizeof *birth);
    if (!birth)
        return ncclSystemError;
    birth->out = other;
    birth->comm = fk_comm_new(count, rank, id, comm->context, NULL);
    return deliver(birth);
}
#endif
