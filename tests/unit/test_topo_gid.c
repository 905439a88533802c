/* Which GID index RoCE hosts share. */
#include "topo/gid.h"

#include "topo/read.h"
#include "topo/read_ib.h"
#include "topo_field.h"

enum { MAX_HOSTS = 3, MAX_GIDS = 8 };

struct row { /* one row of one port's table; type NULL ends */
    int index;
    const char *type, *gid;
};

#define LINK_LOCAL_1                                                                               \
    {0, "v1", "fe80::1"},                                                                          \
    {                                                                                              \
        1, "v2", "fe80::1"                                                                         \
    }
#define IPV4(i1, i2)                                                                               \
    {i1, "v1", "::ffff:192.0.2.1"},                                                                \
    {                                                                                              \
        i2, "v2", "::ffff:192.0.2.1"                                                               \
    }

static const struct row usual[MAX_GIDS] = {LINK_LOCAL_1, IPV4(2, 3)};
static const struct row with_ipv6[MAX_GIDS] = {
    LINK_LOCAL_1, {2, "v1", "2001:db8::1"}, {3, "v2", "2001:db8::1"}, IPV4(4, 5)};
static const struct row two_addresses[MAX_GIDS] = {LINK_LOCAL_1, IPV4(2, 3), IPV4(4, 5)};
static const struct row only_local[MAX_GIDS] = {LINK_LOCAL_1};
static const struct row only_v1[MAX_GIDS] = {{0, "v1", "fe80::1"}, {1, "v1", "::ffff:192.0.2.1"}};
static const struct row only_ipv6[MAX_GIDS] = {LINK_LOCAL_1, {3, "v2", "2001:db8::1"}};
static const struct row not_read[MAX_GIDS] = {{0, NULL, NULL}};

struct nic {
    const struct row *gids;
    double gbit_per_s;
    enum { UP, DOWN, INFINIBAND } how;
};

static void add_nic(struct nw_topo *topo, int number, const struct nic *nic)
{
    char name[16];
    struct nw_ib_port port;
    int node;

    snprintf(name, sizeof name, "mlx5_%d", number);
    nw_ib_port_init(&port, name, 1);
    nw_ib_state(&port, nic->how == DOWN ? "Down" : "Active");
    nw_ib_link_layer(&port, nic->how == INFINIBAND ? "InfiniBand" : "Ethernet");
    port.rate_bits_per_s = nic->gbit_per_s * 1e9;
    cr_assert_eq(nw_ib_port_put(topo, &port, "test", &node), NW_OK);
    for (int i = 0; i < MAX_GIDS && nic->gids[i].type != NULL; i++)
        cr_assert_eq(
            nw_ib_gid(topo, node, nic->gids[i].index, nic->gids[i].gid, nic->gids[i].type, "eth0"),
            NW_OK);
}

static struct nw_topo *host(int number, const char *nccl, const struct nic nics[4])
{
    struct nw_topo *topo;

    cr_assert_eq(nw_topo_start("test", NW_SOURCE_RDMA, &topo), NW_OK);
    snprintf(topo->host, sizeof topo->host, "node%d", number);
    cr_assert_eq(nw_topo_set_text(topo, 0, NW_FACT_NCCL, nccl, "test"), NW_OK);
    for (int i = 0; i < 4 && nics[i].gids != NULL; i++)
        add_nic(topo, i, &nics[i]);
    cr_assert_eq(nw_ib_finish(topo), NW_OK);
    return topo;
}

struct expected {
    nw_gid_verdict verdict;
    int index;
    const char *code, *words; /* the one finding and words in its text; NULL: none */
    nw_severity severity;
};

static void check(const char *name, const struct nic hosts[MAX_HOSTS][4], const char *nccl,
                  const struct expected *expected)
{
    struct nw_topo *topos[MAX_HOSTS];
    struct nw_findings findings = {0};
    struct nw_gid_choice choice;
    size_t count = 0;

    for (; count < MAX_HOSTS && hosts[count][0].gids != NULL; count++)
        topos[count] = host((int)count + 1, nccl, hosts[count]);
    cr_assert_eq(nw_gid_choose((const struct nw_topo *const *)topos, count, &choice, &findings),
                 NW_OK);
    cr_expect_eq(choice.verdict, expected->verdict, "%s: %d", name, (int)choice.verdict);
    cr_expect_eq(choice.index, expected->index, "%s: %d", name, choice.index);
    cr_expect_eq(findings.count, expected->code != NULL, "%s: %zu findings", name, findings.count);
    if (expected->code != NULL && findings.count == 1) {
        cr_expect_str_eq(findings.items[0].code, expected->code, "%s", name);
        cr_expect_eq(findings.items[0].severity, expected->severity, "%s", name);
        cr_expect_not_null(strstr(findings.items[0].text, expected->words), "%s: %s", name,
                           findings.items[0].text);
        cr_expect_not_null(findings.items[0].remedy, "%s", name);
    }
    nw_findings_free(&findings);
    for (size_t i = 0; i < count; i++)
        nw_topo_free(topos[i]);
}

