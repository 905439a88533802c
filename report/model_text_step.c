/* One step in detail: what it is made of, what would make it faster, how it stands to the step that
 * was measured. */
#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "model/breakdown.h"
#include "model/fit.h"
#include "model/levers.h"
#include "report/model_text_parts.h"

#define BAR_WIDTH    60
#define LEVERS_SHOWN 3
#define NAMED_SHARE  0.005 /* of the step: smaller parts are not told */

/* ---- the bar ------------------------------------------------------------------------------- */

/* One for each part, in turn; they differ without colour. */
static const char *const fills[] = {"█", "▓", "▒", "░", "▚", "■", "◆", "=", "+", "-", "·", "~"};
#define FILL_COUNT (sizeof fills / sizeof fills[0])

static void print_bar(FILE *stream, const struct nw_breakdown *breakdown, double whole_ns)
{
    double sum = 0;
    int drawn = 0;

    for (size_t i = 0; i < breakdown->count; i++) {
        sum += breakdown->items[i].ns;
        if (breakdown->items[i].ns < NAMED_SHARE * whole_ns)
            continue; /* its columns go to the next one that the list names */
        for (; drawn < (int)lround(BAR_WIDTH * sum / whole_ns) && drawn < BAR_WIDTH; drawn++)
            fputs(fills[i % FILL_COUNT], stream);
    }
}

static const char *share(char text[32], double part)
{
    snprintf(text, 32, part < 0.0095 ? "%.1f %%" : "%.0f %%", 100 * part);
    return text;
}

nw_rc nw_report_breakdown(FILE *stream, const struct nw_step *step)
{
    struct nw_breakdown breakdown;
    char list[1024], percent[32];
    size_t length = 0;

    nw_breakdown_of(step, &breakdown);
    nw_print(stream, "%3d node%s %-9s ", step->node_count, step->node_count == 1 ? " " : "s",
             step->strategy->name);
    print_bar(stream, &breakdown, step->step_ns);
    fputc('\n', stream);
    for (size_t i = 0; i < breakdown.count; i++) {
        const struct nw_part *part = &breakdown.items[i];
        const int added = nw_print_to(list + length, sizeof list - length, "%s%s %s %s",
                                      length > 0 ? ", " : "", fills[i % FILL_COUNT], part->title,
                                      share(percent, part->ns / step->step_ns));

        if (part->ns < NAMED_SHARE * step->step_ns || added < 0 ||
            (size_t)added >= sizeof list - length)
            list[length] = '\0'; /* too small to tell */
        else
            length += (size_t)added;
    }
    nw_print_wrapped(stream, "    ", "    ", list);
    return NW_OK;
}

/* ---- levers -------------------------------------------------------------------------------- */

nw_rc nw_report_levers(FILE *stream, const struct nw_model *model, const struct nw_step *step)
{
    const struct nw_platform platform = nw_model_platform(model);
    const struct nw_job job = nw_model_job(model, &step->layout);
    struct nw_levers levers;

    nw_levers_of(&job, &platform, &step->layout, &model->scenario, step, &levers);
    nw_print(stream, "%3d node%s %s", step->node_count, step->node_count == 1 ? "," : "s,",
             step->strategy->name);
    if (levers.count == 0)
        nw_print(stream, ": none of half a percent or more");
    fputc('\n', stream);
    for (size_t i = 0; i < levers.count && i < LEVERS_SHOWN; i++) {
        const struct nw_lever *lever = &levers.items[i];
        char text[256];

        nw_print_to(text, sizeof text, "%s%s%s%s%s", lever->what, lever->how != NULL ? " (" : "",
                    lever->how != NULL ? lever->how : "", lever->how != NULL ? ")" : "",
                    lever->changes_rounding ? nw_tr("; changes the training's rounding") : "");
        char first[32];

        snprintf(first, sizeof first, "    %4.0f %%  ", 100 * lever->change);
        nw_print_wrapped(stream, first, "            ", text);
    }
    return NW_OK;
}

/* ---- what would make it fit ---------------------------------------------------------------- */

#define CHANGES_SHOWN 4

static void print_change(FILE *stream, const struct nw_fit_item *item, const char *lead)
{
    char text[384], gib[32], ratio[32] = "";

    if (isfinite(item->time_ratio))
        snprintf(ratio, sizeof ratio,
                 item->change->more_gpus ? nw_tr(", %.2f× the GPU time")
                                         : nw_tr(", %.2f× the time"),
                 item->time_ratio);
    nw_print_to(text, sizeof text, "%s: %s GiB%s%s", item->text,
                nw_format_sig(gib, item->memory_bytes / GIB, 3), ratio,
                item->change->other_numerics ? nw_tr("; other rounding") : "");
    nw_print_wrapped(stream, lead, "        ", text);
}

