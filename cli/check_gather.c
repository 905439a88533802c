#include "cli/check_gather.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/check_parts.h"

#define WAIT_MS      2
#define STOP_WAIT_NS 1e9
/* A rank without news from rank 0 for so long is alone. The reading itself takes 200 s at most. */
#define ALONE_NS 400e9

static void rest(const struct nw_check_station *station)
{
    const struct timespec pause = {.tv_nsec = WAIT_MS * 1000000};

    if (!station->reach_started) /* else poll() has waited */
        nanosleep(&pause, NULL);
}

/* Everything that is there now. `hub` NULL: on other ranks. */
static nw_rc take_mail(struct nw_check_station *station, struct nw_check_hub *hub)
{
    for (;;) {
        int from = 0, tag = 0;
        char *text;
        nw_rc rc;

        NW_TRY(nw_mail_take(station->mail, &from, &tag, &text));
        if (text == NULL)
            return NW_OK;
        rc = tag == NW_CHECK_PEERS || tag == NW_CHECK_STOP
                 ? nw_check_station_take(station, tag, text)
             : hub != NULL ? nw_check_hub_take(hub, from, tag, text)
                           : NW_OK;
        free(text);
        NW_TRY(rc);
    }
}

static nw_rc serve(struct nw_check_station *station)
{
    const uint64_t began = nw_now_ns();

    while (!station->stopped) {
        if ((double)(nw_now_ns() - began) > ALONE_NS)
            return nw_fail(NW_ETIMEOUT, "rank %d has heard nothing from rank 0",
                           station->comm->rank);
        NW_TRY(nw_check_station_step(station, WAIT_MS));
        NW_TRY(take_mail(station, NULL));
        rest(station);
    }
    return NW_OK;
}

/* Until all has left, but not for a rank that hangs. */
static nw_rc flush(struct nw_check_station *station)
{
    const uint64_t began = nw_now_ns();

    while (!nw_mail_has_left(station->mail) && (double)(nw_now_ns() - began) < STOP_WAIT_NS) {
        NW_TRY(take_mail(station, NULL));
        rest(station);
    }
    return NW_OK;
}

static nw_rc collect(struct nw_check_station *station, struct nw_check_hub *hub)
{
    bool done = false;

    while (!done) {
        NW_TRY(nw_check_station_step(station, WAIT_MS));
        NW_TRY(take_mail(station, hub));
        NW_TRY(nw_check_hub_step(hub, &done));
        rest(station);
    }
    NW_TRY(nw_check_hub_finish(hub));
    return flush(station);
}

nw_rc nw_check_gather(struct nw_comm *comm, const struct nw_check_how *how,
                      struct nw_check_gathered *gathered_out)
{
    struct nw_check_station station;
    struct nw_check_hub hub = {.comm = NULL};
    nw_rc rc = nw_check_station_open(comm, how, &station);

    *gathered_out = (struct nw_check_gathered){.all_answered = true};
    nw_bench_status_write(how->status, 0, "gathering what the hosts say");
    if (rc == NW_OK && comm->rank == 0)
        rc = nw_check_hub_open(comm, station.mail, how->silence_ns, gathered_out, &hub);
    if (rc == NW_OK && comm->rank == 0)
        rc = nw_findings_copy(&gathered_out->findings, &comm->findings);
    if (rc == NW_OK)
        rc = comm->rank == 0 ? collect(&station, &hub) : serve(&station);
    nw_check_hub_close(&hub);
    nw_check_station_close(&station);
    return rc;
}

void nw_check_gathered_free(struct nw_check_gathered *gathered)
{
    for (size_t i = 0; i < gathered->host_count; i++) {
        nw_topo_free(gathered->hosts[i].topo);
        free(gathered->hosts[i].tries);
    }
    for (int rank = 0; gathered->environments != NULL && rank < gathered->rank_count; rank++)
        json_decref(gathered->environments[rank]);
    free(gathered->environments);
    free(gathered->hosts);
    free(gathered->places);
    nw_findings_free(&gathered->findings);
    *gathered = (struct nw_check_gathered){.hosts = NULL};
}
