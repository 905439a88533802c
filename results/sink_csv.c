#include <stdlib.h>
#include <string.h>

#include "results/record_rows.h"
#include "results/sink.h"

/* A record's columns: a table of rows over it, or over a part of it. */
struct part {
    const char *prefix; /* before each key */
    const struct nw_line_field *rows;
    size_t count, offset;
};

enum { PART_COUNT = 3 + NW_RECORD_STATE_COUNT };

static void list_parts(struct part *parts)
{
    static const char *const prefixes[NW_RECORD_STATE_COUNT] = {
        "gpu_state_before_", "gpu_state_during_", "gpu_state_after_"};

    parts[0] = (struct part){"", nw_record_identity_rows, nw_record_identity_row_count, 0};
    parts[1] = (struct part){"time_ns_", nw_record_time_rows, nw_record_time_row_count,
                             offsetof(struct nw_record, time_ns)};
    parts[2] = (struct part){"", nw_record_result_rows, nw_record_result_row_count, 0};
    for (size_t i = 0; i < NW_RECORD_STATE_COUNT; i++)
        parts[3 + i] = (struct part){prefixes[i], nw_record_state_rows, nw_record_state_row_count,
                                     nw_record_states[i].offset};
}

/* "-1+2" is none. */
static bool is_number(const char *value)
{
    char *end;

    if (value[strspn(value, "+-.0123456789eE")] != '\0')
        return false;
    (void)strtod(value, &end);
    return end != value && *end == '\0';
}

/* OWASP, "CSV Injection": what a spreadsheet takes for a formula. */
static bool looks_like_formula(const char *value)
{
    return value[0] != '\0' && strchr("=+-@\t\r", value[0]) != NULL && !is_number(value);
}

void nw_csv_cell(struct nw_text *text, const char *value)
{
    const bool guarded = looks_like_formula(value);

    if (!guarded && strpbrk(value, "\",\r\n") == NULL) {
        nw_text_put(text, value);
        return;
    }
    nw_text_put(text, guarded ? "\"'" : "\"");
    for (const char *at = value; *at != '\0';) {
        const size_t length = strcspn(at, "\"");

        nw_text_raw(text, at, length);
        at += length;
        if (*at == '"') {
            nw_text_put(text, "\"\"");
            at++;
        }
    }
    nw_text_put(text, "\"");
}

void nw_csv_header(struct nw_text *text)
{
    struct part parts[PART_COUNT];

    list_parts(parts);
    nw_text_put(text, "run,tool,tool_version,started,backend,library,gpu_model,host_names");
    for (size_t p = 0; p < PART_COUNT; p++)
        for (size_t i = 0; i < parts[p].count; i++) {
            nw_text_put(text, ",");
            nw_text_put(text, parts[p].prefix);
            nw_text_put(text, parts[p].rows[i].key);
        }
    nw_text_put(text, ",stop,rc,warnings\r\n");
}

static void put_context(struct nw_text *text, int run, const struct nw_context *context)
{
    const char *const texts[] = {context->tool,    context->tool_version, context->started,
                                 context->backend, context->library,      context->gpu_model};
    char names[4096] = "";
    size_t used = 0;

    nw_text_i64(text, run);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        nw_text_put(text, ",");
        nw_csv_cell(text, texts[i]);
    }
    for (int i = 0; context->hosts != NULL && i < context->host_count; i++)
        if (used + sizeof context->hosts[i].name + 2 < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? " " : "",
                                     context->hosts[i].name);
    nw_text_put(text, ",");
    nw_csv_cell(text, names);
}

static void put_part(struct nw_text *text, const struct part *part, const struct nw_record *record)
{
    const void *base = (const char *)record + part->offset;

    for (size_t i = 0; i < part->count; i++) {
        const struct nw_line_field *row = &part->rows[i];

        nw_text_put(text, ",");
        if (!nw_field_is_known(row, base))
            continue;
        if (row->type == NW_FIELD_TEXT)
            nw_csv_cell(text, (const char *)base + row->offset);
        else
            nw_field_write(text, row, base);
    }
}

/* Codes, with blanks between. */
static void put_warnings(struct nw_text *text, const struct nw_record *record)
{
    char codes[512] = "";
    size_t used = 0;

    for (size_t i = 0; i < record->warnings.count; i++) {
        const char *code = record->warnings.items[i].code;

        if (used + strlen(code) + 2 < sizeof codes)
            used +=
                (size_t)snprintf(codes + used, sizeof codes - used, "%s%s", i > 0 ? " " : "", code);
    }
    nw_text_put(text, ",");
    nw_csv_cell(text, codes);
}

void nw_csv_record(struct nw_text *text, int run, const struct nw_context *context,
                   const struct nw_record *record)
{
    struct part parts[PART_COUNT];

    list_parts(parts);
    put_context(text, run, context);
    for (size_t p = 0; p < PART_COUNT; p++)
        put_part(text, &parts[p], record);
    nw_text_put(text, ",");
    nw_text_put(text, nw_stop_name(record->stop) != NULL ? nw_stop_name(record->stop) : "");
    nw_text_put(text, ",");
    nw_text_put(text, nw_rc_name(record->rc));
    put_warnings(text, record);
    nw_text_put(text, "\r\n");
}
