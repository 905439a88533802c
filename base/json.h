/* Public. jansson with this project's rules: a number that is not finite is not written (the key is
 * absent), reading names file, line, key and what was expected. Objects passed in are borrowed.
 */
#ifndef NW_BASE_JSON_H
#define NW_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Parse a file (at most `max_bytes`); duplicate keys refused. The caller owns the result
 * (json_decref). */
nw_rc nw_json_load(const char *path, uint64_t max_bytes, json_t **root_out);

/* A string; of text that is not UTF-8 (a foreign file's) the ASCII part. NULL: no memory. */
json_t *nw_json_text(const char *text);

/* Set a key; NULL text and NAN/infinite numbers leave it out. Return NW_ENOMEM when jansson does.
 */
nw_rc nw_json_set_text(json_t *object, const char *key, const char *text);
nw_rc nw_json_set_real(json_t *object, const char *key, double value);
nw_rc nw_json_set_u64(json_t *object, const char *key, uint64_t value);
nw_rc nw_json_set_int(json_t *object, const char *key, int64_t value);
nw_rc nw_json_set_bool(json_t *object, const char *key, bool value);
nw_rc nw_json_set_new(json_t *object, const char *key,
                      json_t *value); /* takes `value`, also on failure */

/* Get a key. Absent: the out value is left as it is and NW_OK returned, unless `required`. `what`
 * words the error, e.g. "results.jsonl:12". Reals accept integers. */
nw_rc nw_json_get_text(const json_t *object, const char *what, const char *key, bool required,
                       const char **out);
nw_rc nw_json_get_real(const json_t *object, const char *what, const char *key, bool required,
                       double *out);
nw_rc nw_json_get_u64(const json_t *object, const char *what, const char *key, bool required,
                      uint64_t *out);
nw_rc nw_json_get_int(const json_t *object, const char *what, const char *key, bool required,
                      int *out);
nw_rc nw_json_get_bool(const json_t *object, const char *what, const char *key, bool required,
                       bool *out);
/* Copy text into a fixed field; too long is cut. */
nw_rc nw_json_get_field(const json_t *object, const char *what, const char *key, bool required,
                        char *field, size_t size);

/* Print indented (for --json) with a final newline. NW_EIO when the stream fails. */
nw_rc nw_json_print(FILE *stream, const json_t *root);

#endif
