#include "topo/pci_address.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* 1 to `most` hexadecimal digits (strtoul and "%x" would take a sign and "0x"); how many. */
static int take_hex(const char **at, int most, unsigned *value_out)
{
    unsigned value = 0;
    int digits = 0;

    for (; digits < most && isxdigit((unsigned char)**at); digits++) {
        const int letter = tolower((unsigned char)*(*at)++);

        value = value << 4 | (unsigned)(letter <= '9' ? letter - '0' : letter - 'a' + 10);
    }
    *value_out = value;
    return digits;
}

const char *nw_pci_scan(const char *text, struct nw_pci_address *address_out)
{
    struct nw_pci_address address = {.domain = 0};
    const char *at = text;
    unsigned first, second;
    const int first_digits = take_hex(&at, 8, &first);

    if (first_digits == 0 || *at++ != ':' || take_hex(&at, 2, &second) == 0)
        return NULL;
    if (*at == ':') {
        at++;
        address.domain = first;
        address.domain_digits = first_digits;
        address.bus = second;
        if (take_hex(&at, 2, &address.device) == 0)
            return NULL;
    } else {
        if (first_digits > 2)
            return NULL;
        address.bus = first;
        address.device = second;
    }
    if (*at == '.' && isxdigit((unsigned char)at[1])) {
        at++;
        take_hex(&at, 1, &address.function);
        address.has_function = true;
    }
    if (address.device > 0x1f || address.function > 7)
        return NULL;
    *address_out = address;
    return at;
}

const char *nw_pci_text(const struct nw_pci_address *address, char text[16])
{
    snprintf(text, 16, "%04x:%02x:%02x.%x", address->domain & 0xffff, address->bus & 0xff,
             address->device & 0x1f, address->function & 7);
    return text;
}

nw_rc nw_pci_normalise(const char *text, char pci_out[16])
{
    struct nw_pci_address address;
    const char *end = nw_pci_scan(text, &address);

    if (end == NULL || *end != '\0' || !address.has_function || address.domain > 0xffff)
        return nw_fail(NW_EUSAGE, "\"%.40s\" is no PCI address; accepted: 0000:17:00.0 or 17:00.0",
                       text);
    nw_pci_text(&address, pci_out);
    return NW_OK;
}
