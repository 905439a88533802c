/* What must hold of every decision, whatever the constants are. */
#include "decide_support.h"

static const char *const models[] = {"gpt2-124m", "bert-large", "gpt2-1.5b"};
#define MODELS (sizeof models / sizeof models[0])

static struct nw_model_request random_request(uint64_t *state)
{
    struct nw_model_request request = request_for(models[next_random(state) % MODELS]);

    request.tflops = random_between(state, 5, 300);
    request.gpus_per_node = 1 << next_random(state) % 4;
    request.global_batch = 64u << next_random(state) % 3;
    request.intra_gb_per_s = random_between(state, 20, 300);
    request.inter_gb_per_s = random_between(state, 0.05, 100);
    request.price_per_node_hour = random_between(state, 0.1, 100);
    request.extra_per_node_hour = next_random(state) % 2 ? random_between(state, 0.01, 10) : 0;
    request.max_extra_cost_percent = random_between(state, 1, 60);
    return request;
}

/* A wire that costs nothing: two nodes are never slower than one, and at equal prices their tokens
 * cost the same but for failures, and the slowest of two. */
Test(decide_truths, a_free_wire_is_never_worse)
{
    uint64_t state = 1;

    for (int i = 0; i < 12; i++) {
        struct nw_model_request request = random_request(&state);

        request.gpus_per_node = 1;
        request.inter_gb_per_s = 1e6;
        request.extra_per_node_hour = 0;
        request.micro_batch = 1; /* strong scaling does not cut the micro-batch */
        struct decided decided = decide_on(&request, NULL);

        cr_expect(ge(dbl, decided.second->speedup, 1.7), "%s", decided.sentence);
        cr_expect(ge(dbl, decided.second->cost_ratio, 0.999));
        cr_expect(ge(dbl, decided.second->weak_speedup, 1.7));
        forget(&decided);
    }
}

Test(decide_truths, a_node_of_endless_price_never_pays)
{
    uint64_t state = 2;

    for (int i = 0; i < 12; i++) {
        struct nw_model_request request = random_request(&state);

        request.extra_per_node_hour = 1e9;
        struct decided decided = decide_on(&request, NULL);

        cr_expect(eq(int, (int)decided.second->pays, (int)NW_PAYS_NO));
        cr_expect(eq(int, (int)decided.second->break_even, (int)NW_BREAK_EVEN_NEVER));
        cr_expect(lt(dbl, decided.second->probability, 1e-6));
        cr_expect(ne(ptr, strstr(decided.sentence, "not pay"), NULL), "%s", decided.sentence);
        forget(&decided);
    }
}

/* All prices times k: nothing but amounts changes. */
Test(decide_truths, the_unit_of_money_does_not_matter)
{
    uint64_t state = 3;

    for (int i = 0; i < 8; i++) {
        struct nw_model_request request = random_request(&state);
        const double k = random_between(&state, 0.01, 1000);

        request.price.setup_cost = request.price_per_node_hour * 10;
        request.tokens = 1e9;
        struct decided a = decide_on(&request, NULL);

        request.price_per_node_hour *= k;
        request.extra_per_node_hour *= k;
        request.price.setup_cost *= k;
        struct decided b = decide_on(&request, NULL);

        cr_expect(eq(int, (int)a.second->pays, (int)b.second->pays));
        cr_expect(epsilon_eq(dbl, b.second->cost_ratio / a.second->cost_ratio, 1, 1e-9));
        cr_expect(epsilon_eq(dbl, b.second->probability, a.second->probability, 1e-9));
        cr_expect(epsilon_eq(dbl, b.second->cost / a.second->cost, k, 1e-9 * k));
        if (a.second->price_even == NW_BREAK_EVEN_AT)
            cr_expect(epsilon_eq(dbl,
                                 b.second->price_even_per_further_node_hour /
                                     a.second->price_even_per_further_node_hour,
                                 k, 1e-9 * k));
        forget(&a);
        forget(&b);
    }
}

