#include "topo/pci_address.h"

#include <criterion/criterion.h>
#include <string.h>

Test(pci_address, tools_ways_to_write_one)
{
    static const struct {
        const char *text, *canonical, *behind;
        int domain_digits;
        bool has_function;
    } rows[] = {
        {"0000:17:00.0", "0000:17:00.0", "", 4, true},
        {"00000000:17:00.0 3D", "0000:17:00.0", " 3D", 8, true},
        {"17:00.1 VGA", "0000:17:00.1", " VGA", 0, true},
        {"0000:AB:1f): 79", "0000:ab:1f.0", "): 79", 4, false},
        {"0001:c:0.0", "0001:0c:00.0", "", 4, true},
        {"17:00.x", "0000:17:00.0", ".x", 0, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_pci_address address;
        char text[16];
        const char *behind = nw_pci_scan(rows[i].text, &address);

        cr_assert_not_null(behind, "%s", rows[i].text);
        cr_expect_str_eq(nw_pci_text(&address, text), rows[i].canonical);
        cr_expect_str_eq(behind, rows[i].behind);
        cr_expect_eq(address.domain_digits, rows[i].domain_digits);
        cr_expect_eq(address.has_function, rows[i].has_function);
    }
}

Test(pci_address, what_is_none)
{
    static const char *const scanned[] = {"",      "17",       "-1:00:00.0",   "0x17:00.0",
                                          "17:-1", "0000:17:", "0000:17:20.0", "17:00.8",
                                          "gpu0",  "123:00.0", " 17:00.0"};
    static const char *const whole[] = {"0000:17:00", "17:00.0 ", "10000:e0:1d.0", "0000:17:00.00"};
    struct nw_pci_address address;
    char text[16];

    for (size_t i = 0; i < sizeof scanned / sizeof *scanned; i++)
        cr_expect_null(nw_pci_scan(scanned[i], &address), "\"%s\"", scanned[i]);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        cr_expect_eq(nw_pci_normalise(whole[i], text), NW_EUSAGE, "\"%s\"", whole[i]);
        cr_expect_not_null(strstr(nw_last_error()->text, "0000:17:00.0"));
    }
}
