/* NCCL's topology files: whatever is accepted must go through JSON unchanged, be printable, and be
 * written as a file that is accepted again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/topo_text.h"
#include "topo/topo.h"
#include "topo/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef nw_rc writer(FILE *stream, const struct nw_topo *topo);

static nw_rc write_xml(FILE *stream, const struct nw_topo *topo)
{
    return nw_topo_write_nccl_xml(topo, stream);
}

static nw_rc write_dot(FILE *stream, const struct nw_topo *topo)
{
    return nw_topo_write_dot(topo, stream);
}

/* The text; NULL: it could not be written. */
static char *text_of(const struct nw_topo *topo, writer *write)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    nw_rc rc;

    if (stream == NULL)
        return NULL;
    rc = write(stream, topo);
    fclose(stream);
    if (rc == NW_OK)
        return text;
    free(text);
    return NULL;
}

static void through_json(const struct nw_topo *topo)
{
    struct nw_topo *copy = NULL;
    json_t *json = NULL;

    if (nw_topo_to_json(topo, &json) != NW_OK || nw_topo_from_json(json, "again", &copy) != NW_OK)
        abort();
    json_decref(json);
    nw_topo_free(copy);
}

static void through_xml(const struct nw_topo *topo)
{
    char *text = text_of(topo, write_xml);
    struct nw_topo *back = NULL;

    if (text == NULL)
        return;
    /* A file with bridges only, whose devices are all unknown, comes out empty. */
    if (nw_topo_read_data(text, strlen(text), "back", &back) == NW_OK &&
        nw_topo_count(back, NW_NODE_GPU) != nw_topo_count(topo, NW_NODE_GPU))
        abort();
    nw_topo_free(back);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nw_topo *topo = NULL;

    if (nw_topo_read_data((const char *)data, size, "fuzz", &topo) != NW_OK)
        return 0;
    if ((topo->sources & NW_SOURCE_NCCL_XML) != 0) {
        through_json(topo);
        through_xml(topo);
        free(text_of(topo, nw_report_topo));
        free(text_of(topo, write_dot));
    }
    nw_topo_free(topo);
    return 0;
}
