/* Lines, fields and numbers of tools' printed output (topo/scan.h). */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/scan.h"

Test(topo_text, lines_come_without_their_ends_and_without_escapes)
{
    static const struct {
        const char *data, *lines; /* "NUMBER:LINE" joined with '|' */
    } rows[] = {
        {"", ""},
        {"a", "1:a"},
        {"a\nb\n", "1:a|2:b"},
        {"a\r\nb\r\n", "1:a|2:b"},
        {"a\rb", "1:a|2:b"},
        {"a\r\r\nb", "1:a|2:b"},
        {"a\n\nb", "1:a|2:|3:b"},
        {"a\r\rb", "1:a|2:|3:b"},
        {"\xef\xbb\xbfGPU0", "1:GPU0"},
        {"\t\x1b[4mGPU0\tGPU1\x1b[0m", "1:\tGPU0\tGPU1"},
        {"\x1b]0;title\aA\x1b]0;t\x1b\\B", "1:AB"},
        {"\t[4mGPU0[0m ^[[1;31mX^[[0m", "1:\tGPU0 X"},
        {"[...] [N/A] [4] m", "1:[...] [N/A] [4] m"},
        {"a\xc2\xa0"
         "b\xe3\x80\x80"
         "c\x01"
         "d",
         "1:a b c d"},
        {"\x1b", "1:"},
        {"\x1b[", "1:"},
        {"\x1b]", "1:"},
        {"\xef\xbb", "1:\xef\xbb"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        /* a block of exactly its size: a sanitizer sees a read behind it */
        const size_t length = strlen(rows[i].data);
        char *data = malloc(length > 0 ? length : 1), lines[200] = "";
        struct nw_scan text;

        cr_assert_not_null(data);
        memcpy(data, rows[i].data, length);
        cr_assert_eq(nw_scan_open(&text, data, length, "t"), NW_OK);
        while (nw_scan_next(&text)) {
            const size_t used = strlen(lines);

            snprintf(lines + used, sizeof lines - used, "%s%d:%s", used > 0 ? "|" : "", text.number,
                     text.line);
        }
        cr_expect_eq(text.rc, NW_OK);
        cr_expect_str_eq(lines, rows[i].lines, "row %zu", i);
        nw_scan_close(&text);
        free(data);
    }
}

Test(topo_text, a_line_is_bounded_and_can_be_read_again)
{
    const size_t length = NW_SCAN_MAX_LINE + 3;
    char *data = malloc(length);
    struct nw_scan text;

    cr_assert_not_null(data);
    memset(data, 'x', length);
    memcpy(data, "a\n", 2);
    cr_assert_eq(nw_scan_open(&text, data, length - 1, "t"), NW_OK);
    cr_expect(nw_scan_next(&text));
    cr_expect(nw_scan_next(&text));
    cr_expect_eq(text.used, NW_SCAN_MAX_LINE);
    nw_scan_close(&text);
    cr_assert_eq(nw_scan_open(&text, data, length, "t"), NW_OK);
    cr_expect(nw_scan_next(&text));
    cr_expect_not(nw_scan_next(&text));
    cr_expect_eq(text.rc, NW_EUSAGE);
    cr_expect_not_null(strstr(nw_last_error()->text, "t:2: a line of more than"));
    nw_scan_close(&text);
    free(data);
}

Test(topo_text, pairs_and_words)
{
    static const struct {
        const char *line;
        bool is_pair;
        int indent;
        const char *key, *value;
    } rows[] = {
        {"    Product Name           : NVIDIA H100 80GB HBM3 ", true, 4, "Product Name",
         "NVIDIA H100 80GB HBM3"},
        {"\tBus Id : 00000000:07:00.0", true, 8, "Bus Id", "00000000:07:00.0"},
        {"hca_id:\tmlx5_0", true, 0, "hca_id", "mlx5_0"},
        {"  \tState:", true, 8, "State", ""},
        {"GPU 00000000:07:00.0", false, 0, "", ""},
        {": x", false, 0, "", ""},
        {"", false, 0, "", ""},
    };
    char line[100], *words[3];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_scan_pair pair;

        snprintf(line, sizeof line, "%s", rows[i].line);
        cr_expect_eq(nw_scan_pair(line, &pair), rows[i].is_pair, "row %zu", i);
        if (!rows[i].is_pair) {
            cr_expect_str_eq(line, rows[i].line);
            continue;
        }
        cr_expect_eq(pair.indent, rows[i].indent, "row %zu: %d", i, pair.indent);
        cr_expect_str_eq(pair.key, rows[i].key);
        cr_expect_str_eq(pair.value, rows[i].value);
    }
    snprintf(line, sizeof line, " a\t bc d  e ");
    cr_expect_eq(nw_scan_words(line, words, 3), 4);
    cr_expect_str_eq(words[0], "a");
    cr_expect_str_eq(words[1], "bc");
    cr_expect_str_eq(words[2], "d");
    line[0] = '\0';
    cr_expect_eq(nw_scan_words(line, words, 3), 0);
}

