/* Private to model/. The closed form of a step, taken apart by what its parts depend on, so that
 * the innermost loop of the search only adds up. */
#ifndef NW_MODEL_SEARCH_PARTS_H
#define NW_MODEL_SEARCH_PARTS_H

#include "model/memory_parts.h"
#include "model/search.h"
#include "model/step_build.h"

enum { NW_ENDS = 3 }; /* stages looked at: the first, the second, the last */

/* One micro-batch size and recomputation on one cut (tp, sp, cp, ep) of one profile. */
struct nw_quick_shape {
    bool made;
    double forward_ns[NW_UNIT_KINDS], backward_ns[NW_UNIT_KINDS]; /* with messages in the layer */
    double stored_bytes[NW_LAYER_KINDS];                          /* of a layer, one micro-batch */
    double micro_batch;
};

/* One placement: cut × pp × virtual stages × way × offload. */
struct nw_placement {
    struct nw_layout layout;
    const struct nw_strategy *strategy;
    const struct nw_profile *profile;
    int pp, virtual_stages, stage_count; /* stages looked at */
    int at[NW_ENDS];                     /* which they are */
    double counts[NW_ENDS][NW_UNIT_KINDS];
    double fixed_bytes[NW_ENDS]; /* weights and optimizer states */
    double gradient_bytes[NW_ENDS];
    /* messages of the stage that has most elements */
    double reduce_ns, reduce_tail_ns;  /* once; the last message of it */
    double gather_ns, gather_first_ns; /* once */
    double replica_ns;
    double hop_ns, hop_ns_per_sequence; /* to the next stage */
    double update_ns, copy_ns;
    double fused_loss, stream_loss, jitter;
};

nw_rc nw_quick_shape_make(const struct nw_model *model, const struct nw_platform *platform,
                          const struct nw_job *job, const struct nw_layout *layout,
                          uint64_t micro_batch, struct nw_quick_shape *shape_out);
/* `cut`: what the units are on this cut, of one stage. */
nw_rc nw_placement_make(const struct nw_build *cut, const struct nw_job *job,
                        const struct nw_layout *layout, struct nw_placement *placement_out);
/* In flight on each stage looked at. */
void nw_in_flight(const struct nw_job *job, const struct nw_placement *placement,
                  double micro_batch_count, double in_flight_out[NW_ENDS]);
double nw_quick_ns(const struct nw_placement *placement, const struct nw_quick_shape *shape,
                   double micro_batch_count);
/* Never more than nw_memory_of tells. */
double nw_quick_bytes(const struct nw_placement *placement, const struct nw_quick_shape *shape,
                      const double in_flight[NW_ENDS], double micro_batch_count);

#endif
