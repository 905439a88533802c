#include <math.h>
#include <string.h>

#include "results/nccltests.h"

/* nccl-tests' and rccl-tests' names (src/common.cu, test_typenames). */
static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    {"float", 4},    {"half", 2},     {"bfloat16", 2}, {"double", 8}, {"int8", 1},   {"uint8", 1},
    {"int32", 4},    {"uint32", 4},   {"int64", 8},    {"uint64", 8}, {"f8e4m3", 1}, {"f8e5m2", 1},
    {"fp8_e4m3", 1}, {"fp8_e5m2", 1}, {"char", 1},     {"int", 4},
};

size_t nw_nt_dtype_bytes(struct nw_slice word)
{
    if (word.length == 0)
        return 0;
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (word.at[0] == dtypes[i].name[0] && nw_imp_is(word, dtypes[i].name))
            return dtypes[i].bytes;
    return 0;
}

/* Column of the block that begins at word `from`: 0-based, -1: none of this name before `until`. */
static int column(const struct nw_imp_words *words, int from, int until, const char *const *names)
{
    for (int i = from; i < until; i++)
        for (int k = 0; names[k] != NULL; k++)
            if (nw_imp_is(words->word[i], names[k]))
                return i - from;
    return -1;
}

bool nw_nt_header(struct nw_slice text, struct nw_nt_layout *layout_out)
{
    static const char *const time_names[] = {"time", "cputime", NULL};
    static const char *const algbw_names[] = {"algbw", NULL};
    static const char *const busbw_names[] = {"busbw", NULL};
    static const char *const wrong_names[] = {"#wrong", "wrong", NULL};
    static const char *const error_names[] = {"error", NULL};
    struct nw_nt_layout layout = {.known = true};
    struct nw_imp_words words;

    nw_imp_split(text, &words);
    if (words.count < 6 || !nw_imp_is(words.word[0], "size") ||
        !nw_imp_is(words.word[1], "count") || !nw_imp_is(words.word[2], "type"))
        return false;
    int at = 3;

    if (nw_imp_is(words.word[at], "redop"))
        layout.has_op = true, at++;
    if (at < words.count && nw_imp_is(words.word[at], "root"))
        layout.has_root = true, at++;
    const int first = column(&words, at, words.count, time_names);

    if (first != 0)
        return false;
    const int second = column(&words, at + 1, words.count, time_names);
    int until = words.count;

    if (nw_imp_is(words.word[words.count - 1], "timestamp"))
        layout.has_timestamp = true, until--;
    layout.width = second >= 0 ? second + 1 : until - at;
    until = at + layout.width;
    layout.cpu_time = nw_imp_is(words.word[at], "cputime");
    layout.time = 0;
    layout.algbw = column(&words, at, until, algbw_names);
    layout.busbw = column(&words, at, until, busbw_names);
    layout.check = column(&words, at, until, wrong_names);
    if (layout.check < 0) {
        layout.check = column(&words, at, until, error_names);
        layout.relative_error = layout.check >= 0;
    }
    if (layout.algbw < 0 || layout.busbw < 0)
        return false;
    *layout_out = layout;
    return true;
}

bool nw_nt_is_row(const struct nw_imp_words *words, int at)
{
    uint64_t number;

    return at + 3 < words->count && nw_nt_dtype_bytes(words->word[at + 2]) > 0 &&
           nw_imp_u64(words->word[at], &number) && nw_imp_u64(words->word[at + 1], &number);
}

static bool read_root(struct nw_slice word, int *root)
{
    uint64_t number;

    if (nw_imp_is(word, "-1")) {
        *root = -1;
        return true;
    }
    if (!nw_imp_u64(word, &number) || number > 100000000)
        return false;
    *root = (int)number;
    return true;
}

static bool is_op(struct nw_slice word)
{
    if (word.length >= 16 || nw_imp_is(word, "nan") || nw_imp_is(word, "inf"))
        return false;
    for (size_t i = 0; i < word.length; i++)
        if (!(word.at[i] >= 'a' && word.at[i] <= 'z') && word.at[i] != '_')
            return false;
    return true;
}

/* µs to ns, GB/s to bytes/s. `have` columns of the block are there. */
static bool read_block(const struct nw_slice *word, int have, const struct nw_nt_layout *layout,
                       struct nw_nt_block *block)
{
    const struct nw_printed none = {NAN, NAN};

    *block = (struct nw_nt_block){.check = none};
    if (have <= layout->time || have <= layout->algbw || have <= layout->busbw)
        return true;
    if (!nw_imp_number(word[layout->time], 3, &block->time_ns) ||
        !nw_imp_number(word[layout->algbw], 9, &block->algbw) ||
        !nw_imp_number(word[layout->busbw], 9, &block->busbw))
        return false;
    if (layout->check >= 0 && have > layout->check &&
        !nw_imp_number(word[layout->check], 0, &block->check))
        return false;
    block->present = true;
    return true;
}

static const struct nw_nt_layout headless = {
    .width = 4, .time = 0, .algbw = 1, .busbw = 2, .check = 3};

/* A date and a time of day, as one or two words. */
enum { TIMESTAMP_WORDS = 2 };

bool nw_nt_read_row(const struct nw_imp_words *words, int at, const struct nw_nt_layout *layout,
                    bool cut, struct nw_nt_row *row_out, const char **why_out)
{
    const struct nw_nt_layout *columns = layout->known ? layout : &headless;
    struct nw_nt_row row = {.root = -1};

    nw_imp_u64(words->word[at], &row.bytes);
    nw_imp_u64(words->word[at + 1], &row.count);
    nw_imp_copy(row.dtype, sizeof row.dtype, words->word[at + 2]);
    at += 3;
    if (at < words->count && is_op(words->word[at]))
        nw_imp_copy(row.op, sizeof row.op, words->word[at++]);
    const int left = words->count - at;
    const bool rooted = layout->known ? layout->has_root : left == 5 || left == 9;

    if (rooted && (left < 1 || !read_root(words->word[at++], &row.root))) {
        *why_out = "its root is not a rank";
        return false;
    }
    int have = words->count - at;
    const int extra = layout->has_timestamp ? TIMESTAMP_WORDS : 0;

    if (!cut && have != columns->width &&
        !(have >= 2 * columns->width && have <= 2 * columns->width + extra)) {
        *why_out = "it has another number of columns than the header";
        return false;
    }
    for (int place = 0; place < 2 && have > 0; place++) {
        if (!read_block(&words->word[at], have < columns->width ? have : columns->width, columns,
                        &row.place[place])) {
            *why_out = "a column is not a number";
            return false;
        }
        at += columns->width;
        have -= columns->width;
    }
    *row_out = row;
    return true;
}
