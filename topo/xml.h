/* Private to topo/. An XML document in memory through libxml2's streaming reader, for all readers
 * of XML: hostile files end early, and the first complaint words the error.
 *
 *     struct nw_xml xml;              // stays where it is while it is open
 *     int state;
 *
 *     NW_TRY(nw_xml_open(&xml, data, length, what));
 *     while ((state = xmlTextReaderRead(xml.reader)) == 1)
 *         …                           // errors name nw_xml_line(&xml)
 *     rc = nw_xml_end(&xml, state);
 *     nw_xml_close(&xml);
 */
#ifndef NW_TOPO_XML_H
#define NW_TOPO_XML_H

#include <libxml/xmlreader.h>
#include <stddef.h>

#include "base/err.h"

struct nw_xml {
    xmlTextReaderPtr reader;
    const char *what;
    char error[256]; /* first complaint of libxml2; "": none */
    int error_line;
};

/* NW_EUSAGE: more than NW_TOPO_MAX_FILE_BYTES, NUL bytes, or declarations of entities, which are
 * how a small file becomes a large one and which no tool writes. No DTD is fetched, no entity
 * substituted, no limit of libxml2 lifted. */
nw_rc nw_xml_open(struct nw_xml *xml, const char *data, size_t length, const char *what);
void nw_xml_close(struct nw_xml *xml);
/* Of the element the reader stands on; the parser itself is some bytes ahead. */
int nw_xml_line(const struct nw_xml *xml);
/* `state`: what xmlTextReaderRead ended with. NW_EUSAGE names the line where it is no end. */
nw_rc nw_xml_end(const struct nw_xml *xml, int state);

#endif
