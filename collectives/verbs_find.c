/* What needs neither a device nor the library. */
#include <stdio.h>
#include <string.h>

#include "collectives/verbs.h"

static void list_ports(const struct nw_verbs *verbs, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < verbs->port_count && used + 100 < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s/%d (%s)", i > 0 ? ", " : "",
                             verbs->ports[i].device, verbs->ports[i].number, verbs->ports[i].state);
}

bool nw_verbs_is_driven(const struct nw_verbs_port *port)
{
    return port->roce || (!port->iwarp && strcmp(port->link_layer, "infiniband") == 0);
}

nw_rc nw_verbs_find_port(const struct nw_verbs *verbs, const char *device, int number,
                         const struct nw_verbs_port **port_out)
{
    char ports[600];

    if (verbs->port_count == 0)
        return nw_fail(NW_ENODEV, "%s", verbs->why);
    for (size_t i = 0; i < verbs->port_count; i++) {
        const struct nw_verbs_port *port = &verbs->ports[i];

        if ((device != NULL && strcmp(device, port->device) != 0) ||
            (number > 0 && number != port->number) ||
            (device == NULL && number <= 0 &&
             (!port->active || port->closed[0] != '\0' || !nw_verbs_is_driven(port))))
            continue;
        *port_out = port;
        return NW_OK;
    }
    list_ports(verbs, ports, sizeof ports);
    if (device == NULL && number <= 0)
        return nw_fail(
            NW_ENODEV,
            "no RDMA port that this program drives (RoCE, InfiniBand) is active; there are: %s",
            ports);
    return nw_fail(NW_EUSAGE, "there is no RDMA port %s/%d; there are: %s",
                   device != NULL ? device : "*", number > 0 ? number : 1, ports);
}

const char *nw_verbs_op_name(nw_verbs_op op)
{
    static const char *const names[NW_VERBS_OP_COUNT] = {
        [NW_VERBS_WRITE] = "write", [NW_VERBS_READ] = "read", [NW_VERBS_SEND] = "send"};

    return (unsigned)op < NW_VERBS_OP_COUNT ? names[op] : "unknown";
}

/* A cache line apart at least: what the next message writes is never being read. */
uint64_t nw_verbs_stride(uint64_t bytes)
{
    const uint64_t line = 64;

    return bytes == 0 ? line : (bytes + line - 1) / line * line;
}

uint64_t nw_verbs_slots(const struct nw_verbs_run *run)
{
    const uint64_t slots = run->span_bytes / nw_verbs_stride(run->bytes);

    return slots > 0 ? slots : 1;
}
