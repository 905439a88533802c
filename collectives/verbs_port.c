/* What the kernel tells of an RDMA port. Formats: Documentation/ABI/stable/sysfs-class-infiniband,
 * testing/sysfs-class-infiniband. */
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/verbs_gid.h"
#include "collectives/verbs_port.h"

enum { MAX_GIDS = 256, QUIET_ROWS = 16 };

/* The first line without its newline; false: not there, or empty. */
__attribute__((format(printf, 3, 4))) static bool read_line(char *text, size_t size,
                                                            const char *format, ...)
{
    char path[PATH_MAX];
    va_list arguments;
    FILE *file;
    bool read;

    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    read = fgets(text, (int)size, file) != NULL;
    (void)fclose(file);
    if (!read)
        return false;
    text[strcspn(text, "\n")] = '\0';
    return text[0] != '\0';
}

/* …/0000:17:00.0/infiniband/mlx5_0: the folder that class/infiniband/mlx5_0/device leads to. */
static void read_place(const char *sys, struct nw_verbs_port *port)
{
    char path[PATH_MAX], target[PATH_MAX], text[32];
    const char *name;

    snprintf(path, sizeof path, "%s/class/infiniband/%s/device", sys, port->device);
    if (realpath(path, target) != NULL && (name = strrchr(target, '/')) != NULL &&
        strlen(name + 1) == 12 && name[5] == ':' && name[8] == ':' && name[11] == '.')
        snprintf(port->pci, sizeof port->pci, "%.15s", name + 1);
    if (read_line(text, sizeof text, "%s/numa_node", path) &&
        (sscanf(text, "%9d", &port->numa) != 1 || port->numa < 0))
        port->numa = -1;
    port->software =
        port->pci[0] == '\0' &&
        read_line(text, sizeof text, "%s/class/infiniband/%s/parent", sys, port->device);
    port->iwarp =
        read_line(text, sizeof text, "%s/class/infiniband/%s/node_type", sys, port->device) &&
        strstr(text, "RNIC") != NULL;
}

static nw_rc read_gids(const char *folder, struct nw_verbs_port *port)
{
    const bool infiniband = strcmp(port->link_layer, "infiniband") == 0;
    int quiet = 0;

    for (int i = 0; i < MAX_GIDS && quiet < QUIET_ROWS; i++) {
        struct nw_verbs_gid gid = {.index = i}, *gids;
        char text[64], type[32] = "";

        quiet++;
        if (!read_line(text, sizeof text, "%s/gids/%d", folder, i) ||
            !nw_verbs_gid_parse(text, gid.raw))
            continue;
        quiet = 0;
        if (!read_line(type, sizeof type, "%s/gid_attrs/types/%d", folder, i) && !infiniband)
            continue;
        gid.kind = infiniband ? NW_VERBS_GID_INFINIBAND
                              : nw_verbs_gid_kind_of(gid.raw, strstr(type, "v2") != NULL);
        gids = realloc(port->gids, (port->gid_count + 1) * sizeof *gids);
        if (gids == NULL)
            return nw_fail(NW_ENOMEM, "out of memory for the GIDs of %s", port->device);
        port->gids = gids;
        gids[port->gid_count++] = gid;
        if (port->interface[0] == '\0')
            (void)read_line(port->interface, sizeof port->interface, "%s/gid_attrs/ndevs/%d",
                            folder, i);
    }
    return NW_OK;
}

/* "4: ACTIVE" */
static void read_state(const char *folder, struct nw_verbs_port *port)
{
    char text[64];
    const char *word;

    if (!read_line(text, sizeof text, "%s/state", folder) || (word = strstr(text, ": ")) == NULL)
        return;
    snprintf(port->state, sizeof port->state, "%.15s", word + 2);
    for (char *c = port->state; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    port->active = strcmp(port->state, "active") == 0;
}

nw_rc nw_verbs_port_read(const char *sys, struct nw_verbs_port *port)
{
    char folder[PATH_MAX / 2], text[64];
    double gbits;

    port->numa = -1;
    port->bits_per_s = NAN;
    snprintf(port->state, sizeof port->state, "unknown");
    snprintf(port->link_layer, sizeof port->link_layer, "unknown");
    snprintf(folder, sizeof folder, "%.1000s/class/infiniband/%s/ports/%d", sys, port->device,
             port->number);
    read_place(sys, port);
    read_state(folder, port);
    if (read_line(text, sizeof text, "%s/link_layer", folder))
        snprintf(port->link_layer, sizeof port->link_layer, "%s",
                 strcmp(text, "InfiniBand") == 0 ? "infiniband"
                 : strcmp(text, "Ethernet") == 0 ? "ethernet"
                                                 : "unknown");
    port->roce = strcmp(port->link_layer, "ethernet") == 0 && !port->iwarp;
    /* "400 Gb/sec (4X NDR)"; of a port that is down it is a placeholder. */
    if (port->active && read_line(text, sizeof text, "%s/rate", folder) &&
        sscanf(text, "%15lf", &gbits) == 1 && gbits > 0)
        port->bits_per_s = gbits * 1e9;
    return read_gids(folder, port);
}
