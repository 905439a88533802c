#include "collectives/verbs_card.h"

#include <string.h>

/* Raised with every change of the form. */
#define MAGIC 0x6e77766232u /* "nwvb2" */

/* Of one walk over the bytes, to write or to read: one list of fields serves both. Little end
 * first. */
struct walk {
    uint8_t *out; /* NULL: reading */
    const uint8_t *in;
    size_t at;
};

static void number(struct walk *walk, size_t width, uint64_t *value)
{
    uint64_t read = 0;

    for (size_t i = 0; i < width; i++)
        if (walk->out != NULL)
            walk->out[walk->at + i] = (uint8_t)(*value >> (8 * i));
        else
            read |= (uint64_t)walk->in[walk->at + i] << (8 * i);
    walk->at += width;
    if (walk->out == NULL)
        *value = read;
}

static void raw(struct walk *walk, void *bytes, size_t size)
{
    if (walk->out != NULL)
        memcpy(walk->out + walk->at, bytes, size);
    else
        memcpy(bytes, walk->in + walk->at, size);
    walk->at += size;
}

/* Read, it ends within its field whatever came. */
static void text(struct walk *walk, char *bytes, size_t size)
{
    raw(walk, bytes, size);
    if (walk->out == NULL)
        bytes[size - 1] = '\0';
}

#define FIELD(width, member)                                                                       \
    do {                                                                                           \
        uint64_t value_ = (uint64_t)(member);                                                      \
        number(walk, (width), &value_);                                                            \
        if (walk->out == NULL)                                                                     \
            (member) = (__typeof__(member))value_;                                                 \
    } while (0)

static void fields(struct walk *walk, struct nw_verbs_card *card)
{
    int16_t wished = (int16_t)card->wished_gid;

    text(walk, card->host, sizeof card->host);
    text(walk, card->device, sizeof card->device);
    text(walk, card->memory, sizeof card->memory);
    FIELD(2, card->port);
    FIELD(1, card->infiniband);
    FIELD(2, card->lid);
    FIELD(2, card->cm_port);
    FIELD(4, card->mtu_bytes);
    FIELD(4, card->wished_mtu_bytes);
    FIELD(2, wished);
    FIELD(4, card->rkey);
    FIELD(8, card->address);
    FIELD(8, card->bytes);
    FIELD(4, card->depth);
    FIELD(4, card->read_depth);
    FIELD(4, card->token);
    FIELD(4, card->qp_count);
    FIELD(4, card->gid_count);
    card->wished_gid = wished;
    for (size_t i = 0; i < NW_VERBS_CARD_QPS; i++) {
        FIELD(4, card->qps[i].number);
        FIELD(4, card->qps[i].sequence);
    }
    for (size_t i = 0; i < NW_VERBS_CARD_GIDS; i++) {
        raw(walk, card->gids[i].raw, sizeof card->gids[i].raw);
        FIELD(2, card->gids[i].index);
        FIELD(1, card->gids[i].kind);
    }
}

void nw_verbs_card_write(const struct nw_verbs_card *card, uint8_t bytes[NW_VERBS_CARD_BYTES])
{
    struct nw_verbs_card copy = *card;
    struct walk walk = {.out = bytes};
    uint64_t magic = MAGIC;

    memset(bytes, 0, NW_VERBS_CARD_BYTES);
    number(&walk, 8, &magic);
    fields(&walk, &copy);
}

nw_rc nw_verbs_card_read(const uint8_t bytes[NW_VERBS_CARD_BYTES], struct nw_verbs_card *card_out)
{
    struct walk walk = {.in = bytes};
    struct nw_verbs_card card;
    uint64_t magic;

    memset(&card, 0, sizeof card);
    number(&walk, 8, &magic);
    if (magic != MAGIC)
        return nw_fail(NW_EPEER, "the other side's RDMA address is none that this program reads: "
                                 "is it the same version of the program on both nodes?");
    fields(&walk, &card);
    for (size_t i = 0; i < card.gid_count && i < NW_VERBS_CARD_GIDS; i++)
        if ((unsigned)card.gids[i].kind >= NW_VERBS_GID_KIND_COUNT)
            card.gid_count = SIZE_MAX;
    if (card.gid_count > NW_VERBS_CARD_GIDS || card.qp_count < 1 ||
        card.qp_count > NW_VERBS_CARD_QPS || card.depth < 1)
        return nw_fail(NW_EPEER,
                       "the other side's RDMA address is damaged: %u queue pairs of depth "
                       "%u",
                       card.qp_count, card.depth);
    *card_out = card;
    return NW_OK;
}
