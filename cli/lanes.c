#include "cli/lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/finding_json.h"
#include "base/json.h"
#include "base/units.h"
#include "bench/agree.h"
#include "cli/cli.h"
#include "cli/lane_process.h"
#include "cli/leftovers.h"
#include "results/results.h"

struct lanes {
    const struct nw_cli_measure *how;
    struct nw_lane_facts facts;
    json_t *list;            /* of the context: what was asked for */
    size_t number, count;    /* of the lane that is run, from 1; of those that can be run */
    bool told;               /* rank 0: the context has been handed out */
    struct nw_findings held; /* rank 0: findings before it */
    size_t record_count;     /* all lanes' */
    char last[128];          /* rank 0: the last record, in words */
    bool wrong, broke;
};

/* ---- what is asked for --------------------------------------------------------------------------
 */

static bool asks_for(const struct nw_plan *plan, const char *collective)
{
    for (size_t i = 0; i < plan->coll_count; i++)
        if (strcmp(plan->colls[i]->name, collective) == 0)
            return true;
    return false;
}

static bool can_run(const struct lanes *lanes, const struct nw_lane *lane, char *why, size_t size)
{
    if (!nw_lane_fits(lane, &lanes->facts, why, size))
        return false;
    if (lane->only == NULL || asks_for(lanes->how->plan, lane->only))
        return true;
    snprintf(why, size, "the algorithm exists for %s, which is not asked for", lane->only);
    return false;
}

static nw_rc add_lane(struct lanes *lanes, const struct nw_lane *lane)
{
    json_t *entry = json_object(), *environment = json_object();
    const struct nw_lane_setting *setting = nw_lane_settings(lane, &lanes->facts);
    char why[160];
    nw_rc rc = json_array_append_new(lanes->list, entry) == 0
                   ? NW_OK
                   : nw_fail(NW_ENOMEM, "no memory for the lanes");

    if (rc != NW_OK) {
        json_decref(environment);
        return rc;
    }
    NW_TRY(nw_json_set_new(entry, "environment", environment));
    NW_TRY(nw_json_set_text(entry, "name", lane->name));
    NW_TRY(nw_json_set_text(entry, "title", lane->title));
    for (; setting->name != NULL; setting++)
        NW_TRY(nw_json_set_text(environment, setting->name, setting->value));
    if (can_run(lanes, lane, why, sizeof why))
        lanes->count++;
    else
        NW_TRY(nw_json_set_text(entry, "left_out", why));
    return NW_OK;
}

static nw_rc list_lanes(struct lanes *lanes)
{
    lanes->list = json_array();
    for (size_t i = 0; i < lanes->how->plan->lane_count; i++)
        NW_TRY(add_lane(lanes, lanes->how->plan->lanes[i]));
    return NW_OK;
}

/* ---- events (rank 0) ----------------------------------------------------------------------------
 */

static nw_rc hand_out_finding(struct lanes *lanes, const struct nw_finding *finding)
{
    const struct nw_bench_events *events = lanes->how->events;

    if (!lanes->told)
        return nw_findings_add(&lanes->held, finding->severity, finding->code, finding->where,
                               finding->remedy, "%s", finding->text);
    return events->on_finding != NULL ? events->on_finding(events->user, finding) : NW_OK;
}

/* The first lane's circumstances are the run's; but the plan and the environment are this
 * process's, before a lane has forced anything. */
static nw_rc hand_out_context(struct lanes *lanes, struct nw_context *context)
{
    const struct nw_bench_events *events = lanes->how->events;
    json_t *plan, *environment;

    if (lanes->told)
        return NW_OK;
    NW_TRY(nw_plan_to_json(lanes->how->plan, &plan));
    json_decref(context->plan);
    context->plan = plan;
    NW_TRY(nw_bench_environment(&environment));
    json_decref(context->environment);
    context->environment = environment;
    json_decref(context->lanes);
    context->lanes = json_incref(lanes->list);
    lanes->told = true;
    if (events->on_context != NULL)
        NW_TRY(events->on_context(events->user, context));
    for (size_t i = 0; i < lanes->held.count; i++)
        NW_TRY(hand_out_finding(lanes, &lanes->held.items[i]));
    nw_findings_free(&lanes->held);
    return NW_OK;
}

