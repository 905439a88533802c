/* The attributes of an hwloc object in XML, one row each. */
#include "topo/read_xml.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

nw_rc nw_reading_type(const char *name, struct nw_raw_object *object)
{
    /* Names of version 1 ("Socket", "System"), 2 and 3. */
    static const struct {
        const char *name;
        nw_raw_type type;
    } types[] = {
        {"Machine", NW_RAW_MACHINE}, {"System", NW_RAW_MACHINE}, {"Package", NW_RAW_PACKAGE},
        {"Socket", NW_RAW_PACKAGE},  {"NUMANode", NW_RAW_NUMA},  {"Node", NW_RAW_NUMA},
        {"Core", NW_RAW_CORE},       {"PU", NW_RAW_PU},          {"Bridge", NW_RAW_PCI_BRIDGE},
        {"PCIDev", NW_RAW_PCI},      {"OSDev", NW_RAW_OSDEV}};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            object->type = types[i].type;
    return NW_OK; /* anything else is a cache, group or die */
}

static nw_rc read_os_index(struct nw_reading *reading, const char *value,
                           struct nw_raw_object *object)
{
    uint64_t number;

    if (nw_parse_u64(value, 0, UINT32_MAX, &number) != NW_OK)
        return nw_reading_bad(reading, "os_index", value, "a number from 0 to 4294967295");
    object->os_index = number <= INT32_MAX ? (int)number : -1;
    return NW_OK;
}

static nw_rc read_id(struct nw_reading *reading, const char *value, struct nw_raw_object *object)
{
    if (nw_parse_u64(value, 0, UINT64_MAX, &object->id) != NW_OK)
        return nw_reading_bad(reading, "gp_index", value, "a number");
    return NW_OK;
}

static nw_rc read_name(struct nw_reading *reading, const char *value, struct nw_raw_object *object)
{
    (void)reading;
    snprintf(object->name, sizeof object->name, "%s", value);
    return NW_OK;
}

static nw_rc read_subtype(struct nw_reading *reading, const char *value,
                          struct nw_raw_object *object)
{
    (void)reading;
    snprintf(object->subtype, sizeof object->subtype, "%s", value);
    return NW_OK;
}

/* Hexadecimal fields after a pattern: a digit stands for a field of one to so many digits, every
 * other character for itself. Behind the last field, or NULL. (sscanf's %x takes a sign and 0x,
 * too:
 * "-302" would become 4294966526.) */
static const char *scan_hex(const char *text, const char *pattern, unsigned *fields)
{
    static const char hex[] = "0123456789abcdefABCDEF";

    for (; *pattern != '\0'; pattern++) {
        const size_t most = *pattern >= '1' && *pattern <= '8' ? (size_t)(*pattern - '0') : 0;
        const size_t length = most > 0 ? strspn(text, hex) : 1;
        char digits[9] = "";

        if (most > 0 ? length == 0 || length > most : *text != *pattern)
            return NULL;
        if (most > 0) {
            memcpy(digits, text, length);
            *fields++ = (unsigned)strtoul(digits, NULL, 16);
        }
        text += length;
    }
    return text;
}

static nw_rc read_busid(struct nw_reading *reading, const char *value, struct nw_raw_object *object)
{
    unsigned at[4]; /* domain, bus, device, function */
    const char *end = scan_hex(value, "8:2:2.1", at);

    if (end == NULL || *end != '\0' || at[0] > 0xfffffff || at[2] > 0x1f || at[3] > 7)
        return nw_reading_bad(reading, "pci_busid", value, "a PCI address like 0000:17:00.0");
    object->domain = at[0];
    object->bus = at[1];
    object->device = at[2];
    object->function = at[3];
    return NW_OK;
}

/* "0302 [10de:2335] [10de:18bf] a1"; version 3 has the programming interface behind it. */
static nw_rc read_pci_type(struct nw_reading *reading, const char *value,
                           struct nw_raw_object *object)
{
    unsigned ids[3]; /* class, vendor, device */

    if (scan_hex(value, "4 [4:4]", ids) == NULL)
        return nw_reading_bad(reading, "pci_type", value, "like 0302 [10de:2335] [10de:18bf] a1");
    object->pci_class = ids[0];
    object->pci_vendor = ids[1];
    object->pci_device = ids[2];
    return NW_OK;
}

