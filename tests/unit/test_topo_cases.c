/* The public cases in which a machine's fault was not named by the tools of the day, each from its
 * own data or from a machine with its facts; and machines without a fault, on which nothing may be
 * found. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/ceiling.h"
#include "topo/preflight.h"

/* tests/field in this repository, else the field data beside it (../shared), which strangers don't
 * have. */
static bool field_path(const char *name, char path[512])
{
    static const char *const folders[] = {"tests/field", "../shared/data/field"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, 512, "%s/%s/%s", NW_SOURCE_DIR, folders[i], name);
        if (access(path, R_OK) == 0)
            return true;
    }
    /* Those that were there first. */
    snprintf(path, 512, "%s/tests/machines/%s", NW_SOURCE_DIR,
             strncmp(name, "hwloc/", 6) == 0 ? name + 6 : name);
    if (access(path, R_OK) == 0)
        return true;
    fprintf(stderr, "%s: not here, skipped (field data, not part of the repository)\n", name);
    return false;
}

enum { HOSTS_MAX = 4 };

struct judged {
    struct nw_topo *hosts[HOSTS_MAX];
    size_t host_count;
    struct nw_findings findings;
};

static void judged_free(struct judged *judged)
{
    for (size_t i = 0; i < judged->host_count; i++)
        nw_topo_free(judged->hosts[i]);
    nw_findings_free(&judged->findings);
}

/* `names`: files of one host each, joined by "+". false: one is not here. */
static bool judge(const char *names, struct judged *judged)
{
    char copy[256], path[512];
    char *rest = copy;
    bool here = true;

    *judged = (struct judged){.host_count = 0};
    snprintf(copy, sizeof copy, "%s", names);
    for (char *name; here && (name = strsep(&rest, "+")) != NULL;) {
        here = field_path(name, path);
        if (here)
            cr_assert_eq(nw_topo_read_file(path, &judged->hosts[judged->host_count++]), NW_OK,
                         "%s: %s", name, nw_last_error()->text);
    }
    if (!here) {
        judged_free(judged);
        return false;
    }
    const struct nw_preflight_input input = {.hosts = judged->hosts,
                                             .host_count = judged->host_count};

    cr_assert_eq(nw_preflight_judge(&input, &judged->findings), NW_OK, "%s: %s", names,
                 nw_last_error()->text);
    return true;
}

/* Is `word` one of a blank-separated list? */
static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);

    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static bool says(const struct nw_finding *finding, const char *phrase)
{
    const char *const texts[] = {finding->where, finding->text, finding->remedy, finding->effect};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i] != NULL && strstr(texts[i], phrase) != NULL)
            return true;
    return false;
}

/* All phrases, separated by "|", in one finding of that code and severity. */
static bool is_found(const struct nw_findings *findings, const char *code, nw_severity severity,
                     const char *phrases)
{
    for (size_t i = 0; i < findings->count; i++) {
        char copy[256];
        char *rest = copy;
        bool all =
            strcmp(findings->items[i].code, code) == 0 && findings->items[i].severity == severity;

        snprintf(copy, sizeof copy, "%s", phrases);
        for (char *phrase; all && (phrase = strsep(&rest, "|")) != NULL;)
            all = says(&findings->items[i], phrase);
        if (all)
            return true;
    }
    return false;
}

/* What is found beyond the codes expected, information apart. */
static void expect_nothing_else(const struct nw_findings *findings, const char *codes,
                                const char *what)
{
    for (size_t i = 0; i < findings->count; i++)
        cr_expect(findings->items[i].severity == NW_FINDING_INFO ||
                      has_word(codes, findings->items[i].code),
                  "%s: false alarm %s [%s]: %s", what, findings->items[i].code,
                  findings->items[i].where, findings->items[i].text);
}

enum { I = NW_FINDING_INFO, W = NW_FINDING_WARN, F = NW_FINDING_FAIL };

