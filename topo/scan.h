/* Private to topo/. What the readers of tools' printed output share: lines, fields, numbers, over
 * (data, length) without a NUL behind it. Pasted output is the usual case: prompts before it,
 * escape sequences of colours in it, "[...]" where somebody cut, Windows' line ends.
 *
 * A cursor gives one line after the other in its own buffer, which the caller may change in place
 * (that is how words and "key : value" are split). The data is borrowed.
 *
 *     struct nw_scan text;
 *     struct nw_scan_pair pair;
 *
 *     NW_TRY(nw_scan_open(&text, data, length, what));
 *     while (nw_scan_next(&text)) {
 *         if (nw_scan_pair(text.line, &pair) && strcmp(pair.key, "Product Name") == 0)
 *             NW_TRY(nw_topo_set_text(…, pair.value, …));
 *         else if (…)
 *             return nw_scan_fail(&text, "\"%.40s\" is no number of lanes", pair.value);
 *     }
 *     NW_TRY(text.rc);        // NW_EUSAGE: a line longer than any tool prints
 *     nw_scan_close(&text);
 */
#ifndef NW_TOPO_SCAN_H
#define NW_TOPO_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum {
    /* The longest seen is a CSV header of 180 fields, 6.4 kB. */
    NW_SCAN_MAX_LINE = 64 << 10,
};

struct nw_scan {
    const char *data, *what;
    size_t length, at; /* `at`: where the next line begins */
    char *line;        /* the line without its end, escape sequences, byte order mark and control
                          characters other than tab; NUL-terminated */
    size_t used;       /* bytes in `line` */
    int number;        /* of the line, from 1 */
    size_t start, end; /* the raw line in `data`, without its end */
    nw_rc rc;          /* why nw_scan_next ended: NW_OK at the end of the data */
};

nw_rc nw_scan_open(struct nw_scan *text, const char *data, size_t length, const char *what);
void nw_scan_close(struct nw_scan *text); /* frees the line; may be called twice */
/* The next line into text->line; false at the end or on a failure (text->rc). Ends of lines are LF,
 * CR LF and CR. */
bool nw_scan_next(struct nw_scan *text);
/* NW_EUSAGE "FILE:LINE: …" of the current line. */
nw_rc nw_scan_fail(const struct nw_scan *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* --- one line --- */

struct nw_scan_pair {
    int indent;        /* columns before the key; a tab goes to the next multiple of 8 */
    char *key, *value; /* trimmed, in the line; the value may be "" */
};
/* Splits "  Key name     : value" at the first colon that a blank or the end follows (so that a bus
 * id or a GUID is no key), in place. False, line unchanged: there is none, or nothing before it. */
bool nw_scan_pair(char *line, struct nw_scan_pair *pair_out);
int nw_scan_indent(const char *line);
/* Without blanks at both ends, in place. */
char *nw_scan_trim(char *line);
/* Splits at blanks, in place; at most `max` words are kept, all are counted. */
size_t nw_scan_words(char *line, char **words_out, size_t max);
bool nw_scan_starts(const char *line, const char *prefix);
/* Equal but for the case of ASCII letters. */
bool nw_scan_same(const char *a, const char *b);
/* Nothing but blanks. */
bool nw_scan_blank(const char *line);
/* "[...]", "...", "……", "[snip]", "<cut>", "(omitted)": somebody left lines out. */
bool nw_scan_elision(const char *line);

/* --- values --- */

/* "N/A", "[N/A]", "[Not Supported]", "[Unknown Error]", "Unknown", "GPU is lost",
 * "[Requested functionality has been deprecated]", "-", "": no value. */
bool nw_scan_unknown(const char *value);
/* "350.00 W" with unit "W"; a NULL unit wants the bare number. False: anything else, which means
 * that the value is unknown. Sets no error. */
bool nw_scan_number(const char *value, const char *unit, double *number_out);
/* "81559 MiB", "1024 KB", "16 GB", "12 B" (KiB, MiB, GiB, TiB and KB … are binary here, as NVIDIA's
 * and the kernel's tools mean them) */
bool nw_scan_bytes(const char *value, double *bytes_out);
/* "yes", "enabled", "on", "active", "1" to true; "no", "disabled", "off", "not active", "inactive",
 * "none", "0" to false; any case. */
bool nw_scan_yes_no(const char *value, bool *yes_out);
/* "3, 5-7,9": how many numbers that is, the first to *first_out (may be NULL); -1: no such list. */
int nw_scan_list(const char *value, int *first_out);

/* --- recognising a format --- */

/* Is the word in the first `within` bytes (0: anywhere)? */
bool nw_scan_has(const char *data, size_t length, size_t within, const char *word);
/* The number of the first line that begins (after blanks) with `prefix`; 0: none does. */
int nw_scan_find_line(const char *data, size_t length, const char *prefix);

#endif
