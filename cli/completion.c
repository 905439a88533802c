/* Completions for bash, zsh and fish. Options, choices and commands are written out; names of
 * models, GPUs, collectives and the like are asked of `nodeworth list` at the moment. */
#include <string.h>

#include "cli/generate.h"

/* The names that one can write on the command line without an option: the words in small letters
 * of "init [FILE] | check FILE". */
static void print_words(FILE *stream, const char *arguments)
{
    bool blank = true;

    for (const char *at = arguments; at != NULL && *at != '\0'; at++) {
        const bool letter = *at >= 'a' && *at <= 'z';

        if (letter && (blank || (at > arguments && at[-1] >= 'a' && at[-1] <= 'z')))
            fputc(*at, stream);
        else if (!blank)
            fputc(' ', stream);
        blank = !letter;
    }
}

static bool are_files(const char *arguments)
{
    return strstr(arguments, "FILE") != NULL || strstr(arguments, "LOG") != NULL ||
           strstr(arguments, "RESULTS") != NULL;
}

/* Help as a short remark: up to its first ";" or blank line. */
static size_t remark_length(const char *help)
{
    return help != NULL ? strcspn(help, ";\n") : 0;
}

static void print_choices(FILE *stream, const json_t *choices)
{
    for (size_t i = 0; i < json_array_size(choices); i++)
        fprintf(stream, "%s%s", i > 0 ? " " : "", json_string_value(json_array_get(choices, i)));
}

static const struct nw_described_option *find_option(const struct nw_described_command *command,
                                                     const char *name)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].name != NULL && strcmp(command->options[i].name, name) == 0)
            return &command->options[i];
    return NULL;
}

/* ---- bash --------------------------------------------------------------------------------------
 */

static void bash_options(FILE *stream, const struct nw_described_command *command)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].name != NULL)
            fprintf(stream, " --%s", command->options[i].name);
}

static bool takes_alike(const struct nw_described_option *one,
                        const struct nw_described_option *other)
{
    return nw_takes_of(one) == nw_takes_of(other) && nw_takes_files(one) == nw_takes_files(other) &&
           ((one->known == NULL && other->known == NULL) ||
            (one->known != NULL && other->known != NULL &&
             strcmp(one->known, other->known) == 0)) &&
           (one->choices == NULL || json_equal(one->choices, other->choices));
}

/* Has an earlier command written the same clause? Then its pattern is there already. */
static bool is_written(const struct nw_description *all, size_t command, const char *name,
                       const struct nw_described_option *option)
{
    for (size_t i = 0; i < command; i++) {
        const struct nw_described_option *earlier = find_option(&all->commands[i], name);

        if (earlier != NULL && takes_alike(earlier, option))
            return true;
    }
    return false;
}

/* `run:--model | predict:--model)`: every command whose option takes the same. */
static void bash_pattern(FILE *stream, const struct nw_description *all, size_t first,
                         const struct nw_described_option *option)
{
    const char *between = "    ";

    for (size_t i = first; i < all->command_count; i++) {
        const struct nw_described_option *same = find_option(&all->commands[i], option->name);

        if (same == NULL || !takes_alike(same, option))
            continue;
        fprintf(stream, "%s%s:--%s", between, all->commands[i].name, option->name);
        between = " | ";
        if (same->letter != NULL)
            fprintf(stream, " | %s:-%s", all->commands[i].name, same->letter);
    }
    fprintf(stream, ") ");
}

static void bash_action(FILE *stream, const struct nw_described_option *option)
{
    char kind[40];

    switch (nw_takes_of(option)) {
    case NW_TAKES_CHOICE:
        fprintf(stream, "_nodeworth_words '");
        print_choices(stream, option->choices);
        fprintf(stream, "'");
        break;
    case NW_TAKES_KNOWN:
        fprintf(stream, "_nodeworth_words \"$(_nodeworth_list %s)\"",
                nw_takes_kind(option, kind, sizeof kind));
        if (nw_takes_files(option))
            fprintf(stream, "; _nodeworth_files");
        break;
    case NW_TAKES_KNOWN_LIST:
        fprintf(stream, "_nodeworth_several \"$(_nodeworth_list %s)\"",
                nw_takes_kind(option, kind, sizeof kind));
        break;
    case NW_TAKES_KNOWN_VALUE:
        fprintf(stream, "_nodeworth_open_words \"$(_nodeworth_list %s)\"",
                nw_takes_kind(option, kind, sizeof kind));
        break;
    case NW_TAKES_DIRECTORY:
        fprintf(stream, "_nodeworth_files -d");
        break;
    case NW_TAKES_FILE:
        fprintf(stream, "_nodeworth_files");
        break;
    default:
        fprintf(stream, ":");
    }
    fprintf(stream, " ;;\n");
}

