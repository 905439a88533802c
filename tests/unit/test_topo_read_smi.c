/* What nvidia-smi prints, read as people read it: every file of tests/field/topom and smi, and what
 * else happens to such text on its way. */
#include <criterion/criterion.h>

#include "tests/unit/topo_expect.h"

struct row {
    const char *file, *statements;
};

static void check_files(const char *folder, const struct row *rows, size_t count)
{
    char file[200];

    for (size_t i = 0; i < count; i++) {
        snprintf(file, sizeof file, "tests/field/%s/%s", folder, rows[i].file);
        expect_topology(file, rows[i].statements);
    }
}

Test(topo_read_smi, matrices_of_the_field)
{
    static const struct row rows[] = {
        {"a100-2pernuma-nic-mismatch-head.txt",
         "gpus 8; nics 6; pairs NV12:28 SYS:35 PXB:7; pair gpu0 gpu1 NV12; pair gpu0 gpu7 NV12; "
         "pair gpu0 nic1 PXB; pair gpu1 nic1 PXB; pair gpu2 nic0 PXB; pair gpu3 nic0 PXB; "
         "pair gpu4 nic5 PXB; pair gpu5 nic5 PXB; pair gpu6 nic2 PXB; pair gpu0 nic3 SYS; "
         "pair gpu6 nic3 SYS; pair gpu0 nic4 SYS; pair gpu6 nic4 SYS; pair gpu7 nic2 -; "
         "numa gpu0 3; numa gpu6 5; numa gpu7 -1; fact gpu0 cpu_affinity 24-31,88-95; "
         "fact gpu0 gpu_memory_numa_node -; finding file-cut; says gpu7 is missing; findings 2"},
        {"a100-nodenode-merged-columns-head.txt",
         "gpus 8; nics 10; pairs NV12:27 PXB:12 NODE:20 SYS:28; pair gpu0 mlx5_4 NODE; "
         "pair gpu0 mlx5_5 NODE; pair gpu0 mlx5_6 SYS; pair gpu0 mlx5_9 SYS; pair gpu2 mlx5_3 PXB; "
         "pair gpu4 mlx5_5 SYS; pair gpu4 mlx5_6 PXB; pair gpu5 mlx5_9 NODE; pair gpu6 gpu7 -; "
         "numa gpu3 0; numa gpu4 1; says gpu6, gpu7"},
        {"a100x4-booster-nv4.txt",
         "gpus 4; nics 2; pairs NV4:6 PIX:2 SYS:7; links 6; pair gpu0 gpu3 NV4; "
         "pair gpu1 mlx5_0 PIX; pair gpu2 mlx5_1 PIX; pair gpu0 mlx5_0 SYS; pair gpu0 mlx5_1 SYS; "
         "pair gpu3 mlx5_0 SYS; pair gpu3 mlx5_1 SYS; pair mlx5_0 mlx5_1 SYS; numa gpu0 1; "
         "numa gpu1 0; numa gpu2 3; numa gpu3 2; fact gpu* nvlink_to_switch -; findings 0"},
        {"a100x4-custom-nv4-1cpu.txt",
         "gpus 4; nics 4; pairs NV4:6 PXB:4 SYS:18; numa gpu* -1; fact gpu* cpu_affinity 0; "
         "pair gpu3 nic3 PXB; pair nic0 nic3 SYS; findings 0"},
        {"a100x8-spaces-book.txt",
         "gpus 8; nics 0; pairs NV12:28; numa gpu0 0; numa gpu7 1; fact gpu* nvlink_to_switch yes; "
         "fact gpu* nvlink_active_count 12; fact gpu0 cpu_affinity 0-23; findings 0"},
        {"aws-g5.48xlarge.txt",
         "gpus 8; nics 0; pairs PHB:28; links 0; numa gpu* -1; fact gpu* cpu_affinity 0-191; "
         "findings 0"},
        {"aws-g6f.large.txt",
         "gpus 1; nics 0; numa gpu0 0; fact gpu0 cpu_affinity 0-1; fact gpu0 peer_gpu_count -; "
         "fact gpu0 gpu_memory_numa_node -; findings 0"},
        {"aws-p3.16xlarge.txt",
         "gpus 8; pairs NV1:8 NV2:8 PHB:12; links 16; pair gpu0 gpu1 NV1; pair gpu0 gpu3 NV2; "
         "pair gpu0 gpu5 PHB; pair gpu0 gpu7 PHB; fact gpu* nvlink_to_switch -; findings 0"},
        {"aws-p4d.24xlarge.txt",
         "gpus 8; pairs NV12:28; numa gpu3 0; numa gpu4 1; fact gpu* nvlink_active_count 12; "
         "findings 0"},
        {"aws-p5.48xlarge.txt",
         "gpus 8; pairs NV18:28; numa gpu0 0; numa gpu3 0; numa gpu4 1; numa gpu7 1; "
         "fact gpu* nvlink_active_count 18; findings 0"},
        {"b200x8-10nic-ansi.txt",
         "gpus 8; nics 10; pairs NV18:28 SYS:64 NODE:48 PIX:13; pair gpu0 mlx5_3 PIX; "
         "pair gpu3 mlx5_0 PIX; pair gpu3 mlx5_1 PIX; pair gpu3 mlx5_2 PIX; pair gpu0 mlx5_6 SYS; "
         "pair mlx5_0 mlx5_2 PIX; pair mlx5_8 mlx5_9 NODE; numa gpu3 0; numa gpu4 1; "
         "fact gpu* gpu_memory_numa_node -; findings 0"},
        {"capture-win-2080s-591-topo.txt", "refused Windows|no topology|nvidia-smi -q|:1:"},
        {"dgx-a100-12nic-head.txt",
         "gpus 8; nics 12; pairs NV12:22 SYS:40 PXB:8; numa gpu0 3; numa gpu2 1; numa gpu4 -1; "
         "pair gpu4 gpu5 -; pair gpu3 gpu7 NV12; says 4 rows; says gpu4, gpu5, gpu6, gpu7"},
        {"dlperf-mixed-tabs.txt",
         "gpus 8; nics 2; pairs NV1:8 NV2:8 SYS:21 NODE:4 PIX:4; pair gpu0 gpu1 NV1; "
         "pair gpu0 gpu7 NV2; pair gpu0 mlx5_0 NODE; pair gpu2 mlx5_0 PIX; pair gpu7 mlx5_1 PIX; "
         "numa gpu0 0; numa gpu7 1; fact gpu5 cpu_affinity 24-47,72-95; findings 0"},
        {"gb200x4-8nic.txt",
         "gpus 4; nics 8; pairs NV18:6 SYS:58 PIX:2; numa gpu0 0; numa gpu1 0; numa gpu2 1; "
         "numa gpu3 1; fact gpu0 gpu_memory_numa_node 2; fact gpu1 gpu_memory_numa_node 10; "
         "fact gpu2 gpu_memory_numa_node 18; fact gpu3 gpu_memory_numa_node 26; "
         "finding sys-on-grace; says does not mean another socket; pair mlx5_2 mlx5_3 PIX; "
         "findings 1"},
        {"h100-interleaved-cpu-affinity-head.txt",
         "gpus 8; nics 12; pairs NV18:25 SYS:30 NODE:21 PIX:9; numa gpu3 0; numa gpu4 1; "
         "fact gpu0 cpu_affinity 4,6,8,10,12; fact gpu4 cpu_affinity 1,3,5,7,9,11; "
         "pair gpu4 nic8 PIX; says gpu5, gpu6, gpu7"},
        {"h100-p2p-status-book.txt",
         "gpus 8; fact gpu* peer_gpu_count 7; links 0; gap 2; findings 0"},
        {"h100x8-spaces-book.txt", "gpus 8; pairs NV18:28; numa gpu0 0; numa gpu7 1; findings 0"},
        {"h100x8-spaces2-book.txt",
         "gpus 8; pairs NV18:28; fact gpu7 cpu_affinity 52-103,156-207; findings 0"},
        {"metax-mx-smi.txt", "refused MetaX|not of nvidia-smi"},
        {"ndmv4-truncated-dup-nic-names.txt",
         "gpus 8; nics 8; pairs NV12:28 NODE:20 SYS:72; pair gpu0 nic0 NODE; pair gpu0 nic4 NODE; "
         "pair gpu2 nic1 NODE; pair gpu2 nic5 NODE; pair gpu7 nic3 NODE; pair gpu7 nic7 NODE; "
         "pair gpu0 nic1 SYS; pair nic0 nic4 NODE; pair nic3 nic7 NODE; os nic7 ; says "
         "\"mlx5_ib\"; "
         "fabric nic0 infiniband; numa gpu0 1; numa gpu4 3; finding nic-names-cut; findings 1"},
        {"ndv4-an0-dup-nic-names.txt",
         "gpus 8; nics 9; pairs NV12:28 NODE:24 SYS:84; fabric nic0 ethernet; os nic0 ; "
         "fabric nic1 infiniband; pair gpu2 nic0 NODE; pair gpu0 nic0 SYS; pair gpu0 nic1 NODE; "
         "pair gpu0 nic5 NODE; pair nic0 nic2 NODE; pair nic0 nic6 NODE; finding nic-names-cut"},
        {"nvlink8-h800-9nic-head.txt",
         "gpus 8; nics 9; pairs NV8:28 SYS:31 NODE:25 PIX:7; fact gpu0 nvlink_active_count 8; "
         "fact gpu6 nvlink_to_switch yes; pair gpu0 nic2 PIX; pair gpu1 nic4 PIX; "
         "pair gpu4 nic1 PIX; pair gpu3 nic8 PIX; says gpu7 is missing"},
        {"rtx5090-x2-tabs.txt",
         "gpus 2; pairs PHB:1; links 0; numa gpu* 0; fact gpu* cpu_affinity 0-63; findings 0"},
        {"rtx6000ada-x2.txt",
         "gpus 2; nics 2; pairs PHB:1 NODE:4 PIX:1; pair gpu0 gpu1 PHB; pair mlx5_0 mlx5_1 PIX; "
         "findings 0"},
        {"rtx6000ada-x4-cx7.txt",
         "gpus 4; nics 4; pairs NODE:10 SYS:16 PIX:2; pair gpu0 gpu1 NODE; pair gpu0 gpu2 SYS; "
         "pair gpu2 mlx5_2 NODE; pair mlx5_0 mlx5_1 PIX; numa gpu2 1; findings 0"},
        {"rtx6000pro-x8-2numa.txt",
         "gpus 8; pairs PHB:12 SYS:16; pair gpu0 gpu3 PHB; pair gpu0 gpu4 SYS; numa gpu* -1; "
         "fact gpu* cpu_affinity -; findings 0"},
        {"rtx6000pro-x8-numa-suffix.txt",
         "gpus 8; pairs PIX:4 NODE:8 SYS:16; numa gpu0 0; numa gpu3 0; numa gpu4 1; numa gpu7 1; "
         "links 0; findings 0"},
        {"rtx6000pro-x8-pcie-switches.txt", "gpus 8; pairs PIX:12 PHB:16; findings 0"},
        {"v100-pcie-x2-mlx.txt",
         "gpus 2; nics 2; pairs PIX:2 SYS:4; pair gpu0 gpu1 PIX; pair gpu0 mlx5_0 SYS; "
         "numa gpu* -1; fact gpu* cpu_affinity 0-11,24-35; findings 0"},
        {"v100x8-wechat-blanklines.txt",
         "gpus 8; pairs NV1:8 NV2:8 SYS:12; pair gpu0 gpu2 NV2; pair gpu0 gpu4 SYS; findings 0"},
    };

    check_files("topom", rows, sizeof rows / sizeof *rows);
}

