/* The field's logs and their right reading. Expectations are those written down beside each log
 * when it was collected (tests/logs/SOURCES.tsv says where from), not what the importer says. Logs
 * that are too large to copy are read from ../shared, and skipped where that is absent. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "results/import.h"

struct golden {
    const char *file;
    size_t runs, rows;
    int ranks, hosts; /* the most of any run; 0: not known from the log */
    const char *collectives, *gpu;
    uint64_t largest;
    double out, in; /* GB/s as printed at the largest size */
    double average; /* as printed, of the first run that has one */
    int64_t wrong;
    const char *codes; /* of all findings of all runs, sorted */
};

#define H100  "NVIDIA H100 80GB HBM3"
#define GH200 "NVIDIA GH200 120GB"
#define G(n)  (UINT64_C(n) << 30)
#define M(n)  (UINT64_C(n) << 20)

static const struct golden golden[] = {
    {"a100-sendrecv-nodevices.log", 1, 4, 0, 0, "sendrecv", "", G(1), 195.10, 195.56, NAN, 0,
     "collective-derived ranks-unknown run-incomplete"},
    {"aks-ipoib-allreduce-slow.log", 1, 16, 16, 0, "all_reduce", "", G(8), 3.15, 3.09, 1.38997, 0,
     "average-unused collective-derived maybe-sockets not-checked ranks-derived time-spike"},
    {"alltoall-v2178-fragment.log", 1, 0, 4, 1, "", H100, 0, NAN, NAN, NAN, 0, "no-result"},
    {"alps-gh200-16rank-wrong1.csv", 1, 30, 16, 0, "all_reduce", "", G(4), 92.59, 92.73, NAN, 4832,
     "collective-derived ranks-derived run-incomplete time-spike wrong-data"},
    {"alps-gh200-4rank-ok.log", 1, 30, 4, 1, "all_reduce", GH200, G(4), 338.78, 339.15, 116.529, 0,
     "average-unused"},
    {"alps-gh200-512rank-wrong4.log", 1, 30, 512, 128, "all_reduce", GH200, G(4), 82.09, 80.02,
     13.0468, 512, "average-unused exit-status time-spike wrong-data"},
    {"aws-batch-p5-rankprefix.log", 1, 32, 8, 0, "all_reduce", "", G(16), 483.05, 483.35, 156.742,
     0, "average-unused collective-derived ranks-derived time-spike"},
    {"aws-p5-2node-rankprefix-elided.log", 1, 7, 16, 0, "all_reduce", "", G(2), 437.79, 437.89,
     52.9753, 0, "average-unused collective-derived ranks-derived rows-elided size-zero"},
    {"aws-p5-tuner-320k.log", 1, 32, 16, 2, "all_reduce", H100, G(16), 486.93, 487.59, 124.343, 0,
     "average-unused collective-derived"},
    {"aws-p5en-topology-elided.log", 1, 3, 128, 0, "all_reduce", "", G(16), 369.86, 369.42, 84.0569,
     0, "average-unused collective-derived ranks-derived rows-elided time-spike"},
    {"azure-nd-allreduce-elided.log", 1, 3, 0, 0, "all_reduce", "", G(16), 936.93, 936.54, 487.265,
     0, "average-unused collective-derived columns-disagree ranks-unknown rows-elided size-zero"},
    {"coreweave-gb200-1440gpu.log", 1, 6, 1440, 0, "all_reduce", "NVIDIA GB200", G(16), 405.74,
     404.77, 297.808, 0, "average-unused collective-derived ranks-elided"},
    {"coreweave-gb200-144gpu.log", 1, 6, 144, 0, "all_reduce", "NVIDIA Graphics Device", G(16),
     810.41, 820.36, 688.487, 0, "average-unused collective-derived ranks-elided"},
    {"coreweave-gb200-72gpu.log", 1, 5, 72, 0, "all_reduce", "NVIDIA Graphics Device", G(8), 834.57,
     846.82, 745.53, 0, "average-unused collective-derived ranks-elided"},
    {"cscs-gh200-1gpu-per-node.log", 1, 8, 2, 2, "all_reduce", GH200, M(128), 22.86, 22.88, 14.9966,
     0, "average-unused"},
    {"cscs-gh200-2node-ofi.log", 1, 25, 8, 2, "all_reduce", GH200, M(128), 122.57, 123.11, 19.7866,
     0, "average-unused time-spike"},
    {"deepops-4xdgxa100-olderror.log", 1, 13, 32, 0, "all_reduce", "", G(4), 191.05, 191.56,
     113.289, 0, "average-unused collective-derived ranks-derived rounding"},
    {"deepops-netop-olderror.log", 1, 30, 16, 0, "all_reduce", "", G(4), 188.53, 188.70, 53.7098, 0,
     "average-unused collective-derived ranks-derived rounding"},
    {"deepops-roce-k8s-olderror.log", 1, 29, 16, 0, "all_reduce", "", G(2), 22.92, 22.85, 7.76739,
     0, "average-unused collective-derived ranks-derived rounding time-spike"},
    {"dstack-gcp-a3mega-hashless.log", 1, 11, 16, 0, "all_reduce", "", G(8), 683.52, 679.54,
     165.789, 0, "average-unused collective-derived ranks-derived rows-missing"},
    {"dstack-lambda-hashless.log", 1, 29, 16, 0, "all_reduce", "", G(2), 696.06, 702.91, 137.179, 0,
     "average-unused ranks-derived time-spike"},
    {"dstack-nebius-hashless.log", 1, 31, 16, 0, "all_reduce", "", G(8), 467.54, 468.46, 125.499, 0,
     "average-unused collective-derived ranks-derived time-spike"},
    {"gke-a3high-alltoall-ncclinfo.log", 1, 10, 16, 0, "alltoall", "", M(512), 70.90, 71.35,
     30.9622, 0, "average-unused collective-derived not-checked ranks-derived"},
    {"gke-flex-start-nofirstheader.log", 1, 24, 16, 0, "all_gather", "", G(8), 328.85, 335.67,
     120.248, 0, "average-unused collective-derived ranks-derived"},
    {"kube-h100-2node-kubectl.log", 1, 5, 16, 2, "all_reduce", H100, G(8), 196.52, 196.51, 194.675,
     0, "average-unused collective-derived"},
    {"nersc-shifter-1rank.log", 1, 30, 1, 1, "all_reduce", "NVIDIA A100-SXM4-40GB", G(4), NAN, NAN,
     0, 0, "average-unused one-rank"},
    {"nersc-shifter-8rank-fidebug.log", 1, 30, 8, 2, "all_reduce", "NVIDIA A100-SXM4-40GB", G(4),
     74.30, 74.40, 25.0537, 0, "average-unused"},
    {"oci-h100-2node-above-nic.log", 1, 5, 16, 2, "all_reduce", H100, G(16), 471.22, 470.75,
     464.075, 0, "average-unused collective-derived"},
    {"pair-G1-001-004-slow.log", 2, 20, 2, 2, "alltoall sendrecv", H100, G(16), 0.90, 0.84, 5.76435,
     0, "average-unused curve-falls"},
    {"pair-G8-001-004-ok.log", 2, 20, 16, 2, "alltoall sendrecv", H100, G(16), 23.59, 23.63,
     23.5064, 0, "average-unused"},
    {"panlichen-3090-4hosts-manyruns.log", 25, 25, 32, 4, "all_reduce", "NVIDIA GeForce RTX 3090",
     G(1), 4.03, NAN, 0.00223124, 0, "collective-derived maybe-sockets not-checked"},
    {"panlichen-4090x2-short.log", 8, 3, 2, 1, "unknown", "NVIDIA GeForce RTX 4090", 4096, NAN, NAN,
     0.0634673, 0, "collective-unknown no-result not-checked ranks-cut"},
    {"panlichen-4090x8-reducescatter-manyruns.log", 27, 27, 8, 1, "reduce_scatter",
     "NVIDIA GeForce RTX 4090", G(4), 2.58, NAN, 0.00131492, 0, "collective-derived not-checked"},
    {"panlichen-h800x8-allreduce-manyruns.log", 27, 27, 8, 1, "all_reduce", "NVIDIA H800", G(4),
     164.14, NAN, 0.00238365, 0, "collective-derived not-checked"},
    {"rank-lines-elided-64xh800.log", 1, 0, 64, 0, "", "NVIDIA H800", 0, NAN, NAN, NAN, 0,
     "no-result ranks-elided"},
    {"rccl-mi355-16gpu-allreduce.log", 1, 31, 16, 2, "all_reduce", "AMD Radeon Graphics", G(16),
     385.98, 385.95, 129.28, 0, "average-unused"},
    {"rccl-mi355-8gpu-allreduce.log", 1, 29, 8, 1, "all_reduce", "AMD Radeon Graphics", G(1),
     402.55, 401.90, 105.615, 0, "average-unused"},
    {"superbench-allgather-1B.log", 1, 34, 8, 1, "all_gather", "A100-SXM4-40GB", G(8), 223.39,
     230.07, 58.2651, 0, "average-unused collective-derived not-checked size-zero"},
    {"superbench-alltoall-1B.log", 1, 34, 8, 1, "alltoall", "A100-SXM4-40GB", G(8), 224.31, 226.16,
     58.6481, 0, "average-unused collective-derived not-checked size-zero"},
    {"v100-64gpu-allreduce-and-alltoall.log", 2, 4, 64, 0, "all_reduce alltoall", "", M(512), 4.32,
     4.32, 4.32178, 0,
     "average-unused collective-derived in-place-unchecked maybe-sockets ranks-derived "
     "ranks-unknown rounding"},
    {"yccl-a6000-mpirun-abort.log", 1, 0, 4, 1, "", "NVIDIA RTX A6000", 0, NAN, NAN, NAN, 0,
     "nccl-warning no-result run-failed"},
};

