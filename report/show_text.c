#include "report/show_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "base/words.h"
#include "report/show_grid.h"

struct cell {
    char text[320];
};

static const char *put_count(struct cell *cell, long long count)
{
    snprintf(cell->text, sizeof cell->text, "%lld", count);
    return cell->text;
}

/* ---- runs --------------------------------------------------------------------------------------
 */

static const char *hosts_of(struct cell *cell, const struct nw_context *context)
{
    size_t used = 0;

    if (context->hosts == NULL)
        return context->host_count > 0 ? put_count(cell, context->host_count) : "?";
    for (int i = 0; i < context->host_count; i++) {
        if (i == 3) {
            snprintf(cell->text + used, sizeof cell->text - used, " … (%d)", context->host_count);
            break;
        }
        used += (size_t)snprintf(cell->text + used, sizeof cell->text - used, "%s%.40s",
                                 i > 0 ? ", " : "", context->hosts[i].name);
    }
    return cell->text;
}

static const char *made_by(struct cell *cell, const struct nw_context *context)
{
    snprintf(cell->text, sizeof cell->text, "%s %s", context->tool, context->tool_version);
    return cell->text;
}

static const char *state_of(const struct nw_context *context)
{
    if (context->simulated)
        return context->complete ? "SIMULATED" : "SIMULATED, not ended";
    return context->complete ? "complete" : "not ended";
}

static void run_row(struct nw_grid *grid, size_t number, const struct nw_show_run *run)
{
    const struct nw_context *context = run->context;
    struct cell c[6];

    snprintf(c[3].text, sizeof c[3].text,
             run->shown_count < run->record_count ? "%zu of %zu" : "%zu", run->shown_count,
             run->record_count);
    nw_grid_row(
        grid,
        (const char *[]){put_count(&c[0], (long long)number), made_by(&c[1], context),
                         context->library, context->gpu_model,
                         context->rank_count > 0 ? put_count(&c[4], context->rank_count) : "?",
                         hosts_of(&c[2], context), context->started, c[3].text, state_of(context)});
}

nw_rc nw_show_runs(const struct nw_show_view *view, const struct nw_show_run *runs, size_t count)
{
    static const struct nw_column columns[] = {
        {"run", NW_RIGHT},  {"made by", NW_WRAP},  {"library", NW_WRAP},
        {"GPU", NW_WRAP},   {"ranks", NW_RIGHT},   {"hosts", NW_WRAP},
        {"began", NW_LEFT}, {"results", NW_RIGHT}, {"state", NW_LEFT}};
    struct nw_grid *grid;

    NW_TRY(nw_grid_open(columns, sizeof columns / sizeof columns[0], view->markdown, &grid));
    for (size_t i = 0; i < count && i < NW_SHOW_RUNS_MAX; i++)
        run_row(grid, i + 1, &runs[i]);
    NW_TRY(nw_grid_print(grid, view->stream));
    if (count > NW_SHOW_RUNS_MAX)
        nw_print(view->stream, "The first %d of %zu runs.\n", NW_SHOW_RUNS_MAX, count);
    return NW_OK;
}

/* ---- cells of records and groups ---------------------------------------------------------------
 */

/* "float sum, root 3" */
static const char *type_of(struct cell *cell, const struct nw_record *record)
{
    const bool reduces = strcmp(record->op, "none") != 0;
    char root[24] = "";

    if (record->root >= 0)
        snprintf(root, sizeof root, ", root %d", record->root);
    snprintf(cell->text, sizeof cell->text, "%s%s%s%s", record->dtype, reduces ? " " : "",
             reduces ? record->op : "", root);
    return cell->text;
}

static const char *lane_of(struct cell *cell, const struct nw_record *record)
{
    snprintf(cell->text, sizeof cell->text, "%s%s%s%s%s", record->lane,
             record->features[0] != '\0' ? " +" : "", record->features,
             record->memory[0] != '\0' ? ", memory: " : "", record->memory);
    return cell->text;
}

static const char *ranks_of(struct cell *cell, const struct nw_record *record)
{
    if (record->rank_count == 0)
        return "?";
    if (record->host_count == 0)
        return put_count(cell, record->rank_count);
    snprintf(cell->text, sizeof cell->text, "%d on %d", record->rank_count, record->host_count);
    return cell->text;
}

