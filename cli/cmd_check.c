/* nodeworth check: are these machines fit to run, by what can be read of them in seconds? */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/table.h"
#include "cli/check_judge.h"
#include "cli/check_read.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/watch.h"
#include "report/check_json.h"

#define START_DEADLINE_NS 60000000000ull

struct options {
    struct nw_check_wish wish;
    struct nw_model_request model;
    struct nw_option_list from;
    const char *quote, *output, *save, *rankfile;
    bool json;
    double silence_ns;
};

static const struct nw_option own_rows[] = {
    {.name = "disk",
     .argument = "DIR",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, wish.disk),
     .help = "measure the file system of DIR for some seconds: sequential and random, read and "
             "write; nothing is left behind"},
    {.name = "python",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct options, wish.python),
     .help = "start python3 and ask PyTorch for its version, its CUDA and its GPUs"},
    {.name = "load",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct options, wish.load),
     .help = "copy to each GPU for 0.2 s: the speed of a PCIe link shows only then"},
    {.name = "from",
     .argument = "FILE",
     .type = NW_OPTION_LIST,
     .offset = offsetof(struct options, from),
     .help = "judge FILE instead of this machine, one file a host; may be given several times "
             "(nodeworth list formats says what is read)"},
    {.name = "quote",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, quote),
     .help = "hold the machines against a quote, too"},
    {.name = "timeout",
     .argument = "TIME",
     .type = NW_OPTION_DURATION,
     .min = 1e9,
     .max = 3600e9,
     .fallback = "15s",
     .offset = offsetof(struct options, silence_ns),
     .help = "leave out a host that says nothing for so long (15s)"},
    {.name = "json",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct options, json),
     .help = "print JSON: all facts of every host, findings, areas"},
    {.name = "output",
     .key = 'o',
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, output),
     .help = "write to FILE, whole or not at all"},
    {.name = "save",
     .argument = "DIR",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, save),
     .help = "write each host's topology to DIR/hostN.json, without names and addresses: to send"},
    {.name = "rankfile",
     .argument = "FILE",
     .type = NW_OPTION_TEXT,
     .offset = offsetof(struct options, rankfile),
     .help = "write where each rank should run, for mpirun --rankfile, where no --map-by fits"},
};
#define OWN_COUNT (sizeof own_rows / sizeof *own_rows)
#define ROWS_MAX  160

struct session {
    struct options options;
    struct nw_quote quote; /* when options.quote is set */
    uint64_t began_ns;
};

/* ---- what comes out ----------------------------------------------------------------------------
 */

static nw_rc host_to_json(const struct nw_check_host *host, json_t **json_out)
{
    json_t *json = json_object(), *part;
    nw_rc rc = NW_OK;

    NW_TRY_GOTO(nw_json_set_text(json, "name", host->name), out);
    if (host->rank_count > 0) {
        NW_TRY_GOTO(nw_json_set_int(json, "ranks", host->rank_count), out);
        NW_TRY_GOTO(nw_json_set_bool(json, "answered", host->answered), out);
    }
    if (host->mpi[0] != '\0')
        NW_TRY_GOTO(nw_json_set_text(json, "mpi", host->mpi), out);
    if (host->version[0] != '\0')
        NW_TRY_GOTO(nw_json_set_text(json, "tool_version", host->version), out);
    if (host->end.port > 0) {
        NW_TRY_GOTO(nw_reach_end_to_json(&host->end, &part), out);
        NW_TRY_GOTO(nw_json_set_new(json, "listens", part), out);
    }
    if (host->tried) {
        NW_TRY_GOTO(nw_reach_tries_to_json(host->tries, host->try_count, &part), out);
        NW_TRY_GOTO(nw_json_set_new(json, "reaches", part), out);
    }
    if (host->topo != NULL) {
        NW_TRY_GOTO(nw_topo_to_json(host->topo, &part), out);
        NW_TRY_GOTO(nw_json_set_new(json, "topology", part), out);
    }
    *json_out = json;
    return NW_OK;
out:
    json_decref(json);
    return rc;
}

