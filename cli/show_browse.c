#include "cli/show_browse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "results/import.h"

const char *const nw_order_names[] = {[NW_ORDER_NONE] = "file",   [NW_ORDER_BYTES] = "bytes",
                                      [NW_ORDER_TIME] = "time",   [NW_ORDER_BUSBW] = "busbw",
                                      [NW_ORDER_ALGBW] = "algbw", [NW_ORDER_SKEW] = "skew",
                                      [NW_ORDER_WRONG] = "wrong", NULL};

/* ---- the first by some order: a heap whose root is the last of them
 * ------------------------------
 */

/* Small is early; what has no value comes last. */
static double key_of(const struct nw_browse *browse, const struct nw_record *record)
{
    const double values[] = {
        [NW_ORDER_NONE] = 0,
        [NW_ORDER_BYTES] = (double)record->bytes,
        [NW_ORDER_TIME] = record->time_ns.median,
        [NW_ORDER_BUSBW] = -record->busbw_bytes_per_s,
        [NW_ORDER_ALGBW] = -record->algbw_bytes_per_s,
        [NW_ORDER_SKEW] = -record->skew_ns,
        [NW_ORDER_WRONG] = -(double)record->wrong_elements,
    };
    const double value = values[browse->order];

    if (!isfinite(value))
        return INFINITY;
    return browse->reverse && browse->order != NW_ORDER_NONE ? -value : value;
}

static bool is_before(const struct nw_browse_kept *a, const struct nw_browse_kept *b)
{
    return a->key != b->key ? a->key < b->key : a->sequence < b->sequence;
}

static void swap(struct nw_browse *browse, size_t a, size_t b)
{
    struct nw_browse_kept *const held = browse->kept[a];

    browse->kept[a] = browse->kept[b];
    browse->kept[b] = held;
}

