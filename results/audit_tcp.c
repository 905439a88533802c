/* RDMA is quoted: is it what runs? The collectives' rate between nodes held against what TCP
 * carries between the same nodes: by the same collective in the lane tcp, by sockets (case tcp), or
 * by iperf3. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "results/audit_private.h"

/* Sockets below a collective reach 80 to 95 % of what plain sockets do (topo/link.h), and by a bad
 * choice of connections half; what is above them by more than noise is not TCP. */
#define AS_TCP_LEAST 0.4
#define AS_TCP_MOST  1.15
/* From here on TCP is as good as what was sold, and the rate does not tell the two apart. */
#define TELLS_APART 0.7
/* By so much RDMA below NCCL must be above TCP to be worth a word. */
#define CLEARLY_ABOVE 1.3

static bool has_host(const struct nw_context *context, const char *name)
{
    for (int i = 0; context->hosts != NULL && i < context->host_count; i++)
        if (strcmp(context->hosts[i].name, name) == 0)
            return true;
    return context->hosts == NULL;
}

/* iperf3 calls one end by the kernel's name, which may lack the domain, and the other as it was
 * told to, mostly by address. */
static bool has_end(const struct nw_context *context, const char *name)
{
    const size_t length = strcspn(name, ".");

    for (int i = 0; context->hosts != NULL && i < context->host_count; i++) {
        const char *host = context->hosts[i].name;

        if (strcmp(host, name) == 0 ||
            (strcspn(name, "0123456789:") > 0 && strcspn(host, ".") == length &&
             strncmp(host, name, length) == 0))
            return true;
    }
    return context->hosts == NULL;
}

/* Between hosts of the evidence; of iperf3 one end must be. */
static bool is_between(const struct nw_wire_evidence *evidence, const struct nw_run *run,
                       const struct nw_record *record)
{
    const struct nw_context *context = &evidence->run->context;

    if (record->rc != NW_OK || record->wrong_elements > 0 || record->host_count == 1 ||
        strcmp(record->host_a, record->host_b) == 0 || !(record->algbw_bytes_per_s > 0))
        return false;
    if (strcmp(run->context.tool, "iperf3") == 0)
        return has_end(context, record->host_a) || has_end(context, record->host_b);
    if (evidence->host_a[0] != '\0')
        return (strcmp(record->host_a, evidence->host_a) == 0 &&
                strcmp(record->host_b, evidence->host_b) == 0) ||
               (strcmp(record->host_a, evidence->host_b) == 0 &&
                strcmp(record->host_b, evidence->host_a) == 0);
    return has_host(context, record->host_a) && has_host(context, record->host_b);
}

static bool is_stream(const struct nw_record *record)
{
    return strcmp(record->case_name, "tcp") == 0 && strcmp(record->collective, "stream") == 0 &&
           strcmp(record->lane, "tcp") == 0;
}

/* Verbs below NCCL (case nic). */
static bool is_rdma(const struct nw_record *record)
{
    return strcmp(record->case_name, "nic") == 0 && strstr(record->collective, "latency") == NULL;
}

/* The fastest that fits; NULL: none. */
static const struct nw_record *fastest(const struct nw_audit_state *state,
                                       const struct nw_wire_evidence *evidence,
                                       bool (*fits)(const struct nw_record *record),
                                       const struct nw_run **run_out)
{
    const struct nw_record *best = NULL;

    for (size_t i = 0; i < state->results->run_count; i++) {
        const struct nw_run *run = &state->results->runs[i];

        for (size_t j = 0; j < run->record_count; j++) {
            const struct nw_record *record = &run->records[j];

            if (!fits(record) || !is_between(evidence, run, record) ||
                (best != NULL && record->algbw_bytes_per_s <= best->algbw_bytes_per_s))
                continue;
            best = record;
            *run_out = run;
        }
    }
    return best;
}

/* The same collective in the lane tcp, over what the evidence reads: 1 is as fast; NAN: none. */
static double lane_ratio(const struct nw_wire_evidence *evidence)
{
    const struct nw_run *run = evidence->run;

    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];
        struct nw_plateau plateau;

        if (strcmp(record->lane, "tcp") != 0 || strcmp(evidence->lane, "tcp") == 0 ||
            strcmp(record->case_name, evidence->case_name) != 0 ||
            strcmp(record->collective, evidence->collective) != 0 ||
            record->rank_count != evidence->rank_count ||
            record->host_count != evidence->record_hosts || record->peer_a != evidence->peer_a ||
            record->peer_b != evidence->peer_b)
            continue;
        if (nw_plateau_like(run, record, -1, &plateau) == NW_OK)
            return plateau.busbw_bytes_per_s / evidence->plateau.busbw_bytes_per_s;
        nw_clear_error();
    }
    return NAN;
}

/* What TCP reaches, in the reading's measure, and who says so. */
static void find_control(const struct nw_audit_state *state,
                         const struct nw_wire_evidence *evidence, double measured,
                         struct nw_tcp_control *control)
{
    const int nics = state->quote->nic_count;
    const double ratio = lane_ratio(evidence);
    const struct nw_run *run = NULL;
    const struct nw_record *record;

