/* Rank 0's part: receives, tells the hosts of each other, notices who stays silent. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/finding_json.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/check_parts.h"

/* From the first end to the last, where a host is silent: the others need not wait longer to try
 * each other. */
#define ENDS_WAIT_NS 3e9

static int host_of_first(const struct nw_check_hub *hub, int rank)
{
    const int host = hub->comm->host_of_rank[rank];

    return hub->first_rank[host] == rank ? host : -1;
}

static nw_rc name_hosts(struct nw_check_hub *hub)
{
    struct nw_check_gathered *gathered = hub->gathered;
    const struct nw_comm *comm = hub->comm;

    gathered->host_count = (size_t)comm->host_count;
    gathered->rank_count = comm->rank_count;
    gathered->hosts = calloc(gathered->host_count, sizeof *gathered->hosts);
    gathered->places = calloc((size_t)comm->rank_count, sizeof *gathered->places);
    gathered->environments = calloc((size_t)comm->rank_count, sizeof(json_t *));
    hub->heard_ns = calloc(gathered->host_count, sizeof *hub->heard_ns);
    hub->has_end = calloc(gathered->host_count, sizeof *hub->has_end);
    hub->has_facts = calloc(gathered->host_count, sizeof *hub->has_facts);
    hub->first_rank = calloc(gathered->host_count, sizeof *hub->first_rank);
    hub->rank_answered = calloc((size_t)comm->rank_count, sizeof *hub->rank_answered);
    if (gathered->hosts == NULL || gathered->places == NULL || gathered->environments == NULL ||
        hub->heard_ns == NULL || hub->has_end == NULL || hub->has_facts == NULL ||
        hub->first_rank == NULL || hub->rank_answered == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %d hosts", comm->host_count);
    for (int rank = comm->rank_count - 1; rank >= 0; rank--) {
        hub->first_rank[comm->host_of_rank[rank]] = rank;
        gathered->hosts[comm->host_of_rank[rank]].rank_count++;
    }
    for (size_t host = 0; host < gathered->host_count; host++) {
        snprintf(gathered->hosts[host].name, sizeof gathered->hosts[host].name, "%s",
                 comm->host_names[host]);
        hub->heard_ns[host] = hub->began_ns;
    }
    return NW_OK;
}

nw_rc nw_check_hub_open(struct nw_comm *comm, struct nw_mail *mail, double silence_ns,
                        struct nw_check_gathered *gathered, struct nw_check_hub *hub)
{
    *hub = (struct nw_check_hub){.comm = comm,
                                 .mail = mail,
                                 .silence_ns = silence_ns,
                                 .began_ns = nw_now_ns(),
                                 .gathered = gathered};
    return name_hosts(hub);
}

/* ---- receiving ---------------------------------------------------------------------------------
 */

static nw_rc take_rank(struct nw_check_hub *hub, int from, const json_t *json)
{
    struct nw_check_gathered *gathered = hub->gathered;
    struct nw_check_host *host = &gathered->hosts[hub->comm->host_of_rank[from]];
    json_t *environment = json_object_get(json, "environment");
    struct nw_rank_place place;

    NW_TRY(nw_rank_place_from_json(json_object_get(json, "place"), "a rank's place", &place));
    if (hub->rank_answered[from] || place.rank != from)
        return NW_OK;
    hub->rank_answered[from] = true;
    gathered->places[from] = place; /* closed up at the end */
    gathered->environments[from] = json_incref(environment);
    if (host_of_first(hub, from) < 0)
        return NW_OK;
    NW_TRY(nw_json_get_field(json, "a rank", "mpi", false, host->mpi, sizeof host->mpi));
    return nw_json_get_field(json, "a rank", "version", false, host->version, sizeof host->version);
}

static nw_rc take_facts(struct nw_check_hub *hub, int index, const json_t *json)
{
    struct nw_check_host *host = &hub->gathered->hosts[index];
    const json_t *reading = json_object_get(json, "reading");
    struct nw_findings said = {0};
    nw_rc rc = nw_findings_from_json(json_object_get(json, "findings"), host->name, &said);

    for (size_t i = 0; i < said.count && rc == NW_OK; i++)
        rc = nw_findings_add(&hub->gathered->findings, said.items[i].severity, said.items[i].code,
                             host->name, said.items[i].remedy, "%s", said.items[i].text);
    nw_findings_free(&said);
    hub->has_facts[index] = true;
    if (rc != NW_OK || reading == NULL)
        return rc;
    return nw_topo_from_json(json_object_get(reading, "topology"), host->name, &host->topo);
}

static nw_rc take_tries(struct nw_check_hub *hub, int index, const json_t *json)
{
    struct nw_check_gathered *gathered = hub->gathered;
    struct nw_check_host *host = &gathered->hosts[index];
    struct nw_reach_end *ends = calloc(gathered->host_count, sizeof *ends);
    nw_rc rc;

    if (ends == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu hosts", gathered->host_count);
    for (size_t i = 0; i < gathered->host_count; i++)
        ends[i] = gathered->hosts[i].end;
    rc = host->tried ? NW_OK
                     : nw_reach_tries_from_json(json, host->name, ends, gathered->host_count,
                                                &host->tries, &host->try_count);
    host->tried = rc == NW_OK;
    free(ends);
    return rc;
}

static nw_rc take_json(struct nw_check_hub *hub, int from, int tag, const json_t *json)
{
    const int index = host_of_first(hub, from);

    if (tag == NW_CHECK_RANK)
        return take_rank(hub, from, json);
    if (index < 0)
        return NW_OK;
    hub->heard_ns[index] = nw_now_ns();
    switch (tag) {
    case NW_CHECK_ALIVE:
        return nw_json_get_field(json, "a host", "phase", false, hub->gathered->hosts[index].phase,
                                 sizeof hub->gathered->hosts[index].phase);
    case NW_CHECK_END:
        if (hub->peers_sent) /* too late to be tried */
            return NW_OK;
        NW_TRY(nw_reach_end_from_json(json, "a host", &hub->gathered->hosts[index].end));
        hub->has_end[index] = true;
        return NW_OK;
    case NW_CHECK_TRIES:
        return take_tries(hub, index, json);
    case NW_CHECK_FACTS:
        return take_facts(hub, index, json);
    default:
        return NW_OK;
    }
}

/* What one host says wrongly is its fault alone. */
nw_rc nw_check_hub_take(struct nw_check_hub *hub, int from, int tag, const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    const nw_rc rc = take_json(hub, from, tag, json);

    json_decref(json);
    if (rc == NW_OK || rc == NW_ENOMEM)
        return rc;
    return nw_findings_add(&hub->gathered->findings, NW_FINDING_WARN, "answer-garbled",
                           hub->comm->host_names[hub->comm->host_of_rank[from]],
                           "run the same version of nodeworth on all hosts",
                           "what rank %d sent cannot be read: %s", from, nw_last_error()->text);
}

/* ---- rounds ------------------------------------------------------------------------------------
 */

static bool is_silent(const struct nw_check_hub *hub, size_t host)
{
    return (double)(nw_now_ns() - hub->heard_ns[host]) > hub->silence_ns;
}

static nw_rc send_ends(struct nw_check_hub *hub)
{
    const struct nw_check_gathered *gathered = hub->gathered;
    json_t *json = json_object(), *list = json_array(), *item;
    char *text = NULL;
    nw_rc rc = NW_OK;

    hub->peers_sent = true;
    for (size_t i = 0; i < gathered->host_count && rc == NW_OK; i++) {
        struct nw_reach_end end = gathered->hosts[i].end;

        snprintf(end.host, sizeof end.host, "%s", gathered->hosts[i].name);
        rc = nw_reach_end_to_json(&end, &item);
        if (rc == NW_OK)
            json_array_append_new(list, item);
    }
    if (rc == NW_OK)
        rc = nw_json_set_u64(json, "run", hub->began_ns >> 1);
    if (rc == NW_OK) {
        rc = nw_json_set_new(json, "ends", list);
        list = NULL;
    }
    if (rc == NW_OK) {
        text = json_dumps(json, JSON_COMPACT);
        rc = text != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for the list of hosts");
    }
    for (size_t i = 0; i < gathered->host_count && rc == NW_OK; i++)
        if (hub->has_end[i])
            rc = nw_mail_post(hub->mail, hub->first_rank[i], NW_CHECK_PEERS, text);
    free(text);
    json_decref(list);
    json_decref(json);
    return rc;
}

nw_rc nw_check_hub_step(struct nw_check_hub *hub, bool *done_out)
{
    const double since = (double)(nw_now_ns() - hub->began_ns);
    bool ends = true, done = true, ranks = true;

    for (size_t i = 0; i < hub->gathered->host_count; i++) {
        const struct nw_check_host *host = &hub->gathered->hosts[i];
        const bool has_all =
            hub->has_facts[i] && (host->tried || host->end.port == 0 || !hub->has_end[i]);

        ends &= hub->has_end[i];
        done &= has_all || is_silent(hub, i);
    }
    for (int rank = 0; rank < hub->comm->rank_count; rank++)
        ranks &= hub->rank_answered[rank];
    if (!hub->peers_sent && (ends || since > ENDS_WAIT_NS))
        NW_TRY(send_ends(hub));
    *done_out = done && hub->peers_sent && (ranks || since > hub->silence_ns);
    return NW_OK;
}

/* ---- the end -----------------------------------------------------------------------------------
 */

static nw_rc tell_silent(struct nw_check_hub *hub, size_t index)
{
    struct nw_check_host *host = &hub->gathered->hosts[index];
    char waited[32];

    host->answered =
        hub->has_facts[index] && (host->tried || host->end.port == 0 || !hub->has_end[index]);
    if (host->answered)
        return NW_OK;
    hub->gathered->all_answered = false;
    return nw_findings_add(&hub->gathered->findings, NW_FINDING_FAIL, "host-silent", host->name,
                           "log in there and look whether the process or the machine hangs; start "
                           "without this host",
                           "no answer for %s%s%s%s: what is not listed of it was not checked",
                           nw_format_ns(waited, hub->silence_ns),
                           host->phase[0] != '\0' ? " (its last words: " : "", host->phase,
                           host->phase[0] != '\0' ? ")" : "");
}

static nw_rc close_up_places(struct nw_check_hub *hub)
{
    struct nw_check_gathered *gathered = hub->gathered;

    for (int rank = 0; rank < hub->comm->rank_count; rank++) {
        const int host = hub->comm->host_of_rank[rank];

        if (hub->rank_answered[rank]) {
            gathered->places[gathered->place_count++] = gathered->places[rank];
            continue;
        }
        gathered->all_answered = false;
        if (gathered->hosts[host].answered)
            NW_TRY(nw_findings_add(&gathered->findings, NW_FINDING_FAIL, "rank-silent",
                                   gathered->hosts[host].name, NULL,
                                   "rank %d did not answer: its binding is unknown", rank));
    }
    return NW_OK;
}

nw_rc nw_check_hub_finish(struct nw_check_hub *hub)
{
    hub->gathered->all_answered = true;
    for (size_t i = 0; i < hub->gathered->host_count; i++)
        NW_TRY(tell_silent(hub, i));
    NW_TRY(close_up_places(hub));
    for (int rank = 0; rank < hub->comm->rank_count; rank++)
        NW_TRY(nw_mail_post(hub->mail, rank, NW_CHECK_STOP, "{}"));
    return NW_OK;
}

void nw_check_hub_close(struct nw_check_hub *hub)
{
    free(hub->heard_ns);
    free(hub->has_end);
    free(hub->has_facts);
    free(hub->first_rank);
    free(hub->rank_answered);
}
