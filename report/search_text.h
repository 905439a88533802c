/* Public. What `nodeworth search` shows. */
#ifndef NW_REPORT_SEARCH_TEXT_H
#define NW_REPORT_SEARCH_TEXT_H

#include <stdio.h>

#include "model/search.h"

/* The fastest `most` plans and the cheapest. */
nw_rc nw_report_search(FILE *stream, const struct nw_model *model,
                       const struct nw_search_result *result, size_t most);

#endif
