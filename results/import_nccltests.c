#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "results/nccltests.h"

/* How far into a run the log is. A line that belongs to an earlier part begins the next run. */
enum part { PART_NONE, PART_TITLE, PART_OPTIONS, PART_RANKS, PART_HEADER, PART_ROWS, PART_FOOTER };

struct walk {
    struct nw_nt_request request;
    struct nw_results *results;
    struct nw_nt_run run;      /* the open one; part NONE: none is open */
    struct nw_nt_facts before; /* said before the next run begins */
    enum part part;
    bool version_seen, start_seen, devices_seen; /* in this run */
    size_t line;
    bool whole; /* the line ends with a newline */
};

static nw_rc close_run(struct walk *walk)
{
    if (walk->part == PART_NONE)
        return NW_OK;
    struct nw_run *out = nw_results_add_run(walk->results);

    if (out == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for a run", walk->request.path);
    walk->part = PART_NONE;
    return nw_nt_judge_run(&walk->run, &walk->request, out);
}

/* Opens a run whose next line is of `part`, unless the open one can take it. */
static nw_rc enter(struct walk *walk, enum part part, bool repeated)
{
    if (walk->part == PART_NONE || walk->part > part || repeated) {
        NW_TRY(close_run(walk));
        nw_nt_run_init(&walk->run);
        walk->run.facts = walk->before;
        walk->before = (struct nw_nt_facts){0};
        walk->run.first_line = walk->line;
        walk->version_seen = walk->start_seen = walk->devices_seen = false;
    }
    walk->part = part;
    return NW_OK;
}

/* Facts of the open run, or, behind its table, of the next. */
static struct nw_nt_facts *facts(struct walk *walk)
{
    return walk->part == PART_NONE || walk->part == PART_FOOTER ? &walk->before : &walk->run.facts;
}

static void name_collective(struct nw_nt_facts *to, const char *name, size_t line)
{
    strcpy(to->collective, name);
    to->collective_line = line;
}

/* --- one function a kind of line; `text` stands behind the '#', if there is one --- */

static nw_rc take_version(struct walk *walk, struct nw_slice text)
{
    struct nw_imp_words words;

    NW_TRY(enter(walk, PART_TITLE, walk->part == PART_TITLE && walk->version_seen));
    walk->version_seen = true;
    nw_imp_split(text, &words); /* "nccl-tests version 2.17.6 nccl-headers=22807 …" */
    nw_imp_copy(walk->run.tool, sizeof walk->run.tool, words.word[0]);
    if (words.count > 2)
        nw_imp_copy(walk->run.tool_version, sizeof walk->run.tool_version, words.word[2]);
    return NW_OK;
}

static nw_rc take_start(struct walk *walk, struct nw_slice text)
{
    char name[sizeof walk->run.facts.collective];

    NW_TRY(enter(walk, PART_TITLE, walk->part == PART_TITLE && walk->start_seen));
    walk->start_seen = true;
    if (nw_nt_collective_name(text, name, sizeof name))
        name_collective(&walk->run.facts, name, walk->line);
    return NW_OK;
}

static nw_rc take_options(struct walk *walk, struct nw_slice text)
{
    NW_TRY(enter(walk, PART_OPTIONS, walk->part == PART_OPTIONS));
    nw_nt_options_line(&walk->run, text);
    return NW_OK;
}

/* "Reducing maxBytes to 12345 due to memory limitation" */
static nw_rc take_reduced(struct walk *walk, struct nw_slice text)
{
    struct nw_imp_words words;
    uint64_t bytes;

    nw_imp_split(text, &words);
    if (walk->part != PART_NONE && words.count > 3 && nw_imp_u64(words.word[3], &bytes))
        walk->run.max_bytes = bytes;
    return NW_OK;
}

static nw_rc take_devices(struct walk *walk, struct nw_slice text)
{
    (void)text;
    NW_TRY(enter(walk, PART_RANKS, walk->part == PART_RANKS && walk->devices_seen));
    walk->devices_seen = true;
    return NW_OK;
}

static nw_rc take_rank(struct walk *walk, struct nw_slice text)
{
    struct nw_nt_rank rank;

    if (!nw_nt_parse_rank(text, &rank))
        return NW_OK;
    /* Behind a list that something else has ended stands another run's. */
    NW_TRY(enter(walk, PART_RANKS,
                 walk->part == PART_RANKS && walk->run.ranks_closed && walk->run.rank_lines > 0));
    return nw_nt_add_rank(&walk->run, &rank, walk->line);
}

static nw_rc take_header(struct walk *walk, struct nw_slice text)
{
    struct nw_nt_layout layout;

    if (!nw_nt_header(text, &layout))
        return NW_OK;
    NW_TRY(enter(walk, PART_HEADER, false));
    walk->run.ranks_closed = true;
    walk->run.layout = layout;
    return NW_OK;
}

static nw_rc take_bounds(struct walk *walk, struct nw_slice text)
{
    const char *colon = memchr(text.at, ':', text.length);
    struct nw_imp_words words;
    uint64_t count;

    if (walk->part == PART_NONE || colon == NULL)
        return NW_OK;
    walk->part = PART_FOOTER;
    nw_imp_split((struct nw_slice){colon + 1, text.length - (size_t)(colon + 1 - text.at)}, &words);
    if (words.count > 0 && nw_imp_u64(words.word[0], &count)) {
        walk->run.out_of_bounds = (int64_t)count;
        walk->run.out_of_bounds_line = walk->line;
    }
    return NW_OK;
}

static nw_rc take_average(struct walk *walk, struct nw_slice text)
{
    const char *colon = memchr(text.at, ':', text.length);
    struct nw_imp_words words;

    if (walk->part == PART_NONE || colon == NULL)
        return NW_OK;
    walk->part = PART_FOOTER;
    walk->run.ended = true;
    nw_imp_split((struct nw_slice){colon + 1, text.length - (size_t)(colon + 1 - text.at)}, &words);
    if (walk->whole && words.count > 0)
        nw_imp_number(words.word[0], 9, &walk->run.average);
    walk->run.average_line = walk->line;
    return NW_OK;
}

static nw_rc take_failure(struct walk *walk, struct nw_slice text)
{
    if (walk->part != PART_NONE)
        nw_nt_mishap(&walk->run.failure, walk->line, text);
    return NW_OK;
}

/* Launchers report failed processes behind the output: of a run that ended, or that did not. */
static nw_rc take_exit(struct walk *walk, struct nw_slice text)
{
    if (walk->part != PART_NONE)
        nw_nt_mishap(walk->run.ended ? &walk->run.exit_status : &walk->run.failure, walk->line,
                     text);
    return NW_OK;
}

static const struct {
    const char *starts;
    nw_rc (*take)(struct walk *walk, struct nw_slice text);
    bool may_be_cut; /* taken from a last line without newline, too */
} kinds[] = {
    {"Rank ", take_rank, false},
    {"size", take_header, false},
    {"nThread ", take_options, false},
    {"nccl-tests version ", take_version, false},
    {"rccl-tests version ", take_version, false},
    {"Collective test starting: ", take_start, false},
    {"Using devices", take_devices, false},
    {"Reducing maxBytes to ", take_reduced, false},
    {"Out of bounds values ", take_bounds, false},
    {"Avg bus bandwidth ", take_average, true},
    {"mpirun noticed", take_exit, true},
    {"mpirun detected", take_exit, true},
    {"prterun detected", take_exit, true},
    {"prterun noticed", take_exit, true},
    {"Primary job ", take_exit, true},
    {"srun: error:", take_exit, true},
    {"slurmstepd: error:", take_exit, true},
    {"Segmentation fault", take_failure, true},
};

/* Is it one of the lines above? Then it is dealt with. */
static nw_rc take_known(struct walk *walk, struct nw_slice text, bool *known_out)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (text.at[0] != kinds[i].starts[0] || !nw_imp_starts(text, kinds[i].starts))
            continue;
        *known_out = true;
        return walk->whole || kinds[i].may_be_cut ? kinds[i].take(walk, text) : NW_OK;
    }
    *known_out = false;
    return NW_OK;
}

