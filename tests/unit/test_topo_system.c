#include <math.h>
#include <sys/timex.h>

#include "tests/unit/system_tree.h"
#include "topo/read.h"
#include "topo/system_parts.h"

/* A bare HGX machine in a Slurm job. */
static const struct tree_file bare[] = {
    {"proc/sys/kernel/osrelease", "6.8.0-45-generic\n"},
    {"proc/driver/nvidia/version",
     "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build  "
     "(dvs-builder@U16-I3)  Thu Feb 22 01:44:30 UTC 2024\nGCC version:  gcc version 12.3.0\n"},
    {"proc/modules", "nvidia_peermem 16384 0 - Live 0x0\nnvidia 60000 2 nvidia_peermem, Live 0x0\n"
                     "gdrdrv2 1 0 - Live 0x0\n"},
    {"proc/cmdline", "BOOT_IMAGE=/vmlinuz intel_iommu=on iommu=pt\n"},
    {"proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vme avx512f nohypervisor\n\nprocessor : 1\n"},
    {"proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_1\n"},
    {"proc/self/ns/pid", "@pid:[4026531836]"},
    {"proc/self/limits",
     "Limit                     Soft Limit           Hard Limit           Units     \n"
     "Max open files            1024                 1048576              files     \n"
     "Max locked memory         unlimited            unlimited            bytes     \n"},
    {"proc/meminfo",
     "MemTotal:       1 kB\nHugePages_Total:    1024\nHugepagesize:       2048 kB\n"},
    {"proc/sys/kernel/numa_balancing", "1\n"},
    {"proc/1/comm", "systemd\n"},
    {"proc/812/comm", "nv-fabricmanage\n"},
    {"proc/900/comm", "slurmd\n"},
    {"proc/self/mountinfo", "27 1 259:2 / / rw - ext4 /dev/root rw\n"
                            "28 27 0:40 / /home rw - nfs4 filer:/home rw\n"
                            "29 27 0:41 / /lustre rw - lustre a@o2ib:/fs rw\n"},
    {"sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"},
    {"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"},
    {"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"},
    {"sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance\n"},
    {"sys/devices/system/cpu/cpufreq/x", "\n"},
    {"sys/class/dmi/id/product_name", "p5.metal\n"},
    {"sys/class/dmi/id/sys_vendor", "Amazon EC2\n"},
    {"sys/module/mlx5_core/version", "24.10-0.7.0\n"},
    {"sys/kernel/iommu_groups/7/type", "identity\n"},
    {"sys/kernel/iommu_groups/8/type", "DMA\n"}, /* of no GPU and no NIC */
    {"sys/bus/pci/devices/0000:17:00.0/iommu_group", "@../../../../kernel/iommu_groups/7"},
    {"usr/lib64/libnccl.so.2", "@libnccl.so.2.21.5"},
    {"usr/lib64/libnccl.so.2.21.5", "\x7f"},
    {"usr/bin/nvidia-imex", "\x7f"},
    {"usr/lib64/libibverbs.so.1", "@libibverbs.so.1.14.44.0"},
    {"usr/lib64/libibverbs.so.1.14.44.0", "\x7f"},
    {"etc/slurm/slurm.conf", "\n"},
};
static const char *const bare_environment[] = {"SLURM_JOB_ID=7", "PATH=/usr/bin", "RAY_ADDRESS=a:1",
                                               NULL};

