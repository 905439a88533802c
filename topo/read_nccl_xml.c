/* NCCL's topology file (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE): <system> of <cpu> of nested <pci>
 * with <gpu>, <nvlink>, <nic>, <net>. Made by NCCL (a dump), by hand (a cloud's template), by a
 * virtual machine monitor, or by RCCL for AMD GPUs. What the elements mean: src/graph/xml.cc and
 * topo.cc of NVIDIA/nccl. */
#include "topo/read_nccl_xml.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/pci_address.h"
#include "topo/xml.h"

struct reading {
    struct nw_xml xml;
    struct nw_nccl_file *file;
    int element_at[NW_NCCL_MAX_DEPTH]; /* nearest known element at this depth; -1: none */
};

nw_rc nw_nccl_fail(const struct nw_nccl_file *file, const struct nw_nccl_element *element,
                   const char *format, ...)
{
    char text[200];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return nw_fail(NW_EUSAGE, "%s:%d: %s", file->what, element->line, text);
}

int nw_nccl_above(const struct nw_nccl_file *file, int element, nw_nccl_kind kind)
{
    while (element >= 0 && file->elements[element].kind != kind)
        element = file->elements[element].parent;
    return element;
}

/* --- attributes --- */

typedef enum {
    TEXT,   /* 64 bytes */
    BUSID,  /* a PCI address, made canonical */
    NUMBER, /* 0 to 10^6; -1: unknown */
    HEX,    /* "0x030200", "0x10de" */
    CLASS,  /* the same with the programming interface in the last byte: left out */
    HASH,
    RATE,  /* mega-units a second */
    SPEED, /* "32.0 GT/s PCIe" to a PCIe generation */
    WIDTH,
} attribute_type;

#define AT(field) offsetof(struct nw_nccl_element, field)
static const struct attribute {
    nw_nccl_kind kind;
    const char *name;
    attribute_type type;
    size_t offset;
} attributes[] = {
    {NW_NCCL_CPU, "numaid", NUMBER, AT(number)},
    {NW_NCCL_CPU, "vendor", TEXT, AT(text)},
    {NW_NCCL_CPU, "arch", TEXT, AT(name)},
    {NW_NCCL_CPU, "familyid", NUMBER, AT(capability)},
    {NW_NCCL_CPU, "modelid", NUMBER, AT(model_id)},
    {NW_NCCL_CPU, "host_hash", HASH, AT(host_hash)},
    {NW_NCCL_PCI, "busid", BUSID, AT(name)},
    {NW_NCCL_PCI, "class", CLASS, AT(pci_class)},
    {NW_NCCL_PCI, "vendor", HEX, AT(pci_vendor)},
    {NW_NCCL_PCI, "device", HEX, AT(pci_device)},
    {NW_NCCL_PCI, "link_speed", SPEED, AT(generation)},
    {NW_NCCL_PCI, "link_width", WIDTH, AT(lanes)},
    {NW_NCCL_GPU, "dev", NUMBER, AT(number)},
    {NW_NCCL_GPU, "sm", NUMBER, AT(capability)},
    {NW_NCCL_GPU, "gcn", TEXT, AT(text)},
    {NW_NCCL_GPU, "gdr", NUMBER, AT(gdr)},
    {NW_NCCL_NVLINK, "target", TEXT, AT(name)},
    {NW_NCCL_NVLINK, "count", NUMBER, AT(number)},
    {NW_NCCL_NVLINK, "tclass", CLASS, AT(pci_class)},
    {NW_NCCL_XGMI, "target", TEXT, AT(name)},
    {NW_NCCL_XGMI, "count", NUMBER, AT(number)},
    {NW_NCCL_XGMI, "tclass", CLASS, AT(pci_class)},
    {NW_NCCL_C2C, "count", NUMBER, AT(number)},
    {NW_NCCL_C2C, "bw", RATE, AT(megarate)},
    {NW_NCCL_NET, "name", TEXT, AT(name)},
    {NW_NCCL_NET, "dev", NUMBER, AT(number)},
    {NW_NCCL_NET, "speed", RATE, AT(megarate)},
    {NW_NCCL_NET, "port", NUMBER, AT(port)},
    {NW_NCCL_NET, "guid", TEXT, AT(text)},
    {NW_NCCL_NET, "gdr", NUMBER, AT(gdr)},
};

static nw_rc bad(const struct reading *reading, const struct nw_nccl_element *element,
                 const char *name, const char *value, const char *expected)
{
    return nw_nccl_fail(reading->file, element, "%s=\"%.60s\" is not %s", name, value, expected);
}

