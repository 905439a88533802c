/* Private to results/. When are two results of the same thing? A table of everything that has to
 * agree, in the order of looking: case, collective and size first.
 */
#ifndef NW_RESULTS_COMPARE_KEY_H
#define NW_RESULTS_COMPARE_KEY_H

#include "results/results.h"

struct nw_compare_entry { /* one record and where it is from; borrowed */
    const struct nw_record *record;
    const struct nw_context *context;
};

/* Bits of the fields that may differ. NW_EUSAGE: unknown name; says which there are. */
nw_rc nw_compare_across(const char *list, uint32_t *mask_out);
/* As strcmp, over all fields but those of `mask`. */
int nw_compare_order(const struct nw_compare_entry *a, const struct nw_compare_entry *b,
                     uint32_t mask);
/* The same over case, collective and size only. */
int nw_compare_order_size(const struct nw_compare_entry *a, const struct nw_compare_entry *b);
/* How many fields differ; those into `text` ("ranks 8 against 16; GPU …"), where it is not NULL. */
size_t nw_compare_differences(const struct nw_compare_entry *a, const struct nw_compare_entry *b,
                              uint32_t mask, char *text, size_t size);

/* A result that a comparison can use: measured, right, with a time or a rate. */
bool nw_compare_usable(const struct nw_record *record);
/* Bus bandwidth, else flop/s, else algorithm bandwidth; NAN: none. */
double nw_compare_rate(const struct nw_record *record);
/* What is compared: time of a call; without one a time in proportion, from the rate. */
double nw_compare_time(const struct nw_record *record);

#endif
