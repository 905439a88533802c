/* The machines: a picture of each kind of host, its devices, how every two are joined. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/html_parts.h"

#define MACHINES_MAX 8
#define DEVICES_MAX  64
#define MATRIX_MAX   24

static bool is_shown(const struct nw_topo_node *node)
{
    return node->kind == NW_NODE_GPU || node->kind == NW_NODE_NIC || node->kind == NW_NODE_DISK;
}

/* "Gen5 x16" is not known here: rates are. */
static void tell_link(const struct nw_topo_node *node, char text[80])
{
    char now[32], best[32];

    text[0] = '\0';
    if (node->link_bytes_per_s > 0 && node->link_max_bytes_per_s > 0)
        snprintf(text, 80, "%s / %s", nw_format_gb_per_s(now, node->link_bytes_per_s),
                 nw_format_gb_per_s(best, node->link_max_bytes_per_s));
    else if (node->link_bytes_per_s > 0 || node->link_max_bytes_per_s > 0)
        nw_format_gb_per_s(text, fmax(node->link_bytes_per_s, node->link_max_bytes_per_s));
}

static void tell_more(const struct nw_html *html, const struct nw_topo_node *node, char text[96])
{
    char value[32];

    text[0] = '\0';
    if (node->kind == NW_NODE_NIC && node->rate_bits_per_s > 0)
        snprintf(text, 96, "%s %.4g Gb/s", node->fabric, node->rate_bits_per_s / 1e9);
    else if (node->kind == NW_NODE_NIC && node->port_up == 0)
        snprintf(text, 96, "%s %s", node->fabric, tr(html, "no port is up"));
    else if (node->kind != NW_NODE_NIC && node->memory_bytes > 0)
        snprintf(text, 96, "%s", nw_format_bytes(value, node->memory_bytes));
}

static void put_devices(const struct nw_html *html, const struct nw_topo *topo)
{
    static const struct nw_html_column columns[] = {
        {"Device", NW_LEFT},       {"Kind", NW_LEFT}, {"Model", NW_LEFT},
        {"NUMA", NW_RIGHT},        {"PCI", NW_LEFT},  {"PCIe now / at best, GB/s", NW_RIGHT},
        {"Size or rate", NW_LEFT},
    };
    size_t rows = 0;

    nw_html_table(html, tr(html, "Devices"), columns, 7);
    for (size_t i = 0; i < topo->node_count && rows < DEVICES_MAX; i++) {
        const struct nw_topo_node *node = &topo->nodes[i];
        char numa[16] = "", link[80], more[96];

        if (!is_shown(node))
            continue;
        if (node->numa >= 0)
            snprintf(numa, sizeof numa, "%d", node->numa);
        tell_link(node, link);
        tell_more(html, node, more);
        nw_html_row(html, columns, 7,
                    (const char *[]){node->name,
                                     node->kind == NW_NODE_DISK ? tr(html, "disk")
                                                                : nw_node_kind_title(node->kind),
                                     node->model, numa, node->pci, link, more});
        rows++;
    }
    nw_html_table_end(html);
}

static void put_class(const struct nw_html *html, const struct nw_topo *topo, int a, int b)
{
    int links = 0;
    const nw_class class_id = nw_topo_class(topo, a, b, &links);
    char text[32];

    if (class_id == NW_CLASS_NV && links > 0)
        snprintf(text, sizeof text, "NV%d", links);
    else
        snprintf(text, sizeof text, "%s", nw_class_name(class_id));
    fprintf(html->stream, "<td class=\"c-%s\">",
            class_id == NW_CLASS_NV     ? "nv"
            : class_id >= NW_CLASS_NODE ? "far"
                                        : "near");
    nw_html_text(html->stream, text);
    fputs("</td>", html->stream);
}

