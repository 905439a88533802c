#include <math.h>

#include "cli/emit_files.h"
#include "cli/model_args.h"

static const char doc[] =
    "The plan as configuration of the tools that run it: DeepSpeed, Accelerate, Megatron-LM, "
    "torchrun, Slurm, Kubernetes.\v"
    "The plan is the fastest of --strategy that fits on --nodes; buckets are as large as "
    "the latency asks for, measured or of data sheets. With one --as and no --out it is printed. "
    "Example:\n\n"
    "  nodeworth emit --model llama-3-8b --gpu h100-sxm --nodes 2 --strategy zero3 --recompute "
    "full --nic-gbps 3200 --as deepspeed,slurm --out plan";

/* The fastest that fits, of the one prediction or more that there are. */
static nw_rc choose(const struct nw_steps *steps, const struct nw_step **step_out)
{
    const struct nw_step *best = nw_steps_fastest(steps), *least = steps->items;

    for (size_t i = 0; i < steps->count; i++)
        if (steps->items[i].memory.total_bytes < least->memory.total_bytes)
            least = &steps->items[i];
    if (best == NULL)
        return nw_fail(
            NW_EUSAGE,
            "no plan fits: %s%s on %d node%s needs %.1f GiB a GPU; nodeworth predict says "
            "what would make it fit",
            steps->count > 1 ? "even " : "", least->strategy->name, least->node_count,
            least->node_count == 1 ? "" : "s", least->memory.total_bytes / (1024.0 * 1024 * 1024));
    *step_out = best;
    return NW_OK;
}

static nw_rc emit(const struct nw_model_args *args, const struct nw_results *results)
{
    const struct nw_emit_wishes wishes = {.as = args->emit_as,
                                          .out = args->emit_out,
                                          .script = args->emit_script,
                                          .image = args->emit_image};
    const struct nw_step *step = NULL;
    struct nw_emission emission;
    struct nw_steps steps = {0};
    struct nw_model model;

    NW_TRY(nw_emit_files_check(&wishes));
    NW_TRY(nw_model_open(&args->request, results, &model));
    nw_rc rc = nw_predict_all(&model, &steps);

    if (rc == NW_OK)
        rc = choose(&steps, &step);
    if (rc == NW_OK)
        rc = nw_emission_make(&model, NULL, step, &emission);
    if (rc == NW_OK)
        rc = nw_emit_files(&wishes, &emission);
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
