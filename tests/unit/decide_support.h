/* Opening and deciding in one go, for the tests of the decision. */
#ifndef NW_TESTS_DECIDE_SUPPORT_H
#define NW_TESTS_DECIDE_SUPPORT_H

#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "report/model_text.h"

struct decided {
    struct nw_model model;
    struct nw_decision decision;
    struct nw_choice *first, *second; /* second: of the headline */
    char sentence[2048];
};

static inline struct decided decide_on(const struct nw_model_request *request,
                                       const struct nw_results *results)
{
    struct decided decided;

    cr_assert(eq(int, nw_model_open(request, results, &decided.model), NW_OK), "%s",
              nw_last_error()->text);
    cr_assert(eq(int, nw_decide(&decided.model, &decided.decision), NW_OK), "%s",
              nw_last_error()->text);
    decided.first = &decided.decision.choices[0];
    decided.second = &decided.decision.choices[decided.decision.headline];
    nw_report_sentence(decided.sentence, sizeof decided.sentence, &decided.model,
                       &decided.decision);
    return decided;
}

static inline void forget(struct decided *decided)
{
    nw_decision_free(&decided->decision);
    nw_model_close(&decided->model);
}

/* gpt2-124m on nodes of one GPU. */
static inline struct nw_model_request small_request(double inter_gb_per_s)
{
    struct nw_model_request request = request_for("gpt2-124m");

    request.tflops = 20;
    request.gpus_per_node = 1;
    request.global_batch = 64;
    request.inter_gb_per_s = inter_gb_per_s;
    request.price_per_node_hour = 1;
    return request;
}

static inline const struct nw_reason *reason_of(const struct nw_choice *choice, nw_reason_kind kind)
{
    for (size_t i = 0; i < choice->reason_count; i++)
        if (choice->reasons[i].kind == kind)
            return &choice->reasons[i];
    return NULL;
}

#endif
