/* Private to collectives/. Which row of a port's GID table to use towards which row of another's.
 * No device is needed here. */
#ifndef NW_COLLECTIVES_VERBS_GID_H
#define NW_COLLECTIVES_VERBS_GID_H

#include "collectives/verbs.h"

/* Of one side. */
struct nw_verbs_gids {
    const struct nw_verbs_gid *rows;
    size_t count;
    int wished;       /* an index; -1: by rule */
    const char *name; /* "node1 mlx5_0/1", for messages */
};

/* Kind of a RoCE row; `v2` by sysfs' gid_attrs/types. */
nw_verbs_gid_kind nw_verbs_gid_kind_of(const uint8_t raw[16], bool v2);
/* "fe80:0000:…" as sysfs prints it; false: an empty row, or no GID. */
bool nw_verbs_gid_parse(const char *text, uint8_t raw_out[16]);
/* Is there a row, and the wished one? NW_EUSAGE, NW_ENODEV. */
nw_rc nw_verbs_gid_check(const struct nw_verbs_gids *side);
/* Both sides come to the same pair, whichever is `here`. NW_EUSAGE: a wished index is not in the
 * table, or its kind is not the other's; NW_ENODEV: no row of one kind on both. */
nw_rc nw_verbs_gid_pair(const struct nw_verbs_gids *here, const struct nw_verbs_gids *there,
                        size_t *here_out, size_t *there_out);

#endif
