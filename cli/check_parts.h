/* Private to cli/. What gathering is made of: every rank is a station that works and sends; rank 0
 * is besides the hub that receives. */
#ifndef NW_CLI_CHECK_PARTS_H
#define NW_CLI_CHECK_PARTS_H

#include "cli/check_gather.h"
#include "collectives/mail.h"

enum nw_check_tag {                 /* of the mail */
                    NW_CHECK_RANK,  /* each rank: place, environment, versions */
                    NW_CHECK_ALIVE, /* first ranks, every second: what they are at */
                    NW_CHECK_END,   /* first ranks: interfaces and port */
                    NW_CHECK_TRIES, /* first ranks: whom they reach */
                    NW_CHECK_FACTS, /* first ranks: what was read of the host */
                    NW_CHECK_PEERS, /* hub to first ranks: all ends */
                    NW_CHECK_STOP,  /* hub to all */
};

struct nw_check_station {
    struct nw_comm *comm;
    struct nw_mail *mail;
    const struct nw_check_how *how;
    struct nw_check_reader *reader; /* NULL: does not read, or is done */
    struct nw_reach *reach;
    bool reach_started, tries_sent, stopped;
    uint64_t last_alive_ns;
};

/* Sends what every rank has; first ranks begin to read and to listen. */
nw_rc nw_check_station_open(struct nw_comm *comm, const struct nw_check_how *how,
                            struct nw_check_station *station);
/* A round: reads, connects, sends what is ready. */
nw_rc nw_check_station_step(struct nw_check_station *station, int wait_ms);
/* What the hub sent. */
nw_rc nw_check_station_take(struct nw_check_station *station, int tag, const char *text);
void nw_check_station_close(struct nw_check_station *station);

struct nw_check_hub {
    struct nw_comm *comm;
    struct nw_mail *mail;
    double silence_ns;
    uint64_t *heard_ns; /* of each host's first rank */
    bool *has_end, *has_facts;
    int *first_rank; /* of each host */
    bool *rank_answered;
    bool peers_sent;
    uint64_t began_ns;
    struct nw_check_gathered *gathered;
};

nw_rc nw_check_hub_open(struct nw_comm *comm, struct nw_mail *mail, double silence_ns,
                        struct nw_check_gathered *gathered, struct nw_check_hub *hub);
nw_rc nw_check_hub_take(struct nw_check_hub *hub, int from, int tag, const char *text);
/* True: all is here that will come. Sends the ends when they are complete. */
nw_rc nw_check_hub_step(struct nw_check_hub *hub, bool *done_out);
/* Tells all ranks to stop, words what is missing. */
nw_rc nw_check_hub_finish(struct nw_check_hub *hub);
void nw_check_hub_close(struct nw_check_hub *hub);

#endif
