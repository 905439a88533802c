/* This machine: hwloc, completed from /sys and /proc. */
#include "topo/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "topo/live_nvml.h"
#include "topo/live_pci.h"
#include "topo/live_rdma.h"

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

static nw_rc finish(const struct nw_sysfs *sysfs, struct nw_topo *topo)
{
    nw_sysfs_annotate(sysfs, topo);
    name_os(topo);
    NW_TRY(nw_live_pci(sysfs, topo));
    NW_TRY(nw_nvml_live(topo));
    NW_TRY(nw_rdma_live(sysfs->sys, topo));
    nw_topo_clean(topo);
    NW_TRY(nw_topo_judge(topo));
    return nw_sysfs_judge_limits(sysfs, topo);
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
