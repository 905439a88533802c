/* hwloc XML of versions 1, 2 and 3, read with libxml2's streaming reader and not with libhwloc: 2.9
 * refuses version 3, its importer asserts consistency that a hostile file need not have, and both
 * parsers write to stderr. What is used from a file is small: the tree, a few attributes and facts,
 * and the bandwidth matrices. tests/unit/test_topo_hwloc_oracle.c holds the outcome against
 * libhwloc's own import. */
#include "topo/read_xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

nw_rc nw_reading_bad(const struct nw_reading *reading, const char *attribute, const char *value,
                     const char *expected)
{
    return nw_fail(NW_EUSAGE, "%s:%d: %s=\"%.80s\" is not %s", reading->what,
                   nw_xml_line(&reading->xml), attribute, value, expected);
}

/* The value of one attribute of the current element into `text`; "" when it has none. */
static const char *attribute_text(struct nw_reading *reading, const char *name, char *text,
                                  size_t size)
{
    xmlChar *value = xmlTextReaderGetAttribute(reading->xml.reader, (const xmlChar *)name);

    snprintf(text, size, "%s", value != NULL ? (const char *)value : "");
    xmlFree(value);
    return text;
}

static nw_rc read_object(struct nw_reading *reading, int depth)
{
    const int parent = depth > 1 ? reading->object_at[depth - 1] : -1;
    char type[32];
    int index;

    if (depth > 1 && parent < 0)
        return nw_fail(NW_EUSAGE, "%s:%d: an object inside an element that is none", reading->what,
                       nw_xml_line(&reading->xml));
    if (depth == 1 && reading->raw->count != 0)
        return nw_fail(NW_EUSAGE, "%s:%d: a second machine; one file holds one machine",
                       reading->what, nw_xml_line(&reading->xml));
    NW_TRY(nw_raw_add(reading->raw, NW_RAW_OTHER, parent, &index));
    attribute_text(reading, "type", type, sizeof type); /* first: it says how to read the others */
    NW_TRY(nw_reading_type(type, &reading->raw->objects[index]));
    if (depth == 1 && reading->raw->objects[index].type != NW_RAW_MACHINE)
        return nw_fail(NW_EUSAGE, "%s:%d: the outermost object is \"%s\"; expected a Machine",
                       reading->what, nw_xml_line(&reading->xml), type);
    NW_TRY(nw_reading_attributes(reading, index));
    reading->object_at[depth] = index;
    return NW_OK;
}

static nw_rc read_info(struct nw_reading *reading, int depth)
{
    /* Version 3 has the machine's facts beside it, below <topology>. */
    const int index = depth > 1 ? reading->object_at[depth - 1] : reading->raw->count > 0 ? 0 : -1;
    xmlChar *name, *value;
    nw_rc rc = NW_OK;

    if (index < 0)
        return NW_OK;
    name = xmlTextReaderGetAttribute(reading->xml.reader, (const xmlChar *)"name");
    value = xmlTextReaderGetAttribute(reading->xml.reader, (const xmlChar *)"value");
    if (name != NULL && value != NULL)
        rc = nw_raw_add_info(reading->raw, index, (const char *)name, (const char *)value);
    xmlFree(name);
    xmlFree(value);
    return rc;
}

/* --- bandwidth matrices --- */

