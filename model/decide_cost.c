/* What node counts cost: by the token, in all, in each way to rent; and the price of a further node
 * and the number of tokens at which the decision turns. */
#include <math.h>

#include "model/break_even.h"
#include "results/quote.h"

double nw_price_per_hour(const struct nw_terms *terms, int node_count)
{
    if (!isfinite(terms->price_per_node_hour))
        return node_count;
    return terms->price_per_node_hour * node_count +
           terms->extra_per_further_node_hour * (node_count - 1) + terms->extra_per_hour +
           (node_count > 1 ? terms->extra_when_several_per_hour : 0);
}

double nw_cost_per_billion_tokens(const struct nw_terms *terms, int node_count, double tokens_per_s)
{
    return nw_price_per_hour(terms, node_count) / (tokens_per_s * 3600) * 1e9;
}

static double one_off(const struct nw_terms *terms, int node_count, int base_nodes)
{
    return isfinite(terms->price_per_node_hour) ? terms->setup_cost * (node_count - base_nodes) : 0;
}

static double minimum_hours(const struct nw_terms *terms)
{
    return terms->minimum_rental_ns / NW_HOUR_NS;
}

double nw_total_cost(const struct nw_model *model, int node_count, int base_nodes,
                     double useful_tokens_per_s)
{
    const struct nw_terms *terms = &model->terms;
    const double per_hour = nw_price_per_hour(terms, node_count);

    if (!isfinite(model->job.tokens))
        return nw_cost_per_billion_tokens(terms, node_count, useful_tokens_per_s);
    const double hours = model->job.tokens / (useful_tokens_per_s * 3600);
    const double base_per_hour = nw_price_per_hour(terms, base_nodes);

    return base_per_hour * hours + (per_hour - base_per_hour) * fmax(hours, minimum_hours(terms)) +
           one_off(terms, node_count, base_nodes);
}

/* ---- break-even of the price --------------------------------------------------------------- */

/* The nodes beyond the base may cost so much an hour, together, that the limit is just kept. */
static double allowed_per_hour(const struct nw_model *model, const struct nw_choice *base,
                               const struct nw_choice *choice)
{
    const struct nw_terms *terms = &model->terms;
    const double limit = 1 + terms->max_extra_cost;
    const double base_per_hour = nw_price_per_hour(terms, base->node_count);

    if (!isfinite(model->job.tokens))
        return base_per_hour *
               (limit * choice->useful_tokens_per_s / base->useful_tokens_per_s - 1);
    const double base_hours = model->job.tokens / (base->useful_tokens_per_s * 3600);
    const double hours = model->job.tokens / (choice->useful_tokens_per_s * 3600);
    const double left = base_per_hour * (limit * base_hours - hours) -
                        one_off(terms, choice->node_count, base->node_count);

    return left / fmax(hours, minimum_hours(terms));
}

/* Cost grows with tokens along two straight lines, first while the minimum rental is not used up;
 * what is allowed grows along a third. */
static void fill_token_even(const struct nw_model *model, const struct nw_choice *base,
                            struct nw_choice *choice)
{
    const struct nw_terms *terms = &model->terms;
    const double base_per_hour = nw_price_per_hour(terms, base->node_count);
    const double per_hour = nw_price_per_hour(terms, choice->node_count);
    const double once = one_off(terms, choice->node_count, base->node_count);
    const double least_hours = minimum_hours(terms);
    const double base_rate = base->useful_tokens_per_s * 3600;
    const double rate = choice->useful_tokens_per_s * 3600;
    const double allowed = (1 + terms->max_extra_cost) * base_per_hour / base_rate; /* a token */

    if (!(once > 0) && !(least_hours > 0))
        return;
    if (per_hour / rate > allowed) {
        choice->token_even = NW_BREAK_EVEN_NEVER;
        return;
    }
    const double early =
        (once + (per_hour - base_per_hour) * least_hours) / (allowed - base_per_hour / rate);

