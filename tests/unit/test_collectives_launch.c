#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/launch.h"

#define WORDS(text) (text), sizeof(text) /* the literal's own NUL ends the last word */

static char directory[] = "/tmp/nw-launch-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[64];
    FILE *stream;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    stream = fopen(path, "w");
    cr_assert_not_null(stream);
    fputs(text, stream);
    fclose(stream);
}

static void make_files(void)
{
    cr_assert_not_null(mkdtemp(directory));
    write_file("hosts", "# two nodes\nnode1 slots=8\n\n  root@node2:8 # by ssh\nnode1 slots=4\n");
    write_file("none", "# nothing\n\n");
}

static void remove_files(void)
{
    static const char *const names[] = {"hosts", "none"};
    char path[64];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
}

Test(collectives_launch, hosts_of_a_launchers_command_line, .init = make_files,
     .fini = remove_files)
{
    static const struct {
        const char *words;
        size_t length;
        int hosts;
        const char *from;
    } rows[] = {
        {WORDS("mpirun\0-np\0008\0--host\0node1:8,node2:8\0nodeworth\0run"), 2,
         "--host node1:8,node2:8"},
        {WORDS("mpirun\0-H\0a,b,a\0-H\0c\0./build/nodeworth\0bench"), 3, "-H c"},
        {WORDS("mpirun\0-np\0008\0--hostfile\0hosts\0nodeworth\0run"), 2, "--hostfile hosts"},
        {WORDS("mpiexec.hydra\0-f\0hosts\0-n\0004\0nodeworth\0bench\0-f\0004"), 2, "-f hosts"},
        /* --host takes some of what the file has */
        {WORDS("mpirun\0--hostfile\0hosts\0--host\0node1\0nodeworth\0run"), 1, "--host node1"},
        {WORDS("mpirun\0--host\0node1\0--hostfile\0hosts\0nodeworth\0run"), 1, "--host node1"},
        {WORDS("mpirun\0-np\0002\0nodeworth\0bench\0--hosts\0002\0-f\0hosts"), -1, ""},
        {WORDS("mpirun\0--host\0+n1,+n2\0nodeworth"), -1, NULL}, /* relative to an allocation */
        {WORDS("mpirun\0--hostfile\0absent\0nodeworth"), -1, NULL},
        {WORDS("mpirun\0--hostfile\0none\0nodeworth"), -1, NULL},
        {WORDS("mpirun\0--host"), -1, ""},
        {WORDS(""), -1, ""},
        {"mpirun", 6, -1, ""}, /* cut off */
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char from[96] = "";
        const int hosts = nw_launch_hosts_in(rows[i].words, rows[i].length, "nodeworth", directory,
                                             from, sizeof from);

        cr_expect_eq(hosts, rows[i].hosts, "row %zu: %d hosts", i, hosts);
        if (rows[i].from != NULL)
            cr_expect_str_eq(from, rows[i].from, "row %zu", i);
    }
}

/* Criterion runs each test in a process of its own: the environment is this one's. */
Test(collectives_launch, the_launcher_is_told_by_its_environment)
{
    static const struct {
        const char *set[8]; /* NAME=VALUE; ends with NULL */
        const char *launcher;
        int rank, rank_count, host_count, task_count;
    } rows[] = {
        {{NULL}, NULL, -1, -1, -1, -1},
        {{"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=8", NULL},
         "mpirun of Open MPI",
         3,
         8,
         -1,
         -1},
        /* mpirun in a Slurm job: Slurm's rank is the script's */
        {{"SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=2", "SLURM_PROCID=0", "SLURM_NTASKS=16",
          "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=16", NULL},
         "mpirun of Open MPI",
         0,
         16,
         2,
         -1},
        {{"SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=2", "SLURM_PROCID=0", "SLURM_STEP_ID=0",
          "SLURM_STEP_NUM_TASKS=16", "PMIX_RANK=0", NULL},
         "srun",
         0,
         16,
         2,
         -1},
        /* MPICH's mpiexec in a job: SLURM_PROCID is the proxy's */
        {{"SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=2", "SLURM_PROCID=0", "SLURM_STEP_ID=0",
          "SLURM_STEP_NUM_TASKS=2", "PMI_RANK=5", "PMI_SIZE=16", NULL},
         "srun",
         5,
         16,
         -1,
         -1},
        /* the script itself */
        {{"SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=2", "SLURM_PROCID=0", "SLURM_NTASKS=16", NULL},
         NULL,
         -1,
         -1,
         2,
         16},
        {{"PMI_RANK=1", "PMI_SIZE=2", NULL}, "mpiexec (PMI: MPICH, Intel MPI)", 1, 2, -1, -1},
        {{"RANK=1", "WORLD_SIZE=2", NULL}, NULL, -1, -1, -1, -1},
        {{"RANK=1", "WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=x", NULL}, "torchrun", 1, 2, -1, -1},
        {{"OMPI_COMM_WORLD_RANK=three", "LSB_MCPU_HOSTS=n1 8 n2 8 n3 8", NULL},
         NULL,
         -1,
         -1,
         3,
         -1},
        {{"LSB_MCPU_HOSTS=n1 8 n2", NULL}, NULL, -1, -1, -1, -1},
    };
    static const char *const unset[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "SLURM_JOB_ID",
                                        "SLURM_JOB_NUM_NODES",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "SLURM_STEP_ID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "PMIX_RANK",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "TORCHELASTIC_RUN_ID",
                                        "LSB_MCPU_HOSTS",
                                        "PBS_NODEFILE",
                                        "FLUX_TASK_RANK",
                                        "FLUX_JOB_SIZE",
                                        "FLUX_JOB_NNODES",
                                        "OMPI_MCA_orte_default_hostfile"};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_launch launch;

        for (size_t j = 0; j < sizeof unset / sizeof *unset; j++)
            unsetenv(unset[j]);
        for (size_t j = 0; rows[i].set[j] != NULL; j++)
            putenv((char *)(uintptr_t)rows[i].set[j]);
        nw_launch_read(&launch);
        cr_expect((launch.launcher == NULL) == (rows[i].launcher == NULL), "row %zu", i);
        if (launch.launcher != NULL && rows[i].launcher != NULL)
            cr_expect_str_eq(launch.launcher->name, rows[i].launcher, "row %zu", i);
        cr_expect_eq(launch.rank, rows[i].rank, "row %zu: rank %d", i, launch.rank);
        cr_expect_eq(launch.rank_count, rows[i].rank_count, "row %zu: %d", i, launch.rank_count);
        cr_expect_eq(launch.host_count, rows[i].host_count, "row %zu: %d", i, launch.host_count);
        cr_expect_eq(launch.task_count, rows[i].task_count, "row %zu: %d", i, launch.task_count);
        cr_expect_eq(nw_launch_rank(), rows[i].rank);
    }
}

