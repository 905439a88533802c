/* NCCL's topology file. NCCL's own parser (src/graph/xml.cc) takes elements and attributes with
 * double quotes, blanks and newlines, comments, and nothing else: no declaration, no tabs. It fills
 * in what an element lacks from the machine that it runs on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topo/ceiling.h"
#include "topo/write.h"

enum { DEPTH_AT_MOST = 40 };

struct writing {
    const struct nw_topo *topo;
    FILE *stream;
    int *first, *next; /* children of each node, in order */
    bool *done;
    int net_count, rank_count;
    int level; /* bridges above, also those that are not written */
};

static void print_text(FILE *stream, const char *text)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '"':
            fputs("&quot;", stream);
            break;
        case '&':
            fputs("&amp;", stream);
            break;
        case '<':
            fputs("&lt;", stream);
            break;
        default:
            fputc(*text, stream);
            break;
        }
}

static void indent(const struct writing *writing, int depth)
{
    fprintf(writing->stream, "%*s", 2 * depth, "");
}

static nw_rc index_children(struct writing *writing)
{
    const size_t count = writing->topo->node_count;
    int *last = calloc(count, sizeof *last);

    writing->first = calloc(count, sizeof *writing->first);
    writing->next = calloc(count, sizeof *writing->next);
    writing->done = calloc(count, sizeof *writing->done);
    if (last == NULL || writing->first == NULL || writing->next == NULL || writing->done == NULL) {
        free(last);
        return nw_fail(NW_ENOMEM, "out of memory for %zu nodes", count);
    }
    for (size_t i = 1; i < count; i++) { /* 0 ends a list: the machine is nobody's child */
        const int parent = writing->topo->nodes[i].parent;

        if (last[parent] == 0)
            writing->first[parent] = (int)i;
        else
            writing->next[last[parent]] = (int)i;
        last[parent] = (int)i;
    }
    free(last);
    return NW_OK;
}

/* --- PCI devices --- */

static void print_link(const struct writing *writing, int node)
{
    static const char *const speeds[] = {"",
                                         "2.5 GT/s PCIe",
                                         "5.0 GT/s PCIe",
                                         "8.0 GT/s PCIe",
                                         "16.0 GT/s PCIe",
                                         "32.0 GT/s PCIe",
                                         "64.0 GT/s PCIe"};
    const double told = nw_topo_number(writing->topo, node, NW_FACT_LINK_MAX_GENERATION);
    int generation = 0, lanes = writing->topo->nodes[node].link_max_lanes;

    if (told >= 1 && told <= 6)
        generation = (int)told;
    else
        nw_pcie_from_rate(nw_ceiling_pcie(writing->topo, node), &generation, &lanes);
    fprintf(writing->stream, " link_speed=\"%s\" link_width=\"%d\"", speeds[generation], lanes);
}

/* NCCL decides by the class what a device is. */
static unsigned class_of(const struct nw_topo_node *node)
{
    if (node->pci_class != 0)
        return node->pci_class << 8;
    return node->kind == NW_NODE_GPU      ? 0x030200
           : node->kind == NW_NODE_BRIDGE ? 0x060400
           : node->kind == NW_NODE_NIC    ? 0x020000
                                          : 0;
}

static void print_pci(const struct writing *writing, int node, int depth)
{
    const struct nw_topo_node *at = &writing->topo->nodes[node];

    indent(writing, depth);
    fprintf(writing->stream, "<pci busid=\"");
    print_text(writing->stream, at->pci);
    fputs("\"", writing->stream);
    if (class_of(at) != 0)
        fprintf(writing->stream, " class=\"0x%06x\"", class_of(at) & 0xffffff);
    if (at->pci_vendor != 0)
        fprintf(writing->stream, " vendor=\"0x%04x\" device=\"0x%04x\"", at->pci_vendor & 0xffff,
                at->pci_device & 0xffff);
    print_link(writing, node);
}

/* --- GPUs --- */

