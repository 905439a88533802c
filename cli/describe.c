#include "cli/describe.h"

#include <string.h>

#include "base/json.h"
#include "cli/help.h"

static nw_rc add_choices(json_t *option, const char *const *choices)
{
    json_t *array = json_array();

    NW_TRY(nw_json_set_new(option, "choices", array));
    for (; *choices != NULL; choices++)
        if (json_array_append_new(array, json_string(*choices)) != 0)
            return nw_fail(NW_ENOMEM, "no memory for the choices of an option");
    return NW_OK;
}

static nw_rc add_option(json_t *options, const struct nw_option *row)
{
    static const char *const yes_no[] = {"yes", "no", NULL};
    json_t *option = json_object();

    if (json_array_append_new(options, option) != 0)
        return nw_fail(NW_ENOMEM, "no memory for an option");
    if (row->name == NULL)
        return nw_json_set_text(option, "heading", row->help);
    NW_TRY(nw_json_set_text(option, "name", row->name));
    if (row->key > 0 && row->key < 128)
        NW_TRY(nw_json_set_text(option, "letter", (const char[]){(char)row->key, '\0'}));
    NW_TRY(nw_json_set_text(option, "help", row->help));
    if (row->type == NW_OPTION_FLAG)
        return NW_OK;
    NW_TRY(nw_json_set_text(option, "argument", row->argument != NULL ? row->argument : "VALUE"));
    NW_TRY(nw_json_set_text(option, "known", row->known));
    NW_TRY(nw_json_set_bool(option, "several", row->type == NW_OPTION_LIST));
    if (row->type == NW_OPTION_CHOICE)
        return add_choices(option, row->choices);
    return row->type == NW_OPTION_BOOL ? add_choices(option, yes_no) : NW_OK;
}

static nw_rc describe(const struct nw_cli *cli, json_t *root)
{
    json_t *options = json_array();

    NW_TRY(nw_json_set_text(root, "arguments", cli->arguments));
    NW_TRY(nw_json_set_text(root, "about", cli->doc));
    NW_TRY(nw_json_set_new(root, "options", options));
    for (size_t i = 0; i < cli->row_count; i++)
        NW_TRY(add_option(options, &cli->rows[i]));
    return NW_OK;
}

static nw_rc print(json_t *root, nw_rc rc)
{
    if (rc == NW_OK)
        rc = nw_json_print(stdout, root);
    json_decref(root);
    return rc == NW_OK ? nw_cli_finish_stdout() : rc;
}

nw_rc nw_cli_describe(const struct nw_cli *cli)
{
    json_t *root = json_object();

    return print(root, describe(cli, root));
}

/* What every command takes: argp's own and main's. */
static nw_rc add_common(json_t *root)
{
    static const char *const languages[] = {"en", "zh", NULL};
    const struct nw_option common[] = {
        {.name = "help", .key = '?', .help = "Give this help list"},
        {.name = "lang",
         .argument = nw_help_lang_row.arg,
         .type = NW_OPTION_CHOICE,
         .choices = languages,
         .help = nw_help_lang_row.doc},
        {.name = "usage", .help = "Give a short usage message"},
        {.name = "version", .key = 'V', .help = "Print program version"},
    };
    json_t *command = json_object(), *options = json_array();

    NW_TRY(nw_json_set_new(root, "common", command));
    NW_TRY(nw_json_set_new(command, "options", options));
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        NW_TRY(add_option(options, &common[i]));
    return NW_OK;
}

static nw_rc describe_all(const struct nw_command *commands, json_t *root)
{
    json_t *array = json_array();

    NW_TRY(add_common(root));

    NW_TRY(nw_json_set_text(root, "version", nw_version));
    NW_TRY(nw_json_set_text(root, "date", nw_version_date));
    NW_TRY(nw_json_set_new(root, "commands", array));
    for (; commands->name != NULL; commands++) {
        json_t *command = json_object();

        if (json_array_append_new(array, command) != 0)
            return nw_fail(NW_ENOMEM, "no memory for the commands");
        NW_TRY(nw_json_set_text(command, "name", commands->name));
        NW_TRY(nw_json_set_text(command, "summary", commands->summary));
    }
    return NW_OK;
}

nw_rc nw_cli_describe_all(const struct nw_command *commands)
{
    json_t *root = json_object();

    return print(root, describe_all(commands, root));
}
