#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/json.h"
#include "results/fields.h"
#include "results/results.h"

/* A results file larger than this is no results file. */
#define MAX_FILE_BYTES (UINT64_C(16) << 30)

struct nw_results_writer {
    struct nw_line_file *lines;
    struct nw_text text; /* reused for every line */
};

static void write_finding_line(struct nw_text *text, const struct nw_finding *finding)
{
    nw_text_put(text, "{");
    nw_text_key(text, "schema");
    nw_text_i64(text, NW_SCHEMA_VERSION);
    nw_text_key(text, "kind");
    nw_text_put(text, "\"finding\"");
    nw_finding_write(text, finding);
    nw_text_put(text, "}");
}

static void write_end_line(struct nw_text *text)
{
    nw_text_put(text, "{\"schema\":" NW_STRINGIFY(NW_SCHEMA_VERSION) ",\"kind\":\"end\"}");
}

nw_rc nw_results_create(const char *path, bool resume, struct nw_results_writer **writer_out)
{
    struct nw_results_writer *writer = calloc(1, sizeof *writer);

    if (writer == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for writing", path);
    const nw_rc rc = nw_lines_open(path, !resume, &writer->lines);

    if (rc != NW_OK) {
        free(writer);
        return rc;
    }
    *writer_out = writer;
    return NW_OK;
}

/* One line on disk; the text is empty again afterwards. */
static nw_rc flush(struct nw_results_writer *writer)
{
    nw_rc rc = nw_text_check(&writer->text);

    if (rc == NW_OK)
        rc = nw_lines_append(writer->lines, writer->text.data, writer->text.length);
    writer->text.length = 0;
    writer->text.failed = false;
    return rc;
}

nw_rc nw_results_write_context(struct nw_results_writer *writer, const struct nw_context *context)
{
    nw_context_write(&writer->text, context);
    NW_TRY(flush(writer));
    for (size_t i = 0; i < context->findings.count; i++)
        NW_TRY(nw_results_write_finding(writer, &context->findings.items[i]));
    return NW_OK;
}

nw_rc nw_results_write_record(struct nw_results_writer *writer, const struct nw_record *record)
{
    nw_record_write(&writer->text, record);
    return flush(writer);
}

nw_rc nw_results_write_finding(struct nw_results_writer *writer, const struct nw_finding *finding)
{
    write_finding_line(&writer->text, finding);
    return flush(writer);
}

nw_rc nw_results_write_end(struct nw_results_writer *writer)
{
    write_end_line(&writer->text);
    return flush(writer);
}

nw_rc nw_results_close(struct nw_results_writer *writer)
{
    if (writer == NULL)
        return NW_OK;
    const nw_rc rc = nw_lines_close(writer->lines);

    nw_text_free(&writer->text);
    free(writer);
    return rc;
}

/* Lines are handed to the stream in pieces of this size. */
#define PIECE_BYTES ((size_t)1 << 20)

struct save {
    const char *path;
    FILE *stream;
    struct nw_text text;
};

static nw_rc put_lines(struct save *save, size_t least)
{
    NW_TRY(nw_text_check(&save->text));
    if (save->text.length < least)
        return NW_OK;
    errno = 0;
    if (fwrite(save->text.data, 1, save->text.length, save->stream) != save->text.length)
        return nw_fail(NW_EIO, "%s: cannot write: %s", save->path,
                       strerror(errno != 0 ? errno : EIO));
    save->text.length = 0;
    return NW_OK;
}

static nw_rc end_line(struct save *save)
{
    nw_text_put(&save->text, "\n");
    return put_lines(save, PIECE_BYTES);
}

static nw_rc save_run(struct save *save, const struct nw_run *run)
{
    nw_context_write(&save->text, &run->context);
    NW_TRY(end_line(save));
    for (size_t i = 0; i < run->context.findings.count; i++) {
        write_finding_line(&save->text, &run->context.findings.items[i]);
        NW_TRY(end_line(save));
    }
    for (size_t i = 0; i < run->record_count; i++) {
        nw_record_write(&save->text, &run->records[i]);
        NW_TRY(end_line(save));
    }
    if (!run->context.complete)
        return NW_OK;
    write_end_line(&save->text);
    return end_line(save);
}

nw_rc nw_results_save(const char *path, const struct nw_results *results)
{
    struct nw_atomic_file *file;
    nw_rc rc = NW_OK;

    NW_TRY(nw_atomic_open(path, &file));
    struct save save = {.path = path, .stream = nw_atomic_stream(file)};

    for (size_t i = 0; i < results->run_count && rc == NW_OK; i++)
        rc = save_run(&save, &results->runs[i]);
    if (rc == NW_OK)
        rc = put_lines(&save, 1);
    nw_text_free(&save.text);
    if (rc == NW_OK)
        return nw_atomic_commit(file);
    nw_atomic_abandon(file);
    return rc;
}

nw_rc nw_run_to_json(const struct nw_run *run, json_t **json_out)
{
    struct nw_text text = {0};

    nw_text_put(&text, "{\"context\":");
    nw_context_write(&text, &run->context);
    nw_text_put(&text, ",\"findings\":");
    nw_findings_write(&text, &run->context.findings);
    nw_text_put(&text, ",\"records\":[");
    for (size_t i = 0; i < run->record_count; i++) {
        if (i > 0)
            nw_text_put(&text, ",");
        nw_record_write(&text, &run->records[i]);
    }
    nw_text_put(&text, run->context.complete ? "],\"complete\":true}" : "],\"complete\":false}");
    const nw_rc rc = nw_text_to_json(&text, json_out);

    nw_text_free(&text);
    return rc;
}

/* --- reading --- */

struct reader {
    const char *path;
    size_t line;
    struct nw_results *results;
    size_t first_run; /* of this file */
};

static struct nw_run *open_run(const struct reader *reader)
{
    const struct nw_results *results = reader->results;

    return results->run_count > reader->first_run ? &results->runs[results->run_count - 1] : NULL;
}

static nw_rc read_context_line(const struct reader *reader, const json_t *json, const char *what,
                               struct nw_run *run)
{
    struct nw_context context;

    (void)run;
    NW_TRY(nw_context_from_json(json, what, &context));
    struct nw_run *added = nw_results_add_run(reader->results);

    if (added == NULL) {
        nw_context_free(&context);
        return nw_fail(NW_ENOMEM, "%s: no memory for a run", what);
    }
    added->context = context;
    return NW_OK;
}

static nw_rc read_record_line(const struct reader *reader, const json_t *json, const char *what,
                              struct nw_run *run)
{
    struct nw_record record;

    (void)reader;
    NW_TRY(nw_record_from_json(json, what, &record));
    const nw_rc rc = nw_run_add_record(run, &record);

    nw_record_free(&record);
    /* A run that was resumed behind its end is open again. */
    run->context.complete = false;
    return rc;
}

static nw_rc read_finding_line(const struct reader *reader, const json_t *json, const char *what,
                               struct nw_run *run)
{
    (void)reader;
    return nw_finding_from_json(json, what, &run->context.findings);
}

static nw_rc read_end_line(const struct reader *reader, const json_t *json, const char *what,
                           struct nw_run *run)
{
    (void)reader, (void)json, (void)what;
    run->context.complete = true;
    return NW_OK;
}

static const struct {
    const char *kind;
    nw_rc (*read)(const struct reader *reader, const json_t *json, const char *what,
                  struct nw_run *run);
    bool within_run;
} kinds[] = {
    {"context", read_context_line, false},
    {"record", read_record_line, true},
    {"finding", read_finding_line, true},
    {"end", read_end_line, true},
};

static nw_rc read_object(const struct reader *reader, const json_t *json, const char *what)
{
    struct nw_run *run = open_run(reader);
    const char *kind = NULL;

    NW_TRY(nw_line_kind(json, what, &kind));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].kind) != 0)
            continue;
        if (kinds[i].within_run && run == NULL)
            return nw_fail(NW_EUSAGE,
                           "%s: a line of kind \"%s\" stands before the first \"context\"; a run "
                           "begins with its context",
                           what, kind);
        return kinds[i].read(reader, json, what, run);
    }
    return nw_fail(NW_EUSAGE, "%s: \"kind\" is \"%s\"; accepted: context, record, finding, end",
                   what, kind);
}

