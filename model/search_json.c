#include "base/json.h"
#include "model/search.h"

static const char *recompute_name(nw_recompute recompute)
{
    return recompute == NW_RECOMPUTE_FULL        ? "full"
           : recompute == NW_RECOMPUTE_SELECTIVE ? "selective"
                                                 : "none";
}

static const char *where(nw_offload_to to)
{
    return to == NW_OFFLOAD_CPU ? "cpu" : to == NW_OFFLOAD_NVME ? "nvme" : "none";
}

static nw_rc fill(json_t *object, const struct nw_found *found)
{
    json_t *step;

    NW_TRY(nw_json_set_text(object, "framework", found->step.layout.profile->name));
    NW_TRY(nw_json_set_u64(object, "micro_batch", found->step.micro_batch));
    NW_TRY(nw_json_set_text(object, "recompute", recompute_name(found->job.recompute)));
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
