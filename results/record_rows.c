#include "results/record_rows.h"

#include <stddef.h>

#define TEXT(json_key, member, needed)                                                             \
    {                                                                                              \
        .key = (json_key), .type = NW_FIELD_TEXT, .required = (needed),                            \
        .offset = offsetof(struct nw_record, member),                                              \
        .size = sizeof(((struct nw_record *)0)->member)                                            \
    }
#define NUMBER(json_key, field_type, member, least)                                                \
    {                                                                                              \
        .key = (json_key), .type = (field_type), .offset = offsetof(struct nw_record, member),     \
        .min = (least)                                                                             \
    }

/* In the order of the line. `min` is what is written: below it a value is unknown. */
const struct nw_line_field nw_record_identity_rows[] = {
    TEXT("case", case_name, true),
    TEXT("collective", collective, true),
    TEXT("lane", lane, true),
    TEXT("features", features, false),
    TEXT("dtype", dtype, true),
    TEXT("op", op, true),
    NUMBER("root", NW_FIELD_INT, root, 0),
    NUMBER("ranks", NW_FIELD_INT, rank_count, 1),
    NUMBER("hosts", NW_FIELD_INT, host_count, 1),
    {.key = "bytes",
     .type = NW_FIELD_U64,
     .required = true,
     .offset = offsetof(struct nw_record, bytes)},
    NUMBER("count", NW_FIELD_U64, count, 0),
    {.key = "in_place",
     .type = NW_FIELD_BOOL,
     .required = true,
     .offset = offsetof(struct nw_record, in_place)},
    NUMBER("peer_a", NW_FIELD_INT, peer_a, 0),
    NUMBER("peer_b", NW_FIELD_INT, peer_b, 0),
    TEXT("host_a", host_a, false),
    TEXT("host_b", host_b, false),
    TEXT("nic_a", nic_a, false),
    TEXT("nic_b", nic_b, false),
    TEXT("memory", memory, false),
    NUMBER("streams", NW_FIELD_INT, stream_count, 1),
    NUMBER("piece_bytes", NW_FIELD_U64, piece_bytes, 1),
    NUMBER("m", NW_FIELD_U64, m, 1),
    NUMBER("n", NW_FIELD_U64, n, 1),
    NUMBER("k", NW_FIELD_U64, k, 1),
};

const struct nw_line_field nw_record_result_rows[] = {
    NUMBER("calls_per_sample", NW_FIELD_U32, calls_per_sample, 1),
    NUMBER("skew_ns", NW_FIELD_REAL, skew_ns, 0),
    NUMBER("slowest_rank", NW_FIELD_INT, slowest_rank, 0),
    {.key = "slowest_share",
     .type = NW_FIELD_REAL,
     .offset = offsetof(struct nw_record, slowest_share),
     .max = 1},
    TEXT("slowest_host", slowest_host, false),
    NUMBER("algbw_bytes_per_s", NW_FIELD_REAL, algbw_bytes_per_s, 0),
    NUMBER("busbw_bytes_per_s", NW_FIELD_REAL, busbw_bytes_per_s, 0),
    NUMBER("ceiling_bytes_per_s", NW_FIELD_REAL, ceiling_bytes_per_s, 0),
    NUMBER("expected_ns", NW_FIELD_REAL, expected_ns, 0),
    NUMBER("flop_per_s", NW_FIELD_REAL, flop_per_s, 0),
    NUMBER("alone_ns", NW_FIELD_REAL, alone_ns, 0),
    NUMBER("alone_flop_per_s", NW_FIELD_REAL, alone_flop_per_s, 0),
    {.key = "hidden_share",
     .type = NW_FIELD_REAL,
     .offset = offsetof(struct nw_record, hidden_share),
     .max = 1},
    NUMBER("wire_bytes_per_s", NW_FIELD_REAL, wire_bytes_per_s, 0),
    NUMBER("nic_bytes_per_s", NW_FIELD_REAL, nic_bytes_per_s, 0),
    {.key = "port_share",
     .type = NW_FIELD_REAL,
     .offset = offsetof(struct nw_record, port_share),
     .max = 1},
    NUMBER("ports", NW_FIELD_INT, port_count, 1),
    NUMBER("ports_used", NW_FIELD_INT, used_port_count, 1),
    NUMBER("qps", NW_FIELD_INT, qps, 1),
    NUMBER("depth", NW_FIELD_INT, depth, 1),
    NUMBER("mtu_bytes", NW_FIELD_U32, mtu_bytes, 1),
    NUMBER("messages_per_s", NW_FIELD_REAL, messages_per_s, 0),
    TEXT("gid_a", gid_a, false),
    TEXT("gid_b", gid_b, false),
    TEXT("registered", registered, false),
    NUMBER("wrong_elements", NW_FIELD_I64, wrong_elements, 0),
    {.key = "simulated",
     .type = NW_FIELD_BOOL,
     .required = true,
     .offset = offsetof(struct nw_record, simulated)},
    TEXT("source", source, false),
};