static nw_rc take_context(struct lanes *lanes, const json_t *json)
{
    struct nw_context context;
    nw_rc rc;

    NW_TRY(nw_context_from_json(json, "worker", &context));
    rc = hand_out_context(lanes, &context);
    nw_context_free(&context);
    return rc;
}

static nw_rc take_record(struct lanes *lanes, const json_t *json, bool kept)
{
    const struct nw_bench_events *events = lanes->how->events;
    struct nw_record record;
    char size[32];
    nw_rc rc = NW_OK;

    NW_TRY(nw_record_from_json(json, "worker", &record));
    snprintf(lanes->last, sizeof lanes->last, "%s %s%s", record.collective,
             nw_format_bytes(size, record.bytes), record.in_place ? " in place" : "");
    lanes->record_count++;
    if (events->status != NULL)
        atomic_store(&events->status->records, lanes->record_count);
    if (events->on_record != NULL)
        rc = events->on_record(events->user, &record, kept);
    nw_record_free(&record);
    return rc;
}

static nw_rc take_finding(struct lanes *lanes, const json_t *json)
{
    struct nw_findings list = {0};
    nw_rc rc;

    NW_TRY(nw_finding_from_json(json, "worker", &list));
    rc = hand_out_finding(lanes, &list.items[0]);
    nw_findings_free(&list);
    return rc;
}

static nw_rc take_progress(struct lanes *lanes, const json_t *json)
{
    const struct nw_bench_events *events = lanes->how->events;
    struct nw_bench_progress progress = {.left_ns = NAN};
    const char *text = "";
    char titled[192];

    NW_TRY(nw_json_get_u64(json, "progress", "done", true, &progress.done));
    NW_TRY(nw_json_get_u64(json, "progress", "total", true, &progress.total));
    NW_TRY(nw_json_get_text(json, "progress", "text", false, &text));
    NW_TRY(nw_json_get_real(json, "progress", "left_ns", false, &progress.left_ns));
    if (lanes->count > 1) /* what the lanes behind this one take is not known yet */
        progress.left_ns = lanes->number < lanes->count ? NAN : progress.left_ns;
    snprintf(titled, sizeof titled, "%s", text);
    if (lanes->count > 1)
        snprintf(titled, sizeof titled, "lane %zu/%zu: %.150s", lanes->number, lanes->count, text);
    progress.text = titled;
    if (events->on_progress != NULL)
        events->on_progress(events->user, &progress);
    return NW_OK;
}

static nw_rc on_event(void *user, unsigned kind, const json_t *json)
{
    struct lanes *lanes = user;

    switch ((enum nw_worker_event)kind) {
    case NW_WORKER_CONTEXT:
        return take_context(lanes, json);
    case NW_WORKER_RECORD:
        return take_record(lanes, json, false);
    case NW_WORKER_KEPT:
        return take_record(lanes, json, true);
    case NW_WORKER_FINDING:
        return take_finding(lanes, json);
    case NW_WORKER_PROGRESS:
        return take_progress(lanes, json);
    }
    return nw_fail(NW_EPEER, "a worker sent something unknown (%u)", kind);
}

/* ---- a lane -------------------------------------------------------------------------------------
 */