    choice->token_even = NW_BREAK_EVEN_AT;
    choice->token_even_count =
        early <= rate * least_hours ? early : once / (allowed - per_hour / rate);
}

void nw_fill_price_even(const struct nw_model *model, const struct nw_choice *base,
                        struct nw_choice *choice)
{
    const int further = choice->node_count - base->node_count;
    const double allowed = allowed_per_hour(model, base, choice) / further;

    choice->price_per_further_node_hour = (nw_price_per_hour(&model->terms, choice->node_count) -
                                           nw_price_per_hour(&model->terms, base->node_count)) /
                                          further;
    choice->price_even = allowed > 0 ? NW_BREAK_EVEN_AT : NW_BREAK_EVEN_NEVER;
    choice->price_even_per_further_node_hour = allowed > 0 ? allowed : NAN;
    fill_token_even(model, base, choice);
}

/* ---- ways to rent -------------------------------------------------------------------------- */

/* All tokens; by the month, whole months. */
static double rented_cost(const struct nw_model *model, const struct nw_terms *terms,
                          int node_count, double tokens_per_s)
{
    const double hours = model->job.tokens / (tokens_per_s * 3600);
    const double per_hour = nw_price_per_hour(terms, node_count);

    if (terms->rental != NW_RENTAL_MONTH)
        return per_hour * hours;
    /* a ten-thousandth of a month over is rounding */
    return per_hour * NW_HOURS_PER_MONTH * ceil(hours / NW_HOURS_PER_MONTH - 1e-4);
}

static void fill_rental(const struct nw_model *model, const struct nw_choice *base,
                        const struct nw_choice *choice, struct nw_rental_cost *cost)
{
    struct nw_terms terms = model->terms;
    struct nw_upkeep upkeep;

    terms.rental = cost->rental;
    terms.price_per_node_hour = cost->per_node_hour;
    nw_upkeep_of(&model->job, &terms, &base->strong, &upkeep);
    cost->base_useful = upkeep.useful;
    nw_upkeep_of(&model->job, &terms, &choice->strong, &upkeep);
    cost->useful = upkeep.useful;
    const double base_rate = nw_useful_tokens_per_s(&model->job, &terms, &base->strong);
    const double rate = nw_useful_tokens_per_s(&model->job, &terms, &choice->strong);

    cost->base_cost_per_billion_tokens =
        nw_cost_per_billion_tokens(&terms, base->node_count, base_rate);
    cost->cost_per_billion_tokens = nw_cost_per_billion_tokens(&terms, choice->node_count, rate);
    cost->base_cost = rented_cost(model, &terms, base->node_count, base_rate);
    cost->cost = rented_cost(model, &terms, choice->node_count, rate) +
                 one_off(&terms, choice->node_count, base->node_count);
    cost->cost_ratio = cost->cost_per_billion_tokens / cost->base_cost_per_billion_tokens;
}

void nw_fill_rentals(const struct nw_model *model, struct nw_decision *decision)
{
    const struct nw_terms *terms = &model->terms;
    const struct nw_choice *choice = &decision->choices[decision->headline];

    if (decision->base == decision->count || !choice->predicted)
        return;
    for (nw_rental rental = 0; rental < NW_RENTAL_COUNT; rental++) {
        struct nw_rental_cost *cost = &decision->rentals[decision->rental_count];

        if (!isfinite(terms->rental_per_node_hour[rental]))
            continue;
        *cost = (struct nw_rental_cost){.rental = rental,
                                        .per_node_hour = terms->rental_per_node_hour[rental],
                                        .base_cost = NAN,
                                        .cost = NAN,
                                        .cost_ratio = NAN};
        cost->known = rental != NW_RENTAL_SPOT || isfinite(terms->interruptions_per_node_hour);
        if (cost->known)
            fill_rental(model, &decision->choices[decision->base], choice, cost);
        decision->rental_count++;
    }
}
