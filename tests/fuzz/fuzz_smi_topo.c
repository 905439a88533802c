/* nvidia-smi topo -m, -mp, -p2p. */
#include "topo/read_smi.h"
#include "topo_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)nw_is_smi_topo((const char *)data, size);
    try_reader(nw_read_smi_topo, data, size);
    return 0;
}
