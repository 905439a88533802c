/* The host around the GPUs: CPU settings, limits of processes and containers, the clock, the data
 * path. */
#include "base/units.h"
#include "topo/preflight_run.h"

#define MIB 1048576.0
#define GIB (1024 * MIB)

/* What Docker and Kubernetes give a container that asks for nothing. */
#define SHM_OF_CONTAINERS (64 * MIB)
/* RDMA locks the buffers it sends from; NCCL's alone are some 100 MiB a process. */
#define MEMLOCK_NEEDED (1 * GIB)
#define OPEN_FILES_FEW 4096
/* One NVMe disk reads more. */
#define DATA_READ_SLOW 1e9

static bool has_gpus(const struct nw_topo *topo)
{
    return nw_topo_count(topo, NW_NODE_GPU) > 0;
}

nw_rc nw_preflight_cpu(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    if (nw_text_is(topo, 0, NW_FACT_CPU_GOVERNOR, "powersave")) {
        NW_TRY(nw_tell(run, host, 0, NW_FINDING_INFO, "cpu-powersave",
                       "cpupower frequency-set -g performance",
                       "the CPU frequency governor is \"powersave\""));
        NW_TRY(
            nw_tell_effect(run, NAN,
                           "latency of small messages and of kernel launches; with intel_pstate "
                           "clocks rise under load, with other drivers they stay at the lowest"));
    }
    if (nw_is_yes(topo, 0, NW_FACT_NUMA_BALANCING) && topo->numa_count > 1) {
        NW_TRY(nw_tell(run, host, 0, NW_FINDING_INFO, "numa-balancing-on",
                       "sysctl kernel.numa_balancing=0", "automatic NUMA balancing is on"));
        NW_TRY(nw_tell_effect(run, NAN,
                              "it unmaps pages to see who uses them: copies from host memory stall "
                              "now and then"));
    }
    return NW_OK;
}

static nw_rc judge_memlock(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const double limit = nw_topo_number(topo, 0, NW_FACT_MEMLOCK);
    char text[32];

    /* Root is not bound by it, and jobs of others are. */
    if (!(limit < MEMLOCK_NEEDED) || nw_count_rdma(topo) == 0)
        return NW_OK;
    NW_TRY(nw_tell(run, host, 0,
                   nw_is_yes(topo, 0, NW_FACT_MEMLOCK_EXEMPT) ? NW_FINDING_INFO : NW_FINDING_WARN,
                   "memlock-small",
                   "ulimit -l unlimited (limits.conf; docker --ulimit memlock=-1; Slurm "
                   "PropagateResourceLimits)",
                   "processes may lock %s of memory%s, and there is RDMA",
                   nw_format_bytes(text, (uint64_t)fmax(0, limit)),
                   nw_is_yes(topo, 0, NW_FACT_MEMLOCK_EXEMPT) ? " (root may more)" : ""));
    return nw_tell_effect(run, NAN,
                          "RDMA buffers cannot be registered: NCCL and MPI stop with \"Cannot "
                          "allocate memory\", or fall back to TCP");
}

static nw_rc judge_shm(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const double size = nw_topo_number(topo, 0, NW_FACT_SHM);
    char text[32];

    if (!(size <= SHM_OF_CONTAINERS) || !has_gpus(topo))
        return NW_OK;
    NW_TRY(nw_tell(run, host, 0, NW_FINDING_WARN, "shm-small",
                   "docker run --shm-size=16g or --ipc=host; Kubernetes: an emptyDir of medium "
                   "Memory at /dev/shm",
                   "/dev/shm has %s", nw_format_bytes(text, (uint64_t)fmax(0, size))));
    return nw_tell_effect(
        run, NAN,
        "NCCL and data loaders share memory there: they stop with \"No space left "
        "on device\" or a bus error");
}

nw_rc nw_preflight_limits(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const double files = nw_topo_number(topo, 0, NW_FACT_OPEN_FILES);

    NW_TRY(judge_memlock(run, host));
    NW_TRY(judge_shm(run, host));
    if (files < OPEN_FILES_FEW && has_gpus(topo))
        NW_TRY(nw_tell(run, host, 0, NW_FINDING_INFO, "open-files-few", "ulimit -n 65536",
                       "processes may open %.0f files: large jobs open a connection to every other "
                       "process, and data loaders a file each",
                       files));
    return NW_OK;
}

nw_rc nw_preflight_clock(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    if (!nw_is_no(topo, 0, NW_FACT_CLOCK_SYNC))
        return NW_OK;
    return nw_tell(
        run, host, 0, run->input->host_count > 1 ? NW_FINDING_WARN : NW_FINDING_INFO,
        "clock-not-synchronised", "run chrony, ntpd or ptp4l",
        "nothing keeps the clock in step: logs and traces of several hosts do not match, "
        "and certificates fail");
}

/* --- the data path -----------------------------------------------------------------------------
 */

static const struct fs {
    const char *prefix;
    nw_severity severity;
    const char *what, *remedy;
} file_systems[] = {
    {"nfs", NW_FINDING_WARN, "a network share (NFS), read by all processes of all hosts",
     "copy the data to a local NVMe disk first, or use a parallel file system"},
    {"cifs", NW_FINDING_WARN, "a network share (SMB), read by all processes of all hosts",
     "copy the data to a local NVMe disk first, or use a parallel file system"},
    {"fuse.sshfs", NW_FINDING_WARN, "a directory over ssh",
     "copy the data to a local NVMe disk first"},
    {"overlay", NW_FINDING_INFO, "the container's own layer, which goes with the container",
     "mount a disk of the host into the container"},
    {"tmpfs", NW_FINDING_INFO, "memory: it is lost at reboot and takes RAM from the job", NULL},
};

static const struct fs *find_fs(const char *name)
{
    for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++)
        if (strncmp(name, file_systems[i].prefix, strlen(file_systems[i].prefix)) == 0)
            return &file_systems[i];
    return NULL;
}

nw_rc nw_preflight_data(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const char *name = nw_topo_text(topo, 0, NW_FACT_DATA_FS);
    const char *path = nw_topo_text(topo, 0, NW_FACT_DATA_PATH);
    const double read = nw_topo_number(topo, 0, NW_FACT_DATA_READ);
    const struct fs *fs = name != NULL ? find_fs(name) : NULL;
    char measured[96] = "", text[32];

    if (read > 0)
        snprintf(measured, sizeof measured, "; measured: %s GB/s of sequential reading",
                 nw_format_gb_per_s(text, read));
    if (fs != NULL) {
        NW_TRY(nw_tell(run, host, 0, fs->severity, "data-path", fs->remedy,
                       "the data path%s%s lies on %s (%s)%s", path != NULL ? " " : "",
                       path != NULL ? path : "", fs->what, name, measured));
        if (fs->severity == NW_FINDING_WARN)
            return nw_tell_effect(run, NAN,
                                  "GPUs wait for data when loaders read more than the share gives "
                                  "to all of them together (horovod/horovod#824)");
        return NW_OK;
    }
    if (!(read > 0) || read >= DATA_READ_SLOW)
        return NW_OK;
    return nw_tell(run, host, 0, NW_FINDING_WARN, "data-slow",
                   "put training data on a local NVMe disk", "the data path%s%s reads slowly%s",
                   path != NULL ? " " : "", path != NULL ? path : "", measured);
}
