#include <criterion/criterion.h>
#include <math.h>

#include "bench/paths_judge.h"

Test(bench_paths_judge, two_below_a_bridge_are_at_a_switch)
{
    static const struct {
        const char *a, *b;
        nw_nearness nearness;
    } rows[] = {
        {"/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0",
         "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1a:00.0",
         NW_NEARNESS_SWITCH},
        /* Two ports of one host bridge, and two host bridges. */
        {"/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0",
         "/sys/devices/pci0000:00/0000:00:02.0/0000:02:00.0", NW_NEARNESS_APART},
        {"/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0",
         "/sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0", NW_NEARNESS_APART},
        {"/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0",
         "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0", NW_NEARNESS_UNKNOWN},
        {"", "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0", NW_NEARNESS_UNKNOWN},
        {"/sys/devices/virtual/x", "/sys/devices/virtual/y", NW_NEARNESS_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(nw_pci_nearness(rows[i].a, rows[i].b), rows[i].nearness, "row %zu", i);
}

enum { GPUS = 8 };

struct matrix {
    double rates[GPUS * GPUS], ceilings[GPUS * GPUS];
    nw_nearness nearness[GPUS * GPUS];
};

/* Two switches of four GPUs. */
static struct matrix two_switches(double at_switch, double apart, double ceiling)
{
    struct matrix matrix;

    for (int a = 0; a < GPUS; a++)
        for (int b = 0; b < GPUS; b++) {
            const int i = a * GPUS + b;

            matrix.nearness[i] = a == b           ? NW_NEARNESS_UNKNOWN
                                 : a / 4 == b / 4 ? NW_NEARNESS_SWITCH
                                                  : NW_NEARNESS_APART;
            matrix.rates[i] = a == b ? NAN : a / 4 == b / 4 ? at_switch : apart;
            matrix.ceilings[i] = ceiling;
        }
    return matrix;
}

static struct nw_paths_verdict judge(const struct matrix *matrix)
{
    return nw_paths_judge(matrix->rates, matrix->ceilings, matrix->nearness, GPUS);
}

/* Both ways summed, of 8 RTX PRO 6000 (voipmonitor/rtx6kpro): with ACS off 103 at one switch and 95
 * across, with ACS on 50 and 95. */
Test(bench_paths_judge, pairs_at_a_switch_slower_than_pairs_across_are_redirected)
{
    const struct matrix off = two_switches(103e9, 95e9, 126e9),
                        on = two_switches(50e9, 95e9, 126e9);

    cr_expect_not(judge(&off).inverted);
    cr_expect_not(judge(&off).root_limited);
    cr_expect(judge(&on).inverted);
    cr_expect_float_eq(judge(&on).switch_bytes_per_s, 50e9, 1);
    cr_expect_float_eq(judge(&on).apart_bytes_per_s, 95e9, 1);
}

/* 3 RTX 4090 with peer access: 41.4 GB/s both ways, where 63 are possible
 * (tinygrad/open-gpu-kernel-modules#6). */
Test(bench_paths_judge, pairs_across_far_below_their_links_are_held_up_by_the_root_complex)
{
    const struct matrix slow = two_switches(NAN, 41.4e9, 63e9),
                        good = two_switches(NAN, 52e9, 63e9);

    cr_expect(judge(&slow).root_limited);
    cr_expect_not(judge(&slow).inverted);
    cr_expect_float_eq(judge(&slow).apart_share, 0.657, 0.001);
    cr_expect_not(judge(&good).root_limited);
}

Test(bench_paths_judge, nothing_known_is_nothing_wrong)
{
    const struct matrix none = two_switches(NAN, NAN, NAN), no_link = two_switches(50e9, 40e9, NAN);

    cr_expect_not(judge(&none).inverted);
    cr_expect_not(judge(&none).root_limited);
    cr_expect_not(judge(&no_link).root_limited);
}
