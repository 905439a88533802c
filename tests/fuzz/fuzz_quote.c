/* The quote parser on any bytes: no crash, and what it takes is in range and told in JSON. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "results/quote.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nw_quote quote;
    json_t *json;

    if (nw_quote_parse((const char *)data, size, "fuzz", &quote) != NW_OK) {
        /* First cause, first line: every refusal says where. */
        if (nw_last_error()->rc != NW_EUSAGE || strncmp(nw_last_error()->text, "fuzz:", 5) != 0)
            abort();
        return 0;
    }
    if (quote.gpu_count < 0 || quote.gpu_count > 1024 || isinf(quote.ram_bytes))
        abort();
    if (nw_quote_to_json(&quote, &json) != NW_OK)
        abort();
    json_decref(json);
    return 0;
}
