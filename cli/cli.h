/* Private to cli/. What the subcommands share: argp over option rows, exit codes, output files. */
#ifndef NW_CLI_CLI_H
#define NW_CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/option.h"

/* One row of main's table: cli/cmd_<name>.c has `int nw_cmd_<name>(int argc, char **argv)`, which
 * returns the program's exit code; argv[0] is "nodeworth <name>". */
struct nw_command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
};

int nw_cmd_run(int argc, char **argv);
int nw_cmd_topo(int argc, char **argv);
int nw_cmd_check(int argc, char **argv);
int nw_cmd_bench(int argc, char **argv);
int nw_cmd_fleet(int argc, char **argv);
int nw_cmd_import(int argc, char **argv);
int nw_cmd_audit(int argc, char **argv);
int nw_cmd_quote(int argc, char **argv);
int nw_cmd_predict(int argc, char **argv);
int nw_cmd_decide(int argc, char **argv);
int nw_cmd_emit(int argc, char **argv);
int nw_cmd_search(int argc, char **argv);
int nw_cmd_infer(int argc, char **argv);
int nw_cmd_show(int argc, char **argv);
int nw_cmd_compare(int argc, char **argv);
int nw_cmd_baseline(int argc, char **argv);
int nw_cmd_merge(int argc, char **argv);
int nw_cmd_list(int argc, char **argv);
int nw_cmd_replay(int argc, char **argv);
int nw_cmd_report(int argc, char **argv);
int nw_cmd_env(int argc, char **argv);

struct nw_cli {
    const char *arguments; /* "FILE…" for --help; NULL: none taken */
    const char *doc; /* text before the options; "\v" and what follows comes behind them (argp) */
    const struct nw_option *rows; /* one table; nw_cli_embed joins several */
    size_t row_count;
    void *target;
    int min_arguments, max_arguments; /* -1: any number */
    /* out */
    char **positional; /* points into argv */
    int positional_count;
};

/* Fallbacks into the target, then argp. NW_OK: go on. Bad usage: NW_EUSAGE with the sentence in
 * nw_last_error().
 * --help and --version print and exit(0) (only where `speaks`: rank 0). */
nw_rc nw_cli_parse(struct nw_cli *cli, int argc, char **argv, bool speaks);

/* Rows of one table as rows of another: `offset` is added to each field's; letters are dropped when
 * `letters` is false. `to` has room for `count`; returns `count`. */
size_t nw_cli_embed(struct nw_option *to, const struct nw_option *rows, size_t count, size_t offset,
                    bool letters);

/* What the launcher says before MPI is started (collectives/launch.h); -1: not under one. */
int nw_cli_launch_rank(void);
int nw_cli_launch_size(void);

/* "nodeworth bench: <last error>" on stderr, and the exit code of it. */
int nw_cli_fail(nw_rc rc);

/* Where results go: stdout, checked. NW_EIO when stdout cannot be written (closed pipe, full disk).
 */
nw_rc nw_cli_finish_stdout(void);

/* build/version.c: "0.1.0-12-gabcdef-dirty"; the day of its commit, "2026-11-30", "" unknown */
extern const char nw_version[], nw_version_date[];

#endif
