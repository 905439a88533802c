/* Private to model/. The parts of nw_model_open. */
#ifndef NW_MODEL_REQUEST_PARTS_H
#define NW_MODEL_REQUEST_PARTS_H

#include "model/request.h"

/* Notes a value that was not asked for; `text` stays borrowed. */
void nw_default_note(struct nw_defaults *defaults, const char *option, const char *text,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Words of a comma-separated list, each handed to `take`; NW_EUSAGE when there is none. */
nw_rc nw_request_each_word(const char *text, const char *option,
                           nw_rc (*take)(void *target, const char *word, const char *option),
                           void *target);

/* nw_model_open on curves that are there already and stay the caller's; NULL: those of `results`.
 */
nw_rc nw_model_open_on(const struct nw_model_request *request, const struct nw_results *results,
                       const struct nw_curves *curves, struct nw_model *model_out);

/* model->job; before it the strategies and the framework (nw_request_spread), after it the ranks:
 * nw_request_accumulate. */
nw_rc nw_request_job(const struct nw_model_request *request, struct nw_model *model);
/* model->strategies, profile, parallel, scenario. */
nw_rc nw_request_spread(const struct nw_model_request *request, struct nw_model *model);
/* Every strategy against the job and the nodes: one that was named is refused, others are left out
 * while there are some. */
nw_rc nw_request_check_layouts(const struct nw_model_request *request, struct nw_model *model);
/* Sequences of a step of so many micro-batches. */
uint64_t nw_grad_accum_batch(uint64_t grad_accum, const struct nw_job *job,
                             const struct nw_layout *layout);
/* What --grad-accum makes of the global batch, on the fewest nodes. */
nw_rc nw_request_accumulate(struct nw_model *model);
/* The framework that a strategy belongs to: zero1, zero2, zero3: deepspeed; distopt: megatron. */
const struct nw_profile *nw_natural_profile(const struct nw_strategy *strategy);

#endif
