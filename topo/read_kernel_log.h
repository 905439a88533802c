/* Private to topo/. What the kernel's log says of PCIe, GPUs and links: a dmesg or syslog text, and
 * the live machine's.
 */
#ifndef NW_TOPO_READ_KERNEL_LOG_H
#define NW_TOPO_READ_KERNEL_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "topo/scan.h"
#include "topo/topo.h"

enum { NW_LOG_MAX_DEVICES = 4096, NW_LOG_MAX_XIDS = 12 };

struct nw_log_device { /* one PCI device, or a network interface without an address */
    char pci[16], interface[32], driver[24], uuid[48];
    uint32_t pci_hash, interface_hash; /* a text may name one of thousands in each line */
    unsigned int vendor, id, class_id; /* of the kernel's own list at boot; 0: not there */
    char limited_by[96];               /* "16.0 GT/s PCIe x16 link at 0000:01:00.0" */
    double limited_bytes_per_s, capable_bytes_per_s; /* 0: not said */
    struct {
        int number, count;
    } xids[NW_LOG_MAX_XIDS];
    int xid_count; /* different ones */
    bool fallen;   /* "has fallen off the bus" without its Xid 79 */
    /* The port tells that an error came, the device which: the same one. */
    int corrected, corrected_announced, uncorrected, uncorrected_announced;
    /* The kernel, systemd-networkd and NetworkManager each tell of the same event. */
    int downs[3];
};

struct nw_log {
    struct nw_log_device *devices; /* owned */
    size_t count, capacity;
    int lines;
    const char *what; /* for errors; borrowed */
};

/* Takes one line in, if it says something. NW_EUSAGE beyond NW_LOG_MAX_DEVICES. */
nw_rc nw_log_line(struct nw_log *log, const char *line);
void nw_log_free(struct nw_log *log);
bool nw_log_says(const struct nw_log_device *device); /* an event, not just its name */
/* "79 x2, 63"; "": none */
void nw_log_xid_text(const struct nw_log_device *device, char text[96]);
int nw_log_downs(const struct nw_log_device *device);

/* Facts of a log to the devices of a machine that is known. nw_kernel_log_live (topo/system.h) does
 * so with the live log. */
nw_rc nw_kernel_log_apply(const char *data, size_t length, const char *what, const char *source,
                          struct nw_topo *topo);

bool nw_is_kernel_log(const char *data, size_t length);
nw_rc nw_read_kernel_log(const char *data, size_t length, const char *what,
                         struct nw_topo **topo_out);

#endif
