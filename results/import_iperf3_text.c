/* iperf3's text (https://github.com/esnet/iperf, src/iperf_locale.c): made into what its JSON says,
 * and read as that. Only the sums at its end count ("sender", "receiver"): three digits of them are
 * printed. "Bytes" have binary prefixes, "bits/sec" decimal ones.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "results/import_kit.h"
#include "results/iperf3.h"

struct reading {
    struct nw_imp imp;
    json_t *result; /* of the test under way; NULL */
    size_t line;    /* where it begins */
    char version[32];
    int streams;
    bool sums; /* the end has a [SUM] line: those of single streams do not count */
};

/* "10.9 GBytes" of words `at` and `at` + 1. */
static double amount(const struct nw_imp_words *words, int at, const char *unit, double prefix)
{
    static const char letters[] = "KMGT";
    struct nw_printed number;

    if (at + 1 >= words->count || !nw_imp_number(words->word[at], 0, &number))
        return NAN;
    const struct nw_slice word = words->word[at + 1];

    if (nw_imp_is(word, unit))
        return number.value;
    for (int i = 0; letters[i] != '\0'; i++)
        if (word.length == strlen(unit) + 1 && word.at[0] == letters[i] &&
            memcmp(word.at + 1, unit, strlen(unit)) == 0)
            return number.value * pow(prefix, i + 1);
    return NAN;
}

static nw_rc close_test(struct reading *reading)
{
    char where[300];
    nw_rc rc = NW_OK;

    if (reading->result == NULL)
        return NW_OK;
    if (reading->streams > 0)
        json_object_set_new(
            json_object_get(json_object_get(reading->result, "start"), "test_start"), "num_streams",
            json_integer(reading->streams));
    snprintf(where, sizeof where, "%.250s:%zu", reading->imp.path, reading->line);
    rc = nw_iperf3_add_run(reading->result, reading->imp.path, where, reading->imp.results);
    json_decref(reading->result);
    reading->result = NULL;
    return rc;
}

static nw_rc open_test(struct reading *reading)
{
    char version[40] = "";

    NW_TRY(close_test(reading));
    if (reading->version[0] != '\0')
        snprintf(version, sizeof version, "iperf %s", reading->version);
    reading->result =
        json_pack("{s:{s:o,s:[],s:{}},s:[],s:{}}", "start", "version", nw_json_text(version),
                  "connected", "test_start", "intervals", "end");
    reading->line = reading->imp.line;
    reading->streams = 0;
    reading->sums = false;
    return reading->result != NULL
               ? NW_OK
               : nw_fail(NW_ENOMEM, "%s: no memory for a result", reading->imp.path);
}

static json_t *text_json(struct nw_slice word)
{
    char text[80];

    nw_imp_copy(text, sizeof text, word);
    return nw_json_text(text);
}

/* "[  5] local 10.0.0.1 port 43210 connected to 10.0.0.2 port 5201" */
static nw_rc take_connection(struct reading *reading, const struct nw_imp_words *words, int local)
{
    json_t *list, *one;

    if (reading->result == NULL)
        NW_TRY(open_test(reading));
    reading->streams++;
    list = json_object_get(json_object_get(reading->result, "start"), "connected");
    if (json_array_size(list) > 0 || local + 6 >= words->count)
        return NW_OK;
    one = json_pack("{s:o*,s:o*}", "local_host", text_json(words->word[local + 1]), "remote_host",
                    text_json(words->word[local + 6]));
    return one != NULL && json_array_append_new(list, one) == 0
               ? NW_OK
               : nw_fail(NW_ENOMEM, "%s: no memory for a result", reading->imp.path);
}

/* "[SUM]   0.00-10.00  sec  10.9 GBytes  9.40 Gbits/sec    0             sender" */
static nw_rc take_sum(struct reading *reading, const struct nw_imp_words *words,
                      struct nw_slice text)
{
    const struct nw_slice last = words->word[words->count - 1];
    const bool sender = nw_imp_is(last, "sender"), sum = nw_imp_starts(text, "[SUM]");
    const bool back = nw_imp_find(text, "RX-C") != NULL || nw_imp_find(text, "RX-S") != NULL;
    json_t *end = json_object_get(reading->result, "end"), *one;
    struct nw_printed retries = {NAN, NAN};
    int sec = 0;

