/* Names of PCI devices from the system's PCI ID database. hwloc would take them through
 * libpciaccess, whose plug-in is not everywhere and leaks. Format (https://pci-ids.ucw.cz): "10de
 * NVIDIA Corporation", below it "<tab>2330  GH100 [H100 SXM5 80GB]", below that subsystems with two
 * tabs; device classes
 * ("C 00") come last. */
#include "topo/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hex4(const char *text)
{
    unsigned value;

    if (strspn(text, "0123456789abcdef") != 4 || sscanf(text, "%4x", &value) != 1)
        return -1;
    return (int)value;
}

static bool is_pci(const struct nw_raw_object *object)
{
    return object->type == NW_RAW_PCI || object->type == NW_RAW_PCI_BRIDGE;
}

/* Gives the name to every device of `vendor` (and `device`, unless it is -1) that has none yet;
 * returns how many objects are concerned in `used_out`. */
static nw_rc give_name(struct nw_raw *raw, int vendor, int device, const char *key,
                       const char *name, int *used_out)
{
    int used = 0;

    for (size_t i = 0; i < raw->count; i++) {
        const struct nw_raw_object *object = &raw->objects[i];

        if (!is_pci(object) || object->pci_vendor != (uint32_t)vendor ||
            (device >= 0 && object->pci_device != (uint32_t)device))
            continue;
        used++;
        if (nw_raw_info(raw, (int)i, key) == NULL)
            NW_TRY(nw_raw_add_info(raw, (int)i, key, name));
    }
    *used_out = used;
    return NW_OK;
}

static nw_rc read_ids(FILE *stream, struct nw_raw *raw)
{
    char line[512];
    int vendor = -1, used = 0;

    while (fgets(line, sizeof line, stream) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        if (strncmp(line, "C ", 2) == 0)
            return NW_OK;
        if (line[0] == '\t' && line[1] != '\t' && vendor >= 0 && strlen(line) > 7) {
            const int device = hex4(line + 1);

            if (device >= 0)
                NW_TRY(give_name(raw, vendor, device, "PCIDevice", line + 7, &used));
        } else if (line[0] != '\t' && line[0] != '#' && strlen(line) > 6) {
            vendor = hex4(line);
            used = 0;
            if (vendor >= 0)
                NW_TRY(give_name(raw, vendor, -1, "PCIVendor", line + 6, &used));
            if (used == 0)
                vendor = -1; /* its devices are of no interest */
        }
    }
    return NW_OK;
}

nw_rc nw_pci_ids_complete(const struct nw_sysfs *sysfs, struct nw_raw *raw)
{
    for (size_t i = 0; sysfs->pci_ids[i] != NULL; i++) {
        FILE *stream = fopen(sysfs->pci_ids[i], "re");
        nw_rc rc;

        if (stream == NULL)
            continue;
        rc = read_ids(stream, raw);
        fclose(stream);
        return rc;
    }
    return NW_OK; /* none here: vendors and classes are named by number */
}
