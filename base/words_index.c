#include "base/words_index.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/words_form.h"

/* Forms that begin with words stand by their first byte, others by their last one, the rest behind.
 */
enum { BY_FIRST = 0, BY_LAST = 256, BY_NOTHING = 512, BUCKETS = 513 };

struct form {
    const struct nw_words *words;
    size_t literal;    /* bytes of its own: the form that says most is taken */
    size_t head, tail; /* how many stand before the first and behind the last directive */
    const char *tail_text;
};

struct nw_words_index {
    struct form *forms; /* by bucket; in it the one that says most first */
    size_t starts[BUCKETS + 1];
    const struct nw_words **slots; /* open addressing */
    size_t slot_count;             /* a power of two */
};

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

static struct form form_of(const struct nw_words *words)
{
    const char *text = words->english, *tail = text;
    struct form form = {.words = words, .literal = nw_form_literal(text)};

    form.head = strcspn(text, "%");
    for (const char *at = text; *at != '\0';) {
        const struct nw_directive directive = nw_directive_at(at);

        at += directive.length > 0 ? directive.length : 1;
        if (directive.length > 0) /* also behind "%%", which is one byte of the text */
            tail = at;
    }
    form.tail_text = tail;
    form.tail = strlen(tail);
    return form;
}

static size_t bucket_of(const struct form *form)
{
    if (form->head > 0)
        return BY_FIRST + (unsigned char)form->words->english[0];
    if (form->tail > 0)
        return BY_LAST + (unsigned char)form->tail_text[form->tail - 1];
    return BY_NOTHING;
}

static int compare_forms(const void *left, const void *right)
{
    const struct form *a = left, *b = right;
    const size_t of_a = bucket_of(a), of_b = bucket_of(b);

    if (of_a != of_b)
        return of_a < of_b ? -1 : 1;
    if (a->literal != b->literal)
        return a->literal > b->literal ? -1 : 1;
    return strcmp(a->words->english, b->words->english);
}

static void insert(struct nw_words_index *index, const struct nw_words *words)
{
    size_t at = hash_of(words->english) & (index->slot_count - 1);

    while (index->slots[at] != NULL)
        at = (at + 1) & (index->slot_count - 1);
    index->slots[at] = words;
}

struct nw_words_index *nw_words_index_new(const struct nw_words *words, size_t count)
{
    struct nw_words_index *index = calloc(1, sizeof *index);
    size_t used = 0, bucket = 0;

    if (index == NULL)
        return NULL;
    index->slot_count = 16;
    while (index->slot_count < 2 * count)
        index->slot_count *= 2;
    index->forms = calloc(count + 1, sizeof *index->forms);
    index->slots = calloc(index->slot_count, sizeof(*index->slots));
    if (index->forms == NULL || index->slots == NULL) {
        nw_words_index_free(index);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (words[i].english[0] == '\0' || words[i].other[0] == '\0')
            continue;
        insert(index, &words[i]);
        index->forms[used++] = form_of(&words[i]);
    }
    qsort(index->forms, used, sizeof *index->forms, compare_forms);
    for (size_t i = 0; i < used; i++)
        while (bucket <= bucket_of(&index->forms[i]))
            index->starts[bucket++] = i;
    while (bucket <= BUCKETS)
        index->starts[bucket++] = used;
    return index;
}

void nw_words_index_free(struct nw_words_index *index)
{
    if (index == NULL)
        return;
    free(index->forms);
    free(index->slots);
    free(index);
}

const struct nw_words *nw_words_exact(const struct nw_words_index *index, const char *text)
{
    size_t at = hash_of(text) & (index->slot_count - 1);

    for (; index->slots[at] != NULL; at = (at + 1) & (index->slot_count - 1))
        if (strcmp(index->slots[at]->english, text) == 0)
            return index->slots[at];
    return NULL;
}

/* ---- a sentence by its form ----------------------------------------------------------------- */

struct found {
    const struct nw_words *words;
    size_t literal, count;
    struct nw_part parts[NW_FORM_PARTS];
};

struct saying {
    const struct nw_words_index *index;
    const struct nw_language *language;
    char *out;
    size_t size, used;
    int budget;   /* look-ups that are left, */
    int tries;    /* and tries of a form: a hostile text costs no more */
    bool in_list; /* between commas: all of them are taken for such */
};

/* A form of few words of its own ("%s by %s") fits many a sentence by chance: its parts are short
 * and no lists, and one of two letters joins figures ("63.0 of 126"). */
static bool is_likely(const struct form *form, const struct nw_part *parts, size_t count)
{
    enum { FEW = 12, SHORT = 24, VERY_FEW = 6 };

    for (size_t i = 0; form->literal < VERY_FEW && count > 1 && i < count; i++)
        if (parts[i].is_text &&
            (parts[i].length == 0 || strchr("0123456789?<>+-", parts[i].start[0]) == NULL))
            return false;
    for (size_t i = 0; form->literal < FEW && i < count; i++)
        if (parts[i].length > SHORT || memmem(parts[i].start, parts[i].length, ": ", 2) != NULL ||
            memmem(parts[i].start, parts[i].length, ", ", 2) != NULL)
            return false;
    return true;
}

