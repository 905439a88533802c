#include "report/show_plot.h"

#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"

enum { HEIGHT = 20, LABEL_WIDTH = 9, LEAST_WIDTH = 40, MOST_WIDTH = 200 };
/* Braille: two dots across and four down a cell, bits as Unicode counts them from U+2800. */
enum { DOTS_ACROSS = 2, DOTS_DOWN = 4 };

struct axis {
    double low, high; /* logarithms */
};

struct canvas {
    int columns; /* cells across, HEIGHT down */
    unsigned char *dots;
    char *marks;   /* a letter, or 0 */
    char *colours; /* curve that drew there last, from 1 */
    struct axis x, y;
};

static double value_at(const struct nw_group_point *point, nw_plot_of what)
{
    return what == NW_PLOT_RATE ? point->rate.value : point->time_ns.value;
}

static bool is_drawn(const struct nw_group_point *point, nw_plot_of what)
{
    return point->bytes > 0 && value_at(point, what) > 0 && isfinite(value_at(point, what));
}

static bool has_curve(const struct nw_group *group, nw_plot_of what)
{
    size_t drawn = 0;

    for (size_t i = 0; i < group->point_count; i++)
        drawn += is_drawn(&group->points[i], what);
    return drawn >= 2;
}

/* ---- drawing -----------------------------------------------------------------------------------
 */

static int across(const struct canvas *canvas, double log_bytes)
{
    const double share = (log_bytes - canvas->x.low) / (canvas->x.high - canvas->x.low);

    return (int)lround(share * (canvas->columns * DOTS_ACROSS - 1));
}

static int down(const struct canvas *canvas, double log_value)
{
    const double share = (log_value - canvas->y.low) / (canvas->y.high - canvas->y.low);

    return (int)lround((1 - share) * (HEIGHT * DOTS_DOWN - 1));
}

static void put_dot(struct canvas *canvas, int x, int y, int curve)
{
    static const unsigned char bits[DOTS_DOWN][DOTS_ACROSS] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const int cell = y / DOTS_DOWN * canvas->columns + x / DOTS_ACROSS;

    canvas->dots[cell] |= bits[y % DOTS_DOWN][x % DOTS_ACROSS];
    canvas->colours[cell] = (char)(curve + 1);
}

static void put_line(struct canvas *canvas, int x0, int y0, int x1, int y1, int curve)
{
    const int steps = abs(x1 - x0) > abs(y1 - y0) ? abs(x1 - x0) : abs(y1 - y0);

    for (int i = 0; i <= steps; i++) {
        const double share = steps > 0 ? (double)i / steps : 0;

        put_dot(canvas, (int)lround(x0 + share * (x1 - x0)), (int)lround(y0 + share * (y1 - y0)),
                curve);
    }
}

static void draw(struct canvas *canvas, const struct nw_group *group, nw_plot_of what, int curve)
{
    int x0 = -1, y0 = -1;

    for (size_t i = 0; i < group->point_count; i++) {
        if (!is_drawn(&group->points[i], what))
            continue;
        const int x = across(canvas, log((double)group->points[i].bytes));
        const int y = down(canvas, log(value_at(&group->points[i], what)));

        if (x0 >= 0)
            put_line(canvas, x0, y0, x, y, curve);
        canvas->marks[y / DOTS_DOWN * canvas->columns + x / DOTS_ACROSS] = (char)('A' + curve);
        canvas->colours[y / DOTS_DOWN * canvas->columns + x / DOTS_ACROSS] = (char)(curve + 1);
        x0 = x;
        y0 = y;
    }
}

/* ---- axes --------------------------------------------------------------------------------------
 */

static void widen(struct axis *axis, double value)
{
    axis->low = fmin(axis->low, value);
    axis->high = fmax(axis->high, value);
}

static void find_axes(struct canvas *canvas, const struct nw_group *const *curves, size_t count,
                      nw_plot_of what)
{
    canvas->x = canvas->y = (struct axis){INFINITY, -INFINITY};
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < curves[i]->point_count; k++)
            if (is_drawn(&curves[i]->points[k], what)) {
                widen(&canvas->x, log((double)curves[i]->points[k].bytes));
                widen(&canvas->y, log(value_at(&curves[i]->points[k], what)));
            }
    const double least = log(1.1); /* a flat curve lies in the middle */

    if (canvas->y.high - canvas->y.low < least) {
        canvas->y.low -= least / 2;
        canvas->y.high += least / 2;
    }
}

/* The round value (1, 2 or 5 times a power of ten) that lies in this line; NAN: none. `unit` of
 * the labels. */
static double tick_of(const struct canvas *canvas, int line, double unit)
{
    static const double leads[] = {1, 2, 5};
    const double step = (canvas->y.high - canvas->y.low) / (HEIGHT * DOTS_DOWN - 1);
    const double high = canvas->y.high - step * (line * DOTS_DOWN - 0.5);
    const double low = high - step * DOTS_DOWN;

    for (int power = -9; power <= 9; power++)
        for (size_t i = 0; i < sizeof leads / sizeof leads[0]; i++) {
            const double value = leads[i] * pow(10, power);

            if (log(value * unit) >= low && log(value * unit) < high)
                return value;
        }
    return NAN;
}

static void put_braille(FILE *stream, unsigned char dots)
{
    fprintf(stream, "\xE2%c%c", 0xA0 + (dots >> 6), 0x80 + (dots & 0x3F));
}