static void bash_values(FILE *stream, const struct nw_description *all)
{
    fprintf(stream, "_nodeworth_value() { # COMMAND:OPTION; 1: the option takes nothing\n"
                    "    case $1 in\n");
    for (size_t i = 0; i < all->command_count; i++) {
        const struct nw_described_command *command = &all->commands[i];

        for (size_t j = 0; j < command->option_count; j++) {
            const struct nw_described_option *option = &command->options[j];

            if (option->name == NULL || option->argument == NULL ||
                is_written(all, i, option->name, option))
                continue;
            bash_pattern(stream, all, i, option);
            bash_action(stream, option);
        }
    }
    for (size_t i = 0; i < all->common.option_count; i++)
        if (all->common.options[i].argument != NULL) {
            fprintf(stream, "    *:--%s) ", all->common.options[i].name);
            bash_action(stream, &all->common.options[i]);
        }
    fprintf(stream, "    *) return 1 ;;\n"
                    "    esac\n"
                    "    return 0\n"
                    "}\n");
}

static void bash_arguments(FILE *stream, const struct nw_description *all)
{
    fprintf(stream, "_nodeworth_argument() { # COMMAND\n"
                    "    case $1 in\n");
    for (size_t i = 0; i < all->command_count; i++) {
        const char *arguments = all->commands[i].arguments;

        if (arguments == NULL)
            continue;
        fprintf(stream, "    %s) ", all->commands[i].name);
        if (strstr(arguments, "KIND") != NULL) {
            fprintf(stream, "_nodeworth_words \"$(_nodeworth_list)\" ;;\n");
            continue;
        }
        fprintf(stream, "_nodeworth_words '");
        print_words(stream, arguments);
        fprintf(stream, are_files(arguments) ? "'; _nodeworth_files ;;\n" : "' ;;\n");
    }
    fprintf(stream, "    esac\n"
                    "}\n");
}

/* A word is cut at "=" by bash itself (COMP_WORDBREAKS), which makes "--model", "=", "lla" of
 * --model=lla. */
static const char bash_head[] =
    "# bash completion of nodeworth; written by `nodeworth generate bash`\n"
    "# shellcheck shell=bash disable=SC2207\n"
    "_nodeworth_list() { # [KIND]: its names\n"
    "    \"$_nodeworth_program\" list ${1+\"$1\"} --names 2>/dev/null\n"
    "}\n"
    "_nodeworth_words() {\n"
    "    COMPREPLY+=($(compgen -W \"$1\" -- \"$cur\"))\n"
    "}\n"
    "_nodeworth_several() { # the last of names with commas between them\n"
    "    local before=''\n"
    "    case $cur in *,*) before=${cur%,*}, ;; esac\n"
    "    COMPREPLY+=($(compgen -P \"$before\" -W \"$1\" -- \"${cur##*,}\"))\n"
    "    compopt -o nospace 2>/dev/null\n"
    "}\n"
    "_nodeworth_open_words() { # NAME=\n"
    "    COMPREPLY+=($(compgen -S = -W \"$1\" -- \"$cur\"))\n"
    "    compopt -o nospace 2>/dev/null\n"
    "}\n"
    "_nodeworth_files() {\n"
    "    local IFS=$'\\n'\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    COMPREPLY+=($(compgen \"${1--f}\" -- \"$cur\"))\n"
    "}\n";

static const char bash_tail[] =
    "_nodeworth() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} option='' command=${COMP_WORDS[1]-}\n"
    "    local _nodeworth_program=${COMP_WORDS[0]/#\\~\\//$HOME/}\n"
    "    COMPREPLY=()\n"
    "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
    "        _nodeworth_words \"$_nodeworth_commands --help --version\"\n"
    "        return\n"
    "    fi\n"
    "    if [ \"$cur\" = = ]; then\n"
    "        cur='' option=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    elif [ \"${COMP_WORDS[COMP_CWORD - 1]}\" = = ]; then\n"
    "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    else\n"
    "        option=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    fi\n"
    "    case $option in\n"
    "    -*) ! _nodeworth_value \"$command:$option\" || return ;;\n"
    "    esac\n"
    "    case $cur in\n"
    "    -*) _nodeworth_words \"$(_nodeworth_options \"$command\")\" ;;\n"
    "    *) _nodeworth_argument \"$command\" ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _nodeworth nodeworth\n";

