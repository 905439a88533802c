/* A host as a picture: a box for each NUMA node with its devices, and what joins the GPUs. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/html_parts.h"

enum {
    BOX_WIDTH = 100,
    BOX_HEIGHT = 46,
    GAP = 8,
    ACROSS = 4,
    PAGE = 940,
    HEADER = 24,
    GROUPS = 33
};
enum { GROUP_DEVICES = 64, GPUS_MAX = 64 };

struct group { /* of one NUMA node; -1: unknown */
    int numa;
    int devices[GROUP_DEVICES], count, more;
    double x, y, width, height;
};

struct picture {
    const struct nw_topo *topo;
    struct group groups[GROUPS];
    size_t group_count;
    double width, height;
    int gpus[GPUS_MAX];
    double gpu_x[GPUS_MAX], gpu_y[GPUS_MAX];
    int gpu_count;
};

static struct group *group_of(struct picture *picture, int numa)
{
    for (size_t i = 0; i < picture->group_count; i++)
        if (picture->groups[i].numa == numa)
            return &picture->groups[i];
    if (picture->group_count == GROUPS)
        return &picture->groups[GROUPS - 1];
    picture->groups[picture->group_count] = (struct group){.numa = numa};
    return &picture->groups[picture->group_count++];
}

/* NUMA nodes first, in their order, then their devices: GPUs, NICs, disks. */
static void collect(struct picture *picture)
{
    static const nw_node_kind kinds[] = {NW_NODE_GPU, NW_NODE_NIC, NW_NODE_DISK};
    const struct nw_topo *topo = picture->topo;

    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_NUMA && topo->nodes[i].model[0] == '\0')
            group_of(picture, topo->nodes[i].numa);
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (size_t i = 0; i < topo->node_count; i++) {
            if (topo->nodes[i].kind != kinds[kind])
                continue;
            struct group *group = group_of(picture, topo->nodes[i].numa);

            if (group->count < GROUP_DEVICES)
                group->devices[group->count++] = (int)i;
            else
                group->more++;
        }
}

static void lay_out(struct picture *picture)
{
    double x = GAP, y = GAP, row_height = 0;

    picture->width = 320;
    for (size_t i = 0; i < picture->group_count; i++) {
        struct group *group = &picture->groups[i];
        const int across = group->count < 2 ? 2 : group->count < ACROSS ? group->count : ACROSS;
        const int rows = (group->count + across - 1) / across;

        group->width = across * (BOX_WIDTH + GAP) + GAP;
        group->height = HEADER + rows * (BOX_HEIGHT + GAP) + GAP;
        if (x > GAP && x + group->width > PAGE) {
            x = GAP;
            y += row_height + GAP;
            row_height = 0;
        }
        group->x = x;
        group->y = y;
        x += group->width + GAP;
        row_height = fmax(row_height, group->height);
        picture->width = fmax(picture->width, x);
    }
    picture->height = y + row_height + GAP;
}

/* As many bytes of a name as a box is wide, whole characters. */
static void shorten(const char *name, int most, char text[64])
{
    int length = (int)strlen(name);

    if (length > most)
        for (length = most - 1; length > 0 && ((unsigned char)name[length] & 0xC0) == 0x80;)
            length--;
    snprintf(text, 64, "%.*s%s", length, name, length < (int)strlen(name) ? "…" : "");
}

static void tell(const struct nw_html *html, const struct nw_topo_node *node, char tip[400],
                 char line[64])
{
    char rate[32], best[32];

    line[0] = '\0';
    if (node->kind == NW_NODE_NIC && node->rate_bits_per_s > 0)
        snprintf(line, 64, "%.4g Gb/s", node->rate_bits_per_s / 1e9);
    else if (node->kind == NW_NODE_NIC && node->port_up == 0)
        snprintf(line, 64, "%s", tr(html, "down"));
    else if (node->memory_bytes > 0)
        nw_format_bytes(line, node->memory_bytes);
    int used = snprintf(tip, 400, "%s: %s", node->name, node->model);

    if (line[0] != '\0')
        used += snprintf(tip + used, 400 - (size_t)used, ", %s", line);
    if (node->link_bytes_per_s > 0)
        used += snprintf(tip + used, 400 - (size_t)used, ", PCIe %s GB/s",
                         nw_format_gb_per_s(rate, node->link_bytes_per_s));
    if (node->link_bytes_per_s > 0 && node->link_max_bytes_per_s > 1.1 * node->link_bytes_per_s)
        snprintf(tip + used, 400 - (size_t)used, tr(html, " of %s"),
                 nw_format_gb_per_s(best, node->link_max_bytes_per_s));
}

static void draw_device(const struct nw_html *html, struct picture *picture, int index, double x,
                        double y)
{
    const struct nw_topo_node *node = &picture->topo->nodes[index];
    char tip[400], line[64], name[64], model[64], class[32];
    const bool slow = node->kind == NW_NODE_NIC && node->port_up == 0;

    tell(html, node, tip, line);
    snprintf(class, sizeof class, "device %s%s",
             node->kind == NW_NODE_GPU   ? "gpu"
             : node->kind == NW_NODE_NIC ? "nic"
                                         : "disk",
             slow ? " down" : "");
    nw_svg_box(html->stream, x, y, BOX_WIDTH, BOX_HEIGHT, class, NULL, tip);
    shorten(node->name, 13, name);
    shorten(strncmp(node->model, "NVIDIA ", 7) == 0 ? node->model + 7 : node->model, 15, model);
    nw_svg_words(html->stream, x + BOX_WIDTH / 2.0, y + 15, "strong", "middle", name);
    nw_svg_words(html->stream, x + BOX_WIDTH / 2.0, y + 28, "small", "middle", model);
    nw_svg_words(html->stream, x + BOX_WIDTH / 2.0, y + 41, "small", "middle", line);
    if (node->kind == NW_NODE_GPU && picture->gpu_count < GPUS_MAX) {
        picture->gpus[picture->gpu_count] = index;
        picture->gpu_x[picture->gpu_count] = x + BOX_WIDTH / 2.0;
        picture->gpu_y[picture->gpu_count++] = y + BOX_HEIGHT;
    }
}

