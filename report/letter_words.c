#include "report/letter_words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

static const struct nw_words chinese[] = {
#define WORDS(english, other) {english, other},
#include "zh_CN.inc"
#undef WORDS
};

static const struct nw_language languages[] = {
    {"en", "English", NULL, 0, "; "},
    {"zh", "\xE4\xB8\xAD\xE6\x96\x87", chinese, sizeof chinese / sizeof chinese[0], "\xEF\xBC\x9B"},
};
enum { LANGUAGES = sizeof languages / sizeof languages[0] };

nw_rc nw_language_find(const char *key, const struct nw_language **language_out)
{
    const char *names[LANGUAGES + 1] = {NULL};
    char accepted[64];

    for (size_t i = 0; i < LANGUAGES; i++) {
        if (strcmp(languages[i].key, key) == 0) {
            *language_out = &languages[i];
            return NW_OK;
        }
        names[i] = languages[i].key;
    }
    nw_join_names(accepted, sizeof accepted, names);
    return nw_fail(NW_EUSAGE, "there is no letter in \"%.40s\"; accepted: %s", key, accepted);
}

const char *nw_words(const struct nw_language *language, const char *text)
{
    for (size_t i = 0; i < language->count; i++)
        if (strcmp(language->words[i].english, text) == 0 && language->words[i].other[0] != '\0')
            return language->words[i].other;
    return text;
}

/* ---- sentences by their form -------------------------------------------------------------------
 */

enum { MAX_PARTS = 8, MAX_DEPTH = 3 };

struct part { /* what a "%s" stands for */
    const char *start;
    size_t length;
};

/* Does the form fit all of the text? Each part ends where the form's next words stand first, the
 * last one where the text's end fits: that finds a fit where there is one. */
static bool fits(const char *form, const char *text, struct part *parts)
{
    const char *mark = strstr(form, "%s");
    size_t head = mark != NULL ? (size_t)(mark - form) : strlen(form);

    if (strncmp(form, text, head) != 0)
        return false;
    text += head;
    for (size_t count = 0; mark != NULL; count++) {
        const char *words = mark + 2, *found;
        char literal[512];

        mark = strstr(words, "%s");
        head = mark != NULL ? (size_t)(mark - words) : strlen(words);
        if (text[0] == '\0' || count == MAX_PARTS || head >= sizeof literal)
            return false;
        snprintf(literal, sizeof literal, "%.*s", (int)head, words);
        if (mark == NULL) {
            const size_t left = strlen(text);

            found = left > head ? text + left - head : text;
            if (left <= head || strcmp(found, literal) != 0)
                return false;
        } else {
            found = strstr(text + 1, literal);
        }
        if (found == NULL)
            return false;
        parts[count] = (struct part){text, (size_t)(found - text)};
        if (memmem(text, parts[count].length, "; ", 2) != NULL || found[-1] == ';')
            return false; /* sentences of their own: nw_words_say takes them one by one */
        text = found + head;
    }
    return *text == '\0';
}

static size_t literal_length(const char *form)
{
    size_t length = strlen(form);

    for (const char *mark = strstr(form, "%s"); mark != NULL; mark = strstr(mark + 2, "%s"))
        length -= 2;
    return length;
}

struct out {
    char *text;
    size_t size, used;
};

static void put(struct out *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length && out->used + 1 < out->size; i++)
        out->text[out->used++] = text[i];
    out->text[out->used] = '\0';
}

static void say(const struct nw_language *language, const char *text, size_t length,
                struct out *out, int depth);

static void fill(const struct nw_language *language, const char *form, const struct part *parts,
                 struct out *out, int depth)
{
    size_t next = 0;

    for (; *form != '\0'; form++) {
        size_t index = next, skip = 2;

        if (form[0] == '%' && isdigit((unsigned char)form[1]) && form[2] == '$' && form[3] == 's') {
            index = (size_t)(form[1] - '1');
            skip = 4;
        } else if (form[0] != '%' || form[1] != 's') {
            put(out, form, 1);
            continue;
        }
        if (index < MAX_PARTS && parts[index].start != NULL)
            say(language, parts[index].start, parts[index].length, out, depth + 1);
        next = index + 1;
        form += skip - 1;
    }
}

/* A form of few words of its own ("%s by %s") fits many a sentence by chance: its parts are short.
 */
static bool is_likely(size_t literal, const struct part *parts)
{
    enum { FEW = 8, SHORT = 24 };

    for (size_t i = 0; literal < FEW && i < MAX_PARTS && parts[i].start != NULL; i++)
        if (parts[i].length > SHORT)
            return false;
    return true;
}

/* The entry whose form fits and says most by itself; an exact one says most of all. */
static const struct nw_words *find(const struct nw_language *language, const char *text,
                                   struct part *parts)
{
    const struct nw_words *best = NULL;
    size_t most = 0;

    for (size_t i = 0; i < language->count; i++) {
        const struct nw_words *words = &language->words[i];
        struct part found[MAX_PARTS] = {{NULL, 0}};
        const size_t literal = literal_length(words->english);

        if (words->english[0] == '\0' || words->other[0] == '\0' || literal <= most ||
            literal > strlen(text) || !fits(words->english, text, found) ||
            !is_likely(literal, found))
            continue;
        best = words;
        most = literal;
        memcpy(parts, found, sizeof found);
    }
    return best;
}

/* Reasons are parts joined by "; ", and what was found may carry " (simulated)". */
static bool say_parts(const struct nw_language *language, const char *text, struct out *out,
                      int depth)
{
    const char *joint = strstr(text, "; ");

    if (joint == NULL)
        return false;
    say(language, text, (size_t)(joint - text), out, depth + 1);
    put(out, language->joint, strlen(language->joint));
    say(language, joint + 2, strlen(joint + 2), out, depth);
    return true;
}

static void say(const struct nw_language *language, const char *text, size_t length,
                struct out *out, int depth)
{
    char sentence[1500];
    struct part parts[MAX_PARTS] = {{NULL, 0}};

    if (language->words == NULL || depth > MAX_DEPTH || length >= sizeof sentence) {
        put(out, text, length);
        return;
    }
    memcpy(sentence, text, length);
    sentence[length] = '\0';
    const struct nw_words *words = find(language, sentence, parts);

    if (words != NULL)
        fill(language, words->other, parts, out, depth);
    else if (!say_parts(language, sentence, out, depth))
        put(out, sentence, length);
}

const char *nw_words_say(const struct nw_language *language, const char *sentence, char *out,
                         size_t size)
{
    struct out text = {out, size, 0};

    out[0] = '\0';
    say(language, sentence, strlen(sentence), &text, 0);
    return out;
}
