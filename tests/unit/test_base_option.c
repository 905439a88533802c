#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/option.h"

struct plan {
    bool quick, check;
    int rounds;
    uint64_t seed, max_bytes;
    double tolerance, budget_ns, tokens;
    const char *output, *lane;
    struct nw_option_list inputs;
};

static const char *const lanes[] = {"auto", "ring", "tree", "nvls", NULL};

static const struct nw_option rows[] = {
    {.help = "Measuring"},
    {.name = "quick", .key = 'q', .type = NW_OPTION_FLAG, .offset = offsetof(struct plan, quick)},
    {.name = "check",
     .key = 'c',
     .type = NW_OPTION_BOOL,
     .offset = offsetof(struct plan, check),
     .fallback = "yes"},
    {.name = "rounds",
     .key = 'n',
     .argument = "N",
     .type = NW_OPTION_INT,
     .min = 1,
     .max = 100,
     .offset = offsetof(struct plan, rounds),
     .fallback = "20"},
    {.name = "seed",
     .type = NW_OPTION_U64,
     .offset = offsetof(struct plan, seed),
     .fallback = "18446744073709551615"},
    {.name = "maxbytes",
     .key = 'e',
     .argument = "SIZE",
     .type = NW_OPTION_BYTES,
     .min = 1,
     .max = 1e15,
     .offset = offsetof(struct plan, max_bytes),
     .fallback = "64M"},
    {.name = "tolerance",
     .type = NW_OPTION_REAL,
     .min = 0.001,
     .max = 0.5,
     .offset = offsetof(struct plan, tolerance),
     .fallback = "0.02"},
    {.name = "budget",
     .type = NW_OPTION_DURATION,
     .min = 1e6,
     .max = 3600e9,
     .offset = offsetof(struct plan, budget_ns),
     .fallback = "1.5s"},
    {.name = "tokens",
     .type = NW_OPTION_COUNT,
     .offset = offsetof(struct plan, tokens),
     .fallback = "300B"},
    {.name = "output", .key = 'o', .type = NW_OPTION_TEXT, .offset = offsetof(struct plan, output)},
    {.name = "lane",
     .type = NW_OPTION_CHOICE,
     .choices = lanes,
     .offset = offsetof(struct plan, lane),
     .fallback = "auto"},
    {.name = "input", .type = NW_OPTION_LIST, .offset = offsetof(struct plan, inputs)},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const struct nw_option *row(const char *name)
{
    const struct nw_option *found = nw_option_find(rows, ROWS, name);

    cr_assert_not_null(found, "%s", name);
    return found;
}

Test(base_option, fallbacks_are_set_and_what_has_none_is_empty)
{
    struct plan plan;

    memset(&plan, 0x5A, sizeof plan);
    cr_assert_eq(nw_options_reset(rows, ROWS, &plan), NW_OK, "%s", nw_last_error()->text);
    cr_expect(!plan.quick && plan.check);
    cr_expect_eq(plan.rounds, 20);
    cr_expect_eq(plan.seed, UINT64_MAX);
    cr_expect_eq(plan.max_bytes, 64u << 20);
    cr_expect_float_eq(plan.tolerance, 0.02, 0);
    cr_expect_float_eq(plan.budget_ns, 1.5e9, 0);
    cr_expect_float_eq(plan.tokens, 3e11, 0);
    cr_expect_null(plan.output);
    cr_expect_str_eq(plan.lane, "auto");
    cr_expect_null(nw_option_find(rows, ROWS, "none"));
}

Test(base_option, bad_values_are_refused_with_source_and_what_is_accepted)
{
    static const struct {
        const char *name, *text, *says;
    } bad[] = {
        {"rounds", "0", "1 to 100"},
        {"rounds", "101", "1 to 100"},
        {"rounds", "2.5", "whole"},
        {"rounds", "-3", "1 to 100"},
        {"rounds", "", "1 to 100"},
        {"seed", "-1", "0"},
        {"maxbytes", "0", "1 to 1e+15 bytes"},
        {"maxbytes", "2000T", "1 to 1e+15 bytes"},
        {"maxbytes", "64X", "64K"},
        {"tolerance", "nan", "0.001"},
        {"tolerance", "1e400", "0.001"},
        {"budget", "2h", "0.001 to 3600 s"},
        {"budget", "10parsec", "250us"},
        {"tokens", "-7B", "negative"},
        {"check", "perhaps", "yes"},
        {"lane", "rng", "did you mean \"ring\"? Accepted: auto, ring, tree, nvls"},
        {"lane", "pigeon", "accepted: auto, ring, tree, nvls"},
    };
    struct plan plan, before;

    cr_assert_eq(nw_options_reset(rows, ROWS, &plan), NW_OK);
    before = plan;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect_eq(nw_option_set(row(bad[i].name), &plan, bad[i].text, "plan.ini:4"), NW_EUSAGE,
                     "%s = %s was taken", bad[i].name, bad[i].text);
        cr_expect(strncmp(nw_last_error()->text, "plan.ini:4: ", 12) == 0, "%s",
                  nw_last_error()->text);
        cr_expect(strstr(nw_last_error()->text, bad[i].says) != NULL, "%s = %s: %s", bad[i].name,
                  bad[i].text, nw_last_error()->text);
    }
    cr_expect(memcmp(&plan, &before, sizeof plan) == 0, "a refused value changes nothing");
}

