/* The reader of training logs on any bytes: no crash; what it takes is a positive, finite figure
 * inside its interval. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/training_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nw_training_log log;
    FILE *stream;

    if (size == 0)
        return 0;
    stream = fmemopen((void *)(uintptr_t)data, size, "r");
    if (stream == NULL)
        abort();
    if (nw_training_log_scan(stream, "fuzz", &log) != NW_OK) {
        if (nw_last_error()->rc != NW_EUSAGE)
            abort();
    } else if (!(log.value.median > 0) || !isfinite(log.value.median) ||
               !(log.value.low <= log.value.median) || !(log.value.high >= log.value.median) ||
               log.value.count == 0 || log.value.count > log.lines ||
               log.stated[NW_LOG_RANKS] > 1u << 30) {
        abort();
    }
    fclose(stream);
    return 0;
}
