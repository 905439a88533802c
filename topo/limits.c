/* What the control groups (version 2) of this process leave of the machine. */
#include "topo/read.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

static bool read_limit(const struct nw_sysfs *sysfs, const char *folder, const char *file,
                       char *text, size_t size)
{
    char path[PATH_MAX];
    FILE *stream;
    bool read;

    const int needed = snprintf(path, sizeof path, "%s/fs/cgroup%s/%s", sysfs->sys, folder, file);
    if (needed < 0 || (size_t)needed >= sizeof path)
        return false;
    stream = fopen(path, "re");
    if (stream == NULL)
        return false;
    read = fgets(text, (int)size, stream) != NULL;
    fclose(stream);
    text[strcspn(text, "\n")] = '\0';
    return read;
}

/* The control group (version 2) of this process, "" when it is the root or unknown. */
static void own_group(const struct nw_sysfs *sysfs, char *folder, size_t size)
{
    char line[PATH_MAX], path[PATH_MAX];
    FILE *stream;

    snprintf(path, sizeof path, "%s/self/cgroup", sysfs->proc);
    stream = fopen(path, "re");
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
nw_rc nw_sysfs_judge_limits(const struct nw_sysfs *sysfs, struct nw_topo *topo)
{
    char folder[PATH_MAX], text[64], have[32], may[32];
    uint64_t least = UINT64_MAX, bytes;
    double least_cpus = 1e9, quota, period;

    own_group(sysfs, folder, sizeof folder);
    for (;;) {
        if (read_limit(sysfs, folder, "memory.max", text, sizeof text) &&
            nw_parse_u64(text, 0, UINT64_MAX, &bytes) == NW_OK && bytes < least)
            least = bytes;
        if (read_limit(sysfs, folder, "cpu.max", text, sizeof text) &&
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
