/* The same export in other spellings: as PowerShell's ">" writes it (UTF-16, either byte order),
 * with carriage returns, with blank lines before it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "tests/unit/topo_machines.h"
#include "topo/topo.h"

typedef enum {
    PLAIN,
    MARKED,
    CRLF,
    BLANKS,
    UTF16_LE,
    UTF16_BE,
    SPELLINGS, /* the others are refused */
    UTF16_LE_NO_MARK,
    UTF16_BE_NO_MARK,
} spelling;

/* `data` spelled; ASCII is all that these files hold. */
static char *spell(const char *data, size_t length, spelling how, size_t *length_out)
{
    static const char *const heads[SPELLINGS] = {[MARKED] = "\xef\xbb\xbf",
                                                 [BLANKS] = "\r\n \n",
                                                 [UTF16_LE] = "\xff\xfe",
                                                 [UTF16_BE] = "\xfe\xff"};
    const char *head = how < SPELLINGS && heads[how] != NULL ? heads[how] : "";
    char *text = malloc(2 * length + 8), *at = stpcpy(text, head);

    for (size_t i = 0; i < length; i++) {
        if (how == CRLF && data[i] == '\n')
            *at++ = '\r';
        if (how == UTF16_BE || how == UTF16_BE_NO_MARK)
            *at++ = '\0';
        *at++ = data[i];
        if (how == UTF16_LE || how == UTF16_LE_NO_MARK)
            *at++ = '\0';
    }
    *length_out = (size_t)(at - text);
    return text;
}

Test(topo_hwloc_spelling, all_spellings_read_the_same, .timeout = 60)
{
    for (int m = 0; m < MACHINE_COUNT; m++) {
        json_t *first = NULL;
        char path[1024], *data;
        size_t length;

        cr_assert(machine_path(all_machines[m], path, sizeof path), "%s", all_machines[m]);
        cr_assert_eq(nw_file_read(path, 1 << 24, &data, &length), NW_OK);
        for (int how = PLAIN; how < SPELLINGS; how++) {
            struct nw_topo *topo = NULL;
            json_t *json = NULL;
            size_t spelled_length;
            char *text = spell(data, length, (spelling)how, &spelled_length);

            cr_assert_eq(nw_topo_read_data(text, spelled_length, "m.xml", &topo), NW_OK,
                         "%s, spelling %d: %s", all_machines[m], how, nw_last_error()->text);
            cr_assert_eq(nw_topo_to_json(topo, &json), NW_OK);
            if (first == NULL)
                first = json_incref(json);
            cr_expect(json_equal(first, json), "%s, spelling %d", all_machines[m], how);
            json_decref(json);
            nw_topo_free(topo);
            free(text);
        }
        json_decref(first);
        free(data);
    }
}

/* Cut anywhere, in any spelling: refused in words. */
Test(topo_hwloc_spelling, cut_ones_are_refused)
{
    char path[1024], *data;
    size_t length;

    cr_assert(machine_path("sandy-noio.xml", path, sizeof path));
    cr_assert_eq(nw_file_read(path, 1 << 24, &data, &length), NW_OK);
    for (int how = PLAIN; how < SPELLINGS; how++) {
        size_t spelled_length;
        char *text = spell(data, length, (spelling)how, &spelled_length);

        for (size_t cut = 0; cut + 40 < spelled_length; cut += 397) {
            struct nw_topo *topo = NULL;

            cr_expect_eq(nw_topo_read_data(text, cut, "m.xml", &topo), NW_EUSAGE,
                         "spelling %d, %zu of %zu bytes", how, cut, spelled_length);
            cr_expect_null(topo);
            cr_expect(strstr(nw_last_error()->text, "m.xml") != NULL, "%s", nw_last_error()->text);
        }
        free(text);
    }
    for (int how = UTF16_LE_NO_MARK; how <= UTF16_BE_NO_MARK; how++) {
        struct nw_topo *topo = NULL;
        size_t spelled_length;
        char *text = spell(data, length, (spelling)how, &spelled_length);

        cr_expect_eq(nw_topo_read_data(text, spelled_length, "m.xml", &topo), NW_EUSAGE);
        cr_expect(strstr(nw_last_error()->text, "m.xml: UTF-16 without its mark") != NULL &&
                      strstr(nw_last_error()->text, "iconv") != NULL,
                  "%s", nw_last_error()->text);
        free(text);
    }
    free(data);
}
