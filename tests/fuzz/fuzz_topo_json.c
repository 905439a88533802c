/* Topology JSON: whatever is accepted must survive a round trip, be printable, and be judged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/topo_text.h"
#include "topo/preflight.h"
#include "topo/topo.h"

static void print_away(const struct nw_topo *topo)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    if (stream == NULL)
        return;
    (void)nw_report_topo(stream, topo);
    fclose(stream);
    free(text);
}

/* Alone, and beside its own copy. */
static void judge(struct nw_topo *topo, struct nw_topo *copy)
{
    struct nw_topo *const hosts[] = {topo, copy};
    struct nw_findings findings = {0};

    for (size_t count = 1; count <= 2; count++)
        (void)nw_preflight_judge(&(struct nw_preflight_input){.hosts = hosts, .host_count = count},
                                 &findings);
    nw_findings_free(&findings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_error_t error;
    json_t *root = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &error);
    json_t *first = NULL, *second = NULL;
    struct nw_topo *topo = NULL, *copy = NULL;

    if (root == NULL)
        return 0;
    if (nw_topo_from_json(root, "fuzz", &topo) == NW_OK) {
        if (nw_topo_to_json(topo, &first) != NW_OK ||
            nw_topo_from_json(first, "again", &copy) != NW_OK ||
            nw_topo_to_json(copy, &second) != NW_OK || !json_equal(first, second))
            abort();
        print_away(topo);
        judge(topo, copy);
    }
    json_decref(first);
    json_decref(second);
    json_decref(root);
    nw_topo_free(topo);
    nw_topo_free(copy);
    return 0;
}