static nw_rc list_hosts(const struct nw_check_gathered *gathered, json_t **array_out)
{
    json_t *array = json_array(), *item;

    for (size_t i = 0; i < gathered->host_count; i++) {
        const nw_rc rc = host_to_json(&gathered->hosts[i], &item);

        if (rc != NW_OK) {
            json_decref(array);
            return rc;
        }
        json_array_append_new(array, item);
    }
    *array_out = array;
    return NW_OK;
}

static nw_rc list_ranks(const struct nw_check_gathered *gathered, json_t **array_out)
{
    json_t *array = json_array(), *item;

    for (size_t i = 0; i < gathered->place_count; i++) {
        const struct nw_rank_place *place = &gathered->places[i];
        const nw_rc rc = nw_rank_place_to_json(place, &item);

        if (rc != NW_OK) {
            json_decref(array);
            return rc;
        }
        if (gathered->environments[place->rank] != NULL)
            json_object_set(item, "environment", gathered->environments[place->rank]);
        json_array_append_new(array, item);
    }
    *array_out = array;
    return NW_OK;
}

static nw_rc print_json(FILE *stream, const struct nw_check_gathered *gathered,
                        const struct nw_check_judged *judged)
{
    json_t *hosts, *ranks;
    nw_rc rc;

    NW_TRY(list_hosts(gathered, &hosts));
    rc = list_ranks(gathered, &ranks);
    if (rc != NW_OK) {
        json_decref(hosts);
        return rc;
    }
    return nw_report_check_json(stream, &judged->screen, hosts, ranks, judged->advice.map_by,
                                judged->advice.rankfile);
}

static nw_rc print(FILE *stream, const struct options *options,
                   const struct nw_check_gathered *gathered, const struct nw_check_judged *judged)
{
    if (options->json)
        return print_json(stream, gathered, judged);
    /* mpirun gives its ranks a terminal of its own: that says nothing of ours */
    return nw_report_check(stream, &judged->screen,
                           options->output == NULL && nw_cli_launch_rank() < 0 &&
                               nw_colour_wanted(stdout));
}

static nw_rc deliver(const struct options *options, const struct nw_check_gathered *gathered,
                     const struct nw_check_judged *judged)
{
    struct nw_atomic_file *file;
    nw_rc rc;

    if (options->output == NULL) {
        NW_TRY(print(stdout, options, gathered, judged));
        return nw_cli_finish_stdout();
    }
    NW_TRY(nw_atomic_open(options->output, &file));
    rc = print(nw_atomic_stream(file), options, gathered, judged);
    if (rc != NW_OK) {
        nw_atomic_abandon(file);
        return rc;
    }
    return nw_atomic_commit(file);
}

static nw_rc write_rankfile(const char *path, const struct nw_rank_place_advice *advice)
{
    struct nw_atomic_file *file;

    if (advice->rankfile == NULL) {
        nw_message("%s is not written: %s", path,
                   advice->map_by[0] != '\0' ? advice->map_by : advice->why);
        return NW_OK;
    }
    NW_TRY(nw_atomic_open(path, &file));
    fputs(advice->rankfile, nw_atomic_stream(file));
    return nw_atomic_commit(file);
}

/* Last of all: it changes the topologies. One seed, so that equal names stay equal. */
static nw_rc save(const char *directory, struct nw_check_gathered *gathered)
{
    unsigned char random[16];
    char seed[2 * sizeof random + 1], path[512];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return nw_fail(NW_EIO, "no random numbers to replace names with");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(seed + 2 * i, 3, "%02x", random[i]);
    NW_TRY(nw_make_directory(directory));
    for (size_t i = 0; i < gathered->host_count; i++) {
        if (gathered->hosts[i].topo == NULL)
            continue;
        NW_TRY(nw_topo_anonymise(gathered->hosts[i].topo, seed));
        snprintf(path, sizeof path, "%.480s/host%zu.json", directory, i + 1);
        NW_TRY(nw_topo_save(gathered->hosts[i].topo, path));
    }
    return NW_OK;
}

static int exit_code_of(const struct nw_check_judged *judged)
{
    static const int codes[] = {[NW_CHECK_FIT] = 0, [NW_CHECK_UNFIT] = 1, [NW_CHECK_UNKNOWN] = 3};

    return codes[judged->screen.verdict];
}

