/* lspci, lspci -vv, -vvv, -nn, -n, -D: the whole machine or one device (-s). Format: pciutils
 * (lspci.c, ls-caps.c, ls-ecaps.c). Without root the capabilities are "<access denied>". */
#include "topo/read_lspci.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/classify.h"
#include "topo/pci_address.h"
#include "topo/scan.h"

/* --- the line that begins a device --- */

/* "17:00.0 " or "0000:17:00.0 "; *end_out: behind it. */
static bool parse_address(const char *line, struct nw_lspci_device *device, const char **end_out)
{
    struct nw_pci_address address;
    const char *end = nw_pci_scan(line, &address);

    /* Domains beyond 16 bits are Intel's volume management devices: they have no place in the
     * address that everybody else uses. */
    if (end == NULL || *end != ' ' || !address.has_function || address.domain > 0xffff ||
        end - line < (address.domain_digits > 0 ? 12 : 7))
        return false;
    device->domain = address.domain;
    device->bus = address.bus;
    device->device = address.device;
    device->function = address.function;
    *end_out = end + 1;
    return true;
}

/* Class names of the PCI ID database. */
static const struct {
    const char *name;
    uint32_t class_id;
} classes[] = {
    {"3D controller", NW_PCI_CLASS_3D},
    {"VGA compatible controller", NW_PCI_CLASS_VGA},
    {"Display controller", NW_PCI_CLASS_DISPLAY},
    {"Processing accelerators", NW_PCI_CLASS_ACCELERATOR},
    {"Co-processor", NW_PCI_CLASS_COPROCESSOR},
    {"Ethernet controller", NW_PCI_CLASS_ETHERNET},
    {"Infiniband controller", NW_PCI_CLASS_INFINIBAND},
    {"InfiniBand controller", NW_PCI_CLASS_INFINIBAND},
    {"Network controller", NW_PCI_CLASS_WIRELESS},
    {"Fabric controller", 0x0208},
    {"Non-Volatile memory controller", 0x0108},
    {"RAID bus controller", 0x0104},
    {"SATA controller", 0x0106},
    {"Serial Attached SCSI controller", 0x0107},
    {"SCSI storage controller", 0x0100},
    {"Mass storage controller", 0x0180},
    {"Host bridge", 0x0600},
    {"PCI bridge", 0x0604},
    {"Bridge", NW_PCI_CLASS_BRIDGE_OTHER},
};

static const struct {
    const char *name;
    uint32_t vendor;
} vendors[] = {
    {"NVIDIA Corporation", NW_PCI_VENDOR_NVIDIA},
    {"Mellanox Technologies", NW_PCI_VENDOR_MELLANOX},
    {"Advanced Micro Devices, Inc. [AMD/ATI]", NW_PCI_VENDOR_AMD},
    {"Advanced Micro Devices, Inc. [AMD]", 0x1022},
    {"Broadcom / LSI", 0x1000},
    {"Broadcom Inc. and subsidiaries", 0x14e4},
    {"Intel Corporation", 0x8086},
    {"Amazon.com, Inc.", NW_PCI_VENDOR_AMAZON},
    {"Cray Inc", NW_PCI_VENDOR_CRAY},
    {"PLX Technology, Inc.", 0x10b5},
    {"Microchip Technology Inc.", 0x11f8},
    {"PMC-Sierra Inc.", 0x11f8},
    {"Samsung Electronics Co Ltd", 0x144d},
    {"ASPEED Technology, Inc.", 0x1a03},
    {"Matrox Electronics Systems Ltd.", 0x102b},
    {"Red Hat, Inc.", 0x1af4},
};

/* "3D controller", "3D controller [0302]", "0302" */
static uint32_t class_of(const char *text)
{
    const char *bracket = strrchr(text, '[');
    unsigned int class_id;
    int end = -1;

    if (bracket != NULL && sscanf(bracket, "[%4x]%n", &class_id, &end) == 1 && end == 6 &&
        class_id <= 0xffff) /* "%x" takes a sign, too */
        return class_id;
    if (strlen(text) == 4 && strspn(text, "0123456789abcdefABCDEF") == 4 &&
        sscanf(text, "%4x", &class_id) == 1)
        return class_id;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(text, classes[i].name) == 0)
            return classes[i].class_id;
    return 0;
}

