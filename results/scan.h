/* Private to results/. JSON's tokens out of a line, without building anything. Declines (false)
 * what needs care: escapes, negative numbers, long ones; the caller then leaves the line to
 * jansson.
 */
#ifndef NW_RESULTS_SCAN_H
#define NW_RESULTS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nw_scan {
    const char *at, *end; /* *end is the line's newline */
};

struct nw_scan_span { /* of a string, without its quotes */
    const char *at;
    size_t length;
};

struct nw_scan_number {
    bool is_integer;
    int64_t integer;
    double real;
};

/* The character itself, with blanks before and behind. */
bool nw_scan_take(struct nw_scan *scan, char c);
bool nw_scan_word(struct nw_scan *scan, const char *word);
/* UTF-8 without escapes and control characters. */
bool nw_scan_string(struct nw_scan *scan, struct nw_scan_span *span_out);
/* JSON's grammar, not negative, at most 18 digits; the same double as strtod's. */
bool nw_scan_json_number(struct nw_scan *scan, struct nw_scan_number *number_out);
/* A value that is passed over; `depth` 0. */
bool nw_scan_skip(struct nw_scan *scan, int depth);
bool nw_scan_is(const struct nw_scan_span *span, const char *text);

#endif
