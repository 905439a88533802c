#include "results/fleet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/name_list.h"
#include "base/units.h"

#define PAIR_FINDINGS_MAX 200
#define NIC_LEAST_BYTES   4096 /* of a message in a stream */

struct work {
    const struct nw_results *results;
    struct nw_fleet_report *report;
    struct nw_name_list ends[NW_FLEET_LEVELS], classes[NW_FLEET_LEVELS];
    int *host_of_end[NW_FLEET_LEVELS]; /* of ranks and NICs */
    int host_of_end_capacity[NW_FLEET_LEVELS], rank_count_capacity;
    struct nw_fleet_edge *edges[NW_FLEET_LEVELS];
    size_t edge_count[NW_FLEET_LEVELS], edge_capacity[NW_FLEET_LEVELS];
    const struct nw_run *largest_run; /* what largest_pair found last */
    const struct nw_record *largest_like;
    uint64_t largest_bytes;
};

static nw_rc index_of(struct nw_name_list *list, const char *name, int *index_out)
{
    const nw_rc rc = nw_name_list_index(list, name, NW_FLEET_ENDS_MAX, index_out);

    return rc != NW_EUSAGE
               ? rc
               : nw_fail(NW_EUSAGE,
                         "more than %d hosts, ranks or NICs to compare; give fewer files",
                         NW_FLEET_ENDS_MAX);
}

/* ---- edges -------------------------------------------------------------------------------------
 */

static nw_rc add_edge(struct work *work, int level, const struct nw_fleet_edge *edge)
{
    if (work->edge_count[level] == work->edge_capacity[level]) {
        const size_t capacity = 2 * work->edge_capacity[level] + 64;
        struct nw_fleet_edge *edges = realloc(work->edges[level], capacity * sizeof *edges);

        if (edges == NULL)
            return nw_fail(NW_ENOMEM, "no memory for %zu pairs", capacity);
        work->edges[level] = edges;
        work->edge_capacity[level] = capacity;
    }
    work->edges[level][work->edge_count[level]++] = *edge;
    return NW_OK;
}

static nw_rc host_of(struct work *work, const char *name, int *index_out)
{
    NW_TRY(index_of(&work->ends[NW_FLEET_HOSTS], name, index_out));
    if (*index_out < work->rank_count_capacity)
        return NW_OK;
    const int capacity = 2 * work->rank_count_capacity + 64;
    int *counts = realloc(work->report->rank_count_of_host, (size_t)capacity * sizeof *counts);

    if (counts == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %d hosts", capacity);
    memset(counts + work->rank_count_capacity, 0,
           (size_t)(capacity - work->rank_count_capacity) * sizeof *counts);
    work->report->rank_count_of_host = counts;
    work->rank_count_capacity = capacity;
    return NW_OK;
}

/* A rank or a NIC. */
static nw_rc end_of(struct work *work, int level, const char *host, const char *name,
                    int *index_out)
{
    int host_index, *capacity = &work->host_of_end_capacity[level];

    NW_TRY(host_of(work, host, &host_index));
    NW_TRY(index_of(&work->ends[level], name, index_out));
    if (*index_out >= *capacity) {
        const int more = 2 * *capacity + 64;
        int *hosts = realloc(work->host_of_end[level], (size_t)more * sizeof *hosts);

        if (hosts == NULL)
            return nw_fail(NW_ENOMEM, "no memory for %d ranks or NICs", more);
        work->host_of_end[level] = hosts;
        *capacity = more;
    }
    work->host_of_end[level][*index_out] = host_index;
    return NW_OK;
}

static nw_rc rank_of(struct work *work, const char *host, int rank, int *index_out)
{
    char name[96];

    snprintf(name, sizeof name, "rank %d on %s", rank, host);
    return end_of(work, NW_FLEET_RANKS, host, name, index_out);
}

static bool is_case(const struct nw_record *record, const char *name)
{
    return strcmp(record->case_name, name) == 0;
}

static double rate_of(const struct nw_record *record)
{
    return record->rc == NW_OK && record->busbw_bytes_per_s > 0 ? record->busbw_bytes_per_s : NAN;
}

static bool is_one_way(const struct nw_record *record)
{
    return strcmp(record->collective, NW_FLEET_ONE_WAY) == 0;
}

/* Whose rates a retest belongs to. */
static const char *pair_collective(const struct nw_record *record)
{
    return is_one_way(record) ? "sendrecv" : record->collective;
}

/* Of pairs only the largest size is a bandwidth. */
static uint64_t largest_pair(struct work *work, const struct nw_run *run,
                             const struct nw_record *like)
{
    uint64_t most = 0;

    if (run == work->largest_run &&
        strcmp(pair_collective(like), pair_collective(work->largest_like)) == 0 &&
        strcmp(like->lane, work->largest_like->lane) == 0)
        return work->largest_bytes;
    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (is_case(record, "pairs") && strcmp(record->collective, pair_collective(like)) == 0 &&
            strcmp(record->lane, like->lane) == 0 && record->bytes > most)
            most = record->bytes;
    }
    work->largest_run = run;
    work->largest_like = like;
    work->largest_bytes = most;
    return most;
}

