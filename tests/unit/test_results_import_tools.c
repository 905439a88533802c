/* Logs of tools other than nccl-tests and their right reading, as noted when they were collected
 * (tests/logs/SOURCES.tsv), not what the importers say. Files that are not copied to tests/logs are
 * read from ../shared, and skipped where that is absent. */
#include <math.h>

#include "base/io.h"
#include "import_support.h"

#define OSU "osu-micro-benchmarks"
#define IMB "intel-mpi-benchmarks"

static const struct reading {
    const char *file, *tool;
    size_t runs, records;
    const char *codes; /* of all findings of all runs, sorted */
} readings[] = {
    {"nvbandwidth/mlengineering-excerpt.txt", "nvbandwidth", 1, 4, "run-incomplete size-assumed"},
    {"nvbandwidth/readme-excerpt-d2d-write.txt", "nvbandwidth", 1, 56,
     "run-incomplete size-assumed"},
    {"nvbandwidth/rtx5090x4-v08.json", "nvbandwidth", 1, 72, "size-assumed tests-waived"},
    {"nvbandwidth/superbench-gh200-v06.log", "nvbandwidth", 1, 21,
     "columns-disagree size-assumed tests-waived"},
    {"nvbandwidth/t4x4-list-then-run.txt", "nvbandwidth", 1, 0, "no-result"},
    {"nvbandwidth/t4x4.json", "nvbandwidth", 1, 16, "size-assumed"},
    {"p2p/a100x8-unidir-excerpt.txt", "p2pBandwidthLatencyTest", 1, 64,
     "run-incomplete size-assumed"},
    {"p2p/gb200x4-unidir-excerpt.txt", "p2pBandwidthLatencyTest", 1, 16,
     "run-incomplete size-assumed"},
    {"p2p/mixed-4090-5090-a6000-3090-header.txt", "p2pBandwidthLatencyTest", 1, 0,
     "no-result p2p-off"},
    {"p2p/mixed-pro6000-5090-6gpu.txt", "p2pBandwidthLatencyTest", 1, 66,
     "p2p-slow run-incomplete size-assumed"},
    {"p2p/rtx3090-x8-p2p-blocked.txt", "p2pBandwidthLatencyTest", 1, 105,
     "p2p-off run-incomplete size-assumed"},
    {"p2p/rtx6000ada-x2-full.txt", "p2pBandwidthLatencyTest", 1, 14, "run-incomplete size-assumed"},
    {"p2p/rtx6000ada-x4-full.txt", "p2pBandwidthLatencyTest", 1, 76, "size-assumed warm-up"},
    {"p2p/rtx6000pro-x8-bidir-acs-off.txt", "p2pBandwidthLatencyTest", 1, 56,
     "direction-derived run-incomplete size-assumed"},
    {"perftest/aks-ib-read-bw-gbits.log", "perftest", 1, 23, "direction-unknown host-memory"},
    {"perftest/aks-ib-read-lat.log", "perftest", 1, 1, ""},
    {"perftest/deepops-roce-100g-cpufreq.log", "perftest", 1, 1,
     "cpu-frequency few-iterations host-memory"},
    {"perftest/dgx-spark-ib-write-bw-rail1.log", "perftest", 1, 6, "host-memory mtu-small"},
    {"perftest/ib-read-lat-cpufreq-warnings.log", "perftest", 1, 1, "cpu-frequency mtu-small"},
    {"perftest/ib-send-bw-arm-case1.log", "perftest", 1, 1,
     "direction-unknown few-iterations host-memory"},
    {"perftest/ib-write-bw-200g-and-lat.log", "perftest", 2, 3, "columns-disagree host-memory"},
    {"perftest/ib-write-bw-bidir-cut-to-half.log", "perftest", 1, 1,
     "both-ways cpu-frequency host-memory"},
    {"perftest/ib-write-bw-loopback-8M.log", "perftest", 2, 2, "host-memory loopback"},
    {"perftest/ionic-ib-write-bw-4qp-1.log", "perftest", 1, 23, "both-ways host-memory"},
    {"perftest/ionic-ib-write-bw-4qp-3.log", "perftest", 1, 23, "both-ways"},
    {"perftest/ionic-ib-write-bw-4qp-4.log", "perftest", 1, 23, "both-ways"},
    {"perftest/perftest-connect-refused.log", "perftest", 1, 0, "no-result run-failed"},
    {"perftest/perftest-min-bw-column.log", "perftest", 1, 0, "no-result"},
    {"perftest/spark-ring-bidir-degraded.log", "perftest", 1, 1, "both-ways host-memory"},
    {"perftest/spark-ring-bidir-healthy.log", "perftest", 1, 1, "both-ways host-memory"},
    {"perftest-write-bw-mib.json", "perftest", 1, 1, "few-iterations host-memory mtu-small"},
    {"osu/cscs-osu-alltoall.txt", OSU, 1, 21, ""},
    {"osu/cscs-osu-bw-gpu-D-D-nocxi.txt", OSU, 1, 23, ""},
    {"osu/cscs-osu-bw-intranode-gpu.txt", OSU, 1, 23, ""},
    {"osu/cscs-osu-bw-wo-cxi.txt", OSU, 1, 23, ""},
    {"osu/cscs-osu-iallreduce-cuda.txt", OSU, 1, 0, "no-result run-failed"},
    {"osu/pkb-osu-allgather.txt", OSU, 1, 2, "ranks-uneven-time"},
    {"osu/pkb-osu-allreduce.txt", OSU, 1, 2, "ranks-uneven-time"},
    {"osu/pkb-osu-barrier.txt", OSU, 1, 1, ""},
    {"osu/pkb-osu-latency.txt", OSU, 1, 2, ""},
    {"osu/pkb-osu-mbw_mr.txt", OSU, 1, 2, ""},
    {"osu/pkb-osu-put_bw.txt", OSU, 1, 2, ""},
    {"osu/rocm-osu-bw-excerpt.txt", OSU, 1, 6, ""},
    {"imb/azurehpc-allreduce-waagent-off.txt", IMB, 1, 3, ""},
    {"imb/azurehpc-pingpong-session.txt", IMB, 1, 24, ""},
    {"imb/pkb-imb-allgather.txt", IMB, 7, 7, "multi-groups"},
    {"imb/pkb-imb-barrier.txt", IMB, 2, 2, "multi-groups"},
    {"imb/pkb-imb-pingpong.txt", IMB, 1, 2, "multi-groups"},
    {"imb/pkb-imb-reduce.txt", IMB, 1, 2, ""},
    {"iperf/iperf3-3.0.11-1g.json", "iperf3", 1, 1, ""},
    {"iperf/iperf3-3.6-60s.json", "iperf3", 1, 1, "rate-unsteady"},
    {"iperf/iperf3-error-refused.json", "iperf3", 1, 0, "run-failed"},
    {"iperf3-3.12-two-streams.txt", "iperf3", 1, 1, "loopback"},
    {"iperf3-3.12-refused.txt", "iperf3", 1, 0, "run-failed"},
    {"hccl-allreduce-8.txt", "hccl_test", 1, 4, "algorithm-bandwidth"},
    {"all-reduce-bench-h100x4.txt", "all_reduce_bench", 1, 20, ""},
    {"all-reduce-bench-h200x8-table.txt", "all_reduce_bench", 1, 20, "ranks-derived"},
    {"gpu-burn-a6000.txt", "gpu-burn", 1, 1, ""},
    {"gpu-burn-t4-faulty.txt", "gpu-burn", 1, 1, "gemm-drift wrong-data"},
    {"fio-3.33-read.json", "fio", 1, 1, "page-cache short-run"},
    {"fio-3.33-randread.json", "fio", 1, 1, "page-cache short-run"},
    {"nccl-tests-J-2x8.json", "nccl-tests", 1, 6, "average-unused"},
};

