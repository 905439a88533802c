#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "results/nccltests.h"

/* --- context --- */

static nw_rc set_hosts(const struct nw_nt_judge *judge, struct nw_context *context)
{
    const struct nw_nt_hosts *hosts = &judge->run->hosts;

    if (context->host_count == 0 || context->host_count != hosts->count)
        return NW_OK;
    context->hosts = calloc((size_t)hosts->count, sizeof *context->hosts);
    if (context->hosts == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %d hosts", hosts->count);
    for (int i = 0; i < hosts->count; i++) {
        struct nw_host *host = &context->hosts[i];

        memcpy(host->name, hosts->items[i].name, sizeof host->name);
        host->rank_count = hosts->items[i].rank_count;
        host->gpu_count = hosts->items[i].rank_count; /* a rank has one GPU */
        memcpy(host->gpu_model, hosts->items[i].gpu_model, sizeof host->gpu_model);
    }
    return NW_OK;
}

static nw_rc set_plan(const struct nw_nt_judge *judge, struct nw_context *context)
{
    const struct nw_nt_run *run = judge->run;

    context->plan = json_object();
    if (context->plan == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the options of a log");
    if (strcmp(judge->reading.collective, "unknown") != 0)
        NW_TRY(nw_json_set_text(context->plan, "collective", judge->reading.collective));
    if (!run->options_seen)
        return NW_OK;
    NW_TRY(nw_json_set_u64(context->plan, "min_bytes", run->min_bytes));
    NW_TRY(nw_json_set_u64(context->plan, "max_bytes", run->max_bytes));
    if (run->step > 0)
        NW_TRY(nw_json_set_u64(context->plan, run->step_is_factor ? "step_factor" : "step_bytes",
                               run->step));
    if (run->warmup >= 0)
        NW_TRY(nw_json_set_int(context->plan, "warmup", run->warmup));
    if (run->iterations >= 0)
        NW_TRY(nw_json_set_int(context->plan, "iterations", run->iterations));
    if (run->validation >= 0)
        NW_TRY(nw_json_set_bool(context->plan, "check", run->validation > 0));
    return NW_OK;
}

nw_rc nw_nt_set_context(const struct nw_nt_judge *judge)
{
    const struct nw_nt_run *run = judge->run;
    struct nw_context *context = &judge->out->context;

    snprintf(context->tool, sizeof context->tool, "%s", run->tool);
    snprintf(context->tool_version, sizeof context->tool_version, "%s", run->tool_version);
    snprintf(context->backend, sizeof context->backend, "nccl");
    if (run->facts.nccl_version[0] != '\0')
        snprintf(context->library, sizeof context->library, "%s %s",
                 strcmp(run->tool, "rccl-tests") == 0 ? "RCCL" : "NCCL", run->facts.nccl_version);
    snprintf(context->network, sizeof context->network, "%s", run->facts.network);
    if (!run->gpus_differ)
        snprintf(context->gpu_model, sizeof context->gpu_model, "%s", run->gpu_model);
    snprintf(context->source, sizeof context->source, "%s", judge->path);
    context->rank_count = judge->reading.rank_count;
    context->host_count = judge->reading.host_count;
    context->environment = json_incref(run->facts.environment);
    context->printed_average_bytes_per_s = run->average.value;
    context->complete = run->ended;
    NW_TRY(set_hosts(judge, context));
    return set_plan(judge, context);
}

/* --- records --- */

/* "Ring" → lane "ring"; a list or an exclusion forces nothing. */
static void set_lane(const char *algorithm, char *lane, size_t size)
{
    static const char *const names[] = {"ring",          "tree",         "nvls", "nvlstree",
                                        "collnetdirect", "collnetchain", NULL};

    snprintf(lane, size, "auto");
    for (size_t i = 0; algorithm[0] != '\0' && names[i] != NULL; i++)
        if (strcasecmp(algorithm, names[i]) == 0)
            snprintf(lane, size, "%s", names[i]);
}

/* Largest relative error that nccl-tests accepted of one addition, up to 2.11 (src/common.cu,
 * DeltaMaxValue; the test multiplied it by ranks - 1). */
static double accepted_error(const char *dtype, int rank_count)
{
    static const struct {
        const char *dtype;
        double error;
    } rows[] = {{"half", 1e-2}, {"bfloat16", 1e-2}, {"float", 1e-5}, {"double", 1e-12}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(dtype, rows[i].dtype) == 0)
            return rows[i].error * (rank_count > 2 ? rank_count - 1 : 1);
    return 0;
}

/* Elements with wrong values; -1: not checked. The old layout has no count: 1 is "at least one". */
static int64_t wrong_elements(struct nw_nt_judge *judge, const struct nw_nt_row *row, bool in_place)
{
    const double check = row->place[in_place].check.value;
    const bool no_answer = in_place && judge->no_answer_in_place;

    if (isnan(check))
        return -1;
    if (no_answer && check > 0) {
        if (judge->unordered_rows++ == 0)
            judge->unordered_line = row->line;
        return -1;
    }
    if (!judge->run->layout.relative_error && (judge->run->layout.known || check >= 1))
        return check < 9e18 ? (int64_t)check : INT64_MAX;
    if (check > 0 && check <= accepted_error(row->dtype, judge->reading.rank_count)) {
        judge->rounding_rows++;
        judge->rounding_most = fmax(judge->rounding_most, check);
        return 0;
    }
    if (check > 0 && judge->run->out_of_bounds == 0) /* the tool itself found it within bounds */
        return 0;
    return check > 0;
}

/* Printed where it has four digits, else from size and time, which have: 0.05 GB/s says little. */
static double best_rate(const struct nw_printed *printed, double from_time)
{
    const bool digits = printed->value >= 2000 * printed->half_unit;

    if (digits || !isfinite(from_time))
        return digits || printed->value >= 50 * printed->half_unit ? printed->value : NAN;
    return from_time;
}

static void set_rates(const struct nw_nt_judge *judge, const struct nw_nt_row *row,
                      const struct nw_nt_block *block, struct nw_record *record)
{
    const struct nw_nt_reading *reading = &judge->reading;

    if (reading->rank_count == 1 || row->bytes == 0 || !(block->time_ns.value > 0))
        return;
    /* Whole bytes/s: far below what a printed time resolves. */
    const double algbw = (double)row->bytes / (block->time_ns.value * 1e-9);
    const double factor = reading->coll != NULL && reading->rank_count > 1
                              ? reading->coll->bus_factor(reading->rank_count)
                              : NAN;
    const double coarse = block->time_ns.half_unit / block->time_ns.value;
    const bool fine = coarse < 2e-3;

    record->algbw_bytes_per_s = best_rate(&block->algbw, fine ? round(algbw) : NAN);
    record->busbw_bytes_per_s = best_rate(&block->busbw, fine ? round(algbw * factor) : NAN);
}

static nw_rc warn_wrong(struct nw_nt_judge *judge, const struct nw_nt_row *row,
                        struct nw_record *record)
{
    if (judge->wrong_rows++ == 0)
        judge->wrong_line = row->line;
    judge->wrong_elements += (double)record->wrong_elements;
    return nw_findings_add(&record->warnings, NW_FINDING_FAIL, "wrong-data", record->source,
                           "do not use this rate: what moved was not the right data",
                           judge->run->layout.relative_error
                               ? "the error is above what rounding explains"
                               : "%lld elements were wrong",
                           (long long)record->wrong_elements);
}

static nw_rc add_record(struct nw_nt_judge *judge, const struct nw_nt_row *row, bool in_place)
{
    const struct nw_nt_block *block = &row->place[in_place];
    const struct nw_coll *coll = judge->reading.coll;

    if (!block->present || isnan(block->time_ns.value))
        return NW_OK;
    struct nw_record *record = nw_run_new_record(judge->out);

    if (record == NULL)
        return nw_fail(NW_ENOMEM, "%s:%zu: no memory for a record", judge->path, row->line);
    strcpy(record->case_name, "coll");
    memcpy(record->collective, judge->reading.collective, sizeof record->collective);
    memcpy(record->lane, judge->lane, sizeof record->lane);
    memcpy(record->dtype, row->dtype, sizeof record->dtype);
    if (row->op[0] != '\0' && (coll == NULL || (coll->flags & NW_COLL_REDUCES) != 0))
        memcpy(record->op, row->op, sizeof record->op);
    if (coll == NULL || (coll->flags & NW_COLL_ROOTED) != 0)
        record->root = row->root;
    record->rank_count = judge->reading.rank_count;
    record->host_count = judge->reading.host_count;
    record->bytes = row->bytes;
    record->count = row->count;
    record->in_place = in_place;
    record->time_ns = nw_stats_single(block->time_ns.value);
    nw_imp_source(judge->path, row->line, record->source, sizeof record->source);
    set_rates(judge, row, block, record);
    record->wrong_elements = wrong_elements(judge, row, in_place);
    return record->wrong_elements > 0 ? warn_wrong(judge, row, record) : NW_OK;
}

nw_rc nw_nt_add_records(struct nw_nt_judge *judge)
{
    size_t count = 0;

    for (size_t i = 0; i < judge->run->row_count; i++)
        count +=
            (size_t)judge->run->rows[i].place[0].present + judge->run->rows[i].place[1].present;
    NW_TRY(nw_run_reserve(judge->out, count));
    set_lane(judge->run->facts.algorithm, judge->lane, sizeof judge->lane);
    judge->no_answer_in_place = strcmp(judge->reading.collective, "alltoall") == 0 ||
                                strcmp(judge->reading.collective, "sendrecv") == 0;
    for (size_t i = 0; i < judge->run->row_count; i++)
        for (int in_place = 0; in_place < 2; in_place++)
            NW_TRY(add_record(judge, &judge->run->rows[i], in_place));
    return NW_OK;
}
