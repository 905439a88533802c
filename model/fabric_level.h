/* Private to model/. What a collective costs from the levels that it crosses: the links inside a
 * node and the wire between nodes, each with a time for one hop and a rate.
 *
 * An algorithm in one of the library's protocols is a leg: alpha + beta x bytes. The library takes
 * the fastest, so the cost is the least of the legs. Rates in bytes per ns (10^9 bytes/s).
 */
#ifndef NW_MODEL_FABRIC_LEVEL_H
#define NW_MODEL_FABRIC_LEVEL_H

#include "collectives/coll.h"
#include "model/curve.h"

struct nw_levels {
    double link_rate;   /* that a ring inside the node reaches; INFINITY: unknown */
    double switch_rate; /* that a GPU's links reach while the switch adds up; 0: it cannot */
    double wire_rate;   /* that all NICs of a node reach together; INFINITY: unknown */
    bool pcie;          /* GPUs meet over host bridges, which they share */
    bool mesh;          /* direct links: a few GPUs have a part of them */
    int gpus_per_node;
    int nic_count; /* 0: unknown, any group uses all of them */
    double link_hop_ns, wire_hop_ns, start_ns;
};

/* By datasheet and line rate, what of them is known. */
struct nw_levels nw_levels_of_datasheet(const struct nw_fabric *fabric);

/* Of two ranks or more. */
void nw_legs_of(const struct nw_levels *levels, nw_coll_id coll, struct nw_group group,
                struct nw_legs *legs_out);
double nw_legs_time(const struct nw_legs *legs, double bytes);
double nw_legs_alpha(const struct nw_legs *legs); /* the least: of an empty message */
double nw_legs_beta(const struct nw_legs *legs);  /* the least: of an endless one */

/* busbw's factor with what a rank copies within its own memory on the way. */
double nw_level_factor(nw_coll_id coll, int rank_count);
/* The part of the node's wire that one such group has. */
double nw_level_share(const struct nw_levels *levels, struct nw_group group);

#endif