static void draw_group(const struct nw_html *html, struct picture *picture,
                       const struct group *group)
{
    const int across = (int)((group->width - GAP) / (BOX_WIDTH + GAP));
    char title[96];

    nw_svg_box(html->stream, group->x, group->y, group->width, group->height, "group", NULL, NULL);
    if (group->numa >= 0)
        snprintf(title, sizeof title, tr(html, "NUMA node %d"), group->numa);
    else
        snprintf(title, sizeof title, "%s", tr(html, "NUMA node unknown"));
    if (group->more > 0)
        snprintf(title + strlen(title), sizeof title - strlen(title), " (+%d)", group->more);
    nw_svg_words(html->stream, group->x + GAP, group->y + 16, "name", "start", title);
    for (int i = 0; i < group->count; i++)
        draw_device(html, picture, group->devices[i],
                    group->x + GAP + (i % across) * (BOX_WIDTH + GAP),
                    group->y + HEADER + (i / across) * (BOX_HEIGHT + GAP)); /* GAP is above */
}

/* NVLinks between every two GPUs, alike: a switch, or a full mesh. 0: not so. */
static int links_of_all(const struct picture *picture)
{
    int all = -1;

    for (int a = 0; a < picture->gpu_count; a++)
        for (int b = a + 1; b < picture->gpu_count; b++) {
            int links = 0;

            if (nw_topo_class(picture->topo, picture->gpus[a], picture->gpus[b], &links) !=
                    NW_CLASS_NV ||
                (all >= 0 && links != all))
                return 0;
            all = links;
        }
    return all < 0 ? 0 : all > 0 ? all : -1;
}

static void draw_links(const struct nw_html *html, const struct picture *picture)
{
    for (int a = 0; a < picture->gpu_count; a++)
        for (int b = a + 1; b < picture->gpu_count; b++) {
            const double x0 = picture->gpu_x[a], y0 = picture->gpu_y[a];
            const double x1 = picture->gpu_x[b], y1 = picture->gpu_y[b];
            int links = 0;

            if (nw_topo_class(picture->topo, picture->gpus[a], picture->gpus[b], &links) !=
                NW_CLASS_NV)
                continue;
            fprintf(html->stream,
                    "<path class=\"link\" d=\"M%.1f %.1fQ%.1f %.1f %.1f %.1f\"><title>", x0, y0,
                    (x0 + x1) / 2, fmax(y0, y1) + 18, x1, y1);
            nw_html_text(html->stream, picture->topo->nodes[picture->gpus[a]].name);
            fprintf(html->stream, " – ");
            nw_html_text(html->stream, picture->topo->nodes[picture->gpus[b]].name);
            fprintf(html->stream, ": NV%d</title></path>", links);
        }
}

/* Of the GPU that has fewest; 0: unknown, or none. */
static int least_links(const struct nw_topo *topo)
{
    double least = INFINITY;

    for (size_t i = 0; i < topo->node_count; i++) {
        const double count = nw_topo_number(topo, (int)i, NW_FACT_NVLINK_COUNT);

        if (topo->nodes[i].kind == NW_NODE_GPU)
            least = fmin(least, isfinite(count) ? count : 0);
    }
    return isfinite(least) ? (int)least : 0;
}

/* Below the groups: what joins all GPUs. */
static void draw_switch(const struct nw_html *html, const struct picture *picture, const char *text)
{
    nw_svg_box(html->stream, GAP, picture->height, picture->width - 2 * GAP, 22, "switch", NULL,
               NULL);
    nw_svg_words(html->stream, picture->width / 2, picture->height + 15, "strong", "middle", text);
}

void nw_draw_topology(struct nw_html *html, const struct nw_topo *topo, const char *id)
{
    struct picture picture = {.topo = topo};
    struct nw_chart chart = {.stream = html->stream, .alone = html->alone};
    const int links = least_links(topo);
    char text[96];

    collect(&picture);
    lay_out(&picture);
    chart.width = picture.width;
    chart.height = picture.height + 28;
    nw_chart_open(&chart, id, tr(html, "The devices of a host"),
                  tr(html, "A box for each NUMA node with its GPUs, NICs and disks; all stand in "
                           "the table below."));
    for (size_t i = 0; i < picture.group_count; i++)
        draw_group(html, &picture, &picture.groups[i]);
    const int all = links_of_all(&picture);

    if (all > 0) {
        snprintf(text, sizeof text, tr(html, "NVLink joins every two GPUs: NV%d"), all);
        draw_switch(html, &picture, text);
    } else if (all < 0) {
        draw_switch(html, &picture, tr(html, "NVLink joins every two GPUs"));
    } else {
        draw_links(html, &picture);
        snprintf(text, sizeof text, tr(html, "NVLinks of each GPU, at least: %d"), links);
        if (links > 0)
            draw_switch(html, &picture, text);
    }
    nw_chart_close(&chart);
}
