/* Lines of the kernel's log. Their texts: Linux drivers/pci/pci.c (available bandwidth),
 * drivers/pci/pcie/aer.c, drivers/pci/probe.c; NVIDIA's driver ("NVRM: Xid"), its list of Xid
 * errors; drivers of NICs; systemd-networkd and NetworkManager, which syslog carries as well. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/pci_address.h"
#include "topo/read_kernel_log.h"

/* --- devices --- */

static nw_rc add_device(struct nw_log *log, struct nw_log_device **device_out)
{
    if (log->count == log->capacity) {
        const size_t capacity = log->capacity > 0 ? 2 * log->capacity : 32;
        struct nw_log_device *devices = realloc(log->devices, capacity * sizeof *devices);

        if (devices == NULL)
            return nw_fail(NW_ENOMEM, "out of memory for the devices of a kernel log");
        log->devices = devices;
        log->capacity = capacity;
    }
    log->devices[log->count] = (struct nw_log_device){.vendor = 0};
    *device_out = &log->devices[log->count++];
    return NW_OK;
}

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

static bool is_named(const struct nw_log_device *device, const struct nw_log_device *wanted)
{
    if (wanted->pci[0] != '\0' && device->pci[0] != '\0')
        return device->pci_hash == wanted->pci_hash && strcmp(device->pci, wanted->pci) == 0;
    return wanted->interface[0] != '\0' && device->interface_hash == wanted->interface_hash &&
           strcmp(device->interface, wanted->interface) == 0;
}

/* By address, else by interface. */
static nw_rc find_device(struct nw_log *log, const char *pci, const char *interface,
                         struct nw_log_device **device_out)
{
    struct nw_log_device wanted = {.vendor = 0}, *device = NULL;

    snprintf(wanted.pci, sizeof wanted.pci, "%.15s", pci);
    snprintf(wanted.interface, sizeof wanted.interface, "%.31s", interface);
    wanted.pci_hash = hash_of(wanted.pci);
    wanted.interface_hash = hash_of(wanted.interface);
    for (size_t i = log->count; i-- > 0 && device == NULL;)
        if (is_named(&log->devices[i], &wanted))
            device = &log->devices[i];
    if (device == NULL) {
        if (log->count == NW_LOG_MAX_DEVICES)
            return nw_fail(NW_EUSAGE, "%s: more than %d devices; no machine has that many",
                           log->what, (int)NW_LOG_MAX_DEVICES);
        NW_TRY(add_device(log, &device));
    }
    if (pci[0] != '\0') {
        memcpy(device->pci, wanted.pci, sizeof device->pci);
        device->pci_hash = wanted.pci_hash;
    }
    if (interface[0] != '\0') {
        memcpy(device->interface, wanted.interface, sizeof device->interface);
        device->interface_hash = wanted.interface_hash;
    }
    *device_out = device;
    return NW_OK;
}

void nw_log_free(struct nw_log *log)
{
    free(log->devices);
    log->devices = NULL;
    log->count = log->capacity = 0;
}

/* --- addresses --- */

/* "0000:17:00.0", or without the function where `function` is not wanted, at the text's beginning;
 * always with its domain, as a time of day would be one without. */
static bool parse_pci(const char *text, bool function, char pci[16])
{
    struct nw_pci_address address;

    if (nw_pci_scan(text, &address) == NULL || address.domain_digits < 4 ||
        address.domain > 0xffff || (function && !address.has_function))
        return false;
    nw_pci_text(&address, pci);
    return true;
}

/* The last address that begins in [line, before); NULL: none. */
static const char *last_pci(const char *line, const char *before, char pci[16])
{
    const char *found = NULL;
    char one[16];

    for (const char *at = line; at < before; at++)
        if ((at == line || !isalnum((unsigned char)at[-1])) && at[0] != ':' &&
            parse_pci(at, true, one)) {
            found = at;
            memcpy(pci, one, sizeof one);
        }
    return found;
}