/* As nvidia-smi topo -m prints it. */
static void put_matrix(const struct nw_html *html, const struct nw_topo *topo)
{
    int ends[MATRIX_MAX];
    size_t count = 0;
    const char *caption = tr(html, "How every two are joined");

    for (size_t i = 0; i < topo->node_count && count < MATRIX_MAX; i++)
        if (topo->nodes[i].kind == NW_NODE_GPU || topo->nodes[i].kind == NW_NODE_NIC)
            ends[count++] = (int)i;
    if (count < 2)
        return;
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=", html->stream);
    nw_html_attribute(html->stream, caption);
    fputs("><table class=\"matrix\"><caption>", html->stream);
    nw_html_text(html->stream, caption);
    fputs("</caption><thead><tr><td></td>", html->stream);
    for (size_t i = 0; i < count; i++) {
        fputs("<th scope=\"col\">", html->stream);
        nw_html_text(html->stream, topo->nodes[ends[i]].name);
        fputs("</th>", html->stream);
    }
    fputs("</tr></thead><tbody>", html->stream);
    for (size_t i = 0; i < count; i++) {
        fputs("<tr><th scope=\"row\">", html->stream);
        nw_html_text(html->stream, topo->nodes[ends[i]].name);
        fputs("</th>", html->stream);
        for (size_t k = 0; k < count; k++)
            put_class(html, topo, ends[i], ends[k]);
        fputs("</tr>\n", html->stream);
    }
    nw_html_table_end(html);
    nw_html_say(html, "note", "%s",
                tr(html, "NV: joined by so many NVLinks. PIX: at most one PCIe bridge "
                         "between. PXB: several. PHB: over a host bridge. NODE: over "
                         "several of one NUMA node. SYS: across NUMA nodes. X: itself. ?: "
                         "not known."));
}

/* Hosts that look the same are drawn once. */
static bool alike(const struct nw_topo *a, const struct nw_topo *b)
{
    if (a->node_count != b->node_count || a->link_count != b->link_count)
        return false;
    for (size_t i = 0; i < a->node_count; i++) {
        const struct nw_topo_node *x = &a->nodes[i], *y = &b->nodes[i];

        if (x->kind != y->kind || x->numa != y->numa || strcmp(x->model, y->model) != 0 ||
            x->link_bytes_per_s != y->link_bytes_per_s || x->port_up != y->port_up ||
            x->rate_bits_per_s != y->rate_bits_per_s)
            return false;
    }
    return true;
}

static const struct nw_topo *topo_at(const struct nw_page *page, size_t index)
{
    return index < page->topo_count ? page->topos[index]
                                    : page->further_topos[index - page->topo_count];
}

static const struct nw_topo *drawn_before(const struct nw_page *page, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (alike(topo_at(page, i), topo_at(page, index)))
            return topo_at(page, i);
    return NULL;
}

static const char *name_of(const struct nw_topo *topo)
{
    return topo->host[0] != '\0' ? topo->host : topo->source;
}

static void put_machine(struct nw_html *html, const struct nw_topo *topo)
{
    char title[400], id[64];

    snprintf(title, sizeof title,
             tr(html, "%s: GPUs: %d, NICs: %d, disks: %d, cores: %d, NUMA nodes: %d"),
             name_of(topo), nw_topo_count(topo, NW_NODE_GPU), nw_topo_count(topo, NW_NODE_NIC),
             nw_topo_count(topo, NW_NODE_DISK), topo->core_count, topo->numa_count);
    nw_html_figure(html, title, id);
    nw_draw_topology(html, topo, id);
    nw_html_fold(html, tr(html, "Devices"));
    put_devices(html, topo);
    put_matrix(html, topo);
    nw_html_fold_end(html);
    nw_html_figure_end(html);
    if ((topo->gaps & NW_TOPO_NO_IO) != 0)
        nw_html_say(html, "note", "%s",
                    tr(html, "This source has no devices: GPUs, NICs and disks are "
                             "unknown, not absent."));
}

void nw_html_machine(struct nw_html *html)
{
    const struct nw_page *page = html->page;
    const size_t count = page->topo_count + page->further_count;
    size_t drawn = 0;

    if (count == 0)
        return;
    nw_html_begin(html, "machine", tr(html, "The machines"));
    for (size_t i = 0; i < count && drawn < MACHINES_MAX; i++) {
        const struct nw_topo *topo = topo_at(page, i), *same = drawn_before(page, i);

        if (same != NULL)
            nw_html_say(html, NULL, tr(html, "%s looks as %s does."), name_of(topo), name_of(same));
        else
            put_machine(html, topo);
        drawn += same == NULL;
    }
    nw_html_end(html);
}
