#include <criterion/criterion.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/letter.h"
#include "report/letter_names.h"
#include "base/words.h"

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

static const char quote_text[] =
    "[quote]\nvendor = Cloud | Co \"A\" %s %n\n[cluster]\nnodes=2\n"
    "[gpu]\nmodel=H100 SXM\ncount=8\nmemory_GiB=80\nnvlink_GBps=900\nnvlink_is=bidirectional\n"
    "nvlink_links=18\nnvswitch=yes\necc=yes\npower_W=700\npcie_gen=5\nmemory_GBps=3350\n"
    "bf16_TFLOPS=989\npeer_access=yes\nstress_minutes=30\n"
    "[network]\nnic_count=8\nnic_gbps=400\nrdma=yes\nkind=infiniband\ngpudirect=yes\n"
    "nic_per_gpu=yes\nmtu=4096\n[cpu]\ncores=96\nthreads=192\nram_GiB=2048\n"
    "[disk]\nnvme_count=4\nnvme_TB=3.84\nread_GBps=6\nwrite_GBps=3\nread_IOPS=800000\n"
    "file_system=lustre\nmount=/data\n[software]\nos=Ubuntu 22.04\ndriver=550.54\ncuda=12.4\n"
    "nccl=2.21\npytorch=2.4\nscheduler=slurm\n"
    "[price]\ncurrency=CNY\nper_gpu_hour=100\nper_node_hour=900\n";

/* A machine that is worse than quoted in everything. */
static struct nw_topo *bad_machine(void)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);

    topo->nodes = calloc(4, sizeof *topo->nodes);
    topo->node_count = 4;
    topo->core_count = 8;
    topo->pu_count = 16;
    topo->memory_bytes = 64ull << 30;
    snprintf(topo->host, sizeof topo->host, "gpu-secret7");
    snprintf(topo->source, sizeof topo->source, "/home/me/gpu-secret7.example.com.json");
    snprintf(topo->os, sizeof topo->os, "Debian GNU/Linux 12");
    topo->nodes[0] =
        (struct nw_topo_node){.kind = NW_NODE_MACHINE, .parent = -1, .numa = -1, .port_up = -1};
    topo->nodes[1] = (struct nw_topo_node){.kind = NW_NODE_GPU,
                                           .numa = 0,
                                           .port_up = -1,
                                           .memory_bytes = 40ull << 30,
                                           .name = "gpu0",
                                           .model = "NVIDIA H100 PCIe",
                                           .link_max_bytes_per_s = 15.75e9,
                                           .link_max_lanes = 16};
    topo->nodes[2] = (struct nw_topo_node){.kind = NW_NODE_NIC,
                                           .numa = 0,
                                           .port_up = 1,
                                           .name = "eth0",
                                           .fabric = "ethernet",
                                           .rate_bits_per_s = 25e9};
    topo->nodes[3] = (struct nw_topo_node){.kind = NW_NODE_DISK,
                                           .numa = 0,
                                           .port_up = -1,
                                           .name = "nvme0n1",
                                           .memory_bytes = 1000000000000};
    nw_topo_set_text(topo, 0, NW_FACT_DRIVER, "470.1", "test");
    nw_topo_set_text(topo, 0, NW_FACT_CUDA, "11.4", "test");
    nw_topo_set_text(topo, 0, NW_FACT_NCCL, "2.8", "test");
    nw_topo_set_text(topo, 0, NW_FACT_PYTORCH, "1.13", "test");
    nw_topo_set_text(topo, 0, NW_FACT_SCHEDULER, "ray", "test");
    nw_topo_set_text(topo, 0, NW_FACT_PARALLEL_FS, "nfs4 at /home", "test");
    nw_topo_set_text(topo, 0, NW_FACT_DATA_PATH, "/home", "test");
    nw_topo_set_number(topo, 0, NW_FACT_DATA_READ, 0.4e9, "test");
    nw_topo_set_number(topo, 0, NW_FACT_DATA_WRITE, 0.2e9, "test");
    nw_topo_set_number(topo, 0, NW_FACT_DATA_READ_IOPS, 9e3, "test");
    nw_topo_set_number(topo, 0, NW_FACT_PEERMEM, 0, "test");
    nw_topo_set_number(topo, 0, NW_FACT_DMABUF, 0, "test");
    nw_topo_set_number(topo, 1, NW_FACT_ECC, 0, "test");
    nw_topo_set_number(topo, 1, NW_FACT_POWER_LIMIT, 350, "test");
    nw_topo_set_number(topo, 1, NW_FACT_NVLINK_COUNT, 0, "test");
    nw_topo_set_number(topo, 2, NW_FACT_MTU, 1500, "test");
    return topo;
}

static char *letter_of(const char *language, bool keep_names, struct nw_topo *const *topos,
                       size_t topo_count)
{
    struct nw_quote quote;
    struct nw_audit audit;
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    cr_assert_eq(nw_quote_parse(quote_text, strlen(quote_text), "v.ini", &quote), NW_OK, "%s",
                 nw_last_error()->text);
    cr_assert_eq(
        nw_audit_make(
            &(struct nw_audit_input){.quote = &quote, .topos = topos, .topo_count = topo_count},
            &audit),
        NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_report_letter(stream, &(struct nw_letter){.audit = &audit,
                                                              .topos = topos,
                                                              .topo_count = topo_count,
                                                              .version = "0.1.0",
                                                              .language = language,
                                                              .keep_names = keep_names}),
                 NW_OK, "%s", nw_last_error()->text);
    fclose(stream);
    nw_audit_free(&audit);
    return text;
}

