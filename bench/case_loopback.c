/* Each NIC with itself over RDMA: the card, its PCIe link and driver, without cable and switch. */
#include <stdio.h>

#include "bench/agree.h"
#include "bench/nics_at_once.h"

/* A NIC of each host at a time. */
static nw_rc loopback(struct nw_at_once *once)
{
    static const struct nw_nic_kind kinds[] = {
        {.name = "write_latency", NW_VERBS_WRITE, NW_NIC_FORTH, .ping = true, .small = true},
        {.name = "write", NW_VERBS_WRITE, NW_NIC_FORTH, .ping = false},
        {.name = "send", NW_VERBS_SEND, NW_NIC_FORTH, .ping = false},
    };
    const int hosts = once->bench->comm->host_count;

    for (int place = 0;; place++) {
        char what[32];

        NW_TRY(nw_agree(once->bench->comm, nw_at_once_begin(once, (size_t)hosts)));
        for (int host = 0; host < hosts; host++)
            if (nw_at_once_nic(once, host, place) >= 0)
                nw_at_once_add(once, nw_at_once_nic(once, host, place),
                               nw_at_once_nic(once, host, place));
        if (once->round.count == 0)
            return NW_OK;
        NW_TRY(nw_at_once_settle(once));
        for (size_t i = 0; i < once->round.count; i++)
            once->group_of_pair[i] = (int)i;
        snprintf(what, sizeof what, "NIC %d", place);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            NW_TRY(nw_at_once_unit(once, &kinds[i], (int)once->round.count, what, NULL));
    }
}

nw_rc nw_case_loopback(struct nw_bench *bench)
{
    return nw_at_once_run(bench, "loopback", 1, loopback, NULL);
}
