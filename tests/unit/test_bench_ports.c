#include <criterion/criterion.h>
#include <string.h>

#include "bench/ports.h"

#define GBIT 1e9

static void add(struct nw_ports_host *host, const char *name, bool rdma, double bits_per_s,
                double sent, double received)
{
    struct nw_traffic_port *port = &host->moved.ports[host->moved.count++];

    *port = (struct nw_traffic_port){
        .rdma = rdma, .bits_per_s = bits_per_s, .sent_bytes = sent, .received_bytes = received};
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
    add(&host, "docker0", false, 0, 0, 0);
    nw_ports_use(&host, 0, 1, &use);
    cr_expect_not(use.rdma);
    cr_expect_eq(use.port_count, 1);
    cr_expect_eq(use.bits_per_s, 100 * GBIT);
    cr_expect_str_eq(use.used, "eth0");
}
