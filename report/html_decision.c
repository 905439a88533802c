/* Is a further node worth its price: the sentence, each node count, and step and cost against the
 * rate between nodes. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/decide_text_parts.h"
#include "report/html_parts.h"

static const char *pays_word(nw_pays pays)
{
    static const char *const words[] = {
        [NW_PAYS_BASE] = "what the others are held against",
        [NW_PAYS_YES] = "pays",
        [NW_PAYS_MEMORY] = "needed: fewer nodes have too little memory",
        [NW_PAYS_DEADLINE] = "needed: fewer nodes miss the deadline",
        [NW_PAYS_NO] = "does not pay",
        [NW_PAYS_UNFIT] = "the job does not fit here either",
        [NW_PAYS_UNKNOWN] = "not known: nothing between nodes was measured",
        [NW_PAYS_BATCH] = "the global batch cannot be dealt to these GPUs",
        [NW_PAYS_STEP] = "needed: a step takes too long on fewer nodes",
    };

    return words[pays];
}

static const char *cost_unit(const struct nw_html *html, char text[96])
{
    const struct nw_terms *terms = &html->page->model->terms;

    if (isfinite(terms->price_per_node_hour))
        snprintf(text, 96, tr(html, "%.20s for 10^9 tokens"),
                 terms->currency[0] != '\0' ? terms->currency : tr(html, "cost"));
    else
        snprintf(text, 96, "%s", tr(html, "node-hours for 10^9 tokens"));
    return text;
}

static void put_choice(const struct nw_html *html, const struct nw_html_column *columns,
                       size_t count, const struct nw_choice *choice)
{
    char nodes[48], step[112] = "", rate[32] = "", speed[32] = "", efficiency[32] = "";
    char cost[32] = "", memory[32] = "";

    snprintf(nodes, sizeof nodes, "%d (%d)", choice->node_count, choice->rank_count);
    if (choice->predicted) {
        nw_report_step_time(step, sizeof step, &choice->strong);
        nw_format_count(rate, choice->useful_tokens_per_s);
        snprintf(speed, sizeof speed, "%.2f×", choice->speedup);
        snprintf(efficiency, sizeof efficiency, "%.0f %%", 100 * choice->efficiency);
        nw_format_sig(cost, choice->cost_per_billion_tokens, 3);
        snprintf(memory, sizeof memory, "%.3g GiB", choice->strong.memory.total_bytes / GIB);
    }
    nw_html_row(html, columns, count,
                (const char *[]){nodes, choice->predicted ? choice->strong.strategy->name : "",
                                 memory, step, rate, speed, efficiency, cost,
                                 tr(html, pays_word(choice->pays))});
}

static void put_choices(const struct nw_html *html)
{
    char unit[96];
    const struct nw_html_column columns[] = {
        {"Nodes (GPUs)", NW_RIGHT},   {"Fastest strategy", NW_LEFT},
        {"Memory per GPU", NW_RIGHT}, {"Step [90 %]", NW_RIGHT},
        {"Tokens/s", NW_RIGHT},       {"Speed-up", NW_RIGHT},
        {"Efficiency", NW_RIGHT},     {cost_unit(html, unit), NW_RIGHT},
        {"Result", NW_LEFT},
    };
    const size_t count = sizeof columns / sizeof *columns;
    const struct nw_decision *decision = html->page->decision;

    nw_html_table(html, tr(html, "Each number of nodes"), columns, count);
    for (size_t i = 0; i < decision->count; i++)
        put_choice(html, columns, count, &decision->choices[i]);
    nw_html_table_end(html);
}

/* ---- against the rate between nodes ------------------------------------------------------------
 */

static double value_of(const struct nw_wire_point *point, bool cost)
{
    return cost ? point->cost_per_billion_tokens : point->step_ns;
}

static void fit(const struct nw_wire_curve *wire, bool cost, struct nw_chart *chart)
{
    const double base = cost ? wire->base_cost_per_billion_tokens : wire->base_step_ns;

    chart->x.low = wire->points[0].busbw_bytes_per_s / 1.1;
    chart->x.high = wire->points[wire->count - 1].busbw_bytes_per_s * 1.1;
    if (isfinite(wire->quoted_bytes_per_s))
        chart->x.high = fmax(chart->x.high, wire->quoted_bytes_per_s * 1.1);
    chart->y.low = chart->y.high = value_of(&wire->points[0], cost);
    for (size_t i = 0; i < wire->count; i++) {
        chart->y.low = fmin(chart->y.low, value_of(&wire->points[i], cost));
        chart->y.high = fmax(chart->y.high, value_of(&wire->points[i], cost));
    }
    if (isfinite(base)) {
        chart->y.low = fmin(chart->y.low, base);
        chart->y.high = fmax(chart->y.high, base);
    }
    chart->y.low /= 1.2;
    chart->y.high *= 1.3;
}

