/* Which product a GPU is: by the names that real drivers and listings print, and by what else was
 * read where names are shared or wrong. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topo/product.h"
#include "topo/read.h"

/* Every GPU name of the field data (hwloc exports, nvidia-smi, NVLink, NCCL logs, nvbandwidth), and
 * others as drivers print them. NULL: not in the catalogue. */
Test(topo_product, real_names)
{
    static const struct {
        const char *name, *product;
        int fits; /* 0: not looked at */
    } rows[] = {
        {"NVIDIA GeForce RTX 3090", "RTX 3090 24GB", 1},
        {"NVIDIA GH200 120GB", "GH200 96GB", 1},
        {"NVIDIA GH200 480GB", "GH200 96GB", 1},
        {"NVIDIA GeForce RTX 4090", "RTX 4090 24GB", 1},
        {"NVIDIA GeForce RTX 4090 D", "RTX 4090 D 24GB", 1},
        {"NVIDIA H800", "H800 SXM5 80GB", 2}, /* a board and a card have this name */
        {"NVIDIA H800 PCIe", "H800 PCIe 80GB", 1},
        {"NVIDIA H100 80GB HBM3", "H100 SXM5 80GB", 1},
        {"NVIDIA H100 PCIe", "H100 PCIe 80GB", 1},
        {"NVIDIA H100 NVL", "H100 NVL 94GB", 1},
        {"SIMULATED NVIDIA H100 80GB HBM3", "H100 SXM5 80GB", 1},
        {"NVIDIA GH100 [H100 SXM5 80GB]", "H100 SXM5 80GB", 1},
        {"NVIDIA GH100 [H200 SXM 141GB]", "H200 SXM 141GB", 1},
        {"NVIDIA H200", "H200 SXM 141GB", 1},
        {"NVIDIA H200 NVL", "H200 NVL 141GB", 1},
        {"NVIDIA H20", "H20 SXM 96GB", 1},
        {"NVIDIA H20-3e", "H20-3e SXM 141GB", 1},
        {"Tesla T4", "T4 16GB", 1},
        {"Tesla V100-SXM2-16GB", "V100 SXM2 16GB", 1},
        {"Tesla V100-SXM2-32GB", "V100 SXM2 32GB", 1},
        {"Tesla V100-PCIE-16GB", "V100 PCIe 16GB", 1},
        {"Tesla V100-PCIE-32GB", "V100 PCIe 32GB", 1},
        {"Tesla V100S-PCIE-32GB", "V100S PCIe 32GB", 1},
        {"NVIDIA A100-SXM4-80GB", "A100 SXM4 80GB", 1},
        {"NVIDIA A100-SXM4-40GB", "A100 SXM4 40GB", 1},
        {"A100-SXM4-40GB", "A100 SXM4 40GB", 1},
        {"NVIDIA A100-PCIE-40GB", "A100 PCIe 40GB", 1},
        {"NVIDIA A100 80GB PCIe", "A100 PCIe 80GB", 1},
        {"NVIDIA A800-SXM4-80GB", "A800 SXM4 80GB", 1},
        {"NVIDIA A800 80GB PCIe", "A800 PCIe 80GB", 1},
        {"NVIDIA GeForce RTX 5090", "RTX 5090 32GB", 1},
        {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell 96GB", 1},
        {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000 Blackwell 96GB",
         1},
        {"NVIDIA RTX A6000", "RTX A6000 48GB", 1},
        {"NVIDIA A40", "A40 48GB", 1},
        {"NVIDIA A30", "A30 24GB", 1},
        {"NVIDIA A10", "A10 24GB", 1},
        {"NVIDIA A10G", "A10G 24GB", 1},
        {"NVIDIA L40S", "L40S 48GB", 1},
        {"NVIDIA L40", "L40 48GB", 1},
        {"NVIDIA L20", "L20 48GB", 1},
        {"NVIDIA L4", "L4 24GB", 1},
        {"NVIDIA B200", "B200 SXM 180GB", 1},
        {"NVIDIA B300 SXM6 AC", "B300 SXM 288GB", 0},
        {"NVIDIA GB200", "GB200 186GB", 1},
        {"NVIDIA GB300", "GB300 288GB", 1},
        {"AMD Instinct MI300X", "MI300X 192GB", 1},
        /* not in the catalogue, though their names share words with products that are */
        {"NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada 48GB", 1},
        {"NVIDIA RTX 4000 SFF Ada Generation", NULL, 0},
        {"NVIDIA GeForce RTX 3090 Ti", NULL, 0},
        {"NVIDIA GeForce RTX 4090 Laptop GPU", NULL, 0},
        {"NVIDIA GeForce RTX 5090 D", NULL, 0},
        {"NVIDIA GeForce RTX 2080 SUPER", NULL, 0},
        {"NVIDIA GeForce RTX 2080", NULL, 0},
        {"NVIDIA GeForce RTX 4080 SUPER", NULL, 0},
        {"GeForce GTX 1070 Ti", NULL, 0},
        {"NVIDIA TITAN V", NULL, 0},
        {"Tesla M2075", NULL, 0},
        {"Tesla K40m", NULL, 0},
        {"NVIDIA Tesla P100 SXM2 16GB", NULL, 0},
        {"Graphics Device", NULL, 0},
        {"Tegra Xavier", NULL, 0},
        {"AMD INSTINCT MI200 (MCM) OAM LC MBA HPE C2", NULL, 0},
        {"", NULL, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_gpu_product product;

        nw_gpu_identify_name(rows[i].name, &product);
        if (rows[i].product == NULL) {
            cr_expect_null(product.gpu, "%s became %s", rows[i].name,
                           product.gpu != NULL ? product.gpu->name : "");
            continue;
        }
        cr_assert_not_null(product.gpu, "%s: none", rows[i].name);
        cr_expect_str_eq(product.gpu->name, rows[i].product, "%s became %s", rows[i].name,
                         product.gpu->name);
        cr_expect(rows[i].fits == 0 || product.fit_count == rows[i].fits, "%s: %d fit",
                  rows[i].name, product.fit_count);
        cr_expect_str_empty(product.contradiction);
    }
}

/* What was read beside the name. */
Test(topo_product, readings_decide)
{
    static const struct {
        const char *name;
        double power, gib, links, down; /* NAN: not read */
        uint32_t pci_device;
        const char *product, *decided, *contradiction; /* words split at '|'; "": none */
    } rows[] = {
        {"NVIDIA H100 80GB HBM3", 700, 79.6, 18, 0, 0x2330, "H100 SXM5 80GB",
         "name|power limit 700 W|18 NVLinks|PCI device 2330", ""},
        /* sold as a board, is a card */
        {"NVIDIA H100 80GB HBM3", 350, 79.6, 0, 0, 0, "H100 PCIe 80GB",
         "power limit 350 W|no NVLink",
         "the name says H100 SXM5 80GB|power limit 350 W|no NVLink|that is H100 PCIe 80GB"},
        {"NVIDIA H100 PCIe", 350, 79.6, 0, 0, 0x2331, "H100 PCIe 80GB", "name|no NVLink", ""},
        {"NVIDIA H100 PCIe", 350, 79.6, 12, 0, 0, "H100 PCIe 80GB", "name|12 NVLinks", ""},
        {"NVIDIA H100 NVL", 400, 93.6, 12, 0, 0, "H100 NVL 94GB", "name|12 NVLinks", ""},
        /* one name, two products */
        {"NVIDIA H800", 700, 79.6, 8, 0, 0, "H800 SXM5 80GB", "power limit 700 W|8 NVLinks", ""},
        {"NVIDIA H800", 350, 79.6, 0, 0, 0, "H800 PCIe 80GB", "power limit 350 W|no NVLink", ""},
        {"NVIDIA H800", NAN, 79.6, 8, 0, 0, "H800 SXM5 80GB", "8 NVLinks", ""},
        /* links lost, a limit lowered: still the product of the name */
        {"NVIDIA H100 80GB HBM3", 700, 79.6, 16, 2, 0, "H100 SXM5 80GB", "16 of 18 NVLinks", ""},
        {"NVIDIA A100-SXM4-80GB", 250, 79.6, 12, 0, 0, "A100 SXM4 80GB", "12 NVLinks",
         "power limit 250 W|does not fit"},
        {"NVIDIA A100-SXM4-80GB", 500, 79.6, 12, 0, 0, "A100 SXM4 80GB", "power limit 500 W", ""},
        /* an export version under the other's name */
        {"NVIDIA A100-SXM4-80GB", 400, 79.6, 8, 0, 0, "A100 SXM4 80GB", "name|power",
         "8 of 12 NVLinks|does not fit"},
        {"NVIDIA A800-SXM4-80GB", 400, 79.6, 8, 0, 0x20f3, "A800 SXM4 80GB", "8 NVLinks", ""},
        {"NVIDIA H20", 500, 95.6, 18, 0, 0x2329, "H20 SXM 96GB", "18 NVLinks", ""},
        {"NVIDIA H200", 700, 140, 18, 0, 0, "H200 SXM 141GB", "name|18 NVLinks", ""},
        {"NVIDIA H200 NVL", 600, 140, 18, 0, 0x233b, "H200 NVL 141GB", "power limit 600 W", ""},
        {"NVIDIA GeForce RTX 4090", 450, 24, 0, 0, 0x2684, "RTX 4090 24GB", "no NVLink", ""},
        /* memory changed: no product is so */
        {"NVIDIA GeForce RTX 4090", 450, 48, 0, 0, 0x2684, "RTX 4090 24GB", "name|power",
         "48 GiB of memory|does not fit"},
        {"Tesla V100", 300, 15.8, 6, 0, 0, "V100 SXM2 16GB", "6 NVLinks", ""},
        {"Tesla V100", 300, 31.7, 6, 0, 0, "V100 SXM2 32GB", "6 NVLinks", ""},
        {"Tesla V100", 250, 31.7, NAN, NAN, 0, "V100 PCIe 32GB", "power limit 250 W", ""},
        {"NVIDIA B200", 1000, 179, 18, 0, 0x2901, "B200 SXM 180GB", "18 NVLinks", ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = calloc(1, sizeof *topo);
        struct nw_gpu_product product;
        char words[256], *rest = words, *word;
        int gpu;

        nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &gpu);
        nw_topo_add_node(topo, NW_NODE_GPU, 0, &gpu);
        snprintf(topo->nodes[gpu].model, sizeof topo->nodes[gpu].model, "%s", rows[i].name);
        topo->nodes[gpu].memory_bytes = (uint64_t)(rows[i].gib * 0x1p30);
        topo->nodes[gpu].pci_vendor = 0x10de;
        topo->nodes[gpu].pci_device = rows[i].pci_device;
        nw_topo_set_number(topo, gpu, NW_FACT_POWER_DEFAULT, rows[i].power, "t");
        nw_topo_set_number(topo, gpu, NW_FACT_NVLINK_COUNT, rows[i].links, "t");
        nw_topo_set_number(topo, gpu, NW_FACT_NVLINK_INACTIVE_COUNT, rows[i].down, "t");
        nw_gpu_identify(topo, gpu, &product);
        cr_assert_not_null(product.gpu, "row %zu: %s", i, rows[i].name);
        cr_expect_str_eq(product.gpu->name, rows[i].product, "row %zu: %s is %s by %s", i,
                         rows[i].name, product.gpu->name, product.decided);
        snprintf(words, sizeof words, "%s", rows[i].decided);
        while ((word = strsep(&rest, "|")) != NULL)
            cr_expect(strstr(product.decided, word) != NULL, "row %zu: no \"%s\" in \"%s\"", i,
                      word, product.decided);
        snprintf(words, sizeof words, "%s", rows[i].contradiction);
        rest = words;
        while ((word = strsep(&rest, "|")) != NULL)
            cr_expect(strstr(product.contradiction, word) != NULL, "row %zu: no \"%s\" in \"%s\"",
                      i, word, product.contradiction);
        if (rows[i].contradiction[0] == '\0')
            cr_expect_str_empty(product.contradiction, "row %zu: %s", i, product.contradiction);
        nw_topo_free(topo);
    }
}

/* A part of a GPU is not judged by its memory and links; a limit in force may have been lowered. */
Test(topo_product, what_is_no_evidence)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    struct nw_gpu_product product;
    int gpu;

    nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &gpu);
    nw_topo_add_node(topo, NW_NODE_GPU, 0, &gpu);
    snprintf(topo->nodes[gpu].model, sizeof topo->nodes[gpu].model, "NVIDIA A100-SXM4-80GB");
    topo->nodes[gpu].memory_bytes = (uint64_t)10 << 30;
    nw_topo_set_number(topo, gpu, NW_FACT_MIG, 1, "t");
    nw_topo_set_number(topo, gpu, NW_FACT_NVLINK_COUNT, 0, "t");
    nw_topo_set_number(topo, gpu, NW_FACT_POWER_LIMIT, 240, "t");
    nw_gpu_identify(topo, gpu, &product);
    cr_assert_not_null(product.gpu);
    cr_expect_str_eq(product.gpu->name, "A100 SXM4 80GB");
    cr_expect_str_empty(product.contradiction, "%s", product.contradiction);
    nw_topo_free(topo);
}

