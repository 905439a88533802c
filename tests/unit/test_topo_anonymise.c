/* What is secret is gone from every text of a saved topology; equal ones stay equal. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/topo_machines.h"
#include "topo/anonymise.h"
#include "topo/read.h"

static const struct {
    nw_fact_id id;
    int node; /* 0 machine, 1 GPU, 2 NIC, 3 port */
    const char *text;
} planted[] = {
    {NW_FACT_UUID, 1, "GPU-5fb7ee86-cf66-4e1b-a5c5-4b2e03a9d4f1"},
    {NW_FACT_SERIAL, 1, "1654422012345"},
    {NW_FACT_SERIAL, 2, "MT2243X00QZ7"},
    {NW_FACT_NODE_GUID, 2, "b83f:d203:00a1:b2c4"},
    {NW_FACT_SYSTEM_GUID, 2, "0xb83fd20300a1b2c8"},
    {NW_FACT_PORT_GUID, 3, "0xb83fd20300a1b2c4"},
    {NW_FACT_MAC, 2, "b8:3f:d2:a1:b2:c4"},
    {NW_FACT_IP, 2, "203.0.113.77/24, 2001:db8:77:1:ba3f:d2ff:fea1:b2c4/64"},
    {NW_FACT_PEER, 3, "leaf-switch-attic-9 port 14"},
    {NW_FACT_DATA_PATH, 0, "/home/alice/secretproject"},
    {NW_FACT_DATA_SOURCE, 0, "nfs.acmecorp.example:/exports/vol7"},
    {NW_FACT_PARALLEL_FS, 0, "nfs4 198.51.100.9:/team on /mnt/acme; lustre on /scratch"},
    {NW_FACT_CONTAINER, 0,
     "kubepods pod8d1c91b0-3e4f-4f0c-9b7a-1f2e3d4c5b6a 3f9c2a7be81d4d0f9a6b7c8d9e0f1a2b"},
};

/* None of these may be in the file, in any case, with or without separators. */
static const char *const secrets[] = {
    "rack7-gpu42",  "acmecorp",       "5fb7ee86",     "4b2e03a9d4f1",  "1654422012345",
    "MT2243X00QZ7", "d203:00a1:b2c4", "d20300a1b2c4", "a1:b2:c4",      "fea1:b2c4",
    "203.0.113.77", "cb00:714d", /* the same in hexadecimal digits */
    "2001:db8:77",  "leaf-switch",    "alice",        "secretproject", "vol7",
    "198.51.100.9", "acme",           "8d1c91b0",     "3f9c2a7be81d",  "results-of-bob",
    "enxb83fd2",    "job_9332563",    "10.11.12.13",
};

static struct nw_topo *planted_machine(void)
{
    static const nw_node_kind kinds[] = {NW_NODE_MACHINE, NW_NODE_GPU, NW_NODE_NIC, NW_NODE_PORT};
    static const char *const names[] = {"machine", "gpu0", "mlx5_0", "mlx5_0/1"};
    struct nw_topo *topo = calloc(1, sizeof *topo);
    int index;

