#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "results/nccltests.h"

static nw_rc add(const struct nw_nt_judge *judge, nw_severity severity, const char *code,
                 size_t line, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

static nw_rc add(const struct nw_nt_judge *judge, nw_severity severity, const char *code,
                 size_t line, const char *remedy, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const nw_rc rc = nw_imp_add_finding(&judge->out->context.findings, judge->path, severity, code,
                                        line, remedy, format, arguments);
    va_end(arguments);
    return rc;
}

/* --- findings: is the run whole and readable --- */

static nw_rc find_breaks(const struct nw_nt_judge *judge)
{
    const struct nw_nt_run *run = judge->run;

    if (run->failure.count > 0)
        NW_TRY(add(judge, NW_FINDING_FAIL, "run-failed", run->failure.line,
                   run->warning.count > 0
                       ? NULL
                       : "run it again with NCCL_DEBUG=INFO and look at the first WARN line",
                   "the run failed (%zu such lines, the first: \"%s\")", run->failure.count,
                   run->failure.text));
    if (run->warning.count > 0 && (run->failure.count > 0 || run->row_count == 0))
        NW_TRY(add(judge, NW_FINDING_WARN, "nccl-warning", run->warning.line, NULL,
                   "NCCL's first warning before that: \"%s\"", run->warning.text));
    if (run->exit_status.count > 0)
        NW_TRY(add(judge, NW_FINDING_WARN, "exit-status", run->exit_status.line, NULL,
                   "the launcher reports that processes failed (%zu lines, the first: \"%s\")",
                   run->exit_status.count, run->exit_status.text));
    if (run->row_count == 0)
        NW_TRY(add(judge, NW_FINDING_FAIL, "no-result", run->first_line, NULL,
                   "the run that begins here has no result: %s",
                   run->layout.known ? "no row follows the table's header"
                                     : "the log ends, or the next run begins, before its table"));
    if (run->unreadable.count > 0)
        NW_TRY(add(judge, NW_FINDING_WARN, "unreadable-row", run->unreadable.line,
                   "send the output of each rank to its own file, or leave NCCL_DEBUG out",
                   "rows that cannot be read, and are left out: %zu; the first because %s",
                   run->unreadable.count, run->unreadable.text));
    if (run->torn)
        NW_TRY(add(judge, NW_FINDING_WARN, "torn-line", 0, NULL,
                   "the last line has no end: its last number may be cut and is not used"));
    if (run->row_count > 0 && !run->ended)
        NW_TRY(add(judge, NW_FINDING_WARN, "run-incomplete", run->rows[run->row_count - 1].line,
                   NULL,
                   "the log does not reach the end of the run (no line \"Avg bus bandwidth\"); "
                   "larger sizes may be missing"));
    return NW_OK;
}

static uint64_t planned_sizes(const struct nw_nt_run *run)
{
    uint64_t count = 0;

    if (!run->options_seen || run->step == 0 || run->max_bytes < run->min_bytes)
        return 0;
    if (!run->step_is_factor)
        return (run->max_bytes - run->min_bytes) / run->step + 1;
    for (uint64_t bytes = run->min_bytes > 0 ? run->min_bytes : 1;
         bytes <= run->max_bytes && run->step > 1; bytes *= run->step) {
        count++;
        if (bytes > UINT64_MAX / run->step)
            break;
    }
    return count;
}

static nw_rc find_gaps(const struct nw_nt_judge *judge)
{
    const struct nw_nt_run *run = judge->run;
    const uint64_t planned = planned_sizes(run);
    char low[32], high[32];

    if (run->elided.count > 0)
        NW_TRY(add(judge, NW_FINDING_WARN, "rows-elided", run->elided.line, "import the whole log",
                   "rows were cut out of the log here; the curve has a gap"));
    else if (run->row_count > 0 && run->row_count < planned)
        NW_TRY(add(judge, NW_FINDING_WARN, "rows-missing", run->rows[0].line,
                   "import the whole log", "%zu of %llu sizes from %s to %s are in the log",
                   run->row_count, (unsigned long long)planned,
                   nw_format_bytes(low, run->min_bytes), nw_format_bytes(high, run->max_bytes)));
    return NW_OK;
}

/* --- findings: who took part --- */

static nw_rc find_ranks(const struct nw_nt_judge *judge)
{
    const struct nw_nt_run *run = judge->run;
    const struct nw_nt_reading *reading = &judge->reading;
    const bool list_ends = run->ranks_closed || run->rank_lines == 0;

    if (!list_ends)
        NW_TRY(add(judge, NW_FINDING_WARN, "ranks-cut", run->first_rank_line, NULL,
                   "the log ends within the list of ranks; their number is not known"));
    else if (run->rank_lines > 0 && run->rank_lines != (size_t)run->highest_rank + 1)
        NW_TRY(add(judge, NW_FINDING_WARN, "ranks-elided", run->first_rank_line, NULL,
                   "the list of ranks is not whole: %zu lines, the highest rank is %d, so there "
                   "were %d; how many hosts is not known (at least %d)",
                   run->rank_lines, run->highest_rank, run->highest_rank + 1, run->hosts.count));
    if (reading->ranks_from != NULL)
        NW_TRY(add(judge, NW_FINDING_INFO, "ranks-derived", 0, NULL,
                   "the log lists no ranks; %d follows from %s", reading->rank_count,
                   reading->ranks_from));
    if (reading->rank_count == 0 && run->row_count > 0 && reading->ranks_low > 0)
        NW_TRY(add(judge, NW_FINDING_WARN, "ranks-unknown", 0, "import the log from its first line",
                   reading->ranks_high > 0 ? "the log lists no ranks; its columns allow %d to %d"
                                           : "the log lists no ranks; its columns allow %d or more",
                   reading->ranks_low, reading->ranks_high));
    else if (reading->rank_count == 0 && run->row_count > 0)
        NW_TRY(add(judge, NW_FINDING_WARN, "ranks-unknown", 0, "import the log from its first line",
                   "the log lists no ranks, and its columns do not tell how many"));
    if (run->group_count > 1)
        NW_TRY(add(judge, NW_FINDING_WARN, "split-groups", run->first_rank_line, NULL,
                   "NCCL_TESTS_SPLIT made %d groups of about %d ranks; the table has the mean of "
                   "all groups, a slow one does not show",
                   run->group_count, run->first_group_size));
    if (run->gpus_differ)
        NW_TRY(add(judge, NW_FINDING_WARN, "mixed-gpus", run->first_rank_line, NULL,
                   "the ranks have different GPUs; the slowest one sets the pace"));
    return NW_OK;
}

static nw_rc find_collective(const struct nw_nt_judge *judge, const char *asked)
{
    const struct nw_nt_run *run = judge->run;
    const struct nw_nt_reading *reading = &judge->reading;

    if (run->row_count == 0)
        return NW_OK;
    if (asked != NULL && strcmp(asked, reading->collective) != 0)
        NW_TRY(add(judge, NW_FINDING_WARN, "collective-conflict", run->facts.collective_line, NULL,
                   "the log says %s, not %s as asked for; the log is right", reading->collective,
                   asked));
    if (strcmp(reading->collective, "unknown") == 0)
        return add(judge, NW_FINDING_WARN, "collective-unknown", run->rows[0].line,
                   "say which: --collective all_reduce",
                   "the log does not name its collective (no program name, no title line), and its "
                   "columns allow more than one");
    if (reading->collective_from != NULL)
        return add(judge, NW_FINDING_INFO, "collective-derived", run->rows[0].line, NULL,
                   "the log does not name its collective; %s follows from %s", reading->collective,
                   reading->collective_from);
    return NW_OK;
}

/* --- findings: what is misleading --- */

static const char wrong_remedy[] =
    "test the GPUs one by one, then the links; do not use these rates";

static nw_rc find_data(const struct nw_nt_judge *judge)
{
    const struct nw_nt_run *run = judge->run;
    char tools_count[64] = "";
    bool checked = false;

    if (run->out_of_bounds > 0)
        snprintf(tools_count, sizeof tools_count, " (the tool itself reports %lld, FAILED)",
                 (long long)run->out_of_bounds);
    for (size_t i = 0; i < judge->out->record_count && !checked; i++)
        checked = judge->out->records[i].wrong_elements >= 0;
    if (judge->wrong_rows > 0 && run->layout.relative_error)
        NW_TRY(add(judge, NW_FINDING_FAIL, "wrong-data", judge->wrong_line, wrong_remedy,
                   "data wrong by more than rounding explains in %zu of %zu results",
                   judge->wrong_rows, judge->out->record_count));
    else if (judge->wrong_rows > 0)
        NW_TRY(add(judge, NW_FINDING_FAIL, "wrong-data", judge->wrong_line, wrong_remedy,
                   "wrong data in %zu of %zu results, %.0f elements in all%s", judge->wrong_rows,
                   judge->out->record_count, judge->wrong_elements, tools_count));
    else if (run->out_of_bounds > 0)
        NW_TRY(add(judge, NW_FINDING_FAIL, "wrong-data", run->out_of_bounds_line, wrong_remedy,
                   "the tool counts %lld wrong results, but no row shows them",
                   (long long)run->out_of_bounds));
    if (run->row_count > 0 && !checked)
        NW_TRY(add(judge, NW_FINDING_INFO, "not-checked", run->rows[0].line, "run it with -c 1",
                   "the data was not checked"));
    if (judge->rounding_rows > 0)
        NW_TRY(add(judge, NW_FINDING_INFO, "rounding", run->rows[0].line, NULL,
                   "the column \"error\" is the largest relative error, up to %.0e here: rounding, "
                   "no wrong data",
                   judge->rounding_most));
    if (judge->unordered_rows > 0)
        NW_TRY(add(judge, NW_FINDING_INFO, "in-place-unchecked", judge->unordered_line, NULL,
                   "an in-place %s has no right answer to compare with: its error is expected",
                   judge->reading.collective));
    return NW_OK;
}

static nw_rc find_meaningless(const struct nw_nt_judge *judge)
{
    const struct nw_nt_run *run = judge->run;
    char average[32];
    size_t empty = 0;

    if (judge->reading.rank_count == 1 && run->row_count > 0)
        NW_TRY(add(judge, NW_FINDING_WARN, "one-rank", run->rows[0].line,
                   "start one rank per GPU with a binary built with MPI=1, or use -g",
                   "one rank moves nothing over any wire: bus bandwidth 0 is no measurement, and "
                   "the times are those of launching a kernel"));
    for (size_t i = 0; i < run->row_count; i++)
        empty += run->rows[i].bytes == 0;
    if (empty > 0)
        NW_TRY(add(judge, NW_FINDING_INFO, "size-zero", run->rows[0].line, NULL,
                   "rows with size 0 (too small to give each rank an element), no transfer: %zu",
                   empty));
    if (!isnan(run->average.value) && run->row_count > 1)
        NW_TRY(add(judge, NW_FINDING_INFO, "average-unused", run->average_line, NULL,
                   "the printed average of %s GB/s mixes %zu sizes; it is kept but never used",
                   nw_format_gb_per_s(average, run->average.value), run->row_count));
    if (run->layout.cpu_time)
        NW_TRY(add(judge, NW_FINDING_WARN, "cpu-time", run->first_line, "run it without -C",
                   "the times are CPU times, not those of the transfer"));
    if (judge->reading.disagree_count > 0)
        NW_TRY(add(judge, NW_FINDING_WARN, "columns-disagree", judge->reading.disagree_line,
                   "do not use these rows: a log that nccl-tests wrote does not contradict itself",
                   "rows whose size, time, algbw and busbw contradict each other by more than "
                   "rounding: %zu",
                   judge->reading.disagree_count));
    return NW_OK;
}

/* A time more than half above that of the next larger size: jitter, or the first call's start-up.
 */
static nw_rc find_spikes(const struct nw_nt_judge *judge)
{
    const struct nw_nt_run *run = judge->run;
    size_t count = 0, line = 0;

    for (size_t i = 0; i + 1 < run->row_count; i++) {
        const struct nw_nt_row *row = &run->rows[i], *next = &run->rows[i + 1];
        bool spike = false;

        if (next->bytes <= row->bytes || strcmp(row->dtype, next->dtype) != 0 ||
            strcmp(row->op, next->op) != 0)
            continue;
        for (int place = 0; place < 2; place++)
            spike =
                spike || row->place[place].time_ns.value > 1.5 * next->place[place].time_ns.value;
        if (spike && row->place[1].present == next->place[1].present && count++ == 0)
            line = row->line;
    }
    if (count == 0)
        return NW_OK;
    return add(
        judge, NW_FINDING_WARN, "time-spike", line,
        "measure again with more iterations; nodeworth bench gives the interval",
        "sizes that took over half as long again as the next larger size: %zu, the first here; "
        "jitter or start-up, not the wire",
        count);
}

static size_t line_of_size(const struct nw_nt_run *run, uint64_t bytes)
{
    for (size_t i = 0; i < run->row_count; i++)
        if (run->rows[i].bytes == bytes)
            return run->rows[i].line;
    return 0;
}

static nw_rc find_curve(const struct nw_nt_judge *judge)
{
    const struct nw_nt_run *run = judge->run;
    struct nw_plateau plateau;
    char peak[32], peak_size[32], last[32], last_size[32];

    if (nw_plateau_of(judge->out, "coll", judge->reading.collective, 0, 0, -1, &plateau) != NW_OK) {
        nw_clear_error();
        return NW_OK;
    }
    nw_format_gb_per_s(last, plateau.busbw_bytes_per_s);
    nw_format_bytes(last_size, plateau.to_bytes);
    if (plateau.falls)
        return add(judge, NW_FINDING_WARN, "curve-falls", line_of_size(run, plateau.to_bytes),
                   "find out why large messages are slow (congestion, a retraining link, memory "
                   "registration); until then move pieces of the best size",
                   "bus bandwidth falls with size: %s GB/s at %s, %s at %s; an average hides it",
                   nw_format_gb_per_s(peak, plateau.peak_bytes_per_s),
                   nw_format_bytes(peak_size, plateau.peak_bytes), last, last_size);
    /* TCP carries 1 to 5 GB/s a node on ordinary cloud NICs (IPoIB: aks-rdma-infiniband's own
     * comparison, 3.2 GB/s against over 100 with RDMA). */
    if (judge->reading.host_count != 1 && run->facts.network[0] == '\0' &&
        plateau.to_bytes >= UINT64_C(64) << 20 && plateau.busbw_bytes_per_s < 5e9)
        return add(
            judge, NW_FINDING_WARN, "maybe-sockets", line_of_size(run, plateau.to_bytes),
            "run it with NCCL_DEBUG=INFO: NET/IB or NET/OFI is RDMA, NET/Socket is not",
            "%s GB/s at %s is what TCP (IPoIB too) carries, or GPUs that share one slow NIC: RDMA "
            "may not be in use",
            last, last_size);
    return NW_OK;
}

static nw_rc find_network(const struct nw_nt_judge *judge)
{
    if (strcmp(judge->run->facts.network, "Socket") != 0 || judge->reading.host_count == 1)
        return NW_OK;
    return add(judge, NW_FINDING_WARN, "sockets", 0,
               "install the RDMA drivers or the provider's NCCL plug-in; check NCCL_IB_DISABLE, "
               "NCCL_IB_HCA, NCCL_NET",
               "NCCL used TCP sockets between the hosts (network Socket), not RDMA");
}

nw_rc nw_nt_judge_run(const struct nw_nt_run *run, const struct nw_nt_request *request,
                      struct nw_run *out)
{
    struct nw_nt_judge judge = {.run = run, .path = request->path, .out = out};

    nw_nt_infer(run, request, &judge.reading);
    NW_TRY(nw_nt_set_context(&judge));
    NW_TRY(nw_nt_add_records(&judge));
    NW_TRY(find_breaks(&judge));
    NW_TRY(find_gaps(&judge));
    NW_TRY(find_ranks(&judge));
    NW_TRY(find_collective(&judge, request->collective));
    NW_TRY(find_data(&judge));
    NW_TRY(find_meaningless(&judge));
    NW_TRY(find_spikes(&judge));
    NW_TRY(find_curve(&judge));
    return find_network(&judge);
}