/* hwloc's matrices give rates, not counts. */
static int lanes_of(const struct writing *writing, const struct nw_topo_link *link)
{
    const struct nw_topo_node *node = &writing->topo->nodes[link->a];
    const double one =
        link->kind == NW_LINK_XGMI
            ? nw_xgmi_bytes_per_s(node->model)
            : nw_nvlink_bytes_per_s_of(node->model,
                                       nw_topo_number(writing->topo, link->a, NW_FACT_CAPABILITY));
    const double lanes = link->bytes_per_s / one;

    if (link->lane_count > 0)
        return link->lane_count;
    return lanes >= 1.5 && lanes < 100 ? (int)(lanes + 0.5) : 1;
}

static void print_peers(const struct writing *writing, int gpu, int depth, nw_link_kind kind,
                        const char *element)
{
    const struct nw_topo *topo = writing->topo;

    for (size_t i = 0; i < topo->link_count; i++) {
        const struct nw_topo_link *link = &topo->links[i];
        const int peer = link->a == gpu ? link->b : link->a;

        if (link->kind != kind || (link->a != gpu && link->b != gpu) ||
            topo->nodes[peer].pci[0] == '\0')
            continue;
        indent(writing, depth);
        fprintf(writing->stream, "<%s target=\"", element);
        print_text(writing->stream, topo->nodes[peer].pci);
        fprintf(writing->stream, "\" count=\"%d\" tclass=\"0x%06x\"/>\n", lanes_of(writing, link),
                class_of(&topo->nodes[peer]) & 0xffffff);
    }
}

static void print_c2c(const struct writing *writing, int gpu, int depth)
{
    for (size_t i = 0; i < writing->topo->link_count; i++) {
        const struct nw_topo_link *link = &writing->topo->links[i];

        if (link->kind != NW_LINK_C2C || (link->a != gpu && link->b != gpu) ||
            link->lane_count == 0)
            continue;
        fprintf(writing->stream, "%*s<c2c bw=\"%.0f\" count=\"%d\"/>\n", 2 * depth, "",
                link->bytes_per_s / 1e6 / link->lane_count, link->lane_count);
    }
}

static void print_nvlink(const struct writing *writing, int gpu, int depth)
{
    const struct nw_topo *topo = writing->topo;
    const double told = nw_topo_number(topo, gpu, NW_FACT_NVLINK_COUNT);
    bool switched;
    int lanes;

    (void)nw_ceiling_nvlink(topo, gpu, &lanes, &switched);
    if (switched && lanes > 0) {
        indent(writing, depth); /* what NCCL writes for a switch that it cannot see */
        fprintf(writing->stream,
                "<nvlink target=\"fffffff:ffff:ff\" count=\"%d\" tclass=\"0x068000\"/>\n", lanes);
        return;
    }
    print_peers(writing, gpu, depth, NW_LINK_NVLINK, "nvlink");
    for (size_t i = 0; i < topo->link_count; i++)
        if (topo->links[i].kind == NW_LINK_NVLINK &&
            (topo->links[i].a == gpu || topo->links[i].b == gpu))
            return;
    if (told > 0) { /* some, and to whom is unknown: as Azure's templates have it */
        indent(writing, depth);
        fprintf(writing->stream, "<nvlink target=\"");
        print_text(writing->stream, topo->nodes[gpu].pci);
        fprintf(writing->stream, "\" count=\"%.0f\" tclass=\"0x030200\"/>\n", told);
    }
}