/* Judges and shows; the exit code. */
static int finish(struct session *session, struct nw_check_gathered *gathered)
{
    const struct options *options = &session->options;
    const struct nw_check_question question = {
        .request = &options->model,
        .quote = options->quote != NULL ? &session->quote : NULL,
        .wish = gathered->rank_count > 0 ? &options->wish : NULL,
        .version = nw_version,
    };
    struct nw_check_judged judged;
    int exit_code;
    nw_rc rc = nw_check_judge(&question, gathered, &judged);

    if (rc != NW_OK)
        return nw_cli_fail(rc);
    if (gathered->rank_count > 0)
        judged.screen.elapsed_ns = (double)(nw_now_ns() - session->began_ns);
    rc = deliver(options, gathered, &judged);
    if (rc == NW_OK && options->rankfile != NULL)
        rc = write_rankfile(options->rankfile, &judged.advice);
    if (rc == NW_OK && options->save != NULL)
        rc = save(options->save, gathered);
    exit_code = rc == NW_OK ? exit_code_of(&judged) : nw_cli_fail(rc);
    if (rc == NW_OK && judged.screen.read_count == 0)
        exit_code = 4; /* no host could be read at all */
    nw_check_judged_free(&judged);
    return exit_code;
}

/* ---- from files --------------------------------------------------------------------------------
 */

static bool is_named(const struct nw_check_gathered *gathered, const char *name)
{
    for (size_t i = 0; i + 1 < gathered->host_count; i++)
        if (strcmp(gathered->hosts[i].name, name) == 0)
            return true;
    return false;
}

/* What the file says, else the file's own name; a name that an earlier host has gets a number. */
static void name_host(const struct nw_check_gathered *gathered, const char *path)
{
    struct nw_check_host *host = &gathered->hosts[gathered->host_count - 1];
    const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    char name[48];

    snprintf(name, sizeof name, "%.47s", host->topo->host[0] != '\0' ? host->topo->host : base);
    snprintf(host->name, sizeof host->name, "%s", name);
    for (int number = 2; is_named(gathered, host->name); number++)
        snprintf(host->name, sizeof host->name, "%s#%d", name, number);
}

static nw_rc read_files(const struct nw_cli *cli, const struct options *options,
                        struct nw_check_gathered *gathered)
{
    const size_t count = options->from.count + (size_t)cli->positional_count;

    gathered->hosts = calloc(count, sizeof *gathered->hosts);
    if (gathered->hosts == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu hosts", count);
    for (size_t i = 0; i < count; i++) {
        struct nw_check_host *host = &gathered->hosts[i];
        const char *path = i < options->from.count ? options->from.items[i]
                                                   : cli->positional[i - options->from.count];

        NW_TRY(nw_topo_read_file(path, &host->topo));
        gathered->host_count = i + 1;
        host->answered = true;
        name_host(gathered, path);
    }
    return NW_OK;
}

static int check_files(struct session *session, const struct nw_cli *cli)
{
    struct nw_check_gathered gathered = {.all_answered = true};
    nw_rc rc = read_files(cli, &session->options, &gathered);
    const int exit_code = rc == NW_OK ? finish(session, &gathered) : nw_cli_fail(rc);

    nw_check_gathered_free(&gathered);
    return exit_code;
}

/* ---- live --------------------------------------------------------------------------------------
 */

/* The first rank of a host reads it; begun before MPI starts, where the launcher says who it is. */
static struct nw_check_reader *begin_early(const struct session *session)
{
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_RANK"),
               *size = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    struct nw_check_wish wish = session->options.wish;
    struct nw_check_reader *reader;