nw_rc nw_report_fit(FILE *stream, const struct nw_model *model, const struct nw_step *step)
{
    struct nw_fit_advice advice;
    size_t shown = 0;

    if (nw_fit_advise(model, &step->layout, &advice) != NW_OK) {
        nw_clear_error(); /* there is nothing to say then */
        return NW_OK;
    }
    nw_print(stream, "%3d node%s %s", step->node_count, step->node_count == 1 ? "," : "s,",
             step->strategy->name);
    if (advice.count == 0 || (!advice.items[0].fits && !advice.combination_fits)) {
        nw_print(stream, ": nothing known here\n");
        return NW_OK;
    }
    fputc('\n', stream);
    for (size_t i = 0; i < advice.count && shown < CHANGES_SHOWN; i++, shown++)
        if (advice.items[i].fits)
            print_change(stream, &advice.items[i], "      ");
    if (!advice.items[0].fits)
        for (size_t i = 0; i < advice.combination_count; i++)
            print_change(stream, &advice.combination[i], i == 0 ? "      " : "    + ");
    return NW_OK;
}

/* ---- anchor -------------------------------------------------------------------------------- */

static void print_measured(FILE *stream, const struct nw_anchor *anchor)
{
    char text[512], step[32], before[32], low[32], high[32], range[96] = "";

    if (isfinite(anchor->low_ns) && anchor->high_ns > anchor->low_ns)
        nw_print_to(range, sizeof range, " [%s, %s]", nw_format_ns(low, anchor->low_ns),
                    nw_format_ns(high, anchor->high_ns));
    nw_print_to(text, sizeof text,
                "Measured: %s%s a step on %d GPU%s, %d node%s (%s). By itself the model says %s: "
                "from here on computation takes %.3g times what it says.",
                nw_format_ns(step, anchor->step_ns), range, anchor->rank_count,
                anchor->rank_count == 1 ? "" : "s", anchor->node_count,
                anchor->node_count == 1 ? "" : "s", anchor->source,
                nw_format_ns(before, anchor->predicted_ns), anchor->factor);
    fputc('\n', stream);
    nw_print_wrapped(stream, "", "", text);
    if (fabs(anchor->rest - 1) > 0.01) {
        nw_print_to(text, sizeof text,
                    "The communication as known here explains more than that: the model stays at "
                    "%.2f times the measured step, and the ranges below are wider for it.",
                    1 / anchor->rest);
        nw_print_wrapped(stream, "", "", text);
    }
}

/* The claim that stands firmest comes first: what was measured, times a ratio. */
nw_rc nw_report_anchor(FILE *stream, const struct nw_model *model, const struct nw_steps *steps)
{
    static const struct nw_column columns[] = {
        {"nodes", NW_RIGHT},       {"GPUs", NW_RIGHT},
        {"strategy", NW_LEFT},     {"of measured step", NW_LEFT},
        {"step [range]", NW_LEFT}, {"tokens/s", NW_RIGHT},
        {"speed", NW_RIGHT}};
    const struct nw_anchor *anchor = &model->anchor;
    const double tokens = (double)anchor->global_batch * (double)model->job.sequence;
    struct nw_table *table;

    if (!anchor->given)
        return NW_OK;
    print_measured(stream, anchor);
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; i < steps->count; i++) {
        const struct nw_step *step = &steps->items[i];
        struct nw_cell c[6];

        snprintf(c[2].text, sizeof c[2].text, "%.3f× [%.2f, %.2f]", step->step_ns / anchor->step_ns,
                 step->low_ns / anchor->step_ns, step->high_ns / anchor->step_ns);
        snprintf(c[5].text, sizeof c[5].text, "%.2f×",
                 step->tokens_per_s / (tokens / anchor->step_ns * 1e9));
        nw_table_row(table,
                     (const char *[]){nw_cell_nodes(&c[0], step->node_count),
                                      nw_cell_nodes(&c[1], step->rank_count), step->strategy->name,
                                      c[2].text, nw_cell_interval(&c[3], step),
                                      nw_cell_count(&c[4], step->tokens_per_s), c[5].text});
    }
    return nw_table_print(table, stream);
}
