#include "decide_support.h"

#define MINUTE_NS 60e9
#define HOUR_NS   3.6e12

/* Figures 3 to 5 of Daly 2006: 5 min to write, three mean times between failures. */
Test(reliability, the_interval_is_dalys)
{
    static const struct {
        double failure_min, interval_min, within;
    } rows[] = {{24 * 60, 117, 0.5}, {6 * 60, 57, 0.5}, {15, 9.1, 0.05}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect(epsilon_eq(
            dbl, nw_daly_interval(5 * MINUTE_NS, rows[i].failure_min * MINUTE_NS) / MINUTE_NS,
            rows[i].interval_min, rows[i].within));
    /* Young 1974: sqrt(2 × 5 × 1440) = 120 minutes. */
    cr_expect(
        epsilon_eq(dbl, nw_young_interval(5 * MINUTE_NS, 24 * HOUR_NS) / MINUTE_NS, 120, 1e-9));
    cr_expect(eq(dbl, nw_daly_interval(10, 4), 4), "writing takes longer than a failure comes");
    cr_expect(isinf(nw_daly_interval(10, INFINITY)));
}

/* No other interval keeps noticeably more. */
Test(reliability, dalys_interval_loses_least)
{
    for (double failure = 1; failure < 1e5; failure *= 7)
        for (double write = 0.001; write < failure; write *= 5) {
            const double best =
                nw_useful_share(nw_daly_interval(write, failure), write, 0.1, failure);

            for (double interval = failure / 1e4; interval < failure * 10; interval *= 1.2)
                cr_expect(le(dbl, nw_useful_share(interval, write, 0.1, failure), best + 2e-3),
                          "write %g, failure every %g: %g", write, failure, interval);
        }
}

Test(reliability, what_is_kept_has_its_limits)
{
    cr_expect(eq(dbl, nw_useful_share(INFINITY, 0, 10, INFINITY), 1), "no failures");
    cr_expect(epsilon_eq(dbl, nw_useful_share(9, 1, 10, INFINITY), 0.9, 1e-12), "only writing");
    cr_expect(epsilon_eq(dbl, nw_useful_share(0, 0, 1, 100), exp(-0.01), 1e-12), "only restarts");
    cr_expect(lt(dbl, nw_useful_share(1e9, 0, 0, 1), 1e-12), "never through");
    double last = 0;

    for (double failure = 1; failure < 1e9; failure *= 3) {
        const double kept = nw_useful_share(10, 0.5, 2, failure);

        cr_expect(gt(dbl, kept, last));
        cr_expect(le(dbl, kept, 1));
        last = kept;
    }
}

/* The formula against failures thrown at random. */
Test(reliability, what_is_kept_agrees_with_a_simulation)
{
    static const struct {
        double interval, write, restart, failure;
    } rows[] = {{10, 1, 2, 50}, {1, 0.1, 0.5, 3}, {100, 5, 10, 40}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const double cycle = rows[i].interval + rows[i].write;
        uint64_t state = 11 + i;
        double clock = 0;
        int done = 0;

        while (done < 40000) {
            double needed = cycle;

            for (;;) { /* until one interval is written */
                const double uniform = ((double)next_random(&state) + 0.5) / 2147483648.0;
                const double until = -rows[i].failure * log(uniform);

                if (until >= needed) {
                    clock += needed;
                    break;
                }
                clock += until;
                needed = rows[i].restart + cycle;
            }
            done++;
        }
        cr_expect(epsilon_eq(dbl, done * rows[i].interval / clock,
                             nw_useful_share(rows[i].interval, rows[i].write, rows[i].restart,
                                             rows[i].failure),
                             0.015),
                  "row %zu", i);
    }
}

/* What a user says is not told as assumed, were it the value that is assumed. */
Test(reliability, a_given_figure_is_given)
{
    static const struct {
        const char *failures, *restart; /* NULL: not given */
        double per_1000_gpu_days, restart_min;
    } cases[] = {{NULL, NULL, 0.474, 15},
                 {"0.474", "15min", 0.474, 15},
                 {"0", "0", 0, 0},
                 {"2", NULL, 2, 15}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_model_request request = request_for("gpt2-124m");
        const struct nw_option *failures =
            nw_option_find(nw_price_options, nw_price_option_count, "failures-per-1000-gpu-days");
        const struct nw_option *restart =
            nw_option_find(nw_price_options, nw_price_option_count, "restart-time");
        struct nw_terms terms;

        if (cases[i].failures != NULL)
            cr_assert(eq(int, nw_option_set(failures, &request, cases[i].failures, "test"), NW_OK));
        if (cases[i].restart != NULL)
            cr_assert(eq(int, nw_option_set(restart, &request, cases[i].restart, "test"), NW_OK));
        cr_assert(eq(int, nw_terms_make(&request, NULL, &terms), NW_OK));
        cr_expect(eq(int, terms.failures.rate_assumed, cases[i].failures == NULL), "case %zu", i);
        cr_expect(eq(int, terms.failures.restart_assumed, cases[i].restart == NULL), "case %zu", i);
        cr_expect(epsilon_eq(dbl, terms.failures.per_gpu_hour * 24000, cases[i].per_1000_gpu_days,
                             1e-12));
        cr_expect(eq(dbl, terms.failures.restart_ns, cases[i].restart_min * MINUTE_NS));
    }
}

/* 16-bit weights, fp32 copy, two moments: 14 bytes per parameter; the gradients are not kept. */
Test(reliability, a_checkpoint_is_weights_and_optimizer)
{
    struct nw_model_request request = request_for("llama-2-7b");

    request.gpu = "h100-sxm";
    request.nodes = "1";
    request.recompute = "full";
    request.micro_batch = 1;
    struct decided decided = decide_on(&request, NULL);
    const double parameters = (double)nw_transformer_parameter_count(&decided.model.job.net);

    cr_expect(eq(dbl, decided.first->upkeep.checkpoint_bytes, 14 * parameters));
    cr_expect(isnan(decided.first->upkeep.write_ns), "nothing was measured or given");
    forget(&decided);

    request.price.write_gb_per_s = 2;
    decided = decide_on(&request, NULL);
    cr_expect(epsilon_eq(dbl, decided.first->upkeep.write_ns, 14 * parameters / 2, 1));
    cr_expect(epsilon_eq(dbl, decided.first->upkeep.failure_ns, HOUR_NS * 24000 / 0.474 / 8, 1e6));
    forget(&decided);

    request.lora_rank = 16;
    decided = decide_on(&request, NULL);
    cr_expect(lt(dbl, decided.first->upkeep.checkpoint_bytes, 0.1 * 14 * parameters),
              "frozen weights are not written");
    forget(&decided);
}

/* Disks of the nodes' own write side by side, shared storage does not. */
Test(reliability, own_disks_add_up)
{
    struct nw_model_request request = small_request(10);

    request.strategy = "zero1";
    request.price.write_gb_per_s = 1;
    request.price.storage_shared = "yes";
    struct decided decided = decide_on(&request, NULL);
    const double shared = decided.second->upkeep.write_ns;

    forget(&decided);
    request.price.storage_shared = "no";
    decided = decide_on(&request, NULL);
    cr_expect(epsilon_eq(dbl, decided.second->upkeep.write_ns, shared / 2, 1e-6 * shared));
    forget(&decided);
    request.strategy = "ddp"; /* one copy of the states is written by one node */
    decided = decide_on(&request, NULL);
    cr_expect(epsilon_eq(dbl, decided.second->upkeep.write_ns, shared, 1e-6 * shared));
    forget(&decided);
}

Test(reliability, spot_nodes_lose_what_is_taken_back)
{
    struct nw_model_request request = small_request(10);

    request.price.spot_per_node_hour = 0.4;
    request.price.write_gb_per_s = 1;
    struct decided decided = decide_on(&request, NULL);

    cr_assert(eq(sz, decided.decision.rental_count, 2));
    cr_expect(eq(int, (int)decided.decision.rentals[1].rental, (int)NW_RENTAL_SPOT));
    cr_expect(not(decided.decision.rentals[1].known), "how often it is taken back was not said");
    forget(&decided);

    request.price.spot_interruptions_per_month = 30;
    decided = decide_on(&request, NULL);
    const struct nw_rental_cost *hour = &decided.decision.rentals[0], *spot = hour + 1;

    cr_expect(spot->known);
    cr_expect(lt(dbl, spot->useful, spot->base_useful), "two nodes are taken back twice as often");
    cr_expect(lt(dbl, spot->base_useful, hour->base_useful));
    cr_expect(epsilon_eq(dbl,
                         spot->base_cost_per_billion_tokens / hour->base_cost_per_billion_tokens,
                         0.4 * hour->base_useful / spot->base_useful, 1e-9));
    forget(&decided);

    request.price.rental = "spot";
    decided = decide_on(&request, NULL);
    cr_expect(epsilon_eq(dbl, decided.second->price_per_hour, 0.8, 1e-12));
    cr_expect(epsilon_eq(dbl, decided.second->cost_per_billion_tokens,
                         spot->cost_per_billion_tokens, 1e-9));
    forget(&decided);

    struct nw_model model;

    request.price.spot_interruptions_per_month = 0;
    cr_expect(eq(int, nw_model_open(&request, NULL, &model), NW_EUSAGE));
    request.price.rental = "month";
    cr_expect(eq(int, nw_model_open(&request, NULL, &model), NW_EUSAGE), "there is no such price");
}

/* By the month a further node is paid for a month at least. */
Test(reliability, a_short_training_does_not_fill_a_month)
{
    struct nw_model_request request = small_request(10);

    request.price_per_node_hour = 0;
    request.price.per_node_month = 730.5;
    request.tokens = 1e9;
    struct decided decided = decide_on(&request, NULL);

    cr_expect(eq(int, (int)decided.model.terms.rental, (int)NW_RENTAL_MONTH));
    cr_expect(eq(int, (int)decided.second->pays, (int)NW_PAYS_NO), "%s", decided.sentence);
    cr_expect(
        epsilon_eq(dbl, decided.second->cost, 730.5 + decided.second->time_ns / HOUR_NS * 1, 1e-6));
    cr_expect(ne(ptr, strstr(decided.sentence, "earned back from"), NULL), "%s", decided.sentence);
    forget(&decided);
}

Test(reliability, a_deadline_without_tokens_says_how_many_there_will_be)
{
    struct nw_model_request request = small_request(10);

    request.deadline_ns = 100 * HOUR_NS;
    struct decided decided = decide_on(&request, NULL);

    cr_expect(epsilon_eq(dbl, decided.second->deadline_tokens,
                         decided.second->useful_tokens_per_s * 360000, 1));
    cr_expect(epsilon_eq(dbl, decided.second->deadline_cost, 200, 1e-9));
    forget(&decided);
}