/* The word that ends right before `at` (blanks in between), into `word`; "" when there is none. */
static void word_before(const char *line, const char *at, char *word, size_t size)
{
    const char *end = at, *start;

    while (end > line && (end[-1] == ' ' || end[-1] == ':'))
        end--;
    for (start = end; start > line && start[-1] != ' ' && start[-1] != ']' && start[-1] != ':';
         start--)
        ;
    word[0] = '\0';
    if (end > start && (size_t)(end - start) < size) {
        memcpy(word, start, (size_t)(end - start));
        word[end - start] = '\0';
    }
}

/* --- PCIe --- */

/* "mlx5_core 0001:43:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link
 * at 0001:42:01.0 (capable of 126.016 Gb/s with 8.0 GT/s PCIe x16 link)" */
static nw_rc take_bandwidth(struct nw_log *log, const char *line, const char *phrase)
{
    static const char by[] = "limited by ", capable[] = "(capable of ";
    const char *number = phrase, *address, *limit = strstr(phrase, by),
               *most = strstr(phrase, capable);
    struct nw_log_device *device;
    double available, best;
    char pci[16], driver[24];

    while (number > line && (isdigit((unsigned char)number[-1]) || number[-1] == '.'))
        number--;
    address = last_pci(line, number, pci);
    if (address == NULL || sscanf(number, "%lf", &available) != 1 ||
        !(available > 0 && available < 1e5))
        return NW_OK;
    NW_TRY(find_device(log, pci, "", &device));
    if (device == NULL)
        return NW_OK;
    word_before(line, address, driver, sizeof driver);
    if (strcmp(driver, "pci") != 0)
        snprintf(device->driver, sizeof device->driver, "%s", driver);
    device->limited_bytes_per_s = device->capable_bytes_per_s = available * 1e9 / 8;
    device->limited_by[0] = '\0'; /* the last that was said */
    if (limit == NULL)
        return NW_OK;
    limit += strlen(by);
    snprintf(device->limited_by, sizeof device->limited_by, "%.*s",
             (int)(most != NULL && most > limit ? most - limit : (long)strcspn(limit, "(")), limit);
    if (most != NULL && sscanf(most + strlen(capable), "%lf", &best) == 1 && best >= available &&
        best < 1e5)
        device->capable_bytes_per_s = best * 1e9 / 8;
    return NW_OK;
}

/* "pci 0000:17:00.0: [10de:2330] type 00 class 0x030200" */
static nw_rc take_listing(struct nw_log *log, const char *line, const char *phrase)
{
    struct nw_log_device *device;
    unsigned int vendor, id, class_id;
    const char *bracket = strstr(line, ": [");
    char pci[16];

    if (bracket == NULL || bracket > phrase || last_pci(line, bracket, pci) == NULL ||
        sscanf(bracket, ": [%4x:%4x]", &vendor, &id) != 2 ||
        sscanf(phrase, " class 0x%6x", &class_id) != 1 || class_id > 0xffffff || vendor > 0xffff ||
        id > 0xffff) /* "%x" takes a sign, too */
        return NW_OK;
    NW_TRY(find_device(log, pci, "", &device));
    if (device != NULL) {
        device->vendor = vendor;
        device->id = id;
        device->class_id = class_id >> 8;
    }
    return NW_OK;
}

/* "AER: Multiple Corrected error received: 0000:17:00.0", from 6.x on "Correctable error message
 * received from 0000:17:00.0": the address behind it is the device; old kernels write id=00e5. */
static nw_rc take_announced(struct nw_log *log, const char *line, const char *phrase)
{
    const bool uncorrected = strstr(line, "Uncorrect") != NULL;
    struct nw_log_device *device;
    char pci[16];

    phrase += strcspn(phrase, ":m") + 1;
    while (*phrase != '\0' && !parse_pci(phrase, true, pci))
        phrase++;
    if (*phrase == '\0' && last_pci(line, line + strlen(line), pci) == NULL)
        return NW_OK;
    NW_TRY(find_device(log, pci, "", &device));
    if (device != NULL)
        ++*(uncorrected ? &device->uncorrected_announced : &device->corrected_announced);
    return NW_OK;
}

