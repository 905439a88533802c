/* Made-up measurements for the model's tests: curves of a known latency and rate. */
#ifndef NW_TESTS_MODEL_SUPPORT_H
#define NW_TESTS_MODEL_SUPPORT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/coll.h"
#include "model/request.h"

struct wire { /* one curve: time = latency + factor × bytes / busbw */
    const char *collective;
    int rank_count, host_count;
    double latency_ns, busbw_bytes_per_s;
};

static inline double wire_ns(const struct wire *wire, double bytes)
{
    const double factor = nw_coll_find(wire->collective)->bus_factor(wire->rank_count);

    return wire->latency_ns + factor * bytes / wire->busbw_bytes_per_s * 1e9;
}

static inline void add_point(struct nw_run *run, const struct wire *wire, uint64_t bytes,
                             double time_ns, double rel_interval, bool in_place)
{
    struct nw_record record;

    nw_record_init(&record);
    snprintf(record.case_name, sizeof record.case_name, "coll");
    snprintf(record.collective, sizeof record.collective, "%s", wire->collective);
    snprintf(record.lane, sizeof record.lane, "host");
    record.rank_count = wire->rank_count;
    record.host_count = wire->host_count;
    record.bytes = bytes;
    record.in_place = in_place;
    record.time_ns = nw_stats_single(time_ns);
    if (rel_interval > 0) {
        record.time_ns.count = 9;
        record.time_ns.low = time_ns * (1 - rel_interval);
        record.time_ns.high = time_ns * (1 + rel_interval);
    }
    nw_run_add_record(run, &record);
}

/* 1 KiB … 1 GiB in powers of four. */
static inline void add_wire(struct nw_run *run, const struct wire *wire)
{
    for (uint64_t bytes = 1024; bytes <= 1u << 30; bytes *= 4)
        add_point(run, wire, bytes, wire_ns(wire, (double)bytes), 0.01, false);
}

/* The three collectives that the strategies use, all of one rate. */
static inline void add_group(struct nw_run *run, int rank_count, int host_count, double latency_ns,
                             double busbw_bytes_per_s)
{
    static const char *const names[] = {"all_reduce", "all_gather", "reduce_scatter"};

    for (int i = 0; i < 3; i++)
        add_wire(run,
                 &(struct wire){names[i], rank_count, host_count, latency_ns, busbw_bytes_per_s});
}

/* Every option as it is when none is given. */
static inline struct nw_model_request request_for(const char *model)
{
    struct nw_model_request request = {0};

    nw_options_reset(nw_model_options, nw_model_option_count, &request);
    nw_options_reset(nw_price_options, nw_price_option_count, &request);
    request.model = model;
    return request;
}

static inline uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static inline double random_between(uint64_t *state, double low, double high)
{
    return low * pow(high / low, (double)next_random(state) / (double)(1u << 31));
}

/* A shape that passes nw_transformer_check, of any kind. */
static inline struct nw_transformer random_net(uint64_t *state)
{
    const uint64_t heads = 1 + next_random(state) % 32;
    struct nw_transformer net = {
        .name = "random",
        .layers = 1 + next_random(state) % 48,
        .heads = heads,
        .kv_heads = next_random(state) % 2 ? heads : 1,
        .head_size = 16 * (1 + next_random(state) % 8),
        .vocab = 1000 + next_random(state) % 150000,
        .tied = next_random(state) % 2,
        .gated = next_random(state) % 2,
        .qkv_bias = next_random(state) % 2,
        .norm_bias = next_random(state) % 2,
    };

    net.hidden = net.heads * net.head_size;
    net.ffn = net.hidden * (2 + next_random(state) % 4);
    return net;
}

static inline struct nw_job random_job(uint64_t *state)
{
    return (struct nw_job){
        .net = random_net(state),
        .sequence = 128u << next_random(state) % 6,
        .micro_batch = 1 + next_random(state) % 8,
        .global_batch = 64u << next_random(state) % 5,
        .precision = &nw_precisions[next_random(state) % 3],
        .optimizer = &nw_optimizers[next_random(state) % 4],
        .gradient_bytes = next_random(state) % 2 ? 2 : 4,
        .recompute = next_random(state) % 2,
        .flash = next_random(state) % 2,
        .tokens = NAN,
    };
}

static inline struct nw_platform platform_on(const struct nw_curves *curves, double tflops,
                                             int gpus_per_node)
{
    return (struct nw_platform){
        .hbm_bytes_per_s = NAN,
        .rate = {.flops_per_s = tflops * 1e12, .rel_error = 0.1, .source = NW_RATE_STATED},
        .fabric = {.curves = curves,
                   .gpus_per_node = gpus_per_node,
                   .intra_busbw_bytes_per_s = NAN,
                   .inter_busbw_bytes_per_s = NAN,
                   .link_bytes_per_s = NAN},
    };
}

/* A preset in bf16 with Adam and a flash kernel. */
static inline struct nw_job preset_job(const char *model, uint64_t sequence, uint64_t micro_batch,
                                       uint64_t global_batch)
{
    struct nw_job job = {.sequence = sequence,
                         .micro_batch = micro_batch,
                         .global_batch = global_batch,
                         .precision = nw_precision_named("bf16"),
                         .optimizer = nw_optimizer_named("adam"),
                         .master_bytes = NAN,
                         .gradient_bytes = 2,
                         .flash = true,
                         .tokens = NAN};

    if (nw_transformer_find(model, &job.net) != NW_OK) {
        fprintf(stderr, "%s\n", nw_last_error()->text);
        abort();
    }
    return job;
}

#endif
