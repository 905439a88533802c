#include "results/merge.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "results/results.h"
#include "results/sink.h"

struct merge {
    FILE *stream;
    struct nw_anonymiser *anonymiser;
    struct nw_merged merged;
    bool context_simulated;       /* of the present run */
    bool any, simulated, passing; /* passing: over a run that stands in an earlier file */
    char first[512];              /* "a.jsonl:1": where the first run begins */
    size_t file;                  /* the present one */
    struct run_of {
        size_t file;
        uint64_t hash; /* of all its lines */
    } * runs;
    size_t run_count, next_run; /* of all files; the second look's */
};

/* ---- first look: names, and whether all are of one kind ----------------------------------------
 */

static nw_rc check_simulated(struct merge *merge, bool simulated,
                             const struct nw_results_place *place)
{
    if (!merge->any) {
        merge->any = true;
        merge->simulated = simulated;
        snprintf(merge->first, sizeof merge->first, "%.480s:%zu", place->path, place->line);
    }
    if (merge->simulated == simulated)
        return NW_OK;
    return nw_fail(
        NW_EUSAGE,
        "%s:%zu is %s, %s is %s: simulated and real results never go into one file. Merge "
        "each kind by itself: nodeworth merge %s --out OTHER.jsonl",
        place->path, place->line, simulated ? "simulated" : "real", merge->first,
        simulated ? "real" : "simulated", place->path);
}

static nw_rc look(struct merge *merge, const struct nw_results_place *place)
{
    if (merge->anonymiser == NULL)
        return NW_OK;
    json_t *json = json_loadb(place->text, place->length, 0, NULL);

    if (json == NULL) /* the reader has taken the line */
        return nw_fail(NW_ENOMEM, "%s:%zu: no memory for this line", place->path, place->line);
    const nw_rc rc = nw_anonymiser_look(merge->anonymiser, json);

    json_decref(json);
    return rc;
}

/* FNV-1a, going on. */
static void hash_line(struct merge *merge, const struct nw_results_place *place)
{
    uint64_t *hash = &merge->runs[merge->run_count - 1].hash;

    for (size_t i = 0; i < place->length; i++)
        *hash = (*hash ^ (unsigned char)place->text[i]) * UINT64_C(1099511628211);
}

