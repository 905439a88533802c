/* Private to topo/. What every reader of RDMA ports shares, the live one as well: the words of the
 * tools made one, rates as sold, NIC and port nodes found or added.
 *
 *     struct nw_ib_port port;
 *     nw_ib_port_init(&port, "mlx5_0", 1);
 *     nw_ib_state(&port, "4: ACTIVE");
 *     nw_ib_rate(&port, "200 Gb/sec (4X HDR)");
 *     NW_TRY(nw_ib_port_put(topo, &port, "ibstatus", NULL));
 *     …
 *     NW_TRY(nw_ib_finish(topo));        // what the NICs are, from their ports
 */
#ifndef NW_TOPO_READ_IB_H
#define NW_TOPO_READ_IB_H

#include <stdbool.h>

#include "topo/topo.h"

enum {
    NW_IB_MAX_PORTS = 2048, /* nodes of one text */
    NW_IB_MAX_GIDS = 16384,
};

struct nw_ib_port {
    char device[64];
    int number;                                         /* from 1 */
    char state[16], physical_state[32], link_layer[16]; /* "": unknown */
    char guid[24], interface[32], peer[128];
    double rate_bits_per_s;               /* as sold; 0: unknown */
    double lane_bits_per_s;               /* signalling; 0: unknown */
    int width;                            /* lanes; 0: unknown */
    double mtu_bytes, mtu_max_bytes, lid; /* NAN: unknown */
};

void nw_ib_port_init(struct nw_ib_port *port, const char *device, int number);
/* Each takes what a tool or sysfs prints and leaves the field alone when it says nothing. */
void nw_ib_state(struct nw_ib_port *port, const char *text);          /* "PORT_ACTIVE (4)" */
void nw_ib_physical_state(struct nw_ib_port *port, const char *text); /* "5: LinkUp" */
void nw_ib_link_layer(struct nw_ib_port *port, const char *text);
void nw_ib_rate(struct nw_ib_port *port, const char *text);  /* "100", "200 Gb/sec (4X HDR)" */
void nw_ib_width(struct nw_ib_port *port, const char *text); /* "4X (2)" */
/* A lane's rate in Gb/s, nominal (25) or signalled (25.78125), with port->width to the rate as
 * sold: 4 lanes of EDR are 100 Gb/s. */
void nw_ib_lane(struct nw_ib_port *port, double gbit_per_s);
/* The same by its name: "HDR". */
void nw_ib_lane_of_generation(struct nw_ib_port *port, const char *name);
void nw_ib_lid(struct nw_ib_port *port, const char *text);
/* "0x0002c90300000001", "0002:c903:0000:0001" to the latter; false: none, or all zero. */
bool nw_ib_guid(const char *text, char guid_out[24]);
/* "EDR" of a lane that signals 25.78125e9; NULL: no generation of InfiniBand. */
const char *nw_ib_generation(double lane_bits_per_s);

/* The NIC with that device name, added below the machine if there is none. */
nw_rc nw_ib_nic(struct nw_topo *topo, const char *device, int *nic_out);
/* The port's node with what is known of it as facts; a port that is not active has no rate: what
 * the tools print there is a placeholder. `port_out` may be NULL. */
nw_rc nw_ib_port_put(struct nw_topo *topo, const struct nw_ib_port *port, const char *source,
                     int *port_out);
/* The node of "mlx5_0/1"; -1: none. */
int nw_ib_port_find(const struct nw_topo *topo, int nic, int number);
/* One row of a GID table. An empty slot (all zero) is not added. `text` in any form of IPv6. */
nw_rc nw_ib_gid(struct nw_topo *topo, int port, int index, const char *text, const char *type,
                const char *interface);
/* Rate, port_up and fabric of every NIC that has ports. */
nw_rc nw_ib_finish(struct nw_topo *topo);

/* What the tools print: rows of nw_topo_formats. */
bool nw_is_ib(const char *data, size_t length);
nw_rc nw_read_ib(const char *data, size_t length, const char *what, struct nw_topo **topo_out);
bool nw_is_ib_fabric(const char *data, size_t length);
nw_rc nw_read_ib_fabric(const char *data, size_t length, const char *what,
                        struct nw_topo **topo_out);
/* An empty machine that knows its source. */
nw_rc nw_topo_start(const char *what, unsigned sources, struct nw_topo **topo_out);

#endif
