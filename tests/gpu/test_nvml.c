/* What NVML says of each GPU, printed; 77 without a driver. On the emulated library (--emulated)
 * every value is compared with what is known of its machine. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "topo/nvml_api.h"

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition,                     \
                   nw_last_error()->text);                                                         \
            failed++;                                                                              \
        }                                                                                          \
    } while (0)

static int check_emulated(struct nw_nvml *nvml)
{
    struct nw_nvml_gpu gpu;
    struct nw_nvml_sample sample;
    char text[160];
    int failed = 0, index = -1;
    EXPECT(nw_nvml_count(nvml) == 2);
    EXPECT(nw_nvml_simulated(nvml));
    EXPECT(strcmp(nw_nvml_driver_version(nvml), "580.65.06") == 0);
    EXPECT(nw_nvml_cuda_version(nvml) == 13000);
    EXPECT(nw_nvml_find(nvml, "0000F00D:02:00.0", &index) == NW_OK && index == 1);
    EXPECT(nw_nvml_find(nvml, "f00d:03:00.0", &index) == NW_ENODEV);
    EXPECT(nw_nvml_find(nvml, "0x1:02:00.0", &index) == NW_EUSAGE);
    EXPECT(nw_nvml_find(nvml, "", &index) == NW_EUSAGE);
    EXPECT(nw_nvml_gpu(nvml, 2, &gpu) == NW_ENODEV);
    EXPECT(nw_nvml_gpu(nvml, -1, &gpu) == NW_ENODEV);

    EXPECT(nw_nvml_gpu(nvml, 0, &gpu) == NW_OK);
    EXPECT(strcmp(gpu.pci, "f00d:01:00.0") == 0 && gpu.capability == 90 && gpu.mig_enabled == 0);
    EXPECT(gpu.memory_bytes == 1u << 30 && gpu.pcie_generation == 5 && gpu.pcie_width == 16);
    EXPECT(gpu.link_count == 3 && gpu.links[0].active && !gpu.links[1].active);
    EXPECT(isnan(gpu.links[1].bytes_per_s) && gpu.links[1].peer == NW_NVLINK_PEER_UNKNOWN);
    EXPECT(gpu.links[0].bytes_per_s == 25e9);     /* the common rate: 25000 MB/s, one way */
    EXPECT(gpu.links[2].bytes_per_s == 26.562e9); /* its own */
    EXPECT(gpu.links[2].peer == NW_NVLINK_PEER_SWITCH && gpu.links[2].index == 2);
    EXPECT(strcmp(gpu.links[2].peer_pci, "f00d:92:00.0") == 0);
    EXPECT(nw_nvml_sample(nvml, 0, &sample) == NW_OK);
    EXPECT(sample.sm_clock_hz == 1980e6 && fabs(sample.power_w - 450.25) < 1e-9);
    EXPECT(fabs(sample.energy_j - 123456.789) < 1e-6 && sample.temperature_c == 61);
    EXPECT(sample.throttle_known && sample.throttle == 0);

    EXPECT(nw_nvml_gpu(nvml, 1, &gpu) == NW_OK);
    EXPECT(gpu.link_count == 0 && gpu.mig_enabled == -1 && gpu.pcie_generation == 1);
    EXPECT(gpu.pcie_width == 8 && gpu.pcie_max_generation == 4 && gpu.pcie_max_width == 16);
    EXPECT(nw_nvml_sample(nvml, 1, &sample) == NW_OK);
    EXPECT(isnan(sample.energy_j) && sample.power_limit_w == 450);
    EXPECT(strcmp(nw_throttle_text(text, sample.throttle), "power cap, heat") == 0);
    EXPECT(sample.throttle & NW_THROTTLE_BAD);
    EXPECT(strcmp(nw_throttle_text(text, 0), "none") == 0);
    EXPECT(strlen(nw_throttle_text(text, ~0ull)) < 159);
    return failed;
}

static void print_gpu(struct nw_nvml *nvml, int index)
{
    struct nw_nvml_gpu gpu;
    struct nw_nvml_sample sample;
    char text[160];
    if (nw_nvml_gpu(nvml, index, &gpu) != NW_OK || nw_nvml_sample(nvml, index, &sample) != NW_OK) {
        printf("gpu %d: %s\n", index, nw_last_error()->text);
        return;
    }
    printf("gpu %d: %s, %s, %s, %.1f GiB, compute capability %d\n", index, gpu.name, gpu.pci,
           gpu.uuid, (double)gpu.memory_bytes / (1 << 30), gpu.capability);
    printf("  PCIe gen %d x%d (most: gen %d x%d), MIG %d, %d NVLinks\n", gpu.pcie_generation,
           gpu.pcie_width, gpu.pcie_max_generation, gpu.pcie_max_width, gpu.mig_enabled,
           gpu.link_count);
    for (int i = 0; i < gpu.link_count; i++)
        printf("    link %d: %s, version %d, peer %d at %s, %.3f GB/s one way\n",
               gpu.links[i].index, gpu.links[i].active ? "up" : "DOWN", gpu.links[i].version,
               (int)gpu.links[i].peer, gpu.links[i].peer_pci, gpu.links[i].bytes_per_s * 1e-9);
    printf("  SM %.0f of %.0f MHz, memory %.0f MHz, %.1f of %.0f W, %.0f °C, throttle: %s\n",
           sample.sm_clock_hz * 1e-6, sample.sm_max_clock_hz * 1e-6, sample.memory_clock_hz * 1e-6,
           sample.power_w, sample.power_limit_w, sample.temperature_c,
           sample.throttle_known ? nw_throttle_text(text, sample.throttle) : "unknown");
}

int main(int argc, char **argv)
{
    struct nw_nvml *nvml;
    const nw_rc rc = nw_nvml_open(&nvml);
    if (rc != NW_OK) {
        printf("skipped: %s\n", nw_last_error()->text);
        return rc == NW_ENODEV ? 77 : 1;
    }
    printf("driver %s, CUDA %d\n", nw_nvml_driver_version(nvml), nw_nvml_cuda_version(nvml));
    for (int i = 0; i < nw_nvml_count(nvml); i++)
        print_gpu(nvml, i);
    const int failed = argc > 1 && strcmp(argv[1], "--emulated") == 0 ? check_emulated(nvml) : 0;
    nw_nvml_close(nvml);
    return failed ? 1 : 0;
}
