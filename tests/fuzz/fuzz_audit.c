/* A topology of any content (our JSON) held against a whole quote: no crash, a verdict or a reason
 * for every row, letters. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/audit_text.h"
#include "report/letter.h"
#include "results/audit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char quote_text[] =
    "[cluster]\nnodes=2\n[gpu]\nmodel=H100 SXM\ncount=8\nmemory_GiB=80\nnvlink_GBps=900\n"
    "nvlink_is=bidirectional\nnvlink_links=18\nnvswitch=yes\necc=yes\npower_W=700\npcie_gen=5\n"
    "[network]\nnic_count=8\nnic_gbps=400\nrdma=yes\nkind=infiniband\ngpudirect=yes\n"
    "nic_per_gpu=yes\nmtu=4096\n[cpu]\ncores=96\nthreads=192\nram_GiB=2048\n"
    "[disk]\nnvme_count=4\nnvme_TB=3.84\nread_GBps=6\nwrite_GBps=3\nread_IOPS=800000\n"
    "file_system=lustre\nmount=/data\n[software]\nos=Ubuntu 22.04\ndriver=550.54\ncuda=12.4\n"
    "nccl=2.21\npytorch=2.4\nscheduler=slurm\n";

static void write_all(const struct nw_audit *audit, struct nw_topo **topo)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    struct nw_letter letter = {
        .audit = audit, .topos = topo, .topo_count = 1, .language = "zh", .version = "0"};
    json_t *json;

    if (stream == NULL || nw_report_audit(stream, audit) != NW_OK ||
        nw_report_letter(stream, &letter) != NW_OK || nw_audit_to_json(audit, &json) != NW_OK)
        abort();
    json_decref(json);
    fclose(stream);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nw_topo *topo;
    struct nw_quote quote;
    struct nw_audit audit;
    json_t *json = json_loadb((const char *)data, size, 0, NULL);

    if (json == NULL || nw_topo_from_json(json, "fuzz", &topo) != NW_OK) {
        json_decref(json);
        return 0;
    }
    json_decref(json);
    if (nw_quote_parse(quote_text, strlen(quote_text), "quote", &quote) != NW_OK ||
        nw_audit_make(&(struct nw_audit_input){.quote = &quote, .topos = &topo, .topo_count = 1},
                      &audit) != NW_OK)
        abort();
    for (size_t i = 0; i < audit.row_count; i++)
        if (audit.rows[i].verdict == NW_AUDIT_NOT_MEASURED && audit.rows[i].reason[0] == '\0')
            abort();
    write_all(&audit, &topo);
    nw_audit_free(&audit);
    nw_topo_free(topo);
    return 0;
}
