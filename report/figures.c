#include "report/figures.h"

#include <math.h>
#include <string.h>

#include "base/command.h"
#include "base/io.h"
#include "base/units.h"
#include "report/html_map.h"
#include "report/html_parts.h"

#define CHARTS_MAX 64
#define GNUPLOT_S  20
#define PNG_MAX    (4u << 20)

struct output {
    struct nw_html html;
    const char *directory;
    struct nw_figures_written written;
    bool no_gnuplot;
};

static nw_rc open_file(struct output *output, const char *name, struct nw_atomic_file **file_out)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", output->directory, name);
    NW_TRY(nw_atomic_open(path, file_out));
    output->html.stream = nw_atomic_stream(*file_out);
    return NW_OK;
}

/* Letters, digits and dashes of a text: of a file's name, and of what gnuplot is told. */
static void plain(const char *text, char *out, size_t size)
{
    size_t used = 0;

    for (; *text != '\0' && used + 1 < size; text++) {
        const char c = *text;
        const bool fine =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';

        out[used++] = (char)(fine ? c : '_');
    }
    out[used] = '\0';
}

/* ---- gnuplot -----------------------------------------------------------------------------------
 */

static void put_data(FILE *stream, const struct nw_chart_group *group, size_t count)
{
    for (size_t s = 0; s < count; s++) {
        fprintf(stream, "$d%zu << EOD\n", s);
        for (size_t i = 0; i < group->series[s].count; i++) {
            const struct nw_record *record = group->series[s].records[i];
            double low, high;

            nw_record_interval(record, &low, &high);
            fprintf(stream, "%llu %.6g %.6g %.6g\n", (unsigned long long)record->bytes,
                    record->busbw_bytes_per_s / 1e9,
                    (isfinite(low) ? low : record->busbw_bytes_per_s) / 1e9,
                    (isfinite(high) ? high : record->busbw_bytes_per_s) / 1e9);
        }
        fputs("EOD\n", stream);
    }
}

/* Single quotes: between double ones gnuplot would run what stands in backquotes. */
static void put_plot(struct output *output, const struct nw_chart_group *group)
{
    static const char *const colours[] = {"0072b2", "d55e00", "009e73", "b3568a",
                                          "b87f00", "2e93cc", "777777", "8a6d3b"};
    FILE *stream = output->html.stream;
    const size_t count = group->count < NW_CHART_LINES ? group->count : NW_CHART_LINES;
    char name[200], text[200];

    put_data(stream, group, count);
    plain(group->series[0].records[0]->collective, name, sizeof name);
    fprintf(stream,
            "set terminal png size 960,540\nset logscale x 2\nset logscale y\n"
            "set format x '%%.0b %%BB'\nset xlabel 'size'\nset ylabel 'bus bandwidth, GB/s'\n"
            "set title '%s' noenhanced\nset key bottom right noenhanced\nset grid\nplot ",
            name);
    for (size_t s = 0; s < count; s++) {
        nw_series_name(&output->html, group, &group->series[s], text, sizeof text);
        plain(text, name, sizeof name);
        fprintf(stream,
                "%s$d%zu using 1:2:3:4 with yerrorlines lw 2 dt %zu pt %zu lc rgb '#%s' title "
                "'%s'",
                s > 0 ? ", \\\n  " : "", s, s % 4 + 1, s + 4,
                colours[s % (sizeof colours / sizeof *colours)], name);
    }
    fputc('\n', stream);
}

static void put_wire(struct output *output)
{
    FILE *stream = output->html.stream;
    const struct nw_wire_curve *wire = output->html.page->wire;

    fputs("$d << EOD\n", stream);
    for (size_t i = 0; i < wire->count; i++)
        fprintf(stream, "%.6g %.6g %.6g\n", wire->points[i].busbw_bytes_per_s / 1e9,
                wire->points[i].step_ns / 1e9, wire->points[i].cost_per_billion_tokens);
    fprintf(stream,
            "EOD\nset terminal png size 960,540\nset logscale x\nset grid\n"
            "set xlabel 'bus bandwidth between nodes, GB/s'\nset ylabel 'time of a step, s'\n"
            "set ytics nomirror\nset y2label 'cost of 10^9 tokens' noenhanced\nset y2tics\n"
            "plot $d using 1:2 with lines lw 2 lc rgb '#0072b2' title 'step, nodes: %d', \\\n"
            "  $d using 1:3 axes x1y2 with lines lw 2 dt 2 lc rgb '#d55e00' title 'cost'\n",
            wire->nodes);
}

static nw_rc write_png(struct output *output, const char *name,
                       const struct nw_command_result *result)
{
    struct nw_atomic_file *file;
    char path[64];

    snprintf(path, sizeof path, "%.40s.png", name);
    NW_TRY(open_file(output, path, &file));
    fwrite(result->output, 1, result->output_length, output->html.stream);
    NW_TRY(nw_atomic_commit(file));
    output->written.png_count++;
    return NW_OK;
}

/* The script stays beside the picture: people change it. The picture comes on gnuplot's standard
 * output, so that no path stands in the script. */
