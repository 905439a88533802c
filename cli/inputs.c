#include "cli/inputs.h"

#include <ctype.h>
#include <string.h>

#include "results/import.h"

nw_rc nw_cli_read_results(const char *path, struct nw_results *results)
{
    FILE *file = strcmp(path, "-") != 0 ? fopen(path, "r") : NULL;
    int first = EOF;

    if (file != NULL) { /* else the importer words what is wrong */
        do {
            first = getc(file);
        } while (first != EOF && isspace(first));
        fclose(file);
    }
    return first == '{' ? nw_results_read(path, results) : nw_import_file(path, results);
}

nw_rc nw_cli_read_measured(const char *path, struct nw_results *results)
{
    const size_t before = nw_results_record_count(results);

    NW_TRY(nw_cli_read_results(path, results));
    if (nw_results_record_count(results) == before)
        return nw_fail(NW_EUSAGE, "%s: holds no measurement; nodeworth import says what it is",
                       path);
    return NW_OK;
}

typedef nw_rc reader(const char *path, struct nw_results *results);

static nw_rc read_all(const struct nw_option_list *list, const struct nw_cli *cli, reader *read,
                      struct nw_results *results)
{
    for (size_t i = 0; i < list->count; i++)
        NW_TRY(read(list->items[i], results));
    for (int i = 0; i < cli->positional_count; i++)
        NW_TRY(read(cli->positional[i], results));
    return NW_OK;
}

nw_rc nw_cli_read_all_results(const struct nw_option_list *list, const struct nw_cli *cli,
                              struct nw_results *results)
{
    return read_all(list, cli, nw_cli_read_results, results);
}

nw_rc nw_cli_read_all_measured(const struct nw_option_list *list, const struct nw_cli *cli,
                               struct nw_results *results)
{
    return read_all(list, cli, nw_cli_read_measured, results);
}
