#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/units.h"
#include "results/import_kit.h"
#include "results/iperf3.h"

/* Sending and receiving of old versions share one thread; from 3.16 on each stream has its own. */
#define THREADS_SINCE 16
#define CORE_BUSY     90 /* percent of one core: above it the core, not the wire, is what is full */
/* Linux takes back to half of its window for one lost packet (RFC 5681): at one in a thousand a
 * connection over 1 ms at 1448-byte segments stays below 0.5 Gbit/s (Mathis et al. 1997). */
#define MANY_RETRANSMITS 1e-3
#define SLOW_INTERVAL    0.7 /* of the median one */

struct flow { /* one way */
    const char *sent_key, *received_key;
    const char *from, *to;
};

struct reading {
    const json_t *start, *test, *end, *intervals;
    const char *where;
    char local[64], remote[64], kernel[128];
    char protocol[8];           /* lower case: "tcp" "udp" "sctp" */
    int streams, version_minor; /* version_minor -1: unknown */
    bool reverse, both_ways;
    struct nw_run *run;
};

/* Up to the end of the word; control characters would reach a terminal. */
static void copy_text(char *field, size_t size, const char *text, bool word)
{
    size_t length = 0;

    for (; text != NULL && text[length] != '\0' && length + 1 < size; length++) {
        if (word && text[length] == ' ')
            break;
        field[length] = iscntrl((unsigned char)text[length]) ? ' ' : text[length];
    }
    while (length > 0 && field[length - 1] == ' ')
        length--;
    field[length] = '\0';
}

/* --- who, and how --- */

/* "Linux node1 4.18.0-15-generic #16-Ubuntu SMP …": uname's name and release. */
static void read_names(struct reading *reading)
{
    const json_t *connection = json_array_get(json_object_get(reading->start, "connected"), 0);
    const json_t *asked = json_object_get(reading->start, "connecting_to");
    const char *system = nw_imp_json_text(reading->start, "system_info"), *name = NULL;

    if (asked == NULL)
        asked = json_object_get(reading->start, "accepted_connection");
    if (system != NULL && (name = strchr(system, ' ')) != NULL) {
        const char *release = strchr(++name, ' ');

        copy_text(reading->local, sizeof reading->local, name, true);
        copy_text(reading->kernel, sizeof reading->kernel, release != NULL ? release + 1 : NULL,
                  true);
    }
    if (reading->local[0] == '\0')
        copy_text(reading->local, sizeof reading->local, nw_imp_json_text(connection, "local_host"),
                  true);
    copy_text(reading->remote, sizeof reading->remote, nw_imp_json_text(asked, "host"), true);
    if (reading->remote[0] == '\0')
        copy_text(reading->remote, sizeof reading->remote,
                  nw_imp_json_text(connection, "remote_host"), true);
}

static bool is_loopback(const struct reading *reading)
{
    const json_t *connection = json_array_get(json_object_get(reading->start, "connected"), 0);
    const char *here = nw_imp_json_text(connection, "local_host");
    const char *there = nw_imp_json_text(connection, "remote_host");

    return here != NULL && there != NULL && strcmp(here, there) == 0;
}

