#include "topo/classify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* --- which kind --- */

/* Server board management consoles of ATI's time: vendor and class of a GPU, and none. */
static bool is_console(const struct nw_raw_object *object)
{
    static const uint32_t consoles[] = {0x4752 /* Rage XL */, 0x5159 /* RV100 */,
                                        0x515e /* ES1000 */, 0x5969 /* ES1000 */};

    for (size_t i = 0; i < sizeof consoles / sizeof *consoles; i++)
        if (object->pci_vendor == NW_PCI_VENDOR_AMD && object->pci_device == consoles[i])
            return true;
    return false;
}

static bool is_gpu_osdev(const struct nw_raw_object *object)
{
    static const char *const prefixes[] = {"cuda", "nvml", "rsmi", "ze"};

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if ((object->osdev == NW_OSDEV_GPU || object->osdev == NW_OSDEV_COPROC) &&
            starts_with(object->name, prefixes[i]))
            return true;
    return false;
}

static bool is_gpu(const struct nw_raw *raw, const struct nw_device *device)
{
    const struct nw_raw_object *object = &raw->objects[device->object];
    const uint32_t class_id = object->pci_class;

    for (size_t i = 0; i < device->osdev_count; i++)
        if (is_gpu_osdev(&raw->objects[device->osdevs[i]]))
            return true;
    if (is_console(object))
        return false;
    if (object->pci_vendor == NW_PCI_VENDOR_NVIDIA)
        return class_id == NW_PCI_CLASS_VGA || class_id == NW_PCI_CLASS_3D;
    return object->pci_vendor == NW_PCI_VENDOR_AMD &&
           (class_id == NW_PCI_CLASS_VGA || class_id == NW_PCI_CLASS_3D ||
            class_id == NW_PCI_CLASS_DISPLAY || class_id == NW_PCI_CLASS_ACCELERATOR);
}

static bool has_osdev(const struct nw_raw *raw, const struct nw_device *device, nw_osdev osdev)
{
    for (size_t i = 0; i < device->osdev_count; i++)
        if (raw->objects[device->osdevs[i]].osdev == osdev)
            return true;
    return false;
}

static bool is_disk(const struct nw_raw *raw, int osdev)
{
    static const char *const others[] = {"sr", "loop", "zram", "ram", "dm-", "fd", "dax", "md"};
    const struct nw_raw_object *object = &raw->objects[osdev];
    const char *type = nw_raw_info(raw, osdev, "Type"); /* version 1; later the subtype */

    if (object->osdev != NW_OSDEV_BLOCK)
        return false;
    if (type == NULL)
        type = object->subtype;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (starts_with(object->name, others[i]))
            return false;
    return type[0] == '\0' || strcmp(type, "Disk") == 0 || strcmp(type, "NVM") == 0;
}

/* Other PCI devices worth telling: controllers whose disks or ports the system doesn't show,
 * NVSwitches, accelerators, consoles. */
static bool is_worth_telling(const struct nw_raw_object *object)
{
    switch (object->pci_class >> 8) {
    case 0x01:
    case 0x02:
    case 0x03:
    case 0x12:
        return true;
    default:
        return object->pci_class == NW_PCI_CLASS_COPROCESSOR ||
               object->pci_class == NW_PCI_CLASS_INFINIBAND_OLD ||
               (object->pci_class == NW_PCI_CLASS_BRIDGE_OTHER &&
                object->pci_vendor == NW_PCI_VENDOR_NVIDIA);
    }
}

/* A network controller without an OS device has no driver bound, unless the whole export is without
 * OS devices. */
static bool is_nic(const struct nw_raw *raw, const struct nw_device *device, bool any_network)
{
    const struct nw_raw_object *object = &raw->objects[device->object];

    if (has_osdev(raw, device, NW_OSDEV_NETWORK) || has_osdev(raw, device, NW_OSDEV_RDMA))
        return true;
    return !any_network && object->type == NW_RAW_PCI &&
           (object->pci_class >> 8 == 0x02 || object->pci_class == NW_PCI_CLASS_INFINIBAND_OLD);
}

/* --- the list --- */

struct finding_devices {
    const struct nw_raw *raw;
    struct nw_device *devices;
    size_t count, capacity;
    int *first_osdev, *next_osdev; /* the OS devices of each object, in order */
    bool any_network;
};

