/* Private to report/. The parts of a letter that stand in files of their own. */
#ifndef NW_REPORT_LETTER_PARTS_H
#define NW_REPORT_LETTER_PARTS_H

#include <stdio.h>

#include "report/letter.h"
#include "report/letter_names.h"
#include "base/words.h"

struct nw_letter_page {
    const struct nw_letter *letter;
    const struct nw_language *language;
    struct nw_names names;
    char tested[64]; /* "2026-11-30", or the first and last day; "": unknown */
};

/* Sets page.tested from the runs. */
void nw_letter_date(struct nw_letter_page *page);
/* Runs and topologies: tool, version, libraries, hosts, command. */
void nw_letter_how(FILE *stream, const struct nw_letter_page *page);

#endif