/* A pod in a virtual machine with the older, closed driver; no mount table is shown. */
static const struct tree_file pod[] = {
    {"proc/sys/kernel/osrelease", "5.4.0-1000-aws\n"},
    {"proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.57.02  Tue "
                                   "Jul 13 16:14:05 UTC 2021\n"},
    {"proc/modules", "nv_peer_mem 16384 0 - Live 0x0\ngdrdrv 24576 0 - Live 0x0\n"},
    {"proc/cpuinfo", "flags\t\t: fpu hypervisor vme\n"},
    {"proc/self/cgroup", "12:pids:/kubepods/burstable/pod1/x\n0::/\n"},
    {"proc/self/ns/pid", "@pid:[4026532999]"},
    {"proc/1/comm", "python3\n"},
    {"proc/self/limits",
     "Max locked memory         65536                65536                bytes\n"},
    {"sys/class/dmi/id/product_name", "p4d.24xlarge\n"},
    {"sys/class/dmi/id/sys_vendor", "Amazon EC2\n"},
    {"sys/kernel/iommu_groups/7/type", "DMA-FQ\n"},
    {"sys/bus/pci/devices/0000:17:00.0/iommu_group", "@../../../../kernel/iommu_groups/7"},
    {"usr/bin/ofed_info", "#!/bin/bash\nif [ \"$1\" = -s ]; then\n"
                          "    echo MLNX_OFED_LINUX-5.4-3.0.3.0:\n    exit 0\nfi\n"},
    {"usr/lib64/libnccl.so.2", "\x7f"}, /* the file's own name tells no version */
    {"opt/bin/kubectl", ""},
};
static const char *const pod_environment[] = {"KUBERNETES_SERVICE_HOST=10.0.0.1", NULL};

/* Hardly anything may be read, and the rest is rubbish. */
static const struct tree_file poor[] = {
    {"proc/driver/nvidia/version", "NVRM version: something else altogether\n"},
    {"proc/self/ns/pid", "@pid:[4026531836]"},
    {"proc/55/comm", "sh\n"}, /* no process 1: hidden */
    {"proc/self/limits", "Max locked memory\nMax open files            many\n"},
    {"proc/meminfo", "HugePages_Total:    \nHugepagesize: 2048 MB\n"},
    {"proc/sys/kernel/numa_balancing", "on\n"},
    {"sys/kernel/mm/transparent_hugepage/enabled", "always\n"},
    {"sys/module/nvidia/version", "1\n"},
    {"proc/self/cgroup", "0::/user.slice\n"},
};
static const char *const no_environment[] = {NULL};

/* Nothing at all. */
static const struct tree_file nothing[] = {{"etc/passwd", "\n"}};

/* A workstation: no IOMMU, no scheduler, services installed but not running. */
static const struct tree_file desk[] = {
    {"proc/sys/kernel/osrelease", "5.11.0\n"},
    {"proc/driver/nvidia/version",
     "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  515.43.04  Release Build\n"},
    {"proc/cpuinfo", "flags : fpu hypervisor\n"},
    {"proc/self/ns/pid", "@pid:[4026531836]"},
    {"proc/self/cgroup", "0::/user.slice\n"},
    {"proc/1/comm", "init\n"},
    {"sys/kernel/iommu_groups/empty", "@nothing"},
    {"usr/bin/nv-fabricmanager", "\x7f"},
    {"proc/self/mountinfo", "27 1 259:2 / / rw - ext4 /dev/root rw\n"},
};

