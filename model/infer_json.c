#include <math.h>

#include "base/json.h"
#include "model/infer.h"
#include "model/json_parts.h"

static nw_rc set_token(json_t *parent, const char *key, const struct nw_token_time *time)
{
    const struct nw_pair pairs[] = {
        {"weights_ns", time->weights_ns}, {"cache_ns", time->cache_ns},
        {"compute_ns", time->compute_ns}, {"communication_ns", time->communication_ns},
        {"launch_ns", time->launch_ns},   {"other_ns", time->other_ns},
        {"total_ns", time->total_ns},
    };
    json_t *object = json_object();

    NW_TRY(nw_json_set_new(parent, key, object));
    return nw_json_set_pairs(object, pairs, sizeof pairs / sizeof pairs[0]);
}

static nw_rc set_speed(json_t *object, const struct nw_infer *infer)
{
    const struct nw_pair pairs[] = {
        {"first_token_ns", infer->first_ns},
        {"sequences_by_memory", infer->sequences_by_memory},
        {"sequences", infer->sequences},
        {"token_ns", infer->token_ns},
        {"tokens_per_s", infer->tokens_per_s},
        {"tokens_per_s_low", infer->tokens_per_s_low},
        {"tokens_per_s_high", infer->tokens_per_s_high},
        {"cost_per_million_tokens", infer->cost_per_million_tokens},
    };

    if (!infer->fits)
        return NW_OK;
    NW_TRY(nw_json_set_pairs(object, pairs, sizeof pairs / sizeof pairs[0]));
    NW_TRY(nw_json_set_text(object, "sequences_bound_by",
                            infer->bound == NW_INFER_BY_LATENCY ? "latency"
                            : infer->bound == NW_INFER_BY_WISH  ? "asked"
                                                                : "memory"));
    if (infer->tp > 1)
        NW_TRY(nw_json_set_how(object, "all_reduces_from", infer->all_reduce_how));
    if (infer->pp > 1)
        NW_TRY(nw_json_set_how(object, "stages_from", infer->stage_how));
    NW_TRY(set_token(object, "alone", &infer->single));
    return set_token(object, "loaded", &infer->loaded);
}

static nw_rc fill(json_t *object, const struct nw_server *server, const struct nw_infer *infer)
{
    const struct nw_pair pairs[] = {
        {"price_per_gpu_hour", server->price_per_gpu_hour},
        {"memory_bytes", (double)server->gpu.memory_bytes},
        {"weights_bytes", infer->weights_bytes},
        {"cache_bytes_per_token", infer->cache_bytes_per_token},
        {"needed_bytes", infer->needed_bytes},
    };

    NW_TRY(nw_json_set_text(object, "server", server->name));
    NW_TRY(nw_json_set_int(object, "gpus", server->gpu_count));
    NW_TRY(nw_json_set_int(object, "tp", infer->tp));
    NW_TRY(nw_json_set_int(object, "pp", infer->pp));
    NW_TRY(nw_json_set_int(object, "replicas", infer->replica_count));
    NW_TRY(nw_json_set_bool(object, "fits", infer->fits));
    NW_TRY(nw_json_set_bool(object, "within_limits", infer->fits && infer->fast_enough));
    NW_TRY(nw_json_set_bool(object, "measured", server->measured));
    NW_TRY(nw_json_set_bool(object, "simulated", server->simulated));
    NW_TRY(nw_json_set_bool(object, "memory_recalled", server->sliced));
    NW_TRY(nw_json_set_pairs(object, pairs, sizeof pairs / sizeof pairs[0]));
    return set_speed(object, infer);
}

nw_rc nw_infer_to_json(const struct nw_server *server, const struct nw_infer *infer,
                       json_t **json_out)
{
    json_t *object = json_object();
    const nw_rc rc = object != NULL ? fill(object, server, infer)
                                    : nw_fail(NW_ENOMEM, "out of memory for the JSON");

    if (rc != NW_OK) {
        json_decref(object);
        return rc;
    }
    *json_out = object;
    return NW_OK;
}
