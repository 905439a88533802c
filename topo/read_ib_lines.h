/* Private to topo/. State of reading the RDMA tools' output, and the tools that print a line a
 * port. */
#ifndef NW_TOPO_READ_IB_LINES_H
#define NW_TOPO_READ_IB_LINES_H

#include "topo/read_ib.h"

struct nw_ib_reading {
    struct nw_topo *topo;
    char device[64];        /* the one whose lines follow; "": none */
    const char *source;     /* "ibstat" */
    struct nw_ib_port port; /* number 0: none is open */
    int port_node;          /* of the last port that was finished, -1 */
    int ports_promised, ports_of_device;
    int gids_promised, gids_read; /* promised: -1 when the footer is not there */
    bool cut;
};

nw_rc nw_ib_reading_nic(struct nw_ib_reading *reading, const char *device, int *nic_out);
nw_rc nw_ib_reading_put(struct nw_ib_reading *reading, const struct nw_ib_port *port,
                        int *port_out);
/* What the tool said before it stopped, as a finding. */
nw_rc nw_ib_reading_complaint(struct nw_ib_reading *reading, int line_number, const char *line);
/* After the last line. */
nw_rc nw_ib_reading_end(struct nw_ib_reading *reading);

/* rdma link, rdma dev, ibdev2netdev, show_gids: does the line belong to one of them? */
bool nw_ib_is_one_line(const char *line);
nw_rc nw_ib_read_one_line(struct nw_ib_reading *reading, char *line, bool *done_out);
/* Model and PCI ids of a Mellanox adapter. */
void nw_ib_name_model(struct nw_topo_node *nic, uint32_t pci_device);

#endif
