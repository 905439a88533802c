/* Private to cli/. The PCIe links of GPUs while they carry data: an idle GPU lowers its link's
 * speed, so that only then a bad one shows. */
#ifndef NW_CLI_CHECK_LOAD_H
#define NW_CLI_CHECK_LOAD_H

#include "topo/topo.h"

/* Copies to every GPU that this process is shown, one after the other (so that no two below one
 * PCIe switch share its uplink), for 0.2 s each, and reads the link meanwhile: NW_FACT_LINK_LOADED,
 * and the width as it runs. Verifies nothing and measures no rate: that is bench's. NW_ENODEV: no
 * GPU, driver or NVML; NW_OK also where single GPUs refuse, with a finding "not-checked". */
nw_rc nw_check_load(struct nw_topo *topo);

#endif