/* A faster wire never makes a token dearer, a dearer node never cheaper. */
Test(decide_truths, cost_falls_with_bandwidth_and_rises_with_price)
{
    uint64_t state = 4;

    for (int i = 0; i < 6; i++) {
        struct nw_model_request request = random_request(&state);
        double last = INFINITY, last_probability = 0;

        for (double rate = 0.01; rate < 1000; rate *= 8) {
            request.inter_gb_per_s = rate;
            struct decided decided = decide_on(&request, NULL);

            cr_expect(le(dbl, decided.second->cost_ratio, last * (1 + 1e-9)), "at %g GB/s", rate);
            last = decided.second->cost_ratio;
            forget(&decided);
        }
        last = 0;
        for (double extra = 0; extra < 100; extra = 2 * extra + 0.5) {
            request.extra_per_node_hour = extra;
            struct decided decided = decide_on(&request, NULL);

            cr_expect(ge(dbl, decided.second->cost_ratio, last));
            if (extra > 0)
                cr_expect(le(dbl, decided.second->probability, last_probability + 1e-12));
            last = decided.second->cost_ratio;
            last_probability = decided.second->probability;
            forget(&decided);
        }
    }
}

/* Just below the break-even price it pays, just above it does not. */
Test(decide_truths, the_verdict_turns_at_the_break_even_price)
{
    uint64_t state = 5;
    int turned = 0;

    for (int i = 0; i < 16; i++) {
        struct nw_model_request request = random_request(&state);

        request.price.setup_cost = next_random(&state) % 2 ? request.price_per_node_hour * 5 : 0;
        request.price.minimum_rental_ns = next_random(&state) % 2 ? 24 * 3.6e12 : 0;
        request.tokens = next_random(&state) % 2 ? 1e10 : 0;
        struct decided decided = decide_on(&request, NULL);
        const double even = decided.second->price_even_per_further_node_hour;

        cr_expect(epsilon_eq(dbl, decided.second->price_per_further_node_hour,
                             request.price_per_node_hour + request.extra_per_node_hour, 1e-9));
        forget(&decided);
        if (!(even > request.price_per_node_hour))
            continue;
        turned++;
        for (int side = -1; side <= 1; side += 2) {
            request.extra_per_node_hour = even * (1 + side * 1e-6) - request.price_per_node_hour;
            decided = decide_on(&request, NULL);
            cr_expect(
                eq(int, (int)decided.second->pays, (int)(side < 0 ? NW_PAYS_YES : NW_PAYS_NO)),
                "cost ratio %.9g", decided.second->cost_ratio);
            forget(&decided);
        }
    }
    cr_expect(gt(int, turned, 2));
}

/* Just below the break-even length it does not pay, just above it does. */
Test(decide_truths, the_verdict_turns_at_the_break_even_length)
{
    static const struct {
        double setup_cost, minimum_h;
    } rows[] = {{100, 0}, {0, 100}, {100, 100}, {1e4, 1}, {1, 1e4}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_model_request request = small_request(5);

        request.price.setup_cost = rows[i].setup_cost;
        request.price.minimum_rental_ns = rows[i].minimum_h * 3.6e12;
        struct decided decided = decide_on(&request, NULL);
        const double even = decided.second->token_even_count;

        cr_assert(eq(int, (int)decided.second->token_even, (int)NW_BREAK_EVEN_AT));
        cr_expect(eq(int, (int)decided.second->pays, (int)NW_PAYS_YES), "in the long run");
        forget(&decided);
        for (int side = -1; side <= 1; side += 2) {
            request.tokens = even * (1 + side * 1e-6);
            decided = decide_on(&request, NULL);
            cr_expect(
                eq(int, (int)decided.second->pays, (int)(side < 0 ? NW_PAYS_NO : NW_PAYS_YES)));
            cr_expect(epsilon_eq(dbl, decided.second->cost_ratio, 1.25, 1e-5), "row %zu: %.9g", i,
                      decided.second->cost_ratio);
            cr_expect(eq(int, reason_of(decided.second, NW_REASON_ONE_OFF) != NULL, side < 0));
            forget(&decided);
        }
    }
    /* What does not pay in the long run pays at no length. */
    struct nw_model_request request = small_request(0.01);

    request.price.setup_cost = 1;
    struct decided decided = decide_on(&request, NULL);

    cr_expect(eq(int, (int)decided.second->token_even, (int)NW_BREAK_EVEN_NEVER));
    forget(&decided);
}