Test(topo_read_smi, queries_and_tables_of_the_field)
{
    static const struct row rows[] = {
        {"4090x8-q-mixed-gen.txt",
         "gpus 8; fact machine driver_version 535.154.05; fact machine cuda_version 12.2; "
         "fact machine gpu_attached_count 8; model gpu* NVIDIA GeForce RTX 4090; "
         "fact gpu* pcie_max_generation 4; fact gpu0 pcie_generation 1; "
         "fact gpu1 pcie_generation 4; fact gpu4 pcie_generation 4; fact gpu7 pcie_generation 1; "
         "fact gpu1 throttle 4; fact gpu4 throttle 4; fact gpu0 throttle 1; fact gpu7 throttle 1; "
         "lanes gpu* 16/16; link gpu0 4.00/31.5; link gpu1 31.5/31.5; pci gpu7 0000:e1:00.0; "
         "memory gpu* 24564; fact gpu* power_limit_w 450 W; fact gpu1 gpu_index 1; findings 0"},
        {"a10-q-ecc4.txt",
         "gpus 1; model gpu0 NVIDIA A10; fact gpu0 retired_uncorrected_count 4; "
         "fact gpu0 retired_page_count 4; fact gpu0 row_remap_pending yes; "
         "fact gpu0 row_remap_failed no; fact gpu0 ecc_uncorrected_count 0; "
         "fact gpu0 gpu_virtualization pass-through; fact gpu0 power_limit_w 150 W; "
         "fact gpu0 power_default_limit_w 150 W; lanes gpu0 16/16; "
         "fact machine driver_version 535.129.03; findings 0"},
        {"a100-remapped-row-pending-q.txt",
         "gpus 1; fact machine gpu_attached_count 8; model gpu0 NVIDIA A100-SXM4-80GB; "
         "fact machine driver_version 510.73.08; pci gpu0 0000:10:1c.0; "
         "fact gpu0 row_remap_pending yes; fact gpu0 ecc_corrected_count 177; "
         "fact gpu0 ecc_corrected_lifetime_count 177; fact gpu0 ecc_uncorrected_count 0; "
         "fact gpu0 gpu_index -; finding file-cut; says 8 GPUs are attached, but only 1; "
         "says [...]"},
        {"capture-h100-mig-q.txt",
         "gpus 1; model gpu0 NVIDIA H100 80GB HBM3; fact gpu0 mig_enabled yes; memory gpu0 81559; "
         "fact gpu0 bar1_bytes 128 GiB; fact gpu0 uuid -; fact gpu0 serial -; "
         "fact machine driver_version 590.48.01; fact gpu0 throttle 1; "
         "fact gpu0 pcie_generation 5; fact gpu0 pcie_max_generation 5; lanes gpu0 16/16; "
         "fact gpu0 pcie_replay_count 9; fact gpu0 power_limit_w 700 W; "
         "fact gpu0 fabric_state completed; fact gpu0 fabric_status success; "
         "fact gpu0 recovery_action none; findings 0"},
        {"capture-h100-mig-query.csv",
         "gpus 1; model gpu0 NVIDIA H100 80GB HBM3; fact gpu0 mig_enabled yes; memory gpu0 81559; "
         "fact gpu0 compute_capability 90; fact gpu0 power_limit_w 700 W; lanes gpu0 16/16; "
         "fact gpu0 throttle 1; fact machine driver_version 590.48.01; findings 0"},
        {"capture-h200-q.txt",
         "gpus 1; model gpu0 NVIDIA H200; pci gpu0 0000:83:00.0; memory gpu0 143771; "
         "fact gpu0 mig_enabled no; link gpu0 63.0/63.0; fact gpu0 retired_page_count 0; "
         "fact gpu0 throttle 1; findings 0"},
        {"capture-h200-query.csv",
         "gpus 1; model gpu0 NVIDIA H200; pci gpu0 0000:83:00.0; memory gpu0 143771; "
         "fact gpu0 row_remap_pending no; fact gpu0 sm_max_clock_hz 1980 MHz; "
         "fact gpu0 temperature_c 28 C; fact gpu0 pcie_device_max_generation 5; findings 0"},
        {"capture-win-2080s-610-table.txt",
         "gpus 1; fact machine driver_version 610.62; fact machine cuda_version 13.3; "
         "pci gpu0 0000:0c:00.0; model gpu0 ; memory gpu0 8192; fact gpu0 power_limit_w 250 W; "
         "fact gpu0 temperature_c 39 C; fact gpu0 persistence_mode -; fact gpu0 ecc_enabled -; "
         "finding name-cut; says NVIDIA GeForce RTX 2080 ...; findings 1"},
        {"h100-query-vbios.csv",
         "gpus 2; model gpu* NVIDIA H100 80GB HBM3; fact gpu* vbios_version 96.00.89.00.01; "
         "pci gpu0 0000:04:00.0; pci gpu1 0000:8b:00.0; finding file-cut; fact gpu* gpu_index -; "
         "findings 1"},
        {"h100x8-q-hwslowdown.txt",
         "gpus 8; fact gpu* throttle 136; fact machine gpu_attached_count 8; lanes gpu* 16/16; "
         "model gpu* NVIDIA H100 80GB HBM3; fact machine driver_version 535.161.08; "
         "fact gpu* pcie_generation 5; fact gpu* pcie_max_generation 5; findings 0"},
        {"h100x8-q-truncated.txt",
         "gpus 1; fact machine gpu_attached_count 8; fact machine driver_version 535.183.01; "
         "fact gpu0 pcie_generation 5; lanes gpu0 16/16; finding file-cut; "
         "says 8 GPUs are attached, but only 1 follows; findings 1"},
        {"ndv4-ecc-bad.txt",
         "gpus 8; fact gpu0 retired_page_count 65; fact gpu0 retired_uncorrected_count 5; "
         "fact gpu7 retired_uncorrected_count 56; fact gpu7 row_remap_pending yes; "
         "pci gpu7 0008:00:00.0; fact gpu6 retired_page_count 0; fact gpu0 row_remap_pending no; "
         "fact machine driver_version 535.86.10; findings 0"},
        {"smi-525-short.txt",
         "gpus 1; fact machine driver_version 525.125.06; fact machine cuda_version 12.0; "
         "model gpu0 ; memory gpu0 23028; fact gpu0 persistence_mode no; "
         "fact gpu0 compute_mode Exclusive_Process; fact gpu0 power_limit_w 450 W; "
         "fact gpu0 ecc_uncorrected_count 0; finding name-cut; finding gpu-error; says Fan Speed"},
        {"smi-550-table.txt",
         "gpus 8; model gpu* NVIDIA H100 80GB HBM3; memory gpu* 81559; fact gpu* mig_enabled no; "
         "fact gpu* persistence_mode yes; fact gpu* power_limit_w 700 W; pci gpu7 0000:db:00.0; "
         "fact gpu0 temperature_c 27 C; fact machine cuda_version 12.4; findings 0"},
        {"telegraf-gtx1070ti-old.xml",
         "gpus 1; model gpu0 GeForce GTX 1070 Ti; fact gpu0 pcie_generation 1; "
         "fact gpu0 pcie_max_generation -; lanes gpu0 16/0; fact gpu0 power_w -; findings 0"},
        {"telegraf-rtx4000ada-v13.xml",
         "gpus 1; model gpu0 NVIDIA RTX 4000 SFF Ada Generation; fact gpu0 pcie_generation 1; "
         "fact gpu0 pcie_max_generation 4; lanes gpu0 16/16; fact gpu0 mig_enabled -; "
         "fact machine driver_version 595.84; fact gpu0 power_limit_w 70 W; fact gpu0 serial -; "
         "findings 0"},
        {"telegraf-t4.xml",
         "gpus 1; model gpu0 Tesla T4; fact gpu0 pcie_generation 3; "
         "fact gpu0 pcie_max_generation 3; lanes gpu0 8/16; link gpu0 7.88/15.8; "
         "fact machine driver_version 515.105.01; fact gpu0 mig_enabled -; "
         "fact gpu0 power_limit_w 70 W; fact gpu0 throttle 0; findings 0"},
        {"titanv-q.txt", "gpus 1; model gpu0 NVIDIA TITAN V; fact gpu0 pcie_generation 1; "
                         "fact gpu0 pcie_max_generation 3; lanes gpu0 16/16; "
                         "fact machine driver_version 560.35.03; findings 0"},
    };

    check_files("smi", rows, sizeof rows / sizeof *rows);
}
