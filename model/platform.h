/* Private to model/. The platform that a request and its results make: rates, memory, links. */
#ifndef NW_MODEL_PLATFORM_H
#define NW_MODEL_PLATFORM_H

#include "model/request.h"

/* Everything of the platform but its curves and GPUs per node. */
nw_rc nw_platform_choose(const struct nw_model_request *request, const struct nw_results *results,
                         const struct nw_precision *precision, struct nw_platform *platform);

#endif
