/* Private to collectives/. The two kinds of runs: verbs_run.c keeps many messages on their way,
 * verbs_ping.c one. */
#ifndef NW_COLLECTIVES_VERBS_FLOW_H
#define NW_COLLECTIVES_VERBS_FLOW_H

#include "collectives/verbs_parts.h"

/* Where message k of a queue lies in its region. */
uint64_t nw_verbs_slot(const struct nw_verbs_flow *flow, int q, uint64_t k);
/* Posts message k; `covers`: its completion stands for so many, 0: none is asked for. */
nw_rc nw_verbs_post(struct nw_verbs_end *end, int q, uint64_t k, uint32_t covers);
/* So many more receives, or as many as are still to come. */
nw_rc nw_verbs_supply(struct nw_verbs_end *end, int q, uint64_t count);

/* Goes on as far as it can without waiting, or waits a little. */
nw_rc nw_verbs_step(struct nw_verbs_end *end, bool *done_out);
nw_rc nw_verbs_ping_prepare(struct nw_verbs_end *end);
nw_rc nw_verbs_ping_step(struct nw_verbs_end *end, bool *done_out);

#endif
