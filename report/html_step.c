/* What a step is made of and what it needs of a card's memory, strategy by strategy. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "model/breakdown.h"
#include "report/html_parts.h"
#include "report/model_text_parts.h"
#include "report/svg_bars.h"

#define STEPS_MAX 14 /* more are in the table */

static const struct {
    const char *summary;
    size_t offset;
} memory_parts[] = {
    {.summary = "weights", .offset = offsetof(struct nw_memory, weights_bytes)},
    {.summary = "gradients", .offset = offsetof(struct nw_memory, gradients_bytes)},
    {.summary = "optimizer states", .offset = offsetof(struct nw_memory, optimizer_bytes)},
    {.summary = "activations", .offset = offsetof(struct nw_memory, activations_bytes)},
    {.summary = "buffers", .offset = offsetof(struct nw_memory, buffers_bytes)},
    {.summary = "runtime", .offset = offsetof(struct nw_memory, runtime_bytes)},
    {.summary = "fragmentation", .offset = offsetof(struct nw_memory, fragmentation_bytes)},
};
enum { MEMORY_PARTS = sizeof memory_parts / sizeof *memory_parts };

struct stack { /* what both charts are made of */
    char names[STEPS_MAX][64];
    const char *rows[STEPS_MAX];
    size_t row_count;
    const char *parts[NW_PARTS_MAX];
    size_t part_count;
    double values[STEPS_MAX * NW_PARTS_MAX]; /* part_count a row once all are there */
    double low[STEPS_MAX], high[STEPS_MAX];
};

static void name_rows(const struct nw_html *html, struct stack *stack)
{
    const struct nw_steps *steps = html->page->steps;

    stack->row_count = steps->count < STEPS_MAX ? steps->count : STEPS_MAX;
    for (size_t i = 0; i < stack->row_count; i++) {
        snprintf(stack->names[i], sizeof stack->names[i], tr(html, "%s, nodes: %d"),
                 steps->items[i].strategy->name, steps->items[i].node_count);
        stack->rows[i] = stack->names[i];
    }
}

/* The order of the parts, whatever a page has of them: a part keeps its place. */
static const struct {
    const char *summary; /* as model/breakdown.c names it */
} part_order[] = {
    {.summary = "forward and backward"},
    {.summary = "matrix products"},
    {.summary = "attention"},
    {.summary = "memory-bound kernels"},
    {.summary = "launching kernels"},
    {.summary = "recomputation"},
    {.summary = "gradients"},
    {.summary = "weights and gradients, shards"},
    {.summary = "tensor parallel"},
    {.summary = "pipeline messages"},
    {.summary = "pipeline bubble"},
    {.summary = "communication"},
    {.summary = "slowed by hidden communication"},
    {.summary = "waiting for the slowest"},
    {.summary = "optimizer"},
    {.summary = "other"},
};

static size_t order_of(const char *title)
{
    size_t i = 0;

    while (i < sizeof part_order / sizeof *part_order && strcmp(part_order[i].summary, title) != 0)
        i++;
    return i;
}

static int compare_parts(const void *left, const void *right)
{
    const size_t a = order_of(*(const char *const *)left),
                 b = order_of(*(const char *const *)right);

    return (a > b) - (a < b);
}

static size_t part_of(struct stack *stack, const char *title)
{
    size_t part = 0;

    while (part < stack->part_count && strcmp(stack->parts[part], title) != 0)
        part++;
    if (part == stack->part_count && part < NW_PARTS_MAX)
        stack->parts[stack->part_count++] = title;
    return part < NW_PARTS_MAX ? part : NW_PARTS_MAX - 1;
}