static void draw_marks(const struct nw_html *html, const struct nw_chart *chart, bool cost)
{
    const struct nw_wire_curve *wire = html->page->wire;
    char text[160], rate[32], value[32];

    if (isfinite(wire->break_even_bytes_per_s)) {
        snprintf(text, sizeof text, tr(html, "break-even %s GB/s"),
                 nw_format_gb_per_s(rate, wire->break_even_bytes_per_s));
        nw_chart_upright(chart, wire->break_even_bytes_per_s, text);
    }
    if (isfinite(wire->quoted_bytes_per_s)) {
        snprintf(text, sizeof text, tr(html, "offered %s GB/s"),
                 nw_format_gb_per_s(rate, wire->quoted_bytes_per_s));
        nw_chart_upright(chart, wire->quoted_bytes_per_s, text);
    }
    if (cost && isfinite(wire->limit_cost_per_billion_tokens)) {
        snprintf(text, sizeof text, tr(html, "limit %s"),
                 nw_format_sig(value, wire->limit_cost_per_billion_tokens, 3));
        nw_chart_level(chart, wire->limit_cost_per_billion_tokens, text);
    } else if (!cost && isfinite(wire->base_step_ns)) {
        snprintf(text, sizeof text, tr(html, "nodes: %d, step %s"), wire->base_nodes,
                 nw_format_ns(value, wire->base_step_ns));
        nw_chart_level(chart, wire->base_step_ns, text);
    }
}

/* How the rate between nodes was come by. */
static const char *known_word(const struct nw_html *html)
{
    const struct nw_decision *decision = html->page->decision;
    const unsigned how = decision->choices[decision->headline].strong.how;

    return tr(html, (how & (NW_COST_DATASHEET | NW_COST_WIRE)) != 0 ? "by the data sheet"
                    : (how & NW_COST_GIVEN) != 0                    ? "as given"
                    : (how & (NW_COST_RANKS | NW_COST_NODES | NW_COST_DERIVED)) != 0
                        ? "from other measurements"
                        : "as measured");
}

/* The point at hand with its intervals both ways. */
static void draw_measured(const struct nw_html *html, const struct nw_chart *chart, bool cost)
{
    const struct nw_wire_curve *wire = html->page->wire;
    const struct nw_decision *decision = html->page->decision;
    const double value = decision->choices[decision->headline].cost_per_billion_tokens;
    const double low = cost ? value * wire->step_low_ns / wire->step_ns : wire->step_low_ns;
    const double high = cost ? value * wire->step_high_ns / wire->step_ns : wire->step_high_ns;
    char text[200], rate[32], left[32], right[32];

    if (!isfinite(wire->measured_bytes_per_s))
        return;
    snprintf(text, sizeof text, tr(html, "%s: %s GB/s [%s, %s]"), known_word(html),
             nw_format_gb_per_s(rate, wire->measured_bytes_per_s),
             nw_format_gb_per_s(left, wire->measured_low),
             nw_format_gb_per_s(right, wire->measured_high));
    const struct nw_chart_point point = {.x = wire->measured_bytes_per_s,
                                         .y = cost ? value : wire->step_ns,
                                         .low = low,
                                         .high = high,
                                         .tip = text};

    nw_chart_series_open(chart, 1);
    nw_chart_whiskers(chart, &point, wire->measured_low, wire->measured_high);
    nw_chart_marker(chart, &point, 1);
    nw_chart_series_close(chart);
}

static void draw(struct nw_html *html, const char *id, bool cost)
{
    const struct nw_wire_curve *wire = html->page->wire;
    char unit[96], tips[NW_WIRE_POINTS][160];
    struct nw_chart_point points[NW_WIRE_POINTS];
    struct nw_chart chart = {
        .stream = html->stream,
        .alone = html->alone,
        .x = {.unit = NW_AXIS_GB_PER_S,
              .log = true,
              .title = tr(html, "bus bandwidth between nodes, GB/s")},
        .y = {.unit = cost ? NW_AXIS_NUMBER : NW_AXIS_TIME,
              .log = true,
              .title = cost ? cost_unit(html, unit) : tr(html, "time of a step")},
    };

    fit(wire, cost, &chart);
    nw_chart_open(&chart, id,
                  tr(html, cost ? "Cost against the bandwidth between nodes"
                                : "Step time against the bandwidth between nodes"),
                  tr(html, "A falling line, with the measured point, the break-even and "
                           "what was offered where they are known; the figures stand in "
                           "the table below."));
    nw_chart_axes(&chart);
    draw_marks(html, &chart, cost);
    for (size_t i = 0; i < wire->count; i++) {
        const struct nw_wire_point *point = &wire->points[i];
        char rate[32], value[32];

        snprintf(tips[i], sizeof tips[i], tr(html, "at %s GB/s: %s with %s"),
                 nw_format_gb_per_s(rate, point->busbw_bytes_per_s),
                 cost ? nw_format_sig(value, point->cost_per_billion_tokens, 3)
                      : nw_format_ns(value, point->step_ns),
                 point->strategy->name);
        points[i] = (struct nw_chart_point){.x = point->busbw_bytes_per_s,
                                            .y = value_of(point, cost),
                                            .low = NAN,
                                            .high = NAN,
                                            .tip = i % 4 == 0 ? tips[i] : NULL};
    }
    nw_chart_series_open(&chart, 0);
    nw_chart_line(&chart, points, wire->count, 0);
    nw_chart_series_close(&chart);
    draw_measured(html, &chart, cost);
    nw_chart_close(&chart);
}

