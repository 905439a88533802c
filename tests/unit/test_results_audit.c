#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "results/audit.h"
#include "results/audit_gpu.h"
#include "results/import.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* --- made-up results: a curve that settles on a plateau --- */

struct curve {
    const char *gpu; /* "": host memory over MPI */
    const char *collective;
    int rank_count, host_count;
    double busbw_gb_per_s; /* of the plateau */
    const char *hosts;     /* first letter of the host names: equal, same hosts */
    uint64_t max_bytes;    /* 0: 8 GiB */
    bool simulated;
};

/* On hosts named after `hosts`, up to 8 GiB. */
#define CURVE(gpu, collective, ranks, hosts_, busbw, names)                                        \
    {                                                                                              \
        gpu, collective, ranks, hosts_, busbw, names, 0, false                                     \
    }

static double bus_factor(const char *collective, double n)
{
    if (strcmp(collective, "all_reduce") == 0)
        return 2 * (n - 1) / n;
    return strcmp(collective, "sendrecv") == 0 ? 1 : (n - 1) / n;
}

static void add_record(struct nw_run *run, const struct curve *curve, uint64_t bytes)
{
    struct nw_record record;
    const double factor = bus_factor(curve->collective, curve->rank_count);
    const double full_ns = (double)bytes * factor / curve->busbw_gb_per_s;
    /* A start of 40 us: half of the rate where the transfer takes as long. */
    const double time_ns = bytes >= 1u << 30 ? full_ns : full_ns + 40e3;

    nw_record_init(&record);
    snprintf(record.case_name, sizeof record.case_name, "coll");
    snprintf(record.collective, sizeof record.collective, "%s", curve->collective);
    snprintf(record.lane, sizeof record.lane, curve->gpu[0] != '\0' ? "auto" : "host");
    snprintf(record.dtype, sizeof record.dtype, "float");
    snprintf(record.op, sizeof record.op, "sum");
    record.rank_count = curve->rank_count;
    record.host_count = curve->host_count;
    record.bytes = bytes;
    record.time_ns = nw_stats_single(time_ns);
    record.algbw_bytes_per_s = (double)bytes / time_ns * 1e9;
    record.busbw_bytes_per_s = record.algbw_bytes_per_s * factor;
    record.simulated = curve->simulated;
    record.wrong_elements = 0;
    cr_assert_eq(nw_run_add_record(run, &record), NW_OK);
}

static struct nw_run *add_curve(struct nw_results *results, const struct curve *curve)
{
    struct nw_run *run = nw_results_add_run(results);
    struct nw_context *context = &run->context;
    const uint64_t most = curve->max_bytes > 0 ? curve->max_bytes : 8ull << 30;

    snprintf(context->tool, sizeof context->tool,
             curve->gpu[0] != '\0' ? "nccl-tests" : "nodeworth");
    snprintf(context->backend, sizeof context->backend, curve->gpu[0] != '\0' ? "nccl" : "mpi");
    snprintf(context->gpu_model, sizeof context->gpu_model, "%s", curve->gpu);
    snprintf(context->source, sizeof context->source, "%s.log", curve->hosts);
    context->rank_count = curve->rank_count;
    context->host_count = curve->host_count;
    context->simulated = curve->simulated;
    context->hosts = calloc((size_t)curve->host_count, sizeof *context->hosts);
    for (int i = 0; i < curve->host_count; i++) {
        snprintf(context->hosts[i].name, sizeof context->hosts[i].name, "%s%d", curve->hosts, i);
        context->hosts[i].rank_count = curve->rank_count / curve->host_count;
        context->hosts[i].gpu_count = -1;
    }
    for (uint64_t bytes = 1024; bytes <= most; bytes *= 2)
        add_record(run, curve, bytes);
    return run;
}

static struct nw_quote quote_of(const char *text)
{
    struct nw_quote quote;

    cr_assert_eq(nw_quote_parse(text, strlen(text), "v.ini", &quote), NW_OK, "%s",
                 nw_last_error()->text);
    return quote;
}

static void make(const char *quote_text, const struct nw_results *results,
                 struct nw_topo *const *topos, size_t topo_count, struct nw_audit *audit)
{
    const struct nw_quote quote = quote_of(quote_text);

    cr_assert_eq(nw_audit_make(&(struct nw_audit_input){.quote = &quote,
                                                        .results = results,
                                                        .topos = topos,
                                                        .topo_count = topo_count},
                               audit),
                 NW_OK, "%s", nw_last_error()->text);
}

static const struct nw_audit_row *row_of(const struct nw_audit *audit, const char *key)
{
    for (size_t i = 0; i < audit->row_count; i++)
        if (strcmp(audit->rows[i].key, key) == 0)
            return &audit->rows[i];
    cr_assert_fail("no row %s", key);
    return NULL;
}

/* --- GPUs --- */

