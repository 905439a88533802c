/* nodeworth env: what a report of a problem should have with it. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "bench/agree.h"
#include "cli/cli.h"
#include "cli/env_read.h"
#include "cli/launch.h"
#include "cli/watch.h"
#include "collectives/launch.h"

enum { WIDTH = 100 };
#define READ_DEADLINE_NS 60000000000ull /* drivers answer late when they load */

struct options {
    bool json;
};

static const struct nw_option rows[] = {
    {.name = "json",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct options, json),
     .help = "print JSON instead, of every host"},
};

/* ---- several hosts -----------------------------------------------------------------------------
 */

static const char *value_text(const json_t *value, char text[600])
{
    if (json_is_string(value))
        snprintf(text, 600, "%s", json_string_value(value));
    else if (json_is_integer(value))
        snprintf(text, 600, "%lld", (long long)json_integer_value(value));
    else if (json_is_object(value)) {
        const char *version = json_string_value(json_object_get(value, "version"));
        const char *path = json_string_value(json_object_get(value, "path"));

        snprintf(text, 600, "%s%s%s", version != NULL ? version : "", version != NULL ? ", " : "",
                 path != NULL ? path : "");
    } else {
        snprintf(text, 600, "%s", value != NULL ? "unknown" : nw_tr("not there"));
    }
    return text;
}

/* The rows of `host` that are others on `first`, or not there. */
static nw_rc add_differences(json_t *differences, const json_t *first, const json_t *host,
                             int index, bool swapped)
{
    const char *section, *row;
    json_t *section_rows, *value;

    json_object_foreach((json_t *)host, section, section_rows)
    {
        const json_t *others = json_object_get(first, section);

        json_object_foreach(section_rows, row, value)
        {
            json_t *other = json_object_get(others, row), *item;

            if (json_equal(value, other) || (swapped && other != NULL))
                continue;
            item =
                json_pack("{s:i, s:s, s:s, s:O*, s:O*}", "host", index, "section", section, "row",
                          row, "first", swapped ? value : other, "here", swapped ? other : value);
            if (json_array_append_new(differences, item) != 0)
                return nw_fail(NW_ENOMEM, "no memory for the differences");
        }
    }
    return NW_OK;
}

static nw_rc find_differences(json_t *root)
{
    json_t *hosts = json_object_get(root, "hosts"), *differences = json_array();
    const json_t *first = json_array_get(hosts, 0);

    NW_TRY(nw_json_set_new(root, "differences", differences));
    for (size_t i = 1; i < json_array_size(hosts); i++) {
        const json_t *host = json_array_get(hosts, i);

        NW_TRY(add_differences(differences, first, host, (int)i, false));
        NW_TRY(add_differences(differences, host, first, (int)i, true));
    }
    return NW_OK;
}

/* ---- printing ----------------------------------------------------------------------------------
 */

/* Rows are the same in every language, as in the JSON: who reads them is whoever gets the report.
 */
static void print_row(const char *name, int width, const char *value)
{
    char *lines = nw_text_wrap(value, WIDTH - width - 1);

    for (char *line = lines; line != NULL;) {
        char *end = strchr(line, '\n');

        printf("%-*s %.*s\n", width, line == lines ? name : "",
               (int)(end != NULL ? end - line : (ptrdiff_t)strlen(line)), line);
        line = end != NULL ? end + 1 : NULL;
    }
    free(lines);
}

static void print_section(const char *title, const json_t *section_rows)
{
    const char *row;
    json_t *value;
    int width = 1;

    json_object_foreach((json_t *)section_rows, row, value)
    {
        const int length = (int)strlen(row);

        width = length > width ? length : width;
    }
    printf("\n%s\n", title);
    json_object_foreach((json_t *)section_rows, row, value)
    {
        char text[600];

        print_row(row, width, value_text(value, text));
    }
    if (json_object_size(section_rows) == 0)
        print_row("-", width, "-");
}

static void print_differences(const json_t *differences)
{
    for (size_t i = 0; i < json_array_size(differences); i++) {
        const json_t *item = json_array_get(differences, i);
        char first[600], here[600];

        nw_print(stdout, "host %lld: %s: %s here, %s on host 0\n",
                 (long long)json_integer_value(json_object_get(item, "host")),
                 json_string_value(json_object_get(item, "row")),
                 value_text(json_object_get(item, "here"), here),
                 value_text(json_object_get(item, "first"), first));
    }
}

static void print_text(const json_t *root)
{
    const json_t *hosts = json_object_get(root, "hosts");
    const json_t *differences = json_object_get(root, "differences");
    const char *section;
    json_t *section_rows;

    nw_print(stdout, "Please attach this to your report. It holds no names of hosts, no keys and "
                     "no tokens;\nlook through it all the same.\n");
    json_object_foreach(json_array_get(hosts, 0), section, section_rows)
        print_section(section, section_rows);
    if (json_object_get(root, "launch") != NULL)
        print_section("launch", json_object_get(root, "launch"));
    if (json_array_size(hosts) < 2)
        return;
    printf("\n%s\n", nw_tr("Differences between the hosts"));
    if (json_array_size(differences) == 0)
        nw_print(stdout, "none: %zu hosts say the same as host 0, which is shown above\n",
                 json_array_size(hosts) - 1);
    print_differences(differences);
}