    while (sec < words->count && !nw_imp_is(words->word[sec], "sec"))
        sec++;
    if (sec < 1 || sec + 4 >= words->count || (reading->sums && !sum))
        return NW_OK;
    const struct nw_slice span = words->word[sec - 1];
    const char *dash = memchr(span.at, '-', span.length);
    struct nw_printed from, to;

    if (dash == NULL ||
        !nw_imp_number((struct nw_slice){span.at, (size_t)(dash - span.at)}, 0, &from) ||
        !nw_imp_number((struct nw_slice){dash + 1, span.length - (size_t)(dash + 1 - span.at)}, 0,
                       &to))
        return NW_OK;
    const double bytes = amount(words, sec + 1, "Bytes", 1024);
    const double bits = amount(words, sec + 3, "bits/sec", 1000);

    if (!isfinite(bytes) || !isfinite(bits) || !(to.value > from.value))
        return NW_OK;
    if (sec + 5 < words->count - 1 && sender)
        nw_imp_number(words->word[sec + 5], 0, &retries);
    one = json_pack("{s:f,s:f,s:f}", "bytes", floor(bytes), "seconds", to.value - from.value,
                    "bits_per_second", bits);
    if (one == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for a result", reading->imp.path);
    if (retries.value >= 0)
        json_object_set_new(one, "retransmits", json_real(retries.value));
    if (back)
        json_object_set_new(
            json_object_get(json_object_get(reading->result, "start"), "test_start"), "bidir",
            json_true());
    reading->sums = reading->sums || sum;
    json_object_set_new(end,
                        back ? (sender ? "sum_sent_bidir_reverse" : "sum_received_bidir_reverse")
                             : (sender ? "sum_sent" : "sum_received"),
                        one);
    return NW_OK;
}

static nw_rc take_error(struct reading *reading, struct nw_slice text)
{
    char said[200];

    if (reading->result == NULL)
        NW_TRY(open_test(reading));
    nw_imp_copy(said, sizeof said, nw_imp_behind(text, "iperf3: "));
    json_object_set_new(reading->result, "error", nw_json_text(said));
    return NW_OK;
}

static nw_rc take_line(struct reading *reading)
{
    const struct nw_imp *imp = &reading->imp;
    const struct nw_slice text = nw_imp_trim(imp->text);
    struct nw_imp_words words;
    json_t *test;

    if (!imp->whole || text.length == 0)
        return NW_OK;
    nw_imp_split(text, &words);
    if (nw_imp_starts(text, "iperf 3") && words.count > 1) {
        nw_imp_copy(reading->version, sizeof reading->version, words.word[1]);
        return close_test(reading);
    }
    if (nw_imp_starts(text, "Connecting to host") || nw_imp_starts(text, "Accepted connection"))
        return open_test(reading);
    if (nw_imp_starts(text, "iperf3: "))
        return take_error(reading, text);
    for (int i = 0; i < words.count && i < 4; i++)
        if (nw_imp_is(words.word[i], "local") && nw_imp_find(text, " connected to ") != NULL)
            return take_connection(reading, &words, i);
    if (reading->result == NULL || words.count < 6 || text.at[0] != '[')
        return NW_OK;
    test = json_object_get(json_object_get(reading->result, "start"), "test_start");
    if (nw_imp_find(text, "Total Datagrams") != NULL || nw_imp_find(text, "Lost/Total") != NULL)
        json_object_set_new(test, "protocol", json_string("UDP"));
    if (nw_imp_is(words.word[words.count - 1], "sender") ||
        nw_imp_is(words.word[words.count - 1], "receiver"))
        return take_sum(reading, &words, text);
    return NW_OK;
}

bool nw_iperf3_is_text(const char *data, size_t length)
{
    if (nw_imp_has(data, length, "iperf3: error"))
        return true;
    return nw_imp_has(data, length, "bits/sec") && nw_imp_has(data, length, "sender") &&
           nw_imp_has(data, length, "receiver");
}

nw_rc nw_iperf3_read_text(const char *data, size_t length, const char *path,
                          struct nw_results *results)
{
    struct reading reading = {.imp = nw_imp_open(data, length, path, results)};
    nw_rc rc = NW_OK;

    while (rc == NW_OK && nw_imp_next(&reading.imp))
        rc = take_line(&reading);
    if (rc == NW_OK)
        rc = close_test(&reading);
    json_decref(reading.result);
    return rc;
}
