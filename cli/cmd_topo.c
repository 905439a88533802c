/* nodeworth topo: what this machine is, or what a file says of one. */
#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "report/topo_text.h"
#include "topo/topo.h"

struct options {
    bool json;
    const char *save, *from;
};

static const struct nw_option rows[] = {
    {.name = "json",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct options, json),
     .help = "print JSON instead of the table"},
    {.name = "save",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, save),
     .help = "write the topology as JSON to FILE, whole or not at all"},
    {.name = "from",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, from),
     .help = "read FILE instead of this machine: JSON of --save, or hwloc XML (lstopo FILE.xml) of "
             "version 1, 2 or 3; \"-\" is standard input"},
};

static nw_rc print(const struct options *options, const struct nw_topo *topo)
{
    json_t *json;
    nw_rc rc;

    if (!options->json)
        return nw_report_topo(stdout, topo);
    NW_TRY(nw_topo_to_json(topo, &json));
    rc = nw_json_print(stdout, json);
    json_decref(json);
    return rc;
}

static nw_rc run(const struct options *options)
{
    struct nw_topo *topo;
    nw_rc rc;

    if (options->from != NULL)
        NW_TRY(nw_topo_read_file(options->from, &topo));
    else
        NW_TRY(nw_topo_read_live(&topo));
    rc = options->save != NULL ? nw_topo_save(topo, options->save) : NW_OK;
    if (rc == NW_OK)
        rc = print(options, topo);
    nw_topo_free(topo);
    if (rc == NW_OK)
        rc = nw_cli_finish_stdout();
    return rc;
}

int nw_cmd_topo(int argc, char **argv)
{
    struct options options = {0};
    struct nw_cli cli = {
        .doc = "What this machine is: packages, NUMA nodes, cores, memory, the PCI tree with GPUs, "
               "NICs and disks, and the links between GPUs. What cannot be seen is said, never "
               "taken for absent.",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .target = &options,
    };
    nw_rc rc = nw_cli_parse(&cli, argc, argv, true);

    if (rc == NW_OK)
        rc = run(&options);
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