/* Every way that a second node can be needed or refused, its reasons, and the sentence's words. */
Test(decide_truths, each_reason_in_its_case)
{
    struct {
        const char *what;
        double inter_gb_per_s, tokens, deadline_h, max_step_s, bytes_per_token, read_gb_per_s;
        const char *shared, *says;
        nw_pays pays;
        nw_reason_kind reason;
    } rows[] = {
        {"free wire", 50, 0, 0, 0, 0, 0, NULL, "A second node pays", NW_PAYS_YES, NW_REASON_FASTER},
        {"slow wire", 0.02, 0, 0, 0, 0, 0, NULL, "does not pay as it stands", NW_PAYS_NO,
         NW_REASON_WIRE},
        {"slow wire, its cost", 0.02, 0, 0, 0, 0, 0, NULL, "waits for the wire", NW_PAYS_NO,
         NW_REASON_COST},
        {"deadline", 0.4, 1e9, 10, 0, 0, 0, NULL, "meets the deadline of 10 h", NW_PAYS_DEADLINE,
         NW_REASON_DEADLINE},
        {"cheap and in time", 50, 1e9, 10, 0, 0, 0, NULL, "met, which fewer nodes miss",
         NW_PAYS_YES, NW_REASON_DEADLINE},
        {"late all the same", 0.4, 1e9, 1, 0, 0, 0, NULL, "missed all the same", NW_PAYS_NO,
         NW_REASON_LATE_TOO},
        {"long step", 0.4, 0, 0, 2.3, 0, 0, NULL, "brings steps within 2.3 s", NW_PAYS_STEP,
         NW_REASON_STEP},
        {"too long a step", 0.4, 0, 0, 1, 0, 0, NULL, "does not pay", NW_PAYS_NO,
         NW_REASON_SLOW_TOO},
        {"own disks, full", 50, 0, 0, 0, 1e5, 1, "no", "A second node pays", NW_PAYS_YES,
         NW_REASON_LOADING},
        {"shared storage, full", 50, 0, 0, 0, 1e5, 1, "yes", "does not pay", NW_PAYS_NO,
         NW_REASON_SHARED_STORAGE},
        {"larger batch", 0.5, 0, 0, 0, 0, 0, NULL, "does not pay", NW_PAYS_NO,
         NW_REASON_LARGER_BATCH},
        {"nothing measured", 0, 0, 0, 0, 0, 0, NULL, "nothing between nodes was measured",
         NW_PAYS_UNKNOWN, NW_REASON_UNMEASURED},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nw_model_request request = small_request(rows[i].inter_gb_per_s);

        request.strategy = "ddp";
        request.tokens = rows[i].tokens;
        request.deadline_ns = rows[i].deadline_h * 3.6e12;
        request.price.max_step_ns = rows[i].max_step_s * 1e9;
        if (rows[i].bytes_per_token > 0)
            request.price.bytes_per_token = rows[i].bytes_per_token;
        request.price.read_gb_per_s = rows[i].read_gb_per_s;
        request.price.storage_shared = rows[i].shared;
        struct decided decided = decide_on(&request, NULL);

        cr_expect(eq(int, (int)decided.second->pays, (int)rows[i].pays), "%s: %s", rows[i].what,
                  decided.sentence);
        cr_expect(ne(ptr, (void *)(uintptr_t)reason_of(decided.second, rows[i].reason), NULL),
                  "%s: no reason \"%s\": %s", rows[i].what, nw_reason_key(rows[i].reason),
                  decided.sentence);
        cr_expect(ne(ptr, strstr(decided.sentence, rows[i].says), NULL), "%s: %s", rows[i].what,
                  decided.sentence);
        forget(&decided);
    }
}

Test(decide_truths, a_batch_that_cannot_be_dealt_names_what_can)
{
    struct nw_model_request request = small_request(1);

    request.global_batch = 63;
    struct decided decided = decide_on(&request, NULL);

    cr_expect(eq(int, (int)decided.second->pays, (int)NW_PAYS_BATCH));
    const struct nw_reason *reason = reason_of(decided.second, NW_REASON_BATCH);

    cr_assert(ne(ptr, (void *)(uintptr_t)reason, NULL));
    cr_expect(eq(dbl, reason->value, 63));
    cr_expect(eq(dbl, reason->limit, 2));
    cr_expect(ne(ptr, strstr(decided.sentence, "multiple of 2"), NULL), "%s", decided.sentence);
    forget(&decided);
}

