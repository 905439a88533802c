#include "cli/generate.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/cli.h"

/* ---- what an option takes ----------------------------------------------------------------------
 */

nw_takes nw_takes_of(const struct nw_described_option *option)
{
    const char *argument = option->argument, *known = option->known;

    if (argument == NULL)
        return NW_TAKES_NOTHING;
    if (option->choices != NULL)
        return NW_TAKES_CHOICE;
    if (known != NULL)
        return strchr(known, ',') != NULL   ? NW_TAKES_KNOWN_LIST
               : strchr(known, '=') != NULL ? NW_TAKES_KNOWN_VALUE
                                            : NW_TAKES_KNOWN;
    if (strstr(argument, "DIR") != NULL)
        return NW_TAKES_DIRECTORY;
    return strstr(argument, "FILE") != NULL ? NW_TAKES_FILE : NW_TAKES_ANYTHING;
}

bool nw_takes_files(const struct nw_described_option *option)
{
    return option->argument != NULL && strstr(option->argument, "FILE") != NULL;
}

const char *nw_takes_kind(const struct nw_described_option *option, char *kind, size_t size)
{
    snprintf(kind, size, "%.*s", (int)strcspn(option->known, ",="), option->known);
    return kind;
}

/* ---- writing -----------------------------------------------------------------------------------
 */

static const struct shell {
    const char *name;
    void (*write)(FILE *stream, const struct nw_description *all);
} shells[] = {
    {"bash", nw_complete_bash},
    {"zsh", nw_complete_zsh},
    {"fish", nw_complete_fish},
};
enum { SHELLS = sizeof shells / sizeof shells[0] };

/* `command` NULL: of the program. */
static nw_rc write_page(const char *directory, const struct nw_description *all,
                        const struct nw_described_command *command,
                        const struct nw_language *language)
{
    struct nw_atomic_file *file;
    char path[1024];

    snprintf(path, sizeof path, "%.800s/man1/nodeworth%s%.60s.1", directory,
             command != NULL ? "-" : "", command != NULL ? command->name : "");
    NW_TRY(nw_atomic_open(path, &file));
    if (command != NULL)
        nw_manual_of_command(nw_atomic_stream(file), all, command, language);
    else
        nw_manual_of_all(nw_atomic_stream(file), all, language);
    return nw_atomic_commit(file);
}

static nw_rc write_pages(const char *directory, const struct nw_description *all)
{
    static const struct {
        const char *language, *below; /* man's own names of languages */
    } pages[] = {{"en", ""}, {"zh", "/zh_CN"}};

    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        const struct nw_language *language;
        char below[1024];

        NW_TRY(nw_language_find(pages[i].language, &language));
        snprintf(below, sizeof below, "%.800s%s/man1", directory, pages[i].below);
        NW_TRY(nw_make_directory(below));
        *strrchr(below, '/') = '\0';
        NW_TRY(write_page(below, all, NULL, language));
        for (size_t j = 0; j < all->command_count; j++)
            NW_TRY(write_page(below, all, &all->commands[j], language));
    }
    return NW_OK;
}

static nw_rc generate(const char *what, const char *directory, const struct nw_description *all)
{
    if (strcmp(what, "man") == 0)
        return write_pages(directory, all);
    for (size_t i = 0; i < SHELLS; i++)
        if (strcmp(what, shells[i].name) == 0)
            shells[i].write(stdout, all);
    return nw_cli_finish_stdout();
}

static nw_rc check(int argc, char **argv)
{
    const char *const accepted = "accepted: bash, zsh, fish, or man DIR";

    if (argc == 3 && strcmp(argv[1], "man") == 0)
        return NW_OK;
    for (size_t i = 0; argc == 2 && i < SHELLS; i++)
        if (strcmp(argv[1], shells[i].name) == 0)
            return NW_OK;
    return argc < 2 ? nw_fail(NW_EUSAGE, "nothing to generate; %s", accepted)
                    : nw_fail(NW_EUSAGE, "\"%.40s\" cannot be generated so; %s", argv[1], accepted);
}

int nw_cmd_generate(int argc, char **argv)
{
    struct nw_description all = {.commands = NULL};
    char program[1024];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    nw_rc rc = check(argc, argv);

    if (rc == NW_OK && length < 0)
        rc = nw_fail(NW_EIO, "/proc/self/exe: %s", strerror(errno));
    if (rc == NW_OK) {
        program[length] = '\0';
        rc = nw_description_ask(program, &all);
    }
    if (rc == NW_OK)
        rc = generate(argv[1], argv[2], &all);
    nw_description_free(&all);
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
