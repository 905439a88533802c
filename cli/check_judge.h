/* Private to cli/. From what was gathered to what is shown: findings of all kinds, the table, the
 * step, the audit, the verdict. Owns all that it makes; borrows the gathering. */
#ifndef NW_CLI_CHECK_JUDGE_H
#define NW_CLI_CHECK_JUDGE_H

#include "cli/check_area.h"
#include "cli/check_gather.h"
#include "model/finding_cost.h"
#include "report/check_text.h"

struct nw_check_judged {
    struct nw_findings findings, not_checked;
    struct nw_rank_place_advice advice;
    struct nw_check_row rows[NW_CHECK_AREA_COUNT];
    struct nw_finding_costs costs;
    struct nw_audit audit;
    bool costed, audited;
    struct nw_check_screen screen;
};

struct nw_check_question {
    const struct nw_model_request *request; /* model NULL: no job */
    const struct nw_quote *quote;           /* NULL: none */
    const struct nw_check_wish *wish;       /* what was asked for; NULL: from files */
    const char *version;
};

/* `gathered`: GPUs of the places are filled in, MPI versions become facts. */
nw_rc nw_check_judge(const struct nw_check_question *question, struct nw_check_gathered *gathered,
                     struct nw_check_judged *judged_out);
void nw_check_judged_free(struct nw_check_judged *judged);

#endif