static bool parse_hex(const char *text, uint64_t *value_out)
{
    char *end;
    unsigned long long value;

    if (strncmp(text, "0x", 2) == 0 || strncmp(text, "0X", 2) == 0)
        text += 2;
    if (text[0] == '\0' || strspn(text, "0123456789abcdefABCDEF") != strlen(text) ||
        strlen(text) > 16)
        return false;
    value = strtoull(text, &end, 16);
    *value_out = value;
    return true;
}

/* Linux writes the transfer rate: "2.5 GT/s PCIe", "16 GT/s", "" or "Unknown" for none. */
static int generation_of(const char *text)
{
    static const char *const rates[] = {"2.5", "5", "8", "16", "32", "64"};
    char number[8];
    size_t length = strspn(text, "0123456789.");

    if (length >= sizeof number || strncmp(text + length, " GT/s", 5) != 0)
        return 0;
    snprintf(number, sizeof number, "%.*s", (int)length, text);
    if (length > 2 && strcmp(number + length - 2, ".0") == 0)
        number[length - 2] = '\0';
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (strcmp(number, rates[i]) == 0)
            return (int)i + 1;
    return 0;
}

static nw_rc set_number(const struct reading *reading, const struct nw_nccl_element *element,
                        const char *name, const char *value, int *number_out)
{
    uint64_t number;

    if (value[0] == '\0' || strcmp(value, "-1") == 0)
        return NW_OK;
    if (nw_parse_u64(value, 0, 1000000, &number) != NW_OK)
        return bad(reading, element, name, value, "a number from 0 to 1000000");
    *number_out = (int)number;
    return NW_OK;
}

static nw_rc set_busid(const struct reading *reading, const struct nw_nccl_element *element,
                       const char *name, const char *value, char *text_out)
{
    char pci[16];

    if (nw_pci_normalise(value, pci) != NW_OK)
        return bad(reading, element, name, value, "a PCI address such as 0000:17:00.0");
    memcpy(text_out, pci, sizeof pci);
    return NW_OK;
}

static nw_rc set_hex(const struct reading *reading, const struct nw_nccl_element *element,
                     const struct attribute *attribute, const char *value, char *field)
{
    uint64_t number = 0;

    if (value[0] != '\0' && !parse_hex(value, &number))
        return bad(reading, element, attribute->name, value, "a hexadecimal number");
    if (attribute->type == HASH)
        *(uint64_t *)(void *)field = number;
    else if (attribute->type == CLASS)
        *(uint32_t *)(void *)field = (uint32_t)(number >> 8 & 0xffff);
    else
        *(uint32_t *)(void *)field = (uint32_t)(number & 0xffff);
    return NW_OK;
}

static nw_rc set_attribute(const struct reading *reading, struct nw_nccl_element *element,
                           const struct attribute *attribute, const char *value)
{
    char *field = (char *)element + attribute->offset;
    double rate;
    int lanes = 0;

    switch (attribute->type) {
    case TEXT:
        snprintf(field, 64, "%s", value);
        return NW_OK;
    case BUSID:
        return set_busid(reading, element, attribute->name, value, field);
    case NUMBER:
        return set_number(reading, element, attribute->name, value, (int *)(void *)field);
    case RATE:
        if (nw_parse_double(value, 0, 1e9, &rate) != NW_OK)
            return bad(reading, element, attribute->name, value, "a rate from 0 to 10^9");
        *(double *)(void *)field = rate;
        return NW_OK;
    case SPEED:
        *(int *)(void *)field = generation_of(value);
        return NW_OK;
    case WIDTH: /* 255, 63: what the kernel writes for a device that does not answer */
        NW_TRY(set_number(reading, element, attribute->name, value, &lanes));
        *(int *)(void *)field = lanes <= 32 ? lanes : 0;
        return NW_OK;
    default:
        return set_hex(reading, element, attribute, value, field);
    }
}

static nw_rc read_attributes(struct reading *reading, struct nw_nccl_element *element)
{
    while (xmlTextReaderMoveToNextAttribute(reading->xml.reader) == 1) {
        const char *name = (const char *)xmlTextReaderConstName(reading->xml.reader);
        const char *value = (const char *)xmlTextReaderConstValue(reading->xml.reader);

        for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
            if (attributes[i].kind == element->kind && strcmp(attributes[i].name, name) == 0)
                NW_TRY(set_attribute(reading, element, &attributes[i], value != NULL ? value : ""));
    }
    xmlTextReaderMoveToElement(reading->xml.reader);
    return NW_OK;
}