Test(results_audit, a_gpu_is_judged_by_the_words_of_its_name)
{
    static const struct {
        const char *quoted, *found;
        bool fits;
    } rows[] = {
        {"H100 SXM", "NVIDIA H100 80GB HBM3", true},
        {"8x H100-SXM5 80GB", "NVIDIA H100 80GB HBM3", true},
        {"NVIDIA H100", "NVIDIA H100 PCIe", true},
        {"H100 SXM", "NVIDIA H100 PCIe", false},
        {"H100 SXM", "NVIDIA H100 NVL", false},
        {"h100 nvl 94gb", "NVIDIA H100 NVL", true},
        {"H100 SXM5", "GH100 [H100 SXM5 80GB]", true},
        {"H100", "NVIDIA H200", false},
        {"H100", "NVIDIA H800", false},
        {"H20", "NVIDIA H200", false},
        {"A100 SXM4 80GB", "NVIDIA A100-SXM4-80GB", true},
        {"A100 80 GB", "NVIDIA A100-SXM4-40GB", false},
        {"A100 PCIe", "NVIDIA A100-SXM4-40GB", false},
        {"A100 PCIe", "NVIDIA A100 80GB PCIe", true},
        {"V100 32GB", "Tesla V100-SXM2-32GB", true},
        {"RTX 4090", "NVIDIA GeForce RTX 4090", true},
        {"4090", "NVIDIA GeForce RTX 4090", true},
        {"RTX 4090", "NVIDIA GeForce RTX 4090 D", false},
        {"L40", "NVIDIA L40S", false},
        {"RTX A6000", "NVIDIA RTX 6000 Ada Generation", false},
        {"A6000", "NVIDIA RTX A6000", true},
        {"GH200", "NVIDIA GH200 480GB", true},
        {"GH200 96GB", "NVIDIA GH200 120GB", true},
    };
    struct nw_gpu_name quoted, found;

    for (size_t i = 0; i < COUNT(rows); i++) {
        nw_gpu_name_of(rows[i].quoted, false, &quoted);
        nw_gpu_name_of(rows[i].found, true, &found);
        cr_expect_eq(nw_gpu_name_fits(&quoted, &found), rows[i].fits, "%s against %s",
                     rows[i].quoted, rows[i].found);
    }
    /* Any text is a name of some kind. */
    char endless[3000];

    memset(endless, 'X', sizeof endless);
    endless[sizeof endless - 1] = '\0';
    nw_gpu_name_of(endless, true, &found);
    nw_gpu_name_of("a b c d e f g h i j k l m n", true, &found);
    cr_expect_eq(found.word_count, 8);
    nw_gpu_name_of("[", true, &found);
    nw_gpu_name_of("", true, &found);
    cr_expect_eq(found.word_count, 0);
}

Test(results_audit, nvlink_of_a_product_is_one_way)
{
    static const struct {
        const char *found;
        double gb_per_s;
        bool bridge, reduces;
    } rows[] = {
        {"NVIDIA H100 80GB HBM3", 450, false, true},     {"NVIDIA H100 PCIe", 300, true, false},
        {"NVIDIA A100-SXM4-80GB", 300, false, false},    {"NVIDIA H800", 200, false, true},
        {"NVIDIA A800-SXM4-80GB", 200, false, false},    {"NVIDIA B200", 900, false, true},
        {"Tesla V100-SXM2-32GB", 150, false, false},     {"NVIDIA L40S", 0, false, false},
        {"NVIDIA GeForce RTX 4090", 0, false, false},    {"NVIDIA RTX A6000", 56.25, true, false},
        {"NVIDIA GeForce RTX 3090", 56.25, true, false},
    };
    struct nw_gpu_name name;

    for (size_t i = 0; i < COUNT(rows); i++) {
        nw_gpu_name_of(rows[i].found, true, &name);
        const struct nw_gpu_nvlink nvlink = nw_gpu_nvlink_of(&name);

        cr_expect_float_eq(nvlink.bytes_per_s / 1e9, rows[i].gb_per_s, 1e-9, "%s: %g",
                           rows[i].found, nvlink.bytes_per_s);
        cr_expect_eq(nvlink.bridge, rows[i].bridge, "%s", rows[i].found);
        cr_expect_eq(nvlink.reduces, rows[i].reduces, "%s", rows[i].found);
    }
    nw_gpu_name_of("NVIDIA Z9000", true, &name);
    cr_expect(isnan(nw_gpu_nvlink_of(&name).bytes_per_s));
}

/* --- rates --- */

#define H100 "NVIDIA H100 80GB HBM3"
#define A100 "NVIDIA A100-SXM4-80GB"

#define NVLINK_900 "[gpu]\ncount=8\nnvlink_GBps=900\nnvlink_is=bidirectional\n"
#define NVLINK_600 "[gpu]\ncount=8\nnvlink_GBps=600\nnvlink_is=bidirectional\n"
#define NICS(count, rate)                                                                          \
    "[gpu]\ncount=8\n[network]\nrdma=yes\nnic_count=" #count "\nnic_gbps=" #rate "\n"

struct rate_case {
    const char *quote;
    const char *key;
    struct curve curve;
    nw_audit_verdict verdict;
    double measured_gb_per_s; /* 0: none */
    const char *says;         /* in the reason or a cause; NULL */
};

static bool row_says(const struct nw_audit_row *row, const char *text)
{
    bool found = strstr(row->reason, text) != NULL;

    for (size_t i = 0; i < row->causes.count; i++)
        found = found || strstr(row->causes.items[i].text, text) != NULL;
    return found;
}