    if (nw_cli_launch_rank() >= 0 && (local == NULL || strcmp(local, "0") != 0))
        return NULL;
    wish.for_all_ranks = size != NULL && strcmp(size, "1") != 0;
    return nw_check_reader_start(&wish, &reader) == NW_OK ? reader : NULL;
}

/* 0, else the exit code */
static int open_comm(struct nw_bench_status *status, struct nw_comm **comm_out)
{
    int exit_code;

    nw_bench_status_write(status, nw_now_ns() + START_DEADLINE_NS,
                          "the start of MPI (can the hosts reach each other? mpirun --mca "
                          "btl_tcp_if_include NET chooses the network)");
    exit_code = nw_cli_open_mpi(status, 0, comm_out);
    if (exit_code == 0)
        (*comm_out)->gentle = true;
    return exit_code;
}

static int work(void *argument, void *status)
{
    struct session *session = argument;
    struct nw_check_how how = {.wish = session->options.wish,
                               .silence_ns = session->options.silence_ns,
                               .version = nw_version,
                               .reader = begin_early(session),
                               .status = status};
    struct nw_check_gathered gathered;
    struct nw_comm *comm;
    int exit_code = open_comm(status, &comm);
    nw_rc rc;

    if (exit_code != 0) {
        nw_check_reader_close(how.reader);
        return exit_code;
    }
    rc = nw_check_gather(comm, &how, &gathered);
    if (rc != NW_OK) {
        nw_cli_fail(rc);
        nw_mpi_abort(nw_rc_exit_code(rc));
    }
    if (comm->rank == 0) {
        exit_code = finish(session, &gathered);
        if (!gathered.all_answered) { /* whoever hangs would never come to the end of MPI */
            nw_cli_finish_stdout();
            nw_mpi_abort(exit_code);
        }
    }
    nw_check_gathered_free(&gathered);
    nw_bench_status_write(status, nw_now_ns() + NW_CLI_STOP_DEADLINE_NS, "the end of MPI");
    nw_comm_close(comm);
    nw_mpi_stop();
    nw_bench_status_write(status, 0, "");
    return exit_code;
}

/* ---- the command -------------------------------------------------------------------------------
 */

/* Bad input is said before anything is read. */
static nw_rc check_inputs(struct session *session, const struct nw_cli *cli)
{
    const struct options *options = &session->options;
    const bool files = options->from.count + (size_t)cli->positional_count > 0;

    if (files && (options->wish.disk != NULL || options->wish.python || options->wish.load))
        return nw_fail(NW_EUSAGE, "--disk, --python and --load look at this machine, --from reads "
                                  "files; give one or the other");
    NW_TRY(nw_check_disk(options->wish.disk));
    if (options->quote != NULL)
        NW_TRY(nw_quote_read(options->quote, &session->quote));
    if (options->model.model != NULL) {
        struct nw_transformer net;

        NW_TRY(nw_transformer_find(options->model.model, &net));
    }
    return NW_OK;
}

static size_t build_rows(struct nw_option rows[ROWS_MAX])
{
    size_t count = nw_cli_embed(rows, own_rows, OWN_COUNT, 0, true);

    return count + nw_cli_embed(rows + count, nw_model_options, nw_model_option_count,
                                offsetof(struct options, model), false);
}

int nw_cmd_check(int argc, char **argv)
{
    struct nw_option rows[ROWS_MAX];
    struct session session = {.began_ns = nw_now_ns()};
    struct nw_cli cli = {
        .arguments = "[FILE...]",
        .doc = "Are these machines what they should be, and fit to run? Reads every host of an "
               "mpirun (GPUs, NVLink, PCIe, NICs, RDMA, CPUs, storage, software), tries a "
               "connection between each pair, looks where each rank runs; needs no root and does "
               "no GPU work without --load. With FILEs: what was saved of hosts.\v"
               "Examples:\n\n"
               "  mpirun -np 16 --hostfile hosts nodeworth check --model llama-2-7b\n"
               "  nodeworth check --from host1.json --from host2.json --quote vendor.ini\n\n"
               "Exit codes: 0 no failure, 1 a finding is a failure or the quote is not met, 2 bad "
               "input, 3 nothing could be checked, or a file is cut "
               "off, 4 the run itself broke.",
        .rows = rows,
        .row_count = build_rows(rows),
        .target = &session.options,
        .max_arguments = -1,
    };
    const bool speaks = nw_cli_launch_rank() <= 0;
    nw_rc rc = nw_cli_parse(&cli, argc, argv, speaks);

    if (rc == NW_OK)
        rc = check_inputs(&session, &cli);
    if (rc != NW_OK)
        return speaks ? nw_cli_fail(rc) : nw_rc_exit_code(rc);
    if (session.options.from.count + (size_t)cli.positional_count > 0)
        return speaks ? check_files(&session, &cli) : 0;
    return nw_cli_watch(work, &session, argc, argv);
}
