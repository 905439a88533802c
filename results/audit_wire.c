#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "results/audit_private.h"

/* FNV-1a, 64 bits. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

#define HASH_START UINT64_C(14695981039346656037)

/* Equal for the same hosts in any order; a run that names none is a set of its own file. */
static uint64_t hosts_of(const struct nw_wire_evidence *evidence)
{
    const struct nw_context *context = &evidence->run->context;
    uint64_t sum = 0;

    if (evidence->host_a[0] != '\0')
        return hash_text(HASH_START, evidence->host_a) + hash_text(HASH_START, evidence->host_b);
    if (context->hosts == NULL || context->host_count <= 0)
        return hash_text(HASH_START, context->source);
    /* Fewer hosts than the run has: its first ones (case scaling). */
    for (int i = 0; i < context->host_count && i < evidence->host_count; i++)
        sum += hash_text(HASH_START, context->hosts[i].name);
    return sum;
}

static bool is_gpu_context(const struct nw_context *context)
{
    return context->gpu_model[0] != '\0' || strcmp(context->backend, "nccl") == 0 ||
           strncmp(context->tool, "nccl-tests", 10) == 0 ||
           strncmp(context->tool, "rccl-tests", 10) == 0;
}

static const char *const collectives[] = {"all_reduce", "all_gather", "reduce_scatter", "alltoall",
                                          "sendrecv"};

/* -1: says nothing of a wire. */
static int collective_index(const char *name)
{
    for (size_t i = 0; i < sizeof collectives / sizeof collectives[0]; i++)
        if (strcmp(collectives[i], name) == 0)
            return (int)i;
    return -1;
}

/* Hosts of a record. A log that lost its list of ranks has more ranks than a node has GPUs: then
 * they fill nodes. 0: unknown. */
static int hosts_of_record(const struct nw_wire_target *target, const struct nw_record *record)
{
    const int per_node = target->gpus_per_node;

    if (record->host_count > 0)
        return record->host_count;
    return per_node > 0 && record->rank_count > per_node && record->rank_count % per_node == 0
               ? record->rank_count / per_node
               : 0;
}

static bool is_case_of_wires(const struct nw_record *record)
{
    return nw_record_is_collective(record) || strcmp(record->case_name, "pairs") == 0;
}

/* A lane that keeps the bytes off the claimed wire says nothing of it. */
static bool avoids(const struct nw_wire_target *target, const char *lane)
{
    static const char *const off_nvlink[] = {"pcie", "shm", NULL};
    static const char *const off_rdma[] = {"tcp", "nogdr", NULL};
    static const char *const none[] = {NULL};
    const char *const *lanes = !target->between_nodes ? off_nvlink : target->rdma ? off_rdma : none;

    for (; *lanes != NULL; lanes++)
        if (strcmp(*lanes, lane) == 0)
            return true;
    return false;
}

static bool speaks(const struct nw_wire_target *target, const struct nw_run *run,
                   const struct nw_record *record)
{
    const int hosts = hosts_of_record(target, record);
    const bool pairs = strcmp(record->case_name, "pairs") == 0;

    if (!is_case_of_wires(record) || avoids(target, record->lane) ||
        collective_index(record->collective) < 0 || record->rc != NW_OK ||
        record->piece_bytes > 0 || !isfinite(record->busbw_bytes_per_s) || record->rank_count < 2 ||
        record->host_count < 1 || record->rank_count % record->host_count != 0)
        return false;
    if (!target->between_nodes)
        return hosts == 1 && !pairs && is_gpu_context(&run->context);
    /* Send-receive goes round the ranks: only one of a host's sends to another host. */
    if (!pairs)
        return hosts > 1 &&
               (strcmp(record->collective, "sendrecv") != 0 || record->rank_count == hosts);
    /* Pairs of one round run at once: several ranks on a host share its NICs. */
    return record->rank_count == hosts && record->host_a[0] != '\0' &&
           strcmp(record->host_a, record->host_b) != 0;
}

