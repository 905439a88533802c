/* RDMA devices and their ports. "No RDMA" comes in several forms, all ordinary answers: no library,
 * a kernel without RDMA (the list is NULL with ENOSYS; rdma-core's own answer), one whose modules
 * see no device (an empty list). */
#include "collectives/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/verbs_parts.h"
#include "collectives/verbs_port.h"

enum { MAX_PORTS = 255 };

bool nw_verbs_built(void)
{
    return true;
}

/* IBV_MTU_256 (1) … IBV_MTU_4096 (5) */
static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

static int by_name(const void *a, const void *b, void *api)
{
    const struct nw_verbs_api *of = api;

    return strverscmp(of->get_device_name(*(struct ibv_device *const *)a),
                      of->get_device_name(*(struct ibv_device *const *)b));
}

static nw_rc add_port(struct nw_verbs *verbs, const char *device, int number,
                      struct nw_verbs_port **port_out)
{
    struct nw_verbs_port *ports =
        realloc(verbs->ports, (verbs->port_count + 1) * sizeof *verbs->ports);
    struct ibv_context **contexts;
    struct nw_verbs_seen *seen;

    if (ports != NULL)
        verbs->ports = ports;
    contexts = realloc(verbs->devices->contexts,
                       (verbs->port_count + 1) * sizeof *verbs->devices->contexts);
    if (contexts != NULL)
        verbs->devices->contexts = contexts;
    seen = realloc(verbs->devices->seen, (verbs->port_count + 1) * sizeof *seen);
    if (seen != NULL)
        verbs->devices->seen = seen;
    if (ports == NULL || contexts == NULL || seen == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the ports of %s", device);
    ports[verbs->port_count] = (struct nw_verbs_port){.number = number};
    contexts[verbs->port_count] = NULL;
    seen[verbs->port_count] = (struct nw_verbs_seen){.number = number};
    verbs->devices->count = verbs->port_count + 1;
    *port_out = &ports[verbs->port_count++];
    snprintf((*port_out)->device, sizeof(*port_out)->device, "%.63s", device);
    return nw_verbs_port_read(verbs->devices->sys, *port_out);
}

static void read_attributes(const struct nw_verbs_api *api, struct ibv_context *context,
                            const struct ibv_device_attr *device, struct nw_verbs_port *port)
{
    struct ibv_port_attr attr;

    memset(&attr, 0, sizeof attr); /* the plain call fills an older, shorter form */
    if (api->query_port(context, (uint8_t)port->number, &attr) == 0) {
        port->mtu_bytes = mtu_bytes(attr.active_mtu);
        port->max_mtu_bytes = mtu_bytes(attr.max_mtu);
        port->lid = attr.lid;
    }
    port->max_qp_depth = device->max_qp_wr;
}

static void word_closed(struct nw_verbs_port *port, int code)
{
    snprintf(port->closed, sizeof port->closed, "%s cannot be opened: %s%s", port->device,
             strerror(code),
             code == EACCES || code == EPERM ? "; give access to /dev/infiniband/uverbs* and "
                                               "rdma_cm (containers: --device=/dev/infiniband)"
             : code == ENOENT
                 ? "; /dev/infiniband is not in this container (--device=/dev/infiniband)"
                 : "");
}

static nw_rc add_device(struct nw_verbs *verbs, struct ibv_device *device)
{
    const struct nw_verbs_api *api = verbs->devices->api;
    const char *name = api->get_device_name(device);
    struct ibv_device_attr attr = {.phys_port_cnt = 1};
    struct nw_verbs_port *port = NULL;
    int code = 0, ports;

    errno = 0;
    struct ibv_context *context = api->open_device(device);
    if (context == NULL)
        code = errno != 0 ? errno : EIO;
    else if (api->query_device(context, &attr) != 0)
        attr.phys_port_cnt = 1;
    ports = attr.phys_port_cnt > 0 ? attr.phys_port_cnt : 1;
    for (int number = 1; number <= ports && verbs->port_count < MAX_PORTS; number++) {
        const nw_rc rc = add_port(verbs, name, number, &port);

        if (rc != NW_OK) {
            if (context != NULL && number == 1)
                (void)api->close_device(context);
            return rc;
        }
        verbs->devices->contexts[verbs->port_count - 1] = context;
        if (context != NULL)
            read_attributes(api, context, &attr, port);
        else
            word_closed(port, code);
    }
    return NW_OK;
}

static nw_rc list_devices(struct nw_verbs *verbs)
{
    const struct nw_verbs_api *api = verbs->devices->api;
    int count = 0;
    nw_rc rc = NW_OK;

    errno = 0;
    struct ibv_device **list = api->get_device_list(&count);
    if (list == NULL) {
        const int code = errno;

        snprintf(verbs->why, sizeof verbs->why, "no RDMA: %s",
                 code == ENOSYS || code == ENODEV
                     ? "this kernel has no RDMA support loaded (ib_uverbs)"
                     : strerror(code));
        return NW_OK;
    }
    if (count > 1)
        qsort_r(list, (size_t)count, sizeof *list, by_name, (void *)(uintptr_t)api);
    for (int i = 0; i < count && rc == NW_OK && verbs->port_count < MAX_PORTS; i++)
        rc = add_device(verbs, list[i]);
    api->free_device_list(list);
    if (rc == NW_OK && verbs->port_count == 0)
        snprintf(
            verbs->why, sizeof verbs->why,
            "no RDMA: the kernel knows RDMA but sees no device (is the NIC's driver loaded, is "
            "it passed to this container?)");
    return rc;
}

nw_rc nw_verbs_open_api(const struct nw_verbs_api *api, const char *sys,
                        struct nw_verbs **verbs_out)
{
    struct nw_verbs *verbs = calloc(1, sizeof *verbs);
    nw_rc rc;

    if (verbs != NULL)
        verbs->devices = calloc(1, sizeof *verbs->devices);
    if (verbs == NULL || verbs->devices == NULL) {
        free(verbs);
        return nw_fail(NW_ENOMEM, "out of memory for the RDMA devices");
    }
    verbs->devices->api = api;
    verbs->devices->sys = sys;
    rc = list_devices(verbs);
    if (rc != NW_OK) {
        nw_verbs_close(verbs);
        return rc;
    }
    *verbs_out = verbs;
    return NW_OK;
}

/* Without the library it is the list of a machine that has none. */
static struct ibv_device **no_list(int *count)
{
    *count = 0;
    errno = ENOENT;
    return NULL;
}

nw_rc nw_verbs_open(struct nw_verbs **verbs_out)
{
    static const struct nw_verbs_api none = {.get_device_list = no_list};
    const struct nw_verbs_api *api;

    if (nw_verbs_api_open(&api) == NW_OK)
        return nw_verbs_open_api(api, "/sys", verbs_out);
    const struct nw_err error = *nw_last_error();
    nw_clear_error();
    NW_TRY(nw_verbs_open_api(&none, "/sys", verbs_out));
    snprintf((*verbs_out)->why, sizeof(*verbs_out)->why, "no RDMA: %.220s", error.text);
    return NW_OK;
}

void nw_verbs_close(struct nw_verbs *verbs)
{
    if (verbs == NULL)
        return;
    for (size_t i = 0; i < verbs->port_count; i++) {
        struct ibv_context *context = verbs->devices->contexts[i];

        free(verbs->ports[i].gids);
        if (context != NULL && (i == 0 || verbs->devices->contexts[i - 1] != context))
            (void)verbs->devices->api->close_device(context);
    }
    free(verbs->devices->contexts);
    free(verbs->devices->seen);
    free(verbs->devices);
    free(verbs->ports);
    free(verbs);
}
