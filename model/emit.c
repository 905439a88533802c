/* The tools, one row each, and what they share. */
#include "model/emit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/units.h"

/* A bucket of which 95 % of the time is bytes; and what the frameworks' own defaults span: 25 MB of
 * DDP to 5·10^8 elements of DeepSpeed. */
#define BYTES_SHARE     0.95
#define SMALLEST_BUCKET (5.0 * 1024 * 1024)
#define LARGEST_BUCKET  1e9

const struct nw_emitter nw_emitters[] = {
    {.name = "deepspeed",
     .title = "DeepSpeed configuration (JSON)",
     .file = "ds_config.json",
     .check = nw_emit_deepspeed_check,
     .write = nw_emit_deepspeed},
    {.name = "accelerate",
     .title = "Hugging Face Accelerate configuration with FSDP (YAML)",
     .file = "accelerate.yaml",
     .comments = true,
     .check = nw_emit_accelerate_check,
     .write = nw_emit_accelerate},
    {.name = "megatron",
     .title = "arguments of Megatron-LM's pretrain_gpt.py",
     .file = "megatron.args",
     .check = nw_emit_megatron_check,
     .write = nw_emit_megatron},
    {.name = "torchrun",
     .title = "torchrun line, to be started on every node",
     .file = "torchrun.sh",
     .executable = true,
     .comments = true,
     .check = nw_emit_any,
     .write = nw_emit_torchrun},
    {.name = "slurm",
     .title = "Slurm batch script",
     .file = "job.sbatch",
     .executable = true,
     .comments = true,
     .check = nw_emit_any,
     .write = nw_emit_slurm},
    {.name = "mpijob",
     .title = "Kubernetes MPIJob (Kubeflow, v2beta1)",
     .file = "mpijob.yaml",
     .comments = true,
     .check = nw_emit_any,
     .write = nw_emit_mpijob},
    {.name = "pytorchjob",
     .title = "Kubernetes PyTorchJob (Kubeflow, v1)",
     .file = "pytorchjob.yaml",
     .comments = true,
     .check = nw_emit_any,
     .write = nw_emit_pytorchjob},
};
const size_t nw_emitter_count = sizeof nw_emitters / sizeof nw_emitters[0];

nw_rc nw_emitter_find(const char *name, const struct nw_emitter **emitter_out)
{
    const char *names[sizeof nw_emitters / sizeof nw_emitters[0] + 1] = {NULL};
    char accepted[160];

    for (size_t i = 0; i < nw_emitter_count; i++) {
        names[i] = nw_emitters[i].name;
        if (strcmp(names[i], name) == 0) {
            *emitter_out = &nw_emitters[i];
            return NW_OK;
        }
    }
    return nw_fail(NW_EUSAGE, "\"%.40s\" is no format of a plan; accepted: %s", name,
                   nw_join_names(accepted, sizeof accepted, names));
}

bool nw_emit_is(const struct nw_emission *emission, const char *strategies)
{
    const char *name = emission->step->strategy->name;
    const size_t length = strlen(name);

    for (const char *at = strstr(strategies, name); at != NULL; at = strstr(at + 1, name))
        if ((at == strategies || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

bool nw_emit_is_adam(const struct nw_emission *emission)
{
    const char *name = emission->job.optimizer->name;

    return strcmp(name, "adam") == 0 || strcmp(name, "adamw") == 0;
}

bool nw_emit_is_fp16(const struct nw_emission *emission)
{
    return emission->job.precision->units == NW_UNITS_FP16;
}

nw_rc nw_emit_any(const struct nw_emission *emission)
{
    (void)emission;
    return NW_OK;
}

/* Where the line latency + bytes / rate through two long messages has the share of bytes. */
static nw_rc find_bucket(const struct nw_model *model, const struct nw_step *step,
                         struct nw_emission *emission)
{
    const struct nw_platform platform = nw_model_platform(model);
    const struct nw_group group = nw_layout_group(&step->layout, NW_GROUP_DP);
    const char *collective = nw_emit_is(emission, "ddp") ? "all_reduce" : "reduce_scatter";
    const double small = 1024, large = 256e6;
    struct nw_cost first, last;

    if (group.rank_count < 2)
        return NW_OK;
    NW_TRY(nw_fabric_cost(&platform.fabric, collective, small, group, &model->scenario, &first));
    NW_TRY(nw_fabric_cost(&platform.fabric, collective, large, group, &model->scenario, &last));
    const double ns_per_byte = fmax(last.time_ns - first.time_ns, 1) / (large - small);
    const double bytes = BYTES_SHARE / (1 - BYTES_SHARE) * first.time_ns / ns_per_byte;

    emission->bucket_bytes = fmin(fmax(bytes, SMALLEST_BUCKET), LARGEST_BUCKET);
    return NW_OK;
}

nw_rc nw_emission_make(const struct nw_model *model, const struct nw_job *job,
                       const struct nw_step *step, struct nw_emission *emission_out)
{
    struct nw_emission emission = {.job = job != NULL ? *job : nw_model_job(model, &step->layout),
                                   .step = step,
                                   .gpus_per_node = model->platform.fabric.gpus_per_node,
                                   .script = "train.py",
                                   .image = "IMAGE",
                                   .simulated = (step->how & NW_COST_SIMULATED) != 0};

    if (emission.gpus_per_node > step->rank_count)
        emission.gpus_per_node = step->rank_count;
    NW_TRY(find_bucket(model, step, &emission));
    *emission_out = emission;
    return NW_OK;
}

nw_rc nw_emit(const struct nw_emitter *emitter, const struct nw_emission *emission, FILE *stream)
{
    NW_TRY(emitter->check(emission));
    if (emitter->executable)
        fputs("#!/bin/bash\n", stream);
    if (emission->simulated && emitter->comments)
        fputs("# " NW_EMIT_SIMULATED "\n", stream);
    NW_TRY(emitter->write(emission, stream));
    if (fflush(stream) != 0 || ferror(stream))
        return nw_fail(NW_EIO, "%s: could not be written: %s", emitter->file, strerror(errno));
    return NW_OK;
}

void nw_emit_quote(FILE *stream, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._/:@+-,=%";

    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        fputs(word, stream);
        return;
    }
    fputc('\'', stream);
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            fputs("'\\''", stream);
        else
            fputc(*word, stream);
    }
    fputc('\'', stream);
}
