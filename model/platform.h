/* Private to model/. */
#ifndef NW_MODEL_PLATFORM_H
#define NW_MODEL_PLATFORM_H

#include "model/request.h"

/* Everything of the platform but its curves and GPUs per node. */
nw_rc nw_platform_choose(const struct nw_model_request *request, const struct nw_results *results,
                         const struct nw_precision *precision, struct nw_platform *platform);

#endif
