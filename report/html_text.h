/* Private to report/. Text of anybody's into HTML and SVG: the only ways that a string which is not
 * the page's own gets there. What is written is inert whatever it was: markup is escaped, control
 * characters, marks of direction and bytes that are not UTF-8 become U+FFFD, newlines a blank, and
 * a long text is cut. No text of anybody's is ever written into a script or a style. */
#ifndef NW_REPORT_HTML_TEXT_H
#define NW_REPORT_HTML_TEXT_H

#include <stdio.h>

#define NW_HTML_TEXT_MAX 1500 /* bytes of one text; then "…" */

void nw_html_text(FILE *stream, const char *text); /* between tags */
/* The value of an attribute, with its quotes. The tag and the attribute's name are the page's. */
void nw_html_attribute(FILE *stream, const char *text);

#endif