/* The record of that identity (bytes 0, peers -1: any; of several the last) has that number. */
static const struct value {
    const char *file, *case_name, *collective, *lane;
    uint64_t bytes;
    int a, b;
    double rate; /* one way, bytes/s; NAN: time_ns counts */
    double time_ns;
} values[] = {
    {"nvbandwidth/mlengineering-excerpt.txt", "h2d", "copy", "ce", 0, 0, -1, 359.05e9, NAN},
    {"nvbandwidth/mlengineering-excerpt.txt", "d2h", "copy", "ce", 0, 0, -1, 377.15e9, NAN},
    {"nvbandwidth/mlengineering-excerpt.txt", "h2d", "copy_both", "ce", 0, 0, -1, 175.38e9, NAN},
    {"nvbandwidth/readme-excerpt-d2d-write.txt", "p2p", "write", "ce", 0, 7, 5, 276.57e9, NAN},
    {"nvbandwidth/rtx5090x4-v08.json", "h2d", "copy", "ce", 0, 0, -1, 56.3685e9, NAN},
    {"nvbandwidth/rtx5090x4-v08.json", "h2d", "copy", "sm", 0, 3, -1, 51.4444e9, NAN},
    {"nvbandwidth/superbench-gh200-v06.log", "h2d", "load", "sm", 0, 0, -1, NAN, 772.58},
    {"nvbandwidth/superbench-gh200-v06.log", "d2h", "copy_both", "ce", 0, 0, -1, 187.00e9, NAN},
    {"nvbandwidth/t4x4.json", "h2d", "copy", "ce", 0, 1, -1, 12.3366e9, NAN},
    {"p2p/a100x8-unidir-excerpt.txt", "p2p", "write", "ce", 0, 2, 1, 276.90e9, NAN},
    {"p2p/a100x8-unidir-excerpt.txt", "p2p", "write", "ce", 0, 5, 3, 270.84e9, NAN},
    {"p2p/gb200x4-unidir-excerpt.txt", "p2p", "write", "ce", 0, 1, 0, 743.89e9, NAN},
    {"p2p/gb200x4-unidir-excerpt.txt", "d2d", "copy", "ce", 0, 1, -1, 5820.72e9 / 2, NAN},
    {"p2p/mixed-pro6000-5090-6gpu.txt", "p2p", "copy_both", "ce", 0, 3, 4, 99.09e9 / 2, NAN},
    {"p2p/rtx3090-x8-p2p-blocked.txt", "p2p", "copy_both", "staged", 0, 0, 1, 6.11e9 / 2, NAN},
    {"p2p/rtx6000ada-x4-full.txt", "p2p", "write", "staged", 0, 0, 1, 22.23e9, NAN},
    {"p2p/rtx6000ada-x4-full.txt", "p2p", "write", "ce", 0, 1, 0, 26.32e9, NAN},
    {"p2p/rtx6000ada-x4-full.txt", "p2p", "copy_both", "ce", 0, 1, 2, 52.12e9 / 2, NAN},
    {"p2p/rtx6000ada-x4-full.txt", "p2p", "latency", "ce", 16, 1, 0, NAN, 1210},
    {"p2p/rtx6000ada-x4-full.txt", "d2d", "copy", "ce", 0, 0, -1, 802.93e9 / 2, NAN},
    {"p2p/rtx6000pro-x8-bidir-acs-off.txt", "p2p", "copy_both", "ce", 0, 5, 2, 47e9, NAN},
    {"perftest/aks-ib-read-bw-gbits.log", "nic", "read", "verbs", 8388608, -1, -1, 197.48e9 / 8,
     NAN},
    {"perftest/aks-ib-read-bw-gbits.log", "nic", "read", "verbs", 2, -1, -1, 0.045291e9 / 8, NAN},
    {"perftest/aks-ib-read-lat.log", "nic", "read_latency", "verbs", 2, -1, -1, NAN, 5490},
    {"perftest/deepops-roce-100g-cpufreq.log", "nic", "write", "verbs", 65536, -1, -1, 92.40e9 / 8,
     NAN},
    {"perftest/dgx-spark-ib-write-bw-rail1.log", "nic", "write", "verbs", 65536, -1, -1,
     97.28e9 / 8, NAN},
    {"perftest/ib-read-lat-cpufreq-warnings.log", "nic", "read_latency", "verbs", 2, -1, -1, NAN,
     6740},
    {"perftest/ib-send-bw-arm-case1.log", "nic", "unknown", "verbs", 1024, -1, -1,
     5544.28 * 1048576, NAN},
    {"perftest/ib-write-bw-200g-and-lat.log", "nic", "write", "verbs", 8388608, -1, -1,
     196.92e9 / 8, NAN},
    {"perftest/ib-write-bw-200g-and-lat.log", "nic", "latency", "verbs", 2, -1, -1, NAN, 2050},
    {"perftest/ib-write-bw-bidir-cut-to-half.log", "nic", "write_both", "verbs", 65536, -1, -1,
     98.02e9 / 16, NAN},
    {"perftest/ib-write-bw-loopback-8M.log", "loopback", "write", "verbs", 8388608, -1, -1,
     24056.72 * 1048576, NAN},
    {"perftest/ionic-ib-write-bw-4qp-1.log", "nic", "write_both", "verbs", 8388608, -1, -1,
     779.21e9 / 16, NAN},
    {"perftest/ionic-ib-write-bw-4qp-3.log", "nic", "write_both", "verbs", 8388608, -1, -1,
     697.97e9 / 16, NAN},
    {"perftest/spark-ring-bidir-degraded.log", "nic", "write_both", "verbs", 1048576, -1, -1,
     118.66e9 / 16, NAN},
    {"perftest/spark-ring-bidir-healthy.log", "nic", "write_both", "verbs", 1048576, -1, -1,
     213.05e9 / 16, NAN},
    /* without a unit: 0.035668 Mpps of 65536 bytes are 2229 MiB/s, not 2229 Gb/s */
    {"perftest-write-bw-mib.json", "nic", "write", "verbs", 65536, -1, -1, 2229.27 * 1048576, NAN},
    /* sizes of a part, of 8 ranks */
    {"osu/cscs-osu-alltoall.txt", "coll", "alltoall", "auto", 8388608, -1, -1, NAN, 486890},
    {"osu/cscs-osu-alltoall.txt", "coll", "alltoall", "auto", 8, -1, -1, NAN, 22260},
    {"osu/cscs-osu-bw-gpu-D-D-nocxi.txt", "mpi", "stream", "auto", 4194304, -1, -1, 1802.75e6, NAN},
    {"osu/cscs-osu-bw-intranode-gpu.txt", "mpi", "stream", "auto", 1, -1, -1, 0.91e6, NAN},
    {"osu/cscs-osu-bw-wo-cxi.txt", "mpi", "stream", "host", 4194304, -1, -1, 1279.54e6, NAN},
    {"osu/pkb-osu-allgather.txt", "coll", "all_gather", "host", 32, -1, -1, NAN, 147700},
    {"osu/pkb-osu-allreduce.txt", "coll", "all_reduce", "host", 8, -1, -1, NAN, 118950},
    {"osu/pkb-osu-barrier.txt", "mpi", "barrier", "host", 0, -1, -1, NAN, 41140},
    {"osu/pkb-osu-latency.txt", "mpi", "latency", "host", 8, -1, -1, NAN, 25030},
    {"osu/pkb-osu-mbw_mr.txt", "mpi", "stream", "host", 8, -1, -1, 252.65e6, NAN},
    {"osu/pkb-osu-put_bw.txt", "mpi", "put", "host", 4, -1, -1, 0.68e6, NAN},
    {"osu/rocm-osu-bw-excerpt.txt", "mpi", "stream", "auto", 4194304, -1, -1, 135040.96e6, NAN},
    {"imb/azurehpc-allreduce-waagent-off.txt", "coll", "all_reduce", "host", 8, -1, -1, NAN, 19560},
    {"imb/azurehpc-allreduce-waagent-off.txt", "coll", "all_reduce", "host", 16, -1, -1, NAN,
     19430},
    {"imb/azurehpc-pingpong-session.txt", "mpi", "latency", "host", 4194304, -1, -1, 3625.31e6,
     NAN},
    {"imb/azurehpc-pingpong-session.txt", "mpi", "latency", "host", 1, -1, -1, NAN, 1970},
    {"imb/pkb-imb-allgather.txt", "coll", "all_gather", "host", 1024, -1, -1, NAN, 33800},
    {"imb/pkb-imb-allgather.txt", "coll", "all_gather", "host", 61440, -1, -1, NAN, 177070},
    {"imb/pkb-imb-barrier.txt", "mpi", "barrier", "host", 0, -1, -1, NAN, 91240},
    {"imb/pkb-imb-pingpong.txt", "mpi", "latency", "host", 2048, -1, -1, NAN, 66400},
    {"imb/pkb-imb-reduce.txt", "coll", "reduce", "host", 1024, -1, -1, NAN, 10270},
    {"iperf/iperf3-3.0.11-1g.json", "tcp", "stream", "tcp", 0, -1, -1, 934268000.0 / 8, NAN},
    {"iperf/iperf3-3.6-60s.json", "tcp", "stream", "tcp", 0, -1, -1, 17535714055.21963 / 8, NAN},
    {"iperf3-3.12-two-streams.txt", "tcp", "stream", "tcp", 0, -1, -1, 7.89e9 / 8, NAN},
    {"hccl-allreduce-8.txt", "coll", "all_reduce", "auto", 1073741824, -1, -1, 183.78658e9, NAN},
    {"all-reduce-bench-h100x4.txt", "coll", "all_reduce", "auto", UINT64_C(16) << 30, -1, -1,
     244.66e9, NAN},
    {"all-reduce-bench-h200x8-table.txt", "coll", "all_reduce", "auto", 32768, -1, -1, 0.82e9, NAN},
    {"gpu-burn-a6000.txt", "gemm", "gemm", "cublas", 16777216, 0, -1, NAN,
     2.0 * 8589934592 / 15251.5},
    {"gpu-burn-t4-faulty.txt", "gemm", "gemm", "cublas", 268435456, 0, -1, NAN,
     2.0 * 549755813888 / 3090},
    {"fio-3.33-read.json", "disk", "read", "psync", 1048576, -1, -1, 2097152000, NAN},
    {"fio-3.33-read.json", "disk", "read", "psync", 1048576, -1, -1, NAN, 181248},
    {"fio-3.33-randread.json", "disk", "random_read", "psync", 4096, -1, -1, 46863731, NAN},
    {"nccl-tests-J-2x8.json", "coll", "all_reduce", "ring", 4194304, -1, -1, 37.744018e9, NAN},
};

