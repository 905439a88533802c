#include <criterion/criterion.h>
#include <string.h>

#include "collectives/lane.h"

/* Eight H100 behind NVSwitches in each of two hosts with InfiniBand. */
static const struct nw_lane_facts hgx = {.gpus_known = 1,
                                         .nvlinks = 18,
                                         .switched = 1,
                                         .capability = 90,
                                         .nccl_version = 22809,
                                         .rdma_devices = 8,
                                         .host_count = 2,
                                         .ranks_on_a_host = 8};
static struct nw_lane_facts with(struct nw_lane_facts facts, size_t offset, int value)
{
    *(int *)((char *)&facts + offset) = value;
    return facts;
}
#define WITH(member, value) with(hgx, offsetof(struct nw_lane_facts, member), value)

Test(lane, is_left_out_with_the_reason)
{
    const struct {
        const char *lane;
        struct nw_lane_facts facts;
        const char *why; /* a part of it; NULL: it is run */
    } rows[] = {
        {"auto", {0}, NULL},
        {"nvlink", hgx, NULL},
        {"nvlink", WITH(nvlinks, 0), "no NVLink between the GPUs"},
        {"nvlink", WITH(gpus_known, 0), "NVML does not answer"},
        {"pcie", WITH(nvlinks, 0), NULL},
        {"pcie", WITH(ranks_on_a_host, 1), "one rank on each host"},
        {"shm", hgx, NULL},
        {"ring", {0}, NULL},
        {"tree", {0}, NULL},
        {"nvls", hgx, NULL},
        {"nvls", WITH(nccl_version, 21603), "NCCL 2.17"},
        {"nvls", WITH(nccl_version, 0), NULL},
        {"nvls", WITH(capability, 80), "compute capability 9.0"},
        {"nvls", WITH(switched, 0), "NVSwitches"},
        {"rdma", hgx, NULL},
        {"rdma", WITH(rdma_devices, 0), "no RDMA device"},
        {"rdma", WITH(host_count, 1), "one host"},
        {"tcp", WITH(rdma_devices, 0), NULL},
        {"tcp", WITH(host_count, 1), "one host"},
        {"nogdr", WITH(rdma_devices, 0), "no RDMA device"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char why[160] = "";
        const bool fits = nw_lane_fits(nw_lane_find(rows[i].lane), &rows[i].facts, why, sizeof why);

        cr_expect_eq(fits, rows[i].why == NULL, "row %zu, %s: %s", i, rows[i].lane, why);
        if (rows[i].why != NULL)
            cr_expect_not_null(strstr(why, rows[i].why), "row %zu: \"%s\"", i, why);
    }
}

Test(lane, forces_what_the_machine_needs)
{
    const struct nw_lane_facts cards = WITH(nvlinks, 0);
    const struct {
        const char *lane;
        struct nw_lane_facts facts;
        const char *name, *value;
    } rows[] = {
        {"nvlink", hgx, "NCCL_P2P_LEVEL", "NVL"}, {"pcie", hgx, "NCCL_P2P_DISABLE", "1"},
        {"pcie", cards, "NCCL_P2P_LEVEL", "SYS"}, {"shm", cards, "NCCL_P2P_DISABLE", "1"},
        {"ring", hgx, "NCCL_ALGO", "Ring"},       {"tcp", hgx, "NCCL_NET", "Socket"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct nw_lane_setting *setting =
            nw_lane_settings(nw_lane_find(rows[i].lane), &rows[i].facts);

        cr_expect_str_eq(setting->name, rows[i].name);
        cr_expect_str_eq(setting->value, rows[i].value);
    }
    cr_expect_null(nw_lane_settings(nw_lane_find("auto"), &hgx)->name);
    cr_expect_null(nw_lane_find("nvlnk"));
}

/* A forced lane does not inherit another one's: whatever a lane sets within a host is on the list.
 */
Test(lane, variables_within_a_host_are_not_inherited)
{
    for (const struct nw_lane *lane = nw_lanes; lane->name != NULL; lane++) {
        if (strcmp(lane->name, "rdma") == 0 || strcmp(lane->name, "tcp") == 0 ||
            strcmp(lane->name, "nogdr") == 0)
            continue;
        for (const struct nw_lane_setting *setting = lane->settings; setting->name != NULL;
             setting++) {
            size_t i = 0;

            while (nw_lane_variables[i] != NULL && strcmp(nw_lane_variables[i], setting->name) != 0)
                i++;
            cr_expect_not_null(nw_lane_variables[i], "%s of lane %s", setting->name, lane->name);
        }
    }
}
