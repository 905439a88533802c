#include <criterion/criterion.h>
#include <string.h>

#include "bench/case.h"
#include "bench/ports.h"

#define GBIT 1e9

static void add(struct nw_ports_host *host, const char *name, bool rdma, double bits_per_s,
                double sent, double received)
{
    struct nw_traffic_port *port = &host->moved.ports[host->moved.count++];

    *port = (struct nw_traffic_port){.rdma = rdma,
                                     .physical = strncmp(name, "veth", 4) != 0 &&
                                                 strncmp(name, "wg", 2) != 0,
                                     .bits_per_s = bits_per_s,
                                     .sent_bytes = sent,
                                     .received_bytes = received};
    snprintf(port->name, sizeof port->name, "%s", name);
}

Test(bench_ports, the_busiest_host_speaks_in_the_direction_that_moved_more)
{
    struct nw_ports_host hosts[3] = {{.calls = 10}, {.calls = 10}, {.calls = 10}};
    struct nw_ports_use use;

    add(&hosts[0], "eth0", false, 0, 100, 900);
    add(&hosts[1], "eth0", false, 0, 800, 200);
    add(&hosts[2], "eth0", false, 0, 5000, 5000); /* of another group */
    nw_ports_use(hosts, 0, 2, &use);
    cr_expect_eq(use.host, 0);
    cr_expect_eq(use.call_bytes, 90);
    cr_expect_eq(use.busiest_share, 1);
    cr_expect_eq(use.used_count, 1);
    cr_expect_eq(use.bits_per_s, 0);
    nw_ports_use(hosts, 2, 1, &use);
    cr_expect_eq(use.host, 2);
    cr_expect_eq(use.call_bytes, 500);
}

Test(bench_ports, nothing_is_said_where_nothing_was_counted)
{
    struct nw_ports_host hosts[1] = {{.calls = 0}};
    struct nw_ports_use use;

    nw_ports_use(NULL, 0, 1, &use);
    cr_expect_eq(use.host, -1);
    add(&hosts[0], "eth0", false, 0, 100, 100);
    nw_ports_use(hosts, 0, 1, &use);
    cr_expect_eq(use.host, -1);
    hosts[0] = (struct nw_ports_host){.calls = 4};
    add(&hosts[0], "eth0", false, 0, 0, 0);
    nw_ports_use(hosts, 0, 1, &use);
    cr_expect_eq(use.host, -1);
}

Test(bench_ports, rails_in_use_of_those_that_there_are)
{
    struct nw_ports_host host = {.calls = 1};
    struct nw_ports_use use;

    add(&host, "mlx5_0", true, 400 * GBIT, 600, 600);
    add(&host, "mlx5_1", true, 400 * GBIT, 300, 300);
    add(&host, "mlx5_2", true, 400 * GBIT, 5, 5);   /* under a tenth of the busiest */
    add(&host, "mlx5_9", true, 25 * GBIT, 0, 0);    /* for storage or management */
    add(&host, "eth0", false, 10 * GBIT, 800, 800); /* goes through the kernel: less than RDMA */
    nw_ports_use(&host, 0, 1, &use);
    cr_expect(use.rdma);
    cr_expect_eq(use.call_bytes, 905);
    cr_expect_eq(use.used_count, 2);
    cr_expect_eq(use.port_count, 3);
    cr_expect_eq(use.bits_per_s, 1200 * GBIT);
    cr_expect_float_eq(use.busiest_share, 600.0 / 905, 1e-12);
    cr_expect_str_eq(use.used, "mlx5_0, mlx5_1");
}

Test(bench_ports, rdma_that_is_there_and_carries_nothing_is_not_the_wire)
{
    struct nw_ports_host host = {.calls = 1};
    struct nw_ports_use use;

    add(&host, "mlx5_0", true, 400 * GBIT, 10, 10);
    add(&host, "eth0", false, 100 * GBIT, 800, 800);
    add(&host, "veth0", false, 0, 0, 0);
    nw_ports_use(&host, 0, 1, &use);
    cr_expect_not(use.rdma);
    cr_expect_eq(use.port_count, 1);
    cr_expect_eq(use.bits_per_s, 100 * GBIT);
    cr_expect_str_eq(use.used, "eth0");
}

/* In a virtual machine no interface has a line rate: only the device tells a NIC from a veth. */
Test(bench_ports, without_line_rates_idle_veths_and_tunnels_are_no_ports)
{
    struct nw_ports_host host = {.calls = 1};
    struct nw_ports_use use;

    add(&host, "eth0", false, 0, 800, 800);
    add(&host, "veth1a2b", false, 0, 0, 0);
    add(&host, "wg0", false, 0, 3, 3);
    nw_ports_use(&host, 0, 1, &use);
    cr_expect_eq(use.used_count, 1);
    cr_expect_eq(use.port_count, 1);
    add(&host, "eth1", false, 0, 0, 0); /* a NIC that could */
    nw_ports_use(&host, 0, 1, &use);
    cr_expect_eq(use.port_count, 2);
    host.moved.ports[1].sent_bytes = 700; /* a container between namespaces: its veth does carry */
    nw_ports_use(&host, 0, 1, &use);
    cr_expect_eq(use.used_count, 2);
    cr_expect_eq(use.port_count, 3);
    cr_expect_str_eq(use.used, "eth0, veth1a2b");
}

