#include "topo/read_kernel_log.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>

#include "topo/classify.h"
#include "topo/read.h"
#include "topo/read_ib.h"
#include "topo/system.h"

/* --- facts of one device --- */

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static nw_rc set_facts(const struct nw_log_device *device, const char *source, struct nw_topo *topo,
                       int node)
{
    const int corrected = larger(device->corrected, device->corrected_announced);
    const int uncorrected = larger(device->uncorrected, device->uncorrected_announced);
    char xids[96];

    nw_log_xid_text(device, xids);
    NW_TRY(nw_topo_set_text(topo, node, NW_FACT_XID, xids, source));
    NW_TRY(nw_topo_set_text(topo, node, NW_FACT_LIMITED_BY, device->limited_by, source));
    NW_TRY(nw_topo_set_text(topo, node, NW_FACT_UUID, device->uuid, source));
    if (device->limited_bytes_per_s > 0) {
        NW_TRY(nw_topo_set_number(topo, node, NW_FACT_LIMITED_TO, device->limited_bytes_per_s,
                                  source));
        NW_TRY(
            nw_topo_set_number(topo, node, NW_FACT_CAPABLE, device->capable_bytes_per_s, source));
    }
    if (corrected + uncorrected > 0)
        NW_TRY(nw_topo_set_number(topo, node, NW_FACT_AER, corrected + uncorrected, source));
    if (uncorrected > 0)
        NW_TRY(nw_topo_set_number(topo, node, NW_FACT_AER_UNCORRECTED, uncorrected, source));
    if (nw_log_downs(device) > 0)
        NW_TRY(nw_topo_set_number(topo, node, NW_FACT_FLAPS, nw_log_downs(device), source));
    return NW_OK;
}

/* --- a text of its own: devices become nodes --- */

static nw_node_kind kind_of(const struct nw_log_device *device)
{
    static const char *const nic_drivers[] = {"mlx",  "bnxt",  "ice",   "i40e",  "ixgbe",
                                              "igb",  "e1000", "ena",   "irdma", "qede",
                                              "cxgb", "hfi1",  "ionic", "efa"};

    if (device->xid_count > 0 || device->fallen || strcmp(device->driver, "nvidia") == 0 ||
        (device->vendor == NW_PCI_VENDOR_NVIDIA && device->class_id >> 8 == 0x03))
        return NW_NODE_GPU;
    if (device->class_id >> 8 == 0x02 || nw_log_downs(device) > 0)
        return NW_NODE_NIC;
    for (size_t i = 0; i < sizeof nic_drivers / sizeof *nic_drivers; i++)
        if (nw_scan_starts(device->driver, nic_drivers[i]))
            return NW_NODE_NIC;
    return device->class_id == 0x0604 || strcmp(device->driver, "pcieport") == 0 ? NW_NODE_BRIDGE
                                                                                 : NW_NODE_PCI;
}

static nw_rc add_node(const struct nw_log_device *device, struct nw_topo *topo)
{
    const nw_node_kind kind = kind_of(device);
    const int gpus = nw_topo_count(topo, NW_NODE_GPU);
    struct nw_topo_node *node;
    int index;

    NW_TRY(nw_topo_add_node(topo, kind, 0, &index));
    node = &topo->nodes[index];
    snprintf(node->pci, sizeof node->pci, "%s", device->pci);
    if (kind == NW_NODE_GPU)
        snprintf(node->name, sizeof node->name, "gpu%d", gpus);
    else
        snprintf(
            node->name, sizeof node->name, "%s",
            kind == NW_NODE_NIC && device->interface[0] != '\0' ? device->interface : device->pci);
    snprintf(node->os_names, sizeof node->os_names, "%s", device->interface);
    node->pci_vendor = device->vendor;
    node->pci_device = device->id;
    node->pci_class = device->class_id;
    if (kind == NW_NODE_GPU && node->pci_vendor == 0 && strcmp(device->driver, "nvidia") == 0)
        node->pci_vendor = NW_PCI_VENDOR_NVIDIA;
    NW_TRY(nw_topo_set_text(topo, index, NW_FACT_PCI_DRIVER, device->driver, "kernel log"));
    return set_facts(device, "kernel log", topo, index);
}