/* Sentences of their own: they are taken one by one. */
static bool holds_sentences(const struct nw_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memmem(parts[i].start, parts[i].length, "; ", 2) != NULL)
            return true;
    return false;
}

static void search_bucket(struct saying *to, size_t bucket, const char *text, size_t length,
                          bool strict, struct found *best)
{
    const struct nw_words_index *index = to->index;

    for (size_t i = index->starts[bucket]; i < index->starts[bucket + 1]; i++) {
        const struct form *form = &index->forms[i];
        struct nw_part parts[NW_FORM_PARTS];
        size_t count = 0;

        if (form->literal <= best->literal)
            return;
        if (form->literal > length || memcmp(form->words->english, text, form->head) != 0 ||
            memcmp(form->tail_text, text + length - form->tail, form->tail) != 0 ||
            !nw_form_fits(form->words->english, text, length, parts, &count, &to->tries) ||
            !is_likely(form, parts, count) || (strict && holds_sentences(parts, count)))
            continue;
        *best = (struct found){.words = form->words, .literal = form->literal, .count = count};
        memcpy(best->parts, parts, count * sizeof *parts);
        return;
    }
}

/* The entry whose form fits and says most by itself; an exact one says most of all. */
static bool find(struct saying *to, const char *text, size_t length, bool strict,
                 struct found *found)
{
    *found = (struct found){.words = NULL};
    if (length == 0)
        return false;
    search_bucket(to, BY_FIRST + (unsigned char)text[0], text, length, strict, found);
    search_bucket(to, BY_LAST + (unsigned char)text[length - 1], text, length, strict, found);
    search_bucket(to, BY_NOTHING, text, length, strict, found);
    return found->words != NULL;
}

static void put(struct saying *to, const char *text, size_t length)
{
    if (to->used + length >= to->size)
        length = to->size - 1 - to->used;
    memcpy(to->out + to->used, text, length);
    to->used += length;
    to->out[to->used] = '\0';
}

static void say(struct saying *to, const char *text, size_t length, int depth);

static void put_part(struct saying *to, const struct nw_directive *directive,
                     const struct found *found, size_t part, int depth)
{
    if (part >= found->count || (directive->kind == 's' && directive->precision == 0))
        return;
    if (found->parts[part].is_text)
        say(to, found->parts[part].start, found->parts[part].length, depth + 1);
    else
        put(to, found->parts[part].start, found->parts[part].length);
}

static void fill(struct saying *to, const struct found *found, int depth)
{
    size_t next = 0;

    for (const char *form = found->words->other; *form != '\0';) {
        const struct nw_directive directive = nw_directive_at(form);

        if (directive.length == 0 || directive.kind == '%') {
            put(to, form, 1);
        } else {
            if (directive.position > 0)
                next = (size_t)directive.position - 1;
            put_part(to, &directive, found, next++, depth);
        }
        form += directive.length > 0 ? directive.length : 1;
    }
}

/* Two sentences with `mark` between. Only where the first one is known: a name may have any mark.
 */
static bool say_two(struct saying *to, const char *text, size_t length, const char *mark,
                    const char *mark_out, int depth)
{
    const char *at = memmem(text, length, mark, strlen(mark));
    struct found found;

    if (at == NULL || at == text || to->budget-- <= 0)
        return false;
    const char *rest = at + strlen(mark);
    const size_t first = (size_t)(at - text), left = length - first - strlen(mark);

    if (find(to, text, first, true, &found))
        fill(to, &found, depth);
    else if (to->in_list || find(to, rest, left, true, &found) ||
             memmem(rest, left, mark, strlen(mark)))
        say(to, text, first, depth + 1);
    else
        return false;
    put(to, mark_out, strlen(mark_out));
    to->in_list = *mark == ',';
    say(to, rest, left, depth);
    return true;
}

static void say(struct saying *to, const char *text, size_t length, int depth)
{
    enum { MAX_DEPTH = 8, MANY = 16 };
    const struct nw_language *language = to->language;
    struct found found;

    if (length < 2 || length >= NW_WORDS_LONGEST || depth > MAX_DEPTH || to->budget-- <= 0) {
        put(to, text, length);
        return;
    }
    /* A form of many words holds sentences of others rather than being a part of them. */
    if (find(to, text, length, true, &found) ||
        (find(to, text, length, false, &found) && found.literal >= MANY)) {
        fill(to, &found, depth);
        return;
    }
    if (say_two(to, text, length, "; ", language->semicolon, depth))
        return;
    if (find(to, text, length, false, &found)) {
        fill(to, &found, depth);
        return;
    }
    if (say_two(to, text, length, ". ", language->stop, depth) ||
        say_two(to, text, length, ": ", language->colon, depth) ||
        say_two(to, text, length, ", ", language->comma, depth))
        return;
    put(to, text, length);
}

void nw_words_translate(const struct nw_words_index *index, const struct nw_language *language,
                        const char *sentence, char *out, size_t size)
{
    enum { LOOK_UPS = 200, TRIES = 300000 };
    struct saying to = {.index = index,
                        .language = language,
                        .out = out,
                        .size = size,
                        .budget = LOOK_UPS,
                        .tries = TRIES};

    out[0] = '\0';
    say(&to, sentence, strlen(sentence), 0);
    if (to.used + 1 >= size)
        nw_trim_torn_utf8(out);
}
