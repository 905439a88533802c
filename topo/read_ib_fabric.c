/* iblinkinfo and ibnetdiscover: the whole InfiniBand fabric, as the subnet manager's network sees
 * it. What is of use for one team's machines: every host adapter with the rate of its link and the
 * switch port it is plugged into, and the links that run slower than their siblings. No place
 * inside a machine is known. Formats: infiniband-diags (iblinkinfo.c, ibnetdiscover.c). */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/read.h"
#include "topo/read_ib.h"
#include "topo/scan.h"

enum { MAX_RATES = 32, MAX_SWITCHES = 4096 };

struct rate { /* links of one width and lane rate */
    int width;
    double lane_bits_per_s, bits_per_s;
    int hosts, uplinks; /* how many of adapters, of switches (each end counts) */
};

struct leaf { /* a switch: what is plugged into it */
    char name[64];
    double down_bits_per_s, up_bits_per_s;
    int down, up;
};

struct fabric {
    struct nw_topo *topo;
    const char *source;
    struct rate rates[MAX_RATES];
    size_t rate_count;
    struct leaf *leaves;
    size_t leaf_count;
    int at_leaf;      /* the switch whose ports follow, -1 */
    char adapter[64]; /* the adapter whose ports follow; "": none */
    bool aggregation; /* it is a switch's own (SHARP), no host's */
    int adapters, aggregations, switches, not_kept;
};

/* --- counting --- */

static void count_link(struct fabric *fabric, const struct nw_ib_port *port, bool host)
{
    struct rate *rate = NULL;

    for (size_t i = 0; i < fabric->rate_count && rate == NULL; i++)
        if (fabric->rates[i].width == port->width &&
            fabs(fabric->rates[i].lane_bits_per_s - port->lane_bits_per_s) < 1e6)
            rate = &fabric->rates[i];
    if (rate == NULL) {
        if (fabric->rate_count == MAX_RATES)
            return;
        rate = &fabric->rates[fabric->rate_count++];
        *rate = (struct rate){.width = port->width,
                              .lane_bits_per_s = port->lane_bits_per_s,
                              .bits_per_s = port->rate_bits_per_s};
    }
    rate->hosts += host;
    rate->uplinks += !host;
}

static void count_at_leaf(struct fabric *fabric, const struct nw_ib_port *port, bool host)
{
    struct leaf *leaf;

    if (fabric->at_leaf < 0)
        return;
    leaf = &fabric->leaves[fabric->at_leaf];
    leaf->down += host;
    leaf->up += !host;
    *(host ? &leaf->down_bits_per_s : &leaf->up_bits_per_s) += port->rate_bits_per_s;
}

static bool is_aggregation(const char *name)
{
    return strstr(name, "Aggregation Node") != NULL;
}

static nw_rc begin_adapter(struct fabric *fabric, const char *name)
{
    fabric->at_leaf = -1;
    snprintf(fabric->adapter, sizeof fabric->adapter, "%.63s", name);
    fabric->aggregation = is_aggregation(name);
    fabric->aggregations += fabric->aggregation;
    fabric->adapters += !fabric->aggregation;
    return NW_OK;
}

static nw_rc begin_switch(struct fabric *fabric, const char *name)
{
    fabric->adapter[0] = '\0';
    fabric->at_leaf = -1;
    fabric->switches++;
    if (fabric->leaf_count == MAX_SWITCHES)
        return NW_OK;
    if (fabric->leaf_count % 64 == 0) {
        struct leaf *leaves =
            realloc(fabric->leaves, (fabric->leaf_count + 64) * sizeof *fabric->leaves);

        if (leaves == NULL)
            return nw_fail(NW_ENOMEM, "%s: out of memory for the switches", fabric->topo->source);
        fabric->leaves = leaves;
    }
    fabric->at_leaf = (int)fabric->leaf_count;
    fabric->leaves[fabric->leaf_count] = (struct leaf){.down = 0};
    snprintf(fabric->leaves[fabric->leaf_count++].name, sizeof fabric->leaves->name, "%.63s", name);
    return NW_OK;
}

