/* Public. Findings as JSON, the one form that every file and every --json has: severity, code,
 * where, text; remedy, effect, lost_bytes_per_s and step_ns where they are known.
 *
 *     json_t *array;
 *     NW_TRY(nw_findings_to_json(&topo->findings, &array));
 *     NW_TRY(nw_json_set_new(root, "findings", array));
 */
#ifndef NW_BASE_FINDING_JSON_H
#define NW_BASE_FINDING_JSON_H

#include <jansson.h>

#include "base/finding.h"

nw_rc nw_finding_to_json(const struct nw_finding *finding, json_t **json_out);
nw_rc nw_findings_to_json(const struct nw_findings *list, json_t **array_out);
/* Append to `list`. NW_EUSAGE names `what`, the key and what is accepted; keys that are not known
 * are refused. */
nw_rc nw_finding_from_json(const json_t *object, const char *what, struct nw_findings *list);
nw_rc nw_findings_from_json(const json_t *array, const char *what, struct nw_findings *list);

#endif
