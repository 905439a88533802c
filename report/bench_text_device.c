#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "base/words.h"
#include "topo/nvml_api.h"
#include "report/bench_text_parts.h"

/* 20 characters, as the other tables have for a host. */
#define HOST "%-20.20s"

static void footer(struct nw_bench_text *text)
{
    fprintf(text->stream, "#\n");
}

/* ---- cases h2d, d2h, d2d -----------------------------------------------------------------------
 */

static void copy_columns(const struct nw_bench_text *text)
{
    fprintf(text->stream, "#   %4s  %-20s %-10s %-3s %8s  %12s  %9s  %6s  %8s  %8s %6s  %6s\n",
            "rank", "host", "what", "by", "at once", "size (B)", "time (us)", "+/-(%)", "GB/s",
            "ceiling", "%", "#wrong");
}

static void bus_header(const struct nw_bench_text *text)
{
    const bool up = strcmp(text->series.case_name, "h2d") == 0;

    nw_print(
        text->stream,
        "#\n# %s: pinned host memory %s GPU; GB/s of one way, also where both ways are busy%s\n"
        "#\n",
        text->series.case_name, up ? "to" : nw_tr("from"), nw_bench_simulated(text));
    copy_columns(text);
}

static void memory_header(const struct nw_bench_text *text)
{
    nw_print(
        text->stream,
        "#\n# d2d: a GPU's own memory; GB/s copied (read and written: twice the traffic), read "
        "or written%s\n#\n",
        nw_bench_simulated(text));
    copy_columns(text);
}

static void copy_record(struct nw_bench_text *text, const struct nw_record *record)
{
    char time[32], interval[32], rate[32], ceiling[32], share[32], wrong[32];

    fprintf(text->stream,
            "%s %4d  " HOST " %-10s %-3s %8d  %12" PRIu64 "  %9s  %6s  %8s  %8s %6s  %6s\n",
            record->case_name, record->peer_a, record->host_a, record->collective, record->lane,
            record->rank_count, record->bytes, nw_bench_cell(time, record->time_ns.median / 1e3, 9),
            nw_bench_cell(interval, nw_bench_rel_percent(record), 6),
            nw_bench_cell(rate, record->algbw_bytes_per_s / 1e9, 8),
            nw_bench_cell(ceiling, record->ceiling_bytes_per_s / 1e9, 8),
            nw_bench_cell(share, 100 * record->algbw_bytes_per_s / record->ceiling_bytes_per_s, 5),
            nw_bench_wrong_cell(wrong, record));
}

/* ---- case p2p ----------------------------------------------------------------------------------
 * The records wait for the footer: a matrix a host and way of copying. */

static void p2p_header(const struct nw_bench_text *text)
{
    nw_print(text->stream, "#\n# p2p: one pair of GPUs after the other%s\n",
             nw_bench_simulated(text));
}

static void p2p_record(struct nw_bench_text *text, const struct nw_record *record)
{
    (void)text;
    (void)record;
}

struct matrix {
    const char *collective, *lane, *title;
};

static const struct matrix matrices[] = {
    {"write", "ce", "GB/s, the row's GPU writes into the column's by its copy engines"},
    {"read", "ce", "GB/s, the row's GPU reads from the column's by its copy engines"},
    {"copy_both", "ce", "GB/s each way, both write at once by their copy engines"},
    {"write", "sm", "GB/s, the row's GPU writes into the column's by a kernel"},
    {"read", "sm", "GB/s, the row's GPU reads from the column's by a kernel"},
    {"copy_both", "sm", "GB/s each way, both write at once by a kernel"},
    {"write", "staged", "GB/s, from the row's GPU to the column's through host memory"},
    {"latency", "ce", "us of 8 bytes, the row's GPU writes into the column's by its copy engines"},
    {"latency", "sm", "us of 8 bytes, the row's GPU writes into the column's by a kernel"},
};

static bool is_in(const struct nw_record *record, const struct matrix *matrix, const char *host)
{
    return strcmp(record->collective, matrix->collective) == 0 &&
           strcmp(record->lane, matrix->lane) == 0 && strcmp(record->host_a, host) == 0;
}

