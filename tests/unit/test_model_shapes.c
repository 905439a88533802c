#include <criterion/criterion.h>

#include "model/shapes.h"
#include "tests/unit/model_support.h"

static bool has(const struct nw_product_shape *shapes, size_t count, uint64_t m, uint64_t n,
                uint64_t k)
{
    for (size_t i = 0; i < count; i++)
        if (shapes[i].m == m && shapes[i].n == n && shapes[i].k == k)
            return true;
    return false;
}

Test(model_shapes, those_of_a_layer_forward_and_backward)
{
    static const struct {
        const char *model;
        int tp;
        uint64_t shape[4][3];
    } cases[] = {
        /* 2 x 4096 tokens, hidden 4096, MLP 11008 (gate and up together), 3 x 4096 for q, k, v */
        {"llama-2-7b", 1, {{8192, 12288, 4096}, {8192, 4096, 4096}, {8192, 4096, 11008}}},
        {"llama-2-7b", 2, {{8192, 6144, 4096}, {8192, 4096, 2048}, {8192, 4096, 5504}}},
    };

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct nw_product_shape shapes[NW_PRODUCT_SHAPES_MAX];
        struct nw_model_request request = request_for(cases[c].model);
        struct nw_model model;
        char text[512];

        request.gemm_tflops = 1;
        request.tp = cases[c].tp;
        cr_assert_eq(nw_model_open(&request, NULL, &model), NW_OK, "%s", nw_last_error()->text);
        const struct nw_layout layout = nw_model_layout(&model, 1, model.strategies[0]);
        const size_t count = nw_product_shapes_of(&model.job, &layout, 2, shapes);

        cr_assert(count >= 6 && count <= NW_PRODUCT_SHAPES_MAX);
        for (int i = 0; i < 3; i++)
            cr_expect(has(shapes, count, cases[c].shape[i][0], cases[c].shape[i][1],
                          cases[c].shape[i][2]),
                      "%s tp %d: %llu", cases[c].model, cases[c].tp,
                      (unsigned long long)cases[c].shape[i][1]);
        for (size_t i = 0; i < count; i++) {
            cr_expect(i == 0 || shapes[i].flops <= shapes[i - 1].flops);
            cr_expect(shapes[i].m % 128 == 0 && shapes[i].n % 8 == 0 && shapes[i].k % 8 == 0);
        }
        nw_product_shapes_text(shapes, count, text, sizeof text);
        cr_expect(strchr(text, 'x') != NULL && text[strlen(text) - 1] != ',');
        nw_product_shapes_text(shapes, count, text, 10);
        cr_expect(strlen(text) == 0); /* whole ones only */
        nw_model_close(&model);
    }
}
