#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"

static char path[64];

static void make_path(void)
{
    snprintf(path, sizeof path, "/tmp/nw-test-json-%ld", (long)getpid());
}

static void remove_path(void)
{
    unlink(path);
}

TestSuite(base_json, .init = make_path, .fini = remove_path);

Test(base_json, bad_files_are_refused_with_line_and_column)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "is empty"},
        {"{\n  \"a\": NaN\n}", ":2:"},
        {"{\n  \"a\": 1,\n  \"a\": 2\n}", ":3:"},
        {"{\"a\": 1e400}", ":1:"},
        {"{\"a\": Infinity}", ":1:"},
        {"{\"a\": 1} x", ":1:"},
        {"{\"a\": 1", ":1:"},
        {"\xFF\xFE{}", ":1:"},
        {"{\"a\": 99999999999999999999}", "too big"},
    };
    json_t *root = NULL;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        FILE *file = fopen(path, "w");

        fputs(rows[i].text, file);
        fclose(file);
        cr_expect_eq(nw_json_load(path, 1000, &root), NW_EUSAGE, "%s was taken", rows[i].text);
        cr_expect_null(root);
        cr_expect(strstr(nw_last_error()->text, path) != NULL, "%s", nw_last_error()->text);
        cr_expect(strstr(nw_last_error()->text, rows[i].says) != NULL, "%s: %s", rows[i].text,
                  nw_last_error()->text);
    }
    cr_expect_eq(nw_json_load("/nonexistent.json", 1000, &root), NW_EIO);
}

Test(base_json, numbers_that_are_not_finite_are_absent)
{
    json_t *object = json_object();

    cr_expect_eq(nw_json_set_real(object, "nan", NAN), NW_OK);
    cr_expect_eq(nw_json_set_real(object, "inf", -INFINITY), NW_OK);
    cr_expect_eq(nw_json_set_text(object, "none", NULL), NW_OK);
    cr_expect_eq(json_object_size(object), 0);
    cr_expect_eq(nw_json_set_real(object, "real", 0.1), NW_OK);
    cr_expect_eq(nw_json_set_u64(object, "u64", INT64_MAX), NW_OK);
    cr_expect_eq(nw_json_set_u64(object, "big", UINT64_MAX), NW_EUSAGE, "would turn negative");
    cr_expect_eq(nw_json_set_text(object, "latin1", "caf\xE9"), NW_OK);
    cr_expect_str_eq(json_string_value(json_object_get(object, "latin1")), "caf?");
    json_decref(object);
}

Test(base_json, values_written_read_back_and_wrong_ones_name_their_place)
{
    json_t *object = json_object();
    const char *text = "before";
    char field[6] = "old";
    double real = 1;
    uint64_t whole = 1;
    int integer = 1;
    bool yes = false;

    cr_assert_eq(nw_json_set_text(object, "text", "grün€"), NW_OK);
    cr_assert_eq(nw_json_set_real(object, "real", 2.5), NW_OK);
    cr_assert_eq(nw_json_set_u64(object, "u64", 1ull << 62), NW_OK);
    cr_assert_eq(nw_json_set_int(object, "int", -3), NW_OK);
    cr_assert_eq(nw_json_set_bool(object, "bool", true), NW_OK);
    cr_assert_eq(nw_json_set_new(object, "null", json_null()), NW_OK);

    cr_expect_eq(nw_json_get_text(object, "f:1", "text", true, &text), NW_OK);
    cr_expect_str_eq(text, "grün€");
    cr_expect_eq(nw_json_get_field(object, "f:1", "text", true, field, sizeof field), NW_OK);
    cr_expect_str_eq(field, "grün", "cut between characters");
    cr_expect_eq(nw_json_get_real(object, "f:1", "int", true, &real), NW_OK, "integers are reals");
    cr_expect_float_eq(real, -3, 0);
    cr_expect_eq(nw_json_get_u64(object, "f:1", "u64", true, &whole), NW_OK);
    cr_expect_eq(whole, 1ull << 62);
    cr_expect_eq(nw_json_get_bool(object, "f:1", "bool", true, &yes), NW_OK);
    cr_expect(yes);

    /* Absent or null: untouched, unless required. */
    cr_expect_eq(nw_json_get_int(object, "f:1", "none", false, &integer), NW_OK);
    cr_expect_eq(nw_json_get_int(object, "f:1", "null", false, &integer), NW_OK);
    cr_expect_eq(integer, 1);
    cr_expect_eq(nw_json_get_int(object, "f:7", "none", true, &integer), NW_EUSAGE);
    cr_expect_str_eq(nw_last_error()->text, "f:7: key \"none\" is missing");

    cr_expect_eq(nw_json_get_u64(object, "f:7", "int", true, &whole), NW_EUSAGE, "negative");
    cr_expect_eq(nw_json_get_int(object, "f:7", "u64", true, &integer), NW_EUSAGE, "too large");
    cr_expect_eq(nw_json_get_int(object, "f:7", "real", true, &integer), NW_EUSAGE, "not whole");
    cr_expect_eq(nw_json_get_text(object, "f:7", "real", false, &text), NW_EUSAGE);
    cr_expect(strstr(nw_last_error()->text, "f:7: key \"real\"") != NULL, "%s",
              nw_last_error()->text);
    cr_expect_eq(nw_json_get_real(json_object_get(object, "int"), "f:7", "x", false, &real),
                 NW_EUSAGE, "not an object");
    json_decref(object);
}

Test(base_json, printing_ends_with_a_newline_and_reports_a_full_disk)
{
    json_t *object = json_object();
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    nw_json_set_real(object, "a", 0.1);
    cr_expect_eq(nw_json_print(stream, object), NW_OK);
    fclose(stream);
    cr_expect_str_eq(text, "{\n  \"a\": 0.1\n}\n");
    free(text);
    stream = fopen("/dev/full", "w");
    cr_expect_eq(nw_json_print(stream, object), NW_EIO);
    fclose(stream);
    json_decref(object);
}
