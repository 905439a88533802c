/* The same collective by each way that the bytes were made to go: NVLink beside PCIe, RDMA beside
 * TCP. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/html_parts.h"
#include "report/svg_bars.h"

#define BARS_MAX 32
#define RUNS_MAX 4

struct sides {
    char names[BARS_MAX][96];
    const char *rows[BARS_MAX];
    const char *lanes[NW_LANES_MAX];
    size_t row_count, lane_count;
    double values[BARS_MAX * NW_LANES_MAX], low[BARS_MAX], high[BARS_MAX];
};

static size_t lane_of(struct sides *sides, const char *lane)
{
    size_t i = 0;

    while (i < sides->lane_count && strcmp(sides->lanes[i], lane) != 0)
        i++;
    if (i == sides->lane_count && i < NW_LANES_MAX)
        sides->lanes[sides->lane_count++] = lane;
    return i < NW_LANES_MAX ? i : NW_LANES_MAX - 1;
}

static void collect(const struct nw_lanes *lanes, struct sides *sides)
{
    *sides = (struct sides){.row_count = 0};
    for (size_t i = 0; i < lanes->count; i++)
        for (size_t k = 0; k < lanes->groups[i].side_count; k++)
            lane_of(sides, lanes->groups[i].sides[k].lane);
    for (size_t i = 0; i < lanes->count; i++)
        for (size_t k = 0; k < lanes->groups[i].side_count && sides->row_count < BARS_MAX; k++) {
            const struct nw_lane_side *side = &lanes->groups[i].sides[k];
            const size_t row = sides->row_count;

            if (!isfinite(side->busbw_bytes_per_s.value))
                continue;
            snprintf(sides->names[row], sizeof sides->names[row], "%s %s",
                     lanes->groups[i].like->collective, side->lane);
            sides->rows[row] = sides->names[row];
            sides->values[row * sides->lane_count + lane_of(sides, side->lane)] =
                side->busbw_bytes_per_s.value;
            sides->low[row] = side->busbw_bytes_per_s.low;
            sides->high[row] = side->busbw_bytes_per_s.high;
            sides->row_count++;
        }
}

static const char *tell(char text[32], double value)
{
    char rate[32];

    snprintf(text, 32, "%.24s GB/s", nw_format_gb_per_s(rate, value));
    return text;
}

static void draw(const struct nw_html *html, const struct sides *sides, const char *id)
{
    nw_bars_draw(
        &(struct nw_bars){
            .stream = html->stream,
            .alone = html->alone,
            .title = tr(html, "Ways side by side: bus bandwidth of the largest sizes"),
            .about = tr(html, "A bar for each collective by each way, with its interval. "
                              "The figures stand in the table below."),
            .axis = tr(html, "bus bandwidth, GB/s"),
            .unit = NW_AXIS_GB_PER_S,
            .rows = sides->rows,
            .row_count = sides->row_count,
            .parts = sides->lanes,
            .part_count = sides->lane_count,
            .values = sides->values,
            .low = sides->low,
            .high = sides->high,
            .mark = NAN,
            .tell = tell,
        },
        id);
}

nw_rc nw_draw_lanes(struct nw_html *html, const struct nw_lanes *lanes, const char *id)
{
    struct sides *sides = malloc(sizeof *sides);

    if (sides == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a chart");
    collect(lanes, sides);
    draw(html, sides, id);
    free(sides);
    return NW_OK;
}

static const char *interval(char text[112], const struct nw_value *value, bool time)
{
    char middle[32], low[32], high[32];

    text[0] = '\0';
    if (!isfinite(value->value))
        return text;
    if (time)
        snprintf(text, 112, "%s [%s, %s]", nw_format_ns(middle, value->value),
                 nw_format_ns(low, value->low), nw_format_ns(high, value->high));
    else
        snprintf(text, 112, "%s [%s, %s]", nw_format_gb_per_s(middle, value->value),
                 nw_format_gb_per_s(low, value->low), nw_format_gb_per_s(high, value->high));
    return text;
}

static void put_table(const struct nw_html *html, const struct nw_lanes *lanes)
{
    static const struct nw_html_column columns[] = {
        {"Collective", NW_LEFT},           {"Way", NW_LEFT},
        {"Bus bandwidth, GB/s", NW_RIGHT}, {"Latency", NW_RIGHT},
        {"Over the slowest", NW_RIGHT},
    };

    nw_html_table(html, tr(html, "Ways side by side"), columns, 5);
    for (size_t i = 0; i < lanes->count; i++)
        for (size_t k = 0; k < lanes->groups[i].side_count; k++) {
            const struct nw_lane_side *side = &lanes->groups[i].sides[k];
            char rate[112], latency[112], ratio[96] = "";

            if (isfinite(side->ratio.value))
                snprintf(ratio, sizeof ratio, "%.2f× [%.2f, %.2f]", side->ratio.value,
                         side->ratio.low, side->ratio.high);
            nw_html_row(html, columns, 5,
                        (const char *[]){lanes->groups[i].like->collective, side->lane,
                                         interval(rate, &side->busbw_bytes_per_s, false),
                                         interval(latency, &side->latency_ns, true), ratio});
        }
    nw_html_table_end(html);
}

static void put_notes(const struct nw_html *html, const struct nw_lanes *lanes)
{
    if (lanes->note_count == 0)
        return;
    fputs("<ul class=\"note\">", html->stream);
    for (size_t i = 0; i < lanes->note_count; i++) {
        char text[96];

        snprintf(text, sizeof text,
                 tr(html, lanes->notes[i].broke ? "%.60s broke: " : "%.60s was left out: "),
                 lanes->notes[i].lane);
        fputs("<li>", html->stream);
        nw_html_text(html->stream, text);
        nw_html_foreign(html, lanes->notes[i].text);
        fputs("</li>", html->stream);
    }
    fputs("</ul>\n", html->stream);
}

static nw_rc put_run(struct nw_html *html, const struct nw_lanes *lanes)
{
    struct sides *sides = malloc(sizeof *sides);
    char id[64];

    if (sides == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a chart");
    collect(lanes, sides);
    if (sides->row_count > 1) {
        nw_html_figure(html, tr(html, "Ways side by side: bus bandwidth of the largest sizes"), id);
        draw(html, sides, id);
        nw_html_legend(html, sides->lanes, sides->lane_count);
        nw_html_figure_end(html);
    }
    free(sides);
    if (lanes->count > 0)
        put_table(html, lanes);
    put_notes(html, lanes);
    return NW_OK;
}

nw_rc nw_html_lanes(struct nw_html *html)
{
    const struct nw_page *page = html->page;
    size_t count = 0;

    for (size_t i = 0; page->lanes != NULL && i < page->results->run_count && count < RUNS_MAX;
         i++) {
        const struct nw_lanes *lanes = &page->lanes[i];

        if (lanes->count == 0 && lanes->note_count == 0)
            continue;
        if (count++ == 0)
            nw_html_begin(html, "lanes", tr(html, "Ways side by side"));
        NW_TRY(put_run(html, lanes));
    }
    if (count > 0)
        nw_html_end(html);
    return NW_OK;
}