static void put_cell(FILE *stream, const struct canvas *canvas, int cell, bool utf8, bool colour)
{
    const int shade = canvas->colours[cell];

    if (colour && shade > 0)
        fprintf(stream, "\033[%dm", 30 + 1 + (shade - 1) % 6);
    if (canvas->marks[cell] != 0)
        fputc(canvas->marks[cell], stream);
    else if (canvas->dots[cell] == 0)
        fputc(' ', stream);
    else if (utf8)
        put_braille(stream, canvas->dots[cell]);
    else
        fputc('.', stream);
    if (colour && shade > 0)
        fputs("\033[0m", stream);
}

static void put_lines(FILE *stream, const struct canvas *canvas, double unit)
{
    const bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    const bool colour = nw_colour_wanted(stream);
    char label[32];

    for (int line = 0; line < HEIGHT; line++) {
        const double tick = tick_of(canvas, line, unit);
        int last = canvas->columns - 1;

        while (last >= 0 && canvas->dots[line * canvas->columns + last] == 0 &&
               canvas->marks[line * canvas->columns + last] == 0)
            last--;
        fprintf(stream, "%*s %s%s", LABEL_WIDTH,
                isfinite(tick) ? nw_format_sig(label, tick, 3) : "", utf8 ? "│" : "|",
                last >= 0 ? "" : "\n");
        for (int column = 0; column <= last; column++)
            put_cell(stream, canvas, line * canvas->columns + column, utf8, colour);
        if (last >= 0)
            fputc('\n', stream);
    }
}

/* Sizes below the picture, a power of two each, as many as there is room for. */
static void put_sizes(FILE *stream, const struct canvas *canvas)
{
    char *line = malloc((size_t)canvas->columns + 64);
    int end = -2;

    if (line == NULL)
        return;
    memset(line, ' ', (size_t)canvas->columns + 63);
    for (int power = 0; power < 63; power++) {
        const double log_bytes = power * M_LN2;
        char label[32];

        if (log_bytes < canvas->x.low - 1e-9 || log_bytes > canvas->x.high + 1e-9)
            continue;
        const int at = across(canvas, log_bytes) / DOTS_ACROSS;

        nw_format_bytes(label, UINT64_C(1) << power);
        if (at < end + 3)
            continue;
        memcpy(line + at, label, strlen(label));
        end = at + (int)strlen(label);
    }
    line[end > 0 ? end : 0] = '\0';
    fprintf(stream, "%*s %s\n", LABEL_WIDTH + 1, "", line);
    free(line);
}

static void put_legend(FILE *stream, const struct nw_group *const *curves, size_t count,
                       size_t left_out)
{
    for (size_t i = 0; i < count; i++) {
        const struct nw_record *like = &curves[i]->like;

        fprintf(stream, "%*s %c  %s %s %s %s, %d on %d%s%s%s%s\n", LABEL_WIDTH, "",
                (char)('A' + (int)i), like->case_name, like->collective, like->dtype, like->lane,
                like->rank_count, like->host_count, like->features[0] != '\0' ? ", " : "",
                like->features, like->memory[0] != '\0' ? ", " : "", like->memory);
    }
    if (left_out > 0)
        nw_print(stream, "%*s Not drawn: %zu more; choose with --collectives, --lanes, --cases …\n",
                 LABEL_WIDTH, "", left_out);
}

static nw_rc draw_all(FILE *stream, const struct nw_group *const *curves, size_t count,
                      size_t left_out, nw_plot_of what, int width)
{
    const int columns = (width < LEAST_WIDTH  ? LEAST_WIDTH
                         : width > MOST_WIDTH ? MOST_WIDTH
                                              : width) -
                        LABEL_WIDTH - 3;
    const size_t cells = (size_t)columns * HEIGHT;
    struct canvas canvas = {.columns = columns,
                            .dots = calloc(cells, 1),
                            .marks = calloc(cells, 1),
                            .colours = calloc(cells, 1)};
    const bool flop = curves[0]->kind == NW_RATE_FLOP;
    nw_rc rc = NW_OK;

    if (canvas.dots == NULL || canvas.marks == NULL || canvas.colours == NULL) {
        rc = nw_fail(NW_ENOMEM, "no memory for a picture");
    } else {
        find_axes(&canvas, curves, count, what);
        for (size_t i = count; i-- > 0;) /* the first on top */
            draw(&canvas, curves[i], what, (int)i);
        fprintf(stream, "%*s\n", LABEL_WIDTH,
                what == NW_PLOT_TIME ? "us"
                : flop               ? "TFLOP/s"
                                     : "GB/s");
        put_lines(stream, &canvas, what == NW_PLOT_TIME ? 1e3 : flop ? 1e12 : 1e9);
        put_sizes(stream, &canvas);
        put_legend(stream, curves, count, left_out);
    }
    free(canvas.dots);
    free(canvas.marks);
    free(canvas.colours);
    return rc;
}

nw_rc nw_show_plot(FILE *stream, const struct nw_groups *groups, nw_plot_of what, int width)
{
    const struct nw_group *curves[NW_PLOT_CURVES_MAX];
    size_t count = 0, left_out = 0;

    for (size_t i = 0; i < groups->count; i++) {
        const struct nw_group *group = &groups->items[i];

        if (!has_curve(group, what))
            continue;
        if (count == NW_PLOT_CURVES_MAX ||
            (count > 0 && (group->kind == NW_RATE_FLOP) != (curves[0]->kind == NW_RATE_FLOP)))
            left_out++;
        else
            curves[count++] = group;
    }
    if (count == 0)
        return nw_fail(NW_ENODEV, "nothing to draw: no collective or copy has results at two sizes "
                                  "or more");
    return draw_all(stream, curves, count, left_out, what, width);
}