static nw_rc read_link_speed(struct nw_reading *reading, const char *value,
                             struct nw_raw_object *object)
{
    double gigabytes_per_s;

    if (nw_parse_double(value, 0, 1e6, &gigabytes_per_s) != NW_OK)
        return nw_reading_bad(reading, "pci_link_speed", value, "a rate in GB/s");
    object->link_bytes_per_s = round(gigabytes_per_s * 1e9); /* 0.000000: hwloc could not read it */
    return NW_OK;
}

static nw_rc read_bridge_type(struct nw_reading *reading, const char *value,
                              struct nw_raw_object *object)
{
    if (strcmp(value, "0-1") == 0)
        object->type = NW_RAW_HOST_BRIDGE;
    else if (strcmp(value, "1-1") != 0)
        return nw_reading_bad(reading, "bridge_type", value, "0-1 or 1-1");
    return NW_OK;
}

static nw_rc read_bridge_pci(struct nw_reading *reading, const char *value,
                             struct nw_raw_object *object)
{
    unsigned range[3]; /* domain, first and last bus */

    if (scan_hex(value, "8:[2-2]", range) == NULL || range[0] > 0xfffffff)
        return nw_reading_bad(reading, "bridge_pci", value, "a range like 0000:[17-1b]");
    if (object->type != NW_RAW_HOST_BRIDGE)
        return NW_OK; /* the bridge's own address is in pci_busid */
    object->domain = range[0];
    object->bus = range[1];
    return NW_OK;
}

static nw_rc read_memory(struct nw_reading *reading, const char *value,
                         struct nw_raw_object *object)
{
    if (nw_parse_u64(value, 0, UINT64_MAX >> 8, &object->memory_bytes) != NW_OK)
        return nw_reading_bad(reading, "local_memory", value, "a number of bytes");
    return NW_OK;
}

/* Version 3 has a bit mask where versions 1 and 2 have a number. hwloc 3.0, hwloc.h:
 * storage 1, memory 2, GPU 4, coprocessor 8, network 16, OpenFabrics 32, DMA 64. */
static nw_rc read_osdev_type(struct nw_reading *reading, const char *value,
                             struct nw_raw_object *object)
{
    static const nw_osdev numbers[] = {NW_OSDEV_BLOCK, NW_OSDEV_GPU, NW_OSDEV_NETWORK,
                                       NW_OSDEV_RDMA,  NW_OSDEV_DMA, NW_OSDEV_COPROC};
    static const struct {
        unsigned bit;
        nw_osdev osdev;
    } bits[] = {{32, NW_OSDEV_RDMA}, {16, NW_OSDEV_NETWORK}, {8, NW_OSDEV_COPROC},
                {4, NW_OSDEV_GPU},   {1, NW_OSDEV_BLOCK},    {64, NW_OSDEV_DMA}};
    uint64_t number;

    if (nw_parse_u64(value, 0, UINT32_MAX, &number) != NW_OK)
        return nw_reading_bad(reading, "osdev_type", value, "a number");
    if (reading->raw->format < 3) {
        if (number < sizeof numbers / sizeof *numbers)
            object->osdev = numbers[number];
        return NW_OK;
    }
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if ((number & bits[i].bit) != 0) {
            object->osdev = bits[i].osdev;
            break;
        }
    return NW_OK;
}

/* "0xf...f,0x0000ffff,,0x0": groups of 32 bits, highest first; an empty one is 0. Checked here, as
 * hwloc_bitmap_sscanf asserts what it expects (2.9 aborts on ",0x1"). */
static bool is_bitmap(const char *text)
{
    enum { MAX_GROUPS = 4096 };
    int groups = 0;

    if (strncmp(text, "0xf...f", 7) == 0) {
        text += 7;
        if (*text == '\0')
            return true;
        if (*text++ != ',')
            return false;
    }
    for (;;) {
        const size_t length = strcspn(text, ",");
        const bool last = text[length] == '\0';

        if (length == 0 && (groups == 0 || last))
            return false;
        if (length > 0 && (strncmp(text, "0x", 2) != 0 || length < 3 || length > 10 ||
                           strspn(text + 2, "0123456789abcdefABCDEF") != length - 2))
            return false;
        if (++groups > MAX_GROUPS)
            return false;
        if (last)
            return true;
        text += length + 1;
    }
}

