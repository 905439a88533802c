/* The money part of a request: option rows, what a quote and the results add, and the terms. */
#include "model/options_price.h"

#include <math.h>
#include <string.h>

#include "model/request.h"
#include "topo/topo.h"

/* 419 unexpected interruptions of 16,384 H100 in 54 days (Grattafiori et al. 2024, The Llama 3 Herd
 * of Models, 3.3.4). */
#define FAILURES_PER_1000_GPU_DAYS 0.474
/* From a failure until training goes on: judgement, of the order that large runs tell (Jiang et al.
 * 2024, MegaScale). */
#define RESTART_MINUTES 15
/* A token is stored as a 32-bit number. */
#define BYTES_PER_TOKEN "4"

#define TEXT_OF(value) #value
#define TEXT(macro)    TEXT_OF(macro)

static const char *const rental_names[] = {"auto", "hour", "month", "spot", NULL};

#define ROW(row_name, row_type, row_argument, field, ...)                                          \
    {                                                                                              \
        .name = row_name, .type = row_type, .argument = row_argument,                              \
        .offset = offsetof(struct nw_model_request, field), __VA_ARGS__                            \
    }
#define MONEY(row_name, field, ...)                                                                \
    ROW(row_name, NW_OPTION_REAL, "X", field, .min = 0, .max = 1e15, __VA_ARGS__)

#define FAILURES_HELP                                                                              \
    "unexpected interruptions (" TEXT(FAILURES_PER_1000_GPU_DAYS) ": 419 in 54 days on 16,384 "    \
                                                                  "H100)"
#define RESTART_HELP "from a failure until training goes on (" TEXT(RESTART_MINUTES) "min)"

const struct nw_option nw_price_options[] = {
    {.help = "Money (any currency):"},
    ROW("price-per-node-hour", NW_OPTION_REAL, "X", price_per_node_hour, .min = 1e-9, .max = 1e12,
        .help = "price of one node for an hour"),
    ROW("price-per-node-month", NW_OPTION_REAL, "X", price.per_node_month, .min = 1e-9, .max = 1e15,
        .help = "price of one node for a month (730.5 h)"),
    ROW("spot-per-node-hour", NW_OPTION_REAL, "X", price.spot_per_node_hour, .min = 1e-9,
        .max = 1e12, .help = "price of one node that may be taken back, for an hour"),
    ROW("spot-interruptions", NW_OPTION_REAL, "N", price.spot_interruptions_per_month, .min = 1e-9,
        .max = 1e5, .unit = "1/month", .help = "how often a month one spot node is taken back"),
    ROW("rental", NW_OPTION_CHOICE, "hour|month|spot", price.rental, .fallback = "auto",
        .choices = rental_names,
        .help = "which of the prices decides (month where there is one, then hour, then spot)"),
    MONEY("extra-per-node-hour", extra_per_node_hour,
          .help = "what each further node adds: network, storage, operations"),
    MONEY("network-per-month", price.network_per_month,
          .help = "switch, optics, cables: from the second node on"),
    MONEY("storage-per-month", price.storage_per_month, .help = "storage: of any node count"),
    MONEY("operations-per-month", price.operations_per_month,
          .help = "people: from the second node on"),
    MONEY("setup-cost", price.setup_cost, .help = "once, for each further node"),
    ROW("minimum-rental", NW_OPTION_DURATION, "TIME", price.minimum_rental_ns,
        .help = "a further node is paid for at least this long (by the month: a month)"),
    ROW("currency", NW_OPTION_TEXT, "TEXT", currency, .fallback = "",
        .help = "shown behind prices"),
    ROW("max-extra-cost", NW_OPTION_REAL, "PERCENT", max_extra_cost_percent, .min = 0, .max = 1e6,
        .fallback = "25", .unit = "%",
        .help = "more cost per token that the time won is worth (25: 80 % efficiency)"),
    ROW("deadline", NW_OPTION_DURATION, "TIME", deadline_ns,
        .help = "all --tokens by then, e.g. 720h; without --tokens: how many there are by then"),
    ROW("max-step", NW_OPTION_DURATION, "TIME", price.max_step_ns,
        .help = "a step that takes longer is too long"),
    {.help = "Storage and failures:"},
    ROW("bytes-per-token", NW_OPTION_REAL, "N", price.bytes_per_token, .min = 0, .max = 1e12,
        .fallback = BYTES_PER_TOKEN, .unit = "bytes",
        .help = "training data read for each token (4: a 32-bit number)"),
    ROW("storage-read", NW_OPTION_REAL, "GB/s", price.read_gb_per_s, .min = 1e-9, .max = 1e6,
        .unit = "GB/s", .help = "what one node reads of training data (as measured or quoted)"),
    ROW("storage-write", NW_OPTION_REAL, "GB/s", price.write_gb_per_s, .min = 1e-9, .max = 1e6,
        .unit = "GB/s", .help = "what one node writes of a checkpoint (as measured or quoted)"),
    ROW("storage-shared", NW_OPTION_CHOICE, "yes|no", price.storage_shared,
        .choices = nw_yes_no_names,
        .help = "all nodes together reach no more than one (yes, unless measured on a local disk)"),
    ROW("failures-per-1000-gpu-days", NW_OPTION_REAL, "N", price.failures_per_1000_gpu_days,
        .min = 0, .max = 1e6, .fallback = NW_OPTION_NOT_GIVEN, .help = FAILURES_HELP),
    ROW("restart-time", NW_OPTION_DURATION, "TIME", price.restart_ns,
        .fallback = NW_OPTION_NOT_GIVEN, .help = RESTART_HELP),
    ROW("checkpoint-interval", NW_OPTION_DURATION, "TIME", price.checkpoint_interval_ns,
        .help = "time between checkpoints (the one that loses least)"),
};
const size_t nw_price_option_count = sizeof nw_price_options / sizeof nw_price_options[0];

