/* Private to collectives/. What sysfs tells of an RDMA port; no device and no library is needed. */
#ifndef NW_COLLECTIVES_VERBS_PORT_H
#define NW_COLLECTIVES_VERBS_PORT_H

#include "collectives/verbs.h"

/* Fills the port of `device` and `number` from below `sys` ("/sys"): place, state, rate, GIDs. What
 * is not there stays unknown. The caller frees port->gids. */
nw_rc nw_verbs_port_read(const char *sys, struct nw_verbs_port *port);

#endif