static int compare_devices(const void *a, const void *b)
{
    const struct nw_log_device *x = a, *y = b;
    const int order = strcmp(x->pci, y->pci);

    return order != 0 ? order : strcmp(x->interface, y->interface);
}

static nw_rc scan(const char *data, size_t length, const char *what, struct nw_log *log)
{
    struct nw_scan text;
    nw_rc rc = NW_OK;

    NW_TRY(nw_scan_open(&text, data, length, what));
    log->what = what;
    while (rc == NW_OK && nw_scan_next(&text))
        rc = nw_log_line(log, text.line);
    if (rc == NW_OK)
        rc = text.rc;
    nw_scan_close(&text);
    if (rc == NW_OK && log->count > 0)
        qsort(log->devices, log->count, sizeof *log->devices, compare_devices);
    return rc;
}

static nw_rc build(const struct nw_log *log, const char *what, struct nw_topo *topo)
{
    bool says = false;

    for (size_t i = 0; i < log->count; i++)
        if (nw_log_says(&log->devices[i])) {
            says = true;
            NW_TRY(add_node(&log->devices[i], topo));
        }
    nw_topo_clean(topo);
    if (says)
        return NW_OK;
    return nw_findings_add(&topo->findings, NW_FINDING_INFO, "log-says-nothing", what, NULL,
                           "no GPU error, no PCIe limit or error and no link that went down in %d "
                           "lines",
                           log->lines);
}

nw_rc nw_read_kernel_log(const char *data, size_t length, const char *what,
                         struct nw_topo **topo_out)
{
    struct nw_log log = {.devices = NULL};
    struct nw_topo *topo = NULL;
    nw_rc rc = scan(data, length, what, &log);

    if (rc == NW_OK)
        rc = nw_topo_start(what, NW_SOURCE_LOG, &topo);
    if (rc == NW_OK)
        rc = build(&log, what, topo);
    nw_log_free(&log);
    if (rc != NW_OK) {
        nw_topo_free(topo);
        return rc;
    }
    *topo_out = topo;
    return NW_OK;
}

/* --- the live machine: facts go to the devices that are there --- */

static bool is_its_name(const struct nw_topo *topo, size_t node, const char *interface)
{
    const char *netdev = nw_topo_text(topo, (int)node, NW_FACT_NETDEV);

    return strcmp(topo->nodes[node].name, interface) == 0 ||
           (netdev != NULL && strcmp(netdev, interface) == 0);
}

static int find_node(const struct nw_topo *topo, const struct nw_log_device *device)
{
    for (size_t i = 0; i < topo->node_count && device->pci[0] != '\0'; i++)
        if (strcmp(topo->nodes[i].pci, device->pci) == 0)
            return (int)i;
    for (size_t i = 0; i < topo->node_count && device->interface[0] != '\0'; i++)
        if (topo->nodes[i].kind == NW_NODE_NIC && is_its_name(topo, i, device->interface))
            return (int)i;
    return -1;
}

/* A GPU that fell off the bus may be gone from the list of devices: the machine says it. */
static nw_rc set_lost_gpu(const struct nw_log_device *device, const char *source,
                          struct nw_topo *topo)
{
    const char *others = nw_topo_text(topo, 0, NW_FACT_XID);
    char xids[96], all[192];

    nw_log_xid_text(device, xids);
    if (xids[0] == '\0')
        return NW_OK;
    snprintf(all, sizeof all, "%.80s%s%s: %.80s", others != NULL ? others : "",
             others != NULL ? "; " : "", device->pci, xids);
    return nw_topo_set_text(topo, 0, NW_FACT_XID, all, source);
}

