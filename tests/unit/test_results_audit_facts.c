/* Claims that the facts of a machine's topology decide: one table, a fact changed at a time. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/audit.h"

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))
#define GPUS        8

/* Eight H100 behind NVSwitches, each with a NIC on its PCIe switch: "gpu0" is node 1, its NIC 2. */
static struct nw_topo *make_machine(const char *host)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    static const struct {
        nw_fact_id id;
        double number;
        const char *text;
    } facts[] = {
        {NW_FACT_DRIVER, NAN, "550.90.07"},
        {NW_FACT_CUDA, NAN, "12.4"},
        {NW_FACT_NCCL, NAN, "2.21.5"},
        {NW_FACT_PYTORCH, NAN, "2.4.0+cu124"},
        {NW_FACT_PYTORCH_GPUS, GPUS, NULL},
        {NW_FACT_PEERMEM, 1, NULL},
        {NW_FACT_DMABUF, 0, NULL},
        {NW_FACT_SCHEDULER, NAN, "slurm (runs here)"},
        {NW_FACT_PARALLEL_FS, NAN, "lustre at /data, nfs4 at /home"},
        {NW_FACT_DATA_PATH, NAN, "/data"},
        {NW_FACT_DATA_READ, 6.1e9, NULL},
        {NW_FACT_DATA_WRITE, 2.8e9, NULL},
        {NW_FACT_DATA_READ_IOPS, 812e3, NULL},
    };

    topo->nodes = calloc(1 + 2 * GPUS, sizeof *topo->nodes);
    topo->node_count = 1 + 2 * GPUS;
    topo->sources = NW_SOURCE_NVML;
    snprintf(topo->host, sizeof topo->host, "%s", host);
    snprintf(topo->os, sizeof topo->os, "Ubuntu 22.04.5 LTS, Linux 5.15.0-105-generic");
    topo->nodes[0] =
        (struct nw_topo_node){.kind = NW_NODE_MACHINE, .parent = -1, .numa = -1, .port_up = -1};
    for (int i = 0; i < GPUS; i++) {
        struct nw_topo_node *gpu = &topo->nodes[1 + 2 * i], *nic = gpu + 1;

        *gpu = (struct nw_topo_node){.kind = NW_NODE_GPU, .numa = i / 4, .port_up = -1};
        *nic = (struct nw_topo_node){.kind = NW_NODE_NIC, .numa = i / 4, .port_up = 1};
        gpu->memory_bytes = (uint64_t)81559 << 20;
        nic->rate_bits_per_s = 400e9;
        snprintf(gpu->name, sizeof gpu->name, "gpu%d", i);
        snprintf(gpu->model, sizeof gpu->model, "NVIDIA H100 80GB HBM3");
        snprintf(nic->name, sizeof nic->name, "mlx5_%d", i);
        snprintf(nic->fabric, sizeof nic->fabric, "infiniband");
    }
    for (size_t i = 0; i < COUNT(facts); i++)
        cr_assert_eq(facts[i].text != NULL
                         ? nw_topo_set_text(topo, 0, facts[i].id, facts[i].text, "test")
                         : nw_topo_set_number(topo, 0, facts[i].id, facts[i].number, "test"),
                     NW_OK);
    for (int i = 0; i < GPUS; i++) {
        const int gpu = 1 + 2 * i;

        nw_topo_set_number(topo, gpu, NW_FACT_ECC, 1, "test");
        nw_topo_set_number(topo, gpu, NW_FACT_POWER_LIMIT, 700, "test");
        nw_topo_set_number(topo, gpu, NW_FACT_POWER_DEFAULT, 700, "test");
        nw_topo_set_number(topo, gpu, NW_FACT_NVLINK_COUNT, 18, "test");
        nw_topo_set_number(topo, gpu, NW_FACT_NVLINK_RATE, 26.5625e9, "test");
        nw_topo_set_number(topo, gpu, NW_FACT_NVLINK_SWITCH, 1, "test");
        nw_topo_set_number(topo, gpu + 1, NW_FACT_MTU, 4096, "test");
        for (int j = 0; j < GPUS; j++)
            nw_topo_state(topo, gpu, 2 + 2 * j,
                          i == j           ? NW_CLASS_PIX
                          : i / 4 == j / 4 ? NW_CLASS_NODE
                                           : NW_CLASS_SYS,
                          0);
    }
    return topo;
}

