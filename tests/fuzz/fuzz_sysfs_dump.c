/* JSON of sysfs paths: the live RDMA reader over hostile contents. */
#include "topo/read_sysfs_dump.h"
#include "topo_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)nw_is_sysfs_dump((const char *)data, size);
    try_reader(nw_read_sysfs_dump, data, size);
    return 0;
}
