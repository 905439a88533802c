/* hwloc XML of versions 1, 2 and 3, read with libxml2's streaming reader and not with libhwloc: 2.9
 * refuses version 3, its importer asserts consistency that a hostile file need not have, and both
 * parsers write to stderr. What is used from a file is small: the tree, a few attributes and facts,
 * and the bandwidth matrices. tests/unit/test_topo_hwloc_oracle.c holds the outcome against
 * libhwloc's own import. */
#include "topo/read.h"

#include <libxml/xmlreader.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

enum { MAX_DEPTH = 128 }; /* libxml2 itself stops at 256 */

struct reading {
    xmlTextReaderPtr xml;
    struct nw_raw *raw;
    const char *what;
    int object_at[MAX_DEPTH]; /* object opened at this depth, -1: another element */
    struct nw_raw_matrix *matrix;
    bool wanted_indexes, wanted_values; /* text that follows belongs to the matrix */
    size_t index_count, value_count;
    bool by_id;      /* the matrix' indexes are gp_index; else os_index, which devices lack */
    uint64_t *ids;   /* its indexes as written, count entries */
    char error[256]; /* first complaint of libxml2; "": none */
    int error_line;
};

static int line_of(const struct reading *reading)
{
    return xmlTextReaderGetParserLineNumber(reading->xml);
}

static nw_rc bad(const struct reading *reading, const char *attribute, const char *value,
                 const char *expected)
{
    return nw_fail(NW_EUSAGE, "%s:%d: %s=\"%.80s\" is not %s", reading->what, line_of(reading),
                   attribute, value, expected);
}

static void keep_error(void *arg, xmlErrorPtr error)
{
    struct reading *reading = arg;

    if (reading->error[0] != '\0' || error == NULL || error->message == NULL)
        return;
    snprintf(reading->error, sizeof reading->error, "%s", error->message);
    reading->error[strcspn(reading->error, "\r\n")] = '\0';
    reading->error_line = error->line;
}

/* --- attributes of an object ------------------------------------------------------------------ */

static nw_rc read_type(struct reading *reading, const char *value, struct nw_raw_object *object)
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

    (void)reading;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, value) == 0)
            object->type = types[i].type;
    return NW_OK; /* anything else is a cache, group or die */
}

static nw_rc read_os_index(struct reading *reading, const char *value, struct nw_raw_object *object)
{
    uint64_t number;

    if (nw_parse_u64(value, 0, UINT32_MAX, &number) != NW_OK)
        return bad(reading, "os_index", value, "a number from 0 to 4294967295");
    object->os_index = number <= INT32_MAX ? (int)number : -1;
    return NW_OK;
}

static nw_rc read_id(struct reading *reading, const char *value, struct nw_raw_object *object)
{
    if (nw_parse_u64(value, 0, UINT64_MAX, &object->id) != NW_OK)
        return bad(reading, "gp_index", value, "a number");
    return NW_OK;
}

static nw_rc read_name(struct reading *reading, const char *value, struct nw_raw_object *object)
{
    (void)reading;
    snprintf(object->name, sizeof object->name, "%s", value);
    return NW_OK;
}

static nw_rc read_subtype(struct reading *reading, const char *value, struct nw_raw_object *object)
{
    (void)reading;
    snprintf(object->subtype, sizeof object->subtype, "%s", value);
    return NW_OK;
}

static nw_rc read_busid(struct reading *reading, const char *value, struct nw_raw_object *object)
{
    unsigned domain, bus, device, function;
    int used = 0;

    if (sscanf(value, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used) != 4 ||
        value[used] != '\0' || domain > 0xfffffff || device > 0x1f || function > 7)
        return bad(reading, "pci_busid", value, "a PCI address like 0000:17:00.0");
    object->domain = domain;
    object->bus = bus;
    object->device = device;
    object->function = function;
    return NW_OK;
}