static bool is_of(const struct nw_wire_evidence *evidence, const struct nw_record *record)
{
    return strcmp(evidence->case_name, record->case_name) == 0 &&
           strcmp(evidence->collective, record->collective) == 0 &&
           strcmp(evidence->lane, record->lane) == 0 &&
           strcmp(evidence->features, record->features) == 0 &&
           evidence->rank_count == record->rank_count &&
           evidence->record_hosts == record->host_count && evidence->peer_a == record->peer_a &&
           evidence->peer_b == record->peer_b;
}

static struct nw_wire_evidence evidence_of(const struct nw_wire_target *target,
                                           const struct nw_run *run, const struct nw_record *record)
{
    struct nw_wire_evidence evidence = {
        .run = run,
        .case_name = record->case_name,
        .collective = record->collective,
        .lane = record->lane,
        .features = record->features,
        .host_a = record->host_a,
        .host_b = record->host_b,
        .peer_a = record->peer_a,
        .peer_b = record->peer_b,
        .rank_count = record->rank_count,
        .host_count = hosts_of_record(target, record),
        .record_hosts = record->host_count,
        .gpu = is_gpu_context(&run->context),
        .simulated = record->simulated || run->context.simulated,
        .best = -1,
        .part = 1,
    };

    evidence.host_set = hosts_of(&evidence);
    return evidence;
}

/* The plateau over the records of this evidence only: a view that borrows them. NW_ENODEV: none can
 * be used (wrong results). */
static nw_rc find_plateau(struct nw_wire_evidence *evidence)
{
    const struct nw_run *run = evidence->run;
    struct nw_run view = {.record_count = 0};

    view.records = malloc(run->record_count * sizeof *view.records);
    if (view.records == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu records", run->record_count);
    for (size_t i = 0; i < run->record_count; i++)
        if (is_of(evidence, &run->records[i]))
            view.records[view.record_count++] = run->records[i];
    const nw_rc rc =
        nw_plateau_of(&view, evidence->case_name, evidence->collective, evidence->rank_count,
                      evidence->host_count, -1, &evidence->plateau);

    for (size_t i = 0; rc == NW_OK && i < view.record_count; i++)
        if (view.records[i].bytes >= evidence->plateau.from_bytes &&
            isfinite(view.records[i].time_ns.low))
            evidence->has_interval = true;
    free(view.records);
    return rc;
}

/* Appends the groups of one run. */
static nw_rc gather_run(const struct nw_wire_target *target, const struct nw_run *run,
                        struct nw_wire_evidence **list, size_t *count)
{
    const size_t first = *count;

    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];
        bool seen = !speaks(target, run, record);

        for (size_t j = first; j < *count && !seen; j++)
            seen = is_of(&(*list)[j], record);
        if (seen)
            continue;
        struct nw_wire_evidence evidence = evidence_of(target, run, record);
        const nw_rc rc = find_plateau(&evidence);

        if (rc == NW_ENODEV)
            continue;
        NW_TRY(rc);
        struct nw_wire_evidence *larger = realloc(*list, (*count + 1) * sizeof *larger);

        if (larger == NULL)
            return nw_fail(NW_ENOMEM, "no memory for %zu curves", *count + 1);
        *list = larger;
        larger[(*count)++] = evidence;
    }
    return NW_OK;
}

/* The fastest busbw inside one node of each collective, on GPUs and on host memory. */
struct inside {
    double rate[sizeof collectives / sizeof collectives[0]][2]; /* NAN: unknown */
};

static void find_inside(const struct nw_results *results, struct inside *inside)
{
    for (size_t c = 0; c < sizeof collectives / sizeof collectives[0]; c++)
        inside->rate[c][0] = inside->rate[c][1] = NAN;
    for (size_t i = 0; results != NULL && i < results->run_count; i++) {
        const struct nw_run *run = &results->runs[i];
        const bool gpu = is_gpu_context(&run->context);

        for (size_t j = 0; j < run->record_count; j++) {
            const struct nw_record *record = &run->records[j];
            const int c = collective_index(record->collective);

            if (c >= 0 && is_case_of_wires(record) && record->host_count == 1 &&
                record->rank_count > 1 && record->rc == NW_OK &&
                strcmp(record->case_name, "pairs") != 0 &&
                record->busbw_bytes_per_s >
                    (isnan(inside->rate[c][gpu]) ? 0 : inside->rate[c][gpu]))
                inside->rate[c][gpu] = record->busbw_bytes_per_s;
        }
    }
}

