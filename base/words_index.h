/* Private to base/. A catalogue made quick to search: exact texts by their hash, forms by how they
 * begin or end. */
#ifndef NW_BASE_WORDS_INDEX_H
#define NW_BASE_WORDS_INDEX_H

#include <stddef.h>

#include "base/words.h"

/* Longer texts are no sentences of ours. */
enum { NW_WORDS_LONGEST = 4096 };

struct nw_words_index;
/* Borrows `words`; NULL: out of memory. */
struct nw_words_index *nw_words_index_new(const struct nw_words *words, size_t count);
void nw_words_index_free(struct nw_words_index *index); /* accepts NULL */

/* The entry of exactly this text, with a translation; else NULL. */
const struct nw_words *nw_words_exact(const struct nw_words_index *index, const char *text);
/* A sentence by its form, into `out`; whole characters of it when it is longer than that. */
void nw_words_translate(const struct nw_words_index *index, const struct nw_language *language,
                        const char *sentence, char *out, size_t size);

#endif
