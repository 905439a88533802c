/* Private to bench/. Many NICs at once over RDMA, for the cases loopback, rail, bisect, incast: a
 * round of pairs, put into groups, a record for each group.
 *
 *     NW_TRY(nw_agree(comm, nw_at_once_begin(once, most_pairs)));  // or nw_at_once_rails
 *     nw_at_once_add(once, a, b);
 *     NW_TRY(nw_at_once_settle(once));
 *     groups = nw_at_once_by_host(once);
 *     NW_TRY(nw_at_once_unit(once, &nw_at_once_write, groups, "all at once", rates));
 */
#ifndef NW_BENCH_NICS_AT_ONCE_H
#define NW_BENCH_NICS_AT_ONCE_H

#include "bench/nic_settle.h"

/* Of what each has alone, all together; of what the one that all send to can take. */
#define NW_AT_ONCE_SHARE 0.9

struct nw_at_once {
    struct nw_bench *bench;
    const char *case_name;
    bool into_one; /* all groups' data go to one NIC: its rate is the ceiling */
    bool none_met; /* there was no pair: set by the case */
    struct nw_nics nics;
    struct nw_nic_ask ask;
    int stream_qps; /* what settling gave one stream; 0: not settled yet */
    /* of the round at hand */
    struct nw_nic_round round;
    struct nw_nic_links *links; /* NULL: not opened yet */
    int *group_of_pair;
    bool *is_told;
    struct nw_record *records; /* a group each */
    const struct nw_record **kept;
};

/* Opens the NICs and runs the body over them; `instead` (may be NULL) where there are none, or
 * where the body has met none. Collective. */
nw_rc nw_at_once_run(struct nw_bench *bench, const char *case_name, int least_hosts,
                     nw_rc (*body)(struct nw_at_once *once),
                     nw_rc (*instead)(struct nw_bench *bench));

/* Ends the round before. Room for `count` pairs; the caller adds them. Not collective. */
nw_rc nw_at_once_begin(struct nw_at_once *once, size_t count);
void nw_at_once_add(struct nw_at_once *once, int a, int b);
/* A round of all rails between each host and its `partner` (-1: it leads none). Not collective. */
nw_rc nw_at_once_rails(struct nw_at_once *once, int (*partner)(int host, int host_count));
/* The NIC at that place of a host; -1: it has fewer. */
int nw_at_once_nic(const struct nw_at_once *once, int host, int place);

/* What suits one pair of the round, once a case. Collective. */
nw_rc nw_at_once_settle(struct nw_at_once *once);

/* Groups of the round's pairs, and how many: one for each leading host; the `place`-th pair of
 * each. */
int nw_at_once_by_host(struct nw_at_once *once);
int nw_at_once_by_place(struct nw_at_once *once, int place);
size_t nw_at_once_pairs_in(const struct nw_at_once *once, int group);
size_t nw_at_once_first_of(const struct nw_at_once *once, int group);

extern const struct nw_nic_kind nw_at_once_write, nw_at_once_both;
/* A record a group. `rates` (of the groups; on rank 0 what was measured, NAN: not) may be NULL.
 * Collective. */
nw_rc nw_at_once_unit(struct nw_at_once *once, const struct nw_nic_kind *kind, int groups,
                      const char *what, double *rates);

#endif
