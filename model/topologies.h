/* Private to model/. Links and NICs of machines that were read, for what was not measured: those
 * that the user gives (--topo), else those that the results carry. */
#ifndef NW_MODEL_TOPOLOGIES_H
#define NW_MODEL_TOPOLOGIES_H

#include "model/request.h"

/* The GPU that the given topologies name; NULL: none. */
const char *nw_topologies_gpu(const struct nw_model_request *request);
/* Of several nodes the slower links and NICs; says in platform->measured what was taken. `results`
 * NULL: none, or another GPU's. */
nw_rc nw_topologies_take(const struct nw_model_request *request, const struct nw_results *results,
                         struct nw_platform *platform);

#endif
