#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/perftest.h"

/* linux-rdma/perftest issue 65: 1024 B, 1000 iterations without warm-up: a sixth of the rate. */
#define FEW_ITERATIONS 5000
#define SMALL_BYTES    65536

static bool has_same_ends(const struct nw_perftest_facts *facts)
{
    const bool lids = facts->lid[0] != '\0' && strcmp(facts->lid, facts->remote_lid) == 0 &&
                      strtoul(facts->lid, NULL, 0) > 0;

    return lids || (facts->gid[0] != '\0' && strcmp(facts->gid, facts->remote_gid) == 0);
}

/* Whose data moves: of a write the client's, of a read the server's. */
static bool device_gives(const struct nw_perftest_facts *facts)
{
    const bool reads = strcmp(facts->verb, "read") == 0;

    return facts->both_ways || facts->server == reads;
}

static void name_collective(const struct nw_perftest *test, char *name, size_t size)
{
    const char *verb = test->facts.verb[0] != '\0' ? test->facts.verb : "unknown";

    if (test->latency && test->facts.verb[0] == '\0')
        snprintf(name, size, "latency");
    else
        snprintf(name, size, "%s%s", verb,
                 test->latency           ? "_latency"
                 : test->facts.both_ways ? "_both"
                                         : "");
}

static void set_ends(const struct nw_perftest_facts *facts, struct nw_record *record)
{
    const bool gives = device_gives(facts);

    snprintf(record->memory, sizeof record->memory, "%s", facts->gpu ? "gpu" : "host");
    memcpy(gives ? record->nic_a : record->nic_b, facts->device, sizeof facts->device);
    memcpy(gives ? record->gid_a : record->gid_b, facts->gid, sizeof facts->gid);
    memcpy(gives ? record->gid_b : record->gid_a, facts->remote_gid, sizeof facts->remote_gid);
    record->rank_count = 2;
    record->host_count = has_same_ends(facts) ? 1 : 2;
    record->qps = facts->qps;
    record->depth = facts->depth;
    record->mtu_bytes = facts->mtu;
}

/* Rate and message rate are the same thing twice. */
static void compare_columns(struct nw_perftest *test, const struct nw_imp_row *row, size_t line)
{
    const struct nw_printed *rate = &row->value[NW_IMP_RATE];
    const struct nw_printed *messages = &row->value[NW_IMP_MESSAGES];
    const double bytes = row->value[NW_IMP_BYTES].value;
    const double other = messages->value * bytes;
    const double slack =
        1.05 * (rate->half_unit + messages->half_unit * bytes) + 2e-3 * rate->value;

    if (other > 0 && fabs(other - rate->value) > slack && test->disagree_count++ == 0)
        test->disagree_line = line;
}

static void set_latency(const struct nw_imp_row *row, struct nw_record *record)
{
    const struct nw_printed *value = row->value;
    struct nw_stats *time = &record->time_ns;

    *time = nw_stats_single(value[NW_IMP_MEDIAN].value > 0 ? value[NW_IMP_MEDIAN].value
                                                           : value[NW_IMP_TIME].value);
    time->min = value[NW_IMP_LEAST].value;
    time->max = value[NW_IMP_MOST].value;
    time->mean = value[NW_IMP_TIME].value;
    time->stddev = value[NW_IMP_STDDEV].value;
    time->p99 = value[NW_IMP_P99].value;
}

static void note_row(struct nw_perftest *test, const struct nw_imp_row *row, size_t line)
{
    const double iterations = row->value[NW_IMP_ITERATIONS].value;

    test->rows++;
    if (test->latency)
        return;
    compare_columns(test, row, line);
    test->best_bits = fmax(test->best_bits, 8 * row->value[NW_IMP_RATE].value);
    if (row->value[NW_IMP_BYTES].value <= SMALL_BYTES && iterations <= FEW_ITERATIONS &&
        test->small_rows++ == 0)
        test->few_line = line;
}

