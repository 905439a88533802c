#include "bench/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static const struct nw_gpu_state no_state = {NAN, NAN, NAN, NAN, NAN, -1};

void nw_record_init(struct nw_record *record)
{
    *record = (struct nw_record){
        .op = "none",
        .root = -1,
        .peer_a = -1,
        .peer_b = -1,
        .time_ns = nw_stats_single(NAN),
        .skew_ns = NAN,
        .slowest_rank = -1,
        .slowest_share = NAN,
        .algbw_bytes_per_s = NAN,
        .busbw_bytes_per_s = NAN,
        .ceiling_bytes_per_s = NAN,
        .wrong_elements = -1,
        .expected_ns = NAN,
        .flop_per_s = NAN,
        .alone_ns = NAN,
        .alone_flop_per_s = NAN,
        .hidden_share = NAN,
        .wire_bytes_per_s = NAN,
        .nic_bytes_per_s = NAN,
        .port_share = NAN,
        .messages_per_s = NAN,
        .before = no_state,
        .during = no_state,
        .after = no_state,
        .rc = NW_OK,
    };
}

void nw_record_free(struct nw_record *record)
{
    free(record->samples_ns);
    nw_findings_free(&record->warnings);
    nw_record_init(record);
}

nw_rc nw_record_copy(struct nw_record *to, const struct nw_record *from)
{
    struct nw_record copy = *from;
    nw_rc rc;

    copy.samples_ns = NULL;
    copy.warnings = (struct nw_findings){0};
    if (from->samples_ns != NULL) {
        const size_t bytes = from->time_ns.count * sizeof *from->samples_ns;

        copy.samples_ns = malloc(bytes > 0 ? bytes : 1);
        if (copy.samples_ns == NULL)
            return nw_fail(NW_ENOMEM, "no memory to copy a record of %zu samples",
                           from->time_ns.count);
        memcpy(copy.samples_ns, from->samples_ns, bytes);
    }
    rc = nw_findings_copy(&copy.warnings, &from->warnings);
    if (rc != NW_OK) {
        nw_record_free(&copy);
        return rc;
    }
    *to = copy;
    return NW_OK;
}

bool nw_gpu_state_is_known(const struct nw_gpu_state *state)
{
    return isfinite(state->sm_clock_hz) || isfinite(state->power_w) ||
           isfinite(state->temperature_c) || state->throttle >= 0;
}

bool nw_record_same_identity(const struct nw_record *a, const struct nw_record *b)
{
    return strcmp(a->case_name, b->case_name) == 0 && strcmp(a->collective, b->collective) == 0 &&
           strcmp(a->lane, b->lane) == 0 && strcmp(a->features, b->features) == 0 &&
           strcmp(a->dtype, b->dtype) == 0 && strcmp(a->op, b->op) == 0 && a->root == b->root &&
           a->rank_count == b->rank_count && a->host_count == b->host_count &&
           a->bytes == b->bytes && a->in_place == b->in_place && a->peer_a == b->peer_a &&
           a->peer_b == b->peer_b && a->piece_bytes == b->piece_bytes &&
           a->stream_count == b->stream_count && a->m == b->m && a->n == b->n && a->k == b->k &&
           strcmp(a->nic_a, b->nic_a) == 0 && strcmp(a->nic_b, b->nic_b) == 0 &&
           strcmp(a->memory, b->memory) == 0;
}

void nw_context_init(struct nw_context *context)
{
    *context = (struct nw_context){
        .schema = NW_SCHEMA_VERSION,
        .printed_average_bytes_per_s = NAN,
    };
}

void nw_context_free(struct nw_context *context)
{
    free(context->hosts);
    json_decref(context->environment);
    json_decref(context->plan);
    json_decref(context->topology);
    json_decref(context->binding);
    json_decref(context->lanes);
    json_decref(context->gpus);
    nw_findings_free(&context->findings);
    nw_context_init(context);
}