static const struct nw_record *find_pair(const struct nw_run *run, const struct matrix *matrix,
                                         const char *host, int a, int b)
{
    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (is_in(record, matrix, host) && record->peer_a == a && record->peer_b == b)
            return record;
    }
    return NULL; /* itself; or the other half of both ways at once, which is measured once */
}

static void print_pair(FILE *out, const struct matrix *matrix, const struct nw_record *record)
{
    const bool latency = strcmp(matrix->collective, "latency") == 0;
    char value[32];

    if (record == NULL)
        fprintf(out, "  %7s", "-");
    else
        fprintf(out, "  %7s",
                nw_bench_cell(
                    value, latency ? record->time_ns.median / 1e3 : record->algbw_bytes_per_s / 1e9,
                    7));
}

/* The host's ranks that are in the matrix, ascending. */
static int ranks_of(const struct nw_run *run, const struct matrix *matrix, const char *host,
                    int after)
{
    int next = -1;

    for (size_t i = 0; i < run->record_count; i++) {
        const int ranks[] = {run->records[i].peer_a, run->records[i].peer_b};

        for (int end = 0; end < 2 && is_in(&run->records[i], matrix, host); end++)
            if (ranks[end] > after && (next < 0 || ranks[end] < next))
                next = ranks[end];
    }
    return next;
}

static void print_matrix(const struct nw_bench_text *text, const struct matrix *matrix,
                         const char *host)
{
    const struct nw_run *run = &text->results.runs[0];
    FILE *out = text->stream;
    const int first = ranks_of(run, matrix, host, -1);

    if (first < 0)
        return;
    nw_print(out, "#\n# p2p %s %s on %s: %s%s\n#  rank", matrix->collective, matrix->lane, host,
             matrix->title, nw_bench_simulated(text));
    for (int b = first; b >= 0; b = ranks_of(run, matrix, host, b))
        fprintf(out, "  %7d", b);
    for (int a = first; a >= 0; a = ranks_of(run, matrix, host, a)) {
        fprintf(out, "\np2p %4d", a);
        for (int b = first; b >= 0; b = ranks_of(run, matrix, host, b))
            print_pair(out, matrix, find_pair(run, matrix, host, a, b));
    }
    fprintf(out, "\n");
}

static bool is_first_of_host(const struct nw_run *run, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(run->records[i].host_a, run->records[index].host_a) == 0)
            return false;
    return true;
}

static void p2p_footer(struct nw_bench_text *text)
{
    const struct nw_run *run = text->results.run_count > 0 ? &text->results.runs[0] : NULL;

    for (size_t i = 0; run != NULL && i < run->record_count; i++)
        for (size_t m = 0; m < sizeof matrices / sizeof *matrices && is_first_of_host(run, i); m++)
            print_matrix(text, &matrices[m], run->records[i].host_a);
    footer(text);
}

/* ---- case gemm ---------------------------------------------------------------------------------
 */

static void gemm_header(const struct nw_bench_text *text)
{
    fprintf(text->stream,
            "#\n# gemm: matrix products on all GPUs at once; clock, power, temperature and reasons "
            "to throttle: the worst seen under load%s\n#\n"
            "#    %4s  %-20s %-7s %-8s %16s  %9s  %8s  %6s  %11s  %9s  %4s  %6s  %s\n",
            nw_bench_simulated(text), "rank", "host", "by", "type", "m x n x k", "time (us)",
            "TFLOP/s", "+/-(%)", "clock (MHz)", "power (W)", "C", "#wrong", "slowed down by");
}

/* "1755/1980": of a limit. */
static const char *of_limit(char text[64], double value, double limit)
{
    if (!isfinite(value))
        return "N/A";
    if (isfinite(limit))
        snprintf(text, 64, "%.0f/%.0f", value, limit);
    else
        snprintf(text, 64, "%.0f", value);
    return text;
}

/* Idleness between two products and a clock that the user set slow nothing down. */
static const char *throttle_cell(char text[160], const struct nw_gpu_state *state)
{
    if (state->throttle < 0)
        return "N/A";
    return nw_throttle_text(text, (uint64_t)state->throttle & ~(uint64_t)NW_THROTTLE_IDLE);
}

