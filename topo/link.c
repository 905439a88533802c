#include "topo/link.h"

#include <fnmatch.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* PCI Express Base Specification: transfer rate per lane, and the share that carries packets.
 * Gen1, Gen2: 8b/10b. Gen3 to Gen5: 128b/130b. Gen6: a 256-byte FLIT has 8 bytes of CRC and 6 of
 * FEC, so 242/256. Packet headers are not taken off: a ceiling must not be too low. */
static const struct {
    double transfers_per_s;
    double encoding;
} pcie_generations[] = {
    {2.5e9, 8.0 / 10},   {5e9, 8.0 / 10},     {8e9, 128.0 / 130},
    {16e9, 128.0 / 130}, {32e9, 128.0 / 130}, {64e9, 242.0 / 256},
};
enum { PCIE_GENERATIONS = sizeof pcie_generations / sizeof pcie_generations[0] };

/* Widths of the specification, those of cards first. */
static const int pcie_widths[] = {16, 8, 4, 2, 1, 32, 12};
enum { PCIE_WIDTHS = sizeof pcie_widths / sizeof pcie_widths[0] };

double nw_pcie_bytes_per_s(int generation, int lanes)
{
    if (generation < 1 || generation > PCIE_GENERATIONS)
        return NAN;
    for (size_t i = 0; i < PCIE_WIDTHS; i++)
        if (pcie_widths[i] == lanes)
            return pcie_generations[generation - 1].transfers_per_s *
                   pcie_generations[generation - 1].encoding * lanes / 8;
    return NAN;
}

void nw_pcie_from_rate(double bytes_per_s, int *generation_out, int *lanes_out)
{
    double nearest = 0.03;

    *generation_out = *lanes_out = 0;
    if (!(bytes_per_s > 0) || !isfinite(bytes_per_s))
        return;
    /* Gen3 x16, Gen4 x8 and Gen5 x4 are one rate: the widest is named, as it comes first and a
     * later one must be nearer by more than rounding. */
    for (size_t width = 0; width < 5; width++) {
        for (int generation = 1; generation <= PCIE_GENERATIONS; generation++) {
            const double rate = nw_pcie_bytes_per_s(generation, pcie_widths[width]);
            const double off = fabs(bytes_per_s / rate - 1);

            if (off < nearest - 1e-4) {
                nearest = off;
                *generation_out = generation;
                *lanes_out = pcie_widths[width];
            }
        }
    }
}

double nw_nvlink_bytes_per_s(int generation)
{
    /* One link, one way, from NVIDIA's product pages (both ways summed / links / 2): P100 160 GB/s
     * over 4, V100 300 over 6, A100 600 over 12, H100 900 over 18, B200 1800 over 18. */
    static const double rates[] = {20e9, 25e9, 25e9, 25e9, 50e9};

    if (generation < 1 || (size_t)generation > sizeof rates / sizeof rates[0])
        return NAN;
    return rates[generation - 1];
}

double nw_nvlink_bytes_per_s_of(const char *model, double capability)
{
    /* NVIDIA's product pages; GA102 cards: "4 links, 14.0625 GB/s each direction each" (NVIDIA
     * Ampere GA102 white paper). */
    static const struct {
        const char *part;
        int capability;
        double bytes_per_s;
    } rows[] = {
        {"GB200", 100, 50e9},     {"GB300", 103, 50e9},     {"B200", 100, 50e9},
        {"B300", 103, 50e9},      {"B100", 100, 50e9},      {"GH200", 90, 25e9},
        {"H100", 90, 25e9},       {"H200", 90, 25e9},       {"H800", 90, 25e9},
        {"H20", 90, 25e9},        {"A100", 80, 25e9},       {"A800", 80, 25e9},
        {"A30", 80, 25e9},        {"A40", 86, 14.0625e9},   {"A6000", 86, 14.0625e9},
        {"A5500", 86, 14.0625e9}, {"A5000", 86, 14.0625e9}, {"A4500", 86, 14.0625e9},
        {"3090", 86, 14.0625e9},  {"V100", 70, 25e9},       {"GV100", 70, 25e9},
        {"TITAN RTX", 75, 25e9},  {"RTX 8000", 75, 25e9},   {"RTX 6000", 75, 25e9},
        {"2080", 75, 25e9},       {"P100", 60, 20e9},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows && model[0] != '\0'; i++)
        if (strstr(model, rows[i].part) != NULL)
            return rows[i].bytes_per_s;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].capability == capability)
            return rows[i].bytes_per_s;
    return NAN;
}