/* The number is that of the collection of cases; the same input may have several rows, of which
 * each lists all codes that may be found there. */
static const struct expected {
    int number;
    const char *files, *code;
    int severity;
    const char *phrases, *others;
} cases[] = {
    /* NVIDIA/nccl#700: the NIC is fine with host memory, NCCL has half. */
    {2, "cases/02-roce-acs.json", "acs-redirect", W,
     "0000:02:03.0|0000:02:04.0|gpu0 and mlx5_0|host memory", ""},
    /* NVIDIA/nccl#304: after a reboot the bits are back. */
    {4, "cases/04-plx-acs.json", "acs-redirect", W, "setpci|does not survive a reboot|0000:02:05.0",
     ""},
    {8, "cases/08-bridge-half-in.json", "nvlink-bridge-seat", F,
     "1 of 4 NVLinks|56 s|reseat|14.1 of 56.2", ""},
    {9, "nvlink/azhpc-v100-2links-inactive.txt", "nvlink-down", F,
     "gpu3|4 of 6 NVLinks|3, 5|100 of 150 GB/s", ""},
    {9, "cases/09-topo-m-16-of-18.txt", "nvlink-down", F,
     "gpu2|16 of 18 NVLinks are up (its siblings|11 % of its NVLink", ""},
    {9, "cases/09-v100-two-links-down.json", "nvlink-down", F, "nd40 gpu3|4 of 6|its siblings", ""},
    {10, "cases/10-h100-pcie-no-nvlink.json", "nvlink-no-bridge", W,
     "H100 PCIe without NVLink|63.0 GB/s over PCIe|300", ""},
    {11, "cases/11-h800.json", "nvlink-cut-down", I, "H800|200 GB/s one way, 400 both ways", ""},
    {11, "cases/11-sold-as-h100.json", "nvlink-cut-down", F, "8 NVLinks|18|200 of 450 GB/s", ""},
    {11, "topom/nvlink8-h800-9nic-head.txt", "nvlink-cut-down", I, "8 NVLinks|200 GB/s one way",
     ""},
    {14, "cases/14-two-cables.json", "nics-share-port", W,
     "mlx5_0 and mlx5_1|one card|200 Gb/s together is 100 Gb/s|count the cables", ""},
    {16, "cases/16-roce-loss.json", "roce-loss", W, "mlx5_0/1|out of sequence|184467|PFC", ""},
    {16, "cases/16-roce-loss.json", "roce-loss", W, "mlx5_0/1|in time|2310", ""},
    {22, "cases/22-idle-gen1.json", "not-checked", I, "PCIe speed of GPUs under load|idle", ""},
    {22, "smi/4090x8-q-mixed-gen.txt", "not-checked", I, "PCIe speed of GPUs under load", ""},
    {22, "logs/lspci-rtx6000ada-idle-gen1.txt", "not-checked", I, "PCIe speed of GPUs under load",
     ""},
    {23, "cases/23-riser-gen1.json", "pcie-slow-under-load", F,
     "riser gpu0|Gen1 while copying|Gen4|4.00 of 31.5 GB/s|take the riser out", ""},
    {25, "logs/dmesg-gpu-limited-gen4-switch.txt", "pcie-limited", W,
     "0000:04:00.0|16.0 GT/s PCIe x16 link at 0000:01:00.0|31.5 of 63.0 GB/s", ""},
    {25, "logs/dmesg-gpu-limited-gen4-switch.txt", "pcie-limited", W, "0000:8b:00.0|0000:87:00.0",
     ""},
    {26, "cases/26-pex890xx.json", "pcie-switch-writes", I, "PEX890xx|36.8 to 2.7 GB/s|reads", ""},
    {28, "cases/28-one-at-half-power.json", "power-limit-one", W, "c4140 gpu2|150 W|300 W", ""},
    {28, "cases/28-a100-stuck-at-240w.json", "power-cap-low", W,
     "241 of 400 W|915 of 1410 MHz|management controller", ""},
    {29, "cases/29-hw-slowdown.json", "hw-slowdown", F,
     "clip gpu0|although it draws little power|110 of 400 W", ""},
    {29, "smi/h100x8-q-hwslowdown.txt", "power-brake-all", F,
     "all 8 GPUs|one common cause|68 of 700 W|power supplies", ""},
    {30, "cases/30-nfs.json", "data-path", W, "NFS|0.118 GB/s|local NVMe", ""},
    {31, "cases/31-gpu-lost.json", "gpu-lost", F, "Xid 79|0000:03:00.0|do not measure",
     "pcie-errors"},
    {31, "cases/31-gpu-lost.json", "pcie-errors", W, "0000:00:03.0|214 PCIe errors", "gpu-lost"},
    {41, "cases/41-one-of-four-slow.json", "nic-slow", W, "rocep1s0f2/1|100 Gb/s|200 Gb/s", ""},
};

