#include <stdlib.h>
#include <string.h>

#include "results/iperf3.h"

/* A tree takes some ten times as much memory as its text. An hour of one-second intervals of eight
 * streams is some 8 MB of text. */
#define MAX_JSON_BYTES ((size_t)64 << 20)
/* Depth and size of a result are iperf3's own; so many in a file nobody makes. */
#define MAX_RESULTS 100000

struct walk {
    const char *data, *path;
    size_t length, at;
    struct nw_results *results;
    json_t *open; /* of --json-stream: the result so far */
    size_t open_at;
    size_t count;
    size_t line, line_at; /* number of the line that has data[line_at] */
    bool objects_only;    /* what began with a bracket was no JSON but a line of a log */
};

static size_t line_of(struct walk *walk, size_t at)
{
    for (; walk->line_at < at; walk->line_at++)
        walk->line += walk->data[walk->line_at] == '\n';
    return walk->line;
}

static nw_rc add_result(struct walk *walk, const json_t *result, size_t at)
{
    char where[300];

    if (walk->count++ >= MAX_RESULTS)
        return nw_fail(NW_EUSAGE, "%s: has more than %d results", walk->path, MAX_RESULTS);
    snprintf(where, sizeof where, "%s:%zu", walk->path, line_of(walk, at));
    return nw_iperf3_add_run(result, walk->path, where, walk->results);
}

static nw_rc close_stream(struct walk *walk)
{
    nw_rc rc = NW_OK;

    if (walk->open != NULL)
        rc = add_result(walk, walk->open, walk->open_at);
    json_decref(walk->open);
    walk->open = NULL;
    return rc;
}

/* One line of --json-stream: {"event": "start" | "interval" | "end" | "error", "data": …}. */
static nw_rc take_event(struct walk *walk, const char *event, json_t *data, size_t at)
{
    const bool interval = strcmp(event, "interval") == 0;
    int failed = 0;

    if (data == NULL || (!interval && strcmp(event, "start") != 0 && strcmp(event, "end") != 0 &&
                         strcmp(event, "error") != 0))
        return NW_OK; /* what the server printed, and events of later versions */
    if (strcmp(event, "start") == 0)
        NW_TRY(close_stream(walk));
    if (walk->open == NULL) {
        walk->open = json_pack("{s:{}, s:[], s:{}}", "start", "intervals", "end");
        walk->open_at = at;
    }
    if (interval)
        failed = json_array_append(json_object_get(walk->open, "intervals"), data);
    else
        failed = json_object_set(walk->open, event, data);
    return walk->open != NULL && failed == 0
               ? NW_OK
               : nw_fail(NW_ENOMEM, "%s: no memory for a result", walk->path);
}

static nw_rc take_document(struct walk *walk, const json_t *document, size_t at)
{
    const char *event = json_string_value(json_object_get(document, "event"));
    size_t index;
    json_t *item;

    if (event != NULL)
        return take_event(walk, event, json_object_get(document, "data"), at);
    NW_TRY(close_stream(walk));
    if (json_is_object(document))
        return add_result(walk, document, at);
    json_array_foreach(document, index, item) if (json_is_object(item))
        NW_TRY(add_result(walk, item, at));
    return NW_OK;
}

static void skip_line(struct walk *walk)
{
    const char *end = memchr(walk->data + walk->at, '\n', walk->length - walk->at);

    walk->at = end != NULL ? (size_t)(end - walk->data) + 1 : walk->length;
}

/* The next line that begins with a brace or a bracket: what a shell or a server printed between is
 * passed over. */
static bool find_document(struct walk *walk)
{
    while (walk->at < walk->length) {
        const char *text = walk->data + walk->at;
        const size_t blank = strspn(text, " \t\r\n");

        walk->at += blank;
        if (text[blank] == '{' || (text[blank] == '[' && !walk->objects_only))
            return true;
        skip_line(walk);
    }
    return false;
}

