/* Private to bench/nic_*.c. nic_tell.c: who has which end, and what its ranks tell each other;
 * nic_links.c: connections; nic_work.c: a run over them; nic_measure.c, nic_probe.c: many runs. */
#ifndef NW_BENCH_NIC_LINKS_PARTS_H
#define NW_BENCH_NIC_LINKS_PARTS_H

#include "bench/nic_links.h"

struct nw_nic_failure {
    nw_rc rc;        /* NW_OK: none */
    char text[1024]; /* all that nw_fail words, remedy included */
};

struct nw_nic_end { /* a connection's, of this rank */
    size_t pair;
    int side; /* 0: a, 1: b */
    struct nw_verbs_end *end;
    char *buffer;
};

/* What grows with the ends of others is a few bytes for each, and on rank 0, which reports, the
 * words about each pair. */
struct nw_nic_links {
    struct nw_bench *bench;
    const struct nw_nics *nics;
    const struct nw_nic_round *round;
    struct nw_nic_ask ask;
    uint64_t region_bytes, buffer_bytes; /* where data are given from; then where they come to */
    struct nw_nic_end *ends;             /* this rank's, by pair, then side */
    size_t end_count;
    size_t *first_of_rank; /* rank_count + 1: where a rank's ends begin in end_at */
    size_t *end_at;        /* pair × 2 + side, by rank, then pair, then side */
    char *scratch;         /* nw_nic_tell's */
    size_t scratch_bytes;
    int *codes, *own_codes;          /* of pair × 2 + side, and of this rank's ends */
    double *values;                  /* of pair × 2 + side */
    double *own_rates;               /* of each pair: nw_nic_own_rate */
    bool *is_out;                    /* of each pair: it has failed */
    struct nw_nic_failure *failures; /* rank 0 */
    struct nw_nic_settled *settled;  /* rank 0 */
};

/* Not collective: who has which end, and room for all that is told later. */
nw_rc nw_nic_deal(struct nw_nic_links *links);
void nw_nic_undeal(struct nw_nic_links *links);
/* The rank of a pair's side. */
int nw_nic_owner(const struct nw_nic_links *links, size_t pair, int side);

/* Collective, and nothing is allocated: `size` bytes (NW_NIC_TOLD_MOST at most) of each of this
 * rank's ends in `mine`; `take` gets those of everybody's ends, one by one. */
#define NW_NIC_TOLD_MOST NW_VERBS_CARD_BYTES
typedef void (*nw_nic_take)(void *user, size_t pair, int side, const void *what);
nw_rc nw_nic_tell(struct nw_nic_links *links, const void *mine, size_t size, nw_nic_take take,
                  void *user);
/* A number each, into links->values. */
nw_rc nw_nic_tell_values(struct nw_nic_links *links, const double *mine);

/* How a call went: `rc` with the last error's text. */
void nw_nic_note(struct nw_nic_failure *failure, nw_rc rc);
/* Of both sides the one that tells most (0 or 1): a deadline that passed is only what the other
 * side sees of a failure, and a peer that went away says less than what made it go. */
int nw_nic_cause(int a_rc, int b_rc);
/* Collective: how each of this rank's ends fares; a pair fails when either side does. */
nw_rc nw_nic_agree(struct nw_nic_links *links, const struct nw_nic_failure *mine);
/* Until a wait of the library's ends, ns. */
double nw_nic_wait_ns(const struct nw_bench *bench);

#endif