static const struct {
    const char *file, *says;
} refused[] = {
    {"logs/dmesg-gpu-limited-gen4-switch.txt", "describes a machine (dmesg, syslog)"},
    {"logs/dmesg-mlx5-pcie-x8-limited.txt", "describes a machine (dmesg, syslog)"},
    {"logs/gcm-learn_good.json", "describes a machine (JSON of /sys paths"},
    {"logs/gcm-learn_ib_misbound_if.json", "describes a machine (JSON of /sys paths"},
    {"logs/lspci-nvme-or-nic-x1.txt", "describes a machine (lspci"},
    {"logs/lspci-rtx6000ada-idle-gen1.txt", "describes a machine (lspci"},
    {"logs/lspci-vvv-hgx-h100-acs-on.txt", "describes a machine (lspci"},
    {"logs/syslog-ib-0flap.txt", "describes a machine (dmesg, syslog)"},
};

Test(results_import_tools, read_every_log_of_the_field_as_they_should)
{
    size_t absent = 0;

    for (size_t i = 0; i < sizeof readings / sizeof readings[0]; i++) {
        const struct reading *row = &readings[i];
        const char *path = find_field_file(row->file);
        struct nw_results results = {0};
        char codes[1000];

        if (path == NULL) {
            absent++;
            continue;
        }
        cr_expect_eq(nw_import_file(path, &results), NW_OK, "%s", nw_last_error()->text);
        codes_of(&results, codes, sizeof codes);
        cr_expect_eq(results.run_count, row->runs, "%s: %zu runs", row->file, results.run_count);
        cr_expect_eq(nw_results_record_count(&results), row->records, "%s: %zu records", row->file,
                     nw_results_record_count(&results));
        cr_expect_str_eq(codes, row->codes, "%s: findings \"%s\"", row->file, codes);
        if (results.run_count > 0)
            cr_expect_str_eq(results.runs[0].context.tool, row->tool, "%s: tool %s", row->file,
                             results.runs[0].context.tool);
        nw_results_free(&results);
    }
    if (absent > 0)
        fprintf(stderr, "not read: %zu logs that are only in ../shared, which is absent\n", absent);
}

