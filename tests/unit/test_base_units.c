#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/units.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

Test(base_units, sizes_take_binary_suffixes_and_nothing_else)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"8", 8},
        {"64K", 65536},
        {"64k", 65536},
        {"64KiB", 65536},
        {"1M", 1048576},
        {"1.5K", 1536},
        {"4 MiB", 4194304},
        {"100 B", 100},
        {"2G", 2147483648u},
        {"1T", 1099511627776u},
        {"1e9", 1000000000},
        {"18446744073709551615", UINT64_MAX},
    };
    static const char *const bad[] = {
        "",     " ",         "-1",   "-4M",  "K",
        "4KB",  "4X",        "1.5",  "0x10", "nan",
        "inf",  "1e400",     "1e30", "4M ",  " 4M",
        "4  M", "16777216T", "1,5K", "4MM",  "18446744073709551616",
    };

    for (size_t i = 0; i < COUNT(good); i++) {
        uint64_t bytes = 1;

        cr_expect_eq(nw_parse_bytes(good[i].text, &bytes), NW_OK, "%s", good[i].text);
        cr_expect_eq(bytes, good[i].bytes, "%s gives %llu", good[i].text,
                     (unsigned long long)bytes);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        uint64_t bytes = 77;

        cr_expect_eq(nw_parse_bytes(bad[i], &bytes), NW_EUSAGE, "\"%s\" was taken", bad[i]);
        cr_expect_eq(bytes, 77, "out value touched by \"%s\"", bad[i]);
        cr_expect(strstr(nw_last_error()->text, "64K") != NULL, "says what is accepted: %s",
                  nw_last_error()->text);
    }
    uint64_t bytes;

    cr_expect_eq(nw_parse_bytes(NULL, &bytes), NW_EUSAGE);
}

Test(base_units, whole_numbers_and_reals_are_strict_and_bounded)
{
    static const char *const bad_whole[] = {
        "", "-1", "1.0", "1e3", "0x5", " 5", "5 ", "five", "+", "101", "99999999999999999999999"};
    static const char *const bad_real[] = {"",       "nan",   "NaN",  "inf",   "-inf", "1e400",
                                           "-1e400", "0x1p3", " 1",   "1 ",    "1..2", ".",
                                           "e5",     "1e",    "-0.5", "100.5", "1,5"};
    uint64_t whole = 7;
    double real = 7;

    cr_expect_eq(nw_parse_u64("5", 5, 100, &whole), NW_OK);
    cr_expect_eq(whole, 5);
    cr_expect_eq(nw_parse_u64("18446744073709551615", 0, UINT64_MAX, &whole), NW_OK);
    cr_expect_eq(whole, UINT64_MAX);
    for (size_t i = 0; i < COUNT(bad_whole); i++)
        cr_expect_eq(nw_parse_u64(bad_whole[i], 0, 100, &whole), NW_EUSAGE, "\"%s\" was taken",
                     bad_whole[i]);
    cr_expect_eq(whole, UINT64_MAX);

    cr_expect_eq(nw_parse_double("-.5e1", -10, 100, &real), NW_OK);
    cr_expect_float_eq(real, -5, 0);
    for (size_t i = 0; i < COUNT(bad_real); i++)
        cr_expect_eq(nw_parse_double(bad_real[i], 0, 100, &real), NW_EUSAGE, "\"%s\" was taken",
                     bad_real[i]);
    cr_expect_float_eq(real, -5, 0);
}

Test(base_units, durations_counts_and_switches)
{
    static const struct {
        const char *text;
        double value;
    } durations[] = {{"250us", 250e3}, {"250 us", 250e3}, {"1.5s", 1.5e9}, {"2min", 120e9},
                     {"3h", 10800e9},  {"20ms", 20e6},    {"7ns", 7},      {"2", 2e9},
                     {"0", 0},         {"1d", 86400e9}},
      counts[] = {{"7B", 7e9},  {"300M", 3e8}, {"1.5T", 1.5e12},
                  {"2e9", 2e9}, {"10K", 1e4},  {"2048", 2048}};
    static const char *const bad[] = {"",     "-1s",   "-1", "1week", "nan",
                                      "infs", "1e400", "s",  "1 s "};
    double value = 3;
    int yes = 5;

    for (size_t i = 0; i < COUNT(durations); i++) {
        cr_expect_eq(nw_parse_duration(durations[i].text, &value), NW_OK, "%s", durations[i].text);
        cr_expect_float_eq(value, durations[i].value, durations[i].value * 1e-12, "%s",
                           durations[i].text);
    }
    for (size_t i = 0; i < COUNT(counts); i++) {
        cr_expect_eq(nw_parse_count(counts[i].text, &value), NW_OK, "%s", counts[i].text);
        cr_expect_float_eq(value, counts[i].value, counts[i].value * 1e-12, "%s", counts[i].text);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        cr_expect_eq(nw_parse_duration(bad[i], &value), NW_EUSAGE, "\"%s\" was taken", bad[i]);
        cr_expect_eq(nw_parse_count(bad[i], &value), NW_EUSAGE, "\"%s\" was taken", bad[i]);
    }
    cr_expect_eq(nw_parse_bool("Yes", &yes), NW_OK);
    cr_expect_eq(yes, 1);
    cr_expect_eq(nw_parse_bool("off", &yes), NW_OK);
    cr_expect_eq(yes, 0);
    cr_expect_eq(nw_parse_bool("maybe", &yes), NW_EUSAGE);
    cr_expect_eq(nw_parse_bool("", &yes), NW_EUSAGE);
}

