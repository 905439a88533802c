/* Claims about the links themselves: how many a GPU has, and whether NVSwitches join them. */
#include <math.h>
#include <string.h>

#include "results/audit_private.h"
#include "topo/link.h"

nw_rc nw_judge_nvlink_count(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    const struct nw_nvlink nvlink = nw_nvlink_know(state);
    const struct nw_nvlink_view *view = &nvlink.view;
    char product[64];

    if ((nvlink.none || nvlink.product.bytes_per_s == 0) && view->machine == NULL) {
        row->measured = 0;
        row->verdict = NW_AUDIT_SHORT;
        row->simulated = nvlink.simulated;
        snprintf(row->measured_text, sizeof row->measured_text, "0");
        nw_audit_reason(row, "%s",
                        nvlink.none ? "copies between the GPUs take PCIe"
                                    : "this GPU has no NVLink");
        return nw_findings_add(&row->causes, NW_FINDING_FAIL, row->key, row->source,
                               "nvidia-smi nvlink -s on each GPU", "no NVLink is active on a GPU");
    }
    if (view->machine == NULL || view->links < 0) {
        snprintf(row->how, sizeof row->how,
                 "on the node: nodeworth topo --save FILE, or nvidia-smi nvlink -s; here: --topo "
                 "FILE");
        nw_audit_reason(row, "no source tells how many NVLinks are active; %s", row->how);
        return NW_OK;
    }
    row->measured = view->links;
    row->simulated = view->machine->simulated;
    row->ceiling = nvlink.product.links > 0 ? nvlink.product.links : NAN;
    nw_nvlink_name_source(&nvlink, row);
    snprintf(row->measured_text, sizeof row->measured_text, "%d active", view->links);
    row->verdict = view->links >= row->quoted ? NW_AUDIT_MET : NW_AUDIT_SHORT;
    if (row->verdict == NW_AUDIT_MET)
        return NW_OK;
    if (nvlink.product.links > 0 && nvlink.product.links < row->quoted)
        nw_audit_reason(row, "%s has %d at most", nw_gpu_name_text(&nvlink.name, product),
                        nvlink.product.links);
    else if (view->inactive > 0)
        nw_audit_reason(row, "%d are down", view->inactive);
    return nw_findings_add(&row->causes, NW_FINDING_FAIL, row->key, row->source,
                           "nvidia-smi nvlink -s on each GPU; the fabric manager's state", "%s",
                           nvlink.product.links > 0 && nvlink.product.links < row->quoted
                               ? "the product that is there has fewer NVLinks than quoted"
                           : view->links == 0 ? "no NVLink is active on a GPU"
                                              : "some NVLinks are inactive");
}

/* Copies of every GPU with every other at the GPU's full rate: only switches do that. */
static bool is_switched_by_copies(const struct nw_audit_state *state, double full, bool *simulated)
{
    size_t whole = 0;

    for (size_t r = 0; state->results != NULL && r < state->results->run_count; r++) {
        const struct nw_run *run = &state->results->runs[r];

        for (size_t i = 0; i < run->record_count; i++) {
            const struct nw_record *record = &run->records[i];

            if (strcmp(record->case_name, "p2p") != 0 || strcmp(record->collective, "write") != 0 ||
                strcmp(record->lane, "ce") != 0 || record->peer_a != 0 || record->peer_b < 1 ||
                record->bytes < NW_LONG_COPY_BYTES)
                continue;
            *simulated = *simulated || record->simulated;
            whole += record->ceiling_bytes_per_s >= NW_SAME_RATE * full;
        }
    }
    return whole >= 2;
}

static nw_rc short_of_switch(struct nw_audit_row *row, const char *text)
{
    row->verdict = NW_AUDIT_SHORT;
    return nw_findings_add(&row->causes, NW_FINDING_FAIL, row->key, row->source,
                           "nvidia-smi topo -m: behind NVSwitches every pair of GPUs shows the "
                           "same NV#, as many as a GPU has links",
                           "%s", text);
}

nw_rc nw_judge_nvswitch(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    const struct nw_nvlink nvlink = nw_nvlink_know(state);
    const struct nw_nvlink_view *view = &nvlink.view;
    const double full = nvlink.product.bytes_per_s;
    char product[64];
    bool simulated = false;

    nw_nvlink_name_source(&nvlink, row);
    row->simulated = nvlink.simulated;
    if (view->switched == 1 ||
        (view->machine == NULL && full > 0 && is_switched_by_copies(state, full, &simulated))) {
        row->simulated = row->simulated || simulated;
        snprintf(row->measured_text, sizeof row->measured_text, "yes");
        row->verdict = NW_AUDIT_MET;
        row->how[0] = '\0';
        nw_audit_reason(row, "every pair of GPUs has all of a GPU's links");
        return NW_OK;
    }
    const bool none = nvlink.none || full == 0 || (view->machine != NULL && view->links == 0);

    if (!none && !nvlink.product.bridge && (view->machine == NULL || view->switched < 0)) {
        snprintf(row->how, sizeof row->how,
                 "on the node: nvidia-smi topo -m >FILE, or nodeworth topo --save FILE; here: "
                 "--topo FILE");
        nw_audit_reason(row, "no source tells how the NVLinks of the GPUs are joined; %s",
                        row->how);
        return NW_OK;
    }
    snprintf(row->measured_text, sizeof row->measured_text, "no");
    if (state->quote->has_nvswitch == 0) {
        row->verdict = NW_AUDIT_MET;
        return NW_OK;
    }
    if (none && !nvlink.product.bridge)
        return short_of_switch(row, "no NVLink is active on a GPU");
    if (nvlink.product.bridge) {
        nw_audit_reason(row, "%s is a card whose NVLink is a bridge",
                        nw_gpu_name_text(&nvlink.name, product));
        return short_of_switch(row, "NVLink bridges join pairs of cards, no more");
    }
    nw_audit_reason(row, "%d links to each of %d GPUs", view->pair_links, view->peers);
    return short_of_switch(row, "the links go straight from GPU to GPU: each pair has a part of "
                                "them");
}