/* A port of the adapter or switch that is open. */
static nw_rc take_port(struct fabric *fabric, struct nw_ib_port *port, bool peer_is_host)
{
    const bool active = port->state[0] == '\0' || strcmp(port->state, "active") == 0;

    if (fabric->adapter[0] == '\0') {
        if (active && port->rate_bits_per_s > 0 && !is_aggregation(port->peer)) {
            count_at_leaf(fabric, port, peer_is_host);
            if (!peer_is_host)
                count_link(fabric, port, false);
        }
        return NW_OK;
    }
    if (fabric->aggregation)
        return NW_OK;
    if (active && port->rate_bits_per_s > 0)
        count_link(fabric, port, true);
    if (fabric->topo->node_count > NW_IB_MAX_PORTS) {
        fabric->not_kept++;
        return NW_OK;
    }
    snprintf(port->device, sizeof port->device, "%s", fabric->adapter);
    snprintf(port->link_layer, sizeof port->link_layer, "infiniband");
    return nw_ib_port_put(fabric->topo, port, fabric->source, NULL);
}

/* "MF0;sw1:MQM8700/U1 port 9"; port 0: not said. `name` ends at a quotation mark. */
static void name_peer(struct nw_ib_port *port, const char *name, int peer_port)
{
    const size_t length = strcspn(name, "\"");
    const int kept = length < 100 ? (int)length : 100;

    if (peer_port > 0)
        snprintf(port->peer, sizeof port->peer, "%.*s port %d", kept, name, peer_port);
    else
        snprintf(port->peer, sizeof port->peer, "%.*s", kept, name);
}

/* "HOST HCA-1", "HOST mlx5_0", "HOST ibp11s0f0": as the rdma-ndd service names adapters. */
static bool is_host_name(const char *name)
{
    return strstr(name, "HCA") != NULL || strstr(name, "mlx") != NULL ||
           strstr(name, " ib") != NULL;
}

/* --- iblinkinfo --- */

/* "0x… 6  1[  ] ==( 4X  25.78125 Gbps Active/  LinkUp)==>  3  3[  ] "SWITCH" ( )" */
static nw_rc read_link_line(struct fabric *fabric, const char *line)
{
    const char *open = strstr(line, "==("), *close = strstr(line, ")==>"), *bracket, *quote, *at;
    struct nw_ib_port port;
    char width[8], state[24];
    double lane;
    int number = 0, lid = 0, peer_port;

    if (open == NULL || close == NULL || close < open)
        return NW_OK;
    for (bracket = open; bracket > line && *bracket != '['; bracket--)
        ;
    for (at = bracket; at > line && isdigit((unsigned char)at[-1]); at--)
        ;
    if (*bracket != '[' || sscanf(at, "%3d[", &number) != 1 || number < 1)
        return NW_OK;
    while (at > line && at[-1] == ' ')
        at--;
    while (at > line && isdigit((unsigned char)at[-1]))
        at--;
    nw_ib_port_init(&port, "", number);
    if (sscanf(at, "%6d", &lid) == 1 && lid > 0 && lid < 0xc000)
        port.lid = lid;
    if (sscanf(open, "==( %7s %lf Gbps %23[A-Za-z]", width, &lane, state) == 3) {
        nw_ib_width(&port, width);
        nw_ib_lane(&port, lane);
        nw_ib_state(&port, state);
    } else {
        nw_ib_state(&port,
                    strstr(open, "Down") != NULL && strstr(open, "Down") < close ? "Down" : "");
    }
    at = strchr(open, '/');
    if (at != NULL && at < close)
        nw_ib_physical_state(&port, at);
    bracket = strchr(close + 4, '[');
    for (at = bracket; at != NULL && isdigit((unsigned char)at[-1]); at--)
        ;
    if (at == NULL || sscanf(at, "%3d[", &peer_port) != 1)
        peer_port = 0;
    quote = strchr(close, '"');
    if (quote != NULL && strchr(quote + 1, '"') != NULL)
        name_peer(&port, quote + 1, peer_port);
    return take_port(fabric, &port, is_host_name(port.peer));
}