Test(topo_gid, the_index_that_all_sides_share)
{
    static const struct {
        const char *name, *nccl;
        struct nic hosts[MAX_HOSTS][4];
        struct expected expected;
    } rows[] = {
        {"equal hosts",
         "2.18.3",
         {{{usual, 400, UP}, {usual, 400, UP}}, {{usual, 400, UP}, {usual, 400, UP}}},
         {NW_GID_SHARED, 3, "gid-index", "index 3 is RoCE v2 over IPv4 on all 4", NW_FINDING_INFO}},
        {"one machine",
         "2.18.3",
         {{{usual, 100, UP}}},
         {NW_GID_SHARED, 3, "gid-index", "index 3", NW_FINDING_INFO}},
        {"another index on one host",
         "2.18.3",
         {{{usual, 400, UP}}, {{with_ipv6, 400, UP}}},
         {NW_GID_DIFFERS, -1, "gid-index-differs", "node1 3, node2 5", NW_FINDING_WARN}},
        {"the same, NCCL finds it",
         "2.21.5+cuda12.4",
         {{{usual, 400, UP}}, {{with_ipv6, 400, UP}}},
         {NW_GID_DIFFERS, -1, "gid-index-differs", "node1 3, node2 5", NW_FINDING_INFO}},
        {"two addresses hold the other's index as well",
         "2.18.3",
         {{{with_ipv6, 400, UP}}, {{two_addresses, 400, UP}}},
         {NW_GID_SHARED, 5, "gid-index", "index 5", NW_FINDING_INFO}},
        {"NICs of one host differ",
         "2.18.3",
         {{{usual, 400, UP}, {usual, 400, UP}}, {{usual, 400, UP}, {with_ipv6, 400, UP}}},
         {NW_GID_MIXED, -1, "gid-index-mixed", "mlx5_0/1 3, mlx5_1/1 5", NW_FINDING_WARN}},
        {"a slower NIC need not agree",
         "2.18.3",
         {{{usual, 400, UP}, {with_ipv6, 100, UP}}, {{usual, 400, UP}, {with_ipv6, 100, UP}}},
         {NW_GID_SHARED, 3, "gid-index", "on the fastest 2", NW_FINDING_INFO}},
        {"a port that is down is left out",
         "2.18.3",
         {{{usual, 400, UP}, {only_v1, 0, DOWN}}, {{usual, 400, UP}}},
         {NW_GID_SHARED, 3, "gid-index", "all 2", NW_FINDING_INFO}},
        {"IPv6 where one has no IPv4",
         "2.18.3",
         {{{only_ipv6, 400, UP}}, {{with_ipv6, 400, UP}}},
         {NW_GID_SHARED, 3, "gid-index", "over IPv6", NW_FINDING_INFO}},
        {"only link-local is shared",
         "2.18.3",
         {{{only_local, 400, UP}}, {{usual, 400, UP}}},
         {NW_GID_SHARED, 1, "gid-link-local", "link-local", NW_FINDING_WARN}},
        {"RoCE v1 only",
         "2.18.3",
         {{{only_v1, 40, UP}}, {{only_v1, 40, UP}}},
         {NW_GID_OLD, -1, "roce-v1-only", "2 RoCE ports", NW_FINDING_WARN}},
        {"one host has RoCE v1 only",
         "2.18.3",
         {{{usual, 40, UP}}, {{only_v1, 40, UP}}},
         {NW_GID_MIXED, -1, "gid-index-mixed", "mlx5_0/1 none", NW_FINDING_WARN}},
        {"tables not read",
         "2.18.3",
         {{{not_read, 400, UP}}, {{not_read, 400, UP}}},
         {NW_GID_UNKNOWN, -1, "not-checked", "were not read", NW_FINDING_INFO}},
        {"InfiniBand needs none",
         "2.18.3",
         {{{only_local, 400, INFINIBAND}, {only_v1, 100, UP}}, {{only_local, 400, INFINIBAND}}},
         {NW_GID_NOT_NEEDED, -1, NULL, NULL, NW_FINDING_INFO}},
        {"slow InfiniBand beside fast RoCE",
         "2.18.3",
         {{{only_local, 100, INFINIBAND}, {usual, 400, UP}},
          {{only_local, 100, INFINIBAND}, {usual, 400, UP}}},
         {NW_GID_SHARED, 3, "gid-index", "all 2", NW_FINDING_INFO}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(rows[i].name, rows[i].hosts, rows[i].nccl, &rows[i].expected);
}

Test(topo_gid, field_tables_give_index_3)
{
    static const char *const files[] = {"ibstat/show-gids-1port-footer.txt",
                                        "ibstat/show-gids-4ports-roce.txt",
                                        "ibstat/show-gids-pod.txt"};
    const struct nw_topo *topos[3];
    struct nw_findings findings = {0};
    struct nw_gid_choice choice;

    for (size_t i = 0; i < 3; i++) {
        topos[i] = field_topo(files[i]);
        cr_assert_eq(nw_gid_choose(&topos[i], 1, &choice, &findings), NW_OK);
        cr_expect_eq(choice.index, 3, "%s", files[i]);
        cr_expect(choice.ipv4);
        cr_expect_not(choice.nccl_chooses); /* its version is not known */
    }
    cr_assert_eq(nw_gid_choose(topos, 3, &choice, &findings), NW_OK);
    cr_expect_eq(choice.verdict, NW_GID_SHARED);
    cr_expect_eq(choice.index, 3);
    cr_expect_eq(choice.port_count, 4);
    nw_findings_free(&findings);
    for (size_t i = 0; i < 3; i++)
        nw_topo_free((struct nw_topo *)topos[i]);
}

Test(topo_gid, nothing_to_choose)
{
    struct nw_findings findings = {0};
    struct nw_gid_choice choice;
    struct nw_topo *topo;

    cr_assert_eq(nw_topo_start("test", 0, &topo), NW_OK);
    cr_assert_eq(nw_gid_choose((const struct nw_topo *const *)&topo, 1, &choice, &findings), NW_OK);
    cr_expect_eq(choice.verdict, NW_GID_NOT_NEEDED);
    cr_assert_eq(nw_gid_choose(NULL, 0, &choice, &findings), NW_OK);
    cr_expect_eq(choice.verdict, NW_GID_NOT_NEEDED);
    cr_expect_eq(findings.count, 0);
    nw_topo_free(topo);
}