/* --- rows --- */

static nw_rc keep_row(struct walk *walk, const struct nw_nt_row *row)
{
    struct nw_nt_run *run = &walk->run;

    if (run->row_count == run->row_capacity) {
        const size_t capacity = run->row_capacity > 0 ? 2 * run->row_capacity : 64;
        struct nw_nt_row *rows = realloc(run->rows, capacity * sizeof *rows);

        if (rows == NULL)
            return nw_fail(NW_ENOMEM, "%s:%zu: no memory for a row", walk->request.path,
                           walk->line);
        run->rows = rows;
        run->row_capacity = capacity;
    }
    run->rows[run->row_count] = *row;
    run->rows[run->row_count++].line = walk->line;
    return NW_OK;
}

/* A row, perhaps behind a prefix that nobody foresaw. `last_word_cut`: of a line without newline.
 */
static nw_rc take_row(struct walk *walk, struct nw_imp_words *words, struct nw_slice text, int at)
{
    struct nw_nt_layout layout = walk->run.layout;
    struct nw_nt_row row;
    const char *why;

    if (walk->part == PART_FOOTER || walk->part == PART_NONE) {
        layout = walk->part == PART_FOOTER ? layout : (struct nw_nt_layout){0};
        NW_TRY(enter(walk, PART_HEADER, false));
        walk->run.layout = layout;
    }
    if (!walk->whole) {
        walk->run.torn = true;
        words->count--;
        if (!walk->run.layout.known || !nw_nt_is_row(words, at))
            return NW_OK;
    }
    walk->part = PART_ROWS;
    walk->run.ranks_closed = true;
    if (!nw_nt_read_row(words, at, &walk->run.layout, !walk->whole, &row, &why)) {
        if (walk->run.unreadable.count == 0)
            nw_nt_mishap(&walk->run.unreadable, walk->line, (struct nw_slice){why, strlen(why)});
        else
            walk->run.unreadable.count++;
        (void)text;
        return NW_OK;
    }
    return keep_row(walk, &row);
}

