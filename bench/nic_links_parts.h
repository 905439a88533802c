/* Private to bench/nic_*.c. */
#ifndef NW_BENCH_NIC_LINKS_PARTS_H
#define NW_BENCH_NIC_LINKS_PARTS_H

#include "bench/nic_links.h"

struct nw_nic_end { /* a connection's, of this rank */
    size_t pair;
    int side; /* 0: a, 1: b */
    struct nw_verbs_end *end;
    char *buffer;
};

struct nw_nic_links {
    struct nw_bench *bench;
    const struct nw_nics *nics;
    const struct nw_nic_round *round;
    struct nw_nic_ask ask;
    uint64_t region_bytes, buffer_bytes; /* where data are given from; then where they come to */
    struct nw_nic_end *ends;             /* this rank's, by pair, then side */
    size_t end_count;
    int *slot_of;  /* of pair × 2 + side: which of its owner's ends */
    size_t slots;  /* the most that a rank owns */
    int *owner_of; /* the same: the rank */
    bool *is_out;  /* of each pair: it has failed */
    struct nw_nic_failure *failures;
    struct nw_nic_settled *settled;
    double *own_rates; /* of each pair: nw_nic_own_rate */
};

/* Collective: `size` bytes of each of this rank's ends in `mine` (slots × size), of everybody's in
 * *all_out (freed by the caller). */
nw_rc nw_nic_exchange(struct nw_nic_links *links, const void *mine, size_t size, char **all_out);
/* Of `all`: what stands for a pair's side. */
const void *nw_nic_of(const struct nw_nic_links *links, const char *all, size_t size, size_t pair,
                      int side);
/* How a call went: `rc` with the last error's text. */
void nw_nic_note(struct nw_nic_failure *failure, nw_rc rc);
/* Of both sides' the one that tells most: a deadline that passed is only what the other side sees
 * of a failure, and a peer that went away says less than what made it go. */
const struct nw_nic_failure *nw_nic_cause(const struct nw_nic_failure *a,
                                          const struct nw_nic_failure *b);
/* Collective: how each of this rank's ends fares; a pair fails when either side does. */
nw_rc nw_nic_agree(struct nw_nic_links *links, const struct nw_nic_failure *mine);
/* Until a wait of the library's ends, ns. */
double nw_nic_wait_ns(const struct nw_bench *bench);

#endif
