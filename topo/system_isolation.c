/* What stands between the program and the hardware: IOMMU, hypervisor, container. Sources: Linux
 * Documentation/ABI (sysfs-kernel-iommu_groups, sysfs-class-iommu), kernel-parameters, cgroups(7).
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "topo/system_parts.h"

/* --- IOMMU --- */

struct iommu {
    int identity, translated, other; /* groups */
    int unsaid;                      /* groups of a kernel that does not tell their type */
};

static void note_group(struct iommu *iommu, const char *type)
{
    if (strcmp(type, "identity") == 0)
        iommu->identity++;
    else if (strcmp(type, "DMA") == 0 || strcmp(type, "DMA-FQ") == 0)
        iommu->translated++;
    else if (type[0] == '\0')
        iommu->unsaid++;
    else
        iommu->other++; /* "blocked", "unmanaged": given to a virtual machine */
}

/* Those of GPUs and NICs; false: they have none. */
static bool read_devices(const struct nw_system *system, struct iommu *iommu)
{
    const struct nw_topo *topo = system->topo;
    bool any = false;
    char type[32];

    for (size_t i = 0; i < topo->node_count; i++) {
        const struct nw_topo_node *node = &topo->nodes[i];

        if ((node->kind != NW_NODE_GPU && node->kind != NW_NODE_NIC) || node->pci[0] == '\0' ||
            !nw_system_exists("%s/sys/bus/pci/devices/%s/iommu_group", system->root, node->pci))
            continue;
        nw_system_text(type, sizeof type, "%s/sys/bus/pci/devices/%s/iommu_group/type",
                       system->root, node->pci);
        note_group(iommu, type);
        any = true;
    }
    return any;
}

static bool read_groups(const struct nw_system *system, struct iommu *iommu)
{
    char path[PATH_MAX], entry[32], type[32];
    struct nw_system_folder folder;
    bool any = false;

    snprintf(path, sizeof path, "%s/sys/kernel/iommu_groups", system->root);
    nw_system_open_folder(&folder, path);
    while (nw_system_next(&folder, entry, sizeof entry)) {
        nw_system_text(type, sizeof type, "%s/%s/type", path, entry);
        note_group(iommu, type);
        any = true;
    }
    nw_system_close_folder(&folder);
    return any;
}

static bool folder_is_empty(const char *root, const char *name)
{
    char path[PATH_MAX], entry[64];
    struct nw_system_folder folder;
    bool any;

    snprintf(path, sizeof path, "%s%s", root, name);
    nw_system_open_folder(&folder, path);
    any = folder.stream == NULL || nw_system_next(&folder, entry, sizeof entry);
    nw_system_close_folder(&folder);
    return !any;
}

static nw_rc read_iommu(struct nw_system *system)
{
    struct iommu iommu = {0};
    char line[4096];
    bool any, passthrough;

    any = read_devices(system, &iommu) || read_groups(system, &iommu);
    if (iommu.translated > 0)
        return nw_system_say(system, NW_FACT_IOMMU, "translated", "iommu_groups/*/type");
    if (iommu.identity > 0 && iommu.other == 0)
        return nw_system_say(system, NW_FACT_IOMMU, "passthrough", "iommu_groups/*/type");
    if (!any && folder_is_empty(system->root, "/sys/kernel/iommu_groups"))
        return nw_system_say(system, NW_FACT_IOMMU, "off", "no group in iommu_groups");
    nw_system_text(line, sizeof line, "%s/proc/cmdline", system->root);
    if (!any &&
        (nw_system_has_word(line, "intel_iommu=off") || nw_system_has_word(line, "amd_iommu=off") ||
         nw_system_has_word(line, "iommu=off")))
        return nw_system_say(system, NW_FACT_IOMMU, "off", "kernel command line");
    passthrough =
        nw_system_has_word(line, "iommu=pt") || nw_system_has_word(line, "iommu.passthrough=1");
    if (iommu.unsaid > 0 && passthrough)
        return nw_system_say(system, NW_FACT_IOMMU, "passthrough", "kernel command line");
    return NW_OK;
}

/* --- hypervisor --- */

/* In product or vendor of the machine's own description (DMI). */
static const struct {
    const char *text, *name;
    bool bare_too; /* bare machines are rented under this name as well */
} dmi_names[] = {
    {"Amazon EC2", "Amazon EC2", true},
    {"Google Compute Engine", "Google Compute Engine", true},
    {"Alibaba Cloud", "Alibaba Cloud", true},
    {"Tencent Cloud", "Tencent Cloud", true},
    {"Huawei", "Huawei Cloud", true},
    {"OpenStack", "OpenStack", false},
    {"Virtual Machine", "Hyper-V", false}, /* product of Microsoft's, so Azure too */
    {"VMware", "VMware", false},
    {"VirtualBox", "VirtualBox", false},
    {"innotek", "VirtualBox", false},
    {"Parallels", "Parallels", false},
    {"Bochs", "Bochs", false},
    {"Xen", "Xen", false},
    {"HVM domU", "Xen", false},
    {"KVM", "KVM", false},
    {"QEMU", "KVM or QEMU", false},
    {"Standard PC", "KVM or QEMU", false},
    {"RHEV", "KVM", false},
    {"oVirt", "KVM", false},
};