/* --- elements --- */

enum { /* parents, as bits of nw_nccl_kind */
       IN_SYSTEM = 1 << NW_NCCL_SYSTEM,
       IN_CPU = 1 << NW_NCCL_CPU,
       IN_PCI = 1 << NW_NCCL_PCI,
       IN_GPU = 1 << NW_NCCL_GPU,
       IN_NIC = 1 << NW_NCCL_NIC,
};

static const struct {
    const char *name;
    nw_nccl_kind kind;
    unsigned parents;
    const char *place; /* in words */
} known[] = {
    {"cpu", NW_NCCL_CPU, IN_SYSTEM, "<system>"},
    {"pci", NW_NCCL_PCI, IN_SYSTEM | IN_CPU | IN_PCI, "<cpu> or <pci>"},
    {"gpu", NW_NCCL_GPU, IN_PCI, "<pci>"},
    {"nvlink", NW_NCCL_NVLINK, IN_GPU, "<gpu>"},
    {"xgmi", NW_NCCL_XGMI, IN_GPU, "<gpu>"},
    {"c2c", NW_NCCL_C2C, IN_GPU, "<gpu>"},
    {"nic", NW_NCCL_NIC, IN_CPU | IN_PCI, "<cpu> or <pci>"},
    {"net", NW_NCCL_NET, IN_NIC, "<nic>"},
};

static nw_rc add_element(struct reading *reading, nw_nccl_kind kind, int parent, int *index_out)
{
    struct nw_nccl_file *file = reading->file;

    if (file->count == NW_NCCL_MAX_ELEMENTS)
        return nw_fail(NW_EUSAGE, "%s: more than %d elements: this is no machine's topology",
                       file->what, (int)NW_NCCL_MAX_ELEMENTS);
    if (file->count == file->capacity) {
        const size_t capacity = file->capacity > 0 ? 2 * file->capacity : 256;
        struct nw_nccl_element *elements = realloc(file->elements, capacity * sizeof *elements);

        if (elements == NULL)
            return nw_fail(NW_ENOMEM, "out of memory for %zu elements of a topology", capacity);
        file->elements = elements;
        file->capacity = capacity;
    }
    file->elements[file->count] = (struct nw_nccl_element){.kind = kind,
                                                           .parent = parent,
                                                           .line = nw_xml_line(&reading->xml),
                                                           .node = -1,
                                                           .number = -1,
                                                           .capability = -1,
                                                           .model_id = -1,
                                                           .gdr = -1,
                                                           .port = -1,
                                                           .megarate = NAN};
    *index_out = (int)file->count++;
    return NW_OK;
}

static nw_rc refuse_child(const struct reading *reading, const char *name)
{
    const struct nw_nccl_file *file = reading->file;

    if (strcmp(name, "group") == 0 || strcmp(name, "system") == 0)
        return nw_fail(NW_EUSAGE,
                       "%s: <system> holds <%s>: a mapping of several machine types (Hygon DTK), "
                       "not the topology of one machine; expected NCCL's topology file "
                       "(NCCL_TOPO_DUMP_FILE)",
                       file->what, name);
    return NW_OK;
}

/* Elements that are not known are passed over; what is inside them counts as inside their parent.
 */
static nw_rc read_element(struct reading *reading, int depth)
{
    const char *name = (const char *)xmlTextReaderConstName(reading->xml.reader);
    const int parent = depth > 0 ? reading->element_at[depth - 1] : -1;
    struct nw_nccl_file *file = reading->file;
    int index = parent;

    if (depth >= NW_NCCL_MAX_DEPTH)
        return nw_fail(NW_EUSAGE, "%s:%d: nested deeper than %d elements", file->what,
                       nw_xml_line(&reading->xml), (int)NW_NCCL_MAX_DEPTH);
    if (depth == 0) {
        NW_TRY(add_element(reading, NW_NCCL_SYSTEM, -1, &reading->element_at[0]));
        return NW_OK;
    }
    NW_TRY(refuse_child(reading, name));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) != 0)
            continue;
        NW_TRY(add_element(reading, known[i].kind, parent, &index));
        if (parent < 0 || (known[i].parents >> file->elements[parent].kind & 1) == 0)
            return nw_nccl_fail(file, &file->elements[index], "<%s> stands outside %s", name,
                                known[i].place);
        NW_TRY(read_attributes(reading, &file->elements[index]));
    }
    reading->element_at[depth] = index;
    return NW_OK;
}

