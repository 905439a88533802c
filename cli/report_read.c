#include "cli/report_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/inputs.h"

#define SMALL_BYTES (32 << 20) /* such a file is kept whole */
#define KEPT_WHOLE  30000      /* records of a large one, before anything is left out */
#define KEPT_ALIKE  9          /* of one identity: their middle one is shown */
#define KEPT_FAILED 3000       /* further ones that failed or were wrong */
#define KEPT_SLOW   3000       /* further pairs: the slowest */
#define RUNS_WHOLE  16         /* with settings and topologies */
#define TABLE_BITS  18

struct slow_pair {
    struct nw_record record;
    size_t run;
};

struct keeper {
    struct nw_results *results;
    uint64_t *identities; /* 0: free; the lowest bits count */
    size_t identity_count, kept, failed, left_out, first_run;
    struct slow_pair *slow; /* a heap, the fastest on top */
    size_t slow_count;
};

/* ---- identities --------------------------------------------------------------------------------
 */

static uint64_t mix(uint64_t hash, const void *data, size_t length)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

static uint64_t identity_of(const struct nw_record *record)
{
    const char *const texts[] = {record->case_name, record->collective, record->lane,
                                 record->features,  record->dtype,      record->op,
                                 record->host_a,    record->host_b,     record->nic_a,
                                 record->nic_b,     record->memory};
    const uint64_t numbers[] = {
        (uint64_t)record->root,
        (uint64_t)record->rank_count,
        (uint64_t)record->host_count,
        record->bytes,
        record->in_place,
        (uint64_t)record->peer_a,
        (uint64_t)record->peer_b,
        record->m,
        record->n,
        record->k,
        record->piece_bytes,
        (uint64_t)record->stream_count,
    };
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        hash = mix(hash, texts[i], strlen(texts[i]) + 1);
    return mix(hash, numbers, sizeof numbers);
}

/* Was it seen often enough? Once the table is full, every new one was. */
static bool is_known(struct keeper *keeper, const struct nw_record *record)
{
    const uint64_t mask = ((uint64_t)1 << TABLE_BITS) - 1;
    const uint64_t hash = identity_of(record) | 1 << 8, key = hash & ~(uint64_t)0xff;

    for (uint64_t at = hash >> 20 & mask;; at = (at + 1) & mask) {
        uint64_t *slot = &keeper->identities[at];

        if (*slot == 0) {
            if (keeper->identity_count > mask / 2)
                return true;
            keeper->identity_count++;
            *slot = key;
        }
        if ((*slot & ~(uint64_t)0xff) != key)
            continue;
        if ((*slot & 0xff) >= KEPT_ALIKE)
            return true;
        ++*slot;
        return false;
    }
}

/* ---- the slowest pairs -------------------------------------------------------------------------
 */

static double rate_of(const struct slow_pair *pair)
{
    const struct nw_record *record = &pair->record;

    return isfinite(record->busbw_bytes_per_s) ? record->busbw_bytes_per_s
                                               : record->algbw_bytes_per_s;
}

static void sift(struct slow_pair *heap, size_t count, size_t at)
{
    for (;;) {
        size_t most = at;

        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (rate_of(&heap[child]) > rate_of(&heap[most]))
                most = child;
        if (most == at)
            return;
        const struct slow_pair pair = heap[at];

        heap[at] = heap[most];
        heap[most] = pair;
        at = most;
    }
}

/* Takes the record's contents over where it is kept. */
static void keep_slow(struct keeper *keeper, struct nw_record *record)
{
    struct slow_pair pair = {.record = *record, .run = keeper->results->run_count - 1};

    if (keeper->slow_count < KEPT_SLOW) {
        keeper->slow[keeper->slow_count++] = pair;
        nw_record_init(record);
        if (keeper->slow_count == KEPT_SLOW)
            for (size_t i = KEPT_SLOW; i > 0; i--)
                sift(keeper->slow, KEPT_SLOW, i - 1);
        return;
    }
    keeper->left_out++;
    if (!(rate_of(&pair) < rate_of(&keeper->slow[0])))
        return;
    nw_record_free(&keeper->slow[0].record);
    keeper->slow[0] = pair;
    nw_record_init(record);
    sift(keeper->slow, KEPT_SLOW, 0);
}

/* ---- the visitor -------------------------------------------------------------------------------
 */