    for (int i = 0; i < 4; i++) {
        cr_assert_eq(nw_topo_add_node(topo, kinds[i], i == 0 ? -1 : i == 3 ? 2 : 0, &index), NW_OK);
        snprintf(topo->nodes[i].name, sizeof topo->nodes[i].name, "%s", names[i]);
    }
    snprintf(topo->host, sizeof topo->host, "rack7-gpu42.acmecorp.example");
    snprintf(topo->source, sizeof topo->source, "live + /home/alice/results-of-bob.txt");
    snprintf(topo->nodes[2].os_names, sizeof topo->nodes[2].os_names, "mlx5_0 enxb83fd2a1b2c4");
    snprintf(topo->nodes[1].pci, sizeof topo->nodes[1].pci, "0000:17:00.0");
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++)
        cr_assert_eq(nw_topo_set_text(topo, planted[i].node, planted[i].id, planted[i].text,
                                      i % 2 ? "sysfs" : "/home/alice/results-of-bob.txt"),
                     NW_OK);
    nw_topo_set_text(topo, 0, NW_FACT_DRIVER, "580.65.06", "nvml");
    nw_topo_set_text(topo, 2, NW_FACT_FIRMWARE, "24.07.0.6", "sysfs");
    nw_topo_set_text(topo, 0, NW_FACT_KERNEL, "6.8.0-1015-azure", "live");
    static const char *const gids[] = {
        "fe80:0000:0000:0000:b83f:d203:00a1:b2c4", "fe80:0000:0000:0000:ba3f:d2ff:fea1:b2c4",
        "0000:0000:0000:0000:0000:ffff:cb00:714d", "2001:0db8:0077:0001:ba3f:d2ff:fea1:b2c4"};

    for (int i = 0; i < 4; i++) {
        struct nw_topo_gid gid = {.port = 3, .index = i};

        snprintf(gid.gid, sizeof gid.gid, "%s", gids[i]);
        snprintf(gid.ip, sizeof gid.ip, "%s",
                 i == 2   ? "203.0.113.77"
                 : i == 3 ? "2001:db8:77:1:ba3f:d2ff:fea1:b2c4"
                          : "");
        snprintf(gid.interface, sizeof gid.interface, "eth0");
        cr_assert_eq(nw_topo_add_gid(topo, &gid), NW_OK);
    }
    cr_assert_eq(
        nw_findings_add(&topo->findings, NW_FINDING_FAIL, "planted", "rack7-gpu42 gpu0",
                        "ssh RACK7-GPU42 and read /etc/hosts",
                        "GPU serial 1654422012345 (GPU-5fb7ee86-cf66-4e1b-a5c5-4b2e03a9d4f1) at "
                        "0000:17:00.0 on rack7-gpu42.acmecorp.example: 10.11.12.13 does not answer "
                        "within 12.5 GB/s of 137438953472 bytes, in /system.slice/job_9332563/x; "
                        "b8-3f-d2-a1-b2-c4 node2.acmecorp.example nfs.acmecorp.example:/exports"),
        NW_OK);
    cr_assert_eq(nw_findings_effect(&topo->findings, 1e9,
                                    "/home/alice/results-of-bob.txt:14: 1 of "
                                    "2 GB/s at 12:34:56"),
                 NW_OK);
    return topo;
}

static char *json_text(const struct nw_topo *topo)
{
    json_t *json;

    cr_assert_eq(nw_topo_to_json(topo, &json), NW_OK);
    char *text = json_dumps(json, 0);

    json_decref(json);
    return text;
}

static bool holds(const char *text, const char *secret)
{
    return strcasestr(text, secret) != NULL;
}

static const char *finding(const struct nw_topo *topo)
{
    return topo->findings.items[0].text;
}

Test(topo_anonymise, no_planted_secret_survives)
{
    struct nw_topo *topo = planted_machine();
    char *before = json_text(topo);

    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        if (strcmp(secrets[i], "cb00:714d") != 0)
            cr_assert(holds(before, secrets[i]), "%s was not planted", secrets[i]);
    cr_assert_eq(nw_topo_anonymise(topo, "seed"), NW_OK, "%s", nw_last_error()->text);
    char *after = json_text(topo);

    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        cr_expect(!holds(after, secrets[i]), "%s is in %s", secrets[i], after);
    /* What is no secret stays: the file must serve. */
    static const char *const kept[] = {"0000:17:00.0",
                                       "580.65.06",
                                       "24.07.0.6",
                                       "mlx5_0/1",
                                       "6.8.0-1015-azure",
                                       "12.5 GB/s",
                                       "137438953472",
                                       "/etc/hosts",
                                       "1 of 2 GB/s at 12:34:56",
                                       "fe80:",
                                       "eth0",
                                       "lustre on /"};

    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        cr_expect(holds(after, kept[i]), "%s is not in %s", kept[i], after);
    free(before);
    free(after);
    nw_topo_free(topo);
}

