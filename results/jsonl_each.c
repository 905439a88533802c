/* Results files read line by line: one line in memory at a time, whatever the file's size. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "results/record_rows.h"
#include "results/results.h"

/* The context of some hundred hosts with their topologies takes a few MiB. */
#define LINE_MAX_BYTES ((size_t)256 << 20)
#define PIECE_BYTES    ((size_t)1 << 20)

/* ---- lines -------------------------------------------------------------------------------------
 */

struct source { /* of a file, or (fd -1) of what is in memory */
    const char *path;
    int fd;
    char *data; /* owned where there is a file */
    size_t at, end, capacity;
    uint64_t offset; /* of data[0] in the file */
};

struct line {
    const char *text; /* text[length] is readable: the newline, or NUL */
    size_t length;
    bool whole; /* its newline is there */
    uint64_t offset;
};

static nw_rc make_room(struct source *source)
{
    if (source->at > 0) {
        memmove(source->data, source->data + source->at, source->end - source->at);
        source->offset += source->at;
        source->end -= source->at;
        source->at = 0;
    }
    if (source->capacity - source->end > PIECE_BYTES / 2)
        return NW_OK;
    if (source->capacity > LINE_MAX_BYTES)
        return nw_fail(NW_EUSAGE, "%s: a line of more than %zu MiB; no line of results is as long",
                       source->path, LINE_MAX_BYTES >> 20);
    const size_t capacity = source->capacity > 0 ? 2 * source->capacity : 2 * PIECE_BYTES;
    char *data = realloc(source->data, capacity);

    if (data == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for a line", source->path);
    source->data = data;
    source->capacity = capacity;
    return NW_OK;
}

/* More of the file behind what is there; *more_out false: it has ended. */
static nw_rc read_more(struct source *source, bool *more_out)
{
    ssize_t got;

    *more_out = false;
    if (source->fd < 0)
        return NW_OK;
    NW_TRY(make_room(source));
    do {
        got = read(source->fd, source->data + source->end, source->capacity - source->end - 1);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return nw_fail(NW_EIO, "%s: cannot read: %s", source->path, strerror(errno));
    source->end += (size_t)got;
    source->data[source->end] = '\0';
    *more_out = got > 0;
    return NW_OK;
}

/* False in *line_out->text NULL: no line any more. */
static nw_rc next_line(struct source *source, struct line *line_out)
{
    size_t searched = 0;
    bool more = true;

    *line_out = (struct line){.text = NULL};
    while (true) {
        char *start = source->data != NULL ? source->data + source->at : NULL;
        const size_t there = source->end - source->at;
        const char *newline =
            there > searched ? memchr(start + searched, '\n', there - searched) : NULL;

        if (newline == NULL && more) {
            searched = there;
            NW_TRY(read_more(source, &more));
            continue;
        }
        if (newline == NULL && there == 0)
            return NW_OK;
        *line_out = (struct line){.text = start,
                                  .length = newline != NULL ? (size_t)(newline - start) : there,
                                  .whole = newline != NULL,
                                  .offset = source->offset + source->at};
        source->at += line_out->length + (newline != NULL);
        return NW_OK;
    }
}

/* ---- what a line is ----------------------------------------------------------------------------
 */

struct reader {
    const struct nw_results_visitor *visitor;
    struct nw_results_place place;
    bool in_run;
    char what[512]; /* "results.jsonl:12" */
};

static const char *where(struct reader *reader)
{
    snprintf(reader->what, sizeof reader->what, "%.480s:%zu", reader->place.path,
             reader->place.line);
    return reader->what;
}

static nw_rc hand_on_context(struct reader *reader, const json_t *json)
{
    const struct nw_results_visitor *visitor = reader->visitor;
    struct nw_context context;

    NW_TRY(nw_context_from_json(json, reader->what, &context));
    reader->in_run = true;
    const nw_rc rc = visitor->on_context(visitor->user, &context, &reader->place);

    nw_context_free(&context);
    return rc;
}

static nw_rc hand_on(const struct reader *reader, struct nw_record *record)
{
    const struct nw_results_visitor *visitor = reader->visitor;
    const nw_rc rc = visitor->on_record(visitor->user, record, &reader->place);

    nw_record_free(record);
    return rc;
}

static nw_rc hand_on_record(struct reader *reader, const json_t *json)
{
    struct nw_record record;

    NW_TRY(nw_record_from_json(json, reader->what, &record));
    return hand_on(reader, &record);
}

static nw_rc hand_on_finding(struct reader *reader, const json_t *json)
{
    const struct nw_results_visitor *visitor = reader->visitor;
    struct nw_findings list = {0};
    nw_rc rc = nw_finding_from_json(json, reader->what, &list);

    if (rc == NW_OK && visitor->on_finding != NULL)
        rc = visitor->on_finding(visitor->user, &list.items[0], &reader->place);
    nw_findings_free(&list);
    return rc;
}

static nw_rc hand_on_end(struct reader *reader, const json_t *json)
{
    (void)json;
    const struct nw_results_visitor *visitor = reader->visitor;

    return visitor->on_end != NULL ? visitor->on_end(visitor->user) : NW_OK;
}

static const struct {
    const char *kind;
    nw_rc (*hand_on)(struct reader *reader, const json_t *json);
    bool within_run;
} kinds[] = {
    {"context", hand_on_context, false},
    {"record", hand_on_record, true},
    {"finding", hand_on_finding, true},
    {"end", hand_on_end, true},
};

static nw_rc read_object(struct reader *reader, const json_t *json)
{
    const char *kind = NULL;

    NW_TRY(nw_line_kind(json, reader->what, &kind));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].kind) != 0)
            continue;
        if (kinds[i].within_run && !reader->in_run)
            return nw_fail(NW_EUSAGE,
                           "%s: a line of kind \"%s\" stands before the first \"context\"; a run "
                           "begins with its context",
                           reader->what, kind);
        return kinds[i].hand_on(reader, json);
    }
    return nw_fail(NW_EUSAGE, "%s: \"kind\" is \"%s\"; accepted: context, record, finding, end",
                   reader->what, kind);
}

