/* hwloc XML: whatever is accepted must go through JSON unchanged and be printable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/topo_text.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nw_topo *topo = NULL, *copy = NULL;
    json_t *json = NULL;

    if (nw_topo_read_data((const char *)data, size, "fuzz", &topo) != NW_OK)
        return 0;
    if (nw_topo_to_json(topo, &json) != NW_OK || nw_topo_from_json(json, "again", &copy) != NW_OK)
        abort();
    print_away(topo);
    json_decref(json);
    nw_topo_free(topo);
    nw_topo_free(copy);
    return 0;
}
