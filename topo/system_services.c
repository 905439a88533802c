/* NVIDIA's services and the schedulers: by processes, files, environment. Variables are those that
 * the schedulers' documentation lists for jobs. */
#include <stdio.h>
#include <string.h>

#include "topo/system_parts.h"

enum { MAX_WORDS = 6 };

static bool any_file(const struct nw_system *system, const char *const files[MAX_WORDS])
{
    for (size_t i = 0; i < MAX_WORDS && files[i] != NULL; i++)
        if (nw_system_exists("%s%s", system->root, files[i]))
            return true;
    return false;
}

/* --- services --- */

static const struct {
    nw_fact_id id;
    const char *process;
    const char *sockets[MAX_WORDS]; /* there while it runs, seen from a container that has them */
    const char *installed[MAX_WORDS];
    bool tell_absent;
} services[] = {
    {NW_FACT_FABRIC_MANAGER,
     "nv-fabricmanager",
     {"/run/nvidia-fabricmanager/fm_sm_ipc.socket"},
     {"/usr/bin/nv-fabricmanager", "/lib/systemd/system/nvidia-fabricmanager.service",
      "/usr/lib/systemd/system/nvidia-fabricmanager.service",
      "/etc/systemd/system/nvidia-fabricmanager.service"},
     true},
    {NW_FACT_IMEX,
     "nvidia-imex",
     {NULL},
     {"/usr/bin/nvidia-imex", "/lib/systemd/system/nvidia-imex.service",
      "/usr/lib/systemd/system/nvidia-imex.service"},
     false},
};

/* "stopped" and "absent" only where all processes of the machine are seen. */
static nw_rc read_service(struct nw_system *system, size_t row)
{
    const nw_fact_id id = services[row].id;

    if (nw_processes_have(&system->processes, services[row].process))
        return nw_system_say(system, id, "running", "/proc");
    if (!system->processes.of_machine) {
        if (any_file(system, services[row].sockets))
            return nw_system_say(system, id, "running", services[row].sockets[0]);
        return NW_OK;
    }
    if (any_file(system, services[row].installed))
        return nw_system_say(system, id, "stopped", "/proc, service's files");
    if (services[row].tell_absent)
        return nw_system_say(system, id, "absent", "/proc, service's files");
    return NW_OK;
}

/* --- schedulers --- */

static const struct {
    const char *name, *job; /* "in a job", "in a pod" */
    const char *job_variables[MAX_WORDS];
    const char *processes[MAX_WORDS];
    const char *variables[MAX_WORDS]; /* set for users of the cluster, also outside of jobs */
    const char *files[MAX_WORDS];
    const char *programs[MAX_WORDS];
} schedulers[] = {
    {"slurm",
     "in a job",
     {"SLURM_JOB_ID", "SLURM_JOBID"},
     {"slurmd", "slurmctld", "slurmstepd"},
     {"SLURM_CONF"},
     {"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf"},
     {"srun", "sinfo"}},
    {"kubernetes",
     "in a pod",
     {"KUBERNETES_SERVICE_HOST"},
     {"kubelet"},
     {"KUBECONFIG"},
     {"/var/run/secrets/kubernetes.io/serviceaccount", "/etc/kubernetes/kubelet.conf",
      "/var/lib/kubelet/config.yaml"},
     {"kubectl"}},
    {"ray", "in a job", {"RAY_JOB_ID"}, {"raylet", "gcs_server"}, {"RAY_ADDRESS"}, {NULL}, {"ray"}},
    {"pbs",
     "in a job",
     {"PBS_JOBID"},
     {"pbs_mom", "pbs_server", "pbs_server.bin"},
     {NULL},
     {"/etc/pbs.conf", "/var/spool/pbs"},
     {"qstat"}},
    {"lsf",
     "in a job",
     {"LSB_JOBID"},
     {"sbatchd", "mbatchd"},
     {"LSF_ENVDIR"},
     {"/etc/lsf.conf"},
     {"bsub"}},
    {"sge",
     "in a job",
     {"SGE_TASK_ID", "SGE_O_HOST"},
     {"sge_execd", "sge_qmaster"},
     {"SGE_ROOT"},
     {NULL},
     {"qsub"}},
    {"flux",
     "in a job",
     {"FLUX_JOB_ID"},
     {"flux-broker", "flux-broker-0"},
     {"FLUX_URI"},
     {"/etc/flux/system"},
     {"flux"}},
    {"htcondor",
     "in a job",
     {"_CONDOR_JOB_AD"},
     {"condor_startd", "condor_master"},
     {NULL},
     {"/etc/condor"},
     {"condor_status"}},
};

static bool any_variable(const struct nw_system *system, const char *const names[MAX_WORDS])
{
    for (size_t i = 0; i < MAX_WORDS && names[i] != NULL; i++)
        if (nw_system_variable(system, names[i]) != NULL)
            return true;
    return false;
}

static bool any_process(const struct nw_system *system, const char *const names[MAX_WORDS])
{
    for (size_t i = 0; i < MAX_WORDS && names[i] != NULL; i++)
        if (nw_processes_have(&system->processes, names[i]))
            return true;
    return false;
}

static bool any_program(const struct nw_system *system, const char *const names[MAX_WORDS])
{
    for (size_t i = 0; i < MAX_WORDS && names[i] != NULL; i++)
        if (nw_system_has_program(system, names[i]))
            return true;
    return false;
}

/* The strongest sign; NULL: none. */
static const char *scheduler_sign(const struct nw_system *system, size_t row)
{
    if (any_variable(system, schedulers[row].job_variables))
        return schedulers[row].job;
    if (any_process(system, schedulers[row].processes))
        return "runs here";
    if (any_file(system, schedulers[row].files) || any_variable(system, schedulers[row].variables))
        return "configured";
    /* qstat and qsub are of several: alone they say nothing. */
    if (schedulers[row].programs[0] != NULL && schedulers[row].programs[0][0] != 'q' &&
        any_program(system, schedulers[row].programs))
        return "client installed";
    return NULL;
}

static nw_rc read_schedulers(struct nw_system *system)
{
    char text[160] = "";

    for (size_t i = 0; i < sizeof schedulers / sizeof *schedulers; i++) {
        const char *sign = scheduler_sign(system, i);
        const size_t used = strlen(text);

        if (sign != NULL)
            snprintf(text + used, sizeof text - used, "%s%s (%s)", used > 0 ? ", " : "",
                     schedulers[i].name, sign);
    }
    if (text[0] == '\0' && !system->processes.of_machine)
        return NW_OK; /* one may run where we cannot see it */
    return nw_system_say(system, NW_FACT_SCHEDULER, text[0] != '\0' ? text : "none",
                         "environment, processes, files");
}

nw_rc nw_system_read_services(struct nw_system *system)
{
    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        NW_TRY(read_service(system, i));
    return read_schedulers(system);
}
