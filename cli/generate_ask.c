/* What the program's own commands say that they take. */
#include <stdlib.h>
#include <string.h>

#include "base/command.h" /* not with cli/cli.h, whose commands are others */
#include "cli/generate.h"

#define LIMIT_S 30 /* of one command's description; milliseconds, but under valgrind */

/* What this program says to `command --describe`; NULL: to --describe alone. */
static nw_rc ask(const char *program, const char *command, json_t **root_out)
{
    const char *arguments[4] = {program};
    struct nw_command_result result;
    json_error_t error;

    if (command != NULL) {
        arguments[1] = command;
        arguments[2] = NW_CLI_DESCRIBE;
    } else {
        arguments[1] = NW_CLI_DESCRIBE;
    }
    NW_TRY(
        nw_command_run(&(struct nw_command){.arguments = arguments, .limit_s = LIMIT_S}, &result));
    *root_out = result.exit_code == 0 ? json_loads(result.output, 0, &error) : NULL;
    nw_command_free(&result);
    if (*root_out == NULL)
        return nw_fail(NW_EIO, "%s %s %s: no description came back", program,
                       command != NULL ? command : "", NW_CLI_DESCRIBE);
    return NW_OK;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static nw_rc take_command(struct nw_described_command *command)
{
    const json_t *rows = json_object_get(command->root, "options");

    command->arguments = text_of(command->root, "arguments");
    command->about = text_of(command->root, "about");
    command->option_count = json_array_size(rows);
    command->options = calloc(command->option_count + 1, sizeof *command->options);
    if (command->options == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the options of %s", command->name);
    for (size_t i = 0; i < command->option_count; i++) {
        const json_t *row = json_array_get(rows, i);

        command->options[i] = (struct nw_described_option){
            .heading = text_of(row, "heading"),
            .name = text_of(row, "name"),
            .letter = text_of(row, "letter"),
            .argument = text_of(row, "argument"),
            .known = text_of(row, "known"),
            .help = text_of(row, "help"),
            .choices = json_object_get(row, "choices"),
            .several = json_is_true(json_object_get(row, "several")),
        };
    }
    return NW_OK;
}

void nw_description_free(struct nw_description *all)
{
    for (size_t i = 0; i < all->command_count; i++) {
        free(all->commands[i].options);
        json_decref(all->commands[i].root);
    }
    free(all->common.options);
    json_decref(all->common.root);
    free(all->commands);
    json_decref(all->root);
}

nw_rc nw_description_ask(const char *program, struct nw_description *all)
{
    NW_TRY(ask(program, NULL, &all->root));
    const json_t *commands = json_object_get(all->root, "commands");

    all->version = text_of(all->root, "version");
    all->date = text_of(all->root, "date");
    all->common.name = "every command";
    all->common.root = json_incref(json_object_get(all->root, "common"));
    NW_TRY(take_command(&all->common));
    all->commands = calloc(json_array_size(commands) + 1, sizeof *all->commands);
    if (all->commands == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the commands");
    for (size_t i = 0; i < json_array_size(commands); i++) {
        struct nw_described_command *command = &all->commands[i];

        command->name = text_of(json_array_get(commands, i), "name");
        command->summary = text_of(json_array_get(commands, i), "summary");
        all->command_count = i + 1;
        NW_TRY(ask(program, command->name, &command->root));
        NW_TRY(take_command(command));
    }
    return NW_OK;
}
