/* The reader of Hugging Face's config.json on any bytes: no crash, and what it takes keeps every
 * rule of a shape and gives finite figures that add up. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int holds)
{
    if (!holds)
        abort();
}

static void check_counts(const struct nw_transformer *net)
{
    const uint64_t count = nw_transformer_parameter_count(net);
    uint64_t layers = 0;

    demand(count > 0 && count <= 100000000000000);
    demand(nw_transformer_active_count(net) <= count);
    for (int kind = 0; kind < NW_LAYER_KINDS; kind++) {
        const struct nw_layer_parts parts = nw_transformer_layer_parts(net, kind);
        struct nw_tensors layer;

        nw_transformer_layer_kind(net, kind, &layer);
        demand(parts.total == layer.total && parts.norms <= parts.total);
        demand(layer.count < NW_TENSORS_MAX);
        demand(nw_transformer_adapter(net, kind, 4, NW_LORA_Q | NW_LORA_DOWN) > 0);
        layers += nw_transformer_layer_count(net, kind);
    }
    demand(layers == net->layers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nw_transformer net;

    if (nw_transformer_parse_config((const char *)data, size, "fuzz", &net) != NW_OK) {
        demand(nw_last_error()->rc == NW_EUSAGE);
        demand(strncmp(nw_last_error()->text, "fuzz:", 5) == 0);
        return 0;
    }
    demand(nw_transformer_check(&net, "fuzz") == NW_OK);
    check_counts(&net);
    const struct nw_flops flops = nw_transformer_flops(&net, 4096, 4096, true);

    demand(flops.layer_forward > 0 && isfinite(flops.layer_backward + flops.head_backward));
    struct nw_transformer other = net;
    const struct nw_transformer_fields fields = {.layers = 3, .vocab = 1000, .heads = 12};

    if (nw_transformer_override(&other, &fields) == NW_OK)
        check_counts(&other);
    else
        demand(memcmp(&other, &net, sizeof net) == 0);
    return 0;
}