/* The catalogue's own figures agree with each other. */
Test(topo_product, the_catalogue_is_consistent)
{
    for (size_t i = 0; i < nw_gpu_count; i++) {
        const struct nw_gpu *gpu = &nw_gpus[i];
        struct nw_gpu_product product;

        if (gpu->nvlink_count > 0)
            cr_expect_float_eq(gpu->nvlink_count * gpu->nvlink_lane_bytes_per_s,
                               gpu->nvlink_one_way_bytes_per_s, 1e6, "%s: %d links of %g",
                               gpu->name, gpu->nvlink_count, gpu->nvlink_lane_bytes_per_s);
        cr_expect(gpu->power_from_w <= gpu->tdp_w || gpu->power_from_w == 0, "%s", gpu->name);
        cr_expect(gpu->power_to_w >= gpu->tdp_w || gpu->power_to_w == 0, "%s", gpu->name);
        nw_gpu_identify_name(gpu->name, &product);
        cr_assert_not_null(product.gpu, "%s does not find itself", gpu->name);
        cr_expect_eq(product.gpu, gpu, "%s finds %s", gpu->name, product.gpu->name);
        for (size_t k = 0; k < i; k++)
            cr_expect(gpu->pci_device == 0 || gpu->pci_device != nw_gpus[k].pci_device,
                      "%s and %s have one PCI id", gpu->name, nw_gpus[k].name);
    }
}
