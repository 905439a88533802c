/* lspci -vvv. */
#include "topo/read_lspci.h"
#include "topo_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)nw_is_lspci((const char *)data, size);
    try_reader(nw_read_lspci, data, size);
    return 0;
}
