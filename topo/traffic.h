/* Public. How many bytes each port of this host has sent and received since it came up, as the
 * kernel and the NICs count them. Two readings around some work say which ports carried it.
 *
 * RDMA does not show in a network interface's own counter, nor TCP in a RoCE port's: both stand in
 * the list. InfiniBand's port counts IP over InfiniBand, too; its interface is left out.
 *
 *     struct nw_traffic before, after;
 *     nw_traffic_read(NULL, &before);
 *     …
 *     nw_traffic_read(NULL, &after);
 *     nw_traffic_since(&before, &after, &moved);
 */
#ifndef NW_TOPO_TRAFFIC_H
#define NW_TOPO_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>

/* A host of containers has an interface for each: where there are more, virtual ones are left out.
 */
#define NW_TRAFFIC_PORTS_MAX 512

struct nw_traffic_port {
    char name[32];     /* "mlx5_0", "mlx5_0/2", "eth0" */
    bool rdma;         /* counts RDMA; else what goes through the kernel */
    bool physical;     /* a device is behind it; else a veth, a tunnel, … */
    double bits_per_s; /* line rate; 0: unknown, or no physical port */
    double sent_bytes, received_bytes;
};

struct nw_traffic {
    /* Those that are up and count: of RDMA, then interfaces of devices, then virtual ones. */
    struct nw_traffic_port ports[NW_TRAFFIC_PORTS_MAX];
    size_t count, left_out;
};

/* `root`: folder that stands for /sys; NULL: /sys. What cannot be read is left out. */
void nw_traffic_read(const char *root, struct nw_traffic *traffic_out);
/* Of the ports that both have. A counter that went back (it was reset) counts as none. */
void nw_traffic_since(const struct nw_traffic *before, const struct nw_traffic *after,
                      struct nw_traffic *moved_out);

#endif