/* The last line of a file whose writer was killed: said, not read. */
static nw_rc note_torn(struct reader *reader)
{
    const struct nw_results_visitor *visitor = reader->visitor;
    struct nw_findings list = {0};

    if (!reader->in_run)
        return nw_fail(NW_EUSAGE, "%s: the only line is incomplete; nothing was measured",
                       reader->what);
    nw_rc rc = nw_findings_add(&list, NW_FINDING_WARN, "torn-line", reader->what,
                               "bench --resume goes on from the last whole line",
                               "the last line is incomplete (the writer was stopped in mid-write) "
                               "and was left out");

    if (rc == NW_OK && visitor->on_finding != NULL)
        rc = visitor->on_finding(visitor->user, &list.items[0], &reader->place);
    nw_findings_free(&list);
    return rc;
}

static bool is_blank(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (strchr(" \t\r", line[i]) == NULL || line[i] == '\0')
            return false;
    return true;
}

static nw_rc read_line(struct reader *reader, const struct line *line)
{
    const struct nw_results_visitor *visitor = reader->visitor;
    struct nw_record record;
    json_error_t error;

    reader->place.line++;
    reader->place.offset = line->offset;
    reader->place.length = line->length;
    reader->place.text = line->text;
    if (reader->in_run && line->whole &&
        nw_record_scan(line->text, line->length, visitor->brief, &record))
        return hand_on(reader, &record);
    where(reader);
    if (is_blank(line->text, line->length))
        return NW_OK;
    json_t *json = json_loadb(line->text, line->length, JSON_REJECT_DUPLICATES, &error);

    if (json == NULL && reader->place.line == 1 && line->text[0] == '{' &&
        is_blank(line->text + 1, line->length - 1))
        return nw_fail(NW_EUSAGE,
                       "%s: a JSON document over several lines; a results file has one object a "
                       "line. The topology of a machine is none: audit takes it with --topo",
                       reader->place.path);
    if (json == NULL)
        return line->whole ? nw_fail(NW_EUSAGE, "%s: not valid JSON at column %d: %s", reader->what,
                                     error.column, error.text)
                           : note_torn(reader);
    const nw_rc rc = read_object(reader, json);

    json_decref(json);
    return rc;
}

static nw_rc read_lines(struct source *source, const struct nw_results_visitor *visitor)
{
    struct reader reader = {.visitor = visitor, .place = {.path = source->path}};
    struct line line;

    while (true) {
        NW_TRY(next_line(source, &line));
        if (line.text == NULL)
            break;
        NW_TRY(read_line(&reader, &line));
    }
    if (!reader.in_run)
        return nw_fail(NW_EUSAGE,
                       "%s: %s; expected a results file: one JSON object a line, the first of kind "
                       "\"context\"",
                       source->path, reader.place.line == 0 ? "is empty" : "has only blank lines");
    return NW_OK;
}

nw_rc nw_results_each_data(const char *data, size_t length, const char *path,
                           const struct nw_results_visitor *visitor)
{
    /* Never written to: there is nothing to read behind. */
    struct source source = {.path = path, .fd = -1, .data = (char *)data, .end = length};

    return read_lines(&source, visitor);
}

static nw_rc read_file(const char *path, int fd, const struct nw_results_visitor *visitor)
{
    struct source source = {.path = path, .fd = fd};
    struct stat status;

    if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode))
        return nw_fail(NW_EUSAGE, "%s: is a directory; give a file", path);
    const nw_rc rc = read_lines(&source, visitor);

    free(source.data);
    return rc;
}

nw_rc nw_results_each(const char *path, const struct nw_results_visitor *visitor)
{
    if (strcmp(path, "-") == 0)
        return read_file("stdin", STDIN_FILENO, visitor);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return nw_fail(NW_EIO, "%s: cannot open for reading: %s", path, strerror(errno));
    const nw_rc rc = read_file(path, fd, visitor);

    close(fd);
    return rc;
}
