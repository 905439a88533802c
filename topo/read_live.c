/* This machine: hwloc, completed from /sys and /proc. */
#include "topo/read.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/units.h"

/* "Debian GNU/Linux 12 (bookworm), Linux 6.1.0-18-amd64" */
static void name_os(struct nw_topo *topo)
{
    struct utsname system;
    char line[256], pretty[60] = "";
    FILE *release = fopen("/etc/os-release", "re");

    while (release != NULL && fgets(line, sizeof line, release) != NULL) {
        if (strncmp(line, "PRETTY_NAME=", 12) != 0)
            continue;
        char *start = line + 12 + (line[12] == '"');

        start[strcspn(start, "\"\n")] = '\0';
        snprintf(pretty, sizeof pretty, "%.59s", start);
    }
    if (release != NULL)
        fclose(release);
    if (uname(&system) == 0) {
        snprintf(topo->os, sizeof topo->os, "%s%s%s %.50s", pretty, pretty[0] != '\0' ? ", " : "",
                 system.sysname, system.release);
        snprintf(topo->host, sizeof topo->host, "%.63s", system.nodename);
    }
}

static bool read_limit(const char *folder, const char *file, char *text, size_t size)
{
    char path[PATH_MAX];
    FILE *stream;
    bool read;

    snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", folder, file);
    stream = fopen(path, "re");
    if (stream == NULL)
        return false;
    read = fgets(text, (int)size, stream) != NULL;
    fclose(stream);
    text[strcspn(text, "\n")] = '\0';
    return read;
}

/* The control group (version 2) of this process, "" when it is the root or unknown. */
static void own_group(char *folder, size_t size)
{
    char line[PATH_MAX];
    FILE *stream = fopen("/proc/self/cgroup", "re");

    folder[0] = '\0';
    while (stream != NULL && fgets(line, sizeof line, stream) != NULL)
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(folder, size, "%s", strcmp(line, "0::/") == 0 ? "" : line + 3);
        }
    if (stream != NULL)
        fclose(stream);
}

/* A container shows the whole machine and gives a part of it: memory.max, cpu.max of the group and
 * all above it. */
static nw_rc judge_limits(struct nw_topo *topo)
{
    char folder[PATH_MAX], text[64], have[32], may[32];
    uint64_t least = UINT64_MAX, bytes;
    double least_cpus = 1e9, quota, period;

    own_group(folder, sizeof folder);
    for (;;) {
        if (read_limit(folder, "memory.max", text, sizeof text) &&
            nw_parse_u64(text, 0, UINT64_MAX, &bytes) == NW_OK && bytes < least)
            least = bytes;
        if (read_limit(folder, "cpu.max", text, sizeof text) &&
            sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0 &&
            quota / period < least_cpus)
            least_cpus = quota / period;
        char *slash = strrchr(folder, '/');

        if (slash == NULL)
            break;
        *slash = '\0';
    }
    nw_clear_error(); /* "max" is no number */
    if (least < topo->memory_bytes)
        NW_TRY(nw_findings_add(&topo->findings, NW_FINDING_WARN, "memory-limited", topo->host,
                               "raise the container's or job's memory limit",
                               "this process may use %s of the machine's %s of memory",
                               nw_format_bytes(may, least),
                               nw_format_bytes(have, topo->memory_bytes)));
    if (least_cpus < topo->pu_count)
        NW_TRY(nw_findings_add(&topo->findings, NW_FINDING_WARN, "cpu-limited", topo->host,
                               "raise the container's or job's CPU limit",
                               "this process may use %.1f of the machine's %d hardware threads",
                               least_cpus, topo->pu_count));
    return NW_OK;
}

static nw_rc finish(const struct nw_sysfs *sysfs, struct nw_topo *topo)
{
    nw_sysfs_annotate(sysfs, topo);
    name_os(topo);
    nw_topo_clean(topo);
    NW_TRY(nw_topo_judge(topo));
    return judge_limits(topo);
}

nw_rc nw_topo_read_live(struct nw_topo **topo_out)
{
    static const char *const pci_ids[] = {"/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids",
                                          "/usr/share/pci.ids", NULL};
    static const struct nw_sysfs sysfs = {.sys = "/sys", .proc = "/proc", .pci_ids = pci_ids};
    struct nw_topo *topo = NULL;
    struct nw_raw raw;
    nw_rc rc;

    nw_raw_init(&raw);
    rc = nw_raw_from_hwloc(&raw);
    if (rc == NW_OK)
        rc = nw_sysfs_complete(&sysfs, &raw);
    if (rc == NW_OK)
        rc = nw_pci_ids_complete(&sysfs, &raw);
    if (rc == NW_OK)
        rc = nw_topo_build(&raw, &topo);
    nw_raw_free(&raw);
    if (rc == NW_OK)
        rc = finish(&sysfs, topo);
    if (rc != NW_OK) {
        nw_topo_free(topo);
        return rc;
    }
    *topo_out = topo;
    return NW_OK;
}