/* iblinkinfo -l has no heads: each line begins with GUID and name of its own device. */
static nw_rc begin_of_line(struct fabric *fabric, const char *line)
{
    const char *open = strchr(line, '"'), *close = open != NULL ? strchr(open + 1, '"') : NULL;
    char name[64];

    if (close == NULL || close > strstr(line, "==("))
        return NW_OK;
    open += 1 + strspn(open + 1, " ");
    snprintf(name, sizeof name, "%.*s", (int)(close - open > 63 ? 63 : close - open), open);
    if (strcmp(name, fabric->adapter) == 0 ||
        (fabric->at_leaf >= 0 && strcmp(name, fabric->leaves[fabric->at_leaf].name) == 0))
        return NW_OK;
    return is_host_name(name) || is_aggregation(name) ? begin_adapter(fabric, name)
                                                      : begin_switch(fabric, name);
}

static nw_rc read_linkinfo_line(struct fabric *fabric, char *line)
{
    const size_t length = strlen(line);
    char *name;

    if (strstr(line, "==(") != NULL) {
        NW_TRY(begin_of_line(fabric, line));
        return read_link_line(fabric, line);
    }
    if (length < 5 || line[length - 1] != ':')
        return NW_OK;
    line[length - 1] = '\0';
    if (nw_scan_starts(line, "CA: "))
        return begin_adapter(fabric, nw_scan_trim(line + 4));
    if (nw_scan_starts(line, "Switch: ") || nw_scan_starts(line, "Switch 0x")) {
        name = nw_scan_trim(line + 7 + (line[6] == ':'));
        if (nw_scan_starts(name, "0x"))
            name = nw_scan_trim(name + strcspn(name, " "));
        return begin_switch(fabric, name);
    }
    return NW_OK;
}

/* --- ibnetdiscover --- */

/* "[1](0002c90300000001)  "S-0002…"[9]  # lid 1181 lmc 0 "SWITCH" lid 556 4xHDR s=4 w=2 v=3 e=4":
 * the link's width and generation are one word. */
static nw_rc read_net_port(struct fabric *fabric, const char *line)
{
    const char *peer = strchr(line, '"'), *comment = strchr(line, '#'), *name, *end;
    struct nw_ib_port port;
    char guid[20], word[16] = "";
    int number, lid, peer_port = 0;

    if (sscanf(line, "[%3d]", &number) != 1 || number < 1 || peer == NULL)
        return NW_OK;
    nw_ib_port_init(&port, "", number);
    if (sscanf(line, "[%*3d](%19[0-9a-fA-F])", guid) == 1)
        (void)nw_ib_guid(guid, port.guid);
    end = strchr(peer + 1, '"');
    if (end != NULL && sscanf(end, "\"[%3d]", &peer_port) != 1)
        peer_port = 0;
    name = comment != NULL ? strchr(comment, '"') : NULL;
    if (name != NULL && (end = strchr(name + 1, '"')) != NULL) {
        name_peer(&port, name + 1, peer_port);
        if (sscanf(end, "\" lid %*5d %15s", word) != 1)
            word[0] = '\0';
        nw_ib_width(&port, word);
        if (strchr(word, 'x') != NULL)
            nw_ib_lane_of_generation(&port, strchr(word, 'x') + 1);
    }
    if (comment != NULL && sscanf(comment, "# lid %6d lmc", &lid) == 1 && lid > 0)
        port.lid = lid;
    if (port.width > 0)
        nw_ib_state(&port, "active"); /* only links that are up are listed */
    return take_port(fabric, &port, peer[1] == 'H');
}

