/* Public. What `nodeworth infer` shows. */
#ifndef NW_REPORT_INFER_TEXT_H
#define NW_REPORT_INFER_TEXT_H

#include <stdio.h>

#include "model/infer.h"

/* `currency`: behind costs, may be "". */
nw_rc nw_report_infer(FILE *stream, const struct nw_serving *serving,
                      const struct nw_server *servers, const struct nw_infer *infers, size_t count,
                      const char *currency);

#endif
