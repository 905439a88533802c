#include "model/shapes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/operators.h"
#include "model/transformer.h"

/* The suite's limits (bench/plan.c). */
#define SIDE_MAX 262144
#define ROWS     128
#define COLUMNS  8
#define DEPTH    64

struct list { /* of every product, before the largest are taken */
    struct nw_product_shape items[6 * NW_LINEARS_MAX];
    size_t count;
};

static uint64_t round_up(double side, uint64_t step, uint64_t least)
{
    const uint64_t rounded = ((uint64_t)side + step - 1) / step * step;

    return rounded > least ? rounded : least;
}

static void add(struct list *list, double m, double n, double k, double times)
{
    struct nw_product_shape shape;

    if (!(m <= SIDE_MAX && n <= SIDE_MAX && k <= SIDE_MAX))
        return;
    shape = (struct nw_product_shape){.m = round_up(m, ROWS, ROWS),
                                      .n = round_up(n, COLUMNS, ROWS),
                                      .k = round_up(k, COLUMNS, DEPTH),
                                      .flops = 2 * m * n * k * times};
    for (size_t i = 0; i < list->count; i++) {
        struct nw_product_shape *there = &list->items[i];

        if (there->m == shape.m && there->n == shape.n && there->k == shape.k) {
            there->flops += shape.flops;
            return;
        }
    }
    if (list->count < sizeof list->items / sizeof list->items[0])
        list->items[list->count++] = shape;
}

/* Forward, the input's gradient, the weight's. */
static void add_unit(struct list *list, const struct nw_operators *operators, double times)
{
    for (size_t i = 0; i < operators->linear_count; i++) {
        const struct nw_linear *linear = &operators->linears[i];

        if (!linear->weights || linear->batch > 1)
            continue;
        add(list, linear->rows, linear->out, linear->in, times);
        add(list, linear->rows, linear->in, linear->out, times);
        if (!linear->frozen)
            add(list, linear->in, linear->out, linear->rows, times);
    }
}

static int by_flops(const void *a, const void *b)
{
    const struct nw_product_shape *one = a, *other = b;

    return (one->flops < other->flops) - (one->flops > other->flops);
}

size_t nw_product_shapes_of(const struct nw_job *job, const struct nw_layout *layout,
                            uint64_t micro_batch,
                            struct nw_product_shape shapes_out[NW_PRODUCT_SHAPES_MAX])
{
    struct list list = {.count = 0};
    struct nw_operators operators;

    for (int kind = 0; kind < NW_LAYER_KINDS; kind++) {
        const double layers = (double)nw_transformer_layer_count(&job->net, kind);

        if (!(layers > 0))
            continue;
        nw_operators_layer(job, layout, micro_batch, kind, &operators);
        add_unit(&list, &operators, layers);
    }
    nw_operators_head(job, layout, micro_batch, false, &operators);
    add_unit(&list, &operators, 1);
    qsort(list.items, list.count, sizeof list.items[0], by_flops);
    if (list.count > NW_PRODUCT_SHAPES_MAX)
        list.count = NW_PRODUCT_SHAPES_MAX;
    for (size_t i = 0; i < list.count; i++)
        shapes_out[i] = list.items[i];
    return list.count;
}

const char *nw_product_shapes_text(const struct nw_product_shape *shapes, size_t count, char *to,
                                   size_t size)
{
    size_t length = 0;

    to[0] = '\0';
    for (size_t i = 0; i < count && length < size; i++) {
        const int added = snprintf(to + length, size - length, "%s%" PRIu64 "x%" PRIu64 "x%" PRIu64,
                                   i > 0 ? "," : "", shapes[i].m, shapes[i].n, shapes[i].k);

        if (added < 0 || (size_t)added >= size - length) {
            to[length] = '\0'; /* whole ones only */
            break;
        }
        length += (size_t)added;
    }
    return to;
}
