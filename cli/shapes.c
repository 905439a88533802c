#include "cli/shapes.h"

#include "model/shapes.h"

nw_rc nw_cli_take_shapes(const struct nw_model_request *request, struct nw_plan *plan,
                         char text[NW_CLI_SHAPES_TEXT])
{
    struct nw_product_shape shapes[NW_PRODUCT_SHAPES_MAX];
    struct nw_model_request trial = *request;
    struct nw_model model;

    if (request->model == NULL)
        return NW_OK;
    if (trial.tflops <= 0 && trial.gemm_tflops <= 0 && trial.gpu == NULL)
        trial.gemm_tflops = 1; /* shapes do not depend on it */
    NW_TRY(nw_model_open(&trial, NULL, &model));
    const struct nw_layout layout =
        nw_model_layout(&model, model.node_counts[0], model.strategies[0]);
    const struct nw_job job = nw_model_job(&model, &layout);
    const size_t count = nw_product_shapes_of(&job, &layout, job.micro_batch, shapes);

    if (count > 0 && plan->gemm_shapes_text == NULL)
        plan->gemm_shapes_text = nw_product_shapes_text(shapes, count, text, NW_CLI_SHAPES_TEXT);
    nw_model_close(&model);
    return NW_OK;
}
