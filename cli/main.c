/* nodeworth: a table of subcommands. */
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "base/words.h"
#include "cli/check_read.h"
#include "cli/cli.h"
#include "cli/describe.h"
#include "cli/generate.h"
#include "cli/worker.h"

static const struct nw_command nw_commands[] = {
    {"run", "measure, hold against the quote, predict and decide: everything in one go",
     nw_cmd_run},
    {"topo", "what this machine is: packages, NUMA, memory, PCI tree, GPUs, NICs, disks",
     nw_cmd_topo},
    {"check", "are these hosts fit to run: devices, links, network, binding, software; in seconds",
     nw_cmd_check},
    {"bench", "measure collectives, pairs, scaling and GPUs between the ranks of an mpirun",
     nw_cmd_bench},
    {"fleet", "the bad host among many: compare hosts by their pairs, what to leave out",
     nw_cmd_fleet},
    {"import", "read logs of other tools: nccl-tests, nvbandwidth, perftest, OSU, fio …",
     nw_cmd_import},
    {"show", "browse results: what was measured, every result, curves; CSV, OpenMetrics",
     nw_cmd_show},
    {"compare", "which machine is faster, before and after, a node against a baseline",
     nw_cmd_compare},
    {"baseline", "what the nodes of a set usually reach, as a file for compare", nw_cmd_baseline},
    {"merge", "several results files as one; names hidden for strangers", nw_cmd_merge},
    {"quote", "write or check a vendor's quote file", nw_cmd_quote},
    {"audit", "hold results against a quote and against physics", nw_cmd_audit},
    {"report", "results as one page to read and pass on: HTML, offline, English and Chinese",
     nw_cmd_report},
    {"predict", "memory and step time of a training job from measured curves", nw_cmd_predict},
    {"decide", "is a second node worth its price", nw_cmd_decide},
    {"replay", "execute the predicted step on these ranks: is the prediction right", nw_cmd_replay},
    {"search", "the fastest and the cheapest mix of parallelism, batch and memory saving",
     nw_cmd_search},
    {"emit", "the plan as configuration: DeepSpeed, Accelerate, Megatron, Slurm, Kubernetes",
     nw_cmd_emit},
    {"infer", "serving: tokens/s, latency, sequences at once and cost on any GPUs", nw_cmd_infer},
    {"list", "what can be named: models, GPUs, collectives, strategies …", nw_cmd_list},
    {"env", "what to attach to a report of a problem: versions, libraries, limits", nw_cmd_env},
    {NULL, NULL, NULL},
};

/* The program starts itself with the first two; the build starts the third. */
static const struct nw_command nw_inner_commands[] = {
    {"worker", "one lane of bench and run", nw_cmd_worker},
    {"reader", "one host of check", nw_cmd_reader},
    {"generate", "completions of shells, man pages", nw_cmd_generate},
    {NULL, NULL, NULL},
};

static void print_usage(FILE *stream)
{
    nw_print(stream,
             "Usage: nodeworth COMMAND [OPTION...]\n"
             "       mpirun -np RANKS [--hostfile HOSTS] nodeworth run|check|bench [OPTION...]\n\n"
             "Is this machine what was quoted, how long is a training step, is a second "
             "node worth its price?\n\n");
    for (const struct nw_command *command = nw_commands; command->name != NULL; command++)
        fprintf(stream, "  %-9s %s\n", command->name, nw_tr(command->summary));
    nw_print(
        stream,
        "\nEach command: nodeworth COMMAND --help. Exit codes: 0 pass, 1 a finding fails, 2 bad "
        "input,\n3 inconclusive, 4 the run itself broke.\n");
}

static int unknown_command(const char *name)
{
    const char *names[sizeof nw_commands / sizeof *nw_commands];
    char accepted[256];
    const char *near;

    for (size_t i = 0; i < sizeof nw_commands / sizeof *nw_commands; i++)
        names[i] = nw_commands[i].name;
    near = nw_nearest_name(name, names);
    nw_join_names(accepted, sizeof accepted, names);
    if (near != NULL)
        return nw_cli_fail(nw_fail(NW_EUSAGE,
                                   "unknown command \"%s\"; did you mean \"%s\"?. Accepted: %s",
                                   name, near, accepted));
    return nw_cli_fail(nw_fail(NW_EUSAGE, "unknown command \"%s\". Accepted: %s", name, accepted));
}

static int run_command(const struct nw_command *command, int argc, char **argv)
{
    char title[64];
    int exit_code;

    snprintf(title, sizeof title, "nodeworth %s", command->name);
    nw_message_prefix(title);
    argv[0] = title;
    exit_code = command->run(argc, argv);
    if (nw_cli_finish_stdout() != NW_OK && exit_code != nw_rc_exit_code(NW_EIO))
        exit_code = nw_cli_fail(NW_EIO); /* else the command has said so */
    return exit_code;
}

/* Takes "--lang KEY" out of the command line, wherever it stands before "--". */
static nw_rc take_language(int *argc, char **argv, const struct nw_language **language)
{
    static const char option[] = "--lang";
    const size_t length = sizeof option - 1;
    int kept = 1, i = 1;

    for (; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        const char *key = argv[i] + length;

        if (strncmp(argv[i], option, length) != 0 || (*key != '=' && *key != '\0')) {
            argv[kept++] = argv[i];
            continue;
        }
        if (*key == '\0' && i + 1 < *argc)
            key = argv[++i];
        else if (*key == '=')
            key++;
        NW_TRY(nw_language_find(key, language));
    }
    while (i < *argc)
        argv[kept++] = argv[i++];
    argv[kept] = NULL;
    *argc = kept;
    return NW_OK;
}

static bool is_inner(const char *name)
{
    for (const struct nw_command *command = nw_inner_commands; command->name != NULL; command++)
        if (strcmp(name, command->name) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    const struct nw_language *language = nw_language_of_environment();

    /* Never LC_NUMERIC, numbers are written with a point; nor LC_MESSAGES, for what the system's
     * libraries say goes into sentences of ours. */
    setlocale(LC_CTYPE, "");
    nw_message_prefix("nodeworth");
    if (take_language(&argc, argv, &language) != NW_OK)
        return nw_cli_fail(NW_EUSAGE);
    if (argc > 1 && !is_inner(argv[1])) /* whoever started those reads them */
        nw_speak(language);
    if (argc < 2) {
        nw_speak(language);
        print_usage(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("nodeworth %s\n", nw_version);
        return 0;
    }
    if (strcmp(argv[1], NW_CLI_DESCRIBE) == 0)
        return nw_cli_describe_all(nw_commands) == NW_OK ? 0 : nw_cli_fail(NW_EIO);
    for (const struct nw_command *command = nw_commands; command->name != NULL; command++)
        if (strcmp(argv[1], command->name) == 0)
            return run_command(command, argc - 1, argv + 1);
    for (const struct nw_command *command = nw_inner_commands; command->name != NULL; command++)
        if (strcmp(argv[1], command->name) == 0)
            return run_command(command, argc - 1, argv + 1);
    return unknown_command(argv[1]);
}