Test(decide_truths, the_sentence_without_price_alone_and_anchored)
{
    struct nw_model_request request = small_request(50);

    request.price_per_node_hour = 0;
    struct decided decided = decide_on(&request, NULL);

    cr_expect(ne(ptr, strstr(decided.sentence, "for 2.00× the price"), NULL), "%s",
              decided.sentence);
    cr_expect(ne(ptr, strstr(decided.sentence, "No price was given"), NULL), "%s",
              decided.sentence);
    cr_expect(eq(dbl, decided.second->price_per_hour, 2));
    forget(&decided);

    request.nodes = "1";
    decided = decide_on(&request, NULL);
    cr_expect(ne(ptr, strstr(decided.sentence, "no other node count"), NULL), "%s",
              decided.sentence);
    forget(&decided);

    request.nodes = NULL;
    request.strategy = "ddp";
    request.measured_step_ns = 4e9;
    request.measured_ranks = 1;
    decided = decide_on(&request, NULL);
    cr_expect(epsilon_eq(dbl, decided.first->strong.step_ns, 4e9, 1e4));
    cr_expect(epsilon_eq(dbl, decided.first->anchor_speedup, 1, 1e-4));
    cr_expect(epsilon_eq(dbl, decided.second->anchor_speedup,
                         decided.second->strong.tokens_per_s / (64 * 1024 / 4.0), 1e-6));
    cr_expect(lt(dbl, decided.second->anchor_speedup_low, decided.second->anchor_speedup));
    cr_expect(ne(ptr, strstr(decided.sentence, "measured at 4.00 s a step on 1 GPU"), NULL), "%s",
              decided.sentence);
    forget(&decided);
}

/* More memory never needs more nodes; what is advised for fewer nodes fits there. */
Test(decide_truths, memory_forces_as_few_nodes_as_it_can)
{
    int last = 1 << 30;

    for (uint64_t gib = 20; gib <= 640; gib *= 2) {
        struct nw_model_request request = request_for("llama-2-13b");

        request.gpu = "h100-sxm";
        request.gpu_memory_bytes = gib << 30;
        request.recompute = "full";
        request.micro_batch = 1;
        request.nodes = "1,2,4,8,16";
        request.inter_gb_per_s = 100;
        struct decided decided = decide_on(&request, NULL);
        const int fewest = decided.decision.fitting_node_count;

        if (fewest == 0) {
            cr_expect(eq(int, last, 1 << 30), "%d nodes with less memory", last);
            forget(&decided);
            continue;
        }
        cr_expect(le(int, fewest, last));
        last = fewest;
        for (size_t i = 0; i < decided.decision.count; i++) {
            const struct nw_choice *choice = &decided.decision.choices[i];

            if (choice->node_count < fewest)
                cr_expect(eq(int, (int)choice->pays, (int)NW_PAYS_UNFIT));
            if (choice->node_count == fewest)
                cr_expect(choice->predicted);
        }
        for (size_t i = 0; i < decided.decision.fit_way_count; i++)
            cr_expect(le(dbl, decided.decision.fit_ways[i].memory_bytes, (double)(gib << 30)));
        if (decided.second->pays == NW_PAYS_MEMORY) {
            const struct nw_reason *reason = reason_of(decided.second, NW_REASON_MEMORY);

            cr_assert(ne(ptr, (void *)(uintptr_t)reason, NULL));
            cr_expect(gt(dbl, reason->value, reason->limit));
            cr_expect(eq(dbl, reason->limit, (double)(gib << 30)));
        }
        forget(&decided);
    }
    cr_expect(eq(int, last, 1));
}

/* Megatron's degrees, where they are left open, are tried: never more nodes than with given ones.
 */
Test(decide_truths, open_degrees_hold_a_job_on_as_few_nodes_as_any)
{
    static const int degrees[][2] = {{0, 0}, {8, 1}, {1, 8}, {8, 4}, {4, 2}};
    int fewest[5];

    for (size_t i = 0; i < 5; i++) {
        struct nw_model_request request = request_for("llama-2-70b");

        request.gpu = "h100-sxm";
        request.framework = "megatron";
        request.recompute = "full";
        request.micro_batch = 1;
        request.tp = degrees[i][0];
        request.pp = degrees[i][1];
        request.nodes = "8,16";
        request.inter_gb_per_s = 100;
        struct decided decided = decide_on(&request, NULL);

        fewest[i] = decided.decision.fitting_node_count;
        cr_expect(gt(int, fewest[i], 0));
        cr_expect(le(int, fewest[0], fewest[i]));
        forget(&decided);
    }
}