static void print_gpu(struct writing *writing, int gpu, int depth)
{
    const struct nw_topo *topo = writing->topo;
    const struct nw_topo_node *node = &topo->nodes[gpu];
    const double told = nw_topo_number(topo, gpu, NW_FACT_GPU_INDEX);
    const double capability = nw_topo_number(topo, gpu, NW_FACT_CAPABILITY);
    const double gdr = nw_topo_number(topo, gpu, NW_FACT_GDR);
    const bool amd = node->pci_vendor == 0x1002;
    const char *gcn = strstr(node->model, "gfx");
    int dev = writing->rank_count;

    if (isfinite(told))
        dev = (int)told;
    else
        (void)sscanf(node->name, "gpu%7d", &dev);
    print_pci(writing, gpu, depth);
    if ((topo->gaps & NW_TOPO_NO_NVLINK) != 0 && isnan(told) &&
        isnan(nw_topo_number(topo, gpu, NW_FACT_NVLINK_COUNT))) {
        fputs("/>\n", writing->stream); /* a <gpu> without links would say that it has none */
        return;
    }
    fputs(">\n", writing->stream);
    indent(writing, depth + 1);
    fprintf(writing->stream, "<gpu dev=\"%d\"", dev);
    if (isfinite(capability))
        fprintf(writing->stream, " sm=\"%.0f\"", capability);
    if (amd && gcn != NULL)
        fprintf(writing->stream, " gcn=\"%.*s\"", (int)strspn(gcn, "gfx0123456789abcdef"), gcn);
    fprintf(writing->stream, " rank=\"%d\"", writing->rank_count++);
    if (isfinite(gdr))
        fprintf(writing->stream, " gdr=\"%.0f\"", gdr);
    fputs(">\n", writing->stream);
    print_nvlink(writing, gpu, depth + 2);
    print_peers(writing, gpu, depth + 2, NW_LINK_XGMI, "xgmi");
    print_c2c(writing, gpu, depth + 2);
    fprintf(writing->stream, "%*s</gpu>\n%*s</pci>\n", 2 * depth + 2, "", 2 * depth, "");
}

/* --- NICs --- */

static bool is_socket(const struct nw_topo_node *nic)
{
    return strcmp(nic->fabric, "ethernet") == 0 || strcmp(nic->fabric, "wifi") == 0;
}

static void print_net(struct writing *writing, int nic, int depth)
{
    const struct nw_topo *topo = writing->topo;
    const struct nw_topo_node *node = &topo->nodes[nic];
    const char *card = nw_topo_text(topo, nic, NW_FACT_CARD);
    const double port = nw_topo_number(topo, nic, NW_FACT_CARD_PORT);
    const double gdr = nw_topo_number(topo, nic, NW_FACT_GDR);

    writing->done[nic] = true;
    indent(writing, depth);
    fprintf(writing->stream, "<net name=\"");
    print_text(writing->stream, node->name);
    fprintf(writing->stream, "\" dev=\"%d\"", writing->net_count);
    if (node->rate_bits_per_s > 0)
        fprintf(writing->stream, " speed=\"%.0f\"", node->rate_bits_per_s / 1e6);
    fprintf(writing->stream, " port=\"%.0f\"", isfinite(port) ? port : is_socket(node) ? 0 : 1);
    if (card != NULL) {
        fputs(" guid=\"", writing->stream);
        print_text(writing->stream, card);
        fputs("\"", writing->stream);
    } else if (is_socket(node)) {
        fprintf(writing->stream, " guid=\"0x%x\"", writing->net_count);
    }
    if (isfinite(gdr))
        fprintf(writing->stream, " gdr=\"%.0f\"", gdr);
    fputs("/>\n", writing->stream);
    writing->net_count++;
}

/* Other functions of its card that have no address of their own. */
static bool shares_card(const struct writing *writing, int nic, int other)
{
    const struct nw_topo *topo = writing->topo;
    const char *a = nw_topo_text(topo, nic, NW_FACT_CARD);
    const char *b = nw_topo_text(topo, other, NW_FACT_CARD);

    return topo->nodes[other].kind == NW_NODE_NIC && topo->nodes[other].pci[0] == '\0' &&
           topo->nodes[other].pci_vendor != 0 && a != NULL && b != NULL && strcmp(a, b) == 0;
}

static void print_nic(struct writing *writing, int nic, int depth)
{
    const struct nw_topo *topo = writing->topo;
    const bool named = topo->nodes[nic].os_names[0] != '\0';

    print_pci(writing, nic, depth);
    writing->done[nic] = true;
    if (!named || topo->nodes[nic].port_up == 0) {
        fputs("/>\n", writing->stream); /* NCCL leaves out ports that are down */
        return;
    }
    fputs(">\n", writing->stream);
    indent(writing, depth + 1);
    fputs("<nic>\n", writing->stream);
    print_net(writing, nic, depth + 2);
    for (int i = writing->first[topo->nodes[nic].parent]; i > 0; i = writing->next[i])
        if (!writing->done[i] && shares_card(writing, nic, i))
            print_net(writing, i, depth + 2);
    indent(writing, depth + 1);
    fputs("</nic>\n", writing->stream);
    indent(writing, depth);
    fputs("</pci>\n", writing->stream);
}

