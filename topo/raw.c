#include "topo/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

void nw_raw_init(struct nw_raw *raw)
{
    *raw = (struct nw_raw){0};
}

void nw_raw_free(struct nw_raw *raw)
{
    for (size_t i = 0; i < raw->count; i++) {
        struct nw_raw_object *object = &raw->objects[i];

        hwloc_bitmap_free(object->cpuset);
        hwloc_bitmap_free(object->nodeset);
        for (size_t info = 0; info < object->info_count; info++) {
            free(object->infos[info].name);
            free(object->infos[info].value);
        }
        free(object->infos);
    }
    free(raw->objects);
    for (size_t i = 0; i < raw->matrix_count; i++) {
        free(raw->matrices[i].objects);
        free(raw->matrices[i].values);
    }
    free(raw->matrices);
    free(raw->numas);
    nw_raw_init(raw);
}

nw_rc nw_raw_add(struct nw_raw *raw, nw_raw_type type, int parent, int *index_out)
{
    if (raw->count == NW_RAW_MAX_OBJECTS)
        return nw_fail(NW_EUSAGE, "more than %d objects: this is no machine's topology",
                       (int)NW_RAW_MAX_OBJECTS);
    if (raw->count == raw->capacity) {
        const size_t capacity = raw->capacity != 0 ? 2 * raw->capacity : 256;
        struct nw_raw_object *objects = realloc(raw->objects, capacity * sizeof *objects);

        if (objects == NULL)
            return nw_fail(NW_ENOMEM, "out of memory for %zu topology objects", capacity);
        raw->objects = objects;
        raw->capacity = capacity;
    }
    *index_out = (int)raw->count;
    raw->objects[raw->count++] =
        (struct nw_raw_object){.type = type, .parent = parent, .os_index = -1};
    return NW_OK;
}

static bool info_is_used(const char *name)
{
    static const char *const used[] = {
        "Address",      "CPUModel",       "DAXDevice",     "DMIProductName",
        "GPUModel",     "HostName",       "LinuxCgroup",   "Model",
        "OSName",       "OSRelease",      "PCIDevice",     "PCIVendor",
        "Port1State",   "Port2State",     "PlatformModel", "RSMIVRAMSize",
        "Size",         "Type",           "hwlocVersion",  "CUDAGlobalMemorySize",
        "Architecture", "Port3State",     "Port4State",    "OpenCLGlobalMemorySize",
        "CPUFamily",    "CPUFamilyNumber"};

    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        if (strcmp(used[i], name) == 0)
            return true;
    return false;
}

nw_rc nw_raw_add_info(struct nw_raw *raw, int index, const char *name, const char *value)
{
    struct nw_raw_object *object = &raw->objects[index];
    struct nw_raw_info *infos;

    if (!info_is_used(name) || object->info_count == NW_RAW_MAX_INFOS)
        return NW_OK;
    infos = realloc(object->infos, (object->info_count + 1) * sizeof *infos);
    if (infos != NULL) {
        struct nw_raw_info *info = &infos[object->info_count];

        object->infos = infos;
        *info = (struct nw_raw_info){.name = strdup(name), .value = strdup(value)};
        if (info->name != NULL && info->value != NULL) {
            object->info_count++;
            return NW_OK;
        }
        free(info->name);
        free(info->value);
    }
    return nw_fail(NW_ENOMEM, "out of memory for the facts of a topology object");
}

const char *nw_raw_info(const struct nw_raw *raw, int index, const char *name)
{
    const struct nw_raw_object *object = &raw->objects[index];

    for (size_t i = 0; i < object->info_count; i++)
        if (strcmp(object->infos[i].name, name) == 0)
            return object->infos[i].value;
    return NULL;
}

nw_rc nw_raw_add_matrix(struct nw_raw *raw, const char *name, size_t count,
                        struct nw_raw_matrix **matrix_out)
{
    struct nw_raw_matrix *matrices =
        realloc(raw->matrices, (raw->matrix_count + 1) * sizeof *matrices);
    struct nw_raw_matrix *matrix;

    if (matrices == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for matrix %s", name);
    raw->matrices = matrices;
    matrix = &matrices[raw->matrix_count];
    *matrix = (struct nw_raw_matrix){.count = count,
                                     .objects = calloc(count, sizeof *matrix->objects),
                                     .values = calloc(count * count, sizeof *matrix->values)};
    if (matrix->objects == NULL || matrix->values == NULL) {
        free(matrix->objects);
        free(matrix->values);
        return nw_fail(NW_ENOMEM, "out of memory for matrix %s of %zu objects", name, count);
    }
    snprintf(matrix->name, sizeof matrix->name, "%s", name);
    for (size_t i = 0; i < count; i++)
        matrix->objects[i] = -1;
    raw->matrix_count++;
    *matrix_out = matrix;
    return NW_OK;
}

int nw_raw_hwloc_version(const char *text)
{
    unsigned major, minor;

    if (sscanf(text, "%4u.%4u", &major, &minor) != 2 || major > 99 || minor > 99)
        return 0;
    return (int)(major * 100 + minor);
}

const char *nw_raw_pci_text(const struct nw_raw_object *object, char text[16])
{
    snprintf(text, 16, "%04x:%02x:%02x.%01x", object->domain & 0xfffffff, object->bus & 0xff,
             object->device & 0x1f, object->function & 7);
    return text;
}

nw_rc nw_raw_finish(struct nw_raw *raw)
{
    size_t packages = 0;

    free(raw->numas);
    raw->numa_count = 0;
    raw->numas = calloc(NW_RAW_MAX_NUMA, sizeof *raw->numas);
    if (raw->numas == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the NUMA nodes");
    for (size_t i = 0; i < raw->count; i++) {
        packages += raw->objects[i].type == NW_RAW_PACKAGE;
        if (raw->objects[i].type != NW_RAW_NUMA)
            continue;
        if (raw->numa_count == NW_RAW_MAX_NUMA)
            return nw_fail(NW_EUSAGE, "more than %d NUMA nodes: this is no machine's topology",
                           (int)NW_RAW_MAX_NUMA);
        raw->numas[raw->numa_count++] = (int)i;
    }
    if (packages > NW_RAW_MAX_NUMA)
        return nw_fail(NW_EUSAGE, "more than %d packages: this is no machine's topology",
                       (int)NW_RAW_MAX_NUMA);
    return NW_OK;
}
