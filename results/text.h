/* Public. A growing text for JSON lines: fast enough for a hundred thousand records a
 * second, and the only place where a number or a string of a results file gets its spelling.
 *
 * A failed allocation is kept in `failed` and returned by nw_text_check. nw_text_free leaves the
 * text empty.
 */
#ifndef NW_RESULTS_TEXT_H
#define NW_RESULTS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct nw_text {
    char *data; /* not NUL-terminated */
    size_t length, capacity;
    bool failed;
};

void nw_text_raw(struct nw_text *text, const char *data, size_t length);
void nw_text_put(struct nw_text *text, const char *literal);
/* Quoted and escaped; bytes that are no UTF-8 become U+FFFD, so that any reader takes the line. */
void nw_text_string(struct nw_text *text, const char *value);
void nw_text_u64(struct nw_text *text, uint64_t value);
void nw_text_i64(struct nw_text *text, int64_t value);
/* The shortest decimal that reads back as the same double; `value` is finite. */
void nw_text_real(struct nw_text *text, double value);
/* `,"key":` – or without the comma behind an opening brace. */
void nw_text_key(struct nw_text *text, const char *key);

/* Length of the UTF-8 sequence that begins at `s` (RFC 3629: no overlong forms, no surrogates, at
 * most U+10FFFF), NUL-terminated; 0: not one. */
size_t nw_utf8_length(const unsigned char *s);

nw_rc nw_text_check(const struct nw_text *text); /* NW_ENOMEM when anything was lost */
void nw_text_free(struct nw_text *text);

#endif