/* ---- judging ------------------------------------------------------------------------------------
 */

#define RANKS 4

struct sight {
    int rank_count, host_of_rank[RANKS];
    struct nw_launch launch;
    struct nw_launch_rank ranks[RANKS];
};

/* Two hosts of two ranks each, everything right. */
static struct sight healthy(void)
{
    struct sight sight = {.rank_count = RANKS,
                          .host_of_rank = {0, 0, 1, 1},
                          .launch = {.launcher = nw_launchers,
                                     .rank_count = RANKS,
                                     .host_count = 2,
                                     .task_count = -1,
                                     .hosts_from = "--hostfile hosts"}};

    for (int rank = 0; rank < RANKS; rank++)
        sight.ranks[rank] = (struct nw_launch_rank){.version = "1.0",
                                                    .build = "aaaa",
                                                    .machine = "x86_64",
                                                    .boot = {rank < 2 ? 'p' : 'q'},
                                                    .mpi = "Open MPI v4.1.4"};
    return sight;
}

static nw_rc judge(struct sight *sight, bool strict, struct nw_findings *findings)
{
    static char names[3][64] = {"node1", "node2", "node3"};
    struct nw_comm comm = {.rank_count = sight->rank_count,
                           .host_of_rank = sight->host_of_rank,
                           .host_names = names,
                           .library = "Open MPI v4.1.4, package: Debian"};

    for (int rank = 0; rank < sight->rank_count; rank++)
        if (sight->host_of_rank[rank] >= comm.host_count)
            comm.host_count = sight->host_of_rank[rank] + 1;
    return nw_launch_judge(&sight->launch, sight->ranks, &comm, strict, findings);
}

