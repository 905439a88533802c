#include "results/audit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "results/audit_private.h"

static const struct {
    const char *key, *text;
} verdict_rows[] = {
#define X(verdict, key, text) [verdict] = {key, text},
    NW_AUDIT_VERDICT_MAP(X)
#undef X
};

const char *nw_audit_verdict_key(nw_audit_verdict verdict)
{
    return verdict_rows[verdict].key;
}

const char *nw_audit_verdict_text(nw_audit_verdict verdict)
{
    return verdict_rows[verdict].text;
}

struct nw_audit_row nw_audit_row_of(const char *area, const char *key, const char *claim,
                                    nw_audit_unit unit, int quote_line)
{
    return (struct nw_audit_row){
        .area = area,
        .key = key,
        .claim = claim,
        .unit = unit,
        .quoted = NAN,
        .part = 1,
        .ceiling = NAN,
        .expected_low = NAN,
        .expected_high = NAN,
        .measured = NAN,
        .measured_low = NAN,
        .measured_high = NAN,
        .verdict = NW_AUDIT_NOT_MEASURED,
        .quote_line = quote_line,
    };
}

static nw_rc judge_all(const struct nw_audit_state *state, struct nw_audit *audit)
{
    for (size_t i = 0; i < nw_claim_count; i++) {
        const struct nw_claim *claim = &nw_claims[i];
        int line = nw_quote_line(state->quote, claim->section, claim->quote_key);

        if (line == 0 && claim->or_key[0] != '\0')
            line = nw_quote_line(state->quote, claim->section, claim->or_key);
        if (line == 0)
            continue;
        struct nw_audit_row *row = &audit->rows[audit->row_count++];

        *row = nw_audit_row_of(claim->area, claim->key, claim->claim, claim->unit, line);
        claim->quote(state->quote, row);
        NW_TRY(claim->judge != NULL
                   ? claim->judge(state, row)
                   : nw_audit_judge_machines(state, row, claim->opinion, claim->how));
        if (row->verdict != NW_AUDIT_NOT_MEASURED)
            row->how[0] = '\0';
        audit->simulated = audit->simulated || row->simulated;
    }
    return nw_audit_judge_price(state, audit);
}

/* Wrong data outweighs every rate. */
static nw_rc find_wrong_results(const struct nw_results *results, struct nw_findings *findings)
{
    for (size_t i = 0; results != NULL && i < results->run_count; i++) {
        const struct nw_run *run = &results->runs[i];
        const struct nw_record *first = NULL;
        size_t count = 0;
        char size[32];

        for (size_t j = 0; j < run->record_count; j++) {
            if (run->records[j].wrong_elements <= 0)
                continue;
            if (count++ == 0)
                first = &run->records[j];
        }
        if (count > 0)
            NW_TRY(nw_findings_add(
                findings, NW_FINDING_FAIL, "wrong-results",
                run->context.source[0] != '\0' ? run->context.source : first->collective,
                "do not train on this machine before the cause is found; repeat between pairs of "
                "ranks to find the link or the GPU",
                "%s gave wrong elements in %zu records, first at %s; their rates were left out",
                first->collective, count, nw_format_bytes(size, first->bytes)));
    }
    return NW_OK;
}

/* What the run found out about its GPUs, whatever was quoted of them. */
static nw_rc take_gpu_findings(const struct nw_results *results, struct nw_findings *findings)
{
    static const char *const codes[] = {"throttled", "gpu-slow", "nvlink-down", "pcie-link",
                                        "gpu-mixed"};

    for (size_t i = 0; results != NULL && i < results->run_count; i++) {
        const struct nw_findings *found = &results->runs[i].context.findings;

        for (size_t j = 0; j < found->count; j++)
            for (size_t c = 0; c < sizeof codes / sizeof codes[0]; c++)
                if (strcmp(found->items[j].code, codes[c]) == 0)
                    NW_TRY(nw_findings_copy_one(findings, &found->items[j]));
    }
    return NW_OK;
}

nw_rc nw_audit_make(const struct nw_audit_input *input, struct nw_audit *audit_out)
{
    struct nw_audit audit = {.quote = *input->quote};
    struct nw_audit_state state = {.findings = &audit.findings};
    nw_rc rc;

    audit.rows = calloc(nw_claim_count + 1, sizeof *audit.rows);
    rc = audit.rows == NULL ? nw_fail(NW_ENOMEM, "no memory for an audit")
                            : nw_audit_collect(input, &state);
    if (rc == NW_OK)
        rc = find_wrong_results(input->results, &audit.findings);
    if (rc == NW_OK)
        rc = take_gpu_findings(input->results, &audit.findings);
    if (rc == NW_OK)
        rc = judge_all(&state, &audit);
    if (rc == NW_OK)
        rc = nw_audit_name_hosts(&state, &audit);
    nw_audit_collect_free(&state);
    if (rc == NW_OK && audit.row_count == 0)
        rc = nw_fail(NW_EUSAGE, "%s: promises nothing that can be held against a machine",
                     audit.quote.path);
    if (rc != NW_OK) {
        nw_audit_free(&audit);
        return rc;
    }
    *audit_out = audit;
    return NW_OK;
}

void nw_audit_free(struct nw_audit *audit)
{
    for (size_t i = 0; i < audit->row_count; i++)
        nw_findings_free(&audit->rows[i].causes);
    free(audit->rows);
    free(audit->hosts);
    nw_findings_free(&audit->findings);
    *audit = (struct nw_audit){.row_count = 0};
}

size_t nw_audit_count(const struct nw_audit *audit, nw_audit_verdict verdict)
{
    size_t count = 0;

    for (size_t i = 0; i < audit->row_count; i++)
        count += audit->rows[i].verdict == verdict;
    return count;
}

int nw_audit_exit_code(const struct nw_audit *audit)
{
    for (size_t i = 0; i < audit->findings.count; i++)
        if (audit->findings.items[i].severity == NW_FINDING_FAIL)
            return 1;
    if (nw_audit_count(audit, NW_AUDIT_SHORT) > 0)
        return 1;
    for (size_t i = 0; i < audit->row_count; i++)
        if (audit->rows[i].verdict == NW_AUDIT_MET && !audit->rows[i].arithmetic)
            return 0;
    return 3;
}
