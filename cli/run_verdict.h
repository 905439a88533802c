/* Private to cli/. The end of `run`, on rank 0: the results just written, held against the quote,
 * with the job predicted and decided on; the screen on standard output and in report.txt. */
#ifndef NW_CLI_RUN_VERDICT_H
#define NW_CLI_RUN_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/request.h"
#include "results/results.h"

struct nw_run_question {
    struct nw_model_request *model; /* model NULL: no job; completed from the machine */
    const struct nw_quote *quote;   /* NULL: none */
    double host_flop_per_s;         /* of the slowest rank's core; NAN: not measured */
    uint64_t began_ns;              /* of the run, nw_now_ns() */
    const char *results_path, *report_path;
    bool json;
};

/* The exit code of what was found; the sentence of a failure is said. */
int nw_run_verdict(const struct nw_run_question *question);

#endif
