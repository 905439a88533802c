/* Public. What would make a job fit the card: one row of a table a change, each with its new memory
 * and what it costs in time, the cheapest first; a combination where no single change is enough.
 *
 *     struct nw_fit_advice advice;
 *     NW_TRY(nw_fit_advise(&model, &step.layout, &advice));
 *     if (!advice.fits)
 *         advice.items[0].text, .memory_bytes, .time_ratio     // those that fit come first
 */
#ifndef NW_MODEL_FIT_H
#define NW_MODEL_FIT_H

#include "model/model.h"

struct nw_fit_state { /* what a change changes; plain data */
    struct nw_job job;
    struct nw_layout layout;
};

struct nw_fit_change {
    const char *name;   /* "recompute-full" */
    const char *option; /* how to ask for it: "--recompute full" */
    const char *text;   /* in words; NULL: `word` writes them, option included, of a new state */
    void (*word)(const struct nw_fit_state *state, char *text, size_t size);
    bool other_numerics; /* the same training in other number types */
    bool other_training; /* other weights are trained: a different result */
    bool more_gpus;
    /* One step of the change; false: there is nothing (more) to change here. */
    bool (*apply)(struct nw_fit_state *state, const struct nw_platform *platform);
    bool repeats; /* may be applied again: halving, doubling, the next stage */
};
extern const struct nw_fit_change nw_fit_changes[];
extern const size_t nw_fit_change_count;

struct nw_fit_item {
    const struct nw_fit_change *change;
    char text[160];            /* "full recomputation of every layer (--recompute full)" */
    struct nw_fit_state state; /* with the change, as often as it takes to fit */
    double memory_bytes;       /* of the GPU, as nvidia-smi shows */
    double time_ratio; /* GPU-seconds per token over those without the change; NAN: unknown */
    double step_ratio; /* seconds per token, the same; below 1 with more GPUs */
    bool fits;
};

#define NW_FIT_MAX 24
struct nw_fit_advice {
    bool fits; /* as it is; also where the card's memory is unknown: nothing is advised */
    /* Changes one by one: those that fit first, by time; then the others, by memory. */
    struct nw_fit_item items[NW_FIT_MAX];
    size_t count;
    /* Several together, where none alone fits: the cheapest time for the memory, one after the
     * other. combination_count 0: not needed, or nothing helps. */
    struct nw_fit_item combination[NW_FIT_MAX]; /* memory and time with all up to this one */
    size_t combination_count;
    bool combination_fits;
};

nw_rc nw_fit_advise(const struct nw_model *model, const struct nw_layout *layout,
                    struct nw_fit_advice *advice_out);
/* The memory of a state as its batch is dealt; NW_EUSAGE: it cannot be. */
nw_rc nw_fit_memory(const struct nw_fit_state *state, const struct nw_platform *platform,
                    struct nw_memory *memory_out);

#endif