void nw_complete_bash(FILE *stream, const struct nw_description *all)
{
    fputs(bash_head, stream);
    fprintf(stream, "_nodeworth_commands='");
    for (size_t i = 0; i < all->command_count; i++)
        fprintf(stream, "%s%s", i > 0 ? " " : "", all->commands[i].name);
    fprintf(stream, "'\n_nodeworth_options() { # COMMAND\n    case $1 in\n");
    for (size_t i = 0; i < all->command_count; i++) {
        fprintf(stream, "    %s) echo '", all->commands[i].name);
        bash_options(stream, &all->commands[i]);
        fprintf(stream, "' ;;\n");
    }
    fprintf(stream, "    esac\n    echo '");
    bash_options(stream, &all->common);
    fprintf(stream, "'\n}\n");
    bash_values(stream, all);
    bash_arguments(stream, all);
    fputs(bash_tail, stream);
}

/* ---- zsh ---------------------------------------------------------------------------------------
 */

/* Within single quotes; what ends a part of an _arguments specification is escaped. */
static void zsh_text(FILE *stream, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\'')
            fputs("'\\'", stream);
        else if (strchr("[]:\\", text[i]) != NULL)
            fputc('\\', stream);
        fputc(text[i], stream);
    }
}

static void zsh_action(FILE *stream, const struct nw_described_option *option)
{
    char kind[40];

    switch (nw_takes_of(option)) {
    case NW_TAKES_CHOICE:
        fputc('(', stream);
        print_choices(stream, option->choices);
        fputc(')', stream);
        break;
    case NW_TAKES_KNOWN:
        fprintf(stream, "_nodeworth_%s %s", nw_takes_files(option) ? "names_or_files" : "names",
                nw_takes_kind(option, kind, sizeof kind));
        break;
    case NW_TAKES_KNOWN_LIST:
        fprintf(stream, "_nodeworth_several %s", nw_takes_kind(option, kind, sizeof kind));
        break;
    case NW_TAKES_KNOWN_VALUE:
        fprintf(stream, "_nodeworth_names %s -S =", nw_takes_kind(option, kind, sizeof kind));
        break;
    case NW_TAKES_DIRECTORY:
        fprintf(stream, "_files -/");
        break;
    case NW_TAKES_FILE:
        fprintf(stream, "_files");
        break;
    default:
        fputc(' ', stream);
    }
}

static void zsh_option(FILE *stream, const struct nw_described_option *option)
{
    fprintf(stream, "        ");
    if (option->several)
        fprintf(stream, "'*'");
    if (option->letter != NULL && option->argument != NULL)
        fprintf(stream, "{'-%s+',--%s=}", option->letter, option->name);
    else if (option->letter != NULL)
        fprintf(stream, "{'-%s',--%s}", option->letter, option->name);
    else
        fprintf(stream, "--%s%s", option->name, option->argument != NULL ? "=" : "");
    fprintf(stream, "'[");
    zsh_text(stream, option->help != NULL ? option->help : "", remark_length(option->help));
    fputc(']', stream);
    if (option->argument != NULL) {
        fputc(':', stream);
        zsh_text(stream, option->argument, strlen(option->argument));
        fputc(':', stream);
        zsh_action(stream, option);
    }
    fprintf(stream, "'\n");
}

static void zsh_options(FILE *stream, const struct nw_described_command *command)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].name != NULL)
            zsh_option(stream, &command->options[i]);
}

static void zsh_command(FILE *stream, const struct nw_described_command *command,
                        const struct nw_described_command *common)
{
    fprintf(stream, "_nodeworth_%s() {\n    local -a specs=(\n", command->name);
    zsh_options(stream, command);
    if (command->arguments != NULL && strstr(command->arguments, "KIND") != NULL) {
        fprintf(stream, "        ':KIND:_nodeworth_names'\n");
    } else if (command->arguments != NULL) {
        fprintf(stream, "        '*:argument:_nodeworth_words%s \"",
                are_files(command->arguments) ? "_or_files" : "");
        print_words(stream, command->arguments);
        fprintf(stream, "\"'\n");
    }
    zsh_options(stream, common);
    fprintf(stream, "    )\n    _arguments -s -S $specs\n}\n");
}

static const char zsh_head[] =
    "#compdef nodeworth\n"
    "# zsh completion of nodeworth; written by `nodeworth generate zsh`\n"
    "_nodeworth_names() { # [KIND] [OPTION of compadd...]\n"
    "    local kind=$1\n"
    "    [[ $# -eq 0 ]] || shift\n"
    "    compadd \"$@\" -- ${(f)\"$(_call_program names $_nodeworth_program list $kind --names "
    "2>/dev/null)\"}\n"
    "}\n"
    "_nodeworth_names_or_files() { _nodeworth_names $1; _files }\n"
    "_nodeworth_several() {\n"
    "    compset -P '*,'\n"
    "    _nodeworth_names $1 -S ',' -q\n"
    "}\n"
    "_nodeworth_words() { compadd -- ${=1} }\n"
    "_nodeworth_words_or_files() { compadd -- ${=1}; _files }\n";

