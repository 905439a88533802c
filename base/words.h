/* Public. What people read, in their language. English is the language of the source and of every
 * record, file and last error; the others are gettext catalogues (po/), compiled in, so that
 * neither a locale nor an installed catalogue is needed. A text is translated where it is written
 * for a person, never before: JSON, CSV and keys stay as they are.
 *
 *     nw_print(stream, "%d of %d GPUs\n", seen, all);    // the format is looked up
 *     fprintf(stream, nw_tr("Findings\n"));              // so is this
 *     fputs(nw_spoken(finding->text), stream);           // a sentence made elsewhere, by its form
 *
 * A sentence that has its figures already ("18 of 18 links are active") is found by the form it was
 * made with: what "%d" or "%s" can stand for is cut out and put where the translation wants it
 * ("%2$d"; "%2$.0s": nowhere). A text is never used as a format. What has no translation stays
 * English. docs/translating.md.
 */
#ifndef NW_BASE_WORDS_H
#define NW_BASE_WORDS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

struct nw_words {
    const char *english, *other;
};
struct nw_language {
    const char *key, *title;      /* "zh", "中文" */
    const struct nw_words *words; /* NULL: English */
    size_t count;
    const char *semicolon, *stop, *colon, *comma; /* between sentences: "; ", ". ", ": ", ", " */
};

/* NW_EUSAGE with the languages that are there. */
nw_rc nw_language_find(const char *key, const struct nw_language **language_out);
const char *nw_language_names(char *text, size_t size); /* "en, zh" */
/* By LC_ALL, LC_MESSAGES, LANG and LANGUAGE, as gettext takes them; English when they name none. */
const struct nw_language *nw_language_of_environment(void);

/* The language of this process, English until it is set, before there are threads; NULL: English.
 * Returns the one before, for a text that goes into JSON. */
const struct nw_language *nw_speak(const struct nw_language *language);
const struct nw_language *nw_spoken_language(void);

/* A text or format of the source: the translation of exactly this, else the text. */
const char *nw_tr(const char *text) __attribute__((format_arg(1)));
/* A sentence made elsewhere. Either the sentence itself or a text of this module's, which the 15th
 * next call in this thread replaces. */
const char *nw_spoken(const char *sentence);
/* printf with the translation of the format, and of every text that is put into it. */
void nw_print(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nw_vprint(FILE *stream, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
int nw_print_to(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int nw_vprint_to(char *text, size_t size, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

/* The same in a language of one's own, as a letter has it. */
const char *nw_words(const struct nw_language *language, const char *text)
    __attribute__((format_arg(2)));
const char *nw_words_say(const struct nw_language *language, const char *sentence, char *out,
                         size_t size);

#endif
