/* ibstat, ibv_devinfo, show_gids and their kin; iblinkinfo and ibnetdiscover. */
#include "topo/read_ib.h"
#include "topo_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)nw_is_ib((const char *)data, size);
    (void)nw_is_ib_fabric((const char *)data, size);
    try_reader(nw_read_ib, data, size);
    try_reader(nw_read_ib_fabric, data, size);
    return 0;
}