/* Index in dmi_names; -1: none of them. */
static int find_dmi(const struct nw_system *system)
{
    char product[128], vendor[128];

    nw_system_text(product, sizeof product, "%s/sys/class/dmi/id/product_name", system->root);
    nw_system_text(vendor, sizeof vendor, "%s/sys/class/dmi/id/sys_vendor", system->root);
    for (size_t i = 0; i < sizeof dmi_names / sizeof *dmi_names; i++)
        if (strstr(product, dmi_names[i].text) != NULL || strstr(vendor, dmi_names[i].text) != NULL)
            return (int)i;
    return -1;
}

/* What the processor itself says; only of the live machine. */
static const char *name_of_cpu(const struct nw_system *system)
{
#if defined(__x86_64__)
    static const struct {
        const char *signature, *name;
    } known[] = {
        {"KVMKVMKVM", "KVM"},     {"Microsoft Hv", "Hyper-V"}, {"VMwareVMware", "VMware"},
        {"XenVMMXenVMM", "Xen"},  {"TCGTCGTCGTCG", "QEMU"},    {"bhyve bhyve ", "bhyve"},
        {"ACRNACRNACRN", "ACRN"},
    };
    unsigned eax = 0, words[4] = {0};

    if (system->root[0] != '\0')
        return NULL;
    __cpuid(0x40000000, eax, words[0], words[1], words[2]); /* the hypervisors' leaf */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp((const char *)words, known[i].signature, 12) == 0)
            return known[i].name;
#else
    (void)system;
#endif
    return NULL;
}

static nw_rc read_hypervisor(struct nw_system *system)
{
    char text[8192], flags[4096] = "", type[32];
    const int dmi = find_dmi(system);
    const char *name;

    if (nw_system_text(type, sizeof type, "%s/sys/hypervisor/type", system->root) &&
        strcmp(type, "xen") == 0)
        return nw_system_say(system, NW_FACT_VIRTUAL, "Xen", "/sys/hypervisor/type");
    nw_system_text(text, sizeof text, "%s/proc/cpuinfo", system->root);
    if (!nw_system_field(text, "flags", flags, sizeof flags)) { /* not x86: no such flag */
        if (dmi >= 0 && !dmi_names[dmi].bare_too)
            return nw_system_say(system, NW_FACT_VIRTUAL, dmi_names[dmi].name, "/sys/class/dmi");
        return NW_OK;
    }
    if (!nw_system_has_word(flags, "hypervisor"))
        return nw_system_say(system, NW_FACT_VIRTUAL, "none", "flags of /proc/cpuinfo");
    name = dmi >= 0 ? dmi_names[dmi].name : name_of_cpu(system);
    return nw_system_say(system, NW_FACT_VIRTUAL, name != NULL ? name : "of unknown kind",
                         dmi >= 0 ? "/sys/class/dmi" : "the processor");
}

/* --- container --- */

/* The first that holds. */
static const struct {
    const char *name, *file, *variable, *group; /* a part of the control group's name */
} containers[] = {
    {"kubernetes", NULL, "KUBERNETES_SERVICE_HOST", "kubepods"},
    {"apptainer", "/.singularity.d", "APPTAINER_CONTAINER", NULL},
    {"singularity", NULL, "SINGULARITY_CONTAINER", NULL},
    {"podman", "/run/.containerenv", NULL, "libpod"},
    {"docker", "/.dockerenv", NULL, "/docker"},
    {"lxc", "/dev/lxd/sock", NULL, "/lxc"},
    {"containerd", NULL, NULL, "containerd"},
};

static nw_rc read_container(struct nw_system *system)
{
    char groups[4096], source[48];
    const char *given = nw_system_variable(system, "container"); /* systemd-nspawn, lxc, podman */

    nw_system_text(groups, sizeof groups, "%s/proc/self/cgroup", system->root);
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++) {
        const char *variable = containers[i].variable, *file = containers[i].file;
        const char *group = containers[i].group;

        if (variable != NULL && nw_system_variable(system, variable) != NULL)
            snprintf(source, sizeof source, "%s is set", variable);
        else if (file != NULL && nw_system_exists("%s%s", system->root, file))
            snprintf(source, sizeof source, "%s", file);
        else if (group != NULL && strstr(groups, group) != NULL)
            snprintf(source, sizeof source, "/proc/self/cgroup");
        else
            continue;
        return nw_system_say(system, NW_FACT_CONTAINER, containers[i].name, source);
    }
    if (given != NULL && given[0] != '\0')
        return nw_system_say(system, NW_FACT_CONTAINER, given, "variable container");
    if (groups[0] == '\0')
        return NW_OK;
    if (!system->processes.of_machine && !system->processes.hidden)
        return nw_system_say(system, NW_FACT_CONTAINER, "of unknown kind", "own processes only");
    return nw_system_say(system, NW_FACT_CONTAINER, "none", "/proc/self/cgroup and markers");
}

nw_rc nw_system_read_isolation(struct nw_system *system)
{
    NW_TRY(read_iommu(system));
    NW_TRY(read_hypervisor(system));
    return read_container(system);
}
