/* What only verbs tell of a port: the MTU in force and at most (sysfs has none). libibverbs is
 * opened at run time: one binary starts on machines with and without it. Built where its header is
 * (NW_HAVE_VERBS). Its structures are of the library's stable interface (symbol version
 * IBVERBS_1.1); struct ibv_port_attr has only grown at its end. */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "base/library.h"
#include "topo/live_rdma.h"
#include "topo/read_ib.h"
#include "topo/system.h"

#undef ibv_query_port /* a macro that checks for newer drivers; the plain function is enough here  \
                       */

struct verbs {
    struct ibv_device **(*get_device_list)(int *count);
    void (*free_device_list)(struct ibv_device **list);
    const char *(*get_device_name)(struct ibv_device *device);
    struct ibv_context *(*open_device)(struct ibv_device *device);
    int (*close_device)(struct ibv_context *context);
    int (*query_port)(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr);
};

#define SYMBOL(field)                                                                              \
    {                                                                                              \
        offsetof(struct verbs, field), "ibv_" #field, NULL, true                                   \
    }
static const struct nw_library_symbol symbols[] = {
    SYMBOL(get_device_list), SYMBOL(free_device_list), SYMBOL(get_device_name),
    SYMBOL(open_device),     SYMBOL(close_device),     SYMBOL(query_port),
};

/* IBV_MTU_256 (1) … IBV_MTU_4096 (5) */
static double mtu_bytes(enum ibv_mtu mtu)
{
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? (double)(128 << mtu) : 0;
}

static nw_rc read_ports(const struct verbs *verbs, struct ibv_context *context,
                        struct nw_topo *topo, int nic)
{
    for (size_t i = 0; i < topo->node_count; i++) {
        struct ibv_port_attr attr;
        const char *slash = strrchr(topo->nodes[i].name, '/');
        int number;

        if (topo->nodes[i].kind != NW_NODE_PORT || topo->nodes[i].parent != nic || slash == NULL ||
            sscanf(slash, "/%3d", &number) != 1)
            continue;
        memset(&attr, 0, sizeof attr);
        if (verbs->query_port(context, (uint8_t)number, &attr) != 0)
            continue;
        if (mtu_bytes(attr.active_mtu) > 0)
            NW_TRY(
                nw_topo_set_number(topo, (int)i, NW_FACT_MTU, mtu_bytes(attr.active_mtu), "verbs"));
        if (mtu_bytes(attr.max_mtu) > 0)
            NW_TRY(nw_topo_set_number(topo, (int)i, NW_FACT_MTU_MAX, mtu_bytes(attr.max_mtu),
                                      "verbs"));
    }
    return NW_OK;
}

/* The NIC that has the RDMA device among its names; -1: none. */
static int nic_of(const struct nw_topo *topo, const char *device)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_NIC && strcmp(topo->nodes[i].name, device) == 0)
            return (int)i;
    return -1;
}

static nw_rc read_devices(const struct verbs *verbs, struct nw_topo *topo)
{
    int count = 0, closed = 0;
    struct ibv_device **list = verbs->get_device_list(&count);
    nw_rc rc = NW_OK;

    for (int i = 0; list != NULL && i < count && rc == NW_OK; i++) {
        const int nic = nic_of(topo, verbs->get_device_name(list[i]));
        struct ibv_context *context = nic >= 0 ? verbs->open_device(list[i]) : NULL;

        closed += nic >= 0 && context == NULL;
        if (context == NULL)
            continue;
        rc = read_ports(verbs, context, topo, nic);
        (void)verbs->close_device(context);
    }
    if (list != NULL)
        verbs->free_device_list(list);
    if (rc != NW_OK || closed == 0)
        return rc;
    return nw_topo_not_checked(topo,
                               "MTU of %d RDMA devices (they may not be opened: give access to "
                               "/dev/infiniband/uverbs*)",
                               closed);
}

nw_rc nw_rdma_verbs(struct nw_topo *topo)
{
    static const char file[] = "libibverbs.so.1";
    struct verbs verbs;
    void *library;
    bool any = false;
    nw_rc rc;

    for (size_t i = 0; i < topo->node_count; i++)
        any |= topo->nodes[i].kind == NW_NODE_PORT;
    if (!any)
        return NW_OK;
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return NW_OK; /* sysfs has told the rest */
    rc = nw_library_symbols(library, file, symbols, sizeof symbols / sizeof *symbols, &verbs);
    if (rc == NW_OK)
        rc = read_devices(&verbs, topo);
    else
        nw_clear_error();
    (void)dlclose(library);
    return rc == NW_ENODEV ? NW_OK : rc;
}
