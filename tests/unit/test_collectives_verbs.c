/* RDMA verbs without a device: the rule of GIDs, cards, words; runs over a NIC in memory that fails
 * when it is told to. tests/rdma does it all with a kernel's. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collectives/verbs.h"
#include "collectives/verbs_card.h"
#include "collectives/verbs_gid.h"

#define V4   NW_VERBS_GID_V2_IPV4
#define V6   NW_VERBS_GID_V2_IPV6
#define LOC  NW_VERBS_GID_V2_LINK_LOCAL
#define OLD  NW_VERBS_GID_V1
#define NONE -2

/* --- GIDs --- */

struct row { /* of a GID table; text NULL ends */
    int index;
    nw_verbs_gid_kind kind;
    const char *text;
};

enum { ROWS = 6 };
static const struct row usual_1[ROWS] = {{0, OLD, "fe80::1"},
                                         {1, LOC, "fe80::1"},
                                         {2, OLD, "::ffff:10.1.0.1"},
                                         {3, V4, "::ffff:10.1.0.1"}};
static const struct row usual_2[ROWS] = {{0, OLD, "fe80::2"},
                                         {1, LOC, "fe80::2"},
                                         {2, OLD, "::ffff:10.1.0.2"},
                                         {3, V4, "::ffff:10.1.0.2"}};
static const struct row moved_2[ROWS] = {
    {1, LOC, "fe80::2"}, {4, V6, "2001:db8::2"}, {7, V4, "::ffff:10.1.0.2"}};
static const struct row two_nets_1[ROWS] = {{2, V4, "::ffff:172.17.0.1"},
                                            {5, V4, "::ffff:10.1.0.1"}};
static const struct row two_nets_2[ROWS] = {{2, V4, "::ffff:10.1.0.2"},
                                            {5, V4, "::ffff:172.17.0.9"}};
static const struct row only_v6_1[ROWS] = {{1, LOC, "fe80::1"}, {3, V6, "2001:db8::1"}};
static const struct row only_local[ROWS] = {{0, OLD, "fe80::7"}, {1, LOC, "fe80::7"}};
static const struct row only_v1[ROWS] = {{0, OLD, "fe80::8"}};
static const struct row infiniband_1[ROWS] = {{0, NW_VERBS_GID_INFINIBAND, "fe80::a"}};
static const struct row infiniband_2[ROWS] = {{0, NW_VERBS_GID_INFINIBAND, "fe80::b"}};
static const struct row nothing[ROWS] = {{0, OLD, NULL}};

static struct nw_verbs_gids table(const struct row *rows, int wished, const char *name,
                                  struct nw_verbs_gid gids[ROWS])
{
    struct nw_verbs_gids side = {gids, 0, wished, name};

    for (; side.count < ROWS && rows[side.count].text != NULL; side.count++) {
        gids[side.count] =
            (struct nw_verbs_gid){.index = rows[side.count].index, .kind = rows[side.count].kind};
        cr_assert(nw_verbs_gid_parse(rows[side.count].text, gids[side.count].raw), "%s",
                  rows[side.count].text);
    }
    return side;
}

