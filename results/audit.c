#include "results/audit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "results/audit_private.h"
#include "topo/link.h"

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

/* What a quote promises of a claim, in the row's unit, and its text. */
static void quote_nodes(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = quote->node_count;
    snprintf(row->quoted_text, sizeof row->quoted_text, "%d", quote->node_count);
}

static void quote_gpu_model(const struct nw_quote *quote, struct nw_audit_row *row)
{
    snprintf(row->quoted_text, sizeof row->quoted_text, "%.90s", quote->gpu_model);
}

static void quote_gpu_count(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = quote->gpu_count;
    snprintf(row->quoted_text, sizeof row->quoted_text, "%d", quote->gpu_count);
}

static void quote_gpu_memory(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = quote->gpu_memory_bytes;
    snprintf(row->quoted_text, sizeof row->quoted_text, "%.4g GiB", row->quoted / NW_GIB);
}

static void quote_nvlink(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = quote->nvlink_one_way_bytes_per_s;
    snprintf(row->quoted_text, sizeof row->quoted_text, "%.4g GB/s", row->quoted / 1e9);
}

static void quote_pcie(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted =
        nw_pcie_bytes_per_s(quote->pcie_generation, quote->pcie_lanes > 0 ? quote->pcie_lanes : 16);
    snprintf(row->quoted_text, sizeof row->quoted_text, "Gen%d x%d", quote->pcie_generation,
             quote->pcie_lanes > 0 ? quote->pcie_lanes : 16);
}

static void quote_memory_rate(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = quote->memory_bytes_per_s;
    snprintf(row->quoted_text, sizeof row->quoted_text, "%.4g GB/s", row->quoted / 1e9);
}

static void quote_compute(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = quote->bf16_flop_per_s;
    snprintf(row->quoted_text, sizeof row->quoted_text, "%.4g TFLOP/s", row->quoted / 1e12);
}

static void quote_peer_access(const struct nw_quote *quote, struct nw_audit_row *row)
{
    snprintf(row->quoted_text, sizeof row->quoted_text, "%s",
             quote->has_peer_access == 1 ? "yes" : "no");
}

static void quote_nics(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = quote->nic_count;
    if (isfinite(quote->nic_bytes_per_s))
        snprintf(row->quoted_text, sizeof row->quoted_text, "%d \xC3\x97 %.4g Gb/s",
                 quote->nic_count, quote->nic_bytes_per_s * 8 / 1e9);
    else
        snprintf(row->quoted_text, sizeof row->quoted_text, "%d", quote->nic_count);
}

static void quote_network(const struct nw_quote *quote, struct nw_audit_row *row)
{
    const int count = quote->nic_count > 0 ? quote->nic_count : 1;

    row->quoted = count * quote->nic_bytes_per_s;
    snprintf(row->quoted_text, sizeof row->quoted_text, "%.4g GB/s", row->quoted / 1e9);
}

static void quote_rdma(const struct nw_quote *quote, struct nw_audit_row *row)
{
    snprintf(row->quoted_text, sizeof row->quoted_text, "%s", quote->has_rdma == 1 ? "yes" : "no");
}

static void quote_kind(const struct nw_quote *quote, struct nw_audit_row *row)
{
    snprintf(row->quoted_text, sizeof row->quoted_text, "%s", quote->network_kind);
}

static void quote_cores(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = quote->core_count;
    snprintf(row->quoted_text, sizeof row->quoted_text, "%d", quote->core_count);
}

static void quote_threads(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = quote->thread_count;
    snprintf(row->quoted_text, sizeof row->quoted_text, "%d", quote->thread_count);
}

static void quote_ram(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = quote->ram_bytes;
    snprintf(row->quoted_text, sizeof row->quoted_text, "%.6g GiB", row->quoted / NW_GIB);
}

static void quote_disks(const struct nw_quote *quote, struct nw_audit_row *row)
{
    const int count = quote->nvme_count > 0 ? quote->nvme_count : 1;

    row->quoted = count;
    if (isfinite(quote->nvme_bytes))
        snprintf(row->quoted_text, sizeof row->quoted_text, "%d \xC3\x97 %.4g TB", count,
                 quote->nvme_bytes / 1e12);
    else
        snprintf(row->quoted_text, sizeof row->quoted_text, "%d", count);
}

static void quote_disk_read(const struct nw_quote *quote, struct nw_audit_row *row)
{
    row->quoted = quote->disk_read_bytes_per_s;
    snprintf(row->quoted_text, sizeof row->quoted_text, "%.4g GB/s", row->quoted / 1e9);
}