static const struct nw_record *find_record(const struct nw_results *results,
                                           const struct value *value)
{
    const struct nw_record *found = NULL;

    for (size_t i = 0; i < results->run_count; i++)
        for (size_t k = 0; k < results->runs[i].record_count; k++) {
            const struct nw_record *record = &results->runs[i].records[k];

            if (strcmp(record->case_name, value->case_name) == 0 &&
                strcmp(record->collective, value->collective) == 0 &&
                strcmp(record->lane, value->lane) == 0 &&
                (value->bytes == 0 || record->bytes == value->bytes) &&
                (value->a < 0 || record->peer_a == value->a) &&
                (value->b < 0 || record->peer_b == value->b))
                found = record;
        }
    return found;
}

Test(results_import_tools, give_the_numbers_that_the_logs_say)
{
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const struct value *row = &values[i];
        const char *path = find_field_file(row->file);
        struct nw_results results = {0};

        if (path == NULL)
            continue;
        cr_assert_eq(nw_import_file(path, &results), NW_OK, "%s", nw_last_error()->text);
        const struct nw_record *record = find_record(&results, row);

        cr_assert_not_null(record, "%s: no %s %s %s", row->file, row->case_name, row->collective,
                           row->lane);
        if (isnan(row->rate))
            cr_expect_float_eq(record->time_ns.median, row->time_ns, 1e-9 * row->time_ns,
                               "%s: %s %s: %.17g ns", row->file, row->case_name, row->collective,
                               record->time_ns.median);
        else
            cr_expect_float_eq(record->algbw_bytes_per_s, row->rate, 1e-12 * row->rate,
                               "%s: %s %s: %.17g bytes/s", row->file, row->case_name,
                               row->collective, record->algbw_bytes_per_s);
        nw_results_free(&results);
    }
}

