/* Private to cli/. A model's own matrix products as shapes that the case gemm measures. */
#ifndef NW_CLI_SHAPES_H
#define NW_CLI_SHAPES_H

#include "bench/plan.h"
#include "model/request.h"

#define NW_CLI_SHAPES_TEXT 512

/* Where a model is given and no --gemm-shapes: the plan's shapes become those of its layers and
 * head. `text` holds them as long as the plan lasts. Before nw_plan_resolve. */
nw_rc nw_cli_take_shapes(const struct nw_model_request *request, struct nw_plan *plan,
                         char text[NW_CLI_SHAPES_TEXT]);

#endif