/* One row a claim, in the order of the report. A claim is made when one of its keys is quoted. */
static const struct {
    const char *key, *claim;
    const char *section, *quote_key, *or_key; /* or_key: "" none */
    nw_audit_unit unit;
    void (*quote)(const struct nw_quote *quote, struct nw_audit_row *row);
    nw_rc (*judge)(const struct nw_audit_state *state, struct nw_audit_row *row);
} claims[] = {
    {"nodes", "Nodes", "cluster", "nodes", "", NW_AUDIT_COUNT, quote_nodes, nw_judge_nodes},
    {"gpu_model", "GPU model", "gpu", "model", "", NW_AUDIT_TEXT, quote_gpu_model,
     nw_judge_gpu_model},
    {"gpu_count", "GPUs per node", "gpu", "count", "", NW_AUDIT_COUNT, quote_gpu_count,
     nw_judge_gpu_count},
    {"gpu_memory", "GPU memory", "gpu", "memory_GiB", "", NW_AUDIT_BYTES, quote_gpu_memory,
     nw_judge_gpu_memory},
    {"nvlink", "NVLink, per GPU, one way", "gpu", "nvlink_GBps", "", NW_AUDIT_BYTES_PER_S,
     quote_nvlink, nw_judge_nvlink},
    {"pcie", "PCIe of the GPUs", "gpu", "pcie_gen", "", NW_AUDIT_BYTES_PER_S, quote_pcie,
     nw_judge_pcie},
    {"memory_rate", "GPU memory bandwidth", "gpu", "memory_GBps", "", NW_AUDIT_BYTES_PER_S,
     quote_memory_rate, nw_judge_memory_rate},
    {"compute", "bf16 of a GPU, dense", "gpu", "bf16_TFLOPS", "", NW_AUDIT_FLOP_PER_S,
     quote_compute, nw_judge_compute},
    {"peer_access", "GPUs reach each other", "gpu", "peer_access", "", NW_AUDIT_TEXT,
     quote_peer_access, nw_judge_peer_access},
    {"nics", "NICs per node", "network", "nic_count", "", NW_AUDIT_COUNT, quote_nics,
     nw_judge_nics},
    {"network", "Network, per node, one way", "network", "nic_gbps", "", NW_AUDIT_BYTES_PER_S,
     quote_network, nw_judge_network},
    {"rdma", "RDMA", "network", "rdma", "", NW_AUDIT_TEXT, quote_rdma, nw_judge_rdma},
    {"network_kind", "Kind of network", "network", "kind", "", NW_AUDIT_TEXT, quote_kind,
     nw_judge_kind},
    {"cores", "CPU cores per node", "cpu", "cores", "", NW_AUDIT_COUNT, quote_cores,
     nw_judge_cores},
    {"threads", "CPU threads per node", "cpu", "threads", "", NW_AUDIT_COUNT, quote_threads,
     nw_judge_threads},
    {"ram", "RAM per node", "cpu", "ram_GiB", "", NW_AUDIT_BYTES, quote_ram, nw_judge_ram},
    {"disks", "NVMe disks per node", "disk", "nvme_count", "nvme_TB", NW_AUDIT_COUNT, quote_disks,
     nw_judge_disks},
    {"disk_read", "Disk, sequential read", "disk", "read_GBps", "", NW_AUDIT_BYTES_PER_S,
     quote_disk_read, nw_judge_disk_read},
};
enum { CLAIMS = sizeof claims / sizeof claims[0] };

static nw_rc judge_all(const struct nw_audit_state *state, struct nw_audit *audit)
{
    for (size_t i = 0; i < CLAIMS; i++) {
        int line = nw_quote_line(state->quote, claims[i].section, claims[i].quote_key);

        if (line == 0 && claims[i].or_key[0] != '\0')
            line = nw_quote_line(state->quote, claims[i].section, claims[i].or_key);
        if (line == 0)
            continue;
        struct nw_audit_row *row = &audit->rows[audit->row_count++];

        *row = (struct nw_audit_row){
            .key = claims[i].key,
            .claim = claims[i].claim,
            .unit = claims[i].unit,
            .quoted = NAN,
            .part = 1,
            .ceiling = NAN,
            .expected_low = NAN,
            .expected_high = NAN,
            .measured = NAN,
            .measured_low = NAN,
            .measured_high = NAN,
            .verdict = NW_AUDIT_NOT_MEASURED,
            .quote_line = line,
        };
        claims[i].quote(state->quote, row);
        NW_TRY(claims[i].judge(state, row));
        audit->simulated = audit->simulated || row->simulated;
    }
    return NW_OK;
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
                    NW_TRY(nw_findings_copy(
                        findings, &(struct nw_findings){.items = &found->items[j], .count = 1}));
    }
    return NW_OK;
}

nw_rc nw_audit_make(const struct nw_audit_input *input, struct nw_audit *audit_out)
{
    struct nw_audit audit = {.quote = *input->quote};
    struct nw_audit_state state = {.findings = &audit.findings};
    nw_rc rc;

    audit.rows = calloc(CLAIMS, sizeof *audit.rows);
    rc = audit.rows == NULL ? nw_fail(NW_ENOMEM, "no memory for an audit")
                            : nw_audit_collect(input, &state);
    if (rc == NW_OK)
        rc = find_wrong_results(input->results, &audit.findings);
    if (rc == NW_OK)
        rc = take_gpu_findings(input->results, &audit.findings);
    if (rc == NW_OK)
        rc = judge_all(&state, &audit);
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
    return nw_audit_count(audit, NW_AUDIT_MET) > 0 ? 0 : 3;
}