static const struct {
    const char *file, *says;
} refused[] = {
    {"oci-healthcheck-summary.log", ":5: only quotes an average bus bandwidth"},
    {"pairwise-failures.txt", ":2: is a list of failed tests"},
};

/* Where a log is: copied here, or in ../shared; NULL: on neither side. */
static const char *find_log(const char *file)
{
    static char path[600];
    static const char *const places[] = {NW_SOURCE_DIR "/tests/logs/%s",
                                         NW_SOURCE_DIR "/../shared/data/field/nccltests/%s"};

    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, places[i], file);
        if (access(path, R_OK) == 0)
            return path;
    }
    return NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The different texts, sorted, with blanks between. */
static void join_sorted(const char **texts, size_t count, char *joined, size_t size)
{
    joined[0] = '\0';
    qsort(texts, count, sizeof *texts, by_text);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(texts[i], texts[i - 1]) == 0)
            continue;
        if (joined[0] != '\0')
            strncat(joined, " ", size - strlen(joined) - 1);
        strncat(joined, texts[i], size - strlen(joined) - 1);
    }
}

static void check_texts(const struct golden *row, const struct nw_results *results)
{
    enum { MOST = 20000 };
    static const char *codes[MOST], *collectives[MOST];
    size_t code_count = 0, collective_count = 0;
    char joined[1000];
    const char *gpu = "";

    for (size_t i = 0; i < results->run_count; i++) {
        const struct nw_run *run = &results->runs[i];

        for (size_t k = 0; k < run->context.findings.count && code_count < MOST; k++)
            codes[code_count++] = run->context.findings.items[k].code;
        for (size_t k = 0; k < run->record_count && collective_count < MOST; k++)
            collectives[collective_count++] = run->records[k].collective;
        if (gpu[0] == '\0')
            gpu = run->context.gpu_model;
    }
    join_sorted(codes, code_count, joined, sizeof joined);
    cr_expect_str_eq(joined, row->codes, "%s: findings \"%s\"", row->file, joined);
    join_sorted(collectives, collective_count, joined, sizeof joined);
    cr_expect_str_eq(joined, row->collectives, "%s: collectives \"%s\"", row->file, joined);
    cr_expect_str_eq(gpu, row->gpu, "%s: GPU \"%s\"", row->file, gpu);
}

