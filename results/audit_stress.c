/* Full load without throttling: clocks and the driver's reasons, from the records of the case gemm,
 * which loads all GPUs of a node at once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "results/audit_private.h"
#include "topo/nvml_api.h"

/* A GPU and its heat sink take one to two minutes to reach the temperature of the load: a shorter
 * burn shows no heat. */
#define LEAST_LOAD_NS 120e9
/* Loads are timed by their samples, which leave gaps. */
#define NEARLY 0.95

struct load { /* of one GPU in one run */
    const struct nw_run *run;
    int rank;
    double ns;
    uint64_t bad;
    const struct nw_record *worst; /* record that shows `bad`, else the last */
};

static double load_of(const struct nw_record *record)
{
    return record->time_ns.mean * (double)record->time_ns.count * record->calls_per_sample;
}

static uint64_t bad_of(const struct nw_record *record)
{
    return record->during.throttle < 0 ? 0
                                       : (uint64_t)record->during.throttle & NW_THROTTLE_BAD &
                                             ~(uint64_t)NW_THROTTLE_POWER_CAP;
}

static nw_rc take(const struct nw_run *run, const struct nw_record *record, struct load **loads,
                  size_t *count)
{
    struct load *load = NULL;

    for (size_t i = 0; i < *count && load == NULL; i++)
        if ((*loads)[i].run == run && (*loads)[i].rank == record->peer_a)
            load = &(*loads)[i];
    if (load == NULL) {
        struct load *larger = realloc(*loads, (*count + 1) * sizeof *larger);

        if (larger == NULL)
            return nw_fail(NW_ENOMEM, "no memory for the loads of %zu GPUs", *count + 1);
        *loads = larger;
        load = &larger[(*count)++];
        *load = (struct load){.run = run, .rank = record->peer_a, .worst = record};
    }
    load->ns += load_of(record);
    if ((bad_of(record) & ~load->bad) != 0)
        load->worst = record;
    load->bad |= bad_of(record);
    return NW_OK;
}

static nw_rc gather(const struct nw_audit_state *state, struct load **loads, size_t *count)
{
    for (size_t r = 0; state->results != NULL && r < state->results->run_count; r++) {
        const struct nw_run *run = &state->results->runs[r];

        for (size_t i = 0; i < run->record_count; i++) {
            const struct nw_record *record = &run->records[i];

            if (strcmp(record->case_name, "gemm") == 0 && record->rc == NW_OK &&
                record->peer_a >= 0 && record->time_ns.median > 0 && record->during.throttle >= 0)
                NW_TRY(take(run, record, loads, count));
        }
    }
    return NW_OK;
}

static nw_rc judge(const struct load *loads, size_t count, struct nw_audit_row *row)
{
    const double wanted = row->quoted > 0 ? row->quoted : LEAST_LOAD_NS;
    const struct load *slowed = NULL, *shortest = &loads[0];
    size_t slowed_count = 0;
    char time[32], why[160];

    for (size_t i = 0; i < count; i++) {
        row->simulated = row->simulated || loads[i].worst->simulated;
        if (loads[i].bad != 0 && slowed_count++ == 0)
            slowed = &loads[i];
        if (loads[i].ns < shortest->ns)
            shortest = &loads[i];
    }
    row->measured = shortest->ns;
    nw_format_ns(time, shortest->ns);
    if (slowed != NULL) {
        const struct nw_gpu_state *state = &slowed->worst->during;

        row->verdict = NW_AUDIT_SHORT;
        snprintf(row->measured_text, sizeof row->measured_text, "%zu of %zu GPUs throttled",
                 slowed_count, count);
        snprintf(row->source, sizeof row->source, "%s%srank %d's GPU", slowed->worst->host_a,
                 slowed->worst->host_a[0] != '\0' ? ", " : "", slowed->rank);
        nw_audit_reason(row, "slowed down under load by %s: %.0f of %.0f MHz, %.0f C",
                        nw_throttle_text(why, slowed->bad), state->sm_clock_hz / 1e6,
                        state->sm_max_clock_hz / 1e6, state->temperature_c);
        return nw_findings_add(&row->causes, NW_FINDING_FAIL, row->key, row->source,
                               "look at fans, air flow and power supply of this GPU's place, or "
                               "have it replaced",
                               "cooling or power supply of the server do not carry the GPUs' full "
                               "load");
    }
    if (shortest->ns < NEARLY * wanted) {
        snprintf(row->how, sizeof row->how, "mpirun nodeworth bench --cases gemm --burn %.0fs",
                 ceil(wanted / 1e9));
        nw_audit_reason(row, "no throttling, but the load lasted %s only; on all GPUs: %s", time,
                        row->how);
        return NW_OK;
    }
    row->verdict = NW_AUDIT_MET;
    snprintf(row->measured_text, sizeof row->measured_text, "%s on %zu GPUs", time, count);
    nw_audit_reason(row, "matrix products on all GPUs at once; neither heat nor the power supply "
                         "slowed one down");
    return NW_OK;
}

nw_rc nw_judge_stress(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    struct load *loads = NULL;
    size_t count = 0;
    nw_rc rc = gather(state, &loads, &count);

    if (rc == NW_OK && count > 0)
        rc = judge(loads, count, row);
    else if (rc == NW_OK) {
        snprintf(row->how, sizeof row->how,
                 "on the GPU node: mpirun nodeworth bench --cases gemm --burn %.0fs",
                 ceil((row->quoted > 0 ? row->quoted : LEAST_LOAD_NS) / 1e9));
        nw_audit_reason(row, "no load of the GPUs is among the results; %s", row->how);
    }
    free(loads);
    return rc;
}
