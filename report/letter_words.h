/* Private to report/. Sentences in the language of a letter. English is the language of the source;
 * the others are gettext catalogues (po/), compiled in, so that a letter needs no locale.
 *
 * A sentence that was made elsewhere with numbers in it ("18 of 18 links are active") is found by
 * its form: "%s" in an entry stands for any text, "%1$s" and so on in the translation put the texts
 * elsewhere. What has no translation stays English.
 */
#ifndef NW_REPORT_LETTER_WORDS_H
#define NW_REPORT_LETTER_WORDS_H

#include <stddef.h>

#include "base/err.h"

struct nw_words {
    const char *english, *other;
};
struct nw_language {
    const char *key, *title;      /* "zh", "中文" */
    const struct nw_words *words; /* NULL: English */
    size_t count;
    const char *joint; /* between the parts of a reason: "; " */
};
/* NW_EUSAGE with the languages that are there. */
nw_rc nw_language_find(const char *key, const struct nw_language **language_out);

/* A text of the letter itself: the translation of exactly this, else the text. */
const char *nw_words(const struct nw_language *language, const char *text);
/* A sentence from elsewhere, into `out`. */
const char *nw_words_say(const struct nw_language *language, const char *sentence, char *out,
                         size_t size);

#endif
