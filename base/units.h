/* Public. Text to number and back, strictly: the whole text must be the number, in range, finite.
 *
 * Sizes take binary suffixes as in nccl-tests (8, 64K, 1M, 2G, 1T; KiB, MiB … are the same). Rates
 * are in ONE direction. Parsers fail with NW_EUSAGE and a sentence that has the text and what is
 * accepted; the caller adds file, line, key. Formatters write into the caller's buffer (32 bytes
 * are always enough) and return it.
 */
#ifndef NW_BASE_UNITS_H
#define NW_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

nw_rc nw_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value_out);
nw_rc nw_parse_double(const char *text, double min, double max,
                      double *value_out);                    /* finite only; 1e400 refused */
nw_rc nw_parse_bytes(const char *text, uint64_t *bytes_out); /* "4M" = 4194304 */
nw_rc nw_parse_duration(const char *text,
                        double *ns_out); /* "250us" "1.5s" "2min" "3h"; bare number: seconds */
nw_rc nw_parse_count(const char *text,
                     double *count_out); /* decimal suffixes: "7B", "300M", "1.5T", "2e9" */
nw_rc nw_parse_bool(const char *text, int *value_out); /* yes/no, true/false, on/off, 1/0 */

const char *nw_format_bytes(char text[32], uint64_t bytes); /* "4 MiB", "1.5 KiB", "100 B" */
const char *nw_format_ns(char text[32],
                         double ns); /* "812 ns", "13.4 us", "2.71 s", "1 h 12 min" */
const char *nw_format_gb_per_s(
    char text[32], double bytes_per_s); /* GB/s = 10^9 B/s, 3-4 significant digits, no unit */
const char *nw_format_count(char text[32], double count); /* "124 M", "6.74 B" */
/* `digits` significant digits without exponent in the ordinary range: 0.0931, 12.5, 487. NAN: "–".
 */
const char *nw_format_sig(char text[32], double value, int digits);

/* The candidate nearest in spelling to `word`, or NULL when none is near. `names` ends with NULL.
 */
const char *nw_nearest_name(const char *word, const char *const *names);
/* "a, b, c" into `text`; cut with "…" when too long. */
const char *nw_join_names(char *text, size_t size, const char *const *names);

#endif
