/* Public. Many questions to the model, one JSON object each: keys are the names of nw_model_options
 * (strings, numbers, booleans; a list where the option takes one), "id" (any value, given back),
 * "results" (a path or a list of them), "assume" (a list of KEY=VALUE).
 *
 * Options of the command line hold for every line that does not say otherwise. A results file is
 * read once, its curves are made once; both are kept for the next lines.
 *
 *     struct nw_batch *batch;
 *     NW_TRY(nw_batch_open(&request, NULL, read_results, &batch));
 *     NW_TRY(nw_batch_answer(batch, line, length, number, &json));   // always one object
 *     nw_batch_close(batch);
 */
#ifndef NW_MODEL_BATCH_H
#define NW_MODEL_BATCH_H

#include <jansson.h>

#include "model/request.h"

#define NW_BATCH_LINE_MAX (1u << 20) /* bytes; a longer line is answered with an error */

struct nw_batch;

/* Appends the runs of a file. */
typedef nw_rc nw_batch_reader(const char *path, struct nw_results *results);

/* `base` and `results` (may be NULL) are borrowed until nw_batch_close. */
nw_rc nw_batch_open(const struct nw_model_request *base, const struct nw_results *results,
                    nw_batch_reader *reader, struct nw_batch **batch_out);
void nw_batch_close(struct nw_batch *batch); /* accepts NULL */

/* The answer to one line: a step, {"steps": […]} where several were asked for, or {"rc", "error"};
 * each with the line's "id" and, where it has none, its "line". Fails only without memory. The
 * caller owns the answer. */
nw_rc nw_batch_answer(struct nw_batch *batch, const char *line, size_t length, uint64_t number,
                      json_t **answer_out);
/* The answer to a line that is no question: the last error, as nw_batch_answer words it. */
nw_rc nw_batch_refuse(uint64_t number, json_t **answer_out);

#endif
