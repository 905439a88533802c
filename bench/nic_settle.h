/* Private to bench/. How many queue pairs, how deep, how large: what a stream needs until more of
 * it brings no more. One answer for the whole run, so that NICs can be compared. */
#ifndef NW_BENCH_NIC_SETTLE_H
#define NW_BENCH_NIC_SETTLE_H

#include "bench/nic_links.h"

/* What the plan leaves open: as an interrupted run had it, by the records of `case_name` that it
 * left, so that all of them can be compared; else tried out on the first of the rounds of which a
 * pair works, with less where memory for the most cannot be registered. Collective. What failed is
 * a finding; where nothing works: the first of each. */
nw_rc nw_nic_settle(struct nw_bench *bench, const char *case_name, const struct nw_nics *nics,
                    const struct nw_nic_round *rounds, size_t round_count,
                    struct nw_nic_ask *ask_out);

/* The rule alone: try(user, ask, rates of `count` pairs) is a measurement. */
struct nw_nic_trial {
    nw_rc (*try)(void *user, const struct nw_nic_ask *ask, double *rates);
    void *user;
    size_t count;
    double *rates;           /* 2 × count, the caller's */
    struct nw_nic_ask fixed; /* 0: open */
    struct nw_nic_ask most;  /* 0: nw_nic_settle_most */
};
nw_rc nw_nic_settle_by(const struct nw_nic_trial *trial, struct nw_nic_ask *ask_out);
/* The most that it may come to. */
struct nw_nic_ask nw_nic_settle_most(const struct nw_nic_ask *fixed);
/* A quarter of one of what is open; false: it is the least already. */
bool nw_nic_settle_less(const struct nw_nic_ask *fixed, struct nw_nic_ask *most);

/* The records' answer; false: there is none. */
bool nw_nic_settle_kept(const struct nw_record *records, size_t count, const char *case_name,
                        bool gpu, struct nw_nic_ask *ask_out);

#endif
