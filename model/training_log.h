/* Public. The time of a step out of a training log: lines of Megatron-LM, DeepSpeed, the Hugging
 * Face Trainer, torchtitan, torchtune, NeMo, nanoGPT, llm.c and others, by a table of what stands
 * around the number.
 *
 *     struct nw_training_log log;
 *     NW_TRY(nw_training_log_read("train.log", &log));
 *     log.value.median, in log.unit …
 */
#ifndef NW_MODEL_TRAINING_LOG_H
#define NW_MODEL_TRAINING_LOG_H

#include <stdint.h>
#include <stdio.h>

#include "base/stats.h"

typedef enum {
    NW_LOG_NS, /* of one optimizer step */
    NW_LOG_TOKENS_PER_S,
    NW_LOG_TOKENS_PER_S_PER_GPU,
    NW_LOG_SAMPLES_PER_S, /* sequences, of all GPUs */
} nw_log_unit;

/* Arguments that Megatron-LM and its like print at their start. */
typedef enum {
    NW_LOG_RANKS,
    NW_LOG_GLOBAL_BATCH,
    NW_LOG_MICRO_BATCH,
    NW_LOG_SEQUENCE,
    NW_LOG_TP,
    NW_LOG_PP,
    NW_LOG_CP,
    NW_LOG_STATED_COUNT,
} nw_log_stated;

struct nw_training_log {
    const char *writer;                   /* "Megatron-LM" */
    nw_log_unit unit;                     /* of value */
    struct nw_stats value;                /* of the steady lines */
    size_t lines;                         /* that told a step; value.count of them are steady */
    uint64_t stated[NW_LOG_STATED_COUNT]; /* that the log says of its run; 0: it does not */
};

/* "-" is standard input. NW_EUSAGE: no line tells a step's time, or the log is longer than 256 MiB.
 */
nw_rc nw_training_log_read(const char *path, struct nw_training_log *log_out);
/* The same from a stream; `what` words the error. */
nw_rc nw_training_log_scan(FILE *stream, const char *what, struct nw_training_log *log_out);

#endif
