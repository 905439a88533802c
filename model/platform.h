/* Private to model/. The platform that a request and its results make: rates, memory, links. */
#ifndef NW_MODEL_PLATFORM_H
#define NW_MODEL_PLATFORM_H

#include "model/request.h"

/* The table's constants, and those of the request in their place. */
nw_rc nw_platform_assume(const struct nw_model_request *request,
                         struct nw_assumptions *assumptions);
/* Everything of the platform but its curves. fabric.gpus_per_node stays, where the request does not
 * say it: 0 is unknown; cards are joined by a bridge where a node has two. */
nw_rc nw_platform_choose(const struct nw_model_request *request, const struct nw_results *results,
                         const struct nw_precision *precision, struct nw_platform *platform);

#endif
