/* Public. nodeworth check --json: the screen and every fact behind it as one object
 * (docs/schema.md). */
#ifndef NW_REPORT_CHECK_JSON_H
#define NW_REPORT_CHECK_JSON_H

#include <jansson.h>

#include "report/check_text.h"

#define NW_CHECK_SCHEMA_VERSION 1

/* `hosts` and `ranks`: arrays, each taken over (also on failure); `rankfile` may be NULL. */
nw_rc nw_report_check_json(FILE *stream, const struct nw_check_screen *screen, json_t *hosts,
                           json_t *ranks, const char *map_by, const char *rankfile);

#endif
