/* RDMA is quoted: what TCP reaches between the same hosts says whether it is RDMA that runs. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "results/audit.h"
#include "results/import.h"

/* 12.5 GB/s */
#define QUOTE    "[gpu]\ncount=8\n[network]\nrdma=yes\nnic_count=1\nnic_gbps=100\n"
#define TWO_NICS "[gpu]\ncount=8\n[network]\nrdma=yes\nnic_count=2\nnic_gbps=50\n"

static void add(struct nw_run *run, const char *case_name, const char *collective, const char *lane,
                double gb_per_s, int ranks)
{
    struct nw_record *record = nw_run_new_record(run);
    const bool streams = ranks == 2;

    snprintf(record->case_name, sizeof record->case_name, "%s", case_name);
    snprintf(record->collective, sizeof record->collective, "%s", collective);
    snprintf(record->lane, sizeof record->lane, "%s", lane);
    snprintf(record->dtype, sizeof record->dtype, "float");
    record->rank_count = ranks;
    record->host_count = 2;
    record->bytes = UINT64_C(4) << 30;
    record->wrong_elements = 0;
    record->busbw_bytes_per_s = gb_per_s * 1e9;
    record->algbw_bytes_per_s = gb_per_s * (streams ? 1e9 : 8e9 / 15);
    record->time_ns = nw_stats_single((double)record->bytes / record->algbw_bytes_per_s * 1e9);
    if (streams) {
        record->stream_count = 4;
        record->peer_a = 0;
        record->peer_b = 8;
        snprintf(record->host_a, sizeof record->host_a, "a0");
        snprintf(record->host_b, sizeof record->host_b, "a1");
    }
}

static struct nw_run *add_run(struct nw_results *results, double all_reduce)
{
    struct nw_run *run = nw_results_add_run(results);

    snprintf(run->context.tool, sizeof run->context.tool, "nodeworth");
    snprintf(run->context.backend, sizeof run->context.backend, "nccl");
    snprintf(run->context.gpu_model, sizeof run->context.gpu_model, "NVIDIA H100 80GB HBM3");
    run->context.rank_count = 16;
    run->context.host_count = 2;
    run->context.hosts = calloc(2, sizeof *run->context.hosts);
    for (int i = 0; i < 2; i++) {
        snprintf(run->context.hosts[i].name, sizeof run->context.hosts[i].name, "a%d", i);
        run->context.hosts[i].rank_count = 8;
        run->context.hosts[i].gpu_count = 8;
    }
    add(run, "coll", "all_gather", "auto", all_reduce, 16);
    return run;
}

static const struct nw_audit_row *network(const struct nw_audit *audit)
{
    for (size_t i = 0; i < audit->row_count; i++)
        if (strcmp(audit->rows[i].key, "network") == 0)
            return &audit->rows[i];
    cr_assert_fail("no row network");
    return NULL;
}

/* The first cause's text; "" without. */
static const char *first_cause(const struct nw_audit *audit)
{
    const struct nw_findings *causes = &network(audit)->causes;

    return causes->count > 0 ? causes->items[0].text : "";
}

static void make(const struct nw_results *results, const char *text, struct nw_audit *audit)
{
    struct nw_quote quote;

    cr_assert_eq(nw_quote_parse(text, strlen(text), "q.ini", &quote), NW_OK);
    cr_assert_eq(
        nw_audit_make(&(struct nw_audit_input){.quote = &quote, .results = results}, audit), NW_OK,
        "%s", nw_last_error()->text);
}

#define IPERF(bits)                                                                                \
    "{\"start\":{\"version\":\"iperf 3.12\",\"system_info\":\"Linux a0 "                           \
    "6.1\",\"connecting_to\":{\"host\":\"10.0.0.2\"},"                                             \
    "\"test_start\":{\"protocol\":\"TCP\",\"num_streams\":4}},\"intervals\":[],\"end\":{"          \
    "\"sum_received\":{\"bytes\":1e10,\"seconds\":10,\"bits_per_second\":" #bits "}}}"

