/* Public. Lanes: the ways that the same bytes can be made to go, each by what its library is told
 * through the environment. NCCL reads it once per process, so every lane is run in a process of its
 * own (cli/lanes.h).
 *
 *     const struct nw_lane *lane = nw_lane_find("pcie");
 *     if (!nw_lane_fits(lane, &facts, why, sizeof why)) …      // "no NVLink between the GPUs here"
 *     nw_lane_settings(lane, &facts, settings);
 */
#ifndef NW_COLLECTIVES_LANE_H
#define NW_COLLECTIVES_LANE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct nw_comm;

/* What decides whether a lane can be run: of all ranks' hosts, the least. */
struct nw_lane_facts {
    int gpus_known;   /* 1: NVML answered on every host; 0: the three below are unknown */
    int nvlinks;      /* active ones of the GPU that has the fewest */
    int switched;     /* 1: they all lead to NVSwitches */
    int capability;   /* 90: compute capability 9.0 */
    int nccl_version; /* 22809; 0: unknown */
    int rdma_devices; /* of the host that has the fewest */
    int host_count;
    int ranks_on_a_host; /* of the host that has the most */
};

#define NW_LANE_SETTINGS_MAX 4
struct nw_lane_setting {
    const char *name, *value; /* name NULL: the end */
};

struct nw_lane {
    const char *name, *title;
    struct nw_lane_setting settings[NW_LANE_SETTINGS_MAX + 1];
    /* Where there is no NVLink; the first name NULL: as above. */
    struct nw_lane_setting without_nvlink[NW_LANE_SETTINGS_MAX + 1];
    const char *only; /* the collective that the algorithm has; NULL: all of them */
    const char *(*unfit)(const struct nw_lane_facts *facts); /* the reason; NULL: it can be run */
};
extern const struct nw_lane nw_lanes[]; /* ends with name NULL; "auto" is the first */

const struct nw_lane *nw_lane_find(const char *name); /* NULL: no such lane */
/* `why` (may be NULL) is set when it does not. */
bool nw_lane_fits(const struct nw_lane *lane, const struct nw_lane_facts *facts, char *why,
                  size_t why_size);
const struct nw_lane_setting *nw_lane_settings(const struct nw_lane *lane,
                                               const struct nw_lane_facts *facts);
/* What a forced lane does not inherit from the user's environment, besides its own settings. Ends
 * with NULL. */
extern const char *const nw_lane_variables[];

/* Collective: the facts of all ranks' hosts together, the same on all. Starts no GPU work. */
nw_rc nw_lane_look(struct nw_comm *comm, struct nw_lane_facts *facts_out);

#endif
