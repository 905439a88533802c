#include "decide_support.h"

#include "base/table.h"
#include "model/break_even.h"
#include "model/candidates.h"
#include "report/candidates_text.h"

/* One GPU a node: machines that differ in wire and price. */
static struct nw_results machine(double inter_bytes_per_s)
{
    struct nw_results results = {0};

    add_group(nw_results_add_run(&results), 2, 2, 30e3, inter_bytes_per_s);
    return results;
}

static struct nw_quote quoted(double price, const char *currency)
{
    struct nw_quote quote;
    char text[256];

    snprintf(text, sizeof text, "[gpu]\ncount = 1\n[price]\nper_node_hour = %g\ncurrency = %s\n",
             price, currency);
    cr_assert(eq(int, nw_quote_parse(text, strlen(text), "test", &quote), NW_OK), "%s",
              nw_last_error()->text);
    return quote;
}

static struct nw_model_request request(void)
{
    struct nw_model_request request = small_request(0);

    request.price_per_node_hour = 0;
    request.strategy = "ddp";
    return request;
}

static struct nw_ranking rank(const struct nw_model_request *request,
                              const struct nw_candidate_input *inputs, size_t count)
{
    struct nw_ranking ranking;

    cr_assert(eq(int, nw_rank(request, inputs, count, &ranking), NW_OK), "%s",
              nw_last_error()->text);
    return ranking;
}

/* By cost; when one is needed in time, those too late stand behind. */
Test(candidates, the_cheapest_that_is_in_time_is_first)
{
    struct nw_results slow = machine(0.05e9), fast = machine(5e9);
    const struct nw_quote cheap = quoted(1, "EUR"), dear = quoted(1.5, "EUR");
    const struct nw_candidate_input inputs[] = {
        {.name = "dear", .results = &fast, .quote = &dear},
        {.name = "cheap", .results = &slow, .quote = &cheap}};
    struct nw_model_request asked = request();
    char text[2048];

    asked.tokens = 1e9; /* 11.2 h on one node, 5.8 h on two of the fast wire */
    struct nw_ranking ranking = rank(&asked, inputs, 2);

    cr_expect(eq(int, (int)ranking.by, (int)NW_RANK_COST));
    cr_expect(eq(str, ranking.items[0].name, "cheap"));
    cr_expect(eq(int, ranking.items[0].decision.choices[ranking.items[0].chosen].node_count, 1));
    cr_expect(gt(dbl, ranking.items[1].cost_per_billion_tokens,
                 ranking.items[0].cost_per_billion_tokens));
    cr_expect(gt(dbl, ranking.probability, 0.99), "the same GPUs: one error moves both");
    nw_report_ranking_sentence(text, sizeof text, &ranking);
    cr_expect(eq(ptr, strstr(text, "cheap is the better buy"), text), "%s", text);
    nw_ranking_free(&ranking);

    asked.deadline_ns = 8 * 3.6e12;
    ranking = rank(&asked, inputs, 2);
    cr_expect(eq(str, ranking.items[0].name, "dear"));
    cr_expect(ranking.items[0].in_time);
    cr_expect(eq(int, ranking.items[0].decision.choices[ranking.items[0].chosen].node_count, 2));
    cr_expect(not(ranking.items[1].in_time));
    nw_report_ranking_sentence(text, sizeof text, &ranking);
    cr_expect(ne(ptr, strstr(text, "cheap is too late"), NULL), "%s", text);
    nw_ranking_free(&ranking);
    nw_results_free(&slow);
    nw_results_free(&fast);
}

/* Money of two kinds is not compared, and none at all neither: then time decides. */
Test(candidates, without_one_currency_time_decides)
{
    struct nw_results slow = machine(0.05e9), fast = machine(5e9);
    const struct nw_quote euro = quoted(1, "EUR"), yuan = quoted(7, "CNY");
    const struct nw_candidate_input inputs[] = {{.name = "slow", .results = &slow, .quote = &euro},
                                                {.name = "fast", .results = &fast, .quote = &yuan}},
                                    bare[] = {{.name = "slow", .results = &slow},
                                              {.name = "fast", .results = &fast}};
    struct nw_model_request asked = request();
    struct nw_ranking ranking = rank(&asked, inputs, 2);

    cr_expect(eq(int, (int)ranking.by, (int)NW_RANK_TIME));
    cr_expect(ranking.currencies_differ);
    nw_ranking_free(&ranking);
    asked.gpus_per_node = 1;
    ranking = rank(&asked, bare, 2);
    cr_expect(eq(int, (int)ranking.by, (int)NW_RANK_TIME));
    cr_expect(eq(str, ranking.items[0].name, "fast"), "on two nodes");
    cr_expect(gt(dbl, ranking.probability, 0.99));
    nw_ranking_free(&ranking);
    nw_results_free(&slow);
    nw_results_free(&fast);
}

