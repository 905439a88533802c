/* Private to base/. Forms of sentences: a printf format against a text that may have been made with
 * it. */
#ifndef NW_BASE_WORDS_FORM_H
#define NW_BASE_WORDS_FORM_H

#include <stdbool.h>
#include <stddef.h>

enum { NW_FORM_PARTS = 16 };

struct nw_part { /* what a directive stands for */
    const char *start;
    size_t length;
    bool is_text; /* of "%s" */
};

struct nw_directive {
    size_t length; /* with the '%'; 0: there is none here */
    char kind;     /* 's', 'd' for every decimal number, 'x', 'f' for every real one, 'c', '%' */
    int position;  /* of "%2$s", from 1; 0: the next */
    int width;     /* 0: none */
    int precision; /* -1: none or unknown ("*") */
};

struct nw_directive nw_directive_at(const char *format);
/* Bytes of the format that are no directives. */
size_t nw_form_literal(const char *format);
/* Can `text` have been made with `format`? The parts in the order of the format. `tries` counts
 * down; at 0 nothing fits any more: a hostile text costs no more than that. */
bool nw_form_fits(const char *format, const char *text, size_t length,
                  struct nw_part parts[NW_FORM_PARTS], size_t *count_out, int *tries);

#endif