static bool is_in(const char *list, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = list; at != NULL;
         at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

/* What of the plan the lane measures: the device's own cases once, what its algorithm has. */
static nw_rc plan_of(const struct lanes *lanes, const struct nw_lane *lane, char *cases,
                     size_t size, struct nw_plan *plan_out)
{
    const char *further = lanes->how->further_case;

    *plan_out = *lanes->how->plan;
    plan_out->lanes_text = NULL;
    if (!nw_bench_cases_of(lanes->how->plan, lanes->number == 1, lane->only != NULL, cases, size))
        return nw_fail(NW_ENOTSUP, "nothing of the plan depends on this lane");
    plan_out->cases_text =
        lanes->number > 1 && further != NULL && is_in(cases, further) ? further : cases;
    if (lane->only != NULL)
        plan_out->collectives_text = lane->only;
    return NW_OK;
}

/* Rank 0 says it at once, too: the run may go on for long. */
static nw_rc tell_broken(struct lanes *lanes, const struct nw_lane *lane,
                         const struct nw_relay_end *end, size_t record_count)
{
    struct nw_findings list = {0};
    char where[32], count[192];
    nw_rc rc;

    lanes->broke = true;
    if (lanes->how->comm->rank != 0)
        return NW_OK;
    snprintf(where, sizeof where, "lane %s", lane->name);
    snprintf(count, sizeof count, "before its first record");
    if (record_count > 0)
        snprintf(count, sizeof count, "after %zu record%s, the last %s", record_count,
                 record_count == 1 ? "" : "s", lanes->last);
    rc = nw_findings_add(&list, NW_FINDING_FAIL, "lane-broken", where,
                         "what was measured stands; NCCL_DEBUG=WARN has NCCL's own words, --resume "
                         "tries the rest again",
                         "%s; lane %s given up %s", end->text, lane->name, count);
    if (rc == NW_OK) {
        nw_message("%s", list.items[0].text);
        rc = hand_out_finding(lanes, &list.items[0]);
    }
    nw_findings_free(&list);
    return rc;
}

/* Everything of the lane is over on all ranks: what did it leave? */
static nw_rc clear_away(struct lanes *lanes, time_t began)
{
    struct nw_comm *comm = lanes->how->comm;

    NW_TRY(comm->ops->barrier(comm));
    if (comm->local_rank == 0)
        nw_clear_leftovers(began);
    return comm->ops->barrier(comm);
}

/* All ranks ended together, but for a reason that another lane need not have. Without a GPU, or
 * with bad input, the first lane is as far as it goes. */
static bool costs_the_lane(const struct lanes *lanes, nw_rc rc)
{
    return rc == NW_ENOMEM || (lanes->number > 1 && (rc == NW_ENODEV || rc == NW_EUSAGE));
}

static nw_rc run_lane(struct lanes *lanes, const struct nw_lane *lane)
{
    const struct nw_bench_events *events = lanes->how->events;
    const size_t records_before = lanes->record_count;
    const time_t began = time(NULL);
    struct nw_relay_end end = {.rc = NW_OK};
    struct nw_lane_process process = {.comm = lanes->how->comm,
                                      .lane = lane,
                                      .settings = nw_lane_settings(lane, &lanes->facts),
                                      .generation = (int)lanes->number,
                                      .status = events->status,
                                      .done = events->done,
                                      .done_count = events->done_count,
                                      .on_event = on_event,
                                      .user = lanes};
    struct nw_plan plan;
    char cases[256];

    NW_TRY(plan_of(lanes, lane, cases, sizeof cases, &plan));
    process.plan = &plan;
    NW_TRY(nw_lane_process_run(&process, &end));
    lanes->wrong |= end.rc == NW_EWRONG;
    if (!end.broken && !costs_the_lane(lanes, end.rc))
        return end.rc == NW_EWRONG ? NW_OK : end.rc;
    NW_TRY(nw_agree(lanes->how->comm,
                    tell_broken(lanes, lane, &end, lanes->record_count - records_before)));
    return clear_away(lanes, began);
}

/* Nothing there that the plan asks for and that can be measured: all ranks know why. */
static nw_rc tell_empty(struct lanes *lanes, const struct nw_lane *lane)
{
    struct nw_findings list = {0};
    char why[sizeof nw_last_error()->text], where[32];
    nw_rc rc = NW_OK;

    snprintf(why, sizeof why, "%s", nw_last_error()->text);
    snprintf(where, sizeof where, "lane %s", lane->name);
    if (lanes->how->comm->rank == 0) {
        rc = nw_findings_add(&list, NW_FINDING_INFO, "lane-empty", where, NULL, "%s", why);
        if (rc == NW_OK)
            rc = hand_out_finding(lanes, &list.items[0]);
        nw_findings_free(&list);
    }
    return nw_agree(lanes->how->comm, rc);
}

static nw_rc run_lanes(struct lanes *lanes)
{
    const struct nw_plan *plan = lanes->how->plan;
    char why[160];

    for (size_t i = 0; i < plan->lane_count; i++) {
        nw_rc rc;

        if (!can_run(lanes, plan->lanes[i], why, sizeof why))
            continue;
        lanes->number++;
        rc = run_lane(lanes, plan->lanes[i]);
        if (rc == NW_ENOTSUP)
            rc = tell_empty(lanes, plan->lanes[i]);
        NW_TRY(rc);
    }
    return NW_OK;
}

/* No lane came so far as to tell about the hosts. */
static nw_rc tell_hosts(struct lanes *lanes)
{
    const struct nw_cli_measure *how = lanes->how;
    struct nw_context context;
    nw_rc rc = NW_OK;

    nw_context_init(&context);
    NW_TRY(nw_bench_describe(how->plan, how->comm, how->events->version, &context));
    snprintf(context.backend, sizeof context.backend, "nccl");
    if (how->comm->rank == 0)
        rc = hand_out_context(lanes, &context);
    nw_context_free(&context);
    return nw_agree(how->comm, rc);
}

static nw_rc conclude(struct lanes *lanes)
{
    struct nw_comm *comm = lanes->how->comm;
    int told = lanes->told, none = lanes->record_count == 0;

    NW_TRY(comm->ops->share(comm, &told, sizeof told, 0));
    NW_TRY(comm->ops->share(comm, &none, sizeof none, 0));
    if (!told)
        NW_TRY(tell_hosts(lanes));
    if (lanes->wrong)
        return nw_fail(NW_EWRONG, "wrong data: see the findings");
    if (none && !lanes->broke)
        return nw_fail(NW_ENOTSUP, "nothing of the plan could be measured here");
    return NW_OK;
}

/* No GPU, driver or NCCL on some rank: the reason into the run's findings, then MPI it is. But not
 * when the first lane was under way. */
static nw_rc fall_back(const struct lanes *lanes)
{
    const struct nw_cli_measure *how = lanes->how;
    const struct nw_err reason = *nw_last_error();
    const bool surplus = reason.rc == NW_EUSAGE; /* GPUs are there, and too few */
    int told = lanes->told;

    NW_TRY(how->comm->ops->share(how->comm, &told, sizeof told, 0));
    if (told)
        return nw_fail_at(reason.rc, reason.lib, reason.lib_code, reason.where, "%s", reason.text);
    NW_TRY(nw_findings_add(&how->comm->findings, surplus ? NW_FINDING_WARN : NW_FINDING_INFO,
                           "no-nccl", "", NULL, "measured with MPI on host memory: %s",
                           reason.text));
    nw_clear_error();
    return nw_bench_run(how->plan, how->comm, how->events);
}

/* What opening this communicator found is of the launch, and so of every lane; how MPI moves
 * messages within a host is not. */
static nw_rc hold_launch(struct lanes *lanes)
{
    const struct nw_findings *list = &lanes->how->comm->findings;

    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].code, "mpi-restricted") != 0)
            NW_TRY(nw_findings_copy_one(&lanes->held, &list->items[i]));
    return NW_OK;
}

nw_rc nw_cli_measure(const struct nw_cli_measure *how, bool *lane_broke_out)
{
    struct lanes lanes = {.how = how};
    nw_rc rc;

    *lane_broke_out = false;
    if (how->plan->lane_count == 0)
        return nw_bench_run(how->plan, how->comm, how->events);
    NW_TRY(nw_lane_look(how->comm, &lanes.facts));
    rc = nw_agree(how->comm, list_lanes(&lanes));
    how->comm->gentle = true; /* this process only serves; the worker needs the CPU */
    if (rc == NW_OK)
        rc = nw_agree(how->comm, hold_launch(&lanes));
    if (rc == NW_OK)
        rc = run_lanes(&lanes);
    how->comm->gentle = false;
    if (rc == NW_OK)
        rc = conclude(&lanes);
    else if ((rc == NW_ENODEV || rc == NW_EUSAGE) && strcmp(how->plan->backend, "auto") == 0)
        rc = fall_back(&lanes);
    json_decref(lanes.list);
    nw_findings_free(&lanes.held);
    *lane_broke_out = lanes.broke;
    return rc;
}
