/* Two topologies (any formats, parted by a line "%%") merged: what comes out keeps a topology's
 * promises, can be made anonymous, written, and read back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/product.h"
#include "topo/topo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if ((i == 0) != (topo->nodes[i].parent == -1) || topo->nodes[i].parent >= (int)i)
            abort();
    for (size_t i = 0; i < topo->fact_count; i++)
        if (nw_topo_fact(topo, topo->facts[i].node, topo->facts[i].id) != &topo->facts[i])
            abort();
    for (size_t i = 0; i < topo->link_count; i++)
        if (topo->links[i].a < 0 || topo->links[i].b < 0 ||
            (size_t)topo->links[i].a >= topo->node_count ||
            (size_t)topo->links[i].b >= topo->node_count || topo->links[i].a == topo->links[i].b)
            abort();
    for (size_t i = 0; i < topo->link_count; i++)
        if (nw_topo_link_between(topo, topo->links[i].kind, topo->links[i].a, topo->links[i].b) ==
            NULL)
            abort();
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_GPU) {
            struct nw_gpu_product product;

            nw_gpu_identify(topo, (int)i, &product);
        }
}

/* Written, read, written again: the same; and the same devices. */
static void round_trip(const struct nw_topo *topo)
{
    struct nw_topo *copy = NULL;
    json_t *first = NULL, *second = NULL;

    if (nw_topo_to_json(topo, &first) != NW_OK ||
        nw_topo_from_json(first, "again", &copy) != NW_OK ||
        nw_topo_to_json(copy, &second) != NW_OK || !json_equal(first, second)) {
        fprintf(stderr, "%s\n", nw_last_error()->text);
        abort();
    }
    json_decref(first);
    json_decref(second);
    nw_topo_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *mark = memmem(data, size, "\n%%\n", 4);
    struct nw_topo *into = NULL, *from = NULL;
    const size_t first = mark != NULL ? (size_t)(mark - (const char *)data) : 0;

    if (mark == NULL || nw_topo_read_data((const char *)data, first, "a", &into) != NW_OK)
        return 0;
    if (nw_topo_read_data(mark + 4, size - first - 4, "b", &from) == NW_OK &&
        nw_topo_merge(into, from) == NW_OK) {
        check(into);
        round_trip(into);
        const size_t nodes = into->node_count, findings = into->findings.count;

        if (nw_topo_anonymise(into, "seed") == NW_OK) {
            if (into->node_count != nodes || into->findings.count != findings)
                abort();
            check(into);
            round_trip(into);
        }
    }
    nw_topo_free(into);
    nw_topo_free(from);
    return 0;
}