Test(results_audit_tcp, tcp_runs_where_the_collectives_are_as_fast_as_tcp_and_only_there)
{
    static const struct {
        double reached, sockets, lane, verbs; /* GB/s; 0: not measured */
        const char *iperf, *network;
        nw_audit_verdict verdict;
        const char *cause; /* begins so */
        const char *says;  /* has this */
    } rows[] = {
        {1.2, 1.3, 0, 0, NULL, "", NW_AUDIT_SHORT,
         "RDMA is quoted, TCP is what runs: all_gather reaches 1.20 GB/s",
         "plain TCP sockets (a0 to a1, 4 connections) 1.30, and 12.5 are sold"},
        {1.2, 1.3, 0, 11.8, NULL, "", NW_AUDIT_SHORT, "RDMA is quoted, TCP is what runs",
         "RDMA itself reaches 11.8 GB/s over one NIC, and is not used"},
        {1.2, 0, 1.19, 0, NULL, "", NW_AUDIT_SHORT, "RDMA is quoted, TCP is what runs",
         "the same in the lane tcp, sockets only, 1.19"},
        {2.2, 0, 0, 0, IPERF(19.2e9), "", NW_AUDIT_SHORT, "RDMA is quoted, TCP is what runs",
         "iperf3 over TCP (i.json:1) 2.40"},
        {1.2, 0, 0, 0, NULL, "Socket", NW_AUDIT_SHORT, "RDMA is quoted, TCP is what runs",
         "NCCL itself says NET/Socket"},
        /* as slow without any control: supposed, as ever */
        {1.2, 0, 0, 0, NULL, "", NW_AUDIT_SHORT, "TCP sockets are used instead of RDMA", ""},
        /* above TCP: not sockets */
        {1.2, 0.5, 0, 0, NULL, "", NW_AUDIT_SHORT, "GPUDirect RDMA is off", ""},
        {6.2, 2.4, 0, 0, NULL, "", NW_AUDIT_SHORT, "GPUDirect RDMA is off", ""},
        /* below what TCP carries: not the wire */
        {0.4, 1.3, 0, 0, NULL, "", NW_AUDIT_SHORT, "all_gather reaches 0.400 GB/s",
         "the wire carries more than that even without RDMA"},
        /* TCP as fast as what was sold tells nothing */
        {9.5, 11.5, 0, 0, NULL, "", NW_AUDIT_SHORT, "a NIC is down", ""},
        {12, 11.5, 0, 0, NULL, "", NW_AUDIT_MET, "", ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_results results = {0};
        struct nw_run *run = add_run(&results, rows[i].reached);
        struct nw_audit audit;

        snprintf(run->context.network, sizeof run->context.network, "%s", rows[i].network);
        if (rows[i].sockets > 0)
            add(run, "tcp", "stream", "tcp", rows[i].sockets, 2);
        if (rows[i].lane > 0)
            add(run, "coll", "all_gather", "tcp", rows[i].lane, 16);
        if (rows[i].verbs > 0)
            add(run, "nic", "write", "rdma", rows[i].verbs, 2);
        if (rows[i].iperf != NULL)
            cr_assert_eq(nw_import_data(rows[i].iperf, strlen(rows[i].iperf), "i.json", &results),
                         NW_OK);
        make(&results, QUOTE, &audit);
        cr_expect_eq(network(&audit)->verdict, rows[i].verdict, "row %zu: %s", i,
                     network(&audit)->reason);
        cr_expect(strncmp(first_cause(&audit), rows[i].cause, strlen(rows[i].cause)) == 0,
                  "row %zu: \"%s\"", i, first_cause(&audit));
        cr_expect_not_null(strstr(first_cause(&audit), rows[i].says), "row %zu: \"%s\"", i,
                           first_cause(&audit));
        nw_audit_free(&audit);
        nw_results_free(&results);
    }
}

Test(results_audit_tcp, other_hosts_udp_and_wrong_data_are_no_control)
{
    for (int kind = 0; kind < 5; kind++) {
        struct nw_results results = {0};
        struct nw_run *run = add_run(&results, 1.2);
        struct nw_audit audit;

        if (kind == 4) { /* iperf3 between hosts that are none of ours */
            static const char *const other =
                "{\"start\":{\"version\":\"iperf 3.12\",\"system_info\":\"Linux x9 "
                "6.1\",\"connecting_to\":{\"host\":\"10.9.0.2\"},\"test_start\":{\"protocol\":"
                "\"TCP\",\"num_streams\":4}},\"intervals\":[],\"end\":{\"sum_received\":{\"bytes\":"
                "1e10,\"seconds\":10,\"bits_per_second\":1.04e10}}}";

            cr_assert_eq(nw_import_data(other, strlen(other), "i.json", &results), NW_OK);
            run = &results.runs[0];
        } else
            add(run, "tcp", kind == 0 ? "latency" : "stream", kind == 1 ? "udp" : "tcp", 1.3, 2);
        if (kind == 2)
            run->records[1].wrong_elements = 3;
        if (kind == 3)
            snprintf(run->records[1].host_b, sizeof run->records[1].host_b, "b7");
        make(&results, QUOTE, &audit);
        cr_expect_str_eq(first_cause(&audit), "TCP sockets are used instead of RDMA", "kind %d",
                         kind);
        nw_audit_free(&audit);
        nw_results_free(&results);
    }
}

Test(results_audit_tcp, what_nccl_says_and_several_interfaces_are_minded)
{
    static const struct {
        const char *quote, *network, *lane; /* of the collective */
        double sockets, control_lane; /* GB/s, beside 1.2 of the collective; 0: not measured */
        const char *cause, *reason;   /* cause: begins so; reason: has this */
    } rows[] = {
        {QUOTE, "IB", "auto", 1.4, 0, "", "it is not TCP that runs, NCCL itself says NET/IB"},
        {QUOTE, "AWS Libfabric", "auto", 0, 1.5, "", "NCCL itself says NET/AWS Libfabric"},
        {QUOTE, "", "rdma", 1.4, 0, "", "the lane rdma takes no sockets"},
        {QUOTE, "Socket", "rdma", 1.4, 0, "", "the lane rdma takes no sockets"},
        {QUOTE, "IB", "auto", 4.5, 0, "all_gather reaches 1.20 GB/s", ""},
        /* one interface carries 1.0; two may carry 1.2 */
        {QUOTE, "", "auto", 1.0, 0, "",
         "plain TCP sockets (a0 to a1, 4 connections) 1.00: it is not TCP"},
        {TWO_NICS, "", "auto", 1.0, 0, "TCP sockets are used instead of RDMA", ""},
        {TWO_NICS, "", "auto", 0.5, 0, "", "it is not TCP that runs"},
        /* the lane takes all interfaces as the collective does */
        {TWO_NICS, "", "auto", 0, 1.0, "", "it is not TCP that runs"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_results results = {0};
        struct nw_run *run = add_run(&results, 1.2);
        struct nw_audit audit;

        snprintf(run->context.network, sizeof run->context.network, "%s", rows[i].network);
        snprintf(run->records[0].lane, sizeof run->records[0].lane, "%s", rows[i].lane);
        if (rows[i].sockets > 0)
            add(run, "tcp", "stream", "tcp", rows[i].sockets, 2);
        if (rows[i].control_lane > 0)
            add(run, "coll", "all_gather", "tcp", rows[i].control_lane, 16);
        make(&results, rows[i].quote, &audit);
        cr_expect(strncmp(first_cause(&audit), rows[i].cause, strlen(rows[i].cause)) == 0,
                  "row %zu: \"%s\"", i, first_cause(&audit));
        cr_expect(rows[i].cause[0] != '\0' || strstr(first_cause(&audit), "TCP") == NULL,
                  "row %zu: \"%s\"", i, first_cause(&audit));
        cr_expect_not_null(strstr(network(&audit)->reason, rows[i].reason), "row %zu: \"%s\"", i,
                           network(&audit)->reason);
        nw_audit_free(&audit);
        nw_results_free(&results);
    }
}