static const struct {
    nw_fact_id id;
    const char *key;                      /* of messages */
    const char *bare, *pod, *poor, *desk; /* as nw_fact_value_text writes; NULL: unknown */
} expected[] = {
#define ROW(id, ...)                                                                               \
    {                                                                                              \
        id, #id, __VA_ARGS__                                                                       \
    }
    ROW(NW_FACT_KERNEL, "6.8.0-45-generic", "5.4.0-1000-aws", NULL, "5.11.0"),
    ROW(NW_FACT_DRIVER, "550.54.14", "470.57.02", NULL, "515.43.04"),
    ROW(NW_FACT_DRIVER_KIND, "open", "proprietary", NULL, "open"),
    ROW(NW_FACT_DMABUF, "yes", "no", NULL, "no"),
    ROW(NW_FACT_PEERMEM, "yes", "yes", "no", NULL),
    ROW(NW_FACT_GDRCOPY, "no", "yes", "no", NULL),
    ROW(NW_FACT_FABRIC_MANAGER, "running", NULL, NULL, "stopped"),
    ROW(NW_FACT_IMEX, "stopped", NULL, NULL, NULL),
    ROW(NW_FACT_IOMMU, "passthrough", "translated", NULL, NULL),
    ROW(NW_FACT_VIRTUAL, "none", "Amazon EC2", NULL, "of unknown kind"),
    ROW(NW_FACT_CONTAINER, "none", "kubernetes", "none", "none"),
    ROW(NW_FACT_MEMLOCK, "no limit", "64 KiB", NULL, NULL),
    ROW(NW_FACT_OPEN_FILES, "1024", NULL, NULL, NULL),
    ROW(NW_FACT_HUGEPAGES, "1024", NULL, NULL, NULL),
    ROW(NW_FACT_HUGEPAGE_SIZE, "2 MiB", NULL, NULL, NULL),
    ROW(NW_FACT_THP, "always", NULL, NULL, NULL),
    ROW(NW_FACT_NUMA_BALANCING, "yes", NULL, NULL, NULL),
    ROW(NW_FACT_CPU_GOVERNOR, "powersave on 1 of 3, else performance", NULL, NULL, NULL),
    ROW(NW_FACT_SHM, NULL, NULL, NULL, NULL),
    ROW(NW_FACT_CLOCK_SYNC, NULL, NULL, NULL, NULL), /* of the live system only */
    ROW(NW_FACT_SCHEDULER, "slurm (in a job), ray (configured)", "kubernetes (in a pod)", NULL,
        "none"),
    ROW(NW_FACT_PARALLEL_FS, "nfs4 at /home, lustre at /lustre", NULL, NULL, "none"),
    ROW(NW_FACT_NCCL, "2.21.5", NULL, NULL, NULL),
    ROW(NW_FACT_OFED, "mlx5_core 24.10-0.7.0", "MLNX_OFED_LINUX-5.4-3.0.3.0", NULL, NULL),
#undef ROW
};

static struct nw_topo *make_topo(void)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    int index;

    cr_assert_not_null(topo);
    snprintf(topo->host, sizeof topo->host, "node1");
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &index), NW_OK);
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_GPU, 0, &index), NW_OK);
    snprintf(topo->nodes[1].pci, sizeof topo->nodes[1].pci, "0000:17:00.0");
    return topo;
}

static struct nw_topo *read_tree(const struct tree_file *files, size_t count,
                                 const char *const *environment)
{
    char root[] = "/tmp/nw-system-XXXXXX";
    struct nw_topo *topo = make_topo();

    cr_assert_not_null(mkdtemp(root));
    tree_add(root, files, count);
    cr_assert_eq(
        nw_system_read(&(struct nw_system_places){.root = root, .environment = environment}, topo),
        NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(nw_last_error()->rc, NW_OK);
    tree_remove(root);
    return topo;
}

static const char *not_checked(const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->findings.count; i++)
        if (strcmp(topo->findings.items[i].code, "not-checked") == 0)
            return topo->findings.items[i].text;
    return "";
}

Test(topo_system, facts_of_a_machine_come_from_its_files)
{
    static const struct {
        const char *name;
        const struct tree_file *files;
        size_t count;
        const char *const *environment;
        const char *unseen; /* in "not-checked"; "": no such finding */
    } machines[] = {
        {"bare", bare, sizeof bare / sizeof *bare, bare_environment, ""},
        {"pod", pod, sizeof pod / sizeof *pod, pod_environment, "container shows only its own"},
        {"poor", poor, sizeof poor / sizeof *poor, no_environment, "hidden from this user"},
        {"desk", desk, sizeof desk / sizeof *desk, no_environment, ""},
    };
    char text[224];

    for (size_t m = 0; m < 4; m++) {
        struct nw_topo *topo =
            read_tree(machines[m].files, machines[m].count, machines[m].environment);

        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
            const struct nw_fact *fact = nw_topo_fact(topo, 0, expected[i].id);
            const char *const wanted[] = {expected[i].bare, expected[i].pod, expected[i].poor,
                                          expected[i].desk};
            const char *have = fact != NULL ? nw_fact_value_text(fact, text) : "(unknown)";

            cr_expect_str_eq(have, wanted[m] != NULL ? wanted[m] : "(unknown)", "%s: %s is %s",
                             machines[m].name, expected[i].key, have);
        }
        if (machines[m].unseen[0] == '\0')
            cr_expect_str_eq(not_checked(topo), "", "%s", machines[m].name);
        else
            cr_expect_not_null(strstr(not_checked(topo), machines[m].unseen), "%s: %s",
                               machines[m].name, not_checked(topo));
        nw_topo_free(topo);
    }
}

