#include "results/import_kit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "collectives/coll.h"

struct nw_imp nw_imp_open(const char *data, size_t length, const char *path,
                          struct nw_results *results)
{
    return (struct nw_imp){.data = data, .length = length, .path = path, .results = results};
}

bool nw_imp_next(struct nw_imp *imp)
{
    if (imp->at >= imp->length)
        return false;
    const char *start = imp->data + imp->at;
    const char *end = memchr(start, '\n', imp->length - imp->at);

    imp->whole = end != NULL;
    imp->text.at = start;
    imp->text.length = end != NULL ? (size_t)(end - start) : imp->length - imp->at;
    imp->at += imp->text.length + 1;
    imp->line++;
    return true;
}

nw_rc nw_imp_begin(struct nw_imp *imp, const char *tool)
{
    imp->run = nw_results_add_run(imp->results);
    if (imp->run == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for a run", imp->path);
    imp->unreadable = imp->elided = imp->failed = (struct nw_imp_tally){0};
    imp->torn = false;
    snprintf(imp->run->context.tool, sizeof imp->run->context.tool, "%s", tool);
    snprintf(imp->run->context.source, sizeof imp->run->context.source, "%s", imp->path);
    return NW_OK;
}

void nw_imp_count(struct nw_imp_tally *tally, size_t line, struct nw_slice text)
{
    if (tally->count++ > 0)
        return;
    tally->line = line;
    nw_imp_copy(tally->text, sizeof tally->text, text);
}

nw_rc nw_imp_add_finding(struct nw_findings *findings, const char *path, nw_severity severity,
                         const char *code, size_t line, const char *remedy, const char *format,
                         va_list arguments)
{
    char where[300], text[700];

    if (line > 0)
        snprintf(where, sizeof where, "%.250s:%zu", path, line);
    else
        snprintf(where, sizeof where, "%.250s", path);
    vsnprintf(text, sizeof text, format, arguments);
    return nw_findings_add(findings, severity, code, where, remedy, "%s", text);
}

nw_rc nw_imp_tell(const struct nw_imp *imp, nw_severity severity, const char *code, size_t line,
                  const char *remedy, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const nw_rc rc = nw_imp_add_finding(&imp->run->context.findings, imp->path, severity, code,
                                        line, remedy, format, arguments);
    va_end(arguments);
    return rc;
}

nw_rc nw_imp_close(struct nw_imp *imp, const char *no_result)
{
    if (imp->run == NULL)
        return NW_OK;
    if (imp->failed.count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_FAIL, "run-failed", imp->failed.line,
                           "look at this line and those around it, and run it again",
                           "the run failed (%zu such lines, the first: \"%s\")", imp->failed.count,
                           imp->failed.text));
    if (imp->run->record_count == 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_FAIL, "no-result", imp->failed.line, NULL, "%s",
                           no_result));
    if (imp->unreadable.count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "unreadable-row", imp->unreadable.line,
                           "send the output of each program to its own file",
                           "rows that cannot be read, and are left out: %zu; the first because %s",
                           imp->unreadable.count, imp->unreadable.text));
    if (imp->elided.count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "rows-elided", imp->elided.line,
                           "import the whole log", "rows were cut out of the log here"));
    if (imp->torn)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "torn-line", imp->line, "import the whole log",
                           "the last line has no end: its last word may be cut and is not used"));
    imp->run = NULL;
    return NW_OK;
}

void nw_imp_source(const char *path, size_t line, char *field, size_t size)
{
    char digits[24];
    size_t at = sizeof digits, length = strlen(path);

    do {
        digits[--at] = (char)('0' + line % 10);
        line /= 10;
    } while (line > 0);
    digits[--at] = ':';
    const size_t tail = sizeof digits - at, room = size - 1 - tail;

    if (length > room) { /* the end of a path tells more than its beginning */
        path += length - room;
        length = room;
    }
    memcpy(field, path, length);
    memcpy(field + length, digits + at, tail);
    field[length + tail] = '\0';
}