static const char whole_quote[] =
    "[gpu]\nmodel = H100 SXM5 80GB\ncount = 8\nnvlink_GBps = 900\nnvlink_is = bidirectional\n"
    "nvlink_links = 18\nnvswitch = yes\necc = yes\npower_W = 700\n"
    "[network]\nnic_count = 8\nnic_gbps = 400\ngpudirect = yes\nnic_per_gpu = yes\nmtu = 4096\n"
    "[disk]\nread_GBps = 6\nwrite_GBps = 3\nread_IOPS = 800000\nfile_system = lustre\nmount = "
    "/data\n"
    "[software]\nos = ubuntu 22.04\ndriver = 550.54\ncuda = 12.2\nnccl = 2.21\npytorch = 2.4\n"
    "scheduler = slurm\n";

static void audit_of(const char *text, struct nw_topo *const *topos, size_t count,
                     struct nw_audit *audit)
{
    struct nw_quote quote;

    cr_assert_eq(nw_quote_parse(text, strlen(text), "v.ini", &quote), NW_OK, "%s",
                 nw_last_error()->text);
    cr_assert_eq(
        nw_audit_make(
            &(struct nw_audit_input){.quote = &quote, .topos = topos, .topo_count = count}, audit),
        NW_OK, "%s", nw_last_error()->text);
}

static const struct nw_audit_row *row_of(const struct nw_audit *audit, const char *key)
{
    for (size_t i = 0; i < audit->row_count; i++)
        if (strcmp(audit->rows[i].key, key) == 0)
            return &audit->rows[i];
    cr_assert_fail("no row %s", key);
    return NULL;
}

static bool says(const struct nw_audit_row *row, const char *text)
{
    bool found = strstr(row->reason, text) != NULL || strstr(row->measured_text, text) != NULL;

    for (size_t i = 0; i < row->causes.count; i++)
        found = found || strstr(row->causes.items[i].text, text) != NULL;
    return found;
}

Test(results_audit_facts, a_machine_as_quoted_meets_every_claim)
{
    struct nw_topo *topo = make_machine("n1");
    struct nw_audit audit;

    audit_of(whole_quote, &topo, 1, &audit);
    for (size_t i = 0; i < audit.row_count; i++)
        if (strcmp(audit.rows[i].key, "network") != 0)
            cr_expect_eq(audit.rows[i].verdict, NW_AUDIT_MET, "%s: %s; %s", audit.rows[i].key,
                         audit.rows[i].measured_text, audit.rows[i].reason);
    cr_expect_eq(audit.row_count, 22);
    cr_expect_eq(audit.host_count, 1);
    nw_audit_free(&audit);
    nw_topo_free(topo);
}

struct change {
    int node;
    nw_fact_id id;
    double number; /* NAN: a text */
    const char *text;
    const char *key;
    nw_audit_verdict verdict;
    const char *says;
};