/* Facts that are added later are covered by their flag, and by what texts look like. */
Test(topo_anonymise, every_fact_is_covered)
{
    static const char *const texts[] = {"alice-secret", "0xb83fd20300a1b2c4", "1654422012345"};
    static const char *const forms =
        "10.11.12.13 b8:3f:d2:a1:b2:c4 /home/alice 5fb7ee86-cf66-4e1b-a5c5-4b2e03a9d4f1";
    static const char *const planted_forms[] = {"10.11.12.13", "d2:a1", "alice", "5fb7ee86"};

    for (int id = 0; id < NW_FACT_COUNT; id++) {
        const struct nw_fact_row *row = &nw_fact_rows[id];
        const bool secret = (row->flags & NW_FACT_SECRET) != 0;

        if (row->type != NW_FACT_TEXT)
            continue;
        for (size_t k = 0; k < 3; k++) {
            struct nw_topo *topo = planted_machine();
            const char *text = secret ? texts[k] : forms;

            cr_assert_eq(nw_topo_set_text(topo, 2, (nw_fact_id)id, text, "t"), NW_OK);
            cr_assert_eq(nw_topo_anonymise(topo, "seed"), NW_OK);
            const char *after = nw_topo_text(topo, 2, (nw_fact_id)id);

            cr_assert_not_null(after, "%s", row->key);
            if (secret)
                cr_expect(!holds(after, text), "%s: %s", row->key, after);
            for (size_t f = 0; f < 4 && !secret && strstr(row->key, "version") == NULL; f++)
                cr_expect(!holds(after, planted_forms[f]), "%s: %s", row->key, after);
            nw_topo_free(topo);
        }
    }
}

/* Texts in which nothing secret is expected may be written by anybody. */
Test(topo_anonymise, no_text_of_a_node_lets_secrets_through)
{
    static const char *const texts[] = {"d2:a1:b2:c4 b8:3f:d2:a1:b2:c4",
                                        "x fd00:7:7::5:1",
                                        "/home/alice/x",
                                        "~alice/x",
                                        "alice@login",
                                        "filer3:/alice",
                                        "see 0xb83fd20300a1b2c4"};
    static const char *const secret[] = {"b8:3f:d2:a1", "fd00:7:7", "alice",       "alice",
                                         "alice",       "filer3",   "b83fd20300a1"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct nw_topo *topo = planted_machine();

        snprintf(topo->os, sizeof topo->os, "Linux %s", texts[i]);
        snprintf(topo->nodes[0].model, sizeof topo->nodes[0].model, "Box %s", texts[i]);
        snprintf(topo->nodes[1].os_names, sizeof topo->nodes[1].os_names, "x0 %s", texts[i]);
        cr_assert_eq(nw_topo_set_text(topo, 0, NW_FACT_CUDA, texts[i], texts[i]), NW_OK);
        cr_assert_eq(nw_topo_anonymise(topo, "seed"), NW_OK);
        const char *cuda = nw_topo_text(topo, 0, NW_FACT_CUDA);

        cr_expect(!holds(topo->os, secret[i]), "%s", topo->os);
        cr_expect(!holds(topo->nodes[0].model, secret[i]), "%s", topo->nodes[0].model);
        cr_expect(!holds(topo->nodes[1].os_names, secret[i]), "%s", topo->nodes[1].os_names);
        cr_expect(!holds(cuda, secret[i]), "%s", cuda);
        nw_topo_free(topo);
    }
}

/* The text of a fact behind its prefix. */
static const char *fact(const struct nw_topo *topo, int node, nw_fact_id id)
{
    const char *text = nw_topo_text(topo, node, id);

    cr_assert_not_null(text);
    return text;
}

