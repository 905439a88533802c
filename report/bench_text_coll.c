#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "base/words.h"
#include "bench/fleet.h"
#include "report/bench_text_parts.h"

static const char *rank_cell(char text[32], const struct nw_record *record)
{
    if (record == NULL || record->slowest_rank < 0)
        return "N/A";
    snprintf(text, 32, "%d", record->slowest_rank);
    return text;
}

/* ---- case coll: nccl-tests' table -------------------------------------------------------------
 */

static void coll_header(const struct nw_bench_text *text)
{
    FILE *out = text->stream;

    fprintf(out, "#\n# %s", text->series.collective);
    if (strcmp(text->series.lane, "host") != 0 && strcmp(text->series.lane, "local") != 0)
        nw_print(out, ", lane %s", text->series.lane);
    if (text->series.features[0] != '\0')
        nw_print(out, ", features %s", text->series.features);
    fprintf(out, "%s\n#\n", nw_bench_simulated(text));
    fprintf(out, "# %73s%35s%31s%21s\n", "out-of-place", "in-place", "out-of-place", "in-place");
    fprintf(out,
            "#%11s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s   %6s  %8s  %5s   "
            "%6s  %8s  %5s\n",
            "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time",
            "algbw", "busbw", "#wrong", "+/-", "skew", "slow", "+/-", "skew", "slow");
    fprintf(out,
            "#%11s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s   %6s  %8s  %5s   "
            "%6s  %8s  %5s\n",
            "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)",
            "(GB/s)", "", "(%)", "(us)", "rank", "(%)", "(us)", "rank");
}

static void print_block(FILE *out, const struct nw_record *record)
{
    char time[32], algbw[32], busbw[32], wrong[32];

    fprintf(out, "  %7s  %6s  %6s  %5s",
            nw_bench_cell(time, record != NULL ? record->time_ns.median / 1e3 : NAN, 7),
            nw_bench_cell(algbw, record != NULL ? record->algbw_bytes_per_s / 1e9 : NAN, 6),
            nw_bench_cell(busbw, record != NULL ? record->busbw_bytes_per_s / 1e9 : NAN, 6),
            nw_bench_wrong_cell(wrong, record));
}

static void print_spread(FILE *out, const struct nw_record *record)
{
    char interval[32], skew[32], rank[32];

    fprintf(out, "   %6s  %8s  %5s", nw_bench_cell(interval, nw_bench_rel_percent(record), 5),
            nw_bench_cell(skew, record != NULL ? record->skew_ns / 1e3 : NAN, 8),
            rank_cell(rank, record));
}

/* One line; either half may be missing. */
static void coll_row(const struct nw_bench_text *text, const struct nw_record *out_of_place,
                     const struct nw_record *in_place)
{
    const struct nw_record *any = out_of_place != NULL ? out_of_place : in_place;
    FILE *out = text->stream;

    fprintf(out, "%12" PRIu64 "  %12" PRIu64 "  %8s  %6s  %6d", any->bytes, any->count, any->dtype,
            any->op, any->root);
    print_block(out, out_of_place);
    print_block(out, in_place);
    print_spread(out, out_of_place);
    print_spread(out, in_place);
    fprintf(out, "\n");
}

static void flush_held_coll(struct nw_bench_text *text)
{
    if (text->holds)
        coll_row(text, &text->held, NULL);
    text->holds = false;
}

/* The remedy for a falling curve: a comment, so that no parser takes it for another row. */
static void coll_pieces(struct nw_bench_text *text, const struct nw_record *record)
{
    char bytes[32], piece[32], time[32], algbw[32], busbw[32];

    nw_print(text->stream,
             "#   %s %s in pieces of %s: %s us, algbw %s GB/s, busbw %s GB/s, +/-%.1f %%\n",
             nw_format_bytes(bytes, record->bytes),
             record->in_place ? nw_tr("in place") : nw_tr("out of place"),
             nw_format_bytes(piece, record->piece_bytes),
             nw_bench_cell(time, record->time_ns.median / 1e3, 7),
             nw_bench_cell(algbw, record->algbw_bytes_per_s / 1e9, 6),
             nw_bench_cell(busbw, record->busbw_bytes_per_s / 1e9, 6),
             nw_bench_rel_percent(record));
}

