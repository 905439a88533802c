/* Tables of all_reduce_bench.py (https://github.com/stas00/ml-engineering, network/benchmarks):
 *
 *     The average bandwidth of all_reduce over 32 ranks (5 warmups / 20 trials):
 *     | payload |    busbw   |    algbw   |
 *     | ------: | ---------: | ---------: |
 *     |   32KiB |   0.92GBps |   0.48GBps |
 *
 * GBps are 10^9 bytes/s. Without the sentence the ranks follow from busbw / algbw = 2 (n-1) / n.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "results/import_kit.h"
#include "results/importers.h"

#define TOO_COARSE 20 /* half units: less than 5 % */

struct reading {
    struct nw_imp imp;
    int ranks;       /* of the sentence; 0 */
    double one_size; /* --profile_stability: all rows are of this payload; 0: they name theirs */
    bool in_table;
    size_t header_line, coarse_count, coarse_line, first_record;
    double factor_low, factor_high;
    char torch[64], nccl[64], gpu[128];
};

/* "32KiB" */
static bool read_size(struct nw_slice word, uint64_t *bytes_out)
{
    char text[24];

    if (word.length < 4 || word.length >= sizeof text ||
        memcmp(word.at + word.length - 2, "iB", 2) != 0)
        return false;
    nw_imp_copy(text, sizeof text, word);
    if (nw_parse_bytes(text, bytes_out) == NW_OK)
        return true;
    nw_clear_error();
    return false;
}

/* "0.92GBps" */
static bool read_rate(struct nw_slice word, struct nw_printed *rate_out)
{
    if (word.length < 5 || memcmp(word.at + word.length - 4, "GBps", 4) != 0)
        return false;
    return nw_imp_number((struct nw_slice){word.at, word.length - 4}, 9, rate_out);
}

static void narrow(struct reading *reading, const struct nw_printed *bus,
                   const struct nw_printed *alg)
{
    reading->factor_low =
        fmax(reading->factor_low, (bus->value - bus->half_unit) / (alg->value + alg->half_unit));
    if (alg->value > alg->half_unit)
        reading->factor_high = fmin(reading->factor_high,
                                    (bus->value + bus->half_unit) / (alg->value - alg->half_unit));
}

static nw_rc add_row(struct reading *reading, const struct nw_imp_words *words)
{
    struct nw_imp *imp = &reading->imp;
    struct nw_printed bus, alg;
    struct nw_record *record;
    uint64_t bytes = (uint64_t)reading->one_size;
    const int first = reading->one_size > 0 ? 0 : 1;

    if (words->count != first + 2 || (first == 1 && !read_size(words->word[0], &bytes)) ||
        !read_rate(words->word[first], &bus) || !read_rate(words->word[first + 1], &alg)) {
        if (words->count > 0 && words->word[0].at[0] != '-')
            nw_imp_count(&imp->unreadable, imp->line,
                         nw_imp_slice("its cells are no payload and rates"));
        return NW_OK;
    }
    if (bytes == 0 || !(alg.value > TOO_COARSE * alg.half_unit)) {
        if (reading->coarse_count++ == 0)
            reading->coarse_line = imp->line;
        return NW_OK;
    }
    narrow(reading, &bus, &alg);
    NW_TRY(nw_imp_record(imp, "coll", "all_reduce", "auto", imp->line, &record));
    snprintf(record->dtype, sizeof record->dtype, "float");
    snprintf(record->op, sizeof record->op, "sum");
    record->in_place = true;
    record->bytes = bytes;
    record->rank_count = reading->ranks;
    nw_imp_set_rate(record, alg.value);
    record->busbw_bytes_per_s = bus.value;
    return NW_OK;
}

/* n = 2 / (2 - f), where one n lies within what all rows allow. */
static nw_rc derive_ranks(struct reading *reading)
{
    const double low = reading->factor_low, high = reading->factor_high;
    struct nw_run *run = reading->imp.run;
    int least, most;

    if (reading->ranks > 0 || run->record_count == 0)
        return NW_OK;
    least = low < 2 ? (int)ceil(2 / (2 - fmax(low, 1)) - 1e-9) : 0;
    most = high < 2 ? (int)fmin(floor(2 / (2 - high) + 1e-9), 1e6) : 0;
    if (least < 2 || least != most)
        return nw_imp_tell(&reading->imp, NW_FINDING_WARN, "ranks-unknown", reading->header_line,
                           "import the output from its sentence above the table on",
                           "the table does not say how many ranks there were, and busbw / algbw "
                           "does not tell");
    reading->ranks = least;
    for (size_t i = 0; i < run->record_count; i++)
        run->records[i].rank_count = least;
    return nw_imp_tell(&reading->imp, NW_FINDING_INFO, "ranks-derived", reading->header_line, NULL,
                       "the table does not say how many ranks there were; %d follows from busbw / "
                       "algbw of its rows",
                       least);
}