static void digits_of(const char *text, char digits[64])
{
    size_t length = 0;

    if (strncmp(text, "0x", 2) == 0)
        text += 2;
    for (; *text != '\0' && length < 63; text++)
        if (isxdigit((unsigned char)*text))
            digits[length++] = (char)tolower((unsigned char)*text);
    digits[length] = '\0';
}

Test(topo_anonymise, equal_ones_stay_equal)
{
    struct nw_topo *topo = planted_machine(), *again = planted_machine(),
                   *other = planted_machine();
    char a[64], b[64], c[64];

    cr_assert_eq(nw_topo_anonymise(topo, "seed"), NW_OK);
    cr_assert_eq(nw_topo_anonymise(again, "seed"), NW_OK);
    cr_assert_eq(nw_topo_anonymise(other, "another"), NW_OK);
    char *x = json_text(topo), *y = json_text(again), *z = json_text(other);

    cr_expect_str_eq(x, y);
    cr_expect_str_neq(x, z);
    /* one GUID in three spellings, and at the end of a GID */
    digits_of(fact(topo, 2, NW_FACT_NODE_GUID), a);
    digits_of(fact(topo, 3, NW_FACT_PORT_GUID), b);
    digits_of(topo->gids[0].gid + 20, c);
    cr_expect_str_eq(a, b, "%s and %s", a, b);
    cr_expect_str_eq(a, c, "%s and %s", a, c);
    cr_expect_eq(strncmp(topo->gids[0].gid, "fe80:0000:0000:0000:", 20), 0, "%s",
                 topo->gids[0].gid);
    /* the MAC address in the GID made of it, and of the interface named by it */
    digits_of(fact(topo, 2, NW_FACT_MAC), a);
    digits_of(topo->gids[1].gid + 20, b);
    cr_expect_eq(strncmp(b + 6, "fffe", 4), 0, "%s", b);
    cr_expect_eq(strncmp(a + 2, b + 2, 4), 0, "%s and %s", a, b);
    cr_expect_str_eq(a + 6, b + 10, "%s and %s", a, b);
    cr_expect(strstr(topo->nodes[2].os_names, a) != NULL, "%s in %s", a, topo->nodes[2].os_names);
    /* an IP address as text, in a list, and in a GID */
    cr_expect_eq(strncmp(fact(topo, 2, NW_FACT_IP), topo->gids[2].ip, strlen(topo->gids[2].ip)), 0,
                 "%s and %s", fact(topo, 2, NW_FACT_IP), topo->gids[2].ip);
    cr_expect(strstr(fact(topo, 2, NW_FACT_IP), topo->gids[3].ip) != NULL, "%s and %s",
              fact(topo, 2, NW_FACT_IP), topo->gids[3].ip);
    cr_expect(strstr(fact(topo, 2, NW_FACT_IP), "/24") != NULL);
    /* names in findings */
    cr_expect(holds(finding(topo), topo->host), "%s in %s", topo->host, finding(topo));
    cr_expect(holds(finding(topo), fact(topo, 1, NW_FACT_UUID)), "%s", finding(topo));
    cr_expect(holds(finding(topo), fact(topo, 1, NW_FACT_SERIAL)), "%s", finding(topo));
    cr_expect_str_eq(topo->findings.items[0].where + strlen(topo->host), " gpu0", "%s",
                     topo->findings.items[0].where);
    free(x);
    free(y);
    free(z);
    nw_topo_free(topo);
    nw_topo_free(again);
    nw_topo_free(other);
}

static uint32_t ipv4(int a, int b, int c, int d)
{
    return (uint32_t)a << 24 | (uint32_t)b << 16 | (uint32_t)c << 8 | (uint32_t)d;
}

static int shared_bits(uint32_t a, uint32_t b)
{
    int bits = 0;

    while (bits < 32 && (a >> (31 - bits)) == (b >> (31 - bits)))
        bits++;
    return bits;
}

