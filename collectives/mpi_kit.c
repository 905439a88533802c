#include "collectives/mpi_kit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collectives/comm.h"

/* MPI_User_function: inout = inout op in. */
#define USER_FUNCTION(name, type, op)                                                              \
    static void name(void *in, void *inout, int *count, MPI_Datatype *mpi_type)                    \
    {                                                                                              \
        (void)mpi_type;                                                                            \
        nw_reduce_into((type), (op), inout, in, (size_t)*count);                                   \
    }
#define USER_FUNCTIONS(suffix, type)                                                               \
    USER_FUNCTION(sum_##suffix, type, NW_SUM)                                                      \
    USER_FUNCTION(prod_##suffix, type, NW_PROD)                                                    \
    USER_FUNCTION(min_##suffix, type, NW_MIN)                                                      \
    USER_FUNCTION(max_##suffix, type, NW_MAX)
USER_FUNCTIONS(half, NW_HALF)
USER_FUNCTIONS(bfloat16, NW_BFLOAT16)

static const nw_dtype own_types[] = {NW_HALF, NW_BFLOAT16};
#define OWN_TYPE_COUNT (sizeof own_types / sizeof *own_types)
#define OWN_OP_COUNT   4 /* sum, prod, min, max */

static MPI_User_function *const own_functions[OWN_TYPE_COUNT][OWN_OP_COUNT] = {
    {sum_half, prod_half, min_half, max_half},
    {sum_bfloat16, prod_bfloat16, min_bfloat16, max_bfloat16},
};

static void set_plain(struct nw_mpi_kit *kit)
{
    const MPI_Datatype types[NW_DTYPE_COUNT] = {
        [NW_INT8] = MPI_INT8_T,        [NW_UINT8] = MPI_UINT8_T,
        [NW_INT32] = MPI_INT32_T,      [NW_UINT32] = MPI_UINT32_T,
        [NW_INT64] = MPI_INT64_T,      [NW_UINT64] = MPI_UINT64_T,
        [NW_HALF] = MPI_DATATYPE_NULL, [NW_FLOAT] = MPI_FLOAT,
        [NW_DOUBLE] = MPI_DOUBLE,      [NW_BFLOAT16] = MPI_DATATYPE_NULL,
    };
    for (int type = 0; type < NW_DTYPE_COUNT; type++) {
        kit->types[type] = types[type];
        kit->ops[type][NW_SUM] = kit->ops[type][NW_AVG] = MPI_SUM;
        kit->ops[type][NW_PROD] = MPI_PROD;
        kit->ops[type][NW_MIN] = MPI_MIN;
        kit->ops[type][NW_MAX] = MPI_MAX;
    }
}

nw_rc nw_mpi_kit_make(struct nw_mpi_kit **kit_out)
{
    struct nw_mpi_kit *kit = calloc(1, sizeof *kit);
    if (!kit)
        return nw_fail(NW_ENOMEM, "cannot keep MPI's types");
    kit->reference_count = 1;
    set_plain(kit);
    int code = MPI_SUCCESS;
    for (size_t i = 0; i < OWN_TYPE_COUNT && code == MPI_SUCCESS; i++) {
        const nw_dtype type = own_types[i];
        code = MPI_Type_contiguous(2, MPI_BYTE, &kit->types[type]);
        if (code == MPI_SUCCESS)
            code = MPI_Type_commit(&kit->types[type]);
        for (int op = NW_SUM; op < OWN_OP_COUNT && code == MPI_SUCCESS; op++)
            code = MPI_Op_create(own_functions[i][op], 1, &kit->ops[type][op]);
        kit->ops[type][NW_AVG] = kit->ops[type][NW_SUM];
    }
    if (code != MPI_SUCCESS) {
        free(kit); /* the few handles made so far die with MPI */
        return nw_fail_lib(NW_ELIB, "mpi", code, "cannot define 16-bit floats for MPI");
    }
    *kit_out = kit;
    return NW_OK;
}

struct nw_mpi_kit *nw_mpi_kit_hold(struct nw_mpi_kit *kit)
{
    kit->reference_count++;
    return kit;
}

void nw_mpi_kit_release(struct nw_mpi_kit *kit)
{
    if (--kit->reference_count > 0)
        return;
    int finalized = 1;
    MPI_Finalized(&finalized);
    for (size_t i = 0; i < OWN_TYPE_COUNT && !finalized; i++) {
        MPI_Type_free(&kit->types[own_types[i]]);
        for (int op = NW_SUM; op < OWN_OP_COUNT; op++)
            MPI_Op_free(&kit->ops[own_types[i]][op]);
    }
    free(kit);
}

/* MPICH writes a table, whose first row is "MPICH Version:      4.0.2". */
void nw_mpi_name(char *text, size_t size)
{
    static const char mpich[] = "MPICH Version:";
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    const char *own = version;
    int length = 0;

    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    if (strncmp(version, mpich, sizeof mpich - 1) != 0) {
        snprintf(text, size, "%s", version);
        return;
    }
    own += sizeof mpich - 1;
    own += strspn(own, " \t");
    snprintf(text, size, "MPICH %.*s", (int)strcspn(own, " \t"), own);
}

static bool has_rdma_device(void)
{
    DIR *directory = opendir("/sys/class/infiniband");
    bool found = false;
    if (!directory)
        return false;
    for (const struct dirent *entry; !found && (entry = readdir(directory));)
        found = entry->d_name[0] != '.';
    closedir(directory);
    return found;
}

/* May one process read another's memory, as shared-memory transports do with a single copy?
 * Containers often forbid it (seccomp profile without CAP_SYS_PTRACE); then also on oneself. */
static bool may_read_processes(void)
{
    char from = 1, to = 0;
    const struct iovec here = {.iov_base = &to, .iov_len = 1};
    const struct iovec there = {.iov_base = &from, .iov_len = 1};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

const char *nw_mpi_restriction(void)
{
    if (may_read_processes())
        return NULL;
    return "this container forbids process_vm_readv: messages between ranks of one host are copied "
           "twice";
}

/* Keep Open MPI from printing on stderr about transports that this machine cannot have: it warns of
 * absent RDMA devices, and prints two lines a message where single copies are refused. What the
 * user has set stays. */
static void quieten(void)
{
    if (!has_rdma_device())
        setenv("OMPI_MCA_btl_base_warn_component_unused", "0", 0);
    if (!may_read_processes())
        setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
}

static nw_rc start(int *argc, char ***argv, int wanted)
{
    int provided = 0;
    quieten();
    int code = MPI_Init_thread(argc, argv, wanted, &provided);
    if (code != MPI_SUCCESS)
        return nw_fail_lib(NW_ELIB, "mpi", code, "MPI could not be started");
    if (wanted == MPI_THREAD_MULTIPLE && provided < wanted)
        return nw_fail(NW_ENOTSUP,
                       "this MPI lets no several threads call it at once (thread level %d of %d): "
                       "messages cannot be hidden behind computation; use one that does",
                       provided, wanted);
    return NW_OK;
}

nw_rc nw_mpi_start(int *argc, char ***argv)
{
    return start(argc, argv, MPI_THREAD_FUNNELED);
}

nw_rc nw_mpi_start_threads(void)
{
    return start(NULL, NULL, MPI_THREAD_MULTIPLE);
}

void nw_mpi_stop(void)
{
    int started = 0, finalized = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&finalized);
    if (started && !finalized)
        MPI_Finalize();
}

void nw_mpi_abort(int exit_code)
{
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    abort();
}
