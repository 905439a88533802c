/* nodeworth list: everything that can be named on the command line. */
#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "bench/bench.h"
#include "cli/cli.h"
#include "collectives/comm.h"
#include "collectives/lane.h"
#include "kernels/dev.h"
#include "model/model.h"
#include "results/import.h"
#include "topo/topo.h"

struct row {
    const char *name;
    char about[900];
    double value;     /* NAN: is none */
    const char *unit; /* of it; NULL */
};

/* One list: fills row `index`; false past the last. */
struct list {
    const char *name, *title;
    bool (*row)(size_t index, struct row *row_out);
};

static void say(struct row *row, const char *name, const char *about)
{
    row->name = name;
    nw_print_to(row->about, sizeof row->about, "%s", about != NULL ? about : "");
}

static bool collective(size_t index, struct row *row)
{
    if (index >= nw_coll_count)
        return false;
    const struct nw_coll *coll = &nw_colls[index];

    say(row, coll->name, coll->title);
    if ((coll->flags & NW_COLL_REDUCES) != 0)
        strcat(row->about, ", reduces");
    if ((coll->flags & NW_COLL_ROOTED) != 0)
        strcat(row->about, ", has a root");
    return true;
}

static bool bench_case(size_t index, struct row *row)
{
    if (nw_bench_case_name(index) == NULL)
        return false;
    say(row, nw_bench_case_name(index), nw_bench_case_title(index));
    return true;
}

static bool lane(size_t index, struct row *row)
{
    const struct nw_lane *way = &nw_lanes[index];
    size_t used;

    if (way->name == NULL)
        return false;
    say(row, way->name, way->title);
    for (const struct nw_lane_setting *setting = way->settings; setting->name != NULL; setting++) {
        used = strlen(row->about);
        nw_print_to(row->about + used, sizeof row->about - used, "%s%s=%s",
                    setting == way->settings ? ": " : " ", setting->name, setting->value);
    }
    used = strlen(row->about);
    if (way->only != NULL)
        nw_print_to(row->about + used, sizeof row->about - used, " (%s only)", way->only);
    return true;
}

static bool backend(size_t index, struct row *row)
{
    if (nw_comm_backends[index].name == NULL)
        return false;
    say(row, nw_comm_backends[index].name, nw_comm_backends[index].title);
    if (!nw_comm_backends[index].built)
        strcat(row->about, " (not built in)");
    return true;
}

static bool device(size_t index, struct row *row)
{
    const struct nw_dev_backend *device_row = &nw_dev_backends[index];

    if (device_row->name == NULL)
        return false;
    say(row, device_row->name, device_row->title);
    if (device_row->ops == NULL)
        nw_print_to(row->about, sizeof row->about, "%s (not built in: %s)", device_row->title,
                    device_row->absent);
    return true;
}

static bool dtype(size_t index, struct row *row)
{
    if (nw_dtype_names[index] == NULL)
        return false;
    row->name = nw_dtype_names[index];
    nw_print_to(row->about, sizeof row->about, "%zu byte%s", nw_dtype_bytes((nw_dtype)index),
                nw_dtype_bytes((nw_dtype)index) == 1 ? "" : "s");
    return true;
}

static bool redop(size_t index, struct row *row)
{
    if (nw_redop_names[index] == NULL)
        return false;
    say(row, nw_redop_names[index], "");
    return true;
}

static bool model(size_t index, struct row *row)
{
    const struct nw_preset *preset = nw_preset_at(index);
    char count[32], active[32];

    if (preset == NULL)
        return false;
    const struct nw_transformer *net = &preset->net;

    row->name = net->name;
    nw_format_count(count, (double)nw_transformer_parameter_count(net));
    if (net->stated_parameters > 0)
        nw_print_to(row->about, sizeof row->about, "%s parameters, %.4g GFLOP forward a sample",
                    count, net->flops_per_sample / 1e9);
    else if (net->experts > 0)
        nw_print_to(row->about, sizeof row->about, "%s parameters, %s a token, %llu layers of %llu",
                    count, nw_format_count(active, (double)nw_transformer_active_count(net)),
                    (unsigned long long)net->layers, (unsigned long long)net->hidden);
    else
        nw_print_to(row->about, sizeof row->about, "%s parameters, %llu layers of %llu", count,
                    (unsigned long long)net->layers, (unsigned long long)net->hidden);
    return true;
}

static bool gpu(size_t index, struct row *row)
{
    char tflops[32];

    if (index >= nw_gpu_count)
        return false;
    const struct nw_gpu *card = &nw_gpus[index];

    row->name = card->name;
    nw_format_bytes(row->about, card->memory_bytes);
    const double flops = card->bf16_flops > 0 ? card->bf16_flops : card->fp16_flops;

    if (flops > 0) {
        const size_t length = strlen(row->about);

        nw_print_to(row->about + length, sizeof row->about - length, ", %s TFLOP/s dense %s",
                    nw_format_sig(tflops, flops / 1e12, 3), card->bf16_flops > 0 ? "bf16" : "fp16");
    }
    return true;
}