static nw_rc open_matrix(struct nw_reading *reading, bool heterogeneous)
{
    char name[32], count_text[24], indexing[8];
    uint64_t count;

    attribute_text(reading, "name", name, sizeof name);
    if (strcmp(name, "NVLinkBandwidth") != 0 && strcmp(name, "XGMIBandwidth") != 0)
        return NW_OK;
    attribute_text(reading, "nbobjs", count_text, sizeof count_text);
    if (nw_parse_u64(count_text, 1, NW_RAW_MAX_MATRIX, &count) != NW_OK)
        return nw_reading_bad(reading, "nbobjs", count_text, "a number from 1 to 512");
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

static nw_rc keep_number(struct nw_reading *reading, const char *word)
{
    struct nw_raw_matrix *matrix = reading->matrix;
    const char *number = strrchr(word, ':'); /* "OSDev:332" in a heterogeneous matrix */
    uint64_t value;

    if (nw_parse_u64(number != NULL ? number + 1 : word, 0, UINT64_MAX >> 1, &value) != NW_OK)
        return nw_reading_bad(reading, matrix->name, word, "a number");
    if (reading->wanted_indexes) {
        if (reading->index_count == matrix->count)
            return nw_reading_bad(reading, matrix->name, word,
                                  "one of as many indexes as nbobjs says");
        reading->ids[reading->index_count++] = value;
    } else {
        if (reading->value_count == matrix->count * matrix->count)
            return nw_reading_bad(reading, matrix->name, word, "one of nbobjs x nbobjs values");
        matrix->values[reading->value_count++] = value;
    }
    return NW_OK;
}

static nw_rc read_numbers(struct nw_reading *reading)
{
    const char *text = (const char *)xmlTextReaderConstValue(reading->xml.reader);
    char word[48];
    int used;

    while (text != NULL && sscanf(text, " %47s%n", word, &used) == 1) {
        NW_TRY(keep_number(reading, word));
        text += used;
    }
    return NW_OK;
}

static nw_rc close_matrix(struct nw_reading *reading)
{
    struct nw_raw_matrix *matrix = reading->matrix;

    reading->matrix = NULL;
    if (reading->index_count != matrix->count ||
        reading->value_count != matrix->count * matrix->count)
        return nw_fail(NW_EUSAGE, "%s:%d: matrix %s of %zu objects has %zu indexes and %zu values",
                       reading->what, nw_xml_line(&reading->xml), matrix->name, matrix->count,
                       reading->index_count, reading->value_count);
    for (size_t row = 0; row < matrix->count && reading->by_id; row++)
        for (size_t i = 0; i < reading->raw->count && matrix->objects[row] < 0; i++)
            if (reading->raw->objects[i].id == reading->ids[row])
                matrix->objects[row] = (int)i;
    return NW_OK;
}

/* --- the document --- */

static nw_rc read_root(struct nw_reading *reading, const char *name)
{
    char version[16];
    int number;

    if (strcmp(name, "topology") != 0 && strcmp(name, "root") != 0)
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

static nw_rc read_element(struct nw_reading *reading, int depth)
{
    const char *name = (const char *)xmlTextReaderConstName(reading->xml.reader);

    if (depth >= NW_XML_MAX_DEPTH)
        return nw_fail(NW_EUSAGE, "%s:%d: nested deeper than %d elements", reading->what,
                       nw_xml_line(&reading->xml), (int)NW_XML_MAX_DEPTH);
    reading->object_at[depth] = -1;
    if (depth == 0)
        return read_root(reading, name);
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

static nw_rc read_node(struct nw_reading *reading)
{
    const int depth = xmlTextReaderDepth(reading->xml.reader);
    const int type = xmlTextReaderNodeType(reading->xml.reader);
    const int empty = xmlTextReaderIsEmptyElement(reading->xml.reader);

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

static nw_rc read_all(struct nw_reading *reading)
{
    int state;

    while ((state = xmlTextReaderRead(reading->xml.reader)) == 1)
        NW_TRY(read_node(reading));
    NW_TRY(nw_xml_end(&reading->xml, state));
    if (reading->raw->count == 0)
        return nw_fail(NW_EUSAGE, "%s: XML without a Machine object; expected hwloc XML",
                       reading->what);
    return NW_OK;
}

nw_rc nw_raw_from_xml(const char *data, size_t length, const char *what, struct nw_raw *raw)
{
    struct nw_reading reading = {.raw = raw, .what = what};
    nw_rc rc;

    NW_TRY(nw_xml_open(&reading.xml, data, length, what));
    rc = read_all(&reading);
    nw_xml_close(&reading.xml);
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