/* Equal machines at equal prices: even odds, in the order given. */
Test(candidates, equal_ones_have_even_odds)
{
    struct nw_results one = machine(1e9), other = machine(1e9);
    const struct nw_quote quote = quoted(1, "EUR");
    const struct nw_candidate_input inputs[] = {{.name = "A", .results = &one, .quote = &quote},
                                                {.name = "B", .results = &other, .quote = &quote}};
    struct nw_model_request asked = request();

    asked.nodes = "2"; /* the wires' own errors are independent */
    struct nw_ranking ranking = rank(&asked, inputs, 2);

    cr_expect(eq(str, ranking.items[0].name, "A"));
    cr_expect(epsilon_eq(dbl, ranking.probability, 0.5, 1e-6));
    nw_ranking_free(&ranking);
    nw_results_free(&one);
    nw_results_free(&other);
}

/* The GPUs' rate is known to 10 % only, but it is the same GPU: 5 % of the price are enough. */
Test(candidates, an_error_of_both_does_not_blur_a_small_difference)
{
    struct nw_results one = machine(1e9), other = machine(1e9);
    const struct nw_quote dear = quoted(1.05, "EUR"), cheap = quoted(1, "EUR");
    const struct nw_candidate_input inputs[] = {{.name = "A", .results = &one, .quote = &dear},
                                                {.name = "B", .results = &other, .quote = &cheap}};
    struct nw_model_request asked = request();

    asked.nodes = "1";
    struct nw_ranking ranking = rank(&asked, inputs, 2);

    cr_expect(eq(str, ranking.items[0].name, "B"));
    cr_expect(gt(dbl, ranking.probability, 0.99));
    cr_expect(lt(dbl, ranking.items[1].cost_low, ranking.items[0].cost_per_billion_tokens),
              "each alone is not known so well");
    nw_ranking_free(&ranking);
    nw_results_free(&one);
    nw_results_free(&other);
}

/* Minimum rental and set-up count for all nodes of a machine that is rented anew. */
Test(candidates, a_minimum_rental_makes_short_trainings_dear)
{
    struct nw_results results = machine(1e9);
    struct nw_quote plain = quoted(1, "EUR"), bound = quoted(0.9, "EUR");

    bound.minimum_rental_ns = 720 * 3.6e12;
    bound.setup_price = 10;
    const struct nw_candidate_input inputs[] = {
        {.name = "bound", .results = &results, .quote = &bound},
        {.name = "plain", .results = &results, .quote = &plain}};
    struct nw_model_request asked = request();

    asked.tokens = 1e9;
    struct nw_ranking ranking = rank(&asked, inputs, 2);

    cr_expect(eq(str, ranking.items[0].name, "plain"));
    cr_expect(epsilon_eq(dbl, ranking.items[1].cost, 720 * 0.9 + 10, 1e-9));
    nw_ranking_free(&ranking);
    asked.tokens = 1e12;
    ranking = rank(&asked, inputs, 2);
    cr_expect(eq(str, ranking.items[0].name, "bound"));
    nw_ranking_free(&ranking);
    nw_results_free(&results);
}

/* ---- claims -------------------------------------------------------------------------------- */

static struct nw_audit_row short_row(const char *key, nw_audit_unit unit, double quoted_rate,
                                     double measured)
{
    struct nw_audit_row row = {.key = key,
                               .claim = key,
                               .unit = unit,
                               .quoted = quoted_rate,
                               .part = 1,
                               .ceiling = NAN,
                               .expected_low = NAN,
                               .expected_high = NAN,
                               .measured = measured,
                               .verdict = NW_AUDIT_SHORT};

    return row;
}

static struct nw_claim_costs costs_of(const struct decided *decided, struct nw_audit_row *rows,
                                      size_t count)
{
    const struct nw_audit audit = {.rows = rows, .row_count = count};
    struct nw_claim_costs costs;

    cr_assert(
        eq(int, nw_claim_costs_of(&decided->model, &decided->decision, &audit, &costs), NW_OK),
        "%s", nw_last_error()->text);
    return costs;
}

