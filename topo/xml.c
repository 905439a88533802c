#include "topo/xml.h"

#include <stdio.h>
#include <string.h>

#include "topo/read.h"

static void keep_error(void *arg, xmlErrorPtr error)
{
    struct nw_xml *xml = arg;

    if (xml->error[0] != '\0' || error == NULL || error->message == NULL)
        return;
    snprintf(xml->error, sizeof xml->error, "%s", error->message);
    xml->error[strcspn(xml->error, "\r\n")] = '\0';
    xml->error_line = error->line;
}

nw_rc nw_xml_open(struct nw_xml *xml, const char *data, size_t length, const char *what)
{
    *xml = (struct nw_xml){.what = what};
    if (length > NW_TOPO_MAX_FILE_BYTES)
        return nw_fail(NW_EUSAGE, "%s: larger than 32 MiB: no file of a machine is", what);
    if (memchr(data, '\0', length) != NULL)
        return nw_fail(NW_EUSAGE, "%s: holds NUL bytes; expected XML in UTF-8", what);
    if (memmem(data, length, "<!ENTITY", 8) != NULL)
        return nw_fail(NW_EUSAGE,
                       "%s: declares XML entities; expected a tool's own output, which "
                       "has none",
                       what);
    xml->reader = xmlReaderForMemory(data, (int)length, NULL, NULL,
                                     XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    if (xml->reader == NULL)
        return nw_fail(NW_ENOMEM, "%s: cannot start the XML reader", what);
    xmlTextReaderSetStructuredErrorHandler(xml->reader, keep_error, xml);
    return NW_OK;
}

void nw_xml_close(struct nw_xml *xml)
{
    if (xml->reader != NULL)
        xmlFreeTextReader(xml->reader);
    xml->reader = NULL;
}

int nw_xml_line(const struct nw_xml *xml)
{
    const xmlNode *node = xmlTextReaderCurrentNode(xml->reader);

    if (node != NULL && node->type == XML_ATTRIBUTE_NODE)
        node = node->parent;
    return node != NULL ? (int)xmlGetLineNo(node) : xmlTextReaderGetParserLineNumber(xml->reader);
}

nw_rc nw_xml_end(const struct nw_xml *xml, int state)
{
    if (state == 0)
        return NW_OK;
    return nw_fail(NW_EUSAGE, "%s:%d: not well-formed XML, or cut off: %s", xml->what,
                   xml->error_line, xml->error[0] != '\0' ? xml->error : "the file ends too early");
}