static void check_rate(const struct rate_case *rate)
{
    struct nw_results results = {0};
    struct nw_audit audit;

    add_curve(&results, &rate->curve);
    make(rate->quote, &results, NULL, 0, &audit);
    const struct nw_audit_row *row = row_of(&audit, rate->key);

    cr_expect_eq(row->verdict, rate->verdict, "%s %d/%d %s %g: %s (%s)", rate->curve.gpu,
                 rate->curve.rank_count, rate->curve.host_count, rate->curve.collective,
                 rate->curve.busbw_gb_per_s, nw_audit_verdict_text(row->verdict), row->reason);
    if (rate->measured_gb_per_s > 0)
        cr_expect_float_eq(row->measured / 1e9, rate->measured_gb_per_s,
                           0.01 * rate->measured_gb_per_s, "%g: measured %g, not %g",
                           rate->curve.busbw_gb_per_s, row->measured / 1e9,
                           rate->measured_gb_per_s);
    if (rate->says != NULL)
        cr_expect(row_says(row, rate->says), "\"%s\" is not in: %s", rate->says, row->reason);
    nw_audit_free(&audit);
    nw_results_free(&results);
}

/* Busbw of healthy machines from public sources: stas00/ml-engineering (A100 235, H200 367.6 as
 * ring, 482.3 with NVLS), NVIDIA/nccl-tests#290 (2x8 H100 370 to 390 as ring), NVIDIA/nccl#812 (2x8
 * A100, 8x 200 Gb/s, 192). */