/* Each against the same prediction with the one rate changed by hand. */
Test(candidates, a_short_claim_costs_what_its_rate_does)
{
    struct nw_model_request asked = small_request(0.5);

    asked.strategy = "ddp";
    asked.tokens = 1e10;
    asked.price.read_gb_per_s = 0.5;
    asked.price.write_gb_per_s = 0.01;
    struct decided decided = decide_on(&asked, NULL);
    struct nw_audit_row rows[] = {
        short_row("disk_write", NW_AUDIT_BYTES_PER_S, 2e9, 1e9),
        short_row("network", NW_AUDIT_BYTES_PER_S, 2e9, 1e9),
        short_row("gpu_memory", NW_AUDIT_BYTES, 2e9, 1e9),
        short_row("disk_read", NW_AUDIT_BYTES_PER_S, 2e9, 1e9),
    };
    const struct nw_claim_costs costs = costs_of(&decided, rows, 4);

    cr_expect(eq(int, costs.node_count, 2));
    cr_assert(eq(sz, costs.count, 3), "a size is no rate");
    cr_expect(eq(str, (char *)costs.items[0].key, "network"), "the dearest first");
    cr_expect(eq(dbl, costs.items[0].step_ns, decided.second->strong.step_ns));

    struct nw_model_request faster = asked;

    faster.inter_gb_per_s = 1;
    struct decided healthy = decide_on(&faster, NULL);

    cr_expect(
        epsilon_eq(dbl, costs.items[0].healthy_step_ns / healthy.second->strong.step_ns, 1, 1e-6));
    cr_expect(epsilon_eq(dbl, costs.items[0].cost - costs.items[0].healthy_cost,
                         decided.second->cost - healthy.second->cost, 1e-6 * decided.second->cost));
    forget(&healthy);
    cr_expect(eq(str, (char *)costs.items[1].key, "disk_write"));
    cr_expect(costs.items[1].on_path);
    cr_expect(eq(dbl, costs.items[1].healthy_step_ns, costs.items[1].step_ns));
    faster = asked;
    faster.price.write_gb_per_s *= 2;
    healthy = decide_on(&faster, NULL);
    cr_expect(epsilon_eq(dbl, costs.items[1].healthy_cost, healthy.second->cost,
                         1e-9 * healthy.second->cost));
    forget(&healthy);
    cr_expect(not(costs.items[2].on_path), "four bytes a token never saturate a disk");
    forget(&decided);
}

/* A machine as quoted reaches what is normal, not its peak. */
Test(candidates, normal_is_the_measure_not_the_peak)
{
    struct nw_model_request asked = request_for("llama-2-7b");

    asked.gpu = "h100-sxm";
    asked.recompute = "full";
    asked.micro_batch = 1;
    asked.nodes = "1";
    asked.price_per_node_hour = 20;
    struct decided decided = decide_on(&asked, NULL);
    struct nw_audit_row rows[] = {short_row("compute", NW_AUDIT_FLOP_PER_S, 989e12, 500e12),
                                  short_row("nvlink", NW_AUDIT_BYTES_PER_S, 450e9, 200e9),
                                  short_row("memory_rate", NW_AUDIT_BYTES_PER_S, 3350e9, 2000e9)};

    rows[0].expected_low = 640e12;
    rows[0].expected_high = 760e12;
    struct nw_claim_costs costs = costs_of(&decided, rows, 3);

    cr_assert(eq(sz, costs.count, 3));
    cr_expect(eq(str, (char *)costs.items[0].key, "compute"));
    cr_expect(eq(dbl, costs.items[0].healthy, 700e12));
    /* At most the whole computation speeds up by 700 / 500. */
    cr_expect(gt(dbl, costs.items[0].healthy_step_ns, costs.items[0].step_ns * 500 / 700));
    cr_expect(lt(dbl, costs.items[0].healthy_step_ns, costs.items[0].step_ns * 0.95));
    for (size_t i = 1; i < 3; i++)
        cr_expect(costs.items[i].on_path, "%s", costs.items[i].key);

    rows[0].expected_low = rows[0].expected_high = 400e12; /* more than is normal was measured */
    costs = costs_of(&decided, rows, 1);
    cr_expect(eq(sz, costs.count, 0));
    forget(&decided);
}

/* Curves inside a node: what a call takes beyond an empty message gets shorter, the model's own
 * curves stay as they are. */