bool nw_wire_has_unknown_hosts(const struct nw_audit_state *state)
{
    for (size_t i = 0; state->results != NULL && i < state->results->run_count; i++) {
        const struct nw_run *run = &state->results->runs[i];

        for (size_t j = 0; j < run->record_count; j++)
            if (run->records[j].host_count == 0 && run->records[j].rank_count != 1 &&
                collective_index(run->records[j].collective) >= 0)
                return true;
    }
    return false;
}

nw_rc nw_wire_gather(const struct nw_audit_state *state, const struct nw_wire_target *target,
                     struct nw_wire_evidence **list_out, size_t *count_out)
{
    struct nw_wire_evidence *list = NULL;
    size_t count = 0;
    struct inside inside;

    for (size_t i = 0; state->results != NULL && i < state->results->run_count; i++) {
        const nw_rc rc = gather_run(target, &state->results->runs[i], &list, &count);

        if (rc != NW_OK) {
            free(list);
            return rc;
        }
    }
    find_inside(state->results, &inside);
    for (size_t i = 0; i < count; i++)
        nw_wire_judge(target, inside.rate[collective_index(list[i].collective)][list[i].gpu],
                      &list[i]);
    *list_out = list;
    *count_out = count;
    return NW_OK;
}

static int rank_of(nw_audit_verdict verdict, bool best_wins)
{
    if (verdict == NW_AUDIT_NOT_MEASURED)
        return 0;
    return (verdict == NW_AUDIT_MET) == best_wins ? 2 : 1;
}

static void note_contradiction(const struct nw_wire_evidence *good,
                               const struct nw_wire_evidence *bad, struct nw_findings *findings)
{
    char fast[32], slow[32];

    if (good->verdict != NW_AUDIT_MET || bad->verdict != NW_AUDIT_SHORT ||
        strcmp(good->collective, bad->collective) != 0 || strcmp(good->lane, bad->lane) != 0 ||
        good->rank_count != bad->rank_count || good->run == bad->run)
        return;
    nw_findings_add(findings, NW_FINDING_WARN, "unsteady", good->collective,
                    "repeat the run; a link that flaps shows in dmesg and in its error counters",
                    "%s on the same hosts read %s GB/s in one run and %s in another",
                    good->collective, nw_format_gb_per_s(fast, good->plateau.busbw_bytes_per_s),
                    nw_format_gb_per_s(slow, bad->plateau.busbw_bytes_per_s));
}

const struct nw_wire_evidence *nw_wire_decide(const struct nw_wire_evidence *list, size_t count,
                                              struct nw_findings *findings)
{
    const struct nw_wire_evidence *worst = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct nw_wire_evidence *best = &list[i];
        bool first = true;

        for (size_t j = 0; j < i && first; j++)
            first = list[j].host_set != list[i].host_set;
        if (!first)
            continue;
        for (size_t j = i + 1; j < count; j++) {
            if (list[j].host_set != best->host_set)
                continue;
            const int mine = rank_of(best->verdict, true), other = rank_of(list[j].verdict, true);

            note_contradiction(best, &list[j], findings);
            note_contradiction(&list[j], best, findings);
            if (other > mine || (other == mine && list[j].score > best->score))
                best = &list[j];
        }
        const int mine = rank_of(best->verdict, false);

        if (worst == NULL || mine > rank_of(worst->verdict, false) ||
            (mine == rank_of(worst->verdict, false) &&
             (mine == 0 ? best->score > worst->score : best->score < worst->score)))
            worst = best;
    }
    return worst;
}