Test(results_import_tools, bus_bandwidth_is_made_only_of_what_is_known)
{
    static const struct {
        const char *file;
        uint64_t bytes;
        int ranks;
        double busbw; /* NAN: does not follow */
    } rows[] = {
        {"hccl-allreduce-8.txt", 1073741824, 8, 183.78658e9 * 1.75},
        {"all-reduce-bench-h100x4.txt", UINT64_C(16) << 30, 4, 366.99e9},
        {"all-reduce-bench-h200x8-table.txt", UINT64_C(16) << 30, 8, 482.26e9},
        {"osu/cscs-osu-alltoall.txt", 8388608, 8, 17228960.0 * 1000 * 7 / 8},
        {"imb/azurehpc-allreduce-waagent-off.txt", 8, 1408, 408998.0 * 2 * 1407 / 1408},
        {"nccl-tests-J-2x8.json", 4194304, 16, 70.770034e9},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *path = find_field_file(rows[i].file);
        struct nw_results results = {0};
        const struct nw_record *last = NULL;

        if (path == NULL)
            continue;
        cr_assert_eq(nw_import_file(path, &results), NW_OK, "%s", nw_last_error()->text);
        for (size_t k = 0; k < results.runs[0].record_count; k++)
            if (results.runs[0].records[k].bytes == rows[i].bytes)
                last = &results.runs[0].records[k];
        cr_assert_not_null(last, "%s", rows[i].file);
        cr_expect_eq(last->rank_count, rows[i].ranks, "%s: %d ranks", rows[i].file,
                     last->rank_count);
        cr_expect_float_eq(last->busbw_bytes_per_s, rows[i].busbw, 2e-5 * rows[i].busbw,
                           "%s: %.17g", rows[i].file, last->busbw_bytes_per_s);
        nw_results_free(&results);
    }
}

