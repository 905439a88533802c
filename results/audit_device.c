/* Claims about GPUs from the cases on single GPUs and pairs of them: NVLink from p2p, PCIe from h2d
 * and d2h, memory bandwidth from d2d, compute from gemm. Each GPU has a figure of its own; every
 * GPU must be as quoted, so the worst speaks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/nvml_api.h"
#include "results/audit_private.h"
#include "topo/link.h"

/* Own memory is ten times as fast. */
#define LONG_MEMORY_BYTES (64u << 20)

/* ---- the records of a claim --------------------------------------------------------------------
 */

struct nw_gpu_figure { /* of one GPU */
    const struct nw_run *run;
    const struct nw_record *record; /* what was taken */
    int rank;
    double value, low, high, ceiling; /* NAN: unknown */
    bool simulated;
};

struct figures {
    struct nw_gpu_figure *items; /* a GPU each */
    size_t count;
};

static bool is_good(const struct nw_record *record, const char *case_name, uint64_t least)
{
    return strcmp(record->case_name, case_name) == 0 && record->rc == NW_OK &&
           record->wrong_elements <= 0 && record->peer_a >= 0 && record->bytes >= least &&
           record->time_ns.median > 0;
}

static struct nw_gpu_figure figure_of(const struct nw_run *run, const struct nw_record *record,
                                      double factor)
{
    const struct nw_stats *time = &record->time_ns;
    const double value =
        factor * (record->flop_per_s > 0 ? record->flop_per_s : record->algbw_bytes_per_s);
    const bool known = time->low > 0 && isfinite(time->high);

    return (struct nw_gpu_figure){
        .run = run,
        .record = record,
        .rank = record->peer_a,
        .value = value,
        .low = known ? value * time->median / time->high : NAN,
        .high = known ? value * time->median / time->low : NAN,
        .ceiling = factor * record->ceiling_bytes_per_s,
        .simulated = record->simulated || run->context.simulated,
    };
}

static struct nw_gpu_figure *find(struct figures *figures, const struct nw_run *run, int rank)
{
    for (size_t i = 0; i < figures->count; i++)
        if (figures->items[i].run == run && figures->items[i].rank == rank)
            return &figures->items[i];
    return NULL;
}