/* A row begins with two numbers and a type; a prefix of up to this many words may stand before. */
enum { PREFIX_WORDS = 5 };

static nw_rc take_if_row(struct walk *walk, struct nw_slice text, bool *is_row_out)
{
    struct nw_imp_words words;

    *is_row_out = false;
    nw_imp_split(text, &words);
    for (int at = 0; at <= PREFIX_WORDS && at + 3 < words.count; at++) {
        if (!nw_nt_is_row(&words, at))
            continue;
        *is_row_out = true;
        return take_row(walk, &words, text, at);
    }
    return NW_OK;
}

static void take_elision(struct walk *walk, struct nw_slice text)
{
    /* In the list of ranks the numbers tell. */
    if (walk->part == PART_HEADER || walk->part == PART_ROWS)
        nw_nt_mishap(&walk->run.elided, walk->line, text);
}

/* Everything else: NCCL's own lines, command lines, failures. */
static nw_rc take_other(struct walk *walk, struct nw_slice text)
{
    char name[sizeof walk->run.facts.collective];
    bool known;

    if (!walk->whole)
        return NW_OK;
    /* Behind a prefix: "node1 | # nThread …" */
    const struct nw_slice head = {text.at, text.length < 120 ? text.length : 120};
    const char *hash = memchr(head.at, '#', head.length);

    if (hash != NULL && hash > text.at && (hash[-1] == ' ' || hash[-1] == ':')) {
        const struct nw_slice rest =
            nw_imp_trim((struct nw_slice){hash + 1, text.length - (size_t)(hash + 1 - text.at)});

        known = false;
        if (rest.length > 0)
            NW_TRY(take_known(walk, rest, &known));
        if (known)
            return NW_OK;
    }
    /* A command behind a table is the next run's; a later one replaces an earlier. */
    struct nw_nt_facts *named = walk->part >= PART_ROWS ? &walk->before : facts(walk);
    const unsigned marks =
        nw_nt_marks(text, named->collective[0] == '\0' || named == &walk->before);

    if (marks & NW_NT_MARK_FAILURE)
        return take_failure(walk, text);
    if ((marks & NW_NT_MARK_WARNING) && walk->part != PART_NONE)
        nw_nt_mishap(&walk->run.warning, walk->line, text);
    if (marks & NW_NT_MARK_NCCL)
        NW_TRY(nw_nt_nccl_line(facts(walk), text));
    if ((marks & NW_NT_MARK_PROGRAM) && nw_nt_collective_name(text, name, sizeof name))
        name_collective(named, name, walk->line);
    return NW_OK;
}

