/* nodeworth topo: what this machine is, or what a file says of one. */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/slow.h"
#include "report/topo_paths.h"
#include "report/topo_text.h"
#include "topo/topo.h"
#include "topo/write.h"

struct options {
    bool json, keep_names;
    const char *format, *save;
    struct nw_option_list from;
};

static const char *const formats[] = {"table", "json", "dot", "xml", NULL};

static const struct nw_option rows[] = {
    {.name = "format",
     .argument = "FORMAT",
     .type = NW_OPTION_CHOICE,
     .offset = offsetof(struct options, format),
     .choices = formats,
     .fallback = "table",
     .help = "what to print: table, json, dot (Graphviz), or xml (NCCL's topology file, for "
             "NCCL_TOPO_FILE)"},
    {.name = "json",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct options, json),
     .help = "the same as --format json"},
    {.name = "save",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, save),
     .help = "write all that was read as JSON to FILE, whole or not at all: host names, serial "
             "numbers, UUIDs, GUIDs, MAC and IP addresses, paths replaced, equal ones by equal "
             "ones"},
    {.name = "keep-names",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct options, keep_names),
     .help = "--save writes names and addresses as they are"},
    {.name = "from",
     .argument = "FILE",
     .type = NW_OPTION_LIST,
     .offset = offsetof(struct options, from),
     .help =
         "read FILE, or all files of a folder, instead of this machine: JSON of --save, or what "
         "other tools write (nodeworth list formats); given several times, sources of one "
         "machine become one topology; \"-\" is standard input"},
};

static nw_rc print_json(const struct nw_topo *topo)
{
    json_t *json;
    nw_rc rc;

    NW_TRY(nw_topo_to_json(topo, &json));
    rc = nw_report_paths_json(topo, json);
    if (rc == NW_OK)
        rc = nw_json_print(stdout, json);
    json_decref(json);
    return rc;
}

static nw_rc print(const struct options *options, const struct nw_topo *topo)
{
    if (options->json || strcmp(options->format, "json") == 0)
        return print_json(topo);
    if (strcmp(options->format, "dot") == 0)
        return nw_topo_write_dot(topo, stdout);
    if (strcmp(options->format, "xml") == 0)
        return nw_topo_write_nccl_xml(topo, stdout);
    return nw_report_topo(stdout, topo);
}

static nw_rc save(const struct options *options, const struct nw_topo *topo)
{
    if (options->save == NULL)
        return NW_OK;
    return options->keep_names ? nw_topo_save(topo, options->save)
                               : nw_topo_save_anonymous(topo, NULL, options->save);
}

/* Healthy machines take a second or two. */
static nw_rc read_live(struct nw_topo **topo_out)
{
    const pid_t watcher = nw_slow_watch("topo", 10, STDERR_FILENO);
    const nw_rc rc = nw_topo_read_live(topo_out);

    nw_slow_end(watcher);
    return rc;
}

static nw_rc run(const struct options *options)
{
    struct nw_topo *topo;
    nw_rc rc;

    if (options->keep_names && options->save == NULL)
        return nw_fail(NW_EUSAGE, "--keep-names is said of --save FILE, which is not given");
    if (options->from.count > 0)
        NW_TRY(nw_topo_read_paths(options->from.items, (size_t)options->from.count, &topo));
    else
        NW_TRY(read_live(&topo));
    rc = save(options, topo);
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
               "NICs and disks, the links between GPUs, and what each path can carry. What cannot "
               "be seen is said, never taken for absent.\v"
               "Exit codes: 0, 2 bad input: a file in no known format, or of another machine.",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .target = &options,
    };
    nw_rc rc = nw_cli_parse(&cli, argc, argv, true);

    if (rc == NW_OK && options.json && strcmp(options.format, "table") != 0 &&
        strcmp(options.format, "json") != 0)
        rc = nw_fail(NW_EUSAGE, "--json and --format %s contradict each other; give one of them",
                     options.format);
    if (rc == NW_OK)
        rc = run(&options);
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
