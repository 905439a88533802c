#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

#include "report/model_text.h"

/* Characters, not bytes, of the widest line. */
static size_t widest_line(const char *text)
{
    size_t widest = 0;

    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        size_t width = 0;

        for (size_t i = 0; i < length; i++)
            width += ((unsigned char)text[i] & 0xC0) != 0x80;
        if (width > widest)
            widest = width;
        text += length + (text[length] == '\n');
    }
    return widest;
}

/* Lines joined again, so that a paragraph is found that was broken between words. */
static void unwrap(char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '\n')
            *text = ' ';
}

static struct nw_model open_model(const char *name, const struct nw_results *results)
{
    struct nw_model_request request = request_for(name);
    struct nw_model model;

    request.gpu = "h100-sxm";
    request.nodes = "1,2,4,128";
    request.tokens = 15e12;
    request.price_per_node_hour = 812.5;
    request.currency = "CNY";
    cr_assert(eq(int, nw_model_open(&request, results, &model), NW_OK), "%s",
              nw_last_error()->text);
    return model;
}

static void check_texts(const struct nw_model *model)
{
    struct nw_steps steps;
    struct nw_decision decision;
    char *text = NULL, sentence[1024];
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    cr_assert(eq(int, nw_predict_all(model, &steps), NW_OK));
    cr_assert(eq(int, nw_report_predict(stream, model, &steps), NW_OK));
    fclose(stream);
    cr_expect(le(sz, widest_line(text), 100), "%s", text);
    cr_expect(ne(ptr, strstr(text, "assumed ("), NULL));
    free(text);
    stream = open_memstream(&text, &size);
    cr_assert(eq(int, nw_decide(model, &decision), NW_OK));
    nw_report_sentence(sentence, sizeof sentence, model, &decision);
    cr_assert(eq(int, nw_report_decide(stream, model, &decision), NW_OK));
    fclose(stream);
    cr_expect(le(sz, widest_line(text), 100), "%s", text);
    unwrap(text);
    cr_expect(ne(ptr, strstr(text, sentence), NULL));
    cr_expect(eq(ptr, strstr(text, "nan"), NULL), "%s", text);
    free(text);
    nw_steps_free(&steps);
    nw_decision_free(&decision);
}

/* A spread of the presets, and those with the longest names: all take too long. */
static bool is_looked_at(size_t preset)
{
    return preset % 11 == 0 || strlen(nw_preset_at(preset)->net.name) > 22;
}

Test(model_text, fits_100_columns_for_presets_measured_or_not)
{
    struct nw_results results = {0};
    struct nw_run *run = nw_results_add_run(&results);

    add_wire(run, &(struct wire){"all_reduce", 8, 1, 30e3, 300e9});
    add_wire(run, &(struct wire){"all_reduce", 16, 2, 60e3, 3e9});
    for (size_t i = 0; i < nw_preset_count(); i++) {
        if (!is_looked_at(i))
            continue;
        struct nw_model measured = open_model(nw_preset_at(i)->net.name, &results);
        struct nw_model unmeasured = open_model(nw_preset_at(i)->net.name, NULL);

        check_texts(&measured);
        check_texts(&unmeasured);
        nw_model_close(&measured);
        nw_model_close(&unmeasured);
    }
    nw_results_free(&results);
}