nw_rc nw_imp_record(const struct nw_imp *imp, const char *case_name, const char *collective,
                    const char *lane, size_t line, struct nw_record **record_out)
{
    struct nw_record *record = nw_run_new_record(imp->run);

    if (record == NULL)
        return nw_fail(NW_ENOMEM, "%s:%zu: no memory for a record", imp->path, line);
    snprintf(record->case_name, sizeof record->case_name, "%s", case_name);
    snprintf(record->collective, sizeof record->collective, "%s", collective);
    snprintf(record->lane, sizeof record->lane, "%s", lane);
    snprintf(record->dtype, sizeof record->dtype, "none");
    nw_imp_source(imp->path, line, record->source, sizeof record->source);
    *record_out = record;
    return NW_OK;
}

/* Rates and times outside of these are no measurement, and would overflow in what is made of them.
 */
static bool is_sound(double value)
{
    return value >= 1e-6 && value <= 1e18;
}

void nw_imp_set_rate(struct nw_record *record, double bytes_per_s)
{
    if (!is_sound(bytes_per_s))
        return;
    record->algbw_bytes_per_s = bytes_per_s;
    if (record->bytes > 0 && !isfinite(record->time_ns.median))
        record->time_ns = nw_stats_single((double)record->bytes / bytes_per_s * 1e9);
}

void nw_imp_set_time(struct nw_record *record, double ns)
{
    if (!is_sound(ns))
        return;
    record->time_ns = nw_stats_single(ns);
    if (record->bytes > 0 && !isfinite(record->algbw_bytes_per_s))
        record->algbw_bytes_per_s = round((double)record->bytes / (ns * 1e-9));
}

uint64_t nw_imp_whole_bytes(const struct nw_record *record, double part_bytes)
{
    const struct nw_coll *coll = nw_coll_find(record->collective);
    const bool part = coll != NULL && (coll->flags & NW_COLL_CHUNKED) != 0 &&
                      strcmp(record->collective, "reduce_scatter") != 0;

    if (!(part_bytes >= 0 && part_bytes < 1e11))
        return 0;
    return (uint64_t)part_bytes *
           (part && record->rank_count > 0 ? (uint64_t)record->rank_count : 1);
}

void nw_imp_set_busbw(struct nw_record *record)
{
    const struct nw_coll *coll = nw_coll_find(record->collective);

    if (coll != NULL && record->rank_count > 1)
        record->busbw_bytes_per_s =
            record->algbw_bytes_per_s * coll->bus_factor(record->rank_count);
}

/* --- GPUs of the run --- */

nw_rc nw_imp_gpu(const struct nw_imp *imp, int index, struct nw_slice model, struct nw_slice pci)
{
    struct nw_context *context = &imp->run->context;
    char name[sizeof context->gpu_model], address[32];
    json_t *gpu;

    if (context->gpus == NULL)
        context->gpus = json_array();
    if (json_array_size(context->gpus) >= 1024)
        return NW_OK; /* no machine has so many */
    nw_imp_copy(name, sizeof name, nw_imp_trim(model));
    nw_imp_copy(address, sizeof address, nw_imp_trim(pci));
    gpu = json_pack("{s:i}", "index", index);
    if (gpu == NULL || json_array_append_new(context->gpus, gpu) != 0)
        return nw_fail(NW_ENOMEM, "%s:%zu: no memory for a GPU", imp->path, imp->line);
    if (name[0] != '\0')
        NW_TRY(nw_json_set_text(gpu, "model", name));
    if (address[0] != '\0')
        NW_TRY(nw_json_set_text(gpu, "pci", address));
    if (json_array_size(context->gpus) == 1)
        memcpy(context->gpu_model, name, sizeof name);
    else if (strcmp(context->gpu_model, name) != 0)
        context->gpu_model[0] = '\0'; /* different ones */
    context->rank_count = (int)json_array_size(context->gpus);
    context->host_count = 1;
    return NW_OK;
}
