#include <criterion/criterion.h>
#include <stdio.h>

#include "base/name_list.h"

Test(base_name_list, every_name_has_one_number_however_many_there_are)
{
    enum { NAMES = 5000 };
    struct nw_name_list list = {0};
    int index = -1;

    for (int round = 0; round < 2; round++)
        for (int i = 0; i < NAMES; i++) {
            char name[32];

            snprintf(name, sizeof name, "node%d", i);
            cr_assert_eq(nw_name_list_index(&list, name, NAMES, &index), NW_OK);
            cr_assert_eq(index, i);
        }
    cr_expect_eq(list.count, NAMES);
    cr_expect_eq(nw_name_list_index(&list, "one more", NAMES, &index), NW_EUSAGE);
    cr_expect_eq(nw_name_list_index(&list, "node7", NAMES, &index), NW_OK);
    cr_expect_eq(index, 7);
    nw_name_list_free(&list);
    nw_name_list_free(&list);
    cr_expect_eq(list.count, 0);
}