double nw_xgmi_bytes_per_s(const char *model)
{
    /* One link, one way: MI100 276 GB/s both ways over 3 links (AMD's product page), MI200 50+50
     * (arXiv:2302.14827), MI300 64+64 (arXiv:2410.00801). */
    static const struct {
        const char *part;
        double bytes_per_s;
    } rows[] = {{"gfx908", 46e9}, {"MI100", 46e9},  {"gfx910", 50e9}, {"gfx90a", 50e9},
                {"MI2", 50e9},    {"gfx942", 64e9}, {"MI3", 64e9}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strstr(model, rows[i].part) != NULL)
            return rows[i].bytes_per_s;
    return NAN;
}

struct nw_socket_link nw_socket_link(const char *cpu)
{
    /* One way: what one link carries at best times the most links that a socket has; boards may
     * use fewer. Intel: GT/s x 16 data bits of 20 lanes (UPI 2.0: 19.2 of 24). AMD: x16 links.
     * "family F model M" is how NCCL's topology files name a CPU (hexadecimal CPUID, decimal). */
    static const struct {
        const char *part;
        struct nw_socket_link link;
    } rows[] = {
        {"Intel family 6 model 63", {2, 19.2e9, "QPI 9.6 GT/s"}},
        {"Intel family 6 model 79", {2, 19.2e9, "QPI 9.6 GT/s"}},
        {"Intel family 6 model 85", {3, 20.8e9, "UPI 10.4 GT/s"}},
        {"Intel family 6 model 106", {3, 22.4e9, "UPI 11.2 GT/s"}},
        {"Intel family 6 model 143", {4, 38.4e9, "UPI 2.0 16 GT/s"}},
        {"Intel family 6 model 207", {4, 48e9, "UPI 2.0 20 GT/s"}},
        {"Intel family 6 model 173", {6, 57.6e9, "UPI 2.0 24 GT/s"}},
        {"AMD family 143 model 49", {4, 36e9, "xGMI 18 GT/s x16"}}, /* NCCL's 143: 0x17 */
        {"AMD family 175 model 1", {4, 36e9, "xGMI 18 GT/s x16"}},  /* 175: 0x19 */
        {"AMD family 175 model 17", {4, 64e9, "xGMI 32 GT/s x16"}},
        {"E5-26?? v3", {2, 19.2e9, "QPI 9.6 GT/s"}},
        {"E5-26?? v4", {2, 19.2e9, "QPI 9.6 GT/s"}},
        {"E5-26??", {2, 16e9, "QPI 8 GT/s"}},
        {"E56??", {2, 12.8e9, "QPI 6.4 GT/s"}},
        {"X56??", {2, 12.8e9, "QPI 6.4 GT/s"}},
        {"Xeon(R) [PGSB]* ?1??", {3, 20.8e9, "UPI 10.4 GT/s"}},
        {"Xeon(R) [PGSB]* ?2??", {3, 20.8e9, "UPI 10.4 GT/s"}},
        {"Xeon(R) [PGSB]* ?3??", {3, 22.4e9, "UPI 11.2 GT/s"}},
        {"Xeon(R) [PGSB]* ?4??", {4, 38.4e9, "UPI 2.0 16 GT/s"}},
        {"Xeon(R) [PGSB]* ?5??", {4, 48e9, "UPI 2.0 20 GT/s"}},
        {"Xeon(R) 6???", {6, 57.6e9, "UPI 2.0 24 GT/s"}},
        {"EPYC 7??1", {4, 21.3e9, "xGMI 10.7 GT/s x16"}},
        {"EPYC 7??[23]", {4, 36e9, "xGMI 18 GT/s x16"}},
        {"EPYC 7[A-Z]?[23]", {4, 36e9, "xGMI 18 GT/s x16"}},
        {"EPYC 9??[45]", {4, 64e9, "xGMI 32 GT/s x16"}},
        {"EPYC 9[A-Z]?[45]", {4, 64e9, "xGMI 32 GT/s x16"}},
        {"POWER9", {1, 64e9, "X-Bus 16 Gb/s, 4 bytes wide"}},
    };
    char pattern[80];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(pattern, sizeof pattern, "*%s*", rows[i].part);
        if (fnmatch(pattern, cpu, 0) == 0)
            return rows[i].link;
    }
    return (struct nw_socket_link){0, NAN, ""};
}

double nw_nic_bytes_per_s(double gbit_per_s)
{
    return gbit_per_s * 1e9 / 8;
}

struct nw_efficiency nw_pcie_efficiency(void)
{
    return (struct nw_efficiency){
        0.82, 0.90,
        "copies between host and GPU: 25.9 of 31.5 GB/s on Gen4 x16 (superbench-results), 55.4 of "
        "63.0 on Gen5 x16 (stas00/ml-engineering)"};
}