/* Records of old files have no shape: square. */
static const char *shape_cell(char text[64], const struct nw_record *record)
{
    if (record->m > 0)
        snprintf(text, 64, "%llux%llux%llu", (unsigned long long)record->m,
                 (unsigned long long)record->n, (unsigned long long)record->k);
    else
        snprintf(text, 64, "%.0f", sqrt((double)record->count));
    return text;
}

static void gemm_record(struct nw_bench_text *text, const struct nw_record *record)
{
    const struct nw_gpu_state *state = &record->during;
    char time[32], rate[32], interval[32], clock[64], power[64], heat[32], wrong[32], why[160];
    char shape[64];

    fprintf(text->stream,
            "gemm %4d  " HOST " %-7s %-8s %16s  %9s  %8s  %6s  %11s  %9s  %4s  %6s  %s\n",
            record->peer_a, record->host_a, record->lane, record->dtype, shape_cell(shape, record),
            nw_bench_cell(time, record->time_ns.median / 1e3, 9),
            nw_bench_cell(rate, record->flop_per_s / 1e12, 8),
            nw_bench_cell(interval, nw_bench_rel_percent(record), 6),
            of_limit(clock, state->sm_clock_hz / 1e6, state->sm_max_clock_hz / 1e6),
            of_limit(power, state->power_w, state->power_limit_w),
            nw_bench_cell(heat, state->temperature_c, 3), nw_bench_wrong_cell(wrong, record),
            throttle_cell(why, state));
}

/* ---- case overlap ------------------------------------------------------------------------------
 */

static void overlap_header(const struct nw_bench_text *text)
{
    fprintf(text->stream,
            "#\n# overlap: a collective beside matrix products on the same GPUs%s\n#\n"
            "#       %-14s %-8s %-8s  %12s  %10s  %11s  %14s  %15s  %10s  %6s\n",
            nw_bench_simulated(text), "collective", "lane", "type", "size (B)", "alone (us)",
            "beside (us)", "alone TFLOP/s", "beside TFLOP/s", "hidden (%)", "#wrong");
}

static void overlap_record(struct nw_bench_text *text, const struct nw_record *record)
{
    char alone[32], beside[32], free_rate[32], rate[32], hidden[32], wrong[32];

    fprintf(
        text->stream, "overlap %-14s %-8s %-8s  %12" PRIu64 "  %10s  %11s  %14s  %15s  %10s  %6s\n",
        record->collective, record->lane, record->dtype, record->bytes,
        nw_bench_cell(alone, record->alone_ns / 1e3, 10),
        nw_bench_cell(beside, record->time_ns.median / 1e3, 11),
        nw_bench_cell(free_rate, record->alone_flop_per_s / 1e12, 14),
        nw_bench_cell(rate, record->flop_per_s / 1e12, 15),
        nw_bench_cell(hidden, 100 * record->hidden_share, 10), nw_bench_wrong_cell(wrong, record));
}

/* ---- the layouts -------------------------------------------------------------------------------
 */

const struct nw_bench_layout nw_bench_device_layouts[] = {
    {.case_name = "h2d",
     .header = bus_header,
     .record = copy_record,
     .footer = footer,
     .rows_at_once = true,
     .whole_case = true},
    {.case_name = "d2h",
     .header = bus_header,
     .record = copy_record,
     .footer = footer,
     .rows_at_once = true,
     .whole_case = true},
    {.case_name = "d2d",
     .header = memory_header,
     .record = copy_record,
     .footer = footer,
     .rows_at_once = true,
     .whole_case = true},
    {.case_name = "p2p",
     .header = p2p_header,
     .record = p2p_record,
     .footer = p2p_footer,
     .whole_case = true},
    {.case_name = "gemm",
     .header = gemm_header,
     .record = gemm_record,
     .footer = footer,
     .rows_at_once = true,
     .whole_case = true},
    {.case_name = "overlap",
     .header = overlap_header,
     .record = overlap_record,
     .footer = footer,
     .rows_at_once = true,
     .whole_case = true},
    {.case_name = NULL},
};
