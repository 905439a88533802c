#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#include "model/model.h"

Test(gpu, names_of_drivers_shops_and_people_are_understood)
{
    static const struct {
        const char *asked, *found;
    } cases[] = {
        {"NVIDIA H100 80GB HBM3", "H100 SXM5 80GB"},
        {"h100-sxm", "H100 SXM5 80GB"},
        {"H100", "H100 SXM5 80GB"},
        {"NVIDIA H100 PCIe", "H100 PCIe 80GB"},
        {"NVIDIA H100 NVL", "H100 NVL 94GB"},
        {"NVIDIA A100-SXM4-80GB", "A100 SXM4 80GB"},
        {"a100-80", "A100 SXM4 80GB"},
        {"NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"},
        {"NVIDIA A100-SXM4-40GB", "A100 SXM4 40GB"},
        {"NVIDIA GeForce RTX 4090", "RTX 4090 24GB"},
        {"4090 d", "RTX 4090 D 24GB"},
        {"Tesla V100-SXM2-32GB", "V100 SXM2 32GB"},
        {"NVIDIA H20", "H20 SXM 96GB"},
        {"NVIDIA L40S", "L40S 48GB"},
        {"NVIDIA H200", "H200 SXM 141GB"},
        {"NVIDIA B200", "B200 SXM 180GB"},
        {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell 96GB"},
        {"AMD Instinct MI300X", "MI300X 192GB"},
        {"Ascend 910B2", "Ascend 910B2 64GB"},
        {"rtx4090", "RTX 4090 24GB"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct nw_gpu *gpu = NULL;

        cr_assert(eq(int, nw_gpu_find(cases[i].asked, &gpu), NW_OK), "%s: %s", cases[i].asked,
                  nw_last_error()->text);
        cr_expect(eq(str, (char *)gpu->name, (char *)cases[i].found), "%s", cases[i].asked);
    }
}

Test(gpu, unknown_names_are_refused)
{
    static const char *const names[] = {"",  "GTX 480", "H100 12GB", "nonsense",
                                        "-", "NVIDIA",  "rtx"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct nw_gpu *gpu = NULL;

        cr_expect(eq(int, nw_gpu_find(names[i], &gpu), NW_EUSAGE), "%s", names[i]);
    }
    const struct nw_gpu *gpu;

    cr_expect(eq(int, nw_gpu_find("H100 12GB", &gpu), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "near: H100 SXM5 80GB"), NULL), "%s",
              nw_last_error()->text);
}

Test(gpu, figures_are_in_base_units_and_one_way)
{
    const struct nw_gpu *gpu;

    cr_assert(eq(int, nw_gpu_find("h100-sxm", &gpu), NW_OK));
    cr_expect(eq(u64, gpu->memory_bytes, 80ull << 30));
    cr_expect(eq(dbl, gpu->bf16_flops, 989e12));
    cr_expect(eq(dbl, gpu->nvlink_both_ways_bytes_per_s, 900e9));
    cr_expect(eq(dbl, gpu->nvlink_one_way_bytes_per_s, 450e9));
    cr_expect(lt(dbl, fabs(gpu->pcie_one_way_bytes_per_s - 63e9), 0.1e9));
    cr_expect(eq(dbl, nw_gpu_peak(gpu, &nw_precisions[1]), 989e12));
    cr_expect(eq(dbl, nw_gpu_peak(gpu, &nw_precisions[0]), 67e12));
    cr_assert(eq(int, nw_gpu_find("v100-sxm-32", &gpu), NW_OK));
    cr_expect(eq(dbl, gpu->bf16_flops, 0));
    cr_expect(ge(sz, nw_gpu_count, 40));
    for (size_t i = 0; i < nw_gpu_count; i++) {
        cr_expect(gt(u64, nw_gpus[i].memory_bytes, 1ull << 30), "%s", nw_gpus[i].name);
        cr_expect(gt(dbl, nw_gpus[i].fp16_flops, 1e12), "%s", nw_gpus[i].name);
        cr_expect(gt(sz, strlen(nw_gpus[i].source), 5), "%s", nw_gpus[i].name);
    }
}
