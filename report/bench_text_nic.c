#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "report/bench_text_parts.h"

/* ---- case nic ----------------------------------------------------------------------------------
 * From the first NIC to the second. */

static void nic_header(const struct nw_bench_text *text)
{
    fprintf(
        text->stream,
        "#\n# nic: RDMA (verbs), data from the first NIC to the second; a latency is half a round "
        "trip, of reads a whole one; GB/s of one way, %% of the ports' rate less headers%s\n#\n"
        "#   %-13s %-4s  %-34s %-34s  %9s %4s %5s  %9s  %6s  %8s  %5s  %8s  %6s\n",
        nw_bench_simulated(text), "what", "of", "from", "to", "size (B)", "QPs", "depth",
        "time (us)", "+/-(%)", "GB/s", "%", "Mmsg/s", "#wrong");
}

static const char *place(char text[160], const char *host, const char *nic)
{
    snprintf(text, 160, "%.20s %.72s", host, nic);
    return text;
}

static void nic_record(struct nw_bench_text *text, const struct nw_record *record)
{
    char from[160], to[160], time[32], interval[32], rate[32], share[32], messages[32], wrong[32];

    fprintf(text->stream,
            "nic %-13s %-4s  %-34s %-34s  %9" PRIu64 " %4d %5d  %9s  %6s  %8s  %5s  %8s  %6s\n",
            record->collective, record->memory, place(from, record->host_a, record->nic_a),
            place(to, record->host_b, record->nic_b), record->bytes, record->qps, record->depth,
            nw_bench_cell(time, record->time_ns.median / 1e3, 9),
            nw_bench_cell(interval, nw_bench_rel_percent(record), 6),
            nw_bench_cell(rate, record->algbw_bytes_per_s / 1e9, 8),
            nw_bench_cell(share, 100 * record->algbw_bytes_per_s / record->ceiling_bytes_per_s, 5),
            nw_bench_cell(messages, record->messages_per_s / 1e6, 8),
            nw_bench_wrong_cell(wrong, record));
}

static void footer(struct nw_bench_text *text)
{
    fprintf(text->stream, "#\n");
}

const struct nw_bench_layout nw_bench_nic_layouts[] = {
    {.case_name = "nic",
     .header = nic_header,
     .record = nic_record,
     .footer = footer,
     .rows_at_once = true,
     .whole_case = true},
    {.case_name = NULL},
};