static void stack_time(const struct nw_html *html, struct stack *stack)
{
    const struct nw_steps *steps = html->page->steps;
    struct nw_breakdown breakdown;

    *stack = (struct stack){.row_count = 0};
    name_rows(html, stack);
    for (size_t i = 0; i < stack->row_count; i++) {
        nw_breakdown_of(&steps->items[i], &breakdown);
        for (size_t k = 0; k < breakdown.count; k++)
            part_of(stack, breakdown.items[k].title);
    }
    qsort(stack->parts, stack->part_count, sizeof *stack->parts, compare_parts);
    for (size_t i = 0; i < stack->row_count; i++) {
        nw_breakdown_of(&steps->items[i], &breakdown);
        for (size_t k = 0; k < breakdown.count; k++)
            stack->values[i * stack->part_count + part_of(stack, breakdown.items[k].title)] +=
                breakdown.items[k].ns;
        stack->low[i] = steps->items[i].low_ns;
        stack->high[i] = steps->items[i].high_ns;
    }
    for (size_t i = 0; i < stack->part_count; i++)
        stack->parts[i] = tr(html, stack->parts[i]);
}

static void stack_memory(const struct nw_html *html, struct stack *stack)
{
    *stack = (struct stack){.part_count = MEMORY_PARTS};
    name_rows(html, stack);
    for (size_t k = 0; k < MEMORY_PARTS; k++)
        stack->parts[k] = tr(html, memory_parts[k].summary);
    for (size_t i = 0; i < stack->row_count; i++)
        for (size_t k = 0; k < MEMORY_PARTS; k++)
            stack->values[i * MEMORY_PARTS + k] =
                *(const double *)((const char *)&html->page->steps->items[i].memory +
                                  memory_parts[k].offset);
}

static const char *tell_gib(char text[32], double bytes)
{
    snprintf(text, 32, "%.3g GiB", bytes / GIB);
    return text;
}

static const char *tell_ns(char text[32], double ns)
{
    return nw_format_ns(text, ns);
}

static void draw_time(const struct nw_html *html, const struct stack *stack, const char *id)
{
    nw_bars_draw(
        &(struct nw_bars){
            .stream = html->stream,
            .alone = html->alone,
            .title = tr(html, "What a step is made of"),
            .about = tr(html, "A bar for each strategy and number of nodes, its parts one "
                              "behind the other; the line is the 90 % interval of the "
                              "whole. The figures stand in the table below."),
            .axis = tr(html, "time of a step"),
            .unit = NW_AXIS_TIME,
            .rows = stack->rows,
            .row_count = stack->row_count,
            .parts = stack->parts,
            .part_count = stack->part_count,
            .values = stack->values,
            .low = stack->low,
            .high = stack->high,
            .mark = NAN,
            .tell = tell_ns,
        },
        id);
}

static void draw_memory(const struct nw_html *html, const struct stack *stack, const char *id)
{
    const double card = (double)html->page->model->platform.memory_bytes;
    char name[96], text[32];

    snprintf(name, sizeof name, tr(html, "memory of the card: %s"), tell_gib(text, card));
    nw_bars_draw(
        &(struct nw_bars){
            .stream = html->stream,
            .alone = html->alone,
            .title = tr(html, "Memory of one GPU"),
            .about = tr(html, "A bar for each strategy and number of nodes, its parts one "
                              "behind the other, against the memory of the card. The "
                              "figures stand in the table below."),
            .axis = tr(html, "memory of one GPU"),
            .unit = NW_AXIS_BYTES,
            .rows = stack->rows,
            .row_count = stack->row_count,
            .parts = stack->parts,
            .part_count = stack->part_count,
            .values = stack->values,
            .mark = card > 0 ? card : NAN,
            .mark_name = name,
            .tell = tell_gib,
        },
        id);
}

void nw_draw_breakdown(struct nw_html *html, const char *id)
{
    struct stack stack;

    stack_time(html, &stack);
    draw_time(html, &stack, id);
}

void nw_draw_memory(struct nw_html *html, const char *id)
{
    struct stack stack;

    stack_memory(html, &stack);
    draw_memory(html, &stack, id);
}

