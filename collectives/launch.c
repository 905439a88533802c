/* What launchers put into the environment, and what the command line of mpirun says. */
#include "collectives/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/units.h"

#define CMDLINE_BYTES (1u << 20)
#define ANCESTORS_MAX 12 /* between a rank and mpirun: our parent, a shell, numactl, … */

/* The first one that fits counts: mpirun inside a Slurm job leaves Slurm's variables set. Slurm's
 * batch scripts have SLURM_PROCID too, but no step. */
const struct nw_launcher nw_launchers[] = {
    {.name = "mpirun of Open MPI",
     .rank = "OMPI_COMM_WORLD_RANK",
     .rank_count = "OMPI_COMM_WORLD_SIZE",
     .remedy = "start it with the mpirun (mpiexec) of the MPI that it is built with"},
    {.name = "srun",
     .rank = "SLURM_PROCID",
     .rank_count = "SLURM_STEP_NUM_TASKS",
     .marker = "SLURM_STEP_ID",
     /* MPICH's mpiexec has srun start one proxy a host, which starts the ranks */
     .by_rank = "PMI_RANK",
     .by_count = "PMI_SIZE",
     .remedy = "srun --mpi=pmix for Open MPI, srun --mpi=pmi2 for MPICH (srun --mpi=list tells "
               "what there is); or mpirun in the job's script"},
    {.name = "flux run",
     .rank = "FLUX_TASK_RANK",
     .rank_count = "FLUX_JOB_SIZE",
     .remedy = "flux run -o pmi=pmix for Open MPI"},
    {.name = "torchrun",
     .rank = "RANK",
     .rank_count = "WORLD_SIZE",
     .marker = "TORCHELASTIC_RUN_ID",
     .remedy = "torchrun starts no MPI ranks: mpirun --hostfile HOSTS nodeworth …"},
    {.name = "mpiexec (PMI: MPICH, Intel MPI)",
     .rank = "PMI_RANK",
     .rank_count = "PMI_SIZE",
     .remedy = "start it with the mpirun (mpiexec) of the MPI that it is built with: on Debian "
               "mpirun.openmpi, mpiexec.mpich"},
    {.name = "a PMIx launcher", .rank = "PMIX_RANK", .remedy = "mpirun of Open MPI"},
    {.name = NULL},
};

/* -1: not set, or no number */
static int number_in(const char *variable)
{
    const char *text = variable != NULL ? getenv(variable) : NULL;
    uint64_t value = 0;

    if (text != NULL && nw_parse_u64(text, 0, 1u << 24, &value) == NW_OK)
        return (int)value;
    nw_clear_error();
    return -1;
}

static const struct nw_launcher *find_launcher(void)
{
    for (const struct nw_launcher *row = nw_launchers; row->name != NULL; row++)
        if (number_in(row->rank) >= 0 && (row->marker == NULL || getenv(row->marker) != NULL))
            return row;
    return NULL;
}

static int rank_of(const struct nw_launcher *launcher)
{
    const int rank = number_in(launcher->by_rank);

    return rank >= 0 ? rank : number_in(launcher->rank);
}

static int count_of(const struct nw_launcher *launcher)
{
    const int count = number_in(launcher->by_count);

    return count >= 0 ? count : number_in(launcher->rank_count);
}

int nw_launch_rank(void)
{
    const struct nw_launcher *launcher = find_launcher();

    return launcher != NULL ? rank_of(launcher) : -1;
}

int nw_launch_count(void)
{
    const struct nw_launcher *launcher = find_launcher();

    return launcher != NULL ? count_of(launcher) : -1;
}

/* ---- hosts by name ------------------------------------------------------------------------------
 */

struct names {
    char **items; /* into a text that is cut up; a name may be there more than once */
    size_t count, capacity;
};