struct largest {
    uint64_t bytes;
    double rate[2]; /* GB/s */
};

static void check_rate(const struct golden *row, const char *place, double got, double printed)
{
    if (isnan(printed))
        cr_expect(isnan(got), "%s: %s %.17g", row->file, place, got);
    else /* half of the last printed digit, and a little for the decimal of it */
        cr_expect(fabs(got - printed) <= 0.00501, "%s: %s %.17g, printed %.2f", row->file, place,
                  got, printed);
}

static void check_numbers(const struct golden *row, const struct nw_results *results)
{
    struct largest largest = {0, {NAN, NAN}};
    int64_t wrong = 0;
    int ranks = 0, hosts = 0;
    double average = NAN;
    size_t records = 0, rows = 0;

    for (size_t i = 0; i < results->run_count; i++) {
        const struct nw_run *run = &results->runs[i];

        ranks = run->context.rank_count > ranks ? run->context.rank_count : ranks;
        hosts = run->context.host_count > hosts ? run->context.host_count : hosts;
        if (isnan(average))
            average = run->context.printed_average_bytes_per_s / 1e9;
        for (size_t k = 0; k < run->record_count; k++, records++) {
            const struct nw_record *record = &run->records[k];

            rows += !record->in_place;
            wrong += record->wrong_elements > 0 ? record->wrong_elements : 0;
            if (record->bytes > largest.bytes)
                largest = (struct largest){record->bytes, {NAN, NAN}};
            if (record->bytes == largest.bytes && isnan(largest.rate[record->in_place]))
                largest.rate[record->in_place] = record->busbw_bytes_per_s / 1e9;
        }
    }
    cr_expect_eq(results->run_count, row->runs, "%s: %zu runs", row->file, results->run_count);
    cr_expect_eq(rows, row->rows, "%s: %zu rows", row->file, rows);
    cr_expect_eq(records, isnan(row->in) && row->ranks != 1 ? rows : 2 * rows,
                 "%s: %zu records of %zu rows", row->file, records, rows);
    cr_expect_eq(ranks, row->ranks, "%s: %d ranks", row->file, ranks);
    cr_expect_eq(hosts, row->hosts, "%s: %d hosts", row->file, hosts);
    cr_expect_eq(wrong, row->wrong, "%s: %lld wrong", row->file, (long long)wrong);
    cr_expect_eq(largest.bytes, row->largest, "%s: largest", row->file);
    check_rate(row, "out of place", largest.rate[0], row->out);
    check_rate(row, "in place", largest.rate[1], row->in);
    cr_expect(isnan(row->average) ? isnan(average) : fabs(average - row->average) < 1e-9,
              "%s: average %.17g", row->file, average);
}

