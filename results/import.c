#include "results/import.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/units.h"
#include "collectives/coll.h"
#include "results/import_kit.h"
#include "results/importers.h"
#include "results/iperf3.h"
#include "results/nccltests.h"
#include "results/pairwise.h"
#include "topo/topo.h"

/* Logs are read whole; one larger than this is no log of a benchmark. */
#define MAX_LOG_BYTES (UINT64_C(4) << 30)
/* Tools are looked for here first, and in the whole file where none shows. */
#define HEAD_BYTES     ((size_t)256 << 10)
#define OTHER_BYTES    ((size_t)64 << 10) /* and further tools, in one that is read */
#define TOPOLOGY_BYTES ((size_t)16 << 20)
enum { LIKELY = 80, SURE = 100 }; /* of what recognise() says */

const struct nw_importer nw_importers[] = {
    /* before nccl-tests, whose words it has as well */
    {"all_reduce_bench", "tables of all_reduce_bench.py of the book Machine Learning Engineering",
     "all_reduce_bench's table (payload, busbw, algbw)", nw_all_reduce_bench_recognise,
     nw_all_reduce_bench_read},
    {"nccl-tests", "nccl-tests and rccl-tests: text output, or a CSV made from its table",
     "nccl-tests' columns algbw and busbw, its option line (nThread, minBytes) or list of ranks",
     nw_nt_recognise, nw_nt_read},
    {"nccl-tests-json", "nccl-tests' JSON (-J)", "nccl-tests' JSON (out_of_place, bus_bw)",
     nw_nccltests_json_recognise, nw_nccltests_json_read},
    {"iperf3", "iperf3's JSON (-J, --json-stream) and text",
     "iperf3's JSON or its sender and receiver lines", nw_iperf3_recognise, nw_iperf3_read},
    {"pairwise", "a CSV of nccl-tests over pairs of nodes: test, nodes, avg_bus_bw_GBs",
     "a CSV's header with test, nodes and avg_bus_bw_GBs", nw_pairwise_recognise, nw_pairwise_read},
    {"nvbandwidth", "nvbandwidth's text and JSON (-j)",
     "nvbandwidth's version, or its titles (memcpy CE CPU(row) -> GPU(column))",
     nw_nvbandwidth_recognise, nw_nvbandwidth_read},
    {"p2pBandwidthLatencyTest", "p2pBandwidthLatencyTest of NVIDIA's CUDA samples",
     "p2pBandwidthLatencyTest's titles (P2P=Enabled) or D\\D matrices", nw_p2p_recognise,
     nw_p2p_read},
    {"perftest", "ib_write_bw, ib_read_lat and the like: text and --out_json",
     "perftest's columns (BW average, t_typical) or test_info", nw_perftest_recognise,
     nw_perftest_read},
    {"osu", "the OSU micro-benchmarks: osu_bw, osu_allreduce and the like", "\"# OSU MPI\" titles",
     nw_osu_recognise, nw_osu_read},
    {"imb", "the Intel MPI Benchmarks", "\"# Benchmarking\" titles of IMB", nw_imb_recognise,
     nw_imb_read},
    {"hccl_test", "hccl_test of Ascend: all_reduce_test and the like",
     "hccl_test's columns (data_size, aveg_time, alg_bandwidth)", nw_hccl_recognise, nw_hccl_read},
    {"gpu-burn", "gpu-burn's text", "gpu-burn's progress (proc'd, Gflop/s)", nw_gpu_burn_recognise,
     nw_gpu_burn_read},
    {"fio", "fio's JSON (--output-format=json)", "fio's version and jobs in JSON", nw_fio_recognise,
     nw_fio_read},
    {NULL, NULL, NULL, NULL, NULL},
};

/* Files people try that hold no table, and what to give instead. */
static const struct {
    const char *marker, *what;
} known_others[] = {
    {"\x1f\x8b", "is compressed (gzip); unpack it first"},
    {"\x28\xb5\x2f\xfd", "is compressed (zstd); unpack it first"},
    {"\xff\xfe", "is UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8"},
};
static const struct {
    const char *marker, *what;
} known_texts[] = {
    {"Avg bus bandwidth is", "only quotes an average bus bandwidth, without sizes, times or the "
                             "collective; import nccl-tests' own output"},
    {"FAILURE SUMMARY", "is a list of failed tests, without results; import the logs it names"},
    {"\"kind\":\"context\"", "is a results file already; use it as it is"},
    {"bits/sec", "is iperf's text; import its JSON: iperf3 -J"},
};

static size_t line_of(const char *data, const char *at)
{
    size_t line = 1;

    while ((data = memchr(data, '\n', (size_t)(at - data))) != NULL) {
        line++;
        data++;
    }
    return line;
}

