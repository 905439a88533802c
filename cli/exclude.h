/* Private to cli/. The hosts to leave out, beside what was measured. */
#ifndef NW_CLI_EXCLUDE_H
#define NW_CLI_EXCLUDE_H

#include "bench/plan.h"

/* `results` is judged, so that a resumed run counts as a whole; `path` is the list, which is
 * removed where nobody is a suspect. Nothing where the plan compares no hosts. The results are on
 * disk by then: a failure is said, and that is all. A pipe or a device cannot be read again. */
void nw_cli_write_excluded(const struct nw_plan *plan, const char *results, const char *path);

#endif
