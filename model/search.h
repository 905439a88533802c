/* Public. The fastest and the cheapest mix of strategy, degrees of parallelism, micro-batch,
 * recomputation and offload that holds the job: a closed form over the whole space, the best
 * thousand predicted anew by the event simulation.
 *
 *     struct nw_space space;
 *     NW_TRY(nw_space_make(&model, &wishes, &space));
 *     struct nw_search_result found;
 *     NW_TRY(nw_search(&model, &space, 10, NULL, NULL, &found));
 *     found.items[0].step …                       // the fastest; found.cheapest: the cheapest
 *     nw_search_free(&found);
 */
#ifndef NW_MODEL_SEARCH_H
#define NW_MODEL_SEARCH_H

#include <jansson.h>

#include "model/model.h"

#define NW_SPACE_MAX 64

struct nw_space_wishes {    /* what stays open is varied; 0 and NULL: open */
    int largest_node_count; /* 1, 2, 4 … up to it, and it */
    bool keep_micro_batch, keep_recompute, keep_offload; /* as the job has them */
    bool keep_framework; /* the model's profile only; else each strategy's own */
};

struct nw_way { /* of the data-parallel ranks */
    const struct nw_strategy *strategy;
    const struct nw_profile *profile;
};

struct nw_space { /* every combination that nw_layout_check lets pass */
    int node_counts[NW_SPACE_MAX], tp[NW_SPACE_MAX], pp[NW_SPACE_MAX], cp[NW_SPACE_MAX],
        ep[NW_SPACE_MAX], virtual_stages[NW_SPACE_MAX];
    uint64_t micro_batches[NW_SPACE_MAX];
    int shards[NW_SPACE_MAX]; /* ranks that share one copy; 0: as the strategy has it */
    nw_recompute recomputes[3];
    struct nw_offload offloads[4];
    struct nw_way ways[NW_SPACE_MAX];
    bool sequence_parallel[2];
    int node_count_count, tp_count, pp_count, cp_count, ep_count, virtual_count, micro_batch_count,
        shard_count, recompute_count, offload_count, way_count, sequence_count;
};
nw_rc nw_space_make(const struct nw_model *model, const struct nw_space_wishes *wishes,
                    struct nw_space *space_out);

/* Is the layout's strategy looked at with its shard_count? Not twice the same: a hybrid whose
 * shards are all ranks is the plain strategy, a plain one with a node's shards the hybrid. */
bool nw_space_takes_shards(const struct nw_space *space, const struct nw_layout *layout);

struct nw_found {
    struct nw_job job; /* with its micro-batch, recomputation and offload */
    double quick_ns;   /* closed form */
    struct nw_step step;
    double cost_per_billion_tokens; /* price 1 per node and hour where none was given */
    bool is_first;       /* of its kind: strategy, degrees of parallelism, offload; the fastest */
    bool leads_strategy; /* the fastest of its strategy and framework */
    size_t alike;        /* further ones of that kind */
};
struct nw_search_result {   /* owns its items */
    struct nw_found *items; /* fastest first, all fit; complete as far as asked for */
    size_t count;
    size_t cheapest;         /* index */
    uint64_t seen;           /* configurations whose step the closed form computed */
    double quick_s, exact_s; /* that passed */
    double quick_cpu_s;      /* of this process, in the closed form */
};

/* The first `show`, the first of as many kinds, of each strategy and the cheapest have interval,
 * memory and cost; the others their step time only. `progress`: called with the share done, 0 to 1.
 * NW_EUSAGE: nothing in the space fits; says what came nearest. */
typedef void (*nw_search_progress)(void *context, double share, uint64_t seen);
nw_rc nw_search(const struct nw_model *model, const struct nw_space *space, size_t show,
                nw_search_progress progress, void *context, struct nw_search_result *result_out);
void nw_search_free(struct nw_search_result *result);
/* "--strategy fsdp --tp 8 …": what makes `nodeworth predict` predict this plan, behind the options
 * that the search had. */
#define NW_FOUND_OPTIONS_MAX 400
void nw_found_options(const struct nw_found *found, char options_out[NW_FOUND_OPTIONS_MAX]);
nw_rc nw_found_to_json(const struct nw_found *found, json_t **json_out);

#endif