static nw_rc run_gnuplot(struct output *output, const char *name)
{
    char script[1100];
    struct nw_command_result result;
    nw_rc rc;

    snprintf(script, sizeof script, "%s/%s.gp", output->directory, name);
    rc = nw_command_run(
        &(struct nw_command){.arguments = (const char *const[]){"gnuplot", script, NULL},
                             .limit_s = GNUPLOT_S,
                             .output_max = PNG_MAX},
        &result);
    if (rc == NW_ENODEV) {
        output->no_gnuplot = true;
        snprintf(output->written.note, sizeof output->written.note,
                 "no PNG: gnuplot is not installed (apt-get install gnuplot-nox)");
        nw_clear_error();
        return NW_OK;
    }
    NW_TRY(rc);
    if (result.exit_code == 0 && !result.output_cut && result.output_length > 0)
        rc = write_png(output, name, &result);
    else
        snprintf(output->written.note, sizeof output->written.note,
                 "gnuplot could not draw %.40s.gp: %.80s", name, result.errors);
    nw_command_free(&result);
    return rc;
}

/* A script for gnuplot, and its picture. `group` NULL: the decision's. */
static nw_rc plot(struct output *output, const char *name, const struct nw_chart_group *group)
{
    struct nw_atomic_file *file;
    char script[64];

    snprintf(script, sizeof script, "%.40s.gp", name);
    NW_TRY(open_file(output, script, &file));
    if (group != NULL)
        put_plot(output, group);
    else
        put_wire(output);
    NW_TRY(nw_atomic_commit(file));
    return output->no_gnuplot ? NW_OK : run_gnuplot(output, name);
}

/* ---- SVG ---------------------------------------------------------------------------------------
 */

typedef nw_rc drawing(struct nw_html *html, const void *what, const char *id);

static nw_rc draw(struct output *output, const char *name, drawing *function, const void *what)
{
    struct nw_atomic_file *file;
    char path[64];

    snprintf(path, sizeof path, "%.40s.svg", name);
    NW_TRY(open_file(output, path, &file));
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", output->html.stream);
    const nw_rc rc = function(&output->html, what, "c");

    if (rc != NW_OK) {
        nw_atomic_abandon(file);
        return rc;
    }
    output->written.svg_count++;
    return nw_atomic_commit(file);
}

static nw_rc draw_curves(struct nw_html *html, const void *what, const char *id)
{
    return nw_draw_curves(html, what, id);
}

static nw_rc draw_lanes(struct nw_html *html, const void *what, const char *id)
{
    return nw_draw_lanes(html, what, id);
}

static nw_rc draw_topology(struct nw_html *html, const void *what, const char *id)
{
    nw_draw_topology(html, what, id);
    return NW_OK;
}

static nw_rc draw_part(struct nw_html *html, const void *what, const char *id)
{
    (*(void (*const *)(struct nw_html *, const char *))what)(html, id);
    return NW_OK;
}

static nw_rc write_curves(struct output *output)
{
    const struct nw_series_list *series = output->html.series;

    for (size_t i = 0; i < series->chart_count && i < CHARTS_MAX; i++) {
        const struct nw_chart_group group = nw_chart_group_of(series, i);
        char name[64], collective[32];

        plain(group.series[0].records[0]->collective, collective, sizeof collective);
        snprintf(name, sizeof name, "busbw-%02zu-%.24s", i + 1, collective);
        NW_TRY(draw(output, name, draw_curves, &group));
        NW_TRY(plot(output, name, &group));
    }
    return NW_OK;
}

static nw_rc write_job(struct output *output)
{
    static const struct {
        const char *name;
        void (*draw)(struct nw_html *html, const char *id);
    } parts[] = {{"step", nw_draw_breakdown},
                 {"memory", nw_draw_memory},
                 {"decision-step", nw_draw_wire_step},
                 {"decision-cost", nw_draw_wire_cost}};
    const struct nw_page *page = output->html.page;
    const bool wire = page->wire != NULL && page->wire->count > 1;

    if (page->steps == NULL || page->steps->count == 0)
        return NW_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (i < 2 || wire)
            NW_TRY(draw(output, parts[i].name, draw_part, &parts[i].draw));
    return wire ? plot(output, "decision", NULL) : NW_OK;
}

static nw_rc write_machines(struct output *output)
{
    const struct nw_page *page = output->html.page;
    char name[64];

    for (size_t i = 0; page->lanes != NULL && i < page->results->run_count && i < CHARTS_MAX; i++) {
        snprintf(name, sizeof name, "ways-%02zu", i + 1);
        if (page->lanes[i].count > 0)
            NW_TRY(draw(output, name, draw_lanes, &page->lanes[i]));
    }
    for (size_t i = 0; i < page->topo_count && i < CHARTS_MAX; i++) {
        snprintf(name, sizeof name, "machine-%02zu", i + 1);
        NW_TRY(draw(output, name, draw_topology, page->topos[i]));
    }
    return NW_OK;
}

nw_rc nw_report_figures(const char *directory, const struct nw_page *page,
                        struct nw_figures_written *written_out)
{
    struct output output = {.html = {.page = page, .alone = true}, .directory = directory};
    struct nw_series_list series;
    nw_rc rc;

    if (strlen(directory) > 900)
        return nw_fail(NW_EUSAGE, "--figures: the name of the folder is too long");
    NW_TRY(nw_language_find(page->language, &output.html.language));
    NW_TRY(nw_make_directory(directory));
    NW_TRY(nw_series_of(page->results, &series));
    output.html.series = &series;
    rc = write_curves(&output);
    rc = rc != NW_OK ? rc : write_job(&output);
    rc = rc != NW_OK ? rc : write_machines(&output);
    nw_series_free(&series);
    if (rc == NW_OK)
        *written_out = output.written;
    return rc;
}
