#include "base/finding_json.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/finding.h"

Test(base_finding_json, what_a_finding_costs_comes_back)
{
    struct nw_findings list = {0}, again = {0};
    json_t *array;

    cr_assert_eq(
        nw_findings_add(&list, NW_FINDING_WARN, "acs", "node1 gpu0", "switch it off", "ACS is on"),
        NW_OK);
    cr_assert_eq(nw_findings_effect(&list, 12.5e9, "loses %d GB/s", 12), NW_OK);
    list.items[0].step_ns = 3e6;
    cr_assert_eq(nw_findings_add(&list, NW_FINDING_INFO, "bare", "", NULL, "no effect"), NW_OK);
    cr_assert_eq(nw_findings_to_json(&list, &array), NW_OK);
    cr_assert_eq(nw_findings_from_json(array, "again", &again), NW_OK);
    json_decref(array);
    cr_assert_eq(again.count, 2);
    cr_expect_str_eq(again.items[0].effect, "loses 12 GB/s");
    cr_expect_eq(again.items[0].lost_bytes_per_s, 12.5e9);
    cr_expect_eq(again.items[0].step_ns, 3e6);
    cr_expect_null(again.items[1].effect);
    cr_expect(isnan(again.items[1].lost_bytes_per_s));
    /* Copying a list onto itself moves its items while they are read. */
    cr_assert_eq(nw_findings_copy(&again, &again), NW_OK);
    cr_assert_eq(again.count, 4);
    cr_expect_str_eq(again.items[2].effect, "loses 12 GB/s");
    nw_findings_free(&list);
    nw_findings_free(&again);
}

Test(base_finding_json, what_is_wrong_is_named)
{
    static const struct {
        const char *text, *in_error;
    } rows[] = {
        {"{\"severity\": \"bad\", \"code\": \"\", \"where\": \"\", \"text\": \"\"}", "warning"},
        {"{\"severity\": \"info\", \"where\": \"\", \"text\": \"\"}", "code"},
        {"{\"severity\": \"info\", \"code\": \"\", \"where\": \"\", \"text\": \"\", \"cost\": 1}",
         "cost"},
        {"[]", "not an object"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_findings list = {0};
        json_t *json = json_loads(rows[i].text, 0, NULL);

        cr_expect_eq(nw_finding_from_json(json, "f.json", &list), NW_EUSAGE, "row %zu", i);
        cr_expect(strstr(nw_last_error()->text, rows[i].in_error) != NULL, "row %zu: %s", i,
                  nw_last_error()->text);
        json_decref(json);
        nw_findings_free(&list);
    }
}
