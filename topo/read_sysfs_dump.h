/* Private to topo/. A JSON object of sysfs paths and contents, as health checks write it. */
#ifndef NW_TOPO_READ_SYSFS_DUMP_H
#define NW_TOPO_READ_SYSFS_DUMP_H

#include "topo/topo.h"

bool nw_is_sysfs_dump(const char *data, size_t length);
nw_rc nw_read_sysfs_dump(const char *data, size_t length, const char *what,
                         struct nw_topo **topo_out);

#endif