/* Cuts "(rev a1) (prog-if 00 [Normal decode])" off, then "[10de:2330]". */
static void take_ids(char *name, struct nw_lspci_device *device)
{
    char *at;

    while ((at = strstr(name, " (rev ")) != NULL || (at = strstr(name, " (prog-if ")) != NULL)
        *at = '\0';
    at = strrchr(name, '[');
    if (at == NULL)
        at = name; /* -n: the ids are all there is */
    if (sscanf(at, "[%4x:%4x]", &device->vendor, &device->id) == 2 ||
        (at == name && strlen(name) == 9 &&
         sscanf(at, "%4x:%4x", &device->vendor, &device->id) == 2))
        *at = '\0';
    else
        device->vendor = device->id = 0;
    if (device->vendor > 0xffff || device->id > 0xffff)
        device->vendor = device->id = 0;
}

/* Vendor and product out of "NVIDIA Corporation GH100 [H100 SXM5 80GB]". */
static void take_name(char *name, struct nw_lspci_device *device)
{
    char *product = nw_scan_trim(name);

    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
        const size_t length = strlen(vendors[i].name);

        if (strncmp(product, vendors[i].name, length) != 0)
            continue;
        if (device->vendor == 0)
            device->vendor = vendors[i].vendor;
        snprintf(device->vendor_name, sizeof device->vendor_name, "%s", vendors[i].name);
        product += length + strspn(product + length, " ");
        break;
    }
    if (nw_scan_starts(product, "Device ")) { /* not in the database: the id stands there */
        unsigned int id;
        int end = -1;

        if (sscanf(product, "Device %4x%n", &id, &end) == 1 && product[end] == '\0' &&
            id <= 0xffff) {
            if (device->id == 0)
                device->id = id;
            return;
        }
    }
    snprintf(device->name, sizeof device->name, "%.159s", product);
}

static bool parse_header(char *line, struct nw_lspci_device *device_out)
{
    struct nw_lspci_device device = {
        .secondary = -1, .subordinate = -1, .acs = -1, .numa = -1, .iommu_group = -1};
    const char *rest;
    char *colon, *class_text;

    if (!parse_address(line, &device, &rest))
        return false;
    class_text = line + (rest - line);
    colon = strstr(class_text, ": ");
    if (colon == NULL)
        return false;
    *colon = '\0';
    device.class_id = class_of(class_text);
    take_ids(colon + 2, &device);
    take_name(colon + 2, &device);
    device.root_bus = device.class_id == 0x0600;
    *device_out = device;
    return true;
}

/* --- the lines below it --- */

/* "Speed 16GT/s (downgraded), Width x16 (ok)" */
static struct nw_lspci_link parse_link(const char *text)
{
    static const double rates[] = {2.5, 5, 8, 16, 32, 64};
    const char *speed = strstr(text, "Speed "), *width = strstr(text, "Width x");
    struct nw_lspci_link link = {0, 0};
    double rate;

    if (speed != NULL && sscanf(speed, "Speed %lfGT/s", &rate) == 1)
        for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
            if (fabs(rate - rates[i]) < 0.01)
                link.generation = (int)i + 1;
    if (width == NULL || sscanf(width, "Width x%2d", &link.lanes) != 1 || link.lanes < 0 ||
        link.lanes > 32)
        link.lanes = 0;
    return link;
}

/* "SrcValid+ TransBlk- ReqRedir+ …" to the register: PCI Express Base Specification, ACS Control
 * Register, bits 0 to 6. */
static int parse_acs(const char *text)
{
    static const char *const bits[] = {"SrcValid",    "TransBlk",   "ReqRedir",   "CmpltRedir",
                                       "UpstreamFwd", "EgressCtrl", "DirectTrans"};
    int value = 0, known = 0;

    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        const char *at = strstr(text, bits[i]);
        const char mark = at != NULL ? at[strlen(bits[i])] : '\0';

        if (mark != '+' && mark != '-')
            continue;
        known++;
        value |= mark == '+' ? 1 << i : 0;
    }
    return known > 0 ? value : -1;
}

static void take_bridge(const char *text, struct nw_lspci_device *device)
{
    unsigned int secondary, subordinate;

    if (sscanf(text, "primary=%*x, secondary=%2x, subordinate=%2x", &secondary, &subordinate) ==
            2 &&
        secondary > 0 && subordinate >= secondary && subordinate <= 0xff) {
        device->secondary = (int)secondary;
        device->subordinate = (int)subordinate;
    }
}