Test(results_audit_facts, each_fact_that_is_worse_makes_its_claim_short)
{
    static const struct change rows[] = {
        {0, NW_FACT_DRIVER, NAN, "535.183.06", "driver", NW_AUDIT_SHORT, "older version"},
        {0, NW_FACT_DRIVER, NAN, "550.54", "driver", NW_AUDIT_MET, NULL},
        {0, NW_FACT_DRIVER, NAN, "1550", "driver", NW_AUDIT_MET, NULL},
        {0, NW_FACT_CUDA, NAN, "12.1", "cuda", NW_AUDIT_SHORT, NULL},
        {0, NW_FACT_NCCL, NAN, "2.3.7", "nccl", NW_AUDIT_SHORT, NULL}, /* 3 is less than 21 */
        {0, NW_FACT_PYTORCH, NAN, "1.13.1", "pytorch", NW_AUDIT_SHORT, NULL},
        {0, NW_FACT_PYTORCH_GPUS, 0, NULL, "pytorch", NW_AUDIT_SHORT, "PyTorch sees 0 of 8"},
        {0, NW_FACT_PYTORCH, NAN, "absent", "pytorch", NW_AUDIT_SHORT, "not installed"},
        {0, NW_FACT_PEERMEM, 0, NULL, "gpudirect", NW_AUDIT_SHORT, "host memory"},
        {0, NW_FACT_DMABUF, 1, NULL, "gpudirect", NW_AUDIT_MET, "not measured"},
        {0, NW_FACT_SCHEDULER, NAN, "kubernetes (in a pod), ray (configured)", "scheduler",
         NW_AUDIT_SHORT, NULL},
        {0, NW_FACT_SCHEDULER, NAN, "none", "scheduler", NW_AUDIT_SHORT, NULL},
        {0, NW_FACT_SCHEDULER, NAN, "slurm (client installed)", "scheduler", NW_AUDIT_NOT_MEASURED,
         "only its client"},
        {0, NW_FACT_SCHEDULER, NAN, "slurmrestd-like", "scheduler", NW_AUDIT_SHORT, NULL},
        {0, NW_FACT_PARALLEL_FS, NAN, "nfs4 at /data", "file_system", NW_AUDIT_SHORT,
         "of this type"},
        {0, NW_FACT_PARALLEL_FS, NAN, "lustre at /data2", "file_system", NW_AUDIT_SHORT,
         "another place"},
        {0, NW_FACT_PARALLEL_FS, NAN, "lustre at /path-1a2b3c4d", "file_system", NW_AUDIT_MET,
         "hidden"},
        {0, NW_FACT_PARALLEL_FS, NAN, "none", "file_system", NW_AUDIT_SHORT, NULL},
        {0, NW_FACT_DATA_READ, 5.5e9, NULL, "disk_read", NW_AUDIT_MET, NULL},
        {0, NW_FACT_DATA_READ, 1.1e9, NULL, "disk_read", NW_AUDIT_SHORT, "/data"},
        {0, NW_FACT_DATA_WRITE, 0.9e9, NULL, "disk_write", NW_AUDIT_SHORT, NULL},
        {0, NW_FACT_DATA_READ_IOPS, 90e3, NULL, "disk_iops", NW_AUDIT_SHORT, "90.0 k/s"},
        {5, NW_FACT_ECC, 0, NULL, "ecc", NW_AUDIT_SHORT, "gpu2: off"},
        {7, NW_FACT_POWER_LIMIT, 500, NULL, "power", NW_AUDIT_SHORT, "below the product's own"},
        {7, NW_FACT_POWER_LIMIT, 695, NULL, "power", NW_AUDIT_MET, NULL},
        {9, NW_FACT_NVLINK_COUNT, 16, NULL, "nvlink", NW_AUDIT_SHORT, "16 of 18"},
        {9, NW_FACT_NVLINK_COUNT, 16, NULL, "nvlink_count", NW_AUDIT_SHORT, "16 active"},
        {9, NW_FACT_NVLINK_COUNT, 0, NULL, "nvlink", NW_AUDIT_SHORT, "no NVLink"},
        {10, NW_FACT_MTU, 1024, NULL, "mtu", NW_AUDIT_SHORT, "mlx5_4"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nw_topo *topo = make_machine("n1");
        struct nw_audit audit;

        if (rows[i].text != NULL)
            nw_topo_set_text(topo, rows[i].node, rows[i].id, rows[i].text, "test");
        else
            nw_topo_set_number(topo, rows[i].node, rows[i].id, rows[i].number, "test");
        audit_of(whole_quote, &topo, 1, &audit);
        const struct nw_audit_row *row = row_of(&audit, rows[i].key);

        cr_expect_eq(row->verdict, rows[i].verdict, "%zu %s: %s (%s; %s)", i, rows[i].key,
                     nw_audit_verdict_text(row->verdict), row->measured_text, row->reason);
        if (rows[i].says != NULL)
            cr_expect(says(row, rows[i].says), "%zu %s: not \"%s\" but %s; %s", i, rows[i].key,
                      rows[i].says, row->measured_text, row->reason);
        nw_audit_free(&audit);
        nw_topo_free(topo);
    }
}

Test(results_audit_facts, a_disk_that_varies_and_a_view_from_a_container_prove_no_shortage)
{
    static const struct {
        const char *how;
        double read_gb_per_s;
        nw_audit_verdict verdict;
    } rows[] = {
        {"8 x 1 MiB; write +-1 %, read +-2 %, random read +-400 %", 4, NW_AUDIT_SHORT},
        {"8 x 1 MiB; write +-1 %, read +-70 %, random read +-4 %", 4, NW_AUDIT_NOT_MEASURED},
        {"8 x 1 MiB; random read +-70 %", 4, NW_AUDIT_SHORT},
        {"8 x 1 MiB; write +-1 %, read +-70 %", 6, NW_AUDIT_MET},
    };
    struct nw_audit audit;

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nw_topo *topo = make_machine("n1");

        nw_topo_set_text(topo, 0, NW_FACT_DATA_HOW, rows[i].how, "test");
        nw_topo_set_number(topo, 0, NW_FACT_DATA_READ, rows[i].read_gb_per_s * 1e9, "test");
        audit_of(whole_quote, &topo, 1, &audit);
        cr_expect_eq(row_of(&audit, "disk_read")->verdict, rows[i].verdict, "%zu: %s", i,
                     row_of(&audit, "disk_read")->reason);
        nw_audit_free(&audit);
        nw_topo_free(topo);
    }
    struct nw_topo *topo = make_machine("n1");

    nw_topo_set_text(topo, 0, NW_FACT_CONTAINER, "docker", "test");
    nw_topo_set_text(topo, 0, NW_FACT_PARALLEL_FS, "none", "test");
    nw_topo_set_text(topo, 0, NW_FACT_SCHEDULER, "ray (configured)", "test");
    audit_of(whole_quote, &topo, 1, &audit);
    cr_expect_eq(row_of(&audit, "file_system")->verdict, NW_AUDIT_NOT_MEASURED);
    cr_expect_eq(row_of(&audit, "scheduler")->verdict, NW_AUDIT_NOT_MEASURED);
    nw_audit_free(&audit);
    nw_topo_free(topo);
}