#define STAT(json_key, member)                                                                     \
    {                                                                                              \
        .key = (json_key), .type = NW_FIELD_REAL, .offset = offsetof(struct nw_stats, member)      \
    }
const struct nw_line_field nw_record_time_rows[] = {
    {.key = "median",
     .type = NW_FIELD_REAL,
     .required = true,
     .offset = offsetof(struct nw_stats, median)},
    STAT("low", low),
    STAT("high", high),
    {.key = "level", .type = NW_FIELD_REAL, .offset = offsetof(struct nw_stats, level), .max = 1},
    STAT("min", min),
    STAT("p25", p25),
    STAT("p75", p75),
    STAT("p95", p95),
    STAT("p99", p99),
    STAT("max", max),
    STAT("mean", mean),
    STAT("stddev", stddev),
    STAT("mad", mad),
    {.key = "count",
     .type = NW_FIELD_SIZE,
     .offset = offsetof(struct nw_stats, count),
     .min = 1,
     .max = 1e15},
};

#define STATE(json_key, field_type, member)                                                        \
    {                                                                                              \
        .key = (json_key), .type = (field_type), .offset = offsetof(struct nw_gpu_state, member)   \
    }
const struct nw_line_field nw_record_state_rows[] = {
    STATE("sm_clock_hz", NW_FIELD_REAL, sm_clock_hz),
    STATE("sm_max_clock_hz", NW_FIELD_REAL, sm_max_clock_hz),
    STATE("power_w", NW_FIELD_REAL, power_w),
    STATE("power_limit_w", NW_FIELD_REAL, power_limit_w),
    STATE("temperature_c", NW_FIELD_REAL, temperature_c),
    STATE("throttle", NW_FIELD_I64, throttle),
};
const struct nw_record_state nw_record_states[NW_RECORD_STATE_COUNT] = {
    {"before", offsetof(struct nw_record, before)},
    {"during", offsetof(struct nw_record, during)},
    {"after", offsetof(struct nw_record, after)},
};

const size_t nw_record_identity_row_count =
    sizeof nw_record_identity_rows / sizeof nw_record_identity_rows[0];
const size_t nw_record_result_row_count =
    sizeof nw_record_result_rows / sizeof nw_record_result_rows[0];
const size_t nw_record_time_row_count = sizeof nw_record_time_rows / sizeof nw_record_time_rows[0];
const size_t nw_record_state_row_count =
    sizeof nw_record_state_rows / sizeof nw_record_state_rows[0];

/* results/record_scan.c keeps a bit for each. */
_Static_assert(sizeof nw_record_identity_rows / sizeof nw_record_identity_rows[0] +
                       sizeof nw_record_result_rows / sizeof nw_record_result_rows[0] <=
                   64,
               "more keys than a scan has bits");
