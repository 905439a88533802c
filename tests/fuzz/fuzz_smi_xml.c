/* nvidia-smi -q -x. */
#include "topo/read_smi.h"
#include "topo_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)nw_is_smi_xml((const char *)data, size);
    try_reader(nw_read_smi_xml, data, size);
    return 0;
}
