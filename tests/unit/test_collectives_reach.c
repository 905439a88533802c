#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collectives/reach.h"

Test(reach, interfaces_are_those_that_nccl_would_take)
{
    static const struct {
        const char *filter, *interface;
        bool taken;
    } rows[] = {
        {NULL, "eth0", true},        {NULL, "ens3f0np0", true},     {NULL, "ib0", true},
        {NULL, "bond0", true},       {NULL, "lo", false},           {NULL, "docker0", false},
        {NULL, "veth12ab", false},   {NULL, "virbr0", false},       {NULL, "br-5f2a", false},
        {NULL, "tunl0", false},      {"", "docker0", false},        {"eth", "eth0", true},
        {"eth", "ens3", false},      {"eth,ens", "ens3", true},     {"=eth1", "eth1", true},
        {"=eth1", "eth10", false},   {"eth1", "eth10", true},       {"^docker,lo", "eth0", true},
        {"^docker,lo", "lo", false}, {"^docker", "docker0", false}, {"^=eth1", "eth10", true},
        {"^=eth1", "eth1", false},   {"docker0", "docker0", true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect(nw_reach_takes(rows[i].filter, rows[i].interface) == rows[i].taken, "%s of %s",
                  rows[i].interface, rows[i].filter != NULL ? rows[i].filter : "(not set)");
}

/* Steps all of them until none waits any more. */
static void settle(struct nw_reach **all, size_t count)
{
    const uint64_t end = nw_now_ns() + 5000000000u;

    for (bool waiting = true; waiting && nw_now_ns() < end;) {
        waiting = false;
        for (size_t i = 0; i < count; i++)
            waiting |= nw_reach_step(all[i], 1);
    }
}

static struct nw_reach_end local_end(const struct nw_reach *reach, const char *ip)
{
    struct nw_reach_end end = *nw_reach_end(reach);

    end.address_count = 1;
    end.addresses[0] = (struct nw_reach_address){.prefix = 8, .mtu = 65536, .chosen = true};
    strcpy(end.addresses[0].interface, "lo");
    strcpy(end.addresses[0].ip, ip);
    return end;
}

/* Two hosts of one machine over loopback; 127.0.0.2 is where nobody but the wrong one listens. */
Test(reach, tells_who_answers_and_who_does_not)
{
    struct nw_reach *reach[2];
    struct nw_reach_end ends[3];
    const struct nw_reach_try *tries;
    size_t count;

    cr_assert_eq(nw_reach_open("lo", "node1", &reach[0]), NW_OK);
    cr_assert_eq(nw_reach_open("lo", "node2", &reach[1]), NW_OK);
    ends[0] = local_end(reach[0], "127.0.0.1");
    ends[1] = local_end(reach[1], "127.0.0.1");
    ends[2] = ends[1]; /* a third host whose address leads to the second */
    strcpy(ends[2].host, "node3");
    for (size_t i = 0; i < 2; i++)
        cr_assert_eq(nw_reach_start(reach[i], ends, 3, i, 42), NW_OK);
    settle(reach, 2);
    tries = nw_reach_tries(reach[0], &count);
    cr_assert_eq(count, 2);
    cr_expect_eq(tries[0].state, NW_REACH_OK);
    cr_expect_str_eq(tries[0].from, "127.0.0.1");
    cr_expect(tries[0].took_ns > 0);
    cr_expect_eq(tries[1].state, NW_REACH_OTHER_HOST);
    nw_reach_close(reach[1]);

    /* the port is closed now */
    struct nw_reach *late;

    cr_assert_eq(nw_reach_open("lo", "node1", &late), NW_OK);
    cr_assert_eq(nw_reach_start(late, ends, 2, 0, 42), NW_OK);
    settle(&late, 1);
    tries = nw_reach_tries(late, &count);
    cr_assert_eq(count, 1);
    cr_expect_eq(tries[0].state, NW_REACH_REFUSED);
    nw_reach_close(late);
    nw_reach_close(reach[0]);
}

static struct nw_reach_end end_of(const char *host, const char *interface, const char *ip, int mtu)
{
    struct nw_reach_end end = {.port = 4000, .address_count = 1};

    strcpy(end.host, host);
    end.addresses[0] = (struct nw_reach_address){.prefix = 24, .mtu = mtu, .chosen = true};
    strcpy(end.addresses[0].interface, interface);
    strcpy(end.addresses[0].ip, ip);
    return end;
}

static const struct nw_finding *find(const struct nw_findings *findings, const char *code)
{
    for (size_t i = 0; i < findings->count; i++)
        if (strcmp(findings->items[i].code, code) == 0)
            return &findings->items[i];
    return NULL;
}

static struct nw_findings judge(const struct nw_reach_end ends[2], struct nw_reach_try forth,
                                struct nw_reach_try back)
{
    struct nw_reach_try *tries[] = {&forth, &back};
    const size_t counts[] = {1, 1};
    const struct nw_reach_report report = {
        .ends = ends, .count = 2, .tries = tries, .try_counts = counts};
    struct nw_findings findings = {0};

    cr_assert_eq(nw_reach_judge(&report, &findings), NW_OK);
    return findings;
}

Test(reach, a_healthy_pair_has_no_finding_and_a_blocked_one_is_named)
{
    const struct nw_reach_end ends[] = {end_of("node1", "eth0", "10.0.0.1", 9000),
                                        end_of("node2", "eth0", "10.0.0.2", 9000)};
    const struct nw_reach_try forth = {.to = 1, .from = "10.0.0.1", .took_ns = 1e5},
                              back = {.to = 0, .from = "10.0.0.2", .took_ns = 1e5};
    struct nw_reach_try blocked = forth;
    struct nw_findings findings = judge(ends, forth, back);
    const struct nw_finding *finding;

    cr_expect_eq(findings.count, 0);
    nw_findings_free(&findings);

    blocked.state = NW_REACH_TIMEOUT;
    findings = judge(ends, blocked, back);
    finding = find(&findings, "reach-blocked");
    cr_assert_not_null(finding);
    cr_expect_eq(findings.count, 1);
    cr_expect_eq(finding->severity, NW_FINDING_FAIL);
    cr_expect_str_eq(finding->where, "node1 -> node2 eth0");
    cr_expect_not_null(strstr(finding->text, "node1 10.0.0.1 -> node2 10.0.0.2 port 4000: "
                                             "connection timed out"));
    cr_expect_not_null(strstr(finding->text, "the other way works"));
    nw_findings_free(&findings);
}

Test(reach, mtu_subnets_and_interfaces_are_compared)
{
    const struct nw_reach_try forth = {.to = 1, .took_ns = 1e5}, back = {.to = 0, .took_ns = 1e5};
    struct nw_reach_end ends[] = {end_of("node1", "eth0", "10.0.0.1", 9000),
                                  end_of("node2", "eth0", "10.0.0.2", 1500)};
    struct nw_findings findings = judge(ends, forth, back);

    cr_expect_not_null(find(&findings, "reach-mtu"));
    cr_expect_eq(findings.count, 1);
    nw_findings_free(&findings);

    ends[1] = end_of("node2", "eth0", "10.0.1.2", 9000);
    findings = judge(ends, forth, back);
    cr_expect_not_null(find(&findings, "reach-subnets"));
    cr_expect_eq(findings.count, 1);
    nw_findings_free(&findings);

    ends[1] = end_of("node2", "eth0", "10.0.0.2", 9000);
    ends[1].addresses[1] = ends[1].addresses[0];
    strcpy(ends[1].addresses[1].interface, "eth1");
    strcpy(ends[1].addresses[1].ip, "10.0.0.3");
    ends[1].addresses[1].bits_per_s = 1e11;
    ends[1].address_count = 2;
    findings = judge(ends, forth, back);
    cr_assert_not_null(find(&findings, "reach-same-subnet"));
    cr_expect_float_eq(find(&findings, "reach-same-subnet")->lost_bytes_per_s, 12.5e9, 1);
    cr_expect_eq(findings.count, 1);
    nw_findings_free(&findings);

    ends[1].address_count = 0;
    strcpy(ends[1].filter, "=ib7");
    strcpy(ends[0].filter, "=ib7");
    findings = judge(ends, forth, (struct nw_reach_try){.to = 0, .took_ns = 1});
    cr_expect_not_null(find(&findings, "reach-no-interface"));
    nw_findings_free(&findings);
}

Test(reach, many_hosts_try_a_connected_part)
{
    for (size_t count = 2; count <= 64; count += 31)
        for (size_t from = 0; from < count; from++)
            for (size_t to = 0; to < count; to++)
                cr_expect(nw_reach_is_partner(from, to, count) == (from != to));
    for (size_t from = 0; from < 200; from++) {
        int partners = 0;

        cr_expect(nw_reach_is_partner(from, (from + 1) % 200, 200));
        cr_expect(nw_reach_is_partner((from + 1) % 200, from, 200));
        for (size_t to = 0; to < 200; to++)
            partners += nw_reach_is_partner(from, to, 200);
        cr_expect(partners >= 3 && partners <= 64, "%d partners", partners);
    }
}

/* 40 hosts, one network of two is blocked everywhere. */
Test(reach, a_fault_of_many_pairs_is_told_some_times_and_counted)
{
    enum { HOSTS = 40 };
    static struct nw_reach_end ends[HOSTS];
    static struct nw_reach_try tries[HOSTS][2 * HOSTS];
    struct nw_reach_try *lists[HOSTS];
    size_t counts[HOSTS] = {0};
    struct nw_findings findings = {0};

    for (int host = 0; host < HOSTS; host++) {
        char name[16], ip[16];

        snprintf(name, sizeof name, "node%d", host);
        snprintf(ip, sizeof ip, "10.0.0.%d", host + 1);
        ends[host] = end_of(name, "eth0", ip, 9000);
        ends[host].addresses[1] = ends[host].addresses[0];
        strcpy(ends[host].addresses[1].interface, "eth1");
        snprintf(ends[host].addresses[1].ip, 48, "10.0.1.%d", host + 1);
        ends[host].address_count = 2;
        lists[host] = tries[host];
        for (int to = 0; to < HOSTS; to++)
            for (int address = 0; address < 2 && to != host; address++)
                tries[host][counts[host]++] =
                    (struct nw_reach_try){.to = to,
                                          .address = address,
                                          .state = address == 1 ? NW_REACH_TIMEOUT : NW_REACH_OK,
                                          .took_ns = NAN};
    }
    cr_assert_eq(nw_reach_judge(
                     &(struct nw_reach_report){
                         .ends = ends, .count = HOSTS, .tries = lists, .try_counts = counts},
                     &findings),
                 NW_OK);
    cr_expect_eq(findings.count, 5);
    cr_expect_str_eq(findings.items[0].where, "node0 -> node1 eth1");
    cr_expect_not_null(strstr(findings.items[4].text, "1556 more connections over eth1"), "%s",
                       findings.items[4].text);
    nw_findings_free(&findings);
}

Test(reach, goes_through_json_unchanged)
{
    struct nw_reach_end end = end_of("node2", "ib0", "fd00::2", 2044), read;
    struct nw_reach_try tries[] = {
        {.to = 0, .state = NW_REACH_REFUSED, .error = 111, .took_ns = NAN},
        {.to = 0, .from = "10.0.0.1", .took_ns = 12345}};
    struct nw_reach_try *back;
    json_t *json, *array;
    size_t count;

    end.addresses[0].bits_per_s = 4e11;
    cr_assert_eq(nw_reach_end_to_json(&end, &json), NW_OK);
    cr_assert_eq(nw_reach_end_from_json(json, "test", &read), NW_OK);
    cr_expect_eq(memcmp(&read, &end, sizeof end), 0);
    cr_assert_eq(nw_reach_tries_to_json(tries, 2, &array), NW_OK);
    cr_assert_eq(nw_reach_tries_from_json(array, "test", &read, 1, &back, &count), NW_OK);
    cr_assert_eq(count, 2);
    cr_expect_eq(back[0].state, NW_REACH_REFUSED);
    cr_expect_eq(back[0].error, 111);
    cr_expect(isnan(back[0].took_ns));
    cr_expect_str_eq(back[1].from, "10.0.0.1");
    cr_expect_eq(back[1].took_ns, 12345);
    free(back);
    json_object_set_new(json_array_get(array, 0), "to", json_integer(7));
    cr_expect_eq(nw_reach_tries_from_json(array, "test", &read, 1, &back, &count), NW_EUSAGE);
    json_object_set_new(json, "port", json_integer(70000));
    cr_expect_eq(nw_reach_end_from_json(json, "test", &read), NW_EUSAGE);
    json_decref(json);
    json_decref(array);
}