static nw_rc add_pair_of_ranks(struct work *work, const struct nw_record *record)
{
    struct nw_fleet_edge edge = {
        .bytes_per_s = rate_of(record),
        .high_bytes_per_s = nw_fleet_high(rate_of(record), &record->time_ns),
        .low_bytes_per_s = nw_fleet_low(rate_of(record), &record->time_ns)};
    const bool one_way = is_one_way(record);
    char title[128], size[32];

    NW_TRY(rank_of(work, record->host_a, record->peer_a, &edge.a));
    NW_TRY(rank_of(work, record->host_b, record->peer_b, &edge.b));
    snprintf(title, sizeof title, "%s %s, lane %s%s", pair_collective(record),
             nw_format_bytes(size, record->bytes), record->lane,
             strcmp(record->host_a, record->host_b) == 0 ? ", within a host" : "");
    NW_TRY(index_of(&work->classes[NW_FLEET_RANKS], title, &edge.class));
    if (!is_case(record, "retest"))
        return add_edge(work, NW_FLEET_RANKS, &edge);
    work->report->retest_count += !one_way;
    for (size_t i = 0; i < work->edge_count[NW_FLEET_RANKS]; i++) {
        struct nw_fleet_edge *old = &work->edges[NW_FLEET_RANKS][i];

        if (old->class == edge.class && old->a == edge.a && old->b == edge.b)
            nw_fleet_again(old, &edge, one_way);
    }
    return NW_OK;
}

static nw_rc add_pair_of_hosts(struct work *work, const struct nw_record *record,
                               const char *host_a, const char *host_b)
{
    struct nw_fleet_edge edge = {
        .bytes_per_s = rate_of(record),
        .high_bytes_per_s = nw_fleet_high(rate_of(record), &record->time_ns),
        .low_bytes_per_s = nw_fleet_low(rate_of(record), &record->time_ns)};
    const int per_host = record->rank_count / 2;
    char title[192], size[32];
    int length;

    NW_TRY(host_of(work, host_a, &edge.a));
    NW_TRY(host_of(work, host_b, &edge.b));
    if (per_host > work->report->rank_count_of_host[edge.a])
        work->report->rank_count_of_host[edge.a] = per_host;
    if (per_host > work->report->rank_count_of_host[edge.b])
        work->report->rank_count_of_host[edge.b] = per_host;
    length = snprintf(title, sizeof title, "%s, %d GPU%s a host", record->collective, per_host,
                      per_host == 1 ? "" : "s");
    /* A pairwise summary is an average over sizes; `bytes` is the largest. Lanes and types of
     * other tools are often not known. */
    if (record->bytes > 0 && !is_case(record, "pairwise"))
        length += snprintf(title + length, sizeof title - (size_t)length, ", %s",
                           nw_format_bytes(size, record->bytes));
    else if (record->bytes > 0)
        length += snprintf(title + length, sizeof title - (size_t)length, ", up to %s",
                           nw_format_bytes(size, record->bytes));
    if (strcmp(record->lane, "auto") != 0)
        length +=
            snprintf(title + length, sizeof title - (size_t)length, ", lane %s", record->lane);
    if (strcmp(record->dtype, "unknown") != 0)
        snprintf(title + length, sizeof title - (size_t)length, ", %s", record->dtype);
    NW_TRY(index_of(&work->classes[NW_FLEET_HOSTS], title, &edge.class));
    return edge.a != edge.b ? add_edge(work, NW_FLEET_HOSTS, &edge) : NW_OK;
}