/* Of a GPU's figures the one that `is_better`. */
static nw_rc take(struct figures *figures, const struct nw_gpu_figure *figure,
                  bool (*is_better)(const struct nw_gpu_figure *a, const struct nw_gpu_figure *b))
{
    struct nw_gpu_figure *there = find(figures, figure->run, figure->rank), *items;

    if (there != NULL) {
        if (is_better(figure, there))
            *there = *figure;
        return NW_OK;
    }
    items = realloc(figures->items, (figures->count + 1) * sizeof *items);
    if (items == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the figures of %zu GPUs", figures->count + 1);
    figures->items = items;
    items[figures->count++] = *figure;
    return NW_OK;
}

static bool is_faster(const struct nw_gpu_figure *a, const struct nw_gpu_figure *b)
{
    return a->value > b->value;
}

/* The largest size; of equal ones the slower direction. */
static bool is_weaker_way(const struct nw_gpu_figure *a, const struct nw_gpu_figure *b)
{
    return a->record->bytes != b->record->bytes ? a->record->bytes > b->record->bytes
                                                : a->value < b->value;
}

static nw_rc each(const struct nw_audit_state *state, struct figures *figures,
                  nw_rc (*look)(const struct nw_run *run, const struct nw_record *record,
                                struct figures *figures))
{
    for (size_t r = 0; state->results != NULL && r < state->results->run_count; r++) {
        const struct nw_run *run = &state->results->runs[r];

        for (size_t i = 0; i < run->record_count; i++)
            NW_TRY(look(run, &run->records[i], figures));
    }
    return NW_OK;
}

static const struct nw_gpu_figure *worst_of(const struct figures *figures)
{
    const struct nw_gpu_figure *worst = NULL;

    for (size_t i = 0; i < figures->count; i++)
        if (worst == NULL || figures->items[i].value < worst->value)
            worst = &figures->items[i];
    return worst;
}

/* "node1 rank 3" */
static void name_gpu(char *text, size_t size, const struct nw_gpu_figure *figure)
{
    snprintf(text, size, "%s%srank %d's GPU", figure->record->host_a,
             figure->record->host_a[0] != '\0' ? ", " : "", figure->rank);
}

/* The row from its worst GPU; `efficiency`: of healthy ones, of the quote. */
static void fill(struct nw_audit_row *row, const struct figures *figures,
                 const struct nw_gpu_figure *worst, struct nw_efficiency efficiency)
{
    const double base = isfinite(row->ceiling) ? row->ceiling : row->quoted;

    row->measured = worst->value;
    row->measured_low = worst->low;
    row->measured_high = worst->high;
    row->expected_low = efficiency.low * base;
    row->expected_high = efficiency.high * base;
    row->simulated = worst->simulated;
    name_gpu(row->source, sizeof row->source, worst);
    row->verdict = worst->value >= efficiency.low * row->quoted ? NW_AUDIT_MET : NW_AUDIT_SHORT;
    const bool product = worst->record->flop_per_s > 0; /* its collective is its case */

    nw_audit_reason(row, "%s%s%s by %s; the slowest of %zu GPUs: %s", worst->record->case_name,
                    product ? "" : " ", product ? "" : worst->record->collective,
                    worst->record->lane, figures->count, row->source);
}

/* ---- NVLink ------------------------------------------------------------------------------------
 */

/* The path's ceiling is that of a PCIe link: 15.75, 31.5, 63 GB/s. Bundles of NVLinks carry
 * multiples of 14, 20, 25 or 50. */
bool nw_copy_is_over_pcie(const struct nw_record *record)
{
    int generation, lanes;

    nw_pcie_from_rate(record->ceiling_bytes_per_s, &generation, &lanes);
    return lanes > 0 &&
           fabs(nw_pcie_bytes_per_s(generation, lanes) / record->ceiling_bytes_per_s - 1) < 0.005;
}

static nw_rc look_p2p(const struct nw_run *run, const struct nw_record *record,
                      struct figures *figures)
{
    const struct nw_gpu_figure figure = figure_of(run, record, 1);

    return is_good(record, "p2p", NW_LONG_COPY_BYTES) && strcmp(record->collective, "write") == 0 &&
                   strcmp(record->lane, "ce") == 0
               ? take(figures, &figure, is_faster)
               : NW_OK;
}

/* Where GPUs hang on switches a pair has all links of both; joined directly, a GPU's pairs share
 * them and their sum is the GPU's. `full`: what the product's links carry; NAN: unknown. The
 * driver's rates are those of the signal: 6 % above the data's. */
static void add_up_pairs(struct nw_gpu_figure *figure, double full)
{
    struct nw_gpu_figure sum = *figure;
    const struct nw_run *run = figure->run;

    if (!isfinite(full) || !isfinite(figure->ceiling))
        return;
    sum.value = sum.low = sum.high = sum.ceiling = 0;
    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];
        const struct nw_gpu_figure pair = figure_of(run, record, 1);

        if (!is_good(record, "p2p", NW_LONG_COPY_BYTES) || record->peer_a != figure->rank ||
            strcmp(record->collective, "write") != 0 || strcmp(record->lane, "ce") != 0 ||
            nw_copy_is_over_pcie(record))
            continue;
        sum.value += pair.value;
        sum.low += pair.low;
        sum.high += pair.high;
        sum.ceiling += pair.ceiling;
    }
    if (sum.ceiling <= 1.08 * full)
        *figure = sum;
}

nw_rc nw_judge_nvlink_by_pairs(const struct nw_audit_state *state, double full,
                               struct nw_audit_row *row, bool *spoken_out)
{
    struct figures figures = {.count = 0};
    const struct nw_gpu_figure *worst;
    nw_rc rc = each(state, &figures, look_p2p);
    size_t over_pcie = 0;

    for (size_t i = 0; rc == NW_OK && i < figures.count; i++) {
        if (nw_copy_is_over_pcie(figures.items[i].record))
            over_pcie++;
        else
            add_up_pairs(&figures.items[i], full);
    }
    worst = worst_of(&figures);
    *spoken_out = rc == NW_OK && worst != NULL;
    if (*spoken_out) {
        if (worst->ceiling < row->ceiling || !isfinite(row->ceiling))
            row->ceiling = worst->ceiling;
        fill(row, &figures, worst, nw_nvlink_copy_efficiency());
        if (over_pcie == figures.count) { /* no pair is joined: there is no NVLink to measure */
            row->ceiling = 0;
            row->measured = row->measured_low = row->measured_high = NAN;
            row->expected_low = row->expected_high = NAN;
            snprintf(row->measured_text, sizeof row->measured_text, "no pair is joined");
        }
    }
    free(figures.items);
    return rc;
}

/* ---- PCIe --------------------------------------------------------------------------------------
 */