Test(results_import_tools, refuse_what_is_no_measurement_with_what_it_is)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const char *path = find_field_file(refused[i].file);
        struct nw_results results = {0};

        if (path == NULL)
            continue;
        cr_expect_eq(nw_import_file(path, &results), NW_EUSAGE, "%s was read", refused[i].file);
        cr_expect_not_null(strstr(nw_last_error()->text, refused[i].says), "%s",
                           nw_last_error()->text);
        nw_results_free(&results);
    }
}

/* --- cut anywhere --- */

static bool same_number(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b;
}

/* A record of the whole log that says the same of the same line. */
static bool stands_in(const struct nw_record *record, const struct nw_results *whole)
{
    for (size_t i = 0; i < whole->run_count; i++)
        for (size_t k = 0; k < whole->runs[i].record_count; k++) {
            const struct nw_record *other = &whole->runs[i].records[k];

            if (strcmp(record->source, other->source) == 0 &&
                strcmp(record->case_name, other->case_name) == 0 &&
                strcmp(record->collective, other->collective) == 0 &&
                record->bytes == other->bytes && record->peer_a == other->peer_a &&
                record->peer_b == other->peer_b && record->in_place == other->in_place &&
                same_number(record->time_ns.median, other->time_ns.median) &&
                same_number(record->algbw_bytes_per_s, other->algbw_bytes_per_s) &&
                same_number(record->flop_per_s, other->flop_per_s))
                return true;
        }
    return false;
}