/* A log of a collective over two hosts speaks by its largest size. */
static bool is_largest_of_two_hosts(const struct nw_run *run, const struct nw_record *record)
{
    if (run->context.host_count != 2 || run->context.hosts == NULL || !is_case(record, "coll") ||
        record->host_count != 2 || record->rank_count % 2 != 0 || record->in_place)
        return false;
    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *other = &run->records[i];

        if (is_case(other, "coll") && strcmp(other->collective, record->collective) == 0 &&
            strcmp(other->lane, record->lane) == 0 && !other->in_place &&
            (other->bytes > record->bytes || (other->bytes == record->bytes && other > record)))
            return false;
    }
    return true;
}

/* Streams; latencies and rates of small messages say nothing of a wire. Between NICs of other names
 * than each other's (off the rail) the way may lead through another switch. */
static nw_rc add_nics(struct work *work, const struct nw_record *record)
{
    const double rate =
        record->rc == NW_OK && record->algbw_bytes_per_s > 0 ? record->algbw_bytes_per_s : NAN;
    struct nw_fleet_edge edge = {.bytes_per_s = rate,
                                 .high_bytes_per_s = nw_fleet_high(rate, &record->time_ns),
                                 .low_bytes_per_s = nw_fleet_low(rate, &record->time_ns)};
    char name[160], title[160], size[32];

    if (record->bytes < NIC_LEAST_BYTES)
        return NW_OK;
    snprintf(name, sizeof name, "%s %s", record->host_a, record->nic_a);
    NW_TRY(end_of(work, NW_FLEET_NICS, record->host_a, name, &edge.a));
    snprintf(name, sizeof name, "%s %s", record->host_b, record->nic_b);
    NW_TRY(end_of(work, NW_FLEET_NICS, record->host_b, name, &edge.b));
    snprintf(title, sizeof title, "%s %s, %s memory%s", record->collective,
             nw_format_bytes(size, record->bytes), record->memory,
             strcmp(record->nic_a, record->nic_b) == 0 ? "" : ", off the rail");
    NW_TRY(index_of(&work->classes[NW_FLEET_NICS], title, &edge.class));
    return add_edge(work, NW_FLEET_NICS, &edge);
}

static nw_rc add_record(struct work *work, const struct nw_run *run, const struct nw_record *record)
{
    const bool named = record->host_a[0] != '\0' && record->host_b[0] != '\0';
    const bool pair = named && record->peer_a >= 0 && record->peer_b >= 0;

    work->report->simulated |= record->simulated;
    if (named && is_case(record, "nic") && record->nic_a[0] != '\0' && record->nic_b[0] != '\0')
        return add_nics(work, record);
    if (pair && is_case(record, "pairwise"))
        return add_pair_of_hosts(work, record, record->host_a, record->host_b);
    if (pair && (is_case(record, "pairs") || is_case(record, "retest")))
        return record->bytes == largest_pair(work, run, record) ? add_pair_of_ranks(work, record)
                                                                : NW_OK;
    if (is_largest_of_two_hosts(run, record))
        return add_pair_of_hosts(work, record, run->context.hosts[0].name,
                                 run->context.hosts[1].name);
    return NW_OK;
}

/* Hosts of a run with pairs stand in its order, also those that have none of them. */
static nw_rc add_hosts(struct work *work, const struct nw_run *run)
{
    bool pairs = false;
    int index;

    for (size_t i = 0; i < run->record_count && !pairs; i++)
        pairs = is_case(&run->records[i], "pairs") && run->records[i].host_a[0] != '\0';
    for (int i = 0; pairs && run->context.hosts != NULL && i < run->context.host_count; i++)
        NW_TRY(host_of(work, run->context.hosts[i].name, &index));
    return NW_OK;
}