/* "pcieport 0000:16:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, …" */
static nw_rc take_bus_error(struct nw_log *log, const char *line, const char *phrase)
{
    struct nw_log_device *device;
    char pci[16];

    if (last_pci(line, phrase, pci) == NULL)
        return NW_OK;
    NW_TRY(find_device(log, pci, "", &device));
    if (device != NULL)
        ++*(strstr(phrase, "severity=Correct") != NULL ? &device->corrected : &device->uncorrected);
    return NW_OK;
}

/* --- NVIDIA --- */

/* "NVRM: Xid (PCI:0000:04:00): 79, …", "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94", "Xid
 * (0000:03:00): 31" */
static nw_rc take_xid(struct nw_log *log, const char *line, const char *phrase)
{
    struct nw_log_device *device;
    const char *close = strchr(phrase, ')'), *address = strchr(phrase, '(');
    char pci[16];
    int number;

    (void)line;
    if (close == NULL || address == NULL)
        return NW_OK;
    address += 1 + 4 * (strncmp(address + 1, "PCI:", 4) == 0);
    close += 1 + (close[1] == ':');
    if (!parse_pci(address, false, pci) || sscanf(close, "%5d", &number) != 1 || number < 1)
        return NW_OK;
    NW_TRY(find_device(log, pci, "", &device));
    if (device == NULL)
        return NW_OK;
    snprintf(device->driver, sizeof device->driver, "nvidia");
    for (int i = 0; i < device->xid_count; i++)
        if (device->xids[i].number == number) {
            device->xids[i].count++;
            return NW_OK;
        }
    if (device->xid_count < NW_LOG_MAX_XIDS) {
        device->xids[device->xid_count].number = number;
        device->xids[device->xid_count++].count = 1;
    }
    return NW_OK;
}

/* "NVRM: GPU 0000:04:00.0: GPU has fallen off the bus.", "NVRM: GPU at 0000:04:00.0 has fallen …"
 */
static nw_rc take_fallen(struct nw_log *log, const char *line, const char *phrase)
{
    struct nw_log_device *device;
    char pci[16];

    if (strstr(line, "Xid") != NULL || last_pci(line, phrase, pci) == NULL)
        return NW_OK;
    NW_TRY(find_device(log, pci, "", &device));
    if (device == NULL)
        return NW_OK;
    device->fallen = true;
    snprintf(device->driver, sizeof device->driver, "nvidia");
    return NW_OK;
}

/* "NVRM: GPU at PCI:0000:04:00: GPU-8d3c…" */
static nw_rc take_uuid(struct nw_log *log, const char *line, const char *phrase)
{
    struct nw_log_device *device;
    const char *address = phrase + strlen("GPU at PCI:"), *uuid = strstr(address, ": GPU-");
    char pci[16];

    (void)line;
    if (uuid == NULL || !parse_pci(address, false, pci))
        return NW_OK;
    NW_TRY(find_device(log, pci, "", &device));
    if (device != NULL)
        snprintf(device->uuid, sizeof device->uuid, "%.*s",
                 (int)strspn(uuid + 2, "GPU-0123456789abcdefABCDEF"), uuid + 2);
    return NW_OK;
}

/* --- links --- */

enum { BY_KERNEL, BY_NETWORKD, BY_NETWORK_MANAGER };

static bool is_interface(const char *name)
{
    static const char *const starts[] = {"ib",  "en",  "eth",  "rdma", "roce", "mlx",
                                         "net", "hsn", "bond", "p",    "gpu",  "ro"};

    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (nw_scan_starts(name, starts[i]) && strpbrk(name, "0123456789") != NULL)
            return true;
    return false;
}

