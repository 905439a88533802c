/* Public. A replayed step against its prediction, for people. Computes nothing but differences. */
#ifndef NW_REPORT_REPLAY_TEXT_H
#define NW_REPORT_REPLAY_TEXT_H

#include <stdio.h>

#include "model/replay.h"

nw_rc nw_report_replay(FILE *stream, const struct nw_replay_result *result);

#endif