/* "`g5.48xlarge` platform type", as aws-ofi-nccl's templates say in a comment. */
static void read_comment(struct reading *reading)
{
    const char *text = (const char *)xmlTextReaderConstValue(reading->xml.reader);
    const char *start = text != NULL ? strchr(text, '`') : NULL;
    size_t length;

    if (start == NULL || reading->file->platform[0] != '\0')
        return;
    length = strcspn(start + 1, "`\n");
    if (start[1 + length] == '`' && length < sizeof reading->file->platform)
        snprintf(reading->file->platform, sizeof reading->file->platform, "%.*s", (int)length,
                 start + 1);
}

static nw_rc read_all(struct reading *reading)
{
    int state;

    while ((state = xmlTextReaderRead(reading->xml.reader)) == 1) {
        const int type = xmlTextReaderNodeType(reading->xml.reader);

        if (type == XML_READER_TYPE_ELEMENT)
            NW_TRY(read_element(reading, xmlTextReaderDepth(reading->xml.reader)));
        else if (type == XML_READER_TYPE_COMMENT)
            read_comment(reading);
    }
    return nw_xml_end(&reading->xml, state);
}

/* libxml2 words the missing end of a document in many ways. */
static bool is_cut(const char *data, size_t length)
{
    static const char end[] = "</system>";

    return memmem(data, length, end, sizeof end - 1) == NULL &&
           memmem(data, length, "<system/>", 9) == NULL;
}

static nw_rc parse(const char *data, size_t length, struct nw_nccl_file *file)
{
    struct reading reading = {.file = file};
    nw_rc rc;

    NW_TRY(nw_xml_open(&reading.xml, data, length, file->what));
    rc = read_all(&reading);
    nw_xml_close(&reading.xml);
    if (rc == NW_EUSAGE && reading.xml.error[0] != '\0' && is_cut(data, length))
        rc = nw_fail(NW_EUSAGE,
                     "%s:%d: not well-formed XML: the file is cut off, </system> is missing",
                     file->what, reading.xml.error_line);
    return rc;
}

/* --- the format --- */

/* The outermost element's name, behind blanks, comments and declarations; "": none. */
static void root_name(const char *data, char name[16])
{
    const char *at = strchr(data, '<');

    name[0] = '\0';
    while (at != NULL) {
        const char *end;

        if (strncmp(at, "<!--", 4) == 0)
            end = strstr(at, "-->");
        else if (at[1] == '?' || at[1] == '!')
            end = strchr(at, '>');
        else
            break;
        at = end != NULL ? strchr(end, '<') : NULL;
    }
    if (at != NULL)
        snprintf(name, 16, "%.*s", (int)strcspn(at + 1, " \t\r\n/>"), at + 1);
}

bool nw_nccl_xml_recognise(const char *data, size_t length)
{
    char name[16];

    if (length == 0 || data[0] != '<')
        return false;
    root_name(data, name);
    if (strcmp(name, "graphs") == 0)
        return true;
    return strcmp(name, "system") == 0 && memmem(data, length, "<object", 7) == NULL;
}

static nw_rc build(struct nw_nccl_file *file, struct nw_topo **topo_out)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    nw_rc rc;

    if (topo == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the topology");
    snprintf(topo->source, sizeof topo->source, "%s", file->what);
    topo->sources = NW_SOURCE_NCCL_XML;
    topo->gaps = NW_TOPO_PARTIAL; /* GPUs of NCCL's ranks and its nets; no cores, no disks */
    rc = nw_nccl_build(file, topo);
    if (rc == NW_OK)
        rc = nw_nccl_build_links(file, topo);
    if (rc != NW_OK) {
        nw_topo_free(topo);
        return rc;
    }
    nw_topo_clean(topo);
    *topo_out = topo;
    return NW_OK;
}

nw_rc nw_nccl_xml_read(const char *data, size_t length, const char *what, struct nw_topo **topo_out)
{
    struct nw_nccl_file file = {.what = what};
    char name[16];
    nw_rc rc;

    root_name(data, name);
    if (strcmp(name, "graphs") == 0)
        return nw_fail(NW_EUSAGE,
                       "%s: <graphs> is a graph, not a topology (what NCCL's search found, "
                       "NCCL_GRAPH_DUMP_FILE); expected the file of NCCL_TOPO_DUMP_FILE",
                       what);
    rc = parse(data, length, &file);
    if (rc == NW_OK)
        rc = build(&file, topo_out);
    free(file.elements);
    return rc;
}
