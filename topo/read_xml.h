/* Private to topo/. One hwloc XML document being read: read_xml.c walks it, read_xml_object.c reads
 * the attributes of one object. */
#ifndef NW_TOPO_READ_XML_H
#define NW_TOPO_READ_XML_H

#include "topo/read.h"
#include "topo/xml.h"

enum { NW_XML_MAX_DEPTH = 128 }; /* libxml2 itself stops at 256 */

struct nw_reading {
    struct nw_xml xml;
    struct nw_raw *raw;
    const char *what;
    int object_at[NW_XML_MAX_DEPTH]; /* object opened at this depth, -1: another element */
    struct nw_raw_matrix *matrix;
    bool wanted_indexes, wanted_values; /* text that follows belongs to the matrix */
    size_t index_count, value_count;
    bool by_id;    /* the matrix' indexes are gp_index; else os_index, which devices lack */
    uint64_t *ids; /* its indexes as written, count entries */
};

/* "FILE:LINE: attribute="value" is not <expected>" */
nw_rc nw_reading_bad(const struct nw_reading *reading, const char *attribute, const char *value,
                     const char *expected);
/* The attributes of the element the reader stands on, into the object; its type is read first by
 * the caller, as it says how to read the others. */
nw_rc nw_reading_type(const char *name, struct nw_raw_object *object);
nw_rc nw_reading_attributes(struct nw_reading *reading, int index);

#endif
