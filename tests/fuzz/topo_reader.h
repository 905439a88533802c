/* What every reader's fuzz target asks of a topology that was accepted: parents before children,
 * and a copy through JSON. */
#ifndef NW_TESTS_FUZZ_TOPO_READER_H
#define NW_TESTS_FUZZ_TOPO_READER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/topo.h"

static inline void check_topo(struct nw_topo *topo)
{
    struct nw_topo *copy = NULL;
    json_t *json = NULL;

    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].parent >= (int)i)
            abort();
    for (size_t i = 0; i < topo->gid_count; i++)
        if (topo->nodes[topo->gids[i].port].kind != NW_NODE_PORT)
            abort();
    if (nw_topo_to_json(topo, &json) != NW_OK || nw_topo_from_json(json, "again", &copy) != NW_OK) {
        fprintf(stderr, "%s\n", nw_last_error()->text);
        abort();
    }
    json_decref(json);
    nw_topo_free(copy);
    nw_topo_free(topo);
}

static inline void try_reader(nw_rc (*read)(const char *data, size_t length, const char *what,
                                            struct nw_topo **topo_out),
                              const uint8_t *data, size_t size)
{
    struct nw_topo *topo = NULL;

    if (read((const char *)data, size, "fuzz", &topo) == NW_OK)
        check_topo(topo);
    else if (nw_last_error()->text[0] == '\0')
        abort(); /* a refusal says why */
    nw_clear_error();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
