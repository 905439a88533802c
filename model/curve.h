/* Public. What a collective costs: measured curves and the rules for everything not measured.
 *
 * A curve belongs to one (collective, lane, features, rank count, host count) and maps bytes,
 * counted as nccl-tests does (all_gather and reduce_scatter: the whole buffer over all ranks), to
 * the time of one call. Inside the measured sizes it is interpolated in log-log, outside continued
 * by latency + bytes / rate. Out-of-place records are used; in-place ones only for a size that has
 * no other. Same sizes measured twice are merged: median of the times, widest interval.
 *
 * nw_curves owns its curves; a fabric borrows them.
 *
 *     struct nw_curves curves = {0};
 *     NW_TRY(nw_curves_add(&curves, &results, 8));
 *     struct nw_fabric fabric = {.curves = &curves, .gpus_per_node = 8, …NAN…};
 *     NW_TRY(nw_fabric_cost(&fabric, "all_gather", 400e6, group, NULL, &cost));
 */
#ifndef NW_MODEL_CURVE_H
#define NW_MODEL_CURVE_H

#include "collectives/coll.h"
#include "model/constants.h"
#include "model/layout.h"
#include "results/results.h"
#include "topo/gpu.h"
#include "topo/topo.h"

struct nw_curve_point {
    double bytes;
    double time_ns, low_ns, high_ns; /* median and its interval */
    double log_bytes, log_time_ns;   /* natural */
};

struct nw_curve_sample { /* one record */
    struct nw_curve_point point;
    bool in_place, has_interval;
};

struct nw_curve {
    char collective[24], lane[16], features[64];
    nw_coll_id coll;
    int rank_count, host_count;
    struct nw_curve_sample *samples; /* every record */
    size_t sample_count;
    struct nw_curve_point *points; /* merged, rising in bytes */
    size_t point_count;
    bool has_interval; /* false: imported times without one; the assumed one is used */
    bool simulated;
    bool hosts_guessed;      /* the log does not say how many hosts: from GPUs per node */
    double roughness;        /* how far points lie from the line between their neighbours, rms */
    double alpha_ns;         /* time of an empty message, from the two smallest sizes */
    double beta_ns_per_byte; /* slope at the largest sizes */
};

struct nw_curves {
    struct nw_curve *items;
    size_t count;
};

bool nw_curves_have_lane(const struct nw_curves *curves, const char *lane);
/* Every usable record of `results` (cases coll and scaling, with a time, no wrong elements, two
 * ranks or more, not moved in pieces). `gpus_per_node`: for records that do not say how many hosts;
 * 0: such records are taken for one host up to 8 ranks. May be called again for more files. */
nw_rc nw_curves_add(struct nw_curves *curves, const struct nw_results *results, int gpus_per_node);
/* The same with another IMPORT_ERROR than the table's: of times without an interval. */
nw_rc nw_curves_add_with(struct nw_curves *curves, const struct nw_results *results,
                         int gpus_per_node, double import_error);
void nw_curves_free(struct nw_curves *curves); /* leaves an empty set */
/* The lane to use when none is asked for: auto, host, local, else the first measured; NULL: none.
 */
const char *nw_curves_lane(const struct nw_curves *curves);

/* Time of one call at `bytes`; returns true when that is outside the measured sizes. */
bool nw_curve_time(const struct nw_curve *curve, double bytes, struct nw_curve_point *point_out);
double nw_curve_time_only(const struct nw_curve *curve, double bytes); /* the same, faster */

/* How a cost was come by; 0: measured, at that size and rank count. */
enum {
    NW_COST_SIZE = 1,         /* message size outside the measured ones: alpha-beta */
    NW_COST_DERIVED = 2,      /* from another collective, by the levels that both cross */
    NW_COST_RANKS = 4,        /* rank count not measured: by the levels, inside the node */
    NW_COST_NODES = 8,        /* node count not measured: by the levels, between nodes */
    NW_COST_GIVEN = 16,       /* from a bandwidth that the user gave */
    NW_COST_DATASHEET = 32,   /* from the catalogue's link rate and an assumed share of it */
    NW_COST_NO_INTERVAL = 64, /* the log has no interval: an assumed one */
    NW_COST_SIMULATED = 128,  /* of a step: or its products, memory, host link */
    NW_COST_HOSTS = 256,      /* the log does not say how many hosts */
    NW_COST_SHARED = 512,     /* several such groups share the NICs: each its part of them */
    NW_COST_WIRE = 1024,      /* with DATASHEET: from the line rate of the NICs */
};

struct nw_cost {
    double time_ns, low_ns, high_ns;
    unsigned how; /* NW_COST_… */
};

/* One hop inside a node, ns: NCCL 2.30 src/graph/tuning.cc has 0.6-1 us, 11 published boards
 * 0.8-1.5. */
