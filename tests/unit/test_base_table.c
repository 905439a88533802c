#include <criterion/criterion.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/table.h"

static char *printed(struct nw_table *table)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    cr_assert_eq(nw_table_print(table, stream), NW_OK, "%s", nw_last_error()->text);
    fclose(stream);
    return text;
}

/* Columns that a terminal needs for the longest line. */
static int widest(const char *text)
{
    int widest_line = 0, width = 0;
    mbstate_t state = {0};

    setlocale(LC_CTYPE, "C.UTF-8");
    while (*text != '\0') {
        wchar_t character;
        const size_t length = mbrtowc(&character, text, MB_CUR_MAX, &state);

        cr_assert(length != (size_t)-1 && length != (size_t)-2, "not UTF-8: %s", text);
        width = character == L'\n' ? 0 : width + wcwidth(character);
        if (width > widest_line)
            widest_line = width;
        text += length;
    }
    return widest_line;
}

Test(base_table, columns_line_up_in_any_locale_and_with_wide_characters)
{
    static const char *const locales[] = {"C", "C.UTF-8"};
    static const struct nw_column columns[] = {
        {"Claim", NW_LEFT}, {"GB/s", NW_RIGHT}, {"verdict", NW_LEFT}};

    for (size_t i = 0; i < 2; i++) {
        struct nw_table *table;

        setlocale(LC_ALL, locales[i]);
        cr_assert_eq(nw_table_open(columns, 3, &table), NW_OK);
        nw_table_row(table, (const char *[]){"网络", "212", "short"});
        nw_table_row(table, (const char *[]){"link", "7.5", NULL});
        nw_table_row(table, (const char *[]){"x", "–", "met"});
        char *text = printed(table);

        cr_expect_str_eq(text,
                         "Claim GB/s verdict\n"
                         "网络   212 short\n"
                         "link   7.5\n"
                         "x        – met\n",
                         "%s:\n%s", locales[i], text);
        free(text);
    }
}

Test(base_table, long_texts_wrap_within_100_columns)
{
    static const struct nw_column columns[] = {{"a", NW_LEFT}, {"text", NW_WRAP}};
    struct nw_table *table;
    char longest[400];

    memset(longest, 'w', sizeof longest);
    for (size_t i = 9; i < sizeof longest; i += 10)
        longest[i] = ' ';
    longest[sizeof longest - 1] = '\0';
    cr_assert_eq(nw_table_open(columns, 2, &table), NW_OK);
    nw_table_row(table, (const char *[]){"a row", longest});
    char *text = printed(table);

    cr_expect_leq(widest(text), 100, "%s", text);
    cr_expect_gt(widest(text), 80);
    free(text);
}

Test(base_table, rows_can_form_a_tree)
{
    static const struct nw_column columns[] = {{"device", NW_LEFT}, {"n", NW_RIGHT}};
    struct nw_table *table;

    cr_assert_eq(nw_table_open(columns, 2, &table), NW_OK);
    nw_table_tree_row(table, -1, (const char *[]){"machine", "1"});
    nw_table_tree_row(table, 0, (const char *[]){"package0", "2"});
    nw_table_tree_row(table, 1, (const char *[]){"gpu0", "3"});
    nw_table_tree_row(table, 0, (const char *[]){"package1", "4"});
    char *text = printed(table);

    cr_expect(strstr(text, "├─package0") != NULL, "%s", text);
    cr_expect(strstr(text, "│ └─gpu0") != NULL, "%s", text);
    cr_expect(strstr(text, "└─package1") != NULL, "%s", text);
    free(text);

    cr_assert_eq(nw_table_open(columns, 2, &table), NW_OK);
    nw_table_tree_row(table, 5, (const char *[]){"orphan", NULL});
    cr_expect_eq(nw_table_print(table, stdout), NW_EUSAGE);
}

Test(base_table, escapes_in_foreign_names_do_not_reach_the_terminal)
{
    static const struct nw_column columns[] = {{"name", NW_LEFT}};
    struct nw_table *table;

    cr_assert_eq(nw_table_open(columns, 1, &table), NW_OK);
    nw_table_row(table, (const char *[]){"a\x1b[31mred\nline"});
    char *text = printed(table);

    cr_expect_null(strchr(text, '\x1b'));
    free(text);
}

Test(base_table, a_full_disk_is_reported_and_no_colour_is_kept)
{
    static const struct nw_column columns[] = {{"name", NW_LEFT}};
    struct nw_table *table;
    FILE *full = fopen("/dev/full", "w");

    setvbuf(full, NULL, _IONBF, 0);
    cr_assert_eq(nw_table_open(columns, 1, &table), NW_OK);
    nw_table_row(table, (const char *[]){"x"});
    cr_expect_eq(nw_table_print(table, full), NW_EIO);
    cr_expect(!nw_colour_wanted(full), "not a terminal");
    fclose(full);
    nw_table_free(NULL);
}

Test(base_table, paragraphs_break_between_words_and_wide_characters)
{
    static const struct {
        const char *text;
        int width;
        const char *wrapped;
    } rows[] = {
        {"", 10, ""},
        {"NVIDIA H100 80GB HBM3", 22, "NVIDIA H100 80GB HBM3"},
        {"NVIDIA H100 80GB HBM3", 20, "NVIDIA H100 80GB\nHBM3"},
        {"abcdefghij", 4, "abcd\nefgh\nij"},
        {"a\tb c", 2, "a \nb\nc"},
        {"网络带宽", 4, "网络\n带宽"},
    };
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *wrapped = nw_text_wrap(rows[i].text, rows[i].width);

        cr_expect_str_eq(wrapped, rows[i].wrapped);
        free(wrapped);
    }
    cr_expect_eq(nw_text_width("é网"), 3);
    nw_print_wrapped(stream, "- ", "  ",
                     "aaaaaaaaa bbbbbbbbb ccccccccc ddddddddd eeeeeeeee fffffffff ggggggggg "
                     "hhhhhhhhh iiiiiiiii jjjjjjjjj kkkkkkkkk");
    fclose(stream);
    cr_expect_str_eq(text, "- aaaaaaaaa bbbbbbbbb ccccccccc ddddddddd eeeeeeeee fffffffff "
                           "ggggggggg hhhhhhhhh iiiiiiiii\n  jjjjjjjjj kkkkkkkkk\n");
    free(text);
}

/* Chinese breaks between any two characters, but no line begins with "，" or ends with "（". */
Test(base_table, marks_stay_with_the_characters_that_they_belong_to)
{
    static const char text[] = "节点之间（两台）的带宽，按实测，“中位数”为准；其余从略。";

    for (int width = 6; width < 60; width++) {
        char *wrapped = nw_text_wrap(text, width);

        cr_expect_leq(widest(wrapped), width, "%s", wrapped);
        for (const char *line = wrapped; line != NULL; line = strchr(line, '\n')) {
            line += *line == '\n';
            cr_expect(strncmp(line, "，", 3) != 0 && strncmp(line, "；", 3) != 0 &&
                          strncmp(line, "）", 3) != 0 && strncmp(line, "。", 3) != 0,
                      "%d: %s", width, wrapped);
        }
        cr_expect_null(strstr(wrapped, "（\n"), "%s", wrapped);
        free(wrapped);
    }
}