Test(topo_anonymise, networks_stay_networks)
{
    const struct nw_hash_key key = nw_hash_key_of("any");
    const uint32_t addresses[] = {ipv4(10, 1, 2, 3),   ipv4(10, 1, 2, 77),   ipv4(10, 1, 3, 3),
                                  ipv4(10, 200, 0, 1), ipv4(192, 168, 5, 1), ipv4(192, 168, 5, 2),
                                  ipv4(172, 16, 0, 9), ipv4(203, 0, 113, 5), ipv4(203, 0, 113, 200),
                                  ipv4(8, 8, 8, 8),    ipv4(169, 254, 7, 7), ipv4(100, 64, 0, 1)};
    enum { COUNT = sizeof addresses / sizeof *addresses };
    int changed = 0;

    for (int i = 0; i < COUNT; i++) {
        const uint32_t x = nw_anonymous_ipv4(&key, addresses[i]);

        changed += x != addresses[i];
        for (int k = 0; k < COUNT; k++)
            cr_expect_eq(shared_bits(addresses[i], addresses[k]),
                         shared_bits(x, nw_anonymous_ipv4(&key, addresses[k])), "%d and %d", i, k);
        if (addresses[i] >> 24 == 10)
            cr_expect_eq(x >> 24, 10u);
        if (addresses[i] >> 16 == ipv4(169, 254, 0, 0) >> 16)
            cr_expect_eq(x >> 16, addresses[i] >> 16);
    }
    cr_expect_geq(changed, COUNT - 1, "%d of %d changed", changed, COUNT);
    cr_expect_eq(nw_anonymous_ipv4(&key, ipv4(127, 0, 0, 1)), ipv4(127, 0, 0, 1));
    /* SipHash-2-4 of 00 01 … 0e under key 00 01 … 0f: the test vector of its authors */
    const struct nw_hash_key vector = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    unsigned char message[15];

    for (unsigned char i = 0; i < 15; i++)
        message[i] = i;
    cr_expect_eq(nw_hash(&vector, message, 15), UINT64_C(0xa129ca6149be45e5));
}

/* Texts beside the planted ones: what must go, and what must stay. */
Test(topo_anonymise, forms_in_texts)
{
    static const struct {
        const char *text, *gone, *stays;
    } rows[] = {
        {"ib0 80:00:02:08:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:a1:b2:c4",
         "b8:3f:d2:03:00:a1:b2:c4", "ib0 80:00:02:08:fe:80:00:00:00:00:00:00:"},
        {"PCI 0000:17:00.0 and 00000000:17:00.0, 17:00.0", "none",
         "PCI 0000:17:00.0 and 00000000:17:00.0, 17:00.0"},
        {"driver 580.65.06, NCCL 2.28.9, 3.5 GB/s, 50%", "none",
         "driver 580.65.06, NCCL 2.28.9, 3.5 GB/s, 50%"},
        {"route to 192.0.2.44.", "192.0.2.44", "route to "},
        {"see fd00:1234::77, then go", "1234::77", ", then go"},
        {"::1 and 127.0.0.1 are here", "none", "::1 and 127.0.0.1 are here"},
        {"MAC B8-3F-D2-A1-B2-C4", "B8-3F-D2", "MAC "},
        {"id 9c2b1f0a77de8e11 of 281474976710656 B", "9c2b1f0a77de8e11", "of 281474976710656 B"},
        {"file /srv/x/y.log:12: torn", "/srv", ":12: torn"},
        {"needs /sys/class/net and /dev/shm, /etc/default/grub", "none",
         "needs /sys/class/net and /dev/shm, /etc/default/grub"},
        {"gpu0/gpu1 at 1/2 of x16", "none", "gpu0/gpu1 at 1/2 of x16"},
        {"mounted from mds1@tcp:/fs1 on /scratch/me", "mds1", "mounted from source-"},
        {"s3fs https://bucket.example.org/x on /data", "bucket", "s3fs source-"},
        {"0xDEADBEEF00C0FFEE", "DEADBEEF", "0x"},
        {"libnccl.so.2.28.9 in topo.v1.xml", "none", "libnccl.so.2.28.9 in topo.v1.xml"},
        {"h\xc3\xa9l\xc3\xa8ne-pc.d\xc3\xa9p.univ.fr", "univ.fr", "host-"},
        {"", "none", ""},
    };
    const struct nw_names names = {.key = nw_hash_key_of("any")};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = nw_anonymous_text(&names, rows[i].text, NW_TEXT_ADDRESSES | NW_TEXT_PATHS);

        cr_expect(!holds(text, rows[i].gone), "\"%s\" became \"%s\"", rows[i].text, text);
        cr_expect(holds(text, rows[i].stays), "\"%s\" became \"%s\"", rows[i].text, text);
        free(text);
    }
}