static nw_rc look_bus(const struct nw_run *run, const struct nw_record *record,
                      struct figures *figures)
{
    const struct nw_gpu_figure figure = figure_of(run, record, 1);

    if ((!is_good(record, "h2d", NW_LONG_COPY_BYTES) &&
         !is_good(record, "d2h", NW_LONG_COPY_BYTES)) ||
        strcmp(record->collective, "copy") != 0 || record->rank_count != 1 ||
        strcmp(record->lane, "sm") == 0)
        return NW_OK; /* all GPUs at once may share an uplink, a kernel does not fill the link:
                         other questions */
    return take(figures, &figure, is_weaker_way);
}

static nw_rc explain_bus(struct nw_audit_row *row, const struct nw_gpu_figure *worst)
{
    char rate[32];

    nw_format_gb_per_s(rate, worst->ceiling);
    if (worst->ceiling < NW_SAME_RATE * row->quoted)
        return nw_findings_add(
            &row->causes, NW_FINDING_FAIL, row->key, row->source,
            "lspci -vv on the GPU and on the bridges above it: LnkCap against LnkSta; reseat the "
            "card or its riser",
            "the link carries at most %s GB/s while data is copied, less than quoted", rate);
    return nw_findings_add(&row->causes, NW_FINDING_FAIL, row->key, row->source,
                           "bind the rank to the GPU's socket; look for other traffic, and for an "
                           "IOMMU in the way",
                           "the link is as quoted and carries less: host memory of the other "
                           "socket, or other work on this host");
}

nw_rc nw_judge_pcie_by_copies(const struct nw_audit_state *state, struct nw_audit_row *row,
                              bool *spoken_out)
{
    struct figures figures = {.count = 0};
    nw_rc rc = each(state, &figures, look_bus);
    const struct nw_gpu_figure *worst = worst_of(&figures);

    *spoken_out = rc == NW_OK && worst != NULL;
    if (*spoken_out) {
        row->ceiling = isfinite(worst->ceiling) ? worst->ceiling : row->quoted;
        fill(row, &figures, worst, nw_pcie_efficiency());
        if (worst->ceiling < NW_SAME_RATE * row->quoted)
            row->verdict = NW_AUDIT_SHORT;
        if (row->verdict == NW_AUDIT_SHORT)
            rc = explain_bus(row, worst);
    }
    free(figures.items);
    return rc;
}

/* ---- memory bandwidth --------------------------------------------------------------------------
 */

/* DRAM refresh and turnaround leave 0.88 and more to a copy; published triads: 0.80 to 0.94. */
static const struct nw_efficiency memory_efficiency = {0.80, 0.94, "published triads"};

static nw_rc look_memory(const struct nw_run *run, const struct nw_record *record,
                         struct figures *figures)
{
    /* a copied byte is read and written */
    const struct nw_gpu_figure figure =
        figure_of(run, record, strcmp(record->collective, "copy") == 0 ? 2 : 1);

    return is_good(record, "d2d", LONG_MEMORY_BYTES) ? take(figures, &figure, is_faster) : NW_OK;
}

nw_rc nw_judge_memory_rate(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    struct figures figures = {.count = 0};
    nw_rc rc = each(state, &figures, look_memory);
    const struct nw_gpu_figure *worst = worst_of(&figures);

    if (rc == NW_OK && worst == NULL) {
        snprintf(row->how, sizeof row->how, "on the GPU node: mpirun nodeworth bench --cases d2d");
        nw_audit_reason(row, "no copy within a GPU's memory is among the results; %s", row->how);
    } else if (rc == NW_OK) {
        row->ceiling = isfinite(worst->ceiling) ? worst->ceiling : row->quoted;
        fill(row, &figures, worst, memory_efficiency);
        if (row->verdict == NW_AUDIT_SHORT)
            rc = nw_findings_add(
                &row->causes, NW_FINDING_FAIL, row->key, row->source,
                "nvidia-smi -q: memory clock, ECC errors, remapped rows, MIG; other processes",
                "%s",
                worst->ceiling < NW_SAME_RATE * row->quoted
                    ? "the GPU's memory is slower than quoted: another variant, or a lower "
                      "memory clock"
                    : "the memory is as quoted and carries less: errors that are corrected, "
                      "or other work on this GPU");
    }
    free(figures.items);
    return rc;
}

/* ---- compute -----------------------------------------------------------------------------------
 */

/* Of the product page's dense rate the best products reach 0.80 (H100), 0.86 (A100), 0.78 (B200):
 * stas00/ml-engineering, "Maximum Achievable Matmul FLOPS". Our one size and a power cap leave some
 * more out. */