/* "0302 [10de:2335] [10de:18bf] a1"; version 3 has the programming interface behind it. */
static nw_rc read_pci_type(struct reading *reading, const char *value, struct nw_raw_object *object)
{
    unsigned class_id, vendor, device;

    if (sscanf(value, "%4x [%4x:%4x]", &class_id, &vendor, &device) != 3)
        return bad(reading, "pci_type", value, "like 0302 [10de:2335] [10de:18bf] a1");
    object->pci_class = class_id;
    object->pci_vendor = vendor;
    object->pci_device = device;
    return NW_OK;
}

static nw_rc read_link_speed(struct reading *reading, const char *value,
                             struct nw_raw_object *object)
{
    double gigabytes_per_s;

    if (nw_parse_double(value, 0, 1e6, &gigabytes_per_s) != NW_OK)
        return bad(reading, "pci_link_speed", value, "a rate in GB/s");
    object->link_bytes_per_s = round(gigabytes_per_s * 1e9); /* 0.000000: hwloc could not read it */
    return NW_OK;
}

static nw_rc read_bridge_type(struct reading *reading, const char *value,
                              struct nw_raw_object *object)
{
    if (strcmp(value, "0-1") == 0)
        object->type = NW_RAW_HOST_BRIDGE;
    else if (strcmp(value, "1-1") != 0)
        return bad(reading, "bridge_type", value, "0-1 or 1-1");
    return NW_OK;
}

static nw_rc read_bridge_pci(struct reading *reading, const char *value,
                             struct nw_raw_object *object)
{
    unsigned domain, first, last;

    if (sscanf(value, "%8x:[%2x-%2x]", &domain, &first, &last) != 3 || domain > 0xfffffff)
        return bad(reading, "bridge_pci", value, "a range like 0000:[17-1b]");
    if (object->type != NW_RAW_HOST_BRIDGE)
        return NW_OK; /* the bridge's own address is in pci_busid */
    object->domain = domain;
    object->bus = first;
    return NW_OK;
}

static nw_rc read_memory(struct reading *reading, const char *value, struct nw_raw_object *object)
{
    if (nw_parse_u64(value, 0, UINT64_MAX >> 8, &object->memory_bytes) != NW_OK)
        return bad(reading, "local_memory", value, "a number of bytes");
    return NW_OK;
}

/* Version 3 has a bit mask where versions 1 and 2 have a number. hwloc 3.0, hwloc.h:
 * storage 1, memory 2, GPU 4, coprocessor 8, network 16, OpenFabrics 32, DMA 64. */