/* The writer was killed, or the disk was full: what stands before it is whole. */
static nw_rc tell_torn(struct walk *walk, const json_error_t *error, size_t first_run)
{
    const size_t line = line_of(walk, walk->at);
    char where[300];

    NW_TRY(close_stream(walk));
    if (walk->results->run_count == first_run)
        return nw_fail(NW_EUSAGE, "%s:%zu: is not whole JSON of iperf3: line %d of it: %s",
                       walk->path, line, error->line, error->text);
    snprintf(where, sizeof where, "%s:%zu", walk->path, line);
    return nw_findings_add(&walk->results->runs[walk->results->run_count - 1].context.findings,
                           NW_FINDING_WARN, "torn-line", where,
                           "run iperf3 again if this result matters",
                           "what begins here is not whole JSON and was left out: line %d of it: %s",
                           error->line, error->text);
}

static nw_rc walk_documents(struct walk *walk)
{
    const size_t first_run = walk->results->run_count;
    size_t bracket_line = 0;
    json_error_t bracket = {.line = 0};

    while (find_document(walk)) {
        json_error_t error;
        json_t *document = json_loadb(walk->data + walk->at, walk->length - walk->at,
                                      JSON_DISABLE_EOF_CHECK | JSON_DECODE_INT_AS_REAL, &error);
        nw_rc rc;

        if (document == NULL && walk->data[walk->at] == '[') {
            bracket = error;
            bracket_line = line_of(walk, walk->at);
            walk->objects_only = true; /* and each byte is parsed twice at most */
            skip_line(walk);
            continue;
        }
        if (document == NULL)
            return tell_torn(walk, &error, first_run);
        rc = take_document(walk, document, walk->at);
        json_decref(document);
        NW_TRY(rc);
        walk->at += error.position > 0 ? (size_t)error.position : 1;
    }
    NW_TRY(close_stream(walk));
    if (!walk->objects_only || walk->results->run_count > first_run)
        return NW_OK;
    return nw_fail(NW_EUSAGE, "%s:%zu: is not whole JSON of iperf3: line %d of it: %s", walk->path,
                   bracket_line, bracket.line, bracket.text);
}

static bool has(const char *data, size_t length, const char *word)
{
    return memmem(data, length, word, strlen(word)) != NULL;
}

static bool is_json(const char *data, size_t length)
{
    return memchr(data, '{', length) != NULL && has(data, length, "\"start\"");
}

nw_rc nw_iperf3_read(const char *data, size_t length, const char *path,
                     const struct nw_import_options *options, struct nw_results *results)
{
    (void)options;
    if (!is_json(data, length))
        return nw_iperf3_read_text(data, length, path, results);
    if (length > MAX_JSON_BYTES)
        return nw_fail(
            NW_EUSAGE,
            "%s: has %zu MiB; JSON of iperf3 is read up to %zu MiB; run it with a longer "
            "--interval",
            path, length >> 20, MAX_JSON_BYTES >> 20);
    char *text = malloc(length + 1); /* strspn ends at the zero */

    if (text == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for %zu bytes", path, length);
    memcpy(text, data, length);
    text[length] = '\0';
    struct walk walk = {
        .data = text, .path = path, .length = length, .results = results, .line = 1};
    const nw_rc rc = walk_documents(&walk);

    json_decref(walk.open);
    free(text);
    return rc;
}

int nw_iperf3_recognise(const char *data, size_t length)
{
    enum { HEAD = 65536 }; /* the version stands in the first object */
    const size_t head = length < HEAD ? length : HEAD;

    if (!is_json(data, head))
        return nw_iperf3_is_text(data, length) ? 90 : 0;
    if (has(data, head, "\"iperf 3"))
        return 95;
    /* Excerpts, and errors before the version was written. */
    return has(data, length, "\"intervals\"") && has(data, length, "\"end\"") ? 70 : 0;
}
