/* A collective's time as a wire rate. n ranks on k hosts, g = n / k on each.
 *
 * One node, per GPU (NVIDIA/nccl-tests doc/PERFORMANCE.md, #153):
 *   ring   every link carries busbw
 *   nvls   the switch reduces: algbw (n + 1) / n
 * Between nodes, per node, one way:
 *   ring   one link of the ring leaves the node (summed over its rails): busbw
 *   tree   hierarchical, each GPU exchanges its share: g × busbw (k - 1) / (n - 1)
 *          (stas00/ml-engineering, network)
 *   recursive doubling (MPI)  every rank sends the whole buffer in each of log2 k rounds: g × algbw
 *          × log2 k
 *   all-to-all  (n - g) of (n - 1) parts leave the node: g × busbw (n - g) / (n - 1)
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "results/audit_private.h"
#include "topo/link.h"

/* A reading above what the link carries is another algorithm's: clocks, rounding and token buckets
 * stay below 3 %. */
#define IMPOSSIBLE 1.03
/* The network does not bound a run that is as fast across nodes as inside one. */
#define AS_INSIDE 0.85
/* Collectives that don't fill the wires on healthy machines still reach a quarter: all-to-all on
 * one H100 per node reached 27 of 50 GB/s, send-receive inside 8 A100 195 of 300. */
#define LEAST_OF_BOUND 0.25
/* From here on a call is long against its start: the start is below 0.2 ms everywhere
 * (16 MiB to 1 GiB on the public curves, where time at 1 GiB is 60 × the latency). */
#define LONG_CALL_NS 10e6

static void add_reading(struct nw_wire_evidence *evidence, const char *algorithm,
                        double bytes_per_s, struct nw_efficiency efficiency)
{
    if (!(bytes_per_s > 0) || evidence->reading_count == NW_AUDIT_MAX_READINGS)
        return;
    evidence->readings[evidence->reading_count++] = (struct nw_audit_reading){
        .algorithm = algorithm,
        .bytes_per_s = bytes_per_s,
        .expected_low = efficiency.low,
        .expected_high = efficiency.high,
    };
}

/* The algorithm that was forced: by lane, or NCCL_ALGO in the run's environment; "": open. */
static const char *forced_algorithm(const struct nw_wire_evidence *evidence)
{
    static const char *const names[] = {"ring", "tree", "nvls"};
    const char *variable =
        json_string_value(json_object_get(evidence->run->context.environment, "NCCL_ALGO"));

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(evidence->lane, names[i]) == 0 ||
            (variable != NULL && strcasecmp(variable, names[i]) == 0))
            return names[i];
    }
    return "";
}

static bool is_open_to(const char *forced, const char *algorithm)
{
    return forced[0] == '\0' || strcmp(forced, algorithm) == 0;
}

static void read_inside(const struct nw_wire_target *target, struct nw_wire_evidence *evidence)
{
    const double n = evidence->rank_count, busbw = evidence->plateau.busbw_bytes_per_s;
    const char *forced = forced_algorithm(evidence);

    if (strcmp(evidence->collective, "all_reduce") != 0) {
        add_reading(evidence, "direct", busbw, nw_nvlink_collective_efficiency());
        return;
    }
    if (!is_open_to(forced, "nvls"))
        add_reading(evidence, "ring", busbw, nw_nvlink_collective_efficiency());
    else if (strcmp(forced, "nvls") == 0)
        add_reading(evidence, "nvls", evidence->plateau.algbw_bytes_per_s * (n + 1) / n,
                    nw_nvlink_switch_efficiency());
    else {
        add_reading(evidence, "ring", busbw, nw_nvlink_collective_efficiency());
        if (target->reduces && n >= 4) /* NCCL takes NVLS from 4 to 8 GPUs on, never for a pair */
            add_reading(evidence, "nvls", evidence->plateau.algbw_bytes_per_s * (n + 1) / n,
                        nw_nvlink_switch_efficiency());
    }
}

static void read_between(const struct nw_wire_target *target, struct nw_wire_evidence *evidence)
{
    const double n = evidence->rank_count, k = evidence->host_count, g = n / k;
    const double busbw = evidence->plateau.busbw_bytes_per_s;
    const double algbw = evidence->plateau.algbw_bytes_per_s;
    const char *forced = forced_algorithm(evidence);
    const struct nw_efficiency efficiency =
        target->rdma && evidence->gpu ? nw_rdma_collective_efficiency() : nw_tcp_efficiency();

    if (strcmp(evidence->collective, "alltoall") == 0) {
        add_reading(evidence, "direct", g * busbw * (n - g) / (n - 1), efficiency);
    } else if (strcmp(evidence->collective, "sendrecv") == 0) {
        add_reading(evidence, "direct", busbw, efficiency);
    } else if (strcmp(evidence->collective, "all_reduce") != 0) {
        add_reading(evidence, "ring", busbw, efficiency);
    } else {
        if (is_open_to(forced, "ring"))
            add_reading(evidence, "ring", busbw, efficiency);
        if (is_open_to(forced, "tree") && g > 1)
            add_reading(evidence, "tree", g * busbw * (k - 1) / (n - 1), efficiency);
        if (!evidence->gpu && g > 1)
            add_reading(evidence, "recursive doubling", g * algbw * log2(k), efficiency);
    }
}

