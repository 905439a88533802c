#include "topo/preflight.h"

const struct nw_preflight_rule nw_preflight_rules[] = {
    {.codes = NULL},
};

nw_rc nw_preflight_judge(const struct nw_preflight_input *input, struct nw_findings *findings)
{
    for (const struct nw_preflight_rule *rule = nw_preflight_rules; rule->codes != NULL; rule++) {
        if (rule->all != NULL)
            NW_TRY(rule->all(input, findings));
        else
            for (size_t host = 0; host < input->host_count; host++)
                NW_TRY(rule->one(input, host, findings));
    }
    for (size_t host = 0; host < input->host_count; host++)
        NW_TRY(nw_findings_copy(findings, &input->hosts[host]->findings));
    return NW_OK;
}