/* Words of plain English in a row: commands and names have fewer. */
static int english_run(const char *line)
{
    int run = 0, longest = 0;

    for (const char *c = line; *c != '\0';) {
        const size_t word = strspn(c, "abcdefghijklmnopqrstuvwxyz");

        if (word > 1 && (c[word] == ' ' || c[word] == '\0' || c[word] == ','))
            longest = ++run > longest ? run : longest;
        else if (word > 0 || (*c != ' ' && *c != ','))
            run = 0;
        c += word > 0 ? word : 1;
    }
    return longest;
}

Test(report_letter, chinese_letters_have_no_english_sentence)
{
    for (int bad = 0; bad < 2; bad++) {
        struct nw_topo *topo = bad_machine();
        char *text = letter_of("zh", false, &topo, (size_t)bad), *rest;

        cr_expect(strstr(text, "关于贵方报价的验收结果") != NULL);
        for (char *line = strtok_r(text, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest))
            cr_expect_lt(english_run(line), 4, "%s", line);
        free(text);
        nw_topo_free(topo);
    }
}

Test(report_letter, both_languages_have_the_same_figures)
{
    struct nw_topo *topo = bad_machine();
    char *letters[] = {letter_of("en", false, &topo, 1), letter_of("zh", false, &topo, 1)};
    static const char *const figures[] = {"450 GB/s", "900 GB/s",    "350 W",    "700 W",
                                          "Gen5 x16", "0.400 GB/s",  "9.00 k/s", "800 k/s",
                                          "64 GiB",   "2048 GiB",    "40.0 GiB", "470.1",
                                          "nfs4",     "4 × 3.84 TB", "CNY"};

    for (int language = 0; language < 2; language++) {
        for (size_t i = 0; i < COUNT(figures); i++)
            cr_expect(strstr(letters[language], figures[i]) != NULL, "%d: no %s", language,
                      figures[i]);
        cr_expect(strstr(letters[language], "Cloud | Co \"A\" %s %n") != NULL,
                  "what the vendor is called is no format");
        free(letters[language]);
    }
    nw_topo_free(topo);
}

Test(report_letter, hosts_and_folders_are_hidden_unless_kept)
{
    struct nw_topo *topo = bad_machine();
    char *hidden = letter_of("en", false, &topo, 1), *kept = letter_of("en", true, &topo, 1);

    cr_expect(strstr(hidden, "secret7") == NULL && strstr(hidden, "/home/me") == NULL &&
              strstr(hidden, "example.com") == NULL);
    cr_expect(strstr(hidden, "node1") != NULL);
    cr_expect(strstr(kept, "gpu-secret7") != NULL);
    free(hidden);
    free(kept);
    nw_topo_free(topo);
}

Test(report_letter, names_are_replaced_whole_and_the_longest_first)
{
    static const struct {
        const char *text, *hidden;
    } rows[] = {
        {"gpu-a1", "node1"},
        {"gpu-a10 and gpu-a1", "node2 and node1"},
        {"gpu-a1.example.com: slow", "node1: slow"},
        {"on gpu-a1. Do it", "on node1. Do it"},
        {"xgpu-a1 gpu-a1x gpu-a1_b", "xgpu-a1 gpu-a1x gpu-a1_b"},
        {"node1", "node3"}, /* a host that is called so already */
        {"", ""},
    };
    char hosts[][64] = {"gpu-a1", "gpu-a10", "node1"}, out[64];
    const struct nw_audit audit = {.hosts = hosts, .host_count = 3};
    const struct nw_names names = {.audit = &audit}, kept = {.audit = &audit, .keep = true};

    for (size_t i = 0; i < COUNT(rows); i++) {
        cr_expect_str_eq(nw_names_hide(&names, rows[i].text, out, sizeof out), rows[i].hidden);
        cr_expect_str_eq(nw_names_hide(&kept, rows[i].text, out, sizeof out), rows[i].text);
    }
    cr_expect_str_eq(nw_names_file(&names, "/a/b/gpu-a1.log", out, sizeof out), "node1");
    cr_expect_str_eq(nw_names_file(&names, "/a/b/x.log", out, sizeof out), "x.log");
    cr_expect_eq(strlen(nw_names_hide(&names, "gpu-a1 gpu-a1 gpu-a1", out, 9)), 8);
}

Test(report_letter, sentences_are_found_by_their_form)
{
    static const struct {
        const char *english, *said;
    } rows[] = {
        {"met", "达标"},
        {"4 of 8 GPUs", "8 张 GPU 中 4 张"},
        {"350 W limit, no NVLink: this is H100 PCIe",
         "功耗上限 350 W，没有 NVLink：这是 H100 PCIe"},
        {"8 links × 25 GB/s = 200 GB/s one way, 400 both ways; by the active links",
         "8 条链路 × 25 GB/s = 单向 200 GB/s，双向合计 400 GB/s；按已激活的链路判断"},
        {"nothing of this is known; met", "nothing of this is known；达标"},
        {"% %s %d", "% %s %d"},
        {"", ""},
    };
    const struct nw_language *language;
    char out[400], endless[4000];

    cr_assert_eq(nw_language_find("zh", &language), NW_OK);
    for (size_t i = 0; i < COUNT(rows); i++)
        cr_expect_str_eq(nw_words_say(language, rows[i].english, out, sizeof out), rows[i].said);
    memset(endless, ';', sizeof endless);
    for (size_t i = 1; i < sizeof endless; i += 2)
        endless[i] = ' ';
    endless[sizeof endless - 1] = '\0';
    nw_words_say(language, endless, out, sizeof out);
    cr_expect_lt(strlen(out), sizeof out);
    cr_expect_eq(nw_language_find("fr", &language), NW_EUSAGE);
    cr_expect_eq(nw_letter_check_language("zh_CN"), NW_EUSAGE);
}