/* Takes `hosts`. */
static nw_rc tell(json_t *hosts, const struct nw_comm *comm, bool json)
{
    json_t *root = json_pack("{s:s, s:o}", "schema", "nodeworth-env/1", "hosts", hosts);
    struct nw_launch launch;
    nw_rc rc = root != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for what was read");

    if (rc == NW_OK && comm != NULL) {
        nw_launch_read(&launch);
        rc = nw_json_set_new(root, "launch",
                             json_pack("{s:s*, s:i, s:i, s:s}", "launcher",
                                       launch.launcher != NULL ? launch.launcher->name : NULL,
                                       "ranks", comm->rank_count, "hosts", comm->host_count, "mpi",
                                       comm->library));
        if (rc == NW_OK)
            rc = find_differences(root);
    }
    if (rc == NW_OK && json)
        rc = nw_json_print(stdout, root);
    else if (rc == NW_OK)
        print_text(root);
    json_decref(root);
    return rc == NW_OK ? nw_cli_finish_stdout() : rc;
}

/* ---- under a launcher --------------------------------------------------------------------------
 */

static int first_rank_of(const struct nw_comm *comm, int host)
{
    for (int rank = 0; rank < comm->rank_count; rank++)
        if (comm->host_of_rank[rank] == host)
            return rank;
    return 0;
}

/* One host's text to all; rank 0 keeps it. */
static nw_rc share_host(struct nw_comm *comm, int host, const char *mine, json_t *hosts)
{
    const int root = first_rank_of(comm, host);
    uint64_t length = comm->rank == root ? strlen(mine) : 0;
    char *text;
    nw_rc rc;

    NW_TRY(comm->ops->share(comm, &length, sizeof length, root));
    text = calloc(1, length + 1);
    rc = nw_agree(comm, text != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for a host's text"));
    if (rc == NW_OK) {
        if (comm->rank == root)
            memcpy(text, mine, length);
        rc = comm->ops->share(comm, text, length, root);
    }
    if (rc == NW_OK && comm->rank == 0 &&
        json_array_append_new(hosts, json_loads(text, 0, NULL)) != 0)
        rc = nw_fail(NW_EIO, "host %d: what it says cannot be read", host);
    free(text);
    return rc;
}

static nw_rc gather(struct nw_comm *comm, json_t *hosts)
{
    json_t *host = NULL;
    char *text = NULL;
    nw_rc rc = NW_OK;

    if (comm->local_rank == 0) {
        rc = nw_env_read(&host);
        text = rc == NW_OK ? json_dumps(host, JSON_COMPACT) : NULL;
        json_decref(host);
        if (rc == NW_OK && text == NULL)
            rc = nw_fail(NW_ENOMEM, "no memory for what was read");
    }
    rc = nw_agree(comm, rc);
    for (int index = 0; rc == NW_OK && index < comm->host_count; index++)
        rc = share_host(comm, index, text, hosts);
    free(text);
    return rc;
}

static int work(void *argument, void *status)
{
    const struct options *options = argument;
    struct nw_comm *comm;
    int exit_code = nw_cli_open_mpi(status, false, &comm);
    json_t *hosts;
    nw_rc rc;

    if (exit_code != 0)
        return exit_code;
    nw_bench_status_write(status, nw_now_ns() + READ_DEADLINE_NS, "reading the hosts");
    hosts = json_array();
    rc = gather(comm, hosts);
    if (rc == NW_OK && comm->rank == 0)
        rc = tell(hosts, comm, options->json);
    else
        json_decref(hosts);
    exit_code = rc == NW_OK ? 0 : comm->rank == 0 ? nw_cli_fail(rc) : nw_rc_exit_code(rc);
    nw_bench_status_write(status, nw_now_ns() + NW_CLI_STOP_DEADLINE_NS, "the end of MPI");
    nw_comm_close(comm);
    nw_mpi_stop();
    nw_bench_status_write(status, 0, "");
    return exit_code;
}

static nw_rc tell_alone(const struct options *options)
{
    json_t *host, *hosts = json_array();
    nw_rc rc = nw_env_read(&host);

    if (rc == NW_OK && json_array_append_new(hosts, host) != 0)
        rc = nw_fail(NW_ENOMEM, "no memory for what was read");
    if (rc == NW_OK)
        return tell(hosts, NULL, options->json);
    json_decref(hosts);
    return rc;
}

int nw_cmd_env(int argc, char **argv)
{
    struct options options = {0};
    struct nw_cli cli = {
        .doc = "What a report of a problem should have with it: version, how it was built, system, "
               "devices, libraries and limits, of every host of an mpirun where they differ.\v"
               "Environment variables are shown by an allow-list (NCCL_*, OMPI_MCA_*, UCX_*, "
               "CUDA_VISIBLE_DEVICES and a few more), without names and values that look like "
               "secrets. Exit codes: 0, 2 bad input, 4 the run itself broke.",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .target = &options,
    };
    const bool speaks = nw_cli_launch_rank() <= 0;
    nw_rc rc = nw_cli_parse(&cli, argc, argv, speaks);

    if (rc != NW_OK)
        return speaks ? nw_cli_fail(rc) : nw_rc_exit_code(rc);
    if (nw_cli_launch_rank() >= 0)
        return nw_cli_watch(work, &options, argc, argv);
    rc = tell_alone(&options);
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