Test(topo_cases, the_cause_is_named_and_nothing_else)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct expected *row = &cases[i];
        struct judged judged;
        char codes[256];

        if (!judge(row->files, &judged))
            continue;
        snprintf(codes, sizeof codes, "%s %s", row->code, row->others);
        cr_expect(is_found(&judged.findings, row->code, (nw_severity)row->severity, row->phrases),
                  "case %d, %s: no %s \"%s\" that says %s", row->number, row->files,
                  nw_severity_name((nw_severity)row->severity), row->code, row->phrases);
        expect_nothing_else(&judged.findings, codes, row->files);
        judged_free(&judged);
    }
}

/* Faults of field files that are no case. */
static const struct expected faults[] = {
    {0, "smi/a10-q-ecc4.txt", "memory-remap-pending", W, "gpu0|4 for errors|reset", ""},
    {0, "smi/a100-remapped-row-pending-q.txt", "memory-remap-pending", W, "reset the GPU", ""},
    {0, "smi/ndv4-ecc-bad.txt", "memory-worn", F, "gpu7|64 memory pages|replace",
     "memory-remap-pending"},
    {0, "smi/telegraf-t4.xml", "pcie-narrow", W, "gpu0|x8 where x16|7.88 of 15.8 GB/s", ""},
    {0, "smi/capture-h100-mig-q.txt", "mig-on", W, "MIG is on", ""},
    {0, "smi/h100x8-q-truncated.txt", "file-cut", I, "8 GPUs are attached", ""},
    {0, "logs/dmesg-mlx5-pcie-x8-limited.txt", "pcie-limited", W,
     "0001:43:00.0|x8 link at 0001:42:01.0|7.88 of 15.8 GB/s", ""},
    {0, "logs/lspci-nvme-or-nic-x1.txt", "pcie-narrow", W, "0000:71:00.0|x1", ""},
    {0, "logs/gcm-learn_ib_misbound_if.json", "nic-name-moved", W, "mlx5_12 is at 0000:4b:00.0",
     ""},
    {0, "logs/gcm-learn_good.json+logs/gcm-learn_ib_misbound_if.json", "nic-names-differ", W,
     "0000:4b:00.0 is mlx5_12 here and mlx5_2", "nic-name-moved"},
    /* ACS is on, but not where GPUs and NICs meet. */
    {0, "logs/lspci-vvv-hgx-h100-acs-on.txt", "acs-elsewhere", I, "2 PCIe bridges", ""},
    {0, "topom/v100-pcie-x2-mlx.txt", "nic-wrong-socket", W, "mlx5_0, mlx5_1|2 of 2 GPUs", ""},
    {0, "topom/a100-2pernuma-nic-mismatch-head.txt", "nic-not-for-gpus", I, "nic3, nic4", ""},
    {0, "topom/a100x4-booster-nv4.txt", "gpu-without-near-nic", I, "gpu0, gpu3|2 of 4", ""},
    {0, "ibstat/ibstat-h100-3down.txt", "nic-down", I, "mlx5_2, mlx5_7, mlx5_8", ""},
    {0, "ibstat/ibstat-a100-8hdr-ibpanic.txt", "tool-failed", W, "mlx5_8", ""},
    {0, "hwloc/sandy-3gpu-1ib-wholeio.xml", "gpus-mixed", W, "M2075", ""},
    /* Two of the four NICs beside the GPUs have no link. */
    {0, "hwloc/lenovo-sd665n-4xh200-nvml.xml", "near-nic-down", W, "gpu1|mlx5_3|mlx5_4 beside", ""},
    {0, "smi/smi-525-short.txt", "gpu-error", W, "ERR!", ""},
};

