#include "bench/nics_judge.h"

#include <math.h>
#include <stdlib.h>

void nw_nic_verdict_free(struct nw_nic_verdict *verdict)
{
    free(verdict->is_slow);
    free(verdict->nic_is_slow);
    free(verdict->other_way);
    free(verdict->gpu_share);
    *verdict = (struct nw_nic_verdict){0};
}

static double rate_of(const struct nw_nic_stream *streams, size_t count, int from, int to, bool gpu)
{
    for (size_t i = 0; i < count; i++)
        if (streams[i].from == from && streams[i].to == to && streams[i].gpu == gpu)
            return streams[i].bytes_per_s;
    return NAN;
}

/* A NIC with one peer cannot be told from it. */
static bool nic_is_slow(const struct nw_nic_stream *streams, size_t count, int nic,
                        const bool *is_slow)
{
    size_t all = 0, slow = 0;
    int peer = -1;
    bool several = false;

    for (size_t i = 0; i < count; i++) {
        const int other = streams[i].from == nic ? streams[i].to
                          : streams[i].to == nic ? streams[i].from
                                                 : -1;

        if (other < 0 || streams[i].gpu)
            continue;
        several |= peer >= 0 && other != peer;
        peer = other;
        all++;
        slow += is_slow[i];
    }
    return several && 2 * slow > all;
}

nw_rc nw_nics_judge(const struct nw_nic_stream *streams, size_t count, int nic_count,
                    struct nw_nic_verdict *verdict_out)
{
    struct nw_nic_verdict verdict = {
        .is_slow = calloc(count + 1, sizeof *verdict.is_slow),
        .nic_is_slow = calloc((size_t)nic_count + 1, sizeof *verdict.nic_is_slow),
        .other_way = calloc(count + 1, sizeof *verdict.other_way),
        .gpu_share = calloc(count + 1, sizeof *verdict.gpu_share),
    };

    if (verdict.is_slow == NULL || verdict.nic_is_slow == NULL || verdict.other_way == NULL ||
        verdict.gpu_share == NULL) {
        nw_nic_verdict_free(&verdict);
        return nw_fail(NW_ENOMEM, "no memory to judge %zu streams", count);
    }
    for (size_t i = 0; i < count; i++) {
        const struct nw_nic_stream *stream = &streams[i];

        verdict.is_slow[i] = stream->bytes_per_s < NW_NIC_SHARE * stream->ceiling_bytes_per_s;
        verdict.other_way[i] =
            stream->bytes_per_s / rate_of(streams, count, stream->to, stream->from, stream->gpu);
        verdict.gpu_share[i] =
            stream->gpu
                ? stream->bytes_per_s / rate_of(streams, count, stream->from, stream->to, false)
                : NAN;
    }
    for (int nic = 0; nic < nic_count; nic++)
        verdict.nic_is_slow[nic] = nic_is_slow(streams, count, nic, verdict.is_slow);
    *verdict_out = verdict;
    return NW_OK;
}