static const char *value_of(struct cell *cell, struct nw_value value, double unit)
{
    char middle[32], low[32], high[32];

    if (!isfinite(value.value))
        return "–";
    if (!isfinite(value.low) || !isfinite(value.high) || value.low == value.high)
        return nw_format_sig(cell->text, value.value / unit, 4);
    nw_format_sig(middle, value.value / unit, 4);
    nw_format_sig(low, value.low / unit, 4);
    nw_format_sig(high, value.high / unit, 4);
    if (strcmp(low, high) == 0)
        snprintf(cell->text, sizeof cell->text, "%s", middle);
    else
        snprintf(cell->text, sizeof cell->text, "%s [%s, %s]", middle, low, high);
    return cell->text;
}

static const char *time_of(struct cell *cell, double time_ns)
{
    return isfinite(time_ns) ? nw_format_ns(cell->text, time_ns) : "–";
}

static const char *const unit_names[] = {
    [NW_RATE_BUSBW] = "GB/s", [NW_RATE_ALGBW] = "GB/s", [NW_RATE_FLOP] = "TFLOP/s"};
static const double units[] = {[NW_RATE_BUSBW] = 1e9, [NW_RATE_ALGBW] = 1e9, [NW_RATE_FLOP] = 1e12};

/* ---- groups ------------------------------------------------------------------------------------
 */

static const char *sizes_of(struct cell *cell, const struct nw_group *group)
{
    char from[32], to[32];

    if (group->point_count == 0)
        return "no result";
    nw_format_bytes(from, group->points[0].bytes);
    if (group->point_count == 1)
        snprintf(cell->text, sizeof cell->text, "%s", from);
    else
        snprintf(cell->text, sizeof cell->text, "%s … %s", from,
                 nw_format_bytes(to, group->points[group->point_count - 1].bytes));
    return cell->text;
}

static void group_row(struct nw_grid *grid, const struct nw_group *group)
{
    struct cell c[9];

    snprintf(c[7].text, sizeof c[7].text, "%" PRId64, group->wrong);
    snprintf(c[8].text, sizeof c[8].text, group->failed_count > 0 ? "%zu, %zu failed" : "%zu",
             group->record_count, group->failed_count);
    nw_grid_row(grid,
                (const char *[]){
                    group->like.case_name, group->like.collective, lane_of(&c[1], &group->like),
                    type_of(&c[0], &group->like), ranks_of(&c[2], &group->like), c[8].text,
                    sizes_of(&c[3], group), time_of(&c[4], group->latency_ns.value),
                    value_of(&c[5], group->rate, units[group->kind]), unit_names[group->kind],
                    group->wrong < 0 ? "not checked" : c[7].text});
}

nw_rc nw_show_groups(const struct nw_show_view *view, const struct nw_groups *groups)
{
    static const struct nw_column columns[] = {
        {"case", NW_NAME},          {"collective", NW_NAME},
        {"lane", NW_WRAP},          {"type", NW_WRAP},
        {"ranks", NW_RIGHT},        {"results", NW_RIGHT},
        {"sizes", NW_LEFT},         {"at the smallest", NW_RIGHT},
        {"rate [range]", NW_RIGHT}, {"", NW_LEFT},
        {"wrong", NW_RIGHT}};
    struct nw_grid *grid;

    NW_TRY(nw_grid_open(columns, sizeof columns / sizeof columns[0], view->markdown, &grid));
    for (size_t i = 0; i < groups->count; i++)
        group_row(grid, &groups->items[i]);
    return nw_grid_print(grid, view->stream);
}

/* ---- records -----------------------------------------------------------------------------------
 */

