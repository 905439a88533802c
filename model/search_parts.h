/* Private to model/. The closed form of a step, taken apart by what its parts depend on, so that
 * the innermost loop of the search only adds up.
 *
 * search.c        the loops, the best so far
 * search_cut.c    units, times and stored bytes of one cut of the layers; prices of messages
 * search_place.c  one placement: messages between ranks, states
 * search_quick.c  the innermost loop: a step's time, a lower bound of its memory
 * search_rank.c   the best, predicted anew
 */
#ifndef NW_MODEL_SEARCH_PARTS_H
#define NW_MODEL_SEARCH_PARTS_H

#include "model/memory_parts.h"
#include "model/search.h"
#include "model/step_build.h"

enum {
    NW_ENDS = 4,           /* stages looked at: the first, the second, a middle one, the last */
    NW_PRICES_MAX = 4096,  /* a power of two */
    NW_SEARCH_EACH = 8,    /* the best of each strategy beside */
    NW_SEARCH_KEPT = 1000, /* the best thousand; by time and by cost where node counts differ */
};

/* Prepared lines of collectives by group: a search asks for few of them, many times. */
struct nw_prices {
    const struct nw_fabric *fabric;
    const struct nw_scenario *scenario;
    struct nw_price {
        const char *collective; /* NULL: free */
        struct nw_group group;
        nw_rc rc;
        struct nw_line line;
    } * items; /* owned */
    size_t count;
};
nw_rc nw_prices_make(const struct nw_fabric *fabric, const struct nw_scenario *scenario,
                     struct nw_prices *prices_out);
void nw_prices_free(struct nw_prices *prices);
nw_rc nw_price_ns(struct nw_prices *prices, const char *collective, double bytes,
                  struct nw_group group, double *ns_out);

/* One micro-batch size and recomputation on one cut (tp, sp, cp, ep) of one profile. */
struct nw_quick_shape {
    bool made;
    double forward_ns[NW_UNIT_KINDS], backward_ns[NW_UNIT_KINDS]; /* with messages in the layer */
    double stored_bytes[NW_LAYER_KINDS];                          /* of a layer, one micro-batch */
    double busy; /* share of the computation in which the GPU does not wait for launches */
    double micro_batch;
};

/* Units of each stage looked at, of one pipeline. */
struct nw_stage_counts {
    bool valid;                            /* the layers can be dealt so */
    int virtual_stages, stage_count, most; /* most: has most elements */
    int at[NW_ENDS];
    double units[NW_ENDS][NW_UNIT_KINDS], all[NW_UNIT_KINDS]; /* all: of all stages */
    double layers[NW_LAYER_KINDS];                            /* as nw_memory_stage counts them */
};

/* What is sent between data-parallel ranks in one step. */
struct nw_quick_messages {
    double reduce_ns, reduce_tail_ns; /* once; the last message of it */
    double replica_ns;                /* of hybrids, between copies */
    double forward_gather_ns, forward_first_ns, backward_gather_ns, backward_first_ns;
    double tied_ns;        /* embeddings' gradients between the first and the last stage */
    double weight_copy_ns; /* of one pass: weights from the host */
};

/* One placement: cut × pp × virtual stages × way × offload. */
struct nw_placement {
    struct nw_layout layout;
    int pp, virtual_stages;
    const struct nw_stage_counts *counts;
    double fixed_bytes[NW_ENDS]; /* weights and optimizer states */
    double gradient_bytes[NW_ENDS];
    struct nw_quick_messages messages;
    double hop_ns, hop_ns_per_sequence;        /* to the next stage, mean of all boundaries */
    double pair_ns, pair_ns_per_sequence;      /* what a stage sends: over both of its boundaries */
    double far_ns, far_ns_per_sequence;        /* the slowest of them */
    double update_ns, down_ns, up_ns;          /* to the host: gradients down, weights up */
    double gather_loss, reduce_loss, hop_loss; /* of what hides */
    bool gathers_serial, reduces_serial, gathers_updated, gathers_twice, reduces_each;
    double jitter;
};

/* One cut of the layers. */
struct nw_cut {
    struct nw_build build;      /* units; owned */
    struct nw_memory_task task; /* borrows the build's layout */
};
nw_rc nw_cut_make(const struct nw_job *job, const struct nw_platform *platform,
                  const struct nw_layout *layout, const struct nw_scenario *scenario,
                  struct nw_cut *cut_out);
void nw_cut_free(struct nw_cut *cut);
nw_rc nw_quick_shape_make(const struct nw_cut *cut, const struct nw_job *job,
                          struct nw_prices *prices, uint64_t micro_batch,
                          struct nw_quick_shape *shape_out);
struct nw_stage_counts nw_stage_counts_of(const struct nw_cut *cut, int pp, int virtual_stages);

/* `layout`: with pp and strategy; `counts`: of any of its virtual stages. */
nw_rc nw_quick_messages_make(const struct nw_cut *cut, const struct nw_job *job,
                             const struct nw_layout *layout, const struct nw_stage_counts *counts,
                             struct nw_prices *prices, struct nw_quick_messages *messages_out);
/* Without virtual stages, counts and what depends on them: nw_placement_take. */
nw_rc nw_placement_make(const struct nw_cut *cut, const struct nw_job *job,
                        const struct nw_layout *layout, struct nw_prices *prices,
                        struct nw_placement *placement_out);
void nw_placement_take(const struct nw_cut *cut, const struct nw_job *job,
                       const struct nw_stage_counts *counts,
                       const struct nw_quick_messages *messages, struct nw_placement *placement);

double nw_quick_ns(const struct nw_placement *placement, const struct nw_quick_shape *shape,
                   double micro_batch_count);
/* Never more than nw_memory_of tells. */
double nw_quick_bytes(const struct nw_placement *placement, const struct nw_quick_shape *shape,
                      double micro_batch_count);

/* ---- the best so far ------------------------------------------------------------------------- */

struct nw_search_candidate {
    double key, quick_ns;
    struct nw_layout layout;
    uint64_t micro_batch;
    nw_recompute recompute;
    struct nw_offload offload;
};
struct nw_best {                       /* a heap, the worst on top */
    struct nw_search_candidate *items; /* `limit` of them */
    int count, limit;
};

struct nw_search_state {
    const struct nw_model *model;
    const struct nw_space *space;
    struct nw_platform platform;
    struct nw_job job;                      /* recompute and offload of the current one */
    struct nw_best bests[2 + NW_SPACE_MAX]; /* fastest, cheapest, fastest of each way */
    int best_count;
    double nearest_bytes; /* least memory of what did not fit */
    struct nw_layout nearest;
    uint64_t seen;
};
nw_rc nw_search_rank(const struct nw_search_state *state, size_t show,
                     struct nw_search_result *result);

/* What hidden communication costs, of its time. */
double nw_search_loss(const struct nw_build *build, nw_overlap mode);

#endif
