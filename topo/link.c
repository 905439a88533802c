#include "topo/link.h"

#include <math.h>
#include <stddef.h>

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

struct nw_efficiency nw_tcp_efficiency(void)
{
    return (struct nw_efficiency){
        0.80, 0.95,
        "TCP carries at most 1448 of 1538 bytes of a 1500-byte Ethernet frame (94.1 %); 2.5 to 2.9 "
        "of 3.125 GB/s on 25 Gb/s"};
}