#define NW_LINK_HOP_NS 1.1e3
/* A ring over cards without a switch goes up one card's lanes to the host and down another's: each
 * byte uses two of the links that a ring over NVLink uses one of. Published nodes: 0.26-0.42 of one
 * direction, LINK_SHARE of NVLink 0.73-0.83. */
#define NW_PCIE_RING 0.48

struct nw_fabric {
    const struct nw_curves *curves; /* borrowed; NULL or empty: nothing measured */
    const char *lane;               /* NULL: nw_curves_lane */
    int gpus_per_node;
    /* Bus bandwidth (nccl-tests' busbw) over all GPUs of a node, of all nodes. NAN: as measured. */
    double intra_busbw_bytes_per_s, inter_busbw_bytes_per_s;
    bool intra_from_datasheet; /* where intra_busbw_bytes_per_s came from */
    double link_bytes_per_s;   /* what one GPU's link can take in, one way; NAN unknown */
    bool link_is_pcie;         /* GPUs meet over host bridges */
    bool link_is_mesh;         /* each GPU has a part of its links to each other: no switch */
    int link_domain; /* GPUs that links join, over nodes too (NVL72); 0: those of a node */
    /* What it can take in while the switch adds up (NVLS); 0 or NAN: it cannot. */
    double switch_bytes_per_s;
    /* What a node's NICs can send together, one way, by their line rate, and how many there are;
     * NAN and 0: unknown. */
    double wire_bytes_per_s;
    int nic_count;
    const struct nw_assumptions *assumptions; /* borrowed; NULL: the table's */
};

/* One evaluation of the model: which end of the intervals, how fast the wire between nodes. */
struct nw_scenario {
    double compute_scale; /* × time of the computation; 1 */
    double curve_end;     /* -1 low, 0 median, +1 high end of the communication's interval */
    double overlap_loss;  /* NAN: the framework's own */
    double overlap_end;   /* -1 low, 0, +1 high end of the framework's own */
    double inter_scale;   /* × rate between nodes; 1 = as measured or given */
};
extern const struct nw_scenario nw_scenario_likely;

/* `scenario` NULL: the likely one. One rank or zero bytes: zero. NW_ENODEV: nothing measured or
 * given that says what this group's communication costs. */
nw_rc nw_fabric_cost(const struct nw_fabric *fabric, const char *collective, double bytes,
                     struct nw_group group, const struct nw_scenario *scenario,
                     struct nw_cost *cost_out);
/* Is anything between nodes measured or given? */
bool nw_fabric_knows_inter(const struct nw_fabric *fabric);

/* Links of the catalogue's GPU, one node of `gpus_per_node`: link, kind, in-switch reduction.
 * `link` "auto", "nvlink", "pcie" or NULL (auto). NW_EUSAGE: NVLink of a GPU that has none. */
nw_rc nw_fabric_take_gpu(struct nw_fabric *fabric, const struct nw_gpu *gpu, const char *link);
/* The same, and the NICs, of a machine that was read: its physical ceilings. What the topology does
 * not know stays as it was. */
void nw_fabric_take_topo(struct nw_fabric *fabric, const struct nw_topo *topo);

/* ---- one collective in one group, for many sizes ------------------------------------------- */

struct nw_curve_transfer { /* time of the wanted group from a measured one's */
    const struct nw_curve *curve;
    double start_ns, stretch, squeeze; /* start + stretch × (curve(squeeze × bytes) - start) */
};
#define NW_LEGS_MAX 5
struct nw_leg { /* an algorithm in one protocol; the fastest is taken */
    double alpha_ns, beta_ns_per_byte;
};
struct nw_legs {
    struct nw_leg items[NW_LEGS_MAX];
    int count;
    double start_ns; /* part of alpha that is no hop */
};
struct nw_line_part {
    struct nw_curve_transfer from[2]; /* their geometric mean, weights (1 - mix) and mix */
    int from_count;                   /* 0: legs */
    double mix;
    struct nw_legs legs;
};
/* Borrows the fabric's curves. */
struct nw_line {
    bool is_nothing; /* one rank */
    unsigned how;
    struct nw_line_part part;
    double divide;                /* time by so much: wires between nodes so much faster */
    bool has_floor, floor_stands; /* stands: never above what was measured */
    struct nw_line_part floor;    /* what the links inside the nodes need */
    double floor_factor;
    double least_ns_per_byte; /* by the GPU's link */
    /* Relative error of how it was come by: of an endless message, of an empty one. */
    double error, hop_error;
    double alpha_ns; /* time of an empty message */
    double end;      /* -1 low, 0, 1 high: which end nw_line_time tells */
};
nw_rc nw_fabric_prepare(const struct nw_fabric *fabric, const char *collective,
                        struct nw_group group, const struct nw_scenario *scenario,
                        struct nw_line *line_out);
/* At the scenario's end of the interval; the middle (end 0) is the fast one: no interval is read.
 */
double nw_line_time(const struct nw_line *line, double bytes);
struct nw_cost nw_line_cost(const struct nw_line *line, double bytes);

#endif