Test(topo_cases, faults_in_field_files_are_named_and_nothing_else)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const struct expected *row = &faults[i];
        struct judged judged;
        char codes[256];

        if (!judge(row->files, &judged))
            continue;
        snprintf(codes, sizeof codes, "%s %s", row->code, row->others);
        cr_expect(is_found(&judged.findings, row->code, (nw_severity)row->severity, row->phrases),
                  "%s: no %s \"%s\" that says %s", row->files,
                  nw_severity_name((nw_severity)row->severity), row->code, row->phrases);
        expect_nothing_else(&judged.findings, codes, row->files);
        judged_free(&judged);
    }
}

/* Machines of the field without a fault, by what is known of them: idle consumer cards, virtual
 * machines, other makers' GPUs, cut files. */
Test(topo_cases, nothing_is_wrong_with_the_healthy)
{
    FILE *list = fopen(NW_SOURCE_DIR "/tests/field/healthy", "r");
    char line[256];
    int read = 0;

    cr_assert_not_null(list);
    while (fgets(line, sizeof line, list) != NULL) {
        struct judged judged;

        line[strcspn(line, " #\n")] = '\0';
        if (line[0] == '\0' || !judge(line, &judged))
            continue;
        expect_nothing_else(&judged.findings, "", line);
        read++;
        judged_free(&judged);
    }
    fclose(list);
    cr_expect_gt(read, 20);
}

/* Cases 12 and 13: the bound is that of the links that are there, not of the product's name. */
Test(topo_cases, the_bound_of_a_pair_is_its_own)
{
    static const struct {
        const char *file;
        int nvlinks;
        double bytes_per_s;
    } rows[] = {
        /* NVIDIA/nccl-tests#331: 72 GB/s. A matrix alone does not tell the links' generation. */
        {"topom/a100x4-custom-nv4-1cpu.txt", 4, NAN},
        {"cases/12-a100x4-nv4.json", 4, 100e9},
        {"cases/13-h100-pcie-bridge.json", 12, 300e9}, /* NVIDIA/nccl#1161 */
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_ceiling ceiling;
        struct judged judged;

        if (!judge(rows[i].file, &judged))
            continue;
        const struct nw_topo *topo = judged.hosts[0];
        const int a = (int)(nw_topo_nth(topo, NW_NODE_GPU, 0) - topo->nodes);
        const int b = (int)(nw_topo_nth(topo, NW_NODE_GPU, 1) - topo->nodes);

        nw_ceiling_pair(topo, a, b, &ceiling);
        cr_expect_eq(ceiling.class_id, NW_CLASS_NV);
        cr_expect_eq(ceiling.lane_count, rows[i].nvlinks, "%s: %d", rows[i].file,
                     ceiling.lane_count);
        if (isnan(rows[i].bytes_per_s))
            cr_expect(isnan(ceiling.bytes_per_s), "%s: %g", rows[i].file, ceiling.bytes_per_s);
        else
            cr_expect_float_eq(ceiling.bytes_per_s, rows[i].bytes_per_s, 0.03 * rows[i].bytes_per_s,
                               "%s: %g", rows[i].file, ceiling.bytes_per_s);
        expect_nothing_else(&judged.findings, "", rows[i].file);
        judged_free(&judged);
    }
}