/* "node1 to node2", "rank 3 to 5", "mlx5_0/1 to mlx5_1/1" */
static const char *ends_of(struct cell *cell, const struct nw_record *record)
{
    if (record->nic_a[0] != '\0')
        snprintf(cell->text, sizeof cell->text, "%s %s, %s %s", record->host_a, record->nic_a,
                 record->host_b, record->nic_b);
    else if (record->peer_a >= 0 && record->peer_b >= 0)
        snprintf(cell->text, sizeof cell->text, "%d, %d%s%.48s%s%.48s", record->peer_a,
                 record->peer_b, record->host_a[0] != '\0' ? " on " : "", record->host_a,
                 record->host_b[0] != '\0' ? ", " : "", record->host_b);
    else if (record->peer_a >= 0)
        return put_count(cell, record->peer_a);
    else if (record->host_a[0] != '\0')
        snprintf(cell->text, sizeof cell->text, "%s, %s", record->host_a, record->host_b);
    else
        return "";
    return cell->text;
}

static void record_row(struct nw_grid *grid, const struct nw_record *record)
{
    const bool is_flop = isfinite(record->flop_per_s);
    const struct nw_value time = {record->time_ns.median, record->time_ns.low,
                                  record->time_ns.high};
    struct cell c[9];

    nw_format_bytes(c[3].text, record->bytes);
    snprintf(c[7].text, sizeof c[7].text, "%" PRId64, record->wrong_elements);
    if (isfinite(record->busbw_bytes_per_s))
        nw_format_sig(c[6].text, record->busbw_bytes_per_s / 1e9, 4);
    else if (is_flop)
        snprintf(c[6].text, sizeof c[6].text, "%s T",
                 nw_format_sig(c[8].text, record->flop_per_s / 1e12, 4));
    else
        snprintf(c[6].text, sizeof c[6].text, "–");
    nw_grid_row(grid, (const char *[]){
                          record->case_name, record->collective, lane_of(&c[1], record),
                          type_of(&c[0], record), ranks_of(&c[2], record), ends_of(&c[8], record),
                          c[3].text, record->in_place ? "in" : "out",
                          record->rc != NW_OK ? nw_rc_text(record->rc) : value_of(&c[4], time, 1e3),
                          isfinite(record->algbw_bytes_per_s)
                              ? nw_format_sig(c[5].text, record->algbw_bytes_per_s / 1e9, 4)
                              : "–",
                          c[6].text, record->wrong_elements < 0 ? "–" : c[7].text});
}

nw_rc nw_show_records(const struct nw_show_view *view, const struct nw_record *records,
                      size_t count, size_t all)
{
    static const struct nw_column columns[] = {
        {"case", NW_NAME},        {"collective", NW_NAME},     {"lane", NW_WRAP},
        {"type", NW_WRAP},        {"ranks", NW_RIGHT},         {"between", NW_WRAP},
        {"size", NW_RIGHT},       {"place", NW_LEFT},          {"us [interval]", NW_RIGHT},
        {"algbw GB/s", NW_RIGHT}, {"busbw, FLOP/s", NW_RIGHT}, {"wrong", NW_RIGHT}};
    struct nw_grid *grid;

    NW_TRY(nw_grid_open(columns, sizeof columns / sizeof columns[0], view->markdown, &grid));
    for (size_t i = 0; i < count; i++)
        record_row(grid, &records[i]);
    NW_TRY(nw_grid_print(grid, view->stream));
    if (count < all)
        nw_print(view->stream, "%sThe first %zu of %zu results; --limit 0 shows all.\n",
                 view->markdown ? "\n" : "", count, all);
    return NW_OK;
}

/* ---- findings ----------------------------------------------------------------------------------
 */

static void put_finding(const struct nw_show_view *view, size_t run,
                        const struct nw_finding *finding)
{
    char first[64];

    snprintf(first, sizeof first, "run %zu, %s: ", run, nw_severity_name(finding->severity));
    nw_print_wrapped(view->stream, view->markdown ? "- " : first, "    ", finding->text);
}

nw_rc nw_show_findings(const struct nw_show_view *view, const struct nw_show_run *runs,
                       size_t count)
{
    size_t shown = 0, all = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < runs[i].context->findings.count; k++, all++)
            if (shown < NW_SHOW_FINDINGS_MAX) {
                fprintf(view->stream, "%s", shown == 0 ? "\n" : "");
                put_finding(view, i + 1, &runs[i].context->findings.items[k]);
                shown++;
            }
    if (shown < all)
        nw_print(view->stream, "The first %zu of %zu findings; --json has all.\n", shown, all);
    return NW_OK;
}
