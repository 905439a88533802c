#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "report/bench_text_parts.h"

/* ---- cases nic, loopback, rail, bisect, incast
 * --------------------------------------------------- From the first NIC to the second. */

static const struct {
    const char *case_name, *title;
} titles[] = {
    {"nic", "one NIC of each of two hosts at a time, all pairs of hosts at once"},
    {"loopback", "each NIC with itself: the card and its PCIe link, no cable"},
    {"rail", "the NICs of one rail of two hosts, one by one and all at once"},
    {"bisect", "half of the hosts to the other half, all at once"},
    {"incast", "all other hosts to one"},
};

static const char *title_of(const struct nw_record *record)
{
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (strcmp(titles[i].case_name, record->case_name) == 0)
            return titles[i].title;
    return "";
}

static void nic_header(const struct nw_bench_text *text)
{
    if (strcmp(text->series.lane, "verbs") != 0)
        nw_print(
            text->stream,
            "#\n# %s: over the run's communicator (lane %s), %s%s\n# data go from the ranks of "
            "the first host to "
            "those of the second; GB/s of one way, of all ranks together\n#\n",
            text->series.case_name, text->series.lane, title_of(&text->series),
            nw_bench_simulated(text));
    else
        nw_print(
            text->stream,
            "#\n# %s: RDMA (verbs), %s%s\n# data go from the first NIC to the second; a latency is "
            "half a round trip, of reads a whole one; GB/s of one way; %% of the ports' rate less "
            "headers\n#\n",
            text->series.case_name, title_of(&text->series), nw_bench_simulated(text));
    fprintf(text->stream,
            "#%-7s %-13s %-4s  %-34s %-34s  %9s %4s %5s  %9s  %6s  %8s  %5s  %8s  %6s\n", "",
            "what", "of", "from", "to", "size (B)", "QPs", "depth", "time (us)", "+/-(%)", "GB/s",
            "%", "Mmsg/s", "#wrong");
}

/* Unknown is 0. */
static const char *number(char text[32], int value)
{
    if (value > 0)
        snprintf(text, 32, "%d", value);
    else
        snprintf(text, 32, "N/A");
    return text;
}

static const char *place(char text[160], const char *host, const char *nic)
{
    if (host[0] == '\0' && nic[0] == '\0')
        nw_print_to(text, 160, "all others");
    else
        snprintf(text, 160, "%.20s%s%.72s", host, host[0] != '\0' ? " " : "", nic);
    return text;
}

static void nic_record(struct nw_bench_text *text, const struct nw_record *record)
{
    char from[160], to[160], qps[32], depth[32], time[32], interval[32], rate[32], share[32],
        messages[32], wrong[32];

    fprintf(text->stream,
            "%-8s %-13s %-4s  %-34s %-34s  %9" PRIu64 " %4s %5s  %9s  %6s  %8s  %5s  %8s  %6s\n",
            record->case_name, record->collective, record->memory,
            place(from, record->host_a, record->nic_a), place(to, record->host_b, record->nic_b),
            record->bytes, number(qps, record->qps), number(depth, record->depth),
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

#define LAYOUT(name)                                                                               \
    {                                                                                              \
        .case_name = (name), .header = nic_header, .record = nic_record, .footer = footer,         \
        .rows_at_once = true, .whole_case = true                                                   \
    }

const struct nw_bench_layout nw_bench_nic_layouts[] = {
    LAYOUT("nic"),    LAYOUT("loopback"), LAYOUT("rail"),
    LAYOUT("bisect"), LAYOUT("incast"),   {.case_name = NULL},
};