static nw_rc refuse_unknown(const char *data, size_t length, const char *path)
{
    char sought[2000] = "";
    size_t used = 0;

    for (const struct nw_importer *importer = nw_importers; importer->name != NULL; importer++) {
        const bool last = importer[1].name == NULL;

        used += (size_t)snprintf(sought + used, sizeof sought - used, "%s%s",
                                 importer == nw_importers ? ""
                                 : last                   ? "; and "
                                                          : "; ",
                                 importer->looks_for);
        if (used >= sizeof sought)
            break;
    }
    return nw_fail(NW_EUSAGE,
                   "%s: is not a log that can be imported; looked in its %zu lines for %s", path,
                   line_of(data, data + length), sought);
}

/* What describes a machine is no measurement, but read elsewhere. */
static nw_rc refuse_topology(const char *data, size_t length, const char *path)
{
    const size_t head = length < TOPOLOGY_BYTES ? length : TOPOLOGY_BYTES;
    char *copy = malloc(head + 1); /* the readers count on a NUL */
    const struct nw_topo_format *format = nw_topo_formats;
    size_t blank = 0;

    if (copy == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for %zu bytes", path, head);
    memcpy(copy, data, head);
    copy[head] = '\0';
    blank = strspn(copy, " \t\r\n");
    while (format->name != NULL && !format->recognise(copy + blank, head - blank))
        format++;
    free(copy);
    if (format->name == NULL)
        return refuse_unknown(data, length, path);
    return nw_fail(NW_EUSAGE,
                   "%s: has no measurement: it describes a machine (%s); nodeworth topo --from, "
                   "audit and check read it",
                   path, format->title);
}

static nw_rc refuse(const char *data, size_t length, const char *path)
{
    for (size_t i = 0; i < sizeof known_others / sizeof known_others[0]; i++) {
        const size_t marker = strlen(known_others[i].marker);

        if (length >= marker && memcmp(data, known_others[i].marker, marker) == 0)
            return nw_fail(NW_EUSAGE, "%s: %s", path, known_others[i].what);
    }
    if (memchr(data, '\0', length) != NULL)
        return nw_fail(NW_EUSAGE, "%s: is a binary file, not a log", path);
    for (size_t i = 0; i < sizeof known_texts / sizeof known_texts[0]; i++) {
        const char *at = memmem(data, length, known_texts[i].marker, strlen(known_texts[i].marker));

        if (at != NULL)
            return nw_fail(NW_EUSAGE, "%s:%zu: %s", path, line_of(data, at), known_texts[i].what);
    }
    return refuse_topology(data, length, path);
}

/* The surest one; NULL: none knows it. */
static const struct nw_importer *importer_of(const char *data, size_t length)
{
    const struct nw_importer *best = NULL;
    int most = 0;

    for (const struct nw_importer *importer = nw_importers; importer->name != NULL && most < SURE;
         importer++) {
        const int score = importer->recognise(data, length);

        if (score > most) {
            most = score;
            best = importer;
        }
    }
    return best;
}

/* Logs of several tools behind each other: one of them is read. */
static nw_rc tell_other_tools(const struct nw_importer *read, const char *data, size_t length,
                              const char *path, struct nw_results *results)
{
    const size_t head = length < OTHER_BYTES ? length : OTHER_BYTES;

    for (const struct nw_importer *other = nw_importers; other->name != NULL; other++)
        if (other != read && other->recognise(data, head) >= LIKELY)
            NW_TRY(nw_findings_add(
                &results->runs[results->run_count - 1].context.findings, NW_FINDING_WARN,
                "other-tool", path, "cut its part into a file of its own and import that as well",
                "the file has output of %s as well, which was not read here", other->name));
    return NW_OK;
}

nw_rc nw_import_data_as(const char *data, size_t length, const char *path,
                        const struct nw_import_options *options, struct nw_results *results)
{
    const struct nw_importer *best = NULL;
    const size_t runs_before = results->run_count;

    if (length == 0)
        return nw_fail(
            NW_EUSAGE,
            "%s: is empty; expected the output of a benchmark (nodeworth list importers)", path);
    best = importer_of(data, length < HEAD_BYTES ? length : HEAD_BYTES);
    if (best == NULL && length > HEAD_BYTES)
        best = importer_of(data, length);
    if (best == NULL)
        return refuse(data, length, path);
    const nw_rc rc = best->read(data, length, path, options, results);

    if (rc != NW_OK)
        nw_results_cut(results, runs_before);
    if (rc != NW_OK)
        return rc;
    /* Text about logs has their words, but no run. */
    if (results->run_count == runs_before)
        return refuse(data, length, path);
    return tell_other_tools(best, data, length, path, results);
}

nw_rc nw_import_file_as(const char *path, const struct nw_import_options *options,
                        struct nw_results *results)
{
    char *data;
    size_t length;

    NW_TRY(nw_file_read(path, MAX_LOG_BYTES, &data, &length));
    const nw_rc rc =
        nw_import_data_as(data, length, strcmp(path, "-") == 0 ? "stdin" : path, options, results);

    free(data);
    return rc;
}

nw_rc nw_import_data(const char *data, size_t length, const char *path, struct nw_results *results)
{
    return nw_import_data_as(data, length, path, NULL, results);
}

nw_rc nw_import_file(const char *path, struct nw_results *results)
{
    return nw_import_file_as(path, NULL, results);
}