Test(verbs_gid, both_sides_choose_the_same_pair_by_the_rule)
{
    const struct {
        const struct row *here, *there;
        int wished_here, wished_there;
        int index_here, index_there; /* NONE: refused */
        const char *says;
    } rows[] = {
        {usual_1, usual_2, -1, -1, 3, 3, NULL},
        {usual_1, moved_2, -1, -1, 3, 7, NULL},
        {two_nets_1, two_nets_2, -1, -1, 5, 2, NULL}, /* the longer common prefix: 10.1.0.x */
        {only_v6_1, moved_2, -1, -1, 3, 4, NULL},
        {usual_1, only_local, -1, -1, 1, 1, NULL},
        {usual_1, only_v1, -1, -1, 0, 0, NULL},
        {infiniband_1, infiniband_2, -1, -1, 0, 0, NULL},
        {usual_1, usual_2, 1, -1, 1, 1, NULL}, /* a wish is kept, and the other side follows */
        {usual_1, usual_2, 0, 0, 0, 0, NULL},
        {two_nets_1, two_nets_2, 2, -1, 2, 5, NULL},
        {usual_1, usual_2, 3, 1, NONE, NONE, "RoCE of different kinds cannot talk"},
        {usual_1, usual_2, 9, -1, NONE, NONE,
         "no GID of index 9; its table: 0 = fe80::1 (RoCE v1)"},
        {usual_1, infiniband_1, -1, -1, NONE, NONE, "no GID of one kind"},
        {only_v1, only_v6_1, -1, -1, NONE, NONE, "give both interfaces an IPv4 address"},
        {usual_1, nothing, -1, -1, NONE, NONE, "has no GID, so nothing reaches it"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_verbs_gid a[ROWS], b[ROWS];
        const struct nw_verbs_gids here = table(rows[i].here, rows[i].wished_here, "a", a),
                                   there = table(rows[i].there, rows[i].wished_there, "b", b);
        size_t mine = 99, theirs = 99, mirrored = 99, mirrored_theirs = 99;
        const nw_rc rc = nw_verbs_gid_pair(&here, &there, &mine, &theirs);

        if (rows[i].index_here == NONE) {
            cr_assert_neq(rc, NW_OK, "row %zu", i);
            cr_expect_not_null(strstr(nw_last_error()->text, rows[i].says), "row %zu: %s", i,
                               nw_last_error()->text);
            cr_expect_neq(nw_verbs_gid_pair(&there, &here, &mine, &theirs), NW_OK);
            continue;
        }
        cr_assert_eq(rc, NW_OK, "row %zu: %s", i, nw_last_error()->text);
        cr_expect_eq(a[mine].index, rows[i].index_here, "row %zu: %d", i, a[mine].index);
        cr_expect_eq(b[theirs].index, rows[i].index_there, "row %zu: %d", i, b[theirs].index);
        cr_assert_eq(nw_verbs_gid_pair(&there, &here, &mirrored_theirs, &mirrored), NW_OK);
        cr_expect(mirrored == mine && mirrored_theirs == theirs, "row %zu: not symmetric", i);
    }
}

/* Tables of any kind: whoever looks, the pair is the same one. */
Test(verbs_gid, the_rule_is_symmetric_for_any_tables)
{
    uint64_t seed = 20261130;

    for (int trial = 0; trial < 2000; trial++) {
        struct nw_verbs_gid sides[2][ROWS];
        size_t counts[2], a = 0, b = 0, c = 0, d = 0;

        for (int s = 0; s < 2; s++) {
            counts[s] = 1 + (seed >> 33) % (ROWS - 1);
            for (size_t i = 0; i < counts[s]; i++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                sides[s][i] = (struct nw_verbs_gid){
                    .index = (int)i, .kind = (nw_verbs_gid_kind)(1 + (seed >> 40) % 4)};
                sides[s][i].raw[15] = (uint8_t)(seed >> 60);
                sides[s][i].raw[0] = (uint8_t)(seed >> 62);
            }
        }
        const struct nw_verbs_gids here = {sides[0], counts[0], -1, "a"},
                                   there = {sides[1], counts[1], -1, "b"};
        const nw_rc rc = nw_verbs_gid_pair(&here, &there, &a, &b);

        cr_assert_eq(rc, nw_verbs_gid_pair(&there, &here, &d, &c));
        if (rc == NW_OK)
            cr_assert(memcmp(&sides[0][a].raw, &sides[0][c].raw, 16) == 0 &&
                          memcmp(&sides[1][b].raw, &sides[1][d].raw, 16) == 0 &&
                          sides[0][a].kind == sides[0][c].kind,
                      "trial %d", trial);
    }
}

Test(verbs_gid, is_read_and_written_as_people_know_it)
{
    const struct {
        const char *sysfs; /* NULL text: not a GID in use */
        bool v2;
        nw_verbs_gid_kind kind;
        const char *text;
    } rows[] = {
        {"0000:0000:0000:0000:0000:ffff:0a01:0002", true, V4, "10.1.0.2"},
        {"0000:0000:0000:0000:0000:ffff:0a01:0002", false, OLD, "10.1.0.2"},
        {"fe80:0000:0000:0000:0a00:27ff:fe00:0001", true, LOC, "fe80::a00:27ff:fe00:1"},
        {"2001:0db8:0000:0000:0000:0000:0000:0001", true, V6, "2001:db8::1"},
        {"0000:0000:0000:0000:0000:0000:0000:0000", true, V4, NULL},
        {"fe80:0000:0000:0000:0000:0000:0000:0000", true, V4, NULL},
        {"", true, V4, NULL},
        {"10.1.0.2", true, V4, NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_verbs_gid gid = {.index = 0};
        char text[NW_VERBS_GID_TEXT];

        cr_assert_eq(nw_verbs_gid_parse(rows[i].sysfs, gid.raw), rows[i].text != NULL, "row %zu",
                     i);
        if (rows[i].text == NULL)
            continue;
        cr_expect_eq(nw_verbs_gid_kind_of(gid.raw, rows[i].v2), rows[i].kind, "row %zu", i);
        cr_expect_str_eq(nw_verbs_gid_text(&gid, text), rows[i].text);
    }
}

/* --- cards --- */

static struct nw_verbs_card a_card(void)
{
    struct nw_verbs_card card;

    memset(&card, 0, sizeof card);
    snprintf(card.host, sizeof card.host, "node1");
    snprintf(card.device, sizeof card.device, "mlx5_0");
    snprintf(card.memory, sizeof card.memory, "gpu (dma-buf)");
    card.port = 2;
    card.infiniband = true;
    card.lid = 0xfffe;
    card.cm_port = 40000;
    card.mtu_bytes = 4096;
    card.wished_gid = -1;
    card.rkey = 0xdeadbeef;
    card.address = 0x7f0123456789abcdu;
    card.bytes = 1ull << 40;
    card.depth = 128;
    card.read_depth = 16;
    card.token = 0x80000001;
    card.qp_count = NW_VERBS_CARD_QPS;
    for (uint32_t i = 0; i < NW_VERBS_CARD_QPS; i++) {
        card.qps[i].number = 0xffff00 + i;
        card.qps[i].sequence = 0xabc000 + i;
    }
    card.gid_count = NW_VERBS_CARD_GIDS;
    for (int i = 0; i < NW_VERBS_CARD_GIDS; i++) {
        card.gids[i].index = 255 - i;
        card.gids[i].kind = (nw_verbs_gid_kind)(i % NW_VERBS_GID_KIND_COUNT);
        memset(card.gids[i].raw, i + 1, 16);
    }
    return card;
}

Test(verbs_card, says_the_same_on_the_other_side)
{
    const struct nw_verbs_card card = a_card();
    struct nw_verbs_card back, again;
    uint8_t bytes[NW_VERBS_CARD_BYTES], more[NW_VERBS_CARD_BYTES];

    nw_verbs_card_write(&card, bytes);
    cr_assert_eq(nw_verbs_card_read(bytes, &back), NW_OK, "%s", nw_last_error()->text);
    nw_verbs_card_write(&back, more);
    cr_expect_eq(memcmp(bytes, more, sizeof bytes), 0);
    cr_expect_eq(back.wished_gid, -1);
    cr_expect_eq(back.address, card.address);
    cr_expect_eq(back.qps[NW_VERBS_CARD_QPS - 1].sequence, 0xabc000u + NW_VERBS_CARD_QPS - 1);
    cr_expect_eq(back.gids[NW_VERBS_CARD_GIDS - 1].index, 255 - NW_VERBS_CARD_GIDS + 1);
    cr_expect_str_eq(back.memory, "gpu (dma-buf)");
    /* Little end first, whatever the machine: the form of the first bytes is fixed. */
    cr_expect_eq(memcmp(bytes, "2bvwn\0\0\0node1", 13), 0);
    cr_assert_eq(nw_verbs_card_read(more, &again), NW_OK);
}

Test(verbs_card, refuses_what_is_none)
{
    struct nw_verbs_card card = a_card(), out;
    uint8_t bytes[NW_VERBS_CARD_BYTES] = {0};
    uint64_t seed = 7;

    cr_expect_eq(nw_verbs_card_read(bytes, &out), NW_EPEER);
    cr_expect_not_null(strstr(nw_last_error()->text, "same version"));
    card.qp_count = NW_VERBS_CARD_QPS + 1;
    nw_verbs_card_write(&card, bytes);
    cr_expect_eq(nw_verbs_card_read(bytes, &out), NW_EPEER);
    card = a_card();
    card.gid_count = NW_VERBS_CARD_GIDS + 1;
    nw_verbs_card_write(&card, bytes);
    cr_expect_eq(nw_verbs_card_read(bytes, &out), NW_EPEER);
    card = a_card();
    card.gids[3].kind = NW_VERBS_GID_KIND_COUNT;
    nw_verbs_card_write(&card, bytes);
    cr_expect_eq(nw_verbs_card_read(bytes, &out), NW_EPEER);
    /* Whatever is in it: what is taken is in range, and its texts end. */
    for (int trial = 0; trial < 3000; trial++) {
        nw_verbs_card_write(&card, bytes);
        for (size_t i = 8; i < sizeof bytes; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            if (seed >> 61 == 0)
                bytes[i] = (uint8_t)(seed >> 40);
        }
        if (nw_verbs_card_read(bytes, &out) != NW_OK)
            continue;
        cr_assert(out.qp_count >= 1 && out.qp_count <= NW_VERBS_CARD_QPS &&
                  out.gid_count <= NW_VERBS_CARD_GIDS && strlen(out.host) < sizeof out.host);
    }
}

/* --- choosing a port --- */

Test(verbs_port, is_found_by_name_or_taken_by_rule)
{
    struct nw_verbs_port ports[] = {
        {.device = "mlx5_0", .number = 1, .state = "down"},
        {.device = "mlx5_1", .number = 1, .state = "active", .active = true, .roce = true},
        {.device = "mlx5_1", .number = 2, .state = "active", .active = true, .roce = true},
    };
    const struct nw_verbs verbs = {.ports = ports, .port_count = 3};
    const struct nw_verbs none = {.why = "no RDMA: nothing here"};
    const struct {
        const char *device;
        int number;
        int found; /* NONE: refused */
        const char *says;
    } rows[] = {
        {NULL, 0, 1, NULL},
        {"mlx5_0", 0, 0, NULL},
        {"mlx5_1", 2, 2, NULL},
        {"mlx5_1", 0, 1, NULL},
        {"mlx5_7", 0, NONE, "no RDMA port mlx5_7/1; there are: mlx5_0/1 (down)"},
        {"mlx5_0", 2, NONE, "mlx5_0/2"},
    };
    const struct nw_verbs_port *port;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const nw_rc rc = nw_verbs_find_port(&verbs, rows[i].device, rows[i].number, &port);

        cr_assert_eq(rc, rows[i].found == NONE ? NW_EUSAGE : NW_OK, "row %zu", i);
        if (rc == NW_OK)
            cr_expect_eq(port - ports, rows[i].found, "row %zu", i);
        else
            cr_expect_not_null(strstr(nw_last_error()->text, rows[i].says), "%s",
                               nw_last_error()->text);
    }
    cr_expect_eq(nw_verbs_find_port(&none, NULL, 0, &port), NW_ENODEV);
    cr_expect_str_eq(nw_last_error()->text, "no RDMA: nothing here");
}

Test(verbs_port, where_there_is_no_rdma_is_an_ordinary_answer)
{
    struct nw_verbs *verbs;

    cr_assert_eq(nw_verbs_open(&verbs), NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(verbs->port_count == 0, verbs->why[0] != '\0');
    if (verbs->port_count == 0)
        cr_expect_not_null(strstr(verbs->why, "no RDMA"));
    nw_verbs_close(verbs);
    nw_verbs_close(NULL);
}

/* --- words --- */

Test(verbs_words, every_status_says_where_and_what_to_do)
{
    for (int status = 0; status < 24; status++) {
        const struct nw_verbs_word *word = nw_verbs_status_word(status);

        cr_expect_str_neq(word->key, "unknown", "%d", status);
        cr_expect(strcmp(word->where, "here") == 0 || strcmp(word->where, "there") == 0 ||
                      strcmp(word->where, "between") == 0,
                  "%d", status);
        cr_expect_neq(word->text[0], '\0');
        cr_expect(status == 0 || word->cause[0] != '\0', "%d", status);
        cr_expect(status == 0 || status == 5 || word->remedy[0] != '\0', "%d", status);
        for (int other = 0; other < status; other++)
            cr_expect_str_neq(word->key, nw_verbs_status_word(other)->key);
    }
    for (int event = 0; event < 20; event++) {
        cr_expect_str_neq(nw_verbs_event_word(event)->key, "unknown", "%d", event);
        for (int other = 0; other < event; other++)
            cr_expect_str_neq(nw_verbs_event_word(event)->key, nw_verbs_event_word(other)->key);
    }
    cr_expect_str_eq(nw_verbs_status_word(24)->key, "unknown");
    cr_expect_str_eq(nw_verbs_status_word(-1)->key, "unknown");
    cr_expect_str_eq(nw_verbs_event_word(99)->key, "unknown");
}

#ifdef NW_HAVE_VERBS
#include "verbs_double.h"

Test(verbs_words, the_numbers_are_those_of_the_header)
{
    const struct {
        int status;
        const char *key;
    } statuses[] = {
        {IBV_WC_SUCCESS, "success"},
        {IBV_WC_LOC_LEN_ERR, "local-length"},
        {IBV_WC_LOC_QP_OP_ERR, "local-qp"},
        {IBV_WC_LOC_EEC_OP_ERR, "local-eec"},
        {IBV_WC_LOC_PROT_ERR, "local-protection"},
        {IBV_WC_WR_FLUSH_ERR, "flushed"},
        {IBV_WC_MW_BIND_ERR, "memory-window"},
        {IBV_WC_BAD_RESP_ERR, "bad-response"},
        {IBV_WC_LOC_ACCESS_ERR, "local-access"},
        {IBV_WC_REM_INV_REQ_ERR, "remote-invalid"},
        {IBV_WC_REM_ACCESS_ERR, "remote-access"},
        {IBV_WC_REM_OP_ERR, "remote-operation"},
        {IBV_WC_RETRY_EXC_ERR, "retry-exceeded"},
        {IBV_WC_RNR_RETRY_EXC_ERR, "rnr-exceeded"},
        {IBV_WC_LOC_RDD_VIOL_ERR, "local-rdd"},
        {IBV_WC_REM_INV_RD_REQ_ERR, "remote-rd"},
        {IBV_WC_REM_ABORT_ERR, "aborted"},
        {IBV_WC_INV_EECN_ERR, "eec-number"},
        {IBV_WC_INV_EEC_STATE_ERR, "eec-state"},
        {IBV_WC_FATAL_ERR, "fatal"},
        {IBV_WC_RESP_TIMEOUT_ERR, "response-timeout"},
        {IBV_WC_GENERAL_ERR, "general"},
        {IBV_WC_TM_ERR, "tag-matching"},
        {IBV_WC_TM_RNDV_INCOMPLETE, "tag-rendezvous"},
    };
    const struct {
        int event;
        const char *key;
    } events[] = {
        {IBV_EVENT_CQ_ERR, "cq-error"},           {IBV_EVENT_QP_FATAL, "qp-fatal"},
        {IBV_EVENT_QP_REQ_ERR, "qp-request"},     {IBV_EVENT_QP_ACCESS_ERR, "qp-access"},
        {IBV_EVENT_DEVICE_FATAL, "device-fatal"}, {IBV_EVENT_PORT_ACTIVE, "port-active"},
        {IBV_EVENT_PORT_ERR, "port-error"},       {IBV_EVENT_LID_CHANGE, "lid-change"},
        {IBV_EVENT_PKEY_CHANGE, "pkey-change"},   {IBV_EVENT_GID_CHANGE, "gid-change"},
        {IBV_EVENT_WQ_FATAL, "wq-fatal"},
    };

    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        cr_expect_str_eq(nw_verbs_status_word(statuses[i].status)->key, statuses[i].key);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        cr_expect_str_eq(nw_verbs_event_word(events[i].event)->key, events[i].key);
}

/* --- a NIC in memory --- */

enum { BUFFER = 1 << 20, HALF = BUFFER / 2 };

struct pair {
    char root[64];
    struct nw_verbs *verbs;
    struct nw_verbs_end *ends[2];
    uint8_t *buffers[2];
};

static nw_rc pair_open(struct pair *pair, const struct nw_verbs_wish *wish)
{
    nw_rc rc = NW_OK;
    uint8_t cards[2][NW_VERBS_CARD_BYTES];

    *pair = (struct pair){.root = "/tmp/nodeworth-verbs-XXXXXX"};
    cr_assert_not_null(mkdtemp(pair->root));
    tree_add(pair->root, double_sysfs, sizeof double_sysfs / sizeof *double_sysfs);
    cr_assert_eq(nw_verbs_open_api(&double_api, pair->root, &pair->verbs), NW_OK);
    for (int i = 0; i < 2 && rc == NW_OK; i++) {
        pair->buffers[i] = calloc(1, BUFFER);
        rc = nw_verbs_end_open(pair->verbs, &pair->verbs->ports[0], wish, pair->buffers[i], BUFFER,
                               NULL, &pair->ends[i]);
    }
    for (int i = 0; i < 2 && rc == NW_OK; i++)
        nw_verbs_end_card(pair->ends[i], cards[i]);
    for (int i = 0; i < 2 && rc == NW_OK; i++)
        rc = nw_verbs_connect(pair->ends[i], cards[1 - i]);
    return rc;
}

static void pair_close_one(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        nw_verbs_end_close(pair->ends[i]);
        free(pair->buffers[i]);
    }
    nw_verbs_close(pair->verbs);
    tree_remove(pair->root);
}

static void pair_close(struct pair *pair)
{
    pair_close_one(pair);
    cr_expect_eq(nic.open_handles, 0, "%d things of the library were not closed", nic.open_handles);
}

static nw_rc pair_run(struct pair *pair, struct nw_verbs_run run, struct nw_verbs_result results[2])
{
    const bool both = run.roles == (NW_VERBS_GIVES | NW_VERBS_TAKES);
    struct nw_verbs_run runs[2] = {run, run};

    runs[0].roles = both ? run.roles : NW_VERBS_GIVES;
    runs[1].roles = both ? run.roles : NW_VERBS_TAKES;
    for (int i = 0; i < 2; i++)
        NW_TRY(nw_verbs_prepare(pair->ends[i], &runs[i]));
    return nw_verbs_run_all(pair->ends, runs, 2, results);
}

Test(verbs_run, a_region_becomes_a_copy_of_the_others)
{
    const struct {
        nw_verbs_op op;
        unsigned roles;
        uint64_t bytes, count;
        int qps, depth, wished_qps, wished_depth;
        uint32_t inline_bytes;
    } rows[] = {
        {NW_VERBS_WRITE, 0, 65536, 100, 0, 0, 0, 0, 0},
        {NW_VERBS_WRITE, 0, 8, 20000, 0, 0, 4, 0, 64},
        {NW_VERBS_WRITE, 0, 100, 5000, 3, 5, 4, 0, 0},
        {NW_VERBS_READ, 0, 4096, 1000, 0, 1, 1, 1, 0},
        {NW_VERBS_READ, 0, 65, 8191, 0, 0, 7, 2, 0},
        {NW_VERBS_SEND, 0, 65536, 100, 0, 0, 0, 0, 0},
        {NW_VERBS_SEND, 0, 64, 30000, 0, 0, 4, 16, 0},
        {NW_VERBS_SEND, NW_VERBS_GIVES | NW_VERBS_TAKES, 1000, 3000, 0, 0, 2, 0, 256},
        {NW_VERBS_WRITE, NW_VERBS_GIVES | NW_VERBS_TAKES, HALF, 7, 0, 0, 1, 0, 0},
        {NW_VERBS_WRITE, 0, 1, 1, 0, 0, 5, 0, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_verbs_wish wish = NW_VERBS_WISH;
        struct nw_verbs_result results[2];
        struct pair pair;

        double_reset();
        wish.qps = rows[i].wished_qps;
        wish.depth = rows[i].wished_depth;
        wish.inline_bytes = rows[i].inline_bytes;
        cr_assert_eq(pair_open(&pair, &wish), NW_OK, "row %zu: %s", i, nw_last_error()->text);
        const struct nw_verbs_run run = {.op = rows[i].op,
                                         .roles = rows[i].roles,
                                         .bytes = rows[i].bytes,
                                         .count = rows[i].count,
                                         .qps = rows[i].qps,
                                         .depth = rows[i].depth,
                                         .take_at = HALF,
                                         .span_bytes = HALF};
        const uint64_t slots = nw_verbs_slots(&run), stride = nw_verbs_stride(run.bytes);
        const uint64_t used = slots < run.count ? slots : run.count;
        const int passive = run.op == NW_VERBS_READ ? 0 : 1;

        for (int end = 0; end < 2; end++)
            for (uint64_t k = 0; k < HALF; k++)
                pair.buffers[end][k] = (uint8_t)(k * 7 + k / 251 + (uint64_t)end * 13 + 1);
        cr_assert_eq(pair_run(&pair, run, results), NW_OK, "row %zu: %s", i, nw_last_error()->text);
        for (uint64_t slot = 0; slot < used; slot++)
            for (int end = rows[i].roles == 0; end < 2; end++)
                cr_assert_eq(memcmp(pair.buffers[end] + HALF + slot * stride,
                                    pair.buffers[1 - end] + slot * stride, run.bytes),
                             0, "row %zu: slot %llu of end %d", i, (unsigned long long)slot, end);
        cr_expect_eq(results[1 - passive].messages, run.count, "row %zu", i);
        cr_expect_eq(results[1 - passive].bytes, run.count * run.bytes);
        if (rows[i].roles == 0 && run.op != NW_VERBS_SEND)
            cr_expect(isnan(results[passive].ns), "row %zu: it only looks on", i);
        cr_expect_eq(nic.requests, run.count * (rows[i].roles == 0 ? 1 : 2), "row %zu", i);
        cr_expect_eq(nic.inlined, run.op != NW_VERBS_READ && run.bytes <= rows[i].inline_bytes
                                      ? nic.requests
                                      : 0);
        if (run.bytes < 8192 && nw_verbs_end_link(pair.ends[0])->depth > 2 && run.count > 1000)
            cr_expect_lt(nic.signaled, nic.requests, "row %zu: one completion for several", i);
        pair_close(&pair);
    }
}

Test(verbs_run, of_latency_answers_each_message)
{
    double samples[300];

    for (int op = 0; op < NW_VERBS_OP_COUNT; op++) {
        const struct nw_verbs_wish wish = NW_VERBS_WISH;
        const bool begins_first = op != NW_VERBS_READ;
        struct nw_verbs_run run = {.op = (nw_verbs_op)op,
                                   .bytes = 8,
                                   .count = 300,
                                   .ping = true,
                                   .samples_ns = samples,
                                   .take_at = HALF,
                                   .span_bytes = HALF};
        struct nw_verbs_result results[2];
        struct pair pair;

        double_reset();
        cr_assert_eq(pair_open(&pair, &wish), NW_OK, "%s", nw_last_error()->text);
        for (int i = 0; i < 300; i++)
            samples[i] = -1;
        cr_assert_eq(pair_run(&pair, run, results), NW_OK, "%s", nw_last_error()->text);
        for (int i = 0; i < 300; i++)
            cr_assert_geq(samples[i], 0, "%s: sample %d", nw_verbs_op_name(run.op), i);
        cr_expect_eq(nic.requests, begins_first ? 600 : 300);
        cr_expect_eq(results[begins_first ? 0 : 1].messages, 300);
        cr_expect(isnan(results[begins_first ? 1 : 0].ns));
        run.roles = NW_VERBS_GIVES | NW_VERBS_TAKES;
        cr_expect_eq(pair_run(&pair, run, results), NW_EUSAGE);
        pair_close(&pair);
    }
}

Test(verbs_run, every_failed_completion_is_said_with_its_side_and_cause)
{
    for (int status = 1; status < 24; status++)
        for (int ping = 0; ping < 2; ping++) {
            struct nw_verbs_wish wish = NW_VERBS_WISH;
            const struct nw_verbs_word *word = nw_verbs_status_word(status);
            const struct nw_verbs_run run = {.op = ping ? NW_VERBS_SEND : NW_VERBS_WRITE,
                                             .bytes = 8192,
                                             .count = 500,
                                             .ping = ping != 0,
                                             .take_at = HALF,
                                             .span_bytes = HALF};
            struct nw_verbs_result results[2];
            struct pair pair;

            double_reset();
            nic.fail_status = status;
            nic.fail_at = 200;
            wish.timeout_ns = 20e6; /* the other end of a ping waits for it */
            cr_assert_eq(pair_open(&pair, &wish), NW_OK, "%s", nw_last_error()->text);
            cr_assert_eq(pair_run(&pair, run, results),
                         strcmp(word->where, "here") == 0 ? NW_ELIB : NW_EPEER, "%d", status);
            cr_expect_not_null(strstr(nw_last_error()->text, word->text), "%d: %s", status,
                               nw_last_error()->text);
            cr_expect_not_null(strstr(nw_last_error()->text, "mlx5_9/1 (10.1.0.1, GID 3)"));
            cr_expect(ping == 1 || nw_verbs_end_trouble(pair.ends[0]) == word, "%d", status);
            cr_expect(nw_verbs_prepare(pair.ends[0], &run) != NW_OK ||
                          nw_verbs_prepare(pair.ends[1], &run) != NW_OK,
                      "a broken end takes no more runs");
            pair_close(&pair);
        }
}

/* Two pairs in one process, of which one fails: the other's data and queues are whole. */
Test(verbs_run, what_fails_stops_nobody_else)
{
    const struct {
        nw_verbs_op op;
        bool lose; /* nothing completes there; else a post is refused */
        const char *key;
        nw_rc rc;
    } rows[] = {
        {NW_VERBS_WRITE, false, "refused", NW_ENOMEM},
        {NW_VERBS_SEND, false, "refused", NW_ENOMEM},
        {NW_VERBS_WRITE, true, "silent", NW_ETIMEOUT},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_verbs_wish wish = NW_VERBS_WISH;
        struct nw_verbs_run run = {.op = rows[i].op,
                                   .roles = NW_VERBS_GIVES,
                                   .bytes = 4096,
                                   .count = 2000,
                                   .take_at = HALF,
                                   .span_bytes = HALF},
                            runs[3] = {run, run, run};
        struct nw_verbs_result results[3];
        struct pair bad, good;

        double_reset();
        wish.timeout_ns = 30e6;
        cr_assert_eq(pair_open(&bad, &wish), NW_OK, "%s", nw_last_error()->text);
        cr_assert_eq(pair_open(&good, &wish), NW_OK, "%s", nw_last_error()->text);
        struct nw_verbs_end *ends[3] = {bad.ends[0], good.ends[0], good.ends[1]};

        runs[2].roles = NW_VERBS_TAKES;
        for (int end = 0; end < 3; end++)
            cr_assert_eq(nw_verbs_prepare(ends[end], &runs[end]), NW_OK);
        nic.only_qp = bad.ends[0]->qps[0];
        nic.lose = rows[i].lose;
        nic.post_errno = rows[i].lose ? 0 : ENOMEM;
        cr_expect_eq(nw_verbs_run_all(ends, runs, 3, results), rows[i].rc, "row %zu: %s", i,
                     nw_last_error()->text);
        cr_assert_not_null(nw_verbs_end_trouble(bad.ends[0]), "row %zu", i);
        cr_expect_str_eq(nw_verbs_end_trouble(bad.ends[0])->key, rows[i].key, "row %zu", i);
        cr_expect(isnan(results[0].ns));
        cr_expect_null(nw_verbs_end_trouble(good.ends[0]), "row %zu", i);
        cr_expect_null(nw_verbs_end_trouble(good.ends[1]), "row %zu", i);
        cr_expect_eq(results[1].messages, 2000, "row %zu: the other one to its end", i);
        cr_expect_eq(nw_verbs_prepare(bad.ends[0], &run), NW_EPEER, "a broken end runs no more");
        /* And what it left is nothing: the next run's figures and data are its own. */
        memset(good.buffers[0], 0x5a, HALF);
        cr_assert_eq(pair_run(&good, run, results), NW_OK, "row %zu: %s", i, nw_last_error()->text);
        cr_expect_eq(memcmp(good.buffers[0], good.buffers[1] + HALF, HALF), 0, "row %zu", i);
        pair_close_one(&good);
        pair_close(&bad);
    }
}

Test(verbs_run, an_event_of_the_device_is_the_cause_and_silence_ends)
{
    const struct {
        int event;
        bool lose;
        int fail_status;
        nw_rc rc;
        const char *says;
    } rows[] = {
        {IBV_EVENT_PORT_ERR, true, 0, NW_ELIB, "the port went down"},
        {IBV_EVENT_DEVICE_FATAL, true, 0, NW_ELIB, "the NIC has failed"},
        {IBV_EVENT_PORT_ERR, false, IBV_WC_LOC_QP_OP_ERR, NW_ELIB, "the port went down"},
        {IBV_EVENT_CLIENT_REREGISTER, true, 0, NW_ETIMEOUT, "nothing has moved for 100 ms"},
        {-1, true, 0, NW_ETIMEOUT, "nothing has moved for 100 ms while messages were on their way"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_verbs_wish wish = NW_VERBS_WISH;
        const struct nw_verbs_run run = {
            .bytes = 8192, .count = 500, .take_at = HALF, .span_bytes = HALF};
        struct nw_verbs_result results[2];
        struct pair pair;
        const uint64_t start = nw_now_ns();

        double_reset();
        wish.timeout_ns = 100e6;
        cr_assert_eq(pair_open(&pair, &wish), NW_OK, "%s", nw_last_error()->text);
        nic.lose = rows[i].lose;
        nic.fail_status = rows[i].fail_status;
        nic.fail_at = rows[i].fail_status != 0 ? 1 : 0;
        if (rows[i].event >= 0)
            double_happens(rows[i].event);
        cr_expect_eq(pair_run(&pair, run, results), rows[i].rc, "row %zu: %s", i,
                     nw_last_error()->text);
        cr_expect_not_null(strstr(nw_last_error()->text, rows[i].says), "row %zu: %s", i,
                           nw_last_error()->text);
        cr_expect_lt((double)(nw_now_ns() - start), 20e9);
        pair_close(&pair);
    }
}

/* Both ends are of one device: whoever reads an event, it reaches whom it is of. */
Test(verbs_run, an_event_reaches_the_end_that_it_is_of)
{
    const struct {
        int event, next; /* next -1: one only */
        int of;          /* whose queue pair; -1: the port's */
        const char *keys[2];
        const char *says;
    } rows[] = {
        {IBV_EVENT_PORT_ERR, -1, -1, {"port-error", "port-error"}, "the port went down"},
        {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE, -1, {"silent", "silent"}, "has moved for"},
        {IBV_EVENT_DEVICE_FATAL, -1, -1, {"device-fatal", "device-fatal"}, "NIC has failed"},
        {IBV_EVENT_QP_FATAL, -1, 0, {"qp-fatal", "silent"}, "gave a queue pair up"},
        {IBV_EVENT_QP_FATAL, -1, 1, {"silent", "qp-fatal"}, "gave a queue pair up"},
        {IBV_EVENT_GID_CHANGE, -1, -1, {"silent", "silent"}, "before it the port's addresses"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_verbs_wish wish = NW_VERBS_WISH;
        const struct nw_verbs_run run = {.roles = NW_VERBS_GIVES | NW_VERBS_TAKES,
                                         .bytes = 8192,
                                         .count = 500,
                                         .take_at = HALF,
                                         .span_bytes = HALF};
        struct nw_verbs_result results[2];
        struct pair pair;

        double_reset();
        wish.timeout_ns = 50e6;
        cr_assert_eq(pair_open(&pair, &wish), NW_OK, "%s", nw_last_error()->text);
        nic.lose = true;
        if (rows[i].of >= 0)
            double_happens_to(
                (struct ibv_async_event){.event_type = (enum ibv_event_type)rows[i].event,
                                         .element.qp = pair.ends[rows[i].of]->qps[0]});
        else
            double_happens(rows[i].event);
        if (rows[i].next >= 0)
            double_happens(rows[i].next);
        cr_expect_neq(pair_run(&pair, run, results), NW_OK, "row %zu", i);
        cr_expect_not_null(strstr(nw_last_error()->text, rows[i].says), "row %zu: %s", i,
                           nw_last_error()->text);
        for (int end = 0; end < 2; end++) {
            cr_assert_not_null(nw_verbs_end_trouble(pair.ends[end]), "row %zu", i);
            cr_expect_str_eq(nw_verbs_end_trouble(pair.ends[end])->key, rows[i].keys[end],
                             "row %zu, end %d", i, end);
        }
        pair_close(&pair);
    }
}

Test(verbs_end, is_refused_with_what_to_do)
{
    static const struct nw_verbs_wish none = NW_VERBS_WISH;
    struct nw_verbs_wish many = none, mtu = none, gid = none, odd = none, deep = none, full = none;
    const struct {
        const struct nw_verbs_wish *wish;
        int register_errno, receive_errno, mtu;
        nw_rc rc;
        const char *says;
    } rows[] = {
        {&none, ENOMEM, 0, 0, NW_ELIB, "ulimit -l"},
        {&none, EFAULT, 0, 0, NW_ELIB, "the buffer cannot be registered"},
        {&none, 0, ETIMEDOUT, 0, NW_ELIB, "no way to that address"},
        {&none, 0, EINVAL, 0, NW_ELIB, "try another GID index (--gid)"},
        {&many, 0, 0, 0, NW_EUSAGE, "RDMA queue pairs is 65; accepted: 0 to 64"},
        {&mtu, 0, 0, IBV_MTU_1024, NW_EUSAGE, "RDMA MTU of 4096: 1024 is in force there"},
        {&odd, 0, 0, 0, NW_EUSAGE, "RDMA MTU is 1500; accepted: 256"},
        {&gid, 0, 0, 0, NW_EUSAGE, "no GID of index 9"},
        {&deep, 0, 0, 0, NW_EUSAGE, "RDMA depth on this NIC is 2000; accepted: 0 to 1024"},
        {&full, 0, 0, 0, NW_EUSAGE, "is 8 x 1024; the NIC's completion queue takes less than 8192"},
    };

    many.qps = 65;
    deep.depth = 2000;
    full.depth = 1024;
    full.qps = 8;
    mtu.mtu_bytes = 4096;
    odd.mtu_bytes = 1500;
    gid.gid_index = 9;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pair pair;

        double_reset();
        nic.register_errno = rows[i].register_errno;
        nic.receive_errno = rows[i].receive_errno;
        nic.mtu = rows[i].mtu != 0 ? (enum ibv_mtu)rows[i].mtu : IBV_MTU_4096;
        cr_expect_eq(pair_open(&pair, rows[i].wish), rows[i].rc, "row %zu: %s", i,
                     nw_last_error()->text);
        cr_expect_not_null(strstr(nw_last_error()->text, rows[i].says), "row %zu: %s", i,
                           nw_last_error()->text);
        pair_close(&pair);
    }
}

/* What is left to the rule is chosen within what the NIC has. */
Test(verbs_end, takes_the_depth_that_the_nic_has)
{
    const struct {
        int max_qp_wr, max_cqe, qps, most_depth, depth;
    } rows[] = {
        {1024, DOUBLE_QUEUE, 1, 0, 128},  {1024, DOUBLE_QUEUE, 1, 512, 512},
        {300, DOUBLE_QUEUE, 1, 512, 300}, {64, DOUBLE_QUEUE, 1, 0, 64},
        {1024, 1000, 4, 512, 125},        {1, DOUBLE_QUEUE, 1, 512, 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_verbs_wish wish = NW_VERBS_WISH;
        struct nw_verbs_result results[2];
        struct pair pair;

        double_reset();
        nic.max_qp_wr = rows[i].max_qp_wr;
        nic.max_cqe = rows[i].max_cqe;
        wish.qps = rows[i].qps;
        wish.most_depth = rows[i].most_depth;
        cr_assert_eq(pair_open(&pair, &wish), NW_OK, "row %zu: %s", i, nw_last_error()->text);
        cr_expect_eq(nw_verbs_end_link(pair.ends[0])->depth, rows[i].depth, "row %zu: %d", i,
                     nw_verbs_end_link(pair.ends[0])->depth);
        for (int op = 0; op < NW_VERBS_OP_COUNT; op++) {
            const struct nw_verbs_run run = {.op = (nw_verbs_op)op,
                                             .bytes = 4096,
                                             .count = 700,
                                             .take_at = HALF,
                                             .span_bytes = HALF};

            cr_expect_eq(pair_run(&pair, run, results), NW_OK, "row %zu: %s", i,
                         nw_last_error()->text);
        }
        pair_close(&pair);
    }
}

Test(verbs_end, takes_memory_of_a_gpu_by_the_way_that_works)
{
    const struct nw_dev_ops ops = {.name = "cuda", .share = double_share};
    struct nw_dev gpu = {.ops = &ops, .name = "NVIDIA H100"};
    const struct {
        int share_rc, dmabuf_errno, register_errno;
        nw_rc rc;
        const char *says; /* the memory, or the error */
    } rows[] = {
        {NW_OK, 0, 0, NW_OK, "gpu (dma-buf)"},
        {NW_ENOTSUP, 0, 0, NW_OK, "gpu (nvidia_peermem)"},
        {NW_OK, EOPNOTSUPP, 0, NW_OK, "gpu (nvidia_peermem)"},
        {NW_ENOTSUP, 0, EFAULT, NW_ENOTSUP,
         "by dma-buf: no dma-buf here; by nvidia_peermem: Bad address"},
        {NW_OK, EOPNOTSUPP, EFAULT, NW_ENOTSUP, "the NIC's driver refused the dma-buf"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct nw_verbs_wish wish = NW_VERBS_WISH;
        struct nw_verbs_end *end = NULL;
        struct pair pair;
        uint8_t memory[4096];

        double_reset();
        cr_assert_eq(pair_open(&pair, &wish), NW_OK, "%s", nw_last_error()->text);
        nic.share_rc = rows[i].share_rc;
        nic.dmabuf_errno = rows[i].dmabuf_errno;
        nic.register_errno = rows[i].register_errno;
        const nw_rc rc = nw_verbs_end_open(pair.verbs, &pair.verbs->ports[0], &wish, memory,
                                           sizeof memory, &gpu, &end);

        cr_expect_eq(rc, rows[i].rc, "row %zu: %s", i, nw_last_error()->text);
        if (rc == NW_OK)
            cr_expect_str_eq(nw_verbs_end_link(end)->memory, rows[i].says);
        else
            cr_expect_not_null(strstr(nw_last_error()->text, rows[i].says), "row %zu: %s", i,
                               nw_last_error()->text);
        nw_verbs_end_close(end);
        pair_close(&pair);
    }
}

Test(verbs_end, of_a_nic_of_another_kind_is_not_driven)
{
    const struct {
        const char *link_layer;
        bool roce, iwarp;
        const char *says; /* NULL: it is */
    } rows[] = {
        {"ethernet", true, false, NULL},
        {"infiniband", false, false, NULL},
        {"unknown", false, false, "neither RoCE nor InfiniBand"}, /* EFA */
        {"ethernet", false, true, "is iWARP"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct nw_verbs_wish wish = NW_VERBS_WISH;
        const struct nw_verbs_port *found;
        struct nw_verbs_end *end = NULL;
        struct pair pair;
        uint8_t memory[4096];

        double_reset();
        cr_assert_eq(pair_open(&pair, &wish), NW_OK, "%s", nw_last_error()->text);
        struct nw_verbs_port *port = &pair.verbs->ports[0];

        snprintf(port->link_layer, sizeof port->link_layer, "%s", rows[i].link_layer);
        port->roce = rows[i].roce;
        port->iwarp = rows[i].iwarp;
        const nw_rc rc =
            nw_verbs_end_open(pair.verbs, port, &wish, memory, sizeof memory, NULL, &end);

        cr_expect_eq(rc, rows[i].says == NULL ? NW_OK : NW_ENOTSUP, "row %zu", i);
        if (rows[i].says != NULL)
            cr_expect_not_null(strstr(nw_last_error()->text, rows[i].says), "row %zu", i);
        cr_expect_eq(nw_verbs_find_port(pair.verbs, NULL, 0, &found),
                     rows[i].says == NULL ? NW_OK : NW_ENODEV, "row %zu", i);
        nw_verbs_end_close(end);
        pair_close(&pair);
    }
}

/* All retries end before the deadline, as long as a NIC may take for them. */
Test(verbs_end, gives_up_by_its_retries_before_its_deadline)
{
    const struct nw_verbs_wish wish = NW_VERBS_WISH;
    struct pair pair;

    double_reset();
    cr_assert_eq(pair_open(&pair, &wish), NW_OK, "%s", nw_last_error()->text);
    const struct ibv_qp_attr *send = &nic.qps[1].send;

    cr_expect_lt(4 * (send->retry_cnt + 1) * 4096. * (double)(1u << send->timeout),
                 pair.ends[0]->wish.timeout_ns);
    cr_expect_leq(send->retry_cnt, 6, "7 is for ever in software RoCE");
    pair_close(&pair);
}

Test(verbs_end, both_use_the_smaller_mtu_and_what_was_wished)
{
    struct nw_verbs_wish wish = NW_VERBS_WISH;
    struct pair pair;

    double_reset();
    nic.mtu = IBV_MTU_2048;
    wish.traffic_class = 104;
    wish.ack_timeout = 14;
    wish.retries = 3;
    wish.mtu_bytes = 1024;
    cr_assert_eq(pair_open(&pair, &wish), NW_OK, "%s", nw_last_error()->text);
    const struct nw_verbs_link *link = nw_verbs_end_link(pair.ends[0]);
    const struct ibv_qp_attr *receive = &nic.qps[1].receive, *send = &nic.qps[1].send;

    cr_expect_eq(link->mtu_bytes, 1024u);
    cr_expect_eq(link->here_mtu_bytes, 2048u);
    cr_expect_eq(link->here_gid.index, 3);
    cr_expect_str_eq(link->memory, "host");
    cr_expect_eq(receive->path_mtu, IBV_MTU_1024);
    cr_expect_eq(receive->ah_attr.grh.traffic_class, 104);
    cr_expect_eq(receive->ah_attr.grh.sgid_index, 3);
    cr_expect_eq(receive->ah_attr.grh.dgid.raw[15], 1);
    cr_expect_eq(receive->rq_psn, nic.qps[2].send.sq_psn);
    cr_expect_eq(send->timeout, 14);
    cr_expect_eq(send->retry_cnt, 3);
    pair_close(&pair);
}

Test(verbs_port, is_listed_with_what_sysfs_and_the_device_say)
{
    struct pair pair;
    const struct nw_verbs_wish wish = NW_VERBS_WISH;

    double_reset();
    cr_assert_eq(pair_open(&pair, &wish), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(pair.verbs->port_count, 1);
    const struct nw_verbs_port *port = &pair.verbs->ports[0];

    cr_expect(port->active && port->roce && !port->iwarp && !port->software);
    cr_expect_str_eq(port->state, "active");
    cr_expect_eq(port->bits_per_s, 400e9);
    cr_expect_eq(port->mtu_bytes, 4096u);
    cr_expect_eq(port->numa, 1);
    cr_expect_str_eq(port->pci, "0000:17:00.0");
    cr_expect_str_eq(port->interface, "eth5");
    cr_assert_eq(port->gid_count, 4);
    cr_expect_eq(port->gids[3].index, 3);
    cr_expect_eq(port->gids[3].kind, V4);
    cr_expect_eq(port->gids[2].kind, OLD);
    pair_close(&pair);
}

Test(verbs_port, no_devices_in_any_form_and_closed_ones_are_said)
{
    const struct {
        int device_count, list_errno, open_errno;
        size_t ports;
        const char *says;
    } rows[] = {
        {-1, ENOSYS, 0, 0, "this kernel has no RDMA support loaded"},
        {-1, ENODEV, 0, 0, "this kernel has no RDMA support loaded"},
        {-1, EPERM, 0, 0, "Operation not permitted"},
        {0, 0, 0, 0, "sees no device"},
        {1, 0, EACCES, 1, "give access to /dev/infiniband/uverbs*"},
        {1, 0, ENOENT, 1, "not in this container"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct nw_verbs_wish wish = NW_VERBS_WISH;
        struct nw_verbs_end *end = NULL;
        struct nw_verbs *verbs;
        char byte;

        double_reset();
        nic.device_count = rows[i].device_count;
        nic.list_errno = rows[i].list_errno;
        nic.open_errno = rows[i].open_errno;
        cr_assert_eq(nw_verbs_open_api(&double_api, "/nowhere", &verbs), NW_OK);
        cr_assert_eq(verbs->port_count, rows[i].ports, "row %zu", i);
        cr_expect_not_null(
            strstr(rows[i].ports == 0 ? verbs->why : verbs->ports[0].closed, rows[i].says),
            "row %zu: %s", i, verbs->why);
        if (rows[i].ports > 0) {
            cr_expect_eq(nw_verbs_end_open(verbs, &verbs->ports[0], &wish, &byte, 1, NULL, &end),
                         NW_ENODEV);
            cr_expect_not_null(strstr(nw_last_error()->text, "cannot be opened"));
        }
        nw_verbs_close(verbs);
        cr_expect_eq(nic.open_handles, 0);
    }
}
#endif
