#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "results/fields.h"
#include "results/results.h"

struct nw_results_writer {
    struct nw_line_file *lines;
    struct nw_text text; /* reused for every line */
    char *path;
    int simulated; /* the file's runs: 1 simulated, 0 real, -1 none yet */
};

/* ---- simulated and real results never go into one file -----------------------------------------
 */

static nw_rc check_simulated(struct nw_results_writer *writer, bool simulated)
{
    if (writer->simulated < 0)
        writer->simulated = simulated;
    if (writer->simulated == simulated)
        return NW_OK;
    return nw_fail(NW_EUSAGE,
                   "%s: holds %s results, and these are %s: they never go into one file; give "
                   "another name",
                   writer->path, writer->simulated ? "simulated" : "real",
                   simulated ? "simulated" : "real");
}

static nw_rc see_context(void *user, struct nw_context *context,
                         const struct nw_results_place *place)
{
    struct nw_results_writer *writer = user;

    (void)place;
    if (writer->simulated < 0)
        writer->simulated = context->simulated;
    return NW_OK;
}

static nw_rc see_record(void *user, struct nw_record *record, const struct nw_results_place *place)
{
    (void)user, (void)record, (void)place;
    return NW_OK;
}

/* What a file that is gone on with holds. A file without a run yet, or a pipe, has no say. */
static void look_at_file(struct nw_results_writer *writer)
{
    const struct nw_results_visitor visitor = {
        .user = writer, .brief = true, .on_context = see_context, .on_record = see_record};
    struct stat status;

    if (stat(writer->path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
        nw_results_each(writer->path, &visitor) != NW_OK)
        nw_clear_error();
}

void nw_finding_line_write(struct nw_text *text, const struct nw_finding *finding)
{
    nw_text_put(text, "{");
    nw_text_key(text, "schema");
    nw_text_i64(text, NW_SCHEMA_VERSION);
    nw_text_key(text, "kind");
    nw_text_put(text, "\"finding\"");
    nw_finding_write(text, finding);
    nw_text_put(text, "}");
}

void nw_end_line_write(struct nw_text *text)
{
    nw_text_put(text, "{\"schema\":" NW_STRINGIFY(NW_SCHEMA_VERSION) ",\"kind\":\"end\"}");
}

nw_rc nw_results_create(const char *path, bool resume, struct nw_results_writer **writer_out)
{
    struct nw_results_writer *writer = calloc(1, sizeof *writer);

    if (writer == NULL || (writer->path = strdup(path)) == NULL) {
        free(writer);
        return nw_fail(NW_ENOMEM, "%s: no memory for writing", path);
    }
    writer->simulated = -1;
    const nw_rc rc = nw_lines_open(path, !resume, &writer->lines);

    if (rc != NW_OK) {
        free(writer->path);
        free(writer);
        return rc;
    }
    if (resume)
        look_at_file(writer);
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
    NW_TRY(check_simulated(writer, context->simulated));
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
    nw_finding_line_write(&writer->text, finding);
    return flush(writer);
}

nw_rc nw_results_write_end(struct nw_results_writer *writer)
{
    nw_end_line_write(&writer->text);
    return flush(writer);
}

nw_rc nw_results_close(struct nw_results_writer *writer)
{
    if (writer == NULL)
        return NW_OK;
    const nw_rc rc = nw_lines_close(writer->lines);

    nw_text_free(&writer->text);
    free(writer->path);
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
        nw_finding_line_write(&save->text, &run->context.findings.items[i]);
        NW_TRY(end_line(save));
    }
    for (size_t i = 0; i < run->record_count; i++) {
        nw_record_write(&save->text, &run->records[i]);
        NW_TRY(end_line(save));
    }
    if (!run->context.complete)
        return NW_OK;
    nw_end_line_write(&save->text);
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

struct collect {
    struct nw_results *results;
};

static struct nw_run *last_run(const struct collect *collect)
{
    return &collect->results->runs[collect->results->run_count - 1];
}

static nw_rc collect_context(void *user, struct nw_context *context,
                             const struct nw_results_place *place)
{
    const struct collect *collect = user;
    struct nw_run *added = nw_results_add_run(collect->results);

    if (added == NULL)
        return nw_fail(NW_ENOMEM, "%s:%zu: no memory for a run", place->path, place->line);
    added->context = *context;
    nw_context_init(context);
    return NW_OK;
}

static nw_rc collect_record(void *user, struct nw_record *record,
                            const struct nw_results_place *place)
{
    struct nw_run *run = last_run(user);

    (void)place;
    /* A run that was resumed behind its end is open again. */
    run->context.complete = false;
    return nw_run_add_record(run, record);
}

static nw_rc collect_finding(void *user, const struct nw_finding *finding,
                             const struct nw_results_place *place)
{
    (void)place;
    return nw_findings_copy_one(&last_run(user)->context.findings, finding);
}

static nw_rc collect_end(void *user)
{
    last_run(user)->context.complete = true;
    return NW_OK;
}

static struct nw_results_visitor collector(struct collect *collect)
{
    return (struct nw_results_visitor){.user = collect,
                                       .on_context = collect_context,
                                       .on_record = collect_record,
                                       .on_finding = collect_finding,
                                       .on_end = collect_end};
}

nw_rc nw_results_read_data(const char *data, size_t length, const char *path,
                           struct nw_results *results)
{
    struct collect collect = {.results = results};
    const struct nw_results_visitor visitor = collector(&collect);
    const size_t before = results->run_count;
    const nw_rc rc = nw_results_each_data(data, length, path, &visitor);

    if (rc != NW_OK)
        nw_results_cut(results, before);
    return rc;
}

nw_rc nw_results_read(const char *path, struct nw_results *results)
{
    struct collect collect = {.results = results};
    const struct nw_results_visitor visitor = collector(&collect);
    const size_t before = results->run_count;
    const nw_rc rc = nw_results_each(path, &visitor);

    if (rc != NW_OK)
        nw_results_cut(results, before);
    return rc;
}