Test(topo_system, what_a_statement_rests_on_is_its_source)
{
    struct nw_topo *topo = read_tree(bare, sizeof bare / sizeof *bare, bare_environment);

    cr_expect_str_eq(nw_topo_fact(topo, 0, NW_FACT_DMABUF)->source,
                     "open kernel module, Linux 6.8");
    cr_expect_str_eq(nw_topo_fact(topo, 0, NW_FACT_IOMMU)->source, "iommu_groups/*/type");
    nw_topo_free(topo);
    topo = read_tree(nothing, 1, no_environment);
    cr_expect_eq(topo->fact_count, 0, "%zu facts of an empty machine", topo->fact_count);
    cr_expect_eq(topo->findings.count, 0);
    nw_topo_free(topo);
}

Test(topo_system, iommu_is_told_by_groups_then_by_the_kernels_command_line)
{
    static const struct {
        struct tree_file files[3];
        size_t count;
        const char *iommu;
    } rows[] = {
        {{{"sys/kernel/iommu_groups/1/type", "identity\n"}}, 1, "passthrough"},
        {{{"sys/kernel/iommu_groups/1/type", "identity\n"},
          {"sys/kernel/iommu_groups/2/type", "DMA\n"}},
         2,
         "translated"},
        /* given to a virtual machine: neither */
        {{{"sys/kernel/iommu_groups/1/type", "blocked\n"}}, 1, NULL},
        /* a kernel that does not tell the type */
        {{{"sys/kernel/iommu_groups/1/devices", "\n"}, {"proc/cmdline", "quiet iommu=pt\n"}},
         2,
         "passthrough"},
        {{{"sys/kernel/iommu_groups/1/devices", "\n"}, {"proc/cmdline", "intel_iommu=on\n"}},
         2,
         NULL},
        {{{"proc/cmdline", "amd_iommu=off\n"}}, 1, "off"},
        {{{"proc/cmdline", "xamd_iommu=off\n"}}, 1, NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = read_tree(rows[i].files, rows[i].count, no_environment);
        const char *iommu = nw_topo_text(topo, 0, NW_FACT_IOMMU);

        cr_expect_str_eq(iommu != NULL ? iommu : "", rows[i].iommu != NULL ? rows[i].iommu : "",
                         "row %zu: %s", i, iommu);
        nw_topo_free(topo);
    }
}

Test(topo_system, clock_is_synchronised_when_the_kernel_says_so)
{
    static const struct {
        int state, status;
        long error_us;
        bool disciplined;
        double error_s;
    } rows[] = {
        {TIME_OK, 0, 250, true, 250e-6},
        {TIME_INS, STA_PLL, 1, true, 1e-6},
        {TIME_ERROR, 0, 5, false, NAN},
        {TIME_OK, STA_UNSYNC, 16000000, false, NAN},
    };
    double error_s;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct timex clock = {.status = rows[i].status, .esterror = rows[i].error_us};

        cr_expect_eq(nw_system_clock_of(rows[i].state, &clock, &error_s), rows[i].disciplined);
        cr_expect(isnan(rows[i].error_s) ? isnan(error_s) : fabs(error_s - rows[i].error_s) < 1e-12,
                  "row %zu: %g", i, error_s);
    }
}

/* A python3 that says what the row says. */
static struct nw_topo *probe(const char *script, double limit_s)
{
    char path[] = "/tmp/nw-python-XXXXXX";
    const int fd = mkstemp(path);
    struct nw_topo *topo = make_topo();

    cr_assert_geq(fd, 0);
    dprintf(fd, "#!/bin/sh\n%s\n", script);
    fchmod(fd, 0700);
    close(fd);
    cr_assert_eq(nw_system_probe_python(topo, path, limit_s), NW_OK, "%s", nw_last_error()->text);
    unlink(path);
    return topo;
}