/* NICs of this parent that are no PCI devices: virtual machines, and what hangs below a bridge that
 * stands for a card. */
static void print_loose_nets(struct writing *writing, int parent, int depth)
{
    const struct nw_topo *topo = writing->topo;
    bool open = false;

    for (int i = writing->first[parent]; i > 0; i = writing->next[i]) {
        if (topo->nodes[i].kind != NW_NODE_NIC || topo->nodes[i].pci[0] != '\0' ||
            writing->done[i] || topo->nodes[i].port_up == 0)
            continue;
        if (!open) {
            indent(writing, depth);
            fputs("<nic>\n", writing->stream);
        }
        open = true;
        print_net(writing, i, depth + 1);
    }
    if (open) {
        indent(writing, depth);
        fputs("</nic>\n", writing->stream);
    }
}

/* --- the tree --- */

/* Levels below the host bridge; 0: the tree has none. */
static int bridge_level(const struct nw_topo *topo, int node)
{
    int level = 0;

    for (; node > 0; node = topo->nodes[node].parent) {
        if (topo->nodes[node].kind == NW_NODE_BRIDGE && topo->nodes[node].pci[0] == '\0')
            return level;
        level++;
    }
    return 0;
}

/* NCCL has one node for a switch, its upstream port: every other level below a host bridge. A port
 * of the host bridge itself counts where several functions hang on it. */
static bool is_wanted(const struct writing *writing, int bridge)
{
    const struct nw_topo *topo = writing->topo;
    const int level = bridge_level(topo, bridge);
    int devices = 0;

    if (topo->nodes[bridge].pci[0] == '\0')
        return false;
    if (level == 0)
        return true;
    for (int i = writing->first[bridge]; i > 0; i = writing->next[i])
        devices += topo->nodes[i].kind == NW_NODE_GPU || topo->nodes[i].kind == NW_NODE_NIC;
    return level % 2 == 0 || (level == 1 && devices > 1);
}

static nw_rc print_children(struct writing *writing, int parent, int depth);

static nw_rc print_bridge(struct writing *writing, int bridge, int depth)
{
    if (!is_wanted(writing, bridge))
        return print_children(writing, bridge, depth);
    print_pci(writing, bridge, depth);
    fputs(">\n", writing->stream);
    NW_TRY(print_children(writing, bridge, depth + 1));
    indent(writing, depth);
    fputs("</pci>\n", writing->stream);
    return NW_OK;
}

static nw_rc print_children(struct writing *writing, int parent, int depth)
{
    const struct nw_topo *topo = writing->topo;
    nw_rc rc = NW_OK;

    if (++writing->level > DEPTH_AT_MOST)
        return nw_fail(NW_ENOTSUP,
                       "more than %d PCI bridges above each other: NCCL's topology file is not "
                       "written",
                       (int)DEPTH_AT_MOST);
    for (int i = writing->first[parent]; i > 0 && rc == NW_OK; i = writing->next[i]) {
        const bool addressed = topo->nodes[i].pci[0] != '\0';

        if (topo->nodes[i].kind == NW_NODE_BRIDGE)
            rc = print_bridge(writing, i, depth);
        else if (topo->nodes[i].kind == NW_NODE_GPU && addressed)
            print_gpu(writing, i, depth);
        else if (topo->nodes[i].kind == NW_NODE_NIC && addressed && !writing->done[i])
            print_nic(writing, i, depth);
    }
    print_loose_nets(writing, parent, depth);
    writing->level--;
    return rc;
}