Test(candidates, measured_links_are_scaled_in_a_copy)
{
    struct nw_model_request asked = request_for("gpt2-1.5b");
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);

    add_group(run, 8, 1, 1e6, 20e9);
    asked.tflops = 300;
    asked.strategy = "ddp";
    asked.nodes = "1";
    asked.price_per_node_hour = 1;
    struct decided decided = decide_on(&asked, &results);
    struct nw_audit_row rows[] = {short_row("nvlink", NW_AUDIT_BYTES_PER_S, 400e9, 200e9)};
    const struct nw_curve_point before = decided.model.curves.items[0].points[3];
    const struct nw_claim_costs costs = costs_of(&decided, rows, 1);

    cr_assert(eq(sz, costs.count, 1));
    cr_expect(eq(dbl, decided.model.curves.items[0].points[3].time_ns, before.time_ns));
    struct nw_results faster = {0};

    add_group(nw_results_add_run(&faster), 8, 1, 1e6, 40e9);
    struct decided healthy = decide_on(&asked, &faster);

    cr_expect(
        epsilon_eq(dbl, costs.items[0].healthy_step_ns / healthy.first->strong.step_ns, 1, 1e-3));
    cr_expect(lt(dbl, costs.items[0].healthy_step_ns, costs.items[0].step_ns * 0.99));
    forget(&healthy);
    forget(&decided);
    nw_results_free(&faster);
    nw_results_free(&results);
}

/* Longest names, and everything there is to say. */
Test(candidates, the_page_fits_100_columns)
{
    struct nw_results slow = machine(0.05e9), fast = machine(5e9);
    const struct nw_quote quote = quoted(812.5, "CNY");
    char long_name[64], *text = NULL;
    size_t size;

    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    const struct nw_candidate_input inputs[] = {
        {.name = long_name, .results = &slow, .quote = &quote},
        {.name = "B", .results = &fast, .quote = &quote}};
    struct nw_model_request asked = request();

    asked.tokens = 15e12;
    asked.deadline_ns = 1e18;
    struct nw_ranking ranking = rank(&asked, inputs, 2);

    ranking.items[0].claims =
        (struct nw_claim_costs){.count = 1,
                                .node_count = 2,
                                .items = {{.claim = "Network, per node, one way, as it is quoted",
                                           .unit = NW_AUDIT_BYTES_PER_S,
                                           .quoted = 3200e9,
                                           .healthy = 3100e9,
                                           .measured = 123e9,
                                           .on_path = true,
                                           .step_ns = 9e9,
                                           .healthy_step_ns = 8e9,
                                           .cost_per_billion_tokens = 1234.5,
                                           .healthy_cost_per_billion_tokens = 1034.5,
                                           .time_ns = 1e17,
                                           .healthy_time_ns = 9e16,
                                           .cost = 1.23e6,
                                           .healthy_cost = 1e6,
                                           .simulated = true}}};
    FILE *stream = open_memstream(&text, &size);

    cr_assert(eq(int, nw_report_ranking(stream, &ranking), NW_OK));
    fclose(stream);
    /* Quoted, normal, measured; then what a step takes longer. */
    cr_expect(ne(ptr, strstr(text, "3200 GB/s 3100 GB/s 123 GB/s +12.5 %"), NULL), "%s", text);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        cr_expect(le(int, nw_text_width(line), 100), "%s", line);
    free(text);
    nw_ranking_free(&ranking);
    nw_results_free(&slow);
    nw_results_free(&fast);
}

Test(candidates, json_has_the_whole_ranking)
{
    struct nw_results slow = machine(0.05e9), fast = machine(5e9);
    const struct nw_quote quote = quoted(1, "EUR");
    const struct nw_candidate_input inputs[] = {{.name = "A", .results = &slow, .quote = &quote},
                                                {.name = "B", .results = &fast, .quote = &quote}};
    struct nw_model_request asked = request();
    struct nw_ranking ranking = rank(&asked, inputs, 2);
    json_t *json;

    cr_assert(eq(int, nw_ranking_to_json(&ranking, &json), NW_OK));
    cr_expect(eq(sz, json_array_size(json_object_get(json, "candidates")), 2));
    const json_t *first = json_array_get(json_object_get(json, "candidates"), 0);

    cr_expect(json_number_value(json_object_get(first, "cost_per_billion_tokens")) > 0);
    cr_expect(
        eq(sz, json_array_size(json_object_get(json_object_get(first, "decision"), "choices")), 2));
    cr_expect(eq(ptr, json_object_get(first, "cost_of_tokens"), NULL));
    json_decref(json);
    nw_ranking_free(&ranking);
    nw_results_free(&slow);
    nw_results_free(&fast);
}