static nw_rc collect(struct work *work)
{
    for (size_t r = 0; r < work->results->run_count; r++) {
        const struct nw_run *run = &work->results->runs[r];

        NW_TRY(add_hosts(work, run));
        for (size_t i = 0; i < run->record_count; i++)
            NW_TRY(add_record(work, run, &run->records[i]));
        for (int i = 0; run->context.hosts != NULL && i < run->context.host_count; i++)
            for (int h = 0; h < work->ends[NW_FLEET_HOSTS].count; h++)
                if (strcmp(work->ends[NW_FLEET_HOSTS].names[h], run->context.hosts[i].name) == 0 &&
                    run->context.hosts[i].rank_count > work->report->rank_count_of_host[h])
                    work->report->rank_count_of_host[h] = run->context.hosts[i].rank_count;
    }
    return NW_OK;
}

/* Pairs of ranks or of NICs are pairs of their hosts as well. */
static nw_rc merge_members(struct work *work, int level)
{
    const struct nw_fleet members = {.end_count = work->ends[level].count,
                                     .class_count = work->classes[level].count,
                                     .edges = work->edges[level],
                                     .edge_count = work->edge_count[level]};
    struct nw_fleet_edge *edges;
    size_t count;
    nw_rc rc = NW_OK;

    if (members.edge_count == 0)
        return NW_OK;
    NW_TRY(nw_fleet_merge(&members, work->host_of_end[level], &edges, &count));
    for (size_t i = 0; i < count && rc == NW_OK; i++) {
        rc = index_of(&work->classes[NW_FLEET_HOSTS], work->classes[level].names[edges[i].class],
                      &edges[i].class);
        if (rc == NW_OK)
            rc = add_edge(work, NW_FLEET_HOSTS, &edges[i]);
    }
    free(edges);
    return rc;
}

/* With one rank a host, pairs of ranks say the same again. */
static void drop_doubles(struct work *work)
{
    size_t kept = 0;

    if (work->ends[NW_FLEET_RANKS].count != work->ends[NW_FLEET_HOSTS].count)
        return;
    for (size_t i = 0; i < work->edge_count[NW_FLEET_RANKS]; i++) {
        const struct nw_fleet_edge *edge = &work->edges[NW_FLEET_RANKS][i];

        if (work->host_of_end[NW_FLEET_RANKS][edge->a] ==
            work->host_of_end[NW_FLEET_RANKS][edge->b])
            work->edges[NW_FLEET_RANKS][kept++] = *edge;
    }
    work->edge_count[NW_FLEET_RANKS] = kept;
}

/* ---- judging -----------------------------------------------------------------------------------
 */

static void hand_over(struct work *work, int index)
{
    static const struct {
        const char *kind, *kinds;
    } words[] = {[NW_FLEET_HOSTS] = {"host", "hosts"},
                 [NW_FLEET_RANKS] = {"rank", "ranks"},
                 [NW_FLEET_NICS] = {"nic", "NICs"}};
    struct nw_fleet_level *level = &work->report->levels[index];
    struct nw_name_list *ends = &work->ends[index];

    *level = (struct nw_fleet_level){.kind = words[index].kind,
                                     .kinds = words[index].kinds,
                                     .ends = ends->names,
                                     .host_of_end = work->host_of_end[index],
                                     .classes = work->classes[index].names,
                                     .edges = work->edges[index]};
    level->fleet = (struct nw_fleet){.end_count = ends->count,
                                     .class_count = work->classes[index].count,
                                     .edges = level->edges,
                                     .edge_count = work->edge_count[index]};
    ends->names = work->classes[index].names = NULL;
    ends->count = work->classes[index].count = 0;
    work->edges[index] = NULL;
    work->host_of_end[index] = NULL;
}

