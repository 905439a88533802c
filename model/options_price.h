/* Public. The money part of a request: prices, limits, storage, failures. Numbers that were not
 * given are 0 (of failures, where 0 means something, NAN), texts NULL. Embedded in struct
 * nw_model_request; the rows are nw_price_options (model/request.h).
 */
#ifndef NW_MODEL_OPTIONS_PRICE_H
#define NW_MODEL_OPTIONS_PRICE_H

#include <stdbool.h>

#include "base/err.h"

struct nw_price_request { /* beside the price fields of struct nw_model_request */
    const char *rental;   /* "auto" "hour" "month" "spot" */
    double per_node_month, spot_per_node_hour;
    double spot_interruptions_per_month; /* of one node */
    double network_per_month, storage_per_month, operations_per_month;
    double setup_cost; /* of each further node */
    double minimum_rental_ns;
    double max_step_ns;
    double bytes_per_token;
    double read_gb_per_s, write_gb_per_s;          /* of a node's path to storage */
    const char *storage_shared;                    /* "yes" "no" */
    double failures_per_1000_gpu_days, restart_ns; /* NAN: not given */
    double checkpoint_interval_ns;
    /* from a quote only */
    double quoted_read_bytes_per_s, quoted_write_bytes_per_s;
    bool quoted_shared;
};

struct nw_model_request;
struct nw_quote;
struct nw_results;
struct nw_storage;
struct nw_terms;
struct nw_topo;

/* Terms of the request; storage as given, else as the results' hosts measured it, else as quoted.
 * NW_EUSAGE: an extra without a price, a rental without its price. */
nw_rc nw_terms_make(const struct nw_model_request *request, const struct nw_results *results,
                    struct nw_terms *terms_out);
/* GPU and NICs of the quote where neither the request nor the results name any. */
void nw_model_request_take_quoted_machine(struct nw_model_request *request,
                                          const struct nw_quote *quote,
                                          const struct nw_results *results);
/* What a host's topology says of its data path, where that is slower than what is known. */
void nw_storage_of_topo(const struct nw_topo *topo, struct nw_storage *storage);

#endif