Test(results_audit, nvlink_is_judged_by_the_wire_rate_of_the_algorithm)
{
    static const struct rate_case rows[] = {
        {NVLINK_900, "nvlink", CURVE(H100, "all_reduce", 8, 1, 480, "a"), NW_AUDIT_MET, 308.6,
         "nvls"},
        {NVLINK_900, "nvlink", CURVE(H100, "all_reduce", 8, 1, 367, "a"), NW_AUDIT_MET, 367,
         "ring"},
        {NVLINK_900, "nvlink", CURVE(H100, "all_gather", 8, 1, 361, "a"), NW_AUDIT_MET, 361, NULL},
        {NVLINK_900, "nvlink", CURVE(H100, "all_reduce", 8, 1, 200, "a"), NW_AUDIT_SHORT, 200,
         "NVLinks are inactive"},
        {NVLINK_900, "nvlink", CURVE(H100, "all_reduce", 8, 1, 40, "a"), NW_AUDIT_SHORT, 40,
         "NVLink is not used"},
        {NVLINK_600, "nvlink", CURVE(A100, "all_reduce", 8, 1, 235, "a"), NW_AUDIT_MET, 235, NULL},
        {NVLINK_600, "nvlink", CURVE(A100, "all_reduce", 8, 1, 160, "a"), NW_AUDIT_SHORT, 160,
         NULL},
        /* More than the hardware can: no verdict from it. */
        {NVLINK_600, "nvlink", CURVE(A100, "all_reduce", 8, 1, 480, "a"), NW_AUDIT_NOT_MEASURED, 0,
         "above what the hardware carries"},
        /* The quote itself is beyond the product. */
        {"[gpu]\nnvlink_GBps=900\nnvlink_is=one-way\n", "nvlink",
         CURVE(H100, "all_reduce", 8, 1, 480, "a"), NW_AUDIT_SHORT, 0, "counts both directions"},
        {NVLINK_900, "nvlink", CURVE(A100, "all_reduce", 8, 1, 235, "a"), NW_AUDIT_SHORT, 0,
         "slower than quoted"},
        {NVLINK_900, "nvlink", CURVE("NVIDIA L40S", "all_reduce", 8, 1, 20, "a"), NW_AUDIT_SHORT, 0,
         "has no NVLink"},
        /* Bridges: a whole node says nothing. */
        {"[gpu]\nnvlink_GBps=600\nnvlink_is=bidirectional\n", "nvlink",
         CURVE("NVIDIA H100 PCIe", "all_reduce", 8, 1, 40, "a"), NW_AUDIT_NOT_MEASURED, 0, "pairs"},
        {"[gpu]\nnvlink_GBps=600\nnvlink_is=bidirectional\n", "nvlink",
         CURVE("NVIDIA H100 PCIe", "all_reduce", 2, 1, 230, "a"), NW_AUDIT_MET, 230, NULL},
        {"[gpu]\nnvlink_GBps=600\nnvlink_is=bidirectional\n", "nvlink",
         CURVE("NVIDIA H100 PCIe", "all_reduce", 2, 1, 40, "a"), NW_AUDIT_NOT_MEASURED, 0, "pairs"},
        /* What does not speak of NVLink. */
        {NVLINK_900, "nvlink", CURVE("", "all_reduce", 8, 1, 6, "a"), NW_AUDIT_NOT_MEASURED, 0,
         "all_reduce_perf"},
        {NVLINK_900, "nvlink", CURVE(H100, "all_reduce", 16, 2, 196, "a"), NW_AUDIT_NOT_MEASURED, 0,
         NULL},
        {NVLINK_900,
         "nvlink",
         {H100, "all_reduce", 8, 1, 480, "a", 1 << 20, false},
         NW_AUDIT_NOT_MEASURED,
         0,
         "go up to 8G"},
        {NVLINK_900, "nvlink", CURVE(H100, "sendrecv", 8, 1, 195, "a"), NW_AUDIT_NOT_MEASURED, 195,
         "or more"},
        {NVLINK_900, "nvlink", CURVE(H100, "alltoall", 8, 1, 350, "a"), NW_AUDIT_MET, 350, NULL},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_rate(&rows[i]);
}

Test(results_audit, the_network_is_short_only_when_every_reading_says_so)
{
    static const struct rate_case rows[] = {
        {NICS(8, 400), "network", CURVE(H100, "all_reduce", 16, 2, 385, "a"), NW_AUDIT_MET, 385,
         "ring"},
        {NICS(8, 400), "network", CURVE(H100, "all_reduce", 16, 2, 196, "a"), NW_AUDIT_SHORT, 196,
         "half of the NICs"},
        {NICS(8, 400), "network", CURVE(H100, "all_reduce", 16, 2, 1.4, "a"), NW_AUDIT_SHORT, 1.4,
         "TCP sockets"},
        {NICS(8, 200), "network", CURVE(A100, "all_reduce", 16, 2, 192, "a"), NW_AUDIT_MET, 192,
         NULL},
        {NICS(8, 200), "network", CURVE(A100, "all_reduce", 32, 4, 191, "a"), NW_AUDIT_MET, 191,
         NULL},
        {NICS(8, 400), "network", CURVE(H100, "all_gather", 16, 2, 365, "a"), NW_AUDIT_MET, 365,
         NULL},
        /* Faster than a ring can be: bounded by the nodes, and 8/15 × 8 of it crossed. */
        {NICS(8, 400), "network", CURVE(H100, "all_reduce", 16, 2, 487, "a"), NW_AUDIT_NOT_MEASURED,
         259.7, "NCCL_ALGO=RING"},
        /* One GPU of eight: its share, no more. d-robotics' matrix: 48.9 of 50. */
        {NICS(8, 400), "network", CURVE(H100, "all_reduce", 2, 2, 48.9, "a"), NW_AUDIT_NOT_MEASURED,
         48.9, "1 of 8 GPUs"},
        {NICS(8, 400), "network", CURVE(H100, "alltoall", 2, 2, 0.9, "a"), NW_AUDIT_SHORT, 0.9,
         "1 of 8 GPUs"},
        {NICS(8, 400), "network", CURVE(H100, "sendrecv", 16, 2, 15, "a"), NW_AUDIT_NOT_MEASURED, 0,
         "no collective across nodes"},
        {NICS(8, 400), "network", CURVE(H100, "alltoall", 2, 2, 27.3, "a"), NW_AUDIT_NOT_MEASURED,
         27.3, NULL},
        /* PCIe cards may be the limit themselves. */
        {NICS(8, 400), "network", CURVE("NVIDIA L40S", "all_reduce", 16, 2, 20, "a"),
         NW_AUDIT_NOT_MEASURED, 20, "may be the limit"},
        /* Host memory says nothing of GPUs or RDMA. */
        {NICS(8, 400), "network", CURVE("", "all_reduce", 16, 2, 1.1, "a"), NW_AUDIT_NOT_MEASURED,
         0, "host memory"},
        {"[network]\nrdma=yes\nnic_gbps=100\n", "network", CURVE("", "all_reduce", 2, 2, 1.1, "a"),
         NW_AUDIT_NOT_MEASURED, 1.1, "ib_write_bw"},
        /* A plain cluster over TCP. */
        {"[network]\nnic_gbps=1\n", "network", CURVE("", "all_reduce", 2, 2, 0.117, "a"),
         NW_AUDIT_MET, 0.117, NULL},
        {"[network]\nnic_gbps=10\n", "network", CURVE("", "all_reduce", 2, 2, 0.117, "a"),
         NW_AUDIT_SHORT, 0.117, "slower link"},
        {"[network]\nnic_gbps=1\n", "network", CURVE("", "all_reduce", 4, 2, 0.09, "a"),
         NW_AUDIT_MET, 0.12, "recursive doubling"},
        {"[network]\nnic_gbps=1\n", "network", CURVE("", "all_reduce", 4, 2, 0.02, "a"),
         NW_AUDIT_SHORT, 0, NULL},
        {"[network]\nnic_gbps=1\n", "network", CURVE("", "all_reduce", 4, 1, 6, "a"),
         NW_AUDIT_NOT_MEASURED, 0, "one node"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_rate(&rows[i]);
}

Test(results_audit, an_interval_that_reaches_the_need_is_no_shortage)
{
    static const struct {
        double half_interval;
        nw_audit_verdict verdict;
    } rows[] = {{0.02, NW_AUDIT_SHORT}, {0.3, NW_AUDIT_NOT_MEASURED}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nw_results results = {0};
        struct nw_audit audit;
        const struct curve curve = CURVE("", "all_reduce", 2, 2, 0.09, "a");
        struct nw_run *run = add_curve(&results, &curve);

        for (size_t j = 0; j < run->record_count; j++) {
            struct nw_stats *time = &run->records[j].time_ns;

            time->low = time->median * (1 - rows[i].half_interval);
            time->high = time->median * (1 + rows[i].half_interval);
        }
        make("[network]\nnic_gbps=1\n", &results, NULL, 0, &audit);
        const struct nw_audit_row *row = row_of(&audit, "network");

        cr_expect_eq(row->verdict, rows[i].verdict, "+/- %g: %s", rows[i].half_interval,
                     row->reason);
        cr_expect(row->measured_low < row->measured && row->measured < row->measured_high);
        nw_audit_free(&audit);
        nw_results_free(&results);
    }
}

/* Logs from the field; the files lie beside a development checkout only. */
Test(results_audit, logs_from_the_field_read_as_their_sources_say)
{
    static const struct {
        const char *file, *quote, *key;
        nw_audit_verdict verdict;
    } rows[] = {
        /* "about half of 8x400G" */
        {"kube-h100-2node-kubectl.log", NICS(8, 400), "network", NW_AUDIT_SHORT},
        /* "471 > 400 GB/s NIC sum: possible with 2 nodes, must not be flagged as impossible" */
        {"oci-h100-2node-above-nic.log", NICS(8, 400), "network", NW_AUDIT_NOT_MEASURED},
        /* "0.90 at 16 GiB; healthy pairs 13.5 flat" */
        {"pair-G1-001-004-slow.log", NICS(8, 400), "network", NW_AUDIT_SHORT},
        {"panlichen-h800x8-allreduce-manyruns.log",
         "[gpu]\nnvlink_GBps=400\nnvlink_is=bidirectional\n", "nvlink", NW_AUDIT_MET},
        {"panlichen-4090x8-reducescatter-manyruns.log", NVLINK_900, "nvlink", NW_AUDIT_SHORT},
        {"kube-h100-2node-kubectl.log", "[gpu]\nmodel=H100 SXM\n", "gpu_model", NW_AUDIT_MET},
        {"kube-h100-2node-kubectl.log", "[gpu]\nmodel=H100 PCIe\n", "gpu_model", NW_AUDIT_SHORT},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char path[512];
        struct nw_results results = {0};
        struct nw_audit audit;

        snprintf(path, sizeof path, "%s/../shared/data/field/nccltests/%s", NW_SOURCE_DIR,
                 rows[i].file);
        if (access(path, R_OK) != 0)
            cr_skip_test("no logs from the field at %s", path);
        cr_assert_eq(nw_import_file(path, &results), NW_OK, "%s", nw_last_error()->text);
        make(rows[i].quote, &results, NULL, 0, &audit);
        cr_expect_eq(row_of(&audit, rows[i].key)->verdict, rows[i].verdict, "%s: %s is %s (%s)",
                     rows[i].file, rows[i].key,
                     nw_audit_verdict_text(row_of(&audit, rows[i].key)->verdict),
                     row_of(&audit, rows[i].key)->reason);
        nw_audit_free(&audit);
        nw_results_free(&results);
    }
}

Test(results_audit, the_worst_hosts_speak_and_repeats_of_the_same_hosts_are_told)
{
    struct nw_results results = {0};
    struct nw_audit audit;

    add_curve(&results, &(struct curve)CURVE(H100, "all_reduce", 16, 2, 385, "good"));
    add_curve(&results, &(struct curve)CURVE(H100, "all_reduce", 16, 2, 150, "slow"));
    make(NICS(8, 400), &results, NULL, 0, &audit);
    cr_expect_eq(row_of(&audit, "network")->verdict, NW_AUDIT_SHORT);
    cr_expect_str_eq(row_of(&audit, "network")->source, "slow.log");
    cr_expect_eq(audit.findings.count, 0);
    nw_audit_free(&audit);

    add_curve(&results, &(struct curve)CURVE(H100, "all_reduce", 16, 2, 390, "slow"));
    make(NICS(8, 400), &results, NULL, 0, &audit);
    cr_expect_eq(row_of(&audit, "network")->verdict, NW_AUDIT_MET, "the repeat was good");
    cr_assert_eq(audit.findings.count, 1);
    cr_expect_str_eq(audit.findings.items[0].code, "unsteady");
    cr_expect_eq(nw_audit_exit_code(&audit), 0);
    nw_audit_free(&audit);
    nw_results_free(&results);
}

Test(results_audit, nodes_that_are_slow_inside_do_not_blame_the_network)
{
    struct nw_results results = {0};
    struct nw_audit audit;

    add_curve(&results, &(struct curve)CURVE("NVIDIA L40S", "all_reduce", 8, 1, 21, "a"));
    add_curve(&results, &(struct curve)CURVE("NVIDIA L40S", "all_reduce", 16, 2, 20, "a"));
    make(NICS(8, 400), &results, NULL, 0, &audit);
    cr_expect_eq(row_of(&audit, "network")->verdict, NW_AUDIT_NOT_MEASURED);
    cr_expect(row_says(row_of(&audit, "network"), "as fast across nodes as inside one"));
    nw_audit_free(&audit);
    nw_results_free(&results);

    add_curve(&results, &(struct curve)CURVE("NVIDIA L40S", "all_reduce", 8, 1, 21, "a"));
    add_curve(&results, &(struct curve)CURVE("NVIDIA L40S", "all_reduce", 16, 2, 9, "a"));
    make(NICS(1, 400), &results, NULL, 0, &audit);
    cr_expect_eq(row_of(&audit, "network")->verdict, NW_AUDIT_SHORT);
    nw_audit_free(&audit);
    nw_results_free(&results);
}

Test(results_audit, wrong_results_fail_and_their_rates_are_left_out)
{
    struct nw_results results = {0};
    struct nw_audit audit;
    struct nw_run *run =
        add_curve(&results, &(struct curve)CURVE(H100, "all_reduce", 8, 1, 480, "a"));

    for (size_t i = 0; i < run->record_count; i++)
        run->records[i].wrong_elements = 3;
    make(NVLINK_900, &results, NULL, 0, &audit);
    cr_expect_eq(row_of(&audit, "nvlink")->verdict, NW_AUDIT_NOT_MEASURED);
    cr_assert_eq(audit.findings.count, 1);
    cr_expect_str_eq(audit.findings.items[0].code, "wrong-results");
    cr_expect_eq(nw_audit_exit_code(&audit), 1);
    nw_audit_free(&audit);
    nw_results_free(&results);
}

Test(results_audit, simulated_records_are_marked_and_silence_is_inconclusive)
{
    struct nw_results results = {0};
    struct nw_audit audit;

    make(NICS(8, 400) "[disk]\nread_GBps=6\n", &results, NULL, 0, &audit);
    cr_expect_eq(nw_audit_count(&audit, NW_AUDIT_NOT_MEASURED), audit.row_count);
    cr_expect_eq(nw_audit_exit_code(&audit), 3);
    for (size_t i = 0; i < audit.row_count; i++)
        cr_expect_gt(strlen(audit.rows[i].reason), 20, "%s: why?", audit.rows[i].key);
    nw_audit_free(&audit);

    add_curve(&results, &(struct curve){"", "all_reduce", 2, 2, 0.117, "a", 0, true});
    make("[network]\nnic_gbps=1\n", &results, NULL, 0, &audit);
    cr_expect(audit.simulated && row_of(&audit, "network")->simulated);
    cr_expect_eq(nw_audit_exit_code(&audit), 0);
    nw_audit_free(&audit);
    nw_results_free(&results);

    const struct nw_quote quote = quote_of("[price]\ncurrency=CNY\nper_node_hour=5\n");

    cr_expect_eq(nw_audit_make(&(struct nw_audit_input){.quote = &quote}, &audit), NW_EUSAGE,
                 "prices are no claims");
}

/* --- what is there --- */

static struct nw_topo_node *add_node(struct nw_topo *topo, nw_node_kind kind, const char *name,
                                     const char *model)
{
    struct nw_topo_node *node = &topo->nodes[topo->node_count++];

    *node = (struct nw_topo_node){.kind = kind, .numa = -1, .port_up = -1};
    snprintf(node->name, sizeof node->name, "%s", name);
    snprintf(node->model, sizeof node->model, "%s", model);
    return node;
}

#define GIB ((uint64_t)1 << 30)

/* 2 GPUs, 2 NICs, 2 disks. */
static void fill_topo(struct nw_topo *topo, struct nw_topo_node nodes[8])
{
    *topo = (struct nw_topo){.host = "n1", .source = "n1.json", .nodes = nodes};
    add_node(topo, NW_NODE_MACHINE, "n1", "");
    for (int i = 0; i < 2; i++) {
        struct nw_topo_node *gpu = add_node(topo, NW_NODE_GPU, i == 0 ? "gpu0" : "gpu1", H100);

        gpu->memory_bytes = (uint64_t)81559 << 20;
        gpu->link_bytes_per_s = 3.94e9; /* idle: Gen1 */
        gpu->link_max_bytes_per_s = 63.015e9;
        gpu->link_lanes = gpu->link_max_lanes = 16;
    }
    for (int i = 0; i < 2; i++) {
        struct nw_topo_node *nic = add_node(topo, NW_NODE_NIC, i == 0 ? "mlx5_0" : "mlx5_1", "");

        nic->rate_bits_per_s = 400e9;
        nic->port_up = 1;
        snprintf(nic->fabric, sizeof nic->fabric, "infiniband");
    }
    for (int i = 0; i < 2; i++)
        add_node(topo, NW_NODE_DISK, i == 0 ? "nvme0n1" : "nvme1n1", "")->memory_bytes =
            3840755982336;
    topo->core_count = 96;
    topo->pu_count = 192;
    topo->memory_bytes = 2015 * GIB;
}

static const char whole_quote[] =
    "[cluster]\nnodes=1\n[gpu]\nmodel=H100 SXM\ncount=2\nmemory_GiB=80\npcie_gen=5\npcie_width=16\n"
    "[network]\nnic_count=2\nnic_gbps=400\nrdma=yes\nkind=infiniband\n"
    "[cpu]\ncores=96\nthreads=192\nram_GiB=2048\n[disk]\nnvme_count=2\nnvme_TB=3.84\n";

static void expect_verdict(struct nw_topo *topo, const char *key, nw_audit_verdict verdict,
                           const char *what)
{
    struct nw_audit audit;

    make(whole_quote, NULL, &topo, 1, &audit);
    cr_expect_eq(row_of(&audit, key)->verdict, verdict, "%s: %s is %s (%s; %s)", what, key,
                 nw_audit_verdict_text(row_of(&audit, key)->verdict),
                 row_of(&audit, key)->measured_text, row_of(&audit, key)->reason);
    nw_audit_free(&audit);
}

Test(results_audit, a_machine_as_quoted_meets_every_claim_about_what_is_there)
{
    struct nw_topo topo, *list[] = {&topo};
    struct nw_topo_node nodes[8];
    struct nw_audit audit;

    fill_topo(&topo, nodes);
    make(whole_quote, NULL, list, 1, &audit);
    for (size_t i = 0; i < audit.row_count; i++)
        if (strcmp(audit.rows[i].key, "network") != 0)
            cr_expect_eq(audit.rows[i].verdict, NW_AUDIT_MET, "%s: %s; %s", audit.rows[i].key,
                         audit.rows[i].measured_text, audit.rows[i].reason);
    cr_expect_eq(audit.row_count, 13);
    cr_expect_eq(nw_audit_exit_code(&audit), 0);
    nw_audit_free(&audit);
}

Test(results_audit, each_shortage_is_found_and_gaps_of_the_source_are_no_shortage)
{
    struct nw_topo topo;
    struct nw_topo_node nodes[8];

#define CHANGED(statement, key, verdict)                                                           \
    do {                                                                                           \
        fill_topo(&topo, nodes);                                                                   \
        statement;                                                                                 \
        expect_verdict(&topo, key, verdict, #statement);                                           \
    } while (0)
    CHANGED(strcpy(nodes[2].model, "NVIDIA H100 PCIe"), "gpu_model", NW_AUDIT_SHORT);
    CHANGED(nodes[2].kind = NW_NODE_PCI, "gpu_count", NW_AUDIT_SHORT);
    CHANGED(nodes[2].memory_bytes = 40 * GIB, "gpu_memory", NW_AUDIT_SHORT);
    CHANGED(nodes[1].link_max_bytes_per_s = 31.5e9, "pcie", NW_AUDIT_SHORT);
    CHANGED(nodes[1].link_max_lanes = 8;
            nodes[1].link_max_bytes_per_s = 31.5e9, "pcie", NW_AUDIT_SHORT);
    /* The best is unknown and the link is slow now: an idle GPU, or a fault. */
    CHANGED(nodes[1].link_max_bytes_per_s = 0, "pcie", NW_AUDIT_NOT_MEASURED);
    CHANGED(nodes[1].link_max_bytes_per_s = 0; nodes[1].link_lanes = 8, "pcie", NW_AUDIT_SHORT);
    CHANGED(nodes[3].rate_bits_per_s = 200e9, "nics", NW_AUDIT_SHORT);
    CHANGED(nodes[3].port_up = 0, "nics", NW_AUDIT_SHORT);
    CHANGED(nodes[3].rate_bits_per_s = 0, "nics", NW_AUDIT_NOT_MEASURED);
    CHANGED(nodes[3].rate_bits_per_s = 200e9, "network", NW_AUDIT_SHORT);
    CHANGED(nodes[3].rate_bits_per_s = 0, "network", NW_AUDIT_NOT_MEASURED);
    CHANGED(strcpy(nodes[3].fabric, "ethernet");
            strcpy(nodes[4].fabric, "ethernet"), "rdma", NW_AUDIT_SHORT);
    CHANGED(strcpy(nodes[3].fabric, "roce"); strcpy(nodes[4].fabric, "roce"), "rdma", NW_AUDIT_MET);
    CHANGED(strcpy(nodes[3].fabric, "roce");
            strcpy(nodes[4].fabric, "roce"), "network_kind", NW_AUDIT_SHORT);
    CHANGED(topo.core_count = 48, "cores", NW_AUDIT_SHORT);
    CHANGED(topo.core_count = 48; topo.gaps = NW_TOPO_RESTRICTED, "cores", NW_AUDIT_NOT_MEASURED);
    CHANGED(topo.pu_count = 96, "threads", NW_AUDIT_SHORT);
    CHANGED(topo.memory_bytes = 1907 * GIB, "ram", NW_AUDIT_SHORT);
    CHANGED(topo.memory_bytes = 0, "ram", NW_AUDIT_NOT_MEASURED);
    CHANGED(nodes[5].memory_bytes = 1920383410176, "disks", NW_AUDIT_SHORT);
    CHANGED(nodes[5].memory_bytes = 0, "disks", NW_AUDIT_NOT_MEASURED);
    /* No I/O in the source: nothing may be said of devices. */
    CHANGED(topo.gaps = NW_TOPO_NO_IO; topo.node_count = 1, "gpu_count", NW_AUDIT_NOT_MEASURED);
    CHANGED(topo.gaps = NW_TOPO_NO_IO; topo.node_count = 1, "nics", NW_AUDIT_NOT_MEASURED);
    CHANGED(topo.gaps = NW_TOPO_NO_IO; topo.node_count = 1, "disks", NW_AUDIT_NOT_MEASURED);
    /* A machine without any GPU is not the quoted one: nothing is known of that. */
    CHANGED(topo.node_count = 1, "gpu_model", NW_AUDIT_NOT_MEASURED);
    CHANGED(topo.node_count = 1, "gpu_count", NW_AUDIT_NOT_MEASURED);
#undef CHANGED
}

Test(results_audit, one_node_without_gpus_among_others_is_short)
{
    struct nw_topo topos[2], *list[] = {&topos[0], &topos[1]};
    struct nw_topo_node nodes[2][8];
    struct nw_audit audit;

    fill_topo(&topos[0], nodes[0]);
    fill_topo(&topos[1], nodes[1]);
    strcpy(topos[1].host, "n2");
    topos[1].node_count = 1;
    make(whole_quote, NULL, list, 2, &audit);
    cr_expect_eq(row_of(&audit, "gpu_count")->verdict, NW_AUDIT_SHORT);
    cr_expect_eq(row_of(&audit, "gpu_model")->verdict, NW_AUDIT_SHORT);
    cr_expect_str_eq(row_of(&audit, "gpu_count")->source, "n2");
    nw_audit_free(&audit);
}

Test(results_audit, vcpus_sold_as_cores_are_named)
{
    struct nw_topo topo, *list[] = {&topo};
    struct nw_topo_node nodes[8];
    struct nw_audit audit;

    fill_topo(&topo, nodes);
    make("[cpu]\ncores=192\n", NULL, list, 1, &audit);
    cr_expect_eq(row_of(&audit, "cores")->verdict, NW_AUDIT_SHORT);
    cr_expect(row_says(row_of(&audit, "cores"), "vCPU"));
    nw_audit_free(&audit);
}

Test(results_audit, nvlink_by_topology_counts_switched_and_direct_bundles_right)
{
    static const struct {
        double link_gb_per_s;
        unsigned gaps;
        nw_audit_verdict verdict;
        double ceiling_gb_per_s;
    } rows[] = {
        {450, 0, NW_AUDIT_MET, 450},                        /* whole, by the links that are up */
        {300, 0, NW_AUDIT_SHORT, 300},                      /* 6 of 18 links are down */
        {0, 0, NW_AUDIT_SHORT, 0},                          /* none is up */
        {0, NW_TOPO_NO_NVLINK, NW_AUDIT_NOT_MEASURED, 450}, /* unknown, not absent */
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nw_topo topo, *list[] = {&topo};
        struct nw_topo_node nodes[8];
        struct nw_audit audit;
        struct nw_topo_link links[3] = {
            {.a = 1, .b = 2, .kind = NW_LINK_NVLINK, .bytes_per_s = rows[i].link_gb_per_s * 1e9}};

        fill_topo(&topo, nodes);
        topo.links = links;
        topo.link_count = rows[i].link_gb_per_s > 0;
        topo.gaps = rows[i].gaps;
        make(NVLINK_900, NULL, list, 1, &audit);
        cr_expect_eq(row_of(&audit, "nvlink")->verdict, rows[i].verdict, "%g: %s",
                     rows[i].link_gb_per_s, row_of(&audit, "nvlink")->reason);
        cr_expect_float_eq(row_of(&audit, "nvlink")->ceiling / 1e9, rows[i].ceiling_gb_per_s, 1e-6);
        nw_audit_free(&audit);

        /* Three GPUs behind a switch: every pair shows the whole bundle. */
        nodes[3].kind = NW_NODE_GPU;
        strcpy(nodes[3].model, H100);
        links[1] = (struct nw_topo_link){
            .a = 1, .b = 3, .kind = NW_LINK_NVLINK, .bytes_per_s = rows[i].link_gb_per_s * 1e9};
        links[2] = (struct nw_topo_link){
            .a = 2, .b = 3, .kind = NW_LINK_NVLINK, .bytes_per_s = rows[i].link_gb_per_s * 1e9};
        topo.link_count = rows[i].link_gb_per_s > 0 ? 3 : 0;
        make(NVLINK_900, NULL, list, 1, &audit);
        cr_expect_float_eq(row_of(&audit, "nvlink")->ceiling / 1e9, rows[i].ceiling_gb_per_s, 1e-6,
                           "switched %g: %g", rows[i].link_gb_per_s,
                           row_of(&audit, "nvlink")->ceiling / 1e9);
        nw_audit_free(&audit);
    }
}

Test(results_audit, json_has_units_in_its_keys_and_no_number_that_was_not_measured)
{
    struct nw_results results = {0};
    struct nw_audit audit;
    json_t *json;

    add_curve(&results, &(struct curve)CURVE(H100, "all_reduce", 16, 2, 196, "a"));
    make(NICS(8, 400) "[disk]\nread_GBps=6\n", &results, NULL, 0, &audit);
    cr_assert_eq(nw_audit_to_json(&audit, &json), NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(json_integer_value(json_object_get(json, "schema")), NW_SCHEMA_VERSION);
    cr_expect_str_eq(json_string_value(json_object_get(json, "kind")), "audit");
    cr_expect_eq(json_integer_value(json_object_get(json, "short_count")), 1);
    json_t *rows = json_object_get(json, "rows"), *row = NULL, *disk = NULL;
    size_t index;
    json_t *item;

    json_array_foreach(rows, index, item)
    {
        if (strcmp(json_string_value(json_object_get(item, "key")), "network") == 0)
            row = item;
        if (strcmp(json_string_value(json_object_get(item, "key")), "disk_read") == 0)
            disk = item;
    }
    cr_assert(row != NULL && disk != NULL);
    cr_expect_float_eq(json_real_value(json_object_get(row, "quoted_bytes_per_s")), 400e9, 1);
    cr_expect_float_eq(json_real_value(json_object_get(row, "measured_bytes_per_s")), 196e9, 1e9);
    cr_expect_float_eq(json_real_value(json_object_get(row, "measured_of_quoted")), 0.49, 0.01);
    cr_expect_eq(json_array_size(json_object_get(row, "readings")), 2);
    cr_expect_gt(json_array_size(json_object_get(row, "causes")), 0);
    cr_expect_null(json_object_get(disk, "measured_bytes_per_s"));
    cr_expect_str_eq(json_string_value(json_object_get(disk, "verdict")), "not_measured");
    json_decref(json);
    nw_audit_free(&audit);
    nw_results_free(&results);
}