static bool strategy(size_t index, struct row *row)
{
    if (index >= nw_strategy_count)
        return false;
    say(row, nw_strategies[index].name, nw_strategies[index].title);
    return true;
}

static bool precision(size_t index, struct row *row)
{
    if (nw_precision_names[index] == NULL)
        return false;
    row->name = nw_precision_names[index];
    nw_print_to(row->about, sizeof row->about, "%g bytes a weight, %g of a master copy",
                nw_precisions[index].element_bytes, nw_precisions[index].master_bytes);
    return true;
}

static bool optimizer(size_t index, struct row *row)
{
    if (nw_optimizer_names[index] == NULL)
        return false;
    row->name = nw_optimizer_names[index];
    nw_print_to(row->about, sizeof row->about, "%s, %g bytes of state a parameter",
                nw_optimizers[index].title, nw_optimizers[index].state_bytes);
    return true;
}

static bool framework(size_t index, struct row *row)
{
    if (index >= nw_profile_count)
        return false;
    say(row, nw_profiles[index].name, nw_profiles[index].title);
    row->value = nw_profiles[index].time_factor;
    row->unit = "of the roofline's time";
    return true;
}

static void constant_about(const struct nw_constant_row *from, struct row *row)
{
    const bool physical = from->measured_by != NULL;

    row->name = from->key;
    nw_print_to(row->about, sizeof row->about, "%g %s: %s. Source: %s.%s%s%s%s", from->value,
                from->unit, from->text, from->source, physical ? nw_tr(" Measured by: ") : "",
                physical ? from->measured_by : "",
                physical && from->sensitivity != NULL ? nw_tr(". Sensitivity: ") : "",
                physical && from->sensitivity != NULL ? from->sensitivity : "");
    row->value = from->value;
    row->unit = from->unit;
}

static bool constant(size_t index, struct row *row)
{
    if (index >= NW_CONSTANT_PHYSICAL_COUNT)
        return false;
    constant_about(&nw_constants[index], row);
    return true;
}

static bool error(size_t index, struct row *row)
{
    const size_t at = NW_CONSTANT_PHYSICAL_COUNT + index;

    if (at >= NW_CONSTANT_COUNT)
        return false;
    constant_about(&nw_constants[at], row);
    return true;
}

static bool importer(size_t index, struct row *row)
{
    if (nw_importers[index].name == NULL)
        return false;
    say(row, nw_importers[index].name, nw_importers[index].title);
    return true;
}

static bool format(size_t index, struct row *row)
{
    if (nw_topo_formats[index].name == NULL)
        return false;
    say(row, nw_topo_formats[index].name, nw_topo_formats[index].title);
    return true;
}

static bool fact(size_t index, struct row *row)
{
    static const char *const types[] = {
        [NW_FACT_TEXT] = "text", [NW_FACT_NUMBER] = "number", [NW_FACT_YES_NO] = "true or false"};

    if (index >= NW_FACT_COUNT)
        return false;
    row->name = nw_fact_rows[index].key;
    nw_print_to(row->about, sizeof row->about, "%s: %s", types[nw_fact_rows[index].type],
                nw_fact_rows[index].title);
    return true;
}

static const struct list lists[] = {
    {"collectives", "Collectives (bench --collectives, import --collective)", collective},
    {"cases", "Cases (bench --cases)", bench_case},
    {"lanes", "Ways for the bytes of NCCL (bench --lanes), and what forces them", lane},
    {"backends", "Communication backends (bench --backend)", backend},
    {"devices", "Device backends", device},
    {"dtypes", "Element types (bench -d)", dtype},
    {"ops", "Reductions (bench -o)", redop},
    {"models", "Models (--model; or the path of a Hugging Face config.json)", model},
    {"gpus", "GPUs (--gpu)", gpu},
    {"strategies", "Training strategies (--strategy)", strategy},
    {"precisions", "Precisions (--precision)", precision},
    {"optimizers", "Optimizers (--optimizer)", optimizer},
    {"frameworks", "Frameworks (--framework)", framework},
    {"constants", "Assumed constants (--assume)", constant},
    {"errors", "Errors of what is assumed, derived or extrapolated (--assume)", error},
    {"importers", "Logs that import reads", importer},
    {"formats", "Files of a machine that topo --from reads", format},
    {"facts", "Facts of a machine and its devices in a topology's JSON", fact},
};
enum { LIST_COUNT = sizeof lists / sizeof lists[0] };

