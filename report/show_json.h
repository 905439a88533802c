/* Public. What `show --json` prints; docs/schema.md has its keys. */
#ifndef NW_REPORT_SHOW_JSON_H
#define NW_REPORT_SHOW_JSON_H

#include <jansson.h>

#include "report/show_text.h"

/* `records` NULL: the groups only. The caller owns the result. */
nw_rc nw_show_to_json(const struct nw_show_run *runs, size_t run_count,
                      const struct nw_groups *groups, const struct nw_record *records,
                      size_t record_count, json_t **json_out);

#endif
