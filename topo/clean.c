#include "topo/read.h"

#include <string.h>

/* Bytes of the UTF-8 character at `text` (RFC 3629), 0 when it is none. */
static size_t utf8_length(const unsigned char *text)
{
    size_t length;
    uint32_t code, least;

    if (text[0] < 0x80)
        return 1;
    if ((text[0] & 0xe0) == 0xc0)
        length = 2, code = text[0] & 0x1f, least = 0x80;
    else if ((text[0] & 0xf0) == 0xe0)
        length = 3, code = text[0] & 0x0f, least = 0x800;
    else if ((text[0] & 0xf8) == 0xf0)
        length = 4, code = text[0] & 0x07, least = 0x10000;
    else
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    return code >= least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? length : 0;
}

void nw_clean_text(char *field)
{
    unsigned char *text = (unsigned char *)field;

    while (*text != '\0') {
        const size_t length = utf8_length(text);

        if (length == 0 || *text < 0x20 || *text == 0x7f ||
            (length == 2 && text[0] == 0xc2 && text[1] < 0xa0)) { /* C1 control characters */
            *text++ = length == 1 ? ' ' : '?';
            continue;
        }
        text += length;
    }
}

void nw_topo_clean(struct nw_topo *topo)
{
    nw_clean_text(topo->host);
    nw_clean_text(topo->source);
    nw_clean_text(topo->os);
    for (size_t i = 0; i < topo->node_count; i++) {
        struct nw_topo_node *node = &topo->nodes[i];
        char *const fields[] = {node->name, node->model, node->pci, node->fabric, node->os_names};

        for (size_t field = 0; field < sizeof fields / sizeof *fields; field++)
            nw_clean_text(fields[field]);
        /* 16 bits each; what a reader made of a damaged file is no identity */
        node->pci_class = node->pci_class <= 0xffff ? node->pci_class : 0;
        node->pci_vendor = node->pci_vendor <= 0xffff ? node->pci_vendor : 0;
        node->pci_device = node->pci_device <= 0xffff ? node->pci_device : 0;
    }
    /* In a file that somebody sent: codes that move the cursor of a terminal. */
    for (size_t i = 0; i < topo->findings.count; i++) {
        char *const fields[] = {topo->findings.items[i].code, topo->findings.items[i].where,
                                topo->findings.items[i].text, topo->findings.items[i].remedy,
                                topo->findings.items[i].effect};

        for (size_t field = 0; field < sizeof fields / sizeof *fields; field++)
            if (fields[field] != NULL)
                nw_clean_text(fields[field]);
    }
    for (size_t i = 0; i < topo->gid_count; i++) {
        nw_clean_text(topo->gids[i].gid);
        nw_clean_text(topo->gids[i].type);
        nw_clean_text(topo->gids[i].ip);
        nw_clean_text(topo->gids[i].interface);
    }
}