nw_rc nw_kernel_log_apply(const char *data, size_t length, const char *what, const char *source,
                          struct nw_topo *topo)
{
    struct nw_log log = {.devices = NULL};
    nw_rc rc = scan(data, length, what, &log);

    for (size_t i = 0; i < log.count && rc == NW_OK; i++) {
        const int node = find_node(topo, &log.devices[i]);

        if (node >= 0)
            rc = set_facts(&log.devices[i], source, topo, node);
        else if (nw_log_says(&log.devices[i]))
            rc = set_lost_gpu(&log.devices[i], source, topo);
    }
    nw_log_free(&log);
    if (rc == NW_OK)
        topo->sources |= NW_SOURCE_LOG;
    return rc;
}

nw_rc nw_kernel_log_live(struct nw_topo *topo)
{
    enum { READ_ALL = 3, SIZE_BUFFER = 10 }; /* syslog(2) */
    const int size = klogctl(SIZE_BUFFER, NULL, 0);
    char *data = size > 0 && size <= NW_TOPO_MAX_FILE_BYTES ? malloc((size_t)size) : NULL;
    const int length = data != NULL ? klogctl(READ_ALL, data, size) : -1;
    nw_rc rc;

    if (length < 0) {
        free(data);
        return nw_topo_not_checked(
            topo, "GPU errors, PCIe limits and links that went down in the kernel's log (run as "
                  "root, or give the output of sudo dmesg to topo --from)");
    }
    rc = nw_kernel_log_apply(data, (size_t)length, "the kernel's log", "kernel log", topo);
    free(data);
    return rc;
}

/* --- is it such a file? --- */

/* "[   10.735323] ", "[Mon Aug 17 00:00:24 2023] ", "Aug 17 00:00:24 host ", "2024-05-01T12:00:00",
 * "<6>[   10.735323] ", "6,1234,5678,-;", "kern  :warn  : 2025-01-21T02:21:33,498559+00:00 " */
static bool is_log_line(const char *line)
{
    char month[4], host[64];
    int day, hour, minute, second, year, end = -1;
    unsigned int a, b;

    if (sscanf(line, "<%*1u>%n", &end) == 0 && end == 3)
        line += end;
    end = -1;
    if (sscanf(line, "[%9u.%9u]%n", &a, &b, &end) == 2 && end > 0)
        return true;
    if (nw_scan_starts(line, "kern  :") || nw_scan_starts(line, "daemon:"))
        return true;
    if (sscanf(line, "[%*3s %3s %2d %2d:%2d:%2d %4d]", month, &day, &hour, &minute, &second,
               &year) == 6)
        return true;
    if (sscanf(line, "%3s %2d %2d:%2d:%2d %63s", month, &day, &hour, &minute, &second, host) == 6 &&
        isupper((unsigned char)month[0]) && strchr(host, ',') == NULL)
        return true;
    if (sscanf(line, "%4d-%2d-%2dT%2d:%2d:%2d", &year, &a, &b, &hour, &minute, &second) == 6)
        return strstr(line, "kernel") != NULL || strstr(line, "systemd") != NULL;
    return sscanf(line, "%9u,%9u,%*u,%*1[-c];%n", &a, &b, &end) == 2 && end > 0;
}

bool nw_is_kernel_log(const char *data, size_t length)
{
    static const char *const phrases[] = {"Gb/s available PCIe bandwidth",
                                          "NVRM: ", "AER: ", "PCIe Bus Error: ", "kernel: "};
    struct nw_scan text;
    bool found = false;

    if (nw_scan_open(&text, data, length, "") != NW_OK) {
        nw_clear_error();
        return false;
    }
    while (!found && text.number < 200 && nw_scan_next(&text)) {
        found = is_log_line(nw_scan_trim(text.line));
        for (size_t i = 0; i < sizeof phrases / sizeof *phrases && !found; i++)
            found = strstr(text.line, phrases[i]) != NULL;
    }
    nw_scan_close(&text);
    if (text.rc != NW_OK)
        nw_clear_error();
    return found;
}