Test(topo_system, pytorch_is_what_python_says)
{
    static const struct {
        const char *script, *torch, *cuda, *nccl;
        double gpus;
        const char *finding; /* code and part of its text; "": none */
        double limit_s;
    } rows[] = {
        {"echo noise; echo 'nodeworth-torch {\"python\": \"/p\", \"torch\": \"2.5.1\", \"cuda\": "
         "\"12.4\", \"nccl\": \"2.21.5\", \"gpus\": 8}'",
         "2.5.1", "12.4", "2.21.5", 8, "", 20},
        {"echo 'nodeworth-torch {\"torch\": \"2.5.1+cpu\", \"cuda\": null, \"gpus\": 0}'",
         "2.5.1+cpu", "", "", 0, "", 20},
        {"echo 'nodeworth-torch {\"absent\": true}'", "absent", "", "", NAN, "", 20},
        {"echo 'nodeworth-torch {\"error\": \"OSError: libcudart.so.12\"}'", "", "", "", NAN,
         "pytorch-broken OSError: libcudart.so.12", 20},
        {"echo first >&2; echo 'SyntaxError: invalid' >&2; exit 1", "", "", "", NAN,
         "pytorch-broken SyntaxError: invalid", 20},
        {"kill -SEGV $$", "", "", "", NAN, "pytorch-broken killed by signal 11", 20},
        {"echo 'nodeworth-torch [1'", "", "", "", NAN, "pytorch-broken ended with exit code 0", 20},
        {"sleep 30", "", "", "", NAN, "not-checked no end after 0.3 s", 0.3},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = probe(rows[i].script, rows[i].limit_s);
        const char *torch = nw_topo_text(topo, 0, NW_FACT_PYTORCH);
        const char *cuda = nw_topo_text(topo, 0, NW_FACT_PYTORCH_CUDA);
        const char *nccl = nw_topo_text(topo, 0, NW_FACT_PYTORCH_NCCL);
        const double gpus = nw_topo_number(topo, 0, NW_FACT_PYTORCH_GPUS);
        const char *part = strchr(rows[i].finding, ' ');

        cr_expect_str_eq(torch != NULL ? torch : "", rows[i].torch);
        cr_expect_str_eq(cuda != NULL ? cuda : "", rows[i].cuda);
        cr_expect_str_eq(nccl != NULL ? nccl : "", rows[i].nccl);
        cr_expect(isnan(rows[i].gpus) ? isnan(gpus) : gpus == rows[i].gpus);
        cr_expect_eq(topo->findings.count, part != NULL, "%s", rows[i].script);
        if (part != NULL && topo->findings.count == 1) {
            const struct nw_finding *finding = &topo->findings.items[0];

            cr_expect_eq(strncmp(rows[i].finding, finding->code, (size_t)(part - rows[i].finding)),
                         0);
            cr_expect_not_null(strstr(finding->text, part + 1), "%s", finding->text);
        }
        nw_topo_free(topo);
    }
}

Test(topo_system, the_script_itself_runs_and_a_missing_python_is_no_error)
{
    struct nw_topo *topo = make_topo();
    const char *torch;

    cr_assert_eq(nw_system_probe_python(topo, "/nowhere/python3", 5), NW_OK);
    cr_expect_eq(topo->fact_count + topo->findings.count, 0);
    if (system("python3 -c pass 2>/dev/null") == 0) {
        cr_assert_eq(nw_system_probe_python(topo, NULL, 60), NW_OK, "%s", nw_last_error()->text);
        torch = nw_topo_text(topo, 0, NW_FACT_PYTORCH);
        cr_expect(torch != NULL || topo->findings.count == 1);
    }
    nw_topo_free(topo);
}