    control->most = AS_TCP_MOST;
    if (isfinite(ratio)) {
        control->bytes_per_s = ratio * measured;
        snprintf(control->who, sizeof control->who, "the same in the lane tcp, sockets only,");
        return;
    }
    record = fastest(state, evidence, is_stream, &run);
    if (record == NULL)
        return;
    control->bytes_per_s = record->algbw_bytes_per_s;
    control->most = AS_TCP_MOST * (nics > 1 ? nics : 1);
    control->simulated = record->simulated;
    if (strcmp(run->context.tool, "iperf3") == 0)
        snprintf(control->who, sizeof control->who, "iperf3 over TCP (%.80s)", record->source);
    else if (record->stream_count == 1)
        snprintf(control->who, sizeof control->who, "plain TCP sockets (%s to %s, one connection)",
                 record->host_a, record->host_b);
    else
        snprintf(control->who, sizeof control->who, "plain TCP sockets (%s to %s, %d connections)",
                 record->host_a, record->host_b, record->stream_count);
}

/* Does what is below NCCL do better? */
static void add_rdma(const struct nw_audit_state *state, const struct nw_wire_evidence *evidence,
                     struct nw_tcp_control *control)
{
    const struct nw_run *run = NULL;
    const struct nw_record *record = fastest(state, evidence, is_rdma, &run);
    const size_t length = strlen(control->text);
    char rate[32];

    if (record != NULL && record->algbw_bytes_per_s > CLEARLY_ABOVE * control->bytes_per_s)
        snprintf(control->text + length, sizeof control->text - length,
                 "; RDMA itself reaches %s GB/s over one NIC, and is not used",
                 nw_format_gb_per_s(rate, record->algbw_bytes_per_s));
}

/* By what NCCL says or was told. */
static bool names_no_tcp(const struct nw_wire_evidence *evidence)
{
    const char *network = evidence->run->context.network;

    return strcmp(evidence->lane, "rdma") == 0 ||
           (network[0] != '\0' && strcmp(network, "Socket") != 0);
}

static void word(const struct nw_wire_evidence *evidence, double measured, double quoted,
                 struct nw_tcp_control *control)
{
    char reached[32], tcp[32], sold[32];

    nw_format_gb_per_s(reached, measured);
    nw_format_gb_per_s(tcp, control->bytes_per_s);
    nw_format_gb_per_s(sold, quoted);
    if (control->says == NW_TCP_IS_SLOWER && names_no_tcp(evidence))
        snprintf(control->text, sizeof control->text,
                 "%s reaches %s GB/s, and %s %s: it is not TCP that runs, %s%s",
                 evidence->collective, reached, control->who, tcp,
                 strcmp(evidence->lane, "rdma") == 0 ? "the lane rdma takes no sockets"
                                                     : "NCCL itself says NET/",
                 strcmp(evidence->lane, "rdma") == 0 ? "" : evidence->run->context.network);
    else if (control->says == NW_TCP_RUNS && !isfinite(control->bytes_per_s))
        snprintf(control->text, sizeof control->text,
                 "RDMA is quoted, TCP is what runs: NCCL itself says NET/Socket, and %s reaches %s "
                 "GB/s of the %s sold",
                 evidence->collective, reached, sold);
    else if (control->says == NW_TCP_RUNS)
        snprintf(control->text, sizeof control->text,
                 "RDMA is quoted, TCP is what runs: %s reaches %s GB/s, %s %s, and %s are sold",
                 evidence->collective, reached, control->who, tcp, sold);
    else if (control->says == NW_TCP_IS_FASTER)
        snprintf(control->text, sizeof control->text,
                 "%s reaches %s GB/s, and %s %s: the wire carries more than that even without RDMA",
                 evidence->collective, reached, control->who, tcp);
    else
        snprintf(control->text, sizeof control->text,
                 "%s reaches %s GB/s, and %s %s: it is not TCP that runs", evidence->collective,
                 reached, control->who, tcp);
}

void nw_tcp_control_of(const struct nw_audit_state *state, const struct nw_wire_evidence *evidence,
                       double quoted, struct nw_tcp_control *control_out)
{
    struct nw_tcp_control control = {.says = NW_TCP_SILENT, .bytes_per_s = NAN};
    const bool sockets = strcmp(evidence->run->context.network, "Socket") == 0 &&
                         strcmp(evidence->lane, "rdma") != 0;

    *control_out = control;
    if (evidence->best < 0)
        return;
    const double measured = evidence->readings[evidence->best].bytes_per_s;

    find_control(state, evidence, measured, &control);
    const double share = measured / control.bytes_per_s; /* NAN: no control */

    if (sockets)
        control.says = NW_TCP_RUNS;
    else if (!(control.bytes_per_s < TELLS_APART * quoted))
        return;
    else if (share < AS_TCP_LEAST)
        control.says = NW_TCP_IS_FASTER;
    else if (share > control.most || names_no_tcp(evidence))
        control.says = NW_TCP_IS_SLOWER;
    else if (share <= AS_TCP_MOST)
        control.says = NW_TCP_RUNS;
    else /* over all interfaces TCP may well reach it */
        return;
    word(evidence, measured, quoted, &control);
    if (control.says == NW_TCP_RUNS && isfinite(control.bytes_per_s))
        add_rdma(state, evidence, &control);
    *control_out = control;
}