/* Exactly one finding of this code that says this; code NULL: none. */
static void expect_found(struct sight *sight, bool strict, const char *code, const char *text)
{
    struct nw_findings findings = {0};

    cr_expect_eq(judge(sight, strict, &findings), NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(findings.count, code != NULL ? 1 : 0, "%zu findings, the first %s", findings.count,
                 findings.count > 0 ? findings.items[0].code : "");
    if (findings.count == 1 && code != NULL) {
        cr_expect_str_eq(findings.items[0].code, code);
        cr_expect_not_null(strstr(findings.items[0].text, text), "%s: %s", code,
                           findings.items[0].text);
        cr_expect_not_null(findings.items[0].remedy);
    }
    nw_findings_free(&findings);
}

static void expect_refused(struct sight *sight, const char *text)
{
    struct nw_findings findings = {0};

    cr_expect_eq(judge(sight, true, &findings), NW_EUSAGE);
    cr_expect_not_null(strstr(nw_last_error()->text, text), "%s", nw_last_error()->text);
    nw_findings_free(&findings);
}

Test(collectives_launch, a_right_launch_is_not_spoken_of)
{
    struct sight sight = healthy();

    expect_found(&sight, true, NULL, NULL);
    sight.launch = (struct nw_launch){.host_count = -1, .rank_count = -1}; /* nobody tells */
    expect_found(&sight, true, NULL, NULL);
    for (int rank = 0; rank < RANKS; rank++)
        sight.ranks[rank].boot[0] = sight.ranks[rank].build[0] = '\0'; /* hidden */
    expect_found(&sight, true, NULL, NULL);
    sight.rank_count = 1;
    expect_found(&sight, true, NULL, NULL);
}

Test(collectives_launch, hosts_without_ranks_are_said)
{
    struct sight sight = healthy();

    sight.launch.host_count = 3;
    expect_found(&sight, true, "hosts-unused", "--hostfile hosts has 3 hosts, and only 2 of them");
    for (int rank = 0; rank < RANKS; rank++) {
        sight.host_of_rank[rank] = 0;
        sight.ranks[rank].boot[0] = 'p';
    }
    expect_found(&sight, true, "hosts-unused", "has 3 hosts, and all 4 ranks are on node1");
    sight.launch.host_count = 1;
    expect_found(&sight, true, NULL, NULL);

    sight = healthy();
    sight.host_of_rank[1] = 1;
    sight.ranks[1].boot[0] = 'q';
    expect_found(&sight, true, "ranks-uneven", "1 rank on node1 and 3 on node2");
}

Test(collectives_launch, processes_that_do_not_find_each_other_are_refused)
{
    struct sight sight = healthy();

    sight.rank_count = 1;
    expect_refused(&sight,
                   "mpirun of Open MPI started 4 processes, and each of them is alone: this "
                   "nodeworth is built with Open MPI v4.1.4,");
    sight.launch.rank_count = 1;
    sight.launch.host_count = 1;
    expect_found(&sight, true, NULL, NULL);
    /* in a job's script, without a launcher */
    sight.launch = (struct nw_launch){
        .rank_count = -1, .host_count = 2, .task_count = 16, .hosts_from = "Slurm's job 7"};
    expect_found(&sight, true, "launcher-missing",
                 "Slurm's job 7 has 16 tasks on 2 nodes, and this");
    sight.launch.task_count = -1; /* Flux, PBS and LSF do not tell */
    expect_found(&sight, true, "launcher-missing", "Slurm's job 7 has 2 nodes, and this");
    sight.launch.host_count = -1;
    sight.launch.task_count = 16;
    expect_found(&sight, true, "launcher-missing", "Slurm's job 7 has 16 tasks, and this");
    sight.launch.host_count = sight.launch.task_count = 1;
    expect_found(&sight, true, NULL, NULL);
}

Test(collectives_launch, programs_that_differ_are_refused_or_said)
{
    struct sight sight = healthy();

    strcpy(sight.ranks[2].build, "bbbb"); /* the same commit, built twice */
    expect_found(&sight, true, "program-differs", "built otherwise on node2 (bbbb) than on node1");
    strcpy(sight.ranks[2].version, "1.1");
    expect_refused(&sight,
                   "rank 2 on node2 runs another nodeworth (1.1, build bbbb) than rank 0 on "
                   "node1 (1.0, build aaaa)");
    expect_found(&sight, false, NULL, NULL); /* check says it itself */
    for (int rank = 0; rank < RANKS; rank++)
        strcpy(sight.ranks[rank].version, "1.0-dirty");
    expect_refused(&sight, "runs another nodeworth");
    strcpy(sight.ranks[2].machine, "aarch64");
    expect_found(&sight, true, "program-differs", "built otherwise");
    strcpy(sight.ranks[2].build, "aaaa");
    strcpy(sight.ranks[3].mpi, "Open MPI v5.0.3");
    expect_found(&sight, true, "mpi-differs", "\"Open MPI v5.0.3\" here and \"Open MPI v4.1.4\"");
}

Test(collectives_launch, names_and_machines_that_do_not_match_are_told)
{
    struct sight sight = healthy();

    sight.ranks[2].boot[0] = sight.ranks[3].boot[0] = 'p';
    expect_found(&sight, true, "machine-shared", "node1 and node2 run on one kernel");
    sight = healthy();
    for (int rank = 0; rank < RANKS; rank++)
        sight.host_of_rank[rank] = 0;
    sight.launch.host_count = -1;
    expect_refused(&sight, "ranks 0 and 2 are on two machines that are both named \"node1\"");
}

Test(collectives_launch, a_rank_tells_what_it_is)
{
    const struct nw_comm comm = {.library = "MPI 9"};
    struct nw_launch_rank rank;

    nw_launch_describe(&comm, "1.0", &rank);
    cr_expect_str_eq(rank.version, "1.0");
    cr_expect_str_eq(rank.mpi, "MPI 9");
    cr_expect_geq(strlen(rank.build), 8, "build id \"%s\"", rank.build); /* gcc, clang on Debian */
    cr_expect_neq(rank.machine[0], '\0');
    cr_expect(rank.boot[0] == '\0' || strlen(rank.boot) == 36, "%s", rank.boot); /* "": hidden */
}