static nw_rc add_device(struct finding_devices *finding, nw_node_kind kind, int object,
                        const int *osdevs, size_t osdev_count)
{
    struct nw_device *device;

    if (finding->count == NW_RAW_MAX_DEVICES)
        return nw_fail(NW_EUSAGE, "more than %d devices: this is no machine's topology",
                       (int)NW_RAW_MAX_DEVICES);
    if (finding->count == finding->capacity) {
        const size_t capacity = finding->capacity != 0 ? 2 * finding->capacity : 64;
        struct nw_device *devices = realloc(finding->devices, capacity * sizeof *devices);

        if (devices == NULL)
            return nw_fail(NW_ENOMEM, "out of memory for %zu devices", capacity);
        finding->devices = devices;
        finding->capacity = capacity;
    }
    device = &finding->devices[finding->count];
    *device = (struct nw_device){.kind = kind, .object = object, .osdev_count = osdev_count};
    device->osdevs = calloc(osdev_count + 1, sizeof *device->osdevs);
    if (device->osdevs == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for a device");
    if (osdev_count > 0)
        memcpy(device->osdevs, osdevs, osdev_count * sizeof *osdevs);
    finding->count++;
    return NW_OK;
}

static nw_rc add_pci_device(struct finding_devices *finding, const struct nw_device *device)
{
    const struct nw_raw *raw = finding->raw;
    bool disks = false;

    if (is_gpu(raw, device))
        return add_device(finding, NW_NODE_GPU, device->object, device->osdevs,
                          device->osdev_count);
    if (is_nic(raw, device, finding->any_network))
        return add_device(finding, NW_NODE_NIC, device->object, device->osdevs,
                          device->osdev_count);
    for (size_t i = 0; i < device->osdev_count; i++)
        if (is_disk(raw, device->osdevs[i])) {
            disks = true;
            NW_TRY(add_device(finding, NW_NODE_DISK, device->object, &device->osdevs[i], 1));
        }
    if (!disks && is_worth_telling(&raw->objects[device->object]))
        return add_device(finding, NW_NODE_PCI, device->object, device->osdevs,
                          device->osdev_count);
    return NW_OK;
}

/* An OS device that hangs below no PCI device: virtual machines, integrated GPUs. */
static nw_rc add_lone_osdev(struct finding_devices *finding, int osdev)
{
    const struct nw_raw_object *object = &finding->raw->objects[osdev];

    if (object->osdev == NW_OSDEV_NETWORK || object->osdev == NW_OSDEV_RDMA)
        return add_device(finding, NW_NODE_NIC, osdev, &osdev, 1);
    if (is_disk(finding->raw, osdev))
        return add_device(finding, NW_NODE_DISK, osdev, &osdev, 1);
    if (is_gpu_osdev(object) && !starts_with(object->name, "nvml"))
        return add_device(finding, NW_NODE_GPU, osdev, &osdev, 1);
    return NW_OK;
}

static nw_rc collect(struct finding_devices *finding)
{
    const struct nw_raw *raw = finding->raw;
    int *osdevs = calloc(raw->count + 1, sizeof *osdevs);
    nw_rc rc = NW_OK;

    if (osdevs == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for %zu objects", raw->count);
    for (size_t i = 0; i < raw->count && rc == NW_OK; i++) {
        struct nw_device device = {.object = (int)i, .osdevs = osdevs};
        const int parent = raw->objects[i].parent;

        if (raw->objects[i].type == NW_RAW_PCI) {
            for (int os = finding->first_osdev[i]; os >= 0; os = finding->next_osdev[os])
                osdevs[device.osdev_count++] = os;
            rc = add_pci_device(finding, &device);
        } else if (raw->objects[i].type == NW_RAW_OSDEV &&
                   (parent < 0 || raw->objects[parent].type != NW_RAW_PCI)) {
            rc = add_lone_osdev(finding, (int)i);
        }
    }
    free(osdevs);
    return rc;
}

static void link_osdevs(struct finding_devices *finding)
{
    const struct nw_raw *raw = finding->raw;

    for (size_t i = 0; i < raw->count; i++)
        finding->first_osdev[i] = finding->next_osdev[i] = -1;
    for (size_t i = raw->count; i-- > 0;) {
        const struct nw_raw_object *object = &raw->objects[i];

        if (object->type != NW_RAW_OSDEV)
            continue;
        finding->any_network |= object->osdev == NW_OSDEV_NETWORK || object->osdev == NW_OSDEV_RDMA;
        if (object->parent >= 0) {
            finding->next_osdev[i] = finding->first_osdev[object->parent];
            finding->first_osdev[object->parent] = (int)i;
        }
    }
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct nw_raw *raw = arg;
    const struct nw_device *x = a, *y = b;
    const struct nw_raw_object *p = &raw->objects[x->object], *q = &raw->objects[y->object];
    const uint32_t keys[][2] = {
        {(uint32_t)x->kind, (uint32_t)y->kind},
        {p->type != NW_RAW_PCI, q->type != NW_RAW_PCI}, /* those without an address come last */
        {p->domain, q->domain},
        {p->bus, q->bus},
        {p->device, q->device},
        {p->function, q->function},
        {(uint32_t)x->osdevs[0], (uint32_t)y->osdevs[0]},
        {(uint32_t)x->object, (uint32_t)y->object},
    };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

nw_rc nw_find_devices(const struct nw_raw *raw, struct nw_device **devices_out, size_t *count_out)
{
    struct finding_devices finding = {.raw = raw};
    nw_rc rc;

    finding.first_osdev = calloc(raw->count + 1, sizeof *finding.first_osdev);
    finding.next_osdev = calloc(raw->count + 1, sizeof *finding.next_osdev);
    if (finding.first_osdev == NULL || finding.next_osdev == NULL) {
        rc = nw_fail(NW_ENOMEM, "out of memory for %zu objects", raw->count);
    } else {
        link_osdevs(&finding);
        rc = collect(&finding);
    }
    free(finding.first_osdev);
    free(finding.next_osdev);
    if (rc != NW_OK) {
        nw_devices_free(finding.devices, finding.count);
        return rc;
    }
    if (finding.count > 1)
        qsort_r(finding.devices, finding.count, sizeof *finding.devices, compare, (void *)raw);
    *devices_out = finding.devices;
    *count_out = finding.count;
    return NW_OK;
}

void nw_devices_free(struct nw_device *devices, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(devices[i].osdevs);
    free(devices);
}
