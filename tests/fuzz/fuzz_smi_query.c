/* nvidia-smi -q, --query-gpu, the table, -L, its messages, and several of them in one file. */
#include "topo/read_smi.h"
#include "topo_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)nw_is_smi_query((const char *)data, size);
    (void)nw_is_smi_csv((const char *)data, size);
    (void)nw_is_smi_table((const char *)data, size);
    (void)nw_is_smi_list((const char *)data, size);
    if (nw_is_smi_several((const char *)data, size))
        try_reader(nw_read_smi_several, data, size);
    try_reader(nw_read_smi_query, data, size);
    try_reader(nw_read_smi_csv, data, size);
    try_reader(nw_read_smi_table, data, size);
    try_reader(nw_read_smi_list, data, size);
    return 0;
}