static nw_rc print_list(const struct list *list, bool titled)
{
    static const struct nw_column columns[] = {{"name", NW_NAME}, {"", NW_WRAP}};
    struct nw_table *table;
    struct row row;

    if (titled)
        nw_print(stdout, "%s\n", nw_tr(list->title));
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof columns[0], &table));
    for (size_t i = 0; list->row(i, &row); i++)
        nw_table_row(table, (const char *[]){row.name, row.about});
    NW_TRY(nw_table_print(table, stdout));
    if (titled)
        fprintf(stdout, "\n");
    return NW_OK;
}

static nw_rc add_json(const struct list *list, json_t *root)
{
    json_t *rows = json_array();
    struct row row = {.value = NAN};

    NW_TRY(nw_json_set_new(root, list->name, rows));
    for (size_t i = 0; list->row(i, &row); i++) {
        json_t *item = json_pack("{s:s}", "name", row.name);

        if (json_array_append_new(rows, item) != 0)
            return nw_fail(NW_ENOMEM, "no memory for the list of %s", list->name);
        if (row.about[0] != '\0')
            NW_TRY(nw_json_set_text(item, "about", row.about));
        NW_TRY(nw_json_set_real(item, "value", row.value));
        NW_TRY(nw_json_set_text(item, "unit", row.unit));
        row = (struct row){.value = NAN};
    }
    return NW_OK;
}

/* `wanted` NULL: all. */
static nw_rc print(const struct list *wanted, bool json)
{
    const struct nw_language *spoken = json ? nw_speak(NULL) : nw_spoken_language();
    json_t *root = json ? json_object() : NULL;
    nw_rc rc = NW_OK;

    for (size_t i = 0; i < LIST_COUNT && rc == NW_OK; i++)
        if (wanted == NULL || wanted == &lists[i])
            rc = json ? add_json(&lists[i], root) : print_list(&lists[i], wanted == NULL);
    nw_speak(spoken);
    if (rc == NW_OK && json)
        rc = nw_json_print(stdout, root);
    json_decref(root);
    return rc == NW_OK ? nw_cli_finish_stdout() : rc;
}

/* Of one list; `wanted` NULL: of the lists. */
static nw_rc print_names(const struct list *wanted)
{
    struct row row;

    for (size_t i = 0; wanted == NULL && i < LIST_COUNT; i++)
        printf("%s\n", lists[i].name);
    for (size_t i = 0; wanted != NULL && wanted->row(i, &row); i++) {
        /* GPUs are found by the words of their names: so written no quotes are needed */
        const bool words = strchr(row.name, ' ') != NULL;

        for (const char *at = row.name; *at != '\0'; at++)
            putchar(!words ? *at : *at == ' ' ? '-' : tolower((unsigned char)*at));
        putchar('\n');
    }
    return nw_cli_finish_stdout();
}

static nw_rc find(const char *name, const struct list **list_out)
{
    const char *names[LIST_COUNT + 1] = {NULL};
    char accepted[300];

    for (size_t i = 0; i < LIST_COUNT; i++) {
        names[i] = lists[i].name;
        if (strcmp(name, lists[i].name) == 0) {
            *list_out = &lists[i];
            return NW_OK;
        }
    }
    const char *near = nw_nearest_name(name, names);

    return nw_fail(NW_EUSAGE, "\"%s\" is no list%s%s%s; accepted: %s", name,
                   near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                   near != NULL ? "?" : "", nw_join_names(accepted, sizeof accepted, names));
}

struct options {
    bool json, names;
};

static const struct nw_option rows[] = {
    {.name = "json",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct options, json),
     .help = "print JSON instead of tables"},
    {.name = "names",
     .type = NW_OPTION_FLAG,
     .offset = offsetof(struct options, names),
     .help = "only the names, one a line; without KIND the names of the kinds"},
};

int nw_cmd_list(int argc, char **argv)
{
    struct options options = {0};
    const struct list *wanted = NULL;
    struct nw_cli cli = {
        .arguments = "[KIND]",
        .doc = "What can be named on the command line, and what is read and known: all, or of one "
               "KIND.\v"
               "KIND: collectives, cases, lanes, backends, devices, dtypes, ops, models, gpus, "
               "strategies, precisions, optimizers, frameworks, constants and errors (--assume), "
               "importers (logs), formats (files of topo, check and audit), facts (keys of topo "
               "--json). Exit codes: 0, 2 bad input.",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .target = &options,
        .max_arguments = 1,
    };
    nw_rc rc = nw_cli_parse(&cli, argc, argv, true);

    if (rc == NW_OK && cli.positional_count == 1)
        rc = find(cli.positional[0], &wanted);
    if (rc == NW_OK)
        rc = options.names ? print_names(wanted) : print(wanted, options.json);
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