static const struct tree_file fake_torch[] = {
    {"good/torch/__init__.py", "print('a greeting')\nfrom . import version, cuda\n"
                               "__version__ = '2.6.0+cu124'\n"},
    {"good/torch/version.py", "cuda = '12.4'\n"},
    {"good/torch/cuda/__init__.py", "from . import nccl\ndef device_count():\n    return 4\n"},
    {"good/torch/cuda/nccl.py", "def version():\n    return (2, 21, 5)\n"},
    {"bad/torch/__init__.py", "import nw_module_that_is_not_there\n"},
    {"worse/torch.py", "raise OSError('libcudart.so.12: cannot open')\n"},
    {"here/torch.py", "raise SystemExit(0)\n"}, /* in the current folder: not PyTorch */
};

/* The script in a real python3, with a torch of ours before any other. */
Test(topo_system, the_script_asks_what_torch_has)
{
    static const struct {
        const char *folder, *torch, *finding;
    } rows[] = {
        {"good", "2.6.0+cu124", ""},
        {"bad", NULL, "No module named 'nw_module_that_is_not_there'"},
        {"worse", NULL, "OSError: libcudart.so.12: cannot open"},
    };
    char root[] = "/tmp/nw-torch-XXXXXX", path[64];

    if (system("python3 -c pass 2>/dev/null") != 0)
        return;
    cr_assert_not_null(mkdtemp(root));
    tree_add(root, fake_torch, sizeof fake_torch / sizeof *fake_torch);
    snprintf(path, sizeof path, "%s/here", root);
    cr_assert_eq(chdir(path), 0);
    setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = make_topo();
        const char *torch;

        snprintf(path, sizeof path, "%s/%s", root, rows[i].folder);
        setenv("PYTHONPATH", path, 1);
        cr_assert_eq(nw_system_probe_python(topo, NULL, 60), NW_OK, "%s", nw_last_error()->text);
        torch = nw_topo_text(topo, 0, NW_FACT_PYTORCH);
        cr_expect_str_eq(torch != NULL ? torch : "", rows[i].torch != NULL ? rows[i].torch : "");
        cr_expect_eq(topo->findings.count, rows[i].torch == NULL, "%s", rows[i].folder);
        if (rows[i].torch == NULL && topo->findings.count == 1)
            cr_expect_not_null(strstr(topo->findings.items[0].text, rows[i].finding), "%s",
                               topo->findings.items[0].text);
        if (rows[i].torch != NULL) {
            cr_expect_str_eq(nw_topo_text(topo, 0, NW_FACT_PYTORCH_CUDA), "12.4");
            cr_expect_str_eq(nw_topo_text(topo, 0, NW_FACT_PYTORCH_NCCL), "2.21.5");
            cr_expect_eq(nw_topo_number(topo, 0, NW_FACT_PYTORCH_GPUS), 4);
        }
        nw_topo_free(topo);
    }
    cr_assert_eq(chdir("/"), 0);
    tree_remove(root);
}

Test(topo_system, unchecked_things_are_one_finding)
{
    struct nw_topo *topo = make_topo();

    cr_assert_eq(nw_topo_not_checked(topo, "ACS of %d bridges (root only)", 4), NW_OK);
    cr_assert_eq(nw_topo_not_checked(topo, "the kernel's log"), NW_OK);
    cr_assert_eq(nw_topo_not_checked(topo, "the kernel's log"), NW_OK);
    cr_assert_eq(topo->findings.count, 1);
    cr_expect_str_eq(topo->findings.items[0].text,
                     "not checked: ACS of 4 bridges (root only); the kernel's log");
    cr_expect_str_eq(topo->findings.items[0].where, "node1");
    nw_topo_free(topo);
}

Test(topo_system, this_machine)
{
    struct nw_topo *topo = make_topo();
    double shm;

    cr_assert_eq(nw_system_read(&(struct nw_system_places){.root = ""}, topo), NW_OK, "%s",
                 nw_last_error()->text);
    cr_expect_not_null(nw_topo_text(topo, 0, NW_FACT_KERNEL));
    cr_expect_gt(nw_topo_number(topo, 0, NW_FACT_OPEN_FILES), 0);
    shm = nw_topo_number(topo, 0, NW_FACT_SHM);
    cr_expect(isnan(shm) || shm >= nw_topo_number(topo, 0, NW_FACT_SHM_FREE));
    nw_topo_free(topo);
}
