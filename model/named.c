/* Rows of the model's tables by their names. */
#include <string.h>

#include "model/model.h"

const struct nw_precision *nw_precision_named(const char *name)
{
    for (const struct nw_precision *row = nw_precisions; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

const struct nw_optimizer *nw_optimizer_named(const char *name)
{
    for (const struct nw_optimizer *row = nw_optimizers; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

const struct nw_profile *nw_profile_named(const char *name)
{
    for (size_t i = 0; i < nw_profile_count; i++)
        if (strcmp(nw_profiles[i].name, name) == 0)
            return &nw_profiles[i];
    return NULL;
}

const struct nw_strategy *nw_strategy_named(const char *name)
{
    for (size_t i = 0; i < nw_strategy_count; i++)
        if (strcmp(nw_strategies[i].name, name) == 0)
            return &nw_strategies[i];
    return NULL;
}

const char *nw_recompute_name(nw_recompute recompute)
{
    static const char *const names[] = {
        [NW_RECOMPUTE_NONE] = "none",
        [NW_RECOMPUTE_FULL] = "full",
        [NW_RECOMPUTE_SELECTIVE] = "selective",
    };

    return names[recompute];
}