/* "GenuineIntel family 6 model 143"; a CPU that is known by its product name is left to NCCL. */
static void print_cpu_model(const struct writing *writing)
{
    const char *cpu = nw_topo_text(writing->topo, 0, NW_FACT_CPU);
    char vendor[32];
    int family, model;

    if (cpu != NULL && sscanf(cpu, "%31s family %d model %d", vendor, &family, &model) == 3) {
        fputs(" arch=\"x86_64\" vendor=\"", writing->stream);
        print_text(writing->stream, vendor);
        fprintf(writing->stream, "\" familyid=\"%d\" modelid=\"%d\"", family, model);
    }
}

static nw_rc print_cpu(struct writing *writing, int node)
{
    const struct nw_topo *topo = writing->topo;
    const char *host = nw_topo_text(topo, node, NW_FACT_HOST_HASH);

    fputs("  <cpu", writing->stream);
    if (host != NULL) {
        fputs(" host_hash=\"", writing->stream);
        print_text(writing->stream, host);
        fputs("\"", writing->stream);
    }
    fprintf(writing->stream, " numaid=\"%d\"", topo->nodes[node].numa);
    print_cpu_model(writing);
    fputs(">\n", writing->stream);
    NW_TRY(print_children(writing, node, 2));
    print_loose_nets(writing, 0, 2); /* once: NCCL, too, hangs them below the first */
    fputs("  </cpu>\n", writing->stream);
    return NW_OK;
}

/* Of a NUMA node; or right below the machine or a package, where the NUMA node is unknown. */
static bool has_devices(const struct writing *writing, int parent)
{
    for (int i = writing->first[parent]; i > 0; i = writing->next[i]) {
        const struct nw_topo_node *node = &writing->topo->nodes[i];

        if (node->kind == NW_NODE_BRIDGE || node->kind == NW_NODE_GPU ||
            (node->kind == NW_NODE_NIC && node->pci[0] != '\0'))
            return true;
    }
    return false;
}

/* NICs that are no PCI devices and have found no <cpu> yet. */
static bool has_loose_nets(const struct writing *writing)
{
    for (int i = writing->first[0]; i > 0; i = writing->next[i])
        if (writing->topo->nodes[i].kind == NW_NODE_NIC && !writing->done[i] &&
            writing->topo->nodes[i].port_up != 0)
            return true;
    return false;
}

static nw_rc write_all(struct writing *writing)
{
    const struct nw_topo *topo = writing->topo;

    fputs("<system version=\"1\">\n", writing->stream);
    if (nw_topo_number(topo, 0, NW_FACT_SIMULATED) > 0)
        fputs("  <!-- SIMULATED: the GPUs are those of a pretended machine -->\n", writing->stream);
    for (int i = 0; i < (int)topo->node_count; i++) {
        const nw_node_kind kind = topo->nodes[i].kind;

        if (kind == NW_NODE_NUMA && has_devices(writing, i))
            NW_TRY(print_cpu(writing, i));
        else if ((kind == NW_NODE_MACHINE || kind == NW_NODE_PACKAGE) && has_devices(writing, i))
            NW_TRY(print_cpu(writing, i));
    }
    if (has_loose_nets(writing))
        NW_TRY(print_cpu(writing, 0));
    fputs("</system>\n", writing->stream);
    return NW_OK;
}

nw_rc nw_topo_write_nccl_xml(const struct nw_topo *topo, FILE *stream)
{
    struct writing writing = {.topo = topo, .stream = stream};
    nw_rc rc = NW_OK;

    for (size_t i = 0; i < topo->node_count && rc == NW_OK; i++)
        if (topo->nodes[i].kind == NW_NODE_GPU && topo->nodes[i].pci[0] == '\0')
            rc = nw_fail(NW_ENOTSUP,
                         "%s has no PCI address in this source: NCCL's topology file needs one",
                         topo->nodes[i].name);
    if (rc == NW_OK && (topo->gaps & NW_TOPO_NO_IO) != 0)
        rc = nw_fail(NW_ENOTSUP, "the source tells of no devices: there is nothing to write");
    if (rc == NW_OK)
        rc = index_children(&writing);
    if (rc == NW_OK)
        rc = write_all(&writing);
    free(writing.first);
    free(writing.next);
    free(writing.done);
    return rc;
}
