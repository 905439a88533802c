#include "base/words.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/words_index.h"

static const struct nw_words chinese[] = {
#define WORDS(english, other) {english, other},
#include "zh_CN.inc"
#undef WORDS
};

static const struct nw_language languages[] = {
    {"en", "English", NULL, 0, "; ", ". ", ": ", ", "},
    {"zh", "中文", chinese, sizeof chinese / sizeof chinese[0], "；", "。", "：", "，"},
};
enum { LANGUAGES = sizeof languages / sizeof languages[0] };

/* Set once, as a locale is. */
static const struct nw_language *spoken = &languages[0];
static struct nw_words_index *indexes[LANGUAGES];
static pthread_once_t indexed = PTHREAD_ONCE_INIT;

static void make_indexes(void)
{
    for (size_t i = 0; i < LANGUAGES; i++)
        if (languages[i].words != NULL)
            indexes[i] = nw_words_index_new(languages[i].words, languages[i].count);
}

/* NULL: English, or no memory for it: then all stays English. */
static const struct nw_words_index *index_of(const struct nw_language *language)
{
    if (language->words == NULL)
        return NULL;
    pthread_once(&indexed, make_indexes);
    return indexes[language - languages];
}

const char *nw_language_names(char *text, size_t size)
{
    const char *names[LANGUAGES + 1] = {NULL};

    for (size_t i = 0; i < LANGUAGES; i++)
        names[i] = languages[i].key;
    return nw_join_names(text, size, names);
}

nw_rc nw_language_find(const char *key, const struct nw_language **language_out)
{
    char accepted[64];

    for (size_t i = 0; i < LANGUAGES; i++) {
        if (strcmp(languages[i].key, key) == 0) {
            *language_out = &languages[i];
            return NW_OK;
        }
    }
    return nw_fail(NW_EUSAGE, "unknown language \"%.40s\"; accepted: %s", key,
                   nw_language_names(accepted, sizeof accepted));
}

/* The language of "zh_CN.UTF-8"; NULL: none of ours. Traditional characters are another language.
 */
static const struct nw_language *language_of_locale(const char *locale, size_t length)
{
    static const char *const traditional[] = {"zh_TW", "zh_HK", "zh_MO", "zh_Hant"};

    for (size_t i = 0; i < sizeof traditional / sizeof *traditional; i++)
        if (length >= strlen(traditional[i]) &&
            strncmp(locale, traditional[i], strlen(traditional[i])) == 0)
            return NULL;
    for (size_t i = 0; i < LANGUAGES; i++) {
        const size_t key = strlen(languages[i].key);

        if (length >= key && strncmp(locale, languages[i].key, key) == 0 &&
            (length == key || strchr("_.-@", locale[key]) != NULL))
            return &languages[i];
    }
    return NULL;
}

const struct nw_language *nw_language_of_environment(void)
{
    static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    const struct nw_language *found = NULL;
    const char *locale = NULL, *list = getenv("LANGUAGE");

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (locale == NULL || locale[0] == '\0')
            locale = getenv(names[i]);
    if (locale == NULL || locale[0] == '\0' || strcmp(locale, "C") == 0 ||
        strncmp(locale, "C.", 2) == 0 || strcmp(locale, "POSIX") == 0)
        return &languages[0];
    while (list != NULL && *list != '\0' && found == NULL) {
        const size_t length = strcspn(list, ":");

        found = language_of_locale(list, length);
        list += length + (list[length] == ':');
    }
    if (found == NULL)
        found = language_of_locale(locale, strlen(locale));
    return found != NULL ? found : &languages[0];
}

const struct nw_language *nw_speak(const struct nw_language *language)
{
    const struct nw_language *before = spoken;

    spoken = language != NULL ? language : &languages[0];
    return before;
}

const struct nw_language *nw_spoken_language(void)
{
    return spoken;
}

const char *nw_words(const struct nw_language *language, const char *text)
{
    const struct nw_words_index *index = index_of(language);
    const struct nw_words *words = index != NULL ? nw_words_exact(index, text) : NULL;

    return words != NULL ? words->other : text;
}

const char *nw_words_say(const struct nw_language *language, const char *sentence, char *out,
                         size_t size)
{
    const struct nw_words_index *index = index_of(language);

    if (index == NULL)
        snprintf(out, size, "%s", sentence);
    else
        nw_words_translate(index, language, sentence, out, size);
    return out;
}

const char *nw_tr(const char *text)
{
    return nw_words(spoken, text);
}

const char *nw_spoken(const char *sentence)
{
    enum { RING = 16 };
    static _Thread_local char ring[RING][NW_WORDS_LONGEST + 1];
    static _Thread_local size_t next;

    if (spoken->words == NULL || sentence == NULL ||
        strnlen(sentence, NW_WORDS_LONGEST) == NW_WORDS_LONGEST)
        return sentence;
    if (strchr(sentence, ' ') == NULL) /* a figure, a name, or one word: cells are many */
        return strchr(sentence, '%') == NULL ? nw_tr(sentence) : sentence;
    return nw_words_say(spoken, sentence, ring[next++ % RING], sizeof ring[0]);
}