static void sift_up(struct nw_browse *browse, size_t at)
{
    while (at > 0 && is_before(browse->kept[(at - 1) / 2], browse->kept[at])) {
        swap(browse, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

static void sift_down(struct nw_browse *browse)
{
    for (size_t at = 0;;) {
        size_t last = at;

        for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < browse->kept_count && is_before(browse->kept[last], browse->kept[child]))
                last = child;
        if (last == at)
            return;
        swap(browse, at, last);
        at = last;
    }
}

static nw_rc add_kept(struct nw_browse *browse)
{
    if (browse->kept_count == browse->kept_capacity) {
        const size_t capacity = browse->kept_capacity > 0 ? 2 * browse->kept_capacity : 64;
        void *grown = realloc(browse->kept, capacity * sizeof(struct nw_browse_kept *));

        if (grown == NULL)
            return nw_fail(NW_ENOMEM, "no memory for %zu results", capacity);
        browse->kept = grown;
        browse->kept_capacity = capacity;
    }
    struct nw_browse_kept *kept = calloc(1, sizeof *kept);

    if (kept == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu results", browse->kept_count + 1);
    nw_record_init(&kept->record);
    browse->kept[browse->kept_count++] = kept;
    return NW_OK;
}

/* Takes the record's contents over where it is among the first. */
static nw_rc keep(struct nw_browse *browse, struct nw_record *record)
{
    struct nw_browse_kept new = {.key = key_of(browse, record),
                                 .sequence = browse->selected,
                                 .run = (int)browse->contexts.run_count};

    if (browse->kept_count == browse->limit) {
        if (browse->limit == 0 || !is_before(&new, browse->kept[0]))
            return NW_OK;
        nw_record_free(&browse->kept[0]->record);
        new.record = *record;
        nw_record_init(record);
        *browse->kept[0] = new;
        sift_down(browse);
        return NW_OK;
    }
    if (browse->kept_count == NW_BROWSE_KEPT_MAX)
        return nw_fail(NW_EUSAGE,
                       "more than %d results are too many for a table or to be sorted; choose some "
                       "(--cases, --minbytes, --limit …), or take --format csv without --sort",
                       NW_BROWSE_KEPT_MAX);
    NW_TRY(add_kept(browse));
    new.record = *record;
    nw_record_init(record);
    *browse->kept[browse->kept_count - 1] = new;
    if (browse->order != NW_ORDER_NONE)
        sift_up(browse, browse->kept_count - 1);
    return NW_OK;
}

static int by_order(const void *a, const void *b)
{
    const struct nw_browse_kept *left = *(struct nw_browse_kept *const *)a;
    const struct nw_browse_kept *right = *(struct nw_browse_kept *const *)b;

    return is_before(left, right) ? -1 : 1;
}

/* ---- lines of a file ---------------------------------------------------------------------------
 */

static struct nw_context *context_of(const struct nw_browse *browse)
{
    return &browse->contexts.runs[browse->contexts.run_count - 1].context;
}

static struct nw_show_run *run_of(const struct nw_browse *browse)
{
    return &browse->runs[browse->contexts.run_count - 1];
}

static nw_rc end_sink_run(struct nw_browse *browse)
{
    const bool had = browse->sink_has_run;

    browse->sink_has_run = false;
    return had && browse->sink_end != NULL ? browse->sink_end(browse->user, context_of(browse))
                                           : NW_OK;
}

/* What is large of a run that is behind us: topologies of hundreds of runs are no browsing. */
static void forget_parts(struct nw_context *context)
{
    json_t **const parts[] = {&context->topology, &context->binding, &context->plan,
                              &context->lanes,    &context->gpus,    &context->environment};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        json_decref(*parts[i]);
        *parts[i] = NULL;
    }
}

static nw_rc on_context(void *user, struct nw_context *context,
                        const struct nw_results_place *place)
{
    struct nw_browse *browse = user;
    const size_t count = browse->contexts.run_count;

    (void)place;
    NW_TRY(end_sink_run(browse));
    if (count > 0 && !browse->whole_contexts)
        forget_parts(context_of(browse));
    if (count == browse->run_capacity) {
        const size_t capacity = count > 0 ? 2 * count : 4;
        struct nw_show_run *grown = realloc(browse->runs, capacity * sizeof *grown);

        if (grown == NULL)
            return nw_fail(NW_ENOMEM, "no memory for %zu runs", capacity);
        browse->runs = grown;
        browse->run_capacity = capacity;
    }
    struct nw_run *run = nw_results_add_run(&browse->contexts);

    if (run == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu runs", count + 1);
    run->context = *context;
    nw_context_init(context);
    browse->runs[count] = (struct nw_show_run){0};
    return NW_OK;
}

static nw_rc on_record(void *user, struct nw_record *record, const struct nw_results_place *place)
{
    struct nw_browse *browse = user;
    const struct nw_context *context = context_of(browse);
    const int run = (int)browse->contexts.run_count;

    (void)place;
    context_of(browse)->complete = false;
    run_of(browse)->record_count++;
    if ((browse->only_run != 0 && browse->only_run != run) ||
        !nw_select_takes(&browse->select, record, context))
        return NW_OK;
    run_of(browse)->shown_count++;
    browse->selected++;
    if (browse->group)
        NW_TRY(nw_groups_add(&browse->groups, record));
    if (browse->sink != NULL) {
        NW_TRY(browse->sink(browse->user, run, context, record));
        browse->sink_has_run = true;
    }
    return browse->keep ? keep(browse, record) : NW_OK;
}

static nw_rc on_finding(void *user, const struct nw_finding *finding,
                        const struct nw_results_place *place)
{
    struct nw_browse *browse = user;

    (void)place;
    /* A finding ahead of the first selected record goes with the context. */
    if (browse->sink_has_run && browse->sink_finding != NULL)
        NW_TRY(browse->sink_finding(browse->user, finding));
    return nw_findings_copy_one(&context_of(browse)->findings, finding);
}

static nw_rc on_end(void *user)
{
    context_of(user)->complete = true;
    return NW_OK;
}

/* ---- files -------------------------------------------------------------------------------------
 */

/* Ours begin with an object that has a "kind", on one line; everything else is a log. What cannot
 * be read twice (standard input, a pipe) is taken for ours; the reader words what is wrong. */
static bool is_results(const char *path)
{
    char start[16384];
    struct stat status;

    if (strcmp(path, "-") == 0 || stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return true;
    FILE *file = fopen(path, "r");

    if (file == NULL)
        return true;
    const size_t length = fread(start, 1, sizeof start - 1, file);

    fclose(file);
    start[length] = '\0';
    char *first = start + strspn(start, " \t\r\n");

    first[strcspn(first, "\n")] = '\0';

    return *first == '{' && strstr(first, "\"kind\"") != NULL;
}

static nw_rc visit_run(struct nw_browse *browse, struct nw_run *run)
{
    const struct nw_results_place place = {.path = ""};
    const bool complete = run->context.complete;

    NW_TRY(on_context(browse, &run->context, &place));
    for (size_t i = 0; i < run->record_count; i++)
        NW_TRY(on_record(browse, &run->records[i], &place));
    context_of(browse)->complete = complete;
    return NW_OK;
}

static nw_rc browse_log(struct nw_browse *browse, const char *path)
{
    struct nw_results results = {0};
    nw_rc rc = nw_import_file(path, &results);

    for (size_t i = 0; i < results.run_count && rc == NW_OK; i++)
        rc = visit_run(browse, &results.runs[i]);
    nw_results_free(&results);
    return rc;
}

nw_rc nw_browse_file(struct nw_browse *browse, const char *path)
{
    const struct nw_results_visitor visitor = {.user = browse,
                                               .brief = !browse->whole,
                                               .on_context = on_context,
                                               .on_record = on_record,
                                               .on_finding = on_finding,
                                               .on_end = on_end};

    NW_TRY(is_results(path) ? nw_results_each(path, &visitor) : browse_log(browse, path));
    return end_sink_run(browse);
}

nw_rc nw_browse_finish(struct nw_browse *browse)
{
    for (size_t i = 0; i < browse->contexts.run_count; i++)
        browse->runs[i].context = &browse->contexts.runs[i].context;
    if (browse->kept_count > 0)
        qsort(browse->kept, browse->kept_count, sizeof(struct nw_browse_kept *), by_order);
    return nw_groups_finish(&browse->groups);
}

void nw_browse_free(struct nw_browse *browse)
{
    for (size_t i = 0; i < browse->kept_count; i++) {
        nw_record_free(&browse->kept[i]->record);
        free(browse->kept[i]);
    }
    free(browse->kept);
    free(browse->runs);
    nw_groups_free(&browse->groups);
    nw_results_free(&browse->contexts);
}