Test(results_import, reads_every_log_of_the_field_as_it_should)
{
    size_t absent = 0;

    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        const char *path = find_log(golden[i].file);
        struct nw_results results = {0};

        if (path == NULL) {
            absent++;
            continue;
        }
        cr_assert_eq(nw_import_file(path, &results), NW_OK, "%s", nw_last_error()->text);
        check_texts(&golden[i], &results);
        check_numbers(&golden[i], &results);
        nw_results_free(&results);
    }
    if (absent > 0)
        fprintf(stderr, "not read: %zu logs that are only in ../shared, which is absent\n", absent);
}

Test(results_import, refuses_what_is_no_table_with_the_reason)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const char *path = find_log(refused[i].file);
        struct nw_results results = {0};

        if (path == NULL)
            continue;
        cr_expect_eq(nw_import_file(path, &results), NW_EUSAGE, "%s was read", refused[i].file);
        cr_expect_not_null(strstr(nw_last_error()->text, refused[i].says), "%s",
                           nw_last_error()->text);
        cr_expect_eq(results.run_count, 0);
        nw_results_free(&results);
    }
}

/* --- cut anywhere --- */

/* Every number of a record of a cut log stands in the whole log's record of that line and place. */
static void check_cut(const char *file, size_t cut, const struct nw_results *part,
                      const struct nw_results *whole)
{
    for (size_t i = 0; i < part->run_count; i++) {
        const struct nw_run *a = &part->runs[i], *b = &whole->runs[i];

        cr_assert_lt(i, whole->run_count, "%s cut at %zu: a run too many", file, cut);
        cr_assert(a->context.rank_count == 0 || b->context.rank_count == a->context.rank_count,
                  "%s cut at %zu: %d ranks", file, cut, a->context.rank_count);
        cr_assert(isnan(a->context.printed_average_bytes_per_s) ||
                      a->context.printed_average_bytes_per_s ==
                          b->context.printed_average_bytes_per_s,
                  "%s cut at %zu: average", file, cut);
        cr_assert_leq(a->record_count, b->record_count);
        for (size_t k = 0; k < a->record_count; k++) {
            const struct nw_record *x = &a->records[k], *y = &b->records[k];

            cr_assert(x->bytes == y->bytes && x->count == y->count && x->in_place == y->in_place &&
                          x->time_ns.median == y->time_ns.median &&
                          strcmp(x->source, y->source) == 0 &&
                          (x->wrong_elements < 0 || x->wrong_elements == y->wrong_elements) &&
                          (isnan(x->busbw_bytes_per_s) || isnan(y->busbw_bytes_per_s) ||
                           fabs(x->busbw_bytes_per_s - y->busbw_bytes_per_s) <= 5.01e6),
                      "%s cut at %zu: %s: %.17g instead of %.17g", file, cut, x->source,
                      x->time_ns.median, y->time_ns.median);
        }
    }
}

Test(results_import, a_log_cut_at_any_byte_gives_no_number_that_is_not_in_it)
{
    static const char *const files[] = {
        "a100-sendrecv-nodevices.log", "alps-gh200-16rank-wrong1.csv",
        "alps-gh200-4rank-ok.log",     "deepops-4xdgxa100-olderror.log",
        "pair-G1-001-004-slow.log",    "panlichen-4090x2-short.log",
        "superbench-alltoall-1B.log",  "oci-h100-2node-above-nic.log",
        "dstack-nebius-hashless.log",  "v100-64gpu-allreduce-and-alltoall.log",
        "alltoall-v2178-fragment.log",
    };

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path = find_log(files[i]);
        struct nw_results whole = {0};
        char *data;
        size_t length;

        cr_assert_not_null(path, "%s is missing", files[i]);
        cr_assert_eq(nw_file_read(path, 1 << 20, &data, &length), NW_OK);
        cr_assert_eq(nw_import_data(data, length, "log", &whole), NW_OK);
        for (size_t cut = 1; cut < length; cut++) {
            struct nw_results part = {0};
            char *copy = malloc(cut); /* exact, so that a sanitizer sees a read behind it */

            memcpy(copy, data, cut);
            if (nw_import_data(copy, cut, "log", &part) == NW_OK)
                check_cut(files[i], cut, &part, &whole);
            nw_results_free(&part);
            free(copy);
        }
        nw_results_free(&whole);
        free(data);
    }
}
