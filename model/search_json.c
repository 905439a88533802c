/* A found plan as JSON, and as the options that bring it back. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/search.h"

static const char *where(nw_offload_to to)
{
    return to == NW_OFFLOAD_CPU ? "cpu" : to == NW_OFFLOAD_NVME ? "nvme" : "none";
}

static void append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append(char *text, const char *format, ...)
{
    const size_t at = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + at, NW_FOUND_OPTIONS_MAX - at, format, arguments);
    va_end(arguments);
}

void nw_found_options(const struct nw_found *found, char options_out[NW_FOUND_OPTIONS_MAX])
{
    const struct nw_layout *layout = &found->step.layout;
    const struct nw_offload *offload = &found->job.offload;
    const struct {
        const char *name;
        int value;
    } degrees[] = {
        {"tp", nw_layout_tp(layout)},
        {"pp", nw_layout_pp(layout)},
        {"virtual-stages", nw_layout_pp(layout) > 1 ? nw_layout_virtual_stages(layout) : 1},
        {"cp", nw_layout_cp(layout)},
        {"ep", nw_layout_ep(layout)},
    };

    snprintf(options_out, NW_FOUND_OPTIONS_MAX, "--strategy %s --framework %s --nodes %d",
             layout->strategy->name, layout->profile->name, layout->node_count);
    for (size_t i = 0; i < sizeof degrees / sizeof degrees[0]; i++)
        if (degrees[i].value > 1)
            append(options_out, " --%s %d", degrees[i].name, degrees[i].value);
    if (layout->parallel.shard_count > 0)
        append(options_out, " --shard %d", layout->parallel.shard_count);
    if (nw_layout_tp(layout) > 1)
        append(options_out, " --sequence-parallel %s",
               layout->parallel.sequence_parallel ? "yes" : "no");
    append(options_out, " --micro-batch %llu --recompute %s",
           (unsigned long long)found->step.micro_batch, nw_recompute_name(found->job.recompute));
    if (offload->optimizer != NW_OFFLOAD_NONE)
        append(options_out, " --offload-optimizer %s", where(offload->optimizer));
    if (offload->parameters != NW_OFFLOAD_NONE)
        append(options_out, " --offload-params %s", where(offload->parameters));
}

static nw_rc fill(json_t *object, const struct nw_found *found)
{
    char options[NW_FOUND_OPTIONS_MAX];
    json_t *step;

    nw_found_options(found, options);
    NW_TRY(nw_json_set_text(object, "options", options));
    NW_TRY(nw_json_set_bool(object, "first_of_its_kind", found->is_first));
    NW_TRY(nw_json_set_u64(object, "further_of_its_kind", found->alike));
    NW_TRY(nw_json_set_text(object, "framework", found->step.layout.profile->name));
    NW_TRY(nw_json_set_u64(object, "micro_batch", found->step.micro_batch));
    NW_TRY(nw_json_set_text(object, "recompute", nw_recompute_name(found->job.recompute)));
    NW_TRY(nw_json_set_text(object, "offload_optimizer", where(found->job.offload.optimizer)));
    NW_TRY(nw_json_set_text(object, "offload_params", where(found->job.offload.parameters)));
    NW_TRY(nw_json_set_real(object, "closed_form_ns", found->quick_ns));
    NW_TRY(nw_json_set_real(object, "cost_per_billion_tokens", found->cost_per_billion_tokens));
    NW_TRY(nw_step_to_json(&found->step, &step));
    return nw_json_set_new(object, "step", step);
}

nw_rc nw_found_to_json(const struct nw_found *found, json_t **json_out)
{
    json_t *object = json_object();
    const nw_rc rc = object != NULL ? fill(object, found) : nw_fail(NW_ENOMEM, "JSON: no memory");

    if (rc != NW_OK) {
        json_decref(object);
        return rc;
    }
    *json_out = object;
    return NW_OK;
}