static nw_rc read_net_line(struct fabric *fabric, const char *line)
{
    const char *comment = strchr(line, '#'), *name, *end;
    char kind[12], title[64];
    int ports;

    if (line[0] == '[')
        return read_net_port(fabric, line);
    if (sscanf(line, "%11s %4d \"", kind, &ports) != 2 || comment == NULL)
        return NW_OK;
    name = strchr(comment, '"');
    end = name != NULL ? strchr(name + 1, '"') : NULL;
    if (end == NULL)
        return NW_OK;
    snprintf(title, sizeof title, "%.*s", (int)(end - name - 1 > 63 ? 63 : end - name - 1),
             name + 1);
    if (strcmp(kind, "Switch") == 0)
        return begin_switch(fabric, title);
    if (strcmp(kind, "Ca") == 0)
        return begin_adapter(fabric, title);
    return NW_OK;
}

/* --- what it comes to --- */

static void rate_text(const struct rate *rate, char *text, size_t size)
{
    const char *generation = nw_ib_generation(rate->lane_bits_per_s);

    snprintf(text, size, "%dX %s (%.4g Gb/s)", rate->width,
             generation != NULL ? generation : "links", rate->bits_per_s / 1e9);
}

static int levels_of(const struct fabric *fabric)
{
    int levels = fabric->switches > 0;

    for (size_t i = 0; i < fabric->leaf_count; i++)
        if (fabric->leaves[i].down == 0 && fabric->leaves[i].up > 0)
            levels = 2; /* a switch with switches only */
    return levels;
}

static nw_rc say_summary(struct fabric *fabric)
{
    char rates[400] = "", one[64];

    for (size_t i = 0; i < fabric->rate_count && strlen(rates) < 300; i++) {
        const struct rate *rate = &fabric->rates[i];
        const size_t used = strlen(rates);

        rate_text(rate, one, sizeof one);
        if (rate->hosts > 0)
            snprintf(rates + used, sizeof rates - used, "; %d adapters at %s", rate->hosts, one);
        else
            snprintf(rates + used, sizeof rates - used, "; links between switches at %s", one);
    }
    return nw_findings_add(
        &fabric->topo->findings, NW_FINDING_INFO, "fabric-view", fabric->topo->source,
        "for one machine give ibstat or ibv_devinfo of that machine",
        "shows a fabric, not one machine. Host adapters: %d, switches: %d%s%s%s", fabric->adapters,
        fabric->switches, levels_of(fabric) > 1 ? " in two or more levels" : "",
        fabric->aggregations > 0 ? " (with aggregation nodes: SHARP)" : "", rates);
}

/* Adapters whose link is slower than that of most. */
static nw_rc say_slow(struct fabric *fabric)
{
    const struct rate *most = NULL;
    char usual[64], slow[64];

    for (size_t i = 0; i < fabric->rate_count; i++)
        if (most == NULL || fabric->rates[i].hosts > most->hosts)
            most = &fabric->rates[i];
    for (size_t i = 0; i < fabric->rate_count; i++) {
        const struct rate *rate = &fabric->rates[i];

        if (rate->hosts == 0 || !(rate->bits_per_s < most->bits_per_s))
            continue;
        rate_text(most, usual, sizeof usual);
        rate_text(rate, slow, sizeof slow);
        NW_TRY(nw_findings_add(&fabric->topo->findings, NW_FINDING_WARN,
                               "link-slower-than-siblings", fabric->topo->source,
                               "look at cable, adapter and switch port",
                               "%d of the host adapters' links run at %s, %d at %s", rate->hosts,
                               slow, most->hosts, usual));
        NW_TRY(nw_findings_effect(
            &fabric->topo->findings, (most->bits_per_s - rate->bits_per_s) / 8,
            "%.4g instead of %.4g GB/s one way", rate->bits_per_s / 8e9, most->bits_per_s / 8e9));
    }
    return NW_OK;
}

