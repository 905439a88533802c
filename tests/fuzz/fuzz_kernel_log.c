/* dmesg and syslog. */
#include "topo/read_kernel_log.h"
#include "topo_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)nw_is_kernel_log((const char *)data, size);
    try_reader(nw_read_kernel_log, data, size);
    return 0;
}