static void coll_record(struct nw_bench_text *text, const struct nw_record *record)
{
    if (record->piece_bytes > 0 && text->plan->piece_bytes == 0) {
        flush_held_coll(text);
        coll_pieces(text, record);
        return;
    }
    if (!record->in_place) {
        const struct nw_coll *coll = nw_coll_find(record->collective);

        flush_held_coll(text);
        if (text->plan->places & NW_PLACE_IN && coll != NULL && !(coll->flags & NW_COLL_NO_INPLACE))
            nw_bench_hold(text, record);
        else
            coll_row(text, record, NULL);
        return;
    }
    if (text->holds && text->held.bytes == record->bytes) {
        coll_row(text, &text->held, record);
        text->holds = false;
    } else {
        flush_held_coll(text);
        coll_row(text, NULL, record);
    }
}

static void plateau_line(const struct nw_bench_text *text, int place)
{
    struct nw_plateau plateau;
    char rate[32], low[32], high[32], from[32], to[32];

    if (nw_plateau_of(&text->results.runs[0], "coll", text->series.collective, 0, 0, place,
                      &plateau) != NW_OK ||
        !isfinite(plateau.busbw_bytes_per_s))
        return;
    nw_print(text->stream, "# Plateau %s: busbw %s GB/s [%s, %s] from %s to %s (%s %s)\n",
             place == 1 ? nw_tr("in place") : nw_tr("out of place"),
             nw_format_gb_per_s(rate, plateau.busbw_bytes_per_s),
             nw_format_gb_per_s(low, plateau.low), nw_format_gb_per_s(high, plateau.high),
             nw_format_bytes(from, plateau.from_bytes), nw_format_bytes(to, plateau.to_bytes),
             text->series.dtype, text->series.op);
}

/* Ratios within 5 % are one. */
#define SAME_SHARE 0.05

/* The library's own estimate against the measured time, at the largest size and where it is
 * furthest off. */
static void expectation_line(const struct nw_bench_text *text)
{
    const struct nw_run *run = &text->results.runs[0];
    const struct nw_record *largest = NULL, *worst = NULL;
    char share[32], size[32];

    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (!(record->expected_ns > 0) || !(record->time_ns.median > 0) || record->piece_bytes > 0)
            continue;
        if (largest == NULL || record->bytes > largest->bytes)
            largest = record;
        if (worst == NULL || fabs(log(record->expected_ns / record->time_ns.median)) >
                                 fabs(log(worst->expected_ns / worst->time_ns.median)))
            worst = record;
    }
    if (largest == NULL)
        return;
    nw_print(text->stream, "# NCCL expects %s x of the measured time at %s",
             nw_format_sig(share, largest->expected_ns / largest->time_ns.median, 3),
             nw_format_bytes(size, largest->bytes));
    if (fabs(log(worst->expected_ns / worst->time_ns.median) -
             log(largest->expected_ns / largest->time_ns.median)) > SAME_SHARE)
        nw_print(text->stream, "; furthest off at %s: %s x", nw_format_bytes(size, worst->bytes),
                 nw_format_sig(share, worst->expected_ns / worst->time_ns.median, 3));
    fprintf(text->stream, "\n");
}

static void coll_footer(struct nw_bench_text *text)
{
    flush_held_coll(text);
    fprintf(text->stream, "#\n");
    if (text->results.run_count > 0) {
        plateau_line(text, 0);
        plateau_line(text, 1);
        expectation_line(text);
    }
    /* nccl-tests' last lines, for what parses them */
    if (text->checked > 0)
        fprintf(text->stream, "# Out of bounds values : %" PRId64 " %s\n", text->wrong,
                text->wrong > 0 ? "FAILED" : "OK");
    else
        fprintf(text->stream, "# Out of bounds values : N/A\n");
    if (text->busbw_count > 0)
        fprintf(text->stream, "# Avg bus bandwidth    : %g \n#\n",
                text->busbw_sum / (double)text->busbw_count / 1e9);
    else
        fprintf(text->stream, "# Avg bus bandwidth    : N/A\n#\n");
}