Test(topo_text, values_are_strict_and_unknown_is_no_number)
{
    static const struct {
        const char *value, *unit;
        double number; /* NAN: none */
    } numbers[] = {
        {"350.00 W", "W", 350}, {"26.562 GB/s", "GB/s", 26.562},
        {"16x", "x", 16},       {" 5 ", NULL, 5},
        {"-1", NULL, -1},       {"350.00 W", NULL, NAN},
        {"350", "W", NAN},      {"350 Wh", "W", NAN},
        {"N/A", "W", NAN},      {"", NULL, NAN},
        {"1e400", NULL, NAN},   {"--5", NULL, NAN},
        {"0x10", NULL, NAN},    {"1.2.3", NULL, NAN},
        {"inf", NULL, NAN},
    };
    static const struct {
        const char *value;
        double bytes;
    } bytes[] = {
        {"81559 MiB", 81559.0 * 1048576},
        {"512 KB", 524288},
        {"2 GB", 2147483648.0},
        {"7 B", 7},
        {"1 TiB", 1099511627776.0},
        {"7", NAN},
        {"1 MiB/s", NAN},
        {"-1 MiB", NAN},
    };
    static const struct {
        const char *value;
        int count, first;
    } lists[] = {
        {"0", 1, 0},
        {"0-1", 2, 0},
        {"0,3-9,11-17", 15, 0},
        {" 24-31, 88-95", 16, 24},
        {"", -1, 0},
        {"N/A", -1, 0},
        {"3-1", -1, 0},
        {"1,", 1, 1},
        {"0-99999999999999999999", -1, 0},
        {"1 2", -1, 0},
    };
    bool yes = false;

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double number = NAN;
        const bool read = nw_scan_number(numbers[i].value, numbers[i].unit, &number);

        cr_expect_eq(read, !isnan(numbers[i].number), "\"%s\"", numbers[i].value);
        cr_expect(!read || number == numbers[i].number, "\"%s\"", numbers[i].value);
    }
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        double number = NAN;
        const bool read = nw_scan_bytes(bytes[i].value, &number);

        cr_expect_eq(read, !isnan(bytes[i].bytes), "\"%s\"", bytes[i].value);
        cr_expect(!read || number == bytes[i].bytes, "\"%s\"", bytes[i].value);
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        int first = -1;

        cr_expect_eq(nw_scan_list(lists[i].value, &first), lists[i].count, "\"%s\"",
                     lists[i].value);
        cr_expect(lists[i].count < 0 || first == lists[i].first, "\"%s\"", lists[i].value);
    }
    cr_expect(nw_scan_yes_no("Not Active", &yes) && !yes);
    cr_expect(nw_scan_yes_no("Enabled", &yes) && yes);
    cr_expect_not(nw_scan_yes_no("N/A", &yes));
    for (const char *const *word =
             (const char *const[]){"N/A", "[N/A]", "[Unknown Error]", "GPU is lost", "", NULL};
         *word != NULL; word++)
        cr_expect(nw_scan_unknown(*word), "%s", *word);
    cr_expect_not(nw_scan_unknown("0"));
    for (const char *const *word =
             (const char *const[]){"[...]", "...", "  ......", "\xe2\x80\xa6", "[snip]", "<cut>",
                                   "----- snip -----", NULL};
         *word != NULL; word++)
        cr_expect(nw_scan_elision(*word), "%s", *word);
    for (const char *const *word = (const char *const[]){"", "N/A", "..", "0...1", "GPU0", NULL};
         *word != NULL; word++)
        cr_expect_not(nw_scan_elision(*word), "%s", *word);
}

Test(topo_text, formats_are_found_by_words_and_beginnings)
{
    static const char data[] = "$ nvidia-smi\n  \x1b[4mGPU0\tGPU1\n";

    cr_expect(nw_scan_has(data, sizeof data - 1, 0, "GPU1"));
    cr_expect_not(nw_scan_has(data, sizeof data - 1, 10, "GPU1"));
    cr_expect_eq(nw_scan_find_line(data, sizeof data - 1, "GPU0\tGPU1"), 2);
    cr_expect_eq(nw_scan_find_line(data, sizeof data - 1, "GPU1"), 0);
}
