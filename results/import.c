#include "results/import.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/units.h"
#include "collectives/coll.h"
#include "results/iperf3.h"
#include "results/nccltests.h"
#include "results/pairwise.h"

/* Logs are read whole; one larger than this is no log of a benchmark. */
#define MAX_LOG_BYTES (UINT64_C(4) << 30)

const struct nw_importer nw_importers[] = {
    {"nccl-tests", "nccl-tests and rccl-tests: text output, or a CSV made from its table",
     nw_nt_recognise, nw_nt_read},
    {"iperf3", "iperf3's JSON (-J, --json-stream)", nw_iperf3_recognise, nw_iperf3_read},
    {"pairwise", "a CSV of nccl-tests over pairs of nodes: test, nodes, avg_bus_bw_GBs",
     nw_pairwise_recognise, nw_pairwise_read},
    {NULL, NULL, NULL, NULL},
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
    {"\"nccl_tests_version\"", "is nccl-tests' JSON; import its text output"},
    {"# OSU MPI", "is a log of the OSU benchmarks, which are not read yet"},
    {"Intel(R) MPI Benchmarks", "is a log of the Intel MPI Benchmarks, which are not read yet"},
    {"nvbandwidth Version", "is a log of nvbandwidth, which is not read yet"},
    {"bits/sec", "is iperf's text; import its JSON: iperf3 -J"},
    {"BW average[", "is a log of perftest, which is not read yet"},
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
    return nw_fail(
        NW_EUSAGE,
        "%s: is not a log that can be imported; looked for nccl-tests' table (a line with "
        "size, count, type, time, algbw, busbw), its option line (nThread, minBytes), "
        "its list of ranks, rows of the table, and for iperf3's JSON; found none in %zu lines",
        path, line_of(data, data + length));
}

nw_rc nw_import_data_as(const char *data, size_t length, const char *path,
                        const struct nw_import_options *options, struct nw_results *results)
{
    const struct nw_importer *best = NULL;
    const size_t runs_before = results->run_count;
    int most = 0;

    if (length == 0)
        return nw_fail(NW_EUSAGE,
                       "%s: is empty; expected the output of nccl-tests, or of iperf3 -J", path);
    for (const struct nw_importer *importer = nw_importers; importer->name != NULL; importer++) {
        const int score = importer->recognise(data, length);

        if (score > most) {
            most = score;
            best = importer;
        }
    }
    if (best == NULL)
        return refuse(data, length, path);
    const nw_rc rc = best->read(data, length, path, options, results);

    if (rc != NW_OK)
        nw_results_cut(results, runs_before);
    /* Text about logs has their words, but no run. */
    return rc == NW_OK && results->run_count == runs_before ? refuse(data, length, path) : rc;
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
