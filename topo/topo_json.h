/* Private to topo/. The plain fields of a topology's JSON, one row each: the writer and the strict
 * reader walk the same tables. */
#ifndef NW_TOPO_TOPO_JSON_H
#define NW_TOPO_TOPO_JSON_H

#include "topo/topo.h"

enum { NW_TOPO_SCHEMA = 1 };

typedef enum {
    NW_FIELD_TEXT,
    NW_FIELD_INT,
    NW_FIELD_U32,
    NW_FIELD_U64,
    NW_FIELD_RATE
} nw_field_type;

struct nw_field {
    const char *key;
    nw_field_type type;
    size_t offset, size; /* size: of a text */
    int unknown;         /* INT: the value that is not written */
    int max;             /* INT, U32 */
};

struct nw_bit_word {
    unsigned bit;
    const char *key;
};

enum {
    NW_TOPO_FIELD_COUNT = 10,
    NW_NODE_FIELD_COUNT = 19,
    NW_LINK_FIELD_COUNT = 4,
    NW_SOURCE_WORD_COUNT = 9,
    NW_GAP_WORD_COUNT = 4,
};
extern const struct nw_field nw_topo_fields[NW_TOPO_FIELD_COUNT];
extern const struct nw_field nw_node_fields[NW_NODE_FIELD_COUNT];
extern const struct nw_field nw_link_fields[NW_LINK_FIELD_COUNT];
extern const struct nw_bit_word nw_source_words[NW_SOURCE_WORD_COUNT];
extern const struct nw_bit_word nw_gap_words[NW_GAP_WORD_COUNT];

/* topo_json_facts.c: facts, stated classes, GIDs. */
nw_rc nw_topo_json_set_facts(json_t *root, const struct nw_topo *topo);
nw_rc nw_topo_json_get_facts(const json_t *root, const char *what, struct nw_topo *topo);

#endif