/* ---- case pairs -------------------------------------------------------------------------------
 */

static void pair_columns(const struct nw_bench_text *text)
{
    fprintf(text->stream, "#    %5s %5s  %-20s %-20s  %10s  %9s  %6s  %8s %6s\n", "rank", "rank",
            "host", "host", "size (B)", "time (us)", "+/-(%)", "GB/s", "#wrong");
}

static void pairs_header(const struct nw_bench_text *text)
{
    nw_print(
        text->stream,
        "#\n# pairs: both ways at once, one way is shown; disjoint pairs at the same time\n#\n");
    pair_columns(text);
}

static void retest_header(const struct nw_bench_text *text)
{
    nw_print(text->stream, "#\n# suspects again, two hosts at a time, the others idle: as before, "
                           "then one way at a time\n#\n");
    pair_columns(text);
}

static void pairs_record(struct nw_bench_text *text, const struct nw_record *record)
{
    char time[32], interval[32], rate[32], wrong[32];

    fprintf(text->stream, "pair %5d %5d  %-20s %-20s  %10" PRIu64 "  %9s  %6s  %8s %6s%s\n",
            record->peer_a, record->peer_b, record->host_a, record->host_b, record->bytes,
            nw_bench_cell(time, record->time_ns.median / 1e3, 9),
            nw_bench_cell(interval, nw_bench_rel_percent(record), 6),
            nw_bench_cell(rate, record->busbw_bytes_per_s / 1e9, 8),
            nw_bench_wrong_cell(wrong, record),
            strcmp(record->collective, NW_FLEET_ONE_WAY) == 0 ? nw_tr(" there and back") : "");
}

static void pairs_footer(struct nw_bench_text *text)
{
    fprintf(text->stream, "#\n");
}

/* ---- case scaling -----------------------------------------------------------------------------
 */

static void scaling_header(const struct nw_bench_text *text)
{
    nw_print(text->stream,
             "#\n# scaling of %s: groups of so many hosts side by side; the slowest group of each\n"
             "#\n",
             text->series.collective);
    fprintf(text->stream, "#       %12s  %5s %5s  %-24s  %9s %6s %8s  %10s  %8s %7s %8s\n",
            "size (B)", "hosts", "ranks", "slowest", "time (us)", "+/-(%)", "busbw", "efficiency",
            "wire", "ports", "of NICs");
}

static const char *group_text(const struct nw_record *record, char text[136])
{
    snprintf(text, 136, "%s%s%s", record->host_a[0] != '\0' ? record->host_a : nw_tr("all"),
             record->host_b[0] != '\0' ? " to " : "", record->host_b);
    return text;
}

/* What the busiest host's ports moved; without their counters nothing. */
static void wire_cells(const struct nw_bench_text *text, const struct nw_record *record)
{
    const double share = record->wire_bytes_per_s / record->nic_bytes_per_s;
    char rate[32], ports[32], percent[32];

    if (isfinite(record->wire_bytes_per_s)) {
        snprintf(ports, sizeof ports, "%d/%d", record->used_port_count, record->port_count);
        fprintf(text->stream, "  %8s %7s", nw_bench_cell(rate, record->wire_bytes_per_s / 1e9, 8),
                ports);
        if (isfinite(share))
            fprintf(text->stream, " %6s %%", nw_bench_cell(percent, 100 * share, 6));
    }
    fprintf(text->stream, "\n");
}

/* The fewest hosts come first at each size: theirs is what the others are held against. */
static bool is_base(const struct nw_record *record, const struct nw_record *base)
{
    return base == NULL || record->host_count <= base->host_count;
}