struct nw_efficiency nw_pcie_peer_efficiency(bool near)
{
    if (near)
        return (struct nw_efficiency){
            0.78, 0.85,
            "copies between two GPUs of one PCIe switch: 51.5 of 63 GB/s with ACS off on Gen5 x16 "
            "(voipmonitor/rtx6kpro)"};
    return (struct nw_efficiency){
        0.60, 0.84,
        "copies between two GPUs through host bridges: 26.3 of 31.5 GB/s with peer access and 22.2 "
        "without on Gen4 x16 EPYC (RTX 6000 Ada), 47.5 of 63 on Gen5 x16 (voipmonitor/rtx6kpro), "
        "20.7 of 31.5 (tinygrad/open-gpu-kernel-modules#6)"};
}

struct nw_efficiency nw_pcie_collective_efficiency(void)
{
    return (struct nw_efficiency){0.38, 0.64,
                                  "all-reduce over PCIe: 12.6 of 31.5 GB/s on 4x RTX 4090 "
                                  "(sugarlxn/nccl_test), 24.7 of 63 on "
                                  "8x RTX PRO 6000 and 20.1 of 31.5 on 2x L40S "
                                  "(ai-dynamo/aiconfigurator), 28 of 63 on 8x RTX "
                                  "5090 (NVIDIA/nccl#1639)"};
}

struct nw_efficiency nw_nvlink_gather_efficiency(void)
{
    return (struct nw_efficiency){
        0.68, 0.81,
        "ring all-gather and reduce-scatter on 8 GPUs: 205 of 300 GB/s on A100, 335 to 365 of 450 "
        "on "
        "H100 and H200, 617 of 900 on B200 (ai-dynamo/aiconfigurator, stas00/ml-engineering)"};
}

struct nw_efficiency nw_nvlink_alltoall_efficiency(void)
{
    return (struct nw_efficiency){
        0.62, 0.79,
        "all-to-all on 8 GPUs: 203 of 300 GB/s on A100, 315 to 348 of 450 on H100, 563 of 900 on "
        "B200 (ai-dynamo/aiconfigurator)"};
}

struct nw_efficiency nw_nvlink_copy_efficiency(void)
{
    return (struct nw_efficiency){
        0.83, 0.91,
        "copies between two GPUs: 374 of 450 GB/s on H100, 272 of 300 on A100 "
        "(p2pBandwidthLatencyTest in stas00/ml-engineering)"};
}

struct nw_efficiency nw_nvlink_collective_efficiency(void)
{
    return (struct nw_efficiency){
        0.75, 0.83,
        "ring all-reduce on 8 GPUs: 235 of 300 GB/s on A100, 367 of 450 on H100, 682 of 900 on "
        "B200 (stas00/ml-engineering, NVIDIA/nccl-tests#212)"};
}

struct nw_efficiency nw_nvlink_switch_efficiency(void)
{
    return (struct nw_efficiency){
        0.60, 0.72,
        "NVLS all-reduce on 8 GPUs, wire rate algbw (n+1)/n: 309 of 450 GB/s on H100, 542 of 900 "
        "on B200, 138 of 200 on H800 (NVIDIA/nccl-tests#153, stas00/ml-engineering, "
        "NVIDIA/nccl#1374)"};
}

struct nw_efficiency nw_rdma_efficiency(void)
{
    return (struct nw_efficiency){
        0.92, 0.98,
        "ib_write_bw: 190 to 197 of 200 Gb/s, 380 and more of 400 (superbench-results, "
        "Azure/azurehpc-health-checks)"};
}

struct nw_efficiency nw_rdma_collective_efficiency(void)
{
    return (struct nw_efficiency){
        0.90, 0.98,
        "ring all-reduce across nodes: 370 to 390 of 400 GB/s on 8x 400 Gb/s, 185 to 192 of 200 on "
        "8x 200 Gb/s, 24 of 25 on 200 Gb/s (NVIDIA/nccl-tests#119, #290, NVIDIA/nccl#812)"};
}

struct nw_efficiency nw_rdma_far_efficiency(void)
{
    return (struct nw_efficiency){
        0.44, 0.92,
        "ib_write_bw with GPU memory: 11 of 25 GB/s where GPU and NIC are on different sockets, 23 "
        "where they are on one (linux-rdma/perftest#241)"};
}

struct nw_efficiency nw_rdma_alltoall_efficiency(void)
{
    return (struct nw_efficiency){
        0.60, 0.98,
        "all-to-all over two nodes, per-GPU NIC rate busbw (n-g)/(n-1): 49 of 50 GB/s on 8x 400 "
        "Gb/s, 21 of 25 on 8x 200 Gb/s, 7.7 of 12.5 on 2x 200 Gb/s for 4 GPUs (published curves of "
        "H100 pairs, ALCF Sophia, ALCF Polaris)"};
}

struct nw_efficiency nw_tcp_efficiency(void)
{
    return (struct nw_efficiency){
        0.80, 0.95,
        "TCP carries at most 1448 of 1538 bytes of a 1500-byte Ethernet frame (94.1 %); 2.5 to 2.9 "
        "of 3.125 GB/s on 25 Gb/s"};
}