/* Leaf switches with less capacity up than down. */
static nw_rc say_oversubscribed(struct fabric *fabric)
{
    const struct leaf *worst = NULL;
    double worst_ratio = 1.01;
    int count = 0;

    for (size_t i = 0; i < fabric->leaf_count; i++) {
        const struct leaf *leaf = &fabric->leaves[i];

        if (leaf->down == 0 || leaf->up == 0 || !(leaf->up_bits_per_s > 0) ||
            !(leaf->down_bits_per_s > 1.01 * leaf->up_bits_per_s))
            continue;
        count++;
        if (leaf->down_bits_per_s / leaf->up_bits_per_s > worst_ratio) {
            worst = leaf;
            worst_ratio = leaf->down_bits_per_s / leaf->up_bits_per_s;
        }
    }
    if (worst == NULL)
        return NW_OK;
    return nw_findings_add(&fabric->topo->findings, NW_FINDING_INFO, "switch-oversubscribed",
                           worst->name, "ask for machines below one switch, or for more uplinks",
                           "%d leaf switches have less rate up than down; the most this one: %d "
                           "hosts' links with %.4g Gb/s below, %d links with %.4g Gb/s up (%.2g:1)",
                           count, worst->down, worst->down_bits_per_s / 1e9, worst->up,
                           worst->up_bits_per_s / 1e9, worst_ratio);
}

static nw_rc finish(struct fabric *fabric)
{
    if (fabric->adapters + fabric->switches == 0)
        return nw_fail(NW_EUSAGE,
                       "%s: holds no adapter and no switch. Give the whole output of iblinkinfo or "
                       "ibnetdiscover",
                       fabric->topo->source);
    NW_TRY(nw_ib_finish(fabric->topo));
    NW_TRY(say_summary(fabric));
    NW_TRY(say_slow(fabric));
    NW_TRY(say_oversubscribed(fabric));
    if (fabric->not_kept == 0)
        return NW_OK;
    return nw_findings_add(&fabric->topo->findings, NW_FINDING_INFO, "too-many-ports",
                           fabric->topo->source, NULL,
                           "%d ports beyond the first %d are counted, but not kept one by one",
                           fabric->not_kept, NW_IB_MAX_PORTS);
}

static nw_rc read_lines(struct fabric *fabric, struct nw_scan *text, bool linkinfo)
{
    while (nw_scan_next(text)) {
        char *line = nw_scan_trim(text->line);

        NW_TRY(linkinfo ? read_linkinfo_line(fabric, line) : read_net_line(fabric, line));
    }
    NW_TRY(text->rc);
    return finish(fabric);
}

nw_rc nw_read_ib_fabric(const char *data, size_t length, const char *what,
                        struct nw_topo **topo_out)
{
    const bool linkinfo = nw_scan_has(data, length, 0, "==(");
    struct fabric fabric = {.at_leaf = -1, .source = linkinfo ? "iblinkinfo" : "ibnetdiscover"};
    struct nw_scan text;
    nw_rc rc;

    NW_TRY(nw_scan_open(&text, data, length, what));
    rc = nw_topo_start(what, NW_SOURCE_RDMA, &fabric.topo);
    if (rc == NW_OK)
        rc = read_lines(&fabric, &text, linkinfo);
    nw_scan_close(&text);
    free(fabric.leaves);
    if (rc != NW_OK) {
        nw_topo_free(fabric.topo);
        return rc;
    }
    nw_topo_clean(fabric.topo);
    *topo_out = fabric.topo;
    return NW_OK;
}

bool nw_is_ib_fabric(const char *data, size_t length)
{
    if (nw_scan_has(data, length, 0, "==(") && nw_scan_has(data, length, 0, ")==>"))
        return true;
    return nw_scan_find_line(data, length, "switchguid=") > 0 ||
           nw_scan_find_line(data, length, "caguid=") > 0 ||
           (nw_scan_find_line(data, length, "Switch") > 0 && nw_scan_has(data, length, 0, "\"S-"));
}