static nw_rc take_context(void *user, struct nw_context *context,
                          const struct nw_results_place *place)
{
    struct keeper *keeper = user;
    struct nw_run *run = nw_results_add_run(keeper->results);

    (void)place;
    if (run == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a run of the results");
    nw_context_free(&run->context);
    run->context = *context;
    nw_context_init(context);
    if (keeper->results->run_count - keeper->first_run > RUNS_WHOLE) {
        json_t **settings[] = {&run->context.environment, &run->context.plan,
                               &run->context.topology,    &run->context.binding,
                               &run->context.lanes,       &run->context.gpus};

        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
            json_decref(*settings[i]);
            *settings[i] = NULL;
        }
    }
    return NW_OK;
}

static nw_rc keep(struct keeper *keeper, struct nw_record *record)
{
    keeper->kept++;
    return nw_run_add_record(&keeper->results->runs[keeper->results->run_count - 1], record);
}

static nw_rc take_record(void *user, struct nw_record *record, const struct nw_results_place *place)
{
    struct keeper *keeper = user;
    const bool bad = record->rc != NW_OK || record->wrong_elements > 0;
    const bool known = is_known(keeper, record);

    (void)place;
    if (keeper->kept < KEPT_WHOLE && !known)
        return keep(keeper, record);
    if (bad && keeper->failed < KEPT_FAILED) {
        keeper->failed++;
        return keep(keeper, record);
    }
    if (!bad && (strcmp(record->case_name, "pairs") == 0 || strcmp(record->case_name, "p2p") == 0))
        keep_slow(keeper, record);
    else if (!bad && !known && nw_record_is_collective(record) && keeper->kept < 2 * KEPT_WHOLE)
        return keep(keeper, record);
    else
        keeper->left_out++;
    return NW_OK;
}

static nw_rc take_finding(void *user, const struct nw_finding *finding,
                          const struct nw_results_place *place)
{
    struct keeper *keeper = user;
    struct nw_findings *findings =
        &keeper->results->runs[keeper->results->run_count - 1].context.findings;

    (void)place;
    return findings->count < KEPT_FAILED ? nw_findings_copy_one(findings, finding) : NW_OK;
}

static nw_rc take_end(void *user)
{
    struct keeper *keeper = user;

    keeper->results->runs[keeper->results->run_count - 1].context.complete = true;
    return NW_OK;
}

static nw_rc read_large(const char *path, struct nw_results *results, size_t *left_out)
{
    struct keeper keeper = {.results = results, .first_run = results->run_count};
    nw_rc rc = NW_OK;

    keeper.identities = calloc((size_t)1 << TABLE_BITS, sizeof *keeper.identities);
    keeper.slow = calloc(KEPT_SLOW, sizeof *keeper.slow);
    if (keeper.identities == NULL || keeper.slow == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory to read %s", path);
    if (rc == NW_OK)
        rc = nw_results_each(path, &(struct nw_results_visitor){.user = &keeper,
                                                                .brief = true,
                                                                .on_context = take_context,
                                                                .on_record = take_record,
                                                                .on_finding = take_finding,
                                                                .on_end = take_end});
    for (size_t i = 0; i < keeper.slow_count; i++) {
        if (rc == NW_OK)
            rc = nw_run_add_record(&results->runs[keeper.slow[i].run], &keeper.slow[i].record);
        nw_record_free(&keeper.slow[i].record);
    }
    free(keeper.slow);
    free(keeper.identities);
    *left_out += keeper.left_out;
    return rc;
}

nw_rc nw_report_read(const char *path, struct nw_results *results, size_t *left_out)
{
    struct stat status;
    const size_t before = nw_results_record_count(results);
    FILE *file = strcmp(path, "-") != 0 ? fopen(path, "r") : NULL;
    const bool ours = file != NULL && fstat(fileno(file), &status) == 0 &&
                      S_ISREG(status.st_mode) && status.st_size > SMALL_BYTES && getc(file) == '{';

    if (file != NULL)
        fclose(file);
    if (!ours)
        return nw_cli_read_measured(path, results);
    NW_TRY(read_large(path, results, left_out));
    if (nw_results_record_count(results) == before)
        return nw_fail(NW_EUSAGE, "%s: holds no measurement; nodeworth import says what it is",
                       path);
    return NW_OK;
}