static nw_rc read_osdev_type(struct reading *reading, const char *value,
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
        return bad(reading, "osdev_type", value, "a number");
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

static nw_rc read_set(struct reading *reading, const char *attribute, const char *value,
                      hwloc_bitmap_t *set_out)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    if (set == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for %s", attribute);
    if (hwloc_bitmap_sscanf(set, value) != 0) {
        hwloc_bitmap_free(set);
        return bad(reading, attribute, value, "a bitmap like 0x0000ffff,0xffffffff");
    }
    hwloc_bitmap_free(*set_out);
    *set_out = set;
    return NW_OK;
}

static nw_rc read_nodeset(struct reading *reading, const char *value, struct nw_raw_object *object)
{
    /* "0x0" (a node without memory of its own, version 1) says less than complete_nodeset. */
    if (object->nodeset != NULL && strcmp(value, "0x0") == 0)
        return NW_OK;
    return read_set(reading, "nodeset", value, &object->nodeset);
}

static nw_rc read_complete_nodeset(struct reading *reading, const char *value,
                                   struct nw_raw_object *object)
{
    if (object->nodeset != NULL && !hwloc_bitmap_iszero(object->nodeset))
        return NW_OK;
    return read_set(reading, "complete_nodeset", value, &object->nodeset);
}

static nw_rc read_cpuset(struct reading *reading, const char *value, struct nw_raw_object *object)
{
    if (object->type != NW_RAW_MACHINE && object->type != NW_RAW_NUMA)
        return NW_OK;
    return read_set(reading, "cpuset", value, &object->cpuset);
}

static nw_rc read_count(struct reading *reading, const char *attribute, const char *value,
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

static nw_rc read_complete_cpuset(struct reading *reading, const char *value,
                                  struct nw_raw_object *object)
{
    if (object->type != NW_RAW_MACHINE)
        return NW_OK;
    return read_count(reading, "complete_cpuset", value, &reading->raw->pu_complete_count);
}

static nw_rc read_allowed_cpuset(struct reading *reading, const char *value,
                                 struct nw_raw_object *object)
{
    if (object->type != NW_RAW_MACHINE)
        return NW_OK;
    return read_count(reading, "allowed_cpuset", value, &reading->raw->pu_allowed_count);
}

static const struct {
    const char *name;
    nw_rc (*read)(struct reading *reading, const char *value, struct nw_raw_object *object);
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

static nw_rc read_attribute(struct reading *reading, int index)
{
    const char *name = (const char *)xmlTextReaderConstName(reading->xml);
    const char *value = (const char *)xmlTextReaderConstValue(reading->xml);

    if (name == NULL || value == NULL)
        return NW_OK;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (strcmp(attributes[i].name, name) == 0)
            return attributes[i].read(reading, value, &reading->raw->objects[index]);
    return NW_OK;
}

/* The value of one attribute of the current element into `text`; "" when it has none. */
static const char *attribute_text(struct reading *reading, const char *name, char *text,
                                  size_t size)
{
    xmlChar *value = xmlTextReaderGetAttribute(reading->xml, (const xmlChar *)name);

    snprintf(text, size, "%s", value != NULL ? (const char *)value : "");
    xmlFree(value);
    return text;
}

static nw_rc read_object(struct reading *reading, int depth)
{
    const int parent = depth > 1 ? reading->object_at[depth - 1] : -1;
    char type[32];
    int index;

    if (depth > 1 && parent < 0)
        return nw_fail(NW_EUSAGE, "%s:%d: an object inside an element that is none", reading->what,
                       line_of(reading));
    if (depth == 1 && reading->raw->count != 0)
        return nw_fail(NW_EUSAGE, "%s:%d: a second machine; one file holds one machine",
                       reading->what, line_of(reading));
    NW_TRY(nw_raw_add(reading->raw, NW_RAW_OTHER, parent, &index));
    attribute_text(reading, "type", type, sizeof type); /* first: it says how to read the others */
    NW_TRY(read_type(reading, type, &reading->raw->objects[index]));
    if (depth == 1 && reading->raw->objects[index].type != NW_RAW_MACHINE)
        return nw_fail(NW_EUSAGE, "%s:%d: the outermost object is \"%s\"; expected a Machine",
                       reading->what, line_of(reading), type);
    while (xmlTextReaderMoveToNextAttribute(reading->xml) == 1)
        NW_TRY(read_attribute(reading, index));
    xmlTextReaderMoveToElement(reading->xml);
    reading->object_at[depth] = index;
    return NW_OK;
}

static nw_rc read_info(struct reading *reading, int depth)
{
    /* Version 3 has the machine's facts beside it, below <topology>. */
    const int index = depth > 1 ? reading->object_at[depth - 1] : reading->raw->count > 0 ? 0 : -1;
    xmlChar *name, *value;
    nw_rc rc = NW_OK;

    if (index < 0)
        return NW_OK;
    name = xmlTextReaderGetAttribute(reading->xml, (const xmlChar *)"name");
    value = xmlTextReaderGetAttribute(reading->xml, (const xmlChar *)"value");
    if (name != NULL && value != NULL)
        rc = nw_raw_add_info(reading->raw, index, (const char *)name, (const char *)value);
    xmlFree(name);
    xmlFree(value);
    return rc;
}

/* --- bandwidth matrices ------------------------------------------------------------------------
 */

static nw_rc open_matrix(struct reading *reading, bool heterogeneous)
{
    char name[32], count_text[24], indexing[8];
    uint64_t count;

    attribute_text(reading, "name", name, sizeof name);
    if (strcmp(name, "NVLinkBandwidth") != 0 && strcmp(name, "XGMIBandwidth") != 0)
        return NW_OK;
    attribute_text(reading, "nbobjs", count_text, sizeof count_text);
    if (nw_parse_u64(count_text, 1, NW_RAW_MAX_MATRIX, &count) != NW_OK)
        return bad(reading, "nbobjs", count_text, "a number from 1 to 512");
    free(reading->ids);
    reading->ids = calloc(count, sizeof *reading->ids);
    if (reading->ids == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for matrix %s", name);
    NW_TRY(nw_raw_add_matrix(reading->raw, name, count, &reading->matrix));
    attribute_text(reading, "indexing", indexing, sizeof indexing);
    reading->by_id = heterogeneous || strcmp(indexing, "gp") == 0;
    reading->index_count = reading->value_count = 0;
    return NW_OK;
}

static nw_rc keep_number(struct reading *reading, const char *word)
{
    struct nw_raw_matrix *matrix = reading->matrix;
    const char *number = strrchr(word, ':'); /* "OSDev:332" in a heterogeneous matrix */
    uint64_t value;

    if (nw_parse_u64(number != NULL ? number + 1 : word, 0, UINT64_MAX >> 1, &value) != NW_OK)
        return bad(reading, matrix->name, word, "a number");
    if (reading->wanted_indexes) {
        if (reading->index_count == matrix->count)
            return bad(reading, matrix->name, word, "one of as many indexes as nbobjs says");
        reading->ids[reading->index_count++] = value;
    } else {
        if (reading->value_count == matrix->count * matrix->count)
            return bad(reading, matrix->name, word, "one of nbobjs x nbobjs values");
        matrix->values[reading->value_count++] = value;
    }
    return NW_OK;
}

static nw_rc read_numbers(struct reading *reading)
{
    const char *text = (const char *)xmlTextReaderConstValue(reading->xml);
    char word[48];
    int used;

    while (text != NULL && sscanf(text, " %47s%n", word, &used) == 1) {
        NW_TRY(keep_number(reading, word));
        text += used;
    }
    return NW_OK;
}

static nw_rc close_matrix(struct reading *reading)
{
    struct nw_raw_matrix *matrix = reading->matrix;

    reading->matrix = NULL;
    if (reading->index_count != matrix->count ||
        reading->value_count != matrix->count * matrix->count)
        return nw_fail(NW_EUSAGE, "%s:%d: matrix %s of %zu objects has %zu indexes and %zu values",
                       reading->what, line_of(reading), matrix->name, matrix->count,
                       reading->index_count, reading->value_count);
    for (size_t row = 0; row < matrix->count && reading->by_id; row++)
        for (size_t i = 0; i < reading->raw->count && matrix->objects[row] < 0; i++)
            if (reading->raw->objects[i].id == reading->ids[row])
                matrix->objects[row] = (int)i;
    return NW_OK;
}

/* --- the document ------------------------------------------------------------------------------
 */

static nw_rc read_root(struct reading *reading, const char *name)
{
    char version[16];
    int number;

    if (strcmp(name, "graphs") == 0)
        return nw_fail(NW_EUSAGE, "%s: this is an NCCL graph file; not read", reading->what);
    if (strcmp(name, "topology") != 0 && strcmp(name, "system") != 0 && strcmp(name, "root") != 0)
        return nw_fail(NW_EUSAGE,
                       "%s: the outermost element is <%.40s>; expected hwloc XML (<topology>, "
                       "versions 1 to 3) or a file of nodeworth topo --save",
                       reading->what, name);
    attribute_text(reading, "version", version, sizeof version);
    number = nw_raw_hwloc_version(version);
    reading->raw->format = number == 0 ? 1 : number / 100;
    if (reading->raw->format < 1 || reading->raw->format > 3)
        return nw_fail(NW_EUSAGE, "%s: hwloc XML of version %s; versions 1, 2 and 3 are read",
                       reading->what, version);
    return NW_OK;
}

static nw_rc read_element(struct reading *reading, int depth)
{
    const char *name = (const char *)xmlTextReaderConstName(reading->xml);

    if (depth >= MAX_DEPTH)
        return nw_fail(NW_EUSAGE, "%s:%d: nested deeper than %d elements", reading->what,
                       line_of(reading), (int)MAX_DEPTH);
    reading->object_at[depth] = -1;
    if (depth == 0)
        return read_root(reading, name);
    if (depth == 1 && (strcmp(name, "cpu") == 0 || strcmp(name, "gpu") == 0))
        return nw_fail(NW_EUSAGE, "%s: this is an NCCL topology file; not read yet", reading->what);
    if (strcmp(name, "object") == 0)
        return read_object(reading, depth);
    if (strcmp(name, "info") == 0)
        return read_info(reading, depth);
    if (depth == 1 && reading->matrix == NULL)
        if (strcmp(name, "distances2") == 0 || strcmp(name, "distances2hetero") == 0)
            return open_matrix(reading, strcmp(name, "distances2hetero") == 0);
    reading->wanted_indexes = strcmp(name, "indexes") == 0;
    reading->wanted_values = strcmp(name, "u64values") == 0;
    return NW_OK;
}

static nw_rc read_node(struct reading *reading)
{
    const int depth = xmlTextReaderDepth(reading->xml);
    const int type = xmlTextReaderNodeType(reading->xml);
    const int empty = xmlTextReaderIsEmptyElement(reading->xml);

    if (type == XML_READER_TYPE_ELEMENT) {
        NW_TRY(read_element(reading, depth));
        if (reading->matrix != NULL && depth == 1 && empty == 1)
            return close_matrix(reading);
    } else if (type == XML_READER_TYPE_TEXT && reading->matrix != NULL &&
               (reading->wanted_indexes || reading->wanted_values)) {
        return read_numbers(reading);
    } else if (type == XML_READER_TYPE_END_ELEMENT && reading->matrix != NULL) {
        reading->wanted_indexes = reading->wanted_values = false;
        if (depth == 1)
            return close_matrix(reading);
    }
    return NW_OK;
}

static nw_rc read_all(struct reading *reading)
{
    int state;

    while ((state = xmlTextReaderRead(reading->xml)) == 1)
        NW_TRY(read_node(reading));
    if (state != 0)
        return nw_fail(NW_EUSAGE, "%s:%d: not well-formed XML: %s", reading->what,
                       reading->error_line,
                       reading->error[0] != '\0' ? reading->error : "the file ends too early");
    if (reading->raw->count == 0)
        return nw_fail(NW_EUSAGE, "%s: XML without a Machine object; expected hwloc XML",
                       reading->what);
    return NW_OK;
}

/* hwloc writes UTF-8 and declares no entities; a file that does is not one of its exports, and
 * entities are how a small file becomes a large one. */
static nw_rc check_bytes(const char *data, size_t length, const char *what)
{
    if (length > NW_TOPO_MAX_FILE_BYTES)
        return nw_fail(NW_EUSAGE, "%s: larger than 32 MiB: no topology export is", what);
    if (memchr(data, '\0', length) != NULL)
        return nw_fail(NW_EUSAGE, "%s: holds NUL bytes; expected XML in UTF-8", what);
    if (memmem(data, length, "<!ENTITY", 8) != NULL)
        return nw_fail(NW_EUSAGE, "%s: declares XML entities; hwloc XML has none", what);
    return NW_OK;
}

nw_rc nw_raw_from_xml(const char *data, size_t length, const char *what, struct nw_raw *raw)
{
    struct reading reading = {.raw = raw, .what = what};
    nw_rc rc;

    NW_TRY(check_bytes(data, length, what));
    /* No DTD is fetched, no entity substituted, no limit lifted (XML_PARSE_HUGE). */
    reading.xml = xmlReaderForMemory(data, (int)length, NULL, NULL,
                                     XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    if (reading.xml == NULL)
        return nw_fail(NW_ENOMEM, "%s: cannot start the XML reader", what);
    xmlTextReaderSetStructuredErrorHandler(reading.xml, keep_error, &reading);
    rc = read_all(&reading);
    xmlFreeTextReader(reading.xml);
    free(reading.ids);
    if (rc == NW_OK) {
        const char *version = nw_raw_info(raw, 0, "hwlocVersion");

        raw->hwloc_version = version != NULL ? nw_raw_hwloc_version(version) : 0;
        if (raw->hwloc_version == 0 && raw->format == 3)
            raw->hwloc_version = 300;
        snprintf(raw->source, sizeof raw->source, "%s", what);
    }
    return rc;
}