static nw_rc count_down(struct nw_log *log, const char *line, const char *phrase, int by)
{
    struct nw_log_device *device;
    const char *address;
    char pci[16] = "", interface[32] = "", driver[24] = "";

    address = last_pci(line, phrase, pci);
    word_before(line, phrase, interface, sizeof interface);
    if (by == BY_NETWORK_MANAGER &&
        sscanf(strstr(line, "device ("), "device (%31[^)]", interface) != 1)
        interface[0] = '\0';
    if (!is_interface(interface))
        interface[0] = '\0';
    if (pci[0] == '\0' && interface[0] == '\0')
        return NW_OK;
    NW_TRY(find_device(log, pci, interface, &device));
    if (device == NULL)
        return NW_OK;
    device->downs[by]++;
    if (address != NULL)
        word_before(line, address, driver, sizeof driver);
    if (driver[0] != '\0')
        snprintf(device->driver, sizeof device->driver, "%s", driver);
    return NW_OK;
}

/* Not those of disks, PCIe slots, USB, and not the absence of a link at start. */
static nw_rc take_link_down(struct nw_log *log, const char *line, const char *phrase)
{
    static const char *const others[] = {"pciehp", "SATA", "ata", "usb", "not ready", "NVLink"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(line, others[i]) != NULL &&
            (strcmp(others[i], "ata") != 0 || strstr(line, " ata") != NULL))
            return NW_OK;
    return count_down(log, line, phrase, BY_KERNEL);
}

static nw_rc take_carrier(struct nw_log *log, const char *line, const char *phrase)
{
    return count_down(log, line, phrase, BY_NETWORKD);
}

static nw_rc take_disconnected(struct nw_log *log, const char *line, const char *phrase)
{
    return strstr(line, "device (") != NULL && strstr(line, "device (") < phrase
               ? count_down(log, line, phrase, BY_NETWORK_MANAGER)
               : NW_OK;
}

/* --- which of them --- */

static const struct {
    const char *phrase;
    nw_rc (*take)(struct nw_log *log, const char *line, const char *phrase);
} phrases[] = {
    {" Gb/s available PCIe bandwidth", take_bandwidth},
    {" class 0x", take_listing},
    {"PCIe Bus Error: severity=", take_bus_error},
    {"error received:", take_announced},
    {"error message received from", take_announced},
    {"NVRM: Xid (", take_xid},
    {"has fallen off the bus", take_fallen},
    {"GPU at PCI:", take_uuid},
    {"Link down", take_link_down},
    {"Link Down", take_link_down},
    {"NIC Link is Down", take_link_down},
    {"NIC Link is down", take_link_down},
    {"Link is down", take_link_down},
    {"Link is Down", take_link_down},
    {"Link DOWN", take_link_down},
    {"Lost carrier", take_carrier},
    {"lost carrier", take_carrier},
    {"carrier: link disconnected", take_disconnected},
};

nw_rc nw_log_line(struct nw_log *log, const char *line)
{
    log->lines++;
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
        const char *phrase = strstr(line, phrases[i].phrase);

        if (phrase != NULL)
            return phrases[i].take(log, line, phrase);
    }
    return NW_OK;
}

/* --- what a device's lines come to --- */

int nw_log_downs(const struct nw_log_device *device)
{
    int most = 0;

    for (size_t i = 0; i < sizeof device->downs / sizeof *device->downs; i++)
        most = device->downs[i] > most ? device->downs[i] : most;
    return most;
}

bool nw_log_says(const struct nw_log_device *device)
{
    return device->limited_bytes_per_s > 0 || device->xid_count > 0 || device->fallen ||
           device->corrected > 0 || device->corrected_announced > 0 || device->uncorrected > 0 ||
           device->uncorrected_announced > 0 || nw_log_downs(device) > 0;
}

void nw_log_xid_text(const struct nw_log_device *device, char text[96])
{
    bool off_bus = false;
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < device->xid_count && used < 80; i++) {
        off_bus |= device->xids[i].number == 79;
        used += (size_t)snprintf(text + used, 96 - used, "%s%d", i > 0 ? ", " : "",
                                 device->xids[i].number);
        if (device->xids[i].count > 1 && used < 84)
            used += (size_t)snprintf(text + used, 96 - used, " x%d", device->xids[i].count);
    }
    if (device->fallen && !off_bus && used < 84) /* what Xid 79 stands for */
        snprintf(text + used, 96 - used, "%s79", used > 0 ? ", " : "");
}
