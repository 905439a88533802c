/* Private to cli/. nodeworth predict --batch. */
#ifndef NW_CLI_PREDICT_BATCH_H
#define NW_CLI_PREDICT_BATCH_H

#include "cli/model_args.h"

/* Answers every line of args->batch_path on stdout, one line each, as it goes. Fails only where the
 * file cannot be read, stdout cannot be written, or memory ends. */
nw_rc nw_cli_predict_batch(const struct nw_model_args *args, const struct nw_results *results);

#endif
