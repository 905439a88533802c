#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/inputs.h"
#include "model/infer.h"
#include "report/infer_text.h"

static const char doc[] =
    "Serving: tokens per second, time to first token, sequences at once and cost of a million "
    "tokens, for one set of GPUs or several side by side; from data sheets, or for the card that "
    "--results measured from what was measured there.\v"
    "A SERVER is [COUNTx]GPU[:MIG-SLICE][@PRICE], the price per GPU (or slice) and hour. Of each "
    "the best split into tensor-parallel groups, stages and copies is shown. Example:\n\n"
    "  nodeworth infer --model llama-3-70b --format int4 4xRTX-4090@12 2xA100-80@50";

#define MAX_SERVERS 16

static const char *const cache_names[] = {"fp16", "fp8", NULL};

struct arguments {
    const char *model, *format, *cache, *currency;
    uint64_t prompt, output, sequences;
    int gpus_per_node, tp, pp;
    double max_token_ns, max_first_ns, nic_gbit_per_s;
    struct nw_option_list results_files;
    bool json;
};

#define AT(field) offsetof(struct arguments, field)
static const struct nw_option rows[] = {
    {.name = "model",
     .argument = "MODEL",
     .type = NW_OPTION_TEXT,
     .offset = AT(model),
     .known = "models",
     .help = "preset (nodeworth list models) or a Hugging Face config.json"},
    {.name = "format",
     .argument = "FORMAT",
     .type = NW_OPTION_CHOICE,
     .offset = AT(format),
     .choices = nw_weight_format_names,
     .fallback = "bf16",
     .help = "how the weights are stored"},
    {.name = "cache",
     .argument = "FORMAT",
     .type = NW_OPTION_CHOICE,
     .offset = AT(cache),
     .choices = cache_names,
     .fallback = "fp16",
     .help = "how the key-value cache is stored"},
    {.name = "prompt",
     .argument = "TOKENS",
     .type = NW_OPTION_U64,
     .offset = AT(prompt),
     .min = 1,
     .max = 1e7,
     .fallback = "1024",
     .help = "length of a prompt"},
    {.name = "output",
     .argument = "TOKENS",
     .type = NW_OPTION_U64,
     .offset = AT(output),
     .min = 1,
     .max = 1e7,
     .fallback = "256",
     .help = "length of an answer"},
    {.name = "max-token-time",
     .argument = "TIME",
     .type = NW_OPTION_DURATION,
     .offset = AT(max_token_ns),
     .help = "longest time between two tokens of a sequence: 50ms"},
    {.name = "max-first-token",
     .argument = "TIME",
     .type = NW_OPTION_DURATION,
     .offset = AT(max_first_ns),
     .help = "longest time to the first token of a prompt that comes alone: 2s"},
    {.name = "sequences",
     .argument = "N",
     .type = NW_OPTION_U64,
     .offset = AT(sequences),
     .min = 1,
     .max = 1e6,
     .help = "so many requests at once, of all copies; without it as many as fit"},
    {.name = "tp",
     .argument = "N",
     .type = NW_OPTION_INT,
     .offset = AT(tp),
     .min = 1,
     .max = 1024,
     .help = "GPUs that share each layer; without it the best"},
    {.name = "pp",
     .argument = "N",
     .type = NW_OPTION_INT,
     .offset = AT(pp),
     .min = 1,
     .max = 1024,
     .help = "stages; without it the best"},
    {.name = "gpus-per-node",
     .argument = "N",
     .type = NW_OPTION_INT,
     .offset = AT(gpus_per_node),
     .min = 1,
     .max = 1024,
     .fallback = "8",
     .help = "GPUs that tensor parallelism may span"},
    {.name = "nic-gbps",
     .argument = "GBPS",
     .type = NW_OPTION_REAL,
     .offset = AT(nic_gbit_per_s),
     .min = 1e-3,
     .max = 1e6,
     .help = "line rate of one node's NICs together, Gb/s, where a server is several nodes"},
    {.name = "results",
     .argument = "FILE",
     .type = NW_OPTION_LIST,
     .offset = AT(results_files),
     .help =
         "results.jsonl or a log of nccl-tests: memory rate, products and all-reduces as measured, "
         "for the servers that have the card it was measured on; may be given several times"},
    {.name = "currency",
     .argument = "TEXT",
     .type = NW_OPTION_TEXT,
     .offset = AT(currency),
     .fallback = "",
     .help = "printed behind costs"},
    {.name = "json", .type = NW_OPTION_FLAG, .offset = AT(json), .help = "JSON instead of tables"},
};

