/* Private to cli/. Completions for bash, zsh and fish, and man pages: written by the program out of
 * what its own commands say that they take (cli/describe.h). The build calls it; so may people:
 *
 *     nodeworth generate bash > ~/.local/share/bash-completion/completions/nodeworth
 *     nodeworth generate man DIR     man -M DIR nodeworth-run
 */
#ifndef NW_CLI_GENERATE_H
#define NW_CLI_GENERATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/words.h"

#define NW_CLI_DESCRIBE "--describe"

struct nw_described_option { /* borrowed from the JSON; NULL: none */
    const char *heading;     /* alone: what follows belongs under it */
    const char *name, *letter, *argument, *known, *help;
    const json_t *choices;
    bool several;
};
struct nw_described_command {
    const char *name, *summary;
    const char *arguments, *about;
    struct nw_described_option *options;
    size_t option_count;
    json_t *root;
};
struct nw_description {
    const char *version, *date;         /* of the program */
    struct nw_described_command common; /* the options of every command */
    struct nw_described_command *commands;
    size_t command_count;
    json_t *root;
};

/* What an option or argument takes. */
typedef enum {
    NW_TAKES_NOTHING,  /* no argument */
    NW_TAKES_ANYTHING, /* a number, a text */
    NW_TAKES_FILE,
    NW_TAKES_DIRECTORY,
    NW_TAKES_CHOICE,
    NW_TAKES_KNOWN,       /* a name of `nodeworth list KIND` */
    NW_TAKES_KNOWN_LIST,  /* several, with commas */
    NW_TAKES_KNOWN_VALUE, /* NAME=VALUE */
} nw_takes;

/* Of the program in this file; free it, also after a failure. */
nw_rc nw_description_ask(const char *program, struct nw_description *all);
void nw_description_free(struct nw_description *all);

nw_takes nw_takes_of(const struct nw_described_option *option);
/* What stands for files besides names, as of "NAME|FILE". */
bool nw_takes_files(const struct nw_described_option *option);
/* The kind of NW_TAKES_KNOWN…, into `kind`; returns it. */
const char *nw_takes_kind(const struct nw_described_option *option, char *kind, size_t size);

void nw_complete_bash(FILE *stream, const struct nw_description *all);
void nw_complete_zsh(FILE *stream, const struct nw_description *all);
void nw_complete_fish(FILE *stream, const struct nw_description *all);

void nw_manual_of_all(FILE *stream, const struct nw_description *all,
                      const struct nw_language *language);
void nw_manual_of_command(FILE *stream, const struct nw_description *all,
                          const struct nw_described_command *command,
                          const struct nw_language *language);

int nw_cmd_generate(int argc, char **argv); /* inner */

#endif
