/* RDMA devices that have another name than their place says: jobs choose NICs by name
 * (NCCL_IB_HCA), so a moved name means another NIC, another rail, another socket. */
#include <ctype.h>
#include <stdlib.h>

#include "topo/preflight_run.h"

/* Fewer say nothing of an order. */
#define NAMES_MIN 4

struct named {
    const char *pci;
    int node;
    long number;  /* 3 of "mlx5_3" */
    size_t chain; /* length of the longest rising chain of numbers that ends here */
};

/* The number at the end, -1: none. */
static long number_of(const char *name)
{
    size_t at = strlen(name);

    while (at > 0 && isdigit((unsigned char)name[at - 1]))
        at--;
    return name[at] != '\0' && strlen(name + at) < 6 ? strtol(name + at, NULL, 10) : -1;
}

static bool same_prefix(const char *a, const char *b)
{
    size_t i = 0;

    while (a[i] != '\0' && a[i] == b[i] && !isdigit((unsigned char)a[i]))
        i++;
    return i > 0 && (isdigit((unsigned char)a[i]) || a[i] == '_') &&
           (isdigit((unsigned char)b[i]) || b[i] == '_');
}

static int by_pci(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->pci, ((const struct named *)b)->pci);
}

/* RDMA NICs named as `first` is, in the same PCI domain and of its model, in order of their PCI
 * address. */
static size_t collect(const struct nw_topo *topo, int first, struct named *names)
{
    const struct nw_topo_node *own = &topo->nodes[first];
    size_t count = 0;

    for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;) {
        const struct nw_topo_node *nic = &topo->nodes[i];

        if (nw_is_rdma(nic) && nic->pci[0] != '\0' && number_of(nic->name) >= 0 &&
            nw_is_alike(nic, own) && strncmp(nic->pci, own->pci, 5) == 0 &&
            same_prefix(nic->name, own->name))
            names[count++] =
                (struct named){.pci = nic->pci, .node = i, .number = number_of(nic->name)};
    }
    qsort(names, count, sizeof *names, by_pci);
    return count;
}

/* Marks with chain 0 what is not part of the longest rising chain; returns how many. */
static size_t mark_moved(struct named *names, size_t count)
{
    size_t longest = 0, wanted;
    long below = 1000000;

    for (size_t i = 0; i < count; i++) {
        names[i].chain = 1;
        for (size_t k = 0; k < i; k++)
            if (names[k].number < names[i].number && names[k].chain >= names[i].chain)
                names[i].chain = names[k].chain + 1;
        longest = names[i].chain > longest ? names[i].chain : longest;
    }
    wanted = longest;
    for (size_t i = count; i-- > 0;) {
        const bool in = wanted > 0 && names[i].chain == wanted && names[i].number < below;

        if (in) {
            below = names[i].number;
            wanted--;
        } else {
            names[i].chain = 0;
        }
    }
    return count - longest;
}

static nw_rc tell_moved(struct nw_preflight_run *run, size_t host, const struct named *names,
                        size_t count)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    for (size_t i = 0; i < count; i++) {
        if (names[i].chain > 0)
            continue;
        NW_TRY(nw_tell(run, host, names[i].node, NW_FINDING_WARN, "nic-name-moved",
                       "name RDMA devices by their place (udev, rdma_rename by PCI), as on the "
                       "other hosts",
                       "%s is at %s: the numbers of the others rise with the PCI address",
                       topo->nodes[names[i].node].name, names[i].pci));
        NW_TRY(nw_tell_effect(run, NAN,
                              "NCCL_IB_HCA and rail-optimised networks take another NIC than was "
                              "meant"));
    }
    return NW_OK;
}

nw_rc nw_preflight_nic_names(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    struct named *names = calloc(topo->node_count + 1, sizeof *names);
    nw_rc rc = NW_OK;

    if (names == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the names of NICs");
    for (int i = -1; rc == NW_OK && (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;) {
        const size_t count = collect(topo, i, names);
        size_t moved;

        if (count < NAMES_MIN || names[0].node != i)
            continue; /* once, by the first in order */
        moved = mark_moved(names, count);
        /* A few out of order are an exception; without an order there is none. */
        if (moved > 0 && 3 * moved <= count)
            rc = tell_moved(run, host, names, count);
    }
    free(names);
    return rc;
}

static const struct nw_topo_node *nic_at(const struct nw_topo *topo, const char *pci)
{
    for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;)
        if (strcmp(topo->nodes[i].pci, pci) == 0)
            return &topo->nodes[i];
    return NULL;
}

/* Hosts with NICs at the same addresses are built alike, and should name them alike. */
static bool same_places(const struct nw_topo *a, const struct nw_topo *b)
{
    int count = 0;

    for (int i = -1; (i = nw_next(a, NW_NODE_NIC, i)) >= 0;) {
        if (!nw_is_rdma(&a->nodes[i]))
            continue;
        if (a->nodes[i].pci[0] == '\0' || nic_at(b, a->nodes[i].pci) == NULL)
            return false;
        count++;
    }
    return count > 1;
}

nw_rc nw_preflight_nic_names_hosts(struct nw_preflight_run *run)
{
    for (size_t host = 1; host < run->input->host_count; host++) {
        const struct nw_topo *first = nw_run_host(run, 0), *topo = nw_run_host(run, host);
        char name[96];

        if (!same_places(first, topo) || !same_places(topo, first))
            continue;
        for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;) {
            const struct nw_topo_node *nic = &topo->nodes[i];
            const struct nw_topo_node *other = nw_is_rdma(nic) ? nic_at(first, nic->pci) : NULL;

            if (other != NULL && strcmp(other->name, nic->name) != 0)
                NW_TRY(nw_tell(run, host, i, NW_FINDING_WARN, "nic-names-differ",
                               "name RDMA devices by their place (udev, rdma_rename by PCI) on all "
                               "hosts",
                               "at %s is %s here and %s on %s: NCCL_IB_HCA means different NICs",
                               nic->pci, nic->name, other->name, nw_host_name(run, 0, name)));
        }
    }
    return NW_OK;
}