Test(base_units, numbers_are_written_for_people)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {{0, "0 B"},
                 {100, "100 B"},
                 {1023, "1023 B"},
                 {1024, "1 KiB"},
                 {1536, "1.5 KiB"},
                 {4194304, "4 MiB"},
                 {1073741824, "1 GiB"},
                 {85899345920, "80 GiB"},
                 {UINT64_MAX, "16 EiB"}};
    static const struct {
        double ns;
        const char *text;
    } times[] = {
        {812, "812 ns"},      {13400, "13.4 us"},       {2.71e9, "2.71 s"}, {4320e9, "1 h 12 min"},
        {125e9, "2 min 5 s"}, {999.9, "1 us"},          {0, "0 ns"},        {NAN, "–"},
        {3600e9, "1 h"},      {200 * 3600e9, "8 d 8 h"}};
    static const struct {
        double value;
        int digits;
        const char *text;
    } figures[] = {{0.0931, 3, "0.0931"}, {12.5, 3, "12.5"},   {487.2, 3, "487"},
                   {9.996, 3, "10.0"},    {0, 3, "0"},         {NAN, 3, "–"},
                   {1234.5, 3, "1234"},   {-2.5, 2, "-2.5"},   {1e-9, 3, "1e-09"},
                   {1e20, 3, "1e+20"},    {INFINITY, 3, "inf"}};
    char text[32];

    for (size_t i = 0; i < COUNT(sizes); i++)
        cr_expect_str_eq(nw_format_bytes(text, sizes[i].bytes), sizes[i].text);
    for (size_t i = 0; i < COUNT(times); i++)
        cr_expect_str_eq(nw_format_ns(text, times[i].ns), times[i].text);
    for (size_t i = 0; i < COUNT(figures); i++)
        cr_expect_str_eq(nw_format_sig(text, figures[i].value, figures[i].digits), figures[i].text);
    cr_expect_str_eq(nw_format_count(text, 124e6), "124 M");
    cr_expect_str_eq(nw_format_count(text, 6.74e9), "6.74 B");
    cr_expect_str_eq(nw_format_count(text, 12), "12");
    cr_expect_str_eq(nw_format_count(text, 999999), "1 M");
    cr_expect_str_eq(nw_format_gb_per_s(text, 117.3e6), "0.117");
    cr_expect_str_eq(nw_format_gb_per_s(text, 487.4e9), "487");
}

Test(base_units, what_is_written_reads_back_within_its_three_digits)
{
    char text[32];

    for (double value = 1; value < 1e15; value *= 3.7) {
        const uint64_t bytes = (uint64_t)value;
        double ns, count;
        uint64_t back;

        cr_expect_eq(nw_parse_count(nw_format_count(text, value), &count), NW_OK, "%s", text);
        cr_expect_float_eq(count, value, value * 0.005, "%s", text);
        if (value < 100e9) {
            cr_expect_eq(nw_parse_duration(nw_format_ns(text, value), &ns), NW_OK, "%s", text);
            cr_expect_float_eq(ns, value, value * 0.005, "%s", text);
        }
        for (uint64_t exact = 1024; exact <= (uint64_t)1 << 40; exact *= 32) {
            cr_expect_eq(nw_parse_bytes(nw_format_bytes(text, exact), &back), NW_OK, "%s", text);
            cr_expect_eq(back, exact, "%s", text);
        }
        cr_expect_leq(strlen(nw_format_bytes(text, bytes)), 31);
    }
}

Test(base_units, extremes_fit_the_buffer)
{
    static const double extremes[] = {1e308, -1e308, 5e-324, -5e-324, 1e15, 123456789012345.0,
                                      -0.0};
    char text[32];

    for (size_t i = 0; i < COUNT(extremes); i++) {
        cr_expect_lt(strlen(nw_format_ns(text, extremes[i])), 32);
        cr_expect_lt(strlen(nw_format_count(text, extremes[i])), 32);
        cr_expect_lt(strlen(nw_format_gb_per_s(text, extremes[i])), 32);
        cr_expect_lt(strlen(nw_format_sig(text, extremes[i], 15)), 32);
    }
}

Test(base_units, the_nearest_name_is_found_and_far_ones_are_not)
{
    static const char *const names[] = {"nvlink_GBps", "nvlink_is", "memory_GiB", "count",
                                        "model",       "ring",      NULL};
    static const struct {
        const char *word, *nearest;
    } rows[] = {
        {"nvlnk_gbps", "nvlink_GBps"},
        {"NVLINK_GBPS", "nvlink_GBps"},
        {"cuont", "count"},
        {"mem", "memory_GiB"},
        {"modle", "model"},
        {"rnig", "ring"},
        {"cat", NULL},
        {"", NULL},
        {"x", NULL},
        {"bandwidth", NULL},
    };
    char text[64], tiny[6], huge[300];

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *found = nw_nearest_name(rows[i].word, names);

        if (rows[i].nearest == NULL)
            cr_expect_null(found, "%s -> %s", rows[i].word, found != NULL ? found : "");
        else
            cr_expect(found != NULL && strcmp(found, rows[i].nearest) == 0, "%s -> %s",
                      rows[i].word, found != NULL ? found : "nothing");
    }
    memset(huge, 'a', sizeof huge);
    huge[sizeof huge - 1] = '\0';
    cr_expect_null(nw_nearest_name(huge, names));
    cr_expect_null(nw_nearest_name(NULL, names));

    cr_expect_str_eq(nw_join_names(text, sizeof text, names + 3), "count, model, ring");
    cr_expect_str_eq(nw_join_names(text, 18, names + 3), "count, model, …");
    cr_expect_str_eq(nw_join_names(text, 17, names + 3), "count, …");
    cr_expect_lt(strlen(nw_join_names(tiny, sizeof tiny, names)), sizeof tiny);
}