static nw_rc mark_lost(const struct nw_results *results, struct nw_fleet_report *report)
{
    struct nw_fleet_level *hosts = &report->levels[NW_FLEET_HOSTS];
    const int count = hosts->fleet.end_count;

    report->lost = calloc((size_t)count + 1, sizeof *report->lost);
    if (report->lost == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %d hosts", count);
    for (size_t r = 0; r < results->run_count; r++)
        for (size_t i = 0; i < results->runs[r].context.findings.count; i++) {
            const struct nw_finding *finding = &results->runs[r].context.findings.items[i];
            int host = 0;

            while (host < count && strcmp(hosts->ends[host], finding->where) != 0)
                host++;
            if (host == count || report->lost[host] ||
                strcmp(finding->code, NW_FLEET_HOST_FAILED) != 0)
                continue;
            report->lost[host] = true;
            NW_TRY(nw_findings_add(&report->findings, finding->severity, finding->code,
                                   finding->where, finding->remedy, "%s", finding->text));
        }
    hosts->fleet.lost = report->lost;
    return NW_OK;
}

static nw_rc judge(struct nw_fleet_report *report)
{
    const struct nw_fleet_level *hosts = &report->levels[NW_FLEET_HOSTS];
    for (int i = 0; i < NW_FLEET_LEVELS; i++) {
        struct nw_fleet_level *level = &report->levels[i];

        NW_TRY(nw_fleet_drop_cleared(&level->fleet, level->edges, &level->fleet.edge_count));
        NW_TRY(nw_fleet_score(&level->fleet, &level->scores));
    }
    for (int i = NW_FLEET_RANKS; i < NW_FLEET_LEVELS; i++)
        nw_fleet_excuse(&hosts->scores, report->levels[i].host_of_end, &report->levels[i].fleet,
                        &report->levels[i].scores);
    for (int i = 0; i < NW_FLEET_LEVELS; i++) {
        const struct nw_fleet_level *level = &report->levels[i];
        const struct nw_fleet_names names = {.kind = level->kind,
                                             .kinds = level->kinds,
                                             .ends = (const char *const *)level->ends,
                                             .classes = (const char *const *)level->classes};

        if (level->fleet.edge_count > 0)
            NW_TRY(nw_fleet_findings(&level->fleet, &level->scores, &names, PAIR_FINDINGS_MAX,
                                     &report->findings));
    }
    report->leave_out = calloc((size_t)hosts->fleet.end_count + 1, sizeof *report->leave_out);
    if (report->leave_out == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %d hosts", hosts->fleet.end_count);
    for (int i = 0; i < hosts->fleet.end_count; i++)
        report->suspect_count += nw_fleet_is_suspect(&hosts->scores.ends[i]);
    return nw_fleet_leave_out(&hosts->fleet, &hosts->scores, report->leave_out,
                              &report->leave_out_count);
}

nw_rc nw_fleet_of_results(const struct nw_results *results, struct nw_fleet_report *report_out)
{
    struct nw_fleet_report report = {.retest_count = 0};
    struct work work = {.results = results, .report = &report};
    nw_rc rc = collect(&work);

    for (int i = NW_FLEET_RANKS; i < NW_FLEET_LEVELS && rc == NW_OK; i++)
        rc = merge_members(&work, i);
    if (rc == NW_OK)
        drop_doubles(&work);
    if (rc == NW_OK && work.edge_count[NW_FLEET_HOSTS] + work.edge_count[NW_FLEET_RANKS] == 0)
        rc = nw_fail(NW_ENODEV, "no pair of hosts or ranks in the results; measure them: mpirun … "
                                "nodeworth bench --cases pairs");
    if (rc == NW_OK) {
        for (int i = 0; i < NW_FLEET_LEVELS; i++)
            hand_over(&work, i);
        rc = mark_lost(results, &report);
        if (rc == NW_OK)
            rc = judge(&report);
    }
    for (int i = 0; i < NW_FLEET_LEVELS; i++) {
        nw_name_list_free(&work.ends[i]);
        nw_name_list_free(&work.classes[i]);
        free(work.edges[i]);
        free(work.host_of_end[i]);
    }
    if (rc != NW_OK)
        nw_fleet_report_free(&report);
    else
        *report_out = report;
    return rc;
}

void nw_fleet_report_free(struct nw_fleet_report *report)
{
    for (int i = 0; i < NW_FLEET_LEVELS; i++) {
        struct nw_fleet_level *level = &report->levels[i];

        for (int k = 0; k < level->fleet.end_count; k++)
            free(level->ends[k]);
        for (int k = 0; k < level->fleet.class_count; k++)
            free(level->classes[k]);
        free(level->ends);
        free(level->host_of_end);
        free(level->classes);
        free(level->edges);
        nw_fleet_scores_free(&level->scores);
    }
    free(report->rank_count_of_host);
    free(report->leave_out);
    free(report->lost);
    nw_findings_free(&report->findings);
    *report = (struct nw_fleet_report){.retest_count = 0};
}
