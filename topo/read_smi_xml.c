/* nvidia-smi -q -x: the same values as -q as XML, nvsmi_device_v4.dtd to v13.dtd. */
#include <stdio.h>
#include <string.h>

#include "topo/read.h"
#include "topo/read_smi.h"
#include "topo/xml.h"

enum { MAX_DEPTH = 16, MAX_PATH_LENGTH = 512 };

struct reading {
    struct nw_xml xml;
    struct nw_smi *smi;
    size_t length_at[MAX_DEPTH + 1]; /* of the path, down to the element at this depth */
    char path[MAX_PATH_LENGTH];      /* below <gpu>, or below the root */
    int ignored_depth;               /* inside an element that is not wanted; -1: in none */
    int gpu_depth;                   /* -1: in no <gpu> */
};

bool nw_is_smi_xml(const char *data, size_t length)
{
    return nw_scan_has(data, length, 65536, "<nvidia_smi_log");
}

/* Of MIG devices, processes and clocks one could set, nothing is taken; they have names of the
 * GPU's own values. */
static bool is_unwanted(const char *name)
{
    static const char *const names[] = {"mig_devices",         "processes",
                                        "accounted_processes", "supported_clocks",
                                        "retired_pagelist",    "timestamp"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static nw_rc open_gpu(struct reading *reading, int depth)
{
    char id[40] = "";
    xmlChar *value = xmlTextReaderGetAttribute(reading->xml.reader, (const xmlChar *)"id");

    if (value != NULL)
        snprintf(id, sizeof id, "%s", (const char *)value);
    xmlFree(value);
    if (id[0] != '\0' && !nw_smi_is_bus_id(id))
        return nw_fail(NW_EUSAGE, "%s:%d: <gpu id=\"%.40s\">: no PCI address", reading->smi->what,
                       nw_xml_line(&reading->xml), id);
    reading->gpu_depth = depth;
    return nw_smi_begin_gpu(reading->smi, id[0] != '\0' ? id : NULL);
}

static nw_rc open_element(struct reading *reading, int depth, bool empty)
{
    const char *name = (const char *)xmlTextReaderConstName(reading->xml.reader);
    size_t used;

    if (depth > MAX_DEPTH)
        return nw_fail(NW_EUSAGE, "%s:%d: nested deeper than %d elements", reading->smi->what,
                       nw_xml_line(&reading->xml), MAX_DEPTH);
    if (depth == 0 && strcmp(name, "nvidia_smi_log") != 0)
        return nw_fail(NW_EUSAGE, "%s: the outermost element is <%.40s>; expected <nvidia_smi_log>",
                       reading->smi->what, name);
    if (reading->ignored_depth >= 0)
        return NW_OK;
    if (is_unwanted(name)) {
        reading->ignored_depth = empty ? -1 : depth;
        return NW_OK;
    }
    if (depth == 1 && strcmp(name, "gpu") == 0) {
        reading->length_at[1] = 0;
        reading->path[0] = '\0';
        return empty ? NW_OK : open_gpu(reading, depth);
    }
    used = depth > 1 ? reading->length_at[depth - 1] : 0;
    reading->length_at[depth] = used;
    if (depth > 0 && used + strlen(name) + 2 < sizeof reading->path)
        reading->length_at[depth] =
            used + (size_t)snprintf(reading->path + used, sizeof reading->path - used, "%s%s",
                                    used > 0 ? "/" : "", name);
    return NW_OK;
}

static nw_rc close_element(struct reading *reading, int depth)
{
    if (reading->ignored_depth == depth)
        reading->ignored_depth = -1;
    if (reading->gpu_depth == depth) {
        reading->gpu_depth = -1;
        return nw_smi_end_gpu(reading->smi);
    }
    return NW_OK;
}

static nw_rc take_text(struct reading *reading, int depth)
{
    char value[256], path[MAX_PATH_LENGTH];
    size_t length;

    if (reading->ignored_depth >= 0 || depth < 2 || depth > MAX_DEPTH + 1)
        return NW_OK;
    length = reading->length_at[depth - 1];
    memcpy(path, reading->path, length);
    path[length] = '\0';
    snprintf(value, sizeof value, "%s", (const char *)xmlTextReaderConstValue(reading->xml.reader));
    for (char *at = value; *at != '\0'; at++)
        if (*at == '\n' || *at == '\r')
            *at = ' ';
    return nw_smi_value(reading->smi, NW_SMI_XML, path, nw_scan_trim(value));
}

static nw_rc take_node(struct reading *reading)
{
    const int depth = xmlTextReaderDepth(reading->xml.reader);
    const bool empty = xmlTextReaderIsEmptyElement(reading->xml.reader) == 1;

    switch (xmlTextReaderNodeType(reading->xml.reader)) {
    case XML_READER_TYPE_ELEMENT:
        return open_element(reading, depth, empty);
    case XML_READER_TYPE_END_ELEMENT:
        return close_element(reading, depth);
    case XML_READER_TYPE_TEXT:
    case XML_READER_TYPE_CDATA:
        return take_text(reading, depth);
    default:
        return NW_OK;
    }
}

static nw_rc take_all(struct reading *reading)
{
    int state;

    while ((state = xmlTextReaderRead(reading->xml.reader)) == 1)
        NW_TRY(take_node(reading));
    NW_TRY(nw_xml_end(&reading->xml, state));
    if (nw_topo_count(reading->smi->topo, NW_NODE_GPU) == 0)
        return nw_fail(NW_EUSAGE, "%s: no <gpu> in this output of nvidia-smi -q -x",
                       reading->smi->what);
    return NW_OK;
}

/* A prompt and blank lines may stand before the XML, which the parser refuses. */
static const char *xml_start(const char *data, size_t length)
{
    static const char *const starts[] = {"<?xml", "<!DOCTYPE nvidia_smi_log", "<nvidia_smi_log"};

    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const char *at = memmem(data, length, starts[i], strlen(starts[i]));

        if (at != NULL)
            return at;
    }
    return data;
}

nw_rc nw_read_smi_xml(const char *data, size_t length, const char *what, struct nw_topo **topo_out)
{
    struct nw_smi smi;
    struct reading reading = {.smi = &smi, .ignored_depth = -1, .gpu_depth = -1};
    const char *start = xml_start(data, length);
    nw_rc rc;

    length -= (size_t)(start - data);
    NW_TRY(nw_xml_open(&reading.xml, start, length, what));
    rc = nw_smi_open(&smi, what, "nvidia-smi -q -x");
    if (rc == NW_OK) {
        rc = take_all(&reading);
        rc = nw_smi_close(&smi, rc, topo_out);
    }
    nw_xml_close(&reading.xml);
    return rc;
}