/* ---- of a quote ---------------------------------------------------------------------------- */

static double known_or_zero(double value)
{
    return isfinite(value) && value > 0 ? value : 0;
}

static bool has_price(const struct nw_model_request *request)
{
    return request->price_per_node_hour > 0 || request->price.per_node_month > 0 ||
           request->price.spot_per_node_hour > 0;
}

static void take_prices(struct nw_model_request *request, const struct nw_quote *quote)
{
    struct nw_price_request *price = &request->price;

    request->price_per_node_hour = known_or_zero(nw_quote_node_hour_by_hour(quote));
    price->per_node_month = known_or_zero(nw_quote_node_hour_by_month(quote)) * NW_HOURS_PER_MONTH;
    price->spot_per_node_hour = known_or_zero(nw_quote_node_hour_spot(quote));
    if (!has_price(request))
        return;
    request->currency = quote->currency;
    if (!(price->spot_interruptions_per_month > 0))
        price->spot_interruptions_per_month = known_or_zero(quote->spot_interruptions_per_month);
    price->network_per_month = known_or_zero(quote->network_extra_per_month);
    price->storage_per_month = known_or_zero(quote->storage_extra_per_month);
    price->operations_per_month = known_or_zero(quote->ops_extra_per_month);
    price->setup_cost = known_or_zero(quote->setup_price);
    if (!(price->minimum_rental_ns > 0))
        price->minimum_rental_ns = known_or_zero(quote->minimum_rental_ns);
}

void nw_model_request_take_quote(struct nw_model_request *request, const struct nw_quote *quote)
{
    struct nw_price_request *price = &request->price;

    if (request->gpus_per_node == 0)
        request->gpus_per_node = quote->gpu_count;
    price->quoted_read_bytes_per_s = known_or_zero(quote->disk_read_bytes_per_s);
    price->quoted_write_bytes_per_s = known_or_zero(quote->disk_write_bytes_per_s);
    price->quoted_shared = quote->file_system != NULL;
    if (!has_price(request))
        take_prices(request, quote);
}

static bool names_a_gpu(const struct nw_results *results)
{
    for (size_t r = 0; results != NULL && r < results->run_count; r++) {
        const struct nw_context *context = &results->runs[r].context;

        if (context->gpu_model[0] != '\0')
            return true;
        for (int h = 0; context->hosts != NULL && h < context->host_count; h++)
            if (context->hosts[h].gpu_model[0] != '\0')
                return true;
    }
    return false;
}

void nw_model_request_take_quoted_machine(struct nw_model_request *request,
                                          const struct nw_quote *quote,
                                          const struct nw_results *results)
{
    const struct nw_gpu *gpu;

    if (request->nic_gbit_per_s <= 0 && known_or_zero(quote->nic_bytes_per_s) > 0) {
        request->nic_count = quote->nic_count > 0 ? quote->nic_count : 1;
        request->nic_gbit_per_s = request->nic_count * quote->nic_bytes_per_s * 8 / 1e9;
    }
    if (request->gpu != NULL || request->tflops > 0 || request->gemm_tflops > 0 ||
        quote->gpu_model[0] == '\0' || names_a_gpu(results))
        return;
    if (nw_gpu_find(quote->gpu_model, &gpu) == NW_OK)
        request->gpu = gpu->name;
    else
        nw_clear_error(); /* the model says what it needs */
}