/* The last line of a file whose writer was killed: said, not read. */
static nw_rc note_torn(const struct reader *reader, const char *what)
{
    struct nw_run *run = open_run(reader);

    if (run == NULL)
        return nw_fail(NW_EUSAGE, "%s: the only line is incomplete; nothing was measured", what);
    return nw_findings_add(&run->context.findings, NW_FINDING_WARN, "torn-line", what,
                           "bench --resume goes on from the last whole line",
                           "the last line is incomplete (the writer was stopped in mid-write) and "
                           "was left out");
}

static bool is_blank(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (strchr(" \t\r", line[i]) == NULL || line[i] == '\0')
            return false;
    return true;
}

static nw_rc read_line(const struct reader *reader, const char *line, size_t length, bool whole)
{
    char what[512];
    json_error_t error;

    snprintf(what, sizeof what, "%.480s:%zu", reader->path, reader->line);
    if (is_blank(line, length))
        return NW_OK;
    json_t *json = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);

    if (json == NULL && reader->line == 1 && line[0] == '{' && is_blank(line + 1, length - 1))
        return nw_fail(NW_EUSAGE,
                       "%s: a JSON document over several lines; a results file has one object a "
                       "line. The topology of a machine is none: audit takes it with --topo",
                       reader->path);
    if (json == NULL)
        return whole ? nw_fail(NW_EUSAGE, "%s: not valid JSON at column %d: %s", what, error.column,
                               error.text)
                     : note_torn(reader, what);
    const nw_rc rc = read_object(reader, json, what);

    json_decref(json);
    return rc;
}

static nw_rc read_lines(struct reader *reader, const char *data, size_t length)
{
    for (size_t at = 0; at < length;) {
        const char *end = memchr(data + at, '\n', length - at);
        const size_t line_length = end != NULL ? (size_t)(end - data) - at : length - at;

        reader->line++;
        NW_TRY(read_line(reader, data + at, line_length, end != NULL));
        at += line_length + 1;
    }
    if (open_run(reader) == NULL)
        return nw_fail(NW_EUSAGE,
                       "%s: %s; expected a results file: one JSON object a line, the first of kind "
                       "\"context\"",
                       reader->path, length == 0 ? "is empty" : "has only blank lines");
    return NW_OK;
}

nw_rc nw_results_read_data(const char *data, size_t length, const char *path,
                           struct nw_results *results)
{
    struct reader reader = {.path = path, .results = results, .first_run = results->run_count};
    const nw_rc rc = read_lines(&reader, data, length);

    if (rc != NW_OK)
        nw_results_cut(results, reader.first_run);
    return rc;
}

nw_rc nw_results_read(const char *path, struct nw_results *results)
{
    char *data;
    size_t length;

    NW_TRY(nw_file_read(path, MAX_FILE_BYTES, &data, &length));
    const nw_rc rc = nw_results_read_data(data, length, path, results);

    free(data);
    return rc;
}