static void read_test(struct reading *reading)
{
    const char *protocol = nw_imp_json_text(reading->test, "protocol");
    const char *version = nw_imp_json_text(reading->start, "version");
    const double streams = nw_imp_json_number(reading->test, "num_streams");

    copy_text(reading->protocol, sizeof reading->protocol, protocol != NULL ? protocol : "tcp",
              true);
    for (char *at = reading->protocol; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    reading->streams = streams >= 1 && streams <= 4096 ? (int)streams : 0;
    reading->reverse = nw_imp_json_set(reading->test, "reverse");
    reading->both_ways =
        nw_imp_json_set(reading->test, "bidir") || nw_imp_json_set(reading->test, "bidirectional");
    reading->version_minor = -1;
    if (version != NULL && strncmp(version, "iperf 3.", 8) == 0 &&
        isdigit((unsigned char)version[8]))
        reading->version_minor = version[8] - '0';
    if (reading->version_minor >= 0 && isdigit((unsigned char)version[9]))
        reading->version_minor = 10 * reading->version_minor + version[9] - '0';
}

static nw_rc set_plan(const struct reading *reading, struct nw_context *context)
{
    static const char *const keys[][2] = {
        {"duration", "duration_s"}, {"omit", "omitted_s"}, {"blksize", "block_bytes"}};

    context->plan = json_object();
    if (context->plan == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the options of a result");
    NW_TRY(nw_json_set_text(context->plan, "protocol", reading->protocol));
    if (reading->streams > 0)
        NW_TRY(nw_json_set_int(context->plan, "streams", reading->streams));
    NW_TRY(nw_json_set_bool(context->plan, "reverse", reading->reverse));
    NW_TRY(nw_json_set_bool(context->plan, "both_ways", reading->both_ways));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        NW_TRY(nw_json_set_real(context->plan, keys[i][1],
                                nw_imp_json_number(reading->test, keys[i][0])));
    return NW_OK;
}

static void set_start(const struct reading *reading, char started[32])
{
    const double seconds =
        nw_imp_json_number(json_object_get(reading->start, "timestamp"), "timesecs");
    const time_t instant = seconds < 4e9 ? (time_t)seconds : 0; /* false for NAN */
    struct tm utc;

    if (instant > 0 && gmtime_r(&instant, &utc) != NULL)
        strftime(started, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static nw_rc set_context(const struct reading *reading, const char *path)
{
    struct nw_context *context = &reading->run->context;
    const char *version = nw_imp_json_text(reading->start, "version");
    const bool named = reading->local[0] != '\0' && reading->remote[0] != '\0';

    snprintf(context->tool, sizeof context->tool, "iperf3");
    if (version != NULL && strncmp(version, "iperf ", 6) == 0)
        copy_text(context->tool_version, sizeof context->tool_version, version + 6, false);
    snprintf(context->backend, sizeof context->backend, "sockets");
    snprintf(context->source, sizeof context->source, "%s", path);
    set_start(reading, context->started);
    NW_TRY(set_plan(reading, context));
    context->rank_count = 2;
    context->host_count = is_loopback(reading) ? 1 : 2;
    if (!named || context->host_count == 1)
        return NW_OK;
    context->hosts = calloc(2, sizeof *context->hosts);
    if (context->hosts == NULL)
        return nw_fail(NW_ENOMEM, "no memory for two hosts");
    for (int i = 0; i < 2; i++) {
        struct nw_host *host = &context->hosts[i];

        snprintf(host->name, sizeof host->name, "%s", i == 0 ? reading->local : reading->remote);
        host->rank_count = 1;
        host->gpu_count = -1;
    }
    memcpy(context->hosts[0].kernel, reading->kernel, sizeof reading->kernel);
    return NW_OK;
}

/* --- records --- */

static nw_rc find(const struct reading *reading, nw_severity severity, const char *code,
                  const char *remedy, const char *text)
{
    return nw_findings_add(&reading->run->context.findings, severity, code, reading->where, remedy,
                           "%s", text);
}

/* A test that was stopped has no sums at its end, but every second of it. */
static json_t *sum_of_intervals(const struct reading *reading)
{
    double bytes = 0, seconds = 0;
    size_t index;
    json_t *item;

    json_array_foreach(reading->intervals, index, item)
    {
        const json_t *sum = json_object_get(item, "sum");

        if (nw_imp_json_set(sum, "omitted") || !(nw_imp_json_number(sum, "bytes") >= 0) ||
            !(nw_imp_json_number(sum, "seconds") > 0))
            continue;
        bytes += nw_imp_json_number(sum, "bytes");
        seconds += nw_imp_json_number(sum, "seconds");
    }
    return seconds > 0 ? json_pack("{s:f, s:f, s:f}", "bytes", bytes, "seconds", seconds,
                                   "bits_per_second", 8 * bytes / seconds)
                       : NULL;
}

/* UDP before 3.8 has one sum: of what was sent, and the share of its packets that was lost. */
static json_t *arrived_of(const json_t *sum)
{
    const double lost = nw_imp_json_number(sum, "lost_percent");
    const double share = lost <= 100 ? 1 - lost / 100 : 1; /* unknown: all */

    return json_pack("{s:f, s:f, s:f}", "bytes", floor(nw_imp_json_number(sum, "bytes") * share),
                     "seconds", fmax(nw_imp_json_number(sum, "seconds"), 0), "bits_per_second",
                     nw_imp_json_number(sum, "bits_per_second") * share);
}

static bool moved(const json_t *sum)
{
    const double bytes = nw_imp_json_number(sum, "bytes"),
                 rate = nw_imp_json_number(sum, "bits_per_second");

    return bytes >= 1 && bytes < 9e18 && rate >= 1e-3 && rate < 1e18; /* else no time is finite */
}

static nw_rc tell_retransmits(const struct reading *reading, const json_t *sent)
{
    const double count = nw_imp_json_number(sent, "retransmits"),
                 bytes = nw_imp_json_number(sent, "bytes");
    double segment = nw_imp_json_number(reading->start, "tcp_mss_default");
    char share[32], text[200];

    if (!(segment > 0))
        segment = 1448;
    if (!(count * segment > MANY_RETRANSMITS * bytes))
        return NW_OK;
    snprintf(text, sizeof text, "%.0f segments were sent again, %s %% of them: packets are lost",
             count, nw_format_sig(share, 100 * count * segment / bytes, 2));
    return find(reading, NW_FINDING_WARN, "retransmits",
                "ethtool -S on both ends and the switch's port counters: errors, drops, pauses",
                text);
}

static nw_rc add_record(const struct reading *reading, const struct flow *flow, const json_t *sum)
{
    struct nw_record *record = nw_run_new_record(reading->run);
    const double rate = nw_imp_json_number(sum, "bits_per_second") / 8,
                 seconds = nw_imp_json_number(sum, "seconds");

    if (record == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for a record", reading->where);
    snprintf(record->case_name, sizeof record->case_name, "tcp");
    snprintf(record->collective, sizeof record->collective, "stream");
    snprintf(record->lane, sizeof record->lane, "%s", reading->protocol);
    snprintf(record->dtype, sizeof record->dtype, "uint8");
    record->rank_count = 2;
    record->host_count = reading->run->context.host_count;
    record->bytes = record->count = (uint64_t)nw_imp_json_number(sum, "bytes");
    record->stream_count = reading->streams;
    record->peer_a = flow->from == reading->local ? 0 : 1;
    record->peer_b = 1 - record->peer_a;
    snprintf(record->host_a, sizeof record->host_a, "%s", flow->from);
    snprintf(record->host_b, sizeof record->host_b, "%s", flow->to);
    snprintf(record->source, sizeof record->source, "%s", reading->where);
    record->time_ns = nw_stats_single(
        seconds > 0 && seconds < 1e9 ? seconds * 1e9 : (double)record->bytes / rate * 1e9);
    record->algbw_bytes_per_s = record->busbw_bytes_per_s = rate;
    return NW_OK;
}

static nw_rc add_flow(const struct reading *reading, const struct flow *flow)
{
    const json_t *sent = json_object_get(reading->end, flow->sent_key);
    const json_t *received = json_object_get(reading->end, flow->received_key);
    json_t *cut = NULL;
    nw_rc rc = NW_OK;

    if (!moved(received) && !moved(sent) && strcmp(flow->sent_key, "sum_sent") == 0) {
        const json_t *sum = json_object_get(reading->end, "sum");

        received = cut = moved(sum) ? arrived_of(sum) : sum_of_intervals(reading);
    } else if (!moved(received) && moved(sent)) {
        received = sent;
        rc = find(reading, NW_FINDING_INFO, "sender-side",
                  "the JSON of the receiving end, or --get-server-output",
                  "what arrived is not in this result: the rate is that of the sender");
    }
    if (rc == NW_OK && moved(received))
        rc = add_record(reading, flow, received);
    if (rc == NW_OK)
        rc = tell_retransmits(reading, sent);
    json_decref(cut);
    return rc;
}

static nw_rc add_records(const struct reading *reading)
{
    const bool client = json_object_get(reading->start, "accepted_connection") == NULL;
    const bool outwards = client != reading->reverse;
    const struct flow there = {"sum_sent", "sum_received",
                               outwards ? reading->local : reading->remote,
                               outwards ? reading->remote : reading->local};
    const struct flow back = {"sum_sent_bidir_reverse", "sum_received_bidir_reverse", there.to,
                              there.from};

    NW_TRY(add_flow(reading, &there));
    return reading->both_ways ? add_flow(reading, &back) : NW_OK;
}

/* --- what is missing or misleading --- */

static nw_rc tell_error(const struct reading *reading, const char *error)
{
    static const struct {
        const char *part, *remedy;
    } rows[] = {
        {"refused", "start iperf3 -s on the other end; look at its port (-p) and firewall"},
        {"busy", "one test at a time: wait, or a second server on another port (-p)"},
        {"No route", "ip route get ADDRESS on this end"},
        {"timed out", "a firewall, or no route: nodeworth check over both hosts"},
        {"interrupt", "let it run to its end"},
    };
    const char *remedy = "run it again";
    char said[200];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strstr(error, rows[i].part) != NULL)
            remedy = rows[i].remedy;
    copy_text(said, sizeof said, error, false);
    reading->run->context.complete = false;
    return nw_findings_add(&reading->run->context.findings, NW_FINDING_FAIL, "run-failed",
                           reading->where, remedy, "iperf3 failed: %s", said);
}

static nw_rc tell_udp(const struct reading *reading)
{
    const json_t *sum = json_object_get(reading->end, "sum");
    const double lost = nw_imp_json_number(sum, "lost_percent");
    char text[200], percent[32] = "an unknown share";

    if (strcmp(reading->protocol, "udp") != 0)
        return NW_OK;
    if (isfinite(lost))
        snprintf(percent, sizeof percent, "%.3g %%", lost);
    snprintf(text, sizeof text,
             "UDP goes at the rate that was asked for (-b), not at what the wire carries; %s of "
             "the packets was lost",
             percent);
    return find(reading, NW_FINDING_WARN, "udp-paced", "iperf3 without -u", text);
}

static nw_rc tell_busy_core(const struct reading *reading)
{
    const json_t *load = json_object_get(reading->end, "cpu_utilization_percent");
    const double here = nw_imp_json_number(load, "host_total"),
                 there = nw_imp_json_number(load, "remote_total");
    const double busiest = fmax(here, there); /* a NAN gives the other */
    const int threads =
        reading->version_minor >= THREADS_SINCE && reading->streams > 1 ? reading->streams : 1;
    char text[200];

    if (!(busiest >= CORE_BUSY * threads))
        return NW_OK;
    snprintf(
        text, sizeof text,
        "%s was busy for %.0f %% of the time of %d core%s: the processor, not the wire, may be "
        "what limits",
        busiest == here ? "this end" : "the other end", busiest / threads, threads,
        threads > 1 ? "s" : "");
    return find(reading, NW_FINDING_WARN, "core-busy",
                "iperf3 3.16 and later with -P 4 (a thread a stream), or several iperf3 at once",
                text);
}

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* Without the first second, in which the window opens, and what is shorter than half of it. */
static nw_rc tell_slow_intervals(const struct reading *reading)
{
    const size_t most = json_array_size(reading->intervals);
    double *rates = malloc((most + 1) * sizeof *rates), median;
    char least[32], usual[32], text[200];
    size_t count = 0, slow = 0;

    if (rates == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for %zu intervals", reading->where, most);
    for (size_t i = 1; i < most; i++) {
        const json_t *sum = json_object_get(json_array_get(reading->intervals, i), "sum");

        if (nw_imp_json_number(sum, "seconds") >= 0.5 &&
            nw_imp_json_number(sum, "bits_per_second") >= 0 && !nw_imp_json_set(sum, "omitted"))
            rates[count++] = nw_imp_json_number(sum, "bits_per_second") / 8;
    }
    qsort(rates, count, sizeof *rates, by_value);
    median = count > 0 ? rates[count / 2] : 0;
    while (slow < count && rates[slow] < SLOW_INTERVAL * median)
        slow++;
    snprintf(text, sizeof text,
             "%zu of %zu intervals were slow: down to %s GB/s, where the median is %s", slow, count,
             nw_format_gb_per_s(least, count > 0 ? rates[0] : 0),
             nw_format_gb_per_s(usual, median));
    free(rates);
    return slow > 0
               ? find(reading, NW_FINDING_WARN, "rate-unsteady",
                      "repeat it with nothing else on the wire; look for losses and pauses", text)
               : NW_OK;
}

static nw_rc tell(const struct reading *reading, const json_t *result)
{
    const json_t *error = json_object_get(result, "error");
    const bool none = reading->run->record_count == 0;

    if (json_is_string(error))
        NW_TRY(tell_error(reading, json_string_value(error)));
    else if (none)
        NW_TRY(find(reading, NW_FINDING_FAIL, "no-result", "run it again",
                    "there is no sum of what was moved: nothing was, or the result was cut"));
    else if (json_object_size(reading->end) == 0)
        NW_TRY(find(reading, NW_FINDING_WARN, "run-incomplete", "let it run to its end",
                    "the result has no end: the sum of its intervals is taken"));
    if (none)
        return NW_OK;
    if (reading->run->context.host_count == 1)
        NW_TRY(find(reading, NW_FINDING_WARN, "loopback", "name the address of another host",
                    "both ends have the same address: no wire was used"));
    NW_TRY(tell_udp(reading));
    NW_TRY(tell_busy_core(reading));
    return tell_slow_intervals(reading);
}

nw_rc nw_iperf3_add_run(const json_t *result, const char *path, const char *where,
                        struct nw_results *results)
{
    struct reading reading = {.start = json_object_get(result, "start"),
                              .end = json_object_get(result, "end"),
                              .intervals = json_object_get(result, "intervals"),
                              .where = where,
                              .run = nw_results_add_run(results)};

    if (reading.run == NULL)
        return nw_fail(NW_ENOMEM, "%s: no memory for a run", where);
    reading.test = json_object_get(reading.start, "test_start");
    read_names(&reading);
    read_test(&reading);
    reading.run->context.complete = json_object_size(reading.end) > 0;
    NW_TRY(set_context(&reading, path));
    NW_TRY(add_records(&reading));
    return tell(&reading, result);
}