/* The reading, possible and closest to what the quote needs or furthest above it. */
static void choose(const struct nw_wire_target *target, struct nw_wire_evidence *evidence)
{
    const double quoted = target->quoted * evidence->part;
    const double limit = isfinite(target->ceiling) ? target->ceiling * evidence->part : INFINITY;

    evidence->best = -1;
    evidence->score = 0;
    for (size_t i = 0; i < evidence->reading_count; i++) {
        struct nw_audit_reading *reading = &evidence->readings[i];
        const double score = reading->bytes_per_s / (reading->expected_low * quoted);
        const double base = isfinite(limit) ? limit : quoted;

        reading->possible = reading->bytes_per_s <= IMPOSSIBLE * limit;
        reading->expected_low *= base;
        reading->expected_high *= base;
        if (reading->possible && score > evidence->score) {
            evidence->best = (int)i;
            evidence->score = score;
        }
    }
}

static bool is_long_enough(const struct nw_plateau *plateau)
{
    return plateau->from_bytes < plateau->to_bytes ||
           (double)plateau->to_bytes / plateau->algbw_bytes_per_s * 1e9 >= LONG_CALL_NS;
}

/* A rate of it is a lower bound of what the wires carry. */
static bool is_bound(const struct nw_wire_evidence *evidence)
{
    return strcmp(evidence->collective, "alltoall") == 0 ||
           (strcmp(evidence->collective, "sendrecv") == 0 && evidence->peer_a < 0);
}

#define SAY(...) snprintf(evidence->reason, sizeof evidence->reason, __VA_ARGS__)

/* Why a low rate proves nothing; false: it does. Words the reason. */
static bool only_bounds(const struct nw_wire_target *target, double inside,
                        struct nw_wire_evidence *evidence)
{
    const char *collective = evidence->collective;
    const double busbw = evidence->plateau.busbw_bytes_per_s;
    char rate[32], size[32];

    nw_format_gb_per_s(rate, evidence->best >= 0 ? evidence->readings[evidence->best].bytes_per_s
                                                 : busbw);
    nw_format_bytes(size, evidence->plateau.to_bytes);
    if (target->gpu && !evidence->gpu)
        SAY("only host memory over MPI was measured (%s GB/s), which does not use the GPUs%s; run "
            "all_reduce_perf of nccl-tests %s and audit its log",
            rate, target->rdma ? " and may not use RDMA" : "",
            target->between_nodes ? "on all GPUs of two nodes up to 8G"
                                  : "on all GPUs of one node up to 8G");
    else if (target->rdma && !evidence->gpu)
        SAY("MPI reached %s GB/s here, perhaps over TCP; ib_write_bw between the nodes shows what "
            "RDMA does",
            rate);
    else if (!is_long_enough(&evidence->plateau))
        SAY("%s ended at %s (%s GB/s), where the start of a call still weighs; go up to 8G",
            collective, size, rate);
    else if (evidence->has_interval && evidence->best >= 0 &&
             evidence->score * evidence->plateau.high >= busbw)
        SAY("%s read %s GB/s, but its interval reaches what is needed; measure longer, with "
            "nothing "
            "else running",
            collective, rate);
    else if (target->between_nodes && evidence->reading_count > 0 &&
             strcmp(evidence->readings[0].algorithm, "ring") == 0 &&
             !evidence->readings[0].possible)
        SAY("%s is faster than a ring over these NICs can be, so the nodes bound it and not the "
            "network, which carried %s GB/s or more; NCCL_ALGO=RING shows the network's limit",
            collective, rate);
    else if (target->between_nodes && isfinite(inside) && busbw >= AS_INSIDE * inside)
        SAY("%s is as fast across nodes as inside one, so the nodes bound it and not the network, "
            "which carried %s GB/s or more",
            collective, rate);
    else if (target->between_nodes && target->may_be_slow_inside && !isfinite(inside))
        SAY("%s GB/s were reached, but without NVLink a node itself may be the limit; add a log of "
            "the same test on one node",
            rate);
    else if (is_bound(evidence) && evidence->readings[evidence->best].bytes_per_s >=
                                       LEAST_OF_BOUND * target->quoted * evidence->part)
        SAY("%s reached %s GB/s or more, but does not fill the wires everywhere; run "
            "all_reduce_perf up to 8G",
            collective, rate);
    else
        return false;
    return true;
}

void nw_wire_judge(const struct nw_wire_target *target, double inside,
                   struct nw_wire_evidence *evidence)
{
    const int g = evidence->rank_count / evidence->host_count;
    char best[32];

    evidence->reading_count = 0;
    evidence->reason[0] = '\0';
    evidence->verdict = NW_AUDIT_NOT_MEASURED;
    evidence->part = 1;
    if (target->between_nodes && target->gpu && evidence->gpu && target->gpus_per_node > g)
        evidence->part = (double)g / target->gpus_per_node;
    if (target->between_nodes)
        read_between(target, evidence);
    else
        read_inside(target, evidence);
    choose(target, evidence);
    if (evidence->best < 0) {
        SAY("%s reads %s GB/s, above what the hardware carries: the rank count, the GPU or the "
            "quote is another than it seems",
            evidence->collective, nw_format_gb_per_s(best, evidence->plateau.busbw_bytes_per_s));
        return;
    }
    const struct nw_audit_reading *reading = &evidence->readings[evidence->best];

    nw_format_gb_per_s(best, reading->bytes_per_s);
    if (evidence->score >= 1 && evidence->part < 1) {
        SAY("%d of %d GPUs a node took part and reached their share (%s GB/s); run on all of them",
            g, target->gpus_per_node, best);
    } else if (evidence->score >= 1) {
        evidence->verdict = NW_AUDIT_MET;
    } else if (!only_bounds(target, inside, evidence)) {
        evidence->verdict = NW_AUDIT_SHORT;
        if (evidence->part < 1)
            SAY("%d of %d GPUs a node took part; held against their share of the NICs", g,
                target->gpus_per_node);
    }
}
