/* Public. How this process was started, and whether the launch is what was meant: a world of one
 * rank under a launcher of several, hosts that were given and have no rank, another program on a
 * node, machines that share a name, names that share a machine.
 *
 *     nw_launch_read(&launch); // before MPI is started
 *     NW_TRY(nw_launch_check_start(&launch));
 *     NW_TRY(nw_mpi_start(&argc, &argv));
 *     NW_TRY(nw_comm_open_mpi(&comm));
 *     rc = nw_launch_check(&launch, comm, version, true); // findings in comm->findings
 */
#ifndef NW_COLLECTIVES_LAUNCH_H
#define NW_COLLECTIVES_LAUNCH_H

#include "base/finding.h"
#include "collectives/comm.h"

struct nw_launcher {
    const char *name;              /* "mpirun of Open MPI" */
    const char *rank, *rank_count; /* environment variables; rank_count NULL: it tells none */
    const char *marker;            /* set by it alone; NULL: `rank` is enough */
    const char *by_rank,
        *by_count;      /* what it started tells its own ranks so: these count, if set */
    const char *remedy; /* when its processes do not find each other */
};
extern const struct nw_launcher nw_launchers[]; /* ends with name NULL */

/* What the surroundings say of the launch, before MPI is started. */
struct nw_launch {
    const struct nw_launcher *launcher; /* NULL: none */
    int rank, rank_count;               /* -1: unknown */
    int host_count;                     /* given to the job; -1: unknown */
    int task_count;                     /* of a Slurm job in whose script this runs; else -1 */
    char hosts_from[96];                /* who gave them: "Slurm's job 12", "--hostfile hosts" */
};

int nw_launch_rank(void);  /* -1: not under a launcher */
int nw_launch_count(void); /* ranks it started; -1: unknown */
/* Before MPI is started: an MPI that finds no launcher sets a launcher's variables itself. Hosts
 * are looked for by rank 0 alone, whose findings are shown. */
void nw_launch_read(struct nw_launch *launch_out);

/* The hosts that a launcher's command line names: `words` are `length` bytes, each word ends with
 * NUL, as in /proc/PID/cmdline; words from `program` on are the program's own. Files are looked for
 * below `directory`. -1: none named, or not to be counted. `from_out`: the option and its file. */
int nw_launch_hosts_in(const char *words, size_t length, const char *program, const char *directory,
                       char *from_out, size_t size);
/* Different first words of the lines of a host file, comments left out; -1: cannot be read. */
int nw_launch_hosts_in_file(const char *path);

/* What every rank tells the others first of all, so that its size must never change: ranks of
 * another version send as much. */
struct nw_launch_rank {
    char version[64];
    char build[48];   /* the linker's build id of the program, in hex; "": it has none */
    char machine[16]; /* uname's: "x86_64" */
    char boot[40];    /* the kernel's boot id: one for each running kernel; "": hidden */
    char mpi[64];     /* version of the MPI library; cut */
    char spare[24];
};
_Static_assert(sizeof(struct nw_launch_rank) == 256, "programs of other versions send 256 bytes");

void nw_launch_describe(const struct nw_comm *comm, const char *version,
                        struct nw_launch_rank *rank_out);

/* `all`: one a rank. NW_EUSAGE, worded: this launch measures nothing that is meant. Programs that
 * differ are refused where `strict`, and a finding otherwise. */
nw_rc nw_launch_judge(const struct nw_launch *launch, const struct nw_launch_rank *all,
                      const struct nw_comm *comm, bool strict, struct nw_findings *findings);

/* Processes that are to be ranks, but no library of MPI can bring together: NW_EUSAGE before MPI
 * ends them with words of its own. */
nw_rc nw_launch_check_start(const struct nw_launch *launch);
/* Collective, first of all on a new communicator. NW_EUSAGE: on all ranks; another failure may be
 * one rank's. Findings go to rank 0's comm->findings. */
nw_rc nw_launch_check(const struct nw_launch *launch, struct nw_comm *comm, const char *version,
                      bool strict);

#endif