static nw_rc close_run(struct reading *reading)
{
    struct nw_imp *imp = &reading->imp;

    if (imp->run == NULL)
        return NW_OK;
    NW_TRY(derive_ranks(reading));
    imp->run->context.rank_count = reading->ranks;
    imp->run->context.complete = imp->run->record_count > 0;
    snprintf(imp->run->context.gpu_model, 128, "%s", reading->gpu);
    if (reading->nccl[0] != '\0')
        snprintf(imp->run->context.library, 128, "NCCL %s", reading->nccl);
    if (reading->torch[0] != '\0')
        snprintf(imp->run->context.tool_version, 64, "torch %.50s", reading->torch);
    if (reading->coarse_count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_INFO, "too-coarse", reading->coarse_line,
                           "nccl-tests or nodeworth bench, which print times",
                           "rows whose rate has too few digits to be one are left out: %zu",
                           reading->coarse_count));
    reading->in_table = false;
    return nw_imp_close(imp, "no row follows the table's header");
}

static nw_rc take_header(struct reading *reading)
{
    const int ranks = reading->ranks;
    const double size = reading->one_size;

    NW_TRY(close_run(reading));
    NW_TRY(nw_imp_begin(&reading->imp, "all_reduce_bench"));
    snprintf(reading->imp.run->context.backend, 16, "nccl");
    reading->ranks = ranks;
    reading->one_size = size;
    reading->in_table = true;
    reading->header_line = reading->imp.line;
    reading->coarse_count = reading->coarse_line = 0;
    reading->factor_low = 0;
    reading->factor_high = INFINITY;
    return NW_OK;
}

/* "The average bandwidth of all_reduce over 32 ranks (", "The 2.0GiB payload bandwidth of …" */
static nw_rc take_sentence(struct reading *reading, struct nw_slice text)
{
    struct nw_imp_words words;
    struct nw_printed gib;
    uint64_t ranks;

    NW_TRY(close_run(reading));
    reading->one_size = 0;
    reading->ranks = 0;
    nw_imp_split(nw_imp_behind(text, "all_reduce over "), &words);
    if (words.count > 0 && nw_imp_u64(words.word[0], &ranks) && ranks > 0 && ranks < 1000000)
        reading->ranks = (int)ranks;
    nw_imp_split(text, &words);
    if (words.count > 1 && words.word[1].length > 3 &&
        memcmp(words.word[1].at + words.word[1].length - 3, "GiB", 3) == 0 &&
        nw_imp_number((struct nw_slice){words.word[1].at, words.word[1].length - 3}, 0, &gib) &&
        gib.value < 1e6)
        reading->one_size = floor(gib.value * 1073741824.0);
    return NW_OK;
}

static void take_environment(struct reading *reading, struct nw_slice text)
{
    struct nw_imp_words words;
    const struct nw_slice nccl = nw_imp_behind(text, "nccl=("),
                          name = nw_imp_behind(text, "name='");
    const char *end = memchr(name.at, '\'', name.length);

    nw_imp_split(nw_imp_behind(text, "torch="), &words);
    if (words.count > 0)
        nw_imp_copy(reading->torch, sizeof reading->torch, words.word[0]);
    nw_imp_split(nccl, &words); /* "(2, 27, 7)" */
    if (words.count >= 3) {
        char part[3][16];

        for (int i = 0; i < 3; i++)
            nw_imp_copy(part[i], sizeof part[i], words.word[i]);
        part[2][strcspn(part[2], ")")] = '\0';
        snprintf(reading->nccl, sizeof reading->nccl, "%s.%s.%s", part[0], part[1], part[2]);
    }
    if (end != NULL)
        nw_imp_copy(reading->gpu, sizeof reading->gpu,
                    (struct nw_slice){name.at, (size_t)(end - name.at)});
}

static nw_rc take_line(struct reading *reading)
{
    struct nw_imp *imp = &reading->imp;
    const struct nw_slice text = nw_imp_clean_cells(imp->text);
    struct nw_imp_words words;

    nw_imp_split(text, &words);
    if (!imp->whole) {
        imp->torn = imp->torn || (reading->in_table && text.length > 0);
        return NW_OK; /* a table's last line ends with a bar and a newline */
    }
    if (nw_imp_find(text, " bandwidth of all_reduce over ") != NULL)
        return take_sentence(reading, text);
    if (nw_imp_starts(text, "- software:") || nw_imp_starts(text, "- hardware:"))
        take_environment(reading, text);
    else if (words.count >= 2 && text.at[0] == '|' &&
             nw_imp_is(words.word[words.count - 1], "algbw"))
        return take_header(reading);
    else if (reading->in_table && text.length > 0 && text.at[0] == '|')
        return add_row(reading, &words);
    else if (text.length > 0 && reading->in_table && imp->run != NULL && nw_imp_is_elision(text))
        nw_imp_count(&imp->elided, imp->line, text);
    return NW_OK;
}

nw_rc nw_all_reduce_bench_read(const char *data, size_t length, const char *path,
                               const struct nw_import_options *options, struct nw_results *results)
{
    struct reading reading = {.imp = nw_imp_open(data, length, path, results)};

    (void)options;
    while (nw_imp_next(&reading.imp))
        NW_TRY(take_line(&reading));
    return close_run(&reading);
}

/* nccl-tests' table has the same words, without bars and "GBps". */
int nw_all_reduce_bench_recognise(const char *data, size_t length)
{
    return nw_imp_has(data, length, "GBps |") && nw_imp_has(data, length, "|    busbw   |") ? 100
                                                                                            : 0;
}