Test(results_audit_facts, the_worst_machine_speaks_and_is_named)
{
    struct nw_topo *topos[] = {make_machine("n1"), make_machine("n2"), make_machine("n3")};
    struct nw_audit audit;

    nw_topo_set_number(topos[1], 3, NW_FACT_POWER_LIMIT, 350, "test");
    nw_topo_set_text(topos[2], 0, NW_FACT_DRIVER, "470.1", "test");
    audit_of(whole_quote, topos, 3, &audit);
    cr_expect_eq(row_of(&audit, "power")->verdict, NW_AUDIT_SHORT);
    cr_expect_str_eq(row_of(&audit, "power")->source, "n2");
    cr_expect_eq(row_of(&audit, "power")->machine_count, 2);
    cr_expect_str_eq(row_of(&audit, "driver")->source, "n3");
    cr_expect_eq(row_of(&audit, "cuda")->machine_count, 3);
    cr_expect_eq(audit.host_count, 3);
    nw_audit_free(&audit);
    for (int i = 0; i < 3; i++)
        nw_topo_free(topos[i]);
}

/* A file about one aspect says nothing of the others; two of one host complete each other. */
Test(results_audit_facts, what_a_source_does_not_show_is_no_shortage)
{
    struct nw_topo *bare = calloc(1, sizeof *bare);
    struct nw_audit audit;

    bare->nodes = calloc(1, sizeof *bare->nodes);
    bare->node_count = 1;
    bare->nodes[0] =
        (struct nw_topo_node){.kind = NW_NODE_MACHINE, .parent = -1, .numa = -1, .port_up = -1};
    bare->gaps = NW_TOPO_PARTIAL;
    snprintf(bare->host, sizeof bare->host, "n1");
    audit_of(whole_quote, &bare, 1, &audit);
    for (size_t i = 0; i < audit.row_count; i++) {
        cr_expect_eq(audit.rows[i].verdict, NW_AUDIT_NOT_MEASURED, "%s: %s", audit.rows[i].key,
                     audit.rows[i].measured_text);
        cr_expect_gt(strlen(audit.rows[i].reason), 20, "%s: why?", audit.rows[i].key);
    }
    cr_expect_eq(nw_audit_exit_code(&audit), 3);
    nw_audit_free(&audit);

    struct nw_topo *both[] = {bare, make_machine("n1")};

    audit_of(whole_quote, both, 2, &audit);
    cr_expect_eq(nw_audit_count(&audit, NW_AUDIT_SHORT), 0);
    cr_expect_eq(row_of(&audit, "gpu_count")->verdict, NW_AUDIT_MET);
    cr_expect_eq(audit.host_count, 1, "one host, not two");
    nw_audit_free(&audit);
    nw_topo_free(both[0]);
    nw_topo_free(both[1]);
}

