#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "topo/nvml_api.h"
#include "results/audit.h"

#define QUOTE                                                                                      \
    "[gpu]\nmodel = H100 SXM5 80GB\nnvlink_GBps = 900\nnvlink_is = bidirectional\n"                \
    "pcie_gen = 5\npcie_width = 16\nmemory_GBps = 3350\nbf16_TFLOPS = 989\npeer_access = yes\n"

struct fact { /* one record of a device case */
    const char *case_name, *collective, *lane;
    int a, b, rank_count;
    uint64_t bytes;
    double gb_per_s, ceiling_gb_per_s; /* gemm: TFLOP/s, NAN */
    int64_t throttle;
};

static void add(struct nw_run *run, const struct fact *fact)
{
    struct nw_record *record = nw_run_new_record(run);
    const bool product = strcmp(fact->case_name, "gemm") == 0;

    snprintf(record->case_name, sizeof record->case_name, "%s", fact->case_name);
    snprintf(record->collective, sizeof record->collective, "%s", fact->collective);
    snprintf(record->lane, sizeof record->lane, "%s", fact->lane);
    snprintf(record->dtype, sizeof record->dtype, "%s", product ? "bfloat16" : "none");
    snprintf(record->host_a, sizeof record->host_a, "node1");
    record->peer_a = fact->a;
    record->peer_b = fact->b;
    record->rank_count = fact->rank_count;
    record->host_count = 1;
    record->bytes = fact->bytes;
    record->time_ns = nw_stats_single(1e6);
    record->time_ns.low = 0.99e6;
    record->time_ns.high = 1.01e6;
    record->wrong_elements = 0;
    record->simulated = true;
    if (product) {
        record->flop_per_s = fact->gb_per_s * 1e12;
        record->during.throttle = fact->throttle;
        record->during.sm_clock_hz = 1200e6;
        record->during.sm_max_clock_hz = 1980e6;
        return;
    }
    record->algbw_bytes_per_s = record->busbw_bytes_per_s = fact->gb_per_s * 1e9;
    record->ceiling_bytes_per_s = fact->ceiling_gb_per_s * 1e9;
}

#define MIB64 (64u << 20)

/* Two healthy H100 SXM. */
static const struct fact healthy[] = {
    {"p2p", "write", "ce", 0, 1, 2, MIB64, 385, 450, -1},
    {"p2p", "write", "ce", 1, 0, 2, MIB64, 386, 450, -1},
    {"p2p", "write", "staged", 0, 1, 2, MIB64, 21, 63, -1},
    {"p2p", "write", "staged", 1, 0, 2, MIB64, 21, 63, -1},
    {"h2d", "copy", "ce", 0, -1, 1, MIB64, 55, 63, -1},
    {"d2h", "copy", "ce", 0, -1, 1, MIB64, 56, 63, -1},
    {"h2d", "copy", "ce", 1, -1, 1, MIB64, 55.5, 63, -1},
    {"h2d", "copy", "ce", 0, -1, 2, MIB64, 28, 63, -1},         /* both at once: not this claim */
    {"h2d", "copy", "ce", 0, -1, 1, 65536, 4, 63, -1},          /* the start of a copy */
    {"d2d", "copy", "sm", 0, -1, 2, 4 * MIB64, 1480, 1676, -1}, /* read and written */
    {"d2d", "copy", "ce", 0, -1, 2, 4 * MIB64, 1300, 1676, -1},
    {"d2d", "read", "sm", 1, -1, 2, 4 * MIB64, 3000, 3352, -1},
    {"gemm", "gemm", "own", 0, -1, 2, MIB64, 600, NAN, 0},
    {"gemm", "gemm", "cublas", 0, -1, 2, MIB64, 760, NAN, NW_THROTTLE_POWER_CAP},
    {"gemm", "gemm", "cublas", 1, -1, 2, MIB64, 755, NAN, 0},
};
#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

/* `instead` takes the place of record number `at` of the healthy ones. */
static void judge(const struct fact *instead, size_t at, struct nw_audit *audit)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    struct nw_quote quote;

    snprintf(run->context.backend, sizeof run->context.backend, "nccl");
    snprintf(run->context.gpu_model, sizeof run->context.gpu_model,
             "SIMULATED NVIDIA H100 80GB HBM3 (no hardware)");
    run->context.simulated = true;
    for (size_t i = 0; i < COUNT(healthy); i++)
        add(run, instead != NULL && i == at ? instead : &healthy[i]);
    cr_assert_eq(nw_quote_parse(QUOTE, strlen(QUOTE), "v.ini", &quote), NW_OK, "%s",
                 nw_last_error()->text);
    cr_assert_eq(
        nw_audit_make(&(struct nw_audit_input){.quote = &quote, .results = &results}, audit), NW_OK,
        "%s", nw_last_error()->text);
    nw_results_free(&results);
}

static const struct nw_audit_row *row_of(const struct nw_audit *audit, const char *key)
{
    for (size_t i = 0; i < audit->row_count; i++)
        if (strcmp(audit->rows[i].key, key) == 0)
            return &audit->rows[i];
    cr_assert_fail("no row %s", key);
    return NULL;
}