nw_rc nw_perftest_add_row(struct nw_perftest *test, const struct nw_imp_row *row, size_t line)
{
    const struct nw_perftest_facts *facts = &test->facts;
    const double bytes = row->value[NW_IMP_BYTES].value,
                 messages = row->value[NW_IMP_MESSAGES].value;
    const double share = facts->both_ways ? 0.5 : 1; /* of the sum */
    const bool none =
        test->latency ? !(row->value[NW_IMP_TIME].value > 0) : !(row->value[NW_IMP_RATE].value > 0);
    struct nw_record *record;
    char name[24];

    if (none || !(bytes >= 1 && bytes < 9e18))
        return NW_OK;
    note_row(test, row, line);
    name_collective(test, name, sizeof name);
    NW_TRY(nw_imp_record(&test->imp, has_same_ends(facts) ? "loopback" : "nic", name, "verbs", line,
                         &record));
    set_ends(facts, record);
    record->bytes = (uint64_t)bytes;
    record->count = 1;
    if (test->latency) {
        set_latency(row, record);
        return NW_OK;
    }
    nw_imp_set_rate(record, row->value[NW_IMP_RATE].value * share);
    if (messages > 0)
        record->messages_per_s = messages * share;
    return NW_OK;
}

/* --- what is misleading --- */

static nw_rc tell_direction(const struct nw_perftest *test)
{
    const struct nw_imp *imp = &test->imp;

    if (test->latency)
        return NW_OK;
    if (test->facts.both_ways)
        return nw_imp_tell_both_ways(imp, test->facts.title_line, test->best_bits / 8);
    if (test->facts.titled)
        return NW_OK;
    return nw_imp_tell(imp, NW_FINDING_WARN, "direction-unknown", imp->line, "import the whole log",
                       "neither a title nor a command says whether the rates are one way or the "
                       "sum of both (-b); they are taken as one way");
}

static nw_rc tell_settings(const struct nw_perftest *test)
{
    const struct nw_imp *imp = &test->imp;
    const struct nw_perftest_facts *facts = &test->facts;

    if (has_same_ends(facts))
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "loopback", facts->title_line,
                           "run it between two hosts",
                           "both ends are the same port: no wire was used, and the NIC's own PCIe "
                           "link carries the data both ways"));
    if (facts->ethernet && facts->mtu > 0 && facts->mtu <= 1024)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "mtu-small", facts->title_line,
                           "set an MTU of 9000 on the interface at both ends and on the switch",
                           "the RDMA MTU is %u bytes: the Ethernet interface has its usual 1500",
                           facts->mtu));
    if (facts->frequency_line > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_INFO, "cpu-frequency", facts->frequency_line,
                           "cpupower frequency-set -g performance",
                           "the processor's clock was not steady; perftest counts its cycles, so "
                           "its times may be off a little"));
    if (!facts->gpu && !test->latency)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_INFO, "host-memory", facts->title_line,
                           "--use_cuda=0, or nodeworth bench --cases nic",
                           "the data came from host memory: this says nothing about the way "
                           "between GPU memory and the NIC"));
    return NW_OK;
}

static nw_rc tell_rows(const struct nw_perftest *test)
{
    const struct nw_imp *imp = &test->imp;

    if (test->small_rows > 0 && test->rows == 1)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "few-iterations", test->few_line,
                           "-D 10, or -n 20000 and more",
                           "few iterations of a small size without warm-up: the start-up is a part "
                           "of this rate"));
    if (test->disagree_count > 0)
        NW_TRY(nw_imp_tell(imp, NW_FINDING_WARN, "columns-disagree", test->disagree_line,
                           "do not use these rows",
                           "rows whose average and message rate contradict each other: %zu",
                           test->disagree_count));
    return NW_OK;
}

nw_rc nw_perftest_close(struct nw_perftest *test)
{
    struct nw_imp *imp = &test->imp;

    if (imp->run == NULL)
        return NW_OK;
    imp->run->context.rank_count = 2;
    imp->run->context.host_count = has_same_ends(&test->facts) ? 1 : 2;
    if (imp->run->record_count > 0) {
        NW_TRY(tell_direction(test));
        NW_TRY(tell_settings(test));
        NW_TRY(tell_rows(test));
    }
    NW_TRY(nw_imp_close(imp, "no row of a table follows: the test did not run, or the log ends "
                             "before its result"));
    test->columns.count = 0;
    test->rows = test->small_rows = test->few_line = 0;
    test->disagree_count = test->disagree_line = 0;
    test->best_bits = 0;
    return NW_OK;
}