/* ---- terms --------------------------------------------------------------------------------- */

/* The slowest data path that some host of the results was measured with (check --disk). */
static void measured_storage(const struct nw_context *context, struct nw_storage *storage)
{
    for (size_t i = 0; i < json_array_size(context->topology); i++) {
        const json_t *item = json_array_get(context->topology, i);
        struct nw_topo *topo;

        if (json_is_null(item))
            continue;
        if (nw_topo_from_json(item, "results", &topo) != NW_OK) {
            nw_clear_error(); /* only what it would have said is unknown */
            continue;
        }
        nw_storage_of_topo(topo, storage);
        nw_topo_free(topo);
    }
}

static void keep_slower(double found, double *rate, nw_figure *from)
{
    if (!(found > 0) || *from == NW_FIGURE_GIVEN || (*from == NW_FIGURE_MEASURED && found >= *rate))
        return;
    *rate = found;
    *from = NW_FIGURE_MEASURED;
}

void nw_storage_of_topo(const struct nw_topo *topo, struct nw_storage *storage)
{
    const char *medium = topo->node_count > 0 ? nw_topo_text(topo, 0, NW_FACT_DATA_MEDIUM) : NULL;

    if (topo->node_count == 0)
        return;
    keep_slower(nw_topo_number(topo, 0, NW_FACT_DATA_READ), &storage->read_bytes_per_s,
                &storage->read_from);
    keep_slower(nw_topo_number(topo, 0, NW_FACT_DATA_WRITE), &storage->write_bytes_per_s,
                &storage->write_from);
    if (medium != NULL && !storage->shared_given)
        storage->shared = strcmp(medium, "shared") == 0;
}

static void set_rate(double rate, nw_figure source, double *rate_out, nw_figure *from_out)
{
    if (!(rate > 0) || *from_out != NW_FIGURE_UNKNOWN)
        return;
    *rate_out = rate;
    *from_out = source;
}

/* Given, else measured, else quoted. */
static struct nw_storage storage_of(const struct nw_price_request *price,
                                    const struct nw_results *results)
{
    struct nw_storage measured = {.read_bytes_per_s = NAN, .write_bytes_per_s = NAN};
    struct nw_storage storage = measured;

    measured.shared = true;
    for (size_t r = 0; results != NULL && r < results->run_count; r++)
        measured_storage(&results->runs[r].context, &measured);
    set_rate(price->read_gb_per_s * 1e9, NW_FIGURE_GIVEN, &storage.read_bytes_per_s,
             &storage.read_from);
    set_rate(price->write_gb_per_s * 1e9, NW_FIGURE_GIVEN, &storage.write_bytes_per_s,
             &storage.write_from);
    set_rate(measured.read_bytes_per_s, measured.read_from, &storage.read_bytes_per_s,
             &storage.read_from);
    set_rate(measured.write_bytes_per_s, measured.write_from, &storage.write_bytes_per_s,
             &storage.write_from);
    set_rate(price->quoted_read_bytes_per_s, NW_FIGURE_QUOTED, &storage.read_bytes_per_s,
             &storage.read_from);
    set_rate(price->quoted_write_bytes_per_s, NW_FIGURE_QUOTED, &storage.write_bytes_per_s,
             &storage.write_from);
    storage.shared_given = price->storage_shared != NULL;
    storage.shared = storage.shared_given ? strcmp(price->storage_shared, "yes") == 0
                     : storage.write_from == NW_FIGURE_QUOTED ? price->quoted_shared
                                                              : measured.shared;
    return storage;
}

static double given_or_nan(double value)
{
    return value > 0 ? value : NAN;
}