static nw_rc make_serving(const struct arguments *arguments, struct nw_serving *serving)
{
    if (arguments->model == NULL)
        return nw_fail(NW_EUSAGE, "no model: give --model NAME (nodeworth list models) or a "
                                  "Hugging Face config.json");
    *serving = (struct nw_serving){
        .format = nw_weight_formats,
        .kv_bytes = strcmp(arguments->cache, "fp8") == 0 ? 1 : 2,
        .sequences = (double)arguments->sequences,
        .tp = arguments->tp,
        .pp = arguments->pp,
        .prompt_tokens = arguments->prompt,
        .output_tokens = arguments->output,
        .max_token_ns = arguments->max_token_ns > 0 ? arguments->max_token_ns : NAN,
        .max_first_ns = arguments->max_first_ns > 0 ? arguments->max_first_ns : NAN};
    while (strcmp(serving->format->name, arguments->format) != 0)
        serving->format++;
    NW_TRY(nw_transformer_find(arguments->model, &serving->net));
    const uint64_t longest = serving->net.max_positions;

    if (longest > 0 && arguments->prompt + arguments->output > longest)
        return nw_fail(NW_EUSAGE,
                       "--prompt %llu and --output %llu are longer than the %llu positions of %s; "
                       "accepted: together up to that",
                       (unsigned long long)arguments->prompt, (unsigned long long)arguments->output,
                       (unsigned long long)longest, serving->net.name);
    return NW_OK;
}

static nw_rc print_json(const struct nw_serving *serving, const struct nw_server *servers,
                        const struct nw_infer *infers, size_t count)
{
    json_t *list = json_array();
    json_t *root = json_pack("{s:i, s:s, s:s, s:I, s:I, s:f, s:o}", "schema",
                             NW_MODEL_SCHEMA_VERSION, "kind", "inference", "model",
                             serving->net.name, "prompt_tokens", (json_int_t)serving->prompt_tokens,
                             "output_tokens", (json_int_t)serving->output_tokens, "weight_bytes",
                             serving->format->bytes, "servers", list);
    nw_rc rc = root != NULL ? NW_OK : nw_fail(NW_ENOMEM, "out of memory for the JSON");

    for (size_t i = 0; rc == NW_OK && i < count; i++) {
        json_t *one;

        rc = nw_infer_to_json(&servers[i], &infers[i], &one);
        if (rc == NW_OK && json_array_append_new(list, one) != 0)
            rc = nw_fail(NW_ENOMEM, "out of memory for the JSON");
    }
    if (rc == NW_OK)
        rc = nw_json_print(stdout, root);
    json_decref(root);
    return rc;
}

static nw_rc infer(const struct arguments *arguments, const struct nw_cli *cli,
                   const struct nw_results *results, const struct nw_curves *curves)
{
    struct nw_server servers[MAX_SERVERS];
    struct nw_infer infers[MAX_SERVERS];
    const size_t count = (size_t)cli->positional_count;
    struct nw_serving serving;

    NW_TRY(make_serving(arguments, &serving));
    for (size_t i = 0; i < count; i++) {
        NW_TRY(nw_server_parse(cli->positional[i], results, curves, &servers[i]));
        servers[i].gpus_per_node = servers[i].platform.fabric.gpus_per_node =
            arguments->gpus_per_node;
        if (arguments->nic_gbit_per_s > 0)
            servers[i].platform.fabric.wire_bytes_per_s = arguments->nic_gbit_per_s * 1e9 / 8;
        NW_TRY(nw_infer_best(&serving, &servers[i], &infers[i]));
    }
    if (arguments->json)
        return print_json(&serving, servers, infers, count);
    return nw_report_infer(stdout, &serving, servers, infers, count, arguments->currency);
}

static nw_rc infer_measured(const struct arguments *arguments, const struct nw_cli *cli)
{
    struct nw_results results = {0};
    struct nw_curves curves = {0};
    nw_rc rc = NW_OK;

    for (size_t i = 0; i < arguments->results_files.count && rc == NW_OK; i++)
        rc = nw_cli_read_measured(arguments->results_files.items[i], &results);
    if (rc == NW_OK && results.run_count > 0)
        rc = nw_curves_add(&curves, &results, arguments->gpus_per_node);
    if (rc == NW_OK)
        rc = infer(arguments, cli, &results, &curves);
    nw_curves_free(&curves);
    nw_results_free(&results);
    return rc;
}

int nw_cmd_infer(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct nw_cli cli = {.arguments = "SERVER...",
                         .doc = doc,
                         .rows = rows,
                         .row_count = sizeof rows / sizeof rows[0],
                         .target = &arguments,
                         .min_arguments = 1,
                         .max_arguments = MAX_SERVERS};
    nw_rc rc = nw_cli_parse(&cli, argc, argv, true);

    if (rc == NW_OK)
        rc = infer_measured(&arguments, &cli);
    if (rc == NW_OK)
        rc = nw_cli_finish_stdout();
    return rc == NW_OK ? 0 : nw_cli_fail(rc);
}