Test(base_option, every_value_is_told_as_text_that_sets_it_again)
{
    static const struct {
        const char *name, *text;
    } values[] = {{"quick", "yes"},     {"check", "no"},
                  {"rounds", "7"},      {"seed", "12345678901234567890"},
                  {"maxbytes", "3M"},   {"maxbytes", "1000"},
                  {"tolerance", "0.1"}, {"budget", "250ms"},
                  {"tokens", "1.5T"},   {"output", "a b"},
                  {"lane", "NVLS"}};
    struct plan plan, again;
    char text[64];

    memset(&plan, 0, sizeof plan);
    memset(&again, 0, sizeof again);
    cr_assert_eq(nw_options_reset(rows, ROWS, &plan), NW_OK);
    cr_assert_eq(nw_options_reset(rows, ROWS, &again), NW_OK);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const struct nw_option *option = row(values[i].name);
        char kept[64];

        cr_assert_eq(nw_option_set(option, &plan, values[i].text, "test"), NW_OK, "%s",
                     nw_last_error()->text);
        nw_option_text(option, &plan, text, sizeof text);
        memcpy(kept, text, sizeof kept);
        cr_expect_eq(nw_option_set(option, &again, kept, "test"), NW_OK, "%s: %s", option->name,
                     nw_last_error()->text);
        char other[64];

        cr_expect_str_eq(nw_option_text(option, &again, other, sizeof other), text);
    }
    cr_expect_eq(again.max_bytes, 1000);
    cr_expect_eq(again.seed, 12345678901234567890u);
    cr_expect_float_eq(again.budget_ns, 250e6, 0);
    cr_expect_eq(again.lane, lanes[3], "the table's own string");
}

Test(base_option, argp_sees_one_row_an_option)
{
    struct argp_option argp_rows[ROWS + 1];
    struct plan plan;

    nw_option_argp_rows(rows, ROWS, argp_rows);
    cr_expect_null(argp_rows[0].name);
    cr_expect_str_eq(argp_rows[0].doc, "Measuring");
    cr_expect_eq(argp_rows[1].key, 'q');
    cr_expect_null(argp_rows[1].arg, "a flag takes no argument");
    cr_expect_eq(argp_rows[4].key, NW_OPTION_KEY_BASE + 4);
    cr_expect_str_eq(argp_rows[5].arg, "SIZE");
    cr_expect(argp_rows[ROWS].name == NULL && argp_rows[ROWS].key == 0);

    cr_assert_eq(nw_options_reset(rows, ROWS, &plan), NW_OK);
    char argument[] = "3";

    cr_expect_eq(nw_option_parse(rows, ROWS, &plan, 'n', argument), 0);
    cr_expect_eq(plan.rounds, 3);
    cr_expect_eq(nw_option_parse(rows, ROWS, &plan, 'q', NULL), 0);
    cr_expect(plan.quick);
    cr_expect_eq(nw_option_parse(rows, ROWS, &plan, 'X', argument), ARGP_ERR_UNKNOWN);
    argument[0] = 'z';
    cr_expect_eq(nw_option_parse(rows, ROWS, &plan, 'n', argument), EINVAL);
    cr_expect(strstr(nw_last_error()->text, "option -n (--rounds): ") != NULL, "%s",
              nw_last_error()->text);
}

Test(base_option, a_list_takes_every_use)
{
    struct plan plan;
    char text[64];

    memset(&plan, 0x5A, sizeof plan);
    cr_assert_eq(nw_options_reset(rows, ROWS, &plan), NW_OK);
    cr_expect_eq(plan.inputs.count, 0);
    cr_expect_eq(nw_option_set(row("input"), &plan, "a.log", "option --input"), NW_OK);
    cr_expect_eq(nw_option_set(row("input"), &plan, "b.log", "option --input"), NW_OK);
    cr_expect_eq(plan.inputs.count, 2);
    cr_expect_str_eq(nw_option_text(row("input"), &plan, text, sizeof text), "a.log, b.log");
    cr_expect_eq(nw_option_set(row("input"), &plan, "", "option --input"), NW_EUSAGE);
    while (plan.inputs.count < NW_OPTION_LIST_MAX)
        cr_assert_eq(nw_option_set(row("input"), &plan, "c", "option --input"), NW_OK);
    cr_expect_eq(nw_option_set(row("input"), &plan, "d", "option --input"), NW_EUSAGE);
}