/* 16 NICs with VFs that idle, and containers. */
Test(bench_ports, of_very_many_ports_those_are_told_of_that_carry_or_could)
{
    static struct nw_traffic traffic;
    struct nw_ports_host host = {.calls = 1};
    struct nw_ports_use use;

    for (int i = 0; i < 100; i++)
        traffic.ports[traffic.count++] =
            (struct nw_traffic_port){.rdma = i < 64,
                                     .physical = i < 64,
                                     .bits_per_s = i >= 64  ? 0
                                                   : i < 48 ? 10 * GBIT
                                                            : 400 * GBIT,
                                     .sent_bytes = i >= 56 && i < 64 ? 100 : 0};
    nw_ports_select(&traffic, &host.moved);
    cr_expect_eq(host.moved.count, NW_PORTS_MOST);
    cr_expect_eq(host.moved.left_out, 60);
    nw_ports_use(&host, 0, 1, &use);
    cr_expect_eq(use.used_count, 8);
    cr_expect_eq(use.port_count, 16, "%d", use.port_count);
    cr_expect_eq(use.left_out, 60);
}

/* ---- what is said -----------------------------------------------------------------------------
 */

struct heard { /* the codes, each once and in order, and the text of the last */
    char codes[256], text[512];
};

static nw_rc hear(void *user, const struct nw_finding *finding)
{
    struct heard *heard = user;

    snprintf(heard->codes + strlen(heard->codes), sizeof heard->codes - strlen(heard->codes), "%s ",
             finding->code);
    snprintf(heard->text, sizeof heard->text, "%s", finding->text);
    return NW_OK;
}

/* Of two hosts with so many ranks each; each port of the first moved so many bytes. */
static struct heard told(int ranks, const double *sent, int count)
{
    static const char *const names[] = {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"};
    struct heard heard = {.codes = ""};
    struct nw_ports_host hosts[2] = {{.calls = 1}, {.calls = 1}};
    char host_names[2][64] = {"one", "two"};
    int host_of_rank[16];
    struct nw_comm comm = {.rank_count = 2 * ranks,
                           .host_count = 2,
                           .host_names = host_names,
                           .host_of_rank = host_of_rank};
    const struct nw_bench_events events = {.user = &heard, .on_finding = hear};
    struct nw_bench bench = {.comm = &comm, .events = &events};
    struct nw_ports_use use;

    for (int rank = 0; rank < 2 * ranks; rank++)
        host_of_rank[rank] = rank / ranks;
    for (int i = 0; i < count; i++)
        add(&hosts[0], names[i], true, 400 * GBIT, sent[i], sent[i]);
    nw_ports_use(hosts, 0, 2, &use);
    cr_assert_eq(use.host, 0);
    nw_ports_tell(&bench, "all_reduce", &use, 1 << 20, 1e6);
    cr_assert_eq(bench.rc, NW_OK);
    return heard;
}

Test(bench_ports, ports_without_a_part_and_ports_with_too_large_a_one_are_findings)
{
    static const struct {
        int ranks, ports;
        double sent[4]; /* MB */
        const char *codes, *text;
    } rows[] = {
        {4, 4, {5, 5, 5, 5}, "scaling-wire ", NULL},
        {4,
         4,
         {10, 10, 0, 0},
         "scaling-wire ports-idle ",
         "only 2 of 4 ports carried the bytes between hosts: mlx5_0, mlx5_1"},
        {2, 4, {10, 10, 0, 0}, "scaling-wire ", NULL}, /* one each: two ranks need no more */
        {4,
         4,
         {14, 2, 2, 2},
         "scaling-wire ports-uneven ",
         "one of 4 ports carried 70 % of the bytes between hosts (mlx5_0, mlx5_1, mlx5_2, "
         "mlx5_3)"},
        {4, 4, {7, 5, 4, 4}, "scaling-wire ", NULL},             /* 1.4 times its part */
        {4, 4, {18, 2, 0, 0}, "scaling-wire ports-idle ", NULL}, /* idle goes before uneven */
        {8, 1, {20}, "scaling-wire ", NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double sent[4];

        for (int port = 0; port < 4; port++)
            sent[port] = rows[i].sent[port] * 1e6;
        const struct heard heard = told(rows[i].ranks, sent, rows[i].ports);

        cr_expect_str_eq(heard.codes, rows[i].codes, "row %zu: %s", i, heard.codes);
        if (rows[i].text != NULL)
            cr_expect_str_eq(heard.text, rows[i].text);
    }
}
