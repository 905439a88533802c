/* Private to collectives/. What one end tells the other, as bytes that every machine reads alike.
 */
#ifndef NW_COLLECTIVES_VERBS_CARD_H
#define NW_COLLECTIVES_VERBS_CARD_H

#include "collectives/verbs.h"

enum { NW_VERBS_CARD_GIDS = 24, NW_VERBS_CARD_QPS = 64 };

struct nw_verbs_card {
    char host[64], device[64], memory[32];
    int port;
    bool infiniband;
    uint16_t lid, cm_port; /* cm_port 0: no rdma_cm */
    uint32_t mtu_bytes, wished_mtu_bytes;
    int wished_gid; /* -1: by rule */
    uint32_t rkey;
    uint64_t address, bytes; /* of the registered buffer */
    uint32_t depth, read_depth, token;
    uint32_t qp_count;
    struct {
        uint32_t number, sequence; /* QP number, first packet sequence number */
    } qps[NW_VERBS_CARD_QPS];
    size_t gid_count;
    struct nw_verbs_gid gids[NW_VERBS_CARD_GIDS];
};

void nw_verbs_card_write(const struct nw_verbs_card *card, uint8_t bytes[NW_VERBS_CARD_BYTES]);
/* NW_EPEER: not a card, of another version of the program, or with fields out of range. */
nw_rc nw_verbs_card_read(const uint8_t bytes[NW_VERBS_CARD_BYTES], struct nw_verbs_card *card_out);

#endif