/* What is read back of an anonymous file has the same devices and the same findings. */
Test(topo_anonymise, a_saved_file_reads_back)
{
    const char *path = "anonymous.json";

    for (int i = 0; i < MACHINE_COUNT; i++) {
        struct nw_topo *topo, *back;
        char file[1024];

        if (!machine_path(all_machines[i], file, sizeof file))
            continue;
        cr_assert_eq(nw_topo_read_file(file, &topo), NW_OK);
        char host[sizeof topo->host];

        memcpy(host, topo->host, sizeof host);
        cr_assert_eq(nw_topo_save_anonymous(topo, NULL, path), NW_OK, "%s", nw_last_error()->text);
        cr_expect_str_eq(topo->host, host, "the topology itself keeps its names");
        cr_assert_eq(nw_topo_read_file(path, &back), NW_OK, "%s", nw_last_error()->text);
        char *text = json_text(back);

        cr_expect(host[0] == '\0' || !holds(text, host), "%s", host);
        cr_expect(!holds(text, "shared/data") && !holds(text, "tests/machines"));
        cr_expect_eq(back->node_count, topo->node_count);
        cr_expect_eq(back->link_count, topo->link_count);
        for (size_t n = 0; n < topo->node_count; n++) {
            cr_expect_str_eq(back->nodes[n].name, topo->nodes[n].name, "%s", all_machines[i]);
            cr_expect_str_eq(back->nodes[n].pci, topo->nodes[n].pci);
            cr_expect_str_eq(back->nodes[n].model, topo->nodes[n].model);
        }
        cr_assert_eq(back->findings.count, topo->findings.count);
        for (size_t f = 0; f < topo->findings.count; f++)
            cr_expect_str_eq(back->findings.items[f].code, topo->findings.items[f].code);
        free(text);
        nw_topo_free(topo);
        nw_topo_free(back);
    }
    remove(path);
}

/* Replacements may be longer than what they replace: texts are cut between characters. */
Test(topo_anonymise, cut_texts_stay_text)
{
    for (int pad = 0; pad < 4; pad++) {
        struct nw_topo *topo = planted_machine();
        char text[400] = "";

        for (int i = 0; i < pad; i++)
            strcat(text, "x");
        while (strlen(text) < 180)
            strcat(text, " /\xc3\xa9 \xe7\xbd\x91");
        cr_assert_eq(nw_topo_set_text(topo, 0, NW_FACT_PARALLEL_FS, text, "t"), NW_OK);
        while (strlen(text) < 380)
            strcat(text, "\xe7\xbd\x91");
        cr_assert_eq(nw_topo_set_text(topo, 0, NW_FACT_CONTAINER, text, text), NW_OK);
        cr_assert_eq(nw_topo_anonymise(topo, "seed"), NW_OK);
        free(json_text(topo)); /* asserts that it can be written */
        nw_topo_free(topo);
    }
}