void nw_complete_zsh(FILE *stream, const struct nw_description *all)
{
    fputs(zsh_head, stream);
    for (size_t i = 0; i < all->command_count; i++)
        zsh_command(stream, &all->commands[i], &all->common);
    fprintf(stream, "_nodeworth() {\n"
                    "    local -a commands=(\n");
    for (size_t i = 0; i < all->command_count; i++) {
        fprintf(stream, "        '%s:", all->commands[i].name);
        zsh_text(stream, all->commands[i].summary, strlen(all->commands[i].summary));
        fprintf(stream, "'\n");
    }
    fprintf(stream, "    )\n"
                    "    if (( CURRENT == 2 )); then\n"
                    "        _describe command commands\n"
                    "        return\n"
                    "    fi\n"
                    "    local command=$words[2] _nodeworth_program=$words[1]\n"
                    "    shift words\n"
                    "    (( CURRENT-- ))\n"
                    "    (( ! $+functions[_nodeworth_$command] )) || _nodeworth_$command\n"
                    "}\n"
                    "_nodeworth \"$@\"\n");
}

/* ---- fish --------------------------------------------------------------------------------------
 */

static void fish_text(FILE *stream, const char *text, size_t length)
{
    fputc('\'', stream);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\'' || text[i] == '\\')
            fputc('\\', stream);
        fputc(text[i], stream);
    }
    fputc('\'', stream);
}

static void fish_values(FILE *stream, const struct nw_described_option *option)
{
    char kind[40];

    switch (nw_takes_of(option)) {
    case NW_TAKES_NOTHING:
        break;
    case NW_TAKES_CHOICE:
        fprintf(stream, " -x -a '");
        print_choices(stream, option->choices);
        fputc('\'', stream);
        break;
    case NW_TAKES_KNOWN:
        fprintf(stream, " %s -a '(nodeworth list %s --names)'",
                nw_takes_files(option) ? "-r -F" : "-x", nw_takes_kind(option, kind, sizeof kind));
        break;
    case NW_TAKES_KNOWN_LIST:
        fprintf(stream, " -x -a '(__fish_append , (nodeworth list %s --names))'",
                nw_takes_kind(option, kind, sizeof kind));
        break;
    case NW_TAKES_KNOWN_VALUE:
        fprintf(stream, " -x -a '(nodeworth list %s --names)='",
                nw_takes_kind(option, kind, sizeof kind));
        break;
    case NW_TAKES_DIRECTORY:
        fprintf(stream, " -x -a '(__fish_complete_directories)'");
        break;
    case NW_TAKES_FILE:
        fprintf(stream, " -r -F");
        break;
    default:
        fprintf(stream, " -x");
    }
}

static void fish_option(FILE *stream, const char *command, const struct nw_described_option *option)
{
    fprintf(stream, "complete -c nodeworth ");
    if (command != NULL)
        fprintf(stream, "-n '__fish_seen_subcommand_from %s' ", command);
    fprintf(stream, "-l %s", option->name);
    if (option->letter != NULL)
        fprintf(stream, " -s '%s'", option->letter);
    fish_values(stream, option);
    fprintf(stream, " -d ");
    fish_text(stream, option->help != NULL ? option->help : "", remark_length(option->help));
    fputc('\n', stream);
}

static void fish_command(FILE *stream, const struct nw_described_command *command)
{
    const char *arguments = command->arguments;

    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].name != NULL)
            fish_option(stream, command->name, &command->options[i]);
    if (arguments == NULL)
        return;
    fprintf(stream, "complete -c nodeworth -n '__fish_seen_subcommand_from %s' ", command->name);
    if (strstr(arguments, "KIND") != NULL) {
        fprintf(stream, "-f -a '(nodeworth list --names)'\n");
        return;
    }
    fprintf(stream, "%s -a '", are_files(arguments) ? "-F" : "-f");
    print_words(stream, arguments);
    fprintf(stream, "'\n");
}

void nw_complete_fish(FILE *stream, const struct nw_description *all)
{
    fprintf(stream, "# fish completion of nodeworth; written by `nodeworth generate fish`\n"
                    "complete -c nodeworth -f\n");
    for (size_t i = 0; i < all->command_count; i++) {
        fprintf(stream, "complete -c nodeworth -n __fish_use_subcommand -a %s -d ",
                all->commands[i].name);
        fish_text(stream, all->commands[i].summary, strlen(all->commands[i].summary));
        fputc('\n', stream);
    }
    for (size_t i = 0; i < all->common.option_count; i++)
        fish_option(stream, NULL, &all->common.options[i]);
    for (size_t i = 0; i < all->command_count; i++)
        fish_command(stream, &all->commands[i]);
}
