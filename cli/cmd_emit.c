#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/units.h"
#include "cli/model_args.h"
#include "model/emit.h"

static const char doc[] =
    "The plan as configuration of the tools that run it: DeepSpeed, Accelerate, Megatron-LM, "
    "torchrun, Slurm, Kubernetes.\v"
    "The plan is the fastest of --strategy that fits on --nodes; buckets are as large as the "
    "measured latency asks for. With one --as and no --out it is printed. Example:\n\n"
    "  nodeworth emit --model llama-3-8b --gpu h100-sxm --nodes 2 --strategy zero3 --nic-gbps 3200 "
    "--as deepspeed,slurm --out plan";

#define MAX_PATH_LENGTH 1024

/* It goes into shell scripts and YAML: only what needs no quoting there. */
static nw_rc check_plain(const char *text, const char *option)
{
    static const char accepted[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789._/:@+-";

    if (text[0] == '\0' || text[0] == '-' || text[strspn(text, accepted)] != '\0')
        return nw_fail(NW_EUSAGE, "%s \"%.80s\": accepted: letters, digits and . _ / : @ + -",
                       option, text);
    return NW_OK;
}

/* The fastest that fits; of one that must be, the first. */
static nw_rc choose(const struct nw_steps *steps, const struct nw_step **step_out)
{
    const struct nw_step *best = NULL;

    for (size_t i = 0; i < steps->count; i++) {
        const struct nw_step *step = &steps->items[i];

        if (step->fits != 0 && (best == NULL || step->step_ns < best->step_ns))
            best = step;
    }
    if (best == NULL && steps->count > 0)
        return nw_fail(NW_EUSAGE,
                       "no plan fits: %s on %d node%s needs %.1f GiB a GPU; nodeworth predict says "
                       "what would make it fit",
                       steps->items[0].strategy->name, steps->items[0].node_count,
                       steps->items[0].node_count == 1 ? "" : "s",
                       steps->items[0].memory.total_bytes / (1024.0 * 1024 * 1024));
    if (best == NULL)
        return nw_fail(NW_ENODEV, "nothing between nodes was measured or given; give results of "
                                  "two nodes, --nic-gbps or --inter-node");
    *step_out = best;
    return NW_OK;
}

/* ---- files --------------------------------------------------------------------------------- */

static nw_rc write_file(const struct nw_emitter *emitter, const struct nw_emission *emission,
                        const char *folder)
{
    struct nw_atomic_file *file;
    char path[MAX_PATH_LENGTH];

    if (snprintf(path, sizeof path, "%s/%s", folder, emitter->file) >= (int)sizeof path)
        return nw_fail(NW_EUSAGE, "--out: the path is longer than %d characters",
                       MAX_PATH_LENGTH - 1);
    NW_TRY(nw_atomic_open(path, &file));
    const nw_rc rc = nw_emit(emitter, emission, nw_atomic_stream(file));

    if (rc != NW_OK) {
        nw_atomic_abandon(file);
        return rc;
    }
    NW_TRY(nw_atomic_commit(file));
    if (emitter->executable)
        chmod(path, 0755);
    printf("%-24s %s\n", emitter->file, emitter->title);
    return NW_OK;
}

struct wanted {
    const struct nw_emitter *items[16];
    size_t count;
};

static nw_rc read_wanted(const char *list, struct wanted *wanted)
{
    char copy[256], *rest = NULL;

    wanted->count = 0;
    if (list == NULL)
        return NW_OK;
    if (strlen(list) >= sizeof copy)
        return nw_fail(NW_EUSAGE, "--as: the list is longer than %zu characters", sizeof copy - 1);
    strcpy(copy, list);
    for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (wanted->count == sizeof wanted->items / sizeof wanted->items[0])
            return nw_fail(NW_EUSAGE, "--as: more than %zu formats", wanted->count);
        NW_TRY(nw_emitter_find(word, &wanted->items[wanted->count++]));
    }
    return wanted->count > 0 ? NW_OK : nw_fail(NW_EUSAGE, "--as: \"%.40s\" names nothing", list);
}

/* Without a list: all that have such a plan. */
static void take_fitting(const struct nw_emission *emission, struct wanted *wanted)
{
    for (size_t i = 0; i < nw_emitter_count; i++) {
        if (nw_emitters[i].check(emission) == NW_OK)
            wanted->items[wanted->count++] = &nw_emitters[i];
        else
            nw_clear_error();
    }
}

static nw_rc emit_all(const struct nw_model_args *args, const struct nw_emission *emission,
                      struct wanted wanted)
{
    if (args->emit_as == NULL)
        take_fitting(emission, &wanted);
    for (size_t i = 0; i < wanted.count; i++) /* before anything is written */
        NW_TRY(wanted.items[i]->check(emission));
    if (args->emit_out == NULL && wanted.count == 1)
        return nw_emit(wanted.items[0], emission, stdout);
    if (args->emit_out == NULL)
        return nw_fail(NW_EUSAGE, "%zu files: give --out DIR, or one --as to have it printed",
                       wanted.count);
    NW_TRY(nw_make_directory(args->emit_out));
    for (size_t i = 0; i < wanted.count; i++)
        NW_TRY(write_file(wanted.items[i], emission, args->emit_out));
    return NW_OK;
}

static nw_rc emit(const struct nw_model_args *args, const struct nw_results *results)
{
    struct nw_model model;
    struct nw_steps steps = {0};
    struct nw_emission emission;
    struct wanted wanted;
    const struct nw_step *step;

    NW_TRY(read_wanted(args->emit_as, &wanted));
    NW_TRY(check_plain(args->emit_script, "--script"));
    NW_TRY(check_plain(args->emit_image, "--image"));
    NW_TRY(nw_model_open(&args->request, results, &model));
    nw_rc rc = nw_predict_all(&model, &steps);

    if (rc == NW_OK)
        rc = choose(&steps, &step);
    if (rc == NW_OK)
        rc = nw_emission_make(&model, step, &emission);
    if (rc == NW_OK) {
        emission.script = args->emit_script;
        emission.image = args->emit_image;
        rc = emit_all(args, &emission, wanted);
    }
    nw_steps_free(&steps);
    nw_model_close(&model);
    return rc;
}

int nw_cmd_emit(int argc, char **argv)
{
    struct nw_model_args args;
    struct nw_results results;
    nw_rc rc = nw_model_args_parse(argc, argv, doc, NW_ARGS_EMIT, &args, &results);

    if (rc != NW_OK)
        return nw_cli_fail(rc);
    rc = emit(&args, &results);
    nw_results_free(&results);
    if (rc == NW_OK)
        rc = nw_cli_finish_stdout();
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