static bool is_flagged(const struct nw_run *run)
{
    for (size_t i = 0; i < run->context.findings.count; i++)
        if (run->context.findings.items[i].severity != NW_FINDING_INFO)
            return true;
    return false;
}

static void check_cut(const char *file, size_t cut, const struct nw_results *part,
                      const struct nw_results *whole)
{
    for (size_t i = 0; i < part->run_count; i++) {
        const struct nw_run *run = &part->runs[i];

        cr_assert(run->record_count > 0 || run->context.findings.count > 0,
                  "%s cut at %zu: a run without a result does not say why", file, cut);
        for (size_t k = 0; k < run->record_count; k++)
            cr_assert(stands_in(&run->records[k], whole) || is_flagged(run),
                      "%s cut at %zu: %s: %s %s of %llu bytes, %.17g ns, is not in the whole", file,
                      cut, run->records[k].source, run->records[k].case_name,
                      run->records[k].collective, (unsigned long long)run->records[k].bytes,
                      run->records[k].time_ns.median);
    }
}

/* Longer files in larger steps, each of them with another start. */
enum { CUTS = 2500 };

static void cut_everywhere(const char *file, const char *path)
{
    struct nw_results whole = {0};
    char *data;
    size_t length;

    cr_assert_eq(nw_file_read(path, 1 << 20, &data, &length), NW_OK);
    cr_assert_eq(nw_import_data(data, length, path, &whole), NW_OK);
    for (size_t cut = 1, step = length / CUTS + 1; cut < length; cut += step) {
        struct nw_results part = {0};
        char *copy = malloc(cut); /* exact, so that a sanitizer sees a read behind it */

        cr_assert_not_null(copy);
        memcpy(copy, data, cut);
        if (nw_import_data(copy, cut, path, &part) == NW_OK)
            check_cut(file, cut, &part, &whole);
        else
            cr_assert_eq(nw_last_error()->rc, NW_EUSAGE, "%s cut at %zu", file, cut);
        free(copy);
        nw_results_free(&part);
    }
    free(data);
    nw_results_free(&whole);
}

Test(results_import_tools, a_log_cut_at_any_byte_gives_no_wrong_number_in_silence)
{
    for (size_t i = 0; i < sizeof readings / sizeof readings[0]; i++) {
        const char *path = find_field_file(readings[i].file);

        if (path != NULL)
            cut_everywhere(readings[i].file, path);
    }
}
