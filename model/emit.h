/* Public. A chosen plan as configuration that the real tools take: DeepSpeed, Accelerate (FSDP),
 * Megatron-LM, torchrun, Slurm, Kubernetes.
 *
 *     const struct nw_emitter *emitter;
 *     NW_TRY(nw_emitter_find("deepspeed", &emitter));
 *     struct nw_emission emission;
 *     NW_TRY(nw_emission_make(&model, NULL, &step, &emission));
 *     NW_TRY(nw_emit(emitter, &emission, stdout));
 *
 * Everything is borrowed.
 */
#ifndef NW_MODEL_EMIT_H
#define NW_MODEL_EMIT_H

#include <stdio.h>

#include "model/model.h"

struct nw_emission {            /* what is written down */
    struct nw_job job;          /* in the types of the strategy's framework */
    const struct nw_step *step; /* layout, batch, fit */
    int gpus_per_node;
    const char *script; /* "train.py" */
    const char *image;  /* of containers */
    /* Message size from which a collective's time is at least 95 % bytes: smaller buckets pay
     * latency, larger ones hide less. 0: one rank. */
    double bucket_bytes;
    bool simulated; /* by figures of a double, no machine's */
};

struct nw_emitter {
    const char *name, *title;
    const char *file; /* name that a file of it gets */
    bool executable;  /* begins with #! */
    bool comments;    /* takes lines that begin with # */
    /* NW_EUSAGE where the tool has no such plan: says what it takes. */
    nw_rc (*check)(const struct nw_emission *emission);
    nw_rc (*write)(const struct nw_emission *emission, FILE *stream);
};
extern const struct nw_emitter nw_emitters[];
extern const size_t nw_emitter_count;

nw_rc nw_emitter_find(const char *name, const struct nw_emitter **emitter_out);
/* `job` NULL: the model's, in the types of the step's framework. */
nw_rc nw_emission_make(const struct nw_model *model, const struct nw_job *job,
                       const struct nw_step *step, struct nw_emission *emission_out);
/* Checked and written, with NW_EMIT_SIMULATED where that holds and comments are taken; NW_EIO when
 * the stream failed. */
#define NW_EMIT_SIMULATED "from SIMULATED results"
nw_rc nw_emit(const struct nw_emitter *emitter, const struct nw_emission *emission, FILE *stream);

/* One word for a shell: in single quotes where it is not plain. */
void nw_emit_quote(FILE *stream, const char *word);

/* Private to model/emit*.c. */
bool nw_emit_is(const struct nw_emission *emission, const char *strategies); /* "zero1 zero2" */
bool nw_emit_is_adam(const struct nw_emission *emission); /* 32 bits, AdamW too */
bool nw_emit_is_fp16(const struct nw_emission *emission);
nw_rc nw_emit_any(const struct nw_emission *emission);
nw_rc nw_emit_deepspeed_check(const struct nw_emission *emission);
nw_rc nw_emit_deepspeed(const struct nw_emission *emission, FILE *stream);
nw_rc nw_emit_accelerate_check(const struct nw_emission *emission);
nw_rc nw_emit_accelerate(const struct nw_emission *emission, FILE *stream);
nw_rc nw_emit_megatron_check(const struct nw_emission *emission);
nw_rc nw_emit_megatron(const struct nw_emission *emission, FILE *stream);
nw_rc nw_emit_torchrun(const struct nw_emission *emission, FILE *stream);
nw_rc nw_emit_slurm(const struct nw_emission *emission, FILE *stream);
nw_rc nw_emit_mpijob(const struct nw_emission *emission, FILE *stream);
nw_rc nw_emit_pytorchjob(const struct nw_emission *emission, FILE *stream);

#endif
