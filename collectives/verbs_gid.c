#include "collectives/verbs_gid.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

const char *nw_verbs_gid_kind_text(nw_verbs_gid_kind kind)
{
    static const char *const texts[NW_VERBS_GID_KIND_COUNT] = {
        [NW_VERBS_GID_INFINIBAND] = "InfiniBand",
        [NW_VERBS_GID_V2_IPV4] = "RoCE v2, IPv4",
        [NW_VERBS_GID_V2_IPV6] = "RoCE v2, IPv6",
        [NW_VERBS_GID_V2_LINK_LOCAL] = "RoCE v2, link-local",
        [NW_VERBS_GID_V1] = "RoCE v1",
    };

    return (unsigned)kind < NW_VERBS_GID_KIND_COUNT ? texts[kind] : "unknown";
}

/* ::ffff:a.b.c.d (RFC 4291, 2.5.5.2) */
static bool is_ipv4(const uint8_t raw[16])
{
    static const uint8_t head[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(raw, head, sizeof head) == 0;
}

nw_verbs_gid_kind nw_verbs_gid_kind_of(const uint8_t raw[16], bool v2)
{
    if (!v2)
        return NW_VERBS_GID_V1;
    if (is_ipv4(raw))
        return NW_VERBS_GID_V2_IPV4;
    return raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80 ? NW_VERBS_GID_V2_LINK_LOCAL
                                                     : NW_VERBS_GID_V2_IPV6;
}

bool nw_verbs_gid_parse(const char *text, uint8_t raw_out[16])
{
    static const uint8_t empty[16];
    uint8_t raw[16];

    if (inet_pton(AF_INET6, text, raw) != 1 || memcmp(raw, empty, sizeof empty) == 0)
        return false;
    /* What a port without an address has in each row: the prefix alone. */
    if (raw[0] == 0xfe && raw[1] == 0x80 && memcmp(raw + 2, empty, 14) == 0)
        return false;
    memcpy(raw_out, raw, sizeof raw);
    return true;
}

const char *nw_verbs_gid_text(const struct nw_verbs_gid *gid, char text[NW_VERBS_GID_TEXT])
{
    const bool ipv4 = is_ipv4(gid->raw);

    if (inet_ntop(ipv4 ? AF_INET : AF_INET6, gid->raw + (ipv4 ? 12 : 0), text, NW_VERBS_GID_TEXT) ==
        NULL)
        snprintf(text, NW_VERBS_GID_TEXT, "?");
    return text;
}

/* --- the rule --- */

static int common_prefix_bits(const uint8_t a[16], const uint8_t b[16])
{
    int bits = 0;

    while (bits < 128 && ((a[bits / 8] ^ b[bits / 8]) & (0x80 >> bits % 8)) == 0)
        bits++;
    return bits;
}

/* Is the pair (a, b) better than (c, d)? Symmetric: both sides must come to the same. */
static bool is_better(const struct nw_verbs_gid *a, const struct nw_verbs_gid *b,
                      const struct nw_verbs_gid *c, const struct nw_verbs_gid *d)
{
    const int prefix = common_prefix_bits(a->raw, b->raw),
              other = common_prefix_bits(c->raw, d->raw);
    const int sum = a->index + b->index, other_sum = c->index + d->index;
    const bool swap = memcmp(a->raw, b->raw, 16) > 0, other_swap = memcmp(c->raw, d->raw, 16) > 0;
    int order;

    if (a->kind != c->kind)
        return a->kind < c->kind;
    if (prefix != other)
        return prefix > other;
    if (sum != other_sum)
        return sum < other_sum;
    /* Only the addresses themselves are the same seen from both sides. */
    order = memcmp((swap ? b : a)->raw, (other_swap ? d : c)->raw, 16);
    return order != 0 ? order < 0 : memcmp((swap ? a : b)->raw, (other_swap ? c : d)->raw, 16) < 0;
}

static void list_rows(const struct nw_verbs_gids *side, char *text, size_t size)
{
    size_t used = 0;

    snprintf(text, size, "none");
    for (size_t i = 0; i < side->count && used + 90 < size; i++) {
        char address[NW_VERBS_GID_TEXT];

        used += (size_t)snprintf(text + used, size - used, "%s%d = %s (%s)", i > 0 ? "; " : "",
                                 side->rows[i].index, nw_verbs_gid_text(&side->rows[i], address),
                                 nw_verbs_gid_kind_text(side->rows[i].kind));
    }
}

nw_rc nw_verbs_gid_check(const struct nw_verbs_gids *side)
{
    char rows[700];

    for (size_t i = 0; i < side->count; i++)
        if (side->wished < 0 || side->rows[i].index == side->wished)
            return NW_OK;
    list_rows(side, rows, sizeof rows);
    if (side->wished < 0)
        return nw_fail(NW_ENODEV,
                       "%s has no GID, so nothing reaches it: give its network interface an IPv4 "
                       "address",
                       side->name);
    return nw_fail(NW_EUSAGE, "%s has no GID of index %d; its table: %s", side->name, side->wished,
                   rows);
}

static nw_rc no_pair(const struct nw_verbs_gids *here, const struct nw_verbs_gids *there)
{
    const bool wished = here->wished >= 0 || there->wished >= 0;
    char mine[330], theirs[330];

    list_rows(here, mine, sizeof mine);
    list_rows(there, theirs, sizeof theirs);
    if (wished)
        return nw_fail(NW_EUSAGE,
                       "GID index %d of %s and %d of %s (-1: any) are of no one kind, and RoCE of "
                       "different kinds cannot talk. %s: %s. %s: %s",
                       here->wished, here->name, there->wished, there->name, here->name, mine,
                       there->name, theirs);
    return nw_fail(NW_ENODEV,
                   "%s and %s have no GID of one kind (RoCE v2 over IPv4 is best: give both "
                   "interfaces an IPv4 address). %s: %s. %s: %s",
                   here->name, there->name, here->name, mine, there->name, theirs);
}

nw_rc nw_verbs_gid_pair(const struct nw_verbs_gids *here, const struct nw_verbs_gids *there,
                        size_t *here_out, size_t *there_out)
{
    const struct nw_verbs_gid *a = NULL, *b = NULL;

    NW_TRY(nw_verbs_gid_check(here));
    NW_TRY(nw_verbs_gid_check(there));
    for (size_t i = 0; i < here->count; i++)
        for (size_t k = 0; k < there->count; k++) {
            const struct nw_verbs_gid *mine = &here->rows[i], *theirs = &there->rows[k];

            if ((here->wished >= 0 && mine->index != here->wished) ||
                (there->wished >= 0 && theirs->index != there->wished) ||
                mine->kind != theirs->kind)
                continue;
            if (a == NULL || is_better(mine, theirs, a, b)) {
                a = mine;
                b = theirs;
            }
        }
    if (a == NULL)
        return no_pair(here, there);
    *here_out = (size_t)(a - here->rows);
    *there_out = (size_t)(b - there->rows);
    return NW_OK;
}
