/* Is the launch what was meant? */
#include <ctype.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/io.h"
#include "collectives/launch.h"

/* ---- what a rank tells --------------------------------------------------------------------------
 */

#define NOTE_ALIGNED(bytes) (((size_t)(bytes) + 3) & ~(size_t)3)

static void hex(const unsigned char *bytes, size_t count, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < count && 2 * i + 3 <= size; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* The program itself is the first one; its notes are in memory. */
static int take_build_id(struct dl_phdr_info *info, size_t info_size, void *argument)
{
    struct nw_launch_rank *rank = argument;

    (void)info_size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const char *at = (const char *)(info->dlpi_addr + header->p_vaddr);
        const char *end = at + header->p_memsz;

        if (header->p_type != PT_NOTE)
            continue;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const void *)at;
            const char *name = at + sizeof *note;
            const char *data = name + NOTE_ALIGNED(note->n_namesz);

            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
                memcmp(name, "GNU", 4) == 0)
                hex((const unsigned char *)data, note->n_descsz, rank->build, sizeof rank->build);
            at = data + NOTE_ALIGNED(note->n_descsz);
        }
    }
    return 1;
}

static void read_boot(char *boot, size_t size)
{
    char *text;
    size_t length;

    if (nw_file_read("/proc/sys/kernel/random/boot_id", 4096, &text, &length) != NW_OK) {
        nw_clear_error();
        return;
    }
    snprintf(boot, size, "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
}

void nw_launch_describe(const struct nw_comm *comm, const char *version,
                        struct nw_launch_rank *rank_out)
{
    struct utsname system;

    memset(rank_out, 0, sizeof *rank_out); /* it is sent whole */
    snprintf(rank_out->version, sizeof rank_out->version, "%s", version);
    snprintf(rank_out->mpi, sizeof rank_out->mpi, "%.60s", comm->library);
    if (uname(&system) == 0)
        snprintf(rank_out->machine, sizeof rank_out->machine, "%.15s", system.machine);
    dl_iterate_phdr(take_build_id, rank_out);
    read_boot(rank_out->boot, sizeof rank_out->boot);
}

/* ---- is every process alone? --------------------------------------------------------------------
 */

nw_rc nw_launch_check_start(const struct nw_launch *launch)
{
    if (launch->launcher == NULL || strcmp(launch->launcher->name, "srun") != 0 ||
        launch->rank_count <= 1 || getenv("PMIX_NAMESPACE") != NULL || getenv("PMI_RANK") != NULL ||
        getenv("PMI_FD") != NULL)
        return NW_OK;
    return nw_fail(
        NW_EUSAGE,
        "srun started %d processes without telling them how to find each other (--mpi=%s)"
        ": %s",
        launch->rank_count, getenv("SLURM_MPI_TYPE") != NULL ? getenv("SLURM_MPI_TYPE") : "none",
        launch->launcher->remedy);
}

/* "16 tasks on 2 nodes", of which one number may be unknown */
static void word_given(const struct nw_launch *launch, char *text, size_t size)
{
    char nodes[32] = "", tasks[32] = "";

    if (launch->host_count > 0)
        snprintf(nodes, sizeof nodes, "%d node%s", launch->host_count,
                 launch->host_count == 1 ? "" : "s");
    if (launch->task_count > 0)
        snprintf(tasks, sizeof tasks, "%d task%s", launch->task_count,
                 launch->task_count == 1 ? "" : "s");
    snprintf(text, size, "%s%s%s", tasks, tasks[0] != '\0' && nodes[0] != '\0' ? " on " : "",
             nodes);
}

static nw_rc judge_alone(const struct nw_launch *launch, const struct nw_comm *comm,
                         struct nw_findings *findings)
{
    char given[80];

    if (comm->rank_count > 1)
        return NW_OK;
    if (launch->launcher != NULL && launch->rank_count > 1)
        return nw_fail(
            NW_EUSAGE,
            "%s started %d processes, and each of them is alone: this nodeworth is built "
            "with %.*s, which did not understand the launcher; %s",
            launch->launcher->name, launch->rank_count, (int)strcspn(comm->library, ","),
            comm->library, launch->launcher->remedy);
    if (launch->launcher != NULL || (launch->task_count <= 1 && launch->host_count <= 1) ||
        launch->hosts_from[0] == '\0')
        return NW_OK;
    word_given(launch, given, sizeof given);
    return nw_findings_add(
        findings, NW_FINDING_WARN, "launcher-missing", comm->host_names[0],
        "srun --mpi=pmix nodeworth …, or mpirun nodeworth …, in the job's script",
        "%s has %s, and this is one process: it was started without srun or mpirun, and measures "
        "one rank",
        launch->hosts_from, given);
}

/* ---- hosts --------------------------------------------------------------------------------------
 */

static int ranks_on(const struct nw_comm *comm, int host)
{
    int count = 0;

    for (int rank = 0; rank < comm->rank_count; rank++)
        count += comm->host_of_rank[rank] == host;
    return count;
}

static nw_rc judge_hosts(const struct nw_launch *launch, const struct nw_comm *comm,
                         struct nw_findings *findings)
{
    const int given = launch->host_count, used = comm->host_count;
    const char *remedy = "mpirun --map-by ppr:RANKS:node, srun --ntasks-per-node=RANKS; or leave "
                         "the hosts out that are not meant";

    if (given <= used || (launch->launcher == NULL && comm->rank_count == 1))
        return NW_OK;
    if (used == 1)
        return nw_findings_add(
            findings, NW_FINDING_WARN, "hosts-unused", comm->host_names[0], remedy,
            "%s has %d hosts, and %s %d rank%s on %s: nothing between hosts is "
            "measured",
            launch->hosts_from, given, comm->rank_count > 1 ? "all" : "the", comm->rank_count,
            comm->rank_count > 1 ? "s are" : " is", comm->host_names[0]);
    return nw_findings_add(findings, NW_FINDING_WARN, "hosts-unused", "all hosts", remedy,
                           "%s has %d hosts, and only %d of them have ranks", launch->hosts_from,
                           given, used);
}

static nw_rc judge_spread(const struct nw_comm *comm, struct nw_findings *findings)
{
    int least = 0, most = 0, fewest = comm->rank_count, greatest = 0;

    for (int host = 0; host < comm->host_count; host++) {
        const int count = ranks_on(comm, host);

        if (count < fewest) {
            fewest = count;
            least = host;
        }
        if (count > greatest) {
            greatest = count;
            most = host;
        }
    }
    if (fewest >= greatest)
        return NW_OK;
    return nw_findings_add(findings, NW_FINDING_WARN, "ranks-uneven", comm->host_names[least],
                           "as many ranks on each host: mpirun --map-by ppr:RANKS:node, srun "
                           "--ntasks-per-node=RANKS, equal slots in the hostfile",
                           "%d rank%s on %s and %d on %s: hosts are not compared alike", fewest,
                           fewest == 1 ? "" : "s", comm->host_names[least], greatest,
                           comm->host_names[most]);
}

/* One boot id is one running kernel: two names on it are containers of one machine, and two of
 * them under one name are two machines. */
static nw_rc judge_machines(const struct nw_launch_rank *all, const struct nw_comm *comm,
                            struct nw_findings *findings)
{
    int shared = -1, with = -1;

    for (int a = 0; a < comm->rank_count; a++) {
        for (int b = 0; b < a; b++) {
            const bool one_host = comm->host_of_rank[a] == comm->host_of_rank[b];
            const bool one_kernel = strcmp(all[a].boot, all[b].boot) == 0;

            if (all[a].boot[0] == '\0' || all[b].boot[0] == '\0' || one_host == one_kernel)
                continue;
            if (one_host)
                return nw_fail(
                    NW_EUSAGE,
                    "ranks %d and %d are on two machines that are both named \"%s\": MPI "
                    "and this program tell hosts apart by their names; give each its own "
                    "(hostnamectl set-hostname NAME)",
                    b, a, comm->host_names[comm->host_of_rank[a]]);
            if (shared < 0) {
                shared = comm->host_of_rank[a];
                with = comm->host_of_rank[b];
            }
        }
    }
    if (shared < 0)
        return NW_OK;
    return nw_findings_add(
        findings, NW_FINDING_WARN, "machine-shared", comm->host_names[shared],
        "place them on different machines (Kubernetes: podAntiAffinity on "
        "kubernetes.io/hostname)",
        "%s and %s run on one kernel: they are containers (or namespaces) of one machine, and what "
        "is measured between them is its memory and its virtual wires, no NIC or cable (unless "
        "their machines were started from one snapshot in memory)",
        comm->host_names[with], comm->host_names[shared]);
}

/* ---- programs -----------------------------------------------------------------------------------
 */

static bool is_dirty(const char *version)
{
    return strstr(version, "-dirty") != NULL;
}

/* May the two read each other's messages? Different machines compile one source to different
 * programs, and so do two builds of one commit. */
static bool may_work(const struct nw_launch_rank *a, const struct nw_launch_rank *b)
{
    if (strncmp(a->version, b->version, sizeof a->version) != 0)
        return false;
    return !is_dirty(a->version) || strncmp(a->machine, b->machine, sizeof a->machine) != 0;
}

static bool is_same(const struct nw_launch_rank *a, const struct nw_launch_rank *b)
{
    return strncmp(a->version, b->version, sizeof a->version) == 0 &&
           (a->build[0] == '\0' || b->build[0] == '\0' ||
            strncmp(a->build, b->build, sizeof a->build) == 0);
}

static nw_rc judge_program(const struct nw_launch_rank *all, const struct nw_comm *comm, int rank,
                           bool strict, struct nw_findings *findings)
{
    const struct nw_launch_rank *a = &all[0], *b = &all[rank];
    const char *where = comm->host_names[comm->host_of_rank[rank]];
    const char *first = comm->host_names[comm->host_of_rank[0]];

    if (strict && !may_work(a, b))
        return nw_fail(
            NW_EUSAGE,
            "rank %d on %s runs another nodeworth (%.63s, build %.12s) than rank 0 on %s "
            "(%.63s, build %.12s): they may not understand each other; copy one program "
            "to all hosts, or start it from a directory that all share",
            rank, where, b->version, b->build, first, a->version, a->build);
    if (strncmp(a->version, b->version, sizeof a->version) != 0)
        return NW_OK; /* check says so itself, host by host */
    return nw_findings_add(findings, NW_FINDING_WARN, "program-differs", where,
                           "copy one program to all hosts, or start it from a directory that all "
                           "share",
                           "nodeworth %.63s is built otherwise on %s (%.12s) than on %s (%.12s): "
                           "times may differ by that",
                           b->version, where, b->build, first, a->build);
}

static nw_rc judge_programs(const struct nw_launch_rank *all, const struct nw_comm *comm,
                            bool strict, struct nw_findings *findings)
{
    for (int rank = 1; rank < comm->rank_count; rank++)
        if (!is_same(&all[0], &all[rank]))
            return judge_program(all, comm, rank, strict, findings);
    return NW_OK;
}

static nw_rc judge_mpi(const struct nw_launch_rank *all, const struct nw_comm *comm,
                       struct nw_findings *findings)
{
    for (int rank = 1; rank < comm->rank_count; rank++)
        if (strncmp(all[rank].mpi, all[0].mpi, sizeof all[0].mpi) != 0)
            return nw_findings_add(
                findings, NW_FINDING_WARN, "mpi-differs",
                comm->host_names[comm->host_of_rank[rank]], "one MPI on all hosts",
                "the MPI library is \"%.63s\" here and \"%.63s\" on %s", all[rank].mpi, all[0].mpi,
                comm->host_names[comm->host_of_rank[0]]);
    return NW_OK;
}

/* ---- all ----------------------------------------------------------------------------------------
 */

nw_rc nw_launch_judge(const struct nw_launch *launch, const struct nw_launch_rank *all,
                      const struct nw_comm *comm, bool strict, struct nw_findings *findings)
{
    NW_TRY(judge_alone(launch, comm, findings));
    NW_TRY(judge_programs(all, comm, strict, findings));
    NW_TRY(judge_machines(all, comm, findings));
    NW_TRY(judge_hosts(launch, comm, findings));
    NW_TRY(judge_spread(comm, findings));
    return judge_mpi(all, comm, findings);
}

nw_rc nw_launch_check(const struct nw_launch *launch, struct nw_comm *comm, const char *version,
                      bool strict)
{
    struct nw_launch_rank mine, *all = calloc((size_t)comm->rank_count, sizeof *all);
    nw_rc rc;

    if (all == NULL)
        return nw_fail(NW_ENOMEM, "no memory for what %d ranks tell", comm->rank_count);
    nw_launch_describe(comm, version, &mine);
    rc = comm->ops->exchange(comm, &mine, sizeof mine, all);
    if (rc == NW_OK)
        rc = nw_launch_judge(launch, all, comm, strict, &comm->findings);
    free(all);
    return rc;
}