Test(results_audit_device, healthy_gpus_meet_every_claim_and_the_worst_of_them_speaks)
{
    static const struct {
        const char *key;
        double measured, ceiling;
    } rows[] = {
        {"nvlink", 385e9, 450e9},
        {"pcie", 55e9, 63e9},
        {"memory_rate", 2960e9, 3352e9},
        {"compute", 755e12, 989e12},
    };
    struct nw_audit audit;

    judge(NULL, 0, &audit);
    cr_assert_eq(nw_audit_count(&audit, NW_AUDIT_MET), audit.row_count);
    cr_assert(audit.simulated);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct nw_audit_row *row = row_of(&audit, rows[i].key);

        cr_assert_float_eq(row->measured, rows[i].measured, 1e-6 * rows[i].measured, "%s: %g",
                           rows[i].key, row->measured);
        cr_assert_float_eq(row->ceiling, rows[i].ceiling, 1e-6 * rows[i].ceiling, "%s: %g",
                           rows[i].key, row->ceiling);
        cr_assert_float_eq(row->measured_low, rows[i].measured / 1.01, 1e-6 * rows[i].measured);
        cr_assert(row->simulated);
    }
    cr_assert_str_eq(row_of(&audit, "peer_access")->measured_text, "2 of 2 pairs");
    nw_audit_free(&audit);
}

Test(results_audit_device, each_fault_makes_its_own_claim_short_with_its_cause)
{
    static const struct {
        struct fact fact;
        size_t at;
        const char *key, *cause;
    } rows[] = {
        {{"p2p", "write", "ce", 1, 0, 2, MIB64, 40, 63, -1}, 1, "nvlink", "NVLink is not used"},
        {{"p2p", "write", "ce", 1, 0, 2, MIB64, 350, 400, -1}, 1, "nvlink", "NVLink"},
        {{"h2d", "copy", "ce", 1, -1, 1, MIB64, 1.8, 2, -1}, 6, "pcie", "carries at most 2"},
        {{"h2d", "copy", "ce", 1, -1, 1, MIB64, 20, 63, -1}, 6, "pcie", "carries less"},
        {{"d2d", "read", "sm", 1, -1, 2, 4 * MIB64, 1900, 3352, -1},
         11,
         "memory_rate",
         "carries less"},
        {{"d2d", "read", "sm", 1, -1, 2, 4 * MIB64, 1900, 2039, -1},
         11,
         "memory_rate",
         "slower than quoted"},
        {{"gemm", "gemm", "cublas", 1, -1, 2, MIB64, 400, NAN, NW_THROTTLE_HARDWARE_HEAT},
         14,
         "compute",
         "heat"},
        {{"gemm", "gemm", "cublas", 1, -1, 2, MIB64, 400, NAN, NW_THROTTLE_POWER_CAP},
         14,
         "compute",
         "power limit"},
        {{"p2p", "write", "staged", 1, 0, 2, MIB64, 21, 63, -1},
         1,
         "peer_access",
         "cannot reach each other"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nw_audit audit;
        const struct nw_audit_row *row;
        bool found = false;

        judge(&rows[i].fact, rows[i].at, &audit);
        row = row_of(&audit, rows[i].key);
        cr_assert_eq(row->verdict, NW_AUDIT_SHORT, "%zu: %s", i, rows[i].key);
        for (size_t c = 0; c < row->causes.count; c++)
            found |= strstr(row->causes.items[c].text, rows[i].cause) != NULL;
        cr_assert(found, "%zu: %s: no cause with \"%s\"", i, rows[i].key, rows[i].cause);
        cr_assert_eq(nw_audit_exit_code(&audit), 1);
        nw_audit_free(&audit);
    }
}

Test(results_audit_device, what_no_case_measured_is_said_with_the_case_that_does)
{
    static const char *const keys[][2] = {
        {"pcie", "h2d"}, {"memory_rate", "d2d"}, {"compute", "gemm"}, {"peer_access", "p2p"}};
    struct nw_results results = {0};
    struct nw_quote quote;
    struct nw_audit audit;

    nw_results_add_run(&results);
    cr_assert_eq(nw_quote_parse(QUOTE, strlen(QUOTE), "v.ini", &quote), NW_OK);
    cr_assert_eq(
        nw_audit_make(&(struct nw_audit_input){.quote = &quote, .results = &results}, &audit),
        NW_OK);
    for (size_t i = 0; i < COUNT(keys); i++) {
        const struct nw_audit_row *row = row_of(&audit, keys[i][0]);

        cr_assert_eq(row->verdict, NW_AUDIT_NOT_MEASURED);
        cr_assert_not_null(strstr(row->reason, keys[i][1]), "%s: %s", keys[i][0], row->reason);
    }
    nw_audit_free(&audit);
    nw_results_free(&results);
}

/* Four GPUs joined in pairs: 12 links of 25 GB/s, 4 to each other GPU. */
Test(results_audit_device, pairs_that_share_a_gpus_links_are_added_up)
{
    const char *text = "[gpu]\nmodel = A100 SXM\nnvlink_GBps = 300\nnvlink_is = one-way\n";
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);
    struct nw_quote quote;
    struct nw_audit audit;

    snprintf(run->context.gpu_model, sizeof run->context.gpu_model, "NVIDIA A100-SXM4-80GB");
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            if (a != b)
                add(run, &(struct fact){"p2p", "write", "ce", a, b, 2, MIB64, 90, 100, -1});
    cr_assert_eq(nw_quote_parse(text, strlen(text), "v.ini", &quote), NW_OK);
    cr_assert_eq(
        nw_audit_make(&(struct nw_audit_input){.quote = &quote, .results = &results}, &audit),
        NW_OK);
    cr_assert_eq(row_of(&audit, "nvlink")->verdict, NW_AUDIT_MET);
    cr_assert_float_eq(row_of(&audit, "nvlink")->measured, 270e9, 1);
    nw_audit_free(&audit);
    nw_results_free(&results);
}