static void put_table(const struct nw_html *html, const struct stack *stack, const char *caption,
                      const char *(*tell)(char text[32], double value))
{
    struct nw_html_column columns[NW_PARTS_MAX + 2] = {{"Strategy", NW_LEFT}, {"Whole", NW_RIGHT}};
    const size_t count = stack->part_count + 2;

    for (size_t k = 0; k < stack->part_count; k++)
        columns[k + 2] = (struct nw_html_column){stack->parts[k], NW_RIGHT};
    nw_html_table(html, caption, columns, count);
    for (size_t i = 0; i < stack->row_count; i++) {
        char texts[NW_PARTS_MAX + 1][32];
        const char *cells[NW_PARTS_MAX + 2] = {stack->rows[i], texts[0]};
        double sum = 0;

        for (size_t k = 0; k < stack->part_count; k++) {
            const double value = stack->values[i * stack->part_count + k];

            sum += value;
            cells[k + 2] = value > 0 ? tell(texts[k + 1], value) : "0";
        }
        tell(texts[0], sum);
        nw_html_row(html, columns, count, cells);
    }
    nw_html_table_end(html);
}

static void put_effects(const struct nw_html *html)
{
    const struct nw_lane_effects *effects = html->page->lane_effects;
    char text[400], fast[112], slow[112];

    for (size_t i = 0; effects != NULL && i < effects->count; i++) {
        const struct nw_lane_effect *effect = &effects->items[i];

        snprintf(text, sizeof text,
                 tr(html, "%s, nodes: %d: a step takes %s over %s and %s over %s%s."),
                 effect->over_fast.strategy->name, effect->over_fast.node_count,
                 nw_report_step_time(fast, sizeof fast, &effect->over_fast), effect->fast,
                 nw_report_step_time(slow, sizeof slow, &effect->over_slow), effect->slow,
                 nw_html_mark(html, (effect->over_fast.how & NW_COST_SIMULATED) != 0));
        nw_html_say(html, NULL, "%s", text);
    }
}

static void put_scaling(const struct nw_html *html)
{
    const struct nw_scaling_cost *cost = html->page->scaling_cost;
    char size[32], lost[32], step[32];

    if (cost == NULL || !cost->known || !(cost->full_step_ns < cost->step.step_ns))
        return;
    nw_html_say(html, NULL,
                tr(html, "%s, nodes: %d: %s of %s has %.0f %% of the bus bandwidth within "
                         "a node, which costs %s of each step of %s."),
                cost->step.strategy->name, cost->step.node_count, cost->collective,
                nw_format_bytes(size, cost->bytes), 100 * cost->efficiency,
                nw_format_ns(lost, cost->step.step_ns - cost->full_step_ns),
                nw_format_ns(step, cost->step.step_ns));
    if (cost->lever_count == 0)
        return;
    fputs("<ul>", html->stream);
    for (size_t i = 0; i < cost->lever_count; i++) {
        char text[300];

        fputs("<li>", html->stream);
        nw_html_foreign(html, cost->levers[i].what);
        snprintf(text, sizeof text, " (%.1f %%)", 100 * cost->levers[i].change);
        nw_html_text(html->stream, text);
        fputs("</li>", html->stream);
    }
    fputs("</ul>\n", html->stream);
}

static void put_figure(struct nw_html *html, const struct stack *stack, bool memory)
{
    const char *title = tr(html, memory ? "Memory of one GPU" : "What a step is made of");
    char id[64];

    nw_html_figure(html, title, id);
    if (memory)
        draw_memory(html, stack, id);
    else
        draw_time(html, stack, id);
    nw_html_legend(html, stack->parts, stack->part_count);
    put_table(html, stack, title, memory ? tell_gib : tell_ns);
    nw_html_figure_end(html);
}

void nw_html_step(struct nw_html *html)
{
    const struct nw_page *page = html->page;
    struct stack stack;

    if (page->model == NULL || page->steps == NULL || page->steps->count == 0)
        return;
    nw_html_begin(html, "step", tr(html, "The training step"));
    stack_time(html, &stack);
    put_figure(html, &stack, false);
    stack_memory(html, &stack);
    put_figure(html, &stack, true);
    if (page->steps->count > STEPS_MAX)
        nw_html_say(html, "note",
                    tr(html, "and %zu further strategies; nodeworth predict "
                             "lists all"),
                    page->steps->count - STEPS_MAX);
    put_effects(html);
    put_scaling(html);
    nw_html_end(html);
}
