#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/finding.h"

static nw_rc first_cause(void)
{
    return nw_fail(NW_EIO, "%s: cannot open: %s", "a.txt", "gone");
}

static nw_rc hands_on(int *reached)
{
    NW_TRY(first_cause());
    *reached = 1;
    return NW_OK;
}

Test(base_err, the_first_cause_is_kept_and_handed_on)
{
    int reached = 0;

    nw_clear_error();
    cr_assert_eq(nw_last_error()->rc, NW_OK);
    cr_assert_eq(hands_on(&reached), NW_EIO);
    cr_assert_eq(reached, 0);
    cr_assert_eq(nw_last_error()->rc, NW_EIO);
    cr_assert_str_eq(nw_last_error()->text, "a.txt: cannot open: gone");
    cr_assert_null(nw_last_error()->lib);
    cr_assert(strstr(nw_last_error()->where, "test_base_err.c:") != NULL);

    nw_fail_lib(NW_ELIB, "hwloc", 22, "topology: code %d", 22);
    cr_assert_str_eq(nw_last_error()->lib, "hwloc");
    cr_assert_eq(nw_last_error()->lib_code, 22);
}

Test(base_err, a_sentence_may_be_made_from_the_last_one)
{
    char long_text[3000];

    nw_fail(NW_EUSAGE, "bad number");
    nw_fail(NW_EUSAGE, "a.ini:3: %s", nw_last_error()->text);
    cr_assert_str_eq(nw_last_error()->text, "a.ini:3: bad number");

    nw_fail(NW_EUSAGE, "two\nlines\x1b[31m");
    cr_assert_str_eq(nw_last_error()->text, "two lines [31m", "no newline, no escape");

    memset(long_text, 'x', sizeof long_text);
    memcpy(long_text + 1022, "\xE2\x82\xAC", 3); /* a euro sign across the end of the buffer */
    long_text[sizeof long_text - 1] = '\0';
    nw_fail(NW_EUSAGE, "%s", long_text);
    cr_assert_eq(strlen(nw_last_error()->text), 1022, "cut before the broken character");
}

Test(base_err, every_code_has_a_name_a_text_and_the_documented_exit_code)
{
    static const struct {
        nw_rc rc;
        const char *name;
        int exit_code;
    } rows[] = {
        {NW_OK, "NW_OK", 0},
        {NW_EUSAGE, "NW_EUSAGE", 2},
        {NW_ENOTSUP, "NW_ENOTSUP", 3},
        {NW_ENODEV, "NW_ENODEV", 3},
        {NW_ENOMEM, "NW_ENOMEM", 4},
        {NW_EIO, "NW_EIO", 2},
        {NW_ETIMEOUT, "NW_ETIMEOUT", 4},
        {NW_EWRONG, "NW_EWRONG", 1},
        {NW_ELIB, "NW_ELIB", 4},
        {NW_EPEER, "NW_EPEER", 4},
    };

    cr_assert_eq(sizeof rows / sizeof rows[0], NW_RC_COUNT);
    for (size_t i = 0; i < NW_RC_COUNT; i++) {
        cr_expect_str_eq(nw_rc_name(rows[i].rc), rows[i].name);
        cr_expect_eq(nw_rc_exit_code(rows[i].rc), rows[i].exit_code, "%s", rows[i].name);
        cr_expect_gt(strlen(nw_rc_text(rows[i].rc)), 3);
    }
    cr_expect_eq(nw_rc_exit_code((nw_rc)99), 4);
}

static void *fail_elsewhere(void *unused)
{
    (void)unused;
    nw_fail(NW_EPEER, "in the other thread");
    return NULL;
}

Test(base_err, threads_have_their_own_last_error)
{
    pthread_t thread;

    nw_fail(NW_EIO, "here");
    cr_assert_eq(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    cr_assert_str_eq(nw_last_error()->text, "here");
}

static uint64_t stopped(void)
{
    return 42;
}

Test(base_clock, it_runs_forward_and_can_be_replaced)
{
    char text[32];
    const uint64_t before = nw_now_ns();
    int year, month, day, hour, minute, second, end = 0;

    cr_assert(nw_now_ns() >= before);
    nw_clock_ns = stopped;
    cr_assert_eq(nw_now_ns(), 42);
    nw_wall_clock_iso8601(text);
    cr_assert_eq(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &year, &month, &day, &hour, &minute,
                        &second, &end),
                 6);
    cr_assert_eq((size_t)end, strlen(text));
    cr_assert(year >= 2026 && month >= 1 && month <= 12, "%s", text);
}

Test(base_finding, a_list_owns_its_texts_and_copies_append)
{
    struct nw_findings list = {0}, copy = {0};
    char where[] = "node1";

    for (int i = 0; i < 20; i++)
        cr_assert_eq(nw_findings_add(&list, NW_FINDING_WARN, "slow", where,
                                     i % 2 ? "do this" : NULL, "rate %d of %d", i, 20),
                     NW_OK);
    where[0] = 'X';
    cr_assert_eq(list.count, 20);
    cr_assert_str_eq(list.items[7].text, "rate 7 of 20");
    cr_assert_str_eq(list.items[7].where, "node1");
    cr_assert_str_eq(list.items[7].remedy, "do this");
    cr_assert_null(list.items[6].remedy);

    cr_assert_eq(nw_findings_copy(&copy, &list), NW_OK);
    cr_assert_eq(nw_findings_copy(&copy, &copy), NW_OK, "onto itself");
    cr_assert_eq(copy.count, 40);
    cr_assert_str_eq(copy.items[39].text, "rate 19 of 20");
    cr_assert_neq(copy.items[0].text, list.items[0].text);
    nw_findings_free(&list);
    nw_findings_free(&copy);
    cr_assert_eq(list.count, 0);
    nw_findings_free(&list);
    cr_assert_str_eq(nw_severity_name(NW_FINDING_WARN), "warning");
}