static nw_rc begin_run(struct merge *merge, const struct nw_results_place *place)
{
    struct run_of *grown = realloc(merge->runs, (merge->run_count + 1) * sizeof *grown);

    if (grown == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu runs", merge->run_count + 1);
    merge->runs = grown;
    grown[merge->run_count++] = (struct run_of){merge->file, UINT64_C(14695981039346656037)};
    hash_line(merge, place);
    return NW_OK;
}

static nw_rc look_at_context(void *user, struct nw_context *context,
                             const struct nw_results_place *place)
{
    struct merge *merge = user;

    merge->context_simulated = context->simulated;
    NW_TRY(check_simulated(merge, context->simulated, place));
    NW_TRY(begin_run(merge, place));
    return look(merge, place);
}

static nw_rc look_at_record(void *user, struct nw_record *record,
                            const struct nw_results_place *place)
{
    struct merge *merge = user;

    hash_line(merge, place);
    /* a doubled run may hold results of what is real in it, but not the other way round */
    NW_TRY(check_simulated(merge, merge->context_simulated || record->simulated, place));
    if (merge->anonymiser == NULL)
        return NW_OK;
    NW_TRY(nw_anonymiser_host(merge->anonymiser, record->host_a));
    NW_TRY(nw_anonymiser_host(merge->anonymiser, record->host_b));
    return nw_anonymiser_host(merge->anonymiser, record->slowest_host);
}

/* ---- second look: lines ------------------------------------------------------------------------
 */

static nw_rc put_line(const struct merge *merge, const char *text, size_t length)
{
    if (fwrite(text, 1, length, merge->stream) != length || fputc('\n', merge->stream) == EOF)
        return nw_fail(NW_EIO, "cannot write the merged results");
    return NW_OK;
}

static nw_rc put(const struct merge *merge, const char *text, size_t length)
{
    if (merge->anonymiser == NULL)
        return put_line(merge, text, length);
    json_t *json = json_loadb(text, length, 0, NULL);

    if (json == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a line of results");
    nw_rc rc = nw_anonymiser_line(merge->anonymiser, json);
    char *line = rc == NW_OK ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;

    json_decref(json);
    if (rc == NW_OK)
        rc = line != NULL ? put_line(merge, line, strlen(line))
                          : nw_fail(NW_ENOMEM, "no memory for a line of results");
    free(line);
    return rc;
}

/* Line for line the same run in an earlier file. (In one file it was measured twice.) */
static bool stands_earlier(const struct merge *merge, size_t run)
{
    for (size_t i = 0; i < run; i++)
        if (merge->runs[i].file != merge->file && merge->runs[i].hash == merge->runs[run].hash)
            return true;
    return false;
}

static nw_rc put_context(void *user, struct nw_context *context,
                         const struct nw_results_place *place)
{
    struct merge *merge = user;

    (void)context;
    merge->passing = stands_earlier(merge, merge->next_run++);
    merge->merged.again_count += merge->passing;
    merge->merged.run_count += !merge->passing;
    return merge->passing ? NW_OK : put(merge, place->text, place->length);
}

static nw_rc put_record(void *user, struct nw_record *record, const struct nw_results_place *place)
{
    struct merge *merge = user;

    (void)record;
    merge->merged.record_count += !merge->passing;
    return merge->passing ? NW_OK : put(merge, place->text, place->length);
}

/* A torn last line has become a finding: its own text is none. */
static nw_rc put_finding(void *user, const struct nw_finding *finding,
                         const struct nw_results_place *place)
{
    struct merge *merge = user;
    struct nw_text text = {0};

    (void)place;
    if (merge->passing)
        return NW_OK;
    nw_finding_line_write(&text, finding);
    nw_rc rc = nw_text_check(&text);

    if (rc == NW_OK)
        rc = put(merge, text.data, text.length);
    nw_text_free(&text);
    return rc;
}

static nw_rc put_end(void *user)
{
    struct merge *merge = user;
    struct nw_text text = {0};

    if (merge->passing)
        return NW_OK;
    nw_end_line_write(&text);
    nw_rc rc = nw_text_check(&text);

    if (rc == NW_OK)
        rc = put_line(merge, text.data, text.length);
    nw_text_free(&text);
    return rc;
}

static nw_rc merge_all(struct merge *merge, const char *const *paths, size_t count)
{
    const struct nw_results_visitor first = {
        .user = merge, .brief = true, .on_context = look_at_context, .on_record = look_at_record};
    const struct nw_results_visitor second = {.user = merge,
                                              .brief = true,
                                              .on_context = put_context,
                                              .on_record = put_record,
                                              .on_finding = put_finding,
                                              .on_end = put_end};

    for (merge->file = 0; merge->file < count; merge->file++)
        NW_TRY(nw_results_each(paths[merge->file], &first));
    for (merge->file = 0; merge->file < count; merge->file++)
        NW_TRY(nw_results_each(paths[merge->file], &second));
    return NW_OK;
}

nw_rc nw_results_merge(const char *const *paths, size_t count, struct nw_anonymiser *anonymiser,
                       const char *out, struct nw_merged *merged_out)
{
    struct merge merge = {.anonymiser = anonymiser};
    struct nw_atomic_file *file;

    NW_TRY(nw_atomic_open(out, &file));
    merge.stream = nw_atomic_stream(file);
    nw_rc rc = merge_all(&merge, paths, count);

    free(merge.runs);
    if (rc != NW_OK) {
        nw_atomic_abandon(file);
        return rc;
    }
    *merged_out = merge.merged;
    return nw_atomic_commit(file);
}