static void take_capability(const char *text, struct nw_lspci *lspci,
                            struct nw_lspci_device *device)
{
    lspci->denied += strstr(text, "<access denied>") != NULL;
    if (strstr(text, "Express") != NULL &&
        (strstr(text, "Root Port") != NULL || strstr(text, "Root Complex Integrated") != NULL))
        device->root_bus = true;
}

static void take_line(const char *key, const char *value, struct nw_lspci *lspci,
                      struct nw_lspci_device *device)
{
    unsigned int number;

    if (strcmp(key, "NUMA node") == 0 && sscanf(value, "%4u", &number) == 1 &&
        number < NW_RAW_MAX_NUMA)
        device->numa = (int)number;
    else if (strcmp(key, "IOMMU group") == 0 && sscanf(value, "%6u", &number) == 1 &&
             number <= 999999)
        device->iommu_group = (int)number;
    else if (strcmp(key, "Bus") == 0)
        take_bridge(value, device);
    else if (strcmp(key, "LnkCap") == 0)
        device->can = parse_link(value);
    else if (strcmp(key, "LnkSta") == 0)
        device->now = parse_link(value);
    else if (strcmp(key, "ACSCtl") == 0)
        device->acs = parse_acs(value);
    else if (strcmp(key, "Capabilities") == 0)
        take_capability(value, lspci, device);
    else if (strcmp(key, "Kernel driver in use") == 0)
        snprintf(device->driver, sizeof device->driver, "%.31s", value);
}

/* --- the file --- */

static nw_rc add(struct nw_lspci *lspci, const struct nw_lspci_device *device, const char *what)
{
    if (lspci->count == NW_RAW_MAX_DEVICES)
        return nw_fail(NW_EUSAGE, "%s: more than %d PCI devices; no machine has that many", what,
                       NW_RAW_MAX_DEVICES);
    if (lspci->count == lspci->capacity) {
        const size_t capacity = lspci->capacity > 0 ? 2 * lspci->capacity : 64;
        struct nw_lspci_device *devices = realloc(lspci->devices, capacity * sizeof *devices);

        if (devices == NULL)
            return nw_fail(NW_ENOMEM, "%s: out of memory for %zu PCI devices", what, capacity);
        lspci->devices = devices;
        lspci->capacity = capacity;
    }
    lspci->devices[lspci->count++] = *device;
    return NW_OK;
}

static nw_rc read_lines(struct nw_scan *text, struct nw_lspci *lspci)
{
    while (nw_scan_next(text)) {
        char *line = nw_scan_trim(text->line);
        struct nw_lspci_device device;
        struct nw_scan_pair pair;

        if (parse_header(line, &device))
            NW_TRY(add(lspci, &device, text->what));
        else if (nw_scan_elision(line))
            lspci->cut = true;
        else if (lspci->count > 0 && nw_scan_pair(line, &pair))
            take_line(pair.key, pair.value, lspci, &lspci->devices[lspci->count - 1]);
    }
    return text->rc;
}

nw_rc nw_read_lspci(const char *data, size_t length, const char *what, struct nw_topo **topo_out)
{
    struct nw_lspci lspci = {.devices = NULL};
    struct nw_scan text;
    nw_rc rc;

    NW_TRY(nw_scan_open(&text, data, length, what));
    rc = read_lines(&text, &lspci);
    nw_scan_close(&text);
    if (rc == NW_OK && lspci.count == 0)
        rc = nw_fail(NW_EUSAGE, "%s: no line of lspci in it; give the output of lspci -vvv", what);
    if (rc == NW_OK)
        rc = nw_lspci_build(&lspci, what, topo_out);
    free(lspci.devices);
    return rc;
}

bool nw_is_lspci(const char *data, size_t length)
{
    struct nw_scan text;
    bool found = false;

    if (nw_scan_open(&text, data, length, "") != NW_OK) {
        nw_clear_error();
        return false;
    }
    while (!found && nw_scan_next(&text)) {
        struct nw_lspci_device device;

        /* A class that is known: a log may have "17:00.0 something: …" as well. */
        found = parse_header(nw_scan_trim(text.line), &device) && device.class_id != 0;
    }
    nw_scan_close(&text);
    if (text.rc != NW_OK)
        nw_clear_error();
    return found;
}
