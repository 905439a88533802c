/* Private to results/. The keys of a results line as rows: one table writes and reads each struct,
 * so that the two cannot drift apart.
 */
#ifndef NW_RESULTS_FIELDS_H
#define NW_RESULTS_FIELDS_H

#include <jansson.h>

#include "base/finding_json.h"
#include "results/sink.h"
#include "results/text.h"

typedef enum {
    NW_FIELD_TEXT, /* char[size]; absent when "" unless required */
    NW_FIELD_INT,
    NW_FIELD_U32,
    NW_FIELD_U64,
    NW_FIELD_I64,
    NW_FIELD_SIZE,
    NW_FIELD_REAL, /* absent when not finite */
    NW_FIELD_BOOL,
} nw_line_field_type;

struct nw_line_field {
    const char *key;
    nw_line_field_type type;
    bool required;
    size_t offset, size; /* size: of TEXT */
    double min, max;     /* accepted when reading; a number below `min` is unknown: not written.
                            max 0: no bound */
};

void nw_fields_write(struct nw_text *text, const struct nw_line_field *rows, size_t count,
                     const void *from);
/* One field: has it a value, and that as JSON spells it. */
bool nw_field_is_known(const struct nw_line_field *row, const void *base);
void nw_field_write(struct nw_text *text, const struct nw_line_field *row, const void *base);
/* `what` as in base/json.h; a field whose key is absent is left as it is. */
nw_rc nw_fields_read(const json_t *object, const char *what, const struct nw_line_field *rows,
                     size_t count, void *to);

/* One finding as an object's keys, a list as an array of objects. */
void nw_finding_write(struct nw_text *text, const struct nw_finding *finding);
void nw_findings_write(struct nw_text *text, const struct nw_findings *list);

/* The object that `text` spells. */
nw_rc nw_text_to_json(const struct nw_text *text, json_t **json_out);

/* A line's "schema" and "kind"; NW_EUSAGE on another schema version. */
nw_rc nw_line_kind(const json_t *line, const char *what, const char **kind_out);

#endif
