/* The prices of a quote: against each other, and what they come to per unit of what was found. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "results/audit_private.h"

/* Two prices of one thing agree within rounding. */
#define SAME_PRICE 0.01

struct price { /* of one node for an hour */
    const char *key, *title;
    double node_hour;
    bool month;
};

static size_t prices_of(const struct nw_quote *quote, struct price prices[4])
{
    const double gpus = quote->gpu_count > 0 ? quote->gpu_count : NAN;
    const struct price all[] = {
        {"per_gpu_hour", "GPUs by the hour", quote->price_per_gpu_hour * gpus, false},
        {"per_node_hour", "the node by the hour", quote->price_per_node_hour, false},
        {"per_gpu_month", "GPUs by the month",
         quote->price_per_gpu_month * gpus / NW_HOURS_PER_MONTH, true},
        {"per_node_month", "the node by the month",
         quote->price_per_node_month / NW_HOURS_PER_MONTH, true},
    };
    size_t count = 0;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (isfinite(all[i].node_hour))
            prices[count++] = all[i];
    return count;
}

static const char *money(char text[32], double value)
{
    snprintf(text, 32, value >= 100 ? "%.0f" : "%.4g", value);
    return text;
}

static void compare(const struct nw_quote *quote, const struct price *a, const struct price *b,
                    struct nw_audit_row *row)
{
    const double ratio = b->node_hour / a->node_hour;
    char first[32], second[32];

    money(first, a->node_hour);
    money(second, b->node_hour);
    if (a->month == b->month && fabs(ratio - 1) > SAME_PRICE) {
        row->verdict = NW_AUDIT_SHORT;
        nw_audit_reason(row, "the quote names two prices: %s come to %s %s per node-hour, %s to %s",
                        a->title, first, quote->currency, b->title, second);
    } else if (!a->month && b->month && ratio > 1 + SAME_PRICE) {
        row->verdict = NW_AUDIT_SHORT;
        nw_audit_reason(row,
                        "by the month a node-hour costs more than by the hour: %s against %s %s "
                        "(730.5 hours a month)",
                        second, first, quote->currency);
    } else if (row->verdict != NW_AUDIT_SHORT && !a->month && b->month && ratio < 1 - SAME_PRICE) {
        nw_audit_reason(row, "by the month a node-hour costs %s %s, %.0f %% less than by the hour",
                        second, quote->currency, 100 * (1 - ratio));
    }
}

static nw_rc judge_prices(const struct nw_quote *quote, const struct price *prices, size_t count,
                          struct nw_audit_row *row)
{
    char text[32];

    *row = nw_audit_row_of("Price", "price", "Prices agree", NW_AUDIT_PRICE,
                           nw_quote_line(quote, "price", prices[count - 1].key));
    row->quoted = prices[count - 1].node_hour;
    row->verdict = NW_AUDIT_MET;
    row->arithmetic = true;
    snprintf(row->quoted_text, sizeof row->quoted_text, "%zu prices", count);
    snprintf(row->measured_text, sizeof row->measured_text, "%s %s a node-hour",
             money(text, row->quoted), quote->currency);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count && row->verdict == NW_AUDIT_MET; j++)
            compare(quote, &prices[i], &prices[j], row);
    if (row->verdict != NW_AUDIT_SHORT)
        return NW_OK;
    snprintf(row->measured_text, sizeof row->measured_text, "they do not");
    return nw_findings_add(&row->causes, NW_FINDING_FAIL, row->key, "",
                           "ask the vendor which price holds, and in writing",
                           "the quote contradicts itself");
}

static void add_cost(struct nw_audit *audit, const char *key, const char *title, double value,
                     const char *how, bool simulated)
{
    struct nw_audit_cost *cost = &audit->costs[audit->cost_count];

    if (!isfinite(value) || audit->cost_count == NW_AUDIT_MAX_COSTS)
        return;
    audit->cost_count++;
    *cost =
        (struct nw_audit_cost){.key = key, .title = title, .value = value, .simulated = simulated};
    snprintf(cost->how, sizeof cost->how, "%s", how);
}

static const struct nw_audit_row *measured_row(const struct nw_audit *audit, const char *key)
{
    for (size_t i = 0; i < audit->row_count; i++)
        if (strcmp(audit->rows[i].key, key) == 0 && isfinite(audit->rows[i].measured) &&
            audit->rows[i].measured > 0 && audit->rows[i].verdict != NW_AUDIT_NOT_MEASURED)
            return &audit->rows[i];
    return NULL;
}

static void add_costs(const struct nw_audit_state *state, struct nw_audit *audit)
{
    const struct nw_quote *quote = state->quote;
    const double hour = nw_quote_node_hour(quote), month = hour * NW_HOURS_PER_MONTH;
    const int gpus = nw_audit_gpus_per_node(state);
    const struct nw_audit_row *compute = measured_row(audit, "compute");
    const struct nw_audit_row *network = measured_row(audit, "network");
    char how[120], number[32];

    add_cost(audit, "node_month", "one node for a month", month, "730.5 hours", false);
    if (gpus > 0) {
        snprintf(how, sizeof how, "%d GPUs a node", gpus);
        add_cost(audit, "gpu_hour", "one GPU for an hour", hour / gpus, how, false);
    }
    if (quote->node_count > 0) {
        const double extra = nw_quote_extra_hour(quote) * NW_HOURS_PER_MONTH;

        snprintf(how, sizeof how, "%d node%s%s", quote->node_count,
                 quote->node_count == 1 ? "" : "s",
                 extra > 0 ? ", with network, storage and operations" : "");
        add_cost(audit, "cluster_month", "the cluster for a month",
                 month * quote->node_count + extra, how, false);
    }
    if (compute != NULL && gpus > 0) {
        snprintf(how, sizeof how, "%d GPUs at the measured %s TFLOP/s of the slowest", gpus,
                 nw_format_sig(number, compute->measured / 1e12, 3));
        add_cost(audit, "tflops_month", "1 TFLOP/s of bf16 for a month",
                 month / (gpus * compute->measured / 1e12), how, compute->simulated);
    }
    if (network != NULL && network->part > 0) {
        snprintf(how, sizeof how, "at the measured %s GB/s between nodes",
                 nw_format_gb_per_s(number, network->measured));
        add_cost(audit, "network_month", "1 GB/s between nodes for a month",
                 month / (network->measured / 1e9), how, network->simulated);
    }
}

nw_rc nw_audit_judge_price(const struct nw_audit_state *state, struct nw_audit *audit)
{
    struct price prices[4];
    const size_t count = prices_of(state->quote, prices);

    if (audit->row_count == 0)
        return NW_OK; /* prices alone are nothing that a machine can be held against */
    add_costs(state, audit);
    return count > 1 ? judge_prices(state->quote, prices, count, &audit->rows[audit->row_count++])
                     : NW_OK;
}