static bool add_name(struct names *names, char *name)
{
    if (names->count == names->capacity) {
        const size_t capacity = names->capacity > 0 ? 2 * names->capacity : 16;
        char **items = realloc(names->items, capacity * sizeof *items);

        if (items == NULL)
            return false;
        names->items = items;
        names->capacity = capacity;
    }
    names->items[names->count++] = name;
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Different ones; -1: none. */
static int count_names(const struct names *names)
{
    int count = 0;

    if (names->count > 0)
        qsort(names->items, names->count, sizeof *names->items, compare_names);
    for (size_t i = 0; i < names->count; i++)
        count += i == 0 || strcmp(names->items[i - 1], names->items[i]) != 0;
    return count > 0 ? count : -1;
}

/* "node1:8", "node1 slots=8", "user@node1": the name alone. */
static char *cut_name(char *text)
{
    char *at;

    text += strspn(text, " \t\r");
    text[strcspn(text, ": \t\r#")] = '\0';
    at = strrchr(text, '@');
    return at != NULL ? at + 1 : text;
}

/* "node1:8,node2:8". Open MPI's relative names ("+n1", "+e") are not to be counted: false. */
static bool add_list(struct names *names, char *list)
{
    char *rest = NULL;

    for (char *word = strtok_r(list, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        char *name = cut_name(word);

        if (name[0] == '+' || (name[0] != '\0' && !add_name(names, name)))
            return false;
    }
    return true;
}

int nw_launch_hosts_in_file(const char *path)
{
    struct names names = {0};
    char *text, *rest = NULL;
    size_t length;
    int count;

    if (nw_file_read(path, CMDLINE_BYTES, &text, &length) != NW_OK) {
        nw_clear_error();
        return -1;
    }
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *name = cut_name(line);

        if (name[0] != '\0' && !add_name(&names, name))
            break;
    }
    count = count_names(&names);
    free(names.items);
    free(text);
    return count;
}

/* ---- the launcher's command line ----------------------------------------------------------------
 */

enum kind { OTHER, LIST, FILE_NAME };

static enum kind kind_of(const char *word)
{
    static const struct {
        const char *name;
        enum kind kind;
    } options[] = {
        {"-H", LIST},
        {"-host", LIST},
        {"-hosts", LIST}, /* MPICH's */
        {"-hostfile", FILE_NAME},
        {"-machinefile", FILE_NAME},
        {"-f", FILE_NAME}, /* MPICH's */
    };

    if (strncmp(word, "--", 2) == 0)
        word++;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(word, options[i].name) == 0)
            return options[i].kind;
    return OTHER;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Open MPI takes what --host lists out of what --hostfile has: the list counts where both are. */
int nw_launch_hosts_in(const char *words, size_t length, const char *program, const char *directory,
                       char *from_out, size_t size)
{
    char *text = malloc(length + 1), path[4096];
    struct names names = {0};
    int count, in_file = -1;
    bool listed = false, clear = true;

    if (text == NULL)
        return -1;
    memcpy(text, words, length);
    text[length] = '\0';
    for (char *word = text, *next; clear && word < text + length; word = next) {
        const enum kind kind = kind_of(word);
        char *value = next = word + strlen(word) + 1;

        if (word != text && strcmp(base_name(word), program) == 0)
            break;
        if (kind == OTHER || value >= text + length)
            continue;
        next = value + strlen(value) + 1;
        if (kind == LIST || !listed)
            snprintf(from_out, size, "%.20s %.60s", word, value);
        if (kind == LIST) {
            listed = true;
            clear = add_list(&names, value);
            continue;
        }
        snprintf(path, sizeof path, "%s%s%s", value[0] == '/' ? "" : directory,
                 value[0] == '/' ? "" : "/", value);
        in_file = nw_launch_hosts_in_file(path);
    }
    count = !clear ? -1 : listed ? count_names(&names) : in_file;
    free(names.items);
    free(text);
    return count;
}

/* A file below /proc/PID/; NULL: not to be read. The caller frees it. */
static char *read_of(int pid, const char *file, size_t *length_out)
{
    char path[64], *text;

    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    if (nw_file_read(path, CMDLINE_BYTES, &text, length_out) == NW_OK)
        return text;
    nw_clear_error();
    return NULL;
}

static int parent_of(int pid)
{
    size_t length;
    char *text = read_of(pid, "stat", &length), *end;
    int parent = 0;

    end = text != NULL ? strrchr(text, ')') : NULL; /* "12 (a name) S 11 …" */
    if (end == NULL || sscanf(end, ") %*c %d", &parent) != 1)
        parent = 0;
    free(text);
    return parent;
}

static bool begins_with_any(const char *text, const char *const *begins)
{
    for (; *begins != NULL; begins++)
        if (strncmp(text, *begins, strlen(*begins)) == 0)
            return true;
    return false;
}

/* Open MPI's daemon on a host where mpirun is not: it knows how many there are with mpirun's own,
 * which need not be a host of the job. -1: not told. */
static int hosts_of_daemon(const char *words, size_t length)
{
    uint64_t daemons = 0;

    for (const char *word = words; word < words + length; word += strlen(word) + 1) {
        const char *value = word + strlen(word) + 1;

        if (strstr(word, "ess_base_num_procs") == NULL || value >= words + length)
            continue;
        if (nw_parse_u64(value, 1, 1u << 20, &daemons) == NW_OK && daemons > 1)
            return (int)daemons - 1;
        nw_clear_error();
    }
    return -1;
}

/* mpirun or its daemon, above this process; the only ones whose words are looked at. */
static int hosts_of_ancestor(char *from_out, size_t size)
{
    static const char *const launchers[] = {"mpirun", "mpiexec", "orterun", "prterun", NULL};
    static const char *const daemons[] = {"orted", "prted", NULL};
    char own[4096] = "", directory[4096], link[64];
    int pid = getppid();

    if (readlink("/proc/self/exe", own, sizeof own - 1) < 0)
        return -1;
    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++, pid = parent_of(pid)) {
        size_t length = 0;
        char *words = read_of(pid, "cmdline", &length);
        const char *name = words != NULL ? base_name(words) : "";
        int count = -1;
        ssize_t got;

        if (begins_with_any(name, launchers)) {
            snprintf(link, sizeof link, "/proc/%d/cwd", pid);
            got = readlink(link, directory, sizeof directory - 1);
            directory[got > 0 ? got : 0] = '\0';
            count = nw_launch_hosts_in(words, length, base_name(own), directory, from_out, size);
        } else if (begins_with_any(name, daemons)) {
            count = hosts_of_daemon(words, length);
            snprintf(from_out, size, "mpirun");
        } else {
            free(words);
            continue;
        }
        free(words);
        return count;
    }
    return -1;
}

