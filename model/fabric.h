/* Private to model/: how the parts of the fabric's cost hang together. */
#ifndef NW_MODEL_FABRIC_H
#define NW_MODEL_FABRIC_H

#include "model/fabric_level.h"

static inline double nw_fabric_constant(const struct nw_fabric *fabric, nw_constant constant)
{
    return fabric->assumptions != NULL ? fabric->assumptions->value[constant]
                                       : nw_constants[constant].value;
}

static inline int nw_group_hosts(struct nw_group group)
{
    return group.host_count > 1 ? group.host_count : 1;
}

static inline int nw_group_local(struct nw_group group)
{
    return (group.rank_count + nw_group_hosts(group) - 1) / nw_group_hosts(group);
}

/* ---- fabric_curve.c: from measured curves -------------------------------------------------- */

/* The lane in use; NULL: nothing measured. */
const char *nw_fabric_lane(const struct nw_fabric *fabric);
/* Levels by datasheet, with what the curves of one node say of the links put in its place. */
struct nw_levels nw_fabric_levels(const struct nw_fabric *fabric);
/* From the measured group that says most of the wanted one; false: none does. `over_hosts`: look
 * among groups over several hosts, else among those of one. */
bool nw_fabric_from_curves(const struct nw_fabric *fabric, nw_coll_id coll, struct nw_group group,
                           bool over_hosts, struct nw_line_part *part_out, unsigned *how_out);

#endif