Test(results_audit_facts, a_nic_of_its_own_is_a_matching_not_a_count)
{
    struct nw_topo *topo = make_machine("n1");
    struct nw_audit audit;

    /* gpu0 and gpu1 both beside mlx5_0: one of them has none. */
    nw_topo_state(topo, 3, 2, NW_CLASS_PIX, 0);
    nw_topo_state(topo, 3, 4, NW_CLASS_SYS, 0);
    audit_of(whole_quote, &topo, 1, &audit);
    cr_expect_eq(row_of(&audit, "nic_per_gpu")->verdict, NW_AUDIT_SHORT);
    cr_expect_str_eq(row_of(&audit, "nic_per_gpu")->measured_text, "7 of 8 GPUs");
    nw_audit_free(&audit);
    /* gpu0 can take mlx5_1 instead. */
    nw_topo_state(topo, 1, 4, NW_CLASS_PXB, 0);
    audit_of(whole_quote, &topo, 1, &audit);
    cr_expect_eq(row_of(&audit, "nic_per_gpu")->verdict, NW_AUDIT_MET);
    nw_audit_free(&audit);
    nw_topo_free(topo);
}

/* NV# of nvidia-smi topo -m: what the pairs have in all tells switches from direct links. */
Test(results_audit_facts, nvlink_counts_of_pairs_tell_switches_from_direct_links)
{
    static const struct {
        const char *model, *quote;
        int gpus, links; /* of each pair */
        nw_audit_verdict nvlink, nvswitch;
        const char *says;
    } rows[] = {
        {"NVIDIA H100 80GB HBM3", "900\nnvlink_is=bidirectional", 8, 18, NW_AUDIT_MET, NW_AUDIT_MET,
         "18 links × 25 GB/s = 450 GB/s one way, 900 both ways"},
        {"NVIDIA H100 80GB HBM3", "450\nnvlink_is=one-way", 8, 18, NW_AUDIT_MET, NW_AUDIT_MET,
         NULL},
        {"NVIDIA H100 80GB HBM3", "900\nnvlink_is=one-way", 8, 18, NW_AUDIT_SHORT, NW_AUDIT_MET,
         "900 GB/s one way would be 1800 both ways"},
        {"NVIDIA H20", "900\nnvlink_is=bidirectional", 8, 18, NW_AUDIT_MET, NW_AUDIT_MET, NULL},
        {"NVIDIA H800", "900\nnvlink_is=bidirectional", 8, 8, NW_AUDIT_SHORT, NW_AUDIT_MET,
         "8 links × 25 GB/s = 200 GB/s one way, 400 both ways"},
        {"NVIDIA H800", "400\nnvlink_is=bidirectional", 8, 8, NW_AUDIT_MET, NW_AUDIT_MET, NULL},
        {"NVIDIA A100-SXM4-80GB", "600\nnvlink_is=bidirectional", 8, 12, NW_AUDIT_MET, NW_AUDIT_MET,
         NULL},
        {"NVIDIA A100-SXM4-40GB", "600\nnvlink_is=bidirectional", 4, 4, NW_AUDIT_MET,
         NW_AUDIT_SHORT, "no NVSwitch: 4 links, 100 GB/s one way, between two GPUs"},
        {"NVIDIA A100-SXM4-40GB", "900\nnvlink_is=bidirectional", 4, 4, NW_AUDIT_SHORT,
         NW_AUDIT_SHORT, "slower than quoted"},
        {"NVIDIA B200", "1800\nnvlink_is=bidirectional", 8, 18, NW_AUDIT_MET, NW_AUDIT_MET, NULL},
        {"NVIDIA H100 PCIe", "900\nnvlink_is=bidirectional", 2, 12, NW_AUDIT_SHORT, NW_AUDIT_SHORT,
         "a bridge between two cards"},
        {"NVIDIA H100 PCIe", "600\nnvlink_is=bidirectional", 2, 12, NW_AUDIT_MET, NW_AUDIT_SHORT,
         NULL},
        {"NVIDIA H100 PCIe", "900\nnvlink_is=bidirectional", 8, 0, NW_AUDIT_SHORT, NW_AUDIT_SHORT,
         "no NVLink: this is H100 PCIe"},
        {"NVIDIA L40S", "900\nnvlink_is=bidirectional", 8, 0, NW_AUDIT_SHORT, NW_AUDIT_SHORT,
         "no NVLink"},
        /* No name: the links are counted, their rate is not known. */
        {"", "900\nnvlink_is=bidirectional", 8, 18, NW_AUDIT_NOT_MEASURED, NW_AUDIT_MET,
         "no source names them"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nw_topo *topo = calloc(1, sizeof *topo);
        struct nw_audit audit;
        char quote[200];

        topo->nodes = calloc(1 + (size_t)rows[i].gpus, sizeof *topo->nodes);
        topo->node_count = 1 + (size_t)rows[i].gpus;
        topo->gaps = NW_TOPO_PARTIAL;
        topo->sources = NW_SOURCE_SMI;
        topo->nodes[0] = (struct nw_topo_node){.parent = -1, .numa = -1, .port_up = -1};
        for (int gpu = 1; gpu <= rows[i].gpus; gpu++) {
            topo->nodes[gpu] =
                (struct nw_topo_node){.kind = NW_NODE_GPU, .numa = -1, .port_up = -1};
            snprintf(topo->nodes[gpu].name, sizeof topo->nodes[gpu].name, "gpu%d", gpu - 1);
            snprintf(topo->nodes[gpu].model, sizeof topo->nodes[gpu].model, "%s", rows[i].model);
            for (int other = 1; other < gpu; other++)
                nw_topo_state(topo, other, gpu, rows[i].links > 0 ? NW_CLASS_NV : NW_CLASS_SYS,
                              rows[i].links);
        }
        snprintf(quote, sizeof quote, "[gpu]\nmodel=H100 SXM\nnvswitch=yes\nnvlink_GBps=%s\n",
                 rows[i].quote);
        audit_of(quote, &topo, 1, &audit);
        const struct nw_audit_row *row = row_of(&audit, "nvlink");

        cr_expect_eq(row->verdict, rows[i].nvlink, "%zu %s: %s (%s)", i, rows[i].model,
                     nw_audit_verdict_text(row->verdict), row->reason);
        cr_expect_eq(row_of(&audit, "nvswitch")->verdict, rows[i].nvswitch, "%zu %s: nvswitch %s",
                     i, rows[i].model, nw_audit_verdict_text(row_of(&audit, "nvswitch")->verdict));
        if (rows[i].says != NULL)
            cr_expect(says(row, rows[i].says), "%zu: not \"%s\" but %s", i, rows[i].says,
                      row->reason);
        nw_audit_free(&audit);
        nw_topo_free(topo);
    }
}

Test(results_audit_facts, prices_are_held_against_each_other)
{
    static const struct {
        const char *prices;
        int verdict; /* -1: no row */
        const char *says;
    } rows[] = {
        {"per_node_hour=800", -1, NULL},
        {"per_gpu_hour=100\nper_node_hour=800", NW_AUDIT_MET, NULL},
        {"per_gpu_hour=100\nper_node_hour=850", NW_AUDIT_SHORT, "two prices"},
        {"per_gpu_hour=100\nper_node_month=400000", NW_AUDIT_MET, "32 % less"},
        {"per_node_hour=800\nper_node_month=600000", NW_AUDIT_SHORT, "more than by the hour"},
        {"per_gpu_month=50000\nper_node_month=400000", NW_AUDIT_MET, NULL},
        {"per_gpu_month=50000\nper_node_month=450000", NW_AUDIT_SHORT, "two prices"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct nw_topo *topo = make_machine("n1");
        struct nw_audit audit;
        char quote[300];

        snprintf(quote, sizeof quote, "[gpu]\ncount=8\n[price]\ncurrency=CNY\n%s\n",
                 rows[i].prices);
        audit_of(quote, &topo, 1, &audit);
        cr_expect_eq(audit.row_count, rows[i].verdict < 0 ? 1 : 2, "%s", rows[i].prices);
        if (rows[i].verdict >= 0) {
            const struct nw_audit_row *row = row_of(&audit, "price");

            cr_expect_eq((int)row->verdict, rows[i].verdict, "%s: %s", rows[i].prices, row->reason);
            cr_expect(rows[i].says == NULL || says(row, rows[i].says), "%s: %s", rows[i].prices,
                      row->reason);
        }
        cr_expect_geq(audit.cost_count, 2);
        cr_expect_str_eq(audit.costs[0].key, "node_month");
        nw_audit_free(&audit);
        nw_topo_free(topo);
    }
}