static const struct nw_efficiency product_efficiency = {0.65, 0.92, "stas00/ml-engineering"};

static nw_rc look_product(const struct nw_run *run, const struct nw_record *record,
                          struct figures *figures)
{
    const struct nw_gpu_figure figure = figure_of(run, record, 1);

    return is_good(record, "gemm", 0) && strcmp(record->dtype, "bfloat16") == 0 &&
                   record->flop_per_s > 0
               ? take(figures, &figure, is_faster)
               : NW_OK;
}

/* What slows a GPU down that it should not have to bear; a power cap under such a load is ordinary.
 */
static uint64_t slowed_by(const struct nw_record *record)
{
    return record->during.throttle < 0 ? 0
                                       : (uint64_t)record->during.throttle & NW_THROTTLE_BAD &
                                             ~(uint64_t)NW_THROTTLE_POWER_CAP;
}

static nw_rc explain_product(struct nw_audit_row *row, const struct nw_gpu_figure *worst)
{
    const struct nw_gpu_state *state = &worst->record->during;
    char why[160];

    if (slowed_by(worst->record) != 0)
        return nw_findings_add(
            &row->causes, NW_FINDING_FAIL, row->key, row->source,
            "look at fans, air flow and power supply of this GPU's place, or have it replaced",
            "it is slowed down under load by %s (%.0f of %.0f MHz)",
            nw_throttle_text(why, slowed_by(worst->record)), state->sm_clock_hz / 1e6,
            state->sm_max_clock_hz / 1e6);
    return nw_findings_add(
        &row->causes, NW_FINDING_FAIL, row->key, row->source,
        "nvidia-smi -q -d CLOCK,POWER,PERFORMANCE during the run; with cuBLAS in "
        "the library path the product is NVIDIA's own",
        "a lower power limit or clock, another variant of the GPU, or a rate "
        "that counts sparse products");
}

nw_rc nw_judge_compute(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    struct figures figures = {.count = 0};
    nw_rc rc = each(state, &figures, look_product);
    const struct nw_gpu_figure *worst = worst_of(&figures);

    if (rc == NW_OK && worst == NULL) {
        snprintf(row->how, sizeof row->how, "on the GPU node: mpirun nodeworth bench --cases gemm");
        nw_audit_reason(row, "no bf16 matrix product is among the results; %s", row->how);
    } else if (rc == NW_OK) {
        row->ceiling = row->quoted;
        fill(row, &figures, worst, product_efficiency);
        if (row->verdict == NW_AUDIT_SHORT)
            rc = explain_product(row, worst);
    }
    free(figures.items);
    return rc;
}

/* ---- peer access -------------------------------------------------------------------------------
 */

nw_rc nw_judge_peer_access(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    size_t direct = 0, staged = 0;
    const struct nw_record *first = NULL;

    for (size_t r = 0; state->results != NULL && r < state->results->run_count; r++) {
        const struct nw_run *run = &state->results->runs[r];

        for (size_t i = 0; i < run->record_count; i++) {
            const struct nw_record *record = &run->records[i];

            if (!is_good(record, "p2p", 1) || strcmp(record->collective, "write") != 0)
                continue;
            row->simulated = row->simulated || record->simulated || run->context.simulated;
            direct += strcmp(record->lane, "ce") == 0;
            if (strcmp(record->lane, "staged") == 0 && staged++ == 0)
                first = record;
        }
    }
    if (direct + staged == 0) {
        snprintf(row->how, sizeof row->how, "on the GPU node: mpirun nodeworth bench --cases p2p");
        nw_audit_reason(row, "no copy between GPUs is among the results; %s", row->how);
        return NW_OK;
    }
    /* every pair with access is measured without it, too */
    const size_t without = staged > direct ? staged - direct : 0;

    snprintf(row->measured_text, sizeof row->measured_text, "%zu of %zu pairs", direct,
             direct + without);
    row->verdict =
        without == 0 || state->quote->has_peer_access == 0 ? NW_AUDIT_MET : NW_AUDIT_SHORT;
    if (row->verdict == NW_AUDIT_MET)
        return NW_OK;
    snprintf(row->source, sizeof row->source, "%s", first->host_a);
    return nw_findings_add(&row->causes, NW_FINDING_FAIL, row->key, row->source,
                           "consumer cards have none by design; else look at ACS and the IOMMU "
                           "(nvidia-smi topo -p2p r)",
                           "GPUs cannot reach each other's memory: every byte goes through host "
                           "memory");
}