static nw_rc choose_rental(const struct nw_price_request *price, struct nw_terms *terms)
{
    static const nw_rental order[] = {NW_RENTAL_MONTH, NW_RENTAL_HOUR, NW_RENTAL_SPOT};
    size_t i = 0;

    if (price->rental != NULL && strcmp(price->rental, "auto") != 0) {
        while (strcmp(price->rental, nw_rental_name(order[i])) != 0)
            i++;
        if (!isfinite(terms->rental_per_node_hour[order[i]]))
            return nw_fail(NW_EUSAGE, "--rental %s: there is no such price; give %s", price->rental,
                           order[i] == NW_RENTAL_MONTH  ? "--price-per-node-month"
                           : order[i] == NW_RENTAL_HOUR ? "--price-per-node-hour"
                                                        : "--spot-per-node-hour");
    } else {
        while (i < NW_RENTAL_COUNT && !isfinite(terms->rental_per_node_hour[order[i]]))
            i++;
        if (i == NW_RENTAL_COUNT)
            return NW_OK;
    }
    if (order[i] == NW_RENTAL_SPOT && !isfinite(terms->interruptions_per_node_hour))
        return nw_fail(NW_EUSAGE, "a spot price alone says nothing of what a token costs; give "
                                  "--spot-interruptions, how often a month one node is taken back");
    terms->rental = order[i];
    terms->price_per_node_hour = terms->rental_per_node_hour[order[i]];
    if (order[i] == NW_RENTAL_MONTH && !(price->minimum_rental_ns > 0))
        terms->minimum_rental_ns = NW_HOURS_PER_MONTH * NW_HOUR_NS;
    return NW_OK;
}

static nw_rc check_extras(const struct nw_model_request *request)
{
    const struct nw_price_request *price = &request->price;
    const struct {
        const char *option;
        double value;
    } rows[] = {
        {"--extra-per-node-hour", request->extra_per_node_hour},
        {"--network-per-month", price->network_per_month},
        {"--storage-per-month", price->storage_per_month},
        {"--operations-per-month", price->operations_per_month},
        {"--setup-cost", price->setup_cost},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].value > 0 && !has_price(request))
            return nw_fail(NW_EUSAGE,
                           "%s needs a price to stand beside: --price-per-node-hour, "
                           "--price-per-node-month or --spot-per-node-hour",
                           rows[i].option);
    return NW_OK;
}

static struct nw_failures failures_of(const struct nw_price_request *price)
{
    const bool rate_assumed = isnan(price->failures_per_1000_gpu_days);
    const bool restart_assumed = isnan(price->restart_ns);
    const double rate =
        rate_assumed ? FAILURES_PER_1000_GPU_DAYS : price->failures_per_1000_gpu_days;

    return (struct nw_failures){
        .per_gpu_hour = rate / (1000 * 24),
        .restart_ns = restart_assumed ? RESTART_MINUTES * 60e9 : price->restart_ns,
        .checkpoint_interval_ns = given_or_nan(price->checkpoint_interval_ns),
        .rate_assumed = rate_assumed,
        .restart_assumed = restart_assumed,
    };
}

nw_rc nw_terms_make(const struct nw_model_request *request, const struct nw_results *results,
                    struct nw_terms *terms_out)
{
    const struct nw_price_request *price = &request->price;
    struct nw_terms terms = {
        .price_per_node_hour = NAN,
        .rental_per_node_hour = {[NW_RENTAL_HOUR] = given_or_nan(request->price_per_node_hour),
                                 [NW_RENTAL_MONTH] =
                                     given_or_nan(price->per_node_month / NW_HOURS_PER_MONTH),
                                 [NW_RENTAL_SPOT] = given_or_nan(price->spot_per_node_hour)},
        .extra_per_further_node_hour = request->extra_per_node_hour,
        .extra_per_hour = price->storage_per_month / NW_HOURS_PER_MONTH,
        .extra_when_several_per_hour =
            (price->network_per_month + price->operations_per_month) / NW_HOURS_PER_MONTH,
        .setup_cost = price->setup_cost,
        .minimum_rental_ns = price->minimum_rental_ns,
        .interruptions_per_node_hour =
            given_or_nan(price->spot_interruptions_per_month / NW_HOURS_PER_MONTH),
        .currency = request->currency != NULL ? request->currency : "",
        .max_extra_cost = request->max_extra_cost_percent / 100,
        .deadline_ns = given_or_nan(request->deadline_ns),
        .max_step_ns = given_or_nan(price->max_step_ns),
        .bytes_per_token = price->bytes_per_token,
        .storage = storage_of(price, results),
        .failures = failures_of(price),
    };

    NW_TRY(check_extras(request));
    NW_TRY(choose_rental(price, &terms));
    *terms_out = terms;
    return NW_OK;
}