void nw_draw_wire_step(struct nw_html *html, const char *id)
{
    draw(html, id, false);
}

void nw_draw_wire_cost(struct nw_html *html, const char *id)
{
    draw(html, id, true);
}

static void put_wire_table(const struct nw_html *html)
{
    char unit[96];
    const struct nw_html_column columns[] = {{"Between nodes, GB/s", NW_RIGHT},
                                             {"Step", NW_RIGHT},
                                             {cost_unit(html, unit), NW_RIGHT},
                                             {"Fastest strategy", NW_LEFT}};
    const struct nw_wire_curve *wire = html->page->wire;

    nw_html_fold(html, tr(html, "The figures of these charts"));
    nw_html_table(html, tr(html, "The figures of these charts"), columns, 4);
    for (size_t i = 0; i < wire->count; i += 2) {
        const struct nw_wire_point *point = &wire->points[i];
        char rate[32], step[32], cost[32];

        nw_html_row(html, columns, 4,
                    (const char *[]){nw_format_gb_per_s(rate, point->busbw_bytes_per_s),
                                     nw_format_ns(step, point->step_ns),
                                     nw_format_sig(cost, point->cost_per_billion_tokens, 3),
                                     point->strategy->name});
    }
    nw_html_table_end(html);
    nw_html_fold_end(html);
}

static void put_wire(struct nw_html *html)
{
    const struct nw_wire_curve *wire = html->page->wire;
    char text[300], size[32], lines[2][96], id[64];
    const char *names[] = {lines[0], lines[1]};

    if (wire == NULL || wire->count < 2)
        return;
    snprintf(lines[0], sizeof lines[0], tr(html, "nodes: %d, the fastest strategy"), wire->nodes);
    snprintf(lines[1], sizeof lines[1], tr(html, "%s, with intervals"), known_word(html));
    for (int cost = 0; cost < 2; cost++) {
        nw_html_figure(html,
                       tr(html, cost ? "Cost against the bandwidth between nodes"
                                     : "Step time against the bandwidth between nodes"),
                       id);
        draw(html, id, cost);
        nw_html_legend(html, names, isfinite(wire->measured_bytes_per_s) ? 2 : 1);
        nw_html_figure_end(html);
    }
    snprintf(text, sizeof text,
             tr(html, "Bandwidth is the bus bandwidth of %s of %s, the message that "
                      "carries most bytes of a step; everything else stays as it is."),
             wire->collective, nw_format_bytes(size, (unsigned long long)wire->message_bytes));
    nw_html_say(html, "note", "%s", text);
    put_wire_table(html);
}

/* ---- the section -------------------------------------------------------------------------------
 */

static void put_job(const struct nw_html *html)
{
    const struct nw_job *job = &html->page->model->job;
    char tokens[32];

    nw_html_say(html, NULL,
                tr(html, "Job: %s, precision %s, optimizer %s; sequences of %llu tokens, "
                         "%llu in a step; parameters: %s."),
                job->net.name, job->precision->name, job->optimizer->name,
                (unsigned long long)job->sequence, (unsigned long long)job->global_batch,
                nw_format_count(tokens, (double)nw_transformer_parameter_count(&job->net)));
}

nw_rc nw_html_decision(struct nw_html *html)
{
    const struct nw_page *page = html->page;
    char sentence[1536];

    nw_html_begin(html, "decision", tr(html, "Is a second node worth it"));
    if (page->model == NULL) {
        nw_html_say(html, NULL, "%s",
                    tr(html, page->job_problem != NULL
                                 ? "The job that was given could not be predicted:"
                                 : "Not asked: give a job (option --model NAME; nodeworth "
                                   "list models has the names)."));
        if (page->job_problem != NULL) {
            fputs("<p>", html->stream);
            nw_html_foreign(html, page->job_problem);
            fputs("</p>\n", html->stream);
        }
        nw_html_end(html);
        return NW_OK;
    }
    fputs("<p class=\"headline\">", html->stream);
    nw_html_foreign(html,
                    nw_report_sentence(sentence, sizeof sentence, page->model, page->decision));
    fputs("</p>\n<p>", html->stream);
    nw_html_foreign(html, nw_report_pays_rule(sentence, sizeof sentence, page->model));
    fputs("</p>\n", html->stream);
    put_job(html);
    if (page->note != NULL) {
        fputs("<p class=\"note\">", html->stream);
        nw_html_foreign(html, page->note);
        fputs("</p>\n", html->stream);
    }
    put_choices(html);
    put_wire(html);
    nw_html_end(html);
    return NW_OK;
}
