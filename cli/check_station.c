/* A rank's own part of the gathering. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/finding_json.h"
#include "base/json.h"
#include "bench/bench.h"
#include "cli/check_parts.h"

#define ALIVE_NS 1000000000u

static nw_rc post_json(struct nw_check_station *station, int tag, json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);
    nw_rc rc;

    json_decref(json);
    if (text == NULL)
        return nw_fail(NW_ENOMEM, "no memory for what this rank tells");
    rc = nw_mail_post(station->mail, 0, tag, text);
    free(text);
    return rc;
}

/* CUDA_VISIBLE_DEVICES decides which GPU is meant, which the hub knows when it has the topology. */
static nw_rc send_rank(struct nw_check_station *station)
{
    const struct nw_comm *comm = station->comm;
    struct nw_rank_place place = {
        .rank = comm->rank, .host = comm->host_index, .local_rank = comm->local_rank, .gpu = -1};
    json_t *json = json_object(), *part;
    nw_rc rc = NW_OK;

    nw_rank_place_read("/sys", &place);
    NW_TRY_GOTO(nw_rank_place_to_json(&place, &part), out);
    NW_TRY_GOTO(nw_json_set_new(json, "place", part), out);
    NW_TRY_GOTO(nw_bench_environment(&part), out);
    NW_TRY_GOTO(nw_json_set_new(json, "environment", part), out);
    NW_TRY_GOTO(nw_json_set_text(json, "mpi", comm->library), out);
    NW_TRY_GOTO(nw_json_set_text(json, "version", station->how->version), out);
    return post_json(station, NW_CHECK_RANK, json);
out:
    json_decref(json);
    return rc;
}

static nw_rc begin_reach(struct nw_check_station *station)
{
    const struct nw_comm *comm = station->comm;
    json_t *json;

    /* The probe is one part of several: without it the others are checked. */
    if (nw_reach_open(getenv("NCCL_SOCKET_IFNAME"), comm->host_names[comm->host_index],
                      &station->reach) != NW_OK) {
        struct nw_reach_end none = {.port = 0};

        nw_clear_error();
        snprintf(none.host, sizeof none.host, "%s", comm->host_names[comm->host_index]);
        NW_TRY(nw_reach_end_to_json(&none, &json));
    } else {
        NW_TRY(nw_reach_end_to_json(nw_reach_end(station->reach), &json));
    }
    return post_json(station, NW_CHECK_END, json);
}

nw_rc nw_check_station_open(struct nw_comm *comm, const struct nw_check_how *how,
                            struct nw_check_station *station)
{
    struct nw_check_wish wish = how->wish;

    *station = (struct nw_check_station){.comm = comm, .how = how, .reader = how->reader};
    NW_TRY(nw_mail_open(comm, &station->mail));
    if (comm->local_rank != 0) { /* its launcher's count was another one */
        nw_check_reader_close(station->reader);
        station->reader = NULL;
        return send_rank(station);
    }
    wish.for_all_ranks = comm->local_count > 1;
    if (station->reader == NULL)
        NW_TRY(nw_check_reader_start(&wish, &station->reader));
    NW_TRY(send_rank(station));
    return begin_reach(station);
}

/* The reading is spliced in as it is: half a megabyte that need not be parsed here. */
static nw_rc send_facts(struct nw_check_station *station)
{
    const char *reading = nw_check_reader_text(station->reader);
    json_t *findings;
    char *list, *text = NULL;
    int length;
    nw_rc rc;

    NW_TRY(nw_findings_to_json(nw_check_reader_findings(station->reader), &findings));
    list = json_dumps(findings, JSON_COMPACT);
    json_decref(findings);
    length = list != NULL ? asprintf(&text, "{\"findings\":%s%s%s}", list,
                                     reading[0] != '\0' ? ",\"reading\":" : "", reading)
                          : -1;
    free(list);
    if (length < 0)
        return nw_fail(NW_ENOMEM, "no memory for what was read of this host");
    rc = nw_mail_post(station->mail, 0, NW_CHECK_FACTS, text);
    free(text);
    nw_check_reader_close(station->reader);
    station->reader = NULL;
    return rc;
}

static nw_rc send_tries(struct nw_check_station *station)
{
    size_t count;
    const struct nw_reach_try *tries = nw_reach_tries(station->reach, &count);
    json_t *array;

    station->tries_sent = true;
    NW_TRY(nw_reach_tries_to_json(tries, count, &array));
    return post_json(station, NW_CHECK_TRIES, array);
}

static nw_rc say_alive(struct nw_check_station *station)
{
    json_t *json;
    const uint64_t now = nw_now_ns();

    if (station->comm->local_rank != 0 || now - station->last_alive_ns < ALIVE_NS)
        return NW_OK;
    station->last_alive_ns = now;
    json = json_object();
    if (nw_json_set_text(json, "phase",
                         station->reader != NULL ? nw_check_reader_phase(station->reader)
                                                 : "waiting for the others") != NW_OK) {
        json_decref(json);
        return nw_last_error()->rc;
    }
    return post_json(station, NW_CHECK_ALIVE, json);
}

nw_rc nw_check_station_step(struct nw_check_station *station, int wait_ms)
{
    if (station->reach_started) {
        if (!nw_reach_step(station->reach, wait_ms) && !station->tries_sent)
            NW_TRY(send_tries(station));
    }
    if (station->reader != NULL && !nw_check_reader_step(station->reader))
        NW_TRY(send_facts(station));
    return say_alive(station);
}

static nw_rc start_reach(struct nw_check_station *station, const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    const json_t *list = json_object_get(json, "ends");
    const size_t count = json_array_size(list);
    struct nw_reach_end *ends = calloc(count + 1, sizeof *ends);
    uint64_t run = 0;
    nw_rc rc = ends != NULL ? nw_json_get_u64(json, "the hosts", "run", true, &run)
                            : nw_fail(NW_ENOMEM, "no memory for %zu hosts", count);

    for (size_t i = 0; i < count && rc == NW_OK; i++)
        rc = nw_reach_end_from_json(json_array_get(list, i), "the hosts", &ends[i]);
    if (rc == NW_OK)
        rc = nw_reach_start(station->reach, ends, count, (size_t)station->comm->host_index, run);
    station->reach_started = rc == NW_OK;
    free(ends);
    json_decref(json);
    return rc;
}

nw_rc nw_check_station_take(struct nw_check_station *station, int tag, const char *text)
{
    if (tag == NW_CHECK_STOP)
        station->stopped = true;
    if (tag != NW_CHECK_PEERS || station->reach == NULL || station->reach_started)
        return NW_OK;
    if (start_reach(station, text) == NW_OK)
        return NW_OK;
    nw_clear_error(); /* another version's text: nobody is tried from here */
    return nw_mail_post(station->mail, 0, NW_CHECK_TRIES, "[]");
}

void nw_check_station_close(struct nw_check_station *station)
{
    nw_check_reader_close(station->reader);
    nw_reach_close(station->reach);
    nw_mail_close(station->mail);
}