static void scaling_record(struct nw_bench_text *text, const struct nw_record *record)
{
    char group[136], time[32], interval[32], rate[32], percent[32];

    if (is_base(record, text->holds ? &text->held : NULL))
        nw_bench_hold(text, record);

    const double efficiency = record->busbw_bytes_per_s / text->held.busbw_bytes_per_s;

    fprintf(text->stream, "scaling %12" PRIu64 "  %5d %5d  %-24s  %9s %6s %8s", record->bytes,
            record->host_count, record->rank_count, group_text(record, group),
            nw_bench_cell(time, record->time_ns.median / 1e3, 9),
            nw_bench_cell(interval, nw_bench_rel_percent(record), 6),
            nw_bench_cell(rate, record->busbw_bytes_per_s / 1e9, 8));
    fprintf(text->stream, "  %8s %%", nw_bench_cell(percent, 100 * efficiency, 8));
    wire_cells(text, record);
}

/* The table turned: a line a size, a column for each number of hosts. */
static void scaling_footer(struct nw_bench_text *text)
{
    const struct nw_run *run = text->results.run_count > 0 ? &text->results.runs[0] : NULL;
    const struct nw_record *base = NULL;
    char percent[32];

    fprintf(text->stream, "#");
    for (size_t i = 0; run != NULL && run->records[0].bytes > 0 && i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (i > 0 && is_base(record, base))
            break;
        if (i == 0)
            fprintf(text->stream, " efficiency, %% of the bus bandwidth over %d host%s\n# %12s",
                    record->host_count, record->host_count == 1 ? "" : "s", "size (B)");
        else
            fprintf(text->stream, "  %3d hosts", record->host_count);
        base = i == 0 ? record : base;
    }
    base = NULL;
    for (size_t i = 0; run != NULL && i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (is_base(record, base)) {
            base = record;
            fprintf(text->stream, "\n# %12" PRIu64, record->bytes);
        } else {
            fprintf(text->stream, "  %9s",
                    nw_bench_cell(percent,
                                  100 * record->busbw_bytes_per_s / base->busbw_bytes_per_s, 9));
        }
    }
    fprintf(text->stream, "\n#\n");
}

/* ---- case tcp ---------------------------------------------------------------------------------
 */

static void tcp_header(const struct nw_bench_text *text)
{
    nw_print(text->stream, "#\n# tcp: sockets between hosts, one way%s\n#\n",
             nw_bench_simulated(text));
    fprintf(text->stream, "#   %-20s %-20s  %7s  %10s  %9s  %6s  %8s %8s %6s\n", "from", "to",
            "streams", "size (B)", "time (us)", "+/-(%)", "GB/s", "Gb/s", "#wrong");
}

static void tcp_record(struct nw_bench_text *text, const struct nw_record *record)
{
    const bool rate = strcmp(record->collective, "latency") != 0;
    const double bytes_per_s = rate ? record->algbw_bytes_per_s : NAN;
    char time[32], interval[32], bytes[32], bits[32], wrong[32];

    fprintf(text->stream, "tcp %-20s %-20s  %7d  %10" PRIu64 "  %9s  %6s  %8s %8s %6s\n",
            record->host_a, record->host_b, record->stream_count, record->bytes,
            nw_bench_cell(time, record->time_ns.median / 1e3, 9),
            nw_bench_cell(interval, nw_bench_rel_percent(record), 6),
            rate ? nw_bench_cell(bytes, bytes_per_s / 1e9, 8) : "-",
            rate ? nw_bench_cell(bits, bytes_per_s * 8 / 1e9, 8) : "-",
            nw_bench_wrong_cell(wrong, record));
}

/* ---- the layouts ------------------------------------------------------------------------------
 */

const struct nw_bench_layout nw_bench_coll_layouts[] = {
    {.case_name = "coll", .header = coll_header, .record = coll_record, .footer = coll_footer},
    {.case_name = "pairs", .header = pairs_header, .record = pairs_record, .footer = pairs_footer},
    {.case_name = "retest",
     .header = retest_header,
     .record = pairs_record,
     .footer = pairs_footer},
    {.case_name = "scaling",
     .header = scaling_header,
     .record = scaling_record,
     .footer = scaling_footer},
    {.case_name = "tcp",
     .header = tcp_header,
     .record = tcp_record,
     .footer = pairs_footer,
     .rows_at_once = true,
     .whole_case = true},
    {.case_name = NULL},
};