/* ---- the job ------------------------------------------------------------------------------------
 */

/* LSF's "node1 8 node2 8" */
static int hosts_of_lsf(void)
{
    const char *text = getenv("LSB_MCPU_HOSTS");
    int words = 0;

    while (text != NULL && *(text += strspn(text, " ")) != '\0') {
        words++;
        text += strcspn(text, " ");
    }
    return words > 0 && words % 2 == 0 ? words / 2 : -1;
}

static int file_in(const char *variable)
{
    const char *path = getenv(variable);

    return path != NULL ? nw_launch_hosts_in_file(path) : -1;
}

/* What the batch system gave, else what the launcher was given. */
static void read_hosts(struct nw_launch *launch)
{
    const char *job = getenv("SLURM_JOB_ID");
    char *from = launch->hosts_from;
    const size_t size = sizeof launch->hosts_from;

    if (job != NULL && (launch->host_count = number_in("SLURM_JOB_NUM_NODES")) > 0)
        snprintf(from, size, "Slurm's job %.32s", job);
    else if ((launch->host_count = number_in("FLUX_JOB_NNODES")) > 0)
        snprintf(from, size, "Flux's job");
    else if ((launch->host_count = file_in("PBS_NODEFILE")) > 0)
        snprintf(from, size, "PBS's node file");
    else if ((launch->host_count = hosts_of_lsf()) > 0)
        snprintf(from, size, "LSF's job");
    else if ((launch->host_count = hosts_of_ancestor(from, size)) <= 0 &&
             (launch->host_count = file_in("OMPI_MCA_orte_default_hostfile")) > 0)
        snprintf(from, size, "OMPI_MCA_orte_default_hostfile");
    if (launch->host_count <= 0)
        launch->host_count = -1;
}

void nw_launch_read(struct nw_launch *launch_out)
{
    struct nw_launch *launch = launch_out;

    *launch = (struct nw_launch){.rank = -1, .rank_count = -1, .host_count = -1, .task_count = -1};
    launch->launcher = find_launcher();
    if (launch->launcher != NULL) {
        launch->rank = rank_of(launch->launcher);
        launch->rank_count = count_of(launch->launcher);
    } else if (getenv("SLURM_JOB_ID") != NULL) {
        launch->task_count = number_in("SLURM_NTASKS");
    }
    if (launch->rank <= 0)
        read_hosts(launch);
}