static nw_rc read_set(struct nw_reading *reading, const char *attribute, const char *value,
                      hwloc_bitmap_t *set_out)
{
    hwloc_bitmap_t set;

    if (!is_bitmap(value))
        return nw_reading_bad(reading, attribute, value, "a bitmap like 0x0000ffff,0xffffffff");
    set = hwloc_bitmap_alloc();
    if (set == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for %s", attribute);
    if (hwloc_bitmap_sscanf(set, value) != 0) {
        hwloc_bitmap_free(set);
        return nw_reading_bad(reading, attribute, value, "a bitmap like 0x0000ffff,0xffffffff");
    }
    hwloc_bitmap_free(*set_out);
    *set_out = set;
    return NW_OK;
}

static nw_rc read_nodeset(struct nw_reading *reading, const char *value,
                          struct nw_raw_object *object)
{
    /* "0x0" (a node without memory of its own, version 1) says less than complete_nodeset. */
    if (object->nodeset != NULL && strcmp(value, "0x0") == 0)
        return NW_OK;
    return read_set(reading, "nodeset", value, &object->nodeset);
}

static nw_rc read_complete_nodeset(struct nw_reading *reading, const char *value,
                                   struct nw_raw_object *object)
{
    if (object->nodeset != NULL && !hwloc_bitmap_iszero(object->nodeset))
        return NW_OK;
    return read_set(reading, "complete_nodeset", value, &object->nodeset);
}

static nw_rc read_cpuset(struct nw_reading *reading, const char *value,
                         struct nw_raw_object *object)
{
    if (object->type != NW_RAW_MACHINE && object->type != NW_RAW_NUMA)
        return NW_OK;
    return read_set(reading, "cpuset", value, &object->cpuset);
}

static nw_rc read_count(struct nw_reading *reading, const char *attribute, const char *value,
                        int *count_out)
{
    hwloc_bitmap_t set = NULL;
    int weight;

    NW_TRY(read_set(reading, attribute, value, &set));
    weight = hwloc_bitmap_weight(set);
    hwloc_bitmap_free(set);
    *count_out = weight > 0 ? weight : 0; /* -1: "0xf...f", no end */
    return NW_OK;
}

static nw_rc read_complete_cpuset(struct nw_reading *reading, const char *value,
                                  struct nw_raw_object *object)
{
    if (object->type != NW_RAW_MACHINE)
        return NW_OK;
    return read_count(reading, "complete_cpuset", value, &reading->raw->pu_complete_count);
}

static nw_rc read_allowed_cpuset(struct nw_reading *reading, const char *value,
                                 struct nw_raw_object *object)
{
    if (object->type != NW_RAW_MACHINE)
        return NW_OK;
    return read_count(reading, "allowed_cpuset", value, &reading->raw->pu_allowed_count);
}

static const struct {
    const char *name;
    nw_rc (*read)(struct nw_reading *reading, const char *value, struct nw_raw_object *object);
} attributes[] = {
    {"os_index", read_os_index},
    {"gp_index", read_id},
    {"name", read_name},
    {"subtype", read_subtype},
    {"cpuset", read_cpuset},
    {"complete_cpuset", read_complete_cpuset},
    {"allowed_cpuset", read_allowed_cpuset},
    {"nodeset", read_nodeset},
    {"complete_nodeset", read_complete_nodeset},
    {"local_memory", read_memory},
    {"bridge_type", read_bridge_type},
    {"bridge_pci", read_bridge_pci},
    {"pci_busid", read_busid},
    {"pci_type", read_pci_type},
    {"pci_link_speed", read_link_speed},
    {"osdev_type", read_osdev_type},
};

static nw_rc read_attribute(struct nw_reading *reading, int index)
{
    const char *name = (const char *)xmlTextReaderConstName(reading->xml.reader);
    const char *value = (const char *)xmlTextReaderConstValue(reading->xml.reader);

    if (name == NULL || value == NULL)
        return NW_OK;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (strcmp(attributes[i].name, name) == 0)
            return attributes[i].read(reading, value, &reading->raw->objects[index]);
    return NW_OK;
}

nw_rc nw_reading_attributes(struct nw_reading *reading, int index)
{
    while (xmlTextReaderMoveToNextAttribute(reading->xml.reader) == 1)
        NW_TRY(read_attribute(reading, index));
    xmlTextReaderMoveToElement(reading->xml.reader);
    return NW_OK;
}
