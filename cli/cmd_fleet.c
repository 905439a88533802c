/* nodeworth fleet: which host, rank or pair is worse than its like; what to leave out. */
#include <stddef.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/inputs.h"
#include "report/fleet_text.h"
#include "results/fleet.h"

struct options {
    bool json, all;
    const char *exclude, *hosts;
};

static const struct nw_option rows[] = {
    {.name = "exclude-hosts",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, exclude),
     .help = "write the hosts to leave out to FILE, one a line"},
    {.name = "hosts",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, hosts),
     .help = "write the other hosts to FILE: a hostfile of mpirun"},
    {.name = "all",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct options, all),
     .help = "show every host, also where many are good"},
    {.name = "json",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct options, json),
     .help = "print JSON instead of the tables"},
};

static nw_rc show(const struct options *options, const struct nw_fleet_report *report)
{
    json_t *json;
    nw_rc rc;

    if (options->exclude != NULL)
        NW_TRY(nw_fleet_write_excluded(report, options->exclude));
    if (options->hosts != NULL)
        NW_TRY(nw_fleet_write_hosts(report, options->hosts));
    if (!options->json)
        return nw_report_fleet(stdout, report, options->all);
    NW_TRY(nw_fleet_to_json(report, &json));
    rc = nw_json_print(stdout, json);
    json_decref(json);
    return rc;
}

static bool has_suspects(const struct nw_fleet_report *report)
{
    for (int i = 0; i < NW_FLEET_LEVELS; i++) {
        const struct nw_fleet_scores *scores = &report->levels[i].scores;

        for (int end = 0; end < report->levels[i].fleet.end_count; end++)
            if (nw_fleet_is_suspect(&scores->ends[end]))
                return true;
        for (size_t pair = 0; pair < scores->suspect_count; pair++)
            if (!scores->suspects[pair].explained)
                return true;
    }
    return false;
}

int nw_cmd_fleet(int argc, char **argv)
{
    static const struct nw_option_list none = {0};
    struct options options = {0};
    struct nw_results results = {0};
    struct nw_fleet_report report = {0};
    struct nw_cli cli = {
        .arguments = "FILE…",
        .doc = "Compares hosts with each other by their pairs: results of bench (case pairs), logs "
               "of nccl-tests over two hosts, or a pairwise summary of them (CSV). Names the slow "
               "host, rank and pair, and what to leave out.\v"
               "A host is held against the others by the median absolute deviation, a pair against "
               "what the weaker of its two hosts reaches with others. Exit status: 0 nobody is a "
               "suspect; 1 somebody is; 2 a file cannot be read; 3 no pairs in it.",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .target = &options,
        .min_arguments = 1,
        .max_arguments = -1,
    };
    nw_rc rc = nw_cli_parse(&cli, argc, argv, true);
    bool suspects = false;

    if (rc == NW_OK)
        rc = nw_cli_read_all_measured(&none, &cli, &results);
    if (rc == NW_OK)
        rc = nw_fleet_of_results(&results, &report);
    if (rc == NW_OK) {
        suspects = has_suspects(&report);
        rc = show(&options, &report);
    }
    nw_fleet_report_free(&report);
    nw_results_free(&results);
    return rc != NW_OK ? nw_cli_fail(rc) : suspects;
}
