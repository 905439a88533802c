/* The reader of Hugging Face's config.json on any bytes: no crash, and what it takes keeps every
 * rule of a shape and gives finite figures. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/transformer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nw_transformer net;

    if (nw_transformer_parse_config((const char *)data, size, "fuzz", &net) != NW_OK) {
        if (nw_last_error()->rc != NW_EUSAGE || strncmp(nw_last_error()->text, "fuzz:", 5) != 0)
            abort();
        return 0;
    }
    if (nw_transformer_check(&net, "fuzz") != NW_OK || nw_transformer_parameter_count(&net) == 0)
        abort();
    const struct nw_flops flops = nw_transformer_flops(&net, 4096, 4096, true);

    if (!(flops.layer_forward > 0) || !isfinite(flops.layer_backward + flops.head_backward))
        abort();
    return 0;
}