static nw_rc take_line(struct walk *walk, struct nw_slice line)
{
    struct nw_slice text = nw_imp_clean(line);
    bool done = false;

    if (text.length == 0)
        return NW_OK;
    const char first = text.at[0];

    if (first == '#') {
        text = nw_imp_trim((struct nw_slice){text.at + 1, text.length - 1});
        if (text.length == 0) {
            if (walk->whole && walk->part == PART_RANKS)
                walk->run.ranks_closed = true;
            return NW_OK;
        }
        NW_TRY(take_known(walk, text, &done));
        return done ? NW_OK : take_other(walk, text);
    }
    if ((first == '.' || first == '[' || first == '\xE2') && nw_imp_is_elision(text)) {
        take_elision(walk, text);
        return NW_OK;
    }
    if (isalpha((unsigned char)first))
        NW_TRY(take_known(walk, text, &done));
    else
        NW_TRY(take_if_row(walk, text, &done));
    if (!done && isalpha((unsigned char)first) &&
        (walk->part == PART_HEADER || walk->part == PART_ROWS))
        NW_TRY(take_if_row(walk, text, &done));
    return done ? NW_OK : take_other(walk, text);
}

static nw_rc walk_lines(struct walk *walk, const char *data, size_t length)
{
    for (size_t at = 0; at < length;) {
        const char *end = memchr(data + at, '\n', length - at);
        const size_t line_length = end != NULL ? (size_t)(end - data) - at : length - at;

        walk->line++;
        walk->whole = end != NULL;
        NW_TRY(take_line(walk, (struct nw_slice){data + at, line_length}));
        at += line_length + 1;
    }
    return close_run(walk);
}

static nw_rc read_once(const char *data, size_t length, const struct nw_nt_request *request,
                       struct nw_results *results)
{
    struct walk walk = {.request = *request, .results = results};
    const nw_rc rc = walk_lines(&walk, data, length);

    nw_nt_run_free(&walk.run);
    nw_nt_facts_free(&walk.before);
    return rc;
}

/* The collective that all runs from `first` on have which say one, when some run says none; else
 * NULL. */
static const char *common_collective(const struct nw_results *results, size_t first)
{
    const char *common = NULL;
    bool wanted = false;

    for (size_t i = first; i < results->run_count; i++) {
        const struct nw_run *run = &results->runs[i];
        const char *collective = run->record_count > 0 ? run->records[0].collective : NULL;

        if (collective == NULL)
            continue;
        if (strcmp(collective, "unknown") == 0)
            wanted = true;
        else if (common == NULL)
            common = collective;
        else if (strcmp(common, collective) != 0)
            return NULL;
    }
    return wanted ? common : NULL;
}

nw_rc nw_nt_read(const char *data, size_t length, const char *path,
                 const struct nw_import_options *options, struct nw_results *results)
{
    struct nw_nt_request request = {.path = path,
                                    .collective = options != NULL ? options->collective : NULL};
    const size_t first = results->run_count;
    char sibling[24];

    NW_TRY(read_once(data, length, &request, results));
    const char *common = common_collective(results, first);

    if (common == NULL)
        return NW_OK;
    /* Runs of one small size each say too little alone. */
    memcpy(sibling, common, sizeof sibling);
    nw_results_cut(results, first);
    request.sibling = sibling;
    return read_once(data, length, &request, results);
}

/* The column names stand together in no other log; the list of ranks and the options line are those
 * of a run that got no further. A table cut out below its header shows by its rows. */
int nw_nt_recognise(const char *data, size_t length)
{
    enum { LINES = 2000, HEAD = 65536 };
    const struct nw_slice text = {data, length};
    int rows = 0, lines = 0;

    const struct nw_slice head = {data, length < HEAD ? length : HEAD};

    if (nw_imp_find(head, "|    busbw   |") != NULL) /* all_reduce_bench.py's table */
        return 0;
    if (nw_imp_find(text, "algbw") != NULL && nw_imp_find(text, "busbw") != NULL)
        return 100;
    if (nw_imp_find(text, "nThread ") != NULL && nw_imp_find(text, "minBytes ") != NULL)
        return 90;
    if (nw_imp_find(text, "Rank ") != NULL && nw_imp_find(text, "# Using devices") != NULL)
        return 80;
    for (size_t at = 0; at < length && lines < LINES && rows < 2; lines++) {
        const char *end = memchr(data + at, '\n', length - at);
        const size_t line_length = end != NULL ? (size_t)(end - data) - at : length - at;
        struct nw_imp_words words;

        nw_imp_split(nw_imp_clean((struct nw_slice){data + at, line_length}), &words);
        rows += words.count >= 7 && words.count <= 13 && nw_nt_is_row(&words, 0);
        at += line_length + 1;
    }
    return rows >= 2 ? 60 : 0;
}
